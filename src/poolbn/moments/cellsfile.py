"""The sections of a file of statistics that have discrete columns: their levels, and cells.

The section `levels` is JSON: all columns, the levels of each, and which have a last level, "other",
that stands for several. `cells` has a row of whole numbers for each configuration of all discrete
columns that occurs in a data set: the data set, the codes of its levels, its rows. They come in
order. `moments` has the indicators of levels as columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.discrete import Cells
from poolbn.moments.indicators import indicator_columns, labels_of, moments_of

OTHER = "other"  # a level that stands for several


class Discrete(NamedTuple):
    """What a file has of discrete columns.

    Attributes:
        names: all columns.
        categories: the levels of each discrete column; none for others.
        merged: columns whose last level stands for several.
        cells: of the discrete columns.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    merged: tuple[str, ...]
    cells: Cells

    @property
    def discrete(self) -> list[tuple[str, ...]]:
        """The levels of the discrete columns."""
        return [levels for levels in self.categories if levels]


def levels_to_bytes(made: Discrete) -> bytes:
    """The section `levels`."""
    columns = {"names": made.names, "levels": made.categories, "merged": made.merged}
    return json.dumps(columns).encode()


def cells_to_bytes(cells: Cells) -> bytes:
    """The section `cells`; these are in order."""
    return np.column_stack([cells.data_set, cells.codes, cells.n]).astype("<i8").tobytes()


def from_bytes(levels: bytes, cells: bytes, data_sets: int) -> Discrete:
    """What was written.

    Raises:
        ValueError: it was not, or no rows have such cells.
    """
    told = json.loads(levels)
    names, categories = tuple(told["names"]), tuple(map(tuple, told["levels"]))
    merged = tuple(told["merged"])
    if len(categories) != len(names) or len(set(names)) < len(names):
        raise ValueError("its columns have other levels, or occur twice")
    for name, own in zip(names, categories, strict=True):
        if not all(isinstance(text, str) for text in (name, *own)) or len(set(own)) < len(own):
            raise ValueError(f"the levels of column {name!r} are no texts, or occur twice")
    of = dict(zip(names, categories, strict=True))
    if [name for name in names if name in merged and of[name][-1:] == (OTHER,)] != list(merged):
        raise ValueError("its columns with levels put together are not some of its columns")
    sizes = [len(own) for own in categories if own]
    return Discrete(names, categories, merged, _cells(cells, sizes, data_sets))


def _cells(section: bytes, sizes: Sequence[int], data_sets: int) -> Cells:
    width = len(sizes) + 2
    if not section or len(section) % (8 * width):
        raise ValueError(f"its cells have {len(section)} bytes, not some times {8 * width}")
    table = np.frombuffer(section, dtype="<i8").reshape(-1, width).astype(np.int64)
    data_set, codes, n = table[:, 0].copy(), table[:, 1:-1].copy(), table[:, -1].copy()
    if (table[:, :-1] < 0).any() or (table[:, :-1] >= [data_sets, *sizes]).any():
        raise ValueError("its cells are of data sets or levels that it does not have")
    if (n < 1).any():
        raise ValueError("its cells have no rows")
    if not np.array_equal(np.unique(table[:, :-1], axis=0), table[:, :-1]):
        raise ValueError("its cells are not in order, or occur twice")
    for column, size in zip(codes.T, sizes, strict=True):
        if not np.bincount(column, minlength=size).all():
            raise ValueError("its cells lack a level")
    return Cells(data_set, codes, n)


def check_moments(
    made: Discrete,
    labels: tuple[str, ...],
    n: NDArray[np.int64],
    mean: NDArray[np.float64],
    scatter: NDArray[np.float64],
) -> None:
    """Raise unless the moments of indicators are those of the cells.

    Args:
        made: the cells.
        labels: the columns that moments are of.
        n: rows, (F,).
        mean: means, (F, W).
        scatter: centred sums of products, (F, W, W).

    Raises:
        ValueError: they are not.
    """
    if labels_of(made.names, made.categories) != labels:
        raise ValueError("its moments are of other columns than its levels")
    cells, F = made.cells, len(n)
    if (cells.n > n[cells.data_set]).any() or not np.array_equal(
        np.bincount(cells.data_set, cells.n, F), n
    ):
        raise ValueError("its cells have other rows than its data sets")
    at = indicator_columns(made.categories)
    own = moments_of(cells, made.discrete, F)
    if not (
        np.array_equal(mean[:, at], own.mean)
        and np.array_equal(scatter[:, at[:, None], at], own.scatter)
    ):
        raise ValueError("its moments of levels are not those of its cells")
