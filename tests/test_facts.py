"""Facts of columns: they add up exactly, agree with plain Python, and files keep what they may."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poolbn as pb
from poolbn.moments import facts as module
from poolbn.moments.facts import FULL, NOTHING, UNKNOWN, ColumnFacts, Distinct, joined

CODES = (-9.0, -99.0, -999.0, -9999.0)


@st.composite
def columns(draw: st.DrawFn) -> list[float]:
    """Decimals of one length, some codes among them, some cells of full precision."""
    digits = draw(st.integers(0, 6))
    most = draw(st.sampled_from([1, 8, 300, 10**6]))
    cells = st.integers(-most, most).map(lambda k: round(k / 10**digits, digits))
    odd = st.sampled_from([*CODES, 99.0, 1e12, 0.1 + 0.2])
    some = draw(st.lists(cells, min_size=1, max_size=120))
    some += draw(st.lists(odd, max_size=3)) + draw(st.lists(st.floats(0, 1), max_size=1))
    return draw(st.permutations(some))


def of(values: list[float]) -> ColumnFacts:
    return NOTHING.after(np.array(values))


def decimals(value: float) -> int:
    """Of a number that is written with up to six, else 7."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return min(max(0, -exponent), FULL)


def plain(values: list[float]) -> ColumnFacts:
    """The same in plain Python; 0.1 + 0.2 is 0.3 but for rounding."""

    def edge(cells: list[float]) -> module.Edge:
        low = min(cells)
        if low not in CODES:
            return module.Edge(low)
        others = [cell for cell in cells if cell != low]
        return module.Edge(low, cells.count(low), min(others, default=np.inf))

    digits = max(decimals(0.3 if v == 0.1 + 0.2 else v) for v in values)
    different = frozenset(values)
    all_different = digits == 0 and len(different) == len(values)
    extent = module.Extent(
        edge(values), edge([-v for v in values]), different if all_different else None
    )
    few = different if len(different) <= module.FEW else None
    return ColumnFacts(digits, few, Distinct.NONE, extent)


@given(columns())
def test_facts_are_those_of_plain_python(values: list[float]) -> None:
    assert of(values) == plain(values)


@given(columns(), st.data())
def test_facts_add_up_in_any_order(values: list[float], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    parts = [values[a:b] for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    whole = NOTHING
    for part in data.draw(st.permutations(parts)):
        whole = whole.joined(of(part)) if data.draw(st.booleans()) else whole.after(np.array(part))
    assert whole == of(values)


facts = st.one_of(
    columns().map(of), columns().map(lambda values: of(values).public()), st.just(UNKNOWN)
)


@given(facts, facts, facts)
def test_facts_from_files_add_up_too(a: ColumnFacts, b: ColumnFacts, c: ColumnFacts) -> None:
    assert a.joined(b) == b.joined(a)
    assert a.joined(b).joined(c) == a.joined(b.joined(c))
    assert NOTHING.joined(a) == a


def test_many_cells_and_those_that_differ_late() -> None:
    x = np.tile([0.0, 1.0], 20_000)
    assert NOTHING.after(x).values == {0, 1}
    x[-1] = 2.25
    assert NOTHING.after(x).resolution == 0.01
    assert NOTHING.after(x).values == {0, 1, 2.25}
    assert NOTHING.after(np.arange(60_000.0)).extent.numbers is None  # type: ignore[union-attr]
    assert NOTHING.after(np.array([1e300, -1e300])).resolution == 1


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_rows_in_batches_files_and_partitions(batch: int, tmp_path: Path) -> None:
    import dask.dataframe as dd

    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"id": np.arange(60), "money": rng.normal(size=60).round(2), "x": rng.normal(size=60)}
    ).assign(arm=np.arange(60) % 2, lab=np.where(np.arange(60) == 7, -999, rng.integers(5, 9)))
    table["site"] = rng.integers(0, 4, 60)
    whole = pb.stats(table, group="site").facts
    assert [each.resolution for each in whole] == [1, 0.01, 0, 1, 1]
    parts = [table[at : at + batch] for at in range(0, 60, batch)]
    added = sum(pb.stats(part, group="site") for part in parts)
    assert isinstance(added, pb.GroupStats)
    assert added.facts == whole
    assert joined(whole, whole)[3] == whole[3].joined(whole[3])
    if batch == 7:
        frame = dd.from_pandas(table, npartitions=5)
        assert pb.stats(frame, group="site").facts == whole
        for k, part in enumerate(parts):
            part.to_csv(tmp_path / f"{k}.csv", index=False)
        assert pb.stats(tmp_path, group="site").facts == whole
    assert pb.stats(table, group="site").select(["x", "id"]).facts == (whole[2], whole[0])


@given(st.integers(0, 2**32 - 1), st.integers(1, 59))
def test_cubes_are_those_of_scipy_and_add_up(seed: int, cut: int) -> None:
    from scipy.stats import moment

    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.lognormal(size=60) + 100, "y": rng.normal(size=60)})
    table["F"] = rng.integers(0, 3, 60)
    whole = pb.stats(table, group="F")
    for level, cubes in zip(whole.levels, whole.cubes, strict=True):
        rows = table.loc[table["F"] == level, ["x", "y"]]
        np.testing.assert_allclose(cubes, len(rows) * moment(rows, 3), rtol=1e-8, atol=1e-8)
    parts = pb.stats(table[:cut], group="F") + pb.stats(table[cut:], group="F")
    at = [parts.levels.index(level) for level in whole.levels]
    np.testing.assert_allclose(parts.cubes[at], whole.cubes, rtol=1e-8, atol=1e-8)
    batches = pb.stats(table[:cut], group="F") + pb.stats(table[cut:], group="F").select(["y", "x"])
    np.testing.assert_array_equal(batches.cubes, parts.cubes)
    unknown = replace(whole, facts=(), cubes=np.zeros(0))  # as in a file
    assert np.isnan((unknown + whole).cubes).all()


# Files


def stats() -> pb.GroupStats:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"id": np.arange(40), "money": rng.normal(size=40).round(2)})
    return pb.stats(table.assign(arm=table["id"] % 2, F=np.arange(40) // 20), group="F")


def test_a_file_keeps_what_is_no_row(tmp_path: Path) -> None:
    own = stats()
    own.save(tmp_path / "a.stats")
    again = pb.GroupStats.load(tmp_path / "a.stats")
    assert again.facts == tuple(each.public() for each in own.facts)
    _, header, payload = (tmp_path / "a.stats").read_bytes().split(b"\n", 2)
    size = json.loads(header)["sections"]["columns"]
    assert json.loads(payload[-size:]) == {
        "kind": ["continuous"] * 3,
        "resolution": [1, 0.01, 1],
        "distinct": ["many", "many", "two"],
    }
    again.save(tmp_path / "b.stats")
    assert (tmp_path / "b.stats").read_bytes() == (tmp_path / "a.stats").read_bytes()


def test_a_file_without_facts_loads(tmp_path: Path) -> None:
    replace(stats(), facts=()).save(tmp_path / "old.stats")
    assert b'"columns"' not in (tmp_path / "old.stats").read_bytes()
    old = pb.GroupStats.load(tmp_path / "old.stats")
    assert old.facts == (UNKNOWN,) * len(old.names)
    assert old.facts[0].resolution is None
    old.save(tmp_path / "new.stats")
    assert (tmp_path / "new.stats").read_bytes().startswith(b"poolbn-statistics 3 ")
    again = pb.GroupStats.load(tmp_path / "new.stats")
    assert again.facts == old.facts
    np.testing.assert_array_equal(again.scatter, old.scatter)


def test_a_checkpoint_says_the_same_twice(tmp_path: Path) -> None:
    pd.DataFrame({"x": np.arange(30), "F": np.arange(30) % 2}).to_csv(
        tmp_path / "a.csv", index=False
    )
    first, second = (
        pb.stats(tmp_path / "a.csv", group="F", checkpoint=tmp_path / "kept") for _ in range(2)
    )
    assert first.facts == second.facts
    assert [each.resolution for each in first.facts] == [1]
