"""Partitions of nodes into layers, and a chain over them (Kuipers and Moffa 2017). Compiled.

The first layer of a graph are the nodes without parents; a later one the nodes whose parents are
all in layers before it, one at least in the last of these. So each graph has one partition, where
it can go along many orders. Sets of parents are those of `kernels.orders`: a set gives its node the
layer after the last one with a member, and the sum of the weights of the sets that give a node its
own layer is what it contributes to the probability of the partition.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, entry, integers, jit, matrix, vector
from poolbn.kernels.orders import (
    MOST,
    NEGLIGIBLE,
    drawn,
    log_add,
    place_after,
    sums_by_place,
)

_table = numba.int64[:, ::1]

# What sums there are of another node, if v is taken out:
_WITHOUT = 0  # sets without v that give it its layer,
_LATER = 1  # sets with v of which the other members do,
_ANY = 2  # and sets with v of which the other members give it that layer or one before.


@jit
def has(members: Integers, k: int, v: int) -> bool:
    """Whether a node is in a set."""
    found = False
    for i in range(members.shape[1]):
        found |= members[k, i] == v
    return found and v >= 0  # sets are filled up with -1


@jit
def log_sum(
    start: Integers, members: Integers, scores: Floats, c: int, at: Integers, layer: int, spare: int
) -> float:
    """The log sum of the weights of the sets of c that give it a layer, without `spare`."""
    top = -np.inf
    limit = -np.inf
    total = 0.0
    for k in range(start[c], start[c + 1]):
        if scores[k] < limit:
            break
        if place_after(members, k, at) == layer and not has(members, k, spare):
            if total == 0.0:
                top = scores[k]
                limit = top - NEGLIGIBLE - math.log(start[c + 1] - start[c])
                total = 1.0
            else:
                total += math.exp(scores[k] - top)
    return top + math.log(total) if total > 0.0 else -np.inf


@jit
def _log_sums_with(
    first: Integers,
    having: Integers,
    members: Integers,
    scores: Floats,
    u: int,
    v: int,
    at: Integers,
    parts: Floats,
) -> None:
    """What sums there are of the sets of u with v in them, while v is in no layer."""
    pair = u * len(at) + v
    limit = NEGLIGIBLE + math.log(first[pair + 1] - first[pair] + 1)
    later_top = any_top = -np.inf
    later = whole = 0.0
    for j in range(first[pair], first[pair + 1]):
        k = having[j]
        if scores[k] < later_top - limit:
            break
        layer = place_after(members, k, at)
        if layer <= at[u]:
            if whole == 0.0:
                any_top = scores[k]
            whole += math.exp(scores[k] - any_top)
            if layer == at[u]:
                if later == 0.0:
                    later_top = scores[k]
                later += math.exp(scores[k] - later_top)
    parts[_LATER, u] = later_top + math.log(later) if later > 0.0 else -np.inf
    parts[_ANY, u] = any_top + math.log(whole) if whole > 0.0 else -np.inf


@jit
def _less(x: float, y: float) -> float:
    """The logarithm of a difference; NaN where it would have few digits."""
    share = math.exp(y - x)
    return x + math.log1p(-share) if share < MOST else np.nan


@entry(integers, _table, vector, integers, vector)
def partition_sums(
    start: Integers, members: Integers, scores: Floats, at: Integers, sums: Floats
) -> None:
    """The log sum of each node in a partition.

    Args:
        start: see `kernels.orders`, (n + 1,).
        members: (M, k).
        scores: (M,).
        at: the layer of each node, (n,).
        sums: gets the log sums, (n,).
    """
    for c in range(len(at)):
        sums[c] = log_sum(start, members, scores, c, at, at[c], -1)


@jit
def _layers(
    start: Integers,
    members: Integers,
    scores: Floats,
    v: int,
    at: Integers,
    tops: Floats,
    totals: Floats,
) -> None:
    """The log sums of a node that is in no layer yet, for each layer that it may have."""
    sums_by_place(start, members, scores, v, at, tops, totals)
    for layer in range(len(tops)):
        if totals[layer] > 0.0:
            tops[layer] += math.log(totals[layer])


@jit
def _taken_out(at: Integers, v: int) -> tuple[int, bool]:
    """Take a node out of its layer; which one that was, and whether it is there no more."""
    old = at[v]
    at[v] = -1
    alone = True
    for u in range(len(at)):
        alone = alone and at[u] != old
    if alone:
        for u in range(len(at)):
            if at[u] > old:
                at[u] -= 1
    return old, alone


@jit
def _of(parts: Floats, u: int, layer: int, j: int, own: bool) -> float:
    """The log sum of u in its layer, if v comes into layer j, or into one of its own before j."""
    without, later, any_ = parts[_WITHOUT, u], parts[_LATER, u], parts[_ANY, u]
    found: float = without
    if own and layer == j:
        found = any_
    elif not own and layer == j + 1:
        found = log_add(without, any_)
    elif layer > j:
        found = log_add(without, later)
    return found


@entry(
    integers, _table, vector, integers, integers, integers, vector, numba.float64, matrix, matrix,
    matrix, vector, vector, vector,
)  # fmt: skip
def move_between_layers(
    start: Integers,
    members: Integers,
    scores: Floats,
    first: Integers,
    having: Integers,
    at: Integers,
    sums: Floats,
    beta: float,
    uniforms: Floats,
    parts: Floats,
    along: Floats,
    tops: Floats,
    totals: Floats,
    odds: Floats,
) -> None:
    """Steps of a chain: a node is taken out, and put into any layer or a new one (Gibbs sampling).

    Args:
        start: see `kernels.orders`, (n + 1,).
        members: (M, k).
        scores: (M,).
        first: the sets of node c with v in them are from first[c n + v] on, (n^2 + 1,).
        having: those sets, the best of each first.
        at: the layer of each node; changed, (n,).
        sums: the log sum of each; changed, (n,).
        beta: the power of the probabilities of partitions that the chain has; below 1 they are more
            alike.
        uniforms: between 0 and 1; which node, and where to, (steps, 2).
        parts: work space: sums of other nodes, (3, n).
        along: work space: sums over the nodes of each layer, (4, n + 2).
        tops: work space, (n,).
        totals: work space, (n,).
        odds: work space, (2 n,).
    """
    n = len(at)
    for step in range(uniforms.shape[0]):
        v = min(int(uniforms[step, 0] * n), n - 1)
        old, alone = _taken_out(at, v)
        m = 0
        along[:] = 0.0
        for u in range(n):
            if u == v:
                continue
            layer = at[u]
            m = max(m, layer + 1)
            _log_sums_with(first, having, members, scores, u, v, at, parts)
            without = sums[u]
            if alone and layer == old:
                without = np.nan
            elif not alone and layer == old + 1:
                without = _less(without, parts[_ANY, u])
            elif layer > old:
                without = _less(without, parts[_LATER, u])
            if math.isnan(without):
                without = log_sum(start, members, scores, u, at, layer, v)
            parts[_WITHOUT, u] = without
            along[0, layer] += without
            along[1, layer] += parts[_ANY, u]
            along[2, layer] += log_add(without, parts[_ANY, u])
            along[3, layer] += log_add(without, parts[_LATER, u])
        _layers(start, members, scores, v, at, tops, totals)
        # Of all nodes in layers from one on, if v is before them.
        for layer in range(m - 1, -1, -1):
            along[3, layer] += along[3, layer + 1]
        before = 0.0  # of all nodes in layers up to one, if v is not
        best = -np.inf
        for layer in range(m + 1):  # a layer of its own before it, or the layer itself
            here = tops[layer] + before
            odds[2 * layer] = here + along[1, layer] + along[3, layer + 1] if layer < m else here
            best = max(best, odds[2 * layer])
            if layer < m:
                before += along[0, layer]
                odds[2 * layer + 1] = tops[layer] + before
                if layer + 1 < m:
                    odds[2 * layer + 1] += along[2, layer + 1] + along[3, layer + 2]
                best = max(best, odds[2 * layer + 1])
        new = drawn(odds, 2 * m + 1, best, beta, uniforms[step, 1])
        j, own = new // 2, new % 2 == 0
        for u in range(n):
            if u != v:
                sums[u] = _of(parts, u, at[u], j, own)
                if own and at[u] >= j:
                    at[u] += 1
        at[v] = j
        sums[v] = tops[j]
