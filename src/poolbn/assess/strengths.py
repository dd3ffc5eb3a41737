"""How often arcs are found: strengths, directions, and the network of those found often enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poolbn.arrays import Flags, Floats
from poolbn.errors import GraphError
from poolbn.graph.dag import Cpdag, Dag
from poolbn.graph.equivalence import completed
from poolbn.later import optimize


def directions(arcs: Flags, fixed: Flags) -> Floats:
    """Arcs of the equivalence class of a graph, (N, N): 1 from parent to child, 1/2 each way else.

    `fixed` are arcs that constraints allow no other way.
    """
    directed, undirected = completed(arcs, fixed)
    return directed + undirected / 2


def strengths(counts: Floats, replicates: int) -> tuple[Floats, Floats]:
    """The share of replicates with an arc either way, and of those the share this way; (N, N) each.

    As bnlearn's boot.strength: a direction is 0 both ways where there never is an arc.
    """
    either = counts + counts.T
    direction = np.divide(counts, either, out=np.zeros_like(counts), where=either > 0)
    return either / replicates, direction


def inclusion_threshold(strength: Floats) -> float:
    """The strength that separates noise from arcs (Scutari and Nagarajan 2013), of both directions.

    If arcs were either always or never found, the distribution function of their strengths would be
    flat between 0 and 1. This one is replaced by the flat one nearest to it in L1, and the
    threshold is its quantile of that height.

    The best height is as a rule a value of the distribution function, at which the quantile jumps
    from one strength to the next. On which side of it an optimiser ends is chance, but decides:
    this is bnlearn's optimiser with its tolerance, so that thresholds are the same.
    """
    values = np.sort(strength)
    n = len(values)
    if n == 0:
        return 0.0
    knots = np.unique(np.concatenate([[0.0, 1.0], values]))
    heights = np.searchsorted(values, knots[:-1], side="right") / n
    widths = np.diff(knots)

    def distance(p: float) -> float:
        return float(widths @ np.abs(heights - p))

    best = float(optimize.fminbound(distance, 0.0, 1.0, xtol=np.finfo(float).eps ** 0.25))
    for end in (1.0, 0.0):
        if distance(end) < distance(best):
            best = end
    rank = int(np.ceil(n * best - 4 * np.finfo(float).eps))
    return float(values[max(rank - 1, 0)])


def averaged_edges(
    strength: Floats, direction: Floats, threshold: float, *, weakest_first: bool
) -> tuple[Flags, Flags]:
    """Arcs, and (symmetric) edges that go as often either way, of the averaged network; (N, N).

    Those above the threshold, and those that are always found, go in one by one, in their more
    frequent direction, unless that makes a cycle.

    Strongest first, a cycle loses its weakest arc. Edges that go either way wait for the end, and
    none is lost.

    bnlearn goes weakest first, so that a cycle loses its strongest arc. There an edge is two arcs,
    each of which must not make a cycle with what is there, itself aside; but all are kept if there
    are no others.
    """
    kept = (strength > threshold) | (strength == 1)
    either = kept & (direction == 0.5)
    arcs = np.zeros_like(kept)
    if weakest_first:
        candidates = np.argwhere(kept & (direction >= 0.5))
        order = np.argsort(strength[tuple(candidates.T)], kind="stable")
        if not (kept & (direction > 0.5)).any():
            return arcs, either
    else:
        candidates = np.argwhere(kept & (direction > 0.5))
        at = tuple(candidates.T)
        order = np.lexsort((-direction[at], -strength[at]))
    for p, c in candidates[order]:
        arcs[p, c] = not _leads(arcs, c, p)
    both = arcs & arcs.T
    return arcs & ~both, both if weakest_first else either


def _leads(arcs: Flags, start: int, end: int) -> bool:
    """Whether a path leads from one node to another, other than an arc between the two."""
    new = arcs[start].copy()
    new[end] = False
    seen = new.copy()
    seen[start] = True
    while new.any():
        new = arcs[new].any(axis=0) & ~seen
        if new[end]:
            return True
        seen |= new
    return False


def directed_network(nodes: Sequence[str], directed: Flags, undirected: Flags) -> Dag:
    """The graph with these arcs and edges: without further v-structures if there is such a graph.

    Otherwise the edges go along an order in which all arcs go from earlier to later nodes.
    """
    arcs = [(nodes[p], nodes[c]) for p, c in np.argwhere(directed)]
    edges = [(nodes[a], nodes[b]) for a, b in np.argwhere(np.triu(undirected))]
    try:
        return Cpdag(nodes, arcs, edges).extension()
    except GraphError:
        order = Dag(nodes, arcs).topological_order().index
        along = [(a, b) if order(a) < order(b) else (b, a) for a, b in edges]
        return Dag(nodes, arcs + along)
