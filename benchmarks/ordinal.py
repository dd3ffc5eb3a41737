"""Ordinal columns: distances to the true graph, and coverage of odds ratios.

Graphs: networks of `pb.random_network(ordinal=...)` with 8 nodes, learned with ordinal columns as
they are, as levels without an order, and as numbers. Coverage: 95% intervals of an odds ratio of a
higher one of four levels, log odds ratios N(0.7, 0.4^2) and levels N(0, 0.6^2) in data sets of 40
rows.

    python benchmarks/ordinal.py --tables 5 --fits 250
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.stats import t as student
from tiny import parsed, tiny

import poolbn as pb

CELLS = tiny([(F, n, share) for F, n in ((5, 50), (10, 50), (10, 200)) for share in (0.3, 0.6)],
             [(3, 40, 0.3)])  # fmt: skip
NODES = tiny(8, 3)
KINDS = {"ordinal": "ordinal", "levels": "discrete", "numbers": "continuous"}
SETS = tiny((4, 10, 30), (4,))


def distances(number: int, F: int, rows: int, share: float) -> list[int]:
    """Structural Hamming distances to the true graph, one for each of `KINDS`."""
    dag = pb.random_dag(NODES, min(2.0, NODES / 2), seed=number)
    true = pb.random_network(dag, F, ordinal=share, seed=number)
    names = [node for node in dag.nodes if true.fits[node].kind == "ordinal"]
    frame = pb.random_table(true, rows, seed=number)
    found = []
    for kind in KINDS.values():
        as_numbers = dict.fromkeys(names, float) if kind == "continuous" else {}
        table = pb.table(frame.astype(as_numbers), group="F", kinds=dict.fromkeys(names, kind))
        found.append(pb.metrics.shd(pb.learn(table), dag))
    return found


def covered(number: int, F: int, rows: int = 40) -> tuple[bool, float]:
    """Whether the population's effect is in its interval, and the share of data sets' that are."""
    rng = np.random.default_rng([F, number])
    site, x = np.repeat(np.arange(F), rows), rng.normal(size=F * rows)
    slope, level = rng.normal(0.7, 0.4, F), rng.normal(0, 0.6, F)
    y = np.digitize(slope[site] * x + level[site] + rng.logistic(size=F * rows), [-1.2, 0.2, 1.5])
    frame = pd.DataFrame({"site": site, "x": x, "y": y})
    table = pb.table(frame, group="site", kinds={"y": "ordinal"})
    (term,) = pb.fit_node(table, "y", ["x"]).terms("x")
    own = np.abs(term.own - slope) < student.ppf(0.975, term.own_df) * term.own_se
    reach = student.ppf(0.975, term.df) * term.se
    return bool(abs(term.effect - 0.7) < reach), float(own.mean())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--fits", type=int, default=250)
    options = parsed(parser, tables=1, fits=2)
    warnings.simplefilter("ignore", pb.DataWarning)
    print(f"| data sets | rows | ordinal | {' | '.join(KINDS)} |\n{'| --- ' * 6}|")
    for F, rows, share in CELLS:
        every = [distances(number, F, rows, share) for number in range(options.tables)]
        mean = " | ".join(f"{value:.2f}" for value in np.mean(every, axis=0))
        print(f"| {F} | {rows} | {share:.0%} | {mean} |", flush=True)
    print("\n| data sets | population | in data sets |\n| --- | --- | --- |")
    for F in SETS:
        shares = np.mean([covered(number, F) for number in range(options.fits)], axis=0)
        print(f"| {F} | {shares[0]:.1%} | {shares[1]:.1%} |", flush=True)


if __name__ == "__main__":
    main()
