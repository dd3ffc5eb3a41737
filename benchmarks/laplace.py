"""How far the Laplace approximation is off, by rows of a data set and spread of random effects.

For each cell some tables of 100 data sets are drawn from regressions with random effects on all
coefficients. The approximation has its maximum somewhere; there the log-likelihood is also summed
over points (2,048 of each data set), and so is the maximum of that sum found. The table has means:

    error     Laplace's log-likelihood minus the one that is summed, at the same parameters
    foreseen  what `marginal.doubt` says of it, from the approximation alone
    lost      by how much the summed maximum is above the summed value at Laplace's
    SD        of the intercept in the population, as the two find it
    seconds   of a score by Laplace, and of one that is summed where it must be

    python benchmarks/laplace.py [--smoke] [--tables 2]
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np
from tiny import parsed

from poolbn.nodes import marginal
from poolbn.nodes.design import Design, collapse
from poolbn.nodes.glmm import Problem
from poolbn.nodes.links import Family, Response

DATA_SETS = 100
KINDS = {
    "two levels": Response(levels=2),
    "rare level": Response(levels=2),
    "three levels": Response(levels=3),
    "count": Response(Family.POISSON),
}
LEVEL = {"rare level": -3.0}
HEAD = ["child", "coefficients", "rows", "SD", "error", "foreseen", "lost", "SD by Laplace",
        "SD summed", "s Laplace", "s summed"]  # fmt: skip


def drawn(kind: str, q: int, rows: int, sd: float, seed: int) -> Design:
    """Rows of 100 data sets; parents are normal."""
    rng, response = np.random.default_rng([seed, rows, q]), KINDS[kind]
    sets = np.repeat(np.arange(DATA_SETS), rows)
    X = np.column_stack([np.ones(len(sets)), rng.normal(size=(len(sets), q - 1))])
    mean = np.array([LEVEL.get(kind, 0.5), *[0.5] * (q - 1)])
    coef = mean + sd * rng.normal(size=(DATA_SETS, response.predictors, q))
    eta = np.einsum("ma,mka->mk", X, coef[sets])
    if response.family == Family.POISSON:
        y = rng.poisson(np.exp(np.clip(eta[:, 0], -8.0, 4.0)))
    else:
        utilities = np.column_stack([np.zeros(len(sets)), eta])
        y = (utilities + rng.gumbel(size=utilities.shape)).argmax(axis=1)
    offsets = np.arange(0, len(sets) + 1, rows)
    return collapse(Design(X, y.astype(np.int64), np.ones(len(y)), offsets))


def measured(kind: str, q: int, rows: int, sd: float, seed: int) -> list[float] | None:
    """One table's numbers; None where no maximum is inside."""
    problem = Problem(drawn(kind, q, rows, sd, seed), KINDS[kind])
    begin = time.perf_counter()
    laplace = problem.climb(final=False)
    middle = time.perf_counter()
    marginal.settle(problem, final=False)
    end = time.perf_counter()
    if laplace.ridge != (0.0, 0.0):
        return None
    sums = marginal.Marginal(problem, final=True)
    here = sums.corrected(laplace)
    best = sums.climb(here, (0.0, 0.0))
    if problem.suspect(best):
        return None
    spreads = [np.sqrt(problem.mixed(of).random_cov[0, 0]) for of in (laplace, best)]
    return [
        laplace.loglik - here.loglik, marginal.doubt(problem, laplace), best.loglik - here.loglik,
        *spreads, middle - begin, end - begin,
    ]  # fmt: skip


def main() -> None:
    """Print a row for each cell."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=int, default=2, help="of each cell")
    given = parsed(parser)
    cells = product(KINDS, (1, 2, 4), (2, 3, 5, 10, 30), (0.7, 2.0))
    if given.smoke:
        cells, given.tables = product(KINDS, (1, 2), (2, 10), (1.0,)), 1
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}", flush=True)
    for cell in cells:
        found = [measured(*cell, seed) for seed in range(given.tables)]
        inside = [row for row in found if row is not None]
        if inside:
            means = np.mean(inside, axis=0)
            digits = [*(f"{value:.2f}" for value in means[:5]), *(f"{t:.3f}" for t in means[5:])]
            print(f"| {' | '.join([*map(str, cell), *digits])} |", flush=True)


if __name__ == "__main__":
    main()
