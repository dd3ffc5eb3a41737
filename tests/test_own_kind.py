"""A kind of node from outside: `amounts` has one, and all that poolbn does works with it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from amounts import AMOUNT

import poolbn as pb
from poolbn.tables import kinds

KINDS = {"cost": "amount"}
SOURCE = Path(__file__).with_name("amounts.py")


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    """Other tests do not see the kind."""
    known = kinds.known_kinds()
    pb.register_kind(AMOUNT)
    yield
    if AMOUNT.name not in known:
        del kinds._KINDS[AMOUNT.name]


@cache
def patients() -> pd.DataFrame:
    """Age and sex multiply the cost, which adds to the length of stay."""
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(6), 60)
    level, more = rng.normal(0, 0.3, 6), rng.normal(0.6, 0.1, 6)
    age, male = rng.normal(50, 10, 360), rng.integers(0, 2, 360)
    cost = np.exp(2 + level[site] + 0.03 * age + more[site] * male + rng.normal(0, 0.5, 360))
    return pd.DataFrame(
        {
            "site": np.array(list("abcdef"))[site],
            "age": age,
            "sex": np.where(male, "male", "female"),
            "cost": cost,
            "stay": 0.1 * cost + rng.normal(0, 1, 360),
        }
    )


@cache
def table() -> pb.Table:
    return pb.table(patients(), group="site", kinds=KINDS)


@cache
def net() -> pb.Network:
    tiers = [["age", "sex"], ["cost"], ["stay"]]
    return pb.learn(table(), constraints={"tiers": tiers}, preset="paper")


def logged() -> pb.Network:
    """The same with the logarithm in place of the cost, for what follows from that."""
    frame = patients().assign(cost=lambda rows: np.log(rows["cost"]))
    start = [("age", "cost"), ("sex", "cost")]
    return pb.learn(
        frame[["site", "age", "sex", "cost"]],
        group="site",
        start=start,
        search=pb.HillClimb(max_iter=0),
        preset="paper",
    )


def test_it_takes_few_lines() -> None:
    assert len(SOURCE.read_text().splitlines()) <= 150


def test_it_is_learned_and_scored() -> None:
    arcs = {("age", "cost"), ("sex", "cost"), ("cost", "stay")}
    assert set(net().dag.arcs) == arcs
    jacobian = np.log(patients()["cost"]).sum()
    fit, log = net().fits["cost"], logged().fits["cost"]
    assert fit.loglik == pytest.approx(log.loglik - jacobian, abs=1e-6)
    assert pb.score(table(), net().dag) == pytest.approx(net().score)
    for pooling in ("complete", "none", "auto"):
        assert arcs >= set(
            pb.learn(table(), pooling=pooling, start=net(), preset="paper").dag.arcs
        ) - {(child, parent) for parent, child in arcs}


@pytest.mark.parametrize("score", ["bic-h", "gprior", "aic"])
def test_other_scores_and_searches_have_it(score: str) -> None:
    found = pb.learn(table(), score=score, search="exact", preset="paper")
    assert ("cost", "stay") in found.dag.skeleton()


def test_effects_are_ratios() -> None:
    effects = net().effects().set_index(["parent", "child"])
    linear = logged().effects().set_index(["parent", "child"])
    for parent in ("age", "sex"):
        one, log = effects.loc[(parent, "cost")], linear.loc[(parent, "cost")]
        assert one["scale"] == "ratio"
        assert one["effect"] == pytest.approx(np.exp(log["effect"]), abs=1e-6)
        assert one["lower"] == pytest.approx(np.exp(log["lower"]), abs=1e-6)
    tests = net().heterogeneity().set_index(["parent", "child"])
    assert tests.loc[("sex", "cost"), "test"] == "Welch"
    totals = net().total_effects("sex", "stay").iloc[0]
    assert 0.5 < totals["total"] / (0.1 * np.diff(_mean_costs())[0]) < 1.5


def _mean_costs() -> np.ndarray:
    return patients().groupby("sex")["cost"].mean().to_numpy()


def test_densities_and_predictions_follow_from_the_logarithm() -> None:
    rows = patients()[["site", "age", "sex", "cost"]]
    log = rows.assign(cost=np.log(rows["cost"]))
    small = pb.learn(
        rows,
        group="site",
        kinds=KINDS,
        start=logged().dag,
        search=pb.HillClimb(max_iter=0),
        preset="paper",
    )
    expected = logged().loglik(log, rows=True) - log["cost"]
    np.testing.assert_allclose(small.loglik(rows, rows=True), expected, atol=1e-6)
    some = rows.drop(columns="cost").head(20)
    found = small.predict(some, "cost", particles=20_000)
    normal = logged().predict(some, "cost")
    np.testing.assert_allclose(np.log(found["lower"]), normal["lower"], atol=0.1)
    np.testing.assert_allclose(np.log(found["upper"]), normal["upper"], atol=0.1)


def test_draws_interventions_and_new_data_sets() -> None:
    drawn = net().sample(4000, seed=1)
    ratio = drawn.groupby("sex")["cost"].mean().to_numpy() / _mean_costs()
    np.testing.assert_allclose(ratio, 1, atol=0.25)
    assert (drawn["cost"] > 0).all()
    low, high = (net().do(cost=cost).posterior({"site": "a"}, "stay").mean[0] for cost in (10, 110))
    assert high - low == pytest.approx(100 * 0.1, rel=0.1)
    new = patients().head(40).drop(columns="site")
    adapted = net().adapt(new, "g")
    known, there = (
        adapted.predict(new.assign(site=site).drop(columns="cost"), "cost", seed=2)["mean"]
        for site in ("a", "g")
    )
    np.testing.assert_allclose(known, there, rtol=0.25)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    for pooling in ("partial", "none", "auto"):
        there = pb.learn(
            table(), pooling=pooling, start=net(), search=pb.HillClimb(max_iter=0), preset="paper"
        )
        there.save(path)
        loaded = pb.load(path)
        assert str(loaded) == str(there)
        pd.testing.assert_frame_equal(loaded.effects(), there.effects())
        rows = patients().head(5)
        found, expected = (each.loglik(rows, rows=True) for each in (loaded, there))
        np.testing.assert_array_equal(found, expected)


def test_the_report_tells_of_it(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    net().report(path, data=table())
    text = path.read_text()
    assert "log-normal regression" in text
    assert "cannot compute with the kind of cost" in text
    assert "1 amount" in text


def test_what_cannot_be_is_told() -> None:
    wrong = patients().assign(cost=lambda rows: rows["cost"] - 20)
    with pytest.raises(pb.DataError, match=r"'cost' is of the kind 'amount', and .* not above 0"):
        pb.learn(wrong, group="site", kinds=KINDS, preset="paper")
    with pytest.raises(pb.OptionError, match=r"use one of 'continuous', .*'ordinal', 'amount'"):
        pb.learn(wrong, group="site", kinds={"cost": "amounts"}, preset="paper")
