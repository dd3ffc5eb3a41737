"""The table of total effects."""

from __future__ import annotations

import math
from itertools import compress

import numpy as np

from poolbn.page.material import Material
from poolbn.page.sheets import MOST, ReportTable, made, text_cell, value_cell
from poolbn.show.texts import number

_NOTE = (
    "What a change of one variable from outside does to another, if each arc of the network is a "
    "cause, and no common cause is missing."
)
_CAUSES = 8  # whose total effects are simulated


def totals(of: Material) -> ReportTable:
    """A row for each two nodes that a directed path joins: the largest ones, if they are many."""
    return _linear(of) if of.net.is_linear else _simulated(of)


def _linear(of: Material) -> ReportTable:
    """In closed form."""
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
    sd = of.spreads.columns
    index = {node: i for i, node in enumerate(net.dag.nodes)}
    rows = []
    table = net.total_effects().itertuples(index=False, name=None)
    for cause, effect, total, between, *own in table:
        unit = sd[cause] / sd[effect] if sd[effect] > 0 else math.nan
        ends = (text_cell(node, node=index[node]) for node in (cause, effect))
        told = list(compress(own, of.shown.tolist())) or [math.nan]
        numbers = (total, between, min(told), max(told), float(np.mean(own)) * unit)
        rows.append((*ends, *(value_cell(float(value)) for value in numbers)))
    count = len(rows)
    rows.sort(key=lambda row: -abs(row[-1].value) if isinstance(row[-1].value, float) else 0.0)
    more = f"The {MOST} largest of {count:,}; net.total_effects() has all." * (count > MOST)
    return made("totals", "Total effects", help, rows[:MOST], _NOTE, more)


def _simulated(of: Material) -> ReportTable:
    """By drawing rows, which takes its time: of inputs, or else of the first causes."""
    help = {
        "cause": "that is set by an intervention",
        "change": "from what to what",
        "effect": "that follows",
        "scale": "of the total: a difference or a ratio of means, risks or rates",
        "total": "along all paths, in the population of data sets",
        "lower": "of the 95% interval of the total",
        "upper": "of the 95% interval of the total",
        "least": "of the data sets",
        "largest": "of the data sets",
    }
    net = of.net
    index = {node: i for i, node in enumerate(net.dag.nodes)}
    causes = [node for node in net.dag.topological_order() if net.dag.children(node)]
    chosen = [node for node in net.inputs if node in causes] or causes[:_CAUSES]
    rows = []
    for cause in chosen:
        for row in net.total_effects(cause).to_dict("records"):
            own = [row[level] for level in list(row)[-len(net.levels) :]]
            told = list(compress(own, of.shown.tolist())) or [math.nan]
            ends = [row[end] for end in ("from", "to")]
            before, after = (number(end) if isinstance(end, float) else end for end in ends)
            outcome = f" = {row['outcome']}" * bool(row["outcome"])
            numbers = (row["total"], row["lower"], row["upper"], min(told), max(told))
            rows.append(
                (
                    text_cell(cause, node=index[cause]),
                    text_cell(f"{before} to {after}"),
                    text_cell(f"{row['effect']}{outcome}", node=index[row["effect"]]),
                    text_cell(row["scale"]),
                    *(value_cell(float(value)) for value in numbers),
                )
            )
    some = len(chosen) < len(causes)
    more = f"Here of {', '.join(chosen)}; net.total_effects() has all." * some
    return made("totals", "Total effects", help, rows[:MOST], _NOTE, more)
