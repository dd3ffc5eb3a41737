"""Intercepts of units inside data sets: where they are most probable, and integrals over them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from poolbn.nodes.design import Design, Floats, Integers
from poolbn.nodes.links import Response

_UNIT_STEPS, _UNIT_HALVINGS = 60, 40  # to the modes of units
_SURE = 1e-13  # of what a step to these gains
_POINTS = {1: 31, 2: 9, 3: 5}  # in each dimension
MOST = max(_POINTS)  # linear predictors


@dataclass(frozen=True)
class Rows:
    """Rows of a family, what kind of child it has, and its dispersion where it has one.

    With units inside data sets `unit_sd` is the standard deviation of an intercept between them,
    (F,); None where rows are independent. Rows without an intercept, those about distances, have
    none of their unit's. An `offset` is added to the predictor of each row, (m,).
    """

    design: Design
    response: Response
    dispersion: float = math.inf
    unit_sd: Floats | None = None
    offset: Floats | None = None

    def turned(self, X: Floats) -> Rows:
        """The same with other columns."""
        return replace(self, design=replace(self.design, X=X))

    def derivatives(
        self, predictor: Floats, at: slice = slice(None)
    ) -> tuple[Floats, Floats, Floats]:
        """Of some of the rows, at predictors (m, C); see `Response.derivatives`."""
        if self.offset is not None:
            predictor = predictor + self.offset[at, None]
        return self.response.derivatives(predictor, self.design.y[at], self.dispersion)


@dataclass(frozen=True, eq=False)
class UnitModes:
    """Intercepts of units at their modes, given coefficients of data sets.

    Attributes:
        w: the intercepts, (U, C).
        first: where the rows of units begin, (U,).
        of_row: the unit of each row, (m,).
        data_set: of each unit, (U,).
        Q: their covariances given their rows, (U, C, C).
        terms: log-likelihoods of their rows minus w'S^-1 w / 2, (U,).
        residual: weighted slopes of rows, (m, C).
        spread: weighted curvatures of rows, (m, C, C).
        one: whether rows have an intercept, 0 or 1, (m,).
    """

    w: Floats
    first: Integers
    of_row: Integers
    data_set: Integers
    Q: Floats
    terms: Floats
    residual: Floats
    spread: Floats
    one: Floats

    @staticmethod
    def of(rows: Rows, coef: Floats) -> UnitModes:
        """By Newton's method from 0, at coefficients (F, C, q)."""
        design, S = rows.design, rows.response.S
        assert design.units is not None
        assert rows.unit_sd is not None
        first = np.flatnonzero(np.diff(design.units, prepend=-1))
        of_row = np.cumsum(np.diff(design.units, prepend=-1) != 0) - 1
        sets = np.repeat(np.arange(len(coef)), np.diff(design.offsets))
        fixed = np.einsum("ma,mka->mk", design.X, coef[sets])
        R = rows.unit_sd[sets[first], None, None] * np.linalg.cholesky(S / S[0, 0])
        v, weight, one = np.zeros(R.shape[:2]), design.weight, design.X[:, 0]

        def at(v: Floats) -> tuple[Floats, ...]:
            w = np.einsum("uab,ub->ua", R, v)
            found, slope, spread = rows.derivatives(fixed + one[:, None] * w[of_row])
            terms = np.add.reduceat(weight * found, first) - 0.5 * (v**2).sum(axis=1)
            return w, terms, weight[:, None] * slope, weight[:, None, None] * spread

        def summed(values: Floats) -> Floats:
            return np.add.reduceat((values.T * one).T, first)

        now = at(v)
        for _ in range(_UNIT_STEPS):
            g = np.einsum("uba,ub->ua", R, summed(now[2])) - v
            H = np.swapaxes(R, 1, 2) @ summed(now[3]) @ R + np.eye(R.shape[1])
            step = np.linalg.solve(H, g[:, :, None])[:, :, 0]
            if float(np.max(np.sum(step * g, axis=1), initial=0.0)) < _SURE:
                break
            for _ in range(_UNIT_HALVINGS):
                new = at(v + step)
                worse = ~(new[1] >= now[1] - _SURE * (1.0 + np.abs(now[1])))
                if not worse.any():
                    break
                step[worse] /= 2
            v, now = v + step, new
        w, terms, residual, spread = now
        H = np.swapaxes(R, 1, 2) @ summed(spread) @ R + np.eye(R.shape[1])
        Q = R @ np.linalg.solve(H, np.swapaxes(R, 1, 2))
        return UnitModes(w, first, of_row, sets[first], Q, terms, residual, spread, one)

    def summed(self, x: Floats) -> Floats:
        """Sums of spread times columns x (m, k) over the rows of units, (U, C, C, k)."""
        x = self.one[:, None] * x
        return np.add.reduceat(self.spread[..., None] * x[:, None, None, :], self.first)

    def added_to(self, predictor: Floats, at: slice = slice(None)) -> Floats:
        """Predictors (m, C) of some rows with the intercepts of their units."""
        return np.asarray(predictor + self.one[at, None] * self.w[self.of_row[at]])

    def taken(self, x: Floats, y: Floats, F: int) -> Floats:
        """What units take of the information of columns, by `summed`; (F, C, k, C, m)."""
        of_units = np.einsum("uacx,ucd,ubdy->uaxby", x, self.Q, y)
        found = np.zeros((F, *of_units.shape[1:]))
        np.add.at(found, self.data_set, of_units)
        return found


def over_laplace(rows: Rows, coef: Floats) -> float:
    """The log-likelihood over its Laplace approximation for units, at coefficients (F, C, q).

    By Gauss and Hermite's points around the modes.

    Examples:
        >>> y = np.array([0, 1, 0, 1, 1, 1])
        >>> design = Design(np.ones((6, 1)), y, np.ones(6), np.array([0, 6]), np.arange(6) // 2)
        >>> rows = Rows(design, Response(levels=2), unit_sd=np.array([2.0]))
        >>> round(over_laplace(rows, np.zeros((1, 1, 1))), 3)
        0.122
    """
    modes = UnitModes.of(rows, coef)
    terms, _ = _around(rows, coef, modes)
    top = terms.max(axis=1)
    logs = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return float((logs - modes.terms).sum())


def known(rows: Rows, coef: Floats) -> tuple[UnitModes, Floats, Floats]:
    """Modes of units, and means (U, C) and covariances (U, C, C) given their rows.

    By the same points; with more linear predictors than `MOST` those of the Laplace approximation.

    Examples:
        >>> y = np.array([1, 1, 1, 0])
        >>> design = Design(np.ones((4, 1)), y, np.ones(4), np.array([0, 4]), np.arange(4) // 3)
        >>> rows = Rows(design, Response(levels=2), unit_sd=np.array([1.0]))
        >>> known(rows, np.zeros((1, 1, 1)))[1].round(3).ravel()
        array([ 0.923, -0.413])
    """
    modes = UnitModes.of(rows, coef)
    if coef.shape[1] > MOST:
        return modes, modes.w, modes.Q
    terms, w = _around(rows, coef, modes)
    weight = np.exp(terms - terms.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = np.einsum("uk,uka->ua", weight, w)
    away = w - mean[:, None]
    return modes, mean, np.einsum("uk,uka,ukb->uab", weight, away, away)


def _around(rows: Rows, coef: Floats, modes: UnitModes) -> tuple[Floats, Floats]:
    """Gauss and Hermite's points around modes, (U, k, C), and the logs of their terms, (U, k)."""
    design, S = rows.design, rows.response.S
    assert rows.unit_sd is not None
    sets = np.repeat(np.arange(len(coef)), np.diff(design.offsets))
    fixed = np.einsum("ma,mka->mk", design.X, coef[sets])
    inverse = np.linalg.inv(S / S[0, 0]) / rows.unit_sd[modes.data_set, None, None] ** 2
    root = np.linalg.cholesky(modes.Q)  # of the normal distribution around each mode
    points, weights = _points(S.shape[0])
    terms, at = np.empty((len(modes.w), len(points))), np.empty((len(modes.w), *points.shape))
    for k, z in enumerate(points):
        w = at[:, k] = modes.w + root @ z
        seen = rows.derivatives(replace(modes, w=w).added_to(fixed))[0]
        prior = 0.5 * np.einsum("ua,uab,ub->u", w, inverse, w)
        own = np.add.reduceat(design.weight * seen, modes.first)
        terms[:, k] = own - prior + 0.5 * float(z @ z) + math.log(weights[k])
    return terms, at


def _points(C: int) -> tuple[Floats, Floats]:
    """Points of a standard normal distribution, (k, C), and their weights, (k,)."""
    z, weight = np.polynomial.hermite_e.hermegauss(_POINTS[C])
    at = list(itertools.product(range(len(z)), repeat=C))
    return z[at], (weight / weight.sum())[at].prod(axis=1)
