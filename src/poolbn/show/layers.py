"""Layers of a graph for a drawing, and the order in each layer, so that few arcs cross."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_STARTS = (2, 16)  # least and most orders that the search for few crossings begins with
_SWEEPS = 24
_WORK = 4000  # starts times vertices


@dataclass(frozen=True, eq=False)
class Levelled:
    """A graph in layers, with one more vertex wherever an arc passes a layer: V of them in all.

    Attributes:
        level: the layer of each vertex, 0 on top, (V,). The nodes come first.
        ways: for each arc of the graph the vertices from parent to child, a layer further each.
    """

    level: Ints
    ways: tuple[Ints, ...]

    @property
    def size(self) -> int:
        """The number of vertices, V."""
        return len(self.level)

    @cached_property
    def arcs(self) -> Ints:
        """The pieces of the ways, each from a layer to the next one, (E, 2)."""
        pieces = [np.column_stack([way[:-1], way[1:]]) for way in self.ways]
        return np.concatenate([np.empty((0, 2), dtype=np.int64), *pieces])


def levelled(N: int, arcs: Ints) -> Levelled:
    """Put the nodes of a connected graph in layers, with arcs as short as can be in sum.

    That is a linear programme whose corners are whole numbers (Gansner and others, 1993).

    Args:
        N: the number of nodes.
        arcs: pairs (parent, child), (A, 2).

    Examples:
        >>> levelled(3, np.array([(0, 1), (1, 2), (0, 2)])).level
        array([0, 1, 2, 1])
    """
    if not len(arcs):
        return Levelled(np.zeros(N, dtype=np.int64), ())
    from scipy.optimize import linprog

    incidence = np.zeros((len(arcs), N))  # -1 for the child, 1 for the parent: at most -1
    incidence[np.arange(len(arcs)), arcs[:, 0]] = 1
    incidence[np.arange(len(arcs)), arcs[:, 1]] = -1
    found = linprog(-incidence.sum(axis=0), A_ub=incidence, b_ub=-np.ones(len(arcs)))
    own = np.rint(found.x).astype(np.int64)
    level = (own - own.min()).tolist()
    ways = []
    for parent, child in arcs.tolist():
        between = range(level[parent] + 1, level[child])
        passed = range(len(level), len(level) + len(between))
        level += between
        ways.append(np.array([parent, *passed, child]))
    return Levelled(np.array(level), tuple(ways))


def ordered(graph: Levelled) -> list[Ints]:
    """The vertices of each layer from left to right, so that few arcs cross.

    From several orders, which are always the same, layers are sorted in turn by the mean place of
    their neighbours above or below, and neighbours in a layer are swapped while that helps. The
    best order met on the way is taken.
    """
    rng = np.random.default_rng(0)
    starts = [np.arange(graph.size), np.arange(graph.size)[::-1]]
    count = int(np.clip(_WORK // graph.size, *_STARTS))
    starts += [rng.permutation(graph.size) for _ in range(count - len(starts))]
    search = _Search(graph)
    return min((search.run(start) for start in starts), key=lambda found: found[1])[0]


def crossings(graph: Levelled, rows: list[Ints]) -> int:
    """How many pairs of arcs cross, with the layers in these orders."""
    place = np.zeros(graph.size, dtype=np.int64)
    for row in rows:
        place[row] = np.arange(len(row))
    total = 0
    for r in range(len(rows) - 1):
        a, b = place[graph.arcs[graph.level[graph.arcs[:, 0]] == r]].T
        total += int(((a[:, None] - a) * (b[:, None] - b) < 0).sum()) // 2
    return total


class _Search:
    """Sweeps over the layers of one graph."""

    def __init__(self, graph: Levelled) -> None:
        self.graph = graph
        self.above: list[list[int]] = [[] for _ in range(graph.size)]
        self.below: list[list[int]] = [[] for _ in range(graph.size)]
        for a, b in graph.arcs.tolist():
            self.above[b].append(a)
            self.below[a].append(b)

    def run(self, start: Ints) -> tuple[list[Ints], int]:
        """The best order found from a start, and how often arcs cross in it."""
        level = self.graph.level
        rows = [start[level[start] == r].tolist() for r in range(int(level.max()) + 1)]
        place = [0] * self.graph.size
        for row in rows:
            self._number(row, place)
        best: tuple[list[Ints], int] | None = None
        idle = 0
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            around = self.above if downwards else self.below
            for row in rows if downwards else rows[::-1]:
                row.sort(key=lambda v: self._middle(around[v], place, place[v]))
                self._number(row, place)
            while sum(self._swapped(row, place) for row in rows):
                pass
            found = [np.array(row) for row in rows]
            count = crossings(self.graph, found)
            idle += 1
            if best is None or count < best[1]:
                best, idle = (found, count), 0
            if idle == 6 or count == 0:
                break
        assert best is not None
        return best

    @staticmethod
    def _number(row: list[int], place: list[int]) -> None:
        for i, v in enumerate(row):
            place[v] = i

    @staticmethod
    def _middle(around: list[int], place: list[int], own: int) -> float:
        return sum(place[v] for v in around) / len(around) if around else own

    def _swapped(self, row: list[int], place: list[int]) -> bool:
        """Swap neighbours wherever that takes crossings away; whether there were any."""
        any_swap = False
        for i in range(len(row) - 1):
            a, b = row[i], row[i + 1]
            saved = 0
            for around in (self.above, self.below):
                for v in around[a]:
                    for w in around[b]:
                        saved += (place[v] > place[w]) - (place[v] < place[w])
            if saved > 0:
                row[i], row[i + 1] = b, a
                place[a], place[b] = i + 1, i
                any_swap = True
        return any_swap
