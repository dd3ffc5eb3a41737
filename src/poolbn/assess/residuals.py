"""Residuals of a node in each row: the value minus what its data set's distribution expects.

Of a discrete node calibration instead, and of an ordinal one too: whether its probabilities are
right, what was expected beside what was seen. Nothing there is of fewer than 10 rows, or tells of a
level that 1 to 4 rows have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats, Integers, Positions
from poolbn.errors import DataError, GraphError, nearest
from poolbn.network.network import Network
from poolbn.network.questions import kinds_of
from poolbn.tables.cells import Cells, read_cells
from poolbn.tables.kinds import is_ordered

QUARTILE = NormalDist().inv_cdf(0.75)  # of normal residuals, in standard deviations
_BINS = 12
_QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)

# What is drawn without rows: nobody should be able to tell a row from it.
FEWEST = 10  # rows of a data set, or of neighbours, that are summed up
CELL = 5  # rows between two cut points, and beyond the first and last
_CUTS = np.arange(-3.0, 3.01, 0.5)  # of standardised residuals: the same for all tables


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of one node in n rows."""

    node: str  # the node
    levels: tuple[Hashable, ...]  # the F data sets
    codes: Integers  # the index of each row's data set, (n,)
    fitted: Floats  # expected from the parents, (n,)
    residual: Floats  # the value minus that, (n,)
    standard: Floats  # the same in the residual standard deviations of the data sets, (n,)
    left_out: int  # rows with a missing value, or whose data set is not known

    @cached_property
    def present(self) -> list[int]:
        """The indices of data sets that have rows."""
        return [int(code) for code in np.unique(self.codes)]

    @cached_property
    def order(self) -> Positions:
        """The rows by their fitted values, (n,)."""
        return np.argsort(self.fitted, kind="stable")

    def some(self, most: int) -> Integers:
        """Rows that are evenly spaced in `order`, at most so many."""
        at = np.unique(np.linspace(0, len(self.order) - 1, most).astype(int))
        return np.asarray(self.order[at])

    def of(self, code: int) -> Floats:
        """The standardised residuals of one data set."""
        return np.asarray(self.standard[self.codes == code])

    def trend(self) -> Floats:
        """Means of the fitted values and standardised residuals of neighbouring rows, (m, 2)."""
        parts = np.array_split(self.order, min(_BINS, max(1, len(self.order) // 8)))
        return np.array([[self.fitted[part].mean(), self.standard[part].mean()] for part in parts])

    def band(self) -> Floats:
        """The trend without rows: mean fitted value, mean and SD of standardised residuals, (m, 3).

        Each line sums up neighbours, `FEWEST` rows or more; equal fitted values stay together.
        There is none with fewer rows.
        """
        x, y = self.fitted[self.order], self.standard[self.order]
        parts = neighbours(x, lambda part: len(part) >= max(FEWEST, -(-len(x) // _BINS)))
        lines = [[x[part].mean(), y[part].mean(), y[part].std(ddof=1)] for part in parts]
        return np.array(lines).reshape(-1, 3)

    def spreads(self) -> list[tuple[int, int, Floats]]:
        """Of data sets with `FEWEST` rows or more: index, rows, mean -+ SD and mean, (3,)."""
        own = [(code, self.of(code)) for code in self.present]
        return [
            (code, len(values), values.mean() + values.std(ddof=1) * np.array([-1.0, 0.0, 1.0]))
            for code, values in own
            if len(values) >= FEWEST
        ]

    def boxes(self) -> list[tuple[int, int, Floats]]:
        """Of each data set that has rows: its index, its rows, and five quantiles.

        Half of its standardised residuals lie between the second and the fourth, 95% between the
        first and the last; the third is the median.
        """
        own = [(code, self.of(code)) for code in self.present]
        return [(code, len(values), np.quantile(values, _QUANTILES)) for code, values in own]


def neighbours(x: Floats, enough: Callable[[range], bool]) -> list[slice]:
    """Rows next to each other, by values in order, (n,), in parts; equal values stay together.

    Parts are as small as `enough` allows, which says whether some rows may stand alone.
    """
    starts = np.flatnonzero(np.diff(x, prepend=-np.inf))
    edges = [0]
    for end in [*starts[1:].tolist(), len(x)]:
        if enough(range(edges[-1], end)):
            edges.append(end)
    if len(edges) > 1:
        edges[-1] = len(x)  # the last ones may be too few to stand alone
    while len(edges) > 1 and not enough(range(edges[-2], len(x))):
        del edges[-2]  # and the one before goes with them, or nothing is left
    return [slice(*ends) for ends in pairwise(edges)]


def normal_quantiles(values: Floats, most: int = 150) -> Floats:
    """Quantiles of the normal distribution and of values, (2, m), at the same probabilities."""
    n = len(values)
    at = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))
    normal = NormalDist()
    expected = [normal.inv_cdf(p) for p in ((at + 0.5) / n).tolist()]
    return np.array([expected, np.sort(values)[at]])


def counted_quantiles(values: Floats) -> Floats:
    """Quantiles as `normal_quantiles` has them, at fixed cut points, from counts alone, (2, m).

    A cut point is left out if fewer than `CELL` rows lie beyond it, or between it and the one
    before: no value of a row is among the numbers, and none is alone in its cell.
    """
    n, kept, last = len(values), [], 0
    for cut in _CUTS.tolist():
        below = int((values < cut).sum())
        if below - last >= CELL and n - below >= CELL:
            kept.append((NormalDist().inv_cdf(below / n), cut))
            last = below
    return np.array(kept).reshape(-1, 2).T


def node_residuals(net: Network, data: object, node: str) -> Residuals:
    """The residuals of a node in all rows that have it, its parents, and a data set."""
    return cell_residuals(net, node_cells(net, data, node), node)


def node_cells(net: Network, data: object, node: str) -> Cells:
    """The cells of a node and its parents."""
    if node not in net.fits:
        raise GraphError(f"no node is called {node!r}{nearest(node, net.dag.nodes)}")
    family = (*net.dag.parents(node), node)
    kinds = kinds_of({name: net.fits[name] for name in family})
    return read_cells(data, family, net.group, net.levels, kinds)


def cell_residuals(net: Network, cells: Cells, node: str) -> Residuals:
    """The residuals of a node in cells that were read, with its parents among them.

    Those of a count or of ordered levels are randomised quantile residuals (Dunn and Smyth 1996):
    normal if the model is right. The seed is always the same. Ordered levels are numbers from 1.
    """
    fit = net.fits[node]
    if (linear := fit.gaussian) is not None and not (linear.sigma2 > 0).all():
        level = fit.levels[int(np.argmin(linear.sigma2))]
        raise DataError(
            f"{node!r} has no residual variance in data set {level!r}, so there are no residuals; "
            f"its fit is {str(fit.status)!r}"
        )
    if fit.categories and not is_ordered(fit.kind):
        raise DataError(
            f"{node!r} is discrete, so there are no residuals; use pb.plots.calibration(net, data, "
            f"{node!r})"
        )
    codes, columns, values, left_out = known_rows(net, cells, node)
    fitted = fit.mean(columns, codes)
    standard = fit.residuals(values, fitted, fit.strata(columns, codes))
    if fit.categories:
        fitted, values = fitted @ np.arange(1.0, len(fit.categories) + 1), values + 1
    return Residuals(
        node=node,
        levels=fit.levels,
        codes=codes,
        fitted=fitted,
        residual=values - fitted,
        standard=standard,
        left_out=left_out,
    )


def known_rows(
    net: Network, cells: Cells, node: str
) -> tuple[Integers, dict[str, Floats], Floats, int]:
    """Rows with a data set, a node and all of its parents, and how many other rows there are.

    Their data sets, columns of the parents by name, and the node: codes or values, (n,) each.
    """
    parents = net.dag.parents(node)
    names = (*parents, node)
    for name in (*names, net.group):
        if name not in cells.columns and not (name == net.group and (cells.codes >= 0).any()):
            raise DataError(
                f"residuals of {node!r} need column {name!r}, which is not there; the table has "
                f"{', '.join(map(repr, cells.columns))}"
            )
    values = cells.of(names)
    known = (cells.codes >= 0) & ~np.isnan(values).any(axis=1)
    if not known.any():
        raise DataError(
            f"none of the {len(known)} rows has a data set, {node!r} and all of its parents "
            f"({', '.join(map(repr, parents)) or 'none'}); give rows without missing values"
        )
    columns = dict(zip(parents, values[known].T, strict=False))
    return cells.codes[known], columns, values[known, -1], int((~known).sum())


_SHARES = 10
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
    codes: Integers  # the index of each row's data set, (n,)
    probabilities: Floats  # of the levels, given the parents, in the row's data set, (n, K)
    seen: Integers  # the level of each row, (n,)
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
        wanted = max(FEWEST, -(-len(x) // _SHARES))

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


def _many(counts: Integers) -> bool:
    """Whether no count tells of few rows."""
    return not ((counts > 0) & (counts < CELL)).any()


def _share(p: Floats, y: Flags) -> Share:
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
