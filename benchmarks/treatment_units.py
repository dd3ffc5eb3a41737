"""Do intervals of the mean effect of a treatment cover 95% where data sets have units inside?

Each cell has K tables of F data sets with U units of 1 to 8 rows. Levels of data sets vary with an
SD of 0.5, those of units with one of 1; residuals have one of 1. The treatment is drawn by lot for
each unit or for each row. `mean_lower` and `mean_upper` of `pb.treatment_effects` are those of
`mean_effect`; beside them those that it gives where rows count as independent.

    python benchmarks/treatment_units.py [--tables K] [--smoke]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from tiny import parsed, tiny

from poolbn.assess.treatment import Rows, mean_effect

DATA_SETS, UNITS = tiny((3, 10, 30), (3,)), tiny((5, 20), (5,))
ROWS, EFFECT, LEVEL_SD, UNIT_SD = 8, 0.7, 0.5, 1.0
RATES = "rate ratio, mean 3", "rate ratio, overdispersed"
HIGHER = "odds ratio of a higher level"
KINDS = ("difference", "odds ratio, 40%", "odds ratio, 10%", *RATES, HIGHER)


def drawn(
    rng: np.random.Generator, of: str, F: int, U: int, *, by_unit: bool
) -> tuple[Rows, str, np.ndarray]:
    """Rows, the kind of the outcome, and the unit of each row."""
    sizes = rng.integers(1, ROWS + 1, size=F * U)
    unit = np.repeat(np.arange(F * U), sizes)
    data_set = unit // U
    arm = rng.random(F * U)[unit] if by_unit else rng.random(len(unit))
    x = (arm < 0.5).astype(float)
    eta = LEVEL_SD * rng.normal(size=F)[data_set] + UNIT_SD * rng.normal(size=F * U)[unit]
    eta += EFFECT * x
    if of == "difference":
        return Rows(x, eta + rng.normal(size=len(x)), data_set, F), "continuous", unit
    if of == HIGHER:
        y = np.digitize(eta + rng.logistic(size=len(x)), [-1.0, 0.3, 1.5]).astype(float)
        return Rows(x, y, data_set, F), "ordinal", unit
    if of.startswith("odds"):
        base = math.log(0.4 / 0.6 if "40" in of else 1 / 9)
        y = (rng.random(len(x)) < 1 / (1 + np.exp(-base - eta))).astype(float)
        return Rows(x, y, data_set, F), "discrete", unit
    more = rng.gamma(2.0, 0.5, size=len(x)) if "over" in of else 1.0
    return Rows(x, rng.poisson(3 * more * np.exp(eta)).astype(float), data_set, F), "count", unit


def cell(of: str, F: int, U: int, *, by_unit: bool, tables: int) -> tuple[float, float, float]:
    """Coverage with units, without, and the share of tables that have an interval."""
    rng = np.random.default_rng([2027, KINDS.index(of), F, U, by_unit])
    covered = np.zeros((2, tables))
    for k in range(tables):
        rows, kind, unit = drawn(rng, of, F, U, by_unit=by_unit)
        for way, units in enumerate((unit, None)):
            found = mean_effect(rows, kind, 0.95, units)
            known = math.isfinite(found.value)
            covered[way, k] = found.lower <= EFFECT <= found.upper if known else math.nan
    shares = np.nanmean(covered, axis=1)
    return float(shares[0]), float(shares[1]), float(np.isfinite(covered[0]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=400)
    options = parsed(parser, tables=3)
    print(f"Coverage in percent with units, and without; {options.tables:,} tables in each cell.\n")
    print("| effect | treatment drawn for | data sets |" + "".join(f" {U} units |" for U in UNITS))
    print("| --- | --- |" + " --- |" * (len(UNITS) + 1))
    for of in KINDS:
        for by_unit in (True, False):
            for F in DATA_SETS:
                made = [cell(of, F, U, by_unit=by_unit, tables=options.tables) for U in UNITS]
                told = "".join(
                    f" {100 * a:.1f}, {100 * b:.1f}"
                    + (f" ({100 * (1 - c):.0f}% without an interval) |" if c < 0.995 else " |")
                    for a, b, c in made
                )
                print(f"| {of} | {'units' if by_unit else 'rows'} | {F} |{told}", flush=True)


if __name__ == "__main__":
    main()
