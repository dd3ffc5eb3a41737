"""Derivatives of the likelihoods of regressions in each data set, and tests with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.design import Basis, Design, Family, Floats, Integers, Response

_STEPS = 30
_HALVINGS = 8
_GAIN = 1e-8  # of a log-likelihood, below which a search ends
_INFORMED = 1e-4  # information in a direction of variance one: less than any row has
_LARGEST = 30.0  # linear predictor of a count


@dataclass(frozen=True)
class Rows:
    """Rows of a family, what kind of child it has, and its dispersion where it has one."""

    design: Design
    response: Response
    dispersion: float = math.inf

    def turned(self, X: Floats) -> Rows:
        """The same with other columns."""
        return replace(self, design=replace(self.design, X=X))


class Scores(NamedTuple):
    """At some coefficients of each data set, those of one level after those of another; d = C q.

    Attributes:
        loglik: without constants, (F,).
        gradient: of the log-likelihood, (F, d).
        information: minus its expected second derivatives, (F, d, d).
    """

    loglik: Floats
    gradient: Floats
    information: Floats


class Equal(NamedTuple):
    """A test that effects are the same in all data sets; NaN where rows give none."""

    statistic: float = math.nan
    df: float = math.nan


def scores(rows: Rows, coef: Floats) -> Scores:
    """The derivatives at coefficients (F, C, q).

    Examples:
        >>> design = Design(np.ones((2, 1)), np.array([0, 1]), np.array([30.0, 10.0]),
        ...                 np.array([0, 2]))
        >>> found = scores(Rows(design, Response(levels=2)), np.zeros((1, 1, 1)))
        >>> found.gradient.tolist(), found.information.tolist()
        ([[-10.0]], [[[10.0]]])
    """
    design = rows.design
    F, C, q = coef.shape
    loglik, gradient = np.zeros(F), np.zeros((F, C, q))
    information = np.zeros((F, C, q, C, q))
    each = _levels if rows.response.family is Family.LOGIT else _counts
    for j in range(F):
        at = slice(design.offsets[j], design.offsets[j + 1])
        X, weight = design.X[at], design.weight[at]
        terms, residual, spread = each(rows, X @ coef[j].T, design.y[at])
        loglik[j] = weight @ terms
        gradient[j] = (weight[:, None] * residual).T @ X
        for a in range(C):
            for b in range(a + 1):
                block = (X * (weight * spread[:, a, b])[:, None]).T @ X
                information[j, a, :, b] = information[j, b, :, a] = block
    return Scores(loglik, gradient.reshape(F, C * q), information.reshape(F, C * q, C * q))


def rows_at(rows: Rows, predictor: Floats) -> tuple[Floats, Floats, Floats]:
    """Of each row the log-likelihood, its derivatives, and minus second ones; (m, C, C)."""
    each = _levels if rows.response.family is Family.LOGIT else _counts
    return each(rows, predictor, rows.design.y)


def _levels(rows: Rows, predictor: Floats, y: Integers) -> tuple[Floats, Floats, Floats]:
    """Of each row the log-likelihood, its derivatives, and minus second ones; (m, C, C)."""
    utility = np.column_stack([np.zeros(len(y)), predictor])
    top = utility.max(axis=1, keepdims=True)
    logs = utility - top - np.log(np.exp(utility - top).sum(axis=1, keepdims=True))
    p = np.exp(logs[:, 1:])
    seen = y[:, None] == np.arange(1, rows.response.levels)
    spread = p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])
    return logs[np.arange(len(y)), y], seen - p, spread


def _counts(rows: Rows, predictor: Floats, y: Integers) -> tuple[Floats, Floats, Floats]:
    """As `_levels`, of counts."""
    eta = np.minimum(predictor, _LARGEST)
    mean, theta, seen = np.exp(eta), rows.dispersion, y[:, None].astype(np.float64)
    inflated = 1 + mean / theta
    if math.isinf(theta):
        terms = seen * eta - mean
    else:
        terms = seen * (eta - np.log(inflated)) - theta * np.log(inflated)
    return terms[:, 0], (seen - mean) / inflated, (mean / inflated)[:, :, None]


def equal_effects(rows: Rows, columns: Sequence[int]) -> Equal:
    """Rao's score test that the coefficients of some columns are the same in all data sets.

    All other coefficients are those of each data set. At the maximum with equal coefficients,
    data set j has the gradient g_j of these, with the information I_j that is left of them when
    the others are estimated: the statistic is sum g_j'I_j^-1 g_j. Unlike a test from the data sets'
    own estimates it needs none, so a data set in which they do not exist does no harm.
    """
    design, C = rows.design, rows.response.predictors
    others = [k for k in range(design.X.shape[1]) if k not in columns]
    basis = Basis.of_rows(design.X[:, [*others, *columns]], design.weight).T
    # Each column of the basis is of one column of X and those before it.
    last = len(basis) - 1 - (basis[::-1] != 0).argmax(axis=0)
    r = basis.shape[1]
    common = np.tile(last >= len(others), C)
    turned = rows.turned(design.X[:, [*others, *columns]] @ basis)
    theta = np.zeros((len(design.offsets) - 1, C * r))
    theta[:, ::r] = _centre(turned)
    g, information = _left(_maximum(turned, theta.reshape(-1, C, r), common), common)
    inverse, rank = _inverse(information)
    df = int(rank.sum() - _inverse(information.sum(axis=0))[1])
    if df < 1:
        return Equal()
    return Equal(float(np.einsum("ja,jab,jb->", g, inverse, g)), float(df))


def _maximum(rows: Rows, theta: Floats, common: NDArray[np.bool_]) -> Scores:
    """At the maximum with common coefficients, by Newton's method from (F, C, q)."""
    now = scores(rows, theta)
    for _ in range(_STEPS):
        step, before = _step(now, common).reshape(theta.shape), now.loglik.sum()
        for _ in range(_HALVINGS):
            now = scores(rows, theta + step)
            if now.loglik.sum() >= before - _GAIN:
                break
            step = step / 2
        theta = theta + step
        if now.loglik.sum() < before + _GAIN:
            break
    return now


def _centre(rows: Rows) -> Floats:
    """Coefficients without parents, (C,)."""
    y, weight = rows.design.y, rows.design.weight
    if rows.response.family is not Family.LOGIT:
        return np.array([math.log((weight @ y + 0.5) / weight.sum())])
    times = np.bincount(y, weight, minlength=rows.response.levels) + 0.5
    return np.asarray(np.log(times[1:] / times[0]))


def _inverse(information: Floats) -> tuple[Floats, Integers]:
    """Inverses of what rows tell of, and their ranks; (..., d, d) and (...,)."""
    value, vector = np.linalg.eigh(information)
    known = value > _INFORMED
    inverse = np.divide(1.0, value, out=np.zeros_like(value), where=known)
    return (vector * inverse[..., None, :]) @ np.swapaxes(vector, -1, -2), known.sum(axis=-1)


def _left(now: Scores, common: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Gradients and information of the common coefficients, others estimated in each data set."""
    H = now.information
    across = H[:, common][:, :, ~common] @ _inverse(H[:, ~common][:, :, ~common])[0]
    g = now.gradient[:, common] - np.einsum("jab,jb->ja", across, now.gradient[:, ~common])
    return g, H[:, common][:, :, common] - across @ H[:, ~common][:, :, common]


def _step(now: Scores, common: NDArray[np.bool_]) -> Floats:
    """Newton's step, (F, d)."""
    g, information = _left(now, common)
    step = np.zeros_like(now.gradient)
    step[:, common] = _inverse(information.sum(axis=0))[0] @ g.sum(axis=0)
    H = now.information[:, ~common]
    rest = now.gradient[:, ~common] - np.einsum("jab,jb->ja", H[:, :, common], step[:, common])
    step[:, ~common] = np.einsum("jab,jb->ja", _inverse(H[:, :, ~common])[0], rest)
    return step
