"""Logistic and count regressions of one node, from rows: complete, no and partial pooling.

Levels are symmetric: utilities x'(beta_k + b_jk) with b_jk ~ N(0, D) independent over the K
levels, and coefficients are differences from level 0. Counts have one linear predictor and a log
link. Partial pooling is by the Laplace approximation, see `kernels.laplace`, and `marginal` where
that is off. Units inside data sets add an intercept to the utilities of their rows, N(0, tau^2).

All is computed in columns that are uncorrelated and of variance one over all rows, so units do not
matter. Where a likelihood has no maximum (separation: some linear predictor can grow without end),
coefficients come from a weak normal prior, and the log-likelihood is the plain one at them: below
what it can reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.design import Basis, Design, Floats, Integers, without_parents
from poolbn.nodes.links import Family, Response
from poolbn.nodes.unitmodes import MOST, Rows, over_laplace
from poolbn.run.compiling import kernels

_PRIOR_SD = 2.0  # of utilities, in the columns of the computation, where there is no maximum
_RANDOM_SD = 3.0  # of entries of a factor of D, likewise
_SEPARATED = 1e-5  # information in some direction of variance one: less than any row has
_REACHED = 0.01  # by which a likelihood without a maximum may still rise where it is left
LARGE = 50.0  # an SD of random effects that stands for infinity
_SUSPECT = 10.0  # coefficients or SDs that are looked at twice
_TOLERANCE = {False: 1e-6, True: 1e-10}
_STEPS = 300
_MANY_ROWS = 20_000  # above which a start costs a second
_START_SDS = (0.3, 2.0)  # of random effects, where final fits start too
# Units of two or three rows, and a level that is rare: the Laplace approximation is then far above
# what the likelihood is, the more the larger the variance between units, and its maximum is there.
# So where an intercept differs so much between units (its SD), and the approximation is so much too
# high, tau is where the integral is largest, by Gauss and Hermite's points around the modes of the
# units. The other parameters are where the approximation is largest at that tau.
_MUCH, _TOO_HIGH = 1.5, 1.0
_LEAST = 8.0  # tau is looked for down to this part of the approximation's
_EXACT = {False: 0.05, True: 0.01}  # in log tau
_VALUES = 40  # of tau, at most
_NO_UNITS = np.zeros((0, 1))
# Weights of penalties on fixed and on random effects: none, and those of separation.
FREE, HELD = (0.0, 0.0), (_PRIOR_SD**-2.0, _RANDOM_SD**-2.0)


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
        unit_sd: standard deviation of an intercept between units, (J,); 0 without any.
        over_units: whether intercepts of units are integrated numerically somewhere.
    """

    loglik: Floats
    coef: Floats
    cov: Floats
    separated: NDArray[np.bool_]
    converged: NDArray[np.bool_]
    theta: Floats
    n_params: int
    dependent: int
    unit_sd: Floats
    over_units: bool


@dataclass(frozen=True)
class MixedRegression:
    """A regression with random effects.

    Args:
        loglik: by the Laplace approximation, or where that is off summed over points.
        fixed: coefficients of the population, level by level after the first, (C, q).
        fixed_cov: their covariance, (C q, C q).
        D: covariance of the random effects: of utilities, or for counts of coefficients, (q, q).
        coef: coefficients of the data sets, at the modes, (F, C, q).
        coef_cov: their covariance, with what is uncertain of the population's, (F, C q, C q).
        rank: of D.
        separated: whether the likelihood has no maximum, and a weak prior took its place.
        converged: whether the search ended.
        theta: dispersion of negative binomial counts, variance mu + mu^2 / theta.
        n_params: free parameters.
        dependent: a column that is a combination of those before it, or -1.
        random_cov: covariance of the random effects of one coefficient, a difference of two
            utilities: 2D for levels (what glmer reports), D for counts, (q, q).
        summed: whether the log-likelihood is summed over points.
        noise: about how far such a sum is off.
        unit_sd: standard deviation of an intercept between units, as in `random_cov`; 0 without.
    """

    loglik: float
    fixed: Floats
    fixed_cov: Floats
    D: Floats
    coef: Floats
    coef_cov: Floats
    rank: int
    separated: bool
    converged: bool
    theta: float
    n_params: int
    dependent: int
    random_cov: Floats
    summed: bool
    noise: float
    unit_sd: float


@dataclass(frozen=True)
class Plain:
    """Regressions, in the columns of the computation; as in `Regression`."""

    loglik: Floats  # without constants
    T: Floats  # (J, d)
    W: Floats  # information, (J, d, d)
    separated: NDArray[np.bool_]
    converged: NDArray[np.bool_]
    theta: Floats  # (J,)
    tau: Floats  # of units, (J,)
    over_units: bool = False


@dataclass(frozen=True)
class Start:
    """Where a search starts: L with its columns in use, EM steps before it, and tau of units.

    Where tau is held, the search is for the other parameters.
    """

    L: Floats
    rank: int
    expectations: int = 0
    tau: float = 1.0
    held: bool = False


@dataclass(frozen=True)
class Found:
    """What the kernel leaves: in the columns of the computation."""

    objective: float  # what was minimised: minus the log-likelihood, and penalties
    loglik: float  # without constants
    B: Floats  # (d,)
    L: Floats  # (r, rank)
    T: Floats  # (F, d)
    W: Floats  # what rows tell, (F, d, d); with units W_0 of the kernel
    g: Floats  # scores, (F, d)
    information: Floats  # of B, (d, d), if the search made no step
    G: Floats
    slope: Floats
    log_theta: float
    tau: float  # standard deviation of utilities between units
    rank: int
    converged: bool
    steps: int
    ridge: tuple[float, float] = (0.0, 0.0)
    summed: bool = False  # over points, and not by the Laplace approximation
    noise: float = 0.0  # about how far such a sum is off
    over_units: bool = False  # whether intercepts of units are integrated numerically


class Problem:
    """One family in the columns of the computation.

    Of these the first r have coefficients that vary between data sets, if pooling is partial: all,
    or those of the columns after the intercept that `vary` names, (q - 1,), and the intercept.

    Example:
        >>> rows = Design(np.ones((3, 1)), np.array([0, 1, 1]), np.array([30.0, 10.0, 9.0]),
        ...               np.array([0, 2, 3]))
        >>> problem = Problem(rows, Response(levels=2))
        >>> problem.none().separated
        array([False,  True])
        >>> problem.partial().n_params
        2
    """

    def __init__(
        self, design: Design, response: Response, vary: NDArray[np.bool_] | None = None
    ) -> None:
        self.design, self.response = design, response
        names, p = kernels("glm"), design.X.shape[1]
        room = kernels("lanes").padded(np.diff(design.offsets))
        self.offsets = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)  # in the table
        self.C = response.predictors
        units, self.unit_rows = _paired(design), np.empty((0, 2), dtype=np.int64)
        self.paired = self.unit_rows[:, 0]  # where the rows of units that have two begin
        if units is not None:
            first = np.flatnonzero(np.diff(units, prepend=-1))
            several = np.add.reduceat(design.cases, first) > 1
            size = np.add.reduceat(design.X[:, 0] > 0, first, dtype=np.int64)  # no distances
            j = np.searchsorted(design.offsets, first, side="right") - 1
            first += (self.offsets[:-1] - design.offsets[:-1])[j]
            self.unit_rows = np.column_stack([first, first + size])[size > 0]
            self.paired = first[several]
        more = 0 if units is None else self.C + self.C**2  # of units, see `kernels.rows`
        whole = np.empty((p + 2 + 3 * self.C + more, self.offsets[-1]))
        X = np.ascontiguousarray(design.X.T)
        mean, S = np.empty(p), np.empty((p, p))
        names.lay_out(X, design.y, design.rows, design.offsets, self.offsets, np.eye(p), whole)
        names.describe(whole, mean, S)
        self.basis = Basis.of(mean[1:], S[1:, 1:], vary)
        self.q, self.r = self.basis.T.shape[1], self.basis.varying
        self.d, self.F = self.q * self.C, len(design.offsets) - 1
        self.table = whole[: self.q + 2 + 3 * self.C + more]
        rows = design.y, design.weight, design.offsets, self.offsets
        names.lay_out(X, *rows, self.basis.T, self.table)
        if more:
            self.table[-more:] = 0.0
        self.S = response.S
        self.A = np.asarray(np.linalg.cholesky(self.S))
        self.inverse = np.asarray(np.linalg.inv(self.S))
        self.dispersed = int(response.dispersed)

    @property
    def nested(self) -> bool:
        """Whether there are units whose variance rows tell of."""
        return len(self.unit_rows) > 0

    def pairs(self, offsets: Integers) -> NDArray[np.bool_]:
        """Whether units with two rows are in data sets with these rows in the table, (J,)."""
        return np.asarray(np.diff(np.searchsorted(self.paired, offsets)) > 0)

    @cached_property
    def constants(self) -> Floats:
        """What log-likelihoods of counts have beside their parameters, (F,)."""
        if self.response.has_levels:
            return np.zeros(self.F)
        values, at = np.unique(self.design.y, return_inverse=True)
        terms = np.array([math.lgamma(y + 1.0) for y in values.tolist()])
        sums = np.concatenate([[0.0], np.cumsum(self.design.weight * terms[at])])
        return -np.asarray(np.diff(sums[self.design.offsets]))

    @cached_property
    def centre(self) -> Floats:
        """Coefficients without parents, (d,): where a penalty is zero."""
        if self.design.thresholds:
            return np.asarray(np.linalg.pinv(self.basis.T) @ without_parents(self.design))
        centre = np.zeros((self.C, self.q))
        centre[:, 0] = self.response.centre(self.design.y, self.design.weight)
        return centre.ravel()

    @cached_property
    def pooled(self) -> Plain:
        """The regression of all rows; of negative binomial counts that of Poisson ones."""
        whole = self.offsets[[0, -1]]
        return self.regress(whole, self.centre)

    @cached_property
    def dispersion(self) -> float:
        """Log theta by moments, from the Poisson means."""
        *X, y, weight, means = self.table[: self.q + 3]
        np.exp(sum(t * x for t, x in zip(self.pooled.T[0].tolist(), X, strict=True)), out=means)
        squares, extra = weight @ means**2, weight @ ((y - means) ** 2 - means)
        return float(np.log(np.clip(squares / max(extra, 1e-9 * squares, 1e-300), 0.05, 1e3)))

    def regress(self, offsets: Integers, centre: Floats, *, held: bool = True) -> Plain:
        """Regressions of data sets; where there is no maximum with a penalty, or as they are."""
        J, q, d = len(offsets) - 1, self.q, self.d
        kernel = kernels("glm")
        family = int(Family.POISSON if self.dispersed else self.response.family)
        states, result = np.zeros((J, d + 2, d)), np.empty((J, 3))
        states[:, d] = centre
        work, lines = np.empty((4, d, d)), np.empty((3, d))
        centres, theta = np.empty((J, d)), np.ones(J)
        centres[:] = centre
        kernel.regress(
            family, self.table, q, self.C, offsets, centres, np.zeros(J), self.inverse, theta,
            states, result, work, lines,
        )  # fmt: skip
        separated = (result[:, 1] < _SEPARATED) | (result[:, 2] == 0.0)
        for j in np.flatnonzero(separated) if held else ():
            states[j, d] = centre
            kernel.regress(
                family, self.table, q, self.C, offsets[j : j + 2], centres[:1],
                np.array([_PRIOR_SD**-2.0]), self.inverse, theta[:1],
                states[j : j + 1], result[j : j + 1], work, lines,
            )  # fmt: skip
        return Plain(
            result[:, 0].copy(), states[:, d].copy(), states[:, :d], separated, result[:, 2] == 1.0,
            np.full(J, math.inf), np.zeros(J),
        )  # fmt: skip

    def largest(self) -> float:
        """An upper bound of the log-likelihood of no pooling of levels: of all data sets together.

        Where there is no maximum, it is what can be reached, but for what is added here; where the
        search for it did not end, certainty.
        """
        plain = self.regress(self.offsets, self.centre, held=False)
        most = np.where(plain.separated, np.minimum(plain.loglik + _REACHED, 0.0), plain.loglik)
        return float(np.where(plain.converged, most, 0.0).sum())

    def complete(self) -> Regression:
        """One regression of all rows."""
        return self.told(self._complete, self.constants.sum(keepdims=True))

    def none(self) -> Regression:
        """A regression for each data set; where it has no maximum, near that of all rows."""
        return self.told(self._none, self.constants)

    def complete_loglik(self) -> float:
        """That of `complete`, which costs less than all that it says."""
        return float((self._complete.loglik + self.constants.sum()).sum())

    def none_loglik(self) -> float:
        """That of `none`, likewise."""
        return float((self._none.loglik + self.constants).sum())

    @cached_property
    def _complete(self) -> Plain:
        return self.beyond(self.offsets[[0, -1]], self.pooled)

    @cached_property
    def _none(self) -> Plain:
        return self.beyond(self.offsets, self.regress(self.offsets, self.pooled.T[0]))

    def over_units(self, laplace: Found, offsets: Integers, most: int, *, final: bool) -> Found:
        """The maximum of the approximation, or where that is too high for units another one."""
        much = math.sqrt(self.S[0, 0]) * laplace.tau >= _MUCH
        if not much or laplace.ridge != FREE or self.C > MOST:
            return laplace
        if self.more(laplace, offsets) > -_TOO_HIGH:
            return laplace
        from scipy.optimize import minimize_scalar

        tried = [laplace]

        def minus(log_tau: float) -> float:
            near, L = tried[-1], np.zeros((self.q, self.q))
            L[:, : near.rank] = near.L
            start = Start(L, near.rank, tau=math.exp(log_tau), held=True)
            found = self.search(
                offsets, near.B, start, most=most, final=final, log_theta=near.log_theta, T=near.T
            )
            loglik = found.loglik + self.more(found, offsets)
            tried.append(replace(found, loglik=loglik, objective=-loglik, over_units=True))
            return -loglik

        ends = math.log(laplace.tau / _LEAST), math.log(laplace.tau)
        options = {"xatol": _EXACT[final], "maxiter": _VALUES}
        minimize_scalar(minus, bounds=ends, method="bounded", options=options)
        return min(tried[1:], key=lambda found: found.objective)

    def more(self, found: Found, offsets: Integers) -> float:
        """What integrals over units add to a Laplace approximation."""
        at = self.design.offsets[np.searchsorted(self.offsets, offsets)]
        own = slice(at[0], at[-1])
        X, y, weight, units = self.design.X, self.design.y, self.design.weight, self.design.units
        assert units is not None
        some = Design(X[own] @ self.basis.T, y[own], weight[own], at - at[0], units[own])
        theta = math.exp(found.log_theta) if self.dispersed else math.inf
        sd = np.full(len(at) - 1, math.sqrt(self.S[0, 0]) * found.tau)
        rows = Rows(some, self.response, theta, sd)
        return over_laplace(rows, found.T.reshape(len(sd), self.C, self.q))

    def told(self, plain: Plain, constants: Floats) -> Regression:
        """In the units of the data."""
        J, T = len(constants), self.basis.T
        return Regression(
            loglik=plain.loglik + constants,
            coef=plain.T.reshape(J, self.C, self.q) @ T.T,
            cov=self.back(np.linalg.pinv(plain.W, hermitian=True)),  # of what there is to know
            separated=plain.separated,
            converged=plain.converged,
            theta=plain.theta,
            n_params=J * (self.d + self.dispersed) + self.of_units(J),
            dependent=self.basis.dependent,
            unit_sd=math.sqrt(self.S[0, 0]) * plain.tau,
            over_units=plain.over_units,
        )

    def of_units(self, J: int) -> int:
        """Variances between units that regressions of all rows or of each data set have."""
        return int(np.count_nonzero(self.pairs(self.offsets))) if J > 1 else int(self.nested)

    def back(self, cov: NDArray[np.floating]) -> Floats:
        """Covariances of coefficients in the units of the data, (..., C q, C q)."""
        T = np.kron(np.eye(self.C), self.basis.T)
        return np.asarray(T @ cov @ T.T)

    def beyond(self, offsets: Integers, plain: Plain) -> Plain:
        """Negative binomial regressions from Poisson ones, and those with intercepts of units."""
        if not (self.dispersed or self.nested):
            return plain
        plain = replace(
            plain, loglik=plain.loglik.copy(), T=plain.T.copy(), W=plain.W.copy(),
            separated=plain.separated.copy(), converged=plain.converged.copy(),
            theta=plain.theta.copy(), tau=plain.tau.copy(),
        )  # fmt: skip
        nested = self.pairs(offsets) if self.nested else np.zeros(len(plain.loglik), dtype=bool)
        none = Start(np.zeros((self.q, self.q)), 0)
        for j in range(len(plain.loglik)):
            if not (self.dispersed or nested[j]):
                continue
            B, held = plain.T[j], HELD if nested[j] else (HELD[0], 0.0)
            ridge = held if plain.separated[j] else FREE
            found = self.search(offsets[j : j + 2], B, none, most=0, ridge=ridge, final=True)
            if nested[j] and ridge == FREE and self.suspect(found):
                found = self.search(offsets[j : j + 2], B, none, most=0, ridge=held, final=True)
                plain.separated[j] = True
            if nested[j]:
                found = self.over_units(found, offsets[j : j + 2], 0, final=True)
                plain = replace(plain, over_units=plain.over_units or found.over_units)
            plain.loglik[j], plain.T[j], plain.W[j] = found.loglik, found.B, found.W[0]
            plain.converged[j], plain.tau[j] = found.converged, found.tau
            if self.dispersed:
                plain.theta[j] = math.exp(found.log_theta)
        return plain

    def search(
        self,
        offsets: Integers,
        B: Floats,
        start: Start,
        *,
        most: int,
        ridge: tuple[float, float] = (0.0, 0.0),
        final: bool = False,
        steps: int = _STEPS,
        log_theta: float | None = None,
        T: Floats | None = None,
    ) -> Found:
        """Maximise from one start."""
        names, kernel = kernels("laplace"), kernels("quasinewton")
        J, q, C, d = len(offsets) - 1, self.q, self.C, self.d
        N = max(d + (q * (q + 1) // 2 if most else 0) + 2, names.LINES, 2 * C + 1)
        nested = self.nested and bool(self.pairs(offsets).any())
        unit_rows, owners, units = self.unit_rows[:0], offsets, _NO_UNITS
        if nested:
            owners = np.searchsorted(self.unit_rows[:, 0], offsets).astype(np.int64)
            unit_rows = self.unit_rows[owners[0] : owners[-1]]
            owners = owners - owners[0]
            units = np.zeros((2 * len(unit_rows), kernels("nested").width(C, d)))
        states, work, mats = (
            np.zeros((2 * J, d + 2 + d * nested, d)),
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
        if nested:
            lines[names.UNITS_, [names.TAU_, names.HELD_]] = start.tau, start.held
        value, outcome = np.empty(1), np.empty(4, dtype=np.int64)
        kernel.fit(
            int(self.response.family), q, self.r, C, self.table, offsets, states, units, unit_rows,
            owners, work, mats,
            np.zeros((2, q), dtype=np.int64), start.rank, most, start.expectations, steps,
            _TOLERANCE[final], value, outcome,
        )  # fmt: skip
        rank, side, converged, taken = outcome.tolist()
        L = mats[kernel.L_, :, :rank]
        B = lines[names.B_, :d]
        tau = abs(float(lines[names.UNITS_, names.TAU_]))
        added = self.penalties(B, L, ridge)[0] + 0.5 * ridge[1] * tau**2
        here = states[side * J : (side + 1) * J]
        information = work[names.METRIC_, :d, :d]
        return Found(
            objective=float(value[0]),
            loglik=added - float(value[0]),
            B=B,
            L=L,
            T=here[:, d],
            W=here[:, d + 2 :] if nested else here[:, :d],
            g=here[:, d + 1],
            information=np.tril(information) + np.tril(information, -1).T,
            G=mats[kernel.G_],
            slope=lines[names.SLOPE_],
            log_theta=float(lines[names.THETA_, 0]),
            tau=tau,
            rank=rank,
            converged=converged == 1,
            steps=taken,
        )

    def penalties(
        self, B: Floats, L: Floats, ridge: tuple[float, float]
    ) -> tuple[float, Floats, Floats]:
        """What a penalty takes off, and its slopes in B and L."""
        away = (B - self.centre).reshape(self.C, self.q)
        pull = ridge[0] * (self.inverse @ away)
        value = 0.5 * float(np.sum(away * pull)) + 0.5 * ridge[1] * float(np.sum(L * L))
        return value, pull.ravel(), ridge[1] * L

    def starts(self, final: bool) -> list[Start]:
        """The one start of a search, one EM step from D = I; for a final fit others too.

        These are no random effects, from which columns come one by one; little and much variation;
        and the moments of the data sets' own coefficients. Genuine second maxima exist. Of many
        rows only starts that are near the end soon.
        """
        r, eye = self.r, np.diag((np.arange(self.q) < self.r) * 1.0)
        first = Start(eye, r, 1)
        if not final:
            return [first]
        if self.design.weight.sum() * (self.d if self.nested else 1) > _MANY_ROWS:
            few = Start(eye * _START_SDS[0], r, tau=_START_SDS[0])
            return [first, few] if self.nested else [first, few, Start(self.moments(), r)]
        others = [Start(eye * sd, r, tau=sd) for sd in _START_SDS]
        return [first, Start(0.0 * eye, 0), *others, Start(self.moments(), r)]

    def moments(self) -> Floats:
        """A factor of the covariance of the data sets' own coefficients, (q, q)."""
        own = self.regress(self.offsets, self.pooled.T[0]).T.reshape(self.F, self.C, self.q)
        away = own - own.mean(axis=0)
        D = np.einsum("jka,kl,jlb->ab", away, self.inverse, away) / (self.F * self.C)
        values, vectors = np.linalg.eigh(D[: self.r, : self.r])
        L = np.zeros((self.q, self.q))
        L[: self.r, : self.r] = vectors * np.sqrt(np.maximum(values, 1e-4))
        return L

    @property
    def n_params(self) -> int:
        """Of partial pooling."""
        return int(self.d + self.r * (self.r + 1) // 2 + self.dispersed + self.nested)

    def climb(self, final: bool) -> Found:
        """The maximum of the Laplace approximation, with a penalty where there is none."""
        found = self.best(final, FREE)
        if not (self.pooled.separated[0] or self.suspect(found)):
            return found
        return replace(self.best(final, HELD), ridge=HELD)

    def best(self, final: bool, ridge: tuple[float, float]) -> Found:
        """The best of the searches."""
        B, offsets = self.pooled.T[0], self.offsets
        return min(
            (
                self.search(offsets, B, start, most=self.r, ridge=ridge, final=final)
                for start in self.starts(final)
            ),
            key=lambda found: found.objective,
        )

    def suspect(self, found: Found) -> bool:
        """Whether parameters went to infinity."""
        if not math.isfinite(found.loglik):
            return True
        spread = float(np.sqrt(np.sum(found.L**2) + found.tau**2))
        if spread > LARGE:
            return True
        if max(spread, float(np.abs(found.B - self.centre).max())) < _SUSPECT and found.converged:
            return False
        return float(np.linalg.eigvalsh(self.finish(found).information)[0]) < _SEPARATED

    def finish(self, found: Found) -> Found:
        """The same with its derivatives."""
        L = np.zeros((self.q, self.q))
        L[:, : found.rank] = found.L
        return self.search(
            self.offsets, found.B, Start(L, found.rank, tau=found.tau), most=self.r,
            ridge=found.ridge,
            steps=0, log_theta=found.log_theta, T=found.T,
        )  # fmt: skip

    def partial(self) -> MixedRegression:
        """By the Laplace approximation, from several starts; see `marginal` for other ways."""
        return self.mixed(self.climb(final=True))

    def mixed(self, found: Found) -> MixedRegression:
        """What was found, in the units of the data."""
        F, C, q, T = self.F, self.C, self.q, self.basis.T
        D = T @ found.L @ found.L.T @ T.T
        Z = np.kron(self.A, found.L)
        M = np.eye(Z.shape[1]) + Z.T @ found.W @ Z
        conditional = Z @ np.linalg.solve(M, np.broadcast_to(Z.T, (F, *Z.T.shape)))
        fixed_cov = np.linalg.inv(self.finish(found).information)
        follows = np.eye(self.d) - conditional @ found.W  # what an error of the population does
        total = conditional + follows @ fixed_cov @ np.swapaxes(follows, 1, 2)
        return MixedRegression(
            loglik=found.loglik + float(self.constants.sum()),
            fixed=found.B.reshape(C, q) @ T.T,
            fixed_cov=self.back(fixed_cov),
            D=D,
            coef=found.T.reshape(F, C, q) @ T.T,
            coef_cov=self.back(total),
            rank=found.rank,
            separated=found.ridge != FREE,
            converged=found.converged,
            theta=math.exp(found.log_theta) if self.dispersed else math.inf,
            n_params=self.n_params,
            dependent=self.basis.dependent,
            random_cov=self.S[0, 0] * D,
            summed=found.summed,
            noise=found.noise,
            unit_sd=math.sqrt(self.S[0, 0]) * found.tau,
        )


def _paired(design: Design) -> Integers | None:
    """Units, if some has two rows: else rows cannot tell units from chance."""
    if design.units is None or not (np.bincount(design.units, design.cases) > 1).any():
        return None
    return design.units
