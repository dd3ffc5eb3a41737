"""Rows of some columns, whoever holds them; and which columns are chosen."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from operator import add
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, cast

import numpy as np

from poolbn.arguments import FLAG, PATH, TEXT, among, check_arguments, names_of
from poolbn.arrays import Floats, Integers, Positions
from poolbn.errors import NO_UNITS, DataError, InPython, MessagePart, Option, nearest
from poolbn.moments.statsfile import Saved, read_file, write_file
from poolbn.moments.targets import (
    How,
    Interventions,
    Targets,
    among_columns,
    among_data_sets,
    checked_targets,
)
from poolbn.tables.kinds import ColumnKind
from poolbn.wording import counted, noun_of


class Cases(NamedTuple):
    """Rows of some columns, sorted by data set."""

    # M columns of R values each, codes of levels for discrete ones
    columns: Sequence[Floats]
    offsets: Integers  # rows of data set j are offsets[j] to offsets[j + 1], (F + 1,)
    # how often each row occurs, (R,); None for once. A fraction where its missing cells are drawn
    # several times.
    n: Integers | Floats | None
    # where cells are drawn, which draw a row is of, -1 for all, (R,)
    draw: Integers | None = None
    # the number of each row's unit inside data sets, see `Table.units`, (R,); None without units
    units: Integers | None = None

    @property
    def data_set(self) -> Integers:
        """Of each row, (R,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


class AnyData(Protocol):
    """What all data answer alike: by default for those without missing cells."""

    if TYPE_CHECKING:  # fields of some, which a property would give a default

        @property
        def names(self) -> tuple[str, ...]:
            """The N columns."""

        @property
        def kinds(self) -> tuple[ColumnKind, ...]:
            """What each holds."""

        @property
        def categories(self) -> tuple[tuple[str, ...], ...]:
            """The levels of each discrete column; none for others."""

        @property
        def levels(self) -> tuple[Hashable, ...]:
            """The F data sets."""

        @property
        def group(self) -> str:
            """The column that says which data set a row came from."""

        @property
        def inputs(self) -> tuple[str, ...]:
            """Columns that may be parents but never children."""

        @property
        def interventions(self) -> Interventions:
            """The columns that were set, for data sets in which some were."""

        @property
        def n(self) -> Integers:
            """Rows of each data set, (F,)."""

        @property
        def dropped(self) -> Integers:
            """Rows of each data set left out because a cell is missing, (F,)."""

        @property
        def has_rows(self) -> bool:
            """Whether a discrete node or a count may have a continuous parent."""

        @property
        def mostly_unique(self) -> frozenset[str]:
            """Columns in which more than half of the rows have a value of their own."""

        def _cases(self, names: tuple[str, ...], at: list[int], *, incomplete: bool) -> Cases:
            """The rows of some columns, of which these are the positions."""

        def _chosen(self, names: tuple[str, ...], at: list[int]) -> Self:
            """The same of some columns, of which these are the positions."""

        def data_sets(self, at: Sequence[int] | Integers, levels: Iterable[Hashable]) -> Self:
            """The data sets at these positions, which may repeat, under other names."""

        def _some(self, at: Sequence[int]) -> Self:
            """The data sets at these positions, with all levels of columns."""

        def joined(self, alone: Sequence[int], name: Hashable) -> Self:
            """These data sets apart, and all others as one, the last."""

    @property
    def n_rows(self) -> int:
        """Rows in all data sets together."""
        return int(self.n.sum())

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        return dict(zip(self.names, self.kinds, strict=True))

    def kind(self, name: str) -> ColumnKind:
        """What a column holds.

        Raises:
            DataError: there is no such column.

        Examples:
            >>> import poolbn as pb
            >>> pb.table(pb.datasets.opt()[["clinic", "age"]], group="clinic").kind("age")
            'continuous'
        """
        try:
            return self._kinds[name]
        except (KeyError, TypeError):
            return self.kinds[int(positions(self.names, (name,))[0])]

    @property
    def unit(self) -> str | None:
        """The column that says which unit of its data set a row is of; None without units."""
        return None

    @property
    def without_units(self) -> Self:
        """The same rows, those of a unit taken for independent."""
        return self

    @property
    def missing(self) -> Integers:
        """Missing cells of each data set and column, (F, N)."""
        return np.zeros((len(self.n), len(self.names)), dtype=np.int64)

    @property
    def patterns(self) -> Any:
        """Where cells are missing, sums by what is, a `pb.PatternStats`; else None."""
        return None

    @property
    def imputed(self) -> bool:
        """Whether missing cells are filled in, so that estimates have an error of it."""
        return False

    @property
    def provisional(self) -> bool:
        """Whether they are filled in for a round of EM that another one follows."""
        return False

    def cases(self, columns: Iterable[str], *, incomplete: bool = False) -> Cases:
        """The rows of some columns, or how often each configuration of discrete ones occurs.

        `incomplete` rows have NaN where a cell is missing.

        Raises:
            DataError: there is no such column, a cell of it is missing, or statistics do not hold
                its rows.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]]
            >>> pb.table(trial, group="clinic").cases(["age"]).offsets
            array([  0, 173, 420, 631, 823])
            >>> old = pb.stats(trial.assign(age=trial["age"] > 25), group="clinic")
            >>> old.cases(["age"]).n
            array([ 80,  93, 109, 138, 132,  79, 114,  78])
            >>> pb.stats(trial, group="clinic").cases(["age"])
            Traceback (most recent call last):
            poolbn.errors.DataError: 'age' needs rows, which sufficient statistics do not hold...
        """
        chosen = list_of_names("columns", columns)
        at = positions(self.names, chosen).tolist()
        return self._cases(chosen, at, incomplete=incomplete)

    def select(self, columns: Iterable[str]) -> Self:
        """The same of some columns, in the order given.

        Rows that have none of them, where cells are missing, are left out of sums.

        Raises:
            DataError: a column is unknown, named twice, or there is none; or a data set has no
                rows left.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.stats(trial, group="clinic").select(["bmi"]).scatter.shape
            (4, 1, 1)
        """
        chosen = list_of_names("columns", columns)
        at = positions(self.names, chosen).tolist()
        if not chosen:
            raise DataError("no columns are chosen")
        return self._chosen(chosen, at)

    def with_inputs(self, inputs: Iterable[str]) -> Self:
        """The same with these columns as inputs: parents only, without a distribution.

        Raises:
            DataError: a column is unknown or named twice, or there is no other.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(pb.stats(trial, group="clinic").with_inputs(["age"]))
            >>> net.dag.parents("age"), net.inputs
            ((), ('age',))
        """
        chosen = list_of_names("inputs", inputs)
        positions(self.names, chosen)
        if len(chosen) == len(self.names):
            raise DataError(
                "all columns are inputs, which leaves none to learn about; leave one out of ",
                Option("inputs", list(chosen)),
            )
        return self._with(inputs=tuple(name for name in self.names if name in chosen))

    def with_interventions(self, interventions: Targets) -> Self:
        """The same where columns are known to have been set in some data sets.

        There they do not follow from their parents as elsewhere: the data sets are left out of the
        likelihood that these columns have in all others, and count for all other columns. A column
        that was set in every data set is an input for all that learns.

        Args:
            interventions: for each such data set the columns, as in {"pma": ["PKC"]}; where
                parents still matter, but otherwise than elsewhere, {"pma": {"PKC": "soft"}}.

        Raises:
            DataError: there is no such data set or column, or a column is an input.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> stats = pb.stats(trial, group="clinic").with_interventions({"NY": ["bmi"]})
            >>> pb.fit_node(stats, "bmi", ["age"]).n_rows, stats.n_rows - stats.n[0]
            (634, np.int64(634))
        """
        given = (self.names, self.levels, self.inputs, self.group)
        return self._with(interventions=checked_targets(interventions, *given))

    def settled(self) -> Self:
        """The same where columns that were set in all data sets are inputs."""
        targets = self.interventions
        if not targets or len(targets) < len(self.levels):
            return self
        everywhere = set(self.names).intersection(*targets.values())
        if not everywhere:
            return self
        rest = among_columns(targets, [name for name in self.names if name not in everywhere])
        return self._with(interventions=rest).with_inputs({*self.inputs, *everywhere})

    def _with(self, **changes: Any) -> Self:
        own: Any = self
        return cast("Self", replace(own, **changes))

    def levels_set(self, child: int, how: How | None = None) -> list[Hashable]:
        """The data sets in which a column was set, in one way or both."""
        name, of = self.names[child], self.interventions
        found = [(level, of[level][name]) for level in self.levels if name in of.get(level, ())]
        return [level for level, own in found if how in (None, own)]

    def where_not_set(self, child: int) -> Self:
        """The data sets that the likelihood of a column is about; itself if it was set nowhere.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> stats = pb.stats(trial, group="clinic").with_interventions({"NY": ["bmi"]})
            >>> stats.where_not_set(0) is stats, stats.where_not_set(1).levels
            (True, ('MN', 'KY', 'MS'))
        """
        return self.without(self.levels_set(child))

    def without(self, levels: Collection[Hashable]) -> Self:
        """The data without some data sets; itself if it has none of these."""
        kept = tuple(j for j, level in enumerate(self.levels) if level not in levels)
        if len(kept) == len(self.levels):
            return self
        if kept not in self._views:
            self._views[kept] = self._some(list(kept))._with(interventions={})
        return cast("Self", self._views[kept])

    def _targets_joined(self, alone: Sequence[int], name: Hashable) -> Interventions:
        """The interventions of `joined`."""
        F = len(self.levels)
        new = [self.levels[j] if j in alone else name for j in range(F)]
        return among_data_sets(self.interventions, self.levels, range(F), new)

    def only(self, levels: Collection[Hashable]) -> Self:
        """These data sets, of which there are some."""
        return self.without([level for level in self.levels if level not in levels])

    @cached_property
    def _views(self) -> dict[tuple[int, ...], Any]:
        return {}

    def drawn(self, k: int) -> Any:
        """The k-th data that there may be without missing cells, all that is uncertain drawn."""
        return self

    def share(self, child: int, parents: Sequence[int]) -> float:
        """Of the rows that a family counts for, where missing cells are drawn."""
        return 1.0


class WithoutRows(AnyData, Protocol):
    """What all data without rows answer alike."""

    _takes: ClassVar[tuple[str, ...]] = ()  # what a file may have that not all can read

    if TYPE_CHECKING:

        def _to_save(self, *, allow_small: bool) -> Saved:
            """What a file keeps; raises for what few rows have."""

        @classmethod
        def _of_saved(cls, saved: Saved) -> Self:
            """What a file has."""

    def save(self, path: str | PathLike[str], *, allow_small: bool = False) -> None:
        """Write to one file, whole or not at all.

        Such files are made to be handed on, and statistics of few rows reveal them: with one row
        the mean is that row. So data sets of fewer than 10 rows are refused, and columns with two
        values, such as 0 and 1, of which fewer than 10 rows of a data set have one, or have one
        together with one of another such column. Configurations of discrete columns that fewer
        rows have are refused too: `coarsened` helps. Patterns of missing cells that fewer have are
        made coarser, which takes observed cells.

        Args:
            path: the file.
            allow_small: whether what any number of rows have may be written.

        Raises:
            DataError: fewer than 10 rows are in a data set or a configuration, or have a value.
            FileError: a data set's name is not a text, a number or a bool.

        Examples:
            >>> import poolbn as pb, tempfile
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]]
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pb.stats(trial.dropna(), group="clinic").save(f"{folder}/trial.stats")
            ...     pb.GroupStats.load(f"{folder}/trial.stats").levels
            ('NY', 'MN', 'KY', 'MS')
            >>> patterns = pb.stats(trial, group="clinic", missing="em").patterns
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     patterns.save(f"{folder}/trial.stats")
            ...     pb.PatternStats.load(f"{folder}/trial.stats")
            PatternStats: 817 rows, 67 with missing values in 1 pattern, 4 clinics, 2 columns
        """
        check_arguments(path=(path, PATH), allow_small=(allow_small, FLAG))
        write_file(path, self._to_save(allow_small=allow_small))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote; all read what `GroupStats.save` did.

        Raises:
            FileError: the file is not there, not of this kind, of another version, damaged, or
                holds what no rows have.

        Examples:
            >>> import poolbn as pb, tempfile
            >>> trial = pb.datasets.opt()[["clinic", "age"]]
            >>> old = pb.stats(trial.assign(age=trial["age"] > 25), group="clinic")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     old.save(f"{folder}/trial.stats")
            ...     pb.CellStats.load(f"{folder}/trial.stats").categories
            (('False', 'True'),)
        """
        check_arguments(path=(path, PATH))
        return cls._of_saved(read_file(path, takes=cls._takes))

    @cached_property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What each column holds, "continuous" or "discrete"."""
        return tuple("discrete" if levels else "continuous" for levels in self.categories)

    @property
    def has_rows(self) -> bool:
        """Whether a discrete node or a count may have a continuous parent."""
        return False

    def by_configuration(self, discrete: Sequence[str], columns: Sequence[str]) -> Any:
        """What only rows tell: squares of numbers in each configuration of discrete columns."""
        raise needs_rows(f"a regression for each level of {discrete[0]!r}")

    @property
    def mostly_unique(self) -> frozenset[str]:
        """Columns in which more than half of the rows have a value of their own: not known."""
        return frozenset()

    def _some(self, at: Sequence[int]) -> Self:
        """The data sets at these positions, with all levels of columns."""
        return self.data_sets(at, [self.levels[j] for j in at])

    def joined(self, alone: Sequence[int], name: Hashable) -> Self:
        """These data sets apart, and all others as one, the last."""
        own: Any = self
        parts = [own.data_sets([j], [name]) for j in range(len(self.n)) if j not in alone]
        if alone:
            parts.insert(0, own.data_sets(alone, [own.levels[j] for j in alone]))
        return cast("Self", reduce(add, parts))

    def __radd__(self, other: object) -> Self:
        """Let `sum(parts)` work, which begins with 0."""
        return self if other == 0 else NotImplemented


class OnlySums(WithoutRows, Protocol):
    """What all data that are sums of continuous columns answer alike."""

    @cached_property
    def categories(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each discrete column; none for others."""
        return ((),) * len(self.names)

    def _cases(self, names: tuple[str, ...], at: list[int], *, incomplete: bool) -> Cases:
        raise needs_rows(" and ".join(map(repr, names)) or "a table")


def counts_in_words(data: AnyData, rows: str = "") -> str:
    """Rows, data sets and columns; `rows` may follow the first."""
    sets = counted(len(data.levels), noun_of(data.group))
    return f"{counted(data.n_rows, 'row')}{rows}, {sets}, {counted(len(data.names), 'column')}"


def check_no_units(data: AnyData, what: str, *remedy: MessagePart) -> None:
    """Raise where there are units inside data sets, and this does not use them."""
    if data.unit is not None:
        raise DataError(
            f"{what} takes rows for independent, and {data.unit!r} says units inside data sets; ",
            *(remedy or (NO_UNITS,)),
        )


def needs_rows(what: str) -> DataError:
    """The error for what sufficient statistics cannot answer."""
    return DataError(
        f"{what} needs rows, which sufficient statistics do not hold; use ",
        InPython("pb.table(data, ...) in place of pb.stats", "the files of rows"),
    )


def list_of_names(option: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names in a list; one name alone is none."""
    if isinstance(names, str):
        raise DataError(Option(option, names), f" is one name; give a list, [{names!r}]")
    return tuple(names_of(option, names))


def check_family(names: tuple[str, ...], child: str, parents: Sequence[str]) -> None:
    """Raise for a child and parents of which one is not a column, or that occur twice."""
    check_arguments(child=(child, TEXT))
    if child in parents:
        raise DataError(f"{child!r} is its own parent; take it out of the parents")
    positions(names, (*parents, child))


def positions(names: tuple[str, ...], columns: tuple[str, ...]) -> Positions:
    """Where columns are among the names, or an error."""
    for column in columns:
        if not among(column, names):
            raise DataError(f"no column {column!r}{nearest(column, names)}")
        if columns.count(column) > 1:
            raise DataError(f"column {column!r} is named {columns.count(column)} times")
    position = {name: i for i, name in enumerate(names)}
    return np.array([position[c] for c in columns], dtype=np.intp)
