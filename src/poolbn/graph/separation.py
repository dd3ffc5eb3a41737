"""What a graph makes independent: d-separation, and the nodes to adjust for.

Back-door paths are the paths from a cause to an effect that are not directed. A set of nodes is
valid for adjustment if it blocks all of them and has no node on a directed path, or below one
(Shpitser, VanderWeele and Robins 2010). So it separates cause and effect in the graph without the
arcs with which directed paths begin, and sets that cannot be smaller are the minimal separators of
its moral graph over the ancestors of both (van der Zander, Liskiewicz and Textor 2014).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from poolbn.graph.pairs import reached

Steps = Mapping[str, tuple[str, ...]]  # to parents, or to children
Neighbours = dict[str, set[str]]


def separated(
    xs: Collection[str], ys: Collection[str], zs: Collection[str], parents: Steps, children: Steps
) -> bool:
    """Whether `xs` and `ys` are d-separated given `zs`, three sets without a common node.

    Bayes ball (Shachter 1998): a state is a node and whether the ball came up to it from a child.
    Coming up, it goes on everywhere unless the node is given. Coming down, it goes on down, or,
    where the node is given, bounces back up; so colliders above that open.
    """
    seen: set[tuple[str, bool]] = set()
    todo = [(node, True) for node in xs]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        node, upward = state
        if node in ys:
            return False
        if node not in zs:
            todo += [(child, False) for child in children[node]]
        if (node in zs) != upward:
            todo += [(parent, True) for parent in parents[node]]
    return True


def causal_nodes(cause: str, effect: str, parents: Steps, children: Steps) -> set[str]:
    """The nodes of all directed paths from the cause to the effect, without the cause."""
    return (reached([cause], children) & reached([effect], parents)) - {cause}


def may_adjust(cause: str, effect: str, parents: Steps, children: Steps) -> set[str]:
    """The nodes on no directed path from the cause to the effect, nor below one."""
    below = reached(causal_nodes(cause, effect, parents, children), children)
    return set(parents) - below - {cause, effect}


def without_causal_arcs(
    cause: str, effect: str, parents: Steps, children: Steps
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Parents and children in the graph in which only back-door paths are left."""
    first = causal_nodes(cause, effect, parents, children).intersection(children[cause])
    above = {n: tuple(p for p in own if p != cause or n not in first) for n, own in parents.items()}
    kept = tuple(child for child in children[cause] if child not in first)
    return above, {**children, cause: kept}


def separators(
    cause: str, effect: str, among: Collection[str], parents: Steps, most: int
) -> list[frozenset[str]]:
    """Minimal sets that separate two nodes; the first is the one nearest to the cause.

    The next ones follow from each by pushing one of its nodes over to the side of the cause (Shen
    and Liang 1997). With more sets than `most`, only the first `most` + 1 are found.
    """
    graph = _moral(reached([cause, effect], parents), parents)
    for node in set(graph) - set(among) - {cause, effect}:
        _bypass(graph, node)
    if effect in graph[cause]:
        return []
    found = {_nearest({cause}, effect, graph): None}
    todo = list(found)
    while todo and len(found) <= most:
        current = todo.pop(0)
        side = _component(cause, current, graph)
        for node in sorted(current - graph[effect]):
            other = _nearest(side | {node}, effect, graph)
            if other not in found:
                found[other] = None
                todo.append(other)
    return list(found)[: most + 1]


def _moral(nodes: set[str], parents: Steps) -> Neighbours:
    """The moral graph over nodes, all of whose parents are among them."""
    graph: Neighbours = {node: set() for node in nodes}
    for node in nodes:
        _join([node, *parents[node]], graph)
    return graph


def _bypass(graph: Neighbours, node: str) -> None:
    """Take a node out; its neighbours are joined, as no set can separate them at this node."""
    around = graph.pop(node)
    for other in around:
        graph[other].discard(node)
    _join(around, graph)


def _join(nodes: Iterable[str], graph: Neighbours) -> None:
    every = set(nodes)
    for node in every:
        graph[node] |= every - {node}


def _nearest(side: set[str], effect: str, graph: Neighbours) -> frozenset[str]:
    """The minimal separator of a connected set and the effect that is nearest to the set."""
    border = {other for node in side for other in graph[node]} - side
    beyond = _component(effect, border, graph)
    return frozenset(node for node in border if graph[node] & beyond)


def _component(start: str, cut: Collection[str], graph: Neighbours) -> set[str]:
    """What can be reached without the nodes that are cut."""
    closed = set(cut)
    return reached([start], {node: own - closed for node, own in graph.items()})
