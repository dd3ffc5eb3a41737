"""Regressions and tables of one node within data sets: each has levels of its own. Compiled.

Regressions. Data set j has levels a_j, (C,), that nothing ties to those of others, and slopes c_j,
(e,) with e = C p, level by level. Of its rows at (a_j, c_j), with score g and information W
(`rows`), the levels are eliminated: with W_aa = LL', Y = L^-1 W_ac and z = L^-1 g_a,
  P_j = W_cc - Y'Y,  r_j = g_c - Y'z,
are curvature and slope of the profile log-likelihood, whose value is l_j + z'z / 2. A level of a
discrete child that does not occur in a data set is held where its probability is next to 0.

What levels have taken from the rows is given back: + log|W_aa| / 2 makes of a profile likelihood of
a logit the conditional one, given how often each level occurs (the double saddlepoint
approximation); of counts - log|W_aa| / 2 is Cox and Reid's adjustment. It is evaluated where the
profile likelihood has its maximum. Around slopes of 0 the conditional likelihood of a logit of n
rows has the same slope and n / (n - 1) times the information (that of sampling without
replacement). So where P_j decides how far slopes vary, and what they gain, it is multiplied by that
(`finite`) with h_j as it is: this is log|W_aa| / 2 as a quadratic function.

With h_j = r_j + P_j c_j and slopes b + Z u_j, Z = A kron L, ZZ' = R = S kron D, all that the
quadratic l_j(c) = K_j + h_j'c - c'P_j c / 2 says of b and D is, with M_j = I + Z'P_j Z,
k_j = (I - P_j Z M_j^-1 Z') h_j and Q_j = P_j - P_j Z M_j^-1 Z'P_j,
  sum_j [ K_j + |M_j^-1/2 Z'h_j|^2 / 2 - log|M_j| / 2 + b'k_j - b'Q_j b / 2 ].
Its maximum in b is in closed form. With rho_j = k_j - Q_j b and, over levels k and l,
N = sum S_kl Q_kl and G = sum S_kl rho_k rho_l', the slope in D is (G - N) / 2. As if all data sets
had the same Q_j, D + F C N^-1 (G - N) N^-1 is a step of Fisher scoring; it is made in the metric of
N, cut off where D would not be a covariance matrix, and halved where it goes downhill.
Then each data set moves to its mode and is expanded again there: the value is the Laplace
approximation, but for what is left of a Newton step, squared.

Tables. A common table without the interaction of data set, configuration and level is fitted by
proportional fitting; see `tables`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cholesky,
    cube,
    eigen,
    entry,
    integers,
    jit,
    matrix,
    solve,
    vector,
)
from poolbn.kernels.rows import NEGATIVE_BINOMIAL, dispersion, rows

_STEPS = 60  # Newton steps of common slopes
_DECREMENT = 1e-4  # of the last one; half of it is added
_SPREADS = 40  # scoring steps in D
_GAIN, _FIRST_GAIN = 1e-3, 0.1  # of the last one; while modes still move
_SHORTEST = 1e-2  # part of one
COMMON, VARYING = 0, 1  # stages
# Variances of slopes on columns of variance one: where the search ends, and from which on the
# likelihood has no maximum.
_WIDEST, _TOO_WIDE = 25.0, 20.0
_ROUNDS, _MOST_ROUNDS = 3, 15  # expansions of data sets
_SETTLED = 0.5  # by how much the last of them may still move the value
_HALVINGS = 6
_FAR = 0.5  # of what a move should bring, and of a unit of log-likelihood
_LEAST = 1e-10  # information in directions that no data set has


class Model(NamedTuple):
    """Rows of a family, and work space."""

    family: int
    theta: float
    q: int  # columns: the intercept and p
    C: int  # linear predictors, d = C q, e = C p
    table: Floats  # see `rows`
    offsets: Integers  # where the rows of data sets begin in it, (F + 1,)
    free: Integers  # whether a level is, (F C,)
    finite: Floats  # what the information is multiplied by, (F,)
    A: Floats  # AA' = S, (C, C)
    states: Floats  # see `rows`, (F, d + 2, d)
    quads: Floats  # of data sets, (F, 2 e + LINES, N): P, Q, then lines
    work: Floats  # (MATRICES, N, N)


MATRICES = 13
W_, L_, Y_, Z_, ZP_, M_, CHOL_, H_, HC_, N_, G_, NEW_, VECTOR_ = range(MATRICES)
LINES = 6
HLINE, KLINE, RLINE, OLD, STEP, SCALARS = range(LINES)  # from row 2 e of quads
# Scalars of a data set: its log-likelihood, z'z, log|W_aa|, r'c + c'Pc / 2 at the P of modes, and
# what the step to its mode should gain.
SEEN, SQUARE, LOGDET, MOVED, EXPECTED = range(5)


@jit
def _eliminate(m: Model, j: int) -> None:
    """Fill P, h, r and scalars of a data set from its state, and L, Y, z."""
    q, C = m.q, m.C
    p, d = q - 1, C * q
    e = C * p
    state, quad, work = m.states[j], m.quads[j], m.work
    W, L, Y, z = work[W_], work[L_], work[Y_], work[VECTOR_, 0]
    t, g = state[d], state[d + 1]
    n = 0
    for k in range(C):
        if m.free[j * C + k] == 0:
            continue
        i = 0
        for h in range(k + 1):
            if m.free[j * C + h] == 1:
                W[n, i] = state[k * q, h * q]
                i += 1
        z[n] = g[k * q]
        for h in range(C):
            for a in range(p):
                Y[n, h * p + a] = state[k * q, h * q + 1 + a]
        n += 1
    cholesky(W, L, n, 1e-12)
    logdet, square = 0.0, 0.0
    for i in range(n):
        for b in range(i):
            z[i] -= L[i, b] * z[b]
            for a in range(e):
                Y[i, a] -= L[i, b] * Y[b, a]
        z[i] /= L[i, i]
        for a in range(e):
            Y[i, a] /= L[i, i]
        logdet += 2.0 * math.log(L[i, i])
        square += z[i] * z[i]
    for k in range(C):
        for a in range(p):
            x = k * p + a
            v = g[k * q + 1 + a]
            for i in range(n):
                v -= Y[i, x] * z[i]
            quad[2 * e + RLINE, x] = v
            for h in range(C):
                for b in range(p):
                    y = h * p + b
                    if y > x:
                        continue
                    w = state[k * q + 1 + a, h * q + 1 + b]
                    for i in range(n):
                        w -= Y[i, x] * Y[i, y]
                    quad[x, y] = quad[y, x] = w
    moved = 0.0
    for k in range(C):
        for a in range(p):
            x = k * p + a
            c, v = t[k * q + 1 + a], 0.0
            for h in range(C):
                for b in range(p):
                    v += quad[x, h * p + b] * t[h * q + 1 + b]
            r = quad[2 * e + RLINE, x]
            quad[2 * e + HLINE, x] = r + v
            moved += c * (r + (1.0 - 0.5 * m.finite[j]) * v)
    scalars = quad[2 * e + SCALARS]
    scalars[SQUARE], scalars[LOGDET], scalars[MOVED] = square, logdet, moved


@jit
def _shared(A: Floats, C: int, k: int, h: int) -> float:
    """An entry of AA'."""
    S = 0.0
    for i in range(C):
        S += A[k, i] * A[h, i]
    return S


@jit
def _look(m: Model, j: int) -> float:
    """The log-likelihood of a data set where it is now; its expansion there."""
    e = m.C * (m.q - 1)
    value: float = rows(
        m.family, m.table, m.q, m.C, m.offsets[j], m.offsets[j + 1], m.theta, m.states[j], 0
    )
    m.quads[j, 2 * e + SCALARS, SEEN] = value
    if value > -np.inf:
        _eliminate(m, j)
    return value


@jit
def _aim(m: Model, j: int) -> None:
    """Keep where a data set is, and fill its STEP: levels follow slopes, which are there already.

    W_aa a = g_a - W_ac c.
    """
    q, C = m.q, m.C
    p, d = q - 1, C * q
    e = C * p
    L, Y, z = m.work[L_], m.work[Y_], m.work[VECTOR_, 0]
    step, old = m.quads[j, 2 * e + STEP], m.quads[j, 2 * e + OLD]
    _eliminate(m, j)
    for a in range(d):
        old[a] = m.states[j, d, a]
    n = 0
    for k in range(C):
        n += m.free[j * C + k]
        step[k * q] = 0.0
    for i in range(n):
        for k in range(C):
            for a in range(p):
                z[i] -= Y[i, k * p + a] * step[k * q + 1 + a]
    for i in range(n - 1, -1, -1):
        for b in range(i + 1, n):
            z[i] -= L[b, i] * z[b]
        z[i] /= L[i, i]
    i = 0
    for k in range(C):
        if m.free[j * C + k] == 1:
            step[k * q] = z[i]
            i += 1


@jit
def _go(m: Model, j: int, part: float) -> None:
    """To OLD + part STEP."""
    e = m.C * (m.q - 1)
    t, old, step = m.states[j, m.C * m.q], m.quads[j, 2 * e + OLD], m.quads[j, 2 * e + STEP]
    for a in range(m.C * m.q):
        t[a] = old[a] + part * step[a]


@jit
def _common(m: Model, ridge: float, S: Floats, result: Floats) -> None:
    """Common slopes, from those that states have, by Newton's method with levels eliminated.

    Fills the profile log-likelihood without penalty, and whether the search ended; H becomes the
    information, with the penalty's. S is (AA')^-1.
    """
    F, q, C = m.offsets.shape[0] - 1, m.q, m.C
    p, d = q - 1, C * q
    e = C * p
    H, factor = m.work[H_], m.work[HC_]
    s, b, step = m.work[VECTOR_, 1], m.work[VECTOR_, 2], m.work[VECTOR_, 3]
    best, part, decrement = -np.inf, 1.0, 0.0
    result[1] = 0.0
    for _ in range(_STEPS):
        for x in range(e):
            b[x] = m.states[0, d, (x // p) * q + 1 + x % p]
        penalty = 0.0
        for x in range(e):
            s[x] = 0.0
            for y in range(e):
                H[x, y] = max(ridge, _LEAST) * S[x // p, y // p] if x % p == y % p else 0.0
                s[x] -= H[x, y] * b[y]
            penalty -= 0.5 * s[x] * b[x]
        value, decrement = -penalty, 0.0
        for j in range(F):
            value += _look(m, j)
            if not value > -np.inf:
                break
            quad = m.quads[j]
            decrement += quad[2 * e + SCALARS, SQUARE]
            for x in range(e):
                s[x] += quad[2 * e + RLINE, x]
                for y in range(e):
                    H[x, y] += quad[x, y]
        if not value >= best - 1e-9 * (1.0 + abs(best)):
            part *= 0.5
            if part < 1e-6:
                break
            for j in range(F):
                _go(m, j, part)
            continue
        best, part = value, 1.0
        for x in range(e):
            step[x] = s[x]
        if not cholesky(H, factor, e, 0.0):
            break
        solve(factor, e, step)
        for x in range(e):
            decrement += s[x] * step[x]
        if decrement < _DECREMENT:
            result[1] = 1.0
            break
        for j in range(F):
            own = m.quads[j, 2 * e + STEP]
            for x in range(e):
                own[(x // p) * q + 1 + x % p] = step[x]
            _aim(m, j)
            _go(m, j, 1.0)
    result[0] = best + penalty + 0.5 * decrement


@jit
def _absorb(m: Model, j: int, L: Floats) -> tuple[float, float]:
    """Fill Q and k of a data set from P and h; returns |M^-1/2 Z'h|^2, -inf in vain, and log|M|."""
    C, p = m.C, m.q - 1
    e = C * p
    quad, work, finite = m.quads[j], m.work, m.finite[j]
    Z, T, M, factor, x = work[Z_], work[ZP_], work[M_], work[CHOL_], work[VECTOR_, 0]
    h, k = quad[2 * e + HLINE], quad[2 * e + KLINE]
    for a in range(e):
        x[a] = 0.0
        for b in range(e):
            Z[a, b] = m.A[a // p, b // p] * L[a % p, b % p]
            T[a, b] = M[a, b] = 0.0
        M[a, a] = 1.0
    # Inner loops run along rows: they are vectors of the processor, and add in the same order.
    for c in range(e):
        for a in range(e):  # T = Z'P
            z = finite * Z[c, a]
            for b in range(e):
                T[a, b] += z * quad[c, b]
            x[a] += Z[c, a] * h[c]
    for a in range(e):
        for c in range(e):
            t = T[a, c]
            for b in range(a + 1):
                M[a, b] += t * Z[c, b]
    if not cholesky(M, factor, e, 0.0):
        return -np.inf, 0.0
    square, logdet = 0.0, 0.0
    for a in range(e):  # T becomes M^-1/2 Z'P
        for b in range(a):
            f = factor[a, b]
            x[a] -= f * x[b]
            for c in range(e):
                T[a, c] -= f * T[b, c]
        f = 1.0 / factor[a, a]
        x[a] *= f
        for c in range(e):
            T[a, c] *= f
        square += x[a] * x[a]
        logdet -= 2.0 * math.log(f)
    for a in range(e):
        k[a] = h[a]
        for b in range(a + 1):
            quad[e + a, b] = finite * quad[a, b]
    for c in range(e):
        for a in range(e):
            t = T[c, a]
            k[a] -= t * x[c]
            for b in range(a + 1):
                quad[e + a, b] -= t * T[c, b]
    for a in range(e):
        for b in range(a):
            quad[e + b, a] = quad[e + a, b]
    return square, logdet


@jit
def _weigh(m: Model, ridge: float, S: Floats, L: Floats, b: Floats) -> float:
    """The best common slopes b given D = LL', and the log-likelihood there without penalty.

    By what is known of data sets, and without what is constant: K.
    """
    F, C, p = m.offsets.shape[0] - 1, m.C, m.q - 1
    e = C * p
    H, factor, s = m.work[H_], m.work[HC_], m.work[VECTOR_, 1]
    for x in range(e):
        s[x] = 0.0
        for y in range(e):
            H[x, y] = max(ridge, _LEAST) * S[x // p, y // p] if x % p == y % p else 0.0
    value = 0.0
    for j in range(F):
        square, logdet = _absorb(m, j, L)
        value += 0.5 * (square - logdet)
        quad = m.quads[j]
        for x in range(e):
            s[x] += quad[2 * e + KLINE, x]
            for y in range(e):
                H[x, y] += quad[e + x, y]
    for x in range(e):
        b[x] = s[x]
    cholesky(H, factor, e, 0.0)
    solve(factor, e, b)
    for x in range(e):
        value += s[x] * b[x]
        for y in range(e):
            held = max(ridge, _LEAST) * S[x // p, y // p] if x % p == y % p else 0.0
            value -= 0.5 * b[x] * (H[x, y] - held) * b[y]
    return value


@jit
def _widen(m: Model, L: Floats, b: Floats, part: float, new: Floats) -> None:
    """One scoring step in D = LL', (p, p) factors."""
    F, C, p = m.offsets.shape[0] - 1, m.C, m.q - 1
    e = C * p
    N, G, factor = m.work[N_], m.work[G_], m.work[CHOL_]
    B, V, rho = m.work[M_], m.work[ZP_], m.work[VECTOR_, 0]
    for a in range(p):
        for c in range(p):
            N[a, c] = G[a, c] = 0.0
    for j in range(F):
        quad = m.quads[j]
        for x in range(e):
            v = quad[2 * e + KLINE, x]
            for y in range(e):
                v -= quad[e + x, y] * b[y]
            rho[x] = v
        for k in range(C):
            for h in range(C):
                S = _shared(m.A, C, k, h)
                for a in range(p):
                    for c in range(p):
                        N[a, c] += S * quad[e + k * p + a, h * p + c]
                        G[a, c] += S * rho[k * p + a] * rho[h * p + c]
    trace = 0.0
    for a in range(p):
        trace += N[a, a]
    cholesky(N, factor, p, 1e-12 * trace)
    for a in range(p):  # V = factor'L
        for c in range(p):
            v = 0.0
            for i in range(a, p):
                v += factor[i, a] * L[i, c]
            V[a, c] = v
    for c in range(p):  # G becomes factor^-1 G factor'^-1, rows and then columns
        for a in range(p):
            for i in range(a):
                G[a, c] -= factor[a, i] * G[i, c]
            G[a, c] /= factor[a, a]
    for a in range(p):
        for c in range(p):
            for i in range(c):
                G[a, c] -= factor[c, i] * G[a, i]
            G[a, c] /= factor[c, c]
    for a in range(p):
        for c in range(a + 1):
            v = 0.5 * (G[a, c] + G[c, a]) - (1.0 if a == c else 0.0)
            B[a, c] = B[c, a] = part * F * C * v + _shared(V, p, a, c)
    eigen(B, V, p, 1e-20)
    for c in range(p):  # factor' new = V B^1/2
        root = math.sqrt(max(B[c, c], 0.0))
        for a in range(p - 1, -1, -1):
            v = V[a, c] * root
            for i in range(a + 1, p):
                v -= factor[i, a] * new[i, c]
            new[a, c] = v / factor[a, a]


@jit
def _copy(source: Floats, out: Floats, size: int) -> None:
    """Entries of a square, (size, size)."""
    for a in range(size):
        for b in range(size):
            out[a, b] = source[a, b]


@jit
def _widest(L: Floats, p: int) -> float:
    """The largest variance of D = LL'."""
    largest = 0.0
    for a in range(p):
        largest = max(largest, _shared(L, p, a, a))
    return largest


@jit
def _spread(m: Model, ridge: float, S: Floats, L: Floats, b: Floats, least: float) -> float:
    """The maximum in b and D, up to steps that gain less than `least`; see `_weigh`."""
    p, new, part = m.q - 1, m.work[NEW_], 1.0
    value: float = _weigh(m, ridge, S, L, b)
    for _ in range(_SPREADS):
        _widen(m, L, b, part, new)
        now = _weigh(m, ridge, S, new, b) if _widest(new, p) < _WIDEST else -np.inf
        if not now >= value:
            _weigh(m, ridge, S, L, b)
            part *= 0.5
            if part < _SHORTEST:
                break
            continue
        gain, value = now - value, now
        _copy(new, L, p)
        if gain < least:
            break
        part = min(1.0, 2.0 * part)
    return value


@jit
def _directed(m: Model, L: Floats, b: Floats) -> float:
    """Fill the steps of all data sets to their modes; what these should gain together."""
    F, q, C = m.offsets.shape[0] - 1, m.q, m.C
    p, d = q - 1, C * q
    e = C * p
    gain = 0.0
    for j in range(F):
        quad, t = m.quads[j], m.states[j, d]
        step, rho = quad[2 * e + STEP], m.work[VECTOR_, 1]
        for x in range(e):
            v = quad[2 * e + KLINE, x]
            for y in range(e):
                v -= quad[e + x, y] * b[y]
            rho[x] = v
        for x in range(e):  # c = b + R rho
            v = b[x]
            for y in range(e):
                D = _shared(L, p, x % p, y % p)
                v += _shared(m.A, C, x // p, y // p) * D * rho[y]
            at = (x // p) * q + 1 + x % p
            step[at] = v - t[at]
        _aim(m, j)
        expected = 0.5 * quad[2 * e + SCALARS, SQUARE]
        for x in range(e):
            sx = step[(x // p) * q + 1 + x % p]
            expected += sx * quad[2 * e + RLINE, x]
            for y in range(e):
                expected -= 0.5 * sx * quad[x, y] * step[(y // p) * q + 1 + y % p]
        quad[2 * e + SCALARS, EXPECTED] = expected
        gain += abs(expected)
    return gain


@jit
def _settle(m: Model) -> None:
    """Move all data sets to their modes, or part of the way where the expansion is far off."""
    e = m.C * (m.q - 1)
    for j in range(m.offsets.shape[0] - 1):
        scalars = m.quads[j, 2 * e + SCALARS]
        before, expected, part = scalars[SEEN], scalars[EXPECTED], 1.0
        for _ in range(_HALVINGS):
            _go(m, j, part)
            value = _look(m, j)
            if value >= before + part * expected - _FAR * (1.0 + abs(expected)):
                break
            part *= 0.5


@jit
def _uncertain(m: Model, L: Floats) -> None:
    """L of the D that is as large as what a data set's rows leave uncertain of slopes, or 1."""
    F, C, p = m.offsets.shape[0] - 1, m.C, m.q - 1
    e = C * p
    N, factor = m.work[N_], m.work[G_]
    for a in range(p):
        for c in range(p):
            N[a, c] = 0.0
    for j in range(F):
        for x in range(e):
            for y in range(e):
                N[x % p, y % p] += _shared(m.A, C, x // p, y // p) * m.quads[j, x, y]
    trace = 0.0
    for a in range(p):
        trace += N[a, a]
    cholesky(N, factor, p, 1e-8 * trace)
    for c in range(p):  # factor' L = sqrt(F C) I
        for a in range(p - 1, -1, -1):
            v = math.sqrt(float(F * C)) if a == c else 0.0
            for i in range(a + 1, p):
                v -= factor[i, a] * L[i, c]
            L[a, c] = v / factor[a, a]
    shorter = 1.0 / math.sqrt(max(_widest(L, p), 1.0))
    for a in range(p):
        for c in range(p):
            L[a, c] *= shorter


@entry(
    numba.int64, numba.float64, numba.int64, numba.int64, matrix, integers, integers, vector,
    matrix, matrix, numba.float64, numba.int64, cube, cube, cube, matrix, vector,
)  # fmt: skip
def fit(
    family: int,
    theta: float,
    q: int,
    C: int,
    table: Floats,
    offsets: Integers,
    free: Integers,
    finite: Floats,
    A: Floats,
    S: Floats,
    ridge: float,
    stage: int,
    states: Floats,
    quads: Floats,
    work: Floats,
    L: Floats,
    result: Floats,
) -> None:
    """Common slopes, then slopes that vary.

    Args:
        family: see `rows`.
        theta: of negative binomial counts.
        q: columns of x, the intercept first.
        C: linear predictors.
        table: see `rows`.
        offsets: where the rows of data sets begin in it, (F + 1,).
        free: whether a level of a data set is free, (F C,).
        finite: what the information of data sets is multiplied by, (F,).
        A: a factor of S^-1, the covariance between levels, (C, C).
        S: its inverse, (C, C).
        ridge: weight of a penalty on common slopes, 0 for none.
        stage: COMMON slopes, or after that VARYING ones.
        states: (F, d + 2, d), see `rows`: where the search starts, and then ends.
        quads: work space, (F, 2 e + LINES, N).
        work: work space, (MATRICES, N, N) with N at least d and 5.
        L: a factor of D, (p, p): where its search starts, or 0 for what rows leave uncertain.
        result: profile log-likelihood with common slopes; whether that search ended; log|W_aa|
            there; log-likelihood with slopes that vary, -inf if there is no maximum; log|W_aa|
            there; what theta adds, (6,).
    """
    F, p = offsets.shape[0] - 1, q - 1
    e = C * p
    m = Model(family, theta, q, C, table, offsets, free, finite, A, states, quads, work)
    b = work[VECTOR_, 2]
    if stage == COMMON:
        _common(m, ridge, S, result)
        result[2] = 0.0
        for j in range(F):
            result[2] += quads[j, 2 * e + SCALARS, LOGDET]
    elif L[0, 0] == 0.0:
        _uncertain(m, L)
    before = -np.inf
    for i in range(stage * _MOST_ROUNDS):
        value = _spread(m, ridge, S, L, b, _GAIN if i >= _ROUNDS - 1 else _FIRST_GAIN)
        result[4] = 0.0
        for j in range(F):
            scalars = quads[j, 2 * e + SCALARS]
            value += scalars[SEEN] + 0.5 * scalars[SQUARE] - scalars[MOVED]
            result[4] += scalars[LOGDET]
        left = _directed(m, L, b)
        if i >= _ROUNDS - 1 and max(abs(value - before), left) < _SETTLED:
            result[3] = value if _widest(L, p) < _TOO_WIDE else -np.inf
            break
        result[3], before = -np.inf, value  # as long as modes are not found
        _settle(m)
    if family == NEGATIVE_BINOMIAL:
        result[5] = dispersion(table, q, offsets[0], offsets[F], theta)[0]


# Tables

TABLE_LINES = 4
JC, JK, CK, J_ = range(TABLE_LINES)  # margins of what is fitted, lines of (F C), (F K), (C K), (F)
_CYCLES = 400
_FITTED = 1e-4  # what one more cycle would still bring, twice
_GRID, _FIRST, _LAST = 2.0, -1.0, 9.0  # of log s
_PARABOLAS = 4
_REFITS = 2


@jit
def _informs(n: float, s: float) -> float:
    """How many rows of a multinomial distribution n rows of one configuration are worth."""
    return n if s == np.inf else n * (1.0 + s) / (n + s)


@jit
def _proportional(n: Floats, s: float, p: Floats, lines: Floats) -> None:
    """Fill p (F, C, K): each data set's probabilities without the interaction of three.

    By iterative proportional fitting, to counts of a concentration s.
    """
    F, C, K = n.shape
    jc, jk, ck, rows_of = lines[JC], lines[JK], lines[CK], lines[J_]
    for i in range(C * K):
        ck[i] = 0.0
    for j in range(F):
        rows_of[j] = 0.0
        for k in range(K):
            jk[j * K + k] = 0.0
        for c in range(C):
            size = 0.0
            for k in range(K):
                size += n[j, c, k]
            told = _informs(size, s)
            jc[j * C + c] = told
            rows_of[j] += told
            share = told / size if size > 0.0 else 0.0
            for k in range(K):
                jk[j * K + k] += share * n[j, c, k]
                ck[c * K + k] += share * n[j, c, k]
    for j in range(F):
        for c in range(C):
            for k in range(K):
                p[j, c, k] = jc[j * C + c] * jk[j * K + k] / rows_of[j]
    for _ in range(_CYCLES):
        away = 0.0
        for c in range(C):
            for k in range(K):
                v = 0.0
                for j in range(F):
                    v += p[j, c, k]
                wanted = ck[c * K + k]
                if v > 0.0:
                    away += (wanted - v) * (wanted - v) / v
                by = wanted / v if v > 0.0 else 0.0
                for j in range(F):
                    p[j, c, k] *= by
        for j in range(F):
            for k in range(K):
                v = 0.0
                for c in range(C):
                    v += p[j, c, k]
                by = jk[j * K + k] / v if v > 0.0 else 0.0
                for c in range(C):
                    p[j, c, k] *= by
            for c in range(C):
                v = 0.0
                for k in range(K):
                    v += p[j, c, k]
                by = jc[j * C + c] / v if v > 0.0 else 0.0
                for k in range(K):
                    p[j, c, k] *= by
        if away < _FITTED:
            break
    for j in range(F):
        for c in range(C):
            for k in range(K):
                p[j, c, k] /= max(jc[j * C + c], 1e-300)


@jit
def _logdet(n: Floats, j: int, s: float, p: Floats, jk: Floats, work: Floats) -> float:
    """log|W_aa| of the levels of a data set, with what rows of concentration s are worth."""
    _, C, K = n.shape
    W, factor = work[0], work[1]
    last, size = -1, 0
    for k in range(K):
        if jk[j * K + k] > 0.0:
            last = k
            size += 1
    for i in range(size):
        for h in range(size):
            W[i, h] = 0.0
    for c in range(C):
        rows_of = 0.0
        for k in range(K):
            rows_of += n[j, c, k]
        told = _informs(rows_of, s)
        i = 0
        for k in range(last):
            if jk[j * K + k] > 0.0:
                h = 0
                for x in range(k + 1):
                    if jk[j * K + x] > 0.0:
                        own = p[j, c, k] if x == k else 0.0
                        W[i, h] += told * (own - p[j, c, k] * p[j, c, x])
                        h += 1
                i += 1
    if not cholesky(W, factor, size - 1, 1e-12):
        return 0.0
    value = 0.0
    for i in range(size - 1):
        value += 2.0 * math.log(factor[i, i])
    return value


@jit
def _rises(a: float, n: float) -> float:
    """lgamma(a + n) - lgamma(a)."""
    if n < 12.0 and n == math.floor(n):
        v = 1.0
        for i in range(int(n)):
            v *= a + i
        return math.log(v)
    return math.lgamma(a + n) - math.lgamma(a)


@jit
def _seen(n: Floats, s: float, p: Floats, jk: Floats, work: Floats) -> float:
    """Log-likelihood of counts around p, what levels have taken given back."""
    F, C, K = n.shape
    value = 0.0
    for j in range(F):
        W = _logdet(n, j, np.inf, p, jk, work)
        value += W - 0.5 * (W if s == np.inf else _logdet(n, j, s, p, jk, work))
        for c in range(C):
            rows_of = 0.0
            for k in range(K):
                x = n[j, c, k]
                if x > 0.0:
                    mean = max(p[j, c, k], 1e-300)
                    value += x * math.log(mean) if s == np.inf else _rises(s * mean, x)
                    rows_of += x
            if s < np.inf and rows_of > 0.0:
                value -= _rises(s, rows_of)
    return value


@jit
def _concentrate(n: Floats, x: float, step: float, p: Floats, jk: Floats, work: Floats) -> float:
    """The best log s near x at these p, by parabolas."""
    low, here = _seen(n, math.exp(x - step), p, jk, work), _seen(n, math.exp(x), p, jk, work)
    high = _seen(n, math.exp(x + step), p, jk, work)
    for _ in range(_PARABOLAS):
        if low > here and low >= high and x > _FIRST - 2.0 * _GRID:
            x, high, here = x - step, here, low
            low = _seen(n, math.exp(x - step), p, jk, work)
            continue
        if high > here and x < _LAST + _GRID:
            x, low, here = x + step, here, high
            high = _seen(n, math.exp(x + step), p, jk, work)
            continue
        bend = low - 2.0 * here + high
        if not bend < 0.0:
            break
        away = max(min(0.5 * step * (low - high) / bend, 2.0 * step), -2.0 * step)
        if x + away > _LAST + _GRID:  # next to a common table, which is looked at too
            break
        value = _seen(n, math.exp(x + away), p, jk, work)
        if value <= here or abs(away) < 0.02:
            break
        x, here, step = x + away, value, max(0.5 * abs(away), 0.25 * step)
        low, high = (
            _seen(n, math.exp(x - step), p, jk, work),
            _seen(n, math.exp(x + step), p, jk, work),
        )
    return x


@entry(cube, cube, matrix, cube, vector)
def tables(n: Floats, p: Floats, lines: Floats, work: Floats, result: Floats) -> None:
    """Tables of data sets that share all but levels, and Dirichlet distributions around them.

    Args:
        n: counts, (F, C, K): each data set has two configurations and two levels at least.
        p: become the probabilities of each data set, (F, C, K).
        lines: work space, (TABLE_LINES, max(F C, F K, C K)).
        work: work space, (2, K, K).
        result: the log-likelihood without parents; with a common table; with a concentration;
            that, or inf where the common table is better, (4,). What levels have taken is given
            back in all of them.
    """
    F, _, K = n.shape
    jk = lines[JK]
    _proportional(n, np.inf, p, lines)
    none = 0.0
    for j in range(F):
        rows_of = 0.0
        for k in range(K):
            rows_of += jk[j * K + k]
        W = -math.log(rows_of)  # |diag(n p) - n p p'| without one level
        for k in range(K):
            x = jk[j * K + k]
            if x > 0.0:
                none += x * math.log(x / rows_of)
                W += math.log(x)
        none += 0.5 * W
    result[0] = none
    result[1] = _seen(n, np.inf, p, jk, work)
    x, best = _FIRST, -np.inf
    at = _FIRST
    while at <= _LAST:
        value = _seen(n, math.exp(at), p, jk, work)
        if value > best:
            x, best = at, value
        at += _GRID
    step = 0.5 * _GRID
    for _ in range(_REFITS):
        x = _concentrate(n, x, step, p, jk, work)
        _proportional(n, math.exp(x), p, lines)
        step *= 0.25
    best = _seen(n, math.exp(x), p, jk, work)
    result[2], result[3] = best, math.exp(x)
    if not best > result[1]:
        result[2], result[3] = result[1], np.inf
