"""The file of a `GroupStats`: a line of identity, a line of JSON, and sections.

The section `moments` has the arrays as they are; others may follow, in the order of `SECTIONS`.
The file holds nothing else. What is read is checked to be statistics, written again, and compared
byte by byte with what was there: rows cannot hide in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import VERSION
from poolbn.errors import FileError
from poolbn.moments import cellsfile
from poolbn.moments.cellsfile import Discrete
from poolbn.moments.facts import FULL, UNKNOWN, ColumnFacts, Distinct
from poolbn.moments.gapsfile import from_bytes, to_bytes
from poolbn.moments.indicators import indicator_columns
from poolbn.moments.patterns import Gaps
from poolbn.moments.plausible import wrong
from poolbn.writing import check_levels, open_regular, write_whole

_FORMAT = "poolbn-statistics"
_VERSION = 3
_HEADER = ("poolbn", "group", "names", "levels", "sections")
SECTIONS = ("moments", "columns", "inputs", "gaps", "levels", "cells")
_BY_DIGITS = [ColumnFacts(digits) for digits in (None, *range(FULL + 1))]
_DTYPES = ("<i8", "<f8", "<f8", "<i8")
_MOST = 2**53  # rows: counts stay exact as floats
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,40}")  # of poolbn
_ANEW = "; make it anew with poolbn stats, or ask for it again"
# Of a `GroupStats`, in its order.
Fields = tuple[
    tuple[str, ...],
    tuple[Hashable, ...],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    str,
    tuple[ColumnFacts, ...],
    tuple[str, ...],
]


@dataclass(frozen=True)
class About:
    """What a file of statistics says of itself.

    Attributes:
        version: of the format.
        poolbn: the version of the software that wrote it.
        sha256: the checksum of all after the first line.
        size: bytes in all.
    """

    version: int
    poolbn: str
    sha256: str
    size: int


def write_file(
    path: str | os.PathLike[str],
    fields: Fields,
    gaps: Gaps | None = None,
    discrete: Discrete | None = None,
) -> None:
    """Write the fields of a `GroupStats`, and what has gaps or levels, whole or not at all.

    With discrete columns, inputs are some of these and the others.

    Raises:
        FileError: `read_file` would refuse it: a data set's name is not a text, a number or a bool,
            the group is a column, or no rows have such statistics.
    """
    body = _body(fields, VERSION, gaps, discrete)
    with _refusing(f"cannot write {os.fspath(path)!r}"):
        _content(_parsed(body), least=0)
    write_whole(path, _identity(body) + body)


def read_file(path: str | os.PathLike[str], *, least: int = 1) -> Fields:
    """The fields of a `GroupStats` that `write_file` wrote.

    Args:
        path: the file.
        least: the smallest number of rows that a data set may have.

    Raises:
        FileError: the file is not there, not of this kind, of another version, damaged, cut short,
            holds anything but statistics as `write_file` writes them, or some of rows with gaps.
    """
    fields, gaps = read_patterns(path, least=least)
    if gaps is not None:
        raise FileError(
            f"{os.fspath(path)!r} has statistics of rows with missing cells; read it with "
            "pb.PatternStats.load"
        )
    return fields


def read_patterns(path: str | os.PathLike[str], *, least: int = 1) -> tuple[Fields, Gaps | None]:
    """The same with what has gaps, if there is any; see `read_file`."""
    fields, gaps, discrete = _read(path, least)
    if discrete is not None:
        raise FileError(
            f"{os.fspath(path)!r} has statistics of discrete columns; read it with "
            "pb.CellStats.load"
        )
    return fields, gaps


def has_levels(path: str | os.PathLike[str]) -> bool:
    """Whether a file has statistics of discrete columns; see `read_file`."""
    return _read(path, 1)[2] is not None


def read_cells(path: str | os.PathLike[str]) -> tuple[Fields, Discrete | None]:
    """The same with what has levels, if there is any; see `read_file`."""
    fields, gaps, discrete = _read(path, 1)
    if gaps is not None:
        raise FileError(
            f"{os.fspath(path)!r} has statistics of rows with missing cells, and no discrete "
            "columns; read it with pb.PatternStats.load"
        )
    return fields, discrete


_Content = tuple[Fields, Gaps | None, Discrete | None]


def _read(path: str | os.PathLike[str], least: int) -> _Content:
    shown = repr(os.fspath(path))
    about, parsed, body = _opened(path)
    newer = [name for name in parsed.sections if name not in SECTIONS]
    if newer:
        raise FileError(f"{shown} has {newer[0]!r}, which a newer poolbn wrote; update poolbn")
    with _refusing(f"{shown} does not hold statistics as it should", _ANEW):
        found = _content(parsed, 0 if "gaps" in parsed.sections else least)
        fields, gaps, discrete = found
        if _body(fields, about.poolbn, gaps, discrete) != body:
            raise ValueError("something is in it that poolbn does not write")
    return found


def read_about(path: str | os.PathLike[str]) -> About:
    """What a file of statistics says of itself.

    Raises:
        FileError: the file is not there, not of this kind, of another version, damaged or cut
            short.
    """
    about, _, _ = _opened(path)
    return about


@dataclass(frozen=True)
class _Parsed:
    """The header and the sections of a file."""

    header: dict[str, Any]
    sections: dict[str, bytes]


@contextmanager
def _refusing(what: str, remedy: str = "") -> Iterator[None]:
    """What is found to be wrong, with the file and the remedy."""
    try:
        yield
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"{what}: {error}{remedy}") from error


def _content(parsed: _Parsed, least: int) -> _Content:
    """All that a file holds, checked."""
    sections, levels = parsed.sections, parsed.header["levels"]
    discrete = gaps = None
    if "levels" in sections:
        discrete = cellsfile.from_bytes(sections["levels"], sections["cells"], len(levels))
    fields = _fields(parsed, least, discrete)
    names, _, n, mean, scatter, *_ = fields
    if discrete is not None:
        cellsfile.check_moments(discrete, names, n, mean, scatter)
    if "gaps" in sections:
        gaps = from_bytes(sections["gaps"], len(n), len(names))
        if discrete is not None:
            raise ValueError("it has missing values and levels")
    return fields, gaps, discrete


def _kinds(names: tuple[str, ...], discrete: Discrete | None) -> list[str]:
    """What the columns of moments are of."""
    of_levels = set() if discrete is None else set(indicator_columns(discrete.categories).tolist())
    return ["discrete" if k in of_levels else "continuous" for k in range(len(names))]


def _body(fields: Fields, release: str, gaps: Gaps | None, discrete: Discrete | None) -> bytes:
    """All after the first line."""
    names, levels, *arrays, group, facts, inputs = fields
    check_levels(levels)
    sections = {
        "moments": b"".join(a.astype(t).tobytes() for a, t in zip(arrays, _DTYPES, strict=True))
    }
    if any(each.public() != UNKNOWN for each in facts):
        sections["columns"] = _told(facts, _kinds(names, discrete))
    if inputs:
        sections["inputs"] = json.dumps(inputs).encode()
    if gaps is not None:
        sections["gaps"] = to_bytes(gaps)
    if discrete is not None:
        sections["levels"] = cellsfile.levels_to_bytes(discrete)
        sections["cells"] = cellsfile.cells_to_bytes(discrete.cells)
    sizes = {name: len(section) for name, section in sections.items()}
    values = (release, group, names, levels, sizes)
    header = json.dumps(dict(zip(_HEADER, values, strict=True))).encode()
    return header + b"\n" + b"".join(sections.values())


def _identity(body: bytes) -> bytes:
    """The first line."""
    checksum = hashlib.sha256(body).hexdigest()
    return f"{_FORMAT} {_VERSION} {len(body)} {checksum}\n".encode()


def _opened(path: str | os.PathLike[str]) -> tuple[About, _Parsed, bytes]:
    """What a file says of itself, its parts, and all after its first line."""
    shown = repr(os.fspath(path))
    with open_regular(path) as file:
        first = file.readline(200)
        length, checksum = _identified(shown, first)
        body = file.read()
    if not length.isdigit() or len(body) < int(length):
        raise FileError(
            f"{shown} is cut short: {len(body)} bytes of {length} are there; copy or save it anew"
        )
    if hashlib.sha256(body).hexdigest() != checksum:
        raise FileError(f"{shown} is damaged: its checksum does not match; copy or save it anew")
    with _refusing(f"{shown} does not hold statistics as it should", _ANEW):
        if first != _identity(body):
            raise ValueError("its first line is not as poolbn writes it")
        parsed = _parsed(body)
    about = About(_VERSION, parsed.header["poolbn"], checksum, len(first) + len(body))
    return about, parsed, body


def _identified(shown: str, first: bytes) -> tuple[str, str]:
    """The version of the format, the length and the checksum that the first line gives."""
    if not first:
        raise FileError(f"{shown} is empty; copy or save it anew")
    identity = first.split()
    if len(identity) != 4 or identity[0] != _FORMAT.encode():
        raise FileError(
            f"{shown} is not a file of poolbn statistics; poolbn stats, or GroupStats.save, "
            "writes them"
        )
    _, version, length, checksum = (word.decode("ascii", "replace") for word in identity)
    if version != str(_VERSION):
        older = version.isdigit() and int(version) < _VERSION
        raise FileError(
            f"{shown} has version {version} of the format, this poolbn reads version {_VERSION}; "
            f"{'make it anew with this poolbn' if older else 'update poolbn'}"
        )
    return length, checksum


def _parsed(body: bytes) -> _Parsed:
    line, _, payload = body.partition(b"\n")
    header = json.loads(line, parse_constant=_refused)
    if sorted(header) != sorted(_HEADER):
        raise ValueError(f"its header has {', '.join(header)}, not {', '.join(_HEADER)}")
    release = header["poolbn"]
    if not isinstance(release, str) or not _RELEASE.fullmatch(release):
        raise ValueError("its header has no version of poolbn")
    return _Parsed(header, _cut(header, payload))


def _refused(constant: str) -> None:
    raise ValueError(f"its header has {constant}")


def _cut(header: dict[str, Any], payload: bytes) -> dict[str, bytes]:
    """The sections, of which the header gives the names and sizes."""
    sections, start = {}, 0
    if not isinstance(header["sections"], dict):
        raise ValueError("its header has no sizes of sections")
    for name, size in header["sections"].items():
        if type(size) is not int or size < 0:
            raise ValueError(f"its section {name!r} has {size!r} bytes")
        sections[name] = payload[start : start + size]
        start += size
    if start != len(payload):
        raise ValueError(f"its sections need {start} bytes, not {len(payload)}")
    if list(sections) != sorted(sections, key=[*SECTIONS, *sections].index):
        raise ValueError(f"its sections are in the order {', '.join(sections)}")
    return sections


def _told(facts: tuple[ColumnFacts, ...], kinds: list[str]) -> bytes:
    """The section `columns`: nothing in it is a value of a row."""
    known = [each.public() for each in facts]
    columns = {
        "kind": kinds,
        "resolution": [each.resolution for each in known],
        "distinct": [each.told.name.lower() for each in known],
    }
    return json.dumps(columns).encode()


def _facts(section: bytes, kinds: list[str]) -> tuple[ColumnFacts, ...]:
    """The facts that `_told` wrote."""
    columns = json.loads(section, parse_constant=_refused)
    resolutions = {each.resolution: each.digits for each in _BY_DIGITS}
    told = {each.name.lower(): each for each in Distinct}
    facts = tuple(
        ColumnFacts(resolutions[resolution], frozenset(), told[distinct], None)
        for resolution, distinct in zip(columns["resolution"], columns["distinct"], strict=True)
    )
    if len(facts) != len(kinds) or _told(facts, kinds) != section:
        raise ValueError(f"what it says of its {len(kinds)} columns is not as poolbn writes it")
    return facts


def _fields(parsed: _Parsed, least: int, discrete: Discrete | None) -> Fields:
    header, payload = parsed.header, parsed.sections["moments"]
    names, levels, group = tuple(header["names"]), tuple(header["levels"]), header["group"]
    columns = names if discrete is None else discrete.names
    if not columns or not all(isinstance(name, str) for name in (*names, group)):
        raise ValueError("names of columns are not texts")
    if group in (*names, *columns):
        raise ValueError(f"column {group!r} has the name of the group; rename one of them")
    check_levels(levels)
    for what, each in (("column", names), ("data set", levels)):
        if len(set(each)) < len(each):
            twice = next(name for name in each if each.count(name) > 1)
            raise ValueError(f"{what} {twice!r} occurs {each.count(twice)} times")
    groups, width = len(levels), len(names)
    shapes = ((groups,), (groups, width), (groups, width, width), (groups,))
    sizes = [int(np.prod(shape)) * 8 for shape in shapes]
    if sum(sizes) != len(payload):
        raise ValueError(
            f"{groups} data sets of {width} columns need {sum(sizes)} bytes, not {len(payload)}"
        )
    arrays: list[NDArray[Any]] = []
    start = 0
    for shape, size, dtype in zip(shapes, sizes, _DTYPES, strict=True):
        part = np.frombuffer(payload[start : start + size], dtype=dtype)
        arrays.append(part.astype(np.dtype(dtype).newbyteorder("=")).reshape(shape))
        start += size
    n, mean, scatter, dropped = arrays
    rows = sum(n.tolist()) + sum(dropped.tolist())
    if rows > _MOST:
        raise ValueError(f"{rows} rows are more than anybody has")
    for j, level in enumerate(levels):
        why = wrong(int(n[j]), mean[j], scatter[j], int(dropped[j]), least)
        if why:
            raise ValueError(f"data set {level!r} {why}")
    told = parsed.sections.get("columns")
    facts = (UNKNOWN,) * width if told is None else _facts(told, _kinds(names, discrete))
    inputs = tuple(json.loads(parsed.sections.get("inputs", b"[]")))
    if [name for name in columns if name in inputs] != list(inputs):
        raise ValueError("its inputs are not some of its columns")
    return names, levels, n, mean, scatter, dropped, group, facts, inputs
