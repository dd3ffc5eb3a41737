"""The combined test: of columns of all kinds, a vector of scores from each data set.

A discrete column is a block of indicators. In a data set, x and y have the residuals e_x and e_y
that S leaves, and their products sum up to a vector of scores U, with mean 0 and a covariance V
that is known if x and y are independent given S.

- Where x or y is continuous, residuals are those of linear regressions on S in the data set, and V
  is A_xx (x) A_yy / (n - 1 - rank), with A the sums of squares and products of residuals.
- Else, where S is discrete or empty, they are differences from the mean of rows with the same
  levels of S. With any order of these rows as likely, V is exactly A_xx (x) A_yy / (n - 1), summed
  over levels (Cochran, Mantel and Haenszel).
- Else they are those of the models of x given S and of y given S, logistic and count regressions
  with partial pooling. V has the models' variances, less what the fits took.

The effects V^-1 U have a mean and a spread between data sets, and the statistic is the likelihood
ratio against none of both, as for correlations. Its null distribution is by quadrature: in data
sets of one size, scores z_1, ..., z_F are standard normal if x and y are independent, and then

    T = F m^2 + g(s),  g(s) = s - F - F log(s / F) where s > F, else 0,

with m their mean and s their squares around it: F m^2 and s are independent chi-squares with 1 and
F - 1 degrees of freedom. With F between whole numbers it serves for data sets of different sizes
too, see `results/tests.md`. Where a data set has c scores, as of a column with c + 1 levels, it has
c F of them, and the chi-squares c and c (F - 1) degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poolbn.arrays import Floats, Integers
from poolbn.constants import RANK_TOLERANCE
from poolbn.moments.data import Data, numbers
from poolbn.moments.indicators import spans
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.nodes.links import Family, Response
from poolbn.nodes.poolings import Complete, Partial
from poolbn.nodes.regression import fit_regression
from poolbn.run.compiling import kernels
from poolbn.scoring.rotating import Outcome, partial_scatter
from poolbn.tables.kinds import has_levels, is_normal

_NODES = 40  # of each quadrature
_FAR = 30.0  # statistics from which the last term would lose digits
_ROWS, _COLUMNS = 48, 400  # intervals of the table
# Of the root w > 1 of w - 1 - log w = a^2 / 2 in powers of a, from the second on; as in Stirling's
# series.
_SERIES = (1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200)
_GRID = 24  # variances between data sets, from small to the largest possible
_ROUNDS = 40  # of golden sections


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


class _Residuals(NamedTuple):
    """Of R rows: residuals of p columns of numbers, (R, p), and their covariances, (R, p, p).

    `left` is how many of the squares that the model expects a fit to the rows leaves, about.
    """

    values: Floats
    cov: Floats
    left: float


@dataclass(frozen=True, eq=False)
class ScoreVectors:
    """Combined tests of one table; models of columns given others are fitted once."""

    table: Data  # rows, or for discrete columns counts of them
    _models: dict[tuple[str, tuple[str, ...]], _Residuals | None] = field(default_factory=dict)

    @cached_property
    def _numbers(self) -> StandardisedStats:
        return standardise(self.table.stats())

    def test(self, x: str, y: str, given: Sequence[str]) -> Outcome:
        """Of two columns given others."""
        kinds = [self.table.kind(name) for name in (x, y, *given)]
        if any(map(is_normal, kinds[:2])):
            found: tuple[Floats, Floats] | None = self._linear(x, y, given)
        elif all(map(has_levels, kinds[2:])):
            found = self._stratified(x, y, given)
        else:
            found = self._modelled(x, y, given)
        if found is None:
            return Outcome("combined", np.zeros(len(self.table.levels), dtype=bool))
        return _combine(*found)

    def _linear(self, x: str, y: str, given: Sequence[str]) -> tuple[Floats, Floats]:
        columns = spans(self.table.categories)
        at = [columns[self.table.names.index(name)] for name in (x, y, *given)]
        S = [k for span in at[2:] for k in span]
        p, q = len(at[0]), len(at[1])
        U, V = np.zeros((len(self._numbers.n), p * q)), []
        for j, n in enumerate(self._numbers.n):
            left, rank = partial_scatter(self._numbers.scatter[j], [*at[0], *at[1]], S)
            free = n - 1 - rank
            A, B = left[None, :p, :p], left[None, p:, p:]
            U[j] = left[:p, p:].ravel() if free >= 2 else 0.0
            V.append(_kronecker(A, B)[0] / free if free >= 2 else np.zeros((p * q, p * q)))
        return U, np.array(V)

    def _stratified(self, x: str, y: str, given: Sequence[str]) -> tuple[Floats, Floats]:
        rows = self.table.cases([x, y, *given])
        at, F = rows.data_set, len(self.table.levels)
        weight = np.ones(len(at)) if rows.n is None else rows.n.astype(np.float64)
        codes = np.vstack([at, *(column.astype(np.int64) for column in rows.columns[2:])])
        strata, stratum = np.unique(codes, axis=1, return_inverse=True)
        n = np.bincount(stratum, weight)
        centred = []
        for values in (numbers(self.table, [name])[1].T for name in (x, y)):
            sums = _summed(values * weight[:, None], stratum, len(n))
            centred.append(values - (sums / np.maximum(n, 1.0)[:, None])[stratum])
        ex, ey = centred
        U = _summed(_products(ex, ey) * weight[:, None], at, F)
        A, B = (
            _summed(_products(e, e) * weight[:, None], stratum, len(n)).reshape(
                len(n), e.shape[1], e.shape[1]
            )
            for e in centred
        )
        V = _kronecker(A, B) / np.maximum(n - 1, 1.0)[:, None, None]
        m = U.shape[1]
        return U, _summed(V.reshape(len(n), -1), strata[0], F).reshape(F, m, m)

    def _modelled(self, x: str, y: str, given: Sequence[str]) -> tuple[Floats, Floats] | None:
        ex, ey = (self._residuals(name, tuple(sorted(given))) for name in (x, y))
        if ex is None or ey is None:
            return None
        at, F = self.table.cases([x]).data_set, len(self.table.levels)
        U = _summed(_products(ex.values, ey.values), at, F)
        V = _kronecker(ex.cov, ey.cov) * math.sqrt(ex.left * ey.left)
        m = U.shape[1]
        return U, _summed(V.reshape(len(V), -1), at, F).reshape(F, m, m)

    def _residuals(self, name: str, given: tuple[str, ...]) -> _Residuals | None:
        if (name, given) not in self._models:
            self._models[name, given] = _regression(self.table, name, given)
        return self._models[name, given]


def _summed(values: Floats, at: Integers, size: int) -> Floats:
    """Sums of rows, (R, m), by where they belong, (size, m)."""
    return np.array([np.bincount(at, column, minlength=size) for column in values.T]).T


def _products(a: Floats, b: Floats) -> Floats:
    """Of all columns of two, (R, p q)."""
    return np.asarray(np.einsum("ia,ib->iab", a, b).reshape(len(a), -1))


def _kronecker(A: Floats, B: Floats) -> Floats:
    """Of each of two lists of matrices, (R, p, p) and (R, q, q)."""
    size = A.shape[1] * B.shape[1]
    return np.asarray(np.einsum("iac,ibd->iabcd", A, B).reshape(len(A), size, size))


def _regression(table: Data, name: str, given: tuple[str, ...]) -> _Residuals | None:
    """Of a logistic or count regression with random effects; None where there is none."""
    K = len(table.categories[table.names.index(name)])
    response = Response(levels=K) if K else Response(Family.NEGATIVE_BINOMIAL)
    how = Partial() if len(table.levels) > 1 else Complete()
    fit = fit_regression(table, name, given, response, how)
    if not fit.status.ok:
        return None
    rows = table.cases([name])
    X = np.vstack([np.ones(int(rows.offsets[-1])), numbers(table, given)[1]]).T
    eta = np.einsum("ia,ika->ik", X, fit.coef[rows.data_set])
    if not K:
        mean = np.exp(eta)
        values, cov = rows.columns[0][:, None] - mean, (mean + mean**2 / fit.dispersion)[:, :, None]
    else:
        top = np.maximum(eta.max(axis=1, keepdims=True), 0.0)
        odds = np.exp(eta - top)
        p = odds / (np.exp(-top) + odds.sum(axis=1, keepdims=True))
        values = numbers(table, [name])[1].T - p
        cov = np.einsum("ia,ab->iab", p, np.eye(K - 1)) - np.einsum("ia,ib->iab", p, p)
    left = float((values**2).sum() / np.einsum("iaa->", cov))
    return _Residuals(values, cov, min(left, 1.0))


def _combine(U: Floats, V: Floats) -> Outcome:
    """The likelihood ratio of scores U, (F, m), with covariances V, (F, m, m).

    Its first degrees of freedom are how many data sets that tell as much as each other would tell
    as much, its second the scores of each.
    """
    own, vectors = np.linalg.eigh(V.sum(axis=0))
    fine = own > RANK_TOLERANCE * max(own.max(initial=0.0), 1e-300)
    m = int(fine.sum())
    root = vectors[:, fine] / np.sqrt(own[fine])  # in these units the sum of all V is 1
    lam, axes = np.linalg.eigh(root.T @ V @ root)
    informed = lam > RANK_TOLERANCE
    used = np.asarray(informed.any(axis=1))
    if not used.any():
        return Outcome("combined", used)
    lam = np.where(informed, lam, 0.0)
    u = np.where(informed, np.einsum("ja,jab->jb", U @ root, axes), 0.0)
    squares = np.divide(u**2, lam, out=np.zeros_like(u), where=informed)

    def deviance(tau: float) -> float:
        shrunk = 1 / (1 + tau * lam)
        M = np.einsum("jab,jb,jcb->ac", axes, lam * shrunk, axes)
        b = np.einsum("jab,jb->a", axes, shrunk * u)
        quadratic = (squares * shrunk).sum() - b @ np.linalg.lstsq(M, b, rcond=None)[0]
        return float(quadratic + np.log1p(tau * lam).sum())

    far = float(np.divide(squares, lam, out=np.zeros_like(u), where=informed).max())
    grid = np.array([0.0])
    if far > 0:
        low = 0.01 / float(lam.max())
        grid = np.append(grid, np.geomspace(min(low, far), max(4 * far, low), _GRID))
    values = [deviance(tau) for tau in grid]
    k = int(np.argmin(values))
    least = min(values[k], _lowest(deviance, grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]))
    statistic = max(float(squares.sum()) - least, 0.0)
    data_sets = max(float(lam.sum() ** 2 / (lam**2).sum() / m), 1.0)
    return Outcome("combined", used, statistic, data_sets, m, float(log_p(statistic, data_sets, m)))


def _lowest(function: Callable[[float], float], a: float, b: float) -> float:
    """The least value between two, by golden sections."""
    golden = (math.sqrt(5) - 1) / 2
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = function(c), function(d)
    for _ in range(_ROUNDS):
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - golden * (b - a)
            at_c = function(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + golden * (b - a)
            at_d = function(d)
    return float(min(at_c, at_d))
