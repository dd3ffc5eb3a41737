"""How long statistics of a folder of Parquet take, and how much memory, against the number of rows.

Beside `pb.stats`: DuckDB with the same sums in SQL (counts, means, and all sums of squares and
products, by data set), and pandas' groupby where the rows fit in memory. DuckDB's sums are raw,
which is less work than centred ones, and loses digits where means are far from zero.

Each measurement is a process of its own, which has loaded its libraries before the clock starts;
the ways take turns, and the best turn counts. The files were just written, so that small ones come
from the system's memory and not from the disk.
Run: python benchmarks/stream.py [--rows 100000 1000000 10000000] [--save]
For 200 million rows, 16 GB of disk: python benchmarks/stream.py --rows 200000000
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiny import child, parsed, tiny

# numpy and others are imported where they are used: a child's peak memory is never below its
# parent's, so the parent stays small.
COLUMNS = [f"x{i}" for i in range(10)]
SETS = 20
FILE, ROW_GROUP = 5_000_000, 2**20  # rows
FEWEST = 4  # files
FITS = 10_000_000  # rows that pandas can take
TURNS, LARGE = tiny(3, 1), 50_000_000  # rows from which there is one turn
Result = list[float]  # rows, the mean of the first column of "site 0", its summed scatter


def write(folder: str, rows: int) -> None:
    """Rows in several files, made and written a row group at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    schema = pa.schema([("site", pa.string()), *((name, pa.float64()) for name in COLUMNS)])
    names = pa.array([f"site {j}" for j in range(SETS)])
    centres = rng.normal(0, 3, (SETS, len(COLUMNS)))
    files = max(FEWEST, -(-rows // FILE))
    ends = [rows * k // files for k in range(files + 1)]
    for k in range(files):
        path = os.path.join(folder, f"part-{k:04}.parquet")
        with pq.ParquetWriter(path, schema, use_dictionary=["site"]) as writer:
            for start in range(ends[k], ends[k + 1], ROW_GROUP):
                size = min(ROW_GROUP, ends[k + 1] - start)
                site = rng.integers(0, SETS, size)
                values = [rng.standard_normal(size) + centre[site] for centre in centres.T]
                table = pa.table([names.take(pa.array(site)), *values], schema=schema)
                writer.write_table(table, row_group_size=ROW_GROUP)


def by_poolbn(folder: str) -> Result:
    import poolbn as pb

    found = pb.stats(folder, group="site")
    j = found.levels.index("site 0")
    return [float(found.n_rows), float(found.mean[j, 0]), float(found.scatter[j].sum())]


def by_duckdb(folder: str) -> Result:
    import duckdb
    import numpy as np

    pairs = [(a, b) for i, a in enumerate(COLUMNS) for b in COLUMNS[: i + 1]]
    sums = [f"avg({c})" for c in COLUMNS] + [f"sum({a} * {b})" for a, b in pairs]
    with duckdb.connect() as connection:
        found = connection.execute(
            f"select site, count(*), {', '.join(sums)} from read_parquet('{folder}/*.parquet') "
            "group by site"
        ).fetchall()
    row = next(row for row in found if row[0] == "site 0")
    mean = np.array(row[2 : 2 + len(COLUMNS)])
    raw = np.zeros((len(COLUMNS), len(COLUMNS)))
    raw[np.tril_indices(len(COLUMNS))] = row[2 + len(COLUMNS) :]
    whole = raw + raw.T - np.diag(raw.diagonal())
    centred = whole - row[1] * np.outer(mean, mean)
    return [float(sum(each[1] for each in found)), float(mean[0]), float(centred.sum())]


def by_pandas(folder: str) -> Result:
    import pandas as pd

    frame = pd.read_parquet(folder)
    groups = frame.groupby("site")
    n, mean, cov = groups.size(), groups.mean(), groups.cov()
    scatter = cov.loc["site 0"].to_numpy() * (n["site 0"] - 1)
    return [float(n.sum()), float(mean.loc["site 0", "x0"]), float(scatter.sum())]


WAYS: dict[str, Callable[[str], Result]] = {
    "pb.stats": by_poolbn,
    "DuckDB, SQL": by_duckdb,
    "pandas, groupby": by_pandas,
}


def measure(way: str, folder: str) -> dict[str, Any]:
    """Seconds and peak memory (MiB) of one way, in this process, which does nothing else."""
    with tempfile.TemporaryDirectory() as small:
        write(small, 1000)
        WAYS[way](small)
    start = time.perf_counter()
    result = WAYS[way](folder)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"result": result, "seconds": seconds, "peak": peak}


def agree(results: list[Result]) -> bool:
    """Whether all ways found the same sums."""
    first = results[0]
    return all(
        abs(a - b) <= 1e-6 * max(1.0, abs(b))
        for r in results
        for a, b in zip(r, first, strict=True)
    )


def compare(rows: int, where: str | None) -> list[list[str]]:
    """Lines of the table for so many rows."""
    with tempfile.TemporaryDirectory(dir=where) as folder:
        child(__file__, "--write", folder, str(rows))
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        ways = [way for way in WAYS if way != "pandas, groupby" or rows <= FITS]
        runs: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
        for _ in range(1 if rows >= LARGE else TURNS):
            for way in ways:
                runs[way].append(json.loads(child(__file__, "--measure", way, folder)))
    if not agree([run["result"] for each in runs.values() for run in each]):
        raise SystemExit(f"the sums differ: {runs}")
    ours = min(run["seconds"] for run in runs["pb.stats"])
    lines = []
    for way, each in runs.items():
        seconds, peak = min(run["seconds"] for run in each), max(run["peak"] for run in each)
        lines.append(
            [
                f"{rows:,}", f"{size / 2**30:.2f}", way, f"{seconds:.2f}",
                f"{rows / seconds / 1e6:.1f}", f"{seconds / ours:.2f}", f"{peak:.0f}",
            ]
        )  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--folder", help="where to write the rows; the system's temporary folder")
    parser.add_argument("--save", action="store_true", help="also write stream.md beside this file")
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parsed(parser, rows=[200])
    if options.write:
        write(options.write[0], int(options.write[1]))
        return
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    head = ["rows", "GiB", "way", "seconds", "million rows/s", "time / pb.stats", "peak MiB"]
    table = [head, ["---:", "---:", "---", *["---:"] * 4]]
    for line in table:
        print("| " + " | ".join(line) + " |")
    for rows in options.rows:
        for line in compare(rows, options.folder):
            print("| " + " | ".join(line) + " |", flush=True)
            table.append(line)
    if options.save:
        text = "\n".join("| " + " | ".join(line) + " |" for line in table)
        what = f"{len(COLUMNS)} columns, {SETS} data sets, {os.cpu_count()} cores."
        Path(__file__).with_suffix(".md").write_text(f"{what}\n\n{text}\n")


if __name__ == "__main__":
    main()
