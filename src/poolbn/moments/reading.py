"""`stats`: rows read once, and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import numpy as np

from poolbn.arguments import DICT, NAMES, PATH, among, check_arguments, names_of
from poolbn.arrays import Floats, Integers
from poolbn.errors import DROP, NO_UNITS, DataError, InPython, Option, OptionError
from poolbn.moments.cases import AnyData, list_of_names
from poolbn.moments.cellstats import CellStats, settled, simplest
from poolbn.moments.facts import NOTHING
from poolbn.moments.groupstats import GroupStats, of_sums, saved_of, total
from poolbn.moments.indicators import INDICATOR, Cells, labels_of
from poolbn.moments.patterns import GapsInTheMaking
from poolbn.moments.patternstats import PatternStats
from poolbn.moments.statsfile import Checkpoint, Saved
from poolbn.moments.sums import Sums
from poolbn.moments.targets import Targets
from poolbn.moments.units import OpenUnits, UnitTally
from poolbn.tables import data
from poolbn.tables.data import Reading, Rows, prepare
from poolbn.tables.grouping import GROUP_KIND, Group, check_no_units, tell_shared
from poolbn.tables.kinds import (
    MOST_LEVELS,
    ColumnKind,
    Kinds,
    Levels,
    a_kind,
    check_levels,
    has_levels,
    is_normal,
    is_ordered,
    is_whole,
)
from poolbn.tables.missing import Missing, Scan, Tally, check_left, check_missing
from poolbn.tables.sources import Part, computed, is_dask, pandas_part, partition_origin
from poolbn.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd


_FROM_ROWS = (InPython("learn from rows by pb.learn(data, missing='em')", "learn from rows"), ", ")
WITHOUT_EM = ("leave incomplete rows out with ", DROP, ", or ", NO_UNITS)  # where there are units
_FAN_IN = 8  # statistics that are added up at once


@dataclass(frozen=True)
class _Open:
    """Statistics of some rows; units may have more of them elsewhere."""

    stats: GroupStats
    units: OpenUnits

    @property
    def n(self) -> Integers:
        """Rows of each data set, (F,)."""
        return self.stats.n

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The data sets."""
        return self.stats.levels

    def __add__(self, other: _Open) -> _Open:
        whole = self.stats + other.stats
        index = {level: j for j, level in enumerate(whole.levels)}
        left, right = (
            of.units.about(whole.mean, np.array([index[v] for v in of.levels], dtype=np.int64))
            for of in (self, other)
        )
        return _Open(whole, left.joined(right))

    def closed(self) -> GroupStats:
        """Where all rows are there."""
        tell_shared(self.units.name, self.units.shared)
        return replace(self.stats, units=self.units.made(self.stats.mean))


S = TypeVar("S", bound=GroupStats | PatternStats | CellStats | _Open)


def of_partitions(frame: Any, reading: Reading, accumulate: Callable[[Rows], S]) -> S:
    """The statistics of all rows of a Dask frame, which workers read likewise.

    A worker must be able to import what accumulates rows.
    """
    from dask import delayed

    tables = frame[[reading.group, *reading.read_names]].to_delayed()
    make, add = delayed(_share, pure=False), delayed(_together, pure=False)
    how = partial(
        prepare, group=reading.group if reading.unit is None else [reading.group, reading.unit],
        columns=reading.names, discrete=reading.discrete,
        # errors are seen when all are together
        missing="em" if reading.missing == "em" else "drop",
    )  # fmt: skip
    tree = [make(table, k, accumulate, how) for k, table in enumerate(tables)]
    while len(tree) > 1:
        tree = [add(tree[i : i + _FAN_IN]) for i in range(0, len(tree), _FAN_IN)]
    share: _Share[S] = computed(tree[0])
    if isinstance(share, DataError):
        raise share
    statistics, tally = share
    if reading.missing == "error":
        check_missing(tally, reading.read_names, reading.group)
    counts = tally.counts(reading.read_names, reading.group)
    check_left(statistics.n, statistics.levels, tally.rows, f" ({counts})")
    return statistics


# Of neighbouring partitions: their statistics, and what is missing in them. An error goes up the
# tree as a value: of several the first is raised, whatever was done first.
_Share = tuple[S, Tally] | DataError


def _share(
    table: pd.DataFrame, k: int, accumulate: Callable[[Rows], S], how: Callable[[Part], Reading]
) -> _Share[S]:
    """One partition; whether too much is missing is seen when all are together."""
    try:
        part = pandas_part(table, None, partition_origin(k))
        rows = how(part).rows(lenient=True)
        return accumulate(rows), rows.tally
    except DataError as error:
        return error


def _together(shares: Sequence[_Share[S]]) -> _Share[S]:
    def add(left: _Share[S], right: _Share[S]) -> _Share[S]:
        if isinstance(left, DataError):
            return left
        if isinstance(right, DataError):
            return right
        try:
            both: Any = left[0] + right[0]  # type: ignore[operator]  # of one kind
            return both, left[1].joined(right[1])
        except DataError as error:
            return error

    return reduce(add, shares)


_LARGEST = 2**27  # codes of cells that are held: a GiB


@dataclass
class _Tally:
    """The sums of continuous columns and then of an indicator for each level, as these come."""

    names: tuple[str, ...]  # the columns
    # the levels of discrete ones as far as they came, which `Rows` adds to
    categories: Mapping[str, Levels]
    sums: Sums  # of numbers
    at: dict[str, list[int]]  # for each discrete column the position of the indicator of each level
    cells: Cells  # those that are added up; codes are in the order of appearance
    coming: list[Cells] = field(default_factory=list)  # those that are not yet
    # how many rows have each level
    rows: dict[str, Integers] = field(default_factory=dict)

    @staticmethod
    def of(rows: data.Rows) -> _Tally:
        """Of no rows."""
        numbers = [name for name in rows.names if name not in rows.categories]
        sums = Sums.zeros(0, len(numbers))
        sums.facts = [NOTHING] * len(numbers)
        none = np.zeros(0, dtype=np.int64)
        cells = Cells(none, np.zeros((0, len(rows.categories)), dtype=np.int64), none)
        at: dict[str, list[int]] = {name: [] for name in rows.categories}
        return _Tally(rows.names, rows.categories, sums, at, cells, [], dict.fromkeys(at, none))

    def add(self, batch: data.Batch, data_sets: int) -> None:
        """Some rows."""
        columns = dict(zip(self.names, batch.columns, strict=True))
        codes = {name: columns.pop(name).astype(np.int64) for name in self.at}
        for name, own in codes.items():
            known = len(self.categories[name].index)
            seen = np.pad(self.rows[name], (0, known - len(self.rows[name])))
            self.rows[name] = seen + np.bincount(own, minlength=known)
            if known > MOST_LEVELS:
                check_levels(
                    name, list(self.categories[name].index), self.rows[name], guessed=False
                )
            width = self.sums.mean.shape[1]
            new = known - len(self.at[name])
            self.at[name] += range(width, width + new)
            self.sums = self.sums.widened(width + new)
        self.sums = self.sums.grown(data_sets)
        self.sums.dropped += np.bincount(batch.dropped, minlength=len(self.sums.n))
        more = self.sums.mean.shape[1] - len(columns)
        numbers = [*columns.values(), *[np.zeros(0)] * more]
        for name, own in codes.items():
            for code, k in enumerate(self.at[name]):
                numbers[k] = (own == code).astype(np.float64)
        self.sums.add_rows(batch.codes, numbers)
        self.coming.append(
            Cells.of(batch.codes, np.column_stack(list(codes.values())), self._sizes)
        )
        if sum(len(cells.n) for cells in self.coming) > len(self.cells.n):
            self._gather()

    @property
    def _sizes(self) -> list[int]:
        return [len(at) for at in self.at.values()]

    def _gather(self) -> None:
        """Add up the cells that came."""
        for cells in self.coming:
            self.cells = self.cells.together(cells, self._sizes)
        self.coming.clear()
        if self.cells.codes.size > _LARGEST:
            raise DataError(
                f"the {counted(len(self.at), 'discrete column')} have more than "
                f"{len(self.cells.n):,} configurations in the data sets; use fewer of them, or "
                "coarser levels",
                InPython("; or hold the rows, pb.table", ""),
            )

    def made(self, rows: data.Rows) -> CellStats:
        """The statistics, with levels in their order; those that no row has are gone."""
        self._gather()
        categories: dict[str, tuple[str, ...]] = dict.fromkeys(self.names, ())
        position = {
            name: [k] for k, name in enumerate(name for name in self.names if name not in self.at)
        }
        codes = self.cells.codes.copy()
        for m, (name, at) in enumerate(self.at.items()):
            index = self.categories[name].index
            seen = set(np.flatnonzero(self.rows[name]).tolist())
            there = [v for v in self.categories[name].names if index[v] in seen]
            code = np.zeros(len(index), dtype=np.int64)
            code[[index[v] for v in there]] = np.arange(len(there))
            categories[name], codes[:, m] = tuple(there), code[codes[:, m]]
            position[name] = [at[index[v]] for v in there[1:]]
        levels = tuple(categories[name] for name in self.names)
        order = np.array([k for name in self.names for k in position[name]], dtype=np.intp)
        sums = self.sums.cut(len(rows.levels))
        mean, cubes = sums.mean[:, order], sums.cubes[:, order]
        sums = replace(sums, mean=mean, scatter=sums.scatter[:, order[:, None], order], cubes=cubes)
        facts = dict(enumerate(self.sums.facts))  # those of numbers, which come first
        own = tuple(facts.get(k, INDICATOR) for k in order.tolist())
        labels = labels_of(self.names, levels)
        numbers = of_sums(labels, tuple(rows.levels), sums, rows.group, own)
        cells = Cells(self.cells.data_set, codes, self.cells.n)
        cells = cells.merged([len(each) for each in levels if each])
        return CellStats(self.names, levels, settled(numbers, cells, levels), cells)


def tally(rows: data.Rows) -> CellStats:
    """The statistics of rows without gaps that come in batches."""
    making = _Tally.of(rows)
    with closing(rows.batches) as batches:
        for batch in batches:
            making.add(batch, len(rows.levels))
    return making.made(rows)


def check_reading(
    group: object,
    columns: object,
    inputs: object,
    interventions: object = None,
    checkpoint: object = None,
) -> None:
    """Raise for options of reading that are of wrong kinds, whoever takes them."""
    check_arguments(
        group=(group, GROUP_KIND.or_none()),
        columns=(columns, NAMES.or_none()),
        inputs=(inputs, NAMES),
        interventions=(interventions, DICT.or_none()),
        checkpoint=(checkpoint, PATH.or_none()),
    )
    if columns is not None and not isinstance(columns, str | Iterator):
        names_of("columns", columns)


D = TypeVar("D", bound=AnyData)


def with_roles(data: D, inputs: Iterable[str], interventions: Targets | None) -> D:
    """The data with columns that are inputs, and that were set; as they are where none is named."""
    chosen = list_of_names("inputs", inputs)
    made = data.with_inputs(chosen) if chosen else data
    return made.with_interventions(interventions) if interventions else made


@overload
def stats(
    source: GroupStats | PatternStats,
    *,
    columns: Iterable[str] | None = None,
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
) -> GroupStats: ...


@overload
def stats(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    missing: Missing = "error",
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> GroupStats | CellStats: ...


def stats(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    missing: Missing = "error",
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> GroupStats | CellStats:
    """Read rows once and keep the statistics of each data set.

    Args:
        source: a data frame (pandas, polars, Arrow, and others), a dict {data set: frame}, a list
            of frames, which are data sets 1, 2, ..., or files (CSV, Parquet, and others, see
            docs/files.md): a path, a folder, a pattern such as "sites/*.csv", a table such as
            "trial.duckdb::visits", a URL such as "s3://bucket/trial", "-" for standard input, or a
            list of these. Most kinds of files are streamed: memory does not grow with their rows.
            The rows of a Dask frame stay with its workers, and only their statistics travel.
            Statistics are returned as they are.
        group: the column that says which data set a row came from; it may be one that names of
            folders say, as in "site=NY/part-0.parquet". Or a list, array or Series with the data
            set of each row. Or two columns, as in ["clinic", "patient"]: data sets, and units
            inside them, whose rows are alike. With None each frame of a dict or list, or each file,
            is a data set; a file is named by its name without the ending. In CSV files names are
            texts, as they are written.
        columns: the columns to keep; None for all but `group`.
        kinds: of some columns, such as {"grade": "discrete"}. Else text, categories, true and false
            are discrete, numbers continuous. Counts need rows, `pb.table`.
        missing: "error" refuses missing cells; "drop" leaves out the rows that have one in the
            chosen columns or in `group`, and `dropped` counts them for each data set. "em" keeps
            them: missing cells are taken to be missing at random, given the others of the row, and
            statistics are the expected ones. It is for continuous columns.
        inputs: columns that may be parents but never children, and have no distribution of their
            own: an arm, a design variable, what describes a data set. Scores leave them out.
        interventions: for data sets that are experiments the columns that were set there, as in
            {"pma": ["PKC"]}. There such a column follows from no parents, and its likelihood leaves
            the data set out; for all other columns the data set counts. Where parents still matter,
            {"pma": {"PKC": "soft"}} gives the column parameters of its own there. A column that was
            set in every data set is an input. See docs/interventions.md.
        checkpoint: a folder that keeps the statistics of each file, so that reading many files can
            be stopped and started again; for continuous columns.

    Returns:
        A `GroupStats` where all columns are continuous, else a `CellStats`.

    Raises:
        DataError: the source, a column or a cell cannot be used; the message says which.

    Examples:
        >>> from poolbn import datasets
        >>> columns = ["age", "gestation_days", "birthweight_g"]
        >>> stats(datasets.opt(), group="clinic", columns=columns, missing="drop")
        GroupStats: 809 rows, 4 clinics, 3 columns
        columns: age, gestation_days, birthweight_g
          NY  164 rows, 9 dropped
          MN  247 rows
          KY  207 rows, 4 dropped
          MS  191 rows, 1 dropped
    """
    check_reading(group, columns, inputs, interventions, checkpoint)
    found: GroupStats | CellStats
    if isinstance(source, GroupStats | CellStats | PatternStats):
        some = source if columns is None else source.select(columns)
        found = some.completed() if isinstance(some, PatternStats) else simplest(some)
    else:
        found = _of_rows(source, group, columns, kinds, missing, checkpoint)
    return with_roles(found, inputs, interventions)


def _of_rows(
    source: object,
    group: Group,
    columns: Iterable[str] | None,
    kinds: Kinds | None,
    missing: Missing,
    checkpoint: str | PathLike[str] | None,
) -> GroupStats | CellStats:
    if checkpoint is not None and among(missing, ("em",)):
        raise OptionError(Option("checkpoint"), " does not go with ", Option("missing", "em"))
    if columns is not None and not isinstance(columns, str):
        columns = tuple(columns)
    reading, held = data.prepare_kinds(
        source, group=group, columns=columns, missing=missing, kinds=kinds
    )
    if not all(is_normal(kind) for kind in held):
        make = partial(of_partitions, source, reading, tally) if is_dask(source) else None
        return of_levels(reading, held, kinds or {}, checkpoint, make)
    if not is_dask(source) or checkpoint is not None:
        return of_reading(reading, None if checkpoint is None else Checkpoint(checkpoint))
    if missing == "em":
        check_no_units(reading.unit, "EM of a Dask frame", *WITHOUT_EM)
        return of_partitions(source, reading, patterns).completed()
    if reading.unit is not None:
        return of_partitions(source, reading, _open).closed()
    return of_partitions(source, reading, accumulate)


def of_levels(
    reading: data.Reading,
    held: Sequence[ColumnKind],
    given: Kinds,
    checkpoint: object = None,
    make: Callable[[], CellStats] | None = None,
) -> CellStats:
    """The statistics of what `data.prepare_kinds` opened, where some columns are discrete."""
    check_no_units(reading.unit, "pb.stats of discrete columns")
    if reading.missing == "em":
        raise OptionError(
            Option("missing", "em"), " is for continuous columns in sufficient statistics; learn "
            "from rows, whose discrete cells are filled too, or use ", DROP,
        )  # fmt: skip
    for name, kind in zip(reading.names, held, strict=True):
        if is_ordered(kind) or not (is_normal(kind) or has_levels(kind)):
            such = "counts" if is_whole(kind) else "such columns"
            other = "discrete" if has_levels(kind) else "continuous"
            raise DataError(
                f"column {name!r} is {a_kind(kind)}, and {such} need rows, which sufficient "
                "statistics do not hold; use ",
                InPython("pb.table(data, ...)", "the files of rows"),
                " or ",
                Option("kinds", {name: other}),
            )
    if checkpoint is not None:
        some = shortened(sorted(reading.discrete), 4)
        raise OptionError(
            Option("checkpoint"), f" is for continuous columns, and {some} ",
            "is discrete" if len(reading.discrete) == 1 else "are discrete", "; leave it out",
        )  # fmt: skip
    made = tally(reading.rows()) if make is None else make()
    for name, levels in zip(made.names, made.categories, strict=True):
        if levels:
            (code,), _, n, *_ = made.cases([name])
            counts = np.bincount(code.astype(np.int64), n).astype(np.int64)
            guessed = name not in given
            check_levels(name, levels, counts, guessed=guessed, origin=reading.origin)
    return made


def stats_of_numbers(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    missing: Missing = "error",
) -> GroupStats:
    """The same where all columns must be continuous."""
    if isinstance(source, GroupStats | PatternStats):
        return stats(source, columns=columns)
    return of_reading(data.prepare(source, group=group, columns=columns, missing=missing))


def of_reading(reading: data.Reading, checkpoint: Checkpoint | None = None) -> GroupStats:
    """The statistics of what is to be read; with a checkpoint file by file."""
    if checkpoint is not None:
        check_no_units(reading.unit, "a checkpoint")
    if reading.missing == "em":
        return patterns(reading.rows()).completed()
    if checkpoint is None:
        return accumulate(reading.rows())
    if any(part.path is None for part in reading.parts):
        raise OptionError(
            Option("checkpoint"), " is for files, and these rows are in memory; leave it out"
        )

    def saved(each: data.Reading) -> Saved:
        return saved_of(accumulate(each.rows(lenient=True)))

    parts = (checkpoint.saved(each, partial(saved, each)) for each in reading.each())
    whole = total(map(GroupStats._of_saved, parts))
    check_left(whole.n, whole.levels, int(whole.dropped.sum()))
    return whole


def accumulate(rows: data.Rows) -> GroupStats:
    """The statistics of rows without gaps that come in batches."""
    made, tally = _accumulated(rows)
    if tally is None:
        return made
    tell_shared(tally.name, tally.shared)
    return replace(made, units=tally.made(made.mean))


def _open(rows: data.Rows) -> _Open:
    """The same, where units may have rows elsewhere."""
    made, tally = _accumulated(rows)
    assert tally is not None
    return _Open(made, tally.open(rows.units_called, len(made.levels)))


def _accumulated(rows: data.Rows) -> tuple[GroupStats, UnitTally | None]:
    """Statistics without units, and these."""
    sums = Sums.zeros(0, len(rows.names))
    sums.facts = [NOTHING] * len(rows.names)
    tally = None if rows.unit is None else UnitTally.of(rows.unit, len(rows.names))
    with closing(rows.batches) as batches:
        for batch in batches:
            sums = sums.grown(len(rows.levels))
            sums.dropped += np.bincount(batch.dropped, minlength=len(sums.n))
            own = None if tally is None or batch.units is None else partial(tally.rows, batch.units)
            sums.add_rows(batch.codes, batch.columns, own)
    cut = sums.cut(len(rows.levels))
    made = of_sums(rows.names, tuple(rows.levels), cut, rows.group, tuple(sums.facts))
    return made, tally


class InMemory(NamedTuple):
    """All rows."""

    codes: Integers  # the data set of each, (B,)
    values: Floats  # the cells, (B, N)
    dropped: Integers  # rows left out of data sets, (F,)
    # the number of each one's unit, unlike in different data sets, (B,); None without units
    units: Integers | None


def in_memory(rows: data.Rows) -> InMemory:
    """What there is to read."""
    with closing(rows.batches) as batches:
        read = [(batch.codes, batch.values, batch.dropped, batch.units) for batch in batches]
    *arrays, names = zip(*read, strict=True)
    codes, values, dropped = (np.concatenate(part) for part in arrays)
    left_out, units = np.bincount(dropped, minlength=len(rows.levels)), None
    if rows.unit is not None:
        own = np.concatenate([each for each in names if each is not None])
        units = numbered(codes, own)
        of_name = np.unique(np.stack([own, codes]), axis=1)[0]
        tell_shared(rows.unit, int((np.bincount(of_name) > 1).sum()))
    return InMemory(codes, values, left_out, units)


def numbered(codes: Integers, names: Integers) -> Integers:
    """Numbers of units, (n,), data set by data set; the same name in two is two units."""
    pairs = codes * (int(names.max(initial=0)) + 1) + names
    return np.asarray(np.unique(pairs, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def patterns_of(
    names: tuple[str, ...],
    levels: tuple[Hashable, ...],
    codes: Integers,
    values: Floats,
    group: str,
) -> PatternStats:
    """Those of rows in memory, see `in_memory`."""
    columns = list(np.ascontiguousarray(values.T))
    batch = data.Batch(codes, columns, codes[:0], Scan.of(columns).words)
    tally = Tally(np.zeros(len(names), dtype=np.int64))
    return patterns(data.Rows(names, group, list(levels), (one for one in [batch]), tally))


def patterns(rows: data.Rows) -> PatternStats:
    """The same, with those of rows that have missing cells."""
    check_no_units(rows.unit, "EM from sufficient statistics", *_FROM_ROWS, *WITHOUT_EM)
    gaps = GapsInTheMaking.empty(len(rows.names))
    gaps.sums.facts = [NOTHING] * len(rows.names)
    dropped = [np.zeros(0, dtype=np.int64)]
    with closing(rows.batches) as batches:
        for batch in batches:
            dropped.append(batch.dropped)
            gaps.add_rows(batch.codes, batch.columns, batch.missing)
    levels = tuple(rows.levels)
    sums = gaps.whole(len(levels))
    sums.dropped[:] = np.bincount(np.concatenate(dropped), minlength=len(levels))
    return PatternStats(of_sums(rows.names, levels, sums, rows.group, gaps.facts()), gaps.made())
