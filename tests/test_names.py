"""What people type: names that Tab shows, networks for graphs, searches and constraints by name."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poolbn as pb
from poolbn.wording import noun_of, sure


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
    return pb.learn(rows.drop(columns="z"), group="site", constraints=only, preset="paper")


def test_tab_shows_public_names_of_the_package_only() -> None:
    assert set(dir(pb)) == {*pb.__all__, "sklearn", "__version__"}
    assert all(hasattr(pb, name) for name in pb.__all__)


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


def test_a_network_answers_for_its_graph(net: pb.Network) -> None:
    assert net.nodes == net.dag.nodes == tuple(net) == ("x", "y")
    assert net.arcs == net.dag.arcs == (("x", "y"),)
    assert net.parents("y") == ("x",) == net["y"].parents
    assert net.children("x") == ("y",)
    assert net.cpdag() == net.dag.cpdag()
    assert net["y"] is net.fits["y"]
    assert "y" in net
    assert "z" not in net
    for ask in (net.parents, net.children, net.__getitem__):
        with pytest.raises(pb.GraphError, match="no node is called 'yy'; did you mean 'y'"):
            ask("yy")
    with pytest.raises(pb.GraphError, match="no node is called 0"):
        net[0]  # type: ignore[index]


def test_tab_on_a_network_shows_documented_names_only(net: pb.Network) -> None:
    shown = {name for name in dir(net) if not name.startswith("_")}
    assert {"arcs", "nodes", "parents", "plot", "report", "summary", "cpdag"} <= shown
    fields = {field.name for field in dataclasses.fields(net)}
    for name in shown - fields:
        assert inspect.getdoc(getattr(type(net), name)), name


@pytest.mark.parametrize("name", [n for n in pb.__all__ if inspect.isclass(getattr(pb, n))])
def test_tab_on_a_class_shows_documented_names_only(name: str) -> None:
    kind = getattr(pb, name)
    own = {
        each for base in kind.__mro__ if base.__module__.startswith("poolbn") for each in vars(base)
    }
    fields = (
        {field.name for field in dataclasses.fields(kind)}
        if dataclasses.is_dataclass(kind)
        else set()
    )
    members = set(getattr(kind, "__members__", ()))
    for each in own - fields - members:
        if not each.startswith("_"):
            assert inspect.getdoc(getattr(kind, each)), each


def test_a_network_plots_and_reports_itself(net: pb.Network, tmp_path: Path) -> None:
    ax = net.plot()
    assert [text.get_text() for text in ax.texts] == ["x", "y"]
    assert net.plot(ax=ax) is ax
    net.report(tmp_path / "own.html", settings={"made": "here"})
    pb.report(net, tmp_path / "same.html", settings={"made": "here"})
    assert (tmp_path / "own.html").read_text() == (tmp_path / "same.html").read_text()
    pb.load(saved(net, tmp_path)).plot(ax=ax)


def saved(net: pb.Network, folder: Path) -> Path:
    net.save(folder / "net.json")
    return folder / "net.json"


def test_a_summary_has_the_digits_that_are_sure(net: pb.Network) -> None:
    row = net.effects(0.9).iloc[0]
    text = str(net.summary(0.9))
    effect, low, _, high, scale, _ = text.splitlines()[3].partition("y ")[2].split()
    assert scale == "difference"
    assert "90% interval" in text
    step = 10.0 ** (np.floor(np.log10(row["se"])) - 1)  # of the second digit of the error
    for printed, exact in zip((effect, low, high), row[["effect", "lower", "upper"]], strict=True):
        assert abs(float(printed) - exact) <= 0.5001 * step
        assert len(printed.partition(".")[2]) == round(-np.log10(step))
    with pytest.raises(pb.OptionError, match="interval"):
        net.summary(95)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e6))
def test_a_number_is_rounded_to_two_digits_of_its_error(value: float, error: float) -> None:
    printed = float(sure(value, error))
    assert abs(printed - value) <= 0.0526 * error + 1e-9 * abs(value)  # 5 in the second digit
    assert not sure(value, error).startswith("-0.0") or printed != 0


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
    by_name = pb.learn(
        rows, group="site", pooling="complete", columns=["x", "y"], search=name, preset="paper"
    )
    assert by_name.search == repr(search)
    options: dict[str, Any] = {"group": "site", "columns": ["x", "y"]}
    one, two = (
        pb.bootstrap(rows, **options, replicates=3, search=which, preset="paper")
        for which in (name, search)
    )
    assert np.array_equal(one.counts, two.counts)
    compared = pb.compare(rows, **options, folds=2, poolings=["complete"], search=name)
    assert compared.networks["complete"].search == repr(search)


def test_constraints_as_a_dict(rows: pd.DataFrame) -> None:
    asked = {"tiers": [["z"], ["x", "y"]], "forbidden": [("x", "y")], "max_parents": 2}
    options: dict[str, Any] = {"group": "site", "pooling": "complete"}
    found = pb.learn(rows, **options, constraints=asked, preset="paper")
    assert (
        found.dag
        == pb.learn(rows, **options, constraints=pb.Constraints(**asked), preset="paper").dag
    )
    assert found.dag != pb.learn(rows, **options, preset="paper").dag
    boot = pb.bootstrap(
        rows, **options, replicates=2, constraints={"required": [("z", "x")]}, preset="paper"
    )
    assert boot.counts[boot.nodes.index("z"), boot.nodes.index("x")] == 2
    compared = pb.compare(
        rows, group="site", columns=["x", "y"], folds=2, poolings=["complete"],
        constraints={"required": [("y", "x")]},
    )  # fmt: skip
    assert compared.networks["complete"].dag.arcs == (("y", "x"),)


@pytest.mark.parametrize(
    ("column", "word"),
    [("clinic", "clinics"), ("schoolNR", "schools"), ("school_id", "schools"), ("Site ID", "sites"),
     ("hospital.code", "hospitals"), ("grid", "grids"), ("casino", "casinos"), ("F", "data sets"),
     ("id", "data sets"), ("group_id", "data sets")],
)  # fmt: skip
def test_groups_have_the_word_of_their_column(column: str, word: str) -> None:
    assert noun_of(column).many == word


def test_results_print_the_users_word_for_groups(rows: pd.DataFrame, tmp_path: Path) -> None:
    rows = rows.rename(columns={"site": "island"})
    rows.loc[rows["island"] == "a", "z"] = 1.0
    with pytest.warns(pb.DataWarning, match="constant in some islands, which say nothing of it"):
        net = pb.learn(rows, group="island", preset="paper")
    stats, table = pb.stats(rows, group="island"), pb.table(rows, group="island")
    stats.save(tmp_path / "t.stats")
    loaded = pb.GroupStats.load(tmp_path / "t.stats")
    again = pb.load(saved(net, tmp_path))
    levels = pb.stats(rows.assign(u=["m", "f"] * 45), group="island")
    gaps = pb.stats(rows.assign(x=rows["x"].where(rows["x"] < 1.5)), group="island", missing="em")
    fit = pb.fit_node(stats, "y", ["x"])
    assert gaps.patterns is not None
    shown = (net, net.summary(), again, again["y"], stats, table, loaded, levels, gaps.patterns,
             fit, net["y"], pb.look(rows, group="island"))  # fmt: skip
    for each in shown:
        assert "3 islands" in str(each)
        assert "data set" not in str(each)
    assert "<th>island</th>" in stats._repr_html_()
    many = rows.assign(island=np.arange(len(rows)) % 22)
    assert "more islands in .table()" in str(pb.fit_node(pb.stats(many, group="island"), "y"))
