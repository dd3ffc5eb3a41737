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
import pandas as pd

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
        "hybrid, widen=2": pb.Hybrid(widen=2),
        "PC": pb.PC(),
    }
    for search in searches.values():  # what is compiled or loaded once
        pb.learn(stats.select(stats.names[:4]), search=search)
    lines = ["| search | processor seconds | score | arcs |", "| --- | --- | --- | --- |"]
    for name, search in searches.items():
        began = time.process_time()
        net = pb.learn(stats, search=search)
        seconds = time.process_time() - began
        lines.append(f"| {name} | {seconds:.2f} | {net.score:.0f} | {len(net.dag.arcs)} |")
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
