"""What one more parent could bring inside data sets, without a fit. Compiled.

All is of deviations from the means of data sets. In data set j, what the parents leave of the child
and of a column x gives the slope b_j of x, with information i_j = S_xx.pa / sigma_j^2, and the
squares that are left with it. Slopes are normal around a common one with variance t^2, residual
variances follow an inverse gamma distribution with shape a and scale a s^2, so with

    Q_j = rss_j(x) + sigma_j^2 (b_j - b)^2 / (1 / i_j + t^2),   b the weighted mean of the b_j,

    log p = F a log(2 a s^2) - sum_j [ (a + n_j / 2) log(2 a s^2 + Q_j) + log(1 + t^2 i_j) / 2 ].

The shape a follows from how much the log variances without x differ, s^2 from the mean of Q_j. The
largest over a few t^2, less what there is without x, estimates what a fit with x would gain. Slopes
that are there already are taken to be each data set's own, and correlations between slopes are not
looked at: an estimate is mostly within a tenth of the gain, and seldom less than half of it.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from poolbn.constants import RANK_TOLERANCE
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cube, entry, integers, jit, matrix, vector

Flags = NDArray[np.bool_]
_SPREADS = (0.0, 0.1, 0.4, 1.5, 6.0, 25.0, 100.0)  # t^2, over the median of 1 / i_j
_LEAST_SHAPE, _MOST_SHAPE = 1.0, 200.0
_TINY = 1e-300


@jit
def _reduce(
    S: Floats, pa: Integers, child: int, U: Floats, Z: Floats, xx: Floats, xy: Floats
) -> float:
    """Of one data set: squares and products with the child that the parents leave, of all columns.

    Returns the squares of the child. Parents that others determine are passed over.
    """
    p, N = pa.shape[0], S.shape[0]
    for a in range(p):
        for b in range(a):
            v = S[pa[b], pa[a]]
            for k in range(b):
                v -= U[k, a] * U[k, b]
            U[b, a] = v * U[b, b] if U[b, b] > 0.0 else 0.0
        v = S[pa[a], pa[a]]
        for k in range(a):
            v -= U[k, a] * U[k, a]
        kept = v > RANK_TOLERANCE * S[pa[a], pa[a]]
        U[a, a] = 1.0 / math.sqrt(v) if kept else 0.0  # the inverse of the pivot
        for x in range(N):
            z = S[pa[a], x]
            for k in range(a):
                z -= U[k, a] * Z[k, x]
            Z[a, x] = z * U[a, a]
    rss = S[child, child]
    for a in range(p):
        rss -= Z[a, child] * Z[a, child]
    for x in range(N):
        v, w = S[x, x], S[child, x]
        for a in range(p):
            v -= Z[a, x] * Z[a, x]
            w -= Z[a, x] * Z[a, child]
        known = v > RANK_TOLERANCE * S[x, x]
        xx[x] = v if known else 0.0
        xy[x] = w if known else 0.0
    left: float = max(rss, 0.0)
    return left


@jit
def _median(values: Floats, F: int) -> float:
    """Of the first F, which are sorted here."""
    for i in range(1, F):
        v, k = values[i], i
        while k > 0 and values[k - 1] > v:
            values[k] = values[k - 1]
            k -= 1
        values[k] = v
    middle: float = values[F // 2]
    return middle


@jit
def _shape(n: Floats, p: int, rss: Floats) -> float:
    """The shape a, from variances of residuals whose logarithms have a variance of 2 / df each."""
    count, mean, noise = 0, 0.0, 0.0
    for j in range(n.shape[0]):
        df = n[j] - p
        if df > 2.0 and rss[j] > 0.0:
            count += 1
            mean += math.log(rss[j] / df)
            noise += 2.0 / df
    if count < 2:
        return _MOST_SHAPE
    mean /= count
    squares = 0.0
    for j in range(n.shape[0]):
        df = n[j] - p
        if df > 2.0 and rss[j] > 0.0:
            squares += (math.log(rss[j] / df) - mean) ** 2
    extra = squares / (count - 1) - noise / count
    return min(max(1.0 / extra, _LEAST_SHAPE), _MOST_SHAPE) if extra > 0.0 else _MOST_SHAPE


@jit
def _density(n: Floats, Q: Floats, df: float, a: float) -> float:
    """The first two terms of log p, with s^2 as Q says."""
    F, total = n.shape[0], 0.0
    for j in range(F):
        total += Q[j]
    scale = 2.0 * a * max(total / df, _TINY)
    value = F * a * math.log(scale)
    for j in range(F):
        value -= (a + 0.5 * n[j]) * math.log(scale + Q[j])
    return float(value)


@jit
def _gain(
    n: Floats, p: int, rss: Floats, xx: Floats, xy: Floats, x: int, a: float, lines: Floats
) -> float:
    """With the column x as one more parent."""
    F = n.shape[0]
    own, slope, error, Q, ordered = lines[0], lines[1], lines[2], lines[3], lines[4]
    df, squares, left, known = 0.0, 0.0, 0.0, 0
    for j in range(F):
        slope[j] = xy[j, x] / xx[j, x] if xx[j, x] > 0.0 else 0.0
        own[j] = max(rss[j] - slope[j] * xy[j, x], 0.0)
        squares += own[j]
        df += max(n[j] - p, 0.5)
        left += max(n[j] - p - 1.0, 0.5)
    s2 = max(squares / left, _TINY)
    for j in range(F):
        variance = (2.0 * a * s2 + own[j]) / (2.0 * a + max(n[j] - p - 1.0, 0.5))
        error[j] = variance / xx[j, x] if xx[j, x] > 0.0 else 0.0
        if xx[j, x] > 0.0:
            ordered[known] = error[j]
            known += 1
    if known == 0:
        return 0.0
    middle = _median(ordered, known)
    base = _density(n, rss, df, a)
    best = -math.inf
    for spread in _SPREADS:
        t2, weights, common = spread * middle, 0.0, 0.0
        for j in range(F):
            if xx[j, x] > 0.0:
                w = 1.0 / (error[j] + t2)
                weights += w
                common += w * slope[j]
        common /= weights
        penalty = 0.0
        for j in range(F):
            Q[j] = own[j]
            if xx[j, x] > 0.0:
                Q[j] += (slope[j] - common) ** 2 * error[j] * xx[j, x] / (error[j] + t2)
                penalty += 0.5 * math.log1p(t2 / error[j])
        best = max(best, _density(n, Q, df, a) - base - penalty)
    return best


@entry(
    vector, cube, integers, integers, integers, numba.boolean[:, ::1], matrix, matrix, matrix,
    matrix, matrix, matrix,
)  # fmt: skip
def promise(
    n: Floats,
    scatter: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    wanted: Flags,
    U: Floats,
    Z: Floats,
    xx: Floats,
    xy: Floats,
    lines: Floats,
    gains: Floats,
) -> None:
    """About what log-likelihoods of children[m] with parents[offsets[m] : offsets[m + 1]] gain.

    Args:
        n: rows of the data sets less one, (F,).
        scatter: (F, N, N).
        children: (M,).
        offsets: (M + 1,).
        parents: of all, one after the other.
        wanted: columns to look at, (M, N).
        U: work space, (p, p), p at least the most parents.
        Z: likewise, (p, N).
        xx: likewise, (F, N).
        xy: likewise, (F, N).
        lines: likewise, (6, F).
        gains: gets them, where wanted, (M, N).
    """
    F, N = scatter.shape[0], scatter.shape[1]
    rss = lines[5]
    for m in range(children.shape[0]):
        pa = parents[offsets[m] : offsets[m + 1]]
        for j in range(F):
            rss[j] = _reduce(scatter[j], pa, children[m], U, Z, xx[j], xy[j])
        a = _shape(n, pa.shape[0], rss)
        for x in range(N):
            if wanted[m, x]:
                gains[m, x] = _gain(n, pa.shape[0], rss, xx, xy, x, a, lines)
