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
from typing import NamedTuple

import numpy as np

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
from poolbn.moments.statsfile import OTHER, Discrete, Saved
from poolbn.moments.targets import Interventions, added, among_columns, among_data_sets
from poolbn.tables.kinds import joined_levels
from poolbn.tables.labels import Spellings
from poolbn.wording import counted, listed, shortened, visible

Levels = tuple[str, ...]


class Form(NamedTuple):
    """A column as it is, or with other levels."""

    at: int  # its position before
    levels: Levels  # its levels now; none if it is not discrete
    code: Integers  # the code now of each level that there was, (K,)

    @staticmethod
    def same(at: int, levels: Levels) -> Form:
        """A column as it is."""
        return Form(at, levels, np.arange(len(levels)))

    def merge(self, gone: Sequence[int]) -> Form:
        """With these levels put together, which then are the last, "other"."""
        kept = [k for k in range(len(self.levels)) if k not in gone]
        code = np.full(len(self.levels), len(kept), dtype=np.int64)
        code[kept] = np.arange(len(kept))
        return Form(self.at, (*(self.levels[k] for k in kept), OTHER), code[self.code])


def recoded_cells(cells: Cells, before: Sequence[Levels], columns: Sequence[Form]) -> Cells:
    """Cells of some columns in another form."""
    discrete = [k for k, levels in enumerate(before) if levels]
    some = [column for column in columns if column.levels]
    codes = [column.code[cells.codes[:, discrete.index(column.at)]] for column in some]
    made = np.array(codes, dtype=np.int64).reshape(len(some), len(cells.n)).T
    return Cells(cells.data_set, made, cells.n).merged([len(column.levels) for column in some])


def recoded_moments(
    stats: GroupStats, before: Sequence[Levels], names: Sequence[str], columns: Sequence[Form]
) -> GroupStats:
    """Moments of some columns in another form; those of indicators alone are left to `settled`.

    `stats` have discrete columns as indicators of the levels that they had `before`; `names` are
    those of the columns that are left.
    """
    after = [column.levels for column in columns]
    old, new = spans(before), spans(after)
    T = np.zeros((new[-1].stop, old[-1].stop))  # the linear part of what makes new columns of old
    source = {}  # where each continuous column was
    for span, column in zip(new, columns, strict=True):
        own = list(old[column.at])
        if not column.levels:
            T[span[0], own[0]] = 1.0
            source[span[0]] = own[0]
            continue
        for level, row in enumerate(span, start=1):
            T[row, own] = column.code[1:] == level
            if column.code[0] == level:  # the old first level is one minus all others
                T[row, own] -= 1.0
    scatter = T @ stats.scatter @ T.T
    to, of = list(source), list(source.values())
    mean, cubes = np.zeros((2, len(stats.n), len(T)))
    mean[:, to], cubes[:, to] = stats.mean[:, of], stats.cubes[:, of]
    return replace(
        stats,
        names=labels_of(names, after),
        mean=mean,
        scatter=(scatter + scatter.transpose(0, 2, 1)) / 2,
        cubes=cubes,
        facts=tuple(stats.facts[source[k]] if k in source else INDICATOR for k in range(len(T))),
    )


def settled(stats: GroupStats, cells: Cells, categories: Sequence[Levels]) -> GroupStats:
    """Moments of indicators as the counts have them, to the bit."""
    at = indicator_columns(categories)
    own = moments_of(cells, categories, len(stats.n))
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


def _rarest(levels: Sequence[str], rows: Floats) -> list[int]:
    """The two rarest levels; where one stands for others already, the rarest and this."""
    order: list[int] = np.argsort(rows, kind="stable").tolist()
    if OTHER in levels:
        other = levels.index(OTHER)
        return [next(k for k in order if k != other), other]
    return order[:2]


class _Choice(NamedTuple):
    """What may become of a column: fewer levels or, None, nothing; what it says, in nats."""

    column: Form | None
    information: float


def _choices(column: Form, rows: Floats) -> list[_Choice]:
    """From all levels to none; a column with one level says nothing, and stays."""
    found, left = [_Choice(column, _information(rows))], rows
    while len(column.levels) > 2:
        column = column.merge(_rarest(column.levels, left))
        left = np.bincount(column.code, rows).astype(np.float64)
        found.append(_Choice(column, _information(left)))
    return [*found, _Choice(None, 0.0)] if len(rows) > 1 else found


def _information(rows: Floats) -> float:
    """What it says which of some levels each row has."""
    n = rows.sum()
    return float(n * np.log(n) - (rows * np.log(rows)).sum())


def fewer_levels(cells: Cells, categories: Sequence[Levels], least: int) -> list[Form | None]:
    """What is left of each column if a cell has so many rows at least; None for nothing."""
    every = [Form.same(k, levels) for k, levels in enumerate(categories)]
    discrete = [column for column in every if column.levels]
    choices = [
        _choices(column, np.bincount(codes, cells.n).astype(np.float64))
        for column, codes in zip(discrete, cells.codes.T, strict=True)
    ]

    def small(at: Sequence[int]) -> int:
        """Rows in small cells."""
        some = [own[i].column for own, i in zip(choices, at, strict=True)]
        n = recoded_cells(cells, categories, [column for column in some if column is not None]).n
        return int(n[n < least].sum())

    def price(step: list[int]) -> tuple[float, float]:
        """Information for each row that is saved."""
        lost = sum(
            own[i].information - own[k].information
            for own, i, k in zip(choices, at, step, strict=True)
        )
        saved = now - small(step)
        return (lost / saved if saved else inf), lost

    at = [0] * len(choices)
    while now := small(at):
        further = [(m, i) for m, own in enumerate(choices) for i in range(at[m] + 1, len(own))]
        at = min(([*at[:m], i, *at[m + 1 :]] for m, i in further), key=price)
    for m in sorted(range(len(choices)), key=lambda m: -choices[m][0].information):
        finer = ([*at[:m], i, *at[m + 1 :]] for i in range(at[m]))
        at = next((back for back in finer if not small(back)), at)
    found = iter(own[i].column for own, i in zip(choices, at, strict=True))
    return [next(found) if column.levels else column for column in every]


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
        interventions: the columns that were set, for data sets in which some were.

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

    _takes = ("levels",)

    names: tuple[str, ...]
    categories: tuple[Levels, ...]
    numbers: GroupStats
    cells: Cells
    inputs: tuple[str, ...] = ()
    merged: Mapping[str, Levels] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    interventions: Interventions = field(default_factory=dict)

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

    def _cases(self, names: tuple[str, ...], at: list[int], *, incomplete: bool) -> Cases:
        numbers = [name for name in names if name not in self._codes]
        if numbers:
            raise needs_rows(f"a discrete node with the continuous parent {numbers[0]!r}")
        return Cases([self._codes[name] for name in names], self._offsets, self.cells.n)

    @cached_property
    def _offsets(self) -> Integers:
        """Where the cells of each data set begin, (F + 1,)."""
        return np.searchsorted(self.cells.data_set, np.arange(len(self.levels) + 1))

    @cached_property
    def _codes(self) -> dict[str, Floats]:
        """Of each discrete column, (R,)."""
        columns = self.cells.codes.T.astype(np.float64)
        return dict(zip(_discrete(self.names, self.categories), columns, strict=True))

    def _chosen(self, names: tuple[str, ...], at: list[int]) -> CellStats:
        return self._recoded([Form.same(k, self.categories[k]) for k in at])

    def _recoded(self, columns: Sequence[Form]) -> CellStats:
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
            interventions=among_columns(self.interventions, names),
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
        made = replace(
            parts[0],
            numbers=settled(numbers, cells, parts[0].categories),
            cells=cells,
            merged=merged,
            left_out=tuple(dict.fromkeys((*self.left_out, *right.left_out))),
        )
        return made._with(
            interventions=added((part.levels, part.interventions) for part in (self, right))
        )

    def _some(self, at: Sequence[int]) -> CellStats:
        """The data sets at these positions, with all levels of columns."""
        return self._taken(at, [self.levels[j] for j in at])

    def _taken(self, at: Sequence[int] | Integers, levels: Iterable[Hashable]) -> CellStats:
        """The data sets at these positions, under other names."""
        parts = [np.arange(self._offsets[j], self._offsets[j + 1]) for j in at]
        some = np.concatenate(parts)
        data_set = np.repeat(np.arange(len(at)), list(map(len, parts)))
        cells = Cells(data_set, self.cells.codes[some], self.cells.n[some])
        return replace(self, numbers=self.numbers.data_sets(at, levels), cells=cells)

    def data_sets(self, at: Sequence[int] | Integers, levels: Iterable[Hashable]) -> CellStats:
        """The data sets at these positions, which may repeat, under other names.

        Levels that none of them has are gone.
        """
        new = tuple(levels)
        targets = among_data_sets(self.interventions, self.levels, at, new)
        some = self._taken(at, new)
        codes, columns = iter(some.cells.codes.T), []
        for k, own in enumerate(self.categories):
            there = np.unique(next(codes)) if own else np.arange(0)
            code = np.searchsorted(there, np.arange(len(own)))
            columns.append(Form(k, tuple(own[i] for i in there), code))
        made = some._recoded(columns)._with(interventions=targets)
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
        if tuple(categories) == self.categories:
            return self
        columns = []
        for k, (own, levels) in enumerate(zip(self.categories, categories, strict=True)):
            code = [levels.index(v) if v in levels else len(levels) - 1 for v in own]
            columns.append(Form(k, levels, np.array(code, dtype=np.int64)))
        return self._recoded(columns)

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
        found = fewer_levels(self.cells, self.categories, rows)
        columns = [column for column in found if column is not None]
        if not columns:
            raise DataError(
                f"no column is left if all configurations of {listed(self.names)} have {rows} rows "
                "of a data set; use fewer columns, coarser levels, or larger data sets"
            )
        merged = dict(self.merged)
        for column in columns:
            name = self.names[column.at]
            if len(column.levels) < len(self.categories[column.at]):
                gone = [v for v in self._apart(name) if v not in column.levels[:-1]]
                merged[name] = tuple(dict.fromkeys((*merged.get(name, ()), *gone)))
        made = replace(self, merged=merged)._recoded(columns)
        out = [name for name, column in zip(self.names, found, strict=True) if column is None]
        return replace(made, left_out=(*self.left_out, *out))

    def _to_save(self, *, allow_small: bool) -> Saved:
        if not allow_small:
            check_size(self.levels, self.n)
            self._check_cells()
            check_values(self.numbers, SMALLEST)
        merged = tuple(name for name in self.names if name in self.merged)
        discrete = Discrete(self.names, self.categories, merged, self.cells)
        told = replace(self.numbers, inputs=self.inputs, interventions=self.interventions)
        return saved_of(told)._replace(discrete=discrete)

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

    @classmethod
    def _of_saved(cls, saved: Saved) -> CellStats:
        stats, discrete = GroupStats._of_saved(saved), saved.discrete
        if discrete is None:
            F = len(stats.levels)
            cells = Cells(np.arange(F), np.zeros((F, 0), dtype=np.int64), stats.n)
            none = ((),) * len(stats.names)
            moments = replace(stats, inputs=(), interventions={})
            made = CellStats(stats.names, none, moments, cells, stats.inputs)
            return replace(made, interventions=stats.interventions)
        moments = replace(stats, inputs=(), interventions={})
        numbers = settled(moments, discrete.cells, discrete.categories)
        merged = dict.fromkeys(discrete.merged, ())
        made = CellStats(
            discrete.names, discrete.categories, numbers, discrete.cells, stats.inputs, merged
        )
        return replace(made, interventions=stats.interventions)

    def __repr__(self) -> str:
        lines = in_words("CellStats", self)
        for name, levels in self.merged.items():
            several = shortened(levels) if levels else "several levels"
            lines.append(f'"{OTHER}" of {name} stands for {several}')
        lines += [f"left out: {shortened(self.left_out)}"] * bool(self.left_out)
        sets = data_set_lines(self.numbers)
        return "\n".join([*map(visible, lines), *sets])


def simplest(stats: GroupStats | CellStats) -> GroupStats | CellStats:
    """The same, as `GroupStats` where no column is discrete."""
    if isinstance(stats, GroupStats) or any(stats.categories):
        return stats
    return replace(stats.numbers, inputs=stats.inputs, interventions=stats.interventions)


def _discrete(names: Sequence[str], categories: Sequence[Levels]) -> list[str]:
    """The discrete ones of some columns."""
    return [name for name, levels in zip(names, categories, strict=True) if levels]


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
