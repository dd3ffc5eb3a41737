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
from matplotlib.figure import Figure

from poolbn import plots
from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import Bootstrap
from poolbn.later import pandas as pd
from poolbn.network.network import Network
from poolbn.page.graph import FONT, Picture, picture
from poolbn.page.reporting import template
from poolbn.show import style
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
    return template("network.svg").render(picture=found, style=style, font=FONT)


def _headed(result: object) -> str:
    return f"<p><b>{html.escape(visible(str(result).splitlines()[0]))}</b></p>"


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
