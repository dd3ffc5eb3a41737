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
from helpers import ASKED_OF_DATA, ASKED_OF_FITS
from printed import Checker, same_output
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app

DOCS = Path(__file__).parents[1] / "docs"
# Options that are objects: only the package calls their methods.
OPTIONS = {
    "Auto", "AutoSearch", "BGe", "Complete", "Constraints", "Exact", "HillClimb", "Hybrid", "MMPC",
    "NoPooling", "OrderSearch", "PC", "Partial", "Split", "Tabu",
}  # fmt: skip


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
    """Methods of these classes that a user calls."""
    for name, found in public():
        if inspect.isclass(found) and name not in OPTIONS:
            for inner, value in vars(found).items():
                plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
                own = inner[0] == "_" or inner in ASKED_OF_DATA | ASKED_OF_FITS
                if inspect.isfunction(plain) and not own:
                    yield f"{name}.{inner}", plain


def exception(found: object) -> bool:
    return inspect.isclass(found) and issubclass(found, BaseException)


NEED_EXAMPLES = {name: found for name, found in (*public(), *methods()) if not exception(found)}


@pytest.mark.parametrize("name", NEED_EXAMPLES)
def test_what_a_user_calls_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(NEED_EXAMPLES[name]) or ""), f"pb.{name} has no example"


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text()
    named = re.findall(r"^::: poolbn\.(\S+)$", page, re.MULTILINE)
    optional = ["sklearn.NetworkClassifier", "sklearn.NetworkRegressor"]
    assert sorted(named) == sorted([*(name for name, _ in public()), *optional])


# What is printed


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("sd 0.7345 in 4 clinics", "sd   0.7346\nin 4 clinics"),
        ("-1.2340e-05", "-1.2341e-05"),
        ("0.9999", "1.0000"),
        ("[0.1000, 2.]", "[0.1001, 2.]"),
        ("0.3", "0.30000000000000004"),
        ("-0.00", "0.00"),
        ("0.1234-0.5678", "0.1235-0.5677"),
        ("age 26.4827586206...\nbmi 27.1234", "age 26.4827586207\nbmi 27.1235"),
        ("a 0.1234 ... b 0.1234\n...", "a 0.1235 b 7 b 0.1235 c"),
        ("sum\n─────\n9.999", "sum\n──────\n10.000"),
        ("2024-01-01", "2024-01-01"),
    ],
)
def test_a_last_digit_may_differ(want: str, got: str) -> None:
    assert Checker().check_output(want, got, doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("sd 0.7345 in 4 clinics", "sd 0.7347 in 4 clinics"),
        ("sd 0.7345 in 4 clinics", "sd 0.7345 in 5 clinics"),
        ("sd 0.7345 in 4 clinics", "sd 0.7346 in 4 clinic"),
        ("0.5", "0.4"),
        ("0.734", "0.735"),
        ("1.2340", "-1.2340"),
        ("1.2340e-05", "1.2340e-06"),
        ("[1., 2.]", "[1., 3.]"),
        ("10000 rows", "10001 rows"),
        ("0.1234 0.5678", "0.1234"),
        ("0.1234", "0.1234 0.5678"),
        ("x1", "x2"),
        ("1.2.3", "1.2.4"),
        ("0.00", "0.01"),
        ("0.5000", "nan"),
        ("a ... b 0.1234", "a 0.1234 b 0.1236"),
        ("a 0.1234 ... b ... 0.5", "a 0.1234 0.5"),
    ],
)
def test_a_wrong_number_is_wrong(want: str, got: str) -> None:
    assert not Checker().check_output(want, got, doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)


def test_pytest_uses_this_checker() -> None:
    assert doctest.OutputChecker is Checker


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
    return result_of(command)[1]


def result_of(command: str) -> tuple[int, str]:
    """Its exit code, and what it prints."""
    program, *arguments = shlex.split(command, comments=True)
    if program == "python":
        exec(arguments[1], {})
        return 0, ""
    if program == "printf":
        text, _, path = arguments
        Path(path).write_text(text.replace("\\n", "\n"))
        return 0, ""
    assert program == "poolbn"
    sent = None
    if "<" in arguments:
        *arguments, _, path = arguments
        sent = Path(path).read_bytes()
    done = CliRunner().invoke(app, arguments, input=sent)
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("page", "least"), [("commands", 11), ("federation", 9), ("files", 2), ("large", 3)]
)
def test_the_commands_of_the_documentation(
    page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = 0
    for command, printed in sessions((DOCS / f"{page}.md").read_text()):
        if command.endswith(".toml"):
            Path(command).write_text(printed)
            continue
        got = typed(command)
        assert same_output(printed, got), f"$ {command}\n{got}"
        seen += 1
    assert seen >= least


@pytest.mark.slow
def test_the_commands_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are written, one after the other; what the first one proposes runs, too."""
    monkeypatch.chdir(tmp_path)
    readme = (DOCS.parent / "README.md").read_text()
    (block,) = re.findall(r"^```\n(python -c.*?)^```", readme, re.MULTILINE | re.DOTALL)
    commands = block.splitlines()
    assert [command.split()[1] for command in commands[1:3]] == ["look", "learn"]
    for command in commands:
        code, said = result_of(command)
        assert code == 0, f"$ {command}\n{said}"
        if " look " in command:
            assert result_of(f"{said.splitlines()[-1]}-2")[0] == 0
    assert Path("out/report.html").exists()


def test_the_glossary_has_each_word_once_and_names_what_exists() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    words = [word for row in rows for word in row[0].removeprefix("| ").split(", ")]
    assert [word for word in set(words) - {"word", "---"} if words.count(word) > 1] == []
    stats = pb.stats(pb.datasets.opt()[["clinic", "age", "gestation_days"]], group="clinic")
    net = pb.learn(stats)
    homes = {"pb": pb, "net": net, "fit": net["age"], "pattern": pb.PC().pattern(stats)}
    named = re.findall(r"`(pb|net|fit|pattern)\.(\w+)", text)
    assert len(named) > 20
    assert [name for home, name in named if not hasattr(homes[home], name)] == []
