"""Plots of effects by matplotlib: one arc in all data sets, and all arcs at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.assess.arceffects import Estimates, Floats
from poolbn.assess.effectsizes import EffectSize, effect_sizes, most_different
from poolbn.graph.pairs import Pair
from poolbn.network.network import Network
from poolbn.show import style
from poolbn.show.figures import forest_limits, forest_order
from poolbn.show.texts import arrow, p_value, shortened, what

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ASIDE = 0.17  # from the middle of a row to each of two estimates, in rows


def draw_forest(found: Estimates, ax: Axes | None) -> Axes:
    """A row for each data set, sorted by estimate, and the population's at the bottom."""
    order = forest_order(found)
    F = len(order)
    last = F + 0.5  # the population's row
    ax = style.new_rows(ax, F + 2, last + 0.7)
    size = min(style.MARK, 0.4 * style.points(ax)[1] / (F + 3))
    limits = forest_limits(found)
    both = bool(np.isfinite(found.alone).any())
    sure = np.array([found.population_interval])
    if np.isfinite(sure).all():
        ax.axvspan(*found.population_interval, color=style.paler(style.INK, 0.92), zorder=-1)
        _intervals(ax, np.array([last]), sure, limits, style.INK, 3)
    ax.axvline(found.population, color=style.SOFT, linewidth=0.8, dashes=(3, 2), zorder=0)
    ax.axvline(0, color=style.SOFT, linewidth=0.8, zorder=0)
    if both:
        row = np.arange(float(F)) - _ASIDE
        alone = found.alone[order]
        inside = (alone >= limits[0]) & (alone <= limits[1])
        _intervals(ax, row, found.alone_interval[order], limits, style.SOFT)
        ax.plot(np.where(inside, alone, np.nan), row, "o", color=style.SOFT, markersize=size,
                markerfacecolor=style.PAPER, label="no pooling: its own rows alone")  # fmt: skip
    row = np.arange(float(F)) + _ASIDE * both
    _intervals(ax, row, found.interval[order], limits, style.POSITIVE)
    ax.plot(found.effect[order], row, "o", color=style.POSITIVE, markersize=size,
            label=str(found.pooling))  # fmt: skip
    new = np.array([found.new_interval])
    if np.isfinite(new).all():
        _intervals(ax, np.array([last]), new, limits, style.INK)
        ax.plot([], [], color=style.INK, linewidth=1, label="range expected for a new data set")
    ax.plot(found.population, last, "D", color=style.INK, markersize=1.3 * size,
            label=found.common.value)  # fmt: skip
    ax.set_xlim(*limits)
    names = [str(found.levels[j]) + " (adapted)" * bool(found.adapted[j]) for j in order]
    rows = [*found.n[order].tolist(), int(found.n[~found.adapted].sum())]
    notes = ["rows", *(f"{n:,}" for n in rows)]
    style.name_rows(ax, [-1, *range(F), last], ["", *names, found.common.value], notes)
    ax.set_xlabel(what(found), fontsize=style.FONT, parse_math=False)
    style.legend_above(ax, 2)
    return ax


def _intervals(
    ax: Axes,
    row: Floats,
    interval: Floats,
    limits: tuple[float, float],
    colour: Any,
    width: float = 1.0,
) -> None:
    """Lines; where one goes on beyond the limits there is an arrow head."""
    low, high = np.clip(interval, *limits).T
    ax.hlines(row, low, high, colors=colour, linewidths=width)
    for end, marker, out in (
        (limits[0], "<", interval[:, 0] < limits[0]),
        (limits[1], ">", interval[:, 1] > limits[1]),
    ):
        if out.any():
            ax.plot(np.full(out.sum(), end), row[out], marker, color=colour, markersize=3,
                    clip_on=False)  # fmt: skip


def draw_heterogeneity(
    net: Network, p_values: Mapping[Pair, float] | None, most: int, ax: Axes | None
) -> Axes:
    """A row for each arc, those that differ most between data sets on top, at most so many."""
    shown = most_different(effect_sizes(net))[:most]
    ax = style.new_rows(ax, len(shown), max(1, len(shown)) - 0.4)
    ax.set_xlabel("effect, in standard deviations of the child for one of the parent",
                  fontsize=style.FONT)  # fmt: skip
    if not shown:
        style.say(ax, "no arcs: no node depends on another")
        return ax
    ax.axvline(0, color=style.SOFT, linewidth=0.8, zorder=0)
    _spread(ax, shown)
    arcs = [(size.parent, size.child) for size in shown]
    names = [arrow(shortened(a, 24), shortened(b, 24)) for a, b in arcs]
    notes = [""] * (1 + len(shown))
    if p_values is not None:
        notes = ["p (equal effects)", *(p_value(p_values[arc]) for arc in arcs)]
    count = len(net.dag.arcs)
    more = f"{len(shown)} of {count} arcs" if len(shown) < count else ""
    style.name_rows(ax, range(-1, len(shown)), [more, *names], notes)
    style.legend_above(ax, 2)
    return ax


def _spread(ax: Axes, shown: Sequence[EffectSize]) -> None:
    """The effects in the data sets, the population's, and the standard deviation around it."""
    row = np.arange(len(shown))
    x = np.concatenate([size.own for size in shown])
    at = np.repeat(row, len(shown[0].own))
    effect = np.array([size.effect for size in shown])
    sd = np.array([size.between_sd for size in shown])
    other = np.sign(x) * np.sign(effect[at]) < 0
    mark = min(style.MARK, 0.4 * style.points(ax)[1] / len(shown))
    ax.hlines(row, effect - sd, effect + sd, colors=style.FAINT, linewidths=1.6 * mark,
              label="± SD between data sets", zorder=1)  # fmt: skip
    for which, colour, label in (
        (~other, style.POSITIVE, "one data set"),
        (other, style.NEGATIVE, "one data set, opposite sign"),
    ):
        if which.any():
            ax.plot(x[which], at[which], "o", color=colour, markersize=0.75 * mark, alpha=0.8,
                    markeredgewidth=0, label=label, zorder=3)  # fmt: skip
    ax.plot(effect, row, "|", color=style.INK, markersize=2.2 * mark, markeredgewidth=1.6,
            label="population of data sets", zorder=2)  # fmt: skip
