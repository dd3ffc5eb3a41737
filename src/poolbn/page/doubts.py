"""Which pairs of variables are in doubt: probabilities, p-values and bootstrap strengths."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

from poolbn.errors import ArgumentError, DataError
from poolbn.network.network import Network
from poolbn.posteriors.posterior import ArcPosterior
from poolbn.search.pattern import Pattern
from poolbn.show.texts import arrow, p_value

Evidence = ArcPosterior | Pattern


class PairDoubt(NamedTuple):
    """What is known of an arc between two variables, in the direction that is more probable."""

    parent: str  # a variable
    child: str  # another
    probability: float | None  # of an arc, either way; None without a posterior
    direction: float | None  # the share of it that goes this way
    p_value: float | None  # the largest of the tests of independence; None without any
    given: tuple[str, ...] | None  # what makes them independent, if something does
    doubt: float  # what pairs are sorted by: the least first


def check_evidence(net: Network, evidence: object) -> Evidence:
    """Raise for what is no evidence, or of other variables."""
    if not isinstance(evidence, Evidence):
        raise ArgumentError(
            f"expected evidence, got {type(evidence).__name__}; pb.arc_posterior and "
            "pb.PC().pattern give it"
        )
    nodes = evidence.nodes if isinstance(evidence, ArcPosterior) else evidence.cpdag.nodes
    other = sorted(set(nodes) ^ set(net.dag.nodes))
    if other:
        raise DataError(
            f"the evidence was not of the variables of the network: {other[0]!r} is in one of the "
            "two only; use the same columns for both"
        )
    return evidence


def pair_doubts(
    net: Network, post: ArcPosterior | None, pattern: Pattern | None
) -> dict[frozenset[str], PairDoubt]:
    """Of each pair, those in most doubt first.

    A probability is in doubt near 1/2, a p-value near the level of the tests.
    """
    found = []
    for a, b in combinations(net.dag.nodes, 2):
        probability = direction = p = given = None
        doubt = math.inf
        if pattern is not None:
            x, y = sorted(map(pattern.cpdag.nodes.index, (a, b)))
            p = float(pattern.p_values[x, y])
            p = None if math.isnan(p) else p
            given = pattern.separators.get((pattern.cpdag.nodes[x], pattern.cpdag.nodes[y]))
            if p is not None:
                doubt = abs(math.log(max(p, 1e-300)) - math.log(pattern.alpha))
        if post is not None:
            there, back = post.probability(a, b), post.probability(b, a)
            if back > there:
                a, b, there, back = b, a, back, there  # noqa: PLW2901 the direction to name
            probability = min(there + back, 1.0)
            direction = there / (there + back) if there + back > 0 else None
            doubt = abs(probability - 0.5)
        found.append(PairDoubt(a, b, probability, direction, p, given, doubt))
    found.sort(key=lambda pair: pair.doubt)
    return {frozenset((pair.parent, pair.child)): pair for pair in found}


def doubt_words(pair: PairDoubt) -> list[str]:
    """Sentences on one arc."""
    said = []
    if pair.probability is not None:
        told = f"The probability of an arc between the two is {pair.probability:.2f}"
        if pair.direction is not None:
            told += f", and {pair.direction:.0%} of that is for {arrow(pair.parent, pair.child)}"
        said.append(f"{told}.")
    if pair.p_value is not None:
        least = "" if pair.given is None else ", so that tests alone would leave it out"
        p = p_value(pair.p_value)
        said.append(f"The largest p-value of tests of independence is {p}{least}.")
    return said
