"""Counts of discrete columns: the sufficient statistics of discrete nodes with discrete parents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_LARGEST = 2**62  # configurations that are one number


class Cells(NamedTuple):
    """How often each configuration of all discrete columns occurs in each data set.

    Configurations that do not occur are not there, and none is there twice. Codes of a column are
    0 to its number of levels, less 1. Where that number is asked for (`sizes`), it is that of all
    M columns.

    Attributes:
        data_set: (R,), from 0.
        codes: (R, M).
        n: rows, (R,).

    Examples:
        >>> rows = np.array([[0, 1], [0, 1], [1, 0]])
        >>> cells = Cells.of(np.array([0, 0, 1]), rows, [2, 2])
        >>> cells.n.tolist()
        [2, 1]
        >>> cells.counts(1, [0], [2, 2], data_sets=2).tolist()
        [[[0, 2], [0, 0]], [[0, 0], [1, 0]]]
    """

    data_set: Integers
    codes: Integers
    n: Integers

    @staticmethod
    def of(data_set: Integers, codes: Integers, sizes: Sequence[int]) -> Cells:
        """Those of rows: the data set of each, (B,), and its codes, (B, M)."""
        return Cells(data_set, codes, np.ones(len(codes), dtype=np.int64)).merged(sizes)

    def merged(self, sizes: Sequence[int]) -> Cells:
        """The same counts, in order of data set and codes, each configuration once."""
        F = int(self.data_set.max(initial=0)) + 1
        if F * np.prod(sizes, dtype=float) < _LARGEST:
            _, first, which = np.unique(
                _numbers(self.data_set, self.codes.T, sizes), return_index=True, return_inverse=True
            )
        else:
            key = np.column_stack([self.data_set, self.codes])
            _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
        n = np.bincount(which.ravel(), self.n, len(first)).astype(np.int64)
        return Cells(self.data_set[first], self.codes[first], n)

    def together(self, other: Cells, sizes: Sequence[int]) -> Cells:
        """Those of both; data sets and levels have the same numbers in both.

        Examples:
            >>> cells = Cells.of(np.array([0]), np.array([[1, 0]]), [2, 2])
            >>> cells.together(cells, [2, 2]).n.tolist()
            [2]
        """
        pairs = zip(self, other, strict=True)
        return Cells(*(np.concatenate(pair) for pair in pairs)).merged(sizes)

    def counts(
        self, child: int, parents: Sequence[int], sizes: Sequence[int], data_sets: int
    ) -> Integers:
        """Counts (F, C, K) of a family, see `tabulate`."""
        family = [*parents, child]
        codes = [self.codes[:, k] for k in family]
        return tabulate(codes, [sizes[k] for k in family], self.data_set, data_sets, self.n)


def tabulate(
    codes: Sequence[Integers],
    sizes: Sequence[int],
    data_set: Integers,
    data_sets: int,
    n: Integers | None = None,
) -> Integers:
    """Count rows by data set, configuration of the parents and level of the child, (F, C, K).

    Configurations are in the order of the parents' codes, the last parent's changing fastest.

    Args:
        codes: of the parents and then the child, each (R,).
        sizes: levels of these columns.
        data_set: of each row, (R,).
        data_sets: F.
        n: how often each row occurs, (R,); once if not given.

    Examples:
        >>> parent, child = np.array([0, 2, 2]), np.array([1, 0, 0])
        >>> tabulate([parent, child], [3, 2], np.array([0, 0, 0]), 1).tolist()
        [[[0, 1], [0, 0], [2, 0]]]
    """
    *parents, K = sizes
    C = int(np.prod(parents, dtype=np.int64))
    counts = np.bincount(_numbers(data_set, codes, sizes), n, data_sets * C * K)
    return counts.astype(np.int64).reshape(data_sets, C, K)


def _numbers(data_set: Integers, codes: Iterable[Integers], sizes: Sequence[int]) -> Integers:
    """One number for each data set and codes, (R,)."""
    number = data_set.astype(np.int64)
    for column, size in zip(codes, sizes, strict=True):
        number *= size
        number += column
    return number
