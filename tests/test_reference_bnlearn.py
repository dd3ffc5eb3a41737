"""Scores against bnlearn; recipes are beside the numbers in reference/scores."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest
from helpers import REFERENCE, reference

import poolbn as pb
from poolbn.moments.standardised import standardise

CASES = reference("scores/scores.json")
GAUSSIAN = [case for case in CASES if not case["discrete"]]
CONDITIONAL = [case for case in CASES if case["discrete"]]
BGE = {
    "bge": pb.BGe(),
    "bge;iss.mu=10": pb.BGe(iss_mu=10),
    "bge;iss.w=20": pb.BGe(iss_w=20),
}


@cache
def table(data: str) -> pd.DataFrame:
    return pd.read_csv(REFERENCE / "scores" / data)


@cache
def one_data_set(data: str) -> pb.GroupStats:
    return pb.stats({"all": table(data)})


def parents(case: dict, node: str) -> list[str]:
    return [a for a, b in case["arcs"] if b == node]


@pytest.mark.parametrize("case", GAUSSIAN, ids=lambda case: f"{case['data'][:5]}-{case['net']}")
def test_gaussian_networks(case: dict) -> None:
    stats = one_data_set(case["data"])
    for node, loglik in case["scores"]["loglik-g"].items():
        fit = pb.fit_node(stats, node, parents(case, node), pooling=pb.Complete("unbiased"))
        assert fit.loglik == pytest.approx(loglik, rel=1e-8)
        assert fit.aic == pytest.approx(case["scores"]["aic-g"][node], rel=1e-8)
        assert fit.bic == pytest.approx(case["scores"]["bic-g"][node], rel=1e-8)
    zero = pb.BGe(iss_mu=5, iss_w=15, nu=dict.fromkeys(stats.names, 0.0))
    for name, bge in (BGE | {"bge;iss.mu=5;iss.w=15;nu=zero": zero}).items():
        data = standardise(stats)
        scores = bge.on(stats, pb.Complete())
        for node, value in case["scores"][name].items():
            found = scores.scores([data.family(node, parents(case, node))])
            assert found[0] == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("case", GAUSSIAN[:3], ids=lambda case: case["net"])
@pytest.mark.parametrize(("kind", "theirs"), [("bic", "bic-g"), ("aic", "aic-g"), ("bge", "bge")])
def test_network_scores_are_the_sum(case: dict, kind: str, theirs: str) -> None:
    arcs = [tuple(arc) for arc in case["arcs"]]
    total = pb.score(one_data_set(case["data"]), arcs, pooling=pb.Complete("unbiased"), score=kind)
    assert total == pytest.approx(sum(case["scores"][theirs].values()), rel=1e-10)


@pytest.mark.parametrize("case", CONDITIONAL, ids=lambda case: case["net"])
def test_conditional_gaussian_networks(case: dict) -> None:
    """A node's discrete parents, crossed, say which data set a row belongs to."""
    rows = table(case["data"])
    nodes = [name for name in rows.columns if name not in case["discrete"]]
    for node in nodes:
        pa = parents(case, node)
        discrete = [name for name in pa if name in case["discrete"]]
        continuous = [name for name in pa if name not in discrete]
        if discrete:
            sets = rows.groupby(discrete, observed=True).ngroup()
            stats = pb.stats(rows[nodes].assign(F=sets), group="F")
            fit = pb.fit_node(stats, node, continuous, pooling=pb.NoPooling("unbiased"))
        else:
            stats = pb.stats({"all": rows[nodes]})
            fit = pb.fit_node(stats, node, continuous, pooling=pb.Complete("unbiased"))
        for kind in ("loglik", "aic", "bic"):
            theirs = float(case["scores"][f"{kind}-cg"][node])  # "-Inf" is a string in the file
            assert getattr(fit, kind) == pytest.approx(theirs, rel=1e-8)


@cache
def mixed_table(group: str | None) -> pb.Table:
    rows = table("clgaussian.test.csv.gz")
    return pb.table(rows, group=group) if group else pb.table({"all": rows})


@pytest.mark.parametrize("case", CONDITIONAL, ids=lambda case: case["net"])
@pytest.mark.parametrize("kind", ["loglik", "aic", "bic"])
def test_nodes_of_mixed_networks(case: dict, kind: str) -> None:
    """In one data set, and where a discrete node's first parent says which data set a row is of."""
    pooling = pb.NoPooling("unbiased", discrete="table", continuous="conditional")
    roots = CONDITIONAL[0]["scores"][f"{kind}-cg"]
    for node in case["scores"]["bic-cg"]:
        pa = parents(case, node)
        theirs = float(case["scores"][f"{kind}-cg"][node])  # "-Inf" is a string in the file
        total = theirs + sum(value for name, value in roots.items() if name != node)
        arcs = [(parent, node) for parent in pa]
        ours = pb.score(mixed_table(None), arcs, pooling=pooling, score=kind)
        assert ours == pytest.approx(total, rel=1e-10)
        own = pb.fit_node(mixed_table(None), node, pa, pooling=pooling)
        assert getattr(own, kind) == pytest.approx(theirs, rel=1e-10)
        if pa and node in case["discrete"]:
            fit = pb.fit_node(mixed_table(pa[0]), node, pa[1:], pooling=pooling)
            assert getattr(fit, kind) == pytest.approx(theirs, rel=1e-10)
