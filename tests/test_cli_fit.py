"""`poolbn fit`: from a graph and a table to a report in one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import fine, run

import poolbn as pb

DRAWN = "dag { age [exposure] -> bmi -> birthweight_g [outcome] <- gestation_days }"


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trial") / "trial.csv"
    pb.datasets.opt().to_csv(path, index=False)
    return path


def test_a_graph_and_a_table_give_a_network_its_test_and_a_report(
    trial: Path, tmp_path: Path
) -> None:
    done = fine(
        "fit", DRAWN, trial, "--group", "clinic", "--missing", "drop", "-o", tmp_path / "out"
    )
    for part in ("bmi -> birthweight_g", "The data ", "Fisher's C is ", "R2 (Nakagawa"):
        assert part in done.stdout
    net = pb.load(tmp_path / "out" / "network.json")
    assert net.dag == pb.Dag(DRAWN)
    table = pb.datasets.opt()[["clinic", *net.dag.nodes]].dropna()
    assert net.score == pb.fit(DRAWN, table, group="clinic").score
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Do the data say what the graph says?" in page
    assert "given, not searched for" in page
    assert (tmp_path / "out" / "arcs.csv").exists()
    again = run("fit", DRAWN, trial, "--group", "clinic", "-o", tmp_path / "out")
    assert again.exit_code == 2
    assert "--force" in again.stderr


def test_programs_read_the_test(trial: Path) -> None:
    done = fine("fit", DRAWN, trial, "-g", "clinic", "--missing", "drop", "--json")
    found = json.loads(done.stdout)["test"]
    assert found["fisher_c"]["df"] == 4
    assert {claim["test"] for claim in found["claims"]} == {"combined"}


def test_a_graph_comes_from_a_file(trial: Path, tmp_path: Path) -> None:
    (tmp_path / "model").write_text("bmi ~ age  # a formula\nbirthweight_g ~ bmi")
    more = ("-g", "clinic", "--missing", "drop", "--pooling", "complete", "-o")
    first = fine("fit", tmp_path / "model", trial, *more, tmp_path / "one")
    second = fine("fit", tmp_path / "one" / "network.json", trial, *more, tmp_path / "two")
    assert first.stdout.split("Written")[0] == second.stdout.split("Written")[0]


def test_statistics_are_fitted_too(trial: Path, tmp_path: Path) -> None:
    columns = ["--columns", "age,bmi,gestation_days,birthweight_g"]
    fine("stats", "make", trial, "-g", "clinic", "--missing", "drop", *columns, "-o",
         tmp_path / "trial.stats")  # fmt: skip
    done = fine("fit", DRAWN, tmp_path / "trial.stats")
    assert "Fisher's C is" in done.stdout


@pytest.mark.parametrize(
    ("graph", "options", "fragment"),
    [
        ("dag { age -> bmmi }", [], "did you mean 'bmi'?"),
        ("age <-> bmi", [], "something unobserved is a cause of both"),
        ("age -> bmi -> age", [], "cycle"),
        ("age -> bmi", ["--columns", "age"], "which is not in --columns ...; add it"),
        ("nonsense", [], "or name a file that is there"),
        ("nowhere.json", [], "No such file"),
        ("x" * 5000, [], "no graph that poolbn knows"),
    ],
)
def test_errors_say_the_remedy(trial: Path, graph: str, options: list[str], fragment: str) -> None:
    done = run("fit", graph, trial, "-g", "clinic", "--missing", "drop", *options)
    assert done.exit_code == 2
    assert fragment in " ".join(done.stderr.split())


def test_what_is_not_used_is_told(trial: Path) -> None:
    done = fine("fit", "bmi ~ b*age", trial, "-g", "clinic", "--missing", "drop")
    assert "warning: labels of coefficients are not used: b*age" in done.stderr
