"""Exact search: the best of all networks over up to some twenty nodes, by dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import InPython, OptionError, check_whole
from poolbn.graph.constraints import Allowed
from poolbn.moments.standardised import Family
from poolbn.scoring.local import LocalScores
from poolbn.search.problem import Found, Move, Problem, limited
from poolbn.search.state import TIE

_MOST = 22  # nodes: arrays of 2^22 numbers
_WORST = -1e300  # a family without a likelihood: worse than all others, and sums stay finite
_BATCH = 4096  # families at a time


@dataclass(frozen=True)
class Exact:
    """The network with the best score of all (Silander and Myllymaki 2006).

    Time and memory double with each node. A set of parents is scored only if its upper bound beats
    the best of its subsets. Of networks that only rounding tells apart, as an order of rows does,
    it is always the same one.

    Attributes:
        max_parents: of any node; fewer make it faster. No limit by default.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> pb.learn(trial, group="clinic", search=pb.Exact(max_parents=2)).dag
        Dag('[bmi][age|bmi]')
    """

    max_parents: int | None = None

    def __post_init__(self) -> None:
        check_whole(max_parents=self.max_parents)

    def learn(self, problem: Problem) -> Found:
        """The best graph of all."""
        scores, N = problem.scores, len(problem.start)
        if N > _MOST:
            raise OptionError(
                f"exact search is for up to {_MOST} nodes, and there are {N}; use ",
                InPython("pb.OrderSearch or pb.HillClimb", "--search orders or --search hc"),
                ", or select fewer columns",
            )
        allowed = limited(problem, self.max_parents)
        most = min(N - 1, allowed.max_parents)
        made = scores.made
        before = _score(scores, problem.start | allowed.required)
        tables = [_best_parents(scores, allowed, c, N, most) for c in range(N)]
        arcs = _best_graph(tables, N)
        after = _score(scores, arcs)
        gain = after - before if np.isfinite(before) else 0.0
        return Found(arcs, after, (Move("exact", (), gain, scores.made - made, 0),))


def _score(scores: LocalScores, arcs: NDArray[np.bool_]) -> float:
    """Of a graph."""
    columns = enumerate(arcs.T)
    families = [(c, tuple(np.flatnonzero(column).tolist())) for c, column in columns]
    return float(scores(families).sum())


@dataclass(frozen=True, eq=False)
class _Table:
    """For each set of other nodes, as a bit mask without the child's bit: the best parents in it.

    Attributes:
        best: their score, (2^(N - 1),).
        parents: their mask, (2^(N - 1),).
    """

    best: NDArray[np.float64]
    parents: NDArray[np.int64]


def _best_parents(scores: LocalScores, allowed: Allowed, c: int, N: int, most: int) -> _Table:
    others = [p for p in range(N) if p != c]
    masks = np.arange(2 ** (N - 1))
    size = np.bitwise_count(masks).astype(np.int64)
    must = sum(1 << i for i, p in enumerate(others) if allowed.required[p, c])
    may = sum(1 << i for i, p in enumerate(others) if allowed.arcs[p, c]) | must
    best = np.full(len(masks), -np.inf)
    parents = np.zeros(len(masks), dtype=np.int64)

    def family(mask: int) -> Family:
        return c, tuple(p for i, p in enumerate(others) if mask >> i & 1)

    for k in range(N):
        level = masks[size == k]
        for i in range(N - 1):  # the best of the subsets
            inside = level[(level >> i & 1) == 1]
            sub = inside ^ (1 << i)
            better = best[sub] > best[inside] + TIE
            best[inside[better]] = best[sub[better]]
            parents[inside[better]] = parents[sub[better]]
        if k > most:
            continue
        able = level[((level & must) == must) & ((level | may) == may)]
        for start in range(0, len(able), _BATCH):
            part = able[start : start + _BATCH]
            bounds, _ = scores.upper_bounds([family(int(mask)) for mask in part])
            part = part[np.maximum(bounds, _WORST) > best[part]]
            values = np.maximum(scores([family(int(mask)) for mask in part]), _WORST)
            better = values > best[part] + TIE
            best[part[better]] = values[better]
            parents[part[better]] = part[better]
    # A child that never has a likelihood must not drown the others.
    best[best == _WORST] = 0.0 if best.max() == _WORST else _WORST
    return _Table(best, parents)


def _best_graph(tables: list[_Table], N: int) -> NDArray[np.bool_]:
    """The best network over a set has a last node, and the best network over the others."""
    masks = np.arange(2**N)
    size = np.bitwise_count(masks)
    best = np.full(len(masks), -np.inf)
    best[0] = 0.0
    last = np.zeros(len(masks), dtype=np.int64)
    for k in range(1, N + 1):
        level = masks[size == k]
        for c, table in enumerate(tables):
            inside = level[(level >> c & 1) == 1]
            rest = inside ^ (1 << c)
            value = best[rest] + table.best[_without(rest, c)]
            better = value > best[inside] + TIE
            best[inside[better]] = value[better]
            last[inside[better]] = c
    arcs = np.zeros((N, N), dtype=bool)
    mask = 2**N - 1
    while mask:
        c = int(last[mask])
        mask ^= 1 << c
        chosen = int(tables[c].parents[_without(np.int64(mask), c)])
        for i, p in enumerate(q for q in range(N) if q != c):
            arcs[p, c] = bool(chosen >> i & 1)
    return arcs


def _without(mask: NDArray[np.int64] | np.int64, c: int) -> NDArray[np.int64] | np.int64:
    """The mask with bit c, which is 0, taken out."""
    low = (1 << c) - 1
    return (mask & low) | ((mask >> 1) & ~low)
