"""Graphs from tables with gaps: `missing="em"` beside mice and bnlearn's structural EM.

The tables of missing.py, the same for all; 5 ways to a graph, and the full data:

- em, drop: `pb.stats(..., missing=)`, partial pooling and BIC.
- mice: 5 imputations by chained regressions ("norm"), with the data set as a factor, or in each
  data set alone ("mice within"). Partial pooling and BIC learn a graph from each; the graph that
  counts has the arcs that most of them have, in their more frequent direction.
- structural.em: bnlearn's, by hill climbing and BIC on the rows of all data sets together.

SHD is to the true graph; "more" is how much higher it is than em's on the same tables. Seconds are
wall time, the median of tables: those to fill in (EM with its reading of the table; mice) and those
to learn. structural.em fills in while it learns. What R lacks is left out, and named; "tables"
counts those that gave a graph.

    python benchmarks/missing_peers.py --tables 20 --out results/missing_peers.md
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from missing import KINDS, SHAPES, drawn
from tiny import lacks, parsed, tiny

import poolbn as pb
from poolbn.assess.resample import averaged_edges, directed_network, directions, strengths

SHARES = tiny((0.15, 0.25), (0.15,))
PEERS = ("mice", "mice within", "structural.em")
IMPUTATIONS = 5
KEYS = ["F", "rows", "kind", "share"]
Cell = tuple[tuple[int, int], float, str, int]
Graph = tuple[pb.Dag, tuple[float, float]]  # and the seconds to fill in, and to learn


def learned(stats: pb.GroupStats) -> pb.Dag:
    """The graph of partial pooling and BIC."""
    return pb.learn(stats, preset="paper").dag


def ours(table: pd.DataFrame, missing: str) -> Graph:
    """The graph from the table as it is."""
    start = time.perf_counter()
    stats = pb.stats(table, group="F", missing=missing)
    read = time.perf_counter()
    found = learned(stats)
    end = time.perf_counter()
    return found, (read - start, end - read) if missing == "em" else (0.0, end - start)


def majority(tables: list[pd.DataFrame]) -> tuple[pb.Dag, float]:
    """The graph of the arcs that most completed tables give, and the seconds it took."""
    start = time.perf_counter()
    graphs = [learned(pb.stats(table, group="F")) for table in tables]
    nodes = graphs[0].nodes
    free = np.zeros((len(nodes), len(nodes)), dtype=bool)
    counts = sum(directions(graph.to_adjacency().astype(bool), free) for graph in graphs)
    edges = averaged_edges(*strengths(counts, len(graphs)), 0.5, weakest_first=False)
    return directed_network(nodes, *edges), time.perf_counter() - start


def seconds_in_r(way: str, files: list[Path]) -> list[float] | str:
    """Seconds that R took for each table, NaN where it failed; or why there are none."""
    if missing := lacks("mice" if way.startswith("mice") else "bnlearn"):
        return missing
    script = Path(__file__).with_suffix(".R")
    done = subprocess.run(
        ["Rscript", str(script), way, *map(str, files)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = [float(line) for line in done.stdout.split()]
    if done.returncode or not np.isfinite(seconds).any():
        return done.stderr.strip().splitlines()[-1]
    return seconds


def theirs(way: str, file: Path, nodes: tuple[str, ...], seconds: float) -> Graph:
    """The graph from what R wrote."""
    if way == "structural.em":
        arcs = pd.read_csv(f"{file}.arcs")
        return pb.Dag(nodes, list(arcs.itertuples(index=False, name=None))), (0.0, seconds)
    tables = [pd.read_csv(f"{file}.{i + 1}") for i in range(IMPUTATIONS)]
    graph, learning = majority(tables)
    return graph, (seconds, learning)


def measure(tables: int, folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """A row for each table and way to a graph, and what is left out."""
    cells = list(product(SHAPES, SHARES, KINDS, range(tables)))
    files = [folder / f"{i}.csv" for i in range(len(cells))]
    made, left_out = [], []

    def add(cell: Cell, way: str, true: pb.Network, find: Callable[[], Graph]) -> None:
        (F, rows), share, kind, number = cell
        at = {"F": F, "rows": rows, "kind": kind, "share": share, "number": number, "way": way}
        try:
            found, (fill, learn) = find()
        except pb.PoolbnError:  # no rows are left of a data set, or mice filled in no values
            return
        made.append(at | {"SHD": pb.metrics.shd(true.dag, found), "fill": fill, "learn": learn})

    ours(drawn(*cells[0])[2], "em")  # loads the kernels
    for cell, file in zip(cells, files, strict=True):
        true, table, gaps, _ = drawn(*cell)
        gaps.to_csv(file, index=False)
        for way, missing, source in (
            ("full", "error", table), ("em", "em", gaps), ("drop", "drop", gaps),
        ):  # fmt: skip
            add(cell, way, true, partial(ours, source, missing))
    for way in PEERS:
        took = seconds_in_r(way, files)
        if isinstance(took, str):
            left_out.append(f"{way} ({took})")
            continue
        for cell, file, seconds in zip(cells, files, took, strict=True):
            true = drawn(*cell)[0]
            if np.isfinite(seconds):
                add(cell, way, true, partial(theirs, way, file, true.dag.nodes, seconds))
    return pd.DataFrame(made), left_out


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One row for each kind of table and way."""
    em = found[found["way"] == "em"].set_index([*KEYS, "number"])["SHD"]
    found = found.join(em.rename("em"), on=[*KEYS, "number"])
    found["more"] = found["SHD"] - found["em"]
    by = found.groupby([*KEYS, "way"])
    made = by["SHD"].agg(SHD="mean", se="sem").join(by["more"].agg(more="mean", se_more="sem"))
    made = made.join(by[["fill", "learn"]].median()).assign(tables=by.size())
    return made.reindex(["full", "em", "drop", *PEERS], level="way").reset_index()


def markdown(made: pd.DataFrame) -> str:
    """The same for the documentation."""
    digits = {"F": "d", "rows": "d", "kind": "s", "share": ".0%", "way": "s", "tables": "d"}
    form = [digits.get(name, ".2f") for name in made.columns]
    names = {"se_more": "se of more", "fill": "s to fill in", "learn": "s to learn"}
    lines = [[names.get(name, name) for name in made.columns], ["---"] * len(form)]
    lines += [
        [format(cell, f) for cell, f in zip(row, form, strict=True)]
        for row in made.itertuples(index=False)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parsed(parser, tables=1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        found, left_out = measure(options.tables, Path(folder))
    text = markdown(summary(found))
    if left_out:
        text += f"\n\nLeft out: {', '.join(left_out)}."
    print(text)
    if options.out:
        options.out.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
