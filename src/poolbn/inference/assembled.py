"""All nodes together, as one linear network: x = a + B x + residuals in each data set."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poolbn.arrays import Floats
from poolbn.graph.dag import Dag
from poolbn.nodes.localfit import LinearFit


@dataclass(frozen=True, eq=False)
class LinearNetwork:
    """Coefficients and residual variances of N nodes in F data sets (eq. cgnode)."""

    names: tuple[str, ...]  # the nodes
    levels: tuple[Hashable, ...]  # the data sets
    order: tuple[int, ...]  # the nodes with parents first, (N,)
    parents: tuple[tuple[int, ...], ...]  # as positions, in the order of coefficients
    intercept: Floats  # a, (F, N)
    slopes: Floats  # B, the child first, (F, N, N)
    sigma2: Floats  # residual variances, (F, N)

    @cached_property
    def total(self) -> Floats:
        """Total effects (I - B)^-1 of each node's residual on each node, (F, N, N)."""
        F, N = self.sigma2.shape
        total = np.zeros((F, N, N))
        for i in self.order:
            pa = list(self.parents[i])
            total[:, i] = np.einsum("jp,jpk->jk", self.slopes[:, i, pa], total[:, pa])
            total[:, i, i] = 1.0
        return total

    @cached_property
    def mean(self) -> Floats:
        """Means of the nodes, (F, N)."""
        mean = np.zeros_like(self.intercept)
        for i in self.order:
            pa = list(self.parents[i])
            mean[:, i] = self.intercept[:, i] + (self.slopes[:, i, pa] * mean[:, pa]).sum(axis=1)
        return mean

    @cached_property
    def loadings(self) -> Floats:
        """What each node takes of each node's standardised residual, (F, N, N)."""
        return np.asarray(self.total * np.sqrt(self.sigma2)[:, None])

    @cached_property
    def cov(self) -> Floats:
        """Covariances of the nodes, (F, N, N)."""
        return np.asarray(self.loadings @ np.swapaxes(self.loadings, 1, 2))


def assemble(dag: Dag, fits: Mapping[str, LinearFit]) -> LinearNetwork:
    """Put the nodes together."""
    position = {name: i for i, name in enumerate(dag.nodes)}
    levels = fits[dag.nodes[0]].levels
    F, N = len(levels), len(position)
    intercept, sigma2, slopes = np.empty((F, N)), np.empty((F, N)), np.zeros((F, N, N))
    parents = []
    for i, node in enumerate(dag.nodes):
        fit = fits[node]
        pa = [position[parent] for parent in fit.parents]
        intercept[:, i], slopes[:, i, pa] = fit.coef[:, 0], fit.coef[:, 1:]
        sigma2[:, i] = fit.sigma2
        parents.append(tuple(pa))
    return LinearNetwork(
        names=dag.nodes,
        levels=levels,
        order=tuple(position[node] for node in dag.topological_order()),
        parents=tuple(parents),
        intercept=intercept,
        slopes=slopes,
        sigma2=sigma2,
    )


@dataclass(frozen=True, eq=False)
class Joint:
    """The distribution of X in each data set, and of the data sets."""

    names: tuple[str, ...]  # the N nodes
    levels: tuple[Hashable, ...]  # the F data sets
    prior: Floats  # P(F), (F,)
    mean: Floats  # of X in each data set, (F, N)
    cov: Floats  # of X in each data set, (F, N, N)


# The Kullback-Leibler divergence between two fitted networks, in closed form.
#
# With x = mean + L z in the first network, z independent standard normal and L their loadings, the
# residual of a node in the second one has the expected square
#
#     r = |l_i - sum_k c_k l_k|^2 + (mean_i - c_0 - sum_k c_k mean_k)^2,
#
# l the rows of L, c the second network's coefficients, k over the parents there. The divergence is
#
#     sum_i log s_i - log |det L| + sum_i (r_i / s_i^2 - 1) / 2,
#
# s_i^2 its residual variances. No covariance is inverted, and a change of units scales r_i and
# s_i^2 alike, so columns of very different sizes do no harm.
#
# Nodes that are exact combinations of others have no density. Where both networks live on one and
# the same plane, the divergence is that of the densities on it, in the coordinates that the second
# network leaves free: the other nodes leave the sums, and L its rows of those, and its columns of
# the nodes without residuals in the first. Else it is infinite.

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


def _divergence(L: Floats, r: Floats, s2: Floats, noise: Floats) -> float:
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
