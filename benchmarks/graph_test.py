"""The size of Fisher's C under a true graph: how often a graph that is true is rejected.

    python benchmarks/graph_test.py --tables 2000

Six columns with seven arcs, whose slopes and levels vary between data sets; all continuous, or half
of them binary. With random slopes, claims have the combined test; where only levels vary, the test
of one coefficient. Sizes are of C, and of all claims one by one.
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from tiny import in_processes, parsed

import poolbn as pb
from poolbn.assess.graphtest import Asked, basis_set, fisher_c

DAG = pb.Dag("[a][b][c|a][d|b:c][e|d][f|a:e]")
BINARY = ("b", "e", "f")
LEVELS = (0.01, 0.05, 0.10)
SLOPE, LEVEL_SD, SLOPE_SD = 0.5, 0.6, 0.3


def table(seed: int, data_sets: int, rows: int, kind: str, random: str) -> pd.DataFrame:
    """Rows of the graph."""
    rng = np.random.default_rng([seed, data_sets, rows, len(kind), len(random)])
    group = np.repeat(np.arange(data_sets), rows)
    made: dict[str, np.ndarray] = {}
    for node in DAG.topological_order():
        value = rng.normal(0, LEVEL_SD, data_sets)[group]
        for parent in DAG.parents(node):
            slope = np.full(data_sets, rng.choice([-1, 1]) * SLOPE)
            if random == "full":
                slope += rng.normal(0, SLOPE_SD, data_sets)
            value = value + slope[group] * made[parent]
        if kind == "mixed" and node in BINARY:
            made[node] = (rng.random(len(group)) < 1 / (1 + np.exp(-1.5 * value))) * 1.0
        else:
            made[node] = value + rng.normal(size=len(group))
    text = {node: np.where(made[node] > 0, "yes", "no") for node in BINARY}
    return pd.DataFrame({"F": group} | made | (text if kind == "mixed" else {}))


def p_values(seed: int, *cell: object) -> list[float]:
    """Of C, and of each claim."""
    data_sets, rows, kind, random = cell
    try:
        data = pb.table(table(seed, data_sets, rows, kind, random), group="F")
    except pb.DataError:  # a level of one row: another table
        return p_values(seed + 10**6, *cell)
    asked = Asked(DAG, data, dict.fromkeys(DAG.nodes, pb.Partial(random=random)), "auto")
    claims = [asked.tested(*each) for each in basis_set(DAG)]
    return [fisher_c(claims).p_value, *(claim.p_value for claim in claims)]


def interval(hits: int, n: int) -> str:
    """In percent, with the interval that sampling leaves."""
    low, high = binomtest(hits, n).proportion_ci(0.95, "wilson")
    return f"{100 * hits / n:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="*", default=[40])
    parser.add_argument("--random", nargs="*", default=["full", "intercept"])
    parser.add_argument("--kinds", nargs="*", default=["continuous", "mixed"])
    options = parsed(parser, tables=2)
    print("| effects vary | columns | data sets x rows | tables | C at 1% | C at 5% | C at 10% |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for random, kind, data_sets, rows in product(
        options.random, options.kinds, (5, 20), options.rows
    ):
        run = partial(one, (data_sets, rows, kind, random))
        found = np.array(
            list(in_processes(run, range(options.tables), options.workers, chunksize=8))
        )
        C, n = found[:, 0], len(found)
        told = " | ".join(interval(int((level > C).sum()), n) for level in LEVELS)
        varies = "slopes and levels" if random == "full" else "levels"
        print(f"| {varies} | {kind} | {data_sets} x {rows} | {n} | {told} |", flush=True)
        each = ", ".join(
            f"{x}-{y} {100 * np.mean(found[:, 1 + k] < 0.05):.1f}"
            for k, (x, y, _) in enumerate(basis_set(DAG))
        )
        assert not math.isnan(C.sum())
        print(f"<!-- claims at 5%: {each} -->", flush=True)


def one(cell: tuple[object, ...], seed: int) -> list[float]:
    """For a pool of processes."""
    return p_values(seed, *cell)


if __name__ == "__main__":
    main()
