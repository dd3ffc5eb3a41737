"""Is a network nearer to the truth if it says how uncertain its estimates are?

In the data sets of the paper's study (one network of each kind, one table): the Kullback-Leibler
divergence from the true network, estimates taken for certain, and with predictive distributions.
The second is the first plus the mean difference of log densities of rows from the truth, the data
set known.

    python benchmarks/predictive_kl.py [--N 10 20 50] [--network K] [--out results/predictive_kl.md]
"""

from __future__ import annotations

import argparse
import math
import warnings
from itertools import product
from pathlib import Path

import pandas as pd
from study.study import PAPER, Chunk, Preset, seed_of, table_of, truth
from tiny import parsed, tiny

import poolbn as pb

ROWS = tiny(2000, 100)
GRID = tiny(PAPER, Preset((4,), (1,), (3,), (3,), (10,), networks=1, replicates=1))
POOLINGS = {
    "complete": pb.Complete("unbiased"),
    "none": pb.NoPooling("unbiased"),
    "partial": pb.Partial(),
    "pooled residuals": pb.Partial(residuals="pooled"),
    "separate residuals": pb.Partial(residuals="separate"),
    "auto": pb.Auto(),
}


def measure(chunk: Chunk) -> list[dict[str, object]]:
    """A row for each n_j and pooling."""
    true = truth(chunk)
    new = true.sample(ROWS, seed=seed_of("new", *chunk))
    found = []
    for rows, (name, pooling) in product(GRID.rows, POOLINGS.items()):
        net = pb.learn(table_of(chunk, true, rows, 0), pooling=pooling, preset="paper")
        certain = pb.metrics.kl(true, net)
        try:
            change = net.loglik(new, rows=True, plugin=True) - net.loglik(new, rows=True)
            predictive = certain + float(change.mean())
        except pb.DataError:  # a data set has no more rows than coefficients
            predictive = math.inf
        row = chunk._asdict() | {"rows": rows, "pooling": name}
        found.append(row | {"certain": certain, "predictive": predictive})
    return found


def summary(found: pd.DataFrame) -> str:
    """Medians by scenario and n_j, and in how many tables the second is lower."""
    lines = [
        "| scenario | n_j | pooling | median KL | with predictive distributions | lower in |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    order = {name: i for i, name in enumerate(POOLINGS)}
    for (scenario, rows), part in found.groupby(["scenario", "rows"]):
        for name, some in sorted(part.groupby("pooling"), key=lambda item: order[item[0]]):
            lower = (some["predictive"] < some["certain"]).mean()
            medians = some[["certain", "predictive"]].median()
            lines.append(
                f"| {scenario} | {rows} | {name} | {medians['certain']:.3g} | "
                f"{medians['predictive']:.3g} | {lower:.0%} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--N", type=int, nargs="+", default=list(GRID.N))
    parser.add_argument("--network", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parsed(parser)
    warnings.simplefilter("ignore", pb.DataWarning)
    found = []
    for chunk in GRID.chunks():
        if chunk.N in options.N and chunk.network == options.network:
            found += measure(chunk)
    text = summary(pd.DataFrame(found))
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
