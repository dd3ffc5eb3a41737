"""Cells that are missing or infinite: counted, and told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from poolbn.errors import DROP, DataError, MessagePart
from poolbn.wording import shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray


# What is done with rows that have missing cells.
Missing = Literal["error", "drop", "em"]


@dataclass
class Tally:
    """What was missing so far."""

    cells: NDArray[np.int64]  # missing cells of each column, (N,)
    keys: int = 0  # rows that do not say their data set
    rows: int = 0  # rows with either
    first: str = ""  # the first of them, in words

    def add(
        self, nan: NDArray[np.bool_], codes: NDArray[np.int64], where: Callable[[int, int], str]
    ) -> NDArray[np.bool_]:
        """Count the missing cells of a batch; which of its rows have one."""
        unknown = codes < 0
        bad: NDArray[np.bool_] = nan.any(axis=1) | unknown
        if not self.first and bad.any():
            row = int(bad.argmax())
            self.first = where(row, -1 if unknown[row] else int(nan[row].argmax()))
        self.cells += nan.sum(axis=0)
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
    """Raise where cells are missing.

    Raises:
        DataError: there are some.
    """
    if tally.rows:
        raise DataError(
            f"{tally.rows} rows have a missing value, the first is {tally.first}; missing are "
            f"{tally.counts(names, group)}. Leave such rows out with ",
            DROP,
            ", or choose columns without missing values",
        )


def check_left(
    kept: NDArray[np.int64], levels: Sequence[Hashable], dropped: int, counts: str = ""
) -> None:
    """Raise unless each data set has rows.

    Args:
        kept: rows of each data set, (F,).
        levels: the data sets.
        dropped: rows that were left out.
        counts: what was missing, in brackets, where it is known.

    Raises:
        DataError: one has no rows.
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


def check_finite(
    values: NDArray[np.float64], where: Callable[[int, int], str], *remedy: MessagePart
) -> None:
    """Raise when a cell is infinite; `where` puts a row and a column in words."""
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.unravel_index(int(infinite.argmax()), infinite.shape)
        raise DataError(
            f"a cell is {'infinite' if values[row, column] > 0 else 'minus infinite'} "
            f"({values[row, column]}): {where(int(row), int(column))}; replace it by a number, or ",
            *remedy,
        )
