"""Missing cells in tables with columns of all kinds: graphs, bias and coverage.

Tables of 7 nodes, half of them discrete, in 5 data sets of 80 rows, by the generator of
`pb.random_network`. Cells are missing completely at random (MCAR), or more often where one
continuous column, which is always there, is high (MAR). Graphs are learned by partial pooling and
BIC: from the full data, with missing="em", and after dropping rows. Bias is that of effects of
continuous parents on the column that decides, with the true graph: the difference from the full
data's estimate, in SDs of the child for one of the parent, negative towards 0. Coverage is that of
95% intervals of effects on continuous and on discrete nodes, of data sets and of the population,
with the true graph, of every second table; nodes whose levels parents tell apart without error in
the full data are left out.

    python benchmarks/missing_mixed.py --tables 60 --out results/missing_mixed.md
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tiny import in_processes, parsed, tiny

import poolbn as pb
from poolbn.nodes.regression import RegressionFit
from poolbn.search.problem import Found, Problem

SHARES = tiny((0.1, 0.25), (0.1,))
KINDS = tiny(("MCAR", "MAR"), ("MCAR",))
HOW = ("full", "em", "drop")
COVERED = 2
POOLED = pb.Partial(residuals="pooled")  # residual variances differ here


@dataclass(frozen=True)
class Fixed:
    """A learner that keeps the graph that it starts from."""

    def learn(self, problem: Problem) -> Found:
        """The start."""
        return Found(problem.start, 0.0)


def with_gaps(
    table: pd.DataFrame, share: float, kind: str, rng: np.random.Generator
) -> tuple[pd.DataFrame, str]:
    """The table with this share of its cells missing, and the column that decides which."""
    nodes = [name for name in table.columns if name != "F"]
    numbers = [name for name in nodes if table[name].dtype.kind == "f"]
    decides = numbers[int(rng.integers(len(numbers)))]
    lost = np.full(len(table), share)
    if kind == "MAR":
        lost = np.clip(2 * share * table[decides].rank().to_numpy() / len(table), 0, 0.95)
    missing = rng.random((len(table), len(nodes))) < lost[:, None]
    if kind == "MAR":
        missing[:, nodes.index(decides)] = False
    return table.assign(**table[nodes].mask(missing)), decides


def drawn(
    share: float, kind: str, number: int
) -> tuple[pb.Network, pd.DataFrame, pd.DataFrame, str]:
    """A true network, a table of it, the same with gaps, and the column that decides which."""
    dag = pb.random_dag(7, 1.5, seed=number)
    true = pb.random_network(dag, data_sets=5, discrete=0.5, seed=number)
    table = pb.random_table(true, 80, seed=number)
    return true, table, *with_gaps(table, share, kind, np.random.default_rng(number))


def true_effects(true: pb.Network) -> pd.DataFrame:
    """A row for each effect: its value in the population and in each data set."""
    rows = []
    for node, fit in true.fits.items():
        discrete = isinstance(fit, RegressionFit)
        columns = fit.columns if discrete else fit.parents
        outcomes = fit.categories[1:] if discrete else ("",)
        coef = fit.coef if discrete else fit.coef[:, None]
        fixed = fit.fixed if discrete else fit.fixed[None]
        for o, outcome in enumerate(outcomes):
            for k, column in enumerate(columns, start=1):
                parent, _, level = column.partition("=")
                own = dict(zip(fit.levels, coef[:, o, k], strict=True))
                rows.append(
                    {
                        "parent": parent,
                        "level": level,
                        "child": node,
                        "outcome": outcome,
                        "population": fixed[o, k],
                        **own,
                    }
                )
    return pd.DataFrame(rows)


def covered(true: pb.Network, net: pb.Network, left_out: set[str]) -> dict[str, float]:
    """Shares of effects inside their 95% intervals, of data sets and of the population."""
    keys = ["parent", "level", "child", "outcome"]
    truth = true_effects(true).set_index(keys)
    found: dict[str, list[bool]] = {}
    by = net.effects(by="data set").assign(of="data sets")
    both = pd.concat([by, net.effects().assign(of="population", data_set="population")])
    for row in both.to_dict("records"):
        where = row["data_set"] if row["of"] == "data sets" else "population"
        key = tuple("" if pd.isna(row[name]) else row[name] for name in keys)
        if row["child"] in left_out or key not in truth.index or not np.isfinite(row["se"]):
            continue
        value = truth.loc[key, where]
        value = np.exp(value) if row["scale"] == "odds ratio" else value
        kind = "discrete" if row["scale"] == "odds ratio" else "continuous"
        inside = row["lower"] <= value <= row["upper"]
        found.setdefault(f"{row['of']}, {kind}", []).append(bool(inside))
    return {name: float(np.mean(values)) for name, values in found.items()}


def effects_on(net: pb.Network, child: str, table: pd.DataFrame) -> np.ndarray:
    """Mean coefficients of a continuous child, in its SDs for one SD of a continuous parent."""
    fit = net.fits[child]
    sd = table.groupby("F")[[c for c in table if table[c].dtype.kind == "f"]].std().mean()
    unit = np.array([sd.get(name, 1.0) for name in fit.parents])
    return fit.coef[:, 1:].mean(axis=0) * unit / sd[child]


def measure(cell: tuple[float, str, int]) -> list[dict[str, Any]]:
    """A row for each way to deal with the gaps of one table."""
    warnings.simplefilter("ignore")
    share, kind, number = cell
    true, table, gaps, decides = drawn(*cell)
    known = pb.Constraints(required=true.dag.arcs)
    made: list[dict[str, Any]] = []
    full, separated = np.zeros(0), set[str]()
    for how in HOW:
        row: dict[str, Any] = {"share": share, "kind": kind, "how": how}
        made.append(row)
        source = table if how == "full" else gaps
        options: dict[str, Any] = {"group": "F", "missing": "em" if how == "em" else "drop"}
        try:
            start = time.perf_counter()
            found = pb.learn(source, **options, preset="paper")
            row["time"] = time.perf_counter() - start
            row["shd"] = pb.metrics.shd(true.dag, found.dag)
            net = pb.learn(
                source, **options, pooling=POOLED, search=Fixed(), constraints=known, preset="paper"
            )
        except pb.PoolbnError:  # no rows are left of a data set, or one level of a column
            continue
        if true.dag.parents(decides):
            effects = effects_on(net, decides, table)
            full = effects if how == "full" else full
            if len(effects) == len(full):
                row["error"] = float(np.mean((effects - full) * np.sign(full)))
        if how == "full":
            fits = net.fits.items()
            separated = {name for name, fit in fits if fit.status is pb.Status.SEPARATED}
        if how != "drop" and number % COVERED == 0:
            row |= covered(true, net, separated)
    return made


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One row for each kind of table."""
    keys = ["kind", "share"]
    made = found.pivot_table(index=keys, columns="how", values="shd").add_prefix("SHD ")
    paired = found["shd"].to_numpy().reshape(-1, len(HOW))
    for k, how in enumerate(HOW[1:], start=1):
        away = pd.Series(paired[:, k] - paired[:, 0]).groupby(
            [found[key].to_numpy()[:: len(HOW)] for key in keys]
        )
        made[f"{how} - full"], made[f"se {how} - full"] = away.mean(), away.sem()
    error = found.groupby([*keys, "how"])["error"].agg(["mean", "sem"]).unstack("how")
    for how in HOW[1:]:
        made[f"bias {how}"], made[f"se bias {how}"] = error["mean", how], error["sem", how]
    for how, of, on in product(HOW[:2], ("data sets", "population"), ("continuous", "discrete")):
        made[f"{of}, {on}, {how}"] = found[found["how"] == how].groupby(keys)[f"{of}, {on}"].mean()
    made["seconds"] = found[found["how"] == "em"].groupby(keys)["time"].median()
    return made.reset_index()


def markdown(made: pd.DataFrame) -> str:
    """The same for the documentation, a row for each number."""
    heads = [f"{row.kind}, {row.share:.0%}" for row in made.itertuples()]
    lines = [["", *heads], ["---"] * (len(heads) + 1)]
    for name in made.columns[2:]:
        form = ".2f" if "SHD" in name or "full" in name.split(", ")[0] else ".3f"
        lines.append([name, *(format(value, form) for value in made[name])])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="the number of the first table")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="a file for what each table gave")
    parser.add_argument("--out", type=Path)
    options = parsed(parser, tables=1)
    numbers = range(options.first, options.first + options.tables)
    cells = [cell[::-1] for cell in product(numbers, KINDS, SHARES)]
    rows: list[dict[str, Any]] = []
    for some in in_processes(measure, cells, options.workers):
        rows += some
        if options.rows:  # what is there if it is stopped
            pd.DataFrame(rows).to_csv(options.rows, index=False)
    made = summary(pd.DataFrame(rows))
    text = markdown(made)
    print(text)
    if options.out:
        options.out.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
