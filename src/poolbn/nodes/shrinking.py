"""Coefficients of data sets, shrunk towards the population's: how far estimates may be off.

The estimate in data set j is the prediction (BLUP) with the covariance D of random effects that
the likelihood prefers. Few data sets say little about D: variances are often 0 and correlations
often 1 or -1, and then the estimates seem to be known well. So for each coefficient k in turn its
standard deviation t between data sets, and the share s of its estimated correlations with the other
coefficients, are averaged over: given both, b_jk is normal with mean m and variance v in closed
form (`kernels.shrinking`), and what is told is

    E[(b_jk - estimate)^2] = sum over s and t of their probability times (v + (m - estimate)^2),

so that the interval has the estimate in its middle, and allows for what the estimate has wrong.

The probability of (s, t) is the restricted likelihood there, with a flat prior of t^2 (Morris and
Tang, 2011) and of s one of exp(-2 p s^2): p correlations were chosen to make the likelihood as
large as they can, by about a unit each where there are none. The other variances are those of
maximum likelihood, which are too small by a factor (F - 1) / F of D + sampling variance; that is
added, see `predictive`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.run.compiling import kernels

Floats = NDArray[np.float64]

_SHARES = np.array([0.0, 0.5, 0.8, 0.95, 1.0])
_PENALTY = 2.0  # of log-probability for a correlation
_GRID = (10, 16)  # values of a standard deviation between data sets: at first, and then
_FAR = 80.0  # the largest variance, over that of estimates and that which they show
_RARE = 1e-6  # of the largest probability: left out; a squared cosine with unknown directions
_NONE = 1e-10  # a squared pivot of correlations that is 0
_LEAST = 1e-9  # information in a direction, over the most: none


class Told(NamedTuple):
    """What the rows of data sets say of their q coefficients: a quadratic log-likelihood.

    Attributes:
        information: (F, q, q).
        score: its derivative where the coefficients are 0, (F, q).
        weight: what both are to be multiplied by, one over the residual variance, (F,).
        relative: of random effects in each data set, what D is to be multiplied by, (F,).
    """

    information: Floats
    score: Floats
    weight: Floats
    relative: Floats


def error_sds(told: Told, D: Floats, estimates: Floats, which: NDArray[np.int64]) -> Floats:
    """Root mean square errors of coefficients in the data sets, (F, m).

    NaN for a coefficient that fewer than two data sets tell of.

    Args:
        told: of the data sets; columns that are about as large as each other lose no digits.
        D: covariance of random effects, (q, q).
        estimates: coefficients of the data sets, (F, q).
        which: the m coefficients.
    """
    sd = np.sqrt(np.maximum(np.diagonal(D), 0.0))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    correlation = D * np.outer(inverse, inverse)
    found = np.full((len(estimates), len(which)), np.nan)
    eye = np.eye(len(D))
    own, variance = own_estimates(np.zeros_like(told.score), told.score, told.information, eye)
    variance = variance / told.weight[:, None]
    for at, k in enumerate(which.tolist()):
        known = np.isfinite(variance[:, k])
        if known.sum() > 1:
            bounds = _range(own[known, k], variance[known, k])
            found[:, at] = _error_sd(told, sd, correlation, k, estimates[:, k], bounds)
    return found


def own_estimates(at: Floats, gradient: Floats, W: Floats, turn: Floats) -> tuple[Floats, Floats]:
    """The data sets' own estimates and variances, inf where rows do not give them, (F, d) each.

    Args:
        at: coefficients at which derivatives are known, (F, d).
        gradient: there, (F, d).
        W: the information, (F, d, d).
        turn: from these coefficients to those that are asked for, (d, d).
    """
    value, vector = np.linalg.eigh(W)
    there = value > _LEAST * value.max(axis=1, keepdims=True)
    inverse = np.divide(1.0, value, out=np.zeros_like(value), where=there)
    half = np.einsum("jab,ja->jb", vector, gradient) * inverse
    turned = turn @ vector
    own = at @ turn.T + np.einsum("jab,jb->ja", turned, half)
    variance = np.einsum("jab,jb->ja", turned**2, inverse)
    share = turned**2 / (turn**2).sum(axis=1)[:, None]
    lost = np.einsum("jab,jb->ja", share, (~there).astype(float)) > _RARE
    return np.where(lost, 0.0, own), np.where(lost, np.inf, variance)


def _range(own: Floats, variance: Floats) -> tuple[float, float, float]:
    """A typical variance s^2 of estimates, and the logarithms of s^2 + t^2 to look at."""
    typical = 1 / float(np.mean(1 / variance))
    return typical, np.log(typical), np.log(_FAR * (typical + float(own.var())))


def _error_sd(
    told: Told,
    sd: Floats,
    correlation: Floats,
    k: int,
    estimate: Floats,
    bounds: tuple[float, float, float],
) -> Floats:
    """The root mean square errors of coefficient k, (F,)."""
    F, q = told.score.shape
    typical, low, high = bounds
    shares = _SHARES if correlation[k].any() and q > 1 else _SHARES[:1]
    roots = np.array([_root(_with_share(correlation, k, share)) for share in shares])
    data = [np.ascontiguousarray(each) for each in told]
    work, kept = np.empty((8, q, q)), np.empty((F + 3, q + 2))
    # Points that are equally spaced in log(s^2 + t^2), first everywhere and then where it matters.
    for size in _GRID:
        step = (high - low) / size
        at = low + step * (np.arange(size) + 0.5)
        grid = np.sqrt(np.maximum(np.exp(at) - typical, 0.0))
        shape = (len(shares), size)
        loglik, mean, variance = np.empty(shape), np.empty((*shape, F)), np.empty((*shape, F))
        posteriors = kernels("shrinking").posteriors
        posteriors(*data, roots, sd, k, grid, work, kept, loglik, mean, variance)
        log = loglik + at - _PENALTY * (q - 1) * shares[:, None] ** 2
        chance = np.exp(log - log.max())
        likely = chance > _RARE
        there = np.flatnonzero(likely.any(axis=0))
        low, high = at[there[0]] - step / 2, at[there[-1]] + step / 2
        kept_shares = likely.any(axis=1)
        shares, roots = shares[kept_shares], roots[kept_shares]
    squares = np.einsum("st,stj->j", chance, variance + (mean - estimate) ** 2)
    return np.asarray(np.sqrt(squares / chance.sum()))


def _with_share(correlation: Floats, k: int, share: float) -> Floats:
    """Correlations of which those with k are a share."""
    R = correlation.copy()
    R[k] *= share
    R[:, k] *= share
    np.fill_diagonal(R, 1.0)
    return R


def _root(R: Floats) -> Floats:
    """Lower L with LL' = R, which may be singular."""
    L = np.zeros_like(R)
    for a in range(len(R)):
        pivot = R[a, a] - L[a] @ L[a]
        if pivot > _NONE:
            L[a, a] = np.sqrt(pivot)
            L[a + 1 :, a] = (R[a + 1 :, a] - L[a + 1 :] @ L[a]) / L[a, a]
    return L
