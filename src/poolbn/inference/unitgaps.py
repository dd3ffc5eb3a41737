"""Missing cells of rows in units: continuous columns, whose levels differ between units.

Row r of unit u in data set j is x_r = mu_j + b_u + e_r, with b_u normal with covariance G_j = L L',
and e_r with W_j. For a network these are what its nodes say: with x = a + B x + c_u + d_r for each
data set, c and d independent with the variances of nodes between units and between rows, b_u is
(I - B)^-1 c_u and e_r is (I - B)^-1 d_r.

Given b_u, rows are independent. With M_r the inverse of W in the columns that row r has, and 0 in
others, and v_r = M_r (x_r - mu), the b_u = L z_u have

    z_u | cells ~ normal with precision P_u = I + L' sum_r M_r L and mean P_u^-1 L' sum_r v_r,

and x_r - mu = W v_r + (I - W M_r) b_u + f_r, with f_r of covariance W - W M_r W: 0 in cells that
are there. So draws of missing cells are exact, and no matrix is larger than there are columns.

A column that describes units has the same value in all their rows: no e_r. What a unit or a data
set says of such a column elsewhere is filled in as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.constants import CONSTANT_TOLERANCE
from poolbn.inference.locals import Local

_TINY = 1e-8  # the least variance inside units that rows are weighed by, of a column's variance
_LENT = 2.0  # rows that a data set is lent to begin with
_STEPS = 50
_AT_ONCE = 4096  # units


class TwoLevels(NamedTuple):
    """What columns are like in each of F data sets."""

    mean: Floats  # (F, N)
    within: Floats  # covariances inside units, (F, N, N)
    root: Floats  # of covariances between units: G = L L', (F, N, N)


class _Given(NamedTuple):
    """What the cells that are there say of others, by pattern and data set: P of them."""

    which: Integers  # the pattern of each row, (n,)
    data_set: Integers  # of each pattern, (P,)
    weight: Floats  # M, (P, N, N)
    within: Floats  # W, (P, N, N)
    noise: Floats  # a root of the covariance of what is not known of cells, (P, N, N)

    @property
    def rows(self) -> list[Integers]:
        """Those of each pattern."""
        order = np.argsort(self.which, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.which, minlength=len(self.weight)))[:-1])

    def times(self, matrices: Floats, vectors: Floats) -> Floats:
        """Those of patterns (P, N, N) times vectors of rows, (..., n, N)."""
        made = np.empty_like(vectors)
        for matrix, at in zip(matrices, self.rows, strict=True):
            made[..., at, :] = vectors[..., at, :] @ matrix.T
        return made


@dataclass(frozen=True, eq=False)
class UnitGaps:
    """Rows of units of which some lack cells.

    Attributes:
        values: NaN where a cell is missing, (n, N).
        data_set: of each row, (n,).
        unit: likewise, 0, 1, ..., U - 1.
        data_sets: how many there are, F.
    """

    values: Floats
    data_set: Integers
    unit: Integers
    data_sets: int

    @cached_property
    def _of_unit(self) -> Integers:
        """The data set of each unit, (U,)."""
        made = np.zeros(int(self.unit.max()) + 1, dtype=np.int64)
        made[self.unit] = self.data_set
        return made

    @cached_property
    def _order(self) -> tuple[Integers, Integers]:
        """Rows unit by unit, and where those of each begin."""
        order = np.argsort(self.unit, kind="stable")
        starts = np.searchsorted(self.unit[order], np.arange(len(self._of_unit)))
        return order, starts

    def _in_units(self, each: Floats) -> Floats:
        """Sums of rows (n, ...) over those of each unit, (U, ...)."""
        order, starts = self._order
        return np.asarray(np.add.reduceat(each[order], starts, axis=0))

    @cached_property
    def constant(self) -> Flags:
        """Which columns do not vary in which data sets, (F, N)."""
        n, _, squares = self._moments
        return np.asarray((n > 1) & (squares <= CONSTANT_TOLERANCE * n * self._scale**2))

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, Floats]:
        """Number, mean and centred squares of observed cells, (F, N) each."""
        there, shape = ~np.isnan(self.values), (self.data_sets, self.values.shape[1])
        n, sums, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        np.add.at(n, self.data_set, there)
        np.add.at(sums, self.data_set, np.nan_to_num(self.values))
        mean = sums / np.maximum(n, 1)
        np.add.at(squares, self.data_set, np.nan_to_num(self.values - mean[self.data_set]) ** 2)
        return n, mean, squares

    @cached_property
    def _scale(self) -> Floats:
        """The standard deviation of each column inside data sets, (N,)."""
        n, _, squares = self._moments
        inside = squares.sum(axis=0) / np.maximum(n.sum(axis=0), 1)
        return np.asarray(np.sqrt(np.where(inside > 0, inside, 1.0)))

    @cached_property
    def level(self) -> Flags:
        """Columns that describe units: they vary, but inside no unit, (N,)."""
        there = ~np.isnan(self.values)
        least = self._extreme(np.minimum, np.where(there, self.values, np.inf))
        most = self._extreme(np.maximum, np.where(there, self.values, -np.inf))
        several = self._in_units(there.astype(np.float64)) > 1
        same = (most - least <= np.sqrt(CONSTANT_TOLERANCE) * self._scale) | ~several
        return np.asarray(same.all(axis=0) & several.any(axis=0) & ~self.constant.all(axis=0))

    def _extreme(self, of: np.ufunc, each: Floats) -> Floats:
        order, starts = self._order
        return np.asarray(of.reduceat(each[order], starts, axis=0))

    @cached_property
    def known(self) -> Floats:
        """The rows with what units and data sets say of their cells, (n, N)."""
        made, lacks = self.values.copy(), np.isnan(self.values)
        there = self._in_units((~lacks).astype(np.float64))
        own = self._in_units(np.nan_to_num(self.values)) / np.maximum(there, 1)
        same = lacks & self.level & (there > 0)[self.unit]
        made[same] = own[self.unit][same]
        fixed = lacks & self.constant[self.data_set]
        made[fixed] = self._moments[1][self.data_set][fixed]
        return made

    def _given(self, at: TwoLevels) -> _Given:
        N = self.values.shape[1]
        used = ~np.isnan(self.known) & ~self.constant[self.data_set]
        keys = np.column_stack([self.data_set, used])
        patterns, which = np.unique(keys, axis=0, return_inverse=True)
        weight, noise = (np.zeros((len(patterns), N, N)) for _ in range(2))
        least = _TINY * self._scale**2
        for p, (j, *own) in enumerate(patterns.tolist()):
            has, W = np.flatnonzero(own), at.within[j]
            lacks = np.setdiff1d(np.arange(N), has)
            floor = np.diag(np.maximum(least - np.diagonal(W), 0.0))
            weight[p][np.ix_(has, has)] = np.linalg.inv((W + floor)[np.ix_(has, has)])
            left = (W - W @ weight[p] @ W + floor)[np.ix_(lacks, lacks)]
            noise[p][np.ix_(lacks, lacks)] = np.linalg.cholesky((left + left.T) / 2)
            noise[p][np.diagonal(W) < least] = 0.0
        sets = patterns[:, 0]
        return _Given(which.reshape(-1), sets, weight, at.within[sets], noise)

    def _weights(self, given: _Given) -> Floats:
        """Sums of M over the rows of units, (U, N, N)."""
        (order, starts), U = self._order, len(self._of_unit)
        made = np.empty((U, *given.weight.shape[1:]))
        for a in range(0, U, _AT_ONCE):
            own = starts[a : a + _AT_ONCE]
            end = len(order) if a + _AT_ONCE >= U else starts[a + _AT_ONCE]
            weight = given.weight[given.which[order[own[0] : end]]]
            made[a : a + _AT_ONCE] = np.add.reduceat(weight, own - own[0], axis=0)
        return made

    def _levels(self, at: TwoLevels, given: _Given) -> tuple[Floats, Floats, Floats]:
        """What rows say, v (n, N); precisions P (U, N, N) and means (U, N) of z."""
        away = np.nan_to_num(self.known - at.mean[self.data_set])
        v, L = given.times(given.weight, away), at.root[self._of_unit]
        precision = np.eye(L.shape[1]) + L.transpose(0, 2, 1) @ self._weights(given) @ L
        total = np.einsum("uji,uj->ui", L, self._in_units(v))
        return v, precision, np.linalg.solve(precision, total[:, :, None])[:, :, 0]

    def drawn(self, at: TwoLevels, of_units: Floats, of_rows: Floats) -> Floats:
        """The rows with draws (M, n, N) of missing cells, from normal numbers (M, U or n, N)."""
        given = self._given(at)
        v, precision, middle = self._levels(at, given)
        root = np.linalg.cholesky(precision)
        z = middle + np.linalg.solve(root.transpose(0, 2, 1), of_units[..., None])[..., 0]
        b = np.einsum("uij,muj->mui", at.root[self._of_unit], z)[:, self.unit]
        found = at.mean[self.data_set] + b + given.times(given.noise, of_rows)
        found += given.times(given.within, v - given.times(given.weight, b))
        return np.where(np.isnan(self.known), found, self.known)

    def begin(self) -> TwoLevels:
        """By EM with one covariance between units, in the SDs of data sets, and means of each.

        Covariances inside units are lent some rows with what all data sets have in common.
        """
        n, mean, squares = self._moments
        F, N = mean.shape
        common = (n * mean).sum(axis=0) / np.maximum(n.sum(axis=0), 1)
        center = np.where(n > 0, mean, common)
        scale = np.sqrt((squares + self._scale**2) / (n + 1))
        rows = UnitGaps(
            (self.known - center[self.data_set]) / scale[self.data_set],
            self.data_set, self.unit, self.data_sets,
        )  # fmt: skip
        for name in ("level", "constant"):  # as they are, whatever was filled in
            vars(rows)[name] = getattr(self, name)
        half = np.where(self.level, 0.0, 0.5)
        at = TwoLevels(
            np.zeros((F, N)), np.tile(np.diag(half), (F, 1, 1)),
            np.tile(np.diag(np.sqrt(1 - half)), (F, 1, 1)),
        )  # fmt: skip
        for step in range(_STEPS):
            at = rows._step(at, by_rows=step % 2 == 0)
        outer = scale[:, :, None] * scale[:, None, :]
        return TwoLevels(center + scale * at.mean, outer * at.within, scale[:, :, None] * at.root)

    def _step(self, at: TwoLevels, *, by_rows: bool) -> TwoLevels:
        """One step of EM; means by rows, or by units."""
        given = self._given(at)
        v, precision, middle = self._levels(at, given)
        F, N = self.data_sets, self.values.shape[1]
        L = at.root[self._of_unit]
        b = np.einsum("uij,uj->ui", L, middle)
        V = L @ np.linalg.solve(precision, L.transpose(0, 2, 1))
        e = given.times(given.within, v - given.times(given.weight, b[self.unit]))
        own, count = np.zeros((F, N, N)), np.bincount(self.data_set, minlength=F)
        of_patterns = zip(given.data_set, given.within, given.weight, given.rows, strict=True)
        for j, W, M, rows in of_patterns:
            A = W @ M
            own[j] += e[rows].T @ e[rows] + len(rows) * (W - A @ W)
            own[j] += A @ V[self.unit[rows]].sum(axis=0) @ A.T
        varies = np.where(self.level, 0.0, 1.0)
        common = (own.sum(axis=0) + np.eye(N)) / (count.sum() + 1)
        within = (own + _LENT * common) / (count + _LENT)[:, None, None]
        within = within * np.outer(varies, varies)
        between = (np.einsum("ui,uj->ij", b, b) + V.sum(axis=0) + np.eye(N) * 0.1) / (len(b) + 0.1)
        root = np.tile(np.linalg.cholesky(between), (F, 1, 1))
        shift = np.zeros((F, N))
        of, each = (self.data_set, e) if by_rows else (self._of_unit, b)
        np.add.at(shift, of, each)
        shift /= np.maximum(np.bincount(of, minlength=F), 1)[:, None]
        return TwoLevels(at.mean + shift, (within + within.transpose(0, 2, 1)) / 2, root)


def of_network(
    nodes: Sequence[Local], shares: Sequence[Floats | None], rows: UnitGaps
) -> TwoLevels:
    """What continuous nodes say, in the order of columns; with the shares between units of each.

    A column that does not vary in a data set is what it is there.
    """
    F, N = rows.data_sets, len(nodes)
    B, a, variance, share = (np.zeros((F, *shape)) for shape in ((N, N), (N,), (N,), (N,)))
    for k, (node, own) in enumerate(zip(nodes, shares, strict=True)):
        linear = node.of.linear
        assert linear is not None
        a[:, k], variance[:, k] = linear.coef[:, 0], linear.scale2
        B[:, k, list(node.parents)] = linear.coef[:, 1:]
        share[:, k] = 0.0 if own is None else own
    fixed = rows.constant
    a[fixed], variance[fixed], B[fixed] = rows._moments[1][fixed], 0.0, 0.0
    A = np.linalg.inv(np.eye(N) - B)
    mean = np.einsum("jab,jb->ja", A, a)
    within = np.einsum("jab,jb,jcb->jac", A, variance * (1 - share), A)
    return TwoLevels(mean, within, A * np.sqrt(variance * share)[:, None, :])
