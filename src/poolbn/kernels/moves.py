"""The moves of a search over directed acyclic graphs: which are possible, and which is best.

Compiled. Arcs are pairs (p, c), p the parent. gain[p, c] is what the score gains when the arc is
added, or, where it is there, removed; where exact[p, c] is false it is only an upper bound.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, entry, integers, jit, matrix, vector

Flags = NDArray[np.bool_]

ADD, REMOVE, REVERSE = 0, 1, 2

_flags = numba.boolean[:, ::1]


@jit
def _impossible(
    what: int,
    p: int,
    c: int,
    arcs: Flags,
    ancestor: Flags,
    allowed: Flags,
    required: Flags,
    parents: Integers,
    most: int,
) -> bool:
    if what == 0:
        return not allowed[p, c] or parents[c] >= most or ancestor[c, p]
    if required[p, c]:
        return True
    if what == 1:
        return False
    if not allowed[c, p] or parents[p] >= most:
        return True
    another = False  # another way from p to c would close a cycle
    for k in range(arcs.shape[0]):
        another |= arcs[p, k] and ancestor[k, c]
    return another


@jit
def _contains(tabu: NDArray[np.uint64], key: np.uint64) -> bool:
    found = False
    for k in range(tabu.shape[0]):
        found |= tabu[k] == key
    return found


@entry(
    matrix, _flags, _flags, integers, integers, _flags, _flags, _flags, numba.int64,
    numba.uint64[:, ::1], numba.uint64[::1], numba.uint64, numba.float64, numba.float64,
    numba.float64, numba.int64[:, ::1], vector, integers, vector,
)  # fmt: skip
def best_move(
    gain: Floats,
    exact: Flags,
    arcs: Flags,
    parents: Integers,
    children: Integers,
    ancestor: Flags,
    allowed: Flags,
    required: Flags,
    most: int,
    keys: NDArray[np.uint64],
    tabu: NDArray[np.uint64],
    key: np.uint64,
    floor: float,
    tie: float,
    lost: float,
    cells: NDArray[np.int64],
    bounds: Floats,
    move: Integers,
    best: Floats,
) -> None:
    """The best possible move, or the cells that have to be known exactly first.

    Moves are looked at as bnlearn does: additions, removals, reversals, in each by parent and then
    by child. Of moves whose gains are within `tie` of the best the first counts.

    Args:
        gain: see above, (N, N).
        exact: (N, N).
        arcs: the graph, (N, N).
        parents: how many each node has, (N,).
        children: how many each node has, (N,).
        ancestor: whether the first is an ancestor of the second, (N, N).
        allowed: arcs that may be added, (N, N).
        required: arcs that may not be removed, (N, N).
        most: parents that a node may have.
        keys: a random number for each arc, (N, N); that of a graph is the XOR of its arcs'.
        tabu: numbers of the graphs that must not come again.
        key: the number of the graph.
        floor: gains must be above this.
        tie: see above.
        lost: how far bounds may be above what they bound.
        cells: gets the pairs that are not exact and could be part of the best move, those of them
            whose bound is the largest, or less by no more than is lost, (., 2).
        bounds: gets the bounds of moves, on the way to that.
        move: gets kind, parent and child of the best move (kind -1: there is none), and the number
            of cells; if that is not 0, there is no telling yet, (4,).
        best: gets the gain of the best move, (1,).
    """
    N = gain.shape[0]
    top = floor
    move[0] = -1
    count = 0
    # First what is known for sure; then what could still be better; then the first of the best.
    for turn in range(3):
        if turn == 2 and count > 0:
            break
        least = top if turn == 0 else max(top - tie, floor)
        for what in range(3):
            for p in range(N):
                if what > 0 and children[p] == 0:
                    continue
                for c in range(N):
                    g = gain[p, c]
                    if what == 0 and not g >= least:  # nearly all cells of a large table
                        continue
                    if p == c or arcs[p, c] != (what > 0):
                        continue
                    sure = exact[p, c]
                    if what == 2:
                        g += gain[c, p]
                        sure = sure and exact[c, p]
                    if turn == 0 and not (sure and g > top):
                        continue
                    if turn == 1 and (sure or not g > max(top - tie, floor)):
                        continue
                    if turn == 2 and not (sure and g >= top - tie and g > floor):
                        continue
                    new = key ^ keys[p, c]
                    if what == 2:
                        new ^= keys[c, p]
                    if _impossible(what, p, c, arcs, ancestor, allowed, required, parents, most):
                        continue
                    if _contains(tabu, new):
                        continue
                    if turn == 0:
                        top = g
                    elif turn == 2:
                        move[0], move[1], move[2], move[3] = what, p, c, 0
                        best[0] = g
                        return
                    else:
                        for a, b in ((p, c), (c, p)):
                            if not exact[a, b] and (what == 2 or a == p) and count < len(bounds):
                                cells[count, 0], cells[count, 1] = a, b
                                bounds[count] = g
                                count += 1
    top = -np.inf
    for k in range(count):
        top = max(top, bounds[k])
    kept = 0
    for k in range(count):
        if bounds[k] >= top - lost:
            cells[kept, 0], cells[kept, 1] = cells[k, 0], cells[k, 1]
            kept += 1
    move[3] = kept


@entry(_flags, _flags, integers, integers)
def close(arcs: Flags, ancestor: Flags, left: Integers, order: Integers) -> None:
    """The transitive closure of a graph, its nodes taken when all their parents were.

    Args:
        arcs: the graph, (N, N).
        ancestor: gets whether the first is an ancestor of the second, (N, N); false before. Nodes
            on a cycle, and below it, become ancestors of themselves.
        left: the number of parents of each node, which falls on the way, (N,).
        order: work space, (N,).
    """
    N = arcs.shape[0]
    known = 0
    for v in range(N):
        if left[v] == 0:
            order[known] = v
            known += 1
    taken = 0
    while taken < known:
        p = order[taken]
        taken += 1
        for c in range(N):
            if arcs[p, c]:
                for a in range(N):
                    ancestor[a, c] |= ancestor[a, p]
                ancestor[p, c] = True
                left[c] -= 1
                if left[c] == 0:
                    order[known] = c
                    known += 1
    for v in range(N):
        if left[v] > 0:
            ancestor[v, v] = True
