"""Graphs as text: bnlearn model strings, and DOT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from poolbn.errors import GraphError, nearest
from poolbn.graph.pairs import Pair


def read_modelstring(text: str) -> tuple[list[str], list[Pair]]:
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
