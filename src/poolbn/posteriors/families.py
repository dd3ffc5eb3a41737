"""All sets of parents that nodes may have, their scores, and their probabilities by exact sums.

Over orders (Koivisto and Sood 2004): an order of the nodes and a graph that goes along it are one
of all such pairs, each as probable as any other a priori. So the prior of a graph is proportional
to the number of orders that it goes along. Over graphs (Tian and He 2009): each acyclic graph is as
probable as any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Literal

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import DataError
from poolbn.graph.constraints import Allowed
from poolbn.graph.equivalence import reached
from poolbn.run.compiling import kernels
from poolbn.run.parallel import available_cores, map_threads
from poolbn.run.progress import Progress
from poolbn.scoring.local import LocalScores

_FEW = 50_000  # families that may be scored where nobody says how many parents a node may have
_LEAST = 2  # parents that it may have at least, then
_BATCH = 4096  # families at a time

Prior = Literal["orders", "dags"]
# Nodes that can be on a cycle together: 20 take 200 MB, 17 some 15 s.
MOST: dict[Prior, int] = {"orders": 20, "dags": 17}


@dataclass(frozen=True, eq=False)
class Families:
    """The sets of parents of some of the N columns, those of a node together, the best first.

    The nodes are those that can be on a cycle together, if all arcs that are allowed were there:
    all orders, or graphs, of them can be looked at by themselves.
    """

    nodes: Integers  # their positions among the columns, (n,)
    start: Integers  # the sets of the c-th node are from start[c] to start[c + 1], (n + 1,)
    parents: Integers  # positions of the parents among the columns, filled up with -1, (M, .)
    members: Integers  # which of the n nodes are among them, filled up with -1, (M, .)
    scores: Floats  # that of the best set of a node is 0, (M,)

    def __len__(self) -> int:
        return len(self.nodes)

    def of(self, c: int) -> slice:
        """The sets of the c-th node."""
        return slice(int(self.start[c]), int(self.start[c + 1]))

    def masks(self, c: int) -> Integers:
        """The sets of the c-th node as bits of the other n - 1, (.,)."""
        members = self.members[self.of(c)]
        return bits(members - (members > c))

    @cached_property
    def having(self) -> tuple[Integers, Integers]:
        """Where the sets of each of the n nodes with another one begin, (n^2 + 1,), and they."""
        n = len(self)
        child = np.repeat(np.arange(n), np.diff(self.start))
        at, column = np.nonzero(self.members >= 0)
        pair = child[at] * n + self.members[at, column]
        order = np.argsort(pair, kind="stable")
        ends = np.cumsum(np.bincount(pair, minlength=n * n))
        return np.concatenate([[0], ends]), at[order]

    def tempered(self, power: float) -> Families:
        """The same with powers of exp(score)."""
        return replace(self, scores=power * self.scores)

    def arcs(self, weights: Floats, N: int) -> Floats:
        """The sum of the weights, (M,), of the sets with each parent, (N, n)."""
        total = np.zeros((N + 1, len(self)))
        for c in range(len(self)):
            part = self.of(c)
            for column in self.parents[part].T:
                np.add.at(total[:, c], column, weights[part])
        return total[:N]


def bits(sets: Integers) -> Integers:
    """Sets as bit masks; sets are along the last axis, filled up with -1."""
    return np.asarray(np.where(sets >= 0, 1 << np.maximum(sets, 0), 0).sum(axis=-1))


def possible(allowed: Allowed) -> Flags:
    """Arcs that a graph with the required ones can have, (N, N)."""
    return allowed.arcs & ~reached(allowed.required).T


def components(arcs: Flags) -> list[Integers]:
    """Nodes that can be on a cycle together, if all these arcs were there; each node once."""
    ways = reached(arcs)
    together = (ways & ways.T) | np.eye(len(arcs), dtype=bool)
    firsts = sorted(set(together.argmax(axis=1).tolist()))
    return [np.flatnonzero(together[first]) for first in firsts]


def usual_parents(arcs: Flags) -> int:
    """The most parents with no more than some families; no fewer than two."""
    into = arcs.sum(axis=0).tolist()
    most, count = max(into, default=0), 0
    for k in range(most + 1):
        count += sum(math.comb(n, k) for n in into)
        if count > _FEW and k > _LEAST:
            return k - 1
    return most


def all_families(
    scores: LocalScores, allowed: Allowed, most: int, progress: Progress
) -> list[Families]:
    """The sets of up to `most` parents that are allowed and have a likelihood, with scores."""
    arcs = possible(allowed)
    sets = [list(_parent_sets(arcs, allowed.required, c, most)) for c in range(len(arcs))]
    families = [(c, parents) for c, own in enumerate(sets) for parents in own]
    values = np.empty(len(families))
    for first in range(0, len(families), _BATCH):
        progress(partial("scoring: {:,} of {:,} families".format, first, len(families)))
        part = slice(first, first + _BATCH)
        values[part] = scores(families[part])
    ends = np.cumsum([len(own) for own in sets])
    own = np.split(values, ends[:-1])
    for c, each in enumerate(own):
        if not np.isfinite(each).any():
            raise DataError(
                f"no model of {scores.names[c]!r} has a likelihood, with any of its "
                f"{len(each):,} sets of parents: it may be constant, or there are too few rows; "
                "leave it out"
            )
    width = max((len(parents) for _, parents in families), default=0)
    return [_together(nodes, sets, own, width) for nodes in components(arcs)]


def _parent_sets(arcs: Flags, required: Flags, c: int, most: int) -> Iterator[tuple[int, ...]]:
    must = np.flatnonzero(required[:, c]).tolist()
    may = np.flatnonzero(arcs[:, c] & ~required[:, c]).tolist()
    for k in range(min(most - len(must), len(may)) + 1):
        for more in combinations(may, k):
            yield tuple(sorted([*must, *more]))


def _together(
    nodes: Integers, sets: list[list[tuple[int, ...]]], own: list[Floats], width: int
) -> Families:
    """The families of some nodes, without those that have no likelihood."""
    starts, parents, scores = [0], [], []
    for c in nodes.tolist():
        order = np.argsort(-own[c], kind="stable")
        order = order[np.isfinite(own[c][order])]
        table = np.full((len(sets[c]), width), -1)
        for row, each in zip(table, sets[c], strict=True):
            row[: len(each)] = each
        parents.append(table[order])
        scores.append(own[c][order] - own[c].max())
        starts.append(starts[-1] + len(order))
    whole = np.concatenate(parents)
    at = np.full(max(int(whole.max(initial=-1)), int(nodes.max())) + 2, -1)
    at[nodes] = np.arange(len(nodes))
    # Sorted so that the nodes of another component, -1 here, come last.
    inside = np.sort(np.where(at[whole] < 0, len(nodes), at[whole]), axis=1)
    members = np.where(inside == len(nodes), -1, inside)
    used = max(1, int((members >= 0).sum(axis=1).max(initial=0)))
    members = np.ascontiguousarray(np.pad(members, ((0, 0), (0, 1)), constant_values=-1)[:, :used])
    return Families(nodes, np.array(starts), whole, members, np.concatenate(scores))


@dataclass(frozen=True, eq=False)
class Summed:
    """Sums over all orders or graphs of some nodes."""

    families: Families
    probabilities: Floats  # of each set, (M,)
    prior: Prior  # over what the sums are
    table: Floats  # log sums over orders of the nodes in each set, or graphs of the others, (2^n,)

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

    `at` are positions of the nodes in orders, or among layers, (draws, n): then a node must have a
    parent in the last layer before its own.
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
    """The probability of each set of parents of nodes that can be on a cycle together."""
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
