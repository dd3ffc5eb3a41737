"""Discrete columns: how often their levels occur, and an indicator for each level but the first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Floats, Integers, Positions
from poolbn.moments.facts import ColumnFacts, Distinct, Edge, Extent

_LARGEST = 2**62  # configurations that are one number


class Cells(NamedTuple):
    """How often each configuration of all discrete columns occurs in each data set.

    Configurations that do not occur are not there, and none is there twice. Codes of a column are 0
    to its number of levels, less 1. Where that number is asked for (`sizes`), it is that of all M
    columns.
    """

    data_set: Integers  # (R,), from 0
    codes: Integers  # (R, M)
    n: Integers  # rows, (R,)

    @staticmethod
    def of(data_set: Integers, codes: Integers, sizes: Sequence[int]) -> Cells:
        """Those of rows: the data set of each, (B,), and its codes, (B, M)."""
        return Cells(data_set, codes, np.ones(len(codes), dtype=np.int64)).merged(sizes)

    def merged(self, sizes: Sequence[int]) -> Cells:
        """The same counts, in order of data set and codes, each configuration once."""
        F = int(self.data_set.max(initial=0)) + 1
        if F * np.prod(sizes, dtype=float) < _LARGEST:
            _, first, which = np.unique(
                _numbers(self.data_set, self.codes.T, sizes), return_index=True, return_inverse=True
            )
        else:
            key = np.column_stack([self.data_set, self.codes])
            _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
        n = np.bincount(which.ravel(), self.n, len(first)).astype(np.int64)
        return Cells(self.data_set[first], self.codes[first], n)

    def together(self, other: Cells, sizes: Sequence[int]) -> Cells:
        """Those of both; data sets and levels have the same numbers in both."""
        pairs = zip(self, other, strict=True)
        return Cells(*(np.concatenate(pair) for pair in pairs)).merged(sizes)

    def counts(
        self, child: int, parents: Sequence[int], sizes: Sequence[int], data_sets: int
    ) -> Integers:
        """Counts (F, C, K) of a family, see `tabulate`."""
        family = [*parents, child]
        codes = [self.codes[:, k] for k in family]
        return tabulate(codes, [sizes[k] for k in family], self.data_set, data_sets, self.n)


def tabulate(
    codes: Sequence[Integers],
    sizes: Sequence[int],
    data_set: Integers,
    data_sets: int,
    n: Integers | None = None,
) -> Integers:
    """Count rows by data set, configuration of the parents and level of the child, (F, C, K).

    Codes (R,) and sizes are those of the parents and then the child; configurations are in the
    order of the parents' codes, the last parent's changing fastest. Each row occurs n times, (R,),
    or once.
    """
    *parents, K = sizes
    C = int(np.prod(parents, dtype=np.int64))
    counts = np.bincount(_numbers(data_set, codes, sizes), n, data_sets * C * K)
    return counts.astype(np.int64).reshape(data_sets, C, K)


def _numbers(data_set: Integers, codes: Iterable[Integers], sizes: Sequence[int]) -> Integers:
    """One number for each data set and codes, (R,)."""
    number = data_set.astype(np.int64)
    for column, size in zip(codes, sizes, strict=True):
        number *= size
        number += column
    return number


# Of an indicator, whatever the rows.
INDICATOR = ColumnFacts(
    0, frozenset({0.0, 1.0}), Distinct.NONE, Extent(Edge(0.0), Edge(-1.0), None)
)
_CHUNK = 2**16  # cells that are looked at together


def indicators(categories: Sequence[str]) -> range:
    """The codes of the levels of a discrete column that have an indicator."""
    return range(1, len(categories))


def labels_of(names: Sequence[str], categories: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What the columns of numbers are called, as in sex=male; those without levels as they are."""
    return tuple(
        label
        for name, levels in zip(names, categories, strict=True)
        for label in ([f"{name}={level}" for level in levels[1:]] if levels else [name])
    )


def spans(categories: Sequence[Sequence[str]]) -> list[range]:
    """Which columns of numbers each column is."""
    widths = (len(levels) - 1 if levels else 1 for levels in categories)
    ends = np.cumsum([0, *widths]).tolist()
    return [range(first, end) for first, end in pairwise(ends)]


def indicator_columns(categories: Sequence[Sequence[str]]) -> Positions:
    """Which columns of numbers are indicators."""
    own = zip(spans(categories), categories, strict=True)
    return np.array([k for span, levels in own if levels for k in span], dtype=np.intp)


class IndicatorMoments(NamedTuple):
    """Means, centred sums of products and of cubes of W indicators, (F, W), (F, W, W), (F, W)."""

    mean: Floats
    scatter: Floats
    cubes: Floats


def moments_of(cells: Cells, categories: Sequence[Sequence[str]], F: int) -> IndicatorMoments:
    """What counts of F data sets say of indicators; the same bits for the same counts."""
    both = _both(cells, categories, F)
    n = np.bincount(cells.data_set, cells.n, F)[:, None]
    count = np.einsum("jaa->ja", both)
    mean = count / np.maximum(n, 1)
    scatter = both - n[:, :, None] * (mean[:, :, None] * mean[:, None, :])
    still = (count == 0) | (count == n)
    scatter[still[:, :, None] | still[:, None, :]] = 0.0
    cubes = count * (1 - mean) ** 3 - (n - count) * mean**3
    return IndicatorMoments(mean, scatter, cubes)


def _both(cells: Cells, categories: Sequence[Sequence[str]], F: int) -> Floats:
    """How many rows of each data set have both of two indicators, (F, W, W)."""
    discrete = filter(None, categories)
    codes = [(m, k) for m, levels in enumerate(discrete) for k in indicators(levels)]
    both = np.zeros((F, len(codes), len(codes)))
    ends = np.searchsorted(cells.data_set, np.arange(F + 1))
    for j, (start, end) in enumerate(pairwise(ends.tolist())):
        for first in range(start, end, _CHUNK):
            part = slice(first, min(first + _CHUNK, end))
            n = cells.n[part]
            own = [cells.codes[part, m] == k for m, k in codes]
            has = np.array(own, dtype=np.float64).reshape(len(codes), len(n))
            both[j] += (has * n) @ has.T
    return both
