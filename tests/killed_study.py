"""Kills a small study at random moments, starts it again, and compares it with an undisturbed one.

A script of its own: it forks, which a process with threads should not. It ends with an error when a
file is broken, differs, or is left over.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.study.run import run_study
from benchmarks.study.study import PRESETS, Preset

KILLS = 10
TINY = Preset((4,), (1,), (2, 3), (3,), rows=(10, 20), networks=4, replicates=1)


def parts(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("parts/*.parquet"))}


def wait_for_a_file(folder: Path, child: int) -> None:
    """Return as soon as something appears in a folder, or the child has ended."""
    before = os.listdir(folder) if folder.exists() else []
    while not folder.exists() or os.listdir(folder) == before:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return


def main(where: Path) -> None:
    PRESETS["tiny"] = TINY
    whole, killed = where / "whole", where / "killed"
    run_study(where / "warm", preset="tiny", workers=1)  # loads the kernels
    began = time.monotonic()
    run_study(whole, preset="tiny", workers=1)
    takes = time.monotonic() - began
    expected = parts(whole)
    assert len(expected) == len(list(TINY.chunks()))
    rng = random.Random(1)
    kills = 0
    while kills < KILLS:
        child = os.fork()
        if child == 0:
            run_study(killed, preset="tiny", workers=1)
            os._exit(0)
        time.sleep(rng.uniform(0, takes / 4))  # the random moment
        if kills % 2:  # or one while a file is written
            wait_for_a_file(killed / "parts", child)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        there = parts(killed)
        assert all(expected[name] == content for name, content in there.items())
        if os.WIFSIGNALED(status):
            kills += 1
        else:
            shutil.rmtree(killed)
    run_study(killed, preset="tiny", workers=1)
    assert parts(killed) == expected
    assert not list(killed.rglob(".poolbn-*"))
    print(f"killed {kills} times")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
