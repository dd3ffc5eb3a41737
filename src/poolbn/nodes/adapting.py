"""A fit with a data set that it was not learned from."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from poolbn.moments.groupstats import GroupStats
from poolbn.nodes import predictive
from poolbn.nodes.blup import effective_df, random_effects, total_cov
from poolbn.nodes.intervals import Intervals
from poolbn.nodes.lmm import expected_variance
from poolbn.nodes.localfit import Floats, LinearFit

Fit = TypeVar("Fit", bound=LinearFit)

# What a fit has of each data set, beside its name.
_ARRAYS = (
    "coef", "coef_cov", "sigma2", "squares", "df", "effective_df", "rows", "total_cov",
    "between_cov",
)  # fmt: skip


class Own(NamedTuple):
    """What a fit has of one data set, but for what follows from it. As in `LinearFit`."""

    coef: Floats
    coef_cov: Floats
    sigma2: float
    squares: float = 0.0
    df: float = 0.0  # none: its variance is from the others
    effective_df: float = 0.0


def adapted(fit: LinearFit, weights: Floats, family: GroupStats) -> Own:
    """What pooling says of a data set, given its rows or none, and all that was learned.

    Partial pooling predicts the random effects of the new data set, given the fixed effects and
    the covariances that were learned. Complete pooling says that it is like all others: it has
    their coefficients, and `coef_cov` is zero because the uncertainty of what all share is left out
    of it for the others too.

    Pooled residual variances give the one to be expected after the new rows were seen. Others that
    differ between data sets give their mean weighted by rows: what a variance shared by all would
    be estimated as, given the coefficients.

    Args:
        fit: a node, with pooling.
        weights: rows of each data set that it has, (F,).
        family: the sufficient statistics of the parents and, last, the child in the new data set.
    """
    assert fit.fixed is not None
    # As a difference, so that equal variances stay equal to the last bit.
    sigma2 = float(fit.sigma2[0] + np.average(fit.sigma2 - fit.sigma2[0], weights=weights))
    q = len(fit.columns) + 1
    if fit.random_cov is None:
        return Own(fit.fixed, np.zeros((q, q)), sigma2)
    scale, shape = fit.residual_scale, fit.residual_shape
    unit = sigma2 if scale is None else scale  # that `random_cov` is for
    if not family.n[0] and scale is None:  # also where there are no residuals
        return Own(fit.fixed, fit.random_cov, sigma2)
    b, cov, generalised = random_effects(family, fit.fixed, fit.random_cov, unit)
    effective = float(effective_df(fit.random_cov, cov[None])[0])
    squares = 0.0
    if shape is not None:  # the rows tell about the residual variance, to which D is in proportion
        rows = family.n.astype(np.float64)
        sigma2 = float(expected_variance(shape, unit, rows, np.array([generalised]))[0])
        cov *= sigma2 / unit
        squares = generalised
    return Own(fit.fixed + b, cov, sigma2, squares, effective_df=effective)


def appended(fit: Fit, level: Hashable, own: Own, family: GroupStats) -> Fit:
    """The fit with one more data set, and everything else as it was."""
    rows, intervals = family.n.astype(np.float64), fit.intervals
    before = predictive.uncertainty(fit)
    fit = replace(
        fit,
        levels=(*fit.levels, level),
        coef=np.vstack([fit.coef, own.coef]),
        coef_cov=np.concatenate([fit.coef_cov, own.coef_cov[None]]),
        sigma2=np.append(fit.sigma2, own.sigma2),
        squares=np.append(fit.squares, own.squares),
        df=np.append(fit.df, own.df),
        effective_df=np.append(fit.effective_df, own.effective_df),
        rows=np.append(fit.rows, rows),
    )
    p, last = len(fit.columns), slice(-1, None)
    parents = (rows, family.mean[:, :p], family.scatter[:, :p, :p])
    total, between = predictive.covariances(fit, *parents, at=last)
    if own.sigma2 == 0 and rows[0]:  # then the value is seen
        total, between = np.zeros_like(total), np.zeros_like(between)
    known = replace(
        fit,
        total_cov=np.concatenate([before[0], total]),
        between_cov=np.concatenate([before[1], between]),
        sums=None,
        later=None,
    )
    return replace(known, saved_intervals=_with_last(intervals, known, family))


def _with_last(found: Intervals | None, fit: LinearFit, family: GroupStats) -> Intervals | None:
    """The intervals with those of the last data set of the fit."""
    if found is None:
        return None
    q = len(fit.columns) + 1
    se, df = found.population_se, found.population_df
    if fit.fixed is None:
        se, df = fit.coef_sd[-1], np.full(q, max(float(family.n[0] - q), 1.0))
    elif fit.random_cov is not None and fit.fixed_cov is not None and fit.sigma2[-1] > 0:
        fitted = np.sqrt(np.diagonal(fit.fixed_cov))
        wider = np.divide(se, fitted, out=np.ones(q), where=fitted > 0)
        D = _between(fit.random_cov, found)
        sigma2 = float(fit.sigma2[-1])
        ratio = 1.0 if fit.residual_scale is None else sigma2 / fit.residual_scale
        assert fit.fixed is not None
        b, cov, _ = random_effects(family, fit.fixed, ratio * D, sigma2)
        known = replace(
            fit,
            fixed_cov=fit.fixed_cov * np.outer(wider, wider),
            random_cov=D,
            coef_cov=np.concatenate([fit.coef_cov[:-1], cov[None]]),
        )
        off = fit.fixed + b - fit.coef[-1]  # the interval is around the estimate of the fit
        se = np.hypot(np.sqrt(np.diagonal(total_cov(known, -1, family))), off)
    se = np.append(math.nan, se[1:])
    return found._replace(se=np.vstack([found.se, se]), df=np.vstack([found.df, df]))


def _between(random_cov: Floats, found: Intervals) -> Floats:
    """The covariance of random effects, with the variances that new data sets are told to have."""
    if not found.new_se.size or not np.isfinite(found.new_se).all():  # as of one value a data set
        return random_cov
    variance = np.maximum(found.new_se**2 - found.population_se**2, 0.0)
    fitted = np.diagonal(random_cov)
    ratio = np.divide(variance, fitted, out=np.zeros_like(variance), where=fitted > 0)
    D = np.asarray(random_cov * np.sqrt(np.outer(ratio, ratio)))
    np.fill_diagonal(D, variance)
    return D


def in_order(fit: Fit, levels: Sequence[Hashable]) -> Fit:
    """The fit with its data sets in another order."""
    at = [fit.levels.index(level) for level in levels]
    arrays = {name: getattr(fit, name)[at] for name in _ARRAYS}
    found = fit.saved_intervals
    if found is not None:
        found = found._replace(se=found.se[at], df=found.df[at])
    return replace(fit, levels=tuple(levels), saved_intervals=found, **arrays)
