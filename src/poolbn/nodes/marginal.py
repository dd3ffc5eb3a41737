"""The likelihood of a regression with random effects, where the Laplace approximation is off.

That approximation is exact for normal rows, and close where data sets have many rows for each
random effect. With few it can be off by more than what models differ by, in both directions, and
its maximum can be where the likelihood is low. So one random effect is integrated numerically,
always. With several, the approximation itself tells about how far it is off. Where that matters its
value is replaced by a sum over points, and where that is another one, its maximum too.

In such a sum the density of random effects is that at points. One random effect has a grid, wide
and fine enough to give all digits. Several have shifted lattices (quasi Monte Carlo), most points
from the normal distribution of the Laplace approximation and the rest from one with the variance 1
of the prior: as likelihoods are log-concave, no point of the second kind weighs more than the mode
does, and sums have no heavy tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poolbn.nodes.design import Floats, Integers
from poolbn.nodes.glmm import FREE, HELD, LARGE, Found, Problem, Start
from poolbn.nodes.links import Family
from poolbn.run.compiling import kernels

_DOUBT = 1.0  # of a log-likelihood, from which the Laplace approximation is not used
_TERM = 0.06  # what the first term that it lacks has, see `doubt` and results/laplace.md
# Mean rows of a data set with which the maximum of the approximation is a good one, if the
# approximation is too low by no more than this for each. Where it is too high it is not.
_MANY_ROWS, _LOW = {False: 10, True: 30}, 0.3
_ROUGH = 1.0  # of a log-likelihood: known roughly
# Points of a data set like no other: where searches begin, where they go, and for the last value.
_FEW, _SEVERAL, _MANY = 16, {False: 64, True: 128}, 2048
_NOISE = {False: 0.5, True: 0.1}  # of a log-likelihood, below which points are enough
_ROUNDS = {False: 3, True: 6}
_CLIMB = {False: 20, True: 40}  # steps
_GAIN = {False: 0.02, True: 0.002}  # what a last step may gain
_SURE_GAIN = 1e-6  # of one random effect, whose sums have all digits
_LITTLE = 0.1  # that curvatures get
_SPREADS = (0.5, 1.5, 5.0, 15.0)  # of random effects, where searches may begin
_ATTENUATION = 0.346  # (16 sqrt(3) / (15 pi))^2: a logistic distribution as a normal one
_NO_VARIANCE = 1e-6  # of random effects, in the columns of the computation
_REACH = 8.0  # standard deviations of the prior that a grid goes from the mode at most
_DROP = 30.0  # in the logarithm of a density, where a grid ends
_GRID = 33  # points of the first grid; each later one has twice as many
_FINEST = 257
_SAME = 1e-4  # of a log-likelihood of a data set, with every other point of its grid: its square
_WIDE = 0.2  # of a lattice, with the variance of the prior
_MOST_EFFECTS = 24  # of a data set: in more dimensions sums over points take minutes, and are noise
_MOST_NUMBERS, _FEWEST = 6 * 10**6, 8  # of all lattices; pairs of points of each
_SHORTEST = 1e-6  # part of a step
_LOG_THETA = 14.0  # counts with more are Poisson, as in the kernel of the Laplace approximation


def is_rough(found: Found) -> bool:
    """Whether a log-likelihood is known roughly.

    A sum at parameters that a prior holds is below what the likelihood can reach, and may be
    compared.
    """
    return found.noise > _ROUGH and (found.ridge == FREE or not found.summed)


def settle(problem: Problem, final: bool) -> Found:
    """The maximum of the likelihood; of the Laplace approximation where that is close to it.

    With the effort of a final fit, or from one good start: for a search, which compares many.

    Examples:
        >>> from poolbn.nodes.design import Design
        >>> from poolbn.nodes.links import Response
        >>> rows = Design(np.ones((6, 1)), np.array([0, 1] * 3), np.array([6.0, 1, 1, 6, 3, 4]),
        ...               np.array([0, 2, 4, 6]))
        >>> problem = Problem(rows, Response(levels=2))
        >>> found = settle(problem, final=True)
        >>> round(found.loglik, 3), round(problem.partial().loglik, 3), is_rough(found)
        (-13.496, -13.541, False)
    """
    laplace, one = problem.climb(final), problem.C * problem.r == 1
    if not final and not math.isfinite(laplace.loglik):  # large counts, where one start is too few
        laplace = problem.climb(final=True)
    if problem.nested:
        return problem.over_units(laplace, problem.offsets, problem.r, final=final)
    if not math.isfinite(laplace.loglik) or (not one and doubt(problem, laplace) < _DOUBT):
        return laplace
    if problem.C * problem.r > _MOST_EFFECTS:
        return replace(laplace, noise=doubt(problem, laplace))
    marginal = Marginal(problem, final)
    here = marginal.corrected(laplace)
    many = problem.design.weight.sum() >= _MANY_ROWS[final] * problem.F
    low = max(_DOUBT, _LOW * problem.F * many)
    if not (one and final) and -low < laplace.loglik - here.loglik < _DOUBT:
        return here
    if not problem.pooled.separated[0]:
        found = marginal.climb(here, FREE)
        if not problem.suspect(found):
            return found
    return marginal.climb(here, HELD)


def doubt(problem: Problem, found: Found) -> float:
    """About how far the log-likelihood of a Laplace approximation may be off.

    The first term that it lacks grows with sum v^2 w over rows, where w is the information of a row
    and v the variance of its linear predictor given all rows. Of a data set that is at least
    (sum v w)^2 / sum w: the square of the degrees of freedom that its random effects take, over the
    information that its rows have of a constant.
    """
    Z = np.kron(problem.A, found.L)
    M = Z.T @ found.W @ Z
    taken = np.trace(np.linalg.solve(M + np.eye(Z.shape[1]), M), axis1=1, axis2=2)
    known = np.diagonal(found.W, axis1=1, axis2=2)[:, :: problem.q].sum(axis=1)
    return _TERM * float(np.sum(taken**2 / np.maximum(known, 1e-300)))


@dataclass(frozen=True)
class Marginal:
    """Sums over points in place of the Laplace approximation of a problem.

    Args:
        problem: the regression.
        final: the effort of a final fit, and not of a search.
    """

    problem: Problem
    final: bool

    @cached_property
    def sums(self) -> Integrals:
        """The likelihood at points."""
        return Integrals.of(self.problem)

    def climb(self, laplace: Found, ridge: tuple[float, float]) -> Found:
        """The maximum of the likelihood itself.

        Points stay where they are while a search climbs, and then are moved to the new modes.
        """
        here, final = replace(laplace, ridge=ridge), self.final
        at = max(self.beginnings(laplace, ridge), key=lambda at: self.summed(at, here, _FEW)[0])
        least = _SURE_GAIN if final and self.problem.C * self.problem.r == 1 else _GAIN[final]
        converged = False
        for _ in range(_ROUNDS[final]):
            here = self.modes(at, here)
            at, gain = self.ascend(at, self.points(at, here, _SEVERAL[final]), ridge, least)
            converged = gain < least
            if converged or np.sum(at.L**2) > LARGE**2:
                break
        (q, r), own = at.L.shape, at.L[: self.problem.r]
        values, vectors = np.linalg.eigh(own @ own.T)
        kept = values > _NO_VARIANCE
        L = np.ascontiguousarray(np.vstack([vectors[:, kept], np.zeros((q - r, kept.sum()))]))
        at = at._replace(L=L * np.sqrt(values[kept]))
        found = replace(self.corrected(self.modes(at, here)), converged=converged)
        return laplace if laplace.ridge == ridge and laplace.objective < found.objective else found

    def corrected(self, here: Found) -> Found:
        """The same with its likelihood, summed over as many points as it takes."""
        at, S = Parameters(here.B, here.L, here.log_theta), _FEW
        while True:
            value, error = self.summed(at, here, S)
            S *= 2
            if error < _NOISE[self.final] or S > _MANY:
                break
        loglik = value + self.problem.penalties(here.B, here.L, here.ridge)[0]
        return replace(here, objective=-value, loglik=loglik, summed=True, noise=error)

    def summed(self, at: Parameters, near: Found, S: int) -> tuple[float, float]:
        """The log-likelihood minus penalties, and about how far it is off."""
        here = self.modes(at, near)
        if not (at.L.size and math.isfinite(here.objective)):
            return -here.objective, 0.0
        points = self.points(at, here, S)
        values, loglik, _ = self.sums.at(at, points)
        value = loglik - self.problem.penalties(at.B, at.L, near.ridge)[0]
        return value, self.sums.error(points, values)

    def beginnings(self, laplace: Found, ridge: tuple[float, float]) -> list[Parameters]:
        """Where searches may begin: at the maximum of the Laplace approximation, or afresh.

        Afresh, means over all data sets are about those of complete pooling.
        """
        problem, theta = self.problem, laplace.log_theta
        q, r = problem.q, problem.r
        begin = []
        for sd in _SPREADS:
            B, D = problem.pooled.T[0].copy(), sd**2 * problem.S[0, 0]
            if problem.response.has_levels:
                B *= math.sqrt(1.0 + _ATTENUATION * D)
            else:
                B[0] -= 0.5 * D
            sds = np.array([sd, *[min(sd, 0.5)] * (r - 1)])
            begin.append(Parameters(B, np.eye(q, r) * sds, theta))
        if laplace.ridge == ridge:
            root = np.linalg.cholesky(laplace.L[:r] @ laplace.L[:r].T + 0.01 * np.eye(r))
            begin.append(Parameters(laplace.B, np.vstack([root, np.zeros((q - r, r))]), theta))
        return begin

    def modes(self, at: Parameters, near: Found) -> Found:
        """The modes of the data sets, and the Laplace approximation, at parameters."""
        q, k = at.L.shape
        L = np.zeros((q, q))
        L[:, :k] = at.L
        problem, ridge = self.problem, near.ridge
        found = problem.search(
            problem.offsets, at.B, Start(L, k), most=problem.r, ridge=ridge, steps=0,
            log_theta=at.log_theta, T=near.T,
        )  # fmt: skip
        return replace(found, ridge=ridge)

    def points(self, at: Parameters, here: Found, S: int) -> Points:
        """Points around the modes; more where a data set stands for many that are alike."""
        sums, Z = self.sums, np.kron(self.problem.A, at.L)
        W, modes = here.W[sums.first], here.g[sums.first] @ Z
        if modes.shape[1] == 1:
            return sums.grid(at, modes)
        S = int(S * math.sqrt(self.problem.F / len(sums.times)))
        return sums.lattice(modes, np.eye(Z.shape[1]) + Z.T @ W @ Z, S)

    def ascend(
        self, at: Parameters, points: Points, ridge: tuple[float, float], least: float
    ) -> tuple[Parameters, float]:
        """Climb with points as they are; what was gained.

        The first step is that of a curvature of squared slopes of data sets (Berndt, Hall, Hall and
        Hausman), with a little more where these are few.
        """
        sums = self.sums

        def minus(x: Floats) -> tuple[float, Floats]:
            now = at.unpacked(x)
            _, loglik, slopes = sums.at(now, points)
            value, in_B, in_L = self.problem.penalties(now.B, now.L, ridge)
            pull = Parameters(in_B, in_L, 0.0).packed()
            return value - loglik, pull - sums.times @ slopes

        slopes = sums.at(at, points)[2]
        squares = (slopes.T * sums.times) @ slopes
        squares += _LITTLE * np.diag(np.diagonal(squares) + 1.0)
        H = np.asarray(np.linalg.inv(squares))
        x, gained = descend(minus, at.packed(), H, least, _CLIMB[self.final])
        return at.unpacked(x), gained


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
    def of(problem: Problem) -> Integrals:
        """Of the rows of a regression; data sets with the same rows become one."""
        q, table, offsets = problem.q, problem.table, problem.offsets
        own = np.ascontiguousarray(table[: q + 2].T)
        alike: dict[bytes, list[int]] = {}
        for j, (begin, end) in enumerate(pairwise(offsets.tolist())):
            alike.setdefault(own[begin:end].tobytes(), []).append(j)
        first = np.array([of[0] for of in alike.values()])
        rows = [np.arange(offsets[j], offsets[j + 1]) for j in first.tolist()]
        ends = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        times = np.array([float(len(of)) for of in alike.values()])
        kept = np.ascontiguousarray(table[:, np.concatenate(rows)])
        return Integrals(problem.response.family, q, kept, ends, first, times, problem.A)

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
