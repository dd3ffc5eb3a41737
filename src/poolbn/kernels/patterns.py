"""Which cells rows lack, as bits of numbers, and which rows lack the same. Compiled."""

from __future__ import annotations

import math

import numba

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, entry, integers

# Side by side in memory, so that the loop runs over several cells at once.
_column = numba.types.Array(numba.float64, 1, "C", readonly=True, aligned=False)
_words = numba.int64[:, ::1]
# Odd numbers that mix bits well (Steele, Lea and Flood 2014, SplitMix64), as signed ones.
_ONE, _TWO = -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15


@entry(_column, numba.int64, integers, integers)
def mark(column: Floats, bit: int, words: Integers, found: Integers) -> None:
    """Set a bit of the words (B,) of rows whose cell is missing.

    Args:
        column: the cells, (B,).
        bit: 0 to 63.
        words: see above.
        found: missing and infinite cells are added to them, (2,).
    """
    missing = infinite = 0
    for r in range(column.shape[0]):
        lacks = int(column[r] != column[r])
        words[r] |= lacks << bit
        missing += lacks
        infinite += int(abs(column[r]) == math.inf)
    found[0] += missing
    found[1] += infinite


@entry(integers, _words, integers, integers, integers, integers, integers)
def number(
    codes: Integers,
    words: Integers,
    slots: Integers,
    first: Integers,
    counts: Integers,
    which: Integers,
    pairs: Integers,
) -> None:
    """Number the different pairs of a code and words as they come, by a hash table.

    Args:
        codes: (B,).
        words: (W, B).
        slots: the table, of zeros; more than P of them, a power of two.
        first: the row that each pair comes first in, (P,).
        counts: its rows, of zeros, (P,).
        which: the number of each row's pair, (B,).
        pairs: how many there are, -1 if more than P, (1,).
    """
    last = slots.shape[0] - 1
    found = 0
    for r in range(codes.shape[0]):
        h = codes[r] * _ONE
        for w in range(words.shape[0]):
            h = (h ^ (h >> 29) ^ words[w, r]) * _TWO
        at = (h ^ (h >> 32)) & last
        while slots[at] > 0:
            f = first[slots[at] - 1]
            same = codes[f] == codes[r]
            for w in range(words.shape[0]):
                same = same and words[w, f] == words[w, r]
            if same:
                break
            at = (at + 1) & last
        if slots[at] == 0:
            if found == first.shape[0]:
                pairs[0] = -1
                return
            first[found] = r
            found += 1
            slots[at] = found
        which[r] = slots[at] - 1
        counts[which[r]] += 1
    pairs[0] = found
