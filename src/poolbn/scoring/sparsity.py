"""A prior for how many parents a node has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poolbn.arrays import Floats

_GAMMA = 0.5


def sparsity(columns: int, parents: Sequence[int]) -> Floats:
    """What to take off the scores of nodes with so many parents: half the log of ways to choose.

    There are many more sets of three parents than of one, so that the best of them is often good by
    chance, and the more the larger a network is: extended BIC, with the gamma of 1/2 that is usual
    (Chen and Chen, 2008; Foygel and Drton, 2010).

    Examples:
        >>> sparsity(5, [0, 1, 2]).round(2)
        array([0.  , 0.69, 0.9 ])
    """
    from scipy.special import gammaln

    k = np.asarray(parents)
    ways = gammaln(columns) - gammaln(k + 1) - gammaln(columns - k)
    return np.asarray(_GAMMA * ways, dtype=np.float64)
