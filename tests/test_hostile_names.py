"""Names from outside on a terminal, in spreadsheets and in R: shown and kept, never obeyed."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hostile import NAMES
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.cli.terminal import Terminal, clear_errors
from poolbn.network.exporting import r_text
from poolbn.wording import csv_text, guarded, visible

MARKUP = ["[red]x", "[/]", "[link=http://invalid.test]x[/link]", ":bomb:"]
each_name = pytest.mark.parametrize("name", [*NAMES.values(), *MARKUP], ids=[*NAMES, *MARKUP])
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def raw(text: str) -> list[str]:
    """Characters that a terminal would obey."""
    return [c for c in text if not c.isprintable() and c != "\n"]


def table(name: str) -> pd.DataFrame:
    """A column and a data set with the name."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"F": ["a", "b", name or "c"] * 20, "x": x, "y": x + rng.normal(size=60)})
    return frame.rename(columns={"y": name}) if name.strip() and len(name) < 100 else frame


@given(st.text())
def test_a_text_is_shown_without_what_a_terminal_obeys(text: str) -> None:
    assert visible(text).isprintable()
    assert visible("a ü 体重 −…→") == "a ü 体重 −…→"
    if text.isprintable():
        assert visible(text) == text


@each_name
def test_what_is_printed_is_harmless(name: str) -> None:
    frame = table(name)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        stats = pb.stats(frame, group="F")
        net = pb.learn(stats, start=[(stats.names[0], stats.names[1])])
        boot = pb.bootstrap(stats, replicates=2, pooling="complete", unit="data set")
    fit = net.fits[stats.names[1]]
    for shown in (
        stats, net, boot, net.dag, net.dag.cpdag(), fit, net.posterior({}, stats.names[1]),
        *(warning.message for warning in told), *pb.check(stats),
    ):  # fmt: skip
        assert raw(str(shown)) == [], type(shown)
        assert raw(repr(shown)) == [], type(shown)


@each_name
def test_errors_are_harmless_and_of_one_line(name: str) -> None:
    frame = table(name)
    stats = pb.stats(frame, group="F")
    net = pb.learn(stats)
    for wrong in (
        lambda: pb.stats(frame, group=name + "?"),
        lambda: pb.stats(frame, group="F", columns=[name + "?"]),
        lambda: pb.learn(stats, start=[(stats.names[0], name + "?")]),
        lambda: pb.learn(stats, constraints=pb.Constraints(
            forbidden=[(stats.names[0], stats.names[1])], required=[stats.names])),
        lambda: net.predict(frame, name + "?"),
        lambda: net.sample(1, name + "?"),
        lambda: net.query(name + "?"),
        lambda: pb.load(f"no/{name.replace(chr(0), '')}.json"),
    ):  # fmt: skip
        with pytest.raises(pb.PoolbnError) as error:
            wrong()
        assert visible(str(error.value)) == str(error.value)
        assert visible(error.value.for_shell()) == error.value.for_shell()


def test_commands_print_and_write_harmless_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sets = [name for name in [*NAMES.values(), *MARKUP] if name.strip()]
    columns = ["red", "right to left", "C1 control", "formula", "formula at", "newline", "markup"]
    x = rng.normal(size=(4 * len(sets), 1)) + rng.normal(size=(4 * len(sets), len(columns)))
    frame = pd.DataFrame(x, columns=[NAMES[column] for column in columns]).assign(F=sets * 4)
    source, out = tmp_path / "rows.parquet", tmp_path / "out"
    frame.to_parquet(source)
    fast = [str(source), "--group", "F", "--pooling", "none", "--max-parents", "1"]
    made = CliRunner().invoke(app, ["learn", *fast, "-o", str(out)])
    assert made.exit_code == 0, made.output
    assert raw(made.stdout + made.stderr) == []
    told = CliRunner().invoke(app, ["learn", *fast, "--json"])
    assert raw(told.stdout) == []
    assert set(json.loads(told.stdout)["nodes"]) == set(frame.columns) - {"F"}
    with (out / "arcs.csv").open(newline="", encoding="utf-8") as lines:
        cells = [cell for line in csv.reader(lines) for cell in line]
    assert "'=HYPERLINK(1)" in cells
    assert not [cell for cell in cells if cell.startswith(FORMULA) and not is_number(cell)]


@each_name
def test_arguments_are_refused_in_one_harmless_line(name: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    page = str(tmp_path / name.replace("\0", ""))
    wanted = ["predict", missing, missing, "--target", name]
    for arguments in (wanted, ["report", missing, "-o", page]):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 2
        assert raw(done.stderr) == []
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["right to left", "isolate", "zero width", "red", "newline"])
def test_a_page_shows_what_names_hide(kind: str, tmp_path: Path) -> None:
    name, file = NAMES[kind], tmp_path / "report.html"
    rows = table(name)
    pb.report(pb.learn(rows, group="F", pooling="complete"), file, data=rows, settings={name: name})
    page = re.sub(r'<script type="text/plain" id="file-.*?</script>', "", file.read_text())
    numbers = re.search(r'id="numbers">(.*?)</script>', page)
    assert numbers is not None
    shown = [node["name"] for node in json.loads(numbers[1])["nodes"]]
    assert visible(name, "\n") in shown
    assert raw("".join(shown)) == []
    assert raw(page.replace("\t", "")) == []


def is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?(\d+\.?\d*(e[-+]?\d+)?|inf|nan)", text, re.I) is not None


def test_names_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    for name in MARKUP:
        terminal.text(f"column {name}")
        terminal.table([name, "b"], [[name, "1"]])
        terminal.note(name)
        found = capsys.readouterr()
        assert found.out.count(name) == 3
        assert found.err == f"{name}\n"


def test_unexpected_errors_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    import typer

    with pytest.raises(typer.Exit), clear_errors():
        raise RuntimeError("\x1b[31mred\u202e")
    assert r"\x1b[31mred\u202e" in capsys.readouterr().err


@given(st.one_of(st.text(), st.sampled_from([*NAMES.values()])))
@example("a\r=1+1")
def test_no_cell_of_a_spreadsheet_is_a_formula(name: str) -> None:
    name = re.sub("[\ud800-\udfff\0]", "?", name)
    frame = pd.DataFrame({"k": [name, "b"], name + "!": [-1.5, 2.0]})
    lines = list(csv.reader(io.StringIO(csv_text(frame), newline="")))
    for cell in (lines[0][1], lines[1][0]):
        assert cell.lstrip()[:1] not in tuple("=+-@") or is_float(cell)
    assert [line[1] for line in lines[1:]] == ["-1.5", "2.0"]
    assert lines[1][0].removeprefix("'") == name.removeprefix("'")


def is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_numbers_of_a_spreadsheet_stay_numbers() -> None:
    frame = pd.DataFrame({"a": [-1.0, 2.5], "b": [-3, 4], "c": ["-5", "+x"]}, index=["=1", "k"])
    assert csv_text(frame, index=True).splitlines() == [
        "index,a,b,c", "'=1,-1.0,-3,-5", "k,2.5,4,'+x"]  # fmt: skip
    assert guarded(None) is None


# R


def test_r_scripts_have_no_hidden_characters() -> None:
    frame = table("a").rename(columns={"a": "a\u202eb\x1b[31m\u200b\U000e0001"})
    script = pb.learn(frame, group="F").to_bnlearn()
    assert raw(script) == []
    assert r"a\u{202e}b\u{1b}[31m\u{200b}\U{e0001}" in script


def test_bif_has_words_only() -> None:
    name = "a\u202eb\x1b[31m\n// }{ (é)"
    frame = pd.DataFrame({name: ["x\n};", "y"] * 10, "F": ["k", "k", "m\u200b", "m\u200b"] * 5})
    lines = pb.learn(frame, group="F", pooling="complete").to_bif().split("\n")
    assert raw("\n".join(lines)) == []
    comments = [line for line in lines if line.startswith("//")]
    assert len(comments) == 3
    assert "variable a_b__31m__________ {" in lines
    assert "  type discrete [ 2 ] { x___, y };" in lines


def test_r_has_no_nul() -> None:
    net = pb.learn(table("a").rename(columns={"a": "a\0b"}), group="F")
    with pytest.raises(pb.GraphError, match=r"contains '\\x00', which R cannot hold; rename it"):
        net.to_bnlearn()


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R")
def test_r_reads_the_names_as_they_are(tmp_path: Path) -> None:
    names = [name for name in [*NAMES.values(), *MARKUP] if "\0" not in name]
    code = f"cat(sapply(list({', '.join(map(r_text, names))}), function(s) "
    code += "paste(utf8ToInt(enc2utf8(s)), collapse = ' ')), sep = '\\n')\n"
    assert raw(code) == []
    (tmp_path / "names.R").write_text(code, encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", "--encoding=UTF-8", str(tmp_path / "names.R")],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    found = ["".join(chr(int(code)) for code in line.split()) for line in done.stdout.split("\n")]
    assert found[: len(names)] == names
    assert [path.name for path in tmp_path.iterdir()] == ["names.R"]
