"""Any table or file -> validated batches of (data set codes, float64 matrix)."""

from __future__ import annotations

import math
import os
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar, get_args

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.errors import DROP, DataError, check_option
from poolbn.tables import files, sources
from poolbn.tables.columns import check_group, check_types, choose
from poolbn.tables.grouping import DATA_SET, Group, grouped_by, nested
from poolbn.tables.kinds import ColumnKind, Kinds, Levels, column_kinds, has_levels, orders_in
from poolbn.tables.labels import Spellings, is_name
from poolbn.tables.missing import (
    Missing,
    Scan,
    Tally,
    check_finite,
    check_left,
    check_missing,
    no_words,
    packed,
)
from poolbn.tables.paths import check_once, paths
from poolbn.tables.sources import Part, Piece

Item = TypeVar("Item")

# Batches of so many cells: large ones keep the reading thread out of the way of the other one.
_CELLS = 2**22
# Smaller ones, as they come from some sources, are put together to so many rows.
_ROWS = 30_000
_WATCH = 0.1  # seconds in which a query that is stopped should end


@dataclass(frozen=True)
class Batch:
    """Some rows."""

    codes: Integers  # for each row the index of its data set in `Rows.levels`, (B,).
    # the N chosen columns, finite or NaN where missing, (B,) each; where it can be they are the
    # memory of the source itself, so do not write to them
    columns: list[Floats]
    dropped: Integers  # codes of the rows left out because a cell is missing
    # which cells are missing, as words (W, B) of `tables.missing.Scan`, or None if none is.
    missing: Integers | None = None
    # for each row a number that stands for its unit's name, (B,); the same name in two data sets is
    # two units. None where there are no units
    units: Integers | None = None

    @property
    def values(self) -> Floats:
        """The columns as a matrix, (B, N)."""
        return np.column_stack(self.columns)


@dataclass
class UnitNames:
    """Numbers that stand for the names of units, as these come."""

    numbers: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    last: list[Any] | None = None  # the names that `numbers` are of, which may come again
    known: defaultdict[Hashable, int] = field(default_factory=defaultdict)

    def index(self) -> defaultdict[Hashable, int]:
        """The number of each name; other names get the next ones."""
        if not self.known:
            self.known.update(zip(self.last or (), self.numbers.tolist(), strict=False))
            self.known.default_factory = self.known.__len__
        return self.known

    def numbers_of(self, coded: sources.Coded, unit: str, origin: str) -> Integers:
        """Those of names, and at last -1 for what is missing, (names + 1,)."""
        names = coded.labels
        if names is self.last:
            return self.numbers
        if self.last is None and coded.distinct:  # there may be no others, and so no need to know
            self.numbers = np.append(np.arange(len(names)), -1)
        else:
            try:
                made = [*map(self.index().__getitem__, names), -1]
                nameless = [k for k, name in enumerate(names) if not is_name(name)]
            except TypeError as error:
                raise sources.unhashable(unit, origin) from error
            self.numbers = np.array(made, dtype=np.int64)
            self.numbers[nameless] = -1
        self.last = names
        return self.numbers


@dataclass(frozen=True)
class Rows:
    """Rows to be read once."""

    names: tuple[str, ...]  # the N chosen columns
    group: str  # the column that says which data set a row came from, or what to call it
    levels: list[Hashable]  # the data sets met so far, in order of first appearance
    batches: Generator[Batch]  # the rows; errors in cells come up while it runs
    tally: Tally  # what was missing so far
    # what the codes of discrete columns mean, as far as they were met
    categories: Mapping[str, Levels] = field(default_factory=dict)
    unit: str | None = None  # the column that says which unit of its data set a row is of
    # the numbers of units' names; of numbers only those that do not stand for themselves
    unit_names: UnitNames = field(default_factory=UnitNames)

    def units_called(self, numbers: Integers) -> list[Hashable]:
        """The names that numbers of units stand for."""
        known = {number: name for name, number in self.unit_names.index().items()}
        return [known.get(number, number) for number in numbers.tolist()]


@dataclass(frozen=True)
class Reading:
    """What is to be read, checked as far as that needs no rows."""

    parts: tuple[Part, ...]  # the frames or files
    names: tuple[str, ...]  # the N chosen columns
    group: str | None  # the column that says which data set a row came from; None: each part is one
    missing: Missing  # whether rows with a missing cell are an error, left out, or kept
    discrete: frozenset[str] = frozenset()  # columns that hold levels, which are read as codes
    unit: str | None = None  # the column that says which unit of its data set a row is of
    # of some of these the levels from the lowest to the highest
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names_units(self) -> bool:
        """Whether units have names; else they are numbers."""
        return self.unit is not None and any(part.types[self.unit] for part in self.parts)

    @property
    def read_names(self) -> tuple[str, ...]:
        """The columns in which a cell may be missing: the chosen ones, and that of the units."""
        return self.names if self.unit is None else (*self.names, self.unit)

    @property
    def origin(self) -> str:
        """How a message says "in this source", where there is one."""
        return self.parts[0].origin if len(self.parts) == 1 else ""

    def each(self) -> list[Reading]:
        """One reading for each part."""
        return [replace(self, parts=(part,)) for part in self.parts]

    def rows(self, batch_rows: int | None = None, *, lenient: bool = False) -> Rows:
        """Stream the rows, so many in a batch, or as many as is fast.

        Where others follow it is `lenient`: there may be no rows, or none of a data set.
        """
        levels: list[Hashable] = []
        rows = batch_rows or max(1024, _CELLS // len(self.names))
        tally = Tally(np.zeros(len(self.read_names), dtype=np.int64))
        categories = {
            name: Levels.listed(self.orders.get(name, ()))
            for name in self.names
            if name in self.discrete
        }
        units = UnitNames()
        batches = _batches(self, rows, levels, tally, categories, units, lenient=lenient)
        if batch_rows is None:
            batches = _joined(batches, min(rows, _ROWS))
        group = self.group or DATA_SET
        return Rows(self.names, group, levels, batches, tally, categories, self.unit, units)


def read(
    source: object,
    *,
    group: Group,
    columns: Iterable[str] | None,
    missing: Missing,
    batch_rows: int | None = None,
) -> Rows:
    """Stream the rows of what `prepare` opens; `batch_rows` are as for `Reading.rows`."""
    return prepare(source, group=group, columns=columns, missing=missing).rows(batch_rows)


def prepare(
    source: object,
    *,
    group: Group,
    columns: Iterable[str] | None,
    missing: Missing,
    name: str | None = None,
    discrete: frozenset[str] = frozenset(),
) -> Reading:
    """Open a table or files as `pb.stats` takes them, and check the columns.

    With a `name` all rows are of one data set that is called so; `discrete` columns hold levels,
    and all others must be numeric.
    """
    reading = opened(source, group, columns, missing, name)
    numbers = [column for column in reading.names if column not in discrete]
    for part in reading.parts:
        check_types(part, numbers, reading.group, chosen=columns is not None, unit=reading.unit)
    return replace(reading, discrete=discrete)


def prepare_kinds(
    source: object,
    *,
    group: Group,
    columns: Iterable[str] | None,
    missing: Missing,
    kinds: Kinds | None,
    name: str | None = None,
) -> tuple[Reading, tuple[ColumnKind, ...]]:
    """The same for columns of all kinds, and what these are; `kinds` are those that are given."""
    reading = opened(source, group, columns, missing, name)
    found = column_kinds(reading.parts, reading.names, kinds)
    held = zip(reading.names, found, strict=True)
    discrete = frozenset(name for name, kind in held if has_levels(kind))
    return replace(reading, discrete=discrete, orders=orders_in(kinds)), found


def opened(
    source: object,
    group: Group,
    columns: Iterable[str] | None,
    missing: Missing,
    name: str | None = None,
) -> Reading:
    """With the columns chosen, whatever they hold; arguments are as for `prepare`."""
    check_option("missing", missing, get_args(Missing))
    parts = as_parts(source)
    group, unit = nested(source, parts, group)
    if group is not None and not isinstance(group, str):
        parts, group = grouped_by(source, parts, group)
    if name is not None:
        parts = [sources.constant(part, {DATA_SET: name}, {DATA_SET: "text"}) for part in parts]
        group = DATA_SET
    check_group(parts, group)
    chosen = choose(parts, group, columns, unit)
    return Reading(tuple(parts), chosen, group, missing, unit=unit)


def as_parts(source: object) -> list[Part]:
    """The frames or files that a source is made of."""
    if isinstance(source, str | os.PathLike):
        source = [source]
    if isinstance(source, list | tuple) and all(isinstance(s, str | os.PathLike) for s in source):
        if not source:
            raise DataError("the list of files is empty")
        found = [path for entry in source for path in paths(os.fspath(entry))]
        check_once(found)
        return files.parts_of(found)
    if isinstance(source, sources.Part):
        return [source]
    if isinstance(source, list) and source and isinstance(source[0], sources.Part):
        return source
    if isinstance(source, Mapping):
        if not source:
            raise DataError("the dict of frames is empty; give {name of data set: frame}")
        return [sources.frame(table, name) for name, table in source.items()]
    if isinstance(source, list | tuple) and not any(isinstance(s, str) for s in source):
        return [sources.frame(table, k) for k, table in enumerate(source, 1)]
    return [sources.frame(source, None)]


def _pieces(plan: Reading, rows: int) -> Generator[tuple[Part, int, Piece]]:
    """The pieces of all parts, each with the number of its first row in its part."""
    spellings = Spellings()
    for part in plan.parts:
        start = 1
        labels: list[Any] = []
        wanted = sources.Wanted(plan.read_names, plan.group, rows, plan.discrete)
        if plan.unit is not None and plan.names_units:
            wanted = wanted._replace(coded=plan.discrete | {plan.unit}, many=frozenset([plan.unit]))
        for piece in part.pieces(wanted):
            yield part, start, piece
            start += len(piece.keys)
            if len(plan.parts) > 1:
                labels += [piece.labels[k] for k in _present(piece)]
        spellings.add(labels, part.origin)
        if start == 1 and plan.group is None:
            raise DataError(f"data set {part.name!r} has no rows; leave it out")


def _batches(
    plan: Reading,
    rows: int,
    levels: list[Hashable],
    tally: Tally,
    categories: Mapping[str, Levels],
    unit_names: UnitNames,
    *,
    lenient: bool,
) -> Generator[Batch]:
    index: dict[Hashable, int] = {}
    kept = np.zeros(0, dtype=np.int64)
    nothing = packed(np.ones((1, len(plan.names)), dtype=bool))  # of a row that lacks all
    pieces, before = _pieces(plan, rows), plan.parts[0]
    if before.path is not None:
        pieces = _ahead(pieces, [part.stop for part in plan.parts])
    spellings = {name: Spellings(name) for name in categories}

    def finish(part: Part) -> None:
        """Levels of several sources are spelled the same, as data sets are."""
        for name, of in spellings.items():
            of.add(categories[name].own, part.origin)
            categories[name].own.clear()

    for part, start, piece in pieces:
        if part is not before:
            finish(before)
            before = part
        codes = encode(piece, index, plan.group, part.origin)
        levels.extend(islice(index, len(levels), None))
        columns = [
            categories[name].codes(column, piece.coded[name]) if name in categories else column
            for name, column in zip(plan.names, piece.columns, strict=False)
        ]
        units = None if plan.unit is None else _units(piece, plan, unit_names, part.origin)
        dropped, missing = codes[:0], None
        nameless = units is not None and bool((units < 0).any())
        if (codes < 0).any() or nameless or not all(map(_surely_finite, columns)):
            where = _where(plan, part.origin, start, codes, levels)
            lacking = [] if units is None else [np.where(units < 0, np.nan, 0.0)]
            found = Scan.of([*columns, *lacking])
            if found.infinite:
                check_finite(np.column_stack(columns), where, "make it missing and use ", DROP)
            missing = found.words[: len(nothing)]
            bad = tally.add(found, codes, where)
            if plan.missing == "em":
                bad = (codes < 0) | (missing == nothing).all(axis=0)
                bad = bad if units is None else bad | (units < 0)
            dropped = codes[bad & (codes >= 0)]
            if bad.any():
                codes, columns = codes[~bad], [column[~bad] for column in columns]
                units = None if units is None else units[~bad]
                missing = missing[:, ~bad]
            missing = missing if missing.any() else None
        kept = np.pad(kept, (0, len(levels) - len(kept)))
        kept += np.bincount(codes, minlength=len(levels))
        # With missing="error" the rest is read to count all that is missing, for the message.
        if tally.rows == 0 or plan.missing != "error":
            yield Batch(codes, columns, dropped, missing, units)
    finish(before)
    if plan.missing == "error":
        check_missing(tally, plan.read_names, plan.group)
    if not lenient:
        check_left(kept, levels, tally.rows, f" ({tally.counts(plan.read_names, plan.group)})")


_SMALL_ID = 2**22  # smaller whole numbers stand for themselves
_LARGE_ID = 2.0**53  # larger ones are not exact as floats


def _units(piece: Piece, plan: Reading, names: UnitNames, origin: str) -> Integers:
    """A number for each row's unit, -1 where that is missing."""
    column, unit = piece.columns[-1], str(plan.unit)
    if unit in piece.coded:
        numbers = names.numbers_of(piece.coded[unit], unit, origin)
        return numbers[np.where(np.isnan(column), -1.0, column).astype(np.int64)]
    if column.min(initial=0) >= 0 and column.max(initial=0) < _SMALL_ID:  # NaN is neither
        codes = column.astype(np.int64)
        if (codes == column).all():
            return codes
    with np.errstate(invalid="ignore"):
        codes = column.astype(np.int64)
    small = (codes == column) & (codes >= 0) & (codes < _SMALL_ID)
    odd = column[~small]
    if (np.abs(odd) >= _LARGE_ID).any():
        raise DataError(
            f"column {unit!r}{origin} has numbers of more than 15 digits, which are not exact as "
            "numbers; turn them into text, since they say units"
        )
    found, keys = np.unique(odd, return_inverse=True)
    index = names.known
    new = [
        -1 if np.isnan(v) else index.setdefault(v, _SMALL_ID + len(index)) for v in found.tolist()
    ]
    codes[~small] = np.array(new, dtype=np.int64)[keys.reshape(-1)]
    return codes


def encode(piece: Piece, index: dict[Hashable, int], group: str | None, origin: str) -> Integers:
    """The index of each row's data set in `index`, which grows by first appearance; -1: missing."""
    code = np.full(len(piece.labels) + 1, -1, dtype=np.int64)
    keys = piece.keys
    present = _present(piece)
    try:
        new = [k for k in present if piece.labels[k] not in index]
        if len(new) > 1:
            first = np.zeros(len(code), dtype=np.int64)
            first[keys[::-1]] = np.arange(len(keys))[::-1]  # the last one written stays
            new.sort(key=first.__getitem__)
        for k in new:
            if piece.labels[k] is not None and piece.labels[k] == piece.labels[k]:
                index[piece.labels[k]] = len(index)
        for k in present:
            code[k] = index.get(piece.labels[k], -1)
    except TypeError as error:
        raise sources.unhashable(str(group), origin) from error
    return code[keys]


def _present(piece: Piece) -> list[int]:
    """The indices of those data sets in `piece.labels` that have rows."""
    keys = piece.keys
    return np.flatnonzero(np.bincount(keys[keys >= 0], minlength=len(piece.labels))).tolist()


def _surely_finite(column: Floats) -> bool:
    """One fast pass: a sum is finite only if all its terms are (but it may overflow)."""
    with np.errstate(invalid="ignore", over="ignore"):
        return math.isfinite(column.sum())


def _where(
    plan: Reading, origin: str, start: int, codes: Integers, levels: list[Hashable]
) -> Callable[[int, int], str]:
    """Puts a cell of a batch that begins with row `start` in words; column -1 is `group`."""

    def words(row: int, column: int) -> str:
        name = plan.group if column < 0 else plan.read_names[column]
        known = f" (data set {levels[codes[row]]!r})" if codes[row] >= 0 else ""
        return f"row {start + row}{origin}{known} in column {name!r}"

    return words


def _joined(batches: Generator[Batch], least: int) -> Generator[Batch]:
    """Small batches put together until they have at least so many rows; large ones as they are."""

    def join() -> Batch:
        columns = [np.concatenate(c) for c in zip(*(b.columns for b in held), strict=True)]
        codes = np.concatenate([b.codes for b in held])
        dropped, missing = np.concatenate([b.dropped for b in held]), None
        if any(b.missing is not None for b in held):
            none = (no_words(len(columns), len(b.codes)) for b in held)
            words = [z if b.missing is None else b.missing for b, z in zip(held, none, strict=True)]
            missing = np.concatenate(words, axis=1)
        units = [b.units for b in held if b.units is not None]
        return Batch(codes, columns, dropped, missing, np.concatenate(units) if units else None)

    held: list[Batch] = []
    for batch in batches:
        if held and len(batch.codes) >= least:
            yield join()
            held = []
        held.append(batch)
        if sum(len(b.codes) for b in held) >= least:
            yield held[0] if len(held) == 1 else join()
            held = []
    if held:
        yield join()


def _ahead(items: Generator[Item], stops: Iterable[Callable[[], None]] = ()) -> Generator[Item]:
    """The same items; another thread makes up to two more meanwhile.

    If the rest is not wanted, no more than the one in the making is finished, or stopped.
    """
    pool = ThreadPoolExecutor(max_workers=1)
    coming = deque(pool.submit(next, items, None) for _ in range(2))
    try:
        while (item := coming[0].result()) is not None:
            coming.popleft()
            coming.append(pool.submit(next, items, None))
            yield item
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        while left := [future for future in coming if not future.done()]:
            for stop in stops:
                stop()  # again, since a query may have begun only now
            wait(left, timeout=_WATCH)
        pool.shutdown()
        items.close()
