"""The search that a table gets when nobody chooses one."""

from __future__ import annotations

from dataclasses import dataclass

from poolbn.errors import check_count, check_whole
from poolbn.search.climbing import HillClimb
from poolbn.search.exact import Exact
from poolbn.search.orders import OrderSearch
from poolbn.search.problem import Found, Learner, Problem

_FAMILIES = 2e6  # of regressions that all families of an exact search may cost: about a second
_ORDERS = 250  # columns, above which orders take minutes and climbing takes seconds


@dataclass(frozen=True)
class AutoSearch:
    """The exact optimum where that takes a second, else orders, else hill climbing.

    Up to some eight or ten columns all networks are compared. Up to 250 columns it is a search over
    orders, from as many starts as `OrderSearch` has for that many columns. Beyond, hill climbing.

    Attributes:
        max_parents: of any node; no limit by default.
        seed: random seed.
        starts: of a search over orders, see `OrderSearch`.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> pb.learn(trial, group="clinic", search=pb.AutoSearch(max_parents=2)).dag
        Dag('[bmi][age|bmi]')
    """

    max_parents: int | None = None
    seed: int = 0
    starts: int | None = None

    def __post_init__(self) -> None:
        check_whole(max_parents=self.max_parents, starts=self.starts)
        if self.starts is not None:
            check_count(1, starts=self.starts)
        check_count(seed=self.seed)

    def learn(self, problem: Problem) -> Found:
        """What the chosen search finds."""
        return usual_search(problem, self).learn(problem)


def usual_search(problem: Problem, asked: AutoSearch) -> Learner:
    """The search for these scores and constraints."""
    N = len(problem.start)
    if N > _ORDERS:
        return HillClimb()
    free = (problem.allowed.arcs | problem.allowed.required).sum(axis=0).tolist()
    families = sum(2.0 ** min(k, 60) for k in free)
    if N <= 20 and families * max(problem.scores.cost, 1.0) <= _FAMILIES:
        return Exact(asked.max_parents)
    return OrderSearch(asked.starts, asked.max_parents, asked.seed)
