"""The table of total effects."""

from __future__ import annotations

import math

import numpy as np

from poolbn.page.context import Context, Total
from poolbn.page.spreadsheet import MOST, ReportTable, made, text_cell, value_cell

_NOTE = (
    "What a change of one variable from outside does to another, if each arc of the network is a "
    "cause, and no common cause is missing."
)


def totals(of: Context) -> ReportTable:
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
    net = of.net
    index = {node: i for i, node in enumerate(net.dag.nodes)}
    every = sorted(of.totals, key=lambda total: -_size(of, total))
    rows = []
    for total in every[:MOST]:
        outcome = f" = {total.outcome}" * bool(total.outcome)
        between = set(net.dag.descendants(total.cause)) & set(net.dag.ancestors(total.effect))
        path = [total.cause, total.effect, *between]
        shown = np.logical_and.reduce([of.disclosed.of(node) for node in path])
        own = total.own[shown].tolist() or [math.nan]
        numbers = (total.total, total.lower, total.upper, total.between, min(own), max(own))
        rows.append(
            (
                text_cell(total.cause, node=index[total.cause]),
                text_cell(f"{total.before} to {total.after}"),
                text_cell(f"{total.effect}{outcome}", node=index[total.effect]),
                text_cell(total.scale),
                *(value_cell(value) for value in (*numbers, _standardised(of, total))),
            )
        )
    more = f"The {MOST} largest of {len(every):,}; net.total_effects() has all." * (
        len(every) > MOST
    )
    chosen = {total.cause for total in every}
    if any(net.dag.children(node) and node not in chosen for node in net.dag.nodes):
        more = f"Here of {', '.join(dict.fromkeys(t.cause for t in of.totals))}; " + (
            "net.total_effects() has all."
        )
    return made("totals", "Total effects", help, rows, _NOTE, more)


def _standardised(of: Context, total: Total) -> float:
    """Of a change of a mean, with the standard deviation of the cause; NaN for others."""
    sd = of.spreads.children.get((total.effect, ""), 0.0)
    level = f"{total.cause}={total.after}"
    unit = of.spreads.columns[level if level in of.spreads.columns else total.cause]
    return float(np.mean(total.own)) * unit / sd if total.exact and sd > 0 else math.nan


def _size(of: Context, total: Total) -> float:
    size = abs(_standardised(of, total))
    return size if math.isfinite(size) else 0.0
