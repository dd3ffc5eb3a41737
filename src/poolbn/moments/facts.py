"""What the values of a column look like, as far as that adds up: decimals, extremes, few values.

Facts of the rows of two parts are those of all rows, to the last bit and in any order, so each one
is a function of the values alone, not of how they came.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from math import inf, isnan
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats

FEW = 10  # different values that are kept
FULL = 7  # decimals of a column that has more than six
MOST_ROWS = 50_000  # of which it is known whether their whole numbers all differ
CODES = frozenset({-9.0, -99.0, -999.0, -9999.0})  # what stands for a missing value
_FIRST = 4  # cells that decide about the decimals of most columns
_AHEAD = (16, 256)  # and about their different values
_CHUNK = 8192  # cells that stay in the fastest memory


class Distinct(IntEnum):
    """How many different values there are."""

    NONE, TWO, FEW, MANY, UNKNOWN = range(5)

    def joined(self, other: Distinct) -> Distinct:
        """Of rows whose values are not known, and of others: two and two may be four."""
        both = Distinct.NONE not in (self, other)
        return max(self, other, Distinct.FEW if both else Distinct.NONE)


class Edge(NamedTuple):
    """The smallest value; where it may be a code, how many cells have it and what comes next."""

    value: float = inf
    cells: int = 0
    following: float = inf

    @staticmethod
    def of(x: Floats, smallest: float) -> Edge:
        """Of values (B,) whose smallest is known and a code."""
        others = x[x != smallest]
        return Edge(smallest, len(x) - len(others), float(others.min(initial=inf)))

    def joined(self, other: Edge) -> Edge:
        """Of the rows of both."""
        if other.value < self.value:
            return other.joined(self)
        if self.value not in CODES:
            return self
        if other.value > self.value:
            return Edge(self.value, self.cells, min(self.following, other.value))
        following = min(self.following, other.following)
        return Edge(self.value, self.cells + other.cells, following)


class Extent(NamedTuple):
    """What is never written to a file, since it has values of rows."""

    low: Edge = Edge()  # the lower end
    high: Edge = Edge()  # the upper end, of the values times -1
    # all values, where these are whole numbers, all different, and at most 50,000
    numbers: frozenset[float] | None = frozenset()

    def joined(self, other: Extent) -> Extent:
        """Of the rows of both."""
        low, high = self.low.joined(other.low), self.high.joined(other.high)
        mine, theirs = self.numbers, other.numbers
        if mine is None or theirs is None or len(mine) + len(theirs) > MOST_ROWS:
            return Extent(low, high, None)
        return Extent(low, high, mine | theirs if mine.isdisjoint(theirs) else None)


@dataclass(frozen=True)
class ColumnFacts:
    """Facts of one column, over all data sets."""

    digits: int | None = 0  # decimals of its values, 0 to 6; 7 for more; None where it is not known
    # the values of rows that were read here; None for more than 10
    values: frozenset[float] | None = frozenset()
    # how many different values there are in rows of which only a file tells
    told: Distinct = Distinct.NONE
    # its extremes; None where only a file tells
    extent: Extent | None = field(default=Extent(), repr=False)

    @property
    def resolution(self) -> float | None:
        """The largest of 1, 0.1, ... 1e-6 that all values are multiples of; 0 where none is."""
        if self.digits is None:
            return None
        return 0.0 if self.digits == FULL else float(f"1e-{self.digits}")

    @cached_property
    def distinct(self) -> Distinct:
        """How many different values there are."""
        if self.told is Distinct.UNKNOWN:
            return self.told
        if self.values is None:
            return Distinct.MANY
        own = Distinct.FEW if len(self.values) > 2 else Distinct.TWO
        return self.told.joined(own if self.values else Distinct.NONE)

    def joined(self, other: ColumnFacts) -> ColumnFacts:
        """Facts of the rows of both."""
        digits = None
        if self.digits is not None and other.digits is not None:
            digits = max(self.digits, other.digits)
        values = None
        if self.values is not None and other.values is not None:
            both = self.values | other.values
            values = both if len(both) <= FEW else None
        extent = None
        if self.extent is not None and other.extent is not None:
            extent = self.extent.joined(other.extent)
        return ColumnFacts(digits, values, self.told.joined(other.told), extent)

    def after(self, x: Floats) -> ColumnFacts:
        """Facts of these rows and of more, (B,): what is known already is not looked for.

        NaN is missing, and no value.
        """
        if not len(x):
            return self
        # Not x.min(), which goes through Python first. NaN wins in np.minimum, which is faster.
        smallest, largest = float(np.minimum.reduce(x)), float(np.maximum.reduce(x))
        if isnan(smallest):
            smallest, largest = float(np.fmin.reduce(x)), float(np.fmax.reduce(x))
        if isnan(smallest):
            return self
        if self._settled and not CODES & {smallest, -largest}:
            extent = Extent(Edge(smallest), Edge(-largest), None)
            return self.joined(ColumnFacts(FULL, None, Distinct.NONE, extent))
        if np.isnan(x).any():
            return self.after(x[~np.isnan(x)])
        digits = _digits(x, self.digits or 0)
        near = digits == 0 and largest - smallest < FEW
        whole = range(int(smallest), int(largest) + 1) if near else range(0)
        values = _values(x, self.values, whole)
        low = Edge.of(x, smallest) if smallest in CODES else Edge(smallest)
        high = Edge.of(-x, -largest) if -largest in CODES else Edge(-largest)
        sought = digits == 0 and self.extent is not None and self.extent.numbers is not None
        numbers = _numbers(x, largest - smallest) if sought else None
        extent = Extent(low, high, numbers)
        found = ColumnFacts(digits, values, Distinct.NONE, extent)
        return found if self is NOTHING else self.joined(found)

    @property
    def _settled(self) -> bool:
        """Whether more rows can change the extremes alone."""
        return self.digits == FULL and self.values is None

    def public(self) -> ColumnFacts:
        """What may be handed on: nothing that is a value of a row."""
        return ColumnFacts(self.digits, frozenset(), self.distinct, None)


NOTHING = ColumnFacts()  # of no rows
UNKNOWN = ColumnFacts(None, frozenset(), Distinct.UNKNOWN, None)


def joined(left: Iterable[ColumnFacts], right: Iterable[ColumnFacts]) -> tuple[ColumnFacts, ...]:
    """Facts of columns, of the rows of both."""
    return tuple(a.joined(b) for a, b in zip(left, right, strict=True))


def _digits(x: Floats, known: int) -> int:
    """The largest number of decimals, `known` if none has more."""
    if known == FULL or any(map(_is_long, x[:_FIRST].tolist())):
        return FULL
    for start in range(0, len(x), _CHUNK):
        rest = x[start : start + _CHUNK]
        while known < FULL and len(rest := _longer(rest, known)):
            known += 1
    return known


def _is_long(x: float) -> bool:
    """Whether `_whole` says so of six decimals, for one number."""
    y = x * 10.0 ** (FULL - 1)
    return abs(y) < 2.0**52 and abs(y - round(y)) > _rounding(FULL - 1) * abs(y)


def _rounding(digits: int) -> float:
    """What is left to rounding; it grows, so that who passes passes with more decimals too."""
    return (8 + 2 * digits) * 2.0**-52


def _longer(x: Floats, digits: int) -> Floats:
    """The values that have more decimals; nearly all are done with by a test without rounding."""
    power = 10.0**digits
    with np.errstate(over="ignore"):
        exact = np.rint(x) == x if digits == 0 else np.rint(x * power) / power == x
    rest: Floats = x[~exact]
    return rest[~_whole(rest, digits)] if len(rest) else rest


def _whole(x: Floats, digits: int) -> Flags:
    """Which values have no more than so many decimals, but for rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        y = x * 10.0**digits
        return np.asarray(np.abs(y - np.rint(y)) <= _rounding(digits) * np.abs(y))


def _values(x: Floats, known: frozenset[float] | None, possible: range) -> frozenset[float] | None:
    """All different values, unless there are many; `possible`: all that there may be, if known."""
    if known is None:
        return None
    for ahead in _AHEAD:
        known = known.union(x[:ahead].tolist())
        if len(known) > FEW:
            return None
    if possible and known.issuperset(possible):
        return known
    rest = x
    for value in known:
        rest = rest[rest != value]
    while len(rest) and len(known) <= FEW:
        known = known.union((float(rest[0]),))
        rest = rest[rest != rest[0]]
    return known if len(known) <= FEW else None


def _numbers(x: Floats, extent: float) -> frozenset[float] | None:
    """The values, which are whole, if no two are the same and there are not too many."""
    if len(x) > MOST_ROWS or extent + 1 < len(x):
        return None
    numbers = frozenset(x.tolist())
    return numbers if len(numbers) == len(x) else None
