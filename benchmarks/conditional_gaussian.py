"""Conditional Gaussian networks: bnlearn's bic-cg in numpy, and poolbn's regressions beside it.

`ConditionalGaussian` is bnlearn's score, with the data set as a parent of every node; `climb` is
hill climbing with it. A continuous node has a regression on its continuous parents for each
configuration of its discrete ones and the data set, a discrete node a table for each; it has no
continuous parents. As bnlearn has it: residual SDs divide by degrees of freedom, configurations
that no row has count as parameters, and a regression of no more rows than coefficients makes the
family impossible.

The benchmark holds these scores, and those of `continuous="conditional"`, against bnlearn's own
numbers. Then, with "additive" and "auto":

- bnlearn's clgaussian.test: held-out rows with the true graph, and the SHD of learned graphs;
- nodes of real tables: which form "auto" takes, and held-out rows in ten folds;
- random networks whose discrete parents only shift levels, and others with slopes and variances of
  their own in each configuration: SHD, seconds, held-out rows;
- the trial: seconds to learn all its columns.

    python benchmarks/conditional_gaussian.py --out results/conditional.md
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tiny import parsed, tiny

import poolbn as pb

REFERENCE = Path(__file__).parents[1] / "tests" / "reference" / "scores"
TABLES = Path(__file__).parent / "tables"
SMALLEST = 1e-8  # residual SD
FOLDS, NETS = tiny(10, 2), tiny(20, 2)


class ConditionalGaussian:
    """Scores of families of one table.

    Args:
        frame: the table; columns of text are discrete.
        group: the column that is a parent of every node; None for none.
        score: "bic" or "loglik".
    """

    def __init__(self, frame: pd.DataFrame, group: str | None, score: str = "bic") -> None:
        self.always = [] if group is None else [group]
        self.nodes = [name for name in frame.columns if name != group]
        self.codes: dict[str, NDArray[np.int64]] = {}
        self.sizes: dict[str, int] = {}
        self.numbers: dict[str, NDArray[np.float64]] = {}
        for name in frame.columns:
            if name in self.always or not pd.api.types.is_numeric_dtype(frame[name]):
                levels, self.codes[name] = np.unique(frame[name].to_numpy(str), return_inverse=True)
                self.sizes[name] = len(levels)
            else:
                self.numbers[name] = frame[name].to_numpy(float)
        self.n = len(frame)
        self.penalty = math.log(self.n) / 2 if score == "bic" else 0.0

    def __call__(self, node: str, parents: tuple[str, ...]) -> float:
        """The score of a family."""
        if node in self.codes and not set(parents) <= set(self.codes):
            return -math.inf
        configuration, C = np.zeros(self.n, dtype=np.int64), 1
        for name in [*self.always, *(name for name in parents if name in self.codes)]:
            configuration = configuration * self.sizes[name] + self.codes[name]
            C *= self.sizes[name]
        if node in self.codes:
            K = self.sizes[node]
            loglik = _table(np.bincount(configuration * K + self.codes[node], minlength=C * K), K)
            return loglik - self.penalty * C * (K - 1)
        columns = [self.numbers[name] for name in parents if name in self.numbers]
        X = np.column_stack([np.ones(self.n), *columns])
        loglik = _regressions(X, self.numbers[node], configuration)
        return loglik - self.penalty * C * (len(columns) + 2)


def _table(counts: NDArray[np.int64], K: int) -> float:
    n = counts.reshape(-1, K)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = n * np.log(n / n.sum(axis=1, keepdims=True))
    return float(np.nansum(terms))


def _regressions(
    X: NDArray[np.float64], y: NDArray[np.float64], configuration: NDArray[np.int64]
) -> float:
    order = np.argsort(configuration, kind="stable")
    ends = np.flatnonzero(np.diff(configuration[order])) + 1
    parts = np.split(order, ends)
    q = X.shape[1]
    if min(len(rows) for rows in parts) <= q:
        return -math.inf
    total = 0.0
    for rows in parts:
        residuals = y[rows] - X[rows] @ np.linalg.lstsq(X[rows], y[rows], rcond=None)[0]
        squares = float(residuals @ residuals)
        variance = squares / (len(rows) - q)
        if variance < SMALLEST**2:
            return -math.inf
        total -= len(rows) / 2 * math.log(2 * math.pi * variance) + squares / variance / 2
    return total


def climb(nodes: list[str], score: Callable[[str, tuple[str, ...]], float]) -> pb.Dag:
    """Hill climbing: from no arcs, the best one to add, remove or reverse, while any helps."""
    memo: dict[tuple[str, frozenset[str]], float] = {}

    def local(node: str, parents: frozenset[str]) -> float:
        key = node, parents
        if key not in memo:
            memo[key] = score(node, tuple(name for name in nodes if name in parents))
        return memo[key]

    parents = {node: frozenset[str]() for node in nodes}
    while True:
        best, move = 1e-8, None
        for changed in _moves(nodes, parents):
            gain = sum(local(node, new) - local(node, parents[node]) for node, new in changed)
            if gain > best:
                best, move = gain, changed
        if move is None:
            return pb.Dag(nodes, [(parent, node) for node in nodes for parent in parents[node]])
        parents.update(move)


def _moves(
    nodes: list[str], parents: dict[str, frozenset[str]]
) -> Iterator[list[tuple[str, frozenset[str]]]]:
    for node in nodes:
        for other in nodes:
            if other == node:
                continue
            own = parents[node]
            if other in own:
                yield [(node, own - {other})]
                if not _reaches(parents, other, node, without=True):
                    yield [(node, own - {other}), (other, parents[other] | {node})]
            elif node not in parents[other] and not _reaches(parents, node, other):
                yield [(node, own | {other})]


def _reaches(
    parents: dict[str, frozenset[str]], start: str, end: str, *, without: bool = False
) -> bool:
    """Whether a directed path leads from start to end; `without` the arc between them."""
    todo, seen = [end], set()
    while todo:
        node = todo.pop()
        for parent in parents[node]:
            if without and (parent, node) == (start, end):
                continue
            if parent == start:
                return True
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return False


def against_bnlearn() -> str:
    """The scores, and poolbn's, against bnlearn's."""
    cases = json.loads((REFERENCE / "scores.json").read_text())["cases"][: tiny(None, 2)]
    rows = example()
    table = pb.table({"all": rows})
    how = pb.Complete("unbiased", continuous="conditional")
    worst, ours, compared, impossible = 0.0, 0.0, 0, 0
    for case in (case for case in cases if case["discrete"]):
        for group in (None, *case["discrete"]):
            for kind in ("loglik", "bic"):
                scores = ConditionalGaussian(rows, group, kind)
                for node, value in case["scores"][f"{kind}-cg"].items():
                    pa = [a for a, b in case["arcs"] if b == node]
                    if group is not None and group not in pa:
                        continue
                    found = scores(node, tuple(name for name in pa if name != group))
                    compared += 1
                    if math.isinf(float(value)):
                        impossible += 1
                        assert found == -math.inf, (case["net"], node)
                    else:
                        worst = max(worst, abs(found / value - 1))
                    if group is None and node not in case["discrete"]:
                        own = getattr(pb.fit_node(table, node, pa, pooling=how), kind)
                        same = own == float(value) or abs(own / float(value) - 1) < 1e-8
                        assert same, (case["net"], node)
                        ours = ours if math.isinf(own) else max(ours, abs(own / value - 1))
    assert worst < 1e-8
    return (
        f"{compared} scores of bnlearn's, {impossible} of them -inf in both; largest difference "
        f"{worst:.1e}, of poolbn's {ours:.1e}."
    )


TRUE = "[A][B][C][H][D|A:H][F|B:C][E|B:D][G|A:D:E:F]"
FORMS = ("additive", "auto")


def example() -> pd.DataFrame:
    """bnlearn's clgaussian.test."""
    with gzip.open(REFERENCE / "clgaussian.test.csv.gz") as file:
        return pd.read_csv(file)


def usual(form: str) -> pb.Auto:
    """The pooling that `pb.learn` has by default, with one form of continuous nodes."""
    return pb.Auto((pb.Complete(continuous=form), pb.Partial(residuals="pooled", continuous=form)))


def is_number(column: pd.Series) -> bool:
    """Whether a column is not discrete."""
    return bool(pd.api.types.is_numeric_dtype(column))


def by_bnlearn(train: pd.DataFrame, held: pd.DataFrame) -> float:
    """The log-likelihood of a held-out row with bnlearn's estimates, taken for certain."""
    total, dag = 0.0, pb.Dag(TRUE)
    for node in dag.nodes:
        others = [name for name in dag.parents(node) if is_number(train[name])]
        discrete = [name for name in dag.parents(node) if name not in others]
        for levels, some in held.groupby(discrete) if discrete else [((), held)]:
            own = train
            for name, level in zip(discrete, levels, strict=True):
                own = own[own[name] == level]
            if not is_number(train[node]):
                share = own[node].value_counts(normalize=True)
                total += float(np.log(some[node].map(share)).sum())
                continue
            X, Z = (np.column_stack([np.ones(len(of)), of[others]]) for of in (own, some))
            coef, squares, *_ = np.linalg.lstsq(X, own[node].to_numpy(), rcond=None)
            variance = float(squares[0]) / (len(X) - X.shape[1])
            e = some[node].to_numpy() - Z @ coef
            total -= float((e**2).sum() / variance + len(e) * math.log(2 * math.pi * variance)) / 2
    return total / len(held)


def bnlearns_example() -> list[str]:
    """Held-out rows with the true graph, and learned graphs."""
    rows = example()[: tiny(None, 400)]
    rows["half"] = np.where(np.arange(len(rows)) % 4 < 2, "one", "other")
    halves = (rows[::2], rows[1::2]), (rows[1::2], rows[::2])
    lines = [
        "Log-likelihood of a held-out row with the true graph:",
        "",
        "| estimates | odd rows held out | even rows held out |",
        "| --- | --- | --- |",
    ]
    own = [f"{by_bnlearn(*pair):.4f}" for pair in halves]
    lines.append(f"| bnlearn's | {' | '.join(own)} |")
    hows = {
        "complete pooling": lambda form: pb.Complete("unbiased", continuous=form),
        "partial pooling": lambda form: pb.Partial(continuous=form),
    }
    for name, how in hows.items():
        for form in FORMS:
            own = []
            for train, held in halves:
                net = pb.fit(TRUE, train, group="half", pooling=how(form))
                own.append(f"{net.loglik(held) / len(held):.4f}")
            lines.append(f"| {name}, {form} | {' | '.join(own)} |")
    lines += ["", "| learned from all rows | score | form | SHD |", "| --- | --- | --- | --- |"]
    for name, make in {**hows, "auto": usual}.items():
        for score in ("bic", "bic-h", "bic-w"):
            for form in FORMS:
                net = pb.learn(rows, group="half", pooling=make(form), score=score)
                lines.append(f"| {name} | {score} | {form} | {pb.metrics.shd(net, pb.Dag(TRUE))} |")
    return lines


def table_of(name: str) -> pd.DataFrame:
    """A real table."""
    if name == "trial":
        return pb.datasets.opt().rename(columns={"clinic": "group"})
    if name == "egsingle":
        frame = pd.read_csv(REFERENCE.parent / "ancova" / "data" / "egs_ret.csv")
        return frame.rename(columns={"F": "group"})
    frame = pd.read_csv(TABLES / f"{name}.csv.gz", dtype={"group": str})
    if name in ("whiteside", "iris"):  # no data sets, but a discrete column
        return frame.rename(columns={"group": "kind"}).assign(group="all")
    return frame.replace({"Sex": {0: "male", 1: "female"}})


# A child, and parents of which the first is discrete.
REAL = [
    ("trial", "calculus_5", ["treatment", "calculus_0"]),
    ("trial", "plaque_5", ["treatment", "plaque_0"]),
    ("trial", "birthweight_g", ["preterm", "gestation_days"]),
    ("CPS1985", "wage", ["ethnicity"]),
    ("egsingle", "math", ["retained"]),
    ("Orthodont", "distance", ["Sex", "age"]),
    ("MathAchieve", "MathAch", ["Sex", "SES"]),
    ("whiteside", "Gas", ["kind", "Temp"]),
    ("iris", "Petal.Width", ["kind", "Petal.Length"]),
]


def real_nodes() -> list[str]:
    """Which form is better on real tables, and on rows that were held out."""
    lines = [
        "| table | node | rows | data sets | BIC more | auto takes | held-out gain a row | (SE) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, child, parents in REAL[: tiny(None, 1)]:
        frame = table_of(name)[["group", child, *parents]].dropna().reset_index(drop=True)
        arcs = [(parent, child) for parent in parents]
        rng = np.random.default_rng(0)
        fold = rng.permutation(len(frame)) % FOLDS
        fits = {form: fitted(frame, arcs, form).fits[child] for form in (*FORMS, "conditional")}
        gains = []
        for k in range(FOLDS):
            train, held = frame[fold != k], frame[fold == k]
            held = held[held["group"].isin(train["group"])]
            nets = [fitted(train, arcs, form) for form in FORMS]
            plain, auto = (net.loglik(held) for net in nets)
            gains.append((auto - plain) / len(held))
        taken = "conditional" if fits["auto"].switches else "additive"
        more = fits["conditional"].bic - fits["additive"].bic
        sets, mean = frame["group"].nunique(), float(np.mean(gains))
        error = float(np.std(gains, ddof=1)) / math.sqrt(FOLDS)
        cells = [name, f"{child} given {', '.join(parents)}", len(frame), sets, f"{more:.1f}"]
        cells += [taken, f"{mean:.4f}", f"{error:.4f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def fitted(frame: pd.DataFrame, arcs: list[tuple[str, str]], form: str) -> pb.Network:
    """One node given its parents, in a network."""
    return pb.fit(arcs, frame, group="group", pooling=usual(form))


def with_own_regressions(dag: pb.Dag, frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Rows of the same graph, with slopes and variances of each configuration."""
    rng, made = np.random.default_rng(seed), frame.copy()
    codes, sets = np.unique(frame["F"], return_inverse=True)[1], frame["F"].nunique()
    for node in dag.topological_order():
        if not is_number(frame[node]):
            continue
        numbers = [p for p in dag.parents(node) if is_number(frame[p])]
        discrete = [p for p in dag.parents(node) if p not in numbers]
        cell = made.groupby(discrete).ngroup().to_numpy() if discrete else np.zeros(len(made), int)
        value = rng.normal(size=sets)[codes] + rng.normal(size=cell.max() + 1)[cell]
        for parent in numbers:
            own = rng.normal(size=cell.max() + 1) * 1.5
            own = (own + 0.3 * rng.normal(size=(sets, 1)))[codes, cell]
            value += own * (made[parent] - made[parent].mean()) / made[parent].std()
        sd = np.exp(0.5 * rng.normal(size=cell.max() + 1))[cell]
        made[node] = value + sd * rng.normal(size=len(made))
    return made


def worlds() -> list[str]:
    """SHD where levels only shift a node, and where configurations have own regressions."""
    names = ("discrete parents", "data sets", "rows of each", "form", "tables", "SHD", "(SE)")
    names = (*names, "seconds", "held-out row")
    lines = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    for sets, n in tiny(((5, 60), (10, 100)), ((3, 40),)):
        for world in ("shift levels", "regressions of their own"):
            found: dict[str, list[tuple[float, float, float]]] = {form: [] for form in FORMS}
            seed = 0
            while len(found["auto"]) < NETS:
                seed += 1
                dag = pb.random_dag(7, 1.5, seed=seed)
                true = pb.random_network(dag, sets, discrete=0.4, seed=seed)
                rows = pb.random_table(true, 2 * n, seed=seed)
                if world != "shift levels":
                    rows = with_own_regressions(dag, rows, seed)
                half = rows.groupby("F").cumcount() % 2 == 0
                train, held = rows[half], rows[~half]
                levels = [part[list(dag.nodes)].nunique().min() for _, part in train.groupby("F")]
                if min(levels) < 2:
                    continue
                for form in FORMS:
                    start = time.process_time()
                    net = pb.learn(train, group="F", pooling=usual(form))
                    seconds = time.process_time() - start
                    logs = net.loglik(held, rows=True)
                    row = logs[np.isfinite(logs)].mean()  # levels that learning did not see
                    found[form].append((pb.metrics.shd(net, dag), seconds, row))
            for form, values in found.items():
                shd, seconds, row = np.mean(values, axis=0)
                error = np.std([value[0] for value in values], ddof=1) / math.sqrt(NETS)
                cells = [world, sets, n, form, NETS, f"{shd:.2f}", f"{error:.2f}"]
                cells += [f"{seconds:.2f}", f"{row:.3f}"]
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def trial() -> list[str]:
    """Processor seconds to learn all columns of the trial, with the default score and search."""
    columns = tiny(None, ["age", "bmi", "tobacco", "plaque_0"])
    lines = ["| form | seconds | score |", "| --- | --- | --- |"]
    for form in FORMS:
        best, score = math.inf, 0.0
        for _ in range(tiny(3, 1)):
            start = time.process_time()
            net = pb.learn(
                pb.datasets.opt(),
                group="clinic",
                columns=columns,
                missing="drop",
                pooling=usual(form),
            )
            best, score = min(best, time.process_time() - start), net.score
        lines.append(f"| {form} | {best:.1f} | {score:.1f} |")
    return lines


def main() -> None:
    """All of it, in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="a file for the tables")
    out = parsed(parser).out
    warnings.simplefilter("ignore", pb.DataWarning)
    parts = {
        "bnlearn's scores": lambda: [against_bnlearn()],
        "bnlearn's clgaussian.test": bnlearns_example,
        "Nodes of real tables": real_nodes,
        "Simulated networks of seven columns": worlds,
        "The trial, all columns": trial,
    }
    text = ["# Regressions for each configuration of discrete parents", ""]
    for title, make in parts.items():
        text += [f"## {title}", "", *make(), ""]
        print(title, flush=True)
    if out:
        out.write_text("\n".join(text))
    else:
        print("\n".join(text))


if __name__ == "__main__":
    main()
