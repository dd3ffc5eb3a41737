"""Plots of how sure things are by matplotlib: models compared, and the strengths of arcs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.show import style
from poolbn.show.figures import (
    Differences,
    held_out_differences,
    is_sure,
    left_out_differences,
    pair_name,
)
from poolbn.show.texts import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OTHER = style.SERIES[1]  # the rarer direction
_PALE = 0.55  # white in what is below the threshold


def draw_comparison(found: Comparison, ax: Sequence[Axes] | None) -> NDArray[np.object_]:
    """Four panels with a row for each pooling."""
    P = len(found.poolings)
    axes = style.new_panels(ax, 4, 11.0, 1.5 + 0.34 * P, sharey=True)
    best = found.poolings.index(found.best)
    _differences(axes[0], held_out_differences(found), "no fit", "held-out rows")
    _differences(axes[1], left_out_differences(found), "no population", "data sets left out")
    _errors(axes[2], found)
    axes[3].plot(found.f1, np.arange(P), "o", color=style.POSITIVE, markersize=style.MARK)
    axes[3].set_xlim(0, 1)
    _absent(axes[3], found.f1, "no fit")
    axes[3].set_xlabel("guessing the data set:\nF1", fontsize=style.SMALL)
    for panel in axes:
        style.bare(panel)
        panel.set_ylim(P - 0.5, -0.5)
        panel.axhspan(best - 0.5, best + 0.5, color=style.paler(style.INK, 0.94), zorder=-1)
        panel.tick_params(axis="y", length=0, labelleft=panel is axes[0])
    axes[0].set_yticks(np.arange(P), [shortened(name) for name in found.poolings], parse_math=False)
    return axes


def _differences(ax: Axes, found: Differences, absent: str, label: str) -> None:
    """All differences from the best pooling, their mean and two standard errors."""
    ax.axvline(0, color=style.SOFT, linewidth=0.8, zorder=0)
    for p in np.flatnonzero(np.isfinite(found.mean)):
        mean, reach = found.mean[p], found.reach[p]
        ax.plot(found.each[p], np.full(len(found.each[p]), p), "o", color=style.FAINT,
                markersize=3.5)  # fmt: skip
        ax.hlines(p, mean - reach, mean + reach, colors=style.POSITIVE, linewidths=2)
        ax.plot(mean, p, "o", color=style.POSITIVE, markersize=style.MARK)
    _absent(ax, found.mean, absent)
    ax.set_xlabel(f"{label}:\nlog-likelihood per row, best = 0", fontsize=style.SMALL)


def _errors(ax: Axes, found: Comparison) -> None:
    """Relative errors of all variables, and their mean, with the data set known and unknown."""
    for each, aside, face, label in (
        (found.known, -0.15, style.POSITIVE, "data set known"),
        (found.unknown, 0.15, style.PAPER, "unknown"),
    ):
        row = np.arange(len(each)) + aside
        ax.plot(each, row, "o", color=style.FAINT, markersize=3)
        ax.plot(each.mean(axis=1), row, "o", color=style.POSITIVE, markerfacecolor=face,
                markersize=style.MARK, label=label)  # fmt: skip
    _absent(ax, found.known.mean(axis=1), "no fit")
    ax.set_xlabel("each variable from the others:\nerror / standard deviation",
                  fontsize=style.SMALL)  # fmt: skip
    style.legend_above(ax, 2)


def _absent(ax: Axes, values: NDArray[np.float64], why: str) -> None:
    for row in np.flatnonzero(~np.isfinite(values)).tolist():
        ax.text(0.5, row, why, transform=ax.get_yaxis_transform(), ha="center", va="center",
                fontsize=style.SMALL, color=style.SOFT)  # fmt: skip


def draw_strengths(boot: Bootstrap, most: int, ax: Axes | None) -> Axes:
    """A bar for each pair of nodes, split by direction, the strongest on top."""
    pairs = boot.pairs()
    shown = pairs[:most]
    m = len(shown)
    ax = style.new_rows(ax, m, max(1, m) - 0.4)
    ax.set_xlim(0, 1.02)
    ax.set_xlabel(f"share of {boot.replicates} networks from resampled {boot.unit}s",
                  fontsize=style.FONT)  # fmt: skip
    if not m:
        style.say(ax, "no arc was ever found")
        return ax
    strength = np.array([pair.strength for pair in shown])
    split = strength * [pair.direction for pair in shown]
    for start, end, colour, label in (
        (0 * split, split, style.POSITIVE, "as named"),
        (split, strength, _OTHER, "the other way"),
    ):
        colours = [style.paler(colour, 0 if is_sure(boot, s) else _PALE) for s in strength]
        ax.barh(np.arange(m), end - start, left=start, height=0.62, color=colours, label=label)
    ax.axvline(boot.threshold, color=style.INK, linewidth=0.9, dashes=(3, 2),
               label=f"threshold {boot.threshold:.2f}")  # fmt: skip
    heading = f"{m} of {len(pairs)} pairs" if m < len(pairs) else ""
    names = [heading, *(pair_name(pair, 24) for pair in shown)]
    style.name_rows(ax, range(-1, m), names, ["strength", *(f"{s:.2f}" for s in strength)])
    style.legend_above(ax, 3)
    return ax
