"""A graph that is changed move by move, and what each change would gain."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.standardised import Family
from poolbn.run.compiling import kernels
from poolbn.search.problem import Found, Move, Problem

# Gains closer than this are equal; smaller ones are none. bnlearn's number.
TIE = float(np.sqrt(np.finfo(float).eps))
_KINDS = ("add", "remove", "reverse")
_BLOCK = 2**16  # families at once: for N nodes there are N^2 at the start
_HUGE = 1e300  # what having a likelihood at all is worth


class SearchState:
    """A graph that is changed move by move, and the table of what each arc would gain.

    Only the columns of nodes whose parents changed are scored again. Expensive scores
    have cheap upper bounds first, and are computed only while they can still be the best.

    Attributes:
        scores: where scores come from.
        allowed: the constraints.
        arcs: the graph as it is, (N, N), parent first.
        trace: the moves so far.
        best: the best graph so far.
        improved: whether the last move made it.
    """

    def __init__(self, problem: Problem) -> None:
        N = len(problem.start)
        self.arcs = problem.start | problem.allowed.required
        self.trace: list[Move] = []
        self.best: Found
        self.improved = False
        self._rank = (0, 0.0)
        self.scores = problem.scores
        self.allowed = problem.allowed
        self._watch = problem.watch
        self._degrees = self.arcs.sum(axis=0), self.arcs.sum(axis=1)  # parents, children
        self._cells, self._bounds = np.empty((2 * N * N, 2), dtype=np.int64), np.empty(2 * N * N)
        self._gain = np.zeros((N, N))
        self._exact = np.ones((N, N), dtype=bool)
        self._family = np.zeros(N)
        self._parents: list[tuple[int, ...]] = [()] * N
        self._fresh = 0
        self._lost = 0.0  # how far the last bounds were above what they bound
        # A graph's number is the XOR of its arcs' numbers; the seed is fixed, and collisions of 64
        # bits do not happen.
        self._keys = np.random.default_rng(0).integers(1, 2**62, (N, N)).astype(np.uint64)
        self._ancestor = _closure(self.arcs)
        self._score(range(N))
        self._keep()

    @property
    def score(self) -> float:
        """Of the graph as it is."""
        return float(self._family.sum())

    @property
    def key(self) -> np.uint64:
        """A number for the graph as it is."""
        return np.uint64(np.bitwise_xor.reduce(self._keys[self.arcs], initial=np.uint64(0)))

    def found(self) -> Found:
        """The best graph, and the way so far."""
        return Found(self.best.arcs, self.best.score, tuple(self.trace))

    def step(self, *, floor: float = TIE, tabu: NDArray[np.uint64] | None = None) -> bool:
        """Make the best move that gains more than `floor` and leads to no tabu graph, if any."""
        tabu = np.zeros(0, dtype=np.uint64) if tabu is None else tabu
        move, gain = np.empty(4, dtype=np.int64), np.empty(1)
        before = self.scores.made - self._fresh
        key = self.key if len(tabu) else np.uint64(0)
        while True:
            kernels("moves").best_move(
                self._gain, self._exact, self.arcs, *self._degrees, self._ancestor,
                self.allowed.arcs, self.allowed.required, self.allowed.max_parents, self._keys,
                tabu, key, floor, TIE, self._lost, self._cells, self._bounds, move, gain,
            )  # fmt: skip
            kind, p, c, count = move.tolist()
            if count == 0:
                break
            # The most promising first: what is known rules out others. Those are fitted at once
            # that would not be ruled out if the first kept as much of its bound as the last ones.
            self._fit(self._cells[:count])
        if kind < 0:
            return False
        self._apply(kind, p, c)
        names = self.scores.names
        spared = self._exact.size - int(np.count_nonzero(self._exact))
        self.trace.append(
            Move(
                _KINDS[kind],
                (names[p], names[c]),
                float(gain[0]),
                self.scores.made - before,
                spared,
            )
        )
        self._fresh = 0
        self._keep()
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
            if not (self._forbidden(other).any() or _closure(other).diagonal().any()):
                arcs = other
                done += 1
        self.jump(arcs, "restart")

    def jump(self, arcs: NDArray[np.bool_], kind: str) -> None:
        """Go on from another graph."""
        before, made = self.score, self.scores.made - self._fresh
        self.arcs = arcs
        self._degrees = arcs.sum(axis=0), arcs.sum(axis=1)
        self._ancestor = _closure(arcs)
        self._score(range(len(arcs)))
        gain = self.score - before if np.isfinite(before) else 0.0
        self.trace.append(Move(kind, (), gain, self.scores.made - made, 0))
        self._fresh = 0
        self._keep()

    def _forbidden(self, arcs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        crowded = arcs.sum(axis=0) > self.allowed.max_parents
        return np.asarray((arcs & ~self.allowed.arcs) | (self.allowed.required & ~arcs) | crowded)

    def _keep(self) -> None:
        """Remember the graph if it is the best so far; nodes without a likelihood count first."""
        score = self.score
        rank = (len(self._family), score)
        if not math.isfinite(score):
            finite = np.isfinite(self._family)
            rank = (int(finite.sum()), float(self._family[finite].sum()))
        first = not self.trace
        self.improved = (
            first
            or rank[0] > self._rank[0]
            or (rank[0] == self._rank[0] and rank[1] > self._rank[1] + TIE)
        )
        if self.improved:
            self._rank = rank
            self.best = Found(self.arcs.copy(), score)

    def _apply(self, kind: int, p: int, c: int) -> None:
        changed = [c] if kind < 2 else [c, p]
        for parent, child in ((p, c), (c, p))[: len(changed)]:
            more = 1 if not self.arcs[parent, child] else -1
            self.arcs[parent, child] = more > 0
            self._degrees[0][child] += more
            self._degrees[1][parent] += more
        if kind == 0:
            above, below = self._ancestor[:, p].copy(), self._ancestor[c].copy()
            above[p] = below[c] = True
            self._ancestor[above] |= below
        else:
            self._ancestor = _closure(self.arcs)
        self._score(changed)

    def _score(self, nodes: range | list[int]) -> None:
        """Fill the columns of these nodes: exact where known or cheap, else upper bounds."""
        made = self.scores.made
        for c in nodes:
            self._parents[c] = tuple(np.flatnonzero(self.arcs[:, c]).tolist())
        self._family[list(nodes)] = self.scores([(c, self._parents[c]) for c in nodes])
        at_once = max(_BLOCK // len(self.arcs), 1)
        for start in range(0, len(nodes), at_once):
            families, cells = [], []
            for c in nodes[start : start + at_once]:
                parents = self._parents[c]
                toggles = np.flatnonzero(self.allowed.arcs[:, c] | self.arcs[:, c]).tolist()
                families += [_toggled(c, parents, p) for p in toggles]
                cells += [(p, c) for p in toggles]
            if not cells:
                continue
            values, exact = self.scores.upper_bounds(families)
            p, to = np.array(cells).T
            self._gain[p, to] = _difference(values, self._family[to])
            self._exact[p, to] = exact
        self._fresh += self.scores.made - made

    def _fit(self, cells: NDArray[np.int64]) -> None:
        pairs = list(dict.fromkeys(map(tuple, cells.tolist())))
        values = self.scores([_toggled(c, self._parents[c], p) for p, c in pairs])
        p, c = np.array(pairs).T
        bound = self._gain[p, c]
        self._gain[p, c] = _difference(values, self._family[c])
        # Of data sets that are the same, bounds are exact, and rounding can put them below. Of data
        # sets with few rows they can be infinite.
        lost = [v for v in (bound - self._gain[p, c]).tolist() if math.isfinite(v)]
        if lost:
            self._lost = max(0.0, math.fsum(lost) / len(lost))
        self._exact[p, c] = True


def _toggled(c: int, parents: tuple[int, ...], p: int) -> Family:
    """The family with one parent more, or less if it is there."""
    if p in parents:
        return c, tuple(q for q in parents if q != p)
    return c, tuple(sorted((*parents, p)))


def _difference(value: NDArray[np.float64], current: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a family gains. Any likelihood is better than none; from none to none is no way."""
    if np.isfinite(current).all():
        return value - current
    with np.errstate(invalid="ignore"):
        gain = value - current
    return np.where(np.isneginf(current), np.where(np.isneginf(value), -_HUGE, _HUGE), gain)


def _closure(arcs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the first node is an ancestor of the second, (N, N).

    Where there is a cycle, only that: some nodes are then ancestors of themselves.
    """
    ancestor = np.zeros_like(arcs)
    kernels("moves").close(arcs, ancestor, arcs.sum(axis=0), np.empty(len(arcs), dtype=np.int64))
    return ancestor
