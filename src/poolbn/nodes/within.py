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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import RANK_TOLERANCE
from poolbn.moments.data import Data
from poolbn.moments.indicators import spans
from poolbn.nodes.design import Floats, about_thresholds, design_of, levels_in
from poolbn.nodes.glmm import HELD, Problem
from poolbn.nodes.links import Family, Response
from poolbn.nodes.tabular import counts_of, is_small, sizes_of
from poolbn.run.compiling import kernels
from poolbn.tables.kinds import has_levels

Integers = NDArray[np.int64]

_MOST = 150  # coefficients of a regression
_ABSENT = 40.0  # log odds of a level that a data set does not have
_INDEPENDENT = 1e-9  # of a combination of columns of variance one
_SEPARATED = 1e-3  # information of a row in a direction of variance one
_SUSPECT = 5.0  # slopes that are looked at twice
_STEP, _NEAR, _TRIES = 0.5, 1e-3, 14  # of a search for log theta
_THETAS = -5.0, 12.0  # its logarithms


@dataclass(frozen=True)
class Alone:
    """A count without parents: what all its sets of parents are compared with.

    Attributes:
        poisson: its log-likelihood, without what does not depend on parents.
        dispersed: that of negative binomial counts.
        log_theta: the logarithm of their dispersion.
    """

    poisson: float
    dispersed: float
    log_theta: float


def alone(table: Data, child: str) -> Alone:
    """A count without parents, which `gains` can be told.

    Examples:
        >>> import poolbn as pb
        >>> table = pb.table(pb.datasets.opt()[["clinic", "age"]], group="clinic",
        ...                  kinds={"age": "count"})
        >>> found = alone(table, "age")
        >>> found.dispersed > found.poisson
        True
    """
    rows = _rows(table, child, ())
    poisson = _Problem(rows, Response(Family.POISSON), np.eye(1)).value()
    problem = _Problem(rows, Response(Family.NEGATIVE_BINOMIAL), np.eye(1))
    return Alone(poisson, *problem.disperse(None))


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
        each: the penalty of a parameter of each kind of `Counts`, (5,).
        form: which models discrete nodes with discrete parents may have, see `Partial.discrete`.
        known: a count without parents, which is looked at here by default.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> made = trial.assign(heavy=trial["bmi"] > 30)[["clinic", "age", "heavy"]]
        >>> table, each = pb.table(made, group="clinic"), np.full(5, np.log(750) / 2)
        >>> gains(table, "heavy", ["age"], each) < 0
        True
    """
    if not parents:
        return 0.0
    names = sorted(parents)
    discrete = has_levels(table.kind(child))
    tabular = discrete and all(has_levels(table.kind(name)) for name in names)
    counts = _counts(table, child, names) if tabular else None
    rows = _rows(table, child, names, counts)
    K = len(table.categories[table.names.index(child)])
    if not len(rows.y):  # no data set says anything
        columns = len(rows.X) - 1
        return -float(columns * max(K - 1, 1) * each[0] + each[1])
    T = _basis(rows, spans([table.categories[table.names.index(name)] for name in names]))
    if T is None:
        return -math.inf
    best = -math.inf
    if counts is not None and form != "logit":
        best = _of_table(counts, each)
    if (tabular and form == "table") or len(T) * max(K - 1, 1) > _MOST:
        return best
    if discrete:
        problem = _Problem(rows, Response(levels=int(rows.y.max()) + 1), T)
        return max(best, problem.value() - _without(rows.per_level()) - problem.charge(each))
    return _of_count(rows, T, each, alone(table, child) if known is None else known)


def ordered_gain(table: Data, child: str, parents: Sequence[str], each: Floats) -> float:
    """The gain of ordered levels, whose conditional likelihood has no closed form; see `gains`.

    Beside deviations from means of data sets the model has these means, which take what levels of
    parents and of the child have in common (Mundlak); with parents and without, the model has a
    random intercept.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> made = trial.assign(heavy=(trial["bmi"] // 10).clip(2, 4))[["clinic", "age", "heavy"]]
        >>> table = pb.table(made, group="clinic", kinds={"heavy": "ordinal"})
        >>> ordered_gain(table, "heavy", ["age"], np.full(5, np.log(750) / 2)) < 0
        True
    """
    design = design_of(table, child, parents)
    F, n, X = len(design.offsets) - 1, design.weight, design.X[:, 1:]
    sets = np.repeat(np.arange(F), np.diff(design.offsets))
    totals, rows = np.zeros((F, X.shape[1])), np.bincount(sets, n, F)
    np.add.at(totals, sets, X * n[:, None])
    means = (totals / np.maximum(rows, 1)[:, None])[sets]
    K = len(table.categories[table.names.index(child)])
    p, own, one = X.shape[1], X - means, np.ones((len(X), 1))

    def fitted(columns: Floats, varying: int) -> tuple[Problem, float]:
        made = about_thresholds(replace(design, X=columns), levels_in(design, K))
        vary = np.arange(made.X.shape[1] - 1) < varying
        problem = Problem(made, Response(Family.ORDINAL, levels=K), vary)
        return problem, problem.climb(final=False).loglik

    problem, value = fitted(np.hstack([one, own, means]), p)
    if 0 < problem.basis.dependent <= p:
        return -math.inf
    value -= fitted(np.hstack([one, means]), 0)[1]
    return value - float(p * each[0] + p * (p + 1) // 2 * each[1])


def _of_count(rows: _Rows, T: Floats, each: Floats, known: Alone) -> float:
    """The gain of a count: its distribution is chosen with parents, and without."""
    poisson, dispersed = (
        _Problem(rows, Response(family), T) for family in (Family.POISSON, Family.NEGATIVE_BINOMIAL)
    )
    theta = float(each[0])  # what it costs
    best = max(poisson.value(), dispersed.disperse(known.log_theta)[0] - theta)
    return best - max(known.poisson, known.dispersed - theta) - poisson.charge(each)


def table_gain(table: Data, child: str, parents: Sequence[str], each: Floats) -> float:
    """What a table of probabilities gains, see `gains`, if each parent tells something.

    Args:
        table: the rows.
        child: a discrete node.
        parents: its parents, in the order of their names; discrete and not constant.
        each: the penalty of a parameter of each kind of `Counts`, (3,).
    """
    counts = _counts(table, child, parents)
    return -math.inf if counts is None else _of_table(counts, each)


def _counts(table: Data, child: str, parents: Sequence[str]) -> NDArray[np.number] | None:
    """Rows by data set, configuration and level, if there is room; means over draws."""
    if not is_small(table, child, parents):
        return None
    counts = counts_of(table, child, parents)
    return counts.mean(axis=0) if counts.ndim > 3 else counts


@dataclass(frozen=True)
class _Rows:
    """Rows of the data sets that can tell of slopes, or their cells."""

    X: Floats  # 1, and the parents' columns, centred within data sets, (q, m)
    y: Integers  # levels that occur, numbered from 0, or counts, (m,)
    weight: Floats  # how often each row is there, (m,)
    offsets: Integers  # rows of data set j are offsets[j] : offsets[j + 1], (F + 1,)

    def per_level(self) -> Floats:
        """How often each level is in each data set, (F, K)."""
        F, K = len(self.offsets) - 1, int(self.y.max(initial=0)) + 1
        sets = np.repeat(np.arange(F), np.diff(self.offsets))
        return np.asarray(np.bincount(sets * K + self.y, self.weight, F * K).reshape(F, K))


def _without(n: Floats) -> float:
    """The conditional log-likelihood of levels without parents, from their counts (F, K)."""
    rows = n.sum(axis=1, keepdims=True)
    logs = np.log(np.where(n > 0, n, 1.0))
    return float((n * (logs - np.log(rows))).sum() + 0.5 * (logs.sum() - np.log(rows).sum()))


def _rows(
    table: Data, child: str, parents: Sequence[str], counts: NDArray[np.number] | None = None
) -> _Rows:
    """Those of a family, or its cells.

    Data sets in which a discrete child is constant, or a count is 0, say nothing.
    """
    if counts is None:
        design = design_of(table, child, parents)
        X, y, weight, offsets = design.X.T, design.y, design.weight, design.offsets
    else:
        data_set, configuration, y = np.nonzero(counts)
        weight = counts[data_set, configuration, y].astype(np.float64)
        *sizes, _ = sizes_of(table, child, parents)
        codes = np.unravel_index(configuration, sizes)
        own = [code == k for code, size in zip(codes, sizes, strict=True) for k in range(1, size)]
        X = np.array([np.ones(len(y)), *own], dtype=np.float64)
        offsets = np.searchsorted(data_set, np.arange(len(counts) + 1))
    levels = has_levels(table.kind(child))
    starts, n = offsets[:-1][np.diff(offsets) > 0], np.diff(offsets)
    n = n[n > 0]
    highest = np.maximum.reduceat(y, starts)
    tells = highest > (np.minimum.reduceat(y, starts) if levels else 0)
    if not tells.all():
        kept = np.repeat(tells, n)
        X, y, weight, n = X[:, kept], y[kept], weight[kept], n[tells]
    offsets = np.concatenate([[0], np.cumsum(n)]).astype(np.int64)
    if not len(y):
        return _Rows(X, y, weight, offsets)
    if levels:
        y = (np.cumsum(np.bincount(y) > 0) - 1)[y]
    rows = np.add.reduceat(weight, offsets[:-1])
    X = np.ascontiguousarray(X, dtype=np.float64)
    X[1:] -= np.repeat(np.add.reduceat(X[1:] * weight, offsets[:-1], axis=1) / rows, n, axis=1)
    return _Rows(X, y.astype(np.int64), weight, offsets)


def _laid_out(rows: _Rows, T: Floats, C: int) -> tuple[Floats, Integers]:
    """The table of `kernels.rows` for columns X'T, and where data sets begin in it."""
    offsets = np.concatenate([[0], np.cumsum(kernels("lanes").padded(np.diff(rows.offsets)))])
    table = np.empty((T.shape[1] + 2 + 3 * C, offsets[-1]))
    places = offsets.astype(np.int64)
    kernels("glm").lay_out(
        rows.X[: len(T)], rows.y, rows.weight, rows.offsets, places, T, table
    )  # fmt: skip
    return table, places


def _basis(rows: _Rows, owners: Sequence[range]) -> Floats | None:
    """T with columns X'T uncorrelated within data sets and of variance one, but the intercept.

    None where a parent adds nothing to the others. The columns do not depend on the order of
    parents, but for rotations.
    """
    q = len(rows.X)
    S = np.empty((q, q))
    kernels("glm").describe(_laid_out(rows, np.eye(q), 0)[0], np.empty(q), S)
    S, largest = S[1:, 1:], np.abs(rows.X[1:]).max(axis=1, initial=1e-150)
    variance = np.diagonal(S)
    varies = variance > RANK_TOLERANCE * largest**2
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
    T = np.zeros((q, 1 + np.count_nonzero(kept)))
    T[0, 0] = 1.0
    T[1:, 1:] = vector[:, kept] / np.sqrt(value[kept]) / scale[:, None]
    return T


def _of_table(counts: NDArray[np.number], each: Floats) -> float:
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
    kernel.tables(np.ascontiguousarray(n), np.empty((F, C, K)), lines, np.empty((2, K, K)), result)
    return float(result[2] - result[0] - slopes * each[0] - each[1])


def _parts(together: NDArray[np.bool_]) -> int:
    """How many parts the configurations fall into that are never in one data set, (F, C)."""
    if together.all(axis=1).any():
        return 1
    part = np.arange(together.shape[1])
    for own in together:
        seen = np.unique(part[own])
        part[np.isin(part, seen)] = seen[0]
    return len(np.unique(part))


class _Problem:
    """A regression with free levels: work space, and where it is."""

    def __init__(self, rows: _Rows, response: Response, T: Floats) -> None:
        self.rows, self.response = rows, response
        self.F, self.C, q = len(rows.offsets) - 1, response.predictors, T.shape[1]
        self.p, d, n = q - 1, q * self.C, np.ones(self.F)
        self.table, self.offsets = _laid_out(rows, T, self.C)
        self.A = np.asarray(np.linalg.cholesky(response.S))
        self.inverse = np.asarray(np.linalg.inv(response.S))
        self.states = np.zeros((self.F, d + 2, d))
        self.free = np.ones((self.F, self.C), dtype=np.int64)
        if self.F:
            n = np.add.reduceat(rows.weight, rows.offsets[:-1])
            self._begin(n)
        self.levels = self.states[:, d].copy()
        self.finite = n / np.maximum(n - 1.0, 1.0) if response.has_levels else np.ones(self.F)
        kernel, N = kernels("within"), max(d, 5)
        self.quads = np.empty((self.F, 2 * self.C * self.p + kernel.LINES, N))
        self.work = np.empty((kernel.MATRICES, N, N))
        self.L = np.zeros((max(self.p, 1), max(self.p, 1)))
        self.ridge = 0.0

    def _begin(self, rows_of: Floats) -> None:
        """Levels without parents: logarithms of means, or log odds."""
        rows, (F, C), q = self.rows, self.free.shape, self.p + 1
        start = self.states[:, -2]
        if not self.response.has_levels:
            start[:, 0] = np.log(np.add.reduceat(rows.weight * rows.y, rows.offsets[:-1]) / rows_of)
            return
        n, at = rows.per_level(), np.arange(F)
        present = n > 0
        # A level that is not moved, the first one if it is there; others may be where they are not.
        base = np.where(present[:, 0], 0, n.argmax(axis=1))
        logs = np.log(np.where(present, n, 1.0))
        odds = logs - logs[at, base][:, None] + np.where(base > 0, _ABSENT, 0.0)[:, None]
        absent = np.where(base > 0, 0.0, -_ABSENT)[:, None]
        start[:, 0 : C * q : q] = np.where(present, odds, absent)[:, 1:]
        present[at, base] = False
        self.free[:] = present[:, 1:]

    def charge(self, each: Floats) -> float:
        """What slopes and their (co)variances cost."""
        p = self.p
        return float(self.C * p * each[0] + p * (p + 1) // 2 * each[1])

    def _fit(self, stage: int, log_theta: float, result: Floats) -> None:
        kernels("within").fit(
            int(self.response.family), math.exp(log_theta), self.p + 1, self.C, self.table,
            self.offsets, self.free.ravel(), self.finite, self.A, self.inverse, self.ridge, stage,
            self.states, self.quads, self.work, self.L, result,
        )  # fmt: skip

    def value(self, log_theta: float = 0.0) -> float:
        """The log-likelihood, from where the last search ended."""
        if not self.F:
            return 0.0
        kernel, result, e = kernels("within"), np.zeros(6), self.C * self.p
        self._fit(kernel.COMMON, log_theta, result)
        if e and self.ridge == 0.0 and self._separated(result):
            self.ridge = HELD[0]
            self.states[:, -2] = self.levels
            self._fit(kernel.COMMON, log_theta, result)
        sign = 0.5 if self.response.has_levels else -0.5
        best = float(result[0] + sign * result[2])
        if e:
            kept = self.states[:, -2].copy()
            self._fit(kernel.VARYING, log_theta, result)
            varying = float(result[3] + sign * result[4])
            best = max(best, varying) if math.isfinite(varying) else best
            self.states[:, -2] = kept
        return best + float(result[5])

    def _separated(self, result: Floats) -> bool:
        """Whether slopes went to infinity; the same whatever level comes first."""
        e, slope = self.C * self.p, self.states[0, -2].reshape(self.C, -1)[:, 1:]
        differences = np.ptp(np.vstack([0 * slope[:1], slope]), axis=0)
        if result[1] == 1.0 and differences.max() < _SUSPECT:
            return False
        H = self.work[kernels("within").H_, :e, :e] / self.rows.weight.sum()
        symmetric = np.kron(self.A, np.eye(self.p))
        least = np.linalg.eigvalsh(symmetric.T @ H @ symmetric)[0]
        return bool(result[1] == 0.0 or least < _SEPARATED)

    def disperse(self, start: float | None) -> tuple[float, float]:
        """The log-likelihood at its maximum in theta, and the logarithm of that."""
        if not self.F:
            return 0.0, 0.0
        if start is None:
            start = self._dispersion()
        return _peak(self.value, start)

    def _dispersion(self) -> float:
        """Log theta by moments within data sets."""
        y, weight, offsets = self.rows.y, self.rows.weight, self.rows.offsets
        sizes = np.diff(offsets)
        n = np.repeat(np.add.reduceat(weight, offsets[:-1]), sizes)
        mean = np.exp(np.repeat(self.levels[:, 0], sizes))
        square = (y - mean) ** 2 * n / np.maximum(n - 1.0, 1.0)
        extra, total = float(weight @ (square - mean)), float(weight @ mean**2)
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
