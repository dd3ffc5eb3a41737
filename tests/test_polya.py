"""Tables of discrete nodes: against R, scipy, closed forms and laws."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, xlogy

from poolbn.moments.indicators import Cells, tabulate
from poolbn.nodes import polya

FAMILIES = reference("polya/cases.json")
NETWORKS = reference("scores/discrete.json")
TABLES = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(2, 4)).flatmap(
    lambda shape: hnp.arrays(np.int64, shape, elements=st.integers(0, 60), fill=st.just(0))
)


def coded(rows: pd.DataFrame) -> tuple[np.ndarray, list[int]]:
    """Codes of each column, levels in alphabetical order, and how many levels it has."""
    columns = [rows[name].astype("category").cat for name in rows]
    codes = np.column_stack([column.codes.astype(np.int64) for column in columns])
    return codes, [len(column.categories) for column in columns]


def counts_of(case: dict) -> np.ndarray:
    rows = pd.read_csv(REFERENCE / "polya" / case["data"], dtype=str)
    codes, sizes = coded(rows[["F", *case["parents"], case["response"]]])
    return tabulate(codes.T[1:], sizes[1:], codes[:, 0], sizes[0])


def loglik(counts: np.ndarray, m: np.ndarray, s: float) -> float:
    """The density as it is written, for 0 < s < inf."""
    n = counts.sum(axis=2)
    seen = counts > 0
    a = np.where(seen, s * m, 1.0)
    return float(
        (gammaln(s) - gammaln(s + n)).sum()
        + np.where(seen, gammaln(a + counts) - gammaln(a), 0).sum()
    )


def table(*rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


def drawn(rng: np.random.Generator, F: int, C: int, K: int, s: float, rows: float) -> np.ndarray:
    """Counts of tables around a common one."""
    base = np.maximum(rng.dirichlet(np.ones(K), C), 1e-3)
    tables = [[rng.dirichlet(s * m) for m in base] for _ in range(F)]
    return np.array([[rng.multinomial(rng.poisson(rows), p) for p in each] for each in tables])


@pytest.mark.parametrize("case", FAMILIES, ids=lambda case: case["id"])
def test_reference_families(case: dict) -> None:
    counts = counts_of(case)
    assert counts.shape == (case["groups"], case["configurations"], case["levels"])
    fit = polya.partial(counts)
    assert fit.loglik == pytest.approx(case["logLik"], abs=1e-5)
    assert fit.loglik > case["logLik"] - 1e-9
    if case["glmmTMB"] is not None:
        assert fit.loglik == pytest.approx(case["glmmTMB"], abs=1e-6)
    assert fit.s == pytest.approx(case["s"], rel=1e-4)
    assert fit.n_params == case["n_params"]
    assert polya.complete(counts).loglik == pytest.approx(case["complete_pooling"], rel=1e-10)


@pytest.mark.parametrize("case", NETWORKS, ids=lambda case: case["net"])
def test_discrete_scores_are_those_of_bnlearn(case: dict) -> None:
    rows = pd.read_csv(REFERENCE / "scores" / case["data"])
    codes, sizes = coded(rows)
    names = list(rows)
    cells = Cells.of(np.zeros(len(rows), dtype=np.int64), codes, sizes)
    families = []
    for node in names:
        parents = [names.index(a) for a, b in case["arcs"] if b == node]
        families.append(cells.counts(names.index(node), parents, sizes, data_sets=1))
    logliks = polya.complete_logliks(families)
    params = np.array([polya.complete_params(counts) for counts in families])
    found = {
        "loglik": logliks,
        "aic": logliks - params,
        "bic": logliks - params * np.log(len(rows)) / 2,
        "bde": polya.bdeu(families),
        "bde;iss=1": polya.bdeu(families, iss=1),
        "bde;iss=10": polya.bdeu(families, iss=10),
        "k2": polya.k2(families),
    }
    assert params.sum() == case["nparams"]
    for kind, scores in found.items():
        theirs = [case["scores"][kind][node] for node in names]
        np.testing.assert_allclose(scores, theirs, rtol=1e-8, err_msg=kind)


def maximum(counts: np.ndarray) -> float:
    """By a generic optimiser, from several starts; or complete pooling, if that is better."""
    total, n = counts.sum(axis=0), counts.sum(axis=2)
    C, K = total.shape
    seen = counts > 0

    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        s = float(np.exp(theta[0]))
        m = np.exp(theta[1:].reshape(C, K)) * (total > 0)
        m /= np.maximum(m.sum(axis=1, keepdims=True), 1e-9)
        a = np.where(seen, s * m, 1.0)
        slope = np.where(seen, digamma(a + counts) - digamma(a), 0).sum(axis=0)  # in s m
        in_s = s * ((m * slope).sum() + (digamma(s) - digamma(s + n)).sum())
        in_eta = s * m * (slope - (m * slope).sum(axis=1, keepdims=True))
        return -loglik(counts, m, s), -np.concatenate([[in_s], in_eta.ravel()])

    eta = np.log(np.maximum(total, 1) / np.maximum(total.sum(axis=1, keepdims=True), 1)).ravel()
    tries = [
        minimize(
            negative,
            np.concatenate([[log_s], eta]),
            jac=True,
            bounds=[(-12, 14)] + [(-20, 5)] * len(eta),
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 2000},
        ).fun
        for log_s in (-2.0, 1.0, 4.0, 7.0)
    ]
    return max(-min(tries), polya.complete(counts).loglik)


@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(k, marks=pytest.mark.slow) for k in range(20, 50))]
)
def test_no_generic_optimiser_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    F, C, K = rng.integers(2, 6), rng.integers(1, 4), rng.integers(2, 4)
    s, rows = 10 ** rng.uniform(-0.5, 2), 10 ** rng.uniform(0.3, 2)
    counts = drawn(rng, F, C, K, s, rows)
    fit = polya.partial(counts)
    best = maximum(counts)
    assert fit.loglik > best - 1e-6
    if fit.limit is polya.Limit.INSIDE:
        assert fit.loglik == pytest.approx(loglik(counts, fit.base, fit.s), abs=1e-8)
        assert fit.loglik == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("rows", [3, 31, 32, 33, 34, 100, 10**4, 10**7])
@pytest.mark.parametrize("s", [0.1, 3.0, 1e3])
def test_the_value_is_the_density_for_small_and_large_counts(rows: int, s: float) -> None:
    counts = drawn(np.random.default_rng(rows), 8, 2, 3, s, rows)
    fit = polya.partial(counts)
    if fit.limit is polya.Limit.INSIDE:
        exact = loglik(counts, fit.base, fit.s)
        assert fit.loglik == pytest.approx(exact, rel=1e-12, abs=1e-9)
        for factor in (0.99, 1.01):
            assert loglik(counts, fit.base, fit.s * factor) < exact + 1e-12 * abs(exact)


TWO_MAXIMA = [
    [[[0, 5], [608, 254]], [[4, 0], [672, 165]], [[3, 0], [653, 187]], [[0, 5], [531, 316]],
     [[4, 0], [530, 308]]],
    [[[323, 9482], [1, 0]], [[0, 9678], [1, 0]], [[125, 9831], [0, 4]]],
    [[[2788, 1501], [164, 0], [5, 41]], [[2846, 1380], [127, 8], [5, 35]]],
]  # fmt: skip


@pytest.mark.parametrize("counts", TWO_MAXIMA)
def test_two_maxima(counts: list) -> None:
    """A configuration with small data sets that differ, and one with large ones that hardly do."""
    found = polya.partial(table(*counts))
    assert found.limit is polya.Limit.INSIDE
    assert found.loglik == pytest.approx(maximum(table(*counts)), abs=1e-6)


def test_one_data_set() -> None:
    fit = polya.partial(table([[5, 1], [2, 7]]))
    assert fit.limit is polya.Limit.COMPLETE
    np.testing.assert_allclose(fit.tables, [[[5 / 6, 1 / 6], [2 / 9, 7 / 9]]])
    assert fit.loglik == pytest.approx(polya.none(table([[5, 1], [2, 7]])).loglik)


def test_equal_tables_are_pooled() -> None:
    counts = np.repeat(table([[5, 1, 3], [2, 7, 1]]), 6, axis=0)
    fit = polya.partial(counts)
    assert fit.s == np.inf
    assert fit.loglik == pytest.approx(polya.complete(counts).loglik, rel=1e-14)
    np.testing.assert_allclose(fit.tables, polya.complete(counts).tables)


def test_data_sets_that_have_one_level_each() -> None:
    counts = table([[4, 0], [0, 3]], [[9, 0], [0, 2]], [[0, 5], [1, 0]])
    fit = polya.partial(counts)
    assert fit.limit is polya.Limit.NONE
    assert fit.loglik == pytest.approx(2 * (2 * np.log(2 / 3) + np.log(1 / 3)))
    assert fit.loglik > loglik(counts, fit.base, 1e-3)
    assert fit.loglik == pytest.approx(loglik(counts, fit.base, 1e-9), abs=1e-6)
    np.testing.assert_array_equal(fit.tables, (counts > 0).astype(float))


def test_single_rows_say_nothing_of_the_concentration() -> None:
    counts = table([[1, 0]], [[0, 1]], [[0, 1]])
    fit = polya.partial(counts)
    assert fit.limit is polya.Limit.COMPLETE
    assert fit.loglik == pytest.approx(polya.complete(counts).loglik)


def test_nearly_one_level_each() -> None:
    """The concentration is small, not 0."""
    counts = np.zeros((200, 1, 2), dtype=np.int64)
    counts[:100, 0, 0] = counts[100:, 0, 1] = 50
    counts[0, 0] = 49, 1
    fit = polya.partial(counts)
    assert 0 < fit.s < 0.01
    assert fit.loglik > maximum(counts) - 1e-6


def test_a_level_that_is_never_seen() -> None:
    counts = table([[5, 0, 1]], [[2, 0, 6]], [[9, 0, 1]])
    fit, without = polya.partial(counts), polya.partial(counts[:, :, [0, 2]])
    assert fit.loglik == pytest.approx(without.loglik, rel=1e-14)
    assert fit.n_params == without.n_params + 1
    np.testing.assert_array_equal(fit.tables[:, :, 1], 0)
    np.testing.assert_allclose(fit.tables[:, :, [0, 2]], without.tables)


def test_a_configuration_that_is_never_seen() -> None:
    counts = table([[8, 1], [0, 0], [4, 4]], [[2, 7], [0, 0], [0, 0]])
    for fit in (polya.complete, polya.partial, polya.none):
        found, without = fit(counts), fit(counts[:, [0, 2]])
        assert found.loglik == pytest.approx(without.loglik, rel=1e-14)
        assert found.n_params > without.n_params
        np.testing.assert_allclose(found.tables[:, [0, 2]], without.tables)
        np.testing.assert_allclose(found.tables[1, 2], found.base[2])  # never seen in this one
    pooled = [14 / 26, 12 / 26]
    for fit in (polya.complete, polya.none):
        np.testing.assert_allclose(fit(counts).tables[:, 1], [pooled, pooled])
    marginal = polya.partial(counts.sum(axis=1, keepdims=True)).base[0]
    np.testing.assert_allclose(polya.partial(counts).tables[:, 1], [marginal, marginal])
    np.testing.assert_allclose(polya.none(counts).tables[1, 2], [0.5, 0.5])


def test_no_rows() -> None:
    counts = np.zeros((2, 3, 4), dtype=np.int64)
    for fit in (polya.complete, polya.partial, polya.none):
        assert fit(counts).loglik == 0
        np.testing.assert_array_equal(fit(counts).tables, 0.25)
    assert polya.partial_logliks([]).shape == (0,)


@given(TABLES)
def test_laws(counts: np.ndarray) -> None:
    complete, part, none = polya.complete(counts), polya.partial(counts), polya.none(counts)
    small = 1e-10 * (1 - complete.loglik)
    assert complete.loglik <= part.loglik + small
    assert part.loglik <= none.loglik + small
    assert complete.n_params + 1 == part.n_params
    for fit in (complete, part, none):
        assert np.isfinite(fit.tables).all()
        assert (fit.tables >= 0).all()
        np.testing.assert_allclose(fit.tables.sum(axis=2), 1, rtol=1e-12)
        np.testing.assert_allclose(fit.base.sum(axis=1), 1, rtol=1e-12)


@given(TABLES, st.randoms(use_true_random=False))
def test_orders_do_not_matter(counts: np.ndarray, random: object) -> None:
    order = [random.sample(range(size), size) for size in counts.shape]
    one, other = polya.partial(counts), polya.partial(counts[np.ix_(*order)])
    assert other.loglik == pytest.approx(one.loglik, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(other.tables, one.tables[np.ix_(*order)], atol=1e-5)


@given(st.lists(TABLES, max_size=6))
def test_many_at_once_are_each_by_itself(families: list[np.ndarray]) -> None:
    for batch in (polya.complete_logliks, polya.none_logliks, polya.partial_logliks, polya.bdeu):
        alone = [batch([counts])[0] for counts in families]
        np.testing.assert_array_equal(batch(families), alone)


def test_closed_forms() -> None:
    counts = drawn(np.random.default_rng(1), 3, 4, 3, 2.0, 5)
    total = counts.sum(axis=0)
    complete = xlogy(total, total).sum() - xlogy(total.sum(axis=1), total.sum(axis=1)).sum()
    rows = counts.sum(axis=2)
    none = xlogy(counts, counts).sum() - xlogy(rows, rows).sum()
    assert polya.complete_logliks([counts])[0] == pytest.approx(complete)
    assert polya.none_logliks([counts])[0] == pytest.approx(none)
    # BDeu is a Dirichlet-multinomial with uniform m and one data set.
    assert polya.bdeu([counts], iss=4 * 3)[0] == pytest.approx(
        loglik(total[None], np.full((4, 3), 1 / 3), 3.0)
    )
    assert polya.k2([counts])[0] == pytest.approx(polya.bdeu([counts], iss=12)[0])


def test_counts_are_the_same_from_rows_and_cells() -> None:
    rng = np.random.default_rng(0)
    sizes = [2, 3, 4, 2]
    codes = np.column_stack([rng.integers(0, size, 500) for size in sizes])
    data_set = rng.integers(0, 5, 500)
    cells = Cells.of(data_set, codes, sizes)
    assert cells.n.sum() == 500
    assert len(cells.n) < 5 * np.prod(sizes)
    parts = [Cells.of(data_set[at], codes[at], sizes) for at in (slice(200), slice(200, 500))]
    for ours, theirs in zip(parts[0].together(parts[1], sizes), cells, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    counts = cells.counts(1, [3, 0], sizes, data_sets=5)
    np.testing.assert_array_equal(
        counts, tabulate(codes.T[[3, 0, 1]], [2, 2, 3], data_set, data_sets=5)
    )
    for f, (a, b), x in product(range(5), product(range(2), range(2)), range(3)):
        there = (data_set == f) & (codes[:, 3] == a) & (codes[:, 0] == b) & (codes[:, 1] == x)
        assert counts[f, 2 * a + b, x] == there.sum()


def test_cells_of_more_configurations_than_there_are_numbers() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(0, 9, (20, 40)), 3, axis=0)
    data_set = np.zeros(60, dtype=np.int64)
    cells = Cells.of(data_set, codes, [9] * 40)
    np.testing.assert_array_equal(cells.n, 3)
    np.testing.assert_array_equal(
        cells.counts(7, [3], [9] * 40, data_sets=1),
        tabulate(codes.T[[3, 7]], [9, 9], data_set, data_sets=1),
    )
