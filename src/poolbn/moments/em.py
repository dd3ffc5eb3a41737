"""Missing cells: expected sufficient statistics, by EM in each data set.

Rows of a data set are normal with its own mean mu and covariance Sigma, and cells are missing at
random. What is maximised is the likelihood of the observed cells with a normal-inverse-Wishart
penalty: as if there were a few rows more that have the covariance of all data sets, and some at
their mean,

    l(mu, Sigma) - v/2 [log|Sigma| + tr(Sigma^-1 S)] - k/2 (mu - m)' Sigma^-1 (mu - m).

S is the covariance inside data sets, with columns in units of their SD in each, and k the variance
inside over that between their means: data sets with similar means tell of each other's. A column
that a data set never measured follows the others as it does in S.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.moments.patterns import Gaps, by_pattern
from poolbn.run.compiling import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEPS = 2000
_TOLERANCE, _SMALL = 1e-11, 1e-8  # of the objective for each row and steps; of steps ahead


class Complete(NamedTuple):
    """Rows without gaps of one data set: their number, mean (N,) and scatter (N, N)."""

    n: float
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]


class Problem(NamedTuple):
    """The rows of one data set; see `kernels.expect` for those with gaps.

    Attributes:
        complete: rows without gaps.
        at: and all that follow are arguments of the kernel.
    """

    complete: Complete
    at: NDArray[np.int64]
    columns: NDArray[np.int64]
    counts: NDArray[np.int64]
    cells: NDArray[np.int64]
    n: NDArray[np.float64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    begin: NDArray[np.int64]
    rows: NDArray[np.float64]

    @property
    def n_rows(self) -> float:
        """Rows with and without gaps."""
        return float(self.complete.n + self.n.sum() + len(self.rows))

    @property
    def n_cells(self) -> float:
        """Cells that are there."""
        N = len(self.complete.mean)
        in_cells = (N - self.counts[self.cells >= 0]) @ self.n[self.cells[self.cells >= 0]]
        in_rows = (N - self.counts) @ np.diff(self.begin)
        return float(N * self.complete.n + in_cells + in_rows)


def problem(gaps: Gaps, complete: Complete, j: int) -> Problem:
    """The rows of data set j."""
    cells, rows = np.flatnonzero(gaps.data_set == j), gaps.rows[gaps.rows_of == j]
    order, at, columns, counts, cell, begin = by_pattern(rows, gaps.missing[cells])
    return Problem(
        complete,
        at,
        columns,
        counts,
        cell,
        gaps.n[cells].astype(np.float64),
        np.ascontiguousarray(gaps.mean[cells]),
        np.ascontiguousarray(gaps.scatter[cells]),
        begin,
        np.ascontiguousarray(rows[order]),
    )


@dataclass(frozen=True)
class Prior:
    """The rows that a data set is lent: `rows` with this covariance, and `at_mean` at this mean."""

    rows: float
    at_mean: float
    mean: NDArray[np.float64]
    cov: NDArray[np.float64]

    def select(self, use: NDArray[np.bool_]) -> Prior:
        """Of some columns."""
        return Prior(self.rows, self.at_mean, self.mean[use], self.cov[np.ix_(use, use)])

    def penalty(self, mean: NDArray[np.float64], K: NDArray[np.float64], log_det: float) -> float:
        """What the objective has beside the likelihood."""
        away = mean - self.mean
        spread = self.rows * (log_det + (K * self.cov).sum())
        return float(-(spread + self.at_mean * (away @ K @ away)) / 2)


class Expected(NamedTuple):
    """Expected sums of x - mean and its products, and the log-likelihood of the observed cells."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    loglik: float


def inverse(cov: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The inverse and the log determinant."""
    L = np.linalg.cholesky(cov)
    half = np.linalg.inv(L)
    return half.T @ half, 2 * float(np.log(np.diagonal(L)).sum())


def expected(
    of: Problem, mean: NDArray[np.float64], K: NDArray[np.float64], log_det: float
) -> Expected:
    """What is expected at these parameters."""
    N = len(mean)
    away = of.complete.mean - mean
    first = of.complete.n * away
    second = of.complete.scatter + of.complete.n * np.outer(away, away)
    terms = np.zeros(2)
    kernels("expect").expect(
        mean, K, *of[1:], first, second, terms, np.empty((3, N, N)), np.empty(N)
    )
    second = np.tril(second) + np.tril(second, -1).T
    squares = (K * second).sum() - terms[1]
    log_2pi = of.n_cells * math.log(2 * math.pi)
    loglik = -(log_2pi + of.n_rows * log_det + terms[0] + squares) / 2
    return Expected(first, second, float(loglik))


class Estimate(NamedTuple):
    """Of one data set: mean, covariance, the objective, and steps to get there."""

    mean: NDArray[np.float64]
    cov: NDArray[np.float64]
    objective: float
    steps: int


def _step(
    of: Problem, prior: Prior, mean: NDArray[np.float64], cov: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """One step of EM, and the objective before it."""
    K, log_det = inverse(cov)
    found = expected(of, mean, K, log_det)
    objective = found.loglik + prior.penalty(mean, K, log_det)
    n = of.n_rows
    shift = (found.first + prior.at_mean * (prior.mean - mean)) / (n + prior.at_mean)
    new = mean + shift
    about = np.outer(found.first, shift)
    second = found.second - about - about.T + n * np.outer(shift, shift)
    away = new - prior.mean
    lent = prior.rows * prior.cov + prior.at_mean * np.outer(away, away)
    return new, (second + lent) / (n + prior.rows), objective


def _packed(mean: NDArray[np.float64], cov: NDArray[np.float64]) -> NDArray[np.float64]:
    """Parameters without bounds: the mean, and the Cholesky factor with logs on its diagonal."""
    L = np.linalg.cholesky(cov)
    i = np.arange(len(L))
    L[i, i] = np.log(L[i, i])
    return np.concatenate([mean, L[np.tril_indices(len(L))]])


def _unpacked(v: NDArray[np.float64], N: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    L = np.zeros((N, N))
    L[np.tril_indices(N)] = v[N:]
    i = np.arange(N)
    L[i, i] = np.exp(L[i, i])
    return v[:N], L @ L.T


def maximise(of: Problem, prior: Prior) -> Estimate:
    """EM, with every third step far ahead where two others point (SQUAREM, Varadhan and Roland)."""
    mean, cov = prior.mean.copy(), prior.cov.copy()
    N = len(mean)
    if N == 0:
        return Estimate(mean, cov, 0.0, 0)
    for steps in range(0, _STEPS, 3):
        one_mean, one_cov, before = _step(of, prior, mean, cov)
        two_mean, two_cov, after = _step(of, prior, one_mean, one_cov)
        start, one, two = (
            _packed(*pair) for pair in ((mean, cov), (one_mean, one_cov), (two_mean, two_cov))
        )
        r, v = one - start, two - 2 * one + start
        mean, cov = two_mean, two_cov
        if np.abs(two - one).max() < _TOLERANCE or np.abs(r).max() < _TOLERANCE:
            return Estimate(mean, cov, after, steps)
        length = -max(1.0, math.sqrt((r @ r) / max(float(v @ v), 1e-300)))
        far_mean, far_cov = _unpacked(start - 2 * length * r + length**2 * v, N)
        try:
            new_mean, new_cov, ahead = _step(of, prior, far_mean, far_cov)
        except np.linalg.LinAlgError:
            continue
        if ahead >= after:
            mean, cov = new_mean, new_cov
            if ahead - before < _TOLERANCE * of.n_rows and np.abs(r).max() < _SMALL:
                return Estimate(mean, cov, ahead, steps)
    return Estimate(mean, cov, after, _STEPS)
