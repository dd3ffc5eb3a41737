"""What evidence leaves to do: which nodes matter, in which parts, and how each part is done.

A node that is not observed matters if it is a target, or above a target or something observed. What
a node says given its parents is a factor. Factors without such hidden nodes are numbers; the others
fall into parts that have no hidden node in common, and are independent given the data set.

In a part, hidden discrete nodes and counts are enumerated, and all else is linear if no continuous
hidden node is a parent of a discrete node or count. One such node is integrated over by
quadrature. With more of them, or too many configurations, rows are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from poolbn.inference.locals import Local
from poolbn.nodes.predicting import COUNT

MOST = 100_000  # configurations of a part


class Method(Enum):
    """How an answer was found."""

    EXACT = "exact"
    QUADRATURE = "quadrature"
    SAMPLING = "sampling"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Part:
    """Hidden nodes that depend on each other given the evidence."""

    hidden: tuple[int, ...]  # their positions, parents first
    factors: tuple[int, ...]  # the nodes that say something of them
    method: Method  # how it is done
    # Hidden nodes that are enumerated, integrated over or drawn, parents first; the others are
    # continuous, and linear given these.
    cut: tuple[int, ...]
    why: tuple[int, ...] = ()  # the nodes that are in the way of exact inference


@dataclass(frozen=True)
class Plan:
    """All parts of a pattern of evidence, and the nodes that are numbers given it."""

    parts: tuple[Part, ...]
    closed: tuple[int, ...]


def plan(
    nodes: Sequence[Local],
    order: Sequence[int],
    inputs: Collection[int],
    observed: Collection[int],
    targets: Sequence[int],
    *,
    drawn: bool,
) -> Plan:
    """What is to be done for one pattern of evidence, of which targets are no part.

    Inputs have no density where they are observed; `drawn` draws all hidden nodes.
    """
    relevant = {*observed, *targets}
    for i in reversed(order):
        if i in relevant:
            relevant.update(nodes[i].parents)
    hidden = relevant - set(observed)
    label = {i: i for i in hidden}

    def root(i: int) -> int:
        while label[i] != i:
            i = label[i]
        return i

    members: dict[int, list[int]] = {}
    closed = []
    for i in order:
        if i not in relevant or (i in inputs and i not in hidden):
            continue
        own = [m for m in (i, *nodes[i].parents) if m in hidden]
        if own:
            members[i] = own
            for m in own[1:]:
                label[root(m)] = root(own[0])
        else:
            closed.append(i)
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for i in order:
        if i in hidden:
            parts.setdefault(root(i), ([], []))[0].append(i)
    for i, own in members.items():
        parts[root(own[0])][1].append(i)
    made = (_part(nodes, own, factors, drawn=drawn) for own, factors in parts.values())
    return Plan(tuple(made), tuple(closed))


def _part(nodes: Sequence[Local], hidden: list[int], factors: list[int], *, drawn: bool) -> Part:
    finite = [i for i in hidden if nodes[i].levels]
    above = {
        parent
        for i in factors
        if not nodes[i].is_gaussian
        for parent in nodes[i].parents
        if parent in hidden and not nodes[parent].levels
    }
    size = math.prod(nodes[i].levels for i in finite if nodes[i].levels != COUNT)
    # Counts are enumerated where what is observed tells their range.
    endless = {
        i
        for i in finite
        if nodes[i].levels == COUNT
        and any(p in hidden and nodes[p].levels <= 0 for p in nodes[i].parents)
    }
    endless |= {i for i in hidden if not (nodes[i].levels or nodes[i].is_gaussian)}
    if size <= MOST and len(above) <= 1 and not endless and not drawn:
        cut = [i for i in hidden if i in above or nodes[i].levels]
        method = Method.QUADRATURE if above else Method.EXACT
        return Part(tuple(hidden), tuple(factors), method, tuple(cut), tuple(sorted(above)))
    why = endless or (above if len(above) > 1 else finite)
    return sampled(nodes, tuple(hidden), tuple(factors), why)


def sampled(
    nodes: Sequence[Local], hidden: tuple[int, ...], factors: tuple[int, ...], why: Collection[int]
) -> Part:
    """A part in which nodes are drawn: all but those that are linear and not above drawn ones."""
    others = [i for i in factors if not nodes[i].is_gaussian]
    above = {parent for i in others for parent in nodes[i].parents}
    needed = {i for i in hidden if not nodes[i].is_gaussian or i in above}
    for i in reversed(hidden):
        if i in needed:
            needed.update(parent for parent in nodes[i].parents if parent in hidden)
    cut = tuple(i for i in hidden if i in needed)
    return Part(hidden, factors, Method.SAMPLING, cut, tuple(sorted(why)))
