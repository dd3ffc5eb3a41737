"""`CellStats`: sufficient statistics of tables with discrete columns, which add up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from poolbn.arguments import FLAG, PATH, check_arguments
from poolbn.errors import DataError, InPython, Option, check_count
from poolbn.moments.cases import (
    Cases,
    WithoutRows,
    checked_inputs,
    list_of_names,
    needs_rows,
    positions,
)
from poolbn.moments.cellsfile import OTHER, Discrete
from poolbn.moments.data import in_words
from poolbn.moments.discrete import Cells
from poolbn.moments.fewerlevels import fewer_levels
from poolbn.moments.groupstats import SMALLEST, GroupStats, check_same, check_size, fields_of, total
from poolbn.moments.indicators import labels_of
from poolbn.moments.rarevalues import check_values
from poolbn.moments.recoding import Recoded, recoded_cells, recoded_moments, settled
from poolbn.moments.statsfile import read_cells, write_file
from poolbn.moments.summaries import data_set_lines
from poolbn.tables.kinds import ColumnKind, joined_levels
from poolbn.tables.labels import Spellings
from poolbn.wording import counted, listed, shortened, visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

Levels = tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class CellStats(WithoutRows):
    """Sufficient statistics of columns of which some are discrete; they add up.

    They are all that continuous nodes with any parents need, and discrete nodes with discrete
    parents. A discrete node with a continuous parent needs rows, `pb.table`.

    Attributes:
        names: the N columns.
        categories: the levels of each discrete column; none for others.
        numbers: statistics of continuous columns, and of an indicator for each level of a discrete
            one but the first.
        cells: how often each configuration of all discrete columns occurs in each data set.
        inputs: columns that may be parents but never children, see `pb.stats`.
        merged: columns with a level "other" that stands for several, and for which, as far as that
            is known.
        left_out: columns that `coarsened` left out.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> old = trial.assign(old=(trial["age"] > 25).map({True: "yes", False: "no"}))
        >>> pb.stats(old, group="clinic")
        CellStats: 750 rows, 4 clinics, 3 columns
        continuous: age, bmi
        discrete: old (no, yes)
          NY  116 rows
          MN  237 rows
          KY  205 rows
          MS  192 rows
    """

    names: tuple[str, ...]
    categories: tuple[Levels, ...]
    numbers: GroupStats
    cells: Cells
    inputs: tuple[str, ...] = ()
    merged: Mapping[str, Levels] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @cached_property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What each column holds, "continuous" or "discrete"."""
        return tuple("discrete" if levels else "continuous" for levels in self.categories)

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The F data sets, in order of first appearance."""
        return self.numbers.levels

    @property
    def n(self) -> NDArray[np.int64]:
        """Rows of each data set, (F,)."""
        return self.numbers.n

    @property
    def dropped(self) -> NDArray[np.int64]:
        """Rows of each data set left out because a cell is missing, (F,)."""
        return self.numbers.dropped

    @property
    def group(self) -> str:
        """The column that says which data set a row came from."""
        return self.numbers.group

    def stats(self, columns: Iterable[str] | None = None) -> GroupStats:
        """Sufficient statistics, with an indicator for each level of a discrete column but one.

        Args:
            columns: those to keep; None for all.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> old = pb.stats(trial.assign(old=trial["age"] > 25), group="clinic")
            >>> old.stats(["old", "bmi"]).names
            ('old=True', 'bmi')
        """
        if columns is None:
            return self.numbers
        chosen = list_of_names("columns", columns)
        levels = [self.categories[k] for k in positions(self.names, chosen)]
        return self.numbers.select(labels_of(chosen, levels))

    def cases(self, columns: Iterable[str], *, incomplete: bool = False) -> Cases:
        """The configurations of discrete columns, and how often each occurs.

        Raises:
            DataError: there is no such column, or one is continuous.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]]
            >>> old = pb.stats(trial.assign(age=trial["age"] > 25), group="clinic")
            >>> old.cases(["age"]).n
            array([ 80,  93, 109, 138, 132,  79, 114,  78])
        """
        chosen = list_of_names("columns", columns)
        positions(self.names, chosen)
        numbers = [name for name in chosen if name not in self._codes]
        if numbers:
            raise needs_rows(f"a discrete node with the continuous parent {numbers[0]!r}")
        offsets = np.searchsorted(self.cells.data_set, np.arange(len(self.levels) + 1))
        return Cases([self._codes[name] for name in chosen], offsets, self.cells.n)

    @cached_property
    def _codes(self) -> dict[str, NDArray[np.float64]]:
        """Of each discrete column, (R,)."""
        columns = self.cells.codes.T.astype(np.float64)
        return dict(zip(_discrete(self.names, self.categories), columns, strict=True))

    def select(self, columns: Iterable[str]) -> CellStats:
        """The same of some columns, in the order given.

        Raises:
            DataError: a column is unknown, named twice, or there is none.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> old = pb.stats(trial.assign(old=trial["age"] > 25), group="clinic")
            >>> old.select(["old"]).names
            ('old',)
        """
        chosen = list_of_names("columns", columns)
        at = positions(self.names, chosen).tolist()
        if not chosen:
            raise DataError("no columns are chosen")
        return self._recoded([_same(k, self.categories[k]) for k in at])

    def _recoded(self, columns: Sequence[Recoded]) -> CellStats:
        """Some columns in another form."""
        names = tuple(self.names[column.at] for column in columns)
        categories = tuple(column.levels for column in columns)
        cells = recoded_cells(self.cells, self.categories, columns)
        moments = recoded_moments(self.numbers, self.categories, names, columns)
        return replace(
            self,
            names=names,
            categories=categories,
            numbers=settled(moments, cells, categories),
            cells=cells,
            inputs=tuple(name for name in names if name in self.inputs),
            merged={name: self.merged[name] for name in names if name in self.merged},
        )

    def with_inputs(self, inputs: Iterable[str]) -> CellStats:
        """The same statistics with these columns as inputs: parents only, without a distribution.

        Raises:
            DataError: a column is unknown or named twice, or there is no other.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> old = pb.stats(trial.assign(old=trial["age"] > 25), group="clinic")
            >>> old.with_inputs(["old"]).inputs
            ('old',)
        """
        return replace(self, inputs=checked_inputs(self.names, inputs))

    def __add__(self, other: CellStats) -> CellStats:
        """Statistics of the rows of both: data sets of the same name become one.

        Where a level "other" of one stands for several, levels of the other that the first does not
        have apart are put together too.

        Raises:
            DataError: the columns or their kinds differ, or names of data sets or levels only by
                type or spelling.
        """
        if not isinstance(other, CellStats):
            return NotImplemented
        check_same(self, other)
        right = other if other.names == self.names else other.select(self.names)
        for name, one, two in zip(self.names, self.kinds, right.kinds, strict=True):
            if one != two:
                raise DataError(
                    f"cannot add statistics of different kinds: column {name!r} is {one} on the "
                    f"left and {two} on the right; make both alike with ",
                    Option("kinds", {name: "discrete"}),
                )
        merged = _merged(self, right)
        parts = [part._in_levels(self._common(right, merged)) for part in (self, right)]
        numbers = total(part.numbers for part in parts)
        at = {level: j for j, level in enumerate(numbers.levels)}
        sizes = [len(levels) for levels in parts[0].categories if levels]
        left, rest = (
            part.cells._replace(
                data_set=np.array([at[v] for v in part.levels])[part.cells.data_set]
            )
            for part in parts
        )
        cells = left.together(rest, sizes)
        return replace(
            parts[0],
            numbers=settled(numbers, cells, parts[0].categories),
            cells=cells,
            merged=merged,
            left_out=tuple(dict.fromkeys((*self.left_out, *right.left_out))),
        )

    def __radd__(self, other: object) -> CellStats:
        """Let `sum(parts)` work, which begins with 0."""
        return self if other == 0 else NotImplemented

    def data_sets(
        self, at: Sequence[int] | NDArray[np.int64], levels: Iterable[Hashable]
    ) -> CellStats:
        """The data sets at these positions, which may repeat, under other names.

        Levels that none of them has are gone.
        """
        known, at = self.numbers, np.asarray(at)
        ends = np.searchsorted(self.cells.data_set, np.arange(len(self.levels) + 1))
        parts = [np.arange(ends[j], ends[j + 1]) for j in at]
        some = np.concatenate(parts)
        data_set = np.repeat(np.arange(len(at)), [len(part) for part in parts])
        cells = Cells(data_set, self.cells.codes[some], self.cells.n[some])
        numbers = replace(
            known,
            levels=tuple(levels),
            n=known.n[at],
            mean=known.mean[at],
            scatter=known.scatter[at],
            dropped=known.dropped[at],
            cubes=known.cubes[at],
        )
        columns, m = [], 0
        for k, own in enumerate(self.categories):
            if not own:
                columns.append(_same(k, own))
                continue
            there = np.flatnonzero(np.bincount(cells.codes[:, m], minlength=len(own)))
            code = np.searchsorted(there, np.arange(len(own)))
            columns.append(Recoded(k, tuple(own[i] for i in there), code))
            m += 1
        made = replace(self, numbers=numbers, cells=cells)._recoded(columns)
        of = dict(zip(made.names, made.categories, strict=True))
        merged = {name: gone for name, gone in made.merged.items() if of[name][-1] == OTHER}
        return replace(made, merged=merged)

    def joined(self, alone: Sequence[int], name: Hashable) -> CellStats:
        """These data sets apart, and all others as one, the last."""
        others = [j for j in range(len(self.levels)) if j not in alone]
        parts = [self.data_sets([j], [name]) for j in others]
        if alone:
            parts.insert(0, self.data_sets(alone, [self.levels[j] for j in alone]))
        return reduce(add, parts)

    def _apart(self, name: str) -> Levels:
        """The levels of a column that stand for themselves."""
        levels = self.categories[self.names.index(name)]
        return levels[:-1] if name in self.merged else levels

    def _common(self, other: CellStats, merged: Mapping[str, Levels]) -> list[Levels]:
        """The levels of each column that both can have."""
        found = []
        for name, levels in zip(self.names, self.categories, strict=True):
            alike = Spellings(name)
            alike.add(self._apart(name))
            alike.add(other._apart(name))
            every = joined_levels(self._apart(name), other._apart(name)) if levels else ()
            apart = tuple(level for level in every if level not in merged.get(name, ()))
            found.append((*apart, OTHER) if name in merged else every)
        return found

    def _in_levels(self, categories: Sequence[Levels]) -> CellStats:
        """The same with these levels; what is not there is the last, "other"."""
        columns = []
        for k, (own, levels) in enumerate(zip(self.categories, categories, strict=True)):
            code = [levels.index(v) if v in levels else len(levels) - 1 for v in own]
            columns.append(Recoded(k, levels, np.array(code, dtype=np.int64)))
        return self if tuple(categories) == self.categories else self._recoded(columns)

    def coarsened(self, rows: int = SMALLEST) -> CellStats:
        """Without configurations of discrete columns that fewer rows of a data set have.

        Rare levels are put together as "other", and where that is not enough columns are left out;
        each step is the one that loses least information for each row that it takes out of such a
        configuration. `merged` and `left_out` of the result say what was done.

        Args:
            rows: the fewest that a configuration may have.

        Raises:
            DataError: a data set has fewer rows, or no column is left.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> decade = trial.assign(age=(trial["age"] // 10 * 10).astype(int).astype(str))
            >>> pb.stats(decade, group="clinic").coarsened()
            CellStats: 750 rows, 4 clinics, 2 columns
            continuous: bmi
            discrete: age (20, 30, other)
            "other" of age stands for 10, 40
              NY  116 rows
              MN  237 rows
              KY  205 rows
              MS  192 rows
        """
        check_count(1, rows=rows)
        for level, n in zip(self.levels, self.n.tolist(), strict=True):
            if n < rows:
                raise DataError(
                    f"data set {level!r} has {counted(n, 'row')}, fewer than {rows}; leave it out, "
                    "or put it together with another"
                )
        discrete = [levels for levels in self.categories if levels]
        found = iter(fewer_levels(self.cells, discrete, rows))
        columns, merged = [], dict(self.merged)
        for k, (name, levels) in enumerate(zip(self.names, self.categories, strict=True)):
            fewer = next(found) if levels else None
            if fewer is not None and len(fewer.levels) < len(levels):
                gone = [v for v in self._apart(name) if v not in fewer.levels[:-1]]
                merged[name] = tuple(dict.fromkeys((*merged.get(name, ()), *gone)))
            if fewer is not None:
                columns.append(Recoded(k, fewer.levels, fewer.code))
            elif not levels:
                columns.append(_same(k, levels))
        if not columns:
            raise DataError(
                f"no column is left if all configurations of {listed(self.names)} have {rows} rows "
                "of a data set; use fewer columns, coarser levels, or larger data sets"
            )
        kept = {self.names[column.at] for column in columns}
        gone_columns = tuple(name for name in self.names if name not in kept)
        made = replace(self, merged=merged)._recoded(columns)
        return replace(made, left_out=(*self.left_out, *gone_columns))

    def save(self, path: str | PathLike[str], *, allow_small: bool = False) -> None:
        """Write to one file, whole or not at all, as `GroupStats.save` does.

        A configuration that few rows have reveals them. So data sets, and configurations of all
        discrete columns in a data set, of fewer than 10 rows are refused; `coarsened` helps.

        Args:
            path: the file.
            allow_small: whether data sets and configurations of any number of rows may be written.

        Raises:
            DataError: a data set or a configuration has fewer than 10 rows.
            FileError: a data set's name is not a text, a number or a bool.

        Examples:
            >>> import poolbn as pb, tempfile
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> old = pb.stats(trial.assign(old=trial["age"] > 25), group="clinic")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     old.save(f"{folder}/trial.stats")
            ...     pb.CellStats.load(f"{folder}/trial.stats").names
            ('age', 'bmi', 'old')
        """
        check_arguments(path=(path, PATH), allow_small=(allow_small, FLAG))
        if not allow_small:
            check_size(self.levels, self.n)
            self._check_cells()
            check_values(self.numbers, SMALLEST)
        fields = fields_of(replace(self.numbers, inputs=self.inputs))
        merged = tuple(name for name in self.names if name in self.merged)
        discrete = Discrete(self.names, self.categories, merged, self.cells)
        write_file(path, fields, discrete=discrete)

    def _check_cells(self) -> None:
        """Raise for configurations of few rows."""
        few = int((self.cells.n < SMALLEST).sum())
        if few:
            names = [repr(name) for name in _discrete(self.names, self.categories)]
            of = f" of the {counted(len(self.cells.n), 'configuration')}"
            raise DataError(
                f"{few}{of} of {listed(names)} in a data set have fewer than {SMALLEST} rows, and "
                "would reveal them; put rare levels together",
                InPython(", stats.coarsened() does,", ""),
                " use fewer discrete columns, or write them all the same with ",
                Option("allow_small", True),
            )

    @staticmethod
    def load(path: str | PathLike[str]) -> CellStats:
        """Read what `save` wrote, or `GroupStats.save`.

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
        fields, discrete = read_cells(path)
        stats = GroupStats(*fields)
        if discrete is None:
            F = len(stats.levels)
            cells = Cells(np.arange(F), np.zeros((F, 0), dtype=np.int64), stats.n)
            none = ((),) * len(stats.names)
            return CellStats(stats.names, none, replace(stats, inputs=()), cells, stats.inputs)
        numbers = settled(replace(stats, inputs=()), discrete.cells, discrete.categories)
        merged = dict.fromkeys(discrete.merged, ())
        return CellStats(
            discrete.names, discrete.categories, numbers, discrete.cells, stats.inputs, merged
        )

    def __repr__(self) -> str:
        lines = in_words("CellStats", self)
        for name, levels in self.merged.items():
            several = shortened(levels) if levels else "several levels"
            lines.append(f'"{OTHER}" of {name} stands for {several}')
        lines += [f"left out: {shortened(self.left_out)}"] * bool(self.left_out)
        sets = data_set_lines(self.levels, self.n.tolist(), self.dropped.tolist())
        return "\n".join([*map(visible, lines), *sets])


def simplest(stats: CellStats) -> GroupStats | CellStats:
    """The same, as `GroupStats` where no column is discrete."""
    return stats if any(stats.categories) else replace(stats.numbers, inputs=stats.inputs)


def _discrete(names: Sequence[str], categories: Sequence[Levels]) -> list[str]:
    """The discrete ones of some columns."""
    return [name for name, levels in zip(names, categories, strict=True) if levels]


def _same(k: int, levels: Levels) -> Recoded:
    """A column as it is."""
    return Recoded(k, levels, np.arange(len(levels)))


def _merged(one: CellStats, two: CellStats) -> dict[str, Levels]:
    """The columns of which one or both have levels put together, and all such levels."""
    found = {}
    for name in one.names:
        sides = [side for side in (one, two) if name in side.merged]
        every = dict.fromkeys((*one._apart(name), *two._apart(name)))
        gone = [v for v in every if any(v not in side._apart(name) for side in sides)]
        if sides:
            known = [v for side in sides for v in side.merged[name]]
            found[name] = tuple(dict.fromkeys((*known, *gone)))
    return found
