"""Size and power of independence tests of columns that are not both continuous.

Data sets have 20 rows. x and y are a continuous column, a discrete one with two or with three
levels, or a count; they are independent given S, or not. S is empty, a discrete column with three
levels, a continuous one, or both. In "alike" tables the data sets have the same regressions on S;
in "varied" ones the intercepts, regressions and effects of each differ, with SDs of 0.5.

    python benchmarks/independence_kinds.py [--draws N] [--results FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tiny import parsed, tiny

import poolbn as pb
from poolbn.moments.table import Table
from poolbn.scoring.independence import ColumnTests

ROWS = 20
KINDS = {"two": "discrete", "three": "discrete", "number": "continuous", "count": "count"}
LEVELS = {"two": ("a", "b"), "three": ("a", "b", "c"), "number": (), "count": ()}
PAIRS = (("two", "two"), ("three", "three"), ("two", "number"), ("three", "number"),
         ("count", "two"), ("count", "count"), ("count", "number"))  # fmt: skip
GIVEN = {"none": (), "discrete": ("d",), "continuous": ("z",), "both": ("d", "z")}


def drawn(rng: np.random.Generator, kind: str, eta: np.ndarray) -> np.ndarray:
    """A column with linear predictors eta, (n,)."""
    n = len(eta)
    if kind == "number":
        return eta + rng.normal(size=n)
    if kind == "count":
        return rng.poisson(np.exp(0.5 + 0.5 * eta)).astype(float)
    if kind == "two":
        return (rng.logistic(size=n) < eta).astype(float)
    utilities = np.stack([np.zeros(n), eta, -0.5 * eta], axis=1) + rng.gumbel(size=(n, 3))
    return utilities.argmax(axis=1).astype(float)


def centred(kind: str, x: np.ndarray) -> np.ndarray:
    """About mean 0 and SD 1."""
    return (x - x.mean()) / max(x.std(), 0.3) if kind != "three" else (x == 1) * 1.6 - 0.5


def made(
    rng: np.random.Generator, pair: tuple[str, str], given: str, F: int, varied: bool, effect: float
) -> Table:
    at, n = np.repeat(np.arange(F), ROWS), F * ROWS
    spread = 0.5 if varied else 0.0
    z = rng.normal(size=n) + spread * rng.normal(size=F)[at]
    d = rng.integers(0, 3, n)
    columns = []
    for kind in pair:
        eta = spread * rng.normal(size=F)[at]
        if "z" in GIVEN[given]:
            eta = eta + (0.6 + spread * rng.normal(size=F))[at] * z
        if "d" in GIVEN[given]:
            eta = eta + (np.array([-0.5, 0.0, 0.7]) + spread * rng.normal(size=(F, 3)))[at, d]
        if columns:
            eta = eta + effect * (1 + spread * rng.normal(size=F))[at] * centred(*columns[0])
        columns.append((kind, drawn(rng, kind, eta)))
    names = ("x", "y", *GIVEN[given])
    kinds = (*pair, *("three" if name == "d" else "number" for name in GIVEN[given]))
    values = [column for _, column in columns] + [d if s == "d" else z for s in GIVEN[given]]
    return Table(
        names,
        tuple(KINDS[kind] for kind in kinds),
        tuple(LEVELS[kind] for kind in kinds),
        tuple(range(F)),
        np.arange(F + 1) * ROWS,
        np.array(values, dtype=float),
        np.zeros(F, dtype=np.int64),
        "F",
    )


def share(tests: tuple[str, str], pair, given, F, varied, effect, draws, seed) -> str:
    """Percent of tables in which a test rejects at 5%, and at 1%."""
    pooling, test = tests
    model = pb.Partial() if pooling == "partial" else pb.Complete()
    rng, found = np.random.default_rng(seed), []
    for _ in range(draws):
        table = made(rng, pair, given, F, varied, effect)
        S = range(2, len(table.names))
        found.append(ColumnTests(table, model, test).log_p(0, 1, S))
    p = np.exp(np.array(found, dtype=float))
    fine = p[~np.isnan(p)]
    return f"{100 * (fine < 0.05).mean():.1f}, {100 * (fine < 0.01).mean():.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--data-sets", type=int, nargs="*", default=[3, 10, 30])
    parser.add_argument("--results", type=Path)
    given = parsed(parser, draws=4, data_sets=[3, 4])
    lines = []
    for effect, words in ((0.0, "Size"), (0.3, "Power")):
        draws = given.draws if not effect else given.draws // 4
        lines += [
            f"{words} at the 5% and the 1% level, in percent, {draws:,} tables each:",
            "",
            "| columns | given | data sets | combined, alike | combined, varied | lr, varied "
            "| lr, complete pooling, alike |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for pair in tiny(PAIRS, PAIRS[1:5:3]):
            for S in tiny(GIVEN, ("none", "both")):
                for F in given.data_sets if not effect else given.data_sets[1:2]:
                    cells = [
                        share(("partial", "combined"), pair, S, F, False, effect, draws, 1),
                        share(("partial", "combined"), pair, S, F, True, effect, draws, 2),
                        share(("partial", "lr"), pair, S, F, True, effect, draws // 2, 3)
                        if "number" in pair
                        else "-",
                        share(("complete", "lr"), pair, S, F, False, effect, draws, 4),
                    ]
                    line = f"| {', '.join(pair)} | {S} | {F} | {' | '.join(cells)} |"
                    print(line, flush=True)
                    lines.append(line)
        lines.append("")
    if given.results:
        given.results.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
