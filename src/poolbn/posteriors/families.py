"""All sets of parents that nodes may have, with their scores; and which nodes can be on a cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError
from poolbn.graph.constraints import Allowed
from poolbn.scoring.local import LocalScores

_FEW = 50_000  # families that may be scored where nobody says how many parents a node may have
_LEAST = 2  # parents that it may have at least, then
_BATCH = 4096  # families at a time

Matrix = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Families:
    """The sets of parents of some of the N columns, those of a node together, the best first.

    The nodes are those that can be on a cycle together, if all arcs that are allowed were there:
    all orders, or graphs, of them can be looked at by themselves.

    Attributes:
        nodes: their positions among the columns, (n,).
        start: the sets of the c-th node are from start[c] to start[c + 1], (n + 1,).
        parents: positions of the parents among the columns, filled up with -1, (M, .).
        members: which of the n nodes are among them, filled up with -1, (M, .).
        scores: that of the best set of a node is 0, (M,).
    """

    nodes: Integers
    start: Integers
    parents: Integers
    members: Integers
    scores: Floats

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


def possible(allowed: Allowed) -> Matrix:
    """Arcs that a graph with the required ones can have, (N, N)."""
    ways = reachable(allowed.required)
    return allowed.arcs & ~ways.T


def reachable(arcs: Matrix) -> Matrix:
    """Whether a path leads from the first node to the second, (..., N, N)."""
    ways = arcs.copy()
    for k in range(arcs.shape[-1]):
        ways |= ways[..., :, k, None] & ways[..., None, k, :]
    return ways


def components(arcs: Matrix) -> list[Integers]:
    """Nodes that can be on a cycle together, if all these arcs were there; each node once."""
    ways = reachable(arcs)
    together = (ways & ways.T) | np.eye(len(arcs), dtype=bool)
    firsts = sorted(set(together.argmax(axis=1).tolist()))
    return [np.flatnonzero(together[first]) for first in firsts]


def usual_parents(arcs: Matrix) -> int:
    """The most parents with no more than some families; no fewer than two."""
    into = arcs.sum(axis=0).tolist()
    most = max(into, default=0)
    count = 0
    for k in range(most + 1):
        count += sum(math.comb(n, k) for n in into)
        if count > _FEW and k > _LEAST:
            return k - 1
    return most


def all_families(
    scores: LocalScores, allowed: Allowed, most: int, tell: Callable[[int, int], None]
) -> list[Families]:
    """The sets of parents of all nodes that are allowed and have a likelihood, with their scores.

    Args:
        scores: of families.
        allowed: the constraints.
        most: parents of a node.
        tell: is told how many families are scored, and how many there are.
    """
    arcs = possible(allowed)
    sets = [list(_parent_sets(arcs, allowed.required, c, most)) for c in range(len(arcs))]
    families = [(c, parents) for c, own in enumerate(sets) for parents in own]
    values = np.empty(len(families))
    for first in range(0, len(families), _BATCH):
        tell(first, len(families))
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


def _parent_sets(arcs: Matrix, required: Matrix, c: int, most: int) -> Iterator[tuple[int, ...]]:
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
