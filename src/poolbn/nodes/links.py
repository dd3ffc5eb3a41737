"""Distributions, once: t, levels and counts; and the response of a regression from rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import CERTAIN

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST = 1e15  # mean of a count: up to there, floating point has each count for itself
_MOST = math.log(LARGEST)
_SMALL = 40.0  # means of counts whose probabilities are added up
_STEPS = 200  # of these
_GREAT = 1e3  # mean of a count from which its distribution is next to continuous
_SURE = 1e10  # shape of a gamma distribution from which it is normal
SERIES = 30.0  # degrees of freedom from which series serve
MANY = 1e15  # those of a normal distribution, to all digits
_LARGEST_PREDICTOR = 30.0  # of a count, in a search
LOGISTIC = math.pi**2 / 3  # variance of the logistic distribution


def log_constant(df: Floats) -> Floats:
    """The logarithm of the density of t distributions at 0.

    From 30 degrees of freedom by the series of gamma functions' ratio, to 1e-13.
    """
    c = 1 / df
    square = c * c
    series = c * (-1 / 4 + square * (1 / 24 + square * (-1 / 20 + square * (17 / 112))))
    out: Floats = series - 0.5 * math.log(2 * math.pi)
    few = df < SERIES
    if few.any():
        from scipy.special import gammaln

        own = df[few]
        ratio = gammaln((own + 1) / 2) - gammaln(own / 2)
        out[few] = ratio - 0.5 * np.log(math.pi * own)
    return out


def log_density(x: Floats, mean: Floats, scale2: Floats, df: Floats) -> Floats:
    """Of t distributions, normal where `df` is inf.

    Examples:
        >>> one = np.ones(2)
        >>> log_density(one, 0 * one, one, np.array([1.0, np.inf])).round(4)
        array([-1.8379, -1.4189])
    """
    square = (x - mean) ** 2
    square /= scale2
    logs = np.log(scale2)
    if np.isinf(df).all():
        return np.asarray(-0.5 * (square + logs + math.log(2 * math.pi)))
    finite = np.minimum(df, MANY)
    square /= finite
    density = log_constant(finite) - 0.5 * logs
    density -= (finite + 1) / 2 * np.log1p(square, out=square)
    return np.asarray(density)


def density(x: Floats, mean: Floats, sd: Floats, df: Floats | None) -> Floats:
    """Log densities, normal or t; without variance 0 where x agrees and -inf where it does not."""
    positive = np.where(sd > 0, sd, 1.0)
    found = -0.5 * ((x - mean) / positive) ** 2 - np.log(positive * math.sqrt(2 * math.pi))
    if df is not None:
        found = log_density(x, mean, positive**2, df)
    if (sd > 0).all():
        return found
    agrees = np.abs(x - mean) <= CERTAIN * np.where(mean == 0, 1.0, np.abs(mean))
    return np.where(sd > 0, found, np.where(agrees, 0.0, -np.inf))


def probabilities(predictors: Sequence[Floats]) -> Floats:
    """Of the K levels of a logit, (..., K), from the log odds of all but the first, (...) each."""
    utility = np.stack([np.zeros_like(predictors[0]), *predictors], axis=-1)
    p = np.exp(utility - utility.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def log_level(p: Floats, codes: Floats) -> Floats:
    """The log probability of one level in each row, (n,), by all probabilities, (n, K)."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p[np.arange(len(p)), codes.astype(np.int64)]))


def drawn_levels(p: Floats, rng: np.random.Generator) -> Floats:
    """A code for each row, by its probabilities, (..., K)."""
    return level_quantiles(rng.random(p.shape[:-1]), p)


def level_quantiles(u: Floats, p: Floats) -> Floats:
    """The codes at probabilities u, (...,), of levels with probabilities (..., K)."""
    below = np.cumsum(p, axis=-1)[..., :-1]
    return np.asarray((u[..., None] > below).sum(axis=-1).astype(np.float64))


def mean_count(predictor: Floats) -> Floats:
    """The mean of a count from its logarithm; none is beyond `LARGEST`."""
    return np.asarray(np.exp(np.minimum(predictor, _MOST)))


def log_count(x: Floats, predictor: Floats, dispersion: float) -> Floats:
    """Poisson, or negative binomial with the variance mean + mean^2 / dispersion, (n,)."""
    from scipy.stats import nbinom, poisson

    mean = np.exp(predictor)
    if math.isinf(dispersion):
        return np.asarray(poisson.logpmf(x, mean))
    return np.asarray(nbinom.logpmf(x, dispersion, dispersion / (dispersion + mean)))


def drawn_counts(predictor: Floats, dispersion: float, rng: np.random.Generator) -> Floats:
    """Counts whose means have these logarithms; none is beyond `LARGEST`, or next to it."""
    mean = mean_count(predictor)
    if not math.isinf(dispersion):
        mean = np.minimum(mean * rng.gamma(dispersion, 1 / dispersion, mean.shape), LARGEST)
    return np.asarray(rng.poisson(mean).astype(np.float64))


def count_quantiles(u: Floats, mean: Floats, dispersion: float) -> Floats:
    """Quantiles of counts at probabilities u, with these means; arrays that go together."""
    from scipy import stats

    if math.isinf(dispersion):
        none = np.exp(-mean)
        return _quantiles(u, mean, 1.0, stats.poisson, (mean,), none, mean, 0.0)
    share = dispersion / (dispersion + mean)
    none, odds = share**dispersion, 1 - share
    law = stats.nbinom, (dispersion, share)
    return _quantiles(u, mean, share, *law, none, dispersion * odds, odds)


def _quantiles(
    u: Floats,
    mean: Floats,
    share: Floats | float,
    law: Any,
    parameters: tuple[Any, ...],
    none: Floats,
    a: Floats,
    b: Floats | float,
) -> Floats:
    """Quantiles of counts whose probabilities follow p(k) = p(k - 1) (a + b (k - 1)) / k.

    Probabilities are added up from 0 on, which for small counts takes a hundredth of the time of
    scipy's inverse; what is left after some steps is asked there.

    Args:
        u: probabilities.
        mean: of the counts, any shape.
        share: the mean divided by the variance, any shape.
        law: the distribution in scipy.
        parameters: of it.
        none: the probability of 0, any shape.
        a: of the rule, any shape.
        b: of the rule: 0 for Poisson's distribution.
    """
    every = [np.broadcast_to(x, mean.shape).ravel() for x in (u, none, a, b)]
    found = np.zeros(mean.size)
    at = np.flatnonzero(mean.ravel() < _SMALL)
    left, term, a_, b_ = (x[at] for x in every)
    for k in range(_STEPS):
        if not len(at):
            break
        left = left - term
        more = left > 0
        found[at[~more]] = k
        at, left, term, a_, b_ = (x[more] for x in (at, left, term, a_, b_))
        term = term * (a_ + b_ * k) / (k + 1)
    large = np.flatnonzero(mean.ravel() >= _GREAT)  # where scipy takes minutes
    if len(large):
        shares = np.broadcast_to(share, mean.shape).ravel()[large]
        found[large] = _large_quantiles(every[0][large], mean.ravel()[large], shares)
    rest = np.concatenate([at, np.flatnonzero((mean.ravel() >= _SMALL) & (mean.ravel() < _GREAT))])
    if len(rest):
        own = [np.broadcast_to(x, mean.shape).ravel()[rest] for x in parameters]
        found[rest] = law.ppf(every[0][rest], *own)
    return found.reshape(mean.shape)


def _large_quantiles(u: Floats, mean: Floats, share: Floats | float) -> Floats:
    """Quantiles of large counts: those of a gamma distribution with their mean and variance.

    Args:
        u: probabilities.
        mean: of the counts.
        share: the mean divided by the variance.
    """
    from scipy.special import gammaincinv, ndtri

    shape = mean * share
    normal = shape + np.sqrt(shape) * ndtri(u)
    return np.asarray(np.rint(np.where(shape > _SURE, normal, gammaincinv(shape, u)) / share))


def level_residuals(codes: Integers, p: Floats, seed: int = 0) -> Floats:
    """Randomised quantile residuals of ordered levels, (n,).

    A level has the residual that a normal variable has at a probability between those of a lower
    level and of this or a lower one, at random.

    Args:
        codes: the levels, (n,).
        p: their probabilities, (n, K).
        seed: of the draws.
    """
    from scipy.special import ndtri

    ends = np.pad(np.cumsum(p, axis=1), ((0, 0), (1, 0)))
    low, high = ends[np.arange(len(codes)), codes], ends[np.arange(len(codes)), codes + 1]
    at = low + (high - low) * np.random.default_rng(seed).random(len(codes))
    return np.asarray(ndtri(np.clip(at, 1e-15, 1 - 1e-15)))


def count_residuals(values: Floats, mean: Floats, dispersion: float, seed: int = 0) -> Floats:
    """Randomised quantile residuals of counts, (n,).

    A count y has the residual that a normal variable has at a probability between those of y - 1 or
    less and of y or less, at random.

    Args:
        values: counts, (n,).
        mean: expected, (n,).
        dispersion: of negative binomial distributions; inf for Poisson ones.
        seed: of the draws.
    """
    from scipy.special import betainc, ndtri, pdtr

    def below(y: Floats) -> Floats:
        """The probability of y or less."""
        if math.isinf(dispersion):
            p = pdtr(np.maximum(y, 0), mean)
        else:
            p = betainc(dispersion, np.maximum(y, 0) + 1, dispersion / (dispersion + mean))
        return np.where(y < 0, 0.0, p)

    low, high = below(values - 1), below(values)
    at = low + (high - low) * np.random.default_rng(seed).random(len(values))
    return np.asarray(ndtri(np.clip(at, 1e-15, 1 - 1e-15)))


class Family(IntEnum):
    """The distribution of a child given its linear predictors; kernels know these numbers."""

    LOGIT = 0
    POISSON = 1
    NEGATIVE_BINOMIAL = 2
    ORDINAL = 3


# Of regressions, by family.
_NAMES = ("logistic", "Poisson", "negative binomial", "cumulative logistic")


@dataclass(frozen=True)
class Response:
    """A child that is not continuous, given its C linear predictors: all that a family decides.

    The predictors of LOGIT are the log odds of the levels but the first, that of a count is the
    logarithm of its mean. Rows of ORDINAL say 0 or 1, whether an ordered level exceeds a threshold,
    and that is their log odds, or 2, with a distance of thresholds; see `nodes.ordinal`.

    Attributes:
        family: the distribution.
        levels: how many levels a child of LOGIT has.
    """

    family: Family = Family.LOGIT
    levels: int = 2

    @property
    def has_levels(self) -> bool:
        """Whether it is a level, and no count."""
        return self.family in (Family.LOGIT, Family.ORDINAL)

    @property
    def ordered(self) -> bool:
        """Whether its levels have an order."""
        return self.family is Family.ORDINAL

    @property
    def dispersed(self) -> bool:
        """Whether there is a dispersion: the variance is mean + mean^2 / dispersion."""
        return self.family is Family.NEGATIVE_BINOMIAL

    @property
    def predictors(self) -> int:
        """Linear predictors: C."""
        return self.levels - 1 if self.family is Family.LOGIT else 1

    @property
    def S(self) -> Floats:
        """Covariance of the predictors of one row over that of utilities, (C, C).

        Levels are symmetric: utilities vary independently, and predictors are differences from that
        of level 0. Effects of two levels share half of their variance, that of the first.
        """
        return np.eye(self.predictors) + self.has_levels

    @property
    def kind(self) -> str:
        """What the column holds."""
        return "discrete" if self.has_levels else "count"

    @property
    def model(self) -> str:
        """What the regression is called."""
        return f"{_NAMES[self.family]} regression"

    def centre(self, y: Integers, weight: Floats) -> Floats:
        """Predictors without parents, by rows that count so often, (C,)."""
        if not self.has_levels:
            return np.array([math.log((weight @ y + 0.5) / weight.sum())])
        levels = 2 if self.ordered else self.levels
        times = np.bincount(y, weight, minlength=levels) + 0.5
        return np.asarray(np.log(times[1:] / times[0]))

    def derivatives(
        self, predictor: Floats, y: Integers, dispersion: float
    ) -> tuple[Floats, Floats, Floats]:
        """Of rows: log-likelihood (m,), its slopes (m, C), minus second ones, (m, C, C)."""
        if self.ordered:
            return _of_thresholds(predictor, y)
        if self.has_levels:
            utility = np.column_stack([np.zeros(len(y)), predictor])
            top = utility.max(axis=1, keepdims=True)
            logs = utility - top - np.log(np.exp(utility - top).sum(axis=1, keepdims=True))
            p = np.exp(logs[:, 1:])
            seen = y[:, None] == np.arange(1, self.levels)
            spread = p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])
            return logs[np.arange(len(y)), y], seen - p, spread
        eta, count = np.minimum(predictor, _LARGEST_PREDICTOR), y[:, None].astype(np.float64)
        mean = np.exp(eta)
        inflated = 1 + mean / dispersion
        if math.isinf(dispersion):
            terms = count * eta - mean
        else:
            terms = count * (eta - np.log(inflated)) - dispersion * np.log(inflated)
        return terms[:, 0], (count - mean) / inflated, (mean / inflated)[:, :, None]

    def left(self, mean: float, dispersion: float) -> float:
        """The variance of a child around its one predictor, on the scale of that."""
        if self.ordered:
            return LOGISTIC
        return 1 / (mean * (1 - mean)) if self.has_levels else 1 / mean + 1 / dispersion

    def mean(self, predictors: Sequence[Floats]) -> Floats:
        """Probabilities of levels, (..., K), or the mean of a count, from C predictors."""
        return probabilities(predictors) if self.has_levels else mean_count(predictors[0])

    def log_density(self, x: Floats, predictors: Sequence[Floats], dispersion: float) -> Floats:
        """Of each row, (n,)."""
        if self.has_levels:
            return log_level(probabilities(predictors), x)
        return log_count(x, predictors[0], dispersion)

    def draw(
        self, predictors: Sequence[Floats], dispersion: float, rng: np.random.Generator
    ) -> Floats:
        """A value for each row, (n,)."""
        if self.has_levels:
            return drawn_levels(probabilities(predictors), rng)
        return drawn_counts(predictors[0], dispersion, rng)

    def quantile(self, u: Floats, mean: Floats, dispersion: float) -> Floats:
        """The values at probabilities u where this is the mean."""
        if self.has_levels:
            return level_quantiles(u, mean)
        return count_quantiles(u, mean, dispersion)


def _of_thresholds(predictor: Floats, y: Integers) -> tuple[Floats, Floats, Floats]:
    """Derivatives of rows about thresholds, see `Response.derivatives`."""
    eta, distance = predictor[:, 0], y == 2
    p = 1 / (1 + np.exp(-eta))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(distance, np.log(-np.expm1(-eta)), y * eta - np.logaddexp(0, eta))
        logs = np.where(distance & (eta <= 0), -np.inf, logs)
        steep = 1 / np.expm1(np.where(distance, eta, 1.0))
    slope = np.where(distance, steep, y - p)
    return logs, slope[:, None], np.where(distance, steep * (1 + steep), p * (1 - p))[:, None, None]


def random_effects_cov(random_cov: Floats, S: Floats) -> Floats:
    """Of all coefficients of a data set around the population's, from those of one, (C q, C q)."""
    return np.asarray(np.kron(S / S[0, 0], random_cov), dtype=np.float64)
