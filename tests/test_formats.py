"""Files of all kinds give what the table itself gives: the same columns, rows and scores."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyreadr
import pyreadstat
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app
from poolbn.tables import copies, data, foreign

DATA = Path(__file__).parent / "data"
TRIAL = pb.datasets.opt()
TEXTS = [c for c in TRIAL if not pd.api.types.is_numeric_dtype(TRIAL[c])]
LEVELS = TRIAL.astype(dict.fromkeys(TEXTS, "category"))
PLAIN = TRIAL.astype(dict.fromkeys(TEXTS, object)).fillna(dict.fromkeys(TEXTS, ""))
DAG = pb.Dag(
    [name for name in TRIAL if name != "clinic"],
    [("education", "tobacco"), ("age", "tobacco"), ("treatment", "preterm"), ("bmi", "preterm"),
     ("preterm", "birthweight_g"), ("bmi", "birthweight_g")],
)  # fmt: skip


def coded() -> tuple[pd.DataFrame, dict[str, dict[float, str]]]:
    """Levels as numbers, and what these mean."""
    numbers, labels = TRIAL.copy(), {}
    for name in TEXTS:
        own = LEVELS[name].cat
        numbers[name] = own.codes.replace(-1, np.nan).astype(float) + 1
        labels[name] = {k + 1.0: level for k, level in enumerate(own.categories)}
    return numbers, labels


def csv(name: str, encoding: str = "utf-8", **options: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        text = TRIAL.to_csv(index=False, **options).encode(encoding)
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return folder / name

    return write


def lines(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        text = TRIAL.to_json(orient="records", lines=True, double_precision=15).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return folder / name

    return write


def arrow(folder: Path) -> Path:
    table = pa.Table.from_pandas(TRIAL)
    with pa.ipc.new_stream(folder / "t.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return folder / "t.arrow"


def feather(folder: Path) -> Path:
    LEVELS.to_feather(folder / "t.feather")
    return folder / "t.feather"


def stata(folder: Path) -> Path:
    LEVELS.to_stata(folder / "t.dta", write_index=False)
    return folder / "t.dta"


def stata_texts(folder: Path) -> Path:
    PLAIN.to_stata(folder / "t.dta", write_index=False)
    return folder / "t.dta"


def spss(name: str, *, texts: bool = False) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        numbers, labels = (PLAIN, None) if texts else coded()
        small = name.endswith(".zsav")
        pyreadstat.write_sav(
            numbers, str(folder / name), variable_value_labels=labels, compress=small
        )
        return folder / name

    return write


def sas(folder: Path) -> Path:
    pyreadstat.write_xport(PLAIN, str(folder / "t.xpt"), file_format_version=8)
    return folder / "t.xpt"


def rds(folder: Path) -> Path:
    pyreadr.write_rds(str(folder / "t.rds"), LEVELS)
    return folder / "t.rds"


def rdata(folder: Path) -> Path:
    pyreadr.write_rdata(str(folder / "t.RData"), LEVELS, df_name="visits")
    return folder / "t.RData"


def excel(folder: Path) -> str:
    with pd.ExcelWriter(folder / "t.xlsx") as book:
        TRIAL[["age"]].to_excel(book, sheet_name="notes", index=False)
        TRIAL.to_excel(book, sheet_name="visits", index=False)
    return f"{folder / 't.xlsx'}::visits"


def in_duckdb(folder: Path) -> str:
    with duckdb.connect(folder / "t.duckdb") as made:
        made.register("rows", TRIAL)
        made.execute("create table visits as from rows")
        made.execute("create table other as select 1 as x")
    return f"{folder / 't.duckdb'}::visits"


def in_sqlite(name: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        with closing(sqlite3.connect(folder / name)) as made:
            TRIAL.to_sql("visits", made, index=False)
        return f"{folder / name}::visits"

    return write


FORMATS: dict[str, Callable[[Path], Any]] = {
    "CSV": csv("t.csv"),
    "CSV, gzip": csv("t.csv.gz"),
    "CSV, byte order mark": csv("t.csv", "utf-8-sig"),
    "CSV, UTF-16": csv("t.csv", "utf-16"),
    "CSV, semicolons": csv("t.csv", sep=";"),
    "CSV, semicolons and decimal commas": csv("t.csv", sep=";", decimal=","),
    "CSV, the same, gzip": csv("t.csv.gz", sep=";", decimal=","),
    "TSV": csv("t.tsv", sep="\t"),
    "TSV, gzip": csv("t.tsv.gz", sep="\t"),
    "TSV, Excel's Unicode text": csv("t.tsv", "utf-16", sep="\t", decimal=","),
    "JSON lines": lines("t.jsonl"),
    "JSON lines, gzip": lines("t.ndjson.gz"),
    "Feather": feather,
    "Arrow stream": arrow,
    "Stata, labels": stata,
    "Stata, texts": stata_texts,
    "SPSS, labels": spss("t.sav"),
    "SPSS, texts": spss("t.sav", texts=True),
    "SPSS, compressed": spss("t.zsav"),
    "SAS transport": sas,
    "RDS": rds,
    "RData": rdata,
    "Excel": excel,
    "DuckDB": in_duckdb,
    "SQLite": in_sqlite("t.sqlite"),
    "SQLite, db": in_sqlite("t.db"),
}


@pytest.fixture(scope="module")
def expected() -> tuple[pb.Table, float]:
    table = pb.table(TRIAL, group="clinic", missing="drop")
    return table, pb.score(table, DAG)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_has_the_score_of_its_table(
    kind: str, expected: tuple[pb.Table, float], tmp_path: Path
) -> None:
    own, score = expected
    found = pb.table(FORMATS[kind](tmp_path), group="clinic", missing="drop")
    assert (found.names, found.kinds, found.categories) == (own.names, own.kinds, own.categories)
    assert (found.levels, found.dropped.tolist()) == (own.levels, own.dropped.tolist())
    assert_allclose(found.values, own.values, rtol=1e-12)
    assert pb.score(found, DAG) == pytest.approx(score, rel=1e-9)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow) if k == "Excel" else k for k in FORMATS],
)
def test_options_of_reading_are_the_same_for_all(kind: str, tmp_path: Path) -> None:
    source = FORMATS[kind](tmp_path)
    columns = ["age", "preterm", "bmi", "calculus_5"]
    kinds = {"age": "count"}
    for options in ({"columns": columns[:3], "kinds": kinds}, {"columns": columns[::-1]}):
        found = pb.table(source, group="clinic", missing="drop", **options)
        own = pb.table(TRIAL, group="clinic", missing="drop", **options)
        assert (found.names, found.kinds) == (own.names, own.kinds)
        assert_allclose(found.values, own.values, rtol=1e-12)
    numbers = ["age", "bmi", "calculus_5"]
    found = pb.stats(source, group="preterm", columns=numbers, missing="em")
    own = pb.stats(TRIAL, group="preterm", columns=numbers, missing="em")
    assert found.levels == own.levels
    assert_allclose(found.scatter, own.scatter, rtol=1e-9)
    with pytest.raises(pb.DataError, match=r"26 rows have a missing value.*'tobacco'"):
        pb.table(source, group="clinic", columns=["tobacco", "age"])


@pytest.mark.parametrize("kind", ["Feather", "JSON lines", "SQLite", "DuckDB"])
def test_true_and_false(kind: str, tmp_path: Path) -> None:
    """SQLite has no such type, and keeps 1 and 0."""
    rows = TRIAL[["clinic", "age"]].assign(old=TRIAL["age"] > 25)
    if kind == "Feather":
        rows.to_feather(tmp_path / "t.feather")
        source: Any = tmp_path / "t.feather"
    elif kind == "JSON lines":
        rows.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
        source = tmp_path / "t.jsonl"
    elif kind == "SQLite":
        with closing(sqlite3.connect(tmp_path / "t.db")) as made:
            rows.to_sql("rows", made, index=False)
        source = tmp_path / "t.db"
    else:
        with duckdb.connect(tmp_path / "t.duckdb") as made:
            made.register("frame", rows)
            made.execute("create table rows as from frame")
        source = tmp_path / "t.duckdb"
    found = pb.table(source, group="clinic")
    assert found.kind("old") == ("continuous" if kind == "SQLite" else "discrete")
    assert_allclose(found.values, pb.table(rows, group="clinic").values)


# Labels


def test_values_without_a_label_stay_numbers(tmp_path: Path) -> None:
    """A scale with words at its ends is one of numbers; a code that no row has does not matter."""
    rows = pd.DataFrame(
        {"site": [1.0, 2.0] * 30, "pain": [1.0, 3, 5, 7] * 15, "arm": [1.0, 1, 2] * 20}
    )
    labels = {
        "pain": {1.0: "none", 7.0: "worst"},
        "arm": {1.0: "control", 2.0: "treated", 9.0: "unknown"},
    }
    pyreadstat.write_sav(rows, str(tmp_path / "t.sav"), variable_value_labels=labels)
    rows.to_stata(tmp_path / "t.dta", write_index=False, value_labels=labels)
    for name in ("t.sav", "t.dta"):
        found = pb.table(tmp_path / name, group="site", kinds={"pain": "continuous"})
        assert found.levels == (1, 2)
        assert found.categories == ((), ("control", "treated"))
        assert sorted(set(found.values[0])) == [1, 3, 5, 7]


def test_levels_are_in_the_order_of_their_codes(tmp_path: Path) -> None:
    rows = pd.DataFrame({"site": list("ab") * 30, "grade": [1.0, 2, 3] * 20})
    labels = {"grade": {1.0: "low", 2.0: "medium", 3.0: "high"}}
    pyreadstat.write_sav(rows, str(tmp_path / "t.sav"), variable_value_labels=labels)
    rows.to_stata(tmp_path / "t.dta", write_index=False, value_labels=labels)
    for name in ("t.sav", "t.dta"):
        found = pb.table(tmp_path / name, group="site")
        assert found.categories == (("low", "medium", "high"),)


def test_a_file_that_sas_wrote(tmp_path: Path) -> None:
    """Nothing but SAS writes .sas7bdat; tests/data says where this one is from."""
    path = tmp_path / "iris.sas7bdat"
    path.write_bytes(gzip.decompress((DATA / "iris.sas7bdat.gz").read_bytes()))
    own = load_iris(as_frame=True).data.set_axis(
        ["Sepal_Length", "Sepal_Width", "Petal_Length", "Petal_Width"], axis=1
    )
    own["Species"] = np.repeat(["setosa", "versic", "virgin"], 50)  # of six letters in the file
    found = pb.stats(path, group="Species")
    expected = pb.stats(own, group="Species")
    assert (found.names, found.levels) == (expected.names, expected.levels)
    assert_allclose(found.scatter, expected.scatter, rtol=1e-12)
    assert pb.learn(path, group="Species").score == pb.learn(own, group="Species").score


# Texts


def test_latin_1_is_read_and_told(tmp_path: Path) -> None:
    rows = "site,x,y\nMünchen,1,2\nKöln,2,1\nMünchen,3,5\nKöln,4,3\n"
    (tmp_path / "t.csv").write_bytes(rows.encode("latin-1"))
    with pytest.warns(pb.DataWarning, match=r"Latin-1 .*: line 2 holds 'München'") as told:
        found = pb.stats(tmp_path / "t.csv", group="site")
    assert [w.message.finding.kind for w in told] == [pb.FindingKind.ENCODING]  # type: ignore[union-attr]
    assert found.levels == ("München", "Köln")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the same file is told of once
        assert pb.stats(tmp_path / "t.csv", group="site").levels == found.levels
    (tmp_path / "t.csv").write_bytes(rows.replace("München", "Łódź").encode())
    assert pb.stats(tmp_path / "t.csv", group="site").levels == ("Łódź", "Köln")


def test_latin_1_after_what_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that turns out not to be UTF-8 far down the file is an error, not other names."""
    monkeypatch.setattr(copies, "_LOOKED_AT", copies._CHUNK)
    line = b"Bern,1,2\nCork,2,1\n"
    body = b"site,x,y\n" + line * (9 * copies._CHUNK // 4 // len(line)) + b"M\xfcnchen,1,2\n"
    (tmp_path / "t.csv").write_bytes(body)
    with pytest.raises(pb.DataError, match=r"t\.csv' is not UTF-8 text"):
        pb.stats(tmp_path / "t.csv", group="site")


def test_a_file_is_found_again_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("site,x\na,1\na,2\nb,4\nb,3\n")
    monkeypatch.chdir(tmp_path)
    one = pb.stats("t.csv", group="site")
    monkeypatch.chdir("/")
    assert pb.stats(tmp_path / "t.csv", group="site").mean.tolist() == one.mean.tolist()


def test_copies_are_removed_and_private(tmp_path: Path) -> None:
    folder = Path(copies._folder(copies.os.getpid()))
    (tmp_path / "t.csv").write_bytes("site,x\na,1\nb,2\na,3\n".encode("utf-16"))
    before = set(folder.iterdir())
    pb.stats(tmp_path / "t.csv", group="site")
    (made,) = set(folder.iterdir()) - before
    assert made.stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


KILLED = """
import os, signal, sys, warnings
import poolbn as pb
from poolbn.tables import copies
warnings.simplefilter("ignore")
source, kept = sys.argv[1:]
assert pb.stats(source, group="site").n_rows == 3
if kept:  # as on systems where open files have no other names
    copies._written("text", iter([b"some rows"]), "", named=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="files without a name")
def test_a_killed_process_leaves_no_rows(tmp_path: Path) -> None:
    """Not even a copy that needs a name, after the next run."""
    (tmp_path / "t.csv").write_bytes("site,x\na,1\nb,2\na,3\n".encode("utf-16"))
    (tmp_path / "temporary").mkdir()
    environment = dict(os.environ) | {"TMPDIR": str(tmp_path / "temporary")}

    def killed(source: str, kept: str) -> list[bytes]:
        with open(tmp_path / "t.csv", "rb") as rows:
            done = subprocess.run(
                [sys.executable, "-c", KILLED, source, kept],
                stdin=rows,
                env=environment,
                check=False,
            )
        assert done.returncode == -signal.SIGKILL
        return [p.read_bytes() for p in (tmp_path / "temporary").rglob("*") if p.is_file()]

    assert b"".join(killed(str(tmp_path / "t.csv"), "")) == b""
    assert b"".join(killed("-", "kept")) == b"some rows"
    assert b"".join(killed("-", "")) == b""
    assert len(list((tmp_path / "temporary").iterdir())) == 1


def test_decimal_commas_where_rows_are_wrong(tmp_path: Path) -> None:
    rows = ["site;x;y", *[f"{'ab'[k % 2]};{k},5;{k}" for k in range(30_000)], "a;1.5;2"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    with pytest.raises(pb.DataError, match=r"'x' is not numeric: row 30001 .* holds '1\.5'"):
        pb.stats(tmp_path / "t.csv", group="site")


# Standard input


def sent(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("kind", ["CSV", "CSV, gzip", "JSON lines", "JSON lines, gzip", "Parquet",
                                  "Feather", "CSV, UTF-16"])  # fmt: skip
def test_standard_input(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "Parquet":
        TRIAL.to_parquet(tmp_path / "t.parquet")
        path = tmp_path / "t.parquet"
    else:
        path = FORMATS[kind](tmp_path)
    sent(path.read_bytes(), monkeypatch)
    options = {"group": "clinic", "columns": ["age", "preterm"], "missing": "drop"}
    own = pb.table(TRIAL, **options)
    for _ in range(2):  # it is read once, and kept
        assert_allclose(pb.table("-", **options).values, own.values, rtol=1e-12)


def test_commands_read_standard_input() -> None:
    text = TRIAL[["clinic", "age", "bmi"]].dropna().to_csv(index=False)
    options = ["learn", "-", "--group", "clinic", "--json"]
    done = CliRunner().invoke(app, options, input=text)
    assert json.loads(done.stdout)["score"] == pytest.approx(
        pb.learn(TRIAL[["clinic", "age", "bmi"]].dropna(), group="clinic").score
    )
    done = CliRunner().invoke(app, options, input="")
    assert done.exit_code == 2
    assert "nothing came from standard input" in done.stderr
    done = CliRunner().invoke(app, options, input=text + "NY,1\n")
    assert "row 751 of 'standard input' has 2 cells" in done.stderr


def test_without_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(pb.DataError, match="no standard input; name a file"):
        pb.stats("-", group="clinic")


# The web


class Quiet(SimpleHTTPRequestHandler):
    """A server that says nothing of what it serves, and cuts some of it short."""

    def log_message(self, format: str, *args: Any) -> None:
        self.server.asked.append(args[0])  # type: ignore[attr-defined]

    def end_headers(self) -> None:
        if "cut" in self.path:
            self.send_header("Content-Length", "100000")
        super().end_headers()

    def do_GET(self) -> None:
        if "odd" in self.path:
            self.send_response(200)
            self.send_header("Content-Length", unquote(self.path.partition("?")[2]))
            SimpleHTTPRequestHandler.end_headers(self)
            self.wfile.write(b"site,x\na,1\na,2\n")
        elif "locked" in self.path and self.headers["Authorization"] != "Basic bWU6cEB3":
            self.send_error(401, "Unauthorized")
        elif "cut" in self.path:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"site,x\na,1\n")
        else:
            super().do_GET()


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """The address of what is in the folder, and what was asked for."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        server.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", server.asked  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", ["CSV", "TSV, gzip", "JSON lines", "Feather", "SPSS, labels",
                                  "RDS", "DuckDB"])  # fmt: skip
def test_a_url(
    kind: str, tmp_path: Path, web: tuple[str, list[str]], expected: tuple[pb.Table, float]
) -> None:
    address, asked = web
    name = Path(FORMATS[kind](tmp_path)).name
    found = pb.table(f"{address}/{name}", group="clinic", missing="drop")
    assert pb.score(found, DAG) == pytest.approx(expected[1], rel=1e-9)
    pb.table(f"{address}/{name}", group="clinic", missing="drop")
    assert len(asked) == 1  # it is fetched once


def test_urls_of_any_form(tmp_path: Path, web: tuple[str, list[str]]) -> None:
    address, _ = web
    (tmp_path / "a b").mkdir()
    rows = TRIAL[["clinic", "age", "bmi"]].dropna()
    rows.to_csv(tmp_path / "a b" / "t.csv", index=False)
    rows.to_csv(tmp_path / "export", index=False)
    own = pb.stats(rows, group="clinic")
    for end in ("a%20b/t.csv?version=2", "a%20b/t.csv#rows", "export", "export?name=t.xls"):
        found = pb.stats(f"{address}/{end}", group="clinic")
        assert_allclose(found.scatter, own.scatter)
    two = [f"{address}/export", f"{address}/a%20b/t.csv"]
    assert pb.stats(two, columns=["age"]).levels == ("export", "t")
    done = CliRunner().invoke(app, ["look", f"{address}/a%20b/t.csv", "--group", "clinic"])
    assert "750 rows" in done.stdout
    assert f"poolbn learn {address}/a%20b/t.csv --group clinic" in done.stdout


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("gone.csv", "404 File not found; check the address, or download the file"),
        ("page.csv", "a page to look at, .* Raw"),
        ("", "a page to look at"),
        ("empty.csv", "nothing came"),
        ("cut.csv", "11 bytes came of 100000"),
        ("t.xls", r"save it as \.xlsx or CSV"),
        ("odd.csv?many", "15 bytes came of many"),
        ("odd.csv?-3", "15 bytes came of -3"),
        ("odd.csv?99999999999999", "has more than 10 GB, .* download the file yourself"),
        ("t.csv", r"row 2 of 'http://127.*/t\.csv' has 1 cell"),
    ],
)
def test_urls_that_hold_no_rows(
    end: str, words: str, tmp_path: Path, web: tuple[str, list[str]]
) -> None:
    (tmp_path / "page.csv").write_text("\n<!DOCTYPE html>\n<html><body>a,b</body></html>")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "t.xls").write_text("x")
    (tmp_path / "t.csv").write_text("site,x\na,1\nb\n")
    with pytest.raises(pb.DataError, match=words):
        pb.stats(f"{web[0]}/{end}", group="site")


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://[::1/t.csv", "http://h:x/t.csv", "file://["]
)
def test_what_is_not_a_url(url: str) -> None:
    with pytest.raises(pb.DataError, match=r"is not a URL: .*; check the address"):
        pb.stats(url, group="site")


def test_a_file_that_is_too_large_to_fetch(
    tmp_path: Path, web: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the server does not say how large it is."""
    monkeypatch.setattr(copies, "MOST_BYTES", 10)
    with pytest.raises(pb.DataError, match="which is the most that is fetched"):
        pb.stats(f"{web[0]}/odd.csv?x", group="site")


def test_a_user_and_a_token_are_used_and_not_told(
    tmp_path: Path, web: tuple[str, list[str]]
) -> None:
    """No page, message or line on the terminal has them."""
    rows = TRIAL[["clinic", "age", "bmi"]].dropna()
    rows.to_csv(tmp_path / "locked.csv", index=False)
    (tmp_path / "wrong.csv").write_text("site,x\na,1\nb\n")
    address = web[0].replace("http://", "http://me:p%40w@")
    url = f"{address}/locked.csv?sig=sesame"
    assert pb.stats(url, group="clinic").n_rows == len(rows)
    with pytest.raises(pb.DataError, match="401 Unauthorized"):
        pb.stats(f"{web[0]}/locked.csv", group="clinic")
    told = [str(pb.look(url, group="clinic"))]
    for end in ("wrong.csv?sig=sesame", "gone.csv?sig=sesame"):
        with pytest.raises(pb.DataError) as caught:
            pb.stats(f"{address}/{end}", group="site")
        told += [str(caught.value), repr(caught.value), caught.value.for_shell()]
    for command in (["look"], ["learn", "-o", str(tmp_path / "out"), "--pooling", "complete"]):
        done = CliRunner().invoke(app, [command[0], url, "-g", "clinic", *command[1:]])
        assert done.exit_code == 0, done.output
        told.append(done.output)
    told += [path.read_text() for path in (tmp_path / "out").iterdir()]
    for text in told:
        assert "sesame" not in text
        assert "p%40w" not in text
        assert "p@w" not in text
    assert any("locked.csv?..." in text for text in told)


def test_keys_in_the_address_of_a_bucket_are_not_told() -> None:
    with pytest.raises(pb.DataError) as caught:
        pb.stats("ftp://key:pass'word@bucket/t.parquet?token=sesame")
    assert "'ftp://bucket/t.parquet?...'" in str(caught.value).replace('"', "'")
    assert "word" not in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(pb.DataError, match=r"Connection refused; check the address, or download"):
        pb.stats("http://127.0.0.1:9/t.csv", group="site")


# What is not there, or too much


@pytest.mark.parametrize(
    ("name", "package"), [("t.sav", "pyreadstat"), ("t.xpt", "pyreadstat"), ("t.rds", "pyreadr"),
                          ("t.xlsx", "openpyxl")]
)  # fmt: skip
def test_a_reader_that_is_not_installed(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(pb.MissingPackageError) as caught:
        pb.stats(tmp_path / name, group="site")
    for words in (name, package, "pip install 'poolbn[formats]'", "as CSV"):
        assert words in str(caught.value)


def test_what_is_too_large_for_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "MOST_BYTES", 1)
    with pytest.raises(pb.DataError, match=r"t\.dta' has 0\.0 GB.* turn it into Parquet"):
        pb.stats(stata(tmp_path), group="clinic", columns=["age"])


def test_a_workbook_that_is_large_when_it_is_unpacked(tmp_path: Path) -> None:
    """A small file can hold rows for hours."""
    path = tmp_path / "t.xlsx"
    pd.DataFrame({"x": [1.0, 2.0]}).to_excel(path, index=False)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/worksheets/sheet2.xml", bytes(101 << 20))
    assert path.stat().st_size < 200_000
    with pytest.raises(
        pb.DataError, match=r"has 101 MB when it is unpacked, .* up to 100 MB.* CSV"
    ):
        pb.stats(path)


def test_a_sheet_with_a_cell_that_is_far_away(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for cell, value in (("A1", "x"), ("A2", 1), ("XFD1048576", 2)):
        book.active[cell] = value
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(pb.DataError, match=r"row 1,048,576 and column 16,384, .* far from"):
        pb.stats(tmp_path / "t.xlsx")


def test_a_file_that_ends_what_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As damaged files of SPSS do to the library: another one is read all the same."""
    (tmp_path / "crash.py").write_text("import os\n\ndef read(path):\n    os.abort()\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(pb.DataError, match=r"t\.sav' is damaged: what reads it, crash, ended"):
        foreign._apart("crash", "read", "t.sav", "t.sav")
    path = FORMATS["SPSS, labels"](tmp_path)
    assert pb.table(path, group="clinic", missing="drop").n_rows


def test_tables_of_one_file_are_different_sources(tmp_path: Path) -> None:
    """Each is a data set of its name; the same one twice is refused."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as made:
        for site, rows in TRIAL.groupby("clinic"):
            rows[["age", "gestation_days"]].to_sql(str(site), made, index=False)
    every = [f"{tmp_path / 't.db'}::{site}" for site in TRIAL["clinic"].unique()]
    own = pb.stats(TRIAL, group="clinic", columns=["age", "gestation_days"])
    found = pb.stats(every)
    assert found.levels == own.levels
    assert_allclose(found.scatter, own.scatter)
    with pytest.raises(pb.DataError, match="given 2 times"):
        pb.stats([*every, every[0]])


def test_a_view_reads_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("x\n1\n2\n")
    with duckdb.connect(tmp_path / "t.duckdb") as made:
        made.execute(f"create view v as from read_csv('{tmp_path / 'secret.csv'}')")
    with pytest.raises(pb.DataError, match="disabled"):
        pb.stats(f"{tmp_path / 't.duckdb'}::v")


ENDLESS = "with recursive r(x) as (select 1 union all select x + 1 from r) select x, 'a' g from r"
STOPPED = """
import os, signal, sys, threading
import poolbn as pb
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
threading.Timer(8, lambda: os._exit(3)).start()
try:
    pb.stats(sys.argv[1], group="g")
except KeyboardInterrupt:
    os._exit(0)
"""


@pytest.mark.parametrize(
    "view", [ENDLESS, f"select * from ({ENDLESS}) where x < 0", f"{ENDLESS} limit 1000000000"]
)
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_view_without_an_end_can_be_interrupted(kind: str, view: str, tmp_path: Path) -> None:
    """Both while the kinds of its cells are looked for and while its rows are read."""
    path = tmp_path / f"t.{kind}"
    base: Any = duckdb if kind == "duckdb" else sqlite3
    with closing(base.connect(str(path))) as made:
        made.execute(f"create view v as {view}")
        made.commit()
    done = subprocess.run([sys.executable, "-c", STOPPED, str(path)], check=False)
    assert done.returncode == 0


def test_numbers_of_sqlite_that_no_float_holds(tmp_path: Path) -> None:
    """They are rounded, as those of other files."""
    rows = pd.DataFrame({"g": ["a", "a", "b"], "x": [2**53 + 1, -(2**62) - 1, 5]})
    with closing(sqlite3.connect(tmp_path / "t.db")) as made:
        rows.to_sql("t", made, index=False)
    rows.to_parquet(tmp_path / "t.parquet")
    own, other = (pb.stats(tmp_path / name, group="g") for name in ("t.db", "t.parquet"))
    assert_allclose(own.mean, other.mean, rtol=1e-15)


@pytest.mark.parametrize("what", ["table", "column"])
def test_a_name_in_sqlite_that_is_not_utf8(what: str, tmp_path: Path) -> None:
    """SQLite would take an unknown name in quotes for a text in each row."""
    names = ("xcafé", "y") if what == "table" else ("t", "xcafé")
    with closing(sqlite3.connect(tmp_path / "t.db")) as made:
        made.execute(f"create table '{names[0]}' (g text, '{names[1]}' real)")
        made.execute(f"insert into '{names[0]}' values ('a', 1), ('b', 2)")
        made.commit()
    whole = (tmp_path / "t.db").read_bytes()
    (tmp_path / "t.db").write_bytes(whole.replace("xcafé".encode(), b"xcaf\xe9x"))
    with pytest.raises(
        pb.DataError, match=f"name of {what} 'xcaf\N{REPLACEMENT CHARACTER}x' in .* not UTF-8"
    ):
        pb.stats(tmp_path / "t.db", group="g")


def test_a_table_that_is_called_like_a_file(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as made:
        made.execute("create table t (x real)")
    with pytest.raises(pb.DataError, match=r"no table '\.\./b\.db::t' in"):
        pb.stats(f"{tmp_path / 'a.db'}::../b.db::t")


@pytest.mark.parametrize("log", ["none", "open", "left"])
def test_nothing_is_made_beside_a_database_with_a_log(log: str, tmp_path: Path) -> None:
    """Whether no program has it open, one has, or one left its log; rows of the log count."""
    rows = TRIAL[["clinic", "age", "bmi"]].dropna()
    with closing(sqlite3.connect(tmp_path / "made.db")) as made:
        made.execute("pragma journal_mode = wal")
        rows[:400].to_sql("t", made, index=False)
        made.execute("pragma wal_checkpoint(truncate)")
        rows[400:].to_sql("t", made, index=False, if_exists="append")
        folder = tmp_path
        if log == "left":
            (folder := tmp_path / "else").mkdir()
            for name in ("made.db", "made.db-wal"):
                shutil.copy(tmp_path / name, folder / name)
        if log == "none":
            made.close()
        before = sorted(path.name for path in folder.iterdir())
        assert pb.stats(folder / "made.db", group="clinic").n_rows == len(rows)
        assert sorted(path.name for path in folder.iterdir()) == before


def test_a_database_that_is_in_use(tmp_path: Path) -> None:
    source = in_duckdb(tmp_path)
    with duckdb.connect(tmp_path / "t.duckdb"), pytest.raises(pb.DataError, match="has it open"):
        pb.stats(source, group="clinic", columns=["age"])


# Row names, and lists of columns to paste


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "...1", "rownames", "row.names"])
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_row_names_are_left_out(name: str, kind: str, tmp_path: Path) -> None:
    rows = TRIAL[["clinic", "age", "gestation_days"]]
    named = rows.copy()
    named.insert(0, name, [f"woman {k}" for k in range(len(rows))])
    source: Any = named
    if kind == "csv":
        source = tmp_path / "t.csv"
        named.to_csv(source, index=False)
    with pytest.warns(pb.DataWarning, match="is left out: it is called as row names are") as told:
        found = pb.stats(source, group="clinic")
    assert [w.message.finding.kind for w in told] == [pb.FindingKind.ROW_NAMES]  # type: ignore[union-attr]
    assert found.names == ("age", "gestation_days")
    chosen = pb.table(source, group="clinic", columns=["age", "gestation_days"])
    assert chosen.names == found.names
    done = CliRunner().invoke(
        app, ["stats", str(source), "-g", "clinic", "--exclude", "age", "-o", f"{tmp_path}/a.stats"]
    ) if kind == "csv" else None  # fmt: skip
    assert done is None or "is left out" in done.stderr
    later = named[["age", name, "gestation_days", "clinic"]]
    with pytest.raises(pb.DataError, match="levels in 823 rows"):
        pb.stats(later, group="clinic")


def test_suggested_columns_can_be_pasted_whole(tmp_path: Path) -> None:
    """However many there are."""
    TRIAL.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(pb.DataError) as caught:
        data.read(tmp_path / "t.csv", group="clinic", columns=None, missing="drop")
    said = str(caught.value).partition("columns=")[2]
    truths = [c for c in TEXTS if set(TRIAL[c].dropna()) == {"no", "yes"}]  # to DuckDB
    assert eval(said) == [c for c in TRIAL if c not in TEXTS or c in truths]
    words = shlex.split(caught.value.for_shell().partition("; choose ")[2])
    done = CliRunner().invoke(
        app, ["stats", str(tmp_path / "t.csv"), "-g", "clinic", "--missing", "drop", *words,
              "-o", str(tmp_path / "t.stats")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output


def test_common_columns_can_be_pasted_whole(tmp_path: Path) -> None:
    for k, names in enumerate((list("abcdefghijklmnop"), list("ponmlkjihgfedcb"))):
        pd.DataFrame(np.eye(20)[:, : len(names)], columns=names).to_csv(
            tmp_path / f"{k}.csv", index=False
        )
    files = [tmp_path / "0.csv", tmp_path / "1.csv"]
    with pytest.raises(pb.DataError, match="it lacks 'a'") as caught:
        pb.stats(files)
    columns = eval(str(caught.value).partition("columns=")[2])
    assert pb.stats(files, columns=columns).names == tuple("bcdefghijklmnop")
