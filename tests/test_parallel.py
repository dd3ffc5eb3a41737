"""Maps over threads: order, errors, and maps inside maps. Processes whose parent is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from poolbn.run.parallel import map_threads


def test_results_are_in_order_whoever_makes_them() -> None:
    """Two threads are there at once: each waits for the other."""
    meeting = threading.Barrier(2)
    threads = set()

    def work(item: int) -> int:
        if item < 2:
            meeting.wait(timeout=30)
        threads.add(threading.get_ident())
        return item * item

    assert map_threads(work, range(100), threads=2) == [i * i for i in range(100)]
    assert len(threads) == 2


@pytest.mark.parametrize("error", [ValueError, IndexError, KeyboardInterrupt])
@pytest.mark.parametrize("own", [True, False])
def test_an_error_ends_the_map(error: type[BaseException], own: bool) -> None:
    """In this thread or in another one: no item is begun after it, and the error is told."""
    here, failing = threading.get_ident(), threading.Event()
    begun = []

    def work(item: int) -> None:
        begun.append(item)
        if (threading.get_ident() == here) == own:
            failing.set()
            raise error("this one")
        failing.wait(timeout=30)

    with pytest.raises(error, match="this one"):
        map_threads(work, range(1000), threads=2)
    assert len(begun) < 1000


def test_a_map_inside_a_map_ends() -> None:
    def outer(item: int) -> int:
        return sum(map_threads(lambda inner: item * inner, range(10), threads=3))

    assert map_threads(outer, range(50), threads=3) == [45 * item for item in range(50)]


# Killed

PARENT = """
import functools, os, pathlib, threading
import numpy as np
from poolbn.run.parallel import map_processes

def work(shared, item):
    assert isinstance(shared, np.memmap)
    pathlib.Path(FOLDER, str(os.getpid())).touch()
    threading.Event().wait()

list(map_processes(functools.partial(work, np.ones(10**6)), range(4), 2))
"""


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes")
def test_a_killed_parent_leaves_no_workers_and_no_shared_memory(tmp_path: Path) -> None:
    at_work, shared = tmp_path / "at work", tmp_path / "shared"
    at_work.mkdir()
    shared.mkdir()
    code = PARENT.replace("FOLDER", repr(str(at_work)))
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=dict(os.environ) | {"JOBLIB_TEMP_FOLDER": str(shared)},
        stderr=subprocess.DEVNULL,
    ) as parent:
        try:
            assert wait_until(lambda: len(os.listdir(at_work)) == 2, 60)
            assert os.listdir(shared) != []
        finally:
            parent.kill()
    workers = os.listdir(at_work)
    assert wait_until(lambda: not any(Path("/proc", w).exists() for w in workers), 5)
    assert wait_until(lambda: os.listdir(shared) == [], 5)
