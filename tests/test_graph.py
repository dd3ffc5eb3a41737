"""Laws of graphs, and agreement with networkx, bnlearn and a second CPDAG algorithm."""

import dataclasses
import itertools
import json
import pickle
import re
import sys
from pathlib import Path

import hypothesis.strategies as st
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from poolbn.errors import GraphError, MissingPackageError
from poolbn.graph.dag import Cpdag, Dag, as_dag

REFERENCE = json.loads((Path(__file__).parent / "reference" / "cpdag.json").read_text())
CASES = [pytest.param(case, id=case["id"]) for case in REFERENCE["cases"]]

LAW = settings(derandomize=True, deadline=None)  # the same examples in every run

PLAIN_NAMES = st.text(st.characters(exclude_characters="[]|:"), min_size=1, max_size=6)
ANY_NAMES = st.one_of(
    st.text(min_size=1, max_size=6),
    st.text('ab "\\\n\r\t;{}[]<>/*#->|:=', min_size=1, max_size=6),
    st.sampled_from(
        ["node", "edge", "graph", "strict", "digraph", "Größe in €", "体重", "\\N", "1"]
    ),
)


@st.composite
def dags(draw, names=PLAIN_NAMES, max_size=7):
    nodes = draw(st.lists(names, max_size=max_size, unique=True))
    order = draw(st.permutations(nodes))
    pairs = list(itertools.combinations(order, 2))
    keep = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return Dag(nodes, itertools.compress(pairs, keep))


def random_dag(rng, size, probability):
    names = [f"v{i}" for i in range(size)]
    order = rng.permutation(size)
    return Dag(
        names,
        [
            (names[a], names[b])
            for a, b in itertools.combinations(order, 2)
            if rng.random() < probability
        ],
    )


def random_dags(seed, size, count):
    rng = np.random.default_rng(seed)
    return [random_dag(rng, size, rng.uniform(0.1, 0.9)) for _ in range(count)]


def unordered(pairs):
    return {frozenset(pair) for pair in pairs}


# Laws


@LAW
@given(dags())
def test_the_topological_order_has_parents_first(dag):
    position = {name: i for i, name in enumerate(dag.topological_order())}
    assert sorted(position) == sorted(dag.nodes)
    assert all(position[parent] < position[child] for parent, child in dag.arcs)


def test_the_topological_order_takes_the_first_node_that_is_free():
    dag = Dag(["d", "c", "b", "a"], [("c", "d"), ("a", "b")])
    assert dag.topological_order() == ("c", "d", "a", "b")


@LAW
@given(dags())
def test_ancestors_and_descendants_are_the_transitive_closure(dag):
    reach = dag.to_adjacency() > 0
    for _ in dag.nodes:
        reach = reach | (reach @ reach)
    for i, name in enumerate(dag.nodes):
        assert dag.ancestors(name) == tuple(np.array(dag.nodes, dtype=object)[reach[:, i]])
        assert dag.descendants(name) == tuple(np.array(dag.nodes, dtype=object)[reach[i]])


@LAW
@given(dags())
def test_arcs_are_sorted_and_agree_with_parents_and_children(dag):
    assert dag.arcs == tuple((p, node) for node in dag.nodes for p in dag.parents(node))
    assert set(dag.arcs) == {(node, c) for node in dag.nodes for c in dag.children(node)}
    for node in dag.nodes:
        assert list(dag.parents(node)) == sorted(dag.parents(node), key=dag.nodes.index)
        assert list(dag.children(node)) == sorted(dag.children(node), key=dag.nodes.index)


@LAW
@given(dags(), st.randoms(use_true_random=False))
def test_equality_and_hash_ignore_order_and_repeated_arcs(dag, random):
    nodes, arcs = list(dag.nodes), [*dag.arcs, *dag.arcs[:2]]
    random.shuffle(nodes)
    random.shuffle(arcs)
    other = Dag(nodes, arcs)
    assert other.nodes == tuple(nodes)
    assert (other, hash(other)) == (dag, hash(dag))
    assert (other.cpdag(), hash(other.cpdag())) == (dag.cpdag(), hash(dag.cpdag()))


@LAW
@given(dags())
def test_another_arc_or_node_makes_another_graph(dag):
    assert dag != Dag([*dag.nodes, "a new node"], dag.arcs)
    assert dag != "a graph"
    assert dag.cpdag() != dag
    if dag.arcs:
        assert dag != Dag(dag.nodes, dag.arcs[1:])
        assert dag.cpdag() != Dag(dag.nodes, dag.arcs[1:]).cpdag()


def test_graphs_do_not_change_and_can_be_pickled():
    dag = Dag(["a", "b", "c"], [("a", "c"), ("b", "c")])
    for graph in (dag, dag.cpdag()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            graph.nodes = ()
        assert pickle.loads(pickle.dumps(graph)) == graph


def test_names_may_come_from_numpy_and_pandas():
    frame = pd.DataFrame(columns=["a", "b"])
    dag = Dag(frame.columns, np.array([["a", "b"]]))
    assert dag == Dag(["a", "b"], [["a", "b"]])
    assert {type(name) for arc in dag.arcs for name in arc} == {str}
    assert {type(name) for name in Dag(np.array(["a", "b"])).nodes} == {str}


def test_graphs_print_their_arcs():
    assert repr(Dag(["C", "A", "B"], [("A", "B"), ("B", "C")])) == "Dag('[A][B|A][C|B]')"
    assert repr(Dag(["x:y"])) == "Dag: 1 node, 0 arcs"  # no model string can hold it
    assert str(Dag("[A][B|A][C|A:B]")) == "Dag: 3 nodes, 3 arcs\n  A -> B, A -> C, B -> C"
    names = [f"variable{i}" for i in range(30)]
    line = Dag(names, itertools.pairwise(names))
    head, *lines = repr(line).splitlines()
    assert head == "Dag: 30 nodes, 29 arcs"
    assert " ".join(text.strip() for text in lines).split(", ") == [
        f"{a} -> {b}" for a, b in itertools.pairwise(names)
    ]
    assert all(50 < len(text) <= 88 for text in lines[:-1])
    head, *lines = repr(line.cpdag()).splitlines()
    assert head == "Cpdag: 30 nodes, 0 directed and 29 undirected edges"
    assert "".join(lines).count(" -- ") == 29
    full = Dag(names, itertools.combinations(names, 2))
    assert repr(full).count("->") == 40
    assert repr(full).endswith(f"... {30 * 29 // 2 - 40} more")
    collider = Dag.from_modelstring("[A][B][C|A:B][D][E|D]")
    assert repr(collider.cpdag()) == "Cpdag(5 nodes: A -> C, B -> C, D -- E)"
    assert repr(Cpdag(["A"])) == "Cpdag(1 node: no edges)"


@given(dags())
def test_what_a_graph_prints_makes_it_again(dag):
    assert Dag(dag.to_modelstring()) == dag
    if len(text := repr(dag)) <= 88 and text.startswith("Dag('"):
        assert eval(text, {"Dag": Dag}) == dag


def test_nodes_in_one_string_are_no_model_string():
    with pytest.raises(GraphError, match="list of names"):
        Dag("AB")
    with pytest.raises(GraphError, match="list of names"):
        Dag("[A][B]", [("A", "B")])


# Agreement with networkx


@pytest.mark.parametrize("size", [2, 4, 7])
def test_d_separation_agrees_with_networkx(size):
    rng = np.random.default_rng(size)
    answers = []
    for dag in random_dags(size, size, 60):
        graph = dag.to_networkx()
        for _ in range(10):
            # Each node goes into x, y, given or none of them; x and y get one at least.
            role = rng.integers(0, 4, size)
            role[rng.permutation(size)[:2]] = [0, 1]
            x, y, z = (
                {n for n, r in zip(dag.nodes, role, strict=True) if r == k} for k in range(3)
            )
            answers.append(dag.d_separated(x, y, z))
            assert answers[-1] == nx.is_d_separator(graph, x, y, z)
    assert {True, False} == set(answers)


def test_d_separation_takes_a_name_or_names():
    dag = Dag.from_modelstring("[ab][c][d|ab:c][e|d]")
    assert dag.d_separated("ab", "c")
    assert not dag.d_separated("ab", ["c"], given="e")
    assert dag.d_separated(["ab"], ("e",), given={"d"})


@LAW
@given(dags())
def test_the_moral_graph_and_the_skeleton_agree_with_networkx(dag):
    graph = dag.to_networkx()
    assert unordered(dag.moral()) == unordered(nx.moral_graph(graph).edges)
    assert unordered(dag.skeleton()) == unordered(graph.to_undirected().edges)
    assert len(dag.moral()) == len(unordered(dag.moral()))
    assert len(dag.skeleton()) == len(dag.arcs)


@LAW
@given(dags())
def test_v_structures_agree_with_networkx(dag):
    found = {(frozenset((a, b)), child) for a, child, b in dag.v_structures()}
    peer = nx.algorithms.dag.v_structures(dag.to_networkx())
    assert found == {(frozenset((a, b)), child) for a, child, b in peer}


# Equivalence classes


def chickering_cpdag(dag):
    """Chickering (1995), "A transformational characterization": order edges, label edges.

    Returns the compelled arcs. Shares no code and no idea with Meek's rules.
    """
    position = {name: i for i, name in enumerate(dag.topological_order())}
    parents = {name: set(dag.parents(name)) for name in dag.nodes}
    # Children in topological order; for each its parents, those last in the order first.
    ordered = sorted(dag.arcs, key=lambda arc: (position[arc[1]], -position[arc[0]]))
    compelled = {}
    for x, y in ordered:
        if (x, y) in compelled:
            continue
        done = False
        for w in parents[x]:
            if not compelled[w, x]:
                continue
            if w not in parents[y]:
                compelled |= {(p, y): True for p in parents[y]}
                done = True
                break
            compelled[w, y] = True
        if done:
            continue
        label = any(z != x and z not in parents[x] for z in parents[y])
        compelled |= {(p, y): label for p in parents[y] if (p, y) not in compelled}
    return {arc for arc, forced in compelled.items() if forced}


@pytest.mark.parametrize("size", range(3, 9))
def test_the_cpdag_agrees_with_chickering_on_random_graphs(size):
    for dag in random_dags(size, size, 400):
        cpdag = dag.cpdag()
        compelled = chickering_cpdag(dag)
        assert set(cpdag.directed) == compelled
        assert unordered(cpdag.undirected) == unordered(set(dag.arcs) - compelled)


def test_the_cpdag_of_a_large_graph_agrees_with_chickering():
    dag = random_dag(np.random.default_rng(1), 300, 4 / 300)
    assert len(dag.arcs) > 500
    assert set(dag.cpdag().directed) == chickering_cpdag(dag)


@pytest.mark.parametrize(("size", "graphs", "classes"), [(3, 25, 11), (4, 543, 185)])
def test_the_cpdag_is_what_all_equivalent_graphs_share(size, graphs, classes):
    # The numbers of graphs and of classes are those of Robinson (1973) and of Gillispie and
    # Perlman (2001).
    names = "abcd"[:size]
    pairs = list(itertools.combinations(names, 2))
    members = {}
    for kinds in itertools.product([None, 1, -1], repeat=len(pairs)):
        arcs = {pair[::k] for pair, k in zip(pairs, kinds, strict=True) if k}
        if not nx.is_directed_acyclic_graph(nx.DiGraph(arcs)):
            continue
        skeleton = frozenset(unordered(arcs))
        colliders = frozenset(
            (frozenset((a, b)), c)
            for (a, c), (b, d) in itertools.combinations(arcs, 2)
            if c == d and frozenset((a, b)) not in skeleton
        )
        members.setdefault((skeleton, colliders), []).append(arcs)
    assert sum(map(len, members.values())) == graphs
    assert len(members) == classes
    for (skeleton, _), equivalent in members.items():
        shared = set.intersection(*equivalent)
        for arcs in equivalent:
            cpdag = Dag(list(names), arcs).cpdag()
            assert set(cpdag.directed) == shared
            assert unordered(cpdag.undirected) == skeleton - unordered(shared)


@LAW
@given(dags())
def test_a_cpdag_keeps_skeleton_and_v_structures_and_extends_to_an_equivalent_graph(dag):
    cpdag = dag.cpdag()
    assert unordered([*cpdag.directed, *cpdag.undirected]) == unordered(dag.arcs)
    assert set(cpdag.directed) <= set(dag.arcs)
    for a, child, b in dag.v_structures():
        assert {(a, child), (b, child)} <= set(cpdag.directed)
    extension = cpdag.extension()
    assert extension.nodes == dag.nodes
    assert set(extension.v_structures()) == set(dag.v_structures())
    assert extension.cpdag() == cpdag


def test_an_extension_exists_exactly_when_some_direction_of_the_edges_is_one():
    # All graphs on four nodes in which each pair is apart, an arc, or an edge.
    names, outcomes = ["a", "b", "c", "d"], []
    pairs = list(itertools.combinations(names, 2))
    for kinds in itertools.product([None, 1, -1, 0], repeat=len(pairs)):
        joined = [(pair, k) for pair, k in zip(pairs, kinds, strict=True) if k is not None]
        partial = Cpdag(
            names, [pair[::k] for pair, k in joined if k], [pair for pair, k in joined if k == 0]
        )
        colliders = {
            (frozenset((a, b)), c)
            for (a, c), (b, d) in itertools.combinations(partial.directed, 2)
            if c == d and frozenset((a, b)) not in unordered(pair for pair, _ in joined)
        }
        try:
            extension = partial.extension()
        except GraphError:
            extension = None
        else:
            found = {(frozenset((a, b)), c) for a, c, b in extension.v_structures()}
            assert found == colliders
            assert set(partial.directed) <= set(extension.arcs)
            assert unordered(extension.arcs) == unordered(pair for pair, _ in joined)
        outcomes.append((partial, extension))
    without = {partial for partial, extension in outcomes if extension is None}
    # What every graph on four nodes becomes when some of its arcs lose their direction and no
    # v-structure is lost: exactly these have an extension.
    assert without.isdisjoint(partials_of_all_dags(names))
    assert len(without) == len(outcomes) - len(partials_of_all_dags(names))


def partials_of_all_dags(names):
    pairs = list(itertools.combinations(names, 2))
    partials = set()
    for kinds in itertools.product([None, 1, -1], repeat=len(pairs)):
        arcs = [pair[::k] for pair, k in zip(pairs, kinds, strict=True) if k]
        if not nx.is_directed_acyclic_graph(nx.DiGraph(arcs)):
            continue
        dag = Dag(names, arcs)
        fixed = {arc for a, child, b in dag.v_structures() for arc in [(a, child), (b, child)]}
        loose = [arc for arc in arcs if arc not in fixed]
        for keep in itertools.product([True, False], repeat=len(loose)):
            kept = fixed.union(itertools.compress(loose, keep))
            partials.add(Cpdag(names, kept, set(arcs) - kept))
    return partials


# bnlearn. Its cpdag() looks at the structure alone, also for the conditional Gaussian networks of
# clgaussian.test: in clgaussian.test-random8 the edge between B (discrete) and E (continuous) is
# undirected, although only B -> E is a legal arc. So all 48 cases apply.


def test_the_reference_has_all_cases():
    assert len(CASES) == 48


@pytest.mark.parametrize("case", CASES)
def test_the_cpdag_is_that_of_bnlearn(case):
    cpdag = Dag(case["nodes"], case["arcs"]).cpdag()
    both_ways = [*cpdag.undirected, *((b, a) for a, b in cpdag.undirected)]
    assert {*cpdag.directed, *both_ways} == {tuple(arc) for arc in case["cpdag_arcs"]}


@pytest.mark.parametrize("case", CASES)
def test_model_strings_are_those_of_bnlearn(case):
    dag = Dag(case["nodes"], case["arcs"])
    assert dag.to_modelstring() == case["modelstring"]
    assert Dag.from_modelstring(case["modelstring"]) == dag


# Other formats


def read_dot(text):
    """The graph of statements such as "a" -> "b"; on separate lines; JSON escapes what DOT does."""
    lines = [re.findall(r'"(?:\\.|[^"\\])*"', line) for line in text.split("\n")[1:-2]]
    names = [[json.loads(name, strict=False) for name in line] for line in lines]
    return Dag(
        [name for name, *rest in names if not rest], [tuple(pair) for pair in names if pair[1:]]
    )


@LAW
@given(dags(ANY_NAMES))
def test_matrices_packages_and_dot_give_the_graph_back(dag):
    copies = [
        Dag.from_adjacency(dag.to_adjacency(), dag.nodes),
        Dag.from_adjacency(dag.to_adjacency() * -0.5, dag.nodes),
        Dag.from_networkx(dag.to_networkx()),
        Dag.from_igraph(dag.to_igraph()),
        read_dot(dag.to_dot()),
    ]
    for copy in copies:
        assert (copy, copy.nodes) == (dag, dag.nodes)


@LAW
@given(dags(PLAIN_NAMES))
def test_model_strings_give_the_graph_back(dag):
    assert Dag.from_modelstring(dag.to_modelstring()) == dag
    assert Dag.from_modelstring(dag.to_modelstring().replace("][", "]\n [")) == dag


def test_the_matrix_has_parents_in_rows():
    matrix = Dag(["a", "b", "c"], [("a", "c")]).to_adjacency()
    assert matrix.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_parallel_edges_of_a_multigraph_count_once():
    assert Dag.from_networkx(nx.MultiDiGraph([("a", "b"), ("a", "b")])).arcs == (("a", "b"),)
    twice = igraph.Graph(2, [(0, 1), (0, 1)], directed=True, vertex_attrs={"name": ["a", "b"]})
    assert Dag.from_igraph(twice).arcs == (("a", "b"),)


def test_dot_has_one_line_for_each_node_and_arc():
    lines = Dag(["a\nb", 'say "c\\d"'], [("a\nb", 'say "c\\d"')]).to_dot().splitlines()
    assert lines[1:-1] == [r'  "a\nb";', r'  "say \"c\\d\"";', r'  "a\nb" -> "say \"c\\d\"";']


def test_a_cpdag_is_written_without_arrow_heads_where_it_has_no_direction():
    cpdag = Dag.from_modelstring("[A][B][C|A:B][D][E|D]").cpdag()
    lines = cpdag.to_dot().splitlines()
    assert '  "A" -> "C";' in lines
    assert '  "D" -> "E" [dir=none];' in lines


def test_a_graph_that_has_arcs_keeps_them() -> None:
    """Whatever form it comes in."""
    dag = Dag(["b", "a", "c"], [("a", "b"), ("a", "c")])
    frame = pd.DataFrame(dag.to_adjacency(), dag.nodes, dag.nodes)
    for form in (dag.to_networkx(), dag.to_igraph(), frame, list(dag.arcs), dag.to_modelstring()):
        assert Dag(form) == dag
    for form in (dag.to_networkx(), dag.to_igraph(), frame):
        assert Dag(form).nodes == dag.nodes
        assert as_dag(form, "abc") == dag
    assert Dag([["a", "b"]]).arcs == (("a", "b"),)
    assert Dag(["a -> b"], []).nodes == ("a -> b",)
    with pytest.raises(GraphError, match="cycle"):
        Dag([("a", "b"), ("b", "a")])


@pytest.mark.parametrize("package", ["networkx", "igraph"])
def test_a_missing_package_is_named_with_its_cure(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"{package}.*pip install poolbn\[graphs\]"):
        getattr(Dag(["a"]), f"to_{package}")()


# as_dag


def test_as_dag_takes_graphs_pairs_and_model_strings():
    nodes, arcs = ["a", "b", "c"], [("b", "a")]
    for value in (Dag(["c", "b", "a"], arcs), arcs, iter(arcs), "[c][b][a|b]", np.array(arcs)):
        dag = as_dag(value, nodes)
        assert (dag.nodes, dag.arcs) == (("a", "b", "c"), (("b", "a"),))
    assert as_dag([], nodes) == Dag(nodes)


# Errors

ABC = ["age", "bmi", "weight"]
BAD = {
    "a name twice": (lambda: Dag(["age", "bmi", "age"]), "node 'age' is named twice"),
    "a number": (lambda: Dag(["age", 3]), "strings, got 3 of type int"),
    "an empty name": (lambda: Dag(["age", ""]), "node number 2 is empty"),
    "a string of names": (lambda: Dag("AB"), "nodes alone are a list of names"),
    "an unknown node": (
        lambda: Dag(ABC, [("agee", "bmi")]),
        "'agee' in the arc agee -> bmi is not a node; did you mean 'age'?",
    ),
    "an unlike node": (lambda: Dag(ABC, [("age", "X")]), "known are: age, bmi, weight"),
    "a number in an arc": (lambda: Dag(ABC, [("age", 1)]), "'1' in the arc age -> 1 is not a node"),
    "three in an arc": (lambda: Dag(ABC, [("age", "bmi", "weight")]), "an arc is a pair of names"),
    "a string as an arc": (lambda: Dag(["a", "b"], ["ab"]), "an arc is a pair of names"),
    "a set as an arc": (lambda: Dag(["a", "b"], [{"a", "b"}]), "an arc is a pair of names"),
    "a loop": (lambda: Dag(ABC, [("bmi", "bmi")]), "bmi -> bmi joins a node to itself"),
    "a cycle of two": (
        lambda: Dag(ABC, [("weight", "bmi"), ("bmi", "weight")]),
        "cycle: bmi -> weight -> bmi; remove or reverse",
    ),
    "a cycle and more": (
        lambda: Dag(list("abcde"), [tuple(arc) for arc in ("ea", "bc", "cd", "db", "de")]),
        "cycle: b -> c -> d -> b;",
    ),
    "parents of no node": (lambda: Dag(ABC).parents("bmmi"), "did you mean 'bmi'?"),
    "separated from no node": (lambda: Dag(ABC).d_separated("age", "wait"), "no node is called"),
    "separated from itself": (
        lambda: Dag(ABC).d_separated("age", ["bmi"], given=["bmi"]),
        "'bmi' is in two of x, y and given",
    ),
    "a matrix of another shape": (
        lambda: Dag.from_adjacency(np.zeros((2, 3)), ABC),
        "shape (2, 3), but 3 nodes need (3, 3)",
    ),
    "a matrix of words": (lambda: Dag.from_adjacency([["x"]], ["a"]), "not a matrix of numbers"),
    "a ragged matrix": (lambda: Dag.from_adjacency([[0], [0, 1]], ["a"]), "matrix of numbers"),
    "a matrix with a hole": (
        lambda: Dag.from_adjacency([[0, np.nan], [0, 0]], ["a", "b"]),
        "NaN) in row 0, column 1",
    ),
    "no networkx graph": (lambda: Dag.from_networkx([]), "expected a networkx DiGraph, got list"),
    "arcs as text": (lambda: Dag(["a -> b"]), "pairs, such as pb.Dag([('age', 'bmi')])"),
    "a frame of rows": (
        lambda: Dag(pd.DataFrame({"a": [0], "b": [1]})),
        "rows have the names of its",
    ),
    "an undirected graph": (lambda: Dag(nx.Graph([("a", "b")])), "is undirected"),
    "a dict of numbers": (lambda: Dag({"a": 1}), "has a list of its parents, as in {'bmi'"),
    "a graph as nodes": (lambda: Cpdag(nx.DiGraph([("a", "b")])), "got a DiGraph; pb.Dag"),
    "an undirected networkx graph": (lambda: Dag.from_networkx(nx.Graph()), "is undirected"),
    "numbers in networkx": (lambda: Dag.from_networkx(nx.DiGraph([(1, 2)])), "strings, got 1"),
    "no igraph graph": (lambda: Dag.from_igraph(nx.DiGraph()), "expected an igraph Graph"),
    "an undirected igraph graph": (lambda: Dag.from_igraph(igraph.Graph()), "is undirected"),
    "an igraph graph without names": (
        lambda: Dag.from_igraph(igraph.Graph(2, directed=True)),
        "graph.vs['name'] =",
    ),
    "edges twice": (
        lambda: Cpdag(ABC, [("age", "bmi")], [("bmi", "age")]),
        "'age' and 'bmi' are joined twice",
    ),
    "both directions": (lambda: Cpdag(ABC, [("age", "bmi"), ("bmi", "age")]), "joined twice"),
    "an unknown node in an edge": (
        lambda: Cpdag(ABC, undirected=[("age", "X")]),
        "'X' in the edge age -- X is not a node",
    ),
    "no extension": (
        lambda: Cpdag(list("abcde"), [], [*itertools.pairwise("abcda")]).extension(),
        "the trouble is among a, b, c, d",
    ),
    "a colon for a model string": (
        lambda: Dag(["a", "log:b"]).to_modelstring(),
        "node 'log:b' contains ':'",
    ),
}

BAD_MODELSTRINGS = {
    "A": "character 1: expected '[' but found 'A'",
    "[A] x": "character 5: expected '[' but found 'x'",
    "[A][B|A": "character 4: this '[' is never closed",
    "[A[B]": "character 1: this '[' is never closed",
    "[A][B|A|A]": "character 4: write one node, one '|'",
    "[A:B]": "character 1: write one node",
    "[A][]": "character 4: a name is empty in []",
    "[A][B|]": "character 4: a name is empty in [B|]",
    "[A][B|A:]": "character 4: a name is empty",
    "[A][B|A][A]": "character 9: node 'A' is described a second time",
    "[age][B|ages]": "character 6: 'ages', a parent of 'B', has no brackets of its own; did you "
    "mean 'age'?",
    "[A|B][B|A]": "cycle: A -> B -> A",
}

BAD_VALUES = {
    "a number": (5, "a Dag, arcs as pairs of names, or a text such as '[age][bmi|age]'"),
    "nothing": (None, "got NoneType"),
    "another string": ("age of bmi", "no graph that poolbn knows; write it as '[age][bmi|age]'"),
    "an unknown node": (Dag([*ABC, "weigth"]), "has the node 'weigth'; did you mean 'weight'?"),
    "a missing node": ("[age][bmi]", "the graph lacks 'weight'"),
    "an unknown name": ([("age", "bmmi")], "'bmmi' in the arc age -> bmmi is not a node"),
    "names": (["age", "bmi"], "an arc is a pair of names"),
}


def check_error(call, fragment):
    with pytest.raises(GraphError) as caught:
        call()
    assert fragment in str(caught.value)


@pytest.mark.parametrize(("call", "fragment"), BAD.values(), ids=BAD.keys())
def test_bad_graphs_are_explained(call, fragment):
    check_error(call, fragment)


@pytest.mark.parametrize(("text", "fragment"), BAD_MODELSTRINGS.items())
def test_bad_model_strings_are_explained(text, fragment):
    check_error(lambda: Dag.from_modelstring(text), fragment)


@pytest.mark.parametrize(("value", "fragment"), BAD_VALUES.values(), ids=BAD_VALUES.keys())
def test_what_is_no_graph_is_explained(value, fragment):
    check_error(lambda: as_dag(value, ABC), fragment)
