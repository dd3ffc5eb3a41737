"""Which estimates a report may show: none from fewer than 10 rows, or that tell of 1 to 4 rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.residuals import CELL, FEWEST
from poolbn.inference.drawing import categories_of, draw_columns
from poolbn.moments.discrete import tabulate
from poolbn.moments.table import Table
from poolbn.network.network import Network

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_DRAWS = 2000  # rows of each data set that are drawn where none are known
_UNSURE = 2  # times as many rows are to be expected then


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows by data set and by levels of discrete columns.

    Where rows are not known, those that the network expects count.

    Attributes:
        net: the network.
        rows: those that it was learned from; None where they are not known.
        shown: the data sets whose estimates may be shown as far as all their rows go, (F,).
        open: whether everything may be shown.
    """

    net: Network
    rows: Table | None
    shown: Flags
    open: bool
    _counts: dict[tuple[str, ...], Floats] = field(default_factory=dict)

    def term(self, parent: str, child: str, level: str, outcome: str) -> Flags:
        """Data sets in which an effect may be shown, (F,).

        A level of the parent and its first have no rows or `FEWEST`; an outcome of the child and
        its first, where the parent has one of the two levels, no rows or `CELL`.
        """
        names = [name for name in (parent, child) if self._levels(name)]
        if self.open or not names:
            return self.shown
        counts = self.counts(names)
        if self._levels(parent):
            at = [0, self._levels(parent).index(level)]
            counts = counts[:, at]
            margin = counts.reshape(len(counts), 2, -1).sum(axis=2)
            shown = self.shown & ~_few(margin, FEWEST)
        else:
            shown = self.shown
        if self._levels(child):
            counts = counts[..., [0, self._levels(child).index(outcome)]]
            shown = shown & ~_few(counts, CELL)
        return shown

    def node(self, node: str) -> Flags:
        """Data sets in which all parameters of a regression may be shown, (F,)."""
        shown = self.shown
        if self.open:
            return shown
        for parent in self.net.dag.parents(node):
            if self._levels(parent):
                shown = shown & ~_few(self.counts([parent]), FEWEST)
        if self._levels(node):
            shown = shown & ~_few(self.counts([node]), CELL)
        return shown

    def table(self, node: str) -> Flags:
        """Configurations of discrete parents whose probabilities may be shown, (F, C)."""
        parents = self.net.dag.parents(node)
        counts = self.counts([*parents, node])
        counts = counts.reshape(len(counts), -1, counts.shape[-1])
        if self.open:
            return np.repeat(self.shown[:, None], counts.shape[1], axis=1)
        rows = counts.sum(axis=2)
        few = ((rows > 0) & (rows < FEWEST)) | ((counts > 0) & (counts < CELL)).any(axis=2)
        return np.asarray(self.shown[:, None] & ~few)

    def counts(self, names: Sequence[str]) -> Floats:
        """Rows of each data set by levels of some discrete columns, (F, levels, ...)."""
        key = tuple(names)
        if key not in self._counts:
            self._counts[key] = self._counted(key)
        return self._counts[key]

    def _counted(self, names: tuple[str, ...]) -> Floats:
        F, sizes = len(self.net.levels), [len(self._levels(name)) for name in names]
        if self.rows is None:
            drawn = self._drawn
            sets = np.repeat(np.arange(F), _DRAWS)
            found = tabulate([drawn[name] for name in names], sizes, sets, F)
            share = self.net.n / (_DRAWS * _UNSURE)
            return found.reshape(F, *sizes) * share.reshape(F, *[1] * len(sizes))
        rows = self.rows.cases(names)
        codes = [column.astype(np.int64) for column in rows.columns]
        own = tabulate(codes, sizes, rows.data_set, len(self.rows.levels))
        known = {level: j for j, level in enumerate(self.rows.levels)}
        counts = np.zeros((F, *sizes))
        for j, level in enumerate(self.net.levels):
            if level in known:
                counts[j] = own[known[level]].reshape(sizes)
        return counts

    @cached_property
    def _drawn(self) -> dict[str, NDArray[np.int64]]:
        order = self.net.dag.topological_order()
        sets = np.repeat(np.arange(len(self.net.levels)), _DRAWS)
        drawn = draw_columns(self.net.fits, order, sets, np.random.default_rng(0))
        return {node: drawn[node].astype(np.int64) for node in order if self._levels(node)}

    def _levels(self, node: str) -> tuple[str, ...]:
        return categories_of(self.net.fits[node])

    @property
    def all_shown(self) -> bool:
        """Whether nothing is left out for what levels its rows have."""
        dag = self.net.dag
        regressions = [self.node(node) for node in dag.nodes]
        tables = [
            self.table(node)
            for node in dag.nodes
            if self._levels(node) and all(self._levels(parent) for parent in dag.parents(node))
        ]
        return all((of[self.shown]).all() for of in [*regressions, *tables])


def _few(counts: Floats, least: int) -> Flags:
    """Data sets in which some count is neither 0 nor large enough, (F,)."""
    few = (counts > 0) & (counts < least)
    return np.asarray(few.reshape(len(few), -1).any(axis=1))
