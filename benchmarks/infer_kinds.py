"""How long `predict` of a discrete node takes with all others known: a million rows, 20 nodes.

Half of the nodes are discrete, and the network is learned from rows of 10 data sets, so that
coefficients are uncertain. Probabilities are compared with normalised likelihoods of the levels on
some rows, which take a loop over levels.

Run: python benchmarks/infer_kinds.py [--rows N]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

import numpy as np
from tiny import parsed, tiny

import poolbn as pb

NODES, SETS = tiny((20, 10), (6, 3))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n = parsed(parser, rows=500).rows
    warnings.simplefilter("ignore")
    true = pb.random_network(pb.random_dag(NODES, 2, seed=1), SETS, seed=1, discrete=0.5)
    table = pb.table(pb.random_table(true, 200, seed=1), group="F")
    fits = {c: pb.fit_node(table, c, true.dag.parents(c)) for c in true.dag.nodes}
    net = pb.Network(true.dag, fits, score=0.0, group="F", n=table.n)
    rows = true.sample(n, seed=2)
    print(f"{n:,} rows, {NODES} nodes, {SETS} data sets, {os.cpu_count()} cores")
    for target in (node for node, fit in fits.items() if getattr(fit, "categories", ())):
        for plugin in (False, True):
            start, used = time.perf_counter(), time.process_time()
            found = net.predict(rows, target, plugin=plugin)
            wall, used = time.perf_counter() - start, time.process_time() - used
            some, levels = rows.head(200), list(fits[target].categories)
            log = np.column_stack(
                [net.loglik(some.assign(**{target: x}), rows=True, plugin=plugin) for x in levels]
            )
            p = np.exp(log - log.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            away = np.abs(found[levels].head(200).to_numpy() - p).max()
            children = sum(parent == target for parent, _ in net.dag.arcs)
            print(
                f"{target} ({len(levels)} levels, {len(net.dag.parents(target))} parents, "
                f"{children} children, plugin={plugin}): {wall:.2f} s, {used:.2f} s of processors; "
                f"largest difference {away:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
