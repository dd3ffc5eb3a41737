"""Tests of many things at once."""

from __future__ import annotations

import numpy as np

from poolbn.arrays import Floats


def adjusted_p(p_values: list[float]) -> Floats:
    """Benjamini and Hochberg's adjusted p-values; NaN stays, and does not count.

    Examples:
        >>> adjusted_p([0.01, 0.04, 0.03, float("nan")])
        array([0.03, 0.04, 0.04,  nan])
    """
    p = np.array(p_values, dtype=np.float64)
    at = np.flatnonzero(~np.isnan(p))
    order = at[np.argsort(-p[at], kind="stable")]  # the largest first
    rank = np.arange(len(at), 0, -1)
    p[order] = np.minimum.accumulate(np.minimum(p[order] * len(at) / rank, 1.0))
    return p
