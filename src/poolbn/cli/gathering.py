"""The statistics of all files that a command is given, of rows and .stats files, added up."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from poolbn.errors import DataError, Option, OptionError, nearest
from poolbn.moments.cellstats import CellStats
from poolbn.moments.data import Data, check_no_group
from poolbn.moments.patternstats import PatternStats, added, without_gaps
from poolbn.moments.reading import of_levels, of_reading, patterns, with_roles
from poolbn.moments.statsfile import file_has_levels
from poolbn.moments.table import gathered
from poolbn.moments.targets import Targets
from poolbn.tables import data
from poolbn.tables.columns import own_columns, warn_of_row_names
from poolbn.tables.grouping import Group, columns_in
from poolbn.tables.kinds import ColumnKind, Kinds, is_normal
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

    group: Group
    columns: Sequence[str] | None
    kinds: Kinds | None
    missing: Missing
    inputs: Sequence[str]
    interventions: Targets


def parted(entries: Iterable[str]) -> tuple[list[str], list[str]]:
    """The .stats files among what is given, and the files of rows; none may be given twice."""
    found = [path for entry in entries for path in paths(entry)]
    check_once(found)
    saved = [path for path in found if path.endswith(STATS)]
    return saved, [path for path in found if not path.endswith(STATS)]


def read_data(
    entries: Sequence[str],
    tell: Callable[[str], None],
    **reading: Unpack[ReadingOptions],
) -> Data:
    """What a network is learned from: statistics where all columns are continuous, else rows.

    `tell` is told what a user should know of a sum of statistics.
    """
    saved, rows = parted(entries)
    if saved and reading["kinds"] is not None and not any(map(file_has_levels, saved)):
        raise OptionError(
            Option("kinds", dict(reading["kinds"])),
            f" is for rows, and '{saved[0]}' has none; leave it out",
        )
    made: Data = read_sums(entries, tell, **reading) if saved else gathered(rows, **reading)
    if made.patterns is None or made.has_rows:
        return made
    gaps = made.patterns.has_gaps
    return made.stats() if gaps else made.patterns.known


Sums = CellStats | PatternStats  # with discrete columns, or with missing cells


def load(path: str) -> Sums:
    """What a .stats file holds."""
    return (CellStats if file_has_levels(path) else PatternStats).load(path)


def read_sums(
    entries: Sequence[str],
    tell: Callable[[str], None],
    *,
    name: str | None = None,
    checkpoint: Checkpoint | None = None,
    **reading: Unpack[ReadingOptions],
) -> Sums:
    """The statistics of rows and of .stats files, added up.

    `tell` is told what a user should know of the sum. With a `name` all is one data set. A
    checkpoint keeps the statistics of each file of rows.
    """
    saved, rows = parted(entries)
    columns, prepared, discrete = reading["columns"], None, any(map(file_has_levels, saved))
    held: tuple[ColumnKind, ...] = ()
    if rows:
        prepared, held = data.prepare_kinds(
            rows, name=name, kinds=reading["kinds"], group=reading["group"], columns=columns,
            missing=reading["missing"],
        )  # fmt: skip
        discrete |= any(not is_normal(kind) for kind in held)
    else:
        check_no_group(reading["group"])
        if checkpoint is not None:
            raise OptionError("--checkpoint is for files of rows; leave it out")
    if checkpoint is not None and discrete:
        raise OptionError("--checkpoint is for continuous columns; leave it out")
    if checkpoint is not None and reading["missing"] == "em":
        raise OptionError("--checkpoint does not go with ", Option("missing", "em"))
    found = [(CellStats if discrete else PatternStats).load(path) for path in saved]
    names = {path: part.names for path, part in zip(saved, found, strict=True)}
    check_columns(names | ({_ROWS: prepared.names} if prepared else {}), columns)
    parts: list[Any] = found if columns is None else [part.select(columns) for part in found]
    total: Callable[[Sequence[Any]], Any] = partial(reduce, operator.add) if discrete else added
    if name is not None:  # all data sets as one of this name
        each = [[part.data_sets([j], [name]) for j in range(len(part.levels))] for part in parts]
        parts = [total(own) for own in each]
    if prepared is not None and discrete:
        parts.append(of_levels(prepared, held, reading["kinds"] or {}))
    elif prepared is not None and reading["missing"] == "em":
        parts.append(patterns(prepared.rows()))
    elif prepared is not None:
        parts.append(without_gaps(of_reading(prepared, checkpoint)))
    if name is None:
        every = [*saved, *[_ROWS] * (prepared is not None)]
        levels = {path: part.levels for path, part in zip(every, parts, strict=True)}
        _tell_shared(levels, tell)
    whole: Sums = total(parts)
    return with_roles(whole, reading["inputs"], reading["interventions"])


def check_columns(names: Mapping[str, Sequence[str]], columns: Sequence[str] | None) -> None:
    """Raise where a file lacks columns that others have, or that are chosen."""
    every = list(dict.fromkeys(columns or (c for own in names.values() for c in own)))
    lacking = {path: [c for c in every if c not in own] for path, own in names.items()}
    told = []
    for path, absent in lacking.items():
        if absent and columns is not None:
            raise DataError(f"no column {absent[0]!r} in {path}{nearest(absent[0], names[path])}")
        if absent:
            told.append(f"{path} lack{'s' * (path != _ROWS)} {_names(absent)}")
    if told:
        words = "; ".join(told)
        raise DataError(f"the columns differ: {words}; take those that all have with --common")


def _each(entries: Sequence[str], group: Group) -> list[list[str]]:
    """The columns of each file."""
    saved, rows = parted(entries)
    each = [list(load(path).names) for path in saved]
    parts = data.as_parts(rows) if rows else []
    if parts:
        groups = columns_in(rows, parts, group)
        warn_of_row_names(parts, *groups)
        each += [own_columns(part, *groups) for part in parts]
    return each


def grouping(entries: Sequence[str], text: str | None) -> Group:
    """What --group names: a column, or two as in clinic/patient, units inside data sets.

    With nothing before the slash each file is a data set.
    """
    if text is None or "/" not in text:
        return text
    _, rows = parted(entries)
    known = {column for part in data.as_parts(rows) for column in part.types} if rows else set()
    outer, _, unit = text.partition("/")
    two = unit in known and (not outer or outer in known)
    if two and text in known:
        raise OptionError(
            f"--group {text} could be the column {text!r}, or {outer!r} and units {unit!r} inside "
            "it, since all are columns; rename one"
        )
    return [outer or None, unit] if two or (outer in known and text not in known) else text


def without_columns(
    entries: Sequence[str], group: Group, columns: Sequence[str] | None, exclude: Sequence[str]
) -> list[str]:
    """The columns, all by default, but for some."""
    known = columns or list(dict.fromkeys(name for own in _each(entries, group) for name in own))
    for name in exclude:
        if name == group or (isinstance(group, list) and name in group):
            raise DataError(f"column {name!r} is the group, and cannot be left out with --exclude")
        if name not in known:
            raise DataError(f"no column {name!r} to leave out{nearest(name, known)}")
    kept = [name for name in known if name not in exclude]
    if not kept:
        raise DataError("--exclude leaves no column; name fewer")
    return kept


def common_columns(entries: Sequence[str], group: Group, tell: Callable[[str], None]) -> list[str]:
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
