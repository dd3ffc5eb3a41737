"""Files as they come: all rows are read, once, or an error of one line says why not."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.errors import DataError
from poolbn.tables.files import stem
from poolbn.tables.kinds import joined_levels
from poolbn.tables.labels import spelling, written
from poolbn.tables.paths import folders, parted_table


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(DataError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


# CSV


@pytest.mark.parametrize("kind", hostile.CSV_GOOD)
def test_no_row_of_a_csv_file_is_lost(kind: str, tmp_path: Path) -> None:
    content, rows = hostile.CSV_GOOD[kind]
    (tmp_path / "t.csv").write_bytes(content)
    assert pb.stats(tmp_path / "t.csv", group="site").n_rows == rows


@pytest.mark.parametrize("kind", hostile.CSV_BAD)
def test_a_csv_file_that_is_none_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(hostile.CSV_BAD[kind])
    assert "t.csv" in refused(lambda: pb.stats(tmp_path / "t.csv", group="site"))


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["#1", "#", "# a", "a", '"#"', "#,"]), min_size=1, max_size=6))
def test_rows_that_begin_with_a_hash_are_rows(names: list[str]) -> None:
    """Also where lines that begin with it are shorter than others: then the file is refused."""
    lines = [f"{name},{k}\n" for k, name in enumerate(names)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("".join(["site,x\n", *lines]))
        if "#," in names:
            assert "has 3 cells" in refused(lambda: pb.stats(path, group="site"))
        else:
            assert pb.stats(path, group="site").n_rows == len(lines)
        path.write_text("".join(["site,x\n", *lines, "# the end\n"]))
        assert " cells" in refused(lambda: pb.stats(path, group="site"))


def test_names_of_columns_that_are_numbers(tmp_path: Path) -> None:
    """A line of numbers is a row, unless it counts the columns as pandas does."""
    path = tmp_path / "t.csv"
    pd.DataFrame(np.eye(3)).to_csv(path, index=False)
    assert pb.stats(path).n_rows == 3
    path.write_text("1.5,2,3\n1,2,3\n")
    assert "holds numbers, '1.5, 2, 3'" in refused(lambda: pb.stats(path))


# What is no file


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = {kind: refused(lambda p=p: pb.stats(p)) for kind, p in hostile.special(tmp_path).items()}
    assert "FIFO" in said["FIFO"]
    assert "socket" in said["socket"]
    assert "a device" in said["device"]
    assert "a device" in said["device itself"]
    assert "link" in said["link to nothing"]
    assert "FIFO" in refused(lambda: pb.stats(f"{tmp_path}/fif*"))
    with pytest.warns(pb.DataWarning, match="3 links, such as 'gone.csv'"):
        assert "FIFO" in refused(lambda: pb.stats(tmp_path))


@pytest.mark.parametrize("name", hostile.NAMES.values(), ids=hostile.NAMES)
def test_files_of_any_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.csv"
    try:
        path.write_bytes(hostile.CSV_GOOD["plain"][0])
    except (OSError, ValueError):
        assert refused(lambda: pb.stats(path))
    else:
        found = pb.stats(path, columns=["x", "y"])
        assert (found.levels, found.n_rows) == ((name,), 4)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", hostile.NAMES.values(), ids=hostile.NAMES)
def test_columns_and_data_sets_of_any_name(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{kind}"
    rows = pd.DataFrame({"site": [name, "other"] * 2, "x": [1.0, 2, 3, 4], name: [1.0, 0, 0, 1]})
    rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
    if kind == "csv" and name in ("", "NA"):
        assert "2 rows have a missing value" in refused(lambda: pb.stats(path, group="site"))
    elif kind == "csv" and name == hostile.NAMES["carriage return"]:
        refused(lambda: pb.stats(path, group="site"))  # pandas does not quote it
    else:
        found = pb.stats(path, group="site")
        assert (found.levels, found.names) == ((name, "other"), ("x", name))


@pytest.mark.parametrize("url", ["hf://datasets/a/b.parquet", "odd://a.csv"])
def test_urls_that_arrow_does_not_read(url: str) -> None:
    assert "cannot be read through Arrow" in refused(lambda: pb.stats(url))


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder, while the tests are not run by root, who may read all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place in (folder, folder / "in"):
            place.mkdir(exist_ok=True)
            place.chmod(0o755)
        (folder / "in" / "t.csv").write_bytes(hostile.CSV_GOOD["plain"][0])
        pb.stats(folder)  # Python's own modules may be root's: all that reading needs is loaded
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(user)
            (folder / "in").chmod(0o755)


def as_owner(call: Callable[[], None]) -> None:
    user = os.geteuid()
    os.seteuid(os.getuid())
    call()
    os.seteuid(user)


def test_what_may_not_be_read(nobody: Path) -> None:
    as_owner(lambda: (nobody / "in" / "t.csv").chmod(0))
    assert "t.csv': Permission denied" in refused(lambda: pb.stats(nobody / "in" / "t.csv"))
    as_owner(lambda: (nobody / "in").chmod(0))
    assert "in': Permission denied" in refused(lambda: pb.stats(nobody))
    assert "in/t.csv': Permission denied" in refused(lambda: pb.stats(nobody / "in" / "t.csv"))


# The same rows twice


@pytest.fixture
def month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "month"
    folder.mkdir()
    for name in ("p1", "p2"):
        (folder / f"{name}.csv").write_bytes(hostile.CSV_GOOD["plain"][0])
    return folder


def test_the_same_file_twice(month: Path) -> None:
    (month / "latest.csv").symlink_to("p1.csv")
    os.link(month / "p2.csv", month / "hard.csv")
    one = str(month / "p1.csv")
    for other in (one, "month/p1.csv", f"{month}/./p1.csv", f"{month}/latest.csv", f"file://{one}"):
        assert "rows would count twice" in refused(lambda o=other: pb.stats([one, o], group="site"))
    assert "latest.csv" in refused(lambda: pb.stats(f"{month}/[lp]*.csv", group="site"))
    assert "hard.csv" in refused(lambda: pb.stats(f"{month}/[hp]*.csv", group="site"))
    ran = CliRunner().invoke(app, ["stats", one, str(month / "latest.csv"), "-o", "t.stats"])
    assert ran.exit_code == 2
    assert "are the same file" in ran.stderr


def test_links_in_a_folder_are_not_followed(month: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_bytes(hostile.CSV_GOOD["plain"][0])
    (month / "latest.csv").symlink_to("p1.csv")
    (month / "out.csv").symlink_to("../out.csv")
    (month / "back").symlink_to(".")
    (month / "note.txt").symlink_to("p1.csv")
    with pytest.warns(pb.DataWarning, match="has 3 links, such as 'back', which are not") as told:
        assert pb.stats(month, group="site").n_rows == 8
    assert told[0].message.finding.kind is pb.FindingKind.LINKS  # type: ignore[union-attr]
    ran = CliRunner().invoke(
        app, ["stats", "month", "-g", "site", "-o", "t.stats", "--allow-small"]
    )
    assert ran.exit_code == 0, ran.output
    assert ran.stderr.count("warning: the folder 'month' has 3 links") == 1
    (tmp_path / "linked").symlink_to("month")
    with pytest.warns(pb.DataWarning):
        assert pb.stats(tmp_path / "linked", group="site").n_rows == 8
    for name in ("p1.csv", "p2.csv"):
        (month / name).unlink()
    assert "3 links" in refused(lambda: pb.stats(month, group="site"))


# Names of data sets


LABELS = [
    "1",
    "1.0",
    "1E2",
    "100",
    "007",
    " a ",
    "true",
    "t",
    "2020-01-01",
    "2020-1-1",
    "-0",
    "1,5",
]


def csv_of(labels: list[str], path: Path) -> Path:
    rows = [f'"{label}",{k % 7},{k % 5}\n' for k, label in enumerate(labels * 12)]
    path.write_text("".join(["site,x,y\n", *rows]))
    return path


def test_names_of_data_sets_in_csv_files_are_as_written(tmp_path: Path) -> None:
    path = csv_of(LABELS, tmp_path / "t.csv")
    assert pb.stats(path, group="site").levels == tuple(LABELS)
    alone = {label: pb.stats(csv_of([label], path), group="site").levels for label in LABELS}
    assert alone == {label: (label,) for label in LABELS}


ALIKE = [
    (["1"], ["1.0"]), ([1], ["1"]), ([1], [1.0]), ([1.0], ["1"]), (["1E2"], ["100"]),
    (["007"], ["7"]), ([True], ["true"]), ([True], [1]), (["2020-01-01"], ["2020-1-1"]),
    ([datetime.date(2020, 1, 1)], ["2020-01-01"]), (["a"], [" a"]), (["é"], ["e\u0301"]),
    (["a", 1], ["b", "1"]),
]  # fmt: skip
APART = [
    (["a"], ["A"]), (["1"], ["-1"]), ([1], [10]), (["0"], ["00a"]), (["true"], ["t"]),
    (["7", "007"], ["7"]), (["7"], ["007", "7"]), (["1" * 40], ["1" * 39 + "2"]), ([None], ["a"]),
]  # fmt: skip


def frame(labels: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {"site": pd.Series(labels, dtype=object), "x": np.arange(len(labels)) + 1.0}
    )


@pytest.mark.parametrize(("left", "right"), ALIKE)
def test_names_that_differ_only_by_type_or_spelling(left: list[Any], right: list[Any]) -> None:
    frames = {"one": frame(left), "two": frame(right)}
    for call in (
        lambda: pb.stats(frames, group="site"),
        lambda: pb.stats(frames["one"], group="site") + pb.stats(frames["two"], group="site"),
    ):
        said = refused(call)
        assert f"{left[-1]!r}" in said
        assert f"{right[-1]!r}" in said
        assert "differ only by type or spelling" in said


@pytest.mark.parametrize(("left", "right"), APART)
def test_names_that_differ(left: list[Any], right: list[Any]) -> None:
    frames = {"one": frame(left), "two": frame(right)}
    expected = {label for label in left + right if label is not None}
    assert set(pb.stats(frames, group="site", missing="drop").levels) == expected


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.dates())
def test_a_label_is_spelled_as_its_text(label: Any) -> None:
    assert spelling(label) == spelling(str(label))
    assert spelling(label) == spelling(f" {label} ")


def test_names_of_files_and_of_levels() -> None:
    assert parted_table("a/trial.duckdb::visits") == ("a/trial.duckdb", "visits")
    assert parted_table("a::b.csv") == ("a::b.csv", None)
    assert folders("s3://bucket/a%20b/trial.parquet") == ["", "a b", "trial.parquet"]
    named = ["sites/NY.csv.gz", "trial.duckdb::visits", "-"]
    assert list(map(stem, named)) == ["NY", "visits", "standard input"]
    day = datetime.datetime(2020, 1, 31)
    assert list(map(written, [1.0, day, True])) == ["1", "2020-01-31", "True"]
    assert spelling(1) == spelling("1.0") == spelling("01")
    assert spelling("1E2") == spelling(100.0)
    assert spelling("2020-1-1") == spelling(datetime.date(2020, 1, 1))
    assert spelling("a") != spelling("A")
    assert joined_levels(["9", "30"], ["10"]) == ("9", "10", "30")
    assert joined_levels(["low", "high"], ["low", "mid"]) == ("low", "mid", "high")


@given(st.integers(), st.integers())
def test_numbers_that_differ_are_spelled_differently(a: int, b: int) -> None:
    assert (spelling(a) == spelling(f"{b}.0")) == (a == b)


def test_files_in_which_types_differ(tmp_path: Path) -> None:
    csv_of(["1", "2"], tmp_path / "a.csv")
    table = pd.read_csv(tmp_path / "a.csv")
    table.to_parquet(tmp_path / "b.parquet")
    assert pb.stats(tmp_path / "b.parquet", group="site").levels == (1, 2)
    both = [tmp_path / "a.csv", tmp_path / "b.parquet"]
    said = refused(lambda: pb.stats(both, group="site"))
    assert "'1' of a.csv and 1 of b.parquet" in said
    kept = tmp_path / "kept"
    assert "'1'" in refused(lambda: pb.stats(both, group="site", checkpoint=kept))
    for path in both:
        pb.stats(path, group="site").save(path.with_suffix(".stats"))
    saved = [str(path.with_suffix(".stats")) for path in both]
    ran = CliRunner().invoke(app, ["stats", "add", *saved, "-o", str(tmp_path / "c.stats")])
    assert ran.exit_code == 2
    assert "differ only by type or spelling (str and int)" in ran.stderr


@pytest.mark.parametrize("kind", ["csv", "parquet", "timestamps"])
def test_days_work_to_the_end(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    days = [datetime.date(2020, 1, day) for day in (1, 2)]
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"day": days * 20, "x": rng.normal(size=40), "y": rng.normal(size=40)})
    if kind == "csv":
        rows.to_csv("t.csv", index=False)
    else:
        table = rows if kind == "parquet" else rows.astype({"day": "datetime64[ns]"})
        pq.write_table(pa.Table.from_pandas(table), "t.parquet")
    path = "t.csv" if kind == "csv" else "t.parquet"
    for command in (
        ["stats", path, "-g", "day", "-o", "t.stats"],
        ["learn", path, "-g", "day", "-o", "net", "--require", "x:y"],
        ["learn", "t.stats", "-o", "again", "--require", "x:y"],
        ["predict", "net/network.json", path, "--target", "y", "-o", "y.csv"],
    ):
        ran = CliRunner().invoke(app, command)
        assert ran.exit_code == 0, ran.output
    net = pb.load("net/network.json")
    assert net.levels == pb.GroupStats.load("t.stats").levels == ("2020-01-01", "2020-01-02")
    expected = net.predict(path, "y")
    np.testing.assert_array_equal(net.predict(rows, "y"), expected)
    stamps = rows.astype({"day": "datetime64[ns]"})
    np.testing.assert_array_equal(net.predict(stamps, "y"), expected)


def test_predictions_tell_of_another_spelling(tmp_path: Path) -> None:
    path = csv_of(["1", "2"], tmp_path / "t.csv")
    arc = pb.Constraints(required=[("x", "y")])
    net = pb.learn(path, group="site", constraints=arc)
    numbers = pd.read_csv(path)
    np.testing.assert_array_equal(net.predict(numbers, "y"), net.predict(path, "y"))
    by_numbers = pb.learn(numbers, group="site", constraints=arc)
    np.testing.assert_array_equal(by_numbers.predict(path, "y"), net.predict(path, "y"))
    said = refused(lambda: net.predict(csv_of(["1", "02"], tmp_path / "u.csv"), "y"))
    assert "'2' of the network and '02'" in said
    assert "'1' of the network and True" in refused(lambda: net.predict(frame([True]), "y"))
    for name in (1, "1.0", "01"):
        assert "spelling" in refused(lambda n=name: net.adapt(name=n))


def test_a_comparison_leaves_out_data_sets_that_are_spelled_alike(tmp_path: Path) -> None:
    path = csv_of(["7", "007", "x"], tmp_path / "t.csv")
    found = pb.compare(path, group="site", folds=2, poolings=["partial"])
    assert found.left_out == ("7", "007", "x")


def test_a_name_in_an_arrow_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.feather"
    table = pa.table({"site": ["a", "b"] * 20, "length": np.arange(40.0)})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    path.write_bytes(path.read_bytes().replace(b"length", b"\xfbength"))
    with pytest.raises(pb.DataError, match=r"rows\.feather' cannot be read as an Arrow file"):
        pb.stats(path, group="site")


def test_codes_beyond_the_dictionary_of_a_parquet_file() -> None:
    """Found by `make fuzz` in a file of the trial."""
    path = Path(__file__).parent / "data" / "codes_beyond_dictionary.parquet"
    with pytest.raises(pb.DataError, match="cannot be read as a Parquet file: it is damaged"):
        pb.table(path, group="clinic")
