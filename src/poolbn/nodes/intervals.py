"""How sure effects are, with few data sets too: of the population and of each data set.

Letters are those of `nodes.reference`. All is computed from the sufficient statistics of the family
in plain numpy, when it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import CONSTANT_TOLERANCE, EXACT, RANK_TOLERANCE
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import Family, StandardisedStats, imputed
from poolbn.nodes.localfit import LinearFit
from poolbn.nodes.shrinking import Told, error_sds
from poolbn.nodes.terms import Intervals, Sums

Floats = NDArray[np.float64]

_LEAST = 1e-6  # degrees of freedom; a squared cosine with directions that rows do not give
_LEAST_SHARE = 1e-9  # of a variance that is due to missing cells
_HALVINGS = 40  # of the range of a variance
_GRID = 40  # values of a variance between data sets that are averaged over
_FAR = 80.0  # the largest, over the variance of data sets' estimates and that which they show
_RARE = 1e-6  # of the largest likelihood, below which a value is left out


class Own(NamedTuple):
    """Least squares in each data set.

    Attributes:
        coef: in the units of the data, 0 where rows do not give it, (F, q).
        cov: their variances over the residual variance, inf where rows do not give them, (F, q).
        rank: coefficients that rows give, (F,).
        rss: residual squares, (F,).
    """

    coef: Floats
    cov: Floats
    rank: NDArray[np.int64]
    rss: Floats


class Weights(NamedTuple):
    """Of the rows of data sets in a mixed-effects fit, in the units of the data.

    Attributes:
        residual: 1 / sigma_j^2, or what stands for it where that is integrated out, (F,).
        D: covariance of random effects over the residual variance, (F, q, q).
        random_cov: covariance of random effects, (q, q).
    """

    residual: Floats
    D: Floats
    random_cov: Floats


def intervals_of(fit: LinearFit, x: Sums) -> Intervals:
    """The intervals of a fit with a likelihood.

    Without pooling the population's effect is the mean of the data sets' own, and its error is seen
    in their spread.
    """
    if fit.fixed is None:
        return _without_pooling(fit, x)
    if fit.random_cov is None:
        return _complete(fit, x)
    return _partial(fit, x, fit.fixed, fit.random_cov)


def _by_units(
    se: Floats, df: Floats, x: Sums, rows: Floats, units: Floats
) -> tuple[Floats, Floats]:
    """Of coefficients whose columns vary in no unit: units tell of them, not rows.

    A variance between units is by maximum likelihood: squares over units, not over what the
    coefficients leave.

    Args:
        se: standard errors, with a variance that is unbiased for rows, (..., q).
        df: degrees of freedom, (..., q).
        x: the statistics.
        rows: that the coefficients are from, (...).
        units: likewise.
    """
    if x.above is None:
        return se, df
    q, own = len(x.above), np.maximum(units - x.above.sum(), 1.0)
    wider = np.sqrt(units / own * np.maximum(rows - q, 1.0) / rows)
    return (
        np.where(x.above, se * np.maximum(wider, 1.0)[..., None], se),
        np.where(x.above, np.minimum(own[..., None], df), df),
    )


def _without_pooling(fit: LinearFit, x: Sums) -> Intervals:
    F, q = fit.coef.shape
    se, df = fit.coef_sd.copy(), np.repeat((x.n - q)[:, None].astype(np.float64), q, axis=1)
    if x.units is not None:
        se, df = _by_units(se, df, x, x.n, x.units)
    spread, spread_df = se[0].copy(), df[0]
    if F > 1:
        spread = fit.coef.std(axis=0, ddof=1) / math.sqrt(F)
        spread_df = np.full(q, F - 1.0)
    se[:, 0] = math.nan
    return Intervals(spread, spread_df, np.full(q, math.nan), x.center[:-1], se, df)


def _complete(fit: LinearFit, x: Sums) -> Intervals:
    F, q = fit.coef.shape
    assert fit.fixed_se is not None
    df, none = np.full((F, q), float(x.n.sum()) - q), np.full(q, math.nan)
    fixed_se = fit.fixed_se
    if x.units is not None:
        fixed_se, df = _by_units(fixed_se, df, x, x.n.sum(), x.units.sum())
    se = np.repeat(fixed_se[None], F, axis=0)
    se[:, 0] = math.nan
    return Intervals(fixed_se, df[0], none, x.center[:-1], se, df)


def _partial(fit: LinearFit, x: Sums, fixed: Floats, random_cov: Floats) -> Intervals:
    rows = max(float(fit.df.sum()), 1.0)
    se, df, variance = hartung_knapp(x, fixed, _weights(fit, x, random_cov))
    ratio = 1.0 if fit.unbiased else float(x.n.sum()) / rows
    se = np.where(x.varies, se, np.sqrt(variance * ratio))
    others = np.full(len(df), rows)
    if x.units is not None:  # data sets have levels of their own
        units = np.array(x.units.sum() - len(x.n))
        wider, others = _by_units(se, others, x, np.array(rows + len(df)), units)
        se = np.where(x.varies, se, wider)
    df = np.where(x.varies, df, others)
    own = own_estimates(x)
    residual, residual_df = _residuals(fit, x, own)
    spread = _spread(fit, x, random_cov)
    sds = _error_sds(fit, x, spread, residual)
    known = np.isfinite(sds)
    each_df = np.broadcast_to(residual_df[:, None], sds.shape)
    T = to_units(x)
    between = np.diagonal(T @ spread @ T.T)
    seen = between_variances(own.coef, residual[:, None] * own.cov)
    enough = np.isfinite(own.cov).sum(axis=0) > 2
    between = np.where(enough, np.maximum(seen, between), between)
    return Intervals(
        se,
        df,
        np.sqrt(np.where(x.varies, between, 0.0) + se**2),
        x.center[:-1],
        np.where(known, sds, np.append(math.nan, se[1:])),
        np.where(known, each_df, df),
    )


def _spread(fit: LinearFit, x: Sums, random_cov: Floats) -> Floats:
    """Covariance of random effects of standardised columns, (q, q).

    Maximum likelihood finds too little by a factor of D + sampling variance, see `predictive`.
    """
    assert fit.fixed_cov is not None
    C = from_units(x)
    F = max(int((fit.df != 0).sum()), 2)
    lacks = 0.0 if fit.unbiased else F / (F - 1)
    both = np.outer(x.varies, x.varies)
    return np.asarray(C @ random_cov @ C.T + lacks * both * (C @ fit.fixed_cov @ C.T))


def _error_sds(fit: LinearFit, x: Sums, spread: Floats, residual: Floats) -> Floats:
    """Of the level where parents are at their means, and of effects, (F, q); NaN if none vary."""
    relative = np.ones(len(x.n)) if fit.residual_scale is None else residual / fit.residual_scale
    told = Told(*_gram(x), x.scale[-1] ** 2 / residual, relative)
    which = np.flatnonzero(x.varies)
    found = np.full(fit.coef.shape, math.nan)
    at = (fit.coef - np.eye(len(spread))[0] * x.center[-1]) @ from_units(x).T
    found[:, which] = error_sds(told, spread, at, which)
    return found * np.diagonal(to_units(x))


def _weights(fit: LinearFit, x: Sums, random_cov: Floats) -> Weights:
    if fit.residual_scale is None:
        return Weights(1 / fit.sigma2, random_cov / fit.sigma2[:, None, None], random_cov)
    a, s = fit.residual_shape, fit.residual_scale
    weight = np.full(len(x.n), 1 / s)
    if a is not None and math.isfinite(a):
        weight = (a + x.n / 2) / (a * s + fit.squares / 2)
    return Weights(weight, np.repeat(random_cov[None] / s, len(x.n), axis=0), random_cov)


def _residuals(fit: LinearFit, x: Sums, own: Own) -> tuple[Floats, Floats]:
    """Residual variances for the intervals of data sets, and degrees of freedom, (F,) each.

    Those around the data sets' own coefficients, which do not depend on estimated covariances, as
    long as they leave half of the degrees of freedom.
    """
    F, rows = len(x.n), max(float(fit.df.sum()), 1.0)
    if fit.residual_scale is not None:
        a = math.inf if fit.residual_shape is None else fit.residual_shape
        ratio = 1 / _weights(fit, x, np.zeros((1, 1))).residual
        return ratio * x.n.sum() / rows, np.minimum(2 * a + x.n - x.mean.shape[1], rows)
    squares, df = fit.squares, fit.df
    left = x.n - own.rank
    if np.ptp(fit.sigma2) > 0:
        enough = (left > df / 2) & (own.rss > EXACT * squares)
        df = np.maximum(np.where(enough, left, df), 1.0)
        return np.where(enough, own.rss, squares) / df, df
    if left.sum() > rows / 2:
        squares, rows = own.rss, float(left.sum())
    return np.full(F, squares.sum() / rows), np.full(F, rows)


def intervals_with_error(fit: LinearFit, stats: GroupStats, family: Family) -> Intervals:
    """Intervals that contain what missing cells leave open.

    Effects of data sets are fitted in each completed table, under the pooling of the fit.

    Those of the population are uncertain for the spread of data sets' own estimates, which contains
    what is missing; under complete pooling they are like the others. Where a network drew the
    cells, what data sets share is uncertain too, and counts.
    """
    model: Any = fit.pooling
    known = fit.intervals
    assert known is not None
    each = [model.fit(data, family, None) for data in imputed(stats)]
    found = [(other, other.intervals) for other in each if other.intervals is not None]
    if len(found) < 2:
        return known
    others, own = zip(*found, strict=True)

    def centred(coef: Floats) -> Floats:
        return np.column_stack([coef[:, 0] + coef[:, 1:] @ known.at, coef[:, 1:]])

    values = [centred(other.coef) for other in others]
    mean, se, df = rubin(values, [i.se for i in own], [i.df for i in own])
    # The interval is around the estimate of the fit.
    made = known._replace(se=np.hypot(se, mean - centred(fit.coef)), df=df)
    drawn_by_network = stats.filled is not None and stats.filled.by_network
    if fit.fixed is not None and (fit.random_cov is None or drawn_by_network):
        fixed = [other.fixed for other, _ in found if other.fixed is not None]
        of_fits = own if fit.random_cov is None else (known,)
        _, se, df = rubin(
            fixed, [i.population_se for i in of_fits], [i.population_df for i in of_fits]
        )
        if fit.random_cov is not None:  # those of a spread between data sets are few, and stay
            df = known.population_df
        made = made._replace(population_se=se, population_df=df)
    return made


def rubin(
    estimates: Sequence[Floats], errors: Sequence[Floats], dfs: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """Estimate, standard error and degrees of freedom (Rubin, 1987; Barnard and Rubin, 1999)."""
    m = len(estimates)
    between = (1 + 1 / m) * np.var(estimates, axis=0, ddof=1)
    total = np.mean(np.square(errors), axis=0) + between
    share = np.maximum(between / np.where(total > 0, total, 1.0), _LEAST_SHARE)
    df = np.mean(dfs, axis=0)
    with np.errstate(invalid="ignore"):
        left = np.where(np.isinf(df), np.inf, (df + 1) / (df + 3) * df * (1 - share))
    return np.mean(estimates, axis=0), np.sqrt(total), 1 / (share**2 / (m - 1) + 1 / left)


def family_sums(data: StandardisedStats, family: Family, varies: NDArray[np.bool_]) -> Sums:
    """Those of one family."""
    child, parents = family
    columns = np.array([*parents, child])
    return Sums(
        data.n,
        data.mean.take(columns, axis=1),
        data.scatter.take(columns, axis=1).take(columns, axis=2),
        data.center[columns],
        data.scale[columns],
        varies,
        data.weights,
        data.n_units,
        None if data.above_rows is None else np.append(True, data.above_rows[list(parents)]),
        None if data.inside_units is None else data.inside_units[:, columns[:, None], columns],
    )


def own_estimates(x: Sums) -> Own:
    """Least squares in each data set, around its own means so that no digits are lost."""
    F, q = x.mean.shape
    S, c = x.scatter[:, :-1, :-1], x.scatter[:, :-1, -1]
    square = np.diagonal(S, axis1=1, axis2=2)
    constant = square <= CONSTANT_TOLERANCE * x.n[:, None]
    sd = np.sqrt(np.where(constant, 1.0, square))
    R = np.where(constant[:, :, None] | constant[:, None, :], 0.0, S)
    value, vector = np.linalg.eigh(R / (sd[:, :, None] * sd[:, None, :]))
    given = value > RANK_TOLERANCE * (q - 1)
    inverse = np.divide(1.0, value, out=np.zeros_like(value), where=given)
    H = (vector / sd[:, :, None]) * np.sqrt(inverse)[:, None, :]  # S^+ = HH'
    half = np.einsum("jab,ja->jb", H, c)
    square = x.scatter[:, -1, -1]
    rss = square - (half**2).sum(axis=1)
    rss = np.where(rss > RANK_TOLERANCE * square, rss, 0.0) * x.scale[-1] ** 2
    slopes = np.einsum("jab,jb->ja", H, half)
    # The intercept is the mean of the child minus the slopes' part.
    unit = x.scale[-1] / x.scale[:-1]
    away = (x.center[:-1] / x.scale[:-1] + x.mean[:, :-1]) * x.scale[-1]
    coef, cov = np.empty((F, q)), np.empty((F, q))
    coef[:, 1:] = slopes * unit
    coef[:, 0] = x.center[-1] + x.scale[-1] * x.mean[:, -1] - (slopes * away).sum(axis=1)
    cov[:, 1:] = (H**2).sum(axis=2) * (unit / x.scale[-1]) ** 2
    part = np.einsum("jab,ja->jb", H, away / x.scale[-1])
    cov[:, 0] = 1 / x.weight + (part**2).sum(axis=1)
    lost = (np.where(given, 0.0, 1.0)[:, None, :] * vector**2).sum(axis=2) > _LEAST
    cov[:, 1:][lost] = np.inf
    cov[lost.any(axis=1), 0] = np.inf
    coef = np.where(np.isfinite(cov), coef, 0.0)
    return Own(coef, cov, 1 + given.sum(axis=1), rss)


def hartung_knapp(x: Sums, fixed: Floats, weights: Weights) -> tuple[Floats, Floats, Floats]:
    """Of the population's coefficients: standard errors, degrees of freedom, the fit's variances.

    beta = S^-1 sum u_j, S = sum P_j, so its coefficient k changes by a_j = l'e_j with data set j,
    where l is row k of S^-1. If the scores at the true coefficients have covariances Q_j, that of
    the coefficient is sum v_j, v_j = l'Q_j l, and sum a_j^2 / v_j over its expectation tells how
    wrong the scale of these is. With one coefficient and Q_j = P_j that is Hartung and Knapp's
    sum w_j (b_j - beta)^2 / (F - 1), b_j being the data sets' own estimates; here a data set need
    not have one. The degrees of freedom are Satterthwaite's, F - 1 where data sets are alike.

    Q_j is P_j with variances of random effects that the data sets' own coefficients show: those of
    the fit are too small with few data sets, and where residual variances are pooled they are in
    proportion to these. Where data sets are alike Q_j does not matter.
    """
    q, unit = len(fixed), x.scale[-1] ** 2
    T, C = to_units(x), from_units(x)
    A, c = _gram(x)
    beta = C @ (fixed - np.eye(q)[0] * x.center[-1])
    M = _middle(x, A, weights)  # e_j = M_j Z_j'(y_j - Z_j beta)
    weight = (unit * weights.residual)[:, None, None]
    P, e = M @ A, np.einsum("jab,jb->ja", M, c - A @ beta)
    Q = M @ A @ np.swapaxes(M, 1, 2) / weight + P * _between(x, weights, unit, C) @ P
    return from_spread(P, Q, e, T)


def from_spread(P: Floats, Q: Floats, e: Floats, T: Floats) -> tuple[Floats, Floats, Floats]:
    """What scores of data sets say of coefficients; see `hartung_knapp`.

    Args:
        P: how scores change with the coefficients, (F, d, d).
        Q: covariances of scores, (F, d, d).
        e: scores at the estimate, (F, d).
        T: to the coefficients that are asked, (q, d).
    """
    d = P.shape[1]
    inverse = np.linalg.inv(P.sum(axis=0))
    L = inverse @ T.T  # (d, q), a column for each coefficient
    a, X, Y = e @ L, P @ L, Q @ L
    v = np.maximum((Y * L).sum(axis=1), 0.0)
    # Var(a) = diag(v) - YKX' - XKY' + XKQKX', K = S^-1; over the roots of v, it is I + UWU'.
    middle = inverse @ Q.sum(axis=0) @ inverse
    W = np.block([[middle, -inverse], [-inverse, np.zeros((d, d))]])
    U = np.concatenate([X, Y], axis=1)
    total = v.sum(axis=0)
    informed = v > RANK_TOLERANCE * total
    root = np.sqrt(np.where(informed, v, np.inf))
    U = U / root[:, None, :]
    WG = np.einsum("ab,jbk,jck->kac", W, U, U)
    trace = np.trace(WG, axis1=1, axis2=2)
    first = informed.sum(axis=0) + trace
    second = first + trace + np.einsum("kab,kba->k", WG, WG)
    with np.errstate(divide="ignore", invalid="ignore"):
        enough = first > _LEAST
        scale = np.where(enough, ((a / root) ** 2).sum(axis=0) / first, np.nan)
        df = np.where(enough, first**2 / second, np.nan)
    return np.sqrt(total * scale), df, np.einsum("ak,ka->k", L, T)


def _middle(x: Sums, A: Floats, weights: Weights) -> Floats:
    """M_j = (I + A_j D)^-1 / sigma_j^2 of standardised columns, (F, q, q); P_j = M_j A_j."""
    C, unit = from_units(x), x.scale[-1] ** 2
    inverse = np.linalg.inv(np.eye(len(C)) + A @ (unit * C @ weights.D @ C.T))
    return np.asarray(inverse * (unit * weights.residual)[:, None, None])


def _between(x: Sums, weights: Weights, unit: float, C: Floats) -> Floats:
    """Variances of random effects on standardised columns, (q,)."""
    q = len(x.center)
    own = own_estimates(x._replace(center=np.zeros(q), scale=np.ones(q)))
    seen = between_variances(own.coef, own.cov / (unit * weights.residual)[:, None])
    few = np.isfinite(own.cov).sum(axis=0) < 3
    fitted = np.diagonal(C @ weights.random_cov @ C.T)
    return np.where(x.varies, np.where(few, fitted, seen), 0.0)


def between_variances(coef: Floats, variance: Floats, less: int = 3) -> Floats:
    """Variances between data sets beyond those of their own estimates, (q,).

    As Paule and Mandel's, where sum w_j (b_j - b)^2 = d with w_j = 1 / (s_j^2 + t^2); 0 where the
    sum is smaller for t = 0 already. d is not the mean of that chi-square, F - 1, but its most
    probable value, F - 3: in simulations intervals cover best so.

    Args:
        coef: the data sets' own, (F, q).
        variance: of these, inf where there is none, (F, q).
        less: by how much d is less than the number of data sets; 1 for Paule and Mandel's own.
    """
    known = np.isfinite(variance)
    count = known.sum(axis=0)
    df = np.maximum(count - less, 0.5)
    away = np.where(known, coef - coef.mean(axis=0, where=known | (count == 0)), 0.0)
    low, high = np.zeros(len(df)), (away**2).sum(axis=0) / df
    for _ in range(_HALVINGS):
        t2 = (low + high) / 2
        w = 1 / (variance + t2)
        mean = (w * coef).sum(axis=0) / np.where(count > 0, w.sum(axis=0), 1.0)
        more = (w * (coef - mean) ** 2).sum(axis=0) > df
        low, high = np.where(more, t2, low), np.where(more, high, t2)
    return np.where(low > 0, (low + high) / 2, 0.0)


def shrunk(coef: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Effects of data sets, from their own estimates and variances: middle and SD, (F, p) each.

    Given its variance t^2 between data sets an effect is shrunk towards the population's, and its
    variance is known in closed form. But few data sets say little about t^2: its estimate is often
    0, and no effect then seems to vary. So all is averaged over the restricted likelihood of t^2
    (that is, with a flat prior; Morris and Tang, 2011). Two data sets are hardly shrunk.

    NaN for effects that fewer than two data sets estimate.
    """
    known = np.isfinite(variance)
    count = known.sum(axis=0)
    if (count < 2).any():
        center, sd = np.full(coef.shape, np.nan), np.full(coef.shape, np.nan)
        some = count > 1
        if some.any():
            center[:, some], sd[:, some] = shrunk(coef[:, some], variance[:, some])
        return center, sd
    s2 = count / np.where(known, 1 / variance, 0.0).sum(axis=0)  # of a typical data set
    away = np.where(known, coef - coef.mean(axis=0, where=known), 0.0)
    low, high = np.log(s2), np.log(_FAR * (s2 + (away**2).mean(axis=0)))
    # Points that are equally spaced in log(s^2 + t^2), first everywhere and then where it matters.
    for _ in range(2):
        step = (high - low) / _GRID
        at = low + step * (np.arange(_GRID) + 0.5)[:, None]
        t2 = (np.exp(at) - s2)[:, None, :]  # (G, 1, p)
        w = 1 / (variance + t2)
        total = w.sum(axis=1, keepdims=True)
        mean = (w * coef).sum(axis=1, keepdims=True) / total
        squares = (w * (coef - mean) ** 2).sum(axis=1)
        logs = np.where(known, np.log(np.where(known, w, 1.0)), 0.0).sum(axis=1)
        loglik = 0.5 * (logs - np.log(total[:, 0]) - squares) + at
        chance = np.exp(loglik - loglik.max(axis=0))
        there = chance > _RARE
        low, high = (
            np.where(there, at, np.inf).min(axis=0) - step / 2,
            np.where(there, at, -np.inf).max(axis=0) + step / 2,
        )
    chance = (chance / chance.sum(axis=0))[:, None, :]
    kept = 1 - t2 * w  # of the way to the population
    middle = coef + kept * (mean - coef)
    center = (chance * middle).sum(axis=0)
    spread = t2 * kept + kept**2 / total + (middle - center) ** 2
    return center, np.sqrt((chance * spread).sum(axis=0))


def t_interval(
    center: float | Floats, se: float | Floats, df: float | Floats, interval: float
) -> Floats:
    """Lower and upper ends of Student's t intervals, (..., 2)."""
    from scipy.special import stdtrit

    half = stdtrit(df, (1 + interval) / 2) * np.asarray(se)
    return np.asarray(np.stack([center - half, center + half], axis=-1))


def to_units(x: Sums) -> Floats:
    """From coefficients of standardised columns to those of the data, (q, q)."""
    q = len(x.center)
    T = np.zeros((q, q))
    T[0, 0] = x.scale[-1]
    T[0, 1:] = -x.scale[-1] * x.center[:-1] / x.scale[:-1]
    T[range(1, q), range(1, q)] = x.scale[-1] / x.scale[:-1]
    return T


def from_units(x: Sums) -> Floats:
    """And back, (q, q)."""
    q = len(x.center)
    C = np.zeros((q, q))
    C[0, 0] = 1.0
    C[0, 1:] = x.center[:-1]
    C[range(1, q), range(1, q)] = x.scale[:-1]
    C /= x.scale[-1]
    return C


def _gram(x: Sums) -> tuple[Floats, Floats]:
    """A_j = Z_j'Z_j and c_j = Z_j'y_j of the standardised columns, (F, q, q) and (F, q)."""
    z = np.concatenate([np.ones((len(x.n), 1)), x.mean[:, :-1]], axis=1)
    A = x.weight[:, None, None] * z[:, :, None] * z[:, None, :]
    A[:, 1:, 1:] += x.scatter[:, :-1, :-1]
    c = (x.weight * x.mean[:, -1])[:, None] * z
    c[:, 1:] += x.scatter[:, :-1, -1]
    return A, c
