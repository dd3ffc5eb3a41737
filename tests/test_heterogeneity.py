"""Tests of equality: R's own, numpy's regressions, and how often they reject."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import simulate
from scipy.stats import binom, f, false_discovery_control

import poolbn as pb
from poolbn.moments.standardised import standardise
from poolbn.multiplicity import adjusted_p
from poolbn.nodes.equality import equal_effects, equal_variances, one_variance, tail
from poolbn.nodes.intervals import Own, family_sums, own_estimates

pytestmark = pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
REFERENCE = Path(__file__).parent / "reference"
CASES = json.loads((REFERENCE / "heterogeneity" / "cases.json").read_text())
each_case = pytest.mark.parametrize("case", CASES, ids=[case["table"] for case in CASES])


def read(case: dict) -> pb.GroupStats:
    table = pd.read_csv(REFERENCE / "lme" / "data" / f"{case['table']}.csv.gz")
    return pb.stats(table, group=case["group"], columns=[*case["parents"], case["child"]])


def own_of(stats: pb.GroupStats, child: str, parents: list[str]) -> Own:
    data = standardise(stats)
    varies = np.ones(len(parents) + 1, dtype=bool)
    return own_estimates(family_sums(data, data.family(child, parents), varies))


def network(stats: pb.GroupStats, pooling: object = "partial") -> pb.Network:
    *parents, child = stats.names
    return pb.learn(
        stats, pooling=pooling, start=[(parent, child) for parent in parents],
        search=pb.HillClimb(max_iter=0),
    )  # fmt: skip


@each_case
def test_tests_are_those_of_r(case: dict) -> None:
    """Bartlett's; and the F test, which is for data sets of which no two show a variance."""
    stats = read(case)
    own = own_of(stats, case["child"], case["parents"])
    for k in range(len(case["parents"])):
        coef, cov = own.coef[:, k + 1], own.cov[:, k + 1]
        there = np.isfinite(cov)
        w = 1 / cov[there]
        gained = float(w @ (coef[there] - np.average(coef[there], weights=w)) ** 2)
        found = one_variance(gained, int(there.sum()) - 1, own.rss, stats.n - own.rank)
        assert found.statistic == pytest.approx(case["F"][k], rel=1e-7)
        assert (found.df1, found.df2) == (case["df1"][k], case["df2"])
        assert found.p_value == pytest.approx(case["p"][k], rel=1e-6)
    tests = network(stats).heterogeneity()
    assert set(tests["test"][tests["parent"].isin(case["parents"])]) <= {"Welch", "simulated"}
    last = tests.iloc[-1]
    assert (last["parent"], last["child"]) == ("(residual variance)", case["child"])
    assert last["statistic"] == pytest.approx(case["bartlett"], rel=1e-8)
    assert last["p_value"] == pytest.approx(case["bartlett_p"], rel=1e-7)


@each_case
def test_welch_is_that_of_r(case: dict) -> None:
    stats = read(case)
    own = own_of(stats, case["child"], [])
    if stats.n.min() < 16:
        assert equal_effects(own, stats.n, 0).test == "simulated"
        return
    found = equal_effects(own, stats.n, 0)
    assert found.test == "Welch"
    assert found.statistic == pytest.approx(case["welch"], rel=1e-8)
    assert found.df2 == pytest.approx(case["welch_df2"], rel=1e-8)
    assert found.p_value == pytest.approx(case["welch_p"], rel=1e-6)


def test_simulated_p_values_are_near_those_of_welch_where_both_hold() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        coef, cov = rng.normal(size=(5, 1)) * 0.2, np.full((5, 1), 0.01)
        own = Own(coef, cov, np.ones(5, dtype=np.int64), rng.uniform(20, 60, size=5))
        welch = equal_effects(own, np.full(5, 16.0), 0)
        # One row fewer in one data set: no longer Welch's.
        n = np.array([15.0, 16, 16, 16, 16])
        own = own._replace(rss=own.rss * [14 / 15, 1, 1, 1, 1])
        simulated = equal_effects(own, n, 0)
        assert (welch.test, simulated.test) == ("Welch", "simulated")
        assert simulated.p_value == pytest.approx(welch.p_value, abs=0.02)


def test_without_variances_of_data_sets_it_is_the_f_test() -> None:
    """One data set leaves degrees of freedom, the others fit exactly or lack a slope."""
    frame = simulate(3, data_sets=5, rows=9, parents=2)
    kept = [rows.head(9 if site == "set 2" else 3) for site, rows in frame.groupby("F")]
    frame = pd.concat(kept)
    frame.loc[frame["F"] == "set 1", "x1"] = 2.0  # constant there
    found = network(pb.stats(frame[["x1", "x2", "y", "F"]], group="F")).heterogeneity()

    y = frame["y"].to_numpy()

    def rss(columns: list[np.ndarray]) -> tuple[float, int]:
        Z = np.column_stack(columns)
        fitted = Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
        return float(np.sum((y - fitted) ** 2)), int(np.linalg.matrix_rank(Z))

    member = (frame["F"].to_numpy(object)[:, None] == frame["F"].unique().astype(object)).astype(
        float
    )
    own = {name: member * frame[[name]].to_numpy() for name in ("x1", "x2")}
    large, rank = rss([member, own["x1"], own["x2"]])
    small, less = rss([member, own["x2"], frame[["x1"]].to_numpy()])
    row = found[found["parent"] == "x1"].iloc[0]
    df = (rank - less, len(frame) - rank)
    assert (row["test"], row["df1"], row["df2"]) == ("F", *df)
    exact = (small - large) / df[0] / (large / df[1])
    assert row["statistic"] == pytest.approx(exact, rel=1e-8)
    assert row["p_value"] == pytest.approx(f.sf(exact, *df), rel=1e-8)


def sums(
    seed: int,
    slope_sd: float = 0.0,
    spread: float = 0.0,
    rows: int | list[int] = 20,
    sd: list[float] | None = None,
) -> pb.GroupStats:
    rng = np.random.default_rng(seed)
    n = np.broadcast_to(rows, 6)
    slopes = np.column_stack([1 + slope_sd * rng.normal(size=6), 1 + 0.4 * rng.normal(size=6)])
    sds = np.exp(spread * rng.normal(size=6)) if sd is None else sd
    mean, scatter = np.empty((6, 3)), np.empty((6, 3, 3))
    for j in range(6):
        x = rng.normal(size=(n[j], 2))
        x[:, 1] += 0.5 * x[:, 0]
        y = rng.normal() + x @ slopes[j] + sds[j] * rng.normal(size=n[j])
        table = np.column_stack([x, y])
        mean[j] = table.mean(axis=0)
        scatter[j] = (table - mean[j]).T @ (table - mean[j])
    return pb.GroupStats(("x1", "x2", "y"), tuple("abcdef"), n, mean, scatter, np.zeros(6, int))


@pytest.mark.parametrize(
    ("spread", "rows"),
    [
        (0.0, 5),
        (0.5, 20),
        pytest.param(0.0, 20, marks=pytest.mark.slow),
        pytest.param(0.5, 8, marks=pytest.mark.slow),
    ],
)
def test_equal_effects_are_rejected_as_often_as_they_should_be(spread: float, rows: int) -> None:
    tables = 700 if rows > 8 else 250
    p = np.empty((2, tables))
    for seed in range(tables):
        stats = sums(seed, 0.0, spread, rows)
        own = own_of(stats, "y", ["x1", "x2"])
        p[0, seed] = equal_effects(own, stats.n, 1).p_value
        p[1, seed] = equal_variances(own.rss, stats.n - own.rank).p_value
    for values in p if spread == 0 else p[:1]:
        for level in (0.05, 0.3):
            low, high = binom.ppf([1e-3, 1 - 1e-3], tables, level)
            assert low <= (values < level).sum() <= high


@pytest.mark.parametrize("pooling", ["partial", "complete"])
def test_small_data_sets_with_large_residuals_are_not_taken_for_others(pooling: str) -> None:
    """The F test, which takes residual variances for equal, rejects in 40% of such tables."""
    rows, sd, tables = [8, 12, 18, 27, 40, 60], np.geomspace(2, 0.5, 6).tolist(), 200
    net = network(sums(0), pooling)
    p = np.array(
        [
            net.heterogeneity(sums(seed, 0.0, rows=rows, sd=sd))["p_value"].iloc[0]
            for seed in range(tables)
        ]
    )
    low, high = binom.ppf([1e-3, 1 - 1e-3], tables, 0.05)
    assert low <= (p < 0.05).sum() <= high


def test_differences_are_found() -> None:
    net = network(sums(0), pb.Partial(residuals="pooled"))
    found = [net.heterogeneity(sums(seed, 1.0, 0.8)) for seed in range(20)]
    p = np.array([table["p_value"].to_numpy()[[0, -1]] for table in found])
    assert (np.median(p, axis=0) < 1e-3).all()


@pytest.mark.parametrize("pooling", ["partial", pb.Partial(residuals="pooled")])
@pytest.mark.parametrize("rows", [10, 30])
def test_units_and_orders_do_not_matter(pooling: object, rows: int) -> None:
    stats = sums(1, 0.3, 0.2, rows)
    net = network(stats, pooling)
    unit, shift = np.array([1e-3, 1e4, 7.0]), np.array([5.0, -1e5, 3.0])
    back = np.arange(6)[::-1]
    other = pb.GroupStats(
        stats.names, tuple(stats.levels[j] for j in back), stats.n[back],
        (stats.mean * unit + shift)[back], (stats.scatter * np.outer(unit, unit))[back],
        stats.dropped[back],
    ).select(["y", "x2", "x1"])  # fmt: skip
    pd.testing.assert_frame_equal(
        net.heterogeneity(), net.heterogeneity(other), rtol=1e-6, atol=1e-9
    )
    pd.testing.assert_frame_equal(
        net.heterogeneity().iloc[:, :-2], network(stats, pooling).heterogeneity().iloc[:, :-2]
    )


def test_p_values_go_on_beyond_the_draws() -> None:
    draws = f.rvs(3, 6, size=10_000, random_state=np.random.default_rng(1))
    for p in (0.3, 0.05, 1e-3, 1e-5, 1e-8):
        found = tail(draws, float(f.isf(p, 3, 6)), 3, 6.0)
        assert p / 2 < found < 2 * p
    # The smallest share of 10,000 draws would be 1e-4.
    shifted = [sums(seed, 3.0, 0.0, rows=10) for seed in range(5)]
    p = [network(stats).heterogeneity()["p_value"].iloc[0] for stats in shifted]
    assert min(p) < 1e-5


def test_adjusted_p_values_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        p = rng.uniform(size=size) ** 3
        np.testing.assert_allclose(adjusted_p(p.tolist()), false_discovery_control(p), rtol=1e-12)
    assert adjusted_p([]).tolist() == []
    found = network(sums(2, 0.4)).heterogeneity()
    for rows in (found[:2], found[2:]):  # arcs; nodes
        expected = false_discovery_control(rows["p_value"])
        np.testing.assert_allclose(rows["p_adjusted"], expected, rtol=1e-12)


def test_no_test_is_nan() -> None:
    table = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [1.0, 3, 2, 5], "site": list("aabb")})
    stats = pb.stats(table, group="site")
    net = pb.learn(stats, pooling="complete", constraints=pb.Constraints(required=[("x", "y")]))
    found = net.heterogeneity()
    found = found[found["child"] == "y"]
    assert (found["test"] == "none").all()
    assert found[["statistic", "p_value", "p_adjusted"]].isna().all(axis=None)


def test_inputs_have_no_residual_variance() -> None:
    """Nor has what is set by intervention; adjusted p-values are over the others."""
    trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]].dropna()
    net = pb.learn(trial, group="clinic", inputs=["age"], start=[("age", "birthweight_g")])
    found = net.heterogeneity()
    nodes = found[found["parent"] == "(residual variance)"]
    assert nodes["child"].tolist() == ["gestation_days", "birthweight_g"]
    assert nodes["p_adjusted"].tolist() == adjusted_p(nodes["p_value"].tolist()).tolist()
    done = net.do(gestation_days=270.0).heterogeneity(pb.stats(trial, group="clinic"))
    assert done["child"].tolist()[-1:] == ["birthweight_g"]
    assert "gestation_days" not in done["child"].tolist()
