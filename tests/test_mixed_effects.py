"""Effects on discrete columns and counts: odds and rate ratios, intervals, tests of equality."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import poolbn as pb
from poolbn.nodes.design import Design
from poolbn.nodes.links import Family, Response
from poolbn.nodes.logfit import Sharing, log_odds_ratios, table_effects
from poolbn.nodes.rowscores import Rows, equal_effects, scores

COLUMNS = [
    "parent", "level", "child", "outcome", "scale", "pooling", "effect", "se", "df", "lower",
    "upper", "between_sd", "opposite",
]  # fmt: skip


def rows(F: int = 4, n: int = 80, seed: int = 0, sd: float = 0.0) -> pd.DataFrame:
    """A site with x and a discrete z above a discrete y, a count c and a continuous w."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(F), n)
    x, z = rng.normal(size=F * n), rng.integers(0, 3, F * n)
    slope = 0.7 + sd * rng.normal(size=F)[site]
    eta = rng.normal(0, 0.5, F)[site] + slope * x + np.array([0.0, 0.5, -0.5])[z]
    y = rng.random(F * n) < 1 / (1 + np.exp(-eta))
    return pd.DataFrame(
        {
            "site": [f"s{j}" for j in site],
            "x": x,
            "z": np.array(["a", "b", "c"])[z],
            "y": np.where(y, "yes", "no"),
            "c": rng.poisson(np.exp(np.clip(0.5 + 0.3 * x, -9, 5))),
            "w": x + z + rng.normal(size=F * n),
        }
    )


ARCS = [("x", "y"), ("z", "y"), ("x", "c"), ("z", "w"), ("x", "w")]


def learned(pooling: str = "partial", **keywords: float) -> pb.Network:
    table = pb.table(rows(**keywords), group="site", kinds={"c": "count"})  # type: ignore[arg-type]
    forbidden = [a for a in product("xzycw", repeat=2) if a[0] != a[1] and a not in ARCS]
    return pb.learn(
        table,
        pooling=pooling,
        constraints=pb.Constraints(required=ARCS, forbidden=forbidden),
        preset="paper",
    )


def test_a_row_for_each_level_and_the_scale_of_the_child() -> None:
    net = learned()
    table = net.effects()
    assert list(table) == [*COLUMNS, "s0", "s1", "s2", "s3"]
    told = table[["parent", "level", "child", "outcome", "scale"]].to_numpy().tolist()
    assert sorted(told) == sorted([
        ["x", "", "y", "yes", "odds ratio"], ["z", "b", "y", "yes", "odds ratio"],
        ["z", "c", "y", "yes", "odds ratio"], ["x", "", "c", "", "rate ratio"],
        ["z", "b", "w", "", "difference"], ["z", "c", "w", "", "difference"],
        ["x", "", "w", "", "difference"],
    ])  # fmt: skip
    one = table.query("parent == 'x' and child == 'y'").iloc[0]
    fit = net.fits["y"]
    assert isinstance(fit, pb.nodes.regression.RegressionFit)
    assert one["effect"] == pytest.approx(math.exp(fit.fixed[0, 1]))
    half = stats.t.ppf(0.975, one["df"]) * one["se"]
    assert np.log([one["lower"], one["upper"]]) == pytest.approx(
        [fit.fixed[0, 1] - half, fit.fixed[0, 1] + half]
    )
    assert one["s2"] == pytest.approx(math.exp(fit.coef[2, 0, 1]))
    each = net.effects(by="data set", interval=0.9)
    own = each.query("parent == 'x' and child == 'y' and data_set == 's1'").iloc[0]
    middle, se = (of[1, 0] for of in (fit.effects.own, fit.effects.own_se))
    assert own["effect"] == pytest.approx(math.exp(fit.coef[1, 0, 1]))
    assert own["upper"] == pytest.approx(math.exp(middle + stats.norm.ppf(0.95) * se))
    assert len(each) == 4 * len(table)


def test_effects_of_continuous_children_are_those_of_a_linear_network() -> None:
    net = learned()
    made = rows().assign(**{f"z={k}": (rows()["z"] == k) * 1.0 for k in "bc"})
    fit = pb.fit_node(pb.stats(made[["site", "x", "z=b", "z=c", "w"]], group="site"),
                      "w", net.fits["w"].columns)  # fmt: skip
    table = net.effects().query("child == 'w'").set_index(["parent", "level"])
    for k, name in enumerate(fit.columns, start=1):
        parent, _, level = name.partition("=")
        found = table.loc[(parent, level), ["effect", "se", "df"]]
        assert tuple(found) == pytest.approx(fit.population(k), rel=1e-9)


@pytest.mark.parametrize("pooling", ["partial", "complete", "none"])
def test_a_saved_network_has_the_same_effects(pooling: str, tmp_path: Path) -> None:
    net = learned(pooling)
    net.save(tmp_path / "net.json")
    again = pb.load(tmp_path / "net.json")
    for by in ("arc", "data set"):
        pd.testing.assert_frame_equal(net.effects(by=by), again.effects(by=by), check_exact=True)
    with pytest.raises(pb.DataError, match=r"net.heterogeneity\(pb.table"):
        again.heterogeneity()
    table = pb.table(rows(), group="site", kinds={"c": "count"})
    pd.testing.assert_frame_equal(net.heterogeneity(), again.heterogeneity(table), rtol=1e-9)


def test_complete_pooling_has_the_error_of_a_logistic_regression() -> None:
    """Fisher's information at the maximum, by scipy."""
    net, data = learned("complete"), rows()
    X = np.column_stack([np.ones(len(data)), data["x"], data["z"] == "b", data["z"] == "c"]).astype(
        float
    )
    y = (data["y"] == "yes").to_numpy()
    best = optimize.minimize(
        lambda b: np.logaddexp(0, np.where(y, -1, 1) * (X @ b)).sum(), np.zeros(4), tol=1e-12
    ).x
    p = 1 / (1 + np.exp(-X @ best))
    cov = np.linalg.inv((X.T * (p * (1 - p))) @ X)
    table = net.effects().query("child == 'y'")
    assert np.log(table["effect"].to_numpy()) == pytest.approx(best[1:], abs=1e-5)
    assert table["se"].to_numpy() == pytest.approx(np.sqrt(np.diag(cov))[1:], rel=1e-4)
    assert np.isinf(table["df"]).all()


def test_no_pooling_has_the_spread_of_the_data_sets() -> None:
    table = learned("none").effects().query("parent == 'x' and child == 'y'").iloc[0]
    own = np.log(table[["s0", "s1", "s2", "s3"]].to_numpy(float))
    assert math.log(table["effect"]) == pytest.approx(own.mean())
    assert table["se"] == pytest.approx(own.std(ddof=1) / 2)
    assert table["df"] == 3


def test_woolf_in_a_table_of_two_by_two() -> None:
    counts = np.array([[[12, 30], [25, 9]], [[8, 14], [21, 17]]])
    value, variance = log_odds_ratios(counts, [2])
    assert value[:, 0] == pytest.approx(
        [math.log(9 * 12 / (25 * 30)), math.log(17 * 8 / (21 * 14))]
    )
    assert variance[:, 0] == pytest.approx((1 / counts).sum(axis=(1, 2)))
    # A zero: Haldane's half.
    value, variance = log_odds_ratios(np.array([[[12, 30], [25, 0]]]), [2])
    assert value[0, 0] == pytest.approx(math.log(0.5 * 12.5 / (25.5 * 30.5)))
    assert variance[0, 0] == pytest.approx(1 / 12.5 + 1 / 30.5 + 1 / 25.5 + 1 / 0.5)
    # No rows at one level: nothing is known.
    value, variance = log_odds_ratios(np.array([[[12, 30], [0, 0]]]), [2])
    assert value[0, 0] == 0
    assert variance[0, 0] == math.inf


def test_mantel_haenszel_over_configurations() -> None:
    """R: mantelhaen.test(UCBAdmissions, correct = FALSE): common odds ratio 0.9046968 of six
    departments; men admitted first. Its 95% interval is 0.7719074 to 1.0603298."""
    admitted = [[512, 89], [353, 17], [120, 202], [138, 131], [53, 94], [22, 24]]
    rejected = [[313, 19], [207, 8], [205, 391], [279, 244], [138, 299], [351, 317]]
    # Departments, then sex, then rejected and admitted; the second level is men.
    counts = np.stack([rejected, admitted], axis=2)[:, ::-1].reshape(1, 12, 2)
    value, variance = log_odds_ratios(counts, [6, 2])
    log_or, se = value[0, -1], math.sqrt(variance[0, -1])
    assert math.exp(log_or) == pytest.approx(0.9046968, abs=1e-7)
    ends = np.exp(log_or + np.array([-1, 1]) * stats.norm.ppf(0.975) * se)
    assert ends == pytest.approx([0.7719074, 1.0603298], abs=1e-6)


def test_tables_pool_over_data_sets_by_hartung_and_knapp() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(5, 60, (6, 2, 2))
    b, v = (each[:, 0] for each in log_odds_ratios(counts, [2]))
    shares = counts / counts.sum(axis=2, keepdims=True)
    found = table_effects(counts, shares, [2], Sharing.PARTIAL)
    t2 = optimize.brentq(  # Paule and Mandel
        lambda t2: (((b - np.average(b, weights=1 / (v + t2))) ** 2) / (v + t2)).sum() - 5, 0, 99
    )
    w = 1 / (v + t2)
    effect = np.average(b, weights=w)
    assert found.effect[0] == pytest.approx(effect, abs=1e-6)
    assert found.between_sd[0] == pytest.approx(math.sqrt(t2), rel=1e-5)
    spread = (w * (b - effect) ** 2).sum() / 5 / w.sum()
    assert found.se[0] == pytest.approx(math.sqrt(spread), rel=1e-5)
    assert found.df[0] == 5
    assert found.own[:, 0] == pytest.approx(b)  # of the shares that are given
    together = table_effects(counts, shares, [2], Sharing.COMPLETE)
    assert together.se[0] == pytest.approx(math.sqrt((1 / counts.sum(axis=0)).sum()))


def test_tables_that_agree_by_chance_have_no_interval_without_width() -> None:
    counts = np.repeat(np.array([[[1, 1], [0, 2]]]), 3, axis=0)
    b, v = (each[:, 0] for each in log_odds_ratios(counts, [2]))
    found = table_effects(counts, counts / 2, [2], Sharing.PARTIAL)
    half = stats.t.ppf(0.975, found.df[0]) * found.se[0]
    assert half == pytest.approx(stats.norm.ppf(0.975) * math.sqrt(v[0] / 3))
    alone = table_effects(counts, counts / 2, [2], Sharing.NONE)
    assert (alone.effect[0], alone.se[0]) == pytest.approx((b[0], found.se[0]))


def test_intervals_of_three_tables_of_four_rows_cover() -> None:
    rng = np.random.default_rng(21)  # 87% by the spread of the data sets alone
    covered = []
    for _ in range(400):
        site, x = np.repeat(np.arange(3), 4), rng.integers(0, 2, 12)
        y = (rng.random(12) < 1 / (1 + np.exp(0.3 - rng.normal(0, 0.5, 3)[site] - 0.7 * x))) * 1
        counts = np.zeros((3, 2, 2), dtype=np.int64)
        np.add.at(counts, (site, x, y), 1)
        found = table_effects(counts, counts / 4, [2], Sharing.PARTIAL, tests=False)
        half = stats.t.ppf(0.975, found.df[0]) * found.se[0]
        if math.isfinite(half):
            covered.append(abs(found.effect[0] - 0.7) < half)
    assert len(covered) > 250
    assert np.mean(covered) > 0.95


@pytest.mark.slow
def test_intervals_of_ten_logits_of_four_rows_cover() -> None:
    covered = []  # 91% by the spread of the data sets alone
    for seed in range(200):
        rng = np.random.default_rng(7000 + seed)
        site, x = np.repeat(np.arange(10), 4), rng.integers(0, 2, 40)
        y = rng.random(40) < 1 / (1 + np.exp(0.3 - rng.normal(0, 0.5, 10)[site] - 0.7 * x))
        frame = pd.DataFrame({"site": site.astype(str), "x": x > 0, "y": y})
        logit = pb.Partial(discrete="logit")
        fit = pb.fit_node(pb.table(frame, group="site"), "y", ["x"], pooling=logit)
        assert isinstance(fit, pb.nodes.regression.RegressionFit)
        half = stats.t.ppf(0.975, fit.effects.df[0]) * fit.effects.se[0]
        covered.append(abs(fit.effects.effect[0] - 0.7) < half)
    assert np.mean(covered) > 0.94


def test_a_table_of_probabilities_in_a_network() -> None:
    data = rows(n=200)
    made = pb.table(data[["site", "z", "y"]], group="site")
    net = pb.learn(made, start=[("z", "y")], pooling=pb.Partial(discrete="table"),
                   search=pb.HillClimb(max_iter=0), preset="paper")  # fmt: skip
    counts = np.array([
        pd.crosstab(part["z"], part["y"]).to_numpy() for _, part in data.groupby("site")
    ])  # fmt: skip
    fit = net.fits["y"]
    found = table_effects(counts, fit.probabilities, [3], Sharing.PARTIAL)
    table = net.effects()
    assert np.log(table["effect"].to_numpy()) == pytest.approx(found.effect)
    # In each data set they are those of the table of probabilities that the fit shows.
    for j, site in enumerate(net.levels):
        no, yes = fit.probabilities[j].T
        odds = yes / no
        assert table[site].to_numpy() == pytest.approx(odds[1:] / odds[0])
    test = net.heterogeneity().iloc[0]
    assert (test["test"], test["df1"]) == ("score", 6)


@pytest.mark.parametrize("family", list(Family))
def test_derivatives_are_those_of_the_likelihood(family: Family) -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
    levels = 3 if family is Family.LOGIT else 2
    y = rng.integers(0, levels, 60) if family is Family.LOGIT else rng.poisson(2, 60)
    if family is Family.ORDINAL:  # rows of 2 are about distances, which are positive
        y = np.arange(60) % 3
        X[y == 2] = 1.0, 0.0, 0.0
    theta = 1.7 if family is Family.NEGATIVE_BINOMIAL else math.inf
    made = Rows(Design(X, y, rng.uniform(1, 3, 60), np.array([0, 25, 60])),
                Response(family, levels), theta)  # fmt: skip
    coef = rng.normal(0, 0.3, (2, made.response.predictors, 3))
    coef[..., 0] += family is Family.ORDINAL
    found = scores(made, coef)
    step = 1e-6
    for j in range(2):
        for k in range(coef[0].size):
            away = np.zeros(coef.shape)
            away[j].flat[k] = step
            up, down = scores(made, coef + away), scores(made, coef - away)
            slope = (up.loglik - down.loglik)[j] / (2 * step)
            assert found.gradient[j, k] == pytest.approx(slope, rel=1e-6, abs=1e-6)
            if family is not Family.NEGATIVE_BINOMIAL:  # there it is the expected information
                curve = -(up.gradient - down.gradient)[j] / (2 * step)
                assert found.information[j, k] == pytest.approx(curve, rel=1e-5, abs=1e-5)


def test_the_score_test_of_a_table_is_pearson_s() -> None:
    """Equal log odds of data sets without parents but x = 1: Pearson's chi-square of F x 2."""
    counts = np.array([[12, 30], [25, 9], [8, 14]])
    design = Design(
        np.ones((6, 1)), np.tile([0, 1], 3), counts.ravel().astype(float), np.arange(0, 7, 2)
    )
    found = equal_effects(Rows(design, Response(levels=2)), [0])
    expected = stats.chi2_contingency(counts, correction=False)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.df == expected.dof


def test_the_score_test_is_near_the_likelihood_ratio_test() -> None:
    """By scipy: intercepts of each data set, slopes common or of each."""
    data = rows(F=5, n=150, sd=0.3, seed=4)
    net = learned(F=5, n=150, sd=0.3, seed=4)
    X, y = data["x"].to_numpy(), data["c"].to_numpy()
    site = pd.factorize(data["site"])[0]

    def best(slopes: int) -> float:
        def minus(b: np.ndarray) -> float:
            eta = b[:5][site] + (b[5:][site] if slopes > 1 else b[5]) * X
            return float((np.exp(eta) - y * eta).sum())

        return float(optimize.minimize(minus, np.zeros(5 + slopes), tol=1e-10).fun)

    test = net.heterogeneity().query("parent == 'x' and child == 'c'").iloc[0]
    assert test["df1"] == 4
    assert test["statistic"] == pytest.approx(2 * (best(1) - best(5)), rel=0.1)


def test_blocks_of_a_continuous_child_are_near_the_f_test_where_variances_are_equal() -> None:
    data = rows()
    dummies = np.column_stack([data["z"] == "b", data["z"] == "c"]).astype(float)
    site = pd.get_dummies(data["site"]).to_numpy(float)
    each = [site, *(site * column[:, None] for column in (data["x"].to_numpy(), *dummies.T))]

    def squares(parts: list[np.ndarray]) -> float:
        M = np.hstack(parts)
        left = data["w"].to_numpy() - M @ np.linalg.lstsq(M, data["w"].to_numpy(), rcond=None)[0]
        return float(left @ left)

    full, common = squares(each), squares([*each[:2], dummies])
    df = len(data) - 16
    exact = (common - full) / 6 / (full / df)
    for pooling in ("partial", "none"):
        tests = learned(pooling).heterogeneity()
        test = tests.query("parent == 'z' and child == 'w'").iloc[0]
        assert (test["test"], test["df1"]) == ("simulated", 6)
        assert test["p_value"] == pytest.approx(stats.f.sf(exact, 6, df), abs=0.1)


def test_linear_networks_have_the_same_table() -> None:
    trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
    net = pb.learn(trial, group="clinic", start=[("age", "bmi")], preset="paper")
    assert list(net.effects()) == [*COLUMNS, *net.levels]
    told = net.effects()[["parent", "level", "child", "outcome", "scale"]].to_numpy().tolist()
    assert told == [["age", "", "bmi", "", "difference"]]


def test_wrong_statistics_of_a_mixed_network() -> None:
    with pytest.raises(pb.DataError, match=r"no column 'z'.*discrete node.*pb.table"):
        learned().heterogeneity(pb.stats(rows()[["site", "x", "w"]], group="site"))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "sd"), [("y", 0.0), ("c", 0.0)])
def test_intervals_cover_and_tests_hold_their_size(kind: str, sd: float) -> None:
    """A small part of `benchmarks/mixed_intervals.py`."""
    truth = {"y": 0.7, "c": 0.3}[kind]
    covered, rejected, own = 0, 0, []
    for seed in range(100):
        table = pb.table(rows(F=5, n=60, seed=seed, sd=sd), group="site", kinds={"c": "count"})
        fit = pb.fit_node(table, kind, ["x"])
        assert isinstance(fit, pb.nodes.regression.RegressionFit)
        half = stats.t.ppf(0.95, fit.effects.df[0]) * fit.effects.se[0]
        covered += abs(fit.effects.effect[0] - truth) < half
        rejected += stats.chi2.sf(*fit.effects.equal[0]) < 0.1
        half = stats.norm.ppf(0.975) * fit.effects.own_se[:, 0]
        own.append(np.mean(np.abs(fit.effects.own[:, 0] - truth) < half))
    assert 80 <= covered <= 98
    assert np.mean(own) >= 0.94
    assert rejected <= 20
