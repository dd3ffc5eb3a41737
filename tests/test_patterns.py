"""What rows lack, as bits: against numpy, in batches of any size, with more than 64 columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poolbn as pb
from poolbn.moments import em, patterns
from poolbn.moments.facts import NOTHING
from poolbn.moments.patterns import Gaps, GapsInTheMaking, by_pattern, distinct
from poolbn.tables.missing import Scan, packed, unpacked

WIDTHS = [1, 7, 63, 64, 65, 130]


def cells(rows: int, width: int, share: float, seed: int = 0) -> np.ndarray:
    """Numbers, some of them missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    X[rng.random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_scan_finds_what_numpy_finds(width: int, order: str) -> None:
    X = np.array(cells(300, width, 0.2), order=order)
    missing = np.isnan(X)
    found = Scan.of(list(X.T))
    assert (unpacked(found.words, width) == missing).all()
    assert (found.words == packed(missing)).all()
    assert (found.missing == missing.sum(axis=0)).all()
    assert not found.infinite
    for infinite in (np.inf, -np.inf):
        X[7, -1] = infinite
        assert Scan.of(list(X.T)).infinite


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5])
def test_distinct_patterns_are_those_of_numpy(width: int, share: float) -> None:
    rows = 20_000  # more patterns than the first table has room for
    missing = np.isnan(cells(rows, width, share))
    codes = np.random.default_rng(1).integers(-2, 3, size=rows)
    first, which, counts = distinct(packed(missing), codes)
    table = np.column_stack([codes, missing])
    _, at, inverse, n = np.unique(
        table, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(at)  # numbers are given as patterns come
    assert (first == at[order]).all()
    assert (counts == n[order]).all()
    assert (order[which] == inverse.ravel()).all()


def test_no_rows_have_no_patterns() -> None:
    first, which, counts = distinct(packed(np.zeros((0, 3), dtype=bool)))
    assert len(first) == len(which) == len(counts) == 0


@pytest.mark.parametrize("width", [3, 70])
def test_rows_are_sorted_by_pattern(width: int) -> None:
    X = cells(200, width, 0.02)
    missing = np.isnan(X)
    sums = np.unique(missing, axis=0)[::2]
    order, at, columns, counts, cell, begin = by_pattern(X, sums)
    assert sorted(order) == list(range(200))
    assert sorted(cell[cell >= 0]) == list(range(len(sums)))
    for p, count in enumerate(counts):
        lacks = np.zeros(width, dtype=bool)
        lacks[columns[at[p] : at[p + 1]][:count]] = True
        assert sorted(columns[at[p] : at[p + 1]]) == list(range(width))
        assert (missing[order[begin[p] : begin[p + 1]]] == lacks).all()
        assert cell[p] < 0 or (sums[cell[p]] == lacks).all()


def in_batches(codes: np.ndarray, X: np.ndarray, batch: int) -> tuple[Gaps, tuple]:
    """The rows, so many at a time, and facts of columns."""
    making = GapsInTheMaking.empty(X.shape[1])
    making.sums.facts = [NOTHING] * X.shape[1]
    making.most = 0
    for start in range(0, len(X), batch):
        columns = list(X[start : start + batch].T)
        making.add_rows(codes[start : start + batch], columns, Scan.of(columns).words)
    facts = making.facts()
    gaps = making.made()
    assert making.facts() == facts
    return gaps, facts


@pytest.mark.parametrize("batch", [1, 37, 1000])
@pytest.mark.parametrize("width", [4, 66])
@pytest.mark.parametrize("block", [1000, 30])
def test_sums_are_those_of_the_rows(
    batch: int, width: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many come at a time, and go to their cells at a time."""
    for name, value in {"_HELD": 50, "_FEW": 1, "_BLOCK": block, "_EACH": 1}.items():
        monkeypatch.setattr(patterns, name, value)
    rng = np.random.default_rng(2)
    X, codes = cells(1000, width, 0.0) + 5, rng.integers(3, size=1000)
    X[:400, 1] = X[300:500, 2] = X[990:, 0] = X[995:, width - 1] = np.nan
    shuffled = rng.permutation(1000)
    X, codes = X[shuffled], codes[shuffled]
    gaps, facts = in_batches(codes, X, batch)
    lacks = np.isnan(X)
    assert gaps.n.sum() + len(gaps.rows) == lacks.any(axis=1).sum()
    assert len(gaps.n) >= 3
    for j, missing, n, mean, scatter in zip(*gaps[:5], strict=True):
        rows = X[(codes == j) & (lacks == missing).all(axis=1)]
        there = np.ix_(~missing, ~missing)
        assert n == len(rows)
        np.testing.assert_allclose(mean[~missing], rows.mean(axis=0)[~missing], rtol=1e-12)
        C = rows - mean
        np.testing.assert_allclose(scatter[there], (C.T @ C)[there], rtol=1e-9, atol=1e-9)
        assert (mean[missing] == 0).all()
        assert (scatter[missing] == 0).all()
        assert (scatter[:, missing] == 0).all()
    rare = {(j, *row) for j, row in zip(gaps.rows_of, np.nan_to_num(gaps.rows), strict=True)}
    assert rare <= {(j, *row) for j, row in zip(codes, np.nan_to_num(X), strict=True)}
    assert facts == tuple(NOTHING.after(x[~np.isnan(x)]) for x in X.T)


def test_single_rows_come_in_one_order() -> None:
    """Also where rows have the same sum, and where two are the same."""
    X = cells(60, 12, 0.3)
    X[:30] = np.round(X[:30])
    X[5] = X[6]
    codes = np.arange(60) % 2
    rows, _ = in_batches(codes, X, 60)
    for seed in range(3):
        mixed = np.random.default_rng(seed).permutation(60)
        again, _ = in_batches(codes[mixed], X[mixed], 7)
        np.testing.assert_array_equal(rows.rows, again.rows)
        np.testing.assert_array_equal(rows.rows_of, again.rows_of)


def test_work_is_linear_in_rows_of_rare_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_HELD", 1000)
    seen = []
    numbered = patterns.distinct

    def counted(words: np.ndarray, codes: np.ndarray | None = None) -> tuple:
        seen.append(words.shape[1])
        return numbered(words, codes)

    monkeypatch.setattr(patterns, "distinct", counted)
    gaps, _ = in_batches(np.zeros(8000, dtype=np.int64), cells(8000, 30, 0.5), 100)
    assert len(gaps.rows) == 8000
    assert sum(seen) < 4 * 8000


def test_many_columns() -> None:
    """More than one number has bits for; counts against pandas."""
    table = pd.DataFrame(cells(400, 80, 0.0)).rename(columns="x{}".format)
    table.loc[:99, "x3"] = table.loc[50:200, "x70"] = table.loc[399, "x79"] = np.nan
    table["F"] = np.where(np.arange(400) < 120, "a", "b")
    known = pb.stats(table, group="F", missing="em").patterns
    there = table.drop(columns="F").notna().groupby(table["F"]).sum()
    assert (known.observed == there.loc[list(known.levels)].to_numpy()).all()
    assert {tuple(lack) for lack in known.counts().index} == {
        (), ("x3",), ("x70",), ("x3", "x70"), ("x79",)
    }  # fmt: skip


@given(st.lists(st.sampled_from([np.nan, -99.0, -9.0, 1.0, 2.0, 0.5, np.pi, 1e6]), max_size=60))
def test_facts_skip_missing_cells(values: list[float]) -> None:
    x = np.array(values)
    there = x[~np.isnan(x)]
    assert NOTHING.after(x) == NOTHING.after(there)
    many = NOTHING.after(np.random.default_rng(0).normal(size=50))
    assert many.after(x) == many.after(there)


@pytest.mark.parametrize("share", [0.1, 0.9, 1.0])
@pytest.mark.parametrize("digits", [0, 2, 16])
def test_facts_of_long_columns_skip_missing_cells(share: float, digits: int) -> None:
    x = np.round(cells(30_000, 1, share)[:, 0] * 5, digits)
    x[:9000] = np.nan
    coded = np.where(np.arange(30_000) == 20_000, -99.0, x)
    for column in (x, coded):
        there = column[~np.isnan(column)]
        assert NOTHING.after(column) == NOTHING.after(there)
        assert NOTHING.after(there).after(column) == NOTHING.after(there).after(there)


@pytest.mark.parametrize("df", [0, 1, 3, 4, 9])
def test_wishart_draws_of_few_rows(df: int) -> None:
    """The mean is df I; variances 2 df and, off the diagonal, df; the rank at most df."""
    rng = np.random.default_rng(df)
    A = [em._bartlett(df, 4, rng) for _ in range(4000)]
    W = np.array([a @ a.T for a in A])
    assert (np.linalg.matrix_rank(W[:50]) == min(df, 4)).all()
    error = 5 * np.sqrt(2 * max(df, 1) / 4000)
    np.testing.assert_allclose(W.mean(axis=0), df * np.eye(4), atol=error)
    variance = df * (np.ones((4, 4)) + np.eye(4))
    np.testing.assert_allclose(W.var(axis=0), variance, rtol=0.25)
