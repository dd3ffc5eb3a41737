"""Files written whole or not at all, and what can be written into them."""

from __future__ import annotations

import math
import os
import stat
import tempfile
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from poolbn.errors import FileError


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that at any moment either the old one is there or the whole new one.

    Raises:
        FileError: it cannot be written there.
    """
    target = os.path.abspath(os.fspath(path))
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".poolbn-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # as an ordinary new file
        os.replace(temporary, target)
    except BaseException as error:
        if temporary:
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise FileError(f"cannot write {os.fspath(path)!r}: {error.strerror}") from error
        raise


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading, but no pipe, device or folder: these may wait or never end.

    Raises:
        FileError: it is not there, cannot be read, or is no regular file.
    """
    shown = repr(os.fspath(path))
    if "\0" in os.fsdecode(path):
        raise FileError(f"cannot read {shown}: a name of a file has no NUL")
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileError(f"cannot read {shown}: it is not a regular file")
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise FileError(f"cannot read {shown}: {error.strerror}") from error


def check_levels(levels: Iterable[Hashable]) -> None:
    """Raise for names of data sets that a file cannot hold.

    Raises:
        FileError: a name is not a text, a finite number or a bool.
    """
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
