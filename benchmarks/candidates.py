"""Columns that a search with partial pooling leaves out without a fit: are they hopeless?

Of each family, each column beside the child and its parents is tried as one more parent, and its
score computed. A miss is a column that raises the score, but is left out. Families are those of a
search's last graph, and these with parents taken away at random. The tables:

  - columns of all kinds, with discrete nodes and counts;
  - networks as in the paper, and the continuous columns of the trial in `pb.datasets.opt`;
  - columns that act in ways that are hard to see from a fit without them: slopes of mean zero, in
    one data set only, means of data sets that explain random intercepts, mediators of a parent
    whose slope varies; with unequal rows and scales of data sets.

And searches that leave columns out are compared with searches that do not.

    python benchmarks/candidates.py [--tables 20] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb
from poolbn.moments.standardised import Family
from poolbn.scoring.local import LocalScores
from poolbn.search.problem import Problem

sys.path.insert(0, str(Path(__file__).parent))
from search import generate

PAPER = tiny(
    [(30, 1, 10, 100), (30, 2, 10, 50), (20, 2, 20, 50), (20, 2, 4, 100), (20, 2, 5, 40),
     (20, 2, 10, 20), (20, 2, 30, 15), (15, 3, 50, 50)],
    [(6, 1, 4, 30)],
)  # fmt: skip
NOISE = 10  # columns
KINDS = tiny([(4, 100), (10, 50), (20, 200)], [(4, 60)])  # data sets and their rows


class All(LocalScores):
    """Scores that leave nothing out."""

    def _at_once(self, families, candidates, improving_only):
        return super()._at_once(families, candidates, False)


def hard(seed: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """A child y, a column x that acts in some way, perhaps a parent p, and noise."""
    rng = np.random.default_rng(seed)
    F = int(rng.choice([4, 6, 10, 20, 40]))
    n = rng.integers(15, 80, F) if rng.random() < 0.5 else np.full(F, rng.integers(15, 80))
    j = np.repeat(np.arange(F), n)
    scale = np.exp(rng.normal(0, rng.choice([0, 1.0]), F))[j]
    x, p = (scale * rng.normal(size=len(j)) for _ in range(2))
    a, b, c = rng.normal(size=(3, F)) * rng.choice([0.3, 1.0, 3.0], (3, 1))
    size, e = rng.choice([0.1, 0.3, 1.0]), rng.normal(size=len(j))
    close = rng.choice([0.05, 0.3, 1.0]) * rng.normal(size=len(j))
    one = (j == 0) * rng.choice([1.0, 3.0, 10.0])
    ways = {
        "slopes of mean zero": (x, p, size * b[j] * x + a[j]),
        "in one data set": (x, p, size * one * x + a[j]),
        "small and the same": (x, p, size * x + a[j] + c[j] * p),
        "means of data sets": (a[j] + close, p, 2 * a[j] + c[j] * p),
        "means, and inside": (a[j] + close, p, a[j] + 0.5 * close + c[j] * p),
        "mediator of slopes": (c[j] * p + close, p, c[j] * p + a[j]),
        "mediator, one way": (c[j] * p + close, p, (c[j] + size * b[j]) * p + size * close),
        "intercept with slope": (x, p, b[j] + size * b[j] * x),
        "confounded": (x, x + close, size * x + b[j] * (x + close)),
    }
    for name, (of_x, of_p, y) in ways.items():
        noise = {f"noise{k}": scale * rng.normal(size=len(j)) for k in range(NOISE)}
        yield name, pd.DataFrame(noise).assign(x=of_x, p=of_p, y=y + e, F=[f"g{i}" for i in j])


def of_all_kinds(seed: int, F: int, rows: int) -> pb.Table:
    """Two continuous columns, two discrete ones and a count, related at random."""
    rng = np.random.default_rng([seed, F, rows])
    j = np.repeat(np.arange(F), rows)
    kinds, names = rng.permutation(["number", "number", "two", "three", "count"]), list("abcde")
    columns: list[np.ndarray] = []
    frame: dict[str, object] = {"F": j}
    for name, kind in zip(names, kinds, strict=True):
        eta = rng.normal(size=F)[j] * 0.4
        for other in columns:
            if rng.random() < 0.5:
                eta = eta + (0.4 * rng.normal() + 0.2 * rng.normal(size=F))[j] * other
        if kind == "number":
            value = eta + rng.normal(size=len(j))
        elif kind == "count":
            value = rng.poisson(np.exp(np.clip(eta, -1.5, 1.5)) * rng.gamma(3, 1 / 3, len(j)))
        else:
            levels = np.arange(2 if kind == "two" else 3)
            value = (rng.gumbel(size=(len(j), len(levels))) + eta[:, None] * levels).argmax(axis=1)
        frame[name] = np.array(list("xyz"))[value] if kind in ("two", "three") else value
        columns.append((value - value.mean()) / max(value.std(), 1e-9))
    counts = {name: "count" for name, kind in zip(names, kinds, strict=True) if kind == "count"}
    return pb.table(pd.DataFrame(frame), group="F", kinds=counts)


def families(stats: pb.GroupStats | pb.Table, rng: np.random.Generator) -> set[Family]:
    """Of a search, and some with fewer parents."""
    net = pb.learn(stats, preset="paper")
    found = set()
    for child, name in enumerate(stats.names):
        parents = [stats.names.index(parent) for parent in net.dag.parents(name)]
        found.add((child, tuple(sorted(parents))))
        for _ in range(2):
            found.add((child, tuple(sorted(p for p in parents if rng.random() < 0.6))))
    return found


def tried(stats: pb.GroupStats | pb.Table, of: set[Family]) -> np.ndarray:
    """Columns, those that raise a score, misses, and how many of the others are left out."""
    N = len(stats.names)
    counts = np.zeros(4, dtype=int)
    scores = LocalScores(stats)
    for child, parents in sorted(of):
        others = [v for v in range(N) if v != child and v not in parents]
        more = [(child, tuple(sorted((*parents, v)))) for v in others]
        own, *with_more = scores([(child, parents), *more])
        found = scores.neighbours(
            [(child, parents)], np.ones((1, N), dtype=bool), improving_only=True
        )
        values = found.values[0, others]
        left_out = ~found.exact[0, others] & (values < own) & (values > own - 1e-5)
        raises = np.array(with_more) > own
        counts += [len(others), raises.sum(), (left_out & raises).sum(), (left_out & ~raises).sum()]
    return counts


def same_graph(stats: pb.GroupStats | pb.Table) -> bool:
    N = len(stats.names)
    allowed, start = pb.Constraints().on(stats.names), np.zeros((N, N), dtype=bool)
    found = [pb.HillClimb().learn(Problem(of(stats), allowed, start)) for of in (LocalScores, All)]
    return bool((found[0].arcs == found[1].arcs).all())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--out", type=Path, help="a Markdown file")
    options = parsed(parser, tables=1)
    rng = np.random.default_rng(options.first)
    counts: dict[str, np.ndarray] = {}
    searches = different = 0
    trial = pb.datasets.opt(kind="continuous").dropna()
    for seed in range(options.first, options.first + options.tables):
        tables = [
            (
                f"paper's, N = {N}, {parents} parents, {F} x {rows}",
                generate(N, parents, F, rows, seed),
            )
            for N, parents, F, rows in PAPER
        ]
        some = rng.choice(trial.columns.drop("clinic"), tiny(12, 4), replace=False)
        tables.append(
            ("the trial, 12 columns", trial[[*some, "clinic"]].rename(columns={"clinic": "F"}))
        )
        for name, frame in tables:
            stats = pb.stats(frame, group="F")
            counts[name] = counts.get(name, 0) + tried(stats, families(stats, rng))
            searches += 1
            different += not same_graph(stats)
        for F, rows in KINDS:
            table = of_all_kinds(seed, F, rows)
            name = f"columns of all kinds, {F} x {rows}"
            counts[name] = counts.get(name, 0) + tried(table, families(table, rng))
            searches += 1
            different += not same_graph(table)
        for name, frame in hard(seed):
            stats = pb.stats(frame, group="F")
            y, p = stats.names.index("y"), stats.names.index("p")
            counts[name] = counts.get(name, 0) + tried(stats, {(y, ()), (y, (p,))})
            searches += 1
            different += not same_graph(stats)
    lines = [
        "| table | columns | raise the score | of these left out | of the others left out |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, (columns, raises, missed, out) in [*counts.items(), ("all", sum(counts.values()))]:
        share = out / (columns - raises)
        lines.append(f"| {name} | {columns:,} | {raises:,} | {missed} | {share:.0%} |")
    lines.append("")
    lines.append(
        f"{different} of {searches} searches end in another graph than without leaving out."
    )
    print("\n".join(lines))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
