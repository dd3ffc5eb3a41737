"""Do 95% intervals of odds ratios and rate ratios cover 95%, with few data sets?

Each table has one parent, whose effect is 0.7 in the mean and has a standard deviation between data
sets. For each cell: coverage of the population's effect, coverage of those of data sets, and how
often the test of equal effects rejects at 5% (its size where effects are equal, else its power).

A cell has as many tables as asked, or as many as take a minute of processor time, at least 400.

    python benchmarks/mixed_intervals.py [--tables N] [--out results/mixed_intervals.md]
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from tiny import parsed, tiny

import poolbn as pb

MEAN = 0.7
FEWEST, SECONDS = 400, 60  # tables of a cell that takes longer
DATA_SETS, ROWS = (3, 6, 10, 30), (4, 8, 20, 60)
MODELS = ("logistic, continuous parent", "logistic, discrete parent", "table", "count")


def table(model: str, effects: np.ndarray, n: int, rng: np.random.Generator) -> pb.Table:
    """Rows in which the effect of x on y is that of their data set."""
    F = len(effects)
    site = np.repeat(np.arange(F), n)
    continuous = model in (MODELS[0], MODELS[3])
    x = rng.normal(size=F * n) if continuous else rng.integers(0, 2, F * n).astype(float)
    eta = rng.normal(-0.3, 0.5, F)[site] + effects[site] * x
    count = model == MODELS[3]
    y = rng.poisson(np.exp(eta)) if count else rng.random(F * n) < 1 / (1 + np.exp(-eta))
    frame = pd.DataFrame({"site": site.astype(str), "x": x if continuous else x > 0, "y": y})
    return pb.table(frame, group="site", kinds={"y": "count"} if count else None)


def one(model: str, F: int, n: int, sd: float, seed: int) -> tuple[float, float, float]:
    """Whether the population is covered, the share of data sets that is, whether it rejects."""
    rng = np.random.default_rng([seed, F, n, int(10 * sd), MODELS.index(model)])
    effects = rng.normal(MEAN, sd, F)
    pooling = pb.Partial(discrete="table" if model == "table" else "logit")
    try:
        found = pb.fit_node(table(model, effects, n, rng), "y", ["x"], pooling=pooling).effects
    except pb.DataError:  # y or x is constant, and tells of no effect
        return math.nan, math.nan, math.nan
    half = stats.t.ppf(0.975, found.df[0]) * found.se[0]
    known = np.isfinite(found.own_se[:, 0])  # rows may not tell of any effect
    off = np.abs(found.own[:, 0] - effects)[known]
    own = off < stats.norm.ppf(0.975) * found.own_se[known, 0]
    return (
        float(abs(found.effect[0] - MEAN) < half) if np.isfinite(half) else math.nan,
        float(own.mean()) if known.any() else math.nan,
        float(stats.chi2.sf(*found.equal[0]) < 0.05),
    )


def cell(tables: int, *of: object) -> list[tuple[float, float, float]]:
    """What `one` finds in the tables of a cell."""
    begun = time.process_time()
    found: list[tuple[float, float, float]] = []
    while len(found) < tables:
        if len(found) >= FEWEST and time.process_time() - begun > SECONDS:
            break
        found.append(one(*of, seed=len(found)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400, help="of each cell")
    parser.add_argument("--out", type=Path)
    options = parsed(parser, tables=2)
    lines = [
        f"By `benchmarks/mixed_intervals.py`: up to {options.tables} tables a cell. Coverage of "
        "95% intervals, and how often the test of equal effects rejects at 5%, in percent. Tables "
        "in which a column is constant do not count.",
        "",
        "| model | data sets | rows of each | SD between | tables "
        "| population | data sets | rejects |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    cells = product(MODELS, *tiny((DATA_SETS, ROWS, (0.0, 0.5)), ((3,), (20,), (0.5,))))
    for model, F, n, sd in cells:
        found = cell(options.tables, model, F, n, sd)
        shares = " | ".join(f"{100 * share:.1f}" for share in np.nanmean(found, axis=0))
        lines.append(f"| {model} | {F} | {n} | {sd} | {len(found)} | {shares} |")
        print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
