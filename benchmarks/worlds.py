"""Tables from worlds that are not the paper's generator, with the graph that each comes from.

Columns stand in random order. The worlds:

- slopes: slopes that differ between data sets, around a mean that is not zero;
- unequal: residual variances that differ too;
- zero: slopes around zero, so that there is nothing to find in all rows together;
- confounded: levels of all columns have a correlation of 0.6 between data sets;
- t5, skewed, outliers: residuals that are not normal (5% of the last have six times the SD);
- nonlinear: slopes that double above zero;
- homogeneous: data sets that do not differ at all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

import poolbn as pb

Draw = Callable[[np.random.Generator, int], np.ndarray]

WORLDS = (
    "slopes", "unequal", "zero", "confounded", "t5", "skewed", "outliers", "nonlinear",
    "homogeneous",
)  # fmt: skip
_RESIDUALS: dict[str, Draw] = {
    "t5": lambda rng, n: rng.standard_t(5, n) / np.sqrt(5 / 3),
    "skewed": lambda rng, n: rng.exponential(1, n) - 1,
    "outliers": lambda rng, n: rng.normal(size=n) * np.where(rng.random(n) < 0.05, 6, 1),
}


def shuffled(rows: np.ndarray, sets: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """A table with its columns in random order, and the data sets last."""
    frame = pd.DataFrame(rows, columns=[f"X{k}" for k in range(rows.shape[1])])
    return frame[rng.permutation(frame.columns)].assign(F=[f"set {j}" for j in sets])


def world(
    kind: str, seed: int, *, N: int = 8, F: int = 15, rows: int = 30, mean_parents: float = 1.5
) -> tuple[pb.Dag, pd.DataFrame]:
    """A random graph, and a table that comes from it."""
    rng = np.random.default_rng([seed, WORLDS.index(kind), N, F, rows])
    order = rng.permutation(N)
    later = np.triu(rng.random((N, N)) < 2 * mean_parents / (N - 1), 1)
    arcs = np.zeros((N, N), dtype=bool)
    arcs[np.ix_(order, order)] = later
    mean = np.where(arcs, rng.uniform(0.4, 1.0, (N, N)) * rng.choice([-1, 1], (N, N)), 0.0)
    spread = np.where(arcs, 0.3, 0.0)
    levels = rng.normal(size=(F, N))
    if kind == "zero":
        mean, spread = 0 * mean, np.where(arcs, 0.7, 0.0)
    elif kind == "homogeneous":
        levels, spread = 0 * levels, 0 * spread
    elif kind == "confounded":
        levels = np.sqrt(0.6) * rng.normal(size=(F, 1)) + np.sqrt(0.4) * levels
    sd = rng.uniform(0.7, 1.4, N)
    residual = _RESIDUALS.get(kind, lambda rng, n: rng.normal(size=n))
    x = np.zeros((F, rows, N))
    for j in range(F):
        slopes = mean + spread * rng.normal(size=(N, N))
        own = sd * np.exp(rng.normal(0, 0.5, N)) if kind == "unequal" else sd
        for v in order.tolist():
            given = x[j] + 0.5 * np.abs(x[j]) if kind == "nonlinear" else x[j]
            x[j, :, v] = levels[j, v] + given @ slopes[:, v] + own[v] * residual(rng, rows)
    names = [f"X{k}" for k in range(N)]
    dag = pb.Dag(names, [(names[p], names[c]) for p, c in np.argwhere(arcs)])
    return dag, shuffled(x.reshape(-1, N), np.repeat(range(F), rows), rng)


_SMALL = ((0, 2), (1, 2), (2, 3))
_LARGE = (*_SMALL, (3, 4), (5, 4), (5, 6), (7, 8), (6, 8), (8, 9))


def correlated(
    share: float, seed: int, *, N: int, F: int, rows: int, binary: tuple[int, ...] = ()
) -> tuple[pb.Dag, pd.DataFrame]:
    """Four or ten columns with constant slopes, whose levels have this correlation."""
    rng = np.random.default_rng([seed, round(100 * share), N, F, rows, *binary])
    arcs = _SMALL if N == 4 else _LARGE
    levels = np.sqrt(share) * rng.normal(size=(F, 1)) + np.sqrt(1 - share) * rng.normal(size=(F, N))
    sets = np.repeat(range(F), rows)
    names = [f"X{k}" for k in range(N)]
    dag = pb.Dag(names, [(names[p], names[c]) for p, c in arcs])
    x = np.zeros((F * rows, N))
    for v in (names.index(name) for name in dag.topological_order()):
        eta = levels[sets, v]
        for p in (p for p, c in arcs if c == v):
            eta = eta + (1.4 * (x[:, p] - 0.5) if p in binary else 0.7 * x[:, p])
        if v in binary:
            x[:, v] = rng.random(F * rows) < 1 / (1 + np.exp(-2 * eta))
        else:
            x[:, v] = eta + rng.normal(size=F * rows)
    frame = shuffled(x, sets, rng)
    return dag, frame.astype({names[v]: bool for v in binary})
