"""Tables and files: all kinds give the same statistics, in one pass."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from poolbn.moments.cellstats import CellStats
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import stats
from poolbn.tables import data


def table(rows: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "x": rng.standard_normal(rows),
            "site": rng.choice(["Aarhus", "Bern", "Cork"], rows),
            "count": rng.integers(0, 9, rows),
            "yes": rng.random(rows) < 0.3,
        }
    )


FRAME = table()
EXPECTED = stats(FRAME, group="site")


def same(a: GroupStats | CellStats, b: GroupStats | CellStats) -> None:
    """Equal but for rounding and the order of data sets."""
    assert type(a) is type(b)
    if isinstance(a, CellStats) and isinstance(b, CellStats):
        assert a.names == b.names
        assert a.categories == b.categories
        a, b = a.numbers, b.numbers
    assert a.names == b.names
    assert set(a.levels) == set(b.levels)
    at = [b.levels.index(level) for level in a.levels]
    assert_array_equal(a.n, b.n[at])
    assert_array_equal(a.dropped, b.dropped[at])
    assert_allclose(a.mean, b.mean[at], rtol=1e-12, atol=1e-12)
    assert_allclose(a.scatter, b.scatter[at], rtol=1e-10, atol=1e-10)


def csv(folder: Path, name: str = "t.csv", **options: Any) -> Path:
    FRAME.to_csv(folder / name, index=False, **options)
    return folder / name


def parquet(folder: Path, **options: Any) -> Path:
    pq.write_table(pa.Table.from_pandas(FRAME), folder / "t.parquet", **options)
    return folder / "t.parquet"


def arrow() -> pa.Table:
    return pa.Table.from_pandas(FRAME)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda f: FRAME,
    "pandas, nullable": lambda f: FRAME.convert_dtypes(),
    "pandas, arrow": lambda f: FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, categorical": lambda f: FRAME.astype({"site": "category"}),
    "pandas, object": lambda f: FRAME.astype(object),
    "pandas, odd index": lambda f: FRAME.set_index(np.zeros(len(FRAME))),
    "polars": lambda f: pl.from_pandas(FRAME),
    "polars, lazy": lambda f: pl.from_pandas(FRAME).lazy(),
    "polars, categorical": lambda f: pl.from_pandas(FRAME).cast({"site": pl.Categorical}),
    "arrow": lambda f: arrow(),
    "arrow, chunks": lambda f: pa.concat_tables([arrow()[:3], arrow()[3:3], arrow()[3:]]),
    "arrow, dictionary": lambda f: arrow().set_column(
        1, "site", arrow()["site"].dictionary_encode()
    ),
    "arrow, batch": lambda f: arrow().to_batches()[0],
    "arrow, reader": lambda f: arrow().to_reader(max_chunksize=7),
    "dict": lambda f: {"one": FRAME[:100], "two": pl.from_pandas(FRAME[100:])},
    "csv": csv,
    "csv, path as text": lambda f: str(csv(f)),
    "csv, gz": lambda f: csv(f, "t.csv.gz"),
    "csv, semicolon": lambda f: csv(f, sep=";"),
    "csv, tab": lambda f: csv(f, sep="\t"),
    "csv, byte order mark": lambda f: csv(f, encoding="utf-8-sig"),
    "csv, upper case ending": lambda f: csv(f, "T.CSV"),
    "csv, odd name": lambda f: csv(f, "it's [1].csv"),
    "parquet": parquet,
    "parquet, small row groups": lambda f: parquet(f, row_group_size=33),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_all_kinds_give_the_same(kind: str, tmp_path: Path) -> None:
    same(EXPECTED, stats(SOURCES[kind](tmp_path), group="site"))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("how", ["glob", "list"])
def test_each_file_is_a_data_set(ending: str, how: str, tmp_path: Path) -> None:
    for site, part in FRAME.groupby("site"):
        rows = part.drop(columns="site")
        if ending == ".parquet":
            rows.to_parquet(tmp_path / f"{site}{ending}")
        else:
            rows.to_csv(tmp_path / f"{site}{ending}", index=False)
    paths = sorted(tmp_path.iterdir())
    found = stats(tmp_path / f"*{ending}" if how == "glob" else paths)
    assert found.levels == ("Aarhus", "Bern", "Cork")
    same(EXPECTED, found)


def test_each_frame_of_a_dict_is_a_data_set() -> None:
    parts = {site: part.drop(columns="site") for site, part in FRAME.groupby("site")}
    same(EXPECTED, stats(parts))


def test_files_with_a_group_share_data_sets(tmp_path: Path) -> None:
    FRAME[:200].to_csv(tmp_path / "one.csv", index=False)
    FRAME[200:][["yes", "site", "x", "count"]].to_parquet(tmp_path / "two.parquet")
    same(EXPECTED, stats([tmp_path / "one.csv", tmp_path / "two.parquet"], group="site"))


def test_one_file_alone_is_one_data_set(tmp_path: Path) -> None:
    FRAME[["x"]].to_csv(tmp_path / "siteA.csv.gz", index=False)
    assert stats(tmp_path / "siteA.csv.gz").levels == ("siteA",)


def test_columns_choose_and_order() -> None:
    found = stats(FRAME.assign(who="someone"), group="site", columns=["count", "x"])
    assert found.names == ("count", "x")
    same(stats(EXPECTED, columns=["count", "x"]), found)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2, 4], dtype=np.float16),
        np.array([1, 2, 4], dtype=np.float32),
        np.array([1, 2, 4], dtype=np.uint8),
        [Decimal("1.0"), Decimal("2.00"), Decimal(4)],
        pa.array([Decimal("1.0"), Decimal("2.0"), Decimal("4.0")]),
        pa.array([1, 2, 4], pa.float16()),
    ],
)
def test_all_numbers_become_float64(values: Any) -> None:
    column = {"x": values, "g": ["a"] * 3}
    frame = pa.table(column) if isinstance(values, pa.Array) else pd.DataFrame(column)
    found = stats(frame, group="g")
    assert_allclose(found.mean, [[7 / 3]])
    assert_allclose(found.scatter, [[[14 / 3]]])


DAY = datetime.date(2024, 2, 29)
LEVELS = [["b", "a"], [2, 1], [True, False], [0.5, 0.25], [DAY, datetime.date(2020, 1, 1)]]


@pytest.mark.parametrize("levels", LEVELS, ids=str)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_data_sets_have_names_of_any_type(levels: list[Any], make: Callable[..., Any]) -> None:
    a, b = levels
    found = stats(make({"g": [a, b, a], "x": [1.0, 2.0, 3.0]}), group="g")
    assert found.levels == (a, b)
    assert [type(level) for level in found.levels] == [type(a), type(b)]
    assert found.n.tolist() == [2, 1]


def test_names_of_data_sets_in_pandas_may_be_tuples_and_intervals() -> None:
    pairs = pd.Series([("a", 1), ("b", 2), ("a", 1)])
    assert stats(pd.DataFrame({"g": pairs, "x": [1, 2, 3]}), group="g").levels == (
        ("a", 1),
        ("b", 2),
    )
    bands = pd.cut(pd.Series([1, 9, 2]), [0, 5, 10, 15])
    assert [
        str(v) for v in stats(pd.DataFrame({"g": bands, "x": [1, 2, 3]}), group="g").levels
    ] == [
        "(0, 5]",
        "(5, 10]",
    ]


@pytest.mark.parametrize("kind", ["pandas", "polars", "csv", "parquet"])
def test_dropping_counts_the_rows_of_each_data_set(kind: str, tmp_path: Path) -> None:
    frame = FRAME.astype({"count": "Int64"})
    frame.loc[[0, 5, 9], "x"] = np.nan
    frame.loc[[9, 11], "count"] = pd.NA
    frame.loc[20, "site"] = None
    complete = frame.dropna()
    source: Any = frame
    if kind == "polars":
        source = pl.from_pandas(frame)
    elif kind == "csv":
        source = tmp_path / "t.csv"
        frame.to_csv(source, index=False)
    elif kind == "parquet":
        source = tmp_path / "t.parquet"
        frame.to_parquet(source)
    found = stats(source, group="site", missing="drop")
    lost = frame.loc[[0, 5, 9, 11], "site"].value_counts()
    assert found.dropped.tolist() == [lost.get(level, 0) for level in found.levels]
    expected = stats(complete, group="site")
    assert_array_equal(found.n, expected.n[[expected.levels.index(v) for v in found.levels]])
    only_x = stats(source, group="site", columns=["x"], missing="drop")
    assert only_x.dropped.sum() == 3


def test_whole_numbers_in_the_sample_may_be_followed_by_others(tmp_path: Path) -> None:
    x = [1.0] * 30_000 + [2.5]
    lines = "".join(f"a,{value:g}\n" for value in x)
    (tmp_path / "t.csv").write_text("site,x\n" + lines)
    found = stats(tmp_path / "t.csv", group="site")
    assert_allclose(found.mean[0, 0], np.mean(x), rtol=1e-15)


def test_columns_that_differ_in_case_only(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("A,a,g\n1,10,u\n3,30,u\n")
    found = stats(tmp_path / "t.csv", group="g")
    assert found.names == ("A", "a")
    assert_allclose(found.mean, [[2.0, 20.0]])


def test_unused_categories_are_no_data_sets() -> None:
    g = pd.Categorical(["b", "a"], categories=["z", "a", "b"])
    for source in (pd.DataFrame({"g": g, "x": [1.0, 2.0]}),):
        assert stats(source, group="g").levels == ("b", "a")
        assert stats(pa.Table.from_pandas(source), group="g").levels == ("b", "a")


# Streams


def test_a_reader_is_consumed_once_and_piece_by_piece() -> None:
    schema = arrow().schema
    alive: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for i, batch in enumerate(arrow().to_batches(max_chunksize=50)):
            alive.append(i)
            yield batch

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    rows = data.read(reader, group="site", columns=None, missing="error", batch_rows=50)
    assert alive == []
    next(rows.batches)
    assert len(alive) <= 2
    assert sum(len(batch.codes) for batch in rows.batches) == 450
    assert alive == list(range(10))


def test_batches_of_a_file_are_bounded(tmp_path: Path) -> None:
    for path in (csv(tmp_path), parquet(tmp_path)):
        rows = data.read(path, group="site", columns=None, missing="error", batch_rows=64)
        sizes = [len(batch.codes) for batch in rows.batches]
        assert sum(sizes) == 500
        assert max(sizes) <= 64


def test_many_small_batches_are_joined() -> None:
    reader = arrow().to_reader(max_chunksize=10)
    rows = data.read(reader, group="site", columns=None, missing="error")
    sizes = [len(batch.codes) for batch in rows.batches]
    assert sum(sizes) == 500
    assert len(sizes) < 10


def test_reading_ahead_ends_its_thread_when_abandoned(tmp_path: Path) -> None:
    before = threading.active_count()
    rows = data.read(parquet(tmp_path), group="site", columns=None, missing="error", batch_rows=10)
    next(rows.batches)
    assert threading.active_count() == before + 1
    rows.batches.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_import_is_light() -> None:
    code = (
        "import sys, poolbn.moments.groupstats, poolbn.datasets;"
        "heavy = {'pandas', 'pyarrow', 'duckdb', 'narwhals', 'scipy', 'numba', 'polars'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
