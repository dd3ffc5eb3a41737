"""The moves of a search over directed acyclic graphs: which are possible, and which is best.

Compiled. Arcs are pairs (p, c), p the parent. gain[c, p] is what the score gains when the arc is
added, or, where it is there, removed; where exact[c, p] is false it is only an upper bound.

A large table is not looked at as a whole for each move: reach[c] is an upper bound of what a new
parent of c can gain, and turn[c] of what it can gain to remove or reverse an arc to c. More arcs
only forbid more. So reach[c] is one until the gains of c change or c has fewer descendants; turn[c]
until the gains of c or a parent change, or a parent has fewer ways to other nodes.
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
_pairs = numba.int64[:, ::1]


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
    if what == ADD:
        return not allowed[p, c] or parents[c] >= most or ancestor[c, p]
    if required[p, c]:
        return True
    if what == REMOVE:
        return False
    if not allowed[c, p] or parents[p] >= most:
        return True
    N: int = arcs.shape[0]
    k = 0  # another way from p to c would close a cycle
    while k < N and not (arcs[p, k] and ancestor[k, c]):
        k += 1
    return k < N


@jit
def _visited(
    what: int, p: int, c: int, keys: NDArray[np.uint64], tabu: NDArray[np.uint64], key: np.uint64
) -> bool:
    if tabu.shape[0] == 0:
        return False
    new = key ^ keys[p, c]
    if what == REVERSE:
        new ^= keys[c, p]
    found = False
    for k in range(tabu.shape[0]):
        found |= tabu[k] == new
    return found


@jit
def _next(flags: NDArray[np.bool_], eights: Integers, first: int, N: int) -> int:
    """The first that is set from here on, or N."""
    k = first
    while k < N:
        if k % 8 == 0 and eights[k // 8] == 0:
            k += 8
        elif flags[k]:
            return k
        else:
            k += 1
    return N


@jit
def _of_change(what: int, p: int, c: int, gain: Floats, exact: Flags) -> tuple[float, bool]:
    """What it gains to remove or reverse an arc, and whether that is known exactly."""
    if what == REMOVE:
        return gain[c, p], exact[c, p]
    return gain[c, p] + gain[p, c], exact[c, p] and exact[p, c]


@entry(
    matrix, _flags, vector, vector, _flags, _flags, _pairs, integers, _flags, _flags, _flags,
    numba.int64, numba.uint64[:, ::1], numba.uint64[::1], numba.uint64, numba.float64,
    numba.float64, numba.float64, integers, _pairs, vector, integers, vector,
)  # fmt: skip
def best_move(
    gain: Floats,
    exact: Flags,
    reach: Floats,
    turn: Floats,
    arcs: Flags,
    into: Flags,
    eights: NDArray[np.int64],
    parents: Integers,
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
    seen: Integers,
    cells: NDArray[np.int64],
    bounds: Floats,
    move: Integers,
    best: Floats,
) -> None:
    """The best possible move, or the cells that have to be known exactly first.

    Of moves whose gains are within `tie` of the best the first counts, in bnlearn's order:
    additions, removals, reversals, in each by parent and then by child.

    Args:
        gain: see above, (N, N).
        exact: (N, N).
        reach: see above, (N,); infinite where it is not known.
        turn: likewise, (N,).
        arcs: the graph, (N, N).
        into: the same, by child and then by parent, with room for a multiple of eight parents.
        eights: `into`, eight of them at once: most are not there.
        parents: how many each node has, (N,).
        ancestor: whether the first is an ancestor of the second, (N, N).
        allowed: arcs that may be added, (N, N).
        required: arcs that may not be removed, (N, N).
        most: parents that a node may have.
        keys: a random number for each arc, (N, N), if there are tabu graphs; that of a graph is the
            XOR of its arcs'.
        tabu: numbers of the graphs that must not come again.
        key: the number of the graph.
        floor: gains must be above this.
        tie: see above.
        lost: how far bounds may be above what they bound.
        seen: work space, (N,).
        cells: gets the pairs (p, c) that are not exact and could be part of the best move, those of
            them whose bound is the largest, or less by no more than is lost, (., 2).
        bounds: gets the bounds of moves, on the way to that.
        move: gets kind, parent and child of the best move (kind -1: there is none), and the number
            of cells; if that is not 0, there is no telling yet, (4,).
        best: gets the gain of the best move, (1,).
    """
    N = gain.shape[0]
    top = floor
    # First the best of what is known for sure.
    for c in range(N):
        seen[c] = 0
    while True:
        c = -1
        for k in range(N):
            if seen[k] == 0 and reach[k] > top and (c < 0 or reach[k] > reach[c]):
                c = k
                if reach[k] == np.inf:
                    break
        if c < 0:
            break
        seen[c] = 1
        high = -np.inf
        for p in range(N):
            g = gain[c, p]
            if not g > min(high, top) or p == c or into[c, p]:
                continue
            if _impossible(ADD, p, c, arcs, ancestor, allowed, required, parents, most):
                continue
            high = max(high, g)
            if g > top and exact[c, p] and not _visited(ADD, p, c, keys, tabu, key):
                top = g
        reach[c] = high
    for c in range(N):
        if not turn[c] > top:
            continue
        high = -np.inf
        p = -1
        while True:
            p = _next(into[c], eights[c], p + 1, N)
            if p == N:
                break
            for what in (REMOVE, REVERSE):
                g, sure = _of_change(what, p, c, gain, exact)
                if g > top:  # whether smaller ones are possible is not asked: it takes long
                    if _impossible(what, p, c, arcs, ancestor, allowed, required, parents, most):
                        continue
                    if sure and not _visited(what, p, c, keys, tabu, key):
                        top = g
                high = max(high, g)
        turn[c] = high
    # Then what could still be better; if there is none, the first of the best.
    move[0] = -1
    count = 0
    least = max(top - tie, floor)
    for c in range(N):
        if not reach[c] >= least:
            continue
        for p in range(N):
            g = gain[c, p]
            if not g >= least or not g > floor or p == c or into[c, p]:
                continue
            if exact[c, p]:
                if count > 0 or (move[0] >= 0 and (p, c) > (move[1], move[2])):
                    continue
            elif not g > least:
                continue
            if _visited(ADD, p, c, keys, tabu, key):
                continue
            if _impossible(ADD, p, c, arcs, ancestor, allowed, required, parents, most):
                continue
            if exact[c, p]:
                move[0], move[1], move[2] = ADD, p, c
                best[0] = g
            elif count < len(bounds):
                cells[count, 0], cells[count, 1] = p, c
                bounds[count] = g
                count += 1
    for c in range(N):
        if not turn[c] >= least:
            continue
        p = -1
        while True:
            p = _next(into[c], eights[c], p + 1, N)
            if p == N:
                break
            for what in (REMOVE, REVERSE):
                g, sure = _of_change(what, p, c, gain, exact)
                if not g >= least or not g > floor:
                    continue
                if sure:
                    if count > 0 or (move[0] >= 0 and (what, p, c) > (move[0], move[1], move[2])):
                        continue
                elif not g > least:
                    continue
                if _visited(what, p, c, keys, tabu, key):
                    continue
                if _impossible(what, p, c, arcs, ancestor, allowed, required, parents, most):
                    continue
                if sure:
                    move[0], move[1], move[2] = what, p, c
                    best[0] = g
                    continue
                for a, b in ((p, c), (c, p)):
                    if not exact[b, a] and (what == REVERSE or a == p) and count < len(bounds):
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


@entry(_flags, numba.int64, numba.int64)
def link(ancestor: Flags, p: int, c: int) -> None:
    """Put an arc into the transitive closure: what is above p gets what is below c."""
    for a in range(ancestor.shape[0]):
        if (a == p or ancestor[a, p]) and not ancestor[a, c]:
            for b in range(ancestor.shape[0]):
                ancestor[a, b] |= ancestor[c, b]
            ancestor[a, c] = True


@entry(_flags, _flags, integers, numba.boolean[::1])
def close(arcs: Flags, ancestor: Flags, order: Integers, lost: Flags) -> None:
    """Bring the transitive closure up to date where an arc was removed.

    Args:
        arcs: the graph, (N, N).
        ancestor: whether the first is an ancestor of the second, (N, N).
        order: the nodes whose descendants may be others, each after its own descendants; of them
            the first, and those with a child that has lost some, are looked at.
        lost: becomes true for nodes that have fewer descendants than before, (N,).
    """
    N = arcs.shape[0]
    for k in range(order.shape[0]):
        v = order[k]
        look = k == 0
        for c in range(N):
            look |= arcs[v, c] and lost[c]
        if not look:
            continue
        before, after = 0, 0
        for b in range(N):
            before += ancestor[v, b]
            ancestor[v, b] = False
        for c in range(N):
            if arcs[v, c] and not ancestor[v, c]:
                for b in range(N):
                    ancestor[v, b] |= ancestor[c, b]
                ancestor[v, c] = True
        for b in range(N):
            after += ancestor[v, b]
        lost[v] |= after < before
