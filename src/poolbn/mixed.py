"""Partial pooling: the linear mixed-effects model of one family (eq. lmenode), from statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.compiling import kernels
from poolbn.constants import CONVERGED, DEPENDENT, DETERMINED
from poolbn.standard import Family, Packed, Standard, pack, to_units, units

# Starts for D, in units of the sampling variance of a data set's own coefficients. For a score one
# start has to do: of 3195 families of real and simulated tables it found the best known maximum in
# 97%. The final fit tries all of these: all but one. 0 comes first, so that of equally good fits
# the one without random effects is kept.
SCORE_STARTS = np.array([10.0])
FINAL_STARTS = np.array([0.0, 3.0, 1e3, 1e6, 0.1])
_ALL = 2**30  # parents without random effects: more than there are
_TOLERANCE = 1e-9  # a predicted fall of the deviance that is not worth a step


@dataclass(frozen=True)
class MixedFit:
    """One fitted family, in the units of the data; parents in the order given.

    Attributes:
        loglik: maximised log-likelihood, or restricted log-likelihood.
        sigma2: residual variance.
        fixed: fixed effects, (q,); fixed_cov: their covariance, (q, q).
        random_cov: covariance of the random effects, (q, q); zero where there are none.
        random: predicted random effects (BLUPs), (F, q).
        conditional_cov: their covariance given the data and the other parameters, (F, q, q).
        rank: rank of random_cov.
        settled: whether the search for the maximum came to an end.
    """

    loglik: float
    sigma2: float
    fixed: NDArray[np.float64]
    fixed_cov: NDArray[np.float64]
    random_cov: NDArray[np.float64]
    random: NDArray[np.float64]
    conditional_cov: NDArray[np.float64]
    rank: int
    settled: bool


def log_likelihoods(
    data: Standard, families: Sequence[Family], *, full: bool, reml: bool
) -> NDArray[np.float64]:
    """Maximised log-likelihood of each family for a score: one start; -inf where none exists."""
    without = 0 if full else _ALL
    deviance, *_ = _fit(data, pack(families), without, reml, SCORE_STARTS, polish=False)
    return -0.5 * deviance


def without_each(data: Standard, child: int, parents: Sequence[int]) -> NDArray[np.float64]:
    """Maximised log-likelihood with the effect of one parent the same in all data sets, (p,).

    All other coefficients vary between data sets, with all their covariances.
    """
    p = len(parents)
    others = [[*(x for x in sorted(parents) if x != parent), parent] for parent in parents]
    packed = (
        np.full(p, child, dtype=np.int64),
        p * np.arange(p + 1, dtype=np.int64),
        np.array(others, dtype=np.int64).ravel(),
    )
    deviance, *_ = _fit(data, packed, 1, False, FINAL_STARTS, polish=False)
    return -0.5 * deviance


def fit(
    data: Standard, child: int, parents: Sequence[int], *, full: bool, reml: bool
) -> MixedFit | int | None:
    """The final fit of one family: all starts, and everything in the units of the data.

    Returns:
        The fit; or, where no finite likelihood has a maximum, the position in `parents` of a column
        that is a combination of the others, or None if the child is determined by its parents.
    """
    F, q = len(data.n), len(parents) + 1
    random = q if full else 1
    (deviance,), (rss,), (rank,), (code,), buffer = _fit(
        data, pack([(child, parents)]), 0 if full else _ALL, reml, FINAL_STARTS, polish=True
    )
    order = np.argsort(np.asarray(parents, dtype=np.int64))
    if code >= DEPENDENT:
        column = int(code) - DEPENDENT
        return int(order[column - 1])
    if code == DETERMINED:
        return None
    # The first parts of the kernels' work space, see `_work.carve`.
    shapes = [(q, q, F), (q, F), (q, q), (q, q), (random, random), (q,)]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(buffer[: ends[-1]], ends[:-1])
    R, e, S, B, L, beta = (part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))

    n = data.n.sum()
    variance = rss / (n - q if reml else n)
    # From combined to original columns: coefficients are A times those of the kernels.
    A = data.scale[child] * to_units(data, sorted(parents)) @ np.linalg.inv(B)
    A = A[np.concatenate([[0], 1 + np.argsort(order)])]
    AL = A[:, :random] @ L
    RL = R.transpose(2, 0, 1)[:, :, :random] @ L
    M = np.eye(random) + RL.transpose(0, 2, 1) @ RL
    fixed = A @ beta
    fixed[0] += data.center[child]
    return MixedFit(
        loglik=float(-0.5 * deviance),
        sigma2=float(variance * data.scale[child] ** 2),
        fixed=fixed,
        fixed_cov=variance * A @ np.linalg.inv(np.tril(S) + np.tril(S, -1).T) @ A.T,
        random_cov=variance * AL @ AL.T,
        random=e[:random].T @ L @ AL.T,
        conditional_cov=variance * (AL @ np.linalg.inv(M) @ AL.T),
        rank=int(rank),
        settled=bool(code == CONVERGED),
    )


def _fit(
    data: Standard,
    packed: Packed,
    without: int,
    reml: bool,
    starts: NDArray[np.float64],
    polish: bool,
) -> tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
]:
    """Deviance in the units of the data, rss, rank and code of each family, and the work space."""
    optimise = kernels("_optimise")
    children, offsets, parents = packed
    F, M = len(data.n), len(children)
    q = int(np.diff(offsets).max()) + 1
    buffer = np.empty(kernels("_work").buffer_size(F, q, reml))
    deviance, rss = np.empty(M), np.empty(M)
    rank, code = np.empty(M, dtype=np.int64), np.empty(M, dtype=np.int64)
    optimise.fit_families(
        data.n, data.mean, data.scatter, children, offsets, parents, without, reml, starts,
        _TOLERANCE, polish, buffer, np.empty(q, dtype=np.int64), deviance, rss, rank, code,
    )  # fmt: skip
    deviance += units(data, *packed, reml)
    return deviance, rss, rank, code, buffer
