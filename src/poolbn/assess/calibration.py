"""Whether the probabilities of a discrete node are right: what was expected beside what was seen.

Nothing here is of fewer than 10 rows, or tells of a level that 1 to 4 rows have.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.residuals import CELL, FEWEST, known_rows, neighbours, node_cells
from poolbn.errors import DataError
from poolbn.inference.drawing import level_probabilities
from poolbn.network.network import Network
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit
from poolbn.tables.cells import Cells

Floats = NDArray[np.float64]

_BINS = 10
_Z = 1.959963984540054  # of 95% intervals


class Share(NamedTuple):
    """Some rows: how many, the mean probability of a level, and the share that has it.

    The interval is Wilson's, for 95%.
    """

    rows: int
    expected: float
    seen: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """The probabilities of a discrete node in n rows, and which level each row has.

    Attributes:
        node: the node.
        levels: the F data sets.
        categories: the K levels of the node.
        codes: the index of each row's data set, (n,).
        probabilities: of the levels, given the parents, in the row's data set, (n, K).
        seen: the level of each row, (n,).
        left_out: rows with a missing value, or whose data set is not known.
    """

    node: str
    levels: tuple[Hashable, ...]
    categories: tuple[str, ...]
    codes: NDArray[np.int64]
    probabilities: Floats
    seen: NDArray[np.int64]
    left_out: int

    @property
    def shown(self) -> range:
        """The levels to show: of two the second alone, whose probability says all."""
        return range(len(self.categories) == 2, len(self.categories))

    def bins(self, level: int) -> list[Share]:
        """Neighbouring rows by the probability of a level, equal ones together.

        Each part has `FEWEST` rows or more, of which `CELL` or more have the level and as many do
        not. There is none where that cannot be.
        """
        p = self.probabilities[:, level]
        order = np.argsort(p, kind="stable")
        x, y = p[order], self.seen[order] == level
        before = np.concatenate([[0], np.cumsum(y)])
        wanted = max(FEWEST, -(-len(x) // _BINS))

        def enough(part: range) -> bool:
            have = int(before[part.stop] - before[part.start])
            return len(part) >= wanted and min(have, len(part) - have) >= CELL

        return [_share(x[part], y[part]) for part in neighbours(x, enough)]

    def by_data_set(self, level: int) -> dict[int, Share]:
        """By data set, of those with `FEWEST` rows or more; a level has none of them, or `CELL`."""
        found = {}
        for code in np.unique(self.codes).tolist():
            own = self.codes == code
            y = self.seen[own] == level
            if len(y) >= FEWEST and not 0 < min(y.sum(), (~y).sum()) < CELL:
                found[code] = _share(self.probabilities[own, level], y)
        return found


def _share(p: Floats, y: NDArray[np.bool_]) -> Share:
    n, share = len(y), float(y.mean())
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    reach = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return Share(n, float(p.mean()), share, float(middle - reach), float(middle + reach))


def node_calibration(net: Network, data: object, node: str) -> Calibration:
    """The calibration of a discrete node in all rows that have it, its parents, and a data set.

    Args:
        net: the network.
        data: a table or file as for `pb.stats`, with the group column.
        node: the node.

    Raises:
        GraphError: there is no such node.
        DataError: the table cannot be used or has no such row, or the node is not discrete.
    """
    return cell_calibration(net, node_cells(net, data, node), node)


def cell_calibration(net: Network, cells: Cells, node: str) -> Calibration:
    """The same in cells that were read, with the node's parents among them."""
    fit = net.fits[node]
    if not isinstance(fit, TabularFit | RegressionFit) or not fit.categories:
        raise DataError(
            f"{node!r} is not discrete, so it has no probabilities of levels; use "
            f"pb.plots.residuals(net, data, {node!r})"
        )
    codes, columns, values, left_out = known_rows(net, cells, node)
    return Calibration(
        node=node,
        levels=fit.levels,
        categories=fit.categories,
        codes=codes,
        probabilities=level_probabilities(fit, columns, codes),
        seen=values.astype(np.int64),
        left_out=left_out,
    )
