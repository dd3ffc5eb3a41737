"""What notebooks show of a result: its picture and a short table.

The picture is an image of its own, so that nothing in it runs, and its style stays inside.
"""

from __future__ import annotations

import base64
import html
import io
import warnings
from dataclasses import replace
from functools import singledispatch
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from poolbn import plots
from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.network.network import Network
from poolbn.page.graph import FONT, Picture, SvgArc, SvgNode, picture
from poolbn.show import style
from poolbn.show.drawing import Outline
from poolbn.show.figures import pair_name
from poolbn.wording import figure, sure, visible

_ROWS = 12  # of a short table
_WIDEST = 720  # pixels of a picture
_WIDE, _AROUND = 6.4, 1.4  # inches of a plot, and of its height besides the rows


@singledispatch
def shown(result: object) -> str:
    """A result as HTML: of a network, a bootstrap or a comparison."""
    raise TypeError(f"there is no picture of a {type(result).__name__}")


@shown.register
def _(net: Network) -> str:
    found = picture(net)
    return net.summary().as_html(_ROWS) + _image(network_svg(found), "network", found.width)


@shown.register
def _(boot: Bootstrap) -> str:
    pairs = boot.pairs()
    rows = min(_ROWS, len(pairs))
    shares = [(pair_name(pair), f"{pair.strength:.2f}", f"{pair.direction:.2f}") for pair in pairs]
    table = pd.DataFrame(shares, columns=["arc", "strength", "direction"])
    drawing = ""
    if rows:
        page = Figure(figsize=(_WIDE, _AROUND + style.ROW * rows), layout="constrained")
        harmless = replace(boot, nodes=tuple(map(visible, boot.nodes)))
        plots.strengths(harmless, most=rows, ax=page.add_subplot())
        drawing = _plotted(page, "strengths of arcs")
    return _headed(boot) + _short(table, index=False) + drawing


@shown.register
def _(found: Comparison) -> str:
    table = found.table().drop(columns="note")
    errors = table["se"].tolist()
    table["score"] = [figure(score, ".1f") for score in table["score"]]
    for name in ("difference", "se"):
        table[name] = [sure(v, e) for v, e in zip(table[name], errors, strict=True)]
    page = Figure(figsize=(1.4 * _WIDE, _AROUND + style.ROW * len(table)), layout="constrained")
    plots.comparison(found, ax=page.subplots(1, 4, sharey=True).tolist())
    told = f"<p>{html.escape(visible(found.verdict))}</p>"
    return _headed(found) + _short(table, index=True) + told + _plotted(page, "comparison")


def network_svg(found: Picture) -> str:
    """The drawing of a network as a file of SVG."""
    wide, high = found.width, found.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" font-family="system-ui, sans-serif" font-size="{FONT}">',
        f'<rect width="{wide}" height="{high}" rx="6" fill="{style.PAPER}"/>',
        *map(_arc, found.arcs),
        *map(_node, found.nodes),
        "</svg>",
    ]
    return "".join(parts)


def _arc(arc: SvgArc) -> str:
    colour = style.NEGATIVE if arc.negative else style.POSITIVE
    colour = colour if arc.signed else style.SOFT
    dashes = f"{1.5 * arc.width + 3:.1f} {0.8 * arc.width + 2:.1f}" if arc.reversible else "none"
    inside = style.PAPER if arc.reversible else colour
    return (
        f"<g><title>{_escaped(arc.label)}</title>"
        f'<path d="{arc.path}" fill="none" stroke="{style.PAPER}" stroke-width="{arc.width + 4}"/>'
        f'<g opacity="{arc.opacity}" stroke="{colour}"><path d="{arc.path}" fill="none" '
        f'stroke-width="{arc.width}" stroke-dasharray="{dashes}"/>'
        f'<polygon points="{arc.head}" fill="{inside}"/></g></g>'
    )


def _node(node: SvgNode) -> str:
    lines = (f'<tspan x="{node.middle}" y="{y}">{_escaped(line)}</tspan>' for y, line in node.lines)
    dashes = ' stroke-dasharray="5 3"' if node.given else ""
    return (
        f"<g><title>{_escaped(node.label)}</title>"
        f'<g fill="{style.NODE if node.ok else style.TROUBLE}" stroke="{style.SOFT}"{dashes}>'
        f"{_box(node)}</g>"
        f'<text text-anchor="middle" fill="{style.INK}">{"".join(lines)}</text></g>'
    )


def _box(node: SvgNode) -> str:
    """The outline of a node, by its kind."""
    if node.look == Outline.COUNT:
        return f'<polygon points="{node.corners}"/>'

    def rect(inset: float, more: str = "") -> str:
        x, y = node.x + inset, node.y + inset
        wide, high = node.width - 2 * inset, node.height - 2 * inset
        return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"{more}/>'

    return rect(0) + rect(3) if node.look == Outline.DISCRETE else rect(0, ' rx="6"')


def _escaped(text: str) -> str:
    return html.escape(visible(text))


def _headed(result: object) -> str:
    return f"<p><b>{_escaped(str(result).splitlines()[0])}</b></p>"


def _short(table: pd.DataFrame, *, index: bool) -> str:
    texts = table.map(lambda cell: visible(cell) if isinstance(cell, str) else cell)
    body = texts.iloc[:_ROWS].to_html(index=index, border=0, float_format=figure)
    left = len(table) - _ROWS
    return body + (f"<p>{left} more in <code>.table()</code></p>" if left > 0 else "")


def _plotted(drawing: Figure, what: str) -> str:
    """A figure of matplotlib, which pyplot does not know: it would be shown twice."""
    text = io.StringIO()
    plain: Any = {"svg.fonttype": "none", "svg.hashsalt": "poolbn"}
    with warnings.catch_warnings(), mpl.rc_context(plain):
        warnings.filterwarnings("ignore", "Glyph")  # the reader's browser brings the letters
        drawing.savefig(text, format="svg", metadata={"Date": None})
    return _image(text.getvalue(), what, 72 * drawing.get_figwidth())


def _image(svg: str, what: str, width: float) -> str:
    data = base64.b64encode(svg.encode(errors="xmlcharrefreplace")).decode()
    return (
        f'<img alt="{what}" style="max-width: 100%; width: {min(width, _WIDEST):.0f}px" '
        f'src="data:image/svg+xml;base64,{data}">'
    )
