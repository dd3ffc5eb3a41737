"""`pb.compare` of graphs: held-out likelihood, scores and AIC of rivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poolbn as pb

TRIAL = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days", "birthweight_g"]].dropna()
MINE = "age -> birthweight_g <- gestation_days"
RIVAL = "age -> birthweight_g  bmi"


@pytest.fixture(scope="module")
def found() -> pb.Comparison:
    graphs = {"mine": MINE, "rival": RIVAL, "learned": None}
    return pb.compare(
        TRIAL, group="clinic", graphs=graphs, folds=4, pooling="complete", score="bic"
    )


def test_graphs_are_compared_by_what_they_predict(found: pb.Comparison) -> None:
    table = found.table()
    assert table.index.name == "graph"
    assert list(table.index) == ["mine", "rival", "learned"]
    # Without the arc that matters, held-out rows are predicted clearly worse.
    assert found.difference("rival").clear
    assert not found.difference("mine").clear or not found.difference("learned").clear
    assert "Networks of the graph '" in found.verdict
    assert "3 graphs on 4 clinics" in repr(found)


def test_their_networks_are_those_of_fit_and_learn(found: pb.Comparison) -> None:
    columns = list(found.networks["mine"].dag.nodes)
    assert columns == list(TRIAL.columns[1:])
    own = pb.fit([("age", "birthweight_g"), ("gestation_days", "birthweight_g")], TRIAL,
                 group="clinic", pooling="complete", columns=columns)  # fmt: skip
    assert found.networks["mine"].score == own.score
    learned = pb.learn(TRIAL, group="clinic", pooling="complete", score="bic")
    assert found.networks["learned"].dag == learned.dag
    assert found.networks["learned"].score == learned.score
    stats = pb.stats(TRIAL, group="clinic")
    half = pb.score(stats, own.dag, pooling="complete", score="aic")
    assert found.table().loc["mine", "AIC"] == pytest.approx(-2 * half)


def test_each_row_is_held_out_once(found: pb.Comparison) -> None:
    assert np.isfinite(found.loglik).all()
    assert found.rows.sum() == len(TRIAL)


def test_arcs_that_differ_are_listed(found: pb.Comparison) -> None:
    arcs = found.differences()
    assert not ((arcs["mine"] == arcs["rival"]) & (arcs["mine"] == arcs["learned"])).any()
    (row,) = arcs[(arcs["parent"] == "gestation_days") & (arcs["child"] == "birthweight_g")].index
    assert arcs.loc[row, ["mine", "rival"]].tolist() == [True, False]


def test_graphs_of_all_kinds_of_columns_are_compared(tmp_path: Path) -> None:
    table = pb.datasets.opt()[["clinic", "age", "tobacco", "preterm"]].dropna()
    graphs = {"one": "tobacco -> preterm", "other": pb.Dag("[age][tobacco|age][preterm|age]")}
    compared = pb.compare(table, group="clinic", graphs=graphs, folds=2)
    assert compared.networks["one"].dag == pb.Dag("[age][tobacco][preterm|tobacco]")
    page = tmp_path / "page.html"
    pb.report(compared.networks["one"], page, data=table, comparison=compared)
    assert "the graph" in page.read_text()


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"graphs": {"a": None}}, "graphs has no graph"),
        ({"graphs": [MINE]}, "graphs must be a dict"),
        ({"graphs": {1: MINE}}, "the names of graphs are texts, got 1"),
        ({"graphs": {"a": MINE}, "poolings": ["none"]}, "poolings and graphs exclude each other"),
        ({"graphs": {"a": "age -> bmmi"}}, "did you mean 'bmi'?"),
    ],
)
def test_what_cannot_be_compared_is_explained(options: dict[str, object], fragment: str) -> None:
    with pytest.raises(pb.PoolbnError) as caught:
        pb.compare(TRIAL, **{"group": "clinic", **options})
    assert fragment in str(caught.value)
