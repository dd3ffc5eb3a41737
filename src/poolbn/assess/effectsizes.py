"""Standardised effects of arcs: how strong, of which sign, how different between data sets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.network.network import Network
from poolbn.nodes.grouplevel import GroupLevel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EffectSize:
    """The effect of one arc, in standard deviations of the child for one of the parent.

    Standard deviations are those inside data sets, or between them of what varies there alone.

    Attributes:
        index: of the arc, in the order of the graph's arcs.
        parent: the node that it leaves.
        child: the node that it enters.
        effect: in the population of data sets.
        between_sd: its standard deviation between data sets.
        own: in each data set, (F,).
        reversible: whether equivalent graphs have the arc the other way round, whatever constraints
            the search had.
    """

    index: int
    parent: str
    child: str
    effect: float
    between_sd: float
    own: Floats
    reversible: bool

    @property
    def varies(self) -> float:
        """The standard deviation between data sets relative to the effect, 1 or less."""
        if self.between_sd == 0:
            return 0.0
        return min(1.0, self.between_sd / abs(self.effect)) if self.effect else 1.0


def effect_sizes(net: Network) -> tuple[EffectSize, ...]:
    """The standardised effects of all arcs, in the order of the arcs."""
    free = {frozenset(edge) for edge in net.dag.cpdag().undirected}
    sd = {node: math.sqrt(variance) for node, variance in variances(net).items()}
    sizes = []
    for index, (parent, child) in enumerate(net.dag.arcs):
        fit, k = net.linear_fits[child], net.linear_fits[child].position(parent)
        unit = sd[parent] / sd[child] if sd[child] else 0.0
        effect, spread = unit * fit.population(k)[0], unit * fit.between_sd(k)
        reversible = frozenset((parent, child)) in free and not _goes_first(net, parent, child)
        own = unit * fit.coef[:, k]
        sizes.append(EffectSize(index, parent, child, effect, spread, own, reversible))
    return tuple(sizes)


def _goes_first(net: Network, parent: str, child: str) -> bool:
    """Whether the arc can go one way alone: from an input, or from a column of data sets."""
    level = [net.linear_fits[node].pooling == GroupLevel() for node in (parent, child)]
    return parent in net.inputs or (level[0] and not level[1])


def strongest(sizes: tuple[EffectSize, ...]) -> list[EffectSize]:
    """By the size of the effect, the largest first."""
    return sorted(sizes, key=lambda size: -abs(size.effect))


def most_different(sizes: tuple[EffectSize, ...]) -> list[EffectSize]:
    """By the standard deviation between data sets, the largest first."""
    return sorted(sizes, key=lambda size: (-size.between_sd, -abs(size.effect)))


def variances(net: Network) -> dict[str, float]:
    """The variance of each node inside data sets: the mean over data sets, weighted by rows.

    Of a node that has one value in each data set, the variance of these.
    """
    weights, mean = net.joint.prior, net.joint.mean
    inside = np.einsum("j,jii->i", weights, net.joint.cov)
    between = weights @ (mean - weights @ mean) ** 2
    variance = np.where(inside > 0, inside, between)
    return dict(zip(net.joint.names, variance.tolist(), strict=True))


def explained(net: Network, node: str) -> float:
    """The share of a node's variance inside data sets that its parents explain."""
    i = net.joint.names.index(node)
    total = float(net.joint.prior @ net.joint.cov[:, i, i])
    return (
        1 - float(net.joint.prior @ net.linear_fits[node].sigma2) / total if total > 0 else math.nan
    )
