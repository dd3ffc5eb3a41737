from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cache

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poolbn as pb
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import Counts

NODES = ["a", "b", "c", "d", "e"]
LEVELS = ("s", "t", "u")
KINDS = ["complete", "none", "partial"]


def made_up(
    seed: int,
    kinds: Sequence[str] = ("partial",),
    *,
    nodes: Sequence[str] = NODES,
) -> pb.Network:
    """A network of random parameters; the pooling of each node is one of `kinds`."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(nodes))
    pairs = [
        (nodes[i], nodes[j])
        for k, i in enumerate(order)
        for j in order[k + 1 :]
        if rng.uniform() < 0.7
    ]
    dag = pb.Dag(nodes, pairs)
    fits = {node: random_fit(rng, node, dag.parents(node), rng.choice(kinds)) for node in nodes}
    return pb.Network(dag, fits, -1.0, group="F", n=np.array([10, 20, 30]))


def random_fit(
    rng: np.random.Generator, child: str, parents: tuple[str, ...], kind: str
) -> GaussianFit:
    F, q = len(LEVELS), len(parents) + 1
    beta, factor = rng.normal(size=q), 0.4 * rng.normal(size=(q, max(1, q - 1)))
    own = beta + rng.normal(size=(F, q))
    pooling = {"none": pb.NoPooling(), "complete": pb.Complete(), "partial": pb.Partial()}[kind]
    return GaussianFit(
        child=child,
        parents=parents,
        given=((),) * len(parents),
        levels=LEVELS,
        pooling=pooling,
        coef=np.repeat(beta[None], F, axis=0) if kind == "complete" else own,
        coef_cov=np.zeros((F, q, q)),
        sigma2=rng.uniform(0.5, 2, size=F),
        fixed=None if kind == "none" else beta,
        fixed_cov=None if kind == "none" else np.eye(q),
        random_cov=factor @ factor.T if kind == "partial" else None,
        squares=np.zeros(F),
        df=np.zeros(F),
        effective_df=np.zeros(F),
        rows=np.zeros(F),
        total_cov=np.zeros((F, q, q)),
        between_cov=np.zeros((F, q, q)),
        unbiased=False,
        loglik=-1.0,
        counts=Counts(1, 0, 0),
        n_rows=60,
        status=pb.Status.CONVERGED,
        detail="made up",
    )


@cache
def learned(pooling: str = "partial") -> pb.Network:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(4), 25)
    slope = rng.normal(1, 0.5, (4, 3))[codes]
    a = rng.normal(size=100)
    b = slope[:, 0] * a + rng.normal(size=100)
    c = slope[:, 1] * a + slope[:, 2] * b + rng.normal(size=100)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "F": [f"set {j}" for j in codes]})
    arcs = [("a", "b"), ("a", "c"), ("b", "c")]
    return pb.learn(
        frame,
        group="F",
        pooling=pooling,
        start=arcs,
        search=pb.HillClimb(max_iter=0),
        preset="paper",
    )


seeds = st.integers(0, 10**6)


# do


@given(seeds, st.sampled_from(NODES), st.floats(-1e3, 1e3))
def test_a_node_that_is_set_has_its_value_and_no_parents(
    seed: int, node: str, value: float
) -> None:
    net = made_up(seed, KINDS)
    done = net.do({node: value})
    assert done.dag.nodes == net.dag.nodes
    assert done.dag.arcs == tuple(arc for arc in net.dag.arcs if arc[1] != node)
    fit, i = done.fits[node], done.dag.nodes.index(node)
    assert fit.status.ok
    assert str(fit.status) == "given"
    assert (str(fit.pooling), fit.parents, fit.loglik, fit.n_params) == ("intervention", (), 0.0, 0)
    assert (done.joint.mean[:, i] == value).all()
    assert not done.joint.cov[:, i].any()
    assert all(done.fits[other] is net.fits[other] for other in NODES if other != node)
    assert (done.score, done.levels) == (net.score, net.levels)


@given(seeds, st.sampled_from(NODES), st.floats(-10, 10))
def test_only_nodes_below_are_changed(seed: int, node: str, value: float) -> None:
    net = made_up(seed, KINDS)
    done = net.do({node: value})
    changed = {node, *net.dag.descendants(node)}
    keep = [i for i, other in enumerate(NODES) if other not in changed]
    np.testing.assert_allclose(done.joint.mean[:, keep], net.joint.mean[:, keep], rtol=1e-12)
    part = np.ix_(range(3), keep, keep)
    np.testing.assert_allclose(done.joint.cov[part], net.joint.cov[part], rtol=1e-12)


@given(seeds, st.floats(-10, 10))
def test_setting_a_root_is_conditioning_on_it(seed: int, value: float) -> None:
    net = made_up(seed, KINDS)
    root = net.dag.topological_order()[0]
    i = NODES.index(root)
    rest = [k for k in range(len(NODES)) if k != i]
    done = net.do({root: value}).joint
    for mean, cov, found_mean, found_cov in zip(
        net.joint.mean, net.joint.cov, done.mean, done.cov, strict=True
    ):
        slope = cov[rest, i] / cov[i, i]
        np.testing.assert_allclose(
            found_mean[rest], mean[rest] + slope * (value - mean[i]), atol=1e-8
        )
        expected = cov[np.ix_(rest, rest)] - np.outer(slope, cov[i, rest])
        np.testing.assert_allclose(found_cov[np.ix_(rest, rest)], expected, atol=1e-8)


def test_several_nodes_at_once_or_one_after_the_other() -> None:
    net = made_up(4, KINDS)
    at_once = net.do({"a": 1.0}, c=-2)
    for other in (net.do(a=1.0).do(c=-2.0), net.do(c=5.0, a=0.0).do({"c": -2.0, "a": 1.0})):
        assert other.dag == at_once.dag
        np.testing.assert_array_equal(other.joint.mean, at_once.joint.mean)
        np.testing.assert_array_equal(other.joint.cov, at_once.joint.cov)


def test_any_name_can_be_set() -> None:
    nodes = ["birth weight (g)", "values", "self", "d", "e"]
    net = made_up(2, nodes=nodes)
    done = net.do({"birth weight (g)": 1}, values=2, self=np.float32(3))
    assert done.joint.mean[:, :3].tolist() == [[1, 2, 3]] * 3


def test_interventions_are_saved_loaded_and_printed(tmp_path) -> None:
    net = learned().do(b=2.5)
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    assert loaded.dag == net.dag
    assert repr(loaded) == repr(net)
    for field in dataclasses.fields(GaussianFit):
        mine, yours = (getattr(n.fits["b"], field.name) for n in (net, loaded))
        assert np.array_equal(mine, yours), field.name
    assert "intervention" in repr(net)
    assert "set to 2.5 in all data sets" in str(net.fits["b"])


def test_a_new_data_set_of_a_network_with_interventions() -> None:
    net = learned().do(b=2.5).adapt(name="new")
    assert net.joint.mean[-1, net.dag.nodes.index("b")] == 2.5


# Total effects


@given(seeds, st.sampled_from([KINDS, ["partial"], ["none"]]))
def test_total_effects_are_what_an_intervention_changes(seed: int, kinds: list[str]) -> None:
    net = made_up(seed, kinds)
    table = net.total_effects()
    assert list(table) == [
        "cause", "from", "to", "effect", "outcome", "scale", "total", "lower", "upper",
        "between_sd", "simulation_se", *LEVELS,
    ]  # fmt: skip
    assert (table["simulation_se"] == 0).all()
    assert (table["outcome"] == "").all()
    assert (table["scale"] == "mean difference").all()
    np.testing.assert_allclose(table["to"] - table["from"], 1)
    pairs = [(x, y) for x in NODES for y in net.dag.descendants(x)]
    assert list(zip(table["cause"], table["effect"], strict=True)) == pairs
    for row in table.to_dict("records"):
        cause, effect, own = row["cause"], row["effect"], [row[level] for level in LEVELS]
        prior, i = net.joint.prior, NODES.index(effect)
        mean = prior @ net.joint.mean[:, NODES.index(cause)]
        np.testing.assert_allclose(row["from"], mean, atol=1e-9)
        change = net.do({cause: 1.5}).joint.mean[:, i] - net.do({cause: 0.5}).joint.mean[:, i]
        np.testing.assert_allclose(own, change, atol=1e-9)


@given(seeds)
def test_total_effects_are_sums_over_paths(seed: int) -> None:
    net = made_up(seed, KINDS)
    graph = net.dag.to_networkx()

    def slope(parent: str, child: str, which: str) -> np.ndarray:
        fit = net.fits[child]
        k = 1 + fit.parents.index(parent)
        if which == "own":
            return fit.coef[:, k]
        return np.array([math.nan if fit.fixed is None else fit.fixed[k]])

    for told in net.total_effects().to_dict("records"):
        names = ("cause", "effect", "total", "lower", "upper", "between_sd", *LEVELS)
        cause, effect, total, lower, upper, sd, *own = (told[name] for name in names)
        sums = {
            which: sum(
                math.prod(slope(p, c, which) for p, c in nx.utils.pairwise(path))
                for path in nx.all_simple_paths(graph, cause, effect)
            )
            for which in ("own", "fixed")
        }
        np.testing.assert_allclose(own, sums["own"], atol=1e-10)
        np.testing.assert_allclose(total, sums["fixed"][0], atol=1e-10)
        assert math.isnan(sd) == math.isnan(total)
        assert math.isnan(total) or lower - 1e-9 <= total <= upper + 1e-9


def chain(
    rng: np.random.Generator, F: int, rows: int, sd: float
) -> tuple[pd.DataFrame, np.ndarray]:
    """x -> m -> y with slopes that vary between data sets, and the totals in these."""
    site = np.repeat(np.arange(F), rows)
    first, second = 1 + sd * rng.normal(size=F), 0.5 + sd * rng.normal(size=F)
    x = rng.normal(size=len(site))
    m = 0.5 * rng.normal(size=F)[site] + first[site] * x + rng.normal(size=len(site))
    y = 0.5 * rng.normal(size=F)[site] + second[site] * m + rng.normal(size=len(site))
    frame = pd.DataFrame({"x": x, "m": m, "y": y, "site": [f"s{j:02d}" for j in site]})
    return frame, first * second


def fitted_chain(frame: pd.DataFrame, arcs: list[tuple[str, str]]) -> pb.Network:
    return pb.learn(
        frame, group="site", start=arcs, search=pb.HillClimb(max_iter=0), preset="paper"
    )


@pytest.mark.parametrize(("F", "rows", "sd"), [(4, 20, 0.3), (10, 10, 0.3), (10, 40, 0.5)])
def test_intervals_of_total_effects_cover(F: int, rows: int, sd: float) -> None:
    rng, own, population = np.random.default_rng([F, rows]), [], []
    for _ in range(40):
        frame, truth = chain(rng, F, rows, sd)
        net = fitted_chain(frame, [("x", "m"), ("m", "y")])
        found = net.total_effects("x", "y", by="data set")
        assert found["data_set"].tolist() == sorted(found["data_set"])
        own.append(((found["lower"] <= truth) & (truth <= found["upper"])).mean())
        (one,) = net.total_effects("x", "y").itertuples(index=False)
        population.append(one.lower <= 0.5 <= one.upper)
    assert np.mean(own) > 0.92
    assert np.mean(population) > 0.85


def test_a_total_effect_along_one_arc_has_the_interval_of_the_arc() -> None:
    frame, _ = chain(np.random.default_rng(5), 6, 15, 0.3)
    net = fitted_chain(frame, [("x", "m")])
    for by, tolerance in (("arc", 0.08), ("data set", 0.2)):
        arc = net.effects(by=by)
        total = net.total_effects("x", "m", by="effect" if by == "arc" else by)
        for end in ("lower", "upper"):
            away = (total[end] - total["total"]) / (arc[end] - arc["effect"])
            np.testing.assert_allclose(away, 1, rtol=tolerance)
        wide = net.total_effects("x", "m", by="effect" if by == "arc" else by, interval=0.99)
        assert (wide["lower"] < total["lower"]).all()


@pytest.mark.parametrize("seed", range(8))
def test_the_population_is_that_of_many_data_sets(seed: int) -> None:
    """Draw the coefficients of many data sets, and look at the totals in each."""
    net = made_up(seed, ["partial", "partial", "complete"])
    rng = np.random.default_rng(seed)
    draws, N = 40_000, len(NODES)
    B = np.zeros((draws, N, N))
    for i, node in enumerate(NODES):
        fit = net.fits[node]
        D = np.zeros((len(fit.fixed),) * 2) if fit.random_cov is None else fit.random_cov
        coef = rng.multivariate_normal(fit.fixed, D, size=draws)
        B[:, i, [NODES.index(parent) for parent in fit.parents]] = coef[:, 1:]
    totals = np.linalg.inv(np.eye(N) - B)
    table = net.total_effects()
    assert len(table) > 3
    for row in table.to_dict("records"):
        drawn = totals[:, NODES.index(row["effect"]), NODES.index(row["cause"])]
        error = row["between_sd"] / math.sqrt(draws)
        assert abs(drawn.mean() - row["total"]) <= 4 * error + 1e-9
        # The standard error of a variance follows from the fourth moment.
        squares = (drawn - row["total"]) ** 2
        error = squares.std() / math.sqrt(draws)
        assert abs(squares.mean() - row["between_sd"] ** 2) <= 4.5 * error + 1e-9


def test_one_arc_is_its_effect() -> None:
    net = learned()
    arc = net.effects().query("parent == 'a' and child == 'b'").iloc[0]
    total = net.total_effects("a", "b").iloc[0]
    assert total["total"] == pytest.approx(arc["effect"])
    assert total["between_sd"] == pytest.approx(arc["between_sd"])


def test_complete_pooling_does_not_vary_and_no_pooling_has_no_population() -> None:
    assert (learned("complete").total_effects()["between_sd"] == 0).all()
    assert learned("none").total_effects()[["total", "between_sd"]].isna().all(axis=None)


def test_only_nodes_on_the_way_matter_to_the_population() -> None:
    """a -> b -> c and a -> z -> c, where a and b have no pooling."""
    dag = pb.Dag(["a", "b", "c", "z"], [("a", "b"), ("b", "c"), ("z", "c"), ("a", "z")])
    rng = np.random.default_rng(3)
    kinds = {"a": "none", "b": "none", "c": "partial", "z": "partial"}
    fits = {node: random_fit(rng, node, dag.parents(node), kinds[node]) for node in dag.nodes}
    net = pb.Network(dag, fits, 0.0, group="F", n=np.array([1, 1, 1]))
    known = net.total_effects().set_index(["cause", "effect"])["total"].notna()
    assert known.to_dict() == {
        ("a", "b"): False,
        ("a", "c"): False,
        ("a", "z"): True,
        ("b", "c"): True,
        ("z", "c"): True,
    }


def test_only_those_asked() -> None:
    net = learned()
    whole = net.total_effects()
    for asked in [("a", None), (None, "c"), ("a", "c"), ("c", None), (None, "a"), ("c", "a")]:
        cause, effect = asked
        keep = (whole["cause"] == (cause or whole["cause"])) & (
            whole["effect"] == (effect or whole["effect"])
        )
        table = net.total_effects(*asked)
        pd.testing.assert_frame_equal(
            table, whole[keep].reset_index(drop=True), check_dtype=False, check_index_type=False
        )
        assert list(table) == list(whole)
