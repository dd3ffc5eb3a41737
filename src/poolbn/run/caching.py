"""Where compiled kernels are kept, also for users that can write nowhere else.

numba keeps them beside the source, or in the user's home. A service user, a container with any user
id or a read-only image have neither. Then they are kept in a folder of temporary files that nobody
else may write: what is in it is run.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

_told: list[str] = []  # what a user should know when kernels compile
_SET = "NUMBA_CACHE_DIR names a folder to keep them in"


def cost() -> str:
    """A sentence for the user on where compiled kernels are kept, if it is not as usual."""
    return "".join(f"\npoolbn: {words}" for words in _told)


def _config() -> Any:
    """Numba's own, which is typed no more than the rest of it."""
    from numba.core import config

    return config


@contextmanager
def kept_in(folder: str) -> Iterator[None]:
    """With a folder for what numba compiles here; "" leaves it to numba."""
    config = _config()
    before = config.CACHE_DIR
    config.CACHE_DIR = folder or before
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def place(source: str) -> str | None:
    """The folder for kernels of a folder of source; "" where numba finds one, None for none."""
    from numba.misc import appdirs

    known: Any = appdirs
    beside = os.path.join(source, "__pycache__")
    home = known.AppDirs(appname="numba", appauthor=False).user_cache_dir
    named = _config().CACHE_DIR
    usual = [os.path.abspath(named)] if named else []
    # A user without a home has "~", which would be a folder here.
    usual += [beside, *([home] if os.path.isabs(home) else [])]
    if any(map(_can_write, usual)):
        return ""
    private = _private()
    if private is None:
        _told.append(
            f"neither {beside!r} nor a temporary folder can be written, so they compile again at "
            f"each start; {_SET}"
        )
    else:
        _told.append(
            f"{beside!r} cannot be written, so they are kept in {private!r}, and compile again "
            f"when that is gone; {_SET}"
        )
    return private


def _can_write(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private() -> str | None:
    """A folder of temporary files that is this user's, and that nobody else can write or swap."""
    if os.name != "posix":
        return None
    try:
        base = tempfile.gettempdir()
        folder = os.path.join(base, f"poolbn-kernels-{os.geteuid()}")
        above = os.stat(base)
        if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
            return None
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        there = os.lstat(folder)
    except OSError:
        return None
    own = stat.S_ISDIR(there.st_mode) and there.st_uid == os.geteuid()
    return folder if own and not there.st_mode & 0o077 and _can_write(folder) else None
