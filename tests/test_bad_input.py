"""Bad input: every kind of it gives an error of the right type that says where and what to do.

To add one, append a `Bad` row to `TABLE`: an id, a callable that takes a temporary folder, the
exception, and fragments that the message must contain.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import json
import os
import pickle
import re
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, is_dataclass, replace
from inspect import isfunction, signature
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from benchmarks.study.reporting import write_report
from benchmarks.study.run import run_study
from matplotlib.figure import Figure

import poolbn as pb
from poolbn.errors import DataError, FileError, GraphError, Option, OptionError, PoolbnError
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import stats
from poolbn.moments.statsfile import Saved, write_file


@dataclass(frozen=True)
class Bad:
    id: str
    call: Callable[[Path], Any]
    error: type[PoolbnError]
    says: tuple[str, ...]


def frame(**changes: Any) -> pd.DataFrame:
    columns = {"site": list("aabb"), "x": [1.0, 2.0, 3.0, 5.0], "y": [0.5, 1.0, 0.0, 2.0]}
    return pd.DataFrame(columns | changes)


def of(table: Any, **options: Any) -> Callable[[Path], Any]:
    return lambda folder: stats(table, **({"group": "site"} | options))


def a_test(*columns: Any, **options: Any) -> Callable[[Path], Any]:
    return lambda folder: pb.ci_test(stats(frame(), group="site"), *columns, **options)


def dasked(table: pd.DataFrame, **options: Any) -> Callable[[Path], Any]:
    return of(dd.from_pandas(table, npartitions=2), **options)


def file(name: str, content: str | bytes, **options: Any) -> Callable[[Path], Any]:
    def call(folder: Path) -> Any:
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
        return stats(folder / name, **({"group": "site"} | options))

    return call


def files(contents: dict[str, str], **options: Any) -> Callable[[Path], Any]:
    def call(folder: Path) -> Any:
        for name, content in contents.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)
        return stats([folder / name for name in contents], **options)

    return call


def database(table: str | None) -> Callable[[Path], Any]:
    def call(folder: Path) -> Any:
        with closing(sqlite3.connect(folder / "t.sqlite")) as made:
            for name in ("visits", "people"):
                frame().to_sql(name, made, index=False)
        return stats(f"{folder / 't.sqlite'}{f'::{table}' if table else ''}", group="site")

    return call


def truncated_parquet(folder: Path) -> Any:
    frame().to_parquet(folder / "t.parquet")
    whole = (folder / "t.parquet").read_bytes()
    (folder / "t.parquet").write_bytes(whole[: len(whole) // 2])
    return stats(folder / "t.parquet", group="site")


def saved(change: Callable[[bytes], bytes]) -> Callable[[Path], Any]:
    def call(folder: Path) -> Any:
        stats(frame(), group="site").save(folder / "s.stats", allow_small=True)
        (folder / "s.stats").write_bytes(change((folder / "s.stats").read_bytes()))
        return GroupStats.load(folder / "s.stats")

    return call


def forged(**changes: Any) -> Callable[[Path], Any]:
    """Statistics with other fields, and a checksum that is right."""

    def call(folder: Path) -> Any:
        own = stats(frame(), group="site")
        keys = ("names", "levels", "n", "mean", "scatter", "dropped", "group", "facts", "inputs")
        fields = {key: getattr(own, key) for key in keys} | changes
        write_file(folder / "s.stats", Saved(*fields.values()))
        return GroupStats.load(folder / "s.stats")

    return call


def scatter(*cells: float) -> Any:
    return np.tile(np.reshape(np.array(cells, dtype=float), (2, 2)), (2, 1, 1))


def signed(body: bytes) -> bytes:
    checksum = hashlib.sha256(body).hexdigest()
    return f"poolbn-statistics 3 {len(body)} {checksum}\n".encode() + body


def rows_inside(whole: bytes) -> bytes:
    _, _, body = whole.partition(b"\n")
    return signed(body.replace(b"{", b'{"rows": [1.5, 2.5], ', 1))


def section(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Another text in a file, and a checksum that is right."""

    def change(whole: bytes) -> bytes:
        _, _, body = whole.partition(b"\n")
        assert old in body
        return signed(body.replace(old, new, 1))

    return change


def folder(contents: dict[str, str], **options: Any) -> Callable[[Path], Any]:
    """Statistics of a folder with these files."""

    def call(where: Path) -> Any:
        for name, content in contents.items():
            (where / name).parent.mkdir(exist_ok=True, parents=True)
            (where / name).write_text(content)
        return stats(where, **options)

    return call


def flip_last(whole: bytes) -> bytes:
    return whole[:-1] + bytes([whole[-1] ^ 1])


def of_stats(use: Callable[[GroupStats], Any]) -> Callable[[Path], Any]:
    return lambda folder: use(stats(frame(), group="site"))


def learn(**options: Any) -> Callable[[Path], Any]:
    return of_stats(lambda s: pb.learn(s, **({"pooling": "complete"} | options)))


def under(**rules: Any) -> Callable[[Path], Any]:
    return learn(constraints=pb.Constraints(**rules))


def wide(folder: Path) -> Any:
    columns = {f"v{k}": np.arange(4.0) ** (1 + k / 30) for k in range(30)}
    return pb.learn({"a": pd.DataFrame(columns)}, pooling="complete", search=pb.Exact())


def saved_net(change: Callable[[bytes], bytes]) -> Callable[[Path], Any]:
    def call(folder: Path) -> Any:
        rule = pb.Constraints(required=[("x", "y")])
        pb.learn(frame(), group="site", pooling="complete", constraints=rule).save(folder / "n")
        (folder / "n").write_bytes(change((folder / "n").read_bytes()))
        return pb.load(folder / "n")

    return call


def net(use: Callable[[pb.Network], Any], pooling: str = "complete") -> Callable[[Path], Any]:
    def call(folder: Path) -> Any:
        rule = pb.Constraints(required=[("x", "y")])
        rows = frame(site=list("aaaabbbb"), x=np.arange(8.0) ** 2, y=[1, 3, 2, 5, 4, 8, 6, 9.0])
        return use(pb.learn(rows, group="site", pooling=pooling, constraints=rule))

    return call


def mixed(use: Callable[[pb.Network], Any]) -> Callable[[Path], Any]:
    """A network of one continuous and one discrete column."""

    def call(folder: Path) -> Any:
        rows = frame(site=list("aaaabbbb"), x=np.arange(8.0) ** 2, y=list("mfmfmmff"))
        still = pb.HillClimb(max_iter=0)
        start = [("y", "x")]
        return use(pb.learn(rows, group="site", pooling="complete", start=start, search=still))

    return call


def tampered(*keys: str, to: Any) -> Callable[[Path], Any]:
    """A saved network with another value in one place."""

    def change(whole: bytes) -> bytes:
        content = json.loads(whole)
        place = content
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to
        return json.dumps(content).encode()

    return saved_net(change)


def without_fit(whole: bytes) -> bytes:
    content = json.loads(whole)
    del content["fits"]["y"]
    return json.dumps(content).encode()


def boot(table: Any = None, **options: Any) -> Callable[[Path], Any]:
    rows = frame() if table is None else table
    given = {"group": "site", "pooling": "complete", "replicates": 2} | options
    return lambda folder: pb.bootstrap(rows, **given)


def posterior(table: Any = None, **options: Any) -> Callable[[Path], Any]:
    rows = frame() if table is None else table
    given = {"group": "site", "pooling": "complete"} | options
    return lambda folder: pb.arc_posterior(rows, **given)


def of_posterior(use: Callable[[pb.ArcPosterior], Any]) -> Callable[[Path], Any]:
    return lambda folder: use(posterior()(folder))


def compared(table: Any = None, **options: Any) -> Callable[[Path], Any]:
    rows = frame() if table is None else table
    return lambda folder: pb.compare(rows, **({"group": "site", "folds": 2} | options))


def strengths(use: Callable[[pb.Bootstrap], Any]) -> Callable[[Path], Any]:
    return lambda folder: use(
        pb.Bootstrap(("x", "y"), np.array([[0.0, 2.0], [1.0, 0.0]]), 3, "row")
    )


def report(**options: Any) -> Callable[[Path], Any]:
    return lambda folder: net(lambda n: pb.report(n, folder / "r.html", **options))(folder)


NAN = float("nan")
BOOT = pb.Bootstrap(("x", "z"), np.array([[0.0, 1], [0, 0]]), 1, "row")
CSV = "site,x,y\n"
RAGGED = CSV + "a,1,2\n" * 3 + "a,1,2,3\n"
LATE = CSV + "a,1,2\n" * 30_000 + "a,oops,2\n"
GZ = gzip.compress((CSV + "".join(f"a,{i},{i * i % 977}\n" for i in range(50_000))).encode())
MIXED = frame(x=["1", "2.5", "n/a", "4"])
TWICE = pd.DataFrame([["a", 1.0, 2.0], ["b", 2.0, 3.0]], columns=["site", "x", "x"])
VANISHES = frame(x=[1.0, 2.0, NAN, NAN])
DATES = pd.date_range("2020-01-01", periods=4)
ONE, OTHER = frame(), frame().rename(columns={"y": "z"})
LEVELS = frame(y=list("mfmf"))
PARQUET = frame().to_parquet()
XY = pb.Dag(["x", "y"], [("x", "y")])
TRUTH = pb.random_network(XY, 2)

SMALL = json.dumps(
    {"format": "poolbn-study", "version": 1, "preset": "small", "models": ["GBN", "LME"]}
)


def studied(files: dict[str, str | bytes], call: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Call with a folder that holds these files."""

    def do(folder: Path) -> Any:
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return call(folder)

    return do


def reported(folder: Path) -> None:
    write_report(folder, folder / "report")


TABLE = [
    Bad("intervention in no data set", of(frame(), interventions={"aa": ["x"]}), DataError,
        ("interventions=... names 'aa', and there is no such", "did you mean 'a'?")),
    Bad("intervention on no column", of(frame(), interventions={"a": ["xx"]}), DataError,
        ("interventions=... of 'a' names 'xx'", "did you mean 'x'?")),
    Bad("intervention on an input", of(frame(), inputs=["x"], interventions={"a": ["x"]}),
        DataError, ("of 'a' names 'x', which is an input", "leave one of the two out")),
    Bad("intervention on nothing", of(frame(), interventions={"a": []}), DataError,
        ("names no column for 'a'", "leave it out")),
    Bad("intervention on one name", of(frame(), interventions={"a": "x"}), DataError,
        ("is one name; give a list, {'a': ['x']}",)),
    Bad("intervention of another sort", of(frame(), interventions={"a": {"x": "softly"}}),
        DataError, ("of 'a' says 'softly' of 'x'", "did you mean 'soft'?")),
    Bad("interventions are a list", of(frame(), interventions=[("a", "x")]), DataError,
        ("interventions must be a dict",)),
    Bad("all columns set everywhere",
        lambda folder: pb.learn(frame(), group="site",
                                interventions={"a": ["x", "y"], "b": ["x", "y"]}),
        DataError, ("all columns are inputs", "leave one out")),
    Bad("experiments and independence tests",
        lambda folder: pb.learn(frame(), group="site", search="pc", interventions={"a": ["x"]}),
        DataError, ("do not know what was set", "search='auto'")),
    # Which data set
    Bad("no group", of(frame(), group=None), DataError, ("group=", "'site'")),
    Bad("no group, reader", lambda f: stats(pa.Table.from_pandas(ONE).to_reader()), DataError,
        ("group=", "dict")),
    Bad("misspelt group", of(frame(), group="sit"), DataError, ("'sit'", "did you mean 'site'")),
    Bad("misspelt group, csv", file("t.csv", CSV + "a,1,2\n", group="sites"), DataError,
        ("'sites'", "t.csv", "did you mean 'site'")),
    Bad("missing data set", of(frame(site=["a", None, "b", "b"])), DataError,
        ("row 2", "'site'", "site 1", "missing='drop'")),
    Bad("missing data set, NaN", of(frame(site=[1.0, 1.0, NAN, NAN])), DataError,
        ("row 3", "'site'", "site 2")),
    Bad("lists as data sets", of(frame(site=[[1], [1], [2], [2]])), DataError,
        ("'site'", "lists", "text")),
    Bad("lists as data sets, polars", of(pl.DataFrame({"site": [[1], [2]], "x": [1.0, 2.0]})),
        DataError, ("'site'", "lists")),
    # Which columns
    Bad("misspelt column", of(frame(), columns=["x", "yy"]), DataError, ("'yy'", "'y'")),
    Bad("group in columns", of(frame(), columns=["x", "site"]), DataError,
        ("'site'", "take it out of columns")),
    Bad("duplicate names", of(TWICE), DataError, ("'x'", "2 times", "rename")),
    Bad("duplicate names, csv", file("t.csv", "site,x,x\na,1,2\n"), DataError,
        ("'x'", "t.csv", "2 times")),
    Bad("duplicates in columns", of(frame(), columns=["x", "x"]), DataError, ("'x'", "2 times")),
    Bad("columns a text", of(frame(), columns="x"), DataError, ("columns=['x']",)),
    Bad("no columns chosen", of(frame(), columns=[]), DataError, ("no columns",)),
    Bad("only the group", of(frame()[["site"]]), DataError, ("no columns",)),
    Bad("names not text", of(frame().rename(columns={"x": 7})), DataError, ("7", "map(str)")),
    Bad("text column", of(pd.DataFrame({"site": "a", "who": list("pqrstu")})), DataError,
        ("'who'", "6 levels in 6 rows", "group='who'", "leave it out of columns")),
    Bad("stray text", of(MIXED), DataError, ("'x'", "1 cell", "'n/a'", "missing")),
    Bad("stray text, polars", of(pl.from_pandas(MIXED)), DataError, ("'x'", "1 cell", "'n/a'")),
    Bad("stray text, csv", file("t.csv", CSV + "a,1,2\na,n/a,2\nb,3,4\n"), DataError,
        ("'x'", "1 cell", "'n/a'")),
    Bad("stray text late, csv", file("t.csv", LATE), DataError,
        ("'x'", "row 30001", "'oops'", "t.csv")),
    Bad("complex column", of(frame(x=[1j, 2j, 3j, 4j])), DataError, ("'x'", "complex128")),
    Bad("dates", of(frame(x=DATES)), DataError, ("'x'", "datetime64", "leave it out of columns")),
    Bad("dates, arrow", of(pa.table({"site": ["a"], "x": [datetime.date(2020, 1, 1)]})),
        DataError, ("'x'", "date32")),
    Bad("dict of different columns", lambda f: stats({"a": ONE, "b": OTHER}), DataError,
        ("'b'", "'y'", "'z'", "columns=['site', 'x']")),
    Bad("files of different columns",
        files({"a.csv": "x,y\n1,2\n", "b.csv": "x\n1\n"}), DataError, ("b.csv", "'y'")),
    # Which cells
    Bad("NaN", of(pd.concat([ONE, frame(x=[1, NAN, NAN, 2], y=[NAN, 1, 1, 1])])), DataError,
        ("3 rows", "row 5 (data set 'a')", "x 2, y 1", "missing='drop'")),
    Bad("null, polars", of(pl.DataFrame({"site": ["a", "b", "b"], "x": [1, None, 2]})), DataError,
        ("row 2 (data set 'b')", "'x'", "x 1")),
    Bad("empty cell, csv", file("t.csv", CSV + "a,1,2\nb,,2\nb,NA,2\nb,1,2\n"), DataError,
        ("2 rows", "row 2 of t.csv (data set 'b')", "x 2")),
    Bad("inf", of(frame(x=[1.0, np.inf, 3.0, 4.0])), DataError,
        ("infinite", "row 2 (data set 'a')", "'x'")),
    Bad("inf though dropping", of(frame(x=[1.0, np.inf, 3.0, 4.0]), missing="drop"), DataError,
        ("row 2", "'x'")),
    Bad("-inf", of(frame(y=[1.0, 2.0, -np.inf, 4.0])), DataError,
        ("minus infinite", "row 3 (data set 'b')", "'y'")),
    Bad("all rows dropped", of(frame(x=[NAN] * 4), missing="drop"), DataError,
        ("all 4", "x 4", "choose columns")),
    Bad("data set vanishes", of(VANISHES, missing="drop"), DataError, ("'b'", "no rows", "x 2")),
    Bad("too large", of(frame(x=[1e200, -1e200, 1.0, 2.0])), DataError, ("'x'", "larger unit")),
    Bad("large", lambda _: pb.learn(frame(x=[1e100, -1e100, 1.0, 2.0]), group="site"), DataError,
        ("'x'", "larger unit")),
    Bad("small", lambda _: pb.learn(frame(x=[1e-100, 2e-100, 3e-100, 5e-100]), group="site"),
        DataError, ("'x'", "smaller unit")),
    Bad("far from 0", lambda _: pb.learn(frame(x=[1e9, 1e9 + 1, 1e9 + 2, 1e9 + 4]), group="site"),
        DataError, ("'x'", "1e+09", "SD of 1.5", "subtract")),
    # Which source
    Bad("empty frame", of(frame().iloc[:0]), DataError, ("no rows",)),
    Bad("empty frame in dict", lambda f: stats({"a": ONE[["x"]], "b": ONE[["x"]][:0]}), DataError,
        ("'b'", "no rows")),
    Bad("empty dict", lambda f: stats({}), DataError, ("dict", "empty")),
    Bad("empty list", lambda f: stats([]), DataError, ("list", "empty")),
    Bad("wrong type", lambda f: stats(3.5), DataError, ("float", "data frame")),
    Bad("list of frames and others", lambda f: stats([ONE[["x"]], None]), DataError,
        ("NoneType of data set 2", "a data frame")),
    Bad("wrong missing", of(frame(), missing="ignore"), OptionError, ("'ignore'", "drop, em")),
    # Files
    Bad("empty file", file("t.csv", ""), DataError, ("t.csv", "empty")),
    Bad("header only", file("t.csv", CSV), DataError, ("t.csv", "no rows")),
    Bad("missing file", lambda f: stats(f / "trial.csv"), DataError, ("trial.csv", "no file")),
    Bad("no match", lambda f: stats(f / "*.csv"), DataError, ("*.csv", "no file matches")),
    Bad("empty folder", stats, DataError, ("no file of rows", "CSV or Parquet", "folder")),
    Bad("truncated parquet", truncated_parquet, DataError, ("t.parquet", "cut short")),
    Bad("not parquet", file("t.parquet", "site,x\na,1\n"), DataError,
        ("t.parquet", "another kind")),
    Bad("truncated gz", file("t.csv.gz", GZ[: len(GZ) // 2]), DataError, ("t.csv.gz", "cut short")),
    Bad("not gz", file("t.csv.gz", CSV + "a,1,2\n"), DataError, ("t.csv.gz", "not a gzip file")),
    Bad("not UTF-8", file("t.csv", CSV.encode() + b"M\x81nchen,1,2\n"), DataError,
        ("t.csv", "neither UTF-8 nor Latin-1", "line 2", "0x81", "save it as UTF-8")),
    Bad("two encodings", file("t.csv", (CSV + "Zürich,1,2\n").encode() + b"M\xfcnchen,1,2\n"),
        DataError, ("t.csv", "line 3", "save it as UTF-8")),
    Bad("unknown ending", file("t.xyz", "x"), DataError, ("t.xyz", ".csv", ".parquet")),
    Bad("old Excel", file("t.xls", "x"), DataError, ("t.xls", "save it as .xlsx or CSV")),
    Bad("not Excel", file("t.xlsx", "x"), DataError,
        ("t.xlsx", "of Excel", "another kind", "save it as CSV")),
    Bad("JSON", file("t.json", "[]"), DataError, ("t.json", "one object", ".jsonl")),
    Bad("line of JSON", file("t.jsonl", '{"site": "a", "x": 1}\n{"site": \n'), DataError,
        ("line 2 of", "t.jsonl", "is not JSON", "one object")),
    Bad("lines of numbers", file("t.jsonl", "1\n2\n"), DataError,
        ("line 1 of", "t.jsonl", "no JSON object", "one, such as")),
    Bad("no line of JSON", file("t.jsonl", ""), DataError, ("t.jsonl", "no rows")),
    Bad("JSON in capitals", file("t.jsonl", '{"site": "a", "x": 1, "X": 2}\n'), DataError,
        ("'x' and 'X'", "t.jsonl", "rename one")),
    *[Bad(f"not {ending}", file(f"t.{ending}", "nonsense " * 50), DataError,
          (f"t.{ending}", "another kind", "anew"))
      for ending in ("dta", "sav", "zsav", "sas7bdat", "xpt", "rds", "RData", "feather", "duckdb",
                     "sqlite")],
    Bad("empty database", file("t.sqlite", ""), DataError, ("t.sqlite", "empty")),
    Bad("no table of this name", database("visit"), DataError,
        ("no table 'visit' in", "t.sqlite", "did you mean 'visits'?")),
    Bad("several tables", database(None), DataError,
        ("t.sqlite", "2 tables, 'people' and 'visits'", "t.sqlite::people'")),
    Bad("ragged", file("t.csv", RAGGED), DataError, ("row 4", "4 cells", "3 columns", "t.csv")),
    Bad("blank first line", file("t.csv", "\n" + CSV + "a,1,2\n"), DataError,
        ("first line", "t.csv", "blank", "take it out")),
    Bad("first line of numbers", file("t.csv", "1,2.5\n3,4\n"), DataError,
        ("first line", "numbers", "'1, 2.5'", "names")),
    Bad("first line too long", file("t.csv", "x" * 200_000 + "\n1\n"), DataError,
        ("first line", "too long", "quote")),
    Bad("unknown separator", file("t.csv", "site:x\na:1\n"), DataError,
        ("one column, 'site:x'", "a comma, a semicolon")),
    Bad("two separators", file("t.csv", "site;x,kg\na;1,NA\n"), DataError,
        ("',' or ';'", "double quotes")),
    Bad("decimal commas and points", file("t.csv", "site;x,kg;y\na;1,5;2.5\nb;1,7;2.5\n"),
        DataError, ("'x,kg'", "decimal comma", "'1,5'")),
    Bad("comment line", file("t.csv", CSV + "#a,1,2\n# end\n"), DataError,
        ("row 2", "1 cells", "3 columns")),
    Bad("open quote", file("t.csv", CSV + 'a,1,2\n"b,1,2\n'), DataError, ("row 2", "quote")),
    Bad("cell too long", file("t.csv", CSV + "a" * 2_000_000 + ",1,2\n"), DataError,
        ("line 2 of", "2,000,000 characters")),
    Bad("two kinds of newlines", file("t.csv", CSV + "a,1,2\r\nb,1,2\n"), DataError,
        ("different ways", r"'\n' and '\r\n'", "save it")),
    Bad("too many columns", file("t.csv", ",".join(f"c{k}" for k in range(20_001)) + "\n1\n"),
        DataError, ("20001 columns", "20000", "Parquet")),
    Bad("FIFO", lambda f: os.mkfifo(f / "t.csv") or stats(f / "t.csv"), DataError,
        ("t.csv", "FIFO", "to a file first")),
    Bad("file twice", lambda f: file("t.csv", CSV + "a,1,2\n")(f) and stats([f / "t.csv"] * 2),
        DataError, ("t.csv", "2 times", "leave one out")),
    Bad("file under two names",
        lambda f: (file("t.csv", CSV + "a,1,2\n")(f) and (f / "u.csv").symlink_to("t.csv"))
        or stats([f / "t.csv", f / "u.csv"]),
        DataError, ("t.csv", "u.csv", "same file", "leave one out")),
    Bad("data sets of two types", lambda f: stats(
        {"p": ONE.assign(site=1), "q": ONE.assign(site="1")}, group="site"), DataError,
        ("1 of data set 'p'", "'1' of data set 'q'", "int and str", "write both alike")),
    Bad("same stem", files({"p/s.csv": "x\n1\n", "q/s.csv": "x\n1\n"}), DataError,
        ("2 files", "'s'", "group=")),
    # Statistics
    Bad("add other columns", of_stats(lambda s: s + stats(OTHER, group="site")), DataError,
        ("left lacks 'z'", "right lacks 'y'", "select")),
    Bad("add data sets that are spelled differently",
        of_stats(lambda s: replace(s, levels=("1", "b")) + replace(s, levels=("1.0", "b"))),
        DataError, ("'1' and '1.0'", "differ only by type or spelling", "rename")),
    Bad("select unknown", of_stats(lambda s: s.select(["x", "yy"])), DataError, ("'yy'", "'y'")),
    Bad("select none", of_stats(lambda s: s.select([])), DataError, ("no columns",)),
    Bad("select twice", of_stats(lambda s: s.select(["x", "x"])), DataError, ("'x'", "2 times")),
    Bad("unknown child", of_stats(lambda s: s.family("xx", [])), DataError, ("'xx'", "'x'")),
    Bad("own parent", of_stats(lambda s: s.family("x", ["x"])), DataError, ("'x'", "own parent")),
    Bad("parent twice", of_stats(lambda s: s.family("x", ["y", "y"])), DataError,
        ("'y'", "2 times")),
    Bad("save dates",
        lambda f: stats(frame(site=DATES), group="site").save(f / "s", allow_small=True), FileError,
        ("Timestamp", "text")),
    Bad("save nowhere", of_stats(lambda s: s.save("no/such/folder/s", allow_small=True)), FileError,
        ("folder/s",)),
    Bad("load nothing", lambda f: GroupStats.load(f / "none"), FileError, ("none", "No such file")),
    Bad("damaged", saved(flip_last), FileError, ("s.stats", "damaged", "checksum")),
    Bad("truncated", saved(lambda whole: whole[:-9]), FileError, ("cut short", "bytes")),
    Bad("foreign", saved(lambda whole: b"site,x\na,1\n"), FileError, ("not a file of poolbn",)),
    # Fits and scores
    Bad("fit rows", lambda f: pb.fit_node(frame(), "y", ["x"]), DataError,
        ("DataFrame", "pb.stats(data, group=...)")),
    Bad("score rows", lambda f: pb.score(frame(), []), DataError, ("DataFrame", "pb.stats")),
    Bad("fit unknown parent", of_stats(lambda s: pb.fit_node(s, "y", ["xx"])), DataError,
        ("'xx'", "'x'")),
    Bad("one data set", lambda f: pb.fit_node(stats({"a": ONE[["x", "y"]]}), "y"), DataError,
        ("at least two data sets", "'a'", "rows", "pooling='complete'")),
    Bad("unknown pooling", of_stats(lambda s: pb.fit_node(s, "y", pooling="partia")), OptionError,
        ("'partia'", "did you mean 'partial'")),
    Bad("pooling class", of_stats(lambda s: pb.fit_node(s, "y", pooling=pb.Partial)), OptionError,
        ("not a pooling", "pb.Partial(")),
    Bad("unknown random", lambda f: pb.Partial(random="slope"), OptionError,
        ("random='slope'", "full, intercept")),
    Bad("unknown form", lambda f: pb.Partial(continuous="conditonal"), OptionError,
        ("continuous='conditonal'", "did you mean 'conditional'")),
    Bad("unknown method", lambda f: pb.Partial(method="rml"), OptionError,
        ("did you mean 'reml'",)),
    Bad("reml of separate residuals", lambda f: pb.Partial(residuals="separate", method="reml"),
        OptionError, ("method='reml'", "residuals='shared'", "separate ones need 'ml'")),
    Bad("unknown variance", lambda f: pb.NoPooling(variance="mle"), OptionError,
        ("did you mean 'ml'",)),
    Bad("unknown score", of_stats(lambda s: pb.score(s, [], score="bicc")), OptionError,
        ("did you mean 'bic'",)),
    Bad("bge with partial pooling", of_stats(lambda s: pb.score(s, [], score="bge")), OptionError,
        ("complete pooling", "score='bic'")),
    Bad("bge prior",
        of_stats(lambda s: pb.score(s, [], pooling="complete", score=pb.BGe(iss_w=2))), OptionError,
        ("iss_w > 3", "2")),
    Bad("bge prior mean",
        of_stats(lambda s: pb.score(s, [], pooling="complete", score=pb.BGe(nu={"x": 0}))),
        OptionError, ("nu", "'y'")),
    Bad("graph of other nodes", of_stats(lambda s: pb.score(s, [("x", "z")])), GraphError,
        ("x -> z", "'z'", "known are: x, y")),
    Bad("graph with a cycle", of_stats(lambda s: pb.score(s, [("x", "y"), ("y", "x")])),
        GraphError, ("x -> y -> x",)),
    Bad("newer", saved(lambda whole: whole.replace(b" 3 ", b" 4 ", 1)), FileError,
        ("version 4", "reads version 3", "update poolbn")),
    # Constraints
    Bad("required cycle", under(required=[("x", "y"), ("y", "x")]), GraphError,
        ("required", "x -> y -> x")),
    Bad("required and forbidden", under(required=[("x", "y")], forbidden=[("x", "y")]), GraphError,
        ("x -> y", "required and forbidden")),
    Bad("required against tiers", under(required=[("x", "y")], tiers=[["y"], ["x"]]), GraphError,
        ("x -> y", "required", "tiers")),
    Bad("required unknown", under(required=[("x", "zz")]), GraphError,
        ("'zz'", "x -> zz", "known are: x, y")),
    Bad("forbidden unknown", under(forbidden=[("zz", "y")]), GraphError,
        ("'zz'", "zz -> y", "known are: x, y")),
    Bad("tiers unknown", under(tiers=[["x"], ["zz"]]), GraphError, ("'zz'", "known are: x, y")),
    Bad("in two tiers", under(tiers=[["x"], ["y", "x"]]), GraphError, ("'x'", "tiers 1 and 2")),
    Bad("tier a text", under(tiers=[["x"], "y"]), GraphError, ("tier 2", "'y'", "list of names")),
    Bad("arc a text", under(required=["xy"]), GraphError, ("pair of names", "'xy'")),
    Bad("own arc", under(forbidden=[("x", "x")]), GraphError, ("x -> x", "itself")),
    Bad("negative max_parents", under(max_parents=-1), OptionError, ("max_parents=-1",)),
    Bad("broken max_parents", under(max_parents=1.5), OptionError, ("max_parents=1.5",)),
    Bad("too many required", under(required=[("x", "y")], max_parents=0), GraphError,
        ("1 arc into 'y'", "max_parents=0", "allow more")),
    # Learning
    Bad("forbidden start", learn(start=[("x", "y")],
        constraints=pb.Constraints(forbidden=[("x", "y")])), GraphError,
        ("start", "x -> y", "forbidden")),
    Bad("start against tiers", learn(start=[("x", "y")],
        constraints=pb.Constraints(tiers=[["y"], ["x"]])), GraphError, ("start", "x -> y")),
    Bad("start unknown", learn(start=[("x", "zz")]), GraphError, ("x -> zz", "known are: x, y")),
    Bad("start with a cycle", learn(start=[("x", "y"), ("y", "x")]), GraphError, ("x -> y -> x",)),
    Bad("start against required", learn(start=[("x", "y")],
        constraints=pb.Constraints(required=[("y", "x")])), GraphError,
        ("start", "required", "x -> y -> x")),
    Bad("crowded start", learn(start=[("x", "y")], constraints=pb.Constraints(max_parents=0)),
        GraphError, ("start", "'y' has 1 parent,", "max_parents=0")),
    Bad("start lacks a node", learn(start="[x]"), GraphError, ("lacks 'y'",)),
    Bad("exact for many", wide, OptionError, ("22", "30", "pb.HillClimb")),
    Bad("search by a wrong name", learn(search="tabuu"), OptionError,
        ("search='tabuu'", "did you mean 'tabu'")),
    Bad("search by another name", learn(search="pls"), OptionError,
        ("search='pls'", "known are: auto, hc, tabu, orders")),
    Bad("labels for some rows", lambda f: pb.stats(ONE[["x", "y"]], group=["a", "b"]), DataError,
        ("group has 2 labels", "4 or more", "one for each row")),
    Bad("labels for more rows", lambda f: pb.stats(ONE[["x", "y"]], group=["a", "b"] * 4),
        DataError, ("group has 8 labels", "4 rows", "one for each row")),
    Bad("labels of other rows", lambda f: pb.stats(ONE[["x", "y"]],
        group=pd.Series(list("abab"), index=[7, 8, 9, 10])), DataError,
        ("different row labels (index)", "group=labels.to_numpy()")),
    Bad("labels of two frames", lambda f: pb.stats([ONE[["x", "y"]]] * 2, group=list("abab")),
        DataError, ("2 frames or files", "name a column")),
    Bad("labels that are lists", lambda f: pb.stats(ONE[["x", "y"]], group=[[1]] * 4), DataError,
        ("cannot name data sets", "text or numbers")),
    Bad("labels of statistics", lambda f: pb.learn(pb.stats(frame(), group="site"),
        group=list("abab")), DataError, ("leave group=... out",)),
    Bad("list with a path and a frame", lambda f: pb.stats(["a.csv", ONE]), DataError,
        ("cannot read rows from a list", "paths of files")),
    Bad("an empty row", lambda f: TRUTH.predict({}, "x"), DataError,
        ("row is empty", "{'age': 30}")),
    Bad("a column for a row", lambda f: TRUTH.predict(ONE["x"], "x"), DataError,
        ("by name of column", "frame[['name']]")),
    Bad("whitelist", learn(whitelist=[("x", "y")]), OptionError,
        ("'whitelist'", "constraints=pb.Constraints(required=[")),
    Bad("blacklist", learn(blacklist=[("x", "y")]), OptionError,
        ("'blacklist'", "constraints=pb.Constraints(forbidden=[")),
    Bad("blacklist of a bootstrap", lambda f: pb.bootstrap(frame(), group="site",
        blacklist=[("x", "y")]), OptionError, ("pb.bootstrap", "pb.Constraints(forbidden=[")),
    Bad("whitelist of a comparison", lambda f: pb.compare(frame(), group="site",
        whitelist=[("x", "y")]), OptionError, ("pb.compare", "pb.Constraints(required=[")),
    Bad("keyword of learn", learn(scor="bic"), OptionError, ("'scor'", "did you mean 'score'")),
    Bad("dict of unknown constraints", learn(constraints={"tier": [["x"]]}), OptionError,
        ("'tier'", "did you mean 'tiers'")),
    Bad("dict of wrong constraints", learn(constraints={"tiers": [["zz"]]}), GraphError,
        ("'zz' in tier 1",)),
    Bad("search class", learn(search=pb.Tabu), OptionError, ("not a search", "pb.Tabu()")),
    Bad("constraints as a list", learn(constraints=[("x", "y")]), OptionError,
        ("pb.Constraints(",)),
    Bad("tiers of numbers", learn(constraints=pb.Constraints(tiers=[1, 2])), GraphError,
        ("tier 1 is 1", "list of names")),
    Bad("required number", lambda f: pb.Constraints(required=3), GraphError, ("required=3",)),
    Bad("negative seed", lambda f: pb.HillClimb(seed=-1), OptionError, ("seed=-1",)),
    Bad("level of a test", lambda f: pb.PC(alpha=1.5), OptionError, ("alpha=1.5", "0.05")),
    Bad("level of candidates", lambda f: pb.MMPC(alpha=0), OptionError, ("alpha=0", "0.05")),
    Bad("unknown test", lambda f: pb.PC(test="cor"), OptionError, ("test='cor'", "combined")),
    Bad("unknown rule", lambda f: pb.PC(rule="x"), OptionError, ("rule='x'", "majority")),
    Bad("negative max_given", lambda f: pb.PC(max_given=-1), OptionError, ("max_given=-1",)),
    Bad("no restriction", lambda f: pb.Hybrid(restrict="pc"), OptionError,
        ("restrict='pc'", "pb.MMPC()")),
    Bad("no maximiser", lambda f: pb.Hybrid(maximise=3), OptionError,
        ("maximise=3", "pb.HillClimb()")),
    Bad("test of itself", a_test("x", "x"), DataError, ("'x'", "two columns")),
    Bad("test of no column", a_test("x", "z"), DataError, ("'z'",)),
    Bad("test given itself", a_test("x", "y", ["x"]), DataError, ("'x'", "given=")),
    Bad("test of few rows", a_test("x", "y"), DataError,
        ("'x' and 'y'", "4 rows", "fewer columns")),
    Bad("test of unknown kind", a_test("x", "y", test="g2"), OptionError, ("test='g2'",)),
    Bad("exact with too few parents", learn(search=pb.Exact(max_parents=0),
        constraints=pb.Constraints(required=[("x", "y")])), GraphError,
        ("1 arc into 'y'", "max_parents=0")),
    Bad("negative restarts", lambda f: pb.HillClimb(restarts=-1), OptionError, ("restarts=-1",)),
    Bad("broken length", lambda f: pb.Tabu(length=2.5), OptionError, ("length=2.5",)),
    Bad("exact, negative", lambda f: pb.Exact(max_parents=-2), OptionError, ("max_parents=-2",)),
    Bad("group twice", learn(group="site"), DataError, ("leave group='site' out",)),
    Bad("learn without group", lambda f: pb.learn(frame()), DataError, ("group=", "'site'")),
    Bad("learn from one data set", lambda f: pb.learn({"a": ONE[["x", "y"]]}, pooling="partial"),
        DataError,
        ("at least two data sets", "'a'", "4 rows", "pooling='complete'")),
    Bad("learn, unknown pooling", learn(pooling="complet"), OptionError,
        ("'complet'", "did you mean 'complete'")),
    Bad("learn, unknown score", learn(score="bicc"), OptionError, ("did you mean 'bic'",)),
    Bad("learn, bge without pooling", learn(pooling="none", score="bge"), OptionError,
        ("complete pooling", "score='bic'")),
    # Networks in files
    Bad("load no network", lambda f: pb.load(f / "none"), FileError, ("none", "No such file")),
    Bad("load a folder", pb.load, FileError, ("cannot read", "directory")),
    Bad("network truncated", saved_net(lambda whole: whole[: len(whole) // 2]), FileError,
        ("cut short", "save it anew")),
    Bad("network not JSON", saved_net(lambda whole: b"site,x\na,1\n"), FileError, ("not JSON",)),
    Bad("network not text", saved_net(lambda whole: b"\xff\xfe\x00"), FileError, ("not JSON",)),
    Bad("other JSON", saved_net(lambda whole: b'{"a": 1}'), FileError,
        ("not a network of poolbn", "Network.save")),
    Bad("JSON list", saved_net(lambda whole: b"[1]"), FileError, ("not a network of poolbn",)),
    Bad("newer network", tampered("version", to=8), FileError, ("version 8", "update poolbn")),
    Bad("older network", tampered("version", to=1), FileError,
        ("version 1", "reads 2, 4, 5", "learn and save it anew")),
    Bad("wrong shape", tampered("fits", "y", "coef", to=[[1.0, 2.0]]), FileError,
        ("coef of 'y'", "(2, 2)")),
    Bad("not finite", tampered("fits", "y", "sigma2", to=[1.0, NAN]), FileError,
        ("sigma2 of 'y'",)),
    Bad("unknown node", tampered("arcs", to=[["x", "zz"]]), FileError, ("x -> zz",)),
    Bad("cyclic network", tampered("arcs", to=[["x", "y"], ["y", "x"]]), FileError,
        ("x -> y -> x",)),
    Bad("other arcs", tampered("arcs", to=[]), FileError, ("parents of 'y'",)),
    Bad("missing fit", saved_net(without_fit), FileError, ("does not hold a network",)),
    Bad("extra field", tampered("fits", "y", "colour", to="red"), FileError, ("colour",)),
    Bad("a data set too many", tampered("levels", to=["a", "b", "c"]), FileError, ("rows",)),
    Bad("data set twice", tampered("levels", to=["a", "a"]), FileError, ("twice",)),
    Bad("rows not whole", tampered("rows", to=[1.5, 2]), FileError, ("whole number",)),
    Bad("adapted unknown", tampered("adapted", to=["zz"]), FileError, ("adapted",)),
    Bad("group not a text", tampered("group", to=3), FileError, ("group column",)),
    Bad("negative variance", tampered("fits", "y", "sigma2", to=[1.0, -1.0]), FileError,
        ("sigma2 of 'y'", "negative")),
    Bad("no covariance", tampered("fits", "y", "fixed_cov", to=[[1.0, 2.0], [2.0, 1.0]]), FileError,
        ("fixed_cov of 'y'", "covariance")),
    Bad("lopsided covariance", tampered("fits", "y", "fixed_cov", to=[[1.0, 0.5], [0.0, 1.0]]),
        FileError, ("fixed_cov of 'y'", "covariance")),
    Bad("score a text", tampered("score", to="high"), FileError, ("does not hold a network",)),
    Bad("broken trace", tampered("trace", to=[{"kind": "add"}]), FileError,
        ("does not hold a network",)),
    Bad("save network nowhere", lambda f: pb.learn(frame(), group="site", pooling="complete").save(
        f / "no" / "net"), FileError, ("cannot write", "No such file")),
    Bad("save network of dates", lambda f: pb.learn(frame(site=DATES), group="site",
        pooling="complete").save(f / "n"), FileError, ("Timestamp", "text")),
    # Simulated networks
    Bad("graph of no nodes", lambda f: pb.random_dag(0, 0), OptionError, ("N=0",)),
    Bad("graph of 2.5 nodes", lambda f: pb.random_dag(2.5, 1), OptionError, ("N=2.5",)),
    Bad("too many parents", lambda f: pb.random_dag(6, 4), OptionError,
        ("mean_parents=4", "N / 2 = 3")),
    Bad("parents not a number", lambda f: pb.random_dag(6, "2"), OptionError,
        ("mean_parents='2'",)),
    Bad("hardly connected", lambda f: pb.random_dag(1000, 1), OptionError,
        ("N=1000", "mean_parents=1", "connected", "3.5")),
    Bad("never connected", lambda f: pb.random_dag(4, 0), OptionError, ("mean_parents=0",)),
    Bad("seed of a graph", lambda f: pb.random_dag(6, 1, seed=-1), OptionError, ("seed=-1",)),
    Bad("no seed", lambda f: pb.random_dag(6, 1, seed=None), OptionError, ("seed=None",)),
    Bad("arcs as a graph", lambda f: pb.random_network([("x", "y")], 2), GraphError,
        ("list", "pb.random_dag")),
    Bad("empty graph", lambda f: pb.random_network(pb.Dag([]), 2), GraphError, ("no nodes",)),
    Bad("node F", lambda f: pb.random_network(pb.Dag(["F"]), 2), GraphError, ("'F'", "rename")),
    Bad("no data sets", lambda f: pb.random_network(XY, 0), OptionError, ("data_sets=0",)),
    Bad("unknown wording", lambda f: pb.random_network(XY, 2, wording="papers"), OptionError,
        ("did you mean 'paper'",)),
    Bad("discrete as a count", lambda f: pb.random_network(XY, 2, discrete=2), OptionError,
        ("discrete=2", "from 0 to 1")),
    Bad("rows of other data sets", lambda f: pb.random_table(TRUTH, [3, 4, 5]), DataError,
        ("3 counts", "2 data sets", "one for each")),
    Bad("no rows to draw", lambda f: pb.random_table(TRUTH, [3, 0]), OptionError,
        ("rows of data set 'set2'=0",)),
    Bad("half a row", lambda f: pb.random_table(TRUTH, 2.5), OptionError, ("2.5",)),
    Bad("unbalanced pair", lambda f: pb.unbalanced_rows(100, 2), OptionError,
        ("data_sets=2", "3 or more")),
    Bad("unbalanced few", lambda f: pb.unbalanced_rows(10, 9), OptionError, ("total=10", "9")),
    Bad("treatment that is not there",
        lambda f: pb.treatment_effects(frame(), treatment="arm", group="site"), DataError,
        ("no column 'arm'", "'x'")),
    Bad("treatment as an outcome",
        lambda f: pb.treatment_effects(frame(), treatment="x", group="site", outcomes=["x"]),
        OptionError, ("'x' is the treatment",)),
    Bad("no outcomes",
        lambda f: pb.treatment_effects(frame(), treatment="x", group="site", outcomes=[]),
        OptionError, ("outcomes=[]", "name a column")),
    # Metrics
    Bad("shd of text", lambda f: pb.metrics.shd(XY, "[x][y]"), GraphError,
        ("expected a Dag or a network, got str", "pb.Dag('[A][B|A]')")),
    Bad("shd of another network", lambda f: pb.metrics.shd(TRUTH, pb.Dag(["x", "zz"])),
        GraphError, ("only one of the graphs has the node",)),
    Bad("shd of other nodes", lambda f: pb.metrics.shd(XY, pb.Dag(["x", "z"])), GraphError,
        ("'y'",)),
    Bad("arcs of other nodes", lambda f: pb.metrics.compare_arcs(XY, pb.Dag(["x", "y", "z"])),
        GraphError, ("'z'",)),
    Bad("kl of other nodes", lambda f: pb.metrics.kl(TRUTH, pb.random_network(pb.Dag(["x"]), 2)),
        GraphError, ("'y'",)),
    Bad("kl of other data sets", lambda f: pb.metrics.kl(TRUTH, pb.random_network(XY, 3)),
        DataError, ("'set3'",)),
    Bad("kl weights", lambda f: pb.metrics.kl(TRUTH, TRUTH, weights="mean"), OptionError,
        ("weights='mean'", "prior, sum")),
    Bad("kl by half a row", lambda f: pb.metrics.kl_estimate(TRUTH, TRUTH, rows=0.5), OptionError,
        ("rows=0.5", "from 2")),
    Bad("log loss of no level", lambda f: pb.metrics.log_loss(["c"], pd.DataFrame({"a": [1.0]})),
        DataError, ("row 1", "'c'")),
    Bad("auc of one level", lambda f: pb.metrics.auc(["a"], pd.DataFrame({"a": [1.0]})), DataError,
        ("same level", "rows with others")),
    Bad("bif of numbers", lambda f: TRUTH.to_bif(), GraphError, ("x and y", "to_bnlearn()")),
    Bad("adjusting for itself", lambda f: XY.adjustment_set("x", "x"), GraphError,
        ("'x'", "name two nodes")),
    Bad("adjusting for the cause", lambda f: TRUTH.is_adjustment_set("x", "y", "x"), GraphError,
        ("'x'", "given")),
    Bad("rmad of other shapes", lambda f: pb.metrics.rmad([1.0, 2.0], [1.0]), DataError,
        ("(2,)", "(1,)")),
    Bad("rmad of nothing", lambda f: pb.metrics.rmad([], []), DataError, ("at least one",)),
    Bad("rmad of text", lambda f: pb.metrics.rmad(["a"], [1.0]), DataError,
        ("actual", "numbers")),
    Bad("rmad with holes", lambda f: pb.metrics.rmad([1.0, 2.0], [1.0, NAN]), DataError,
        ("predicted", "row 2")),
    Bad("rmad of other columns", lambda f: pb.metrics.rmad(ONE[["x", "y"]], ONE[["y", "x"]]),
        DataError, ("['x', 'y']", "['y', 'x']")),
    Bad("f1 of an unknown data set", lambda f: pb.metrics.f1(["NY"], ["NYC"], ["NY", "MN"]),
        DataError, ("row 1 of predicted", "'NYC'", "did you mean 'NY'")),
    Bad("f1 of other lengths", lambda f: pb.metrics.f1("aab", "aa", "ab"), DataError,
        ("3 rows", "predicted 2")),
    Bad("nominal coverage", lambda f: pb.metrics.calibration([1.0], {95: ([0.0], [2.0])}),
        OptionError, ("between 0 and 1", "95")),
    # New data sets, interventions, effects
    Bad("adapt, name taken", net(lambda n: n.adapt(ONE, "a")), DataError,
        ("'a'", "already", "another name")),
    Bad("adapt, no name", net(lambda n: n.adapt(ONE)), DataError, ("name=None", "new clinic")),
    Bad("adapt, name a list", net(lambda n: n.adapt(ONE, ["c"])), DataError, ("name=['c']",)),
    Bad("adapt, column missing", net(lambda n: n.adapt(OTHER, "c")), DataError,
        ("'y'", "data set 'c'")),
    Bad("adapt, statistics of two", net(lambda n: n.adapt(stats(ONE, group="site"), "c")),
        DataError, ("2 data sets", "'a', 'b'", "one at a time")),
    Bad("adapt, dict of two", net(lambda n: n.adapt({"p": ONE, "q": ONE}, "c")), DataError,
        ("2 data sets", "'p', 'q'")),
    Bad("adapt, missing cell", net(lambda n: n.adapt(VANISHES, "c")), DataError,
        ("2 rows", "'x'", "missing='drop'")),
    Bad("adapt, missing what", net(lambda n: n.adapt(ONE, "c", missing="skip")), OptionError,
        ("'skip'",)),
    Bad("adapt, few rows and no pooling", net(lambda n: n.adapt(ONE[:2], "c"), "none"), DataError,
        ("no population", "2 coefficients", "'y'", "at least 3", "'c'", "are 2",
         "pooling='partial'")),
    Bad("adapt, no rows and no pooling", net(lambda n: n.adapt(name="c"), "none"), DataError,
        ("no population", "at least 2 rows", "are 0", "pooling='partial'")),
    Bad("adapt, constant and no pooling", net(lambda n: n.adapt(frame(x=1.0), "c"), "none"),
        DataError, ("no population", "'c'", "'x' is constant", "pooling='partial'")),
    Bad("do unknown", net(lambda n: n.do(xx=1)), GraphError, ("'xx'", "did you mean 'x'")),
    Bad("do nothing", net(lambda n: n.do()), OptionError, ("no node", "do(age=30)")),
    Bad("do NaN", net(lambda n: n.do(x=NAN)), OptionError, ("'x'", "nan", "finite")),
    Bad("do infinite", net(lambda n: n.do({"x": -np.inf})), OptionError, ("'x'", "-inf")),
    Bad("do text", net(lambda n: n.do(x="high")), OptionError, ("'x'", "'high'", "number")),
    Bad("do twice", net(lambda n: n.do({"x": 1}, x=2)), OptionError, ("'x'", "two values")),
    Bad("do a number", net(lambda n: n.do(3)), OptionError, ("3", "dict")),
    Bad("total effect of unknown", net(lambda n: n.total_effects("xx")), GraphError,
        ("'xx'", "did you mean 'x'")),
    Bad("total effect on unknown", net(lambda n: n.total_effects(effect="zz")), GraphError,
        ("'zz'", "known are: x, y")),
    Bad("total effect on itself", net(lambda n: n.total_effects("x", "x")), GraphError,
        ("'x'", "cause and effect")),
    Bad("interval in percent", net(lambda n: n.effects(95)), OptionError,
        ("interval=95", "0.95")),
    Bad("interval a text", net(lambda n: n.effects("95%")), OptionError, ("'95%'",)),
    Bad("control character in GraphML", lambda f: pb.learn(frame().rename(columns={"x": "x\x07"}),
        group="site", pooling="complete").to_graphml(), GraphError, ("'x\\x07'", "XML", "rename")),
    # Questions to a network
    Bad("predict for an unknown data set", net(lambda n: n.predict(frame(site=list("abcc")), "y")),
        DataError, ("'c'", "2 rows", "'site'", "'a', 'b'", "net.adapt(rows, name='c')", "missing")),
    Bad("predict, several unknown", net(lambda n: n.predict(frame(site=list("abcd")), "y")),
        DataError, ("'c'", "1 row ", "2 such data sets")),
    Bad("predict from other columns", net(lambda n: n.predict(ONE[["site"]].assign(z=1), "y")),
        DataError,
        ("'site'", "the nodes are 'x', 'y'")),
    Bad("predict from text", net(lambda n: n.predict(MIXED, "y")), DataError,
        ("'x'", "'n/a'", "make it numeric")),
    Bad("predict from an infinite cell", net(lambda n: n.predict(frame(x=[1, 2, np.inf, 3]), "y")),
        DataError, ("row 3", "'x'", "make it missing")),
    Bad("predict unknown", net(lambda n: n.predict(ONE, "yy")), DataError,
        ("'yy'", "did you mean 'y'")),
    Bad("predict twice", net(lambda n: n.predict(ONE, ["y", "y"])), DataError, ("'y'", "2 times")),
    Bad("predict nothing", net(lambda n: n.predict(ONE, [])), DataError, ("no target", "x, y")),
    Bad("predict in percent", net(lambda n: n.predict(ONE, "y", interval=95)), OptionError,
        ("interval=95", "0.95")),
    Bad("unknown method", net(lambda n: n.classify(ONE, method="mcmc")), OptionError,
        ("'mcmc'", "'exact'", "'lw'")),
    Bad("no particles", net(lambda n: n.classify(ONE, method="lw", particles=0)), OptionError,
        ("particles=0",)),
    Bad("half a particle", net(lambda n: n.query("x > 1", particles=0.5)), OptionError,
        ("particles=0.5",)),
    Bad("no seed", net(lambda n: n.sample(3, seed=None)), OptionError, ("seed=None",)),
    Bad("impossible rows", net(lambda n: n.do(x=1).classify(ONE)), DataError,
        ("row 2", "'x' is 2 there and 1", "missing")),
    Bad("impossible evidence", net(lambda n: n.do(x=1).posterior({"x": 2}, "y")), DataError,
        ("'x' is 2",)),
    Bad("evidence a list", net(lambda n: n.posterior(["x"], "y")), DataError, ("['x']", "dict")),
    Bad("evidence on unknown", net(lambda n: n.posterior({"xx": 1}, "y")), DataError,
        ("'xx'", "did you mean 'x'")),
    Bad("evidence a text", net(lambda n: n.posterior({"x": "3"}, "y")), DataError,
        ("'x'", "'3'", "number")),
    Bad("evidence missing", net(lambda n: n.posterior({"x": pd.NA}, "y")), DataError,
        ("'x'", "<NA>", "leave it out")),
    Bad("evidence NaN", net(lambda n: n.query("y > 1", {"x": NAN})), DataError,
        ("'x'", "nan", "leave it out")),
    Bad("evidence on the target", net(lambda n: n.posterior({"y": 1}, ["x", "y"])), DataError,
        ("'y'", "both evidence and target")),
    Bad("evidence from an unknown data set", net(lambda n: n.posterior({"site": "c"}, "y")),
        DataError, ("'c'", "known are: a, b")),
    Bad("distribution function of two", net(lambda n: n.posterior({}, ["x", "y"]).cdf(1)),
        OptionError, ("2 targets", "one")),
    Bad("density at half a point", net(lambda n: n.posterior({}, ["x", "y"]).pdf(1)), OptionError,
        ("2 numbers",)),
    Bad("quantile in percent", net(lambda n: n.posterior({}, "x").quantile(95)), OptionError,
        ("95", "between 0 and 1")),
    Bad("event on unknown", net(lambda n: n.query("yy > 1")), OptionError,
        ("'yy'", "did you mean 'y'", "backticks")),
    Bad("event, no condition", net(lambda n: n.query("y >")), OptionError, ("'y >'", "bmi > 25")),
    Bad("event without a comparison", net(lambda n: n.query("x + y")), OptionError,
        ("float64", "True or False")),
    Bad("event a number", net(lambda n: n.query(3)), OptionError, ("event=3", "bmi > 25")),
    Bad("event for all rows", net(lambda n: n.query(lambda t: True)), OptionError,
        ("bool of shape ()",)),
    Bad("sample an unknown data set", net(lambda n: n.sample(3, "c")), DataError,
        ("'c'", "known are: a, b")),
    Bad("sample less than nothing", net(lambda n: n.sample(-3)), OptionError, ("n=-3",)),
    Bad("unknown preset", lambda f: run_study(f, preset="papr"), OptionError,
        ("'papr'", "did you mean 'paper'")),
    Bad("unknown model", lambda f: run_study(f, models=["CGB"]), OptionError,
        ("'CGB'", "did you mean 'CGBN'")),
    Bad("no models", lambda f: run_study(f, models=[]), OptionError, ("no models", "GBN, CGBN")),
    Bad("no workers", lambda f: run_study(f, workers=0), OptionError, ("workers=0",)),
    Bad("part 0", lambda f: run_study(f, part=(0, 3)), OptionError, ("part 0 of 3", "1/3")),
    Bad("another study's folder", studied({"study.json": SMALL}, run_study), FileError,
        ("holds another study", "small: GBN, LME", "another folder")),
    Bad("a folder that is claimed by rubbish", studied({"study.json": "{"}, run_study), FileError,
        ("study.json", "not JSON", "another folder")),
    Bad("a folder that is claimed by others", studied({"study.json": "[]"}, run_study), FileError,
        ("study.json", "not of a study")),
    Bad("a study in a file", studied({"s": ""}, lambda f: run_study(f / "s")), FileError,
        ("cannot make the folder", "/s'")),
    Bad("report on no results", studied({"study.json": SMALL}, reported), FileError,
        ("no results", "run the study")),
    Bad("report on no folder", lambda f: write_report(f / "none", f / "r"), FileError,
        ("/none'", "not a folder", "results.parquet")),
    Bad("report on a broken part",
        studied({"study.json": SMALL, "parts/a.parquet": "PAR1"}, reported), FileError,
        ("/a.parquet'", "not a whole Parquet file", "remove it and run")),
    Bad("report on a foreign part",
        studied({"study.json": SMALL, "parts/a.parquet": frame().to_parquet()}, reported),
        FileError, ("/a.parquet'", "columns differ")),
    Bad("report on another file",
        studied({"a.csv": "1,2"}, lambda f: write_report(f / "a.csv", f / "r")), FileError,
        ("/a.csv'", "not a Parquet file")),
    Bad("report on a foreign file",
        studied({"a.parquet": frame().to_parquet()},
                lambda f: write_report(f / "a.parquet", f / "r")), FileError,
        ("/a.parquet'", "results.parquet", "folder")),
    # Bootstrap and comparison
    Bad("no replicates", boot(replicates=0), OptionError, ("replicates=0", "from 1")),
    Bad("half a replicate", boot(replicates=2.5), OptionError, ("replicates=2.5",)),
    Bad("bootstrap without a seed", boot(seed=None), OptionError, ("seed=None",)),
    Bad("bootstrap of unknown units", boot(unit="rows"), OptionError,
        ("unit='rows'", "did you mean 'row'")),
    Bad("bootstrap with a misspelt option", boot(constrains=None), OptionError,
        ("'constrains'", "pb.bootstrap", "did you mean 'constraints'")),
    Bad("bootstrap with an unknown pooling", boot(pooling="part"), OptionError,
        ("'part'", "did you mean 'partial'")),
    Bad("bootstrap with bad constraints", boot(constraints=pb.Constraints(required=[("x", "yy")])),
        GraphError, ("'yy'", "did you mean 'y'")),
    Bad("bootstrap with gaps", boot(frame(x=[1.0, NAN, 2.0, 3.0])), DataError,
        ("row 2", "'x'", "missing='drop'")),
    Bad("posterior with an unknown prior", posterior(prior="graphs"), OptionError,
        ("prior='graphs'", "orders", "dags")),
    Bad("posterior with a fraction of a parent", posterior(max_parents=1.5), OptionError,
        ("max_parents=1.5",)),
    Bad("posterior with a method by name", posterior(method="mcmc"), OptionError,
        ("method='mcmc'", "pb.OrderMCMC")),
    Bad("posterior of graphs by orders", posterior(prior="dags", method=pb.OrderMCMC()),
        OptionError, ("pb.PartitionMCMC with prior='dags'",)),
    Bad("posterior of orders by partitions", posterior(method=pb.PartitionMCMC()),
        OptionError, ("pb.OrderMCMC with prior='orders'",)),
    Bad("posterior that requires more than it allows", posterior(
        constraints=pb.Constraints(required=[("x", "y")]), max_parents=0), GraphError,
        ("1 arc into 'y'", "max_parents=0", "require fewer")),
    Bad("posterior with bad constraints", posterior(
        constraints=pb.Constraints(forbidden=[("x", "yy")])), GraphError,
        ("'yy'", "did you mean 'y'")),
    Bad("posterior without a likelihood", posterior(frame(site=list("abcd")), pooling="none"),
        DataError, ("'x'", "likelihood", "too few rows", "leave it out")),
    Bad("posterior of statistics with a group", of_stats(
        lambda s: pb.arc_posterior(s, group="site")), DataError, ("leave group='site' out",)),
    Bad("one chain", lambda f: pb.OrderMCMC(chains=1), OptionError, ("chains=1",)),
    Bad("no sweeps", lambda f: pb.PartitionMCMC(sweeps=0), OptionError, ("sweeps=0",)),
    Bad("no power", of_posterior(lambda p: p.tempered(0)), OptionError, ("power=0", "use 0.25")),
    Bad("probability of no node", of_posterior(lambda p: p.probability("x", "yy")), GraphError,
        ("'yy'", "did you mean 'y'")),
    Bad("probability of a loop", of_posterior(lambda p: p.probability("x", "x")), GraphError,
        ("'x' is given twice",)),
    Bad("parents of no node", of_posterior(lambda p: p.parent_sets("yy")), GraphError,
        ("'yy'", "did you mean 'y'")),
    Bad("a threshold above 1", of_posterior(lambda p: p.median_graph(2)), OptionError,
        ("threshold=2", "between 0 and 1")),
    Bad("exact probabilities continued", of_posterior(lambda p: p.continued(10)), OptionError,
        ("exact",)),
    Bad("averaged effects with no interval", of_posterior(lambda p: p.effects(95)), OptionError,
        ("interval=95", "0.95")),
    Bad("a function of graphs without a number", of_posterior(
        lambda p: p.sample(10).average(lambda dag: dag.arcs)), OptionError, ("tuple", "number")),
    Bad("bootstrap of statistics", of_stats(lambda s: pb.bootstrap(s, replicates=2)), DataError,
        ("no rows", "unit='data set'")),
    Bad("bootstrap of statistics with a group",
        of_stats(lambda s: pb.bootstrap(s, group="site", unit="data set")), DataError,
        ("leave group='site' out",)),
    Bad("bootstrap of one data set", boot(frame(site=list("aaaa")), unit="data set"), DataError,
        ("one data set, 'a'", "unit='row'")),
    Bad("partial pooling of one data set", boot(frame(site=list("aaaa")), pooling="partial"),
        DataError, ("at least two data sets", "'a'")),
    Bad("bootstrap of what can be read once",
        lambda f: pb.bootstrap(pa.Table.from_pandas(ONE).to_reader(), group="site"), DataError,
        ("more than once", "into a table first")),
    Bad("threshold in percent", strengths(lambda b: b.averaged(85)), OptionError,
        ("threshold=85", "between 0 and 1")),
    Bad("threshold a text", strengths(lambda b: b.averaged("0.85")), OptionError, ("'0.85'",)),
    Bad("threshold NaN", strengths(lambda b: b.averaged(NAN)), OptionError, ("threshold=nan",)),
    Bad("one fold", compared(folds=1), OptionError, ("folds=1", "from 2")),
    Bad("folds a text", compared(folds="10"), OptionError, ("folds='10'",)),
    Bad("comparison without a seed", compared(seed=None), OptionError, ("seed=None",)),
    Bad("comparison of one pooling by a wrong name", compared(pooling="partial"), OptionError,
        ("'pooling'", "pb.compare", "did you mean 'poolings'")),
    Bad("comparison of a text", compared(poolings="partial"), OptionError,
        ("'partial'", "not a list")),
    Bad("comparison of nothing", compared(poolings=[]), OptionError, ("poolings",)),
    Bad("comparison of an unknown pooling", compared(poolings=["partial", "ful"]), OptionError,
        ("'ful'",)),
    Bad("comparison of the same twice", compared(poolings=["none", "none"]), OptionError,
        ("'none'", "twice")),
    Bad("comparison of statistics", of_stats(pb.compare), DataError,
        ("no rows", "the rows themselves")),
    Bad("comparison on one data set", compared(frame(site=list("aaaa"))), DataError,
        ("one data set, 'a' with 4 rows", "two or more")),
    Bad("comparison on lone rows", compared(frame(site=list("abcd"))), DataError,
        ("4 data sets", "one row", "two rows or more")),
    Bad("comparison with gaps", compared(frame(x=[1.0, NAN, 2.0, 3.0])), DataError,
        ("row 2", "'x'", "missing='drop'")),
    Bad("comparison by BGe", compared(score="bge"), OptionError, ("BGe", "complete pooling")),
    Bad("comparison with bad constraints", compared(constraints={"x": "y"}), OptionError,
        ("the key 'x'", "known are: required, forbidden")),
    Bad("unknown pooling of a comparison",
        lambda f: pb.compare(frame(x=[1, 3, 2, 5], y=[2, 1, 4, 3]), group="site", folds=2,
                             poolings=["complete"]).difference("none"), OptionError,
        ("'none'", "complete")),
    # Plots
    Bad("plot of a graph", net(lambda n: pb.plots.network(n.dag)), DataError,
        ("expected a network, got Dag", "pb.learn")),
    Bad("plot with other strengths", net(lambda n: pb.plots.network(n, strengths=BOOT)), DataError,
        ("'y'", "'x', 'z'")),
    Bad("plot with strengths of another kind", net(lambda n: pb.plots.network(n, strengths=0.5)),
        DataError, ("expected a bootstrap, got float", "pb.bootstrap")),
    Bad("plot on no axes", net(lambda n: pb.plots.network(n, ax="left")), OptionError,
        ("ax='left'", "plt.subplots()")),
    Bad("forest on no axes", net(lambda n: pb.plots.forest(n, "x", "y", ax=3)), OptionError,
        ("ax=3",)),
    Bad("forest of an arc the other way", net(lambda n: pb.plots.forest(n, "y", "x")), GraphError,
        ("no arc y -> x", "parent='x', child='y'")),
    Bad("forest of no arc", net(lambda n: pb.plots.forest(n.do(y=1), "x", "y")), GraphError,
        ("no arc x -> y", "no arc goes there")),
    Bad("forest of an unknown parent", net(lambda n: pb.plots.forest(n, "xx", "y")), GraphError,
        ("'xx'", "did you mean 'x'")),
    Bad("forest of an unknown child", net(lambda n: pb.plots.forest(n, "x", "yy")), GraphError,
        ("'yy'", "did you mean 'y'")),
    Bad("forest of an unknown node", net(lambda n: pb.plots.forest(n, None, "yy")), GraphError,
        ("'yy'", "did you mean 'y'")),
    Bad("forest in percent", net(lambda n: pb.plots.forest(n, "x", "y", interval=95)), OptionError,
        ("interval=95", "0.95")),
    Bad("forest from rows", net(lambda n: pb.plots.forest(n, "x", "y", stats=ONE)), DataError,
        ("expected sufficient statistics, got DataFrame", "pb.stats")),
    Bad("forest from other statistics",
        net(lambda n: pb.plots.forest(n, "x", "y", stats=n.stats.select(["x"]))), DataError,
        ("no column 'y'",)),
    Bad("overview of nothing", net(lambda n: pb.plots.heterogeneity(n, most=0)), OptionError,
        ("most=0", "from 1")),
    Bad("residuals of unknown", net(lambda n: pb.plots.residuals(n, ONE, "yy")), GraphError,
        ("'yy'", "did you mean 'y'")),
    Bad("residuals without a parent", net(lambda n: pb.plots.residuals(n, ONE[["site", "y"]], "y")),
        DataError, ("'y'", "need column 'x'", "'site', 'y'")),
    Bad("residuals without data sets", net(lambda n: pb.plots.residuals(n, ONE[["x", "y"]], "y")),
        DataError, ("'y'", "need column 'site'")),
    Bad("residuals of gaps", net(lambda n: pb.plots.residuals(n, frame(x=NAN), "y")), DataError,
        ("none of the 4 rows", "'y'", "'x'", "missing")),
    Bad("residuals of what is set", net(lambda n: pb.plots.residuals(n.do(y=1), ONE, "y")),
        DataError, ("'y'", "no residual variance", "'a'", "'given'")),
    Bad("prediction from an unknown level", mixed(lambda n: n.predict(frame(y=list("mfmd")), "x")),
        DataError, ("'y'", "'d'", "does not know", "missing")),
    Bad("evidence of an unknown level", mixed(lambda n: n.posterior({"y": "d"}, "x")), DataError,
        ("'y'", "'d'", "levels", "leave it out")),
    Bad("evidence of levels by a number", mixed(lambda n: n.posterior({"x": "m"}, "y")), DataError,
        ("'x'", "'m'", "finite number")),
    Bad("quantiles of levels", mixed(lambda n: n.posterior({"x": 1.0}, "y").quantile(0.5)),
        OptionError, ("'y'", "discrete", ".probabilities")),
    Bad("comparison of a table by group", lambda f: pb.compare(
        pb.table(LEVELS, group="site"), group="site"), DataError, ("group='site'", "leave")),
    Bad("residuals of levels", mixed(lambda n: pb.plots.residuals(n, LEVELS, "y")), DataError,
        ("'y' is discrete", "pb.plots.calibration(net, data, 'y')")),
    Bad("calibration of numbers", mixed(lambda n: pb.plots.calibration(n, LEVELS, "x")), DataError,
        ("'x' is not discrete", "pb.plots.residuals(net, data, 'x')")),
    Bad("calibration of unknown", mixed(lambda n: pb.plots.calibration(n, LEVELS, "yy")),
        GraphError, ("'yy'", "did you mean 'y'")),
    Bad("calibration of another level",
        mixed(lambda n: pb.plots.calibration(n, frame(y=list("mfmd")), "y")), DataError,
        ("'d'", "'y'")),
    Bad("residual SD of levels", mixed(lambda n: pb.plots.forest(n, None, "y")), DataError,
        ("'y' does not have one residual SD", "table of probabilities", "net.fits['y']")),
    Bad("forest of levels from numbers",
        mixed(lambda n: pb.plots.forest(n, "y", "x", stats=pb.stats(ONE, group="site"))),
        DataError, ("'y' is continuous, in the network discrete", "pb.table(data, group=...)")),
    Bad("forest from other levels",
        mixed(lambda n: pb.plots.forest(n, "y", "x", stats=pb.table(
            frame(y=list("mdmd")), group="site"))), DataError,
        ("column 'y' has the levels d, m", "in the network the levels f, m", "give the rows")),
    Bad("report with other levels",
        lambda f: mixed(lambda n: pb.report(n, f / "r.html", data=pb.table(
            frame(y=list("mdmd")), group="site")))(f), DataError,
        ("column 'y' has the levels d, m", "in the network the levels f, m", "give the rows")),
    Bad("report with rows of another data set",
        lambda f: mixed(lambda n: pb.report(n, f / "r.html", data=pb.table(
            frame(site=list("aacc"), y=list("mfmf")), group="site")))(f), DataError,
        ("no data set 'c'",)),
    Bad("residuals on two axes",
        net(lambda n: pb.plots.residuals(n, ONE, "y", ax=Figure().subplots(1, 2))), OptionError,
        ("2 Axes", "3 panels", "plt.subplots(1, 3)")),
    Bad("comparison plot of a network", net(pb.plots.comparison), DataError,
        ("expected a comparison, got Network", "pb.compare")),
    Bad("strengths of a network", net(pb.plots.strengths), DataError,
        ("expected a bootstrap, got Network", "pb.bootstrap")),
    Bad("strengths of none", lambda f: pb.plots.strengths(BOOT, most=0), OptionError,
        ("most=0", "from 1")),
    # Report
    Bad("report of a graph", lambda f: pb.report(pb.Dag(["x"]), f / "r.html"), DataError,
        ("expected a network, got Dag", "pb.learn")),
    Bad("report with another bootstrap", report(bootstrap=0.5), DataError,
        ("expected a bootstrap, got float", "pb.bootstrap")),
    Bad("report with a bootstrap of other nodes", report(bootstrap=BOOT), DataError,
        ("'y'", "'x', 'z'")),
    Bad("report with another comparison", report(comparison="partial"), DataError,
        ("expected a comparison, got str", "pb.compare")),
    Bad("report with a comparison of other variables",
        lambda f: report(comparison=compared(frame(z=[1, 3, 2, 5]), poolings=["complete"])(f))(f),
        DataError,
        ("'z'", "same columns")),
    Bad("report with rows that lack a column", report(data=ONE[["site", "x"]]), DataError,
        ("column 'y'", "'site', 'x'", "leave data= out")),
    Bad("report with rows of no data set", report(data=ONE[["x", "y"]]), DataError,
        ("column 'site'", "'x', 'y'")),
    Bad("report with rows of another data set", report(data=frame(site=list("aabc"))), DataError,
        ("'c'", "net.adapt")),
    Bad("report into no folder", net(lambda n: pb.report(n, "no/such/folder/r.html")), FileError,
        ("'no/such/folder/r.html'", "No such file")),
    # Folders, URLs, checkpoints
    Bad("folder of two kinds", folder({"a.csv": "x", "s/b.csv": "x", "c.parquet": "x"}), DataError,
        ("2 CSV and 1 Parquet", "pattern")),
    Bad("folder of other things", folder({"a.stats": "x", "b.txt": "x", "_c.csv": "x"}), DataError,
        ("no file of rows", "2 others", "'a.stats'")),
    Bad("group in no folder", folder({"s=a/p.csv": "x\n1\n", "p.csv": "x\n1\n"}, group="s"),
        DataError, ("no column 's' of p.csv",)),
    Bad("names of folders alone",
        folder({"s=1/t=2/p.csv": "x\n1\n"}, group="s", columns=["t"]), DataError,
        ("'t' of s=1/t=2/p.csv", "columns of the files too")),
    Bad("files of one name in folders", folder({"s=1/p.csv": "x\n1\n", "s=2/p.csv": "x\n1\n"}),
        DataError, ("2 files have the name 'p'", "group=...")),
    Bad("URL of no kind", lambda f: stats("ftp://poolbn.invalid/a.parquet"), DataError,
        ("ftp://poolbn.invalid", "through Arrow", "copy the files here")),
    Bad("URL of no file", lambda f: stats(f"file://{f}/a.parquet"), DataError,
        ("there is no file 'file://",)),
    Bad("pattern in a URL", lambda f: stats(f"file://{f}/*.parquet"), DataError,
        ("URLs take no patterns", "folder")),
    Bad("checkpoint of a frame", lambda f: stats(ONE, group="site", checkpoint=f), OptionError,
        ("checkpoint=", "for files")),
    Bad("checkpoint in a file",
        lambda f: (f / "c").write_text("") or file("t.csv", CSV + "a,1,2\n", checkpoint=f / "c")(f),
        FileError, ("cannot keep a checkpoint", "File exists")),
    # Files of statistics
    Bad("few rows", lambda f: stats(frame(), group="site").save(f / "s.stats"), DataError,
        ("fewer than 10 rows", "'a' has 2, 'b' has 2", "reveal", "allow_small=True")),
    Bad("older", saved(lambda whole: whole.replace(b" 3 ", b" 2 ", 1)), FileError,
        ("version 2", "make it anew")),
    Bad("no version", saved(lambda whole: whole.replace(b" 3 ", b" two ", 1)), FileError,
        ("version two", "update poolbn")),
    Bad("no length", saved(lambda whole: re.sub(rb" 3 \d+", b" 3 x", whole)), FileError,
        ("cut short",)),
    Bad("something after the end", saved(lambda whole: whole + b"row"), FileError, ("damaged",)),
    Bad("a name changed", saved(lambda whole: whole.replace(b'"x"', b'"z"')), FileError,
        ("damaged", "checksum")),
    Bad("empty statistics", saved(lambda whole: b""), FileError, ("s.stats", "is empty")),
    Bad("picture as statistics", saved(lambda whole: b"\x89PNG\r\n\x1a\n" + bytes(99)), FileError,
        ("not a file of poolbn",)),
    Bad("Parquet as statistics", saved(lambda whole: PARQUET), FileError,
        ("not a file of poolbn",)),
    Bad("JSON as statistics", saved(lambda whole: b'{"names": ["x"]}'), FileError,
        ("not a file of poolbn",)),
    Bad("one line as statistics", saved(lambda whole: b"poolbn-statistics"), FileError,
        ("not a file of poolbn",)),
    Bad("statistics and more", saved(rows_inside), FileError, ("header has", "rows")),
    Bad("statistics of a newer poolbn", saved(section(b'"columns"', b'"newer"')), FileError,
        ("'newer'", "newer poolbn", "update poolbn")),
    Bad("sections in another order", saved(section(b'"moments": ', b'"columns": 0, "moments": ')),
        FileError, ("as it should",)),
    Bad("sections of other sizes", saved(section(b'"columns": ', b'"columns": 1')), FileError,
        ("its sections need",)),
    Bad("a section of no size", saved(section(b'"columns": ', b'"columns": -')), FileError,
        ("'columns' has -",)),
    Bad("rows in what it says of columns", saved(section(b'"few"', b'"2.5"')), FileError,
        ("as it should", "2.5")),
    Bad("spaces in what it says of columns", saved(section(b'"kind": [', b'"kind":[ ')),
        FileError, ("2 columns", "not as poolbn writes it")),
    Bad("statistics without a header", saved(lambda whole: signed(b"[1, 2]\n")), FileError,
        ("as it should",)),
    Bad("statistics of no JSON", saved(lambda whole: signed(b"names\n")), FileError,
        ("as it should",)),
    Bad("too few numbers", forged(mean=np.zeros((2, 1))), FileError, ("need", "bytes")),
    Bad("column twice", forged(names=("x", "x")), FileError, ("'x' occurs 2 times",)),
    Bad("data set twice", forged(levels=("a", "a")), FileError, ("'a' occurs 2 times",)),
    Bad("column a number", forged(names=("x", 1)), FileError, ("not texts",)),
    Bad("data set NaN", forged(levels=("a", NAN)), FileError, ("NaN",)),
    Bad("no rows", forged(n=np.array([2, 0])), FileError, ("'b' has 0 rows",)),
    Bad("fewer rows than none", forged(n=np.array([-2, 2])), FileError, ("'a' has -2 rows",)),
    Bad("fewer dropped than none", forged(dropped=np.array([-1, 0])), FileError, ("'a' has -1",)),
    Bad("mean NaN", forged(mean=np.full((2, 2), NAN)), FileError, ("'a'", "not finite")),
    Bad("scatter infinite", forged(scatter=np.full((2, 2, 2), np.inf)), FileError, ("not finite",)),
    Bad("scatter not symmetric", forged(scatter=scatter(1, 2, 3, 4)), FileError,
        ("'a'", "not symmetric")),
    Bad("square negative", forged(scatter=scatter(-1, 0, 0, 1)), FileError, ("below zero",)),
    Bad("constant with products", forged(scatter=scatter(0, 1, 1, 1)), FileError, ("constant",)),
    Bad("correlation above one", forged(scatter=scatter(1, 2, 2, 1)), FileError,
        ("'a'", "semidefinite")),
    Bad("one row that varies", forged(n=np.array([1, 1])), FileError, ("one row",)),
    # Dask
    Bad("gaps in partitions", dasked(frame(x=[1, 2, NAN, 5], y=[NAN, 2, 3, 4])), DataError,
        ("2 rows", "row 1 of partitions[0] (data set 'a') in column 'y'", "x 1, y 1", "'drop'")),
    Bad("all gaps in a partition", dasked(frame(x=[1, 2, np.nan, np.nan]), missing="drop"),
        DataError, ("data set 'b'", "no rows left", "x 2")),
    Bad("infinite in a partition", dasked(frame(x=[1, 2, 3, np.inf])), DataError,
        ("inf", "row 2 of partitions[1]", "'b'", "'x'")),
    Bad("partitions without a group", dasked(ONE, group=None), DataError,
        ("group=...", "could be 'site'")),
    Bad("partitions without a column", dasked(ONE, columns=["x", "yy"]), DataError,
        ("'yy'", "did you mean 'y'")),
    Bad("partitions with a checkpoint", lambda f: dasked(ONE, checkpoint=f)(f), OptionError,
        ("checkpoint=...", "leave it out")),
    Bad("no cluster", lambda f: pb.on_cluster(2).__enter__(), OptionError,
        ("int is no cluster", "distributed.Client", "'local'")),
    Bad("no address", lambda f: pb.on_cluster("10.0.0.1:8786").__enter__(), OptionError,
        ("'10.0.0.1:8786'", "'tcp://10.0.0.1:8786'")),
]  # fmt: skip


# Options of commands, as Python has them; in brackets they belong to a function of Python.
KEYWORD = re.compile(
    r"\b(group|columns|missing|pooling|poolings|score|search|residuals|restarts|max_parents"
    r"|folds|replicates|unit|threshold|interval|seed|allow_small|checkpoint)="
)


@pytest.mark.parametrize("bad", TABLE, ids=[bad.id for bad in TABLE])
def test_message_says_where_and_what_to_do(bad: Bad, tmp_path: Path) -> None:
    with pytest.raises(bad.error) as caught:
        bad.call(tmp_path)
    message = str(caught.value)
    assert [part for part in bad.says if part not in message] == [], message
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.for_shell()) == (message, caught.value.for_shell())
    assert not KEYWORD.search(re.sub(r"\([^()]*\)", "", again.for_shell()))
    assert "\n" not in message


# Remedies

# Rows of the table whose message tells of a value of an option that can be tried as it is.
APPLIED = [
    "missing data set", "missing data set, NaN", "text column", "stray text",
    "stray text, polars", "stray text, csv", "dates", "dates, arrow", "complex column",
    "dict of different columns", "files of different columns", "decimal commas and points",
    "columns a text", "NaN", "null, polars", "empty cell, csv", "gaps in partitions",
    "adapt, missing cell", "few rows",
    "one data set", "bge with partial pooling", "learn from one data set",
    "learn, bge without pooling", "bootstrap with gaps", "bootstrap of statistics",
    "bootstrap of one data set", "partial pooling of one data set",
    "comparison with gaps",
    "comparison by BGe", "reml of separate residuals", "adapt, few rows and no pooling",
    "adapt, no rows and no pooling", "adapt, constant and no pooling",
    # In words: did you mean, known are, from which number, what is usual, what to leave out.
    "wrong missing", "unknown pooling", "unknown random", "unknown variance", "unknown score",
    "search by a wrong name", "search by another name", "negative seed", "level of a test",
    "unknown test", "unknown rule", "negative max_given", "negative restarts", "broken length",
    "exact, negative", "learn, unknown pooling", "learn, unknown score", "graph of no nodes",
    "seed of a graph", "no data sets", "unknown wording",
    "unbalanced pair", "kl weights", "kl by half a row", "adapt, missing what",
    "interval in percent", "predict in percent", "no particles", "no replicates",
    "bootstrap of unknown units", "posterior with an unknown prior",
    "posterior with a fraction of a parent", "one chain", "one fold", "folds a text",
    "group twice", "posterior of statistics with a group", "bootstrap of statistics with a group",
]  # fmt: skip
WORDS: list[tuple[str, Callable[[str], Any]]] = [
    (r"did you mean '([^']*)'", str),
    (r"known are: ([\w-]+)", str),
    (r"is not a whole number from (\d+)", int),
    (r"take (\d+) or more", int),
    (r"([\d.]+) is usual", float),
    (r"use ([\d.]+) or", float),
    (r"leave group='\w+' (out)", lambda said: None),
]
LEARNING = {*signature(pb.learn).parameters} - {"others"}


def remedy(error: PoolbnError) -> Option:
    """The option that a message advises, with its value."""
    options = [part for part in error.args if isinstance(part, Option)]
    for words, value in WORDS:
        if said := re.search(words, str(error)):
            return Option(options[0].name, value(said[1]))
    return options[-1]


def advised(how: Callable[..., Any], option: Option) -> Callable[..., Any]:
    """A function that is called with an option, if it has that."""
    names = list(signature(how).parameters)
    if option.value is None and how.__name__ in ("stats", "table"):  # these need their group
        return how
    handed_on = option.name in LEARNING and not {"learning", "others"}.isdisjoint(names)
    if option.name not in names and not handed_on:
        return how

    def call(*given: Any, **own: Any) -> Any:
        at = names.index(option.name) if option.name in names else len(given)
        if at < len(given):
            return how(*given[:at], option.value, *given[at + 1 :], **own)
        return how(*given, **(own | {option.name: option.value}))

    return call


@pytest.mark.parametrize("id", APPLIED)
def test_what_a_message_advises_works(
    id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bad,) = (bad for bad in TABLE if bad.id == id)
    with pytest.raises(bad.error) as caught:
        bad.call(tmp_path)
    option = remedy(caught.value)
    assert option.value is not ...
    monkeypatch.setitem(globals(), "stats", advised(stats, option))
    for home in (pb, pb.metrics, pb.Network, pb.GroupStats):
        for name in dir(home):
            how = getattr(home, name)
            plain = isfunction(how) or is_dataclass(how)
            if plain and (changed := advised(how, option)) is not how:
                monkeypatch.setattr(home, name, changed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bad.call(tmp_path)
