"""The Kullback-Leibler divergence between networks with columns of all kinds, by simulation.

It is the expected log ratio of the densities of a row, so the mean over rows that are drawn from
the first network estimates it, with the standard error of a mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isinf, pi

import numpy as np

from poolbn.inference.drawing import (
    Columns,
    Floats,
    Integers,
    draw_columns,
    level_probabilities,
    linear_predictor,
    with_indicators,
)
from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit


def log_ratios(
    true: Mapping[str, LocalFit],
    other: Mapping[str, LocalFit],
    order: Iterable[str],
    rows: int,
    rng: np.random.Generator,
) -> Floats:
    """Log ratios of the densities of rows that are drawn from the first network, (F, rows).

    Args:
        true: the nodes of the first network.
        other: the same nodes in the second, with the same data sets and levels in any order.
        order: the nodes of the first network, parents first.
        rows: rows of each data set.
        rng: where chance comes from.
    """
    levels, others = (next(iter(fits.values())).levels for fits in (true, other))
    sets = np.repeat(np.arange(len(levels)), rows)
    columns = draw_columns(true, order, sets, rng)
    there = np.array([others.index(level) for level in levels])[sets]
    ratio = _log_density(true, columns, sets)
    ratio -= _log_density(other, _recoded(columns, true, other), there)
    return ratio.reshape(len(levels), rows)


def _recoded(
    columns: Columns, true: Mapping[str, LocalFit], other: Mapping[str, LocalFit]
) -> dict[str, Floats]:
    """The rows of the first network with the second one's codes of levels."""
    recoded: dict[str, Floats] = {}
    for node, fit in other.items():
        values, levels = columns[node], fit.categories
        if levels:
            codes = np.array([levels.index(level) for level in true[node].categories])
            values = codes[values.astype(np.int64)].astype(float)
        recoded |= with_indicators(fit, values)
    return recoded


def _log_density(fits: Mapping[str, LocalFit], columns: Columns, sets: Integers) -> Floats:
    """Of each row, with estimates taken for certain, (n,)."""
    total = np.zeros(len(sets))
    for node, fit in fits.items():
        if isinstance(fit, GaussianFit):
            s2 = fit.sigma2[sets]
            rest = columns[node] - linear_predictor(fit.coef, fit.columns, columns, sets)
            total -= (np.log(2 * pi * s2) + rest**2 / s2) / 2
        elif isinstance(fit, TabularFit | RegressionFit) and fit.categories:
            p = level_probabilities(fit, columns, sets)
            with np.errstate(divide="ignore"):
                total += np.log(p[np.arange(len(p)), columns[node].astype(np.int64)])
        elif isinstance(fit, RegressionFit):
            total += _count(fit, columns, sets)
    return total


def _count(fit: RegressionFit, columns: Columns, sets: Integers) -> Floats:
    """Poisson, or negative binomial with the variance mean + mean^2 / dispersion."""
    from scipy.stats import nbinom, poisson

    mean = np.exp(linear_predictor(fit.coef[:, 0], fit.columns, columns, sets))
    if isinf(fit.dispersion):
        return np.asarray(poisson.logpmf(columns[fit.child], mean))
    p = fit.dispersion / (fit.dispersion + mean)
    return np.asarray(nbinom.logpmf(columns[fit.child], fit.dispersion, p))
