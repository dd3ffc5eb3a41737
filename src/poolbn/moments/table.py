"""`table`: rows in memory, coded and sorted by data set, with columns of all kinds.

Sufficient statistics are all that continuous nodes need, and counts all that discrete ones with
discrete parents do. A discrete node or a count with a continuous parent needs the rows.

Of missing cells there may be draws, several of each. A row without missing cells is there once,
another one once for each draw, with weights that add up to one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeGuard

import numpy as np

from poolbn.arrays import Floats, Integers, Positions
from poolbn.errors import DROP, DataError, InPython
from poolbn.moments.cases import AnyData, Cases, list_of_names, needs_rows, positions
from poolbn.moments.data import Data, check_no_group, in_words, is_data, numbers
from poolbn.moments.facts import NOTHING
from poolbn.moments.groupstats import Filled, GroupStats, check_magnitude, of_sums
from poolbn.moments.indicators import spans
from poolbn.moments.patternstats import PatternStats
from poolbn.moments.reading import (
    check_reading,
    in_memory,
    numbered,
    of_reading,
    patterns_of,
    stats,
    with_roles,
)
from poolbn.moments.sums import Sums
from poolbn.moments.targets import Interventions, Targets, among_columns, among_data_sets
from poolbn.moments.units import UnitSums, UnitTally, of_rows
from poolbn.tables.data import Reading, as_parts, prepare_kinds
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import (
    ColumnKind,
    Kinds,
    check_levels,
    check_order,
    check_values,
    check_varied,
    has_levels,
    is_normal,
    is_ordered,
    is_whole,
)
from poolbn.tables.missing import Missing
from poolbn.tables.sources import is_dask
from poolbn.wording import counted, listed

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Table(AnyData):
    """Rows of several data sets, with columns of all kinds.

    Attributes:
        names: the N columns.
        kinds: what each holds: "continuous", "discrete", "ordinal" or "count".
        categories: the levels of each discrete column; none for others.
        levels: the F data sets, in order of first appearance.
        offsets: rows of data set j are offsets[j] to offsets[j + 1], (F + 1,).
        values: the columns; codes of levels for discrete ones, NaN where a cell is missing, (N, n).
        dropped: rows of each data set left out because a cell is missing, (F,).
        group: the column that says which data set a row came from.
        inputs: columns that may be parents but never children, see `pb.stats`.
        units: the number of each row's unit, (n,), 0, 1, ... from data set to data set; None where
            there are no units inside data sets.
        unit: the column that says the units.
        interventions: the columns that were set, for data sets in which some were.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> old = trial.assign(old=(trial["age"] > 25).map({True: "yes", False: "no"}))
        >>> pb.table(old, group="clinic")
        Table: 750 rows, 4 clinics, 3 columns
        continuous: age, bmi
        discrete: old (no, yes)
    """

    names: tuple[str, ...]
    kinds: tuple[ColumnKind, ...]
    categories: tuple[tuple[str, ...], ...]
    levels: tuple[Hashable, ...]
    offsets: Integers
    values: Floats
    dropped: Integers
    group: str
    inputs: tuple[str, ...] = ()
    units: Integers | None = None
    unit: str | None = None
    interventions: Interventions = field(default_factory=dict)

    @property
    def n(self) -> Integers:
        """Rows of each data set, (F,)."""
        return np.asarray(np.diff(self.offsets))

    @property
    def data_set(self) -> Integers:
        """The position of each row's data set, (n,)."""
        return np.repeat(np.arange(len(self.levels)), self.n)

    @property
    def has_rows(self) -> bool:
        """Whether a discrete node or a count may have a continuous parent."""
        return True

    @cached_property
    def missing(self) -> Integers:
        """Missing cells of each data set and column, (F, N)."""
        parts = [np.isnan(self.values[:, a:b]).sum(axis=1) for a, b in pairwise(self.offsets)]
        return np.array(parts, dtype=np.int64).reshape(len(self.levels), len(self.names))

    def stats(self, columns: Iterable[str] | None = None) -> GroupStats:
        """Sufficient statistics, with an indicator for each level of a discrete column but one.

        Args:
            columns: those to keep; None for all.

        Raises:
            DataError: there is no such column, or a cell of it is missing.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> old = trial.assign(old=trial["age"] > 25)
            >>> pb.table(old, group="clinic").stats().names
            ('age', 'bmi', 'old=True')
        """
        return self._every if columns is None else self._stats(list_of_names("columns", columns))

    @cached_property
    def _every(self) -> GroupStats:
        return self._stats(self.names)

    def _stats(self, chosen: tuple[str, ...]) -> GroupStats:
        names, found = numbers(self, chosen)
        sums = Sums.zeros(len(self.levels), len(names))
        sums.facts = [NOTHING] * len(names)
        tally = None if self.unit is None else UnitTally.of(self.unit, len(names))
        own = None if tally is None or self.units is None else partial(tally.rows, self.units)
        sums.add_rows(self.data_set, list(found), own)
        sums.dropped[:] = self.dropped
        made = of_sums(names, self.levels, sums, self.group, tuple(sums.facts))
        return made if tally is None else replace(made, units=tally.made(made.mean))

    def by_configuration(
        self, discrete: Sequence[str], columns: Sequence[str]
    ) -> list[GroupStats | None]:
        """Sufficient statistics of columns of numbers in the rows of each configuration.

        Configurations of discrete columns are in the order of their codes, the last column's
        changing fastest; None where no row has one. Those that are there have all data sets, of
        which some may have no rows.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "tobacco", "age", "bmi"]].dropna()
            >>> found = pb.table(trial, group="clinic").by_configuration(["tobacco"], ["bmi"])
            >>> [(stats.names, stats.n) for stats in found]
            [(('bmi',), array([ 95, 214, 171, 156])), (('bmi',), array([ 8, 15, 31, 35]))]
        """
        cells = self._in_cells(discrete, columns)
        sums = Sums.zeros(cells.size, len(columns))
        sums.add_rows(cells.of_row, list(cells.columns))
        facts, F = self.stats(columns).facts, len(self.levels)
        every = of_sums(tuple(columns), tuple(range(cells.size)), sums, self.group, facts)
        return [_with_all(every.data_sets(at, self.levels)) for at in cells.at(F)]

    def _in_cells(self, discrete: Sequence[str], columns: Sequence[str]) -> _Cells:
        """Columns of the rows, and the configuration and data set that each is of."""
        rows = self.cases([*discrete, *columns])
        of_row, size = np.zeros(len(rows.data_set), dtype=np.int64), 1
        for name, codes in zip(discrete, rows.columns, strict=False):
            levels = len(self.categories[self.names.index(name)])
            of_row, size = of_row * levels + codes.astype(np.int64), size * levels
        F = len(self.levels)
        return _Cells(of_row * F + rows.data_set, size * F, rows.columns[len(discrete) :])

    def _chosen(self, names: tuple[str, ...], at: list[int]) -> Table:
        return replace(
            self,
            names=names,
            kinds=tuple(self.kinds[k] for k in at),
            categories=tuple(self.categories[k] for k in at),
            values=self.values[at],
            inputs=tuple(name for name in names if name in self.inputs),
            interventions=among_columns(self.interventions, names),
        )

    @cached_property
    def mostly_unique(self) -> frozenset[str]:
        """Columns in which more than half of the rows have a value of their own."""
        few = self.n_rows // 2
        columns = zip(self.names, self.kinds, self.values, strict=True)
        return frozenset(
            name
            for name, kind, column in columns
            if not has_levels(kind) and len(np.unique(column)) > few
        )

    def _cases(self, names: tuple[str, ...], at: list[int], *, incomplete: bool) -> Cases:
        gaps = self.missing[:, at].sum(axis=0)
        if gaps.any() and not incomplete:
            k = int(gaps.argmax())
            raise DataError(
                f"column {names[k]!r} has {counted(int(gaps[k]), 'missing cell')}, which ",
                InPython(
                    "pb.learn fills; for other questions fill them by pb.impute, or use ",
                    "poolbn learn, bootstrap and compare fill; for other questions use ",
                ),
                DROP,
            )
        return Cases([self.values[k] for k in at], self.offsets, None, units=self.units)

    def some_rows(
        self, parts: Sequence[Positions], levels: Iterable[Hashable] | None = None
    ) -> Self:
        """Rows of each data set, as often as they are named; levels that none has are gone."""
        names = self.levels if levels is None else levels
        return self._rows(np.concatenate(parts), list(map(len, parts)), names)._seen_alone()

    def data_sets(self, at: Sequence[int] | Integers, levels: Iterable[Hashable]) -> Self:
        """The data sets at these positions, which may repeat, under other names.

        Levels that none of them has are gone.
        """
        new = tuple(levels)
        targets = among_data_sets(self.interventions, self.levels, at, new)
        made = self._taken(at, new)._seen_alone()
        return replace(made, dropped=self.dropped[at])._with(interventions=targets)

    def _taken(self, at: Sequence[int] | Integers, levels: Iterable[Hashable]) -> Self:
        """The rows of the data sets at these positions."""
        parts = [np.arange(self.offsets[j], self.offsets[j + 1]) for j in at]
        return self._rows(np.concatenate(parts), list(map(len, parts)), levels)

    def _some(self, at: Sequence[int]) -> Self:
        """The data sets at these positions, with all levels of columns."""
        return self._taken(at, [self.levels[j] for j in at])

    @property
    def without_units(self) -> Self:
        """The same rows, those of a unit taken for independent."""
        return self if self.unit is None else replace(self, units=None, unit=None)

    def joined(self, alone: Sequence[int], name: Hashable) -> Self:
        """These data sets apart, and all others as one, the last."""
        F = len(alone) + 1
        new = np.full(len(self.levels), F - 1)
        new[list(alone)] = np.arange(F - 1)
        order = np.argsort(new[self.data_set], kind="stable")
        levels = [*(self.levels[j] for j in alone), name]
        made = self._rows(order, np.bincount(new, self.n, F).astype(np.int64), levels)
        made = replace(made, dropped=np.bincount(new, self.dropped, F).astype(np.int64))
        return made._with(interventions=self._targets_joined(alone, name))

    def _rows(
        self, rows: Positions, n: Sequence[int] | Integers, levels: Iterable[Hashable]
    ) -> Self:
        """These rows, n of each of these data sets."""
        units = self.units
        if units is not None:
            units = numbered(np.repeat(np.arange(len(n)), n), units[rows])
        return replace(
            self,
            levels=tuple(levels),
            offsets=np.concatenate([[0], np.cumsum(n)]).astype(np.int64),
            values=self.values[:, rows],
            dropped=np.zeros(len(n), dtype=np.int64),
            units=units,
        )

    def _seen_alone(self) -> Self:
        """Without levels that no row has."""
        values, categories = self.values.copy(), list(self.categories)
        for k, levels in enumerate(self.categories):
            if levels:
                there = ~np.isnan(values[k])
                categories[k], coded = _seen(levels, values[k][there].astype(np.int64))
                values[k][there] = coded
        return replace(self, categories=tuple(categories), values=values)

    @cached_property
    def patterns(self) -> PatternStats | None:
        """Where cells are missing, sums by what is; else None.

        Levels count as their codes, so that their sums mean nothing.
        """
        return self._gaps(self.names, self.values) if self.has_gaps else None

    @property
    def has_gaps(self) -> bool:
        """Whether a cell is missing."""
        return bool(self.missing.any())

    def _gaps(self, names: tuple[str, ...], columns: Floats) -> PatternStats:
        """Sums of columns of numbers (W, n), NaN where a cell is missing, by what is."""
        check_magnitude(names, np.fmax.reduce(np.abs(columns), axis=1, initial=0.0))
        rows = np.ascontiguousarray(columns.T)
        return patterns_of(names, self.levels, self.data_set, rows, self.group)

    def __repr__(self) -> str:
        units = (
            [] if self.units is None else [f"units: {len(np.unique(self.units)):,} ({self.unit})"]
        )
        return "\n".join([*in_words("Table", self), *units])


class _Cells(NamedTuple):
    """Rows by configuration and data set."""

    of_row: Integers  # the cell of each row, its configuration times F and its data set, (n,)
    size: int  # how many cells there may be
    columns: Sequence[Floats]

    def at(self, F: int) -> list[range]:
        """The cells of each configuration."""
        return [range(first, first + F) for first in range(0, self.size, F)]


def _with_all(stats: GroupStats) -> GroupStats | None:
    """Statistics of which some data sets have no rows; None if all have none.

    Their means are those of the others, which lose no digits where they are centred.
    """
    if not stats.n.any():
        return None
    mean = np.where(
        stats.n[:, None] > 0, stats.mean, np.average(stats.mean, axis=0, weights=stats.n)
    )
    return replace(stats, mean=mean)


def as_table(data: Data) -> Table:
    """The rows that data are, or the error that there are none."""
    if not isinstance(data, Table):
        raise needs_rows("this")
    return data


def as_frame(table: Table, order: Positions | slice = slice(None)) -> pd.DataFrame:
    """The rows in this order, with levels as categories; the group column comes first."""
    import pandas as pd

    made: dict[str, object] = {table.group: as_column(table.levels, table.data_set[order])}
    for name, kind, levels, column in zip(
        table.names, table.kinds, table.categories, table.values[:, order], strict=True
    ):
        made[name] = column.astype(np.int64) if is_whole(kind) else column
        if has_levels(kind):
            codes, ordered = column.astype(np.int64), is_ordered(kind)
            made[name] = pd.Categorical.from_codes(codes, pd.Index(levels), ordered=ordered)
    return pd.DataFrame(made)


def as_column(levels: Iterable[Hashable], codes: Integers) -> pd.Series:
    """The data sets of rows, (n,), whatever they are called, as categories."""
    import pandas as pd

    names = pd.Series(list(levels), dtype=object).to_numpy()
    return pd.Series(names[codes], dtype=object).astype("category")


def has_gaps(data: Data) -> TypeGuard[Table]:
    """Whether rows have missing cells that are not filled in."""
    return data.has_rows and not data.imputed and bool(data.missing.any())


def _seen(categories: Sequence[str], codes: Integers) -> tuple[tuple[str, ...], Integers]:
    """The levels that some rows have, and the codes of all rows in these, (n,)."""
    there = np.flatnonzero(np.bincount(codes, minlength=len(categories)))
    return tuple(categories[k] for k in there.tolist()), np.searchsorted(there, codes)


def table(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    missing: Missing = "error",
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
) -> Table:
    """Read rows with columns of all kinds into memory.

    Text, categories, true and false are discrete, numbers continuous, unless `kinds` says
    otherwise. Levels are in the order of their categories, else sorted.

    Args:
        source: what `pb.stats` takes.
        group: the column that says which data set a row came from, as for `pb.stats`.
        columns: the columns to keep; None for all but `group`.
        kinds: of some columns, such as {"visits": "count", "grade": "discrete"}.
        missing: "error" refuses missing cells, "drop" leaves out the rows that have one. "em" keeps
            them for `pb.learn`, `pb.bootstrap` and `pb.compare`, which fill them.
        inputs: columns that may be parents but never children, as for `pb.stats`.
        interventions: columns that were set in some data sets, as for `pb.stats`.

    Raises:
        DataError: the source, a column or a cell cannot be used; the message says which.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> pb.table(trial, group="clinic", kinds={"age": "count"}).kinds
        ('count', 'continuous')
    """
    check_reading(group, columns, inputs, interventions)
    reading, found = prepare_kinds(
        source, group=group, columns=columns, missing=missing, kinds=kinds
    )
    made, _ = in_order(reading, found, kinds or {})
    return with_roles(made, inputs, interventions)


def table_like(
    source: object,
    *,
    columns: Mapping[str, ColumnKind],
    categories: Mapping[str, Sequence[str]],
    missing: Missing,
    unit: str | None = None,
) -> Table:
    """Rows of columns whose kinds and levels are known; a level that no row has stays.

    Where there is a column `unit`, it says units inside data sets.
    """
    known = unit is not None and all(unit in part.types for part in as_parts(source))
    reading, kinds = prepare_kinds(
        source, group=[None, unit] if known else None, columns=list(columns), missing=missing,
        kinds=columns,
    )  # fmt: skip
    return in_order(reading, kinds, columns, categories)[0]


def gathered(
    source: object,
    *,
    group: Group,
    columns: Iterable[str] | None,
    kinds: Kinds | None,
    missing: Missing,
    inputs: Iterable[str],
    interventions: Targets | None = None,
) -> Data:
    """What networks are learned from: statistics where all columns are continuous, else rows.

    Options are as for `table`; the source may be what `stats` and `table` return.
    """
    check_reading(group, columns, inputs, interventions)
    made: Data
    if is_data(source):
        check_no_group(group)
        if source.has_rows:
            made = source if columns is None else source.select(columns)
        else:
            made = stats(source, columns=columns)
            for name, levels in zip(made.names, made.categories, strict=True):
                check_varied(name, levels or ("", ""))
    else:
        reading, found = prepare_kinds(
            source, group=group, columns=columns, missing=missing, kinds=kinds
        )
        if any(not is_normal(kind) for kind in found):
            made, _ = in_order(reading, found, kinds or {})
        elif missing == "em" and reading.unit is not None:  # EM needs the rows of units
            table, _ = in_order(reading, found, kinds or {})
            made = table if table.has_gaps else table.stats()
        elif is_dask(source):  # rows stay where they are
            made = stats(source, group=group, columns=reading.names, missing=missing)
        else:
            made = of_reading(reading)
    return with_roles(made, inputs, interventions).settled()


def in_order(
    reading: Reading,
    kinds: tuple[ColumnKind, ...],
    given: Kinds,
    known: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Table, Positions]:
    """The table of what is to be read, and which of the rows that were read each row is.

    Kinds that are `given` somebody said; where levels of discrete columns are `known`, only these
    can be.
    """
    rows = reading.rows()
    codes, values, dropped, units = in_memory(rows)
    order = np.argsort(codes, kind="stable")
    levels, n = tuple(rows.levels), np.bincount(codes, minlength=len(rows.levels))
    made = np.ascontiguousarray(values[order].T)
    categories: list[tuple[str, ...]] = [()] * len(kinds)
    for k, (name, kind) in enumerate(zip(reading.names, kinds, strict=True)):
        there = ~np.isnan(made[k])
        if not there.any():
            raise DataError(f"all cells of column {name!r} are missing; leave it out of columns")
        if has_levels(kind):
            own = rows.categories[name]
            codes_there = own.in_order(made[k][there])
            if known is not None:
                categories[k] = tuple(known[name])
                made[k][there] = _recoded(name, own.names, codes_there, known[name])
                continue
            if is_ordered(kind):
                check_order(name, own, reading.orders.get(name))
            categories[k], coded = _seen(own.names, codes_there)
            check_varied(name, categories[k])
            made[k][there] = coded
            guessed, origin = name not in given, reading.origin
            check_levels(name, categories[k], np.bincount(coded), guessed=guessed, origin=origin)
        else:
            check_values(name, kind, made[k][there], codes[order][there], levels)
    offsets = np.concatenate([[0], np.cumsum(n)]).astype(np.int64)
    found = Table(
        reading.names, kinds, tuple(categories), levels, offsets, made, dropped, rows.group,
        units=None if units is None else units[order], unit=rows.unit,
    )  # fmt: skip
    return found, order


def _recoded(name: str, own: Sequence[str], codes: Integers, known: Sequence[str]) -> Integers:
    """Codes of known levels; an error for others."""
    at = np.array([known.index(level) if level in known else -1 for level in own], dtype=np.int64)
    coded = at[codes]
    if (coded < 0).any():
        other = codes[coded < 0]
        levels = listed([repr(level) for level in known])
        raise DataError(
            f"column {name!r} has the level {own[other[0]]!r} in {int((other == other[0]).sum())} "
            f"rows, and was learned with {levels}; use these, or learn anew from all rows"
        )
    return coded


_ROUNDED = 1e-9  # of a number of rows


@dataclass(frozen=True, eq=False, repr=False)
class FilledTable(Table):
    """A table with missing cells, and M draws of them."""

    # the cells of its rows with missing ones, (M, N, I)
    draws: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)))
    # the k-th table that is drawn with all that is uncertain, for intervals
    plausible: Callable[[int], Table] | None = None

    @staticmethod
    def of(
        table: Table, draws: Floats, plausible: Callable[[int], Table] | None = None
    ) -> FilledTable:
        """A table and its draws."""
        own: Any = {each.name: getattr(table, each.name) for each in fields(Table)}
        return FilledTable(**own, draws=draws, plausible=plausible)

    @cached_property
    def source(self) -> Table:
        """The table, NaN where cells are missing."""
        return Table(*(getattr(self, each.name) for each in fields(Table)))

    @property
    def imputed(self) -> bool:
        """Whether missing cells are filled in."""
        return True

    @property
    def provisional(self) -> bool:
        """Whether they are filled in for a round of EM that another one follows."""
        return self.plausible is None

    def drawn(self, k: int) -> Table:
        """The k-th table that there may be without missing cells, all that is uncertain drawn."""
        assert self.plausible is not None
        return self.plausible(k)

    @cached_property
    def incomplete(self) -> Positions:
        """The rows with missing cells, (I,)."""
        return np.flatnonzero(np.isnan(self.values).any(axis=0))

    @cached_property
    def _which(self) -> tuple[Positions, Integers]:
        """Of each row that is here, the one that it is of, and its draw, -1 for all; (R,) each."""
        whole = np.setdiff1d(np.arange(self.n_rows), self.incomplete)
        M = len(self.draws)
        draws = np.tile(np.arange(M), len(self.incomplete))
        row = np.concatenate([whole, np.repeat(self.incomplete, M)])
        draw = np.concatenate([np.full(len(whole), -1), draws])
        order = np.argsort(row, kind="stable")
        return row[order], draw[order]

    @cached_property
    def _weight(self) -> Floats:
        """What each row that is here counts, (R,)."""
        return np.where(self._which[1] < 0, 1.0, 1 / len(self.draws))

    @cached_property
    def _values(self) -> Floats:
        """The cells of each row that is here, (N, R)."""
        row, draw = self._which
        values = self.values[:, row]
        drawn = draw >= 0
        values[:, drawn] = self.draws.transpose(1, 2, 0).reshape(len(self.names), -1)
        return values

    @cached_property
    def _offsets(self) -> Integers:
        return np.searchsorted(self._which[0], self.offsets).astype(np.int64)

    def _cases(self, names: tuple[str, ...], at: list[int], *, incomplete: bool) -> Cases:
        """A data set that never measured the last one does not count."""
        if incomplete:
            return super()._cases(names, at, incomplete=True)
        weight = self._weight.copy()
        rows = Cases([self._values[k] for k in at], self._offsets, weight, self._which[1])
        if at:
            unmeasured = self.missing[:, at[-1]] == self.n
            weight[unmeasured[rows.data_set]] = 0.0
        return rows

    def _stats(self, chosen: tuple[str, ...]) -> GroupStats:
        """Expected ones."""
        if chosen not in self._made:
            self._made[chosen] = self._expected(chosen)
        return self._made[chosen]

    @cached_property
    def _made(self) -> dict[tuple[str, ...], GroupStats]:
        return {}

    def _expected(self, chosen: tuple[str, ...]) -> GroupStats:
        names, X = numbers(self, chosen)
        F, at = len(self.levels), positions(self.names, chosen)
        mean, scatter = np.empty((F, len(names))), np.empty((F, len(names), len(names)))
        for j, n in enumerate(self.n.tolist()):
            part = slice(self._offsets[j], self._offsets[j + 1])
            own, w = X[:, part], self._weight[part]
            mean[j] = own @ w / n
            own = own - mean[j][:, None]
            scatter[j] = (own * w) @ own.T
        expanded = np.repeat(at, [len(span) for span in spans([self.categories[k] for k in at])])
        observed = (self.n[:, None] - self.missing)[:, expanded]
        patterns = gaps_of(self.source.select(chosen))
        return GroupStats(
            names, self.levels, self.n.copy(), mean, scatter, self.dropped.copy(), self.group,
            patterns.known.facts,
            filled=Filled(patterns, observed, partial(self._drawn_stats, chosen), by_network=True),
            units=self._expected_units(X, mean),
        )  # fmt: skip

    def by_configuration(
        self, discrete: Sequence[str], columns: Sequence[str]
    ) -> list[GroupStats | None]:
        """Expected ones: a row counts in each configuration as often as draws have it there."""
        cells, F = self._in_cells(discrete, columns), len(self.levels)
        X, names, size = np.array(cells.columns), tuple(columns), cells.size
        there = ~np.isnan(self.values[positions(self.names, names)][:, self._which[0]])
        rows = np.bincount(cells.of_row, self._weight, size).astype(np.float64)
        mean, scatter = np.zeros((size, len(X))), np.zeros((size, len(X), len(X)))
        observed = np.zeros((size, len(X)), dtype=np.int64)
        n = np.ceil(rows - _ROUNDED).astype(np.int64)
        for cell in np.flatnonzero(n).tolist():
            own = cells.of_row == cell
            w, x = self._weight[own], X[:, own]
            mean[cell] = x @ w / rows[cell]
            x = x - mean[cell][:, None]
            scatter[cell] = (x * w) @ x.T * (n[cell] / rows[cell])
            observed[cell] = np.ceil(there[:, own] @ w - _ROUNDED)
        facts = self.stats(names).facts
        none = np.zeros(F, dtype=np.int64)
        found = []
        for c, at in enumerate(cells.at(F)):
            here = slice(at.start, at.stop)
            filled = Filled(
                None, observed[here], partial(self._drawn_part, tuple(discrete), c),
                by_network=True, counted=rows[here],
            )  # fmt: skip
            made = GroupStats(
                names, self.levels, n[here], mean[here], scatter[here], none, self.group, facts,
                filled=filled,
            )  # fmt: skip
            found.append(_with_all(made))
        return found

    def _drawn_part(
        self, discrete: tuple[str, ...], c: int, stats: GroupStats, seed: Sequence[int]
    ) -> GroupStats:
        """Statistics of a configuration in one of the tables that there may be."""
        whole = replace(stats, filled=None)
        if self.plausible is None:
            return whole
        return self.plausible(seed[0]).by_configuration(discrete, stats.names)[c] or whole

    def _expected_units(self, X: Floats, mean: Floats) -> UnitSums | None:
        """Of units: cells of one draw belong together in all rows of a unit."""
        if self.units is None or self.unit is None:
            return None
        row, draw = self._which
        parts = []
        for m in range(len(self.draws)):
            here = (draw < 0) | (draw == m)
            sets, own = self.data_set[row[here]], self.units[row[here]]
            parts.append(of_rows(self.unit, sets, own, X[:, here] - mean[sets].T))
        squares = np.mean([part.squares for part in parts], axis=0)
        return replace(
            parts[0], sums=np.mean([part.sums for part in parts], axis=0), squares=squares
        )

    def _drawn_stats(
        self, columns: tuple[str, ...], stats: GroupStats, seed: Sequence[int]
    ) -> GroupStats:
        """Statistics of one of the tables that there may be."""
        if self.plausible is None:
            return replace(stats, filled=None)
        return self.plausible(seed[0]).stats(columns).select(stats.names)

    def _chosen(self, names: tuple[str, ...], at: list[int]) -> FilledTable:
        some = self.source.select(names)
        kept = np.isnan(some.values[:, self.incomplete]).any(axis=0)
        return FilledTable.of(some, self.draws[:, at][:, :, kept])

    def _rows(
        self, rows: Positions, n: Sequence[int] | Integers, levels: Iterable[Hashable]
    ) -> Self:
        drawn, lacking = self.plausible, rows[np.isin(rows, self.incomplete)]
        return replace(
            super()._rows(rows, n, levels),
            draws=self.draws[..., np.searchsorted(self.incomplete, lacking)],
            plausible=None if drawn is None else lambda k: drawn(k)._rows(rows, n, levels),
        )

    def _seen_alone(self) -> Self:
        """As it is: a level may be in draws alone."""
        return self

    @cached_property
    def together(self) -> Floats:
        """The share of rows that have cells of two columns, (N, N)."""
        there = (~np.isnan(self.values)).astype(np.float64)
        return np.asarray(there @ there.T / self.n_rows)

    def share(self, child: int, parents: Sequence[int]) -> float:
        """Of the rows that a family counts for: at most twice those that tell of it.

        These are the rows with the child and its least observed parent. A draw from a network
        without an arc makes it look weaker by their share, so that counting them alone would take
        that away twice; a draw with it makes it look surer.
        """
        told = min((float(self.together[child, p]) for p in parents), default=1.0)
        return min(1.0, 2 * told)


def gaps_of(table: Table) -> PatternStats:
    """Sums of a table's columns of numbers by what is missing."""
    return table._gaps(*numbers(table, table.names, incomplete=True))
