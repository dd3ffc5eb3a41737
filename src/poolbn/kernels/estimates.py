"""What a `LocalFit` says, in the units of the data, from the work space of a fit. Compiled."""

from __future__ import annotations

import numba

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cholesky,
    cube,
    entry,
    integers,
    jit,
    matrix,
    vector,
)
from poolbn.kernels.work import Space, carve


@jit
def _covariance(M: Floats, A: Floats, C: Floats, X: Floats, out: Floats) -> float:
    """Fill out (q, q) with A M^-1 A', M (r, r) and A (q, r); returns the trace of M^-1.

    C (r, r) and X (r,) are work space.
    """
    q, r = A.shape
    cholesky(M, C, r, 0.0)
    for i in range(q):
        for k in range(q):
            out[i, k] = 0.0
    trace = 0.0
    for a in range(r):  # C becomes its inverse, row by row
        for b in range(a):
            v = 0.0
            for k in range(b, a):
                v -= C[a, k] * C[k, b]
            X[b] = v / C[a, a]
        C[a, a] = 1.0 / C[a, a]
        for b in range(a):
            C[a, b] = X[b]
        for b in range(a + 1):
            trace += C[a, b] * C[a, b]
    for a in range(r):
        for i in range(q):
            X[i] = 0.0
            for b in range(a + 1):
                X[i] += C[a, b] * A[i, b]
        for i in range(q):
            for k in range(q):
                out[i, k] += X[i] * X[k]
    return trace


@entry(
    vector, vector, numba.int64, numba.boolean, vector, vector, numba.int64, integers,
    integers, matrix, matrix, vector, vector, matrix, matrix, matrix, cube, vector,
)  # fmt: skip
def estimates(
    buffer: Floats,
    n: Floats,
    r: int,
    reml: bool,
    center: Floats,
    scale: Floats,
    child: int,
    parents: Integers,
    place: Integers,
    A: Floats,
    AL: Floats,
    x: Floats,
    fixed: Floats,
    fixed_cov: Floats,
    random_cov: Floats,
    random: Floats,
    conditional_cov: Floats,
    effective_df: Floats,
) -> None:
    """Coefficients and covariances of the last family that was fitted, and polished.

    Covariances are in units of the variance of residuals.

    Args:
        buffer: the work space, as the fit left it.
        n: rows, (F,).
        r: random effects of each.
        reml: whether it was REML.
        center: means of the columns, (N,).
        scale: their standard deviations, (N,).
        child: its column.
        parents: their columns as the fit had them, (q - 1,).
        place: where each coefficient goes, (q,).
        A: gets the way from the fit's coefficients to these, (q, q).
        AL: work space, (q, r).
        x: work space, (q,).
        fixed: gets the fixed effects, (q,).
        fixed_cov: gets their covariance, (q, q).
        random_cov: gets the covariance of the random effects, (q, q).
        random: gets their predictions, (F, q).
        conditional_cov: gets the covariances of these, (F, q, q).
        effective_df: gets tr(Z_j V_j Z_j'), V_j that covariance: the effective degrees of freedom
            of a data set's own random effects, (F,).
    """
    F, q = n.shape[0], parents.shape[0] + 1
    w = carve(
        Space(buffer, buffer, place, n, n, F, q, r, reml, n)
    )  # the order of pivots is not read
    B, L, M = w.B, w.best, w.D
    # Combined columns are Z B^-1, Z standardised: coefficients are B^-1 times the fit's, then those
    # of columns in their own units.
    for b in range(q):
        for a in range(b, -1, -1):
            v = 1.0 if a == b else 0.0
            for k in range(a + 1, b + 1):
                v -= B[a, k] * x[k]
            x[a] = v / B[a, a]
        shift = x[0]
        for k in range(1, q):
            v = x[k] / scale[parents[k - 1]] if k <= b else 0.0  # B^-1 is upper triangular
            A[place[k], b] = scale[child] * v
            shift -= center[parents[k - 1]] * v
        A[place[0], b] = scale[child] * shift
    for i in range(q):
        fixed[i] = center[child] if place[0] == i else 0.0
        for a in range(q):
            fixed[i] += A[i, a] * w.beta[a]
        for b in range(r):
            AL[i, b] = 0.0
            for a in range(r):
                AL[i, b] += A[i, a] * L[a, b]
    for i in range(q):
        for k in range(q):
            random_cov[i, k] = 0.0
            for b in range(r):
                random_cov[i, k] += AL[i, b] * AL[k, b]
    _covariance(w.S, A, w.C, x, fixed_cov)
    for j in range(F):
        for b in range(r):
            x[b] = 0.0
            for a in range(r):
                x[b] += L[a, b] * w.e[0, a, j]
        for i in range(q):
            random[j, i] = 0.0
            for b in range(r):
                random[j, i] += AL[i, b] * x[b]
        for b in range(r):
            for d in range(b + 1):
                M[b, d] = 1.0 if b == d else 0.0
        for i in range(q):  # M = I + (R L)'(R L)
            for b in range(r):
                x[b] = 0.0
                for a in range(i, r):
                    x[b] += w.R[i, a, j] * L[a, b]
                for d in range(b + 1):
                    M[b, d] += x[b] * x[d]
        effective_df[j] = r - _covariance(M, AL, w.trial, x, conditional_cov[j])
