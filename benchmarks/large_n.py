"""Seconds and memory to learn large networks, from N = 100 to 2000 nodes, in one plot.

Partial pooling of |F| = 10 data sets of 100 rows, one parent on average; each size is a process of
its own, so that its peak memory is its own. The statistics alone take 8 |F| N^2 bytes.

    python benchmarks/large_n.py [--nodes 100 200 500 1000 2000] [--plot FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

from tiny import child, parsed

DATA_SETS, ROWS = 10, 100


def measure(N: int) -> None:
    """Learn one network; prints seconds, MiB before and at the peak, arcs and fits as JSON."""
    from search import generate

    import poolbn as pb

    stats = pb.stats(generate(N, 1, DATA_SETS, ROWS), group="F")
    pb.learn(stats.select(stats.names[:5]))  # loads the kernels
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    net = pb.learn(stats, preset="paper")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    fits = sum(move.fits for move in net.trace)
    print(json.dumps([N, seconds, before, peak, len(net.dag.arcs), fits]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 200, 500, 1000, 2000])
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parsed(parser, nodes=[12])
    if options.measure is not None:
        measure(options.measure)
        return
    rows = []
    for N in options.nodes:
        rows.append(json.loads(child(__file__, "--measure", str(N))))
        _, seconds, _, peak, arcs, fits = rows[-1]
        least = 8 * DATA_SETS * N**2 / 2**20
        print(
            f"N = {N:4d}: {seconds:7.1f} s, peak {peak:5.0f} MiB (statistics {least:.0f} MiB), "
            f"{arcs} arcs, {fits} fits",
            flush=True,
        )
    if options.plot:
        draw(rows, options.plot)


def draw(rows: list[list[float]], file: Path) -> None:
    from matplotlib.figure import Figure

    time_axes, memory_axes = (figure := Figure((9, 4), layout="constrained")).subplots(1, 2)
    N = [row[0] for row in rows]
    time_axes.loglog(N, [row[1] for row in rows], "o-")
    time_axes.set(xlabel="nodes", ylabel="seconds", title="time to learn")
    memory_axes.loglog(N, [row[3] for row in rows], "o-", label="peak of the process")
    memory_axes.loglog(
        N, [8 * DATA_SETS * n**2 / 2**20 for n in N], "--", label=r"statistics, 8 |F| N$^2$ bytes"
    )
    memory_axes.set(xlabel="nodes", ylabel="MiB", title="memory")
    memory_axes.legend(frameon=False)
    for axes in (time_axes, memory_axes):
        axes.grid(alpha=0.3)
        axes.set_xticks(N, [f"{n:g}" for n in N])
        axes.minorticks_off()
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
