"""The mixed-effects deviance of one family and its derivatives, from statistics alone.

Compiled; nothing here allocates.

Letters are those of the paper and of lme4: a family has q coefficients, the intercept first, of
which the first r are random (r = q: all; r = 1: the intercept). Data set j enters as q pseudo rows
R_j (upper triangular), r_j with R_j'R_j = Z_j'Z_j and R_j'r_j = Z_j'y_j; what is left of y_j'y_j,
summed over data sets, is rho. Random effects have covariance sigma^2 D, D = LL'. With
W_j = I + R_j D R_j', P_j = R_j'W_j^-1 R_j, S = sum P_j, e_j = R_j'W_j^-1 (r_j - R_j beta):

    deviance   f = sum log|W_j| + n log(rss / n),     REML: + log|S| and n - q for n
    gradient   G = df/dD = sum P_j - (n / rss) sum e_j e_j',     REML: - sum P_j S^-1 P_j

No step subtracts large numbers from each other: rows keep what A_j - A_j L M_j^-1 L'A_j would lose
when D is large. The columns of Z are first combined (with their pooled Cholesky factor) so that
sum Z_j'Z_j = |F| I. The likelihood with a full D does not notice; the numerics do, and D is then
measured against the sampling variance of a data set's own coefficients: D = 1 shrinks by half.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.constants import CONVERGED, DEPENDENT, RANK_TOLERANCE
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    add,
    add_product,
    add_products,
    cholesky,
    combine,
    cube,
    dot,
    dot3,
    dot_apart,
    fill,
    gram_rows,
    integers,
    jit,
    matrix,
    multiply,
    put,
    solve,
    sum_of,
    unit,
)
from poolbn.kernels.work import DF, RHO, Space, Work, carve, inline, space


@unit(numba.int64, space, matrix, cube, numba.int64, integers, numba.boolean)
def compress(
    s: Space, mean: Floats, scatter: Floats, child: int, parents: Integers, again: bool
) -> int:
    """Pseudo rows R, r in the combined columns Z B^-1, rho and its total, from standardised sums.

    `again` keeps B as it was for others.

    Returns:
        A code: CONVERGED, or DEPENDENT + a for column a.
    """
    w = carve(s)
    R, B = w.R, w.B
    F, q, n = s.F, s.q, s.n
    fill(w.rho, 0, 0, 0.0)
    for i in range(q):
        fill(w.r, 0, i, 0.0)
        for a in range(q):
            fill(R, i, a, 0.0)
    rho = 0.0
    # Beside an intercept n rows can tell n - 1 columns apart. Deviations, all of whose means are 0,
    # have it behind them.
    intercept = 0.0
    for j in range(F):
        for k in range(q):
            if mean[j, child if k == 0 else parents[k - 1]] != 0.0:
                intercept = 1.0
    for j in range(F):
        most = n[j] - intercept
        root = math.sqrt(s.weight[j])
        R[0, 0, j] = root
        w.r[0, 0, j] = root * mean[j, child]
        for k in range(1, q):
            R[0, k, j] = root * mean[j, parents[k - 1]]
        rss, _, _ = gram_rows(scatter[j], child, parents, most, R[1:, 1:, j], w.r[0, 1:, j])
        w.rho[0, 0, j] = rss
        rho += rss
    s.totals[RHO] = rho
    s.totals[DF] = n.sum() - (q if s.reml else 0)
    for a in range(q if not again else 0):
        for b in range(a, q):
            v = 0.0
            for i in range(a + 1):
                v += dot(R, i, a, R, i, b)
            B[b, a] = 0.0
            B[a, b] = v / F
    for a in range(q if not again else 0):
        v = B[a, a]
        for i in range(a):
            v -= B[i, a] * B[i, a]
        if not v > RANK_TOLERANCE * B[a, a]:
            return DEPENDENT + a
        B[a, a] = math.sqrt(v)
        for b in range(a + 1, q):
            v = B[a, b]
            for i in range(a):
                v -= B[i, a] * B[i, b]
            B[a, b] = v / B[a, a]
    for i in range(q):
        for b in range(i, q):
            for k in range(i, b):
                add(R, i, b, -B[k, b], R, i, k)
            put(R, i, b, 1.0 / B[b, b], R, i, b)
    return CONVERGED


@jit
def _invert_pivots(W: Floats, i: int) -> float:
    """Pivots v = W[i, i] become v^-1/2; returns sum log v, with few logarithms, which are dear."""
    total = 0.0
    product = 1.0
    for j in range(W.shape[2]):
        product *= W[i, i, j]
        if product > 1e100:
            total += math.log(product)
            product = 1.0
    for j in range(W.shape[2]):
        W[i, i, j] = 1.0 / math.sqrt(W[i, i, j])
    return total + math.log(product)


@unit(numba.float64, space, matrix, numba.int64)
def whiten(s: Space, L: Floats, k: int) -> float:
    """Sum of log|W_j| at the k columns of L (r, r). Fills Rt, rt and P."""
    w = carve(s)
    q = s.q
    random = s.r
    T, W, Rt, rt, P = w.T, w.W, w.Rt, w.rt, w.P
    for i in range(q):
        for b in range(k):
            combine(T, i, b, L, b, w.R, i, i, random)
    f = 0.0
    for i in range(q):  # W becomes the Cholesky factor of I + TT'
        for h in range(i + 1):
            fill(W, i, h, 1.0 if i == h else 0.0)
            add_products(W, i, h, 1.0, T, i, T, h, k)
            add_products(W, i, h, -1.0, W, i, W, h, h)
            if h < i:
                multiply(W, i, h, W, h, h)
        f += _invert_pivots(W, i)
    for i in range(q):
        put(rt, 0, i, 1.0, w.r, 0, i)
        add_products(rt, 0, i, -1.0, W, i, rt, 0, i)
        multiply(rt, 0, i, W, i, i)
        for a in range(q):
            put(Rt, a, i, 1.0, w.R, i, a)
            add_products(Rt, a, i, -1.0, W, i, Rt, a, i)
            multiply(Rt, a, i, W, i, i)
    for a in range(q):
        for b in range(a + 1):
            fill(P, a, b, 0.0)
            add_products(P, a, b, 1.0, Rt, a, Rt, b, q)
            put(P, b, a, 1.0, P, a, b)
    return f


@unit(numba.types.UniTuple(numba.float64, 2), space, numba.float64, matrix, numba.int64)
def profile(s: Space, rho: float, L: Floats, k: int) -> tuple[float, float]:
    """Logarithms of determinants, and rss, at the k columns of L (r, r) and the best beta.

    Fills P, e, rt, beta, S and C; the first is inf where beta is not determined.
    """
    w = carve(s)
    q = s.q
    Rt, rt = w.Rt, w.rt
    f = whiten(s, L, k)
    for a in range(q):
        w.beta[a] = 0.0
        for i in range(q):
            w.beta[a] += dot(Rt, a, i, rt, 0, i)
        for b in range(a + 1):
            w.S[a, b] = sum_of(w.P, a, b)
    if not cholesky(w.S, w.C, q, 0.0):
        return np.inf, 0.0
    solve(w.C, q, w.beta)
    rss = rho
    for i in range(q):
        for a in range(q):
            add(rt, 0, i, -w.beta[a], Rt, a, i)
        rss += dot(rt, 0, i, rt, 0, i)
    for a in range(q):
        fill(w.e, 0, a, 0.0)
        add_products(w.e, 0, a, 1.0, Rt, a, rt, 0, q)
    if s.reml:
        for a in range(q):
            f += 2.0 * math.log(w.C[a, a])
    return f, rss


@unit(numba.void, space, numba.float64)
def gradient(s: Space, ratio: float) -> None:
    """Fill G = df/dD, (r, r), with n / rss = ratio; for REML also X and Q."""
    w = carve(s)
    q = s.q
    random = s.r
    if s.reml:
        for a in range(q):
            for i in range(q):
                put(w.X, i, a, 1.0, w.P, i, a)
                for m in range(i):
                    add(w.X, i, a, -w.C[i, m], w.X, m, a)
                put(w.X, i, a, 1.0 / w.C[i, i], w.X, i, a)
    for a in range(random):
        for c in range(a + 1):
            w.G[a, c] = w.S[a, c] - ratio * dot(w.e, 0, a, w.e, 0, c)
            if s.reml:
                fill(w.Q, a, c, 0.0)
                for i in range(q):
                    add_product(w.Q, a, c, 1.0, w.X, i, a, w.X, i, c)
                put(w.Q, c, a, 1.0, w.Q, a, c)
                w.G[a, c] -= sum_of(w.Q, a, c)
            w.G[c, a] = w.G[a, c]


@inline
def by_entries(s: Space, w: Work, k: int) -> None:
    """From G = df/dD to the entries of L: g = 2 GL, and H gets 2 G among those of a column."""
    L, G, H, perm, random = w.L, w.G, w.H, s.perm, s.r
    x = 0
    for b in range(k):
        for ia in range(b, random):
            a = perm[ia]
            v = 0.0
            for c in range(random):
                v += G[a, c] * L[c, b]
            w.g[x] = 2.0 * v
            for ic in range(b, ia + 1):
                H[x, x - ia + ic] += 2.0 * G[a, perm[ic]]
            x += 1


@jit
def between(P: Floats, L: Floats, k: int, PL: Floats, K: Floats) -> None:
    """PL = (P L)' and the lower triangle of K = L'P L for each data set."""
    for b in range(k):
        for i in range(PL.shape[1]):
            combine(PL, b, i, L, b, P, i, 0, L.shape[0])
        for d in range(b + 1):
            combine(K, b, d, L, b, PL, d, 0, L.shape[0])


@jit
def _whiten(C: Floats, M: Floats, X: Floats) -> None:
    """M becomes C^-1 M C^-T, M symmetric. X (q, q) is work space."""
    q = C.shape[0]
    for _ in range(2):
        for i in range(q):
            for a in range(q):  # in this order: columns do not wait for each other
                v = M[i, a]
                for h in range(i):
                    v -= C[i, h] * X[h, a]
                X[i, a] = v / C[i, i]
        for i in range(q):
            for h in range(q):
                M[h, i] = X[i, h]


@unit(numba.int64, space, numba.int64, numba.float64, numba.float64)
def hessian(s: Space, k: int, ratio: float, curve: float) -> int:
    """Gradient g and Hessian H (lower triangle) of f in the free entries of L; returns how many.

    With dD = dL L' + L dL', ratio = n / rss and curve = n / rss^2:
        d2f = 2 <G, dL dL'> - sum tr(P dD P dD) - curve (sum e'dD e)^2
              + 2 ratio (sum e'dD P dD e - v'S^-1 v),     v = sum P dD e,
    and for REML + 2 sum tr(Q dD P dD) - tr(S^-1 dS S^-1 dS), Q = P S^-1 P, dS = -sum P dD P.
    For entries (a,b) and (c,d) of L, with PL = P L, K = L'PL, m = L'e, QL = Q L, KQ = L'QL:
        tr(P dD P dD)  = 2 (PL_ad PL_cb + K_bd P_ac)
        e'dD P dD e    = m_b m_d P_ac + m_b e_c PL_ad + e_a m_d PL_cb + e_a e_c K_bd
        tr(Q dD P dD)  = QL_ad PL_cb + KQ_bd P_ac + Q_ac K_bd + QL_cb PL_ad.
    """
    w = carve(s)
    q = s.q
    L, perm, H, V, P, PL, K, m, e = w.L, s.perm, w.H, w.V, w.P, w.PL, w.K, w.m, w.e
    random = s.r
    reml = s.reml
    between(P, L, k, PL, K)
    for b in range(k):
        combine(m, 0, b, L, b, e, 0, 0, random)
    if reml:
        between(w.Q, L, k, w.QL, w.KQ)
    u = w.u  # what P, e and PL are multiplied with
    first = 0
    for b in range(k):
        before = 0
        for d in range(b + 1):
            put(u, 0, 0, -2.0, K, b, d)
            add_product(u, 0, 0, 2.0 * ratio, m, 0, b, m, 0, d)
            for ia in range(b, random):
                a = perm[ia]
                fill(u, 0, 1, 0.0)
                add_product(u, 0, 1, 2.0 * ratio, e, 0, a, K, b, d)
                add_product(u, 0, 1, 2.0 * ratio, PL, d, a, m, 0, b)
                put(u, 0, 2, -2.0, PL, d, a)
                add_product(u, 0, 2, 2.0 * ratio, e, 0, a, m, 0, d)
                x = first + ia - b
                for ic in range(d, random if d < b else ia + 1):
                    c = perm[ic]
                    v = dot3(u, P, a, c, e, PL, b)
                    if reml:
                        v += 2.0 * (
                            dot_apart(w.QL, d, a, PL, b, c)
                            + dot_apart(w.KQ, b, d, P, a, c)
                            + dot_apart(w.Q, a, c, K, b, d)
                            + dot_apart(w.QL, b, c, PL, d, a)
                        )
                    H[x, before + ic - d] = v
            before += random - d
        for ia in range(b, random):
            a = perm[ia]
            x = first + ia - b
            w.g[x] = 2.0 * dot(e, 0, a, m, 0, b)
            for i in range(q):
                V[x, i] = dot(P, i, a, m, 0, b) + dot(PL, b, i, e, 0, a)
                if reml:
                    for h in range(q):
                        w.Y[x, i, h] = dot_apart(P, i, a, PL, b, h)
                        w.Y[x, i, h] += dot_apart(PL, b, i, P, h, a)
        first += random - b
    for i in range(q):
        for x in range(first):  # likewise
            v = V[x, i]
            for h in range(i):
                v -= w.C[i, h] * V[x, h]
            V[x, i] = v / w.C[i, i]
    for x in range(first):
        if reml:
            _whiten(w.C, w.Y[x], w.square)
        for y in range(x + 1):
            v = 0.0
            for i in range(q):
                v += V[x, i] * V[y, i]
            H[x, y] -= 2.0 * ratio * v + curve * w.g[x] * w.g[y]
            if reml:
                for i in range(q):
                    for h in range(q):
                        H[x, y] -= w.Y[x, i, h] * w.Y[y, i, h]
    by_entries(s, w, k)
    return first
