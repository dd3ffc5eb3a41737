"""The work space of one mixed-effects fit, cut out of a buffer that the caller brings.

Data sets are the last axis of every array that has one, so that the innermost loops run over them:
they are many, and the q coefficients are few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from poolbn.kernels.lanes import LANES, Floats, padded, take
from poolbn.kernels.linalg import OPTIONS, Integers, both

# For functions of a `Space`. They have no way in from Python, which takes long to compile: only
# other kernels call them, and their tests run the source.
_njit: Any = numba.njit
internal = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)
# Called in one place: compiled as part of the caller, not twice.
once = _njit(inline="always", **OPTIONS)


class Space(NamedTuple):
    """Where the work space of one family is, to be cut by `carve`.

    This, not `Work`, is what functions are called with: the arrays are hundreds of numbers.
    """

    buffer: Floats
    perm: Integers  # (q,) or more
    F: int  # data sets
    q: int  # coefficients
    r: int  # those that are random
    reml: bool


class Work(NamedTuple):
    """Arrays for one family: q coefficients, r of them random, room for F data sets."""

    R: Floats  # pseudo rows, (q, q, F)
    e: Floats  # R'W^-1 (r - R beta), (1, q, F)
    S: Floats  # sum P, (q, q)
    B: Floats  # Cholesky factor of the pooled Gram matrix, (q, q)
    best: Floats  # factor of the best D so far, (r, r)
    beta: Floats  # fixed effects, (q,)
    r: Floats  # pseudo rows of the child, (1, q, F)
    rho: Floats  # residual squares of each data set, (1, 1, F)
    Rt: Floats  # (W^-1/2 R)', (q, q, F)
    rt: Floats  # W^-1/2 r, (1, q, F)
    P: Floats  # R'W^-1 R, (q, q, F)
    C: Floats  # Cholesky factor of S, (q, q)
    W: Floats  # Cholesky factor of I + R D R', its diagonal inverted, (q, q, F)
    T: Floats  # R L, (q, r, F)
    PL: Floats  # (P L)', (r, q, F)
    K: Floats  # L'P L, (r, r, F)
    m: Floats  # L'e, (1, r, F)
    u: Floats  # vectors for use at once, (1, 4, F)
    X: Floats  # C^-1 P, REML only, (q, q, F)
    Q: Floats  # P S^-1 P, REML only, (r, r, F)
    QL: Floats  # (Q L)', REML only, (r, r, F)
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


def room(F: int, q: int, reml: bool) -> Floats:
    """A buffer for `carve` and families of up to q coefficients, where vectors start."""
    size = q * (q + 1) // 2
    cubes = ((7 + 4 * reml) * q * q + 4 * q + 5) * padded(F)
    planes = 10 * q * q + q + size * (2 * size + 3) + size * q * (1 + q * reml)
    return aligned(cubes + planes + len(Work._fields) * LANES)


def aligned(size: int) -> Floats:
    """An array that starts where a vector does."""
    whole = np.empty(size + LANES)
    start = -(whole.ctypes.data // whole.itemsize) % LANES
    return whole[start : start + size]


@both
def carve(s: Space) -> Work:
    """Cut the arrays of one family out of the buffer."""
    buffer, q, r = s.buffer, s.q, s.r
    F = padded(s.F)
    size = r * (r + 1) // 2
    more = 1 if s.reml else 0
    at, R = take(buffer, 0, (q, q, F))
    at, e = take(buffer, at, (1, q, F))
    at, S = take(buffer, at, (q, q))
    at, B = take(buffer, at, (q, q))
    at, best = take(buffer, at, (r, r))
    at, beta = take(buffer, at, (q,))
    at, rows = take(buffer, at, (1, q, F))
    at, rho = take(buffer, at, (1, 1, F))
    at, Rt = take(buffer, at, (q, q, F))
    at, rt = take(buffer, at, (1, q, F))
    at, P = take(buffer, at, (q, q, F))
    at, C = take(buffer, at, (q, q))
    at, W = take(buffer, at, (q, q, F))
    at, T = take(buffer, at, (q, r, F))
    at, PL = take(buffer, at, (r, q, F))
    at, K = take(buffer, at, (r, r, F))
    at, m = take(buffer, at, (1, r, F))
    at, u = take(buffer, at, (1, 4, F))
    at, X = take(buffer, at, (more * q, q, F))
    at, Q = take(buffer, at, (more * r, r, F))
    at, QL = take(buffer, at, (more * r, r, F))
    at, KQ = take(buffer, at, (more * r, r, F))
    at, Y = take(buffer, at, (more * size, q, q))
    at, G = take(buffer, at, (r, r))
    at, D = take(buffer, at, (r, r))
    at, eigenvectors = take(buffer, at, (r, r))
    at, L = take(buffer, at, (r, r))
    at, trial = take(buffer, at, (r, r))
    at, H = take(buffer, at, (size, size))
    at, HC = take(buffer, at, (size, size))
    at, V = take(buffer, at, (size, q))
    at, g = take(buffer, at, (size,))
    at, step = take(buffer, at, (size,))
    at, unit = take(buffer, at, (size,))
    at, square = take(buffer, at, (q, q))
    return Work(
        R, e, S, B, best, beta, rows, rho, Rt, rt, P, C, W, T, PL, K, m, u, X, Q, QL, KQ, Y,
        G, D, eigenvectors, L, trial, H, HC, V, g, step, unit, square, s.perm[:r],
    )  # fmt: skip
