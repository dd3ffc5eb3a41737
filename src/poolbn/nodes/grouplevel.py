"""A child that is constant in each data set: a regression of as many values as there are data sets.

Such a column describes the data sets: the size of a school, the year in which a clinic opened. Rows
say nothing more about it, so it has no parents that vary inside data sets. In a data set that was
learned from its value is certain; in a new one it is normal around the regression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import RANK_TOLERANCE
from poolbn.moments.standardised import Family, StandardisedStats, to_units
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.given import given_fit
from poolbn.nodes.localfit import Counts, GroupLevel, Status
from poolbn.nodes.model import Likelihoods
from poolbn.nodes.terms import Intervals
from poolbn.wording import counted

_ROUNDING = 1e-12  # of a column's standard deviation, which is no difference from 0

Floats = NDArray[np.float64]
Ending = tuple[Status, str]


def likelihoods(data: StandardisedStats, families: Sequence[Family]) -> Likelihoods:
    """Log-likelihoods of the values; -inf with a parent that varies inside data sets."""
    counts = np.array([_counts(parents) for _, parents in families])
    loglik = [-np.inf if _trouble(data, family) else _loglik(data, family) for family in families]
    return Likelihoods(np.array(loglik), counts, np.zeros(len(counts)))


def fit(data: StandardisedStats, family: Family) -> GaussianFit:
    """Least squares of the values: intercepts vary between data sets, residuals are zero."""
    child, parents = family
    trouble = _trouble(data, family)
    F, q = len(data.levels), len(parents) + 1
    b, inverse = np.zeros(q), np.zeros((q, q))
    some = slice(1 if trouble else q)  # as if it had no parents
    b[some], rss, inverse[some, some] = _least_squares(data, (child, () if trouble else parents))
    T = data.scale[child] * to_units(data, parents)
    fixed = T @ b
    fixed[0] += data.center[child]
    values = data.center + data.scale * data.mean  # (F, N)
    values[np.abs(values) < _ROUNDING * data.scale] = 0.0
    coef = np.tile(fixed, (F, 1))
    coef[:, 0] = values[:, child] - values[:, list(parents)] @ fixed[1:]
    unit = data.scale[child] ** 2
    random_cov = np.zeros((q, q))
    random_cov[0, 0] = unit * rss / F
    fixed_cov = rss / max(F - q, 1) * T @ inverse @ T.T
    status, detail = trouble or (Status.CONVERGED, f"least squares of the values of {F} data sets")
    made = given_fit(
        data.names[child],
        tuple(data.names[p] for p in parents),
        data.levels,
        GroupLevel(),
        detail,
        coef=coef,
        sigma2=np.zeros(F),
        fixed=fixed,
        random_cov=random_cov,
        loglik=-np.inf if trouble else _loglik(data, family),
        n_rows=int(data.rows),
    )
    return replace(
        made,
        df=np.full(F, max(F - q, 0) / F),
        rows=np.ones(F),
        fixed_cov=fixed_cov,
        saved_intervals=_intervals(coef, fixed_cov),
        counts=_counts(parents),
        status=status,
    )


def _intervals(coef: Floats, fixed_cov: Floats) -> Intervals:
    """Least squares has one error for the effects in all data sets."""
    F, q = coef.shape
    se, df = np.sqrt(np.diagonal(fixed_cov)), np.full(q, max(float(F - q), 1.0))
    none = np.full(q, math.nan)
    each = np.tile(np.append(math.nan, se[1:]), (F, 1))
    return Intervals(se, df, none, np.empty(0), each, np.tile(df, (F, 1)))


def _counts(parents: Sequence[int]) -> Counts:
    """Coefficients and a variance, all of which data sets inform."""
    return Counts(0, len(parents) + 2, 0)


def _least_squares(data: StandardisedStats, family: Family) -> tuple[Floats, float, Floats]:
    """Coefficients (q,), residual squares, and the inverse Gram matrix (q, q)."""
    child, parents = family
    y = data.mean[:, child]
    X = np.column_stack([np.ones(len(y)), data.mean[:, sorted(parents, key=data.order)]])
    # In order of name, so that the order of the table's columns does not matter.
    back = np.argsort(np.argsort([data.order(p) for p in parents]))
    inverse = np.linalg.pinv(X.T @ X, hermitian=True)
    b = inverse @ (X.T @ y)
    at = np.concatenate([[0], 1 + back]).astype(np.intp)
    return b[at], float(np.sum((y - X @ b) ** 2)), inverse[np.ix_(at, at)]


def _loglik(data: StandardisedStats, family: Family) -> float:
    F = len(data.levels)
    _, rss, _ = _least_squares(data, family)
    return float(-F / 2 * (1 + np.log(2 * np.pi * rss / F)) - F * data.log_scale[family[0]])


def _trouble(data: StandardisedStats, family: Family) -> Ending | None:
    """Why there is no likelihood, or None."""
    child, parents = family
    F, q, name = len(data.levels), len(parents) + 1, data.names[child]
    rows = [data.names[p] for p in parents if not data.group_level[p]]
    if rows:
        return (
            Status.NO_RESIDUAL_VARIANCE,
            f"{name!r} is constant in each data set, and its parent {rows[0]!r} is not; "
            "leave that arc out",
        )
    if q >= F:
        return (
            Status.TOO_FEW_ROWS,
            f"{name!r} has one value in each of {F} data sets, and {counted(q, 'coefficient')} and "
            f"a variance need at least {q + 1}; use fewer parents",
        )
    y = data.mean[:, child]
    X = data.mean[:, list(parents)]
    centred = X - X.mean(axis=0)
    if np.linalg.matrix_rank(centred, tol=RANK_TOLERANCE**0.5 * np.sqrt(F)) < len(parents):
        return (
            Status.RANK_DEFICIENT,
            f"parents of {name!r} are exact combinations of each other between data sets; leave "
            "one out",
        )
    _, rss, _ = _least_squares(data, family)
    if rss <= RANK_TOLERANCE * np.sum((y - y.mean()) ** 2):
        return (
            Status.NO_RESIDUAL_VARIANCE,
            f"between data sets {name!r} is an exact combination of its parents",
        )
    return None
