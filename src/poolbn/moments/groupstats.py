"""`GroupStats`: all that the models need to know of the rows, for each data set."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np

from poolbn.arguments import FLAG, NAMES, PATH, TEXT, check_arguments, names_of
from poolbn.errors import DataError, Option, OptionError, nearest
from poolbn.moments.checkpoint import Checkpoint
from poolbn.moments.daskstats import of_partitions
from poolbn.moments.facts import NOTHING, UNKNOWN, ColumnFacts, joined
from poolbn.moments.statsfile import Fields, read_file, write_file
from poolbn.moments.summaries import SHOWN, in_html, in_text
from poolbn.moments.sums import Sums
from poolbn.tables import data
from poolbn.tables.data import DATA_SET
from poolbn.tables.labels import Spellings
from poolbn.tables.missing import check_left
from poolbn.tables.sources import is_dask
from poolbn.wording import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Rows that a data set must have to be written to a file that is handed on.
SMALLEST = 10


@dataclass(frozen=True, eq=False, repr=False)
class GroupStats:
    """Row count, mean vector and centred scatter matrix of each data set.

    Statistics add up: `a + b` are the statistics of the rows of both. Arrays are read-only.

    Attributes:
        names: the N columns.
        levels: the F data sets, in order of first appearance.
        n: rows of each data set, (F,).
        mean: mean of each column in each data set, (F, N).
        scatter: centred sums of squares and products in each data set, (F, N, N).
        dropped: rows of each data set left out because a cell is missing, (F,).
        group: the column that says which data set a row came from.
        facts: what the values of each of the N columns look like, such as their resolution. Files
            keep a part of it, and statistics made by hand have none.
        inputs: columns that are parents only, and have no distribution.
        cubes: sums of cubes of differences from the mean, for skewness, (F, N); NaN where they are
            not known, as in statistics from files.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> north = pb.stats(trial[trial["clinic"].isin(["NY", "MN"])], group="clinic")
        >>> south = pb.stats(trial[trial["clinic"].isin(["KY", "MS"])], group="clinic")
        >>> north + south
        GroupStats: 750 rows, 4 data sets, 2 columns
        columns: age, bmi
          NY  116 rows
          MN  237 rows
          KY  205 rows
          MS  192 rows
    """

    names: tuple[str, ...]
    levels: tuple[Hashable, ...]
    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    dropped: NDArray[np.int64]
    group: str = DATA_SET
    facts: tuple[ColumnFacts, ...] = ()
    inputs: tuple[str, ...] = ()
    cubes: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not self.facts:
            object.__setattr__(self, "facts", (UNKNOWN,) * len(self.names))
        if not self.cubes.size:
            object.__setattr__(self, "cubes", np.full(self.mean.shape, np.nan))
        for array in (self.n, self.mean, self.scatter, self.dropped, self.cubes):
            array.flags.writeable = False

    @property
    def n_rows(self) -> int:
        """Rows in all data sets together."""
        return int(self.n.sum())

    def with_inputs(self, inputs: Iterable[str]) -> GroupStats:
        """The same statistics with these columns as inputs: parents only, without a distribution.

        Raises:
            DataError: a column is unknown or named twice, or there is no other.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(pb.stats(trial, group="clinic").with_inputs(["age"]))
            >>> net.dag.parents("age"), net.inputs
            ((), ('age',))
        """
        chosen = _list_of_names("inputs", inputs)
        _positions(self.names, chosen)
        if len(chosen) == len(self.names):
            raise DataError(
                "all columns are inputs, which leaves none to learn about; leave one out of ",
                Option("inputs", list(chosen)),
            )
        return replace(self, inputs=tuple(name for name in self.names if name in chosen))

    def __add__(self, other: GroupStats) -> GroupStats:
        """Statistics of the rows of both: data sets of the same name become one.

        Raises:
            DataError: the columns differ, or names of data sets only by type or spelling.
        """
        if not isinstance(other, GroupStats):
            return NotImplemented
        lacking = [c for c in other.names if c not in self.names]
        extra = [c for c in self.names if c not in other.names]
        if lacking or extra:
            sides = (("the left lacks", lacking), ("the right lacks", extra))
            told = "; ".join(f"{side} {', '.join(map(repr, cs))}" for side, cs in sides if cs)
            raise DataError(
                f"cannot add statistics of different columns: {told}; select() common columns first"
            )
        if set(self.inputs) != set(other.inputs):
            both = " and ".join(listed(s.inputs) or "none" for s in (self, other))
            raise DataError(
                f"cannot add statistics of different inputs, {both}; give both the same "
                "with_inputs() first"
            )
        return total((self, other))

    def __radd__(self, other: object) -> GroupStats:
        """Let `sum(parts)` work, which begins with 0."""
        return self if other == 0 else NotImplemented

    def select(self, columns: Iterable[str]) -> GroupStats:
        """The same statistics of some columns, in the order given.

        Raises:
            DataError: a column is unknown, named twice, or there is none.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.stats(trial, group="clinic").select(["bmi"]).scatter.shape
            (4, 1, 1)
        """
        chosen = _list_of_names("columns", columns)
        at = _positions(self.names, chosen)
        if not chosen:
            raise DataError("no columns are chosen")
        return GroupStats(
            chosen,
            self.levels,
            self.n,
            self.mean[:, at],
            self.scatter[:, at[:, None], at],
            self.dropped,
            self.group,
            tuple(self.facts[i] for i in at),
            tuple(name for name in chosen if name in self.inputs),
            self.cubes[:, at],
        )

    def family(self, child: str, parents: Sequence[str]) -> GroupStats:
        """The statistics of one regression: the parents, and the child last.

        Raises:
            DataError: a name is unknown or occurs twice.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.stats(trial, group="clinic").family("bmi", ["age"]).scatter.shape
            (4, 2, 2)
        """
        check_family(self.names, child, names_of("parents", parents))
        return self.select((*parents, child))

    def save(self, path: str | PathLike[str], *, allow_small: bool = False) -> None:
        """Write to one file, whole or not at all.

        Such files are made to be handed on, and statistics of few rows reveal them: with one row
        the mean is that row. So data sets of fewer than 10 rows are refused.

        Args:
            path: the file.
            allow_small: whether data sets of any number of rows may be written.

        Raises:
            DataError: a data set has fewer than 10 rows.
            FileError: a data set's name is not a text, a number or a bool.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pb.stats(trial, group="clinic").save(f"{folder}/trial.stats")
            ...     pb.GroupStats.load(f"{folder}/trial.stats").levels
            ('NY', 'MN', 'KY', 'MS')
        """
        check_arguments(path=(path, PATH), allow_small=(allow_small, FLAG))
        if not allow_small:
            _check_size(self)
        write_file(path, _fields(self))

    @staticmethod
    def load(path: str | PathLike[str]) -> GroupStats:
        """Read what `save` wrote.

        Raises:
            FileError: the file is not there, not of this kind, of another version, damaged, or
                holds what no rows have.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pb.stats(trial, group="clinic").save(f"{folder}/trial.stats")
            ...     stats = pb.GroupStats.load(f"{folder}/trial.stats")
            >>> stats.names
            ('age', 'bmi')
        """
        check_arguments(path=(path, PATH))
        return GroupStats(*read_file(path))

    def __repr__(self) -> str:
        return in_text(self.names, self.levels, self.n.tolist(), self.dropped.tolist())

    def _repr_html_(self) -> str:
        return in_html(self.names, self.levels, self.n.tolist(), self.dropped.tolist())


def _list_of_names(option: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise DataError(Option(option, names), f" is one name; give a list, [{names!r}]")
    return tuple(names_of(option, names))


def check_reading(
    group: object, columns: object, inputs: object, checkpoint: object = None
) -> None:
    """Raise for options of reading that are of wrong kinds, whoever takes them."""
    check_arguments(
        group=(group, TEXT.or_none()),
        columns=(columns, NAMES.or_none()),
        inputs=(inputs, NAMES),
        checkpoint=(checkpoint, PATH.or_none()),
    )
    if isinstance(columns, list | tuple):
        names_of("columns", columns)


def check_family(names: tuple[str, ...], child: str, parents: Sequence[str]) -> None:
    """Raise for a child and parents of which one is not a column, or that occur twice."""
    check_arguments(child=(child, TEXT))
    if child in parents:
        raise DataError(f"{child!r} is its own parent; take it out of the parents")
    _check_columns(names, (*parents, child))


def _positions(names: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.intp]:
    _check_columns(names, columns)
    position = {name: i for i, name in enumerate(names)}
    return np.array([position[c] for c in columns], dtype=np.intp)


def _check_columns(names: tuple[str, ...], columns: tuple[str, ...]) -> None:
    for column in columns:
        if column not in names:
            raise DataError(f"no column {column!r}{nearest(column, names)}")
        if columns.count(column) > 1:
            raise DataError(f"column {column!r} is named {columns.count(column)} times")


def stats(
    source: object,
    *,
    group: str | None = None,
    columns: Iterable[str] | None = None,
    missing: Literal["error", "drop"] = "error",
    inputs: Iterable[str] = (),
    checkpoint: str | PathLike[str] | None = None,
) -> GroupStats:
    """Read rows once and keep the statistics of each data set.

    Args:
        source: a data frame (pandas, polars, Arrow, and others), a dict {data set: frame}, or CSV
            (also .csv.gz) and Parquet files: a path, a folder, a pattern such as "sites/*.csv", a
            URL such as "s3://bucket/trial", or a list of these. Files are streamed: memory does not
            grow with their rows. The rows of a Dask frame stay with its workers, and only their
            statistics travel. Statistics are returned as they are.
        group: the column that says which data set a row came from; it may be one that names of
            folders say, as in "site=NY/part-0.parquet". With None each frame of a dict, or each
            file, is a data set; a file is named by its name without the ending. In CSV files names
            are texts, as they are written.
        columns: the columns to keep; None for all but `group`, which then must be numeric.
        missing: "error" refuses missing cells; "drop" leaves out the rows that have one in the
            chosen columns or in `group`, and `dropped` counts them for each data set.
        inputs: columns that may be parents but never children, and have no distribution of their
            own: an arm, a design variable, what describes a data set. Scores leave them out.
        checkpoint: a folder that keeps the statistics of each file, so that reading many files can
            be stopped and started again.

    Raises:
        DataError: the source, a column or a cell cannot be used; the message says which.

    Examples:
        >>> from poolbn import datasets
        >>> columns = ["age", "gestation_days", "birthweight_g"]
        >>> stats(datasets.opt(), group="clinic", columns=columns, missing="drop")
        GroupStats: 809 rows, 4 data sets, 3 columns
        columns: age, gestation_days, birthweight_g
          NY  164 rows, 9 dropped
          MN  247 rows
          KY  207 rows, 4 dropped
          MS  191 rows, 1 dropped
    """
    check_reading(group, columns, inputs, checkpoint)
    inputs = _list_of_names("inputs", inputs)
    if isinstance(source, GroupStats):
        found = source if columns is None else source.select(columns)
    elif is_dask(source) and checkpoint is None:
        found = of_partitions(source, accumulate, group=group, columns=columns, missing=missing)
    else:
        reading = data.prepare(source, group=group, columns=columns, missing=missing)
        found = of_reading(reading, None if checkpoint is None else Checkpoint(checkpoint))
    return found.with_inputs(inputs) if inputs else found


def of_reading(reading: data.Reading, checkpoint: Checkpoint | None = None) -> GroupStats:
    """The statistics of what is to be read; with a checkpoint file by file.

    Raises:
        DataError: rows cannot be used.
        OptionError: a checkpoint of frames.
    """
    if checkpoint is None:
        return accumulate(reading.rows())
    if any(part.path is None for part in reading.parts):
        raise OptionError(
            Option("checkpoint"), " is for files, and these rows are in memory; leave it out"
        )

    def fields(each: data.Reading) -> Fields:
        return _fields(accumulate(each.rows(lenient=True)))

    parts = (checkpoint.fields(each, partial(fields, each)) for each in reading.each())
    whole = total(GroupStats(*part) for part in parts)
    check_left(whole.n, whole.levels, int(whole.dropped.sum()))
    return whole


def total(parts: Iterable[GroupStats]) -> GroupStats:
    """Statistics of the rows of all parts, which have the same columns; one part at a time.

    Data sets of the same name become one. There is at least one part.

    Raises:
        DataError: names of data sets differ only by type or spelling.
    """
    coming = iter(parts)
    first = next(coming)
    sums = Sums.zeros(0, len(first.names))
    facts = (NOTHING,) * len(first.names)
    index: dict[Hashable, int] = {}
    spellings = Spellings()
    for part in chain((first,), coming):
        spellings.add(part.levels)
        same = part if part.names == first.names else part.select(first.names)
        at = np.array([index.setdefault(v, len(index)) for v in same.levels], dtype=np.intp)
        sums = sums.grown(len(index))
        sums.dropped[at] += same.dropped
        facts = joined(facts, same.facts)
        some = slice(None) if same.n.all() else same.n > 0  # a file may have dropped rows only
        moments = (same.mean[some], same.scatter[some], same.cubes[some])
        sums.add(at[some], same.n[some], *moments)
    whole = _stats(first.names, tuple(index), sums.cut(len(index)), first.group, facts)
    return replace(whole, inputs=first.inputs)


def accumulate(rows: data.Rows) -> GroupStats:
    """The statistics of rows that come in batches."""
    sums = Sums.zeros(0, len(rows.names))
    sums.facts = [NOTHING] * len(rows.names)
    with closing(rows.batches) as batches:
        for batch in batches:
            sums = sums.grown(len(rows.levels))
            sums.dropped += np.bincount(batch.dropped, minlength=len(sums.n))
            sums.add_rows(batch.codes, batch.columns)
    cut = sums.cut(len(rows.levels))
    return _stats(rows.names, tuple(rows.levels), cut, rows.group, tuple(sums.facts))


def _stats(
    names: tuple[str, ...],
    levels: tuple[Hashable, ...],
    sums: Sums,
    group: str,
    facts: tuple[ColumnFacts, ...],
) -> GroupStats:
    too_large = ~np.isfinite(sums.scatter).all(axis=(0, 1))
    if too_large.any():
        raise DataError(
            f"squares of column {names[int(too_large.argmax())]!r} are too large for floating "
            "point; give it a larger unit"
        )
    arrays = (sums.n, sums.mean, sums.scatter, sums.dropped)
    return GroupStats(names, levels, *arrays, group, facts, cubes=sums.cubes)


def _fields(s: GroupStats) -> Fields:
    return s.names, s.levels, s.n, s.mean, s.scatter, s.dropped, s.group, s.facts, s.inputs


def _check_size(stats: GroupStats) -> None:
    few = [
        f"{level!r} has {n}"
        for level, n in zip(stats.levels, stats.n.tolist(), strict=True)
        if n < SMALLEST
    ]
    if few:
        more = f", and so {len(few)} data sets in all" if len(few) > SHOWN else ""
        raise DataError(
            f"data sets have fewer than {SMALLEST} rows: {', '.join(few[:SHOWN])}{more}; "
            "sufficient statistics of few rows reveal them: with one row the mean is that row; "
            "merge data sets, leave small ones out, or write them all the same with ",
            Option("allow_small", True),
        )
