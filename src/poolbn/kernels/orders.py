"""Orders of nodes, and the parents that they leave: a chain over orders, and draws. Compiled.

Sets of parents of n nodes stand one after another, those of node c from start[c] to start[c + 1],
the best first: members[k] are the nodes in one, filled up with -1, and scores[k] its log weight. In
an order, a node has its parents among the nodes before it; the sum of the weights of the sets
that it may have is what the node contributes to the probability of the order.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, entry, integers, jit, matrix, vector

_table = numba.int64[:, ::1]
NEGLIGIBLE = 32.0  # minus the logarithm of the part of a sum that does not matter

MOST = 0.9  # of a sum, that is taken away from it


@jit
def _is_open(members: Integers, k: int, at: Integers, before: int, spare: int) -> bool:
    """Whether all of a set stand before a position, and `spare` is not among them."""
    for i in range(members.shape[1]):
        p = members[k, i]
        if p < 0:
            return True
        if p == spare or at[p] >= before:
            return False
    return True


@jit
def _is_in(members: Integers, k: int, at: Integers, here: int, layers: bool) -> bool:
    """Whether a node at a position may have a set of parents: all stand before it.

    Of layers one must be in the last of these.
    """
    if not _is_open(members, k, at, here, -1):
        return False
    if not layers or here == 0:
        return True
    for i in range(members.shape[1]):
        p = members[k, i]
        if p < 0:
            return False
        if at[p] == here - 1:
            return True
    return False


@jit
def _log_sum(
    start: Integers,
    members: Integers,
    scores: Floats,
    c: int,
    at: Integers,
    before: int,
    spare: int,
) -> float:
    """The log sum of the weights of the sets of c before a position, without `spare`.

    The first set that may be is the best one. All that are so bad that together they do not matter
    are left out.
    """
    top = -np.inf
    limit = -np.inf
    total = 0.0
    last = start[c + 1]
    for k in range(start[c], last):
        if scores[k] < limit:
            break
        if _is_open(members, k, at, before, spare):
            if total == 0.0:
                top = scores[k]
                limit = top - NEGLIGIBLE - math.log(last - start[c])
                total = 1.0
            else:
                total += math.exp(scores[k] - top)
    return top + math.log(total) if total > 0.0 else -np.inf


@jit
def _log_sum_with(
    first: Integers,
    having: Integers,
    members: Integers,
    scores: Floats,
    c: int,
    v: int,
    at: Integers,
    before: int,
    floor: float,
) -> float:
    """The same of the sets with v in them; without those whose score is below the floor."""
    top = -np.inf
    total = 0.0
    pair = c * len(at) + v
    for j in range(first[pair], first[pair + 1]):
        k = having[j]
        if scores[k] < floor:
            break
        if _is_open(members, k, at, before, -1):
            if total == 0.0:
                top = scores[k]
                total = 1.0
            else:
                total += math.exp(scores[k] - top)
    return top + math.log(total) if total > 0.0 else -np.inf


@jit
def log_add(x: float, y: float) -> float:
    """The logarithm of a sum."""
    low, high = min(x, y), max(x, y)
    return high + math.log1p(math.exp(low - high)) if low > -np.inf else high


@entry(integers, _table, vector, integers, vector)
def order_sums(
    start: Integers, members: Integers, scores: Floats, at: Integers, sums: Floats
) -> None:
    """The log sum of each node in an order.

    Args:
        start: see above, (n + 1,).
        members: (M, k).
        scores: (M,).
        at: the position of each node, (n,).
        sums: gets the log sums, (n,).
    """
    for c in range(len(at)):
        sums[c] = _log_sum(start, members, scores, c, at, at[c], -1)


@jit
def place_after(members: Integers, k: int, at: Integers) -> int:
    """The place after the last one with a member of a set."""
    place = 0
    for i in range(members.shape[1]):
        p = members[k, i]
        if p < 0:
            break
        place = max(place, at[p] + 1)
    return place


@jit
def sums_by_place(
    start: Integers,
    members: Integers,
    scores: Floats,
    v: int,
    at: Integers,
    tops: Floats,
    totals: Floats,
) -> None:
    """The sums of the sets of v by the place after each: e^tops times totals."""
    tops[:] = -np.inf
    totals[:] = 0.0
    limit = NEGLIGIBLE + math.log(start[v + 1] - start[v])
    for k in range(start[v], start[v + 1]):
        place = place_after(members, k, at)
        if totals[place] == 0.0:
            tops[place] = scores[k]
            totals[place] = 1.0
        elif scores[k] > tops[place] - limit:
            totals[place] += math.exp(scores[k] - tops[place])


@jit
def drawn(odds: Floats, count: int, best: float, beta: float, uniform: float) -> int:
    """One of so many, from the logarithms of their odds, the best among them; changes these."""
    total = 0.0
    for s in range(count):
        odds[s] = math.exp(beta * (odds[s] - best))
        total += odds[s]
    left = uniform * total
    found = 0
    for s in range(count):
        if odds[s] > 0.0:
            found = s
            left -= odds[s]
            if left < 0.0:
                break
    return found


@jit
def _slots(
    start: Integers,
    members: Integers,
    scores: Floats,
    v: int,
    at: Integers,
    tops: Floats,
    totals: Floats,
) -> None:
    """The log sums of a node that is in no place yet, for each place that it may go to."""
    n = len(tops)
    sums_by_place(start, members, scores, v, at, tops, totals)
    top = -np.inf
    total = 0.0
    for s in range(n):
        if totals[s] > 0.0:
            if tops[s] > top:
                total = total * math.exp(top - tops[s]) + totals[s] if total > 0.0 else totals[s]
                top = tops[s]
            else:
                total += totals[s] * math.exp(tops[s] - top)
        tops[s] = top + math.log(total) if total > 0.0 else -np.inf


@entry(
    integers, _table, vector, integers, integers, integers, integers, vector, numba.float64,
    matrix, matrix, vector, vector, vector,
)  # fmt: skip
def move_nodes(
    start: Integers,
    members: Integers,
    scores: Floats,
    first: Integers,
    having: Integers,
    order: Integers,
    at: Integers,
    sums: Floats,
    beta: float,
    uniforms: Floats,
    other: Floats,
    tops: Floats,
    totals: Floats,
    odds: Floats,
) -> None:
    """Steps of a chain over orders: a node is taken out, and put back anywhere (Gibbs sampling).

    Args:
        start: see above, (n + 1,).
        members: (M, k).
        scores: (M,).
        first: the sets of node c with v in them are from first[c n + v] on, (n^2 + 1,).
        having: those sets, the best of each first.
        order: the nodes; changed, (n,).
        at: the position of each; changed, (n,).
        sums: the log sum of each; changed, (n,).
        beta: the power of the probabilities of orders that the chain has; below 1 they are more
            alike.
        uniforms: between 0 and 1; which node, and where to, (steps, 2).
        other: work space: log sums of other nodes without the node before them, and with, (2, n).
        tops: work space, (n,).
        totals: work space, (n,).
        odds: work space, (n,).
    """
    n = len(order)
    for step in range(uniforms.shape[0]):
        v = min(int(uniforms[step, 0] * n), n - 1)
        old = at[v]
        for i in range(old, n - 1):
            order[i] = order[i + 1]
            at[order[i]] = i
        at[v] = -1  # before all others: it is open to them unless it is spared
        for i in range(n - 1):
            u = order[i]
            floor = sums[u] - NEGLIGIBLE - math.log(start[u + 1] - start[u])
            own = _log_sum_with(first, having, members, scores, u, v, at, i, floor)
            if i < old:
                other[0, i] = sums[u]
                other[1, i] = log_add(sums[u], own)
            else:
                share = math.exp(own - sums[u])
                if share < MOST:
                    other[0, i] = sums[u] + math.log1p(-share)
                else:  # the difference would have few digits
                    other[0, i] = _log_sum(start, members, scores, u, at, i, v)
                other[1, i] = sums[u]
        _slots(start, members, scores, v, at, tops, totals)
        # Places are compared by differences from the first, where all others come after v.
        away = 0.0
        impossible = 0
        for i in range(n - 1):
            if other[1, i] == -np.inf:
                impossible += 1
        best = -np.inf
        for s in range(n):
            odds[s] = away + tops[s] if impossible == 0 else -np.inf
            best = max(best, odds[s])
            if s < n - 1:
                if other[1, s] == -np.inf:
                    impossible -= 1
                    away += other[0, s]
                elif other[0, s] == -np.inf:
                    away = -np.inf
                else:
                    away += other[0, s] - other[1, s]
        new = drawn(odds, n, best, beta, uniforms[step, 1])
        for i in range(n - 1):
            sums[order[i]] = other[0 if i < new else 1, i]
        sums[v] = tops[new]
        for i in range(n - 1, new, -1):
            order[i] = order[i - 1]
            at[order[i]] = i
        order[new] = v
        at[v] = new


@entry(_table, vector, _table, numba.int64, _table, numba.boolean, vector, vector, matrix)
def average_states(
    members: Integers,
    scores: Floats,
    parents: Integers,
    c: int,
    states: Integers,
    layers: bool,
    own: Floats,
    probabilities: Floats,
    arcs: Floats,
) -> None:
    """The probability of each set of parents of a node, given states; and of arcs in each.

    Args:
        members: the sets of the node, (m, k).
        scores: (m,).
        parents: all parents in a set, also those that stand before all others; (m, .).
        c: the node.
        states: positions of nodes, in orders or among layers, (draws, n).
        layers: whether positions are among layers.
        own: work space, (m,).
        probabilities: gets the sums over the states; 0 before, (m,).
        arcs: gets the probability of the arc from each of the N columns, in each state; 0 before,
            (draws, N).
    """
    for d in range(states.shape[0]):
        at = states[d]
        limit = -np.inf
        top = -np.inf
        total = 0.0
        end = 0
        for k in range(len(scores)):
            if scores[k] < limit:
                break
            end = k + 1
            own[k] = 0.0
            if _is_in(members, k, at, at[c], layers):
                if total == 0.0:
                    top = scores[k]
                    limit = top - NEGLIGIBLE - math.log(len(scores))
                own[k] = math.exp(scores[k] - top)
                total += own[k]
        for k in range(end):
            if own[k] > 0.0:
                p = own[k] / total
                probabilities[k] += p
                for i in range(parents.shape[1]):
                    if parents[k, i] < 0:
                        break
                    arcs[d, parents[k, i]] += p


@entry(integers, _table, vector, _table, numba.boolean, matrix, _table)
def draw_parents(
    start: Integers,
    members: Integers,
    scores: Floats,
    states: Integers,
    layers: bool,
    uniforms: Floats,
    chosen: Integers,
) -> None:
    """Parents of each node at random, given states.

    Args:
        start: see above, (n + 1,).
        members: (M, k).
        scores: (M,).
        states: positions of nodes, in orders or among layers, (draws, n).
        layers: whether positions are among layers.
        uniforms: between 0 and 1, (draws, n).
        chosen: gets which sets, (draws, n).
    """
    draws, n = states.shape
    for d in range(draws):
        at = states[d]
        for c in range(n):
            total = 0.0
            top = -np.inf
            for k in range(start[c], start[c + 1]):
                if _is_in(members, k, at, at[c], layers):
                    if total == 0.0:
                        top = scores[k]
                    total += math.exp(scores[k] - top)
            left = uniforms[d, c] * total
            for k in range(start[c], start[c + 1]):
                if _is_in(members, k, at, at[c], layers):
                    chosen[d, c] = k
                    left -= math.exp(scores[k] - top)
                    if left < 0.0:
                        break
