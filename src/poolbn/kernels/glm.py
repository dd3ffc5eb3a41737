"""Regressions on the likelihoods of `rows`, and the tables that these are of. Compiled."""

from __future__ import annotations

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
from poolbn.kernels.rows import BLOCK, add_squares, rows, weighted
from poolbn.kernels.work import inline

_STEPS = 100
_DECREMENT = 1e-11  # of a Newton step, where a regression ends
_LEAST = 1e-9  # information in directions that the rows of a data set do not have


@jit
def penalty(
    t: Floats, centre: Floats, S: Floats, ridge: float, q: int, C: int, out: Floats
) -> float:
    """Ridge / 2 (t - centre)'(S kron I)(t - centre); `out` becomes its slope.

    S = (I + 11')^-1 (C, C) makes it the same for all levels.
    """
    value = 0.0
    for k in range(C):
        for a in range(q):
            v = 0.0
            for h in range(C):
                v += S[k, h] * (t[h * q + a] - centre[h * q + a])
            out[k * q + a] = ridge * v
            value += 0.5 * ridge * v * (t[k * q + a] - centre[k * q + a])
    return value


@entry(matrix, integers, vector, integers, integers, matrix, matrix)
def lay_out(
    X: Floats,
    y: Integers,
    weight: Floats,
    offsets: Integers,
    places: Integers,
    T: Floats,
    table: Floats,
) -> None:
    """Fill x, y and weights of a table.

    Args:
        X: columns, (p, rows).
        y: what was seen, (rows,).
        weight: how often, (rows,).
        offsets: where the rows of data sets begin, (F + 1,).
        places: where they begin in the table, multiples of eight, (F + 1,).
        T: x'T are the columns of the table, (p, q).
        table: see `rows`.
    """
    p, q = T.shape
    for j in range(offsets.shape[0] - 1):
        first, n = offsets[j], offsets[j + 1] - offsets[j]
        at, room = places[j], places[j + 1] - places[j]
        for b in range(q + 2):  # slices: numba asks of other positions whether they are negative
            column = table[b, at : at + room]
            for i in range(room):
                column[i] = 0.0
            for a in range(p if b < q else 0):
                by, x = T[a, b], X[a, first : first + n]
                for i in range(n if by != 0.0 else 0):
                    column[i] += by * x[i]
        seen, times = table[q, at : at + n], table[q + 1, at : at + n]
        own, often = y[first : first + n], weight[first : first + n]
        for i in range(n):
            seen[i] = own[i]
            times[i] = often[i]


@entry(matrix, vector, matrix)
def describe(table: Floats, mean: Floats, S: Floats) -> None:
    """Weighted means (q,) and covariances (q, q) of x in a table, whose first column is 1.

    The other columns are centred.
    """
    m, q = table.shape[1], mean.shape[0]
    for a in range(q):
        mean[a] = weighted(table, q + 1, 0, m, a)
        for b in range(q):
            S[a, b] = 0.0
    n = mean[0]
    for a in range(q):
        mean[a] /= n
    for begin in range(0, m, BLOCK):
        end = min(begin + BLOCK, m)
        for a in range(1, q):
            column = table[a, begin:end]
            for i in range(end - begin):
                column[i] -= mean[a]
        add_squares(table, q, q + 1, begin, end, S, 0, 0)
    for a in range(q):
        for b in range(a + 1):
            S[a, b] /= n
            S[b, a] = S[a, b]


@inline
def _least_information(state: Floats, rows: float, d: int, q: int, work: Floats) -> float:
    """The least v'Wv over v of mean square 1 in the rows, whose X'X is work[3].

    Near 0 where some linear predictor can grow without end: separation. Directions that the rows
    do not have count as 1.
    """
    A, C, E = work[0], work[1], work[2]
    for a in range(d):
        for b in range(d):
            A[a, b] = work[3, a % q, b % q] / rows if a // q == b // q else 0.0
    if not cholesky(A, C, d, _LEAST):
        return 0.0
    for c in range(d):  # rows of E: (C^-1 (W + least I))'
        for a in range(d):
            v = state[a, c] + (_LEAST if a == c else 0.0)
            for b in range(a):
                v -= C[a, b] * E[c, b]
            E[c, a] = v / C[a, a]
    for c in range(d):
        for a in range(d):
            v = E[a, c]
            for b in range(a):
                v -= C[a, b] * A[c, b]
            A[c, a] = v / C[a, a]
    eigen(A, E[:0], d, 1e-26)
    least = np.inf
    for a in range(d):
        least = min(least, A[a, a])
    return least


@entry(
    numba.int64, matrix, numba.int64, numba.int64, integers, matrix, vector, matrix, vector, cube,
    matrix, cube, matrix,
)  # fmt: skip
def regress(
    family: int,
    table: Floats,
    q: int,
    C: int,
    offsets: Integers,
    centre: Floats,
    ridge: Floats,
    S: Floats,
    theta: Floats,
    states: Floats,
    result: Floats,
    work: Floats,
    lines: Floats,
) -> None:
    """Regress in each data set, by Newton's method with step halving.

    Args:
        family: see `rows`.
        table: see `rows`.
        q: columns of x.
        C: linear predictors.
        offsets: where the rows of data sets begin in the table, (F + 1,).
        centre: where the penalty is zero, (F, d).
        ridge: its weight, (F,); where it is 0 it is there for numerics alone.
        S: see `penalty`.
        theta: of negative binomial counts, (F,).
        states: (F, d + 2, d): t starts the search. W ends with the penalty's.
        result: log-likelihoods without penalties; `_least_information`; converged, 0 or 1; (F, 3).
        work: (4, d, d).
        lines: (3, d).
    """
    d = q * C
    slope, step, old = lines[0], lines[1], lines[2]
    for j in range(offsets.shape[0] - 1):
        first, last = offsets[j], offsets[j + 1]
        state, weight = states[j], max(ridge[j], _LEAST)
        t, g = state[d], state[d + 1]
        best, part = -np.inf, 1.0
        result[j, 2] = 0.0
        for _ in range(_STEPS):
            result[j, 0] = rows(family, table, q, C, first, last, theta[j], state, 0)
            now = result[j, 0] - penalty(t, centre[j], S, weight, q, C, slope)
            if not now >= best - 1e-12 * abs(best):
                part *= 0.5
                if part < 1e-12:
                    break
                for a in range(d):
                    t[a] = old[a] + part * step[a]
                continue
            best, part = max(now, best), 1.0
            for k in range(C):
                for h in range(C):
                    for a in range(q):
                        state[k * q + a, h * q + a] += weight * S[k, h]
            cholesky(state, work[3], d, 0.0)
            for a in range(d):
                old[a] = t[a]
                step[a] = g[a] - slope[a]
            solve(work[3], d, step)
            decrement = 0.0
            for a in range(d):
                decrement += step[a] * (g[a] - slope[a])
            if not decrement < np.inf:
                break
            if decrement < _DECREMENT:
                result[j, 2] = 1.0
                break
            for a in range(d):
                t[a] += step[a]
        for a in range(q):
            for b in range(q):
                work[3, a, b] = 0.0
        add_squares(table, q, q + 1, first, last, work[3], 0, 0)
        for a in range(q):
            for b in range(a):
                work[3, b, a] = work[3, a, b]
        n = weighted(table, q + 1, first, last, 0)  # the intercept is 1
        result[j, 1] = _least_information(state, n, d, q, work)
