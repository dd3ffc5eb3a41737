"""Copies in the temporary folder: of standard input, of the web, and of text that is not UTF-8.

What can be read only once, or only by us, is written to a file that can be read like any other. The
copies are for this user's eyes only, and are gone when the process ends, also when it is killed: on
Linux they have no name, and a link leads to the open file. Databases and other systems need a name;
what killed processes left of such goes with the next copy.
"""

from __future__ import annotations

import atexit
import base64
import codecs
import gzip
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from io import BufferedReader
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from poolbn.errors import DataError
from poolbn.findings import FindingKind, tell
from poolbn.writing import lock

if TYPE_CHECKING:
    from http.client import HTTPResponse

LONGEST = 2_000_000  # characters of a line, as DuckDB has it
DAMAGED = (OSError, EOFError, zlib.error)  # what reading bytes of a file raises
_CHUNK = 1 << 20
_LOOKED_AT = 1 << 26  # bytes of a file in which text that is not UTF-8 is looked for
_PATIENCE = 30  # seconds without an answer from the web
MOST_BYTES = 10 << 30  # of a file from the web
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_PAGE = re.compile(rb"\s*<(!doctype html|html)\b", re.I)
Opened = gzip.GzipFile | BufferedReader
# What a file of rows begins with, and what its name would end in.
_BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow"}
_DATABASES = (".duckdb", ".sqlite", ".sqlite3", ".db")
_OPEN = "/proc/{}/fd/{}"  # where Linux has the open files of a process
_MOST_OPEN = 100  # copies without a name: a process may have some 1,000 files open
_PREFIX, _LOCK = "poolbn-copies-", "in use"


def zipped(path: str) -> bool:
    """Whether the name of a file says that it is compressed."""
    return path.lower().endswith(".gz")


def opened(path: str) -> Opened:
    """The bytes of a file, which may be compressed."""
    return gzip.open(path, "rb") if zipped(path) else open(path, "rb")


def damaged(shown: str, error: BaseException) -> DataError:
    """What is wrong with a file whose bytes cannot be read."""
    if isinstance(error, EOFError | zlib.error):
        return DataError(f"the compressed file {shown!r} is damaged or cut short; get it anew")
    if isinstance(error, gzip.BadGzipFile):
        return DataError(
            f"{shown!r} is not a gzip file although its name ends in .gz; rename it, or get it anew"
        )
    reason = getattr(error, "strerror", None) or str(error)
    return DataError(f"cannot read {shown!r}: {reason}")


def standard_input() -> str:
    """The file that holds what standard input had; it is read once.

    Its name ends as is right for what it holds: CSV, JSON lines, Parquet or Arrow; text may be
    compressed.
    """
    return _copied(sys.stdin)


@cache
def _copied(stdin: Any) -> str:
    stream = getattr(stdin, "buffer", None)
    if stream is None:
        raise DataError("there is no standard input; name a file")
    try:
        path = _written("stdin", iter(lambda: stream.read(_CHUNK), b""), "standard input")
    except OSError as error:
        raise damaged("standard input", error) from error
    return _called(path, _ending(path, "standard input"))


@cache
def fetched(url: str, ending: str) -> str:
    """The file that holds what the web has at a URL (http, https); it is read once.

    The copy's name has that `ending`, or what is right for what it holds, as for standard input.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        where, allowed = _authorized(url)
        asked = Request(where, headers={"User-Agent": "poolbn"})
        if allowed:  # for that server alone, wherever it leads to
            asked.add_unredirected_header("Authorization", allowed)
        with urlopen(asked, timeout=_PATIENCE) as answer:
            told = answer.headers.get("Content-Length")
            path = _written("web", _limited(answer, told, url), url, named=ending in _DATABASES)
    except DataError:
        raise
    except HTTPError as error:
        error.close()
        raise _refused(url, f"{error.code} {error.reason}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise _refused(url, str(getattr(error, "reason", None) or error)) from error
    size = os.path.getsize(path)
    if not size or (told is not None and told.strip().lstrip("0") != str(size)):
        raise _refused(url, f"{size} bytes came of {told}" if size else "nothing came")
    with open(path, "rb") as file:
        if _PAGE.match(file.read(1000)):
            raise DataError(
                f"{url!r} is a page to look at, not a file of rows; take the address of the file "
                "itself, which GitHub has under Raw, or download it and name it"
            )
    return _called(path, ending or _ending(path, url))


def _authorized(url: str) -> tuple[str, str]:
    """The URL without a user and password, and what is to be said of these."""
    where = urlsplit(url)
    user, at, server = where.netloc.rpartition("@")
    if not at:
        return url, ""
    name, _, password = user.partition(":")
    words = f"{unquote(name)}:{unquote(password)}".encode()
    return where._replace(netloc=server).geturl(), f"Basic {base64.b64encode(words).decode()}"


def _limited(answer: HTTPResponse, told: str | None, url: str) -> Iterator[bytes]:
    """What comes, in pieces."""
    size = int(told) if told and told.strip().isdecimal() else 0
    if size <= MOST_BYTES:
        size = 0
        while chunk := answer.read(_CHUNK):
            size += len(chunk)
            if size > MOST_BYTES:
                break
            yield chunk
        else:
            return
    raise DataError(
        f"{url!r} has more than {MOST_BYTES / 2**30:g} GB, which is the most that is fetched; "
        "download the file yourself, and name it"
    )


def _refused(url: str, why: str) -> DataError:
    return DataError(
        f"cannot read {url!r}: {why}; check the address, or download the file and name it"
    )


def _called(path: str, ending: str) -> str:
    os.replace(path, f"{path}{ending}")
    return f"{path}{ending}"


def _ending(path: str, shown: str) -> str:
    with open(path, "rb") as file:
        start = file.read(1000)
    if not start:
        raise DataError("nothing came from standard input; send rows to it, or name a file")
    for beginning, ending in _BEGINNINGS.items():
        if start.startswith(beginning):
            return ending
    packed = start.startswith(b"\x1f\x8b")
    if packed:
        try:
            with gzip.open(path) as file:
                start = file.read(1000)
        except DAMAGED as error:
            raise damaged(shown, error) from error
    kind = ".jsonl" if start.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{" else ".csv"
    return f"{kind}.gz" if packed else kind


def as_utf8(path: str, shown: str) -> str:
    """The file itself where its text is UTF-8, else a copy that is.

    A byte order mark tells UTF-16. All other text is taken for Windows-1252, which has Latin-1 in
    it, and a warning says so.
    """
    try:
        about = os.stat(path)
        return _in_utf8(os.path.abspath(path), shown, about.st_size, about.st_mtime_ns) or path
    except DAMAGED as error:
        raise damaged(shown, error) from error


@cache
def _in_utf8(path: str, shown: str, size: int, changed: int) -> str:
    """The copy of a file of this size that was changed then; "" where none is needed."""
    with opened(path) as file:
        start = file.read(2)
    if start not in _UTF16 and _is_utf8(path):
        return ""
    decode = _from_utf16 if start in _UTF16 else _from_windows
    with opened(path) as file:
        return _written("text", (t.encode() for t in decode(file, shown)), shown)


def _is_utf8(path: str) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with opened(path) as file:
        for _ in range(_LOOKED_AT // _CHUNK):
            chunk = file.read(_CHUNK)
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                return False
            if not chunk:
                break
    return True


def _from_utf16(file: Opened, shown: str) -> Iterator[str]:
    try:
        yield from codecs.iterdecode(iter(lambda: file.read(_CHUNK), b""), "utf-16")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{shown!r} begins as UTF-16 text does, and is none; save it as UTF-8"
        ) from error


def _from_windows(file: Opened, shown: str) -> Iterator[str]:
    unicode, first = False, ""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), start=1):
        try:
            if _NO_TEXT.search(line):
                raise DataError(f"{shown!r} holds no text: line {number} has control characters")
            text = line.decode("cp1252")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{shown!r} is neither UTF-8 nor Latin-1 text: line {number} has the byte "
                f"0x{line[error.start]:02x}; save it as UTF-8"
            ) from error
        if not line.isascii():
            own = _decodes(line)
            unicode |= own
            first = first or ("" if own else f"line {number} holds {_around(text)!r}")
            if unicode and first:
                raise DataError(
                    f"some lines of {shown!r} are UTF-8 and others not, such as line {number}; "
                    "save it as UTF-8"
                )
        yield text
    what = f"{shown!r} is not UTF-8, and is read as Latin-1 (Windows-1252): {first}"
    tell(FindingKind.ENCODING, what, "if that is wrong, save it as UTF-8")


def _decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _around(text: str) -> str:
    """The word with the first letter that is not ASCII."""
    at = next(k for k, letter in enumerate(text) if not letter.isascii())
    start = max(text.rfind(c, 0, at) for c in ' ,;\t|"') + 1
    found = re.match(r'[^\s,;|"]{1,20}', text[max(start, at - 10) :])
    return found.group() if found else text[at]


def with_log(path: str, shown: str) -> str:
    """A copy of a database of SQLite and of its write-ahead log, which is read with it."""
    folder = tempfile.mkdtemp(dir=_folder(os.getpid()))
    copy = os.path.join(folder, "copy.sqlite")
    try:
        for ending in ("", "-wal"):
            shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
    except OSError as error:
        raise _no_room(shown, error) from error
    return copy


def _written(name: str, chunks: Iterator[bytes], shown: str, *, named: bool = False) -> str:
    """The file that now holds the chunks; or a link to it, unless it is to be `named`."""
    handle, path = tempfile.mkstemp(prefix=name, dir=_folder(os.getpid()))
    where = _OPEN.format(os.getpid(), handle)
    nameless = not named and len(_held) < _MOST_OPEN and os.path.exists(where)
    try:
        if nameless:
            os.unlink(path)
        with open(handle, "wb", closefd=not nameless) as file:
            for chunk in chunks:
                try:
                    file.write(chunk)
                    file.flush()
                except OSError as error:
                    raise _no_room(shown, error) from error
        if nameless:
            os.symlink(where, path)
            _held.append(handle)
    except BaseException:
        with suppress(OSError):
            os.close(handle) if nameless else os.unlink(path)
        raise
    return path


_held: list[int] = []  # open files that have no name


def _no_room(shown: str, error: OSError) -> DataError:
    return DataError(
        f"{shown!r} cannot be copied to the temporary folder: {error.strerror}; make room "
        "there, or name another one with TMPDIR"
    )


@cache
def _folder(process: int) -> str:
    """Of this process, which removes it when it ends; and those of processes that were killed."""
    _sweep(tempfile.gettempdir())
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    handle, path = tempfile.mkstemp(dir=folder)  # open and locked as long as the process is there
    with suppress(OSError):
        lock(handle, wait=False)
        os.replace(path, os.path.join(folder, _LOCK))

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _sweep(above: str) -> None:
    """Remove what killed processes left: folders whose lock can be had."""
    with suppress(OSError), os.scandir(above) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError), open(os.path.join(entry.path, _LOCK), "rb") as file:
                    lock(file.fileno(), wait=False)
                    shutil.rmtree(entry.path, ignore_errors=True)
