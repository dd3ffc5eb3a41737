"""Equivalence classes of directed acyclic graphs: from a graph to its class, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError
from poolbn.graph.pairs import Pair


def completed(
    arcs: NDArray[np.bool_], fixed: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Directed arcs and (symmetric) undirected edges of the CPDAG of `arcs`, all (N, N).

    V-structures first, then Meek's rules 1 to 3, which are all that a DAG without background
    knowledge needs. Each newly directed arc is looked at once, for the rules that it sets off.

    Args:
        arcs: a directed acyclic graph.
        fixed: arcs that go no other way, if they are there, as far as is known beforehand; then
            the class has only the graphs with these arcs, and rule 4 is needed too.
    """
    joined = arcs | arcs.T
    apart = ~(joined | np.eye(len(arcs), dtype=bool))
    directed = np.zeros_like(arcs)
    undirected = joined.copy()
    todo: list[tuple[int, int]] = []

    def direct(parents: Any, children: Any) -> None:
        for a, b in np.broadcast(parents, children):
            directed[a, b] = True
            undirected[a, b] = undirected[b, a] = False
            todo.append((a, b))

    for child in range(len(arcs)):
        (parents,) = np.nonzero(arcs[:, child])
        direct(parents[apart[np.ix_(parents, parents)].any(axis=1)], child)
    if fixed is not None:
        direct(*np.nonzero(arcs & fixed & undirected))
    while todo:
        a, b = todo.pop()
        # Rule 1: a -> b -- c with a, c apart makes b -> c.
        direct(b, np.flatnonzero(undirected[b] & apart[a]))
        # Rule 2: a -> b -> c with a -- c makes a -> c; the new arc may be either of the two.
        direct(a, np.flatnonzero(undirected[a] & directed[b]))
        direct(np.flatnonzero(undirected[b] & directed[:, a]), b)
        # Rule 3: a -> b <- d with a, d apart and a -- c -- d, c -- b makes c -> b.
        partners = undirected[directed[:, b] & apart[a]].any(axis=0)
        direct(np.flatnonzero(undirected[a] & undirected[b] & partners), b)
        if fixed is None:
            continue
        # Rule 4: a -> b -> d with a, d apart, a -- c -- d and b, c joined makes c -> d. By rule 1
        # the second arc is there with the first.
        for d in np.flatnonzero(directed[b] & apart[a]):
            direct(np.flatnonzero(undirected[a] & undirected[d] & joined[b]), d)
    return directed, undirected


def extended(
    nodes: Sequence[str], directed: Sequence[Pair], undirected: Sequence[Pair]
) -> list[Pair]:
    """Arcs of an acyclic graph with these arcs, the edges directed, and no other v-structures.

    Raises:
        GraphError: there is no such graph.
    """
    # Dor and Tarsi (1992): take away, as a sink, any node without children whose undirected
    # neighbours are joined to all that it is joined to. A removal changes this only for the
    # nodes around it, which are looked at again.
    into, out, free = ({name: set[str]() for name in nodes} for _ in range(3))
    for parent, child in directed:
        into[child].add(parent)
        out[parent].add(child)
    for a, b in undirected:
        free[a].add(b)
        free[b].add(a)
    arcs = list(directed)
    left = dict.fromkeys(nodes)
    todo = list(nodes)
    while todo:
        node = todo.pop()
        around = into[node] | free[node]
        if node not in left or out[node]:
            continue
        if any(around - {other} - into[other] - out[other] - free[other] for other in free[node]):
            continue
        del left[node]
        arcs += [(other, node) for other in free[node]]
        for other in around:
            out[other].discard(node)
            free[other].discard(node)
        todo += [name for name in left if name in around]
    if left:
        raise GraphError(
            "no acyclic graph has these arcs, these edges and no other v-structures; "
            f"the trouble is among {', '.join(left)}"
        )
    return arcs
