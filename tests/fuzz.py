"""Random damage to all that poolbn reads: no bare exception, no hang, no memory without end.

    python tests/fuzz.py [SECONDS] [SEED]     (make fuzz SECONDS=3600)

Goes round its targets until the time is up. A case that fails is written to fuzz-failures/, with
what it raised. The exit code is the number of kinds of failures, at most 100.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import resource
import shlex
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyreadr
import pyreadstat
from typer.testing import CliRunner

import poolbn as pb
from poolbn.cli.app import app

DATA = Path(__file__).parent / "data"
HANG = 10  # seconds
MEMORY = 1 << 20  # KiB that a run may need
PARTS = [
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b'"', b"'", b",", b";", b"\t",
    b"|", b"#", b"=1+1", b"@", b"nan", b"inf", b"-999", b"1e400", b"9" * 400, b"{", b"}", b"[",
    b"]" * 50, b"null", b"true", b"-", b"\xe2\x80\xae", b"\x1b[2J", b" " * 300, b"\\", b"\\u0000",
    b":", b"0x10",
    b"(" * 60, b" and ", b" or ", b" not ", b"`", b"==", b"<", b"__import__('os')", b"clinic",
    b"age",
]  # fmt: skip


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


def targets(folder: Path) -> dict[str, tuple[bytes, Callable[[bytes], object]]]:
    """For each: what is damaged, and what reads it."""
    trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna().groupby("clinic").head(12)
    net = pb.learn(trial, group="clinic")
    pb.stats(trial, group="clinic").save(folder / "whole.stats")
    gaps = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]]
    pb.stats(gaps, group="clinic", missing="em").patterns.save(folder / "gaps.stats")
    levels = trial.assign(old=trial["age"] > 25, heavy=trial["bmi"] > 30)
    pb.stats(levels, group="clinic").save(folder / "cells.stats", allow_small=True)
    net.save(folder / "whole.json")
    levels = pb.datasets.opt().dropna().groupby("clinic").head(12)
    levels = levels[["clinic", "age", "tobacco", "education", "preterm"]]
    levels.to_csv(folder / "levels.csv", index=False)
    kinds = {"age": "count"}
    pb.learn(levels, group="clinic", kinds=kinds, pooling="none").save(folder / "kinds.json")
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
        "event": (b"age > 25 and (bmi < 30 or not `age` + 2 * bmi >= 70) and clinic == 'KY'", ask),
        **{f"command {k}": (line.encode(), command) for k, line in enumerate(lines)},
    }


def attempt(call: Callable[[bytes], object], data: bytes) -> str:
    """What is wrong with a case; "" for an answer or an error of poolbn."""

    def stop(*_: object) -> None:
        raise Hang

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
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MEMORY:
        return "memory"
    return ""


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
