"""Colours, sizes and small things that all plots share; matplotlib is imported by the first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from poolbn.errors import OptionError
from poolbn.wording import clipped

# Okabe and Ito's colours, for readers with any kind of colour blindness.
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"
SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#BBAA00")
INK, SOFT, FAINT, PAPER = "#222222", "#767676", "#D9D9D9", "#FFFFFF"
NODE, TROUBLE = "#F4F4F2", "#FFF3B0"

FONT, SMALL = 9.0, 8.0  # points
ROW = 0.24  # inches of a row, for a data set or an arc
MARK = 5.5  # points across an estimate
_WIDE, _HIGHEST = 6.4, 12.0  # inches of a plot with rows
LEGEND: dict[str, Any] = {"fontsize": SMALL, "frameon": False, "labelcolor": INK}


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The Axes given, or new ones in a figure of pyplot's of this size in inches."""
    if ax is None:
        from matplotlib import pyplot as plt

        return plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    check_axes(ax)
    return ax


def new_rows(ax: Axes | None, count: int, bottom: float) -> Axes:
    """Axes for a plot with rows at 0, 1, ... and a heading at -1, y growing down to the bottom."""
    ax = new_axes(ax, _WIDE, min(_HIGHEST, 1.3 + ROW * max(2, count)))
    ax.set_ylim(bottom, -1.5)
    bare(ax)
    return ax


def legend_above(ax: Axes, columns: int, *, right: bool = False) -> None:
    """A legend above the Axes; at their right end where names on the left take much room."""
    if right:
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, **LEGEND)
    else:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, **LEGEND)


def new_panels(
    axes: object, count: int, width: float, height: float, *, sharey: bool = False
) -> NDArray[np.object_]:
    """The Axes given, or new ones beside each other in a figure of pyplot's, (count,)."""
    if axes is None:
        from matplotlib import pyplot as plt

        figure = plt.figure(figsize=(width, height), layout="constrained")
        return np.asarray(figure.subplots(1, count, sharey=sharey))
    panels = np.ravel(np.asarray(axes, dtype=object))
    if len(panels) != count:
        raise OptionError(
            f"there are {len(panels)} Axes in ax, and this plot has {count} panels; use "
            f"fig, ax = plt.subplots(1, {count}), or leave it out"
        )
    for ax in panels:
        check_axes(ax)
    return panels


def check_axes(ax: object) -> None:
    """Raise for anything that is not matplotlib's Axes."""
    if not isinstance(ax, Axes):
        raise OptionError(
            f"ax={ax!r} is not an Axes of matplotlib; use fig, ax = plt.subplots(), or leave it out"
        )


def points(ax: Axes) -> tuple[float, float]:
    """Width and height of Axes in points."""
    box = ax.get_window_extent()
    return box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi


def text_width(text: str, size: float) -> float:
    """Width in points of a line of text in the usual font."""
    font = FontProperties(size=size)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def say(ax: Axes, text: str) -> None:
    """A text where there is nothing to draw."""
    ax.set_yticks([])
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize=FONT,
            color=INK)  # fmt: skip


def paler(colour: str, share: float) -> tuple[float, float, float]:
    """A colour mixed with so much white."""
    red, green, blue = (1 - (1 - part) * (1 - share) for part in to_rgb(colour))
    return red, green, blue


def bare(ax: Axes) -> None:
    """No frame but the line at the bottom, and quiet ticks."""
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(SOFT)
    ax.tick_params(colors=INK, labelsize=SMALL, color=FAINT, length=3)


def name_rows(ax: Axes, at: Iterable[float], names: Iterable[str], notes: Iterable[str]) -> None:
    """Names on the left of rows and notes on their right, as large as the rows allow.

    The limits of y are set before, with 1 from row to row.
    """
    bottom, top = ax.get_ylim()
    size = min(SMALL, 0.85 * points(ax)[1] / abs(bottom - top))
    rows = list(at)
    ax.set_yticks(rows, [clipped(name) for name in names], parse_math=False)
    margin = ax.secondary_yaxis("right")
    margin.set_yticks(rows, list(notes), parse_math=False)
    margin.spines["right"].set_visible(False)
    for side in (ax, margin):
        side.tick_params(axis="y", length=0, labelsize=size, labelcolor=INK)
