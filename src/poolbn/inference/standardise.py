"""Expected values of nodes under interventions, by rows that are drawn node by node.

The rows of two interventions have the same random numbers, so what they do not change cancels. Of
a node the expectation given its parents counts, not a draw; where all nodes on the way are linear,
the difference is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

Floats = NDArray[np.float64]

_LARGEST = 30.0  # logarithm of a mean
_SMALL = 40.0  # means of counts whose probabilities are added up
_STEPS = 200  # of these
_GREAT = 1e3  # mean of a count from which its distribution is next to continuous
_SURE = 1e10  # shape of a gamma distribution from which it is normal


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
    needed = {name for node in nodes for name in fits[node].parents}
    columns: dict[str, Floats] = {}
    found: dict[str, Floats] = {}
    for node in nodes:
        fit, levels = fits[node], fits[node].categories
        names = {f"{node}={level}": code for code, level in enumerate(levels)}
        if node not in values:
            found[node] = _expected(fit, columns, len(noise[node]))
        if node not in needed:
            continue
        if node in values:
            columns[node] = np.full((1, 1), values[node])
        else:
            columns[node] = _drawn(fit, found[node], noise[node])
        columns |= {name: (columns[node] == code) * 1.0 for name, code in names.items()}
    return found


def _expected(fit: LocalFit, columns: Mapping[str, Floats], n: int) -> Floats:
    if isinstance(fit, GaussianFit):
        return _predictor(fit.coef, fit.columns, columns, n)
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
        none = np.exp(-expected)
        return _quantiles(u, expected, 1.0, stats.poisson, (expected,), none, expected, 0.0)
    share = theta / (theta + expected)
    none, odds = share**theta, 1 - share
    return _quantiles(u, expected, share, stats.nbinom, (theta, share), none, theta * odds, odds)


def _quantiles(
    u: Floats,
    mean: Floats,
    share: Floats | float,
    law: Any,
    parameters: tuple[Any, ...],
    none: Floats,
    a: Floats,
    b: Floats | float,
) -> Floats:
    """Quantiles of counts whose probabilities follow p(k) = p(k - 1) (a + b (k - 1)) / k.

    Probabilities are added up from 0 on, which for small counts takes a hundredth of the time of
    scipy's inverse; what is left after some steps is asked there.

    Args:
        u: probabilities, (n,).
        mean: of the counts, (B, n).
        share: the mean divided by the variance, (B, n).
        law: the distribution in scipy.
        parameters: of it.
        none: the probability of 0, (B, n).
        a: of the rule, (B, n).
        b: of the rule: 0 for Poisson's distribution.
    """
    every = [np.broadcast_to(x, mean.shape).ravel() for x in (u, none, a, b)]
    found = np.zeros(mean.size)
    at = np.flatnonzero(mean.ravel() < _SMALL)
    left, term, a_, b_ = (x[at] for x in every)
    for k in range(_STEPS):
        if not len(at):
            break
        left = left - term
        more = left > 0
        found[at[~more]] = k
        at, left, term, a_, b_ = (x[more] for x in (at, left, term, a_, b_))
        term = term * (a_ + b_ * k) / (k + 1)
    large = np.flatnonzero(mean.ravel() >= _GREAT)  # where scipy takes minutes
    if len(large):
        shares = np.broadcast_to(share, mean.shape).ravel()[large]
        found[large] = _large_quantiles(every[0][large], mean.ravel()[large], shares)
    rest = np.concatenate([at, np.flatnonzero((mean.ravel() >= _SMALL) & (mean.ravel() < _GREAT))])
    if len(rest):
        own = [np.broadcast_to(x, mean.shape).ravel()[rest] for x in parameters]
        found[rest] = law.ppf(every[0][rest], *own)
    return found.reshape(mean.shape)


def _large_quantiles(u: Floats, mean: Floats, share: Floats | float) -> Floats:
    """Quantiles of large counts: those of a gamma distribution with their mean and variance.

    Args:
        u: probabilities.
        mean: of the counts.
        share: the mean divided by the variance.
    """
    from scipy.special import gammaincinv, ndtri

    shape = mean * share
    normal = shape + np.sqrt(shape) * ndtri(u)
    return np.asarray(np.rint(np.where(shape > _SURE, normal, gammaincinv(shape, u)) / share))
