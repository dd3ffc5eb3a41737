"""Hybrid learning: tests restrict what a search by score may join."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import FLAG, check_arguments
from poolbn.errors import Option, OptionError, check_whole
from poolbn.graph.constraints import Allowed
from poolbn.scoring.independence import OwnTest, Test, check_level, check_test, make_tests
from poolbn.scoring.separating import CITests
from poolbn.search.climbing import HillClimb
from poolbn.search.problem import Found, Learner, Problem, Stopped
from poolbn.search.state import TIE

_LEVEL = 0.05  # of tests of columns that are far apart; what raises a score is far below it


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
        (('gestation_days', 'birthweight_g'), ('birthweight_g', 'bmi'))
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
    needs arcs between columns that share a neighbour, and tests that condition on many sets miss
    some columns. So when it ends, columns that are two steps apart may be joined too, and any
    column with one that depends on it, at the 5% level, given the parents that this one has; it
    goes on from there, until that gains nothing. bnlearn's `mmhc`, which does not go on, is
    `pb.Hybrid(pb.MMPC(max_given=None, both=True), widen=False)`.

    Attributes:
        restrict: `pb.MMPC()` or `pb.PC()`; of the latter only which columns are joined.
        maximise: the search, `pb.HillClimb()`, `pb.Tabu()` or `pb.Exact()`.
        widen: whether columns that are no candidates of each other may be joined at the end.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g", "bmi"]].dropna()
        >>> net = pb.learn(trial, group="clinic", search=pb.Hybrid(maximise=pb.Tabu()))
        >>> net.dag.skeleton()
        (('gestation_days', 'birthweight_g'), ('birthweight_g', 'bmi'))
    """

    restrict: Restriction = field(default_factory=MMPC)
    maximise: Learner = field(default_factory=HillClimb)
    widen: bool = True

    def __post_init__(self) -> None:
        check_arguments(widen=(self.widen, FLAG))
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
        tested, likely = np.ones_like(joined), np.zeros_like(joined)
        found = self.maximise.learn(Problem(scores, fewer, start, problem.watch, problem.guide))
        while self.widen:
            near = joined | found.arcs | found.arcs.T
            new = allowed.arcs & ~found.arcs & (found.arcs != tested).any(axis=0)
            likely = (likely & ~new) | tests.dependent(new, found.arcs, math.log(_LEVEL))
            tested = found.arcs
            wider = allowed._replace(arcs=allowed.arcs & (_two_apart(near) | likely | likely.T))
            try:
                again = self.maximise.learn(Problem(scores, wider, found.arcs, problem.watch))
            except Stopped as stopped:
                raise Stopped(_after(found, stopped.found)) from None
            if again.score <= found.score + TIE:
                break
            found = _after(found, again)
        return found


def _two_apart(near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pairs of nodes that are near each other or share a node that is, (N, N)."""
    one = near.astype(np.float32)
    return np.asarray((one + one @ one) > 0)


def _after(first: Found, second: Found) -> Found:
    """The second, with the way of both."""
    return Found(second.arcs, second.score, (*first.trace, *second.trace))
