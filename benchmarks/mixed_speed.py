"""Time of searches over tables with columns of all kinds.

    python benchmarks/mixed_speed.py

The trial has 25 columns, 8 of them discrete, and 537 complete rows in four clinics. The large table
has 20 columns, half of them discrete, 10 data sets and 100,000 rows.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb


def large(rows: int = 100_000, data_sets: int = 10, seed: int = 1) -> pd.DataFrame:
    """Nodes with up to three parents, every other one discrete, and effects that differ."""
    rng = np.random.default_rng(seed)
    of = rng.integers(data_sets, size=rows)
    made: dict[str, np.ndarray] = {"F": of}
    numbers: list[np.ndarray] = []
    for k in range(tiny(20, 4)):
        eta = rng.normal(0, 0.3, data_sets)[of]
        for x in [x for x in numbers if rng.random() < 2 / len(numbers)][:3]:
            eta = eta + (rng.normal() + rng.normal(0, 0.3, data_sets))[of] * x
        if k % 2:
            up = rng.random(rows) < 1 / (1 + np.exp(-eta))
            made[f"X{k}"] = np.where(up, "yes", "no")
            numbers.append(up.astype(float))
        else:
            made[f"X{k}"] = eta + rng.normal(size=rows)
            numbers.append((made[f"X{k}"] - eta.mean()) / made[f"X{k}"].std())
    return pd.DataFrame(made)


def main() -> None:
    """Print the seconds of each pooling, the first one after kernels are loaded."""
    parsed(argparse.ArgumentParser(description=__doc__))
    warnings.simplefilter("ignore", pb.DataWarning)
    columns = tiny(None, ["clinic", "age", "tobacco", "preterm"])
    rows = pb.datasets.opt()
    trial = pb.table(rows[columns or list(rows)], group="clinic", missing="drop")
    pb.learn(trial, pooling="auto")
    tables = {"trial": (trial, ("complete", "none", "partial", "auto"))}
    tables["large"] = pb.table(large(*tiny((), (500, 3))), group="F"), ("complete", "partial")
    for name, (table, poolings) in tables.items():
        for pooling in poolings:
            times = []
            for _ in range(3 if name == "trial" else 1):
                start = time.perf_counter()
                net = pb.learn(table, pooling=pooling, preset="paper")
                times.append(time.perf_counter() - start)
            fits = sum(move.fits for move in net.trace)
            print(
                f"{name:6} {pooling:9} {min(times):7.2f} s  {len(net.dag.arcs)} arcs, {fits} fits"
            )


if __name__ == "__main__":
    main()
