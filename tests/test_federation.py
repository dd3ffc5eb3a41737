"""Sites that hand over statistics and keep their rows: the same network; floors; what is told."""

from __future__ import annotations

import difflib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner, Result

import poolbn as pb
from poolbn.cli.app import app

CLINICS = ["NY", "MN", "KY", "MS"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fine(*arguments: object) -> Result:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done


def refused(*arguments: object) -> str:
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    return str(done.stderr)


@pytest.fixture(scope="module")
def trial() -> pd.DataFrame:
    """All 16 columns of the trial."""
    return pb.datasets.opt(kind="continuous").dropna().reset_index(drop=True)


@pytest.fixture(scope="module")
def sites(trial: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the four clinics send, each made from a file of its own rows."""
    folder = tmp_path_factory.mktemp("sites")
    for clinic in CLINICS:
        own = trial[trial["clinic"] == clinic].drop(columns="clinic")
        own.to_csv(folder / f"{clinic}.csv", index=False)
        fine(
            "stats", folder / f"{clinic}.csv", "--group-name", clinic,
            "-o", folder / f"{clinic}.stats",
        )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sites with columns of their own, and the same name."""
    folder = tmp_path_factory.mktemp("two")
    rng = np.random.default_rng(3)
    for name, columns in (("a", ["x", "y", "p", "q"]), ("b", ["y", "x", "r"])):
        table = pd.DataFrame(rng.standard_normal((30, len(columns))), columns=columns)
        table.to_csv(folder / f"{name}.csv", index=False)
        pb.stats({"A": table}).save(folder / f"{name}.stats")
    return folder


# The same network


def page(path: Path) -> list[str]:
    """What a reader of a page sees, a line for each piece of text."""
    code = re.sub(r"<(script|style).*?</\1>", "", path.read_text(), flags=re.DOTALL)
    return [line.strip() for line in re.sub("<[^>]+>", "\n", code).split("\n") if line.strip()]


def test_the_trial_is_learned_from_statistics_as_from_rows(
    sites: Path, trial: pd.DataFrame, tmp_path: Path
) -> None:
    trial.to_csv(tmp_path / "trial.csv", index=False)
    fine("learn", tmp_path / "trial.csv", "-g", "clinic", "-o", tmp_path / "rows")
    fine("learn", *(sites / f"{clinic}.stats" for clinic in CLINICS), "-o", tmp_path / "stats")
    rows, stats = (pb.load(tmp_path / each / "network.json") for each in ("rows", "stats"))
    assert len(rows.dag.arcs) > 20
    assert stats.dag == rows.dag
    assert abs(stats.score - rows.score) < 1e-9
    assert stats.levels == rows.levels == tuple(CLINICS)
    for node, fit in rows.fits.items():
        assert_allclose(stats.fits[node].coef, fit.coef, rtol=1e-9)
        assert_allclose(stats.fits[node].sigma2, fit.sigma2, rtol=1e-9)
    # The page differs in where the data come from, does not know what clinics are called, and says
    # that it has no residuals.
    from_rows, from_stats = (
        [re.sub("data[ _]set", "clinic", line, flags=re.IGNORECASE).lower() for line in lines]
        for lines in (page(tmp_path / each / "report.html") for each in ("rows", "stats"))
    )
    from_stats = [line.replace(", grouped by clinic:", ":") for line in from_stats]
    changes = {line for line in difflib.ndiff(from_rows, from_stats) if line[0] in "+-"}
    files = {line for line in changes if line.endswith((".csv", ".stats"))}
    assert len(files) == 2
    assert changes - files == {"+ the report was made without the rows, so it has no residuals."}


def test_sites_in_any_order_and_in_parts(trial: pd.DataFrame, tmp_path: Path) -> None:
    """Each clinic sends twice, and rounding differs."""
    for part in range(2):
        for clinic in CLINICS:
            own = trial[trial["clinic"] == clinic][part::2]
            pb.stats(own, group="clinic").save(tmp_path / f"{part}{clinic}.stats")
    parts = sorted(tmp_path.glob("*.stats"), reverse=True)
    net = pb.learn(sum(map(pb.GroupStats.load, parts)), preset="paper")
    rows = pb.learn(trial, group="clinic", preset="paper")
    assert {frozenset(arc) for arc in net.dag.arcs} == {frozenset(arc) for arc in rows.dag.arcs}
    assert net.score == pytest.approx(rows.score, rel=1e-9)


# What is in a file


def test_a_file_holds_statistics_and_nothing_else(sites: Path) -> None:
    """Read by hand: a line of identity, a line of JSON, numbers, and another line of JSON."""
    whole = (sites / "KY.stats").read_bytes()
    identity, header, payload = whole.split(b"\n", 2)
    assert identity.split()[:2] == [b"poolbn-statistics", b"3"]
    rows = pd.read_csv(sites / "KY.csv")
    size = rows.shape[1]
    moments = 8 * (1 + size + size**2 + 1)
    assert json.loads(header) == {
        "poolbn": pb.__version__,
        "group": "data_set",
        "names": list(rows.columns),
        "levels": ["KY"],
        "sections": {"moments": moments, "columns": len(payload) - moments},
    }
    assert sorted(json.loads(payload[moments:])) == ["distinct", "kind", "resolution"]
    payload = payload[:moments]
    numbers = np.frombuffer(payload, "<f8")
    assert len(numbers) == 1 + size + size**2 + 1
    assert np.frombuffer(payload[:8], "<i8") == len(rows)
    assert_allclose(numbers[1 : size + 1], rows.mean())
    centred = (rows - rows.mean()).to_numpy()
    assert_allclose(numbers[size + 1 : -1], (centred.T @ centred).ravel(), rtol=1e-9, atol=1e-7)
    assert np.frombuffer(payload[-8:], "<i8") == 0


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    offset=st.sampled_from([0.0, 1.0, -1e6, 1e9, 1e12]),
    scale=st.sampled_from([1e-9, 1e-3, 1.0, 1e7]),
)
def test_what_rows_have_is_not_refused(
    seed: int, n: int, offset: float, scale: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Columns that are constant, copies, sums of others, or far from zero; few and many rows."""
    rng = np.random.default_rng(seed)
    x = offset + scale * rng.standard_normal((n, 3)) * [1.0, 1e-4, 1e4]
    table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(
        sum=x.sum(axis=1), copy=x[:, 0] * 3 - 1, same=offset, rare=(np.arange(n) == 0) * 1.0
    )
    half = n // 2
    stats = pb.stats({"A": table, "B": table[half:]})
    if half:
        stats = stats + pb.stats({"A": table[:half]})
    path = tmp_path_factory.mktemp("odd") / "s.stats"
    stats.save(path, allow_small=True)
    assert_array_equal(pb.GroupStats.load(path).scatter, stats.scatter)


def test_show_prints_every_number(sites: Path) -> None:
    stats = pb.GroupStats.load(sites / "NY.stats")
    shown = fine("stats", "show", sites / "NY.stats").stdout
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 120
    numbers = [repr(v) for v in [*stats.mean[0].tolist(), *stats.scatter[0].ravel().tolist()]]
    assert set(numbers) <= set(shown.split())
    assert f"NY: {stats.n[0]} rows, 0 left out" in lines
    found = json.loads(fine("stats", "show", sites / "NY.stats", "--json").stdout)
    assert found["poolbn"] == pb.__version__
    assert found["sha256"] in shown
    assert found["bytes"] == (sites / "NY.stats").stat().st_size
    assert_array_equal(found["data_sets"][0]["scatter"], stats.scatter[0])
    assert len(json.loads(fine("stats", "show", sites / "*.stats", "--json").stdout)) == 4


def test_differences_reveal_a_row(trial: pd.DataFrame) -> None:
    """What the documentation warns of."""
    own = trial[trial["clinic"] == "KY"]
    old, new = pb.stats(own[:-1], group="clinic"), pb.stats(own, group="clinic")
    row = new.n[0] * new.mean[0] - old.n[0] * old.mean[0]
    assert_allclose(row, own.iloc[-1][list(new.names)].to_numpy(float), rtol=1e-9, atol=1e-9)


# Few rows


def few(folder: Path) -> Path:
    table = pd.DataFrame({"x": np.arange(24.0) ** 2, "site": [*"a" * 9, *"b" * 14, "c"]})
    table.to_csv(folder / "few.csv", index=False)
    return folder / "few.csv"


def test_few_rows_are_not_written(tmp_path: Path) -> None:
    out = tmp_path / "few.stats"
    words = refused("stats", few(tmp_path), "-g", "site", "-o", out)
    assert (
        "fewer than 10 rows: 'a' has 9, 'c' has 1; sufficient statistics of few rows reveal"
        in words
    )
    assert "--allow-small" in words
    assert not out.exists()
    fine("stats", few(tmp_path), "-g", "site", "-o", out, "--allow-small")
    assert pb.GroupStats.load(out).n.tolist() == [9, 14, 1]
    # the sum of two has to be large enough, not each
    shutil.copy(out, tmp_path / "same.stats")
    given = ("stats", "add", out, tmp_path / "same.stats", "-o", tmp_path / "twice.stats")
    assert "10 rows: 'c' has 2;" in refused(*given)
    fine(*given, "--allow-small")
    assert pb.GroupStats.load(tmp_path / "twice.stats").n.tolist() == [18, 28, 2]
    assert "given 2 times" in refused("stats", "add", out, out, "-o", tmp_path / "2.stats")
    # all rows as one data set are enough
    fine(
        "stats", few(tmp_path), "--group-name", "all", "--columns", "x", "-o", tmp_path / "1.stats"
    )  # fmt: skip


def test_no_more_rows_than_columns_is_told(tmp_path: Path) -> None:
    table = pd.DataFrame(np.random.default_rng(1).standard_normal((12, 12)))
    table.add_prefix("x").to_csv(tmp_path / "wide.csv", index=False)
    command = ("stats", tmp_path / "wide.csv", "--group-name", "A", "-o", tmp_path / "a.stats")
    assert "'A': no more rows than columns (12)" in fine(*command).stderr
    narrow = fine(*command, "--force", "--columns", "x0,x1").stderr
    assert "no more rows" not in narrow


# Columns that differ, names that are the same


@pytest.mark.parametrize("command", ["learn --pooling complete", "stats add -o {out}"])
def test_sites_with_other_columns(command: str, two: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.stats"
    given = [*command.format(out=out).split(), two / "a.stats", two / "b.stats"]
    words = refused(*given)
    assert f"{two / 'a.stats'} lacks 'r'; {two / 'b.stats'} lacks 'p' and 'q'; " in words
    assert "--common" in words
    done = fine(*given, "--common")
    assert "left out, because not all files have them: 'p', 'q' and 'r'" in done.stderr


def test_common_columns_are_added(two: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.stats"
    fine("stats", "add", two / "a.stats", two / "b.stats", "-o", out, "--common")
    both = pd.concat([pd.read_csv(two / f"{name}.csv")[["x", "y"]] for name in "ab"])
    found = pb.GroupStats.load(out)
    assert found.names == ("x", "y")
    assert_allclose(found.scatter[0], both.cov() * 59)


def test_common_columns_of_rows(two: Path, tmp_path: Path) -> None:
    given = ["learn", two / "a.csv", two / "b.csv", "--pooling", "complete"]
    assert "'p', 'q'" in refused(*given)
    found = json.loads(fine(*given, "--common", "--json").stdout)
    assert found["nodes"] == ["x", "y"]
    mixed = fine("learn", two / "a.csv", two / "b.stats", "--common", "--json").stdout
    assert [row["name"] for row in json.loads(mixed)["data_sets"]] == ["A", "a"]
    words = refused("learn", two / "a.csv", two / "b.stats")
    assert "b.stats lacks 'p' and 'q'; the files of rows lack 'r'" in words
    assert "exclude each other" in refused(*given, "--common", "--columns", "x,y")
    only_p = pd.read_csv(two / "a.csv")[["p"]]
    only_p.to_csv(tmp_path / "p.csv", index=False)
    assert "no column in common" in refused("learn", tmp_path / "p.csv", two / "b.csv", "--common")


def test_a_column_that_one_file_lacks(two: Path) -> None:
    words = refused("learn", two / "a.stats", two / "b.stats", "--columns", "x,q")
    assert f"no column 'q' in {two / 'b.stats'}" in words


def test_the_same_name_twice_is_told(two: Path, sites: Path, tmp_path: Path) -> None:
    for command in (
        ["learn", "--pooling", "complete"],
        ["stats", "add", "-o", tmp_path / "out.stats"],
    ):
        done = fine(*command, two / "a.stats", two / "b.stats", "--common")
        assert "rows are added where data sets of" in done.stderr
        assert "b.stats have the same name: 'A'; if they are different" in done.stderr
    done = fine("stats", "add", sites / "*.stats", "-o", tmp_path / "4.stats")
    assert "same name" not in done.stderr
    assert "is no .stats file" in refused("stats", "add", two / "a.csv", "-o", tmp_path / "5.stats")


# Updates


def test_new_rows_are_added_and_the_old_network_is_the_start(
    trial: pd.DataFrame, tmp_path: Path
) -> None:
    columns = ["clinic", "age", "bmi", "gingival_0", "bleeding_0", "depth_0"]
    old, new = trial[columns][::2], trial[columns][1::2]
    for name, rows in (("old", old), ("new", new)):
        pb.stats(rows, group="clinic").save(tmp_path / f"{name}.stats")
    fine("learn", tmp_path / "old.stats", "-o", tmp_path / "out", "--preset", "paper")
    fine(
        "stats", "add", tmp_path / "old.stats", tmp_path / "new.stats", "-o", tmp_path / "all.stats"
    )  # fmt: skip
    stats = pb.GroupStats.load(tmp_path / "all.stats")
    whole = pb.stats(trial[columns], group="clinic")
    assert_array_equal(stats.n, whole.n)
    assert_allclose(stats.scatter, whole.scatter, rtol=1e-9, atol=1e-9)
    before = pb.load(tmp_path / "out" / "network.json")
    found = json.loads(
        fine(
            "learn", tmp_path / "all.stats", "--start", tmp_path / "out" / "network.json", "--json",
            "--preset", "paper",
        ).stdout
    )  # fmt: skip
    net = pb.learn(stats, start=before, preset="paper")
    assert found["score"] == net.score
    assert net.score >= pb.score(stats, before.dag) - 1e-9
    afresh = pb.learn(stats, preset="paper")
    assert len(net.trace) < len(afresh.trace)
    other = pb.learn(stats.select(["age", "bmi"]), start=())
    other.save(tmp_path / "other.json")
    words = refused("learn", tmp_path / "all.stats", "--start", tmp_path / "other.json")
    assert "lacks 'gingival_0'" in words
