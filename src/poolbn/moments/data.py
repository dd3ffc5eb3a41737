"""`Data`: columns of all kinds, whoever holds them: sums, counts or rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, Self, TypeGuard, cast, get_args

import numpy as np

from poolbn.errors import DataError, Option, check_kind
from poolbn.moments.cases import AnyData, Cases, positions
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import indicators, labels_of
from poolbn.moments.patternstats import PatternStats
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import ColumnKind
from poolbn.wording import counted, noun_of, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Data(Protocol):
    """What everything else asks of data; nothing outside this package asks for their class."""

    @property
    def names(self) -> tuple[str, ...]:
        """The N columns."""

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What each holds."""

    @property
    def categories(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each discrete column; none for others."""

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The F data sets."""

    @property
    def group(self) -> str:
        """The column that says which data set a row came from."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns that may be parents but never children."""

    @property
    def n(self) -> NDArray[np.int64]:
        """Rows of each data set, (F,)."""

    @property
    def n_rows(self) -> int:
        """Rows in all data sets together."""

    @property
    def dropped(self) -> NDArray[np.int64]:
        """Rows of each data set left out because a cell is missing, (F,)."""

    @property
    def missing(self) -> NDArray[np.int64]:
        """Missing cells of each data set and column, (F, N)."""

    @property
    def imputed(self) -> bool:
        """Whether missing cells are filled in, so that estimates have an error of it."""

    @property
    def provisional(self) -> bool:
        """Whether they are filled in for a round of EM that another one follows."""

    @property
    def patterns(self) -> PatternStats | None:
        """Where cells are missing, sums by what is; else None."""

    def drawn(self, k: int) -> Data:
        """The k-th data that there may be without missing cells, all that is uncertain drawn."""

    def share(self, child: int, parents: Sequence[int]) -> float:
        """Of the rows that a family counts for, where missing cells are drawn."""

    @property
    def has_rows(self) -> bool:
        """Whether a discrete node or a count may have a continuous parent."""

    @property
    def scattered(self) -> frozenset[str]:
        """Columns in which more than half of the rows have a value of their own."""

    def kind(self, name: str) -> ColumnKind:
        """What a column holds."""

    def stats(self, columns: Iterable[str] | None = None) -> GroupStats:
        """Sufficient statistics, with indicators for discrete columns."""

    def cases(self, columns: Iterable[str], *, incomplete: bool = False) -> Cases:
        """The rows of some columns; raises where there are none, or cells are missing.

        `incomplete` rows have NaN where a cell is missing.
        """

    def select(self, columns: Iterable[str]) -> Self:
        """The same of some columns."""

    def with_inputs(self, inputs: Iterable[str]) -> Self:
        """The same with other inputs."""

    def data_sets(self, at: Sequence[int] | NDArray[np.int64], levels: Iterable[Hashable]) -> Self:
        """The data sets at these positions, which may repeat, under other names."""

    def joined(self, alone: Sequence[int], name: Hashable) -> Self:
        """These data sets apart, and all others as one, the last."""


def is_data(source: object) -> TypeGuard[Data]:
    """Whether data are read already: statistics, counts, a table; else there are rows to read."""
    return isinstance(source, AnyData)


def check_no_group(group: Group) -> None:
    """Raise for a group column where data sets are known: sufficient statistics, a table."""
    if group is not None:
        raise DataError(
            "tables and sufficient statistics know their data sets; leave ",
            Option("group", group if isinstance(group, str) else ...),
            " out",
        )


def checked_sums(data: object) -> GroupStats:
    """Sufficient statistics of continuous columns, or an error."""
    check_kind(data, GroupStats, "sufficient statistics", "pb.stats(data, group=...)")
    return cast("GroupStats", data)


def check_data(data: object) -> None:
    """Raise for anything that is not data."""
    if not is_data(data):
        checked_sums(data)


def only_sums(data: Data) -> GroupStats | None:
    """The statistics, where they are all that there is; None for rows and discrete columns."""
    return None if data.has_rows or not is_continuous(data) else data.stats()


def is_continuous(data: Data) -> bool:
    """Whether all columns are."""
    return all(kind == "continuous" for kind in data.kinds)


def sums_with(data: Data, columns: Iterable[str]) -> GroupStats:
    """Sufficient statistics with these columns, and with others where they are there already."""
    return data.stats(columns) if data.has_rows else data.stats()


def numbers(data: Data, names: Iterable[str]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Columns of numbers, (M, R), and what they are called.

    A discrete column has an indicator for each level but the first, such as "sex=male".

    Raises:
        DataError: there is no such column, or no rows of it.
    """
    chosen = tuple(names)
    at = positions(data.names, chosen).tolist()
    rows = data.cases(chosen)
    found: list[NDArray[np.float64]] = []
    for k, column in zip(at, rows.columns, strict=True):
        if data.kinds[k] == "discrete":
            found += [
                (column == code).astype(np.float64) for code in indicators(data.categories[k])
            ]
        else:
            found.append(column)
    labels = labels_of(chosen, [data.categories[k] for k in at])
    return labels, np.array(found).reshape(len(found), int(rows.offsets[-1]))


def in_words(what: str, data: Data) -> list[str]:
    """Rows, data sets and columns, and the columns of each kind, on lines."""
    sets, columns = (
        counted(len(data.levels), noun_of(data.group)),
        counted(len(data.names), "column"),
    )
    lines = [f"{what}: {counted(data.n_rows, 'row')}, {sets}, {columns}"]
    for kind in get_args(ColumnKind):
        some = [k for k, own in enumerate(data.kinds) if own == kind]
        told = [data.names[k] + _listed(data.categories[k]) for k in some]
        lines += [f"{kind}: {shortened(told)}"] * bool(told)
    return lines


def _listed(categories: Sequence[str]) -> str:
    return f" ({shortened(categories, 4)})" if categories else ""
