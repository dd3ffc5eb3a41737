"""A small map of what is missing: columns by patterns, with counts of rows in each data set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.moments.patternstats import PatternStats, tallied

_MOST = 10  # patterns of a map


class PatternMap(NamedTuple):
    """What is missing."""

    columns: tuple[str, ...]  # that have missing values
    # Which of them a pattern lacks, (K, P); rows without gaps are the pattern that lacks nothing.
    # Most rows first.
    missing: Flags
    rows: Integers  # of each pattern and data set, (P, F)
    others: Integers  # rows of rarer patterns in each data set, (F,)
    share: Floats  # of values that each column lacks, (K,)
    # Values of each column in rows that have a gap, and would be dropped for it, (K,).
    gained: Integers


def pattern_map(patterns: PatternStats, fewest: int = 1) -> PatternMap:
    """Of the patterns that most rows have, and so many at least.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]]
        >>> found = pattern_map(pb.stats(trial, group="clinic", missing="em").patterns)
        >>> found.columns, found.missing.tolist(), found.rows.sum(axis=1).tolist()
        (('bmi', 'birthweight_g'), [[False, True, False, True], [False, False, True, True]],
         [737, 72, 13, 1])
    """
    every = tallied(patterns.gaps, patterns.known.n)
    total = every.rows.sum(axis=1)
    kept = (total >= fewest) & (np.arange(len(total)) < _MOST)
    there = patterns.observed.sum(axis=0)
    at = np.flatnonzero(there < patterns.n.sum())
    return PatternMap(
        tuple(patterns.names[k] for k in at),
        every.missing[kept][:, at].T,
        every.rows[kept],
        every.rows[~kept].sum(axis=0),
        1 - there[at] / patterns.n.sum(),
        there[at] - patterns.known.n.sum(),
    )
