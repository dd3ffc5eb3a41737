"""The work space of one mixed-effects fit, cut out of a buffer that the caller brings.

Data sets are the last axis of every array that has one, so that the innermost loops run over them:
they are many, and the q coefficients are few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba

from poolbn.kernels.linalg import Floats, Integers, jit

# For functions of `Work`. They have no way in from Python, which takes long to compile: only other
# kernels call them, and their tests run the source.
_njit: Any = numba.njit
internal = _njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
# Called in one place: compiled as part of the caller, not twice.
once = _njit(inline="always")


class Work(NamedTuple):
    """Arrays of the exact size for one family: q coefficients, r of them random, F data sets."""

    R: Floats  # pseudo rows, (q, q, F)
    e: Floats  # R'W^-1 (r - R beta), (1, q, F)
    S: Floats  # sum P, (q, q)
    B: Floats  # Cholesky factor of the pooled Gram matrix, (q, q)
    best: Floats  # factor of the best D so far, (r, r)
    beta: Floats  # fixed effects, (q,)
    r: Floats  # pseudo rows of the child, (1, q, F)
    rho: Floats  # residual squares of each data set, (1, 1, F)
    Rt: Floats  # W^-1/2 R, (q, q, F)
    rt: Floats  # W^-1/2 r, (1, q, F)
    P: Floats  # R'W^-1 R, (q, q, F)
    C: Floats  # Cholesky factor of S, (q, q)
    W: Floats  # Cholesky factor of I + R D R', its diagonal inverted, (q, q, F)
    T: Floats  # R L, (q, r, F)
    PL: Floats  # P L, (q, r, F)
    K: Floats  # L'P L, (r, r, F)
    m: Floats  # L'e, (1, r, F)
    u: Floats  # vectors for use at once, (1, 4, F)
    X: Floats  # C^-1 P, REML only, (q, q, F)
    Q: Floats  # P S^-1 P, REML only, (r, r, F)
    QL: Floats  # Q L, REML only, (r, r, F)
    KQ: Floats  # L'Q L, REML only, (r, r, F)
    Y: Floats  # sum P dD P for each entry of L, REML only, (r (r + 1) / 2, q, q)
    G: Floats  # gradient in D, (r, r)
    D: Floats  # (r, r)
    eigenvectors: Floats  # (r, r)
    L: Floats  # (r, r)
    trial: Floats  # (r, r)
    H: Floats  # Hessian in the entries of L, (r (r + 1) / 2, same)
    HC: Floats  # its Cholesky factor, (same, same)
    V: Floats  # sum P dD e for each entry of L, (same, q)
    g: Floats  # gradient in the entries of L, (same,)
    step: Floats  # (same,)
    unit: Floats  # the scale of each entry of L, (same,)
    square: Floats  # (q, q)
    perm: Integers  # the rows in the order of the pivots, (r,)


def buffer_size(F: int, q: int, reml: bool) -> int:
    """Floats that `carve` needs for families of up to q coefficients."""
    size = q * (q + 1) // 2
    cubes = (7 + 4 * reml) * F * q * q
    return (
        cubes + (4 * q + 5) * F + 10 * q * q + q + size * (2 * size + 3) + size * q * (1 + q * reml)
    )


@internal
def carve(buffer: Floats, perm: Integers, F: int, q: int, r: int, reml: bool) -> Work:
    """Cut the arrays of one family out of the buffer. `mixed.fit` reads the first six."""
    size = r * (r + 1) // 2
    more = 1 if reml else 0
    one = q - (q - 1)  # variables, as each literal would make another version of the cutters
    start = one - one
    at, R = _cube(buffer, start, q, q, F)
    at, e = _cube(buffer, at, one, q, F)
    at, S = _plane(buffer, at, q, q)
    at, B = _plane(buffer, at, q, q)
    at, best = _plane(buffer, at, r, r)
    at, beta = _plane(buffer, at, one, q)
    at, rows = _cube(buffer, at, one, q, F)
    at, rho = _cube(buffer, at, one, one, F)
    at, Rt = _cube(buffer, at, q, q, F)
    at, rt = _cube(buffer, at, one, q, F)
    at, P = _cube(buffer, at, q, q, F)
    at, C = _plane(buffer, at, q, q)
    at, W = _cube(buffer, at, q, q, F)
    at, T = _cube(buffer, at, q, r, F)
    at, PL = _cube(buffer, at, q, r, F)
    at, K = _cube(buffer, at, r, r, F)
    at, m = _cube(buffer, at, one, r, F)
    at, u = _cube(buffer, at, one, 4 * one, F)
    at, X = _cube(buffer, at, more * q, q, F)
    at, Q = _cube(buffer, at, more * r, r, F)
    at, QL = _cube(buffer, at, more * r, r, F)
    at, KQ = _cube(buffer, at, more * r, r, F)
    at, Y = _cube(buffer, at, more * size, q, q)
    at, G = _plane(buffer, at, r, r)
    at, D = _plane(buffer, at, r, r)
    at, eigenvectors = _plane(buffer, at, r, r)
    at, L = _plane(buffer, at, r, r)
    at, trial = _plane(buffer, at, r, r)
    at, H = _plane(buffer, at, size, size)
    at, HC = _plane(buffer, at, size, size)
    at, V = _plane(buffer, at, size, q)
    at, g = _plane(buffer, at, one, size)
    at, step = _plane(buffer, at, one, size)
    at, unit = _plane(buffer, at, one, size)
    at, square = _plane(buffer, at, q, q)
    return Work(
        R, e, S, B, best, beta[0], rows, rho, Rt, rt, P, C, W, T, PL, K, m, u, X, Q, QL, KQ, Y,
        G, D, eigenvectors, L, trial, H, HC, V, g[0], step[0], unit[0], square, perm[:r],
    )  # fmt: skip


@jit
def _plane(buffer: Floats, at: int, rows: int, columns: int) -> tuple[int, Floats]:
    end = at + rows * columns
    return end, buffer[at:end].reshape((rows, columns))


@jit
def _cube(buffer: Floats, at: int, rows: int, columns: int, depth: int) -> tuple[int, Floats]:
    end = at + rows * columns * depth
    return end, buffer[at:end].reshape((rows, columns, depth))
