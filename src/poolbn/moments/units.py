"""Units inside data sets: sums of their rows, by how many rows a unit has.

Patients of a clinic, pupils of a school: rows of a unit are alike. All that a model with a random
intercept for each unit needs, beside the statistics of the data sets, is how many units there are
of each size, and the sums of their rows' sums and of products of these; see `kernels.units`. They
do not grow with the number of units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from poolbn.arrays import Flags, Floats, Integers, Positions
from poolbn.moments.sums import UnitRows
from poolbn.run.compiling import kernels


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Units of C kinds: those of so many rows in a data set, in this order.

    Attributes:
        name: the column that says the units.
        data_set: of each kind, (C,).
        size: rows of each unit, (C,); a mean where units of several sizes were put together.
        count: how many units there are, (C,).
        sums: of units' sums of rows, about the means of data sets, (C, N).
        squares: of products of these sums, (C, N, N).
    """

    name: str
    data_set: Integers
    size: Floats
    count: Integers
    sums: Floats
    squares: Floats

    @property
    def n_units(self) -> int:
        """Units of all data sets."""
        return int(self.count.sum())

    def in_data_sets(self, data_sets: int) -> Integers:
        """Units of each data set, (F,)."""
        return np.bincount(self.data_set, self.count, data_sets).astype(np.int64)

    def chosen(self, columns: Positions) -> Self:
        """Of some columns."""
        squares = self.squares[:, columns[:, None], columns]
        return replace(self, sums=self.sums[:, columns], squares=squares)

    def taken(self, at: Sequence[int] | Integers) -> Self:
        """Of the data sets at these positions, which may repeat."""
        kinds = [np.flatnonzero(self.data_set == j) for j in at]
        order = np.concatenate([np.zeros(0, dtype=np.intp), *kinds])
        new = np.repeat(np.arange(len(kinds)), list(map(len, kinds)))
        return replace(
            self,
            data_set=new,
            size=self.size[order],
            count=self.count[order],
            sums=self.sums[order],
            squares=self.squares[order],
        )

    def moved(self, shift: Floats) -> Self:
        """About other points of data sets, at these distances from those so far, (F, N)."""
        away = shift[self.data_set]  # a sum of m rows is less by m times that
        m, k = self.size[:, None], self.count[:, None]
        cross = self.sums[:, :, None] * away[:, None, :]
        own = (k * m**2)[:, :, None] * away[:, :, None] * away[:, None, :]
        squares = self.squares - m[:, :, None] * (cross + np.swapaxes(cross, 1, 2)) + own
        return replace(self, sums=self.sums - k * m * away, squares=squares)

    def merged(self, good: Callable[[UnitSums], Flags]) -> UnitSums:
        """With neighbouring sizes of a data set put together until all kinds are `good`.

        A kind that is not is put with the next larger one, or where it is the largest with the next
        smaller one, as long as there is one. A model then takes units for as large as they are on
        average.
        """
        now, done = self, -1
        while True:
            poor = np.flatnonzero(~good(now) & (now.data_set > done))
            if not len(poor):
                return now
            c = int(poor[0])
            own = np.flatnonzero(now.data_set == now.data_set[c])
            if len(own) == 1:
                done = int(now.data_set[c])
                continue
            place = int(np.flatnonzero(own == c)[0])
            other = own[place + 1] if place + 1 < len(own) else own[place - 1]
            now = now._pair(min(c, other), max(c, other))

    def _pair(self, a: int, b: int) -> UnitSums:
        """With two kinds as one.

        Squares of means of units stay what they are, times the rows of each: what is left inside
        units is exact, and statistics that are whitened are those of some rows.
        """
        k, m = self.count[[a, b]], self.size[[a, b]]
        size = self.size.copy()
        size[a] = float(k @ m) / float(k.sum())
        rest = np.delete(np.arange(len(size)), b)
        added = {}
        for name in ("count", "sums", "squares"):
            whole = getattr(self, name).copy()
            if name == "squares":
                whole[a] = size[a] * (whole[a] / m[0] + whole[b] / m[1])
            else:
                whole[a] += whole[b]
            added[name] = whole[rest]
        return replace(self, data_set=self.data_set[rest], size=size[rest], **added)

    def scaled(self, scale: Floats) -> Self:
        """Of columns divided by these numbers, (N,)."""
        sums, squares = self.sums / scale, self.squares / np.outer(scale, scale)
        return replace(self, sums=np.ascontiguousarray(sums), squares=np.ascontiguousarray(squares))


def together(name: str, parts: Sequence[UnitSums], at: Sequence[Integers], width: int) -> UnitSums:
    """Units of all parts; `at` says which data set each of a part's is."""
    data_set = np.concatenate([of[part.data_set] for part, of in zip(parts, at, strict=True)])
    size = np.concatenate([part.size for part in parts])
    both = np.column_stack([data_set.astype(np.float64), size])
    keys, kind = np.unique(both, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    made = _zeros(name, keys[:, 0].astype(np.int64), keys[:, 1].copy(), width)
    np.add.at(made.count, kind, np.concatenate([part.count for part in parts]))
    np.add.at(made.sums, kind, np.concatenate([part.sums for part in parts]))
    np.add.at(made.squares, kind, np.concatenate([part.squares for part in parts]))
    return made


def _kinds(data_set: Integers, size: Integers) -> tuple[Integers, Integers]:
    """Those that there are, (2, C), in order, and that of each unit."""
    width = int(size.max(initial=0)) + 1
    keys = data_set * width + size
    most = int(keys.max(initial=0)) + 1
    if most > _TABLE + 4 * len(keys):
        found, kind = np.unique(keys, return_inverse=True)
    else:
        there = np.bincount(keys, minlength=most) > 0
        found, kind = np.flatnonzero(there), (np.cumsum(there) - 1)[keys]
    both = np.stack([found // width, found % width]).astype(np.int64)
    return both, np.asarray(kind, dtype=np.int64).reshape(-1)


def _zeros(name: str, data_set: Integers, size: Floats, width: int) -> UnitSums:
    C = len(size)
    sums, squares = np.zeros((C, width)), np.zeros((C, width, width))
    return UnitSums(name, data_set, size, np.zeros(C, dtype=np.int64), sums, squares)


_NONE = np.zeros(0, dtype=np.int64)
_TABLE = 2**20  # kinds of units that are counted in a table
_TOGETHER = 512  # units whose sums are multiplied at once


@dataclass
class UnitTally:
    """Sums of the rows of each unit, as these come; in which order does not matter.

    Attributes:
        name: the column that says the units.
        center: what is taken from rows before they are added, (F, N): means of the first rows of a
            data set, since sums of large numbers lose digits.
        known: which data sets have such means, (F,).
        sums: of each unit, (N, U or more).
        unit: which unit a name is in the data set where it came first, -1 for none yet.
        others: units with the names of others, in other data sets.
        data_set: of each unit, (U,) or more.
        size: rows of each unit, (U,) or more.
        count: how many units there are, (1,).
    """

    name: str
    center: Floats
    sums: Floats
    known: Integers = field(default_factory=lambda: _NONE)
    unit: Integers = field(default_factory=lambda: _NONE)
    others: dict[tuple[int, int], int] = field(default_factory=dict)
    data_set: Integers = field(default_factory=lambda: _NONE)
    size: Integers = field(default_factory=lambda: _NONE)
    count: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @staticmethod
    def of(name: str, width: int) -> UnitTally:
        """Of no rows."""
        return UnitTally(name, np.zeros((0, width)), np.zeros((width, 0)))

    def rows(self, names: Integers, places: Integers, ends: Integers) -> UnitRows:
        """Rows of units named so, (B,), for `Sums.add_rows` to add."""
        more = np.zeros((max(len(ends) - len(self.center), 0), len(self.sums)))
        self.center = np.concatenate([self.center, more])
        self.known = _grown(self.known, len(self.center))
        units = self._numbered(names, places, ends)
        self.sums = _grown(self.sums, int(self.count[0]))
        return UnitRows(units, self.known, self.center, self.sums)

    def _numbered(self, names: Integers, places: Integers, ends: Integers) -> Integers:
        """The unit of each row in order of data set, (B,)."""
        most = int(names.max(initial=-1)) + 1
        self.unit = _grown(self.unit, most, -1)
        room = min(most, int(self.count[0]) + len(names)) + len(self.others)
        self.data_set, self.size = _grown(self.data_set, room), _grown(self.size, room)
        units = np.empty(len(names), dtype=np.int64)
        kernels("unit_sums").number(
            names, places, ends, self.unit, self.data_set, self.size, self.count, units
        )
        elsewhere = np.flatnonzero(units < 0)
        if len(elsewhere):
            ordered = np.empty_like(names)
            ordered[places] = names
            codes = np.searchsorted(ends, elsewhere, side="right")
            pairs = np.stack([codes, ordered[elsewhere]])
            found, which = np.unique(pairs, axis=1, return_inverse=True)
            own = [(int(j), int(name)) for j, name in found.T]
            for pair in own:
                if pair not in self.others:
                    self.others[pair] = int(self.count[0])
                    self.data_set = _grown(self.data_set, int(self.count[0]) + 1)
                    self.data_set[self.count[0]] = pair[0]
                    self.count += 1
            units[elsewhere] = np.array([self.others[pair] for pair in own])[which.reshape(-1)]
            self.size = _grown(self.size, int(self.count[0]))
            self.size[: self.count[0]] += np.bincount(
                units[elsewhere], minlength=int(self.count[0])
            )
        return units

    @property
    def shared(self) -> int:
        """Names that occur in several data sets."""
        return len({name for _, name in self.others})

    def made(self, mean: Floats) -> UnitSums:
        """About the means of data sets, (F, N)."""
        U = int(self.count[0])
        shift = mean - self.center[: len(mean)]
        return _gathered(self.name, self.data_set[:U], self.size[:U], shift, self.sums)

    def open(self, called: Callable[[Integers], list[Hashable]], data_sets: int) -> OpenUnits:
        """The units, of which other parts may have rows; `called` says the names of numbers."""
        U = int(self.count[0])
        number = np.zeros(U, dtype=np.int64)
        there = np.flatnonzero(self.unit >= 0)
        number[self.unit[there]] = there
        for (_, name), unit in self.others.items():
            number[unit] = name
        data_set, size, sums = self.data_set[:U], self.size[:U], self.sums[:, :U].copy()
        center = self.center[:data_sets]
        return OpenUnits(self.name, called(number), data_set, size, sums, center)


@dataclass(frozen=True, eq=False)
class OpenUnits:
    """Sums of units by name, of which other parts may have rows too.

    Attributes:
        name: the column that says the units.
        names: of units, U.
        data_set: of each, (U,).
        size: rows so far, (U,).
        sums: of these rows about the centres, (N, U).
        center: of data sets, (F, N).
    """

    name: str
    names: list[Hashable]
    data_set: Integers
    size: Integers
    sums: Floats
    center: Floats

    def about(self, center: Floats, at: Integers) -> OpenUnits:
        """About other centres, where `at` says which data sets the own ones are."""
        shift = (center[at] - self.center)[self.data_set]
        sums = self.sums - self.size * shift.T
        return replace(self, data_set=at[self.data_set], center=center, sums=sums)

    def joined(self, other: OpenUnits) -> OpenUnits:
        """With those of another part, about the same centres."""
        index: dict[tuple[int, Hashable], int] = {}
        pairs = (zip(of.data_set.tolist(), of.names, strict=True) for of in (self, other))
        where = [index.setdefault(pair, len(index)) for pair in chain(*pairs)]
        at, U = np.array(where, dtype=np.int64), len(index)
        lines = np.concatenate([self.sums, other.sums], axis=1)
        size = np.bincount(at, np.concatenate([self.size, other.size]), U).astype(np.int64)
        sums = np.array([np.bincount(at, line, U) for line in lines]).reshape(len(lines), U)
        data_set = np.array([j for j, _ in index], dtype=np.int64)
        names = [name for _, name in index]
        return replace(self, names=names, data_set=data_set, size=size, sums=sums)

    @property
    def shared(self) -> int:
        """Names that occur in several data sets."""
        return sum(times > 1 for times in Counter(self.names).values())

    def made(self, mean: Floats) -> UnitSums:
        """About the means of data sets, (F, N)."""
        lines = np.ascontiguousarray(self.sums)
        return _gathered(self.name, self.data_set, self.size, mean - self.center, lines)


def of_rows(name: str, data_set: Integers, unit: Integers, columns: Floats) -> UnitSums:
    """Those of rows (N, n), about 0; units are 0, 1, ... from data set to data set."""
    U = int(unit.max()) + 1
    own = np.zeros(U, dtype=np.int64)
    own[unit] = data_set
    lines = np.array([np.bincount(unit, column, U) for column in columns]).reshape(-1, U)
    shift = np.zeros((int(own.max()) + 1, len(columns)))
    return _gathered(name, own, np.bincount(unit, minlength=U), shift, lines)


def _gathered(
    name: str, data_set: Integers, size: Integers, shift: Floats, lines: Floats
) -> UnitSums:
    """Those of units with these sums of rows, (N, U or more), less a shift of data sets (F, N)."""
    (own, rows), kind = _kinds(data_set, size)
    found = _zeros(name, own, rows.astype(np.float64), len(lines))
    places, ends = np.empty(len(kind), np.int64), np.zeros(len(own), np.int64)
    kernels("moments").sort(kind, places, ends)
    order = np.empty_like(places)
    order[places] = np.arange(len(places))
    found.count[:] = np.diff(ends, prepend=0)
    work = np.zeros((-(-len(lines) // 4) * 4, _TOGETHER))
    gather = kernels("unit_sums").gather
    gather(order, ends, own, rows, shift, lines, work, found.sums, found.squares)
    return found


Array = TypeVar("Array", bound=NDArray[Any])


def _grown(array: Array, size: int, fill: int = 0) -> Array:
    """With room for so many on the last axis; doubles, so that growing one by one costs little."""
    have = array.shape[-1]
    if size <= have:
        return array
    shape = (*array.shape[:-1], max(size + size // 4, 2 * have))
    grown: Any = np.zeros(shape, array.dtype) if fill == 0 else np.full(shape, fill, array.dtype)
    grown[..., :have] = array
    return cast("Array", grown)
