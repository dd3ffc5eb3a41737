"""Directed acyclic graphs over named nodes, and their equivalence classes."""

from __future__ import annotations

import heapq
import importlib
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.arguments import LABEL, LIST, NAMES, TEXT, check_arguments, is_list, names_of
from poolbn.arrays import Flags, Integers
from poolbn.errors import GraphError, GraphWarning, MissingPackageError, nearest
from poolbn.graph import equivalence, separation
from poolbn.graph.formats import (
    dot_arc,
    dot_name,
    is_igraph,
    is_networkx,
    read_adjacency,
    read_graph,
    read_igraph,
    read_networkx,
    read_object,
    write_dot,
    write_modelstring,
)
from poolbn.graph.grammars import (
    EXAMPLES,
    Drawing,
    read_modelstring,
    read_text,
    write_dagitty,
    write_lavaan,
)
from poolbn.graph.pairs import (
    Pair,
    checked_nodes,
    checked_pairs,
    grouped,
    reached,
    sorted_arcs,
    sorted_edges,
)
from poolbn.wording import counted, shortened, visible

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_REPR_LENGTH = 88
_SHOWN = 40  # arcs that a printed graph lists
_MOST_SETS = 10_000  # that cause and effect can be adjusted for


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Dag:
    """A directed acyclic graph. It never changes, and can be a key of a dict.

    Two graphs are equal when they have the same nodes and the same arcs, in whatever order.

    Args:
        nodes: the names, each once; or what has the arcs too: a text, as for `from_string`, pairs
            (parent, child), a dict with the parents of each node, a networkx or igraph graph, or a
            pandas DataFrame whose rows and columns are the nodes, with 1 for an arc from the row's
            node to the column's.
        arcs: pairs (parent, child). An arc given twice counts once.

    Attributes:
        nodes: the names, in the order given.
        arcs: pairs (parent, child), sorted by child and then by parent in the order of the nodes.

    Raises:
        GraphError: a name is given twice or unknown, or the arcs have a cycle.

    Examples:
        >>> dag = Dag(["age", "bmi", "weight"], [("age", "bmi"), ("bmi", "weight")])
        >>> dag, dag == Dag("[age][bmi|age][weight|bmi]")
        (Dag('[age][bmi|age][weight|bmi]'), True)
        >>> print(dag)
        Dag: 3 nodes, 2 arcs
          age -> bmi, bmi -> weight
        >>> dag == Dag([("age", "bmi"), ("bmi", "weight")]) == Dag(dag.to_networkx())
        True
        >>> dag.ancestors("weight")
        ('age', 'bmi')
        >>> dag.d_separated("age", "weight", given="bmi")
        True
        >>> dag.cpdag()
        Cpdag(3 nodes: age -- bmi, bmi -- weight)
    """

    nodes: tuple[str, ...]
    arcs: tuple[Pair, ...]

    def __init__(self, nodes: Any, arcs: Iterable[Pair] = ()) -> None:
        no_arcs = isinstance(arcs, tuple) and not arcs
        if no_arcs and (found := read_graph(nodes)) is not None:
            nodes, arcs = _settled(found)
        index = checked_nodes(nodes)
        object.__setattr__(self, "nodes", tuple(index))
        object.__setattr__(self, "arcs", sorted_arcs(checked_pairs(arcs, index, "arc"), index))
        if len(self._order) < len(self.nodes):
            cycle = " -> ".join(self._cycle())
            raise GraphError(f"the arcs have a cycle: {cycle}; remove or reverse one of them")

    def parents(self, node: str) -> tuple[str, ...]:
        """The nodes with an arc into `node`, in the order of the nodes.

        Examples:
            >>> Dag(["A", "B", "C"], [("A", "C"), ("B", "C")]).parents("C")
            ('A', 'B')
        """
        return self._parents[self._known(node)]

    def children(self, node: str) -> tuple[str, ...]:
        """The nodes that `node` has an arc into, in the order of the nodes.

        Examples:
            >>> Dag(["A", "B", "C"], [("A", "B"), ("A", "C")]).children("A")
            ('B', 'C')
        """
        return self._children[self._known(node)]

    def ancestors(self, node: str) -> tuple[str, ...]:
        """All nodes from which arcs lead to `node`, in the order of the nodes.

        Examples:
            >>> Dag(["A", "B", "C"], [("A", "B"), ("B", "C")]).ancestors("C")
            ('A', 'B')
        """
        return self._sorted(reached([self._known(node)], self._parents) - {node})

    def descendants(self, node: str) -> tuple[str, ...]:
        """All nodes to which arcs lead from `node`, in the order of the nodes.

        Examples:
            >>> Dag(["A", "B", "C"], [("A", "B"), ("B", "C")]).descendants("A")
            ('B', 'C')
        """
        return self._sorted(reached([self._known(node)], self._children) - {node})

    def topological_order(self) -> tuple[str, ...]:
        """The nodes, parents before children; where there is a choice, as in `nodes`.

        Examples:
            >>> Dag(["A", "B", "C"], [("C", "A"), ("A", "B")]).topological_order()
            ('C', 'A', 'B')
        """
        return self._order

    def skeleton(self) -> tuple[Pair, ...]:
        """The pairs of nodes with an arc between them, each pair in the order of the nodes.

        Examples:
            >>> Dag(["A", "B", "C"], [("C", "A"), ("A", "B")]).skeleton()
            (('A', 'B'), ('A', 'C'))
        """
        return sorted_edges(self.arcs, self._index)

    def moral(self) -> tuple[Pair, ...]:
        """The edges of the moral graph: the skeleton, and every two parents of one child.

        Examples:
            >>> Dag(["A", "B", "C"], [("A", "C"), ("B", "C")]).moral()
            (('A', 'B'), ('A', 'C'), ('B', 'C'))
        """
        married = [
            (p, q) for parents in self._parents.values() for p in parents for q in parents if p != q
        ]
        return sorted_edges([*self.arcs, *married], self._index)

    def v_structures(self) -> tuple[tuple[str, str, str], ...]:
        """All a -> child <- b with no arc between a and b, as (a, child, b).

        Examples:
            >>> Dag(["A", "B", "C"], [("A", "C"), ("B", "C")]).v_structures()
            (('A', 'C', 'B'),)
        """
        joined = set(self.skeleton())
        return tuple(
            (a, child, b)
            for child, parents in self._parents.items()
            for i, a in enumerate(parents)
            for b in parents[i + 1 :]
            if (a, b) not in joined
        )

    def d_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Whether the graph makes `x` and `y` independent given `given`.

        Args:
            x: a name or several.
            y: a name or several, none of them in `x`.
            given: a name or several, none of them in `x` or `y`.

        Examples:
            >>> collider = Dag(["A", "B", "C"], [("A", "C"), ("B", "C")])
            >>> collider.d_separated("A", "B"), collider.d_separated("A", "B", given="C")
            (True, False)
        """
        check_arguments(x=(x, NAMES), y=(y, NAMES), given=(given, NAMES))
        xs, ys, zs = (self._known_set(names) for names in (x, y, given))
        if both := (xs & ys) | (xs & zs) | (ys & zs):
            raise GraphError(
                f"{self._sorted(both)[0]!r} is in two of x, y and given, which must not overlap"
            )
        return separation.separated(xs, ys, zs, self._parents, self._children)

    def markov_blanket(self, node: str) -> tuple[str, ...]:
        """Parents, children and their other parents: given these, no other node matters to `node`.

        Examples:
            >>> Dag(["A", "B", "C", "D"], [("A", "C"), ("B", "C"), ("C", "D")]).markov_blanket("A")
            ('B', 'C')
        """
        children = self._children[self._known(node)]
        blanket = {*self._parents[node], *children}
        blanket.update(parent for child in children for parent in self._parents[child])
        return self._sorted(blanket - {node})

    def is_adjustment_set(self, cause: str, effect: str, given: str | Iterable[str] = ()) -> bool:
        """Whether adjusting for `given` leaves the effect of `cause` on `effect`, and only that.

        It blocks all back-door paths, and has no node on a directed path from the cause to the
        effect or below one. That is complete: other sets give wrong answers in some networks with
        this graph. Pearl's back-door criterion also rules out all other descendants of the cause.

        Args:
            cause: a name.
            effect: another one.
            given: a name or several, none of them the cause or the effect.

        Examples:
            >>> dag = Dag(["A", "B", "C"], [("A", "B"), ("A", "C"), ("B", "C")])
            >>> dag.is_adjustment_set("B", "C"), dag.is_adjustment_set("B", "C", given="A")
            (False, True)
        """
        check_arguments(given=(given, NAMES))
        ends, zs = self._two(cause, effect), self._known_set(given)
        if both := zs.intersection(ends):
            raise GraphError(f"{self._sorted(both)[0]!r} is in given, and is the cause or effect")
        arcs = self._parents, self._children
        if not zs <= separation.may_adjust(*ends, *arcs):
            return False
        left = separation.without_causal_arcs(*ends, *arcs)
        return separation.separated({cause}, {effect}, zs, *left)

    def adjustment_set(
        self, cause: str, effect: str, among: Iterable[str] | None = None
    ) -> tuple[str, ...] | None:
        """A set of nodes to adjust for, the nearest to the cause: those of its parents that matter.

        None of them can be left out. The set is empty where cause and effect have no back-door
        path that is open.

        Args:
            cause: a name.
            effect: another one.
            among: the nodes that may be used, such as those that were measured; all by default.

        Returns:
            The names, or None where no set will do: the effect is a parent of the cause (then the
            cause has no effect on it), or `among` lacks the nodes that it takes.

        Examples:
            >>> dag = Dag(["A", "B", "C", "D"], [("A", "B"), ("A", "C"), ("B", "C"), ("D", "B")])
            >>> dag.adjustment_set("B", "C")
            ('A',)
            >>> print(dag.adjustment_set("B", "A"), dag.adjustment_set("B", "C", among=["D"]))
            None None
        """
        found = self._separators(cause, effect, among, 0)
        return self._sorted(found[0]) if found else None

    def adjustment_sets(
        self, cause: str, effect: str, among: Iterable[str] | None = None
    ) -> tuple[tuple[str, ...], ...]:
        """All sets of nodes to adjust for that cannot be smaller, those with the fewest first.

        Args:
            cause: a name.
            effect: another one.
            among: the nodes that may be used, such as those that were measured; all by default.

        Returns:
            No sets where none will do, see `adjustment_set`; one without nodes where there is
            nothing to adjust for.

        Raises:
            GraphError: a name is no node, or there are more than 10000 sets.

        Examples:
            >>> dag = Dag.from_modelstring("[A][B|A][C|A][D|C:B]")
            >>> dag.adjustment_sets("B", "D")
            (('A',), ('C',))
        """
        found = self._separators(cause, effect, among, _MOST_SETS)
        if len(found) > _MOST_SETS:
            raise GraphError(
                f"there are more than {_MOST_SETS} sets to adjust for; name the nodes that you "
                "would use in among, or take the one of adjustment_set"
            )
        index = self._index
        sets = [self._sorted(one) for one in found]
        return tuple(sorted(sets, key=lambda one: (len(one), [index[name] for name in one])))

    def cpdag(self, experiments: Iterable[Iterable[str]] = ()) -> Cpdag:
        """The equivalence class: arcs that all equivalent graphs share, and the edges that vary.

        Args:
            experiments: for each the nodes that were set in it. Then graphs are equivalent that
                cannot be told apart by data from all of them and from one where nothing was set
                (Hauser and Bühlmann 2012).

        Raises:
            GraphError: a node is unknown.

        Examples:
            >>> Dag.from_modelstring("[A][B][C|A:B][D|C][E]").cpdag()
            Cpdag(5 nodes: A -> C, B -> C, C -> D)
            >>> Dag.from_modelstring("[A][B|A][C|B]").cpdag([["C"]])
            Cpdag(3 nodes: B -> C, A -- B)
        """
        check_arguments(experiments=(experiments, LIST))
        targets = [names_of("experiments", names) for names in experiments]
        for name in (name for own in targets for name in own):
            if name not in self._index:
                raise GraphError(f"no node is called {name!r}{nearest(name, self.nodes)}")
        apart = equivalence.set_apart(self.nodes, targets)
        directed, undirected = equivalence.completed(self.to_adjacency().astype(bool), apart)
        return Cpdag(self.nodes, self._named(directed), self._named(np.triu(undirected)))

    # Other formats

    @classmethod
    def from_adjacency(cls, matrix: ArrayLike, nodes: Iterable[str]) -> Dag:
        """The graph of a matrix in which `matrix[i, j] != 0` means node i -> node j.

        Examples:
            >>> Dag.from_adjacency([[0, 1], [0, 0]], ["A", "B"])
            Dag('[A][B|A]')
        """
        names = list(checked_nodes(nodes))
        return cls(*read_adjacency(matrix, names))

    @classmethod
    def from_networkx(cls, graph: Any) -> Dag:
        """The graph of a networkx.DiGraph whose nodes are strings.

        Examples:
            >>> import networkx
            >>> Dag.from_networkx(networkx.DiGraph([("A", "B")]))
            Dag('[A][B|A]')
        """
        if not is_networkx(graph):
            raise GraphError(f"expected a networkx DiGraph, got {type(graph).__name__}")
        return cls(*read_networkx(graph))

    @classmethod
    def from_igraph(cls, graph: Any) -> Dag:
        """The graph of a directed igraph.Graph with the vertex attribute "name".

        Examples:
            >>> import igraph
            >>> Dag.from_igraph(igraph.Graph.TupleList([("A", "B")], directed=True))
            Dag('[A][B|A]')
        """
        if not is_igraph(graph):
            raise GraphError(f"expected an igraph Graph, got {type(graph).__name__}")
        return cls(*read_igraph(graph))

    @classmethod
    def from_string(cls, text: str) -> Dag:
        """The graph that a text draws, in one of the grammars that people exchange graphs in.

        - bnlearn: "[age][bmi|age]";
        - dagitty and DOT: "dag { age -> bmi -> weight }", with names in double quotes where they
          have other characters than letters, digits, "_" and ".", and braces for several nodes.
          Marks such as [exposure] and positions are skipped;
        - lavaan and R: a formula "bmi ~ age + smoker" on each line;
        - BIF and Hugin's .net: the text of such a file.

        Arrows with two heads and correlated errors stand for causes that were not observed, which a
        network cannot hold: they are errors. Edges without a direction get one, with a warning.

        Args:
            text: the graph.

        Raises:
            GraphError: the text is none of these, or says what a network cannot hold.

        Warns:
            GraphWarning: the text says something that is not used.

        Examples:
            >>> Dag.from_string("dag { age [exposure] bmi [outcome] {age smoker} -> bmi }")
            Dag('[age][smoker][bmi|age:smoker]')
            >>> Dag.from_string("bmi ~ age + smoker") == Dag({"bmi": ["age", "smoker"]})
            True
        """
        check_arguments(text=(text, TEXT))
        return cls(*_settled(read_text(text)))

    @classmethod
    def from_modelstring(cls, text: str) -> Dag:
        """The graph of a bnlearn model string.

        Examples:
            >>> Dag.from_modelstring("[A][B|A][C|A:B]").arcs
            (('A', 'B'), ('A', 'C'), ('B', 'C'))
        """
        check_arguments(text=(text, TEXT))
        return cls(*read_modelstring(text))

    def to_adjacency(self) -> Integers:
        """A matrix (N, N) of zeros and ones, 1 at [i, j] for an arc from node i to node j.

        Examples:
            >>> Dag(["A", "B"], [("A", "B")]).to_adjacency()
            array([[0, 1],
                   [0, 0]])
        """
        a = np.zeros((len(self.nodes), len(self.nodes)), dtype=np.int64)
        for parent, child in self.arcs:
            a[self._index[parent], self._index[child]] = 1
        return a

    def to_networkx(self) -> Any:
        """A networkx.DiGraph.

        Examples:
            >>> list(Dag(["A", "B"], [("A", "B")]).to_networkx().edges)
            [('A', 'B')]
        """
        graph = _package("networkx").DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.arcs)
        return graph

    def to_igraph(self) -> Any:
        """A directed igraph.Graph; the names are the vertex attribute "name".

        Examples:
            >>> Dag(["A", "B"], [("A", "B")]).to_igraph().vs["name"]
            ['A', 'B']
        """
        return _package("igraph").Graph(
            n=len(self.nodes),
            edges=[(self._index[parent], self._index[child]) for parent, child in self.arcs],
            directed=True,
            vertex_attrs={"name": list(self.nodes)},
        )

    def to_dot(self) -> str:
        """A Graphviz digraph.

        Examples:
            >>> print(Dag(["age", "bmi"], [("age", "bmi")]).to_dot(), end="")
            digraph {
              "age";
              "bmi";
              "age" -> "bmi";
            }
        """
        return write_dot([*map(dot_name, self.nodes), *map(dot_arc, self.arcs)])

    def to_dagitty(self, exposure: str | None = None, outcome: str | None = None) -> str:
        """The text that dagitty reads, on its web page and in R.

        Args:
            exposure: the node to mark as the exposure; none by default.
            outcome: the node to mark as the outcome; none by default.

        Raises:
            GraphError: a name has a character that dagitty cannot hold, or is no node.

        Examples:
            >>> print(Dag(["age", "bmi"], [("age", "bmi")]).to_dagitty(exposure="age"), end="")
            dag {
              age [exposure]
              bmi
              age -> bmi
            }
        """
        marks = {"exposure": exposure, "outcome": outcome}
        marked = {self._known(node): mark for mark, node in marks.items() if node is not None}
        return write_dagitty(self.nodes, self.arcs, marked)

    def to_lavaan(self) -> str:
        """The formulas that lavaan reads, one for each node that has parents.

        Raises:
            GraphError: a name has a character that lavaan cannot hold.

        Examples:
            >>> print(Dag({"bmi": ["age"], "weight": ["age", "bmi"]}).to_lavaan(), end="")
            bmi ~ age
            weight ~ bmi + age
        """
        return write_lavaan(self._parents)

    def to_modelstring(self) -> str:
        """The model string that bnlearn prints: nodes by their distance from the roots.

        Examples:
            >>> Dag(["A", "B"], [("A", "B")]).to_modelstring()
            '[A][B|A]'
        """
        depth: dict[str, int] = {}
        for node in self._order:
            depth[node] = 1 + max((depth[p] for p in self._parents[node]), default=-1)
        order = sorted(self.nodes, key=lambda node: (depth[node], self._index[node]))
        return write_modelstring(order, self.arcs)

    # Python

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dag):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        try:
            text = f"Dag({self.to_modelstring()!r})"
        except GraphError:  # a name that a model string cannot hold
            text = ""
        return text if 0 < len(text) <= _REPR_LENGTH else str(self)

    def __str__(self) -> str:
        size = f"{counted(len(self.nodes), 'node')}, {counted(len(self.arcs), 'arc')}"
        return _printed(f"Dag: {size}", [f"{parent} -> {child}" for parent, child in self.arcs])

    @cached_property
    def _identity(self) -> tuple[frozenset[str], frozenset[Pair]]:
        return frozenset(self.nodes), frozenset(self.arcs)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.nodes)}

    @cached_property
    def _parents(self) -> dict[str, tuple[str, ...]]:
        return grouped(self.nodes, ((child, parent) for parent, child in self.arcs))

    @cached_property
    def _children(self) -> dict[str, tuple[str, ...]]:
        return grouped(self.nodes, self.arcs)

    @cached_property
    def _order(self) -> tuple[str, ...]:
        """The nodes in topological order, without those on cycles and below them."""
        waiting = [len(self._parents[name]) for name in self.nodes]
        free = [i for i, count in enumerate(waiting) if count == 0]
        order = []
        while free:
            name = self.nodes[heapq.heappop(free)]
            order.append(name)
            for child in self._children[name]:
                waiting[self._index[child]] -= 1
                if waiting[self._index[child]] == 0:
                    heapq.heappush(free, self._index[child])
        return tuple(order)

    def _cycle(self) -> list[str]:
        """A cycle, its first node again at its end. Only for graphs that turned out to have one."""
        left = set(self.nodes) - set(self._order)
        node = self._sorted(left)[0]
        path: dict[str, None] = {}
        while node not in path:  # each node that is left has a parent that is left
            path[node] = None
            node = next(p for p in self._parents[node] if p in left)
        walked = list(path)
        cycle = walked[walked.index(node) :][::-1]
        first = cycle.index(self._sorted(cycle)[0])
        return [*cycle[first:], *cycle[: first + 1]]

    def _known(self, node: str) -> str:
        check_arguments(node=(node, LABEL))
        if node not in self._index:
            raise GraphError(f"no node is called {node!r}{nearest(node, self.nodes)}")
        return node

    def _known_set(self, names: str | Iterable[str]) -> set[str]:
        check_arguments(names=(names, NAMES))
        return {self._known(name) for name in ([names] if isinstance(names, str) else names)}

    def _two(self, cause: str, effect: str) -> tuple[str, str]:
        if self._known(cause) == self._known(effect):
            raise GraphError(f"cause and effect are both {cause!r}; name two nodes")
        return cause, effect

    def _separators(
        self, cause: str, effect: str, among: Iterable[str] | None, most: int
    ) -> list[frozenset[str]]:
        check_arguments(among=(among, NAMES.or_none()))
        ends, arcs = self._two(cause, effect), (self._parents, self._children)
        able = separation.may_adjust(*ends, *arcs)
        if among is not None:
            able &= self._known_set(among)
        parents, _ = separation.without_causal_arcs(*ends, *arcs)
        return separation.separators(*ends, able, parents, most)

    def _sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=self._index.__getitem__))

    def _named(self, matrix: Flags) -> list[Pair]:
        return [(self.nodes[i], self.nodes[j]) for i, j in np.argwhere(matrix)]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Cpdag:
    """A graph with directed arcs and undirected edges: a class of equivalent `Dag`s.

    Usually made by `Dag.cpdag()`. The constructor checks names and pairs only, so that graphs which
    other programs learned can be held as well; `extension()` tells whether they stand for a `Dag`.
    Two are equal when they have the same nodes, arcs and edges, in whatever order.

    Args:
        nodes: the names, each once.
        directed: pairs (parent, child).
        undirected: pairs in either order.

    Attributes:
        nodes: the names, in the order given.
        directed: pairs (parent, child), sorted by child and then by parent in the order of nodes.
        undirected: pairs, sorted and each in the order of the nodes.

    Raises:
        GraphError: a name is given twice or unknown, or two nodes have more than one edge.

    Examples:
        >>> chain = Cpdag(["A", "B", "C"], undirected=[("A", "B"), ("B", "C")])
        >>> chain == Dag.from_modelstring("[C][B|C][A|B]").cpdag()
        True
        >>> chain.extension()
        Dag('[A][B|A][C|B]')
    """

    nodes: tuple[str, ...]
    directed: tuple[Pair, ...]
    undirected: tuple[Pair, ...]

    def __init__(
        self, nodes: Iterable[str], directed: Iterable[Pair] = (), undirected: Iterable[Pair] = ()
    ) -> None:
        check_arguments(directed=(directed, LIST), undirected=(undirected, LIST))
        index = checked_nodes(nodes)
        arcs = sorted_arcs(checked_pairs(directed, index, "arc"), index)
        edges = sorted_edges(checked_pairs(undirected, index, "edge"), index)
        for pair, count in Counter(map(frozenset, (*arcs, *edges))).items():
            if count > 1:
                a, b = sorted(pair)
                raise GraphError(
                    f"{a!r} and {b!r} are joined twice; give one arc, or one undirected edge"
                )
        object.__setattr__(self, "nodes", tuple(index))
        object.__setattr__(self, "directed", arcs)
        object.__setattr__(self, "undirected", edges)

    def extension(self) -> Dag:
        """A `Dag` with these arcs, the edges directed, and no other v-structures.

        Raises:
            GraphError: there is no such `Dag`.

        Examples:
            >>> Cpdag(["A", "B", "C"], [("A", "B")], [("B", "C")]).extension()
            Dag('[A][B|A][C|B]')
        """
        return Dag(self.nodes, equivalence.extended(self.nodes, self.directed, self.undirected))

    def to_dot(self) -> str:
        """A Graphviz digraph in which undirected edges have no arrow heads.

        Examples:
            >>> print(Cpdag(["A", "B"], [], [("A", "B")]).to_dot(), end="")
            digraph {
              "A";
              "B";
              "A" -> "B" [dir=none];
            }
        """
        edges = [f"{dot_arc(pair)} [dir=none]" for pair in self.undirected]
        return write_dot([*map(dot_name, self.nodes), *map(dot_arc, self.directed), *edges])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cpdag):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        edges = [f"{a} -> {b}" for a, b in self.directed]
        edges += [f"{a} -- {b}" for a, b in self.undirected]
        nodes = counted(len(self.nodes), "node")
        text = visible(f"Cpdag({nodes}: {', '.join(edges) or 'no edges'})")
        if len(text) <= _REPR_LENGTH:
            return text
        size = f"{len(self.directed)} directed and {len(self.undirected)} undirected edges"
        return _printed(f"Cpdag: {nodes}, {size}", edges)

    @cached_property
    def _identity(self) -> tuple[frozenset[Any], ...]:
        edges = frozenset(frozenset(pair) for pair in self.undirected)
        return frozenset(self.nodes), frozenset(self.directed), edges


def drawing_of(value: object) -> Drawing | None:
    """What a value says of a graph; None where it is no graph, and may be a list of arcs."""
    if isinstance(value, list | tuple) and any(isinstance(v, str) and "~" in v for v in value):
        value = "\n".join(map(str, value))  # formulas
    if isinstance(value, Drawing | str):
        return read_text(value) if isinstance(value, str) else value
    if isinstance(value, Cpdag):
        return Drawing(value.nodes, value.directed, value.undirected)
    own = getattr(value, "dag", value)  # of a network
    if isinstance(own, Dag):
        return Drawing(own.nodes, own.arcs)
    return read_object(value)


def _settled(drawing: Drawing) -> tuple[tuple[str, ...], Iterable[Pair]]:
    """Nodes and arcs; edges get a direction, and what is noted becomes a warning."""
    nodes, arcs = drawing.nodes, drawing.arcs
    for note in drawing.notes:
        warnings.warn(GraphWarning(note), stacklevel=4)
    if not drawing.edges:
        return nodes, arcs
    dag = Cpdag(nodes, arcs, drawing.edges).extension()
    edges = {frozenset(edge) for edge in drawing.edges}
    chosen = [f"{p} -> {c}" for p, c in dag.arcs if frozenset((p, c)) in edges]
    warnings.warn(
        GraphWarning(
            f"{counted(len(chosen), 'edge')} of the graph had no direction, and got one of those "
            f"that make no other v-structure: {shortened(chosen)}; give arcs to choose others"
        ),
        stacklevel=4,
    )
    return dag.nodes, dag.arcs


def as_dag(value: object, nodes: Iterable[str]) -> Dag:
    """The `Dag` over these nodes, in this order, that `value` stands for.

    What `Dag` converts, with exactly these nodes; or pairs (parent, child), a dict of parents, or
    formulas, which may leave out nodes without arcs.
    """
    names = list(nodes)
    drawing = drawing_of(value)
    if drawing is None:
        if not is_list(value):
            raise GraphError(
                f"a graph is a Dag, arcs as pairs of names, or a text such as {EXAMPLES}; "
                f"got {type(value).__name__}"
            )
        return Dag(names, value)
    known, arcs = _settled(drawing)
    for name in known:
        if name not in names:
            raise GraphError(f"the graph has the node {name!r}{nearest(name, names)}")
    if drawing.complete and (missing := [name for name in names if name not in known]):
        raise GraphError(
            f"the graph lacks {', '.join(map(repr, missing))}; "
            "a node without arcs has to be named too, or give only the arcs, as pairs"
        )
    return Dag(names, arcs if arcs else [])


def _printed(head: str, edges: Sequence[str]) -> str:
    """A graph of any size in lines, of a very large one the first edges."""
    more = [f"... {len(edges) - _SHOWN} more"] if len(edges) > _SHOWN else []
    lines = [head]
    for edge in map(visible, [*edges[:_SHOWN], *more]):
        if len(lines) > 1 and len(f"{lines[-1]}, {edge}") < _REPR_LENGTH:
            lines[-1] += f", {edge}"
        else:
            lines[1:] = [*(f"{line.removesuffix(',')}," for line in lines[1:]), f"  {edge}"]
    return "\n".join(lines)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{name} is needed for this and is not installed: pip install poolbn[graphs]"
        ) from error
