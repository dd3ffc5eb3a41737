"""Where rows are: the files that a path, a pattern, a folder or a URL stands for."""

from __future__ import annotations

import glob
import os
import re
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from poolbn.errors import DataError, nearest
from poolbn.tables.sources import first_line

KINDS = {"CSV": (".csv", ".csv.gz"), "Parquet": (".parquet",)}
SUFFIXES = tuple(suffix for suffixes in KINDS.values() for suffix in suffixes)
_HIDDEN = ("_", ".")  # as Spark and others mark what is not rows


def paths(entry: str) -> list[str]:
    """The files that a path, a pattern, a folder or a URL stands for, in alphabetical order.

    Raises:
        DataError: there is none, or a folder holds files of more than one kind.
    """
    from pyarrow.fs import FileType

    entry = entry if is_url(entry) else os.path.expanduser(entry)
    system, path = at_arrow(entry)
    try:
        kind = system.get_file_info(path).type
        if kind == FileType.Directory:
            return [_join(entry, name) for name in _inside(system, path, entry)]
    except OSError as error:
        raise DataError(f"cannot reach {entry!r}: {first_line(error)}") from error
    if kind != FileType.NotFound:
        return [entry]
    if is_url(entry):
        hint = "; URLs take no patterns, name the folder" if "*" in entry else ""
        raise DataError(f"there is no file {entry!r}{hint}")
    if glob.has_magic(entry):
        found = sorted(glob.glob(entry, recursive=True))
        if not found:
            raise DataError(f"no file matches the pattern {entry!r}")
        return found
    folder = os.path.dirname(entry) or "."
    beside = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    usable = [name for name in beside if name.lower().endswith(SUFFIXES)]
    hint = nearest(os.path.basename(entry), usable) if usable else ""
    raise DataError(f"there is no file {entry!r}{hint}")


def is_url(path: str) -> bool:
    """Whether this is a URL; a drive letter makes none."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def folders(path: str) -> list[str]:
    """The names in a path or URL, the file's own last.

    Examples:
        >>> folders("s3://bucket/a%20b/trial.parquet")
        ['', 'a b', 'trial.parquet']
    """
    inner = unquote(urlsplit(path).path) if is_url(path) else path.replace(os.sep, "/")
    return inner.split("/")


def at_arrow(path: str) -> tuple[Any, str]:
    """Arrow's file system for a path or URL, and the path in it.

    Raises:
        DataError: Arrow does not know the kind of URL.
    """
    import pyarrow as pa
    from pyarrow.fs import FileSystem, LocalFileSystem

    if not is_url(path):
        return LocalFileSystem(), path
    try:
        system, inner = FileSystem.from_uri(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path!r} cannot be read through Arrow ({first_line(error)}); it reads s3://, gs://, "
            "abfs://, hdfs:// and file:// where it was built with them; or copy the files here"
        ) from error
    return system, inner


def identity(path: str) -> tuple[str, int, int]:
    """The full path of a file, its size, and the nanosecond of its last change."""
    system, inner = at_arrow(path)
    info = system.get_file_info(inner)
    return path if is_url(path) else os.path.abspath(path), info.size, info.mtime_ns


def _join(folder: str, name: str) -> str:
    """The path or URL of a file in a folder."""
    if not is_url(folder):
        return os.path.join(folder, name)
    where = urlsplit(folder)
    return where._replace(path=f"{where.path.rstrip('/')}/{quote(name, safe='/=')}").geturl()


def _inside(system: Any, folder: str, shown: str) -> list[str]:
    """Files of rows below a folder, as seen from there."""
    from pyarrow.fs import FileSelector, FileType

    base = folder.rstrip("/")
    infos = system.get_file_info(FileSelector(base or "/", recursive=True))
    names = [info.path[len(base) :].strip("/") for info in infos if info.type == FileType.File]
    seen = sorted(n for n in names if not any(p.startswith(_HIDDEN) for p in n.split("/")))
    found = {
        kind: files
        for kind, suffixes in KINDS.items()
        if (files := [name for name in seen if name.lower().endswith(suffixes)])
    }
    if not found:
        other = f"; it holds {len(seen)} others, such as {seen[0]!r}: name them" if seen else ""
        raise DataError(f"no CSV or Parquet file is in the folder {shown!r}{other}")
    if len(found) > 1:
        counts = " and ".join(f"{len(files)} {kind}" for kind, files in found.items())
        pattern = os.path.join(shown, "**", "*.parquet")
        raise DataError(
            f"the folder {shown!r} holds {counts} files; say which with a pattern, such as "
            f"{pattern!r}"
        )
    return next(iter(found.values()))
