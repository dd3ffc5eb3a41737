"""Bad input: every kind of it gives an error of the right type that says where and what to do.

To add one, append a `Bad` row to `TABLE`: an id, a callable that takes a temporary folder, the
exception, and fragments that the message must contain.
"""

from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import poolbn as pb
from poolbn.errors import DataError, FileError, GraphError, OptionError, PoolbnError
from poolbn.suffstats import GroupStats, stats


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


def truncated_parquet(folder: Path) -> Any:
    frame().to_parquet(folder / "t.parquet")
    whole = (folder / "t.parquet").read_bytes()
    (folder / "t.parquet").write_bytes(whole[: len(whole) // 2])
    return stats(folder / "t.parquet", group="site")


def saved(change: Callable[[bytes], bytes]) -> Callable[[Path], Any]:
    def call(folder: Path) -> Any:
        stats(frame(), group="site").save(folder / "s.stats")
        (folder / "s.stats").write_bytes(change((folder / "s.stats").read_bytes()))
        return GroupStats.load(folder / "s.stats")

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


NAN = float("nan")
CSV = "site,x,y\n"
RAGGED = CSV + "a,1,2\n" * 3 + "a,1,2,3\n"
LATE = CSV + "a,1,2\n" * 30_000 + "a,oops,2\n"
GZ = gzip.compress((CSV + "".join(f"a,{i},{i * i % 977}\n" for i in range(50_000))).encode())
MIXED = frame(x=["1", "2.5", "n/a", "4"])
TWICE = pd.DataFrame([["a", 1.0, 2.0], ["b", 2.0, 3.0]], columns=["site", "x", "x"])
VANISHES = frame(x=[1.0, 2.0, NAN, NAN])
DATES = pd.date_range("2020-01-01", periods=4)
ONE, OTHER = frame(), frame().rename(columns={"y": "z"})

TABLE = [
    # Which data set
    Bad("no group", of(frame(), group=None), DataError, ("group=", "'site'")),
    Bad("no group, reader", lambda f: stats(pa.Table.from_pandas(ONE).to_reader()), DataError,
        ("group=", "dict")),
    Bad("misspelt group", of(frame(), group="sit"), DataError, ("'sit'", "did you mean 'site'")),
    Bad("misspelt group, csv", file("t.csv", CSV + "a,1,2\n", group="sites"), DataError,
        ("'sites'", "t.csv", "did you mean 'site'")),
    Bad("missing data set", of(frame(site=["a", None, "b", "b"])), DataError,
        ("row 2", "'site'", "site 1", 'missing="drop"')),
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
    Bad("text column", of(frame(who=list("pqrs"))), DataError,
        ("'who'", "text", 'columns=["x", "y"]')),
    Bad("text column chosen", of(frame(who=list("pqrs")), columns=["who"]), DataError,
        ("'who'", "leave it out")),
    Bad("numbers as text", of(frame(x=["1", "2", "3", "4"])), DataError,
        ("'x'", "reads as numbers", "convert")),
    Bad("stray text", of(MIXED), DataError, ("'x'", "row 3", "'n/a'")),
    Bad("stray text, polars", of(pl.from_pandas(MIXED)), DataError, ("'x'", "row 3", "'n/a'")),
    Bad("stray text, csv", file("t.csv", CSV + "a,1,2\na,n/a,2\nb,3,4\n"), DataError,
        ("'x'", "row 2", "'n/a'")),
    Bad("stray text late, csv", file("t.csv", LATE), DataError,
        ("'x'", "row 30001", "'oops'", "t.csv")),
    Bad("complex column", of(frame(x=[1j, 2j, 3j, 4j])), DataError, ("'x'", "complex128")),
    Bad("dates", of(frame(x=DATES)), DataError, ("'x'", "datetime64", 'columns=["y"]')),
    Bad("dates, arrow", of(pa.table({"site": ["a"], "x": [datetime.date(2020, 1, 1)]})),
        DataError, ("'x'", "date32")),
    Bad("dict of different columns", lambda f: stats({"a": ONE, "b": OTHER}), DataError,
        ("'b'", "'y'", "'z'", "columns=[...]")),
    Bad("files of different columns",
        files({"a.csv": "x,y\n1,2\n", "b.csv": "x\n1\n"}), DataError, ("b.csv", "'y'")),
    # Which cells
    Bad("NaN", of(frame(x=[1.0, NAN, NAN, 2.0], y=[NAN, 1.0, 1.0, 1.0])), DataError,
        ("3 rows", "row 1 (data set 'a')", "x 2, y 1", 'missing="drop"')),
    Bad("null, polars", of(pl.DataFrame({"site": ["a", "b"], "x": [1, None]})), DataError,
        ("row 2 (data set 'b')", "'x'", "x 1")),
    Bad("empty cell, csv", file("t.csv", CSV + "a,1,2\nb,,2\nb,NA,2\n"), DataError,
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
    Bad("too large", of(frame(x=[1e200, -1e200, 1.0, 2.0])), DataError, ("'x'", "unit")),
    # Which source
    Bad("empty frame", of(frame().iloc[:0]), DataError, ("no rows",)),
    Bad("empty frame in dict", lambda f: stats({"a": ONE[["x"]], "b": ONE[["x"]][:0]}), DataError,
        ("'b'", "no rows")),
    Bad("empty dict", lambda f: stats({}), DataError, ("dict", "empty")),
    Bad("empty list", lambda f: stats([]), DataError, ("list", "empty")),
    Bad("wrong type", lambda f: stats(3.5), DataError, ("float", "data frame")),
    Bad("list of frames", lambda f: stats([ONE, ONE]), DataError, ("list", "dict")),
    Bad("wrong missing", of(frame(), missing="ignore"), OptionError, ("'ignore'", '"drop"')),
    # Files
    Bad("empty file", file("t.csv", ""), DataError, ("t.csv", "empty")),
    Bad("header only", file("t.csv", CSV), DataError, ("t.csv", "no rows")),
    Bad("missing file", lambda f: stats(f / "trial.csv"), DataError, ("trial.csv", "no file")),
    Bad("no match", lambda f: stats(f / "*.csv"), DataError, ("*.csv", "no file matches")),
    Bad("folder", stats, DataError, ("folder", "*.csv")),
    Bad("truncated parquet", truncated_parquet, DataError, ("t.parquet", "cut short")),
    Bad("not parquet", file("t.parquet", "site,x\na,1\n"), DataError,
        ("t.parquet", "another kind")),
    Bad("truncated gz", file("t.csv.gz", GZ[: len(GZ) // 2]), DataError, ("t.csv.gz", "cut short")),
    Bad("not gz", file("t.csv.gz", CSV + "a,1,2\n"), DataError, ("t.csv.gz", "not a gzip file")),
    Bad("not UTF-8", file("t.csv", CSV.encode() + b"M\xfcnchen,1,2\n"), DataError, ("UTF-8",)),
    Bad("unknown ending", file("t.xlsx", "x"), DataError, ("t.xlsx", ".csv", ".parquet")),
    Bad("ragged", file("t.csv", RAGGED), DataError, ("row 4", "4 cells", "3 columns", "t.csv")),
    Bad("same stem", files({"p/s.csv": "x\n1\n", "q/s.csv": "x\n1\n"}), DataError,
        ("2 files", "'s'", "group=")),
    # Statistics
    Bad("add other columns", of_stats(lambda s: s + stats(OTHER, group="site")), DataError,
        ("left lacks 'z'", "right lacks 'y'", "select")),
    Bad("select unknown", of_stats(lambda s: s.select(["x", "yy"])), DataError, ("'yy'", "'y'")),
    Bad("select none", of_stats(lambda s: s.select([])), DataError, ("no columns",)),
    Bad("select twice", of_stats(lambda s: s.select(["x", "x"])), DataError, ("'x'", "2 times")),
    Bad("unknown child", of_stats(lambda s: s.family("xx", [])), DataError, ("'xx'", "'x'")),
    Bad("own parent", of_stats(lambda s: s.family("x", ["x"])), DataError, ("'x'", "own parent")),
    Bad("parent twice", of_stats(lambda s: s.family("x", ["y", "y"])), DataError,
        ("'y'", "2 times")),
    Bad("save dates", lambda f: stats(frame(site=DATES), group="site").save(f / "s"), FileError,
        ("Timestamp", "text")),
    Bad("save nowhere", of_stats(lambda s: s.save("no/such/folder/s")), FileError, ("folder/s",)),
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
    Bad("unknown method", lambda f: pb.Partial(method="rml"), OptionError,
        ("did you mean 'reml'",)),
    Bad("unknown variance", lambda f: pb.Separate(variance="mle"), OptionError,
        ("did you mean 'ml'",)),
    Bad("unknown score", of_stats(lambda s: pb.score(s, [], score="bicc")), OptionError,
        ("did you mean 'bic'",)),
    Bad("bge with partial pooling", of_stats(lambda s: pb.score(s, [], score="bge")), OptionError,
        ("complete pooling", "score='bic'")),
    Bad("bge prior", of_stats(lambda s: pb.BGe(iss_w=2)(s, "y", [])), OptionError,
        ("iss_w > 3", "2")),
    Bad("bge prior mean", of_stats(lambda s: pb.BGe(nu={"x": 0})(s, "y", ["x"])), OptionError,
        ("nu", "'y'")),
    Bad("graph of other nodes", of_stats(lambda s: pb.score(s, [("x", "z")])), GraphError,
        ("x -> z", "'z'", "known are: x, y")),
    Bad("graph with a cycle", of_stats(lambda s: pb.score(s, [("x", "y"), ("y", "x")])),
        GraphError, ("x -> y -> x",)),
    Bad("newer", saved(lambda whole: whole.replace(b" 1 ", b" 2 ", 1)), FileError,
        ("version 2", "update poolbn")),
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
        ("1 arcs into 'y'", "max_parents=0", "allow more")),
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
        GraphError, ("start", "'y' has 1 parents", "max_parents=0")),
    Bad("start lacks a node", learn(start="[x]"), GraphError, ("lacks 'y'",)),
    Bad("exact for many", wide, OptionError, ("22", "30", "pb.HillClimb")),
    Bad("search by name", learn(search="tabu"), OptionError, ("'tabu'", "pb.Tabu()")),
    Bad("search class", learn(search=pb.Tabu), OptionError, ("not a search", "pb.Tabu()")),
    Bad("constraints as a list", learn(constraints=[("x", "y")]), OptionError,
        ("pb.Constraints(",)),
    Bad("tiers of numbers", learn(constraints=pb.Constraints(tiers=[1, 2])), GraphError,
        ("tier 1 is 1", "list of names")),
    Bad("required number", lambda f: pb.Constraints(required=3), GraphError, ("required=3",)),
    Bad("negative seed", lambda f: pb.HillClimb(seed=-1), OptionError, ("seed=-1",)),
    Bad("exact with too few parents", learn(search=pb.Exact(max_parents=0),
        constraints=pb.Constraints(required=[("x", "y")])), GraphError,
        ("1 arcs into 'y'", "max_parents=0")),
    Bad("negative restarts", lambda f: pb.HillClimb(restarts=-1), OptionError, ("restarts=-1",)),
    Bad("broken length", lambda f: pb.Tabu(length=2.5), OptionError, ("length=2.5",)),
    Bad("exact, negative", lambda f: pb.Exact(max_parents=-2), OptionError, ("max_parents=-2",)),
    Bad("group twice", learn(group="site"), DataError, ("leave group= out",)),
    Bad("learn without group", lambda f: pb.learn(frame()), DataError, ("group=", "'site'")),
    Bad("learn from one data set", lambda f: pb.learn({"a": ONE[["x", "y"]]}), DataError,
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
    Bad("newer network", tampered("version", to=2), FileError, ("version 2", "update poolbn")),
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
    Bad("score a text", tampered("score", to="high"), FileError, ("does not hold a network",)),
    Bad("broken trace", tampered("trace", to=[{"kind": "add"}]), FileError,
        ("does not hold a network",)),
    Bad("save network nowhere", lambda f: pb.learn(frame(), group="site", pooling="complete").save(
        f / "no" / "net"), FileError, ("cannot write", "No such file")),
    Bad("save network of dates", lambda f: pb.learn(frame(site=DATES), group="site",
        pooling="complete").save(f / "n"), FileError, ("Timestamp", "text")),
]  # fmt: skip


@pytest.mark.parametrize("bad", TABLE, ids=[bad.id for bad in TABLE])
def test_message_says_where_and_what_to_do(bad: Bad, tmp_path: Path) -> None:
    with pytest.raises(bad.error) as caught:
        bad.call(tmp_path)
    message = str(caught.value)
    assert [part for part in bad.says if part not in message] == [], message
    assert "\n" not in message
