"""Equivalence classes of directed acyclic graphs: from a graph to its class, and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from itertools import combinations
from typing import Any

import numpy as np

from poolbn.arrays import Flags
from poolbn.errors import GraphError
from poolbn.graph.pairs import Pair


def completed(arcs: Flags, fixed: Flags | None = None) -> tuple[Flags, Flags]:
    """Directed arcs and (symmetric) undirected edges of the CPDAG of `arcs`, all (N, N).

    V-structures first, then Meek's rules 1 to 3, which are all that a DAG without background
    knowledge needs. Each newly directed arc is looked at once, for the rules that it sets off.

    Arcs that are `fixed` go no other way, if they are there, as far as is known beforehand; then
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
        if not (undirected[a].any() or undirected[b].any()):  # all rules need an edge there
            continue
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


class Direction(Enum):
    """Why an arc has the direction that it has; `str()` says it.

    Examples:
        >>> print(Direction.SCORE)
        preferred by the score only
    """

    CLASS = "fixed within the equivalence class"
    INTERVENTIONS = "fixed by interventions"
    CONSTRAINTS = "fixed by constraints"
    SCORE = "preferred by the score only"

    def __str__(self) -> str:
        return str(self.value)


def set_apart(nodes: Sequence[str], targets: Iterable[Collection[str]]) -> Flags:
    """Pairs of nodes of which one was set in an experiment and the other not, (N, N).

    With experiments the equivalent graphs are those that still are where the arcs into what was set
    are cut, in each of them (Hauser and Buehlmann 2012): an arc between such a pair goes no other
    way. In some data set each node has to be as it is.
    """
    apart = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for of in targets:
        was = np.array([node in of for node in nodes], dtype=bool)
        apart |= was[:, None] != was
    return apart


def directions(arcs: Flags, apart: Flags, fixed: Flags) -> dict[tuple[int, int], Direction]:
    """Why each arc of a graph, (N, N), has its direction: the first reason that is enough.

    Args:
        arcs: the graph.
        apart: see `set_apart`.
        fixed: arcs that constraints let go no other way.

    Examples:
        >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
        >>> none = np.zeros_like(chain)
        >>> [why.name for why in directions(chain, set_apart("abc", ["b"]), none).values()]
        ['INTERVENTIONS', 'INTERVENTIONS']
    """
    reasons = {
        Direction.CLASS: None,
        Direction.INTERVENTIONS: apart,
        Direction.CONSTRAINTS: apart | fixed,
    }
    found: dict[tuple[int, int], Direction] = {}
    for i, j in np.argwhere(arcs):
        found[int(i), int(j)] = Direction.SCORE
    for why, known in reversed(reasons.items()):
        for i, j in np.argwhere(completed(arcs, known)[0]):
            found[int(i), int(j)] = why
    return found


def oriented(
    directed: Flags, undirected: Flags, unsure: Callable[[int, int, int], bool], fixed: Flags
) -> tuple[Flags, Flags]:
    """Apply Meek's rules 1 to 4 to arcs and (symmetric) edges of tests and knowledge, (N, N).

    Such arcs may contradict each other, and then the order in which rules are applied would matter.
    So all rules are applied at once, again and again; an edge that they direct in both ways stays
    undirected. Arcs on a cycle become edges again, unless they are `fixed`.

    `unsure` says of a, b, c, with a and c apart and both joined to b, whether it is not known if
    their arcs meet in b. No rule concludes anything from that.
    """
    directed, undirected = directed.copy(), undirected.copy()
    joined = directed | directed.T | undirected
    apart = ~(joined | np.eye(len(directed), dtype=bool))
    open_ = undirected.copy()
    while True:
        new = np.zeros_like(directed)
        for b, c in np.argwhere(open_).tolist():
            new[b, c] = _follows(b, c, directed, undirected, joined, apart, unsure)
        open_ &= ~(new & new.T)
        new &= open_
        if not new.any():
            break
        directed |= new
        undirected &= ~(new | new.T)
        open_ &= undirected
    on_cycle = directed & reached(directed).T & ~fixed
    return directed & ~on_cycle, undirected | on_cycle | on_cycle.T


def _follows(
    b: int,
    c: int,
    directed: Flags,
    undirected: Flags,
    joined: Flags,
    apart: Flags,
    unsure: Callable[[int, int, int], bool],
) -> bool:
    """Whether one of Meek's rules directs the edge b -- c from b to c."""
    # Rule 1: a -> b -- c with a, c apart.
    if any(not unsure(a, b, c) for a in np.flatnonzero(directed[:, b] & apart[c]).tolist()):
        return True
    # Rule 2: b -> a -> c.
    if (directed[b] & directed[:, c]).any():
        return True
    # Rule 3: b -- a -> c and b -- d -> c with a, d apart.
    sides = np.flatnonzero(undirected[b] & directed[:, c]).tolist()
    if any(apart[a, d] and not unsure(a, b, d) for a, d in combinations(sides, 2)):
        return True
    # Rule 4: b -- a -> d -> c with a, c apart and b, d joined.
    for a in np.flatnonzero(undirected[b] & apart[c]).tolist():
        if (directed[a] & directed[:, c] & joined[b]).any() and not unsure(a, b, c):
            return True
    return False


def reached(arcs: Flags) -> Flags:
    """Whether a path leads from the first node to the second, in one graph or each, (..., N, N)."""
    ways = arcs.astype(np.float32)
    while True:
        longer = ((ways + ways @ ways) > 0).astype(np.float32)
        if (longer == ways).all():
            return np.asarray(ways > 0)
        ways = longer


def extended(
    nodes: Sequence[str], directed: Sequence[Pair], undirected: Sequence[Pair]
) -> list[Pair]:
    """Arcs of an acyclic graph with these arcs, the edges directed, and no other v-structures."""
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
