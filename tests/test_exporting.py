from __future__ import annotations

import math
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from helpers import given, simulate

import poolbn as pb

NAMES = {"x1": 'a "b"', "x2": "back\\slash é <&>'", "y": "new\nline"}
LEVELS = {"set 0": "effect", "set 1": "color", "set 2": 'q"\\', "set 3": 3}
POOLINGS = ["complete", "none", "partial"]
each_pooling = pytest.mark.parametrize("pooling", POOLINGS)
SHARED = ["effect", "se", "between_sd", "opposite"]


@cache
def network(pooling: str = "partial", *, odd: bool = True) -> pb.Network:
    """Three nodes and three arcs, with names and data sets that need quotes."""
    frame = simulate(7, data_sets=4, rows=15)
    if odd:
        frame["F"] = pd.Series([LEVELS[name] for name in frame["F"]], dtype=object)
        frame = frame.rename(columns=NAMES)
    x1, x2, y, _ = frame.columns
    arcs = [(x2, y), (x1, y), (x1, x2)]
    return pb.learn(
        frame,
        group="F",
        pooling=pooling,
        start=arcs,
        search=pb.HillClimb(max_iter=0),
        preset="paper",
    )


def expected(net: pb.Network, rename: dict[str, str]) -> dict[tuple[str, str], dict[str, float]]:
    """From the table of effects; NaN is left out."""
    table = net.effects().rename(columns={"effect (data set)": "<effect>"})
    levels = ["<effect>", *net.levels[1:]]
    return {
        (row["parent"], row["child"]): {
            rename.get(str(name), str(name)): row[name]
            for name in [*SHARED, *levels]
            if not math.isnan(row[name])
        }
        for row in table.to_dict("records")
    }


@each_pooling
def test_networkx(pooling: str) -> None:
    net = network(pooling)
    graph = net.to_networkx()
    assert list(graph.nodes) == list(net.dag.nodes)
    assert pb.Dag.from_networkx(graph) == net.dag
    for node, attributes in graph.nodes.items():
        fit = net.fits[node]
        assert attributes == {
            "kind": "continuous", "model": "linear regression", "pooling": str(fit.pooling),
            "status": str(fit.status),
        }  # fmt: skip
    assert {arc: dict(own) for arc, own in graph.edges.items()} == expected(
        net, {"<effect>": "effect (data set)"}
    )
    assert ("between_sd" in next(iter(graph.edges.values()))) == (pooling == "partial")


@each_pooling
def test_igraph(pooling: str) -> None:
    net = network(pooling)
    graph = net.to_igraph()
    assert isinstance(graph, igraph.Graph)
    assert pb.Dag.from_igraph(graph) == net.dag
    assert graph.vs["pooling"] == [str(net.fits[node].pooling) for node in net.dag.nodes]
    assert graph.vs["status"] == [str(net.fits[node].status) for node in net.dag.nodes]
    arcs = expected(net, {"<effect>": "effect (data set)"})
    for edge in graph.es:
        arc = graph.vs[edge.source]["name"], graph.vs[edge.target]["name"]
        assert edge.attributes() == arcs[arc]


@each_pooling
def test_graphml_is_read_back_by_networkx(pooling: str, tmp_path: Path) -> None:
    net = network(pooling)
    (tmp_path / "net.graphml").write_text(net.to_graphml(), encoding="utf-8")
    graph = nx.read_graphml(tmp_path / "net.graphml")
    ours = net.to_networkx()
    assert isinstance(graph, nx.DiGraph)
    assert dict(graph.nodes) == dict(ours.nodes)
    assert {arc: dict(own) for arc, own in graph.edges.items()} == {
        arc: dict(own) for arc, own in ours.edges.items()
    }


def test_graphml_is_read_back_by_igraph(tmp_path: Path) -> None:
    net = network(odd=False)
    (tmp_path / "net.graphml").write_text(net.to_graphml(), encoding="utf-8")
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "net.graphml"))
    assert graph.vs["id"] == list(net.dag.nodes)
    assert graph.es["effect"] == net.effects()["effect"].tolist()


def test_graphml_is_well_formed_whatever_the_names() -> None:
    root = ElementTree.fromstring(network().to_graphml())
    space = "{http://graphml.graphdrawing.org/xmlns}"
    ids = [node.get("id") for node in root.iter(f"{space}node")]
    assert ids == list(network().dag.nodes)
    keys = [key.get("id") for key in root.iter(f"{space}key")]
    assert len(set(keys)) == len(keys)


def test_graphml_keeps_all_kinds_of_line_breaks() -> None:
    net = pb.learn(
        simulate(1)[["x1", "F"]].rename(columns={"x1": "a\u2028b\x85c"}), group="F", preset="paper"
    )
    assert list(nx.parse_graphml(net.to_graphml()).nodes) == ["a\u2028b\x85c"]


def test_graphml_needs_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(pb.MissingPackageError, match=r"networkx.*pip install poolbn\[graphs\]"):
        network().to_graphml()


def test_dot_is_a_graph_and_has_the_effects() -> None:
    net = network()
    text = net.to_dot()
    assert text.count("->") == len(net.dag.arcs)
    assert text.count('"status"=') == len(net.dag.nodes)
    arcs = net.effects()
    for row, line in zip(
        arcs.to_dict("records"), [part for part in text.split(";\n") if "->" in part], strict=True
    ):
        assert f'"label"="{row["effect"]:.4g}"' in line
        for name in SHARED:
            assert f'"{name}"="{row[name]!r}"' in line
        assert f'"color (data set)"="{row["color"]!r}"' in line
        assert f'"effect (data set)"="{row["effect (data set)"]!r}"' in line
        assert f'"q\\"\\\\ (data set)"="{row[LEVELS["set 2"]]!r}"' in line
        assert '"color"=' not in line


def test_numbers_that_do_not_exist_are_left_out() -> None:
    for text in (network("none").to_dot(), network("none").to_graphml()):
        assert "nan" not in text.lower()
        assert "between_sd" not in text


def test_without_arcs() -> None:
    net = pb.learn(simulate(1)[["x1", "F"]], group="F", preset="paper")
    assert nx.parse_graphml(net.to_graphml()).nodes["x1"]["pooling"] == "partial pooling"
    assert net.to_igraph().ecount() == 0
    assert "->" not in net.to_dot()
    assert net.to_networkx().number_of_edges() == 0


def test_data_sets_that_look_alike_as_text_stay_apart() -> None:
    net = given(
        pb.Dag(["x", "y"], [("x", "y")]),
        {"x": np.zeros((2, 1)), "y": np.array([[0.0, 1.0], [0.0, 2.0]])},
        np.ones((2, 2)),
        [1, "1"],
    )
    edge = net.to_networkx().edges["x", "y"]
    assert (edge["1"], edge["'1'"]) == (1.0, 2.0)


# bnlearn

# Functions of the same names that keep what they are given. Parents come in another order, and what
# is read by place in bnlearn is checked and read by place here.
STUB = r"""
library <- function(...) invisible()
empty.graph <- function(nodes) { stopifnot(!anyDuplicated(nodes)); list(nodes = nodes) }
`arcs<-` <- function(x, value) {
  stopifnot(is.matrix(value), identical(colnames(value), c("from", "to")), value %in% x$nodes)
  x$arcs <- value
  x
}
parents <- function(x, node) rev(x$arcs[x$arcs[, "to"] == node, "from"])
custom.fit <- function(x, dist) {
  stopifnot(setequal(names(dist), x$nodes))
  codes <- function(texts) sapply(texts, function(s) paste(utf8ToInt(s), collapse = " "))
  show <- function(kind, items) cat(paste(c(kind, items), collapse = "\t"), "\n", sep = "")
  for (node in names(dist)) {
    d <- dist[[node]]
    show("node", codes(node))
    if (is.matrix(d)) {
      stopifnot(nrow(d) == 1, all(d >= 0), abs(sum(d) - 1) < 1e-12)
      show("levels", codes(colnames(d)))
      show("prior", sprintf("%a", d))
      next
    }
    stopifnot(identical(names(d), c("coef", "sd")), is.matrix(d$coef), d$sd >= 0,
              length(d$sd) == ncol(d$coef))
    show("parents", codes(parents(x, node)))
    show("terms", codes(rownames(d$coef)))
    for (j in seq_len(ncol(d$coef))) show("coef", sprintf("%a", d$coef[, j]))
    show("sd", sprintf("%a", d$sd))
  }
}
"""


def run(net: pb.Network, folder: Path) -> dict[str, dict[str, list]]:
    """What R understands of the script, by node."""
    path = folder / "net.R"
    path.write_text(STUB + net.to_bnlearn(), encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", "--encoding=UTF-8", str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, list]] = {}
    node = ""
    for line in done.stdout.strip().split("\n"):
        kind, *cells = line.split("\t")
        if kind in ("coef", "sd", "prior"):
            found[node].setdefault(kind, []).append([float.fromhex(cell) for cell in cells])
            continue
        texts = ["".join(chr(int(code)) for code in cell.split()) for cell in cells]
        if kind == "node":
            node = texts[0]
            found[node] = {}
        else:
            found[node][kind] = texts
    return found


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R")
@each_pooling
def test_r_understands_the_script(pooling: str, tmp_path: Path) -> None:
    net = network(pooling)
    found = run(net, tmp_path)
    assert list(found) == ["F", *net.dag.nodes]
    assert found["F"]["levels"] == [str(level) for level in net.levels]
    np.testing.assert_allclose(found["F"]["prior"], [net.joint.prior], rtol=1e-15)
    for node, fit in net.fits.items():
        own = found[node]
        assert own["terms"] == ["(Intercept)", *(p for p in own["parents"] if p != "F")]
        assert sorted(own["terms"][1:]) == sorted(fit.parents)
        order = [0, *(1 + fit.parents.index(parent) for parent in own["terms"][1:])]
        np.testing.assert_allclose(own["coef"], fit.coef[:, order], rtol=1e-15)
        np.testing.assert_allclose(own["sd"], [np.sqrt(fit.sigma2)], rtol=1e-15)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R")
def test_r_understands_interventions_and_many_data_sets(tmp_path: Path) -> None:
    frame = simulate(2, data_sets=40, rows=5)
    net = (
        pb.learn(frame, group="F", start=[("x1", "y")], preset="paper").do(x1=2.0).adapt(name="new")
    )
    found = run(net, tmp_path)
    assert found["x1"]["sd"] == [[0.0] * 41]
    assert found["x1"]["coef"] == [[2.0]] * 41
    assert found["F"]["prior"][0][-1] == 0
    assert max(map(len, net.to_bnlearn().split("\n"))) < 200


def test_the_script_names_all_arcs() -> None:
    script = network(odd=False).to_bnlearn()
    for arc in [("F", "x1"), ("F", "x2"), ("F", "y"), ("x1", "x2"), ("x1", "y"), ("x2", "y")]:
        assert f'"{arc[0]}", "{arc[1]}"' in script
    assert script.endswith("fitted <- custom.fit(net, dist)\n")


def test_a_group_column_called_like_a_node_is_renamed() -> None:
    frames = {"a": [0.0, 1.0, 5.0, 2.0], "b": [1.0, 3.0, 2.0, 2.5]}
    net = pb.learn(
        {level: pd.DataFrame({"data_set": x}) for level, x in frames.items()},
        pooling="complete",
        preset="paper",
    )
    assert 'empty.graph(c("data_set (data set)", "data_set"))' in net.to_bnlearn()
