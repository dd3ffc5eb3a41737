"""Rows of some columns, whoever holds them; and which columns are chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.arguments import TEXT, among, check_arguments, names_of
from poolbn.errors import DataError, InPython, Option, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Cases(NamedTuple):
    """Rows of some columns, sorted by data set.

    Attributes:
        columns: M columns of R values each, codes of levels for discrete ones.
        offsets: rows of data set j are offsets[j] to offsets[j + 1], (F + 1,).
        n: how often each row occurs, (R,); None for once. A fraction where its missing cells are
            drawn several times.
        draw: where cells are drawn, which draw a row is of, -1 for all, (R,).
    """

    columns: Sequence[NDArray[np.float64]]
    offsets: NDArray[np.int64]
    n: NDArray[np.int64] | NDArray[np.float64] | None
    draw: NDArray[np.int64] | None = None

    @property
    def data_set(self) -> NDArray[np.int64]:
        """Of each row, (R,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def needs_rows(what: str, need: str = "needs") -> DataError:
    """The error for what sufficient statistics cannot answer."""
    return DataError(
        f"{what} {need} rows, which sufficient statistics do not hold; use ",
        InPython("pb.table(data, ...) in place of pb.stats", "the files of rows"),
    )


def list_of_names(option: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names in a list; one name alone is none."""
    if isinstance(names, str):
        raise DataError(Option(option, names), f" is one name; give a list, [{names!r}]")
    return tuple(names_of(option, names))


def check_family(names: tuple[str, ...], child: str, parents: Sequence[str]) -> None:
    """Raise for a child and parents of which one is not a column, or that occur twice."""
    check_arguments(child=(child, TEXT))
    if child in parents:
        raise DataError(f"{child!r} is its own parent; take it out of the parents")
    _check_columns(names, (*parents, child))


def checked_inputs(names: tuple[str, ...], inputs: Iterable[str]) -> tuple[str, ...]:
    """Columns that are inputs, in the order of all columns.

    Raises:
        DataError: a column is unknown or named twice, or there is no other.
    """
    chosen = list_of_names("inputs", inputs)
    positions(names, chosen)
    if len(chosen) == len(names):
        raise DataError(
            "all columns are inputs, which leaves none to learn about; leave one out of ",
            Option("inputs", list(chosen)),
        )
    return tuple(name for name in names if name in chosen)


def positions(names: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.intp]:
    """Where columns are among the names, or an error."""
    _check_columns(names, columns)
    position = {name: i for i, name in enumerate(names)}
    return np.array([position[c] for c in columns], dtype=np.intp)


def _check_columns(names: tuple[str, ...], columns: tuple[str, ...]) -> None:
    for column in columns:
        if not among(column, names):
            raise DataError(f"no column {column!r}{nearest(column, names)}")
        if columns.count(column) > 1:
            raise DataError(f"column {column!r} is named {columns.count(column)} times")
