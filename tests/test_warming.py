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
from poolbn.run import warming


def test_all_kernels_are_compiled_by_somebody() -> None:
    """A module with functions that are kept in numba's cache is in one of the groups."""
    folder = Path(pb.__file__).parent / "kernels"
    keeps = re.compile(r"^@(entry|apart)\(|= minimiser\(", re.MULTILINE)
    found = [path.stem for path in folder.glob("*.py") if keeps.search(path.read_text())]
    assert len(found) > 10
    assert sorted(found) == sorted(name for group in warming._GROUPS for name in group.modules)


@pytest.fixture
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing was compiled or told, and there are two cores."""
    for name in ("_tasks", "_told"):
        monkeypatch.setattr(warming, name, type(getattr(warming, name))())
    monkeypatch.setattr(warming, "available_cores", lambda: 2)
    yield
    for thread in threading.enumerate():
        if thread.name == "poolbn-compiling":
            thread.join(60)
    assert not warming._waiting


@pytest.mark.usefixtures("_afresh")
def test_the_user_is_told_once_for_what_and_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "available_cores", lambda: 1)
    assert not warming.have_compiled("polya")
    assert not warming.have_compiled("polya")
    words = capsys.readouterr().err
    assert words.count("\n") == 1
    assert re.search(r"compiling kernels for tables of discrete .* about \d+ seconds", words)


@pytest.mark.usefixtures("_afresh")
@pytest.mark.parametrize("program", ["/no/such/program", "true"])
def test_without_helpers_this_process_compiles(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cannot be started, or end at once: nobody waits for them."""
    monkeypatch.setattr(sys, "executable", program)
    assert not warming.have_compiled("shared")
    assert not warming.have_compiled("moments")
    for task in warming._tasks.values():
        assert task.over.wait(10)


@pytest.mark.usefixtures("_afresh")
def test_what_is_waited_for_compiles_first() -> None:
    warming._start(("shared", "pooled", "moments"), 0)
    warming.hurry("moments")
    warming.hurry("nothing")
    assert [task.name for task in warming._waiting] == ["moments", "shared", "pooled"]
    warming._waiting.clear()


@pytest.mark.usefixtures("_afresh")
def test_a_process_compiles_what_it_is_asked_for_alone() -> None:
    """`estimates` calls nothing of `regress`; both are asked for, one after the other."""
    warming._start(("regress", "estimates"), 1)
    assert warming._tasks["regress"].wait()
    assert warming._tasks["estimates"].wait()


LEFT = """
import sys
from poolbn.run import warming
warming._only = {"regress"}
from poolbn.kernels import regress, moments, deviance
assert type(moments.sort).__name__ == "function" and len(warming._left["moments"]) == 3
assert len(warming._left["deviance"]) == 5 and "regress" not in warming._left
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
