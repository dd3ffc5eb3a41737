"""Draws of the parameters that observed cells leave possible, for multiple imputation.

Only rows in which a node and all its parents are observed tell of its parameters here, so that
draws are rather too wide than too narrow. With the information W_j of data set j about its
coefficients, and random effects with covariance R, those of the population are uncertain with
(sum P_j)^-1, P_j = (I + W_j R)^-1 W_j; given a change d of them those of data set j change by
(I + R W_j)^-1 d, and are uncertain with R (I + W_j R)^-1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poolbn.inference.locals import (
    Floats,
    Gaussian,
    Integers,
    Local,
    Regression,
    Tabular,
    design,
)
from poolbn.moments.indicators import tabulate
from poolbn.moments.table import Table
from poolbn.nodes.design import Basis, Design, Family
from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.logeffects import random_effects_cov
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.rowscores import Rows, scores
from poolbn.nodes.tabular import TabularFit

Redraw = Callable[[np.random.Generator], Local]

_PRIOR = 0.25  # information of the weak prior that holds coefficients of regressions
_FEWEST = 3.0  # degrees of freedom of a variance


class Observed(NamedTuple):
    """Rows in which a node and its parents are observed, sorted by data set.

    Attributes:
        values: cells of all columns, (N, r).
        x: those of the node, (r,).
        offsets: of the data sets, (F + 1,).
    """

    values: Floats
    x: Floats
    offsets: Integers

    @property
    def sets(self) -> Integers:
        """The data set of each row, (r,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def redrawings(fits: Iterable[LocalFit], nodes: Sequence[Local], table: Table) -> list[Redraw]:
    """What draws each node anew, with its parameters for certain.

    Args:
        fits: of a network, in the order of the table's columns.
        nodes: the same, with estimates for certain.
        table: the rows, with missing cells.
    """
    made = []
    for v, (fit, node) in enumerate(zip(fits, nodes, strict=True)):
        there = ~np.isnan(table.values[[v, *node.parents]]).any(axis=0)
        offsets = np.concatenate([[0], np.cumsum(there)])[table.offsets]
        values = table.values[:, there]
        made.append(_redrawing(fit, node, Observed(values, values[v], offsets)))
    return made


def _redrawing(fit: LocalFit, node: Local, rows: Observed) -> Redraw:
    if isinstance(fit, TabularFit) and isinstance(node, Tabular):
        return partial(_table, node, fit, _counts(node, rows))
    assert isinstance(node, Gaussian | Regression)
    X = design(node.terms, dict(enumerate(rows.values)), len(rows.x))
    if isinstance(fit, GaussianFit) and isinstance(node, Gaussian):
        return _gaussian(node, fit, X, rows)
    assert isinstance(fit, RegressionFit)
    assert isinstance(node, Regression)
    return _regression(node, fit, X, rows)


def _counts(node: Tabular, rows: Observed) -> Floats:
    codes = [rows.values[p].astype(np.int64) for p in node.parents] + [rows.x.astype(np.int64)]
    F = len(rows.offsets) - 1
    return tabulate(codes, (*node.sizes, node.levels), rows.sets, F).astype(np.float64)


def _table(node: Tabular, fit: TabularFit, counts: Floats, rng: np.random.Generator) -> Tabular:
    """Tables around a common one, which counts tell of as far as they are not alike by s."""
    s, n = fit.concentration, counts.sum(axis=2, keepdims=True)
    if s == 0:
        return replace(node, probabilities=_dirichlet(counts + fit.population, rng))
    rows = (n if math.isinf(s) else n * s / (n + s)).sum(axis=0)
    base = np.where(rows > 0, _dirichlet(rows * fit.population, rng), fit.population)
    if math.isinf(s):
        return replace(node, probabilities=np.tile(base, (len(counts), 1, 1)))
    return replace(node, probabilities=_dirichlet(counts + s * base, rng))


def _dirichlet(alpha: Floats, rng: np.random.Generator) -> Floats:
    """Draws for each of alpha, (..., K); shares of alpha where all draws are 0."""
    drawn = rng.standard_gamma(alpha)
    drawn = np.where(drawn.sum(axis=-1, keepdims=True) > 0, drawn, alpha + 1e-300)
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class _Spread:
    """How uncertain coefficients are, (F, d); see above."""

    common: Floats  # a root of the covariance of the population's, (d, d)
    follow: Floats  # (F, d, d)
    own: Floats  # roots of the covariances of the data sets' own, (F, d, d)

    def draw(self, rng: np.random.Generator) -> Floats:
        F, d, _ = self.own.shape
        shared = self.common @ rng.standard_normal(d)
        return (self.own @ rng.standard_normal((F, d, 1)))[..., 0] + self.follow @ shared


def _spread(W: Floats, R: Floats | None, prior: float) -> _Spread:
    """From information (F, d, d) and covariances of random effects, (F, d, d); None for none."""
    F, d, _ = W.shape
    eye = np.eye(d)
    if R is None:
        return _Spread(np.zeros((d, d)), np.zeros((F, d, d)), _root(_inverse(W + prior * eye)))
    P = np.linalg.solve(eye + W @ R, W)
    common = _root(_inverse(P.sum(axis=0) + prior * eye))
    follow = np.asarray(np.linalg.inv(eye + R @ W), dtype=np.float64)
    return _Spread(common, follow, _root(follow @ R))


def _inverse(A: Floats) -> Floats:
    return np.asarray(np.linalg.pinv((A + np.swapaxes(A, -1, -2)) / 2, hermitian=True))


def _root(A: Floats) -> Floats:
    """B with BB' = A, (..., d, d)."""
    value, vector = np.linalg.eigh((A + np.swapaxes(A, -1, -2)) / 2)
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0))[..., None, :])


def _gaussian(node: Gaussian, fit: GaussianFit, X: Floats, rows: Observed) -> Redraw:
    T = Basis.of_rows(X, np.ones(len(X))).T
    Z, sigma2 = X @ T, np.maximum(fit.sigma2, 1e-300)
    ends = rows.offsets.tolist()
    W = np.array([Z[a:b].T @ Z[a:b] for a, b in pairwise(ends)]) / sigma2[:, None, None]
    R = _random(fit.fixed, fit.random_cov, T, 1, len(W), counts=True)
    if R is not None and fit.residual_scale is not None:
        R = R * (sigma2 / fit.residual_scale)[:, None, None]
    spread = _spread(W, R, 0.0)
    n, q = np.diff(rows.offsets).astype(np.float64), X.shape[1]
    shared = bool(np.ptp(fit.sigma2) == 0)
    shape = fit.residual_shape if fit.residual_shape is not None else 0.0
    df = n.sum() - q if shared else n + (2 * shape if math.isfinite(shape) else n.sum())
    df = np.maximum(df, _FEWEST)

    def drawn(rng: np.random.Generator) -> Gaussian:
        coef = node.of.coef + spread.draw(rng) @ T.T
        scale2 = fit.sigma2 * df / rng.chisquare(df)
        return replace(node, of=replace(node.of, coef=coef, scale2=scale2))

    return drawn


def _regression(node: Regression, fit: RegressionFit, X: Floats, rows: Observed) -> Redraw:
    T = Basis.of_rows(X, np.ones(len(X))).T
    F, C, _ = fit.coef.shape
    back = np.linalg.pinv(T)
    of = Rows(
        Design(X @ T, rows.x.astype(np.int64), np.ones(len(X)), rows.offsets),
        fit.response,
        fit.dispersion,
    )
    W = scores(of, fit.coef @ back.T).information
    counts = fit.response.family is not Family.LOGIT
    spread = _spread(W, _random(fit.fixed, fit.random_cov, T, C, F, counts=counts), _PRIOR)

    def drawn(rng: np.random.Generator) -> Regression:
        change = spread.draw(rng).reshape(F, C, T.shape[1]) @ T.T
        return replace(node, coef=fit.coef + change)

    return drawn


def _random(
    fixed: Floats | None, random_cov: Floats | None, T: Floats, C: int, F: int, *, counts: bool
) -> Floats | None:
    """Covariances of random effects in the columns X T, (F, d, d); None without pooling."""
    if fixed is None:
        return None
    d = C * T.shape[1]
    if random_cov is None:
        return np.zeros((F, d, d))
    back = np.linalg.pinv(T)
    return np.tile(random_effects_cov(back @ random_cov @ back.T, C, counts=counts), (F, 1, 1))
