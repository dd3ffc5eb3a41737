"""The drawing of a network for the report: that of `pb.plots.network`, as SVG."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from poolbn.assess.effectsizes import EffectSize
from poolbn.network.network import Network
from poolbn.page.summary import arc_label, node_label
from poolbn.show.drawing import ArcShape, Drawing, Sizes, cut_corners, drawn, outline_of, outlines
from poolbn.show.layout import Floats
from poolbn.wording import Noun, noun_of

# Pixels, at a scale of 1.
FONT, LINE = 13.0, 16.0  # size of letters, height of a line
_SIZES = Sizes(
    text=lambda text: FONT * text_width(text), letters=18, line=LINE, pad=(10.0, 7.0), gap=26.0,
    port=16.0, widths=(1.4, 6.0), head=(6.5, 3.2),
)  # fmt: skip
_CUT = 8.0  # off the corners of a count
_MARGIN = 12.0  # around the whole
_PALE = 0.7  # paper in the colour of an effect that varies as much as it is large

_NARROW, _WIDE = set("ijlft.,:;'|!()[]{}/ -rI"), set("mwMW@%")


@dataclass(frozen=True)
class SvgArc:
    """One arc: its index, line and head as SVG has them, and a label; opaque where it is pale."""

    index: int
    path: str
    head: str
    width: float
    opacity: float
    negative: bool
    signed: bool  # whether all its effects have the same sign
    reversible: bool
    label: str


@dataclass(frozen=True)
class SvgNode:
    """One node: its index, the left upper corner and size of its box, and lines of text in it."""

    index: int
    x: float
    y: float
    width: float
    height: float
    middle: float
    lines: tuple[tuple[float, str], ...]
    ok: bool
    label: str
    look: str  # its kind
    given: bool  # whether it is an input
    corners: str  # of its box where they are cut off


@dataclass(frozen=True)
class Picture:
    """A network: width and height, arcs with the strongest last, and nodes, parents first."""

    width: float
    height: float
    arcs: tuple[SvgArc, ...]
    nodes: tuple[SvgNode, ...]
    kinds: tuple[str, ...]  # that the legend explains


def picture(net: Network, effects: Sequence[EffectSize] | None = None) -> Picture:
    """Lay a network out; its effects are given where they are known."""
    found = drawn(net, _SIZES, effects=effects)
    wide, high = found.layout.size
    sets = noun_of(net.group)
    index = {node: i for i, node in enumerate(found.layout.nodes)}
    return Picture(
        round(wide + 2 * _MARGIN, 1),
        round(high + 2 * _MARGIN, 1),
        tuple(_arc(arc, high, sets) for arc in found.arcs),
        tuple(_node(net, found, index[node]) for node in net.dag.topological_order()),
        tuple(look.value for look in outlines(net)),
    )


def text_width(text: str) -> float:
    """About how wide a text is in sizes of its letters: rather too wide, as fonts differ."""

    def wide(letter: str) -> float:
        if unicodedata.east_asian_width(letter) in "WF":
            return 1.05
        if unicodedata.combining(letter):
            return 0.0
        if letter in _NARROW:
            return 0.38
        if letter in _WIDE:
            return 0.95
        return 0.7 if letter.isupper() else 0.6

    return sum(map(wide, text))


def _arc(arc: ArcShape, high: float, sets: Noun) -> SvgArc:
    start, *curve = _points(arc.curve, high)
    return SvgArc(
        index=arc.size.index,
        path=f"M{start}C{' '.join(curve)}",
        head=" ".join(_points(arc.head, high)),
        width=round(arc.width, 2),
        opacity=round(1 - _PALE * arc.size.varies, 2),
        negative=arc.size.effect < 0,
        signed=arc.size.one_sign,
        reversible=arc.size.reversible,
        label=arc_label(arc.size, sets),
    )


def _points(xy: Floats, high: float) -> Iterable[str]:
    """Coordinates of SVG, in which y grows downwards."""
    for x, y in np.column_stack([xy[:, 0], high - xy[:, 1]]) + _MARGIN:
        yield f"{x:.1f},{y:.1f}"


def _node(net: Network, found: Drawing, i: int) -> SvgNode:
    layout, name = found.layout, found.layout.nodes[i]
    lines = found.lines[name]
    x, y = float(layout.x[i]) + _MARGIN, layout.size[1] - float(layout.y[i]) + _MARGIN
    wide, high = float(layout.width[i]), float(layout.height[i])
    corner = (x - wide / 2, y - high / 2)
    first = y - (len(lines) - 1) * LINE / 2 + 0.35 * FONT
    return SvgNode(
        index=i,
        x=round(x - wide / 2, 1),
        y=round(y - high / 2, 1),
        width=round(wide, 1),
        height=round(high, 1),
        middle=round(x, 1),
        lines=tuple((round(first + k * LINE, 1), line) for k, line in enumerate(lines)),
        ok=net.fits[name].status.ok,
        label=node_label(net, name),
        look=outline_of(net, name).value,
        given=name in net.inputs,
        corners=" ".join(f"{a:.1f},{b:.1f}" for a, b in cut_corners(*corner, wide, high, _CUT)),
    )
