"""Rows that networks were not learned from: densities, and each cell given all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolbn.arrays import Flags, Floats, Integers, Positions
from poolbn.inference.assembled import LinearNetwork
from poolbn.moments.data import Data


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows as the network of other rows knows them."""

    # The cells, (n, N); NaN where missing. Where a level is not known there is the most common one.
    x: Floats
    strange: Flags  # the cells whose level is not known, (n, N)

    @property
    def whole(self) -> Positions:
        """The rows without missing cells."""
        return np.flatnonzero(~np.isnan(self.x).any(axis=1))

    def some(self, rows: Positions) -> HeldOut:
        """Some of the rows."""
        return HeldOut(self.x[rows], self.strange[rows])


def held_out(train: Data, categories: tuple[tuple[str, ...], ...], values: Floats) -> HeldOut:
    """Rows, (n, N), coded by these levels, in the codes of a table that may lack some of them."""
    x, strange = values.copy(), np.zeros(values.shape, dtype=bool)
    for i, (own, every) in enumerate(zip(train.categories, categories, strict=True)):
        if own != every:
            code = {level: k for k, level in enumerate(own)}
            known = np.array([code.get(level, -1) for level in every])
            there = ~np.isnan(values[:, i])
            x[there, i] = known[values[there, i].astype(np.int64)]
            strange[:, i] = x[:, i] < 0
            x[strange[:, i], i] = _counted(
                train.cases([train.names[i]], incomplete=True).columns[0]
            ).argmax()
    return HeldOut(x, strange)


def _counted(codes: Floats) -> Integers:
    """How often levels occur in a column."""
    return np.bincount(codes[~np.isnan(codes)].astype(np.int64))


# Linear networks


@dataclass(frozen=True, eq=False)
class LeaveOut:
    """Of linear networks, posterior means of every cell given the rest of its row."""

    known: Floats  # with the row's data set known, (n, N)
    unknown: Floats  # with it unknown, (n, N)
    data_set: Integers  # the position of the most probable one given all cells, (n,)


def leave_out(linear: LinearNetwork, prior: Floats, values: Floats, codes: Integers) -> LeaveOut:
    """Predict each cell from the rest of its row, in closed form, estimates taken for certain.

    With residuals e = (I - B) x - intercepts of variances s, the precision matrix of a data set is
    Lambda = (I - B)' diag(1 / s) (I - B), and x_i less its prediction is g_i / Lambda_ii, g = (I -
    B)' (e / s). Nothing is inverted. P(F | the rest) comes from the density of the whole row over
    that of x_i given the rest.

    Rows have no missing values, (n, N); residual variances are positive, and no data set is
    adapted.
    """
    n, N = values.shape
    F = len(prior)
    known = np.empty((n, N))
    miss = np.empty((F, n, N))  # cell less prediction
    loglik = np.empty((F, n))
    log_weight = np.empty((F, n, N))
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    for j in range(F):
        B = np.eye(N) - linear.slopes[j]  # I - B
        center, s = linear.intercept[j], linear.sigma2[j]
        e = values @ B.T - center
        precision = (B**2 / s[:, None]).sum(axis=0)  # diagonal of Lambda
        miss[j] = (e / s) @ B / precision
        loglik[j] = log_prior[j] - 0.5 * ((e**2 / s) + np.log(s)).sum(axis=1)
        given_rest = 0.5 * (np.log(precision) - precision * miss[j] ** 2)
        log_weight[j] = loglik[j][:, None] - given_rest
        of_j = codes == j
        known[of_j] = values[of_j] - miss[j][of_j]
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    unknown = values - (weight * miss).sum(axis=0)
    return LeaveOut(known, unknown, loglik.argmax(axis=0))
