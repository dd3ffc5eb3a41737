"""Graphs learned from simulated tables with discrete and continuous columns.

Networks of 6 and 12 nodes, half of them discrete, 1.5 parents on average (`pb.random_network`,
`discrete=0.5`); 5 and 20 data sets of 20 and 100 rows. Ways to a graph, on the same tables, all by
hill climbing:

- poolbn: `pb.learn(table, preset="paper")`, columns of all kinds.
- bic-cg: bnlearn's score, with the data set as a parent of all nodes (conditional_gaussian.py).
- numbers: codes of levels as if they were continuous, `pb.learn(..., preset="paper")`.
- glmer: lmer and glmer (nAGQ = 1) with all coefficients random, and BIC; on the smallest tables, of
  networks whose discrete nodes have two levels (mixed_glmer.R; needs R with lme4).

SHD is that of CPDAGs. "more" is how much higher it is than poolbn's on the same tables, with its
standard error. Then, for each kind of pair of nodes, edges that are missing, extra, and directed
otherwise than in the true CPDAG, on average. A table with a column of one level is left out, and
the next one taken.

Results go to a file as they come, and a run that was stopped goes on where it was.

    python benchmarks/mixed.py --tables 30 --runs mixed.jsonl --out results/mixed.md
    python benchmarks/mixed.py --glmer --tables 15 --runs glmer.jsonl --out results/mixed_glmer.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from conditional_gaussian import ConditionalGaussian, climb
from tiny import parsed, tiny

import poolbn as pb

CELLS = tiny(
    tuple(product((6, 12), (5, 20), (20, 100))), ((4, 3, 30),)
)  # nodes, data sets, rows of each
SMALLEST = (6, 5, 20)
PARENTS = 1.5
KEYS = ["nodes", "data sets", "rows"]
Cell = tuple[int, int, int]


def tables(cell: Cell, *, binary: bool) -> Iterator[tuple[int, pb.Network, pd.DataFrame]]:
    """Numbers, true networks and their tables, without end."""
    N, F, rows = cell
    number = -1
    while True:
        number += 1
        dag = pb.random_dag(N, PARENTS, seed=number)
        true = pb.random_network(dag, F, discrete=0.5, seed=number)
        levels = [len(fit.categories) for fit in true.fits.values() if hasattr(fit, "categories")]
        if binary and max(levels) > 2:
            continue
        table = pb.random_table(true, rows, seed=number)
        if table[list(dag.nodes)].nunique().min() > 1:
            yield number, true, table


def by_poolbn(frame: pd.DataFrame) -> pb.Dag:
    """Columns of all kinds."""
    return pb.learn(frame, group="F", preset="paper").dag


def by_bic_cg(frame: pd.DataFrame) -> pb.Dag:
    """As bnlearn would."""
    scores = ConditionalGaussian(frame, "F")
    return climb(scores.nodes, scores)


def as_numbers(frame: pd.DataFrame) -> pb.Dag:
    """Codes of levels are numbers."""
    made = frame.drop(columns="F").apply(lambda column: column if column.dtype == float
                                         else column.rank(method="dense"))  # fmt: skip
    return pb.learn(made.assign(F=frame["F"]), group="F", preset="paper").dag


class Glmer:
    """R, which keeps running, and answers with scores of families."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("mixed_glmer.R")
        self.r = subprocess.Popen(
            ["Rscript", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *words: str) -> str:
        """A line to R, and its answer."""
        assert self.r.stdin is not None
        assert self.r.stdout is not None
        self.r.stdin.write("\t".join(words) + "\n")
        self.r.stdin.flush()
        answer = self.r.stdout.readline()
        if not answer:
            raise RuntimeError("R has ended")
        return answer.strip()

    def __call__(self, frame: pd.DataFrame) -> pb.Dag:
        """The best graph that hill climbing finds."""
        with tempfile.NamedTemporaryFile(suffix=".csv", mode="w") as file:
            frame.to_csv(file, index=False)
            file.flush()
            self.ask("table", file.name)
        nodes = [name for name in frame.columns if name != "F"]
        return climb(nodes, lambda node, parents: float(self.ask("family", node, *parents)))


def differences(true: pb.Dag, found: pb.Dag, discrete: set[str]) -> dict[str, int]:
    """Pairs of nodes between which the CPDAGs differ, by kind and by how."""
    one, two = edges(true), edges(found)
    counts = {f"{kind} {how}": 0 for kind in ("cc", "cd", "dd")
              for how in ("missing", "extra", "direction")}  # fmt: skip
    for pair in one.keys() | two.keys():
        if one.get(pair) != two.get(pair):
            kind = ("cc", "cd", "dd")[len(pair & discrete)]
            how = "missing" if pair not in two else "extra" if pair not in one else "direction"
            counts[f"{kind} {how}"] += 1
    return counts


def edges(dag: pb.Dag) -> dict[frozenset[str], str]:
    """For each two nodes with an edge the one that it points to, "" if to neither."""
    graph = dag.cpdag()
    made = {frozenset(pair): "" for pair in graph.undirected}
    return made | {frozenset(arc): arc[1] for arc in graph.directed}


def measure(
    ways: dict[str, Callable[[pd.DataFrame], pb.Dag]], cells: tuple[Cell, ...], count: int,
    runs: Path, *, binary: bool,
) -> pd.DataFrame:  # fmt: skip
    """A row for each table and way; those in the file are not done again."""
    done = [json.loads(line) for line in runs.read_text().splitlines()] if runs.exists() else []
    keys = {
        (row["nodes"], row["data sets"], row["rows"], row["number"], row["way"]) for row in done
    }
    streams = {cell: tables(cell, binary=binary) for cell in cells}
    with runs.open("a") as file:
        for k in range(count):
            for cell, stream in streams.items():
                number, true, frame = next(stream)
                discrete = {node for node in true.dag.nodes if frame[node].dtype != float}
                for way, learn in ways.items():
                    if (*cell, number, way) in keys:
                        continue
                    start = time.perf_counter()
                    found = learn(frame)
                    seconds = time.perf_counter() - start
                    row: dict[str, Any] = dict(zip(KEYS, cell, strict=True))
                    row |= {"number": number, "way": way, "seconds": seconds}
                    row |= {"SHD": pb.metrics.shd(true.dag, found)}
                    row |= differences(true.dag, found, discrete)
                    done.append(row | {"found": found.to_modelstring()})
                    file.write(json.dumps(done[-1]) + "\n")
                    file.flush()
            print(f"{k + 1} of {count}", file=sys.stderr, flush=True)
    return pd.DataFrame(done)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One row for each cell and way."""
    ours = found[found["way"] == "poolbn"].set_index([*KEYS, "number"])["SHD"]
    found = found.join(ours.rename("ours"), on=[*KEYS, "number"])
    found["more"] = found["SHD"] - found["ours"]
    by = found.groupby([*KEYS, "way"])
    made = by["SHD"].agg(tables="size", SHD="mean", se="sem")
    made = made.join(by["more"].agg(more="mean", se_more="sem"))
    kinds = [name for name in found.columns if name[:2] in ("cc", "cd", "dd")]
    made = made.join(by[kinds].mean()).join(by["seconds"].median())
    order = [way for way in ("poolbn", "bic-cg", "numbers", "glmer") if way in set(found["way"])]
    return made.reindex(order, level="way").reset_index()


def markdown(made: pd.DataFrame) -> str:
    """The same for the documentation."""
    whole = {"nodes": "d", "data sets": "d", "rows": "d", "way": "s", "tables": "d"}
    form = [whole.get(name, ".2f") for name in made.columns]
    names = {"se_more": "se of more", "seconds": "s"}
    lines = [[names.get(name, name) for name in made.columns], ["---"] * len(form)]
    lines += [
        [format(cell, f) for cell, f in zip(row, form, strict=True)]
        for row in made.itertuples(index=False)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=30)
    parser.add_argument("--glmer", action="store_true", help="with glmer, on the smallest tables")
    parser.add_argument("--ways", nargs="*", help="only these")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    options = parsed(parser, tables=1)
    warnings.simplefilter("ignore", pb.DataWarning)
    ways = {"poolbn": by_poolbn, "bic-cg": by_bic_cg, "numbers": as_numbers}
    if options.glmer:
        ways["glmer"] = Glmer()
    if options.ways:
        ways = {way: ways[way] for way in options.ways}
    cells = (SMALLEST,) if options.glmer else CELLS
    found = measure(ways, cells, options.tables, options.runs, binary=options.glmer)
    if "poolbn" in set(found["way"]):
        text = markdown(summary(found))
        print(text)
        if options.out:
            options.out.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
