"""Names and pairs of names, checked, sorted and walked: what graphs are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from poolbn.arguments import LIST, NAMES, check_arguments
from poolbn.errors import GraphError, nearest

Pair = tuple[str, str]


def checked_nodes(nodes: Iterable[str]) -> dict[str, int]:
    """The position of each name."""
    if isinstance(nodes, str):
        raise GraphError(
            f"nodes are a list of names, got the string {nodes!r}; "
            "a model string is read by Dag.from_modelstring"
        )
    check_arguments(nodes=(nodes, NAMES))
    if hasattr(nodes, "edges") or hasattr(nodes, "get_edgelist") or hasattr(nodes, "columns"):
        raise GraphError(
            f"nodes are a list of names, got a {type(nodes).__name__}; pb.Dag(...) converts graphs "
            "and adjacency tables"
        )
    index: dict[str, int] = {}
    for name in nodes:
        check_names([name])
        if not name:
            raise GraphError(f"the name of node number {len(index) + 1} is empty")
        if name in index:
            raise GraphError(f"node {name!r} is named twice")
        index[str(name)] = len(index)
    return index


def check_names(names: Iterable[object]) -> None:
    """Raise for what is no name of a node."""
    for name in names:
        if not isinstance(name, str):
            raise GraphError(
                f"the names of nodes are strings, got {name!r} of type {type(name).__name__}"
            )


def checked_pairs(pairs: Iterable[Any], index: Mapping[str, int], kind: str) -> set[Pair]:
    """The pairs, each of two different known names; `kind` is "arc" or "edge"."""
    check_arguments(**{f"{kind}s": (pairs, LIST)})
    checked = set()
    for pair in pairs:
        if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
            raise GraphError(f"an {kind} is a pair of names such as ('age', 'bmi'), got {pair!r}")
        shown = f"{pair[0]} -> {pair[1]}" if kind == "arc" else f"{pair[0]} -- {pair[1]}"
        for name in pair:
            if not isinstance(name, str) or name not in index:
                hint = nearest(name, index)
                raise GraphError(f"{str(name)!r} in the {kind} {shown} is not a node{hint}")
        if pair[0] == pair[1]:
            raise GraphError(f"the {kind} {shown} joins a node to itself")
        checked.add((str(pair[0]), str(pair[1])))
    return checked


def sorted_arcs(pairs: Iterable[Pair], index: Mapping[str, int]) -> tuple[Pair, ...]:
    """Sorted by child, then by parent."""
    return tuple(sorted(pairs, key=lambda pair: (index[pair[1]], index[pair[0]])))


def sorted_edges(pairs: Iterable[Pair], index: Mapping[str, int]) -> tuple[Pair, ...]:
    """Without their directions: each pair sorted, and then the pairs."""
    either = {(a, b) if index[a] < index[b] else (b, a) for a, b in pairs}
    return tuple(sorted(either, key=lambda pair: (index[pair[0]], index[pair[1]])))


def grouped(nodes: Iterable[str], pairs: Iterable[Pair]) -> dict[str, tuple[str, ...]]:
    """For each node the second names of the pairs that it is the first name of."""
    groups: dict[str, list[str]] = {name: [] for name in nodes}
    for first, second in pairs:
        groups[first].append(second)
    return {name: tuple(names) for name, names in groups.items()}


def reached(starts: Iterable[str], steps: Mapping[str, Iterable[str]]) -> set[str]:
    """The starts and all that can be reached from them."""
    seen: set[str] = set()
    todo = list(starts)
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo.extend(steps[node])
    return seen
