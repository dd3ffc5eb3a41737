"""`pb.fit`: the network of a graph that a user brings, and what becomes of graphs and columns."""

from __future__ import annotations

import pickle
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest

import poolbn as pb
from poolbn.errors import PoolbnError

OPT = pb.datasets.opt()
NUMBERS = OPT[["clinic", "age", "bmi", "gestation_days", "birthweight_g"]].dropna()
MIXED = OPT[["clinic", "age", "tobacco", "bmi", "preterm"]].dropna()
CHAIN = "[age][bmi|age][gestation_days|bmi][birthweight_g|age:gestation_days]"


@pytest.mark.parametrize("pooling", ["partial", "complete", "none", "auto"])
@pytest.mark.parametrize("kinds", [{}, {"age": "count"}, None])
def test_a_fit_is_what_learning_ends_with(pooling: str, kinds: dict[str, str] | None) -> None:
    """To the bit, for continuous, discrete and count columns."""
    table = NUMBERS if kinds is None else MIXED
    learned = pb.learn(table, group="clinic", pooling=pooling, kinds=kinds, score="bic")
    found = pb.fit(learned.dag, table, group="clinic", pooling=pooling, kinds=kinds)
    fitted, wanted = found.to_json(), learned.to_json()
    assert _without_search(fitted) == _without_search(wanted)
    assert found.search == ""
    assert not found.trace


def _without_search(text: str) -> list[str]:
    """The lines of a file but those on the search."""
    start = text.index('"trace"')
    return [
        line for line in text[:start].splitlines() if '"search"' not in line and '"at"' not in line
    ]


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_learning_with_em_ends_with_the_fit() -> None:
    some = OPT[["clinic", "age", "tobacco", "gestation_days", "birthweight_g"]].iloc[::3]
    for columns in (some, some.drop(columns="tobacco")):
        learned = pb.learn(columns, group="clinic", missing="em", preset="paper")
        found = pb.fit(learned.dag, columns, group="clinic", missing="em")
        assert found.score == learned.score
        assert _without_search(found.to_json()) == _without_search(learned.to_json())


FORMS = {
    "a Dag": pb.Dag(CHAIN),
    "arcs": list(pb.Dag(CHAIN).arcs),
    "parents": {
        "bmi": ["age"], "gestation_days": "bmi", "birthweight_g": {"gestation_days", "age"}
    },
    "networkx": networkx.DiGraph(list(pb.Dag(CHAIN).arcs)),
    "bnlearn": CHAIN,
    "dagitty": pb.Dag(CHAIN).to_dagitty("age", "birthweight_g"),
    "DOT": pb.Dag(CHAIN).to_dot(),
    "lavaan": pb.Dag(CHAIN).to_lavaan(),
    "formulas": ["bmi ~ age", "gestation_days ~ bmi", "birthweight_g ~ age + gestation_days"],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_graph_comes_in_many_forms(form: str) -> None:
    found = pb.fit(FORMS[form], NUMBERS, group="clinic", pooling="complete")
    assert found.dag == pb.Dag(CHAIN)
    # The order of nodes is that of the table, whatever the graph's.
    assert found.dag.nodes == tuple(NUMBERS.columns[1:])


def test_a_graph_comes_from_a_file_or_a_network(tmp_path: Path) -> None:
    net = pb.fit(CHAIN, NUMBERS, group="clinic", pooling="complete")
    net.save(tmp_path / "net.json")
    (tmp_path / "drawn.dagitty").write_text(net.dag.to_dagitty())
    (tmp_path / "model.R").write_text(net.dag.to_lavaan())
    forms = (net, tmp_path / "net.json", str(tmp_path / "drawn.dagitty"), tmp_path / "model.R")
    for form in forms:
        assert pb.fit(form, NUMBERS, group="clinic", pooling="complete").dag == net.dag
    few = MIXED[["clinic", "tobacco", "preterm"]]
    discrete = pb.fit("[tobacco][preterm|tobacco]", few, group="clinic", pooling="complete")
    (tmp_path / "net.bif").write_text(discrete.to_bif())
    with pytest.warns(pb.GraphWarning, match="'clinic' says the data sets, and is left out"):
        again = pb.fit(str(tmp_path / "net.bif"), few, group="clinic", pooling="complete")
    assert again.score == discrete.score
    (tmp_path / "bad.bif").write_text("x -> -> y")
    with pytest.raises(pb.GraphError, match=r"bad\.bif': the graph's text"):
        pb.fit(tmp_path / "bad.bif", NUMBERS, group="clinic")
    (tmp_path / "bad.bif").write_bytes(b"\xff\xfe")
    with pytest.raises(pb.GraphError, match="not text in UTF-8"):
        pb.fit(tmp_path / "bad.bif", NUMBERS, group="clinic")
    with pytest.raises(pb.FileError, match="No such file"):
        pb.fit("nowhere.json", NUMBERS, group="clinic")


def test_a_cpdag_is_extended_with_a_note() -> None:
    with pytest.warns(pb.GraphWarning, match="3 edges of the graph had no direction"):
        found = pb.fit(
            pb.Dag("[age][bmi|age][gestation_days|bmi][birthweight_g|gestation_days]").cpdag(),
            NUMBERS, group="clinic", pooling="complete",
        )  # fmt: skip
    assert len(found.dag.arcs) == 3


def test_columns_that_the_graph_lacks_are_left_out() -> None:
    """And so rows count that lack values there."""
    table = NUMBERS.assign(more=np.nan, text="a")
    found = pb.fit("age -> bmi", table, group="clinic")
    assert found.dag.nodes == ("age", "bmi")
    assert found.n_rows == len(NUMBERS)
    stats = pb.stats(NUMBERS, group="clinic")
    assert pb.fit("age -> bmi", stats).score == found.score
    alone = pb.fit(
        [("age", "bmi")], NUMBERS, group="clinic", columns=["bmi", "age", "birthweight_g"]
    )
    assert alone.dag == pb.Dag("[age][bmi|age][birthweight_g]")


BAD = {
    "a node that is no column": (
        "age -> bmmi",
        {},
        "the graph has the node 'bmmi', and the table has no such column; rename one of the two, "
        "or leave the node out of the graph; did you mean 'bmi'?",
    ),
    "an unobserved node": (
        "dag { U [latent] U -> age U -> bmi }", {}, "marks 'U' as unobserved, and the table has no",
    ),
    "the group": ("bmi -> clinic", {}, "arc into 'clinic', which says the data sets; leave the"),
    "a cycle": ("age -> bmi -> age", {}, "the arcs have a cycle"),
    "columns without a node": (
        "age -> bmi", {"columns": ["age"]}, "the node 'bmi', which is not in columns=...; add it",
    ),
    "columns that it lacks": (
        "age -> bmi", {"columns": ["age", "bmi", "birthweight_g"]},
        "the graph has no node 'birthweight_g'; name it in the graph as a node",
    ),
    "an input with a parent": ("age -> bmi", {"inputs": ["bmi"]}, "'bmi' is an input"),
    "no graph": (3, {}, "a graph is a pb.Dag, arcs as pairs of names, a dict of parents"),
    "names": (["age", "bmi"], {}, "an arc is a pair of names such as ('age', 'bmi'), got 'age'"),
    "a bad arc": ([("age", "bmi", "x")], {}, "an arc is a pair"),
    "a list for a name": ({"bmi": [["age"]]}, {}, "the names of nodes are strings, got ['age']"),
    "nothing": ([], {}, "the graph has no nodes; write it as"),
    "an unknown pooling": ("age -> bmi", {"pooling": "some"}, "pooling='some' is not an option"),
    "a number for a name": ([(1, 2)], {}, "the names of nodes are strings, got 1 of type int"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_fitted_is_explained(name: str) -> None:
    graph, options, fragment = BAD[name]
    with pytest.raises(PoolbnError) as caught:
        pb.fit(graph, NUMBERS, group="clinic", **options)
    assert fragment in str(caught.value)


def test_counts_are_fitted_and_tested_as_far_as_they_go() -> None:
    counts = pb.stats(MIXED, group="clinic")
    with pytest.raises(pb.GraphError, match="age -> tobacco is required, and needs rows"):
        pb.fit("age -> tobacco", counts)
    net = pb.fit("tobacco -> age  preterm -> bmi  tobacco -> preterm", counts)
    found = net.test_graph()
    assert len(found.claims) == 3
    assert any("it takes rows" in note for note in found.notes)


def test_rows_are_neither_saved_nor_pickled() -> None:
    net = pb.fit("age -> tobacco", MIXED, group="clinic")
    assert net.fitted_to is not None
    assert pickle.loads(pickle.dumps(net)).fitted_to is None
    assert "fitted_to" not in net.to_json()
    assert pb.fit("age -> bmi", NUMBERS, group="clinic").fitted_to is None


def test_inputs_and_interventions_go_on() -> None:
    net = pb.fit("tobacco -> age", MIXED, group="clinic", inputs=["tobacco"])
    assert net.inputs == ("tobacco",)
    assert isinstance(net.effects(), pd.DataFrame)
