"""Standardised effects of arcs: how strong, of which sign, how different between data sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.spreads import Spreads, spreads
from poolbn.graph.equivalence import completed
from poolbn.network.network import Network
from poolbn.nodes.localfit import GroupLevel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EffectSize:
    """The effect of one arc, in standard deviations of the child for one of the parent.

    Standard deviations are those inside data sets, or between them of what varies there alone; of
    discrete columns and counts see `Spreads`.
    """

    index: int  # of the arc, in the order of the graph's arcs
    parent: str  # the node that it leaves
    child: str  # the node that it enters
    effect: float  # in the population of data sets
    between_sd: float  # its standard deviation between data sets
    own: Floats  # in each data set, (F,)
    # Whether equivalent graphs have the arc the other way round, if these are known among those
    # that the search could find.
    reversible: bool
    each: tuple[float, ...]  # effects, one for each level: of these it is the strongest

    @property
    def term(self) -> int:
        """Which of the arc's effects it is."""
        return self.each.index(self.effect)

    @property
    def one_sign(self) -> bool:
        """Whether all effects of the arc have the same sign."""
        return min(self.each) >= 0 or max(self.each) <= 0

    @property
    def varies(self) -> float:
        """The standard deviation between data sets relative to the effect, 1 or less."""
        if self.between_sd == 0:
            return 0.0
        return min(1.0, self.between_sd / abs(self.effect)) if self.effect else 1.0


def effect_sizes(
    net: Network, found: Spreads | None = None, fixed: NDArray[np.bool_] | None = None
) -> tuple[EffectSize, ...]:
    """The standardised effects of all arcs, in the order of the arcs.

    `fixed` are arcs that constraints let go no other way, (N, N).
    """
    found = spreads(net) if found is None else found
    free = completed(net.dag.to_adjacency().astype(bool), fixed)[1]
    at = {node: i for i, node in enumerate(net.dag.nodes)}
    sizes = []
    for index, (parent, child) in enumerate(net.dag.arcs):
        terms = list(_scaled(net, parent, child, found))
        first = max(terms, key=lambda term: abs(term.effect))
        reversible = bool(free[at[parent], at[child]]) and not _goes_first(net, parent, child)
        each = tuple(term.effect for term in terms)
        sizes.append(EffectSize(index, parent, child, *first, reversible, each))
    return tuple(sizes)


class _Scaled(NamedTuple):
    """A standardised effect: of the population, its spread between data sets, of each, (F,)."""

    effect: float
    between_sd: float
    own: Floats


def _scaled(net: Network, parent: str, child: str, found: Spreads) -> Iterator[_Scaled]:
    """The effects of an arc."""
    for term in net.fits[child].terms(parent):
        sd = found.children[child, term.outcome]
        unit = found.columns[term.column] / sd if sd else 0.0
        # A level that no row has leaves an effect unknown, which is not a strong one.
        effect = term.effect if math.isfinite(term.effect) else 0.0
        yield _Scaled(unit * effect, unit * term.varies, unit * term.own)


def _goes_first(net: Network, parent: str, child: str) -> bool:
    """Whether the arc can go one way alone: from an input, or from a column of data sets."""
    level = [net.fits[node].pooling == GroupLevel() for node in (parent, child)]
    return parent in net.inputs or (level[0] and not level[1])


def strongest(sizes: tuple[EffectSize, ...]) -> list[EffectSize]:
    """By the size of the effect, the largest first."""
    return sorted(sizes, key=lambda size: -abs(size.effect))


def most_different(sizes: tuple[EffectSize, ...]) -> list[EffectSize]:
    """By the standard deviation between data sets, the largest first."""
    return sorted(sizes, key=lambda size: (-size.between_sd, -abs(size.effect)))
