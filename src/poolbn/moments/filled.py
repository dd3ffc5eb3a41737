"""Tables with columns of all kinds whose missing cells are drawn, several times.

A row without missing cells is there once, another one once for each draw, with weights that add up
to one. Expected sufficient statistics, counts and regressions of rows follow from these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from poolbn.moments.cases import AnyData, Cases, list_of_names, positions
from poolbn.moments.data import numbers
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import indicators, labels_of, spans
from poolbn.moments.patternstats import PatternStats
from poolbn.moments.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poolbn.tables.kinds import ColumnKind

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class FilledTable(AnyData):
    """A table with missing cells, and M draws of them.

    Attributes:
        source: the table, NaN where cells are missing.
        draws: the cells of its rows with missing ones, (M, N, I).
        plausible: the k-th table that is drawn with all that is uncertain, for intervals.
    """

    source: Table
    draws: Floats
    plausible: Callable[[int], Table] | None = field(default=None)

    @property
    def names(self) -> tuple[str, ...]:
        """The N columns."""
        return self.source.names

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What each holds."""
        return self.source.kinds

    @property
    def categories(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each discrete column; none for others."""
        return self.source.categories

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The F data sets."""
        return self.source.levels

    @property
    def group(self) -> str:
        """The column that says which data set a row came from."""
        return self.source.group

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns that may be parents but never children."""
        return self.source.inputs

    @property
    def n(self) -> NDArray[np.int64]:
        """Rows of each data set, (F,)."""
        return self.source.n

    @property
    def dropped(self) -> NDArray[np.int64]:
        """Rows of each data set left out because a cell is missing, (F,)."""
        return self.source.dropped

    @property
    def missing(self) -> NDArray[np.int64]:
        """Missing cells of each data set and column, which are drawn, (F, N)."""
        return self.source.missing

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

    @property
    def has_rows(self) -> bool:
        """Whether a discrete node or a count may have a continuous parent."""
        return True

    @property
    def scattered(self) -> frozenset[str]:
        """Columns in which more than half of the rows have a value of their own."""
        return self.source.scattered

    @cached_property
    def gappy(self) -> NDArray[np.intp]:
        """The rows with missing cells, (I,)."""
        return np.flatnonzero(np.isnan(self.source.values).any(axis=0))

    @cached_property
    def _which(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Of each row that is here, the one that it is of, and its draw, -1 for all; (R,) each."""
        whole = np.setdiff1d(np.arange(self.n_rows), self.gappy)
        M = len(self.draws)
        row = np.concatenate([whole, np.repeat(self.gappy, M)])
        draw = np.concatenate([np.full(len(whole), -1), np.tile(np.arange(M), len(self.gappy))])
        order = np.argsort(row, kind="stable")
        return row[order], draw[order]

    @cached_property
    def _values(self) -> Floats:
        """The cells of each row that is here, (N, R)."""
        row, draw = self._which
        values = self.source.values[:, row]
        drawn = draw >= 0
        values[:, drawn] = self.draws.transpose(1, 2, 0).reshape(len(self.names), -1)
        return values

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        return np.searchsorted(self._which[0], self.source.offsets).astype(np.int64)

    @cached_property
    def unmeasured(self) -> NDArray[np.bool_]:
        """Columns of which a data set has no cell, (F, N)."""
        return np.asarray(self.source.missing == self.n[:, None])

    @property
    def patterns(self) -> PatternStats | None:
        """Sums by what is missing."""
        return self.source.patterns

    def cases(self, columns: Iterable[str], *, incomplete: bool = False) -> Cases:
        """The rows of some columns; a data set that never measured the last one does not count.

        `incomplete` ones are those of the source.
        """
        if incomplete:
            return self.source.cases(columns, incomplete=True)
        at = positions(self.names, list_of_names("columns", columns))
        _, draw = self._which
        weight = np.where(draw < 0, 1.0, 1 / len(self.draws))
        rows = Cases([self._values[k] for k in at], self._offsets, weight, draw)
        if len(at) and self.unmeasured[:, at[-1]].any():
            weight[self.unmeasured[rows.data_set, at[-1]]] = 0.0
        return rows

    def stats(self, columns: Iterable[str] | None = None) -> GroupStats:
        """Expected sufficient statistics, with indicators for discrete columns."""
        chosen = self.names if columns is None else list_of_names("columns", columns)
        if chosen not in self._made:
            self._made[chosen] = self._stats(chosen)
        return self._made[chosen]

    @cached_property
    def _made(self) -> dict[tuple[str, ...], GroupStats]:
        return {}

    def _stats(self, chosen: tuple[str, ...]) -> GroupStats:
        names, X = numbers(self, chosen)
        weight = np.where(self._which[1] < 0, 1.0, 1 / len(self.draws))
        F, at = len(self.levels), positions(self.names, chosen)
        mean, scatter = np.empty((F, len(names))), np.empty((F, len(names), len(names)))
        for j, n in enumerate(self.n.tolist()):
            part = slice(self._offsets[j], self._offsets[j + 1])
            own, w = X[:, part], weight[part]
            mean[j] = own @ w / n
            own = own - mean[j][:, None]
            scatter[j] = (own * w) @ own.T
        expanded = np.repeat(at, [len(span) for span in spans([self.categories[k] for k in at])])
        observed = (self.n[:, None] - self.source.missing)[:, expanded]
        known = Expected(self, observed, chosen)
        facts = known.patterns.known.facts
        dropped = self.source.dropped.copy()
        return GroupStats(
            names, self.levels, self.n.copy(), mean, scatter, dropped, self.group, facts,
            filled=known,
        )  # fmt: skip

    def select(self, columns: Iterable[str]) -> Self:
        """The same of some columns."""
        chosen = list_of_names("columns", columns)
        at = positions(self.names, chosen)
        gappy = self.gappy
        some = self.source.select(chosen)
        kept = np.isnan(some.values[:, gappy]).any(axis=0)
        return replace(self, source=some, draws=self.draws[:, at][:, :, kept], plausible=None)

    def with_inputs(self, inputs: Iterable[str]) -> Self:
        """The same with other inputs."""
        return replace(self, source=self.source.with_inputs(inputs))

    def data_sets(self, at: Sequence[int] | NDArray[np.int64], levels: Iterable[Hashable]) -> Self:
        """The data sets at these positions, which may repeat, under other names."""
        ends = self.source.offsets
        rows = np.concatenate([np.arange(ends[j], ends[j + 1]) for j in at])
        return self._taken(rows, lambda table: table.data_sets(at, levels, every=True))

    def joined(self, alone: Sequence[int], name: Hashable) -> Self:
        """These data sets apart, and all others as one, the last."""
        rows = self.source._order(self.source._apart(alone))
        return self._taken(rows, lambda table: table.joined(alone, name))

    def _taken(self, rows: NDArray[np.intp], taken: Callable[[Table], Table]) -> Self:
        """Some rows, and how they are taken from a table."""
        gappy, drawn = np.searchsorted(self.gappy, rows[np.isin(rows, self.gappy)]), self.plausible
        return replace(
            self,
            source=taken(self.source),
            draws=self.draws[..., gappy],
            plausible=None if drawn is None else lambda k: taken(drawn(k)),
        )

    @cached_property
    def together(self) -> Floats:
        """The share of rows that have cells of two columns, (N, N)."""
        there = (~np.isnan(self.source.values)).astype(np.float64)
        return np.asarray(there @ there.T / self.n_rows)

    def share(self, child: int, parents: Sequence[int]) -> float:
        """Of the rows that a family counts for: at most twice those that tell of it.

        These are the rows with the child and its least observed parent. A draw from a network
        without an arc makes it look weaker by their share, so that counting them alone would take
        that away twice; a draw with it makes it look surer.
        """
        told = min((float(self.together[child, p]) for p in parents), default=1.0)
        return min(1.0, 2 * told)


@dataclass(frozen=True, eq=False)
class Expected:
    """How the statistics of a `FilledTable` came about; see `groupstats.Filled`.

    Attributes:
        of: the table.
        observed: cells of each data set and column of numbers that are there, (F, W).
        columns: those of the table that they are of.
    """

    of: FilledTable
    observed: NDArray[np.int64]
    columns: tuple[str, ...]

    @property
    def rows(self) -> Floats:
        """What each data set counts for: scores of such tables know what is missing, (F,)."""
        return self.of.n.astype(np.float64)

    @cached_property
    def patterns(self) -> PatternStats:
        """Sums by what was missing."""
        return gaps_of(self.of.source.select(self.columns))

    def select(self, names: Sequence[str], chosen: Sequence[str]) -> Self:
        """Of some of these columns of numbers."""
        at = [names.index(name) for name in chosen]
        return replace(self, observed=self.observed[:, at])

    def draw(self, stats: GroupStats, seed: Sequence[int]) -> GroupStats:
        """Statistics that the rows may have had if no cell were missing."""
        if self.of.plausible is None:
            return replace(stats, filled=None)
        return self.of.plausible(seed[0]).stats(self.columns).select(stats.names)


def gappy_numbers(table: Table) -> tuple[tuple[str, ...], Floats]:
    """Columns of numbers, NaN where cells are missing, (W, n), and what they are called."""
    found: list[Floats] = []
    for column, categories in zip(table.values, table.categories, strict=True):
        lacks = np.isnan(column)
        own = [np.where(lacks, np.nan, column == code) for code in indicators(categories)]
        found += own if categories else [column]
    return labels_of(table.names, table.categories), np.array(found)


def gaps_of(table: Table) -> PatternStats:
    """Sums of a table's columns of numbers by what is missing."""
    return table._gaps(*gappy_numbers(table))
