"""One coefficient in each data set, for values of how much it varies between them. Compiled.

Data set j says of its coefficients b_j what a normal likelihood with information w_j A_j and score
w_j c_j at 0 says, and they are normal around beta with covariance g_j D, D = LL'. With
H = I + w_j g_j L'A_j L the covariance of b_j given beta is g_j L H^-1 L', and data set j says of
beta P_j = w_j A_j - w_j^2 g_j A_j L H^-1 L'A_j. D may be singular.
"""

from __future__ import annotations

import math

import numba

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import cholesky, cube, entry, jit, matrix, solve, vector


@jit
def _forward(C: Floats, size: int, x: Floats) -> None:
    """Solve Cx = x in place, C lower."""
    for i in range(size):
        v = x[i]
        for k in range(i):
            v -= C[i, k] * x[k]
        x[i] = v / C[i, i]


@entry(
    cube, matrix, vector, vector, cube, vector, numba.int64, vector, cube, matrix, matrix, cube,
    cube,
)  # fmt: skip
def posteriors(
    A: Floats,
    c: Floats,
    w: Floats,
    g: Floats,
    roots: Floats,
    sd: Floats,
    k: int,
    grid: Floats,
    work: Floats,
    kept: Floats,
    loglik: Floats,
    mean: Floats,
    variance: Floats,
) -> None:
    """Coefficient k of F data sets for S correlations and T standard deviations between them.

    Args:
        A: (F, q, q).
        c: (F, q).
        w: (F,).
        g: (F,).
        roots: L of correlations between coefficients, (S, q, q).
        sd: standard deviations between data sets, of which that of k is not used, (q,).
        k: which coefficient.
        grid: its standard deviations, (T,).
        work: (8, q, q).
        kept: (F + 3, q + 2).
        loglik: filled with restricted log-likelihoods, but for a constant, (S, T).
        mean: with the means of b_jk given the rows, (S, T, F).
        variance: with their variances, for the error of beta too, likewise.
    """
    F, q = c.shape
    L, AL, H, C, X, P, root = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    u, z, y, beta = work[7, 0], kept[F], kept[F + 1], kept[F + 2]
    for s in range(roots.shape[0]):
        for t in range(grid.shape[0]):
            for a in range(q):
                size = grid[t] if a == k else sd[a]
                u[a] = 0.0
                for b in range(q):
                    L[a, b] = size * roots[s, a, b]
                    P[a, b] = 0.0
            log = 0.0
            for j in range(F):
                scale = w[j] * g[j]
                for a in range(q):
                    for b in range(q):
                        v = 0.0
                        for m in range(q):
                            v += A[j, a, m] * L[m, b]
                        AL[a, b] = v
                for a in range(q):
                    for b in range(a + 1):
                        v = 1.0 if a == b else 0.0
                        for m in range(q):
                            v += scale * L[m, a] * AL[m, b]
                        H[a, b] = v
                cholesky(H, C, q, 0.0)
                for a in range(q):
                    log -= math.log(C[a, a])
                for i in range(q):  # X = A L C^-T, row by row
                    for a in range(q):
                        X[i, a] = AL[i, a]
                    _forward(C, q, X[i])
                for a in range(q):
                    z[a] = 0.0
                    for m in range(q):
                        z[a] += L[m, a] * c[j, m]
                    y[a] = L[k, a]
                _forward(C, q, z)
                _forward(C, q, y)
                told, own = 0.0, 0.0
                for a in range(q):
                    log += 0.5 * w[j] * scale * z[a] * z[a]
                    told += scale * y[a] * z[a]
                    own += g[j] * y[a] * y[a]
                kept[j, q], kept[j, q + 1] = told, own
                for a in range(q):
                    v, follows = c[j, a], 0.0
                    for m in range(q):
                        v -= scale * X[a, m] * z[m]
                        follows += scale * X[a, m] * y[m]
                    u[a] += w[j] * v
                    kept[j, a] = follows
                    for b in range(a + 1):
                        v = A[j, a, b]
                        for m in range(q):
                            v -= scale * X[a, m] * X[b, m]
                        P[a, b] += w[j] * v
            cholesky(P, root, q, 0.0)
            for a in range(q):
                beta[a] = u[a]
                log -= math.log(root[a, a])
            solve(root, q, beta)
            for a in range(q):
                log += 0.5 * beta[a] * u[a]
            loglik[s, t] = log
            for j in range(F):
                middle = beta[k] + kept[j, q]
                for a in range(q):
                    middle -= kept[j, a] * beta[a]
                    y[a] = -kept[j, a]
                y[k] += 1.0
                _forward(root, q, y)
                v = kept[j, q + 1]
                for a in range(q):
                    v += y[a] * y[a]
                mean[s, t, j] = middle
                variance[s, t, j] = v
