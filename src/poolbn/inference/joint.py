"""The joint distribution of all nodes: a multivariate normal in each data set, and P(F)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.inference.assembled import LinearNetwork


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


def joint_distribution(network: LinearNetwork, n: NDArray[np.int64]) -> Joint:
    """The joint distribution of the nodes, with data sets as probable as they have rows."""
    return Joint(network.names, network.levels, n / n.sum(), network.mean, network.cov)
