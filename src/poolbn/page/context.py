"""All that a report is made from, gathered once: each column of the rows is read once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from poolbn.arrays import Flags
from poolbn.assess.comparison import Comparison
from poolbn.assess.effectsizes import EffectSize, Spreads, effect_sizes, spreads
from poolbn.assess.estimates import Estimates, arc_effects
from poolbn.assess.graphtest import GraphTest
from poolbn.assess.influence import Influence, influences
from poolbn.assess.resample import ArcStrength, Bootstrap
from poolbn.assess.residuals import FEWEST, Calibration, Residuals, cell_calibration, cell_residuals
from poolbn.assess.treatment import effects_in_tables
from poolbn.errors import ArgumentError, DataError
from poolbn.graph.constraints import Constraints
from poolbn.graph.pairs import Pair
from poolbn.later import pandas as pd
from poolbn.moments.between import MeansCorrelation, mean_correlations
from poolbn.moments.data import Data, is_data
from poolbn.moments.halves import halves
from poolbn.moments.table import Table, table
from poolbn.network.exporting import names_of_data_sets
from poolbn.network.network import Network, checked_data
from poolbn.network.questions import kinds_of
from poolbn.nodes.localfit import Status
from poolbn.nodes.poolings import Partial
from poolbn.page.disclosure import Disclosed, disclosed, undisclosed
from poolbn.posteriors.posterior import ArcPosterior
from poolbn.search.pattern import Pattern
from poolbn.show.figures import Test, arc_strengths, arrow, equality_tests, p_value
from poolbn.tables.cells import Cells as RowCells
from poolbn.tables.cells import find_level, read_cells
from poolbn.tables.kinds import is_ordered
from poolbn.tables.missing import Missing
from poolbn.wording import Noun, noun_of

Evidence = ArcPosterior | Pattern | GraphTest


class PairDoubt(NamedTuple):
    """What is known of an arc between two variables, in the direction that is more probable."""

    parent: str  # a variable
    child: str  # another
    probability: float | None  # of an arc, either way; None without a posterior
    direction: float | None  # the share of it that goes this way
    p_value: float | None  # the largest of the tests of independence; None without any
    given: tuple[str, ...] | None  # what makes them independent, if something does
    doubt: float  # what pairs are sorted by: the least first


def check_evidence(net: Network, evidence: object) -> Evidence:
    """Raise for what is no evidence, or of other variables."""
    if not isinstance(evidence, Evidence):
        raise ArgumentError(
            f"expected evidence, got {type(evidence).__name__}; pb.arc_posterior, "
            "pb.PC().pattern and net.test_graph give it"
        )
    nodes = evidence.cpdag.nodes if isinstance(evidence, Pattern) else evidence.nodes
    check_nodes(net, nodes, "evidence")
    return evidence


def check_nodes(net: Network, nodes: Iterable[str], what: str) -> None:
    """Raise for what is of other variables than a network."""
    if other := sorted({*nodes} ^ {*net.dag.nodes}):
        raise DataError(
            f"the {what} was not of the variables of the network: {other[0]!r} is in one of the "
            "two only; use the same columns for both"
        )


def pair_doubts(
    net: Network, post: ArcPosterior | None, pattern: Pattern | None
) -> dict[frozenset[str], PairDoubt]:
    """Of each pair, those in most doubt first.

    A probability is in doubt near 1/2, a p-value near the level of the tests.
    """
    found = []
    for a, b in combinations(net.dag.nodes, 2):
        probability = direction = p = given = None
        doubt = math.inf
        if pattern is not None:
            x, y = sorted(map(pattern.cpdag.nodes.index, (a, b)))
            p = float(pattern.p_values[x, y])
            p = None if math.isnan(p) else p
            given = pattern.separators.get((pattern.cpdag.nodes[x], pattern.cpdag.nodes[y]))
            if p is not None:
                doubt = abs(math.log(max(p, 1e-300)) - math.log(pattern.alpha))
        if post is not None:
            there, back = post.probability(a, b), post.probability(b, a)
            if back > there:
                a, b, there, back = b, a, back, there  # noqa: PLW2901 the direction to name
            probability = min(there + back, 1.0)
            direction = there / (there + back) if there + back > 0 else None
            doubt = abs(probability - 0.5)
        found.append(PairDoubt(a, b, probability, direction, p, given, doubt))
    found.sort(key=lambda pair: pair.doubt)
    return {frozenset((pair.parent, pair.child)): pair for pair in found}


def doubt_words(pair: PairDoubt) -> list[str]:
    """Sentences on one arc."""
    said = []
    if pair.probability is not None:
        told = f"The probability of an arc between the two is {pair.probability:.2f}"
        if pair.direction is not None:
            told += f", and {pair.direction:.0%} of that is for {arrow(pair.parent, pair.child)}"
        said.append(f"{told}.")
    if pair.p_value is not None:
        least = "" if pair.given is None else ", so that tests alone would leave it out"
        p = p_value(pair.p_value)
        said.append(f"The largest p-value of tests of independence is {p}{least}.")
    return said


_NONE = Constraints()
_FEW_LEFT, _MOST_LEFT = 2, 30  # data sets of which one is left out: more than the first
_NO_ROWS = "Residuals need the rows: pb.report(net, path, data=rows)."

_NOT_APART = "There are no residuals, as they would tell of data sets with few rows."

# How a node's distributions fit the rows, or in words why that is not known.
Fitting = Residuals | Calibration | str


@dataclass(frozen=True, eq=False)
class Context:
    """What a report is made from."""

    net: Network
    boot: Bootstrap | None  # how sure the arcs are
    found: Comparison | None  # models compared
    stats: Data | None  # that the network was learned from, or else of complete rows
    dropped: Mapping[Hashable, int] | None  # rows left out, by data set; None if not known
    rows: bool  # whether there are rows
    open: bool  # whether the report may show them
    given: Data | None  # of complete rows; None if there are none
    residuals: Mapping[str, Fitting]  # of each node
    treated: Mapping[str, pd.DataFrame]  # what inputs do to other nodes, by the rows
    disclosed: Disclosed  # what the report may be made from
    constraints: Constraints = _NONE  # that the search had
    evidence: tuple[Evidence, ...] = ()  # probabilities of arcs, tests

    @property
    def shown(self) -> Flags:
        """The data sets whose own estimates a report may have: no row follows from them, (F,)."""
        return self.disclosed.shown

    @property
    def hidden(self) -> list[str]:
        """The data sets that are left out, as they have few rows."""
        return [str(level) for level in self.disclosed.left_out]

    @cached_property
    def sets(self) -> Noun:
        """What the group column calls its data sets."""
        return noun_of(self.net.group)

    @cached_property
    def index(self) -> dict[str | Pair, int]:
        """The indices of nodes and of arcs."""
        found: dict[str | Pair, int] = {node: i for i, node in enumerate(self.net.dag.nodes)}
        return found | {arc: k for k, arc in enumerate(self.net.dag.arcs)}

    @cached_property
    def names(self) -> list[str]:
        """The names of the data sets."""
        return names_of_data_sets(self.net.dag, self.net.fits, ())

    @cached_property
    def spreads(self) -> Spreads:
        """How much nodes vary."""
        return spreads(self.net)

    @cached_property
    def sizes(self) -> tuple[EffectSize, ...]:
        """The standardised effects of the arcs."""
        return effect_sizes(self.net, self.spreads, self.constraints)

    @cached_property
    def estimates(self) -> list[tuple[Estimates, ...]]:
        """The effects of each arc in all data sets; NaN for what may not be shown."""
        return [
            tuple(
                masked(found, self.disclosed.of(child))
                for found in arc_effects(self.net, parent, child, stats=self.stats)
            )
            for parent, child in self.net.dag.arcs
        ]

    @cached_property
    def strengths(self) -> list[ArcStrength] | None:
        """How sure each arc is."""
        return None if self.boot is None else arc_strengths(self.net, self.boot)

    @cached_property
    def doubts(self) -> dict[frozenset[str], PairDoubt]:
        """What evidence says of each pair of variables, those in most doubt first."""
        pattern = next((found for found in self.evidence if isinstance(found, Pattern)), None)
        known = pattern is not None or self.posterior is not None
        return pair_doubts(self.net, self.posterior, pattern) if known else {}

    @property
    def graph_test(self) -> GraphTest | None:
        """What the data say of the graph, if it was tested."""
        return next((found for found in self.evidence if isinstance(found, GraphTest)), None)

    @property
    def posterior(self) -> ArcPosterior | None:
        """Probabilities of arcs, if they are known."""
        return next((found for found in self.evidence if isinstance(found, ArcPosterior)), None)

    @cached_property
    def tests(self) -> dict[Pair, Test]:
        """From `equality_tests`; none of rows that are put together."""
        found = equality_tests(self.net, self.stats)
        own = [node for node in self.disclosed.grouped if self.net.fits[node].gaussian]
        return {(parent, node): test for (parent, node), test in found.items() if node not in own}

    @cached_property
    def mean_correlations(self) -> tuple[MeansCorrelation, ...]:
        """How levels of data sets go together, the surest first; none where that is not known."""
        return () if self.stats is None else mean_correlations(self.stats)

    @cached_property
    def influences(self) -> tuple[Influence, ...] | None:
        """Effects without each data set; None where that is not known, or may not be.

        A reader subtracts: an effect in all data sets and without one tell of that one. So they are
        of nodes alone of which each data set's own estimates are shown, from what these come from:
        rows of the small data sets that the report leaves out, and of data sets that it puts
        together, are in none of them.
        """
        known, net = self.stats, self.net
        old = [level not in net.adapted for level in net.levels]
        rows = dict(zip(net.levels, net.n.tolist(), strict=True))
        if known is None or not _FEW_LEFT < len(known.levels) <= _MOST_LEFT:
            return None
        if not all(rows.get(v) == n for v, n in zip(known.levels, known.n.tolist(), strict=True)):
            return None
        if len(known.levels) != sum(old) or not self.shown.all():
            return None
        found = influences(net, known)
        return tuple(own for own in found if self.disclosed.of(own.child).all())

    @cached_property
    def p_values(self) -> dict[Pair, float]:
        """The p-values of the tests."""
        return {arc: test.p_value for arc, test in self.tests.items()}


def rows_of_estimates(net: Network, data: object) -> object:
    """Where rows were split, those that estimates are from: the network's own, or split again.

    The same rows in the same order have the same halves. What is other rows stays as it is.
    """
    if net.split is None:
        return data
    if net.fitted_to is not None:
        return net.fitted_to
    whole = data
    if not is_data(data):
        if data is None or not net.group:
            return data
        group = net.group if net.unit is None else [net.group, net.unit]
        known = {
            node: fit.categories if is_ordered(fit.kind) else fit.kind
            for node, fit in net.fits.items()
        }
        missing: Missing = "drop" if net.missing is None else "em"
        whole = table(data, group=group, columns=net.dag.nodes, kinds=known, missing=missing)
    if not is_data(whole) or not whole.has_rows:
        return data
    rest = halves(whole, net.split.seed)[2]
    same = rest.levels == net.levels and (rest.n == net.n).all()
    return rest if same else data


def masked(found: Estimates, shown: Flags) -> Estimates:
    """Estimates, NaN in data sets that are not shown."""
    own: dict[str, Any] = {}
    for name in ("effect", "interval", "alone", "alone_interval"):
        values = getattr(found, name)
        own[name] = np.where(shown.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)
    return replace(found, **own)


def gathered(
    net: Network,
    data: object,
    boot: Bootstrap | None,
    found: Comparison | None,
    *,
    open: bool = False,
    constraints: Constraints = _NONE,
    evidence: tuple[Evidence, ...] = (),
) -> Context:
    """Gather it, or raise if the rows lack a column."""
    data = rows_of_estimates(net, data)
    made_up = all(fit.status is Status.GIVEN for fit in net.fits.values())
    table = data if is_data(data) and data.has_rows else None
    counts = data if is_data(data) and any(data.categories) and table is None else None
    cells = None
    if data is not None and counts is None:
        cells = _read(net, data) if table is None else _of_table(net, table)
    learned = net.stats or counts or (None if cells is None else _learned(net, cells, table))
    may = undisclosed(net) if open or made_up else disclosed(net, learned)
    dropped = None
    known: Data | None = net.stats
    if cells is not None:
        lost = _lost(net, cells, table)
        net, cells = may.net, _of_network(may.net, cells, net)
        dropped = {level: lost[level] for level in net.levels}
    net = may.net
    known = net.stats
    given, treated = None, {}
    residuals: dict[str, Fitting] = dict.fromkeys(net.dag.nodes, _NO_ROWS)
    if cells is not None:
        assert dropped is not None
        residuals = {node: _residuals(may, cells, node) for node in net.dag.nodes}
        given = _complete(net, cells, dropped, 1 if open or made_up else FEWEST)
        known = given if known is None else known
        treated = {
            name: effects
            for name in net.inputs
            if (effects := _treated(may, cells, name)) is not None
        }
    if net.stats is not None:
        dropped = dict(zip(net.stats.levels, net.stats.dropped.tolist(), strict=True))
    rows = cells is not None
    own = net, boot, found, known, dropped, rows, open, given, residuals, treated
    return Context(*own, may, constraints, evidence)


def _learned(net: Network, cells: RowCells, table: Data | None) -> Data | None:
    """What a network was learned from, if these are its rows."""
    if table is not None and table.levels == net.levels and (table.n == net.n).all():
        return table
    old = np.array([level not in net.adapted for level in net.levels])
    whole = (cells.codes >= 0) & np.append(old, False)[cells.codes]
    if net.missing is None:
        whole &= ~np.isnan(cells.values).any(axis=1)
    else:
        whole &= ~np.isnan(cells.values).all(axis=1)
    n = np.bincount(cells.codes[whole], minlength=len(net.levels))
    if (n != np.where(old, net.n, 0)).any():
        return None
    rows = _table(net, cells, net.dag.nodes, whole)
    if any(fit.gaussian is None for fit in net.fits.values()):
        return rows
    known = rows.stats() if rows.patterns is None else rows.patterns.completed()
    return known.with_inputs(net.inputs)


def _of_network(page: Network, cells: RowCells, net: Network) -> RowCells:
    """Rows of the network's data sets that a report's has, with its columns and levels."""
    if page is net:
        return cells
    known = [level in page.levels for level in net.levels]
    code = np.array(
        [page.levels.index(v) if k else -1 for v, k in zip(net.levels, known, strict=True)]
    )
    keep = (cells.codes < 0) | np.append(known, True)[cells.codes]
    values = cells.of(page.dag.nodes)[keep]
    for k, node in enumerate(page.dag.nodes):
        before, after = (of.fits[node].categories for of in (net, page))
        if before != after:
            new = [float(after.index(v)) if v in after else np.nan for v in before]
            there = ~np.isnan(values[:, k])
            values[there, k] = np.array(new)[values[there, k].astype(np.int64)]
    codes = np.where(cells.codes < 0, -1, code[cells.codes])[keep]
    columns = tuple(c for c in cells.columns if c in page.dag.nodes or c not in net.dag.nodes)
    return RowCells(page.dag.nodes, values, codes, columns, cells.index[keep])


def _of_table(net: Network, table: Data) -> RowCells:
    """Rows in memory, if they have the network's columns, data sets and levels."""
    checked_data(net, table)
    codes = np.repeat([find_level(level, net.levels) for level in table.levels], table.n)
    rows = table.select(net.dag.nodes)
    columns = (*rows.names, table.group)
    values = np.array(rows.cases(rows.names, incomplete=True).columns).T
    return RowCells(rows.names, values, codes, columns, pd.RangeIndex(rows.n_rows))


def _read(net: Network, data: object) -> RowCells:
    cells = read_cells(data, net.dag.nodes, net.group, net.levels, kinds_of(net.fits))
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


def _lost(net: Network, cells: RowCells, table: Data | None) -> dict[Hashable, int]:
    """How many rows of each data set have missing values."""
    known, missing = cells.codes >= 0, np.isnan(cells.values).any(axis=1)
    counts = np.bincount(cells.codes[missing & known], minlength=len(net.levels))
    if table is not None:
        at = [find_level(level, net.levels) for level in table.levels]
        counts = counts + np.bincount(at, table.dropped, len(net.levels)).astype(np.int64)
    return dict(zip(net.levels, counts.tolist(), strict=True))


def _complete(
    net: Network, cells: RowCells, dropped: Mapping[Hashable, int], least: int
) -> Data | None:
    """The statistics of complete rows, or these, of data sets that have so many."""
    whole = (cells.codes >= 0) & ~np.isnan(cells.values).any(axis=1)
    n = np.bincount(cells.codes[whole], minlength=len(net.levels))
    whole &= np.append(n >= least, False)[cells.codes]
    if not whole.any():
        return None
    rows = _table(net, cells, net.dag.nodes, whole)
    rows = replace(rows, dropped=np.array([dropped[level] for level in rows.levels]))
    return rows if any(fit.gaussian is None for fit in net.fits.values()) else rows.stats()


def _table(net: Network, cells: RowCells, names: Sequence[str], whole: Flags) -> Table:
    """Some rows of the data sets that have any, with columns and levels as in the network."""
    codes, values = cells.codes[whole], cells.of(names)[whole]
    rows = np.bincount(codes, minlength=len(net.levels))
    there = np.flatnonzero(rows)
    return Table(
        names=tuple(names),
        kinds=tuple(net.fits[node].kind for node in names),
        categories=tuple(net.fits[node].categories for node in names),
        levels=tuple(net.levels[j] for j in there),
        offsets=np.concatenate([[0], np.cumsum(rows[there])]),
        values=values[np.argsort(codes, kind="stable")].T,
        dropped=np.zeros(len(there), dtype=np.int64),
        group=net.group,
        inputs=tuple(name for name in net.inputs if name in names),
    )


def _treated(may: Disclosed, cells: RowCells, cause: str) -> pd.DataFrame | None:
    """What an input does to the other nodes, each in the rows that have both.

    Without the data sets of which too few rows have both. None for one that has one value in each
    data set: there is nothing to compare inside them.
    """
    net = may.net
    known = (cells.codes >= 0) & ~np.isnan(cells.of([cause])[:, 0])
    values = np.column_stack([cells.codes[known], cells.of([cause])[known, 0]])
    if len(np.unique(values, axis=0)) == len(np.unique(values[:, 0])):
        return None
    tables = []
    for node in net.dag.nodes:
        whole = (cells.codes >= 0) & ~np.isnan(cells.of([cause, node])).any(axis=1)
        whole &= np.append(may.of((cause, node)), False)[cells.codes]
        if node not in net.inputs and whole.any():
            tables.append((node, _table(net, cells, [cause, node], whole)))
    if not tables:
        return None
    try:
        return effects_in_tables(cause, tables, Partial())
    except DataError:  # it does not vary in the rows
        return None


def _residuals(may: Disclosed, cells: RowCells, node: str) -> Fitting:
    """How a node fits, or why that is not known: the report is written all the same."""
    net = may.net
    try:
        of = cell_calibration if net.fits[node].categories else cell_residuals
        known = of(net, cells, node)
        return known if may.shown.all() else _NOT_APART
    except DataError as error:
        return f"There are no residuals: {error}."
