"""Graphs of other programs, and what they become: model strings of bnlearn, DOT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.arguments import is_list
from poolbn.errors import GraphError
from poolbn.graph.grammars import Drawing, read_text
from poolbn.graph.pairs import Pair, check_names

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def is_networkx(value: object) -> bool:
    """Whether it is a networkx graph, of any kind."""
    return hasattr(value, "is_directed") and hasattr(value, "nodes") and hasattr(value, "edges")


def is_igraph(value: object) -> bool:
    """Whether it is an igraph graph."""
    return hasattr(value, "vs") and hasattr(value, "get_edgelist")


def read_graph(given: Any) -> Drawing | None:
    """Nodes and arcs of what may have both; names alone are nodes without arcs. None for others."""
    if isinstance(given, str):
        return read_text(given)
    if (found := read_object(given)) is not None:
        return found
    if not is_list(given):
        return None
    names: list[Any] = list(given)
    if names and all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in names):
        nodes = dict.fromkeys(name for pair in names for name in pair)
        return Drawing(tuple(nodes), tuple(names), complete=False)
    for name in names:
        if isinstance(name, str) and "->" in name:
            raise GraphError(
                f"{name!r} looks like an arc, and would be the name of a node; give arcs as pairs, "
                "such as pb.Dag([('age', 'bmi')]), or arcs=[] for a node of this name"
            )
    return Drawing(tuple(names), ())


def read_object(given: Any) -> Drawing | None:
    """Another program's graph, a table of arcs, or parents in a dict; None for other things."""
    if is_networkx(given):
        return _drawing(*read_networkx(given))
    if is_igraph(given):
        return _drawing(*read_igraph(given))
    if isinstance(given, Mapping):
        return _drawn_parents(given)
    if not (hasattr(given, "columns") and hasattr(given, "index") and hasattr(given, "to_numpy")):
        return None
    names = list(given.columns)
    if list(given.index) != names:
        raise GraphError(
            "a DataFrame is a graph if its rows have the names of its columns, in the same order; "
            "use pb.Dag.from_adjacency(frame, list(frame.columns)), or for a graph without arcs "
            "pb.Dag(list(frame.columns))"
        )
    return _drawing(*read_adjacency(given.to_numpy(), names))


def _drawing(nodes: Iterable[str], arcs: Iterable[Pair]) -> Drawing:
    return Drawing(tuple(nodes), tuple(arcs))


def _drawn_parents(parents: Mapping[Any, Any]) -> Drawing:
    """The graph of a dict with the parents of each node."""
    nodes, arcs = dict.fromkeys(parents), list[Pair]()
    for child, own in parents.items():
        if isinstance(own, Mapping) or not (isinstance(own, str) or is_list(own)):
            raise GraphError(
                f"in a dict each node has a list of its parents, as in {{'bmi': ['age']}}, and "
                f"{child!r} has {type(own).__name__}"
            )
        names = [own] if isinstance(own, str) else list(own)
        check_names([child, *names])
        nodes |= dict.fromkeys(names)
        arcs += [(name, child) for name in names]
    return Drawing(tuple(nodes), tuple(arcs), complete=False)


def read_networkx(graph: Any) -> tuple[Iterable[str], list[Pair]]:
    """Nodes and arcs of a directed graph of networkx."""
    if not graph.is_directed():
        raise GraphError("the networkx graph is undirected; poolbn needs a networkx.DiGraph")
    return graph.nodes, [(edge[0], edge[1]) for edge in graph.edges]


def read_igraph(graph: Any) -> tuple[list[str], list[Pair]]:
    """Names and arcs of a directed graph of igraph."""
    if not graph.is_directed():
        raise GraphError("the igraph graph is undirected; poolbn needs one with directed=True")
    if "name" not in graph.vs.attributes():
        raise GraphError(
            "the igraph graph has no vertex attribute 'name'; set graph.vs['name'] = [...]"
        )
    names = graph.vs["name"]
    return names, [(names[i], names[j]) for i, j in graph.get_edgelist()]


def read_adjacency(matrix: ArrayLike, names: list[str]) -> tuple[list[str], list[Pair]]:
    """Names and arcs of a matrix in which `matrix[i, j] != 0` means node i -> node j."""
    try:
        a = np.asarray(matrix).astype(float)  # (N, N)
    except (OverflowError, TypeError, ValueError) as error:
        raise GraphError(f"the adjacency matrix is not a matrix of numbers: {error}") from error
    if a.shape != (len(names), len(names)):
        raise GraphError(
            f"the adjacency matrix has shape {a.shape}, but {len(names)} nodes need "
            f"{(len(names), len(names))}"
        )
    if np.isnan(a).any():
        i, j = np.argwhere(np.isnan(a))[0]
        raise GraphError(
            f"the adjacency matrix is missing (NaN) in row {i}, column {j}; put 0 for no arc"
        )
    return names, [(names[i], names[j]) for i, j in np.argwhere(a)]


def write_modelstring(order: Sequence[str], arcs: Iterable[Pair]) -> str:
    """The bnlearn model string; `order` is the order of the nodes, and `arcs` that of parents."""
    parents: dict[str, list[str]] = {name: [] for name in order}
    for name in order:
        for mark in "[]|:":
            if mark in name:
                raise GraphError(
                    f"node {name!r} contains {mark!r}, which a model string cannot hold; "
                    "rename it, or use to_dot()"
                )
    for parent, child in arcs:
        parents[child].append(parent)
    return "".join(f"[{name}|{':'.join(p)}]" if p else f"[{name}]" for name, p in parents.items())


def write_dot(lines: Iterable[str]) -> str:
    """A Graphviz digraph of these statements."""
    return "\n".join(["digraph {", *(f"  {line};" for line in lines), "}"]) + "\n"


def dot_arc(arc: Pair) -> str:
    """An arc as DOT has it."""
    return " -> ".join(map(dot_name, arc))


# Graphviz itself only knows \" inside an identifier, but it draws \\ as a backslash and \n as a
# line break.
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def dot_name(name: str) -> str:
    """A name as DOT has it."""
    return '"' + re.sub(r'[\\"\n]', lambda m: _ESCAPES[m[0]], name) + '"'
