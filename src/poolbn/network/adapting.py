"""A data set that was not learned from: its coefficients, from its own rows or from none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError
from poolbn.moments.groupstats import Family, GroupStats, stats
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.mixed import expected_variance
from poolbn.nodes.pooling import Separate


def new_data_set(
    source: object,
    name: Hashable,
    *,
    levels: Sequence[Hashable],
    nodes: Sequence[str],
    missing: Literal["error", "drop"],
) -> GroupStats:
    """The statistics of the nodes in one data set called `name`; of no rows if `source` is None.

    Raises:
        DataError: the name is no name or one of `levels`, there is more than one data set, or the
            rows cannot be used.
    """
    if name is None or not isinstance(name, Hashable):
        raise DataError(
            f"name={name!r} does not name a data set; use a text or a number, name='new clinic'"
        )
    if name in levels:
        raise DataError(
            f"data set {name!r} is already in the network; give the new rows another name, or "
            "learn anew from all rows"
        )
    N = len(nodes)
    if source is None:
        none = np.zeros(1, dtype=np.int64)
        return GroupStats(tuple(nodes), (name,), none, np.zeros((1, N)), np.zeros((1, N, N)), none)
    if not isinstance(source, GroupStats | Mapping | str | PathLike | list | tuple):
        source = {name: source}
    found = stats(source, columns=nodes, missing=missing)
    if len(found.levels) > 1:
        more = ", ..." if len(found.levels) > 3 else ""
        raise DataError(
            f"there are {len(found.levels)} data sets, {', '.join(map(repr, found.levels[:3]))}"
            f"{more}; adapt to one at a time, or learn anew from all"
        )
    return replace(found, levels=(name,))


def adapted(fit: LocalFit, n: NDArray[np.int64], new: GroupStats) -> LocalFit:
    """The fit with one more data set, and everything else as it was.

    Partial pooling predicts the random effects of the new data set, given the fixed effects and
    the covariances that were learned. Complete pooling says that it is like all others: it has
    their coefficients, and `coef_cov` is zero because the uncertainty of what all share is left out
    of predictions for the others too. Without pooling there is nothing to go by but its own rows.

    Pooled residual variances give the one to be expected after the new rows were seen. Others that
    differ between data sets give their mean weighted by rows: what a variance shared by all would
    be estimated as, given the coefficients.

    Args:
        fit: a node.
        n: rows of each data set that it has, (F,).
        new: the statistics of the new data set.

    Raises:
        DataError: without pooling, the rows do not give all coefficients and a variance.
    """
    # As a difference, so that equal variances stay equal to the last bit.
    sigma2 = fit.sigma2[0] + np.average(fit.sigma2 - fit.sigma2[0], weights=n)
    if fit.fixed is None:
        own = _separate(new, fit.child, fit.parents)
        coef, cov, sigma2 = own.coef[0], own.coef_cov[0], own.sigma2[0]
    elif fit.random_cov is None:
        coef, cov = fit.fixed, np.zeros_like(fit.coef_cov[0])
    else:
        family = new.family(fit.child, fit.parents)
        if fit.residual_shape is None or fit.residual_scale is None:
            b, cov, _ = random_effects(family, fit.fixed, fit.random_cov, float(sigma2))
        else:  # random effects in proportion to the residual variance, which the rows tell about
            scale = fit.residual_scale
            b, cov, squares = random_effects(family, fit.fixed, fit.random_cov, scale)
            rows = family.n.astype(np.float64)
            sigma2 = expected_variance(fit.residual_shape, scale, rows, np.array([squares]))[0]
            cov *= sigma2 / scale
        coef = fit.fixed + b
    return replace(
        fit,
        levels=(*fit.levels, *new.levels),
        coef=np.vstack([fit.coef, coef]),
        coef_cov=np.concatenate([fit.coef_cov, cov[None]]),
        sigma2=np.append(fit.sigma2, sigma2),
    )


def random_effects(
    family: Family,
    beta: NDArray[np.float64],
    D: NDArray[np.float64],
    sigma2: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Random effects of one data set (BLUP), (q,), and their covariance given its rows, (q, q).

    The third is (y - Z beta)'(I + Z D Z' / sigma2)^-1 (y - Z beta), the generalised residual
    squares.

    b = D Z'(sigma2 I + Z D Z')^-1 (y - Z beta) is, with D = LL' and M = sigma2 I + L'Z'Z L, the
    same as L M^-1 L'Z'(y - Z beta), and its covariance given the rows is sigma2 L M^-1 L'. So D may
    be singular, and only Z'Z and Z'y are needed.

    Args:
        family: the statistics of the data set.
        beta: fixed effects, (q,).
        D: covariance of the random effects, (q, q).
        sigma2: residual variance, positive unless D is zero.
    """
    n, mean, scatter = float(family.n[0]), family.mean[0], family.scatter[0]
    q = len(beta)
    # Parents are centred at their means in this data set: coefficients become C b, the intercept is
    # the mean of the child, Z'Z falls apart into n and the scatter, and columns far from zero cost
    # no digits.
    C, back = np.eye(q), np.eye(q)
    C[0, 1:], back[0, 1:] = mean[:-1], -mean[:-1]
    A = np.zeros((q, q))
    A[0, 0], A[1:, 1:] = n, scatter[:-1, :-1]
    residual = np.empty(q)  # Z'(y - Z beta)
    residual[0] = n * (mean[-1] - C[0] @ beta)
    residual[1:] = scatter[:-1, -1] - scatter[:-1, :-1] @ beta[1:]

    D = C @ D @ C.T
    scale = np.sqrt(np.maximum(np.diagonal(D), 0.0))
    scale[scale == 0] = 1.0  # no random effect, no column of L
    value, vector = np.linalg.eigh(D / np.outer(scale, scale))
    positive = value > q * np.finfo(np.float64).eps
    L = scale[:, None] * vector[:, positive] * np.sqrt(value[positive])  # (q, r)
    M = sigma2 * np.eye(L.shape[1]) + L.T @ A @ L
    half = np.linalg.solve(np.linalg.cholesky(M), L.T)  # L M^-1 L' = half'half
    explained = half @ residual
    b = back @ (half.T @ explained)
    weights = np.append(-beta[1:], 1.0)
    squares = weights @ scatter @ weights + residual[0] ** 2 / max(n, 1.0) - explained @ explained
    half = np.sqrt(sigma2) * half @ back.T
    return b, half.T @ half, max(float(squares), 0.0)


def _separate(new: GroupStats, child: str, parents: Sequence[str]) -> LocalFit:
    """Least squares on the rows of the new data set alone."""
    rows, q = new.n_rows, len(parents) + 1
    alone = "without pooling there is no population to draw on"
    if rows <= q:
        raise DataError(
            f"{alone}: {q} coefficient{'s' * (q > 1)} and a variance of {child!r} need at least "
            f"{q + 1} rows of data set {new.levels[0]!r}, and there are {rows}; give more rows, or "
            "learn with pooling='partial'"
        )
    fit = Separate().fit(new, child, parents)
    if not fit.status.ok:
        raise DataError(f"{alone}, and {fit.status.detail}; or learn with pooling='partial'")
    return fit
