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
from poolbn.network.network import Network
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
    """The probabilities of a discrete node in n rows, and which level each row has."""

    node: str  # the node
    levels: tuple[Hashable, ...]  # the F data sets
    categories: tuple[str, ...]  # the K levels of the node
    codes: NDArray[np.int64]  # the index of each row's data set, (n,)
    probabilities: Floats  # of the levels, given the parents, in the row's data set, (n, K)
    seen: NDArray[np.int64]  # the level of each row, (n,)
    left_out: int  # rows with a missing value, or whose data set is not known

    @property
    def shown(self) -> range:
        """The levels to show: of two the second alone, whose probability says all."""
        return range(len(self.categories) == 2, len(self.categories))

    def bins(self, level: int) -> list[Share]:
        """Neighbouring rows by the probability of a level, equal ones together.

        Each part has `FEWEST` rows or more, of which `CELL` or more have the level and as many do
        not; of every other level it has no row or `CELL`, as shares of all levels together would
        tell of it. There is none where that cannot be.
        """
        p = self.probabilities[:, level]
        order = np.argsort(p, kind="stable")
        x, seen = p[order], self.seen[order]
        before = np.zeros((len(x) + 1, len(self.categories)), dtype=np.int64)
        before[1:] = np.cumsum(seen[:, None] == np.arange(len(self.categories)), axis=0)
        wanted = max(FEWEST, -(-len(x) // _BINS))

        def enough(part: range) -> bool:
            counts = before[part.stop] - before[part.start]
            least = min(counts[level], len(part) - counts[level])
            return len(part) >= wanted and least >= CELL and _many(counts)

        return [_share(x[part], seen[part] == level) for part in neighbours(x, enough)]

    def by_data_set(self, level: int) -> dict[int, Share]:
        """By data set, of those with `FEWEST` rows or more, and of each level none or `CELL`."""
        found = {}
        for code in np.unique(self.codes).tolist():
            own = self.codes == code
            counts = np.bincount(self.seen[own], minlength=len(self.categories))
            if counts.sum() >= FEWEST and _many(counts):
                found[code] = _share(self.probabilities[own, level], self.seen[own] == level)
        return found


def _many(counts: NDArray[np.int64]) -> bool:
    """Whether no count tells of few rows."""
    return not ((counts > 0) & (counts < CELL)).any()


def _share(p: Floats, y: NDArray[np.bool_]) -> Share:
    n, share = len(y), float(y.mean())
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    reach = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return Share(n, float(p.mean()), share, float(middle - reach), float(middle + reach))


def node_calibration(net: Network, data: object, node: str) -> Calibration:
    """The calibration of a discrete node in all rows that have it, its parents, and a data set."""
    return cell_calibration(net, node_cells(net, data, node), node)


def cell_calibration(net: Network, cells: Cells, node: str) -> Calibration:
    """The same in cells that were read, with the node's parents among them."""
    fit = net.fits[node]
    if not fit.categories:
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
        probabilities=fit.mean(columns, codes),
        seen=values.astype(np.int64),
        left_out=left_out,
    )
