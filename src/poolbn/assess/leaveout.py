"""Each node predicted from all the others, and the data set from all nodes: in closed form.

Estimates are taken for certain, as in the paper: what is uncertain hardly moves expectations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.network.network import Network


@dataclass(frozen=True, eq=False)
class LeaveOut:
    """Posterior means of every cell given the rest of its row."""

    known: NDArray[np.float64]  # with the row's data set known, (n, N)
    unknown: NDArray[np.float64]  # with it unknown, (n, N)
    data_set: NDArray[np.int64]  # the position of the most probable one given all cells, (n,)


def leave_out(network: Network, values: NDArray[np.float64], codes: NDArray[np.int64]) -> LeaveOut:
    """Predict each cell from the rest of its row; `Network.predict` with each node in turn.

    With residuals e = (I - B) x - intercepts of variances s, the precision matrix of a data set is
    Lambda = (I - B)' diag(1 / s) (I - B), and x_i less its prediction is g_i / Lambda_ii, g =
    (I - B)' (e / s). Nothing is inverted. P(F | the rest) comes from the density of the whole row
    over that of x_i given the rest.

    Args:
        network: residual variances must be positive, and no data set adapted.
        values: rows without missing values, in the order of the nodes, (n, N).
        codes: the data set of each row, as a position in `network.levels`, (n,).
    """
    n, N = values.shape
    F = len(network.levels)
    known = np.empty((n, N))
    miss = np.empty((F, n, N))  # cell less prediction
    loglik = np.empty((F, n))
    log_weight = np.empty((F, n, N))
    with np.errstate(divide="ignore"):
        log_prior = np.log(network.joint.prior)
    linear = network.linear
    for j in range(F):
        B = np.eye(N) - linear.slopes[j]  # I - B
        center, s = linear.intercept[j], linear.sigma2[j]
        e = values @ B.T - center
        precision = (B**2 / s[:, None]).sum(axis=0)  # diagonal of Lambda
        miss[j] = (e / s) @ B / precision
        loglik[j] = log_prior[j] - 0.5 * ((e**2 / s) + np.log(s)).sum(axis=1)
        given_rest = 0.5 * (np.log(precision) - precision * miss[j] ** 2)
        log_weight[j] = loglik[j][:, None] - given_rest
        of_j = codes == j
        known[of_j] = values[of_j] - miss[j][of_j]
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    unknown = values - (weight * miss).sum(axis=0)
    return LeaveOut(known, unknown, loglik.argmax(axis=0))
