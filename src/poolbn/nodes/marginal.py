"""The likelihood of a regression with random effects, where the Laplace approximation is off.

That approximation is exact for normal rows, and close where data sets have many rows for each
random effect. With few it can be off by more than what models differ by, in both directions, and
its maximum can be where the likelihood is low. So one random effect is integrated numerically,
always. With several, the approximation itself tells about how far it is off. Where that matters its
value is replaced by a sum over points, see `quadrature`, and where that is another one, its maximum
too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from poolbn.nodes.design import Floats
from poolbn.nodes.glmm import FREE, HELD, LARGE, Found, Problem, Start
from poolbn.nodes.quadrature import Integrals, Parameters, Points, descend

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


def is_rough(found: Found) -> bool:
    """Whether a log-likelihood is known roughly.

    What a prior holds is below what the likelihood can reach, and may be compared.
    """
    return found.noise > _ROUGH and found.ridge == FREE


def settle(problem: Problem, final: bool) -> Found:
    """The maximum of the likelihood; of the Laplace approximation where that is close to it.

    With the effort of a final fit, or from one good start: for a search, which compares many.

    Examples:
        >>> from poolbn.nodes.design import Design, Response
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
    if not math.isfinite(laplace.loglik) or (not one and doubt(problem, laplace) < _DOUBT):
        return laplace
    marginal = Marginal(problem, problem.integrals(), final)
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
        sums: its likelihood at points.
        final: the effort of a final fit, and not of a search.
    """

    problem: Problem
    sums: Integrals
    final: bool

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
            B, D = problem.pooled.T[0].copy(), sd**2 * (1.0 if problem.counts else 2.0)
            if problem.counts:
                B[0] -= 0.5 * D
            else:
                B *= math.sqrt(1.0 + _ATTENUATION * D)
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
