"""Sums of rows with missing cells, for each data set and pattern of what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats, Integers, Positions
from poolbn.moments.facts import ColumnFacts
from poolbn.moments.sums import Sums
from poolbn.run.compiling import kernels
from poolbn.tables.missing import Scan, no_words, packed, unpacked

_FEW = 32  # cells to which rows of a batch go at once
_BLOCK, _EACH = 2**15, 100  # rows that go to more: so many, and so many for each cell at least
_HELD = 2**22  # cells of rows that wait to be sorted by their pattern
_PATTERNS = 2**12  # of the rows of a batch, at first


class Gaps(NamedTuple):
    """Rows with missing cells: C cells of many that lack the same columns, and R single ones.

    A pattern that fewer rows have than there are columns is kept as rows, which take less room.
    """

    data_set: Integers  # of each cell, (C,)
    missing: Flags  # which columns its rows lack, (C, N)
    n: Integers  # its rows, (C,)
    mean: Floats  # their means, 0 where missing, (C, N)
    scatter: Floats  # their centred sums of products, 0 where missing, (C, N, N)
    rows_of: Integers  # the data set of each row, (R,)
    rows: Floats  # NaN where missing, (R, N)

    def observed(self, data_sets: int) -> Integers:
        """Cells of each data set and column that are there, (F, N)."""
        counts = np.zeros((data_sets, self.rows.shape[1]), dtype=np.int64)
        np.add.at(counts, self.data_set, self.n[:, None] * ~self.missing)
        np.add.at(counts, self.rows_of, (~np.isnan(self.rows)).astype(np.int64))
        return counts

    def n_rows(self, data_sets: int) -> Integers:
        """Rows of each data set, (F,)."""
        counts = np.bincount(self.rows_of, minlength=data_sets)
        np.add.at(counts, self.data_set, self.n)
        return counts

    def at(self, chosen: Integers) -> Gaps:
        """Those of these data sets, which may repeat; each is the position of one."""
        cells = [np.flatnonzero(self.data_set == j) for j in chosen]
        rows = [np.flatnonzero(self.rows_of == j) for j in chosen]
        numbers = np.arange(len(chosen))
        return self.kept(np.concatenate(cells), np.concatenate(rows))._replace(
            data_set=np.repeat(numbers, list(map(len, cells))),
            rows_of=np.repeat(numbers, list(map(len, rows))),
        )

    def kept(self, cells: Flags | Positions, rows: Flags | Positions) -> Gaps:
        """Some of these cells, (C,), and rows, (R,)."""
        return Gaps._make([*(part[cells] for part in self[:5]), *(part[rows] for part in self[5:])])

    def select(self, at: Positions) -> Gaps:
        """The same rows with these columns alone, in this order; not all of them have gaps then."""
        return self._replace(
            missing=self.missing[:, at],
            mean=self.mean[:, at],
            scatter=self.scatter[:, at[:, None], at],
            rows=self.rows[:, at],
        )


class Held(NamedTuple):
    """Rows of rare patterns that wait: data sets (R,), words (W, R) of `Scan`, cells (N, R)."""

    codes: Integers
    missing: Integers
    columns: Floats


@dataclass
class GapsInTheMaking:
    """Rows with and without missing cells, as they come."""

    width: int  # N columns
    sums: Sums  # of cells, each of one data set and pattern; NaN where its rows lack a column
    # of each cell by its data set and pattern
    index: dict[bytes, int] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)  # rows of rare patterns that wait
    # cells that may wait before rows whose pattern many have by now are put into cells
    most: int = _HELD

    @staticmethod
    def empty(width: int) -> GapsInTheMaking:
        """Of so many columns."""
        return GapsInTheMaking(width, Sums.zeros(0, width))

    def add_rows(
        self, codes: Integers, columns: Sequence[Floats], missing: Integers | None = None
    ) -> None:
        """Add rows: data sets (B,), N columns of (B,), and what is missing, words (W, B)."""
        if not len(codes):
            return
        self._add(codes, columns, no_words(self.width, len(codes)) if missing is None else missing)
        if self._waiting() > self.most:
            self._settle()
            self.most = max(_HELD, 2 * self._waiting())  # so that the work is linear in rows

    def _waiting(self) -> int:
        return sum(part.columns.size for part in self.held)

    def _add(self, codes: Integers, columns: Sequence[Floats], missing: Integers) -> None:
        first, which, counts = distinct(missing, codes)
        cell = self._cells(codes[first], missing[:, first], counts)
        self.sums = self.sums.grown(len(self.index))
        rare = cell < 0
        cell[rare] = len(self.sums.n)
        # On their way to many cells fewer rows at a time stay in the processor's cache.
        step = max(_BLOCK, _EACH * len(first)) if len(first) > _FEW else len(codes)
        for start in range(0, len(codes), step):
            own = slice(start, start + step)
            rest = self.sums.add_rows(cell[which[own]], [column[own] for column in columns])
            if rest.size:
                held = np.flatnonzero(rare[which[own]]) + start
                self.held.append(Held(codes[held], missing[:, held], rest.copy()))

    def _cells(self, codes: Integers, words: Integers, counts: Integers) -> Integers:
        """The cell of each pattern of a data set; -1 where few of its rows came, and no others."""
        many = (counts >= self.width) | ~words.any(axis=0)
        cell = np.full(len(codes), -1, dtype=np.int64)
        for k, key in enumerate(_keys(codes, words)):
            if many[k] or key in self.index:
                cell[k] = self.index.setdefault(key, len(self.index))
        return cell

    def add(self, gaps: Gaps, codes: Integers) -> None:
        """Add those of others, whose data sets have these codes here."""
        rows = list(np.ascontiguousarray(gaps.rows.T))
        self.add_rows(codes[gaps.rows_of], rows, Scan.of(rows).words)
        keys = _keys(codes[gaps.data_set], packed(gaps.missing))
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
        codes, missing, columns = self._joined()
        self.held = []
        self._add(codes, list(columns), missing)

    def _joined(self) -> Held:
        codes, missing, columns = zip(*self.held, strict=True)
        both = np.concatenate(missing, axis=1), np.concatenate(columns, axis=1)
        return Held(np.concatenate(codes), *both)

    def _known(self) -> tuple[Integers, Flags]:
        """Of each cell the data set, (C,), and which columns are missing, (C, N)."""
        width = 1 + len(no_words(self.width, 0))
        table = np.frombuffer(b"".join(self.index), dtype=np.int64).reshape(-1, width)
        return table[:, 0].copy(), unpacked(table[:, 1:].T, self.width)

    def whole(self, data_sets: int) -> Sums:
        """Of the rows without gaps in each data set."""
        data_set, missing = self._known()
        at = np.flatnonzero(~missing.any(axis=1))
        made = Sums.zeros(data_sets, self.width)
        to, of = data_set[at], self.sums
        made.n[to], made.mean[to], made.scatter[to] = of.n[at], of.mean[at], of.scatter[at]
        made.cubes[to] = of.cubes[at]
        return made

    def facts(self) -> tuple[ColumnFacts, ...]:
        """Of the columns, if `sums` has them."""
        found = self.sums.facts
        for part in self.held:
            found = [f.after(column) for f, column in zip(found, part.columns, strict=True)]
        return tuple(found)

    def made(self) -> Gaps:
        """The rows with gaps."""
        if self.held:
            self._settle()
        data_set, missing = self._known()
        at = np.flatnonzero(missing.any(axis=1))
        lacks, sums = missing[at], self.sums
        mean = np.where(lacks, 0.0, sums.mean[at])
        scatter = np.where(lacks[:, :, None] | lacks[:, None, :], 0.0, sums.scatter[at])
        cells = (data_set[at], lacks, sums.n[at], mean, scatter)
        if not self.held:
            return Gaps(*cells, np.zeros(0, dtype=np.int64), np.zeros((0, self.width)))
        codes, _, columns = self._joined()
        order = _order(codes, columns)
        return Gaps(*cells, codes[order], columns.T[order])


def _order(codes: Integers, columns: Floats) -> Positions:
    """Of rows (N, R), whatever order they came in: by data set, sum, and all cells if need be."""
    sums = np.nansum(columns, axis=0)
    order = np.lexsort((sums, codes))
    tie = (np.diff(codes[order]) == 0) & (sums[order[1:]] == sums[order[:-1]])
    return np.lexsort((*columns, sums, codes)) if tie.any() else order


def _keys(codes: Integers, words: Integers) -> list[bytes]:
    """The data set and pattern of each row, as bytes."""
    table = np.column_stack([codes, *words])
    width, whole = 8 * table.shape[1], table.tobytes()
    return [whole[i : i + width] for i in range(0, len(whole), width)]


def distinct(words: Integers, codes: Integers | None = None) -> tuple[Integers, Integers, Integers]:
    """Where patterns first occur, which each row has, and how many rows have each.

    Patterns are words (W, B) of `Scan`. With codes of data sets, (B,), the same of two counts as
    two.
    """
    words, rows = np.ascontiguousarray(words), words.shape[1]
    if codes is None:
        codes = np.zeros(rows, dtype=np.int64)
    which, pairs = np.empty(rows, dtype=np.int64), np.full(1, -1)
    room = _PATTERNS
    while pairs[0] < 0:  # mostly there are few, and large tables take time
        slots, first, counts = (np.zeros(size, dtype=np.int64) for size in (2 * room, room, room))
        kernels("patterns").number(codes, words, slots, first, counts, which, pairs)
        room *= 8
    return first[: pairs[0]], which, counts[: pairs[0]]


class ByPattern(NamedTuple):
    """Single rows in order of what they lack; see `kernels.expect`."""

    order: Positions  # of the rows, (R,)
    at: Integers  # where the columns of each pattern begin, (P + 1,)
    columns: Integers  # all N of each, first those missing
    counts: Integers  # how many are missing, (P,)
    cells: Integers  # the cell with sums of rows that have the pattern, or -1, (P,)
    begin: Integers  # where the single rows that have it begin, (P + 1,)


def by_pattern(rows: Floats, cells: Flags) -> ByPattern:
    """Single rows (R, N), and sums of those that lack these columns, (C, N), each only once."""
    masks = np.concatenate([cells, np.isnan(rows)])
    first, which, _ = distinct(packed(masks))
    missing, (P, N) = masks[first], (len(first), masks.shape[1])
    cell = np.full(P, -1, dtype=np.int64)
    cell[which[: len(cells)]] = np.arange(len(cells))
    of_row = which[len(cells) :]
    return ByPattern(
        np.argsort(of_row, kind="stable"),
        np.arange(P + 1, dtype=np.int64) * N,
        np.argsort(~missing, axis=1, kind="stable").astype(np.int64).ravel(),
        missing.sum(axis=1).astype(np.int64),
        cell,
        np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=P))]).astype(np.int64),
    )


class PatternCell(NamedTuple):
    """Rows of one data set that lack the same columns."""

    missing: Flags
    n: int
    mean: Floats
    scatter: Floats


def cells_of(gaps: Gaps, j: int) -> list[PatternCell]:
    """Those of a data set; single rows are put together by what they lack."""
    at = np.flatnonzero(gaps.data_set == j)
    found = [
        PatternCell(gaps.missing[k], int(gaps.n[k]), gaps.mean[k], gaps.scatter[k]) for k in at
    ]
    rows = gaps.rows[gaps.rows_of == j]
    lacks, which = np.unique(np.isnan(rows), axis=0, return_inverse=True)
    for k, missing in enumerate(lacks):
        own = np.where(missing, 0.0, rows[which.ravel() == k])
        mean = own.mean(axis=0)
        found.append(PatternCell(missing, len(own), mean, (own - mean).T @ (own - mean)))
    return alike_as_one(found)


def alike_as_one(cells: Sequence[PatternCell]) -> list[PatternCell]:
    """Cells that lack the same become one."""
    found: dict[bytes, PatternCell] = {}
    for cell in cells:
        key = cell.missing.tobytes()
        found[key] = merged(found[key], cell) if key in found else cell
    return [found[key] for key in sorted(found)]


def merged(a: PatternCell, b: PatternCell) -> PatternCell:
    """Both as one, without the columns that either lacks."""
    missing = a.missing | b.missing
    n = a.n + b.n
    away = a.mean - b.mean
    scatter = a.scatter + b.scatter + a.n * b.n / n * np.outer(away, away)
    keep = np.outer(~missing, ~missing)
    mean = np.where(missing, 0.0, (a.n * a.mean + b.n * b.mean) / n)
    return PatternCell(missing, n, mean, np.where(keep, scatter, 0.0))


def coarser(cells: Sequence[PatternCell], least: int) -> list[PatternCell]:
    """Cells of so many rows at least.

    The smallest is put together with the one that it loses the fewest observed cells with, again
    and again. What is left alone, or would lack all, is left out.
    """
    found = alike_as_one(cells)
    while found and (small := min(found, key=lambda cell: cell.n)).n < least:
        others = found = [cell for cell in found if cell is not small]
        if not others:
            break
        masks, n = np.array([cell.missing for cell in others]), np.array([c.n for c in others])
        union = masks | small.missing
        lost = small.n * (union & ~small.missing).sum(axis=1) + n * (union & ~masks).sum(axis=1)
        best = int(np.where(union.all(axis=1), np.iinfo(np.int64).max, lost).argmin())
        if lost[best] < small.n * (~small.missing).sum() and not union[best].all():
            found = alike_as_one([merged(others[best], small), *others[:best], *others[best + 1 :]])
    return found
