"""The command line: what it prints and writes, its exit codes, and that it never shows a traceback.

Results are compared with those of the Python functions that the commands call.
"""

from __future__ import annotations

import json
import os
import pickle
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import poolbn as pb
from poolbn import errors
from poolbn.cli import demonstration, gathering, inputs, learning, showing
from poolbn.cli.app import app
from poolbn.cli.terminal import Terminal, plain
from poolbn.errors import DataError, InPython, Option
from poolbn.wording import counted

COLUMNS = ["age", "bmi", "gestation_days", "birthweight_g"]
TIERS = [["age", "bmi"], ["gestation_days"], ["birthweight_g"]]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fine(*arguments: object) -> Result:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def trial() -> pd.DataFrame:
    return pb.datasets.opt()[["clinic", *COLUMNS]].dropna().reset_index(drop=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, trial: pd.DataFrame, net: pb.Network) -> Path:
    """Files that no test changes."""
    folder = tmp_path_factory.mktemp("cli")
    trial.to_csv(folder / "trial.csv", index=False)
    pb.datasets.opt()[["clinic", *COLUMNS]].to_csv(folder / "gaps.csv", index=False)
    lists = ", ".join(str(tier).replace("'", '"') for tier in TIERS)
    (folder / "tiers.toml").write_text(f"tiers = [{lists}]\n")
    (folder / "sites").mkdir()
    for clinic, rows in trial.groupby("clinic"):
        rows[COLUMNS].to_csv(folder / "sites" / f"{clinic}.csv", index=False)
        pb.stats(rows, group="clinic").save(folder / "sites" / f"{clinic}.stats")
    net.save(folder / "network.json")
    (folder / "empty.csv").write_text("")
    (folder / "cut.json").write_text((folder / "network.json").read_text()[:500])
    (folder / "cut.stats").write_bytes((folder / "sites" / "KY.stats").read_bytes()[:200])
    (folder / "bad.toml").write_text("tiers = [[")
    (folder / "other.toml").write_text('order = [["age"]]')
    (folder / "flat.toml").write_text('tiers = ["age", "bmi"]')
    (folder / "strange.toml").write_text('tiers = [["agee"]]')
    return folder


@pytest.fixture(scope="module")
def net(trial: pd.DataFrame) -> pb.Network:
    return pb.learn(trial, group="clinic")


# learn


def test_learn_writes_a_network_its_arcs_and_a_page(
    folder: Path, net: pb.Network, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "out"
    done = fine("learn", folder / "trial.csv", "--group", "clinic", "-o", out)
    learned = pb.load(out / "network.json")
    assert learned.dag == net.dag
    assert learned.score == pytest.approx(net.score, abs=1e-9)
    arcs = pd.read_csv(out / "arcs.csv").astype({"level": object, "outcome": object})
    arcs = arcs.fillna({"level": "", "outcome": ""})
    pd.testing.assert_frame_equal(arcs, net.effects(), check_dtype=False, check_column_type=False)
    page = (out / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "--missing" not in page
    assert sorted(path.name for path in out.iterdir()) == [
        "arcs.csv",
        "network.json",
        "report.html",
    ]
    for parent, child in net.dag.arcs:
        assert f"{parent} -> {child}" in done.stdout
    assert "SD between" in done.stdout
    assert f"{len(pd.read_csv(folder / 'trial.csv'))} rows in 4 clinics" in done.stderr
    assert str(out / "report.html") in done.stdout


def test_learn_prints_the_score_of_each_pooling(folder: Path, trial: pd.DataFrame) -> None:
    done = fine("learn", folder / "trial.csv", "-g", "clinic", "--json")
    scores = json.loads(done.stdout)["scores"]
    assert list(scores) == ["complete", "none", "partial", "auto"]
    for name, score in scores.items():  # the BIC of each
        fits = pb.learn(trial, group="clinic", pooling=name).fits.values()
        assert score == pytest.approx(sum(fit.bic for fit in fits))
    paper = ("--preset", "paper")
    done = fine("learn", folder / "trial.csv", "-g", "clinic", "--json", *paper)
    scores = json.loads(done.stdout)["scores"]
    assert list(scores) == ["complete", "none", "partial"]
    for name, score in scores.items():
        same = pb.learn(trial, group="clinic", pooling=name, preset="paper")
        assert score == pytest.approx(same.score)
    done = fine("learn", folder / "trial.csv", "-g", "clinic", *paper)
    printed = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line}
    best = max(scores["complete"], scores["none"], scores["partial"])
    for name in ("complete", "none", "partial"):
        assert float(printed[name][2]) == pytest.approx(best - scores[name], abs=0.006)


def test_learn_names_columns_that_leave_no_score(tmp_path: Path, trial: pd.DataFrame) -> None:
    """And what it says to do helps."""
    rows = trial[["clinic", "age", "bmi"]].dropna().assign(dose=1.0)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    what = ("learn", tmp_path / "rows.csv", "--group", "clinic", "--out", tmp_path / "out")
    result = run(*what, "--columns", "age,bmi,dose")
    words = " ".join(result.stdout.split())
    assert "No pooling has a score, since columns are constant" in words
    assert "leave them out with --exclude dose." in words
    again = run(*what, "--force", "--columns", "age,bmi,dose", "--exclude", "dose")
    assert "The best score has" in again.stdout


def test_learn_for_programs(folder: Path, net: pb.Network) -> None:
    done = fine(
        "learn", folder / "trial.csv", "-g", "clinic", "--json", "--bootstrap", 3, "--compare",
        "--seed", 5, "--columns", "age, bmi", "--columns", "gestation_days",
    )  # fmt: skip
    found = json.loads(done.stdout)
    rows = pd.read_csv(folder / "trial.csv")
    reading = {"group": "clinic", "columns": ["age", "bmi", "gestation_days"]}
    same = pb.learn(pb.stats(rows, **reading))
    assert found["nodes"] == ["age", "bmi", "gestation_days"]
    assert [(arc["parent"], arc["child"]) for arc in found["arcs"]] == list(same.dag.arcs)
    assert found["score"] == pytest.approx(same.score)
    assert found["data_sets"][0] == {"name": "NY", "rows": int(same.n[0]), "dropped": 0}
    assert found["interrupted"] is False
    assert found["files"] == []
    boot = pb.bootstrap(rows, replicates=3, seed=5, **reading)
    assert found["bootstrap"]["threshold"] == boot.threshold
    assert found["bootstrap"]["strengths"] == boot.table().to_dict("records")
    compared = pb.compare(rows, seed=5, **reading)
    assert found["comparison"]["verdict"] == compared.verdict
    assert [row["pooling"] for row in found["comparison"]["poolings"]] == list(compared.poolings)


def test_learn_for_people_with_bootstrap_and_comparison(folder: Path, tmp_path: Path) -> None:
    done = fine(
        "learn", folder / "trial.csv", "-g", "clinic", "--bootstrap", 3, "--compare", "-o", tmp_path
    )  # fmt: skip
    rows = pd.read_csv(folder / "trial.csv")
    boot = pb.bootstrap(rows, group="clinic", replicates=3)
    written = pd.read_csv(tmp_path / "strengths.csv")
    pd.testing.assert_frame_equal(written, boot.table(), check_dtype=False)
    verdict = pb.compare(rows, group="clinic").verdict
    assert verdict in " ".join(done.stdout.split())
    assert "averaged network" in done.stdout


def test_quiet_prints_nothing(folder: Path, tmp_path: Path) -> None:
    done = fine("learn", folder / "trial.csv", "-g", "clinic", "--quiet", "-o", tmp_path / "out")
    assert (done.stdout, done.stderr) == ("", "")
    assert (tmp_path / "out" / "network.json").exists()
    wrong = run("learn", folder / "none.csv", "-g", "clinic", "--quiet")
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("error: there is no file")


def test_nothing_is_overwritten_without_force(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arcs.csv").write_text("mine")
    command = ["learn", folder / "trial.csv", "-g", "clinic", "-o", tmp_path]
    with monkeypatch.context() as patch:
        patch.setattr(gathering, "of_reading", None)  # nothing is even read
        done = run(*command)
    assert done.exit_code == 2
    assert "--force" in done.stderr
    assert (tmp_path / "arcs.csv").read_text() == "mine"
    fine(*command, "--force")
    assert (tmp_path / "arcs.csv").read_text() != "mine"


def test_constraints(folder: Path, trial: pd.DataFrame) -> None:
    done = fine(
        "learn", folder / "trial.csv", "-g", "clinic", "--json", "--pooling", "complete",
        "--tiers", folder / "tiers.toml", "--require", "age:birthweight_g",
        "--forbid", "gestation_days -> birthweight_g", "--max-parents", 2,
        "--search", "exact", "--score", "aic",
    )  # fmt: skip
    same = pb.learn(
        trial,
        group="clinic",
        pooling="complete",
        score="aic",
        search=pb.Exact(),
        constraints=pb.Constraints(
            tiers=TIERS,
            required=[("age", "birthweight_g")],
            forbidden=[("gestation_days", "birthweight_g")],
            max_parents=2,
        ),
    )
    found = json.loads(done.stdout)
    arcs = [(arc["parent"], arc["child"]) for arc in found["arcs"]]
    assert arcs == list(same.dag.arcs)
    assert ("age", "birthweight_g") in arcs
    assert ("gestation_days", "birthweight_g") not in arcs


@pytest.mark.parametrize(
    ("options", "search"),
    [
        (("--search", "pc", "--alpha", 0.1), pb.PC(alpha=0.1)),
        (("--search", "hybrid"), pb.Hybrid()),
        (("--search", "hybrid", "--alpha", 0.2), pb.Hybrid(pb.MMPC(alpha=0.2))),
    ],
    ids=["pc", "hybrid", "hybrid-alpha"],
)
def test_searches_by_tests(
    folder: Path, trial: pd.DataFrame, options: tuple[object, ...], search: pb.PC | pb.Hybrid
) -> None:
    done = fine("learn", folder / "trial.csv", "-g", "clinic", "--json", *options)
    found = json.loads(done.stdout)
    same = pb.learn(trial, group="clinic", search=search)
    assert [(arc["parent"], arc["child"]) for arc in found["arcs"]] == list(same.dag.arcs)


def test_searches_and_poolings() -> None:
    assert inputs.Searching(search="tabu").options()["search"] == pb.Tabu()
    assert inputs.Searching(seed=3).options()["search"] == pb.AutoSearch(seed=3)
    assert inputs.Searching(seed=3, preset="paper").options()["search"] == pb.HillClimb(seed=3)
    assert inputs.Fitting("auto").chosen() == "auto"
    pooled = inputs.Fitting(residuals="pooled").chosen()
    assert pooled == pb.Partial(residuals="pooled")


def test_files_are_data_sets_without_a_group_column(
    folder: Path, net: pb.Network, tmp_path: Path
) -> None:
    done = fine("learn", folder / "sites" / "*.csv", "--json", "-o", tmp_path / "out")
    found = json.loads(done.stdout)
    assert [row["name"] for row in found["data_sets"]] == ["KY", "MN", "MS", "NY"]
    assert found["score"] == pytest.approx(net.score, abs=1e-6)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "made without the rows" not in page
    done = fine(
        "report", tmp_path / "out" / "network.json", folder / "sites" / "*.csv",
        "-o", tmp_path / "again.html",
    )  # fmt: skip
    assert "made without the rows" not in (tmp_path / "again.html").read_text()


def test_statistics_are_learned_from_as_rows_are(
    folder: Path, net: pb.Network, tmp_path: Path
) -> None:
    sites = folder / "sites"
    done = fine("learn", sites / "*.stats", "--json", "-o", tmp_path / "out")
    found = json.loads(done.stdout)
    assert {frozenset((a["parent"], a["child"])) for a in found["arcs"]} == {
        frozenset(arc) for arc in net.dag.arcs
    }
    assert found["score"] == pytest.approx(net.score, rel=1e-9)
    assert found["group"] == "clinic"
    assert "made without the rows" in (tmp_path / "out" / "report.html").read_text()
    # three sites send statistics, the centre has its own rows
    others = [sites / f"{clinic}.stats" for clinic in ("KY", "MN", "MS")]
    found = json.loads(fine("learn", *others, sites / "NY.csv", "--json").stdout)
    assert found["score"] == pytest.approx(net.score, rel=1e-9)


def test_names_are_printed_as_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"[red]x": x, "y:smile:": x + rng.normal(size=60), "F": [*"abc"] * 20})
    frame.to_csv(tmp_path / "odd.csv", index=False)
    command = ["learn", tmp_path / "odd.csv", "-g", "F", "--require", "[red]x->y:smile:"]
    assert "[red]x -> y:smile:" in fine(*command).stdout


def test_a_narrow_terminal_shows_fewer_columns(
    net: pb.Network, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for columns, shown in (("79", False), ("200", True)):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv("TERM", "xterm")
        showing.show_network(Terminal(), net)
        printed = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
        assert ("lowest" in printed) == shown
        assert max(map(len, printed.splitlines())) <= int(columns)


def test_the_table_is_not_cut_where_there_is_no_terminal(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    long, other = "a" * 70, "b" * 70
    x = rng.normal(size=60)
    frame = pd.DataFrame({long: x, other: x + rng.normal(size=60), "F": [*"abc"] * 20})
    frame.to_csv(tmp_path / "long.csv", index=False)
    done = fine("learn", tmp_path / "long.csv", "-g", "F", "--require", f"{long}:{other}")
    assert f"{long} -> {other}" in done.stdout


# Other commands


def test_compare(folder: Path, trial: pd.DataFrame, tmp_path: Path) -> None:
    command = [
        "compare", folder / "trial.csv", "-g", "clinic", "--poolings", "complete,partial",
        "--folds", 3, "--seed", 2, "-o", tmp_path / "found.csv",
    ]  # fmt: skip
    done = fine(*command)
    same = pb.compare(trial, group="clinic", poolings=["complete", "partial"], folds=3, seed=2)
    assert same.verdict in " ".join(done.stdout.split())
    written = pd.read_csv(tmp_path / "found.csv", index_col=0)
    np.testing.assert_allclose(written["loglik"], same.table()["loglik"])
    assert run(*command).exit_code == 2
    found = json.loads(fine(*command, "--force", "--json").stdout)
    assert found["best"] == same.best


def test_bootstrap(folder: Path, trial: pd.DataFrame, tmp_path: Path) -> None:
    command = ["bootstrap", folder / "trial.csv", "-g", "clinic", "--replicates", 4, "--seed", 7]
    done = fine(*command, "-o", tmp_path / "strengths.csv", "--threshold", 0.5)
    boot = pb.bootstrap(trial, group="clinic", replicates=4, seed=7)
    written = pd.read_csv(tmp_path / "strengths.csv")
    pd.testing.assert_frame_equal(written, boot.table(), check_dtype=False)
    assert "strength above 0.5" in done.stdout
    found = json.loads(fine(*command, "--json").stdout)
    assert [tuple(arc) for arc in found["averaged"]] == list(boot.averaged().arcs)
    sets = json.loads(
        fine(
            "bootstrap", folder / "sites" / "*.stats", "--unit", "data-set", "--replicates", 4,
            "--json",
        ).stdout
    )  # fmt: skip
    assert sets["unit"] == "data set"


def test_posterior(folder: Path, trial: pd.DataFrame, tmp_path: Path) -> None:
    command = ["posterior", folder / "trial.csv", "-g", "clinic", "--prior", "dags"]
    done = fine(*command, "-o", tmp_path / "arcs.csv", "--max-parents", 2, "--forbid", "age:bmi")
    rules = pb.Constraints(max_parents=2, forbidden=[("age", "bmi")])
    post = pb.arc_posterior(trial, group="clinic", prior="dags", constraints=rules)
    written = pd.read_csv(tmp_path / "arcs.csv")
    pd.testing.assert_frame_equal(written, post.arcs(), check_dtype=False)
    assert "over all graphs of the columns, with up to 2 parents" in done.stdout
    assert f"has {len(post.median_graph().arcs)} arc" in done.stdout
    found = json.loads(fine("posterior", folder / "sites" / "*.stats", "--json").stdout)
    assert found["exact"] is True
    options = ["-g", "clinic", "--sweeps", 40, "--score", "bic-h"]
    chains = json.loads(fine("posterior", folder / "trial.csv", *options, "--json").stdout)
    same = pb.arc_posterior(trial, group="clinic", score="bic-h", method=pb.OrderMCMC(sweeps=40))
    assert chains["r_hat"] == pytest.approx(same.chains.r_hat)
    assert "4 chains of 40 sweeps" in fine("posterior", folder / "trial.csv", *options).stdout
    assert "4 chains of 20 sweeps" in fine(*command, "--sweeps", 20).stdout


def test_predict(folder: Path, net: pb.Network, trial: pd.DataFrame, tmp_path: Path) -> None:
    command = ["predict", folder / "network.json", folder / "trial.csv"]
    same = net.predict(trial, "birthweight_g")
    printed = fine(*command, "--target", "birthweight_g").stdout
    (tmp_path / "printed.csv").write_text(printed)
    fine(*command, "--target", "birthweight_g", "-o", tmp_path / "written.csv")
    for name in ("printed.csv", "written.csv"):
        found = pd.read_csv(tmp_path / name)
        assert list(found) == ["row", "mean", "sd", "lower", "upper"]
        np.testing.assert_array_equal(found["row"], np.arange(1, len(trial) + 1))
        np.testing.assert_allclose(found[list(same)], same, rtol=1e-5)
    both = json.loads(fine(*command, "--target", "age,bmi", "--interval", 0.5, "--json").stdout)
    two = net.predict(trial, ["age", "bmi"], interval=0.5)
    assert both[3]["bmi_lower"] == pytest.approx(two["bmi"]["lower"].iloc[3])
    assert len(both) == len(trial)


def test_classify(folder: Path, net: pb.Network, trial: pd.DataFrame) -> None:
    found = json.loads(
        fine("classify", folder / "network.json", folder / "trial.csv", "--json").stdout
    )
    same = net.classify(trial)
    assert [row["most_probable"] for row in found] == same["most_probable"].tolist()
    assert found[5]["KY"] == pytest.approx(same["KY"].iloc[5])


def test_report(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "pages" / "page.html"
    fine("report", folder / "network.json", "-o", page)
    assert "made without the rows" in page.read_text()
    assert run("report", folder / "network.json", "-o", page).exit_code == 2
    fine("report", folder / "network.json", folder / "gaps.csv", "-o", page, "--force")
    assert "made without the rows" not in page.read_text()


def test_stats_make_add_and_show(folder: Path, trial: pd.DataFrame, tmp_path: Path) -> None:
    half = len(trial) // 2
    for name, rows in (("one", trial[:half]), ("two", trial[half:])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        done = fine(
            "stats", tmp_path / f"{name}.csv", "--group", "clinic", "-o", tmp_path / f"{name}.stats"
        )  # fmt: skip
        assert done.stdout.startswith("GroupStats")
    both = tmp_path / "both.stats"
    fine("stats", "add", tmp_path / "one.stats", tmp_path / "two.stats", "-o", both)
    whole = pb.stats(trial, group="clinic")
    found = json.loads(fine("stats", "show", both, "--json").stdout)
    assert found["columns"] == COLUMNS
    assert found["group"] == "clinic"
    assert [row["name"] for row in found["data_sets"]] == list(whole.levels)
    for j, row in enumerate(found["data_sets"]):
        assert row["rows"] == whole.n[j]
        np.testing.assert_allclose(row["mean"], whole.mean[j])
        np.testing.assert_allclose(row["scatter"], whole.scatter[j], rtol=1e-9)
    shown = fine("stats", "show", both).stdout
    numbers = [row[key] for row in found["data_sets"] for key in ("mean", "scatter")]
    digits = {repr(value) for value in np.concatenate([np.ravel(v) for v in numbers]).tolist()}
    assert digits <= set(shown.split())
    for words in (*COLUMNS, "KY", f"{whole.n[0]} rows", found["sha256"], found["poolbn"]):
        assert words in shown


def test_stats_of_one_site(folder: Path, tmp_path: Path) -> None:
    gaps = folder / "gaps.csv"
    fine(
        "stats", "--group-name", "Site A", "--missing", "drop", "--columns", "age,bmi", gaps,
        "-o", tmp_path / "a.stats",
    )  # fmt: skip
    loaded = pb.GroupStats.load(tmp_path / "a.stats")
    assert loaded.levels == ("Site A",)
    complete = pd.read_csv(gaps)[["age", "bmi"]].dropna()
    np.testing.assert_allclose(loaded.mean[0], complete.mean())
    np.testing.assert_allclose(loaded.scatter[0], complete.cov() * (len(complete) - 1))
    fine(
        "stats", folder / "sites" / "*.csv", "--group-name", "all", "-o", tmp_path / "all.stats"
    )  # fmt: skip
    whole = pd.read_csv(folder / "trial.csv")[COLUMNS]
    np.testing.assert_allclose(
        pb.GroupStats.load(tmp_path / "all.stats").scatter[0], whole.cov() * (len(whole) - 1)
    )


@pytest.mark.slow
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration, "_REPLICATES", 2)
    monkeypatch.chdir(tmp_path)
    done = fine("demo")
    assert "four clinics" in done.stdout
    assert done.stdout.rstrip().endswith("poolbn-demo/report.html")
    out = tmp_path / "poolbn-demo"
    tiers = inputs.read_tiers(out / "tiers.toml")
    net = pb.load(out / "network.json")
    assert sorted(net.dag.nodes) == sorted(name for tier in tiers for name in tier)
    assert (net.n_rows, net.inputs) == (823, ("treatment",))
    rank = {name: k for k, tier in enumerate(tiers) for name in tier}
    assert all(rank[parent] <= rank[child] for parent, child in net.dag.arcs)
    # Three sentences answer the trial's question.
    trial = pb.datasets.opt()
    cells = [
        pd.crosstab(part["treatment"], part["preterm"]).to_numpy()
        for _, part in trial.groupby("clinic")
    ]
    log_or = [np.log(c[0, 0] * c[1, 1] / c[0, 1] / c[1, 0]) for c in cells]
    woolf = np.exp(np.average(log_or, weights=[1 / (1 / c).sum() for c in cells]))
    said = " ".join(done.stdout.split())
    assert f"preterm birth: the odds ratio is {woolf:.2f} (" in said
    assert "Treatment improves the gums" in said
    assert "birth weight: the difference is +" in said
    assert run("demo").exit_code == 2


# Wrong use


def test_columns_can_be_left_out(folder: Path, tmp_path: Path) -> None:
    """By all commands that take columns; of --columns, and of statistics, too."""
    rows = ["-g", "clinic", "--json"]
    left = ["--exclude", "bmi", "--exclude", "birthweight_g"]
    kept = ["--columns", "age,gestation_days"]
    for command in (
        ["learn", folder / "trial.csv", *rows],
        ["bootstrap", folder / "trial.csv", *rows, "--replicates", 2],
        ["posterior", folder / "trial.csv", *rows],
        ["compare", folder / "trial.csv", *rows, "--folds", 2, "--poolings", "none"],
        ["learn", *sorted((folder / "sites").glob("*.stats")), "--json"],
    ):
        found, own = (json.loads(fine(*command, *how).stdout) for how in (left, kept))
        assert found == own
    files = [tmp_path / "a.stats", tmp_path / "b.stats"]
    for path, how in zip(files, (left, kept), strict=True):
        fine("stats", folder / "trial.csv", "-g", "clinic", *how, "-o", path)
    assert files[0].read_bytes() == files[1].read_bytes()
    both = ["--columns", "age,bmi,gestation_days", "--exclude", "bmi"]
    found = json.loads(fine("learn", folder / "trial.csv", *rows, *both).stdout)
    assert found["nodes"] == ["age", "gestation_days"]


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ("bim", "no column 'bim' to leave out; did you mean 'bmi'?"),
        ("clinic", "column 'clinic' is the group"),
        (",".join(COLUMNS), "leaves no column"),
    ],
)
def test_columns_that_cannot_be_left_out(folder: Path, left: str, words: str) -> None:
    done = run("learn", folder / "trial.csv", "-g", "clinic", "--exclude", left)
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("learn nothing.csv -g clinic", "there is no file"),
        ("learn trial.csv", "name it with --group COLUMN; it could be 'clinic'"),
        ("compare trial.csv", "name it with --group"),
        ("bootstrap trial.csv", "name it with --group"),
        ("posterior trial.csv", "name it with --group"),
        ("learn trial.csv -g clinik", "did you mean 'clinic'?"),
        (
            "learn gaps.csv -g clinic",
            "what such rows have with --missing em, leave them out with --missing drop",
        ),
        ("learn sites -g clinic", "no column 'clinic' of KY.csv"),
        ("learn empty.csv -g clinic", "is empty"),
        ("learn network.json -g clinic", "end its name in .jsonl"),
        ("learn trial.csv -g clinic --columns age,bim", "did you mean 'bmi'?"),
        ("learn trial.csv -g clinic --require age", "write PARENT:CHILD"),
        ("learn trial.csv -g clinic --forbid age:b:c", "PARENT -> CHILD"),
        ("learn trial.csv -g clinic --forbid age:agee", "did you mean 'age'?"),
        ("learn trial.csv -g clinic --tiers none.toml", "cannot read"),
        ("learn trial.csv -g clinic --tiers bad.toml", "is not TOML"),
        ("learn trial.csv -g clinic --tiers other.toml", "has 'order'; it should have only"),
        ("learn trial.csv -g clinic --tiers flat.toml", "tier 1 in"),
        ("learn trial.csv -g clinic --tiers strange.toml", "in tier 1 is not a node"),
        ("learn trial.csv -g clinic --tiers empty.csv", "is empty; it should have only"),
        ("learn trial.csv -g clinic --tiers sites", "cannot read"),
        ("learn trial.csv -g clinic --tiers /dev/zero", "not a regular file"),
        ("learn trial.csv -g clinic --search tabu --restarts 3", "--restarts is for --search hc"),
        ("learn trial.csv -g clinic --search hc --alpha 0.1", "--alpha is for --search pc"),
        ("learn trial.csv -g clinic --search pc --alpha 2", "--alpha 2"),
        ("learn trial.csv -g clinic --pooling none --residuals pooled", "--pooling partial"),
        ("learn trial.csv -g clinic --score bge", "BGe is a score for complete pooling"),
        ("learn trial.csv -g clinic -o trial.csv", "is a file, so"),
        ("learn sites/KY.stats -g clinic", "leave --group clinic out"),
        ("learn sites/*.stats --compare", "--compare needs rows"),
        ("learn sites/*.stats --bootstrap 3", "--bootstrap needs rows"),
        ("learn cut.stats", "cut short"),
        ("compare sites/*.stats", "compare needs rows"),
        ("compare trial.csv -g clinic --poolings partial,foo", "foo"),
        ("bootstrap sites/*.stats", "use --unit data-set"),
        ("predict cut.json trial.csv --target age", "cut.json"),
        ("predict none.json trial.csv --target age", "cannot read"),
        ("predict network.json trial.csv --target aeg", "did you mean 'age'?"),
        ("predict network.json none.csv --target age", "there is no file"),
        ("predict network.json trial.csv --target age --interval 2", "--interval 2.0 is not"),
        ("classify trial.csv trial.csv", "trial.csv"),
        ("report network.json sites/KY.stats -o a.html", "report needs rows"),
        ("report network.json -o sites", "is a folder"),
        ("stats trial.csv -g clinic -o out.csv", "should end in .stats"),
        ("stats trial.csv -g clinic --group-name A -o out.stats", "exclude each other"),
        ("stats show network.json", "is not a file of poolbn statistics"),
        ("stats add sites/KY.stats none.stats -o out.stats", "there is no file"),
    ],
)
def test_wrong_use_is_told_in_one_paragraph(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    done = run(*command.split())
    assert done.exit_code == 2, done.output
    *notes, error = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert all(" rows in 4 clinics, " in note for note in notes)
    assert done.stdout == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    "command",
    [
        "learn",
        "learn trial.csv --pooling some",
        "learn trial.csv --restarts -1",
        "learn trial.csv --max-parents two",
        "compare trial.csv --folds 1",
        "predict network.json trial.csv",
        "stats trial.csv",
        "unknown",
    ],
)
def test_usage_errors_exit_with_2(command: str) -> None:
    done = run(*command.split())
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "Usage:" in done.stderr


def test_errors_speak_the_language_of_the_command_line() -> None:
    for part, python, shell in [
        (Option("columns", ["age", "bmi"]), "columns=['age', 'bmi']", "--columns age,bmi"),
        (Option("columns", ["a b", "c,d"]), "columns=['a b', 'c,d']", "--columns 'a b,\"c,d\"'"),
        (errors.left_out("a b"), "leave it out of columns", "leave it out with --exclude 'a b'"),
        (errors.GROUP, "group=...", "--group COLUMN"),
        (Option("max_parents", 2), "max_parents=2", "--max-parents 2"),
        (Option("allow_small", True), "allow_small=True", "--allow-small"),
        (Option("unit", "data set", "data-set"), "unit='data set'", "--unit data-set"),
        (InPython("or a dict"), "or a dict", ""),
        (InPython("pb.Tabu()", "--search tabu"), "pb.Tabu()", "--search tabu"),
        ("a == b, y=2", "a == b, y=2", "a == b, y=2"),
    ]:
        error = DataError("use ", part, "; or not")
        for same in (error, pickle.loads(pickle.dumps(error))):
            assert str(same) == f"use {python}; or not"
            assert same.for_shell() == f"use {shell}; or not"


def test_what_is_unexpected_exits_with_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the cat is on the mat")

    monkeypatch.setattr(learning, "learn_network", broken)
    done = run("learn", folder / "trial.csv", "-g", "clinic")
    assert done.exit_code == 1
    assert "unexpected, RuntimeError: the cat is on the mat" in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.setenv("POOLBN_TRACEBACK", "1")
    done = run("learn", folder / "trial.csv", "-g", "clinic")
    assert isinstance(done.exception, RuntimeError)


def test_values_for_programs() -> None:
    value = {1: np.array([[1.0, np.inf]]), "b": pd.DataFrame({"c": [np.nan]}), "d": Path("e")}
    assert plain(value) == {"1": [[1.0, None]], "b": [{"c": None}], "d": "e"}


# Interruptions


def test_an_interrupted_search_keeps_the_best_network(
    folder: Path, net: pb.Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise pb.SearchInterrupted(net)

    monkeypatch.setattr(learning, "learn_network", stopped)
    command = ["learn", folder / "trial.csv", "-g", "clinic"]
    done = run(*command, "-o", tmp_path)
    assert done.exit_code == 130
    assert "the best network so far is in" in done.stderr
    assert pb.load(tmp_path / "network.json").dag == net.dag
    assert not (tmp_path / "report.html").exists()
    done = run(*command, "--json")
    assert done.exit_code == 130
    assert json.loads(done.stdout)["interrupted"] is True


def test_an_interruption_after_the_search_keeps_the_network(
    folder: Path, net: pb.Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(learning, "compare_poolings", stopped)
    done = run("learn", folder / "trial.csv", "-g", "clinic", "--compare", "-o", tmp_path)
    assert done.exit_code == 130
    assert "interrupted, so there is no report; the network is in" in done.stderr
    assert pb.load(tmp_path / "network.json").dag == net.dag


def test_a_bootstrap_that_is_interrupted_counts_what_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        counts = np.array([[0.0, 1.0], [1.0, 0.0]])
        raise pb.BootstrapInterrupted(pb.Bootstrap(("a", "b"), counts, 2, "row"))

    monkeypatch.setattr("poolbn.cli.networks.resample", stopped)
    done = run("bootstrap", folder / "trial.csv", "-g", "clinic")
    assert done.exit_code == 130
    assert "interrupted after 2 networks" in done.stderr
    assert "a -- b" in done.stdout


def test_chains_that_are_interrupted_count_as_far_as_they_are(
    folder: Path, trial: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = pb.arc_posterior(trial, group="clinic", method=pb.OrderMCMC(sweeps=20))

    def stopped(*_: object, **__: object) -> None:
        raise pb.PosteriorInterrupted(post)

    monkeypatch.setattr("poolbn.cli.networks.arc_posterior", stopped)
    done = run("posterior", folder / "trial.csv", "-g", "clinic", "--sweeps", 100)
    assert done.exit_code == 130
    assert "interrupted" in done.stderr
    assert "4 chains of 20 sweeps" in done.stdout


def test_ctrl_c_in_a_real_search(folder: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()  # with a terminal there is a line that says the search is on
    command = [
        sys.executable, "-m", "poolbn", "learn", folder / "trial.csv", "-g", "clinic",
        "--search", "hc", "--restarts", "100000000", "-o", tmp_path / "out",
    ]  # fmt: skip
    with subprocess.Popen(
        command, stderr=theirs, stdout=subprocess.PIPE, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        said = b""
        while b"moves" not in said:
            said += os.read(ours, 1000)
        process.send_signal(signal.SIGINT)
        try:
            while part := os.read(ours, 1000):
                said += part
        except OSError:  # the other end is closed
            pass
        printed = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert b"the best network so far is in" in re.sub(rb"\s+", b" ", said)
    learned = pb.load(tmp_path / "out" / "network.json")
    assert f", {counted(len(learned.dag.arcs), 'arc')}, " in printed


# The program itself


def test_the_module_is_the_command(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "poolbn", "learn", "none.csv", "-g", "clinic"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: there is no file 'none.csv'")
    assert "Traceback" not in done.stderr


def test_version_and_help() -> None:
    assert fine("--version").stdout == f"poolbn {pb.__version__}\n"
    for command in (
        "", "learn", "compare", "bootstrap", "posterior", "predict", "classify", "report", "demo",
        "warmup",
        "stats", "stats make", "stats add", "stats show", "study",
    ):  # fmt: skip
        assert "Usage:" in fine(*command.split(), "--help").stdout


def test_the_study_is_elsewhere() -> None:
    for command in ("study", "study run --preset smoke --out here", "study report a b --out c"):
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 2
        assert done.output.startswith("error: the paper's simulation study is not part of")
        assert "python -m benchmarks.study" in done.output


def test_shell_completion() -> None:
    poolbn = Path(sys.executable).parent / "poolbn"
    if not poolbn.exists():
        pytest.skip("the command is not installed beside this Python")
    script = subprocess.run(
        ["bash", "-c", f"'{poolbn}' --show-completion; exit $?"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "complete_bash" in script
    told = {"_POOLBN_COMPLETE": "complete_bash", "COMP_WORDS": "poolbn le", "COMP_CWORD": "1"}
    done = subprocess.run(
        [poolbn], env={**os.environ, **told}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["learn"]
    told |= {"COMP_WORDS": "poolbn learn --pooling co", "COMP_CWORD": "3"}
    offered = CliRunner().invoke(app, [], env=told, prog_name="poolbn").stdout
    assert offered.split() == ["complete"]


# The machine


def process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "poolbn", *map(str, arguments)]
    return subprocess.run(
        command, stderr=subprocess.PIPE, text=True, check=False, timeout=60, **options
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["--version"], ["learn", "--help"], ["stats", "show"]])
def test_a_full_standard_output(command: list[str], tmp_path: Path) -> None:
    saved = tmp_path / "t.stats"
    trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
    pb.stats(trial, group="clinic").save(saved)
    with open("/dev/full", "w") as full:
        done = process(*command, *([saved] if "show" in command else []), stdout=full)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: standard output cannot be written: No space left on device; send it elsewhere"
    ]


SLOW = """
import builtins, os, signal, sys
usual = builtins.__import__

def slow(name, *more):
    if name == "{module}":
        os.kill(os.getpid(), signal.SIGINT)
    return usual(name, *more)

builtins.__import__ = slow
sys.argv = ["poolbn", "--version"]
import poolbn.__main__
poolbn.__main__.main()
"""


@pytest.mark.parametrize("module", ["numpy", "typer", "poolbn.cli.app"])
def test_an_interruption_in_the_first_moments(module: str) -> None:
    code = SLOW.format(module=module)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == "interrupted\n"
    assert done.returncode == 130


def test_a_lack_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*arguments: Any, **options: Any) -> None:
        raise MemoryError

    (tmp_path / "t.csv").write_text("g,x\na,1\nb,2\n")
    monkeypatch.setattr("poolbn.cli.learning.read_data", none)
    done = CliRunner().invoke(app, ["learn", str(tmp_path / "t.csv"), "-g", "g"])
    assert done.exit_code == 2
    assert "not enough memory" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "",
        "look",
        "learn",
        "compare",
        "bootstrap",
        "predict",
        "report",
        "stats",
        "stats make",
    ],
)
def test_help_has_no_types_of_python(command: str) -> None:
    text = fine(*command.split(), "--help").stdout
    assert "<bool>" not in text
    assert "list[" not in text
    assert "--help" in text


@pytest.mark.parametrize("command", ["look trial.csv -g clinic", "learn --help"])
def test_a_reader_that_leaves_is_no_error(folder: Path, command: str) -> None:
    """As below `| head -1`."""
    run = [sys.executable, "-m", "poolbn", *command.split()]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(run, cwd=folder, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
