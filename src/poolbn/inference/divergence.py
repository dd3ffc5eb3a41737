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
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from poolbn.graph.dag import Dag
from poolbn.nodes.localfit import LocalFit

# A residual below this part of the terms that it is the difference of is rounding.
_ROUNDING = 1e-10


def divergences(
    dag: Dag,
    true: Mapping[str, LocalFit],
    other: Mapping[str, LocalFit],
    mean: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The divergence in each data set of the first network, (F,).

    Args:
        dag: the graph of the first network.
        true: its nodes.
        other: the nodes of the second, which may have another graph, and the data sets in another
            order.
        mean: of the nodes in the first network, (F, N).
    """
    place = {node: i for i, node in enumerate(dag.nodes)}
    L = _loadings(dag, true)
    known = np.concatenate([L, mean[:, :, None]], axis=2)  # (F, N, N + 1)
    r, s2, noise = (np.empty(mean.shape) for _ in range(3))
    for node, i in place.items():
        fit = other[node]
        at = [fit.levels.index(level) for level in true[node].levels]
        coef = fit.coef[at]
        rest, size = known[:, i].copy(), np.abs(known[:, i])
        for k, parent in enumerate(fit.parents):
            term = coef[:, 1 + k, None] * known[:, place[parent]]
            rest -= term
            size += np.abs(term)
        rest[:, -1] -= coef[:, 0]
        size[:, -1] += np.abs(coef[:, 0])
        r[:, i] = (rest**2).sum(axis=1)
        noise[:, i] = _ROUNDING**2 * (size**2).sum(axis=1)
        s2[:, i] = fit.sigma2[at]
    return np.array([_divergence(*parts) for parts in zip(L, r, s2, noise, strict=True)])


def _divergence(
    L: NDArray[np.float64],
    r: NDArray[np.float64],
    s2: NDArray[np.float64],
    noise: NDArray[np.float64],
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


def _loadings(dag: Dag, fits: Mapping[str, LocalFit]) -> NDArray[np.float64]:
    """What each node takes of each node's standardised residual, in each data set, (F, N, N)."""
    place = {node: i for i, node in enumerate(dag.nodes)}
    L = np.zeros((len(fits[dag.nodes[0]].levels), len(place), len(place)))
    for node in dag.topological_order():
        fit, i = fits[node], place[node]
        for k, parent in enumerate(fit.parents):
            L[:, i] += fit.coef[:, 1 + k, None] * L[:, place[parent]]
        L[:, i, i] = np.sqrt(fit.sigma2)
    return L
