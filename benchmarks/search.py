"""Seconds to learn a network, against bnlearn; time and memory as networks grow.

Seconds are processor time, of all threads, so that other work on the machine matters little.

The tables in benchmarks/data (N = 10 and 50, ten data sets of 50 rows, two parents on average) are
those on which bnlearn's times were recorded: bnlearn 4.9, and lme4 1.1 as its score, on one core of
the same kind of machine. The table of N = 100 is another one of the same kind than the recorded
one, which is not there. Where R with lme4 is there, it fits in this run each family that a search
without bounds needs, as bnlearn's does, once; bnlearn fits some of them more than once.
bnlearn's times are of hc alone; ours are of the search, and of pb.learn with its final fits.

    python benchmarks/search.py [--largest N] [--wide N] [--plot FILE]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from tiny import lacks, parsed, tiny

import poolbn as pb
from poolbn.learning import as_plan
from poolbn.moments.standardised import Family
from poolbn.scoring.local import LocalScores
from poolbn.search.problem import Problem

DATA = Path(__file__).parent / "data"
BNLEARN_LME4_S, BNLEARN_CALLS = 24.8, 320  # recorded: hc with lme4 as score, n10.csv
# Recorded: hc, by nodes.
BNLEARN_S = {"complete": {50: 0.903, 100: 11.46}, "none": {50: 0.211, 100: 0.859}}
LEAST_SQUARES = {"complete": pb.Complete("unbiased"), "none": pb.NoPooling("unbiased")}
R_SCRIPT = """
suppressMessages(library(lme4)); a <- commandArgs(TRUE); d <- read.csv(a[1]); t <- 0
for (f in readLines(a[2])) t <- t + sum(system.time(suppressWarnings(suppressMessages(
  lmer(as.formula(f), d, REML = FALSE, control = lmerControl(calc.derivs = FALSE)))))[1:2])
cat(t)
"""


def generate(N: int, parents: float, data_sets: int, rows: int, seed: int = 1) -> pd.DataFrame:
    """As in the paper: coefficients vary between data sets, parents explain 85% of the variance."""
    rng = np.random.default_rng(seed)
    arcs = np.triu(rng.random((N, N)) < min(1, 2 * parents / (N - 1)), 1)
    X = np.zeros((data_sets, rows, N))
    for v in range(N):
        pa = np.flatnonzero(arcs[:, v])
        q = len(pa) + 1
        b = rng.normal(2, 1, q) + rng.normal(size=(data_sets, q)) * np.sqrt(rng.chisquare(1, q))
        mean = b[:, :1] + np.einsum("fk,fnk->fn", b[:, 1:], X[:, :, pa])
        sd = np.sqrt(0.15 / 0.85 * mean.var(axis=1)) if len(pa) else np.ones(data_sets)
        X[:, :, v] = mean + rng.normal(size=(data_sets, rows)) * sd[:, None]
    frame = pd.DataFrame(X.reshape(-1, N), columns=[f"X{v}" for v in range(N)])
    return frame.assign(F=np.repeat([f"g{j}" for j in range(data_sets)], rows))


def timed(stats: pb.GroupStats, pooling: object, turns: int = 5) -> tuple[float, pb.Network]:
    """Processor seconds, of all threads."""
    best = np.inf
    for _ in range(turns):
        start = time.process_time()
        net = pb.learn(stats, pooling=pooling, preset="paper")
        best = min(best, time.process_time() - start)
    return best, net


def both(stats: pb.GroupStats, pooling: object, turns: int) -> tuple[float, float, pb.Network]:
    """Processor seconds of a search, and of pb.learn; small searches run in one thread."""
    plan, least = as_plan(pooling), [np.inf, np.inf]
    for _ in range(turns):
        for k, work in enumerate((partial(plan.found, stats), partial(pb.learn, stats))):
            start = time.process_time()
            made = work() if k == 0 else work(pooling=pooling)
            least[k] = min(least[k], time.process_time() - start)
    return least[0], least[1], made


def wide(N: int) -> None:
    """Complete and no pooling of many columns."""
    stats = pb.stats(generate(N, 2, 10, 50), group="F")
    for name, pooling in LEAST_SQUARES.items():
        searched, ours, net = both(stats, pooling, 1)
        print(
            f"{name} pooling, N = {N}, {len(net.dag.arcs)} arcs, {len(net.trace)} moves: "
            f"{searched:.1f} s, with final fits {ours:.1f} s of processor time"
        )


def bootstrap() -> None:
    """The numeric columns of the trial."""
    trial = pb.datasets.opt(kind="continuous")
    spent = [np.inf, np.inf]
    rows = trial.dropna()  # without a warning of rows that are lost
    for _ in range(3):
        start, began = time.perf_counter(), time.process_time()
        pb.bootstrap(rows, group="clinic", replicates=tiny(200, 2))
        spent = [
            min(spent[0], time.perf_counter() - start),
            min(spent[1], time.process_time() - began),
        ]
    print(
        f"bootstrap, 200 replicates of the trial's {trial.shape[1] - 1} numeric columns: "
        f"{spent[0]:.2f} s, {spent[1]:.2f} s of processor time"
    )


class Exact(LocalScores):
    """Scores that spare no fit."""

    def upper_bounds(self, families: Sequence[Family]) -> tuple[np.ndarray, np.ndarray]:
        return self(families), np.ones(len(families), dtype=bool)

    def _at_once(
        self, families: Sequence[Family], candidates: np.ndarray, improving_only: bool
    ) -> None:
        return None


class Asked(Exact):
    """And that remember which families were asked for."""

    families: set[Family]

    def __call__(self, families: Sequence[Family]) -> np.ndarray:
        self.families |= set(families)
        return super().__call__(families)


def lme4_seconds(frame: pd.DataFrame, stats: pb.GroupStats) -> tuple[int, float | None]:
    """The families that a search without bounds needs, and what lme4 takes for them."""
    scores = Asked(stats)
    scores.families = set()
    N = len(stats.names)
    start = np.zeros((N, N), dtype=bool)
    pb.HillClimb().learn(Problem(scores, pb.Constraints().on(stats.names), start))
    formulas = []
    for child, parents in sorted(scores.families):
        x = " + ".join(["1", *(stats.names[p] for p in parents)])
        formulas.append(f"{stats.names[child]} ~ {x} + ({x} | F)")
    if missing := lacks("lme4"):
        print(f"lme4 left out: {missing}")
        return len(formulas), None
    formulas = formulas[: tiny(None, 2)]
    with tempfile.TemporaryDirectory() as folder:
        script, table, list_ = (Path(folder) / name for name in ("t.R", "d.csv", "f.txt"))
        script.write_text(R_SCRIPT)
        frame.to_csv(table, index=False)
        list_.write_text("\n".join(formulas) + "\n")
        done = subprocess.run(
            ["Rscript", str(script), str(table), str(list_)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return len(formulas), float(done.stdout) if done.returncode == 0 else None


def peers() -> None:
    frame = pd.read_csv(DATA / "n10.csv")[tiny(slice(None), slice(0, 200))]
    stats = pb.stats(frame, group="F")
    searched, ours, net = both(stats, "partial", tiny(30, 1))
    print(
        f"partial pooling, N = 10, |F| = 10, n_j = 50, {len(net.dag.arcs)} arcs: "
        f"{1000 * searched:.1f} ms, with final fits {1000 * ours:.1f} ms; bnlearn + lme4 "
        f"{BNLEARN_LME4_S} s (recorded): {BNLEARN_LME4_S / searched:.0f} and "
        f"{BNLEARN_LME4_S / ours:.0f} times"
    )
    families, theirs = lme4_seconds(frame, stats)
    if theirs is not None:
        each = theirs / families
        print(
            f"    lme4 in this run: {1000 * each:.0f} ms for each of {families} families, "
            f"{theirs / searched:.0f} and {theirs / ours:.0f} times; with bnlearn's "
            f"{BNLEARN_CALLS} fits {BNLEARN_CALLS * each / searched:.0f} and "
            f"{BNLEARN_CALLS * each / ours:.0f} times"
        )
    for N in tiny((50, 100), (50,)):
        source = DATA / "n50.csv" if N == 50 else generate(100, 2, 10, 50)
        stats = pb.stats(source, group="F")
        for name, pooling in LEAST_SQUARES.items():
            searched, ours, net = both(stats, pooling, tiny(10, 1))
            theirs = BNLEARN_S[name][N]
            print(
                f"{name} pooling, N = {N}, {len(net.dag.arcs)} arcs: {searched:.4f} s, with final "
                f"fits {ours:.4f} s; bnlearn {theirs:.3f} s (recorded): {theirs / searched:.1f} "
                f"and {theirs / ours:.1f} times"
            )
    for rows in tiny((10, 50), (10,)):
        ours, net = timed(
            pb.stats(generate(tiny(50, 6), 4, tiny(50, 5), rows), group="F"), "partial", 1
        )
        print(
            f"partial pooling, N = 50, 4 parents, |F| = 50, n_j = {rows}: {ours:.2f} s, "
            f"{sum(move.fits for move in net.trace)} fits"
        )


def drawn(N: int, data_sets: int, rows: int) -> pb.GroupStats:
    """Statistics of so many rows of a random network, drawn themselves: no rows are needed."""
    from scipy.stats import wishart

    rng = np.random.default_rng(1)
    arcs = np.triu(rng.random((N, N)) < 4 / N, 1)
    slopes = np.where(arcs, rng.normal(1, 0.3, (N, N)), 0.0)
    mean, scatter = np.empty((data_sets, N)), np.empty((data_sets, N, N))
    for j in range(data_sets):
        B = slopes * (1 + rng.normal(0, 0.3, (N, N)))
        way = np.linalg.inv(np.eye(N) - B.T)
        mean[j] = way @ (rng.normal(size=N) + rng.normal(size=N) / np.sqrt(rows))
        scatter[j] = way @ wishart.rvs(rows - 1, np.eye(N), random_state=rng) @ way.T
        scatter[j] = (scatter[j] + scatter[j].T) / 2
    n = np.full(data_sets, rows)
    levels = tuple(f"g{j}" for j in range(data_sets))
    names = tuple(f"X{v}" for v in range(N))
    return pb.GroupStats(names, levels, n, mean, scatter, np.zeros_like(n))


def rows_do_not_matter() -> None:
    """The same search from statistics of 1e3 and 1e7 rows each.

    The order of the nodes is given, and no bound spares a fit: they spare more where rows are many.
    """
    N = tiny(20, 5)
    none = np.zeros((N, N), dtype=bool)
    for rows in (10**3, 10**7):
        stats = drawn(N, 10, rows)
        order = pb.Constraints(tiers=[[name] for name in stats.names]).on(stats.names)
        seconds = np.inf
        for _ in range(tiny(5, 1)):
            start = time.perf_counter()
            found = pb.HillClimb().learn(Problem(scores := Exact(stats), order, none))
            seconds = min(seconds, time.perf_counter() - start)
        print(
            f"N = 20, n_j = {rows:,}: {seconds:.3f} s, {found.arcs.sum()} arcs, "
            f"{scores.made} fits, {1e6 * seconds / scores.made:.0f} us each"
        )


def growth(largest: int, plot: Path | None) -> None:
    rows = []
    for N in (10, 20, 50, 100, 200, 500, 1000):
        if largest >= N:
            stats = pb.stats(generate(N, 1, 10, 100), group="F")
            seconds, net = timed(stats, "partial", 1)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            rows.append((N, seconds, len(net.dag.arcs), sum(m.fits for m in net.trace), peak))
            print("N = {:4d}: {:8.2f} s, {:5d} arcs, {:8d} fits, peak {:.0f} MiB".format(*rows[-1]))
    if plot:
        from matplotlib.figure import Figure

        axes = (figure := Figure((6, 4), layout="constrained")).subplots()
        axes.loglog([r[0] for r in rows], [r[1] for r in rows], "o-")
        axes.set(xlabel="nodes", ylabel="seconds", title="partial pooling, |F| = 10, n_j = 100")
        axes.grid(alpha=0.3)
        figure.savefig(plot)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=200, help="nodes, partial pooling")
    parser.add_argument("--wide", type=int, default=500, help="nodes, complete and no pooling")
    parser.add_argument("--plot", type=Path)
    options = parsed(parser, largest=10, wide=12)
    pb.learn(pb.stats(generate(5, 1, 3, 20), group="F"), pooling="auto")  # compile
    peers()
    bootstrap()
    wide(options.wide)
    rows_do_not_matter()
    growth(options.largest, options.plot)


if __name__ == "__main__":
    main()
