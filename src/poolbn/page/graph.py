"""The drawing of a network for a page: the same layout and marks as `pb.plots.network`, as SVG."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poolbn.network.network import Network
from poolbn.page.words import arrow, number
from poolbn.show import style
from poolbn.show.layout import Layout, layered, smooth
from poolbn.show.marks import Mark, arc_marks
from poolbn.show.places import Floats

# Pixels, at a scale of 1.
FONT, LINE = 13.0, 16.0  # size of letters, height of a line
_PAD = (10.0, 7.0)  # between a name and its box
_GAP = 26.0  # between nodes
_PORT = 16.0  # of a node's edge for each arc
_MARGIN = 12.0  # around the whole
_WIDTHS = (1.4, 6.0)  # of arcs without strength and of full strength

_PALE = 0.7  # paper in the colour of an effect that varies as much as it is large

_NARROW, _WIDE = set("ijlft.,:;'|!()[]{}/ -rI"), set("mwMW@%")


@dataclass(frozen=True)
class ArcShape:
    """One arc.

    Attributes:
        place: among the arcs of the graph.
        path: its line, as SVG has it.
        head: the corners of its head.
        width: of the line.
        opacity: how much of its colour there is.
        negative: whether the effect is negative.
        reversible: whether its direction is not determined.
        label: all that in words.
    """

    place: int
    path: str
    head: str
    width: float
    opacity: float
    negative: bool
    reversible: bool
    label: str


@dataclass(frozen=True)
class NodeShape:
    """One node: the left upper corner and the size of its box, and lines of text in it."""

    place: int
    x: float
    y: float
    width: float
    height: float
    middle: float
    lines: tuple[tuple[float, str], ...]
    ok: bool
    label: str


@dataclass(frozen=True)
class Picture:
    """A network: width and height, arcs with the strongest last, and nodes, parents first."""

    width: float
    height: float
    arcs: tuple[ArcShape, ...]
    nodes: tuple[NodeShape, ...]


def picture(net: Network) -> Picture:
    """Lay a network out.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> (arc,) = picture(pb.learn(trial, group="clinic")).arcs
        >>> arc.label
        'birthweight_g → gestation_days: effect 0.7674 in standard deviations, between data sets ...
    """
    lines = {node: style.wrapped(node, 18).split("\n") for node in net.dag.nodes}
    boxes = {node: _box(net, node, lines[node]) for node in net.dag.nodes}
    layout = layered(net.dag, boxes, gap=_GAP)
    marks = arc_marks(net)
    order = sorted(range(len(marks)), key=lambda k: abs(marks[k].effect))
    place = {node: i for i, node in enumerate(layout.nodes)}
    return Picture(
        round(layout.size[0] + 2 * _MARGIN, 1),
        round(layout.size[1] + 2 * _MARGIN, 1),
        tuple(_arc(k, marks[k], _turned(layout.routes[k], layout)) for k in order),
        tuple(_node(net, layout, place[node], lines[node]) for node in net.dag.topological_order()),
    )


def text_width(text: str) -> float:
    """About how wide a text is in the fonts that systems have, in sizes of its letters.

    Rather too wide than too narrow. The font of the reader is not known here.

    Examples:
        >>> text_width("ill") < text_width("mom") < text_width("東京都")
        True
    """
    return sum(_letter(letter) for letter in text)


def _letter(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if unicodedata.combining(letter):
        return 0.0
    if letter in _NARROW:
        return 0.38
    if letter in _WIDE:
        return 0.95
    return 0.7 if letter.isupper() else 0.6


def _box(net: Network, node: str, lines: Sequence[str]) -> tuple[float, float]:
    """Width and height of a node: its name fits in, and so do the ends of its arcs."""
    wide = max(FONT * text_width(line) for line in lines) + 2 * _PAD[0]
    arcs = max(len(net.dag.parents(node)), len(net.dag.children(node)))
    return max(wide, _PORT * arcs), len(lines) * LINE + 2 * _PAD[1]


def _turned(route: Floats, layout: Layout) -> Floats:
    """Coordinates of SVG, in which y grows downwards."""
    return np.column_stack([route[:, 0] + _MARGIN, layout.size[1] - route[:, 1] + _MARGIN])


def _arc(place: int, mark: Mark, route: Floats) -> ArcShape:
    strength = min(1.0, abs(mark.effect))
    width = _WIDTHS[0] + (_WIDTHS[1] - _WIDTHS[0]) * strength
    tip, long, half = route[-1], 6.5 + 1.3 * width, 3.2 + 0.75 * width
    points = smooth(np.vstack([route[:-1], (tip[0], tip[1] - 0.9 * long)]))
    path = f"M{_pair(points[0])}C{' '.join(_pair(point) for point in points[1:])}"
    head = [tip, (tip[0] - half, tip[1] - long), (tip[0] + half, tip[1] - long)]
    return ArcShape(
        place=place,
        path=path,
        head=" ".join(_pair(corner) for corner in head),
        width=round(width, 2),
        opacity=round(1 - _PALE * mark.varies, 2),
        negative=mark.effect < 0,
        reversible=mark.reversible,
        label=_label(mark),
    )


def _pair(point: Floats | tuple[float, float]) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def _label(mark: Mark) -> str:
    told = [
        f"{arrow(mark.parent, mark.child)}: effect {number(mark.effect)} in standard deviations"
    ]
    if mark.between_sd > 0:
        told.append(f"between data sets it varies by {number(mark.between_sd)}")
    if mark.reversible:
        told.append("direction not determined")
    return ", ".join(told)


def _node(net: Network, layout: Layout, i: int, lines: Sequence[str]) -> NodeShape:
    name = layout.nodes[i]
    x, y = layout.x[i] + _MARGIN, layout.size[1] - layout.y[i] + _MARGIN
    first = y - (len(lines) - 1) * LINE / 2 + 0.35 * FONT
    fit = net.fits[name]
    told = [f"{name}: {fit.pooling}"]
    if fit.parents:
        told.append(f"depends on {', '.join(fit.parents)}")
    if not fit.status.ok:
        told.append(str(fit.status))
    return NodeShape(
        place=i,
        x=round(float(x - layout.width[i] / 2), 1),
        y=round(float(y - layout.height[i] / 2), 1),
        width=round(float(layout.width[i]), 1),
        height=round(float(layout.height[i]), 1),
        middle=round(float(x), 1),
        lines=tuple((round(float(first + k * LINE), 1), line) for k, line in enumerate(lines)),
        ok=fit.status.ok,
        label=", ".join(told),
    )
