"""Parameters that nodes of all kinds may have, drawn from what is known of them.

A fit with the parameters of B imagined data sets stands for them: of each data set, or of new ones
from the population. The same random numbers serve all draws, so that draws differ only by what is
uncertain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.logeffects import random_effects_cov
from poolbn.nodes.poolings import NoPooling
from poolbn.nodes.predictive import uncertainty
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

Floats = NDArray[np.float64]

_MANY = 4  # data sets for each coefficient


def has_population(fit: LocalFit) -> bool:
    """Whether a node says what new data sets are like."""
    return not isinstance(fit.pooling, NoPooling)


def of_data_sets(fit: LocalFit, draws: int, rng: np.random.Generator) -> LocalFit:
    """The parameters of the F data sets, `draws` times; without error for 0 draws: B = F."""
    if isinstance(fit, TabularFit):
        error = _table_errors(fit, fit.effects.own_se, draws, rng)
        return replace(fit, probabilities=_moved(fit, fit.probabilities, error))
    assert isinstance(fit, GaussianFit | RegressionFit)
    coef = fit.coef.reshape(len(fit.levels), -1)
    drawn = coef
    if draws:
        cov, df = _data_sets(fit)
        z = rng.standard_normal((draws, *coef.shape))
        known = np.isfinite(df)
        chi2 = rng.chisquare(df[known], (draws, int(known.sum())))
        z[:, known] *= np.sqrt(df[known] / chi2)[..., None]
        drawn = (coef + np.einsum("jab,djb->dja", _roots(cov), z)).reshape(-1, coef.shape[1])
    if isinstance(fit, RegressionFit):
        return replace(fit, coef=drawn.reshape(-1, *fit.coef.shape[1:]))
    return replace(fit, coef=drawn, sigma2=np.tile(fit.sigma2, max(draws, 1)))


def _data_sets(fit: GaussianFit | RegressionFit) -> tuple[Floats, Floats]:
    """Covariances of the coefficients of data sets, (F, d, d), and degrees of freedom, (F,).

    Effects have the standard errors that `effects` tells of, which contain what is uncertain of
    variances between data sets, and so have levels where parents are at their means. Correlations
    of these are those of the fit.
    """
    (F, *shape), q = fit.coef.shape, fit.coef.shape[-1]
    df, none = np.full(F, np.inf), np.full((F, *shape), np.nan)
    if isinstance(fit, RegressionFit):
        cov, found = fit.coef_cov, fit.effects
        at, se = found.at, none
        if found.level_se.size:
            se[..., 0] = found.level_se
            se[..., 1:] = found.own_se.reshape(F, -1, q - 1)
    else:
        cov, at, se = uncertainty(fit)[0], np.empty(0), none
        if fit.intervals is not None and len(fit.intervals.at) == q - 1:
            at, se = fit.intervals.at, fit.intervals.se
            least = np.nanmin(fit.intervals.df, axis=1)
            df = np.where(least > 0, least, np.inf)
    back = np.eye(q)  # from coefficients where the intercept is the level there
    back[0, 1 : len(at) + 1] = -at
    C, T = (np.kron(np.eye(len(cov[0]) // q), each) for each in (np.linalg.inv(back), back))
    return T @ _with_errors(C @ cov @ C.T, se.reshape(F, -1)) @ T.T, df


def _with_errors(cov: Floats, se: Floats) -> Floats:
    """Covariances (F, d, d) with other standard errors, (F, d), where these are known."""
    sd = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    correlation = cov * inverse[:, :, None] * inverse[:, None]
    np.einsum("jaa->ja", correlation)[:] = 1.0
    wanted = np.where(np.isfinite(se), se, sd)
    return np.asarray(correlation * wanted[:, :, None] * wanted[:, None])


def of_new_data_sets(fit: LocalFit, sets: int, draws: int, rng: np.random.Generator) -> LocalFit:
    """Those of new data sets, for each draw of the population: B = sets, or draws * sets."""
    if isinstance(fit, TabularFit):
        return _new_tables(fit, sets, draws, rng)
    assert isinstance(fit, GaussianFit | RegressionFit)
    fixed, R = population_draws(fit, draws, rng), _between(fit)
    b = balanced(sets, len(R), rng) @ _roots(R).T
    coef = (fixed[:, None] + b).reshape(-1, len(R))
    if isinstance(fit, RegressionFit):
        return replace(fit, coef=coef.reshape(-1, *fit.coef.shape[1:]))
    return replace(fit, coef=coef, sigma2=np.full(len(coef), fit.sigma2.mean()))


def population_draws(
    fit: GaussianFit | RegressionFit, draws: int, rng: np.random.Generator
) -> Floats:
    """Coefficients of the population, (draws, d); without error for 0 draws: (1, d).

    Standard errors are those of `effects`, which few data sets make wider than the fit does.
    """
    fixed, cov, df = _population(fit)
    if not draws:
        return fixed[None]
    errors = rng.standard_normal((draws, len(fixed))) @ _roots(cov).T
    if np.isfinite(df):
        errors *= np.sqrt(df / rng.chisquare(df, (draws, 1)))
    return np.asarray(fixed + errors)


def balanced(sets: int, d: int, rng: np.random.Generator) -> Floats:
    """Standard normal numbers in pairs of opposite sign, and if there are many with covariance I.

    What is linear in them has its mean without error, (sets, d); `sets` is even.
    """
    half = rng.standard_normal((sets // 2, d))
    if sets > _MANY * d:
        half = half @ np.linalg.inv(np.linalg.cholesky(half.T @ half / len(half))).T
    return np.concatenate([half, -half])


def _population(fit: GaussianFit | RegressionFit) -> tuple[Floats, Floats, float]:
    """Coefficients, their covariance and degrees of freedom."""
    shape, size = fit.coef.shape[1:], fit.coef[0].size
    fixed = fit.coef.mean(axis=0) if fit.fixed is None else fit.fixed
    cov = np.zeros((size, size)) if fit.fixed_cov is None else fit.fixed_cov
    se, df = np.sqrt(np.diagonal(cov)).reshape(shape), np.full(shape, np.inf)
    fitted = se
    if isinstance(fit, GaussianFit):
        se, df = fit.population_se, fit.population_df
    else:
        se, found = se.copy(), fit.effects
        se[:, 1:], df[:, 1:] = (each.reshape(len(se), -1) for each in (found.se, found.df))
    known = (fitted > 0) & np.isfinite(se)
    wider = np.divide(se, fitted, out=np.ones(shape), where=known).ravel()
    least = float(np.min(df, where=np.isfinite(df) & (df > 0), initial=np.inf))
    return fixed.ravel(), cov * np.outer(wider, wider), least


def _between(fit: GaussianFit | RegressionFit) -> Floats:
    """The covariance of all coefficients between data sets, (d, d)."""
    size = fit.coef[0].size
    if fit.random_cov is None:
        return np.zeros((size, size))
    if isinstance(fit, RegressionFit):
        return random_effects_cov(fit.random_cov, len(fit.coef[0]), counts=not fit.categories)
    return fit.random_cov


def _new_tables(fit: TabularFit, sets: int, draws: int, rng: np.random.Generator) -> TabularFit:
    table = np.broadcast_to(fit.population, (sets, *fit.population.shape))
    s = fit.concentration
    if 0 < s < np.inf:
        parts = rng.standard_gamma(np.broadcast_to(s * table, table.shape))
        total = parts.sum(axis=2, keepdims=True)
        table = np.where(total > 0, parts / np.where(total > 0, total, 1.0), table)
    error = _table_errors(fit, fit.effects.se[None], draws, rng)
    return replace(fit, probabilities=_moved(fit, table, error))


def _table_errors(fit: TabularFit, se: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Errors of log odds ratios, (draws, F or 1, m); zero without draws."""
    if not draws:
        return np.zeros((1, *se.shape))
    known = np.where(np.isfinite(se), se, 0.0)
    return np.asarray(known * rng.standard_normal((draws, *se.shape)))


def _moved(fit: TabularFit, tables: Floats, error: Floats) -> Floats:
    """Tables (F, C, K) with log odds ratios changed, for each draw: (draws * F, C, K)."""
    sizes, (C, K) = [len(levels) for levels in fit.given], fit.population.shape
    draws, F = len(error), len(tables)
    change = np.zeros((draws, error.shape[1], C, K))
    each = error.reshape(*error.shape[:2], K - 1, -1)
    levels = np.stack(np.unravel_index(np.arange(C), sizes)) if sizes else np.zeros((0, C), int)
    start = 0
    for size, level in zip(sizes, levels, strict=True):
        own = np.zeros((*each.shape[:3], size))
        own[..., 1:] = each[..., start : start + size - 1]
        change[..., 1:] += np.moveaxis(own[..., level], 2, 3)
        start += size - 1
    p = tables * np.exp(change - change.max(axis=3, keepdims=True))
    return np.asarray((p / p.sum(axis=3, keepdims=True)).reshape(draws * F, C, K))


def _roots(cov: Floats) -> Floats:
    """A with AA' = cov, (..., d, d)."""
    value, vector = np.linalg.eigh(cov)
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0))[..., None, :])
