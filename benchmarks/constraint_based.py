"""Distances from the truth, and seconds: searches, tests and probabilities side by side.

The first table is the paper's balanced grid, with partial pooling: networks of each cell have data
sets of 20 and of 50 rows in turn. It goes round the grid, one network of each cell at a time, and
ends after --minutes; --found keeps what was measured, and a later run goes on from there. With
--rules the table is a thin slice of the grid with all rules of PC, with --large N it is about
networks of N nodes, ten data sets of 50 rows.

    python benchmarks/constraint_based.py [--tables K] [--minutes M] [--found FILE] [--results FILE]
    python benchmarks/constraint_based.py --rules [--tables K] [--results FILE]
    python benchmarks/constraint_based.py --large N [--results FILE]
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb

NODES, PARENTS, DATA_SETS = tiny(((10, 20, 50), (1, 2, 4), (2, 5, 10, 20, 50)), ((5,), (1,), (3,)))
ROWS = 20, 50
EXACT = 20  # nodes up to which probabilities of arcs are sums
CELL = ["nodes", "parents", "data_sets"]


def simulated(
    N: int, parents: float, data_sets: int, rows: int, seed: int
) -> tuple[pb.Dag, pb.GroupStats]:
    """A true graph, and data."""
    dag = pb.random_dag(N, parents, seed=seed)
    truth = pb.random_network(dag, data_sets, seed=seed)
    return dag, pb.stats(pb.random_table(truth, rows, seed=seed), group="F")


def distances(N: int, parents: float, data_sets: int, seed: int) -> dict[str, float]:
    """SHD of what each way learns from the true class."""
    dag, stats = simulated(N, parents, data_sets, ROWS[seed % 2], seed)
    found = {
        "hill climbing": pb.learn(stats, preset="paper").dag,
        "PC": pb.PC().pattern(stats).cpdag,
        "hybrid": pb.learn(stats, search=pb.Hybrid(), preset="paper").dag,
    }
    if N <= EXACT:
        found["median graph"] = pb.arc_posterior(stats).median_graph()
    return {name: pb.metrics.shd(graph, dag) for name, graph in found.items()}


def measured(tables: int, minutes: float, keep: Path | None) -> pd.DataFrame:
    """A row for each network, cell by cell."""
    began, rows = time.monotonic(), []
    if keep and keep.exists():
        rows = pd.read_csv(keep).to_dict("records")
    done = {(row["nodes"], row["parents"], row["data_sets"], row["seed"]) for row in rows}
    for seed, N, parents, data_sets in product(range(tables), NODES, PARENTS, DATA_SETS):
        if (N, parents, data_sets, seed) in done:
            continue
        if time.monotonic() - began > 60 * minutes:
            break
        cell = {"nodes": N, "parents": parents, "data_sets": data_sets, "seed": seed}
        rows.append(cell | distances(N, parents, data_sets, seed))
        if keep:
            pd.DataFrame(rows).to_csv(keep, index=False)
    return pd.DataFrame(rows)


def with_error(values: pd.Series) -> str:
    if values.isna().all():
        return "-"
    return f"{values.mean():.1f} ({values.std(ddof=1) / math.sqrt(len(values)):.1f})"


def grid(found: pd.DataFrame) -> list[str]:
    """The lines of the first table: means, standard errors, and differences from hill climbing."""
    ways = [name for name in found.columns if name not in (*CELL, "seed")]
    lines = [
        "| nodes | parents | data sets | networks | " + " | ".join(ways) + " |",
        "| " + "--- | " * (4 + len(ways)),
    ]
    by = [*(["nodes", one] for one in ("parents", "data_sets")), ["nodes"]]
    for cells in by:
        for cell, rows in found.groupby(cells):
            named = dict(zip(cells, cell, strict=True))
            told = [str(named.get(name, "all")) for name in CELL]
            own = [with_error(rows[name]) for name in ways]
            lines.append(f"| {' | '.join([*told, str(len(rows)), *own])} |")
    for N, rows in found.groupby("nodes"):
        own = [with_error(rows[name] - rows[ways[0]]) for name in ways[1:]]
        lines.append(
            f"| {N} | all, minus hill climbing | all | {len(rows)} | | {' | '.join(own)} |"
        )
    return lines


def by_rules(tables: int) -> list[str]:
    """The lines of the table with all rules of PC."""
    rules = ("conservative", "majority", "standard")
    ways = ["hill climbing", *(f"PC, {rule}" for rule in rules), "hybrid"]
    lines = [
        "| nodes | parents | data sets | rows of each | " + " | ".join(ways) + " |",
        "| " + "--- | " * (4 + len(ways)),
    ]
    for (N, parents), data_sets, rows in product(
        tiny(((10, 1), (10, 2), (10, 4), (20, 2)), ((5, 1),)), tiny((5, 20), (5,)), ROWS
    ):
        found = []
        for seed in range(tables):
            dag, stats = simulated(N, parents, data_sets, rows, seed)
            graphs = [pb.learn(stats, preset="paper").dag]
            graphs += [pb.PC(rule=rule).pattern(stats).cpdag for rule in rules]
            graphs += [pb.learn(stats, search=pb.Hybrid(), preset="paper").dag]
            found.append([pb.metrics.shd(graph, dag) for graph in graphs])
        cells = [with_error(column) for _, column in pd.DataFrame(found).items()]
        lines.append(f"| {N} | {parents} | {data_sets} | {rows} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def generated(N: int, data_sets: int = 10, rows: int = 50, seed: int = 1) -> pb.GroupStats:
    """As in the paper, with two parents on average: they explain 85% of the variance."""
    rng = np.random.default_rng(seed)
    arcs = np.triu(rng.random((N, N)) < min(1, 4 / (N - 1)), 1)
    X = np.zeros((data_sets, rows, N))
    for v in range(N):
        pa = np.flatnonzero(arcs[:, v])
        q = len(pa) + 1
        b = rng.normal(2, 1, q) + rng.normal(size=(data_sets, q)) * np.sqrt(rng.chisquare(1, q))
        mean = b[:, :1] + np.einsum("fk,fnk->fn", b[:, 1:], X[:, :, pa])
        sd = np.sqrt(0.15 / 0.85 * mean.var(axis=1)) if len(pa) else np.ones(data_sets)
        X[:, :, v] = mean + rng.normal(size=(data_sets, rows)) * sd[:, None]
    names = [f"X{v}" for v in range(N)]
    return pb.stats({f"g{j}": pd.DataFrame(X[j], columns=names) for j in range(data_sets)})


def large(N: int) -> list[str]:
    """The lines of the second table."""
    stats = generated(N)
    searches = {
        "hill climbing": pb.HillClimb(),
        "hybrid": pb.Hybrid(),
        "hybrid, widen=False": pb.Hybrid(widen=False),
        "PC": pb.PC(),
    }
    for search in searches.values():  # what is compiled or loaded once
        pb.learn(stats.select(stats.names[:4]), search=search, preset="paper")
    lines = ["| search | processor seconds | score | arcs |", "| --- | --- | --- | --- |"]
    for name, search in searches.items():
        began = time.process_time()
        net = pb.learn(stats, search=search, preset="paper")
        seconds = time.process_time() - began
        lines.append(f"| {name} | {seconds:.2f} | {net.score:.0f} | {len(net.dag.arcs)} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--found", type=Path)
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--large", type=int)
    parser.add_argument("--results", type=Path)
    given = parsed(parser, tables=2)
    if given.large:
        lines = large(given.large)
    elif given.rules:
        lines = by_rules(given.tables)
    else:
        lines = grid(measured(given.tables, given.minutes, given.found))
        print("\n".join(lines))
    if given.results:
        given.results.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
