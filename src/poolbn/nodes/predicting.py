"""Predictive distributions of nodes given their parents: log densities and draws of many rows.

With uncertain parameters a continuous node is Student's t. The probabilities in tables are expected
ones as they are. A regression's linear predictor is normal, and probabilities are the expected ones
over it: to 1e-9 for two levels, counts, and three levels; for more by rules with fewer nodes, and
from ten levels on by a rule that is exact for cubic functions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.indicators import indicators
from poolbn.nodes.links import LARGEST, density, drawn_counts, drawn_levels, probabilities
from poolbn.run.compiling import kernels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Values = Mapping[str, Floats]  # of nodes by name, (n,) each; codes of levels

# Gauss-Hermite rules: their nodes, and the SD of a predictor up to which two levels' probabilities
# are right to 1e-10.
_SIZES = np.array([3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
_LIMITS = np.array([0.05, 0.12, 0.28, 0.43, 0.68, 0.89, 1.2, 1.35, 1.7, 2.0])
_MOST_NODES = 8192  # in all dimensions together
_TAIL = 9.0  # standard deviations of a predictor, and of a count, beyond which nothing is expected
COUNT = -1  # levels of a count, of which there is no end


@dataclass(frozen=True, eq=False)
class Predictive:
    """The distribution of a child in F data sets, given parents; see `nodes.predictive`.

    Attributes:
        coef: coefficients, (F, q).
        cov: C, (F, q, q).
        between: E, (F, q, q).
        scale2: u, (F,); NaN where the rows do not give a variance.
        df: 2v of pooled variances, else inf, (F,).
        within_df: of u, (F,).
        between_df: of E, |F| - 1; inf without random effects.
    """

    coef: Floats
    cov: Floats
    between: Floats
    scale2: Floats
    df: Floats
    within_df: Floats
    between_df: float

    def taken(self, at: Integers) -> Predictive:
        """The same of the data sets at these positions."""
        names = "coef", "cov", "between", "scale2", "df", "within_df"
        return replace(self, **{name: getattr(self, name)[at] for name in names})

    def at(self, z: Floats, j: int) -> tuple[Floats, Floats, Floats]:
        """Mean, squared scale and degrees of freedom in data set j, (n,) each.

        Args:
            z: rows of 1 and the parents, (n, q).
            j: the data set.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"], pooling="none")
            >>> known = fit.predictive(np.zeros(4, bool)).linear
            >>> mean, scale2, df = known.at(np.array([[1.0, 30.0]]), 0)
            >>> mean.round(2), np.sqrt(scale2).round(2), df
            (array([28.22]), array([6.02]), array([114.]))
        """
        spread = np.maximum(np.einsum("na,ab,nb->n", z, self.cov[j], z), 0.0)
        between = np.maximum(np.einsum("na,ab,nb->n", z, self.between[j], z), 0.0)
        scale2 = self.scale2[j] + spread
        df = degrees(scale2, between, self.df[j], self.within_df[j], self.between_df)
        return z @ self.coef[j], scale2, df


def degrees(
    scale2: Floats, between: Floats, df: Floats, within_df: Floats, between_df: float
) -> Floats:
    """Satterthwaite's degrees of freedom of squared scales, of which a part is between data sets.

    Examples:
        >>> degrees(np.array([1.0, 1.0]), np.array([0.0, 1.0]), math.inf, np.array(20.0), 3.0)
        array([20.,  3.])
    """
    share = np.divide(between, scale2, out=np.zeros_like(scale2), where=scale2 > 0)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (1 / df + (1 - share) ** 2 / within_df + share**2 / between_df))


@dataclass(frozen=True, eq=False)
class UnitEffects:
    """What rows of U units inside data sets say of these units' intercepts of a node.

    Covariances of a node that is linear are over the variance of its rows.

    Attributes:
        mean: of the intercepts, at the coefficients of the data sets, (U, C).
        cov: their covariances, (U, C, C).
        before: those of units of which there are no rows, (U, C, C).
        follows: by what the means fall where coefficients rise, (U, C, C q).
    """

    mean: Floats
    cov: Floats
    before: Floats
    follows: Floats

    def after(self, F: int) -> UnitEffects:
        """With F data sets before the units, of which there is nothing to say."""
        each = (self.mean, self.cov, self.before, self.follows)
        return UnitEffects(*(np.pad(of, [(F, 0)] + [(0, 0)] * (of.ndim - 1)) for of in each))

    def added_to(self, coef: Floats) -> Floats:
        """Coefficients of data sets, (U, C, q), as those of the units."""
        coef = coef.copy()
        coef[:, :, 0] += self.mean
        return coef

    def seen(self, cov: Floats) -> Floats:
        """Covariances of data sets' coefficients, (U, C q, C q), as those of the units.

        An error of a coefficient makes the intercept that rows show wrong too: a row z of a unit
        has errors (z - g)'(error) with g what the intercept's mean follows.
        """
        U, C, size = self.follows.shape
        M = np.tile(np.eye(size), (U, 1, 1))
        M[:, :: size // C] -= self.follows
        return np.asarray(M @ cov @ np.swapaxes(M, 1, 2))


class Predictions(ABC):
    """A node given its parents in F data sets, with what is uncertain of its parameters.

    Attributes:
        n_categories: how many levels it has; 0 for a number, `COUNT` for a count.
        linear: its distribution where that is a linear regression, normal or t; else None.
    """

    n_categories: int
    linear: Predictive | None

    @property
    def regressions(self) -> Predictive | None:
        """The distribution where it is a linear regression in each stratum, see `strata`."""
        return self.linear

    @property
    def switches(self) -> tuple[str, ...]:
        """Discrete parents of which each configuration has a regression of its own."""
        return ()

    def strata(self, values: Values, sets: Integers) -> Integers:
        """Which of `regressions` rows have, (n,): data sets, and in each its configurations."""
        return sets

    @abstractmethod
    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of values (n,) given parents, in data sets (n,)."""

    @abstractmethod
    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row, (n,)."""

    def at(self, values: Values, sets: Integers) -> tuple[Floats, Floats, Floats]:
        """Mean, scale and degrees of freedom of a node that is linear, (n,) each."""
        raise NotImplementedError

    def log_levels(self, values: Values, sets: Integers) -> Floats:
        """Log probabilities of all levels of a discrete node, (n, K)."""
        raise NotImplementedError

    def largest(self, values: Values, sets: Integers) -> Floats:
        """Of a count, one beyond which there is next to no probability, (n,)."""
        raise NotImplementedError

    def spaced(self, values: Values, sets: Integers) -> tuple[Floats, Floats]:
        """Counts that stand for all, and logs of how many each stands for, (n, `SPACED`) each."""
        raise NotImplementedError

    def possible(self, least: Floats) -> Predictions:
        """With log probabilities of data sets, (F,), in place of 0 for a level."""
        return self

    @abstractmethod
    def taking(self, sets: Integers) -> Self:
        """The same of some of the data sets."""

    def of_units(self, sets: Integers, known: UnitEffects | None) -> Self:
        """The same of units in these data sets; `known` is what rows say of their intercepts."""
        return self.taking(sets)

    def script(self, to: Floats) -> dict[str, Any]:
        """What the script of a page has of it, under the script's names; arrays (F, ...).

        Nothing of a kind that the script does not know.

        Args:
            to: what coefficients are multiplied by to be those of centred parents, (q, q).
        """
        return {}


@dataclass(frozen=True, eq=False)
class GaussianPredictions(Predictions):
    """A continuous node.

    Attributes:
        linear: its distribution.
        parents: its parents.
        given: the levels of each.
    """

    linear: Predictive
    parents: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    n_categories = 0

    def at(self, values: Values, sets: Integers) -> tuple[Floats, Floats, Floats]:
        """Mean, scale and degrees of freedom, (n,) each."""
        of, X = self.linear, design(self.parents, self.given, values, len(sets))
        mean, added = predictors(X, sets, of.coef[:, None], of.cov)
        scale2 = of.scale2[sets] + np.maximum(added[:, 0, 0], 0.0)
        between = np.zeros_like(scale2)
        if not math.isinf(of.between_df):
            between = np.maximum(predictors(X, sets, of.coef[:, None], of.between)[1][:, 0, 0], 0)
        df = degrees(scale2, between, of.df[sets], of.within_df[sets], of.between_df)
        return mean[:, 0], np.sqrt(scale2), df

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of values given parents."""
        return density(x, *self.at(values, sets))

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        mean, scale, df = self.at(values, sets)
        noise = rng.standard_normal(len(sets))
        finite = np.isfinite(df)
        if finite.any():
            noise[finite] /= np.sqrt(rng.chisquare(df[finite]) / df[finite])
        return mean + scale * noise

    def taking(self, sets: Integers) -> Self:
        """The same of some of the data sets."""
        return replace(self, linear=self.linear.taken(sets))

    def of_units(self, sets: Integers, known: UnitEffects | None) -> Self:
        """Rows of a unit have the variance inside units, and what is uncertain of the unit."""
        made = self.taking(sets)
        if known is None:
            return made
        of = made.linear
        own = replace(
            of,
            coef=known.added_to(of.coef[:, None])[:, 0],
            cov=known.seen(of.cov),
            between=known.seen(of.between),
            scale2=of.scale2 * (1.0 - (known.before - known.cov)[:, 0, 0]),
        )
        return replace(self, linear=own)

    def script(self, to: Floats) -> dict[str, Any]:
        """See `Predictions`."""
        of = self.linear
        return {
            "kind": "gaussian",
            "coef": of.coef @ to.T,
            "cov": to @ of.cov @ to.T,
            "between": to @ of.between @ to.T,
            "scale2": of.scale2,
            "df": of.df,
            "withinDf": of.within_df,
            "betweenDf": of.between_df,
        }


@dataclass(frozen=True, eq=False)
class ConditionalPredictions(Predictions):
    """A continuous node with a regression for each of C configurations of discrete parents.

    Attributes:
        of: regressions on the other parents in F * C strata: data sets, and in each its
            configurations, of which the last discrete parent's level changes fastest.
        discrete: the discrete parents.
        given: the levels of each.
    """

    of: GaussianPredictions
    discrete: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    linear = None
    n_categories = 0

    @property
    def regressions(self) -> Predictive:
        """Of all strata."""
        return self.of.linear

    @property
    def switches(self) -> tuple[str, ...]:
        """The discrete parents."""
        return self.discrete

    @property
    def _size(self) -> int:
        """C."""
        return math.prod(map(len, self.given))

    def strata(self, values: Values, sets: Integers) -> Integers:
        """Which of `regressions` rows have."""
        return sets * self._size + configurations(self.discrete, self.given, values)

    def at(self, values: Values, sets: Integers) -> tuple[Floats, Floats, Floats]:
        """Mean, scale and degrees of freedom, (n,) each."""
        return self.of.at(values, self.strata(values, sets))

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of values given parents."""
        return self.of.log_density(x, values, self.strata(values, sets))

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        return self.of.draw(values, self.strata(values, sets), rng)

    def script(self, to: Floats) -> dict[str, Any]:
        """See `Predictions`; arrays are of strata."""
        return self.of.script(to)

    def taking(self, sets: Integers) -> Self:
        """The same of some of the data sets."""
        each = np.asarray(sets)[:, None] * self._size + np.arange(self._size)
        return replace(self, of=self.of.taking(each.ravel()))


@dataclass(frozen=True, eq=False)
class TablePredictions(Predictions):
    """A discrete node with a table of probabilities.

    Attributes:
        probabilities: (F, C, K).
        parents: its parents.
        given: the levels of each; the last one's changes fastest.
    """

    probabilities: Floats
    parents: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    linear = None

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        """K."""
        return int(self.probabilities.shape[2])

    def _rows(self, values: Values, sets: Integers) -> Floats:
        at = configurations(self.parents, self.given, values)
        return np.asarray(self.probabilities[sets, at])

    def log_levels(self, values: Values, sets: Integers) -> Floats:
        """Of all levels."""
        with np.errstate(divide="ignore"):
            return np.log(self._rows(values, sets))

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of values given parents."""
        return _pick(self.log_levels(values, sets), x)

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        return drawn_levels(self._rows(values, sets), rng)

    def taking(self, sets: Integers) -> Self:
        """The same of some of the data sets."""
        return replace(self, probabilities=self.probabilities[sets])

    def script(self, to: Floats) -> dict[str, Any]:
        """See `Predictions`."""
        return {"kind": "table", "p": self.probabilities}

    def possible(self, least: Floats) -> TablePredictions:
        """A table of probabilities without zeros."""
        p = self.probabilities
        return replace(self, probabilities=np.where(p > 0, p, np.exp(least)[:, None, None]))


@dataclass(frozen=True, eq=False)
class RegressionPredictions(Predictions):
    """A discrete node or a count with a regression.

    Attributes:
        coef: (F, C, q).
        cov: their covariance, (F, C q, C q); 0 where they are certain. With units inside data sets
            that of intercepts between units is added: rows are of units that are not known.
        parents: its parents.
        given: the levels of each.
        n_categories: K, or `COUNT`.
        dispersion: of a count; inf for a Poisson distribution.
    """

    coef: Floats
    cov: Floats
    parents: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    n_categories: int
    dispersion: float
    linear = None

    def _at(self, values: Values, sets: Integers) -> tuple[Floats, Floats]:
        """Means (n, C) and covariances (n, C, C) of predictors."""
        X = design(self.parents, self.given, values, len(sets))
        return predictors(X, sets, self.coef, self.cov)

    def log_levels(self, values: Values, sets: Integers) -> Floats:
        """Of all levels."""
        return self.averaged(*self._at(values, sets))

    def averaged(self, mean: Floats, V: Floats) -> Floats:
        """Of all levels, by means (n, C) and covariances (n, C, C) of predictors; V is used up."""
        if self.n_categories > 2:
            return _softmax(mean, V)
        each = (np.full(len(mean), level) for level in (0.0, 1.0))
        return np.column_stack([self._log(y, mean, V) for y in each])

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of values given parents."""
        mean, V = self._at(values, sets)
        if self.n_categories > 2:
            return _pick(_softmax(mean, V), x)
        return self._log(np.require(x, requirements=["C", "W"]), mean, V)

    def _log(self, y: Floats, mean: Floats, V: Floats) -> Floats:
        kernel, out = kernels("integrals"), np.empty(len(y))
        family, theta = kernel.BERNOULLI, 1.0
        if self.n_categories == COUNT:
            poisson = math.isinf(self.dispersion)
            family = kernel.POISSON if poisson else kernel.NEGATIVE_BINOMIAL
            theta = 1.0 if poisson else self.dispersion
        wide = V.ravel() > _WIDE**2
        narrow = np.where(wide, 0.0, V.ravel())
        kernel.log_integrals(family, y, mean.ravel(), narrow, theta, *_rules(), out)
        # Far from what was seen the quadrature may not find its maximum; nothing is above 0.
        lost = ~(out <= _ROUNDING) & ~wide
        size = self.dispersion if self.n_categories == COUNT else None
        for some, compute in ((wide, _log_wide), (lost, _log_laplace)):
            if some.any():
                out[some] = compute(y[some], mean.ravel()[some], V.ravel()[some], size)
        return out

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        eta, V = self._at(values, sets)
        uncertain = np.flatnonzero(V.any(axis=(1, 2)))
        if len(uncertain):
            noise = rng.standard_normal((len(uncertain), eta.shape[1], 1))
            eta[uncertain] += (_roots(V[uncertain]) @ noise)[..., 0]
        if self.n_categories > 0:
            return drawn_levels(probabilities(list(eta.T)), rng)
        return drawn_counts(eta[:, 0], self.dispersion, rng)

    def taking(self, sets: Integers) -> Self:
        """The same of some of the data sets."""
        return replace(self, coef=self.coef[sets], cov=self.cov[sets])

    def of_units(self, sets: Integers, known: UnitEffects | None) -> Self:
        """Covariances of intercepts between units become what rows leave uncertain of them."""
        made = self.taking(sets)
        if known is None:
            return made
        U, C, size = known.follows.shape
        each = (U, C, size // C, C, size // C)
        cov = made.cov.copy()
        cov.reshape(each)[:, :, 0, :, 0] -= known.before
        cov = known.seen(cov)
        cov.reshape(each)[:, :, 0, :, 0] += known.cov
        return replace(made, coef=known.added_to(made.coef), cov=cov)

    def script(self, to: Floats) -> dict[str, Any]:
        """See `Predictions`."""
        both = np.kron(np.eye(self.coef.shape[1]), to)
        return {
            "kind": "regression",
            "coef": self.coef @ to.T,
            "cov": both @ self.cov @ both.T,
            "dispersion": None if math.isinf(self.dispersion) else self.dispersion,
        }

    def largest(self, values: Values, sets: Integers) -> Floats:
        """A count beyond which there is next to no probability."""
        eta, V = self._at(values, sets)
        mean = np.exp(np.minimum(eta[:, 0] + _TAIL * np.sqrt(V[:, 0, 0]), _LARGEST))
        more = 1.0 if math.isinf(self.dispersion) else 1.0 + mean / self.dispersion
        # A gamma distribution has heavier tails than a normal one.
        heavy = 0.0 if math.isinf(self.dispersion) else 40.0 * mean / self.dispersion
        high = np.ceil(mean + _TAIL * np.sqrt(mean * more) + heavy + 30.0)
        low = np.minimum(np.ceil(np.exp(np.minimum(eta[:, 0], _LARGEST))), high)
        while (high - low > 0.1 * high + 1).any():  # that is a bound; probabilities tell
            middle = np.floor((low + high) / 2)
            beyond = self._log(middle, eta, V) < _NO_CHANCE
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        return np.asarray(high + 1)

    def spaced(self, values: Values, sets: Integers) -> tuple[Floats, Floats]:
        """Counts that stand for all, and logs of how many each stands for, (n, `SPACED`) each.

        Small ones stand for themselves. The others are as far apart as the distribution is smooth,
        in proportion to sqrt(1 + y + s^2 y^2) with s the relative SD of the mean.
        """
        eta, V = self._at(values, sets)
        high, sd = self.largest(values, sets), np.sqrt(V[:, 0, 0])
        least = np.exp(np.minimum(eta[:, 0] - _TAIL * sd, _LARGEST))
        more = 0.0 if math.isinf(self.dispersion) else least / self.dispersion
        low = np.maximum(least - _TAIL * np.sqrt(least * (1 + more)), _EACH) - 0.5
        s = np.clip(np.sqrt(sd**2 + 1 / self.dispersion), 1e-4, 1.0)
        first, last = (
            np.log(2 * s * np.sqrt(1 + y + (s * y) ** 2) + 2 * s**2 * y + 1)
            for y in (low, np.maximum(high, low + 1))
        )
        edges = np.linspace(first, last, SPACED - _EACH + 1, axis=1)  # of s times the integral
        E, s = np.exp(edges), s[:, None]
        y = ((E - 1) ** 2 - 4 * s**2) / (4 * E * s**2)
        each = np.broadcast_to(np.arange(float(_EACH)), (len(y), _EACH))
        counts = np.hstack([each, np.rint((y[:, 1:] + y[:, :-1]) / 2)])
        return counts, np.hstack([np.zeros_like(each), np.log(np.diff(y, axis=1))])


SPACED, _EACH = 2048, 1024  # counts of a grid, and those of them that stand for themselves


def _log_wide(y: Floats, mean: Floats, variance: Floats, size: float | None) -> Floats:
    """Log probabilities where predictors are next to unknown, (n,): to a thousandth or better.

    As a function of the predictor a likelihood is then narrow: its integral, at its mean, with its
    variance added to the predictor's.

    Args:
        y: two levels, or counts.
        mean: of predictors.
        variance: of them.
        size: the dispersion of a count, None for levels.
    """
    from scipy.special import digamma, log_ndtr, polygamma

    if size is None:
        to = np.where(y > 0.5, mean, -mean)
        far = to + variance < 0  # where the tail is that of the likelihood
        normal = log_ndtr(to / np.sqrt(variance + math.pi**2 / 3))
        return np.asarray(np.where(far, to + variance / 2, normal))
    most = np.maximum(y, 1.0)
    shift, more = (
        (0.0, 0.0) if math.isinf(size) else (math.log(size) - digamma(size), polygamma(1, size))
    )
    at, width = digamma(most) + shift, variance + polygamma(1, most) + more
    some = -0.5 * (at - mean) ** 2 / width - np.log(most * np.sqrt(2 * math.pi * width))
    return np.asarray(np.where(y > 0, some, log_ndtr((at - mean) / np.sqrt(width))))


def _log_laplace(y: Floats, mean: Floats, variance: Floats, size: float | None) -> Floats:
    """Log probabilities by the Laplace approximation, (n,); arguments as for `_log_wide`."""
    from scipy.special import expit, gammaln

    def terms(eta: Floats) -> tuple[Floats, Floats, Floats]:
        """The log-likelihood, its slope, and minus its second derivative."""
        if size is None:
            p = expit(eta)
            return y * eta - np.logaddexp(0, eta), y - p, p * (1 - p)
        if math.isinf(size):
            rate = np.exp(np.minimum(eta, _STEEPEST))
            return y * eta - rate - gammaln(y + 1), y - rate, rate
        p, away = expit(eta - math.log(size)), eta - math.log(size)
        constant = gammaln(y + size) - gammaln(size) - gammaln(y + 1)
        value = constant + y * away - (y + size) * np.logaddexp(0, away)
        return value, y - (y + size) * p, (y + size) * p * (1 - p)

    # Between the predictor's mean and the likelihood's maximum.
    peak = mean + variance * np.sign(y - 0.5) if size is None else np.log(np.maximum(y, 1e-20))
    low, high = np.minimum(mean, peak), np.maximum(mean, peak)
    for _ in range(100):
        eta = (low + high) / 2
        rises = terms(eta)[1] > (eta - mean) / variance
        low, high = np.where(rises, eta, low), np.where(rises, high, eta)
    value, _, bend = terms(low)
    return np.asarray(value - (low - mean) ** 2 / (2 * variance) - np.log1p(variance * bend) / 2)


_ROUNDING = 1e-9
_STEEPEST = 700.0  # logarithm of the largest mean
_WIDE = 30.0  # SD of a predictor, from which its distribution is flat beside a likelihood
_LARGEST = math.log(LARGEST)
_NO_CHANCE = -45.0  # log probability


def columns(
    parents: Sequence[str], given: Sequence[tuple[str, ...]], values: Values
) -> list[Floats]:
    """What coefficients after the intercept are of: numbers, and indicators of levels."""
    return [
        own
        for parent, levels in zip(parents, given, strict=True)
        for own in (
            [(values[parent] == code) * 1.0 for code in indicators(levels)]
            if levels
            else [values[parent]]
        )
    ]


def design(
    parents: Sequence[str], given: Sequence[tuple[str, ...]], values: Values, n: int
) -> Floats:
    """1 and the columns of the parents, (n, q)."""
    own = columns(parents, given, values)
    X = np.ones((n, len(own) + 1))
    for k, column in enumerate(own, start=1):
        X[:, k] = column
    return X


def configurations(
    parents: Sequence[str], given: Sequence[tuple[str, ...]], values: Values
) -> Integers:
    """Which combination of levels parents have; the last one's level changes fastest."""
    at: Any = np.int64(0)
    for parent, levels in zip(parents, given, strict=True):
        at = at * len(levels) + values[parent].astype(np.int64)
    return np.asarray(at)


def predictors(X: Floats, sets: Integers, coef: Floats, cov: Floats) -> tuple[Floats, Floats]:
    """Means (n, C) and covariances (n, C, C) of the predictors of rows of columns (n, q).

    Args:
        X: the columns.
        sets: the data set of each row.
        coef: coefficients, (F, C, q).
        cov: their covariances, (F, C q, C q).

    Examples:
        >>> mean, V = predictors(np.array([[1.0, 2.0]]), np.array([0]), np.array([[[0.5, 1.0]]]),
        ...                      np.array([[[0.2, 0.0], [0.0, 0.1]]]))
        >>> mean.tolist(), V.round(3).tolist()
        ([[2.5]], [[[0.6]]])
    """
    n, C = len(X), coef.shape[1]
    mean, V = np.empty((n, C)), np.empty((n, C, C))
    own = (np.require(of, requirements=["C", "W"]) for of in (sets, coef, cov))
    kernels("integrals").predictors(X, *own, mean, V)
    return mean, V


@cache
def _rules() -> tuple[Floats, Floats, Integers, Floats]:
    from numpy.polynomial.hermite_e import hermegauss

    nodes, weights = np.zeros((2, len(_SIZES), _SIZES[-1]))
    for rule, size in enumerate(_SIZES):
        x, w = hermegauss(size)
        nodes[rule, :size], weights[rule, :size] = x, w / w.sum()
    return nodes, weights, _SIZES, _LIMITS


def _softmax(mean: Floats, V: Floats) -> Floats:
    """Log probabilities of three levels or more, (n, K); V is used up."""
    C = mean.shape[1]
    most = int(np.searchsorted(_SIZES, _MOST_NODES ** (1 / C) + 1e-9, side="right")) - 1
    if C == 2:  # beyond it the trapezoidal rule takes fewer nodes
        most = 5
    out, index = np.empty((len(mean), C + 1)), np.zeros(C, dtype=np.int64)
    work = np.empty((5, max(C, 264)))
    kernels("integrals").softmax_integrals(mean, V, *_rules(), most, work, index, out)
    return out


def _pick(logs: Floats, codes: Floats) -> Floats:
    return logs[np.arange(len(logs)), codes.astype(np.int64)]


def _roots(V: Floats) -> Floats:
    """Matrices R with RR' = V, (n, C, C); V may be singular."""
    if V.shape[1] == 1:
        return np.sqrt(V)
    values, vectors = np.linalg.eigh(V)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None])
