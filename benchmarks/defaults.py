"""What should `pb.learn` do by default? Graphs of the default and of what it might be instead.

Each part prints a table of mean structural Hamming distances (of CPDAGs) to the true graph, with
standard errors of the difference from the default on the same tables. Columns stand in random
order. Results go to a file as they come, and a run that was stopped goes on where it was.

- worlds: nine worlds that are not the paper's generator (worlds.py);
- paper: the paper's generator, heterogeneous and homogeneous data sets;
- levels: four and ten columns whose levels go together; the share of tables in which exactly the
  right graph is found, too;
- mixed: half of the columns discrete;
- optimum: how often searches reach the score of the exact optimum;
- median: the median graph of the exact posterior beside the graph with the best score.

    python benchmarks/defaults.py worlds [--tables 20] [--seed 0] [--runs FILE] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tiny import parsed, tiny
from worlds import WORLDS, correlated, world

import poolbn as pb
from poolbn.metrics import shd

POOLED = pb.Partial(residuals="pooled")
DEFAULT = "default"
MODELS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "default by bic-h": {"score": "bic-h"},
    "auto before": {"pooling": "auto", "score": "bic-h", "search": "hc"},
    "paper": {"preset": "paper"},
    "paper, auto search": {"preset": "paper", "search": "auto"},
    "no pooling": {"pooling": "none", "score": "bic", "search": "auto"},
    "complete": {"pooling": "complete", "score": "bic", "search": "auto"},
    "gprior": {"pooling": POOLED, "score": "gprior", "search": "auto"},
    "PC": {"search": "pc"},
}
MIXED = (DEFAULT, "auto before", "paper", "no pooling", "gprior")
Table = tuple[pb.Dag, pd.DataFrame]
Cell = dict[str, Any]


def of_paper(cell: Cell, seed: int) -> Table:
    """A table of the paper's generator, its columns shuffled."""
    same = cell["data sets"] == "homogeneous"
    N, parents, F, rows = cell["N"], cell["parents"], cell["F"], cell["rows"]
    dag = pb.random_dag(N, parents, seed=seed)
    true = pb.random_network(dag, F, seed=seed, heterogeneous=not same)
    return dag, _shuffled(pb.random_table(true, rows, seed=seed), seed)


def of_mixed(cell: Cell, seed: int) -> Table:
    """Half of the columns discrete; tables in which one has a single level are not taken."""
    for number in range(seed * 1000, seed * 1000 + 1000):
        dag = pb.random_dag(cell["N"], 1.5, seed=number)
        true = pb.random_network(dag, cell["F"], discrete=0.5, seed=number)
        frame = pb.random_table(true, cell["rows"], seed=number)
        if (frame.nunique() > 1).all():
            return dag, _shuffled(frame, number)
    raise RuntimeError("no table without a constant column")


def _shuffled(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    names = [name for name in frame.columns if name != "F"]
    return frame[[*np.random.default_rng(seed).permutation(names), "F"]]


def of_levels(cell: Cell, seed: int) -> Table:
    """Levels that go together."""
    binary = {"continuous": (), "mixed": (1, 3) if cell["N"] == 4 else (1, 3, 6, 7)}
    return correlated(
        cell["correlation"], seed, N=cell["N"], F=cell["F"], rows=cell["rows"],
        binary=binary[cell["columns"]],
    )  # fmt: skip


def cells(**axes: Any) -> list[Cell]:
    """All combinations."""
    return [dict(zip(axes, of, strict=True)) for of in product(*axes.values())]


SIZES = tiny(((5, 30), (15, 30), (5, 100)), ((5, 30),))
PARTS: dict[str, tuple[list[Cell], Callable[[Cell, int], Table], tuple[str, ...]]] = {
    "worlds": (
        [{"world": w, "F": F, "rows": n} for F, n in SIZES for w in tiny(WORLDS, WORLDS[:2])],
        lambda cell, seed: world(cell["world"], seed, F=cell["F"], rows=cell["rows"]),
        tiny(tuple(MODELS), (DEFAULT, "paper")),
    ),
    "paper": (
        cells(**{
            "data sets": tiny(("heterogeneous", "homogeneous"), ("heterogeneous",)),
            "N": tiny((10, 20, 50), (5,)), "parents": tiny((1, 2, 4), (1,)),
            "F": tiny((2, 5, 10, 20), (3,)), "rows": tiny((20, 50), (20,)),
        }),
        of_paper,
        tiny((DEFAULT, "auto before", "paper", "no pooling", "complete"), (DEFAULT, "paper")),
    ),
    "levels": (
        [
            cell
            for F, rows in tiny(((10, 50), (20, 200)), ((4, 10),))
            for cell in cells(
                columns=tiny(("continuous", "mixed"), ("continuous",)),
                N=tiny((4, 10), (4,)),
                F=(F,),
                rows=(rows,),
                correlation=tiny((0.0, 0.3, 0.6, 1.0), (0.6,)),
            )
        ],
        of_levels,
        tiny((DEFAULT, "default by bic-h", "auto before", "no pooling", "PC"), (DEFAULT, "PC")),
    ),
    "mixed": (
        cells(N=tiny((6, 12), (4,)), F=tiny((5, 20), (3,)), rows=tiny((20, 100), (30,))),
        of_mixed,
        tiny(MIXED, (DEFAULT, "paper")),
    ),
}  # fmt: skip


def learned(frame: pd.DataFrame, model: dict[str, Any]) -> tuple[pb.Network, float]:
    """A network, and its processor time."""
    start = time.process_time()
    net = pb.learn(frame, group="F", **model)
    return net, time.process_time() - start


def runs(part: str, tables: int, seed: int, known: pd.DataFrame) -> Iterator[Cell]:
    """Of each table and model what is not known yet; table by table, so that any stop is fair."""
    where, draw, models = PARTS[part]
    done = (
        set() if known.empty else {tuple(map(str, row)) for row in known[[*_keys(part)]].to_numpy()}
    )
    for number, cell in product(range(seed, seed + tables), where):
        record = {**cell, "table": number}
        left = [m for m in models if (*map(str, record.values()), m) not in done]
        if not left:
            continue
        dag, frame = draw(cell, number)
        for model in left:
            net, seconds = learned(frame, MODELS[model])
            found = {"shd": shd(dag, net.dag), "seconds": seconds}
            yield {**record, "model": model, **found}


def _keys(part: str) -> list[str]:
    return [*PARTS[part][0][0], "table", "model"]


def told(part: str, found: pd.DataFrame) -> str:
    """A table: a row for each cell, and the mean of all."""
    where, _, models = PARTS[part]
    keys = [*where[0]]
    wide = found.pivot(index=[*keys, "table"], columns="model", values="shd")[[*models]].dropna()
    right = (wide == 0).groupby(level=keys, sort=False).mean()
    groups = wide.groupby(level=keys, sort=False)
    lines = [
        " | ".join([*keys, "tables", *models]),
        " | ".join(["---"] * (len(keys) + 1 + len(models))),
    ]
    for name, own in [*groups, ("mean", wide)]:
        cell = [*map(str, name if isinstance(name, tuple) else (name,))]
        cell += [""] * (len(keys) - len(cell)) + [str(len(own))]
        for model in models:
            away = own[model] - own[DEFAULT]
            text = f"{own[model].mean():.1f}"
            if model != DEFAULT and len(own) > 1:
                text += f" ({away.mean():+.1f} ± {away.std(ddof=1) / len(own) ** 0.5:.1f})"
            if part == "levels" and name in right.index:
                text = f"{right.loc[name, model]:.0%}, {text}"
            cell.append(text)
        lines.append(" | ".join(cell))
    times = found.groupby("model")["seconds"].mean()
    seconds = ", ".join(f"{model} {times[model]:.2f}" for model in models)
    return "\n".join(f"| {line} |" for line in lines) + f"\n\nProcessor seconds a table: {seconds}."


def optimum(tables: int, seed: int) -> str:
    """Shares of tables in which a search has the score of the exact optimum."""
    searches = {
        "orders": pb.OrderSearch(),
        "one start": pb.OrderSearch(starts=1),
        "auto": "auto",
        "hc": "hc",
    }
    lines = [
        "| tables | | " + " | ".join(searches) + " |",
        "| --- |" * 1 + " --- |" * (1 + len(searches)),
    ]
    kinds: dict[str, Callable[[int], Table]] = {
        "N = 10, paper's": lambda k: of_paper(
            {"data sets": "heterogeneous", "N": tiny(10, 5), "parents": (1, 2, 4)[k % 3],
             "F": (2, 5, 10, 20)[k % 4], "rows": (50, 20)[k % 2]}, seed + k),
        "mixed, 12 to 14 columns": lambda k: of_mixed(
            {"N": tiny(12 + k % 3, 4), "F": (5, 10)[k % 2], "rows": (30, 60)[k % 2]}, seed + k),
    }  # fmt: skip
    for name, draw in kinds.items():
        hits, short = dict.fromkeys(searches, 0), dict.fromkeys(searches, 0.0)
        for k in range(tables):
            _, frame = draw(k)
            table = pb.table(frame, group="F")
            best = pb.learn(table, pooling=POOLED, score="bic-w", search=pb.Exact(max_parents=4))
            for key, search in searches.items():
                limit = {"constraints": {"max_parents": 4}}
                net = pb.learn(table, pooling=POOLED, score="bic-w", search=search, **limit)
                hits[key] += net.score > best.score - 1e-6
                short[key] += best.score - net.score
        row = [f"{hits[key]} of {tables}, {short[key] / tables:.2f} below" for key in searches]
        lines.append(f"| {name} | reached | " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def median(tables: int, seed: int) -> str:
    """Distances of the best graph and of the graph of all arcs that are more probable than not."""
    eight = cells(**{
        "data sets": ("heterogeneous",), "N": (tiny(8, 4),), "parents": tiny((1, 2, 4), (1,)),
        "F": tiny((2, 5, 10), (3,)), "rows": tiny((20, 50), (20,)),
    })  # fmt: skip
    lines = ["| tables | | best graph | median graph |", "| --- | --- | --- | --- |"]
    for name, where, draw in (
        ("worlds", *PARTS["worlds"][:2]),
        ("paper's generator, eight columns", eight, of_paper),
    ):
        found = []
        for number, cell in product(range(seed, seed + tables), where):
            dag, frame = draw(cell, number)
            best = pb.learn(frame, group="F").dag
            post = pb.arc_posterior(frame, group="F", pooling=POOLED, score="bic-w", prior="dags")
            found.append((shd(dag, best), shd(dag, post.median_graph())))
        one, other = np.array(found, dtype=float).T
        away = other - one
        lines.append(
            f"| {name} | {len(found)} | {one.mean():.1f} | {other.mean():.1f} "
            f"({away.mean():+.1f} ± {away.std(ddof=1) / len(away) ** 0.5:.1f}) |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"optimum": optimum, "median": median}
    parser.add_argument("part", nargs="?", default="worlds", choices=[*PARTS, *parts])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--out", type=Path)
    options = parsed(parser, tables=2)
    warnings.simplefilter("ignore")
    if options.part in parts:
        text = parts[options.part](options.tables, options.seed)
    else:
        known = pd.DataFrame()
        if options.runs is not None and options.runs.exists():
            known = pd.read_json(options.runs, lines=True, precise_float=True)
        made = []
        for record in runs(options.part, options.tables, options.seed, known):
            made.append(record)
            if options.runs is not None:
                with options.runs.open("a") as file:
                    file.write(json.dumps(record) + "\n")
        text = told(options.part, pd.concat([known, pd.DataFrame(made)], ignore_index=True))
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
