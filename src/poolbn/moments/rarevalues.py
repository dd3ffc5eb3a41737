"""Values that few rows of a data set have, in columns of numbers with two values.

A sum of products with such a column is a sum over the rows that have a value: of one row, the row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from poolbn.errors import DataError, Option, left_out
from poolbn.moments.facts import ColumnFacts, Distinct
from poolbn.wording import counted, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NAMED = 8  # columns in a message


# ruff: noqa: D102  (the names below are explained there)
class Moments(Protocol):
    """What is needed of a `GroupStats`, under the same names."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def levels(self) -> tuple[Hashable, ...]: ...
    @property
    def n(self) -> NDArray[np.int64]: ...
    @property
    def mean(self) -> NDArray[np.float64]: ...
    @property
    def scatter(self) -> NDArray[np.float64]: ...
    @property
    def facts(self) -> tuple[ColumnFacts, ...]: ...


class Rare(NamedTuple):
    """Columns, a value of each, and how many rows of which data set have these together."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    data_set: Hashable
    rows: int


def rare_values(stats: Moments, least: int, *, pairs: bool = True) -> Iterator[Rare]:
    """Values, and pairs of values of two columns, that fewer rows of a data set have than `least`.

    Args:
        stats: the statistics; columns whose values are not known, as in a file, are skipped.
        least: the fewest that may have a value.
        pairs: whether to look at pairs of columns too.
    """
    known = [
        (k, sorted(facts.values))
        for k, facts in enumerate(stats.facts)
        if facts.told is Distinct.NONE and facts.values is not None and len(facts.values) == 2
    ]
    n = stats.n.astype(np.float64)
    high = {k: n * (stats.mean[:, k] - values[0]) / (values[1] - values[0]) for k, values in known}
    for k, values in known:
        yield from _few(stats, [k], [values], np.array([n - high[k], high[k]]), least)
    for i, (a, first) in enumerate(known if pairs else []):
        for b, second in known[:i]:
            p, q = high[a], high[b]
            unit = (first[1] - first[0]) * (second[1] - second[0])
            both = stats.scatter[:, a, b] / unit + p * q / np.maximum(n, 1)
            cells = np.array([n - p - q + both, q - both, p - both, both])
            yield from _few(stats, [a, b], [first, second], cells, least)


def _few(
    stats: Moments,
    at: Sequence[int],
    values: Sequence[Sequence[float]],
    cells: NDArray[np.float64],
    least: int,
) -> Iterator[Rare]:
    """Of the cells of some columns, (cells, F), those that fewer rows have, but none."""
    rows = np.rint(np.nan_to_num(cells)).astype(np.int64)
    for cell, j in np.argwhere((rows > 0) & (rows < least)).tolist():
        codes = np.unravel_index(cell, [2] * len(at))
        yield Rare(
            tuple(stats.names[k] for k in at),
            tuple(own[int(code)] for own, code in zip(values, codes, strict=True)),
            stats.levels[j],
            int(rows[cell, j]),
        )


def check_values(stats: Moments, least: int) -> None:
    """Raise for values that few rows have."""
    found = list(rare_values(stats, least))
    if not found:
        return
    first, columns = found[0], list[str]()
    for rare in found:  # those of one column first
        if not set(rare.names) & set(columns):
            columns.append(rare.names[0])
    pairs = zip(first.names, first.values, strict=True)
    what = " and ".join(f"{name!r} = {value:g}" for name, value in pairs)
    rows = f"{counted(first.rows, 'row')} of data set {first.data_set!r}"
    also = f", and so other columns: {listed([repr(name) for name in columns[1:]], _NAMED)}"
    raise DataError(
        f"{rows} {'has' if first.rows == 1 else 'have'} {what}{also * (len(columns) > 1)}; sums of "
        f"products with a column of two values reveal what fewer than {least} rows have: of one "
        "row, the row; ",
        left_out(*columns),
        ", or write them all the same with ",
        Option("allow_small", True),
    )
