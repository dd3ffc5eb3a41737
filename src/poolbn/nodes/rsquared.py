"""What parents explain of a node's variance, without and with the differences between data sets.

Nakagawa and Schielzeth (2013): the variance of what fixed effects make of the rows, the mean
variance of what random effects add (Johnson 2014), and what is left. On the scale of log odds and
of logarithms of means, what is left of a binary column with mean p is 1 / (p (1 - p)), and of a
count with mean m and dispersion k it is 1 / m + 1 / k (the delta method; Nakagawa, Johnson and
Schielzeth 2017). Ordered levels are a logistic variable, with the variance pi^2 / 3 around its
mean, cut at thresholds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Floats
from poolbn.moments.data import Data, numbers
from poolbn.moments.groupstats import GroupStats
from poolbn.nodes.links import Response


class Variances(NamedTuple):
    """Of one node.

    Attributes:
        fixed: of what fixed effects make of the rows; NaN without a population.
        random: of what random effects add to it.
        left: of what is left.
        units: between units inside data sets.
        scale: "" for the node's own, else what effects add up on.
    """

    fixed: float
    random: float
    left: float
    scale: str = ""
    units: float = 0.0

    @property
    def marginal(self) -> float:
        """The share of the fixed effects."""
        return _share(self.fixed, self.fixed + self.random + self.units + self.left)

    @property
    def conditional(self) -> float:
        """The share of fixed and random effects together."""
        known = self.random if math.isnan(self.fixed) else self.fixed + self.random
        known += self.units
        return _share(known, known + self.left)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def of_sums(
    stats: GroupStats, coef: Floats, fixed: Floats | None, random_cov: Floats | None, left: Floats
) -> Variances:
    """Of a linear regression, from statistics of its columns.

    Args:
        stats: of the p columns, and the child last.
        coef: in each data set, (F, q).
        fixed: of the population, (q,); None without one.
        random_cov: of random effects, (q, q); None where there are none.
        left: residual variances, (F,).
    """
    n, mean, scatters = stats.n.astype(np.float64), stats.mean[:, :-1], stats.scatter[:, :-1, :-1]
    share, rows = n / n.sum(), n.sum()
    centre = share @ mean
    away = mean - centre
    scatter = scatters.sum(axis=0) + np.einsum("j,ja,jb->ab", n, away, away)
    residual = float(share @ left)
    if fixed is None:  # what the data sets' own regressions make of the rows
        level = coef[:, 0] + np.einsum("ja,ja->j", coef[:, 1:], mean)
        inside = np.einsum("ja,jab,jb->", coef[:, 1:], scatters, coef[:, 1:])
        between = n @ (level - share @ level) ** 2
        return Variances(math.nan, float(inside + between) / (rows - 1), residual)
    of_rows = float(fixed[1:] @ scatter @ fixed[1:]) / (rows - 1)
    return Variances(of_rows, _random(random_cov, centre, scatter / rows), residual)


def of_rows(
    data: Data, child: str, parents: tuple[str, ...], fixed: Floats, random_cov: Floats | None,
    response: Response, dispersion: float,
) -> Variances:  # fmt: skip
    """Of a regression with one linear predictor, from rows.

    Args:
        data: the rows.
        child: the node.
        parents: its parents.
        fixed: coefficients of the population, (q,).
        random_cov: of random effects, (q, q); None where there are none.
        response: what kind of child it is.
        dispersion: of a count; inf for others.
    """
    rows = data.cases([*parents, child])
    weight = np.ones(len(rows.columns[-1])) if rows.n is None else np.asarray(rows.n, dtype=float)
    X = numbers(data, parents)[1].T
    centre = weight @ X / weight.sum()
    away = X - centre
    scatter = away.T @ (away * weight[:, None])
    left = response.left(float(weight @ rows.columns[-1] / weight.sum()), dispersion)
    explained = float(fixed[1:] @ scatter @ fixed[1:]) / (weight.sum() - 1)
    random = _random(random_cov, centre, scatter / weight.sum())
    scale = "log odds" if response.has_levels else "logarithm"
    return Variances(explained, random, left, scale)


def _random(cov: Floats | None, centre: Floats, spread: Floats) -> float:
    """The mean of z' cov z over rows with this mean and covariance of their columns."""
    if cov is None:
        return 0.0
    z = np.concatenate([[1.0], centre])
    return float(z @ cov @ z + np.einsum("ab,ab->", cov[1:, 1:], spread))
