"""Logistic and count regressions of one node, from rows: complete, no and partial pooling.

Levels are symmetric: utilities x'(beta_k + b_jk) with b_jk ~ N(0, D) independent over the K
levels, and coefficients are differences from level 0. Counts have one linear predictor and a log
link. Partial pooling is by the Laplace approximation, see `kernels.laplace`.

All is computed in columns that are uncorrelated and of variance one over all rows, so units do not
matter. Where a likelihood has no maximum (separation: some linear predictor can grow without end),
coefficients come from a weak normal prior, and the log-likelihood is the plain one at them: below
what it can reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import RANK_TOLERANCE
from poolbn.run.compiling import kernels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_PRIOR_SD = 2.0  # of utilities, in the columns of the computation, where there is no maximum
_RANDOM_SD = 3.0  # of entries of a factor of D, likewise
_SEPARATED = 1e-5  # information in some direction of variance one: less than any row has
_LARGE = 50.0  # an SD of random effects that stands for infinity
_SUSPECT = 10.0  # coefficients or SDs that are looked at twice
_TOLERANCE = {False: 1e-6, True: 1e-10}
_STEPS = 300


class Family(IntEnum):
    """The distribution of a child given its linear predictors."""

    LOGIT = 0
    POISSON = 1
    NEGATIVE_BINOMIAL = 2


@dataclass(frozen=True)
class Response:
    """What kind of child: its family, and for LOGIT how many levels it has."""

    family: Family = Family.LOGIT
    levels: int = 2

    @property
    def predictors(self) -> int:
        """Linear predictors: C."""
        return self.levels - 1 if self.family == Family.LOGIT else 1


@dataclass(frozen=True)
class Design:
    """Rows of one family, sorted by data set.

    Args:
        X: the intercept, 1, and the parents, (m, q).
        y: levels 0 to K - 1, or counts, (m,).
        weight: how often each row is there, (m,).
        offsets: the rows of data set j are offsets[j] : offsets[j + 1], (F + 1,).

    Example:
        >>> X = np.array([[1.0, 0.5], [1.0, 0.5], [1.0, 2.0], [1.0, 0.5]])
        >>> rows = Design(X, np.array([0, 0, 1, 0]), np.ones(4), np.array([0, 3, 4]))
        >>> collapse(rows).weight
        array([2., 1., 1.])
    """

    X: Floats
    y: Integers
    weight: Floats
    offsets: Integers


def collapse(design: Design) -> Design:
    """The same rows, those that are equal within a data set counted.

    Example:
        >>> rows = Design(np.ones((3, 1)), np.array([1, 0, 1]), np.ones(3), np.array([0, 3]))
        >>> collapse(rows).y, collapse(rows).weight
        (array([0, 1]), array([1., 2.]))
    """
    sets = np.repeat(np.arange(len(design.offsets) - 1), np.diff(design.offsets))
    keys = (design.y, *design.X.T[:0:-1], sets)
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= np.diff(key[order]) != 0
    first = order[new]
    weight = (
        np.add.reduceat(design.weight[order], np.flatnonzero(new)) if len(order) else np.ones(0)
    )
    offsets = np.searchsorted(sets[first], np.arange(len(design.offsets)))
    return Design(design.X[first], design.y[first], weight, offsets.astype(np.int64))


@dataclass(frozen=True)
class Regression:
    """Regressions without random effects: one of all rows, or one for each data set.

    Args:
        loglik: log-likelihoods, (J,).
        coef: coefficients, level by level after the first, (J, C, q).
        cov: their covariance, the inverse information, (J, C q, C q).
        separated: whether the likelihood has no maximum, and a weak prior took its place, (J,).
        converged: whether the search ended, (J,).
        theta: dispersion of negative binomial counts, variance mu + mu^2 / theta, (J,).
        n_params: free parameters of all of them.
        dependent: a column that is a combination of those before it, or -1.
    """

    loglik: Floats
    coef: Floats
    cov: Floats
    separated: NDArray[np.bool_]
    converged: NDArray[np.bool_]
    theta: Floats
    n_params: int
    dependent: int


@dataclass(frozen=True)
class MixedRegression:
    """A regression with random effects on every coefficient.

    Args:
        loglik: by the Laplace approximation.
        fixed: coefficients of the population, level by level after the first, (C, q).
        fixed_cov: their covariance, (C q, C q).
        D: covariance of the random effects: of utilities, or for counts of coefficients, (q, q).
        coef: coefficients of the data sets, at the modes, (F, C, q).
        conditional_cov: their covariance, given the population's, (F, C q, C q).
        rank: of D.
        separated: whether the likelihood has no maximum, and a weak prior took its place.
        converged: whether the search ended.
        theta: dispersion of negative binomial counts, variance mu + mu^2 / theta.
        n_params: free parameters.
        dependent: a column that is a combination of those before it, or -1.
        steps: of the search.
        random_cov: covariance of the random effects of one coefficient, a difference of two
            utilities: 2D for levels (what glmer reports), D for counts, (q, q).
    """

    loglik: float
    fixed: Floats
    fixed_cov: Floats
    D: Floats
    coef: Floats
    conditional_cov: Floats
    rank: int
    separated: bool
    converged: bool
    theta: float
    n_params: int
    dependent: int
    steps: int
    random_cov: Floats


def complete(design: Design, response: Response) -> Regression:
    """One regression of all rows.

    Example:
        >>> rows = Design(np.ones((2, 1)), np.array([0, 1]), np.array([30.0, 10.0]),
        ...               np.array([0, 2]))
        >>> fit = complete(rows, Response(levels=2))
        >>> print(f"{fit.coef[0, 0, 0]:.4f} {fit.loglik[0]:.4f}")
        -1.0986 -22.4934
    """
    return _Problem(design, response).complete()


def none(design: Design, response: Response) -> Regression:
    """A regression for each data set.

    Example:
        >>> rows = Design(np.ones((3, 1)), np.array([0, 1, 1]), np.array([30.0, 10.0, 9.0]),
        ...               np.array([0, 2, 3]))
        >>> none(rows, Response(levels=2)).separated
        array([False,  True])
    """
    return _Problem(design, response).none()


def partial(design: Design, response: Response, *, final: bool = True) -> MixedRegression:
    """A mixed-effects regression; `final` takes several starts, and tells covariances.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> y = rng.poisson(np.exp(rng.normal(size=(8, 1)) + np.ones((8, 20)))).ravel()
        >>> rows = Design(np.ones((160, 1)), y, np.ones(160), np.arange(0, 161, 20))
        >>> fit = partial(collapse(rows), Response(Family.POISSON))
        >>> fit.converged, fit.rank, fit.n_params
        (True, 1, 2)
    """
    return _Problem(design, response).partial(final)


@dataclass(frozen=True)
class _Basis:
    """X T has columns that are uncorrelated and of variance one, but for the intercept."""

    T: Floats  # (q, r)
    dependent: int

    @staticmethod
    def of(X: Floats, weight: Floats) -> _Basis:
        q = X.shape[1]
        mean = weight @ X[:, 1:] / weight.sum()
        centred = X[:, 1:] - mean
        S = (centred * weight[:, None]).T @ centred / weight.sum()
        scale = np.sqrt(np.diagonal(S))
        T = np.zeros((q, q))
        T[0, 0] = 1.0
        kept = [0]
        for a in range(q - 1):
            # The part of column a that the columns before it do not explain, twice for rounding.
            t = np.zeros(q - 1)
            t[a] = 1.0 / scale[a] if scale[a] > 0.0 else 0.0
            for _ in range(2):
                done = T[1:, kept[1:]]
                t -= done @ (done.T @ (S @ t))
            left = t @ S @ t
            if left > RANK_TOLERANCE:
                T[1:, a + 1] = t / math.sqrt(left)
                kept.append(a + 1)
        T[0, 1:] = -mean @ T[1:, 1:]
        dependent = next((a for a in range(q) if a not in kept), -1)
        return _Basis(np.ascontiguousarray(T[:, kept]), dependent)


@dataclass(frozen=True)
class _Plain:
    """Regressions, in the columns of the computation; as in `Regression`."""

    loglik: Floats  # without constants
    T: Floats  # (J, d)
    W: Floats  # information, (J, d, d)
    separated: NDArray[np.bool_]
    converged: NDArray[np.bool_]


@dataclass(frozen=True)
class _Start:
    """Where a search starts: L with its columns in use, and EM steps before it."""

    L: Floats
    rank: int
    expectations: int = 0


@dataclass(frozen=True)
class _Found:
    """What the kernel leaves: in the columns of the computation."""

    loglik: float
    B: Floats  # (d,)
    L: Floats  # (r, rank)
    T: Floats  # (F, d)
    W: Floats  # (F, d, d)
    information: Floats  # of B, (d, d), if the search made no step
    G: Floats
    slope: Floats
    log_theta: float
    rank: int
    converged: bool
    steps: int
    separated: bool = False


class _Problem:
    """One family in the columns of the computation."""

    def __init__(self, design: Design, response: Response) -> None:
        self.design, self.response = design, response
        self.basis = _Basis.of(design.X, design.weight)
        self.q, self.C = self.basis.T.shape[1], response.predictors
        self.d, self.F = self.q * self.C, len(design.offsets) - 1
        levels = response.family == Family.LOGIT
        S = np.eye(self.C) + 1.0 if levels else np.eye(1)
        self.A, self.inverse = np.linalg.cholesky(S), np.linalg.inv(S)
        self.table = np.empty((len(design.y), self.q + 2 + self.C))
        self.table[:, : self.q] = design.X @ self.basis.T
        self.table[:, self.q] = design.y
        self.table[:, self.q + 1] = design.weight
        self.counts = response.family != Family.LOGIT
        self.dispersed = response.family == Family.NEGATIVE_BINOMIAL

    @cached_property
    def constants(self) -> Floats:
        """What log-likelihoods of counts have beside their parameters, (F,)."""
        if not self.counts:
            return np.zeros(self.F)
        values, at = np.unique(self.design.y, return_inverse=True)
        terms = np.array([math.lgamma(y + 1.0) for y in values.tolist()])
        sums = np.concatenate([[0.0], np.cumsum(self.design.weight * terms[at])])
        return -np.asarray(np.diff(sums[self.design.offsets]))

    @cached_property
    def centre(self) -> Floats:
        """Coefficients without parents, (d,): where a penalty is zero."""
        centre = np.zeros((self.C, self.q))
        y, weight = self.design.y, self.design.weight
        if self.counts:
            centre[0, 0] = math.log((weight @ y + 0.5) / weight.sum())
        else:
            times = np.bincount(y, weight, minlength=self.response.levels) + 0.5
            centre[:, 0] = np.log(times[1:] / times[0])
        return centre.ravel()

    @cached_property
    def pooled(self) -> _Plain:
        """The regression of all rows; of negative binomial counts that of Poisson ones."""
        whole = self.design.offsets[[0, -1]]
        return self.regress(whole, self.centre)

    @cached_property
    def dispersion(self) -> float:
        """Log theta by moments, from the Poisson means."""
        means = self.table[:, self.q + 2]
        np.exp(self.table[:, : self.q] @ self.pooled.T[0], out=means)
        weight = self.design.weight
        extra = weight @ ((self.design.y - means) ** 2 - means)
        return float(np.log(np.clip(weight @ means**2 / max(extra, 1e-300), 0.05, 1e3)))

    def regress(self, offsets: Integers, centre: Floats) -> _Plain:
        """Regressions of data sets; with a penalty where there is no maximum."""
        J, q, d = len(offsets) - 1, self.q, self.d
        kernel = kernels("glm")
        family = min(self.response.family, Family.POISSON)
        states, result = np.zeros((J, d + 2, d)), np.empty((J, 3))
        states[:, d] = centre
        work, lines = np.empty((4, d, d)), np.empty((3, d))
        centres, theta = np.tile(centre, (J, 1)), np.ones(J)
        kernel.regress(
            family, self.table, q, self.C, offsets, centres, np.zeros(J), self.inverse, theta,
            states, result, work, lines,
        )  # fmt: skip
        separated = (result[:, 1] < _SEPARATED) | (result[:, 2] == 0.0)
        for j in np.flatnonzero(separated):
            states[j, d] = centre
            kernel.regress(
                family, self.table, q, self.C, offsets[j : j + 2], centres[:1],
                np.array([_PRIOR_SD**-2.0]), self.inverse, theta[:1],
                states[j : j + 1], result[j : j + 1], work, lines,
            )  # fmt: skip
        return _Plain(
            result[:, 0].copy(), states[:, d].copy(), states[:, :d], separated, result[:, 2] == 1.0
        )

    def complete(self) -> Regression:
        """One regression of all rows."""
        plain = self.pooled
        theta = np.full(1, math.inf)
        if self.dispersed:
            plain, theta = self.disperse(self.design.offsets[[0, -1]], plain)
        return self.told(plain, theta, self.constants.sum(keepdims=True))

    def none(self) -> Regression:
        """A regression for each data set; where it has no maximum, near that of all rows."""
        plain = self.regress(self.design.offsets, self.pooled.T[0])
        theta = np.full(self.F, math.inf)
        if self.dispersed:
            plain, theta = self.disperse(self.design.offsets, plain)
        return self.told(plain, theta, self.constants)

    def told(self, plain: _Plain, theta: Floats, constants: Floats) -> Regression:
        """In the units of the data."""
        J, T = len(constants), self.basis.T
        return Regression(
            loglik=plain.loglik + constants,
            coef=plain.T.reshape(J, self.C, self.q) @ T.T,
            cov=self.back(np.linalg.inv(plain.W)),
            separated=plain.separated,
            converged=plain.converged,
            theta=theta,
            n_params=J * (self.d + self.dispersed),
            dependent=self.basis.dependent,
        )

    def back(self, cov: NDArray[np.floating]) -> Floats:
        """Covariances of coefficients in the units of the data, (..., C q, C q)."""
        T = np.kron(np.eye(self.C), self.basis.T)
        return np.asarray(T @ cov @ T.T)

    def disperse(self, offsets: Integers, plain: _Plain) -> tuple[_Plain, Floats]:
        """Negative binomial regressions, from the Poisson ones, and their theta."""
        plain = replace(plain, loglik=plain.loglik.copy(), W=plain.W.copy())
        theta = np.empty(len(plain.loglik))
        for j in range(len(theta)):
            start = _Start(np.zeros((self.q, self.q)), 0)
            ridge = _PRIOR_SD**-2.0 if plain.separated[j] else 0.0
            found = self.search(
                offsets[j : j + 2], plain.T[j], start, most=0, ridge=(ridge, 0.0), final=True
            )
            plain.loglik[j], plain.T[j], plain.W[j] = found.loglik, found.B, found.W[0]
            plain.converged[j] = found.converged
            theta[j] = math.exp(found.log_theta)
        return plain, theta

    def search(
        self,
        offsets: Integers,
        B: Floats,
        start: _Start,
        *,
        most: int,
        ridge: tuple[float, float] = (0.0, 0.0),
        final: bool = False,
        steps: int = _STEPS,
        log_theta: float | None = None,
        T: Floats | None = None,
    ) -> _Found:
        """Maximise from one start."""
        names, kernel = kernels("laplace"), kernels("quasinewton")
        J, q, C, d = len(offsets) - 1, self.q, self.C, self.d
        N = max(d + q * (q + 1) // 2 + 1, names.LINES)
        states, work, mats = (
            np.zeros((2 * J, d + 2, d)),
            np.zeros((names.WORK, N, N)),
            np.zeros((5, q, q)),
        )
        states[:J, d] = B if T is None else T
        work[names.A_, :C, :C], work[names.S_, :C, :C] = self.A, self.inverse
        lines = work[names.LINES_]
        lines[names.B_, :d], lines[names.CENTRE_, :d] = B, self.centre
        lines[names.RIDGE_, :2] = ridge
        if self.dispersed:
            lines[names.THETA_, 0] = self.dispersion if log_theta is None else log_theta
        mats[kernel.L_] = start.L
        value, outcome = np.empty(1), np.empty(4, dtype=np.int64)
        kernel.fit(
            int(self.response.family), q, C, self.table, offsets, states, work, mats,
            np.zeros((2, q), dtype=np.int64), start.rank, most, start.expectations, steps,
            _TOLERANCE[final], value, outcome,
        )  # fmt: skip
        rank, side, converged, taken = outcome.tolist()
        L = mats[kernel.L_, :, :rank]
        B = lines[names.B_, :d]
        away = (B - self.centre).reshape(C, q)
        added = 0.5 * ridge[0] * float(np.sum(away * (self.inverse @ away)))
        added += 0.5 * ridge[1] * float(np.sum(L * L))
        here = states[side * J : (side + 1) * J]
        information = work[names.METRIC_, :d, :d]
        return _Found(
            loglik=added - float(value[0]),
            B=B,
            L=L,
            T=here[:, d],
            W=here[:, :d],
            information=np.tril(information) + np.tril(information, -1).T,
            G=mats[kernel.G_],
            slope=lines[names.SLOPE_],
            log_theta=float(lines[names.THETA_, 0]),
            rank=rank,
            converged=converged == 1,
            steps=taken,
        )

    def starts(self, final: bool) -> list[_Start]:
        """The one start of a search, or several."""
        q = self.q
        rank = min(q, max(self.F * self.C - 1, 1))
        eye = np.eye(q)
        first = [_Start(eye, rank if rank == q else q, 1)]
        if not final:
            return first
        return [
            *first,
            _Start(np.zeros((q, q)), 0),
            _Start(eye * math.sqrt(0.1), q),
            _Start(eye * 2.0, q),
        ]

    def partial(self, final: bool) -> MixedRegression:
        """The best of the searches, and with a penalty where there is no maximum."""
        ridge = (0.0, 0.0)
        found = self.best(final, ridge)
        if self.pooled.separated[0] or self.suspect(found):
            ridge = (_PRIOR_SD**-2.0, _RANDOM_SD**-2.0)
            found = replace(self.best(final, ridge), separated=True)
        return self.mixed(found, ridge, final)

    def best(self, final: bool, ridge: tuple[float, float]) -> _Found:
        """The best of the searches."""
        B, offsets = self.pooled.T[0], self.design.offsets
        return max(
            (
                self.search(offsets, B, start, most=self.q, ridge=ridge, final=final)
                for start in self.starts(final)
            ),
            key=lambda found: found.loglik if math.isfinite(found.loglik) else -math.inf,
        )

    def suspect(self, found: _Found) -> bool:
        """Whether parameters went to infinity."""
        if not math.isfinite(found.loglik):
            return True
        spread = float(np.sqrt(np.sum(found.L**2)))
        if spread > _LARGE:
            return True
        if max(spread, float(np.abs(found.B - self.centre).max())) < _SUSPECT and found.converged:
            return False
        there = self.finish(found, (0.0, 0.0))
        return float(np.linalg.eigvalsh(there.information)[0]) < _SEPARATED

    def finish(self, found: _Found, ridge: tuple[float, float]) -> _Found:
        """The same with its derivatives."""
        L = np.zeros((self.q, self.q))
        L[:, : found.rank] = found.L
        return self.search(
            self.design.offsets, found.B, _Start(L, found.rank), most=self.q, ridge=ridge,
            steps=0, log_theta=found.log_theta, T=found.T,
        )  # fmt: skip

    def mixed(self, found: _Found, ridge: tuple[float, float], final: bool) -> MixedRegression:
        """In the units of the data."""
        F, C, q, T = self.F, self.C, self.q, self.basis.T
        D = T @ found.L @ found.L.T @ T.T
        Z = np.kron(self.A, found.L)
        nothing = np.full((1, self.d, self.d), np.nan)
        if final:
            fixed_cov = np.linalg.inv(self.finish(found, ridge).information)
            M = np.eye(Z.shape[1]) + Z.T @ found.W @ Z
            conditional = Z @ np.linalg.solve(M, np.broadcast_to(Z.T, (F, *Z.T.shape)))
        return MixedRegression(
            loglik=found.loglik + float(self.constants.sum()),
            fixed=found.B.reshape(C, q) @ T.T,
            fixed_cov=self.back(fixed_cov if final else nothing[0]),
            D=D,
            coef=found.T.reshape(F, C, q) @ T.T,
            conditional_cov=self.back(conditional if final else nothing),
            rank=found.rank,
            separated=found.separated,
            converged=found.converged,
            theta=math.exp(found.log_theta) if self.dispersed else math.inf,
            n_params=self.d + q * (q + 1) // 2 + self.dispersed,
            dependent=self.basis.dependent,
            steps=found.steps,
            random_cov=D if self.counts else 2.0 * D,
        )
