"""Where a drawing of a graph has its nodes and arcs: in layers, parents above children.

The steps of Sugiyama, Tagawa and Toda (1981): nodes get layers, and so does an arc wherever it
passes one; layers are ordered so that few arcs cross; positions become coordinates in which arcs
run straight down where they can. Arcs move sideways only between layers, and pass a layer in a
position of their own, so they never run through a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.graph.dag import Dag
from poolbn.graph.pairs import Pair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_STARTS = (2, 16)  # least and most orders that the search for few crossings begins with
_SWEEPS = 24
_IDLE = 6  # sweeps without a better order, after which a search ends
_WORK = 4000  # starts times vertices

_WEIGHTS = np.array([1.0, 3.0, 8.0])  # of pieces of arcs with none, one or both ends between nodes
_CENTRING = 4  # sweeps
_PORTS = 0.7  # part of a node's edge that arcs begin and end on


@dataclass(frozen=True, eq=False)
class Levelled:
    """A graph in layers, with one more vertex wherever an arc passes a layer: V of them in all."""

    level: Ints  # the layer of each vertex, 0 on top, (V,). The nodes come first
    # For each arc of the graph the vertices from parent to child, a layer further each.
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

    down = _differences(arcs[:, 0], arcs[:, 1], N)
    found = linprog(down.sum(axis=0), A_ub=-down, b_ub=-np.ones(len(arcs)))
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
        pairs = [(position[v], position[w]) for near in sides for v in near[a] for w in near[b]]
        if sum((v > w) - (v < w) for v, w in pairs) > 0:
            row[i], row[i + 1] = b, a
            position[a], position[b] = i + 1, i
            any_swap = True
    return any_swap


# Horizontal positions: arcs run straight down where they can


def ports(graph: Levelled, rows: Sequence[Ints], width: Floats) -> Floats:
    """How far from the middle of its vertices each piece of an arc begins and ends, (E, 2).

    Arcs touch a node side by side, in the order of where they go.
    """
    position = graph.positions(rows)
    ends = np.zeros((len(graph.arcs), 2))
    for side, other in ((0, 1), (1, 0)):
        order = np.lexsort((position[graph.arcs[:, other]], graph.arcs[:, side]))
        node, first, count = np.unique(
            graph.arcs[order, side], return_index=True, return_counts=True
        )
        within = np.arange(len(order)) - np.repeat(first, count)
        share = (within + 0.5) / np.repeat(count, count) - 0.5
        ends[order, side] = _PORTS * np.repeat(width[node], count) * share
    return ends


def across(
    graph: Levelled, rows: Sequence[Ints], ends: Floats, width: Floats, gap: float
) -> Floats:
    """The horizontal position of each vertex, the order and the gaps kept, (V,).

    The weighted sum of the ways sideways along the arcs is the least there can be. Sums of
    distances, not of squares, make most ways exactly straight; arcs through several layers weigh
    more (Gansner and others, 1993). Vertices where arcs pass have a width of 0; `ends` are ports.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack, identity, vstack

    if not len(graph.arcs):
        return np.zeros(graph.size)
    passing = width == 0
    weight = _WEIGHTS[passing[graph.arcs].sum(axis=1)]
    gaps = []
    for row in rows:
        # Arcs beside each other may be closer than nodes.
        clear = np.where(passing[row][:-1] & passing[row][1:], gap / 2, gap)
        gaps.append((width[row][:-1] + width[row][1:]) / 2 + clear)
    left = np.concatenate([row[:-1] for row in rows])
    right = np.concatenate([row[1:] for row in rows])
    # Unknown are the positions x and the ways sideways: t >= |x_b + end_b - x_a - end_a|.
    shift = ends[:, 1] - ends[:, 0]
    sideways = _differences(graph.arcs[:, 0], graph.arcs[:, 1], graph.size)
    t = identity(len(graph.arcs))
    order = hstack([-_differences(left, right, graph.size), csr_array((len(left), len(weight)))])
    found = linprog(
        np.concatenate([np.zeros(graph.size), weight]),
        A_ub=vstack([hstack([sideways, -t]), hstack([-sideways, -t]), order]),
        b_ub=np.concatenate([-shift, shift, -np.concatenate(gaps)]),
        bounds=(None, None),
    )
    x = np.array(found.x[: graph.size])
    own, other = np.concatenate([graph.arcs, graph.arcs[:, ::-1]]).T
    target, pull = np.concatenate([shift, -shift]), np.tile(weight, 2)
    here = {int(v): np.flatnonzero(own == v) for v in np.flatnonzero(~passing)}
    # The vertices that each node is joined to, how far from these straight arcs have it, weights.
    pulls = {v: (other[at], target[at], pull[at]) for v, at in here.items()}
    for _ in range(_CENTRING):
        for row, between in zip(rows, gaps, strict=True):
            _centre(x, row, between, pulls)
    return x


def _centre(
    x: Floats, row: Ints, between: Floats, pulls: dict[int, tuple[Ints, Floats, Floats]]
) -> None:
    """Move the nodes of a row to the middle of positions that are as good, neighbours kept apart.

    The best position is a weighted median, and that is often any position between two.
    """
    for i, v in enumerate(row.tolist()):
        if v not in pulls:
            continue
        other, shift, weight = pulls[v]
        target = x[other] + shift
        order = np.argsort(target, kind="stable")
        total = np.cumsum(weight[order])
        k = int(np.searchsorted(total, total[-1] / 2))
        middle = target[order[k : k + 1 + int(total[k] == total[-1] / 2)]].mean()
        low = x[row[i - 1]] + between[i - 1] if i > 0 else -np.inf
        high = x[row[i + 1]] - between[i] if i + 1 < len(row) else np.inf
        x[v] = min(max(middle, low), high)


def _differences(start: Ints, end: Ints, size: int) -> Any:
    """The sparse matrix that takes x to x[end] - x[start]."""
    from scipy.sparse import csr_array

    m = len(start)
    values = np.repeat([-1.0, 1.0], m)
    return csr_array((values, (np.tile(np.arange(m), 2), np.concatenate([start, end]))), (m, size))


_BOX = (1.0, 0.5)  # width and height of a node that has no size
_ASPECT = 1.6  # of the whole, where there are parts that can be put beside or below each other
_SLOPE = 0.2  # layers that arcs cross far sideways between are further apart by this
_RISE = (1.5, 5.0)  # least and largest distance between layers, in units of the gap


@dataclass(frozen=True, eq=False)
class Layout:
    """Coordinates of a drawing: x grows to the right and y upwards, from 0, 0."""

    nodes: tuple[str, ...]  # N, with centres and boxes (N,)
    arcs: tuple[Pair, ...]  # pairs (parent, child)
    x: Floats
    y: Floats
    width: Floats
    height: Floats
    # Of each arc the corners of its way, (k, 2), from the lower edge of the parent's box to the
    # upper edge of the child's; `smooth` makes a curve of it.
    routes: tuple[Floats, ...]
    size: tuple[float, float]  # width and height of the whole


def layered(
    dag: Dag, boxes: Mapping[str, tuple[float, float]] | None = None, *, gap: float = 0.4
) -> Layout:
    """Lay a graph out in layers, parents above children. The same graph is always drawn the same.

    Boxes have widths and heights, 1 and 0.5 by default; `gap` is the least distance between two
    nodes beside each other.
    """
    size = np.array([_BOX if boxes is None else boxes[node] for node in dag.nodes], dtype=float)
    index = {node: i for i, node in enumerate(dag.nodes)}
    arcs = np.array([(index[p], index[c]) for p, c in dag.arcs], dtype=np.int64).reshape(-1, 2)
    xy, routes = np.zeros((len(dag.nodes), 2)), [np.zeros((0, 2))] * len(arcs)
    parts = list(_connected(len(dag.nodes), arcs))
    found = [_part(np.searchsorted(nodes, arcs[own]), size[nodes], gap) for nodes, own in parts]
    corners, whole = _packed([part.size for part in found], 2 * gap)
    for (nodes, own), part, corner in zip(parts, found, corners, strict=True):
        xy[nodes] = part.xy + corner
        for a, route in zip(own.tolist(), part.routes, strict=True):
            routes[a] = route + corner
    x, y, width, height = np.hstack([xy, size.reshape(-1, 2)]).T
    return Layout(dag.nodes, dag.arcs, x, y, width, height, tuple(routes), whole)


def smooth(route: Floats) -> Floats:
    """The points of a chain of cubic Bezier curves along a route, (3k - 2, 2), of k corners.

    A curve leaves and reaches each corner of the route upright, and stays between the heights of
    its two ends: where the route does not run through a node, neither does the curve.
    """
    points = [route[0]]
    for start, end in pairwise(route):
        half = (start[1] + end[1]) / 2
        points += [np.array([start[0], half]), np.array([end[0], half]), end]
    return np.array(points)


# Connected parts, beside and below each other


class _Part(NamedTuple):
    """Centres of nodes, routes of arcs, width and height; the left lower corner is 0, 0."""

    xy: Floats
    routes: list[Floats]
    size: tuple[float, float]


def _connected(N: int, arcs: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Nodes and arcs of each connected part, the part with most nodes first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    joined = csr_array((np.ones(len(arcs)), (arcs[:, 0], arcs[:, 1])), (N, N))
    count, part = connected_components(joined, directed=False)
    parts = [np.flatnonzero(part == k) for k in range(count)]
    for nodes in sorted(parts, key=len, reverse=True):
        yield nodes, np.flatnonzero(np.isin(arcs[:, 0], nodes))


def _packed(
    sizes: Sequence[tuple[float, float]], gap: float
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Left lower corners of parts, and width and height of the whole.

    Parts fill rows from the top. A row is as high as its tallest part, so that small ones can be
    below each other in it.
    """
    if not sizes:
        return [], (0.0, 0.0)
    area = sum((w + gap) * (h + gap) for w, h in sizes)
    limit = max((area * _ASPECT) ** 0.5, *(w for w, _ in sizes))
    corners: list[tuple[float, float]] = []
    top, tall = 0.0, sizes[0][1]  # of the row
    left, wide, floor = 0.0, 0.0, 0.0  # of the column in it, and how far down it is taken
    for w, h in sizes:
        if corners and floor - h < top - tall:
            left, wide, floor = left + wide + gap, 0.0, top
            if left + w > limit:
                top -= tall + gap
                left, floor, tall = 0.0, top, h
            tall = max(tall, h)
        corners.append((left, floor - h))
        wide, floor = max(wide, w), floor - h - gap
    bottom = top - tall
    right = max(x + w for (x, _), (w, _) in zip(corners, sizes, strict=True))
    return [(x, y - bottom) for x, y in corners], (right, -bottom)


# One connected part


def _part(arcs: Ints, size: Floats, gap: float) -> _Part:
    """Lay out a connected part: arcs, (A, 2), and sizes of its M nodes, (M, 2)."""
    M = len(size)
    graph = levelled(M, arcs)
    rows = ordered(graph)
    width, height = np.vstack([size, np.zeros((graph.size - M, 2))]).T
    ends = ports(graph, rows, width)
    x = across(graph, rows, ends, width, gap)
    x = x - (x - width / 2).min()
    tall = np.array([height[row].max() for row in rows])
    y = _down(graph, x[graph.arcs] + ends, tall, gap)
    return _Part(
        np.column_stack([x, y[graph.level]])[:M],
        _routes(graph, x, y, ends, height / 2, tall / 2),
        (float((x + width / 2).max()), float(y[0] + tall[0] / 2)),
    )


def _down(graph: Levelled, span: Floats, tall: Floats, gap: float) -> Floats:
    """The middle of each layer of this height, the lowest edge at 0.

    Layers are further apart where a piece of an arc spans more, (E, 2).
    """
    reach = np.zeros(len(tall))  # farthest way sideways below each layer
    np.maximum.at(reach, graph.level[graph.arcs[:, 0]], np.abs(span[:, 1] - span[:, 0]))
    rise = np.clip(_SLOPE * reach, _RISE[0] * gap, _RISE[1] * gap)
    y = np.zeros(len(tall))
    for r in range(1, len(tall)):
        y[r] = y[r - 1] - (tall[r - 1] + tall[r]) / 2 - rise[r - 1]
    return np.asarray(y - y[-1] + tall[-1] / 2)


def _routes(
    graph: Levelled, x: Floats, y: Floats, ends: Floats, half: Floats, band: Floats
) -> list[Floats]:
    """The corners of each arc's way.

    `x` and half the height, `half`, are of the vertices, (V,), `y` and `band` of the layers.
    """
    routes, piece = [], 0
    for way in graph.ways:
        first, last = way[0], way[-1]
        top, bottom = graph.level[first], graph.level[last]
        leave = x[first] + ends[piece, 0]
        piece += len(way) - 1
        arrive = x[last] + ends[piece - 1, 1]
        corners = [(leave, y[top] - half[first])]
        if half[first] < band[top]:
            corners.append((leave, y[top] - band[top]))
        for v in way[1:-1]:
            level = graph.level[v]
            corners += [(x[v], y[level] + band[level]), (x[v], y[level] - band[level])]
        if half[last] < band[bottom]:
            corners.append((arrive, y[bottom] + band[bottom]))
        corners.append((arrive, y[bottom] + half[last]))
        routes.append(np.array(corners))
    return routes
