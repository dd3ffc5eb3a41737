"""The rows of a report, read once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from poolbn.assess.residuals import Residuals, cell_residuals
from poolbn.errors import DataError
from poolbn.moments.groupstats import GroupStats, stats
from poolbn.network.network import Network
from poolbn.tables.cells import Cells, read_cells


@dataclass(frozen=True, eq=False)
class Given:
    """What the rows say: residuals of each node, or in words why there are none."""

    stats: GroupStats | None  # of the complete rows; None if there are none
    dropped: dict[Hashable, int]  # incomplete rows, by data set
    residuals: dict[str, Residuals | str]


def read_rows(net: Network, data: object) -> Given:
    """Read the rows once.

    Raises:
        DataError: they lack a column.
    """
    import pandas as pd

    nodes = net.dag.nodes
    cells = read_cells(data, nodes, net.group, net.levels)
    lacking = [name for name in nodes if name not in cells.columns]
    if not (cells.codes >= 0).any():
        lacking.append(net.group)
    if lacking:
        raise DataError(
            f"the rows lack column {lacking[0]!r} of the network, or have nothing in it; they have "
            f"{', '.join(map(repr, cells.columns))}. Give all its columns and the group column, or "
            "leave data= out"
        )
    known = cells.codes >= 0
    missing = np.isnan(cells.values).any(axis=1)
    counts = np.bincount(cells.codes[missing & known], minlength=len(net.levels))
    dropped = dict(zip(net.levels, counts.tolist(), strict=True))
    whole = known & ~missing
    found = None
    if whole.any():
        labels = np.empty(len(net.levels), dtype=object)
        for j, level in enumerate(net.levels):  # one by one: a level may be a tuple
            labels[j] = level
        table = pd.DataFrame(cells.values[whole], columns=list(nodes))
        group = pd.Series(labels[cells.codes[whole]], dtype=object)
        table.insert(0, net.group, group.astype("category"))
        found = stats(table, group=net.group)
        found = replace(found, dropped=np.array([dropped[level] for level in found.levels]))
    return Given(found, dropped, {node: _residuals(net, cells, node) for node in nodes})


def _residuals(net: Network, cells: Cells, node: str) -> Residuals | str:
    """The residuals of a node, or why there are none: the report is written all the same."""
    try:
        return cell_residuals(net, cells, node)
    except DataError as error:
        return f"There are no residuals: {error}."
