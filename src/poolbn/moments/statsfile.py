"""The file of a `GroupStats`: a line of identity, a line of JSON, and sections.

The section `moments` has the arrays as they are; others may follow, in the order of `SECTIONS`.
The file holds nothing else. What is read is checked to be statistics, written again, and compared
byte by byte with what was there: rows cannot hide in it.

In the section `gaps` the cells come in the order of their data sets, and of what they lack. Each
has a row of numbers: its data set, a bit for each column that it lacks, its rows, means and sums of
products. Where a column is missing these are zero.

The section `levels` is JSON: all columns, the levels of each, and which have a last level, "other",
that stands for several. `cells` has a row of whole numbers for each configuration of all discrete
columns that occurs in a data set: the data set, the codes of its levels, its rows. They come in
order. `moments` has the indicators of levels as columns.

The section `units` is of units inside data sets: a line of JSON, the column that says them, and for
each size of units in a data set a row of numbers: the data set, the rows of a unit, how many units
there are, and, about the means of the data set, sums of their sums of rows, and of products of
these. Where sizes were put together the rows of a unit are a mean.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.constants import VERSION
from poolbn.errors import FileError
from poolbn.moments.facts import FULL, UNKNOWN, ColumnFacts, Distinct
from poolbn.moments.indicators import Cells, indicator_columns, labels_of, moments_of
from poolbn.moments.patterns import Gaps
from poolbn.moments.targets import How, Interventions
from poolbn.moments.units import UnitSums
from poolbn.tables.data import Reading
from poolbn.tables.paths import identity
from poolbn.writing import check_levels, open_regular, write_whole

_ROUNDING = 1e-4  # of the smallest eigenvalue of correlations
_LAST = 2.0**-50  # of a mean: its last digits, that rounding changes


def _wrong(n: int, mean: Floats, scatter: Floats, dropped: int, least: int) -> str:
    """Why no rows have such statistics, or nothing; `mean` (N,), `scatter` (N, N)."""
    square = scatter.diagonal()
    few = "one row" if n else "0 rows"
    finite = np.isfinite(mean).all() and np.isfinite(scatter).all()
    checks = (
        (n < least, f"has {n} rows"),
        (dropped < 0, f"has {dropped} rows left out"),
        (not finite, "has means or sums that are not finite"),
        (not np.array_equal(scatter, scatter.T), "has sums of products that are not symmetric"),
        (n <= 1 and scatter.any(), f"has {few} and sums of squares that are not zero"),
        ((square < 0).any(), "has a sum of squares below zero"),
        (scatter[square == 0].any(), "has products with a constant column that are not zero"),
    )
    told = next((words for fails, words in checks if fails), "")
    if told:
        return told
    if not _semidefinite(scatter):
        return "has sums of products that no rows have: they are not positive semidefinite"
    rank = _rank(n, mean, scatter)
    if rank >= max(n, 1):
        return f"has {n} rows, and sums of products of rank {rank} that need {rank + 1}"
    return ""


def _correlations(scatter: Floats) -> Floats:
    """With zeros for a constant column, (N, N)."""
    square = scatter.diagonal()
    size = np.sqrt(np.where(square > 0, square, 1.0))
    return np.asarray(scatter / size / size[:, None])


def _rank(n: int, mean: Floats, scatter: Floats) -> int:
    """The rank of a scatter matrix (N, N), as far as it is not rounding.

    Means are rounded, and with them all differences from a mean, in units of its last digits.
    """
    if n > len(mean):
        return 0  # it can have any
    square = scatter.diagonal()
    digits = n * (_LAST * np.abs(mean)) ** 2 / np.where(square > 0, square, 1.0)
    eigenvalues = np.linalg.eigvalsh(_correlations(scatter))
    return int((eigenvalues > _ROUNDING + digits[square > 0].sum()).sum())


def _semidefinite(scatter: Floats) -> bool:
    """Whether a matrix (N, N), as correlations, has no eigenvalue below zero but for rounding."""
    scaled = _correlations(scatter)
    np.fill_diagonal(scaled, 1.0 + _ROUNDING)
    try:
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return False
    return True


def _gaps_record(width: int) -> np.dtype[Any]:
    """What the section has of a cell."""
    numbers = [("mean", "<f8", (width,)), ("scatter", "<f8", (width, width))]
    return np.dtype([("set", "<i8"), ("bits", "u1", (-(-width // 8),)), ("n", "<i8"), *numbers])


def _gaps_to_bytes(gaps: Gaps) -> bytes:
    """The section; there are no single rows."""
    assert not len(gaps.rows)
    table = np.zeros(len(gaps.n), _gaps_record(gaps.rows.shape[1]))
    bits = np.packbits(gaps.missing, axis=1)
    table["set"], table["bits"], table["n"] = gaps.data_set, bits, gaps.n
    table["mean"], table["scatter"] = gaps.mean, gaps.scatter
    return table[np.lexsort((*bits.T[::-1], gaps.data_set))].tobytes()


def _gaps_from_bytes(section: bytes, data_sets: int, width: int) -> Gaps:
    """What `_gaps_to_bytes` wrote."""
    table = np.frombuffer(section, dtype=_gaps_record(width))
    missing = np.unpackbits(table["bits"], axis=1, count=width).astype(bool)
    data_set, n_rows = (table[name].astype(np.int64) for name in ("set", "n"))
    moments = table["mean"].astype(np.float64), table["scatter"].astype(np.float64)
    none = np.zeros(0, dtype=np.int64), np.zeros((0, width))
    found = Gaps(data_set, missing, n_rows, *moments, *none)
    if not len(table) or ((data_set < 0) | (data_set >= data_sets)).any():
        raise ValueError("its gaps are of data sets that it does not have")
    if missing.all(axis=1).any() or not missing.any(axis=1).all():
        raise ValueError("its gaps have rows that lack nothing, or all")
    if len(np.unique(np.column_stack([data_set, missing]), axis=0)) < len(table):
        raise ValueError("its gaps have a pattern twice")
    for lacks, n, mean, scatter in zip(missing, n_rows, found.mean, found.scatter, strict=True):
        why = _wrong(int(n), mean[~lacks], scatter[np.ix_(~lacks, ~lacks)], 0, 1)
        if mean[lacks].any() or scatter[lacks].any() or scatter[:, lacks].any():
            why = "has numbers where cells are missing"
        if why:
            raise ValueError(f"a pattern of its gaps {why}")
    return found


def _units_record(width: int) -> np.dtype[Any]:
    """What the section has of units of one size."""
    numbers = [("sums", "<f8", (width,)), ("squares", "<f8", (width, width))]
    return np.dtype([("set", "<i8"), ("size", "<f8"), ("count", "<i8"), *numbers])


def _units_to_bytes(units: UnitSums) -> bytes:
    """The section."""
    table = np.zeros(len(units.count), _units_record(units.sums.shape[1]))
    table["set"], table["size"], table["count"] = units.data_set, units.size, units.count
    table["sums"], table["squares"] = units.sums, units.squares
    order = np.lexsort((units.size, units.data_set))
    return json.dumps(units.name).encode() + b"\n" + table[order].tobytes()


def _units_from_bytes(section: bytes, found: Saved) -> UnitSums:
    """What `_units_to_bytes` wrote, checked against the moments of data sets."""
    told, _, body = section.partition(b"\n")
    name, (F, N) = json.loads(told), found.mean.shape
    if not isinstance(name, str) or name in (*found.names, found.group):
        raise ValueError("its column of units is no text, or another of its columns")
    table = np.frombuffer(body, dtype=_units_record(N))
    data_set, count = (table[key].astype(np.int64) for key in ("set", "count"))
    size, sums, squares = (table[key].astype(np.float64) for key in ("size", "sums", "squares"))
    if not len(table) or ((data_set < 0) | (data_set >= F)).any():
        raise ValueError("its units are of data sets that it does not have")
    if not (np.isfinite(size) & (size >= 1) & (count >= 1)).all():
        raise ValueError("its units have sizes that no units have")
    if len(np.unique(np.column_stack([data_set, size]), axis=0)) < len(table):
        raise ValueError("its units have a size twice")
    rows = np.bincount(data_set, count * size, F)
    if (np.abs(rows - found.n) > _ROUNDING).any():
        raise ValueError("its units have other rows than its data sets")
    if not (np.isfinite(sums).all() and np.isfinite(squares).all()):
        raise ValueError("its units have sums that are not finite")
    if not np.array_equal(squares, np.swapaxes(squares, 1, 2)):
        raise ValueError("its units have sums of products that are not symmetric")
    made = UnitSums(name, data_set, size, count, sums, squares)
    for j in range(F):
        own = data_set == j
        between = (squares[own] / size[own][:, None, None]).sum(axis=0)
        square = found.scatter[j].diagonal()
        if (between.diagonal() > square * (1 + _ROUNDING) + _ROUNDING).any():
            raise ValueError("its units differ by more than their rows")
        if not all(map(_semidefinite, squares[own])):
            raise ValueError("its units have sums of products that no rows have")
    return made


OTHER = "other"  # a level that stands for several


class Discrete(NamedTuple):
    """What a file has of discrete columns."""

    names: tuple[str, ...]  # all columns
    categories: tuple[tuple[str, ...], ...]  # the levels of each discrete column; none for others
    merged: tuple[str, ...]  # columns whose last level stands for several
    cells: Cells  # of the discrete columns


def _discrete_from_bytes(levels: bytes, cells: bytes, data_sets: int) -> Discrete:
    """What was written."""
    told = json.loads(levels)
    names, categories = tuple(told["names"]), tuple(map(tuple, told["levels"]))
    merged = tuple(told["merged"])
    of = dict(zip(names, categories, strict=True))
    for own in (names, *categories):
        if not all(isinstance(text, str) for text in own) or len(set(own)) < len(own):
            raise ValueError("its columns or their levels are no texts, or occur twice")
    if [name for name in names if name in merged and of[name][-1:] == (OTHER,)] != list(merged):
        raise ValueError("its columns with levels put together are not some of its columns")
    sizes = [len(own) for own in categories if own]
    return Discrete(names, categories, merged, _cells(cells, sizes, data_sets))


def _cells(section: bytes, sizes: Sequence[int], data_sets: int) -> Cells:
    table = np.frombuffer(section, dtype="<i8").reshape(-1, len(sizes) + 2).astype(np.int64)
    keys, n = table[:, :-1], table[:, -1].copy()
    if not len(n) or (n < 1).any() or not np.array_equal(np.unique(keys, axis=0), keys):
        raise ValueError("its cells are not in order, occur twice, or have no rows")
    for column, size in zip(keys.T, [data_sets, *sizes], strict=True):
        if not np.array_equal(np.unique(column), np.arange(size)):
            raise ValueError("its cells are not of its data sets and levels")
    return Cells(keys[:, 0].copy(), keys[:, 1:].copy(), n)


def _check_moments(found: Saved, made: Discrete) -> None:
    """Raise unless the moments of indicators are those of the cells."""
    if labels_of(made.names, made.categories) != found.names:
        raise ValueError("its moments are of other columns than its levels")
    cells, n = made.cells, found.n
    if (cells.n > n[cells.data_set]).any() or not np.array_equal(
        np.bincount(cells.data_set, cells.n, len(n)), n
    ):
        raise ValueError("its cells have other rows than its data sets")
    at = indicator_columns(made.categories)
    own = moments_of(cells, made.categories, len(n))
    if not (
        np.array_equal(found.mean[:, at], own.mean)
        and np.array_equal(found.scatter[:, at[:, None], at], own.scatter)
    ):
        raise ValueError("its moments of levels are not those of its cells")


_FORMAT = "poolbn-statistics"
_VERSION = 3
_HEADER = ("poolbn", "group", "names", "levels", "sections")
SECTIONS = ("moments", "columns", "inputs", "interventions", "gaps", "levels", "cells", "units")
_BY_DIGITS = [ColumnFacts(digits) for digits in (None, *range(FULL + 1))]
_DTYPES = ("<i8", "<f8", "<f8", "<i8")
_MOST = 2**53  # rows: counts stay exact as floats
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,40}")  # of poolbn
_ANEW = "; make it anew with poolbn stats, or ask for it again"
# What not every reader takes: what such a file has, and who reads it.
_READERS = {
    "gaps": ("rows with missing cells", "pb.PatternStats.load"),
    "levels": ("discrete columns", "pb.CellStats.load"),
}


class Saved(NamedTuple):
    """What a file keeps: the fields of a `GroupStats`, and what has gaps or levels.

    With discrete columns, inputs are some of these and the others.
    """

    names: tuple[str, ...]
    levels: tuple[Hashable, ...]
    n: Integers
    mean: Floats
    scatter: Floats
    dropped: Integers
    group: str
    facts: tuple[ColumnFacts, ...]
    inputs: tuple[str, ...]
    gaps: Gaps | None = None
    discrete: Discrete | None = None
    units: UnitSums | None = None
    interventions: Interventions | None = None

    @property
    def kinds(self) -> list[str]:
        """What the columns of moments are of."""
        levels = () if self.discrete is None else self.discrete.categories
        indicators = set(indicator_columns(levels).tolist())
        return ["discrete" if k in indicators else "continuous" for k in range(len(self.names))]


@dataclass(frozen=True)
class About:
    """What a file of statistics says of itself."""

    version: int  # of the format
    poolbn: str  # the version of the software that wrote it
    sha256: str  # the checksum of all after the first line
    size: int  # bytes in all


def write_file(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write statistics, whole or not at all; what `read_file` would refuse is an error."""
    body = _body(saved, VERSION)
    with _refusing(f"cannot write {os.fspath(path)!r}"):
        _content(_parsed(body), least=0)
    write_whole(path, _identity(body) + body)


def read_file(
    path: str | os.PathLike[str], *, least: int = 1, takes: Collection[str] = ()
) -> Saved:
    """What `write_file` wrote.

    A data set has so many rows at least; sections that may be there are those that one `takes`.
    """
    shown = repr(os.fspath(path))
    about, parsed, body = _opened(path)
    newer = [name for name in parsed.sections if name not in SECTIONS]
    if newer:
        raise FileError(f"{shown} has {newer[0]!r}, which a newer poolbn wrote; update poolbn")
    with _refusing(f"{shown} does not hold statistics as it should", _ANEW):
        found = _content(parsed, 0 if "gaps" in parsed.sections else least)
        if _body(found, about.poolbn) != body:
            raise ValueError("something is in it that poolbn does not write")
    for name, (what, reader) in _READERS.items():
        if name in parsed.sections and name not in takes:
            none = ", and no discrete columns" * ("levels" in takes)
            raise FileError(f"{shown} has statistics of {what}{none}; read it with {reader}")
    return found


def file_has_levels(path: str | os.PathLike[str]) -> bool:
    """Whether a file has statistics of discrete columns; see `read_file`."""
    return read_file(path, takes=_READERS).discrete is not None


def read_about(path: str | os.PathLike[str]) -> About:
    """What a file of statistics says of itself."""
    about, _, _ = _opened(path)
    return about


class _Parsed(NamedTuple):
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


def _content(parsed: _Parsed, least: int) -> Saved:
    """All that a file holds, checked."""
    sections, levels = parsed.sections, parsed.header["levels"]
    discrete = None
    if "levels" in sections:
        discrete = _discrete_from_bytes(sections["levels"], sections["cells"], len(levels))
    found = _moments(parsed, least, discrete)
    if discrete is not None:
        _check_moments(found, discrete)
    if "units" in sections:
        found = found._replace(units=_units_from_bytes(sections["units"], found))
    if "gaps" not in sections:
        return found
    if discrete is not None:
        raise ValueError("it has missing values and levels")
    return found._replace(gaps=_gaps_from_bytes(sections["gaps"], *found.mean.shape))


def _body(saved: Saved, release: str) -> bytes:
    """All after the first line."""
    check_levels(saved.levels)
    arrays = zip((saved.n, saved.mean, saved.scatter, saved.dropped), _DTYPES, strict=True)
    sections = {"moments": b"".join(a.astype(dtype).tobytes() for a, dtype in arrays)}
    if any(each.public() != UNKNOWN for each in saved.facts):
        sections["columns"] = _told(saved.facts, saved.kinds)
    if saved.inputs:
        sections["inputs"] = json.dumps(saved.inputs).encode()
    if saved.interventions:
        at = saved.levels.index
        each = [[at(level), dict(own)] for level, own in saved.interventions.items()]
        sections["interventions"] = json.dumps(each).encode()
    if saved.gaps is not None:
        sections["gaps"] = _gaps_to_bytes(saved.gaps)
    if saved.discrete is not None:
        names, categories, merged, cells = saved.discrete
        told = {"names": names, "levels": categories, "merged": merged}
        sections["levels"] = json.dumps(told).encode()
        table = np.column_stack([cells.data_set, cells.codes, cells.n])  # these are in order
        sections["cells"] = table.astype("<i8").tobytes()
    if saved.units is not None:
        sections["units"] = _units_to_bytes(saved.units)
    sizes = {name: len(section) for name, section in sections.items()}
    values = (release, saved.group, saved.names, saved.levels, sizes)
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
    if not _RELEASE.fullmatch(header["poolbn"]):
        raise ValueError("its header has no version of poolbn")
    sections, start = {}, 0
    for name, size in dict(header["sections"]).items():
        if type(size) is not int or size < 0:
            raise ValueError(f"its section {name!r} has {size!r} bytes")
        sections[name] = payload[start : start + size]
        start += size
    if start != len(payload):
        raise ValueError(f"its sections need {start} bytes, not {len(payload)}")
    return _Parsed(header, sections)


def _refused(constant: str) -> None:
    raise ValueError(f"its header has {constant}")


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


def _moments(parsed: _Parsed, least: int, discrete: Discrete | None) -> Saved:
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
    *ends, words = np.cumsum([int(np.prod(shape)) for shape in shapes]).tolist()
    if 8 * words != len(payload):
        raise ValueError(
            f"{groups} data sets of {width} columns need {8 * words} bytes, not {len(payload)}"
        )
    parts = np.split(np.frombuffer(payload, dtype="<i8"), ends)
    n, mean, scatter, dropped = (
        part.view(dtype).astype(dtype[1:]).reshape(shape)  # in the order of this machine's bytes
        for part, dtype, shape in zip(parts, _DTYPES, shapes, strict=True)
    )
    rows = sum(n.tolist()) + sum(dropped.tolist())
    if rows > _MOST:
        raise ValueError(f"{rows} rows are more than anybody has")
    for j, level in enumerate(levels):
        why = _wrong(int(n[j]), mean[j], scatter[j], int(dropped[j]), least)
        if why:
            raise ValueError(f"data set {level!r} {why}")
    inputs = tuple(json.loads(parsed.sections.get("inputs", b"[]")))
    if [name for name in columns if name in inputs] != list(inputs):
        raise ValueError("its inputs are not some of its columns")
    unknown = (UNKNOWN,) * width
    found = Saved(names, levels, n, mean, scatter, dropped, group, unknown, inputs, None, discrete)
    found = found._replace(interventions=_targets(parsed, columns, levels, inputs))
    told = parsed.sections.get("columns")
    return found if told is None else found._replace(facts=_facts(told, found.kinds))


def _targets(
    parsed: _Parsed, columns: Sequence[str], levels: Sequence[Hashable], inputs: Sequence[str]
) -> Interventions:
    """The columns that were set, by data set."""
    free = [name for name in columns if name not in inputs]
    found: dict[Hashable, dict[str, How]] = {}
    for j, own in json.loads(parsed.sections.get("interventions", b"[]")):
        if type(j) is not int or not 0 <= j < len(levels) or levels[j] in found:
            raise ValueError("what was set is not said of its data sets")
        known = [name for name in free if name in own] == list(own)
        if not own or not known or not set(own.values()) <= set(get_args(How)):
            raise ValueError(f"what was set in data set {levels[j]!r} are not some of its columns")
        found[levels[j]] = own
    return found


class Checkpoint:
    """A folder that keeps the statistics of each file, whole or not at all.

    A file is known by its path, size and time of change, by how it is read, and by the version of
    poolbn. What has changed is read again.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.path.expanduser(os.fspath(folder))
        self.taken = self.made = 0  # files whose statistics were there, and that were read
        try:
            os.makedirs(self.folder, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: NUL in a name
            raise FileError(
                f"cannot keep a checkpoint in {self.folder!r}: {getattr(error, 'strerror', error)}"
            ) from error

    def saved(self, reading: Reading, make: Callable[[], Saved]) -> Saved:
        """The statistics of a single file: from the folder, or made and kept."""
        path = os.path.join(self.folder, f"{self._key(reading)}.stats")
        try:
            found = read_file(path, least=0)
        except FileError:  # not there; or damaged, and then it is made again
            write_file(path, make())
            found = read_file(path, least=0)  # as it will be found another time
            self.made += 1
        else:
            self.taken += 1
        return found

    @staticmethod
    def _key(reading: Reading) -> str:
        (part,) = reading.parts
        how = (reading.names, reading.group, reading.missing, part.keys, VERSION)
        text = json.dumps([identity(str(part.path)), how])
        return hashlib.sha256(text.encode()).hexdigest()[:32]
