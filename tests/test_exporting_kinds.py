"""Exports of networks with columns of all kinds: graphs, bnlearn's script, BIF."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import poolbn as pb

ARMS = ("control", "low dose", "high, or more")
ARCS = [("sex", "arm"), ("sex", "age"), ("arm", "age"), ("dose", "age"), ("sex", "event")]
ARCS += [("arm", "event")]


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 600
    site = rng.integers(0, 3, n)
    sex = (rng.random(n) < 0.3 + 0.2 * site).astype(int)
    below = np.array([[0.2, 0.5], [0.4, 0.6]])[sex] + 0.15 * site[:, None]
    arm = (rng.random((n, 1)) > below).sum(axis=1)
    dose = rng.normal(size=n) + site
    age = 40 + 3 * sex - 2 * (arm == 2) + site * dose + rng.normal(size=n)
    return pd.DataFrame(
        {
            "site": pd.Series(["A", "B b", "C"])[site].to_numpy(),
            "sex": np.where(sex == 1, "male", "female"),
            "arm": pd.Categorical(np.array(ARMS)[arm], categories=ARMS),
            "dose": dose,
            "age": age,
            "event": rng.random(n) < 0.1 + 0.2 * sex + 0.1 * arm + 0.1 * site,
            "visits": rng.poisson(np.exp(0.3 * sex + 0.02 * age)),
        }
    )


def fitted(frame: pd.DataFrame, arcs: list[tuple[str, str]], pooling: object) -> pb.Network:
    kinds = {"visits": "count"} if "visits" in frame else {}
    stay = pb.HillClimb(max_iter=0)
    return pb.learn(frame, group="site", start=arcs, search=stay, pooling=pooling, kinds=kinds)


@cache
def network() -> pb.Network:
    """All kinds of nodes; discrete ones have discrete parents, and one is a regression."""
    return fitted(rows(), [*ARCS, ("age", "visits"), ("sex", "visits")], "partial")


@cache
def held_by_bnlearn(discrete: str = "table") -> pb.Network:
    return fitted(rows().drop(columns="visits"), ARCS, pb.Partial(discrete=discrete))


@cache
def discrete_only(discrete: str, pooling: type = pb.Partial) -> pb.Network:
    arcs = [("sex", "arm"), ("sex", "event"), ("arm", "event")]
    return fitted(rows()[["site", "sex", "arm", "event"]], arcs, pooling(discrete=discrete))


# Graphs


def test_nodes_say_what_they_are() -> None:
    nodes = network().to_networkx().nodes
    assert {name: own["kind"] for name, own in nodes.items()} == {
        "sex": "discrete", "arm": "discrete", "dose": "continuous", "age": "continuous",
        "event": "discrete", "visits": "count",
    }  # fmt: skip
    assert tuple(json.loads(nodes["arm"]["levels"])) == ARMS
    assert "levels" not in nodes["visits"]
    assert nodes["visits"]["model"] == network().fits["visits"].model


def test_arcs_that_are_one_coefficient_of_a_continuous_node_have_effects() -> None:
    net = network()
    edges = net.to_networkx().edges
    with_effect = {arc for arc, own in edges.items() if own}
    assert with_effect == {("sex", "age"), ("dose", "age")}
    fit = net.fits["age"]
    for parent, column in (("sex", "sex=male"), ("dose", "dose")):
        k = 1 + fit.columns.index(column)
        own = edges[parent, "age"]
        assert own["effect"] == fit.population(k)[0]
        assert [own[name] for name in net.levels] == fit.coef[:, k].tolist()
        assert own["between_sd"] == fit.random_sd[k]


def test_formats_of_graphs_agree(tmp_path: Path) -> None:
    net = network()
    graph = net.to_networkx()
    (tmp_path / "net.graphml").write_text(net.to_graphml(), encoding="utf-8")
    again = nx.read_graphml(tmp_path / "net.graphml")
    assert dict(again.nodes) == dict(graph.nodes)
    assert {a: dict(own) for a, own in again.edges.items()} == {
        a: dict(own) for a, own in graph.edges.items()
    }
    assert net.to_igraph().vs["kind"] == [graph.nodes[name]["kind"] for name in net.dag.nodes]


def test_shapes_of_dot_are_by_kind() -> None:
    lines = {line.split('"')[1]: line for line in network().to_dot().splitlines()[1:-1]
             if "->" not in line}  # fmt: skip
    assert '"shape"="box"' in lines["sex"]
    assert '"shape"' not in lines["dose"] + lines["visits"]
    assert '"peripheries"="2"' in lines["visits"]
    assert '"sex" -> "event";' in network().to_dot()


@pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz")
def test_graphviz_reads_it(tmp_path: Path) -> None:
    (tmp_path / "net.dot").write_text(network().to_dot(), encoding="utf-8")
    subprocess.run(["dot", "-Tsvg", str(tmp_path / "net.dot")], capture_output=True, check=True)


# bnlearn

# Functions of the same names; parents come in another order. What is printed are names and numbers
# by position, in the order of bnlearn's own configurations: the first discrete parent is fastest.
STUB = r"""
library <- function(...) invisible()
empty.graph <- function(nodes) { stopifnot(!anyDuplicated(nodes)); list(nodes = nodes) }
`arcs<-` <- function(x, value) {
  stopifnot(is.matrix(value), identical(colnames(value), c("from", "to")), value %in% x$nodes)
  x$arcs <- value
  x
}
parents <- function(x, node) rev(unname(x$arcs[x$arcs[, "to"] == node, "from"]))
show <- function(kind, items) cat(paste(c(kind, items), collapse = "\t"), "\n", sep = "")
custom.fit <- function(x, dist) {
  stopifnot(setequal(names(dist), x$nodes))
  levels <- lapply(dist, function(d) if (is.list(d)) NULL else
    if (nrow(d) == 1) colnames(d) else dimnames(d)[[1]])
  for (node in names(dist)) {
    d <- dist[[node]]
    pa <- parents(x, node)
    show("node", node)
    if (is.list(d)) {
      dpa <- pa[!sapply(levels[pa], is.null)]
      stopifnot(identical(names(d), c("coef", "sd")), is.matrix(d$coef),
                identical(rownames(d$coef), c("(Intercept)", setdiff(pa, dpa))),
                ncol(d$coef) == prod(lengths(levels[dpa])), length(d$sd) == ncol(d$coef))
      show("parents", dpa)
      show("terms", rownames(d$coef))
      show("coef", sprintf("%a", d$coef))
      show("sd", sprintf("%a", d$sd))
    } else if (length(pa) > 0) {
      stopifnot(identical(names(dimnames(d)), c(node, pa)),
                identical(unname(dimnames(d)), unname(levels[c(node, pa)])),
                abs(apply(d, seq_along(pa) + 1, sum) - 1) < 1e-12)
      show("parents", pa)
      show("p", sprintf("%a", d))
    }
  }
}
"""


def run(net: pb.Network, folder: Path) -> dict[str, dict[str, list]]:
    path = folder / "net.R"
    path.write_text(STUB + net.to_bnlearn(), encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", "--encoding=UTF-8", str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, list]] = {}
    for line in done.stdout.strip().split("\n"):
        kind, *cells = line.split("\t")
        if kind == "node":
            node = cells[0]
            found[node] = {}
        else:
            texts = kind in ("parents", "terms")
            found[node][kind] = cells if texts else [float.fromhex(cell) for cell in cells]
    return found


def configurations(net: pb.Network, names: list[str]) -> list[dict[str, str]]:
    """Of discrete nodes and the data set, the first changes fastest."""
    levels = [net.levels if n == "site" else net.fits[n].categories for n in names]
    every = itertools.product(*reversed(levels))
    return [dict(zip(names, reversed(values), strict=True)) for values in every]


def probabilities(net: pb.Network, node: str, given: dict[str, str]) -> np.ndarray:
    """Straight from the fit."""
    fit, j = net.fits[node], net.levels.index(given["site"])
    if hasattr(fit, "probabilities"):
        table = fit.table()[fit.levels[j]]
        own = table.loc[tuple(given[p] for p in fit.parents)] if fit.parents else table
        return own.to_numpy().ravel()
    x = [1.0, *(given[column.split("=")[0]] == column.split("=", 1)[1] for column in fit.columns)]
    odds = np.exp([0.0, *(fit.coef[j] @ x)])
    return odds / odds.sum()


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R")
@pytest.mark.parametrize("discrete", ["table", "logit"])
def test_r_understands_the_script(discrete: str, tmp_path: Path) -> None:
    net = held_by_bnlearn(discrete)
    found = run(net, tmp_path)
    for node in ("sex", "arm", "event"):
        own = found[node]
        expected = [probabilities(net, node, c) for c in configurations(net, own["parents"])]
        np.testing.assert_allclose(own["p"], np.concatenate(expected), rtol=1e-14)
    own, fit = found["age"], net.fits["age"]
    assert own["terms"] == ["(Intercept)", "dose"]
    assert sorted(own["parents"]) == ["arm", "sex", "site"]
    coef, sd = [], []
    for given in configurations(net, own["parents"]):
        j = net.levels.index(given["site"])
        on = {f"{name}={level}" for name, level in given.items()}
        effects = dict(zip(["", *fit.columns], fit.coef[j], strict=True))
        coef += [sum(b for name, b in effects.items() if name in on | {""}), effects["dose"]]
        sd.append(np.sqrt(fit.sigma2[j]))
    np.testing.assert_allclose(own["coef"], coef, rtol=1e-13)
    np.testing.assert_allclose(own["sd"], sd, rtol=1e-15)


def test_bnlearn_cannot_hold_all() -> None:
    with pytest.raises(pb.GraphError, match=r"no counts \(visits\): learn with kinds={'visits': "):
        network().to_bnlearn()
    arcs = [("age", "event"), ("dose", "event"), ("sex", "event")]
    net = fitted(rows().drop(columns="visits"), arcs, "complete")
    words = r"no discrete nodes with parents that are not \(event given dose and age\): learn with"
    with pytest.raises(pb.GraphError, match=words):
        net.to_bnlearn()
    both = fitted(rows(), arcs, "complete")
    with pytest.raises(pb.GraphError, match=r"event given.*; nor counts \(visits\).*to_json"):
        both.to_bnlearn()


# BIF


def read_bif(text: str) -> tuple[dict[str, list[str]], dict[str, tuple[list[str], dict]]]:
    """Levels, and for each node its parents and the probabilities of each configuration."""
    text = re.sub(r"//.*", "", text)
    levels = {
        name: re.split(r"\s*,\s*", own.strip())
        for name, _, own in re.findall(
            r"variable (\w+) \{\s*type discrete \[ (\d+) \] \{([^}]*)\};\s*\}", text
        )
    }
    tables = {}
    for name, given, body in re.findall(
        r"probability \( (\w+)(?: \| ([^)]*))? \) \{([^}]*)\}", text
    ):
        parents = given.strip().split(", ") if given else []
        found = {}
        for line in body.strip().strip(";").split(";"):
            where, numbers = re.fullmatch(r"\s*(?:table|\(([^)]*)\))([^()]*)", line).groups()  # type: ignore[union-attr]
            key = tuple(where.split(", ")) if where else ()
            found[key] = [float(number) for number in numbers.split(",")]
        tables[name] = (parents, found)
    return levels, tables


@pytest.mark.parametrize("discrete", ["table", "logit"])
def test_bif_has_the_probabilities(discrete: str) -> None:
    net = discrete_only(discrete)
    levels, tables = read_bif(net.to_bif())
    assert levels == {
        "site": ["B_b", "C", "A"], "sex": ["female", "male"], "event": ["False", "True"],
        "arm": ["control", "low_dose", "high__or_more"],
    }  # fmt: skip
    assert tables["site"] == ([], {(): (net.n / net.n.sum()).tolist()})
    original = {
        "site": dict(zip(levels["site"], net.levels, strict=True)),
        "arm": dict(zip(levels["arm"], ARMS, strict=True)),
    }
    for node in ("sex", "arm", "event"):
        parents, found = tables[node]
        assert parents == ["site", *net.dag.parents(node)]
        assert list(found) == list(itertools.product(*(levels[p] for p in parents)))
        for key, p in found.items():
            given = {
                name: original.get(name, {}).get(level, level)
                for name, level in zip(parents, key, strict=True)
            }
            np.testing.assert_allclose(p, probabilities(net, node, given), rtol=1e-14)


def test_data_sets_are_no_parents_where_all_is_shared() -> None:
    _, tables = read_bif(discrete_only("table", pb.Complete).to_bif())
    assert tables["event"][0] == ["sex", "arm"]
    assert tables["sex"][0] == []


def test_bif_says_which_names_it_changed() -> None:
    lines = discrete_only("table").to_bif().splitlines()
    assert "// 'high, or more' is high__or_more" in lines
    assert sum(line.startswith("//") for line in lines) == 3


def test_bif_is_for_discrete_networks() -> None:
    words = "columns are all discrete, and dose, age and visits are not"
    with pytest.raises(pb.GraphError, match=words):
        network().to_bif()


def test_names_that_bif_cannot_tell_apart_are_refused() -> None:
    frame = rows()[["site", "sex", "event"]]
    net = pb.learn(frame.rename(columns={"sex": "a b", "event": "a-b"}), group="site")
    with pytest.raises(pb.GraphError, match="names of nodes 'a b' and 'a-b' are both 'a_b'"):
        net.to_bif()
    frame = frame.assign(sex=np.where(frame["sex"] == "male", "<1", ">1"))
    with pytest.raises(pb.GraphError, match="levels of sex '<1' and '>1' are both '_1'"):
        pb.learn(frame, group="site").to_bif()


def test_pgmpy_reads_the_same_probabilities() -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    net = discrete_only("table")
    model = readwrite.BIFReader(string=net.to_bif()).get_model()
    _, tables = read_bif(net.to_bif())
    for node, (parents, found) in tables.items():
        cpd = model.get_cpds(node)
        for key, p in found.items():
            given = dict(zip(parents, key, strict=True))
            for level, own in zip(cpd.state_names[node], p, strict=True):
                assert cpd.get_value(**given, **{node: level}) == pytest.approx(own, abs=1e-9)
