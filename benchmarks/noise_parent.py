"""How often a continuous parent that says nothing is added to a discrete node.

The node has one to four discrete parents with true effects (`pb.random_network`, `discrete=1`), in
data sets of the sizes below. The column is normal, with a mean of its own in each data set, and
independent of all others. It is added where `pb.score` by partial pooling is higher with it.

    python benchmarks/noise_parent.py --tables 200
"""

from __future__ import annotations

import argparse
import sys
from itertools import count, islice

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb

SHAPES = tiny(((5, 20), (10, 50), (20, 100)), ((5, 20),))  # data sets, rows of each
PARENTS = tiny((1, 2, 3, 4), (1, 2))


def added(number: int, parents: int, shape: tuple[int, int]) -> bool | None:
    """Whether it is, in one table; None where a column has one level only."""
    F, rows = shape
    names = [f"p{k}" for k in range(parents)]
    arcs = [(name, "y") for name in names]
    true = pb.random_network(pb.Dag([*names, "y"], arcs), F, discrete=1, seed=number)
    frame = pb.random_table(true, rows, seed=number)
    if frame[[*names, "y"]].nunique().min() < 2:
        return None
    rng = np.random.default_rng([number, parents])
    means = pd.Series(rng.normal(size=F), index=true.levels)
    frame["x"] = frame["F"].map(means) + rng.normal(size=len(frame))
    table = pb.table(frame, group="F")
    return pb.score(table, [*arcs, ("x", "y")]) > pb.score(table, arcs)


def share(tables: int, parents: int, shape: tuple[int, int]) -> float:
    """Of so many tables."""
    every = (added(number, parents, shape) for number in count())
    return float(np.mean(list(islice((one for one in every if one is not None), tables))))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    options = parsed(parser, tables=1)
    print(f"| data sets | rows | {' | '.join(f'{p} parents' for p in PARENTS)} |")
    print(f"{'| --- ' * (2 + len(PARENTS))}|")
    for shape in SHAPES:
        shares = []
        for parents in PARENTS:
            shares.append(f"{share(options.tables, parents, shape):.1%}")
            print(f"{shape}, {parents} parents: {shares[-1]}", file=sys.stderr, flush=True)
        print(f"| {shape[0]} | {shape[1]} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
