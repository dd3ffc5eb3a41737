from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import stat
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import simulate

import poolbn as pb
from poolbn.moments.statsfile import SECTIONS
from poolbn.nodes.files import encode, written
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import Given
from poolbn.nodes.predictive import uncertainty

FRAME = simulate(7, data_sets=4, rows=15, parents=3)
POOLINGS = ["complete", "none", "partial", "auto"]
each_pooling = pytest.mark.parametrize("pooling", POOLINGS)


@cache
def network(pooling: str = "partial") -> pb.Network:
    return pb.learn(FRAME, group="F", pooling=pooling, search=pb.HillClimb(restarts=1))


def large(nodes: int = 40) -> pb.Network:
    """A chain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, nodes)).cumsum(axis=1)
    frame = pd.DataFrame(X, columns=[f"measurement_{k:02}" for k in range(nodes)])
    stats = pb.stats(frame.assign(F=np.repeat(list("abc"), 20)), group="F")
    arcs = list(zip(stats.names, stats.names[1:], strict=False))
    return pb.learn(stats, start=arcs, search=pb.HillClimb(max_iter=0))


def assert_equal(a: pb.Network, b: pb.Network) -> None:
    """Bit for bit, types included."""
    assert (a.dag.nodes, a.dag.arcs) == (b.dag.nodes, b.dag.arcs)
    assert a.score == b.score
    assert a.trace == b.trace
    assert [type(move) for move in a.trace] == [type(move) for move in b.trace]
    assert [type(level) for level in a.levels] == [type(level) for level in b.levels]
    assert list(a.fits) == list(b.fits)
    for node in a.fits:
        names = {field.name for field in dataclasses.fields(GaussianFit)}
        found = [net.fits[node].intervals for net in (a, b)]
        assert (found[0] is None) == (found[1] is None)
        for mine, yours in zip(*(intervals or () for intervals in found), strict=True):
            assert mine.tobytes() == yours.tobytes()
        for mine, yours in zip(*(uncertainty(net.fits[node]) for net in (a, b)), strict=True):
            assert mine.tobytes() == yours.tobytes()
        for name in names - {"sums", "saved_intervals", "total_cov", "between_cov"}:
            mine, yours = (getattr(net.fits[node], name) for net in (a, b))
            assert type(mine) is type(yours), name
            if isinstance(mine, np.ndarray):
                assert mine.dtype == yours.dtype
                assert mine.shape == yours.shape
                assert mine.tobytes() == yours.tobytes()
            else:
                assert mine == yours


@each_pooling
def test_what_is_saved_loads_equal(pooling: str, tmp_path: Path) -> None:
    net = network(pooling)
    assert net.trace
    net.save(tmp_path / "net.json")
    loaded = pb.load(tmp_path / "net.json")
    assert_equal(net, loaded)
    assert repr(loaded) == repr(net)
    pd.testing.assert_frame_equal(loaded.effects(), net.effects(), check_exact=True)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "net.json").read_bytes()


@pytest.mark.parametrize(
    "levels", [["a", "b", "c", "d"], [3, 1, 2, 0], [0.5, 1.5, 2.5, 3.5], ["1", "2", "é", "<"]]
)
def test_names_of_data_sets_keep_their_type(levels: list, tmp_path: Path) -> None:
    frame = FRAME.assign(F=[levels[int(name[-1])] for name in FRAME["F"]])
    net = pb.learn(frame, group="F", pooling="complete")
    net.save(tmp_path / "net.json")
    assert_equal(net, pb.load(tmp_path / "net.json"))
    assert set(net.levels) == set(levels)
    assert {type(level) for level in net.levels} == {type(level) for level in levels}


@each_pooling
@pytest.mark.parametrize("trouble", ["constant", "duplicate", "few"])
@pytest.mark.filterwarnings("ignore::poolbn.DataWarning")
def test_nodes_without_a_likelihood_are_saved_too(
    trouble: str, pooling: str, tmp_path: Path
) -> None:
    frame, arcs = {
        "constant": (FRAME.assign(k=2.0), [("k", "y")]),
        "duplicate": (FRAME.assign(k=FRAME["x1"]), [("k", "y"), ("x1", "y")]),
        "few": (FRAME.groupby("F").head(1), [("x1", "y"), ("x2", "y"), ("x3", "y")]),
    }[trouble]
    net = pb.learn(frame, group="F", pooling=pooling, start=arcs, search=pb.HillClimb(max_iter=0))
    bad = net.fits["y"]
    assert not bad.status.ok
    assert bad.loglik == net.score == -math.inf
    net.save(tmp_path / "net.json")
    assert_equal(net, pb.load(tmp_path / "net.json"))
    (line,) = (line for line in repr(net).split("\n") if line.startswith(f"  {bad.status!s}: "))
    assert "y" in re.split("[ ,:]+", line)


@each_pooling
def test_a_small_network_is_printed_whole(pooling: str) -> None:
    net = network(pooling)
    first, second, *rest = repr(net).split("\n")
    assert first == f"Network: 4 nodes, {len(net.dag.arcs)} arcs, 4 data sets, 60 rows"
    assert f"score {net.score:.4f}" in second
    poolings = {str(fit.pooling) for fit in net.fits.values()}
    short = {text.replace(" pooling", "") for text in poolings}
    assert all(text in second for text in (poolings if len(poolings) == 1 else short))
    arcs = [f"{p} -> {c}" for p, c in net.dag.arcs]
    assert [line.split("  ")[1] for line in rest] == [*arcs, *net.endings()]
    usual = (pb.Status.CONVERGED, pb.Status.GIVEN)
    ended = {str(fit.status) for fit in net.fits.values() if fit.status not in usual}
    assert {line.split(":")[0].split(";")[0] for line in net.endings()} == ended
    assert max(map(len, repr(net).split("\n"))) <= 120


def test_a_large_network_is_printed_in_part() -> None:
    net = large()
    assert len(net.dag.arcs) == 39
    lines = repr(net).split("\n")
    assert len(lines) == 2 + 12 + 1 + len(net.endings())
    assert lines[14] == "  ... 27 more in .effects()"
    assert max(map(len, lines)) <= 120


def test_html_is_escaped() -> None:
    frame = FRAME.rename(columns={"x1": "<x>", "y": "a&b"})
    frame["F"] = "<" + frame["F"] + ">"
    net = pb.learn(
        frame, group="F", pooling="complete", constraints=pb.Constraints(required=[("<x>", "a&b")])
    )
    page = net._repr_html_()
    assert "<table" in page
    assert "</table>" in page
    assert "&lt;x&gt;" in page
    assert "a&amp;b" in page
    assert "<x>" not in page
    assert "<set" not in page


def test_writing_is_whole_or_not_at_all(monkeypatch, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    network("complete").save(path)
    before = path.read_bytes()

    def fail(*args) -> None:
        raise OSError(28, "No space left on device")

    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(pb.FileError, match="No space left on device"):
                network("partial").save(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["net.json"]
    network("partial").save(path)
    assert_equal(pb.load(path), network("partial"))


def test_an_interrupt_while_writing_leaves_nothing(monkeypatch, tmp_path: Path) -> None:
    def stop(*args) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        network().save(tmp_path / "net.json")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="no umask")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_files_have_ordinary_permissions(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        network().save(tmp_path / "net.json")
        assert os.umask(umask) == umask  # it is as it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "net.json").stat().st_mode) == 0o666 & ~umask


def test_the_file_is_json_that_others_can_read(tmp_path: Path) -> None:
    net = network()
    net.save(tmp_path / "net.json")
    content = json.loads((tmp_path / "net.json").read_text(encoding="utf-8"))
    assert (content["format"], content["version"]) == ("poolbn-network", 5)
    assert [tuple(arc) for arc in content["arcs"]] == list(net.dag.arcs)


def documented() -> dict[str, set[str]]:
    """The fields in each table of the description of the file."""
    text = (Path(__file__).parents[1] / "docs" / "file_format.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        title: {
            name
            for cell in re.findall(r"^\| (`[^|]+`) \|", body, flags=re.MULTILINE)
            for name in re.findall(r"`(\w+)`", cell)
        }
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


POOLING_KINDS = (pb.Complete(), pb.NoPooling(), pb.Partial(), Given("simulated"))


def test_all_fields_of_the_file_are_documented(tmp_path: Path) -> None:
    network().save(tmp_path / "net.json")
    content = json.loads((tmp_path / "net.json").read_text(encoding="utf-8"))
    fits = list(content["fits"].values())
    frame = simulate(3, data_sets=4, rows=15, parents=3)
    table = pb.table(frame.assign(up=frame["y"] > 0, down=frame["y"] < 1), group="F")
    nodes = [
        pb.fit_node(table, "up", ["down"], pooling=pb.Partial(discrete=how))
        for how in ("table", "logit")
    ]
    grades = frame.assign(grade=pd.qcut(frame["y"], 3, labels=["low", "middle", "high"]))
    graded = pb.table(grades, group="F", kinds={"grade": "ordinal"})
    nodes.append(pb.fit_node(graded, "grade", ["x1"]))
    how = pb.Complete(continuous="conditional")
    nodes.append(pb.fit_node(graded, "y", ["grade", "x1"], pooling=how))
    assert documented() == {
        "The file of statistics": set(SECTIONS),
        # where cells were missing, where there are units inside data sets, where rows were split
        "The network": {*content, "missing", "unit", "split"},
        "A node": {"unit_share", "was_set", "was_changed", *(name for fit in fits for name in fit)},
        "A node with another model": {
            "unit_sd",
            "was_set",
            "was_changed",
            *(name for fit in nodes for name in encode(fit)),
        },
        "A pooling": {"discrete", *(name for kind in POOLING_KINDS for name in written(kind))},
        "A move": {name for move in content["trace"] for name in move},
        "Versions": set(),
    }


def test_columns_that_are_the_same_are_named_in_the_result() -> None:
    frame = simulate(3, data_sets=4, rows=15, parents=3)
    frame = frame.assign(again=1e3 * frame["y"] + 5)
    with pytest.warns(pb.DataWarning, match="'y' and 'again' are the same"):
        net = pb.learn(frame, group="F")
    assert "'y' and 'again' are the same but for unit and origin; arcs there" in repr(net)
