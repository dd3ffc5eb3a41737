"""Plots of how sure things are: the poolings compared, and the strengths of arcs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.show import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

_WIDE, _HIGHEST = 6.4, 12.0  # inches
_OTHER = style.SERIES[1]  # the rarer direction
_PALE = 0.55  # white in what is below the threshold


# Poolings


def draw_comparison(found: Comparison, ax: Sequence[Axes] | None) -> NDArray[np.object_]:
    """Four panels with a row for each pooling."""
    P = len(found.poolings)
    axes = style.new_panels(ax, 4, 11.0, 1.5 + 0.34 * P, sharey=True)
    best = found.poolings.index(found.best)
    with np.errstate(invalid="ignore"):
        folds = found.loglik - found.loglik[best]
        away = found.left_out_loglik
        away = away - away[int(np.argmax(_finite(away @ found.left_out_rows)))]
    table = found.table()
    _differences(axes[0], folds, found.rows, "no fit", "held-out rows:\nlog-likelihood per row")
    _differences(axes[1], away, found.left_out_rows, "no population",
                 "data sets left out:\nlog-likelihood per row")  # fmt: skip
    _errors(axes[2], found)
    f1 = table["f1"].to_numpy()
    axes[3].plot(f1, np.arange(P), "o", color=style.POSITIVE, markersize=style.MARK)
    axes[3].set_xlim(0, 1)
    _absent(axes[3], np.flatnonzero(~np.isfinite(f1)), "no fit")
    axes[3].set_xlabel("guessing the data set:\nF1", fontsize=style.SMALL)
    for panel in axes:
        style.bare(panel)
        panel.set_ylim(P - 0.5, -0.5)
        panel.axhspan(best - 0.5, best + 0.5, color=style.paler(style.INK, 0.94), zorder=-1)
        panel.tick_params(axis="y", length=0, labelleft=panel is axes[0])
    axes[0].set_yticks(
        np.arange(P), [style.shortened(name) for name in found.poolings], parse_math=False
    )
    return axes


def _differences(ax: Axes, each: Floats, rows: NDArray[np.int64], absent: str, label: str) -> None:
    """Differences from the best pooling, (P, K): all, their mean and two standard errors."""
    ax.axvline(0, color=style.SOFT, linewidth=0.8, zorder=0)
    there = np.isfinite(each).all(axis=1)
    for p in np.flatnonzero(there):
        ax.plot(each[p], np.full(len(rows), p), "o", color=style.FAINT, markersize=3.5)
        mean = rows @ each[p] / rows.sum()
        if len(rows) > 1:
            reach = 2 * each[p].std(ddof=1) / np.sqrt(len(rows))
            ax.hlines(p, mean - reach, mean + reach, colors=style.POSITIVE, linewidths=2)
        ax.plot(mean, p, "o", color=style.POSITIVE, markersize=style.MARK)
    _absent(ax, np.flatnonzero(~there), absent)
    ax.set_xlabel(f"{label}, best = 0", fontsize=style.SMALL)


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
    _absent(ax, np.flatnonzero(~np.isfinite(found.known).all(axis=1)), "no fit")
    ax.set_xlabel("each variable from the others:\nerror / standard deviation",
                  fontsize=style.SMALL)  # fmt: skip
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, **style.LEGEND)


def _absent(ax: Axes, rows: NDArray[np.intp], why: str) -> None:
    for row in rows.tolist():
        ax.text(0.5, row, why, transform=ax.get_yaxis_transform(), ha="center", va="center",
                fontsize=style.SMALL, color=style.SOFT)  # fmt: skip


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, -np.inf)


# Arcs


def draw_strengths(boot: Bootstrap, most: int, ax: Axes | None) -> Axes:
    """A bar for each pair of nodes, split by direction, the strongest on top."""
    table = boot.table()
    place = {node: i for i, node in enumerate(boot.nodes)}
    first = table["from"].map(place) < table["to"].map(place)
    named = (table["direction"] > 0.5) | ((table["direction"] == 0.5) & first)
    table = table[named & (table["strength"] > 0)]
    shown = table.iloc[:most]
    m = len(shown)
    ax = style.new_axes(ax, _WIDE, min(_HIGHEST, 1.3 + style.ROW * max(2, m)))
    ax.set_ylim(max(1, m) - 0.4, -1.5)
    ax.set_xlim(0, 1.02)
    style.bare(ax)
    ax.set_xlabel(f"share of {boot.replicates} networks from resampled {boot.unit}s",
                  fontsize=style.FONT)  # fmt: skip
    if not m:
        style.say(ax, "no arc was ever found")
        return ax
    strength, direction = shown["strength"].to_numpy(), shown["direction"].to_numpy()
    weak = (strength <= boot.threshold) & (strength < 1)
    row = np.arange(m)
    for start, length, colour, label in (
        (0 * strength, strength * direction, style.POSITIVE, "as named"),
        (strength * direction, strength * (1 - direction), _OTHER, "the other way"),
    ):
        colours = [style.paler(colour, _PALE * bool(pale)) for pale in weak]
        ax.barh(row, length, left=start, height=0.62, color=colours, label=label)
    ax.axvline(boot.threshold, color=style.INK, linewidth=0.9, dashes=(3, 2),
               label=f"threshold {boot.threshold:.2f}")  # fmt: skip
    names = [
        f"{style.shortened(a, 24)} {'–' if same else '→'} {style.shortened(b, 24)}"
        for a, b, same in zip(shown["from"], shown["to"], direction == 0.5, strict=True)
    ]
    heading = f"{m} of {len(table)} pairs" if m < len(table) else ""
    notes = ["strength", *(f"{value:.2f}" for value in strength)]
    style.name_rows(ax, range(-1, m), [heading, *names], notes)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, **style.LEGEND)
    return ax
