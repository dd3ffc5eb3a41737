"""Kernels that are compiled by processes side by side."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import poolbn as pb
from poolbn.run import compiling


def test_all_kernels_are_compiled_by_somebody() -> None:
    """A module with functions that are kept in numba's cache is in one of the groups."""
    folder = Path(pb.__file__).parent / "kernels"
    keeps = re.compile(r"^@(entry|unit)\(|= minimiser\(", re.MULTILINE)
    found = [path.stem for path in folder.glob("*.py") if keeps.search(path.read_text())]
    assert len(found) > 10
    assert sorted(found) == sorted(compiling._SECONDS)


def _nowhere(module: str) -> bool:
    """Nothing is in numba's cache."""
    return False


@pytest.fixture
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing was compiled or foreseen, and there are two cores."""
    for name in ("_tasks", "_prefetched", "_waiting"):
        monkeypatch.setattr(compiling, name, type(getattr(compiling, name))())
    monkeypatch.setattr(compiling, "_processes", 0)
    monkeypatch.setattr(compiling, "_LINGER", 0.0)
    monkeypatch.setattr(compiling, "available_cores", lambda: 2)
    yield
    for thread in threading.enumerate():
        if thread.name == "poolbn-compiling":
            thread.join(60)
    assert not compiling._waiting


@pytest.mark.usefixtures("_afresh")
def test_the_user_is_told_once_for_what_and_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "available_cores", lambda: 1)
    assert not compiling.have_compiled("polya", _nowhere)
    assert not compiling.have_compiled("polya", _nowhere)
    words = capsys.readouterr().err
    assert words.count("\n") == 1
    assert re.search(r"compiling kernels for tables of discrete .* about 6 seconds", words)


@pytest.mark.usefixtures("_afresh")
@pytest.mark.parametrize("program", ["/no/such/program", "true"])
def test_without_helpers_this_process_compiles(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cannot be started, or end at once: nobody waits for them."""
    monkeypatch.setattr(sys, "executable", program)
    assert not compiling.have_compiled("shared", _nowhere)
    assert not compiling.have_compiled("moments", _nowhere)
    for task in compiling._tasks.values():
        assert task.over.wait(10)


@pytest.fixture
def _nobody(_afresh: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All processes are busy, and nobody waits."""
    monkeypatch.setattr(compiling, "_processes", 2)
    monkeypatch.setattr(compiling._Task, "wait", lambda task: True)
    yield
    compiling._waiting.clear()


@pytest.mark.usefixtures("_nobody")
def test_what_is_waited_for_compiles_first() -> None:
    compiling._start(("shared", "pooled", "moments"), 2)
    compiling.prioritise("moments")
    compiling.prioritise("nothing")
    assert [task.name for task in compiling._waiting] == ["moments", "pooled", "shared"]


@pytest.mark.usefixtures("_nobody")
def test_what_is_foreseen_compiles_too(capsys: pytest.CaptureFixture[str]) -> None:
    """With what goes with it, the longest first; what is in the cache does not."""
    compiling.prefetch("moves", "shared")
    assert not compiling._tasks
    compiling.have_compiled("patterns", lambda module: module in ("moments", "bounds"))
    waiting = [task.name for task in compiling._waiting]
    rest = ["screens", "moves", "estimates", "candidates"]
    assert waiting == ["patterns", "shared", "deviance", *rest]
    words = capsys.readouterr().err
    assert "for sums, searches and mixed-effects models, once" in words
    assert "about 11 seconds" in words  # (0.5 + 5.6 + 4.4 + 2.6 + 1.7 + 1.4 + 1) / 2, and 2
    compiling.have_compiled("patterns", _nowhere)
    assert "moments" in compiling._tasks
    assert compiling._waiting[0].name == "patterns"


@pytest.mark.usefixtures("_afresh")
def test_a_process_that_ends_takes_nothing_with_it() -> None:
    """One has nothing more to do while others are asked for more: that is still compiled."""
    compiling._start(("regress",), 2)
    assert compiling._tasks["regress"].wait()
    compiling._start(("patterns", "estimates"), 2)
    assert compiling._tasks["patterns"].wait()
    assert compiling._tasks["estimates"].wait()


@pytest.mark.usefixtures("_afresh")
def test_a_process_compiles_what_it_is_asked_for_alone() -> None:
    """`estimates` calls nothing of `regress`; both are asked for, one after the other."""
    compiling._start(("regress", "estimates"), 2)
    assert compiling._tasks["regress"].wait()
    assert compiling._tasks["estimates"].wait()


LEFT = """
import sys
from poolbn.run import compiling
compiling._only = {"regress"}
from poolbn.kernels import regress, moments, deviance
assert type(moments.sort).__name__ == "function" and len(compiling._left["moments"]) == 3
assert len(compiling._left["deviance"]) == 5 and "regress" not in compiling._left
print(type(regress.least_squares).__name__)
"""


def test_a_process_leaves_other_modules_to_others() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT], capture_output=True, text=True, check=True, stdin=None
    )
    assert done.stdout == "CPUDispatcher\n"


def test_the_command_says_how_long_and_where() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "poolbn", "warmup", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["seconds"] > 0
    assert Path(found["folder"]).is_dir()
