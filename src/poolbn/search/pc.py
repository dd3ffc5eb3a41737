"""PC: a learner that asks independence tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, check_option, check_whole
from poolbn.graph.constraints import Allowed, Constraints, as_constraints
from poolbn.graph.equivalence import extended
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.kinds import MixedData
from poolbn.moments.standardised import Family
from poolbn.nodes.choosing import as_pooling, check_data
from poolbn.nodes.model import Choice
from poolbn.scoring.independence import OwnTest, Test, check_level, check_test, make_tests
from poolbn.scoring.local import LocalScores
from poolbn.scoring.separating import CITests
from poolbn.search.climbing import HillClimb
from poolbn.search.pattern import (
    RULES,
    Orientation,
    Pattern,
    Rule,
    Skeleton,
    as_pattern,
    find_skeleton,
    orient,
)
from poolbn.search.problem import Found, Move, Problem
from poolbn.search.state import TIE


@dataclass(frozen=True)
class PC:
    """Constraint-based learning with PC-stable (Colombo and Maathuis, 2014).

    Two columns are joined if no set of their neighbours makes them independent. Colliders and
    Meek's rules direct a part of the edges; `pb.learn` directs the rest by score, among the
    networks of the class that is left. Which columns are joined does not depend on their order.

    Attributes:
        alpha: the level of each test.
        test: see `pb.ci_test`; "auto" follows the pooling. Or a function of your own: the names of
            two columns, and of those to condition on, give a p-value.
        rule: when arcs meet in a node b between a and c that are apart: "conservative", if b is in
            none of the sets that separate a and c; "majority", if it is in less than half of
            them; "standard", if it is not in the first that was found, as in bnlearn. Only the
            last depends on the order of columns, in `pattern`.
        max_given: columns to condition on, at most; no limit by default.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g", "bmi"]].dropna()
        >>> net = pb.learn(trial, group="clinic", search=pb.PC())
        >>> net.dag.skeleton()
        (('gestation_days', 'birthweight_g'),)
    """

    alpha: float = 0.01
    test: Test | OwnTest = "auto"
    rule: Rule = "majority"
    max_given: int | None = None

    def __post_init__(self) -> None:
        check_level(self.alpha)
        check_test(self.test)
        check_option("rule", self.rule, RULES)
        check_whole(max_given=self.max_given)

    def pattern(
        self,
        data: GroupStats | MixedData,
        *,
        pooling: str | Choice = "partial",
        constraints: Constraints | Mapping[str, Any] | None = None,
    ) -> Pattern:
        """The class of networks that tests leave, with separating sets and p-values.

        Args:
            data: sufficient statistics, from `pb.stats`, or rows with columns of all kinds, from
                `pb.table`.
            pooling: "complete", "none", "partial", or an object; it says which test "auto" is.
            constraints: what is known: required and forbidden arcs, tiers; a `pb.Constraints`, or a
                dict of them.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g", "bmi"]]
            >>> found = pb.PC().pattern(pb.stats(trial.dropna(), group="clinic"))
            >>> found.cpdag
            Cpdag(3 nodes: gestation_days -- birthweight_g)
            >>> found.separators["gestation_days", "bmi"]
            ()
        """
        check_data(data)
        tests = make_tests(data, as_pooling(pooling).first(data.levels), self.test)
        allowed = as_constraints(constraints).on(data.names)
        allowed.arcs[:, [data.names.index(name) for name in data.inputs]] = False
        return as_pattern(data.names, tests.test, self.alpha, *self._found(tests, allowed))

    def _found(self, tests: CITests, allowed: Allowed) -> tuple[Skeleton, Orientation]:
        skeleton = find_skeleton(tests, allowed, self.alpha, self.max_given)
        return skeleton, orient(tests, skeleton, allowed, self.alpha, self.rule)

    def joined(self, tests: CITests, allowed: Allowed) -> NDArray[np.bool_]:
        """Pairs that are joined, (N, N): what `pb.Hybrid` searches."""
        return find_skeleton(tests, allowed, self.alpha, self.max_given).joined

    def learn(self, problem: Problem) -> Found:
        """The network of the class that tests leave with the best score that is found."""
        scores, allowed = problem.scores, problem.allowed
        tests = make_tests(scores.data, scores.model, self.test)
        _, found = self._found(tests, allowed)
        names = scores.names

        def pairs(matrix: NDArray[np.bool_]) -> list[tuple[str, str]]:
            return [(names[a], names[b]) for a, b in np.argwhere(matrix).tolist()]

        try:
            chosen = extended(names, pairs(found.directed), pairs(np.triu(found.undirected)))
        except GraphError:
            return _climbed(problem, found)
        arcs = np.zeros_like(found.directed)
        for parent, child in chosen:
            arcs[names.index(parent), names.index(child)] = True
        if (arcs & ~(allowed.arcs | allowed.required)).any() or (
            arcs.sum(axis=0) > allowed.max_parents
        ).any():
            return _climbed(problem, found)
        return _best_in_class(problem, arcs, found.undirected)


def _climbed(problem: Problem, found: Orientation) -> Found:
    """Where tests contradict each other, so that no network has all arcs: the best with some."""
    allowed = problem.allowed._replace(
        arcs=problem.allowed.arcs & (found.directed | found.undirected)
    )
    return HillClimb().learn(
        Problem(problem.scores, allowed, problem.allowed.required, problem.watch)
    )


def _best_in_class(problem: Problem, arcs: NDArray[np.bool_], free: NDArray[np.bool_]) -> Found:
    """Climb by reversing covered arcs, which lead to all networks of a class (Chickering, 1995)."""
    scores, allowed = problem.scores, problem.allowed
    arcs, trace = arcs.copy(), []
    made = scores.made
    before = _total(scores, problem.start | allowed.required)
    now = _total(scores, arcs)
    gain = now - before if np.isfinite(before) else 0.0
    trace.append(Move("tests", (), gain, scores.made - made, 0))
    while True:
        made = scores.made
        covered = [
            (p, c)
            for p, c in np.argwhere(arcs & free & allowed.arcs.T).tolist()
            if _covered(arcs, p, c) and arcs[:, p].sum() < allowed.max_parents
        ]
        gains = _gains(scores, arcs, covered)
        if not len(gains) or not gains.max() > TIE:
            break
        p, c = covered[int(gains.argmax())]
        arcs[p, c], arcs[c, p] = False, True
        now += float(gains.max())
        names = scores.names
        trace.append(
            Move("reverse", (names[p], names[c]), float(gains.max()), scores.made - made, 0)
        )
        problem.watch(len(trace), Found(arcs, now))
    return Found(arcs, _total(scores, arcs), tuple(trace))


def _covered(arcs: NDArray[np.bool_], p: int, c: int) -> bool:
    """Whether p and c have the same parents, p aside."""
    own = arcs[:, c].copy()
    own[p] = False
    return bool((own == arcs[:, p]).all())


def _family(arcs: NDArray[np.bool_], child: int, *, without: int = -1, plus: int = -1) -> Family:
    parents = {*np.flatnonzero(arcs[:, child]).tolist(), plus} - {without, -1}
    return child, tuple(sorted(parents))


def _gains(
    scores: LocalScores, arcs: NDArray[np.bool_], pairs: list[tuple[int, int]]
) -> NDArray[np.float64]:
    """What the score gains when each of these arcs is reversed."""
    families = []
    for p, c in pairs:
        families += [_family(arcs, p, plus=c), _family(arcs, c, without=p)]
        families += [_family(arcs, p), _family(arcs, c)]
    values = scores(families).reshape(-1, 4)
    return np.asarray(values[:, 0] + values[:, 1] - values[:, 2] - values[:, 3])


def _total(scores: LocalScores, arcs: NDArray[np.bool_]) -> float:
    return float(scores([_family(arcs, c) for c in range(len(arcs))]).sum())
