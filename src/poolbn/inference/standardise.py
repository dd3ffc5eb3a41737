"""Expected values of nodes under interventions, by rows that are drawn node by node.

The rows of two interventions have the same random numbers, so what they do not change cancels. Of
a node the expectation given its parents counts, not a draw; where all nodes on the way are linear,
the difference is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isinf

import numpy as np
from numpy.typing import NDArray

from poolbn.inference.drawing import categories_of
from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

Floats = NDArray[np.float64]

_LARGEST = 30.0  # logarithm of a mean


def uniforms(nodes: Iterable[str], n: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Random numbers of each node for n rows, one in each n-th of (0, 1)."""
    return {node: (rng.permutation(n) + rng.random(n)) / n for node in nodes}


def expectations(
    fits: Mapping[str, LocalFit],
    order: Iterable[str],
    noise: Mapping[str, Floats],
    values: Mapping[str, float],
) -> dict[str, Floats]:
    """The expectation of each node given its parents in each row; of a discrete one probabilities.

    Args:
        fits: the nodes with the parameters of B data sets.
        order: those to draw, parents first.
        noise: uniform random numbers of each, (n,).
        values: nodes that are set: numbers, or codes of levels.

    Returns:
        Of each node that is not set (B, n), or (B, n, K) for K levels.
    """
    nodes = list(order)
    needed = {name for node in nodes for name in _terms(fits[node])}
    columns: dict[str, Floats] = {}
    found: dict[str, Floats] = {}
    for node in nodes:
        fit, levels = fits[node], categories_of(fits[node])
        names = {f"{node}={level}": code for code, level in enumerate(levels)}
        if node not in values:
            found[node] = _expected(fit, columns, len(noise[node]))
        if needed.isdisjoint([node, *names]):
            continue
        if node in values:
            columns[node] = np.full((1, 1), values[node])
        else:
            columns[node] = _drawn(fit, found[node], noise[node])
        columns |= {name: (columns[node] == code) * 1.0 for name, code in names.items()}
    return found


def _terms(fit: LocalFit) -> tuple[str, ...]:
    """The columns that a node's distribution needs."""
    return fit.columns if isinstance(fit, RegressionFit) else fit.parents


def _expected(fit: LocalFit, columns: Mapping[str, Floats], n: int) -> Floats:
    if isinstance(fit, GaussianFit):
        return _predictor(fit.coef, fit.parents, columns, n)
    if isinstance(fit, TabularFit):
        B = len(fit.probabilities)
        at = np.zeros((B, n), dtype=np.int64)
        for parent, levels in zip(fit.parents, fit.given, strict=True):
            at = at * len(levels) + columns[parent].astype(np.int64)
        return np.asarray(fit.probabilities[np.arange(B)[:, None], at])
    assert isinstance(fit, RegressionFit)
    each = [_predictor(fit.coef[:, c], fit.columns, columns, n) for c in range(fit.coef.shape[1])]
    if not fit.categories:
        return np.exp(np.minimum(each[0], _LARGEST))
    utility = np.stack([np.zeros_like(each[0]), *each], axis=2)
    p = np.exp(utility - utility.max(axis=2, keepdims=True))
    return np.asarray(p / p.sum(axis=2, keepdims=True))


def _predictor(coef: Floats, names: Iterable[str], columns: Mapping[str, Floats], n: int) -> Floats:
    """Coefficients (B, q) of the intercept and columns, (B, n)."""
    total = np.broadcast_to(coef[:, :1], (len(coef), n))
    for k, name in enumerate(names, start=1):
        total = total + coef[:, k, None] * columns[name]
    return total


def _drawn(fit: LocalFit, expected: Floats, u: Floats) -> Floats:
    """Values with these expectations, (B, n)."""
    from scipy import special, stats

    if isinstance(fit, GaussianFit):
        return np.asarray(expected + np.sqrt(fit.sigma2)[:, None] * special.ndtri(u))
    if expected.ndim == 3:
        below = np.cumsum(expected, axis=2)[:, :, :-1]
        return np.asarray((u[None, :, None] > below).sum(axis=2).astype(np.float64))
    assert isinstance(fit, RegressionFit)
    theta = fit.dispersion
    if isinf(theta):
        return _poisson(u, expected)
    return np.asarray(stats.nbinom.ppf(u, theta, theta / (theta + expected)))


def _poisson(u: Floats, mean: Floats) -> Floats:
    """Quantiles of Poisson distributions."""
    from scipy import special

    k = np.ceil(special.pdtrik(u, mean))
    less = np.maximum(k - 1, 0.0)
    return np.asarray(np.where(special.pdtr(less, mean) >= u, less, k))
