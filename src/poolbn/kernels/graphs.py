"""Graphs of a partition, and a chain over them. Compiled; see `kernels.partitions`."""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, entry, integers, jit, matrix, vector
from poolbn.kernels.orders import NEGLIGIBLE, place_after
from poolbn.kernels.partitions import has, log_sum

_table = numba.int64[:, ::1]


@jit
def _drawn(
    start: Integers,
    members: Integers,
    scores: Floats,
    c: int,
    at: Integers,
    layer: int,
    whole: float,
    uniform: float,
) -> int:
    """A set of c at random, of those that give it a layer; `whole` is their log sum."""
    chosen = -1
    for k in range(start[c], start[c + 1]):
        if place_after(members, k, at) == layer:
            chosen = k
            uniform -= math.exp(scores[k] - whole)
            if uniform < 0.0:
                break
    return chosen


@jit
def _meets(members: Integers, k: int, nodes: Integers) -> bool:
    """Whether a set has one of the nodes that are marked."""
    for i in range(members.shape[1]):
        p = members[k, i]
        if p < 0:
            return False
        if nodes[p]:
            return True
    return False


@jit
def _arranged(members: Integers, chosen: Integers, at: Integers) -> None:
    """The layers of a graph."""
    at[:] = 0
    changed = True
    while changed:
        changed = False
        for c in range(len(at)):
            layer = place_after(members, chosen[c], at)
            if layer > at[c]:
                at[c] = layer
                changed = True


@jit
def _below(members: Integers, chosen: Integers, v: int, below: Integers) -> None:
    """Mark a node and its descendants in a graph; nodes with a set of -1 have no parents."""
    below[:] = 0
    below[v] = 1
    changed = True
    while changed:
        changed = False
        for c in range(len(below)):
            if not below[c] and chosen[c] >= 0 and _meets(members, chosen[c], below):
                below[c] = 1
                changed = True


@jit
def _redrawn(
    start: Integers,
    members: Integers,
    scores: Floats,
    c: int,
    needed: int,
    below: Integers,
    uniform: float,
) -> tuple[int, float]:
    """A set of c at random, of those with `needed` and no node below c; and their log sum.

    -1 and -inf where there is none. If `needed` is -1, no node is.
    """
    total = 0.0
    top = limit = -np.inf
    end = start[c + 1]
    for k in range(start[c], start[c + 1]):
        if scores[k] < limit:
            end = k
            break
        if not _meets(members, k, below) and (needed < 0 or has(members, k, needed)):
            if total == 0.0:
                top = scores[k]
                limit = top - NEGLIGIBLE - math.log(start[c + 1] - start[c])
            total += math.exp(scores[k] - top)
    left = uniform * total
    chosen = -1
    for k in range(start[c], end):
        if not _meets(members, k, below) and (needed < 0 or has(members, k, needed)):
            chosen = k
            left -= math.exp(scores[k] - top)
            if left < 0.0:
                break
    return chosen, top + math.log(total) if total > 0.0 else -np.inf


@jit
def _arcs(members: Integers, chosen: Integers) -> int:
    """How many arcs a graph has."""
    count = 0
    for c in range(len(chosen)):
        for i in range(members.shape[1]):
            count += members[chosen[c], i] >= 0
    return count


@jit
def _arc(members: Integers, chosen: Integers, number: int) -> tuple[int, int]:
    """One of the arcs of a graph, parent and child."""
    for c in range(len(chosen)):
        for i in range(members.shape[1]):
            p = members[chosen[c], i]
            if p >= 0:
                if number == 0:
                    return p, c
                number -= 1
    return -1, -1


@jit
def _reversed(
    start: Integers,
    members: Integers,
    scores: Floats,
    chosen: Integers,
    below: Integers,
    uniforms: Floats,
) -> float:
    """Reverse an arc, and draw anew all parents of both nodes (Grzegorczyk and Husmeier 2008).

    The log probability to go there from the graph before; it can be above 0.
    """
    arcs = _arcs(members, chosen)
    if arcs == 0:
        return 0.0
    i, j = _arc(members, chosen, min(int(uniforms[0] * arcs), arcs - 1))
    of_i, of_j = chosen[i], chosen[j]
    chosen[i] = chosen[j] = -1
    _below(members, chosen, j, below)
    _, back = _redrawn(start, members, scores, j, i, below, 0.5)
    _below(members, chosen, i, below)
    new_i, forth = _redrawn(start, members, scores, i, j, below, uniforms[1])
    if new_i < 0:
        chosen[i], chosen[j] = of_i, of_j
        return -np.inf
    chosen[j] = of_j
    _below(members, chosen, i, below)
    _, more = _redrawn(start, members, scores, i, -1, below, 0.5)
    back += more
    chosen[i], chosen[j] = new_i, -1
    _below(members, chosen, j, below)
    new_j, more = _redrawn(start, members, scores, j, -1, below, uniforms[2])
    if new_j < 0:
        chosen[i], chosen[j] = of_i, of_j
        return -np.inf
    chosen[j] = new_j
    forth += more
    log_odds: float = math.log(arcs / _arcs(members, chosen)) + forth - back
    return log_odds


@entry(
    integers, _table, vector, integers, vector, numba.float64, matrix, vector, integers, integers,
    integers, integers, vector,
)  # fmt: skip
def move_in_graphs(
    start: Integers,
    members: Integers,
    scores: Floats,
    at: Integers,
    sums: Floats,
    beta: float,
    uniforms: Floats,
    draws: Floats,
    chosen: Integers,
    before: Integers,
    below: Integers,
    other: Integers,
    other_sums: Floats,
) -> None:
    """Steps of a chain: a graph of the partition is drawn, and changed.

    In turn an arc is reversed, and a node gets other parents, any that are not below it. So all
    graphs can be reached, whatever the constraints, and nodes take those below them along. The
    graph has another partition then, which counts with a power of its probability.

    Args:
        start: see `kernels.orders`, (n + 1,).
        members: (M, k).
        scores: (M,).
        at: the layer of each node; changed, (n,).
        sums: the log sum of each; changed, (n,).
        beta: the power of the probabilities of partitions that the chain has.
        uniforms: between 0 and 1; what to change, to what, and whether to go there, (steps, 4).
        draws: between 0 and 1, for the graph to begin with, (n,).
        chosen: work space: the graph, (n,).
        before: work space: the graph before a step, (n,).
        below: work space, (n,).
        other: work space, (n,).
        other_sums: work space, (n,).
    """
    n = len(at)
    for c in range(n):
        chosen[c] = _drawn(start, members, scores, c, at, at[c], sums[c], draws[c])
    for step in range(uniforms.shape[0]):
        for c in range(n):
            before[c] = chosen[c]
        log_odds = 0.0
        if step % 2 == 0:
            log_odds = _reversed(start, members, scores, chosen, below, uniforms[step])
        else:
            v = min(int(uniforms[step, 0] * n), n - 1)
            _below(members, chosen, v, below)
            chosen[v], _ = _redrawn(start, members, scores, v, -1, below, uniforms[step, 1])
        away = 0.0
        _arranged(members, chosen, other)
        for c in range(n):
            other_sums[c] = log_sum(start, members, scores, c, other, other[c], -1)
            away += other_sums[c] - sums[c]
        if math.log(1.0 - uniforms[step, 3]) < log_odds + (beta - 1.0) * away:
            for c in range(n):
                at[c], sums[c] = other[c], other_sums[c]
        else:
            for c in range(n):
                chosen[c] = before[c]
