"""Statistics of rows with discrete columns, in the making: batches come, and levels with them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from poolbn.errors import DataError, InPython
from poolbn.moments.cellstats import CellStats
from poolbn.moments.discrete import Cells
from poolbn.moments.facts import NOTHING
from poolbn.moments.groupstats import of_sums
from poolbn.moments.indicators import INDICATOR, labels_of
from poolbn.moments.recoding import settled
from poolbn.moments.sums import Sums
from poolbn.tables import data
from poolbn.tables.kinds import MOST_LEVELS, ColumnKind, Levels, check_levels
from poolbn.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 2**27  # codes of cells that are held: a GiB


@dataclass
class _Tally:
    """The sums of continuous columns and then of an indicator for each level, as these come.

    Attributes:
        names: the columns.
        categories: the levels of discrete ones as far as they came, which `Rows` adds to.
        sums: of numbers.
        at: for each discrete column the position of the indicator of each level.
        cells: those that are added up; codes are in the order of appearance.
        coming: those that are not yet.
        rows: how many rows have each level.
    """

    names: tuple[str, ...]
    categories: Mapping[str, Levels]
    sums: Sums
    at: dict[str, list[int]]
    cells: Cells
    coming: list[Cells] = field(default_factory=list)
    rows: dict[str, NDArray[np.int64]] = field(default_factory=dict)

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
        sums = replace(
            sums,
            mean=sums.mean[:, order],
            scatter=sums.scatter[:, order[:, None], order],
            cubes=sums.cubes[:, order],
        )
        facts = [*self.sums.facts, *[INDICATOR] * (self.sums.mean.shape[1] - len(self.sums.facts))]
        labels = labels_of(self.names, levels)
        own = tuple(facts[k] for k in order)
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


def check_tallied(stats: CellStats, given: Mapping[str, ColumnKind], origin: str) -> None:
    """Raise for discrete columns that hold no levels.

    Args:
        stats: of all rows.
        given: the kinds that somebody said.
        origin: how a message says "in this source".
    """
    for name, levels in zip(stats.names, stats.categories, strict=True):
        if levels:
            rows = stats.cases([name])
            (code,), n = rows.columns, rows.n
            counts = np.bincount(code.astype(np.int64), n).astype(np.int64)
            check_levels(name, levels, counts, guessed=name not in given, origin=origin)
