"""A file of statistics holds what poolbn writes, to the byte: nothing can hide in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poolbn as pb

HIDDEN = "61.5;NY;2999"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.standard_normal((40, 3)).round(2), columns=["x", "y", "z"])
    table["site"] = np.repeat(["a", "b"], 20)
    path = tmp_path_factory.mktemp("stats") / "s.stats"
    pb.stats(table, group="site", inputs=["y"]).save(path)
    return path.read_bytes()


def signed(body: bytes) -> bytes:
    """A file that only its content can betray."""
    checksum = hashlib.sha256(body).hexdigest()
    return f"poolbn-statistics 3 {len(body)} {checksum}\n".encode() + body


def header(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    """Another header, written as poolbn writes one."""

    def changed(body: bytes) -> bytes:
        line, _, payload = body.partition(b"\n")
        content = json.loads(line)
        change(content)
        return json.dumps(content).encode() + b"\n" + payload

    return changed


def text(old: str, new: str) -> Callable[[bytes], bytes]:
    def changed(body: bytes) -> bytes:
        assert old.encode() in body
        return body.replace(old.encode(), new.encode(), 1)

    return changed


HIDING = {
    "levels as a dict": header(lambda c: c.update(levels={"a": HIDDEN, "b": 0})),
    "names as a dict": header(lambda c: c.update(names={"x": HIDDEN, "y": 0, "z": 0})),
    "names as a text": header(lambda c: c.update(names="xyz")),
    "a key twice": text('"group":', f'"group": "{HIDDEN}", "group":'),
    "a section twice": text('"moments":', '"moments": 7, "moments":'),
    "white space": text('"levels": [', f'"levels": [{" " * 5000}'),
    "white space after the header": text("}}\n", "}} \n"),
    "escapes": text('"x"', '"\\u0078"'),
    "a number in other words": text('["a", "b"]', '["a", 1.00]'),
    "keys in another order": header(lambda c: c.update(group=c.pop("group"))),
    "a release": header(lambda c: c.update(poolbn=HIDDEN)),
    "a release that is none": header(lambda c: c.update(poolbn=[HIDDEN])),
    "a long release": header(lambda c: c.update(poolbn="0." + "1" * 5000)),
    "white space in inputs": lambda body: text('"inputs": 5', '"inputs": 7')(
        text('["y"]', '[ "y" ]')(body)
    ),
}


def loaded(content: bytes, folder: Path) -> pb.GroupStats:
    (folder / "s.stats").write_bytes(content)
    return pb.GroupStats.load(folder / "s.stats")


@pytest.mark.parametrize("how", HIDING)
def test_nothing_hides_in_a_file(how: str, whole: bytes, tmp_path: Path) -> None:
    body = HIDING[how](whole.partition(b"\n")[2])
    with pytest.raises(pb.FileError, match=r"s\.stats' does not hold statistics as it should.*;"):
        loaded(signed(body), tmp_path)


def test_nothing_hides_in_the_first_line(whole: bytes, tmp_path: Path) -> None:
    first, _, body = whole.partition(b"\n")
    for other in (first + b" " * 50, first.replace(b" ", b"\t"), b" " + first):
        with pytest.raises(pb.FileError, match="first line"):
            loaded(other + b"\n" + body, tmp_path)
    with pytest.raises(pb.FileError, match="first line"):
        loaded(first.replace(b" 3 ", b" 3 0", 1) + b"\n" + body, tmp_path)


def test_what_is_not_changed_loads(whole: bytes, tmp_path: Path) -> None:
    stats = loaded(signed(whole.partition(b"\n")[2]), tmp_path)
    assert stats.inputs == ("y",)
    stats.save(tmp_path / "again.stats")
    assert (tmp_path / "again.stats").read_bytes() == whole


# What no rows have


def by_hand(n: int, scatter: np.ndarray, **fields: Any) -> pb.GroupStats:
    names = tuple(f"x{k}" for k in range(len(scatter)))
    given = {"names": names, "levels": ("a",), "n": np.array([n]), "dropped": np.array([0])}
    given |= {"mean": np.zeros((1, len(scatter))), "scatter": scatter[None]}
    return pb.GroupStats(**given | fields)


def refused(stats: pb.GroupStats, words: str, folder: Path) -> None:
    """When it is saved; and the same bytes when they are loaded."""
    path = folder / "s.stats"
    with pytest.raises(pb.FileError, match=f"s.stats.*{words}"):
        stats.save(path, allow_small=True)
    assert os.listdir(folder) == []
    names, size = list(stats.names), 8 * (2 + len(stats.names) + len(stats.names) ** 2)
    told = {"poolbn": "0.2.0", "group": stats.group, "names": names, "levels": ["a"]}
    arrays = (stats.n, stats.mean, stats.scatter, stats.dropped)
    body = json.dumps(told | {"sections": {"moments": size}}).encode() + b"\n"
    path.write_bytes(signed(body + b"".join(array.tobytes() for array in arrays)))
    with pytest.raises(pb.FileError, match=f"s.stats.*{words}"):
        pb.GroupStats.load(path)
    path.unlink()


def test_two_rows_have_no_scatter_of_rank_three(tmp_path: Path) -> None:
    refused(by_hand(2, np.eye(3)), "2 rows.*rank 3", tmp_path)


def test_a_group_is_no_column(tmp_path: Path) -> None:
    refused(by_hand(9, np.eye(2), group="x1"), "'x1'.*group", tmp_path)
    stats = pb.stats({"a": pd.DataFrame({"data_set": np.arange(20.0), "x": np.ones(20)})})
    with pytest.raises(pb.FileError, match="'data_set' has the name of the group; rename"):
        stats.save(tmp_path / "s.stats")


@pytest.mark.parametrize("most", [2**53 + 1, 2**63 - 1])
def test_counts_do_not_overflow(most: int, tmp_path: Path) -> None:
    refused(by_hand(most, np.eye(2)), "rows are more than", tmp_path)
    refused(by_hand(9, np.eye(2), dropped=np.array([most])), "rows are more than", tmp_path)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 9),
    offset=st.sampled_from([0.0, 1.0, -1e3, 1e9, 1e14]),
    scale=st.sampled_from([1e-9, 1e-3, 1.0, 1e6]),
)
def test_rows_have_a_scatter_of_their_rank(
    seed: int, n: int, offset: float, scale: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However their last digits are rounded; one rank more is refused."""
    rng = np.random.default_rng(seed)
    x = offset + scale * rng.standard_normal((n, 8))
    tables = [pd.DataFrame(rows).add_prefix("x") for rows in (x[:1], x)]
    stats = sum(pb.stats({"a": table}) for table in tables)
    path = tmp_path_factory.mktemp("rank") / "s.stats"
    stats.save(path, allow_small=True)
    assert pb.GroupStats.load(path).n[0] == n + 1


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    deep = b'{"poolbn": ' + b"[" * 100_000 + b"\n"
    with pytest.raises(pb.FileError, match="as it should"):
        loaded(signed(deep), tmp_path)


KEYS = ("poolbn", "group", "names", "levels", "sections")
VALUES = (None, True, -1, 1.5, 10**30, "x", "", [], {}, [[]], [None], {"a": 1}, {"moments": 10**30})


@pytest.mark.parametrize("key", KEYS)
def test_any_value_in_the_header_is_an_error_of_poolbn(
    key: str, whole: bytes, tmp_path: Path
) -> None:
    """But a group of another name, which is as good."""
    for value in VALUES:
        body = header(lambda c, value=value: c.update({key: value}))(whole.partition(b"\n")[2])
        if key == "group" and value in ("", "x"):
            continue
        with pytest.raises(pb.FileError):
            loaded(signed(body), tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.stats")
    for load in (pb.GroupStats.load, pb.load):
        with pytest.raises(pb.FileError, match="not a regular file"):
            load(tmp_path / "s.stats")
    with pytest.raises(pb.FileError, match="not a regular file"):
        pb.GroupStats.load("/dev/zero")


@pytest.mark.parametrize("name", [float("inf"), float("nan")])
def test_a_name_that_json_has_not_is_refused_when_it_is_saved(name: float, tmp_path: Path) -> None:
    with pytest.raises(pb.FileError, match="no names"):
        by_hand(30, np.eye(2), levels=(name,)).save(tmp_path / "s.stats")
    assert os.listdir(tmp_path) == []
