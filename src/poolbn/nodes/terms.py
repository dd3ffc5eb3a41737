"""The effects of a parent on a node: in the population of data sets, and in each of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.equality import Equality, score_test
from poolbn.nodes.logeffects import LogEffects

Floats = NDArray[np.float64]

DIFFERENCE = "difference"


class Term(NamedTuple):
    """One effect of a parent; on a scale of ratios all numbers are those of its logarithm.

    Attributes:
        column: what the coefficient is of, such as "sex=male".
        level: of a discrete parent, compared with its first; "" for others.
        outcome: of a discrete child, compared with its first; "" for others.
        scale: "difference", "odds ratio" or "rate ratio".
        effect: in the population.
        se: its standard error.
        df: and degrees of freedom.
        between_sd: standard deviation between data sets as partial pooling estimates it; else NaN.
        varies: the same under any pooling: 0 under complete pooling, and without pooling what the
            variance of the effects has beyond that of their errors.
        new_se: of the effect in a new data set, around that in the population.
        own: in each data set, (F,).
        own_se: (F,).
        own_df: (F,).
    """

    column: str
    level: str
    outcome: str
    scale: str
    effect: float
    se: float
    df: float
    between_sd: float
    varies: float
    new_se: float
    own: Floats
    own_se: Floats
    own_df: Floats

    def reported(self, value: Any) -> Any:
        """Numbers as a reader has them: ratios, not their logarithms."""
        if self.scale == DIFFERENCE:
            return value
        with np.errstate(over="ignore"):
            return np.exp(value)


def opposite(effect: float, own: Floats) -> float:
    """The share of the data sets in which an effect has the other sign."""
    return float(np.mean(np.sign(own) * np.sign(effect) < 0))


def beyond_errors(own: Floats, se: Floats) -> float:
    """The standard deviation that effects in data sets have beyond their errors, (F,) each."""
    known = np.isfinite(se)
    if known.sum() < 2:
        return 0.0
    excess = np.var(own[known], ddof=1) - np.mean(se[known] ** 2)
    return math.sqrt(max(0.0, float(excess)))


def log_terms(
    found: LogEffects,
    columns: Sequence[tuple[int, str, str]],
    outcomes: Sequence[str],
    *,
    pooled: bool,
) -> Iterator[Term]:
    """Effects on log odds of levels, or on the logarithm of a mean.

    Args:
        found: effects of all columns.
        columns: those of a parent: position, name, and level.
        outcomes: the levels of the child but its first; none of a count.
        pooled: whether data sets share strength.
    """
    width = found.effect.size // max(len(outcomes), 1)
    for at, column, level in columns:
        for c, outcome in enumerate(outcomes or ("",)):
            k = c * width + at
            own, own_se, between = found.own[:, k], found.own_se[:, k], float(found.between_sd[k])
            varies = beyond_errors(own, own_se)
            if pooled:
                varies = 0.0 if math.isnan(between) else between
            yield Term(
                column,
                level,
                outcome,
                "odds ratio" if outcomes else "rate ratio",
                float(found.effect[k]),
                float(found.se[k]),
                float(found.df[k]),
                between,
                varies,
                float(found.new_se[k]),
                own,
                own_se,
                np.full_like(own, np.inf),
            )


def held_tests(parents: Sequence[str], found: LogEffects) -> dict[str, Equality]:
    """Tests for equal effects by parent, where rows gave them."""
    held = dict(zip(parents, map(score_test, found.equal), strict=False))
    return {parent: held.get(parent, Equality()) for parent in parents}
