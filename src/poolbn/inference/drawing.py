"""Rows of a network with columns of all kinds, drawn node by node, parents first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# What is drawn so far, (n,) each: numbers, codes of levels, and indicators of levels ("sex=male").
Columns = Mapping[str, Floats]

LARGEST = 1e15  # mean of a count: up to there, floating point has each count for itself


def draw_columns(
    fits: Mapping[str, LocalFit], order: Iterable[str], sets: Integers, rng: np.random.Generator
) -> dict[str, Floats]:
    """Draw rows; discrete nodes have codes of levels, and indicators beside them.

    Args:
        fits: the distribution of each node given its parents.
        order: the nodes, parents first.
        sets: the data set of each row, (n,).
        rng: where chance comes from.
    """
    columns: dict[str, Floats] = {}
    for node in order:
        columns |= with_indicators(fits[node], draw_node(fits[node], columns, sets, rng))
    return columns


def with_indicators(fit: LocalFit, values: Floats) -> dict[str, Floats]:
    """The column of a node, and an indicator for each level of a discrete one but the first."""
    levels = enumerate(fit.categories[1:], start=1)
    made = {f"{fit.child}={level}": (values == code).astype(float) for code, level in levels}
    return {fit.child: values} | made


def draw_node(fit: LocalFit, columns: Columns, sets: Integers, rng: np.random.Generator) -> Floats:
    """Draw a node of any kind: numbers, counts or codes of levels, (n,).

    Args:
        fit: its distribution given its parents.
        columns: its parents, among others.
        sets: the data set of each row, (n,).
        rng: where chance comes from.
    """
    return _DRAW[type(fit)](fit, columns, sets, rng)


def _gaussian(
    fit: GaussianFit, columns: Columns, sets: Integers, rng: np.random.Generator
) -> Floats:
    mean = linear_predictor(fit.coef, fit.columns, columns, sets)
    drawn: Floats = mean + np.sqrt(fit.sigma2)[sets] * rng.standard_normal(len(sets))
    return drawn


def _tabular(fit: TabularFit, columns: Columns, sets: Integers, rng: np.random.Generator) -> Floats:
    return _levels(level_probabilities(fit, columns, sets), rng)


def _regression(
    fit: RegressionFit, columns: Columns, sets: Integers, rng: np.random.Generator
) -> Floats:
    if fit.categories:
        return _levels(level_probabilities(fit, columns, sets), rng)
    return drawn_counts(
        linear_predictor(fit.coef[:, 0], fit.columns, columns, sets), fit.dispersion, rng
    )


def drawn_counts(eta: Floats, dispersion: float, rng: np.random.Generator) -> Floats:
    """Counts whose means have these logarithms, (n,); none is beyond `LARGEST`, or next to it."""
    mean = np.exp(np.minimum(eta, math.log(LARGEST)))
    if not math.isinf(dispersion):
        mean = np.minimum(mean * rng.gamma(dispersion, 1 / dispersion, len(mean)), LARGEST)
    return rng.poisson(mean).astype(float)


def level_probabilities(
    fit: TabularFit | RegressionFit, columns: Columns, sets: Integers
) -> Floats:
    """The probability of each level of a discrete node in each row, (n, K).

    Args:
        fit: its distribution given its parents.
        columns: its parents, among others.
        sets: the data set of each row, (n,).
    """
    if isinstance(fit, TabularFit):
        configuration = np.zeros(len(sets), dtype=np.int64)
        for parent, levels in zip(fit.parents, fit.given, strict=True):
            configuration = configuration * len(levels) + columns[parent].astype(np.int64)
        return np.asarray(fit.probabilities[sets, configuration])
    each = range(fit.coef.shape[1])
    predictors = [linear_predictor(fit.coef[:, k], fit.columns, columns, sets) for k in each]
    utility = np.column_stack([np.zeros(len(sets)), *predictors])
    p = np.exp(utility - utility.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


_DRAW: dict[type[LocalFit], Callable[..., Floats]] = {
    GaussianFit: _gaussian,
    TabularFit: _tabular,
    RegressionFit: _regression,
}


def linear_predictor(
    coef: Floats, names: Iterable[str], columns: Columns, sets: Integers
) -> Floats:
    """The intercept and the parents, with the coefficients (F, q) of each row's data set."""
    total: Floats = coef[sets, 0]
    for k, name in enumerate(names, start=1):
        total = total + coef[sets, k] * columns[name]
    return total


def _levels(probabilities: Floats, rng: np.random.Generator) -> Floats:
    """A code for each row, by its probabilities, (n, K)."""
    below = np.cumsum(probabilities, axis=1)[:, :-1]
    drawn: Floats = (rng.random((len(below), 1)) > below).sum(axis=1).astype(float)
    return drawn
