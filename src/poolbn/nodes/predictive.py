"""What a fitted node says of a new row, with the uncertainty of all its estimates: Student's t.

At z = (1, parents) the child of data set j is around z'coef_j with the squared scale

    u_j + z'C_j z,    C_j = W_j + E_j,
    W_j = u_j V_j A_j V_j,    E_j = T_j (r_j (D + k B) + B) T_j',    T_j = I - V_j A_j.

A_j = Z_j'Z_j, and u_j V_j is the covariance of the random effects given the rows. D is that of the
random effects in the population, B that of the fixed effects. C_j is the usual sum u_j V_j +
T_j B T_j' (Henderson), but for k: by what comes from residuals, W_j, and by what comes from the
differences between data sets, E_j. Without rows V_j A_j = 0 and what is left is a new data set.
Without random effects E_j = 0 and C_j is the covariance of least squares.

Residual variance and degrees of freedom. Least squares: squares / (n - q), and n - q. Shared and
separate variances of partial pooling likewise, with the degrees of freedom that random effects
leave. Pooled variances are inverse gamma with shape v = a + n_j / 2 and scale g = a s + squares / 2
once the rows are seen: u_j = g / v with 2v degrees of freedom, and r_j = u_j / s because random
effects are in proportion to residuals (else r_j = 1). u_j is then multiplied by the bias of
maximum likelihood that a shared variance would have, and the common value s is known with the
degrees of freedom of all data sets, which matters to u_j by (a / v)^2.

Few data sets. Maximum likelihood has the mean square of |F| random effects around a mean that it
estimated from them, and so finds too little by a factor (|F| - 1) / |F| of D + sampling variance,
which is |F| B. So k = |F| / (|F| - 1), for the coefficients that vary; REML needs none: k = 0.
What remains is known with |F| - 1 degrees of freedom. Scales of two kinds are added by
Satterthwaite's rule; the 2v degrees of freedom of pooled variances are common to both kinds:

    1 / df = 1 / 2v + [(u + z'Wz)^2 / df_within + (z'Ez)^2 / (|F| - 1)] / (u + z'Cz)^2.

Simulated coverage of 95% intervals (3 to 20 data sets of 20 and 50 rows, slope SD 0 to 0.5; 1000
tables each) is 94.3 to 95.3% in known data sets and in new ones, where the same forms with
estimates in place of k, df and the unbiased variance have 91.4 to 95% in new ones; and densities of
new rows are about as high (`benchmarks/prediction_coverage.py`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.localfit import Floats, LinearFit, Status
from poolbn.nodes.predicting import Predictive

_NO_ROWS = np.zeros(1)


def predictive(fit: LinearFit) -> Predictive:
    """The distribution of new rows in each data set of a fit.

    Where a data set without pooling has no more rows than coefficients, `scale2` is NaN: there is
    no such distribution.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"], pooling="complete")
        >>> predictive(fit).within_df
        array([748., 748., 748., 748.])
    """
    if fit.status is Status.GIVEN:
        certain = np.full(len(fit.levels), math.inf)
        none = np.zeros_like(fit.coef_cov)
        return Predictive(fit.coef, fit.coef_cov, none, fit.sigma2, certain, certain, math.inf)
    if fit.experiments:
        return _where_set(fit)
    u, df, within_df = _residuals(fit, fit.rows, fit.squares, fit.df)
    cov, between = uncertainty(fit)
    u = u * _of_rows(fit)
    return Predictive(
        coef=fit.coef,
        cov=cov,
        between=between,
        scale2=u * _bias(fit),
        df=df,
        within_df=within_df,
        between_df=_between_df(fit),
    )


def _where_set(fit: LinearFit) -> Predictive:
    """With data sets in which the node was set: normal around its mean there."""
    cov, between = uncertainty(fit)
    own = predictive(fit.unset)
    free = np.array([level not in fit.experiments for level in fit.levels])
    scale2, df, within_df = fit.sigma2.copy(), *np.full((2, len(free)), math.inf)
    scale2[free], df[free], within_df[free] = own.scale2, own.df, own.within_df
    return replace(own, coef=fit.coef, cov=cov, between=between, scale2=scale2, df=df,
                   within_df=within_df)  # fmt: skip


def new_data_set(fit: LinearFit) -> Predictive:
    """The distribution of rows of a data set that the fit knows nothing of; F = 1.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
        >>> mean, scale2, df = new_data_set(fit).at(np.array([[1.0, 30.0]]), 0)
        >>> mean.round(2), np.sqrt(scale2).round(2), df.round()
        (array([28.57]), array([7.37]), array([128.]))
    """
    fit = fit.unset
    if fit.fixed is None:
        raise ValueError(f"{fit.child!r} has no pooling")
    u, df, within_df = _residuals(fit, _NO_ROWS, _NO_ROWS, _NO_ROWS)
    between = _population(fit, u)
    total = between
    if fit.random_cov is None:
        assert fit.fixed_cov is not None
        total = fit.fixed_cov[None]
    scale2 = u * _bias(fit) * _of_rows(fit)[:1]
    return Predictive(fit.fixed[None], total, between, scale2, df, within_df, _between_df(fit))


def _of_rows(fit: LinearFit) -> Floats:
    """The variance of rows of units that are not known over that of residuals, (F,)."""
    share = fit.unit_share
    if share is None or (share == 1).all():
        return np.ones(len(fit.levels))
    return np.asarray(1 / (1 - share))


_made: WeakKeyDictionary[LinearFit, tuple[Floats, Floats]] = WeakKeyDictionary()


def uncertainty(fit: LinearFit) -> tuple[Floats, Floats]:
    """C_j and E_j, `total_cov` and `between_cov` of a fit, made once, (F, q, q) each."""
    if fit.total_cov is not None and fit.between_cov is not None:
        return fit.total_cov, fit.between_cov
    if fit not in _made:
        assert fit.sums is not None
        x, parents = fit.sums, slice(-1)
        scale = x.scale[parents]
        mean = x.center[parents] + scale * x.mean[:, parents]
        scatter = np.outer(scale, scale) * x.scatter[:, parents, parents]
        _made[fit] = covariances(fit.within, x.weight, mean, scatter)
    return _made[fit]


def covariances(
    fit: LinearFit, rows: Floats, mean: Floats, scatter: Floats, at: slice = slice(None)
) -> tuple[Floats, Floats]:
    """C_j and E_j, `total_cov` and `between_cov` of a fit that has all else, (F, q, q) each.

    Parents are centred at their means in the data set: then Z'Z falls apart into n and the scatter,
    and columns far from zero cost no digits.

    Args:
        fit: the node.
        rows: rows that data sets gave to the node, (F,).
        mean: means of the parents in data sets, (F, q - 1).
        scatter: their scatter in data sets, (F, q - 1, q - 1).
        at: which data sets of the fit these are.
    """
    F, q = len(rows), len(fit.columns) + 1
    C, A = np.tile(np.eye(q), (F, 1, 1)), np.zeros((F, q, q))  # coefficients b become C b
    C[:, 0, 1:] = mean
    A[:, 0, 0], A[:, 1:, 1:] = rows, scatter * (rows > 0)[:, None, None]
    V = _in(C, fit.coef_cov[at]) / _positive(fit.sigma2[at])
    return _covariances(fit, np.eye(q) - V @ A, C, at)


def _covariances(fit: LinearFit, T: Floats, C: Floats, at: slice) -> tuple[Floats, Floats]:
    """From T_j for coefficients C b."""
    if fit.random_cov is None:
        cov = fit.coef_cov[at] if fit.fixed_cov is None else np.tile(fit.fixed_cov, (len(T), 1, 1))
        return cov, np.zeros_like(cov)
    if fit.status is Status.GIVEN:
        return fit.coef_cov[at], np.zeros_like(T)
    u, _, _ = _residuals(fit, fit.rows[at], fit.squares[at], fit.df[at])
    S = _in(C, fit.coef_cov[at]) * (u * _bias(fit))[:, None, None] / _positive(fit.sigma2[at])
    W = (np.eye(T.shape[1]) - T) @ S
    E = _in(T, _in(C, _population(fit, u)))
    back = np.asarray(np.linalg.inv(C))
    symmetric = np.asarray((W + np.swapaxes(W, 1, 2)) / 2)
    return _in(back, symmetric + E), _in(back, E)


def _in(C: Floats, covariance: Floats) -> Floats:
    """The covariance of C b from that of b."""
    return np.asarray(C @ covariance @ np.swapaxes(C, 1, 2))


def _positive(variance: Floats) -> Floats:
    return np.where(variance > 0, variance, 1.0)[:, None, None]


def _learned(fit: LinearFit) -> NDArray[np.bool_]:
    """Which data sets the fit learned from, (F,): not those that came later or were left out."""
    return np.asarray(fit.df != 0)


def _between_df(fit: LinearFit) -> float:
    if fit.random_cov is None:
        return math.inf
    return max(float(_learned(fit).sum()) - 1, 1.0)


def _population(fit: LinearFit, u: Floats) -> Floats:
    """R (D + k B) + B in data sets of residual variances u, (F, q, q); 0 without random effects."""
    D, B = fit.random_cov, fit.fixed_cov
    if D is None or B is None:
        return np.zeros((len(u), *fit.coef_cov.shape[1:]))
    F = max(_learned(fit).sum(), 2)
    varies = np.diagonal(D) > 0
    if not fit.unbiased:
        D = D + F / (F - 1) * _of(B, varies)
    r = np.ones(len(u)) if fit.residual_scale is None else u / fit.residual_scale
    return np.asarray(r[:, None, None] * D + B)


def _of(B: Floats, some: NDArray[np.bool_]) -> Floats:
    """The covariance of some coefficients with the others known, else 0; wherever parents are 0."""
    r, o = np.flatnonzero(some), np.flatnonzero(~some)
    out = np.zeros_like(B)
    others = np.linalg.pinv(B[np.ix_(o, o)], hermitian=True)
    out[np.ix_(r, r)] = B[np.ix_(r, r)] - B[np.ix_(r, o)] @ others @ B[np.ix_(o, r)]
    return out


def _bias(fit: LinearFit) -> float:
    """What pooled variances are to be multiplied by; others have none left."""
    if fit.residual_scale is None:
        return 1.0
    learned = _learned(fit)
    return float((fit.rows - fit.effective_df)[learned].sum() / fit.df[learned].sum())


def _residuals(
    fit: LinearFit, rows: Floats, squares: Floats, own_df: Floats
) -> tuple[Floats, Floats, Floats]:
    """Variances u but for the bias, 2v or inf, and the df of u, for data sets like these, (F,)."""
    learned = _learned(fit)
    all_df = float(fit.df[learned].sum())
    certain, every = np.full(len(rows), math.inf), np.full(len(rows), all_df)
    if fit.residual_scale is not None and fit.residual_shape is not None:
        a, s = fit.residual_shape, fit.residual_scale
        if math.isinf(a):
            return np.full(len(rows), s), certain, every
        v, g = a + rows / 2, a * s + squares / 2
        return g / v, 2 * v, every * (v / a) ** 2
    own = np.divide(squares, own_df, out=np.full(len(rows), math.nan), where=own_df > 0)
    if fit.fixed is None:  # without rows its variance is what the fit says
        own = np.where(rows == 0, fit.sigma2, own)
        return own, certain, np.where(own_df > 0, own_df, math.inf)
    u = float(fit.squares[learned].sum()) / all_df if all_df > 0 else math.nan
    if fit.counts.own == 0 or not fit.status.ok:
        return np.full(len(rows), u), certain, every
    # Separate variances: a data set without one has that of an inverse gamma distribution with the
    # mean and, beyond chance, the coefficient of variation of the others, 1 / sqrt(a - 2).
    df = fit.df[learned]
    excess = np.average((fit.squares[learned] / df / u - 1) ** 2, weights=df)
    c = max(float(excess) - 2 * (len(df) - 1) / all_df, 0.0)
    other_df = 1 / (1 / all_df + c / (4 * c + 2))
    u *= (1 + c) / (1 + 2 * c)
    has = own_df > 0
    return np.where(has, own, u), certain, np.where(has, own_df, other_df)
