"""Small dense linear algebra for the kernels: q is a handful, so loops beat library calls.

Nothing here allocates. Matrices may be larger than the part in use, whose size is given.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from poolbn.constants import CONSTANT_TOLERANCE, EXACT, RANK_TOLERANCE
from poolbn.kernels.compile_cache import compiled
from poolbn.kernels.compile_units import Part, compiled_alone
from poolbn.kernels.lanes import (
    LANES,
    Floats,
    fma,
    load,
    opaque,
    product,
    spread,
    store,
    total,
)

Integers = NDArray[np.int64]

vector = numba.float64[::1]
matrix = numba.float64[:, ::1]
cube = numba.float64[:, :, ::1]
integers = numba.int64[::1]


# Without numba's counting of references, which takes longer than the work, and with it the means to
# allocate: the compiler refuses.
OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False}


def entry(*arguments: Any) -> Any:
    """Decorates what Python calls: compiled when its module is loaded, or read from the cache.

    Only entry points are cached; they hold what they call.
    """
    signature: Any = numba.void
    return partial(compiled, signature=signature(*arguments), options=OPTIONS)


# Only other kernels call these: they have no way in from Python. Tests run their source.
_INNER: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **OPTIONS}
_PART: Any = {"pipeline_class": Part, **_INNER}
jit = numba.njit(**_PART)


def unit(returns: Any, *arguments: Any) -> Any:
    """Decorates what is large and called in several places: compiled once, see `compile_units`."""
    return partial(compiled_alone, signature=returns(*arguments), options=_INNER)


# Python, and part of what calls it where that is compiled.
callable_from_python = register_jitable(forceinline=True, **_PART)

# Vectors over the data sets are X[a, b, :], see `lanes`. Their places are passed, not views of
# them, and the loops are inlined: the call would take longer than the work.


@callable_from_python
def _place(X: Floats, a: int, b: int) -> int:
    return opaque((a * X.shape[1] + b) * X.shape[2])


def _dot(X: Floats, a: int, b: int, Y: Floats, c: int, d: int) -> float:
    """Sum of X[a, b] Y[c, d]."""
    x, y = _place(X, a, b), _place(Y, c, d)
    v = spread(0.0)
    for j in range(0, X.shape[2], LANES):
        v = fma(load(X, x + j), load(Y, y + j), v)
    return total(v)


dot = callable_from_python(_dot)
# Not inlined: for what REML alone needs, where a short time to compile counts for more.
dot_apart = jit(_dot)


@callable_from_python
def dot3(u: Floats, P: Floats, a: int, c: int, e: Floats, PL: Floats, b: int) -> float:
    """Sum of u[0, 0] P[a, c] + u[0, 1] e[0, c] + u[0, 2] PL[b, c]."""
    x, y, z = _place(P, a, c), _place(e, 0, c), _place(PL, b, c)
    F = u.shape[2]
    v = spread(0.0)
    for j in range(0, F, LANES):
        v = fma(load(u, j), load(P, x + j), v)
        v = fma(load(u, F + j), load(e, y + j), v)
        v = fma(load(u, 2 * F + j), load(PL, z + j), v)
    return total(v)


@callable_from_python
def sum_of(X: Floats, a: int, b: int) -> float:
    """Sum of X[a, b]."""
    x = _place(X, a, b)
    v = spread(0.0)
    for j in range(0, X.shape[2], LANES):
        v = fma(load(X, x + j), spread(1.0), v)
    return total(v)


@callable_from_python
def put(out: Floats, i: int, h: int, factor: float, X: Floats, a: int, b: int) -> None:
    """out[i, h] = factor X[a, b]."""
    o, x = _place(out, i, h), _place(X, a, b)
    for j in range(0, out.shape[2], LANES):
        store(out, o + j, product(spread(factor), load(X, x + j)))


@callable_from_python
def fill(out: Floats, i: int, h: int, value: float) -> None:
    """out[i, h] = value."""
    o = _place(out, i, h)
    for j in range(0, out.shape[2], LANES):
        store(out, o + j, spread(value))


@callable_from_python
def add(out: Floats, i: int, h: int, factor: float, X: Floats, a: int, b: int) -> None:
    """out[i, h] += factor X[a, b]."""
    o, x = _place(out, i, h), _place(X, a, b)
    for j in range(0, out.shape[2], LANES):
        store(out, o + j, fma(spread(factor), load(X, x + j), load(out, o + j)))


@callable_from_python
def multiply(out: Floats, i: int, h: int, X: Floats, a: int, b: int) -> None:
    """out[i, h] *= X[a, b]."""
    o, x = _place(out, i, h), _place(X, a, b)
    for j in range(0, out.shape[2], LANES):
        store(out, o + j, product(load(X, x + j), load(out, o + j)))


@callable_from_python
def add_product(
    out: Floats, i: int, h: int, factor: float, X: Floats, a: int, b: int, Y: Floats, c: int, d: int
) -> None:
    """out[i, h] += factor X[a, b] Y[c, d]."""
    o, x, y = _place(out, i, h), _place(X, a, b), _place(Y, c, d)
    for j in range(0, out.shape[2], LANES):
        xy = product(load(X, x + j), load(Y, y + j))
        store(out, o + j, fma(spread(factor), xy, load(out, o + j)))


@callable_from_python
def add_products(
    out: Floats, i: int, h: int, sign: float, X: Floats, a: int, Y: Floats, c: int, count: int
) -> None:
    """out[i, h] += sign sum X[a, m] Y[c, m] over m < count."""
    for m in range(count):
        add_product(out, i, h, sign, X, a, m, Y, c, m)


@callable_from_python
def combine(
    out: Floats, i: int, h: int, L: Floats, b: int, X: Floats, a: int, first: int, last: int
) -> None:
    """out[i, h] = sum L[m, b] X[a, m] over first <= m < last."""
    fill(out, i, h, 0.0)
    for m in range(first, last):
        add(out, i, h, L[m, b], X, a, m)


@jit
def cholesky(M: Floats, C: Floats, size: int, shift: float) -> bool:
    """Lower C with CC' = M + shift I; False, and C is anything, if that is not positive."""
    # Column by column: the entries of one do not wait for each other, as those of a row do.
    for k in range(size):
        v = M[k, k]
        for m in range(k):
            v -= C[k, m] * C[k, m]
        v += shift
        if not v > 1e-13 * abs(M[k, k] + shift):
            return False
        root = math.sqrt(v)
        C[k, k] = root
        for i in range(k + 1, size):
            v = M[i, k]
            for m in range(k):
                v -= C[i, m] * C[k, m]
            C[i, k] = v / root
    return True


@jit
def solve(C: Floats, size: int, x: Floats) -> None:
    """Solve CC'x = x in place."""
    for i in range(size):
        v = x[i]
        for k in range(i):
            v -= C[i, k] * x[k]
        x[i] = v / C[i, i]
    for i in range(size - 1, -1, -1):
        v = x[i]
        for k in range(i + 1, size):
            v -= C[k, i] * x[k]
        x[i] = v / C[i, i]


@jit
def eigen(A: Floats, V: Floats, size: int, small: float) -> None:
    """Jacobi's method: A becomes diagonal (the eigenvalues), the columns of V the eigenvectors.

    Until the squares off the diagonal are so small a part of those on it. V may have no rows.
    """
    rows = min(size, V.shape[0])
    for i in range(rows):
        for k in range(size):
            V[i, k] = 1.0 if i == k else 0.0
    for _ in range(40):
        off = 0.0
        diagonal = 0.0
        for i in range(size):
            diagonal += A[i, i] * A[i, i]
            for k in range(i):
                off += A[i, k] * A[i, k]
        if not off > small * diagonal:
            return
        for p in range(size - 1):
            for q in range(p + 1, size):
                if A[p, q] == 0.0:
                    continue
                theta = (A[q, q] - A[p, p]) / (2.0 * A[p, q])
                t = (1.0 if theta >= 0.0 else -1.0) / (abs(theta) + math.sqrt(theta * theta + 1.0))
                c = 1.0 / math.sqrt(t * t + 1.0)
                s = t * c
                for k in range(size):
                    x, y = A[k, p], A[k, q]
                    A[k, p], A[k, q] = c * x - s * y, s * x + c * y
                for k in range(size):
                    x, y = A[p, k], A[q, k]
                    A[p, k], A[q, k] = c * x - s * y, s * x + c * y
                for k in range(rows):
                    x, y = V[k, p], V[k, q]
                    V[k, p], V[k, q] = c * x - s * y, s * x + c * y


@jit
def raise_squares(squares: Floats, n: Floats, q: int, least: float) -> float:
    """Raise residual squares of data sets that have next to none, and return by how much.

    Where residual variances are the data sets' own, a data set whose child is an exact combination
    of its parents would make a likelihood rise without bound, and any small number in place of its
    variance would decide a search. So the variance is at least `least`, what rounding to the
    column's resolution adds. Where it is still below `EXACT` of the pooled one, that takes its
    place: such a data set says nothing about its own variance. A child that is such a combination
    in all data sets is left as it is, and has no likelihood.
    """
    F = n.shape[0]
    total, rows = 0.0, 0.0
    for j in range(F):
        total += squares[j]
        rows += n[j]
    if total <= RANK_TOLERANCE * rows:
        return 0.0
    before, total, rows = total, 0.0, 0.0
    for j in range(F):
        df = n[j] - q
        if df > 0.0:
            squares[j] = max(squares[j], df * least)
            total += squares[j]
            rows += df
    for j in range(F):
        df = n[j] - q
        if df > 0.0 and squares[j] * rows < EXACT * df * total:
            squares[j] = df * total / rows
    after = 0.0
    for j in range(F):
        after += squares[j]
    return after - before


@jit
def gram_rows(
    S: Floats, child: int, parents: Integers, rank_limit: float, U: Floats, u: Floats
) -> tuple[float, int, int]:
    """Cholesky rows of one scatter matrix: the parents' part of a QR decomposition, from S alone.

    U (p, p) becomes upper triangular with U'U = S[parents, parents], u (p,) has U'u =
    S[parents, child]. A parent that is a combination of the earlier ones (its remaining square is
    below RANK_TOLERANCE of its own), or constant but for rounding in units of the pooled standard
    deviation, leaves a row of zeros: S does not say more.

    Returns:
        The child's residual sum of squares, the rank, and the first dependent parent (-1: none).
    """
    p = parents.shape[0]
    floor = CONSTANT_TOLERANCE * (rank_limit + 1.0)
    rank = 0
    dependent = -1
    for k in range(p):
        pk = parents[k]
        d = S[pk, pk]
        for m in range(k):
            d -= U[m, k] * U[m, k]
        for m in range(k):
            U[k, m] = 0.0
        if d > max(RANK_TOLERANCE * S[pk, pk], floor) and rank < rank_limit:
            rank += 1
            s = math.sqrt(d)
            U[k, k] = s
            for i in range(k + 1, p):
                v = S[pk, parents[i]]
                for m in range(k):
                    v -= U[m, k] * U[m, i]
                U[k, i] = v / s
            v = S[pk, child]
            for m in range(k):
                v -= U[m, k] * u[m]
            u[k] = v / s
        else:
            if dependent < 0:
                dependent = k
            for i in range(k, p):
                U[k, i] = 0.0
            u[k] = 0.0
    rss = S[child, child]
    for m in range(p):
        rss -= u[m] * u[m]
    return max(rss, 0.0) if rank < rank_limit else 0.0, rank, dependent
