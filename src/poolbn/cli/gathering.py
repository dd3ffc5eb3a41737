"""The statistics of all files that a command is given, of rows and .stats files, added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from poolbn.errors import DataError, Option, OptionError, nearest
from poolbn.moments.cellstats import CellStats
from poolbn.moments.data import Data, check_no_group
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.patternstats import PatternStats, added, without_gaps
from poolbn.moments.reading import of_levels, of_reading, patterns, stats
from poolbn.moments.statsfile import has_levels
from poolbn.moments.table import gathered
from poolbn.tables import data
from poolbn.tables.columns import own_columns, warn_of_row_names
from poolbn.tables.kinds import ColumnKind
from poolbn.tables.missing import Missing
from poolbn.tables.paths import check_once, paths
from poolbn.wording import listed

if TYPE_CHECKING:
    from poolbn.moments.statsfile import Checkpoint

STATS = ".stats"
_SHOWN = 20  # columns or data sets in a message
_ROWS = "the files of rows"


class ReadingOptions(TypedDict):
    """Which rows to read, and what of them; as `pb.stats` has it."""

    group: str | None
    columns: Sequence[str] | None
    missing: Missing
    inputs: Sequence[str]


def parted(entries: Iterable[str]) -> tuple[list[str], list[str]]:
    """The .stats files among what is given, and the files of rows; none may be given twice."""
    found = [path for entry in entries for path in paths(entry)]
    check_once(found)
    saved = [path for path in found if path.endswith(STATS)]
    return saved, [path for path in found if not path.endswith(STATS)]


def read_data(
    entries: Sequence[str],
    tell: Callable[[str], None],
    kinds: Mapping[str, ColumnKind] | None,
    **reading: Unpack[ReadingOptions],
) -> Data:
    """What a network is learned from: statistics where all columns are continuous, else rows.

    `tell` is told what a user should know of a sum of statistics.
    """
    saved, rows = parted(entries)
    if any(map(has_levels, saved)):
        return read_levels(entries, tell, kinds, **reading)
    if not saved:
        made = gathered(rows, kinds=kinds, **reading)
        if made.patterns is not None and not made.patterns.has_gaps:
            return made.patterns.known.with_inputs(reading["inputs"])
        return made
    if kinds is not None:
        raise OptionError(
            Option("kinds", dict(kinds)), f" is for rows, and '{saved[0]}' has none; leave it out"
        )
    return read_stats(entries, tell, **reading)


def read_levels(
    entries: Sequence[str],
    tell: Callable[[str], None],
    kinds: Mapping[str, ColumnKind] | None,
    *,
    name: str | None = None,
    **reading: Unpack[ReadingOptions],
) -> CellStats:
    """The statistics of rows and of .stats files that have discrete columns, added up.

    `tell` and `name` are as for `read_patterns`.
    """
    saved, rows = parted(entries)
    if not rows:
        check_no_group(reading["group"])
    parts = {path: CellStats.load(path) for path in saved}
    columns = reading["columns"]
    if columns is not None:
        parts = {path: part.select(columns) for path, part in parts.items()}
    if rows:
        prepared, held = data.prepare_kinds(
            rows, name=name, kinds=kinds, group=reading["group"], columns=columns,
            missing=reading["missing"],
        )  # fmt: skip
        parts[_ROWS] = of_levels(prepared, held, kinds or {})
    check_columns({path: part.names for path, part in parts.items()}, columns)
    if name is None:
        _tell_shared({path: part.levels for path, part in parts.items()}, tell)
    first, *rest = parts.values()
    whole = sum(rest, first)
    return whole.with_inputs(reading["inputs"]) if reading["inputs"] else whole


def holds_levels(
    entries: Sequence[str],
    kinds: Mapping[str, ColumnKind] | None,
    *,
    name: str | None = None,
    **reading: Unpack[ReadingOptions],
) -> bool:
    """Whether files of rows or .stats files have discrete columns."""
    saved, rows = parted(entries)
    if any(map(has_levels, saved)):
        return True
    if not rows:
        return False
    _, held = data.prepare_kinds(
        rows, name=name, kinds=kinds, group=reading["group"], columns=reading["columns"],
        missing=reading["missing"],
    )  # fmt: skip
    return any(kind != "continuous" for kind in held)


def read_stats(
    entries: Sequence[str], tell: Callable[[str], None], **reading: Unpack[ReadingOptions]
) -> GroupStats:
    """The statistics of rows and of .stats files, added up, and completed where cells are missing.

    `tell` is told what a user should know of the sum.
    """
    found = read_patterns(entries, tell, **reading)
    return stats(found if found.has_gaps else found.known, inputs=reading["inputs"])


def read_patterns(
    entries: Sequence[str],
    tell: Callable[[str], None],
    *,
    name: str | None = None,
    checkpoint: Checkpoint | None = None,
    **reading: Unpack[ReadingOptions],
) -> PatternStats:
    """The statistics of rows and of .stats files, with and without gaps, added up.

    `tell` is told what a user should know of the sum. With a `name` all is one data set. A
    checkpoint keeps the statistics of each file of rows.
    """
    saved, rows = parted(entries)
    columns = reading["columns"]
    if not rows:
        check_no_group(reading["group"])
    if checkpoint is not None and not rows:
        raise OptionError("--checkpoint is for files of rows; leave it out")
    found = {path: PatternStats.load(path) for path in saved}
    prepared = None
    names = {path: part.names for path, part in found.items()}
    if rows:
        prepared = data.prepare(
            rows, name=name, group=reading["group"], columns=columns, missing=reading["missing"]
        )
        names[_ROWS] = prepared.names
    check_columns(names, columns)
    parts = found if columns is None else {path: p.select(columns) for path, p in found.items()}
    if name is not None:
        parts = {path: as_one(part, name) for path, part in parts.items()}
    if prepared is not None and reading["missing"] == "em":
        if checkpoint is not None:
            raise OptionError("--checkpoint does not go with ", Option("missing", "em"))
        parts[_ROWS] = patterns(prepared.rows())
    elif prepared is not None:
        parts[_ROWS] = without_gaps(of_reading(prepared, checkpoint))
    if name is None:
        _tell_shared({path: part.levels for path, part in parts.items()}, tell)
    whole = added(parts.values())
    return replace(whole, known=stats(whole.known, inputs=reading["inputs"]))


def check_columns(names: Mapping[str, Sequence[str]], columns: Sequence[str] | None) -> None:
    """Raise where a file lacks columns that others have, or that are chosen."""
    every = list(dict.fromkeys(columns or (c for own in names.values() for c in own)))
    lacking = {
        path: absent
        for path, own in names.items()
        if (absent := [c for c in every if c not in own])
    }
    if not lacking:
        return
    if columns is not None:
        path, absent = next(iter(lacking.items()))
        raise DataError(f"no column {absent[0]!r} in {path}{nearest(absent[0], names[path])}")
    told = "; ".join(
        f"{path} lack{'' if path == _ROWS else 's'} {_names(absent)}"
        for path, absent in lacking.items()
    )
    raise DataError(f"the columns differ: {told}; take those that all have with --common")


def _each(entries: Sequence[str], group: str | None) -> list[list[str]]:
    """The columns of each file."""
    saved, rows = parted(entries)
    each = [
        list((CellStats if has_levels(path) else PatternStats).load(path).names) for path in saved
    ]
    parts = data.as_parts(rows) if rows else []
    if parts:
        warn_of_row_names(parts, group)
    return each + [own_columns(part, group) for part in parts]


def without_columns(
    entries: Sequence[str],
    group: str | None,
    columns: Sequence[str] | None,
    exclude: Sequence[str],
) -> list[str]:
    """The columns, all by default, but for some."""
    known = columns or list(dict.fromkeys(name for own in _each(entries, group) for name in own))
    for name in exclude:
        if name == group:
            raise DataError(f"column {name!r} is the group, and cannot be left out with --exclude")
        if name not in known:
            raise DataError(f"no column {name!r} to leave out{nearest(name, known)}")
    kept = [name for name in known if name not in exclude]
    if not kept:
        raise DataError("--exclude leaves no column; name fewer")
    return kept


def common_columns(
    entries: Sequence[str], group: str | None, tell: Callable[[str], None]
) -> list[str]:
    """The columns that all files have, in the order of the first; tells which are left out."""
    each = _each(entries, group)
    counts = Counter(name for own in each for name in own)
    common = [name for name, count in counts.items() if count == len(each)]
    left = [name for name, count in counts.items() if count < len(each)]
    if not common:
        raise DataError(f"the {len(each)} files have no column in common")
    if left:
        tell(f"left out, because not all files have them: {_names(left)}")
    return common


def as_one(found: PatternStats, name: str) -> PatternStats:
    """All data sets as one of this name."""
    return added(found.data_sets([j], [name]) for j in range(len(found.levels)))


def _tell_shared(levels: Mapping[str, tuple[Hashable, ...]], tell: Callable[[str], None]) -> None:
    """Tell where data sets of the same name become one: they may be different sites."""
    counts = Counter(level for own in levels.values() for level in own)
    shared = [level for level, count in counts.items() if count > 1]
    if shared:
        where = [path for path, own in levels.items() if not set(own).isdisjoint(shared)]
        tell(
            f"note: rows are added where data sets of {listed(where)} have the same "
            f"name: {_names(shared)}; if they are different data sets, make the files with "
            "different names (poolbn stats --group-name)"
        )


def _names(names: Sequence[Hashable]) -> str:
    return listed([repr(name) for name in names], most=_SHOWN)
