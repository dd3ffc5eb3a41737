"""Rows with missing values: the same cells whatever holds the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import poolbn as pb
from poolbn.assess.residuals import cell_residuals, node_residuals
from poolbn.tables.cells import read_cells, read_evidence

NAMES, LEVELS = ("a", "b", "c"), ("x", "y")
NAN = float("nan")
FRAME = pd.DataFrame(
    {
        "note": ["p", "q", None, "r"],
        "c": [1, 2, 3, 4],
        "F": ["y", None, "x", "y"],
        "a": [0.5, NAN, -2.0, NAN],
    },
    index=[10, 20, 30, 40],
)
VALUES = [[0.5, NAN, 1], [NAN, NAN, 2], [-2, NAN, 3], [NAN, NAN, 4]]
CODES = [1, -1, 0, 1]


def csv(folder: Path) -> Path:
    FRAME.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def parquet(folder: Path) -> Path:
    FRAME.to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def two_files(folder: Path) -> list[Path]:
    FRAME.iloc[:1].to_parquet(folder / "1.parquet")
    FRAME.iloc[1:].to_csv(folder / "2.csv", index=False)
    return [folder / "1.parquet", folder / "2.csv"]


SOURCES = {
    "pandas": lambda f: FRAME,
    "nullable": lambda f: FRAME.convert_dtypes(),
    "categories": lambda f: FRAME.astype({"F": "category"}),
    "polars": lambda f: pl.from_pandas(FRAME),
    "lazy": lambda f: pl.from_pandas(FRAME).lazy(),
    "arrow": lambda f: pa.Table.from_pandas(FRAME, preserve_index=False),
    "batches": lambda f: pa.Table.from_pandas(FRAME, preserve_index=False).to_reader(2),
    "csv": csv,
    "parquet": parquet,
    "two files": two_files,
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_cells_are_the_same_whatever_holds_them(source: Any, tmp_path: Path) -> None:
    table = source(tmp_path)
    cells = read_cells(table, NAMES, "F", LEVELS)
    np.testing.assert_array_equal(cells.values, np.array(VALUES))
    assert cells.codes.tolist() == CODES
    assert cells.columns == ("F", "a", "c")
    expected = FRAME.index if isinstance(table, pd.DataFrame) else pd.RangeIndex(4)
    pd.testing.assert_index_equal(cells.index, expected)


def test_without_a_group_column_the_data_set_is_unknown() -> None:
    for frame, group in ((FRAME.drop(columns="F"), "F"), (FRAME, None)):
        cells = read_cells(frame, NAMES, group, LEVELS)
        assert cells.codes.tolist() == [-1] * 4


def test_the_frames_of_a_dict_are_data_sets() -> None:
    parts = {"y": FRAME[["a"]].iloc[:1], "x": FRAME[["c"]].iloc[1:3]}
    cells = read_cells(parts, NAMES, "F", LEVELS)
    np.testing.assert_array_equal(cells.values, [[0.5, NAN, NAN], [NAN, NAN, 2], [NAN, NAN, 3]])
    assert cells.codes.tolist() == [1, 0, 0]


@pytest.mark.parametrize("levels", [(1, 2), ("1", "2"), (1.0, 2.0)])
@pytest.mark.parametrize("labels", [[2, 1], ["2", "1"], [2.0, 1.0], [2.0, None], ["2", None]])
def test_numbers_and_their_texts_name_the_same_data_set(levels: Any, labels: Any) -> None:
    cells = read_cells(pd.DataFrame({"a": 0.0, "F": labels}), NAMES, "F", levels)
    assert cells.codes.tolist() == [1, -1 if labels[1] is None else 0]


@pytest.mark.parametrize("levels", [(3, 12), ("3", "12")])
def test_data_sets_that_are_numbers_in_a_csv_file(levels: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("F,a\n12,1\n3,2\n,3\n")
    assert read_cells(tmp_path / "t.csv", NAMES, "F", levels).codes.tolist() == [1, 0, -1]


def test_no_rows() -> None:
    cells = read_cells(FRAME.iloc[:0], NAMES, "F", LEVELS)
    assert cells.values.shape == (0, 3)
    assert cells.codes.shape == (0,)


def test_evidence() -> None:
    row, code = read_evidence({"c": np.int64(3), "F": "y"}, NAMES, "F", LEVELS)
    np.testing.assert_array_equal(row, [NAN, NAN, 3.0])
    assert code == 1
    row, code = read_evidence({}, NAMES, "F", LEVELS)
    assert np.isnan(row).all()
    assert code == -1


def test_cells_that_were_read_once_have_the_residuals_of_every_node() -> None:
    trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]]
    net = pb.learn(trial.dropna(), group="clinic", start=[("age", "bmi")], pooling="complete")
    cells = read_cells(trial, net.dag.nodes, net.group, net.levels)
    for node in net.dag.nodes:
        found, expected = cell_residuals(net, cells, node), node_residuals(net, trial, node)
        assert found.left_out == expected.left_out
        for name in ("codes", "fitted", "residual", "standard"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
