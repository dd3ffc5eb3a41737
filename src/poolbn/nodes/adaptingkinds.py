"""Fits of discrete nodes and counts with a data set that they were not learned from."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.moments.table import Table
from poolbn.nodes.imputedkinds import with_all
from poolbn.nodes.localfit import Given, Status
from poolbn.nodes.logeffects import LogEffects, log_odds_ratios, random_effects_cov
from poolbn.nodes.poolings import NoPooling
from poolbn.nodes.regression import RegressionFit, design_of, fit_regression
from poolbn.nodes.rowscores import Rows, scores
from poolbn.nodes.tabular import TabularFit, counts_of

Floats = NDArray[np.float64]

_STEPS = 100
_HALVINGS = 30
_GAIN = 1e-12  # of a log-likelihood, below which a search ends
_ALONE = "without pooling there is no population to predict from"


def with_regression(fit: RegressionFit, name: Hashable, new: Table | None) -> RegressionFit:
    """The fit with one more data set, of which there are rows or none.

    Its coefficients are those at the mode, given its rows and a normal distribution around the
    population's; without pooling those of its rows alone.

    Raises:
        DataError: without pooling, the rows do not give all coefficients.
    """
    fit = with_all(fit)
    coef, cov = _coefficients(fit, new)
    added = replace(
        fit,
        levels=(*fit.levels, name),
        coef=np.concatenate([fit.coef, coef[None]]),
        coef_cov=np.concatenate([fit.coef_cov, cov[None]]),
    )
    if fit.saved_effects is None:
        return added
    se = np.sqrt(np.diagonal(cov)).reshape(coef.shape)
    own = coef[:, 1:].ravel(), se[:, 1:].ravel()
    return replace(added, saved_effects=_appended(fit.saved_effects, *own))


def _coefficients(fit: RegressionFit, new: Table | None) -> tuple[Floats, Floats]:
    """Of the new data set, (C, q), and their covariance with all that is uncertain."""
    if fit.fixed is None or fit.fixed_cov is None:
        return _input(fit, new) if isinstance(fit.pooling, Given) else _alone(fit, new)
    if fit.random_cov is None:
        return fit.fixed, fit.fixed_cov
    R = random_effects_cov(fit.random_cov, len(fit.fixed), counts=not fit.categories)
    if new is None:  # with what maximum likelihood lacks, see `predictive`
        F = max(len(fit.levels) - len(fit.left_out), 2)
        return fit.fixed, _tails(fit, F - 1) * (R + (1 + F / (F - 1)) * fit.fixed_cov)
    rows = Rows(design_of(new, fit.child, fit.parents), fit.response, fit.dispersion)
    return mode(rows, fit.fixed, fit.fixed_cov, R)


def _tails(fit: RegressionFit, df: int) -> float:
    """What gives a normal distribution the middle 95% of Student's t, for its variance.

    The mean of a count would be that of its tails, and does not exist for Student's t.
    """
    if not fit.categories:
        return 1.0
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.975) / NormalDist().inv_cdf(0.975)) ** 2


def mode(rows: Rows, fixed: Floats, fixed_cov: Floats, R: Floats) -> tuple[Floats, Floats]:
    """Coefficients of one data set under N(fixed, R) given its rows, (C, q), and a covariance.

    As b = Zu with ZZ' = R and u of variance one, so that R need not have an inverse. The
    covariance is (R^-1 + W)^-1 with the information W there, and what errors of `fixed` do.
    """
    value, vector = np.linalg.eigh(R)
    Z = vector * np.sqrt(np.maximum(value, 0.0))
    d = len(Z)

    def at(u: Floats) -> tuple[float, Floats, Floats]:
        found = scores(rows, fixed[None] + (Z @ u).reshape(1, *fixed.shape))
        return float(found.loglik[0] - u @ u / 2), found.gradient[0], found.information[0]

    u = np.zeros(d)
    now = at(u)
    for _ in range(_STEPS):
        H = np.eye(d) + Z.T @ now[2] @ Z
        step, before = np.linalg.solve(H, Z.T @ now[1] - u), now[0]
        for _ in range(_HALVINGS):
            now = at(u + step)
            if now[0] >= before - _GAIN:
                break
            step = step / 2
        u = u + step
        if now[0] < before + _GAIN * max(1.0, abs(before)):
            break
    W = now[2]
    conditional = Z @ np.linalg.solve(np.eye(d) + Z.T @ W @ Z, Z.T)
    follows = np.eye(d) - conditional @ W
    cov = conditional + follows @ fixed_cov @ follows.T
    return fixed + (Z @ u).reshape(fixed.shape), cov


def _input(fit: RegressionFit, new: Table | None) -> tuple[Floats, Floats]:
    """Of a count that is an input: the mean of its rows, or that of other data sets."""
    none = np.zeros_like(fit.coef_cov[0])
    if new is None:
        return fit.coef.mean(axis=0), none
    (values,) = new.cases([fit.child]).columns
    return np.full_like(fit.coef[0], math.log(max(float(values.mean()), 0.5 / len(values)))), none


def _alone(fit: RegressionFit, new: Table | None) -> tuple[Floats, Floats]:
    """From its own rows."""
    count, n = fit.coef[0].size, 0 if new is None else new.n_rows
    partial = Option("pooling", "partial")
    if new is None or n <= count:
        raise DataError(
            f"{_ALONE}: {count} coefficient{'s' * (count > 1)} of {fit.child!r} need at least "
            f"{count + 1} rows, and there are {n}; give more rows, or learn with ",
            partial,
        )
    own = fit_regression(new, fit.child, fit.parents, fit.response, NoPooling())
    if not own.status.ok or own.status is Status.SEPARATED:
        why = f"{own.status}: {own.detail}"
        raise DataError(f"{_ALONE}, and {fit.child!r} is {why}; or learn with ", partial)
    return own.coef[0], own.coef_cov[0]


def with_table(fit: TabularFit, name: Hashable, new: Table | None) -> TabularFit:
    """The fit with one more data set, of which there are rows or none.

    Its probabilities are the means given its counts: with those of the population counting for
    `concentration` rows.

    Raises:
        DataError: without pooling, there are no rows.
    """
    if new is None and isinstance(fit.pooling, NoPooling):
        raise DataError(
            f"{_ALONE}: the probabilities of {fit.child!r} need rows; give some, or learn with ",
            Option("pooling", "partial"),
        )
    fit = with_all(fit)
    own = fit.population
    counts = np.zeros((1, *own.shape))
    if new is not None:
        counts = counts_of(new, fit.child, fit.parents).astype(np.float64)
    s, rows = fit.concentration, counts[0].sum(axis=1, keepdims=True)
    if math.isfinite(s) and fit.pooling != Given("intervention"):
        seen = np.maximum(rows + s, np.finfo(float).tiny)
        own = np.where(rows > 0, (counts[0] + s * own) / seen, own)
    added = replace(
        fit,
        levels=(*fit.levels, name),
        probabilities=np.concatenate([fit.probabilities, own[None]]),
    )
    if fit.saved_effects is None:
        return added
    sizes = [len(levels) for levels in fit.given]
    (value,), (variance,) = log_odds_ratios(counts, sizes)
    return replace(added, saved_effects=_shrunk(fit, fit.saved_effects, value, variance))


def _shrunk(fit: TabularFit, found: LogEffects, value: Floats, variance: Floats) -> LogEffects:
    """With log odds ratios of the new data set, which are shrunk as far as pooling is partial."""
    if math.isinf(fit.concentration) and np.isnan(found.between_sd).all():  # complete pooling
        return _appended(found, found.effect, found.se)
    if isinstance(fit.pooling, NoPooling):
        return _appended(found, value, np.sqrt(variance))
    t2 = np.nan_to_num(found.between_sd) ** 2
    kept = np.where(np.isfinite(variance), t2 / (t2 + variance), 0.0)  # of its own estimate
    own = found.effect + kept * (value - found.effect)
    se = np.sqrt((1 - kept) * t2 + (1 - kept) ** 2 * found.se**2)
    return _appended(found, own, se)


def _appended(found: LogEffects, own: Floats, se: Floats) -> LogEffects:
    level = np.full((1, found.level_se.shape[1]), math.nan)
    return found._replace(
        own=np.vstack([found.own, own]),
        own_se=np.vstack([found.own_se, se]),
        level_se=np.vstack([found.level_se, level]) if found.level_se.size else found.level_se,
    )
