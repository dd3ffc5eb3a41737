"""All that a report is made from, gathered once: each column of the rows is read once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.comparison import Comparison
from poolbn.assess.effectsizes import EffectSize, effect_sizes
from poolbn.assess.resample import ArcStrength, Bootstrap
from poolbn.assess.residuals import FEWEST, Residuals, cell_residuals
from poolbn.errors import DataError
from poolbn.graph.pairs import Pair
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import stats_of_numbers
from poolbn.network.exporting import names_of_data_sets
from poolbn.network.network import Network
from poolbn.nodes.localfit import Status
from poolbn.show.figures import Test, arc_strengths, equality_tests
from poolbn.tables.cells import Cells, read_cells

_NO_ROWS = "Residuals need the rows: pb.report(net, path, data=rows)."


@dataclass(frozen=True, eq=False)
class Material:
    """What a report is made from."""

    net: Network
    boot: Bootstrap | None  # how sure the arcs are
    found: Comparison | None  # models compared
    stats: GroupStats | None  # that the network was learned from, or else those of the rows
    dropped: Mapping[Hashable, int] | None  # rows left out, by data set; None if not known
    rows: bool  # whether there are rows
    open: bool  # whether the report may show them
    given: GroupStats | None  # of complete rows; None if there are none
    residuals: Mapping[str, Residuals | str]  # of each node, or in words why there are none

    @cached_property
    def shown(self) -> NDArray[np.bool_]:
        """The data sets whose own estimates a report may have: no row follows from them, (F,)."""
        net, few = self.net, set()
        for known in (net, self.stats):
            if known is not None:
                counts = zip(known.levels, known.n.tolist(), strict=True)
                few |= {level for level, n in counts if 0 < n < FEWEST}
        made = all(fit.status is Status.GIVEN for fit in net.linear_fits.values())
        return np.array([self.open or made or level not in few for level in net.levels])

    @cached_property
    def hidden(self) -> list[str]:
        """The names of the other data sets."""
        return [name for name, shown in zip(self.names, self.shown, strict=True) if not shown]

    @cached_property
    def names(self) -> list[str]:
        """The names of the data sets."""
        return names_of_data_sets(self.net.dag, self.net.linear_fits, ())

    @cached_property
    def sizes(self) -> tuple[EffectSize, ...]:
        """The standardised effects of the arcs."""
        return effect_sizes(self.net)

    @cached_property
    def effects(self) -> list[dict[Hashable, Any]]:
        """The rows of `Network.effects`, one for each arc."""
        return self.net.effects().to_dict("records")

    @cached_property
    def strengths(self) -> list[ArcStrength] | None:
        """How sure each arc is."""
        return None if self.boot is None else arc_strengths(self.net, self.boot)

    @cached_property
    def tests(self) -> dict[Pair, Test]:
        """From `equality_tests`."""
        return equality_tests(self.net, self.stats)

    @cached_property
    def p_values(self) -> dict[Pair, float]:
        """The p-values of the tests."""
        return {arc: test.p_value for arc, test in self.tests.items()}


def gathered(
    net: Network,
    data: object,
    boot: Bootstrap | None,
    found: Comparison | None,
    *,
    open: bool = False,
) -> Material:
    """Gather it, or raise if the rows lack a column."""
    known, dropped, given = net.stats, None, None
    residuals: dict[str, Residuals | str] = dict.fromkeys(net.dag.nodes, _NO_ROWS)
    if data is not None:
        cells = _read(net, data)
        residuals = {node: _residuals(net, cells, node) for node in net.dag.nodes}
        given, dropped = _complete(net, cells)
        known = given if known is None else known
    if net.stats is not None:
        dropped = dict(zip(net.stats.levels, net.stats.dropped.tolist(), strict=True))
    return Material(net, boot, found, known, dropped, data is not None, open, given, residuals)


def _read(net: Network, data: object) -> Cells:
    cells = read_cells(data, net.dag.nodes, net.group, net.levels)
    lacking = [name for name in net.dag.nodes if name not in cells.columns]
    if not (cells.codes >= 0).any():
        lacking.append(net.group)
    if lacking:
        raise DataError(
            f"the rows lack column {lacking[0]!r} of the network, or have nothing in it; they have "
            f"{', '.join(map(repr, cells.columns))}. Give all its columns and the group column, or "
            "leave data= out"
        )
    return cells


def _complete(net: Network, cells: Cells) -> tuple[GroupStats | None, dict[Hashable, int]]:
    """The sufficient statistics of complete rows, and how many others there are by data set."""
    import pandas as pd

    known, missing = cells.codes >= 0, np.isnan(cells.values).any(axis=1)
    counts = np.bincount(cells.codes[missing & known], minlength=len(net.levels))
    dropped = dict(zip(net.levels, counts.tolist(), strict=True))
    whole = known & ~missing
    if not whole.any():
        return None, dropped
    labels = np.empty(len(net.levels), dtype=object)
    for j, level in enumerate(net.levels):  # one by one: a level may be a tuple
        labels[j] = level
    table = pd.DataFrame(cells.values[whole], columns=list(net.dag.nodes))
    group = pd.Series(labels[cells.codes[whole]], dtype=object)
    table.insert(0, net.group, group.astype("category"))
    found = stats_of_numbers(table, group=net.group)
    return replace(found, dropped=np.array([dropped[level] for level in found.levels])), dropped


def _residuals(net: Network, cells: Cells, node: str) -> Residuals | str:
    """The residuals of a node, or why there are none: the report is written all the same."""
    try:
        return cell_residuals(net, cells, node)
    except DataError as error:
        return f"There are no residuals: {error}."
