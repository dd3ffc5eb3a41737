"""The table of total effects."""

from __future__ import annotations

import math
from itertools import compress

import numpy as np

from poolbn.page.material import Material
from poolbn.page.sheets import MOST, ReportTable, made, text_cell, value_cell

_NOTE = (
    "What a change of one variable from outside does to another, if each arc of the network is a "
    "cause, and no common cause is missing."
)


def totals(of: Material) -> ReportTable:
    """A row for each two nodes that a directed path joins: the largest ones, if they are many."""
    return _linear(of) if of.net.is_linear else _simulated(of)


def _linear(of: Material) -> ReportTable:
    """In closed form."""
    help = {
        "cause": "that is set by an intervention",
        "effect": "that follows",
        "total": "expected change for one unit of the cause, along all paths",
        "lower": "of the 95% interval of the total",
        "upper": "of the 95% interval of the total",
        "SD between": f"standard deviation of the total between {of.sets.many}",
        "least": f"of the {of.sets.many}",
        "largest": f"of the {of.sets.many}",
        "standardised": f"mean of the {of.sets.many}, in standard deviations",
    }
    net = of.net
    sd = of.spreads.columns
    index = {node: i for i, node in enumerate(net.dag.nodes)}
    rows = []
    table = net.total_effects().itertuples(index=False, name=None)
    for cause, _, _, effect, _, _, total, lower, upper, between, _, *own in table:
        unit = sd[cause] / sd[effect] if sd[effect] > 0 else math.nan
        ends = (text_cell(node, node=index[node]) for node in (cause, effect))
        told = list(compress(own, of.shown.tolist())) or [math.nan]
        numbers = (total, lower, upper, between, min(told), max(told), float(np.mean(own)) * unit)
        rows.append((*ends, *(value_cell(float(value)) for value in numbers)))
    count = len(rows)
    rows.sort(key=lambda row: -abs(row[-1].value) if isinstance(row[-1].value, float) else 0.0)
    more = f"The {MOST} largest of {count:,}; net.total_effects() has all." * (count > MOST)
    return made("totals", "Total effects", help, rows[:MOST], _NOTE, more)


def _simulated(of: Material) -> ReportTable:
    """By drawing rows, which takes its time: of inputs."""
    help = {
        "cause": "that is set by an intervention",
        "change": "from what to what",
        "effect": "that follows",
        "scale": "of the total: a difference or a ratio of means, risks or rates",
        "total": f"along all paths, in the population of {of.sets.many}",
        "lower": "of the 95% interval of the total",
        "upper": "of the 95% interval of the total",
        "least": f"of the {of.sets.many}",
        "largest": f"of the {of.sets.many}",
    }
    net = of.net
    index = {node: i for i, node in enumerate(net.dag.nodes)}
    rows = []
    for total in of.totals:
        outcome = f" = {total.outcome}" * bool(total.outcome)
        between = set(net.dag.descendants(total.cause)) & set(net.dag.ancestors(total.effect))
        path = [total.cause, total.effect, *between]
        shown = np.logical_and.reduce([of.disclosed.of(node) for node in path])
        own = total.own[shown].tolist() or [math.nan]
        numbers = (total.total, total.lower, total.upper, min(own), max(own))
        rows.append(
            (
                text_cell(total.cause, node=index[total.cause]),
                text_cell(f"{total.before} to {total.after}"),
                text_cell(f"{total.effect}{outcome}", node=index[total.effect]),
                text_cell(total.scale),
                *(value_cell(value) for value in numbers),
            )
        )
    chosen = list(dict.fromkeys(total.cause for total in of.totals))
    some = any(net.dag.children(node) and node not in chosen for node in net.dag.nodes)
    more = f"Here of {', '.join(chosen)}; net.total_effects() has all." * some
    return made("totals", "Total effects", help, rows[:MOST], _NOTE, more)
