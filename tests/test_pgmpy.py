"""Networks for pgmpy. Where it is not installed, a stand-in shows what it would be given."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import poolbn as pb

needs_pgmpy = pytest.mark.skipif(
    importlib.util.find_spec("pgmpy") is None, reason="pgmpy is not installed"
)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    y = x + rng.normal(size=300)
    z = 0.5 * x - y + rng.normal(size=300)
    return pd.DataFrame({"site": ["a", "b", "c"] * 100, "x": x, "y": y, "z": z})


@pytest.fixture(scope="module")
def linear(rows: pd.DataFrame) -> pb.Network:
    arcs = {"required": [("x", "z"), ("y", "z"), ("x", "y")]}
    return pb.learn(rows, group="site", constraints=arcs, preset="paper")


@pytest.fixture(scope="module")
def discrete(rows: pd.DataFrame) -> pb.Network:
    made = pd.DataFrame({"site": rows["site"]})
    for name in ("x", "y", "z"):
        made[name] = pd.cut(rows[name], [-9, -1, 0.5, 9], labels=["low", "mid", "high"]).astype(str)
    made["y"] = np.where(made["y"] == "low", "no", "yes")
    arcs = {"required": [("x", "z"), ("y", "z"), ("x", "y")]}
    how = pb.NoPooling(discrete="table")
    return pb.learn(made, group="site", constraints=arcs, pooling=how, preset="paper")


class Network:
    """Keeps what it is given, as the models of pgmpy do."""

    def __init__(self, arcs: list[tuple[str, str]]) -> None:
        self.arcs = set(arcs)
        self.nodes: list[str] = []
        self.factors: dict[str, Factor] = {}

    def add_nodes_from(self, nodes: list[str]) -> None:
        self.nodes = nodes

    def add_cpds(self, factor: Factor) -> None:
        self.factors[factor.given[0]] = factor


class Factor:
    """The same of its factors."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.named = given, named


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in {
        "pgmpy": {},
        "pgmpy.models": {
            "DiscreteBayesianNetwork": Network,
            "LinearGaussianBayesianNetwork": Network,
        },
        "pgmpy.factors": {},
        "pgmpy.factors.discrete": {"TabularCPD": Factor},
        "pgmpy.factors.continuous": {"LinearGaussianCPD": Factor},
    }.items():
        made = ModuleType(module)
        vars(made).update(names)
        monkeypatch.setitem(sys.modules, module, made)


@pytest.mark.usefixtures("stand_in")
def test_a_stand_in_is_given_the_regressions_of_a_data_set(linear: pb.Network) -> None:
    model = linear.to_pgmpy("b")
    assert model.arcs == set(linear.arcs)
    assert model.nodes == list(linear.nodes)
    for node, factor in model.factors.items():
        table = linear[node].table()  # coefficients by name
        assert factor.named["evidence"] == list(linear.parents(node))
        assert factor.given[1] == pytest.approx(table["b"].tolist())
        assert factor.given[2] ** 2 == pytest.approx(linear.linear_fits[node].sigma2[1])


@pytest.mark.usefixtures("stand_in")
def test_a_stand_in_is_given_tables_with_the_data_set_as_a_node(discrete: pb.Network) -> None:
    model = discrete.to_pgmpy()
    assert model.nodes == ["site", "x", "y", "z"]
    assert model.arcs >= set(discrete.arcs) | {("site", "z")}
    for node, factor in model.factors.items():
        name, size, values = factor.given
        assert name == node
        assert np.shape(values)[0] == size == len(factor.named["state_names"][node])
        np.testing.assert_allclose(np.sum(values, axis=0), 1)
    assert np.ravel(model.factors["site"].given[2]) == pytest.approx([1 / 3] * 3)
    given = {"site": "b", "x": "low", "y": "yes"}
    of = model.factors["z"]
    at = [of.named["state_names"][name].index(given[name]) for name in of.named["evidence"]]
    column = np.ravel_multi_index(at, of.named["evidence_card"])
    told = discrete.predict(given, "z", plugin=True).iloc[0]
    for level, row in zip(of.named["state_names"]["z"], of.given[2], strict=True):
        assert row[column] == pytest.approx(told[level])


@needs_pgmpy
def test_pgmpy_itself_has_the_same_gaussian_distribution(linear: pb.Network) -> None:
    model = linear.to_pgmpy("c")
    assert model.check_model()
    mean, cov = model.to_joint_gaussian()
    order = [list(linear.nodes).index(node) for node in _order(model)]
    np.testing.assert_allclose(np.ravel(mean), linear.joint.mean[2][order], atol=1e-7)
    np.testing.assert_allclose(cov, linear.joint.cov[2][np.ix_(order, order)], atol=1e-7)


def _order(model: Any) -> list[str]:
    import networkx as nx

    return list(nx.topological_sort(model))


@needs_pgmpy
def test_pgmpy_itself_answers_as_we_do(discrete: pb.Network) -> None:
    from pgmpy.inference import VariableElimination

    model = discrete.to_pgmpy()
    assert model.check_model()
    evidence = {"site": "b", "z": "high"}
    theirs = VariableElimination(model).query(["x"], evidence, show_progress=False)
    ours = discrete.predict(evidence, "x", plugin=True).iloc[0]
    for level in ("low", "mid", "high"):
        assert theirs.get_value(x=level) == pytest.approx(ours[level], abs=1e-6)
    sites = VariableElimination(model).query(
        ["site"], {"x": "low", "z": "high"}, show_progress=False
    )
    whose = discrete.classify({"x": "low", "z": "high"}, plugin=True).iloc[0]
    for site in ("a", "b", "c"):
        assert sites.get_value(site=site) == pytest.approx(whose[site], abs=1e-6)


@pytest.mark.usefixtures("stand_in")
def test_all_data_sets_are_the_same_with_complete_pooling(rows: pd.DataFrame) -> None:
    net = pb.learn(rows, group="site", pooling="complete", preset="paper")
    assert net.to_pgmpy().arcs == net.to_pgmpy("a").arcs == set(net.arcs)


@pytest.mark.usefixtures("stand_in")
def test_what_pgmpy_does_not_have_is_refused(
    rows: pd.DataFrame, linear: pb.Network, discrete: pb.Network
) -> None:
    with pytest.raises(pb.DataError, match=r"name it, as in net.to_pgmpy\('a'\)"):
        linear.to_pgmpy()
    with pytest.raises(pb.DataError, match="no data set 'd'"):
        linear.to_pgmpy("d")
    with pytest.raises(pb.DataError, match=r"leave data_set out, and give pgmpy the evidence"):
        discrete.to_pgmpy("a")
    mixed = pb.learn(rows.assign(z=rows["z"] > 0), group="site", pooling="complete", preset="paper")
    with pytest.raises(pb.GraphError, match=r"z is not continuous; use to_bnlearn\(\)"):
        mixed.to_pgmpy()


def test_without_pgmpy_the_error_names_the_remedy(
    linear: pb.Network, discrete: pb.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pgmpy", None)
    monkeypatch.setitem(sys.modules, "pgmpy.models", None)
    for ask in (lambda: linear.to_pgmpy("a"), discrete.to_pgmpy):
        with pytest.raises(pb.MissingPackageError, match=r"pip install 'pgmpy>=1\.0'"):
            ask()


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("wrong", [3, 1.5, float("nan"), b"a", (), [], [None], {}, {"x": None}])
def test_what_is_no_data_set_is_refused(wrong: Any, linear: pb.Network) -> None:
    with pytest.raises(pb.PoolbnError):
        linear.to_pgmpy(wrong)
