"""Which parents more a discrete node or a count may want: score tests from its fit as it is.

With random effects, data set j has coefficients t_j of the columns x so far; with V_j their
covariance given its rows, new columns z have the scores s_j and, in data set j, the information

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
from dataclasses import dataclass

import numpy as np

from poolbn.moments.data import Data, numbers
from poolbn.nodes.design import Basis, Design, Family, Floats, Response
from poolbn.nodes.glmm import FREE, Found
from poolbn.nodes.rowscores import Rows, rows_at

_SDS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # of random effects of standardised columns
_MORE = 1.5  # what a fit may gain, over what the test does
_EACH = 1.0  # and for each covariance of a new random effect with others


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
        self.weight = np.ones(n) if cases.n is None else cases.n.astype(np.float64)
        _, X = numbers(data, parents)
        self.X = np.vstack([np.ones(n), X]).T @ at.basis.T
        found, q = at.found, self.X.shape[1]
        self.C = at.response.predictors
        t = found.T.reshape(F, self.C, q)
        predictor = np.einsum("na,nka->nk", self.X, t[self.sets])
        dispersed = at.response.family is Family.NEGATIVE_BINOMIAL
        design = Design(self.X, cases.columns[0].astype(np.int64), self.weight, cases.offsets)
        rows = Rows(design, at.response, math.exp(found.log_theta) if dispersed else math.inf)
        _, residual, spread = rows_at(rows, predictor)
        self.residual = residual * self.weight[:, None]
        self.spread = spread * self.weight[:, None, None]
        counts = at.response.family != Family.LOGIT
        self.S = np.eye(self.C) + (not counts)
        Z = np.kron(np.linalg.cholesky(self.S), found.L)
        M = np.eye(Z.shape[1]) + Z.T @ found.W @ Z
        self.V = Z @ np.linalg.solve(M, np.broadcast_to(Z.T, (F, *Z.T.shape)))
        self.W = found.W
        self.P = (found.W - found.W @ self.V @ found.W).sum(axis=0)

    def gain(self, name: str, *, varies: bool) -> float:
        """Of the log-likelihood, by one more parent whose coefficients vary or do not."""
        _, columns = numbers(self.data, [name])
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
