"""Likelihoods of regressions with random effects as sums over points, and what maximises them.

The Laplace approximation takes the random effects of a data set for normal given its rows. With few
rows they are not: two rows of two levels leave half of a bell. Here their density is summed over
points instead. One random effect has a grid, wide and fine enough to give all digits. Several have
shifted lattices (quasi Monte Carlo), most points from the normal distribution of the Laplace
approximation and the rest from one with the variance 1 of the prior: as likelihoods are
log-concave, no point of the second kind weighs more than the mode does, and sums have no heavy
tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poolbn.nodes.design import Family, Floats, Integers
from poolbn.run.compiling import kernels

_REACH = 8.0  # standard deviations of the prior that a grid goes from the mode at most
_DROP = 30.0  # in the logarithm of a density, where a grid ends
_GRID = 33  # points of the first grid; each later one has twice as many
_FINEST = 257
_SAME = 1e-4  # of a log-likelihood of a data set, with every other point of its grid: its square
_WIDE = 0.2  # of a lattice, with the variance of the prior
_MOST_NUMBERS, _FEWEST = 6 * 10**6, 8  # of all lattices; pairs of points of each
_SHORTEST = 1e-6  # part of a step
_LOG_THETA = 14.0  # counts with more are Poisson, as in the kernel of the Laplace approximation


class Points(NamedTuple):
    """Points of the random effects of all data sets, S of each."""

    u: Floats  # (F, S, e)
    logs: Floats  # logarithms of their weights, with the density of u, (F, S)


class Parameters(NamedTuple):
    """Those of a regression with random effects, in the columns of the computation."""

    B: Floats  # (d,)
    L: Floats  # D = LL', (q, k); where they change, zeros but in the first k rows
    log_theta: float

    def packed(self) -> Floats:
        """All in one vector; of L the lower triangle of its first rows."""
        return np.concatenate([self.B, self.L[np.tril_indices(self.L.shape[1])], [self.log_theta]])

    def unpacked(self, x: Floats) -> Parameters:
        """Others, of the same shapes."""
        d, L = len(self.B), np.zeros_like(self.L)
        L[np.tril_indices(L.shape[1])] = x[d:-1]
        return Parameters(x[:d], L, float(x[-1]))


@dataclass(frozen=True)
class Integrals:
    """Log-likelihoods of one family.

    Args:
        family: of the child.
        q: columns of x.
        table: the rows of data sets that differ, see `kernels.rows`.
        offsets: where the rows of data sets begin in it, (F + 1,).
        first: the first of all data sets that is like each of these, (F,).
        times: how many are, (F,).
        A: of the levels: Z = A kron L, (C, C).
    """

    family: Family
    q: int
    table: Floats
    offsets: Integers
    first: Integers
    times: Floats
    A: Floats

    @staticmethod
    def of(family: Family, q: int, table: Floats, offsets: Integers, A: Floats) -> Integrals:
        """Of rows as `kernels.rows` has them; data sets with the same rows become one."""
        own = np.ascontiguousarray(table[: q + 2].T)
        alike: dict[bytes, list[int]] = {}
        for j, (begin, end) in enumerate(pairwise(offsets.tolist())):
            alike.setdefault(own[begin:end].tobytes(), []).append(j)
        first = np.array([of[0] for of in alike.values()])
        rows = [np.arange(offsets[j], offsets[j + 1]) for j in first.tolist()]
        ends = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        times = np.array([float(len(of)) for of in alike.values()])
        kept = np.ascontiguousarray(table[:, np.concatenate(rows)])
        return Integrals(family, q, kept, ends, first, times, A)

    def at(self, at: Parameters, points: Points) -> tuple[Floats, float, Floats]:
        """Log-likelihoods at points, (F, S), that of all, and slopes of each data set's, (F, x)."""
        C, q = len(self.A), self.q
        d, k = C * q, at.L.shape[1]
        F, S = points.logs.shape
        values, in_B, in_Z, more = (
            np.empty(shape) for shape in ((F, S), (F, d), (F, d, C * k), (F, 2))
        )
        theta = math.exp(min(at.log_theta, _LOG_THETA))
        kernels("quadrature").add_up(
            int(self.family), q, C, self.table, self.offsets, theta, at.B, np.kron(self.A, at.L),
            points.u, points.logs, np.empty((d + 2, d)), np.empty((S, d + 1)), values, in_B, in_Z,
            more,
        )  # fmt: skip
        loglik = float(self.times @ (log_sums(values + points.logs) + more[:, 0]))
        in_L = np.einsum("ih,jiahb->jab", self.A, in_Z.reshape(F, C, q, C, k))
        lower = np.tril_indices(k)
        in_theta = theta * more[:, 1:] * (at.log_theta < _LOG_THETA)
        return values, loglik, np.hstack([in_B, in_L[:, lower[0], lower[1]], in_theta])

    def error(self, points: Points, values: Floats) -> float:
        """About how far a sum over points is off, from log-likelihoods at these, (F, S)."""
        terms = values + points.logs
        if points.u.shape[2] == 1:
            return float(self.times @ (_of_half(terms) ** 2))
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.nan_to_num(log_sums(terms[:, ::2]) - log_sums(terms[:, 1::2]), nan=np.inf)
            return 0.5 * math.sqrt(float(np.sum((self.times * apart) ** 2)))

    def grid(self, at: Parameters, modes: Floats) -> Points:
        """Points of one random effect in each data set.

        The log-likelihood is concave and the prior normal: beyond the mode the density falls at
        least as fast as the prior's. Equal steps make an error that falls exponentially with their
        number, so that the sum over every other point tells whether they are enough.

        Args:
            at: the parameters.
            modes: of the random effect, (F, 1).
        """
        away = _REACH * 0.5 ** np.arange(8)
        probes = modes + np.concatenate([[0.0], away, -away])
        height = self.at(at, Points(probes[:, :, None], -0.5 * probes**2))[0] - 0.5 * probes**2
        low = height < height[:, :1] - _DROP
        ends = [np.where(of, away, _REACH).min(axis=1) for of in (low[:, 1:9], low[:, 9:])]
        S = _GRID
        while True:
            parts = np.linspace(0.0, 1.0, S)
            step = (ends[0] + ends[1]) / (S - 1)
            u = (modes[:, 0] - ends[1])[:, None] + (ends[0] + ends[1])[:, None] * parts
            logs = np.log(step)[:, None] - 0.5 * u**2 - 0.5 * math.log(2.0 * math.pi)
            points = Points(u[:, :, None], logs)
            change = np.abs(_of_half(self.at(at, points)[0] + logs))
            if change.max() < _SAME or S >= _FINEST:
                return points
            S = 2 * S - 1

    @cached_property
    def shifts(self) -> Floats:
        """Of the lattices of data sets, (F, d + 1), by their rows and not by their order."""
        *X, y, n = self.table[: self.q + 2]
        own = np.array([n, *(n * (y + 1.0) * x for x in X)])
        sums = np.pad(np.cumsum(own, axis=1), ((0, 0), (1, 0)))[:, self.offsets]
        order = np.lexsort(np.diff(sums, axis=1).round(6))
        shifts = np.empty((len(order), len(self.A) * self.q + 1))
        shifts[order] = np.random.default_rng(0).random(shifts.shape)
        return shifts

    def lattice(self, modes: Floats, M: Floats, S: int) -> Points:
        """Points of several random effects in each data set.

        Args:
            modes: of the random effects, (F, e).
            M: the curvature there, (F, e, e).
            S: how many points each data set has, if there is memory.
        """
        from scipy.special import ndtri

        F, e = modes.shape
        S = 2 * max(min(S // 2, _MOST_NUMBERS // (2 * F * (e + 1))), _FEWEST)
        x = (self.shifts[:, None, : e + 1] + _lattice(S, e + 1)) % 1.0
        z = ndtri(np.clip(x[:, :, :e], 1e-15, 1.0 - 1e-15))
        root = np.linalg.cholesky(np.linalg.inv(M))
        away = np.where(x[:, :, e:] < _WIDE, z, z @ np.swapaxes(root, 1, 2))
        u = modes[:, None] + away
        wide = -0.5 * np.sum(away**2, axis=2)
        narrow = 0.5 * np.linalg.slogdet(M)[1][:, None] - 0.5 * np.sum((away @ M) * away, axis=2)
        drawn = np.logaddexp(wide + math.log(_WIDE), narrow + math.log(1.0 - _WIDE)) + math.log(S)
        return Points(u, -0.5 * np.sum(u**2, axis=2) - drawn)


def _lattice(S: int, e: int) -> Floats:
    """Multiples of powers of the number that is worst to approximate by fractions, (S, e)."""
    x = 2.0
    for _ in range(40):
        x = (1.0 + x) ** (1.0 / (e + 1))
    return np.arange(1, S + 1)[:, None] * x ** -np.arange(1.0, e + 1.0)


def _of_half(terms: Floats) -> Floats:
    """What every other point of a grid changes, (F, S) -> (F,)."""
    return log_sums(terms) - log_sums(terms[:, ::2]) - math.log(2.0)


def log_sums(terms: Floats) -> Floats:
    """Logarithms of the sums of exp(terms), (F, S) -> (F,).

    Examples:
        >>> log_sums(np.log([[1.0, 3.0], [0.5, 0.5]])).round(4)
        array([1.3863, 0.    ])
    """
    top = terms.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top[:, 0] + np.log(np.exp(terms - top).sum(axis=1)))


def descend(
    f: Callable[[Floats], tuple[float, Floats]], x: Floats, H: Floats, gain: float, steps: int
) -> tuple[Floats, float]:
    """BFGS steps to a minimum; where it is, and by how much the value fell.

    Args:
        f: value and slope.
        x: where to start.
        H: the inverse curvature there, about.
        gain: what a last step may still have to gain.
        steps: at most.

    Examples:
        >>> x, fell = descend(lambda x: (x @ x, 2 * x), np.array([3.0, 4.0]), np.eye(2), 1e-9, 50)
        >>> bool(abs(x).max() < 1e-4), float(fell)
        (True, 25.0)
    """
    value, slope = f(x)
    first = value
    for _ in range(steps):
        move = -H @ slope
        down, part = -float(slope @ move), 1.0
        if not down > gain:
            break
        while True:
            new, to = f(x + part * move)
            if new <= value - 1e-4 * part * down or part < _SHORTEST:
                break
            part *= 0.5
        if not new < value:
            break
        s, y = part * move, to - slope
        x, value, slope = x + s, new, to
        sy = float(s @ y)
        if sy > 0.0:
            Hy = H @ y
            H = (
                H
                + np.outer(s, s) * (1.0 + y @ Hy / sy) / sy
                - (np.outer(Hy, s) + np.outer(s, Hy)) / sy
            )
    return x, first - value
