"""Where a drawing of a graph has its nodes and arcs: in layers, parents above children.

The steps of Sugiyama, Tagawa and Toda (1981): nodes get layers, and so does an arc wherever it
passes one; layers are ordered so that few arcs cross; places become coordinates in which arcs run
straight down where they can. Arcs move sideways only between layers, and pass a layer in a place of
their own, so they never run through a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from poolbn.graph.dag import Dag
from poolbn.graph.pairs import Pair, grouped, reached
from poolbn.show.layers import Ints, Levelled, levelled, ordered
from poolbn.show.places import Floats, across, ports

_BOX = (1.0, 0.5)  # width and height of a node that has no size
_ASPECT = 1.6  # of the whole, where there are parts that can be put beside or below each other
_SLOPE = 0.2  # layers that arcs cross far sideways between are further apart by this
_RISE = (1.5, 5.0)  # least and largest distance between layers, in units of the gap


@dataclass(frozen=True, eq=False)
class Layout:
    """Coordinates of a drawing. x grows to the right and y upwards; the left lower corner is 0, 0.

    Attributes:
        nodes: the N nodes.
        arcs: pairs (parent, child).
        x: centres of the nodes, (N,).
        y: centres of the nodes, (N,).
        width: of the nodes' boxes, (N,).
        height: of the nodes' boxes, (N,).
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

    Args:
        dag: the graph.
        boxes: width and height of each node; by default all are 1 wide and 0.5 high.
        gap: the least distance between two nodes beside each other.

    Examples:
        >>> import poolbn as pb
        >>> layout = layered(pb.Dag.from_modelstring("[A][B|A][C|A:B]"))
        >>> layout.y.round(2)
        array([2.45, 1.35, 0.25])
        >>> [len(route) for route in layout.routes]
        [2, 4, 2]
    """
    size = np.array([_BOX if boxes is None else boxes[node] for node in dag.nodes], dtype=float)
    place = {node: i for i, node in enumerate(dag.nodes)}
    arcs = np.array([(place[p], place[c]) for p, c in dag.arcs], dtype=np.int64).reshape(-1, 2)
    parts = [_part(nodes, own, arcs[own], size, gap) for nodes, own in _connected(dag, arcs)]
    xy = np.zeros((len(dag.nodes), 2))
    routes: dict[int, Floats] = {}
    whole = (0.0, 0.0)
    if parts:
        corners, whole = _packed([part.size for part in parts], 2 * gap)
        for part, corner in zip(parts, corners, strict=True):
            xy[part.nodes] = part.xy + corner
            routes |= {a: route + corner for a, route in part.routes.items()}
    return Layout(
        nodes=dag.nodes,
        arcs=dag.arcs,
        x=xy[:, 0],
        y=xy[:, 1],
        width=size[:, 0],
        height=size[:, 1],
        routes=tuple(routes[a] for a in range(len(arcs))),
        size=whole,
    )


def smooth(route: Floats) -> Floats:
    """The points of a chain of cubic Bezier curves along a route, (3k - 2, 2).

    A curve leaves and reaches each corner of the route upright, and stays between the heights of
    its two ends: where the route does not run through a node, neither does the curve.

    Args:
        route: the corners, (k, 2).

    Examples:
        >>> smooth(np.array([[0.0, 2.0], [1.0, 0.0]]))
        array([[0., 2.], [0., 1.], [1., 1.], [1., 0.]])
    """
    points = [route[0]]
    for start, end in pairwise(route):
        half = (start[1] + end[1]) / 2
        points += [np.array([start[0], half]), np.array([end[0], half]), end]
    return np.array(points)


# Connected parts, and their places beside and below each other


@dataclass(frozen=True, eq=False)
class _Part:
    """A connected part, its left lower corner at 0, 0.

    Attributes:
        nodes: their places among all nodes, (M,).
        xy: their centres, (M, 2).
        routes: by the place of an arc among all arcs.
        size: width and height.
    """

    nodes: Ints
    xy: Floats
    routes: dict[int, Floats]
    size: tuple[float, float]


def _connected(dag: Dag, arcs: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Nodes and arcs of each connected part, the part with most nodes first."""
    around = grouped(dag.nodes, [*dag.arcs, *((c, p) for p, c in dag.arcs)])
    parts: list[Ints] = []
    seen: set[str] = set()
    for node in dag.nodes:
        if node not in seen:
            part = reached([node], around)
            seen |= part
            parts.append(np.array([i for i, name in enumerate(dag.nodes) if name in part]))
    for nodes in sorted(parts, key=len, reverse=True):
        yield nodes, np.flatnonzero(np.isin(arcs[:, 0], nodes))


def _packed(
    sizes: Sequence[tuple[float, float]], gap: float
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Left lower corners of parts, and width and height of the whole.

    Parts fill rows from the top. A row is as high as its tallest part, so that small ones can be
    below each other in it.
    """
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


def _part(
    nodes: Ints,
    own: Ints,
    arcs: Ints,
    size: Floats,
    gap: float,
) -> _Part:
    """Lay out a connected part.

    Args:
        nodes: its nodes, (M,).
        own: the places of its arcs among all arcs.
        arcs: its arcs, pairs of nodes.
        size: width and height of all nodes, (N, 2).
        gap: the least distance between two nodes beside each other.
    """
    graph = levelled(len(nodes), np.searchsorted(nodes, arcs))
    rows = ordered(graph)
    extra = graph.size - len(nodes)
    width = np.append(size[nodes, 0], np.zeros(extra))
    ends = ports(graph, rows, width)
    x = across(graph, rows, ends, width, gap)
    tall = np.array([size[nodes[row[row < len(nodes)]], 1].max(initial=0.0) for row in rows])
    y = _down(graph, x[graph.arcs] + ends, tall, gap)
    left = (x - width / 2).min()
    x = x - left
    half = np.append(size[nodes, 1] / 2, np.zeros(extra))
    routes = _routes(graph, x, y, ends, half, tall / 2)
    return _Part(
        nodes,
        np.column_stack([x, y[graph.level]])[: len(nodes)],
        {int(a): route for a, route in zip(own, routes, strict=True)},
        (float((x + width / 2).max()), float(y[0] + tall[0] / 2)),
    )


def _down(graph: Levelled, span: Floats, tall: Floats, gap: float) -> Floats:
    """The middle of each layer, the lowest layer's edge at 0, (layers,).

    Args:
        graph: with a vertex wherever an arc passes a layer.
        span: where each piece of an arc begins and ends, (E, 2).
        tall: the height of each layer.
        gap: the least distance between two nodes.
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

    Args:
        graph: with a vertex wherever an arc passes a layer.
        x: of the vertices, (V,).
        y: of the layers.
        ends: how far from the middle of its vertices each piece begins and ends, (E, 2).
        half: half the height of the vertices, (V,).
        band: half the height of the layers.
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
