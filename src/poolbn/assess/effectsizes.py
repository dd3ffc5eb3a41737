"""Standardised effects of arcs: how strong, of which sign, how different between data sets.

And how much nodes vary inside data sets, and how much of that parents explain. Discrete nodes and
counts are measured on the scale on which their parents' effects add up. The log odds of a level
vary with the parents, and the variance of the logistic distribution, pi^2 / 3, is what they leave
(McKelvey and Zavoina 1975). The logarithm of a count with mean m and dispersion k has about
log(1 + 1 / m + 1 / k) beside the variance of the logarithm of m (Nakagawa, Johnson and Schielzeth
2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from poolbn.arrays import Floats
from poolbn.graph.constraints import Constraints
from poolbn.graph.equivalence import Direction, directions, set_apart
from poolbn.graph.pairs import Pair
from poolbn.inference.drawing import draw_columns
from poolbn.network.network import Network
from poolbn.nodes.localfit import GroupLevel
from poolbn.nodes.terms import Term

_ROWS, _LEAST = 40_000, 400  # drawn in all data sets, and in each


@dataclass(frozen=True)
class Spreads:
    """Standard deviations inside data sets, or between them of what varies there alone."""

    columns: Mapping[str, float]  # of nodes, and of indicators of levels ("sex=male")
    # Of what effects on a node add up on: a continuous node itself, else log odds of an outcome or
    # logarithms of means; by node and outcome, "" where there is none.
    children: Mapping[tuple[str, str], float]
    means: Mapping[str, float]  # of the columns
    # The share of a node's variance that its parents explain; NaN where it has several outcomes, or
    # does not vary.
    explained: Mapping[str, float]
    exact: bool  # whether nothing was drawn


def spreads(net: Network) -> Spreads:
    """Find them: in closed form where all nodes are linear, else from rows drawn from the network.

    Data sets count by their rows. Of a node that has one value in each data set, the variance is
    that of these values.
    """
    if not all(fit.gaussian is not None for fit in net.fits.values()):
        return _drawn(net)
    weights, mean = net.joint.prior, net.joint.mean
    inside = np.einsum("j,jii->i", weights, net.joint.cov)
    between = weights @ (mean - weights @ mean) ** 2
    sd = dict(zip(net.joint.names, np.sqrt(np.where(inside > 0, inside, between)), strict=True))
    left = {node: float(weights @ fit.sigma2) for node, fit in net.linear_fits.items()}
    total = dict(zip(net.joint.names, inside.tolist(), strict=True))
    return Spreads(
        {node: float(value) for node, value in sd.items()},
        {(node, ""): float(value) for node, value in sd.items()},
        dict(zip(net.joint.names, (weights @ mean).tolist(), strict=True)),
        {n: 1 - left[n] / total[n] if total[n] > 0 else math.nan for n in net.joint.names},
        exact=True,
    )


def _drawn(net: Network) -> Spreads:
    F, order = len(net.levels), net.dag.topological_order()
    each = max(_LEAST, _ROWS // F)
    sets = np.repeat(np.arange(F), each)
    drawn = draw_columns(net.fits, order, sets, np.random.default_rng(0))
    rows = net.n if net.n.any() else np.ones(F)
    weights = rows / rows.sum()

    def inside(values: Floats) -> float:
        return float(weights @ values.reshape(F, each).var(axis=1))

    columns, children, explained = {}, {}, {}
    numbers = {k: v for node in order for k, v in net.fits[node].as_columns(drawn[node]).items()}
    for name, values in numbers.items():
        own = values.reshape(F, each).mean(axis=1)
        variance = inside(values) or float(weights @ (own - weights @ own) ** 2)
        columns[name] = math.sqrt(variance)
    for node in order:
        fit = net.fits[node]
        if (linear := fit.gaussian) is not None:
            total = inside(drawn[node])
            children[node, ""] = columns[node]
            left = float(weights @ linear.sigma2)
            explained[node] = max(0.0, 1 - left / total) if total > 0 else math.nan
            continue
        shares = []
        for outcome, (value, left) in fit.explained(drawn[node], drawn, sets).items():
            variance = inside(value)
            children[node, outcome] = math.sqrt(variance + left)
            shares.append(variance / (variance + left))
        explained[node] = shares[0] if len(shares) == 1 else math.nan
    means = {name: float(weights @ v.reshape(F, each).mean(axis=1)) for name, v in numbers.items()}
    return Spreads(columns, children, means, explained, exact=False)


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
    direction: Direction  # why it goes this way
    each: tuple[float, ...]  # effects, one for each level: of these it is the strongest

    @property
    def reversible(self) -> bool:
        """Whether equivalent graphs that the search could find have the arc the other way round."""
        return self.direction is Direction.SCORE

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
    net: Network, found: Spreads | None = None, constraints: Constraints | None = None
) -> tuple[EffectSize, ...]:
    """The standardised effects of all arcs, in the order of the arcs, found with constraints."""
    found, why = spreads(net) if found is None else found, arc_directions(net, constraints)
    sizes = []
    for index, (parent, child) in enumerate(net.dag.arcs):
        terms = [_scaled(term, child, found) for term in net.fits[child].terms(parent)]
        first = max(terms, key=lambda term: abs(term[0]))
        each = tuple(effect for effect, _, _ in terms)
        sizes.append(EffectSize(index, parent, child, *first, why[parent, child], each))
    return tuple(sizes)


def arc_directions(net: Network, constraints: Constraints | None = None) -> dict[Pair, Direction]:
    """Why each arc of a network, found with these constraints, has its direction."""
    nodes, limits = net.dag.nodes, constraints or Constraints()
    known = ~limits.on(nodes, [net.fits[node].kind for node in nodes]).arcs.T
    for parent, child in net.dag.arcs:
        known[nodes.index(parent), nodes.index(child)] |= _goes_first(net, parent, child)
    apart = set_apart(nodes, net.interventions.values())
    found = directions(net.dag.to_adjacency().astype(bool), apart, known)
    return {(nodes[i], nodes[j]): why for (i, j), why in found.items()}


def _scaled(term: Term, child: str, found: Spreads) -> tuple[float, float, Floats]:
    """A standardised effect: of the population, its spread between data sets, of each, (F,)."""
    sd = found.children[child, term.outcome]
    unit = found.columns[term.column] / sd if sd else 0.0
    # A level that no row has leaves an effect unknown, which is not a strong one.
    effect = term.effect if math.isfinite(term.effect) else 0.0
    return unit * effect, unit * term.varies, unit * term.own


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
