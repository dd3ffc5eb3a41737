"""The effect within data sets beside that between their means, and a test of their difference."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.nodes.intervals import Own, between_variances, own_estimates, t_interval
from poolbn.nodes.localfit import LinearFit
from poolbn.nodes.terms import Sums

Floats = NDArray[np.float64]

NUMBERS = (
    "within", "within_se", "within_lower", "within_upper", "between", "between_se", "between_lower",
    "between_upper", "difference", "se", "df", "p_value",
)  # fmt: skip
_HALVINGS = 40  # of the range of a variance
_LEAST = 1e-6  # a squared cosine with directions that rows do not give
_ROUNDED = 1e-10  # of a column's squares: rounding
_SAME = 1e-9  # pooled standard deviations between means that are the same


class _Slopes(NamedTuple):
    """Of the p parents of a node: estimates, standard errors, degrees of freedom, (p,) each."""

    value: Floats
    se: Floats
    df: Floats


def within_between(x: Sums, fit: LinearFit, interval: float, *, one_slope: bool) -> Floats:
    """Numbers of each of the columns of a node's parents, (p, `NUMBERS`); NaN where rows lack them.

    Args:
        x: the sufficient statistics of the family.
        fit: the node.
        interval: the probability of the intervals.
        one_slope: whether its model has the same slopes in all data sets.
    """
    p = len(x.center) - 1
    own = own_estimates(x)
    variance = _residual_variances(own, x.n)
    if not (variance > 0).all():
        return np.full((p, len(NUMBERS)), math.nan)
    if np.ptp(fit.sigma2) == 0:  # one for all data sets
        variance = np.full(len(variance), np.average(variance, weights=x.n))
    inside = _common_slopes(x) if one_slope and np.ptp(variance) == 0 else _within(x, variance, fit)
    seen = between_variances(own.coef, own.cov * variance[:, None])[1:]
    return _compared(
        inside, _between(x, variance, np.zeros(p) if one_slope else seen), x, fit, interval
    )


def within_between_units(x: Sums, fit: LinearFit, interval: float, *, one_slope: bool) -> Floats:
    """The same inside units, and between the means of units of a data set.

    Rows around the means of their units tell of the first alone, and means, weighted by what they
    are worth, of the second: what is left of whitened statistics. Both have residual variances of
    their own, so that the second does not depend on a variance between units but by its weights.
    """
    assert x.inside is not None
    assert x.units is not None
    size = np.sqrt(np.einsum("jaa->a", x.scatter))
    there = np.einsum("jaa->a", x.inside) > _ROUNDED * size**2  # else they describe units
    inside = x.inside * np.outer(there, there)
    above = x.scatter - inside
    above *= np.outer(*[np.einsum("jaa->a", above) > _ROUNDED * size**2] * 2)
    rows = x._replace(scatter=inside, n=x.n - x.units + 1)  # units have levels of their own
    means = x._replace(scatter=above, n=x.units)
    found = []
    for of in (rows, means):
        variance = _residual_variances(own_estimates(of), of.n)
        if not (variance > 0).all():
            return np.full((len(x.center) - 1, len(NUMBERS)), math.nan)
        if np.ptp(fit.sigma2) == 0:  # one for all data sets
            variance = np.full(len(variance), np.average(variance, weights=of.n))
        equal = one_slope and np.ptp(variance) == 0
        found.append(_common_slopes(of) if equal else _within(of, variance, fit))
    return _compared(found[0], found[1], x, fit, interval)


def _compared(inside: _Slopes, means: _Slopes, x: Sums, fit: LinearFit, interval: float) -> Floats:
    """Numbers of slopes at two levels, and of their difference, (p, `NUMBERS`)."""
    from scipy.special import stdtr

    p = len(x.center) - 1
    ends = [t_interval(*slopes, interval) for slopes in (inside, means)]
    difference, squares = means.value - inside.value, [inside.se**2, means.se**2]
    # A slope that varies is in both: with weights c_j of the means sum c_j x_j = 1, and with
    # about 1 / F for each slope inside, the covariance is about its variance over F.
    fitted = fit.random_cov
    common = np.zeros(p) if fitted is None else np.diagonal(fitted)[1:] / len(x.n)
    common = np.minimum(common, np.minimum(*squares))
    se = np.sqrt(sum(squares) - 2 * common)
    with np.errstate(invalid="ignore", divide="ignore"):
        df = sum(squares) ** 2 / (squares[0] ** 2 / inside.df + squares[1] ** 2 / means.df)
        # An estimate of the one degree of freedom that the means of three data sets leave would
        # be too high: simulated tests at 5% have sizes of 6 to 13% with it, 4 to 7% so.
        df = np.where(means.df == 1, np.minimum((df + 1) / 2, 2.0), df)
        p_value = 2 * stdtr(df, -np.abs(difference) / se)
    columns = (
        inside.value, inside.se, *ends[0].T, means.value, means.se, *ends[1].T,
        difference, se, df, p_value,
    )  # fmt: skip
    return np.column_stack(columns)


def _residual_variances(own: Own, n: Floats) -> Floats:
    """Of each data set around its own coefficients; the common one where rows leave none, (F,)."""
    df = n - own.rank
    common = float(own.rss.sum()) / max(float(df.sum()), 1.0)
    enough = (df > 0) & (own.rss > 0)
    return np.where(enough, own.rss / np.maximum(df, 1.0), common)


def _common_slopes(x: Sums) -> _Slopes:
    """Slopes that all data sets have: least squares with a level for each data set, as R's lm."""
    used, known = _identified(x.scatter.sum(axis=0)[:-1, :-1])
    S, c = x.scatter.sum(axis=0)[np.ix_(used, used)], x.scatter.sum(axis=0)[used, -1]
    inverse = np.linalg.inv(S)
    value = inverse @ c
    df = float(x.n.sum()) - len(x.n) - len(used)
    rss = float(x.scatter[:, -1, -1].sum() - c @ value)
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(np.diagonal(inverse) * np.divide(rss, df))
    return _slopes(x, used, known, value, se, np.full(len(used), df))


def _within(x: Sums, variance: Floats, fit: LinearFit) -> _Slopes:
    """The mean of slopes that vary, from the scatter inside data sets: all means are put at 0.

    Scores u_j = (s_j^2 + S_j D)^-1 c_j have covariances P_j = (s_j^2 + S_j D)^-1 S_j under the
    model, and beta = K sum u_j, K = (sum P_j)^-1. Coefficient k changes by a_j = l'(u_j - P_j beta)
    with data set j, l being its row of K, and E a_j^2 = v_j - g_j'K g_j with g_j = P_j l and
    v_j = l'g_j. So sum a_j^2 v_j / E a_j^2 is right on average under the model, and near the truth
    where slopes vary more than the model says, as the squares are those that the data sets show.
    Degrees of freedom are Satterthwaite's; with data sets that are alike there are F - 1 of them.
    """
    scatter = x.scatter / variance[:, None, None] * x.scale[-1] ** 2
    used, known = _identified(x.scatter.sum(axis=0)[:-1, :-1])
    S, c = scatter[:, used][:, :, used], scatter[:, used, -1]
    unit = x.scale[-1] / x.scale[used]
    D = np.zeros((len(used), len(used)))
    if fit.random_cov is not None:
        slopes = np.array(used, dtype=np.intp) + 1
        D = fit.random_cov[np.ix_(slopes, slopes)] / np.outer(unit, unit)
    middle = np.linalg.inv(np.eye(len(used)) + S @ D)
    P, u = middle @ S, np.einsum("jab,jb->ja", middle, c)
    K = np.linalg.inv(P.sum(axis=0))
    value = K @ u.sum(axis=0)
    a, G = (u - P @ value) @ K, P @ K  # G[j, :, k] is g_j of coefficient k
    v = np.einsum("ak,jak->jk", K, G)
    C = np.einsum("ij,jk->kij", np.eye(len(v)), v) - np.einsum("iak,ab,jbk->kij", G, K, G)
    expected = np.diagonal(C, axis1=1, axis2=2).T
    informed = v > RANK_TOLERANCE * v.sum(axis=0)
    enough = (~informed | (expected > RANK_TOLERANCE * v)).all(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.where(informed, v / expected, 0.0)
        se = np.where(enough, np.sqrt((r * a**2).sum(axis=0)), np.nan)
        df = v.sum(axis=0) ** 2 / np.einsum("ik,jk,kij->k", r, r, C**2)
    return _slopes(x, used, known, value, se, df)


def _identified(gram: Floats) -> tuple[list[int], NDArray[np.bool_]]:
    """Columns with a rank of their own after those before, and which columns rows tell apart."""
    scale = np.sqrt(np.diagonal(gram))
    R = gram / np.outer(*[np.where(scale > 0, scale, 1.0)] * 2)
    used: list[int] = []
    for k in np.flatnonzero(scale**2 > CONSTANT_TOLERANCE).tolist():
        more = [*used, k]
        if np.linalg.eigvalsh(R[more][:, more])[0] > RANK_TOLERANCE:
            used = more
    value, vector = np.linalg.eigh(R)
    lost = (vector[:, value <= RANK_TOLERANCE * len(R)] ** 2).sum(axis=1) > _LEAST
    return used, ~lost


def _slopes(
    x: Sums, used: list[int], known: NDArray[np.bool_], value: Floats, se: Floats, df: Floats
) -> _Slopes:
    """Those of some columns in the units of the data, NaN for others, (p,) each."""
    found = np.full((3, len(x.center) - 1), math.nan)
    unit = x.scale[-1] / x.scale[used]
    found[:, used] = value * unit, se * unit, df
    return _Slopes(*np.where(known, found, math.nan))


def _between(x: Sums, variance: Floats, varies: Floats) -> _Slopes:
    """Slopes of the child's means on the parents' means, weighted by what the means are worth.

    A mean has the error of its rows and of the slopes of its data set, which have the variances
    `varies`. The variance of levels beyond these is Paule and Mandel's: weighted residual squares
    are their degrees of freedom. A column of which all data sets have the same mean is left out.
    """
    F = len(x.n)
    away = x.mean[:, :-1] - x.mean[:, :-1].mean(axis=0)
    used, known = _identified(np.where(np.ptp(away, axis=0) > _SAME, away, 0.0).T @ away)
    y, error = x.mean[:, -1], variance / x.weight / x.scale[-1] ** 2
    error = error + x.mean[:, :-1] ** 2 @ (varies * (x.scale[:-1] / x.scale[-1]) ** 2)
    df = F - 1 - len(used)
    if not used or df < 1:
        return _slopes(x, [], known, *np.empty((3, 0)))
    Z = np.column_stack([np.ones(F), away[:, used]])
    low, high = 0.0, float(np.sum((y - y.mean()) ** 2)) / df
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        squares, _, _ = _weighted(Z, y, 1 / (error + middle))
        low, high = (middle, high) if squares > df else (low, middle)
    squares, beta, inverse = _weighted(Z, y, 1 / (error + high))
    se = np.sqrt(np.diagonal(inverse) * squares / df)
    return _slopes(x, used, known, beta[1:], se[1:], np.full(len(used), float(df)))


def _weighted(Z: Floats, y: Floats, w: Floats) -> tuple[float, Floats, Floats]:
    """Weighted least squares: residual squares, coefficients, inverse Gram matrix."""
    inverse = np.asarray(np.linalg.inv((Z.T * w) @ Z), dtype=np.float64)
    beta = inverse @ (Z.T @ (w * y))
    return float(w @ (y - Z @ beta) ** 2), beta, inverse
