"""Independence tests, PC and max-min hill climbing against bnlearn; see reference/tests."""

from __future__ import annotations

import gzip
import json
from functools import cache
from math import comb

import pandas as pd
import pytest
from helpers import REFERENCE, learned_as_given

import poolbn as pb

CASES = json.loads(gzip.decompress((REFERENCE / "tests" / "bnlearn.json.gz").read_bytes()))
NAMES = {"cor": "t", "zf": "z", "mi-g": "mi-g"}
PC = [case for case in CASES["searches"] if case["algorithm"] == "pc.stable"]
MMHC = [case for case in CASES["searches"] if case["algorithm"] == "mmhc"]


@cache
def stats(data: str) -> pb.GroupStats:
    """All rows together, as bnlearn had them."""
    folder = "bn" if data.startswith("bn") else "scores"
    rows = pd.read_csv(REFERENCE / folder / f"{data}.csv.gz")
    return pb.stats({"all": (rows.drop(columns="F") if folder == "bn" else rows).astype(float)})


@pytest.mark.parametrize("data", sorted({case["data"] for case in CASES["tests"]}))
def test_tests(data: str) -> None:
    cases = [case for case in CASES["tests"] if case["data"] == data]
    assert len(cases) == 75
    for case in cases:
        found = pb.ci_test(
            stats(data), case["x"], case["y"], case["given"], test=NAMES[case["test"]]
        )
        # bnlearn gives the correlation in place of t.
        own = found.correlation if case["test"] == "cor" else found.statistic
        assert own == pytest.approx(case["statistic"], rel=1e-8, abs=1e-10)
        assert found.df == case["df"]
        assert found.p_value == pytest.approx(case["p"], rel=1e-8)


def found(case: dict) -> pb.Pattern:
    learner = pb.PC(alpha=case["alpha"], test=NAMES[case["test"]], rule="standard")
    return learner.pattern(stats(case["data"]), pooling="complete")


def name_of(case: dict) -> str:
    return f"{case['data'][:6]}-{case['test']}-{case['alpha']}"


@pytest.mark.parametrize("case", PC, ids=name_of)
def test_skeletons_and_numbers_of_tests(case: dict) -> None:
    ours = found(case)
    pairs = {frozenset(pair) for pair in (*ours.cpdag.directed, *ours.cpdag.undirected)}
    assert pairs == {frozenset(pair) for pair in case["skeleton"]}
    # bnlearn 4.9 counts the tests without a condition, one of each pair, twice.
    assert ours.tests + comb(len(ours.cpdag.nodes), 2) == case["ntests"]


@pytest.mark.parametrize("case", PC, ids=name_of)
def test_arcs(case: dict) -> None:
    """Where no two colliders contradict each other, so that their order does not matter."""
    ours = found(case)
    if ours.conflicts:
        pytest.skip("colliders contradict each other")
    arcs = {(a, b) for a, b in case["arcs"]}
    directed = {(a, b) for a, b in arcs if (b, a) not in arcs}
    assert ours.cpdag == pb.Cpdag(
        ours.cpdag.nodes, directed, {tuple(sorted(arc)) for arc in arcs - directed}
    )


def test_some_arcs_are_compared() -> None:
    assert sum(not found(case).conflicts for case in PC) >= 12


@pytest.mark.parametrize("case", MMHC, ids=lambda case: case["data"])
def test_mmhc(case: dict) -> None:
    restrict = pb.MMPC(alpha=case["alpha"], test="z", max_given=None, both=True)
    as_theirs = pb.Hybrid(restrict, widen=False)
    data, pooling = stats(case["data"]), pb.Complete("unbiased")
    net = learned_as_given(data, pooling=pooling, search=as_theirs, preset="paper")
    assert net.score >= case["score"] - 1e-8 * abs(case["score"])
    wider = learned_as_given(data, pooling=pooling, search=pb.Hybrid(), preset="paper")
    assert wider.score >= net.score - 1e-8
