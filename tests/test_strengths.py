"""Arc strengths: bnlearn's thresholds and averaged networks, and laws of averaging."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, reference
from hypothesis import given

import poolbn as pb
from poolbn.assess.resample import (
    averaged_edges,
    directed_network,
    inclusion_threshold,
    strengths,
)
from poolbn.graph.equivalence import completed

CASES = reference("boot/strengths.json")
each_case = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case['data']}-{case['rows']}-{case['R']}"
)


def matrices(case: dict) -> tuple[list[str], np.ndarray, np.ndarray]:
    nodes = list(dict.fromkeys(arc["from"] for arc in case["strength"]))
    strength, direction = np.zeros((2, len(nodes), len(nodes)))
    for arc in case["strength"]:
        at = nodes.index(arc["from"]), nodes.index(arc["to"])
        strength[at], direction[at] = arc["strength"], arc["direction"]
    return nodes, strength, direction


def named(nodes: list[str], matrix: np.ndarray) -> set[tuple[str, str]]:
    return {(nodes[a], nodes[b]) for a, b in np.argwhere(matrix)}


# bnlearn


@each_case
def test_thresholds_are_those_of_bnlearn(case: dict) -> None:
    strength = np.array([arc["strength"] for arc in case["strength"]])
    assert inclusion_threshold(strength) == case["threshold"]


@each_case
@pytest.mark.parametrize("threshold", [None, 0.7])
def test_averaged_networks_are_those_of_bnlearn(case: dict, threshold: float | None) -> None:
    expected = case["averaged_arcs" if threshold is None else "averaged_arcs_0.7"]
    nodes, strength, direction = matrices(case)
    level = case["threshold"] if threshold is None else threshold
    arcs, edges = averaged_edges(strength, direction, level, weakest_first=True)
    assert named(nodes, arcs | edges) == {tuple(arc) for arc in expected}
    dag = directed_network(nodes, arcs, edges)
    assert {frozenset(arc) for arc in dag.arcs} == {frozenset(arc) for arc in expected}
    assert named(nodes, arcs) <= set(dag.arcs)


def test_bnlearn_loses_the_strongest_arc_of_a_cycle_and_we_the_weakest() -> None:
    case = next(case for case in CASES if case["data"] == "marks" and case["threshold"] == 0.62)
    nodes, strength, direction = matrices(case)
    arcs = {}
    for first in (True, False):
        edges = averaged_edges(strength, direction, 0.62, weakest_first=first)
        arcs[first] = set(directed_network(nodes, *edges).arcs)
    # MECH -> ALG 0.73, VECT -> MECH 0.83, ALG -> VECT 0.96
    assert arcs[True] - arcs[False] == {("MECH", "ALG")}
    assert arcs[False] - arcs[True] == {("ALG", "VECT")}


SMALL, *MORE = (case for case in CASES if case["R"] == 200 and case["rows"] < 100)


@pytest.mark.parametrize(
    "case", [SMALL, *(pytest.param(case, marks=pytest.mark.slow) for case in MORE)]
)
def test_strengths_of_a_bootstrap_are_those_of_bnlearn_but_for_chance(case: dict) -> None:
    table = pd.read_csv(REFERENCE / "scores" / f"{case['data']}.csv.gz").iloc[: case["rows"]]
    boot = pb.bootstrap(
        {"all": table}, replicates=400, pooling=pb.Complete("unbiased"), preset="paper"
    )
    nodes, strength, direction = matrices(case)
    assert list(boot.nodes) == nodes
    ours, theirs = boot.counts / 400, strength * direction
    for a, b in ((ours, theirs), (ours + ours.T, strength)):
        p = (2 * a + b) / 3  # 400 and 200 replicates
        z = (a - b) / np.sqrt(np.maximum(p * (1 - p), 1e-3) * (1 / 400 + 1 / 200))
        assert np.abs(z).max() < 3.5


# Laws


@st.composite
def counted(draw, most: int = 6) -> tuple[np.ndarray, int]:
    """Counts of arcs in a few replicates, in halves."""
    N, replicates = draw(st.integers(1, most)), draw(st.integers(1, 6))
    counts = np.zeros((N, N))
    for a, b in itertools.combinations(range(N), 2):
        halves = draw(st.integers(0, 2 * replicates))
        counts[a, b] = draw(st.integers(0, halves)) / 2
        counts[b, a] = halves / 2 - counts[a, b]
    return counts, replicates


@given(counted(), st.booleans(), st.floats(0, 1))
def test_an_averaged_network_has_its_arcs_in_their_more_frequent_direction(
    counts: tuple[np.ndarray, int], weakest_first: bool, threshold: float
) -> None:
    strength, direction = strengths(*counts)
    nodes = [f"v{i}" for i in range(len(strength))]
    arcs, edges = averaged_edges(strength, direction, threshold, weakest_first=weakest_first)
    dag = directed_network(nodes, arcs, edges)  # a graph with a cycle would raise
    chosen = dag.to_adjacency().astype(bool)
    kept = (strength > threshold) | (strength == 1)
    assert not (chosen & ~kept).any()
    assert (direction[chosen] >= 0.5).all()
    np.testing.assert_array_equal(chosen | chosen.T, arcs | arcs.T | edges)
    if not weakest_first:
        assert not (kept & (direction == 0.5) & ~(chosen | chosen.T)).any()
    # What is left out would make a cycle with stronger arcs.
    if not weakest_first:
        for p, c in np.argwhere(kept & (direction > 0.5) & ~chosen):
            stronger = arcs & (strength >= strength[p, c])
            reach = np.linalg.matrix_power(stronger.astype(int) + np.eye(len(arcs), dtype=int), 6)
            assert reach[c, p] > 0


@given(counted())
def test_strengths_and_directions(counts: tuple[np.ndarray, int]) -> None:
    matrix, replicates = counts
    strength, direction = strengths(matrix, replicates)
    np.testing.assert_array_equal(strength, strength.T)
    off = ~np.eye(len(matrix), dtype=bool)
    np.testing.assert_allclose((direction + direction.T)[off], (strength > 0)[off])
    np.testing.assert_allclose(strength * direction * replicates, matrix, atol=1e-12)
    assert strength.max() <= 1
    if len(matrix) > 1:
        assert inclusion_threshold(strength[off]) in strength[off]


def test_edges_that_go_either_way_are_all_kept() -> None:
    """Also a triangle of them, which is no cycle until it is directed."""
    N = 5
    strength, direction = np.zeros((2, N, N))
    for a, b in [(0, 1), (1, 2), (0, 2)]:
        strength[a, b] = strength[b, a] = 1
        direction[a, b] = direction[b, a] = 0.5
    strength[3, 4] = strength[4, 3] = 0.9
    direction[3, 4] = 1
    arcs, edges = averaged_edges(strength, direction, 0.5, weakest_first=False)
    assert (arcs.sum(), edges.sum()) == (1, 6)
    dag = directed_network(list("abcde"), arcs, edges)
    assert dag.skeleton() == (("a", "b"), ("a", "c"), ("b", "c"), ("d", "e"))


def test_edges_are_directed_even_where_that_makes_a_v_structure() -> None:
    """A square a - b - c - d - a has no extension without one."""
    edges = np.zeros((4, 4), dtype=bool)
    for a, b in [(0, 1), (1, 2), (2, 3), (3, 0)]:
        edges[a, b] = edges[b, a] = True
    dag = directed_network(list("abcd"), np.zeros_like(edges), edges)
    assert len(dag.arcs) == 4


@pytest.mark.parametrize(("strength", "threshold"), [([], 0), ([0, 0, 0, 0], 0), ([1, 1], 1)])
def test_thresholds_where_all_strengths_are_the_same(strength: list, threshold: float) -> None:
    assert inclusion_threshold(np.array(strength, dtype=float)) == threshold


# Classes of graphs in which some directions are known


def equivalent(arcs: np.ndarray) -> list[np.ndarray]:
    """All acyclic graphs with the same skeleton and v-structures."""

    def colliders(graph: np.ndarray) -> set[tuple[int, int, int]]:
        joined = graph | graph.T
        return {
            (a, c, b)
            for c in range(len(graph))
            for a, b in itertools.combinations(np.flatnonzero(graph[:, c]).tolist(), 2)
            if not joined[a, b]
        }

    def acyclic(graph: np.ndarray) -> bool:
        return not np.linalg.matrix_power(graph.astype(float), len(graph)).any()

    pairs = np.argwhere(np.triu(arcs | arcs.T))
    found = []
    for ways in itertools.product([False, True], repeat=len(pairs)):
        graph = np.zeros_like(arcs)
        for (a, b), way in zip(pairs, ways, strict=True):
            graph[(a, b) if way else (b, a)] = True
        if acyclic(graph) and colliders(graph) == colliders(arcs):
            found.append(graph)
    return found


def test_a_known_direction_in_two_triangles_side_by_side() -> None:
    """Meek's fourth rule: a -> b makes b -> d, and d -> c would then make a cycle or a collider."""
    dag = pb.Dag(list("abcd"), [("c", "a"), ("c", "b"), ("c", "d"), ("a", "b"), ("b", "d")])
    fixed = np.zeros((4, 4), dtype=bool)
    fixed[0, 1] = True
    directed, undirected = completed(dag.to_adjacency().astype(bool), fixed)
    assert named(list("abcd"), directed) == {("a", "b"), ("b", "d"), ("c", "d")}
    assert named(list("abcd"), np.triu(undirected)) == {("a", "c"), ("b", "c")}


@pytest.mark.parametrize("N", [3, 4, 5])
def test_known_directions_direct_all_that_follows_from_them(N: int) -> None:
    rng = np.random.default_rng(N)
    further = 0
    for _ in range(150 if N < 5 else 60):
        order = rng.permutation(N)
        arcs = np.zeros((N, N), dtype=bool)
        dense = rng.uniform(0.5, 1)
        arcs[np.ix_(order, order)] = np.triu(rng.random((N, N)) < dense, 1)
        fixed = rng.random((N, N)) < rng.choice([0.1, 0.3])
        graphs = [g for g in equivalent(arcs) if not (arcs & fixed & ~g).any()]
        shared = np.logical_and.reduce(graphs)
        directed, undirected = completed(arcs, fixed)
        np.testing.assert_array_equal(directed, shared)
        np.testing.assert_array_equal(
            undirected, np.logical_or.reduce(graphs) & ~(shared | shared.T)
        )
        further += int(directed.sum() - (completed(arcs)[0] | (arcs & fixed)).sum())
    assert further > 5 * (N > 3)
