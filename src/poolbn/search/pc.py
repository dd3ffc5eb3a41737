"""PC: a learner that asks independence tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, check_option, check_whole
from poolbn.graph.constraints import Allowed, Constraints, as_constraints
from poolbn.graph.equivalence import extended, reached
from poolbn.moments.data import Data, check_data
from poolbn.moments.standardised import Family
from poolbn.nodes.choosing import as_pooling
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
from poolbn.search.state import TIE, topological


@dataclass(frozen=True)
class PC:
    """Constraint-based learning with PC-stable (Colombo and Maathuis, 2014).

    Two columns are joined if no set of their neighbours makes them independent. Colliders and
    Meek's rules direct a part of the edges; `pb.learn` directs the rest by score, among the
    networks of the class that is left, or where tests contradict each other among all that join
    the same columns. Which columns are joined does not depend on their order.

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
        data: Data,
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
            return _contradicted(problem, found)
        arcs = np.zeros_like(found.directed)
        for parent, child in chosen:
            arcs[names.index(parent), names.index(child)] = True
        if (arcs & ~(allowed.arcs | allowed.required)).any() or (
            arcs.sum(axis=0) > allowed.max_parents
        ).any():
            return _contradicted(problem, found)
        return _reversed(problem, arcs, found.undirected, _covered)


def _contradicted(problem: Problem, found: Orientation) -> Found:
    """Where tests contradict each other, so that no network of one class has all that they say.

    Still all columns that tests join are joined, in the directions that they tell; what they leave
    open a search by score directs, whatever v-structures come of it. Constraints come first: where
    arcs that are known have a cycle, or a column may not have so many parents, arcs are left out.
    """
    allowed, joined = problem.allowed, found.directed | found.undirected
    N, keep = len(joined), allowed.required | found.directed
    if len(topological(keep)) < N or (keep.sum(axis=0) > allowed.max_parents).any():
        keep = allowed.required
    fewer = allowed._replace(arcs=allowed.arcs & joined, required=keep)
    first = HillClimb().learn(Problem(problem.scores, fewer, keep, problem.watch))
    arcs, order = first.arcs.copy(), topological(first.arcs)
    for p, c in combinations(order, 2):  # along an order there is no cycle
        if fewer.arcs[p, c] and not arcs[p, c] and arcs[:, c].sum() < allowed.max_parents:
            arcs[p, c] = True
    return _reversed(problem, arcs, found.undirected, _without_cycle)


def _reversed(
    problem: Problem,
    arcs: NDArray[np.bool_],
    free: NDArray[np.bool_],
    able: Callable[[NDArray[np.bool_]], NDArray[np.bool_]],
) -> Found:
    """Climb by reversing arcs, and no other moves.

    Args:
        problem: with the scores and constraints.
        arcs: the graph to begin with, (N, N).
        free: edges that may have either direction, (N, N).
        able: which arcs of a graph may be reversed, (N, N). Covered ones lead to all networks of
            a class (Chickering, 1995).
    """
    scores, allowed = problem.scores, problem.allowed
    arcs, trace = arcs.copy(), []
    made = scores.made
    before = _total(scores, problem.start | allowed.required)
    now = _total(scores, arcs)
    gain = now - before if np.isfinite(before) else 0.0
    trace.append(Move("tests", (), gain, scores.made - made, 0))
    while True:
        made = scores.made
        some = arcs & free & ~allowed.required & allowed.arcs.T & able(arcs)
        some &= (arcs.sum(axis=0) < allowed.max_parents)[:, None]
        turned = np.argwhere(some).tolist()
        gains = _gains(scores, arcs, turned)
        if not len(gains) or not gains.max() > TIE:
            break
        p, c = turned[int(gains.argmax())]
        arcs[p, c], arcs[c, p] = False, True
        now += float(gains.max())
        names = scores.names
        trace.append(
            Move("reverse", (names[p], names[c]), float(gains.max()), scores.made - made, 0)
        )
        problem.watch(len(trace), Found(arcs, now))
    return Found(arcs, _total(scores, arcs), tuple(trace))


def _covered(arcs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Arcs of which both ends have the same parents, the first aside, (N, N)."""
    own = arcs.astype(np.float32)
    degree, both = own.sum(axis=0), own.T @ own
    return np.asarray(arcs & (both == degree[:, None]) & (degree == degree[:, None] + 1))


def _without_cycle(arcs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Arcs from whose beginning no other way leads to their end, (N, N)."""
    own = arcs.astype(np.float32)
    return np.asarray(arcs & ~(own @ reached(arcs).astype(np.float32) > 0))


def _family(arcs: NDArray[np.bool_], child: int, *, without: int = -1, plus: int = -1) -> Family:
    parents = {*np.flatnonzero(arcs[:, child]).tolist(), plus} - {without, -1}
    return child, tuple(sorted(parents))


def _gains(
    scores: LocalScores, arcs: NDArray[np.bool_], pairs: list[list[int]]
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
