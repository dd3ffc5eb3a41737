"""The sufficient statistics as the numerics want them: columns centred and scaled.

Columns keep the positions that they have in the statistics; that is the one numbering, from here to
the kernels. Only inside a family parents have an order of their own, by name, so that a score does
not depend, not by a bit, on the order of a table's columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from poolbn.moments.groupstats import GroupStats

# A child and its parents, as positions in the names of the statistics.
Family = tuple[int, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class StandardisedStats:
    """Sufficient statistics of (x - center) / scale.

    Attributes:
        names: the N columns.
        levels: the F data sets.
        n: rows, (F,), as floats for the kernels.
        mean: (F, N).
        scatter: within each data set, (F, N, N).
        total: scatter of all rows around the pooled mean, (N, N).
        center: pooled mean, (N,).
        scale: pooled standard deviation (denominator n), 1 for a constant column, (N,).
    """

    names: tuple[str, ...]
    levels: tuple[Hashable, ...]
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

    @cached_property
    def by_name(self) -> Callable[[int], int]:
        """What parents are sorted by: the rank of each column's name."""
        rank = {name: k for k, name in enumerate(sorted(self.names))}
        return [rank[name] for name in self.names].__getitem__

    def order(self, parents: Sequence[int]) -> list[int]:
        """What brings the parents of a family into the order that the kernels have them in."""
        return sorted(range(len(parents)), key=lambda k: self.by_name(parents[k]))

    def family(self, child: str, parents: Sequence[str]) -> Family:
        """The positions of a child and its parents."""
        return self.names.index(child), tuple(self.names.index(parent) for parent in parents)


_made: WeakKeyDictionary[GroupStats, StandardisedStats] = WeakKeyDictionary()


def standardise(stats: GroupStats) -> StandardisedStats:
    """Centre and scale the statistics; made once for each `GroupStats`."""
    if stats not in _made:
        _made[stats] = _standardise(stats)
    return _made[stats]


def _standardise(stats: GroupStats) -> StandardisedStats:
    # Sums go over data sets in their order, element by element: matrix products would give other
    # bits on another CPU, and other columns beside one could change its own.
    n = stats.n.astype(np.float64)
    # Around the first data set's mean: a pooled mean of large numbers would lose digits.
    away = n[:, None] * (stats.mean - stats.mean[0])
    center = stats.mean[0] + np.cumsum(away, axis=0)[-1] / n.sum()
    mean = stats.mean - center
    squares = np.einsum("jaa->ja", stats.scatter) + n[:, None] * mean**2
    scale = np.sqrt(np.cumsum(squares, axis=0)[-1] / n.sum())
    scale[scale == 0] = 1.0
    mean = np.ascontiguousarray(mean / scale)
    scatter = np.ascontiguousarray(stats.scatter / np.outer(scale, scale))
    parts = (S + rows * np.outer(m, m) for S, rows, m in zip(scatter, n, mean, strict=True))
    total = reduce(np.add, parts)
    return StandardisedStats(stats.names, stats.levels, n, mean, scatter, total, center, scale)


class Packed(NamedTuple):
    """Families as the kernels take them.

    Attributes:
        children: (M,).
        offsets: where the parents of each begin, (M + 1,).
        parents: of all families, those of each in order of name.
    """

    children: NDArray[np.int64]
    offsets: NDArray[np.int64]
    parents: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Parents of each family, (M,)."""
        return self.offsets[1:] - self.offsets[:-1]


def pack(data: StandardisedStats, families: Sequence[Family]) -> Packed:
    """Families for the kernels."""
    offsets = [0, *accumulate(len(parents) for _, parents in families)]
    ordered = [p for _, parents in families for p in sorted(parents, key=data.by_name)]
    return Packed(
        np.array([child for child, _ in families], dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        np.array(ordered, dtype=np.int64),
    )


def units(data: StandardisedStats, packed: Packed, reml: bool) -> NDArray[np.float64]:
    """What the units of the data add to deviances of standardised columns, (M,).

    The density of the child; and for REML the determinant of the parents' information.
    """
    of_child = data.log_scale[packed.children]
    if not reml:
        return np.asarray(2 * data.rows * of_child)
    sizes = packed.sizes
    family = np.repeat(np.arange(len(sizes)), sizes)
    of_parents = np.bincount(family, data.log_scale[packed.parents], len(sizes))
    return np.asarray(2 * (data.rows - 1 - sizes) * of_child + 2 * of_parents)


def to_units(data: StandardisedStats, parents: Sequence[int]) -> NDArray[np.float64]:
    """The matrix (q, q) from coefficients on standardised parents to those in their units."""
    q = len(parents) + 1
    T = np.zeros((q, q))
    T[0, 0] = 1.0
    T[0, 1:] = -data.center[list(parents)] / data.scale[list(parents)]
    T[range(1, q), range(1, q)] = 1.0 / data.scale[list(parents)]
    return T
