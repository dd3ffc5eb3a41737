"""The mixed-effects model with a residual variance for each data set. Compiled; nothing allocates.

Data set j has residual variance s exp(l_j), s a unit that stays, and random effects with covariance
s D, which does not depend on j. Its pseudo rows of `deviance`, weighted with exp(-l_j / 2), and
those of the child also divided by s^1/2, turn it into the model of `deviance` with variance 1: with
these rows the deviance (without n log 2 pi s) is

    f = sum log|W_j| + n_j l_j + x_j,   x_j = rho_j + |W_j^-1/2 (r_j - R_j beta)|^2,

and P_j, e_j, G = df/dD, the derivatives in (L, beta) are those of `deviance` with n / rss = 1.
With K = L'P L, m = L'e and t = e - P L m = R'W^-2 (r - R beta), all of data set j,

    df/dl        = n - tr K - x + |m|^2,
    d2f/dl^2     = tr K - |K|^2 + x - 3 |m|^2 + 2 m'K m,    its expectation n - 2 tr K + |K|^2,
    d2f/dl dbeta = 2 t,    its expectation 0,
    d2f/dl dL_ab = 2 [e_a (m - K m)_b + m_b t_a - (P L - P L K)_ab].

Newton steps go over (L, beta, l) together. The l_j do not meet each other: each is eliminated
alone, then beta, so that only L is damped. The search is that of `optimise`.

Where data set j can be fitted exactly, rho_j = 0, f falls without bound as l_j does: there is no
maximum. Else there is one, as no pooling with a variance for each data set bounds the likelihood.
"""

from __future__ import annotations

import math
import sys
from typing import Annotated, NamedTuple

import numpy as np

from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.kernels import deviance
from poolbn.kernels.cutting import layout
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    add,
    add_product,
    add_products,
    cholesky,
    dot,
    fill,
    jit,
    multiply,
    put,
    raise_squares,
)
from poolbn.kernels.optimise import minimiser
from poolbn.kernels.work import (
    RAISED,
    Result,
    Space,
    carve,
    inline,
)

_ROWS_MORE = 8.0  # with variance s, that a start adds to those of a data set
_FARTHEST = 2.0  # that l_j goes in one step
_LEAST = 0.05  # of the expected curvature in l_j, where the observed one is less
_WEIGHT, _SQUARE, _SLOPE, _CURVE, _LOWEST = range(5)  # rows of `Apart.data`
_STEP = _LOWEST  # once the curvature is known


class Apart(NamedTuple):
    """Arrays beside `Work`. The parameters w.y are l, F of them.

    beta is measured by w.C, so that its own second derivative is 2 I.
    """

    data: Annotated[Floats, "1, 5, F"]  # weights, x, df/dl, d2f/dl^2, its least
    R: Annotated[Floats, "q, q, F"]  # pseudo rows without weights
    r: Annotated[Floats, "1, q, F"]  # those of the child
    rest: Annotated[Floats, "1, r, F"]  # m - K m
    Y: Annotated[Floats, "1, size + q, F"]  # d2f between l and L, then beta
    V: Annotated[Floats, "size, q"]  # d2f between L and beta
    S: Annotated[Floats, "q, q"]  # d2f/dbeta^2
    C: Annotated[Floats, "q, q"]  # its Cholesky factor
    g: Annotated[Floats, "q"]  # df/dbeta
    step: Annotated[Floats, "q"]  # of beta
    unit: Annotated[Floats, "1"]  # s


SCORING = False  # see `optimise`
carve_apart, shapes = layout(Apart, "more")


@jit
def evaluate(s: Space, L: Floats, k: int, steps: int) -> float:
    """Deviance at the k columns of L and at l, with the best beta; see `deviance.profile`."""
    w, p = carve(s), carve_apart(s)
    n, q = s.n, s.q
    data = p.data
    f, rho = 0.0, 0.0
    for j in range(s.F):
        f += n[j] * w.y[j]
        weight = math.exp(-0.5 * w.y[j])
        data[0, _WEIGHT, j] = weight
        data[0, _SQUARE, j] = w.rho[0, 0, j] * weight * weight
        rho += data[0, _SQUARE, j]
    for i in range(q):
        put(w.r, 0, i, 1.0, p.r, 0, i)
        multiply(w.r, 0, i, data, 0, _WEIGHT)
        for a in range(i, q):
            put(w.R, i, a, 1.0, p.R, i, a)
            multiply(w.R, i, a, data, 0, _WEIGHT)
    determinants: float
    squares: float
    determinants, squares = deviance.profile(s, rho, L, k)
    add_products(data, 0, _SQUARE, 1.0, w.rt, 0, w.rt, 0, q)
    return f + determinants + squares


@inline
def gradient(s: Space) -> None:
    """Fill G."""
    deviance.gradient(s, 1.0)


@jit
def fill_derivatives(s: Space, k: int) -> int:
    """g, H as in `deviance` but with beta free, and those of `Apart`; returns the entries of L."""
    w, p = carve(s), carve_apart(s)
    n, q = s.n, s.q
    random = s.r
    Y, PL, K, m, e = p.Y, w.PL, w.K, w.m, w.e
    size: int = deviance.hessian(s, k, 1.0, 0.0)
    for b in range(k):
        put(p.rest, 0, b, 1.0, m, 0, b)
        for d in range(k):
            add_product(p.rest, 0, b, -1.0, K, max(b, d), min(b, d), m, 0, d)
    for j in range(s.F):
        trace, square, mm, m_rest = 0.0, 0.0, 0.0, 0.0
        for b in range(k):
            trace += K[b, b, j]
            square += K[b, b, j] * K[b, b, j]
            for d in range(b):
                square += 2.0 * K[b, d, j] * K[b, d, j]
            mm += m[0, b, j] * m[0, b, j]
            m_rest += m[0, b, j] * p.rest[0, b, j]
        x_j = p.data[0, _SQUARE, j]
        slope = n[j] - trace - x_j + mm
        p.data[0, _SLOPE, j] = slope
        p.data[0, _CURVE, j] = trace - square + x_j - mm - 2.0 * m_rest
        # Alone, l_j goes at most 1 in a step: where it is too large, f is nearly linear in it.
        p.data[0, _LOWEST, j] = max(_LEAST * (n[j] - 2.0 * trace + square), abs(slope))
    for a in range(q):
        put(Y, 0, size + a, 2.0, e, 0, a)
        for b in range(k):
            add_product(Y, 0, size + a, -2.0, PL, b, a, m, 0, b)
    x = 0
    for b in range(k):
        for i in range(b, random):
            a = s.perm[i]
            put(Y, 0, x, -2.0, PL, b, a)
            add_product(Y, 0, x, 1.0, m, 0, b, Y, 0, size + a)
            add_product(Y, 0, x, 2.0, e, 0, a, p.rest, 0, b)
            for d in range(k):
                add_product(Y, 0, x, 2.0, PL, d, a, K, max(b, d), min(b, d))
            x += 1
    for a in range(q):
        for h in range(a):
            add(Y, 0, size + a, -w.C[a, h], Y, 0, size + h)
        put(Y, 0, size + a, 1.0 / w.C[a, a], Y, 0, size + a)
    for x in range(size):
        for a in range(q):
            p.V[x, a] = 2.0 * w.V[x, a]
        for y in range(x + 1):
            v = 0.0
            for a in range(q):
                v += w.V[x, a] * w.V[y, a]
            w.H[x, y] += 2.0 * v
    return size


@inline
def derivatives(s: Space, k: int, f: float) -> tuple[int, float]:
    """Nothing else to try."""
    return fill_derivatives(s, k), np.inf


@inline
def eliminate(s: Space, size: int, brake: float) -> float:
    """Take l and beta out of w.g and w.H.

    df/dl and Y are divided by the root of d2f/dl^2, whose inverse stays; p.V and p.g by p.C.
    """
    w, p = carve(s), carve_apart(s)
    q = s.q
    data, Y = p.data, p.Y
    gain = 0.0
    for j in range(s.F):
        data[0, _CURVE, j] = 1.0 / math.sqrt(max(data[0, _CURVE, j], data[0, _LOWEST, j]))
        data[0, _SLOPE, j] *= data[0, _CURVE, j]
        gain += 0.5 * data[0, _SLOPE, j] * data[0, _SLOPE, j]
    for x in range(size + q):
        multiply(Y, 0, x, data, 0, _CURVE)
    for a in range(q):
        p.g[a] = -dot(Y, 0, size + a, data, 0, _SLOPE)
        for c in range(a + 1):
            p.S[a, c] = (2.0 if a == c else 0.0) - dot(Y, 0, size + a, Y, 0, size + c)
    if not cholesky(p.S, p.C, q, 0.0):  # expected instead of observed
        for a in range(q):
            fill(Y, 0, size + a, 0.0)
            p.g[a] = 0.0
            for c in range(a + 1):
                p.C[a, c] = math.sqrt(2.0) if a == c else 0.0
    for a in range(q):
        for h in range(a):
            p.g[a] -= p.C[a, h] * p.g[h]
        p.g[a] /= p.C[a, a]
        gain += 0.5 * p.g[a] * p.g[a]
    for x in range(size):
        w.g[x] -= dot(Y, 0, x, data, 0, _SLOPE)
        for a in range(q):
            v = p.V[x, a] - dot(Y, 0, x, Y, 0, size + a)
            for h in range(a):
                v -= p.C[a, h] * p.V[x, h]
            p.V[x, a] = v / p.C[a, a]
            w.g[x] -= p.V[x, a] * p.g[a]
        for y in range(x + 1):
            v = dot(Y, 0, x, Y, 0, y)
            for a in range(q):
                v += p.V[x, a] * p.V[y, a]
            w.H[x, y] -= v
    return gain


@inline
def step(s: Space, size: int, part: float) -> None:
    """Move l."""
    w, p = carve(s), carve_apart(s)
    q = s.q
    data = p.data
    put(data, 0, _STEP, -1.0, data, 0, _SLOPE)
    for x in range(size):
        add(data, 0, _STEP, -w.unit[x] * w.step[x], p.Y, 0, x)
    for a in range(q - 1, -1, -1):
        v = -p.g[a]
        for x in range(size):
            v -= p.V[x, a] * w.unit[x] * w.step[x]
        for h in range(a + 1, q):
            v -= p.C[h, a] * p.step[h]
        p.step[a] = v / p.C[a, a]
        add(data, 0, _STEP, -p.step[a], p.Y, 0, size + a)
    for j in range(s.F):
        step = data[0, _STEP, j] * data[0, _CURVE, j]
        w.y[j] += part * max(-_FARTHEST, min(_FARTHEST, step))


@jit
def relax(part: float, brake: float, ratio: float) -> tuple[float, float]:
    """Go on with this part of the step, or twice that."""
    return min(2.0 * part, 1.0) if ratio > 0.75 else part, 0.0


@inline
def guess(s: Space, own: bool) -> None:
    """Start l at the data set's own variance, shrunk towards s or not."""
    w = carve(s)
    more = 0.0 if own else _ROWS_MORE
    for j in range(s.F):
        rows = max(s.n[j] - s.q, 1.0) + more
        w.y[j] = math.log((w.rho[0, 0, j] + more) / rows)


@inline
def prepare(s: Space, scatter: Floats, child: int, least: float) -> tuple[float, float, bool]:
    """The unit s is the geometric mean of the data sets' own variances, weighted by their df."""
    w, p = carve(s), carve_apart(s)
    for i in range(p.data.shape[1]):
        fill(p.data, 0, i, 0.0)
    s.totals[RAISED] = raise_squares(w.rho[0, 0], s.n, s.q, least)
    exists = True
    total, rows = 0.0, 0.0
    for j in range(s.F):
        rho = w.rho[0, 0, j]
        rounding = max(RANK_TOLERANCE * scatter[j, child, child], CONSTANT_TOLERANCE * s.n[j])
        exists = exists and rho > rounding
        df = max(s.n[j] - s.q, 1.0)
        total += df * math.log(rho / df)
        rows += df
    unit = math.exp(total / rows)
    p.unit[0] = unit
    put(w.rho, 0, 0, 1.0 / unit, w.rho, 0, 0)
    for i in range(s.q):
        put(p.r, 0, i, 1.0 / math.sqrt(unit), w.r, 0, i)
        for a in range(i, s.q):
            put(p.R, i, a, 1.0, w.R, i, a)
    return -np.inf, s.n.sum() * math.log(2.0 * math.pi * unit), exists


@inline
def unevenness(s: Space) -> float:
    """From the data sets' own variances."""
    w = carve(s)
    precision, variance, rows = 0.0, 0.0, 0.0
    for j in range(s.F):
        precision += s.n[j] * math.exp(-w.y[j])
        variance += s.n[j] * math.exp(w.y[j])
        rows += s.n[j]
    return 0.5 * math.log(precision / rows * (variance / rows))


@inline
def leave(s: Space, result: Result) -> None:
    """Leave s, and the variances of the data sets."""
    w, p = carve(s), carve_apart(s)
    unit: float = p.unit[0]
    result.residual[0] = unit
    for j in range(s.F):
        result.residual[j + 1] = unit * math.exp(w.y[j])
        result.squares[j] = p.data[0, _SQUARE, j] * result.residual[j + 1]
    for a in range(s.q):
        w.beta[a] *= math.sqrt(unit)
        put(w.e, 0, a, math.sqrt(unit), w.e, 0, a)


fit_one, fit, fit_units = minimiser(sys.modules[__name__])
