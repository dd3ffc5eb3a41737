"""Missing cells of tables with columns of all kinds: drawn and learned from, until that settles.

Monte Carlo EM over graphs. Cells are first drawn from a normal distribution of all columns, with
indicators for levels, by EM in each data set. A network is learned from the completed rows; the
cells are drawn again, from it; and so on until graph and score stay. Each round begins with the
first draws and uses the same random numbers, so that the same network gives the same cells.

Where there are units inside data sets, columns are continuous, and draws are exact, see
`inference.unitgaps`; the first ones are from a normal distribution with levels of units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from poolbn.arrays import Flags, Floats, Positions
from poolbn.inference.gibbs import Rows, Sampler
from poolbn.inference.locals import Local, Redraw, locals_of, redrawings
from poolbn.inference.unitgaps import TwoLevels, UnitGaps, of_network
from poolbn.moments.cases import check_no_units
from poolbn.moments.data import numbers
from poolbn.moments.reading import WITHOUT_EM
from poolbn.moments.table import FilledTable, Table, gaps_of
from poolbn.network.network import Network
from poolbn.tables.kinds import has_levels, is_normal, is_whole

_SWEEPS = 15
_SAME = 1.0  # difference of scores between rounds that settle
_START, _EXPECTED, _PLAUSIBLE = range(3)  # what random numbers are for


@dataclass(frozen=True, eq=False)
class MonteCarloEM:
    """Draws of a table's missing cells, in an order that does not depend on the table's."""

    table: Table  # all rows
    seed: int = 0  # of random numbers
    draws: int = 10  # of each missing cell, to learn from: M
    rounds: int = 10  # the most

    def __post_init__(self) -> None:
        if not all(map(is_normal, self.table.kinds)):
            check_no_units(self.table, "EM of columns that are not continuous", *WITHOUT_EM)

    @staticmethod
    def of(table: Table, *, quick: bool = False) -> MonteCarloEM:
        """For a table; `quick` for one of many parts or samples of one."""
        return MonteCarloEM(table, draws=5, rounds=2) if quick else MonteCarloEM(table)

    def completed(self, learned: Callable[[FilledTable, Network | None], Network]) -> FilledTable:
        """The table as the network of the last round completes it.

        `learned` is the network of a completed table, given that of the round before.
        """
        filled = self.start()
        network, afresh = learned(filled, None), False
        for _ in range(self.rounds):
            filled, before = self.expected(network), network
            network = learned(filled, before)
            if network.dag != before.dag or abs(network.score - before.score) >= _SAME:
                continue
            if afresh:
                break
            # What is found from the start may be better than what one round after the other led to.
            other, afresh = learned(filled, None), True
            if other.score < network.score + _SAME:
                network = learned(filled, network)
                break
            network = other
        return replace(filled, plausible=self.plausible(network))

    @cached_property
    def columns(self) -> Positions:
        """The columns in the order of their names, (N,)."""
        return np.array(sorted(range(len(self.table.names)), key=self.table.names.__getitem__))

    @cached_property
    def rows(self) -> Positions:
        """Those with missing cells, in the order of data sets' names and of their cells, (R,)."""
        table = self.table
        incomplete = np.flatnonzero(np.isnan(table.values).any(axis=0))
        levels = [(type(level).__name__, str(level)) for level in table.levels]
        rank = np.argsort(sorted(range(len(levels)), key=levels.__getitem__))
        cells = np.nan_to_num(table.values[np.ix_(self.columns, incomplete)], nan=np.inf)
        order = np.lexsort([*cells[::-1], rank[table.data_set[incomplete]]])
        return incomplete[order]

    @cached_property
    def missing(self) -> Flags:
        """Which cells are missing, in these orders, (N, R)."""
        return np.isnan(self.table.values[np.ix_(self.columns, self.rows)])

    @cached_property
    def _back(self) -> tuple[Positions, Positions]:
        """Positions of the table's columns, and of its rows with missing cells, in these orders."""
        return np.argsort(self.columns), np.argsort(self.rows)

    def in_table(self, cells: Floats) -> Floats:
        """Cells (..., N, R) in the table's order."""
        columns, rows = self._back
        found: Floats = cells[..., columns, :][..., rows]
        return found

    @cached_property
    def _units(self) -> tuple[UnitGaps, Positions]:
        """All rows of the units that lack cells, and where those are which lack them, (R,)."""
        table = self.table
        assert table.units is not None
        at = np.flatnonzero(np.isin(table.units, table.units[self.rows]))
        own = {unit: k for k, unit in enumerate(dict.fromkeys(table.units[self.rows].tolist()))}
        unit = np.array([own[u] for u in table.units[at].tolist()], dtype=np.int64)
        values = np.ascontiguousarray(table.values[np.ix_(self.columns, at)].T)
        of = UnitGaps(values, table.data_set[at], unit, len(table.levels))
        return of, np.searchsorted(at, self.rows)

    def _drawn(self, at: TwoLevels, draws: int, *use: int) -> Floats:
        """Draws (draws, N, R) of rows in units."""
        of, where = self._units
        n, N = of.values.shape
        found = np.empty((draws, N, len(where)))
        for m in range(draws):
            rng = np.random.default_rng([self.seed, *use, m])
            of_units, of_rows = rng.normal(size=(int(of.unit.max()) + 1, N)), np.zeros((n, N))
            of_rows[where] = rng.normal(size=(len(where), N))
            found[m] = of.drawn(at, of_units[None], of_rows[None])[0, where].T
        return found

    @cached_property
    def first(self) -> Floats:
        """Draws by EM on indicators, (M, N, R)."""
        if self.table.units is not None:
            return self._drawn(self._units[0].begin(), self.draws, _START)
        table = self.table.select([self.table.names[k] for k in self.columns])
        completion = gaps_of(table).completion
        known = numbers(table, table.names, incomplete=True)[1].T[self.rows]
        sets, made = self.table.data_set[self.rows], []
        for m in range(self.draws):
            filled = known.copy()
            for rank, j in enumerate(dict.fromkeys(sets.tolist())):
                at = sets == j
                rng = np.random.default_rng([self.seed, _START, m, rank])
                filled[at] = completion.filled(j, known[at], rng)
            made.append(_cells(table, filled.T))
        drawn = np.array(made)
        return np.where(self.missing, drawn, table.values[:, self.rows])

    def start(self) -> FilledTable:
        """The table with the first draws."""
        return FilledTable.of(self.table, self.in_table(self.first))

    def expected(self, network: Network) -> FilledTable:
        """The table with draws by a network."""
        cells = self._swept(network, self._nodes(network), self.first, _EXPECTED)
        return FilledTable.of(self.table, self.in_table(cells))

    def _nodes(self, network: Network) -> list[Local]:
        """In the order of columns, estimates for certain."""
        names = [self.table.names[k] for k in self.columns]
        fits = {name: network.fits[name] for name in names}
        return list(locals_of(fits, certain=self.table.levels))

    def _swept(self, network: Network, nodes: list[Local], start: Floats, *use: int) -> Floats:
        """Draws (M, N, R) by nodes, from others."""
        M, N, R = start.shape
        if self.table.units is not None:
            fits = (network.fits[self.table.names[k]].gaussian for k in self.columns)
            shares = [None if fit is None else fit.unit_share for fit in fits]
            return self._drawn(of_network(nodes, shares, self._units[0]), M, *use)
        values = np.ascontiguousarray(start.transpose(1, 0, 2)).reshape(N, M * R)
        sets = np.tile(self.table.data_set[self.rows], M)
        rows = Rows(values, np.tile(self.missing, (1, M)), sets)
        made = Sampler(nodes, self._scale).sweeps(rows, _SWEEPS, [self.seed, *use])
        found: Floats = made.reshape(N, M, R).transpose(1, 0, 2)
        return found

    @cached_property
    def _scale(self) -> Floats:
        return np.asarray(np.nanstd(self.table.values[self.columns], axis=1))

    def plausible(self, network: Network) -> Callable[[int], Table]:
        """Tables that are drawn with the network's parameters drawn too; the k-th one."""
        ordered = self.table.select([self.table.names[k] for k in self.columns])
        found = dict[int, Floats]()

        @cache
        def begin() -> tuple[list[Redraw], Floats]:
            nodes = self._nodes(network)
            made = redrawings({name: network.fits[name] for name in ordered.names}, nodes, ordered)
            return made, self._swept(network, nodes, self.first, _EXPECTED)

        def table(k: int) -> Table:
            if k not in found:
                made, start = begin()
                rng = np.random.default_rng([self.seed, _PLAUSIBLE, k])
                own = [redraw(rng) for redraw in made]
                one = start[k % len(start)][None]
                found[k] = self.in_table(self._swept(network, own, one, _PLAUSIBLE, k)[0])
            values = self.table.values.copy()
            values[:, np.sort(self.rows)] = found[k]
            return replace(self.table, values=values)

        return table


def _cells(table: Table, numbers: Floats) -> Floats:
    """Columns of numbers (W, R) as cells, (N, R): the nearest level, or whole number."""
    made, at = [], 0
    for kind, levels in zip(table.kinds, table.categories, strict=True):
        width = len(levels) - 1 if levels else 1
        own = numbers[at : at + width]
        at += width
        if has_levels(kind):
            made.append(np.vstack([1 - own.sum(axis=0), own]).argmax(axis=0).astype(float))
        else:
            made.append(np.maximum(np.rint(own[0]), 0) if is_whole(kind) else own[0])
    return np.array(made)
