"""Distances between networks against bnlearn's; recipes are beside the numbers in reference/bn."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import REFERENCE, given, reference

import poolbn as pb
from poolbn import metrics

CASES = reference("bn/distances.json")
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
KINDS = ["gbn", "cgbn", "lme_best", "lme_lme4default", "lme_lme4default_REML"]
NODES = [f"X{i + 1}" for i in range(10)]


@cache
def table(data: str) -> pd.DataFrame:
    return pd.read_csv(REFERENCE / "bn" / data)


def dag(part: dict) -> pb.Dag:
    return pb.Dag(NODES, part["arcs"])


def levels(case: dict) -> list[str]:
    return [f"g{j + 1:02}" for j in range(len(case["truth"]["sd"]))]


def network(case: dict, part: dict, sd: str = "sd") -> pb.Network:
    """From the coefficients (rows) of all data sets (columns)."""
    coef = {node: np.array(b).T for node, b in part["coef"].items()}
    return given(dag(part), coef, np.array(part[sd]), levels(case))


def fitted(case: dict, kind: str, pooling: object) -> pb.Network:
    """Our own parameters for their arcs."""
    graph = dag(case[kind])
    none = pb.HillClimb(max_iter=0)
    return pb.learn(table(case["data"]), group="F", pooling=pooling, start=graph, search=none)


@each_case
@pytest.mark.parametrize("kind", KINDS)
def test_structural_hamming_distances(case: dict, kind: str) -> None:
    true, learned = dag(case["truth"]), dag(case[kind])
    assert metrics.shd(true, learned) == case[kind]["shd"]["cpdag"]
    assert metrics.shd(learned.cpdag(), true) == case[kind]["shd"]["cpdag"]
    assert metrics.compare_arcs(true, learned).distance == case[kind]["shd"]["dag"]


@each_case
@pytest.mark.parametrize(
    ("kind", "pooling"), [("gbn", pb.Complete("unbiased")), ("cgbn", pb.NoPooling("unbiased"))]
)
def test_divergence_of_our_fits(case: dict, kind: str, pooling: object) -> None:
    true, learned = network(case, case["truth"]), fitted(case, kind, pooling)
    assert metrics.kl(true, learned) == pytest.approx(case[kind]["kl"], rel=1e-6)
    total = metrics.kl(true, learned, weights="sum")
    assert total == pytest.approx(case[kind]["kl"] * len(levels(case)), rel=1e-6)


@each_case
@pytest.mark.parametrize(("sd", "kl"), [("sd", "kl"), ("sd_by_data_set", "kl_sd_by_data_set")])
def test_divergence_of_their_mixed_effects_fits(case: dict, sd: str, kl: str) -> None:
    true, learned = network(case, case["truth"]), network(case, case["lme_best"], sd)
    assert metrics.kl(true, learned) == pytest.approx(case["lme_best"][kl], rel=1e-6)


@pytest.mark.parametrize(
    "case",
    # In bn07 their parameters of X7 are of a fit that stopped 1.3 log-likelihood units short.
    [case for case in CASES if not case["id"].startswith("bn07")],
    ids=lambda case: case["id"],
)
def test_divergence_of_our_mixed_effects_fits(case: dict) -> None:
    true, learned = network(case, case["truth"]), fitted(case, "lme_best", pb.Partial())
    assert metrics.kl(true, learned) == pytest.approx(case["lme_best"]["kl"], rel=1e-6)


@each_case
@pytest.mark.parametrize(
    ("kind", "pooling"), [("gbn", pb.Complete("unbiased")), ("cgbn", pb.NoPooling("unbiased"))]
)
def test_log_likelihoods(case: dict, kind: str, pooling: object) -> None:
    """Their BIC without its penalty, and for the conditional networks without the node F."""
    rows, net = table(case["data"]), fitted(case, kind, pooling)
    price = math.log(len(rows)) / 2
    theirs = sum(
        score + price * net.fits[node].n_params
        for node, score in case[kind]["score_by_node"].items()
        if node != "F"
    )
    assert net.loglik(rows, plugin=True) == pytest.approx(theirs, rel=1e-9)
