"""The map of a report: which variables rows lack, and how many rows lack these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.patternmap import pattern_map
from poolbn.assess.residuals import FEWEST
from poolbn.page.context import Context

_DATA_SETS = 12  # whose rows a map of missing values counts


class MissingMap(NamedTuple):
    """Which variables rows lack: these by patterns, and rows of each pattern by data set."""

    variables: tuple[tuple[str, tuple[bool, ...]], ...]
    counts: tuple[tuple[str, tuple[str, ...]], ...]
    others: bool  # whether the last count is that of rarer patterns


def missing_map(of: Context) -> MissingMap | None:
    """The map, if values are missing; without patterns of few rows, unless rows may be shown."""
    if of.stats is None or of.stats.patterns is None or not of.stats.patterns.has_gaps:
        return None
    found = pattern_map(of.stats.patterns, 1 if of.open else FEWEST)
    others = bool(found.others.any())
    # With one that is not told, it would be what the others leave of all rows.
    few = (found.rows > 0) & (found.rows < FEWEST)
    exact = of.open or not (few.any() or (found.others > 0).any())

    def texts(own: NDArray[np.int64], other: int) -> tuple[str, ...]:
        every = [*own.tolist(), other]
        told = [_about(n, exact=exact) for n in every]
        return tuple(told if others else told[:-1])

    counts = [(f"all {of.sets.many}", texts(found.rows.sum(axis=1), int(found.others.sum())))]
    if len(of.stats.levels) <= _DATA_SETS:
        parts = zip(of.stats.levels, found.rows.T, found.others.tolist(), strict=True)
        counts += [(str(level), texts(own, other)) for level, own, other in parts]
    lacks = zip(found.columns, found.missing.tolist(), strict=True)
    return MissingMap(tuple((name, tuple(each)) for name, each in lacks), tuple(counts), others)


def _about(rows: int, *, exact: bool) -> str:
    """How many rows: to the nearest ten, unless they may be told exactly."""
    if exact or not rows:
        return f"{rows:,}"
    return f"< {FEWEST}" if rows < FEWEST else f"≈ {round(rows, -1):,}"
