"""Networks whose graph is from one half of the rows, and whose effects are from the other."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.moments.halves import Halves, halves
from poolbn.page.cards import summary
from poolbn.page.context import gathered

COLUMNS = ["clinic", "age", "tobacco", "gestation_days", "birthweight_g"]
TRIAL = pb.datasets.opt()[COLUMNS].dropna().reset_index(drop=True)
NUMBERS = TRIAL.drop(columns="tobacco")
skewed = pytest.mark.filterwarnings("ignore:strongly skewed")


def parts(frame: pd.DataFrame, seed: int = 0, **reading: Any) -> tuple[Any, Any]:
    searched, _, rest = halves(pb.table(frame, group="clinic", **reading), seed)
    return searched, rest


def rows_of(data: Any) -> list[tuple[Any, ...]]:
    cases = data.cases(data.names)
    return sorted(zip(cases.data_set.tolist(), *map(np.ndarray.tolist, cases.columns), strict=True))


def test_each_row_is_in_one_half() -> None:
    table = pb.table(TRIAL, group="clinic")
    searched, rest = parts(TRIAL)
    assert sorted(rows_of(searched) + rows_of(rest)) == rows_of(table)
    assert (rest.n - searched.n >= 0).all()
    assert (rest.n - searched.n <= 1).all()
    again, other = parts(TRIAL)[1], parts(TRIAL, 1)[1]
    assert rows_of(again) == rows_of(rest) != rows_of(other)


def test_units_stay_whole() -> None:
    rng = np.random.default_rng(2)
    unit = np.repeat(np.arange(60), rng.integers(1, 5, 60))
    frame = pd.DataFrame({"site": unit % 3, "unit": unit, "x": rng.normal(size=len(unit))})
    frame["y"] = unit + 0.01 * rng.normal(size=len(unit))  # tells which unit a row is of
    searched, _, rest = halves(pb.table(frame, group=["site", "unit"]), 0)
    mine = frame["unit"].isin(np.rint(rest.values[1]).astype(int))
    assert mine.sum() == rest.n_rows
    assert searched.n_rows == len(frame) - rest.n_rows
    net = pb.learn(frame, group=["site", "unit"], honest="split")
    assert net.unit == "unit"


def test_a_data_set_of_one_row_is_estimated() -> None:
    frame = pd.concat([NUMBERS, NUMBERS.head(1).assign(clinic="alone")])
    searched, rest = parts(frame)
    assert "alone" in rest.levels
    assert "alone" not in searched.levels
    assert "alone" in pb.learn(frame, group="clinic", honest="split", pooling="complete").levels


@skewed
@pytest.mark.parametrize("frame", [TRIAL, NUMBERS])
def test_the_graph_is_of_one_half_and_the_effects_of_the_other(frame: pd.DataFrame) -> None:
    searched, rest = parts(frame, 3)
    net = pb.learn(frame, group="clinic", honest=pb.Split(seed=3), pooling="partial")
    assert net.dag == pb.learn(searched, pooling="partial").dag
    own = pb.fit(net.dag, rest, pooling="partial", score="bic-w")
    pd.testing.assert_frame_equal(net.effects(), own.effects(), rtol=1e-6)
    assert net.score == pytest.approx(own.score)
    assert net.split == Halves(searched.n_rows, 3)
    assert net.n_rows == rest.n_rows
    assert f"learned from {searched.n_rows} other rows" in repr(net)


def test_what_the_search_looked_at_does_not_change_the_estimates() -> None:
    """Other values in the half that was searched: the same graph has the same effects."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"F": np.repeat(["a", "b", "c"], 40), "x": rng.normal(size=120)})
    frame["y"] = frame["x"] + 0.5 * rng.normal(size=120)
    rest = halves(pb.table(frame, group="F"), 0)[2]
    mine = frame["x"].isin(rest.values[0])
    changed = frame.assign(y=frame["y"].where(mine, frame["y"] + 0.3 * frame["x"]))
    tiers = {"tiers": [["x"], ["y"]]}
    nets = [pb.learn(f, group="F", honest="split", constraints=tiers) for f in (frame, changed)]
    assert nets[0].dag.arcs == nets[1].dag.arcs == (("x", "y"),)
    pd.testing.assert_frame_equal(nets[0].effects(), nets[1].effects())
    plain = [pb.learn(f, group="F", constraints=tiers) for f in (frame, changed)]
    assert not np.allclose(plain[0].effects()["effect"], plain[1].effects()["effect"], rtol=0.01)


@skewed
@pytest.mark.filterwarnings("ignore:values are not missing")
def test_rows_with_missing_cells_are_split() -> None:
    rng = np.random.default_rng(1)
    for frame in (TRIAL, NUMBERS):
        holes = frame.assign(age=frame["age"].where(rng.random(len(frame)) > 0.1))
        net = pb.learn(holes, group="clinic", honest="split", missing="em")
        assert net.missing_cells().to_numpy().sum() > 0
        rest = halves(pb.table(holes, group="clinic", missing="em"), 0)[1]
        own = pb.fit(net.dag, rest, pooling="auto", score="bic-w")
        np.testing.assert_allclose(net.effects()["effect"], own.effects()["effect"], rtol=1e-6)


@skewed
def test_the_file_and_the_report_say_so(tmp_path: Path) -> None:
    net = pb.learn(TRIAL, group="clinic", honest="split")
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    assert loaded.split == net.split == pickle.loads(pickle.dumps(net)).split
    assert json.loads((tmp_path / "net.json").read_text())["version"] == 7
    of = gathered(net, net.fitted_to, None, None)
    assert f"{net.n_rows} rows" in " ".join(summary(of)[0].sentences)
    told = f"learned from {len(TRIAL) - net.n_rows} other rows"
    assert any(told in " ".join(card.sentences) for card in summary(of))
    pb.report(net, tmp_path / "own.html")
    pb.report(net, tmp_path / "whole.html", data=TRIAL)  # the other rows are not looked at
    assert (tmp_path / "own.html").read_text() == (tmp_path / "whole.html").read_text()
    for rows in (TRIAL, pb.table(TRIAL, group="clinic")):  # split again
        pb.report(loaded, tmp_path / "loaded.html", data=rows)
        again = gathered(loaded, rows, None, None)
        assert again.stats is not None
        assert again.stats.n.tolist() == net.n.tolist()
        own = gathered(net, None, None, None)
        assert [c.sentences for c in summary(again)] == [c.sentences for c in summary(own)]
    for change in ({"rows": -1}, {"rows": "few"}, {"more": 1}):
        text = json.loads(net.to_json())
        text["split"] |= change
        (tmp_path / "net.json").write_text(json.dumps(text))
        with pytest.raises(pb.FileError, match="split"):
            pb.load(tmp_path / "net.json")


@skewed
def test_the_command_line_splits_with_its_seed(tmp_path: Path) -> None:
    TRIAL.to_csv(tmp_path / "trial.csv", index=False)
    rows = [str(tmp_path / "trial.csv"), "--group", "clinic", "--honest", "split", "--seed", "2"]
    found = CliRunner().invoke(app, ["learn", *rows, "-o", str(tmp_path / "out")])
    assert found.exit_code == 0, found.output
    assert "split with seed 2" in " ".join(found.output.split())
    net = pb.load(tmp_path / "out" / "network.json")
    assert net.split == Halves(len(TRIAL) - net.n_rows, 2)
    assert net.dag == pb.learn(TRIAL, group="clinic", honest=pb.Split(2)).dag
    assert f"{net.split.rows} other rows" in (tmp_path / "out" / "report.html").read_text()
    stats = str(tmp_path / "clinics.stats")
    pb.stats(NUMBERS, group="clinic").save(stats)
    found = CliRunner().invoke(app, ["learn", stats, "--honest", "split"])
    assert found.exit_code != 0
    assert "--honest" in found.output


def test_ordered_levels_are_split_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"site": np.repeat(["a", "b", "c"], 80), "x": rng.normal(size=240)})
    grade = np.digitize(frame["x"] + rng.normal(size=240), [-0.6, 0.6])
    frame["grade"] = np.array(["low", "mid", "high"])[grade]
    kinds = {"grade": ["low", "mid", "high"]}
    net = pb.learn(frame, group="site", kinds=kinds, honest="split", pooling="complete")
    net.save(tmp_path / "net.json")
    of = gathered(pb.load(tmp_path / "net.json"), frame, None, None)
    assert of.stats is not None
    assert of.stats.n.tolist() == net.n.tolist()


def test_an_interrupted_search_has_honest_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(plan: Any, data: Any, *more: Any) -> Any:
        raise pb.SearchInterrupted(plan.given(pb.Dag(data.names)).learned(data))

    monkeypatch.setattr("poolbn.learning._searched", stopped)
    with pytest.raises(pb.SearchInterrupted) as found:
        pb.learn(NUMBERS, group="clinic", honest="split")
    assert found.value.network.split is not None
    assert found.value.network.n_rows == parts(NUMBERS)[1].n_rows


def test_what_cannot_be_split() -> None:
    with pytest.raises(pb.OptionError, match="sufficient statistics hold none"):
        pb.learn(pb.stats(NUMBERS, group="clinic"), honest="split")
    with pytest.raises(pb.OptionError, match="'half' is not an option"):
        pb.learn(NUMBERS, group="clinic", honest="half")  # type: ignore[arg-type]
    with pytest.raises(pb.OptionError, match="seed"):
        pb.learn(NUMBERS, group="clinic", honest=pb.Split(seed=-1))
    single = NUMBERS.groupby("clinic").head(1)
    with pytest.raises(pb.DataError, match="no data set has two rows"):
        pb.learn(single, group="clinic", honest="split")


@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_a_level_that_one_half_lacks_is_named() -> None:
    rare = TRIAL.assign(rare=np.where(TRIAL.index == 5, "yes", "no"))
    with pytest.raises(pb.DataError, match=r"'rare' has one level, 'no', in the half"):
        pb.learn(rare, group="clinic", honest="split")
