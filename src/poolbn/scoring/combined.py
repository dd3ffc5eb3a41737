"""The null distribution of the combined test, by quadrature.

In data sets of one size, scores z_1, ..., z_F are standard normal if x and y are independent. The
likelihood ratio against a mean and a variance between data sets is then

    T = F m^2 + g(s),  g(s) = s - F - F log(s / F) where s > F, else 0,

with m their mean and s their squares around it: F m^2 and s are independent chi-squares with 1 and
F - 1 degrees of freedom. With F between whole numbers it serves for data sets of different sizes
too, see `results/tests.md`. Where a data set has c scores, as of a column with c + 1 levels, it has
c F of them, and the chi-squares c and c (F - 1) degrees of freedom.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from poolbn.arrays import Floats
from poolbn.run.compiling import kernels

_NODES = 40  # of each quadrature
_FAR = 30.0  # statistics from which the last term would lose digits
_ROWS, _COLUMNS = 48, 400  # intervals of the table
# Of the root w > 1 of w - 1 - log w = a^2 / 2 in powers of a, from the second on; as in Stirling's
# series.
_SERIES = (1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200)


def log_p(statistic: ArrayLike, data_sets: ArrayLike, scores: int = 1) -> Floats:
    """Log of the probability of a statistic that large or larger. Shapes broadcast.

    Args:
        statistic: the likelihood ratio T.
        data_sets: how many, 1 or more; between whole numbers too, and infinity is the limit.
        scores: of each data set.

    Examples:
        >>> np.exp(log_p([3.8414588, 4.5], [1, 10])).round(4)
        array([0.05 , 0.051])
    """
    given = np.asarray(statistic, dtype=np.float64), np.asarray(data_sets, dtype=np.float64)
    t, F = np.broadcast_arrays(*given)
    return np.asarray(_scaled(t[..., None], F[..., None], scores)[..., 0] - t / 2)


def _tail(df: int, t: Floats) -> Floats:
    """P(chi-square > t) exp(t / 2), by the recursion of incomplete gamma functions."""
    from scipy.special import erfcx, gamma

    odd = df % 2
    value = erfcx(np.sqrt(t / 2)) if odd else np.ones_like(t)
    for a in np.arange(0.5 if odd else 1.0, df / 2):
        value = value + (t / 2) ** a / gamma(a + 1)
    return np.asarray(value)


def _scaled(t: Floats, F: Floats, scores: int = 1) -> Floats:
    """Log p + t / 2, the last axis of both being 1."""
    from scipy.special import gammainc, gammaincc

    finite = scores * np.where(np.isinf(F), 1e9, F)
    k, u = (finite - scores) / 2, np.sqrt(t)
    alone = _tail(scores, t)
    value = gammainc(k, finite / 2) * alone
    # Where g(s) = h^2 < t: with h = sqrt(t) sin(a) all is smooth.
    x, weight = np.polynomial.legendre.leggauss(_NODES)
    a = (x + 1) * np.pi / 4
    _, density = _density(u * np.sin(a), finite, k)
    part = density * u * np.cos(a) * _tail(scores, (u * np.cos(a)) ** 2)
    value = value + (part * weight * np.pi / 4).sum(axis=-1, keepdims=True)
    # Where g(s) > t.
    top, _ = _density(u, finite, k)
    v, weight = np.polynomial.laguerre.laggauss(_NODES - 8)
    h = np.sqrt(t + 2 * v)
    far = (weight * _density(h, finite, k)[1] / h).sum(axis=-1, keepdims=True)
    near = gammaincc(k, top / 2) * np.exp(np.minimum(t, _FAR) / 2)
    value = value + np.where(t > _FAR, far, near)
    limit = (alone + _tail(scores + 1, t)) / 2
    return np.asarray(np.log(np.where(np.isinf(F), limit, value)))


def _density(h: Floats, F: Floats, k: Floats) -> tuple[Floats, Floats]:
    """Where g(s) = h^2: s, and the density of h = sqrt(g(s)) times exp(h^2 / 2).

    F is the number of scores; s is a chi-square with 2 k degrees of freedom.
    """
    from scipy.special import gammaln

    a = h * np.sqrt(2 / F)
    q = a + a**2 / 2  # w - 1, from above: Newton's steps go down to the root
    for _ in range(12):
        q = q - (q - np.log1p(q) - a**2 / 2) * (1 + q) / np.maximum(q, 1e-300)
    series = a + sum(c * a ** (i + 2) for i, c in enumerate(_SERIES))
    q = np.where(a < 0.1, series, q)
    s = F * (1 + q)
    log_density = -np.log(s) + k * np.log(s / 2) - gammaln(k) - F / 2 - F / 2 * np.log1p(q)
    slope = np.where(a < 1e-8, np.sqrt(2 * F), 2 * h * (1 + q) / np.maximum(q, 1e-300))
    return s, np.exp(log_density) * slope


@cache
def table() -> Floats:
    """What the kernels interpolate in, see `kernels/tails.py`."""
    rows = np.arange(_ROWS + 1) / _ROWS
    with np.errstate(divide="ignore"):
        data_sets = rows**-2.0
    roots = np.linspace(0, kernels("tails").REACH, _COLUMNS + 1)
    made = _scaled((roots**2)[None, :, None], data_sets[:, None, None])[..., 0]
    return np.ascontiguousarray(made)
