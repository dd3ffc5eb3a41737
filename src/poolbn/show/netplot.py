"""The drawing of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.graph.pairs import Pair
from poolbn.network.network import Network
from poolbn.show import style
from poolbn.show.layout import Layout, layered, smooth
from poolbn.show.marks import Mark, arc_marks
from poolbn.show.places import Floats

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Points, at a scale of 1.
_PAD = (7.0, 5.0)  # between a name and its box
_GAP = 14.0  # between nodes
_PORT = 12.0  # of a node's edge for each arc
_WIDTHS = (0.9, 4.2)  # of arcs without strength and of full strength
_HALO = 2.2  # paper around arcs
_LINE = 1.2  # height of a line of text, in font sizes
_MIDDLE = 0.36  # of small letters above the base line, in font sizes

_PALE = 0.72  # white in the colour of an effect that varies as much as it is large
_DASHES = (2.2, 1.1)  # in line widths
_LARGEST = 1.3  # scale, however large the Axes are
_FIGURE = (4.5, 2.2), (20.0, 15.0)  # least and largest figure, in inches
_EXAMPLES = (0.2, 0.8)  # strengths in the legend


def draw_network(net: Network, strengths: Mapping[Pair, float] | None, ax: Axes | None) -> Axes:
    """Nodes, arcs and legend.

    Args:
        net: the network.
        strengths: of its arcs, from 0 to 1; None for the size of the standardised effects.
        ax: where to draw; None makes a figure that fits.
    """
    if ax is not None:
        style.check_axes(ax)
    marks = arc_marks(net)
    if strengths is None:
        what, strength = "standardised effect", [min(1.0, abs(mark.effect)) for mark in marks]
    else:
        what, strength = "arc strength", [strengths[mark.parent, mark.child] for mark in marks]
    labels = {node: style.wrapped(node) for node in net.dag.nodes}
    layout = layered(net.dag, {node: _box(net, node, labels[node]) for node in labels}, gap=_GAP)
    handles = _entries(net, marks, what)
    entry = max(style.text_width(str(h.get_label()), style.SMALL) for h in handles) + 36
    wish = (np.array(layout.size) + 2 * _GAP) / 72
    wide = max(_FIGURE[0][0], wish[0]) if ax is None else style.points(ax)[0] / 72
    columns = int(np.clip(72 * wide // entry, 1, len(handles)))
    below = _GAP + 1.5 * style.SMALL * -(-len(handles) // columns)
    if ax is None:
        fits = wish * min(1.0, *np.array(_FIGURE[1]) / wish)
        figure = np.maximum([fits[0], fits[1] + below / 72], _FIGURE[0])
        ax = style.new_axes(None, *figure.tolist())
    order = np.argsort(strength, kind="stable")  # strong arcs above weak ones
    for place, k in enumerate(order):
        _arc(ax, layout.routes[k], marks[k], strength[k], 1 + place / len(order))
    for i, node in enumerate(layout.nodes):
        _node(ax, layout, i, labels[node], net.fits[node].status.ok)
    ax.legend(handles=handles, loc="lower center", ncols=columns, handlelength=2.4,
              columnspacing=1.2, borderaxespad=0.2, **style.LEGEND)  # fmt: skip
    ax.set_axis_off()
    _follow(ax, layout.size, below)
    # All is inside: a figure's layout that made room for it would take that from the Axes.
    for artist in ax.get_children():
        artist.set_in_layout(False)
    return ax


def _follow(ax: Axes, size: tuple[float, float], below: float) -> None:
    """Keep all sizes in proportion to the Axes, also when a figure's layout changes these later.

    Args:
        ax: where lines and names have the sizes that they are to have at a scale of 1.
        size: width and height of the style.
        below: points to keep free for the legend.
    """
    from matplotlib.artist import Artist
    from matplotlib.backend_bases import RendererBase

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
    scale = min(_LARGEST, wide / (width + _GAP), room / (height + _GAP))
    ax.set_xlim((width - wide / scale) / 2, (width + wide / scale) / 2)
    top = (height + room / scale) / 2
    ax.set_ylim(top - high / scale, top)
    return scale


def _box(net: Network, node: str, label: str) -> tuple[float, float]:
    """Width and height of a node: its name fits in, and so do the ends of its arcs."""
    lines = label.split("\n")
    wide = max(style.text_width(line, style.FONT) for line in lines) + 2 * _PAD[0]
    arcs = max(len(net.dag.parents(node)), len(net.dag.children(node)))
    return max(wide, _PORT * arcs), len(lines) * _LINE * style.FONT + 2 * _PAD[1]


def _arc(ax: Axes, route: Floats, mark: Mark, strength: float, order: float) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    line = _thickness(strength)
    colour = _colour(mark.effect, mark.varies)
    tip, long, half = route[-1], 4.5 + 1.3 * line, 2.2 + 0.75 * line
    points = smooth(np.vstack([route[:-1], (tip[0], tip[1] + 0.9 * long)]))
    path = Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1))
    line_style: dict[str, Any] = {"fill": False, "capstyle": "butt", "zorder": order}
    # Paper around an arc shows which of two that cross is above.
    ax.add_patch(PathPatch(path, edgecolor=style.PAPER, linewidth=line + _HALO, **line_style))
    dashes: Any = (0, _DASHES) if mark.reversible else "solid"
    arc = PathPatch(path, edgecolor=colour, linewidth=line, linestyle=dashes, **line_style)
    arc.set_gid(f"arc: {mark.parent} -> {mark.child}")
    ax.add_patch(arc)
    head = [tip, (tip[0] - half, tip[1] + long), (tip[0] + half, tip[1] + long)]
    inside = style.PAPER if mark.reversible else colour
    ax.add_patch(Polygon(head, facecolor=inside, edgecolor=colour, linewidth=0.9, zorder=order))


def _thickness(strength: float) -> float:
    return _WIDTHS[0] + (_WIDTHS[1] - _WIDTHS[0]) * strength


def _colour(effect: float, varies: float) -> tuple[float, float, float]:
    sign = style.NEGATIVE if effect < 0 else style.POSITIVE
    return style.paler(sign, _PALE * varies)


def _node(ax: Axes, layout: Layout, i: int, label: str, ok: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y, w, h = layout.x[i], layout.y[i], layout.width[i], layout.height[i]
    box = FancyBboxPatch(
        (x - w / 2, y - h / 2),
        w,
        h,
        boxstyle="round,pad=0,rounding_size=4",
        facecolor=style.NODE if ok else style.TROUBLE,
        edgecolor=style.SOFT,
        linewidth=0.8,
        zorder=3,
    )
    box.set_gid(f"node: {layout.nodes[i]}")
    ax.add_patch(box)
    # On their own, names with and without long letters are to stand on the same line.
    single = "\n" not in label
    ax.text(
        x,
        y - single * _MIDDLE * style.FONT,
        label,
        fontsize=style.FONT,
        color=style.INK,
        ha="center",
        va="baseline" if single else "center",
        linespacing=_LINE,
        parse_math=False,
        zorder=4,
    )


def _entries(net: Network, marks: Sequence[Mark], what: str) -> list[Artist]:
    """The legend: only what there is."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def line(label: str, colour: Any, strength: float = 0.4, style: Any = "solid") -> Line2D:
        width = _thickness(strength)
        return Line2D([], [], color=colour, linewidth=width, linestyle=style, label=label)

    found: list[Artist] = []
    if any(mark.effect >= 0 for mark in marks):
        found.append(line("positive effect", style.POSITIVE))
    if any(mark.effect < 0 for mark in marks):
        found.append(line("negative effect", style.NEGATIVE))
    if marks:
        found += [line(f"{what} {s:g}", style.SOFT, s) for s in _EXAMPLES]
    else:
        found.append(line("no arcs: no node depends on another", style.PAPER))
    if any(mark.varies > 0 for mark in marks):
        found.append(line("pale: differs between data sets", _colour(1.0, 1.0)))
    if any(mark.reversible for mark in marks):
        found.append(line("direction not determined", style.SOFT, 0.2, (0, _DASHES)))
    if not all(fit.status.ok for fit in net.fits.values()):
        trouble = Patch(
            facecolor=style.TROUBLE, edgecolor=style.SOFT, label="fit without likelihood"
        )
        found.append(trouble)
    return found
