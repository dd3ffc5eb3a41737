"""Runs the notebooks of these pages and shows what they give, without Jupyter.

Tests run them as they are; the pages show what each cell gives: what it prints, its last value, its
pictures.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook, and of a cell of code what it gives.

    Attributes:
        kind: "markdown" or "code".
        source: its text.
        printed: what it prints.
        value: its last value, None if it has none.
        pictures: the figures that it draws, as PNG.
    """

    kind: str
    source: str
    printed: str = ""
    value: object = None
    pictures: tuple[bytes, ...] = ()


def run(path: Path) -> Iterator[Cell]:
    """The cells of a notebook in order, each after it has run in the notebook's own folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield Cell("markdown", source)
        else:
            with chdir(path.parent):
                yield _run(source, names, f"{path.name}: {source.splitlines()[0]}")


def _run(source: str, names: dict[str, object], place: str) -> Cell:
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), place, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    return Cell("code", source, printed.getvalue(), value, tuple(_figures()))


def _figures() -> Iterator[bytes]:
    """The open figures, which are closed."""
    if "matplotlib.pyplot" not in sys.modules:
        return
    pyplot = sys.modules["matplotlib.pyplot"]
    for number in pyplot.get_fignums():
        picture = io.BytesIO()
        figure = pyplot.figure(number)
        figure.savefig(picture, format="png", dpi=110, bbox_inches="tight")
        pyplot.close(figure)
        yield picture.getvalue()


def as_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook that has run as Markdown, and its pictures by their names beside the page."""
    os.environ["MPLBACKEND"] = "Agg"
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in run(path):
        if cell.kind == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if cell.printed:
            parts.append(_text(cell.printed))
        if cell.value is not None:
            parts.append(_shown(cell.value))
        for picture in cell.pictures:
            name = f"{path.stem}_{len(pictures) + 1}.png"
            pictures[name] = picture
            parts.append(f"![What the code above draws]({name})")
    return "\n\n".join(parts) + "\n", pictures


def _text(text: str) -> str:
    return f"```text {{.gives}}\n{text.rstrip()}\n```"


def _shown(value: object) -> str:
    """As a notebook shows a value; tables have the style of the pages."""
    html = getattr(value, "_repr_html_", None)
    if html is None:
        return _text(repr(value))
    page = re.sub(r"<style.*?</style>", "", html(), flags=re.DOTALL)
    page = re.sub(' (border="1" )?class="dataframe"', "", page)
    return f'<div class="gives">\n{page}\n</div>'
