"""Hybrid learning: tests restrict what a search by score may join."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import FLAG, check_arguments
from poolbn.errors import Option, OptionError, check_count, check_whole
from poolbn.graph.constraints import Allowed
from poolbn.scoring.independence import OwnTest, Test, check_level, check_test, make_tests
from poolbn.scoring.separating import CITests
from poolbn.search.climbing import HillClimb
from poolbn.search.problem import Found, Learner, Problem, Stopped
from poolbn.search.state import TIE

_STEPS = 3  # apart, that columns may be joined at the end


class Restriction(Protocol):
    """What says which columns a search may join."""

    @property
    def test(self) -> Test | OwnTest:
        """The test that it asks, or "auto"."""

    def joined(self, tests: CITests, allowed: Allowed) -> NDArray[np.bool_]:
        """Pairs that may be joined, (N, N), symmetric."""


@dataclass(frozen=True)
class MMPC:
    """Max-min parents and children (Tsamardinos, Brown and Aliferis, 2006).

    Each column collects candidates: the one whose largest p-value, given any of those that it has,
    is least. At the end each must hold against the others.

    Attributes:
        alpha: the level of each test.
        test: see `pb.ci_test`; "auto" follows the pooling. Or a function of your own: the names of
            two columns, and of those to condition on, give a p-value.
        max_given: columns to condition on, at most; None for no limit.
        both: whether two columns may be joined only if each is a candidate of the other, as in
            bnlearn; else one is enough.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g", "bmi"]].dropna()
        >>> search = pb.Hybrid(restrict=pb.MMPC(alpha=0.01))
        >>> pb.learn(trial, group="clinic", search=search).dag.skeleton()
        (('gestation_days', 'birthweight_g'),)
    """

    alpha: float = 0.05
    test: Test | OwnTest = "auto"
    max_given: int | None = 3
    both: bool = False

    def __post_init__(self) -> None:
        check_level(self.alpha)
        check_test(self.test)
        check_whole(max_given=self.max_given)
        check_arguments(both=(self.both, FLAG))

    def joined(self, tests: CITests, allowed: Allowed) -> NDArray[np.bool_]:
        """Pairs that may be joined, (N, N)."""
        must = allowed.required | allowed.required.T
        most = len(must) - 2 if self.max_given is None else min(self.max_given, len(must) - 2)
        found = tests.max_min(
            allowed.arcs | allowed.arcs.T, must, max(most, 0), math.log(self.alpha)
        )
        other = found.joined.T
        return found.joined & other if self.both else found.joined | other


@dataclass(frozen=True)
class Hybrid:
    """Hybrid learning: tests say which columns may be joined, and a search finds the best network.

    It is for many columns, where most pairs are not worth a score. A search that takes a wrong turn
    needs arcs between columns that share a neighbour. So when it ends, columns that are two steps
    apart, then three, may be joined too, and it goes on from there, until that gains nothing.
    bnlearn's `mmhc`, which does not go on, is
    `pb.Hybrid(pb.MMPC(max_given=None, both=True), widen=1)`.

    Attributes:
        restrict: `pb.MMPC()` or `pb.PC()`; of the latter only which columns are joined.
        maximise: the search, `pb.HillClimb()`, `pb.Tabu()` or `pb.Exact()`.
        widen: up to how many steps apart columns may be joined at the end; 1 is candidates only.
            None is 3, and any columns in a last climb, which ends where `pb.HillClimb()` might.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g", "bmi"]].dropna()
        >>> net = pb.learn(trial, group="clinic", search=pb.Hybrid(maximise=pb.Tabu()))
        >>> net.dag.skeleton()
        (('gestation_days', 'birthweight_g'),)
    """

    restrict: Restriction = field(default_factory=MMPC)
    maximise: Learner = field(default_factory=HillClimb)
    widen: int | None = 3

    def __post_init__(self) -> None:
        check_count(1, widen=_STEPS if self.widen is None else self.widen)
        for name, method, known in (
            ("restrict", "joined", "pb.MMPC() or pb.PC()"),
            ("maximise", "learn", "pb.HillClimb(), pb.Tabu() or pb.Exact()"),
        ):
            value = getattr(self, name)
            if isinstance(value, type) or not hasattr(value, method):
                raise OptionError(Option(name, value), f" cannot be used; use {known}")

    def learn(self, problem: Problem) -> Found:
        """The best network that the search finds among those that tests leave."""
        scores, allowed = problem.scores, problem.allowed
        tests = make_tests(scores.data, scores.model, self.restrict.test)
        joined = self.restrict.joined(tests, allowed) | allowed.required
        fewer = allowed._replace(arcs=allowed.arcs & joined)
        start = (problem.start & joined) | allowed.required
        found = self.maximise.learn(Problem(scores, fewer, start, problem.watch))
        steps, last = 2, _STEPS if self.widen is None else self.widen
        while steps <= last + (self.widen is None):
            near = joined | found.arcs | found.arcs.T
            wider = allowed._replace(arcs=allowed.arcs & _within(near, steps))
            wider = allowed if steps > last else wider
            try:
                again = self.maximise.learn(Problem(scores, wider, found.arcs, problem.watch))
            except Stopped as stopped:
                raise Stopped(_after(found, stopped.found)) from None
            if again.score > found.score + TIE:
                found = _after(found, again)
            else:
                steps += 1
        return found


def _within(near: NDArray[np.bool_], steps: int) -> NDArray[np.bool_]:
    """Pairs of nodes that are so many steps apart or fewer, (N, N)."""
    one = near.astype(np.float32)
    reached = one
    for _ in range(steps - 1):
        reached = ((reached + reached @ one) > 0).astype(np.float32)
    return np.asarray(reached > 0)


def _after(first: Found, second: Found) -> Found:
    """The second, with the way of both."""
    return Found(second.arcs, second.score, (*first.trace, *second.trace))
