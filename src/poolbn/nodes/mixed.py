"""Partial pooling: the linear mixed-effects model of one family (eq. lmenode), from statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import CONVERGED, DEPENDENT, DETERMINED
from poolbn.moments.standardised import Family, Packed, StandardisedStats, pack, units
from poolbn.run.compiling import kernels

# Starts for D, in units of the sampling variance of a data set's own coefficients. 0 comes first in
# a final fit, so that of equally good fits the one without random effects is kept; of 3195 families
# of real and simulated tables all but one came to the best known maximum. For a score the first
# start has to do, but where it ends far below the upper bound of the likelihood, as nearly all that
# miss the best maximum do: there the second is tried. That finds the best of all these in 99.2%
# (one start: 98.6%). Of 3659 searches over tables by the paper's generator 0.8% end with a lower
# score than with all starts, and 3% when scores had one start.
# The fit of fewer parents would be a better start for a score, but by one evaluation in eight only,
# and scores would depend on the way to them.
SCORE_STARTS = np.array([10.0, 1e6])
FINAL_STARTS = np.array([0.0, 3.0, 1e3, 1e6, 0.1])
_NEAR = 2.8  # what is not far, for each rank of D and two more and each data set but one
# The same for pooled residual variances, where data sets that differ can also be tails, and where
# the bound says less: scores have two starts, which find in 99.2% of 3267 families what all do
# (one: 98%). With one, 7% of 639 searches ended lower than with all, with two 0.5%.
POOLED_SCORE_STARTS = np.array([30.0, 1e6])
POOLED_FINAL_STARTS = np.array([0.0, 30.0, 1e6, 100.0, 0.1])
# And for separate ones, where a data set that differs may have coefficients of its own or a large
# variance: 96.9% (one: 95.6%), and all come to the best known maximum in 99.5%. Of 762 searches 2%
# ended lower than with all starts, 5% with one.
SEPARATE_SCORE_STARTS = np.array([30.0, 1e6])
SEPARATE_FINAL_STARTS = np.array([0.0, 30.0, 1e6, 100.0, 1.0, 0.1])
_ALL = 2**30  # parents without random effects: more than there are
_TOLERANCE = 1e-9  # a predicted fall of the deviance that is not worth a step


class Kind(TypedDict):
    """Which mixed-effects model."""

    random: str
    residuals: str
    reml: bool


class ResidualModel(NamedTuple):
    counts: tuple[int, int, int]


RESIDUALS = {
    "shared": ResidualModel((1, 0, 0)),
    "pooled": ResidualModel((1, 1, 0)),
    "separate": ResidualModel((0, 0, 1)),
}


@dataclass(frozen=True)
class MixedFit:
    """One fitted family, in the units of the data; parents in the order given.

    Attributes:
        loglik: maximised log-likelihood, or restricted log-likelihood.
        sigma2: residual variance of each data set, (F,).
        fixed: fixed effects, (q,); fixed_cov: their covariance, (q, q).
        random_cov: covariance of the random effects, (q, q); zero where there are none.
        random: predicted random effects (BLUPs), (F, q).
        conditional_cov: their covariance given the data and the other parameters, (F, q, q).
        rank: rank of random_cov.
        converged: whether the search for the maximum came to an end.
        effective_df: of each data set's random effects, (F,).
        squares: generalised residual squares of each data set, (F,).
        shape: of the inverse gamma distribution of residual variances; inf where they are equal,
            None where they are not pooled.
        scale: 1 / E(1 / sigma^2) of that distribution, None likewise.
    """

    loglik: float
    sigma2: NDArray[np.float64]
    fixed: NDArray[np.float64]
    fixed_cov: NDArray[np.float64]
    random_cov: NDArray[np.float64]
    random: NDArray[np.float64]
    conditional_cov: NDArray[np.float64]
    rank: int
    converged: bool
    effective_df: NDArray[np.float64]
    squares: NDArray[np.float64]
    shape: float | None = None
    scale: float | None = None


def log_likelihoods(
    data: StandardisedStats,
    families: Sequence[Family],
    *,
    random: str,
    residuals: str,
    reml: bool,
) -> NDArray[np.float64]:
    """Maximised log-likelihood of each family for a score, see above; -inf where none exists."""
    full, pooled, separate = random == "full", residuals == "pooled", residuals == "separate"
    without = 0 if full else _ALL
    if pooled:
        result = _fit_pooled(data, pack(data, families), without, POOLED_SCORE_STARTS, polish=False)
    elif separate:
        result = _fit_separate(
            data, pack(data, families), without, SEPARATE_SCORE_STARTS, polish=False
        )
    else:
        near = _NEAR * (len(data.n) - 1) if full else math.inf
        result = _fit(data, pack(data, families), without, reml, SCORE_STARTS, near, polish=False)
    return -0.5 * result.deviance


def upper_bounds(
    data: StandardisedStats, families: Sequence[Family], *, reml: bool = False
) -> NDArray[np.float64]:
    """At least each family's (restricted) log-likelihood, with any random effects, see `bounds`.

    One residual variance; infinite where the data sets' own coefficients leave no residual, -inf
    where a column is a combination of others.
    """
    return -0.5 * _fit(data, pack(data, families), 0, reml, np.empty(0), 0.0, polish=False).deviance


def without_each(
    data: StandardisedStats, child: int, parents: tuple[int, ...]
) -> NDArray[np.float64]:
    """Maximised log-likelihood with the effect of one parent the same in all data sets, (p,).

    All other coefficients vary between data sets, with all their covariances.
    """
    p = len(parents)
    ordered = np.array(parents)[data.order(parents)].tolist()
    others = [[*(x for x in ordered if x != parent), parent] for parent in parents]
    packed = Packed(
        np.full(p, child, dtype=np.int64),
        p * np.arange(p + 1, dtype=np.int64),
        np.array(others, dtype=np.int64).ravel(),
    )
    return -0.5 * _fit(data, packed, 1, False, FINAL_STARTS, 0.0, polish=False).deviance


def fit(
    data: StandardisedStats,
    child: int,
    parents: tuple[int, ...],
    *,
    random: str,
    residuals: str,
    reml: bool,
) -> MixedFit | int | None:
    """The final fit of one family: all starts, and everything in the units of the data.

    Residual variances are shared by all data sets, or pooled, or separate.

    Returns:
        The fit; or, where no finite likelihood has a maximum, the position in `parents` of a column
        that is a combination of the others, or None if the child is determined by its parents.
    """
    full, pooled, separate = random == "full", residuals == "pooled", residuals == "separate"
    F, q = len(data.n), len(parents) + 1
    r = q if full else 1
    packed, without = pack(data, [(child, parents)]), 0 if full else _ALL
    if pooled:
        result = _fit_pooled(data, packed, without, POOLED_FINAL_STARTS, polish=True)
    elif separate:
        result = _fit_separate(data, packed, without, SEPARATE_FINAL_STARTS, polish=True)
    else:
        result = _fit(data, packed, without, reml, FINAL_STARTS, 0.0, polish=True)
    order = data.order(parents)
    code = int(result.code[0])
    if code >= DEPENDENT:
        return int(order[code - DEPENDENT - 1])
    if code == DETERMINED:
        return None
    place = np.zeros(q, dtype=np.int64)
    place[1:] = order + 1
    fixed, fixed_cov, random_cov = np.empty(q), np.empty((q, q)), np.empty((q, q))
    predicted, conditional_cov, taken = np.empty((F, q)), np.empty((F, q, q)), np.empty(F)
    kernels("estimates").estimates(
        result.buffer, F, r, reml, data.center, data.scale, child, packed[2], place,
        np.empty((q, q)), np.empty((q, r)), np.empty(q), fixed, fixed_cov, random_cov,
        predicted, conditional_cov, taken,
    )  # fmt: skip
    unit = data.scale[child]
    variance = float(result.rss[0] if separate else result.rss[0] / (data.rows - q * reml))
    own = np.full(F, variance)
    shape = scale = None
    if pooled:
        log_s, tau = result.residual
        variance = math.exp(log_s)
        shape, scale = 1 / tau if tau > 0 else math.inf, variance * unit**2
        own = expected_variance(shape, variance, data.n, result.squares) * (1 + taken / data.n)
    random_unit = own  # what covariances of random effects are multiples of
    if separate:
        own = result.squares
    return MixedFit(
        loglik=float(-0.5 * result.deviance[0]),
        sigma2=own * unit**2,
        fixed=fixed,
        fixed_cov=variance * fixed_cov,
        random_cov=variance * random_cov,
        random=predicted,
        conditional_cov=random_unit[:, None, None] * conditional_cov,
        rank=int(result.rank[0]),
        converged=code == CONVERGED,
        effective_df=taken,
        squares=result.squares * unit**2,
        shape=shape,
        scale=scale,
    )


def expected_variance(
    shape: float, scale: float, n: NDArray[np.float64], squares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """E(sigma_j^2) in each data set after its rows were seen, (F,), where variances are pooled.

    sigma_j^2 is then inverse gamma with shape v = a + n_j / 2 and scale g = a s + q_j / 2, and the
    mean is g / (v - 1). It is also what to plug in: the divergence of a node N(z'b, u) from the
    truth N(z'c, sigma_j^2) is [sigma_j^2 + (z'(c - b))^2] / u + log u up to constants and a half.
    Given sigma_j^2 the coefficients c have covariance sigma_j^2 V_j around b, so the expectation
    over all that is unknown, and over the rows' z, has its minimum at
    u = E(sigma_j^2) (1 + tr(V_j Z_j'Z_j) / n_j).

    Args:
        shape: a, which may be inf.
        scale: s.
        n: rows, (F,).
        squares: generalised residual squares q_j, (F,).
    """
    if math.isinf(shape):
        return np.full(len(n), scale)
    # Where v is at most 1 there is no mean; as little as half a row more gives one.
    return np.asarray((shape * scale + squares / 2) / np.maximum(shape + n / 2 - 1, 0.5))


class _Result(NamedTuple):
    """What the kernels fill: deviance in the units of the data, rss, rank and code of each family.

    The work space is that of the last one, as are log s and tau, and the residual squares (F,).
    """

    deviance: NDArray[np.float64]
    rss: NDArray[np.float64]
    rank: NDArray[np.int64]
    code: NDArray[np.int64]
    buffer: NDArray[np.float64]
    residual: NDArray[np.float64]
    squares: NDArray[np.float64]


def _room(data: StandardisedStats, packed: Packed, reml: bool) -> tuple[int, _Result]:
    """The most coefficients, and room for the results."""
    F, M = len(data.n), len(packed[0])
    q = int(packed.sizes.max()) + 1
    deviance, rss = np.empty((2, M))
    rank, code = np.empty((2, M), dtype=np.int64)
    buffer = kernels("work").room(F, q, reml)
    return q, _Result(deviance, rss, rank, code, buffer, np.empty(2), np.empty(F))


def _fit(
    data: StandardisedStats,
    packed: Packed,
    without: int,
    reml: bool,
    starts: NDArray[np.float64],
    near: float,
    polish: bool,
) -> _Result:
    q, result = _room(data, packed, reml)
    kernels("optimise").fit_families(
        data.n, data.mean, data.scatter, *packed, without, reml, starts, near, _TOLERANCE, polish,
        result.buffer, np.empty(q, dtype=np.int64), result.deviance, result.rss, result.rank,
        result.code,
    )  # fmt: skip
    result.deviance[:] += units(data, packed, reml)
    return result


def _fit_separate(
    data: StandardisedStats, packed: Packed, without: int, starts: NDArray[np.float64], polish: bool
) -> _Result:
    q, result = _room(data, packed, reml=False)
    kernel = kernels("separate")
    kernel.fit_separate(
        data.n, data.mean, data.scatter, *packed, without, starts, _TOLERANCE, polish,
        result.buffer, kernel.apart_room(len(data.n), q), np.empty(q, dtype=np.int64),
        result.deviance, result.rss, result.rank, result.code, result.squares,
    )  # fmt: skip
    result.deviance[:] += units(data, packed, False)
    return result


def _fit_pooled(
    data: StandardisedStats, packed: Packed, without: int, starts: NDArray[np.float64], polish: bool
) -> _Result:
    q, result = _room(data, packed, reml=False)
    kernel = kernels("pooled")
    kernel.fit_pooled(
        data.n, data.mean, data.scatter, *packed, without, starts, _TOLERANCE, polish,
        result.buffer, kernel.pool_room(len(data.n), q), np.empty(q, dtype=np.int64),
        result.deviance, result.rank, result.code, result.residual, result.squares,
    )  # fmt: skip
    result.deviance[:] += units(data, packed, False)
    return result
