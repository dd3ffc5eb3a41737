"""The rows of a family, and columns that are uncorrelated over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import RANK_TOLERANCE
from poolbn.moments.data import Data, numbers, sums_with
from poolbn.moments.indicators import spans
from poolbn.nodes.links import Family, Response
from poolbn.tables.kinds import is_ordered

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """Rows of one family, sorted by data set.

    Args:
        X: the intercept, 1, and the parents, (m, q).
        y: levels 0 to K - 1, or counts, (m,).
        weight: how often each row is there, (m,).
        offsets: the rows of data set j are offsets[j] : offsets[j + 1], (F + 1,).
        units: the number of each row's unit, (m,), whose rows are together; None without units.
        thresholds: how many columns, the last ones, are indicators of thresholds of ordered levels,
            those after the first; see `about_thresholds`.

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
    units: Integers | None = None
    thresholds: int = 0

    @property
    def rows(self) -> Floats:
        """How often each row is there; 0 of those about distances, which say nothing of x."""
        return self.weight * self.X[:, 0]

    @property
    def cases(self) -> Floats:
        """The same, of rows about thresholds for one of each row of the table, and 0 for others."""
        if not self.thresholds:
            return self.weight
        first = ~self.X[:, -self.thresholds :].any(axis=1)
        return np.where((self.y == 1) | first, self.weight, 0.0)


def collapse(design: Design) -> Design:
    """The same rows, those that are equal within a data set, or within its units, counted.

    Example:
        >>> rows = Design(np.ones((3, 1)), np.array([1, 0, 1]), np.ones(3), np.array([0, 3]))
        >>> collapse(rows).y, collapse(rows).weight
        (array([0, 1]), array([1., 2.]))
    """
    sets = np.repeat(np.arange(len(design.offsets) - 1), np.diff(design.offsets))
    keys = (design.y, *design.X.T[:0:-1], sets if design.units is None else design.units)
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
    units = None if design.units is None else design.units[first]
    return Design(design.X[first], design.y[first], weight, offsets.astype(np.int64), units)


@dataclass(frozen=True)
class Basis:
    """X T has columns that are uncorrelated and of variance one, but for the intercept.

    Columns whose coefficients vary between data sets come first, so that random effects of these
    are random effects of the first columns of X T.
    """

    T: Floats  # (q, p)
    dependent: int  # a column that is a combination of those before it, or -1
    varying: int  # how many columns of X T have coefficients that vary

    @staticmethod
    def of(mean: Floats, S: Floats, vary: NDArray[np.bool_] | None = None) -> Basis:
        """Columns that are combinations of earlier ones are left out.

        Args:
            mean: of the columns after the intercept, (q - 1,).
            S: their covariances, (q - 1, q - 1).
            vary: whether their coefficients vary, (q - 1,); by default all do.
        """
        q = len(mean) + 1
        scale = np.sqrt(np.diagonal(S))
        T = np.zeros((q, q))
        T[0, 0] = 1.0
        kept = [0]
        free = np.ones(q - 1, dtype=bool) if vary is None else vary
        for a in np.argsort(~free, kind="stable").tolist():
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
        varying = 1 + int(np.count_nonzero(free[[a - 1 for a in kept[1:]]]))
        return Basis(np.ascontiguousarray(T[:, kept]), dependent, varying)

    @staticmethod
    def of_rows(X: Floats, weight: Floats, vary: NDArray[np.bool_] | None = None) -> Basis:
        """The same from rows, (m, q), the intercept first."""
        mean = weight @ X[:, 1:] / weight.sum()
        centred = X[:, 1:] - mean
        return Basis.of(mean, (centred * weight[:, None]).T @ centred / weight.sum(), vary)


def design_of(table: Data, child: str, parents: Sequence[str]) -> Design:
    """The rows of a family, equal ones counted where that makes them fewer."""
    _, X = numbers(table, parents)
    rows = table.cases([child])
    (y,), offsets, n = rows.columns, rows.offsets, rows.n
    ones = np.ones(len(y))
    weight = ones if n is None else n.astype(np.float64)
    design = Design(np.vstack([ones, X]).T, y.astype(np.int64), weight, offsets)
    if rows.units is not None:
        design = _by_unit(design, rows.units)
    if not weight.all():
        design = _counting(design)
    return design if table.mostly_unique.intersection(parents) else collapse(design)


def deviations(design: Design) -> Design:
    """With columns less their means in each data set: what tells nothing of levels of these."""
    X = design.X.copy()
    for a, b in pairwise(design.offsets.tolist()):
        weight = design.weight[a:b]
        X[a:b, 1:] -= weight @ X[a:b, 1:] / max(weight.sum(), 1.0)
    return replace(design, X=X)


def _by_unit(design: Design, units: Integers) -> Design:
    """With rows of the same unit together; one of each where the child describes units.

    Where no unit has two rows there are none.
    """
    order = np.argsort(units, kind="stable")
    X, y, own = design.X[order], design.y[order], units[order]
    if len(np.unique(own)) == len(own):
        return design
    made = Design(X, y, design.weight[order], design.offsets, own)
    if not _in_units(y, own, design.offsets):
        return made
    return replace(_some(made, np.diff(own, prepend=-1) != 0), units=None)


def _in_units(y: Floats | Integers, units: Integers, offsets: Integers) -> bool:
    """Whether a child, (m,), has one value in each unit, of which some have several rows.

    A child with one value in each data set says nothing of units.
    """
    same = np.diff(units) == 0
    if not same.any() or (np.diff(y)[same] != 0).any():
        return False
    sets = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return bool((np.diff(y)[np.diff(sets) == 0] != 0).any())


def describes_units(table: Data, child: str) -> bool:
    """Whether a discrete column or a count has one value in each unit inside data sets.

    Examples:
        >>> import pandas as pd
        >>> import poolbn as pb
        >>> rows = {"clinic": list("AAAABBBB"), "patient": [1, 1, 2, 2, 3, 3, 4, 4]}
        >>> rows |= {"sex": list("ffmmffmm"), "ill": list("nynynyyy")}
        >>> table = pb.table(pd.DataFrame(rows), group=["clinic", "patient"])
        >>> describes_units(table, "sex"), describes_units(table, "ill")
        (True, False)
        >>> varying_parent(table, "sex", ["ill"])
        'ill'
    """
    rows = table.cases([child])
    if table.unit is None or rows.units is None:
        return False
    order = np.argsort(rows.units, kind="stable")
    return _in_units(rows.columns[0][order], rows.units[order], rows.offsets)


def varying_parent(table: Data, child: str, parents: Sequence[str]) -> str | None:
    """A parent that varies inside units where the child has one value in each; None: no such."""
    if table.unit is None or not parents or not describes_units(table, child):
        return None
    rows = table.cases(parents)
    assert rows.units is not None
    order = np.argsort(rows.units, kind="stable")
    same = np.diff(rows.units[order]) == 0
    columns = zip(parents, rows.columns, strict=True)
    varies = (name for name, x in columns if (np.diff(x[order])[same] != 0).any())
    return next(varies, None)


def _counting(design: Design) -> Design:
    """Without the rows that do not count."""
    return _some(design, design.weight > 0)


def _some(design: Design, rows: NDArray[np.bool_]) -> Design:
    """Some of the rows."""
    offsets = np.concatenate([[0], np.cumsum(rows)])[design.offsets]
    units = None if design.units is None else design.units[rows]
    return Design(design.X[rows], design.y[rows], design.weight[rows], offsets, units)


_NEXT_TO_NOTHING = 1e-6  # of rows that a level has in a data set where nobody has it


def levels_in(design: Design, levels: int) -> Integers:
    """Which of the levels 0 to K - 1 rows have; two, where they have fewer.

    Example:
        >>> rows = Design(np.ones((2, 1)), np.array([0, 2]), np.ones(2), np.array([0, 2]))
        >>> levels_in(rows, 4)
        array([0, 2])
    """
    seen = np.unique(design.y)
    if len(seen) < 2:
        seen = np.union1d(seen, [0, 1] if 0 in seen or not len(seen) else [0])
    return seen[seen < levels]


def about_thresholds(design: Design, levels: Integers) -> Design:
    """Rows of K ordered levels, these, as rows about the K - 1 thresholds between them.

    With P(y >= k) = logistic(eta_k), eta_k = x'b + g_k, and g_1 = 0, as the intercept is in b, the
    probability of level k is

        logistic(eta_k) - logistic(eta_k+1)
            = logistic(eta_k) (1 - logistic(eta_k+1)) (1 - exp(-(g_k - g_k+1))).

    So a row is one of a binary logit that exceeds the threshold below its level (1), one that does
    not exceed that above it (0), and, between two thresholds, one about their distance (2), which
    no other coefficient touches. Columns follow x: indicators of thresholds but the first, with the
    coefficients g. All of a data set's rows about a distance are one; where no row has a level,
    next to none, so that thresholds do not change places. They follow the data set's other rows,
    and are among those of its last unit.

    Example:
        >>> rows = Design(np.ones((3, 1)), np.array([0, 1, 2]), np.ones(3), np.array([0, 3]))
        >>> made = about_thresholds(rows, np.arange(3))
        >>> made.y.tolist(), made.X.tolist()
        ([0, 1, 0, 1, 2], [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, -1.0]])
    """
    F, q, K = len(design.offsets) - 1, design.X.shape[1], len(levels)
    y = np.minimum(np.searchsorted(levels, design.y), K - 1)
    sets = np.repeat(np.arange(F), np.diff(design.offsets))
    below, above = np.flatnonzero(y > 0), np.flatnonzero(y < K - 1)
    own = np.concatenate([below, above])
    at = np.concatenate([y[below] - 1, y[above]])  # which threshold
    order = np.argsort(own, kind="stable")
    own, at = own[order], at[order]
    outcome = (order < len(below)) * 1
    steps = np.eye(K - 1)[:, 1:]
    X = np.hstack([design.X[own], steps[at]])
    rows = np.zeros((F, K))
    np.add.at(rows, (sets, y), design.weight)
    inner = rows[:, 1:-1]
    distances = np.hstack([np.zeros((K - 2, q)), steps[:-1] - steps[1:]])
    j = np.concatenate([sets[own], np.repeat(np.arange(F), K - 2)])
    order = np.argsort(j, kind="stable")
    units = design.units
    if units is not None:
        last = np.append(units, 0)[design.offsets[1:] - 1]
        empty = np.diff(design.offsets) == 0
        last = np.where(empty, units.max(initial=-1) + 1 + np.arange(F), last)
        units = np.concatenate([units[own], np.repeat(last, K - 2)])[order]
    return Design(
        np.vstack([X, np.tile(distances, (F, 1))])[order],
        np.concatenate([outcome, np.full(inner.size, 2)])[order],
        np.concatenate([design.weight[own], np.maximum(inner.ravel(), _NEXT_TO_NOTHING)])[order],
        np.searchsorted(j[order], np.arange(F + 1)).astype(np.int64),
        units,
        thresholds=K - 2,
    )


def without_parents(design: Design) -> Floats:
    """Coefficients of rows about thresholds where x says nothing, (q,).

    Example:
        >>> rows = Design(np.ones((3, 1)), np.array([0, 1, 2]), np.array([9.5, 4.5, 4.5]),
        ...               np.array([0, 3]))
        >>> without_parents(about_thresholds(rows, np.arange(3))).round(3)
        array([ 0.   , -1.099])
    """
    q, more = design.X.shape[1], design.thresholds
    at = (design.X[:, q - more :] @ np.arange(1, more + 1)).astype(np.int64)
    exceeds, lowest = design.y == 1, (design.y == 0) & (at == 0)
    n = np.append(
        design.weight[lowest].sum(),
        np.bincount(at[exceeds], design.weight[exceeds], minlength=more + 1),
    )
    n = n + 0.5
    above = np.cumsum(n[::-1])[::-1][1:]
    odds = np.log(above / (n.sum() - above))
    coef = np.zeros(q)
    coef[0], coef[q - more :] = odds[0], odds[1:] - odds[0]
    return coef


def means_of(data: Data, name: str) -> Floats:
    """Of a count in each data set, (F, 1)."""
    return sums_with(data, [name]).select([name]).mean


def responses(table: Data, child: str) -> Sequence[Response]:
    """What kind of child it may be: counts may have more variance than a Poisson distribution."""
    K = len(table.categories[table.names.index(child)])
    if is_ordered(table.kind(child)):
        return (Response(Family.ORDINAL, levels=K),)
    if K:
        return (Response(levels=K),)
    return Response(Family.POISSON), Response(Family.NEGATIVE_BINOMIAL)


def owners_of(table: Data, parents: Sequence[str]) -> tuple[str, ...]:
    """The parent that each of their columns of numbers is of."""
    own = spans([table.categories[table.names.index(name)] for name in parents])
    return tuple(name for name, span in zip(parents, own, strict=True) for _ in span)
