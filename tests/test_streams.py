"""Many files: folders, names of folders as columns, URLs, and reading that can be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.errors import DataError
from poolbn.moments import statsfile as checkpoints
from poolbn.moments.reading import of_reading
from poolbn.moments.statsfile import Checkpoint
from poolbn.tables.data import prepare
from poolbn.tables.text import connected

SITES = ["New York", "50%", "a=b", "Zürich/1"]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((400, 3)) + 3, columns=["x", "y", "z"])
    frame["site"] = np.array(SITES)[rng.integers(0, 4, 400)]
    frame["year"] = rng.integers(2019, 2022, 400)
    return frame


def same(found: pb.GroupStats, expected: pb.GroupStats) -> None:
    """Equal but for the order of data sets, and rounding."""
    assert set(found.levels) == set(expected.levels)
    at = [expected.levels.index(level) for level in found.levels]
    assert [type(v) for v in found.levels] == [type(expected.levels[j]) for j in at]
    assert found.names == expected.names
    assert_array_equal(found.n, expected.n[at])
    assert_array_equal(found.dropped, expected.dropped[at])
    assert_allclose(found.mean, expected.mean[at], rtol=1e-12)
    assert_allclose(found.scatter, expected.scatter[at], rtol=1e-11, atol=1e-11)


def identical(a: pb.GroupStats, b: pb.GroupStats, folder: Path) -> bool:
    for name, each in (("a", a), ("b", b)):
        each.save(folder / name)
    return (folder / "a").read_bytes() == (folder / "b").read_bytes()


def by_arrow(frame: pd.DataFrame, folder: Path, keys: list[str]) -> None:
    pq.write_to_dataset(pa.Table.from_pandas(frame, preserve_index=False), folder, keys)


def by_duckdb(frame: pd.DataFrame, folder: Path, keys: list[str]) -> None:
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute(
            f"copy frame to '{folder}' (format csv, header, partition_by ({', '.join(keys)}))"
        )


# Folders


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_folder_is_all_its_files(kind: str, rows: pd.DataFrame, tmp_path: Path) -> None:
    for part in range(5):
        place = tmp_path / f"{part % 2}" / f"part-{part}.{kind}"
        place.parent.mkdir(exist_ok=True)
        piece = rows[part::5]
        piece.to_csv(place, index=False) if kind == "csv" else piece.to_parquet(place)
    for name in ("_SUCCESS", ".part-0.csv", "_metadata.parquet", "notes.txt"):
        (tmp_path / name).write_text("not rows")
    (tmp_path / "_old").mkdir()
    (tmp_path / "_old" / "part.csv").write_text("not rows")
    columns = ["x", "y", "z"]
    expected = pb.stats(rows, group="site", columns=columns)
    same(pb.stats(tmp_path, group="site", columns=columns), expected)
    same(pb.stats(f"{tmp_path}/", group="site", columns=columns), expected)
    found = pb.stats(tmp_path, columns=columns)
    assert found.levels == ("part-0", "part-2", "part-4", "part-1", "part-3")
    assert found.n.tolist() == [80] * 5


@pytest.mark.parametrize("write", [by_arrow, by_duckdb])
def test_names_of_folders_are_columns(
    write: Callable[..., None], rows: pd.DataFrame, tmp_path: Path
) -> None:
    folder = tmp_path / "hive"
    write(rows, folder, ["site", "year"])
    assert len(list(folder.glob("site=*/year=*/*"))) == 12
    columns = ["x", "y", "z"]
    expected = pb.stats(rows, group="site", columns=columns)
    same(pb.stats(folder, group="site"), expected)  # years are columns for those who ask only
    same(pb.stats(f"{folder}/*/*/*", group="site"), expected)
    named = rows.astype({"year": str})
    same(pb.stats(folder, group="year"), pb.stats(named, group="year", columns=columns))
    same(
        pb.stats(folder, group="site", columns=["year", "x"]),
        pb.stats(rows, group="site", columns=["year", "x"]),
    )


def test_rows_of_no_folder_are_missing(rows: pd.DataFrame, tmp_path: Path) -> None:
    gaps = rows.assign(site=rows["site"].where(rows.index % 7 > 0)).drop(columns="year")
    by_arrow(gaps, tmp_path / "hive", ["site"])
    with pytest.raises(DataError, match=r"58 rows have a missing value.*in column 'site'"):
        pb.stats(tmp_path / "hive", group="site")
    same(
        pb.stats(tmp_path / "hive", group="site", missing="drop"),
        pb.stats(gaps, group="site", missing="drop"),
    )


@pytest.mark.parametrize("folders", [("1", "20", "-3"), ("01", "20"), ("1", "x"), ("1.5", "2")])
def test_a_data_set_is_called_what_its_folder_says(
    folders: tuple[str, ...], tmp_path: Path
) -> None:
    for name in folders:
        (tmp_path / f"k={name}").mkdir()
        (tmp_path / f"k={name}" / "p.csv").write_text("x\n1\n2\n")
    assert pb.stats([tmp_path / f"k={name}" for name in folders], group="k").levels == folders


def test_a_column_of_the_file_goes_before_the_name_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "site=a").mkdir()
    (tmp_path / "site=a" / "p.csv").write_text("site,x\nb,1\nc,2\n")
    assert pb.stats(tmp_path, group="site").levels == ("b", "c")


def test_predictions_know_data_sets_by_folder(tmp_path: Path) -> None:
    trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
    net = pb.learn(trial, group="clinic", constraints=pb.Constraints(required=[("age", "bmi")]))
    rows = trial.iloc[[0, 200, 300, 700]]
    for clinic, some in rows.groupby("clinic", observed=True):
        (tmp_path / f"clinic={clinic}").mkdir()
        some[["age"]].to_csv(tmp_path / f"clinic={clinic}" / "p.csv", index=False)
    expected = net.predict(rows.drop(columns="bmi").sort_values("clinic", kind="stable"), "bmi")
    assert_allclose(net.predict(tmp_path, "bmi"), expected)


def test_a_folder_as_one_data_set(rows: pd.DataFrame, tmp_path: Path) -> None:
    """Files in folders may have the same name then."""
    for part in range(3):
        (tmp_path / f"month={part}").mkdir()
        piece = rows[part::3][["x", "y"]]
        piece.to_parquet(tmp_path / f"month={part}" / "rows.parquet", index=False)
    out = tmp_path / "a.stats"
    ran = CliRunner().invoke(app, ["stats", str(tmp_path), "--group-name", "A", "-o", str(out)])
    assert ran.exit_code == 0, ran.output
    same(pb.GroupStats.load(out), pb.stats({"A": rows[["x", "y"]]}))


# URLs


def test_a_url_is_read_through_arrow(rows: pd.DataFrame, tmp_path: Path) -> None:
    folder = tmp_path / "a b%20"
    by_arrow(rows, folder, ["site"])
    expected = pb.stats(rows, group="site")
    same(pb.stats(folder.as_uri(), group="site").select(expected.names), expected)
    one = next(folder.glob("*/*.parquet"))
    assert identical(pb.stats(one.as_uri(), group="site"), pb.stats(one, group="site"), tmp_path)
    rows.to_csv(tmp_path / "t.csv", index=False)
    same(pb.stats((tmp_path / "t.csv").as_uri(), group="site"), expected)


def elsewhere(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let s3://bucket be a folder."""

    class FileSystem:
        @staticmethod
        def from_uri(uri: str) -> Any:
            scheme, bucket, path, query, _ = urlsplit(uri)
            assert (scheme, bucket, query) == ("s3", "bucket", "region=x")
            local = pyarrow.fs.LocalFileSystem()
            return pyarrow.fs.SubTreeFileSystem(str(folder), local), f"bucket{unquote(path)}"

    monkeypatch.setattr(pyarrow.fs, "FileSystem", FileSystem)


def test_another_file_system(
    rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_arrow(rows, tmp_path / "bucket" / "trial", ["site"])
    elsewhere(monkeypatch, tmp_path)
    expected = pb.stats(rows, group="site")
    found = pb.stats("s3://bucket/trial?region=x", group="site", checkpoint=tmp_path / "kept")
    same(found.select(expected.names), expected)
    assert len(os.listdir(tmp_path / "kept")) == 4
    rows.to_csv(tmp_path / "bucket" / "t.csv", index=False)
    with pytest.raises(DataError, match="only Parquet"):
        pb.stats("s3://bucket/t.csv?region=x", group="site")


def test_a_reader_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    class FileSystem:
        @staticmethod
        def from_uri(uri: str) -> Any:
            raise pa.ArrowNotImplementedError(f"Got S3 URI {uri} but no S3 support.\nmore")

    monkeypatch.setattr(pyarrow.fs, "FileSystem", FileSystem)
    with pytest.raises(DataError, match=r"Got S3 URI .* but no S3 support\); .* or copy the files"):
        pb.stats("s3://bucket/trial.parquet")


def test_a_bucket_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's library would try for a minute; another time in the URL counts."""
    asked: list[str] = []

    class FileSystem:
        @staticmethod
        def from_uri(uri: str) -> Any:
            asked.append(uri)
            raise pa.ArrowException("no answer")

    monkeypatch.setattr(pyarrow.fs, "FileSystem", FileSystem)
    for url in ("gs://x", "gs://b/x.parquet?retry_limit_seconds=90", "s3://b/x.parquet"):
        with pytest.raises(DataError, match="no answer"):
            pb.stats(url)
    assert asked == ["gs://x?retry_limit_seconds=5", *asked[1:]]
    assert [url.count("retry_limit") for url in asked] == [1, 1, 0]


# Checkpoints


@pytest.fixture
def parts(rows: pd.DataFrame, tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(5):
        rows[part::5].to_csv(folder / f"p{part}.csv", index=False)
    return folder


def read(folder: Path, kept: Path, **options: Any) -> tuple[pb.GroupStats, int, int]:
    """Statistics, files that were taken from the checkpoint, and files that were read."""
    found = Checkpoint(kept)
    given: dict[str, Any] = {"group": "site", "columns": None, "missing": "error"} | options
    whole = of_reading(prepare(folder, **given), found)
    return whole, found.taken, found.made


def test_what_was_read_is_not_read_again(rows: pd.DataFrame, parts: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first, *counts = read(parts, kept)
    assert counts == [0, 5]
    same(first, pb.stats(rows, group="site"))
    again, *counts = read(parts, kept)
    assert counts == [5, 0]
    assert identical(first, again, tmp_path)
    assert identical(first, pb.stats(parts, group="site", checkpoint=kept), tmp_path)


def test_what_has_changed_is_read_again(rows: pd.DataFrame, parts: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    read(parts, kept)
    rows[:50].to_csv(parts / "p0.csv", index=False)
    damaged = sorted(kept.iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    os.utime(parts / "p4.csv", ns=(0, 0))
    found, taken, made = read(parts, kept)
    assert taken + made == 5
    assert made in (2, 3)  # the damaged one may be one of the others
    expected = pd.concat([rows[:50], *(rows[part::5] for part in range(1, 5))])
    same(found, pb.stats(expected, group="site"))
    for options in ({"columns": ["x"]}, {"missing": "drop"}, {"group": "year", "columns": ["x"]}):
        assert read(parts, kept, **options)[1:] == (0, 5)


def test_a_data_set_whose_rows_are_all_dropped_in_one_file(tmp_path: Path) -> None:
    folder, kept = tmp_path / "parts", tmp_path / "kept"
    folder.mkdir()
    (folder / "a.csv").write_text("site,x\np,\np,\nq,1\n")
    (folder / "b.csv").write_text("site,x\np,3\np,5\nq,\n")
    found = pb.stats(folder, group="site", missing="drop", checkpoint=kept)
    assert found.levels == ("p", "q")
    assert (found.n.tolist(), found.dropped.tolist()) == ([2, 1], [2, 1])
    assert_allclose(found.mean, [[4.0], [1.0]])
    assert_allclose(found.scatter[:, 0, 0], [2.0, 0.0])
    (folder / "b.csv").write_text("site,x\nq,3\n")
    for _ in range(2):
        with pytest.raises(DataError, match="'p' has no rows left"):
            pb.stats(folder, group="site", missing="drop", checkpoint=kept)


KILLED = """
import os, signal, sys
import poolbn as pb

written, replace = [], os.replace

def replace_or_die(*paths):
    written.append(paths)
    if len(written) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*paths)

os.replace = replace_or_die
pb.stats(sys.argv[1], group="site", checkpoint=sys.argv[2])
"""


def test_killed_and_started_again(parts: Path, tmp_path: Path) -> None:
    """By SIGKILL, in the moment when the third file is written but has no name yet."""
    kept, whole = tmp_path / "kept", tmp_path / "whole"
    done = subprocess.run([sys.executable, "-c", KILLED, parts, kept], check=False, timeout=120)
    assert done.returncode == -9
    assert len(list(kept.glob("*.stats"))) == 2
    for folder, words in ((kept, "2 of 5 files"), (whole, "0 of 5 files")):
        command = ["stats", str(parts), "-g", "site", "--checkpoint", str(folder)]
        ran = CliRunner().invoke(app, [*command, "-o", f"{folder}.stats"])
        assert ran.exit_code == 0, ran.output
        assert f"checkpoint: {words} were taken" in ran.stderr
    assert (tmp_path / "kept.stats").read_bytes() == (tmp_path / "whole.stats").read_bytes()
    for file in kept.glob("*.stats"):
        assert file.read_bytes() == (whole / file.name).read_bytes()


def test_a_checkpoint_is_of_one_version(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(parts, tmp_path)
    monkeypatch.setattr(checkpoints, "VERSION", "0.0.1")
    assert read(parts, tmp_path)[1:] == (0, 5)


# Standard output


def test_duckdb_shows_no_progress() -> None:
    """Its bar for long queries would go to standard output, between lines of JSON."""
    with connected() as connection:
        shown = connection.sql("select current_setting('enable_progress_bar')")
        assert shown.fetchall() == [(False,)]
