"""Random damage to all that poolbn reads: no bare exception, no hang, no memory without end.

    python tests/fuzz.py [SECONDS] [SEED]     (make fuzz SECONDS=3600)

Beside files and texts these are answers of a web server, URLs, databases of SQLite with odd names
and cells, networks with a right checksum and wrong fields, kept kernels, and odd arguments.

Goes round its targets until the time is up. A case that fails is written to fuzz-failures/, with
what it raised. The exit code is the number of kinds of failures, at most 100.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import json
import random
import re
import resource
import shlex
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import hostile
import pandas as pd
import pyreadr
import pyreadstat
import test_caching
import test_wrong_kinds
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app

DATA = Path(__file__).parent / "data"
HANG = 10  # seconds
MEMORY = 1 << 19  # KiB that a case may need beyond what the process has had
PARTS = [
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b'"', b"'", b",", b";", b"\t",
    b"|", b"#", b"=1+1", b"@", b"nan", b"inf", b"-999", b"1e400", b"9" * 400, b"{", b"}", b"[",
    b"]" * 50, b"null", b"true", b"-", b"\xe2\x80\xae", b"\x1b[2J", b" " * 300, b"\\", b"\\u0000",
    b":", b"0x10",
    b"(" * 60, b" and ", b" or ", b" not ", b"`", b"==", b"<", b"__import__('os')", b"clinic",
    b"age",
]  # fmt: skip


Target = tuple[bytes, Callable[[bytes], object]]  # what is damaged, and what reads it


class Hang(BaseException):
    """A case that took too long."""


def damaged(rng: random.Random, whole: bytes) -> bytes:
    """The bytes after one to five random changes."""
    data = bytearray(whole)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice([0, 1, 1, 2, 8, 64, 1000]))
        kind = rng.randrange(5)
        if kind == 0:
            data[at:end] = b""
        elif kind == 1:
            data[at:at] = rng.choice(PARTS)
        elif kind == 2:
            data[at:end] = rng.choice(PARTS)
        elif kind == 3:
            data[at:end] = rng.randbytes(end - at)
        else:
            data[at:at] = data[at:end] * rng.randint(1, 3)
    return bytes(data)


def formats(folder: Path, rows: pd.DataFrame) -> dict[str, bytes]:
    """The rows in files of all kinds, by the endings of their names."""
    texts = [c for c in rows if not pd.api.types.is_numeric_dtype(rows[c])]
    factors = rows.reset_index(drop=True).astype(dict.fromkeys(texts, "category"))
    plain = rows.reset_index(drop=True).astype(dict.fromkeys(texts, object))
    lines = rows.to_json(orient="records", lines=True).encode()
    made = {
        "tsv": rows.to_csv(index=False, sep="\t", decimal=",").encode("utf-16"),
        "csv": rows.to_csv(index=False, sep=";", decimal=",").encode("latin-1"),
        "csv.gz": gzip.compress(rows.to_csv(index=False).encode()),
        "jsonl": lines,
        "jsonl.gz": gzip.compress(lines),
    }
    binary = ("parquet", "feather", "dta", "sav", "xpt", "rds", "xlsx", "sqlite", "duckdb")
    path = {ending: str(folder / f"whole.{ending}") for ending in binary}
    factors.to_parquet(path["parquet"])
    factors.to_feather(path["feather"], compression="uncompressed")
    factors.to_stata(path["dta"], write_index=False)
    pyreadstat.write_sav(plain, path["sav"])
    pyreadstat.write_xport(plain, path["xpt"], file_format_version=8)
    pyreadr.write_rds(path["rds"], factors)
    rows.to_excel(path["xlsx"], index=False)
    with contextlib.closing(sqlite3.connect(path["sqlite"])) as database:
        rows.to_sql("visits", database, index=False)
    with duckdb.connect(path["duckdb"]) as base:
        base.register("rows", rows)
        base.execute("create table visits as from rows")
    made["sas7bdat"] = gzip.decompress((DATA / "iris.sas7bdat.gz").read_bytes())
    return made | {ending: Path(whole).read_bytes() for ending, whole in path.items()}


MIXED = ["clinic", "age", "tobacco", "education", "preterm"]
SEEDED = b"some bytes"  # of targets that take random choices from what is damaged
CELLS = [
    None,
    0,
    1,
    2.5,
    -1.0,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    1e308,
    "",
    "1",
    "a",
    "\x00",
    b"\xff",
]
VIEWS = [
    "select g, x, y from t where x > y", "select g, 1 as x, y from t", "select * from t, t as u",
    "select * from nowhere", "with recursive r(x) as (select 1 union all select x + 1 from r) "
    "select x, 'a' as g from r limit 5000", "select g, max(x) as x from t group by g",
]  # fmt: skip


def served() -> Callable[[bytes], object]:
    """Reads from a server that answers with what is damaged: a header in a line, then rows."""
    number = itertools.count()
    answers: list[bytes] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + answers[-1])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    where = f"127.0.0.1:{server.server_port}"

    def read(data: bytes) -> object:
        answers[:] = [data]
        ending = ("csv", "csv.gz", "jsonl", "parquet", "")[len(data) % 5]
        return pb.stats(f"http://{where}/{next(number)}.{ending}", group="clinic", missing="drop")

    return read


def elsewhere(folder: Path, rows: pd.DataFrame) -> dict[str, Target]:
    """Answers of a web server, and URLs."""
    body = rows.to_csv(index=False).encode()
    head = b"Content-Length: %d\r\nContent-Type: text/csv\r\n\r\n" % len(body)
    urls = [
        f"http://me:secret@127.0.0.1:9/{quote('a b')}.csv?sig=1#x", "http://[::1]:9/t.sqlite::t",
        f"file://{folder}/t.csv", "odd://a.parquet",
    ]  # fmt: skip
    found: dict[str, Target] = {"web": (head + body, served())}
    return found | {f"URL {k}": (url.encode(), of_url) for k, url in enumerate(urls)}


def of_url(data: bytes) -> object:
    """Reads a URL; none is asked for but what is here."""
    text = data.decode("utf-8", "replace")
    here = re.match(r"(http://(.*@)?(127\.0\.0\.1:9\b|\[)|file:|odd:)", text)
    return pb.stats(text if here else f"file://{text}", group="clinic")


def from_sqlite(folder: Path) -> Callable[[bytes], object]:
    """Makes a database of odd names and cells, and reads all that it has."""
    path = folder / "odd.sqlite"

    def read(data: bytes) -> object:
        rng = random.Random(data)
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        names = [rng.choice([*hostile.NAMES.values(), "x", "y"]) for _ in range(2)]
        with contextlib.closing(sqlite3.connect(path)) as made, contextlib.suppress(sqlite3.Error):
            if rng.random() < 0.3:
                made.execute("pragma journal_mode = wal")
            quoted = ['"' + name.replace('"', '""').replace("\x00", "") + '"' for name in names]
            made.execute(f"create table t (g text, {quoted[0]}, {quoted[1]} real)")
            for k in range(rng.randint(0, 12)):
                cells = [rng.choice(CELLS) if rng.random() < 0.2 else rng.random() for _ in names]
                made.execute("insert into t values (?, ?, ?)", ["ab"[k % 2], *cells])
            if rng.random() < 0.5:
                made.execute(f"create view v as {rng.choice(VIEWS)}")
            made.commit()
        if rng.random() < 0.3:
            path.write_bytes(damaged(rng, path.read_bytes()))
        table = rng.choice(["", "::t", "::v", "::../b.sqlite::t"])
        before = set(folder.iterdir())
        try:
            return str(pb.look(f"{path}{table}", group="g"))
        finally:
            assert set(folder.iterdir()) == before

    return read


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in JSON."""
    for key in content if isinstance(content, dict) else range(min(len(content), 3)):
        yield (*path, key)
        if isinstance(content[key], dict | list):
            yield from places(content[key], (*path, key))


def changed_network(net: pb.Network, rows: pd.DataFrame, file: Path) -> Callable[[bytes], object]:
    """Changes a field of a network without a checksum, as older files have none, and uses it."""
    text = net.to_json()
    wrong = [None, True, -1, 0, 0.5, 10**30, 1e308, "x", "nan", "", [], {}, [[]], [None], {"a": 1}]

    def use(data: bytes) -> object:
        rng, content = random.Random(data), json.loads(text)
        del content["checksum"]
        *above, last = rng.choice(list(places(content)))
        at = content
        for key in above:
            at = at[key]
        value: Any = rng.choice(wrong)
        if type(at[last]) in (int, float) and rng.random() < 0.5:
            value = rng.choice([-at[last], at[last] * 1e10, at[last] + 1, at[last] * 1e-12, 0])
        elif isinstance(at[last], list) and at[last] and rng.random() < 0.6:
            value = rng.choice([at[last][1:], at[last] * 2, at[last][::-1], [at[last]]])
        at[last] = value
        file.write_text(json.dumps(content))
        found, child = pb.load(file), net.nodes[-1]
        found.predict(rows.head(3), child, interval=0.9)
        found.loglik(rows.head(3))
        found.sample(3)
        return found.effects(), found.summary(), found.to_json()

    return use


def of_kernel(folder: Path) -> Target:
    """A kernel that is kept, and what runs it."""
    (folder / "source").mkdir(parents=True)
    (folder / "source" / "tiny.py").write_text(test_caching.KERNEL)
    test_caching.run(folder)
    (kept,) = (folder / "source").rglob("*.nbc")

    def run(data: bytes) -> object:
        kept.write_bytes(data)
        return test_caching.run(folder)

    return kept.read_bytes(), run


def of_arguments(folder: Path) -> Callable[[bytes], object]:
    """Calls something public with an odd argument."""
    folder.mkdir()
    test_wrong_kinds.net().save(folder / "net.json")
    test_wrong_kinds.stats().save(folder / "s.stats")
    calls = [call for call in test_wrong_kinds.calls(folder) if call.name != "on_cluster"]

    def call(data: bytes) -> object:
        rng = random.Random(data)
        chosen = rng.choice(calls)
        argument = rng.choice(list(chosen.given))
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
            chosen(**{argument: hostile.odd(rng.choice(list(hostile.ODD)))})
        return chosen.name

    return call


def targets(folder: Path) -> dict[str, Target]:
    """For each: what is damaged, and what reads it."""
    trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna().groupby("clinic").head(12)
    net = pb.learn(trial, group="clinic")
    pb.stats(trial, group="clinic").save(folder / "whole.stats")
    gaps = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]]
    pb.stats(gaps, group="clinic", missing="em").patterns.save(folder / "gaps.stats")
    levels = trial.assign(old=trial["age"] > 25, heavy=trial["bmi"] > 30)
    pb.stats(levels, group="clinic").save(folder / "cells.stats", allow_small=True)
    net.save(folder / "whole.json")
    levels = pb.datasets.opt().dropna().groupby("clinic").head(12)[MIXED]
    levels.to_csv(folder / "levels.csv", index=False)
    kinds = {"age": "count"}
    mixed = pb.learn(levels, group="clinic", kinds=kinds, pooling="none")
    mixed.save(folder / "kinds.json")
    file = folder / "case"
    (folder / "t.csv").write_text(trial.to_csv(index=False))

    def read_csv(data: bytes) -> object:
        (folder / "case.csv").write_bytes(data)
        return pb.stats(folder / "case.csv", group="clinic", missing="drop")

    def read_stats(data: bytes) -> object:
        file.write_bytes(data)
        return pb.GroupStats.load(file)

    def read_gaps(data: bytes) -> object:
        file.write_bytes(data)
        return pb.PatternStats.load(file).completed()

    def read_cells(data: bytes) -> object:
        file.write_bytes(data)
        found = pb.CellStats.load(file)
        return found.coarsened(2) + found

    def fill_csv(data: bytes) -> object:
        (folder / "case.csv").write_bytes(data)
        return pb.stats(folder / "case.csv", group="clinic", missing="em")

    def read_network(data: bytes) -> object:
        file.write_bytes(data)
        return repr(pb.load(file))

    def read_as(ending: str, then: Callable[[Path], object]) -> Callable[[bytes], object]:
        def read(data: bytes) -> object:
            (folder / f"case.{ending}").write_bytes(data)
            return then(folder / f"case.{ending}")

        return read

    def tabled(path: Path) -> object:
        if path.suffix == ".sas7bdat":
            return pb.table(path, group="Species", missing="drop")
        return pb.table(path, group="clinic", missing="drop", kinds=kinds)

    def looked(path: Path) -> object:
        return str(pb.look(path, group="clinic"))

    def ask(data: bytes) -> object:
        return net.query(data.decode("utf-8", "replace"))

    def command(data: bytes) -> object:
        text = data.decode("utf-8", "replace").replace("\x00", "")
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split()
        words = [word for word in words if not word.startswith("/") and "://" not in word]
        with contextlib.chdir(folder):
            done = CliRunner().invoke(app, words)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        if "poolbn met something unexpected" in done.output:
            raise AssertionError(done.output[-300:])
        return done.exit_code

    lines = [
        "learn t.csv -g clinic --quiet --pooling auto --score bic-h --max-parents 2 --seed 3",
        "stats t.csv --group clinic -o out.stats --allow-small",
        "predict whole.json t.csv --target bmi -o out.csv",
        "classify whole.json t.csv",
        "stats show whole.stats",
        "look levels.csv -g clinic --exclude tobacco --kinds age=count --json",
        "learn levels.csv -g clinic --kinds age=count,preterm=discrete --quiet --pooling complete",
    ]
    return {
        "CSV": ((folder / "t.csv").read_bytes(), read_csv),
        "statistics": ((folder / "whole.stats").read_bytes(), read_stats),
        "cells": ((folder / "cells.stats").read_bytes(), read_cells),
        "patterns": ((folder / "gaps.stats").read_bytes(), read_gaps),
        "gaps": (gaps.groupby("clinic").head(12).to_csv(index=False).encode(), fill_csv),
        "levels": (levels.to_csv(index=False).encode(), read_as("csv", tabled)),
        "look": (levels.to_csv(index=False).encode(), read_as("csv", looked)),
        **{
            f"file .{ending}": (whole, read_as(ending, tabled))
            for ending, whole in formats(folder, levels).items()
        },
        "network": ((folder / "whole.json").read_bytes(), read_network),
        "network of all kinds": ((folder / "kinds.json").read_bytes(), read_network),
        **elsewhere(folder, trial),
        "SQLite": (SEEDED, from_sqlite(folder)),
        "fields": (SEEDED, changed_network(net, trial, folder / "changed.json")),
        "fields of all kinds": (SEEDED, changed_network(mixed, levels, folder / "changed.json")),
        "kernel": of_kernel(folder / "kernel"),
        "arguments": (SEEDED, of_arguments(folder / "arguments")),
        "event": (b"age > 25 and (bmi < 30 or not `age` + 2 * bmi >= 70) and clinic == 'KY'", ask),
        **{f"command {k}": (line.encode(), command) for k, line in enumerate(lines)},
    }


def most() -> int:
    """The most memory that the process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def attempt(call: Callable[[bytes], object], data: bytes) -> str:
    """What is wrong with a case; "" for an answer or an error of poolbn."""

    def stop(*_: object) -> None:
        raise Hang

    before = most()
    # Time of its own, since other programs may be busy; and six times as much on the clock.
    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_PROF, HANG)
    signal.alarm(6 * HANG)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            call(data)
    except pb.PoolbnError:
        pass
    except BaseException as error:  # whatever it is
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return "memory" if most() > before + MEMORY else ""


def main() -> int:
    """Until the time is up."""
    seconds, seed = (float(text) for text in [*sys.argv[1:], "60", "0"][:2])
    rng, end = random.Random(seed), time.monotonic() + seconds
    failures: dict[str, int] = {}
    counts: dict[str, int] = {}
    kept = Path("fuzz-failures")
    with tempfile.TemporaryDirectory() as folder:
        aims = targets(Path(folder))
        while time.monotonic() < end:
            for name, (whole, call) in aims.items():
                data = damaged(rng, whole)
                counts[name] = counts.get(name, 0) + 1
                if wrong := attempt(call, data):
                    kind = f"{name}: {wrong}"
                    if kind not in failures:
                        kept.mkdir(exist_ok=True)
                        (kept / f"{len(failures)}").write_bytes(data)
                        print(f"{kind} ({kept / str(len(failures))})", flush=True)
                    failures[kind] = failures.get(kind, 0) + 1
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    print(f"{len(failures)} kinds of failures: {failures}")
    return min(len(failures), 100)


if __name__ == "__main__":
    sys.exit(main())
