"""Likelihood ratios of nested models, and tests of columns of all kinds."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy import stats as distributions

import poolbn as pb
from poolbn.moments.standardised import standardise
from poolbn.scoring import combined
from poolbn.scoring.rotating import lr_test


def rows(seed: int = 1, sizes: tuple[int, ...] = (12, 20, 30), effect: float = 0.0) -> pd.DataFrame:
    """Columns of all kinds; x and y have to do with each other by z and by an effect."""
    rng = np.random.default_rng(seed)
    at = np.repeat(np.arange(len(sizes)), sizes)
    n = len(at)
    z = rng.normal(size=n)
    slopes = rng.normal(0.5, 0.3, (len(sizes), 2))[at]
    x = slopes[:, 0] * z + rng.normal(size=n)
    y = slopes[:, 1] * z + effect * x + rng.normal(size=n) * np.exp(rng.normal(size=len(sizes)))[at]
    two = np.where(rng.logistic(size=n) < z + effect * y, "b", "a")
    three = np.array(list("pqr"))[
        (z + rng.normal(size=n) > 0.5).astype(int) + (rng.random(n) < 0.4)
    ]
    visits = rng.poisson(np.exp(0.5 + 0.3 * z))
    frame = pd.DataFrame({"x": x, "y": y, "z": z, "two": two, "three": three, "visits": visits})
    return frame.assign(F=[f"set {j}" for j in at])


def table(frame: pd.DataFrame) -> pb.Table:
    return pb.table(frame, group="F", kinds={"visits": "count"})


NUMBERS = ["x", "y", "z", "F"]


def test_lr_is_the_difference_of_nested_models_both_ways() -> None:
    stats = pb.stats(rows(2)[NUMBERS], group="F")
    found = pb.ci_test(stats, "x", "y", "z", test="lr")
    ratios = [
        2 * (pb.fit_node(stats, a, [b, "z"]).loglik - pb.fit_node(stats, a, ["z"]).loglik)
        for a, b in ("xy", "yx")
    ]
    assert found.statistic == pytest.approx(np.mean(ratios), abs=1e-4)
    assert found.df == 1 + 3  # a fixed effect; a variance and two covariances
    assert math.isnan(found.correlation)


def test_lr_has_the_p_value_of_rotated_rows() -> None:
    """Rows whose residuals point in random directions, as the definition has it."""
    frame, rng = rows(4, (12, 15, 18), effect=0.25)[NUMBERS], np.random.default_rng(1)
    found = pb.ci_test(pb.stats(frame, group="F"), "x", "y", "z", test="lr")

    def statistic(y: np.ndarray) -> float:
        stats = pb.stats(frame.assign(y=y), group="F")
        return sum(
            pb.score(stats, f"[z][{a}|{b}:z][{b}]", score="loglik")
            - pb.score(stats, f"[z][{a}|z][{b}]", score="loglik")
            for a, b in ("xy", "yx")
        )

    parts = []
    for _, part in frame.groupby("F", sort=False):
        Z = np.column_stack([np.ones(len(part)), part["z"]])
        Q = np.linalg.qr(Z, mode="complete")[0]
        parts.append((Q[:, :2] @ Q[:, :2].T @ part["y"].to_numpy(), Q[:, 2:], part["y"].to_numpy()))
    observed, reached = statistic(frame["y"].to_numpy()), 0
    draws = 150
    for _ in range(draws):
        made = []
        for fitted, space, y in parts:
            direction = rng.normal(size=space.shape[1])
            length = np.linalg.norm(y - fitted) / np.linalg.norm(direction)
            made.append(fitted + space @ direction * length)
        reached += statistic(np.concatenate(made)) >= observed - 1e-6
    share = reached / draws
    assert abs(share - found.p_value) < 4 * math.sqrt(found.p_value * (1 - found.p_value) / draws)


def test_lr_keeps_its_size() -> None:
    """Where residual variances and regressions differ, and the model does not know of it."""
    p = []
    for seed in range(60):
        data = standardise(pb.stats(rows(100 + seed, (10, 12, 25))[NUMBERS], group="F"))
        p.append(math.exp(lr_test(data, pb.Partial(), 1, [0], [2]).log_p))
    for level in (0.05, 0.2, 0.5):
        share = np.mean(np.array(p) <= level)
        assert abs(share - level) < 3.3 * math.sqrt(level * (1 - level) / len(p))


def test_lr_does_not_depend_on_order_or_units() -> None:
    frame = rows(3, effect=0.1)[NUMBERS]
    p = pb.ci_test(pb.stats(frame, group="F"), "x", "y", "z", test="lr").p_value
    assert 0.001 < p < 0.5
    turned = frame.iloc[::-1][["z", "y", "x", "F"]].assign(y=lambda d: 5 + 1000 * d["y"])
    for data, pair in ((frame, "yx"), (turned, "xy"), (turned, "yx")):
        again = pb.ci_test(pb.stats(data, group="F"), *pair, "z", test="lr").p_value
        assert again == pytest.approx(p, abs=0.0011)


def test_lr_far_out_and_where_there_is_nothing() -> None:
    frame = rows(5)[NUMBERS]
    near = frame.assign(y=frame["x"] + 0.1 * frame["y"])
    nearer = frame.assign(y=frame["x"] + 0.01 * frame["y"])
    far, further = (
        pb.ci_test(pb.stats(data, group="F"), "x", "y", test="lr").p_value
        for data in (near, nearer)
    )
    assert 0 < further < far < 1e-6
    with pytest.raises(pb.DataError, match="nothing to test 'x' and 'y'"):
        pb.ci_test(pb.stats(frame.groupby("F").head(3), group="F"), "x", "y", "z", test="lr")


def test_lr_of_a_block() -> None:
    """Rotations of a continuous column against indicators; the smaller kind of pair first."""
    mixed = table(rows(6))
    one = pb.ci_test(mixed, "three", "y", "z", test="lr")
    other = pb.ci_test(mixed, "y", "three", "z", test="lr")
    assert one.p_value == other.p_value
    assert one.df == 2 + (4 * 5 // 2 - 2 * 3 // 2)
    clear = table(rows(6).assign(y=lambda d: d["y"] + 5 * (d["three"] == "q")))
    assert pb.ci_test(clear, "three", "y", "z", test="lr").p_value < 1e-3


def test_g_test_is_scipys() -> None:
    frame = rows(7, (60, 80))
    found = pb.ci_test(table(frame), "two", "three", pooling="complete")
    counts = pd.crosstab(frame["two"], frame["three"])
    g, p, df, _ = distributions.chi2_contingency(counts, lambda_="log-likelihood", correction=False)
    assert found.test == "lr"
    assert (found.statistic, found.df, found.p_value) == pytest.approx((g, df, p), rel=1e-10)
    own = [
        distributions.chi2_contingency(
            pd.crosstab(part["two"], part["three"]), lambda_="log-likelihood", correction=False
        )
        for _, part in frame.groupby("F")
    ]
    none = pb.ci_test(table(frame), "three", "two", pooling="none")
    assert none.statistic == pytest.approx(sum(each.statistic for each in own), rel=1e-10)
    assert none.df == sum(each.dof for each in own)
    # From counts alone it is the same.
    counted = pb.stats(frame[["two", "three", "F"]], group="F")
    assert pb.ci_test(counted, "two", "three", pooling="complete").p_value == found.p_value


def test_analysis_of_variance_is_scipys() -> None:
    frame = rows(8, (60, 80))
    found = pb.ci_test(table(frame), "three", "y", pooling="complete")
    parts = [part["y"] for _, part in frame.groupby("three")]
    statistic, p = distributions.f_oneway(*parts)
    assert (found.statistic, found.p_value) == pytest.approx((statistic, p), rel=1e-9)
    assert (found.df, found.df2) == (2, 137)


def loglik(y: np.ndarray, *columns: np.ndarray) -> float:
    X = np.column_stack([np.ones(len(y)), *columns])
    sign = np.where(y, 1.0, -1.0)
    found = optimize.minimize(
        lambda b: np.logaddexp(0, -sign * (X @ b)).sum(), np.zeros(X.shape[1])
    )
    return -found.fun


def test_logistic_ratios_are_those_of_scipys_minimiser() -> None:
    frame = rows(9, (60, 80)).assign(other=lambda d: np.where(d["visits"] > 1, "m", "n"))
    found = pb.ci_test(table(frame), "two", "other", "z", pooling="complete")
    a, b = (frame["two"] == "b").to_numpy(), (frame["other"] == "n").to_numpy()
    z = frame["z"].to_numpy()
    ratios = [2 * (loglik(u, z, v) - loglik(u, z)) for u, v in ((a, b), (b, a))]
    assert found.statistic == pytest.approx(np.mean(ratios), abs=1e-5)
    assert found.p_value == pytest.approx(distributions.chi2.sf(found.statistic, 1), rel=1e-9)


def test_one_data_set_is_cochran_mantel_haenszel() -> None:
    """R: mantelhaen.test(UCBAdmissions, correct = FALSE)."""
    admitted = [(512, 313, 89, 19), (353, 207, 17, 8), (120, 205, 202, 391), (138, 279, 131, 244),
                (53, 138, 94, 299), (22, 351, 24, 317)]  # fmt: skip
    cells = [
        (d, g, a, n)
        for d, own in zip("ABCDEF", admitted, strict=True)
        for (g, a), n in zip(product("MF", "yn"), own, strict=True)
    ]
    frame = pd.DataFrame([cell[:3] for cell in cells for _ in range(cell[3])])
    frame.columns = ["department", "gender", "admitted"]
    found = pb.ci_test(pb.table(frame.assign(F="Berkeley"), group="F"), "gender", "admitted",
                       "department", test="combined")  # fmt: skip
    assert found.statistic == pytest.approx(1.52460666044, rel=1e-10)
    assert found.p_value == pytest.approx(0.216923697056, rel=1e-9)
    assert (found.df, found.df2) == (1, 1)


def test_one_data_set_of_larger_tables() -> None:
    """R: mantelhaen.test of job satisfaction by income and sex (Agresti, 2002)."""
    counts = [1, 2, 0, 0, 3, 3, 1, 2, 11, 17, 8, 4, 2, 3, 5, 2, 1, 0, 0, 0, 1, 3, 0, 1, 2, 5, 7, 9,
              1, 1, 3, 6]  # fmt: skip
    levels = product("MF", "abcd", "pqrs")
    cells = [level for level, n in zip(levels, counts, strict=True) for _ in range(n)]
    frame = pd.DataFrame(cells, columns=["sex", "job", "income"]).assign(F="all")
    found = pb.ci_test(pb.table(frame, group="F"), "job", "income", "sex", test="combined")
    assert found.statistic == pytest.approx(10.2000887578, rel=1e-9)
    assert found.df2 == 9
    assert found.p_value == pytest.approx(0.334531183398, rel=1e-9)


@pytest.mark.parametrize("scores", [2, 5])
@pytest.mark.parametrize("data_sets", [3, 12])
def test_null_distribution_of_vectors(scores: int, data_sets: int) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(40_000, data_sets, scores))
    total = data_sets * scores
    mean = data_sets * (z.mean(axis=1) ** 2).sum(axis=1)
    around = (z**2).sum(axis=(1, 2)) - mean
    spread = around - total - total * np.log(around / total)
    p = np.exp(combined.log_p(mean + np.where(around > total, spread, 0.0), data_sets, scores))
    assert distributions.kstest(p, "uniform").pvalue > 0.001


PAIRS = [("two", "three"), ("two", "y"), ("visits", "two"), ("visits", "three"), ("visits", "y"),
         ("x", "y")]  # fmt: skip


@pytest.mark.parametrize("given", [(), ("z",), ("other",), ("z", "other")], ids="-".join)
@pytest.mark.parametrize("pooling", ["complete", "none", "partial"])
def test_all_pairs_both_ways(pooling: str, given: tuple[str, ...]) -> None:
    """The same for x and y, and for any order of columns, rows and data sets."""
    frame = rows(10, (25, 30, 45)).assign(other=lambda d: np.where(d["x"] > 0.3, "m", "n"))
    turned = frame.iloc[::-1, ::-1]
    for x, y in PAIRS:
        one = pb.ci_test(table(frame), x, y, given, pooling=pooling)
        assert 0 < one.p_value <= 1
        for data in (frame, turned):
            other = pb.ci_test(table(data), y, x, given, pooling=pooling)
            assert other.p_value == pytest.approx(one.p_value, rel=2e-3, abs=1e-6)
            assert other.df == pytest.approx(one.df, rel=1e-6)


def test_effects_of_all_kinds_are_seen() -> None:
    frame = rows(11, (40, 40, 40, 40))
    rng = np.random.default_rng(1)
    up = frame["two"] == "b"
    frame["visits"] = rng.poisson(np.where(up, 4.0, 1.5))
    frame["three"] = np.where(up, *rng.choice(list("pqr"), size=(2, len(frame)), p=[0.7, 0.2, 0.1]))
    frame.loc[up, "three"] = rng.choice(list("pqr"), size=up.sum(), p=[0.1, 0.3, 0.6])
    frame["y"] += 1.5 * up
    for y, pooling in product(("visits", "three", "y"), ("complete", "none", "partial")):
        for given in ((), ("z",)):
            assert pb.ci_test(table(frame), "two", y, given, pooling=pooling).p_value < 1e-3


def test_a_level_that_all_rows_have_is_nothing_to_test() -> None:
    frame = rows(12)
    whole = table(frame.assign(two=np.where(frame.index == 0, "b", "a"))).select(["two", "y"])
    part = pb.table(frame.assign(two=np.where(frame["F"] == "set 0", "b", "a")), group="F")
    with pytest.raises(pb.DataError, match="nothing to test 'two' and 'y'"):
        pb.ci_test(part, "two", "y")
    assert pb.ci_test(whole, "two", "y").data_sets == ("set 0",)


def test_what_is_refused() -> None:
    mixed = table(rows(13))
    with pytest.raises(pb.OptionError, match="'t' is for continuous columns, and 'two' is not"):
        pb.ci_test(mixed, "two", "y", test="t")
    with pytest.raises(pb.OptionError, match="neither is continuous"):
        pb.ci_test(mixed, "two", "three", test="lr")
    sums = pb.stats(rows(13).drop(columns="visits"), group="F")
    with pytest.raises(pb.DataError, match="needs rows"):
        pb.ci_test(sums, "two", "three", "z")
    assert pb.ci_test(sums, "two", "y").p_value > 0  # sums are all that this needs


def test_words() -> None:
    mixed = table(rows(14))
    said = repr(pb.ci_test(mixed, "two", "three", "z"))
    assert said.startswith("combined test of two and three given z\n")
    assert "data sets, 2 scores of each, p-value" in said
    assert "correlation" not in said
    assert "likelihood ratio test" in repr(pb.ci_test(mixed, "two", "y", test="lr"))


def test_the_group_column_has_the_word() -> None:
    frame = rows(14).rename(columns={"F": "school"})
    for columns in (["two", "three", "z"], ["z", "y"]):  # from rows, and from their sums
        x, y = columns[:2]
        said = repr(pb.ci_test(pb.table(frame[["school", *columns]], group="school"), x, y))
        assert f" rows in {frame['school'].nunique()} schools" in said
        assert "data set" not in said


def test_learners_ask_tests_of_all_kinds() -> None:
    """A chain: two -> y -> visits, and one column beside it."""
    rng = np.random.default_rng(4)
    at = np.repeat(np.arange(6), 50)
    two = rng.random(300) < 0.5
    y = 1.5 * two + rng.normal(size=300) + rng.normal(size=6)[at]
    visits = rng.poisson(np.exp(0.5 * y))
    aside = rng.choice(list("pqr"), 300)
    frame = pd.DataFrame({"two": two, "y": y, "visits": visits, "aside": aside, "F": at})
    mixed = table(frame)
    for pooling in ("partial", "complete"):
        found = pb.PC().pattern(mixed, pooling=pooling)
        assert {frozenset(pair) for pair in found.cpdag.undirected} == {
            frozenset({"two", "y"}),
            frozenset({"y", "visits"}),
        }
        assert found.separators["two", "visits"] == ("y",)
    net = pb.learn(mixed, search=pb.PC())
    assert {frozenset(pair) for pair in net.dag.skeleton()} == {
        frozenset({"two", "y"}), frozenset({"y", "visits"})}  # fmt: skip
    assert pb.learn(mixed, search=pb.Hybrid()).dag.skeleton() == net.dag.skeleton()


def test_pc_with_lr() -> None:
    rng = np.random.default_rng(4)
    at = np.repeat(np.arange(5), 30)
    a = rng.normal(size=150)
    b = rng.normal(1, 0.2, 5)[at] * a + rng.normal(size=150)
    frame = pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=150), "F": at})
    found = pb.PC(test="lr").pattern(pb.stats(frame, group="F"))
    assert found.test == "lr"
    assert set(found.cpdag.undirected) == {("a", "b"), ("b", "c")}
    assert found.separators["a", "c"] == ("b",)
