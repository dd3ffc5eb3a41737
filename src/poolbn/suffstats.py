"""`GroupStats`: all that the models need to know of the rows, for each data set."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class GroupStats:
    """Row count, mean vector and centred scatter matrix of each data set.

    Attributes:
        names: the N columns.
        levels: the F data sets, in order of first appearance.
        n: rows of each data set, (F,).
        mean: mean of each column in each data set, (F, N).
        scatter: centred sums of squares and products in each data set, (F, N, N).
    """

    names: tuple[str, ...]
    levels: tuple[Hashable, ...]
    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
