"""A discrete child with discrete parents: tables of probabilities from counts.

Counts of a family are (F, C, K): F data sets, C configurations of the parents, K levels of the
child. Each data set's table is drawn around a common one, m (C, K), by Dirichlet distributions of
concentration s. With s = inf that is complete pooling, with s = 0 a table for each data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from poolbn.run.compiling import kernels

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


class Limit(Enum):
    """Where a concentration is."""

    INSIDE = "inside"
    COMPLETE = "complete pooling"  # s = inf
    NONE = "no pooling"  # s = 0


@dataclass(frozen=True)
class TableFit:
    """The tables of one family.

    Attributes:
        loglik: log-likelihood; with partial pooling over all tables that a data set may have.
        n_params: free parameters, of configurations that nobody has seen too.
        s: concentration: the rows that the common table counts for.
        base: the common table, (C, K).
        tables: probabilities in each data set, (F, C, K): the means given its counts. A
            configuration that a data set has not seen has the common probabilities, and one that
            no data set has seen those of the child without parents.
    """

    loglik: float
    n_params: int
    s: float
    base: Floats
    tables: Floats

    @property
    def limit(self) -> Limit:
        """Whether s is at one of its ends."""
        return {np.inf: Limit.COMPLETE, 0.0: Limit.NONE}.get(self.s, Limit.INSIDE)


def complete(counts: Counts) -> TableFit:
    """One table for all data sets.

    Examples:
        >>> complete(np.array([[[3, 1]], [[1, 3]]])).tables.tolist()
        [[[0.5, 0.5]], [[0.5, 0.5]]]
    """
    loglik = float(complete_logliks([counts])[0])
    return _fit(counts, loglik, complete_params(counts), np.inf, _pooled(counts))


def none(counts: Counts) -> TableFit:
    """A table for each data set.

    Examples:
        >>> none(np.array([[[3, 1]], [[1, 3]]])).tables.tolist()
        [[[0.75, 0.25]], [[0.25, 0.75]]]
    """
    loglik = float(none_logliks([counts])[0])
    return _fit(counts, loglik, none_params(counts), 0.0, _pooled(counts))


def partial(counts: Counts) -> TableFit:
    """A table for each data set, drawn around a common one.

    Examples:
        >>> fit = partial(np.array([[[9, 1]], [[1, 9]]]))
        >>> fit.base.round(3).tolist(), fit.limit.value
        ([[0.5, 0.5]], 'inside')
        >>> fit.tables.round(2).tolist()
        [[[0.85, 0.15]], [[0.15, 0.85]]]
    """
    (loglik,), (s,), base = _maximise([counts])
    base = base.reshape(counts.shape[1:])
    unseen = ~base.any(axis=1)
    if unseen.any():
        base[unseen] = _certain(_maximise([counts.sum(axis=1, keepdims=True)])[2])
    return _fit(counts, float(loglik), partial_params(counts), float(s), base)


def complete_params(counts: Counts) -> int:
    """Free parameters of one table; bnlearn too counts configurations that no row has.

    Examples:
        >>> complete_params(np.zeros((5, 4, 3)))
        8
    """
    C, K = counts[0].shape
    return int(C * (K - 1))


def none_params(counts: Counts) -> int:
    """Free parameters of a table for each data set.

    Examples:
        >>> none_params(np.zeros((5, 4, 3)))
        40
    """
    return len(counts) * complete_params(counts)


def partial_params(counts: Counts) -> int:
    """Free parameters of a common table, and its concentration.

    Examples:
        >>> partial_params(np.zeros((5, 4, 3)))
        9
    """
    return complete_params(counts) + 1


def complete_logliks(families: Sequence[Counts]) -> Floats:
    """The log-likelihood of each family with one table.

    Examples:
        >>> complete_logliks([np.array([[[3, 1]], [[1, 3]]])]).round(3).tolist()
        [-5.545]
    """
    return _closed(families)[:, 0]


def none_logliks(families: Sequence[Counts]) -> Floats:
    """The log-likelihood of each family with a table for each data set.

    Partial pooling has an average over such tables: this bounds it from above.

    Examples:
        >>> none_logliks([np.array([[[3, 1]], [[1, 3]]])]).round(3).tolist()
        [-4.499]
    """
    return _closed(families)[:, 1]


def partial_logliks(families: Sequence[Counts]) -> Floats:
    """The log-likelihood of each family with tables that are drawn around a common one.

    Examples:
        >>> partial_logliks([np.array([[[9, 1]], [[1, 9]]])]).round(3).tolist()
        [-9.316]
    """
    return _maximise(families)[0]


def bdeu(families: Sequence[Counts], iss: float = 1.0) -> Floats:
    """Bayesian Dirichlet scores of complete pooling, bnlearn's "bde".

    Args:
        families: counts of each.
        iss: imaginary sample size, the rows that the uniform prior counts for.

    Examples:
        >>> bdeu([np.array([[[3, 1]], [[1, 3]]])]).round(3).tolist()
        [-6.842]
    """
    return _marginal(families, [iss / counts[0].size for counts in families])


def k2(families: Sequence[Counts]) -> Floats:
    """K2 scores of complete pooling: a prior count of 1 in each cell.

    Examples:
        >>> k2([np.array([[[3, 1]], [[1, 3]]])]).round(3).tolist()
        [-6.446]
    """
    return _marginal(families, [1.0] * len(families))


def _pooled(counts: Counts) -> Floats:
    """The shares of all rows, (C, K); where a configuration has none, those of the child."""
    total = counts.sum(axis=0)
    rows = total.sum(axis=1, keepdims=True)
    everywhere = _certain(total.sum(axis=0) / max(total.sum(), 1))
    return np.where(rows > 0, total / np.maximum(rows, 1), everywhere)


def _certain(shares: Floats) -> Floats:
    """Shares of levels, (K,); equal ones where there was no row."""
    return shares if shares.any() else np.full_like(shares, 1 / len(shares))


def _fit(counts: Counts, loglik: float, n_params: int, s: float, base: Floats) -> TableFit:
    """With the mean of each data set's table given its counts."""
    if np.isinf(s):
        return TableFit(loglik, n_params, s, base, np.tile(base, (len(counts), 1, 1)))
    rows = counts.sum(axis=2, keepdims=True)
    own = (counts + s * base) / np.maximum(rows + s, np.finfo(float).tiny)
    return TableFit(loglik, n_params, s, base, np.where(rows > 0, own, base))


def _maximise(families: Sequence[Counts]) -> tuple[Floats, Floats, Floats]:
    """Log-likelihoods and concentrations of families, and m of all, one after the other."""
    kernel = kernels("polya")
    columns = max((counts[0].size + counts.shape[1] for counts in families), default=0)
    large = max((counts.size + counts[..., 0].size for counts in families), default=0)
    found = np.empty((len(families), 2))
    base = np.empty(sum(counts[0].size for counts in families))
    kernel.fit(
        *_packed(families),
        np.empty((columns, kernel.HEAD)),
        np.empty(large),
        np.empty((kernel.INDICES, columns + 1), dtype=np.int64),
        np.empty((kernel.ROWS, columns)),
        found,
        base,
    )
    return found[:, 1], found[:, 0], base


def _closed(families: Sequence[Counts]) -> Floats:
    found = np.empty((len(families), 2))
    kernels("polya").closed(*_packed(families), found)
    return found


def _marginal(families: Sequence[Counts], alpha: Sequence[float]) -> Floats:
    found = np.empty(len(families))
    kernels("polya").marginal(*_packed(families), np.array(alpha, dtype=float), found)
    return found


def _packed(families: Sequence[Counts]) -> tuple[Counts, Counts]:
    """All counts, one family after the other; see `kernels.polya` for their shapes."""
    shapes = []
    start, begin = 0, 0
    for counts in families:
        F, C, K = counts.shape
        shapes.append((F, C, K, start, begin))
        start += F * C * K
        begin += C * K
    flat = [counts.ravel() for counts in families]
    n = np.concatenate(flat) if flat else np.empty(0)
    return n.astype(np.int64, copy=False), np.array(shapes, dtype=np.int64).reshape(-1, 5)
