"""Do intervals hold for effects of arcs that a search selected, from the same rows and honestly?

    python benchmarks/after_search.py [--tables K] [--seed S] [--cores C] [--kind KIND] [--few]

Tables of five continuous columns: half of all arcs along an order, slopes of 0.1 to 0.35 in size
that do not vary between data sets, or vary with a standard deviation of 0.15; levels that vary with
1, residuals with 1. So few rows tell of an arc only where chance helps. `pb.learn` finds a graph
with its defaults. Each arc that it selects has a true effect, whether it is in the true graph or
not: the mean over the population of data sets of the coefficient of its child's regression on all
its selected parents, from 4000 data sets of the world. How often 95% intervals have it, and how
much larger estimates are (the mean of estimates in the true direction over the mean size of true
effects), where estimates are

- from the rows that the graph was learned from;
- from the other half of the rows of each data set (`honest="split"`);
- from the other half of the data sets, in the measurement alone.

With `--kind binary` the columns are four causes and a binary outcome, whose true log odds ratios
are those of a logistic regression with a level for each of 300 data sets of 2000 rows.
"""

from __future__ import annotations

import argparse
import warnings
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tiny import parsed, tiny

import poolbn as pb

FEW = ((3, 10), (3, 20), (3, 60), (10, 5), (10, 20), (30, 5))  # data sets, rows of each
CELLS = (*FEW, (10, 60), (30, 20))
WORLDS = {"same": 0.0, "varying": 0.15}  # standard deviation of slopes between data sets
N, POPULATION = 5, 4000
BINARY = np.array([0.5, 0.35, 0.2, 0.0])  # log odds ratios


class World:
    """A random graph with its slopes."""

    def __init__(self, rng: np.random.Generator, spread: float) -> None:
        there = np.triu(rng.random((N, N)) < 0.5, 1)
        size = rng.uniform(0.1, 0.35, (N, N)) * rng.choice([-1, 1], (N, N))
        self.mean, self.spread, self.rng = (
            np.where(there, size, 0.0),
            np.where(there, spread, 0),
            rng,
        )

    def slopes(self, F: int) -> np.ndarray:
        return self.mean + self.spread * self.rng.normal(size=(F, N, N))

    def table(self, F: int, rows: int) -> pd.DataFrame:
        """x = level + x B + e, so that x = (level + e) (1 - B)^-1."""
        e = self.rng.normal(size=(F, rows, N)) + self.rng.normal(size=(F, 1, N))
        x = e @ np.linalg.inv(np.eye(N) - self.slopes(F))
        frame = pd.DataFrame(x.reshape(-1, N), columns=[f"x{k}" for k in range(N)])
        order = self.rng.permutation(frame.columns)
        return frame[order].assign(F=[f"set {j}" for j in np.repeat(range(F), rows)])

    def truth(self, child: str, parents: list[str]) -> np.ndarray:
        """Mean coefficients of the child on these parents, inside data sets."""
        into = np.linalg.inv(np.eye(N) - self.slopes(POPULATION))
        cov = into.transpose(0, 2, 1) @ into
        p, c = [int(name[1:]) for name in parents], int(child[1:])
        own = cov[:, p][:, :, p], cov[:, p, c][:, :, None]
        return np.linalg.solve(*own)[:, :, 0].mean(axis=0)


@cache
def binary_truth(parents: tuple[int, ...]) -> np.ndarray:
    """By Newton's method for a level in each data set, whose Hessian is an arrow."""
    rng = np.random.default_rng(0)
    F, rows = tiny((300, 2000), (20, 200))
    x = rng.normal(size=(F, rows, len(BINARY)))
    eta = x @ BINARY + rng.normal(size=(F, 1))
    y = rng.random((F, rows)) < 1 / (1 + np.exp(-eta))
    own, beta, level = x[:, :, list(parents)], np.zeros(len(parents)), np.zeros(F)
    for _ in range(12):
        p = 1 / (1 + np.exp(-(own @ beta + level[:, None])))
        w, left = p * (1 - p), y - p
        mixed = np.einsum("fr,frk->fk", w, own)
        H = np.einsum("fr,frk,frl->kl", w, own, own) - (mixed.T / w.sum(axis=1)) @ mixed
        g = np.einsum("fr,frk->k", left, own) - (left.sum(axis=1) / w.sum(axis=1)) @ mixed
        step = np.linalg.solve(H, g)
        beta = beta + step
        level = level + (left.sum(axis=1) - mixed @ step) / w.sum(axis=1)
    return beta


def binary_table(rng: np.random.Generator, F: int, rows: int) -> pd.DataFrame:
    x = rng.normal(size=(F, rows, len(BINARY)))
    y = rng.random((F, rows)) < 1 / (1 + np.exp(-(x @ BINARY + rng.normal(size=(F, 1)))))
    frame = pd.DataFrame(x.reshape(-1, len(BINARY)), columns=[f"x{k}" for k in range(len(BINARY))])
    return frame.assign(y=y.ravel(), F=[f"set {j}" for j in np.repeat(range(F), rows)])


def networks(table: pd.DataFrame, **options: Any) -> dict[str, pb.Network]:
    """Three ways from a table to effects."""
    levels = table["F"].unique()
    found = {"same rows": pb.learn(table, group="F", **options)}
    found["other rows"] = pb.learn(table, group="F", honest="split", **options)
    first = table["F"].isin(levels[: len(levels) // 2])
    if min(first.sum(), len(levels) - 1) > 0 and len(levels) > 3:
        dag = pb.learn(table[first], group="F", **options).dag
        found["other data sets"] = pb.fit(dag, table[~first], group="F", pooling="auto")
    return found


def one(kind: str, F: int, rows: int, seed: int) -> pd.DataFrame:
    """The effects of one table."""
    rng = np.random.default_rng([seed, F, rows, len(kind)])
    options: dict[str, Any] = {}
    if kind == "binary":
        table = binary_table(rng, F, rows)
        causes = list(table.columns[:-2])
        options["constraints"] = pb.Constraints(
            tiers=[causes, ["y"]], forbidden=[p for pair in combinations(causes, 2)
                                              for p in (pair, pair[::-1])]
        )  # fmt: skip
    else:
        world = World(rng, WORLDS[kind])
        table = world.table(F, rows)
    made = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way, net in networks(table, **options).items():
            for child, effects in net.effects().groupby("child"):
                parents = effects["parent"].tolist()
                if kind == "binary":
                    truth = np.exp(binary_truth(tuple(int(name[1:]) for name in parents)))
                else:
                    truth = world.truth(child, parents)
                made.append(
                    effects[["effect", "lower", "upper"]].assign(truth=truth, way=way)
                )  # fmt: skip
    found = pd.concat(made) if made else pd.DataFrame(columns=["way"])
    return found.assign(world=kind, F=F, rows=rows, seed=seed)


def report(found: pd.DataFrame) -> None:
    ways = list(found["way"].unique())
    found = found.assign(covered=found["truth"].between(found["lower"], found["upper"]))
    ratio = found["world"] == "binary"
    for name in ("effect", "truth"):
        found[name] = found[name].where(~ratio, np.log(found[name].where(ratio, 1.0)))
    found["known"] = np.isfinite(found["lower"] + found["upper"])
    head = ["world", "data sets", "rows", *(f"{way}: arcs, coverage, inflation" for way in ways)]
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    every = found.assign(F="all", rows="")
    for key, own in [g for of in (found, every) for g in of.groupby(["world", "F", "rows"])]:
        cells = []
        for way in ways:
            part = own[(own["way"] == way) & own["known"]]
            if part.empty:
                cells.append("")
                continue
            error = (part["covered"].groupby(part["seed"]).sum() - part["covered"].mean()
                     * part.groupby("seed").size())  # fmt: skip
            se = np.sqrt((error**2).sum()) / len(part)
            inflated = (part["effect"] * np.sign(part["truth"])).sum() / part["truth"].abs().sum()
            share = 100 * part["covered"].mean()
            cells.append(f"{len(part)}, {share:.1f}% ({100 * se:.1f}), {inflated:.2f}")
        print(f"| {' | '.join(map(str, (*key, *cells)))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--kind", choices=[*WORLDS, "binary"], action="append")
    parser.add_argument("--few", action="store_true", help="sizes with few rows alone")
    given = parsed(parser, tables=2)
    kinds = given.kind or [*WORLDS, "binary"]
    cells = tiny(FEW if given.few else CELLS, ((3, 20), (10, 5)))
    items = product(kinds, cells, range(given.seed, given.seed + given.tables))
    found = Parallel(tiny(given.cores, 1))(delayed(one)(k, *cell, seed) for k, cell, seed in items)
    report(pd.concat([part for part in found if len(part)], ignore_index=True))


if __name__ == "__main__":
    main()
