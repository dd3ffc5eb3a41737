"""The search for B, D and theta of `laplace`: BFGS steps in manifolds of fixed rank. Compiled."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.laplace import (
    B_,
    CHANGE_,
    CURVATURE_,
    HS_,
    IN_SQUARE_,
    LINES_,
    METRIC_,
    MOVE_,
    N_,
    RIDGE_,
    SLOPE_,
    SPARE_,
    TAU_,
    THETA_,
    UNITS_,
    X_,
    X_OLD_,
    Model,
    derivatives,
    has_tau,
    has_units,
    information,
    left_of,
    objective,
    project,
    spread,
    symmetric,
    theta_of,
)
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
)
from poolbn.kernels.nested import Units, begin, column, gather
from poolbn.kernels.rows import LOGIT, NEGATIVE_BINOMIAL, rows
from poolbn.kernels.steps import copy_columns, regauge
from poolbn.kernels.work import inline

_SMALL = 1.0  # a column this small is tried without
_TRIES = 25
_METRICS = 5  # how often a search that is stuck begins again
_ROUNDING = 1e-12
_NO_UNITS = 1e-3  # tau this small is tried as 0
L_, TRIAL_, G_, SQUARE_, VECTORS_ = range(5)
# Numpy's integers: numba would compile a function again for each literal.
_numbers: Any = np.arange(2)
NO, YES = _numbers


@jit
def _unpack(m: Model, L: Floats, k: int, perm: Integers, into: int) -> None:
    """X becomes the parameters, or where `into` is 0 the parameters become x."""
    d, x, B = m.C * m.q, m.work[LINES_, X_], m.work[LINES_, B_]
    for a in range(d):
        if into > 0:
            x[a] = B[a]
        else:
            B[a] = x[a]
    z = d
    for b in range(k):
        for i in range(b, m.r):
            if into > 0:
                x[z] = L[perm[i], b]
            else:
                L[perm[i], b] = x[z]
            z += 1
    if into > 0:
        x[z] = m.work[LINES_, THETA_, 0]
    elif m.family == NEGATIVE_BINOMIAL:
        m.work[LINES_, THETA_, 0] = x[z]
    if has_tau(m):
        if m.family == NEGATIVE_BINOMIAL:
            z += 1
        if into > 0:
            x[z] = m.work[LINES_, UNITS_, TAU_]
        else:
            m.work[LINES_, UNITS_, TAU_] = x[z]


@jit
def _bend(work: Floats, mats: Floats, d: int, r: int, k: int, perm: Integers) -> None:
    """Add the curvature that D = LL' has by itself, -2G for each column, where it is positive."""
    H, E, U = work[METRIC_], mats[SQUARE_], mats[VECTORS_]
    copy_columns(mats[G_], E, r)
    eigen(E, U, r, 1e-26)
    x = d
    for b in range(k):
        for i in range(b, r):
            for h in range(b, i + 1):
                v = 0.0
                for c in range(r):
                    v -= 2.0 * min(E[c, c], 0.0) * U[perm[i], c] * U[perm[h], c]
                H[x, x - i + h] += v
            H[x, x] += work[LINES_, RIDGE_, 1]
            x += 1


@jit
def _update(work: Floats, size: int) -> None:
    """BFGS, damped as by Powell so that H stays positive definite."""
    H, s, y, Hs = (
        work[METRIC_], work[LINES_, X_OLD_], work[LINES_, CHANGE_], work[LINES_, HS_],
    )  # fmt: skip
    sy, sHs = 0.0, 0.0
    for a in range(size):
        v = 0.0
        for b in range(size):
            v += H[max(a, b), min(a, b)] * s[b]
        Hs[a] = v
        sHs += v * s[a]
        sy += s[a] * y[a]
    if sHs > 0.0:
        part = 1.0 if sy >= 0.2 * sHs else 0.8 * sHs / (sHs - sy)
        sr = part * sy + (1.0 - part) * sHs
        for a in range(size):
            ya = part * y[a] + (1.0 - part) * Hs[a]
            for b in range(a + 1):
                yb = part * y[b] + (1.0 - part) * Hs[b]
                H[a, b] += ya * yb / sr - Hs[a] * Hs[b] / sHs


@jit
def _direction(work: Floats, size: int) -> float:
    """The quasi-Newton step; returns what it should gain."""
    H, C = work[METRIC_], work[SPARE_]
    g, move = work[LINES_, SLOPE_], work[LINES_, MOVE_]
    shift, largest = 0.0, 0.0
    for a in range(size):
        largest = max(largest, H[a, a])
        move[a] = -g[a]
    while not cholesky(H, C, size, shift) and shift < 1e300:
        shift = max(10.0 * shift, 1e-10 * largest + 1e-100)
    solve(C, size, move)
    gain = 0.0
    for a in range(size):
        gain -= 0.5 * g[a] * move[a]
    return gain


@jit
def _way_out(m: Model, mats: Floats, side: int, k: int, tolerance: float) -> float:
    """How far to go along an eigenvector of G, the first row of VECTORS_; 0: that gains nothing.

    Along D + t xx' the objective changes by -t x'Gx + t^2/4 sum (x'N_kh x)^2, nearly.
    """
    q, r, d, C, F = m.q, m.r, m.C * m.q, m.C, m.offsets.shape[0] - 1
    E, U, N = mats[SQUARE_], mats[VECTORS_], m.work[N_]
    copy_columns(mats[G_], E, r)
    eigen(E, U, r, 1e-26)
    high = 0
    for a in range(r):
        if E[a, a] > E[high, high]:
            high = a
    slope = E[high, high] - 0.5 * m.work[LINES_, RIDGE_, 1]
    for a in range(q):
        E[0, a] = U[a, high] if a < r else 0.0
    for a in range(q):
        U[0, a] = E[0, a]
    x = U[0]
    spread(m, mats[L_], k)
    curvature = 0.0
    for j in range(F):
        if has_units(m):
            left_of(m, side, j, side)
        project(m.work, m.states[side * F + j][information(m) :], d, C * k)
        symmetric(m.work, q, C)
        for i in range(C):
            for h in range(C):
                v = 0.0
                for a in range(q):
                    for b in range(q):
                        v += x[a] * N[i * q + a, h * q + b] * x[b]
                curvature += 0.5 * v * v
    return slope / curvature if slope > 0.0 and slope**2 > 2.0 * tolerance * curvature else 0.0


@jit
def _new_tau(m: Model, side: int, L: Floats, k: int, f: float, tolerance: float) -> bool:
    """Whether a tau that is next to 0 becomes one that is better: 0, or as `_way_out` does for D.

    At 0 the slope in tau is 0, whatever that in tau^2 is.
    """
    line = m.work[LINES_, UNITS_]
    tau = abs(line[TAU_])
    if not tau < _NO_UNITS:
        return False
    slope = line[IN_SQUARE_] - 0.5 * m.work[LINES_, RIDGE_, 1]
    if slope > 0.0 and slope**2 > 2.0 * tolerance * line[CURVATURE_]:
        t = slope / line[CURVATURE_]
        for _ in range(12):
            line[TAU_] = math.sqrt(t)
            if objective(m, side, L, k) < f:
                return True
            t *= 0.25
    elif tau > 0.0:
        line[TAU_] = 0.0
        if objective(m, side, L, k) <= f + tolerance:
            return True
    line[TAU_] = tau
    return False


@inline
def _walk(m: Model, L: Floats, side: int, k: int, f: float, size: int, perm: Integers) -> float:
    """Go along the step until the objective falls enough; returns it, inf where it does not."""
    lines = m.work[LINES_]
    x, old, g, move = lines[X_], lines[X_OLD_], lines[SLOPE_], lines[MOVE_]
    slope, length, norm = 0.0, 0.0, 0.0
    for a in range(size):
        slope += g[a] * move[a]
        length += move[a] * move[a]
        norm += x[a] * x[a]
        old[a] = x[a]
    part = min(1.0, (4.0 + math.sqrt(norm)) / math.sqrt(length))
    found = np.inf
    for _ in range(_TRIES):
        for a in range(size):
            x[a] = old[a] + part * move[a]
        _unpack(m, L, k, perm, NO)
        fnew = objective(m, side, L, k)
        if fnew <= f + 1e-4 * part * slope + _ROUNDING * abs(f):
            found = fnew
            break
        shorter = 0.5
        if fnew < np.inf:
            shorter = -0.5 * part * slope / (fnew - f - part * slope)
        part *= min(0.5, max(0.1, shorter))
    if found == np.inf:
        for a in range(size):
            x[a] = old[a]
        _unpack(m, L, k, perm, NO)
    return found


@inline
def _minimise(
    m: Model, mats: Floats, k: int, most: int, steps: int, tolerance: float, perms: Integers,
    outcome: Integers,
) -> float:  # fmt: skip
    """Returns the least objective from where it is, with data sets on side 0; fills the outcome."""
    q, d, work, perm = m.q, m.C * m.q, m.work, perms[0]
    x, g = work[LINES_, X_], work[LINES_, SLOPE_]
    old, change = work[LINES_, X_OLD_], work[LINES_, CHANGE_]
    L, trial, G = mats[L_], mats[TRIAL_], mats[G_]
    side, step, tries, converged = NO, 0, 0, 0
    fresh = True  # the rank is new: so is the metric
    smallest = np.inf
    size = 0
    f = np.inf
    while True:
        if fresh:
            k = regauge(L, m.r, k, most, perm, mats[SQUARE_])
            size = d + m.r * k - k * (k - 1) // 2 + (1 if m.family == NEGATIVE_BINOMIAL else 0)
            size += 1 if has_tau(m) else 0
            f = objective(m, side, L, k)
            if not f < np.inf:
                break
            side = 1 - side
            derivatives(m, side, L, k, perm, YES, G)
            _bend(work, mats, d, m.r, k, perm)
            _unpack(m, L, k, perm, YES)
            smallest = np.inf
            fresh = False
        if step >= steps:
            break
        if k > 0:  # a column that shrinks: is f lower without it?
            copy_columns(L, trial, k)
            rank = regauge(trial, m.r, k, k, perms[1], mats[SQUARE_])
            norm = 0.0
            for a in range(q if rank == k else 0):
                norm += trial[a, k - 1] * trial[a, k - 1]
            if norm < min(_SMALL, 0.1 * smallest):
                smallest = norm
                if objective(m, side, trial, k - 1) <= f + _ROUNDING * abs(f):
                    copy_columns(trial, L, k - 1)
                    side, k, fresh = 1 - side, k - 1, True
                    continue
        gain = _direction(work, size)
        if gain > tolerance:
            step += 1
            fnew = _walk(m, L, side, k, f, size, perm)
            if fnew < np.inf:
                side, f = 1 - side, fnew
                for a in range(size):
                    change[a] = g[a]
                    old[a] = x[a] - old[a]
                derivatives(m, side, L, k, perm, NO, G)
                for a in range(size):
                    change[a] = g[a] - change[a]
                _update(work, size)
                continue
            tries += 1
            if tries < _METRICS:
                fresh = True
                continue
            converged = 1 if gain < 100.0 * tolerance else 0
            break
        if not gain <= tolerance:
            break
        converged = 1
        if has_tau(m) and _new_tau(m, side, L, k, f, tolerance):
            side, fresh, converged = 1 - side, True, 0
            step += 1
            continue
        if k >= most:
            break
        t = _way_out(m, mats, side, k, tolerance)
        for _ in range(12 if t > 0.0 else 0):
            copy_columns(L, trial, k)
            for a in range(q):
                trial[a, k] = math.sqrt(t) * mats[VECTORS_, 0, a]
            if objective(m, side, trial, k + 1) < f:
                copy_columns(trial, L, k + 1)
                side, k, fresh, converged = 1 - side, k + 1, True, 0
                step += 1  # where rounding takes the column away again this would have no end
                break
            t *= 0.25
        if converged == 1:
            break
    outcome[0], outcome[1], outcome[2], outcome[3] = k, side, converged, step
    return f


@jit
def _expect(m: Model, mats: Floats, k: int) -> bool:
    """One EM step of L: D becomes D + 2 DGD / (F C) = L (I + 2 L'GL / (F C)) L'."""
    q, n = m.q, m.C * (m.offsets.shape[0] - 1)
    L, GL, X, R = mats[L_], mats[TRIAL_], mats[SQUARE_], mats[VECTORS_]
    for a in range(q):
        for b in range(k):
            v = 0.0
            for c in range(q):
                v += mats[G_, a, c] * L[c, b]
            GL[a, b] = v
    for a in range(k):
        for b in range(k):
            v = 1.0 if a == b else 0.0
            for c in range(q):
                v += 2.0 / n * L[c, a] * GL[c, b]
            X[a, b] = v
    positive: bool = cholesky(X, R, k, 0.0)
    if positive:
        for a in range(q):
            for b in range(k):
                v = 0.0
                for c in range(b, k):
                    v += L[a, c] * R[c, b]
                GL[a, b] = v
        copy_columns(GL, L, k)
        if has_tau(m):
            line, N = m.work[LINES_, UNITS_], m.units.rows.shape[0] * m.C
            tau2 = line[TAU_] ** 2
            line[TAU_] *= math.sqrt(max(1.0 + 2.0 * tau2 * line[IN_SQUARE_] / N, 0.0))
    return positive


@entry(
    numba.int64, numba.int64, numba.int64, numba.int64, matrix, integers, cube, matrix,
    numba.int64[:, ::1], integers, cube, cube, numba.int64[:, ::1], numba.int64,
    numba.int64, numba.int64, numba.int64, numba.float64, numba.float64[::1], integers,
)  # fmt: skip
def fit(
    family: int,
    q: int,
    r: int,
    C: int,
    table: Floats,
    offsets: Integers,
    states: Floats,
    units: Floats,
    unit_rows: Integers,
    owners: Integers,
    work: Floats,
    mats: Floats,
    perms: Integers,
    k: int,
    most: int,
    expectations: int,
    steps: int,
    tolerance: float,
    value: Floats,
    outcome: Integers,
) -> None:
    """Maximise the Laplace approximation from B, L and log theta.

    Args:
        family: see `rows`.
        q: columns of x.
        r: the first ones, whose coefficients vary between data sets.
        C: linear predictors.
        table: see `rows`.
        offsets: where the rows of data sets begin, (F + 1,).
        states: see `laplace.Model`; its first F have coefficients of data sets to start from.
        units: work space, see `nested.width`; (2 U, width).
        unit_rows: where the rows of units begin and end in the table, (U, 2).
        owners: where the units of data sets begin, (F + 1,).
        work: see `laplace.Model`, with A, S, and the lines B, centre, ridge (on B, on L and tau),
            log theta, tau and whether that is held.
        mats: L, whose rows from the r-th are 0, and work space, (5, q, q). Ends with G.
        perms: work space, (2, q).
        k: columns of L to start from.
        most: columns that L may have, r or fewer.
        expectations: EM steps before the search.
        steps: of the search, at most.
        tolerance: what a last step would gain.
        value: the objective, (1,).
        outcome: rank, side of the data sets, converged, steps, (4,).
    """
    F = offsets.shape[0] - 1
    m = Model(
        family, q, r, C, table, offsets, states, Units(units, unit_rows, owners), work
    )  # fmt: skip
    for j in range(F):
        first, last, more = offsets[j], offsets[j + 1], column(q, C) if has_units(m) else 0
        if has_units(m):
            begin(m.units, j, table, q, C, NO)
        rows(family, table, q, C, first, last, theta_of(m), states[j], more)
        if has_units(m) and family != LOGIT:
            begin(m.units, j, table, q, C, YES)
            rows(family, table, q, C, first, last, theta_of(m), states[j], more)
        if has_units(m):
            gather(m.units, NO, j, table, q, C)
    for _ in range(expectations):
        for a in range(q):
            perms[0, a] = a
        if not objective(m, NO, mats[L_], k) < np.inf:
            break
        derivatives(m, YES, mats[L_], k, perms[0], NO, mats[G_])
        if not _expect(m, mats, k):
            break
    value[0] = _minimise(m, mats, k, most, steps, tolerance, perms, outcome)
