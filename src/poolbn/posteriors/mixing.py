"""How well chains agree: R-hat, effective sample sizes, Monte Carlo errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

R_HAT = 1.05  # above which chains have not mixed
_MATTERS = 0.01  # standard deviation over states below which an arc's R-hat does not matter

Floats = NDArray[np.float64]


def measures(trace: Floats) -> tuple[float, float, float]:
    """R-hat, effective sample size and standard error of one number, (chains, kept)."""
    spread = float(trace.std())
    if spread < _MATTERS:
        return 1.0, float(trace.size), spread / math.sqrt(trace.shape[0])
    ess = effective_size(trace)
    return split_r_hat(trace), ess, spread / math.sqrt(ess)


def split_r_hat(trace: Floats) -> float:
    """Gelman and Rubin's R-hat of chains of which each is cut in two; (chains, kept).

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> round(split_r_hat(rng.normal(size=(4, 500))), 2)
        1.0
        >>> bool(split_r_hat(rng.normal(size=(4, 500)) + np.arange(4)[:, None]) > 1.3)
        True
    """
    half = trace.shape[1] // 2
    parts = np.concatenate([trace[:, :half], trace[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean()
    between = half * parts.mean(axis=1).var(ddof=1)
    if within == 0.0:
        return math.inf if between > 0 else 1.0
    return math.sqrt((half - 1) / half + between / within / half)


def effective_size(trace: Floats) -> float:
    """How many independent draws chains are worth, (chains, kept); Geyer's initial sequence.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> bool(1800 < effective_size(rng.normal(size=(4, 500))) < 2200)
        True
    """
    m, n = trace.shape
    centred = trace - trace.mean(axis=1, keepdims=True)
    size = 2 ** math.ceil(math.log2(2 * n))
    power = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(power, size, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + trace.mean(axis=1).var(ddof=1) if m > 1 else covariance[0]
    if total <= 0.0:
        return float(m * n)
    rho = 1.0 - (within - covariance * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if len(ends) else pairs)
    time = max(2.0 * float(pairs.sum()) - 1.0, 1.0 / math.log10(max(m * n, 10)))
    return float(m * n / time)


def monte_carlo(values: Floats, chains: int) -> tuple[Floats, Floats]:
    """The mean of numbers of each draw, (draws, ...), and its Monte Carlo standard error.

    Args:
        values: of draws, those of one chain after those of another.
        chains: how many; 1 for draws that are independent.

    Examples:
        >>> mean, se = monte_carlo(np.random.default_rng(0).normal(size=(400, 2)), 1)
        >>> se.round(2)
        array([0.05, 0.05])
    """
    mean, spread = values.mean(axis=0), values.std(axis=0)
    if chains == 1:
        return mean, spread / math.sqrt(len(values))
    flat = values.reshape(chains, -1, math.prod(values.shape[1:]))
    sizes = [effective_size(flat[:, :, k]) for k in range(flat.shape[2])]
    return mean, spread / np.sqrt(sizes).reshape(np.shape(mean))
