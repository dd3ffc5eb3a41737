"""Other levels for the same rows: what becomes of moments when levels are merged or reordered.

Indicators of new levels are sums of old ones, or one minus sums, so moments follow without rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.discrete import Cells
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import INDICATOR, indicator_columns, labels_of, moments_of, spans

Levels = tuple[str, ...]


class Recoded(NamedTuple):
    """A column in another form.

    Attributes:
        at: its position before.
        levels: its new levels; none if it is not discrete.
        code: the new code of each old level, (K,).
    """

    at: int
    levels: Levels
    code: NDArray[np.int64]


def recoded_cells(cells: Cells, before: Sequence[Levels], columns: Sequence[Recoded]) -> Cells:
    """Cells of some columns in another form."""
    discrete = [k for k, levels in enumerate(before) if levels]
    some = [column for column in columns if column.levels]
    codes = [column.code[cells.codes[:, discrete.index(column.at)]] for column in some]
    made = np.array(codes, dtype=np.int64).reshape(len(some), len(cells.n)).T
    return Cells(cells.data_set, made, cells.n).merged([len(column.levels) for column in some])


def recoded_moments(
    stats: GroupStats, before: Sequence[Levels], names: Sequence[str], columns: Sequence[Recoded]
) -> GroupStats:
    """Moments of some columns in another form; those of indicators alone are left to `settled`.

    Args:
        stats: of all columns, discrete ones as indicators.
        before: their levels.
        names: of some columns.
        columns: what becomes of these.
    """
    T = _transformation(before, columns)
    scatter = T @ stats.scatter @ T.T
    after = [column.levels for column in columns]
    source = np.full(len(T), -1)  # where a continuous column was
    for span, column in zip(spans(after), columns, strict=True):
        if not column.levels:
            source[span[0]] = spans(before)[column.at][0]
    continuous = source >= 0
    mean = np.zeros((len(stats.n), len(T)))
    mean[:, continuous] = stats.mean[:, source[continuous]]
    cubes = np.zeros_like(mean)
    cubes[:, continuous] = stats.cubes[:, source[continuous]]
    return replace(
        stats,
        names=labels_of(names, after),
        mean=mean,
        scatter=(scatter + scatter.transpose(0, 2, 1)) / 2,
        cubes=cubes,
        facts=tuple(stats.facts[k] if k >= 0 else INDICATOR for k in source),
    )


def _transformation(before: Sequence[Levels], columns: Sequence[Recoded]) -> NDArray[np.float64]:
    """The linear part of what makes new columns of numbers of old ones."""
    old, new = spans(before), spans([column.levels for column in columns])
    T = np.zeros((new[-1].stop if new else 0, old[-1].stop if old else 0))
    for span, column in zip(new, columns, strict=True):
        own = list(old[column.at])
        if not column.levels:
            T[span[0], own[0]] = 1.0
            continue
        for level, row in enumerate(span, start=1):
            T[row, own] = column.code[1:] == level
            if column.code[0] == level:  # the old first level is one minus all others
                T[row, own] -= 1.0
    return T


def settled(stats: GroupStats, cells: Cells, categories: Sequence[Levels]) -> GroupStats:
    """Moments of indicators as the counts have them, to the bit."""
    at = indicator_columns(categories)
    own = moments_of(cells, [levels for levels in categories if levels], len(stats.n))
    mean, scatter, cubes = stats.mean.copy(), stats.scatter.copy(), stats.cubes.copy()
    mean[:, at], cubes[:, at] = own.mean, own.cubes
    still = np.zeros(mean.shape, dtype=bool)
    still[:, at] = np.einsum("jaa->ja", own.scatter) == 0
    scatter[still[:, :, None] | still[:, None, :]] = 0.0
    scatter[:, at[:, None], at] = own.scatter
    facts = list(stats.facts)
    for k in at.tolist():
        facts[k] = INDICATOR
    return replace(stats, mean=mean, scatter=scatter, cubes=cubes, facts=tuple(facts))
