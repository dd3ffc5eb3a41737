"""Layers of a graph for a drawing, and the order in each layer, so that few arcs cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_STARTS = (2, 16)  # least and most orders that the search for few crossings begins with
_SWEEPS = 24
_IDLE = 6  # sweeps without a better order, after which a search ends
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

    def positions(self, rows: Sequence[Ints]) -> Ints:
        """The position of each vertex in its layer, with the layers in these orders, (V,)."""
        found = np.zeros(self.size, dtype=np.int64)
        for row in rows:
            found[row] = np.arange(len(row))
        return found


def levelled(N: int, arcs: Ints) -> Levelled:
    """Put the N nodes of a connected graph in layers, with arcs as short as can be in sum.

    That is a linear programme whose corners are whole numbers (Gansner and others, 1993). Arcs are
    pairs (parent, child), (A, 2).
    """
    if not len(arcs):
        return Levelled(np.zeros(N, dtype=np.int64), ())
    from scipy.optimize import linprog

    incidence = np.zeros((len(arcs), N))  # -1 for the child, 1 for the parent: -1 or less
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

    From several orders, which are always the same, layers are sorted in turn by the mean position
    of their neighbours above or below, and neighbours in a layer are swapped while that helps. The
    best order met on the way is the result.
    """
    rng = np.random.default_rng(0)
    starts = [np.arange(graph.size), np.arange(graph.size)[::-1]]
    count = int(np.clip(_WORK // graph.size, *_STARTS))
    starts += [rng.permutation(graph.size) for _ in range(count - len(starts))]
    above: list[list[int]] = [[] for _ in range(graph.size)]
    below: list[list[int]] = [[] for _ in range(graph.size)]
    for a, b in graph.arcs.tolist():
        above[b].append(a)
        below[a].append(b)
    found = (_improved(graph, start, above, below) for start in starts)
    return min(found, key=lambda rows: crossings(graph, rows))


def crossings(graph: Levelled, rows: list[Ints]) -> int:
    """How many pairs of arcs cross, with the layers in these orders."""
    position, total = graph.positions(rows), 0
    for r in range(len(rows) - 1):
        a, b = position[graph.arcs[graph.level[graph.arcs[:, 0]] == r]].T
        total += int(((a[:, None] - a) * (b[:, None] - b) < 0).sum()) // 2
    return total


def _improved(
    graph: Levelled, start: Ints, above: list[list[int]], below: list[list[int]]
) -> list[Ints]:
    """The best order found from a start."""
    rows = [start[graph.level[start] == r].tolist() for r in range(int(graph.level.max()) + 1)]
    position = graph.positions([np.array(row) for row in rows]).tolist()
    best, least, idle = [np.array(row) for row in rows], np.inf, 0
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        around = above if downwards else below
        for row in rows if downwards else rows[::-1]:
            beside = {v: [position[w] for w in around[v]] or [position[v]] for v in row}
            mean = {v: sum(own) / len(own) for v, own in beside.items()}
            row.sort(key=mean.__getitem__)
            for i, v in enumerate(row):
                position[v] = i
        while sum(_swapped(row, position, above, below) for row in rows):
            pass
        found = [np.array(row) for row in rows]
        count = crossings(graph, found)
        idle += 1
        if count < least:
            best, least, idle = found, count, 0
        if idle == _IDLE or count == 0:
            break
    return best


def _swapped(row: list[int], position: list[int], *sides: list[list[int]]) -> bool:
    """Swap neighbours wherever that takes crossings away; whether there were any."""
    any_swap = False
    for i in range(len(row) - 1):
        a, b = row[i], row[i + 1]
        saved = 0
        for around in sides:
            for v in around[a]:
                for w in around[b]:
                    saved += (position[v] > position[w]) - (position[v] < position[w])
        if saved > 0:
            row[i], row[i + 1] = b, a
            position[a], position[b] = i + 1, i
            any_swap = True
    return any_swap
