"""Statistics of resampled rows and of resampled data sets; rows are streamed, never copied whole.

Drawing n_j rows with replacement from the n_j of a data set gives each row a multinomial count. In
a stream the counts come block by block: of the draws that are left, those in the next block are
binomial with the block's share of the rows that are left, and inside the block all rows are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError
from poolbn.moments.data import Data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import in_memory, patterns_of
from poolbn.moments.sums import Sums
from poolbn.moments.table import Table
from poolbn.run.parallel import available_cores, map_threads
from poolbn.tables.data import Rows

# Replicates that are drawn together, and cells of a block: they fix which random numbers are used
# for what, so that neither the source's batches nor the number of replicates or threads matter.
_STACK = 16
_CELLS = 2**15
_NUMBERS = 2**24  # in the statistics that are made in one pass over the rows


# What random numbers are for, so that no two uses get the same ones.
_ROWS, _DATA_SETS, _COLUMNS = range(3)


def random_stream(seed: int, *key: int) -> np.random.Generator:
    """Random numbers of their own for each key."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def by_data_set(codes: NDArray[np.int64], F: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each data set of a batch, and its rows in their order."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=F))
    parts = enumerate(np.split(order, ends[:-1]))
    return ((j, at) for j, at in parts if len(at))


def row_replicates(
    read: Callable[[], Rows], known: GroupStats, replicates: int, seed: int
) -> Iterator[list[GroupStats]]:
    """Statistics of as many rows as there are in each data set, drawn from them with replacement.

    `read` opens the rows for each pass over them, and `known` are their statistics. Yields the
    replicates of one pass, as many as take a moderate amount of memory.

    Raises:
        DataError: the rows are not the same in each pass.
    """
    F, N = known.mean.shape
    at_once = max(1, _NUMBERS // (_STACK * F * N * N))
    numbers = range(-(-replicates // _STACK))
    for first in range(0, len(numbers), at_once):
        stacks = [_Stack(k, seed, known) for k in numbers[first : first + at_once]]
        for block in _blocks(read(), known, max(1, _CELLS // N)):
            map_threads(partial(_Stack.add, block=block), stacks, available_cores())
        made = (stats for stack in stacks for stats in stack.statistics())
        yield list(islice(made, replicates - first * _STACK))


def incomplete_replicates(
    read: Callable[[], Rows], known: GroupStats, replicates: int, seed: int
) -> Iterator[list[GroupStats]]:
    """The same where cells are missing: rows are drawn with their gaps, and then completed.

    They are read once, and held.
    """
    rows = read()
    codes, values, _ = in_memory(rows)
    if tuple(rows.levels) != known.levels:
        raise _changed()
    parts = [np.flatnonzero(codes == j) for j in range(len(known.levels))]
    for r in range(replicates):
        rng = random_stream(seed, _ROWS, r)
        at = np.concatenate([part[rng.integers(len(part), size=len(part))] for part in parts])
        made = patterns_of(rows.names, known.levels, codes[at], values[at], known.group).completed()
        yield [replace(made, facts=known.facts, inputs=known.inputs)]


def table_replicates(
    table: Table, replicates: int, seed: int, *, data_sets: bool
) -> Iterator[list[Table]]:
    """As many rows of each data set as there are, or as many data sets, drawn with replacement."""
    F, ends = len(table.levels), table.offsets
    own = [np.arange(first, end) for first, end in pairwise(ends.tolist())]
    at_once = max(1, min(_STACK, _NUMBERS // table.values.size))
    for first in range(0, replicates, at_once):
        made = []
        for r in range(first, min(first + at_once, replicates)):
            if data_sets:
                at = random_stream(seed, _DATA_SETS, r).integers(F, size=F)
                made.append(table.data_sets(at, range(F)))
            else:
                rng = random_stream(seed, _ROWS, r)
                parts = [part[rng.integers(len(part), size=len(part))] for part in own]
                made.append(table.some_rows(parts))
        yield made


def data_set_replicates(known: Data, replicates: int, seed: int) -> Iterator[list[Data]]:
    """Statistics of as many data sets as there are, drawn from them with replacement.

    Copies of a data set are data sets of their own, so all of them are simply numbered.
    """
    F = len(known.levels)
    made: list[Data] = []
    for r in range(replicates):
        at = random_stream(seed, _DATA_SETS, r).integers(F, size=F)
        made.append(known.data_sets(at, range(F)))
    yield made


def shuffled_columns(replicate: Data, number: int, seed: int) -> Data:
    """The same with the columns in an order of chance, wherever they were before.

    Of moves that score the same a search makes the first. The order of the columns must not decide,
    in all replicates alike, which that is.
    """
    names = sorted(replicate.names)
    order = random_stream(seed, _COLUMNS, number).permutation(len(names))
    return replicate.select([names[i] for i in order])


@dataclass(frozen=True, eq=False)
class _Block:
    """Consecutive rows of one data set."""

    data_set: int  # its position
    number: int  # which of its blocks
    share: float  # of its rows that are left, from here to its end
    columns: NDArray[np.float64]  # the cells, (N, m)


def _blocks(rows: Rows, known: GroupStats, size: int) -> Iterator[_Block]:
    """The rows in blocks of `size` rows of one data set, whatever batches they come in."""
    F, N = known.mean.shape
    left = known.n.copy()
    number: Counter[int] = Counter()
    held = [np.empty((N, 0))] * F

    def block(j: int, columns: NDArray[np.float64]) -> _Block:
        made = _Block(j, number[j], columns.shape[1] / left[j], columns)
        number[j] += 1
        left[j] -= columns.shape[1]
        return made

    for codes, matrix in _again(rows, known):
        for j, at in by_data_set(codes, F):
            mine = np.concatenate([held[j], matrix[:, at]], axis=1)
            if mine.shape[1] > left[j]:
                raise _changed()
            whole = mine.shape[1] // size * size
            for start in range(0, whole, size):
                yield block(j, mine[:, start : start + size])
            held[j] = mine[:, whole:].copy()
    for j, rest in enumerate(held):
        if rest.shape[1] != left[j]:
            raise _changed()
        if rest.shape[1]:
            yield block(j, rest)


def _again(
    rows: Rows, known: GroupStats
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Data sets (B,) and cells (N, B) of batches that were fit to be read once before."""
    with closing(rows.batches) as batches:
        try:
            for batch in batches:
                if tuple(rows.levels) != known.levels[: len(rows.levels)]:
                    raise _changed()
                yield batch.codes, np.stack(batch.columns)
        except DataError as error:
            raise _changed() from error


def _changed() -> DataError:
    return DataError(
        "the rows are read more than once and are not the same the second time; if the source can "
        "be read only once, read it into a table first"
    )


class _Stack:
    """Some replicates of the statistics, in the making: number r of data set j is at r F + j."""

    def __init__(self, number: int, seed: int, known: GroupStats) -> None:
        F, N = known.mean.shape
        self._seed, self._number = seed, number
        self._known = known
        self._left = np.repeat(known.n[:, None], _STACK, axis=1)  # draws, (F, _STACK)
        self._sums = Sums.zeros(_STACK * F, N)

    def add(self, block: _Block) -> None:
        """Draw from a block, for each replicate its part."""
        j, F = block.data_set, len(self._left)
        rng = random_stream(self._seed, _ROWS, self._number, j, block.number)
        draws = rng.binomial(self._left[j], block.share)
        self._left[j] -= draws
        at = rng.integers(block.columns.shape[1], size=draws.sum())
        codes = np.repeat(np.arange(_STACK) * F + j, draws)
        self._sums.add_rows(codes, [column[at] for column in block.columns])

    def statistics(self) -> Iterator[GroupStats]:
        """The replicates, once all blocks are in."""
        known, sums, F = self._known, self._sums, len(self._left)
        for at in range(0, _STACK * F, F):
            part = slice(at, at + F)
            yield replace(
                known,
                n=sums.n[part],
                mean=sums.mean[part],
                scatter=sums.scatter[part],
                cubes=sums.cubes[part],
            )
