"""What grows how: rows, columns, data sets, and worker processes. Makes docs/images/scaling.svg.

Seconds are processor time of the whole process, so that other work on the machine matters little;
only those of worker processes are by the clock. The tables are those of benchmarks/search.py.

    python benchmarks/scaling.py [--largest N] [--plot FILE]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from search import generate
from tiny import SMOKE, parsed, tiny

import poolbn as pb
from poolbn.scoring.local import LocalScores
from poolbn.search.problem import Problem

POOLINGS = ("complete", "none", "partial")
Curve = dict[float, float]


def spent(work: Callable[[], object], turns: int = 3) -> float:
    """Seconds of processor time, the least of some turns, or of one that takes long."""
    least = np.inf
    for _ in range(turns):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
        if least > 2:
            break
    return least


def rows(sizes: tuple[int, ...]) -> dict[str, Curve]:
    """Of 20 columns and 10 data sets: reading, and learning from what was read."""
    found: dict[str, Curve] = {"pb.stats": {}, "pb.learn, partial": {}}
    for n in sizes:
        frame = generate(tiny(20, 5), 1, 10, n // 10)
        found["pb.stats"][n] = spent(lambda frame=frame: pb.stats(frame, group="F"))
        stats = pb.stats(frame, group="F")
        found["pb.learn, partial"][n] = spent(lambda stats=stats: pb.learn(stats, preset="paper"))
    return found


def columns(sizes: tuple[int, ...], largest: int) -> dict[str, Curve]:
    """Ten data sets of 100 rows, one parent on average."""
    found: dict[str, Curve] = {pooling: {} for pooling in POOLINGS}
    for N in sizes:
        stats = pb.stats(generate(N, 1, 10, 100), group="F")
        for pooling in POOLINGS:
            if pooling != "partial" or largest >= N:
                found[pooling][N] = spent(
                    lambda s=stats, p=pooling: pb.learn(s, pooling=p, preset="paper")
                )
    return found


def data_sets(sizes: tuple[int, ...]) -> dict[str, Curve]:
    """Of 20 columns, 50 rows each."""
    found: dict[str, Curve] = {pooling: {} for pooling in POOLINGS}
    for F in sizes:
        stats = pb.stats(generate(tiny(20, 5), 1, F, 50), group="F")
        for pooling in POOLINGS:
            found[pooling][F] = spent(
                lambda s=stats, p=pooling: pb.learn(s, pooling=p, preset="paper")
            )
    return found


class Timed(LocalScores):
    """Scores that know how long batches took, which threads or a cluster can share."""

    batches = 0.0

    def _threaded(self, *work):
        start = time.thread_time()
        found = super()._threaded(*work)
        self.batches += time.thread_time() - start
        return found

    def neighbours(self, families, wanted, *, improving_only):
        start = time.thread_time()
        found = super().neighbours(families, wanted, improving_only=improving_only)
        if len(families) > 2:  # the first look; a move changes one node or two
            self.batches += time.thread_time() - start
        return found


def share_in_batches(N: int) -> float:
    """The part of a search under partial pooling that more cores share, from one thread."""
    stats = pb.stats(generate(N, 1, 10, 100), group="F")
    scores = Timed(stats, threads=1)
    start = time.thread_time()
    none = np.zeros((N, N), dtype=bool)
    pb.HillClimb().learn(Problem(scores, pb.Constraints().on(stats.names), none))
    return scores.batches / (time.thread_time() - start)


def workers(numbers: tuple[int, ...], replicates: int) -> dict[int, tuple[float, float]]:
    """A bootstrap over so many worker processes of one thread.

    Seconds by the clock, and of processor time of this process, which no worker shares.
    """
    from distributed import Client

    frame, found = generate(tiny(20, 4), 1, 10, 100), {}
    for k in numbers:
        with (
            Client(
                n_workers=k, threads_per_worker=1, dashboard_address=None, processes=not SMOKE
            ) as client,
            pb.on_cluster(client),
        ):
            pb.bootstrap(frame, group="F", replicates=2 * k)  # workers load the kernels
            start, began = time.perf_counter(), time.process_time()
            pb.bootstrap(frame, group="F", replicates=replicates)
            found[k] = time.perf_counter() - start, time.process_time() - began
    return found


def table(title: str, curves: dict[str, Curve]) -> None:
    print(title)
    for name, curve in curves.items():
        print(f"    {name:20}", *(f"{size:,.0f}: {value:.3g} s  " for size, value in curve.items()))


def plot(file: Path, panels: dict[str, dict[str, Curve]], shares: dict[str, float]) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "poolbn"
    figure = Figure((9, 6.4), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    for ax, (title, curves) in zip(axes, panels.items(), strict=False):
        for name, curve in curves.items():
            ax.loglog(list(curve), list(curve.values()), "o-", label=name)
        sizes = sorted({size for curve in curves.values() for size in curve})
        ax.set(xlabel=title, ylabel="seconds of processor time")
        ax.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        ax.minorticks_off()
    cores = np.arange(1, 33)
    for name, share in shares.items():
        axes[3].plot(cores, 1 / (1 - share + share / cores), label=f"{name}: {100 * share:.1f}%")
    axes[3].set(xlabel="cores, by Amdahl's law", ylabel="times as fast")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend(frameon=False, loc="upper left")
    axes[3].set_ylim(1, 2)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=200, help="columns under partial pooling")
    parser.add_argument("--plot", type=Path)
    options = parsed(parser)
    small = pb.stats(generate(5, 1, 3, 20), group="F")
    for pooling in POOLINGS:
        pb.learn(small, pooling=pooling)  # loads the kernels
    panels = {
        "rows (20 columns, 10 data sets)": rows(tiny((10**4, 10**5, 10**6), (100, 200))),
        "columns (10 data sets of 100 rows)": columns(
            tiny((25, 50, 100, 200, 400), (6,)), options.largest
        ),
        "data sets (20 columns, 50 rows each)": data_sets(tiny((5, 20, 80, 320), (5,))),
    }
    for title, curves in panels.items():
        table(title, curves)
    shares = {f"search, {N} columns": share_in_batches(N) for N in tiny((20, 100, 200), (10,))}
    for name, share in shares.items():
        sped = ", ".join(f"{k}: {1 / (1 - share + share / k):.1f}" for k in (2, 4, 8, 16))
        print(f"{name}: {100 * share:.1f}% in batches; times as fast with cores {sped}")
    if options.plot:
        plot(options.plot, panels, shares)
    frame = generate(tiny(20, 4), 1, 10, 100)
    alone = spent(lambda: pb.bootstrap(frame, group="F", replicates=tiny(100, 4)))
    found = workers(tiny((1, 2, 4), (1,)), tiny(100, 4))
    print(
        f"bootstrap of 100 replicates, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}: "
        f"{alone:.1f} s of processor time here; over worker processes, by the clock"
    )
    for k, (seconds, here) in found.items():
        times = found[1][0] / seconds
        print(f"    {k}: {seconds:.1f} s, {times:.2f} times as fast; {here:.2f} s of it not shared")


if __name__ == "__main__":
    main()
