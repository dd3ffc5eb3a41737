"""All changes of a node's parents by one column, for the mixed-effects model. Compiled.

For most columns one more parent is hopeless, which `screens` tells without a fit or a bound. Others
have bounds, and those are fitted that may be the best change.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from poolbn.constants import CONVERGED
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cube, entry, integers, jit, matrix, vector
from poolbn.kernels.optimise import FRESH
from poolbn.kernels.screens import screen
from poolbn.kernels.shared import fit_one
from poolbn.kernels.work import Space

Flags = NDArray[np.bool_]
_flags = numba.boolean[::1]
_table = numba.boolean[:, ::1]


@jit
def _toggle(parents: Integers, x: int, ranks: Integers, others: Integers) -> int:
    """Parents with one more, or less if it is there, in the order of their ranks; how many."""
    count = 0
    there = False
    placed = False
    for k in range(parents.shape[0]):
        if parents[k] == x:
            there = True
            continue
        if not placed and not there and ranks[parents[k]] > ranks[x]:
            others[count] = x
            count += 1
            placed = True
        others[count] = parents[k]
        count += 1
    if not placed and not there:
        others[count] = x
        count += 1
    return count


@entry(
    vector, matrix, cube, matrix, integers, integers, integers, integers, integers, _flags,
    _table, matrix, numba.float64, numba.float64, cube, vector, numba.float64,
    numba.float64, numba.float64, vector, integers, integers, vector, matrix, matrix, matrix,
    matrix, matrix, _table,
)  # fmt: skip
def look(
    n: Floats,
    mean: Floats,
    scatter: Floats,
    squares: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    without: Integers,
    ranks: Integers,
    vary: Flags,
    wanted: Flags,
    starts: Floats,
    near: float,
    tolerance: float,
    charges: Floats,
    units: Floats,
    more: float,
    own: float,
    loss: float,
    buffer: Floats,
    perm: Integers,
    others: Integers,
    totals: Floats,
    R: Floats,
    L: Floats,
    M: Floats,
    falls: Floats,
    values: Floats,
    exact: Flags,
) -> None:
    """The score of each node, and upper bounds with each change of its parents by one column.

    The best change is known exactly, if it raises the score; so are others on the way to it.
    Scores are log-likelihoods minus charges.

    Args:
        n: rows, (F,).
        mean: (F, N).
        scatter: (F, N, N).
        squares: its diagonals, (F, N).
        children: (M,).
        offsets: (M + 1,).
        parents: parents[offsets[m] : offsets[m + 1]] are those of children[m], by rank.
        without: the last of these have slopes that do not vary, (M,).
        ranks: the order of parents, (N,).
        vary: whether the slope of a column varies, (N,).
        wanted: columns to look at, (M, N).
        starts: see `optimise`.
        near: likewise.
        tolerance: likewise.
        charges: of a parent less, as many and one more, and slopes that vary likewise, (M, 3, 3).
        units: what those of the data add to deviances, (M,).
        more: a column is left out where `more` times what small steps gain is less than its charge,
        own: and what the data sets' own slopes gain, beyond chance, is less than this part of it.
        loss: what is put down for columns that are left out; 0 where none is to be.
        buffer: work space of families of up to q + 1 coefficients.
        perm: likewise, (q + 1,).
        others: likewise, (q + 1,).
        totals: likewise, (4,).
        R: likewise, (q, q).
        L: likewise, (q, q).
        M: likewise, see `screens.room`.
        falls: likewise, (2, N).
        values: gets the bounds, -inf where not wanted; the score at the child itself, (M, N).
        exact: gets whether these are scores, (M, N).
    """
    F, N = mean.shape
    nothing = buffer[:0]
    for m in range(children.shape[0]):
        child = children[m]
        pa = parents[offsets[m] : offsets[m + 1]]
        q = pa.shape[0] + 1
        s = Space(buffer, nothing, perm, n, totals, F, q, q - without[m], False, n)
        deviance, rank, code = fit_one(
            s, mean, scatter, child, pa, 0.0, starts, near, tolerance, False, FRESH, 0
        )
        score = -0.5 * (deviance + units[m]) - charges[m, 1, 1]
        screened = loss > 0.0 and code == CONVERGED and without[m] == 0
        if screened:
            screen(s, mean, scatter, squares, child, pa, rank, R, L, M, falls)
        cost = 2.0 * (charges[m, 2, 2] - charges[m, 1, 1])
        for x in range(N):
            values[m, x] = -np.inf
            exact[m, x] = not wanted[m, x] or x == child
            if exact[m, x]:
                continue
            count = _toggle(pa, x, ranks, others)
            step = 1 if count == q else -1
            small = more * falls[0, x] < cost and falls[1, x] - F < own * cost
            if screened and vary[x] and step > 0 and small:
                values[m, x] = score - loss
                continue
            s = Space(buffer, nothing, perm, n, totals, F, count + 1, count + 1, False, n)
            least, _, _ = fit_one(  # a bound: there are no starts
                s,
                mean,
                scatter,
                child,
                others[:count],
                0.0,
                starts[:0],
                near,
                tolerance,
                False,
                FRESH,
                0,
            )
            values[m, x] = -0.5 * (least + units[m])
            values[m, x] -= charges[m, 1 + step, 1 + step if vary[x] else 1]
        values[m, child] = score
        while True:
            x = child
            for i in range(N):
                if values[m, i] > values[m, x]:
                    x = i
            if exact[m, x]:
                break
            count = _toggle(pa, x, ranks, others)
            step = 1 if count == q else -1
            fixed = without[m] + (0 if vary[x] else step)
            s = Space(buffer, nothing, perm, n, totals, F, count + 1, count + 1 - fixed, False, n)
            deviance, rank, code = fit_one(
                s,
                mean,
                scatter,
                child,
                others[:count],
                0.0,
                starts,
                near,
                tolerance,
                False,
                FRESH,
                0,
            )
            values[m, x] = -0.5 * (deviance + units[m])
            values[m, x] -= charges[m, 1 + step, 1 + step if vary[x] else 1]
            exact[m, x] = True
