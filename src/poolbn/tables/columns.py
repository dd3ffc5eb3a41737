"""Which columns of a source to use: the checks that need no rows, and what to say if they fail."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from poolbn.errors import GROUP, DataError, InPython, MessagePart, Option, left_out, nearest
from poolbn.findings import FindingKind, tell
from poolbn.tables.sources import Part
from poolbn.tables.text import looks_numeric

# R's write.csv has no name for them, pandas and readr make one of that.
_PLACES = re.compile(
    r"site|clinic|cent(er|re)|hospital|school|study|batch|lab$|cohort|country|region|district|"
    r"plate|farm|island|ward$|group|cluster|class|town|village|province|county",
    re.IGNORECASE,
)
_ROW_NAMES = re.compile(r"|unnamed: ?0|\.\.\.1|row[._]?names?", re.IGNORECASE)


def check_group(parts: list[Part], group: str | None) -> None:
    """Raise unless every row's data set can be known."""
    if group is not None:
        for part in parts:
            if group not in part.types:
                raise DataError(f"no column {group!r}{part.origin}{nearest(group, part.types)}")
        return
    if parts[0].name is None:
        likely = likely_groups(parts[0])
        which = f"; it could be {' or '.join(map(repr, likely[:5]))}" if likely else ""
        raise DataError(
            "no column says which data set a row came from: name it with ",
            GROUP,
            which,
            InPython("; or give a dict {name of data set: frame}"),
        )
    known = [part.name for part in parts]
    twice = [name for name in known if known.count(name) > 1]
    if twice:
        raise DataError(
            f"{known.count(twice[0])} files have the name {twice[0]!r}, and each file is taken "
            "for a data set of that name; rename them, or name a column with ",
            GROUP,
        )


def likely_groups(part: Part) -> list[str]:
    """Columns that could say which data set a row came from, the likeliest first.

    That is those with the name of a place or the like, then those with more than two values, texts
    before numbers.
    """
    found: dict[str, tuple[bool, bool, bool]] = {}
    for column, holds in part.types.items():
        try:
            cells = [str(cell) for cell in islice(part.cells(column), 10_000)]
        except DataError:
            if holds in ("", "text"):
                raise
            continue  # lists and the like name no data sets
        several = len(set(cells))
        place = _PLACES.search(column) is not None
        most = len(cells) // 5 if place else min(50, len(cells) // 2)
        few = several <= max(2, most) if cells else bool(holds)
        if few and (holds or not any("." in cell or "," in cell for cell in cells)):
            found[column] = not place, several <= 2, not holds
    return sorted(found, key=found.__getitem__)


def choose(
    parts: list[Part],
    group: str | None,
    columns: Iterable[str] | None,
    unit: str | None = None,
) -> tuple[str, ...]:
    """The names of the columns to keep, which every part has.

    What names of folders say is a column only for those who ask for it.
    """
    if isinstance(columns, str):
        raise DataError(
            Option("columns", columns), " is one name; give a list, ", Option("columns", [columns])
        )
    first = parts[0]
    if columns is None:
        warn_of_row_names(parts, group, unit)
    names = tuple(own_columns(first, group, unit) if columns is None else columns)
    for name in (group, unit):
        if name is not None and name in names:
            raise DataError(f"column {name!r} is both group and in columns; take it out of columns")
    if not names:
        raise DataError("no columns are chosen" if columns is not None else "no columns to use")
    chosen = Counter(names)
    twice = [c for c, times in chosen.items() if times > 1]
    if twice:
        raise DataError(f"column {twice[0]!r} is {chosen[twice[0]]} times in columns")
    for part in parts:
        absent = [c for c in names if c not in part.types]
        if absent and (len(parts) == 1 or columns is not None):
            raise DataError(f"no column {absent[0]!r}{part.origin}{nearest(absent[0], part.types)}")
        extra = [c for c in own_columns(part, group, unit) if c not in chosen]
        if columns is None and (absent or extra):
            raise DataError(
                f"the columns{part.origin} differ from those{first.origin}: "
                + "; ".join(
                    f"{what} {', '.join(map(repr, which))}"
                    for what, which in (("it lacks", absent), ("it alone has", extra))
                    if which
                )
                + "; ",
                *_common(parts, group, unit),
            )
    return names


def _common(parts: list[Part], *groups: str | None) -> tuple[MessagePart, ...]:
    """How to choose the columns that all have."""
    every = [set(own_columns(part, *groups)) for part in parts]
    common = [c for c in own_columns(parts[0], *groups) if all(c in own for own in every)]
    if not common:
        return ("they have none in common, so read them one by one",)
    return "choose common ones with ", Option("columns", common)


def own_columns(part: Part, *groups: str | None) -> list[str]:
    """The columns of a part without `groups`, row names, and what names of its folders say."""
    said = dict(part.keys)
    not_used = {*groups, row_names(part)}
    return [column for column in part.types if column not in not_used and column not in said]


def row_names(part: Part) -> str | None:
    """The first column, if its name says that it holds names of rows, as R and pandas write it."""
    first = next(iter(part.types), None)
    return first if first is not None and _ROW_NAMES.fullmatch(first) else None


def warn_of_row_names(parts: list[Part], *groups: str | None) -> None:
    """Warn of the column that is left out for its name."""
    name = row_names(parts[0])
    if name is None or name in groups:
        return
    first = f"the first column{parts[0].origin}, {name!r}"
    what = f"{first}, is left out: it is called as row names are"
    tell(FindingKind.ROW_NAMES, what, "if it holds values, give it another name", (name,))


def check_types(
    part: Part,
    names: Iterable[str],
    group: str | None,
    remedy: str | None = None,
    *,
    chosen: bool = False,
    unit: str | None = None,
) -> None:
    """Raise when a column is not numeric.

    The `remedy` is to leave it out, unless told; those that are numeric are named where nobody has
    `chosen` columns.
    """
    for column in names:
        if not part.types[column]:
            continue
        numeric = [c for c in own_columns(part, group, unit) if not part.types[c]]
        others: list[MessagePart] = ["choose ", Option("columns", numeric)]
        out: list[MessagePart] = [left_out(column)]
        raise DataError(
            f"column {column!r}{part.origin} is not numeric: it holds {part.types[column]}"
            f"{_stray(part, column)}; ",
            *([remedy] if remedy else out if chosen or not numeric else others),
        )


def _stray(part: Part, column: str) -> str:
    """Where text spoils a column that is mostly numbers."""
    if part.types[column] not in ("text", "mixed", "mixed-integer"):
        return ""
    numbers, others, first = 0, 0, None
    for row, cell in enumerate(part.cells(column), start=1):
        if cell is None:
            continue
        if looks_numeric(str(cell).replace(",", ".")):
            numbers += 1
        else:
            others += 1
            first = first or (row, cell)
    if first is None:
        return " that reads as numbers, so convert it to numbers" if numbers else ""
    if numbers < others:
        return ""
    return (
        f", mostly numbers, but row {first[0]}{part.origin} holds {first[1]!r} (and so "
        f"{others} cells in all), so make such cells missing and the column numeric"
    )
