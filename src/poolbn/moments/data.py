"""`Data`: columns of all kinds, whoever holds them: sums, counts or rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeGuard

import numpy as np

from poolbn.arrays import Floats
from poolbn.errors import DataError, Option, check_kind
from poolbn.moments.cases import AnyData, counts_in_words, positions
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import indicators, labels_of
from poolbn.moments.patternstats import PatternStats
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import has_levels, is_normal, known_kinds
from poolbn.wording import shortened


class Data(AnyData, Protocol):
    """What everything else asks of data; nothing outside this package asks for their class."""

    @property
    def patterns(self) -> PatternStats | None:
        """Where cells are missing, sums by what is; else None."""

    def stats(self, columns: Iterable[str] | None = None) -> GroupStats:
        """Sufficient statistics, with indicators for discrete columns."""

    def by_configuration(
        self, discrete: Sequence[str], columns: Sequence[str]
    ) -> list[GroupStats | None]:
        """Those of columns of numbers in each configuration of discrete ones, see `Table`."""

    def drawn(self, k: int) -> Data:
        """The k-th data that there may be without missing cells, all that is uncertain drawn."""


def is_data(source: object) -> TypeGuard[Data]:
    """Whether data are read already: statistics, counts, a table; else there are rows to read."""
    return AnyData in type(source).__mro__


def check_no_group(group: Group) -> None:
    """Raise for a group column where data sets are known: sufficient statistics, a table."""
    if group is not None:
        raise DataError(
            "tables and sufficient statistics know their data sets; leave ",
            Option("group", group if isinstance(group, str) else ...),
            " out",
        )


def check_data(data: object) -> None:
    """Raise for anything that is not data."""
    if not is_data(data):
        check_kind(data, GroupStats, "sufficient statistics", "pb.stats(data, group=...)")


def only_sums(data: Data) -> GroupStats | None:
    """The statistics, where they are all that there is; None for rows and discrete columns."""
    return None if data.has_rows or not is_continuous(data) else data.stats()


def is_continuous(data: Data) -> bool:
    """Whether all columns are."""
    return all(is_normal(kind) for kind in data.kinds)


def sums_with(data: Data, columns: Iterable[str]) -> GroupStats:
    """Sufficient statistics with these columns, and with others where they are there already."""
    return data.stats(columns) if data.has_rows else data.stats()


def numbers(
    data: Data, names: Iterable[str], *, incomplete: bool = False
) -> tuple[tuple[str, ...], Floats]:
    """Columns of numbers, (M, R), and what they are called; NaN in `incomplete` rows.

    A discrete column has an indicator for each level but the first, such as "sex=male".
    """
    chosen = tuple(names)
    at = positions(data.names, chosen).tolist()
    rows = data.cases(chosen, incomplete=incomplete)
    found: list[Floats] = []
    for k, column in zip(at, rows.columns, strict=True):
        lacks = np.isnan(column)
        own = [np.where(lacks, np.nan, column == code) for code in indicators(data.categories[k])]
        found += own if has_levels(data.kinds[k]) else [column]
    labels = labels_of(chosen, [data.categories[k] for k in at])
    return labels, np.array(found).reshape(len(found), int(rows.offsets[-1]))


def in_words(what: str, data: Data) -> list[str]:
    """Rows, data sets and columns, and the columns of each kind, on lines."""
    lines = [f"{what}: {counts_in_words(data)}"]
    columns = [
        f"{name} ({shortened(levels, 4)})" if levels else name
        for name, levels in zip(data.names, data.categories, strict=True)
    ]
    for kind in known_kinds():
        told = [column for column, own in zip(columns, data.kinds, strict=True) if own == kind]
        lines += [f"{kind}: {shortened(told)}"] * bool(told)
    return lines
