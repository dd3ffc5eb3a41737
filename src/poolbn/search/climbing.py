"""Hill climbing and tabu search."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from poolbn.errors import check_count, check_whole
from poolbn.search.problem import Found, Problem, Stopped
from poolbn.search.state import SearchState

_CHANGES = 0.4  # arcs a column that a restart changes


@contextmanager
def searching(problem: Problem, *, improving_only: bool = True) -> Iterator[SearchState]:
    """A state to move; on Ctrl-C the best graph so far goes with the interrupt.

    Args:
        problem: what to find.
        improving_only: whether only moves are made that raise the score.
    """
    state = SearchState(problem, improving_only=improving_only)
    try:
        yield state
    except KeyboardInterrupt:
        raise Stopped(state.found()) from None


def guided(problem: Problem) -> Problem:
    """The problem with the graph that its guide finds as its start."""
    if problem.guide is None:
        return problem
    found = HillClimb().learn(replace(problem, scores=problem.guide, guide=None))
    return replace(problem, start=found.arcs, guide=None)


@dataclass(frozen=True)
class HillClimb:
    """Best-improvement hill climbing by adding, removing and reversing arcs.

    Attributes:
        restarts: how often to start again from the best graph, changed at random.
        perturb: arcs to change for that; by default two for every five columns, as fewer lead back
            to the same graph in large networks.
        max_iter: upper bound of the number of moves.
        seed: random seed.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> pb.learn(trial, group="clinic", search=pb.HillClimb(restarts=3, seed=1)).dag
        Dag('[bmi][age|bmi]')
    """

    restarts: int = 0
    perturb: int | None = None
    max_iter: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(restarts=self.restarts, seed=self.seed)
        check_whole(max_iter=self.max_iter, perturb=self.perturb)

    def learn(self, problem: Problem) -> Found:
        """Climb to a local optimum, and again from around the best one."""
        rng = np.random.default_rng(self.seed)
        left = math.inf if self.max_iter is None else self.max_iter
        changes = self.perturb
        if changes is None:
            changes = max(round(_CHANGES * len(problem.start)), 1)
        with searching(guided(problem)) as state:
            for restart in range(self.restarts + 1):
                if restart and left > 0:
                    state.shake(changes, rng)
                rises = True
                while rises and left > 0:
                    before = state.score
                    rises = state.step()
                    left -= rises
                    # A gain by rounding alone does not raise the score: such a climb has no end.
                    rises = rises and not (math.isfinite(before) and state.score <= before)
        return state.found()


@dataclass(frozen=True)
class Tabu:
    """Tabu search: always the best move, even downhill, to a graph not visited lately.

    Attributes:
        length: graphs that are remembered and must not come again.
        patience: moves without a new best graph before it ends.
        max_iter: upper bound of the number of moves.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> pb.learn(trial, group="clinic", search=pb.Tabu(length=20)).dag
        Dag('[bmi][age|bmi]')
    """

    length: int = 10
    patience: int = 10
    max_iter: int | None = None

    def __post_init__(self) -> None:
        check_count(length=self.length, patience=self.patience)
        check_whole(max_iter=self.max_iter)

    def learn(self, problem: Problem) -> Found:
        """Move until the best graph has not changed for so long."""
        left = math.inf if self.max_iter is None else self.max_iter
        without = 0
        with searching(guided(problem), improving_only=False) as state:
            visited = deque([state.key], maxlen=int(self.length))
            while left > 0 and without < self.patience:
                if not state.step(floor=-np.inf, tabu=np.array(visited, dtype=np.uint64)):
                    break
                visited.append(state.key)
                without = 0 if state.improved else without + 1
                left -= 1
        return state.found()
