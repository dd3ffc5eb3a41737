"""Sums of rows with missing cells, for each data set and pattern of what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.moments.sums import Sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HELD = 2**22  # cells of rows that wait to be sorted by their pattern


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

    @staticmethod
    def none(width: int) -> Gaps:
        """No rows of so many columns."""
        sums, nobody = Sums.zeros(0, width), np.zeros(0, dtype=np.int64)
        nothing = np.zeros((0, width))
        return Gaps(nobody, nothing.astype(bool), sums.n, sums.mean, sums.scatter, nobody, nothing)

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
    """Rows with missing cells, as they come.

    Attributes:
        width: N columns.
        sums: of the cells.
        index: of each cell by its data set and pattern.
        held: rows that wait, each with their data sets.
    """

    width: int
    sums: Sums
    index: dict[bytes, int] = field(default_factory=dict)
    held: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = field(default_factory=list)

    @staticmethod
    def empty(width: int) -> GapsInTheMaking:
        """Of so many columns."""
        return GapsInTheMaking(width, Sums.zeros(0, width))

    def add_rows(self, codes: NDArray[np.int64], rows: NDArray[np.float64]) -> None:
        """Add rows (B, N), NaN where a cell is missing, of these data sets."""
        if len(codes):
            self.held.append((codes, rows))
        if sum(rows.size for _, rows in self.held) > _HELD:
            self._settle()

    def add(self, gaps: Gaps, codes: NDArray[np.int64]) -> None:
        """Add those of others, whose data sets have these codes here."""
        self.add_rows(codes[gaps.rows_of], gaps.rows)
        keys = _keys(codes[gaps.data_set], gaps.missing)
        at = np.array([self.index.setdefault(k, len(self.index)) for k in keys], dtype=np.intp)
        self.sums = self.sums.grown(len(self.index))
        if len(at):
            self.sums.add(at, gaps.n, gaps.mean, gaps.scatter)

    def _settle(self) -> None:
        """Put rows of patterns that many have into cells."""
        codes = np.concatenate([codes for codes, _ in self.held])
        rows = np.concatenate([rows for _, rows in self.held])
        missing = np.isnan(rows)
        found, which, counts = distinct(codes, missing)
        keys = _keys(codes[found], missing[found])
        cell = np.full(len(found), -1, dtype=np.int64)
        for k, (key, count) in enumerate(zip(keys, counts.tolist(), strict=True)):
            if count >= self.width or key in self.index:
                cell[k] = self.index.setdefault(key, len(self.index))
        into = cell[which]
        many = into >= 0
        self.held = [(codes[~many], rows[~many])] if not many.all() else []
        if many.any():
            self.sums = self.sums.grown(len(self.index))
            filled = np.where(missing[many], 0.0, rows[many])
            self.sums.add_rows(into[many], list(np.ascontiguousarray(filled.T)))

    def made(self) -> Gaps:
        """All that came."""
        if self.held:
            self._settle()
        none = Gaps.none(self.width)
        sums = self.sums.cut(len(self.index))
        if self.index:
            known = np.frombuffer(b"".join(self.index), dtype=np.uint8)
            table = known.reshape(len(self.index), -1)
            data_set = np.ascontiguousarray(table[:, :8]).view(np.int64)[:, 0]
            missing = np.unpackbits(table[:, 8:], axis=1, count=self.width).astype(bool)
            none = none._replace(
                data_set=data_set, missing=missing, n=sums.n, mean=sums.mean, scatter=sums.scatter
            )
        if self.held:
            ((codes, rows),) = self.held
            order = np.lexsort((*rows.T, codes))  # whatever order they came in
            none = none._replace(rows_of=codes[order], rows=rows[order])
        return none


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
    """Where pairs of data set and pattern first occur, which each row has, and how many have it."""
    bits = np.packbits(missing, axis=1)
    words = -(-bits.shape[1] // 8)
    padded = np.zeros((len(bits), 8 * words), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    key = np.zeros(len(codes), dtype=np.int64)
    for part in (*np.ascontiguousarray(padded).view(np.uint64).T, codes):
        values, number = np.unique(part, return_inverse=True)
        key = key * len(values) + number
        _, key = np.unique(key, return_inverse=True)
    _, first, which, counts = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    return first, which, counts


def together(parts: Iterable[tuple[Gaps, NDArray[np.int64]]], width: int) -> Gaps:
    """Those of all parts, each with the codes of its data sets."""
    making = GapsInTheMaking.empty(width)
    for gaps, codes in parts:
        making.add(gaps, codes)
    return making.made()
