"""Bootstrap: statistics of resampled rows, and what is made of them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import simulate

import poolbn as pb
from poolbn.assess import resample
from poolbn.assess.resample import data_set_replicates, row_replicates
from poolbn.run import parallel
from poolbn.tables import data

SIZES = [1, 2, 9, 23]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Data sets of different sizes, interleaved; a column far from zero, and one for each row.

    The mean of a row's own column says how often the row was drawn.
    """
    rng = np.random.default_rng(5)
    n = sum(SIZES)
    frame = pd.DataFrame({"x": rng.normal(size=n), "far": 1e8 + rng.normal(size=n)})
    frame["y"] = frame["x"] - frame["far"] + 1e8 + rng.normal(size=n)
    frame["site"] = rng.permutation(np.repeat(list("abcd"), SIZES))
    own = pd.DataFrame(np.eye(n), columns=[f"row{i}" for i in range(n)])
    return pd.concat([frame, own], axis=1)


def reader(frame: pd.DataFrame, batch_rows: int | None = None) -> partial:
    options = {"group": "site", "columns": None, "missing": "error", "batch_rows": batch_rows}
    return partial(data.read, frame, **options)


def drawn(
    frame: pd.DataFrame, count: int, *, seed: int = 0, batch_rows: int | None = None
) -> list[pb.GroupStats]:
    known = pb.stats(frame, group="site")
    parts = row_replicates(reader(frame, batch_rows), known, count, seed)
    return [replicate for part in parts for replicate in part]


def counts(replicate: pb.GroupStats) -> np.ndarray:
    """How often each row was drawn, (F, n)."""
    own = [i for i, name in enumerate(replicate.names) if name.startswith("row")]
    return replicate.mean[:, own] * replicate.n[:, None]


# Statistics of resampled rows


@pytest.mark.parametrize("cells", [resample._CELLS, 150])  # one block, and blocks of 4 rows
def test_statistics_are_those_of_rows_literally_resampled(
    rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    monkeypatch.setattr(resample, "_CELLS", cells)
    known = pb.stats(rows, group="site")
    columns = ["x", "far", "y"]
    for replicate in drawn(rows, 20):
        np.testing.assert_array_equal(replicate.n, known.n)
        assert replicate.levels == known.levels
        times = counts(replicate)
        np.testing.assert_allclose(times, times.round(), atol=1e-12)
        for j, level in enumerate(known.levels):
            assert not times[j, (rows["site"] != level).to_numpy()].any()
            again = rows.loc[np.repeat(rows.index, times[j].round().astype(int)), columns]
            assert len(again) == known.n[j]
            exact = again.to_numpy() - [0, 1e8, 0]  # literal centring, far from no zero
            centred = exact - exact.mean(axis=0)
            np.testing.assert_allclose(
                replicate.mean[j, :3] - [0, 1e8, 0], exact.mean(axis=0), atol=1e-7
            )
            np.testing.assert_allclose(
                replicate.scatter[j, :3, :3], centred.T @ centred, rtol=1e-6, atol=1e-6
            )


@pytest.mark.parametrize("cells", [resample._CELLS, 150])
def test_counts_are_multinomial(
    rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    monkeypatch.setattr(resample, "_CELLS", cells)
    R = 800
    times = np.array([counts(replicate) for replicate in drawn(rows, R)])  # (R, F, n)
    known = pb.stats(rows, group="site")
    for j, level in enumerate(known.levels):
        own = times[:, j, (rows["site"] == level).to_numpy()]
        n = own.shape[1]
        np.testing.assert_allclose(own.sum(axis=1), n)
        if n == 1:
            continue
        z = (own.mean(axis=0) - 1) / np.sqrt((1 - 1 / n) / R)
        assert np.abs(z).max() < 3.8
        np.testing.assert_allclose(own.var(axis=0), 1 - 1 / n, rtol=0.25)
        cov = np.cov(own.T)
        off = cov[~np.eye(n, dtype=bool)]
        assert off.mean() == pytest.approx(-1 / n, rel=0.05)
        assert np.abs(off + 1 / n).max() < 4.5 * np.sqrt((1 + 1 / n) / R)


def test_replicates_vary_around_the_data() -> None:
    frame = simulate(3, rows=40).rename(columns={"F": "site"})
    known = pb.stats(frame, group="site")
    found = drawn(frame, 400)
    mean = np.array([replicate.mean for replicate in found])
    variance = np.array([np.diagonal(r.scatter, axis1=1, axis2=2) for r in found]) / 40
    original = np.diagonal(known.scatter, axis1=1, axis2=2) / 40
    z = (mean.mean(axis=0) - known.mean) / np.sqrt(original / 40 / 400)
    assert np.abs(z).max() < 3.5
    np.testing.assert_allclose(mean.var(axis=0), original / 40, rtol=0.3)
    # The variance of a resample is smaller by 1 / n, as that of any sample.
    z = (variance.mean(axis=0) - original * 39 / 40) / (variance.std(axis=0) / np.sqrt(400))
    assert np.abs(z).max() < 3.5


def test_replicates_do_not_depend_on_batches_passes_threads_or_their_number(
    rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resample, "_CELLS", 150)
    base = drawn(rows, 40)
    variants = [drawn(rows, 40, batch_rows=5), drawn(rows, 23)]
    monkeypatch.setattr(resample, "_NUMBERS", 1)  # a pass for each stack
    variants.append(drawn(rows, 40))
    monkeypatch.setattr(resample, "available_cores", lambda: 1)
    variants.append(drawn(rows, 40))
    for variant in variants:
        for one, other in zip(base, variant, strict=False):
            np.testing.assert_array_equal(one.mean, other.mean)
            np.testing.assert_array_equal(one.scatter, other.scatter)
    assert [len(variant) for variant in variants] == [40, 23, 40, 40]
    assert (drawn(rows, 1, seed=1)[0].mean != base[0].mean).any()


def test_a_data_set_with_one_row_or_equal_rows_has_no_scatter() -> None:
    frame = pd.DataFrame({"site": list("abbbcc"), "x": [0.1, 0.7, 0.7, 0.7, 1e8 + 0.1, 2.0]})
    found = drawn(frame, 50)
    for replicate in found:
        np.testing.assert_array_equal(replicate.mean[:2, 0], [0.1, 0.7])
        np.testing.assert_array_equal(replicate.scatter[:2], 0)
    apart = np.array([replicate.scatter[2, 0, 0] for replicate in found])
    twice = apart == 0  # the same row
    assert 10 < twice.sum() < 40
    np.testing.assert_allclose(apart[~twice], (1e8 + 0.1 - 2) ** 2 / 2)


def test_whole_data_sets_are_drawn_with_replacement() -> None:
    known = pb.stats(simulate(2, data_sets=4, rows=7), group="F")
    (found,) = data_set_replicates(known, 300, seed=0)
    times = np.zeros((300, 4))
    for r, replicate in enumerate(found):
        assert len(set(replicate.levels)) == 4
        for j in range(4):
            at = int(np.flatnonzero((known.mean == replicate.mean[j]).all(axis=1))[0])
            np.testing.assert_array_equal(replicate.scatter[j], known.scatter[at])
            times[r, at] += 1
    assert np.abs(times.mean(axis=0) - 1).max() < 4 * np.sqrt(0.75 / 300)
    assert times.max() > 2


# Bootstrap


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    true = pb.random_network(pb.random_dag(5, 2, seed=1), data_sets=3, seed=2)
    return pb.random_table(true, 25, seed=3)


@pytest.fixture(scope="module")
def boot(table: pd.DataFrame) -> pb.Bootstrap:
    return pb.bootstrap(table, group="F", replicates=30)


def test_counts_are_those_of_networks_learned_from_the_replicates(
    table: pd.DataFrame, boot: pb.Bootstrap
) -> None:
    known = pb.stats(table, group="F")
    read = partial(data.read, table, group="F", columns=None, missing="error")
    (found,) = row_replicates(read, known, 30, 0)
    expected = np.zeros((5, 5))
    for replicate in found:
        graph = pb.learn(replicate).dag.cpdag()  # no ties in partial pooling: columns as they are
        for a, b in graph.directed:
            expected[boot.nodes.index(a), boot.nodes.index(b)] += 1
        for a, b in graph.undirected:
            i, j = boot.nodes.index(a), boot.nodes.index(b)
            expected[i, j] += 0.5
            expected[j, i] += 0.5
    np.testing.assert_array_equal(boot.counts, expected)


def test_the_order_of_columns_does_not_matter(table: pd.DataFrame) -> None:
    names = [f"X{i + 1}" for i in range(5)]
    one = pb.bootstrap(table, group="F", replicates=20, pooling="complete", columns=names)
    other = pb.bootstrap(table, group="F", replicates=20, pooling="complete", columns=names[::-1])
    np.testing.assert_array_equal(one.counts, other.counts[::-1, ::-1])


def test_processes_give_the_same(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    here = pb.bootstrap(table, group="F", replicates=12, seed=4)
    started = []
    original = parallel.map_processes

    def watched(function, items, processes):
        started.append(len(items))
        return original(function, items, processes)

    monkeypatch.setattr(parallel, "_WORTH_PROCESSES", 0.0)
    monkeypatch.setattr(parallel, "map_processes", watched)
    monkeypatch.setattr(resample, "available_cores", lambda: 2)
    there = pb.bootstrap(table, group="F", replicates=12, seed=4)
    assert started == [10]
    np.testing.assert_array_equal(here.counts, there.counts)


def test_seeds_and_numbers_of_replicates(table: pd.DataFrame, boot: pb.Bootstrap) -> None:
    again = pb.bootstrap(table, group="F", replicates=30)
    np.testing.assert_array_equal(boot.counts, again.counts)
    other = pb.bootstrap(table, group="F", replicates=30, seed=1)
    assert (boot.counts != other.counts).any()
    fewer = pb.bootstrap(table, group="F", replicates=10)
    assert ((boot.counts - fewer.counts) >= 0).all()


def test_statistics_will_do_for_data_sets(table: pd.DataFrame) -> None:
    one = pb.bootstrap(table, group="F", replicates=10, unit="data set")
    other = pb.bootstrap(pb.stats(table, group="F"), replicates=10, unit="data set")
    np.testing.assert_array_equal(one.counts, other.counts)
    assert other.unit == "data set"


def test_missing_cells_and_files(table: pd.DataFrame, tmp_path) -> None:
    gaps = table.assign(note="text")
    gaps.loc[[3, 40], "X2"] = np.nan
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    options = {"group": "F", "replicates": 10, "columns": [f"X{i + 1}" for i in range(5)]}
    whole = pb.bootstrap(gaps.dropna(), **options)
    for source in (gaps, tmp_path / "gaps.csv"):
        found = pb.bootstrap(source, missing="drop", **options)
        np.testing.assert_array_equal(found.counts, whole.counts)


def test_a_strong_arc_is_found_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    n = 400
    x = rng.normal(size=n)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=n), "z": rng.normal(size=n)})
    frame["site"] = np.repeat(list("abcd"), n // 4)
    found = pb.bootstrap(frame, group="site", replicates=100)
    at = {name: i for i, name in enumerate(found.nodes)}
    assert found.strength[at["x"], at["y"]] == 1
    assert found.strength[at["x"], at["z"]] < 0.3
    assert found.averaged(0.5).skeleton() == (("x", "y"),)


def test_constraints_are_kept_and_direct_edges(table: pd.DataFrame) -> None:
    tiers = [["X5", "X4"], ["X3", "X2", "X1"]]
    rules = pb.Constraints(tiers=tiers, required=[("X2", "X1")], forbidden=[("X4", "X5")])
    found = pb.bootstrap(table, group="F", replicates=15, constraints=rules)
    at = {name: i for i, name in enumerate(found.nodes)}
    assert found.counts[at["X2"], at["X1"]] == 15
    assert found.counts[at["X4"], at["X5"]] == found.counts[at["X1"], at["X2"]] == 0
    late, early = ([at[name] for name in tier] for tier in (tiers[1], tiers[0]))
    assert found.counts[np.ix_(late, early)].sum() == 0
    assert found.counts[np.ix_(early, late)].sum() > 0
    assert ("X2", "X1") in found.averaged(0).arcs


def test_the_table_and_the_printed_summary(boot: pb.Bootstrap) -> None:
    table = boot.table()
    assert list(table.columns) == ["from", "to", "strength", "direction"]
    assert len(table) == 20
    assert table["strength"].is_monotonic_decreasing
    for a, b, strength, direction in table.itertuples(index=False):
        i, j = boot.nodes.index(a), boot.nodes.index(b)
        assert (boot.strength[i, j], boot.direction[i, j]) == (strength, direction)
    first, *lines = repr(boot).split("\n")
    assert "30 replicates of rows" in first
    assert f"threshold {boot.threshold:.3g}" in first
    assert f"{len(boot.averaged().arcs)} arcs" in first
    assert len(lines) == (np.triu(boot.counts + boot.counts.T) > 0).sum()
    assert all("strength" in line for line in lines)
    assert "<table" in boot._repr_html_()


def test_names_in_html_are_text() -> None:
    odd = pb.Bootstrap(("<b>", "y"), np.array([[0.0, 3.0], [1.0, 0.0]]), 4, "row")
    assert "<td><b></td>" not in odd._repr_html_()
    assert odd.averaged().arcs == (("<b>", "y"),)


def test_one_node_is_no_trouble() -> None:
    frame = pd.DataFrame({"site": list("aabb"), "x": [1.0, 2.0, 3.0, 5.0]})
    found = pb.bootstrap(frame, group="site", replicates=2)
    assert (found.threshold, found.averaged().arcs, len(found.table())) == (0.0, (), 0)
    assert "0 arcs" in repr(found)


def test_an_interrupt_keeps_what_is_done(
    table: pd.DataFrame, boot: pb.Bootstrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self, words) -> None:
        if words() == "bootstrap: 7 of 30 replicates":
            raise KeyboardInterrupt

    monkeypatch.setattr(resample.Progress, "__call__", stop)
    with pytest.raises(pb.BootstrapInterrupted, match="7 replicates") as caught:
        pb.bootstrap(table, group="F", replicates=30)
    assert isinstance(caught.value, KeyboardInterrupt)
    assert isinstance(caught.value, pb.PoolbnError)
    found = caught.value.bootstrap
    assert found.replicates == 7
    assert ((boot.counts - found.counts) >= 0).all()


def test_an_interrupt_before_anything_is_done_is_plain(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(resample, "map_measured", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        pb.bootstrap(table, group="F", replicates=30)
    assert not isinstance(caught.value, pb.PoolbnError)
