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
alone, then beta, so that only L is damped. Ranks are found as in `optimise`.

Where data set j can be fitted exactly, rho_j = 0, f falls without bound as l_j does: there is no
maximum. Else there is one, as no pooling with a variance for each data set bounds the likelihood.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from poolbn.constants import (
    CONSTANT_TOLERANCE,
    CONVERGED,
    DETERMINED,
    RANK_TOLERANCE,
    UNSETTLED,
)
from poolbn.kernels.deviance import compress, evaluate, gradient, hessian
from poolbn.kernels.lanes import LANES, Floats, padded, take
from poolbn.kernels.linalg import (
    Integers,
    add,
    add_product,
    add_products,
    both,
    cholesky,
    cube,
    dot,
    entry,
    fill,
    integers,
    jit,
    matrix,
    multiply,
    put,
    solve,
    vector,
)
from poolbn.kernels.optimise import (
    FAR,
    HOPELESS,
    MAX_STEPS,
    ROUNDING,
    SMALL,
    copy_columns,
    em_step,
    regauge,
    rescale,
    way_out,
    widen,
)
from poolbn.kernels.work import Space, Work, aligned, carve, internal, once

_FIXED = 1e200  # n and rss for `hessian`: their ratio is 1, and rss does not change
_ROWS_MORE = 8.0  # with variance s, that a start adds to those of a data set
_FARTHEST = 2.0  # that l_j goes in one step
_LEAST = 0.05  # of the expected curvature in l_j, where the observed one is less
_OWN, _OLD, _BEST, _WEIGHT, _SQUARE, _SLOPE, _CURVE, _LOWEST = range(8)
_STEP = _LOWEST  # once the curvature is known


class Apart(NamedTuple):
    """Arrays beside `Work`: F data sets, q coefficients, r of them random, y entries of L.

    beta is measured by w.C, so that its own second derivative is 2 I.
    """

    data: Floats  # l, its last and its best, weights, x, df/dl, d2f/dl^2, its least, (1, 8, F)
    R: Floats  # pseudo rows without weights, (q, q, F)
    r: Floats  # those of the child, (1, q, F)
    rest: Floats  # m - K m, (1, r, F)
    Y: Floats  # d2f between l and L, then beta, (1, y + q, F)
    V: Floats  # d2f between L and beta, (y, q)
    S: Floats  # d2f/dbeta^2, (q, q)
    C: Floats  # its Cholesky factor, (q, q)
    g: Floats  # df/dbeta, (q,)
    step: Floats  # of beta, (q,)


def apart_room(F: int, q: int) -> Floats:
    """A buffer for `carve_apart` and families of up to q coefficients."""
    size = q * (q + 1) // 2
    cubes = (8 + q * q + 3 * q + size) * padded(F)
    return aligned(cubes + q * (size + 2 * q + 2) + len(Apart._fields) * LANES)


@both
def carve_apart(s: Space, more: Floats) -> Apart:
    """Cut the arrays of one family out of the buffer."""
    F = padded(s.F)
    q, r = s.q, s.r
    size = r * (r + 1) // 2
    at, data = take(more, 0, (1, 8, F))
    at, R = take(more, at, (q, q, F))
    at, rows = take(more, at, (1, q, F))
    at, rest = take(more, at, (1, r, F))
    at, Y = take(more, at, (1, size + q, F))
    at, V = take(more, at, (size, q))
    at, S = take(more, at, (q, q))
    at, C = take(more, at, (q, q))
    at, g = take(more, at, (q,))
    at, step = take(more, at, (q,))
    return Apart(data, R, rows, rest, Y, V, S, C, g, step)


@internal
def evaluate_separate(s: Space, more: Floats, n: Floats, L: Floats, k: int) -> float:
    """Deviance at the k columns of L and at l, with the best beta. Fills what `evaluate` does."""
    w: Work = carve(s)
    p: Apart = carve_apart(s, more)
    q = s.q
    data = p.data
    f, rho = 0.0, 0.0
    for j in range(s.F):
        f += n[j] * data[0, _OWN, j]
        weight = math.exp(-0.5 * data[0, _OWN, j])
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
    determinants, squares = evaluate(s, rho, 1.0, L, k)
    if not determinants < np.inf:
        return np.inf
    add_products(data, 0, _SQUARE, 1.0, w.rt, 0, w.rt, 0, q)
    return f + determinants - math.log(squares) + squares


@internal
def derivatives_separate(s: Space, more: Floats, n: Floats, k: int) -> int:
    """G, g, H as in `deviance` but with beta free, and those of `Apart`.

    Returns:
        The number of entries of L.
    """
    w: Work = carve(s)
    p: Apart = carve_apart(s, more)
    q = s.q
    random = s.r
    Y, PL, K, m, e = p.Y, w.PL, w.K, w.m, w.e
    gradient(s, 1.0, 1.0)
    size: int = hessian(s, k, _FIXED, _FIXED)
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
            a = w.perm[i]
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


@once
def _eliminate(s: Space, w: Work, p: Apart, size: int) -> float:
    """Take l and beta out of w.g and w.H; returns what they gain.

    df/dl and Y are divided by the root of d2f/dl^2, whose inverse stays; p.V and p.g by p.C.
    """
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


@once
def _step_of_variances(s: Space, w: Work, p: Apart, size: int, part: float) -> None:
    """Move l by a part of what goes with the step of L; the old one is kept."""
    q = s.q
    data = p.data
    put(data, 0, _OLD, 1.0, data, 0, _OWN)
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
        data[0, _OWN, j] += part * max(-_FARTHEST, min(_FARTHEST, step))


@once
def _start_separate(s: Space, w: Work, p: Apart, more: Floats, n: Floats, start: float) -> int:
    """As `optimise._start`: w.L after one or two EM steps from D = start I.

    l starts at the data set's own variance, drawn towards s.
    """
    random: int = w.L.shape[0]
    for j in range(s.F):
        rows = max(n[j] - s.q, 1.0) + _ROWS_MORE
        p.data[0, _OWN, j] = math.log((w.rho[0, 0, j] + _ROWS_MORE) / rows)
    copy_columns(w.L, w.L, 0)
    if start == 0.0:
        return 0
    for a in range(random):
        w.L[a, a] = math.sqrt(start)
    for _ in range(2):
        evaluate_separate(s, more, n, w.L, random)
        gradient(s, 1.0, 1.0)
        if em_step(w, s.F) < FAR * start:
            break
    return random


@once
def _add_column_separate(
    s: Space, w: Work, more: Floats, n: Floats, k: int, f: float, tolerance: float
) -> float:
    """As `optimise._add_column`: f with a column more in w.trial, or inf."""
    t = way_out(w, tolerance)
    if t > 0.0:
        for _ in range(20):
            widen(w.L, k, t, w.unit, w.trial)
            fnew: float = evaluate_separate(s, more, n, w.trial, k + 1)
            if fnew < f:
                return fnew
            t *= 0.25
    return np.inf


@once
def minimise_separate(
    s: Space, w: Work, p: Apart, more: Floats, n: Floats, k: int, tolerance: float, polish: bool
) -> tuple[float, int, bool]:
    """Minimise f from the k columns of w.L and from l, which become the minimum's.

    Returns:
        f, rank, and whether it settled.
    """
    random: int = w.L.shape[0]
    # As in `optimise`, sum e = 0: the rank is at most |F| - 1.
    k = regauge(w.L, k, s.F - 1, w.perm, w.D)
    f = evaluate_separate(s, more, n, w.L, k)
    damping = 0.0
    part = 1.0  # of its step that l makes
    smallest = np.inf
    tolerance = max(tolerance, 1e-15 * (abs(f) + n.sum()))
    for _ in range(MAX_STEPS):
        if not f < np.inf:
            return f, k, False
        size = derivatives_separate(s, more, n, k)
        gain_apart = _eliminate(s, w, p, size)
        if not gain_apart < np.inf or not rescale(w, k):
            return f, k, False

        if k > 0:  # a column that shrinks: is f lower without it?
            norm = 0.0
            for a in range(random):
                norm += w.L[a, k - 1] * w.L[a, k - 1]
            if norm < min(SMALL, 0.1 * smallest):
                smallest = norm
                fnew = evaluate_separate(s, more, n, w.L, k - 1)
                if fnew <= f:
                    f = fnew
                    k = regauge(w.L, k - 1, k - 1, w.perm, w.D)
                    smallest = np.inf
                    continue

        moved = False
        stale = smallest < np.inf  # P and e may be another point's
        while damping < HOPELESS:
            while not cholesky(w.H, w.HC, size, damping) and damping < HOPELESS:
                damping = max(4.0 * damping, 1e-3)
            for x in range(size):
                w.step[x] = -w.g[x]
            solve(w.HC, size, w.step)
            gain = gain_apart * part * (2.0 - part)
            for x in range(size):
                gain += 0.5 * w.step[x] * (damping * w.step[x] - w.g[x])
            if gain < tolerance and not polish:
                break
            copy_columns(w.L, w.trial, k)
            x = 0
            for b in range(k):
                for i in range(b, random):
                    w.trial[w.perm[i], b] += w.unit[x] * w.step[x]
                    x += 1
            _step_of_variances(s, w, p, size, part)
            fnew = evaluate_separate(s, more, n, w.trial, k)
            ratio = (f - fnew) / gain
            if gain < tolerance and fnew < f + ROUNDING:  # polish: below what f can tell
                copy_columns(w.trial, w.L, random)
                f = min(f, fnew)
                break
            if gain >= tolerance and ratio > 1e-3:
                copy_columns(w.trial, w.L, random)
                f = fnew
                if ratio > 0.75:
                    damping = damping / 5.0 if damping > 1e-6 else 0.0
                    part = min(2.0 * part, 1.0)
                elif ratio < 0.25:
                    damping = max(2.0 * damping, 1e-3)
                moved = True
                break
            put(p.data, 0, _OWN, 1.0, p.data, 0, _OLD)
            stale = True
            damping = max(4.0 * damping, 1e-2)
            part *= 0.5
            if gain < tolerance:
                break
        if moved:
            k = regauge(w.L, k, k, w.perm, w.D)
            continue
        if k == random:
            return f, k, True
        if stale:
            evaluate_separate(s, more, n, w.L, k)
        gradient(s, 1.0, 1.0)
        fnew = _add_column_separate(s, w, more, n, k, f, tolerance)
        if fnew == np.inf:
            return f, k, True
        f = fnew
        copy_columns(w.trial, w.L, random)
        k = regauge(w.L, k + 1, k + 1, w.perm, w.D)
        damping = 0.0
        part = 1.0
        smallest = np.inf
    return f, k, False


@jit
def _unit(n: Floats, rho: Floats, q: int) -> float:
    """The geometric mean of the data sets' own residual variances, weighted by what they leave."""
    total, rows = 0.0, 0.0
    for j in range(n.shape[0]):
        df = max(n[j] - q, 1.0)
        total += df * math.log(rho[0, 0, j] / df)
        rows += df
    return math.exp(total / rows)


@entry(
    vector, matrix, cube, integers, integers, integers, numba.int64, vector, numba.float64,
    numba.boolean, vector, vector, integers, vector, vector, integers, integers, vector,
)  # fmt: skip
def fit_separate(
    n: Floats,
    mean: Floats,
    scatter: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    without: int,
    starts: Floats,
    tolerance: float,
    polish: bool,
    buffer: Floats,
    more: Floats,
    perm: Integers,
    deviance: Floats,
    unit: Floats,
    rank: Integers,
    code: Integers,
    variances: Floats,
) -> None:
    """Fit each family, as `optimise.fit_families` does.

    `unit` gets s. When polishing, `variances` (F,) are those of the last family, and the buffer
    holds what its `LocalFit` needs, with D and the variance of beta in units of s.
    """
    F = n.shape[0]
    for family in range(children.shape[0]):
        pa = parents[offsets[family] : offsets[family + 1]]
        child = children[family]
        q = pa.shape[0] + 1
        random = max(q - without, 1)
        s = Space(buffer, perm, F, q, random, q < 0)  # not REML; a literal would be another type
        w = carve(s)
        p = carve_apart(s, more)
        for i in range(8):
            fill(p.data, 0, i, 0.0)
        deviance[family] = np.inf
        rank[family] = 0
        _, code[family] = compress(s, n, mean, scatter, child, pa)
        if code[family] != CONVERGED:
            continue
        for j in range(F):
            least = max(RANK_TOLERANCE * scatter[j, child, child], CONSTANT_TOLERANCE * n[j])
            if not w.rho[0, 0, j] > least:
                code[family] = DETERMINED
        if code[family] != CONVERGED:
            continue
        scale: float = _unit(n, w.rho, q)
        unit[family] = scale
        put(w.rho, 0, 0, 1.0 / scale, w.rho, 0, 0)
        for i in range(q):
            put(p.r, 0, i, 1.0 / math.sqrt(scale), w.r, 0, i)
            for a in range(i, q):
                put(p.R, i, a, 1.0, w.R, i, a)
        for i in range(starts.shape[0]):
            k = _start_separate(s, w, p, more, n, starts[i])
            f, k, settled = minimise_separate(s, w, p, more, n, k, tolerance, polish)
            if i == 0 or f < deviance[family] - ROUNDING:
                deviance[family] = f
                rank[family] = k
                code[family] = CONVERGED if settled else UNSETTLED
                copy_columns(w.L, w.best, k)
                put(p.data, 0, _BEST, 1.0, p.data, 0, _OWN)
        deviance[family] += n.sum() * math.log(2.0 * math.pi * scale)
        if polish:
            put(p.data, 0, _OWN, 1.0, p.data, 0, _BEST)
            evaluate_separate(s, more, n, w.best, rank[family])
            for j in range(F):
                variances[j] = scale * math.exp(p.data[0, _OWN, j])
            for a in range(q):
                w.beta[a] *= math.sqrt(scale)
                put(w.e, 0, a, math.sqrt(scale), w.e, 0, a)
