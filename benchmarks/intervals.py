"""Do 95% predictive intervals cover 95%? On new rows from the paper's generator.

Each node is predicted from all others, with the data set of a row known and unknown, by networks
learned from n_j = 100 rows in each data set, and by the true network, which has to cover 95%. The
generator's residual variances differ between data sets, and partial pooling shares one, so coverage
can be right on average and not in each data set: the columns `lowest` and `highest` are over the
data sets of all networks.

    python benchmarks/intervals.py [--networks K] [--rows ROWS] [--interval P]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb

POOLINGS = {
    "partial, pooled residuals": pb.Partial(residuals="pooled"),
    "partial": pb.Partial(),
    "none": pb.NoPooling(),
    "none (unbiased)": pb.NoPooling("unbiased"),
    "auto": pb.Auto(),
    "complete": pb.Complete(),
}
N_J = 100


def inside(net: pb.Network, table: pd.DataFrame, known: bool, interval: float) -> pd.DataFrame:
    """Which cells are inside their intervals, and the data set of each row."""
    given = table if known else table.drop(columns=net.group)
    covered = {}
    for node in net.dag.nodes:
        found = net.predict(given, node, interval=interval)
        covered[node] = (found["lower"] <= table[node]) & (table[node] <= found["upper"])
    return pd.DataFrame(covered).assign(data_set=table[net.group])


def coverages(options: argparse.Namespace, N: int, data_sets: int) -> pd.DataFrame:
    """Coverage by network, data set and node, under each pooling."""
    parts = []
    for seed in range(options.networks):
        dag = pb.random_dag(N, 2, seed=seed)
        true = pb.random_network(dag, data_sets, seed=seed)
        stats = pb.stats(pb.random_table(true, N_J, seed=seed), group=true.group)
        new = pb.random_table(
            true, options.rows // options.networks // data_sets, seed=10**6 + seed
        )
        nets = {
            name: pb.learn(stats, pooling=how, preset="paper") for name, how in POOLINGS.items()
        }
        nets["(the truth)"] = true
        for how, net in nets.items():
            for known in (True, False):
                by_set = inside(net, new, known, options.interval).groupby("data_set").mean()
                long = by_set.reset_index().melt("data_set", var_name="node", value_name="coverage")
                parts.append(long.assign(pooling=how, known=known, network=seed))
    return pd.concat(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000, help="new rows, of all networks")
    parser.add_argument("--interval", type=float, default=0.95)
    options = parsed(parser, networks=1, rows=60)
    started = time.perf_counter()
    rows = []
    for N in tiny((10, 20), (4,)):
        for data_sets in tiny((5, 10, 20), (3,)):
            cells = coverages(options, N, data_sets)
            for (pooling, known), part in cells.groupby(["pooling", "known"], sort=False):
                by_set = part.groupby(["network", "data_set"])["coverage"].mean()
                rows.append(
                    {
                        "N": N,
                        "|F|": data_sets,
                        "pooling": pooling,
                        "data set": "known" if known else "unknown",
                        "coverage": part["coverage"].mean(),
                        "lowest": by_set.min(),
                        "highest": by_set.max(),
                        "within 2 points": np.mean(np.abs(by_set - options.interval) <= 0.02),
                    }
                )
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format="{:.3f}".format))
    low, high = options.interval - 0.02, options.interval + 0.02
    outside = table[(table["coverage"] < low) | (table["coverage"] > high)]
    print(f"{len(outside)} of {len(table)} outside {low:.2f} to {high:.2f}")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
