"""What a learner is given and what it returns, whether it climbs, enumerates or tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, Option
from poolbn.graph.constraints import Allowed
from poolbn.scoring.local import LocalScores
from poolbn.wording import counted


class Move(NamedTuple):
    """One step of a search.

    Attributes:
        kind: "add", "remove", "reverse"; "restart", "exact" or "tests" for another graph
            altogether.
        arc: parent and child before the move; empty for another graph.
        gain: what the score gained.
        fits: local scores computed for it.
        spared: candidates that were ruled out without a fit.
    """

    kind: str
    arc: tuple[str, ...]
    gain: float
    fits: int
    spared: int


@dataclass(frozen=True, eq=False)
class Found:
    """What a learner ends with.

    Attributes:
        arcs: the best graph, (N, N), parent first.
        score: its score.
        trace: the moves, in order.
    """

    arcs: NDArray[np.bool_]
    score: float
    trace: tuple[Move, ...] = ()


Watch = Callable[[int, Found], None]


def unwatched(moves: int, now: Found) -> None:
    """Nobody looks on."""


class Stopped(KeyboardInterrupt):
    """The user stopped a learner that has a graph to show.

    Attributes:
        found: the best graph until then.
    """

    def __init__(self, found: Found) -> None:
        self.found = found
        super().__init__(found)


@dataclass(frozen=True, eq=False)
class Problem:
    """Find a graph.

    Attributes:
        scores: of families, as positions in its `names`.
        allowed: the constraints.
        start: the graph to start from, (N, N); it keeps to the constraints.
        watch: is told after each step how many there were, and the graph and score of the moment.
        guide: scores whose graph a climb starts from in place of `start`.
    """

    scores: LocalScores
    allowed: Allowed
    start: NDArray[np.bool_]
    watch: Watch = unwatched
    guide: LocalScores | None = None


def limited(problem: Problem, max_parents: int | None) -> Allowed:
    """The constraints of a problem, with a learner's own limit of parents."""
    allowed = problem.allowed
    if max_parents is None or max_parents >= allowed.max_parents:
        return allowed
    needed = allowed.required.sum(axis=0)
    if (needed > max_parents).any():
        c = int((needed > max_parents).argmax())
        raise GraphError(
            f"{counted(int(needed[c]), 'arc')} into {problem.scores.names[c]!r} must be there, ",
            "and ",
            Option("max_parents", max_parents),
            "; require fewer or allow more",
        )
    return allowed._replace(max_parents=max_parents)


class Learner(Protocol):
    """A way to learn a graph."""

    def learn(self, problem: Problem) -> Found:
        """The best graph that it finds.

        Raises:
            Stopped: on Ctrl-C, if there is a graph to show by then.
        """
