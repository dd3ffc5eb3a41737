"""Networks against bnlearn's hill climbing; recipes are beside the numbers in reference/bn.

Of moves that score the same bnlearn makes the first in the order of columns: so these searches have
the columns in that order, where `pb.learn` has them in one that does not depend on it.
"""

from __future__ import annotations

from functools import cache

import pytest
from helpers import REFERENCE, learned_as_given, reference

import poolbn as pb

CASES = reference("bn/bn.json")
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


@cache
def statistics(data: str) -> pb.GroupStats:
    return pb.stats(REFERENCE / "bn" / data, group="F")


def arcs(theirs: dict) -> set[tuple[str, str]]:
    return {(parent, child) for parent, child in theirs["arcs"]}


@each_case
def test_gaussian_networks(case: dict) -> None:
    net = learned_as_given(statistics(case["data"]), pooling=pb.Complete("unbiased"))
    assert set(net.dag.arcs) == arcs(case["gbn"])
    assert net.score == pytest.approx(case["gbn"]["score"], abs=1e-6)


@each_case
def test_conditional_gaussian_networks(case: dict) -> None:
    """There the data set is a node too, with a score of its own."""
    net = learned_as_given(statistics(case["data"]), pooling=pb.NoPooling("unbiased"))
    assert set(net.dag.arcs) == arcs(case["cgbn"])
    theirs = case["cgbn"]["score"] - case["cgbn"]["by_node"]["F"]
    assert net.score == pytest.approx(theirs, abs=1e-6)


@each_case
def test_mixed_effects_networks(case: dict) -> None:
    net = pb.learn(statistics(case["data"]), preset="paper")
    assert set(net.dag.arcs) == arcs(case["lme_best"])
    best = case["lme_best"]["score"]
    assert net.score >= best - 1e-6 * abs(best)


@each_case
def test_every_family_reaches_the_best_known_maximum(case: dict) -> None:
    stats = statistics(case["data"])
    short = {}
    for node, parents, best in case["lme_local_loglik"]:
        loglik = pb.fit_node(stats, node, parents).loglik
        if loglik < best - 1e-6 * max(1, abs(best)):
            short[node, *parents] = best - loglik
    assert len(case["lme_local_loglik"]) > 100
    assert short == {}
