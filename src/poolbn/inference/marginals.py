"""What is known of one node in n rows: probabilities of levels, points, mixtures, or a grid."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from poolbn.inference import mixtures
from poolbn.later import special
from poolbn.nodes.predicting import Floats

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
        return mixtures.moments(self.weights, self.values, np.zeros(1))

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
        return mixtures.moments(self.weights, self.means, self.variances)

    def quantile(self, p: float) -> Floats:
        """The x with P(node <= x) = p."""
        if self.weights.shape[1] == 1:
            return self.means[:, 0] + mixtures.own_quantiles(p, self.df[:, 0]) * self.sds[:, 0]
        return mixtures.quantiles(p, self.weights, self.means, self.sds, self.df)

    def cdf(self, x: Floats) -> Floats:
        """P(node <= x)."""
        return self._at(x)[0]

    def pdf(self, x: Floats) -> Floats:
        """The density at x."""
        return self._at(x)[1]

    def _at(self, x: Floats) -> tuple[Floats, Floats]:
        df = self.df if np.isfinite(self.df).any() else None
        return mixtures.distribution(x, self.weights, self.means, self.sds, df)


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
