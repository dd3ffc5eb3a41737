"""A fit with a data set that it was not learned from."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from poolbn.moments.groupstats import GroupStats
from poolbn.nodes import predictive
from poolbn.nodes.lmm import expected_variance
from poolbn.nodes.localfit import Floats, LinearFit
from poolbn.nodes.terms import Intervals

Fit = TypeVar("Fit", bound=LinearFit)

# What a fit has of each data set, beside its name.
_ARRAYS = (
    "coef", "coef_cov", "sigma2", "squares", "df", "effective_df", "rows", "total_cov",
    "between_cov",
)  # fmt: skip


_RANK = 1e-9  # of the largest, where an eigenvalue of random effects' covariances is 0


class Adapted(NamedTuple):
    """What a fit has of one data set, but for what follows from it. As in `LinearFit`."""

    coef: Floats
    coef_cov: Floats
    sigma2: float
    squares: float = 0.0
    df: float = 0.0  # none: its variance is from the others
    effective_df: float = 0.0


def adapted(fit: LinearFit, weights: Floats, family: GroupStats) -> Adapted:
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
        family: the sufficient statistics of the parents and, last, the child in the new data set;
            where there are units inside data sets, each row is taken for another unit's.
    """
    assert fit.fixed is not None
    left = 1.0  # of the residual variance, inside units
    if fit.within is not fit and fit.sigma2[0] > 0:
        left = float(fit.within.sigma2[0] / fit.sigma2[0])
    fit = fit.across
    assert fit.fixed is not None
    # As a difference, so that equal variances stay equal to the last bit.
    sigma2 = float(fit.sigma2[0] + np.average(fit.sigma2 - fit.sigma2[0], weights=weights))
    q = len(fit.columns) + 1
    if fit.random_cov is None:
        return Adapted(fit.fixed, np.zeros((q, q)), sigma2)
    scale, shape = fit.residual_scale, fit.residual_shape
    unit = sigma2 if scale is None else scale  # that `random_cov` is for
    if not family.n[0] and scale is None:  # also where there are no residuals
        return Adapted(fit.fixed, fit.random_cov, sigma2)
    b, cov, generalised = random_effects(family, fit.fixed, fit.random_cov, unit)
    effective = float(effective_df(fit.random_cov, cov[None])[0])
    squares = 0.0
    if shape is not None:  # the rows tell about the residual variance, to which D is in proportion
        rows = family.n.astype(np.float64)
        sigma2 = float(expected_variance(shape, unit, rows, np.array([generalised]))[0])
        cov *= sigma2 / unit
        squares = generalised * left
    return Adapted(fit.fixed + b, cov, sigma2, squares, effective_df=effective)


def appended(fit: Fit, level: Hashable, own: Adapted, family: GroupStats) -> Fit:
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
        unit_share=None if fit.unit_share is None else np.append(fit.unit_share, fit.unit_share[0]),
    )
    p, last = len(fit.columns), slice(-1, None)
    parents = (rows, family.mean[:, :p], family.scatter[:, :p, :p])
    total, between = predictive.covariances(fit.across, *parents, at=last)
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
    fit = fit.across
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
    if fit.unit_share is not None:
        arrays["unit_share"] = fit.unit_share[at]
    found = fit.saved_intervals
    if found is not None:
        found = found._replace(se=found.se[at], df=found.df[at])
    return replace(fit, levels=tuple(levels), saved_intervals=found, **arrays)


# Best linear unbiased prediction in one data set: random effects, and how uncertain they are


def random_effects(
    family: GroupStats, beta: Floats, D: Floats, sigma2: float, j: int = 0
) -> tuple[Floats, Floats, float]:
    """Random effects of one data set (BLUP), (q,), and their covariance given its rows, (q, q).

    The third is (y - Z beta)'(I + Z D Z' / sigma2)^-1 (y - Z beta), the generalised residual
    squares.

    b = D Z'(sigma2 I + Z D Z')^-1 (y - Z beta) is, with D = LL' and M = sigma2 I + L'Z'Z L, the
    same as L M^-1 L'Z'(y - Z beta), and its covariance given the rows is sigma2 L M^-1 L'. So D may
    be singular, and only Z'Z and Z'y are needed.

    Args:
        family: the sufficient statistics of the parents and, last, the child.
        beta: fixed effects, (q,).
        D: covariance of the random effects, (q, q).
        sigma2: residual variance, positive unless D is zero.
        j: which data set of the statistics.
    """
    n, mean, scatter = float(family.n[j]), family.mean[j], family.scatter[j]
    q = len(beta)
    back = np.eye(q)
    back[0, 1:] = -mean[:-1]
    C, A = centred_gram(family, j)
    residual = np.empty(q)  # Z'(y - Z beta)
    residual[0] = n * (mean[-1] - C[0] @ beta)
    residual[1:] = scatter[:-1, -1] - scatter[:-1, :-1] @ beta[1:]

    D = C @ D @ C.T
    scale = np.sqrt(np.maximum(np.diagonal(D), 0.0))
    scale[scale == 0] = 1.0  # no random effect, no column of L
    value, vector = np.linalg.eigh(D / np.outer(scale, scale))
    positive = value > q * np.finfo(np.float64).eps
    L = scale[:, None] * vector[:, positive] * np.sqrt(value[positive])  # (q, r)
    M = sigma2 * np.eye(L.shape[1]) + L.T @ A @ L
    half = np.linalg.solve(np.linalg.cholesky(M), L.T)  # L M^-1 L' = half'half
    explained = half @ residual
    b = back @ (half.T @ explained)
    weights = np.append(-beta[1:], 1.0)
    squares = weights @ scatter @ weights + residual[0] ** 2 / max(n, 1.0) - explained @ explained
    half = np.sqrt(sigma2) * half @ back.T
    return b, half.T @ half, max(float(squares), 0.0)


def centred_gram(family: GroupStats, j: int) -> tuple[Floats, Floats]:
    """C and A = Z'Z of one data set with its parents centred at their means there, (q, q) each.

    Coefficients b become C b, of which the first is the mean of the child. Z'Z falls apart into n
    and the scatter, and columns far from zero cost no digits.
    """
    q = len(family.names)
    C, A = np.eye(q), np.zeros((q, q))
    C[0, 1:] = family.mean[j, :-1]
    A[0, 0], A[1:, 1:] = family.n[j], family.scatter[j, :-1, :-1]
    return C, A


def total_cov(fit: LinearFit, j: int, family: GroupStats | None) -> Floats:
    """The covariance of a data set's coefficients with all that is uncertain, (q, q).

    With partial pooling coef_j = beta + b_j, and given beta the mean of b_j is K (y_j - Z_j beta),
    with covariance S = `coef_cov`. So the covariance of coef_j is S + G V G', with V that of beta
    and G = I - K Z_j. With A_j = Z_j'Z_j that is I - S A_j / sigma2. Where A_j is not known, as for
    adapted data sets, it is S D^-1, as long as D can be inverted; else the same on the range of D,
    and I elsewhere, which leaves out how the two are related.

    Args:
        fit: the node.
        j: which of its data sets.
        family: the sufficient statistics of the parents and, last, the child, where they are known.
    """
    S = fit.coef_cov[j]
    if fit.random_cov is None or fit.fixed_cov is None:
        return np.asarray(S)
    G = np.eye(len(S))
    known = family is not None and fit.levels[j] in family.levels and fit.sigma2[j] > 0
    if S.any() and known and family is not None:
        C, A = centred_gram(family, family.levels.index(fit.levels[j]))
        G = np.linalg.solve(C, (np.eye(len(S)) - C @ S @ C.T @ A / fit.sigma2[j]) @ C)
    elif S.any():
        D = fit.random_cov
        if fit.residual_scale is not None:  # in proportion to residual variances
            D = D * (fit.sigma2[j] / fit.residual_scale)
        sd, inverse = _scaled_inverse(D)
        G -= (D - S) / np.outer(sd, sd) @ inverse
        G *= np.outer(sd, 1 / sd)
    return np.asarray(S + G @ fit.fixed_cov @ G.T)


def effective_df(D: Floats, S: Floats) -> Floats:
    """What of a data set's rows its random effects take, tr(V_j Z_j'Z_j), (F,).

    With the covariance D of random effects and S_j given the rows it is tr(I - D^-1 S_j), and where
    D cannot be inverted the same on its range.

    Args:
        D: (q, q).
        S: (F, q, q), in the same units.
    """
    if not D.any():
        return np.zeros(len(S))
    sd, inverse = _scaled_inverse(D)
    units = np.outer(sd, sd)
    rank = np.trace(inverse @ (D / units))
    left = np.einsum("ab,jba->j", inverse, S / units)
    return np.asarray(np.clip(rank - left, 0.0, rank))


def _scaled_inverse(D: Floats) -> tuple[Floats, Floats]:
    """Standard deviations, 1 for none, and the generalised inverse of D in these units."""
    sd = np.sqrt(np.diagonal(D))
    sd = np.where(sd > 0, sd, 1.0)
    return sd, np.linalg.pinv(D / np.outer(sd, sd), rcond=_RANK, hermitian=True)
