"""Do 95% intervals of effects cover 95%, and do tests at 5% reject 5%, with few data sets?

Tables have y = level + x'slope + error in F data sets: residual SD 1 (with --spread it differs,
with this SD of its logarithm), SD of levels 0.5, slopes around 1, means of parents with SD 0.5. For
each cell: coverage of the population's effect; coverage of the effects of data sets; how often the
range for a new data set has its effect; and the mean
width of their intervals over that of each data set's own t interval; with --tests how often equal
slopes (slope SD 0 is the null hypothesis), equal residual variances, and equal effects within and
between data sets are rejected.

    python benchmarks/few_data_sets.py [--tables K] [--parents P] [--spread S]
                                       [--residuals pooled] [--tests] [--cores C]
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import ndtr, stdtrit
from tiny import parsed, tiny

import poolbn as pb
from poolbn.nodes.intervals import own_estimates
from poolbn.nodes.terms import RESIDUAL

DATA_SETS, SLOPE_SDS = tiny((3, 4, 6, 10, 30), (4,)), tiny((0.0, 0.15, 0.5), (0.15,))
ROWS = tiny((4, 8, 20, 60), (8,))


def drawn(
    rng: np.random.Generator, F: int, rows: int, slope_sd: float, options: argparse.Namespace
) -> tuple[pb.GroupStats, np.ndarray]:
    """Sufficient statistics of a table, and the slopes, (F, p)."""
    p = options.parents
    slope = 1 + slope_sd * rng.normal(size=(F, p))
    x = rng.normal(size=(F, rows, p)) + 0.5 * rng.normal(size=(F, 1, p))
    sd = np.exp(options.spread * rng.normal(size=(F, 1)))
    y = 0.5 * rng.normal(size=(F, 1)) + np.einsum("jik,jk->ji", x, slope)
    table = np.concatenate([x, (y + sd * rng.normal(size=(F, rows)))[:, :, None]], axis=2)
    mean = table.mean(axis=1)
    away = table - mean[:, None]
    scatter = np.swapaxes(away, 1, 2) @ away
    names = (*(f"x{k}" for k in range(p)), "y")
    none = np.zeros(F, dtype=np.int64)
    return pb.GroupStats(names, tuple(range(F)), np.full(F, rows), mean, scatter, none), slope


def inside(middle: np.ndarray, half: np.ndarray, sd: float) -> float:
    """The probability that slopes of new data sets, around 0, are in intervals."""
    if sd == 0:
        return float(np.mean(np.abs(middle) < half))
    return float(np.mean(ndtr((middle + half) / sd) - ndtr((middle - half) / sd)))


def cell(F: int, rows: int, slope_sd: float, options: argparse.Namespace) -> dict[str, float]:
    """What K tables give."""
    rng = np.random.default_rng([F, rows, round(100 * slope_sd)])
    p = options.parents
    names = [f"x{k}" for k in range(p)]
    found = []
    for _ in range(options.tables):
        stats, slope = drawn(rng, F, rows, slope_sd, options)
        fit = pb.fit_node(stats, "y", names, pooling=pb.Partial(residuals=options.residuals))
        intervals = fit.intervals
        half = (stdtrit(intervals.df, 0.975) * intervals.se)[:, 1:]
        own, df = own_estimates(fit.sums), rows - p - 1
        alone = stdtrit(df, 0.975) * np.sqrt(own.rss[:, None] / df * own.cov[:, 1:])
        reach = stdtrit(fit.population_df, 0.975) * fit.population_se
        wide = stdtrit(fit.population_df, 0.975)[1:] * intervals.new_se[1:]
        row = {
            "population": np.mean(np.abs(fit.fixed - 1)[1:] < reach[1:]),
            "data sets": np.mean(np.abs(fit.coef[:, 1:] - slope) < half),
            "new": inside(fit.fixed[1:] - 1, wide, slope_sd),
            "width": half.mean(),
            "alone": alone.mean(),
        }
        if options.tests:
            tests = fit.equality(stats)
            row["slopes"] = tests[names[0]].p_value < 0.05
            row["variances"] = tests[RESIDUAL].p_value < 0.05
            row["within"] = fit.within_between(stats)[0, -1] < 0.05
        found.append(row)
    mean = pd.DataFrame(found).mean()
    mean["width"] /= mean.pop("alone")
    return {"data_sets": F, "rows": rows, "slope_sd": slope_sd, **mean}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=4000)
    parser.add_argument("--parents", type=int, default=1)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--residuals", default="shared")
    parser.add_argument("--tests", action="store_true", help="sizes of tests too, which is slower")
    parser.add_argument("--cores", type=int, default=1)
    options = parsed(parser, tables=2, tests=True)
    cells = product(DATA_SETS, ROWS, SLOPE_SDS)
    jobs = (delayed(cell)(*at, options) for at in cells)
    print(pd.DataFrame(Parallel(options.cores)(jobs)).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
