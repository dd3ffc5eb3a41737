"""Rows into sums of units inside data sets. Compiled; nothing here allocates."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cube, entry, integers, matrix, vector


@entry(integers, integers, integers, matrix, matrix, matrix, cube)
def gather(
    kind: Integers,
    data_set: Integers,
    size: Integers,
    shift: Floats,
    lines: Floats,
    sums: Floats,
    squares: Floats,
) -> None:
    """Add up units of a kind: sums (C, N) and squares (C, N, N) get those of lines (N, U).

    Args:
        kind: of each unit, (U,).
        data_set: likewise.
        size: its rows.
        shift: what is taken from each row of a data set, (F, N).
        lines: sums of rows, (N, U or more).
        sums: gets those of units.
        squares: gets those of products.
    """
    N = lines.shape[0]
    for i in range(kind.shape[0]):
        c = kind[i]
        for a in range(N):
            v = lines[a, i] - size[i] * shift[data_set[i], a]
            lines[a, i] = v
            sums[c, a] += v
            for b in range(a + 1):
                squares[c, a, b] += v * lines[b, i]
    for c in range(sums.shape[0]):
        for a in range(N):
            for b in range(a):
                squares[c, b, a] = squares[c, a, b]


@entry(integers, integers, integers, integers, integers, integers, integers, integers)
def number(
    codes: Integers,
    names: Integers,
    owner: Integers,
    unit: Integers,
    data_set: Integers,
    size: Integers,
    count: Integers,
    found: Integers,
) -> None:
    """The unit of each row, (B,): a name is a unit of the data set where it came first, else -1.

    Args:
        codes: data sets of rows, (B,).
        names: numbers that stand for names, (B,).
        owner: the data set where a name came first, or -1; gets new ones, (names,).
        unit: the number of that unit, (names,).
        data_set: of each unit, with room for new ones.
        size: rows of each, likewise.
        count: how many there are, (1,).
        found: gets the units of rows, (B,).
    """
    for r in range(codes.shape[0]):
        name = names[r]
        if owner[name] < 0:
            owner[name] = codes[r]
            unit[name] = count[0]
            data_set[count[0]] = codes[r]
            count[0] += 1
        if owner[name] == codes[r]:
            found[r] = unit[name]
            size[found[r]] += 1
        else:
            found[r] = -1


_Column = NDArray[np.float64]
_column = numba.types.Array(numba.float64, 1, "A", readonly=True, aligned=False)


@entry(_column, integers, integers, matrix, numba.int64, vector)
def tally(
    column: _Column, units: Integers, codes: Integers, center: Floats, k: int, line: Floats
) -> None:
    """Add column k, less a number for each data set (F, N), to the sums of units (U,)."""
    for r in range(column.shape[0]):
        line[units[r]] += column[r] - center[codes[r], k]
