"""Files written whole: their modes, links to them, and what killed writers leave behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import poolbn as pb
from poolbn.writing import write_whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes, links and locks of POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("own", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_saved_over_keeps_its_mode(own: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_whole(path, b"1")
    path.chmod(own)
    write_whole(path, b"2")
    assert (path.read_bytes(), mode(path)) == (b"2", own)


def test_the_umask_of_the_process_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of all threads: another could write a secret file that everybody may read."""

    def changed(mask: int) -> int:
        raise AssertionError("umask")

    monkeypatch.setattr(os, "umask", changed)
    write_whole(tmp_path / "a", b"1")
    assert (tmp_path / "a").read_bytes() == b"1"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="gives files away")
def test_a_file_of_another_user_stays_theirs(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    os.chown(tmp_path / "a", 4711, 4712)
    write_whole(tmp_path / "a", b"2")
    there = (tmp_path / "a").stat()
    assert (there.st_uid, there.st_gid) == (4711, 4712)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_written_through(there: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "inner" / "target", tmp_path / "link"
    target.parent.mkdir()
    if there:
        target.write_bytes(b"1")
        target.chmod(0o600)
    link.symlink_to("inner/target")
    write_whole(link, b"2")
    assert link.is_symlink()
    assert target.read_bytes() == b"2"
    assert not there or mode(target) == 0o600
    assert os.listdir(target.parent) == ["target"]


def test_what_is_no_file_is_not_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("pipe", "loop", "", "a\0b", "no folder/a"):
        with pytest.raises(pb.FileError, match="cannot write"):
            write_whole(f"{tmp_path}/{name}", b"1")
    assert sorted(os.listdir(tmp_path)) == ["loop", "pipe"]


# Leftovers

WRITER = """
import os, sys
from poolbn.writing import write_whole

def stop(*given):
    print("writing", flush=True)
    sys.stdin.read()

os.fsync = stop
write_whole(sys.argv[1], b"1")
"""


def writing(path: Path) -> subprocess.Popen[str]:
    """A process in the middle of writing a file."""
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "writing\n"
    return child


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    (tmp_path / ".poolbn-settings").write_text("a user's")
    killed, at_work = writing(tmp_path / "killed"), writing(tmp_path / "at work")
    with killed, at_work:
        assert len(os.listdir(tmp_path)) == 3
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        write_whole(tmp_path / "other", b"2")
        assert len(os.listdir(tmp_path)) == 3  # that of a writer at work is still there
        assert at_work.stdin is not None
        at_work.stdin.close()
    assert sorted(os.listdir(tmp_path)) == [".poolbn-settings", "at work", "other"]


def test_writers_do_not_remove_each_other(tmp_path: Path) -> None:
    failed = []

    def write(name: str) -> None:
        try:
            for _ in range(100):
                write_whole(tmp_path / name, name.encode())
        except pb.FileError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(os.listdir(tmp_path)) == list("abcd")
