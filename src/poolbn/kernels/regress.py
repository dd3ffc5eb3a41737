"""Least squares of many families on scatter matrices, and what bounds a mixed-effects model.

Compiled; nothing here allocates.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cholesky,
    cube,
    eigen,
    entry,
    gram_rows,
    integers,
    jit,
    matrix,
    vector,
)

_SETS = 3  # of data sets that a bound is tried with
_SHRINK = 0.5  # what the next set's limit is of the last one's
_HUGE = 1e300  # an eigenvalue that there is
_MARGIN = 1e-9  # of a bound, for rounding


@entry(cube, vector, integers, integers, integers, cube, matrix, matrix, numba.int64[:, ::1])
def least_squares(
    scatter: Floats,
    n: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    U: Floats,
    u: Floats,
    rss: Floats,
    dependent: Integers,
) -> None:
    """Regress children[m] on parents[offsets[m] : offsets[m + 1]] in each of the J tables.

    Fills rss (M, J) and dependent (M, J): the first parent that is a combination of the ones before
    it, or -1. U (J, p, p), u (J, p) end as the Cholesky rows of the last family.
    """
    for m in range(children.shape[0]):
        pa = parents[offsets[m] : offsets[m + 1]]
        for j in range(n.shape[0]):
            rss[m, j], _, dependent[m, j] = gram_rows(
                scatter[j], children[m], pa, n[j] - 1.0, U[j], u[j]
            )


@jit
def _coordinates(
    n: float,
    mean: Floats,
    parents: Integers,
    U: Floats,
    u: Floats,
    y: float,
    C: Floats,
    V: Floats,
    coef: Floats,
) -> float:
    """Fill coef (q,) with C' times a data set's own coefficients; bound C'A^-1 C's eigenvalues.

    A = Z'Z of that data set, C (q, q) lower triangular; V (q, q) is work space.

    Returns:
        The mean of the q eigenvalues and (q - 1)^1/2 times their standard deviation: no eigenvalue
        is larger (Wolkowicz and Styan 1980), and for q <= 2 or equal ones it is the largest.
    """  # fmt: skip
    p = parents.shape[0]
    q = p + 1
    # V = R^-1, A = R'R: upper triangular
    V[0, 0] = 1.0 / math.sqrt(n)
    for b in range(p):
        V[0, b + 1] = 0.0
        for a in range(b, -1, -1):
            v = 1.0 if a == b else 0.0
            for k in range(a + 1, b + 1):
                v -= U[a, k] * V[k + 1, b + 1]
            V[a + 1, b + 1] = v / U[a, a]
            V[0, b + 1] -= mean[parents[a]] * V[a + 1, b + 1]
    trace = 0.0
    for a in range(q):  # V becomes Q = C'V, C'A^-1 C = QQ'
        coef[a] = C[0, a] * y if a == 0 else 0.0
        for b in range(a, q):
            v = 0.0
            for k in range(a, b + 1):
                v += C[k, a] * V[k, b]
            V[a, b] = v
            trace += v * v
            if b > 0:
                coef[a] += v * u[b - 1]
    squares = 0.0  # tr(QQ'QQ')
    for a in range(q):
        for b in range(a + 1):
            v = 0.0
            for k in range(a, q):
                v += V[a, k] * V[b, k]
            squares += v * v if a == b else 2.0 * v * v
    largest: float = trace / q + math.sqrt((q - 1.0) * max(squares / q - (trace / q) ** 2, 0.0))
    return largest


@jit
def _least_penalty(lam: Floats, q: int, m: float, n: float, rho: float) -> float:
    """The least over s > 0 of n log s + rho / s + m sum_k h(lam_k / (m s)), lam falling.

    h(x) is x up to 1 and 1 + log x beyond: the least of log w + x / w over w >= 1. With the first
    k beyond 1, s is in closed form; inf where rounding leaves no k that fits.
    """
    least = np.inf
    rest = rho
    for k in range(q):
        rest += lam[k]
    logs = 0.0
    for k in range(q + 1):
        df = n - m * k
        if df > 0.0 and rest > 0.0:
            s = rest / df
            fits = k == 0 or lam[k - 1] >= m * s * (1.0 - 1e-9)
            if fits and (k == q or lam[k] <= m * s * (1.0 + 1e-9)):
                least = min(least, df * (math.log(s) + 1.0) + m * (k + logs))
        if k < q:
            rest -= lam[k]
            if lam[k] > 0.0:
                logs += math.log(lam[k] / m)
    return least


@entry(
    vector, matrix, cube, integers, integers, integers, numba.boolean, cube, matrix, matrix, vector,
    cube, vector,
)  # fmt: skip
def least_deviances(
    n: Floats,
    mean: Floats,
    scatter: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    reml: bool,
    U: Floats,
    u: Floats,
    coef: Floats,
    largest: Floats,
    work: Floats,
    deviance: Floats,
) -> None:
    """A lower bound of each family's mixed-effects deviance, without its constant, (M,).

    With A_j = Z_j'Z_j, b_j data set j's own least squares and rho their residual squares, D in
    units of s = sigma^2, the deviance is the least over s, beta and D of

        n log s + rho / s + sum_j [log|I + D A_j| + (b_j - beta)'(D + A_j^-1)^-1 (b_j - beta) / s].

    Every term of the sum is at least 0, and falls when A_j becomes smaller. So leave out some data
    sets, and put c A_0 <= A_j for the m others, A_0 = C C' the mean of all A_j, 1 / c the largest
    eigenvalue of all their C'A_j^-1 C: with W = I + c C'D C >= I there remains
    m log|W| + tr(W^-1 X) / s, X = c sum C'(b_j - b)(b_j - b)'C. W shares the eigenvectors of X at
    the least, and each of X's eigenvalues is on its own: see `_least_penalty`. The best of some
    bounds is taken, each without those data sets whose eigenvalue is the largest.

    REML has n - q for n and adds log|S|, S = sum Z_j'V_j^-1 Z_j. For any k, S is at least its term
    of data set k, whose determinant is |A_k| / |I + D A_k|. So log|A_k| takes the place of that
    data set's log|I + D A_k|: the largest one bounds best, and m - 1 remain.
    """
    F = n.shape[0]
    total = n.sum()
    S, C, V = work[0], work[1], work[2]
    for family in range(children.shape[0]):
        pa = parents[offsets[family] : offsets[family + 1]]
        q = pa.shape[0] + 1
        df = total - (q if reml else 0)
        rho = 0.0
        volume = -np.inf
        for a in range(q):
            for b in range(q):
                S[a, b] = 0.0
        for j in range(F):
            rss, _, dependent = gram_rows(scatter[j], children[family], pa, n[j] - 1.0, U[j], u[j])
            rho += rss
            largest[j] = 0.0 if dependent < 0 else np.inf
            if reml and dependent < 0:
                v = math.log(n[j])
                for a in range(q - 1):
                    v += 2.0 * math.log(U[j, a, a])
                volume = max(volume, v)
            S[0, 0] += n[j] / F
            for a in range(1, q):
                S[a, 0] += n[j] * mean[j, pa[a - 1]] / F
                for b in range(1, a + 1):
                    v = n[j] * mean[j, pa[a - 1]] * mean[j, pa[b - 1]]
                    for k in range(b):
                        v += U[j, k, a - 1] * U[j, k, b - 1]
                    S[a, b] += v / F
        if not reml:
            volume = 0.0
        deviance[family] = volume + df * (math.log(rho / df) + 1.0)
        if not cholesky(S, C, q, 0.0):
            continue
        for j in range(F):
            if largest[j] == 0.0:
                y = mean[j, children[family]]
                largest[j] = _coordinates(n[j], mean[j], pa, U[j], u[j], y, C, V, coef[j])
        limit = _HUGE
        for _ in range(_SETS):
            m = 0.0
            top = 0.0
            for a in range(q):
                V[0, a] = 0.0
            for j in range(F):
                if largest[j] <= limit:
                    m += 1.0
                    top = max(top, largest[j])
                    for a in range(q):
                        V[0, a] += coef[j, a]
            if m < 2.0:
                break
            for a in range(q):
                for b in range(a + 1):
                    v = 0.0
                    for j in range(F):
                        if largest[j] <= limit:
                            v += (coef[j, a] - V[0, a] / m) * (coef[j, b] - V[0, b] / m)
                    S[a, b] = v / top
                    S[b, a] = v / top
            eigen(S, V, q)
            for a in range(q):  # the eigenvalues, from large to small
                v = max(S[a, a], 0.0)
                k = a
                while k > 0 and C[0, k - 1] < v:
                    C[0, k] = C[0, k - 1]
                    k -= 1
                C[0, k] = v
            least = volume + _least_penalty(C[0], q, m - (1.0 if reml else 0.0), df, rho)
            if abs(least) < np.inf:
                deviance[family] = max(deviance[family], least - _MARGIN * abs(least))
            limit = _SHRINK * top
