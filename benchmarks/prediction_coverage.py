"""Do 95% prediction intervals of one node cover 95% of new rows, with few data sets?

y = b_0 + b_1 x + e in each data set: intercept SD 0.5, slope SD as in the table, residual SD 1 (or
with `--shape`, variances that are inverse gamma). For known data sets and for a new one: coverage
in per cent, and the mean log density of new rows; beside them those of the closed forms with
estimates plugged in for variances (normal, or t of pooled variances).

    python benchmarks/prediction_coverage.py [--tables K] [--pooling NAME] [--shape A]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from scipy import stats
from tiny import parsed, tiny

import poolbn as pb
from poolbn.nodes.predictive import new_data_set, predictive

POOLINGS = {
    "partial": pb.Partial(),
    "pooled": pb.Partial(residuals="pooled"),
    "separate": pb.Partial(residuals="separate"),
    "reml": pb.Partial(method="reml"),
    "intercept": pb.Partial(random="intercept"),
    "none": pb.NoPooling(),
    "auto": pb.Auto(),
}
NEW_ROWS = 40
CELLS = [(n, F, sd) for n in (20, 50) for F in (3, 4, 6, 10, 20) for sd in (0.0, 0.15, 0.5)]


def rows(
    F: int, n: int, slope_sd: float, shape: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Parents and children of F data sets, (F, n) each."""
    x = rng.normal(size=(F, n))
    variance = np.ones(F) if math.isinf(shape) else shape / rng.gamma(shape, size=F)
    b0, b1 = rng.normal(0, 0.5, size=(F, 1)), 1 + slope_sd * rng.normal(size=(F, 1))
    return x, b0 + b1 * x + np.sqrt(variance)[:, None] * rng.normal(size=(F, n))


def statistics(x: np.ndarray, y: np.ndarray) -> pb.GroupStats:
    """Of these rows."""
    F, n = x.shape
    values = np.stack([x, y], axis=2)
    mean = values.mean(axis=1)
    rest = values - mean[:, None]
    scatter = np.einsum("jna,jnb->jab", rest, rest)
    none = np.zeros(F, dtype=np.int64)
    return pb.GroupStats(("x", "y"), tuple(range(F)), np.full(F, n), mean, scatter, none)


def judge(y: np.ndarray, mean: np.ndarray, scale2: np.ndarray, df: np.ndarray) -> list[float]:
    """Coverage and mean log density."""
    z = (y - mean) / np.sqrt(scale2)
    inside = np.abs(z) <= stats.t.ppf(0.975, df)
    return [float(inside.mean()), float((stats.t.logpdf(z, df) - np.log(scale2) / 2).mean())]


def plain(fit: pb.GaussianFit, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A new data set, with all variances as they are estimated."""
    assert fit.fixed is not None
    assert fit.fixed_cov is not None
    D = np.zeros((2, 2)) if fit.random_cov is None else fit.random_cov
    s = fit.sigma2.mean() if fit.residual_scale is None else fit.residual_scale
    df = 2 * (fit.residual_shape or math.inf)
    spread = s + np.einsum("na,ab,nb->n", z, D + fit.fixed_cov, z)
    return z @ fit.fixed, spread, np.full(len(z), df)


def one_table(
    F: int, n: int, slope_sd: float, shape: float, how: object, rng: np.random.Generator
) -> list[list[float]]:
    """What known data sets and a new one have, and the new one with estimates plugged in."""
    x, y = rows(F + 1, n + NEW_ROWS, slope_sd, shape, rng)
    fit = pb.fit_node(statistics(x[:F, :n], y[:F, :n]), "y", ["x"], pooling=how)
    z = np.stack([np.ones_like(x), x], axis=2)[:, n:]
    of = predictive(fit)
    known = np.mean([judge(y[j, n:], *of.at(z[j], j)) for j in range(F)], axis=0)
    nothing = [math.nan, math.nan]
    if fit.fixed is None:
        return [known.tolist(), nothing, nothing]
    new = judge(y[F, n:], *new_data_set(fit).at(z[F], 0))
    return [known.tolist(), new, judge(y[F, n:], *plain(fit, z[F]))]


def main() -> None:
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--pooling", choices=POOLINGS, default="partial")
    parser.add_argument("--shape", type=float, default=math.inf)
    options = parsed(parser, tables=2)
    print(f"{options.pooling}, {options.tables} tables a cell")
    print("rows  sets  slope SD    known            new              new, plugged in")
    rng = np.random.default_rng(1)
    for n, F, sd in tiny(CELLS, CELLS[:2]):
        how = POOLINGS[options.pooling]
        found = [one_table(F, n, sd, options.shape, how, rng) for _ in range(options.tables)]
        cells = "".join(f"   {100 * a:5.1f} ({b:.3f})" for a, b in np.mean(found, axis=0))
        print(f"{n:4} {F:5} {sd:9.2f} {cells}", flush=True)


if __name__ == "__main__":
    main()
