"""Where rows are: the files that a path, a pattern, a folder or a URL stands for."""

from __future__ import annotations

import glob
import os
import posixpath
import re
import stat
from collections.abc import Hashable, Iterable
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from poolbn.errors import DataError, nearest
from poolbn.findings import FindingKind, tell
from poolbn.tables.copies import fetched, standard_input
from poolbn.tables.sources import first_line
from poolbn.wording import counted

KINDS = {
    "CSV": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "Parquet": (".parquet",),
    "Arrow": (".feather", ".arrow", ".ipc"),
    "JSON lines": (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"),
    "Stata": (".dta",),
    "SPSS": (".sav", ".zsav"),
    "SAS": (".sas7bdat", ".xpt"),
    "R": (".rds", ".rdata", ".rda"),
    "Excel": (".xlsx",),
    "DuckDB": (".duckdb",),
    "SQLite": (".sqlite", ".sqlite3", ".db"),
}
SUFFIXES = tuple(suffix for suffixes in KINDS.values() for suffix in suffixes)
STDIN = "-"
# Files of these kinds hold several tables, one of which is named as in trial.duckdb::visits.
_SEVERAL = tuple(s for kind in ("DuckDB", "SQLite", "Excel", "R") for s in KINDS[kind])
_TABLE = re.compile(rf"(.+?(?:{'|'.join(map(re.escape, _SEVERAL))}))::(.+)", re.I | re.S)
_HIDDEN = ("_", ".")  # as Spark and others mark what is not rows
_PATIENCE = 5  # seconds in which Google's storage is to answer; it would try for a minute
_SHOWN = 200  # characters of what a file system says
_OTHERS = ((stat.S_ISFIFO, "a FIFO (named pipe)"), (stat.S_ISSOCK, "a socket"))


def paths(entry: str) -> list[str]:
    """The files that a path, a pattern, a folder or a URL stands for, in alphabetical order.

    Links in a folder are not followed, and a warning tells of them.
    """
    from pyarrow import ArrowException
    from pyarrow.fs import FileType

    if entry == STDIN:
        return [entry]
    entry, table = parted_table(entry)
    if table is not None:
        return [f"{path}::{table}" for path in paths(entry)]
    entry = entry if is_url(entry) else os.path.expanduser(entry)
    system, path = at_arrow(entry)
    if _is_local(system):
        kind = _kind(path, entry)
    else:
        try:
            kind = system.get_file_info(path).type
        except (OSError, ArrowException) as error:
            raise DataError(
                f"cannot reach {entry!r}: {first_line(error)[:_SHOWN]}; check the address, your "
                "keys and the network, or copy the files here"
            ) from error
    if kind == FileType.Directory:
        return [_join(entry, name) for name in _inside(system, path, entry)]
    if kind != FileType.NotFound:
        return [entry]
    if is_url(entry):
        hint = "; URLs take no patterns, name the folder" if "*" in entry else ""
        raise DataError(f"there is no file {entry!r}{hint}")
    if glob.has_magic(entry):
        found = sorted(glob.glob(entry, recursive=True))
        if not found:
            raise DataError(f"no file matches the pattern {entry!r}")
        for match in found:
            _kind(match, match)
        return found
    folder = os.path.dirname(entry) or "."
    beside = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    usable = [name for name in beside if name.lower().endswith(SUFFIXES)]
    hint = nearest(os.path.basename(entry), usable) if usable else ""
    raise DataError(f"there is no file {entry!r}{hint}")


def is_url(path: str) -> bool:
    """Whether this is a URL; a drive letter makes none."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def parted_table(path: str) -> tuple[str, str | None]:
    """The file, and the table in it if one is named, as in trial.duckdb::visits."""
    found = _TABLE.fullmatch(path)
    return (found[1], found[2]) if found else (path, None)


def kind_of(path: str) -> str | None:
    """What kind of file its name says it is; of the web without an ending, what it holds."""
    name = folders(path)[-1].lower()
    if _of_the_web(path) and "." not in name:
        _, name = at_arrow(path)
    return next((kind for kind, endings in KINDS.items() if name.endswith(endings)), None)


def folders(path: str) -> list[str]:
    """The names in a path or URL, the file's own last."""
    path, _ = parted_table(path)
    inner = unquote(urlsplit(path).path) if is_url(path) else path.replace(os.sep, "/")
    return inner.split("/")


def at_arrow(path: str) -> tuple[Any, str]:
    """Arrow's file system for a path or URL, and the path in it."""
    from pyarrow.fs import FileSystem, LocalFileSystem

    if path == STDIN:
        return LocalFileSystem(), standard_input()
    path, _ = parted_table(path)
    if not is_url(path):
        return LocalFileSystem(), path
    try:
        _ = urlsplit(path).port
    except ValueError as error:
        raise DataError(f"{path!r} is not a URL: {error}; check the address") from error
    if _of_the_web(path):
        return LocalFileSystem(), fetched(path, suffix(folders(path)[-1]))
    try:
        system, inner = FileSystem.from_uri(_impatient(path))
    except Exception as error:  # some kinds of URL need packages, each with its own errors
        raise DataError(
            f"{path!r} cannot be read through Arrow ({first_line(error)}); it reads s3://, gs://, "
            "abfs://, hdfs:// and file:// where it was built with them, and https:// is read "
            "without it; or copy the files here"
        ) from error
    return system, inner


def _impatient(url: str) -> str:
    """The URL with a time in which there is to be an answer, where its file system takes one."""
    where = urlsplit(url)
    if where.scheme not in ("gs", "gcs") or "retry_limit_seconds=" in where.query:
        return url
    limit = f"retry_limit_seconds={_PATIENCE}"
    return where._replace(query=f"{where.query}&{limit}" if where.query else limit).geturl()


def _of_the_web(path: str) -> bool:
    return path.lower().startswith(("http://", "https://"))


def suffix(name: str) -> str:
    """The ending of a name that is one of those that are read."""
    return max((s for s in SUFFIXES if name.lower().endswith(s)), key=len, default="")


def identity(path: str) -> tuple[str, int, int]:
    """The full path of a file, its size, and the nanosecond of its last change."""
    system, inner = at_arrow(path)
    info = system.get_file_info(inner)
    return path if is_url(path) else os.path.abspath(path), info.size, info.mtime_ns


def check_once(found: Iterable[str]) -> None:
    """Raise where a file is there twice, perhaps under two names."""
    seen: dict[Hashable, str] = {}
    for path in found:
        key = _itself(path)
        if key in seen:
            same = f"{seen[key]!r} and {path!r} are the same file"
            what = f"{path!r} is given 2 times" if seen[key] == path else same
            raise DataError(f"{what}, so its rows would count twice; leave one out")
        seen[key] = path


def _itself(path: str) -> Hashable:
    """What a file is, whatever its name: equal for the same file."""
    system, inner = at_arrow(path)
    if _is_local(system):
        about = os.stat(inner)
        return about.st_dev, about.st_ino, parted_table(path)[1]
    where = urlsplit(path)
    return where.scheme, where.netloc, posixpath.normpath(unquote(where.path)), where.query


def _is_local(system: Any) -> bool:
    from pyarrow.fs import LocalFileSystem

    return isinstance(system, LocalFileSystem)


def _kind(path: str, shown: str) -> Any:
    """What is at a path here: Arrow's kind of file."""
    from pyarrow.fs import FileType

    try:
        path.encode()
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise DataError(f"{shown!r} is a link to a file that is not there") from None
        return FileType.NotFound
    except UnicodeEncodeError:
        raise DataError(f"the name of {shown!r} is not UTF-8; rename it") from None
    except (OSError, ValueError) as error:  # ValueError: NUL in a name
        reason = getattr(error, "strerror", None) or first_line(error)
        raise DataError(f"cannot reach {shown!r}: {reason}") from error
    if stat.S_ISDIR(mode):
        return FileType.Directory
    if not stat.S_ISREG(mode):
        other = next((what for is_it, what in _OTHERS if is_it(mode)), "a device")
        raise DataError(
            f"{shown!r} is {other}, and rows are read from files; write them to a file first"
        )
    return FileType.File


def _join(folder: str, name: str) -> str:
    """The path or URL of a file in a folder."""
    if not is_url(folder):
        return os.path.join(folder, name)
    where = urlsplit(folder)
    return where._replace(path=f"{where.path.rstrip('/')}/{quote(name, safe='/=')}").geturl()


def _inside(system: Any, folder: str, shown: str) -> list[str]:
    """Files of rows below a folder, as seen from there."""
    names, links = _listed(system, folder, shown)
    seen = sorted(n for n in names if not _hidden(n))
    skipped = sorted(n for n in links if not _hidden(n))
    found = {
        kind: files
        for kind, suffixes in KINDS.items()
        if (files := [name for name in seen if name.lower().endswith(suffixes)])
    }
    if not found:
        other = f"; it holds {len(seen)} others, such as {seen[0]!r}: name them" if seen else ""
        if skipped:
            other += f"; it has {_words(skipped)}: name what should be read"
        raise DataError(
            f"no file of rows, such as CSV or Parquet, is in the folder {shown!r}{other}"
        )
    if len(found) > 1:
        counts = " and ".join(f"{len(files)} {kind}" for kind, files in found.items())
        pattern = os.path.join(shown, "**", f"*{KINDS[list(found)[-1]][0]}")
        raise DataError(
            f"the folder {shown!r} holds {counts} files; say which with a pattern, such as "
            f"{pattern!r}"
        )
    if skipped:
        remedy = "if their rows are not in the folder, name the files too"
        what = f"the folder {shown!r} has {_words(skipped)}"
        tell(FindingKind.LINKS, what, remedy, count=len(skipped))
    (chosen,) = found.values()
    if _is_local(system):
        for name in chosen:
            _kind(os.path.join(folder, name), _join(shown, name))
    return chosen


def _hidden(name: str) -> bool:
    return any(part.startswith(_HIDDEN) for part in name.split("/"))


def _words(links: list[str]) -> str:
    one = len(links) == 1
    which = f"{links[0]!r}, which is" if one else f"such as {links[0]!r}, which are"
    return f"{counted(len(links), 'link')}, {which} not followed"


def _listed(system: Any, folder: str, shown: str) -> tuple[list[str], list[str]]:
    """All files below a folder, as seen from there; and links that may lead to rows."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSelector, FileType

    base = folder.rstrip("/")
    names: list[str] = []
    links: list[str] = []

    def fail(error: OSError) -> None:
        raise error

    try:
        if not _is_local(system):
            infos = system.get_file_info(FileSelector(base or "/", recursive=True))
            files = [info.path for info in infos if info.type == FileType.File]
            return [path[len(base) :].strip("/") for path in files], []
        for above, inner, files in os.walk(base or "/", onerror=fail):
            at = f"{above}/"[len(base) + 1 :].lstrip("/")
            linked = {name for name in [*inner, *files] if os.path.islink(f"{above}/{name}")}
            names += [at + name for name in files if name not in linked]
            tables = (name for name in files if name.lower().endswith(SUFFIXES))
            links += [at + name for name in [*inner, *tables] if name in linked]
            inner[:] = [name for name in inner if not name.startswith(_HIDDEN)]
    except (OSError, ArrowException) as error:
        reason = getattr(error, "strerror", None) or first_line(error)[:_SHOWN]
        where = getattr(error, "filename", None) or shown
        raise DataError(f"cannot list the folder {where!r}: {reason}") from error
    return names, links
