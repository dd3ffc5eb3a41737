"""Separation and adjustment: against networkx, regressions and brute force over all sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poolbn as pb
from poolbn.graph import dag as module

NAMES = list("abcd")


@st.composite
def dags(draw: st.DrawFn, size: int = 6) -> pb.Dag:
    nodes = draw(st.permutations("uvwxyz"[:size]))
    pairs = list(itertools.combinations(nodes, 2))
    keep = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return pb.Dag(sorted(nodes), itertools.compress(pairs, keep))


def small_dags() -> Iterator[pb.Dag]:
    """All graphs of four nodes."""
    pairs = list(itertools.combinations(NAMES, 2))
    for kinds in itertools.product((None, 1, -1), repeat=len(pairs)):
        arcs = [pair[::kind] for pair, kind in zip(pairs, kinds, strict=True) if kind]
        if nx.is_directed_acyclic_graph(nx.DiGraph(arcs)):
            yield pb.Dag(NAMES, arcs)


def subsets(names: Iterable[str]) -> list[tuple[str, ...]]:
    every = list(names)
    return [own for k in range(len(every) + 1) for own in itertools.combinations(every, k)]


def others(dag: pb.Dag, *names: str) -> list[str]:
    return [node for node in dag.nodes if node not in names]


LAW = settings(derandomize=True, deadline=None, max_examples=200)


@LAW
@given(dags(), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_separation_agrees_with_networkx(dag: pb.Dag, role: list[int]) -> None:
    x, y, z = ({n for n, r in zip(dag.nodes, role, strict=True) if r == k} for k in range(3))
    x, y = x or {"u"} - y - z, y or {"z"} - x - z
    if x and y:
        assert dag.d_separated(x, y, z) == nx.is_d_separator(dag.to_networkx(), x, y, z)


@LAW
@given(dags())
def test_the_markov_blanket_is_the_neighbours_in_the_moral_graph(dag: pb.Dag) -> None:
    moral = nx.moral_graph(dag.to_networkx())
    for node in dag.nodes:
        blanket = dag.markov_blanket(node)
        assert list(blanket) == sorted(moral.neighbors(node))
        if rest := set(dag.nodes) - {node, *blanket}:
            assert dag.d_separated(node, rest, blanket)
        for one in blanket:  # no node of it can be left out
            assert not dag.d_separated(node, one, set(blanket) - {one})


def adjusted(cov: np.ndarray, cause: int, effect: int, zs: list[int]) -> float:
    """The coefficient of the cause in the regression of the effect on it and `zs`."""
    x = [cause, *zs]
    return float(np.linalg.solve(cov[np.ix_(x, x)], cov[x, effect])[0])


def test_a_set_is_valid_where_the_regression_on_it_has_the_total_effect() -> None:
    rng = np.random.default_rng(1)
    graphs = list(small_dags())
    assert len(graphs) == 543  # all there are
    answers = set()
    for dag in graphs:
        B = dag.to_adjacency().T * rng.uniform(0.4, 1.2, (4, 4)) * rng.choice([-1, 1], (4, 4))
        total = np.linalg.inv(np.eye(4) - B)
        cov = total @ np.diag(rng.uniform(0.5, 2, 4)) @ total.T
        for i, j in itertools.permutations(range(4), 2):
            cause, effect = NAMES[i], NAMES[j]
            for zs in subsets(others(dag, cause, effect)):
                found = adjusted(cov, i, j, [NAMES.index(z) for z in zs])
                right = bool(abs(found - total[j, i]) < 1e-9)
                assert dag.is_adjustment_set(cause, effect, zs) == right, (dag, cause, effect, zs)
                answers.add(right)
    assert answers == {True, False}


def back_door(dag: pb.Dag, cause: str, effect: str, among: Iterable[str]) -> list[set[str]]:
    """The minimal sets of Pearl's criterion: no descendants, and all back-door paths blocked."""
    graph = dag.to_networkx()
    below = nx.descendants(graph, cause)
    graph.remove_edges_from(list(graph.out_edges(cause)))
    valid = [
        set(zs)
        for zs in subsets(set(among) - below - {cause, effect})
        if nx.is_d_separator(graph, {cause}, {effect}, set(zs))
    ]
    return [zs for zs in valid if not any(other < zs for other in valid)]


def check_sets(dag: pb.Dag, cause: str, effect: str, among: list[str] | None) -> None:
    found = dag.adjustment_sets(cause, effect, among)
    expected = back_door(dag, cause, effect, dag.nodes if among is None else among)
    assert sorted(found) == sorted(tuple(n for n in dag.nodes if n in own) for own in expected)
    assert list(map(len, found)) == sorted(map(len, found))
    one = dag.adjustment_set(cause, effect, among)
    assert (one is None) == (not found)
    assert one is None or one in found
    if among is None:
        assert (one is None) == (effect in dag.parents(cause))
        assert one is None or set(one) <= set(dag.parents(cause))


def test_minimal_sets_are_those_of_the_back_door_criterion_in_all_small_graphs() -> None:
    for dag in small_dags():
        for cause, effect in itertools.permutations(NAMES, 2):
            check_sets(dag, cause, effect, None)


@LAW
@given(dags(), st.permutations("uvwxyz"), st.sets(st.sampled_from("uvwxyz")))
def test_minimal_sets_are_those_of_the_back_door_criterion(
    dag: pb.Dag, order: list[str], among: set[str]
) -> None:
    check_sets(dag, order[0], order[1], None)
    check_sets(dag, order[0], order[1], sorted(among))


def test_the_order_of_nodes_is_no_matter() -> None:
    arcs = [("a", "x"), ("a", "b"), ("b", "y"), ("c", "x"), ("c", "d"), ("d", "y"), ("x", "y")]
    one = pb.Dag(list("abcdxy"), arcs)
    assert one.adjustment_sets("x", "y") == (("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"))
    two = pb.Dag(list("yxdcba"), arcs).adjustment_sets("x", "y")
    assert {frozenset(own) for own in two} == {*map(frozenset, one.adjustment_sets("x", "y"))}


def test_too_many_sets_are_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    arcs = [("x", "y")]
    for k in range(4):
        arcs += [(f"a{k}", "x"), (f"a{k}", f"b{k}"), (f"b{k}", "y")]
    dag = pb.Dag(sorted({name for arc in arcs for name in arc}), arcs)
    assert len(dag.adjustment_sets("x", "y")) == 16
    monkeypatch.setattr(module, "_MOST_SETS", 15)
    with pytest.raises(pb.GraphError, match=r"more than 15 sets.*among.*adjustment_set"):
        dag.adjustment_sets("x", "y")
    assert dag.adjustment_set("x", "y") == ("a0", "a1", "a2", "a3")
    names = [f"b{k}" for k in range(4)]
    assert dag.adjustment_sets("x", "y", among=names) == (tuple(names),)


def test_a_line_of_many_nodes_is_quick() -> None:
    names = [f"n{i}" for i in range(300)]
    dag = pb.Dag(names, [*itertools.pairwise(names), ("n0", "n299")])
    assert len(dag.adjustment_sets("n298", "n299")) == 298
    assert dag.d_separated("n0", "n200", "n100")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda dag: dag.adjustment_set("a", "a"), "cause and effect are both 'a'"),
        (lambda dag: dag.adjustment_sets("a", "e"), "no node is called 'e'"),
        (lambda dag: dag.adjustment_set("a", "b", among=["e"]), "no node is called 'e'"),
        (lambda dag: dag.is_adjustment_set("a", "b", given="a"), "'a' is in given, and is the"),
        (lambda dag: dag.markov_blanket("e"), "no node is called 'e'"),
    ],
)
def test_names_that_do_not_fit(ask, words: str) -> None:
    with pytest.raises(pb.GraphError, match=words):
        ask(pb.Dag(NAMES))
