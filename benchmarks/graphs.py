"""Which model finds the best graphs, in each kind of data sets of the paper's study?

Reads the results of a study (`python -m benchmarks.study report` writes them) and writes a table:
mean SHD of the models that were learned from all data sets, the lowest bold, and the median KL
beside it.

    python benchmarks/graphs.py [results/residuals/results.parquet] [--out results/graphs.md]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tiny import parsed

RESULTS = Path(__file__).resolve().parents[1] / "results" / "residuals" / "results.parquet"
KIND = ["N", "mean_parents", "F"]
TITLES = {"N": "N", "mean_parents": "mean parents", "F": "\\|F\\|"}


def markdown(table: pd.DataFrame, scenario: str) -> str:
    """The rows of one scenario."""
    own = table[table["scenario"] == scenario]
    size = own.groupby("model").size()
    models = [name for name in own["model"].drop_duplicates() if size[name] == size.max()]
    own = own[own["model"].isin(models)]
    shd = own.groupby([*KIND, "model"])["shd"].mean().unstack()[models]
    kl = own.groupby([*KIND, "model"])["kl"].median().unstack()[models]
    lines = [
        " | ".join([*TITLES.values(), *(f"{name}: SHD (KL)" for name in models)]),
        " | ".join("---" for _ in [*KIND, *models]),
    ]
    for kind, row in shd.iterrows():
        cells = []
        for name in models:
            text = f"{row[name]:.1f}"
            text = f"**{text}**" if row[name] == row.min() else text
            cells.append(f"{text} ({kl.loc[kind, name]:.3g})")
        lines.append(" | ".join([*map(str, kind), *cells]))
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    """Print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--out", type=Path)
    options = parsed(parser)
    table = pd.read_parquet(options.results)
    text = "\n\n".join(
        f"{scenario.capitalize()} data sets\n\n{markdown(table, scenario)}"
        for scenario in ("balanced", "unbalanced", "homogeneous")
    )
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
