"""Sufficient statistics of tables with discrete columns: they add up, are saved, and networks are
learned from them as from rows."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_mixed_search import rows as mixed_rows
from test_statsfile import HIDDEN, header, signed, text
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.moments.cellstats import fewer_levels
from poolbn.moments.indicators import Cells
from poolbn.moments.statsfile import OTHER
from poolbn.scoring.local import LocalScores

NO = pb.Constraints(continuous_to_discrete=False)


def rows(seed: int = 0, n: int = 60, sites: int = 4) -> pd.DataFrame:
    return mixed_rows(seed, n, sites).drop(columns="visits")


def same(one: pb.CellStats, two: pb.CellStats) -> None:
    """Equal; but for rounding where sums of continuous columns are."""
    assert one.names == two.names
    assert one.categories == two.categories
    assert one.inputs == two.inputs
    at = [two.levels.index(level) for level in one.levels]
    assert sorted(at) == list(range(len(two.levels)))
    assert counted(one) == counted(two)
    a, b = one.numbers, two.numbers
    assert a.names == b.names
    np.testing.assert_array_equal(a.n, b.n[at])
    np.testing.assert_array_equal(a.dropped, b.dropped[at])
    np.testing.assert_allclose(a.mean, b.mean[at], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(a.scatter, b.scatter[at], rtol=1e-10, atol=1e-10)


def counted(stats: pb.CellStats) -> Counter[tuple[Any, ...]]:
    """Rows by data set and levels."""
    levels = [each for each in stats.categories if each]
    found: Counter[tuple[Any, ...]] = Counter()
    for j, codes, n in zip(*stats.cells, strict=True):
        cell = tuple(own[k] for own, k in zip(levels, codes, strict=True))
        assert n > 0
        assert (stats.levels[j], *cell) not in found
        found[stats.levels[j], *cell] = int(n)
    return found


def by_pandas(table: pd.DataFrame, names: list[str]) -> Counter[tuple[Any, ...]]:
    cells = table.astype(dict.fromkeys(names, str)).groupby(["site", *names]).size()
    return Counter({key: int(n) for key, n in cells.items() if n})


# What they hold


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 80))
def test_they_hold_what_rows_say(seed: int, sites: int, n: int) -> None:
    table = rows(seed, n, sites)
    found = pb.stats(table, group="site")
    assert counted(found) == by_pandas(table, ["sex", "arm", "event"])
    wide = table[["age", "dose"]].copy()
    for name, levels in zip(found.names, found.categories, strict=True):
        for level in levels[1:]:
            wide[f"{name}={level}"] = (table[name].astype(str) == level).astype(float)
    for j, site in enumerate(found.levels):
        own = wide[table["site"] == site][list(found.numbers.names)].to_numpy()
        np.testing.assert_allclose(found.numbers.mean[j], own.mean(axis=0), rtol=1e-12, atol=1e-14)
        centred = own - own.mean(axis=0)
        np.testing.assert_allclose(found.numbers.scatter[j], centred.T @ centred, atol=1e-9)
        cubes = (centred**3).sum(axis=0)
        np.testing.assert_allclose(found.numbers.cubes[j], cubes, rtol=1e-9, atol=1e-7)


def test_they_are_those_of_a_table() -> None:
    table = rows(1)
    found, held = pb.stats(table, group="site"), pb.table(table, group="site")
    assert (found.names, found.kinds, found.categories) == (
        held.names, held.kinds, held.categories,
    )  # fmt: skip
    assert found.numbers.names == held.stats().names
    assert found.numbers.facts == held.stats().facts
    assert found.stats(["arm", "dose"]).names == held.stats(["arm", "dose"]).names
    assert found.kind("arm") == "discrete"


def test_levels_may_come_late(tmp_path: Path) -> None:
    """Also in small batches, in files, and only in rows that are left out."""
    table = rows(2, 400).sort_values("arm", ascending=False, ignore_index=True)
    whole = pb.stats(table, group="site")
    for k, part in enumerate(np.array_split(np.arange(len(table)), 5)):
        table.iloc[part].to_csv(tmp_path / f"{k}.csv", index=False)
    same(pb.stats(tmp_path, group="site"), whole)
    table["age"] = table["age"].where(table["arm"] != "a")
    dropped = pb.stats(table, group="site", missing="drop")
    assert dropped.categories[dropped.names.index("arm")] == ("b", "c")
    assert dropped.dropped.sum() == (table["arm"] == "a").sum()


def test_continuous_columns_give_group_stats_as_before() -> None:
    table = rows()[["site", "age", "dose"]]
    found = pb.stats(table, group="site")
    assert isinstance(found, pb.GroupStats)
    truth = table.assign(old=table["age"] > 40)
    assert isinstance(pb.stats(truth, group="site"), pb.CellStats)
    numbers = pb.stats(truth, group="site", kinds={"old": "continuous"})
    assert isinstance(numbers, pb.GroupStats)
    np.testing.assert_array_equal(numbers.select(["age", "dose"]).scatter, found.scatter)
    mixed = pb.stats(truth, group="site")
    assert isinstance(pb.stats(mixed, columns=["age"], inputs=[]), pb.GroupStats)
    assert pb.learn(mixed.select(["age", "dose"])).effects().equals(pb.learn(found).effects())


def test_kinds_are_as_they_are_said() -> None:
    table = rows().assign(grade=lambda t: t["age"].round(-1))
    found = pb.stats(table, group="site", kinds={"grade": "discrete"}, inputs=["grade"])
    assert found.kind("grade") == "discrete"
    assert found.inputs == ("grade",)
    assert list(found.categories[-1]) == sorted(found.categories[-1], key=int)


BAD = [
    ({"kinds": {"age": "count"}}, "column 'age' is a count, and counts need rows.*pb.table"),
    ({"kinds": {"size": "discrete"}}, "no column 'size'"),
    ({"missing": "em"}, "missing='em' is for continuous columns"),
    ({"checkpoint": "here"}, "checkpoint=... is for continuous columns, and arm, event, sex are"),
    ({"inputs": ["size"]}, "no column 'size'"),
]


@pytest.mark.parametrize(("options", "words"), BAD, ids=lambda value: str(value)[:30])
def test_what_they_do_not_have_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(pb.PoolbnError, match=words):
        pb.stats(rows(), group="site", **options)


def test_what_are_no_levels_is_said() -> None:
    table = rows()
    for text_of, words in (
        ([f"p{k}" for k in range(len(table))], "240 levels in 240 rows, 240 of them in one row"),
        (["<5", *["3"] * (len(table) - 1)], "mostly numbers, but 1 cell holds '<5'"),
        (["1,5", "2,5"] * (len(table) // 2), "decimal comma, such as '1,5'"),
    ):
        with pytest.raises(pb.DataError, match=words):
            pb.stats(table.assign(note=text_of), group="site")


def test_dask_frames_stay_where_they_are() -> None:
    dask = pytest.importorskip("dask.dataframe")
    table = rows(4)
    same(
        pb.stats(dask.from_pandas(table, npartitions=3), group="site"),
        pb.stats(table, group="site"),
    )


# They add up


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_they_add_up_whatever_levels_the_parts_have(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    table = rows(seed, 30, 3)
    table["arm"] = rng.choice(list("abcde"), len(table))
    which = rng.integers(parts, size=len(table))
    some = [pb.stats(table[which == k], group="site") for k in set(which.tolist())]
    rng.shuffle(some)  # type: ignore[arg-type]
    whole = sum(some).select(["age", "sex", "arm", "event", "dose"])
    same(whole, pb.stats(table, group="site"))
    same(whole.select(["arm", "dose"]), pb.stats(table, group="site", columns=["arm", "dose"]))


def test_levels_of_a_sum_keep_their_order() -> None:
    table = rows()
    order = ["c", "a", "b"]
    told = table.assign(arm=pd.Categorical(table["arm"], categories=order))
    one = pb.stats(told[told["arm"] != "a"], group="site")
    two = pb.stats(told[told["arm"] != "c"], group="site")
    assert (one + pb.stats(told, group="site")).categories[2] == tuple(order)
    assert (one + two).categories[2] == tuple(order)


def test_what_does_not_add_up_is_said() -> None:
    table = rows()
    found = pb.stats(table, group="site")
    with pytest.raises(pb.DataError, match="the right lacks 'dose'"):
        found + found.select(["age", "sex", "arm", "event"])
    with pytest.raises(pb.DataError, match="different inputs"):
        found + found.with_inputs(["arm"])
    numbers = pb.stats(table, group="site", kinds={"event": "continuous"})
    with pytest.raises(pb.DataError, match="column 'event' is discrete on the left and continuous"):
        found + numbers
    with pytest.raises(TypeError):
        found + found.numbers  # type: ignore[operator]


# Files


def test_what_is_saved_loads_equal(tmp_path: Path) -> None:
    columns = ["age", "sex", "arm", "dose"]
    found = pb.stats(rows(0, 400), group="site", columns=columns, inputs=["arm"])
    found.save(tmp_path / "s.stats")
    again = pb.CellStats.load(tmp_path / "s.stats")
    same(again, found)
    np.testing.assert_array_equal(again.numbers.scatter, found.numbers.scatter)
    again.save(tmp_path / "t.stats")
    assert (tmp_path / "t.stats").read_bytes() == (tmp_path / "s.stats").read_bytes()
    for kind in (pb.GroupStats, pb.PatternStats):
        with pytest.raises(pb.FileError, match=r"pb\.CellStats\.load"):
            kind.load(tmp_path / "s.stats")


def test_files_of_continuous_columns_are_as_before_and_load_here_too(tmp_path: Path) -> None:
    found = pb.stats(rows()[["site", "age", "dose"]], group="site")
    found.save(tmp_path / "s.stats")
    again = pb.CellStats.load(tmp_path / "s.stats")
    assert again.kinds == ("continuous", "continuous")
    np.testing.assert_array_equal((again + again).n, 2 * found.n)
    assert isinstance(pb.stats(again), pb.GroupStats)
    gaps = rows()[["site", "age", "dose"]]
    gaps.loc[::3, "age"] = np.nan
    pb.stats(gaps, group="site", missing="em").patterns.save(tmp_path / "g.stats")
    with pytest.raises(pb.FileError, match=r"pb\.PatternStats\.load"):
        pb.CellStats.load(tmp_path / "g.stats")


def test_a_part_may_have_one_level(tmp_path: Path) -> None:
    """As a school for girls has; alone it says nothing."""
    table = rows(0, 200)[["site", "sex"]]
    girls = pb.stats(table[table["sex"] == "female"], group="site")
    girls.save(tmp_path / "girls.stats")
    boys = pb.stats(table[table["sex"] == "male"], group="site")
    both = boys + pb.CellStats.load(tmp_path / "girls.stats")
    same(both, pb.stats(table, group="site"))
    with pytest.raises(pb.DataError, match="'sex' has one level, 'female'"):
        pb.learn(girls)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("cells") / "s.stats"
    small = rows(0, 200, 2)[["site", "age", "sex", "arm"]]
    pb.stats(small, group="site").save(path)
    return path.read_bytes()


def last_cell(change: dict[int, int]) -> Any:
    """Other numbers in the last row of the last section, which has cells."""

    def changed(body: bytes) -> bytes:
        cell = np.frombuffer(body[-32:], dtype="<i8").copy()
        for at, more in change.items():
            cell[at] += more
        return body[:-32] + cell.tobytes()

    return changed


HOSTILE = {
    "more rows": last_cell({3: 1}),
    "no rows": last_cell({3: -10_000}),
    "many rows": last_cell({3: 2**62}),
    "a level that is not there": last_cell({2: 1}),
    "a negative level": last_cell({2: -5}),
    "a data set that is not there": last_cell({0: 1}),
    "another order": lambda body: body[:-64] + body[-32:] + body[-64:-32],
    "a cell twice": last_cell({2: -1}),
    "a cell less": lambda body: text('"cells": 384', '"cells": 352')(body)[:-32],
    "half a cell": lambda body: text('"cells": 384', '"cells": 376')(body)[:-8],
    "no cells": lambda body: text('"cells": 384', '"cells": 0')(body)[:-384],
    "levels without cells": lambda body: text(', "cells": 384', "")(body)[:-384],
    "other levels": text('["a", "b", "c"]', '["a", "b", "d"]'),
    "levels twice": text('["a", "b", "c"]', '["a", "b", "b"]'),
    "levels as numbers": text('["a", "b", "c"]', '[100, 2, 300.5]'),
    "a level that stands for several": text('"merged": []', '"merged": ["sex"]'),
    "hidden levels": text('"merged": []', f'"merged": [], "more": "{HIDDEN}"'),
    "levels as a list": text('{"names": ["age"', '[["names", ["age"'),
    "names of others": header(lambda c: c.update(names=["age", "sex=male", "arm=b", "arm=x"])),
    "inputs of indicators": header(lambda c: c["sections"].update(inputs=0)),
}  # fmt: skip


@pytest.mark.parametrize("how", HOSTILE)
def test_a_file_that_no_rows_have_is_refused(how: str, whole: bytes, tmp_path: Path) -> None:
    body = whole.partition(b"\n")[2]
    assert b'"cells": 384' in body
    (tmp_path / "s.stats").write_bytes(signed(HOSTILE[how](body)))
    with pytest.raises(pb.FileError, match="does not hold statistics as it should"):
        pb.CellStats.load(tmp_path / "s.stats")
    (tmp_path / "s.stats").write_bytes(signed(body))
    pb.CellStats.load(tmp_path / "s.stats")


@given(st.data())
@settings(max_examples=30)
def test_a_changed_number_of_moments_is_refused(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Those of indicators follow from the cells, so each bit is known."""
    body = whole.partition(b"\n")[2]
    start = body.index(b"\n") + 1
    F, W = 2, 4
    j, a, b = data.draw(st.tuples(st.integers(0, 1), st.integers(1, 3), st.integers(1, 3)))
    at = start + 8 * (F + F * W + j * W * W + a * W + b)
    changed = bytearray(body)
    changed[at] ^= 1
    path = tmp_path_factory.mktemp("bit") / "s.stats"
    path.write_bytes(signed(bytes(changed)))
    with pytest.raises(pb.FileError, match="as it should"):
        pb.CellStats.load(path)


# Few rows


def test_no_configuration_of_few_rows_leaves_the_house(tmp_path: Path) -> None:
    found = pb.stats(rows(), group="site")
    small = sum(n < 10 for n in counted(found).values())
    words = f"{small} of the 48 configurations of 'sex', 'arm' and 'event' in a data set have fewer"
    with pytest.raises(pb.DataError, match=words):
        found.save(tmp_path / "s.stats")
    found.save(tmp_path / "s.stats", allow_small=True)
    same(pb.CellStats.load(tmp_path / "s.stats"), found)
    few = pb.stats(rows(0, 9), group="site", columns=["sex", "age"])
    with pytest.raises(pb.DataError, match="'s0' has 9"):
        few.save(tmp_path / "few.stats")
    with pytest.raises(pb.DataError, match="data set 's0' has 9 rows, fewer than 10"):
        few.coarsened()


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(12, 150))
def test_coarser_levels_are_those_of_rows_with_these_levels(seed: int, sites: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    table = rows(seed, n, sites)
    table["arm"] = rng.choice(list("abcdef"), len(table), p=[0.4, 0.3, 0.2, 0.05, 0.03, 0.02])
    table["mark"] = np.where(rng.random(len(table)) < 0.02, "yes", "no")
    found = pb.stats(table, group="site").coarsened()
    assert found.cells.n.min() >= 10
    assert set(found.names) | set(found.left_out) == set(table.columns) - {"site"}
    assert set(found.merged) <= set(found.names)
    coarse = table.drop(columns=list(found.left_out))
    for name, gone in found.merged.items():
        assert len(gone) > 1
        coarse[name] = coarse[name].where(~coarse[name].isin(gone), OTHER)
        own = found.categories[found.names.index(name)]
        coarse[name] = pd.Categorical(coarse[name], categories=list(own))
    again = pb.stats(coarse, group="site")
    same(again if isinstance(again, pb.CellStats) else found, found)
    assert found.coarsened().merged == found.merged


def test_rare_levels_go_first_and_nothing_goes_without_need() -> None:
    """A rare mark goes, not the levels of others."""
    n = 400
    common = np.arange(n) % 3
    rare = (np.arange(n) == 7).astype(int)
    levels = [("a", "b", "c"), ("no", "yes")]
    cells = Cells.of(np.zeros(n, dtype=np.int64), np.column_stack([common, rare]), [3, 2])
    kept, gone = fewer_levels(cells, levels, 10)
    assert kept is not None
    assert kept.levels == levels[0]
    assert gone is None
    four = np.where(np.arange(n) < 4, 3, common)
    cells = Cells.of(np.zeros(n, dtype=np.int64), four[:, None], [4])
    (some,) = fewer_levels(cells, [("a", "b", "c", "d")], 10)
    assert some is not None
    assert len(some.levels) == 3
    assert some.levels[-1] == OTHER
    assert some.code[3] == 2


def test_levels_that_one_side_put_together_are_put_together_in_the_sum(tmp_path: Path) -> None:
    table = rows(0, 300, 2)[["site", "age", "arm", "sex"]]
    arms, share = list("abcde"), [0.4, 0.4, 0.1, 0.09, 0.01]
    table["arm"] = np.random.default_rng(1).choice(arms, len(table), p=share)
    first = table["site"] == "s0"
    one, two = (pb.stats(part, group="site") for part in (table[first], table[~first]))
    coarse = one.coarsened(20)
    gone = coarse.merged["arm"]
    assert len(gone) > 1
    coarse.save(tmp_path / "s.stats")
    loaded = pb.CellStats.load(tmp_path / "s.stats")
    assert loaded.merged == {"arm": ()}
    expected = table.assign(arm=table["arm"].where(~table["arm"].isin(gone), OTHER))
    order = [*sorted(set(expected["arm"]) - {OTHER}), OTHER]
    expected["arm"] = pd.Categorical(expected["arm"], categories=order)
    for whole in (coarse + two, two + coarse, loaded + two, two + loaded):
        same(whole, pb.stats(expected, group="site"))
        assert set(whole.merged["arm"]) >= {v for v in gone if v in set(table["arm"][~first])}
    assert '"other" of arm stands for several levels' in repr(loaded)
    assert "arm (" in repr(coarse)


# Networks


@pytest.fixture(scope="module")
def both() -> tuple[pb.Table, pb.CellStats]:
    table = rows(3, 80)
    parts = [pb.stats(table[k::3], group="site") for k in range(3)]
    return pb.table(table, group="site"), sum(parts)


@pytest.mark.parametrize("pooling", ["complete", "none", "partial", "auto"])
def test_scores_are_those_of_rows(both: tuple[pb.Table, pb.CellStats], pooling: str) -> None:
    held, found = both
    N = len(held.names)
    families = [
        (child, parents)
        for child in range(N)
        for size in range(3)
        for parents in itertools.combinations([p for p in range(N) if p != child], size)
        if held.kinds[child] == "continuous"
        or all(held.kinds[parent] == "discrete" for parent in parents)
    ]
    of_rows = LocalScores(held, pooling=pooling)(families)
    np.testing.assert_allclose(LocalScores(found, pooling=pooling)(families), of_rows, rtol=1e-9)


def test_scores_are_those_of_rows_after_saving(
    both: tuple[pb.Table, pb.CellStats], tmp_path: Path
) -> None:
    held, found = both
    found.save(tmp_path / "s.stats", allow_small=True)
    loaded = pb.CellStats.load(tmp_path / "s.stats")
    arcs = [("sex", "event"), ("arm", "event"), ("age", "dose"), ("sex", "dose")]
    for score in ("bic", "aic", "loglik"):
        expected = pb.score(held, arcs, score=score)
        assert pb.score(found, arcs, score=score) == pytest.approx(expected, rel=1e-10)
        assert pb.score(loaded, arcs, score=score) == pytest.approx(expected, rel=1e-10)
    levels = ["sex", "arm", "event"]
    for score in ("bde", "k2"):
        options: dict[str, Any] = {"score": score, "pooling": "complete"}
        expected = pb.score(held.select(levels), arcs[:2], **options)
        assert pb.score(loaded.select(levels), arcs[:2], **options) == pytest.approx(expected)


def test_networks_are_those_of_rows_without_arcs_that_need_them(
    both: tuple[pb.Table, pb.CellStats],
) -> None:
    held, known = both
    found = known.select(known.names)  # of which nothing was said yet
    one = pb.learn(held, constraints=NO)
    with pytest.warns(pb.DataWarning, match="'sex', 'arm' and 'event' have no cont") as told:
        two = pb.learn(found)
    assert [w.message.finding.kind for w in told] == [pb.FindingKind.NEEDS_ROWS]  # type: ignore[union-attr]
    assert one.dag == two.dag
    assert one.score == pytest.approx(two.score, rel=1e-10)
    assert two.from_statistics
    assert not one.from_statistics
    assert "learned without rows: no discrete node could have a continuous parent" in repr(two)
    three = pb.learn(found.with_inputs(["arm"]), constraints=NO)  # silent: it was said
    assert three.inputs == ("arm",)
    assert pb.check(found.select(["sex", "arm"])) == []
    for name in ("sex", "age"):
        a, b = (pb.fit_node(data, name, ["event"]) for data in (held, found))
        pd.testing.assert_frame_equal(a.table(), b.table(), rtol=1e-8)


def test_arcs_that_need_rows_are_errors(both: tuple[pb.Table, pb.CellStats]) -> None:
    _, found = both
    with pytest.raises(pb.GraphError, match=r"age -> sex is required, and needs rows.*pb\.table"):
        pb.learn(found, constraints=pb.Constraints(required=[("age", "sex")]))
    for call in (
        lambda: pb.fit_node(found, "sex", ["age", "arm"]),
        lambda: pb.score(found, [("age", "sex")]),
    ):
        with pytest.raises(
            pb.DataError, match=r"the continuous parent 'age' needs rows.*pb\.table"
        ):
            call()
    with pytest.raises(pb.GraphError, match="age -> sex, which is forbidden"):
        pb.learn(found, start=[("age", "sex")], constraints=NO)
    with pytest.raises(pb.DataError, match="no rows to hold out"):
        pb.compare(found)
    with pytest.raises(pb.DataError, match="leave group='site' out"):
        pb.learn(found, group="site")


def test_the_bootstrap_of_data_sets_is_that_of_rows() -> None:
    table = rows(5, 60, 5)
    table.loc[table["site"] != "s0", "arm"] = table["arm"].replace("c", "a")  # in one data set only
    held, found = pb.table(table, group="site"), pb.stats(table, group="site")
    options: dict[str, Any] = {"unit": "data set", "replicates": 8, "constraints": NO}
    np.testing.assert_array_equal(
        pb.bootstrap(found, **options).counts, pb.bootstrap(held, **options).counts
    )
    with pytest.raises(pb.DataError, match="sufficient statistics hold no rows to resample"):
        pb.bootstrap(found, constraints=NO)


# The command line


def test_sites_share_discrete_columns_by_commands(tmp_path: Path) -> None:
    """Files of sites, one of which must leave a column out, learned from together."""
    rng = np.random.default_rng(1)
    whole = []
    for site, n in (("a", 200), ("b", 150), ("c", 180)):
        sex = rng.choice(["f", "m"], n)
        rare = rng.random(n) < (0.02 if site == "c" else 0.4)
        dose = rng.normal(size=n) + (sex == "m")
        rows = pd.DataFrame({"site": site, "sex": sex, "rare": rare, "dose": dose})
        rows.to_csv(tmp_path / f"{site}.csv", index=False)
        whole.append(rows)

    def run(*arguments: object) -> str:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    for site in "abc":
        said = run("stats", "make", tmp_path / f"{site}.csv", "-g", "site", "-o",
                   tmp_path / f"{site}.stats")  # fmt: skip
        assert ("left out: rare" in said) == (site == "c")
    shown = run("stats", "show", tmp_path / "a.stats")
    assert "Rows of each configuration of the discrete columns" in shown
    files = [tmp_path / f"{site}.stats" for site in "abc"]
    failed = CliRunner().invoke(app, ["stats", "add", *map(str, files), "-o", "x.stats"])
    assert "c.stats lacks 'rare'; take those that all have with --common" in failed.output
    run("stats", "add", *files, "--common", "-o", tmp_path / "all.stats")
    said = json.loads(run("learn", tmp_path / "all.stats", "--json"))
    net = pb.learn(pd.concat(whole)[["site", "sex", "dose"]], group="site",
                   constraints=pb.Constraints(continuous_to_discrete=False))  # fmt: skip
    assert said["score"] == pytest.approx(net.score, rel=1e-9)
    assert said["models"] == {"sex": net.fits["sex"].model, "dose": "linear regression"}
    run("stats", "make", tmp_path / "all.stats", "--group-name", "all", "-o", tmp_path / "1.stats")
    one, every = (pb.CellStats.load(tmp_path / f"{name}.stats") for name in ("1", "all"))
    assert (one.levels, one.n.tolist()) == (("all",), [every.n.sum()])
    anywhere: Counter[tuple[Any, ...]] = Counter()
    for (_, *levels), n in counted(every).items():
        anywhere["all", *levels] += n
    assert counted(one) == anywhere
