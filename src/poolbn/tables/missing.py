"""Cells that are missing or infinite: counted, and told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import DROP, EM, DataError, MessagePart
from poolbn.run.compiling import kernels
from poolbn.wording import counted, shortened

# What is done with rows that have missing cells.
Missing = Literal["error", "drop", "em"]


_WORD = 64  # columns whose missing cells are bits of one number


class Scan(NamedTuple):
    """What a look at each cell of N columns of B rows finds."""

    words: Integers  # bit k % 64 of word k // 64 is set where column k is missing, (W, B)
    missing: Integers  # missing cells of each column, (N,)
    infinite: bool  # whether a cell is infinite

    @staticmethod
    def of(columns: Sequence[Floats]) -> Scan:
        """Of columns, (B,) each."""
        kernel = kernels("patterns")
        words = no_words(len(columns), len(columns[0]))
        found = np.zeros((len(columns), 2), dtype=np.int64)
        for k, column in enumerate(columns):
            cells = np.ascontiguousarray(column)
            kernel.mark(cells, k % _WORD, words[k // _WORD], found[k])
        return Scan(words, found[:, 0], bool(found[:, 1].any()))


def no_words(width: int, rows: int) -> Integers:
    """Words (W, B) of so many columns and rows that lack nothing."""
    return np.zeros((-(-width // _WORD), rows), dtype=np.int64)


def packed(missing: Flags) -> Integers:
    """Words (W, B), see `Scan`, of rows that lack these cells, (B, N)."""
    rows, width = missing.shape
    octets = np.zeros((rows, -(-width // _WORD) * 8), dtype=np.uint8)
    octets[:, : -(-width // 8)] = np.packbits(missing, axis=1, bitorder="little")
    return np.ascontiguousarray(octets.view("<i8").T, dtype=np.int64)


def unpacked(words: Integers, width: int) -> Flags:
    """Which of so many cells rows lack, (B, N); the inverse of `packed`."""
    octets = np.ascontiguousarray(words.T, dtype="<i8").view(np.uint8)
    return np.unpackbits(octets, axis=1, count=width, bitorder="little").astype(bool)


@dataclass
class Tally:
    """What was missing so far."""

    cells: Integers  # missing cells of each column, (N,)
    keys: int = 0  # rows that do not say their data set
    rows: int = 0  # rows with either
    first: str = ""  # the first of them, in words

    def add(self, found: Scan, codes: Integers, where: Callable[[int, int], str]) -> Flags:
        """Count the missing cells of a batch; which of its rows have one."""
        unknown = codes < 0
        bad: Flags = found.words.any(axis=0) | unknown
        if not self.first and bad.any():
            row = int(bad.argmax())
            lacks = unpacked(found.words[:, row : row + 1], len(self.cells))
            self.first = where(row, -1 if unknown[row] else int(lacks.argmax()))
        self.cells += found.missing
        self.keys += int(unknown.sum())
        self.rows += int(bad.sum())
        return bad

    def counts(self, names: Sequence[str], group: str | None) -> str:
        """Missing cells per column, most first."""
        found = [(k, c) for k, c in zip(self.cells.tolist(), names, strict=True) if k]
        if self.keys:
            found.append((self.keys, str(group)))
        found.sort(key=lambda pair: -pair[0])
        return shortened([f"{name} {count}" for count, name in found], 8, "columns ")

    def joined(self, other: Tally) -> Tally:
        """What was missing in these rows, and in others that follow them."""
        return Tally(
            self.cells + other.cells,
            self.keys + other.keys,
            self.rows + other.rows,
            self.first or other.first,
        )


def check_missing(tally: Tally, names: Sequence[str], group: str | None) -> None:
    """Raise where cells are missing."""
    if tally.rows:
        have = f"{counted(tally.rows, 'row')} {'has' if tally.rows == 1 else 'have'}"
        raise DataError(
            f"{have} a missing value, the first is {tally.first}; missing are "
            f"{tally.counts(names, group)}. Keep what such rows have with ",
            EM,
            ", leave them out with ",
            DROP,
            ", or choose columns without missing values",
        )


def check_left(kept: Integers, levels: Sequence[Hashable], dropped: int, counts: str = "") -> None:
    """Raise unless each data set has rows.

    So many were left out; `counts` says in brackets what was missing, where that is known.
    """
    if kept.sum() == 0 and not dropped:
        raise DataError("there are no rows")
    if kept.sum() == 0:
        raise DataError(
            f"no rows are left: all {dropped} have a missing value{counts}; choose columns that "
            "are less often missing"
        )
    gone = [level for level, count in zip(levels, kept, strict=True) if count == 0]
    if gone:
        others = f" (so it is with {len(gone)} data sets in all)" if len(gone) > 1 else ""
        raise DataError(
            f"data set {gone[0]!r} has no rows left, each has a missing value{others}{counts}; "
            "choose columns that are less often missing, or leave that data set out"
        )


def check_finite(values: Floats, where: Callable[[int, int], str], *remedy: MessagePart) -> None:
    """Raise when a cell is infinite; `where` puts a row and a column in words."""
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.unravel_index(int(infinite.argmax()), infinite.shape)
        raise DataError(
            f"a cell is {'infinite' if values[row, column] > 0 else 'minus infinite'} "
            f"({values[row, column]}): {where(int(row), int(column))}; replace it by a number, or ",
            *remedy,
        )
