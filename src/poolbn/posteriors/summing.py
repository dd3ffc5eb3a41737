"""Exact probabilities of sets of parents, over all orders (Koivisto and Sood 2004) or all graphs.

Over orders: an order of the nodes and a graph that goes along it are one of all such pairs, each as
probable as any other a priori. So the prior of a graph is proportional to the number of orders that
it goes along. Over graphs (Tian and He 2009): each acyclic graph is as probable as any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from poolbn.posteriors.families import Families, bits
from poolbn.run.compiling import kernels
from poolbn.run.parallel import available_cores, map_threads

Prior = Literal["orders", "dags"]
# Nodes that can be on a cycle together: 20 take 200 MB, 17 some 15 s.
MOST: dict[Prior, int] = {"orders": 20, "dags": 17}

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Summed:
    """Sums over all orders or graphs of some nodes.

    Attributes:
        families: the nodes, their sets of parents, and scores.
        probabilities: of each set, (M,).
        prior: over what the sums are.
        table: log sums over orders of the nodes in each set, or over graphs of the others, (2^n,).
    """

    families: Families
    probabilities: Floats
    prior: Prior
    table: Floats

    def draw(self, draws: int, rng: np.random.Generator) -> Integers:
        """Graphs, independent of each other: which of the sets each node has, (draws, n).

        Orders come out of the sums backwards, and sets of parents along them. Graphs of a uniform
        prior come out layer by layer.
        """
        a = _below(self.families)
        if self.prior == "dags":
            return _in_layers(self.families, a, self.table, draws, rng)
        orders = np.empty((draws, len(a)), dtype=np.int64)
        kernels("subsets").draw_orders(a, self.table, rng.random(orders.shape), orders)
        return parents_along(self.families, orders.argsort(axis=1), rng)


def parents_along(
    families: Families, at: Integers, rng: np.random.Generator, *, layers: bool = False
) -> Integers:
    """Sets of parents at random, for each node in each state, (draws, n).

    Args:
        families: of the nodes.
        at: positions of the nodes, in orders or among layers, (draws, n).
        rng: random numbers.
        layers: whether a node must have a parent in the last layer before its own.
    """
    chosen = np.empty(at.shape, dtype=np.int64)
    own = (families.start, families.members, families.scores)
    kernels("orders").draw_parents(*own, at, layers, rng.random(at.shape), chosen)
    return chosen


def _in_layers(
    families: Families, a: Floats, b: Floats, draws: int, rng: np.random.Generator
) -> Integers:
    """Sets of parents of graphs that are drawn layer by layer, (draws, n)."""
    kernel, n = kernels("subsets"), len(a)
    weights, masks = np.empty(2**n), np.empty(2**n, dtype=np.int64)
    before, last = np.zeros((2, draws, n), dtype=np.int64)
    now = np.zeros((draws, 2), dtype=np.int64)  # all layers so far, and the last one
    while (going := np.flatnonzero(now[:, 0] != 2**n - 1)).size:
        uniforms = rng.random(draws)
        states, of = np.unique(now[going], axis=0, return_inverse=True)
        for k, (U, R) in enumerate(states.tolist()):
            mine = going[of.ravel() == k]
            kernel.next_layers(a, b, U, R, weights, masks)
            ends = np.cumsum(weights[: 2 ** (n - U.bit_count())])
            layer = masks[np.searchsorted(ends, uniforms[mine] * ends[-1], side="right")]
            inside = (layer[:, None] >> np.arange(n) & 1).astype(bool)
            before[mine] = np.where(inside, U, before[mine])
            last[mine] = np.where(inside, R, last[mine])
            now[mine] = np.stack([layer | U, layer], axis=1)
    chosen = np.empty((draws, n), dtype=np.int64)
    own = (families.start, bits(families.members), families.scores)
    kernel.draw_in_layers(*own, before, last, rng.random((draws, n)), chosen)
    return chosen


def summed(families: Families, prior: Prior) -> Summed:
    """The probability of each set of parents.

    Args:
        families: of nodes that can be on a cycle together.
        prior: over what.
    """
    kernel, n = kernels("subsets"), len(families)
    a = _below(families)
    f, b = np.empty((2, 2**n))
    kernel.orders_before(a, f)
    kernel.orders_after(a, b)
    at_graphs, table = (None, f) if prior == "orders" else _graphs(a, f, b)

    def own(c: int) -> Floats:
        if at_graphs is None:
            y = np.empty(a.shape[1])
            kernel.before_one(a, f, b, c, y)
        else:
            y = at_graphs[c]
        kernel.sums_above(a[c], y)
        masks = families.masks(c)
        return np.asarray(np.exp(families.scores[families.of(c)] - a[c, masks]) * y[masks])

    found = map_threads(own, range(n), available_cores())
    # Differences of sums over graphs leave a rounding error where a probability is 0.
    each = [np.clip(p, 0.0, 1.0) for p in found]
    return Summed(families, np.concatenate([p / p.sum() for p in each]), prior, table)


def _below(families: Families) -> Floats:
    """The sums a, see `kernels.subsets`, (n, 2^(n - 1))."""
    n = len(families)
    a = np.empty((n, 2 ** (n - 1)))

    def below(c: int) -> None:
        scores = np.ascontiguousarray(families.scores[families.of(c)])
        work = np.empty(a.shape[1])
        kernels("subsets").sums_below(families.masks(c), scores, work, a[c])

    map_threads(below, range(n), available_cores())
    return a


def _graphs(a: Floats, f: Floats, b: Floats) -> tuple[Floats, Floats]:
    """For each child and set of others what graphs have there, see `graphs_at`; (n, 2^(n - 1)).

    And the log sums b of graphs, (2^n,).
    """
    kernel = kernels("subsets")

    def work() -> tuple[Any, ...]:
        return np.empty(len(f)), np.empty(len(f), dtype=np.int64)

    before, after, found = np.empty_like(f), np.empty_like(b), np.zeros_like(a)
    threads = available_cores()
    halves = [
        partial(kernel.graphs_before, a, f, before, *work()),
        partial(kernel.graphs_after, a, b, after, *work()),
    ]
    map_threads(lambda half: half(), halves, threads)

    def some(first: int) -> None:
        kernel.graphs_at(a, f, b, before, after, *work(), first, threads, found)

    map_threads(some, range(threads), threads)
    with np.errstate(divide="ignore"):
        return found, np.log(after) + b
