"""A data set that was not learned from: its coefficients, from its own rows or from none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import LABEL
from poolbn.errors import DataError, Option
from poolbn.moments.data import is_data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import stats_of_numbers
from poolbn.moments.table import Table, table_like
from poolbn.nodes.localfit import LocalFit
from poolbn.tables.labels import Spellings


def check_name(name: Hashable, levels: Sequence[Hashable]) -> None:
    """Raise for what cannot name a data set beside these."""
    if name is None or not LABEL.holds(name):
        raise DataError(
            Option("name", name),
            " does not name a data set; use a text or a number, ",
            Option("name", "new clinic"),
        )
    if name in levels:
        raise DataError(
            f"data set {name!r} is already in the network; give the new rows another name, or "
            "learn anew from all rows"
        )
    known = Spellings()
    known.add(levels, " of the network")
    known.add([name])


def new_data_set(
    source: object,
    name: Hashable,
    *,
    levels: Sequence[Hashable],
    nodes: Sequence[str],
    missing: Literal["error", "drop"],
) -> GroupStats:
    """The statistics of the nodes in one data set called `name`; of no rows if `source` is None.

    Raises:
        DataError: the name is no name or one of `levels`, there is more than one data set, or the
            rows cannot be used.
    """
    check_name(name, levels)
    if source is None:
        return _no_rows(name, nodes)
    if not (is_data(source) or isinstance(source, Mapping | str | PathLike | list | tuple)):
        source = {name: source}
    found = stats_of_numbers(source, columns=nodes, missing=missing)
    _check_one(found.levels)
    return replace(found, levels=(name,))


def _no_rows(name: Hashable, names: Sequence[str]) -> GroupStats:
    N, none = len(names), np.zeros(1, dtype=np.int64)
    return GroupStats(tuple(names), (name,), none, np.zeros((1, N)), np.zeros((1, N, N)), none)


def _check_one(levels: Sequence[Hashable]) -> None:
    if len(levels) > 1:
        more = ", ..." if len(levels) > 3 else ""
        raise DataError(
            f"there are {len(levels)} data sets, {', '.join(map(repr, levels[:3]))}"
            f"{more}; adapt to one at a time, or learn anew from all"
        )


def adapted_fits(
    fits: Mapping[str, LocalFit],
    n: NDArray[np.int64],
    source: object,
    name: Hashable,
    missing: Literal["error", "drop"],
) -> tuple[dict[str, LocalFit], int]:
    """The nodes of all kinds with one more data set, and how many rows it has.

    Args:
        fits: the nodes.
        n: rows of each data set that they have, (F,).
        source: the rows, or None.
        name: what to call the new data set.
        missing: what to do with missing cells.

    Raises:
        DataError: as for `new_data_set`; or a row has a level that the network does not know.
    """
    check_name(name, next(iter(fits.values())).levels)
    new = None if source is None else _new_rows(fits, source, name, missing)
    rows = 0 if new is None else new.n_rows
    return {node: fit.adapted(name, new, n) for node, fit in fits.items()}, rows


def _new_rows(
    fits: Mapping[str, LocalFit], source: object, name: Hashable, missing: Literal["error", "drop"]
) -> Table:
    if is_data(source):
        raise DataError(
            "a network with columns that are not continuous adapts to rows; give the table or file "
            "itself, net.adapt(rows, name)"
        )
    if not isinstance(source, Mapping | str | PathLike | list | tuple):
        source = {name: source}
    kinds = {node: fit.kind for node, fit in fits.items()}
    levels = {node: fit.categories for node, fit in fits.items()}
    found = table_like(source, columns=kinds, categories=levels, missing=missing)
    _check_one(found.levels)
    return replace(found, levels=(name,))
