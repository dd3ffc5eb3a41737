"""The file of a `GroupStats`: a line of identity, a line of JSON, and the arrays as they are."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import FileError
from poolbn.writing import check_levels, write_whole

_FORMAT = "poolbn-statistics"
_VERSION = 1
_DTYPES = ("<i8", "<f8", "<f8", "<i8")
Arrays = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]
Fields = tuple[
    tuple[str, ...],
    tuple[Hashable, ...],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    str,
]


def write_file(
    path: str | os.PathLike[str],
    names: tuple[str, ...],
    levels: tuple[Hashable, ...],
    group: str,
    arrays: Arrays,
) -> None:
    """Write the fields of a `GroupStats`, whole or not at all.

    Raises:
        FileError: a data set's name is not a text, a number or a bool.
    """
    check_levels(levels)
    header = json.dumps({"names": names, "levels": levels, "group": group}).encode()
    payload = b"".join(a.astype(t).tobytes() for a, t in zip(arrays, _DTYPES, strict=True))
    body = header + b"\n" + payload
    identity = f"{_FORMAT} {_VERSION} {len(body)} {hashlib.sha256(body).hexdigest()}\n"
    write_whole(path, identity.encode() + body)


def read_file(
    path: str | os.PathLike[str],
) -> Fields:
    """The fields of a `GroupStats` that `write_file` wrote.

    Raises:
        FileError: the file is not there, not of this kind, damaged, cut short, or too new.
    """
    shown = repr(os.fspath(path))
    try:
        with open(path, "rb") as file:
            identity = file.readline(200).split()
            body = file.read()
    except OSError as error:
        raise FileError(f"cannot read {shown}: {error.strerror}") from error
    if len(identity) != 4 or identity[0] != _FORMAT.encode():
        raise FileError(f"{shown} is not a file of poolbn statistics; GroupStats.save writes them")
    if identity[1] != str(_VERSION).encode():
        raise FileError(
            f"{shown} has version {identity[1].decode('ascii', 'replace')} of the format, this "
            f"poolbn reads version {_VERSION}; update poolbn"
        )
    if not identity[2].isdigit() or len(body) < int(identity[2]):
        raise FileError(
            f"{shown} is cut short: {len(body)} bytes of {identity[2].decode('ascii', 'replace')} "
            "are there; copy or save it anew"
        )
    if hashlib.sha256(body).hexdigest().encode() != identity[3]:
        raise FileError(f"{shown} is damaged: its checksum does not match; copy or save it anew")
    header, _, payload = body.partition(b"\n")
    try:
        return _fields(json.loads(header), payload)
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"{shown} does not hold statistics as it should: {error}") from error


def _fields(header: dict[str, Any], payload: bytes) -> Fields:
    names, levels = tuple(header["names"]), tuple(header["levels"])
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
    return names, levels, n, mean, scatter, dropped, str(header["group"])
