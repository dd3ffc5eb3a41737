"""`CellStats`: sufficient statistics of tables with discrete columns, which add up.

Where few rows have a configuration, a column has its forms: all its levels, the rarest two as one,
and so on down to two, and none. Each step goes to another form, the one that loses least
information for each row that is in a small cell no more. So rare levels go first, and a column
whose rare level stands alone goes before others lose theirs. In the end what is not needed to be
gone comes back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from os import PathLike
from typing import NamedTuple

import numpy as np

from poolbn.arguments import FLAG, PATH, check_arguments
from poolbn.arrays import Floats, Integers
from poolbn.errors import DataError, InPython, Option, check_count
from poolbn.moments.cases import Cases, WithoutRows, list_of_names, needs_rows, positions
from poolbn.moments.data import in_words
from poolbn.moments.groupstats import (
    SMALLEST,
    GroupStats,
    check_same,
    check_size,
    check_values,
    data_set_lines,
    of_saved,
    saved_of,
    total,
)
from poolbn.moments.indicators import (
    INDICATOR,
    Cells,
    indicator_columns,
    labels_of,
    moments_of,
    spans,
)
from poolbn.moments.statsfile import OTHER, Discrete, read_file, write_file
from poolbn.tables.kinds import ColumnKind, joined_levels
from poolbn.tables.labels import Spellings
from poolbn.wording import counted, listed, shortened, visible

Levels = tuple[str, ...]


class Recoded(NamedTuple):
    """A column in another form."""

    at: int  # its position before
    levels: Levels  # its new levels; none if it is not discrete
    code: Integers  # the new code of each old level, (K,)


def recoded_cells(cells: Cells, before: Sequence[Levels], columns: Sequence[Recoded]) -> Cells:
    """Cells of some columns in another form."""
    discrete = [k for k, levels in enumerate(before) if levels]
    some = [column for column in columns if column.levels]
    codes = [column.code[cells.codes[:, discrete.index(column.at)]] for column in some]
    made = np.array(codes, dtype=np.int64).reshape(len(some), len(cells.n)).T
    return Cells(cells.data_set, made, cells.n).merged([len(column.levels) for column in some])


def recoded_moments(
    stats: GroupStats, before: Sequence[Levels], names: Sequence[str], columns: Sequence[Recoded]
) -> GroupStats:
    """Moments of some columns in another form; those of indicators alone are left to `settled`.

    `stats` have discrete columns as indicators of the levels that they had `before`; `names` are
    those of the columns that are left.
    """
    T = _transformation(before, columns)
    scatter = T @ stats.scatter @ T.T
    after = [column.levels for column in columns]
    source = np.full(len(T), -1)  # where a continuous column was
    for span, column in zip(spans(after), columns, strict=True):
        if not column.levels:
            source[span[0]] = spans(before)[column.at][0]
    continuous = source >= 0
    mean = np.zeros((len(stats.n), len(T)))
    mean[:, continuous] = stats.mean[:, source[continuous]]
    cubes = np.zeros_like(mean)
    cubes[:, continuous] = stats.cubes[:, source[continuous]]
    return replace(
        stats,
        names=labels_of(names, after),
        mean=mean,
        scatter=(scatter + scatter.transpose(0, 2, 1)) / 2,
        cubes=cubes,
        facts=tuple(stats.facts[k] if k >= 0 else INDICATOR for k in source),
    )


def _transformation(before: Sequence[Levels], columns: Sequence[Recoded]) -> Floats:
    """The linear part of what makes new columns of numbers of old ones."""
    old, new = spans(before), spans([column.levels for column in columns])
    T = np.zeros((new[-1].stop if new else 0, old[-1].stop if old else 0))
    for span, column in zip(new, columns, strict=True):
        own = list(old[column.at])
        if not column.levels:
            T[span[0], own[0]] = 1.0
            continue
        for level, row in enumerate(span, start=1):
            T[row, own] = column.code[1:] == level
            if column.code[0] == level:  # the old first level is one minus all others
                T[row, own] -= 1.0
    return T


def settled(stats: GroupStats, cells: Cells, categories: Sequence[Levels]) -> GroupStats:
    """Moments of indicators as the counts have them, to the bit."""
    at = indicator_columns(categories)
    own = moments_of(cells, [levels for levels in categories if levels], len(stats.n))
    mean, scatter, cubes = stats.mean.copy(), stats.scatter.copy(), stats.cubes.copy()
    mean[:, at], cubes[:, at] = own.mean, own.cubes
    still = np.zeros(mean.shape, dtype=bool)
    still[:, at] = np.einsum("jaa->ja", own.scatter) == 0
    scatter[still[:, :, None] | still[:, None, :]] = 0.0
    scatter[:, at[:, None], at] = own.scatter
    facts = list(stats.facts)
    for k in at.tolist():
        facts[k] = INDICATOR
    return replace(stats, mean=mean, scatter=scatter, cubes=cubes, facts=tuple(facts))


@dataclass(frozen=True)
class Fewer:
    """A discrete column with fewer levels."""

    # those that are left; what stands for several is last, and is called "other"
    levels: tuple[str, ...]
    code: Integers  # the code in these of each level that there was, (K,)

    def merge(self, gone: Sequence[int]) -> Fewer:
        """With these levels put together, which then are the last."""
        kept = [level for k, level in enumerate(self.levels) if k not in gone]
        return Fewer((*kept, OTHER), _last(len(self.levels), gone)[self.code])


def _last(K: int, gone: Sequence[int]) -> Integers:
    """The new code of each level, where some become one, the last, (K,)."""
    kept = [k for k in range(K) if k not in gone]
    code = np.full(K, len(kept), dtype=np.int64)
    code[kept] = np.arange(len(kept))
    return code


def _rarest(levels: Sequence[str], rows: Floats) -> list[int]:
    """The two rarest levels; where one stands for others already, the rarest and this."""
    order: list[int] = np.argsort(rows, kind="stable").tolist()
    if OTHER in levels:
        other = levels.index(OTHER)
        return [next(k for k in order if k != other), other]
    return order[:2]


class _Form(NamedTuple):
    """What may become of a column: fewer levels or, None, nothing; what it says, in nats."""

    column: Fewer | None
    information: float


def _forms(levels: tuple[str, ...], rows: Floats) -> list[_Form]:
    """From all levels to none; a column with one level says nothing, and stays."""
    column = Fewer(levels, np.arange(len(levels)))
    found = [_Form(column, _information(rows))]
    while len(column.levels) > 2:
        column = column.merge(_rarest(column.levels, _added(rows, column)))
        found.append(_Form(column, _information(_added(rows, column))))
    return [*found, _Form(None, 0.0)] if len(levels) > 1 else found


def _added(rows: Floats, column: Fewer) -> Floats:
    """Rows with each level that is left."""
    return np.bincount(column.code, rows).astype(np.float64)


def _information(rows: Floats) -> float:
    """What it says which of some levels each row has."""
    n = rows.sum()
    return float(n * np.log(n) - (rows * np.log(rows)).sum())


def fewer_levels(
    cells: Cells, categories: Sequence[tuple[str, ...]], least: int
) -> list[Fewer | None]:
    """For each discrete column what is left of it, if a cell has so many rows at least; or None."""
    forms = [
        _forms(levels, np.bincount(codes, cells.n).astype(np.float64))
        for levels, codes in zip(categories, cells.codes.T, strict=True)
    ]

    def small(at: Sequence[int]) -> int:
        """Rows in small cells."""
        some = [(m, forms[m][i].column) for m, i in enumerate(at)]
        there = [(m, column) for m, column in some if column is not None]
        codes = [column.code[cells.codes[:, m]] for m, column in there]
        made = np.array(codes, dtype=np.int64).reshape(len(there), len(cells.n)).T
        n = cells._replace(codes=made).merged([len(column.levels) for _, column in there]).n
        return int(n[n < least].sum())

    def price(step: list[int]) -> tuple[float, float]:
        """Information for each row that is saved."""
        lost = sum(
            own[i].information - own[k].information
            for own, i, k in zip(forms, at, step, strict=True)
        )
        saved = now - small(step)
        return (lost / saved if saved else inf), lost

    at = [0] * len(forms)
    while now := small(at):
        further = [(m, i) for m, own in enumerate(forms) for i in range(at[m] + 1, len(own))]
        at = min(([*at[:m], i, *at[m + 1 :]] for m, i in further), key=price)
    for m in sorted(range(len(forms)), key=lambda m: -forms[m][0].information):
        finer = ([*at[:m], i, *at[m + 1 :]] for i in range(at[m]))
        at = next((back for back in finer if not small(back)), at)
    return [own[i].column for own, i in zip(forms, at, strict=True)]


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
    def n(self) -> Integers:
        """Rows of each data set, (F,)."""
        return self.numbers.n

    @property
    def dropped(self) -> Integers:
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
    def _codes(self) -> dict[str, Floats]:
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

    def data_sets(self, at: Sequence[int] | Integers, levels: Iterable[Hashable]) -> CellStats:
        """The data sets at these positions, which may repeat, under other names.

        Levels that none of them has are gone.
        """
        ends = np.searchsorted(self.cells.data_set, np.arange(len(self.levels) + 1))
        parts = [np.arange(ends[j], ends[j + 1]) for j in at]
        some = np.concatenate(parts)
        data_set = np.repeat(np.arange(len(at)), [len(part) for part in parts])
        cells = Cells(data_set, self.cells.codes[some], self.cells.n[some])
        numbers = self.numbers.data_sets(at, levels)
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
        saved = saved_of(replace(self.numbers, inputs=self.inputs))
        merged = tuple(name for name in self.names if name in self.merged)
        discrete = Discrete(self.names, self.categories, merged, self.cells)
        write_file(path, saved._replace(discrete=discrete))

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
        saved = read_file(path, takes=("levels",))
        stats, discrete = of_saved(saved), saved.discrete
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
        sets = data_set_lines(self.numbers)
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
