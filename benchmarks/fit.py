"""Milliseconds for one mixed-effects fit: poolbn, statsmodels, and lme4 where R is there.

All in one run on one machine, one thread each; the median over a few tables in each cell of a grid
of p parents and |F| data sets, with interior optima (every coefficient varies between data sets)
and boundary optima (none does, or only one direction). Peers are called as a user calls them, on
rows; poolbn fits from statistics, as a search does.

    python benchmarks/fit.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from importlib.util import find_spec

import numpy as np
import pandas as pd
from tiny import lacks, parsed, tiny

import poolbn as pb
from poolbn.scoring.local import LocalScores

R_SCRIPT = """
suppressMessages(library(lme4))
for (f in commandArgs(TRUE)) {
  d <- read.csv(f); x <- paste(c("1", setdiff(names(d), c("y", "F"))), collapse = " + ")
  form <- as.formula(paste0("y ~ ", x, " + (", x, " | F)"))
  fit <- function() suppressWarnings(suppressMessages(lmer(form, d, REML = FALSE)))
  m <- fit(); t <- system.time(m <- fit())[["elapsed"]]
  if (t < 1) t <- median(c(t, replicate(4, system.time(fit())[["elapsed"]])))
  cat(sprintf("%.6g %.12g\\n", 1000 * t, as.numeric(logLik(m))))
}
"""


def simulate(seed: int, p: int, data_sets: int, interior: bool, rows: int = 50) -> pd.DataFrame:
    """Coefficients vary in all directions, or, every other table, in one direction or none."""
    rng = np.random.default_rng(seed)
    q = p + 1
    codes = np.repeat(np.arange(data_sets), rows)
    Z = np.column_stack([np.ones(len(codes)), rng.normal(size=(len(codes), p))])
    if interior:
        b = rng.normal(size=(data_sets, q)) @ (0.3 * rng.normal(size=(q, q)) + 0.5 * np.eye(q))
    else:
        b = rng.normal(size=(data_sets, 1)) * rng.normal(size=q) * 0.5 * (seed % 2)
    y = ((2 + b[codes]) * Z).sum(axis=1) + rng.normal(size=len(codes))
    frame = pd.DataFrame(Z[:, 1:], columns=[f"x{k + 1}" for k in range(p)])
    return frame.assign(y=y, F=[f"g{j:02d}" for j in codes])


def time_poolbn(frame: pd.DataFrame, repeats: int = 20) -> tuple[float, float]:
    stats = pb.stats(frame, group="F")
    parents = tuple(stats.names.index(name) for name in frame if name.startswith("x"))
    family = (stats.names.index("y"), parents)
    best = np.inf
    for _ in range(tiny(5, 1)):
        fresh = [LocalScores(stats, pooling="partial", score="loglik") for _ in range(repeats)]
        start = time.perf_counter()
        found = [scores([family]) for scores in fresh]
        best = min(best, time.perf_counter() - start)
    return 1000 * best / repeats, float(found[0][0])


def time_statsmodels(frame: pd.DataFrame) -> tuple[float, float]:
    import statsmodels.formula.api as smf

    right = " + ".join(["1", *(name for name in frame if name.startswith("x"))])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = smf.mixedlm(f"y ~ {right}", frame, groups="F", re_formula=f"~ {right}")
            loglik = float(model.fit(reml=False).llf)
        except (np.linalg.LinAlgError, ValueError):
            loglik = -np.inf
    return 1000 * (time.perf_counter() - start), loglik


def time_lme4(frames: list[pd.DataFrame]) -> list[tuple[float, float]] | None:
    if missing := lacks("lme4"):
        print(f"lme4 left out: {missing}")
        return None
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "time.R"
        script.write_text(R_SCRIPT)
        files = []
        for i, frame in enumerate(frames):
            files.append(Path(folder) / f"{i}.csv")
            frame.to_csv(files[-1], index=False)
        done = subprocess.run(
            ["Rscript", str(script), *map(str, files)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        print(f"lme4 left out: {done.stderr.strip().splitlines()[-1]}")
        return None
    return [(float(a), float(b)) for a, b in (line.split() for line in done.stdout.splitlines())]


def threads() -> None:
    """One thread against two on a batch, interleaved, best of several."""
    stats = pb.stats(simulate(1, 9, 50, interior=True), group="F")
    families = [
        (child, tuple(p for p in range(10) if mask >> p & 1))
        for child in range(10)
        for mask in range(1024)
        if mask.bit_count() <= tiny(4, 1) and not mask >> child & 1
    ]
    best = {1: np.inf, 2: np.inf}
    for _ in range(5):
        for count, before in best.items():
            start = time.perf_counter()
            LocalScores(stats, threads=count)(families)
            best[count] = min(before, time.perf_counter() - start)
    print(
        f"\n{len(families)} families: {best[1]:.3f} s with one thread, {best[2]:.3f} s with two: "
        f"{best[1] / best[2]:.2f} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one table for each cell, p up to 2")
    parser.add_argument("--json", type=Path, help="also write the table here")
    options = parsed(parser, quick=True)
    tables = 1 if options.quick else 2
    cells = [
        (p, data_sets, interior)
        for p in tiny((0, 1, 2) if options.quick else (0, 1, 2, 4, 6), (1,))
        for data_sets in tiny((5, 20, 50), (5,))
        for interior in (True, False)
    ]
    frames = {
        cell: [simulate(1 + 100 * c + t, *cell) for t in range(tables)]
        for c, cell in enumerate(cells)
    }
    flat = [frame for cell in cells for frame in frames[cell]]
    lme4 = time_lme4(flat)
    if not find_spec("statsmodels"):
        print("statsmodels left out: it is not installed")
    rows = []
    for c, (p, data_sets, interior) in enumerate(cells):
        ours = [time_poolbn(frame) for frame in frames[cells[c]]]
        theirs = {}
        if find_spec("statsmodels"):
            theirs["statsmodels"] = [time_statsmodels(frame) for frame in frames[cells[c]]]
        if lme4 is not None:
            theirs["lme4"] = lme4[c * tables : (c + 1) * tables]
        row = {"p": p, "F": data_sets, "optimum": "interior" if interior else "boundary"}
        row["poolbn_ms"] = np.median([ms for ms, _ in ours])
        for peer, results in theirs.items():
            row[f"{peer}_ms"] = np.median([ms for ms, _ in results])
            row[f"{peer}_ratio"] = np.median(
                [b / a for (a, _), (b, _) in zip(ours, results, strict=True)]
            )
            row[f"{peer}_gap"] = max(a - b for (_, a), (_, b) in zip(results, ours, strict=True))
        rows.append(row)
    table = pd.DataFrame(rows)
    print("ratio: times faster; gap: log-likelihood by which the peer is higher (at most)")
    print(table.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
    for peer in theirs:
        ratio = table[f"{peer}_ratio"]
        print(f"{peer}: median {ratio.median():.0f} times, slowest cell {ratio.min():.0f} times")
    threads()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
