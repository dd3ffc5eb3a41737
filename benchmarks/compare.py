"""Two versions of poolbn side by side, as ratios: this tree, and the one of another commit.

Both run the same cases, which use the public interface alone, in processes of their own that take
turns on one core. The processor's time counts, which a busy machine changes less, the best of all
turns. Files of the other commit, and compiled kernels and bytecode of both, stay in build/compare:
a second run starts at once.

    python benchmarks/compare.py COMMIT [--turns N] [--only WORD] [--compile]
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tiny import SMOKE, parsed, tiny

HERE = Path(__file__).resolve().parents[1]
# What both versions can do, under names that both know.
PAPER: dict[str, Any] = {"pooling": "partial", "score": "bic", "search": "hc"}
BUILD = HERE / "build" / "compare"
RESIDUALS = ("shared", "pooled", "separate")
LEAST_S = tiny(0.2, 0.0)  # how long a case is repeated in each turn

Case = Callable[[], object]


# Tables


def rows_of(rows: int, columns: int, data_sets: int) -> pd.DataFrame:
    values = np.random.default_rng(1).standard_normal((rows, columns))
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(columns)])
    return frame.assign(F=np.arange(rows) % data_sets)


def varying(parents: int, data_sets: int, rows: int = 50) -> pd.DataFrame:
    """A child y, and parents x0, x1, ... whose coefficients vary, as residual variances do."""
    rng = np.random.default_rng(1)
    frame = rows_of(data_sets * rows, parents, data_sets)
    b = rng.normal(size=(data_sets, parents + 1)) + 2
    sd = rng.uniform(0.5, 2, data_sets)
    codes = frame["F"].to_numpy()
    x = frame.drop(columns="F").to_numpy()
    noise = rng.normal(size=len(codes)) * sd[codes]
    return frame.assign(y=b[codes, 0] + (x * b[codes, 1:]).sum(axis=1) + noise)


# Cases: what `cases` makes is ready to be timed


def cases(folder: Path) -> Iterator[tuple[str, Callable[[], Case]]]:
    """Names of cases, and functions that prepare them."""
    import poolbn as pb

    @cache
    def recorded(name: str) -> pb.GroupStats:
        stats = pb.stats(HERE / "benchmarks" / "data" / f"{name}.csv", group="F")
        return stats.select(stats.names[: tiny(None, 5)])

    def read(source: object) -> Case:
        return partial(pb.stats, source, group="F")

    def node(work: str, parents: int, data_sets: int, pooling: object) -> Case:
        data = pb.stats(varying(parents, data_sets), group="F")
        names = [name for name in data.names if name != "y"]
        if work == "fit":
            return lambda: pb.fit_node(data, "y", names, pooling=pooling)
        arcs = [(name, "y") for name in names]
        return lambda: pb.score(data, arcs, pooling=pooling)

    def search(name: str, pooling: object) -> Case:
        return partial(pb.learn, recorded(name), **PAPER | {"pooling": pooling})

    def predict(drop: list[str]) -> Case:
        net = pb.learn(recorded("n10"), **PAPER)
        rows = pd.read_csv(HERE / "benchmarks" / "data" / "n10.csv")
        rows = pd.concat([rows] * tiny(40, 1), ignore_index=True).drop(columns=drop)
        # The version before took estimates for certain; its answers have no other name.
        like = {"plugin": True} if "plugin" in signature(net.predict).parameters else {}
        return lambda: net.predict(rows, net.dag.nodes[-1], **like)

    yield "read: 200,000 rows of 20 columns", lambda: read(rows_of(tiny(200_000, 200), 20, 20))
    yield (
        "read: 10,000 rows of 200 columns",
        lambda: read(rows_of(tiny(10_000, 100), 200, 20)),
    )
    yield "read: 1,000,000 rows of Parquet", lambda: read(folder / "rows.parquet")
    for parents, data_sets in ((1, 10), (4, 20), (3, 50)):
        for kind in RESIDUALS:
            pooling = pb.Partial(residuals=kind)
            for work in ("score", "fit"):
                name = f"{work}: {kind} residuals, {parents} parents, {data_sets} data sets"
                yield name, partial(node, work, parents, data_sets, pooling)
    reml = pb.Partial(method="reml")
    yield "fit: REML, 4 parents, 20 data sets", partial(node, "fit", 4, 20, reml)
    for kind in RESIDUALS:
        pooling = pb.Partial(residuals=kind)
        yield f"search: {kind} residuals, N = 10", partial(search, "n10", pooling)
    yield "search: auto, N = 10", partial(search, "n10", "auto")
    yield "search: partial, N = 50", partial(search, "n50", "partial")
    yield "search: complete, N = 50", partial(search, "n50", "complete")
    yield "search: none, N = 50", partial(search, "n50", "none")
    yield "predict: 20,000 rows, known data set", partial(predict, [])
    yield "predict: 20,000 rows, unknown data set", partial(predict, ["F"])


def best(case: Case) -> float:
    """Seconds of the fastest of several calls, after one that does not count."""
    case()
    seconds: list[float] = []
    while sum(seconds) < LEAST_S or len(seconds) < tiny(3, 1):
        start = time.process_time()
        case()
        seconds.append(time.process_time() - start)
    return min(seconds)


def measure(folder: Path, only: str) -> dict[str, float]:
    """Seconds of each case with the version that this process imports."""
    if hasattr(os, "sched_setaffinity") and not SMOKE:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    start = time.process_time()
    import poolbn as pb

    pb.learn(pb.datasets.opt()[["clinic", "age", "bmi"]].dropna(), group="clinic", **PAPER)
    seconds = {"start: import, and the first small network": time.process_time() - start}
    chosen = ((name, prepare) for name, prepare in cases(folder) if only in name)
    return seconds | {name: best(prepare()) for name, prepare in chosen}


# Both trees


def checked_out(commit: str) -> Path:
    """The files of a commit. Their times are those of the commit, so that numba's cache holds."""
    git = ["git", "-C", str(HERE)]
    name = subprocess.run(
        [*git, "rev-parse", "--short=12", f"{commit}^{{commit}}"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    tree = BUILD / name
    if not tree.exists():
        packed = subprocess.run([*git, "archive", name, "src"], check=True, capture_output=True)
        half = tree.with_suffix(".half")
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
            files.extractall(half, filter="data")
        half.rename(tree)
    return tree


def kernels_of(tree: Path) -> Path:
    """Where the compiled kernels of these sources are; numba does not see all that changes."""
    sources = sorted((tree / "src" / "poolbn" / "kernels").glob("*.py"))
    content = b"".join(file.read_bytes() for file in sources)
    return BUILD / f"kernels-{hashlib.sha256(content).hexdigest()[:12]}"


def run(tree: Path, kernels: Path, *arguments: str) -> tuple[dict[str, float], float]:
    """Seconds of each case with one tree, and those of the whole process."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "NUMBA_CACHE_DIR": str(kernels),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPYCACHEPREFIX": str(BUILD / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        check=True, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    return json.loads(done.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def compile_all() -> None:
    """Fit with every kind of pooling: all kernels are compiled then."""
    import poolbn as pb

    data = pb.stats(varying(2, 4, 20), group="F")
    for pooling in ("complete", "none", *(pb.Partial(residuals=kind) for kind in RESIDUALS)):
        pb.learn(data, **PAPER | {"pooling": pooling})
    print(json.dumps({}))


def compare(commit: str, turns: int, only: str, compiling: bool) -> pd.DataFrame:
    """Milliseconds of all cases with both trees, and their ratio."""
    trees = {"old": checked_out(commit), "new": HERE}
    kernels = {which: kernels_of(tree) for which, tree in trees.items()}
    found: dict[str, list[dict[str, float]]] = {"old": [], "new": []}
    with tempfile.TemporaryDirectory() as folder:
        rows_of(1_000_000, 10, 20).to_parquet(f"{folder}/rows.parquet")
        for which, tree in trees.items():
            run(tree, kernels[which], "--kernels")
        for turn in range(turns):
            for which in ("old", "new") if turn % 2 == 0 else ("new", "old"):
                seconds, _ = run(trees[which], kernels[which], "--measure", folder, "--only", only)
                found[which].append(seconds)
        table = pd.DataFrame({which: pd.DataFrame(f).min() for which, f in found.items()})
        if compiling:
            for which, tree in trees.items():
                seconds = run(tree, Path(folder) / which, "--kernels")[1]
                table.loc["compile: all kernels", which] = seconds
    return (1000 * table).assign(ratio=table["new"] / table["old"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="a word in the names of the cases to run")
    parser.add_argument("--compile", action="store_true", help="compile all kernels, too")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kernels", action="store_true", help=argparse.SUPPRESS)
    options = parsed(parser)
    if options.measure:
        print(json.dumps(measure(options.measure, options.only)))
    elif options.kernels:
        compile_all()
    elif SMOKE:  # this tree alone
        with tempfile.TemporaryDirectory() as folder:
            rows_of(200, 10, 20).to_parquet(f"{folder}/rows.parquet")
            print(json.dumps(measure(Path(folder), options.only)))
    else:
        table = compare(options.commit, options.turns, options.only, options.compile)
        print(f"milliseconds; old is {options.commit}, new is this tree, ratio is new / old")
        print(table.to_string(float_format=lambda value: f"{value:.4g}"))
        print(f"median ratio {table['ratio'].median():.2f}, highest {table['ratio'].max():.2f}")


if __name__ == "__main__":
    main()
