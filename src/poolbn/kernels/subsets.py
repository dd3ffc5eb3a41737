"""Sums over all orders and over all acyclic graphs of N nodes, by subsets. Compiled.

Sets of nodes are bit masks; those of the parents of node c are without its bit. With w_c(T) the
weight of the parents T of c, exp(score):

- a_c(S), the sum of w_c(T) over T in S;
- f(S), the sum over all orders, or all graphs, of the nodes in S, which have parents in S;
- b(S), the sum over all orders, or all graphs, of the other nodes, which have parents anywhere.

All are held as logarithms, and summed as multiples of something at least about as large, so that
nothing overflows, and what underflows does not count.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, entry, integers, jit, matrix, vector

Masks = NDArray[np.int64]

_table = numba.int64[:, ::1]


@jit
def _without(mask: int, c: int) -> int:
    """The mask with bit c taken out."""
    low = (1 << c) - 1
    return (mask & low) | ((mask >> 1) & ~low)


@jit
def _with(mask: int, c: int) -> int:
    """The mask with a bit of 1 put in at c."""
    low = (1 << c) - 1
    return (mask & low) | ((mask & ~low) << 1) | (1 << c)


@jit
def _raised(x: float) -> float:
    """The exponential of a difference of logarithms; that of two zeros is 0."""
    return math.exp(x) if x > -745.0 else 0.0


@entry(integers, vector, vector, vector)
def sums_below(masks: Masks, scores: Floats, best: Floats, sums: Floats) -> None:
    """The logarithm of a(S) for each S (Koivisto and Sood's alpha, by the fast zeta transform).

    Args:
        masks: parents T of one child, in any order; one may be there more than once, (M,).
        scores: log w(T), (M,).
        best: work space, (2^m,).
        sums: gets log a(S), (2^m,).
    """
    size = len(best)
    best[:] = -np.inf
    sums[:] = 0.0
    for k in range(len(masks)):
        best[masks[k]] = max(best[masks[k]], scores[k])
    bit = 1
    while bit < size:
        for S in range(size):
            if S & bit:
                best[S] = max(best[S], best[S ^ bit])
        bit <<= 1
    for k in range(len(masks)):
        if scores[k] > -np.inf:
            sums[masks[k]] += _raised(scores[k] - best[masks[k]])
    bit = 1
    while bit < size:
        for S in range(size):
            if S & bit:
                below = sums[S ^ bit]
                if below > 0.0:
                    if best[S] == best[S ^ bit]:
                        sums[S] += below
                    else:
                        sums[S] += below * _raised(best[S ^ bit] - best[S])
        bit <<= 1
    for S in range(size):
        sums[S] = best[S] + math.log(sums[S]) if sums[S] > 0.0 else -np.inf


@entry(vector, vector)
def sums_above(a: Floats, y: Floats) -> None:
    """The transpose of `sums_below`: y(S) = a(S) g(S) becomes a(T) times a sum of g.

    The sum is over all S that contain T.

    Args:
        a: log a(S), (2^m,).
        y: (2^m,); changed.
    """
    size = len(a)
    bit = 1
    while bit < size:
        for S in range(size):
            if not S & bit:
                above = y[S | bit]
                if above != 0.0 and a[S] > -np.inf:
                    y[S] += above * _raised(a[S] - a[S | bit])
        bit <<= 1


@entry(matrix, vector)
def orders_before(a: Floats, f: Floats) -> None:
    """f(S) of orders: the last node of S comes after all others.

    Args:
        a: log a_c(S), (N, 2^(N - 1)).
        f: gets log f(S), (2^N,).
    """
    N = a.shape[0]
    f[0] = 0.0
    for S in range(1, len(f)):
        top = -np.inf
        for c in range(N):
            if S >> c & 1:
                top = max(top, f[S ^ (1 << c)] + a[c, _without(S ^ (1 << c), c)])
        total = 0.0
        if top > -np.inf:
            for c in range(N):
                if S >> c & 1:
                    total += _raised(f[S ^ (1 << c)] + a[c, _without(S ^ (1 << c), c)] - top)
        f[S] = top + math.log(total) if total > 0.0 else -np.inf


@entry(matrix, vector)
def orders_after(a: Floats, b: Floats) -> None:
    """b(S) of orders: one of the other nodes comes next.

    Args:
        a: log a_c(S), (N, 2^(N - 1)).
        b: gets log b(S), (2^N,).
    """
    N = a.shape[0]
    b[len(b) - 1] = 0.0
    for S in range(len(b) - 2, -1, -1):
        top = -np.inf
        for c in range(N):
            if not S >> c & 1:
                top = max(top, b[S | (1 << c)] + a[c, _without(S, c)])
        total = 0.0
        if top > -np.inf:
            for c in range(N):
                if not S >> c & 1:
                    total += _raised(b[S | (1 << c)] + a[c, _without(S, c)] - top)
        b[S] = top + math.log(total) if total > 0.0 else -np.inf


@entry(matrix, vector, vector, numba.int64, vector)
def before_one(a: Floats, f: Floats, b: Floats, c: int, y: Floats) -> None:
    """The probability that the nodes before c are those in S, over orders.

    Args:
        a: log a_c(S), (N, 2^(N - 1)).
        f: log f(S), (2^N,).
        b: log b(S), (2^N,).
        c: the node.
        y: gets the probabilities, (2^(N - 1),).
    """
    all_ = f[len(f) - 1]
    for S in range(len(y)):
        after = _with(S, c)
        y[S] = _raised(f[after ^ (1 << c)] + a[c, S] + b[after] - all_)


@jit
def _products(a: Floats, U: int, products: Floats) -> int:
    """Logarithms of the products of a_c(U) over all sets of other nodes; how many others.

    The sets are numbered by bits of their own: bit k is the k-th of the nodes that are not in U.
    """
    N = a.shape[0]
    m = 0
    products[0] = 0.0
    for c in range(N):
        if not U >> c & 1:
            own = a[c, _without(U, c)]
            for T in range(1 << m):
                products[T | (1 << m)] = products[T] + own
            m += 1
    return m


@jit
def _positions(U: int, N: int, masks: Masks) -> None:
    """The masks of those sets."""
    m = 0
    masks[0] = 0
    for c in range(N):
        if not U >> c & 1:
            for T in range(1 << m):
                masks[T | (1 << m)] = masks[T] | (1 << c)
            m += 1


@jit
def _sign(T: int) -> float:
    """1 for sets of an odd number of nodes, -1 for others."""
    odd = -1.0
    while T:
        T &= T - 1
        odd = -odd
    return odd


@entry(matrix, vector, vector, vector, integers)
def graphs_before(a: Floats, scale: Floats, f: Floats, products: Floats, masks: Masks) -> None:
    """f(S) of graphs, by inclusion and exclusion over sets T of sinks (Tian and He 2009).

    f(S) is the sum over T in S, not empty, of (-1)^(|T| + 1) f(S - T) times the product of
    a_c(S - T) over c in T. Each term is the weight of some graphs of f(S), so that little is lost
    in the difference: with N nodes no more than N bits.

    Args:
        a: log a_c(S), (N, 2^(N - 1)).
        scale: log f(S) of orders, which count each graph at least once, (2^N,).
        f: gets f(S) / exp(scale), (2^N,).
        products: work space, (2^N,).
        masks: work space, (2^N,).
    """
    N = a.shape[0]
    f[:] = 0.0
    f[0] = 1.0
    for U in range(len(f)):
        if f[U] <= 0.0:  # no graph, but for rounding
            f[U] = 0.0
            continue
        m = _products(a, U, products)
        _positions(U, N, masks)
        for T in range(1, 1 << m):
            S = U | masks[T]
            if products[T] > -np.inf:
                f[S] += _sign(T) * f[U] * _raised(scale[U] + products[T] - scale[S])


@entry(matrix, vector, vector, vector, integers)
def graphs_after(a: Floats, scale: Floats, b: Floats, products: Floats, masks: Masks) -> None:
    """b(S) of graphs, the derivative of f of all nodes by f(S).

    Args:
        a: log a_c(S), (N, 2^(N - 1)).
        scale: log b(S) of orders, (2^N,).
        b: gets b(S) / exp(scale), (2^N,).
        products: work space, (2^N,).
        masks: work space, (2^N,).
    """
    N = a.shape[0]
    b[:] = 0.0
    b[len(b) - 1] = 1.0
    for U in range(len(b) - 2, -1, -1):
        m = _products(a, U, products)
        _positions(U, N, masks)
        total = 0.0
        for T in range(1, 1 << m):
            S = U | masks[T]
            if products[T] > -np.inf and b[S] > 0.0:
                total += _sign(T) * b[S] * _raised(scale[S] + products[T] - scale[U])
        b[U] = max(total, 0.0)


@entry(matrix, vector, vector, vector, vector, vector, integers, numba.int64, numba.int64, matrix)
def graphs_at(
    a: Floats,
    before: Floats,
    after: Floats,
    f: Floats,
    b: Floats,
    products: Floats,
    masks: Masks,
    first: int,
    step: int,
    y: Floats,
) -> None:
    """a_c(U) times the derivative by a_c(U) of the logarithm of the sum over graphs.

    Args:
        a: log a_c(S), (N, 2^(N - 1)).
        before: the scale of f, (2^N,).
        after: the scale of b, (2^N,).
        f: f(S), scaled, (2^N,).
        b: b(S), scaled, (2^N,).
        products: work space, (2^N,).
        masks: work space, (2^N,).
        first: of the sets U that are looked at; no two have results in common.
        step: from one to the next.
        y: gets the derivatives, which can be negative; 0 before, (N, 2^(N - 1)).
    """
    N = a.shape[0]
    last = len(f) - 1
    for U in range(first, last, step):
        if f[U] <= 0.0:
            continue
        m = _products(a, U, products)
        _positions(U, N, masks)
        part = f[U] / f[last]
        for T in range(1, 1 << m):
            S = U | masks[T]
            if products[T] > -np.inf and b[S] > 0.0:
                away = before[U] + products[T] + after[S] - before[last]
                term = _sign(T) * part * b[S] * _raised(away)
                if term != 0.0:
                    for c in range(N):
                        if masks[T] >> c & 1:
                            y[c, _without(U, c)] += term


@entry(matrix, vector, numba.int64, numba.int64, vector, integers)
def next_layers(a: Floats, b: Floats, U: int, R: int, weights: Floats, masks: Masks) -> None:
    """How probable each set of nodes is as the next layer of a graph (Kuipers and Moffa 2017).

    The first layer are the nodes without parents; a later one the nodes whose parents are all in
    layers before it, one at least in the last of these. So with U all layers so far and R the last
    one, the weight of the layer I is the product over c in I of a_c(U) - a_c(U - R), times the sum
    over graphs of the other nodes of which none has all its parents in U. That sum is one of signed
    b(S) over S that contain U and I, as in `graphs_before`.

    Args:
        a: log a_c(S), (N, 2^(N - 1)).
        b: log b(S) of graphs, (2^N,).
        U: all layers so far.
        R: the last one; 0 if there is none.
        weights: gets those of the sets of other nodes, in an order of their own, (2^N,).
        masks: gets the sets, (2^N,).
    """
    N = a.shape[0]
    m = _products(a, U, weights)
    _positions(U, N, masks)
    size = 1 << m
    top = -np.inf
    for T in range(size):
        weights[T] += b[U | masks[T]]
        top = max(top, weights[T])
    for T in range(size):
        weights[T] = _raised(weights[T] - top)
    bit = 1
    while bit < size:
        for T in range(size):
            if not T & bit:
                weights[T] -= weights[T | bit]
        bit <<= 1
    weights[0] = 0.0
    for T in range(1, size):
        weights[T] = max(weights[T], 0.0)
    if R == 0:
        return
    k = 0
    for c in range(N):
        if not U >> c & 1:
            own, less = a[c, _without(U, c)], a[c, _without(U & ~R, c)]
            share = 1.0 - _raised(less - own) if own > -np.inf else 0.0
            for T in range(size):
                if T >> k & 1:
                    weights[T] *= share
            k += 1


@entry(integers, integers, vector, _table, _table, matrix, _table)
def draw_in_layers(
    start: Integers,
    sets: Masks,
    scores: Floats,
    before: Integers,
    last: Integers,
    uniforms: Floats,
    chosen: Integers,
) -> None:
    """Parents of each node at random, given layers.

    Args:
        start: the sets of node c are from start[c] to start[c + 1], (N + 1,).
        sets: as masks, (M,).
        scores: log w, those of a node from the best, (M,).
        before: all layers before that of the node, (draws, N).
        last: the last one of these, of which one at least is a parent; 0 for none, (draws, N).
        uniforms: between 0 and 1, (draws, N).
        chosen: gets which sets, (draws, N).
    """
    draws, N = before.shape
    for d in range(draws):
        for c in range(N):
            U, R = before[d, c], last[d, c]
            top = -np.inf
            total = 0.0
            for k in range(start[c], start[c + 1]):
                if (sets[k] & ~U) == 0 and (R == 0 or sets[k] & R):
                    top = max(top, scores[k])
                    total += math.exp(scores[k] - top)
            left = uniforms[d, c] * total
            for k in range(start[c], start[c + 1]):
                if (sets[k] & ~U) == 0 and (R == 0 or sets[k] & R):
                    chosen[d, c] = k
                    left -= math.exp(scores[k] - top)
                    if left < 0.0:
                        break


@entry(matrix, vector, matrix, _table)
def draw_orders(a: Floats, f: Floats, uniforms: Floats, orders: Integers) -> None:
    """Orders at random, the last node first.

    Args:
        a: log a_c(S), (N, 2^(N - 1)).
        f: log f(S) of orders, (2^N,).
        uniforms: between 0 and 1, (draws, N).
        orders: gets the nodes, the first one first, (draws, N).
    """
    N = a.shape[0]
    for d in range(orders.shape[0]):
        S = (1 << N) - 1
        for k in range(N - 1, -1, -1):
            left = uniforms[d, k]
            chosen = -1
            for c in range(N):
                if S >> c & 1:
                    rest = S ^ (1 << c)
                    p = _raised(f[rest] + a[c, _without(rest, c)] - f[S])
                    if p > 0.0:
                        chosen = c
                        left -= p
                        if left < 0.0:
                            break
            orders[d, k] = chosen
            S ^= 1 << chosen
