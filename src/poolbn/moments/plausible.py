"""Whether rows can have the statistics that a file holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-4  # of the smallest eigenvalue of correlations
_LAST = 2.0**-50  # of a mean: its last digits, that rounding changes


def wrong(
    n: int, mean: NDArray[np.float64], scatter: NDArray[np.float64], dropped: int, least: int
) -> str:
    """Why no rows have such statistics, or nothing; `mean` (N,), `scatter` (N, N)."""
    square = scatter.diagonal()
    few = "one row" if n else "0 rows"
    finite = np.isfinite(mean).all() and np.isfinite(scatter).all()
    checks = (
        (n < least, f"has {n} rows"),
        (dropped < 0, f"has {dropped} rows left out"),
        (not finite, "has means or sums that are not finite"),
        (not np.array_equal(scatter, scatter.T), "has sums of products that are not symmetric"),
        (n <= 1 and scatter.any(), f"has {few} and sums of squares that are not zero"),
        ((square < 0).any(), "has a sum of squares below zero"),
        (scatter[square == 0].any(), "has products with a constant column that are not zero"),
    )
    told = next((words for wrong, words in checks if wrong), "")
    if told:
        return told
    if not _semidefinite(scatter):
        return "has sums of products that no rows have: they are not positive semidefinite"
    rank = _rank(n, mean, scatter)
    if rank >= max(n, 1):
        return f"has {n} rows, and sums of products of rank {rank} that need {rank + 1}"
    return ""


def _correlations(scatter: NDArray[np.float64]) -> NDArray[np.float64]:
    """With zeros for a constant column, (N, N)."""
    square = scatter.diagonal()
    size = np.sqrt(np.where(square > 0, square, 1.0))
    return np.asarray(scatter / size / size[:, None])


def _rank(n: int, mean: NDArray[np.float64], scatter: NDArray[np.float64]) -> int:
    """The rank of a scatter matrix (N, N), as far as it is not rounding.

    Means are rounded, and with them all differences from a mean, in units of its last digits.
    """
    if n > len(mean):
        return 0  # it can have any
    square = scatter.diagonal()
    digits = n * (_LAST * np.abs(mean)) ** 2 / np.where(square > 0, square, 1.0)
    eigenvalues = np.linalg.eigvalsh(_correlations(scatter))
    return int((eigenvalues > _ROUNDING + digits[square > 0].sum()).sum())


def _semidefinite(scatter: NDArray[np.float64]) -> bool:
    """Whether a matrix (N, N), as correlations, has no eigenvalue below zero but for rounding."""
    scaled = _correlations(scatter)
    np.fill_diagonal(scaled, 1.0 + _ROUNDING)
    try:
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return False
    return True
