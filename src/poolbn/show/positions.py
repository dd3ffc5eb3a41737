"""Horizontal positions in a drawing of a graph in layers: arcs run straight down where they can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.show.layers import Ints, Levelled

Floats = NDArray[np.float64]

_WEIGHTS = np.array([1.0, 3.0, 8.0])  # of pieces of arcs with none, one or both ends between nodes
_SWEEPS = 4
_PORTS = 0.7  # part of a node's edge that arcs begin and end on


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
    more (Gansner and others, 1993).

    Args:
        graph: with a vertex wherever an arc passes a layer.
        rows: the vertices of each layer, from left to right.
        ends: from `ports`, (E, 2).
        width: of the vertices, 0 for those of arcs that pass, (V,).
        gap: the least distance between two nodes.
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
    for _ in range(_SWEEPS):
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
