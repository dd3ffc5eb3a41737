"""The tables of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.comparison import Comparison
from poolbn.assess.effectsizes import explained, variances
from poolbn.assess.patternmap import pattern_map
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import FEWEST
from poolbn.inference.heterogeneity import RESIDUAL
from poolbn.moments.groupstats import Filled, GroupStats
from poolbn.network.network import Network
from poolbn.page.gaussian import sd_range
from poolbn.page.material import Material
from poolbn.page.words import is_warning
from poolbn.show.figures import is_sure, pair_name
from poolbn.show.texts import arrow, number, p_value, percent

_DATA_SETS = 12  # whose rows a map of missing values counts
_MOST = 400  # rows of a table that grows with the square of the nodes


class Cell(NamedTuple):
    """What a cell shows, what it is sorted by (None for last), and the arc or node it leads to."""

    text: str
    value: float | str | None
    arc: int | None = None
    node: int | None = None


@dataclass(frozen=True)
class ReportTable:
    """A table: its id, its title, names of columns with explanations, rows, and a note."""

    key: str
    title: str
    columns: Mapping[str, str]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        columns = zip(*self.rows, strict=True)
        return tuple(not any(isinstance(cell.value, str) for cell in cells) for cells in columns)


def report_tables(of: Material) -> dict[str, ReportTable]:
    """The tables of a report, by their ids."""
    tables = [_arcs(of), _nodes(of), _data(of)]
    if of.stats is not None and of.stats.filled is not None:
        tables.append(_missing(of.stats, of.stats.filled))
    if of.sizes:
        tables.append(_totals(of))
    if of.tests:
        tables.append(_tests(of))
        if of.sizes and of.stats is not None:
            tables.append(_within_between(of.net, of.stats))
    if of.found is not None:
        tables += [_poolings(of.found), _errors(of.found)]
    if of.boot is not None:
        tables.append(_strengths(of.net, of.boot))
    return {table.key: table for table in tables}


def _table(
    key: str,
    title: str,
    help: Mapping[str, str],
    rows: Sequence[Sequence[Cell | None]],
    *notes: str,
) -> ReportTable:
    """A table without the columns that have no cells."""
    there = [not rows or rows[0][k] is not None for k in range(len(help))]
    columns = dict(compress(help.items(), there))
    cells = tuple(tuple(cell for cell in row if cell is not None) for row in rows)
    return ReportTable(key, title, columns, cells, " ".join(filter(None, notes)))


def _value(value: float | None, text: str | None = None) -> Cell:
    sortable = value is not None and math.isfinite(value)
    return Cell(number(value) if text is None else text, value if sortable else None)


def _p(p: float | None) -> Cell:
    return _value(p, p_value(p))


def _text(text: str, arc: int | None = None, node: int | None = None) -> Cell:
    return Cell(text, text.lower(), arc, node)


def _arcs(of: Material) -> ReportTable:
    """A row for each arc."""
    help = {
        "arc": "choose it to see its effect in each data set",
        "effect": "change of the second for one unit of the first, in the population of data sets",
        "lower": "of the 95% interval of the effect",
        "upper": "of the 95% interval of the effect",
        "standardised": "in standard deviations of the second for one of the first",
        "SD between": "standard deviation of the effect between data sets",
        "opposite": "share of the data sets in which the effect has the other sign",
        "p, same effect": "test for the same effect in all data sets",
        "strength": "share of bootstrap networks with an arc between the two",
        "direction": "whether equivalent networks have the arc the other way round",
    }
    rows = []
    for size, row in zip(of.sizes, of.effects, strict=True):
        fit = of.net.linear_fits[size.child]
        strength = None if of.strengths is None else of.strengths[size.index].strength
        cells = (
            _text(arrow(size.parent, size.child), arc=size.index),
            *(_value(row[name]) for name in ("effect", "lower", "upper")),
            _value(size.effect),
            _value(fit.between_sd(fit.position(size.parent))),
            _value(row["opposite"], percent(row["opposite"])),
            _p(of.p_values[size.parent, size.child]) if of.tests else None,
            None if strength is None else _value(strength, f"{strength:.2f}"),
            _text("either way" if size.reversible else "determined"),
        )
        rows.append(cells)
    note = "" if rows else "There are no arcs: no variable depends on another."
    return _table("arcs", "Direct effects", help, rows, note)


def _nodes(of: Material) -> ReportTable:
    """A row for each node."""
    help = {
        "variable": "choose it to see its distribution",
        "depends on": "its parents",
        "explained": "share of the variance inside data sets that its parents explain",
        "residual SD": "least and largest of the data sets",
        "p, same SD": "test for the same residual variance in all data sets",
        "log-likelihood": "of its rows given its parents",
        "parameters": "that were estimated",
        "pooling": "how the data sets share strength",
        "fit": "what happened in the fit",
    }
    rows = []
    for i, node in enumerate(of.net.dag.nodes):
        fit, share = of.net.linear_fits[node], explained(of.net, node)
        known = fit.parents and math.isfinite(share)
        cells = (
            _text(node, node=i),
            _text(", ".join(fit.parents) or "–"),
            _value(share, percent(share) if known else "–"),
            _value(float(np.sqrt(fit.sigma2[of.shown].max(initial=0))), sd_range(of, fit)),
            _p(of.p_values.get((RESIDUAL, node))) if of.tests else None,
            _value(fit.loglik),
            _value(float(fit.n_params)),
            _text(str(fit.pooling)),
            _text(f"⚠ {fit.status}" if is_warning(fit) else str(fit.status)),
        )
        rows.append(cells)
    return _table("nodes", "Variables", help, rows)


def _tests(of: Material) -> ReportTable:
    """A row for each test for differences between data sets."""
    help = {
        "what": "an effect, or the residual variance of a variable",
        "test": "F: exact, with one residual variance; Welch or simulated: variances may differ",
        "statistic": "F, or Bartlett's chi-square",
        "p-value": "small if data sets differ by more than chance makes",
        "adjusted": "for the number of arcs, or of variables (Benjamini and Hochberg)",
    }
    index = {node: i for i, node in enumerate(of.net.dag.nodes)}
    arcs = {arc: k for k, arc in enumerate(of.net.dag.arcs)}
    rows = []
    for (parent, child), found in of.tests.items():
        if parent == RESIDUAL:
            first = _text(f"residual variance of {child}", node=index[child])
        else:
            first = _text(arrow(parent, child), arc=arcs[parent, child])
        numbers = _value(found.statistic), _p(found.p_value), _p(found.p_adjusted)
        rows.append((first, _text(found.kind), *numbers))
    note = (
        "A search of the same data chose the effects, so their p-values are too small, as with "
        "every test after a search."
    )
    return _table("tests", "Tests for equality", help, rows, note)


def _within_between(net: Network, stats: GroupStats) -> ReportTable:
    """A row for each arc: the effect within data sets, between their means, and the difference."""
    help = {
        "arc": "choose it to see its effect in each data set",
        "within": "effect inside data sets",
        "lower": "of the 95% interval of the effect inside data sets",
        "upper": "of the 95% interval of the effect inside data sets",
        "between": "effect between the means of data sets",
        "difference": "between minus within",
        "p-value": "small if the two differ by more than chance makes",
        "adjusted": "for the number of arcs (Benjamini and Hochberg)",
    }
    shown = ["within", "within_lower", "within_upper", "between", "difference"]
    rows = []
    for index, row in enumerate(net.within_between(stats).to_dict("records")):
        first = _text(arrow(row["parent"], row["child"]), arc=index)
        numbers = [_value(float(row[name])) for name in shown]
        rows.append((first, *numbers, *(_p(row[name]) for name in ("p_value", "p_adjusted"))))
    note = (
        "If the two differ, a parent goes with the level of data sets for reasons of its own, and "
        "the effect within data sets is the one to trust."
    )
    return _table("within", "Within data sets and between them", help, rows, note)


def _data(of: Material) -> ReportTable:
    """A row for each data set."""
    net, dropped = of.net, of.dropped
    help = {
        "data set": f"by the group column {net.group}",
        "rows": "that were used",
        "share": "of all rows: the probability of the data set",
        "left out": "rows with missing values",
        "part": "whether the network was learned from it",
    }
    rows = []
    for level, name, n in zip(net.levels, of.names, net.n.tolist(), strict=True):
        lost = None if dropped is None else dropped.get(level, 0)
        part = _text("came later" if level in net.adapted else "learned from")
        cells = (
            _text(name),
            _value(float(n), f"{n:,}"),
            _value(n / net.n_rows, percent(n / net.n_rows)),
            None if lost is None else _value(float(lost), f"{lost:,}"),
            part if net.adapted else None,
        )
        rows.append(cells)
    note = "" if dropped is not None else "How many rows were left out is not known here."
    return _table("data", "Data sets", help, rows, note)


def _missing(stats: GroupStats, filled: Filled) -> ReportTable:
    """A row for each column with missing values."""
    help = {
        "variable": "with missing values",
        "missing": "of all rows",
        "least": "of the data sets",
        "in": "that data set",
        "most": "of the data sets",
        "there": "the data set that lacks most",
        "gained": "values in rows with gaps, which dropping these rows would lose",
    }
    gained = filled.observed.sum(axis=0) - filled.patterns.known.n_rows
    share = 1 - filled.observed / stats.n[:, None]
    whole = 1 - filled.observed.sum(axis=0) / stats.n_rows
    rows = []
    for k in np.flatnonzero(whole > 0):
        low, high = int(share[:, k].argmin()), int(share[:, k].argmax())
        cells = [_text(stats.names[k]), _value(float(whole[k]), percent(float(whole[k])))]
        for j in (low, high):
            lost = float(share[j, k])
            cells += [_value(lost, percent(lost)), _text(str(stats.levels[j]))]
        rows.append((*cells, _value(float(gained[k]), f"{gained[k]:,}")))
    note = (
        "Values are taken as missing at random, given the data set and the other values of the row."
    )
    return _table("missing", "Missing values", help, rows, note)


class MissingMap(NamedTuple):
    """Which variables rows lack: these by patterns, and rows of each pattern by data set."""

    variables: tuple[tuple[str, tuple[bool, ...]], ...]
    counts: tuple[tuple[str, tuple[str, ...]], ...]
    others: bool  # whether the last count is that of rarer patterns


def missing_map(of: Material) -> MissingMap | None:
    """The map, if values are missing; without patterns of few rows, unless rows may be shown."""
    if of.stats is None or of.stats.patterns is None or not of.stats.patterns.has_gaps:
        return None
    found = pattern_map(of.stats.patterns, 1 if of.open else FEWEST)
    others = bool(found.others.any())

    def texts(own: NDArray[np.int64], other: int) -> tuple[str, ...]:
        every = [*own.tolist(), other]
        hidden = [0 < n < FEWEST and not of.open for n in every]
        told = [f"< {FEWEST}" if h else f"{n:,}" for n, h in zip(every, hidden, strict=True)]
        return tuple(told if others else told[:-1])

    counts = [("all data sets", texts(found.rows.sum(axis=1), int(found.others.sum())))]
    if len(of.stats.levels) <= _DATA_SETS:
        parts = zip(of.stats.levels, found.rows.T, found.others.tolist(), strict=True)
        counts += [(str(level), texts(own, other)) for level, own, other in parts]
    lacks = zip(found.columns, found.missing.tolist(), strict=True)
    return MissingMap(tuple((name, tuple(each)) for name, each in lacks), tuple(counts), others)


def _totals(of: Material) -> ReportTable:
    """A row for each two nodes that a directed path joins: the largest ones, if they are many."""
    help = {
        "cause": "that is set by an intervention",
        "effect": "that follows",
        "total": "expected change for one unit of the cause, along all paths",
        "SD between": "standard deviation of the total between data sets",
        "least": "of the data sets",
        "largest": "of the data sets",
        "standardised": "mean of the data sets, in standard deviations",
    }
    net = of.net
    sd = {node: math.sqrt(variance) for node, variance in variances(net).items()}
    index = {node: i for i, node in enumerate(net.dag.nodes)}
    rows = []
    table = net.total_effects().itertuples(index=False, name=None)
    for cause, effect, total, between, *own in table:
        unit = sd[cause] / sd[effect] if sd[effect] > 0 else math.nan
        ends = (_text(node, node=index[node]) for node in (cause, effect))
        told = list(compress(own, of.shown.tolist())) or [math.nan]
        numbers = (total, between, min(told), max(told), float(np.mean(own)) * unit)
        rows.append((*ends, *(_value(float(value)) for value in numbers)))
    count = len(rows)
    rows.sort(key=lambda row: -abs(row[-1].value) if isinstance(row[-1].value, float) else 0.0)
    note = (
        "What a change of one variable from outside does to another, if each arc of the network is "
        "a cause, and no common cause is missing."
    )
    more = f"The {_MOST} largest of {count:,}; net.total_effects() has all." * (count > _MOST)
    return _table("totals", "Total effects", help, rows[:_MOST], note, more)


def _poolings(found: Comparison) -> ReportTable:
    """A row for each pooling."""
    help = {
        "pooling": "",
        "score": "of the network learned from all rows",
        "arcs": "of that network",
        "log-likelihood": "of a held-out row; higher is better",
        "difference": "from the best model",
        "± se": "standard error of that, over the folds",
        "folds worse": f"than the best model, of {len(found.rows)}",
        "new data set": "log-likelihood of a row of a data set that was left out as a whole",
        "error, known": "of predictions, in standard deviations, with the data set known",
        "error, unknown": "the same with the data set unknown",
        "F1": "of guessing the data set of a row",
    }
    rows, notes = [], []
    for name, *values, note in found.table().reset_index().itertuples(index=False, name=None):
        title = f"{name} (best)" if name == found.best else str(name)
        rows.append((_text(title), *(_value(float(value)) for value in values)))
        notes.append(f"{name}: {note}." if note else "")
    return _table("poolings", "Models compared", help, rows, *notes)


def _errors(found: Comparison) -> ReportTable:
    """A row for each variable: how well poolings predict it."""
    names = [f"{pooling}, {kind}" for kind in ("known", "unknown") for pooling in found.poolings]
    rows = [
        (_text(str(variable)), *(_value(float(value), f"{value:.3f}") for value in values))
        for variable, *values in found.by_variable().itertuples(name=None)
    ]
    note = (
        "Root mean square error of each variable predicted from all others, over its standard "
        "deviation, with the data set of a row known and unknown: 1 is as bad as always predicting "
        "the mean."
    )
    help = dict.fromkeys(["variable", *names], "")
    return _table("errors", "Errors of predictions", help, rows, note)


def _strengths(net: Network, boot: Bootstrap) -> ReportTable:
    """A row for each two nodes with an arc in a bootstrap network."""
    help = {
        "pair": "in the more frequent direction",
        "strength": "share of the networks with an arc between the two",
        "direction": "share of these in which it points as named",
        "above threshold": f"of {number(boot.threshold)}",
        "in this network": "and in which direction",
    }
    arcs = {arc: k for k, arc in enumerate(net.dag.arcs)}
    pairs = boot.pairs()
    rows = []
    for pair in pairs[:_MOST]:
        named, other = arcs.get((pair.parent, pair.child)), arcs.get((pair.child, pair.parent))
        here = "as named" if named is not None else "no" if other is None else "the other way"
        cells = (
            _text(pair_name(pair), arc=other if named is None else named),
            _value(pair.strength, f"{pair.strength:.2f}"),
            _value(pair.direction, f"{pair.direction:.2f}"),
            _text("yes" if is_sure(boot, pair.strength) else "no"),
            _text(here),
        )
        rows.append(cells)
    note = f"The {_MOST} strongest of {len(pairs):,} pairs." if len(pairs) > _MOST else ""
    return _table("strengths", "Strength of arcs", help, rows, note)
