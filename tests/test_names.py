"""What people type: names that Tab shows, networks for graphs, searches and constraints by name."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import poolbn as pb


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=90)
    y = x + rng.normal(size=90)
    return pd.DataFrame(
        {"site": ["a", "b", "c"] * 30, "x": x, "y": y, "z": y - 2 * x + rng.normal(size=90)}
    )


@pytest.fixture(scope="module")
def net(rows: pd.DataFrame) -> pb.Network:
    only = {"required": [("x", "y")]}
    return pb.learn(rows.drop(columns="z"), group="site", constraints=only)


def test_tab_shows_public_names_of_the_package_only() -> None:
    assert set(dir(pb)) == {*pb.__all__, "__version__"}
    assert all(hasattr(pb, name) for name in dir(pb))


@pytest.mark.parametrize("module", [pb.datasets, pb.metrics, pb.plots])
def test_tab_shows_public_names_of_a_module_only(module: ModuleType) -> None:
    own = {
        name
        for name, value in vars(module).items()
        if (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }
    assert set(dir(module)) == own


def test_distances_take_networks(net: pb.Network) -> None:
    turned = pb.Dag("[y][x|y]")
    collider = pb.Dag(["x", "y"])
    assert pb.metrics.shd(net, turned) == pb.metrics.shd(net, net.dag.cpdag()) == 0
    assert pb.metrics.shd(collider, net) == 1
    assert pb.metrics.compare_arcs(turned, net).reversed == len(net.dag.arcs) == 1
    with pytest.raises(pb.GraphError, match="only one of the graphs has the node 'z'"):
        pb.metrics.shd(net, pb.Dag(["x", "y", "z"]))
    with pytest.raises(pb.DataError, match=r"Cpdag; .*extension\(\)"):
        pb.metrics.compare_arcs(net, net.dag.cpdag())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "search"), [("hc", pb.HillClimb()), ("tabu", pb.Tabu()), ("exact", pb.Exact())]
)
def test_a_search_has_a_name(name: Any, search: Any, rows: pd.DataFrame) -> None:
    by_name = pb.learn(rows, group="site", pooling="complete", columns=["x", "y"], search=name)
    assert by_name.search == repr(search)
    options: dict[str, Any] = {"group": "site", "columns": ["x", "y"]}
    one, two = (
        pb.bootstrap(rows, **options, replicates=3, search=which) for which in (name, search)
    )
    assert np.array_equal(one.counts, two.counts)
    compared = pb.compare(rows, **options, folds=2, poolings=["complete"], search=name)
    assert compared.networks["complete"].search == repr(search)


def test_constraints_as_a_dict(rows: pd.DataFrame) -> None:
    asked = {"tiers": [["z"], ["x", "y"]], "forbidden": [("x", "y")], "max_parents": 2}
    options: dict[str, Any] = {"group": "site", "pooling": "complete"}
    found = pb.learn(rows, **options, constraints=asked)
    assert found.dag == pb.learn(rows, **options, constraints=pb.Constraints(**asked)).dag
    assert found.dag != pb.learn(rows, **options).dag
    boot = pb.bootstrap(rows, **options, replicates=2, constraints={"required": [("z", "x")]})
    assert boot.counts[boot.nodes.index("z"), boot.nodes.index("x")] == 2
    compared = pb.compare(
        rows, group="site", columns=["x", "y"], folds=2, poolings=["complete"],
        constraints={"required": [("y", "x")]},
    )  # fmt: skip
    assert compared.networks["complete"].dag.arcs == (("y", "x"),)
