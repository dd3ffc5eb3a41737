"""Inputs: columns that are parents only, and have no distribution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.errors import DataError, GraphError

pytestmark = pytest.mark.filterwarnings("ignore::poolbn.DataWarning")


def trial(seed: int = 1) -> pd.DataFrame:
    """An arm that lowers pressure, which age raises."""
    rng = np.random.default_rng(seed)
    n = 240
    arm = rng.integers(0, 2, n).astype(float)
    age = rng.normal(50, 10, n)
    pressure = 120 + 0.5 * age - 8 * arm + rng.normal(0, 5, n)
    return pd.DataFrame({"site": np.arange(n) % 6, "arm": arm, "age": age, "pressure": pressure})


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
def test_an_input_has_children_but_no_parents_and_no_score(pooling: str) -> None:
    frame = trial()
    net = pb.learn(frame, group="site", inputs=["arm"], pooling=pooling, preset="paper")
    assert net.inputs == ("arm",)
    assert net.dag.parents("arm") == ()
    assert "arm" in net.dag.parents("pressure")
    stats = pb.stats(frame, group="site")
    arm = pb.score(stats.select(["arm"]), [], pooling=pooling)
    assert net.score == pytest.approx(pb.score(stats, net.dag, pooling=pooling) - arm)
    assert net.fits["arm"].n_params == 0


def test_statistics_keep_their_inputs(tmp_path: Path) -> None:
    stats = pb.stats(trial(), group="site", inputs=["arm"])
    stats.save(tmp_path / "a.stats")
    assert pb.GroupStats.load(tmp_path / "a.stats").inputs == ("arm",)
    assert (stats + stats).inputs == ("arm",)
    assert stats.select(["pressure", "arm"]).inputs == ("arm",)
    assert stats.select(["pressure", "age"]).inputs == ()
    with pytest.raises(DataError, match="different inputs, arm and none"):
        stats + pb.stats(trial(), group="site")
    with pytest.raises(DataError, match="no column 'amr'; did you mean 'arm'"):
        pb.stats(trial(), group="site", inputs=["amr"])
    with pytest.raises(DataError, match="all columns are inputs"):
        stats.with_inputs(stats.names)
    with pytest.raises(GraphError, match=r"age -> arm .* input"):
        pb.learn(stats, constraints=pb.Constraints(required=[("age", "arm")]), preset="paper")
    with pytest.raises(GraphError, match="'arm' has the parent 'age'"):
        pb.score(stats, [("age", "arm")])


def test_inputs_everywhere_that_rows_are_read() -> None:
    options = {"group": "site", "inputs": ["arm"]}
    boot = pb.bootstrap(trial(), **options, replicates=3, pooling="complete", preset="paper")
    strengths = boot.table()
    assert not ((strengths["to"] == "arm") & (strengths["direction"] > 0.5)).any()
    found = pb.compare(trial(), **options, folds=3, poolings=["complete", "partial"])
    assert all(net.inputs == ("arm",) for net in found.networks.values())


def test_command_line(tmp_path: Path) -> None:
    trial().to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    words = ["learn", tmp_path / "t.csv", "-g", "site", "--inputs", "arm", "-o", out]
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.output
    assert pb.load(out / "network.json").inputs == ("arm",)


@pytest.mark.parametrize("plugin", [False, True])
@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
def test_densities_are_of_the_other_columns_given_inputs(pooling: str, plugin: bool) -> None:
    frame = trial()
    net = pb.learn(frame, group="site", inputs=["arm"], pooling=pooling, preset="paper")
    arcs = net.dag
    plain = pb.learn(
        frame,
        group="site",
        pooling=pooling,
        start=arcs,
        search=pb.HillClimb(max_iter=0),
        preset="paper",
    )
    alone = pb.learn(frame[["site", "arm"]], group="site", pooling=pooling, preset="paper")
    options = {"rows": True, "plugin": plugin}
    expected = plain.loglik(frame, **options) - alone.loglik(frame, **options)
    np.testing.assert_allclose(net.loglik(frame, **options), expected, rtol=1e-6)
    # Inputs alone say nothing of the data set.
    guess = net.classify(frame[["arm"]], plugin=plugin).drop(columns="most_probable")
    np.testing.assert_allclose(guess.to_numpy(dtype=float), 1 / 6, rtol=1e-9)


def test_an_input_that_is_constant_in_a_data_set_makes_nothing_impossible() -> None:
    frame = trial()
    frame.loc[frame["site"] == 2, "arm"] = 0.0
    net = pb.learn(frame, group="site", inputs=["arm"], preset="paper")
    treated = frame[frame["site"] == 2].assign(arm=1.0)
    assert np.isfinite(net.loglik(treated, rows=True)).all()
