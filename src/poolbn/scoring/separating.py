"""What constraint-based learners ask of tests, many at once; answered by compiled ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.arrays import Flags, Floats, Integers
from poolbn.constants import CONSTANT_TOLERANCE
from poolbn.moments.standardised import StandardisedStats
from poolbn.run import parallel
from poolbn.run.compiling import kernels
from poolbn.scoring import combined

GAUSSIAN = ("t", "z", "mi-g", "f", "combined")  # as the kernels number them
COMPLETE = ("t", "z", "mi-g")


class Separated(NamedTuple):
    """What tests of M pairs given sets of one size found."""

    found: Flags  # pairs that a set separates, (M,)
    sets: Integers  # the first such set, (M, k); anything where there is none
    log_p: Floats  # the largest log p-value, (M,); -inf where nothing could be tested
    tests: Integers  # how many tests that took, as bnlearn counts them, (M,)


class Between(NamedTuple):
    """Pairs of nodes, and nodes between them."""

    pairs: Integers  # (M, 2)
    centres: Sequence[Integers]  # the nodes between each
    neighbours: Sequence[Integers]  # of every node; pairs are tested given these
    sizes: Integers  # how many to condition on, at most, (M,)


class Votes(NamedTuple):
    """How often a node between a pair is in a set that separates it."""

    separating: Integers  # sets that separate each pair, (M,)
    hits: Integers  # those with each of the nodes between, in order


class MaxMin(NamedTuple):
    """Candidates of each node."""

    joined: Flags  # (N, N), not symmetric
    log_p: Floats  # the largest log p-value, (N, N), NaN where none was asked for
    tests: int  # how many tests that took


class CITests(Protocol):
    """Independence tests of one table."""

    @property
    def test(self) -> str:
        """The name of the test."""

    def level(
        self, pairs: Integers, neighbours: Sequence[Integers], k: int, log_alpha: float
    ) -> Separated:
        """Test pairs, (M, 2), given sets of k neighbours of one of the two."""

    def votes(self, asked: Between, log_alpha: float) -> Votes:
        """Of pairs, with nodes between them."""

    def max_min(self, may: Flags, must: Flags, most: int, log_alpha: float) -> MaxMin:
        """Max-min parents and children, of pairs that may be and those that must be."""

    def dependent(self, asked: Flags, arcs: Flags, log_alpha: float) -> Flags:
        """Which of the pairs asked for depend on each other given the parents of the second."""


@dataclass(frozen=True, eq=False)
class GaussianTests:
    """Compiled tests of partial correlations."""

    test: str  # one of `GAUSSIAN`
    # Correlations, (N, N, F); F is 1 where data sets are pooled completely. 0 on the diagonal of
    # columns that are constant in a data set, NaN where it has none.
    R: Floats
    n: Floats  # rows, (F,)
    squares: Floats  # sums of squares in units of the pooled variance, (N, F)

    @staticmethod
    def on(data: StandardisedStats, test: str) -> GaussianTests:
        """The tests of some statistics."""
        if test in COMPLETE:
            scatter, n = data.total[None], np.array([data.rows])
            lacking = np.zeros((1, len(data.names)), dtype=bool)
        else:
            scatter, n, lacking = data.scatter, data.n, data.unmeasured
        squares = np.einsum("jaa->ja", scatter)
        constant = squares <= CONSTANT_TOLERANCE * n[:, None]
        root = np.where(constant, 1.0, np.sqrt(squares))
        R = scatter / (root[:, :, None] * root[:, None, :])
        R[constant] = 0.0
        R.transpose(0, 2, 1)[constant] = 0.0
        R[lacking] = math.nan
        R.transpose(0, 2, 1)[lacking] = math.nan
        return GaussianTests(
            test, np.ascontiguousarray(R.transpose(1, 2, 0)), n, np.ascontiguousarray(squares.T)
        )

    @property
    def _data(self) -> tuple[object, ...]:
        table = combined.table() if self.test == "combined" else np.zeros((4, 4))
        return self.R, self.n, self.squares, table, GAUSSIAN.index(self.test)

    def _space(self, most: int) -> tuple[Floats, Floats]:
        kernel = kernels("independence")
        F = self.R.shape[2]
        W = np.empty((most + kernel.BLOCKS, max(most + 1, kernel.ROWS), F))
        return W, np.empty(kernel.SPACE)

    def _room(self) -> Integers:
        return np.zeros((6, len(self.R) + 1), dtype=np.int64)

    def one(self, x: int, y: int, S: Sequence[int]) -> tuple[Floats, Flags]:
        """Test one pair: what `kernels/independence.py` lists, (5,); data sets that count, (F,)."""
        kernel = kernels("independence")
        (out,), (used,) = self._batch(np.array([x]), y, np.array(S, dtype=np.int64))
        if self.test == "combined":  # to all digits
            out[kernel.LOG_P] = combined.log_p(out[kernel.STATISTIC], out[kernel.DF1])
        return out, used.astype(bool)

    def _batch(self, x: Integers, y: int, S: Integers) -> tuple[Floats, NDArray[np.uint8]]:
        """The same of M columns x, (M,), each with y given S, (M, .) each."""
        kernel, M, k = kernels("independence"), len(x), len(S)
        out, used = np.empty((M, kernel.RESULTS)), np.empty((M, len(self.n)), dtype=np.uint8)
        pairs = x, np.full(M, y), np.arange(M + 1) * k, np.tile(S, M)
        kernel.batch(*self._data, *pairs, k, *self._space(k), out, used)
        return out, used

    def level(
        self, pairs: Integers, neighbours: Sequence[Integers], k: int, log_alpha: float
    ) -> Separated:
        """Test pairs, (M, 2), given sets of k neighbours of one of the two."""
        ptr, nbrs = _packed(neighbours)

        def run(part: Integers) -> Separated:
            M = len(part)
            found, tests = np.zeros(M, dtype=np.int64), np.zeros(M, dtype=np.int64)
            sets, log_p = np.zeros((M, k), dtype=np.int64), np.empty(M)
            x, y = part.T.copy()
            W, one = self._space(k)
            kernels("separators").level(
                *self._data, log_alpha, k, x, y, ptr, nbrs, self._room(), W, one, sets, log_p,
                tests, found,
            )  # fmt: skip
            return Separated(found.astype(bool), sets, log_p, tests)

        return Separated(*_threaded(run, pairs))

    def votes(self, asked: Between, log_alpha: float) -> Votes:
        """Of pairs, with nodes between them."""
        pairs, centres, neighbours, sizes = asked
        ptr, nbrs = _packed(neighbours)
        W_most = int(sizes.max(initial=0))

        def run(at: Integers) -> Votes:
            x, y = pairs[at].T.copy()
            offsets, flat = _packed([centres[m] for m in at.tolist()])
            separating, hits = np.zeros(len(at), dtype=np.int64), np.zeros_like(flat)
            W, one = self._space(W_most)
            kernels("separators").votes(
                *self._data, log_alpha, sizes[at], x, y, ptr, nbrs, offsets, flat, self._room(), W,
                one, separating, hits,
            )  # fmt: skip
            return Votes(separating, hits)

        return Votes(*_threaded(run, np.arange(len(pairs))))

    def max_min(self, may: Flags, must: Flags, most: int, log_alpha: float) -> MaxMin:
        """Max-min parents and children, of pairs that may be and those that must be."""
        N = len(self.R)
        open_, sure = (may | must).astype(np.uint8), must.astype(np.uint8)

        def run(targets: Integers) -> tuple[NDArray[np.uint8], Floats, Integers]:
            log_p = np.empty((len(targets), N))
            joined = np.empty((len(targets), N), dtype=np.uint8)
            tests = np.zeros(len(targets), dtype=np.int64)
            W, one = self._space(most)
            kernels("separators").maxmin(
                *self._data, log_alpha, targets, open_, sure, self._room(), W, one, log_p, joined,
                tests,
            )  # fmt: skip
            return joined, log_p, tests

        joined, log_p, tests = _threaded(run, np.arange(N))
        return MaxMin(joined.astype(bool) | must, log_p, int(tests.sum()))

    def dependent(self, asked: Flags, arcs: Flags, log_alpha: float) -> Flags:
        """Which of the pairs asked for depend on each other given the parents of the second."""

        def run(targets: Integers) -> tuple[Flags]:
            found = np.zeros((len(targets), len(self.R)), dtype=bool)
            for row, y in zip(found, targets.tolist(), strict=True):
                x = np.flatnonzero(asked[:, y])
                out, _ = self._batch(x, y, np.flatnonzero(arcs[:, y]))
                row[x] = out[:, kernels("independence").LOG_P] <= log_alpha
            return (found,)

        (found,) = _threaded(run, np.arange(len(asked)))
        return np.asarray(found.T)


def _packed(lists: Sequence[Integers]) -> tuple[Integers, Integers]:
    """Lists one after the other, and where each begins."""
    ptr = np.array([0, *accumulate(map(len, lists))], dtype=np.int64)
    flat = np.concatenate(lists) if len(lists) else np.zeros(0, dtype=np.int64)
    return ptr, flat.astype(np.int64)


def _threaded(run: Callable[[Integers], tuple[Any, ...]], items: Integers) -> list[Any]:
    """Arrays that go with items, made in parts by threads: the same for any number of these."""
    cores = parallel.available_cores()
    step = max(-(-len(items) // (8 * cores)), 16) if cores > 1 else max(len(items), 1)
    parts = [items[i : i + step] for i in range(0, len(items), step)] or [items]
    made = parallel.map_threads(run, parts, cores)
    return [np.concatenate(columns) for columns in zip(*made, strict=True)]


@dataclass(frozen=True, eq=False)
class AskedTests:
    """Tests that a function answers, one at a time, each once."""

    test: str
    # The log p-value of positions x < y given others in order; NaN for none.
    ask: Callable[[int, int, tuple[int, ...]], float]
    _memo: dict[tuple[int, int, tuple[int, ...]], float] = field(default_factory=dict)

    def _log_p(self, x: int, y: int, S: Iterable[int]) -> float:
        key = min(x, y), max(x, y), tuple(sorted(S))
        if key not in self._memo:
            self._memo[key] = self.ask(*key)
        return self._memo[key]

    def level(
        self, pairs: Integers, neighbours: Sequence[Integers], k: int, log_alpha: float
    ) -> Separated:
        """Test pairs, (M, 2), given sets of k neighbours of one of the two."""
        M = len(pairs)
        made = Separated(
            np.zeros(M, dtype=bool),
            np.zeros((M, k), dtype=np.int64),
            np.full(M, -math.inf),
            np.zeros(M, dtype=np.int64),
        )
        for m, (x, y) in enumerate(pairs.tolist()):
            for S in _sets(x, y, neighbours, k):
                log_p = self._log_p(x, y, S)
                if math.isnan(log_p):
                    continue
                made.tests[m] += 1
                made.log_p[m] = max(made.log_p[m], log_p)
                if log_p > log_alpha:
                    made.found[m], made.sets[m] = True, S
                    break
        return made

    def votes(self, asked: Between, log_alpha: float) -> Votes:
        """Of pairs, with nodes between them."""
        pairs, centres, neighbours, sizes = asked
        separating, hits = np.zeros(len(pairs), dtype=np.int64), []
        for m, (x, y) in enumerate(pairs.tolist()):
            every = (set(S) for k in range(sizes[m] + 1) for S in _sets(x, y, neighbours, k))
            separators = [S for S in every if self._log_p(x, y, S) > log_alpha]
            separating[m] = len(separators)
            hits += [sum(c in S for S in separators) for c in centres[m].tolist()]
        return Votes(separating, np.array(hits, dtype=np.int64))

    def max_min(self, may: Flags, must: Flags, most: int, log_alpha: float) -> MaxMin:
        """Max-min parents and children, of pairs that may be and those that must be."""
        N = len(may)
        joined, worst = must.copy(), np.full((N, N), math.nan)
        before = len(self._memo)
        for x in range(N):
            own = np.flatnonzero(must[x]).tolist()
            left = {y: self._log_p(x, y, ()) for y in np.flatnonzero(may[x] & ~must[x]).tolist()}
            new: list[int] = []
            while left:
                for y, log_p in left.items():
                    left[y] = max(log_p, self._through(x, y, own, new, most, log_alpha))
                worst[x, list(left)] = list(left.values())
                left = {y: log_p for y, log_p in left.items() if log_p <= log_alpha}
                if left:
                    new = [min(left, key=lambda y: left[y])]
                    own += new
                    del left[new[0]]
            for y in own[::-1]:
                if not must[x, y]:
                    rest = [s for s in own if s != y]
                    worst[x, y] = max(worst[x, y], self._through(x, y, rest, [], most, log_alpha))
                    if worst[x, y] > log_alpha:
                        own.remove(y)
            joined[x, own] = True
        return MaxMin(joined, worst, len(self._memo) - before)

    def dependent(self, asked: Flags, arcs: Flags, log_alpha: float) -> Flags:
        """Which of the pairs asked for depend on each other given the parents of the second."""
        found = np.zeros_like(asked)
        for x, y in np.argwhere(asked).tolist():
            found[x, y] = self._log_p(x, y, np.flatnonzero(arcs[:, y]).tolist()) <= log_alpha
        return found

    def _through(
        self, x: int, y: int, own: list[int], new: list[int], most: int, log_alpha: float
    ) -> float:
        """The largest log p-value given subsets of candidates, all of them with the new one."""
        others, largest = [s for s in own if s not in new], -math.inf
        for k in range(min(len(others), most - len(new)) + 1):
            for S in combinations(others, k):
                log_p = self._log_p(x, y, (*S, *new))
                largest = largest if math.isnan(log_p) else max(largest, log_p)
                if largest > log_alpha:
                    return largest
        return largest


def _sets(x: int, y: int, neighbours: Sequence[Integers], k: int) -> Iterator[tuple[int, ...]]:
    """Sets of k neighbours of x, then of y that were not among them."""
    first = [s for s in neighbours[x].tolist() if s != y]
    second = [s for s in neighbours[y].tolist() if s != x]
    yield from combinations(first, k)
    yield from (S for S in combinations(second, k) if not set(S) <= set(first))
