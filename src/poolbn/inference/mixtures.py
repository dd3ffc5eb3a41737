"""Mixtures of normal and t distributions: moments, distribution functions, quantiles; `Posterior`.

A component has a mean, a standard deviation and degrees of freedom; inf are those of a normal
distribution. What is called the standard deviation of a t is that of the normal distribution that
stands for it (`spread`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from poolbn.errors import Option, OptionError
from poolbn.inference.conditioning import Floats, condition

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_STEPS = 200  # halving brackets takes fewer, unless the quantile is 0
_TINY = 1e-300
_SHOWN = 6  # data sets that a printed posterior lists


_SERIES = 30.0  # degrees of freedom from which series serve
_MANY = 1e15  # those of a normal distribution, to all digits
_FEW = 4.0  # degrees of freedom below which a standard deviation says little, or does not exist


def spread(df: Floats) -> Floats:
    """The standard deviation of t distributions with scale 1; that of normal ones in their place.

    Below 4 degrees of freedom it is the one that gives a normal distribution the same middle 95%:
    the standard deviation grows to infinity at 2. At 4 both are the same to 0.2%.

    Examples:
        >>> spread(np.array([1.0, 2.0, 4.0, 10.0, np.inf])).round(3)
        array([6.483, 2.195, 1.414, 1.118, 1.   ])
    """
    if np.isinf(df).all():
        return np.ones_like(df)
    few = df < _FEW
    with np.errstate(invalid="ignore"):
        out: Floats = np.sqrt(1 / (1 - 2 / np.where(few, _FEW, df)))
    if few.any():
        from scipy.special import stdtrit

        out[few] = stdtrit(df[few], 0.975) / NormalDist().inv_cdf(0.975)
    return out


def own_quantiles(p: float, df: Floats) -> Floats:
    """Quantiles of t distributions with standard deviation 1.

    Examples:
        >>> own_quantiles(0.975, np.array([1.0, 10.0, np.inf])).round(3)
        array([1.96 , 1.993, 1.96 ])
    """
    z = NormalDist().inv_cdf(p)
    if np.isinf(df).all():
        return np.full_like(df, z)
    from scipy.special import stdtr, stdtrit

    # Fisher's expansion, and two steps of Newton's method; scipy's inverse is ten times slower.
    c = 1 / df
    x = z + c * (z**3 + z) / 4 + c**2 * (5 * z**5 + 16 * z**3 + 3 * z) / 96
    few = df < _SERIES
    x[few] = stdtrit(df[few], p)
    some = ~few & np.isfinite(df)
    t, own = x[some], df[some]
    for _ in range(2):
        height = np.exp(_log_constant(own) - (own + 1) / 2 * np.log1p(t * t / own))
        t -= (stdtr(own, t) - p) / height
    x[some] = t
    return np.asarray(x / spread(df))


def _log_constant(df: Floats) -> Floats:
    """The logarithm of the density of t distributions at 0.

    From 30 degrees of freedom by the series of gamma functions' ratio, to 1e-13.
    """
    c = 1 / df
    square = c * c
    series = c * (-1 / 4 + square * (1 / 24 + square * (-1 / 20 + square * (17 / 112))))
    out: Floats = series - 0.5 * math.log(2 * math.pi)
    few = df < _SERIES
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
    finite = np.minimum(df, _MANY)
    square /= finite
    density = _log_constant(finite) - 0.5 * logs
    density -= (finite + 1) / 2 * np.log1p(square, out=square)
    return np.asarray(density)


def moments(weights: Floats, means: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Means and standard deviations of mixtures, (n,) each.

    Args:
        weights: of the components, (n, C).
        means: (n, C).
        variances: (n, C).
    """
    mean = (weights * means).sum(axis=1)
    variance = (weights * (variances + (means - mean[:, None]) ** 2)).sum(axis=1)
    return mean, np.sqrt(variance)


def distribution(
    x: Floats, weights: Floats, means: Floats, sds: Floats, df: Floats | None = None
) -> tuple[Floats, Floats]:
    """Distribution functions and densities of n mixtures, each at its own x, (n,) each.

    A component without variance is a step: half of it lies below its mean.
    """
    from scipy.special import ndtr, stdtr

    sds = np.maximum(sds, _TINY)
    with np.errstate(over="ignore"):
        if df is None:
            z = (x[:, None] - means) / sds
            lower, heights = ndtr(z), np.exp(-0.5 * z * z) / (sds * math.sqrt(2 * math.pi))
        else:
            scales = sds / spread(df)
            z = (x[:, None] - means) / scales
            lower = stdtr(df, z)
            finite = np.minimum(df, _MANY)
            kernel = (finite + 1) / 2 * np.log1p(z * z / finite)
            heights = np.exp(_log_constant(finite) - kernel) / scales
    return np.einsum("nc,nc->n", weights, lower), np.einsum("nc,nc->n", weights, heights)


def quantiles(
    p: float, weights: Floats, means: Floats, sds: Floats, df: Floats | None = None
) -> Floats:
    """Quantiles of n mixtures of C normal or t distributions, (n,).

    Newton's method on the distribution function; where a step leaves the bracket, the bracket is
    halved instead. The first bracket is the range of the components' own quantiles.

    Args:
        p: the probability, between 0 and 1.
        weights: of the components, each row with sum 1, (n, C).
        means: (n, C).
        sds: (n, C).
        df: degrees of freedom, (n, C); None for normal distributions.

    Examples:
        >>> half = np.full((1, 2), 0.5)
        >>> float(quantiles(0.5, half, np.array([[-1.0, 3.0]]), np.ones((1, 2)))[0])
        1.0
    """
    if df is not None and np.isinf(df).all():
        df = None
    if df is None:
        own = means + NormalDist().inv_cdf(p) * sds
    else:
        own = means + own_quantiles(p, df) * sds
    # What has less weight than the distribution function has digits says nothing.
    counts = weights > 1e-17 * min(p, 1 - p)
    low = np.where(counts, own, np.inf).min(axis=1)
    high = np.where(counts, own, -np.inf).max(axis=1)
    x: Floats = np.clip(np.einsum("nc,nc->n", weights, own), low, high)
    busy = np.flatnonzero(low < high)
    w, m, s = weights[busy], means[busy], sds[busy]
    d = None if df is None else df[busy]
    # Newton's error is at most the square of its step over the smallest standard deviation.
    fine = 1e-7 * np.where(counts[busy], s, np.inf).min(axis=1)
    a, b, at = low[busy], high[busy], x[busy]
    for _ in range(_STEPS):
        if not len(busy):
            break
        below, density = distribution(at, w, m, s, d)
        excess = below - p
        a, b = np.where(excess <= 0, at, a), np.where(excess >= 0, at, b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = excess / density
            newton = (at - step > a) & (at - step < b)
        at = np.where(newton, at - step, a + (b - a) / 2)
        x[busy] = at
        narrow = b - a <= 4e-16 * np.maximum(np.abs(a), np.abs(b))
        go = ~(narrow | (newton & (np.abs(step) <= fine)))
        busy, w, m, s, fine = busy[go], w[go], m[go], s[go], fine[go]
        a, b, at = a[go], b[go], at[go]
        d = None if d is None else d[go]
    return x


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The distribution of some nodes given evidence: normal in each data set, or Student's t.

    A target is t where its parents are evidence and nothing below it is, and parameters are
    uncertain. Several targets together are normal in each data set.

    Attributes:
        targets: the T nodes.
        levels: the F data sets.
        weights: P(data set | evidence), (F,).
        means: of the targets in each data set, (F, T).
        covs: of the targets in each data set, (F, T, T); with fewer than 4 degrees of freedom those
            of a normal distribution with the same middle 95%.
        df: degrees of freedom of each target in each data set, inf where it is normal, (F, T).

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> net = pb.learn(trial, group="clinic", start=[("age", "bmi")])
        >>> found = net.posterior({"age": 20}, "bmi")
        >>> found.mean.round(1), found.sd.round(1), found.weights.round(2)
        (array([26.6]), array([7.]), array([0.14, 0.24, 0.33, 0.29]))
    """

    targets: tuple[str, ...]
    levels: tuple[Hashable, ...]
    weights: Floats
    means: Floats
    covs: Floats
    df: Floats

    @property
    def mean(self) -> Floats:
        """Of the targets over all data sets, (T,)."""
        return self.weights @ self.means

    @property
    def cov(self) -> Floats:
        """Of the targets over all data sets, within and between them, (T, T)."""
        apart = self.means - self.mean
        between = np.einsum("j,ja,jb->ab", self.weights, apart, apart)
        return np.einsum("j,jab->ab", self.weights, self.covs) + between  # type: ignore[no-any-return]

    @property
    def sd(self) -> Floats:
        """Standard deviations of the targets over all data sets, (T,)."""
        return np.sqrt(np.diagonal(self.cov))

    def pdf(self, x: ArrayLike) -> Floats:
        """The density of the targets at points.

        Args:
            x: a number or an array for one target; for T targets the last axis has T numbers.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(trial, group="clinic", start=[("age", "bmi")])
            >>> net.posterior({"age": 20}, "bmi").pdf([20, 30]).round(3)
            array([0.036, 0.051])
        """
        points = np.asarray(x, dtype=np.float64)
        T = len(self.targets)
        if T > 1 and (points.ndim == 0 or points.shape[-1] != T):
            raise OptionError(
                f"a point of {T} targets has {T} numbers; the shape is {points.shape}"
            )
        if T == 1 and np.isfinite(self.df).any():
            components = self._components(points.size)
            return distribution(points.ravel(), *components)[1].reshape(points.shape)
        rows = points.reshape(-1, T)[None]
        every = np.ones((len(self.levels), T), dtype=bool)
        given = condition(self.means, self.covs, rows, every, np.arange(0))
        density: Floats = self.weights @ np.exp(given.loglik)
        return density.reshape(points.shape if T == 1 else points.shape[:-1])

    def cdf(self, x: ArrayLike) -> Floats:
        """P(target <= x), for one target.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(trial, group="clinic", start=[("age", "bmi")])
            >>> net.posterior({"age": 20}, "bmi").cdf([20, 30]).round(3)
            array([0.171, 0.686])
        """
        points = np.asarray(x, dtype=np.float64)
        components = self._components(points.size)
        return distribution(points.ravel(), *components)[0].reshape(points.shape)

    def quantile(self, p: ArrayLike) -> Floats:
        """The x with P(target <= x) = p, for one target.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.learn(trial, group="clinic", start=[("age", "bmi")])
            >>> net.posterior({"age": 20}, "bmi").quantile([0.25, 0.75]).round(1)
            array([21.9, 31.3])
        """
        wanted = np.asarray(p, dtype=np.float64)
        if not ((wanted > 0) & (wanted < 1)).all():
            raise OptionError(Option("p", p), " is not between 0 and 1")
        components = self._components(1)
        found = [quantiles(one, *components)[0] for one in wanted.ravel().tolist()]
        return np.array(found).reshape(wanted.shape)

    def _components(self, n: int) -> tuple[Floats, Floats, Floats, Floats | None]:
        """Weights, means, standard deviations and df of one target, n times, (n, F) each."""
        if len(self.targets) > 1:
            raise OptionError(
                f"there are {len(self.targets)} targets; a distribution function and quantiles "
                "need one: ask for the posterior of that one"
            )
        w, m, s, df = (
            np.tile(of, (n, 1))
            for of in (self.weights, self.means[:, 0], np.sqrt(self.covs[:, 0, 0]), self.df[:, 0])
        )
        return w, m, s, (df if np.isfinite(df).any() else None)

    def __repr__(self) -> str:
        lines = [f"Posterior of {', '.join(self.targets)}"]
        lines += [
            f"  {name}  mean {mean:.6g}, SD {sd:.4g}"
            for name, mean, sd in zip(self.targets, self.mean, self.sd, strict=True)
        ]
        first = np.argsort(-self.weights, kind="stable")[:_SHOWN]
        shares = [f"{self.levels[j]} {self.weights[j]:.3g}" for j in first if self.weights[j] > 0]
        more = ", ..." if (self.weights > 0).sum() > _SHOWN else ""
        return "\n".join([*lines, f"  data set  {', '.join(shares)}{more}"])
