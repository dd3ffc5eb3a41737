"""The drawing of a network: boxes, curves and heads of arcs, for matplotlib and for the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from poolbn.assess.effectsizes import EffectSize, effect_sizes
from poolbn.network.network import Network
from poolbn.show.figures import wrapped
from poolbn.show.layout import Floats, Layout, layered, smooth
from poolbn.tables.kinds import kind_named


class Outline(StrEnum):
    """What the box of a node shows: the kind of values that it has."""

    CONTINUOUS = "continuous"  # rounded corners
    DISCRETE = "discrete"  # two lines around it
    COUNT = "count"  # corners cut off


def outline_of(net: Network, node: str) -> Outline:
    """What kind of values it has. Inputs have dashed lines, whatever these are."""
    kind = kind_named(net.fits[node].kind)
    if kind.has_levels:
        return Outline.DISCRETE
    return Outline.COUNT if kind.whole else Outline.CONTINUOUS


def outlines(net: Network) -> list[Outline]:
    """Those that a legend has to explain: none where all nodes are continuous."""
    there = {outline_of(net, node) for node in net.dag.nodes}
    return [] if there == {Outline.CONTINUOUS} else [own for own in Outline if own in there]


def cut_corners(x: float, y: float, width: float, height: float, cut: float) -> Floats:
    """The eight corners of a box whose corners are cut off; its corner with least x, y is given."""
    right, top = x + width, y + height
    return np.array(
        [
            (x + cut, y), (right - cut, y), (right, y + cut), (right, top - cut),
            (right - cut, top), (x + cut, top), (x, top - cut), (x, y + cut),
        ]
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes in the units of a drawing."""

    text: Callable[[str], float]  # the width of a line of text
    letters: int  # in a line of text, about
    line: float  # the height of a line of text
    pad: tuple[float, float]  # between a name and its box, sideways and up
    gap: float  # between nodes
    port: float  # of a node's edge for each arc
    widths: tuple[float, float]  # of arcs without strength and of full strength
    head: tuple[float, float]  # length and half the width of the head of an arc without width

    def width(self, strength: float) -> float:
        """The width of an arc."""
        return self.widths[0] + (self.widths[1] - self.widths[0]) * strength


@dataclass(frozen=True, eq=False)
class ArcShape:
    """One arc: its effect, the width of its line, the points of Bezier curves, and its head."""

    size: EffectSize
    width: float
    curve: Floats
    head: Floats


@dataclass(frozen=True, eq=False)
class Drawing:
    """A network: where its nodes are, lines of text in them, and its arcs, the strongest last."""

    layout: Layout
    lines: Mapping[str, list[str]]
    arcs: tuple[ArcShape, ...]


def drawn(
    net: Network,
    sizes: Sizes,
    strengths: Sequence[float] | None = None,
    effects: Sequence[EffectSize] | None = None,
) -> Drawing:
    """Lay a network out.

    Strengths of arcs are from 0 to 1, by default the size of their standardised effects.
    """
    effects = effect_sizes(net) if effects is None else effects
    if strengths is None:
        strengths = [min(1.0, abs(size.effect)) for size in effects]
    lines = {node: wrapped(node, sizes.letters) for node in net.dag.nodes}
    boxes = {node: _box(net, node, lines[node], sizes) for node in net.dag.nodes}
    layout = layered(net.dag, boxes, gap=sizes.gap)
    order = np.argsort(strengths, kind="stable").tolist()
    arcs = [_arc(effects[k], layout.routes[k], sizes.width(strengths[k]), sizes) for k in order]
    return Drawing(layout, lines, tuple(arcs))


def _box(net: Network, node: str, lines: Sequence[str], sizes: Sizes) -> tuple[float, float]:
    """Width and height of a node: its name fits in, and so do the ends of its arcs."""
    wide = max(map(sizes.text, lines)) + 2 * sizes.pad[0]
    arcs = max(len(net.dag.parents(node)), len(net.dag.children(node)))
    return max(wide, sizes.port * arcs), len(lines) * sizes.line + 2 * sizes.pad[1]


def _arc(size: EffectSize, route: Floats, width: float, sizes: Sizes) -> ArcShape:
    x, y = route[-1]
    long, half = sizes.head[0] + 1.3 * width, sizes.head[1] + 0.75 * width
    curve = smooth(np.vstack([route[:-1], (x, y + 0.9 * long)]))
    return ArcShape(
        size, width, curve, np.array([(x, y), (x - half, y + long), (x + half, y + long)])
    )
