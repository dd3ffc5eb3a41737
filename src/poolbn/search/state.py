"""A graph that is changed move by move, and what each change would gain."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.standardised import changed_by
from poolbn.run.compiling import kernels
from poolbn.search.problem import Found, Move, Problem

# Gains closer than this are equal; smaller ones are none. bnlearn's number.
TIE = float(np.sqrt(np.finfo(float).eps))
_KINDS = ("add", "remove", "reverse")
_BLOCK = 2**16  # families at once: for N nodes there are N^2 at the start
_CELLS = 2**18  # of a large table that are fitted at once
_NO_GRAPHS = np.zeros(0, dtype=np.uint64)
_NO_KEYS = np.zeros((0, 0), dtype=np.uint64)
_HUGE = 1e300  # what having a likelihood at all is worth


class SearchState:
    """A graph that is changed move by move, and the table of what each arc would gain.

    Only the rows of nodes whose parents changed are scored again. Expensive scores
    have cheap upper bounds first, and are computed only while they can still be the best. Where all
    moves go uphill, the table only says of some arcs that they would lower the score.

    Attributes:
        scores: where scores come from.
        allowed: the constraints.
        arcs: the graph as it is, (N, N), parent first.
        score: its score.
        trace: the moves so far.
        improved: whether the last move made it.
    """

    def __init__(self, problem: Problem, *, improving_only: bool = True) -> None:
        N = len(problem.start)
        self._improving_only = improving_only
        self.arcs = problem.start | problem.allowed.required
        self.trace: list[Move] = []
        self.improved = False
        self._best: Found | None = None  # None: the graph as it is
        self._rank, self._last = (0, -math.inf), -math.inf
        self.scores = problem.scores
        self.allowed = problem.allowed
        self._may = np.ascontiguousarray(problem.allowed.arcs.T)
        self._watch = problem.watch
        # By child and then by parent, as `kernels.moves` takes them.
        self._gain = np.zeros((N, N))
        self._exact = np.ones((N, N), dtype=bool)
        self._reach, self._turn = np.full(N, np.inf), np.full(N, np.inf)
        self._bounded = np.zeros(N, dtype=np.int64)  # cells of a child that are not exact
        self._family = np.zeros(N)
        self._parents: list[tuple[int, ...]] = [()] * N
        self._ancestor = np.zeros((N, N), dtype=bool)
        self._lost = 0.0  # how far the last bounds were above what they bound
        room = min(2 * N * N, _CELLS)
        self._cells, self._bounds = np.empty((room, 2), dtype=np.int64), np.empty(room)
        self._seen, self._move = np.empty(N, dtype=np.int64), np.empty(4, dtype=np.int64)
        self._fresh = 0
        self.score = 0.0
        self._look()
        self._score(range(N))
        self._keep()

    @property
    def best(self) -> Found:
        """The best graph so far."""
        return self._best or Found(self.arcs.copy(), self.score)

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        # A graph's number is the XOR of its arcs' numbers; the seed is fixed, and collisions of 64
        # bits do not happen.
        return np.random.default_rng(0).integers(1, 2**62, self.arcs.shape).astype(np.uint64)

    @property
    def key(self) -> np.uint64:
        """A number for the graph as it is."""
        return np.uint64(np.bitwise_xor.reduce(self._keys[self.arcs], initial=np.uint64(0)))

    def found(self) -> Found:
        """The best graph, and the way so far."""
        best = self.best
        return Found(best.arcs, best.score, tuple(self.trace))

    def step(self, *, floor: float = TIE, tabu: NDArray[np.uint64] = _NO_GRAPHS) -> bool:
        """Make the best move that gains more than `floor` and leads to no tabu graph, if any."""
        gain = np.empty(1)
        before = self.scores.made - self._fresh
        visited = (self._keys, tabu, self.key) if len(tabu) else (_NO_KEYS, tabu, np.uint64(0))
        while True:
            kernels("moves").best_move(
                self._gain, self._exact, self._reach, self._turn, self.arcs, self._into,
                self._into.view(np.int64),
                self._degrees, self._ancestor, self.allowed.arcs, self.allowed.required,
                self.allowed.max_parents, *visited, floor, TIE, self._lost, self._seen,
                self._cells, self._bounds, self._move, gain,
            )  # fmt: skip
            kind, p, c, count = self._move.tolist()
            if count == 0:
                break
            # The most promising first: what is known rules out others. Those are fitted at once
            # that would not be ruled out if the first kept as much of its bound as the last ones.
            self._fit(self._cells[:count])
            self._watch(len(self.trace), Found(self.arcs, self.score))
        if kind < 0:
            return False
        self._apply(kind, p, c)
        names = self.scores.names
        arc, gained = (names[p], names[c]), float(gain[0])
        spared = int(self._bounded.sum())
        self.trace.append(Move(_KINDS[kind], arc, gained, self.scores.made - before, spared))
        self._fresh = 0
        self._keep((kind, p, c))
        self._watch(len(self.trace), Found(self.arcs, self.score))
        return True

    def shake(self, changes: int, rng: np.random.Generator) -> None:
        """Start again from the best graph, so many arcs added, removed or reversed at random."""
        arcs = self.best.arcs.copy()
        done = 0
        for _ in range(100 * changes):
            if done == changes:
                break
            p, c = rng.choice(len(arcs), 2, replace=False).tolist()
            other = arcs.copy()
            other[p, c] = not arcs[p, c]
            other[c, p] = bool(arcs[p, c] and rng.integers(2))
            if not self._forbidden(other).any() and len(topological(other)) == len(arcs):
                arcs = other
                done += 1
        self.jump(arcs, "restart")

    def jump(self, arcs: NDArray[np.bool_], kind: str) -> None:
        """Go on from another graph."""
        self._best = self.best
        before, made = self.score, self.scores.made - self._fresh
        self.arcs = arcs
        self._look()
        self._score(range(len(arcs)))
        gain = self.score - before if np.isfinite(before) else 0.0
        self.trace.append(Move(kind, (), gain, self.scores.made - made, 0))
        self._fresh = 0
        self._keep()

    def _look(self) -> None:
        """Take in another graph."""
        N = len(self.arcs)
        self._into = np.zeros((N, -(-N // 8) * 8), dtype=bool)
        self._into[:, :N] = self.arcs.T
        self._degrees = self.arcs.sum(axis=0)
        self._ancestor[:] = False
        order = np.array(topological(self.arcs)[::-1], dtype=np.int64)
        kernels("moves").close(self.arcs, self._ancestor, order, np.ones(N, dtype=bool))

    def _forbidden(self, arcs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        crowded = arcs.sum(axis=0) > self.allowed.max_parents
        return np.asarray((arcs & ~self.allowed.arcs) | (self.allowed.required & ~arcs) | crowded)

    def _keep(self, move: tuple[int, int, int] | None = None) -> None:
        """Remember if the graph is the best so far; nodes without a likelihood count first."""
        score = self.score
        rank = (len(self._family), score)
        if not math.isfinite(score):
            finite = np.isfinite(self._family)
            rank = (int(finite.sum()), float(self._family[finite].sum()))
        self.improved = not self.trace or (
            rank[0] > self._rank[0] or (rank[0] == self._rank[0] and rank[1] > self._rank[1] + TIE)
        )
        if self.improved:
            self._rank, self._best = rank, None
        elif self._best is None and move is not None:
            kind, p, c = move
            arcs = self.arcs.copy()
            arcs[p, c], arcs[c, p] = kind != 0, False
            self._best = Found(arcs, self._last)
        self._last = score

    def _apply(self, kind: int, p: int, c: int) -> None:
        if kind == 0:
            self._add(p, c)
        else:
            self._remove(p, c)
        if kind == 2:
            self._add(c, p)
        self._score([c, p] if kind == 2 else [c])

    def _add(self, p: int, c: int) -> None:
        self.arcs[p, c] = self._into[c, p] = True
        self._degrees[c] += 1
        kernels("moves").link(self._ancestor, p, c)

    def _remove(self, p: int, c: int) -> None:
        self.arcs[p, c] = self._into[c, p] = False
        self._degrees[c] -= 1
        above = np.append(np.flatnonzero(self._ancestor[:, p]), p)
        # A node has more descendants than any of them.
        order = above[self._ancestor[above].sum(axis=1).argsort(kind="stable")]
        lost = np.zeros(len(self.arcs), dtype=bool)
        kernels("moves").close(self.arcs, self._ancestor, order, lost)
        self._reach[lost] = np.inf
        fewer = np.asarray(self.arcs[:, lost].any(axis=1))  # ways from there
        fewer[p] = True
        self._turn[self.arcs[fewer].any(axis=0)] = np.inf

    def _changed(self, nodes: NDArray[np.int64] | list[int]) -> None:
        """Forget what the gains of these nodes were good for."""
        self._reach[nodes] = self._turn[nodes] = np.inf
        self._turn[self.arcs[nodes].any(axis=0)] = np.inf

    def _score(self, nodes: range | list[int]) -> None:
        """Fill the rows of these nodes: exact where known or cheap, else upper bounds."""
        made, N = self.scores.made, len(self.arcs)
        at_once = max(_BLOCK // N, 1)
        for start in range(0, len(nodes), at_once):
            some = list(nodes[start : start + at_once])
            for c in some:
                self._parents[c] = tuple(self._into[c].nonzero()[0].tolist())
            families = [(c, self._parents[c]) for c in some]
            candidates = self._candidates(some)
            found = self.scores.neighbours(
                families, candidates, improving_only=self._improving_only
            )
            own = found.values[range(len(some)), some]
            self._family[some] = own
            self._gain[some] = _difference(found.values, own[:, None])
            self._exact[some] = found.exact
            self._bounded[some] = N - found.exact.sum(axis=1)
        self.score = float(self._family.sum())
        self._changed(list(nodes))
        self._fresh += self.scores.made - made

    def _candidates(self, nodes: list[int]) -> NDArray[np.bool_]:
        """Parents that these nodes can lose, or win if they may have more, (., N)."""
        more = self._degrees[nodes] < self.allowed.max_parents
        there = self._into[nodes, : len(self.arcs)]
        return np.asarray(there | (self._may[nodes] & more[:, None]))

    def _fit(self, cells: NDArray[np.int64]) -> None:
        pairs = list(dict.fromkeys(map(tuple, cells.tolist())))
        values = self.scores([changed_by((c, self._parents[c]), p) for p, c in pairs])
        p, c = np.array(pairs).T
        bound = self._gain[c, p]
        self._gain[c, p] = _difference(values, self._family[c])
        # Of data sets that are the same, bounds are exact, and rounding can put them below. Of data
        # sets with few rows they can be infinite.
        lost = bound - self._gain[c, p]
        lost = lost[np.isfinite(lost)]
        if len(lost):
            self._lost = max(0.0, math.fsum(lost) / len(lost))
        self._exact[c, p] = True
        self._changed(c)
        self._bounded -= np.bincount(c, minlength=len(self._bounded))


def _difference(value: NDArray[np.float64], current: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a family gains. Any likelihood is better than none; from none to none is no way."""
    if np.isfinite(current).all():
        return value - current
    with np.errstate(invalid="ignore"):
        gain = value - current
    return np.where(np.isneginf(current), np.where(np.isneginf(value), -_HUGE, _HUGE), gain)


def topological(arcs: NDArray[np.bool_]) -> list[int]:
    """The nodes, parents first; those on a cycle and below are left out."""
    left = arcs.sum(axis=0)
    found: list[int] = np.flatnonzero(left == 0).tolist()
    for node in found:
        children = np.flatnonzero(arcs[node])
        left[children] -= 1
        found += children[left[children] == 0].tolist()
    return found
