"""Plots of effects: one arc in all data sets, and all arcs at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.assess.arceffects import Estimates, Floats
from poolbn.graph.pairs import Pair
from poolbn.network.network import Network
from poolbn.show import style
from poolbn.show.forest import forest_limits
from poolbn.show.marks import Mark, arc_marks, unit_ratios

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE, _HIGHEST = 6.4, 12.0  # inches
_ASIDE = 0.17  # from the middle of a row to each of two estimates, in rows


# One arc


def draw_forest(found: Estimates, ax: Axes | None) -> Axes:
    """A row for each data set, sorted by estimate, and the population's at the bottom."""
    order = np.lexsort((found.alone, found.effect))
    F = len(order)
    last = F + 0.5  # the population's row
    ax = style.new_axes(ax, _WIDE, min(_HIGHEST, 1.4 + style.ROW * (F + 2)))
    ax.set_ylim(last + 0.7, -1.5)
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
            label=found.pooling)  # fmt: skip
    new = np.array([found.new_interval])
    if np.isfinite(new).all():
        _intervals(ax, np.array([last]), new, limits, style.INK)
        ax.plot([], [], color=style.INK, linewidth=1, label="where another data set is expected")
    ax.plot(found.population, last, "D", color=style.INK, markersize=1.3 * size,
            label=found.common)  # fmt: skip
    ax.set_xlim(*limits)
    style.bare(ax)
    names = [str(found.levels[j]) + " (adapted)" * bool(found.adapted[j]) for j in order]
    style.name_rows(
        ax,
        [-1, *range(F), last],
        ["", *names, found.common],
        [
            "rows",
            *(f"{n:,}" for n in found.n[order].tolist()),
            f"{found.n[~found.adapted].sum():,}",
        ],
    )
    ax.set_xlabel(found.axis(style.shortened), fontsize=style.FONT, parse_math=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, **style.LEGEND)
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


# All arcs


def draw_heterogeneity(
    net: Network, p_values: Mapping[Pair, float] | None, most: int, ax: Axes | None
) -> Axes:
    """A row for each arc, those that differ most between data sets on top.

    Args:
        net: the network.
        p_values: of a test of each arc for equal effects; None for none.
        most: how many arcs to show at most.
        ax: where to draw; None makes a figure that fits.
    """
    marks = arc_marks(net)
    ratios = unit_ratios(net)
    order = sorted(range(len(marks)), key=lambda k: (-marks[k].between_sd, -abs(marks[k].effect)))
    shown = order[:most]
    ax = style.new_axes(ax, _WIDE, min(_HIGHEST, 1.3 + style.ROW * max(2, len(shown))))
    ax.set_ylim(max(1, len(shown)) - 0.4, -1.5)
    style.bare(ax)
    ax.set_xlabel("effect, in standard deviations of the child for one of the parent",
                  fontsize=style.FONT)  # fmt: skip
    if not shown:
        style.say(ax, "no arcs: no node depends on another")
        return ax
    ax.axvline(0, color=style.SOFT, linewidth=0.8, zorder=0)
    _spread(ax, net, [marks[k] for k in shown], [ratios[k] for k in shown])
    names = [f"{style.shortened(marks[k].parent, 24)} → {style.shortened(marks[k].child, 24)}"
             for k in shown]  # fmt: skip
    notes = ["" for _ in shown]
    if p_values is not None:
        notes = [_p_value(p_values[marks[k].parent, marks[k].child]) for k in shown]
    heading = "" if p_values is None else "p (equal effects)"
    more = f"{len(shown)} of {len(marks)} arcs" if len(shown) < len(marks) else ""
    style.name_rows(ax, range(-1, len(shown)), [more, *names], [heading, *notes])
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, **style.LEGEND)
    return ax


def _spread(ax: Axes, net: Network, marks: Sequence[Mark], ratios: Sequence[float]) -> None:
    """The effects in the data sets, the population's, and the standard deviation around it."""
    rows, values, opposite = [], [], []
    for row, (mark, ratio) in enumerate(zip(marks, ratios, strict=True)):
        fit = net.fits[mark.child]
        coef = ratio * fit.coef[:, 1 + fit.parents.index(mark.parent)]
        rows += [row] * len(coef)
        values += coef.tolist()
        opposite += (np.sign(coef) * np.sign(mark.effect) < 0).tolist()
    at, x, other = np.array(rows), np.array(values), np.array(opposite)
    effect = np.array([mark.effect for mark in marks])
    sd = np.array([mark.between_sd for mark in marks])
    size = min(style.MARK, 0.4 * style.points(ax)[1] / len(marks))
    ax.hlines(np.arange(len(marks)), effect - sd, effect + sd, colors=style.FAINT,
              linewidths=1.6 * size, label="± SD between data sets", zorder=1)  # fmt: skip
    for which, colour, label in (
        (~other, style.POSITIVE, "one data set"),
        (other, style.NEGATIVE, "one data set, opposite sign"),
    ):
        if which.any():
            ax.plot(x[which], at[which], "o", color=colour, markersize=0.75 * size, alpha=0.8,
                    markeredgewidth=0, label=label, zorder=3)  # fmt: skip
    ax.plot(effect, np.arange(len(marks)), "|", color=style.INK, markersize=2.2 * size,
            markeredgewidth=1.6, label="population of data sets", zorder=2)  # fmt: skip


def _p_value(p: float) -> str:
    if np.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
