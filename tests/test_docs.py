"""The documentation is whole: every public name is in it, with an example, and its commands run."""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app

DOCS = Path(__file__).parents[1] / "docs"
INNER = (
    "admits", "bounds", "cost", "counts", "fit", "learn", "logliks", "of_fit", "on",
)  # fmt: skip
# ... what poolings, scores and searches do for the package


def public() -> Iterator[tuple[str, object]]:
    """Functions and classes of the package, and of the modules that it shows."""
    for name in pb.__all__:
        found = getattr(pb, name)
        if not isinstance(found, ModuleType):
            yield name, found
            continue
        for inner, value in vars(found).items():
            own = getattr(value, "__module__", None) == found.__name__
            if own and callable(value) and not inner.startswith("_"):
                yield f"{name}.{inner}", value


def methods() -> Iterator[tuple[str, object]]:
    """Public methods of these classes; not of exceptions, and not what only the package calls."""
    for name, found in public():
        if inspect.isclass(found) and not issubclass(found, BaseException):
            for inner, value in vars(found).items():
                plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
                if inspect.isfunction(plain) and inner not in INNER and inner[0] != "_":
                    yield f"{name}.{inner}", plain


@pytest.mark.parametrize("name", [name for name, _ in (*public(), *methods())])
def test_every_public_name_has_an_example(name: str) -> None:
    found = dict((*public(), *methods()))[name]
    assert ">>> " in (inspect.getdoc(found) or ""), f"pb.{name} has no example"


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text()
    named = re.findall(r"^::: poolbn\.(\S+)$", page, re.MULTILINE)
    assert sorted(named) == sorted(name for name, _ in public())


# The command line in the documentation


def sessions(page: str) -> Iterator[tuple[str, str]]:
    """Files and commands of a page, in order, each with its content or what it prints."""
    for kind, body in re.findall(r"^```(toml|console)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        if kind == "toml":
            yield re.findall(r"\w+\.toml", body)[0], body
            continue
        for part in re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def typed(command: str) -> str:
    """What a command prints, of those that pages use."""
    program, *arguments = shlex.split(command)
    if program == "python":
        exec(arguments[1], {})
        return ""
    if program == "printf":
        text, _, path = arguments
        Path(path).write_text(text.replace("\\n", "\n"))
        return ""
    assert program == "poolbn"
    return CliRunner().invoke(app, arguments).output


@pytest.mark.parametrize(("page", "least"), [("commands", 9), ("federation", 9), ("large", 3)])
def test_the_commands_of_the_documentation(
    page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check = doctest.OutputChecker().check_output
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    seen = 0
    for command, printed in sessions((DOCS / f"{page}.md").read_text()):
        if command.endswith(".toml"):
            Path(command).write_text(printed)
            continue
        got = typed(command)
        assert check(printed, got, flags), f"$ {command}\n{got}"
        seen += 1
    assert seen >= least
