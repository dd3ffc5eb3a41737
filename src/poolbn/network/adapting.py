"""A data set that was not learned from: its coefficients, from its own rows or from none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal

from poolbn.arguments import LABEL
from poolbn.errors import DataError, Option
from poolbn.moments.data import Data, is_data
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
    fits: Mapping[str, LocalFit], source: object, name: Hashable, missing: Literal["error", "drop"]
) -> Data:
    """The rows of one data set called `name`; their statistics where all columns are continuous."""
    sums = all(fit.gaussian is not None for fit in fits.values())
    if is_data(source) and not sums:
        raise DataError(
            "a network with columns that are not continuous adapts to rows; give the table or file "
            "itself, net.adapt(rows, name)"
        )
    if not (is_data(source) or isinstance(source, Mapping | str | PathLike | list | tuple)):
        source = {name: source}
    found: GroupStats | Table
    if sums:
        found = stats_of_numbers(source, columns=list(fits), missing=missing)
    else:
        kinds = {node: fit.kind for node, fit in fits.items()}
        levels = {node: fit.categories for node, fit in fits.items()}
        found = table_like(source, columns=kinds, categories=levels, missing=missing)
    if len(found.levels) > 1:
        more = ", ..." if len(found.levels) > 3 else ""
        raise DataError(
            f"there are {len(found.levels)} data sets, {', '.join(map(repr, found.levels[:3]))}"
            f"{more}; adapt to one at a time, or learn anew from all"
        )
    return replace(found, levels=(name,))
