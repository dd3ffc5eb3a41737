"""How many arcs change when columns are shuffled, rows are shuffled, and 1% of rows are left out?

An arc that is added, removed or turned counts one. Real tables are those of real_tables.py with
four columns or more, read as `pb.look` proposes; simulated ones are the paper's generator with
heterogeneous data sets, and columns of which four of ten are discrete and levels go together.

    python benchmarks/stability.py [--draws 1] [--simulated 8] [--most 200] [--out FILE]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from defaults import of_paper
from real_tables import TABLES, table
from tiny import parsed
from worlds import correlated

import poolbn as pb

MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "auto, bic-h, hill climbing": {"pooling": "auto", "score": "bic-h", "search": "hc"},
    'preset="paper"': {"preset": "paper"},
}
FEWEST = 4  # columns
Source = tuple[str, pd.DataFrame, dict[str, Any]]


def real(most: int) -> Iterator[Source]:
    """Tables that are not simulated, of at most so many rows."""
    for path in sorted(TABLES.glob("*.csv.gz"), key=lambda path: path.name.lower()):
        frame, reading, kinds = table(path.name.split(".")[0])
        if len(kinds) >= FEWEST and len(frame) <= most:
            yield "real", frame, reading


def simulated(tables: int) -> Iterator[Source]:
    """Tables whose columns stand in random order already."""
    for seed in range(7000, 7000 + tables):
        cell = {"data sets": "heterogeneous", "N": 10, "parents": 2, "F": 10, "rows": 50}
        yield "simulated, continuous", of_paper(cell, seed)[1], {"group": "F"}
    for seed in range(7000, 7000 + tables):
        _, frame = correlated(0.6, seed, N=10, F=10, rows=50, binary=(1, 3, 6, 7))
        yield "simulated, mixed", frame, {"group": "F"}


def changed(frame: pd.DataFrame, draw: int) -> dict[str, pd.DataFrame]:
    """The table in three ways that should change nothing, or little."""
    rng = np.random.default_rng(draw)
    kept = np.sort(rng.permutation(len(frame))[len(frame) // 100 + 1 :])
    return {
        "columns shuffled": frame[rng.permutation(frame.columns)],
        "rows shuffled": frame.iloc[rng.permutation(len(frame))],
        "1% of rows left out": frame.iloc[kept],
    }


def arcs(frame: pd.DataFrame, reading: dict[str, Any], model: str) -> set[tuple[str, str]]:
    """Of the network that is learned; columns are named in the order of the table."""
    columns = reading.get("columns")
    own = {} if columns is None else {"columns": [c for c in frame.columns if c in columns]}
    return set(pb.learn(frame, **reading | own, **MODELS[model]).dag.arcs)


def measured(sources: Iterator[Source], draws: int) -> pd.DataFrame:
    """A row for each table, model, way and draw."""
    found = []
    for which, frame, reading in sources:
        for model in MODELS:
            first = arcs(frame, reading, model)
            for draw in range(draws):
                for how, other in changed(frame, draw).items():
                    away = {frozenset(arc) for arc in first ^ arcs(other, reading, model)}
                    found.append((which, model, how, len(first), len(away)))
    return pd.DataFrame(found, columns=["tables", "model", "how", "arcs", "changed"])


def told(found: pd.DataFrame) -> str:
    """Means of arcs that change, and in brackets the share of networks in which any does."""
    lines = [f"| | {' | '.join(MODELS)} |", f"| --- |{' --- |' * len(MODELS)}"]
    for (which, how), rows in found.groupby(["tables", "how"], sort=False):
        cells = []
        for model in MODELS:
            own = rows[rows["model"] == model]["changed"]
            cells.append(f"{own.mean():.2f} ({(own > 0).mean():.0%})")
        lines.append(f"| {which}: {how} | {' | '.join(cells)} |")
    for which, rows in found.groupby("tables", sort=False):
        means = [f"{rows[rows['model'] == model]['arcs'].mean():.1f}" for model in MODELS]
        lines.append(f"| {which}: arcs | {' | '.join(means)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--simulated", type=int, default=8)
    parser.add_argument("--most", type=int, default=200, help="rows of a real table")
    parser.add_argument("--out", type=Path)
    options = parsed(parser, draws=1, simulated=1, most=100)
    warnings.simplefilter("ignore")
    found = [
        measured(sources, options.draws)
        for sources in (real(options.most), simulated(options.simulated))
    ]
    text = told(pd.concat(found, ignore_index=True))
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
