"""The joint distribution of all nodes: a multivariate normal in each data set, and P(F)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.graph.dag import Dag
from poolbn.nodes.localfit import LocalFit


@dataclass(frozen=True, eq=False)
class Joint:
    """The distribution of X in each data set, and of the data sets.

    Attributes:
        names: the N nodes.
        levels: the F data sets.
        prior: P(F), (F,).
        mean: of X in each data set, (F, N).
        cov: of X in each data set, (F, N, N).
    """

    names: tuple[str, ...]
    levels: tuple[Hashable, ...]
    prior: NDArray[np.float64]
    mean: NDArray[np.float64]
    cov: NDArray[np.float64]


def joint_distribution(dag: Dag, fits: Mapping[str, LocalFit], n: NDArray[np.int64]) -> Joint:
    """Put the nodes together, parents first.

    A node adds C mu to the means and C Sigma to the covariances, C its coefficients (eq. cgnode).
    """
    place = {name: i for i, name in enumerate(dag.nodes)}
    levels = fits[dag.nodes[0]].levels
    F, N = len(levels), len(place)
    mean, cov = np.zeros((F, N)), np.zeros((F, N, N))
    for node in dag.topological_order():
        fit, i = fits[node], place[node]
        pa = [place[parent] for parent in fit.parents]
        slope = fit.coef[:, 1:]  # (F, p)
        mean[:, i] = fit.coef[:, 0] + (slope * mean[:, pa]).sum(axis=1)
        row = np.einsum("jp,jpk->jk", slope, cov[:, pa])
        cov[:, i], cov[:, :, i] = row, row
        cov[:, i, i] = (row[:, pa] * slope).sum(axis=1) + fit.sigma2
    return Joint(dag.nodes, levels, n / n.sum(), mean, cov)
