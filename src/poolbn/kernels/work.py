"""The work space of one mixed-effects fit, cut out of buffers that the caller brings.

Data sets are the last axis of every array that has one, so that the innermost loops run over them:
they are many, and the q coefficients are few.

The fields of a work space say the shapes of its arrays, and nothing else does: both the size of the
buffer and the code that cuts it are made from them. The compiled code checks no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import accumulate, pairwise
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np

from poolbn.kernels.cutting import layout
from poolbn.kernels.lanes import LANES, Floats, padded
from poolbn.kernels.linalg import OPTIONS, Integers, cube, integers, matrix, vector

# Called in one place: compiled as part of the caller, not twice.
_njit: Any = numba.njit
inline = _njit(inline="always", **OPTIONS)


class Space(NamedTuple):
    """Where the work space of one family is, to be cut by `carve`.

    This, not `Work`, is what functions are called with: the arrays are hundreds of numbers.
    """

    buffer: Floats  # of `Work`
    more: Floats  # of the residual model's own arrays
    perm: Integers  # the rows of L in the order of the pivots, (r,) or more
    n: Floats  # rows, (F,)
    totals: Floats  # rho, degrees of freedom, rss of all data sets, by how much it was raised, (4,)
    F: int  # data sets
    q: int  # coefficients
    r: int  # those that are random
    reml: bool
    # what intercepts weigh, (F,): the rows, or less where rows of a unit are alike, see `units`
    weight: Floats


# Numba's type of it.
space: Any = numba.types.NamedTuple(
    (vector, vector, integers, vector, vector, *[numba.int64] * 3, numba.boolean, vector), Space
)


class Work(NamedTuple):
    """Arrays for one family. F is padded; size = r (r + 1) / 2, the entries of L."""

    R: Annotated[Floats, "q, q, F"]  # pseudo rows
    e: Annotated[Floats, "1, q, F"]  # R'W^-1 (r - R beta)
    S: Annotated[Floats, "q, q"]  # sum P
    B: Annotated[Floats, "q, q"]  # Cholesky factor of the pooled Gram matrix
    best: Annotated[Floats, "r, r"]  # factor of the best D so far
    beta: Annotated[Floats, "q"]  # fixed effects
    r: Annotated[Floats, "1, q, F"]  # pseudo rows of the child
    rho: Annotated[Floats, "1, 1, F"]  # residual squares of each data set
    Rt: Annotated[Floats, "q, q, F"]  # (W^-1/2 R)'
    rt: Annotated[Floats, "1, q, F"]  # W^-1/2 r, then W^-1/2 (r - R beta)
    P: Annotated[Floats, "q, q, F"]  # R'W^-1 R
    C: Annotated[Floats, "q, q"]  # Cholesky factor of S
    W: Annotated[Floats, "q, q, F"]  # Cholesky factor of I + R D R', its diagonal inverted
    T: Annotated[Floats, "q, r, F"]  # R L
    PL: Annotated[Floats, "r, q, F"]  # (P L)'
    K: Annotated[Floats, "r, r, F"]  # L'P L
    m: Annotated[Floats, "1, r, F"]  # L'e
    u: Annotated[Floats, "1, 4, F"]  # vectors for use at once
    X: Annotated[Floats, "reml * q, q, F"]  # C^-1 P
    Q: Annotated[Floats, "reml * r, r, F"]  # P S^-1 P
    QL: Annotated[Floats, "reml * r, r, F"]  # (Q L)'
    KQ: Annotated[Floats, "reml * r, r, F"]  # L'Q L
    Y: Annotated[Floats, "reml * size, q, q"]  # sum P dD P for each entry of L
    G: Annotated[Floats, "r, r"]  # gradient in D
    D: Annotated[Floats, "r, r"]
    eigenvectors: Annotated[Floats, "r, r"]
    L: Annotated[Floats, "r, r"]
    trial: Annotated[Floats, "r, r"]
    H: Annotated[Floats, "size, size"]  # Hessian in the entries of L
    HC: Annotated[Floats, "size, size"]  # its Cholesky factor
    V: Annotated[Floats, "size, q"]  # sum P dD e for each entry of L
    g: Annotated[Floats, "size"]  # gradient in the entries of L
    step: Annotated[Floats, "size"]
    unit: Annotated[Floats, "size"]  # the scale of each entry of L
    square: Annotated[Floats, "q, q"]
    y: Annotated[Floats, "F + q + 2"]  # the residual model's parameters, as many as it has
    y_old: Annotated[Floats, "F + q + 2"]
    y_best: Annotated[Floats, "F + q + 2"]


RHO, DF, RSS, RAISED = range(4)  # in `Space.totals`

carve, shapes = layout(Work, "buffer")


Measure = Callable[[Space], list[tuple[int, ...]]]


def rooms(F: int, q: int, reml: bool, *measures: Measure) -> list[Floats]:
    """Buffers for families of up to q coefficients, all of them random."""
    ends = _ends(F, q, reml, *measures)
    whole = aligned(ends[-1])
    return [whole[start:end] for start, end in pairwise((0, *ends))]


@cache
def _ends(F: int, q: int, reml: bool, *measures: Measure) -> list[int]:
    nothing = np.empty(0)
    s = Space(
        nothing, nothing, np.empty(0, dtype=np.int64), nothing, nothing, F, q, q, reml, nothing
    )
    sizes = (sum(padded(math.prod(shape)) for shape in measure(s)) for measure in measures)
    return list(accumulate(sizes))


def aligned(size: int) -> Floats:
    """An array that starts where a vector does."""
    whole = np.empty(size + LANES)
    start = -(whole.__array_interface__["data"][0] // whole.itemsize) % LANES
    return whole[start : start + size]


class Result(NamedTuple):
    """What a fit fills, of each of M families; when polishing also squares, those of the last."""

    deviance: Floats  # (M,)
    rank: Integers  # of D, (M,)
    code: Integers  # DEPENDENT + a where column a is, (M,)
    residual: Floats  # the unit of D and of beta's covariance, then the model's own, (F + 1,)
    squares: Floats  # generalised residual squares of each data set, (F,)
    uneven: Floats  # log(mean residual variance x mean precision) / 2, (M,), or (0,) if not wanted


# What the entry point of a residual model is called with, see `optimise`. The fields of a result
# come one by one: numba takes ten microseconds to look at a tuple.
arguments: Any = (
    vector, vector, matrix, cube, integers, integers, integers, integers, vector, numba.boolean,
    matrix, numba.float64, numba.float64, numba.boolean, vector, vector, integers, vector,
    vector, integers, integers, vector, vector, vector,
)  # fmt: skip
