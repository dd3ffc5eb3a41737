"""Independence tests: against definitions, scipy and laws."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from helpers import callable_kernel
from scipy import integrate, optimize
from scipy import stats as distributions

import poolbn as pb
from poolbn.kernels import tails
from poolbn.moments.standardised import standardise
from poolbn.scoring import combined
from poolbn.scoring.separating import AskedTests, Between, GaussianTests

TESTS = ("t", "z", "mi-g", "f", "combined")


def rows(seed: int = 1, sizes: tuple[int, ...] = (12, 30, 9, 55)) -> pd.DataFrame:
    """Five columns that depend on each other, differently in each data set."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    mix = np.eye(5) + rng.normal(0, 0.4, (5, 5)) + rng.normal(0, 0.3, (len(sizes), 5, 5))
    X = np.einsum("nij,nj->ni", mix[codes], rng.normal(size=(len(codes), 5)))
    X *= rng.uniform(0.5, 2, (len(sizes), 5))[codes]
    frame = pd.DataFrame(X + rng.normal(size=(len(sizes), 5))[codes], columns=list("abcde"))
    return frame.assign(F=[f"set {j}" for j in codes])


def residuals(frame: pd.DataFrame, column: str, given: list[str]) -> np.ndarray:
    Z = np.column_stack([np.ones(len(frame)), frame[given].to_numpy()])
    y = frame[column].to_numpy()
    return y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]


def correlations(frame: pd.DataFrame, x: str, y: str, given: list[str]) -> tuple:
    """Partial correlations of data sets, their degrees of freedom, residual squares of x and y."""
    found = []
    for _, part in frame.groupby("F", sort=False):
        a, b = residuals(part, x, given), residuals(part, y, given)
        r = a @ b / math.sqrt((a @ a) * (b @ b))
        found.append((r, len(part) - len(given) - 2, a @ a, b @ b))
    return tuple(np.array(column, dtype=float) for column in zip(*found, strict=True))


GIVEN = [list(S) for k in range(4) for S in combinations("cde", k)]


@pytest.mark.parametrize("given", GIVEN, ids="".join)
def test_combined_by_its_definition(given: list[str]) -> None:
    frame = rows()
    r, d, _, _ = correlations(frame, "a", "b", given)
    # Exact normal scores; the test has Wallace's, which are close.
    t = r * np.sqrt(d / (1 - r**2))
    exact = np.sign(t) * -distributions.norm.ppf(distributions.t.sf(np.abs(t), d))
    z = np.sign(r) * (8 * d + 1) / (8 * d + 3) * np.sqrt(-d * np.log(1 - r**2))
    assert z == pytest.approx(exact, abs=0.02)

    def deviance(at: np.ndarray) -> float:
        variance = 1 + d * at[1] ** 2
        return float(((z - at[0] * np.sqrt(d)) ** 2 / variance + np.log(variance)).sum())

    starts = [(0.0, tau) for tau in (0.01, 0.1, 0.5, 2.0)]
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    least = min(
        optimize.minimize(deviance, start, method="Nelder-Mead", options=options).fun
        for start in starts
    )
    found = pb.ci_test(pb.stats(frame, group="F"), "a", "b", given)
    assert found.test == "combined"
    assert found.statistic == pytest.approx((z**2).sum() - least, abs=1e-7)
    assert found.df == pytest.approx(d.sum() ** 2 / (d**2).sum())
    assert found.correlation == pytest.approx((d * r).sum() / d.sum())
    assert found.p_value == pytest.approx(tail(found.statistic, found.df), rel=1e-8)


def tail(t: float, F: float) -> float:
    """P(T > t) by adaptive quadrature over the chi-square of the spread."""

    def g(s: float) -> float:
        return s - F - F * math.log(s / F) if s > F else 0.0

    top = optimize.brentq(lambda s: g(s) - t, F, F + 2 * t + 10 * math.sqrt(t * F) + 10)
    spread, mean = distributions.chi2(F - 1), distributions.chi2(1)
    inside = integrate.quad(
        lambda s: spread.pdf(s) * mean.sf(t - g(s)), F, top, epsabs=1e-13, epsrel=1e-11, limit=500
    )[0]
    return spread.cdf(F) * mean.sf(t) + inside + spread.sf(top)


@pytest.mark.parametrize("F", [1.05, 2, 3.7, 10, 200])
def test_the_null_distribution(F: float) -> None:
    for t in (0.01, 1.0, 4.0, 10.0, 29.9, 30.1, 60.0):
        assert math.exp(combined.log_p(t, F)) == pytest.approx(tail(t, F), rel=1e-9, abs=1e-15)


def test_the_null_distribution_at_its_ends() -> None:
    t = np.array([0.5, 4.0, 40.0])
    assert np.exp(combined.log_p(t, 1)) == pytest.approx(distributions.chi2.sf(t, 1))
    mixture = (distributions.chi2.sf(t, 1) + distributions.chi2.sf(t, 2)) / 2
    assert np.exp(combined.log_p(t, np.inf)) == pytest.approx(mixture)


def test_the_null_distribution_by_simulation() -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(size=(100_000, 4))
    around = ((z - z.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    T = 4 * z.mean(axis=1) ** 2 + np.where(around > 4, around - 4 - 4 * np.log(around / 4), 0)
    for t in (0.5, 4.0, 7.0):
        p = math.exp(combined.log_p(t, 4))
        assert abs((t < T).mean() - p) < 4 * math.sqrt(p * (1 - p) / len(T))


def test_the_table_of_kernels() -> None:
    rng = np.random.default_rng(2)
    work, table = np.empty(8), combined.table()
    F, t = 1 + rng.exponential(10, 300), rng.uniform(0, 8, 300) ** 2
    log_combined = callable_kernel(tails.log_combined)
    found = [log_combined(*at, table, work) for at in zip(t, F, strict=True)]
    assert found == pytest.approx(combined.log_p(t, F), abs=2e-5)


def test_tails() -> None:
    rng = np.random.default_rng(3)
    log_beta_tail = callable_kernel(tails.log_beta_tail)
    log_two_sided = callable_kernel(tails.log_two_sided)
    for a, b, x in zip(
        rng.exponential(50, 300) + 0.5,
        rng.choice([0.5, 1, 5, 20], 300),
        rng.random(300) ** 0.2,
        strict=True,
    ):
        reference = distributions.beta.logcdf(x, a, b)
        assert log_beta_tail(x, 1 - x, a, b) == pytest.approx(reference, rel=1e-9, abs=1e-11)
    for z in (0.0, 0.1, 3.0, 20.0, 28.2, 28.4, 60.0):
        reference = math.log(2) + distributions.norm.logsf(z)
        assert log_two_sided(z) == pytest.approx(reference, rel=1e-12)


@pytest.mark.parametrize("given", GIVEN, ids="".join)
def test_stratified_f_by_its_definition(given: list[str]) -> None:
    frame = rows(2)
    r, d, of_x, of_y = correlations(frame, "a", "b", given)
    s = np.sqrt(of_x * of_y)
    value = ((s * r**2).sum() / len(s)) / ((s * (1 - r**2)).sum() / d.sum())
    found = pb.ci_test(pb.stats(frame, group="F"), "a", "b", given, pooling="none")
    assert (found.test, found.df, found.df2) == ("f", len(r), d.sum())
    assert found.statistic == pytest.approx(value)
    assert found.p_value == pytest.approx(distributions.f.sf(value, len(r), d.sum()))


def test_complete_pooling_by_regression() -> None:
    frame = rows(3)
    a, b = residuals(frame, "a", ["c", "d"]), residuals(frame, "b", ["c", "d"])
    stats = pb.stats(frame, group="F")
    found = pb.ci_test(stats, "a", "b", ["c", "d"], pooling="complete")
    r = distributions.pearsonr(a, b).statistic
    assert found.correlation == pytest.approx(r)
    assert found.df == len(frame) - 4
    assert found.p_value == pytest.approx(
        2 * distributions.t.sf(abs(found.statistic), len(frame) - 4)
    )
    assert found.statistic == pytest.approx(r * math.sqrt(found.df / (1 - r**2)))


def test_auto_follows_the_pooling() -> None:
    stats = pb.stats(rows(), group="F")
    poolings = {"complete": "t", "none": "f", "partial": "combined", "auto": "combined"}
    for pooling, test in poolings.items():
        assert pb.ci_test(stats, "a", "b", pooling=pooling).test == test
    assert pb.ci_test(stats, "a", "b", pooling=pb.Partial(residuals="pooled")).test == "combined"
    assert pb.ci_test(stats, "a", "b", test="z").test == "z"


@pytest.mark.parametrize("test", TESTS)
def test_laws(test: str) -> None:
    """Exchanging x and y, order of rows, columns, data sets and conditions, shift and scale."""
    frame = rows(4)
    stats = pb.stats(frame, group="F")
    found = pb.ci_test(stats, "a", "b", ["c", "d", "e"], test=test)
    others = {
        "exchanged": pb.ci_test(stats, "b", "a", ["c", "d", "e"], test=test),
        "conditions": pb.ci_test(stats, "a", "b", ["e", "c", "d"], test=test),
        "columns": pb.ci_test(stats.select(list("edcba")), "a", "b", ["c", "d", "e"], test=test),
    }
    shuffled = frame.sample(frac=1, random_state=1)
    moved = frame.assign(a=frame["a"] * -300 + 1e4, d=frame["d"] * 1e-3 - 7)
    for name, other in (("rows", shuffled), ("units", moved)):
        others[name] = pb.ci_test(pb.stats(other, group="F"), "a", "b", list("cde"), test=test)
    for name, other in others.items():
        sign = -1 if name == "units" and test in ("t", "z") else 1
        assert other.statistic == pytest.approx(sign * found.statistic, rel=1e-7), name
        assert other.p_value == pytest.approx(found.p_value, rel=1e-7), name
        assert other.df == pytest.approx(found.df), name


def test_shifts_of_data_sets_do_not_matter() -> None:
    """With partial and no pooling each data set has intercepts of its own."""
    frame = rows(5)
    shift = frame["F"].map({"set 0": 0.0, "set 1": 100.0, "set 2": -3.0, "set 3": 50.0})
    for test in ("f", "combined"):
        found = [
            pb.ci_test(pb.stats(table, group="F"), "a", "b", ["c"], test=test).p_value
            for table in (frame, frame.assign(b=frame["b"] + shift, c=frame["c"] - shift))
        ]
        assert found[0] == pytest.approx(found[1], rel=1e-8)


def test_one_data_set_is_a_t_test() -> None:
    frame = rows(6, sizes=(40,))
    stats = pb.stats(frame, group="F")
    exact = pb.ci_test(stats, "a", "b", ["c"], test="t").p_value
    assert pb.ci_test(stats, "a", "b", ["c"], test="f").p_value == pytest.approx(exact)
    assert pb.ci_test(stats, "a", "b", ["c"], test="combined").p_value == pytest.approx(
        exact, rel=0.01
    )


@pytest.mark.parametrize("test", TESTS)
def test_a_copy_among_the_conditions_changes_nothing(test: str) -> None:
    frame = rows(7).assign(copy=lambda x: 2 * x["c"] - x["d"] + 5)
    stats = pb.stats(frame, group="F")
    with_copy = pb.ci_test(stats, "a", "b", ["c", "d", "copy"], test=test)
    without = pb.ci_test(stats, "a", "b", ["c", "d"], test=test)
    assert with_copy.p_value == pytest.approx(without.p_value, rel=1e-6)
    assert with_copy.df == pytest.approx(without.df)


def test_data_sets_that_do_not_count_are_left_out_and_named() -> None:
    frame = rows(8, sizes=(20, 20, 20, 5))
    frame.loc[frame["F"] == "set 1", "a"] = 3.0  # constant
    frame.loc[frame["F"] == "set 2", "c"] = 7.0  # nothing to condition on there
    stats = pb.stats(frame, group="F")
    found = pb.ci_test(stats, "a", "b", ["c", "d"])
    assert found.left_out == ("set 1", "set 3")
    assert (found.data_sets, found.n) == (("set 0", "set 2"), 40)
    kept = frame[frame["F"].isin(["set 0", "set 2"])]
    assert found.p_value == pytest.approx(
        pb.ci_test(pb.stats(kept, group="F"), "a", "b", ["c", "d"]).p_value
    )
    assert "left out: set 1 and set 3" in repr(found)


def test_an_exact_relation() -> None:
    frame = rows(9).assign(b=lambda x: 3 * x["a"] + 1)
    stats = pb.stats(frame, group="F")
    for test in TESTS:
        assert pb.ci_test(stats, "a", "b", test=test).p_value < 1e-100
    with pytest.raises(pb.DataError, match="nothing to test 'b' and 'c'"):
        pb.ci_test(stats, "b", "c", ["a"])


def test_columns_of_a_table() -> None:
    frame = rows(10).assign(sex=lambda x: np.where(x["a"] > 0, "f", "m"))
    table = pb.table(frame, group="F")
    found = pb.ci_test(table, "a", "b", ["c"])
    assert found.p_value == pytest.approx(
        pb.ci_test(pb.stats(frame.drop(columns="sex"), group="F"), "a", "b", ["c"]).p_value
    )


def wishart(rng: np.random.Generator, sizes: np.ndarray, k: int, count: int) -> list[pb.GroupStats]:
    """Statistics of unrelated columns a, b and k others."""
    names = ("a", "b", *(f"s{i}" for i in range(k)))
    made = []
    for _ in range(count):
        rows = [rng.normal(size=(n - 1, k + 2)) for n in sizes]
        scatter = np.array([X.T @ X for X in rows])
        mean, dropped = np.zeros((len(sizes), k + 2)), np.zeros(len(sizes), dtype=np.int64)
        levels = tuple(range(len(sizes)))
        made.append(pb.GroupStats(names, levels, sizes.copy(), mean, scatter, dropped))
    return made


@pytest.mark.parametrize("sizes", [(10, 10, 10), (8, 12, 20, 40, 80), (15,) * 12], ids=len)
def test_size(sizes: tuple[int, ...]) -> None:
    """A coarse look; `benchmarks/independence.py` has all cells with 10,000 draws each."""
    rng = np.random.default_rng(11)
    made = wishart(rng, np.array(sizes), 2, 500)
    for test in ("f", "combined"):
        p = [
            math.exp(GaussianTests.on(standardise(stats), test).one(0, 1, (2, 3))[0][3])
            for stats in made
        ]
        assert abs(np.mean(np.array(p) < 0.1) - 0.1) < 0.045


@pytest.mark.parametrize("test", TESTS)
def test_compiled_searches_are_those_in_python(test: str) -> None:
    """Levels, votes, candidates and tests given parents, one test at a time and all at once."""
    frame = pd.concat([rows(12), rows(13).drop(columns="F").add_suffix("2")], axis=1)
    stats = pb.stats(frame, group="F")
    own = GaussianTests.on(standardise(stats), test)
    other = AskedTests(test, lambda x, y, S: float(own.one(x, y, S)[0][3]))
    N, alpha = len(stats.names), math.log(0.05)
    rng = np.random.default_rng(1)
    joined = np.triu(rng.random((N, N)) < 0.6, 1)
    joined |= joined.T
    neighbours = [np.flatnonzero(joined[x]) for x in range(N)]
    pairs = np.array(list(combinations(range(N), 2)))
    for k in range(4):
        ours, theirs = (tests.level(pairs, neighbours, k, alpha) for tests in (own, other))
        assert (ours.found == theirs.found).all()
        assert (ours.sets[ours.found] == theirs.sets[ours.found]).all()
        assert ours.log_p == pytest.approx(theirs.log_p, abs=1e-4)
        assert (ours.tests >= theirs.tests).all()
    centres = [np.flatnonzero(joined[x] & joined[y]) for x, y in pairs]
    sizes = rng.integers(0, 4, len(pairs))
    asked = Between(pairs, centres, neighbours, sizes)
    ours, theirs = (tests.votes(asked, alpha) for tests in (own, other))
    assert (ours.separating == theirs.separating).all()
    assert (ours.hits == theirs.hits).all()
    may = ~np.eye(N, dtype=bool)
    must = np.zeros((N, N), dtype=bool)
    must[0, 9] = must[9, 0] = True
    ours, theirs = (tests.max_min(may, must, 3, alpha) for tests in (own, other))
    assert (ours.joined == theirs.joined).all()
    arcs = np.triu(rng.random((N, N)) < 0.3, 1)
    found, again = (tests.dependent(may & ~arcs, arcs, alpha) for tests in (own, other))
    assert (found == again).all()
    assert found.any()
