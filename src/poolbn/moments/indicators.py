"""Discrete columns as numbers: an indicator for each level but the first, 1 where a row has it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.discrete import Cells
from poolbn.moments.facts import ColumnFacts, Distinct, Edge, Extent

Floats = NDArray[np.float64]

# Of an indicator, whatever the rows.
INDICATOR = ColumnFacts(
    0, frozenset({0.0, 1.0}), Distinct.NONE, Extent(Edge(0.0), Edge(-1.0), None)
)
_CHUNK = 2**16  # cells that are looked at together


def indicators(categories: Sequence[str]) -> range:
    """The codes of the levels of a discrete column that have an indicator."""
    return range(1, len(categories))


def labels_of(names: Sequence[str], categories: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What the columns of numbers are called; those without levels as they are.

    Examples:
        >>> labels_of(["age", "sex"], [(), ("female", "male")])
        ('age', 'sex=male')
    """
    return tuple(
        label
        for name, levels in zip(names, categories, strict=True)
        for label in ([f"{name}={level}" for level in levels[1:]] if levels else [name])
    )


def spans(categories: Sequence[Sequence[str]]) -> list[range]:
    """Which columns of numbers each column is.

    Examples:
        >>> spans([(), ("a", "b", "c"), ()])
        [range(0, 1), range(1, 3), range(3, 4)]
    """
    widths = (len(levels) - 1 if levels else 1 for levels in categories)
    ends = np.cumsum([0, *widths]).tolist()
    return [range(first, end) for first, end in pairwise(ends)]


def indicator_columns(categories: Sequence[Sequence[str]]) -> NDArray[np.intp]:
    """Which columns of numbers are indicators.

    Examples:
        >>> indicator_columns([(), ("a", "b", "c"), ()])
        array([1, 2])
    """
    own = zip(spans(categories), categories, strict=True)
    return np.array([k for span, levels in own if levels for k in span], dtype=np.intp)


class IndicatorMoments(NamedTuple):
    """Means, centred sums of products and of cubes of W indicators, (F, W), (F, W, W), (F, W)."""

    mean: Floats
    scatter: Floats
    cubes: Floats


def moments_of(cells: Cells, categories: Sequence[Sequence[str]], F: int) -> IndicatorMoments:
    """What counts say of indicators; the same bits for the same counts.

    Args:
        cells: of all discrete columns.
        categories: the levels of these.
        F: data sets.
    """
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
    codes = [(m, k) for m, levels in enumerate(categories) for k in indicators(levels)]
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
