"""Where rows are: the files that a path, a pattern, a folder or a URL stands for."""

from __future__ import annotations

import glob
import os
import re
from functools import lru_cache
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
    if is_url(entry):
        return _urls(entry)
    entry = os.path.expanduser(entry)
    if os.path.isdir(entry):
        from pyarrow.fs import LocalFileSystem

        inside = _inside(LocalFileSystem(), entry, entry)
        return [os.path.join(entry, *name.split("/")) for name in inside]
    if os.path.exists(entry):
        return [entry]
    if glob.has_magic(entry):
        found = sorted(glob.glob(entry, recursive=True))
        if not found:
            raise DataError(f"no file matches the pattern {entry!r}")
        return found
    folder = os.path.dirname(entry) or "."
    there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    usable = [name for name in there if name.lower().endswith(SUFFIXES)]
    hint = nearest(os.path.basename(entry), usable) if usable else ""
    raise DataError(f"there is no file {entry!r}{hint}")


def is_url(path: str) -> bool:
    """Whether this is a URL; a drive letter makes none.

    Examples:
        >>> is_url("s3://bucket/trial.parquet"), is_url("C:/trial.parquet")
        (True, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def folders(path: str) -> list[str]:
    """The names in a path or URL, the file's own last.

    Examples:
        >>> folders("s3://bucket/a%20b/trial.parquet")
        ['', 'a b', 'trial.parquet']
    """
    inner = unquote(urlsplit(path).path) if is_url(path) else path.replace(os.sep, "/")
    return inner.split("/")


def at_arrow(url: str) -> tuple[Any, str]:
    """Arrow's file system for a URL, and the path in it.

    Raises:
        DataError: Arrow knows no such place, or cannot reach it.
    """
    where = urlsplit(url)
    query = f"?{where.query}" if where.query else ""
    system, base = _system(f"{where.scheme}://{where.netloc}/{query}")
    return system, base.rstrip("/") + unquote(where.path)


def identity(path: str) -> tuple[str, int, int]:
    """The full path of a file, its size, and the nanosecond of its last change."""
    if not is_url(path):
        status = os.stat(path)
        return os.path.abspath(path), status.st_size, status.st_mtime_ns
    system, inner = at_arrow(path)
    info = system.get_file_info(inner)
    return path, info.size, info.mtime_ns


@lru_cache(maxsize=16)
def _system(root: str) -> tuple[Any, str]:
    """Kept, because for S3 each new one asks where the bucket is."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        system, base = FileSystem.from_uri(root)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{root!r} cannot be read through Arrow ({first_line(error)}); it reads s3://, gs://, "
            "abfs://, hdfs:// and file:// where it was built with them; or copy the files here"
        ) from error
    return system, base


def _urls(url: str) -> list[str]:
    from pyarrow.fs import FileType

    system, path = at_arrow(url)
    try:
        kind = system.get_file_info(path).type
        inside = _inside(system, path, url) if kind == FileType.Directory else None
    except OSError as error:
        raise DataError(f"cannot reach {url!r}: {first_line(error)}") from error
    if inside is None and kind != FileType.File:
        hint = "; URLs take no patterns, name the folder" if "*" in url else ""
        raise DataError(f"there is no file {url!r}{hint}")
    if inside is None:
        return [url]
    where = urlsplit(url)
    base = unquote(where.path).rstrip("/")
    return [where._replace(path=quote(f"{base}/{name}", safe="/=")).geturl() for name in inside]


def _inside(system: Any, folder: str, shown: str) -> list[str]:
    """Files of rows below a folder, as seen from there."""
    from pyarrow.fs import FileSelector, FileType

    base = folder.rstrip("/")
    infos = system.get_file_info(FileSelector(base or "/", recursive=True))
    names = [info.path[len(base) :].strip("/") for info in infos if info.type == FileType.File]
    seen = sorted(n for n in names if not any(p.startswith(_HIDDEN) for p in n.split("/")))
    found = {
        kind: [name for name in seen if name.lower().endswith(suffixes)]
        for kind, suffixes in KINDS.items()
    }
    found = {kind: files for kind, files in found.items() if files}
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
