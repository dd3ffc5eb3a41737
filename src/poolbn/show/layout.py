"""Where a drawing of a graph has its nodes and arcs: in layers, parents above children.

The steps of Sugiyama, Tagawa and Toda (1981): nodes get layers, and so does an arc wherever it
passes one; layers are ordered so that few arcs cross; positions become coordinates in which arcs
run straight down where they can. Arcs move sideways only between layers, and pass a layer in a
position of their own, so they never run through a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poolbn.graph.dag import Dag
from poolbn.graph.pairs import Pair
from poolbn.show.layers import Floats, Ints, Levelled, across, levelled, ordered, ports

_BOX = (1.0, 0.5)  # width and height of a node that has no size
_ASPECT = 1.6  # of the whole, where there are parts that can be put beside or below each other
_SLOPE = 0.2  # layers that arcs cross far sideways between are further apart by this
_RISE = (1.5, 5.0)  # least and largest distance between layers, in units of the gap


@dataclass(frozen=True, eq=False)
class Layout:
    """Coordinates of a drawing. x grows to the right and y upwards; the left lower corner is 0, 0.

    Attributes:
        nodes: the N nodes, with centres `x` and `y`, and boxes of `width` and `height`, (N,) each.
        arcs: pairs (parent, child).
        routes: of each arc the corners of its way, (k, 2), from the lower edge of the parent's box
            to the upper edge of the child's; `smooth` makes a curve of it.
        size: width and height of the whole.
    """

    nodes: tuple[str, ...]
    arcs: tuple[Pair, ...]
    x: Floats
    y: Floats
    width: Floats
    height: Floats
    routes: tuple[Floats, ...]
    size: tuple[float, float]


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
