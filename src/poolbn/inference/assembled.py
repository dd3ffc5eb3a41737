"""All nodes together, as one linear network: x = a + B x + residuals in each data set."""

from __future__ import annotations

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
