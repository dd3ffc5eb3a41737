"""The sufficient statistics as the numerics want them: columns centred and scaled.

Columns keep the positions that they have in the statistics; that is the one numbering, from here to
the kernels. Only inside a family parents have an order of their own, see `order`, so that a score
does not depend, not by a bit, on the order of a table's columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.constants import CONSTANT_TOLERANCE
from poolbn.errors import DataError
from poolbn.moments.data import Data
from poolbn.moments.groupstats import GroupStats, check_magnitude
from poolbn.moments.indicators import spans
from poolbn.moments.units import UnitSums

_IMPUTATIONS = 20
_MANY = 30  # families from which arrays are faster than lists
_CHILD, _PARENTS = itemgetter(0), itemgetter(1)
_OF_DATA_SETS = ("n", "mean", "scatter", "unmeasured")  # arrays (F, ...)
_EXACTLY = 1e-10  # of a column's variance, which is rounding
_FAR = 1e7  # SDs from 0: up to there, limits of predictions are right to 0.001 SD

# A child and its parents, as positions in the names of the statistics.
Family = tuple[int, tuple[int, ...]]


def expanded(data: Data, families: Iterable[Family]) -> list[Family]:
    """Families in the columns of numbers that data are made of, the child's own the first."""
    columns = spans(data.categories)
    return [
        (columns[child][0], tuple(k for p in parents for k in columns[p]))
        for child, parents in families
    ]


def changed_by(family: Family, p: int) -> Family:
    """The family with one parent more, or less if it is there."""
    child, parents = family
    at = bisect_left(parents, p)
    if at < len(parents) and parents[at] == p:
        return child, parents[:at] + parents[at + 1 :]
    return child, (*parents[:at], p, *parents[at:])


Key = Callable[[int], int]  # what the parents of a family are sorted by


@dataclass(frozen=True, eq=False)
class StandardisedStats:
    """Sufficient statistics of (x - center) / scale."""

    names: tuple[str, ...]  # the N columns
    levels: tuple[Hashable, ...]  # the F data sets
    # rows, (F,), as floats for the kernels. Where cells are missing, as many as would have the
    # observed cells: statistics of n rows that are there in part tell no more.
    n: Floats
    mean: Floats  # (F, N)
    scatter: Floats  # within each data set, (F, N, N)
    total: Floats  # scatter of all rows around the pooled mean, (N, N)
    center: Floats  # pooled mean, (N,)
    # pooled standard deviation (denominator n), 1 for a constant column, (N,)
    scale: Floats
    # the variance that rounding to the resolution of a column adds, 0 if unknown, (N,)
    least: Floats
    unmeasured: Flags  # columns that all rows of a data set lack, (F, N)
    # whether these are deviations from the means of data sets, which have no levels; `n` is a row
    # less in each, as a mean takes one
    inside: bool = False
    # sums of units inside data sets; None where there are none, or where they are whitened
    units: UnitSums | None = None
    # where rows of units are alike and are whitened: t of each data set, (F,), what intercepts
    # weigh, (F,), the logarithms of the determinants of the rows' covariances, (F,), the units of
    # each data set, (F,), and columns that vary in none, (N,)
    ratio: Floats | None = None
    weight: Floats | None = None
    log_determinant: Floats | None = None
    n_units: Floats | None = None
    above_rows: Flags | None = None
    # then the scatter of rows around the means of their units, (F, N, N)
    inside_units: Floats | None = None
    # of a part of the rows, where a column varies in all rows of a data set, (F, N); None for all
    varying: Flags | None = None

    @cached_property
    def deviations(self) -> StandardisedStats:
        """Statistics of deviations from the means of data sets that have two rows or more.

        They tell the same whatever the levels of data sets are: of n_j rows with a free level,
        n_j - 1 are left.
        """
        some = self._without(self.n < 2.0)
        made = replace(some, n=some.n - 1.0, mean=np.zeros_like(some.mean), inside=True)
        return replace(made, total=reduce(np.add, some.scatter))

    @cached_property
    def as_one(self) -> StandardisedStats:
        """Statistics of all rows as if they were one data set."""
        none = np.zeros_like(self.mean[:1])
        one: dict[str, Any] = {"levels": ("",), "n": np.array([self.rows]), "units": None}
        one |= {"mean": none, "scatter": self.total[None], "unmeasured": none.astype(bool)}
        one["varying"] = None
        return replace(self, **one)

    @cached_property
    def weights(self) -> Floats:
        """What intercepts weigh, (F,): the rows, or less where rows of a unit are alike."""
        return self.n if self.weight is None else self.weight

    def whitened(self, ratio: Floats) -> StandardisedStats:
        """Statistics as of rows that are independent, see `kernels.units`.

        Args:
            ratio: the variance between units over that of residuals in each data set, (F,).
        """
        of = self.units
        assert of is not None
        t, m = ratio[of.data_set], of.size.astype(np.float64)
        F = len(self.n)
        k = of.count.astype(np.float64)
        weight = _in_sets(of, k * m / (1 + m * t), F)
        log_determinant = _in_sets(of, k * np.log1p(m * t), F)
        part = t / (1 + m * t)
        shift = -_in_sets(of, (m * part)[:, None] * of.sums, F)
        scatter = self.scatter - _in_sets(of, part[:, None, None] * of.squares, F)
        scatter -= shift[:, :, None] * shift[:, None, :] / weight[:, None, None]
        mean = self.mean + shift / weight[:, None]
        if self.inside:
            rows = _in_sets(of, k * m, F)
            mean, log_determinant = np.zeros_like(mean), log_determinant + np.log(weight / rows)
        middle = weight @ mean / weight.sum()
        mean -= middle
        total = scatter.sum(axis=0) + np.einsum("j,ja,jb->ab", weight, mean, mean)
        made = replace(
            self, mean=mean, scatter=scatter, total=total, center=self.center + self.scale * middle,
            units=None, ratio=ratio, weight=weight, log_determinant=log_determinant,
            n_units=of.in_data_sets(F).astype(np.float64),
            above_rows=self._unit_level | self.group_level,
            inside_units=self.scatter - _in_sets(of, of.squares / m[:, None, None], F),
        )  # fmt: skip
        for name in ("order", "constant", "group_level", "mostly_constant"):  # facts of the rows
            vars(made)[name] = getattr(self, name)
        return made

    @property
    def with_even_weights(self) -> StandardisedStats:
        """Of whitened statistics those whose intercepts weigh as much as rows, for screens.

        Where intercepts weigh the same share of the rows in all data sets, that changes nothing but
        the unit of the intercept.
        """
        mean = self.mean * np.sqrt(self.weights / self.n)[:, None]
        return replace(self, mean=mean, weight=None)

    @cached_property
    def unit_level(self) -> Flags:
        """Columns that describe units: they vary, but in no unit, (N,)."""
        return self._unit_level

    @cached_property
    def _unit_level(self) -> Flags:
        of = self.units
        if of is None:
            return np.zeros(len(self.names), dtype=bool)
        between = np.einsum("caa->ca", of.squares) / of.size[:, None]
        inside = np.einsum("jaa->a", self.scatter) - between.sum(axis=0)
        varies = np.diagonal(self.total) > CONSTANT_TOLERANCE * self.rows
        return np.asarray((inside <= _EXACTLY * self.rows) & varies & ~self.group_level)

    @cached_property
    def without_unit_level(self) -> StandardisedStats:
        """The same, where no column counts as one that describes units."""
        made = replace(self)
        vars(made)["unit_level"] = np.zeros(len(self.names), dtype=bool)
        return made

    @cached_property
    def of_units(self) -> StandardisedStats:
        """Statistics of units' means: one row a unit."""
        of = self.units
        assert of is not None
        F, m = len(self.n), of.size.astype(np.float64)
        n = of.in_data_sets(F).astype(np.float64)
        shift = _in_sets(of, of.sums / m[:, None], F) / n[:, None]
        scatter = _in_sets(of, of.squares / (m**2)[:, None, None], F)
        scatter -= n[:, None, None] * shift[:, :, None] * shift[:, None, :]
        mean = np.zeros_like(shift) if self.inside else self.mean + shift
        less = 1.0 if self.inside else 0.0
        made = replace(self, n=n - less, mean=mean, scatter=scatter, units=None)
        out = n <= less
        return made._without(out) if out.any() and not out.all() else _centred(made)

    @property
    def tells_inside(self) -> bool:
        """Whether two data sets or more have rows enough for deviations from their means."""
        return int((self.n >= 2.0).sum()) > 1

    @cached_property
    def log_scale(self) -> Floats:
        """Logarithms of the scales, (N,)."""
        return np.log(self.scale)

    @cached_property
    def rows(self) -> float:
        """Rows of all data sets."""
        return float(self.n.sum())

    @cached_property
    def squares(self) -> Floats:
        """Of each column in each data set, (F, N): the diagonals of the scatter matrices."""
        return np.array(np.einsum("jaa->ja", self.scatter))

    @cached_property
    def _still(self) -> Flags:
        """Where a column does not vary inside a data set of two rows or more, (F, N)."""
        n = self.n[:, None]
        return np.asarray((self.squares <= CONSTANT_TOLERANCE * n) & (n > 1))

    @cached_property
    def constant(self) -> Flags:
        """The same, (F, N), but where these are a part of the rows and others vary."""
        return self._still if self.varying is None else self._still & ~self.varying

    @cached_property
    def some_constant(self) -> bool:
        """Whether any column is constant in any data set, or was not measured there."""
        return bool(self.constant.any()) or self.some_unmeasured

    @cached_property
    def some_unmeasured(self) -> bool:
        """Whether a data set lacks a column."""
        return bool(self.unmeasured.any())

    @cached_property
    def group_level(self) -> Flags:
        """Columns that vary between data sets but in none of them, (N,)."""
        within = self._still | (self.n <= 1)[:, None]
        varies = np.diagonal(self.total) > CONSTANT_TOLERANCE * self.rows
        return np.asarray(within.all(axis=0) & self._still.any(axis=0) & varies)

    @cached_property
    def mostly_constant(self) -> Flags:
        """Columns that do not vary in data sets with more than half of the rows, (N,)."""
        rows = np.where(self.unmeasured, 0.0, self.n[:, None])
        return np.asarray((rows * self.constant).sum(axis=0) > rows.sum(axis=0) / 2)

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """What others make of it once, and find here again."""
        return {}

    @cached_property
    def _others(self) -> dict[bytes, StandardisedStats]:
        return {}

    def where_varying(self, child: int) -> StandardisedStats:
        """The statistics of the data sets in which a column is not constant; if in all, of all."""
        out = self.constant[:, child] | self.unmeasured[:, child]
        return self._without(self.unmeasured[:, child] if out.all() else out)

    def where_measured(self, child: int) -> StandardisedStats:
        """The statistics of the data sets that have a column."""
        return self._without(self.unmeasured[:, child])

    def _without(self, out: Flags) -> StandardisedStats:
        if not out.any() or out.all():
            return self
        key = out.tobytes()
        if key not in self._others:
            at = np.flatnonzero(~out)
            arrays: dict[str, Any] = {name: getattr(self, name)[at] for name in _OF_DATA_SETS}
            if self.units is not None:
                arrays["units"] = self.units.taken(at)
            if self.varying is not None:
                arrays["varying"] = self.varying[at]
            levels = tuple(self.levels[j] for j in at)
            self._others[key] = _centred(replace(self, levels=levels, **arrays))
        return self._others[key]

    def in_units(self, j: int, family: Family) -> GroupStats:
        """Of one data set, the statistics of the parents and, last, the child in their units."""
        child, parents = family
        at = np.array([*parents, child], dtype=np.intp)
        scale = self.scale[at]
        return GroupStats(
            tuple(self.names[i] for i in at),
            (self.levels[j],),
            self.n[j : j + 1].astype(np.int64),
            (self.center[at] + scale * self.mean[j, at])[None],
            (np.outer(scale, scale) * self.scatter[j][np.ix_(at, at)])[None],
            np.zeros(1, dtype=np.int64),
        )

    @cached_property
    def fewest(self) -> float:
        """Rows of the smallest data set."""
        return float(self.n.min())

    @cached_property
    def order(self) -> Key:
        """What parents are sorted by: the share of variance within data sets, then names.

        A likelihood with several maxima may end in another one where parents come in another
        order, and what they are called must not decide that.
        """
        within = np.cumsum(self.squares, axis=0)[-1]
        share = np.round(within / np.maximum(self.total.diagonal(), 1e-300), 9).tolist()
        ranked = sorted(range(len(self.names)), key=lambda k: (share[k], self.names[k]))
        rank = {k: r for r, k in enumerate(ranked)}
        return [rank[k] for k in range(len(self.names))].__getitem__

    def family(self, child: str, parents: Sequence[str]) -> Family:
        """The positions of a child and its parents."""
        return self.names.index(child), tuple(map(self.names.index, parents))


_made: WeakKeyDictionary[GroupStats, StandardisedStats] = WeakKeyDictionary()
_drawn: WeakKeyDictionary[GroupStats, list[StandardisedStats]] = WeakKeyDictionary()


def standardise(stats: GroupStats) -> StandardisedStats:
    """Centre and scale the statistics; made once for each `GroupStats`."""
    made = _made.get(stats)
    if made is None:
        made = _made[stats] = _standardise(stats)
    return made


def imputed(stats: GroupStats) -> list[StandardisedStats]:
    """Statistics that completed rows may have had, drawn once; none where no cell is missing."""
    if stats not in _drawn:
        draws = range(_IMPUTATIONS if stats.imputed else 0)
        _drawn[stats] = [_standardise(stats.drawn(k)) for k in draws]
    return _drawn[stats]


def _standardise(stats: GroupStats) -> StandardisedStats:
    n, scatter = stats.n.astype(np.float64), stats.scatter
    N = len(stats.names)
    unmeasured = np.tile(stats.n[:, None] == 0, (1, N))
    if stats.filled is not None:
        n = stats.filled.rows(stats.n)
        scatter = scatter * (n / np.maximum(stats.n, 1))[:, None, None]
        unmeasured = stats.filled.observed == 0
    check_magnitude(stats.names, np.abs(stats.mean).max(axis=0))
    least = np.array([(facts.resolution or 0.0) ** 2 / 12 for facts in stats.facts])
    units = np.zeros((N, N)), np.zeros(N), np.ones(N), least
    moments = n, stats.mean, scatter
    made = _centred(
        StandardisedStats(
            stats.names, stats.levels, *moments, *units, unmeasured, units=_repeated(stats.units)
        )
    )
    check_magnitude(stats.names, np.where(made.total.diagonal() > 0, made.scale, 0.0))
    return made


def _in_sets(units: UnitSums, values: Floats, data_sets: int) -> Floats:
    """Sums over the kinds of units, (C, ...), of each data set, (F, ...), which come in order."""
    begin = np.searchsorted(units.data_set, np.arange(data_sets))
    return np.asarray(np.add.reduceat(values, begin, axis=0), dtype=np.float64)


def _repeated(units: UnitSums | None) -> UnitSums | None:
    """Units, if any has several rows: else a variance between them is one between rows."""
    return None if units is None or (units.size == 1).all() else units


def check_digits(data: StandardisedStats) -> None:
    """Raise for a column that is so far from 0 that predictions would have no digits left.

    A covariance of coefficients holds the square of that distance, beside squares of SDs.
    """
    far = (data.total.diagonal() > 0) & (np.abs(data.center) > _FAR * data.scale)
    if far.any():
        k = int(far.argmax())
        raise DataError(
            f"column {data.names[k]!r} is about {data.center[k]:.2g} and has an SD of "
            f"{data.scale[k]:.2g}, so that predictions would have no digits left; subtract a "
            "number from it, such as its smallest value"
        )


def _centred(of: StandardisedStats) -> StandardisedStats:
    """The same standardised; what is given may have any unit and origin."""
    # Sums go over data sets in their order, element by element: matrix products would give other
    # bits on another CPU, and other columns beside one could change its own.
    # Around the first data set's mean: a pooled mean of large numbers would lose digits.
    n, rows = of.n, of.n.sum()
    away = n[:, None] * (of.mean - of.mean[0])
    middle = of.mean[0] + np.cumsum(away, axis=0)[-1] / rows
    mean = of.mean - middle
    squares = np.einsum("jaa->ja", of.scatter) + n[:, None] * mean**2
    sd = np.sqrt(np.cumsum(squares, axis=0)[-1] / rows)
    sd[sd == 0] = 1.0
    mean = np.ascontiguousarray(mean / sd)
    scatter = np.ascontiguousarray(of.scatter / np.outer(sd, sd))
    parts = (S + k * np.outer(m, m) for S, k, m in zip(scatter, n, mean, strict=True))
    total = reduce(np.add, parts)
    center, scale, least = of.center + of.scale * middle, of.scale * sd, of.least / sd**2
    own: dict[str, Any] = {"center": center, "scale": scale, "least": least}
    if of.units is not None:
        own["units"] = of.units.scaled(sd)
    return replace(of, mean=mean, scatter=scatter, total=total, **own)


class Packed(NamedTuple):
    """Families as the kernels take them."""

    children: Integers  # (M,)
    offsets: Integers  # where the parents of each begin, (M + 1,)
    parents: Integers  # of all families, those of each in order

    @property
    def sizes(self) -> Integers:
        """Parents of each family, (M,)."""
        return self.offsets[1:] - self.offsets[:-1]


def pack(data: StandardisedStats, families: Sequence[Family], key: Key | None = None) -> Packed:
    """Families for the kernels, their parents in the order of the data or by another key."""
    key = key or data.order
    if len(families) < _MANY:
        ordered: list[int] = []
        offsets = [0]
        for _, some in families:
            ordered += sorted(some, key=key)
            offsets.append(len(ordered))
        return Packed(
            np.array([child for child, _ in families], dtype=np.int64),
            np.array(offsets, dtype=np.int64),
            np.array(ordered, dtype=np.int64),
        )
    M, N, sizes = len(families), len(data.names), parent_counts(families)
    ends = np.append(0, np.cumsum(sizes))
    children = np.fromiter(map(_CHILD, families), np.int64, M)
    parents = np.fromiter(chain.from_iterable(map(_PARENTS, families)), np.int64, ends[-1])
    rank = np.fromiter(map(key, range(N)), np.int64, N)
    family = np.repeat(np.arange(M), sizes)
    return Packed(children, ends, parents[np.argsort(family * (2 * N) + rank[parents])])


def parent_counts(families: Sequence[Family]) -> Integers:
    """The number of parents of each family, (M,)."""
    return np.fromiter(map(len, map(_PARENTS, families)), np.int64, len(families))


def order(parents: Sequence[int], key: Key) -> list[int]:
    """What brings the parents of a family into the order that the kernels have them in."""
    return sorted(range(len(parents)), key=lambda k: key(parents[k]))


def units(data: StandardisedStats, packed: Packed, reml: bool) -> Floats:
    """What the units of the data add to deviances of standardised columns, (M,).

    The density of the child; and for REML the determinant of the parents' information.
    """
    of_child = data.log_scale[packed.children]
    if not reml:
        return np.asarray(2 * data.rows * of_child)
    sizes = packed.sizes
    family = np.repeat(np.arange(len(sizes)), sizes)
    of_parents = np.bincount(family, data.log_scale[packed.parents], len(sizes))
    return np.asarray(2 * (data.rows - 1 - sizes) * of_child + 2 * of_parents)


def unit_arrays(data: StandardisedStats, q: int) -> tuple[Any, ...]:
    """What `kernels.units.Units` is made of, for families of up to q columns."""
    F, of = len(data.n), data.units
    assert of is not None
    room = np.empty(F), np.empty((F, q + 1)), np.empty((F, q, q))
    size, count = of.size.astype(np.float64), of.count.astype(np.float64)
    return (
        data.mean,
        data.scatter,
        of.data_set,
        size,
        count,
        of.sums,
        of.squares,
        *room,
        data.inside,
    )


def to_units(data: StandardisedStats, parents: Sequence[int]) -> Floats:
    """The matrix (q, q) from coefficients on standardised parents to those in their units."""
    q = len(parents) + 1
    T = np.zeros((q, q))
    T[0, 0] = 1.0
    T[0, 1:] = -data.center[list(parents)] / data.scale[list(parents)]
    T[range(1, q), range(1, q)] = 1.0 / data.scale[list(parents)]
    return T
