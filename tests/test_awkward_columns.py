"""Columns that are constant in some data sets, in each of them, or exact combinations of others."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import poolbn as pb
from poolbn.assess.effectsizes import effect_sizes, spreads

pytestmark = pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
POOLED, SEPARATE = pb.Partial(residuals="pooled"), pb.Partial(residuals="separate")
OWN = [POOLED, SEPARATE, pb.Auto(), pb.NoPooling()]


def sites(seed: int, rows: int = 60, kind: str = "lab") -> pd.DataFrame:
    """Eight sites: x -> y -> lab, and in site s3 the last is constant."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(8), rows)
    x = rng.normal(size=len(site))
    y = 0.5 * x + rng.normal(size=len(site))
    lab = 0.5 * y + rng.normal(size=len(site))
    if kind == "treated":  # 0/1, and a site without treatment
        lab = (lab > 0).astype(float)
    lab[site == 3] = 0.0
    return pd.DataFrame({"site": [f"s{j}" for j in site], "x": x, "y": y, "lab": lab})


def schools(seed: int, groups: int = 20, rows: int = 15) -> pd.DataFrame:
    """A score that depends on the size of the school and on x, whose slope varies."""
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(groups), rows)
    size, age = rng.normal(10, 3, groups), rng.normal(size=groups)
    x = rng.normal(size=len(school))
    level = 2 + 0.4 * size + rng.normal(0, 0.5, groups)
    slope = 1 + rng.normal(0, 0.3, groups)
    y = level[school] + slope[school] * x + rng.normal(size=len(school))
    return pd.DataFrame(
        {"school": school, "size": size[school], "age": age[school], "x": x, "y": y}
    )


# Constant in one data set


@pytest.mark.parametrize("pooling", OWN, ids=str)
def test_a_data_set_with_a_constant_child_is_left_out_and_named(pooling: pb.Partial) -> None:
    frame = sites(1)
    fit = pb.fit_node(pb.stats(frame, group="site"), "lab", ["y"], pooling=pooling)
    others = pb.stats(frame[frame["site"] != "s3"], group="site")
    alone = pb.fit_node(others, "lab", ["y"], pooling=pooling)
    assert fit.left_out == ("s3",)
    assert "'s3'" in fit.detail
    assert alone.left_out == ()
    assert fit.loglik == pytest.approx(alone.loglik, rel=1e-12)
    assert fit.status is alone.status
    keep = [j for j, level in enumerate(fit.levels) if level != "s3"]
    np.testing.assert_allclose(fit.coef[keep], alone.coef, rtol=1e-9)
    np.testing.assert_allclose(fit.sigma2[keep], alone.sigma2, rtol=1e-9)
    assert (fit.sigma2 > 0).all()


def test_shared_residuals_keep_it_as_lme4_does() -> None:
    fit = pb.fit_node(pb.stats(sites(1), group="site"), "lab", ["y"])
    assert fit.left_out == ()


def classes(seed: int) -> pd.DataFrame:
    """Thirty schools of 20 pupils; two schools have two classes, whose sizes differ by chance."""
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(30), 20)
    second = (school < 2) & (np.arange(600) % 20 < 8)
    size = rng.integers(15, 30, 30)[school] + np.where(second, -4.0, 0.0)
    x = rng.normal(size=(600, 6))
    return pd.DataFrame(x, columns=list("abcdef")).assign(school=school, size=size)


def test_a_child_that_varies_in_few_schools_is_learned_from_these() -> None:
    frame = classes(1)
    stats = pb.stats(frame, group="school")
    two = pb.stats(frame[frame["school"] < 2], group="school")
    for parents in ([], ["a", "b"]):
        fit = pb.fit_node(stats, "size", parents)
        assert fit.left_out == tuple(range(2, 30))
        alone = pb.fit_node(two, "size", parents)
        assert fit.loglik == pytest.approx(alone.loglik, rel=1e-9)
        assert fit.fixed == pytest.approx(alone.fixed, rel=1e-6, abs=1e-9)
    assert pb.fit_node(stats, "size", pooling="complete").left_out == ()


def test_a_child_that_varies_in_one_school_is_learned_from_that_one() -> None:
    frame = classes(1)
    frame["size"] = np.where(frame["school"] == 1, 20.0, frame["size"])
    stats = pb.stats(frame, group="school")
    fit = pb.fit_node(stats, "size", ["a"])
    one = frame[frame["school"] == 0]
    alone = scipy.stats.linregress(one["a"], one["size"])
    assert fit.fixed == pytest.approx([alone.intercept, alone.slope])
    assert (fit.random_cov == 0).all()
    net = pb.learn(stats, preset="paper")
    assert net.score == pytest.approx(sum(net.fits[name].bic for name in stats.names))


@pytest.mark.parametrize("pooling", ["partial", POOLED, "auto"], ids=str)
def test_no_parent_of_a_child_that_varies_in_few_schools_is_invented(pooling: object) -> None:
    found = [
        pb.learn(classes(seed), group="school", pooling=pooling, preset="paper").dag
        for seed in range(8)
    ]
    assert sum(len(dag.parents("size")) for dag in found) <= 2


@pytest.mark.parametrize("kind", ["lab", "treated"])
@pytest.mark.parametrize("pooling", [POOLED, pb.Auto()], ids=str)
def test_no_false_arc_and_the_slope_of_the_others(pooling: pb.Partial, kind: str) -> None:
    effects, false = [], 0
    for seed in range(12):
        stats = pb.stats(sites(seed, kind=kind), group="site")
        effects.append(pb.fit_node(stats, "lab", ["y"], pooling=pooling).fixed[1])
        arcs = pb.learn(stats, pooling=pooling, preset="paper").dag.arcs
        false += {"x", "lab"} in [set(arc) for arc in arcs]
    assert false == 0
    if kind == "lab":
        assert np.mean(effects) == pytest.approx(0.5, abs=0.05)


def test_a_child_that_varies_in_one_data_set_has_no_pooled_variance() -> None:
    frame = sites(2)
    frame.loc[frame["site"] != "s1", "lab"] = 0.0
    stats = pb.stats(frame, group="site")
    fit = pb.fit_node(stats, "lab", ["y"], pooling=POOLED)
    assert fit.loglik == -math.inf
    assert "'s1'" in fit.detail
    assert pb.fit_node(stats, "lab", ["y"]).status.ok
    assert pb.fit_node(stats, "lab", ["y"], pooling="auto").status.ok
    for pooling in ("partial", "auto", POOLED):  # a search has an answer
        net = pb.learn(stats, pooling=pooling, preset="paper")
        assert ("x", "y") in net.dag.arcs or ("y", "x") in net.dag.arcs


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.permutations(["x", "y", "lab"]))
def test_scores_do_not_depend_on_the_order_of_columns(seed: int, order: list[str]) -> None:
    frame = sites(seed % 50, rows=12)
    stats = pb.stats(frame, group="site")
    other = pb.stats(frame[["site", *order]], group="site")
    arcs = [("x", "y"), ("y", "lab")]
    for pooling in (POOLED, pb.Auto(), pb.NoPooling()):
        assert pb.score(stats, arcs, pooling=pooling) == pb.score(other, arcs, pooling=pooling)


# An exact combination in one data set


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-7])
@pytest.mark.parametrize("pooling", [POOLED, SEPARATE, pb.NoPooling()], ids=str)
def test_an_exact_relation_in_one_data_set_decides_nothing(
    pooling: pb.Partial, noise: float
) -> None:
    rng = np.random.default_rng(55)
    frame = sites(5).drop(columns="lab")
    frame["y"] = rng.normal(size=len(frame))
    there = frame["site"] == "s2"
    frame.loc[there, "y"] = frame["x"] + noise * rng.normal(size=len(frame))
    stats = pb.stats(frame, group="site")
    fit = pb.fit_node(stats, "y", ["x"], pooling=pooling)
    assert math.isfinite(fit.loglik)
    assert "'s2'" in fit.detail
    # Seven data sets have no relation, and what the eighth could bring is that of one residual.
    assert fit.loglik - pb.fit_node(stats, "y", [], pooling=pooling).loglik < 30


# Constant in each data set


def test_the_slope_of_a_group_level_parent_does_not_vary() -> None:
    stats = pb.stats(schools(1), group="school")
    fit = pb.fit_node(stats, "y", ["size", "x"])
    k = fit.position("size")
    assert fit.random_sd[k] == 0
    assert len(set(fit.coef[:, k])) == 1
    assert fit.fixed[k] == pytest.approx(0.4, abs=0.15)
    assert fit.n_params == 3 + 3 + 1
    listed = pb.fit_node(stats, "y", ["size", "x"], pooling=pb.Partial(random=["x"]))
    assert listed.loglik == fit.loglik


def test_random_slopes_by_name_are_between_full_and_intercept() -> None:
    stats = pb.stats(schools(2).assign(z=np.random.default_rng(0).normal(size=300)), group="school")
    parents = ["x", "z"]
    full, some, none = (
        pb.fit_node(stats, "y", parents, pooling=pb.Partial(random=random))
        for random in ("full", ["x"], "intercept")
    )
    assert full.loglik >= some.loglik >= none.loglik
    assert (full.n_params, some.n_params, none.n_params) == (10, 7, 5)
    assert some.random_sd[2] == 0 < some.random_sd[1]
    everything = pb.fit_node(stats, "y", parents, pooling=pb.Partial(random=["x", "z"]))
    assert everything.loglik == full.loglik
    with pytest.raises(pb.errors.DataError, match="'w', which is no column"):
        pb.fit_node(stats, "y", parents, pooling=pb.Partial(random=["w"]))


@pytest.mark.parametrize("pooling", ["partial", "none", "auto", POOLED], ids=str)
def test_a_group_level_child_is_a_regression_of_its_values(pooling: object) -> None:
    frame = schools(3)
    stats = pb.stats(frame, group="school")
    fit = pb.fit_node(stats, "size", ["age"], pooling=pooling)
    values = frame.groupby("school")[["size", "age"]].first()
    X = np.column_stack([np.ones(len(values)), values["age"]])
    b, rss, *_ = np.linalg.lstsq(X, values["size"])
    np.testing.assert_allclose(fit.fixed, b, rtol=1e-9)
    F = len(values)
    assert fit.loglik == pytest.approx(-F / 2 * (1 + math.log(2 * math.pi * rss[0] / F)))
    np.testing.assert_allclose(fit.coef[:, 0] + fit.coef[:, 1] * values["age"], values["size"])
    assert not fit.sigma2.any()


@pytest.mark.parametrize("pooling", ["partial", "auto", POOLED], ids=str)
def test_a_group_level_child_has_no_parents_that_vary_in_data_sets(pooling: object) -> None:
    stats = pb.stats(schools(4), group="school")
    fit = pb.fit_node(stats, "size", ["x"], pooling=pooling)
    assert fit.loglik == -math.inf
    assert "'x'" in fit.detail
    net = pb.learn(stats, pooling=pooling, preset="paper")
    assert not set(net.dag.parents("size")) & {"x", "y"}
    assert ("size", "y") in net.dag.arcs
    assert math.isfinite(net.score)


@pytest.mark.parametrize("pooling", ["partial", "auto", POOLED], ids=str)
def test_networks_with_group_level_nodes_answer(pooling: object) -> None:
    frame = schools(6)
    frame["size"] = (frame["size"] - 10).round()  # some of them are 0
    net = pb.learn(frame, group="school", pooling=pooling, preset="paper")
    inputs = pb.learn(
        frame, group="school", pooling=pooling, inputs=["size", "age"], preset="paper"
    )
    rows = net.loglik(frame, rows=True)
    if net.dag.parents("y") == inputs.dag.parents("y"):  # what is certain adds nothing
        np.testing.assert_allclose(rows, inputs.loglik(frame, rows=True), rtol=1e-9)
    assert (net.predict(frame.head(5), "size")["sd"] == 0).all()
    assert np.isneginf(net.loglik(frame.head(1).assign(size=99.0)))
    new = net.adapt(name="new")
    predicted = new.predict(frame.head(3).assign(school="new")[["school", "x"]], ["size", "y"])
    assert (predicted["size"]["sd"] > 0).all()
    again = net.adapt(frame[frame["school"] == 3].drop(columns="school"), "again")
    value = frame.loc[frame["school"] == 3, "size"].iloc[0]
    guess = again.predict(frame.head(1).assign(school="again"), "size")
    assert guess["mean"].iloc[0] == pytest.approx(value, abs=1e-9)


def test_effects_of_columns_of_data_sets_have_a_size_and_one_direction() -> None:
    rng = np.random.default_rng(1)
    school = np.repeat(np.arange(30), 20)
    size = rng.normal(size=30)[school]
    ability = rng.normal(size=600)
    rows = pd.DataFrame({"school": school, "size": size, "ability": ability})
    rows["score"] = size + ability + rng.normal(size=600)
    net = pb.learn(rows, group="school", preset="paper")
    sizes = {(of.parent, of.child): of for of in effect_sizes(net)}
    of = sizes["size", "score"]
    inside = rows["score"] - rows.groupby("school")["score"].transform("mean")
    effect = net.fits["score"].population(net.fits["score"].position("size"))[0]
    assert of.effect == pytest.approx(effect * size.std() / inside.std(ddof=0), rel=0.05)
    assert of.effect > 0.5
    assert not of.reversible
    assert np.isnan(spreads(net).explained["size"])
