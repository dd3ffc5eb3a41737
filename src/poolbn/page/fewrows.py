"""Data sets that a shared report puts together, node by node, so that no small cell follows.

A cell is rows of a data set with the same levels of discrete columns. A node with small cells in a
data set is fitted with that data set and others as one. What a reader can subtract then are sums
over several data sets, of which no cell is small. Two nodes that have a discrete column in common
could tell by their difference what neither does: where they put some of the same data sets
together, they put together the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import TypeVar

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.assess.residuals import CELL, FEWEST
from poolbn.inference.drawing import draw_columns
from poolbn.moments.data import Data
from poolbn.network.network import Network

Key = TypeVar("Key", bound=Hashable)

_DRAWS = 2000  # rows of each data set that are drawn where none are known
_UNSURE = 2  # times as many rows are to be expected then


@dataclass(frozen=True, eq=False)
class Grouping:
    """How a node is fitted."""

    child: str  # the node
    # Those of its parents that are left: with others its cells are small in all data sets together.
    parents: tuple[str, ...]
    together: Flags  # the data sets that count as one, (F,)
    rare: bool = False  # whether a level of the node is too rare in all data sets together

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.parents, self.child)


@dataclass(frozen=True, eq=False)
class Counter:
    """Rows by data set and levels of discrete columns."""

    n: Integers  # rows of each data set, (F,)
    sizes: Mapping[str, int]  # the number of levels of each column; 0 where it is not discrete
    count: Callable[[tuple[str, ...]], Floats]  # rows by levels of columns, (F, levels, ...)

    def whole(self) -> Counter:
        """Of all data sets as one."""
        n = self.n.sum(keepdims=True)
        return Counter(n, self.sizes, lambda names: self.count(names).sum(axis=0)[None])

    def groupings(self, families: Mapping[Key, tuple[str, Sequence[str]]]) -> dict[Key, Grouping]:
        """How nodes with these parents are fitted."""
        found = {key: self._grouping(child, tuple(of)) for key, (child, of) in families.items()}
        joined = True
        while joined:
            joined = False
            for a, b in combinations(found, 2):
                one, two = found[a].together, found[b].together
                if self._meet(found[a], found[b]) and (one & two).any() and (one != two).any():
                    both, joined = one | two, True
                    found[a], found[b] = (replace(found[k], together=both) for k in (a, b))
        return found

    def _meet(self, one: Grouping, two: Grouping) -> bool:
        return any(self.sizes[name] for name in set(one.columns) & set(two.columns))

    def _grouping(self, child: str, parents: tuple[str, ...]) -> Grouping:
        """Of one node, whatever others do; parents go until the cells of the others are enough."""
        while True:
            tables = self._tables(child, parents)
            few = np.zeros(len(self.n), dtype=bool)
            for counts, least in tables:
                few |= _few(counts, least)
            if not few.any():
                return Grouping(child, parents, few)
            together = self._enough(tables, few)
            if together is not None:
                return Grouping(child, parents, together)
            if not parents:
                return Grouping(child, (), np.ones_like(few), rare=True)
            parents = self._fewer(child, parents)

    def _tables(self, child: str, parents: Sequence[str]) -> list[tuple[Floats, int]]:
        """Counts (F, cells) and the rows that each cell has to have.

        Where all columns are discrete, the node has a parameter for each configuration, else for
        each level of a parent.
        """
        F, K = len(self.n), self.sizes[child]
        discrete = tuple(name for name in parents if self.sizes[name])
        if K and len(discrete) == len(parents):
            counts = self.count((*discrete, child)).reshape(F, -1, K)
            found = [(counts.reshape(F, -1), CELL)]
            return [*found, (counts.sum(axis=2), FEWEST)] if parents else found
        found = [(self.count((name,)), FEWEST) for name in discrete]
        if K:
            found += [(self.count((name, child)).reshape(F, -1), CELL) for name in discrete]
            found.append((self.count((child,)), CELL))
        return found

    def _enough(self, tables: Sequence[tuple[Floats, int]], few: Flags) -> Flags | None:
        """These data sets with those that have fewest rows, until their sums are enough."""
        together = few.copy()
        others = sorted(np.flatnonzero(~few).tolist(), key=lambda j: int(self.n[j]))
        while True:
            if together.sum() > 1 and not any(
                _few(counts[together].sum(axis=0)[None], least).any() for counts, least in tables
            ):
                return together
            if not others:
                return None
            together[others.pop(0)] = True

    def _fewer(self, child: str, parents: tuple[str, ...]) -> tuple[str, ...]:
        """Without the discrete parent that has the smallest cell; if there is none, without any."""
        discrete = [name for name in parents if self.sizes[name]]
        if not discrete:
            return ()

        def smallest(name: str) -> float:
            names = (name, child) if self.sizes[child] else (name,)
            counts = self.count(names).sum(axis=0)
            return float(counts[counts > 0].min())

        gone = min(discrete, key=smallest)
        return tuple(name for name in parents if name != gone)


def positions(names: Sequence[Hashable], some: Sequence[Hashable]) -> list[int]:
    """Where some names are."""
    return [names.index(name) for name in some]


def counter(data: Data) -> Counter:
    """Of rows, or of counts of rows; rows with missing cells count for those that they have."""
    sizes = {name: len(levels) for name, levels in zip(data.names, data.categories, strict=True)}
    F = len(data.levels)

    @cache
    def count(names: tuple[str, ...]) -> Floats:
        shape = (F, *(sizes[name] for name in names))
        rows = data.cases(names, incomplete=True)
        codes, sets = np.array(rows.columns), rows.data_set
        n = np.ones(len(sets)) if rows.n is None else rows.n.astype(np.float64)
        there = ~np.isnan(codes).any(axis=0)
        at = np.vstack([sets[there], codes[:, there].astype(np.int64)])
        flat = np.bincount(np.ravel_multi_index(tuple(at), shape), n[there], int(np.prod(shape)))
        return np.asarray(flat.reshape(shape), dtype=np.float64)

    return Counter(data.n, sizes, count)


def expected(net: Network) -> Counter:
    """Of the rows that a network expects, halved."""
    F, order = len(net.levels), net.dag.topological_order()
    sets = np.repeat(np.arange(F), _DRAWS)
    drawn = draw_columns(net.fits, order, sets, np.random.default_rng(0))
    sizes = {name: len(net.fits[name].categories) for name in order}

    def count(names: tuple[str, ...]) -> Floats:
        shape = (F, *(sizes[name] for name in names))
        codes = [drawn[name].astype(np.int64) for name in names]
        flat = np.bincount(np.ravel_multi_index((sets, *codes), shape), minlength=math.prod(shape))
        share = net.n / (_DRAWS * _UNSURE)
        return np.asarray(flat.reshape(shape) * share.reshape(F, *[1] * len(names)))

    return Counter(net.n, sizes, count)


def _few(counts: Floats, least: int) -> Flags:
    """Data sets in which some count is neither 0 nor large enough, (F,)."""
    few = (counts > 0) & (counts < least)
    return np.asarray(few.reshape(len(few), -1).any(axis=1))
