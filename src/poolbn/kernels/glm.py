"""Likelihoods of rows in a linear predictor, and regressions on them. Compiled.

Families: logit with C + 1 levels, level 0 the baseline, eta_k = x'b_k for the levels 1 to C;
Poisson and negative binomial counts (NB2: variance mu + mu^2 / theta), log links, C = 1. All are
concave in the coefficients t = (b_1, ..., b_C), (d,) with d = C q. Nothing here allocates.

Arrays are few, since numba takes long to compile calls that hand on many:
  table (m, q + 2 + C)  a row is x, what was seen (a level or a count), how often, and room for its
                        probabilities or its mean, sorted by data set;
  state (d + 2, d)      of one data set: the information W (d, d), then t, then the score g.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.kernels.gammas import polygamma
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cholesky,
    cube,
    eigen,
    entry,
    integers,
    matrix,
    solve,
    vector,
)
from poolbn.kernels.work import internal, once

LOGIT, POISSON, NEGATIVE_BINOMIAL = 0, 1, 2
_LARGEST = 700.0  # exp of more is infinite
_STEPS = 100
_DECREMENT = 1e-11  # of a Newton step, where a regression ends
_LEAST = 1e-9  # information in directions that the rows of a data set do not have


@once
def _single(
    family: int, table: Floats, q: int, first: int, last: int, theta: float, state: Floats
) -> float:
    """`rows` with one linear predictor."""
    t, g = state[q], state[q + 1]
    value = 0.0
    for i in range(first, last):
        y, w = table[i, q], table[i, q + 1]
        eta = 0.0
        for a in range(q):
            eta += table[i, a] * t[a]
        if family == LOGIT:
            e = math.exp(-abs(eta))
            mu = 1.0 / (1.0 + e) if eta > 0.0 else e / (1.0 + e)
            value += w * (y * eta - max(eta, 0.0) - math.log1p(e))
            slope, curvature = y - mu, e / ((1.0 + e) * (1.0 + e))
        else:
            if eta > _LARGEST:
                return -np.inf
            mu = math.exp(eta)
            if family == POISSON:
                value += w * (y * eta - mu)
                slope, curvature = y - mu, mu
            else:
                r = 1.0 / (1.0 + mu / theta)
                value += w * (y * eta - (y + theta) * math.log1p(mu / theta))
                slope, curvature = r * (y - mu), (y / theta + 1.0) * mu * r * r
        table[i, q + 2] = mu
        slope *= w
        curvature *= w
        for a in range(q):
            g[a] += slope * table[i, a]
            v = curvature * table[i, a]
            for b in range(a + 1):
                state[a, b] += v * table[i, b]
    return value


@once
def _several(table: Floats, q: int, C: int, first: int, last: int, state: Floats) -> float:
    """`rows` of a logit with more than two levels."""
    d = C * q
    t, g = state[d], state[d + 1]
    value = 0.0
    for i in range(first, last):
        x, p, w = table[i], table[i, q + 2 :], table[i, q + 1]
        y = int(x[q])
        top = 0.0
        for k in range(C):
            eta = 0.0
            for a in range(q):
                eta += x[a] * t[k * q + a]
            p[k] = eta
            top = max(top, eta)
        value += w * ((p[y - 1] if y > 0 else 0.0) - top)
        total = math.exp(-top)
        for k in range(C):
            p[k] = math.exp(p[k] - top)
            total += p[k]
        value -= w * math.log(total)
        for k in range(C):
            p[k] /= total
            slope = w * ((1.0 if y == k + 1 else 0.0) - p[k])
            for a in range(q):
                g[k * q + a] += slope * x[a]
            for h in range(k + 1):
                v = w * p[k] * ((1.0 if h == k else 0.0) - p[h])
                for a in range(q):
                    for b in range(a + 1 if h == k else q):
                        state[k * q + a, h * q + b] += v * x[a] * x[b]
    return value


@internal
def rows(
    family: int, table: Floats, q: int, C: int, first: int, last: int, theta: float, state: Floats
) -> float:
    """The log-likelihood of rows at t, without what does not depend on t; fills W and g."""
    d = C * q
    for a in range(d):
        state[d + 1, a] = 0.0
        for b in range(d):
            state[a, b] = 0.0
    value: float
    if C == 1:
        value = _single(family, table, q, first, last, theta, state)
    else:
        value = _several(table, q, C, first, last, state)
    for a in range(d):
        for b in range(a):
            state[b, a] = state[a, b]
    return value


@internal
def third(
    family: int, table: Floats, q: int, C: int, first: int, last: int, theta: float, V: Floats,
    line: Floats, s: Floats, z: Floats,
) -> float:  # fmt: skip
    """Fills s (d,) with the derivatives of tr(VW) in t, at what `rows` saw last.

    For negative binomial rows also z (d,) with those of the score in theta; returns that of tr(VW)
    in theta, at fixed V. `line` (2, C) is work space.
    """
    for a in range(C * q):
        s[a] = 0.0
        z[a] = 0.0
    direct = 0.0
    for i in range(first, last):
        x, p = table[i], table[i, q + 2 :]
        y, w = x[q], x[q + 1]
        # With v_kh = x'V_kh x.
        plain, double = 0.0, 0.0
        for k in range(C):
            vp = 0.0
            for h in range(C):
                v = 0.0
                for a in range(q):
                    u = 0.0
                    for b in range(q):
                        u += V[k * q + a, h * q + b] * x[b]
                    v += u * x[a]
                vp += v * p[h]
                if h == k:
                    line[1, k] = v
            line[0, k] = vp
            plain += p[k] * line[1, k]
            double += p[k] * vp
        if family == LOGIT:
            for k in range(C):
                slope = w * p[k] * (line[1, k] - plain - 2.0 * line[0, k] + 2.0 * double)
                for a in range(q):
                    s[k * q + a] += slope * x[a]
            continue
        mu, v = p[0], w * line[1, 0]
        slope = v * mu
        if family == NEGATIVE_BINOMIAL:
            r = 1.0 / (theta + mu)
            slope *= (y + theta) * theta * (theta - mu) * r * r * r
            direct += v * mu * (y * (mu - theta) + 2.0 * theta * mu) * r * r * r
            step = w * (y - mu) * mu * r * r
            for a in range(q):
                z[a] += step * x[a]
        for a in range(q):
            s[a] += slope * x[a]
    return direct


@internal
def dispersion(
    table: Floats, q: int, first: int, last: int, theta: float
) -> tuple[float, float, float]:
    """What theta alone adds to a negative binomial log-likelihood, and derivatives in theta.

    First sum lgamma(y + theta) - lgamma(theta) - y log(theta), as a sum of logs where y is small,
    and its derivative; then that of -sum (y + theta) log(1 + mu / theta), at the means.
    """
    value, slope, rest = 0.0, 0.0, 0.0
    at, _ = polygamma(theta)
    for i in range(first, last):
        y, w, x = table[i, q], table[i, q + 1], table[i, q + 2] / theta
        rest += w * ((y / theta + 1.0) * x / (1.0 + x) - math.log1p(x))
        if y < 40.0:
            for h in range(1, int(y)):
                value += w * math.log1p(h / theta)
                slope -= w * h / (theta * (theta + h))
        else:
            above, _ = polygamma(y + theta)
            value += w * (math.lgamma(y + theta) - math.lgamma(theta) - y * math.log(theta))
            slope += w * (above - at - y / theta)
    return value, slope, rest


@internal
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


@once
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
        family: LOGIT, POISSON or NEGATIVE_BINOMIAL.
        table: see above.
        q: columns of x.
        C: linear predictors.
        offsets: where the rows of data sets begin, (F + 1,).
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
            result[j, 0] = rows(family, table, q, C, first, last, theta[j], state)
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
        total = 0.0
        for a in range(q):
            for b in range(q):
                work[3, a, b] = 0.0
        for i in range(first, last):
            total += table[i, q + 1]
            for a in range(q):
                for b in range(q):
                    work[3, a, b] += table[i, q + 1] * table[i, a] * table[i, b]
        result[j, 1] = _least_information(state, total, d, q, work)
