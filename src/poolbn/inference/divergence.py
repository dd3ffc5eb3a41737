"""The Kullback-Leibler divergence between two fitted networks, in closed form.

With x = mean + L z in the first network, z independent standard normal and L their loadings, the
residual of a node in the second one has the expected square

    r = |l_i - sum_k c_k l_k|^2 + (mean_i - c_0 - sum_k c_k mean_k)^2,

l the rows of L, c the second network's coefficients, k over the parents there. The divergence is

    sum_i log s_i - log |det L| + sum_i (r_i / s_i^2 - 1) / 2,

s_i^2 its residual variances. No covariance is inverted, and a change of units scales r_i and s_i^2
alike, so columns of very different sizes do no harm.

Nodes that are exact combinations of others have no density. Where both networks live on one and the
same plane, the divergence is that of the densities on it, in the coordinates that the second
network leaves free: the other nodes leave the sums, and L its rows of those, and its columns of the
nodes without residuals in the first. Else it is infinite.
"""

from __future__ import annotations

import math

import numpy as np

from poolbn.arrays import Floats
from poolbn.inference.assembled import LinearNetwork

# A residual below this part of the terms that it is the difference of is rounding.
_ROUNDING = 1e-10


def divergences(true: LinearNetwork, other: LinearNetwork) -> Floats:
    """The divergence in each data set of the first network, (F,).

    The second may have another graph, and nodes and data sets in another order.
    """
    at = [other.levels.index(level) for level in true.levels]
    nodes = [other.names.index(name) for name in true.names]
    known = np.concatenate([true.loadings, true.mean[:, :, None]], axis=2)  # (F, N, N + 1)
    slopes = other.slopes[np.ix_(at, nodes, nodes)]
    intercept, s2 = other.intercept[np.ix_(at, nodes)], other.sigma2[np.ix_(at, nodes)]
    rest = known - slopes @ known
    size = np.abs(known) + np.abs(slopes) @ np.abs(known)
    rest[:, :, -1] -= intercept
    size[:, :, -1] += np.abs(intercept)
    r, noise = (rest**2).sum(axis=2), _ROUNDING**2 * (size**2).sum(axis=2)
    return np.array(
        [_divergence(*parts) for parts in zip(true.loadings, r, s2, noise, strict=True)]
    )


def _divergence(
    L: Floats,
    r: Floats,
    s2: Floats,
    noise: Floats,
) -> float:
    """In one data set, from loadings (N, N), and squares, variances and rounding errors (N,)."""
    free, random = s2 > 0, np.diagonal(L) > 0
    if free.sum() != random.sum() or (r > noise)[~free].any():
        return math.inf
    if free.all():
        log_det = np.log(np.diagonal(L)).sum()  # L is triangular with parents first
    else:
        log_det = np.linalg.slogdet(L[free][:, random])[1]
    value = (np.log(s2[free]) + r[free] / s2[free] - 1).sum() / 2 - log_det
    return max(0.0, float(value))
