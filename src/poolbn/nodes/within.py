"""What parents of a discrete node or a count gain within data sets, whose levels are free.

Where levels of several columns go together between data sets ("a good site is good at everything"),
a model whose levels are independent random effects takes that for effects of columns on each other.
Here the levels of the child are parameters of each data set, and only slopes are pooled: they vary
around common ones. Levels cost nothing, as all sets of parents have them.

The likelihood is the conditional one, given how often each level of the child occurs in each data
set, as in conditional logistic regression, so that many levels and few rows do not bias it. Slopes
that vary are integrated out by the Laplace approximation; see `kernels.within`. Where all parents
are discrete the child may also have a table in each data set, drawn by Dirichlet distributions
around tables that share all odds ratios of a configuration with another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import RANK_TOLERANCE
from poolbn.moments.data import Data
from poolbn.moments.indicators import spans
from poolbn.nodes.design import Design, Floats
from poolbn.nodes.glmm import HELD
from poolbn.nodes.links import Family, Response
from poolbn.nodes.regression import design_of, responses
from poolbn.nodes.tabular import counts_of, is_small, sizes_of
from poolbn.run.compiling import kernels
from poolbn.tables.kinds import has_levels

Integers = NDArray[np.int64]

_MOST = 150  # coefficients of a regression
_ABSENT = 40.0  # log odds of a level that a data set does not have
_INDEPENDENT = 1e-9  # of a combination of columns of variance one
_SEPARATED = 1e-5  # information in a direction of variance one: less than any row has
_SUSPECT = 10.0  # slopes that are looked at twice
_STEP, _NEAR, _TRIES = 0.5, 1e-3, 14  # of a search for log theta
_THETAS = -5.0, 12.0  # its logarithms


@dataclass(frozen=True)
class Alone:
    """A node without parents: what all its sets of parents are compared with.

    Attributes:
        values: the log-likelihood of each kind of response that it may have.
        thetas: logarithms of their dispersion; 0 where there is none.
    """

    values: tuple[float, ...]
    thetas: tuple[float, ...]


def alone(table: Data, child: str) -> Alone:
    """A node without parents, which `gains` can be told.

    Examples:
        >>> import poolbn as pb
        >>> table = pb.table(pb.datasets.opt()[["clinic", "age"]], group="clinic",
        ...                  kinds={"age": "count"})
        >>> poisson, negative_binomial = alone(table, "age").values
        >>> negative_binomial > poisson
        True
    """
    design, found = _rows(table, child, ()), []
    for response in responses(table, child):
        problem = _Problem(design, response, np.zeros((0, 0)))
        found.append(problem.disperse(None) if response.dispersed else (problem.value(), 0.0))
    values, thetas = zip(*found, strict=True)
    return Alone(values, thetas)


def gains(
    table: Data,
    child: str,
    parents: Sequence[str],
    each: Floats,
    form: str = "auto",
    known: Alone | None = None,
) -> float:
    """What parents gain over none within data sets, minus the penalties of their parameters.

    By the best of the models that the node may have; -inf where a parent is constant in each data
    set, or a combination of the others there.

    Args:
        table: the rows.
        child: a discrete node or a count.
        parents: its parents; those that are constant in each data set left out.
        each: the penalty of a parameter of each kind of `Counts`, (3,).
        form: which models discrete nodes with discrete parents may have, see `Partial.discrete`.
        known: the node without parents.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> made = trial.assign(heavy=trial["bmi"] > 30)[["clinic", "age", "heavy"]]
        >>> table, each = pb.table(made, group="clinic"), np.full(3, np.log(750) / 2)
        >>> gains(table, "heavy", ["age"], each) < 0
        True
    """
    if not parents:
        return 0.0
    names = sorted(parents)
    discrete = has_levels(table.kind(child))
    tabular = discrete and all(has_levels(table.kind(name)) for name in names)
    counts = None
    if tabular and is_small(table, child, names):
        counts = counts_of(table, child, names)
        counts = counts.mean(axis=0) if counts.ndim > 3 else counts
    design = _rows(table, child, names, counts)
    categories = [table.categories[table.names.index(name)] for name in names]
    T = _basis(design, spans(categories))
    if T is None:
        return -math.inf
    best = -math.inf
    if counts is not None and form != "logit":
        best = _of_table(counts, each)
    K = len(table.categories[table.names.index(child)])
    if (tabular and form == "table") or T.shape[1] * max(K - 1, 1) > _MOST:
        return best
    known = alone(table, child) if known is None and not discrete else known
    values = []
    for i, response in enumerate(responses(table, child)):
        problem = _Problem(design, response, T)
        charge = float(np.array([problem.C * problem.p, problem.covariances, 0]) @ each)
        if response.dispersed:
            assert known is not None
            value = problem.disperse(known.thetas[i])[0] - each[0]
        else:
            value = problem.value()
        values.append(value - charge)
    return max(best, max(values) - _least(design, known, discrete, each))


def _least(design: Design, known: Alone | None, discrete: bool, each: Floats) -> float:
    """Without parents, by the best of its responses."""
    if discrete:
        return _Problem(design, Response(levels=int(design.y.max(initial=1)) + 1), _NONE).value()
    assert known is not None
    poisson, dispersed = known.values
    return max(poisson, dispersed - float(each[0]))


_NONE = np.zeros((0, 0))


def _rows(
    table: Data, child: str, parents: Sequence[str], counts: NDArray[np.floating] | None = None
) -> Design:
    """The rows of a family, or those of its cells, parents centred within data sets.

    Data sets that cannot tell of slopes are left out: a discrete child is constant in them, or a
    count is zero.
    """
    if counts is None:
        design = design_of(table, child, parents)
    else:
        data_set, configuration, level = np.nonzero(counts)
        *sizes, _ = sizes_of(table, child, parents)
        codes = np.unravel_index(configuration, sizes)
        columns = [np.ones(len(level))]
        for code, size in zip(codes, sizes, strict=True):
            columns += [(code == k).astype(np.float64) for k in range(1, size)]
        design = Design(
            np.column_stack(columns), level, counts[data_set, configuration, level].astype(float),
            np.searchsorted(data_set, np.arange(len(counts) + 1)),
        )  # fmt: skip
    has_rows = np.diff(design.offsets) > 0
    starts = design.offsets[:-1][has_rows]
    lowest = np.minimum.reduceat(design.y, starts)
    highest = np.maximum.reduceat(design.y, starts)
    if has_levels(table.kind(child)):
        tells = highest > lowest
    else:
        tells = highest > 0
    sizes_kept = np.diff(np.append(starts, len(design.y)))
    kept = np.repeat(tells, sizes_kept)
    X, y, weight = design.X, design.y, design.weight
    if not tells.all():
        X, y, weight = X[kept], y[kept], weight[kept]
    own = sizes_kept[tells]
    offsets = np.concatenate([[0], np.cumsum(own)]).astype(np.int64)
    if has_levels(table.kind(child)) and len(y):  # levels that occur, numbered from 0
        occurs = np.bincount(y) > 0
        y = (np.cumsum(occurs) - 1)[y]
    if len(y) and X.shape[1] > 1:
        sums = np.add.reduceat(X[:, 1:] * weight[:, None], offsets[:-1], axis=0)
        mean = sums / np.add.reduceat(weight, offsets[:-1])[:, None]
        X = np.column_stack([X[:, :1], X[:, 1:] - np.repeat(mean, own, axis=0)])
    return Design(X, y.astype(np.int64), weight, offsets)


def _basis(design: Design, owners: Sequence[range]) -> Floats | None:
    """T with columns X T uncorrelated within data sets and of variance one, X without intercept.

    None where a parent adds nothing to the others. The columns do not depend on the order of
    parents, but for rotations.
    """
    X, weight = design.X[:, 1:], design.weight
    if not len(X):
        return np.zeros((X.shape[1], 0))
    S = (X * weight[:, None]).T @ X / weight.sum()
    variance = np.diagonal(S)
    varies = variance > RANK_TOLERANCE * np.maximum(np.abs(X).max(axis=0) ** 2, 1e-300)
    scale = np.where(varies, np.sqrt(np.where(varies, variance, 1.0)), np.inf)
    R = S / np.outer(scale, scale)
    value, vector = np.linalg.eigh(R)
    kept = value > _INDEPENDENT
    if not kept.all():
        rank = np.count_nonzero(kept)
        for own in owners:
            rest = np.setdiff1d(np.arange(len(R)), own)
            left = np.linalg.eigvalsh(R[np.ix_(rest, rest)])
            if np.count_nonzero(left > _INDEPENDENT) == rank:
                return None
    return np.asarray(vector[:, kept] / np.sqrt(value[kept]) / scale[:, None])


def _of_table(counts: NDArray[np.floating], each: Floats) -> float:
    """The gain of tables, see `kernels.within.tables`."""
    told = ((counts.sum(axis=1) > 0).sum(axis=1) > 1) & ((counts.sum(axis=2) > 0).sum(axis=1) > 1)
    n = counts[told].astype(np.float64)
    n = n[:, n.sum(axis=(0, 2)) > 0][:, :, n.sum(axis=(0, 1)) > 0]
    F, C, K = n.shape
    if not F:
        return -math.inf
    slopes = (C - _parts(n.sum(axis=2) > 0)) * (K - 1)
    result = np.empty(4)
    kernel = kernels("within")
    lines = np.empty((kernel.TABLE_LINES, max(F * C, F * K, C * K)))
    kernel.tables(
        np.ascontiguousarray(n), np.empty((F, C, K)), lines, np.empty((2, K, K)), result
    )
    return float(result[2] - result[0] - np.array([slopes, 1, 0]) @ each)


def _parts(together: NDArray[np.bool_]) -> int:
    """How many sets of configurations there are of which no two are ever in one data set, (F, C)."""
    part = np.arange(together.shape[1])
    for own in together:
        seen = np.unique(part[own])
        part[np.isin(part, seen)] = seen[0]
    return len(np.unique(part))


class _Problem:
    """A regression with free levels: work space, and where it is."""

    def __init__(self, design: Design, response: Response, T: Floats) -> None:
        self.design, self.response = design, response
        y, weight = design.y, design.weight
        F, p = len(design.offsets) - 1, T.shape[1]
        self.F, self.p, q = F, p, p + 1
        self.K = int(y.max(initial=1)) + 1 if response.has_levels else 0
        if response.has_levels and self.K != response.levels:
            self.response = Response(levels=self.K)
        C = self.C = self.response.predictors
        d = q * C
        kernel = kernels("within")
        room = kernels("lanes").padded(np.diff(design.offsets))
        self.offsets = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
        self.table = np.empty((q + 2 + 3 * C, self.offsets[-1]))
        whole = np.zeros((len(T) + 1, q))
        whole[0, 0], whole[1:, 1:] = 1.0, T
        X = np.ascontiguousarray(design.X.T[: len(whole)])
        kernels("glm").lay_out(
            X, y, weight, design.offsets, self.offsets, whole, self.table
        )
        self.states = np.zeros((F, d + 2, d))
        self.free = np.ones((F, C), dtype=np.int64)
        self._begin()
        n = np.add.reduceat(weight, design.offsets[:-1]) if F else np.ones(0)
        self.finite = n / np.maximum(n - 1.0, 1.0) if self.K else np.ones(F)
        N = max(d, 4)
        self.quads = np.empty((F, 2 * C * p + kernel.LINES, N))
        self.work = np.empty((kernel.MATRICES, N, N))
        self.A = np.asarray(np.linalg.cholesky(self.response.S))
        self.inverse = np.asarray(np.linalg.inv(self.response.S))
        self.L = np.zeros((max(p, 1), max(p, 1)))
        self.ridge = 0.0

    def _begin(self) -> None:
        """Levels without parents."""
        design, q, d = self.design, self.p + 1, self.states.shape[2]
        sets = np.repeat(np.arange(self.F), np.diff(design.offsets))
        if not self.K:
            n = np.bincount(sets, design.weight, self.F)
            total = np.bincount(sets, design.weight * design.y, self.F)
            self.states[:, d, 0] = np.log(total / n)
            return
        n = np.bincount(sets * self.K + design.y, design.weight, self.F * self.K)
        n = n.reshape(self.F, self.K)
        present, rows = n > 0, np.arange(self.F)
        logs = np.log(np.where(present, n, 1.0))
        base = np.where(present[:, 0], 0, n.argmax(axis=1))  # a level that is not moved
        utility = logs - logs[rows, base][:, None] + np.where(base > 0, _ABSENT, 0.0)[:, None]
        lowest = np.where(base > 0, 0.0, -_ABSENT)[:, None]
        utility = np.where(present, utility, lowest)
        self.states[:, d, 0 : self.C * q : q] = utility[:, 1:]
        free = present.copy()
        free[rows, base] = False
        self.free[:] = free[:, 1:]

    @property
    def covariances(self) -> int:
        """How many variances and covariances slopes have."""
        return self.p * (self.p + 1) // 2

    def _fit(self, stage: int, log_theta: float, result: Floats) -> None:
        kernels("within").fit(
            int(self.response.family), math.exp(log_theta), self.p + 1, self.C, self.table,
            self.offsets, self.free.ravel(), self.finite, self.A, self.inverse, self.ridge, stage, self.states,
            self.quads, self.work, self.L, result,
        )  # fmt: skip

    def value(self, log_theta: float = 0.0) -> float:
        """The log-likelihood, from where the last search ended."""
        if not self.F:
            return 0.0
        kernel, result, e = kernels("within"), np.zeros(6), self.C * self.p
        self._fit(kernel.COMMON, log_theta, result)
        if e and self.ridge == 0.0 and self._separated(result):
            self.ridge = HELD[0]
            self.states[:] = 0.0
            self._begin()
            self._fit(kernel.COMMON, log_theta, result)
        sign = 0.5 if self.K else -0.5
        best = float(result[0] + sign * result[2])
        if e:
            kept = self.states[:, -2].copy()
            self._fit(kernel.VARYING, log_theta, result)
            varying = float(result[3] + sign * result[4])
            best = max(best, varying) if math.isfinite(varying) else best
            self.states[:, -2] = kept
        return best + float(result[5])

    def _separated(self, result: Floats) -> bool:
        e, slope = self.C * self.p, self.states[0, -2].reshape(self.C, -1)[:, 1:]
        if result[1] == 1.0 and np.abs(slope).max() < _SUSPECT:
            return False
        H = self.work[kernels("within").H_, :e, :e] / self.design.weight.sum()
        return bool(result[1] == 0.0 or np.linalg.eigvalsh(H)[0] < _SEPARATED)

    def disperse(self, start: float | None) -> tuple[float, float]:
        """The log-likelihood at its maximum in theta, and the logarithm of that."""
        if not self.F:
            return 0.0, 0.0
        if start is None:
            start = self._dispersion()
        return _peak(self.value, start)

    def _dispersion(self) -> float:
        """Log theta by moments within data sets."""
        design, d = self.design, self.states.shape[2]
        mean = np.exp(np.repeat(self.states[:, d, 0], np.diff(design.offsets)))
        n = np.repeat(np.add.reduceat(design.weight, design.offsets[:-1]), np.diff(design.offsets))
        square = (design.y - mean) ** 2 * n / np.maximum(n - 1.0, 1.0)
        extra = float(design.weight @ (square - mean))
        total = float(design.weight @ mean**2)
        return float(np.log(np.clip(total / max(extra, 1e-9 * total), 0.02, 1e4)))


def _peak(value: Callable[[float], float], x: float) -> tuple[float, float]:
    """The largest value, and where it is, by parabolas through three points."""
    step = _STEP
    seen = {at: value(at) for at in (x - step, x, x + step)}
    for _ in range(_TRIES):
        order = sorted(seen)
        best = max(order, key=seen.__getitem__)
        i = order.index(best)
        if i in {0, len(order) - 1}:
            step *= 2.0
            at = best - step if i == 0 else best + step
            if not _THETAS[0] < at < _THETAS[1]:
                break
        else:
            low, high = order[i - 1], order[i + 1]
            a, b = best - low, high - best
            rise, fall = (seen[best] - seen[low]) / a, (seen[high] - seen[best]) / b
            bend = (fall - rise) / (a + b)
            if not bend < 0.0:
                break
            at = best - (rise * b + fall * a) / (2.0 * (a + b) * bend)
            if -bend * (at - best) ** 2 < _NEAR or at in seen:
                break
        seen[at] = value(at)
    best = max(seen, key=seen.__getitem__)
    return seen[best], best
