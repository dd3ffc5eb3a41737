"""Nodes given their parents, whatever kind they are: log probabilities and draws of many rows.

With uncertain parameters these are predictive distributions. A continuous node is Student's t. The
probabilities in tables are expected ones as they are. A regression's linear predictor is normal,
and probabilities are the expected ones over it: to 1e-9 for two levels, counts, and three levels;
for more by rules with fewer nodes, and from ten levels on by a rule that is exact for cubic
functions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from poolbn.inference.conditioning import CERTAIN
from poolbn.inference.drawing import LARGEST, drawn_counts
from poolbn.inference.mixtures import log_density
from poolbn.moments.indicators import labels_of
from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.predictive import Predictive, degrees, predictive
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit
from poolbn.run.compiling import kernels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Values = Mapping[int, Floats]  # of nodes by their positions, (n,) each; codes of levels
Term = tuple[int, int]  # a column of numbers: a node, and the level that it indicates or -1

# Gauss-Hermite rules: their nodes, and the SD of a predictor up to which two levels' probabilities
# are right to 1e-10.
_SIZES = np.array([3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
_LIMITS = np.array([0.05, 0.12, 0.28, 0.43, 0.68, 0.89, 1.2, 1.35, 1.7, 2.0])
_MOST_NODES = 8192  # in all dimensions together
_TAIL = 9.0  # standard deviations of a predictor, and of a count, beyond which nothing is expected
COUNT = -1  # levels of a count, of which there is no end


class Local(ABC):
    """A node given its parents in F data sets.

    Attributes:
        levels: how many it has; 0 for a continuous node, `COUNT` for a count.
        parents: positions of the parents.
    """

    levels: int
    parents: tuple[int, ...]

    @abstractmethod
    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of values (n,) given parents, in data sets (n,)."""

    @abstractmethod
    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row, (n,)."""

    def log_levels(self, values: Values, sets: Integers) -> Floats:
        """Log probabilities of all levels of a discrete node, (n, K)."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Gaussian(Local):
    """A continuous node.

    Attributes:
        of: its distribution.
        terms: what its coefficients after the intercept are of.
        parents: positions of its parents.
    """

    of: Predictive
    terms: tuple[Term, ...]
    parents: tuple[int, ...]
    levels = 0

    def at(self, values: Values, sets: Integers) -> tuple[Floats, Floats, Floats]:
        """Mean, scale and degrees of freedom, (n,) each."""
        of, X = self.of, design(self.terms, values, len(sets))
        mean, added = _predictors(X, sets, of.coef[:, None], of.cov)
        scale2 = of.scale2[sets] + np.maximum(added[:, 0, 0], 0.0)
        between = np.zeros_like(scale2)
        if not math.isinf(of.between_df):
            between = np.maximum(_predictors(X, sets, of.coef[:, None], of.between)[1][:, 0, 0], 0)
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


@dataclass(frozen=True, eq=False)
class Tabular(Local):
    """A discrete node with a table of probabilities.

    Attributes:
        probabilities: (F, C, K).
        parents: positions of its parents.
        sizes: levels of the parents; the last one's level changes fastest.
        levels: K.
    """

    probabilities: Floats
    parents: tuple[int, ...]
    sizes: tuple[int, ...]
    levels: int

    def _rows(self, values: Values, sets: Integers) -> Floats:
        at = np.zeros(len(sets), dtype=np.int64)
        for parent, size in zip(self.parents, self.sizes, strict=True):
            at = at * size + values[parent].astype(np.int64)
        return self.probabilities[sets, at]

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


@dataclass(frozen=True, eq=False)
class Regression(Local):
    """A discrete node or a count with a regression.

    Attributes:
        coef: (F, C, q).
        cov: their covariance, (F, C q, C q); 0 where they are certain.
        terms: what coefficients after the intercept are of.
        parents: positions of its parents.
        levels: K, or `COUNT`.
        dispersion: of a count; inf for a Poisson distribution.
    """

    coef: Floats
    cov: Floats
    terms: tuple[Term, ...]
    parents: tuple[int, ...]
    levels: int
    dispersion: float

    def _at(self, values: Values, sets: Integers) -> tuple[Floats, Floats]:
        """Means (n, C) and covariances (n, C, C) of predictors."""
        X = design(self.terms, values, len(sets))
        return _predictors(X, sets, self.coef, self.cov)

    def log_levels(self, values: Values, sets: Integers) -> Floats:
        """Of all levels."""
        mean, V = self._at(values, sets)
        if self.levels > 2:
            return _softmax(mean, V)
        each = (np.full(len(sets), level) for level in (0.0, 1.0))
        return np.column_stack([self._log(y, mean, V) for y in each])

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of values given parents."""
        mean, V = self._at(values, sets)
        if self.levels > 2:
            return _pick(_softmax(mean, V), x)
        return self._log(np.require(x, requirements=["C", "W"]), mean, V)

    def _log(self, y: Floats, mean: Floats, V: Floats) -> Floats:
        kernel, out = kernels("integrals"), np.empty(len(y))
        family, theta = kernel.BERNOULLI, 1.0
        if self.levels == COUNT:
            poisson = math.isinf(self.dispersion)
            family = kernel.POISSON if poisson else kernel.NEGATIVE_BINOMIAL
            theta = 1.0 if poisson else self.dispersion
        wide = V.ravel() > _WIDE**2
        narrow = np.where(wide, 0.0, V.ravel())
        kernel.log_integrals(family, y, mean.ravel(), narrow, theta, *_rules(), out)
        # Far from what was seen the quadrature may not find its maximum; nothing is above 0.
        lost = ~(out <= _ROUNDING) & ~wide
        size = self.dispersion if self.levels == COUNT else None
        for some, compute in ((wide, _log_wide), (lost, _log_laplace)):
            if some.any():
                out[some] = compute(y[some], mean.ravel()[some], V.ravel()[some], size)
        return out

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        eta, V = self._at(values, sets)
        uncertain = np.flatnonzero(V.any(axis=(1, 2)))
        if len(uncertain):
            root = _roots(V[uncertain])
            noise = rng.standard_normal((len(uncertain), eta.shape[1], 1))
            eta[uncertain] += (root @ noise)[..., 0]
        if self.levels > 0:
            utility = np.column_stack([np.zeros(len(sets)), eta])
            p = np.exp(utility - utility.max(axis=1, keepdims=True))
            return drawn_levels(p / p.sum(axis=1, keepdims=True), rng)
        return drawn_counts(eta[:, 0], self.dispersion, rng)

    def largest(self, values: Values, sets: Integers) -> Floats:
        """A count beyond which there is next to no probability, (n,)."""
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


def locals_of(
    fits: Mapping[str, LocalFit],
    parents: Mapping[str, Sequence[str]],
    *,
    certain: Collection[Hashable],
) -> tuple[Local, ...]:
    """The nodes of a network, as its fits have them.

    Args:
        fits: the nodes.
        parents: of each node.
        certain: the data sets in which estimates are taken for certain.
    """
    position = {name: i for i, name in enumerate(fits)}
    terms: dict[str, Term] = {}
    for name, fit in fits.items():
        labels = enumerate(labels_of([name], [fit.categories]), start=1)
        terms |= {label: (position[name], k if fit.categories else -1) for k, label in labels}
    levels = next(iter(fits.values())).levels
    sure = np.array([level in certain for level in levels])
    return tuple(_local(fit, position, parents[name], terms, sure) for name, fit in fits.items())


def _local(
    fit: LocalFit,
    position: Mapping[str, int],
    parents: Sequence[str],
    terms: Mapping[str, Term],
    sure: NDArray[np.bool_],
) -> Local:
    if isinstance(fit, TabularFit):
        above = tuple(position[name] for name in fit.parents)
        sizes = tuple(map(len, fit.given))
        return Tabular(fit.probabilities, above, sizes, len(fit.categories))
    above = tuple(position[name] for name in parents)
    if isinstance(fit, RegressionFit):
        own = tuple(terms[name] for name in fit.columns)
        cov = np.where(sure[:, None, None], 0.0, fit.coef_cov)
        levels = len(fit.categories) or COUNT
        return Regression(fit.coef, cov, own, above, levels, fit.dispersion)
    assert isinstance(fit, GaussianFit)
    own = tuple(terms[name] for name in fit.columns)
    return Gaussian(_predictive(fit, sure), own, above)


def _predictive(fit: GaussianFit, sure: NDArray[np.bool_]) -> Predictive:
    """With estimates for certain in some data sets; in others coefficients alone are uncertain."""
    if not sure.any():
        return predictive(fit)
    known, none = np.full(len(sure), math.inf), np.zeros_like(fit.coef_cov)
    cov = np.where(sure[:, None, None], 0.0, fit.coef_cov)
    return Predictive(fit.coef, cov, none, fit.sigma2, known, known, math.inf)


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


def drawn_levels(probabilities: Floats, rng: np.random.Generator) -> Floats:
    """A code for each row, by its probabilities, (n, K)."""
    below = np.cumsum(probabilities, axis=1)[:, :-1]
    drawn: Floats = (rng.random((len(below), 1)) > below).sum(axis=1).astype(float)
    return drawn


def design(terms: Sequence[Term], values: Values, n: int) -> Floats:
    """1 and the parents, (n, q)."""
    X = np.ones((n, len(terms) + 1))
    for k, (node, level) in enumerate(terms, start=1):
        X[:, k] = values[node] if level < 0 else values[node] == level
    return X


def _predictors(X: Floats, sets: Integers, coef: Floats, cov: Floats) -> tuple[Floats, Floats]:
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
