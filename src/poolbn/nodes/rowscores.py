"""Derivatives of the likelihoods of regressions in each data set, and score tests with them.

Which parents more a discrete node or a count may want is asked of its fit as it is (`Step`). With
random effects, data set j has coefficients t_j of the columns x so far; with V_j their covariance
given its rows, new columns z have the scores s_j and, in data set j, the information

    I_j = z'Wz - z'Wx V_j x'Wz.

Where their coefficients are N(b, R) in the data sets, log-likelihoods rise, to second order, by

    sum_j s_j'b - b'I_j b / 2 - log|1 + R I_j| / 2
          + (s_j - I_j b)'(R^-1 + I_j)^-1 (s_j - I_j b) / 2,

which has its maximum over b in closed form, and over R = tau^2 S on a grid. No row is fitted again.

These are no bounds: of 408 columns that raise the score, among 1,458 of families of simulated
tables, none would be left out, and half of the others, see `benchmarks/candidates.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.data import Data, numbers
from poolbn.nodes.design import Basis, Design, Floats, Integers
from poolbn.nodes.glmm import FREE, Found
from poolbn.nodes.links import Response
from poolbn.nodes.unitmodes import Rows, UnitModes

_STEPS = 30
_HALVINGS = 8
_GAIN = 1e-8  # of a log-likelihood, below which a search ends
_TO_A_MODE, _SHORTER, _AT_A_MODE = 100, 30, 1e-12  # the same of one data set's coefficients
_INFORMED = 1e-4  # information in a direction of variance one: less than any row has
_SDS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # of random effects of standardised columns
_MORE = 1.5  # what a fit may gain, over what the test does
_EACH = 1.0  # and for each covariance of a new random effect with others


class Scores(NamedTuple):
    """At some coefficients of each data set, those of one level after those of another; d = C q.

    Units inside data sets follow: their intercepts are at the modes, and what they take is not in
    the information. The log-likelihood is that of rows minus w'S^-1 w / 2.

    Attributes:
        loglik: without constants, (F,).
        gradient: of the log-likelihood, (F, d).
        information: minus its expected second derivatives, (F, d, d).
    """

    loglik: Floats
    gradient: Floats
    information: Floats


class Equal(NamedTuple):
    """A test that effects are the same in all data sets; NaN where rows give none."""

    statistic: float = math.nan
    df: float = math.nan


def scores(rows: Rows, coef: Floats) -> Scores:
    """The derivatives at coefficients (F, C, q).

    Examples:
        >>> design = Design(np.ones((2, 1)), np.array([0, 1]), np.array([30.0, 10.0]),
        ...                 np.array([0, 2]))
        >>> found = scores(Rows(design, Response(levels=2)), np.zeros((1, 1, 1)))
        >>> found.gradient.tolist(), found.information.tolist()
        ([[-10.0]], [[[10.0]]])
    """
    design = rows.design
    F, C, q = coef.shape
    loglik, gradient = np.zeros(F), np.zeros((F, C, q))
    information = np.zeros((F, C, q, C, q))
    units = None
    if design.units is not None and rows.unit_sd is not None and len(design.y):
        units = UnitModes.of(rows, coef)
        np.add.at(loglik, units.data_set, units.terms)
    for j in range(F):
        at = slice(design.offsets[j], design.offsets[j + 1])
        X, weight = design.X[at], design.weight[at]
        predictor = X @ coef[j].T
        if units is not None:
            predictor = units.added_to(predictor, at)
        terms, residual, spread = rows.derivatives(predictor, at)
        loglik[j] = weight @ terms if units is None else loglik[j]
        gradient[j] = (weight[:, None] * residual).T @ X
        for a in range(C):
            for b in range(a + 1):
                block = (X * (weight * spread[:, a, b])[:, None]).T @ X
                information[j, a, :, b] = information[j, b, :, a] = block
    if units is not None:
        own = units.summed(design.X)
        information -= units.taken(own, own, F)
    return Scores(loglik, gradient.reshape(F, C * q), information.reshape(F, C * q, C * q))


def equal_effects(rows: Rows, columns: Sequence[int]) -> Equal:
    """Rao's score test that the coefficients of some columns are the same in all data sets.

    All other coefficients are those of each data set. At the maximum with equal coefficients,
    data set j has the gradient g_j of these, with the information I_j that is left of them when
    the others are estimated: the statistic is sum g_j'I_j^-1 g_j. Unlike a test from the data sets'
    own estimates it needs none, so a data set in which they do not exist does no harm.
    """
    design, C = rows.design, rows.response.predictors
    others = [k for k in range(design.X.shape[1]) if k not in columns]
    basis = Basis.of_rows(design.X[:, [*others, *columns]], design.weight).T
    # Each column of the basis is of one column of X and those before it.
    last = len(basis) - 1 - (basis[::-1] != 0).argmax(axis=0)
    r = basis.shape[1]
    common = np.tile(last >= len(others), C)
    turned = rows.turned(design.X[:, [*others, *columns]] @ basis)
    theta = np.zeros((len(design.offsets) - 1, C * r))
    theta[:, ::r] = rows.response.centre(design.y, design.weight)
    g, information = _left(_maximum(turned, theta.reshape(-1, C, r), common)[0], common)
    inverse, rank = _inverse(information)
    df = int(rank.sum() - _inverse(information.sum(axis=0))[1])
    if df < 1:
        return Equal()
    return Equal(float(np.einsum("ja,jab,jb->", g, inverse, g)), float(df))


def common_columns(rows: Rows, coef: Floats, common: NDArray[np.bool_], more: Floats) -> Equal:
    """Rao's score test of columns more, whose coefficients are the same in all data sets.

    Args:
        rows: with one linear predictor.
        coef: coefficients to start from, (F, 1, q).
        common: which of these are the same in all data sets, (q,).
        more: the columns that are tested, (m, k).
    """
    k = more.shape[1]
    _, at = _maximum(rows, coef, common)
    wider = rows.turned(np.hstack([rows.design.X, more]))
    now = scores(wider, np.concatenate([at, np.zeros((len(at), 1, k))], axis=2))
    tested = np.append(common, np.ones(k, dtype=bool))
    g, information = (each.sum(axis=0) for each in _left(now, tested))
    inverse, rank = _inverse(information)
    known = int(common.sum())
    df = int(rank) - int(_inverse(information[:known, :known])[1])
    return Equal(float(g @ inverse @ g), float(df)) if df > 0 else Equal()


def _maximum(rows: Rows, theta: Floats, common: NDArray[np.bool_]) -> tuple[Scores, Floats]:
    """At the maximum with common coefficients, by Newton's method from (F, C, q), and these."""
    now = scores(rows, theta)
    for _ in range(_STEPS):
        step, before = _step(now, common).reshape(theta.shape), now.loglik.sum()
        for _ in range(_HALVINGS):
            now = scores(rows, theta + step)
            if now.loglik.sum() >= before - _GAIN:
                break
            step = step / 2
        theta = theta + step
        if now.loglik.sum() < before + _GAIN:
            break
    return now, theta


def mode(rows: Rows, fixed: Floats, fixed_cov: Floats, R: Floats) -> tuple[Floats, Floats]:
    """Coefficients of one data set under N(fixed, R) given its rows, (C, q), and a covariance.

    As b = Zu with ZZ' = R and u of variance one, so that R need not have an inverse. The
    covariance is (R^-1 + W)^-1 with the information W there, and what errors of `fixed` do.
    """
    value, vector = np.linalg.eigh(R)
    Z = vector * np.sqrt(np.maximum(value, 0.0))
    d = len(Z)

    def at(u: Floats) -> tuple[float, Floats, Floats]:
        found = scores(rows, fixed[None] + (Z @ u).reshape(1, *fixed.shape))
        return float(found.loglik[0] - u @ u / 2), found.gradient[0], found.information[0]

    u = np.zeros(d)
    now = at(u)
    for _ in range(_TO_A_MODE):
        H = np.eye(d) + Z.T @ now[2] @ Z
        step, before = np.linalg.solve(H, Z.T @ now[1] - u), now[0]
        for _ in range(_SHORTER):
            now = at(u + step)
            if now[0] >= before - _AT_A_MODE:
                break
            step = step / 2
        u = u + step
        if now[0] < before + _AT_A_MODE * max(1.0, abs(before)):
            break
    W = now[2]
    conditional = Z @ np.linalg.solve(np.eye(d) + Z.T @ W @ Z, Z.T)
    follows = np.eye(d) - conditional @ W
    cov = conditional + follows @ fixed_cov @ follows.T
    return fixed + (Z @ u).reshape(fixed.shape), cov


def _inverse(information: Floats) -> tuple[Floats, Integers]:
    """Inverses of what rows tell of, and their ranks; (..., d, d) and (...,)."""
    value, vector = np.linalg.eigh(information)
    known = value > _INFORMED
    inverse = np.divide(1.0, value, out=np.zeros_like(value), where=known)
    return (vector * inverse[..., None, :]) @ np.swapaxes(vector, -1, -2), known.sum(axis=-1)


def _left(now: Scores, common: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Gradients and information of the common coefficients, others estimated in each data set."""
    H = now.information
    across = H[:, common][:, :, ~common] @ _inverse(H[:, ~common][:, :, ~common])[0]
    g = now.gradient[:, common] - np.einsum("jab,jb->ja", across, now.gradient[:, ~common])
    return g, H[:, common][:, :, common] - across @ H[:, ~common][:, :, common]


def _step(now: Scores, common: NDArray[np.bool_]) -> Floats:
    """Newton's step, (F, d)."""
    g, information = _left(now, common)
    step = np.zeros_like(now.gradient)
    step[:, common] = _inverse(information.sum(axis=0))[0] @ g.sum(axis=0)
    H = now.information[:, ~common]
    rest = now.gradient[:, ~common] - np.einsum("jab,jb->ja", H[:, :, common], step[:, common])
    step[:, ~common] = np.einsum("jab,jb->ja", _inverse(H[:, :, ~common])[0], rest)
    return step


@dataclass(frozen=True, eq=False)
class Fitted:
    """A family that was fitted in a search.

    Attributes:
        basis: of its columns.
        found: the maximum.
        response: what kind of child it has.
        score: log-likelihood minus penalty.
    """

    basis: Basis
    found: Found
    response: Response
    score: float

    @property
    def tells(self) -> bool:
        """Whether steps from it can be trusted: it has a maximum, and data sets have many rows."""
        return self.found.ridge == FREE and not self.found.summed and bool(self.found.converged)


class Step:
    """What columns more would gain, from the fit of a family as it is."""

    def __init__(self, data: Data, child: str, parents: Sequence[str], at: Fitted) -> None:
        cases = data.cases([child])
        F, n = len(data.levels), int(cases.offsets[-1])
        self.data, self.sets = data, cases.data_set
        self.starts = cases.offsets[:-1]
        self.order: Integers | slice = slice(None)
        if cases.units is not None:  # one after the other, in the order of data sets
            self.order = np.argsort(cases.units, kind="stable")
        self.weight = np.ones(n) if cases.n is None else cases.n.astype(np.float64)[self.order]
        _, X = numbers(data, parents)
        self.X = np.vstack([np.ones(n), X]).T[self.order] @ at.basis.T
        found, q = at.found, self.X.shape[1]
        self.C = at.response.predictors
        self.S = at.response.S
        t = found.T.reshape(F, self.C, q)
        y = cases.columns[0].astype(np.int64)[self.order]
        theta = math.exp(found.log_theta) if at.response.dispersed else math.inf
        design = Design(self.X, y, self.weight, cases.offsets)
        self.units = None
        if cases.units is not None and found.tau > 0:
            sd = np.full(F, math.sqrt(self.S[0, 0]) * found.tau)
            design = replace(design, units=cases.units[self.order])
            self.units = UnitModes.of(Rows(design, at.response, theta, sd), t)
            self.residual, self.spread = self.units.residual, self.units.spread
            self.of_units = self.units.summed(self.X)
        else:
            predictor = np.einsum("na,nka->nk", self.X, t[self.sets])
            _, residual, spread = Rows(design, at.response, theta).derivatives(predictor)
            self.residual = residual * self.weight[:, None]
            self.spread = spread * self.weight[:, None, None]
        Z = np.kron(np.linalg.cholesky(self.S), found.L)
        M = np.eye(Z.shape[1]) + Z.T @ found.W @ Z
        self.V = Z @ np.linalg.solve(M, np.broadcast_to(Z.T, (F, *Z.T.shape)))
        self.W = found.W
        self.P = (found.W - found.W @ self.V @ found.W).sum(axis=0)

    def gain(self, name: str, *, varies: bool) -> float:
        """Of the log-likelihood, by one more parent whose coefficients vary or do not."""
        _, columns = numbers(self.data, [name])
        columns = columns[:, self.order]
        z = columns.T - np.average(columns, axis=1, weights=self.weight)
        scatter = (z * self.weight[:, None]).T @ z / self.weight.sum()
        value, vector = np.linalg.eigh(scatter) if len(scatter) else (np.ones(0), scatter)
        kept = value > 1e-10 * max(float(value.max(initial=0.0)), 1e-300)
        z = z @ (vector[:, kept] / np.sqrt(value[kept]))
        k, C, F = z.shape[1], self.C, len(self.starts)
        if not k:
            return 0.0
        s = self._sums((self.residual[:, :, None] * z[:, None, :]).reshape(len(z), C * k))
        info, cross = np.empty((F, C, k, C, k)), np.empty((F, C, k, C, self.X.shape[1]))
        for a in range(C):
            for b in range(C):
                weighted = z * self.spread[:, a, b][:, None]
                info[:, a, :, b] = self._products(weighted, z)
                cross[:, a, :, b] = self._products(weighted, self.X)
        if self.units is not None:
            of_units = self.units.summed(z)
            info -= self.units.taken(of_units, of_units, F)
            cross -= self.units.taken(of_units, self.of_units, F)
        own = info.reshape(F, C * k, C * k)
        with_x = cross.reshape(F, C * k, -1)
        I = own - with_x @ self.V @ np.swapaxes(with_x, 1, 2)  # noqa: E741
        common = (with_x - with_x @ self.V @ self.W).sum(axis=0)
        taken = common @ np.linalg.solve(self.P, common.T)
        best = 0.0
        for sd in _SDS if varies else _SDS[:1]:
            R = sd**2 * np.kron(self.S, np.eye(k))
            one = np.eye(C * k)
            turn = one + R @ I
            H = np.linalg.solve(turn, np.broadcast_to(R, I.shape))
            keep = one - I @ H
            c = np.einsum("jab,jb->a", keep, s)
            Q = (keep @ I).sum(axis=0) - taken
            around = 0.5 * np.einsum("ja,jab,jb->", s, H, s)
            spread = 0.5 * float(np.linalg.slogdet(turn)[1].sum())
            fixed = 0.5 * float(c @ np.linalg.lstsq(Q, c, rcond=1e-10)[0])
            best = max(best, fixed + float(around) - spread)
        return best

    def _sums(self, values: Floats) -> Floats:
        """Over the rows of each data set, (n, m) -> (F, m)."""
        sums = [np.bincount(self.sets, column, len(self.starts)) for column in values.T]
        return np.array(sums, dtype=np.float64).T

    def _products(self, a: Floats, b: Floats) -> Floats:
        """Sums of products of rows, (n, k) and (n, m) -> (F, k, m)."""
        found = np.empty((len(self.starts), a.shape[1], b.shape[1]))
        ends = np.append(self.starts[1:], len(a))
        for j, (first, last) in enumerate(zip(self.starts.tolist(), ends.tolist(), strict=True)):
            found[j] = a[first:last].T @ b[first:last]
        return found


def is_hopeless(gain: float, charge: float, covariances: int) -> bool:
    """Whether a column would lower the score, as far as the test can tell."""
    return _MORE * gain + _EACH * covariances < charge
