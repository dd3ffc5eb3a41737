"""What is known of one node in n rows: probabilities of levels, points, mixtures, or a grid.

A component of a mixture has a mean, a standard deviation and degrees of freedom; inf are those of a
normal distribution. What is called the standard deviation of a t is that of the normal distribution
that stands for it (`spread`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from poolbn.arrays import Floats
from poolbn.later import special
from poolbn.nodes.links import MANY, log_constant

_STEPS = 200  # halving brackets takes fewer, unless the quantile is 0
_TINY = 1e-300
_WEIGHTLESS = 1e-14  # of a probability: a weight that changes no digit that matters

_HILL = 60.0  # degrees of freedom from which Hill's series serves
_FEW = 4.0  # degrees of freedom below which a standard deviation says little, or does not exist


def spread(df: Floats) -> Floats:
    """The standard deviation of t distributions with scale 1; that of normal ones in their place.

    Below 4 degrees of freedom it is the one that gives a normal distribution the same middle 95%:
    the standard deviation grows to infinity at 2. At 4 both are the same to 0.2%.
    """
    if np.isinf(df).all():
        return np.ones_like(df)
    few = df < _FEW
    with np.errstate(invalid="ignore"):
        out: Floats = np.sqrt(1 / (1 - 2 / np.where(few, _FEW, df)))
    if few.any():
        out[few] = special.stdtrit(df[few], 0.975) / NormalDist().inv_cdf(0.975)
    return out


def own_quantiles(p: float, df: Floats) -> Floats:
    """Quantiles of t distributions with standard deviation 1."""
    z = NormalDist().inv_cdf(p)
    if np.isinf(df).all() or z == 0:
        return np.full_like(df, z)
    # From 4 degrees of freedom they are a smooth function of 1 / df: a polynomial has 12 digits of
    # it, and costs a tenth of scipy's inverse.
    few = df < _FEW
    smooth = np.polynomial.Chebyshev.interpolate(
        lambda c: np.log(special.stdtrit(1 / c, p) / z), 24, [0, 1 / _FEW]
    )
    x = z * np.exp(smooth(1 / np.where(few, _FEW, df)))
    x[few] = special.stdtrit(df[few], p)
    return np.asarray(x / spread(df))


def moments(weights: Floats, means: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Means and standard deviations of mixtures of C components, (n, C) each; (n,) each."""
    mean = (weights * means).sum(axis=1)
    variance = (weights * (variances + (means - mean[:, None]) ** 2)).sum(axis=1)
    return mean, np.sqrt(variance)


def _standard(
    z: Floats, df: Floats | None = None, constant: Floats | None = None
) -> tuple[Floats, Floats]:
    """Distribution functions and densities of t, or without df normal, distributions of scale 1.

    Degrees of freedom are finite; `constant` is their `log_constant`.
    """
    square = z * z
    if df is None or constant is None:
        return special.ndtr(z), np.exp(-0.5 * square) / math.sqrt(2 * math.pi)
    logs = np.log1p(square / df)
    heights = np.exp(constant - (df + 1) / 2 * logs)
    near = (df >= _HILL) & (square <= 0.3 * df)
    if near.all():
        return special.ndtr(np.copysign(_normalised(logs, df), z)), heights
    lower = np.empty_like(z)
    lower[near] = special.ndtr(np.copysign(_normalised(logs[near], df[near]), z[near]))
    lower[~near] = special.stdtr(df[~near], z[~near])
    return lower, heights


def _normalised(logs: Floats, df: Floats) -> Floats:
    """What a normal variable has the same probability beyond, from log(1 + t^2 / df).

    Hill's series (1970, Algorithm 395), to 1e-10 of a probability where t^2 is at most 0.3 df.
    """
    a = df - 0.5
    b = 48 * a * a
    y = a * logs
    more = (((4 * y + 33) * y + 240) * y + 855) / (10 * (b + 0.8 * y * y + 100))
    return np.asarray(np.sqrt(y) * (1 + (y + 3 - more) / b))


def distribution(
    x: Floats, weights: Floats, means: Floats, sds: Floats, df: Floats | None = None
) -> tuple[Floats, Floats]:
    """Distribution functions and densities of n mixtures, each at its own x, (n,) each.

    A component without variance is a step: half of it lies below its mean.
    """
    scales, *shape = _shapes(sds, df)
    with np.errstate(over="ignore"):
        lower, heights = _standard((x[:, None] - means) / scales, *shape)
        heights /= scales
    return np.einsum("nc,nc->n", weights, lower), np.einsum("nc,nc->n", weights, heights)


def _shapes(sds: Floats, df: Floats | None) -> tuple[Floats, ...]:
    """Scales of components; with `df`, also what `_standard` needs."""
    sds = np.maximum(sds, _TINY)
    if df is None:
        return (sds,)
    finite = np.minimum(df, MANY)
    return sds / spread(df), finite, log_constant(finite)


def quantiles(
    p: float, weights: Floats, means: Floats, sds: Floats, df: Floats | None = None
) -> Floats:
    """Quantiles of n mixtures of C normal or t distributions, (n,); df are None for normal ones.

    Newton's method on the distribution function; where a step leaves the bracket, the bracket is
    halved instead. The first bracket is the range of the components' own quantiles. Each row of
    weights has the sum 1, (n, C).
    """
    if df is not None and np.isinf(df).all():
        df = None
    z = NormalDist().inv_cdf(p) if df is None else own_quantiles(p, df)
    own = means + z * sds
    counts = weights > _WEIGHTLESS * min(p, 1 - p)
    low = np.where(counts, own, np.inf).min(axis=1)
    high = np.where(counts, own, -np.inf).max(axis=1)
    x: Floats = np.clip(np.einsum("nc,nc->n", weights, own), low, high)
    busy = np.flatnonzero(low < high)
    # Newton's error is at most the square of its step over the smallest standard deviation.
    fine = 1e-7 * np.where(counts, sds, np.inf).min(axis=1)[busy]
    a, b, at = low[busy], high[busy], x[busy]
    # The components that count, one row's after another's.
    counts &= (low < high)[:, None]
    sizes = counts.sum(axis=1)[busy]
    parts = [of[counts] for of in (weights, means)]
    parts += _shapes(sds[counts], None if df is None else df[counts])
    for _ in range(_STEPS):
        if not len(busy):
            break
        w, m, scale, *shape = parts
        first = np.cumsum(sizes) - sizes
        with np.errstate(over="ignore"):
            lower, heights = _standard((np.repeat(at, sizes) - m) / scale, *shape)
            density = np.add.reduceat(w * heights / scale, first)
        excess = np.add.reduceat(w * lower, first) - p
        a, b = np.where(excess <= 0, at, a), np.where(excess >= 0, at, b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = excess / density
            newton = (at - step > a) & (at - step < b)
        at = np.where(newton, at - step, a + (b - a) / 2)
        x[busy] = at
        narrow = b - a <= 4e-16 * np.maximum(np.abs(a), np.abs(b))
        go = ~(narrow | (newton & (np.abs(step) <= fine)))
        parts = [of[np.repeat(go, sizes)] for of in parts]
        busy, sizes, fine, a, b, at = (of[go] for of in (busy, sizes, fine, a, b, at))
    return x


_HALVINGS = 100  # of a bracket


class Marginal(ABC):
    """The distribution of one node in each of n rows."""

    weights: Floats  # of what it is made of, (n, ...)

    @abstractmethod
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation, (n,) each."""

    @abstractmethod
    def quantile(self, p: float) -> Floats:
        """(n,)."""

    def interval(self, tail: float) -> tuple[Floats, Floats]:
        """What has a probability of `tail` below it, and above it, (n,) each."""
        return self.quantile(tail), self.quantile(1 - tail)

    @abstractmethod
    def cdf(self, x: Floats) -> Floats:
        """P(node <= x), each row at its own x, (n,)."""

    @abstractmethod
    def pdf(self, x: Floats) -> Floats:
        """The density at x, of points their probability, each row at its own x, (n,)."""


@dataclass(frozen=True, eq=False)
class Points(Marginal):
    """Points with weights: levels or counts that are enumerated, or draws."""

    values: Floats  # (n, A) or (1, A)
    weights: Floats  # with sum 1, (n, A)

    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation."""
        return moments(self.weights, self.values, np.zeros(1))

    def quantile(self, p: float) -> Floats:
        """The x with P(node <= x) = p."""
        values = np.broadcast_to(self.values, self.weights.shape)
        order = np.argsort(values, axis=1, kind="stable")
        below = np.cumsum(np.take_along_axis(self.weights, order, axis=1), axis=1)
        # What is missing to p by rounding alone is not missing.
        at = np.minimum((below < p - 1e-12).sum(axis=1), values.shape[1] - 1)
        rows = np.arange(len(values))
        return np.asarray(values[rows, order[rows, at]])

    def cdf(self, x: Floats) -> Floats:
        """P(node <= x)."""
        return np.asarray((self.weights * (self.values <= x[:, None])).sum(axis=1))

    def pdf(self, x: Floats) -> Floats:
        """P(node = x)."""
        return np.asarray((self.weights * (self.values == x[:, None])).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Mixture(Marginal):
    """Normal and t distributions, (n, C) each."""

    weights: Floats
    means: Floats
    variances: Floats
    df: Floats

    @property
    def sds(self) -> Floats:
        """Standard deviations, (n, C)."""
        return np.sqrt(self.variances)

    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation."""
        return moments(self.weights, self.means, self.variances)

    def quantile(self, p: float) -> Floats:
        """The x with P(node <= x) = p."""
        if self.weights.shape[1] == 1:
            return self.means[:, 0] + own_quantiles(p, self.df[:, 0]) * self.sds[:, 0]
        return quantiles(p, self.weights, self.means, self.sds, self.df)

    def cdf(self, x: Floats) -> Floats:
        """P(node <= x)."""
        return self._at(x)[0]

    def pdf(self, x: Floats) -> Floats:
        """The density at x."""
        return self._at(x)[1]

    def _at(self, x: Floats) -> tuple[Floats, Floats]:
        df = self.df if np.isfinite(self.df).any() else None
        return distribution(x, self.weights, self.means, self.sds, df)


@dataclass(frozen=True, eq=False)
class OnGrid(Marginal):
    """A density at the nodes of quadratures, B in each row, which are equidistant in u.

    Integrals up to a point are those of the sinc functions that go through the nodes, which
    converge as fast as the integral over all.
    """

    weights: Floats  # (n, B, Q)
    centre: Floats  # (n, B, 1)
    scale: Floats  # (n, B, 1)
    u: Floats  # (Q,)

    def _values(self) -> Floats:
        return np.asarray(self.centre + self.scale * stretched(self.u)[0])

    def _points(self) -> Points:
        values = self._values()
        return Points(values.reshape(len(values), -1), self.weights.reshape(len(values), -1))

    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation."""
        return self._points().moments()

    def cdf(self, x: Floats) -> Floats:
        """P(node <= x)."""
        part = 0.5 + special.sici(np.pi * self._away(x))[0] / np.pi
        return np.asarray(np.clip((self.weights * part).sum(axis=(1, 2)), 0.0, 1.0))

    def pdf(self, x: Floats) -> Floats:
        """The density at x."""
        away = self._away(x)
        u = self.u + away * (self.u[1] - self.u[0])
        steps = self.scale * stretched(u)[1] * (self.u[1] - self.u[0])
        with np.errstate(divide="ignore"):
            return np.asarray((self.weights * np.sinc(away) / steps).sum(axis=(1, 2)))

    def _away(self, x: Floats) -> Floats:
        """How many nodes x is from each, (n, B, Q)."""
        away = x[:, None, None] - self.centre
        with np.errstate(divide="ignore", invalid="ignore"):
            g = np.where(self.scale > 0, away / self.scale, np.sign(away) * np.inf)
        u = unstretched(np.clip(np.nan_to_num(g), -1e15, 1e15))
        return np.asarray((u - self.u) / (self.u[1] - self.u[0]))

    def quantile(self, p: float) -> Floats:
        """The x with P(node <= x) = p."""
        near, values = self._points().quantile(p), self._values()  # (n,), (n, B, Q)
        at = (values < near[:, None, None]).sum(axis=2, keepdims=True)
        beside = (np.clip(at + k, 0, values.shape[2] - 1) for k in (-2, 2))
        left, right = (np.take_along_axis(values, k, axis=2)[..., 0] for k in beside)
        low, high = left.min(axis=1), right.max(axis=1)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = self.cdf(middle) >= p
            low, high = np.where(above, low, middle), np.where(above, middle, high)
            if (high - low <= 1e-14 * np.maximum(np.abs(low), np.abs(high))).all():
                break
        return np.asarray((low + high) / 2)


def stretched(u: Floats) -> tuple[Floats, Floats]:
    """g(u) = sinh(a sinh u) / a, a = pi / 2, and its derivative: near 0 it is u, and soon far."""
    a = math.pi / 2
    inner = a * np.sinh(u)
    return np.sinh(inner) / a, np.cosh(inner) * np.cosh(u)


def unstretched(g: Floats) -> Floats:
    """The u of g(u)."""
    a = math.pi / 2
    return np.asarray(np.arcsinh(np.arcsinh(a * g) / a))
