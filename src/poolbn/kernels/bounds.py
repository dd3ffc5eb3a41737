"""How low the deviance of a mixed-effects model can be, from least squares. Compiled.

With A_j = Z_j'Z_j, b_j data set j's own least squares and rho their residual squares, D in units of
s = sigma^2, the least deviance is, but for a constant, the least over s, beta and D of

    n log s + rho / s + sum_j [log|I + D A_j| + (b_j - beta)'(D + A_j^-1)^-1 (b_j - beta) / s].

Every term of the sum is at least 0, and falls when A_j becomes smaller. So leave out some data
sets, and put c I <= A_j for the m others, 1 / c the largest eigenvalue of all their A_j^-1, in
columns whose mean A_j is I: with W = I + c D >= I there remains m log|W| + tr(W^-1 X) / s,
X = c sum (b_j - b)(b_j - b)'. W shares the eigenvectors of X at the least, and each of X's
eigenvalues is on its own: see `_least_penalty`. The best of some bounds is taken, each without
those data sets whose eigenvalue is the largest.

REML has n - q for n and adds log|S|, S = sum Z_j'V_j^-1 Z_j. For any k, S is at least its term of
data set k, whose determinant is |A_k| / |I + D A_k|. So log|A_k| takes the place of that data set's
log|I + D A_k|: the largest one bounds best, and m - 1 remain.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    add,
    add_product,
    dot,
    eigen,
    fill,
    jit,
    multiply,
    put,
    sum_of,
    unit,
)
from poolbn.kernels.work import DF, RHO, Space, Work, carve, inline, space

_SETS = 3  # of data sets that a bound is tried with
_SHRINK = 0.5  # what the next set's limit is of the last one's
_HUGE = 1e300  # an eigenvalue that there is
_MARGIN = 1e-9  # of a bound, for rounding
_OFF = 1e-13  # squares off the diagonal that change eigenvalues by less than that
_WEIGHT, _PRODUCT, _SQUARES, _LARGEST = range(4)


@jit
def _least_penalty(lam: Floats, q: int, m: float, n: float, rho: float) -> float:
    """The least over s > 0 of n log s + rho / s + m sum_k h(lam_k / (m s)), lam falling.

    h(x) is x up to 1 and 1 + log x beyond: the least of log w + x / w over w >= 1. With the first
    k beyond 1, s is in closed form; inf where rounding leaves no k that fits.
    """
    least = np.inf
    rest = rho
    for k in range(q):
        rest += lam[k]
    logs = 0.0
    for k in range(q + 1):
        df = n - m * k
        if df > 0.0 and rest > 0.0:
            s = rest / df
            fits = k == 0 or lam[k - 1] >= m * s * (1.0 - 1e-9)
            if fits and (k == q or lam[k] <= m * s * (1.0 + 1e-9)):
                least = min(least, df * (math.log(s) + 1.0) + m * (k + logs))
        if k < q:
            rest -= lam[k]
            if lam[k] > 0.0:
                logs += math.log(lam[k] / m)
    return least


@inline
def _largest_eigenvalues(w: Work, F: int) -> None:
    """w.rt becomes the data sets' own coefficients, w.u[0, 3] at least A^-1's largest eigenvalue.

    inf where A is singular. With the mean of the q eigenvalues and their standard deviation, none
    is larger than the mean and (q - 1)^1/2 times the other (Wolkowicz and Styan 1980); for q <= 2
    or equal ones it is the largest. w.W is work space: R^-1.
    """
    R, V, coef, u = w.R, w.W, w.rt, w.u
    q = R.shape[0]
    fill(u, 0, _WEIGHT, 0.0)
    for a in range(q):
        fill(V, a, a, 0.0)
        for j in range(F):
            if R[a, a, j] > 0.0:
                V[a, a, j] = 1.0 / R[a, a, j]
            else:
                u[0, _WEIGHT, j] = np.inf
    for b in range(q):
        for a in range(b - 1, -1, -1):
            fill(V, a, b, 0.0)
            for k in range(a + 1, b + 1):
                add_product(V, a, b, -1.0, R, a, k, V, k, b)
            multiply(V, a, b, V, a, a)
    fill(u, 0, _LARGEST, 0.0)
    fill(u, 0, _SQUARES, 0.0)
    for a in range(q):
        fill(coef, 0, a, 0.0)
        for b in range(a, q):
            add_product(coef, 0, a, 1.0, V, a, b, w.r, 0, b)
        for b in range(a + 1):  # A^-1 = VV'
            fill(u, 0, _PRODUCT, 0.0)
            for k in range(a, q):
                add_product(u, 0, _PRODUCT, 1.0, V, a, k, V, b, k)
            if a == b:
                add(u, 0, _LARGEST, 1.0 / q, u, 0, _PRODUCT)
            both = 1.0 / q if a == b else 2.0 / q
            add_product(u, 0, _SQUARES, both, u, 0, _PRODUCT, u, 0, _PRODUCT)
    for j in range(F):
        mean = u[0, _LARGEST, j]
        spread = math.sqrt((q - 1.0) * max(u[0, _SQUARES, j] - mean * mean, 0.0))
        u[0, _LARGEST, j] = mean + spread + u[0, _WEIGHT, j]


@unit(numba.float64, space)
def least_deviance(s: Space) -> float:
    """A lower bound of f in `deviance`, from what `compress` left."""
    w = carve(s)
    q, F = s.q, s.F
    rho: float = s.totals[RHO]
    df: float = s.totals[DF]
    coef, u, X, falling = w.rt, w.u, w.S, w.beta
    _largest_eigenvalues(w, F)
    volume = 0.0
    if s.reml:
        volume = -np.inf
        for j in range(F):
            if u[0, _LARGEST, j] <= _HUGE:
                v = 0.0
                for a in range(q):
                    v += 2.0 * math.log(w.R[a, a, j])
                volume = max(volume, v)
    lowest = volume + df * math.log(rho / df)
    limit = _HUGE
    for turn in range(_SETS):
        m = 0.0
        top = 0.0
        fill(u, 0, _WEIGHT, 0.0)
        for j in range(F):
            if u[0, _LARGEST, j] <= limit:
                u[0, _WEIGHT, j] = 1.0
                m += 1.0
                top = max(top, u[0, _LARGEST, j])
        if m < 2.0:
            break
        for a in range(q):
            if turn == 0:  # near 0: no digits are lost below
                v = dot(coef, 0, a, u, 0, _WEIGHT) / m
                for j in range(F):
                    coef[0, a, j] -= v
            put(u, 0, _PRODUCT, 1.0, coef, 0, a)
            multiply(u, 0, _PRODUCT, u, 0, _WEIGHT)
            falling[a] = sum_of(u, 0, _PRODUCT)
            for b in range(a + 1):
                v = dot(u, 0, _PRODUCT, coef, 0, b) - falling[a] * falling[b] / m
                X[a, b] = v / top
                X[b, a] = v / top
        eigen(X, w.C[:0], q, _OFF)
        for a in range(q):  # the eigenvalues, from large to small
            v = max(X[a, a], 0.0)
            k = a
            while k > 0 and falling[k - 1] < v:
                falling[k] = falling[k - 1]
                k -= 1
            falling[k] = v
        least = volume - df + _least_penalty(falling, q, m - (1.0 if s.reml else 0.0), df, rho)
        if abs(least) < np.inf:
            lowest = max(lowest, least - _MARGIN * abs(least))
        limit = _SHRINK * top
    return lowest
