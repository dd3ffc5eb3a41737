"""A discrete child with discrete parents: the Dirichlet-multinomial likelihood. Compiled.

Counts n of a family are (F, C, K): F data sets, C configurations of the parents, K levels of the
child. In data set f and configuration c the child's distribution is Dirichlet with mean m_c and
concentration s. With tau = 1 / s the log-likelihood is

    sum_f sum_c { sum_x S(m_xc, n_fxc) - S(1, n_fc) },  S(m, n) = sum log(m + i tau) over i < n,

which is smooth also at tau = 0, complete pooling. Over the data sets it needs how many have more
than i rows, which is counted once: small i one by one, and for large counts the rest of the sum is
an integral with the corrections of Euler and Maclaurin at its ends.

Given tau it is concave in m, for each configuration by itself: Newton's steps cost O(K). What is
left is one function of tau. It may have several maxima, as configurations share tau, so its slope
is looked at on a grid, and each change from up to down is followed to its maximum. A level that is
never seen in a configuration has m = 0, and s = 0 is best where each data set has seen at most
one level in each configuration.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, entry, integers, jit, matrix, vector

HEAD = 32  # terms of a sum that are added one by one
INDICES = 4  # rows of the integers of a work space
TOP, BEGIN, FIRST, CELL = range(INDICES)
ROWS = 8  # and of its floats
M, TRIAL, BEST, STEP, TANGENT, G, H, X = range(ROWS)

# From one point of the grid to the next, as a rule and at least. In 280,000 random tables steps of
# 1.25 found nothing better; with 8 in place of 4, 3 of 60,000 ended in a lower maximum.
_RATIO, _LEAST = 4.0, 1.3
_ROUGH, _FINE = 1e-2, 1e-8  # squared Newton decrements, which bound how far m is from its maximum
_EXACT = 1e-5  # a last step of tau, relative


class _Table(NamedTuple):
    """The configurations of one family in which the child varies, A of them.

    Each is a run of columns: one for each level that it has, then one for its rows.
    """

    head: Floats  # data sets with more than i rows, (columns, HEAD)
    large: Floats  # counts above HEAD, column by column
    top: Integers  # how many of `head` are not 0
    begin: Integers  # where the large counts of a column are
    first: Integers  # the first column of a configuration
    A: int


@jit
def _integrals(z: float) -> tuple[float, float, float, float, float]:
    """Of 1 / v, x / v, 1 / v^2, x / v^2 and x^2 / v^2 over 0 < x < 1, with v = 1 + z x."""
    b0 = 1.0 / (1.0 + z)
    if z < 1e-2:
        a0 = a1 = b1 = b2 = 0.0
        for j in range(8, -1, -1):
            a0 = 1.0 / (j + 1.0) - z * a0
            a1 = 1.0 / (j + 2.0) - z * a1
            b1 = (j + 1.0) / (j + 2.0) - z * b1
            b2 = (j + 1.0) / (j + 3.0) - z * b2
        return a0, a1, b0, b1, b2
    i = 1.0 / z
    a0 = math.log(1.0 + z) * i
    a1 = (1.0 - a0) * i
    b1 = (a0 - b0) * i
    return a0, a1, b0, b1, (a1 - b1) * i


@jit
def _sums(t: _Table, k: int, m: float, tau: float) -> tuple[float, float, float, float, float]:
    """Sums of r, i r, r^2, i r^2 and i^2 r^2, r = 1 / (m + i tau), over column k.

    The last three are for Newton's steps alone, and take no corrections.
    """
    r1 = ir = r2 = ir2 = iir2 = 0.0
    for i in range(t.top[k]):
        r = 1.0 / (m + i * tau)
        n = t.head[k, i] * r
        r1 += n
        ir += i * n
        r2 += n * r
        ir2 += i * n * r
        iir2 += i * i * n * r
    start = HEAD - 0.5
    q = 1.0 / (m + start * tau)
    for e in range(t.begin[k], t.begin[k + 1]):
        N = t.large[e] - HEAD
        z = N * tau * q
        a0, a1, b0, b1, b2 = _integrals(z)
        p = q * b0
        ends = (p * p - q * q) * (1.0 / 24.0 - tau * tau * (p * p + q * q) * (7.0 / 960.0))
        n = N * q
        r1 += n * a0 + tau * ends
        ir += n * (start * a0 + N * a1) - m * ends
        n *= q
        r2 += n * b0
        ir2 += n * (start * b0 + N * b1)
        iir2 += n * (start * (start * b0 + 2.0 * N * b1) + N * N * b2)
    return r1, ir, r2, ir2, iir2


@jit
def _logs(t: _Table, k: int, m: float, tau: float) -> float:
    """Sum of log(m + i tau) over column k."""
    f = 0.0
    for i in range(t.top[k]):
        f += t.head[k, i] * math.log(m + i * tau)
    a = m + (HEAD - 0.5) * tau
    q = tau / a
    for e in range(t.begin[k], t.begin[k + 1]):
        N = t.large[e] - HEAD
        z = N * q
        _, a1, b0, _, _ = _integrals(z)
        p = q * b0
        f += N * (math.log(a) + math.log1p(z) - z * a1)
        f -= (p - q) / 24.0 - (p**3 - q**3) * 7.0 / 2880.0 + (p**5 - q**5) * 31.0 / 40320.0
    return f


@jit
def _loglik(t: _Table, m: Floats, tau: float) -> float:
    f = 0.0
    for a in range(t.A):
        rows = t.first[a + 1] - 1
        for k in range(t.first[a], rows):
            f += _logs(t, k, m[k], tau)
        f -= _logs(t, rows, 1.0, tau)
    return f


@jit
def _climb(t: _Table, m: Floats, tau: float, close: float, w: Floats) -> tuple[float, float]:
    """Move m to its maximum given tau; the first two derivatives in tau of the likelihood there.

    Logarithms of linear functions are self-concordant: once the squared decrement, sum h d^2, is
    below 1 Newton's step d stays inside, and a step that is shortened to 1 / (1 + decrement)
    climbs from everywhere. Longer ones are tried first. The last step is in the derivatives.
    """
    step, tangent, g, h, x = w[STEP], w[TANGENT], w[G], w[H], w[X]
    slope, curve = 0.0, 0.0
    for a in range(t.A):
        first, rows = t.first[a], t.first[a + 1] - 1
        for turn in range(1000):
            up, bend = 0.0, 0.0
            level, drift, weight = 0.0, 0.0, 0.0
            for k in range(first, rows):
                g[k], ir, h[k], ir2, iir2 = _sums(t, k, m[k], tau)
                x[k] = -ir2
                up += ir
                bend -= iir2
                weight += 1.0 / h[k]
                level += g[k] / h[k]
                drift += x[k] / h[k]
            decrement, room = 0.0, np.inf
            for k in range(first, rows):
                step[k] = (g[k] - level / weight) / h[k]
                tangent[k] = (x[k] - drift / weight) / h[k]
                decrement += h[k] * step[k] * step[k]
                if step[k] < 0.0:
                    room = min(room, -m[k] / step[k])
            done = decrement < close
            part = 1.0
            if not done and decrement > 0.25:
                part = min(1.0, 0.9 * room) if turn < 5 else 1.0 / (1.0 + math.sqrt(decrement))
            for k in range(first, rows):
                m[k] += part * step[k]
            if done:
                break
        _, ir, _, _, iir2 = _sums(t, rows, 1.0, tau)
        slope += up - ir
        curve += bend + iir2
        for k in range(first, rows):
            slope += x[k] * step[k]
            curve += x[k] * tangent[k]
    return slope, curve


@jit
def _follow(t: _Table, m: Floats, change: float, w: Floats) -> None:
    """Move m along with tau, in configurations where its tangent leads nowhere near 0."""
    for a in range(t.A):
        first, rows = t.first[a], t.first[a + 1] - 1
        safe = True
        for k in range(first, rows):
            safe &= w[TANGENT, k] * change > -0.5 * m[k]
        if safe:
            for k in range(first, rows):
                m[k] += w[TANGENT, k] * change


@jit
def _peak(t: _Table, m: Floats, low: float, high: float, tau: float, w: Floats) -> float:
    """The tau between low and high at which the slope goes from up to down; m moves to it.

    Newton's method in log(tau), or in tau if low is 0; where it leaves the bracket or is slow, the
    bracket is halved.
    """
    before = np.inf
    for _ in range(200):
        slope, curve = _climb(t, m, tau, _FINE, w)
        if slope > 0.0:
            low = tau
        else:
            high = tau
        to = tau
        if low > 0.0:
            curve = tau * curve + slope
            if curve < 0.0:
                to = tau * math.exp(min(-slope / curve, 10.0))
            middle = math.sqrt(low * high)
        else:
            if curve < 0.0:
                to = tau - slope / curve
            middle = 0.5 * high
        if not low <= to <= high or to == tau or abs(to - tau) > 0.5 * before:
            to = middle if slope != 0.0 else tau
        before = abs(to - tau)
        _follow(t, m, to - tau, w)
        tau = to
        if before <= _EXACT * tau:  # Newton's next step is about its square
            break
    return tau


@jit
def _maximum(t: _Table, most: int, w: Floats) -> tuple[float, float]:
    """The best tau, its m in w[BEST], and the log-likelihood; w[M] has that of tau = 0."""
    columns = t.first[t.A]
    m, trial, best = w[M], w[TRIAL], w[BEST]
    for k in range(columns):
        best[k] = m[k]
    best_tau, f = 0.0, _loglik(t, m, 0.0)
    slope, curve = _climb(t, m, 0.0, _ROUGH, w)
    low, ratio, tau = 0.0, _RATIO, 0.25 / most
    while True:
        before, bent = slope, curve
        slope, curve = _climb(t, m, tau, _ROUGH, w)
        slope, curve = tau * slope, tau * (slope + tau * curve)  # in log(tau)
        if (
            low > 0.0
            and ratio > _LEAST
            and before * slope > 0.0 > before * bent
            and slope * curve > 0.0
        ):
            # Towards 0 and away from it: it may have been on the other side.
            ratio = math.sqrt(ratio)
            slope, curve, tau = before, bent, low * ratio
            continue
        if before > 0.0 and slope <= 0.0:
            for k in range(columns):
                trial[k] = m[k]
            begin = low * ratio ** (before / (before - slope)) if low > 0.0 else 0.5 * tau
            # Slopes of the grid are rough: the maximum may be just outside.
            peak = _peak(t, trial, 0.5 * low, 2.0 * tau, begin, w)
            value = _loglik(t, trial, peak)
            if value > f:
                best_tau, f = peak, value
                for k in range(columns):
                    best[k] = trial[k]
        if slope <= 0.0 and tau >= 8.0:
            return best_tau, f
        low, ratio, tau = tau, _RATIO, tau * _RATIO


@jit
def _pack(
    n: Integers,
    start: int,
    F: int,
    C: int,
    K: int,
    head: Floats,
    large: Floats,
    w: Floats,
    at: Integers,
) -> tuple[_Table, int, bool]:
    """Counts as columns, and in w[M] shares of all rows.

    Also the most rows of a data set and configuration, and whether one has several levels.
    """
    columns, stored, A = 0, 0, 0
    most, mixed = 0, False
    for c in range(C):
        first, total = columns, 0
        at[FIRST, A] = first
        for x in range(K + 1):
            if x == K and columns < first + 2:
                columns = first  # the child does not vary
                break
            rows, longest = 0, 0
            at[BEGIN, columns] = stored
            for i in range(HEAD):
                head[columns, i] = 0.0
            for f in range(F):
                cell = start + (f * C + c) * K
                v = 0
                if x < K:
                    v = n[cell + x]
                else:
                    for k in range(K):
                        mixed |= v > 0 and n[cell + k] > 0
                        v += n[cell + k]
                    most = max(most, v)
                rows += v
                longest = max(longest, v)
                if v > 0:
                    head[columns, min(v, HEAD) - 1] += 1.0
                if v > HEAD:
                    large[stored] = v
                    stored += 1
            if rows > 0:
                at[TOP, columns] = min(longest, HEAD)
                for i in range(at[TOP, columns] - 2, -1, -1):
                    head[columns, i] += head[columns, i + 1]
                at[CELL, columns] = c * K + x
                w[M, columns] = rows
                total += rows if x < K else 0
                columns += 1
        for k in range(first, columns):
            w[M, k] /= total
        if columns == first:
            stored = at[BEGIN, first]
        A += columns > first
    at[FIRST, A] = columns
    at[BEGIN, columns] = stored
    return _Table(head, large, at[TOP], at[BEGIN], at[FIRST], A), most, mixed


@jit
def _one_level(t: _Table, w: Floats) -> float:
    """The log-likelihood at s = 0, and its m in w[BEST]: each data set draws one level."""
    f = 0.0
    for a in range(t.A):
        rows = t.first[a + 1] - 1
        for k in range(t.first[a], rows):
            w[BEST, k] = t.head[k, 0] / t.head[rows, 0]
            f += t.head[k, 0] * math.log(w[BEST, k])
    return f


@entry(
    integers, numba.int64[:, ::1], matrix, vector, numba.int64[:, ::1], matrix, matrix, vector
)  # fmt: skip
def fit(
    n: Integers,
    shapes: Integers,
    head: Floats,
    large: Floats,
    at: Integers,
    w: Floats,
    found: Floats,
    base: Floats,
) -> None:
    """Maximise the likelihood of each family.

    Args:
        n: counts of all families, one after the other.
        shapes: F, C and K of each, and where its counts and its m begin, (families, 5).
        head: (columns, HEAD), where a family has up to C (K + 1) columns.
        large: (F * columns,).
        at: (4, columns + 1).
        w: (ROWS, columns).
        found: becomes s and the log-likelihood, (families, 2).
        base: becomes m of all families, (sum of C * K,); 0 in configurations that nobody has.
    """
    for j in range(shapes.shape[0]):
        F, C, K, start, begin = shapes[j, 0], shapes[j, 1], shapes[j, 2], shapes[j, 3], shapes[j, 4]
        t, most, mixed = _pack(n, start, F, C, K, head, large, w, at)
        if mixed:
            tau, found[j, 1] = _maximum(t, most, w)
            found[j, 0] = 1.0 / tau if tau > 0.0 else np.inf
        else:
            # Each data set has one level in each configuration: as if it had one row.
            found[j, 1] = _one_level(t, w)
            found[j, 0] = 0.0 if most > 1 else np.inf
        for e in range(C * K):
            base[begin + e] = 0.0
        for e in range(F * C * K):  # right where the child does not vary
            if n[start + e] > 0:
                base[begin + e % (C * K)] = 1.0
        for a in range(t.A):
            for k in range(t.first[a], t.first[a + 1] - 1):
                base[begin + at[CELL, k]] = w[BEST, k]


@entry(integers, numba.int64[:, ::1], matrix)
def closed(n: Integers, shapes: Integers, found: Floats) -> None:
    """Log-likelihoods of complete pooling and of one table per data set, (families, 2)."""
    for j in range(shapes.shape[0]):
        F, C, K, start = shapes[j, 0], shapes[j, 1], shapes[j, 2], shapes[j, 3]
        complete, none = 0.0, 0.0
        for c in range(C):
            all_rows = 0.0
            for x in range(K):
                total = 0.0
                for f in range(F):
                    total += n[start + (f * C + c) * K + x]
                if total > 0.0:
                    complete += total * math.log(total)
                all_rows += total
            if all_rows > 0.0:
                complete -= all_rows * math.log(all_rows)
            for f in range(F):
                rows = 0.0
                for x in range(K):
                    v = n[start + (f * C + c) * K + x]
                    rows += v
                    if v > 1:
                        none += v * math.log(v)
                if rows > 1.0:
                    none -= rows * math.log(rows)
        found[j, 0], found[j, 1] = complete, none


@entry(integers, numba.int64[:, ::1], vector, vector)
def marginal(n: Integers, shapes: Integers, alpha: Floats, found: Floats) -> None:
    """Log marginal likelihoods of complete pooling under Dirichlet priors, (families,).

    `alpha` (families,) is the prior count of each cell of a family.
    """
    for j in range(shapes.shape[0]):
        F, C, K, start = shapes[j, 0], shapes[j, 1], shapes[j, 2], shapes[j, 3]
        cell, row = math.lgamma(alpha[j]), math.lgamma(K * alpha[j])
        value = 0.0
        for c in range(C):
            all_rows = 0.0
            for x in range(K):
                total = 0.0
                for f in range(F):
                    total += n[start + (f * C + c) * K + x]
                if total > 0.0:
                    value += math.lgamma(alpha[j] + total) - cell
                all_rows += total
            if all_rows > 0.0:
                value -= math.lgamma(K * alpha[j] + all_rows) - row
        found[j] = value
