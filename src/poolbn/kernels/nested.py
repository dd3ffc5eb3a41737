"""Random intercepts of units inside data sets, beside the random effects of `laplace`. Compiled.

Unit i of data set j adds w_i = tau A v_i, (C,), to the linear predictors of its rows, where v_i is
N(0, I). The coefficients of the data set become (t_j, w_1, w_2, ...), and all formulas of `laplace`
hold for these. The information is an arrow: W of t, W_i of w_i, X_i (d, C) between the two, nothing
between units. So units are eliminated one by one. With Q_i = tau A (I + tau^2 A'W_i A)^-1 tau A'
and K_i = X_i Q_i, what is left for t is

    W_0 = W - sum_i K_i X_i',      V = Z (I + Z'W_0 Z)^-1 Z',      P = W_0 - W_0 V W_0,

and log|M_j| gains sum_i log|I + tau^2 A'W_i A|. The linear predictors of a row of unit i have the
covariance (x - K_i)'V (x - K_i) + Q_i. Where s has the derivatives of tr(VW) in t and s_i in w_i,
s_0 = s - sum_i K_i s_i takes the place of s, and with R_i = I - W_i Q_i
    r_i = R_i (s_i - X_i'V s_0),     P_i = R_i W_i - R_i X_i'V X_i R_i'
are those of the unit, from which the derivative in tau^2 follows as that in D does.

Nothing but these sums is kept of a unit, so a step costs what it costs to pass over the rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cholesky, jit, solve

_LARGE = 1e100
_FAR = 5.0  # how far a predicted intercept goes at most: exp of more is another world


class Units(NamedTuple):
    """Units and their rows; none where the arrays are empty."""

    states: Floats  # what is known of each, see `width`, as they are, and as they are tried, (2 U,)
    rows: Integers  # where their rows begin in the table, and end, (U, 2)
    owners: Integers  # where the units of data sets begin, (F + 1,)


@jit
def column(q: int, C: int) -> int:
    """Where the intercepts of rows begin in the table, C of them; then (C, C) of `correct`."""
    return q + 2 + 3 * C


# What is known of a unit, in a row: v, w, its score, room, room, W_i, T_i, Q_i (C, C), X_i' (C, d),
# where v = T_i (score + W_i w - X_i'(t - t0)) is the mode as far as t0 and w can tell.
V_, LEVEL_, SCORE_, OLD_, STEP_ = range(5)


@jit
def _squares(C: int) -> tuple[int, int, int, int]:
    """Where W_i, T_i, Q_i and X_i' begin."""
    return 5 * C, 5 * C + C * C, 5 * C + 2 * C * C, 5 * C + 3 * C * C


def width(C: int, d: int) -> int:
    """How many numbers each unit has.

    Examples:
        >>> width(1, 3), width(2, 4)
        (11, 30)
    """
    return 5 * C + 3 * C * C + C * d


@jit
def place(
    units: Units, side: int, j: int, table: Floats, q: int, C: int, A: Floats, tau: float
) -> float:
    """W = tau A v, and in the table; returns sum v'v / 2 over the units of a data set."""
    U, at = units.rows.shape[0], column(q, C)
    value = 0.0
    for i in range(units.owners[j], units.owners[j + 1]):
        unit = units.states[side * U + i]
        for k in range(C):
            w = 0.0
            for h in range(k + 1):
                w += A[k, h] * unit[h]
            unit[C + k] = tau * w
            value += 0.5 * unit[k] * unit[k]
            own = table[at + k]
            for r in range(units.rows[i, 0], units.rows[i, 1]):
                own[r] = tau * w
    return value


@jit
def gather(units: Units, side: int, j: int, table: Floats, q: int, C: int) -> None:
    """Fill score, W_i and X_i of the units of a data set from what `rows` left."""
    U, d, p = units.rows.shape[0], C * q, q + 2
    info, _, _, cross = _squares(C)
    for i in range(units.owners[j], units.owners[j + 1]):
        unit, first, last = units.states[side * U + i], units.rows[i, 0], units.rows[i, 1]
        if C == 1:
            g, w = 0.0, 0.0
            slopes, weights = table[p + 1], table[p + 2]
            for r in range(first, last):
                g += slopes[r]
                w += weights[r]
            unit[SCORE_], unit[info] = g, w
            for a in range(q):
                x, v = table[a], 0.0
                for r in range(first, last):
                    v += weights[r] * x[r]
                unit[cross + a] = v
            continue
        for k in range(C):
            unit[SCORE_ * C + k] = 0.0
            for r in range(first, last):
                unit[SCORE_ * C + k] += table[p + C + k, r]
            for h in range(k + 1):
                own, other, total = unit[cross + h * d + k * q :], cross + k * d + h * q, 0.0
                for a in range(q):
                    own[a] = 0.0
                for r in range(first, last):
                    w = table[q + 1, r] * table[p + k, r]
                    w *= (1.0 if h == k else 0.0) - table[p + h, r]
                    total += w
                    for a in range(q):
                        own[a] += w * table[a, r]
                unit[info + k * C + h] = unit[info + h * C + k] = total
                for a in range(q):
                    unit[other + a] = own[a]


@jit
def eliminate(
    units: Units, side: int, j: int, state: Floats, C: int, d: int, A: Floats, tau: float,
    room: Floats, more: Floats, left: Floats, line: Floats,
) -> float:  # fmt: skip
    """Fill T_i and Q_i; `left` becomes W_0 and `line` the score of t when units follow it.

    Returns sum log|I + tau^2 A'W_i A| / 2, inf where that is not positive.
    """
    U = units.rows.shape[0]
    info, follow, spread, cross = _squares(C)
    value, product = 0.0, 1.0  # of many units: fewer logarithms
    for a in range(d):
        line[a] = state[d + 1, a]
        for b in range(d):
            left[a, b] = state[a, b]
    for i in range(units.owners[j], units.owners[j + 1]):
        unit = units.states[side * U + i]
        if C == 1:
            own, w, by = unit[info], unit[LEVEL_], tau * A[0, 0]
            curved = 1.0 + by * by * own
            product *= curved
            if not product < _LARGE:
                value += 0.5 * math.log(product)
                product = 1.0
            unit[follow], unit[spread] = by / curved, by * by / curved
            score = unit[SCORE_] + own * w
            for a in range(d):
                v = unit[cross + a] * unit[spread]
                line[a] -= v * score - unit[cross + a] * w
                for b in range(a + 1):
                    left[a, b] -= v * unit[cross + b]
            continue
        for k in range(C):  # room: W_i tau A; more: I + tau^2 A'W_i A, and its factor
            for h in range(C):
                v = 0.0
                for c in range(h, C):
                    v += unit[info + k * C + c] * A[c, h]
                room[k, h] = tau * v
        for k in range(C):
            for h in range(k + 1):
                v = 0.0
                for c in range(k, C):
                    v += A[c, k] * room[c, h]
                more[k, h] = tau * v + (1.0 if k == h else 0.0)
        if not cholesky(more, more, C, 0.0):
            return np.inf
        for k in range(C):
            value += math.log(more[k, k])
        for h in range(C):  # T_i, column by column
            x = room[0]
            for k in range(C):
                x[k] = tau * A[h, k] if k <= h else 0.0
            solve(more, C, x)
            for k in range(C):
                unit[follow + k * C + h] = x[k]
        for k in range(C):
            for h in range(C):
                v = 0.0
                for c in range(k + 1):
                    v += A[k, c] * unit[follow + c * C + h]
                unit[spread + k * C + h] = tau * v
        for k in range(C):  # room: W_i w + score, and -w
            v = unit[SCORE_ * C + k]
            for h in range(C):
                v += unit[info + k * C + h] * unit[C + h]
            room[0, k] = v
        for a in range(d):
            for k in range(C):
                v = 0.0
                for h in range(C):
                    v += unit[cross + h * d + a] * unit[spread + h * C + k]
                line[a] -= v * room[0, k] - unit[cross + k * d + a] * unit[C + k]
                for b in range(a + 1):
                    left[a, b] -= v * unit[cross + k * d + b]
    for a in range(d):
        for b in range(a):
            left[b, a] = left[a, b]
    return value + 0.5 * math.log(product)


@jit
def aim(
    units: Units, start: int, to: int, j: int, t: Floats, before: Floats, C: int, d: int,
    room: Floats,
) -> None:  # fmt: skip
    """Units of one side get the step to v at t, where those of another were known at `before`."""
    U = units.rows.shape[0]
    info, follow, _, cross = _squares(C)
    for i in range(units.owners[j], units.owners[j + 1]):
        unit, new = units.states[start * U + i], units.states[to * U + i]
        for k in range(C):
            v = unit[SCORE_ * C + k]
            for h in range(C):
                v += unit[info + k * C + h] * unit[C + h]
            for a in range(d):
                v -= unit[cross + k * d + a] * (t[a] - before[a])
            room[0, k] = v
        for k in range(C):
            v = 0.0
            for h in range(C):
                v += unit[follow + k * C + h] * room[0, h]
            new[STEP_ * C + k] = v


@jit
def predict(units: Units, start: int, to: int, j: int, C: int, A: Floats, tau: float) -> None:
    """V becomes what `aim` found, or less where that is far from where it was."""
    U = units.rows.shape[0]
    for i in range(units.owners[j], units.owners[j + 1]):
        unit, new = units.states[start * U + i], units.states[to * U + i]
        most, reach = 0.0, _FAR
        for k in range(C):
            w = 0.0
            for h in range(k + 1):
                w += A[k, h] * new[STEP_ * C + h]
            most = max(most, abs(tau * w))
            reach = max(reach, _FAR + abs(unit[C + k]))
        for k in range(C):
            new[k] = new[STEP_ * C + k] * (reach / most if most > reach else 1.0)


@jit
def begin_step(units: Units, to: int, j: int, C: int, A: Floats, tau: float) -> float:
    """From where v should go, the step; returns what it gains to first order, twice."""
    U = units.rows.shape[0]
    gain = 0.0
    for i in range(units.owners[j], units.owners[j + 1]):
        unit = units.states[to * U + i]
        for k in range(C):
            step, slope = unit[STEP_ * C + k] - unit[k], -unit[k]
            for h in range(k, C):
                slope += tau * A[h, k] * unit[SCORE_ * C + h]
            gain += step * slope
            unit[STEP_ * C + k], unit[OLD_ * C + k] = step, unit[k]
    return gain


@jit
def go(units: Units, to: int, j: int, C: int, part: float) -> None:
    """V after a part of the step."""
    U = units.rows.shape[0]
    for i in range(units.owners[j], units.owners[j + 1]):
        unit = units.states[to * U + i]
        for k in range(C):
            unit[k] = unit[OLD_ * C + k] + part * unit[STEP_ * C + k]


@jit
def rest(units: Units, to: int, j: int, C: int) -> None:
    """V = 0."""
    U = units.rows.shape[0]
    for i in range(units.owners[j], units.owners[j + 1]):
        for k in range(C):
            units.states[to * U + i, k] = 0.0


@jit
def begin(units: Units, j: int, table: Floats, q: int, C: int, counts: int) -> None:
    """Where a search starts: the units of side 0 at w = 0, or of counts near their means."""
    p, at = q + 2, column(q, C)
    for i in range(units.owners[j], units.owners[j + 1]):
        unit, first, last = units.states[i], units.rows[i, 0], units.rows[i, 1]
        for k in range(C):
            unit[k] = 0.0
            seen, mean = 0.5, 0.5
            for r in range(first, last if counts > 0 else first):
                seen += table[q + 1, r] * table[q, r]
                mean += table[q + 1, r] * table[p, r]
            unit[C + k] = math.log(seen / mean)
            own = table[at + k]
            for r in range(first, last):
                own[r] = unit[C + k]


@jit
def correct(
    units: Units, side: int, j: int, table: Floats, q: int, C: int, V: Floats, room: Floats,
    more: Floats,
) -> None:  # fmt: skip
    """What the covariance of the predictors of rows has beside x'Vx, into the table."""
    U, d, at = units.rows.shape[0], C * q, column(q, C) + C
    _, _, spread, cross = _squares(C)
    for i in range(units.owners[j], units.owners[j + 1]):
        unit, first, last = units.states[side * U + i], units.rows[i, 0], units.rows[i, 1]
        for k in range(C):  # K_i and V K_i, column by column
            for a in range(d):
                v = 0.0
                for h in range(C):
                    v += unit[cross + h * d + a] * unit[spread + h * C + k]
                room[a, k] = v
        for k in range(C):
            for a in range(d):
                v = 0.0
                for b in range(d):
                    v += V[a, b] * room[b, k]
                more[a, k] = v
        for k in range(C):
            for h in range(C):
                own = unit[spread + k * C + h]
                for a in range(d):
                    own += room[a, k] * more[a, h]
                out = table[at + k * C + h]
                for r in range(first, last):
                    out[r] = own
                for a in range(q):
                    v, x = more[k * q + a, h] + more[h * q + a, k], table[a]
                    for r in range(first, last):
                        out[r] -= v * x[r]


@jit
def fold(
    units: Units, side: int, j: int, table: Floats, q: int, C: int, s: Floats, z: Floats,
    dispersed: bool,
) -> float:  # fmt: skip
    """S becomes s_0, and z likewise; units keep their s_i; returns sum s_i'Q_i z_i."""
    U, d, p = units.rows.shape[0], C * q, q + 2
    _, _, spread, cross = _squares(C)
    value = 0.0
    for i in range(units.owners[j], units.owners[j + 1]):
        unit, first, last = units.states[side * U + i], units.rows[i, 0], units.rows[i, 1]
        for k in range(C):
            v = 0.0
            for r in range(first, last):
                v += table[p + C + k, r]
            unit[OLD_ * C + k] = v
        in_theta = 0.0
        for r in range(first, last if dispersed else first):
            in_theta += table[p + 2, r]
        for h in range(C):
            own = 0.0
            for k in range(C):
                own += unit[spread + h * C + k] * unit[OLD_ * C + k]
            for a in range(d):
                s[a] -= unit[cross + h * d + a] * own
            if dispersed:
                value += own * in_theta
        if dispersed:
            for a in range(d):
                z[a] -= unit[cross + a] * unit[spread] * in_theta
    return value


@jit
def _between(A: Floats, k: int, h: int) -> float:
    """S = AA'."""
    v = 0.0
    for c in range(min(k, h) + 1):
        v += A[k, c] * A[h, c]
    return v


@jit
def add_slopes(
    units: Units, side: int, j: int, C: int, d: int, A: Floats, V: Floats, Vs: Floats,
    room: Floats, more: Floats, out: Floats,
) -> None:  # fmt: skip
    """Add the slope of the log-likelihood in tau^2 to out[1], and its expected curvature to out[2].

    Of two units the curvature leaves out what they share.
    """
    U = units.rows.shape[0]
    info, _, spread, cross = _squares(C)
    for i in range(units.owners[j], units.owners[j + 1]):
        unit = units.states[side * U + i]
        for k in range(C):  # room, from the second row on: (X_i R_i')', (C, d)
            for a in range(d):
                v = unit[cross + k * d + a]
                for h in range(C):
                    for c in range(C):
                        v -= (
                            unit[cross + h * d + a] * unit[spread + h * C + c]
                            * unit[info + c * C + k]
                        )  # fmt: skip
                room[1 + k, a] = v
            v = unit[OLD_ * C + k]
            for a in range(d):
                v -= unit[cross + k * d + a] * Vs[a]
            room[0, k] = v
        for k in range(C):
            r = room[0, k]
            for h in range(C):
                for c in range(C):
                    r -= unit[info + k * C + h] * unit[spread + h * C + c] * room[0, c]
            room[0, C + k] = r
        for k in range(C):  # more: P_i
            for h in range(k + 1):
                v = unit[info + k * C + h]
                for b in range(C):
                    for c in range(C):
                        v -= (
                            unit[info + k * C + b] * unit[spread + b * C + c]
                            * unit[info + c * C + h]
                        )  # fmt: skip
                for a in range(d):
                    x = 0.0
                    for b in range(d):
                        x += V[a, b] * room[1 + h, b]
                    v -= room[1 + k, a] * x
                more[k, h] = more[h, k] = v
        for k in range(C):
            for h in range(C):
                g, f = unit[SCORE_ * C + k], unit[SCORE_ * C + h]
                both = g * f - 0.5 * (room[0, C + k] * f + room[0, C + h] * g)
                out[1] += 0.5 * _between(A, k, h) * (both - more[k, h])
                PS, SP = 0.0, 0.0
                for b in range(C):
                    PS += more[k, b] * _between(A, b, h)
                    SP += more[h, b] * _between(A, b, k)
                out[2] += 0.5 * PS * SP
