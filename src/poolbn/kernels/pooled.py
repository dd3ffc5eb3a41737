"""The mixed-effects model whose residual variances are pooled too. Compiled; nothing allocates.

Data set j has sigma_j^2 ~ inverse gamma with shape a and scale a s, and random effects with the
covariance sigma_j^2 D. With sigma_j^2 integrated out its rows are multivariate t. In the letters of
`deviance`, with q_j = rho_j + |W_j^-1/2 (r_j - R_j beta)|^2 the generalised residual squares,
tau = 1 / a, x_j = q_j / s and c_j = 1 + tau x_j / 2, the deviance (without n log 2 pi) is

    f = sum log|W_j| + n_j log s + A(tau, n_j) + (2 / tau + n_j) log c_j,
    A(tau, n) = n log a - 2 lgamma(a + n / 2) + 2 lgamma(a).

Everything is smooth in tau >= 0, and tau = 0 is one residual variance for all: f = sum log|W_j| +
n_j log s + x_j. With weights w_j = (1 + tau n_j / 2) / (c_j s) and k_j = tau w_j / (c_j s), the
derivatives are those of `deviance` with w_j for n / rss:

    df/dD = sum P_j - w_j e_j e_j',   df/dbeta = -2 sum w_j e_j,   d2f/dq_j^2 = -k_j / 2.

Newton steps go over (L, beta, log s, tau) together; beta, log s and tau are eliminated first, so
that only L is damped. Ranks are found as in `optimise`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from poolbn.constants import CONVERGED, DETERMINED, RANK_TOLERANCE, UNSETTLED
from poolbn.kernels.deviance import between, compress, whiten
from poolbn.kernels.lanes import LANES, Floats, padded, take
from poolbn.kernels.linalg import (
    Integers,
    add,
    add_products,
    both,
    cholesky,
    combine,
    cube,
    dot,
    dot3,
    entry,
    fill,
    integers,
    jit,
    matrix,
    multiply,
    put,
    solve,
    sum_of,
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

_NO_SPREAD = 1e-7  # a tau below this is 0
_WEIGHT, _CURVE, _SQUARE, _X, _BY_SCALE, _BY_TAU, _ONE, _TWO = range(8)


class Pool(NamedTuple):
    """Arrays beside `Work`: F data sets, q coefficients, y = (beta, log s, tau)."""

    data: Floats  # w, k, q, x, -d2f/dq dlog s, d2f/dq dtau, and two to use at once, (1, 8, F)
    res: Floats  # W^-1/2 (r - R beta), (1, q, F)
    y: Floats  # the parameters, (q + 2,)
    trial: Floats  # (q + 2,)
    best: Floats  # (q + 2,)
    gy: Floats  # gradient in y, (q + 2,)
    Hy: Floats  # Hessian in y, (q + 2, q + 2)
    Cy: Floats  # its Cholesky factor
    Y: Floats  # Hessian between the entries of L and y, (r (r + 1) / 2, q + 2)


def pool_room(F: int, q: int) -> Floats:
    """A buffer for `carve_pool` and families of up to q coefficients."""
    y = q + 2
    planes = 4 * y + 2 * y * y + q * (q + 1) // 2 * y
    return aligned((8 + q) * padded(F) + planes + len(Pool._fields) * LANES)


@both
def carve_pool(s: Space, more: Floats) -> Pool:
    """Cut the arrays of one family out of the buffer."""
    F = padded(s.F)
    y = s.q + 2
    at, data = take(more, 0, (1, 8, F))
    at, res = take(more, at, (1, s.q, F))
    at, now = take(more, at, (y,))
    at, trial = take(more, at, (y,))
    at, best = take(more, at, (y,))
    at, gy = take(more, at, (y,))
    at, Hy = take(more, at, (y, y))
    at, Cy = take(more, at, (y, y))
    at, Y = take(more, at, (s.r * (s.r + 1) // 2, y))
    return Pool(data, res, now, trial, best, gy, Hy, Cy, Y)


@jit
def _polygamma(x: float) -> tuple[float, float]:
    """The first two derivatives of lgamma, by recurrence and Stirling's series."""
    first, second = 0.0, 0.0
    while x < 12.0:
        first -= 1.0 / x
        second += 1.0 / (x * x)
        x += 1.0
    i = 1.0 / x
    i2 = i * i
    first += (
        math.log(x)
        - i / 2.0
        - i2
        * (1.0 / 12.0 - i2 * (1.0 / 120.0 - i2 * (1.0 / 252.0 - i2 * (1.0 / 240.0 - i2 / 132.0))))
    )
    second += (
        i
        + i2 / 2.0
        + i2
        * i
        * (1.0 / 6.0 - i2 * (1.0 / 30.0 - i2 * (1.0 / 42.0 - i2 * (1.0 / 30.0 - i2 * 5.0 / 66.0))))
    )
    return first, second


@jit
def spread_terms(tau: float, n: float) -> tuple[float, float, float]:
    """A(tau, n) and its first two derivatives in tau."""
    m = n / 2.0
    if tau * (m + 1.0) < 2e-3:  # -2 [lgamma(a + m) - lgamma(a) - m log a] as a series in tau
        b2 = m * (m - 1.0) / 2.0
        b3 = m * (m - 0.5) * (m - 1.0) / 6.0
        b4 = m * m * (m - 1.0) ** 2 / 12.0
        b5 = m * (m - 0.5) * (m - 1.0) * (m * m - m - 1.0 / 3.0) / 20.0
        b6 = m * m * (m - 1.0) ** 2 * (2.0 * m * m - 2.0 * m - 1.0) / 60.0
        return (
            -2.0 * tau * (b2 - tau * (b3 - tau * (b4 - tau * (b5 - tau * b6)))),
            -2.0 * (b2 - tau * (2.0 * b3 - tau * (3.0 * b4 - tau * (4.0 * b5 - tau * 5.0 * b6)))),
            4.0 * (b3 - tau * (3.0 * b4 - tau * (6.0 * b5 - tau * 10.0 * b6))),
        )
    a = 1.0 / tau
    f = 2.0 * (m * math.log(a) - math.lgamma(a + m) + math.lgamma(a))
    one, two = _polygamma(a + m)
    zero_one, zero_two = _polygamma(a)
    B = one - zero_one - m / a
    dB = two - zero_two + m / (a * a)
    return f, 2.0 * a * a * B, -2.0 * a * a * (2.0 * a * B + a * a * dB)


@jit
def tail_terms(tau: float, n: float, x: float) -> tuple[float, float, float]:
    """(2 / tau + n) log(1 + tau x / 2) and its first two derivatives in tau."""
    z = tau * x / 2.0
    if z < 1e-3:
        ratio = 1.0 - z * (0.5 - z * (1.0 / 3.0 - z * (0.25 - z * (0.2 - z / 6.0))))
        one = -0.5 + z * (2.0 / 3.0 - z * (0.75 - z * (0.8 - z * 5.0 / 6.0)))
        two = 2.0 / 3.0 - z * (1.5 - z * (2.4 - z * 10.0 / 3.0))
    else:
        log = math.log1p(z)
        ratio = log / z
        one = (z / (1.0 + z) - log) / (z * z)
        two = (2.0 * log - z * (2.0 + 3.0 * z) / (1.0 + z) ** 2) / (z * z * z)
    half = x / 2.0
    c = 1.0 + z
    return (
        x * ratio + n * z * ratio,
        2.0 * half * half * one + n * half / c,
        2.0 * half**3 * two - n * half * half / (c * c),
    )


@internal
def _weigh(s: Space, more: Floats, n: Floats) -> float:
    """Residuals, their squares, weights and derivatives at y; returns f without log|W|."""
    w: Work = carve(s)
    p: Pool = carve_pool(s, more)
    q = s.q
    log_s, tau = p.y[q], p.y[q + 1]
    inverse = math.exp(-log_s)
    put(p.data, 0, _SQUARE, 1.0, w.rho, 0, 0)
    for i in range(q):
        put(p.res, 0, i, 1.0, w.rt, 0, i)
        for a in range(q):
            add(p.res, 0, i, -p.y[a], w.Rt, a, i)
    add_products(p.data, 0, _SQUARE, 1.0, p.res, 0, p.res, 0, q)
    f = 0.0
    spread = 0.0
    last = -1.0
    for j in range(s.F):
        if n[j] != last:
            spread, _, _ = spread_terms(tau, n[j])
            last = n[j]
        x = p.data[0, _SQUARE, j] * inverse
        c = 1.0 + tau * x / 2.0
        over = 1.0 + tau * n[j] / 2.0
        tail, _, _ = tail_terms(tau, n[j], x)
        f += n[j] * log_s + spread + tail
        p.data[0, _X, j] = x
        p.data[0, _WEIGHT, j] = over / c * inverse
        p.data[0, _CURVE, j] = tau * over / (c * c) * inverse * inverse
        p.data[0, _BY_SCALE, j] = over / (c * c) * inverse
        p.data[0, _BY_TAU, j] = (n[j] - x) / (2.0 * c * c) * inverse
    return f


@internal
def evaluate_pooled(s: Space, more: Floats, n: Floats, L: Floats, k: int, steps: int) -> float:
    """Deviance at the k columns of L and at y; beta and log s first make so many scoring steps.

    Fills P, e and data; inf where beta is not determined.
    """
    w: Work = carve(s)
    p: Pool = carve_pool(s, more)
    q = s.q
    f: float = whiten(s, L, k)
    g: float = _weigh(s, more, n)
    for _ in range(steps):
        slope, curvature = 0.0, 0.0
        for j in range(s.F):
            x = p.data[0, _X, j]
            slope += n[j] - x * p.data[0, _WEIGHT, j] * math.exp(p.y[q])
            curvature += x * p.data[0, _BY_SCALE, j] * math.exp(p.y[q])
        p.y[q] -= max(-2.0, min(2.0, slope / curvature))
        for a in range(q):
            w.beta[a] = 0.0
            for i in range(q):
                put(p.data, 0, _ONE, 1.0, w.rt, 0, i)
                multiply(p.data, 0, _ONE, p.data, 0, _WEIGHT)
                w.beta[a] += dot(w.Rt, a, i, p.data, 0, _ONE)
            for b in range(a + 1):
                w.S[a, b] = dot(w.P, a, b, p.data, 0, _WEIGHT)
        if not cholesky(w.S, w.C, q, 0.0):
            return np.inf
        solve(w.C, q, w.beta)
        for a in range(q):
            p.y[a] = w.beta[a]
        g = _weigh(s, more, n)
    for a in range(q):
        fill(w.e, 0, a, 0.0)
        add_products(w.e, 0, a, 1.0, w.Rt, a, p.res, 0, q)
    return f + g


@internal
def gradient_pooled(s: Space, more: Floats) -> None:
    """Fill G = df/dD, (r, r)."""
    w: Work = carve(s)
    p: Pool = carve_pool(s, more)
    random = s.r
    for a in range(random):
        put(p.data, 0, _ONE, 1.0, w.e, 0, a)
        multiply(p.data, 0, _ONE, p.data, 0, _WEIGHT)
        for c in range(a + 1):
            w.G[a, c] = sum_of(w.P, a, c) - dot(p.data, 0, _ONE, w.e, 0, c)
            w.G[c, a] = w.G[a, c]


@internal
def derivatives_pooled(s: Space, more: Floats, n: Floats, k: int, free: int) -> int:
    """Gradients g, gy and Hessians H, Y, Hy in the entries of L and in y.

    With `free` = q + 1 the last of y, tau, stays where it is. Returns the entries of L.
    """
    w: Work = carve(s)
    p: Pool = carve_pool(s, more)
    q = s.q
    F = w.e.shape[2]
    L, perm, H, P, PL, K, m, e, u = w.L, w.perm, w.H, w.P, w.PL, w.K, w.m, w.e, w.u
    data, Y, Hy = p.data, p.Y, p.Hy
    random = s.r
    between(P, L, k, PL, K)
    for b in range(k):
        combine(m, 0, b, L, b, e, 0, 0, random)
    first = 0
    for b in range(k):
        before = 0
        for d in range(b + 1):
            for j in range(F):
                weight = data[0, _WEIGHT, j]
                u[0, 0, j] = 2.0 * (weight * m[0, b, j] * m[0, d, j] - K[b, d, j])
            for ia in range(b, random):
                a = perm[ia]
                for j in range(F):
                    weight = data[0, _WEIGHT, j]
                    curve = data[0, _CURVE, j] * m[0, d, j]
                    u[0, 1, j] = 2.0 * (
                        weight * (e[0, a, j] * K[b, d, j] + PL[d, a, j] * m[0, b, j])
                        - curve * e[0, a, j] * m[0, b, j]
                    )
                    u[0, 2, j] = 2.0 * (weight * e[0, a, j] * m[0, d, j] - PL[d, a, j])
                x = first + ia - b
                for ic in range(d, random if d < b else ia + 1):
                    H[x, before + ic - d] = dot3(u, P, a, perm[ic], e, PL, b)
            before += random - d
        for ia in range(b, random):
            a = perm[ia]
            x = first + ia - b
            for j in range(F):
                weight = 2.0 * data[0, _WEIGHT, j]
                both = 2.0 * e[0, a, j] * m[0, b, j]
                u[0, 0, j] = weight * m[0, b, j]
                u[0, 1, j] = -data[0, _CURVE, j] * both
                u[0, 2, j] = weight * e[0, a, j]
                u[0, 3, j] = both
            for i in range(q):
                Y[x, i] = dot3(u, P, a, i, e, PL, b)
            Y[x, q] = dot(u, 0, 3, data, 0, _BY_SCALE)
            Y[x, q + 1] = -dot(u, 0, 3, data, 0, _BY_TAU)
            v = 0.0
            for c in range(random):
                v += w.G[a, c] * L[c, b]
            w.g[x] = 2.0 * v
            for ic in range(b, ia + 1):
                H[x, x - ia + ic] += 2.0 * w.G[a, perm[ic]]
        first += random - b
    for a in range(q):
        put(data, 0, _ONE, 1.0, e, 0, a)
        multiply(data, 0, _ONE, data, 0, _CURVE)
        for c in range(a + 1):
            Hy[a, c] = 2.0 * (dot(P, a, c, data, 0, _WEIGHT) - dot(data, 0, _ONE, e, 0, c))
        p.gy[a] = -2.0 * dot(e, 0, a, data, 0, _WEIGHT)
        Hy[q, a] = 2.0 * dot(e, 0, a, data, 0, _BY_SCALE)
        Hy[q + 1, a] = -2.0 * dot(e, 0, a, data, 0, _BY_TAU)
    scale = math.exp(p.y[q])
    tau = p.y[q + 1]
    p.gy[q], p.gy[q + 1] = 0.0, 0.0
    Hy[q, q], Hy[q + 1, q], Hy[q + 1, q + 1] = 0.0, 0.0, 0.0
    slope, curvature = 0.0, 0.0
    last = -1.0
    for j in range(s.F):
        if n[j] != last:
            _, slope, curvature = spread_terms(tau, n[j])
            last = n[j]
        x_j = data[0, _X, j]
        _, one, two = tail_terms(tau, n[j], x_j)
        p.gy[q] += n[j] - x_j * data[0, _WEIGHT, j] * scale
        p.gy[q + 1] += slope + one
        Hy[q, q] += x_j * data[0, _BY_SCALE, j] * scale
        Hy[q + 1, q] -= x_j * data[0, _BY_TAU, j] * scale
        Hy[q + 1, q + 1] += curvature + two
    if free == q + 1:
        Hy[q + 1, q + 1] = 1.0
        p.gy[q + 1] = 0.0
        for i in range(q + 1):
            Hy[q + 1, i] = 0.0
        for x in range(first):
            Y[x, q + 1] = 0.0
    return first


@once
def _eliminate(w: Work, p: Pool, size: int) -> float:
    """Take y out of w.g and w.H; p.Y becomes Y Cy^-T and p.gy Cy^-1 gy. Returns what y gains."""
    total: int = p.y.shape[0]
    q = total - 2
    if not cholesky(p.Hy, p.Cy, total, 0.0):  # expected instead of observed curvature
        for a in range(q):
            for c in range(a + 1):
                p.Hy[a, c] = 2.0 * dot(w.P, a, c, p.data, 0, _WEIGHT)
        for i in range(q + 1):
            p.Hy[q + 1, i] = 0.0
        p.Hy[q + 1, q + 1] = max(abs(p.Hy[q + 1, q + 1]), 1.0)
        for x in range(size):
            p.Y[x, q + 1] = 0.0
        if not cholesky(p.Hy, p.Cy, total, 0.0):
            return np.inf
    gain = 0.0
    for i in range(total):
        v = p.gy[i]
        for h in range(i):
            v -= p.Cy[i, h] * p.gy[h]
        p.gy[i] = v / p.Cy[i, i]
        gain += 0.5 * p.gy[i] * p.gy[i]
    for x in range(size):
        for i in range(total):
            v = p.Y[x, i]
            for h in range(i):
                v -= p.Cy[i, h] * p.Y[x, h]
            p.Y[x, i] = v / p.Cy[i, i]
            w.g[x] -= p.Y[x, i] * p.gy[i]
        for y in range(x + 1):
            v = 0.0
            for i in range(total):
                v += p.Y[x, i] * p.Y[y, i]
            w.H[x, y] -= v
    return gain


@once
def _step_of_y(w: Work, p: Pool, size: int, part: float) -> None:
    """p.y moves by a part of what goes with the step of L; the old one is in p.trial."""
    total: int = p.y.shape[0]
    q = total - 2
    for i in range(total):
        p.trial[i] = p.y[i]
        v = -p.gy[i]
        for x in range(size):
            v -= p.Y[x, i] * w.unit[x] * w.step[x]
        p.y[i] = v
    tau = p.trial[q + 1]
    for i in range(total - 1, -1, -1):
        v = p.y[i]
        for h in range(i + 1, total):
            v -= p.Cy[h, i] * p.y[h]
        p.y[i] = v / p.Cy[i, i]
        if i == q + 1:  # bounds on tau first: the others then go with what it does
            p.y[i] = max(-0.9 * tau, min(2.0 * tau + 1.0, p.y[i]))
    for i in range(total):
        p.y[i] = p.trial[i] + part * (max(-2.0, min(2.0, p.y[i])) if i == q else p.y[i])


@jit
def _first_guess(y: Floats, n: Floats, rho: Floats, q: int) -> None:
    """Take log s and tau in y from the spread of the data sets' own residual variances; beta 0."""
    count, mean, square, noise = 0.0, 0.0, 0.0, 0.0
    for j in range(n.shape[0]):
        df = n[j] - q
        if df > 0.5 and rho[0, 0, j] > 0.0:
            v = math.log(rho[0, 0, j] / df)
            count += 1.0
            mean += v
            square += v * v
            noise += 2.0 / df
    for a in range(q):
        y[a] = 0.0
    y[q] = mean / max(count, 1.0)
    spread = 0.0
    if count > 1.5:
        spread = (square - mean * mean / count) / (count - 1.0) - noise / count
    y[q + 1] = min(max(spread, 0.02), 5.0)


@once
def _start_pooled(s: Space, w: Work, more: Floats, n: Floats, start: float) -> int:
    """As `optimise._start`: w.L after one or two EM steps from D = start I, and p.y with it."""
    random: int = w.L.shape[0]
    copy_columns(w.L, w.L, 0)
    _first_guess(carve_pool(s, more).y, n, w.rho, s.q)
    if start == 0.0:
        evaluate_pooled(s, more, n, w.L, 0, 3)
        return 0
    root = math.sqrt(start)
    for a in range(random):
        w.L[a, a] = root
    for _ in range(2):
        evaluate_pooled(s, more, n, w.L, random, 3)
        gradient_pooled(s, more)
        if em_step(w, s.F) < FAR * start:
            break
    return random


@once
def _add_column_pooled(
    s: Space, w: Work, p: Pool, more: Floats, n: Floats, k: int, f: float, tolerance: float
) -> float:
    """As `optimise._add_column`: f with a column more in w.trial, or inf."""
    total: int = p.y.shape[0]
    t = way_out(w, tolerance)
    if t > 0.0:
        for i in range(total):
            p.trial[i] = p.y[i]
        for _ in range(20):
            widen(w.L, k, t, w.unit, w.trial)
            fnew: float = evaluate_pooled(s, more, n, w.trial, k + 1, 1)
            if fnew < f:
                return fnew
            for i in range(total):
                p.y[i] = p.trial[i]
            t *= 0.25
    return np.inf


@once
def minimise_pooled(
    s: Space, w: Work, p: Pool, more: Floats, n: Floats, k: int, tolerance: float, polish: bool
) -> tuple[float, int, bool]:
    """Minimise f from the k columns of w.L and from p.y, which become the minimum's.

    Returns:
        f, rank, and whether it settled.
    """
    random: int = w.L.shape[0]
    total: int = p.y.shape[0]
    q = total - 2
    # As in `optimise`, now with sum w e = 0: the rank is at most |F| - 1.
    k = regauge(w.L, k, s.F - 1, w.perm, w.D)
    f = evaluate_pooled(s, more, n, w.L, k, 2)
    damping = 0.0
    brake = 0.0  # the same for log s and tau, whose model can be far from f where tau is large
    smallest = np.inf
    tolerance = max(tolerance, 1e-15 * (abs(f) + n.sum()))
    for _ in range(MAX_STEPS):
        if not f < np.inf:
            return f, k, False
        gradient_pooled(s, more)
        free = total
        size = derivatives_pooled(s, more, n, k, free)
        if p.y[q + 1] == 0.0 and p.gy[q + 1] >= 0.0:
            free = total - 1
            size = derivatives_pooled(s, more, n, k, free)
        elif p.y[q + 1] > 0.0 and p.gy[q + 1] > 0.0:  # is f lower without a spread?
            curvature = p.Hy[q + 1, q + 1]
            if p.y[q + 1] < _NO_SPREAD or p.gy[q + 1] > 0.5 * curvature * p.y[q + 1]:
                for i in range(total):
                    p.trial[i] = p.y[i]
                p.y[q + 1] = 0.0
                fnew = evaluate_pooled(s, more, n, w.L, k, 1)
                if fnew <= f:
                    f = fnew
                    continue
                for i in range(total):
                    p.y[i] = p.trial[i]
        for i in range(q, total):
            p.Hy[i, i] *= 1.0 + brake
        gain_y = _eliminate(w, p, size)
        if not gain_y < np.inf or not rescale(w, k):
            return f, k, False

        if k > 0:  # a column that shrinks: is f lower without it?
            norm = 0.0
            for a in range(random):
                norm += w.L[a, k - 1] * w.L[a, k - 1]
            if norm < min(SMALL, 0.1 * smallest):
                smallest = norm
                for i in range(total):
                    p.trial[i] = p.y[i]
                fnew = evaluate_pooled(s, more, n, w.L, k - 1, 1)
                if fnew <= f:
                    f = fnew
                    k = regauge(w.L, k - 1, k - 1, w.perm, w.D)
                    smallest = np.inf
                    continue
                for i in range(total):
                    p.y[i] = p.trial[i]

        moved = False
        part = 1.0
        while True:
            while not cholesky(w.H, w.HC, size, damping) and damping < HOPELESS:
                damping = max(4.0 * damping, 1e-3)
            for x in range(size):
                w.step[x] = -w.g[x]
            solve(w.HC, size, w.step)
            gain = gain_y * part * (2.0 - part)
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
            _step_of_y(w, p, size, part)
            fnew = evaluate_pooled(s, more, n, w.trial, k, 0)
            if gain < tolerance:
                if fnew < f + ROUNDING:
                    copy_columns(w.trial, w.L, random)
                    f = min(f, fnew)
                else:
                    for i in range(total):
                        p.y[i] = p.trial[i]
                break
            ratio = (f - fnew) / gain
            if ratio > 1e-3:
                copy_columns(w.trial, w.L, random)
                f = fnew
                if ratio > 0.75:
                    damping = damping / 5.0 if damping > 1e-6 else 0.0
                elif ratio < 0.25:
                    damping = max(2.0 * damping, 1e-3)
                if part < 0.5:
                    brake = max(4.0 * brake, 1.0)
                elif part == 1.0:
                    brake = brake / 5.0 if brake > 1e-3 else 0.0
                moved = True
                break
            for i in range(total):
                p.y[i] = p.trial[i]
            damping = min(max(4.0 * damping, 1e-2), HOPELESS)
            part *= 0.5
            if part < 1e-8:
                break
        if moved:
            k = regauge(w.L, k, k, w.perm, w.D)
            continue
        if k == random:
            return f, k, True
        f = min(f, evaluate_pooled(s, more, n, w.L, k, 0))
        gradient_pooled(s, more)
        fnew = _add_column_pooled(s, w, p, more, n, k, f, tolerance)
        if fnew == np.inf:
            return f, k, True
        f = fnew
        copy_columns(w.trial, w.L, random)
        k = regauge(w.L, k + 1, k + 1, w.perm, w.D)
        damping = 0.0
        brake = 0.0
        smallest = np.inf
    return f, k, False


@entry(
    vector, matrix, cube, integers, integers, integers, numba.int64, vector, numba.float64,
    numba.boolean, vector, vector, integers, vector, integers, integers, vector, vector,
)  # fmt: skip
def fit_pooled(
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
    rank: Integers,
    code: Integers,
    residual: Floats,
    squares: Floats,
) -> None:
    """Fit each family, as `optimise.fit_families` does.

    When polishing, `residual` gets log s and tau, `squares` (F,) the generalised residual squares
    of the last family, w.beta beta and w.S the expected information of beta times s.
    """
    F = n.shape[0]
    total = n.sum()
    for family in range(children.shape[0]):
        pa = parents[offsets[family] : offsets[family + 1]]
        q = pa.shape[0] + 1
        random = max(q - without, 1)
        s = Space(buffer, perm, F, q, random, q < 0)  # not REML; a literal would be another type
        w = carve(s)
        p = carve_pool(s, more)
        for i in range(8):
            fill(p.data, 0, i, 0.0)
        deviance[family] = np.inf
        rank[family] = 0
        rho, code[family] = compress(s, n, mean, scatter, children[family], pa)
        if code[family] != CONVERGED:
            continue
        if not rho > RANK_TOLERANCE * total:
            code[family] = DETERMINED
            continue
        for i in range(starts.shape[0]):
            k = _start_pooled(s, w, more, n, starts[i])
            f, k, settled = minimise_pooled(s, w, p, more, n, k, tolerance, polish)
            if i == 0 or f < deviance[family] - ROUNDING:
                deviance[family] = f
                rank[family] = k
                code[family] = CONVERGED if settled else UNSETTLED
                copy_columns(w.L, w.best, k)
                for h in range(q + 2):
                    p.best[h] = p.y[h]
        deviance[family] += total * math.log(2.0 * math.pi)
        if polish:
            for h in range(q + 2):
                p.y[h] = p.best[h]
            evaluate_pooled(s, more, n, w.best, rank[family], 0)
            residual[0], residual[1] = p.y[q], p.y[q + 1]
            for a in range(q):
                w.beta[a] = p.y[a]
                for b in range(a + 1):
                    w.S[a, b] = 0.0
            for j in range(F):
                squares[j] = p.data[0, _SQUARE, j]
                # c = (2a + n) / (2a + n + 2)
                c = (2.0 + residual[1] * n[j]) / (2.0 + residual[1] * (n[j] + 2.0))
                for a in range(q):
                    for b in range(a + 1):
                        w.S[a, b] += c * w.P[a, b, j]
