"""Adapted data sets, whose coefficients are uncertain: variances that depend on the row.

A node varies around its expectation by sigma^2 + E[z'Vz], z = (1, parents) and V the covariance of
its coefficients. Parents that are observed enter by value, the others by their mean and covariance
given the row, which depend on these variances in turn: they are found by iteration. Where all
parents are observed, and so with everything above a target observed and nothing below it, this is
exact; else it is a normal distribution in place of one that is not quite normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.inference.assembled import LinearNetwork
from poolbn.inference.conditioning import Floats, Given, condition

_ROUNDS = 50  # of iteration
_SETTLED = 1e-9  # relative change of variances that ends it
_NUMBERS = 2**19  # in the largest array


@dataclass(frozen=True, eq=False)
class Uncertain:
    """What an adapted data set adds to its joint distribution.

    Attributes:
        total: total effects of all nodes' residuals on all nodes, (N, N).
        sigma2: residual variances, (N,).
        coef_cov: covariance of each node's coefficients among those of 1 and all nodes, with 0 for
            those that are not its parents, (N, (N + 1)^2).
        is_parent: which nodes are parents, (N,).
    """

    total: Floats
    sigma2: Floats
    coef_cov: Floats
    is_parent: NDArray[np.bool_]


def uncertain_data_set(network: LinearNetwork, j: int) -> Uncertain:
    """What the fits say of data set number j."""
    N = len(network.names)
    coef_cov = np.zeros((N, N + 1, N + 1))
    is_parent = np.zeros(N, dtype=bool)
    for i, parents in enumerate(network.parents):
        pa = np.array(parents, dtype=np.int64)
        own = np.concatenate([[0], pa + 1])
        coef_cov[i, own[:, None], own] = network.coef_cov[i][j]
        is_parent[pa] = True
    return Uncertain(network.total[j], network.sigma2[j], coef_cov.reshape(N, -1), is_parent)


def condition_uncertain(
    extra: Uncertain,
    mean: Floats,
    values: Floats,
    observed: NDArray[np.bool_],
    targets: NDArray[np.int64],
) -> Given:
    """The same in an adapted data set: log densities (n,), means (n, T), covariances (n, T, T)."""
    most = max(1, _NUMBERS // (len(mean) + 1) ** 2)
    parts = []
    for at in range(0, len(values), most):
        x, seen = values[at : at + most], observed[at : at + most]
        cov = _covariances(extra, _variances(extra, mean, x, seen))
        parts.append(condition(mean, cov, x[:, None], seen, targets))
    return Given(
        np.concatenate([part.loglik[:, 0] for part in parts]),
        np.concatenate([part.mean[:, 0] for part in parts]),
        np.concatenate([part.cov for part in parts]),
    )


def _covariances(extra: Uncertain, variances: Floats) -> Floats:
    """Of all nodes, (n, N, N), from the variances of their residuals, (n, N)."""
    return (extra.total * variances[:, None]) @ extra.total.T


def _variances(
    extra: Uncertain, mean: Floats, values: Floats, observed: NDArray[np.bool_]
) -> Floats:
    """sigma^2 + E[z'Vz] of each node in each row, (n, N)."""
    nodes = np.arange(len(mean))
    variances = _spread(extra, np.where(observed, values, mean), 0.0)
    busy = np.flatnonzero((extra.is_parent & ~observed).any(axis=1))
    variances[busy] = extra.sigma2
    for _ in range(_ROUNDS):
        if not len(busy):
            break
        x, seen, before = values[busy], observed[busy], variances[busy]
        given = condition(mean, _covariances(extra, before), x[:, None], seen, nodes)
        hidden = ~seen[:, :, None] & ~seen[:, None, :]
        after = _spread(extra, np.where(seen, x, given.mean[:, 0]), given.cov * hidden)
        variances[busy] = after
        busy = busy[(np.abs(after - before) > _SETTLED * after).any(axis=1)]
    return variances


def _spread(extra: Uncertain, expected: Floats, cov: Floats | float) -> Floats:
    """sigma^2 + E[z'Vz], (n, N), from means (n, N) and covariances (n, N, N) of all nodes."""
    n, N = expected.shape
    second = np.empty((n, N + 1, N + 1))  # E[zz']
    second[:, 0, 0] = 1.0
    second[:, 0, 1:] = second[:, 1:, 0] = expected
    second[:, 1:, 1:] = expected[:, :, None] * expected[:, None, :] + cov
    return extra.sigma2 + np.maximum(second.reshape(n, -1) @ extra.coef_cov.T, 0.0)
