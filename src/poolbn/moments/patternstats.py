"""`PatternStats`: statistics of rows with missing cells, which add up; what EM makes of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from poolbn.arguments import NUMBER, check_arguments
from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import DataError, Option, check_count
from poolbn.moments.cases import OnlySums, counts_in_words, positions
from poolbn.moments.em import CompleteRows, Completion, ObservedMoments, complete, observed_moments
from poolbn.moments.groupstats import (
    SMALLEST,
    Filled,
    GroupStats,
    check_size,
    check_values,
    of_sums,
    saved_of,
    total,
)
from poolbn.moments.patterns import (
    Gaps,
    GapsInTheMaking,
    PatternCell,
    cells_of,
    coarser,
    distinct,
)
from poolbn.moments.statsfile import Saved
from poolbn.moments.sums import Sums
from poolbn.moments.targets import Interventions
from poolbn.multiplicity import adjusted_p
from poolbn.tables.missing import check_left, packed
from poolbn.wording import counted

if TYPE_CHECKING:
    import pandas as pd


_FEWEST = 10  # rows of a data set that the tests use


class Patterns(NamedTuple):
    """Which columns rows lack, (P, N), and how many in each data set do, (P, F); most rows first.

    Rows without gaps are the pattern that lacks nothing.
    """

    missing: Flags
    rows: Integers


def tallied(gaps: Gaps, known: Integers) -> Patterns:
    """Of rows with missing cells, and of those without in each data set."""
    F, N = len(known), gaps.rows.shape[1]
    masks = np.concatenate([np.zeros((F, N), dtype=bool), gaps.missing, np.isnan(gaps.rows)])
    codes = np.concatenate([np.arange(F), gaps.data_set, gaps.rows_of])
    n = np.concatenate([known, gaps.n, np.ones(len(gaps.rows), dtype=np.int64)])
    first, which, _ = distinct(packed(masks))
    rows = np.zeros((len(first), F), dtype=np.int64)
    np.add.at(rows, (which, codes), n)
    order = np.lexsort((*masks[first].T[::-1], -rows.sum(axis=1)))
    order = order[rows[order].any(axis=1)]
    return Patterns(masks[first][order], rows[order])


class Dependence(NamedTuple):
    """A test of whether values of a column are missing by chance."""

    column: int  # with missing values
    on: int  # the column that its rows differ in; -1 for the data set
    # of that column between rows that lack the first and others of the same data set, in SDs; for
    # the data set the largest difference between shares of missing values
    difference: float
    statistic: float  # Student's t; for the data set Pearson's chi-squared
    p_value: float  # small if there is more than chance


def _on_data_sets(n: Integers, there: Floats) -> list[Dependence]:
    from scipy.special import chdtrc

    found = []
    for c in range(there.shape[1]):
        at = there[:, c] > 0  # a column that a data set never measured is not missing by chance
        size, share = n[at], 1 - there[at, c] / n[at]
        whole = float(share @ size / size.sum())
        if at.sum() < 2 or whole == 0:
            continue
        value = float((size * (share - whole) ** 2).sum() / (whole * (1 - whole)))
        p = float(chdtrc(at.sum() - 1, value))
        found.append(Dependence(c, -1, float(np.ptp(share)), value, p))
    return found


def _on_columns(gaps: Gaps, seen: ObservedMoments) -> list[Dependence]:
    """Student's t of a difference that all data sets share, after each column's scale in each."""
    from scipy.special import stdtr

    F, N = seen.n.shape
    shape = F, N, N
    count, total, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)  # where c is missing
    for j in range(F):
        at, row = gaps.data_set == j, gaps.rows_of == j
        lacks, rows = gaps.missing[at].astype(float), gaps.rows[row]
        weight = gaps.n[at, None] * ~gaps.missing[at]
        away = np.where(gaps.missing[at], 0.0, gaps.mean[at] - seen.mean[j])
        within = np.einsum("cii->ci", gaps.scatter[at])
        absent = np.isnan(rows)
        apart = np.where(absent, 0.0, rows - seen.mean[j])
        none = absent.astype(float)
        count[j] = lacks.T @ weight + none.T @ (1 - none)
        total[j] = lacks.T @ (weight * away) + none.T @ apart
        squares[j] = lacks.T @ (within + weight * away**2) + none.T @ apart**2
    n = seen.n[:, None, :]
    rest = n - count
    used = (count > 0) & (rest > 0) & (n >= _FEWEST) & (seen.squares > 0)[:, None, :]
    one, other = np.where(used, count, 1.0), np.where(used, rest, 1.0)
    gap = np.where(used, total / one + total / other, 0.0)  # the rest adds up to minus as much
    inside = seen.squares[:, None, :] - one * other / (one + other) * gap**2
    scale = np.sqrt(np.where(used, seen.squares[:, None, :] / n.clip(1), 1.0))
    weight = np.where(used, one * other / (one + other), 0.0)
    gap /= scale
    spread = np.where(used, inside / scale**2, 0.0).sum(axis=0)
    size = weight.sum(axis=0)
    shift = (weight * gap).sum(axis=0) / size.clip(1e-300)
    spread += (weight * (gap - shift) ** 2).sum(axis=0)
    df = np.where(used, n, 0).sum(axis=0) - used.sum(axis=0) - 1
    found = []
    for c, k in np.argwhere((size > 0) & (df > 0) & (spread > 0)):
        t = float(shift[c, k] * np.sqrt(size[c, k] * df[c, k] / spread[c, k]))
        p = float(2 * stdtr(df[c, k], -abs(t)))
        found.append(Dependence(int(c), int(k), float(shift[c, k]), t, p))
    return found


PSEUDO_ROWS = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class PatternStats(OnlySums):
    """Sums of rows for each data set and pattern of missing cells.

    They are all that EM needs, and they add up: `a + b` are those of the rows of both.

    Attributes:
        known: statistics of the rows without gaps; a data set may have none of these.
        gaps: the others.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> filled = pb.stats(trial, group="clinic", missing="em")
        >>> filled.patterns
        PatternStats: 823 rows, 14 with missing values in 1 pattern, 4 clinics, 3 columns
    """

    _takes = ("gaps",)

    known: GroupStats
    gaps: Gaps

    @property
    def names(self) -> tuple[str, ...]:
        """The N columns."""
        return self.known.names

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The F data sets."""
        return self.known.levels

    @property
    def group(self) -> str:
        """The column that says which data set a row came from."""
        return self.known.group

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns that may be parents but never children."""
        return self.known.inputs

    @property
    def unit(self) -> str | None:
        """The column that says which unit of its data set a row is of; None without units."""
        return self.known.unit

    @property
    def dropped(self) -> Integers:
        """Rows of each data set left out since they have no cell, (F,)."""
        return self.known.dropped

    @property
    def missing(self) -> Integers:
        """Missing cells of each data set and column, (F, N)."""
        return np.asarray(self.n[:, None] - self.observed)

    @property
    def patterns(self) -> PatternStats:
        """Themselves."""
        return self

    @property
    def imputed(self) -> bool:
        """Whether missing cells are filled in, where statistics are asked for."""
        return self.has_gaps

    @cached_property
    def _filled(self) -> GroupStats:
        return self.completed()

    def stats(self, columns: Iterable[str] | None = None) -> GroupStats:
        """The statistics of `completed`, or of some columns.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]]
            >>> pb.stats(trial, group="clinic", missing="em").patterns.stats(["bmi"]).names
            ('bmi',)
        """
        return self._filled.stats(columns)

    def drawn(self, k: int) -> GroupStats:
        """The k-th statistics that the rows may have had if no cell were missing."""
        return self._filled.drawn(k)

    @property
    def interventions(self) -> Interventions:
        """The columns that were set, for data sets in which some were."""
        return self.known.interventions

    def _with(self, **changes: Any) -> PatternStats:
        return replace(self, known=replace(self.known, **changes))

    def data_sets(self, at: Sequence[int] | Integers, levels: Iterable[Hashable]) -> PatternStats:
        """The data sets at these positions, which may repeat, under other names."""
        some = self.known.data_sets(at, levels)
        return PatternStats(some, self.gaps.at(np.asarray(at)))

    @property
    def has_gaps(self) -> bool:
        """Whether a cell is missing."""
        return bool(len(self.gaps.n) or len(self.gaps.rows))

    @cached_property
    def n(self) -> Integers:
        """Rows of each data set, with and without gaps, (F,)."""
        return self.known.n + self.gaps.n_rows(len(self.levels))

    @cached_property
    def observed(self) -> Integers:
        """Cells of each data set and column that are there, (F, N)."""
        return self.known.n[:, None] + self.gaps.observed(len(self.levels))

    def __add__(self, other: PatternStats) -> PatternStats:
        """Those of the rows of both.

        Raises:
            DataError: the columns differ, or names of data sets only by type or spelling.
        """
        if not isinstance(other, PatternStats):
            return NotImplemented
        if set(other.names) != set(self.names):
            self.known + other.known  # raises, and says which
        return added((self, other))

    def _chosen(self, names: tuple[str, ...], at: list[int]) -> PatternStats:
        known, gaps = self.known.select(names), self.gaps.select(np.array(at))
        cell, row = (np.asarray(lacks.all(axis=1)) for lacks in (gaps.missing, np.isnan(gaps.rows)))
        dropped = known.dropped.copy()
        np.add.at(dropped, gaps.data_set[cell], gaps.n[cell])
        np.add.at(dropped, gaps.rows_of[row], 1)
        making = GapsInTheMaking.empty(len(known.names))
        making.add(gaps.kept(~cell, ~row), np.arange(len(self.levels)))
        whole = _with(replace(known, dropped=dropped), making.whole(len(self.levels)))
        chosen = PatternStats(whole, making.made())
        check_left(chosen.n, chosen.levels, int(dropped.sum()))
        return chosen

    def coarsened(self, rows: int = SMALLEST) -> PatternStats:
        """Without patterns that fewer rows have.

        They are put together, and keep the columns that they have in common; or left out, where
        fewer observed cells are lost that way.

        Args:
            rows: the fewest that a pattern may have.

        Raises:
            DataError: nothing is left of a data set.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]]
            >>> patterns = pb.stats(trial, group="clinic", missing="em").patterns
            >>> patterns.coarsened()
            PatternStats: 804 rows, 67 with missing values in 1 pattern, 4 clinics, 3 columns
        """
        check_count(1, rows=rows)
        known, N = self.known, len(self.names)
        n, mean = np.zeros_like(known.n), np.zeros_like(known.mean)
        scatter = np.zeros_like(known.scatter)
        found: list[tuple[int, PatternCell]] = []
        for j in range(len(self.levels)):
            cells = cells_of(self.gaps, j)
            if known.n[j]:
                whole = int(known.n[j]), known.mean[j], known.scatter[j]
                cells.append(PatternCell(np.zeros(N, dtype=bool), *whole))
            for cell in coarser(cells, rows):
                if cell.missing.any():
                    found.append((j, cell))
                else:
                    n[j], mean[j], scatter[j] = cell.n, cell.mean, cell.scatter
        rest = replace(known, n=n, mean=mean, scatter=scatter, cubes=np.zeros(0))
        made = PatternStats(rest, _gaps(found, N))
        for level, had, left in zip(self.levels, self.n, made.n, strict=True):
            if not left:
                raise DataError(
                    f"of the {counted(int(had), 'row')} of data set {level!r} no {rows} have values"
                    " in the same columns; choose columns that are less often missing, or leave "
                    "the data set out"
                )
        return made

    def counts(self) -> pd.DataFrame:
        """How many rows of each data set lack what: a row for each pattern, most rows first.

        Returns:
            Rows by what is missing, a tuple of columns; columns are the data sets.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]]
            >>> pb.stats(trial, group="clinic", missing="em").patterns.counts()
                                   NY   MN   KY   MS
            ()                    107  237  202  191
            (bmi,)                 57   10    5    0
            (birthweight_g,)        9    0    3    1
            (bmi, birthweight_g)    0    0    1    0
        """
        import pandas as pd

        found = tallied(self.gaps, self.known.n)
        lacks = np.empty(len(found.missing), dtype=object)
        for p, missing in enumerate(found.missing):
            lacks[p] = tuple(self.names[k] for k in np.flatnonzero(missing))
        index = pd.Index(lacks, tupleize_cols=False)
        return pd.DataFrame(found.rows, index=index, columns=list(self.levels))

    def missingness(self) -> pd.DataFrame:
        """Tests of what missing values depend on: the data set, and the values of other columns.

        EM allows for both, as long as these values are there. What it cannot allow for, that a
        value is missing because of what it is, no test can find.

        Returns:
            A row for each column with missing values and each thing that they may depend on:
            `variable`, `depends_on`, `difference` (between rows with and without the value, in
            SDs; for data sets the largest between their shares of missing values), `statistic`
            (Student's t; for data sets chi-squared), `p_value` and `p_adjusted` (Benjamini and
            Hochberg's).

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]]
            >>> found = pb.stats(trial, group="clinic", missing="em").patterns.missingness()
            >>> found.round(3)
              variable depends_on  difference  statistic  p_value  p_adjusted
            0      bmi     clinic       0.329    159.351    0.000       0.000
            1      bmi        age      -0.004     -0.026    0.979       0.979
        """
        import pandas as pd

        seen = observed_moments(self.gaps, self._whole)
        found = sorted([*_on_data_sets(self.n, seen.n), *_on_columns(self.gaps, seen)])
        labels = (*self.names, self.group)  # of which -1 is the group
        named = [(labels[each.column], labels[each.on], *each[2:]) for each in found]
        columns = ["variable", "depends_on", "difference", "statistic", "p_value"]
        p_adjusted = adjusted_p([each.p_value for each in found])
        return pd.DataFrame(named, columns=columns).assign(p_adjusted=p_adjusted)

    @cached_property
    def _whole(self) -> list[CompleteRows]:
        known = self.known
        parts = zip(known.n, known.mean, known.scatter, strict=True)
        return [CompleteRows(float(n), mean, scatter) for n, mean, scatter in parts]

    def _to_save(self, *, allow_small: bool) -> Saved:
        if self.known.units is not None and not self.has_gaps:
            return self.known._to_save(allow_small=allow_small)
        if not allow_small:
            check_size(self.levels, self.n)
        made = self.coarsened(1 if allow_small else SMALLEST)
        if not allow_small:
            check_values(made.known, SMALLEST)
            check_values(_as_data_sets(made), SMALLEST)
        return saved_of(made.known, made.gaps if made.has_gaps else None)

    @classmethod
    def _of_saved(cls, saved: Saved) -> PatternStats:
        known = GroupStats._of_saved(saved)
        return without_gaps(known) if saved.gaps is None else PatternStats(known, saved.gaps)

    def completed(self, pseudo_rows: float = PSEUDO_ROWS) -> GroupStats:
        """Expected sufficient statistics, by EM in each data set.

        Args:
            pseudo_rows: rows that each data set is lent, with the covariance of all.

        Raises:
            DataError: a column is missing in all rows.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]]
            >>> patterns = pb.stats(trial, group="clinic", missing="em").patterns
            >>> patterns.completed(pseudo_rows=1).n_rows
            823
        """
        check_arguments(pseudo_rows=(pseudo_rows, NUMBER))
        if not pseudo_rows > 0:
            raise DataError(Option("pseudo_rows", pseudo_rows), " must be positive")
        found = self.completion if pseudo_rows == PSEUDO_ROWS else self._complete(pseudo_rows)
        mean, scatter = found.expected()
        filled = Filled(self, self.observed, partial(_drawn, found))
        n, none = self.n.copy(), np.zeros(0)
        return replace(self.known, n=n, mean=mean, scatter=scatter, cubes=none, filled=filled)

    @cached_property
    def completion(self) -> Completion:
        """What EM finds of each data set."""
        return self._complete(PSEUDO_ROWS)

    def _complete(self, pseudo_rows: float) -> Completion:
        never = self.observed.sum(axis=0) == 0
        if never.any():
            name = self.names[int(never.argmax())]
            raise DataError(f"column {name!r} is missing in all rows; leave it out")
        return complete(self.gaps, self._whole, pseudo_rows)

    def __repr__(self) -> str:
        gaps = self.n_rows - self.known.n_rows
        patterns = {*map(bytes, self.gaps.missing), *map(bytes, np.isnan(self.gaps.rows))}
        found = f", {gaps:,} with missing values in {counted(len(patterns), 'pattern')}"
        return f"PatternStats: {counts_in_words(self, found)}"


def _with(known: GroupStats, more: Sums) -> GroupStats:
    """Statistics of rows without gaps, and more of them."""
    others = of_sums(known.names, known.levels, more, known.group, known.facts)
    others = replace(others, interventions=known.interventions)
    return replace(total((known, others)), facts=known.facts) if others.n.any() else known


def _gaps(cells: Sequence[tuple[int, PatternCell]], width: int) -> Gaps:
    """Cells of data sets, and no single rows."""
    return Gaps(
        np.array([j for j, _ in cells], dtype=np.int64),
        np.array([cell.missing for _, cell in cells], dtype=bool).reshape(-1, width),
        np.array([cell.n for _, cell in cells], dtype=np.int64),
        np.array([cell.mean for _, cell in cells]).reshape(-1, width),
        np.array([cell.scatter for _, cell in cells]).reshape(-1, width, width),
        np.zeros(0, dtype=np.int64),
        np.zeros((0, width)),
    )


def _drawn(completion: Completion, stats: GroupStats, seed: Sequence[int]) -> GroupStats:
    """Statistics of completed rows, of some columns."""
    mean, scatter = completion.drawn(np.random.default_rng(seed))
    at = positions(stats.patterns.names, stats.names)
    scatter = scatter[:, at[:, None], at]
    return replace(stats, n=stats.n.copy(), mean=mean[:, at], scatter=scatter, filled=None)


def _as_data_sets(patterns: PatternStats) -> GroupStats:
    """The rows of each pattern with gaps as a data set; means are NaN where cells are missing."""
    gaps, known = patterns.gaps, patterns.known
    mean = np.where(gaps.missing, np.nan, gaps.mean)
    levels, none = [known.levels[j] for j in gaps.data_set.tolist()], np.zeros_like(gaps.n)
    arrays = gaps.n.copy(), mean, gaps.scatter.copy(), none
    return GroupStats(known.names, tuple(levels), *arrays, known.group, known.facts)


def without_gaps(known: GroupStats) -> PatternStats:
    """Those of rows without gaps."""
    return PatternStats(known, _gaps([], len(known.names)))


def added(parts: Iterable[PatternStats]) -> PatternStats:
    """Of the rows of all parts, which have the same columns."""
    some = list(parts)
    names = some[0].names
    same = [part if part.names == names else part.select(names) for part in some]
    known = total(part.known for part in same)
    index = {level: j for j, level in enumerate(known.levels)}
    making = GapsInTheMaking.empty(len(names))
    for part in same:
        making.add(part.gaps, np.array([index[level] for level in part.levels], dtype=np.int64))
    return PatternStats(known, making.made())
