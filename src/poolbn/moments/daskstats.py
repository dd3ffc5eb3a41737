"""Statistics of a Dask frame, made where its partitions are and added up in a tree.

Neither are rows shuffled between workers, nor do they come to the client. The tree depends on the
number of partitions alone, so the result has the same bits whatever scheduler runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from poolbn.errors import DataError
from poolbn.tables.data import Reading, Rows, prepare
from poolbn.tables.missing import Missing, Tally, check_left, check_missing
from poolbn.tables.sources import Part, computed, pandas_part, partition_origin

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

_FAN_IN = 8  # statistics that are added up at once


class Statistics(Protocol):
    """What the tree needs to know of statistics."""

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The data sets, in order of first appearance."""

    @property
    def n(self) -> NDArray[np.int64]:
        """Rows of each data set, (F,)."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Statistics)


def of_partitions(
    frame: Any,
    accumulate: Callable[[Rows], S],
    *,
    group: str | None,
    columns: Iterable[str] | None,
    missing: Missing,
    discrete: frozenset[str] = frozenset(),
) -> S:
    """The statistics of all rows of a Dask frame.

    Args:
        frame: a `dask.dataframe.DataFrame`.
        accumulate: makes the statistics of rows; a worker must be able to import it.
        group: as for `pb.stats`.
        columns: as for `pb.stats`.
        missing: as for `pb.stats`.
        discrete: columns that hold levels.

    Raises:
        ClusterError: the cluster that had the work is gone.
        DataError: a column or a cell cannot be used; of several, the first.
    """
    from dask import delayed

    if columns is not None and not isinstance(columns, str):
        columns = tuple(columns)
    reading = prepare(frame, group=group, columns=columns, missing=missing, discrete=discrete)
    tables = frame[[reading.group, *reading.names]].to_delayed()
    make, add = delayed(_share, pure=False), delayed(_together, pure=False)
    kept: Missing = "em" if missing == "em" else "drop"  # errors are seen when all are together
    how = partial(prepare, group=group, columns=columns, missing=kept, discrete=discrete)
    tree = [make(table, k, accumulate, how) for k, table in enumerate(tables)]
    while len(tree) > 1:
        tree = [add(tree[i : i + _FAN_IN]) for i in range(0, len(tree), _FAN_IN)]
    share: _Share[S] = computed(tree[0])
    if isinstance(share, DataError):
        raise share
    statistics, tally = share
    if reading.missing == "error":
        check_missing(tally, reading.names, group)
    counts = tally.counts(reading.names, group)
    check_left(statistics.n, statistics.levels, tally.rows, f" ({counts})")
    return statistics


# Of neighbouring partitions: their statistics, and what is missing in them. An error goes up the
# tree as a value: of several the first is raised, whatever was done first.
_Share = tuple[S, Tally] | DataError


def _share(
    table: pd.DataFrame,
    k: int,
    accumulate: Callable[[Rows], S],
    how: Callable[[Part], Reading],
) -> _Share[S]:
    """One partition; whether too much is missing is seen when all are together."""
    try:
        part = pandas_part(table, None, partition_origin(k))
        rows = how(part).rows(lenient=True)
        return accumulate(rows), rows.tally
    except DataError as error:
        return error


def _together(shares: Sequence[_Share[S]]) -> _Share[S]:
    def add(left: _Share[S], right: _Share[S]) -> _Share[S]:
        if isinstance(left, DataError):
            return left
        if isinstance(right, DataError):
            return right
        try:
            return left[0] + right[0], left[1].joined(right[1])
        except DataError as error:
            return error

    return reduce(add, shares)
