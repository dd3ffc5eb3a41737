"""Generalised linear mixed models by the Laplace approximation: value, gradient, search. Compiled.

Data set j has coefficients t_j = B + Z u_j, (d,) with d = C q; u_j ~ N(0, I), Z = A kron L with
AA' = S (I + 11' for levels, 1 for counts) and LL' = D, so a singular D is no special case. With
g the score and W the information of its rows at t_j, u_j the inner maximum (u = Z'g), and
M = I + Z'WZ:
  log L = sum_j [ l_j(t_j) - u_j'u_j / 2 - log|M_j| / 2 ].
Let V = Z M^-1 Z', P = W - WVW, s = d tr(VW) / dt at fixed V (`rows.third`), and r = s - WVs. By the
implicit function theorem the exact derivatives are
  in B: sum_j [ g - r / 2 ];
  in D: G = sum_j sum_kl S_kl [ g_k g_l' - P_kl - (r_k g_l' + g_k r_l') / 2 ] / 2, and 2GL in L.
G is defined also where D is singular: there D is optimal to first order if GL = 0 and no eigenvalue
of G is positive, as in `optimise`. So L has k columns in the gauge of a pivoted Cholesky
decomposition; columns that shrink are dropped, and columns along an eigenvector of G are added.
Only the first r coefficients of a level vary: other rows of L are 0, and only the first r rows and
columns of G matter. Units inside data sets have intercepts of their own, see `nested`: where there
are any, W_0 takes the place of W.

In between BFGS steps, from the metric of the linear mixed model that W and g describe. The inner
maximum at new B and L begins where that model has it, from W, g and t alone: an error of second
order, so mostly one or two passes over the rows are enough.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolbn.kernels.glm import penalty
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cholesky, jit, solve
from poolbn.kernels.nested import (
    Units,
    add_slopes,
    aim,
    begin_step,
    column,
    correct,
    eliminate,
    fold,
    gather,
    go,
    place,
    predict,
    rest,
)
from poolbn.kernels.rows import NEGATIVE_BINOMIAL, dispersion, rows, third

_INNER = 100  # Newton steps to a mode
_LOG_THETA = 14.0  # counts with more are Poisson
_DECREMENT = 1e-18  # of the last one, in units of the log-likelihood
_LEAST = 1e-3  # curvature in tau


class Model(NamedTuple):
    """Rows, and the work space of one fit. See `rows` for the table and for states."""

    family: int
    q: int
    r: int  # coefficients of a level that vary, the first ones
    C: int  # linear predictors, d = C q
    table: Floats  # (q + 2 + 3 C, m), with units (q + 2 + 4 C + C C, m)
    offsets: Integers  # where the rows of data sets begin in it, (F + 1,)
    states: Floats  # of data sets as they are, and as they are tried, (2 F, d + 2, d); then W_0
    units: Units
    work: Floats  # matrices named below, the last of lines, (WORK, N, N)


# A, S = (AA')^-1, Z, WZ, M and its Cholesky factor, V, P, N = (A' kron I) P (A kron I) ...
WORK = 13
A_, S_, Z_, WZ_, M_, CHOLESKY_, V_, P_, N_, NL_, SPARE_, METRIC_, LINES_ = range(WORK)
LINES = 19
(
    B_, CENTRE_, RIDGE_, U_, STEP_, OLD_, THIRD_, R_, SCORE_, VS_, SPARE_LINE_, X_, X_OLD_, SLOPE_,
    MOVE_, CHANGE_, HS_, THETA_, UNITS_,
) = range(LINES)  # fmt: skip


@jit
def theta_of(m: Model) -> float:
    """Theta, at most its upper limit."""
    return math.exp(min(m.work[LINES_, THETA_, 0], _LOG_THETA))


# Of the line of units.
TAU_, IN_SQUARE_, CURVATURE_, HELD_ = range(4)


@jit
def has_units(m: Model) -> bool:
    """Whether there are units inside data sets."""
    some: bool = m.units.rows.shape[0] > 0
    return some


@jit
def has_tau(m: Model) -> bool:
    """Whether tau is searched for."""
    free: bool = has_units(m) and not m.work[LINES_, UNITS_, HELD_] > 0.0
    return free


@jit
def left_of(m: Model, side: int, j: int, into: int) -> float:
    """Fill W_0 of a data set on one side from its units on another; see `nested.eliminate`."""
    d, F, work = m.C * m.q, m.offsets.shape[0] - 1, m.work
    left = m.states[into * F + j][d + 2 :]
    value: float = eliminate(
        m.units, side, j, m.states[side * F + j], m.C, d, work[A_], work[LINES_, UNITS_, TAU_],
        work[NL_], work[SPARE_], left, work[LINES_, SPARE_LINE_],
    )  # fmt: skip
    return value


@jit
def information(m: Model) -> int:
    """Where states have W; with units W_0."""
    return m.C * m.q + 2 if has_units(m) else 0


@jit
def spread(m: Model, L: Floats, k: int) -> None:
    """Z = A kron L, (d, C k)."""
    q, C, A, Z = m.q, m.C, m.work[A_], m.work[Z_]
    for i in range(C):
        for a in range(q):
            for h in range(C):
                for b in range(k):
                    Z[i * q + a, h * k + b] = A[i, h] * L[a, b]


@jit
def _curvature(W: Floats, work: Floats, d: int, e: int) -> bool:
    """WZ, and the Cholesky factor of M = I + Z'WZ, (e, e)."""
    Z, WZ, M = work[Z_], work[WZ_], work[M_]
    for a in range(d):
        for b in range(e):
            v = 0.0
            for c in range(d):
                v += W[a, c] * Z[c, b]
            WZ[a, b] = v
    for a in range(e):
        for b in range(a + 1):
            v = 1.0 if a == b else 0.0
            for c in range(d):
                v += Z[c, a] * WZ[c, b]
            M[a, b] = v
    positive: bool = cholesky(M, work[CHOLESKY_], e, 0.0)
    return positive


@jit
def _move(work: Floats, t: Floats, d: int, e: int) -> None:
    """T = B + Zu."""
    Z, B, u = work[Z_], work[LINES_, B_], work[LINES_, U_]
    for a in range(d):
        v = B[a]
        for b in range(e):
            v += Z[a, b] * u[b]
        t[a] = v


@jit
def _predict(work: Floats, base: Floats, d: int, e: int) -> None:
    """U of the linear mixed model with W, g, t of `base`: (I + Z'WZ) u = Z'(g + W(t - B))."""
    Z, B, u, line = work[Z_], work[LINES_, B_], work[LINES_, U_], work[LINES_, SPARE_LINE_]
    _curvature(base, work, d, e)
    for a in range(d):
        v = base[d + 1, a]
        for b in range(d):
            v += base[a, b] * (base[d, b] - B[b])
        line[a] = v
    for b in range(e):
        v = 0.0
        for a in range(d):
            v += Z[a, b] * line[a]
        u[b] = v
    solve(work[CHOLESKY_], e, u)


@jit
def _mode(m: Model, j: int, base: Floats, state: Floats, e: int, theta: float) -> float:
    """Find the mode of data set j from what `base` was; returns its part of the log-likelihood."""
    work, d = m.work, m.C * m.q
    u, step, old = work[LINES_, U_], work[LINES_, STEP_], work[LINES_, OLD_]
    Z, C, t, g = work[Z_], work[CHOLESKY_], state[d], state[d + 1]
    _predict(work, base, d, e)
    best, part = -np.inf, 1.0
    for i in range(_INNER):
        _move(work, t, d, e)
        h = rows(m.family, m.table, m.q, m.C, m.offsets[j], m.offsets[j + 1], theta, state, 0)
        for b in range(e):
            h -= 0.5 * u[b] * u[b]
        if i == 0 and not h > -np.inf:  # the prediction went too far: from the population's
            for b in range(e):
                u[b] = 0.0
            continue
        if not h >= best - 1e-12 * abs(best):
            part *= 0.5
            if part < 1e-10:
                return -np.inf
            for b in range(e):
                u[b] = old[b] + part * step[b]
            continue
        best, part = h, 1.0
        if not (h > -np.inf and _curvature(state, work, d, e)):
            return -np.inf
        for b in range(e):
            v = -u[b]
            for a in range(d):
                v += Z[a, b] * g[a]
            step[b] = v
            old[b] = v
        solve(C, e, step)
        decrement = 0.0
        for b in range(e):
            decrement += step[b] * old[b]
        if not decrement > _DECREMENT * (1.0 + abs(h)):
            break
        for b in range(e):
            old[b] = u[b]
            u[b] += step[b]
    for b in range(e):
        best -= math.log(C[b, b])
    return best


@jit
def _seek(m: Model, j: int, start: int, to: int, e: int) -> float:
    """Where u and units should go, as far as what one side has of them can tell, as their STEP.

    Returns what the units add to log|M| / 2, or inf where a curvature is not positive.
    """
    F, d, work, lines = m.offsets.shape[0] - 1, m.C * m.q, m.work, m.work[LINES_]
    base, t = m.states[start * F + j], lines[VS_]
    Z, B, step, line = work[Z_], lines[B_], lines[STEP_], lines[SPARE_LINE_]
    value = left_of(m, start, j, to)
    left = m.states[to * F + j][d + 2 :]
    if not (value < np.inf and _curvature(left, work, d, e)):
        return np.inf
    for a in range(d):
        for b in range(d):
            line[a] += left[a, b] * (base[d, b] - B[b])
    for b in range(e):
        v = 0.0
        for a in range(d):
            v += Z[a, b] * line[a]
        step[b] = v
    solve(work[CHOLESKY_], e, step)
    for a in range(d):
        t[a] = B[a]
        for b in range(e):
            t[a] += Z[a, b] * step[b]
    aim(m.units, start, to, j, t, base[d], m.C, d, work[NL_])
    return float(value)


@jit
def _joint_mode(m: Model, j: int, side: int, e: int, theta: float) -> float:
    """`_mode` of a data set with units."""
    F, work, d, to = m.offsets.shape[0] - 1, m.work, m.C * m.q, 1 - side
    lines, A, Z, units = work[LINES_], work[A_], work[Z_], m.units
    u, step, old, tau = lines[U_], lines[STEP_], lines[OLD_], lines[UNITS_, TAU_]
    state = m.states[to * F + j]
    t, g = state[d], state[d + 1]
    if not _seek(m, j, side, to, e) < np.inf:
        return -np.inf
    predict(units, side, to, j, m.C, A, tau)
    for b in range(e):
        u[b] = step[b]
    best, part, curved = -np.inf, 1.0, 0.0
    for i in range(_INNER):
        _move(work, t, d, e)
        h = -place(units, to, j, m.table, m.q, m.C, A, tau)
        h += rows(
            m.family, m.table, m.q, m.C, m.offsets[j], m.offsets[j + 1], theta, state,
            column(m.q, m.C),
        )  # fmt: skip
        for b in range(e):
            h -= 0.5 * u[b] * u[b]
        if i == 0 and not h > -np.inf:
            for b in range(e):
                u[b] = 0.0
            rest(units, to, j, m.C)
            continue
        if not h >= best - 1e-12 * abs(best):
            part *= 0.5
            if part < 1e-10:
                return -np.inf
            for b in range(e):
                u[b] = old[b] + part * step[b]
            go(units, to, j, m.C, part)
            continue
        best, part = h, 1.0
        if not h > -np.inf:
            return -np.inf
        gather(units, to, j, m.table, m.q, m.C)
        curved = _seek(m, j, to, to, e)
        if not curved < np.inf:
            return -np.inf
        decrement = begin_step(units, to, j, m.C, A, tau)
        for b in range(e):
            v = -u[b]
            for a in range(d):
                v += Z[a, b] * g[a]
            step[b] -= u[b]
            old[b] = u[b]
            decrement += step[b] * v
        if not decrement > _DECREMENT * (1.0 + abs(h)):
            break
        for b in range(e):
            u[b] += step[b]
        go(units, to, j, m.C, 1.0)
    best -= curved
    for b in range(e):
        best -= math.log(work[CHOLESKY_][b, b])
    return best


@jit
def objective(m: Model, side: int, L: Floats, k: int) -> float:
    """Minus the log-likelihood, and the penalties; data sets from one side into the other."""
    F, lines = m.offsets.shape[0] - 1, m.work[LINES_]
    theta = theta_of(m)
    spread(m, L, k)
    value: float = penalty(
        lines[B_], lines[CENTRE_], m.work[S_], lines[RIDGE_, 0], m.q, m.C, lines[SPARE_LINE_]
    )
    for j in range(F):
        base, state = m.states[side * F + j], m.states[(1 - side) * F + j]
        if has_units(m):
            value -= _joint_mode(m, j, side, m.C * k, theta)
        else:
            value -= _mode(m, j, base, state, m.C * k, theta)
        if not value < np.inf:
            return np.inf
    if m.family == NEGATIVE_BINOMIAL:
        value -= dispersion(m.table, m.q, m.offsets[0], m.offsets[F], theta)[0]
    for a in range(m.q):
        for b in range(k):
            value += 0.5 * lines[RIDGE_, 1] * L[a, b] * L[a, b]
    if has_units(m):
        value += 0.5 * lines[RIDGE_, 1] * lines[UNITS_, TAU_] ** 2
    return value


@jit
def project(work: Floats, W: Floats, d: int, e: int) -> None:
    """V = Z M^-1 Z' and P = W - WVW of one data set, from its W and Z."""
    Z, WZ, C, V, P = work[Z_], work[WZ_], work[CHOLESKY_], work[V_], work[P_]
    N, M = work[N_], work[M_]
    _curvature(W, work, d, e)
    for a in range(d):  # N and M become Z C'^-1 and WZ C'^-1
        for b in range(e):
            v, x = Z[a, b], WZ[a, b]
            for c in range(b):
                v -= C[b, c] * N[a, c]
                x -= C[b, c] * M[a, c]
            N[a, b] = v / C[b, b]
            M[a, b] = x / C[b, b]
    for a in range(d):
        for c in range(a + 1):
            v, x = 0.0, W[a, c]
            for b in range(e):
                v += N[a, b] * N[c, b]
                x -= M[a, b] * M[c, b]
            V[a, c] = v
            V[c, a] = v
            P[a, c] = x
            P[c, a] = x


@jit
def symmetric(work: Floats, q: int, C: int) -> None:
    """N = (A' kron I) P (A kron I)."""
    A, P, N = work[A_], work[P_], work[N_]
    for k in range(C):
        for h in range(C):
            for a in range(q):
                for b in range(q):
                    v = 0.0
                    for i in range(k, C):
                        for n in range(h, C):
                            v += A[i, k] * P[i * q + a, n * q + b] * A[n, h]
                    N[k * q + a, h * q + b] = v


@jit
def _add_metric(work: Floats, q: int, r: int, C: int, L: Floats, k: int, perm: Integers) -> None:
    """Add the expected information of the linear mixed model.

    That is P in B, and for entries (a, b), (c, f) of L
    sum_ih N_ih[a, c] (L'N_ih L)[b, f] + (N_ih L)[a, f] (N_hi L)[c, b].
    """
    H, P, N, NL, LNL = work[METRIC_], work[P_], work[N_], work[NL_], work[SPARE_]
    d = C * q
    for a in range(d):
        for b in range(a + 1):
            H[a, b] += P[a, b]
    symmetric(work, q, C)
    for i in range(C):
        for h in range(C):
            for b in range(k):
                for a in range(q):
                    v = 0.0
                    for c in range(q):
                        v += N[i * q + a, h * q + c] * L[c, b]
                    NL[i * q + a, h * q + b] = v
                for c in range(k):
                    v = 0.0
                    for a in range(q):
                        v += L[a, c] * NL[i * q + a, h * q + b]
                    LNL[i * q + c, h * q + b] = v
    x = d
    for b in range(k):
        for ia in range(b, r):
            a = perm[ia]
            z = d
            for f in range(b + 1):
                for ic in range(f, r if f < b else ia + 1):
                    c = perm[ic]
                    v = 0.0
                    for i in range(C):
                        for h in range(C):
                            v += (
                                N[i * q + a, h * q + c] * LNL[i * q + b, h * q + f]
                                + NL[i * q + a, h * q + f] * NL[h * q + c, i * q + b]
                            )
                    H[x, z] += v
                    z += 1
            x += 1


@jit
def _add_gradient(m: Model, W: Floats, g: Floats, G: Floats) -> None:
    """Add what one data set says: the slope in B, and G."""
    q, C, d, work = m.q, m.C, m.C * m.q, m.work
    A, V, P, lines = work[A_], work[V_], work[P_], work[LINES_]
    s, r, Vs, slope = lines[THIRD_], lines[R_], lines[VS_], lines[SLOPE_]
    for a in range(d):
        v = 0.0
        for b in range(d):
            v += V[a, b] * s[b]
        Vs[a] = v
    for a in range(d):
        v = s[a]
        for b in range(d):
            v -= W[a, b] * Vs[b]
        r[a] = v
        slope[a] -= g[a] - 0.5 * v
    for i in range(C):
        for h in range(C):
            S = 0.0
            for c in range(min(i, h) + 1):
                S += A[i, c] * A[h, c]
            for a in range(q):
                x = i * q + a
                for b in range(q):
                    y = h * q + b
                    cross = g[x] * g[y] - 0.5 * (r[x] * g[y] + g[x] * r[y])
                    G[a, b] += 0.5 * S * (cross - P[x, y])


@jit
def derivatives(
    m: Model, side: int, L: Floats, k: int, perm: Integers, metric: int, G: Floats
) -> None:
    """Fills G (q, q) and the slope of the objective in (B, L, log theta, tau), where last seen.

    With `metric` also the curvature to start from.
    """
    F, q, C, d, work = m.offsets.shape[0] - 1, m.q, m.C, m.C * m.q, m.work
    H, lines = work[METRIC_], work[LINES_]
    slope, S, ridge = lines[SLOPE_], work[S_], lines[RIDGE_]
    theta = theta_of(m)
    spread(m, L, k)
    penalty(lines[B_], lines[CENTRE_], S, ridge[0], q, C, slope)
    for a in range(q):
        for b in range(q):
            G[a, b] = 0.0
    if metric > 0:
        for a in range(H.shape[0]):
            for b in range(H.shape[0]):
                H[a, b] = 0.0
        for i in range(C):
            for h in range(C):
                for a in range(q):
                    H[i * q + a, h * q + a] = ridge[0] * S[i, h]
    in_theta = 0.0
    units, nested, of_units = m.units, has_units(m), lines[UNITS_]
    of_units[IN_SQUARE_], of_units[CURVATURE_] = 0.0, 0.0
    for j in range(F):
        state = m.states[side * F + j]
        if nested:
            left_of(m, side, j, side)
        W = state[information(m) :]
        project(work, W, d, C * k)
        if nested:
            correct(units, side, j, m.table, q, C, work[V_], work[NL_], work[SPARE_])
        direct = third(
            m.family, m.table, q, C, m.offsets[j], m.offsets[j + 1], theta, work[V_],
            lines[THIRD_], lines[SCORE_], column(q, C) if nested else 0,
        )  # fmt: skip
        if nested:
            direct += fold(
                units, side, j, m.table, q, C, lines[THIRD_], lines[SCORE_],
                m.family == NEGATIVE_BINOMIAL,
            )  # fmt: skip
        _add_gradient(m, W, state[d + 1], G)
        if nested:
            add_slopes(
                units, side, j, C, d, work[A_], work[V_], lines[VS_], work[NL_], work[SPARE_],
                of_units,
            )  # fmt: skip
        if metric > 0:
            _add_metric(work, q, m.r, C, L, k, perm)
        in_theta -= 0.5 * direct
        for a in range(d):
            in_theta -= 0.5 * lines[VS_, a] * lines[SCORE_, a]
    x = d
    for b in range(k):
        for i in range(b, m.r):
            v = ridge[1] * L[perm[i], b]
            for c in range(q):
                v -= 2.0 * G[perm[i], c] * L[c, b]
            slope[x] = v
            x += 1
    if m.family == NEGATIVE_BINOMIAL:
        _, own, rest = dispersion(m.table, q, m.offsets[0], m.offsets[F], theta)
        free = lines[THETA_, 0] < _LOG_THETA
        slope[x] = -theta * (in_theta + own + rest) if free else 0.0
        if metric > 0:
            H[x, x] = 1.0 + abs(slope[x])
        x += 1
    if nested:
        tau = of_units[TAU_]
        slope[x] = (ridge[1] - 2.0 * of_units[IN_SQUARE_]) * tau
        if metric > 0:
            bend = ridge[1] + max(-2.0 * of_units[IN_SQUARE_], 0.0)
            H[x, x] = 4.0 * tau * tau * of_units[CURVATURE_] + bend + _LEAST
