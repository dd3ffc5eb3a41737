"""Tests of equal effects: lme4's likelihoods, scipy's chi-squares, and how often they are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2

import poolbn as pb

REFERENCE = Path(__file__).parent / "reference"
CASES = json.loads((REFERENCE / "heterogeneity" / "cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["table"] for case in CASES])
@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_ratios_are_those_of_lme4(case: dict) -> None:
    table = pd.read_csv(REFERENCE / "lme" / "data" / f"{case['table']}.csv.gz")
    columns = [*case["parents"], case["child"]]
    stats = pb.stats(table, group=case["group"], columns=columns)
    net = pb.learn(
        stats, pooling="complete", constraints=pb.Constraints(
            required=[(p, case["child"]) for p in case["parents"]],
            forbidden=[(a, b) for a in columns for b in case["parents"] if a != b],
        ),
    )  # fmt: skip
    found = net.heterogeneity()
    assert (found["parent"][len(net.dag.arcs) :] == "(residual variance)").all()
    found = found[: len(net.dag.arcs)]
    assert list(zip(found["parent"], found["child"], strict=True)) == list(net.dag.arcs)
    ratio = [2 * (case["full"] - without) for without in case["without"]]
    np.testing.assert_allclose(found["lr_statistic"], ratio, atol=2e-5, rtol=1e-6)
    q = len(columns)
    p = (chi2.sf(ratio, q - 1) + chi2.sf(ratio, q)) / 2
    np.testing.assert_allclose(found["p_value"], p, rtol=1e-4)


def simulated(seed: int, slope_sd: float, spread: float = 0.0) -> pb.GroupStats:
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(30), 12)
    x = rng.normal(size=len(site))
    y = rng.normal(size=30)[site] + (1 + slope_sd * rng.normal(size=30)[site]) * x
    noise = rng.normal(size=len(site)) * np.exp(spread * rng.normal(size=30))[site]
    table = pd.DataFrame({"x": x, "y": y + noise, "site": site})
    return pb.stats(table, group="site")


@pytest.mark.parametrize("slope_sd", [0.0, 1.0])
def test_equal_effects_are_rejected_as_often_as_they_should_be(slope_sd: float) -> None:
    dag = pb.Dag(["x", "y"], [("x", "y")])
    fit = pb.fit_node(simulated(0, slope_sd), "y", ["x"])
    net = pb.learn(simulated(0, slope_sd), start=dag)
    assert fit.parents == net.dag.parents("y")
    p = np.array(
        [net.heterogeneity(simulated(seed, slope_sd))["p_value"][0] for seed in range(400)]
    )
    if slope_sd:
        assert (p < 1e-4).all()
        return
    for level in (0.05, 0.5):
        low, high = binom.ppf([1e-3, 1 - 1e-3], len(p), level)
        assert low * 0.5 <= (p < level).sum() <= high  # cautious at worst


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_equal_residual_variances_are_rejected_as_often_as_they_should_be(spread: float) -> None:
    net = pb.learn(simulated(0, 0.5), start=[("x", "y")])
    found = [net.heterogeneity(simulated(seed, 0.5, spread)).iloc[2] for seed in range(300)]
    assert {(row["parent"], row["child"]) for row in found} == {("(residual variance)", "y")}
    p = np.array([row["p_value"] for row in found])
    if spread:
        assert (p < 0.05).mean() > 0.95
        return
    for level in (0.05, 0.3):
        low, high = binom.ppf([1e-3, 1 - 1e-3], len(p), level)
        assert low * 0.5 <= (p < level).sum() <= high


def test_units_do_not_matter() -> None:
    stats = simulated(1, 0.3)
    other = pb.GroupStats(
        stats.names, stats.levels, stats.n, stats.mean * [1e-3, 1e4] + [5.0, -1e5],
        stats.scatter * np.outer([1e-3, 1e4], [1e-3, 1e4]), stats.dropped,
    )  # fmt: skip
    net = pb.learn(stats, start=[("x", "y")])
    pd.testing.assert_frame_equal(
        net.heterogeneity(), net.heterogeneity(other), rtol=1e-6, atol=1e-6
    )


def test_no_likelihood_is_nan() -> None:
    table = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [1.0, 3, 2, 5], "site": list("aabb")})
    stats = pb.stats(table, group="site")
    net = pb.learn(stats, pooling="complete", constraints=pb.Constraints(required=[("x", "y")]))
    found = net.heterogeneity()
    assert found[found["child"] == "y"][["lr_statistic", "p_value"]].isna().all(axis=None)
