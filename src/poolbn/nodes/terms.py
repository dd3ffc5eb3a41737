"""What is told of the effects of parents on a node, and what it is found from."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIFFERENCE = "difference"
# Before a configuration of other parents that an effect is for.
WHERE = "where "
# What stands in the column of parents where residual variances are tested.
RESIDUAL = "(residual variance)"


class Term(NamedTuple):
    """One effect of a parent; on a scale of ratios all numbers are those of its logarithm.

    Attributes:
        column: what the coefficient is of, such as "sex=male".
        level: of a discrete parent, compared with its first; "" for others. An effect in one
            configuration of other parents ends with that, as "yes where sex=male".
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

    @property
    def name(self) -> str:
        """What it is of: the column, and the configuration of other parents if it has one.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "tobacco", "age", "bmi"]].dropna()
            >>> how = pb.Complete(continuous="conditional")
            >>> fit = pb.fit_node(pb.table(trial, group="clinic"), "bmi", ["tobacco", "age"],
            ...                   pooling=how)
            >>> [term.name for term in fit.terms("age")]
            ['age where tobacco=no', 'age where tobacco=yes']
        """
        _, where, levels = self.level.partition(WHERE)
        return f"{self.column} {where}{levels}" if where else self.column

    def reported(self, value: Any) -> Any:
        """Numbers as a reader has them: ratios, not their logarithms."""
        if self.scale == DIFFERENCE:
            return value
        with np.errstate(over="ignore"):
            return np.exp(value)


class Equality(NamedTuple):
    """A test for equality in all data sets.

    Attributes:
        test: "Welch", "simulated", "F", "Bartlett" or "score"; "none" where the rows give none.
        statistic: F, or the chi-square of Bartlett's test or a score test.
        df1: its degrees of freedom.
        df2: of the denominator; NaN where it has none.
        p_value: NaN without a test.
    """

    test: str = "none"
    statistic: float = math.nan
    df1: float = math.nan
    df2: float = math.nan
    p_value: float = math.nan


class Sums(NamedTuple):
    """Sufficient statistics of p parents and, last, the child, standardised; q = p + 1.

    Attributes:
        n: rows, (F,).
        mean: (F, q).
        scatter: (F, q, q).
        center: pooled mean, (q,).
        scale: pooled standard deviation, (q,).
        varies: which coefficients have random effects, the intercept first, (q,).
        weight: what intercepts weigh, (F,): n, or less where rows of units are whitened.
        units: then how many there are, (F,); else None.
        above: then whether a coefficient's column varies in no unit, as the intercept's, (q,).
        inside: then the scatter of rows around the means of their units, (F, q, q).
    """

    n: Floats
    mean: Floats
    scatter: Floats
    center: Floats
    scale: Floats
    varies: NDArray[np.bool_]
    weight: Floats
    units: Floats | None = None
    above: NDArray[np.bool_] | None = None
    inside: Floats | None = None


class Intervals(NamedTuple):
    """Student's t: estimates, standard errors, degrees of freedom.

    Attributes:
        population_se: of the population's coefficients, (q,).
        population_df: (q,).
        new_se: of a new data set's coefficients around the population's, with the same degrees of
            freedom; NaN unless pooling is partial, (q,).
        at: values of the parents, (p,); empty where they are not known, as in an older file.
        se: of each data set's level where parents are at these values, NaN where that is what the
            fit says, and of its effects, (F, q).
        df: (F, q).
    """

    population_se: Floats
    population_df: Floats
    new_se: Floats
    at: Floats
    se: Floats
    df: Floats


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
