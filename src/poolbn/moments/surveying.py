"""What each column of a table holds, and what is missing where, in one pass and without judgement.

Columns that could not be learned from are told of, too: texts without end, dates, nothing at all.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from poolbn.errors import DataError, left_out
from poolbn.tables import data
from poolbn.tables.kinds import (
    ColumnKind,
    check_levels,
    check_varied,
    checked_kinds,
    column_kinds,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NESTED = ("list", "struct", "map", "large_list", "array", "object")


@dataclass(frozen=True)
class Survey:
    """What is in a table.

    Attributes:
        group: the column that says which data set a row came from, or what to call it.
        levels: the F data sets.
        n: rows of each, (F,).
        unknown: rows that do not say their data set.
        columns: all that there are but the group.
    """

    group: str
    levels: tuple[Hashable, ...]
    n: tuple[int, ...]
    unknown: int
    columns: tuple[ColumnFacts, ...]


@dataclass(frozen=True)
class ColumnFacts:
    """What one column holds.

    Attributes:
        name: of the column.
        kind: "continuous", "discrete" or "count"; else what it holds, such as "date".
        levels: of a column that is not one of numbers, and in how many rows each is.
        low: the lowest of numbers, NaN where there are none.
        high: the highest.
        missing: in how many rows of each data set there is no value, (F,).
        error: why it cannot be learned from; None where it can.
    """

    name: str
    kind: str
    levels: tuple[tuple[str, int], ...]
    low: float
    high: float
    missing: tuple[int, ...]
    error: DataError | None = None

    @property
    def gaps(self) -> int:
        """Rows without a value."""
        return sum(self.missing)


def survey(reading: data.Reading, given: Mapping[str, ColumnKind] | None) -> Survey:
    """Look at all rows.

    Args:
        reading: of all columns, with missing="em".
        given: kinds of some columns.

    Raises:
        DataError: rows cannot be read.
        OptionError: a kind is not known.
    """
    kinds = checked_kinds(reading.names, given)
    found: dict[str, tuple[str, DataError | None]] = {}
    for name in reading.names:
        own = {name: kinds[name]} if name in kinds else None
        holds = next((h for part in reading.parts if (h := part.types[name])), "")
        try:
            (kind,) = column_kinds(reading.parts, (name,), own)
        except DataError as error:
            found[name] = holds or "continuous", error
        else:
            found[name] = kind, None
    nested = [n for n, (kind, error) in found.items() if error and kind.startswith(_NESTED)]
    coded = frozenset(n for n, (kind, _) in found.items() if kind not in ("continuous", "count"))
    names = tuple(name for name in reading.names if name not in nested)
    rows = replace(reading, names=names, discrete=coded.intersection(names)).rows()
    seen = {name: _Seen(name in coded) for name in names}
    n: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    with closing(rows.batches) as batches:
        for batch in batches:
            F = len(rows.levels)
            empty = np.bincount(batch.dropped, minlength=F)
            n = np.pad(n, (0, F - len(n))) + np.bincount(batch.codes, minlength=F) + empty
            for name, column in zip(names, batch.columns, strict=True):
                seen[name].add(batch.codes, column, empty)
    facts = []
    for name, (holds, reason) in found.items():
        if name in nested:
            facts.append(ColumnFacts(name, holds, (), nan, nan, (0,) * len(n), reason))
            continue
        order = rows.categories[name].names if name in coded else ()
        told = rows.categories[name].index if name in coded else {}
        counts = seen[name].counts
        # Rows that do not say their data set have no values here, but name levels.
        times = {level: int(counts[k]) for level in order if (k := told[level]) < len(counts)}
        levels = tuple((level, rows) for level, rows in times.items() if rows)
        made = ColumnFacts(name, holds, levels, seen[name].low, seen[name].high,
                          tuple(seen[name].missing.tolist()), reason)  # fmt: skip
        checked = made if reason else replace(made, error=_wrong(made, guessed=name not in kinds))
        facts.append(checked)
    return Survey(rows.group, tuple(rows.levels), tuple(n.tolist()), rows.tally.keys, tuple(facts))


def _wrong(column: ColumnFacts, *, guessed: bool) -> DataError | None:
    """Why a column cannot be learned from, by its values."""
    name = column.name
    if not column.levels and np.isnan(column.low):
        return DataError(f"column {name!r} has no value in any row; ", left_out(name))
    if not column.levels:
        return None
    levels = [level for level, _ in column.levels]
    try:
        check_varied(name, levels)
        check_levels(name, levels, np.array([c for _, c in column.levels]), guessed=guessed)
    except DataError as error:
        return error
    return None


class _Seen:
    """A column, as its rows come."""

    def __init__(self, coded: bool) -> None:
        self._coded = coded
        self._low, self._high = inf, -inf
        self.missing = np.zeros(0, dtype=np.int64)
        self.counts = np.zeros(0, dtype=np.int64)

    def add(
        self, codes: NDArray[np.int64], column: NDArray[np.float64], empty: NDArray[np.int64]
    ) -> None:
        """Some rows, and how many rows of each data set have nothing, (F,)."""
        gaps = np.isnan(column)
        F = len(empty)
        lacking = np.bincount(codes[gaps], minlength=F) + empty
        self.missing = np.pad(self.missing, (0, F - len(self.missing))) + lacking
        values = column[~gaps]
        if self._coded:
            counts = np.bincount(values.astype(np.intp), minlength=len(self.counts))
            self.counts = np.pad(self.counts, (0, len(counts) - len(self.counts))) + counts
        elif len(values):
            self._low = min(self._low, float(values.min()))
            self._high = max(self._high, float(values.max()))

    @property
    def low(self) -> float:
        """Of numbers."""
        return self._low if self._low < inf else nan

    @property
    def high(self) -> float:
        """Likewise."""
        return self._high if self._high > -inf else nan


def worst(columns: Sequence[ColumnFacts], n: Sequence[int]) -> ColumnFacts | None:
    """The column that lacks the largest share of rows of a data set; None where nothing lacks."""
    shares = {
        c.name: max(gaps / max(rows, 1) for gaps, rows in zip(c.missing, n, strict=True))
        for c in columns
    }
    found = max(columns, key=lambda c: shares[c.name], default=None)
    return found if found is not None and shares[found.name] > 0 else None
