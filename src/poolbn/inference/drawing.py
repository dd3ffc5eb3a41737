"""Rows drawn from a network node by node, parents first, and what is found by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.nodes.localfit import LocalFit


def draw_columns(
    fits: Mapping[str, LocalFit], order: Iterable[str], sets: Integers, rng: np.random.Generator
) -> dict[str, Floats]:
    """Draw a row of each of these data sets, (n,), parents first; levels are codes."""
    columns: dict[str, Floats] = {}
    for node in order:
        columns[node] = fits[node].draw(columns, sets, rng)
    return columns


# The Kullback-Leibler divergence is the expected log ratio of the densities of a row, so the mean
# over rows that are drawn from the first network estimates it, with the standard error of a mean.


def log_ratios(
    true: Mapping[str, LocalFit],
    other: Mapping[str, LocalFit],
    order: Iterable[str],
    rows: int,
    rng: np.random.Generator,
) -> Floats:
    """Log ratios of the densities of rows that are drawn from the first network, (F, rows).

    The second has the same nodes, data sets and levels in any order; `order` has parents first.
    """
    levels, others = (next(iter(fits.values())).levels for fits in (true, other))
    sets = np.repeat(np.arange(len(levels)), rows)
    columns = draw_columns(true, order, sets, rng)
    there = np.array([others.index(level) for level in levels])[sets]
    ratio = _log_density(true, columns, sets)
    ratio -= _log_density(other, _recoded(columns, true, other), there)
    return ratio.reshape(len(levels), rows)


def _recoded(
    columns: Mapping[str, Floats], true: Mapping[str, LocalFit], other: Mapping[str, LocalFit]
) -> dict[str, Floats]:
    """The rows of the first network with the second one's codes of levels."""
    recoded = dict(columns)
    for node, fit in other.items():
        if fit.categories:
            codes = np.array([fit.categories.index(level) for level in true[node].categories])
            recoded[node] = codes[columns[node].astype(np.int64)].astype(float)
    return recoded


def _log_density(
    fits: Mapping[str, LocalFit], columns: Mapping[str, Floats], sets: Integers
) -> Floats:
    """Of each row, with estimates taken for certain, (n,)."""
    total = np.zeros(len(sets))
    for node, fit in fits.items():
        total += fit.log_density(columns[node], columns, sets)
    return total


# Expected values of nodes under interventions. The rows of two interventions have the same random
# numbers, so what they do not change cancels. Of a node the expectation given its parents counts,
# not a draw; where all nodes on the way are linear, the difference is exact.


def uniforms(nodes: Iterable[str], n: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Random numbers of each node for n rows, one in each n-th of (0, 1)."""
    return {node: (rng.permutation(n) + rng.random(n)) / n for node in nodes}


def expectations(
    fits: Mapping[str, LocalFit],
    order: Iterable[str],
    noise: Mapping[str, Floats],
    values: Mapping[str, float],
) -> dict[str, Floats]:
    """The expectation of each node given its parents in each row, with parameters of B data sets.

    Nodes are drawn in this order, parents first, by uniform random numbers, (n,) each. `values` are
    nodes that are set: numbers, or codes of levels. The others have (B, n), or probabilities (B, n,
    K).
    """
    nodes = list(order)
    needed = {name for node in nodes for name in fits[node].parents}
    columns: dict[str, Floats] = {}
    found: dict[str, Floats] = {}
    for node in nodes:
        fit, u = fits[node], noise[node]
        sets = np.arange(len(fit.levels))[:, None]
        if node in values:
            columns[node] = np.full((1, 1), values[node])
            continue
        mean = fit.mean(columns, sets)
        found[node] = np.broadcast_to(mean, (len(sets), len(u), *mean.shape[2:]))
        if node in needed:
            columns[node] = fit.quantile(u, found[node], fit.strata(columns, sets))
    return found
