"""Statistics: laws, agreement with numpy and pandas, saving."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from numpy.testing import assert_allclose, assert_array_equal

from poolbn import datasets
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import accumulate, stats
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.moments.sums import Sums
from poolbn.tables import data, sources

seeds = st.integers(0, 2**32 - 1)


def table(seed: int, rows: int = 60, columns: int = 3, sets: int = 4) -> pd.DataFrame:
    """Random rows in which each data set has its own mean, scale and size."""
    rng = np.random.default_rng(seed)
    code = np.minimum(rng.geometric(0.4, rows) - 1, sets - 1)
    where, scale = rng.normal(0, 5, (sets, columns)), rng.lognormal(0, 1, (sets, columns))
    values = where[code] + scale[code] * rng.standard_normal((rows, columns))
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(columns)])
    return frame.assign(site=np.array([f"s{j}" for j in range(sets)])[code])


def of(frame: pd.DataFrame, batch_rows: int | None = None) -> GroupStats:
    return accumulate(
        data.read(frame, group="site", columns=None, missing="error", batch_rows=batch_rows)
    )


def same(a: GroupStats, b: GroupStats, rtol: float = 1e-9) -> None:
    """Equal but for rounding, and for the order of data sets and columns."""
    assert set(a.levels) == set(b.levels)
    b = b.select(a.names)
    at = [b.levels.index(level) for level in a.levels]
    assert_array_equal(a.n, b.n[at])
    assert_array_equal(a.dropped, b.dropped[at])
    size = np.abs(a.mean).max() + np.sqrt(np.abs(a.scatter).max())
    assert_allclose(a.mean, b.mean[at], rtol=rtol, atol=1e-14 * size)
    assert_allclose(a.scatter, b.scatter[at], rtol=rtol, atol=rtol * np.abs(a.scatter).max())


# Laws


@given(seeds, st.integers(1, 59))
def test_parts_add_up_to_the_whole(seed: int, cut: int) -> None:
    frame = table(seed)
    same(of(frame), of(frame[:cut]) + of(frame[cut:]))


@given(seeds, st.permutations(range(5)))
def test_order_of_merging_does_not_matter(seed: int, order: list[int]) -> None:
    frame = table(seed)
    parts = [of(frame[i::5]) for i in range(5)]
    same(of(frame), sum((parts[i] for i in order[1:]), start=parts[order[0]]))
    left, right = parts[0] + (parts[1] + parts[2]), (parts[0] + parts[1]) + parts[2]
    same(left, right)


@given(seeds)
def test_order_of_rows_and_columns_does_not_matter(seed: int) -> None:
    frame = table(seed)
    rng = np.random.default_rng(seed)
    mixed = frame.sample(frac=1, random_state=seed)[rng.permutation(frame.columns)]
    same(of(frame), of(mixed))


@given(seeds)
def test_other_columns_do_not_change_a_bit(seed: int) -> None:
    """Neither where a column stands nor what stands beside it."""
    rng = np.random.default_rng(seed)
    frame = table(seed, columns=7)
    mixed = frame[rng.permutation(frame.columns)]
    some = ["site", *(f"x{i}" for i in rng.permutation(7)[:3])]
    for batch_rows in (None, 9):
        whole = of(frame, batch_rows)
        for other in (of(mixed, batch_rows), of(frame[some], batch_rows)):
            assert bits(whole.select(other.names)) == bits(other)
            assert bits(standardise(whole.select(other.names))) == bits(standardise(other))


def bits(found: GroupStats | StandardisedStats) -> list[bytes]:
    names = ("n", "mean", "scatter", "total", "center", "scale")
    return [getattr(found, name).tobytes() for name in names if hasattr(found, name)]


SCRIPT = """
import sys, hashlib
import numpy as np, pandas as pd
from poolbn import stats
from poolbn.moments.standardised import standardise
frame = pd.DataFrame(np.load(sys.argv[1]), columns=list("abcdefg")).assign(site=lambda d: d["a"])
parts = [stats(frame[:301], group="site"), stats(frame[301:], group="site")]
for found in (*parts, parts[0] + parts[1], standardise(parts[0] + parts[1])):
    for name in ("n", "mean", "scatter", "total", "center", "scale"):
        if hasattr(found, name):
            print(name, hashlib.sha256(getattr(found, name).tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_any_cpu_gives_the_same_bits(tmp_path: Path) -> None:
    """Here, and where neither numba nor numpy uses more than every x86-64 CPU has."""
    rng = np.random.default_rng(7)
    values = 1e3 + rng.standard_normal((1234, 7))
    values[:, 0] = rng.integers(0, 5, 1234)
    np.save(tmp_path / "table.npy", values)
    numpy_has = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    plain = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "NPY_DISABLE_CPU_FEATURES": " ".join(numpy_has),
        "OPENBLAS_CORETYPE": "PRESCOTT",
    }
    found = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / "table.npy")],
            env=os.environ | more,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for more in ({}, plain)
    ]
    assert found[0] == found[1]
    assert len(found[0].split()) == 2 * (3 * 3 + 6)


@given(seeds, st.integers(1, 70))
def test_batch_size_does_not_matter(seed: int, batch_rows: int) -> None:
    frame = table(seed)
    same(of(frame), of(frame, batch_rows))


@given(seeds, st.sampled_from([-1e8, 1e8]), st.sampled_from([None, 7]))
def test_an_offset_moves_only_the_mean(seed: int, offset: float, batch_rows: int | None) -> None:
    frame = table(seed)
    names = ["x0", "x1", "x2"]
    shifted = frame.assign(**{c: frame[c] + offset for c in names})
    rounded = shifted.assign(**{c: shifted[c] - offset for c in names})  # exact
    a, b = of(rounded), of(shifted, batch_rows)
    assert_allclose(a.mean + offset, b.mean, rtol=1e-15)
    assert_allclose(a.scatter, b.scatter, rtol=1e-6, atol=1e-9 * np.abs(a.scatter).max())


@given(seeds, st.sampled_from([None, 1, 13]))
def test_scatter_is_symmetric_and_not_negative(seed: int, batch_rows: int | None) -> None:
    found = of(table(seed, columns=5), batch_rows)
    assert_array_equal(found.scatter, found.scatter.transpose(0, 2, 1))
    assert (np.einsum("jii->ji", found.scatter) >= 0).all()


@given(st.floats(-1e12, 1e12), st.integers(1, 400), st.integers(1, 90))
def test_a_constant_has_no_scatter_at_all(value: float, rows: int, batch_rows: int) -> None:
    frame = pd.DataFrame({"x": np.full(rows, value), "y": np.arange(rows) ** 2.0})
    frame["site"] = np.arange(rows) % 3
    found = of(frame, batch_rows)
    assert_array_equal(found.scatter[:, 0], 0.0)
    assert_array_equal(found.mean[:, 0], value)
    assert_array_equal((found + found).scatter[:, 0], 0.0)


@settings(max_examples=30)
@given(seed=seeds)
def test_what_is_saved_loads_equal(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("saved") / "a.stats"
    found = of(table(seed))
    found.save(path, allow_small=True)
    loaded = GroupStats.load(path)
    assert (loaded.names, loaded.levels) == (found.names, found.levels)
    for field in ("n", "mean", "scatter", "dropped"):
        assert_array_equal(getattr(loaded, field), getattr(found, field), strict=True)


# Agreement with others


@pytest.mark.parametrize("sets", [1, 3, 40, 700])
@pytest.mark.parametrize("batch_rows", [None, 997])
def test_agrees_with_numpy_and_pandas(sets: int, batch_rows: int | None) -> None:
    frame = table(5, rows=3000, columns=6, sets=1)
    frame["site"] = np.random.default_rng(1).integers(0, sets, len(frame))
    found = of(frame, batch_rows)
    by_site = frame.groupby("site")
    assert found.levels == tuple(frame["site"].unique().tolist())
    assert_array_equal(found.n, by_site.size()[list(found.levels)])
    assert_allclose(found.mean, by_site.mean().loc[list(found.levels)], rtol=1e-12)
    for j, level in enumerate(found.levels):
        rows = frame.loc[frame["site"] == level].drop(columns="site").to_numpy()
        if len(rows) > 1:
            expected = np.cov(rows, rowvar=False) * (len(rows) - 1)
            assert_allclose(found.scatter[j], expected, rtol=1e-10, atol=1e-10)


def add_up(
    codes: np.ndarray[Any, Any], values: np.ndarray[Any, Any], sets: int, batch_rows: int
) -> Sums:
    """The statistics of rows in batches, straight from the kernel."""
    sums = Sums.zeros(sets, values.shape[1])
    for start in range(0, len(codes), batch_rows):
        part = slice(start, start + batch_rows)
        sums.add_rows(codes[part], list(values[part].T))
    return sums


def exactly(
    codes: np.ndarray[Any, Any], values: np.ndarray[Any, Any], sets: int
) -> tuple[Any, Any]:
    """Means and scatter in extended precision, two passes."""
    mean = np.zeros((sets, values.shape[1]), dtype=np.longdouble)
    scatter = np.zeros((*mean.shape, values.shape[1]), dtype=np.longdouble)
    for j in set(codes.tolist()):
        rows = values[codes == j].astype(np.longdouble)
        mean[j] = rows.mean(axis=0)
        rows = rows - mean[j]
        scatter[j] = rows.T @ rows
    return mean, scatter


def close(sums: Sums, mean: Any, scatter: Any) -> None:
    """Scatter to 1e-12 of the two columns' own, means to a few units in the last place."""
    assert_allclose(sums.mean, mean.astype(float), rtol=1e-14, atol=1e-14 * np.abs(mean).max())
    scale = np.sqrt(np.einsum("jii->ji", scatter)).astype(float)
    wrong = np.abs(sums.scatter - scatter.astype(float))
    assert (wrong <= 1e-12 * scale[:, :, None] * scale[:, None, :]).all()
    assert_array_equal(sums.scatter, sums.scatter.transpose(0, 2, 1))


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 300), st.integers(1, 14), st.integers(1, 40), st.integers(1, 120))
def test_rows_of_any_shape_agree_with_two_passes(
    seed: int, rows: int, columns: int, sets: int, batch_rows: int
) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, sets, rows)
    values = rng.lognormal(0, 2, columns) * rng.standard_normal((rows, columns))
    found = add_up(codes, values, sets, batch_rows)
    assert_array_equal(found.n, np.bincount(codes, minlength=sets))
    close(found, *exactly(codes, values, sets))


@pytest.mark.parametrize(
    ("rows", "columns", "sets", "batch_rows"),
    [(5000, 3, 5000, 999), (20_000, 5, 2000, 7000), (700, 131, 3, 200), (90, 201, 60, 90)],
    ids=["one row each", "many data sets", "wide", "wide, fewer rows than columns"],
)
def test_extreme_shapes_agree_with_two_passes(
    rows: int, columns: int, sets: int, batch_rows: int
) -> None:
    rng = np.random.default_rng(8)
    codes = rng.permutation(np.arange(rows) % sets)
    values = rng.standard_normal((rows, columns)) + rng.normal(0, 5, columns)
    close(add_up(codes, values, sets, batch_rows), *exactly(codes, values, sets))


@pytest.mark.parametrize("batch_rows", [1, 10, 333, 1000])
@pytest.mark.parametrize("outlier", [1e6, -1e15])
def test_an_outlier_in_the_first_row_leaves_the_other_columns_alone(
    batch_rows: int, outlier: float
) -> None:
    values = np.random.default_rng(9).standard_normal((1000, 3))
    values[0, 0] = outlier
    codes = np.zeros(1000, dtype=np.int64)
    close(add_up(codes, values, 1, batch_rows), *exactly(codes, values, 1))


def test_one_row_far_away_before_very_many() -> None:
    """The mean so far is a bad centre then, as what it is away by counts once for each row."""
    values = np.random.default_rng(12).standard_normal((1_000_001, 1))
    values[0] = 1e8 / 3
    codes = np.zeros(len(values), dtype=np.int64)
    sums = Sums.zeros(1, 1)
    for part in (slice(1), slice(1, None)):
        sums.add_rows(codes[part], [values[part, 0]])
    close(sums, *exactly(codes, values, 1))


@pytest.mark.parametrize("batch_rows", [1, 7, 250, 10_000])
def test_constants_have_no_scatter_over_many_batches(batch_rows: int) -> None:
    """Each data set has its own; batches hold more and fewer rows of it than came before."""
    rng = np.random.default_rng(10)
    codes = np.minimum(rng.geometric(0.1, 3000) - 1, 29)
    values = rng.standard_normal((3000, 6))
    values[:, 1], values[:, 4] = 0.1, rng.normal(0, 1e7, 30)[codes]
    found = add_up(codes, values, 30, batch_rows)
    for i in (1, 4):
        assert_array_equal(found.scatter[:, i], 0.0)
        assert_array_equal(found.mean[codes, i], values[:, i])


@pytest.mark.parametrize("kind", ["strided", "reversed", "read-only", "not aligned"])
def test_columns_of_any_memory_layout(kind: str) -> None:
    values = np.random.default_rng(11).standard_normal((500, 2))
    column = values[:, 0]
    if kind == "reversed":
        column = column[::-1].copy()[::-1]
    elif kind == "read-only":
        column = np.frombuffer(column.tobytes())
    elif kind == "not aligned":
        column = np.frombuffer(b"x" + column.tobytes(), offset=1)
    codes = np.zeros(500, dtype=np.int64)
    sums = Sums.zeros(1, 1)
    sums.add_rows(codes, [column])
    close(sums, *exactly(codes, values[:, :1], 1))


def test_a_drift_between_batches_is_kept() -> None:
    """The centre of a batch comes from the rows before; here it is far off."""
    rng = np.random.default_rng(3)
    x = np.repeat([0.0, 1e6, -1e3, 7.0], 500) + rng.standard_normal(2000)
    frame = pd.DataFrame({"x": x, "y": rng.standard_normal(2000), "site": "a"})
    expected = np.cov(frame[["x", "y"]].to_numpy(), rowvar=False) * 1999
    assert_allclose(of(frame, 500).scatter[0], expected, rtol=1e-9)


def test_an_outlier_in_the_first_row_does_not_spoil_other_data_sets() -> None:
    x = np.concatenate([[1e15], np.random.default_rng(4).standard_normal(999)])
    frame = pd.DataFrame({"x": x, "site": ["a", *["b"] * 999]})
    expected = np.var(x[1:]) * 999
    assert_allclose(of(frame, 10).scatter[1, 0, 0], expected, rtol=1e-12)


def test_the_trial() -> None:
    found = stats(datasets.opt(kind="continuous"), group="clinic", missing="drop")
    frame = datasets.opt(kind="continuous")
    complete = frame.dropna()
    assert found.n_rows == 545
    assert len(found.names) == 16
    by_clinic = complete.groupby("clinic")
    assert_array_equal(found.n, by_clinic.size()[list(found.levels)])
    assert_array_equal(found.n + found.dropped, frame.groupby("clinic").size()[list(found.levels)])
    assert_allclose(found.mean, by_clinic.mean().loc[list(found.levels)], rtol=1e-12)


# Reading ahead


def parquet(folder: Path, rows: int) -> Path:
    table(0, rows).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_reading_stops_soon_after_an_error_in_the_sums(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    arrow_piece = sources.arrow_piece

    def count(*args: Any) -> Any:
        made.append(args)
        return arrow_piece(*args)

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(sources, "arrow_piece", count)
    monkeypatch.setattr(Sums, "add_rows", fail)
    before = threading.active_count()
    rows = data.read(
        parquet(tmp_path, 3000), group="site", columns=None, missing="error", batch_rows=10
    )
    with pytest.raises(error):
        accumulate(rows)
    assert len(made) <= 4
    assert threading.active_count() == before


def test_counting_what_is_missing_can_be_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With missing="error" all rows are read for the message; not in one go in a thread."""
    frame = table(0, 3000)
    frame.loc[5, "x0"] = np.nan
    frame.to_parquet(tmp_path / "t.parquet")
    made = []
    arrow_piece, surely_finite = sources.arrow_piece, data._surely_finite

    def count(*args: Any) -> Any:
        made.append(args)
        return arrow_piece(*args)

    def fail(column: Any) -> bool:
        if len(made) > 20:
            raise KeyboardInterrupt
        return surely_finite(column)

    monkeypatch.setattr(sources, "arrow_piece", count)
    monkeypatch.setattr(data, "_surely_finite", fail)
    rows = data.read(
        tmp_path / "t.parquet", group="site", columns=None, missing="error", batch_rows=10
    )
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        accumulate(rows)
    assert len(made) <= 25
    assert threading.active_count() == before


# The rest


def test_one_row_is_enough() -> None:
    found = of(table(0)[:1])
    assert found.n.tolist() == [1]
    assert_array_equal(found.scatter, 0.0)


def test_family_puts_the_child_last() -> None:
    found = of(table(1))
    family = found.family("x0", ["x2", "x1"])
    assert family.names == ("x2", "x1", "x0")
    assert_array_equal(family.mean, found.mean[:, [2, 1, 0]])
    assert_array_equal(family.scatter, found.select(["x2", "x1", "x0"]).scatter)
    assert found.family("x0", []).scatter.shape == (len(found.levels), 1, 1)


def test_adding_reorders_columns_and_appends_data_sets() -> None:
    a = of(pd.DataFrame({"site": ["p", "p"], "x": [1.0, 3.0], "y": [0.0, 1.0]}))
    b = of(pd.DataFrame({"site": ["q", "p"], "y": [5.0, 2.0], "x": [7.0, 5.0]}))
    both = a + b
    assert (both.names, both.levels) == (("x", "y"), ("p", "q"))
    assert both.n.tolist() == [3, 1]
    assert_allclose(both.mean, [[3.0, 1.0], [7.0, 5.0]])
    assert_allclose(both.scatter[0], [[8.0, 4.0], [4.0, 2.0]])
    same(sum([a, b]), both)  # type: ignore[arg-type]


def test_statistics_pass_through() -> None:
    found = of(table(2))
    assert stats(found) is found
    assert stats(found, columns=["x1"]).names == ("x1",)


def test_arrays_are_read_only() -> None:
    found = of(table(2))
    for array in (found.n, found.mean, found.scatter, found.dropped, found.select(["x0"]).mean):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("levels", [["a", "é"], [1, -(2**60)], [0.1, 2.0], [True, False]])
def test_names_of_data_sets_keep_their_type(levels: list[Any], tmp_path: Path) -> None:
    found = of(pd.DataFrame({"site": levels, "x": [1.0, 2.0]}))
    assert list(map(type, found.levels)) == list(map(type, levels))
    found.save(tmp_path / "s", allow_small=True)
    loaded = GroupStats.load(tmp_path / "s").levels
    assert loaded == tuple(levels)
    assert list(map(type, loaded)) == list(map(type, levels))


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    found = of(table(2))
    found.save(tmp_path / "s", allow_small=True)
    before = (tmp_path / "s").read_bytes()

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        (found + found).save(tmp_path / "s", allow_small=True)
    assert (tmp_path / "s").read_bytes() == before
    assert os.listdir(tmp_path) == ["s"]


def test_summary_names_rows_data_sets_and_columns() -> None:
    frame = pd.DataFrame({"site": np.arange(30) % 15, "<x>": np.arange(30.0)})
    found = of(frame)
    assert repr(found).startswith("GroupStats: 30 rows, 15 sites, 1 column\n")
    assert "... and 5 more" in repr(found)
    assert "&lt;x&gt;" in found._repr_html_()
    assert "and 5 more" in found._repr_html_()
