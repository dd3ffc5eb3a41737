"""Residuals of a node: what rows differ by from what their data set's distribution expects."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, GraphError, nearest
from poolbn.network.network import Network
from poolbn.tables.cells import Cells, read_cells

Floats = NDArray[np.float64]

_BINS = 12
_QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of one node in n rows.

    Attributes:
        node: the node.
        levels: the F data sets.
        codes: the index of each row's data set, (n,).
        fitted: expected from the parents, (n,).
        residual: the cell minus that, (n,).
        standard: the same in the residual standard deviations of the data sets, (n,).
        left_out: rows with a missing cell, or whose data set is not known.
    """

    node: str
    levels: tuple[Hashable, ...]
    codes: NDArray[np.int64]
    fitted: Floats
    residual: Floats
    standard: Floats
    left_out: int

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The rows by their fitted values, (n,)."""
        return np.argsort(self.fitted, kind="stable")


def node_residuals(net: Network, data: object, node: str) -> Residuals:
    """The residuals of a node in all rows that have it, its parents, and a data set.

    Args:
        net: the network.
        data: a table or file as for `pb.stats`, with the group column.
        node: the node.

    Raises:
        GraphError: there is no such node.
        DataError: the table cannot be used or has no such row, or the node does not vary.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]]
        >>> net = pb.learn(trial.dropna(), group="clinic", pooling="none")
        >>> found = node_residuals(net, trial, "bmi")
        >>> len(found.residual), found.left_out
        (750, 73)
    """
    if node not in net.fits:
        raise GraphError(f"no node is called {node!r}{nearest(node, net.dag.nodes)}")
    fit = net.fits[node]
    cells = read_cells(data, (*fit.parents, node), net.group, fit.levels)
    return cell_residuals(net, cells, node)


def cell_residuals(net: Network, cells: Cells, node: str) -> Residuals:
    """The residuals of a node in cells that were read, with its parents among them.

    Raises:
        DataError: there is no row with all that is needed, or the node does not vary.
    """
    fit = net.fits[node]
    if not (fit.sigma2 > 0).all():
        level = fit.levels[int(np.argmin(fit.sigma2))]
        raise DataError(
            f"{node!r} has no residual variance in data set {level!r}, so there are no residuals; "
            f"its fit is {str(fit.status)!r}"
        )
    names = (*fit.parents, node)
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
            f"({', '.join(map(repr, fit.parents)) or 'none'}); give rows without missing cells"
        )
    codes, values = cells.codes[known], values[known]
    coef = fit.coef[codes]
    fitted = coef[:, 0] + (coef[:, 1:] * values[:, :-1]).sum(axis=1)
    residual = values[:, -1] - fitted
    return Residuals(
        node=node,
        levels=fit.levels,
        codes=codes,
        fitted=fitted,
        residual=residual,
        standard=residual / np.sqrt(fit.sigma2[codes]),
        left_out=int((~known).sum()),
    )


# What is shown of them


def neighbour_means(found: Residuals) -> Floats:
    """Means of the fitted values and standardised residuals of rows with like values, (m, 2)."""
    parts = np.array_split(found.order, min(_BINS, max(1, len(found.order) // 8)))
    return np.array([[found.fitted[part].mean(), found.standard[part].mean()] for part in parts])


def normal_quantiles(values: Floats, most: int = 150) -> Floats:
    """Quantiles of the normal distribution and of values, (2, m), at the same probabilities."""
    n = len(values)
    at = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))
    normal = NormalDist()
    expected = [normal.inv_cdf(p) for p in ((at + 0.5) / n).tolist()]
    return np.array([expected, np.sort(values)[at]])


def spread(found: Residuals) -> list[tuple[int, int, Floats]]:
    """Of each data set that has rows: its index, its rows, and where 95% and half of them lie.

    The last are quantiles of the standardised residuals, with the median in the middle, (5,).
    """
    rows = []
    for code in np.unique(found.codes).tolist():
        own = found.standard[found.codes == code]
        rows.append((code, len(own), np.quantile(own, _QUANTILES)))
    return rows
