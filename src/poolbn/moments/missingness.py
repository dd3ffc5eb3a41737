"""What missing values depend on: the data set, and the other columns; and which rows lack what."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.moments.completing import Observed
from poolbn.moments.patterns import Gaps, distinct
from poolbn.tables.missing import packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_FEWEST = 10  # rows of a data set that the tests use


class Patterns(NamedTuple):
    """Which columns rows lack, (P, N), and how many in each data set do, (P, F); most rows first.

    Rows without gaps are the pattern that lacks nothing.
    """

    missing: NDArray[np.bool_]
    rows: NDArray[np.int64]


def tallied(gaps: Gaps, known: NDArray[np.int64]) -> Patterns:
    """Of rows with missing cells, and of those without in each data set."""
    F, N = len(known), gaps.rows.shape[1]
    masks = np.concatenate([np.zeros((F, N), dtype=bool), gaps.missing, np.isnan(gaps.rows)])
    codes = np.concatenate([np.arange(F), gaps.data_set, gaps.rows_of])
    n = np.concatenate([known, gaps.n, np.ones(len(gaps.rows), dtype=np.int64)])
    first, which, _ = distinct(packed(masks))
    rows = np.zeros((len(first), F), dtype=np.int64)
    np.add.at(rows, (which, codes), n)
    order = np.lexsort((*masks[first].T[::-1], -rows.sum(axis=1)))
    order = order[rows[order].any(axis=1)]
    return Patterns(masks[first][order], rows[order])


class Dependence(NamedTuple):
    """A test of whether values of a column are missing by chance.

    Attributes:
        column: with missing values.
        on: the column that its rows differ in; None for the data set.
        difference: of that column between rows that lack the first and others of the same data set,
            in SDs; for the data set the largest difference between shares of missing values.
        statistic: Student's t; for the data set Pearson's chi-squared.
        p_value: small if there is more than chance.
    """

    column: int
    on: int | None
    difference: float
    statistic: float
    p_value: float


def dependences(gaps: Gaps, known: NDArray[np.int64], seen: Observed) -> list[Dependence]:
    """Tests of each column with missing values against the data set, and each other column.

    Args:
        gaps: rows with missing cells.
        known: the number of others in each data set, (F,).
        seen: what is there of all.
    """
    n = known + gaps.n_rows(len(known))
    found = _on_data_sets(n, seen.n)
    for c, k, difference, t, p in _on_columns(gaps, seen):
        found.append(Dependence(c, k, difference, t, p))
    return sorted(found, key=lambda each: (each.column, each.on is not None))


def _on_data_sets(n: NDArray[np.int64], there: Floats) -> list[Dependence]:
    from scipy.special import chdtrc

    found = []
    for c in range(there.shape[1]):
        at = there[:, c] > 0  # a column that a data set never measured is not missing by chance
        size, share = n[at], 1 - there[at, c] / n[at]
        whole = float(share @ size / size.sum())
        if at.sum() < 2 or whole == 0:
            continue
        value = float((size * (share - whole) ** 2).sum() / (whole * (1 - whole)))
        p = float(chdtrc(at.sum() - 1, value))
        found.append(Dependence(c, None, float(np.ptp(share)), value, p))
    return found


def _on_columns(gaps: Gaps, seen: Observed) -> list[tuple[int, int, float, float, float]]:
    """Student's t of a difference that all data sets share, after each column's scale in each."""
    from scipy.special import stdtr

    F, N = seen.n.shape
    shape = F, N, N
    count, total, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)  # where c is missing
    for j in range(F):
        at, row = gaps.data_set == j, gaps.rows_of == j
        lacks, rows = gaps.missing[at].astype(float), gaps.rows[row]
        weight = gaps.n[at, None] * ~gaps.missing[at]
        away = np.where(gaps.missing[at], 0.0, gaps.mean[at] - seen.mean[j])
        within = np.einsum("cii->ci", gaps.scatter[at])
        absent = np.isnan(rows)
        apart = np.where(absent, 0.0, rows - seen.mean[j])
        none = absent.astype(float)
        count[j] = lacks.T @ weight + none.T @ (1 - none)
        total[j] = lacks.T @ (weight * away) + none.T @ apart
        squares[j] = lacks.T @ (within + weight * away**2) + none.T @ apart**2
    n = seen.n[:, None, :]
    rest = n - count
    used = (count > 0) & (rest > 0) & (n >= _FEWEST) & (seen.squares > 0)[:, None, :]
    one, other = np.where(used, count, 1.0), np.where(used, rest, 1.0)
    gap = np.where(used, total / one + total / other, 0.0)  # the rest adds up to minus as much
    inside = seen.squares[:, None, :] - one * other / (one + other) * gap**2
    scale = np.sqrt(np.where(used, seen.squares[:, None, :] / n.clip(1), 1.0))
    weight = np.where(used, one * other / (one + other), 0.0)
    gap /= scale
    spread = np.where(used, inside / scale**2, 0.0).sum(axis=0)
    size = weight.sum(axis=0)
    shift = (weight * gap).sum(axis=0) / size.clip(1e-300)
    spread += (weight * (gap - shift) ** 2).sum(axis=0)
    df = np.where(used, n, 0).sum(axis=0) - used.sum(axis=0) - 1
    found = []
    for c, k in np.argwhere((size > 0) & (df > 0) & (spread > 0)):
        t = float(shift[c, k] * np.sqrt(size[c, k] * df[c, k] / spread[c, k]))
        p = float(2 * stdtr(df[c, k], -abs(t)))
        found.append((int(c), int(k), float(shift[c, k]), t, p))
    return found
