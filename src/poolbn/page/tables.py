"""The tables of a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np

from poolbn.assess.comparison import Comparison
from poolbn.assess.graphtest import GraphTest
from poolbn.assess.patternmap import pattern_map
from poolbn.assess.resample import Bootstrap
from poolbn.assess.residuals import FEWEST
from poolbn.graph.pairs import Pair
from poolbn.nodes.terms import RESIDUAL
from poolbn.page.cards import scale_of, three_digits
from poolbn.page.context import Context
from poolbn.page.numbers import sd_range
from poolbn.page.summary import is_warning, standardised
from poolbn.show.figures import arrow, is_sure, number, p_value, pair_name, percent, term_name
from poolbn.wording import DATA_SET, Noun, noun_of

_MOST = 400  # rows of a table that grows with the square of the nodes
_DIGITS = 3
_DATA_SETS = 12  # that have a column each, or whose rows a map of missing values counts
_PAIRS = 24  # causes with effects, of which the total is simulated


class TableCell(NamedTuple):
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
    rows: tuple[tuple[TableCell, ...], ...]
    note: str = ""

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        columns = zip(*self.rows, strict=True)
        return tuple(not any(isinstance(cell.value, str) for cell in cells) for cells in columns)


def made(
    key: str,
    title: str,
    help: Mapping[str, str],
    rows: Sequence[Sequence[TableCell | None]],
    *notes: str,
) -> ReportTable:
    """A table without the columns that have no cells."""
    there = [not rows or rows[0][k] is not None for k in range(len(help))]
    columns = dict(compress(help.items(), there))
    cells = tuple(tuple(cell for cell in row if cell is not None) for row in rows)
    return ReportTable(key, title, columns, cells, " ".join(filter(None, notes)))


def value_cell(value: float | None, text: str | None = None) -> TableCell:
    """A number, which may have a text of its own."""
    sortable = value is not None and math.isfinite(value)
    return TableCell(number(value) if text is None else text, value if sortable else None)


def p_cell(p: float | None) -> TableCell:
    """A p-value."""
    return value_cell(p, p_value(p))


def text_cell(text: str, arc: int | None = None, node: int | None = None) -> TableCell:
    """A text, which may lead to an arc or a node."""
    return TableCell(text, text.lower(), arc, node)


def share_cell(share: float | None, *, whole: bool = False) -> TableCell:
    """A share, to two digits or in whole percent."""
    if share is None or math.isnan(share):
        return value_cell(share, "–")
    return value_cell(share, percent(share) if whole else f"{share:.2f}")


def _interval_cell(low: float, high: float) -> TableCell:
    known = math.isfinite(low + high)
    return value_cell(low, f"{number(low)} to {number(high)}" if known else "–")


def report_tables(of: Context) -> dict[str, ReportTable]:
    """The tables of a report, by their ids."""
    tables = [_arcs(of), _nodes(of), _data(of), _missing(of), _totals(of)]
    if of.tests:
        tables.append(_tests(of))
        if any(of.net.fits[size.child].gaussian for size in of.sizes):
            tables += [
                _within_between(of, groups) for groups in (of.net.unit, of.net.group) if groups
            ]
    if of.found is not None:
        tables += [_poolings(of, of.found), _errors(of, of.found)]
    if of.boot is not None:
        tables.append(_strengths(of, of.boot))
    if of.doubts:
        tables.append(_doubts(of))
    if of.graph_test is not None:
        tables += [_claims(of, of.graph_test), _r2(of.graph_test)]
    return {table.key: table for table in tables if table is not None}


def _arcs(of: Context) -> ReportTable:
    """A row for each arc, or for each of its effects where levels have one each."""
    help = {
        "arc": f"choose it to see its effect in each {of.sets.one}",
        "for": "levels of the first and of the second variable, each beside the one they replace",
        "scale": "of the effect, in each row",
        "effect": "change of the second for one unit or another level of the first, or what its "
        f"odds or its mean are multiplied by, in the population of {of.sets.many}",
        "95% interval": "of the effect",
        "standardised": "in standard deviations of the second for one of the first, of log odds or "
        "logarithms where effects are ratios",
        "SD between": f"standard deviation of the effect between {of.sets.many}, or of the "
        "logarithm of a ratio",
        "opposite": f"share of the {of.sets.many} in which the effect has the other sign",
        "p, same effect": f"test for the same effect in all {of.sets.many}",
        "strength": "share of bootstrap networks with an arc between the two",
        "probability": "of an arc between the two, either way",
        "direction": "why it is as it is; equivalent networks have arcs whose direction is "
        "preferred by the score only the other way round",
    }
    rows, levels = [], any(term_name(found) for terms in of.estimates for found in terms)
    for size, terms in zip(of.sizes, of.estimates, strict=True):
        for found, effect in zip(terms, size.each, strict=True):
            middle, low, high = (
                float(found.reported(value))
                for value in (found.population, *found.population_interval)
            )
            known = found.effect[np.isfinite(found.effect)]
            opposite = float(np.mean(known * found.population < 0)) if len(known) else math.nan
            strength = probability = None
            if of.strengths is not None:
                strength = share_cell(of.strengths[size.index].strength)
            if of.posterior is not None:
                pair = of.doubts[frozenset((size.parent, size.child))]
                probability = share_cell(pair.probability)
            cells = (
                text_cell(arrow(size.parent, size.child), arc=size.index),
                text_cell(term_name(found) or "each unit") if levels else None,
                text_cell(found.scale),
                value_cell(middle),
                _interval_cell(low, high),
                value_cell(effect, standardised(of, effect)),
                value_cell(found.between_sd),
                share_cell(opposite, whole=True),
                p_cell(of.p_values.get((size.parent, size.child))) if of.tests else None,
                strength,
                probability,
                text_cell(str(size.direction)),
            )
            rows.append(cells)
    note = "" if rows else "There are no arcs: no variable depends on another."
    return made("arcs", "Direct effects", help, rows, note)


def _nodes(of: Context) -> ReportTable:
    """A row for each node."""
    help = {
        "variable": "choose it to see its distribution",
        "kind": "continuous, discrete or a count; inputs have no distribution of their own",
        "depends on": "its parents",
        "model": "of its distribution given its parents",
        "explained": f"share of the variance inside {of.sets.many} that its parents explain, of "
        "log odds of two levels and of the logarithm of a count",
        "residual SD": f"least and largest of the {of.sets.many}",
        "p, same SD": f"test for the same residual variance in all {of.sets.many}",
        "log-likelihood": "of its rows given its parents",
        "parameters": "that were estimated",
        "pooling": f"how the {of.sets.many} share strength",
        "fit": "what happened in the fit",
    }
    rows = []
    for i, node in enumerate(of.net.dag.nodes):
        fit = of.net.fits[node]
        sd = value_cell(None)
        if (one := fit.gaussian) is not None:
            own = float(np.sqrt(one.sigma2[of.shown].max(initial=0)))
            sd = value_cell(own, sd_range(of, one))
        cells = (
            text_cell(node, node=i),
            text_cell(f"{fit.kind}{', input' * (node in of.net.inputs)}"),
            text_cell(", ".join(of.net.dag.parents(node)) or "–"),
            text_cell(fit.model),
            share_cell(of.spreads.explained[node] if fit.parents else math.nan, whole=True),
            sd,
            p_cell(of.p_values.get((RESIDUAL, node))) if of.tests else None,
            value_cell(fit.loglik),
            value_cell(float(fit.n_params)),
            text_cell(str(fit.pooling)),
            text_cell(f"⚠ {fit.status}" if is_warning(fit) else str(fit.status)),
        )
        rows.append(cells)
    return made("nodes", "Variables", help, rows)


def _totals(of: Context) -> ReportTable | None:
    """A row for each change of a cause and each number: the largest ones, if they are many."""
    help = {
        "cause": "that is set by an intervention",
        "change": "from what to what",
        "effect": "that follows",
        "scale": "of the total: a difference or a ratio of means, risks or rates",
        "total": f"along all paths, in the population of {of.sets.many}",
        "lower": "of the 95% interval of the total",
        "upper": "of the 95% interval of the total",
        "SD between": f"standard deviation of the total between {of.sets.many}, or of the "
        "logarithm of a ratio",
        "least": f"of the {of.sets.many}",
        "largest": f"of the {of.sets.many}",
        "standardised": f"mean of the {of.sets.many}, in standard deviations, where a mean changes",
    }
    net, causes = of.net, list(_causes(of))
    found = [row for cause in causes for row in _changes(of, cause)]
    if not found:
        return None
    found.sort(key=lambda row: -row[0])
    more = ""
    if any(net.dag.children(node) and node not in causes for node in net.dag.nodes):
        more = f"Here of {', '.join(causes)}; net.total_effects() has all."
    elif len(found) > _MOST:
        more = f"The {_MOST} largest of {len(found):,}; net.total_effects() has all."
    note = (
        "What a change of one variable from outside does to another, if each arc of the network is "
        "a cause, and no common cause is missing."
    )
    return made("totals", "Total effects", help, [row for _, row in found[:_MOST]], note, more)


def _causes(of: Context) -> Iterator[str]:
    """Those with total effects that are exact, and inputs, as many as take little time."""
    dag, room = of.net.dag, _PAIRS
    for cause in dag.nodes:
        reached = dag.descendants(cause)
        simulated = any(of.net.fits[node].gaussian is None for node in reached)
        if reached and (not simulated or (cause in of.net.inputs and len(reached) <= room)):
            yield cause
            room -= len(reached) if simulated else 0


def _changes(of: Context, cause: str) -> Iterator[tuple[float, tuple[TableCell, ...]]]:
    """Rows of `Network.total_effects`, each with the size of the standardised effect."""
    net, columns = of.net, of.spreads.columns
    for row in net.total_effects(cause).itertuples(index=False, name=None):
        _, *ends, effect, outcome, scale, total, lower, upper, between, error = row[:11]
        before, after = (number(end) if isinstance(end, float) else str(end) for end in ends)
        path = {cause, effect, *set(net.dag.descendants(cause)) & set(net.dag.ancestors(effect))}
        own = np.array(row[-len(net.levels) :], dtype=np.float64)
        shown = own[np.logical_and.reduce([of.disclosed.of(node) for node in path])]
        low, high = (shown.min(), shown.max()) if len(shown) else (math.nan, math.nan)
        sd, level = of.spreads.children.get((effect, ""), 0.0), f"{cause}={after}"
        standard = math.nan  # but of a change of a mean, with the standard deviation of the cause
        if error == 0 and sd > 0:
            standard = float(own.mean()) * columns[level if level in columns else cause] / sd
        numbers = map(float, (total, lower, upper, between, low, high, standard))
        yield (
            abs(standard) if math.isfinite(standard) else 0.0,
            (
                text_cell(cause, node=of.index[cause]),
                text_cell(f"{before} to {after}"),
                text_cell(f"{effect}{f' = {outcome}' * bool(outcome)}", node=of.index[effect]),
                text_cell(scale),
                *map(value_cell, numbers),
            ),
        )


def treatment_tables(of: Context) -> list[ReportTable]:
    """For each input, a row for each effect of it, in the rows that have both columns."""
    return [_treatment(of, cause, k) for k, cause in enumerate(of.treated)]


def _treatment(of: Context, cause: str, index: int) -> ReportTable:
    sets, levels = of.sets, of.net.fits[cause].categories
    each = dict.fromkeys(of.names, "")
    if len(of.names) > _DATA_SETS:
        each = {"least": f"of the {sets.many}", "largest": ""}
    help = {
        "variable": "choose it to see its distribution",
        "for": f"level of {cause}",
        "scale": "of the effect",
        "effect": f"mean of these {sets.many}",
        "95% interval": "of the mean",
        "p": (
            f"test of no mean effect in these {sets.many}, adjusted for the rows of this table "
            "(Benjamini and Hochberg)"
        ),
        f"all {sets.many}": f"95% interval of the mean in the population of {sets.many}",
        "rows": "that have both variables",
        **each,
    }
    rows = []
    for row in of.treated[cause].sort_values("p_value", kind="stable").to_dict("records"):
        own = np.array([row.get(level, math.nan) for level in of.net.levels], dtype=np.float64)
        own = np.where(of.disclosed.of((cause, row["child"])), own, math.nan)
        if len(of.names) > _DATA_SETS:
            known = own[np.isfinite(own)]
            own = np.array([known.min(), known.max()] if len(known) else [math.nan] * 2)
        mean, *ends = (row[name] for name in ("mean", "mean_lower", "mean_upper"))
        cells = (
            text_cell(row["child"], node=of.index[row["child"]]),
            text_cell(row["level"]) if len(levels) > 2 else None,
            text_cell(scale_of(row)),
            value_cell(mean, three_digits(mean)),
            value_cell(ends[0], " to ".join(map(three_digits, ends))),
            p_cell(row["p_adjusted"]),
            value_cell(row["lower"], " to ".join(three_digits(row[n]) for n in ("lower", "upper"))),
            value_cell(row["rows"], f"{row['rows']:,}"),
            *(value_cell(value, three_digits(value)) for value in own.tolist()),
        )
        rows.append(cells)
    change = f"of {levels[1]} instead of {levels[0]} " if len(levels) == 2 else ""
    note = (
        f"Each variable given {cause} alone, in all rows that have both. If {cause} was "
        f"randomised, these are its effects, {change}in each {sets.one} and in all of them; if "
        f"not, they are associations. Those of single {sets.many} are shrunk towards the others. "
        f"The effect, its interval and p are about these {sets.many} only: where effects vary "
        "around 0, p is small more often than in 5% of tables."
    )
    return made(f"treated-{index}", f"What {cause} changes", help, rows, note)


def _tests(of: Context) -> ReportTable:
    """A row for each test for differences between data sets."""
    help = {
        "what": "an effect, or the residual variance of a variable",
        "test": (
            "Welch or simulated: residual variances may differ; F: as if they were equal, where no "
            f"two {of.sets.many} show one; score: of odds or rate ratios"
        ),
        "statistic": "F, or the chi-square of Bartlett's or of a score test",
        "p-value": f"small if {of.sets.many} differ by more than chance makes",
        "adjusted": "for the number of arcs, or of variables (Benjamini and Hochberg)",
    }
    rows = []
    for (parent, child), found in of.tests.items():
        if parent == RESIDUAL:
            first = text_cell(f"residual variance of {child}", node=of.index[child])
        else:
            first = text_cell(arrow(parent, child), arc=of.index[parent, child])
        numbers = value_cell(found.statistic), p_cell(found.p_value), p_cell(found.p_adjusted)
        rows.append((first, text_cell(found.kind), *numbers))
    note = (
        "A search of the same data chose the effects, so their p-values are too small, as with "
        "every test after a search."
    )
    return made("tests", "Tests for equality", help, rows, note)


def _within_between(of: Context, groups: str) -> ReportTable:
    """A row for each arc to a continuous node: the effect in groups, and between their means.

    Groups are data sets, or units inside them.
    """
    inner = groups == of.net.unit
    sets = of.sets
    if inner:
        sets = named if (named := noun_of(groups)) != DATA_SET else Noun("unit", "units")
    help = {
        "arc": f"choose it to see its effect in each {of.sets.one}",
        "level": "of the first variable, in place of its first one",
        "within": f"effect inside {sets.many}",
        "95% interval": f"of the effect inside {sets.many}",
        "between": f"effect between the means of {sets.many}"
        + f" of the same {of.sets.one}" * inner,
        "difference": "between minus within",
        "p-value": "small if the two differ by more than chance makes",
        "adjusted": "for the number of arcs (Benjamini and Hochberg)",
    }
    rows = [
        (
            text_cell(arrow(*arc), arc=of.index[arc]),
            text_cell(row["level"] or "–"),
            value_cell(row["within"]),
            _interval_cell(row["within_lower"], row["within_upper"]),
            value_cell(row["between"]),
            value_cell(row["difference"]),
            p_cell(row["p_value"]),
            p_cell(row["p_adjusted"]),
        )
        for row in of.net.within_between(of.stats).to_dict("records")
        if row["groups"] == groups
        and (arc := (row["parent"], row["child"]))[1] not in of.disclosed.grouped
    ]
    note = (
        f"If the two differ, a parent goes with the level of {sets.many} for reasons of its own, "
        f"and the effect within {sets.many} is the one to trust."
    )
    key = "within_units" if inner else "within"
    return made(key, f"Within {sets.many} and between them", help, rows, note)


def _data(of: Context) -> ReportTable:
    """A row for each data set."""
    net, dropped = of.net, of.dropped
    incomplete = net.missing is not None and net.stats is None
    help = {
        of.sets.one: f"by the group column {net.group}",
        "rows": "that were used",
        "share": f"of all rows: the probability of the {of.sets.one}",
        "left out": "rows with missing values",
        "incomplete": "rows with missing values, which count for what they have",
        "part": "whether the network was learned from it",
    }
    rows = []
    for j, (level, name) in enumerate(zip(net.levels, of.names, strict=True)):
        n = int(net.n[j]) if of.shown[j] else None
        lost = None
        if dropped is not None:
            lost = value_cell(float(dropped.get(level, 0)), f"{dropped.get(level, 0):,}")
        cells = (
            text_cell(name),
            value_cell(n, "–" if n is None else f"{n:,}"),
            share_cell(None if n is None else n / net.n_rows, whole=True),
            None if incomplete else lost,
            lost if incomplete else None,
            text_cell("came later" if level in net.adapted else "learned from")
            if net.adapted
            else None,
        )
        rows.append(cells)
    unknown = dropped is None and not incomplete
    note = "How many rows were left out is not known here." * unknown
    return made("data", of.sets.many.capitalize(), help, rows, note)


def _missing(of: Context) -> ReportTable | None:
    """A row for each column with missing values; None where there is none."""
    net, sets = of.net, of.sets
    whole = None  # the number of rows without any, where that is known
    if of.stats is not None and of.stats.patterns is not None:
        missing, whole = of.stats.missing, of.stats.patterns.known.n_rows
    elif net.missing is not None:
        missing = net.missing
        if of.given is not None and not net.adapted:
            whole = of.given.n_rows
    else:
        return None
    help = {
        "variable": "with missing values",
        "missing": "of all rows",
        "least": f"of the {sets.many}",
        "in": f"that {sets.one}",
        "most": f"of the {sets.many}",
        "there": f"the {sets.one} that lacks most",
        "gained": "values in incomplete rows, which dropping these rows would lose",
    }
    # Missing are cells of each data set that the network learned from, and each node, (F, N).
    n = net.n[: len(missing)]
    gained = n.sum() - missing.sum(axis=0) - (whole or 0)
    share = missing / n[:, None]
    every = missing.sum(axis=0) / n.sum()
    rows = []
    for k in np.flatnonzero(every > 0):
        low, high = int(share[:, k].argmin()), int(share[:, k].argmax())
        cells = [text_cell(net.dag.nodes[k]), share_cell(float(every[k]), whole=True)]
        for j in (low, high):
            lost = share_cell(float(share[j, k]), whole=True)
            cells += [lost, text_cell(str(net.levels[j]))]
        told = None if whole is None else value_cell(float(gained[k]), f"{gained[k]:,}")
        rows.append((*cells, told))
    note = (
        f"Values are taken as missing at random, given the {sets.one} and the other values of the "
        "row."
    )
    return made("missing", "Missing values", help, rows, note)


class MissingMap(NamedTuple):
    """Which variables rows lack: these by patterns, and rows of each pattern by data set."""

    variables: tuple[tuple[str, tuple[bool, ...]], ...]
    counts: tuple[tuple[str, tuple[str, ...]], ...]
    others: bool  # whether the last count is that of rarer patterns


def missing_map(of: Context) -> MissingMap | None:
    """The map, if values are missing; without patterns of few rows, unless rows may be shown."""
    if of.stats is None or of.stats.patterns is None or not of.stats.patterns.has_gaps:
        return None
    found = pattern_map(of.stats.patterns, 1 if of.open else FEWEST)
    others = bool(found.others.any())
    # With one that is not told, it would be what the others leave of all rows.
    few = (found.rows > 0) & (found.rows < FEWEST)
    exact = of.open or not (few.any() or (found.others > 0).any())

    def about(rows: int) -> str:
        """How many rows: to the nearest ten, unless they may be told exactly."""
        if exact or not rows:
            return f"{rows:,}"
        return f"< {FEWEST}" if rows < FEWEST else f"≈ {round(rows, -1):,}"

    rows = np.vstack([found.rows, found.others] if others else [found.rows]).T  # (F, patterns)
    counts = [(f"all {of.sets.many}", rows.sum(axis=0))]
    if len(of.stats.levels) <= _DATA_SETS:
        counts += zip(map(str, of.stats.levels), rows, strict=True)
    return MissingMap(
        tuple(zip(found.columns, map(tuple, found.missing.tolist()), strict=True)),
        tuple((name, tuple(map(about, own.tolist()))) for name, own in counts),
        others,
    )


def _poolings(of: Context, found: Comparison) -> ReportTable:
    """A row for each pooling; without scores where a report has not all that gave them."""
    sets = of.sets
    help = {
        found.what: "",
        "score": "of the network learned from all rows",
        "arcs": "of that network",
        "log-likelihood": "of a held-out row; higher is better",
        "difference": "from the best model",
        "± se": "standard error of that, over the folds",
        "folds worse": f"than the best model, of {len(found.rows)}",
        f"new {sets.one}": f"log-likelihood of a row of {sets.a} that was left out as a whole",
        "error, known": f"of predictions, in standard deviations, with the {sets.one} known",
        "error, unknown": f"the same with the {sets.one} unknown",
        "F1": f"of guessing the {sets.one} of a row",
    }
    rows, notes = [], []
    table = found.table().drop(columns="AIC", errors="ignore")
    for name, *values, note in table.reset_index().itertuples(index=False, name=None):
        title = f"{name} (best)" if name == found.best else str(name)
        score, *others = (value_cell(_coarse(of, float(value))) for value in values)
        rows.append((text_cell(title), score if of.disclosed.whole else None, *others))
        notes.append(f"{name}: {note}." if note else "")
    return made("poolings", "Models compared", help, rows, *notes)


def _coarse(of: Context, value: float) -> float:
    """Few digits of what is of all rows, where a report is not."""
    return value if of.disclosed.whole else float(f"{value:.{_DIGITS}g}")


def _errors(of: Context, found: Comparison) -> ReportTable:
    """A row for each variable: how well poolings predict it."""
    names = [f"{pooling}, {kind}" for kind in ("known", "unknown") for pooling in found.poolings]
    rows = [
        (
            text_cell(str(variable)),
            *(value_cell(_coarse(of, float(value)), f"{value:.3f}") for value in values),
        )
        for variable, *values in found.by_variable().itertuples(name=None)
    ]
    note = (
        "Root mean square error of each variable predicted from all others, over its standard "
        f"deviation, with the {of.sets.one} of a row known and unknown: 1 is as bad as always "
        "predicting the mean."
    )
    if any(fit.categories for fit in of.net.fits.values()):
        note += " Of a discrete variable it is that of probabilities of levels (Brier's)."
    help = dict.fromkeys(["variable", *names], "")
    return made("errors", "Errors of predictions", help, rows, note)


def _strengths(of: Context, boot: Bootstrap) -> ReportTable:
    """A row for each two nodes with an arc in a bootstrap network."""
    help = {
        "pair": "in the more frequent direction",
        "strength": "share of the networks with an arc between the two",
        "direction": "share of these in which it points as named",
        "above threshold": f"of {number(boot.threshold)}",
        "in this network": "and in which direction",
    }
    rows, pairs = [], boot.pairs()
    for pair in pairs[:_MOST]:
        arc, here = _in_network(of, (pair.parent, pair.child))
        cells = (
            text_cell(pair_name(pair), arc=arc),
            share_cell(pair.strength),
            share_cell(pair.direction),
            text_cell("yes" if is_sure(boot, pair.strength) else "no"),
            here,
        )
        rows.append(cells)
    note = f"The {_MOST} strongest of {len(pairs):,} pairs." if len(pairs) > _MOST else ""
    return made("strengths", "Strength of arcs", help, rows, note)


def _claims(of: Context, test: GraphTest) -> ReportTable:
    """A row for each claim of independence, the worst first."""
    help = {
        "pair": "without an arc between the two",
        "given": "the parents of both: given these, the graph says, the two are independent",
        "test": "combined: of the effects in all data sets together; coef: of one coefficient",
        "p": "of a test of that",
        "p, adjusted": "for the number of claims, by Holm's method",
        "change of BIC score": "that an arc would bring; above 0 it raises the score",
    }
    rows = [
        (
            text_cell(f"{row['x']}, {row['y']}"),
            text_cell(", ".join(row["given"]) or "nothing"),
            text_cell(row["test"]),
            p_cell(row["p_value"]),
            p_cell(row["p_adjusted"]),
            value_cell(row["gain"]),
        )
        for row in test.claims.to_dict("records")
    ]
    return made("claims", "What the graph claims", help, rows, test.verdict)


def _r2(test: GraphTest) -> ReportTable:
    """A row for each node with parents."""
    help = {
        "variable": "with parents",
        "R2, marginal": "share of its variance that fixed effects explain (Nakagawa and Schielzeth "
        "2013); of log odds and logarithms by the delta method",
        "R2, conditional": "with random effects too",
    }
    rows = [
        (text_cell(row["node"]), share_cell(row["marginal"]), share_cell(row["conditional"]))
        for row in test.r2.to_dict("records")
    ]
    return made("r2", "Variance explained", help, rows)


def _doubts(of: Context) -> ReportTable:
    """A row for each two variables, those in most doubt first."""
    help = {
        "pair": "in the more probable direction",
        "probability": "of an arc between the two, either way",
        "direction": "share of the probability that is for the direction as named",
        "bootstrap": "share of bootstrap networks with an arc between the two",
        "p, independent": "the largest p-value of the tests of independence of the two",
        "independent given": "the first condition found that makes the two independent",
        "in this network": "and in which direction",
    }
    pairs = [] if of.boot is None else of.boot.pairs()
    strengths = {frozenset((pair.parent, pair.child)): pair.strength for pair in pairs}
    every = list(of.doubts.values())
    probable = any(pair.probability is not None for pair in every)
    tested = any(pair.p_value is not None for pair in every)
    rows = []
    for pair in every[:_MOST]:
        ends = (pair.parent, pair.child)
        arc, here = _in_network(of, ends)
        given = "nothing" if pair.given == () else ", ".join(pair.given or ())
        cells = (
            text_cell(arrow(*ends), arc=arc),
            share_cell(pair.probability) if probable else None,
            share_cell(pair.direction) if probable else None,
            share_cell(strengths.get(frozenset(ends), 0.0)) if strengths else None,
            p_cell(pair.p_value) if tested else None,
            text_cell(given) if tested else None,
            here,
        )
        rows.append(cells)
    note = f"The {_MOST} in most doubt of {len(every):,} pairs." if len(every) > _MOST else ""
    return made("doubts", "Pairs in doubt", help, rows, note)


def _in_network(of: Context, pair: Pair) -> tuple[int | None, TableCell]:
    """The arc between two nodes, and whether it has this direction."""
    named, other = of.index.get(pair), of.index.get(pair[::-1])
    here = "as named" if named is not None else "no" if other is None else "the other way"
    return other if named is None else named, text_cell(here)
