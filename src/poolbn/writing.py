"""Files written whole or not at all, and what can be written into them."""

from __future__ import annotations

import math
import os
import re
import secrets
import stat
import time
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from poolbn.errors import FileError

_LOCKS = os.name == "posix"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_next_sweep: dict[str, float] = {}  # when to look into a folder again
_SHARE = 0.02  # of the time that looking may take
_LEFTOVER = re.compile(r"\.poolbn-[0-9a-f]{16}")  # what a killed writer leaves behind


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that at any moment either the old one is there or the whole new one.

    A file that is there keeps its mode and owner, and a symbolic link leads to the new one. What
    killed writers left in the folder goes.
    """
    shown = repr(os.fspath(path))
    if "\0" in os.fsdecode(path):
        raise FileError(f"cannot write {shown}: a name of a file has no NUL")
    temporary = ""
    try:
        target = os.path.realpath(path)  # a link stays, and what it leads to is replaced
        there = None
        with suppress(FileNotFoundError):
            there = os.stat(target)
        if there is not None and not stat.S_ISREG(there.st_mode):
            raise FileError(f"cannot write {shown}: it is not a regular file")
        _sweep(os.path.dirname(target))
        # The kernel takes the user's umask off a new file's mode.
        handle, temporary = _locked(os.path.dirname(target), 0o666 if there is None else 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
            if there is not None:
                _as_before(temporary, there)
            if _LOCKS:
                os.replace(temporary, target)
        if not _LOCKS:  # there an open file cannot be moved
            os.replace(temporary, target)
    except BaseException as error:
        if temporary:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise FileError(f"cannot write {shown}: {error.strerror}") from error
        raise


def _as_before(temporary: str, there: os.stat_result) -> None:
    """Mode and owner of the file that was there; who cannot give a group keeps its rights back."""
    mode = stat.S_IMODE(there.st_mode)
    own = os.stat(temporary)
    if _LOCKS and (own.st_uid, own.st_gid) != (there.st_uid, there.st_gid):
        try:
            os.chown(temporary, there.st_uid, there.st_gid)
        except PermissionError:
            mode &= ~0o070
    os.chmod(temporary, mode)


# A file is locked while it is written. The system takes the lock away when the process ends, in
# whatever way, so a file that somebody else can lock belongs to nobody.


def _locked(folder: str, mode: int) -> tuple[int, str]:
    """A new file, open and locked."""
    while True:
        path = os.path.join(folder, f".poolbn-{secrets.token_hex(8)}")
        handle = os.open(path, _NEW, mode)
        with suppress(OSError):  # some file systems have no locks
            lock(handle, wait=True)
        if os.path.exists(path):
            return handle, path
        os.close(handle)  # another writer took it for a leftover before it was locked


def _sweep(folder: str) -> None:
    """Remove what writers that are gone left in a folder; rarely where there are many files."""
    began = time.monotonic()
    if not _LOCKS or began < _next_sweep.get(folder, began):
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _LEFTOVER.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_unlocked(entry.path)
    took = time.monotonic() - began
    _next_sweep[folder] = began + took / _SHARE


def _remove_unlocked(path: str) -> None:
    with suppress(OSError):  # it is in use, or another's
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            lock(handle, wait=False)
            os.unlink(path)
        finally:
            os.close(handle)


def lock(handle: int, *, wait: bool) -> None:
    """Lock an open file; an OSError where it is locked, or cannot be."""
    if _LOCKS:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading, but no pipe or device: these may wait or never end."""
    shown = repr(os.fspath(path))
    if "\0" in os.fsdecode(path):
        raise FileError(f"cannot read {shown}: a name of a file has no NUL")
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # folders have an error of their own
            raise FileError(f"cannot read {shown}: it is not a regular file")
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise FileError(f"cannot read {shown}: {error.strerror}") from error


def check_levels(levels: Iterable[Hashable]) -> None:
    """Raise for names of data sets that a file cannot hold."""
    for level in levels:
        if isinstance(level, float) and not math.isfinite(level):
            raise FileError(
                f"data set {level!r} cannot be saved: NaN and infinity are no names; use text, for "
                "example str(name)"
            )
        if type(level) not in (str, int, float, bool):
            raise FileError(
                f"data set {level!r} has a name of type {type(level).__name__}, which cannot be "
                "saved; use text, whole numbers, floats or bools as names, for example str(name)"
            )
