"""Do 95% intervals of a row cover it where its unit has earlier rows?

Each cell has K tables of F data sets with U units of 2 to 8 rows, whose levels differ with an SD of
1, as residuals have. Networks learn from all rows but the last of each unit, which they predict
with and without the others as its history.

    python benchmarks/known_units.py [--tables K] [--smoke]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb

DATA_SETS, UNITS = tiny((4, 10), (4,)), tiny((5, 20), (5,))
POOLINGS = ("complete", "partial")
ROWS, LEVEL_SD, SLOPE_SD = 8, 0.5, 0.3
GROUP = ["clinic", "patient"]


def drawn(rng: np.random.Generator, F: int, U: int, *, alike: bool) -> pd.DataFrame:
    """y given x, with levels of patients; clinics differ unless they are alike."""
    size = rng.integers(2, ROWS + 1, F * U)
    patient = np.repeat(np.arange(F * U), size)
    clinic, n = patient // U, len(patient)
    level, slope = rng.normal(size=(2, F)) * np.array([[LEVEL_SD], [SLOPE_SD]]) * (not alike)
    x = rng.normal(size=n)
    y = level[clinic] + (0.5 + slope[clinic]) * x + rng.normal(size=F * U)[patient]
    y += rng.normal(size=n)
    return pd.DataFrame({"clinic": clinic, "patient": patient, "x": x, "y": y})


def cell(pooling: str, F: int, U: int, tables: int) -> tuple[float, float, float]:
    """Coverage with and without the history, and how wide the first are beside the others."""
    rng, found = np.random.default_rng([2028, F, U]), []
    for _ in range(tables):
        rows = drawn(rng, F, U, alike=pooling == "complete")
        last = ~rows["patient"].duplicated(keep="last")
        earlier, asked = rows[~last], rows[last]
        net = pb.fit([("x", "y")], earlier, group=GROUP, pooling=pooling)
        told = net.predict(asked, "y", history=earlier), net.predict(asked, "y")
        y = asked["y"]
        covered = [((of["lower"] <= y) & (y <= of["upper"])).mean() for of in told]
        known, unknown = ((of["upper"] - of["lower"]).mean() for of in told)
        found.append((*covered, known / unknown))
    return tuple(np.mean(found, axis=0).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=100)
    options = parsed(parser, tables=2)
    warnings.simplefilter("ignore")
    print(f"Coverage in percent with a history, and without; {options.tables:,} tables a cell.\n")
    print("| pooling | data sets | units | with | without | width |")
    print("| --- | --- | --- | --- | --- | --- |")
    for pooling in POOLINGS:
        for F in DATA_SETS:
            for U in UNITS:
                known, unknown, width = cell(pooling, F, U, options.tables)
                shares = f"{100 * known:.1f} | {100 * unknown:.1f} | {width:.2f} |"
                print(f"| {pooling} | {F} | {U} | {shares}", flush=True)


if __name__ == "__main__":
    main()
