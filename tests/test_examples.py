"""Notebooks of the documentation run, and what pages for users of other packages name is there."""

from __future__ import annotations

import ast
import html
import inspect
import json
import re
from pathlib import Path
from types import ModuleType

import matplotlib.figure
import notebooks
import pytest

import poolbn as pb
from poolbn.nodes.gaussianfit import GaussianFit

DOCS = Path(__file__).parents[1] / "docs"
SLOW = ("gallery", "schools")
NOTEBOOKS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
    for path in sorted(DOCS.rglob("*.ipynb"))
]
PAGES = ["for_r_users", "for_abn_users", "for_pgmpy_users", "for_causal_learn_users"]
LEARNING = set(inspect.signature(pb.learn).parameters)  # which others pass on
# Names that the tables use for things that they do not make.
THINGS: dict[str, object] = {
    "pb": pb, "net": pb.Network, "dag": pb.Dag, "boot": pb.Bootstrap, "post": pb.ArcPosterior,
    "fit": GaussianFit, "pattern": pb.Pattern, "stats": pb.GroupStats,
}  # fmt: skip


def test_there_are_a_gallery_and_three_examples() -> None:
    assert {path.stem for path in DOCS.rglob("*.ipynb")} == {
        "gallery", "schools", "batches", "hospitals"
    }  # fmt: skip


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_runs(path: Path) -> None:
    cells = list(notebooks.run(path))
    code = [cell for cell in cells if cell.kind == "code"]
    assert len(code) > 5
    assert sum(len(cell.pictures) for cell in code) >= 2
    assert all(picture.startswith(b"\x89PNG") for cell in code for picture in cell.pictures)


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_keeps_no_output(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell["cell_type"] == "markdown" or cell["execution_count"] is None


def test_what_a_cell_gives_is_on_its_page(tmp_path: Path) -> None:
    sources = [
        ("markdown", "# A title"),
        ("code", "import matplotlib.pyplot as plt\nimport pandas as pd\nprint('told')\n1 + 1"),
        ("code", "line = plt.plot([1, 2])"),
        ("code", "pd.DataFrame({'a': [3]})"),
        ("code", "b = 1"),
    ]
    cells = [{"cell_type": kind, "source": [source]} for kind, source in sources]
    (tmp_path / "made.ipynb").write_text(json.dumps({"cells": cells}))
    page, pictures = notebooks.as_page(tmp_path / "made.ipynb")
    assert page.startswith("# A title\n\n```python\nimport")
    assert "```text {.gives}\ntold\n```\n\n```text {.gives}\n2\n```" in page
    assert "![What the code above draws](made_1.png)" in page
    assert list(pictures) == ["made_1.png"]
    assert "<table>" in page
    assert "<td>3</td>" in page
    assert page.endswith("```python\nb = 1\n```\n")


def test_an_error_in_a_notebook_is_raised(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": ["1 / 0"]}]
    (tmp_path / "made.ipynb").write_text(json.dumps({"cells": cells}))
    with pytest.raises(ZeroDivisionError):
        list(notebooks.run(tmp_path / "made.ipynb"))


# Pages for users of other packages


def ours(page: str) -> list[str]:
    """The code in the last column of a page's tables."""
    rows = re.findall(r"^\|.*\|(.*)\|$", (DOCS / f"{page}.md").read_text(), re.MULTILINE)
    found = [re.findall(r"`([^`]+)`|<code>(.*?)</code>", row) for row in rows]
    return [html.unescape(plain or tagged) for row in found for plain, tagged in row]


def named(node: ast.expr) -> object:
    """What an expression such as pb.metrics.shd or net.effects names; None for what it makes."""
    if isinstance(node, ast.Name):
        return THINGS.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = named(node.value)
        if owner is None:
            return None
        if isinstance(owner, ModuleType) or hasattr(owner, node.attr):
            return getattr(owner, node.attr)
        fields = {name for kind in owner.__mro__ for name in getattr(kind, "__annotations__", {})}
        assert node.attr in fields, f"{owner.__name__} has no {node.attr}"
    return None


@pytest.mark.parametrize("page", PAGES)
def test_calls_beside_theirs_are_real(page: str) -> None:
    seen = 0
    for code in ours(page):
        text = code.replace("...", "").replace("=, ", "=1, ").replace("=)", "=1)")
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue  # a word, or an argument alone
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                named(node)
            if isinstance(node, ast.Call) and (function := named(node.func)) is not None:
                taken = inspect.signature(function).parameters
                seen += 1
                for keyword in node.keywords:
                    anything = "nodes" in taken or function is pb.Network.do
                    known = keyword.arg in taken or keyword.arg in LEARNING or anything
                    assert known, f"{code}: no {keyword.arg}"
    assert seen >= 9


@pytest.mark.parametrize("page", PAGES)
def test_arguments_beside_theirs_are_real(page: str) -> None:
    rows = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
    for code in ours(page):
        if match := re.fullmatch(r"(score|search|pooling)=(.+)", code):
            value = eval(match[2], {"pb": pb})
            pooling = {"pooling": "complete"} if value == "bge" else {}
            assert pb.learn(rows, group="clinic", **{match[1]: value}, **pooling).nodes


def test_figures_are_closed() -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert len(list(notebooks._figures())) == 1
    assert plt.get_fignums() == []
