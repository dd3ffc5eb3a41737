"""Means and centred scatter matrices of many data sets, and how they add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Floats, Integers, Positions
from poolbn.errors import DataError
from poolbn.moments.facts import ColumnFacts
from poolbn.run.compiling import kernels
from poolbn.wording import counted

_NO_ROOM = np.zeros((0, 0))


class UnitRows(NamedTuple):
    """Rows in the order of data sets, and the units that they are of, see `units.UnitTally`."""

    units: Integers  # that of each row, (B,)
    known: Integers
    center: Floats
    sums: Floats


@dataclass
class Sums:
    """Statistics in the making, with room for data sets to come."""

    n: Integers  # rows, (F,)
    mean: Floats  # means, (F, N)
    scatter: Floats  # centred sums of squares and products, (F, N, N)
    dropped: Integers  # rows left out, (F,)
    cubes: Floats  # sums of cubes of differences from the mean, (F, N)
    # of the first columns, as many as somebody asks for
    facts: list[ColumnFacts] = field(default_factory=list)
    room: Floats = field(default_factory=lambda: _NO_ROOM)  # work space of `add_rows`

    @staticmethod
    def zeros(size: int, width: int) -> Sums:
        """Room for `size` data sets of `width` columns."""
        try:
            return Sums(
                np.zeros(size, dtype=np.int64),
                np.zeros((size, width)),
                np.zeros((size, width, width)),
                np.zeros(size, dtype=np.int64),
                np.zeros((size, width)),
            )
        except MemoryError as error:
            raise DataError(
                f"sufficient statistics of {counted(size, 'data set')} and "
                f"{counted(width, 'column')} need {8 * size * width**2 / 2**30:,.1f} GiB, more "
                "than there is; choose fewer columns, or a group column with fewer data sets"
            ) from error

    def grown(self, size: int) -> Sums:
        """Room for `size` data sets; doubles, so that growing one by one costs little."""
        have, width = self.mean.shape
        return self if size <= have else self._resized(max(size, 2 * have), width)

    def widened(self, width: int) -> Sums:
        """With more columns, in which all rows have zero."""
        have = self.mean.shape[1]
        return self if width == have else replace(self._resized(len(self.n), width), room=_NO_ROOM)

    def _resized(self, size: int, width: int) -> Sums:
        have, wide = self.mean.shape
        made = Sums.zeros(size, width)
        made.n[:have], made.dropped[:have] = self.n, self.dropped
        made.mean[:have, :wide], made.cubes[:have, :wide] = self.mean, self.cubes
        made.scatter[:have, :wide, :wide] = self.scatter
        return replace(made, facts=self.facts, room=self.room)

    def add_rows(
        self,
        codes: Integers,
        columns: Sequence[Floats],
        units: Callable[[Integers, Integers], UnitRows] | None = None,
    ) -> Floats:
        """Add rows: the place (B,) of each one's data set, and N columns of (B,).

        Rows whose place is F, one too many, are not added but returned, (N, rest); valid until more
        come. With `units` their sums get the rows too; it is told where each row (B,) goes in the
        order of data sets, and where those of each data set end, (F,).
        """
        kernel = kernels("moments")
        width = len(columns)
        if self.room.shape[1] < len(codes):
            self.room = np.zeros((-(-width // 4) * 4, len(codes)))
        places, ends = np.empty(len(codes), np.int64), np.zeros(len(self.n) + 2, np.int64)
        kernel.sort(codes, places, ends[1:])
        added = int(ends[-2])
        for k, (column, line) in enumerate(zip(columns, self.room, strict=False)):
            kernel.put(column, places, line)
            if k < len(self.facts):
                self.facts[k] = self.facts[k].after(line[:added])
        moments = self.n, self.mean, self.scatter, self.cubes, np.empty((2, width))
        if units is None:
            kernel.add(self.room, ends[1:-1], *moments)
        else:
            own = units(places, ends[1:-1])
            kernels("unit_sums").add(self.room, ends[1:-1], *own, *moments)
        return self.room[:width, added : len(codes)]

    def add(
        self, at: Positions, n: Integers, mean: Floats, scatter: Floats, cubes: Floats | None = None
    ) -> None:
        """The pairwise update of means and scatter (Chan, Golub and LeVeque 1983).

        And of cubes (Pebay 2008); without those of a part there are none of the whole.
        """
        old = self.n[at]
        known = (old > 0)[:, None]
        delta = np.where(known, mean - self.mean[at], 0.0)
        weight = n / (old + n)
        self.mean[at] = np.where(known, self.mean[at] + weight[:, None] * delta, mean)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is told of later
            squares = [np.einsum("jaa->ja", S) for S in (self.scatter[at], scatter)]
            third = delta**2 * (old * weight)[:, None] * (1 - 2 * weight)[:, None]
            third += 3 * ((1 - weight)[:, None] * squares[1] - weight[:, None] * squares[0])
            self.cubes[at] += (np.nan if cubes is None else cubes) + delta * third
            between = delta[:, :, None] * delta[:, None, :]
            self.scatter[at] += scatter + (old * weight)[:, None, None] * between
        self.n[at] = old + n

    def cut(self, size: int) -> Sums:
        """The first `size` data sets, without room for more."""
        part = slice(size)
        moments = self.mean[part].copy(), self.scatter[part].copy()
        return Sums(
            self.n[part].copy(), *moments, self.dropped[part].copy(), self.cubes[part].copy()
        )
