"""Dask: statistics of its frames, and work on its clusters, the same as without."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import cloudpickle
import dask
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from benchmarks.study.__main__ import app as study
from benchmarks.study.run import run_study
from benchmarks.study.study import PRESETS, Preset
from helpers import simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.moments import reading
from poolbn.moments.standardised import standardise
from poolbn.nodes.model import same_for_all
from poolbn.nodes.poolings import Partial
from poolbn.run import cluster, parallel
from poolbn.search.problem import Found, Problem
from poolbn.tables import sources

TINY = Preset((3,), (1,), (2,), (3,), rows=(10,), networks=2, replicates=1)


@pytest.fixture(scope="module")
def workers() -> Iterator[distributed.Client]:
    """A cluster of two processes, which can use what is written in this file."""
    here = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(here)
    quick = {
        "distributed.comm.timeouts.connect": "1s",  # to a worker that died; by default 30 s
        "distributed.scheduler.allowed-failures": 1,
    }
    with (
        dask.config.set(quick),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client
    cloudpickle.unregister_pickle_by_value(here)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What goes to a cluster, by the names of its tasks."""
    names: list[str] = []
    submit = cluster.Cluster._submit

    def noted(self: cluster.Cluster, function: Callable[..., object], *given: object) -> object:
        before = set(self.client.futures)
        future = submit(self, function, *given)
        if future.key not in before:  # else Dask has it
            names.append(function.__name__)
        return future

    monkeypatch.setattr(cluster.Cluster, "_submit", noted)
    return names


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Three data sets, interleaved; a column far from zero."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["x", "y", "z"])
    return frame.assign(y=frame["y"] + frame["x"] + 1e8, site=rng.choice(list("bac"), 200))


def parted(frame: pd.DataFrame, *cuts: int) -> dd.DataFrame:
    """A Dask frame with partitions that end at these rows; some may be empty."""
    ends = [*cuts, len(frame)]
    parts = [frame.iloc[a:b] for a, b in zip([0, *cuts], ends, strict=True)]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0])


def bits(stats: pb.GroupStats) -> tuple[object, ...]:
    arrays = (stats.n, stats.mean, stats.scatter, stats.dropped)
    return (stats.names, stats.levels, stats.group, *(array.tobytes() for array in arrays))


def dies(marker: Path) -> None:
    """Kill the process that gets here first, as if its machine had failed."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


# Statistics


CUTS = (0, 3, 3, 20, 60, 61, 90, 91, 120, 150, 180, 200)  # 13 partitions, some empty


def _or_error(source: object, **options: str) -> pb.GroupStats | str:
    try:
        return pb.stats(source, **options)
    except pb.DataError as error:
        return str(error)


@settings(max_examples=20)
@given(
    cuts=st.lists(st.integers(0, 40), max_size=20).map(sorted),
    gaps=st.sets(st.integers(0, 39), max_size=10),
    gone=st.sampled_from(["", "d", "bc", "abcd"]),
    seed=st.integers(0, 100),
)
def test_partitions_do_not_matter(cuts: list[int], gaps: set[int], gone: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=40), "y": 1e6 + rng.normal(size=40)})
    frame.loc[list(gaps), "x"] = np.nan
    frame["site"] = rng.permutation(np.repeat(list("abcd"), [11, 11, 15, 3]))
    frame.loc[frame["site"].isin(list(gone)), "y"] = np.nan
    options = {"group": "site", "missing": "drop"}
    with dask.config.set(scheduler="sync"):
        whole, found = (_or_error(source, **options) for source in (frame, parted(frame, *cuts)))
    if isinstance(whole, str) or isinstance(found, str):
        assert found == whole
        return
    assert (found.names, found.levels, found.group) == (whole.names, whole.levels, whole.group)
    assert np.array_equal(found.n, whole.n)
    assert np.array_equal(found.dropped, whole.dropped)
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(found.scatter, whole.scatter, rtol=1e-8, atol=1e-8)


def test_any_scheduler_gives_the_same_bits(
    table: pd.DataFrame, workers: distributed.Client
) -> None:
    frame = parted(table, *CUTS)
    make = partial(pb.stats, frame, group="site", columns=["z", "y"])
    with dask.config.set(scheduler="sync"):
        expected = bits(make())
    with dask.config.set(scheduler="threads", num_workers=3):
        assert bits(make()) == expected
    with pb.on_cluster(workers):
        assert bits(make()) == expected


def test_rows_stay_with_the_workers(
    table: pd.DataFrame, workers: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = sources.pandas_part

    def from_statistics(table: pd.DataFrame, name: object, place: str) -> sources.Part:
        assert not len(table)
        return original(table, name, place)

    monkeypatch.setattr(sources, "pandas_part", from_statistics)
    monkeypatch.setattr(reading, "pandas_part", from_statistics)
    with pb.on_cluster(workers):
        assert pb.stats(parted(table, *CUTS), group="site").n_rows == len(table)


def test_statistics_survive_a_worker(
    table: pd.DataFrame, workers: distributed.Client, tmp_path: Path
) -> None:
    marker = tmp_path / "died"

    def deadly(part: pd.DataFrame) -> pd.DataFrame:
        if len(part) == 40:
            dies(marker)
        return part

    frame = parted(table, *CUTS)
    with dask.config.set(scheduler="sync"):
        expected = bits(pb.stats(frame, group="site"))
    with pb.on_cluster(workers):
        found = pb.stats(frame.map_partitions(deadly, meta=table.iloc[:0]), group="site")
    assert marker.exists()
    assert bits(found) == expected


def test_the_first_error_is_told(table: pd.DataFrame) -> None:
    bad = table.copy()
    bad.loc[30, "z"] = np.inf
    bad.loc[170, "x"] = -np.inf
    for scheduler in ("sync", "threads"):
        with (
            dask.config.set(scheduler=scheduler),
            pytest.raises(pb.DataError, match=r"infinite \(inf\): row 11 of partitions\[4\]"),
        ):
            pb.stats(parted(bad, *CUTS), group="site")


def test_what_is_too_large_only_together_is_an_error(table: pd.DataFrame) -> None:
    far = table.assign(x=np.where(np.arange(200) < 100, 1e200, -1e200))
    with pytest.raises(pb.DataError, match="squares of column 'x' are too large"):
        pb.stats(parted(far, 100), group="site")


def _slow(part: pd.DataFrame, marker: Path) -> pd.DataFrame:
    marker.touch()
    time.sleep(1)
    return part


@pytest.mark.parametrize("read", [pb.stats, partial(pb.compare, folds=2)], ids=["tree", "rows"])
def test_a_cluster_that_is_closed_during_work(
    read: Callable[..., object], table: pd.DataFrame, tmp_path: Path
) -> None:
    marker = tmp_path / "begun"

    def close() -> None:
        while not marker.exists():
            time.sleep(0.01)
        client.close()

    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as made,
        distributed.Client(made) as client,
    ):
        frame = dd.from_pandas(table, npartitions=2)
        slow = frame.map_partitions(_slow, marker, meta=table.iloc[:0])
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        with pytest.raises(pb.ClusterError, match="closed or lost its workers"):
            read(slow, group="site")
        closing.join()


def test_a_connection_that_is_closed_during_work() -> None:
    class Closed:
        status = "closed"

        def submit(self, *args: object, **options: object) -> None:
            raise distributed.client.ClosedClientError

    with pytest.raises(pb.ClusterError, match="the connection was closed"):
        list(cluster.Cluster(Closed()).map(_doubled, [1]))


def _doubled(value: int) -> int:
    return 2 * value


def test_rows_come_partition_by_partition_where_they_are_needed(table: pd.DataFrame) -> None:
    same = pb.bootstrap(parted(table, *CUTS), group="site", replicates=3, preset="paper")
    # Draws depend on the statistics only by the numbers of rows.
    assert np.array_equal(
        same.counts, pb.bootstrap(table, group="site", replicates=3, preset="paper").counts
    )
    text = table.assign(z=table["z"].astype(object))
    text.loc[100, "z"] = "much"
    with dask.config.set({"dataframe.convert-string": False}):
        frame = parted(text, 50)
    with pytest.raises(pb.DataError, match=r"'z' of partitions\[1\] .* mixed"):
        pb.compare(frame, group="site")
    with pytest.raises(pb.DataError, match=r"'z' of partitions\[1\] .* 'much'"):
        pb.stats(frame, group="site")


# Work


@dataclass(frozen=True)
class Deadly(pb.HillClimb):
    """A search that takes its worker with it, the first time."""

    marker: Path = Path()

    def learn(self, problem: Problem) -> Found:
        dies(self.marker)
        return super().learn(problem)


def test_a_bootstrap_survives_a_worker(
    workers: distributed.Client, sent: list[str], tmp_path: Path
) -> None:
    frame = simulate(1, rows=15, parents=3)
    make = partial(pb.bootstrap, frame, group="F", replicates=8, preset="paper")
    expected = make()
    with pb.on_cluster(workers):
        assert np.array_equal(make().counts, expected.counts)
        found = make(search=Deadly(marker=tmp_path / "died"))
    assert (tmp_path / "died").exists()
    assert sent.count("_piece") == 16
    assert found.replicates == 8
    assert np.array_equal(found.counts, expected.counts)


def test_a_comparison_is_the_same(workers: distributed.Client, sent: list[str]) -> None:
    frame = simulate(2, data_sets=3, rows=12, parents=1)
    make = partial(pb.compare, frame, group="F", folds=2, poolings=["complete", "partial"])
    expected = make()
    with pb.on_cluster(workers):
        found = make()
    assert sent.count("_piece") == (2 + 3) * 2
    for name in ("rows", "loglik", "left_out_loglik", "known", "unknown", "f1"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name


def test_a_study_is_the_same(
    workers: distributed.Client,
    sent: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    run_study(tmp_path / "here", preset="tiny", models=["LME", "GBN"], workers=1)
    options = ["--preset", "tiny", "--models", "LME,GBN", "--dask", workers.scheduler.address]
    done = CliRunner().invoke(study, ["run", "--out", str(tmp_path / "there"), *options])
    assert done.exit_code == 0, done.output
    here, there = (
        {file.name: file.read_bytes() for file in (tmp_path / where).glob("parts/*.parquet")}
        for where in ("here", "there")
    )
    assert here == there
    assert sent.count("_piece") == len(here) == len(list(TINY.chunks()))


def test_a_command_prints_the_same(
    workers: distributed.Client, sent: list[str], tmp_path: Path
) -> None:
    simulate(1, rows=15).to_csv(tmp_path / "rows.csv", index=False)
    command = ["bootstrap", str(tmp_path / "rows.csv"), "--group", "F", "--replicates", "3"]
    here = CliRunner().invoke(app, command)
    there = CliRunner().invoke(app, [*command, "--dask", workers.scheduler.address])
    assert (there.exit_code, there.output) == (here.exit_code, here.output) == (0, here.output)
    assert sent.count("_piece") == 3


def test_batches_of_fits_are_the_same(
    workers: distributed.Client, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = pb.stats(simulate(3, parents=4), group="F")
    data, pooling = standardise(stats), Partial()
    families = [
        (child, tuple(p for p in range(5) if p != child)[:k]) for child in range(5) for k in (1, 3)
    ]
    make = partial(
        parallel.map_fits,
        lambda family: pooling.logliks(data, [family], same_for_all(1.0)).loglik,
        families,
        2,
    )
    expected = np.array(make())
    with pb.on_cluster(workers):
        assert np.array_equal(make(), expected)
        assert not sent  # not worth it
        monkeypatch.setattr(parallel, "_WORTH_SENDING", 0.0)
        assert np.array_equal(make(), expected)
        assert sent.count("_piece") == len(families) - 1


def test_the_first_look_of_a_search_goes_to_workers(
    workers: distributed.Client, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = pb.stats(simulate(3, data_sets=6, rows=30, parents=40), group="F")
    expected = pb.learn(stats, preset="paper")
    monkeypatch.setattr(parallel, "_WORTH_SENDING", 0.0)
    with pb.on_cluster(workers):
        found = pb.learn(stats, preset="paper")
    assert sent.count("_piece") > 1
    assert found.trace == expected.trace


def whereabouts(array: np.ndarray, item: int) -> tuple[int, int, int, int, float]:
    """Process; address of an array, whether it can be written to; cores; a number in the array."""
    address = array.__array_interface__["data"][0]
    cores = parallel.available_cores()
    return os.getpid(), address, int(array.flags.writeable), cores, array[item]


@pytest.mark.parametrize("writeable", [True, False])
def test_large_arrays_travel_once(
    workers: distributed.Client, sent: list[str], writeable: bool
) -> None:
    array = np.arange(2**17, dtype=np.float64) + writeable
    array.flags.writeable = writeable
    with pb.on_cluster(workers):
        found = dict(parallel.map_measured(partial(whereabouts, array), range(12), 2))
        again = dict(parallel.map_measured(partial(whereabouts, array.copy()), [5], 2))
    assert [found[k][-1] for k in range(12)] == array[:12].tolist()
    assert again[0][-1] == array[5]
    assert sent.count("_Shared") == (1 if writeable else 2)  # a copy can be written to
    places = {(process, address) for process, address, *_ in found.values()}
    assert len(places) == len({process for process, _ in places}) <= 2
    assert {seen[2:4] for seen in found.values()} == {(int(writeable), 1)}


def test_changed_arrays_travel_again(workers: distributed.Client) -> None:
    array = np.zeros(2**17)
    with pb.on_cluster(workers):
        for value in (1.0, 2.0):
            array[0] = value
            ((_, found),) = parallel.map_measured(partial(whereabouts, array), [0], 2)
            assert found[-1] == value


def test_threads_of_this_process_can_be_workers() -> None:
    cores = parallel.available_cores()
    with (
        distributed.Client(
            processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
        ) as client,
        pb.on_cluster(client),
    ):
        found = dict(parallel.map_measured(partial(whereabouts, np.arange(3.0)), range(3), 2))
        assert {seen[3] for seen in found.values()} == {1}
        assert parallel.available_cores() == cores


def beneath(stats: pb.GroupStats, item: int) -> tuple[str, float]:
    """What the memory of the scatter is, at the bottom."""
    owner = stats.scatter
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    return type(owner).__name__, float(stats.scatter[0, 0, item])


def test_processes_share_the_memory_of_statistics() -> None:
    N = 280  # two data sets: 1.2 MB of scatter
    names = tuple(f"v{i}" for i in range(N))
    scatter = np.stack([np.eye(N), np.eye(N)])
    zeros = np.zeros(2, dtype=np.int64)
    stats = pb.GroupStats(names, ("a", "b"), zeros + 5, np.zeros((2, N)), scatter, zeros)
    found = list(parallel.map_processes(partial(beneath, stats), range(3), 2))
    assert sorted(found) == [("mmap", 0.0), ("mmap", 0.0), ("mmap", 1.0)]


# When things go wrong


def fails(folder: Path, error: type[Exception], item: int) -> int:
    if item == 1:
        (folder / f"{len(list(folder.iterdir()))}").touch()
        raise error("so it is")
    return item


def test_only_errors_that_may_pass_are_tried_again(
    workers: distributed.Client, tmp_path: Path
) -> None:
    for error, times in ((pb.DataError, 1), (OSError, 1 + cluster._RETRIES)):
        folder = tmp_path / error.__name__
        folder.mkdir()
        with pb.on_cluster(workers), pytest.raises(error, match="so it is"):
            list(parallel.map_processes(partial(fails, folder, error), range(3), 2))
        assert len(list(folder.iterdir())) == times


def kills(item: int) -> int:
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_work_that_kills_every_worker_ends(workers: distributed.Client) -> None:
    with pb.on_cluster(workers), pytest.raises(pb.ClusterError, match="died, 2 in turn"):
        list(parallel.map_processes(kills, range(3), 2))
    with pb.on_cluster(workers):  # and it goes on
        assert sorted(parallel.map_processes(abs, [-1, 2], 2)) == [1, 2]


def left(dask_scheduler: distributed.Scheduler) -> list[str]:
    return [key for key in dask_scheduler.tasks if str(key).startswith("_piece")]


def test_an_interrupt_leaves_nothing_behind(
    workers: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(distributed.as_completed):
        def __iter__(self) -> Iterator[distributed.Future]:
            yield next(super().__iter__())
            raise KeyboardInterrupt

    monkeypatch.setattr(distributed, "as_completed", Interrupted)
    with pb.on_cluster(workers), pytest.raises(pb.BootstrapInterrupted) as caught:
        pb.bootstrap(simulate(1, rows=15), group="F", replicates=30, preset="paper")
    assert caught.value.bootstrap.replicates == 1
    # What runs cannot be stopped, and one has come; the others go as soon as the scheduler hears.
    latest = time.monotonic() + 20
    while len(workers.run_on_scheduler(left)) > 2 + 1:
        assert time.monotonic() < latest


def test_clusters_that_cannot_be_used(
    workers: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_ANSWER", 0.2)
    with (
        pytest.raises(pb.ClusterError, match="no Dask scheduler answers at"),
        pb.on_cluster("tcp://127.0.0.1:1"),
    ):
        pass
    there = re.escape(version("poolbn"))
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.1")
    with (
        pytest.raises(pb.ClusterError, match=rf"has poolbn {there}, and here is 0\.0\.1"),
        pb.on_cluster(workers),
    ):
        pass
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(pb.MissingPackageError, match=r"pip install poolbn\[dask\]"),
        pb.on_cluster(workers),
    ):
        pass


def test_a_scheduler_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_FIRST_WORKER", 0.2)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        address = empty.scheduler_address
        with (
            pytest.raises(pb.ClusterError, match=f"no workers .* dask worker {address}"),
            pb.on_cluster(address),
        ):
            pass


def test_units_may_have_rows_in_several_partitions() -> None:
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), rng.integers(1, 6, 60))
    frame = pd.DataFrame({"clinic": patient % 3, "patient": patient})
    for name in "xy":
        frame[name] = rng.normal(size=60)[patient] + rng.normal(size=len(patient))
    for named in (frame, frame.assign(patient="p" + frame["patient"].astype(str))):
        mixed = named.sample(frac=1.0, random_state=1, ignore_index=True)
        whole = pb.stats(mixed, group=["clinic", "patient"])
        parts = dd.from_pandas(mixed, npartitions=7)
        found = pb.stats(parts, group=["clinic", "patient"])
        assert found.units is not None
        for name in ("data_set", "size", "count", "sums", "squares"):
            own, other = getattr(found.units, name), getattr(whole.units, name)
            np.testing.assert_allclose(own, other, atol=1e-9)
        fits = [pb.fit_node(of, "y", ["x"]) for of in (found, whole)]
        assert fits[0].loglik == pytest.approx(fits[1].loglik, rel=1e-10)
        assert pb.learn(parts, group=["clinic", "patient"]).unit == "patient"
