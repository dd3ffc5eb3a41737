"""How long `pb.stats` takes for a Parquet file, against pyarrow merely reading it.

And for a wide table in memory, against numpy's product of all its rows.

Each measurement is a process of its own; the ways take turns, so that a busy machine slows all of
them alike; the best of three turns counts. Run: python benchmarks/read.py [--rows N] [--sets F]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tiny import child, parsed, tiny

from poolbn.moments.reading import stats as pb_stats

COLUMNS = 20
ROW_GROUP = 2**20
TURNS = tiny(3, 1)


def write(path: str, rows: int, sets: int) -> None:
    rng = np.random.default_rng(1)
    labels = np.array([f"site {j}" for j in range(sets)])
    schema = pa.schema([("site", pa.string()), *((f"x{i}", pa.float64()) for i in range(COLUMNS))])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, ROW_GROUP):
            size = min(ROW_GROUP, rows - start)
            site = labels[rng.integers(0, sets, size)]
            values = [rng.standard_normal(size) for _ in range(COLUMNS)]
            writer.write_table(pa.table([site, *values], schema=schema), row_group_size=ROW_GROUP)


def read_table(path: str) -> int:
    return int(pq.read_table(path).num_rows)


def iter_batches(path: str) -> int:
    return sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches())


def iter_batches_lean(path: str) -> int:
    file = pq.ParquetFile(path, pre_buffer=False)
    return sum(batch.num_rows for batch in file.iter_batches())


def stats(path: str) -> int:
    return int(pb_stats(path, group="site").n_rows)


WAYS: dict[str, Callable[[str], int]] = {
    "pyarrow read_table": read_table,
    "pyarrow iter_batches": iter_batches,
    "pyarrow iter_batches, pre_buffer=False": iter_batches_lean,
    "pb.stats": stats,
    "pb.stats, not the first call": stats,
}


def wide() -> None:
    """Print the seconds for 60,000 rows of 300 columns in 20 data sets."""
    import pandas as pd  # here, because `measure` should find what a user's first call finds

    values = np.random.default_rng(1).standard_normal(tiny((60_000, 300), (60, 3)))
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])
    frame["site"] = np.arange(len(frame)) % 20

    def best(work: Callable[[], object]) -> float:
        seconds = []
        for _ in range(TURNS):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    ours, product = best(lambda: pb_stats(frame, group="site")), best(lambda: values.T @ values)
    print(f"60,000 rows, 300 columns: pb.stats {ours:.2f} seconds, numpy's product {product:.2f}")


def measure(way: str, path: str) -> dict[str, float]:
    """Seconds and peak memory (MiB) of one way, in this process, which does nothing else."""
    if "not the first" in way:  # pandas, numba and the kernels are loaded then
        pb_stats(pa.table({"site": ["a"], "x": [1.0]}), group="site")
    start = time.perf_counter()
    rows = WAYS[way](path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rows": rows, "seconds": seconds, "peak": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--write", metavar="PATH", help=argparse.SUPPRESS)
    parser.add_argument("--wide", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=2, metavar=("WAY", "PATH"), help=argparse.SUPPRESS)
    options = parsed(parser, rows=2000)
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    if options.wide:
        wide()
        return
    if options.write:
        write(options.write, options.rows, options.sets)
        return
    # Also compiles the kernels, once for all runs.
    print(child(__file__, "--wide"), end="")
    results: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.parquet")
        # In another process: a child's peak memory is never below that of its parent.
        size = ["--rows", str(options.rows), "--sets", str(options.sets)]
        child(__file__, "--write", path, *size)
        print(
            f"{options.rows:,} rows, {COLUMNS} columns, {options.sets} data sets, "
            f"{os.path.getsize(path) / 2**30:.2f} GiB of Parquet, {os.cpu_count()} cores"
        )
        for _ in range(TURNS):
            for way in WAYS:
                results[way].append(json.loads(child(__file__, "--measure", way, path)))
    seconds = {way: min(run["seconds"] for run in runs) for way, runs in results.items()}
    fastest = min(time for way, time in seconds.items() if not way.startswith("pb."))
    print(f"{'':40}{'seconds':>9}{'ratio':>7}{'peak MiB':>10}")
    for way, runs in results.items():
        peak = max(run["peak"] for run in runs)
        print(f"{way:40}{seconds[way]:9.2f}{seconds[way] / fastest:7.2f}{peak:10.0f}")


if __name__ == "__main__":
    main()
