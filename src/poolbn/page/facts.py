"""What a reader should know first, as values: `page.summary` puts it into words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from poolbn.assess.comparison import Difference
from poolbn.assess.effectsizes import EffectSize, most_different, strongest
from poolbn.assess.estimates import Estimates
from poolbn.nodes.poolings import Complete
from poolbn.page.context import Context
from poolbn.show.figures import is_sure

LEAST = 0.05  # standardised effects and differences below are not worth naming
_CLEAR = 0.05  # adjusted p-value
_ONE_WAY = 0.8  # of bootstrap networks with an arc, or of its probability, for this direction
PROBABLE = 0.9  # the probability of an arc that is sure
_LEADING = 5  # effects that a report begins with


@dataclass(frozen=True)
class Differences:
    """Arcs whose effects differ between data sets, those that differ most first."""

    tested: bool  # whether there are tests
    turning: tuple[EffectSize, ...] = ()  # the direction may be another in a new data set
    keeping: tuple[EffectSize, ...] = ()  # it is the same, and the size differs
    slight: tuple[EffectSize, ...] = ()  # not by chance, but by too little to matter
    denied: tuple[EffectSize, ...] = ()  # they differ, and the fit has one effect for all data sets


@dataclass(frozen=True)
class PoolingAdvice:
    """Which model predicts held-out rows best, and which one a report shows."""

    best: str  # its name
    own: str | None  # the name of the one that is shown; None if it was not compared
    behind: Difference | None  # how far that one is; None if it is the best, or not compared


def differences(of: Context) -> Differences:
    """Sort the arcs by whether their effects differ, and whether that matters."""
    kinds: dict[str, list[EffectSize]] = {}
    for size in most_different(of.sizes):
        kinds.setdefault(_kind(of, size), []).append(size)
    kinds.pop("", None)
    return Differences(bool(of.tests), **{kind: tuple(arcs) for kind, arcs in kinds.items()})


def _kind(of: Context, size: EffectSize) -> str:
    test = of.tests.get((size.parent, size.child))
    found = of.estimates[size.index][size.term]
    if of.tests and not (test is not None and test.p_adjusted < _CLEAR):
        return ""
    if isinstance(of.net.fits[size.child].pooling, Complete):
        return "denied" if of.tests else ""
    if size.between_sd < LEAST:
        return "slight" if of.tests else ""
    return "turning" if turns(found) else "keeping"


def turns(found: Estimates) -> bool:
    """Whether the effect may have the other direction in a new data set, or has it in some."""
    low, high = found.new_interval
    if math.isfinite(low) and math.isfinite(high):
        return low <= 0 <= high
    own = found.effect[np.isfinite(found.effect)]
    return bool((own * found.population < 0).any())


def is_clear(found: Estimates) -> bool:
    """Whether the interval of the population's effect is on one side of no effect."""
    low, high = found.population_interval
    return low > 0 or high < 0


def leading(of: Context) -> tuple[EffectSize, ...]:
    """Effects that a report begins with: strong ones that are sure, in the order of time.

    Their interval is on one side of no effect, their direction is determined by the data or by
    constraints, and a bootstrap or else probabilities of arcs, if there are any, find them so.
    """
    found = [
        size for size in strongest(of.sizes) if abs(size.effect) >= LEAST and _is_sure(of, size)
    ]
    return tuple(sorted(found[:_LEADING], key=lambda size: _when(of, size)))


def _is_sure(of: Context, size: EffectSize) -> bool:
    if of.boot is not None and of.strengths is not None:
        found = of.strengths[size.index]
        known = is_sure(of.boot, found.strength) and found.direction >= _ONE_WAY
    elif (probable := probability(of, size)) is not None:
        known = probable[0] >= PROBABLE and probable[1] >= _ONE_WAY
    else:
        known = True
    return known and not size.reversible and is_clear(of.estimates[size.index][size.term])


def probability(of: Context, size: EffectSize) -> tuple[float, float] | None:
    """Of an arc between the two, either way, and its share for this direction, if it is known."""
    pair = of.doubts.get(frozenset((size.parent, size.child)))
    if pair is None or pair.probability is None:
        return None
    share = pair.direction or 0.0
    return pair.probability, share if pair.parent == size.parent else 1 - share


def _when(of: Context, size: EffectSize) -> tuple[int, int]:
    """The tiers of the child and of the parent; arcs that are in none stay in their order."""
    tier = {name: k for k, names in enumerate(of.tiers) for name in names}
    return tier.get(size.child, -1), tier.get(size.parent, -1)


def unsure(of: Context) -> list[tuple[EffectSize, float]]:
    """Arcs that are not sure, with what says so, the weakest first.

    They are below the threshold of the bootstrap; without one, of low probability.
    """
    if of.boot is not None and of.strengths is not None:
        pairs = zip(of.sizes, of.strengths, strict=True)
        weak = [(size, arc.strength) for size, arc in pairs if not is_sure(of.boot, arc.strength)]
    else:
        found = [(size, probability(of, size)) for size in of.sizes]
        weak = [(size, p[0]) for size, p in found if p is not None and p[0] < PROBABLE]
    return sorted(weak, key=lambda pair: pair[1])


def pooling_advice(of: Context) -> PoolingAdvice | None:
    """What a comparison recommends."""
    if of.found is None or not any(map(math.isfinite, of.found.loglik.mean(axis=1).tolist())):
        return None
    best = of.found.best
    names = [name for name in (best, *of.found.poolings) if _same(of, name)]
    own = names[0] if names else None
    behind = None if own is None or own == best else of.found.difference(own)
    return PoolingAdvice(best, own, behind)


def _same(of: Context, name: str) -> bool:
    """Whether the network has the pooling of that name."""
    assert of.found is not None
    own, other = (
        {repr(fit.pooling) for fit in net.fits.values()}
        for net in (of.net, of.found.networks[name])
    )
    return own == other
