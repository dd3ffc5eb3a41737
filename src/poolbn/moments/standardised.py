"""The statistics as the numerics want them: columns in order of name, centred and scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.groupstats import GroupStats


@dataclass(frozen=True, eq=False)
class Standard:
    """Statistics of (x - center) / scale, the columns sorted by name.

    Scores then depend neither on the units nor on where a column is zero, and not by a bit on the
    order of a table's columns.

    Attributes:
        index: the place of each column.
        n: rows, (F,), as floats for the kernels.
        mean: (F, N).
        scatter: within each data set, (F, N, N).
        total: scatter of all rows around the pooled mean, (N, N).
        center: pooled mean, (N,).
        scale: pooled standard deviation (denominator n), 1 for a constant column, (N,).
    """

    index: dict[str, int]
    n: NDArray[np.float64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    total: NDArray[np.float64]
    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    @cached_property
    def log_scale(self) -> NDArray[np.float64]:
        """Logarithms of the scales, (N,)."""
        return np.log(self.scale)

    @cached_property
    def rows(self) -> float:
        """Rows of all data sets."""
        return float(self.n.sum())


_made: WeakKeyDictionary[GroupStats, Standard] = WeakKeyDictionary()


def standardise(stats: GroupStats) -> Standard:
    """Sort, centre and scale the statistics; made once for each `GroupStats`."""
    if stats not in _made:
        _made[stats] = _standardise(stats)
    return _made[stats]


def _standardise(stats: GroupStats) -> Standard:
    order = sorted(range(len(stats.names)), key=stats.names.__getitem__)
    n = stats.n.astype(np.float64)
    mean = stats.mean[:, order]
    # Sums go over data sets in their order, element by element: matrix products would give other
    # bits on another CPU, and other columns beside one could change its own.
    # Around the first data set's mean: a pooled mean of large numbers would lose digits.
    center = mean[0] + np.cumsum(n[:, None] * (mean - mean[0]), axis=0)[-1] / n.sum()
    mean = mean - center
    scatter = np.ascontiguousarray(stats.scatter[:, order][:, :, order])
    squares = np.einsum("jaa->ja", scatter) + n[:, None] * mean**2
    scale = np.sqrt(np.cumsum(squares, axis=0)[-1] / n.sum())
    scale[scale == 0] = 1.0
    mean = np.ascontiguousarray(mean / scale)
    scatter = scatter / np.outer(scale, scale)
    parts = (S + rows * (m[:, None] * m) for S, rows, m in zip(scatter, n, mean, strict=True))
    return Standard(
        index={stats.names[k]: i for i, k in enumerate(order)},
        n=n,
        mean=mean,
        scatter=scatter,
        total=reduce(np.add, parts),
        center=center,
        scale=scale,
    )


# A child and its parents, as places in `Standard.index`.
Family = tuple[int, Sequence[int]]


# Children (M,), offsets (M + 1,) into the parents, and all parents.
Packed = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def pack(families: Sequence[Family]) -> Packed:
    """Families for the kernels, each set of parents sorted."""
    offsets = [0, *accumulate(len(parents) for _, parents in families)]
    return (
        np.array([child for child, _ in families], dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        np.array([p for _, parents in families for p in sorted(parents)], dtype=np.int64),
    )


def counts(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Parents of each packed family, (M,)."""
    return offsets[1:] - offsets[:-1]


def units(
    data: Standard,
    children: NDArray[np.int64],
    offsets: NDArray[np.int64],
    parents: NDArray[np.int64],
    reml: bool,
) -> NDArray[np.float64]:
    """What the units of the data add to deviances of standardised columns, (M,).

    The density of the child; and for REML the determinant of the parents' information.
    """
    if not reml:
        return np.asarray(2 * data.rows * data.log_scale[children])
    sizes = counts(offsets)
    of_parents = np.bincount(
        np.repeat(np.arange(len(children)), sizes), data.log_scale[parents], len(children)
    )
    return np.asarray(2 * (data.rows - 1 - sizes) * data.log_scale[children] + 2 * of_parents)


def to_units(data: Standard, parents: Sequence[int]) -> NDArray[np.float64]:
    """The matrix (q, q) from coefficients on standardised parents to those in their units."""
    q = len(parents) + 1
    T = np.zeros((q, q))
    T[0, 0] = 1.0
    T[0, 1:] = -data.center[list(parents)] / data.scale[list(parents)]
    T[range(1, q), range(1, q)] = 1.0 / data.scale[list(parents)]
    return T
