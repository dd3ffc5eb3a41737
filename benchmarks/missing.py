"""Missing cells: graphs, bias and coverage with EM, beside dropping rows and the full data.

Tables by the paper's generator (N = 10, 2 parents on average): 8 data sets of 40 rows, and 4 of
100. Cells are missing completely at random (MCAR), or more often where one column, which is always
there, is high (MAR). Graphs are learned by partial pooling and BIC. Effects are those of the true
graph, under pooled residual variances. Bias is that of effects on the column that decides, which
dropping rows distorts most: the difference from the full data's estimate, in SDs of the child for
one of the parent, negative towards 0. Coverage of 95% intervals, of effects of data sets and of the
population, is that of every fourth table.

    python benchmarks/missing.py --tables 200 --out results/missing.md --figure docs/images
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student
from tiny import in_processes, parsed, tiny

import poolbn as pb
from poolbn.learning import as_plan
from poolbn.moments.standardised import standardise
from poolbn.nodes.model import same_for_all

SHAPES = tiny(((8, 40), (4, 100)), ((3, 30),))
SHARES = tiny((0.05, 0.15, 0.25, 0.4), (0.15,))
KINDS = ("MCAR", "MAR")
HOW = ("full", "em", "drop")
COVERED = 4
POOLED = pb.Partial(residuals="pooled")  # residual variances differ here


def with_gaps(
    table: pd.DataFrame, share: float, kind: str, rng: np.random.Generator
) -> tuple[pd.DataFrame, str]:
    """The table with this share of its cells missing, and the column that decides which."""
    nodes = [name for name in table.columns if name != "F"]
    n, N = len(table), len(nodes)
    decides = nodes[int(rng.integers(N))]
    lost = np.full(n, share)
    if kind == "MAR":
        rank = table[decides].rank().to_numpy() / n
        lost = np.clip(2 * share * rank, 0, 0.95)
    missing = rng.random((n, N)) < lost[:, None]
    if kind == "MAR":
        missing[:, nodes.index(decides)] = False
    return table.assign(**table[nodes].mask(missing)), decides


def drawn(
    shape: tuple[int, int], share: float, kind: str, number: int
) -> tuple[pb.Network, pd.DataFrame, pd.DataFrame, str]:
    """A true network, a table of it, the same with gaps, and the column that decides which."""
    F, rows = shape
    true = pb.random_network(pb.random_dag(10, 2, seed=number), data_sets=F, seed=number)
    table = pb.random_table(true, rows, seed=number)
    return true, table, *with_gaps(table, share, kind, np.random.default_rng([number, F]))


def covered(true: pb.Network, stats: pb.GroupStats) -> tuple[float, float]:
    """Shares of effects of data sets, and of the population, inside their 95% intervals."""
    own, population = [], []
    for node in true.dag.nodes:
        parents = true.dag.parents(node)
        fit = pb.fit_node(stats, node, parents, pooling=POOLED)
        found, truth = fit.intervals, true.fits[node]
        if not parents or found is None:
            continue
        at = [truth.levels.index(level) for level in fit.levels]
        width = (student.ppf(0.975, np.maximum(found.df, 1)) * found.se)[:, 1:]
        own.append((np.abs(fit.coef[:, 1:] - truth.coef[at, 1:]) <= width).mean())
        width = student.ppf(0.975, np.maximum(found.population_df, 1)) * found.population_se
        population.append((np.abs(fit.fixed - truth.fixed) <= width)[1:].mean())
    return float(np.mean(own)), float(np.mean(population))


def measure(
    pooling: str, score: str, lent: float, cell: tuple[tuple[int, int], float, str, int]
) -> list[dict[str, Any]]:
    """A row for each way to deal with the gaps of one table."""
    warnings.simplefilter("ignore")
    (F, rows), share, kind, number = cell
    true, table, gaps, decides = drawn(*cell)
    plan = as_plan(pooling, score)
    made: list[dict[str, Any]] = []
    full = np.zeros(0)
    for how in HOW:
        row: dict[str, Any] = {"F": F, "rows": rows, "share": share, "kind": kind, "how": how}
        made.append(row)
        source = table if how == "full" else gaps
        try:
            stats = pb.stats(source, group="F", missing="em" if how == "em" else "drop")
            if how == "em":
                stats = stats.patterns.completed(lent)
            arcs = plan.found(stats)[0].arcs
        except pb.PoolbnError:  # no rows are left of a data set
            continue
        names = stats.names
        found = pb.Dag(names, [(names[p], names[c]) for p, c in np.argwhere(arcs)])
        row["shd"] = pb.metrics.shd(true.dag, found)
        parents = true.dag.parents(decides)
        if parents:
            data = standardise(stats)
            fit = POOLED.fit(data, data.family(decides, parents), same_for_all(0.0))
            effects = fit.coef[:, 1:].mean(axis=0)
            full = effects if how == "full" else full
            spread = table.groupby("F")[list(names)].std().mean()
            unit = spread[list(fit.parents)].to_numpy() / spread[decides]
            row["error"] = float(np.mean((effects - full) * np.sign(full) * unit))
        if how != "drop" and number % COVERED == 0:
            row["data sets"], row["population"] = covered(true, stats)
    return made


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One row for each kind of table."""
    keys = ["F", "rows", "kind", "share"]
    made = found.pivot_table(index=keys, columns="how", values="shd").add_prefix("SHD ")
    error = found.groupby([*keys, "how"])["error"].agg(["mean", "sem"]).unstack("how")
    for how in ("em", "drop"):
        made[f"bias {how}"], made[f"se {how}"] = error["mean", how], error["sem", how]
    for how in ("em", "full"):
        some = found[found["how"] == how].groupby(keys)
        for of in ("data sets", "population"):
            made[f"{of}, {how}"] = some[of].mean()
    return made.reset_index()


def markdown(made: pd.DataFrame) -> str:
    """The same for the documentation."""
    digits = {"F": "d", "rows": "d", "kind": "s", "share": ".0%"}
    form = [digits.get(name, ".2f" if name.startswith("SHD") else ".3f") for name in made.columns]
    lines = [list(made.columns), ["---"] * len(form)]
    lines += [
        [format(cell, f) for cell, f in zip(row, form, strict=True)]
        for row in made.itertuples(index=False)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(made: pd.DataFrame, folder: Path) -> None:
    """SHD against the share of missing cells."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(11, 3), sharey=True, layout="constrained")
    parts = made.groupby(["F", "rows", "kind"], sort=False)
    for ax, ((F, rows, kind), part) in zip(axes, parts, strict=True):
        for how, label in (
            ("full", "no cell missing"),
            ("em", "missing='em'"),
            ("drop", "missing='drop'"),
        ):
            ax.plot(100 * part["share"], part[f"SHD {how}"], marker="o", label=label)
        ax.set_title(f"{F} data sets of {rows} rows, {kind}", fontsize=9)
        ax.set_xlabel("cells missing (%)")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("mean SHD")
    axes[0].legend(fontsize=8)
    figure.savefig(folder / "missing.svg")
    plt.close(figure)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first table")
    parser.add_argument("--lent", type=float, default=2.0, help="rows that data sets are lent")
    parser.add_argument("--pooling", default="partial")
    parser.add_argument("--score", default="bic")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parsed(parser, tables=1)
    numbers = range(options.first, options.first + options.tables)
    cells = list(product(SHAPES, SHARES, KINDS, numbers))
    work = partial(measure, options.pooling, options.score, options.lent)
    every = in_processes(work, cells, options.workers, chunksize=8)
    found = pd.DataFrame([row for rows in every for row in rows])
    made = summary(found)
    text = markdown(made)
    print(text)
    if options.out:
        options.out.write_text(f"{text}\n")
    if options.figure:
        draw(made, options.figure)


if __name__ == "__main__":
    main()
