"""Distances from the truth, and seconds: hill climbing, PC and hybrid learning side by side.

The first table is a thin slice of the paper's balanced grid, with partial pooling. With --large N
the second one is about networks of N nodes, ten data sets of 50 rows.

    python benchmarks/constraint_based.py [--tables K] [--large N] [--results FILE]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import poolbn as pb

SEARCHES = {
    "hill climbing": pb.HillClimb(),
    "PC, conservative": pb.PC(rule="conservative"),
    "PC, majority": pb.PC(),
    "PC, standard": pb.PC(rule="standard"),
    "hybrid": pb.Hybrid(),
}


def shds(N: int, parents: float, data_sets: int, rows: int, tables: int) -> dict[str, np.ndarray]:
    """Distances of learned classes from true ones, of each search."""
    found: dict[str, list[int]] = {name: [] for name in SEARCHES}
    for seed in range(tables):
        dag = pb.random_dag(N, parents, seed=seed)
        truth = pb.random_network(dag, data_sets, seed=seed)
        stats = pb.stats(pb.random_table(truth, rows, seed=seed), group="F")
        for name, search in SEARCHES.items():
            if isinstance(search, pb.PC):
                found[name].append(pb.metrics.shd(search.pattern(stats).cpdag, dag))
            else:
                found[name].append(pb.metrics.shd(pb.learn(stats, search=search), dag))
    return {name: np.array(values) for name, values in found.items()}


def grid(tables: int) -> list[str]:
    """The lines of the first table."""
    lines = [
        "| nodes | parents | data sets | rows of each | " + " | ".join(SEARCHES) + " |",
        "| " + "--- | " * (4 + len(SEARCHES)),
    ]
    for N, parents in ((10, 1), (10, 2), (10, 4), (20, 2)):
        for data_sets in (5, 20):
            for rows in (20, 50):
                values = shds(N, parents, data_sets, rows, tables)
                cells = [
                    f"{v.mean():.1f} ({v.std(ddof=1) / np.sqrt(len(v)):.1f})"
                    for v in values.values()
                ]
                cell = f"| {N} | {parents} | {data_sets} | {rows} | {' | '.join(cells)} |"
                print(cell, flush=True)
                lines.append(cell)
    return lines


def large(N: int) -> list[str]:
    """The lines of the second table."""
    dag = pb.random_dag(N, 2, seed=1)
    truth = pb.random_network(dag, 10, seed=1)
    stats = pb.stats(pb.random_table(truth, 50, seed=1), group="F")
    for search in SEARCHES.values():  # what is compiled or loaded once
        pb.learn(stats.select(stats.names[:4]), search=search)
    lines = ["| search | seconds | score | arcs |", "| --- | --- | --- | --- |"]
    for name, search in SEARCHES.items():
        if name in ("PC, conservative", "PC, standard"):
            continue
        began = time.perf_counter()
        net = pb.learn(stats, search=search)
        seconds = time.perf_counter() - began
        lines.append(f"| {name} | {seconds:.1f} | {net.score:.0f} | {len(net.dag.arcs)} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--large", type=int)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    lines = large(given.large) if given.large else grid(given.tables)
    if given.results:
        given.results.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
