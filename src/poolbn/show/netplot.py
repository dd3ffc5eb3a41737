"""The drawing of a network by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, PathPatch, Polygon, Rectangle
from matplotlib.path import Path

from poolbn.graph.equivalence import Direction
from poolbn.network.network import Network
from poolbn.show import style
from poolbn.show.drawing import (
    ArcShape,
    Drawing,
    Outline,
    Sizes,
    cut_corners,
    drawn,
    outline_of,
    outlines,
)
from poolbn.wording import noun_of

# Points, at a scale of 1.
_LINE = 1.2  # height of a line of text, in font sizes
_SIZES = Sizes(
    text=lambda text: style.text_width(text, style.FONT), letters=15, line=_LINE * style.FONT,
    pad=(7.0, 5.0), gap=14.0, port=12.0, widths=(0.9, 4.2), head=(4.5, 2.2),
)  # fmt: skip
_INNER, _CUT = 2.2, 5.0  # between two lines of a box; what is cut off its corners
_INPUT = (3.0, 2.0)  # dashes around an input, in line widths
_HALO = 2.2  # paper around arcs
_MIDDLE = 0.36  # of small letters above the base line, in font sizes

_PALE = 0.72  # white in the colour of an effect that varies as much as it is large
_DASHES = (2.2, 1.1)  # in line widths
_LARGEST = 1.3  # scale, however large the Axes are
_FIGURE = (4.5, 2.2), (20.0, 15.0)  # least and largest figure, in inches
_EXAMPLES = (0.2, 0.8)  # strengths in the legend


def draw_network(net: Network, strengths: Sequence[float] | None, ax: Axes | None) -> Axes:
    """Nodes, arcs and legend, on a figure that fits unless there are Axes."""
    if ax is not None:
        style.check_axes(ax)
    found = drawn(net, _SIZES, strengths)
    handles = _entries(net, found, "standardised effect" if strengths is None else "arc strength")
    entry = max(style.text_width(str(h.get_label()), style.SMALL) for h in handles) + 36
    wish = (np.array(found.layout.size) + 2 * _SIZES.gap) / 72
    wide = max(_FIGURE[0][0], wish[0]) if ax is None else style.points(ax)[0] / 72
    columns = int(np.clip(72 * wide // entry, 1, len(handles)))
    below = _SIZES.gap + 1.5 * style.SMALL * -(-len(handles) // columns)
    if ax is None:
        fits = wish * min(1.0, *np.array(_FIGURE[1]) / wish)
        figure = np.maximum([fits[0], fits[1] + below / 72], _FIGURE[0])
        ax = style.new_axes(None, *figure.tolist())
    for order, arc in enumerate(found.arcs):  # strong arcs above weak ones
        _arc(ax, arc, 1 + order / len(found.arcs))
    for i in range(len(found.layout.nodes)):
        _node(ax, net, found, i)
    nodes = {handle: _NodeHandle() for handle in handles if handle.get_gid()}
    ax.legend(handles=handles, loc="lower center", ncols=columns, handlelength=2.4,
              columnspacing=1.2, borderaxespad=0.2, handler_map=nodes,
              **style.LEGEND)  # fmt: skip
    ax.set_axis_off()
    _follow(ax, found.layout.size, below)
    # All is inside: a figure's layout that made room for it would take that from the Axes.
    for artist in ax.get_children():
        artist.set_in_layout(False)
    return ax


def _follow(ax: Axes, size: tuple[float, float], below: float) -> None:
    """Keep all sizes in proportion to the Axes, also when a figure's layout changes these later.

    `size` is that of the drawing at a scale of 1, `below` the points to keep free for the legend.
    """
    legend = ax.get_legend()
    lines = [*ax.patches, *(legend.get_lines() if legend else ())]
    sizes = [(line.set_linewidth, line.get_linewidth()) for line in lines]
    sizes += [(text.set_fontsize, float(text.get_fontsize())) for text in ax.texts]

    class Follower(Artist):
        """Is drawn before all others, and sees how large the Axes are."""

        last: tuple[float, float] | None = None

        def follow(self) -> None:
            now = style.points(ax)
            if now != self.last:
                self.last = now
                scale = _view(ax, size, below)
                for change, value in sizes:
                    change(scale * value)

        def draw(self, renderer: RendererBase) -> None:
            self.follow()

    follower = Follower()
    follower.set_zorder(-1)
    ax.add_artist(follower)
    follower.follow()


def _view(ax: Axes, size: tuple[float, float], below: float) -> float:
    """Set limits so that a unit is as many points in both directions, and return that number."""
    wide, high = style.points(ax)
    room = max(high - below, high / 3)
    width, height = size
    scale = min(_LARGEST, wide / (width + _SIZES.gap), room / (height + _SIZES.gap))
    ax.set_xlim((width - wide / scale) / 2, (width + wide / scale) / 2)
    top = (height + room / scale) / 2
    ax.set_ylim(top - high / scale, top)
    return scale


def _arc(ax: Axes, arc: ArcShape, order: float) -> None:
    size, line = arc.size, arc.width
    sign = style.NEGATIVE if size.effect < 0 else style.POSITIVE
    colour = style.paler(sign if size.one_sign else style.SOFT, _PALE * size.varies)
    path = Path(arc.curve, [Path.MOVETO] + [Path.CURVE4] * (len(arc.curve) - 1))
    look: dict[str, Any] = {"fill": False, "capstyle": "butt", "zorder": order}
    # Paper around an arc shows which of two that cross is above.
    ax.add_patch(PathPatch(path, edgecolor=style.PAPER, linewidth=line + _HALO, **look))
    dashes: Any = (0, _DASHES) if size.reversible else "solid"
    patch = PathPatch(path, edgecolor=colour, linewidth=line, linestyle=dashes, **look)
    patch.set_gid(f"arc: {size.parent} -> {size.child}")
    ax.add_patch(patch)
    inside = style.PAPER if size.reversible else colour
    ax.add_patch(Polygon(arc.head, facecolor=inside, edgecolor=colour, linewidth=0.9, zorder=order))


def _node(ax: Axes, net: Network, found: Drawing, i: int) -> None:
    layout, name = found.layout, found.layout.nodes[i]
    x, y, w, h = layout.x[i], layout.y[i], layout.width[i], layout.height[i]
    corner = (x - w / 2, y - h / 2, w, h)
    colour = style.NODE if net.fits[name].status.ok else style.TROUBLE
    dashes: Any = (0, _INPUT) if name in net.inputs else "solid"
    box, *inner = _boxes(outline_of(net, name), *corner)
    box.set(facecolor=colour, edgecolor=style.SOFT, linewidth=0.8, linestyle=dashes, zorder=3)
    box.set_gid(f"node: {name}")
    ax.add_patch(box)
    for line in inner:
        line.set(fill=False, edgecolor=style.SOFT, linewidth=0.8, linestyle=dashes, zorder=3)
        ax.add_patch(line)
    # On their own, names with and without long letters are to stand on the same line.
    single = len(found.lines[name]) == 1
    ax.text(
        x, y - single * _MIDDLE * style.FONT, "\n".join(found.lines[name]), fontsize=style.FONT,
        color=style.INK, ha="center", va="baseline" if single else "center", linespacing=_LINE,
        parse_math=False, zorder=4,
    )  # fmt: skip


def _boxes(look: Outline, x: float, y: float, width: float, height: float) -> list[Patch]:
    """The outline of a node, and of a discrete one the line inside it."""
    if look is Outline.COUNT:
        return [Polygon(cut_corners(x, y, width, height, _CUT))]
    if look is Outline.CONTINUOUS:
        rounded = "round,pad=0,rounding_size=4"
        return [FancyBboxPatch((x, y), width, height, boxstyle=rounded)]
    inner = (x + _INNER, y + _INNER), width - 2 * _INNER, height - 2 * _INNER
    return [Rectangle((x, y), width, height), Rectangle(*inner)]


class _NodeHandle:
    """A small node for the legend."""

    def legend_artist(self, legend: Any, handle: Patch, size: Any, box: Any) -> list[Patch]:
        wide, high = box.width, 1.25 * box.height
        drawn = _boxes(Outline(handle.get_gid() or ""), box.xdescent, -0.15 * high, wide, high)
        for line in drawn:
            line.set(facecolor=style.NODE, edgecolor=style.SOFT, linewidth=0.8)
            line.set(linestyle=handle.get_linestyle(), transform=box.get_transform())
            box.add_artist(line)
        return drawn


def _kinds(net: Network) -> list[Artist]:
    """Of nodes, for the legend."""
    entries: list[Artist] = [Patch(label=look.value, gid=look.value) for look in outlines(net)]
    if net.inputs:
        dashes: Any = (0, _INPUT)
        entries.append(Patch(label="input", gid=Outline.CONTINUOUS.value, linestyle=dashes))
    return entries


def _entries(net: Network, found: Drawing, what: str) -> list[Artist]:
    """The legend: only what there is."""

    def line(label: str, colour: Any, strength: float = 0.4, dashes: Any = "solid") -> Line2D:
        width = _SIZES.width(strength)
        return Line2D([], [], color=colour, linewidth=width, linestyle=dashes, label=label)

    sizes = [arc.size for arc in found.arcs]
    signed = [size for size in sizes if size.one_sign]
    trouble: dict[str, Any] = {"facecolor": style.TROUBLE, "edgecolor": style.SOFT}
    pale, sets = style.paler(style.POSITIVE, _PALE), noun_of(net.group).many
    free = line(f"direction {Direction.SCORE}", style.SOFT, 0.2, (0, _DASHES))
    entries: list[tuple[bool, Artist]] = [
        (any(size.effect >= 0 for size in signed), line("positive effect", style.POSITIVE)),
        (any(size.effect < 0 for size in signed), line("negative effect", style.NEGATIVE)),
        (len(signed) < len(sizes), line("sign depends on the level", style.SOFT)),
        *((bool(sizes), line(f"{what} {s:g}", style.SOFT, s)) for s in _EXAMPLES),
        (not sizes, line("no arcs: no node depends on another", style.PAPER)),
        (any(size.varies > 0 for size in sizes), line(f"pale: differs between {sets}", pale)),
        (any(size.reversible for size in sizes), free),
        (
            not all(fit.status.ok for fit in net.fits.values()),
            Patch(label="fit without likelihood", **trouble),
        ),
    ]
    return [*(entry for there, entry in entries if there), *_kinds(net)]
