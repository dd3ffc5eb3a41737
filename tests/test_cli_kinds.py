"""Commands on tables with columns of all kinds: the same as the Python functions they call."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import poolbn as pb
from poolbn.cli.app import app

COLUMNS = ["clinic", "age", "tobacco", "bmi", "gestation_days"]
KINDS = {"age": "count", "tobacco": "discrete"}
GIVEN = ["--kinds", "age=count,tobacco=discrete"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fine(*arguments: object) -> Result:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pb.datasets.opt()[COLUMNS].dropna().reset_index(drop=True)


@pytest.fixture(scope="module")
def net(rows: pd.DataFrame) -> pb.Network:
    return pb.learn(rows, group="clinic", kinds=KINDS, pooling="complete")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, rows: pd.DataFrame, net: pb.Network) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    rows.to_csv(folder / "rows.csv", index=False)
    gaps = rows.head(20).copy()
    gaps.loc[3, "tobacco"], gaps.loc[4, "bmi"], gaps.loc[5, "clinic"] = None, np.nan, None
    gaps.to_csv(folder / "gaps.csv", index=False)
    net.save(folder / "net.json")
    return folder


def test_predict(folder: Path, net: pb.Network) -> None:
    gaps = pd.read_csv(folder / "gaps.csv")
    for target in ("tobacco", "age", "bmi"):
        done = fine("predict", folder / "net.json", folder / "gaps.csv", "--target", target)
        printed = pd.read_csv(StringIO(done.stdout)).drop(columns="row")
        pd.testing.assert_frame_equal(
            printed, net.predict(gaps, target), rtol=1e-5, check_dtype=False
        )
    done = fine("predict", folder / "net.json", folder / "gaps.csv", "--target", "tobacco,age")
    header = done.stdout.split("\n")[0].split(",")
    own = net.predict(gaps, ["tobacco", "age"])
    assert header == ["row", *("_".join(filter(None, parts)) for parts in own.columns)]


def test_classify(folder: Path, net: pb.Network) -> None:
    done = fine("classify", folder / "net.json", folder / "gaps.csv")
    printed = pd.read_csv(StringIO(done.stdout)).drop(columns="row")
    own = net.classify(pd.read_csv(folder / "gaps.csv"))
    pd.testing.assert_frame_equal(
        printed, own, rtol=1e-5, check_dtype=False, check_column_type=False
    )


def test_compare(folder: Path, rows: pd.DataFrame) -> None:
    done = fine(
        "compare", folder / "rows.csv", "-g", "clinic", *GIVEN, "--folds", 2,
        "--poolings", "complete,partial", "--json",
    )  # fmt: skip
    own = pb.compare(rows, group="clinic", kinds=KINDS, folds=2, poolings=["complete", "partial"])
    assert own.verdict in json.dumps(json.loads(done.stdout), ensure_ascii=False)


def test_learn_and_compare(folder: Path, tmp_path: Path, net: pb.Network) -> None:
    done = fine(
        "learn", folder / "rows.csv", "-g", "clinic", "--pooling", "complete",
        "--columns", "tobacco,bmi", "--kinds", "tobacco=discrete", "--compare", "-o", tmp_path,
    )  # fmt: skip
    assert "Networks with" in done.stdout
    loaded = pb.load(tmp_path / "network.json")
    assert loaded.fits["tobacco"].categories == net.fits["tobacco"].categories


def test_errors_name_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    pd.DataFrame({"tobacco": ["sometimes"], "bmi": [20.0]}).to_csv(tmp_path / "x.csv", index=False)
    done = run("predict", folder / "net.json", tmp_path / "x.csv", "--target", "age")
    assert done.exit_code == 2
    assert "'sometimes'" in done.stderr
    pd.DataFrame({"age": [20.5], "bmi": [20.0]}).to_csv(tmp_path / "y.csv", index=False)
    done = run("classify", folder / "net.json", tmp_path / "y.csv")
    assert done.exit_code == 2
    assert "is a count" in done.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("posterior gaps.csv -g clinic --missing em", "poolbn learn, bootstrap and compare fill"),
        (
            "learn rows.csv -g clinic --score bge --pooling complete",
            "bge is for continuous columns; use --score bic or --score bic-h",
        ),
        ("bootstrap cells.stats", "use --unit data-set"),
        ("compare cells.stats", "give the rows"),
        ("stats gaps.csv -g clinic --missing em -o a.stats", "or use --missing drop"),
        ("stats gaps.csv -g clinic --missing drop -o a.stats", "'MN' has 5; .*with --allow-small"),
        ("learn gaps.csv -g clinic", "with --missing em, leave them out with --missing drop"),
        ("learn gaps.csv -g clinic --missing em --search pc", "use --missing drop"),
    ],
)
def test_errors_name_commands_and_their_options(
    command: str, words: str, folder: Path, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    gaps = pd.concat([rows[rows["clinic"] == site].head(5) for site in ("NY", "MN")])
    gaps.iloc[0, 2] = None
    gaps.to_csv("gaps.csv", index=False)
    pb.stats(rows, group="clinic").save("cells.stats", allow_small=True)
    done = run(*command.split())
    assert done.exit_code == 2
    assert re.search(words, done.stderr), done.stderr
    assert not re.search(r"\bpb\.|\bnet\.", done.stderr)


def test_bootstrap_of_statistics_with_levels(folder: Path, rows: pd.DataFrame) -> None:
    pb.stats(rows, group="clinic").save(folder / "cells.stats", allow_small=True)
    options = ["--unit", "data-set", "--replicates", 3, "--seed", 2, "--json"]
    done = fine("bootstrap", folder / "cells.stats", *options)
    with pytest.warns(pb.DataWarning, match="such arcs need rows"):
        own = pb.bootstrap(pb.stats(rows, group="clinic"), unit="data set", replicates=3, seed=2)
    told = json.loads(done.stdout)
    assert told["replicates"] == own.replicates == 3
    pd.testing.assert_frame_equal(
        pd.DataFrame(told["strengths"]), own.table(), check_dtype=False, rtol=1e-5
    )
