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
that only L is damped. The search is that of `optimise`.
"""

from __future__ import annotations

import math
import sys
from typing import Annotated, NamedTuple

import numpy as np

from poolbn.constants import RANK_TOLERANCE
from poolbn.kernels.cutting import layout
from poolbn.kernels.deviance import between, by_entries, whiten
from poolbn.kernels.gammas import spread, spread_slopes, tail, tail_slopes
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    add,
    add_products,
    cholesky,
    combine,
    dot,
    dot3,
    fill,
    jit,
    multiply,
    put,
    raise_squares,
    solve,
    sum_of,
)
from poolbn.kernels.optimise import ONE_STEP, minimiser
from poolbn.kernels.work import (
    RAISED,
    RHO,
    Result,
    Space,
    carve,
    inline,
)

_NO_SPREAD = 1e-7  # a tau below this is 0
# Rows of `Pool.data`: w, k, q, x, -d2f/dq dlog s, d2f/dq dtau; the last is for use at once.
_WEIGHT, _CURVE, _SQUARE, _X, _BY_SCALE, _BY_TAU, _ONE = range(7)


class Pool(NamedTuple):
    """Arrays beside `Work`. The parameters w.y are beta, log s, tau: q + 2."""

    data: Annotated[Floats, "1, 7, F"]  # see the names above
    res: Annotated[Floats, "1, q, F"]  # W^-1/2 (r - R beta)
    gy: Annotated[Floats, "q + 2"]  # gradient in y
    Hy: Annotated[Floats, "q + 2, q + 2"]  # Hessian in y
    Cy: Annotated[Floats, "q + 2, q + 2"]  # its Cholesky factor
    Y: Annotated[Floats, "size, q + 2"]  # Hessian between the entries of L and y


SCORING = False  # see `optimise`
carve_pool, shapes = layout(Pool, "more")


@jit
def _weigh(s: Space) -> float:
    """Residuals, their squares, weights and derivatives at y; returns f without log|W|."""
    w, p = carve(s), carve_pool(s)
    n, q = s.n, s.q
    log_s, tau = w.y[q], w.y[q + 1]
    inverse = math.exp(-log_s)
    put(p.data, 0, _SQUARE, 1.0, w.rho, 0, 0)
    for i in range(q):
        put(p.res, 0, i, 1.0, w.rt, 0, i)
        for a in range(q):
            add(p.res, 0, i, -w.y[a], w.Rt, a, i)
    add_products(p.data, 0, _SQUARE, 1.0, p.res, 0, p.res, 0, q)
    f = 0.0
    of_rows = 0.0
    last = -1.0
    for j in range(s.F):
        if n[j] != last:
            of_rows = spread(tau, n[j])
            last = n[j]
        x = p.data[0, _SQUARE, j] * inverse
        c = 1.0 + tau * x / 2.0
        over = 1.0 + tau * n[j] / 2.0
        f += n[j] * log_s + of_rows + tail(tau, n[j], x)
        p.data[0, _X, j] = x
        p.data[0, _WEIGHT, j] = over / c * inverse
        p.data[0, _CURVE, j] = tau * over / (c * c) * inverse * inverse
        p.data[0, _BY_SCALE, j] = over / (c * c) * inverse
        p.data[0, _BY_TAU, j] = (n[j] - x) / (2.0 * c * c) * inverse
    return f


@jit
def evaluate(s: Space, L: Floats, k: int, steps: int) -> float:
    """Deviance at the k columns of L and at y; beta and log s first make so many scoring steps.

    Fills P, e and data; inf where beta is not determined.
    """
    w, p = carve(s), carve_pool(s)
    n, q = s.n, s.q
    f: float = whiten(s, L, k)
    g: float = _weigh(s)
    for _ in range(steps):
        slope, curvature = 0.0, 0.0
        for j in range(s.F):
            x = p.data[0, _X, j]
            slope += n[j] - x * p.data[0, _WEIGHT, j] * math.exp(w.y[q])
            curvature += x * p.data[0, _BY_SCALE, j] * math.exp(w.y[q])
        w.y[q] -= max(-2.0, min(2.0, slope / curvature))
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
            w.y[a] = w.beta[a]
        g = _weigh(s)
    for a in range(q):
        fill(w.e, 0, a, 0.0)
        add_products(w.e, 0, a, 1.0, w.Rt, a, p.res, 0, q)
    return f + g


@jit
def gradient(s: Space) -> None:
    """Fill G = df/dD, (r, r)."""
    w, p = carve(s), carve_pool(s)
    random = s.r
    for a in range(random):
        put(p.data, 0, _ONE, 1.0, w.e, 0, a)
        multiply(p.data, 0, _ONE, p.data, 0, _WEIGHT)
        for c in range(a + 1):
            w.G[a, c] = sum_of(w.P, a, c) - dot(p.data, 0, _ONE, w.e, 0, c)
            w.G[c, a] = w.G[a, c]


@jit
def fill_derivatives(s: Space, k: int) -> int:
    """Gradients g, gy and Hessians H, Y, Hy in the entries of L and in y; returns how many of L."""
    w, p = carve(s), carve_pool(s)
    n, q = s.n, s.q
    F = w.e.shape[2]
    L, perm, H, P, PL, K, m, e, u = w.L, s.perm, w.H, w.P, w.PL, w.K, w.m, w.e, w.u
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
        first += random - b
    by_entries(s, w, k)
    for a in range(q):
        put(data, 0, _ONE, 1.0, e, 0, a)
        multiply(data, 0, _ONE, data, 0, _CURVE)
        for c in range(a + 1):
            Hy[a, c] = 2.0 * (dot(P, a, c, data, 0, _WEIGHT) - dot(data, 0, _ONE, e, 0, c))
        p.gy[a] = -2.0 * dot(e, 0, a, data, 0, _WEIGHT)
        Hy[q, a] = 2.0 * dot(e, 0, a, data, 0, _BY_SCALE)
        Hy[q + 1, a] = -2.0 * dot(e, 0, a, data, 0, _BY_TAU)
    scale = math.exp(w.y[q])
    tau = w.y[q + 1]
    p.gy[q], p.gy[q + 1] = 0.0, 0.0
    Hy[q, q], Hy[q + 1, q], Hy[q + 1, q + 1] = 0.0, 0.0, 0.0
    slope, curvature = 0.0, 0.0
    last = -1.0
    for j in range(s.F):
        if n[j] != last:
            slope, curvature = spread_slopes(tau, n[j])
            last = n[j]
        x_j = data[0, _X, j]
        one, two = tail_slopes(tau, n[j], x_j)
        p.gy[q] += n[j] - x_j * data[0, _WEIGHT, j] * scale
        p.gy[q + 1] += slope + one
        Hy[q, q] += x_j * data[0, _BY_SCALE, j] * scale
        Hy[q + 1, q] -= x_j * data[0, _BY_TAU, j] * scale
        Hy[q + 1, q + 1] += curvature + two
    return first


@inline
def derivatives(s: Space, k: int, f: float) -> tuple[int, float]:
    """Tau stays at its least value, 0, where f would rise with it; elsewhere 0 may be tried."""
    w, p = carve(s), carve_pool(s)
    last = s.q + 1
    size: int = fill_derivatives(s, k)
    if w.y[last] == 0.0 and p.gy[last] >= 0.0:
        p.Hy[last, last] = 1.0
        p.gy[last] = 0.0
        for i in range(last):
            p.Hy[last, i] = 0.0
        for x in range(size):
            p.Y[x, last] = 0.0
    elif w.y[last] > 0.0 and p.gy[last] > 0.0:
        curvature = p.Hy[last, last]
        if w.y[last] < _NO_SPREAD or p.gy[last] > 0.5 * curvature * w.y[last]:
            w.y[last] = 0.0
            fnew: float = evaluate(s, w.L, k, ONE_STEP)
            if not fnew <= f:
                for i in range(last + 1):
                    w.y[i] = w.y_old[i]
            return size, fnew
    return size, np.inf


@inline
def eliminate(s: Space, size: int, brake: float) -> float:
    """Take y out of w.g and w.H; p.Y becomes Y Cy^-T and p.gy Cy^-1 gy.

    The brake is for log s and tau, whose model can be far from f where tau is large.
    """
    w, p = carve(s), carve_pool(s)
    q, total = s.q, s.q + 2
    for i in range(q, total):
        p.Hy[i, i] *= 1.0 + brake
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
    for i in range(total):
        for x in range(size):  # in this order: entries do not wait for each other
            v = p.Y[x, i]
            for h in range(i):
                v -= p.Cy[i, h] * p.Y[x, h]
            p.Y[x, i] = v / p.Cy[i, i]
            w.g[x] -= p.Y[x, i] * p.gy[i]
    for x in range(size):
        for y in range(x + 1):
            v = 0.0
            for i in range(total):
                v += p.Y[x, i] * p.Y[y, i]
            w.H[x, y] -= v
    return gain


@inline
def step(s: Space, size: int, part: float) -> None:
    """Move y."""
    w, p = carve(s), carve_pool(s)
    q, total = s.q, s.q + 2
    for i in range(total):
        v = -p.gy[i]
        for x in range(size):
            v -= p.Y[x, i] * w.unit[x] * w.step[x]
        w.y[i] = v
    tau = w.y_old[q + 1]
    for i in range(total - 1, -1, -1):
        v = w.y[i]
        for h in range(i + 1, total):
            v -= p.Cy[h, i] * w.y[h]
        w.y[i] = v / p.Cy[i, i]
        if i == q + 1:  # bounds on tau first: the others then go with what it does
            w.y[i] = max(-0.9 * tau, min(2.0 * tau + 1.0, w.y[i]))
    for i in range(total):
        w.y[i] = w.y_old[i] + part * (max(-2.0, min(2.0, w.y[i])) if i == q else w.y[i])


@inline
def guess(s: Space, own: bool) -> None:
    """Take log s and tau from the spread of the data sets' own residual variances; beta is 0."""
    w, q = carve(s), s.q
    count, mean, square, noise = 0.0, 0.0, 0.0, 0.0
    for j in range(s.F):
        df = s.n[j] - q
        if df > 0.5 and w.rho[0, 0, j] > 0.0:
            v = math.log(w.rho[0, 0, j] / df)
            count += 1.0
            mean += v
            square += v * v
            noise += 2.0 / df
    for a in range(q):
        w.y[a] = 0.0
    w.y[q] = mean / max(count, 1.0)
    spread = 0.0
    if count > 1.5:
        spread = (square - mean * mean / count) / (count - 1.0) - noise / count
    w.y[q + 1] = min(max(spread, 0.02), 5.0)


@jit
def relax(part: float, brake: float, ratio: float) -> tuple[float, float]:
    """Try the whole step again, with more or less of a brake."""
    if part < 0.5:
        brake = max(4.0 * brake, 1.0)
    elif part == 1.0:
        brake = brake / 5.0 if brake > 1e-3 else 0.0
    return 1.0, brake


@inline
def prepare(s: Space, scatter: Floats, child: int, least: float) -> tuple[float, float, bool]:
    """Only a child that its parents determine in all data sets has no maximum.

    A data set with no more rows than coefficients counts as if it had one residual of the pooled
    size. Where fixed effects fit it exactly the likelihood would else rise without bound as a and s
    go to 0.
    """
    w, p = carve(s), carve_pool(s)
    for i in range(p.data.shape[1]):
        fill(p.data, 0, i, 0.0)
    rows = s.n.sum()
    squares = w.rho[0, 0]
    s.totals[RAISED] = raise_squares(squares, s.n, s.q, least)
    total, df = 0.0, 0.0
    for j in range(s.F):
        if s.n[j] > s.q:
            total += squares[j]
            df += s.n[j] - s.q
    for j in range(s.F):
        if s.n[j] <= s.q and df > 0.0:
            squares[j] = max(squares[j], total / df)
            s.totals[RAISED] += squares[j]
    return -np.inf, rows * math.log(2.0 * math.pi), s.totals[RHO] > RANK_TOLERANCE * rows


@inline
def unevenness(s: Space) -> float:
    """Precisions are weights, expected ones given the rows."""
    p = carve_pool(s)
    precision, variance, rows = 0.0, 0.0, 0.0
    for j in range(s.F):
        precision += s.n[j] * p.data[0, _WEIGHT, j]
        variance += s.n[j] / p.data[0, _WEIGHT, j]
        rows += s.n[j]
    return 0.5 * math.log(precision / rows * (variance / rows))


@inline
def leave(s: Space, result: Result) -> None:
    """Leave s and tau; w.S becomes the expected information of beta times s."""
    w, p = carve(s), carve_pool(s)
    q = s.q
    tau = w.y[q + 1]
    result.residual[0], result.residual[1] = math.exp(w.y[q]), tau
    for a in range(q):
        w.beta[a] = w.y[a]
        for b in range(a + 1):
            w.S[a, b] = 0.0
    for j in range(s.F):
        result.squares[j] = p.data[0, _SQUARE, j]
        # c = (2a + n) / (2a + n + 2)
        c = (2.0 + tau * s.n[j]) / (2.0 + tau * (s.n[j] + 2.0))
        for a in range(q):
            for b in range(a + 1):
                w.S[a, b] += c * w.P[a, b, j]


fit_one, fit, fit_units = minimiser(sys.modules[__name__])
