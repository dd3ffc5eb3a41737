"""Laws of drawings in layers: nothing overlaps, arcs run around nodes, few of them cross."""

from __future__ import annotations

import itertools

import igraph
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poolbn as pb
from poolbn.show.layout import Layout, Levelled, crossings, layered, levelled, ordered, smooth

GAP = 10.0


@st.composite
def drawings(draw: st.DrawFn) -> tuple[pb.Dag, dict[str, tuple[float, float]]]:
    N = draw(st.integers(1, 14))
    nodes = [f"n{i}" for i in range(N)]
    pairs = list(itertools.combinations(nodes, 2))
    arcs = draw(st.lists(st.sampled_from(pairs), max_size=3 * N)) if pairs else []
    side = st.floats(5, 80)
    return pb.Dag(nodes, arcs), {node: (draw(side), draw(side)) for node in nodes}


def curve(route: np.ndarray) -> np.ndarray:
    """Points on the curve, (m, 2), by the formula of Bezier curves."""
    points, t = smooth(route), np.linspace(0, 1, 25)[:, None]
    parts = [points[i : i + 4] for i in range(0, len(points) - 1, 3)]
    return np.concatenate([
        (1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d
        for a, b, c, d in parts
    ])  # fmt: skip


def inside(layout: Layout, i: int, points: np.ndarray) -> np.ndarray:
    """Which points are inside a node's box, its edge left out."""
    off = np.abs(points - [layout.x[i], layout.y[i]])
    return (off < np.array([layout.width[i], layout.height[i]]) / 2 - 1e-6).all(axis=1)


@given(drawings())
def test_parents_are_above_and_nothing_overlaps(case: tuple[pb.Dag, dict]) -> None:
    dag, boxes = case
    layout = layered(dag, boxes, gap=GAP)
    assert [layout.width.tolist(), layout.height.tolist()] == [
        list(side) for side in zip(*(boxes[node] for node in dag.nodes), strict=True)
    ]
    at = {node: i for i, node in enumerate(layout.nodes)}
    low = np.column_stack([layout.x - layout.width / 2, layout.y - layout.height / 2])
    high = np.column_stack([layout.x + layout.width / 2, layout.y + layout.height / 2])
    assert (low > -1e-6).all()
    assert (high < np.array(layout.size) + 1e-6).all()
    for i, j in itertools.combinations(range(len(at)), 2):
        apart = np.maximum(low[i] - high[j], low[j] - high[i])
        assert apart.max() > GAP - 1e-6
    for parent, child in dag.arcs:
        assert low[at[parent], 1] > high[at[child], 1]


@given(drawings())
def test_arcs_go_from_edge_to_edge_and_around_nodes(case: tuple[pb.Dag, dict]) -> None:
    dag, boxes = case
    layout = layered(dag, boxes, gap=GAP)
    at = {node: i for i, node in enumerate(layout.nodes)}
    assert layout.arcs == dag.arcs
    for (parent, child), route in zip(layout.arcs, layout.routes, strict=True):
        p, c = at[parent], at[child]
        assert route[0, 1] == pytest.approx(layout.y[p] - layout.height[p] / 2)
        assert route[-1, 1] == pytest.approx(layout.y[c] + layout.height[c] / 2)
        assert abs(route[0, 0] - layout.x[p]) < layout.width[p] / 2
        assert abs(route[-1, 0] - layout.x[c]) < layout.width[c] / 2
        points = curve(route)
        assert (np.diff(points[:, 1]) < 1e-9).all()
        assert (points > -1e-6).all()
        assert (points < np.array(layout.size) + 1e-6).all()
        for i in range(len(at)):
            assert not inside(layout, i, points).any(), (layout.nodes[i], parent, child)


@given(drawings())
def test_the_same_graph_is_always_drawn_the_same(case: tuple[pb.Dag, dict]) -> None:
    dag, boxes = case
    one, two = layered(dag, boxes), layered(dag, dict(reversed(boxes.items())))
    assert one.size == two.size
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.y, two.y)
    for a, b in zip(one.routes, two.routes, strict=True):
        np.testing.assert_array_equal(a, b)


def arcs_of(dag: pb.Dag) -> np.ndarray:
    at = {node: i for i, node in enumerate(dag.nodes)}
    return np.array([(at[p], at[c]) for p, c in dag.arcs])


@pytest.mark.parametrize("seed", range(12))
def test_arcs_are_as_short_as_can_be(seed: int) -> None:
    dag = pb.random_dag(5, 1.5, seed=seed)
    arcs = arcs_of(dag)
    level = levelled(5, arcs).level[:5]
    spans = [
        sum(where[c] - where[p] for p, c in arcs)
        for where in itertools.product(range(5), repeat=5)
        if all(where[c] > where[p] for p, c in arcs)
    ]
    assert min(spans) == (level[arcs[:, 1]] - level[arcs[:, 0]]).sum()
    assert level.min() == 0


def rows_of_igraph(graph: Levelled) -> list[np.ndarray]:
    peer = igraph.Graph(n=graph.size, edges=graph.arcs.tolist(), directed=True)
    x = np.array(peer.layout_sugiyama(layers=graph.level.tolist(), maxiter=1000).coords)[:, 0]
    rows = [np.flatnonzero(graph.level == r) for r in range(graph.level.max() + 1)]
    return [row[np.argsort(x[row])] for row in rows]


@pytest.mark.parametrize("nodes", [6, 12, 25, 50])
def test_no_more_arcs_cross_than_in_igraph(nodes: int) -> None:
    for seed in range(3):
        graph = levelled(nodes, arcs_of(pb.random_dag(nodes, 2, seed=seed)))
        rows = ordered(graph)
        assert sorted(np.concatenate(rows).tolist()) == list(range(graph.size))
        assert all((graph.level[row] == r).all() for r, row in enumerate(rows))
        assert crossings(graph, rows) <= crossings(graph, rows_of_igraph(graph))


def test_crossings_are_those_of_straight_lines() -> None:
    graph = levelled(12, arcs_of(pb.random_dag(12, 2, seed=1)))
    rows = rows_of_igraph(graph)
    at = {int(v): (k, -r) for r, row in enumerate(rows) for k, v in enumerate(row)}

    def side(a: tuple, b: tuple, c: tuple) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    count = 0
    for one, other in itertools.combinations(graph.arcs.tolist(), 2):
        (a, b), (c, d) = [[at[v] for v in arc] for arc in (one, other)]
        count += side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
    assert crossings(graph, rows) == count > 0


def test_a_tree_is_drawn_without_crossings() -> None:
    nodes = [f"n{i}" for i in range(40)]
    rng = np.random.default_rng(3)
    dag = pb.Dag(nodes, [(nodes[rng.integers(i)], nodes[i]) for i in range(1, 40)])
    graph = levelled(40, arcs_of(dag))
    assert crossings(graph, ordered(graph)) == 0


def test_many_parts_are_not_all_beside_each_other() -> None:
    nodes = [f"n{i}" for i in range(60)]
    layout = layered(pb.Dag(nodes, zip(nodes[:20:2], nodes[1:20:2], strict=True)))
    width, height = layout.size
    assert 0.6 < width / height < 3


def test_a_chain_is_straight() -> None:
    nodes = [f"n{i}" for i in range(6)]
    layout = layered(pb.Dag(nodes, itertools.pairwise(nodes)))
    np.testing.assert_allclose(layout.x, layout.x[0])


def test_no_two_neighbours_are_better_swapped() -> None:
    graph = levelled(25, arcs_of(pb.random_dag(25, 2, seed=4)))
    rows = ordered(graph)
    best = crossings(graph, rows)
    for r, row in enumerate(rows):
        for i in range(len(row) - 1):
            other = row.copy()
            other[[i, i + 1]] = row[[i + 1, i]]
            assert crossings(graph, [*rows[:r], other, *rows[r + 1 :]]) >= best
