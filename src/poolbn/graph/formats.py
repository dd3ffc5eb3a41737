"""Graphs in other formats: adjacency matrices, networkx, igraph, DOT, bnlearn model strings.

A `read_` function turns a foreign graph into names and arcs, a `write_` function turns names and
arcs into a foreign graph. Neither knows `Dag`, which calls them and checks what they read.
"""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from poolbn.errors import GraphError, MissingPackageError, nearest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Arcs = Sequence[tuple[str, str]]
Read = tuple[list[str], list[tuple[str, str]]]


# Matrices and graph packages


def read_adjacency(matrix: ArrayLike, nodes: Iterable[str]) -> Read:
    """Names and arcs of a square matrix in which `matrix[i, j] != 0` means node i -> node j."""
    names = list(nodes)
    try:
        a = np.asarray(matrix).astype(float)  # (N, N)
    except (TypeError, ValueError) as error:
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


def write_adjacency(nodes: Sequence[str], arcs: Arcs) -> NDArray[np.int64]:
    """A matrix (N, N) of zeros and ones, 1 at [i, j] for an arc from node i to node j."""
    index = {name: i for i, name in enumerate(nodes)}
    a = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for parent, child in arcs:
        a[index[parent], index[child]] = 1
    return a


def read_networkx(graph: Any) -> Read:
    """Names and arcs of a networkx directed graph; attributes are left behind."""
    if not (hasattr(graph, "is_directed") and hasattr(graph, "nodes")):
        raise GraphError(f"expected a networkx DiGraph, got {type(graph).__name__}")
    if not graph.is_directed():
        raise GraphError("the networkx graph is undirected; poolbn needs a networkx.DiGraph")
    return list(graph.nodes), [(edge[0], edge[1]) for edge in graph.edges]


def write_networkx(nodes: Sequence[str], arcs: Arcs) -> Any:
    """A networkx.DiGraph with the nodes in their order."""
    graph = _package("networkx").DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(arcs)
    return graph


def read_igraph(graph: Any) -> Read:
    """Names (the vertex attribute "name") and arcs of an igraph directed graph."""
    if not (hasattr(graph, "vs") and hasattr(graph, "get_edgelist")):
        raise GraphError(f"expected an igraph Graph, got {type(graph).__name__}")
    if not graph.is_directed():
        raise GraphError("the igraph graph is undirected; poolbn needs one with directed=True")
    if "name" not in graph.vs.attributes():
        raise GraphError(
            "the igraph graph has no vertex attribute 'name'; set graph.vs['name'] = [...]"
        )
    names = list(graph.vs["name"])
    return names, [(names[i], names[j]) for i, j in graph.get_edgelist()]


def write_igraph(nodes: Sequence[str], arcs: Arcs) -> Any:
    """A directed igraph.Graph whose vertices have the attribute "name"."""
    index = {name: i for i, name in enumerate(nodes)}
    return _package("igraph").Graph(
        n=len(nodes),
        edges=[(index[parent], index[child]) for parent, child in arcs],
        directed=True,
        vertex_attrs={"name": list(nodes)},
    )


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{name} is needed for this and is not installed: pip install poolbn[graphs]"
        ) from error


# bnlearn model strings


def read_modelstring(text: str) -> Read:
    """Names and arcs of a bnlearn model string such as "[A][B|A][C|A:B]"."""
    names: dict[str, None] = {}
    families: list[tuple[int, str, list[str]]] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        here = f"model string, character {at + 1}"
        if text[at] != "[":
            raise GraphError(f"{here}: expected '[' but found {text[at]!r}; write [A][B|A][C|A:B]")
        end = text.find("]", at)
        body = text[at + 1 : end]
        if end < 0 or "[" in body:
            raise GraphError(f"{here}: this '[' is never closed")
        name, bar, rest = body.partition("|")
        parents = rest.split(":") if bar else []
        if "|" in rest or ":" in name:
            raise GraphError(f"{here}: write one node, one '|' and parents with ':', not [{body}]")
        if not name or "" in parents:
            raise GraphError(f"{here}: a name is empty in [{body}]")
        if name in names:
            raise GraphError(f"{here}: node {name!r} is described a second time")
        names[name] = None
        families.append((at, name, parents))
        at = end + 1
    for at, name, parents in families:
        for parent in parents:
            if parent not in names:
                raise GraphError(
                    f"model string, character {at + 1}: {parent!r}, a parent of {name!r}, "
                    f"has no brackets of its own{nearest(parent, names)}"
                )
    return list(names), [(parent, name) for _, name, parents in families for parent in parents]


def write_modelstring(order: Sequence[str], arcs: Arcs) -> str:
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


# DOT


def write_dot(nodes: Sequence[str], directed: Arcs, undirected: Arcs = ()) -> str:
    """A Graphviz digraph; undirected edges are arcs with `dir=none`."""
    lines = [f"  {quoted(name)};" for name in nodes]
    lines += [f"  {quoted(a)} -> {quoted(b)};" for a, b in directed]
    lines += [f"  {quoted(a)} -> {quoted(b)} [dir=none];" for a, b in undirected]
    return "\n".join(["digraph {", *lines, "}"]) + "\n"


def read_dot(text: str) -> Read:
    """Names and arcs of a Graphviz digraph without subgraphs; attributes are left behind."""
    return _DotReader(text).graph()


# Graphviz itself only knows \" inside an identifier, but it draws \\ as a backslash and \n as a
# line break. Written like this, a name comes back as it was and also looks right in a drawing.
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()} | {"\\\n": ""}


def quoted(name: str) -> str:
    """A name as DOT has it."""
    return '"' + re.sub(r'[\\"\n]', lambda m: _ESCAPES[m[0]], name) + '"'


def _unquoted(token: str) -> str:
    return re.sub(r"\\.", lambda m: _UNESCAPES.get(m[0], m[0]), token[1:-1], flags=re.DOTALL)


class _Token(NamedTuple):
    kind: str  # word, quoted, html, mark or end
    text: str
    line: int


_DOT_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)
      | (?P<quoted>"(?:\\.|[^"\\])*")
      | (?P<word>(?:[A-Za-z_\u0080-\U0010ffff][0-9A-Za-z_\u0080-\U0010ffff]*
                    | -?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?))
                 (?![0-9A-Za-z_.\u0080-\U0010ffff]|-[0-9.]))  # 2a and a-1 are no names
      | (?P<mark>->|--|[{}\[\];,=:])""",
    re.VERBOSE | re.DOTALL,
)


def _dot_tokens(text: str) -> list[_Token]:
    tokens = []
    at, line = 0, 1
    while at < len(text):
        match = _DOT_TOKEN.match(text, at)
        if match is not None:
            kind, token = str(match.lastgroup), match[0]
        elif text[at] == "<":
            kind, token = "html", _html(text, at, line)
        else:
            what = {'"': "this quote is never closed", "/": "this comment is never closed"}
            shown = re.split(r"[\s;,=\[\]{}]", text[at:], maxsplit=1)[0]
            problem = what.get(text[at], f"put quotes around a name like {shown!r}")
            raise GraphError(f"DOT, line {line}: {problem}")
        if kind != "skip":
            tokens.append(_Token(kind, _unquoted(token) if kind == "quoted" else token, line))
        line += token.count("\n")
        at += len(token)
    return [*tokens, _Token("end", "", line)]


def _html(text: str, start: int, line: int) -> str:
    """The HTML string that opens at `start`; its angle brackets nest."""
    depth = 0
    for bracket in re.finditer("[<>]", text[start:]):
        depth += 1 if bracket[0] == "<" else -1
        if depth == 0:
            return text[start : start + bracket.end()]
    raise GraphError(f"DOT, line {line}: this '<' is never closed")


class _DotReader:
    """Reads the statements of a digraph token by token."""

    def __init__(self, text: str) -> None:
        self.tokens = _dot_tokens(text)
        self.at = 0
        self.names: dict[str, None] = {}
        self.arcs: list[tuple[str, str]] = []

    def graph(self) -> Read:
        if self.is_word("strict"):
            self.take()
        if not self.is_word("digraph"):
            raise self.error("'digraph'")
        self.take()
        if self.peek().kind in ("word", "quoted", "html"):
            self.take()
        if not self.is_mark("{"):
            raise self.error("'{'")
        self.take()
        while not self.is_mark("}"):
            self.statement()
        self.take()
        if self.peek().kind != "end":
            raise self.error("nothing after the closing '}'")
        return list(self.names), self.arcs

    def statement(self) -> None:
        if self.is_mark(";"):
            self.take()
        elif self.is_mark("{") or self.is_word("subgraph"):
            raise GraphError(
                f"DOT, line {self.peek().line}: subgraphs are not read; "
                "write their nodes and arcs one by one"
            )
        elif self.is_word("graph", "node", "edge"):
            self.take()
            if not self.is_mark("["):
                raise self.error("'['")
            self.attributes()
        else:
            name = self.identifier()
            if self.is_mark("="):  # a setting of the whole graph, such as rankdir=LR
                self.take()
                self.identifier()
            else:
                self.chain(name)

    def chain(self, name: str) -> None:
        """The rest of `a`, `a -> b` or `a -> b -> c`, after the first name."""
        path = [name]
        self.port()
        while self.is_mark("->"):
            self.take()
            path.append(self.identifier())
            self.port()
        if self.is_mark("--"):
            raise self.error("'->'")
        self.attributes()
        self.names.update(dict.fromkeys(path))
        self.arcs.extend(itertools.pairwise(path))

    def port(self) -> None:
        while self.is_mark(":"):
            self.take()
            self.identifier()

    def attributes(self) -> None:
        """Skip lists such as [color=red, style=bold], but not what takes an arc's direction."""
        while self.is_mark("["):
            self.take()
            while not self.is_mark("]"):
                key, value, line = self.identifier(), "", self.peek().line
                if self.is_mark("="):
                    self.take()
                    value = self.identifier()
                if key == "dir" and value != "forward":
                    raise GraphError(
                        f"DOT, line {line}: dir={value} says that an arc does not point from "
                        "its first node to its second; write each arc as parent -> child"
                    )
                if self.is_mark(",", ";"):
                    self.take()
            self.take()

    def identifier(self) -> str:
        if self.peek().kind not in ("word", "quoted", "html"):
            raise self.error("a name")
        return self.take().text

    def peek(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def is_mark(self, *marks: str) -> bool:
        return self.peek().kind == "mark" and self.peek().text in marks

    def is_word(self, *words: str) -> bool:
        return self.peek().kind == "word" and self.peek().text.lower() in words

    def error(self, expected: str) -> GraphError:
        kind, text, line = self.peek()
        found = "the end of the text" if kind == "end" else repr(text)
        return GraphError(f"DOT, line {line}: expected {expected} but found {found}")
