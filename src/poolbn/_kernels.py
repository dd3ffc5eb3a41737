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

import numpy as np

from poolbn._linalg import Floats, Integers, cholesky, gram_rows, jit, solve
from poolbn.standard import CONVERGED, DEPENDENT, RANK_TOLERANCE


@jit
def compress(
    n: Floats,
    mean: Floats,
    scatter: Floats,
    child: int,
    parents: Integers,
    R: Floats,
    r: Floats,
    B: Floats,
) -> tuple[float, int]:
    """Pseudo rows R (F,q,q), r (F,q) in the combined columns Z B^-1, from standardised statistics.

    Returns:
        rho, and a code: CONVERGED, or DEPENDENT + a for column a.
    """
    F, q = r.shape
    rho = 0.0
    for j in range(F):
        root = math.sqrt(n[j])
        R[j, 0, 0] = root
        r[j, 0] = root * mean[j, child]
        for k in range(1, q):
            R[j, 0, k] = root * mean[j, parents[k - 1]]
            R[j, k, 0] = 0.0
        rss, _, _ = gram_rows(scatter[j], child, parents, n[j] - 1.0, R[j, 1:, 1:], r[j, 1:])
        rho += rss
    for a in range(q):
        for b in range(a, q):
            v = 0.0
            for j in range(F):
                for i in range(a + 1):
                    v += R[j, i, a] * R[j, i, b]
            B[b, a] = 0.0
            B[a, b] = v / F
    for a in range(q):
        v = B[a, a]
        for i in range(a):
            v -= B[i, a] * B[i, a]
        if not v > RANK_TOLERANCE * B[a, a]:
            return rho, DEPENDENT + a
        B[a, a] = math.sqrt(v)
        for b in range(a + 1, q):
            v = B[a, b]
            for i in range(a):
                v -= B[i, a] * B[i, b]
            B[a, b] = v / B[a, a]
    for j in range(F):
        for i in range(q):
            for b in range(i, q):
                v = R[j, i, b]
                for k in range(i, b):
                    v -= R[j, i, k] * B[k, b]
                R[j, i, b] = v / B[b, b]
    return rho, CONVERGED


@jit
def evaluate(
    R: Floats,
    r: Floats,
    rho: float,
    df: float,
    L: Floats,
    k: int,
    reml: bool,
    Rt: Floats,
    rt: Floats,
    P: Floats,
    e: Floats,
    S: Floats,
    C: Floats,
    beta: Floats,
    W: Floats,
    T: Floats,
) -> tuple[float, float]:
    """Deviance f, and rss, at the k columns of L (r, r).

    Fills P (F,q,q), e (F,q), beta and C, the Cholesky factor of S.
    Rt, rt are W_j^-1/2 (R_j, r_j); W (q,q) and T (q,q) are work space.
    """
    F, q = r.shape
    random = L.shape[0]
    f = 0.0
    product = 1.0
    for a in range(q):
        beta[a] = 0.0
        for b in range(q):
            S[a, b] = 0.0
    for j in range(F):
        for i in range(q):
            for b in range(k):
                v = 0.0
                for a in range(i, random):
                    v += R[j, i, a] * L[a, b]
                T[i, b] = v
        for i in range(q):  # W becomes the Cholesky factor of I + TT'
            for h in range(i + 1):
                v = 1.0 if i == h else 0.0
                for b in range(k):
                    v += T[i, b] * T[h, b]
                for m in range(h):
                    v -= W[i, m] * W[h, m]
                if i == h:
                    product *= v
                    if product > 1e100:  # logarithms are dear: one for several factors
                        f += math.log(product)
                        product = 1.0
                    W[i, i] = math.sqrt(v)
                else:
                    W[i, h] = v / W[h, h]
        for i in range(q):
            for a in range(q):
                Rt[j, i, a] = R[j, i, a] if a >= i else 0.0
            v = r[j, i]
            for m in range(i):
                w = W[i, m]
                v -= w * rt[j, m]
                for a in range(q):
                    Rt[j, i, a] -= w * Rt[j, m, a]
            w = 1.0 / W[i, i]
            rt[j, i] = v * w
            for a in range(q):
                Rt[j, i, a] *= w
        for a in range(q):
            for b in range(a + 1):
                v = 0.0
                for i in range(q):
                    v += Rt[j, i, a] * Rt[j, i, b]
                P[j, a, b] = v
                P[j, b, a] = v
                S[a, b] += v
            v = 0.0
            for i in range(q):
                v += Rt[j, i, a] * rt[j, i]
            beta[a] += v
    f += math.log(product)
    if not cholesky(S, C, q, 0.0):
        return np.inf, 0.0
    solve(C, q, beta)
    rss = rho
    for j in range(F):
        for a in range(q):
            e[j, a] = 0.0
        for i in range(q):
            v = rt[j, i]
            for a in range(q):
                v -= Rt[j, i, a] * beta[a]
            rss += v * v
            for a in range(q):
                e[j, a] += Rt[j, i, a] * v
    if reml:
        for a in range(q):
            f += 2.0 * math.log(C[a, a])
    return f + df * math.log(rss / df), rss


@jit
def gradient(
    P: Floats, e: Floats, C: Floats, rss: float, df: float, reml: bool, G: Floats, X: Floats
) -> None:
    """G = df/dD, (r, r). X (q,q) is work space."""
    F, q = e.shape
    random = G.shape[0]
    for a in range(random):
        for c in range(a + 1):
            v = 0.0
            for j in range(F):
                v += P[j, a, c] - df / rss * e[j, a] * e[j, c]
            G[a, c] = v
    if reml:
        for j in range(F):
            _half_solve(C, P[j], X, random)
            for a in range(random):
                for c in range(a + 1):
                    for i in range(q):
                        G[a, c] -= X[i, a] * X[i, c]
    for a in range(random):
        for c in range(a):
            G[c, a] = G[a, c]


@jit
def _half_solve(C: Floats, M: Floats, X: Floats, columns: int) -> None:
    """X = C^-1 M for the first columns of M (q, .)."""
    q = C.shape[0]
    for a in range(columns):
        for i in range(q):
            v = M[i, a]
            for m in range(i):
                v -= C[i, m] * X[m, a]
            X[i, a] = v / C[i, i]


@jit
def hessian(
    P: Floats,
    e: Floats,
    C: Floats,
    L: Floats,
    k: int,
    perm: Integers,
    rss: float,
    df: float,
    reml: bool,
    G: Floats,
    H: Floats,
    g: Floats,
    PL: Floats,
    K: Floats,
    m: Floats,
    V: Floats,
    X: Floats,
    Y: Floats,
    Pp: Floats,
    PLp: Floats,
    ep: Floats,
) -> int:
    """Gradient g and Hessian H (lower triangle) of f in the free entries of L.

    With dD = dL L' + L dL':
        d2f = 2 <G, dL dL'> - sum tr(P dD P dD) - (df / rss^2) (sum e'dD e)^2
              + 2 (df / rss) (sum e'dD P dD e - v'S^-1 v),     v = sum P dD e,
    and for REML + 2 sum tr(Q dD P dD) - tr(S^-1 dS S^-1 dS), Q = P S^-1 P, dS = -sum P dD P.
    For entries (a,b) and (c,d) of L, with PL = P L, K = L'PL, m = L'e:
        tr(P dD P dD)  = 2 (PL_ad PL_cb + K_bd P_ac)
        e'dD P dD e    = m_b m_d P_ac + m_b e_c PL_ad + e_a m_d PL_cb + e_a e_c K_bd
        tr(Q dD P dD)  = QL_ad PL_cb + KQ_bd P_ac + Q_ac K_bd + QL_cb PL_ad.
    Pp, PLp (transposed) and ep hold P, PL and e in the order of perm, for the innermost loop.
    """
    F, q = e.shape
    random = L.shape[0]
    w = df / rss
    size = 0
    for b in range(k):
        size += random - b
    for x in range(size):
        g[x] = 0.0
        for y in range(x + 1):
            H[x, y] = 0.0
        for i in range(q):
            V[x, i] = 0.0
        if reml:
            for i in range(q):
                for h in range(q):
                    Y[x, i, h] = 0.0
    for j in range(F):
        for b in range(k):
            v = 0.0
            for a in range(random):
                v += L[a, b] * e[j, a]
            m[b] = v
            for i in range(q):
                v = 0.0
                for a in range(random):
                    v += P[j, i, a] * L[a, b]
                PL[i, b] = v
        for b in range(k):
            for d in range(b + 1):
                v = 0.0
                for a in range(random):
                    v += L[a, b] * PL[a, d]
                K[b, d] = v
        for i in range(random):
            ep[i] = e[j, perm[i]]
            for h in range(random):
                Pp[i, h] = P[j, perm[i], perm[h]]
            for b in range(k):
                PLp[b, i] = PL[perm[i], b]
        x = 0
        for b in range(k):
            for ia in range(b, random):
                ea = ep[ia]
                g[x] += 2.0 * ea * m[b]
                for i in range(q):
                    V[x, i] += P[j, perm[ia], i] * m[b] + PL[i, b] * ea
                start = 0
                for d in range(b + 1):
                    PLad = PLp[d, ia]
                    with_P = 2.0 * (w * m[b] * m[d] - K[b, d])
                    with_e = 2.0 * w * (ea * K[b, d] + PLad * m[b])
                    with_PL = 2.0 * (w * ea * m[d] - PLad)
                    for c in range(d, random if d < b else ia + 1):
                        H[x, start + c - d] += (
                            with_P * Pp[ia, c] + with_e * ep[c] + with_PL * PLp[b, c]
                        )
                    start += random - d
                x += 1
        if reml:
            _reml_terms(P[j], C, L, k, perm, H, PL, K, X, Y)
    for x in range(size):
        for i in range(q):
            v = V[x, i]
            for h in range(i):
                v -= C[i, h] * V[x, h]
            V[x, i] = v / C[i, i]
        if reml:
            _whiten(C, Y[x], X)
        for y in range(x + 1):
            v = 0.0
            for i in range(q):
                v += V[x, i] * V[y, i]
            H[x, y] -= 2.0 * w * v + w / rss * g[x] * g[y]
            if reml:
                v = 0.0
                for i in range(q):
                    for h in range(q):
                        v += Y[x, i, h] * Y[y, i, h]
                H[x, y] -= v
    x = 0
    for b in range(k):
        for ia in range(b, random):
            a = perm[ia]
            v = 0.0
            for c in range(random):
                v += G[a, c] * L[c, b]
            g[x] = 2.0 * v
            for ic in range(b, ia + 1):
                H[x, x - ia + ic] += 2.0 * G[a, perm[ic]]
            x += 1
    return size


@jit
def _reml_terms(
    P: Floats,
    C: Floats,
    L: Floats,
    k: int,
    perm: Integers,
    H: Floats,
    PL: Floats,
    K: Floats,
    X: Floats,
    Y: Floats,
) -> None:
    """What one data set adds to H and to Y[x] = sum P dD P for REML; X = C^-1 P, Q = X'X."""
    q = C.shape[0]
    random = L.shape[0]
    _half_solve(C, P, X, q)
    x = 0
    for b in range(k):
        for ia in range(b, random):
            a = perm[ia]
            for i in range(q):
                for h in range(q):
                    Y[x, i, h] += P[i, a] * PL[h, b] + PL[i, b] * P[h, a]
            y = 0
            for d in range(b + 1):
                for ic in range(d, random):
                    if y > x:
                        break
                    c = perm[ic]
                    qac = 0.0
                    qlad = 0.0
                    qlcb = 0.0
                    kqbd = 0.0
                    for i in range(q):
                        xb = 0.0
                        xd = 0.0
                        for h in range(random):
                            xb += X[i, h] * L[h, b]
                            xd += X[i, h] * L[h, d]
                        qac += X[i, a] * X[i, c]
                        qlad += X[i, a] * xd
                        qlcb += X[i, c] * xb
                        kqbd += xb * xd
                    H[x, y] += 2.0 * (
                        qlad * PL[c, b] + kqbd * P[a, c] + qac * K[b, d] + qlcb * PL[a, d]
                    )
                    y += 1
            x += 1


@jit
def _whiten(C: Floats, M: Floats, X: Floats) -> None:
    """M becomes C^-1 M C^-T, M symmetric."""
    q = C.shape[0]
    _half_solve(C, M, X, q)
    for i in range(q):
        for h in range(q):
            M[h, i] = X[i, h]
    _half_solve(C, M, X, q)
    for i in range(q):
        for h in range(q):
            M[i, h] = X[i, h]
