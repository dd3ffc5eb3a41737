"""Plots by matplotlib of whether the distributions of a node fit the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.calibration import Calibration
from poolbn.assess.residuals import QUARTILE, Residuals, normal_quantiles
from poolbn.show import style
from poolbn.wording import clipped, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (10.5, 3.6)  # inches
_DOTS = 3000  # rows shown as dots, at most


def draw_residuals(found: Residuals, ax: Sequence[Axes] | None) -> NDArray[np.object_]:
    """Three panels: residuals against fitted values, normal quantiles, spread in each data set."""
    present = found.present
    axes = style.new_panels(ax, 3, _SIZE[0], _SIZE[1] + 0.12 * max(0, len(present) - 14))
    few = len(present) <= len(style.SERIES)
    colours = dict(zip(present, style.SERIES, strict=False)) if few else {}
    _against_fitted(axes[0], found, colours)
    _normal(axes[1], found, colours)
    _by_data_set(axes[2], found, colours)
    return axes


def _against_fitted(ax: Axes, found: Residuals, colours: dict[int, str]) -> None:
    shown = found.some(_DOTS)
    colour = [colours.get(code, style.POSITIVE) for code in found.codes[shown].tolist()]
    dots: dict[str, Any] = {"s": 7, "alpha": 0.45, "linewidths": 0}
    ax.scatter(found.fitted[shown], found.standard[shown], c=colour, **dots)
    ax.axhline(0, color=style.SOFT, linewidth=0.8)
    ax.plot(*found.trend().T, color=style.INK, linewidth=1.4, label="mean of neighbours")
    ax.legend(loc="upper right", **style.LEGEND)
    _label(ax, f"fitted {clipped(found.node, 30)}", "residual, in standard deviations")


def _normal(ax: Axes, found: Residuals, colours: dict[int, str]) -> None:
    limit = 0.0
    for code in found.present:
        x, y = normal_quantiles(found.of(code))
        colour = colours.get(code, style.paler(style.POSITIVE, 0.5))
        ax.plot(x, y, color=colour, linewidth=1.1, alpha=0.9)
        limit = max(limit, *np.abs(x), *np.abs(y))
    if not colours:
        x, y = normal_quantiles(found.standard)
        ax.plot(x, y, color=style.INK, linewidth=1.4, label="all together")
        ax.legend(loc="upper left", **style.LEGEND)
    ax.axline((0, 0), slope=1, color=style.SOFT, linewidth=0.8, zorder=0)
    ax.set_xlim(-1.05 * limit, 1.05 * limit)
    ax.set_ylim(-1.05 * limit, 1.05 * limit)
    _label(ax, "normal quantile", "quantile of the residuals")


def _by_data_set(ax: Axes, found: Residuals, colours: dict[int, str]) -> None:
    for side in (-QUARTILE, QUARTILE):
        ax.axvline(side, color=style.SOFT, linewidth=0.8, dashes=(3, 2), zorder=0)
    boxes = found.boxes()
    for row, (code, _, ends) in enumerate(boxes):
        low, first, middle, third, high = ends.tolist()
        face = style.paler(colours.get(code, style.POSITIVE), 0.4)
        ax.hlines(row, low, high, colors=style.INK, linewidths=0.9, zorder=1)
        ax.barh(row, third - first, left=first, height=0.6, color=face, edgecolor=style.INK,
                linewidth=0.9, zorder=2)  # fmt: skip
        ax.vlines(middle, row - 0.3, row + 0.3, colors=style.INK, linewidths=1.6, zorder=3)
    ax.set_ylim(len(boxes) - 0.4, -0.6)
    style.bare(ax)
    names = [str(found.levels[code]) for code, _, _ in boxes]
    style.name_rows(ax, range(len(boxes)), names, [f"{rows:,}" for _, rows, _ in boxes])
    note = f"; {counted(found.left_out, 'row')} left out" if found.left_out else ""
    _label(ax, f"residual, in standard deviations\n(dashed: expected quartiles{note})", "")


def draw_calibration(found: Calibration, ax: Sequence[Axes] | None) -> NDArray[np.object_]:
    """Two panels: shares of rows against probabilities, and the same in each data set."""
    axes = style.new_panels(ax, 2, 7.4, _SIZE[1] + 0.12 * max(0, len(found.levels) - 14))
    colours = [style.SERIES[k % len(style.SERIES)] for k in range(len(found.categories))]
    _shares(axes[0], found, colours)
    _shares_of_data_sets(axes[1], found, colours)
    return axes


def _shares(ax: Axes, found: Calibration, colours: Sequence[str]) -> None:
    ax.axline((0, 0), slope=1, color=style.SOFT, linewidth=0.8, zorder=0)
    most = 0.0
    for level in found.shown:
        bins = found.bins(level)
        x, y = [part.expected for part in bins], [part.seen for part in bins]
        ax.vlines(x, [part.lower for part in bins], [part.upper for part in bins],
                  colors=colours[level], linewidths=1)  # fmt: skip
        ax.plot(x, y, "o-", color=colours[level], markersize=style.MARK, linewidth=1,
                label=clipped(found.categories[level], 24))  # fmt: skip
        most = max([most, *x, *(part.upper for part in bins)])
    if not most:
        style.say(ax, "too few rows of a level")
    ax.set_xlim(0, 1.05 * most or 1)
    ax.set_ylim(0, 1.05 * most or 1)
    if most:
        style.legend_above(ax, 3)
    _label(ax, f"probability of {clipped(found.node, 30)}", "share of rows")


def _shares_of_data_sets(ax: Axes, found: Calibration, colours: Sequence[str]) -> None:
    names = []
    rows = np.bincount(found.codes, minlength=len(found.levels))
    for row, code in enumerate(np.flatnonzero(rows).tolist()):
        names.append((str(found.levels[code]), f"{rows[code]:,}"))
        for k, level in enumerate(found.shown):
            at = row + (k - (len(found.shown) - 1) / 2) * 0.6 / len(found.shown)
            part = found.by_data_set(level).get(code)
            if part is not None:
                ax.hlines(at, part.lower, part.upper, colors=colours[level], linewidths=1)
                ax.plot(part.seen, at, "o", color=colours[level], markersize=style.MARK)
                ax.plot(part.expected, at, "|", color=style.INK, markersize=2 * style.MARK,
                        markeredgewidth=1.6)  # fmt: skip
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left=0)
    style.bare(ax)
    style.name_rows(ax, range(len(names)), *zip(*names, strict=True))
    note = f"; {counted(found.left_out, 'row')} left out" if found.left_out else ""
    _label(ax, f"share of rows (line: expected{note})", "")


def _label(ax: Axes, x: str, y: str) -> None:
    if y:
        style.bare(ax)
        ax.spines["left"].set_visible(True)
        ax.spines["left"].set_color(style.SOFT)
    ax.set_xlabel(x, fontsize=style.FONT, parse_math=False)
    ax.set_ylabel(y, fontsize=style.FONT, parse_math=False)
