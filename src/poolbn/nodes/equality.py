"""Is an effect, or a residual variance, the same in all data sets? Tests that hold their size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.intervals import Own
from poolbn.nodes.terms import Equality, Sums

Floats = NDArray[np.float64]

_WELCH = 15  # degrees of freedom that each data set needs for Welch's approximation
_DRAWS = 10_000  # of a simulated null distribution
_SEEN = 10  # draws that are larger, for a share of them
_CELLS = 1_000_000  # random numbers of one kind, at most
_RANK = 1e-9  # of the largest, below which a scatter is none


def score_test(held: Floats) -> Equality:
    """A test that a fit holds, from its statistic and degrees of freedom."""
    from scipy.special import chdtrc

    if not np.isfinite(held).all():
        return Equality()
    statistic, df = held.tolist()
    return Equality("score", statistic, df, math.nan, float(chdtrc(df, statistic)))


def equal_effects(own: Own, n: Floats, k: int) -> Equality:
    """Whether coefficient k is the same in all data sets; all others may differ.

    The data sets' own estimates are weighted by their own variances: Welch's test, or its statistic
    against draws under the hypothesis where a data set leaves few degrees of freedom. That holds
    its size whatever the residual variances are. With one residual variance for all it would be the
    F test between the two regressions, which rejects equal effects in 35 to 47% of tables if small
    data sets have residual SDs up to four times those of large ones, and choosing between the two
    by a test of the variances hands a part of that on. So the F test is left for where no two data
    sets show a variance.
    """
    from scipy.special import fdtrc

    df, there = n - own.rank, np.isfinite(own.cov[:, k])
    free = there & (df > 0) & (own.rss > 0)
    m = int(free.sum())
    if m < 2:
        spread = float(_spread(own.coef[there, k], own.cov[there, k])) if there.any() else 0.0
        return one_variance(spread, int(there.sum()) - 1, own.rss, df)
    b, nu = own.coef[free, k], df[free]
    variance = own.cov[free, k] * own.rss[free] / nu
    spread = float(_spread(b, variance))
    if nu.min() < _WELCH:
        p = _simulated(spread, variance, nu)
        return Equality("simulated", spread / (m - 1), m - 1, math.nan, p)
    w = 1 / variance
    part = float(((1 - w / w.sum()) ** 2 / nu).sum())
    value = spread / (m - 1) / (1 + 2 * (m - 2) / (m**2 - 1) * part)
    df2 = (m**2 - 1) / (3 * part)
    return Equality("Welch", value, m - 1, df2, float(fdtrc(m - 1, df2, value)))


def one_variance(gained: float, free: int, rss: Floats, df: Floats) -> Equality:
    """The F test between two regressions, with residual squares and df of data sets, (F,) each."""
    from scipy.special import fdtrc

    rest, total = float(df.sum()), float(rss.sum())
    if free < 1 or rest < 1 or total <= 0:
        return Equality()
    value = gained / free / (total / rest)
    return Equality("F", value, free, rest, float(fdtrc(free, rest, value)))


def _spread(b: Floats, variance: Floats) -> Floats:
    """Sum w (b - mean)^2 with w = 1 / variance, over the last axis."""
    w = 1 / variance
    mean = (w * b).sum(axis=-1, keepdims=True) / w.sum(axis=-1, keepdims=True)
    return np.asarray((w * (b - mean) ** 2).sum(axis=-1))


def _simulated(spread: float, variance: Floats, df: Floats) -> float:
    """The probability of a spread as large, equal effects with these variances given.

    Data sets are sorted first, so that their order does not matter.
    """
    order = np.lexsort((df, variance))
    variance, df = variance[order] / variance.max(), df[order]
    draws = _draws(len(df))
    rng = np.random.default_rng(0)
    b = rng.standard_normal((draws, len(df))) * np.sqrt(variance)
    other = variance * rng.chisquare(df, size=(draws, len(df))) / df
    return tail(_spread(b, other), spread, len(df) - 1, float(df.min()))


def tail(draws: Floats, value: float, free: int, least: float) -> float:
    """The probability of a statistic as large: the share of draws, or beyond them that of F's tail.

    A sum of squares over estimated variances has the tail of the one with the fewest degrees of
    freedom, `least`; that of F with these is put where ten draws are larger. Such p-values are
    rather too large: at 1e-5 by a factor of ten.
    """
    from scipy.special import fdtrc, fdtri

    more = int((draws >= value).sum())
    if more >= _SEEN:
        return (1 + more) / (1 + len(draws))
    edge = np.partition(draws, -_SEEN)[-_SEEN]
    at = fdtri(free, least, 1 - _SEEN / len(draws))
    return float(fdtrc(free, least, at * max(value / edge, 1.0)))


def _draws(cells: int) -> int:
    """How many draws of so many numbers are made."""
    return max(min(_DRAWS, _CELLS // cells), 100)


def equal_variances(rss: Floats, df: Floats) -> Equality:
    """Bartlett's test of the residual variances around each data set's own coefficients."""
    from scipy.special import chdtrc

    there = df > 0
    m, nu, squares = int(there.sum()), df[there], rss[there]
    if m < 2 or not (squares > 0).all():
        return Equality()
    total = nu.sum()
    value = total * math.log(squares.sum() / total) - float(nu @ np.log(squares / nu))
    value = max(value, 0.0) / (1 + ((1 / nu).sum() - 1 / total) / (3 * (m - 1)))
    return Equality("Bartlett", float(value), m - 1, math.nan, float(chdtrc(m - 1, value)))


def equal_blocks(x: Sums, own: Own, columns: Sequence[int]) -> Equality:
    """Whether several coefficients are the same in all data sets; all others may differ.

    What the other parents leave of these columns has in each data set the scatter A_j, and c_j with
    the child. With weights w_j = 1 / sigma_j^2 the sum of squares that different coefficients gain
    is sum w_j c_j'A_j^-1 c_j - (sum w_j c_j)'(sum w_j A_j)^-1 (sum w_j c_j). It is compared with
    draws under the hypothesis; see `equal_effects`.

    Args:
        x: the sufficient statistics of the family.
        own: least squares in each data set.
        columns: which of the parents' columns.
    """
    A, c = _left(x, columns)
    df = x.n - own.rank
    rss = own.rss / x.scale[-1] ** 2
    there = (df > 0) & (rss > 0)
    if there.sum() < 2:
        gained, free = _gain(A, c, np.ones(len(df)))
        return one_variance(float(gained), free, rss, df)
    A, c, df, rss = A[there], c[there], df[there], rss[there]
    gained, free = _gain(A, c, df / rss)
    if free < 1:
        return Equality()
    p = tail(_null(A, rss / df, df), float(gained), free, float(df.min()))
    return Equality("simulated", float(gained) / free, free, math.nan, p)


def _left(x: Sums, columns: Sequence[int]) -> tuple[Floats, Floats]:
    """Scatter of some columns, and with the child, that other parents leave; (F, w, w), (F, w)."""
    others = [k for k in range(x.mean.shape[1] - 1) if k not in columns]
    kept = [*columns, -1]
    S = x.scatter
    across = S[:, kept][:, :, others]
    explained = across @ _inverse(S[:, others][:, :, others]) @ np.swapaxes(across, 1, 2)
    left = S[:, kept][:, :, kept] - explained
    return left[:, :-1, :-1], left[:, :-1, -1]


def _inverse(A: Floats) -> Floats:
    """Of scatters of columns of variance one, where rows give it."""
    return np.asarray(np.linalg.pinv(A, rcond=_RANK, hermitian=True))


def _gain(A: Floats, c: Floats, weight: Floats) -> tuple[Floats, int]:
    """The squares that are gained, (...,), and degrees of freedom; weights (..., F)."""
    each = np.einsum("...ja,jab,...jb->...j", c, _inverse(A), c)
    together = np.einsum("...j,jab->...ab", weight, A)
    u = np.einsum("...j,...ja->...a", weight, c)
    common = np.einsum("...a,...ab,...b->...", u, _inverse(together), u)
    free = int(_rank(A).sum() - _rank(A.sum(axis=0)))
    return (weight * each).sum(axis=-1) - common, free


def _rank(A: Floats) -> NDArray[np.int64]:
    value = np.linalg.eigvalsh(A)
    return np.asarray((value > _RANK * np.maximum(value[..., -1:], _RANK)).sum(axis=-1))


def _null(A: Floats, variance: Floats, df: Floats) -> Floats:
    """Draws of the squares that are gained with equal coefficients."""
    draws, rng = _draws(A[..., 0].size), np.random.default_rng(0)
    value, vector = np.linalg.eigh(A)
    half = vector * np.sqrt(np.maximum(value, 0.0) * variance[:, None])[:, None, :]
    c = np.einsum("jab,djb->dja", half, rng.standard_normal((draws, *A.shape[:2])))
    other = variance * rng.chisquare(df, size=(draws, len(df))) / df
    return _gain(A, c, 1 / other)[0]
