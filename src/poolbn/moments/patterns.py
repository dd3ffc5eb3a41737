"""Sums of rows with missing cells, for each data set and pattern of what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.moments.sums import Sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HELD = 2**22  # cells of rows that wait to be sorted by their pattern
_BITS = 62  # columns whose pattern is one number


class Gaps(NamedTuple):
    """Rows with missing cells: C cells of many that lack the same columns, and R single ones.

    A pattern that fewer rows have than there are columns is kept as rows, which take less room.

    Attributes:
        data_set: of each cell, (C,).
        missing: which columns its rows lack, (C, N).
        n: its rows, (C,).
        mean: their means, 0 where missing, (C, N).
        scatter: their centred sums of products, 0 where missing, (C, N, N).
        rows_of: the data set of each row, (R,).
        rows: NaN where missing, (R, N).
    """

    data_set: NDArray[np.int64]
    missing: NDArray[np.bool_]
    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    rows_of: NDArray[np.int64]
    rows: NDArray[np.float64]

    def observed(self, data_sets: int) -> NDArray[np.int64]:
        """Cells of each data set and column that are there, (F, N)."""
        counts = np.zeros((data_sets, self.rows.shape[1]), dtype=np.int64)
        np.add.at(counts, self.data_set, self.n[:, None] * ~self.missing)
        np.add.at(counts, self.rows_of, (~np.isnan(self.rows)).astype(np.int64))
        return counts

    def n_rows(self, data_sets: int) -> NDArray[np.int64]:
        """Rows of each data set, (F,)."""
        counts = np.bincount(self.rows_of, minlength=data_sets)
        np.add.at(counts, self.data_set, self.n)
        return counts

    def at(self, chosen: NDArray[np.int64]) -> Gaps:
        """Those of these data sets, which may repeat; each is the position of one."""
        cells = [np.flatnonzero(self.data_set == j) for j in chosen]
        rows = [np.flatnonzero(self.rows_of == j) for j in chosen]
        cell, row = np.concatenate(cells), np.concatenate(rows)
        numbers = np.arange(len(chosen))
        return Gaps(
            np.repeat(numbers, [len(part) for part in cells]),
            self.missing[cell],
            self.n[cell],
            self.mean[cell],
            self.scatter[cell],
            np.repeat(numbers, [len(part) for part in rows]),
            self.rows[row],
        )

    def kept(self, cells: NDArray[np.bool_], rows: NDArray[np.bool_]) -> Gaps:
        """Some of these cells, (C,), and rows, (R,)."""
        data_set, missing, n = self.data_set[cells], self.missing[cells], self.n[cells]
        sums = self.mean[cells], self.scatter[cells]
        return Gaps(data_set, missing, n, *sums, self.rows_of[rows], self.rows[rows])

    def select(self, at: NDArray[np.intp]) -> Gaps:
        """The same rows with these columns alone, in this order; not all of them have gaps then."""
        return Gaps(
            self.data_set,
            self.missing[:, at],
            self.n,
            self.mean[:, at],
            self.scatter[:, at[:, None], at],
            self.rows_of,
            self.rows[:, at],
        )


@dataclass
class GapsInTheMaking:
    """Rows with and without missing cells, as they come.

    Attributes:
        width: N columns.
        sums: of cells, each of one data set and pattern.
        index: of each cell by its data set and pattern.
        held: rows of rare patterns that wait, with their data sets.
    """

    width: int
    sums: Sums
    index: dict[bytes, int] = field(default_factory=dict)
    held: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = field(default_factory=list)

    @staticmethod
    def empty(width: int) -> GapsInTheMaking:
        """Of so many columns."""
        return GapsInTheMaking(width, Sums.zeros(0, width))

    def add_rows(
        self,
        codes: NDArray[np.int64],
        columns: Sequence[NDArray[np.float64]],
        missing: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add rows: data sets (B,), N columns of (B,), and which cells are missing, (N, B)."""
        if not len(codes):
            return
        cell = self._cells(codes, missing)
        rare = cell < 0
        if rare.any():
            self.held.append((codes[rare], np.column_stack([column[rare] for column in columns])))
            cell, columns = cell[~rare], [column[~rare] for column in columns]
            if sum(rows.size for _, rows in self.held) > _HELD:
                self._settle()
        self.sums = self.sums.grown(len(self.index))
        if len(cell):
            self.sums.add_rows(cell, columns, gaps=missing is not None)

    def _cells(
        self, codes: NDArray[np.int64], missing: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        """The cell of each row, -1 where few rows of these are alike and there is none, (B,)."""
        if missing is None:
            found = np.flatnonzero(np.bincount(codes))
            which = np.zeros(int(found[-1]) + 1, dtype=np.intp)
            which[found] = np.arange(len(found))
            which, counts = which[codes], np.ones(len(found), dtype=np.intp)
            masks: NDArray[np.bool_] = np.zeros((len(found), self.width), dtype=bool)
        else:
            at, which, counts = distinct(codes, missing)
            found, masks = codes[at], missing[:, at].T
        whole = np.asarray(~masks.any(axis=1))
        cell = np.full(len(found), -1, dtype=np.int64)
        for k, key in enumerate(_keys(found, masks)):
            if whole[k] or counts[k] >= self.width or key in self.index:
                cell[k] = self.index.setdefault(key, len(self.index))
        return cell[which]

    def add(self, gaps: Gaps, codes: NDArray[np.int64]) -> None:
        """Add those of others, whose data sets have these codes here."""
        rows = list(np.ascontiguousarray(gaps.rows.T))
        self.add_rows(codes[gaps.rows_of], rows, np.isnan(gaps.rows).T)
        keys = _keys(codes[gaps.data_set], gaps.missing)
        at = np.array([self.index.setdefault(k, len(self.index)) for k in keys], dtype=np.intp)
        self.sums = self.sums.grown(len(self.index))
        left = np.arange(len(at))
        while len(left):  # cells of one data set may have become alike
            _, first = np.unique(at[left], return_index=True)
            now = left[first]
            self.sums.add(at[now], gaps.n[now], gaps.mean[now], gaps.scatter[now])
            left = np.delete(left, first)

    def _settle(self) -> None:
        """Put rows of patterns that many have by now into cells."""
        codes = np.concatenate([codes for codes, _ in self.held])
        rows = np.concatenate([rows for _, rows in self.held])
        missing = np.isnan(rows).T
        cell = self._cells(codes, missing)
        many = cell >= 0
        self.held = [] if many.all() else [(codes[~many], rows[~many])]
        self.sums = self.sums.grown(len(self.index))
        if many.any():
            columns = list(np.ascontiguousarray(rows[many].T))
            self.sums.add_rows(cell[many], columns, gaps=True)

    def _known(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Of each cell the data set, (C,), and which columns are missing, (C, N)."""
        if not self.index:
            return np.zeros(0, dtype=np.int64), np.zeros((0, self.width), dtype=bool)
        table = np.frombuffer(b"".join(self.index), dtype=np.uint8).reshape(len(self.index), -1)
        data_set = np.ascontiguousarray(table[:, :8]).view(np.int64)[:, 0]
        return data_set, np.unpackbits(table[:, 8:], axis=1, count=self.width).astype(bool)

    def whole(self, data_sets: int) -> Sums:
        """Of the rows without gaps in each data set."""
        data_set, missing = self._known()
        at = np.flatnonzero(~missing.any(axis=1))
        made = Sums.zeros(data_sets, self.width)
        to, of = data_set[at], self.sums
        made.n[to], made.mean[to], made.scatter[to] = of.n[at], of.mean[at], of.scatter[at]
        made.cubes[to] = of.cubes[at]
        return made

    def made(self) -> Gaps:
        """The rows with gaps."""
        if self.held:
            self._settle()
        data_set, missing = self._known()
        at = np.flatnonzero(missing.any(axis=1))
        sums = self.sums
        cells = (data_set[at], missing[at], sums.n[at], sums.mean[at], sums.scatter[at])
        if not self.held:
            return Gaps(*cells, np.zeros(0, dtype=np.int64), np.zeros((0, self.width)))
        ((codes, rows),) = self.held
        order = np.lexsort((*rows.T, codes))  # whatever order they came in
        return Gaps(*cells, codes[order], rows[order])


def _keys(codes: NDArray[np.int64], missing: NDArray[np.bool_]) -> list[bytes]:
    """The data set and pattern of each row, as bytes."""
    if not len(codes):
        return []
    bits = np.packbits(missing, axis=1)
    table = np.concatenate([codes.astype(np.int64)[:, None].view(np.uint8), bits], axis=1)
    width = table.shape[1]
    whole = np.ascontiguousarray(table).tobytes()
    return [whole[i : i + width] for i in range(0, len(whole), width)]


def distinct(
    codes: NDArray[np.int64], missing: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Where pairs of data set and pattern (N, B) first occur, which each row has, and how many."""
    import pandas as pd

    which = codes
    for first in range(0, len(missing), _BITS):
        bits = np.zeros(len(codes), dtype=np.int64)
        for k, lacks in enumerate(missing[first : first + _BITS]):
            if lacks.any():
                bits |= lacks.astype(np.int64) << k
        number, values = pd.factorize(bits)
        which, _ = pd.factorize(which * len(values) + number)
    count = int(which.max()) + 1 if len(which) else 0
    at = np.empty(count, dtype=np.intp)
    at[which[::-1]] = np.arange(len(which))[::-1]
    return at, np.asarray(which), np.bincount(which, minlength=count)


def together(parts: Iterable[tuple[Gaps, NDArray[np.int64]]], width: int) -> Gaps:
    """Those of all parts, each with the codes of its data sets."""
    making = GapsInTheMaking.empty(width)
    for gaps, codes in parts:
        making.add(gaps, codes)
    return making.made()
