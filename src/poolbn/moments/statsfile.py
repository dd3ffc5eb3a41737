"""The file of a `GroupStats`: a line of identity, a line of JSON, and sections.

The section `moments` has the arrays as they are; others may follow, in the order of `_SECTIONS`.
The file holds nothing else, and what is read is checked to be statistics: rows cannot hide in it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import FileError
from poolbn.moments.facts import FULL, UNKNOWN, ColumnFacts, Distinct
from poolbn.writing import check_levels, write_whole

_FORMAT = "poolbn-statistics"
_VERSION = 3
_BASE = ("poolbn", "group", "names", "levels")
_HEADER: dict[int, tuple[str, ...]] = {2: _BASE, 3: (*_BASE, "sections")}
_SECTIONS = ("moments", "columns", "inputs")
_KIND = "continuous"  # of all columns, so far
_BY_DIGITS = [ColumnFacts(digits) for digits in (None, *range(FULL + 1))]
_DTYPES = ("<i8", "<f8", "<f8", "<i8")
_ROUNDING = 1e-4  # of the smallest eigenvalue of correlations
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


@lru_cache(maxsize=1)
def own_version() -> str:
    """The version of this software."""
    return metadata.version("poolbn")


def write_file(path: str | os.PathLike[str], fields: Fields) -> None:
    """Write the fields of a `GroupStats`, whole or not at all.

    Raises:
        FileError: a data set's name is not a text, a number or a bool.
    """
    names, levels, *arrays, group, facts, inputs = fields
    check_levels(levels)
    sections = {
        "moments": b"".join(a.astype(t).tobytes() for a, t in zip(arrays, _DTYPES, strict=True))
    }
    if any(each.public() != UNKNOWN for each in facts):
        sections["columns"] = _told(facts)
    if inputs:
        sections["inputs"] = json.dumps(inputs).encode()
    sizes = {name: len(section) for name, section in sections.items()}
    values = (own_version(), group, names, levels, sizes)
    header = json.dumps(dict(zip(_HEADER[_VERSION], values, strict=True))).encode()
    body = header + b"\n" + b"".join(sections.values())
    identity = f"{_FORMAT} {_VERSION} {len(body)} {hashlib.sha256(body).hexdigest()}\n"
    write_whole(path, identity.encode() + body)


def read_file(path: str | os.PathLike[str], *, least: int = 1) -> Fields:
    """The fields of a `GroupStats` that `write_file` wrote.

    Args:
        path: the file.
        least: the smallest number of rows that a data set may have.

    Raises:
        FileError: the file is not there, not of this kind, of another version, damaged, cut short,
            or does not hold statistics.
    """
    about, header, payload = _opened(path)
    shown = repr(os.fspath(path))
    try:
        sections = {"moments": payload} if about.version == 2 else _cut(header, payload)
        newer = [name for name in sections if name not in _SECTIONS]
        if newer:
            raise FileError(f"{shown} has {newer[0]!r}, which a newer poolbn wrote; update poolbn")
        return _fields(header, sections, least)
    except FileError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"{shown} does not hold statistics as it should: {error}") from error


def read_about(path: str | os.PathLike[str]) -> About:
    """What a file of statistics says of itself.

    Raises:
        FileError: the file is not there, not of this kind, of another version, damaged or cut
            short.
    """
    about, _, _ = _opened(path)
    return about


def _opened(path: str | os.PathLike[str]) -> tuple[About, dict[str, Any], bytes]:
    shown = repr(os.fspath(path))
    try:
        with open(path, "rb") as file:
            first = file.readline(200)
            body = file.read()
    except OSError as error:
        raise FileError(f"cannot read {shown}: {error.strerror}") from error
    if not first:
        raise FileError(f"{shown} is empty; copy or save it anew")
    identity = first.split()
    if len(identity) != 4 or identity[0] != _FORMAT.encode():
        raise FileError(
            f"{shown} is not a file of poolbn statistics; poolbn stats, or GroupStats.save, "
            "writes them"
        )
    _, version, length, checksum = (word.decode("ascii", "replace") for word in identity)
    if version not in map(str, _HEADER):
        older = version.isdigit() and int(version) < _VERSION
        raise FileError(
            f"{shown} has version {version} of the format, this poolbn reads versions "
            f"{' and '.join(map(str, _HEADER))}; "
            f"{'make it anew with this poolbn' if older else 'update poolbn'}"
        )
    if not length.isdigit() or len(body) < int(length):
        raise FileError(
            f"{shown} is cut short: {len(body)} bytes of {length} are there; copy or save it anew"
        )
    if hashlib.sha256(body).hexdigest() != checksum:
        raise FileError(f"{shown} is damaged: its checksum does not match; copy or save it anew")
    line, _, payload = body.partition(b"\n")
    try:
        header = json.loads(line, parse_constant=_refused)
        known = _HEADER[int(version)]
        if sorted(header) != sorted(known):
            raise ValueError(f"its header has {', '.join(header)}, not {', '.join(known)}")
        about = About(int(version), str(header["poolbn"]), checksum, len(first) + len(body))
    except (ValueError, TypeError) as error:
        raise FileError(f"{shown} does not hold statistics as it should: {error}") from error
    return about, header, payload


def _refused(constant: str) -> None:
    raise ValueError(f"its header has {constant}")


def _cut(header: dict[str, Any], payload: bytes) -> dict[str, bytes]:
    """The sections, of which the header gives the names and sizes."""
    sections, start = {}, 0
    for name, size in header["sections"].items():
        if type(size) is not int or size < 0:
            raise ValueError(f"its section {name!r} has {size!r} bytes")
        sections[name] = payload[start : start + size]
        start += size
    if start != len(payload):
        raise ValueError(f"its sections need {start} bytes, not {len(payload)}")
    if list(sections) != sorted(sections, key=[*_SECTIONS, *sections].index):
        raise ValueError(f"its sections are in the order {', '.join(sections)}")
    return sections


def _told(facts: tuple[ColumnFacts, ...]) -> bytes:
    """The section `columns`: nothing in it is a value of a row."""
    known = [each.public() for each in facts]
    columns = {
        "kind": [_KIND] * len(known),
        "resolution": [each.resolution for each in known],
        "distinct": [each.told.name.lower() for each in known],
    }
    return json.dumps(columns).encode()


def _facts(section: bytes, width: int) -> tuple[ColumnFacts, ...]:
    """The facts that `_told` wrote."""
    columns = json.loads(section, parse_constant=_refused)
    resolutions = {each.resolution: each.digits for each in _BY_DIGITS}
    told = {each.name.lower(): each for each in Distinct}
    facts = tuple(
        ColumnFacts(resolutions[resolution], frozenset(), told[distinct], None)
        for resolution, distinct in zip(columns["resolution"], columns["distinct"], strict=True)
    )
    if len(facts) != width or _told(facts) != section:
        raise ValueError(f"what it says of its {width} columns is not as poolbn writes it")
    return facts


def _fields(header: dict[str, Any], sections: dict[str, bytes], least: int) -> Fields:
    payload = sections["moments"]
    names, levels = tuple(header["names"]), tuple(header["levels"])
    if not names or not all(isinstance(name, str) for name in (*names, header["group"])):
        raise ValueError("names of columns are not texts")
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
    for j, level in enumerate(levels):
        wrong = _wrong(int(n[j]), mean[j], scatter[j], int(dropped[j]), least)
        if wrong:
            raise ValueError(f"data set {level!r} {wrong}")
    told = sections.get("columns")
    facts = _facts(told, width) if told is not None else (UNKNOWN,) * width
    inputs = tuple(json.loads(sections.get("inputs", b"[]")))
    if [name for name in names if name in inputs] != sorted(inputs, key=[*names, *inputs].index):
        raise ValueError("its inputs are not some of its columns")
    return names, levels, n, mean, scatter, dropped, header["group"], facts, inputs


def _wrong(
    n: int, mean: NDArray[np.float64], scatter: NDArray[np.float64], dropped: int, least: int
) -> str:
    """Why no rows have such statistics, or nothing; `mean` (N,), `scatter` (N, N)."""
    square = scatter.diagonal()
    finite = np.isfinite(mean).all() and np.isfinite(scatter).all()
    checks = (
        (n < least, f"has {n} rows"),
        (dropped < 0, f"has {dropped} rows left out"),
        (not finite, "has means or sums that are not finite"),
        (not np.array_equal(scatter, scatter.T), "has sums of products that are not symmetric"),
        (n <= 1 and scatter.any(), "has one row and sums of squares that are not zero"),
        ((square < 0).any(), "has a sum of squares below zero"),
        (scatter[square == 0].any(), "has products with a constant column that are not zero"),
    )
    told = next((words for wrong, words in checks if wrong), "")
    if not told and not _semidefinite(scatter):
        return "has sums of products that no rows have: they are not positive semidefinite"
    return told


def _semidefinite(scatter: NDArray[np.float64]) -> bool:
    """Whether a matrix (N, N), as correlations, has no eigenvalue below zero but for rounding."""
    square = scatter.diagonal()
    size = np.sqrt(np.where(square > 0, square, 1.0))
    scaled = scatter / size / size[:, None]
    np.fill_diagonal(scaled, 1.0 + _ROUNDING)
    try:
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return False
    return True
