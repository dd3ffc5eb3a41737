"""`look`: the first thing to do with a table. What it holds, what to fix, how to learn from it."""

from __future__ import annotations

import os
import shlex
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.errors import DataError, Option, OptionError, left_out
from poolbn.findings import DataWarning, Finding, FindingKind
from poolbn.moments.between import MeansCorrelation, correlated, mean_correlations
from poolbn.moments.checks import check
from poolbn.moments.data import Data
from poolbn.moments.reading import check_reading
from poolbn.moments.table import gathered
from poolbn.tables import data
from poolbn.tables.causes import Described, Reason, reason, tiers
from poolbn.tables.columns import likely_groups, own_columns
from poolbn.tables.grouping import Group, nested
from poolbn.tables.kinds import (
    MOST_LEVELS,
    ColumnKind,
    Kinds,
    Levels,
    check_levels,
    check_order,
    check_varied,
    checked_kinds,
    column_kinds,
    has_levels,
    is_date,
    is_ordered,
    known_kinds,
    orders_in,
)
from poolbn.tables.missing import Missing
from poolbn.tables.ranking import likely_order
from poolbn.tables.sources import MOST_BYTES, remembered
from poolbn.wording import (
    DATA_SET,
    clipped,
    counted,
    listed,
    noun_of,
    shortened,
    visible,
    without_secrets,
)

if TYPE_CHECKING:
    import pandas as pd


_NESTED = ("list", "struct", "map", "large_list", "array", "object")


@dataclass(frozen=True)
class Survey:
    """What is in a table."""

    levels: tuple[Hashable, ...]  # the F data sets
    n: tuple[int, ...]  # rows of each, (F,)
    unknown: int  # rows that do not say their data set
    columns: tuple[SurveyedColumn, ...]  # all that there are but the group


@dataclass(frozen=True)
class SurveyedColumn:
    """What one column holds."""

    name: str  # of the column
    kind: str  # of `known_kinds`; else what it holds, such as "date"
    # of a column that is not one of numbers, and in how many rows each is
    levels: tuple[tuple[str, int], ...]
    low: float  # the lowest of numbers, NaN where there are none
    high: float  # the highest
    missing: tuple[int, ...]  # in how many rows of each data set there is no value, (F,)
    error: DataError | None = None  # why it cannot be learned from; None where it can

    @property
    def gaps(self) -> int:
        """Rows without a value."""
        return sum(self.missing)


def survey(reading: data.Reading, given: Kinds | None) -> Survey:
    """Look at all rows of all columns, which missing="em" keeps."""
    kinds = checked_kinds(reading.names, given)
    found: dict[str, tuple[str, DataError | None]] = {}
    for name in reading.names:
        own = {name: kinds[name]} if name in kinds else None
        holds = next((h for part in reading.parts if (h := part.types[name])), "")
        try:
            (kind,) = column_kinds(reading.parts, (name,), own)
        except DataError as error:
            found[name] = holds or "continuous", error
        else:
            found[name] = kind, None
    nested = [n for n, (kind, error) in found.items() if error and kind.startswith(_NESTED)]
    numbers = [kind for kind in known_kinds() if not has_levels(kind)]
    coded = frozenset(n for n, (kind, _) in found.items() if kind not in numbers)
    names = tuple(name for name in reading.names if name not in nested)
    orders = orders_in(given)
    rows = replace(reading, names=names, discrete=coded.intersection(names), orders=orders).rows()
    seen = {name: _Seen() for name in reading.names}
    n = Counter[int]()
    with closing(rows.batches) as batches:
        for batch in batches:
            n.update(_counts(batch.codes) + _counts(batch.dropped))
            for name, cells in zip(names, batch.columns, strict=True):
                seen[name].add(batch, cells, coded=name in coded)
    sets = range(len(rows.levels))
    facts = []
    for name, (holds, problem) in found.items():
        column = seen[name]
        # Rows that do not say their data set have no values here, but name levels.
        order = rows.categories[name] if name in rows.categories else Levels()
        counts = ((level, column.counts[order.index[level]]) for level in order.names)
        levels = tuple((level, count) for level, count in counts if count)
        missing = tuple(column.missing[j] for j in sets)
        made = SurveyedColumn(name, holds, levels, column.low, column.high, missing, problem)
        known = _ranked(name, order, orders) if is_ordered(holds) else None
        wrong = known or _wrong(made, guessed=name not in kinds)
        checked = made if problem else replace(made, error=wrong)
        facts.append(checked)
    every = tuple(n[j] for j in sets)
    return Survey(tuple(rows.levels), every, rows.tally.keys, tuple(facts))


def _ranked(name: str, levels: Levels, orders: Mapping[str, tuple[str, ...]]) -> DataError | None:
    """Why levels have no order, where they should."""
    try:
        check_order(name, levels, orders.get(name))
    except DataError as error:
        return error
    return None


def _wrong(column: SurveyedColumn, *, guessed: bool) -> DataError | None:
    """Why a column cannot be learned from, by its values."""
    name = column.name
    if not column.levels and np.isnan(column.low):
        return DataError(f"column {name!r} has no value in any row; ", left_out(name))
    if not column.levels:
        return None
    levels = [level for level, _ in column.levels]
    try:
        check_varied(name, levels)
        check_levels(name, levels, np.array([c for _, c in column.levels]), guessed=guessed)
    except DataError as error:
        return error
    return None


@dataclass
class _Seen:
    """A column, as its rows come."""

    low: float = nan  # of numbers
    high: float = nan
    missing: Counter[int] = field(default_factory=Counter)  # by data set
    counts: Counter[int] = field(default_factory=Counter)  # by the code of a level

    def add(self, batch: data.Batch, column: Floats, *, coded: bool) -> None:
        """Some rows, some of which may lack all columns."""
        gaps = np.isnan(column)
        self.missing.update(_counts(batch.codes[gaps]) + _counts(batch.dropped))
        if coded:
            self.counts.update(_counts(column[~gaps].astype(np.intp)))
        else:
            self.low = float(np.fmin.reduce(column, initial=self.low))
            self.high = float(np.fmax.reduce(column, initial=self.high))


def _counts(codes: Integers) -> Counter[int]:
    """How often each occurs."""
    found, n = np.unique(codes, return_counts=True)
    return Counter(dict(zip(found.tolist(), n.tolist(), strict=True)))


def worst(columns: Sequence[SurveyedColumn], n: Sequence[int]) -> SurveyedColumn | None:
    """The column that lacks the largest share of rows of a data set; None where nothing lacks."""

    def share(column: SurveyedColumn) -> float:
        return max(gaps / max(rows, 1) for gaps, rows in zip(column.missing, n, strict=True))

    found = max(columns, key=share, default=None)
    return found if found is not None and share(found) > 0 else None


_ROUNDS = 30  # of reading with what was found in the one before
_LEVELS, _SETS = 4, 3  # that a line of the table lists
_LISTED = 12  # data sets above it
_WIDE = 24  # characters of the name of a level or data set
# Columns of which these are said are left out.
_OUT = (
    FindingKind.ROW_NAMES,
    FindingKind.ID,
    FindingKind.REPEATED_ID,
    FindingKind.CONSTANT,
    FindingKind.COLLINEAR,
)


@dataclass(frozen=True)
class Options:
    """How `pb.learn` could read the table."""

    kinds: Kinds = field(default_factory=dict)
    missing: Missing = "error"
    inputs: tuple[str, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  # columns, and why
    unread: tuple[str, ...] = ()  # columns that were not asked for

    def given(self, names: Sequence[str], *, shell: bool) -> list[Option]:
        """As Python or the command line has them; `names` are all columns but the group."""
        kept = [name for name in names if name not in self.left_out]
        gone = [*self.unread, *self.left_out]
        few = shell and len(gone) <= len(kept)
        given = (
            ("exclude" if few else "columns", gone if few else kept if gone else []),
            ("kinds", dict(self.kinds)),
            ("inputs", list(self.inputs)),
            ("missing", "" if self.missing == "error" else self.missing),
        )
        options = [Option(name, value) for name, value in given if value]
        return [*options, *([_tiers_option(self.tiers, shell=shell)] if self.tiers else [])]


def _tiers_option(order: Sequence[Sequence[str]], *, shell: bool) -> Option:
    """Columns in order of time."""
    lists = [list(tier) for tier in order]
    if not shell:
        return Option("constraints", {"tiers": lists})
    cells = ((f'"{name}"' if set(name) & set(",|") else name for name in tier) for tier in order)
    return Option("tiers", lists, shlex.quote(" | ".join(map(", ".join, cells))))


@dataclass(frozen=True, eq=False, repr=False)
class Look:
    """What a table holds, and how to learn from it; `print` shows it.

    Attributes:
        source: the files, as they were named; nothing for tables in memory.
        group: the column that says which data set a row came from; None where that is not known.
        levels: the F data sets.
        n: rows of each, (F,).
        columns: what each column holds, as values; `table()` has the same.
        likely: without `group`, columns that it could be.
        rows: how many rows would be learned from; 0 where none can be yet.
        nodes: the kind of each column that would be learned from.
        options: how `pb.learn` could read the table.
        fixes: what to correct in the table first, or to leave out.
        findings: what is odd about the rest, as `pb.check` finds it; last, whether means of data
            sets are correlated.
        unit: the column that says which unit of its data set a row is of, where `group` names one,
            or where one column looks like ids with several rows each.
        mean_correlations: how means of each two columns go together over data sets, without the
            noise of means, the surest first; see `Network.mean_correlations`.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "preterm"]]
        >>> pb.look(trial, group="clinic").rows
        823
    """

    source: tuple[str, ...]
    group: str | None
    levels: tuple[Hashable, ...]
    n: tuple[int, ...]
    columns: tuple[SurveyedColumn, ...]
    likely: tuple[str, ...]
    rows: int
    nodes: Mapping[str, ColumnKind]
    options: Options
    fixes: tuple[DataError, ...]
    findings: tuple[Finding, ...]
    unit: str | None = None
    mean_correlations: tuple[MeansCorrelation, ...] = ()

    def table(self) -> pd.DataFrame:
        """What each column holds: a row for each.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "preterm"]]
            >>> pb.look(trial, group="clinic").table()[["column", "kind", "missing", "where"]]
                column        kind  missing                     where
            0      age  continuous        0
            1      bmi  continuous       73  NY (57), MN (10), KY (6)
            2  preterm    discrete        9            NY (6), KY (3)
        """
        import pandas as pd

        names = ("column", "kind", "use", "missing", "values", "where")
        return pd.DataFrame([self._line(column) for column in self.columns], columns=list(names))

    def _line(self, column: SurveyedColumn) -> tuple[str, str, str, int, str, str]:
        if column.levels:
            cells = [f"{clipped(level, _WIDE)} ({count})" for level, count in column.levels]
            values = shortened(cells, _LEVELS)
        else:
            values = "" if isnan(column.low) else f"{column.low:.6g} to {column.high:.6g}"
        pairs = zip(self.levels, column.missing, strict=True)
        lacking = sorted((p for p in pairs if p[1]), key=lambda pair: -pair[1])
        several = lacking if len(self.levels) > 1 else []
        where = [f"{clipped(str(level), _WIDE)} ({count})" for level, count in several]
        more = f" and {len(where) - _SETS} more" * (len(where) > _SETS)
        kind = _words(
            checked_kinds(tuple(self.options.kinds), self.options.kinds).get(
                column.name, column.kind
            )
        )
        why = self.options.left_out.get(column.name)
        use = f"left out: {why}" if why else ""
        if column.name in self.options.inputs:
            cause = _cause(column)
            use = f"input: {cause}" if cause else "input"
        use = "units" if column.name == self.unit else use
        return column.name, kind, use, column.gaps, values, ", ".join(where[:_SETS]) + more

    @property
    def call(self) -> str:
        """What to do next in Python, to paste.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "preterm"]]
            >>> print(pb.look(trial, group="clinic").call)
            pb.learn(data, group='clinic', inputs=['age'], missing='em')
        """
        files = "data"
        if self.source:
            files = repr(self.source[0] if len(self.source) == 1 else list(self.source))
        words = ", ".join([files, *(option.python() for option in self._given(shell=False))])
        return f"pb.{'learn' if self.rows else 'look'}({words})"

    @property
    def command(self) -> str:
        """The same on the command line.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "preterm"]]
            >>> print(pb.look(trial, group="clinic").command)
            poolbn learn FILE --group clinic --inputs age --missing em -o out
        """
        files = " ".join(map(shlex.quote, self.source)) or "FILE"
        words = [files, *(option.shell() for option in self._given(shell=True))]
        verb, last = ("learn", ["-o out"]) if self.rows else ("look", [])
        return " ".join(["poolbn", verb, *words, *last])

    def _given(self, *, shell: bool) -> list[Option]:
        if not self.rows:
            group = self.likely[0] if self.group is None and self.likely else self.group
            return [] if group is None else [Option("group", group)]
        own = [] if self.group is None else [Option("group", self.group)]
        if self.unit is not None:
            both = [self.group, self.unit]
            own = [Option("group", both, shlex.quote("/".join(name or "" for name in both)))]
        names = [column.name for column in self.columns if column.name != self.unit]
        return [*own, *self.options.given(names, shell=shell)]

    def __str__(self) -> str:
        table = self.table().astype(str)
        cells = [list(table), *table.to_numpy().tolist()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = (zip(row, widths, strict=True) for row in cells)
        rows = ["  ".join(cell.ljust(width) for cell, width in line).rstrip() for line in lines]
        text = "\n".join([head(self), "", *rows, "", *tail(self, shell=False), self.call])
        return visible(text, "\n")

    __repr__ = __str__


def head(found: Look) -> str:
    """How large a table is, and its data sets."""
    size = f"{counted(sum(found.n), 'row')}, {counted(len(found.columns), 'column')}"
    if found.group is None and len(found.levels) == 1:
        return size
    sets = [f"{level} ({count:,})" for level, count in zip(found.levels, found.n, strict=True)]
    noun = DATA_SET if found.group is None else noun_of(found.group)
    plain = found.group is None or found.group.lower() == noun.one
    by = "" if plain else f" by {found.group!r}"
    return f"{size}; {counted(len(sets), noun)}{by}: {listed(sets, _LISTED)}"


def tail(found: Look, *, shell: bool) -> list[str]:
    """What would be learned from, what to fix, and what is odd; a line for each."""
    lines = [_learned(found, shell=shell)]
    if found.fixes:
        lines += ["", "To correct, or else to leave out:"]
        lines += [f"- {fix.for_shell() if shell else fix}" for fix in found.fixes]
    if found.findings:
        lines += ["", "Worth knowing:"]
        lines += [f"- {each.for_shell() if shell else each}" for each in found.findings]
    return [*lines, "", "Next:"]


def _learned(found: Look, *, shell: bool) -> str:
    if found.group is None and len(found.levels) == 1:
        if not found.likely:
            return "No column could say which data set a row came from."
        names = " or ".join(map(repr, found.likely[:5]))
        return f"Which column says which data set a row came from? It could be {names}."
    if not found.rows:
        return "Nothing can be learned from this table as it is."
    total = sum(found.n)
    of = f" of {total:,}" * (found.rows < total)
    how = Option("missing", found.options.missing)
    word = how.shell() if shell else how.python()
    lost = f"; {word} leaves out {counted(total - found.rows, 'row')}" * (found.rows < total)
    if found.options.missing == "em":
        lost = f"; {word} uses what rows with missing values have"
    held = list(found.nodes.values())
    kinds = [f"{held.count(kind)} {kind}" for kind in known_kinds() if kind in held]
    several = counted(len(found.nodes), "column")
    return f"To learn from: {counted(found.rows, 'row')}{of}, {several} ({', '.join(kinds)}){lost}."


def look(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
) -> Look:
    """Look at a table before anything else: what it holds, what is missing, what to fix.

    Files are read once where their rows fit into memory. Nothing is changed, and nothing is raised
    for a column that cannot be learned from: it is told of, and left out of what is proposed.

    Args:
        source: what `pb.stats` takes.
        group: the column that says which data set a row came from. Without it, those are named that
            it could be; several files, or frames in a dict, are data sets themselves.
        columns: the columns to look at; None for all.
        kinds: of some columns, as for `pb.learn`.

    Returns:
        What was found, as values; `print` shows it, and the call of `pb.learn` to paste.

    Raises:
        DataError: the source cannot be read.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "preterm"]]
        >>> print(pb.look(trial.assign(id=range(823)), group="clinic"))
        823 rows, 4 columns; 4 clinics: NY (173), MN (247), KY (211) and MS (192)
        <BLANKLINE>
        column   kind        use           missing  values               where
        age      continuous  input: age    0        16 to 44
        bmi      continuous                73       15 to 68             NY (57), MN (10), KY (6)
        preterm  discrete                  9        no (711), yes (103)  NY (6), KY (3)
        id       continuous  left out: id  0        0 to 822
        <BLANKLINE>
        To learn from: 823 rows, 3 columns (2 continuous, 1 discrete); missing='em' uses what rows
        with missing values have.
        <BLANKLINE>
        Worth knowing:
        - nothing else here is likely to cause 'age' (age), so the call below makes it an input; ...
        - values are not missing by chance alone: 'bmi' is missing in 33% of 'NY' and ...
        <BLANKLINE>
        Next:
        pb.learn(data, group='clinic', columns=['age', 'bmi', 'preterm'], inputs=['age'], ...)
    """
    check_reading(group, columns, (), None)
    chosen = None if columns is None else list(columns)
    if hasattr(source, "read_all"):  # a reader of Arrow, whose rows come once
        source = source.read_all()
    made: Data | None = None
    findings: tuple[Finding, ...] = ()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DataWarning)
        read: object = source
        parts = data.as_parts(source)
        if all(part.path is not None for part in parts):
            read = parts = [remembered(part, MOST_BYTES // len(parts)) for part in parts]
        outer, unit = nested(source, parts, group)
        alone = outer is None and len(parts) == 1
        reading = data.opened(read, group, chosen, "em", "all rows" if alone else None)
        seen = survey(reading, kinds)
        wrong = {c.name: _short(c) for c in seen.columns if c.error is not None}
        fixes = tuple(c.error for c in seen.columns if c.error is not None)
        unread = (name for name in own_columns(parts[0], outer, unit) if name not in reading.names)
        options = Options(dict(kinds or {}), left_out=wrong, unread=tuple(unread) if chosen else ())
        if not alone and len(wrong) < len(seen.columns):
            made, options, findings, more = _proposed(read, group, seen, options)
            fixes += more
            if unit is None and made is not None:
                unit, options, alike = _with_units(outer, options)
                findings = (*findings, *alike)
        likely = tuple(likely_groups(parts[0])) if alone else ()
    early = {str(w.message): w.message.finding for w in told if isinstance(w.message, DataWarning)}
    rows, nodes = 0, {}
    together: tuple[MeansCorrelation, ...] = ()
    if made is not None:
        rows, nodes = made.n_rows, dict(zip(made.names, made.kinds, strict=True))
        together = mean_correlations(made)
        if (told_of := correlated(together, made.group)) is not None:
            findings = (*findings, told_of)
        order = tiers(name for name in made.names if name not in options.inputs)
        options = replace(options, tiers=order if len(order) > 1 else ())
        findings = (*_directions(options, seen.columns), *findings)
    guessed = [c for c in seen.columns if c.name in nodes and c.name not in (kinds or {})]
    findings = (*findings, *_ordered(guessed))
    return Look(
        _files(source), outer, seen.levels, seen.n, seen.columns, likely, rows, nodes, options,
        fixes, (*early.values(), *findings), unit, together,
    )  # fmt: skip


def _files(source: object) -> tuple[str, ...]:
    """What was named, as it was; nothing for tables in memory."""
    several = source if isinstance(source, list | tuple) else [source]
    paths = [os.fspath(path) for path in several if isinstance(path, str | os.PathLike)]
    return tuple(map(without_secrets, map(str, paths))) if len(paths) == len(several) else ()


def _cause(column: SurveyedColumn) -> Reason | None:
    """Why nothing here causes a column, as its name and values say."""
    levels = [level for level, _ in column.levels]
    return reason(Described(column.name, levels, column.low, column.high))


def _directions(options: Options, columns: Sequence[SurveyedColumn]) -> tuple[Finding, ...]:
    """Which arcs the proposed options rule out, and why."""
    found = []
    causes = {c.name: why for c in columns if c.name in options.inputs and (why := _cause(c))}
    if causes:
        names = listed([f"{name!r} ({why})" for name, why in causes.items()])
        use = "it an input" if len(causes) == 1 else "them inputs"
        what = f"nothing else here is likely to cause {names}, so the call below makes {use}"
        remedy = ("if something does, take it out of ", Option("inputs", list(options.inputs)))
        found.append(Finding(FindingKind.CAUSES, tuple(causes), (), 0, what, remedy))
    if options.tiers:
        first, *_, last = (shortened(list(map(repr, tier)), _LEVELS) for tier in options.tiers)
        what = f"names say that {first} came before {last}, so no arc goes back in the call below"
        every = tuple(name for tier in options.tiers for name in tier)
        more = "add other columns that came before or after to the tiers"
        found.append(Finding(FindingKind.ORDER_IN_TIME, every, (), 0, what, (more,)))
    return tuple(found)


def _ordered(columns: Sequence[SurveyedColumn]) -> tuple[Finding, ...]:
    """Discrete columns whose levels have an order by their words, which nobody said."""
    found = []
    for column in columns:
        if not has_levels(column.kind) or is_ordered(column.kind) or column.error is not None:
            continue
        if order := likely_order([level for level, _ in column.levels]):
            what = f"the levels of {column.name!r} seem to have an order"
            remedy = ("if so, use ", Option("kinds", {column.name: list(order)}))
            found.append(Finding(FindingKind.ORDERED, (column.name,), (), 0, what, remedy))
    return tuple(found)


def _short(column: SurveyedColumn) -> str:
    """Why a column cannot be learned from, in two or three words."""
    if column.kind not in known_kinds():
        return _words(column.kind)
    if not column.levels:
        return "no values"
    several = len(column.levels)
    if several == 1:
        return "one level"
    return f"{several} levels" if several > MOST_LEVELS else "see below"


def _words(kind: str) -> str:
    """A kind of column, for people."""
    return "date" if kind not in known_kinds() and is_date(kind) else kind


def _proposed(
    source: object, group: Group, seen: Survey, options: Options
) -> tuple[Data | None, Options, tuple[Finding, ...], tuple[DataError, ...]]:
    """What could be learned from, how it is read, what is odd about it, and what is in the way.

    Reads with what was found in the reading before, until nothing is to be changed.
    """
    lacking = any(c.gaps for c in seen.columns if c.name not in options.left_out)
    options = replace(options, missing="em" if lacking else "drop" if seen.unknown else "error")
    for _ in range(_ROUNDS):
        kept = [c for c in seen.columns if c.name not in options.left_out]
        names = [c.name for c in kept]
        kinds = {name: kind for name, kind in options.kinds.items() if name in names}
        options = replace(options, kinds=kinds)
        try:
            made = gathered(
                source, group=group, columns=names, kinds=kinds, missing=options.missing,
                inputs=options.inputs,
            )  # fmt: skip
        except OptionError as error:
            return None, options, (), (DataError(*error.args),)
        except DataError as error:
            most = worst(kept, seen.n) if options.missing == "drop" else None
            if most is None or len(kept) == 1:
                return None, options, (), (error,)
            options = _leaving_out(options, {most.name: "missing too often"})
            continue
        findings = check(made)
        causes = [c.name for c in kept if c.name not in options.inputs and _cause(c)]
        changed = _changed(options, findings, names) or _with_inputs(options, causes, names)
        if changed is None:
            return made, options, tuple(findings), ()
        options = changed
    return made, options, tuple(findings), ()


def _with_inputs(options: Options, more: Sequence[str], names: Sequence[str]) -> Options | None:
    """With these inputs too; None where nothing would be left to learn, or nothing changes."""
    if not more or not set(names) - {*options.inputs, *more}:
        return None
    return replace(options, inputs=(*options.inputs, *more))


def _with_units(
    outer: str | None, options: Options
) -> tuple[str | None, Options, tuple[Finding, ...]]:
    """A column of ids with several rows each says units, if it is the only one.

    EM does not use units: then what else could be done is worth knowing.
    """
    ids = [n for n, why in options.left_out.items() if why == FindingKind.REPEATED_ID.value]
    if len(ids) != 1:
        return None, options, ()
    (unit,) = ids
    if options.missing == "em":
        typed = shlex.quote(f"{outer or ''}/{unit}")
        remedy = (Option("group", [outer, unit], typed), " and ", Option("missing", "drop"))
        what = f"rows of one {unit!r} may be alike, and are taken for independent"
        use = ("allow for that in complete rows with ", *remedy)
        return None, options, (Finding(FindingKind.REPEATED_ID, (unit,), (), 0, what, use),)
    left_out = {name: why for name, why in options.left_out.items() if name != unit}
    return unit, replace(options, left_out=left_out), ()


def _leaving_out(options: Options, names: Mapping[str, str]) -> Options:
    return replace(
        options,
        left_out={**options.left_out, **names},
        inputs=tuple(name for name in options.inputs if name not in names),
    )


def _changed(options: Options, findings: Sequence[Finding], names: Sequence[str]) -> Options | None:
    """The options with the remedies of findings that options can apply; None where none can."""
    out: dict[str, str] = {}
    inputs, kinds = list(options.inputs), dict(options.kinds)
    for found in findings:
        if found.kind in _OUT:
            out |= dict.fromkeys(found.columns, found.kind.value)
        elif found.kind is FindingKind.COPIES:  # of two, the later one
            out[found.columns[-1]] = f"a copy of {found.columns[-2]!r}"
        elif found.kind in (FindingKind.SITE_LEVEL, FindingKind.MOSTLY_CONSTANT):
            inputs += found.columns
        elif found.kind is FindingKind.BINARY:
            kinds |= dict.fromkeys(found.columns, "discrete")
    if not set(names) - set(out) or not set(names) - set(inputs):
        return None
    made = _leaving_out(replace(options, kinds=kinds, inputs=tuple(inputs)), out)
    same = made.kinds == options.kinds and made.inputs == options.inputs and not out
    return None if same else made
