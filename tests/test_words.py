"""One voice over errors, help, reports and documentation: no word that was replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import poolbn as pb

SOURCE = Path(pb.__file__).parent
ROOT = Path(__file__).parents[1]

OLD = {
    r"drawn towards": "shrunk towards",
    r"\bgaps?\b|cells that are not there": "missing values",
    r"not settled": "did not converge",
    r"\bboundary\b": "singular fit",
    r"\bdear(er|est)?\b": "expensive",
    r"\bcomplain": "raises",
    r"\bbehind\b": "difference from the best model",
    r"\bat most\b": "upper bound, or up to",
    r"data want": "which model predicts best",
    r"another data set is expected": "range expected for a new data set",
    r"no evidence\b": "not used",
    r"=\S+ (is|are) none": "must be",
    r"all that is drawn at random": "random seed",
    r"\b(this|the) page\b": "report",
}

# What has the old word for a reason: a name in a file format or in code, or a word of mathematics.
KEPT = {
    "docs/federation.md": [r"section `gaps`"],
    "docs/file_format.md": [r"`gaps`", r"on the page on sites"],
    "docs/before.md": [r"numbers with wide gaps", r"ids with gaps"],  # between whole numbers
    "docs/residuals.md": [r"is at most the largest", r"boundary of the parameters"],
    "docs/probabilities.md": [r"at most the lowest of"],
    "docs/columns.md": [r"This page says"],  # of the documentation
    "docs/study.md": [r"this page is built"],
    "src/poolbn/moments/statsfile.py": [r"its gaps"],  # a section of .stats files
    "benchmarks/study": [r"at most"],  # a relation in a table of claims
}


def documented(tree: ast.AST) -> set[int]:
    """Docstrings, which are for those who read the code."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    bodies = [node.body[0] for node in ast.walk(tree) if isinstance(node, kinds) and node.body]
    return {id(first.value) for first in bodies if isinstance(first, ast.Expr)}


def texts(path: Path) -> Iterator[str]:
    """What people read of a file: its lines, or of code the sentences in it."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tree = ast.parse(text)
        hidden = documented(tree)
        for node in ast.walk(tree):
            sentence = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if sentence and id(node) not in hidden and " " in node.value:
                yield node.value  # type: ignore[attr-defined]
    elif path.suffix == ".js":
        for line in text.splitlines():
            code = re.sub(r"(^|\s)//.*", "", line)
            yield from re.findall(r'"[^"]*"|`[^`]*`', code)
    else:
        # Without the code of templates, and what is inside tags.
        yield from re.sub(r"\{%.*?%\}|<[a-z][^>]*>", "", text).splitlines()


def files() -> list[Path]:
    kinds = ("*.py", "*.js", "*.html", "*.md")
    source = [path for kind in kinds for path in SOURCE.rglob(kind)]
    return [*source, *ROOT.glob("docs/*.md"), ROOT / "README.md"]


def test_replaced_words_are_not_used() -> None:
    found = []
    for path in files():
        name = path.relative_to(ROOT if path.is_relative_to(ROOT) else SOURCE.parents[1]).as_posix()
        kept = [rule for start, rules in KEPT.items() if name.startswith(start) for rule in rules]
        for text in texts(path):
            left = text
            for rule in kept:
                left = re.sub(rule, "", left)
            for old, new in OLD.items():
                found += [f"{name}: {m[0]!r} for {new!r} in {text.strip()[:90]!r}"
                          for m in re.finditer(old, left, re.IGNORECASE)]  # fmt: skip
    assert found == []


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", 'def f():\n    """Fills gaps."""\n    raise ValueError(f"the {1} gaps")\n'),
        (".js", 'const gap = 1; // gaps\nsay("two gaps");\n'),
        (".html", '<p class="gap">{% if gap %}rows with gaps{% endif %}</p>\n'),
    ],
)
def test_only_what_people_read_counts(suffix: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_text(text)
    assert sum(len(re.findall("gap", part)) for part in texts(path)) == 1
