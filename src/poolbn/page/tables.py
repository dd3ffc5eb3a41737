"""The tables of a report."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.network.network import Network
from poolbn.nodes.terms import RESIDUAL
from poolbn.page.context import Context
from poolbn.page.doubts import doubts
from poolbn.page.gaussian import sd_range
from poolbn.page.spreadsheet import MOST, ReportTable, made, p_cell, text_cell, value_cell
from poolbn.page.totals import totals
from poolbn.page.words import is_warning, standardised
from poolbn.show.figures import is_sure, pair_name
from poolbn.show.texts import arrow, number, percent, term_name

_DIGITS = 3


def report_tables(of: Context) -> dict[str, ReportTable]:
    """The tables of a report, by their ids."""
    tables = [_arcs(of), _nodes(of), _data(of)]
    if of.stats is not None and of.stats.patterns is not None:
        whole = of.stats.patterns.known.n_rows
        tables.append(_missing(of, of.stats.missing, whole))
    elif of.net.missing is not None:
        given = of.given if of.net.adapted == () else None
        tables.append(_missing(of, of.net.missing, None if given is None else given.n_rows))
    if of.totals:
        tables.append(totals(of))
    if of.tests:
        tables.append(_tests(of))
        if any(of.net.fits[size.child].gaussian for size in of.sizes):
            tables.append(_within_between(of))
    if of.found is not None:
        tables += [_poolings(of, of.found), _errors(of, of.found)]
    if of.boot is not None:
        tables.append(_strengths(of.net, of.boot))
    if of.doubts:
        pairs = [] if of.boot is None else of.boot.pairs()
        shares = {frozenset((pair.parent, pair.child)): pair.strength for pair in pairs}
        tables.append(doubts(of.net, of.doubts, shares))
    return {table.key: table for table in tables}


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
        "direction": "whether equivalent networks have the arc the other way round",
    }
    rows = []
    for size, terms in zip(of.sizes, of.estimates, strict=True):
        strength = None if of.strengths is None else of.strengths[size.index].strength
        for found, effect in zip(terms, size.each, strict=True):
            effects, *ends = map(
                float, map(found.reported, (found.population, *found.population_interval))
            )
            known = found.effect[np.isfinite(found.effect)]
            opposite = float(np.mean(known * found.population < 0)) if len(known) else math.nan
            cells = (
                text_cell(arrow(size.parent, size.child), arc=size.index),
                text_cell(term_name(found) or "each unit"),
                text_cell(found.scale),
                value_cell(effects),
                value_cell(ends[0], _interval(*ends)),
                value_cell(effect, standardised(of, effect)),
                value_cell(found.between_sd),
                value_cell(opposite, percent(opposite) if len(known) else "–"),
                p_cell(of.p_values.get((size.parent, size.child))) if of.tests else None,
                None if strength is None else value_cell(strength, f"{strength:.2f}"),
                text_cell("either way" if size.reversible else "determined"),
            )
            rows.append(cells)
    note = "" if rows else "There are no arcs: no variable depends on another."
    return made("arcs", "Direct effects", help, rows, note)


def _interval(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}" if math.isfinite(low + high) else "–"


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
        fit, share = of.net.fits[node], of.spreads.explained[node]
        known = fit.parents and math.isfinite(share)
        given = ", input" * (node in of.net.inputs)
        sd = value_cell(None)
        if (one := fit.gaussian) is not None:
            own = float(np.sqrt(one.sigma2[of.shown].max(initial=0)))
            sd = value_cell(own, sd_range(of, one))
        cells = (
            text_cell(node, node=i),
            text_cell(f"{fit.kind}{given}"),
            text_cell(", ".join(of.net.dag.parents(node)) or "–"),
            text_cell(fit.model),
            value_cell(share if known else math.nan, percent(share) if known else "–"),
            sd,
            p_cell(of.p_values.get((RESIDUAL, node))) if of.tests else None,
            value_cell(fit.loglik),
            value_cell(float(fit.n_params)),
            text_cell(str(fit.pooling)),
            text_cell(f"⚠ {fit.status}" if is_warning(fit) else str(fit.status)),
        )
        rows.append(cells)
    return made("nodes", "Variables", help, rows)


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
    index = {node: i for i, node in enumerate(of.net.dag.nodes)}
    arcs = {arc: k for k, arc in enumerate(of.net.dag.arcs)}
    rows = []
    for (parent, child), found in of.tests.items():
        if parent == RESIDUAL:
            first = text_cell(f"residual variance of {child}", node=index[child])
        else:
            first = text_cell(arrow(parent, child), arc=arcs[parent, child])
        numbers = value_cell(found.statistic), p_cell(found.p_value), p_cell(found.p_adjusted)
        rows.append((first, text_cell(found.kind), *numbers))
    note = (
        "A search of the same data chose the effects, so their p-values are too small, as with "
        "every test after a search."
    )
    return made("tests", "Tests for equality", help, rows, note)


def _within_between(of: Context) -> ReportTable:
    """A row for each arc to a continuous node: the effect in data sets, and between their means."""
    net, sets = of.net, of.sets
    help = {
        "arc": f"choose it to see its effect in each {sets.one}",
        "level": "of the first variable, in place of its first one",
        "within": f"effect inside {sets.many}",
        "95% interval": f"of the effect inside {sets.many}",
        "between": f"effect between the means of {sets.many}",
        "difference": "between minus within",
        "p-value": "small if the two differ by more than chance makes",
        "adjusted": "for the number of arcs (Benjamini and Hochberg)",
    }
    rows = []
    arcs = {arc: k for k, arc in enumerate(net.dag.arcs)}
    for row in net.within_between(of.stats).to_dict("records"):
        arc = (row["parent"], row["child"])
        if arc[1] in of.disclosed.grouped:
            continue
        level = text_cell(row["level"] or "–")
        within, low, high, between, difference = (
            float(row[name])
            for name in ("within", "within_lower", "within_upper", "between", "difference")
        )
        numbers = [
            value_cell(within),
            value_cell(low, _interval(low, high)),
            value_cell(between),
            value_cell(difference),
        ]
        tests = [p_cell(row[name]) for name in ("p_value", "p_adjusted")]
        rows.append((text_cell(arrow(*arc), arc=arcs[arc]), level, *numbers, *tests))
    note = (
        f"If the two differ, a parent goes with the level of {sets.many} for reasons of its own, "
        f"and the effect within {sets.many} is the one to trust."
    )
    return made("within", f"Within {sets.many} and between them", help, rows, note)


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
        lost = None if dropped is None else dropped.get(level, 0)
        part = text_cell("came later" if level in net.adapted else "learned from")
        cells = (
            text_cell(name),
            value_cell(n, "–" if n is None else f"{n:,}"),
            value_cell(*((None, "–") if n is None else (n / net.n_rows, percent(n / net.n_rows)))),
            None if lost is None or incomplete else value_cell(float(lost), f"{lost:,}"),
            None if lost is None or not incomplete else value_cell(float(lost), f"{lost:,}"),
            part if net.adapted else None,
        )
        rows.append(cells)
    unknown = dropped is None and not incomplete
    note = "How many rows were left out is not known here." * unknown
    return made("data", of.sets.many.capitalize(), help, rows, note)


def _missing(of: Context, missing: NDArray[np.int64], whole: int | None) -> ReportTable:
    """A row for each column with missing values.

    `missing` are cells of each data set that the network learned from, and each node, (F, N),
    `whole` the number of rows without any, where that is known.
    """
    net, sets = of.net, of.sets
    help = {
        "variable": "with missing values",
        "missing": "of all rows",
        "least": f"of the {sets.many}",
        "in": f"that {sets.one}",
        "most": f"of the {sets.many}",
        "there": f"the {sets.one} that lacks most",
        "gained": "values in incomplete rows, which dropping these rows would lose",
    }
    n = net.n[: len(missing)]
    gained = n.sum() - missing.sum(axis=0) - (whole or 0)
    share = missing / n[:, None]
    every = missing.sum(axis=0) / n.sum()
    rows = []
    for k in np.flatnonzero(every > 0):
        low, high = int(share[:, k].argmin()), int(share[:, k].argmax())
        cells = [text_cell(net.dag.nodes[k]), value_cell(float(every[k]), percent(float(every[k])))]
        for j in (low, high):
            lost = float(share[j, k])
            cells += [value_cell(lost, percent(lost)), text_cell(str(net.levels[j]))]
        told = None if whole is None else value_cell(float(gained[k]), f"{gained[k]:,}")
        rows.append((*cells, told))
    note = (
        f"Values are taken as missing at random, given the {sets.one} and the other values of the "
        "row."
    )
    return made("missing", "Missing values", help, rows, note)


def _poolings(of: Context, found: Comparison) -> ReportTable:
    """A row for each pooling; without scores where a report has not all that gave them."""
    sets = of.sets
    help = {
        "pooling": "",
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
    for name, *values, note in found.table().reset_index().itertuples(index=False, name=None):
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
    net, sets = of.net, of.sets
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
        f"deviation, with the {sets.one} of a row known and unknown: 1 is as bad as always "
        "predicting the mean."
    )
    if any(fit.categories for fit in net.fits.values()):
        note += " Of a discrete variable it is that of probabilities of levels (Brier's)."
    help = dict.fromkeys(["variable", *names], "")
    return made("errors", "Errors of predictions", help, rows, note)


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
    for pair in pairs[:MOST]:
        named, other = arcs.get((pair.parent, pair.child)), arcs.get((pair.child, pair.parent))
        here = "as named" if named is not None else "no" if other is None else "the other way"
        cells = (
            text_cell(pair_name(pair), arc=other if named is None else named),
            value_cell(pair.strength, f"{pair.strength:.2f}"),
            value_cell(pair.direction, f"{pair.direction:.2f}"),
            text_cell("yes" if is_sure(boot, pair.strength) else "no"),
            text_cell(here),
        )
        rows.append(cells)
    note = f"The {MOST} strongest of {len(pairs):,} pairs." if len(pairs) > MOST else ""
    return made("strengths", "Strength of arcs", help, rows, note)
