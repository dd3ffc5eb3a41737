"""The class of graphs that independence tests leave: skeleton, colliders, Meek's rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from poolbn.arrays import Flags, Floats
from poolbn.graph.constraints import Allowed
from poolbn.graph.dag import Cpdag
from poolbn.graph.equivalence import oriented
from poolbn.graph.pairs import Pair
from poolbn.scoring.separating import Between, CITests
from poolbn.wording import counted

if TYPE_CHECKING:
    import pandas as pd

Rule = Literal["standard", "conservative", "majority"]
RULES = ("standard", "conservative", "majority")
_MOST_SETS = 20_000  # that are asked whether they separate one pair, for its colliders

Triple = tuple[int, int, int]  # the ends in order, with the node between them in the middle


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Which of N nodes are joined, and what separates the others.

    Attributes:
        joined: (N, N), symmetric.
        log_p: the largest log p-value of each pair, (N, N), symmetric; NaN for pairs that were not
            tested.
        separators: of pairs x < y that are apart, the first set that separates them.
        tests: how many tests that took.
        largest: how many columns were conditioned on, at most.
    """

    joined: Flags
    log_p: Floats
    separators: dict[tuple[int, int], tuple[int, ...]]
    tests: int
    largest: int


def find_skeleton(
    tests: CITests, allowed: Allowed, alpha: float, max_given: int | None
) -> Skeleton:
    """PC-stable (Colombo and Maathuis, 2014): neighbours change only between sizes of sets.

    Only neighbours that may be parents are conditioned on: these separate any two nodes that are
    apart.
    """
    N = len(allowed.arcs)
    must = allowed.required | allowed.required.T
    joined = allowed.arcs | allowed.arcs.T | must
    log_p = np.full((N, N), math.nan)
    separators: dict[tuple[int, int], tuple[int, ...]] = {}
    made, largest = 0, 0
    for k in range(N - 1 if max_given is None else min(N - 1, max_given + 1)):
        may = joined & (allowed.arcs | allowed.required)  # be a parent of the second
        neighbours = [np.flatnonzero(may[:, x]) for x in range(N)]
        others = may.sum(axis=0)[:, None] - may.T  # of the first, without the second
        pairs = np.argwhere(np.triu(joined & ~must & (np.maximum(others, others.T) >= k)))
        if not len(pairs):
            break
        found = tests.level(pairs, neighbours, k, math.log(alpha))
        made, largest = made + int(found.tests.sum()), k
        x, y = pairs.T
        before = log_p[x, y]
        # Of a pair that is apart, the p-value of the set that separates it is the largest.
        after = np.where(np.isneginf(found.log_p), before, np.fmax(before, found.log_p))
        log_p[x, y] = log_p[y, x] = after
        # Where nothing can be tested, as with a column that is constant in each data set, nothing
        # speaks for an edge.
        untested = np.isneginf(found.log_p) & (k == 0) & (found.tests == 0)
        apart = pairs[found.found | untested]
        joined[apart[:, 0], apart[:, 1]] = joined[apart[:, 1], apart[:, 0]] = False
        out = pairs[found.found]
        for pair, separator in zip(out.tolist(), found.sets[found.found].tolist(), strict=True):
            separators[pair[0], pair[1]] = tuple(separator)
    return Skeleton(joined, log_p, separators, made, largest)


def _triples(joined: Flags) -> dict[tuple[int, int], list[int]]:
    """Of pairs a < b that are apart, the nodes that are joined to both."""
    found: dict[tuple[int, int], list[int]] = {}
    for c in range(len(joined)):
        for a, b in combinations(np.flatnonzero(joined[c]).tolist(), 2):
            if not joined[a, b]:
                found.setdefault((a, b), []).append(c)
    return found


def _shares(
    tests: CITests,
    skeleton: Skeleton,
    allowed: Allowed,
    alpha: float,
    between: dict[tuple[int, int], list[int]],
) -> dict[Triple, float]:
    """The share of separating sets that have the node between; NaN where no set separates."""
    may = skeleton.joined & (allowed.arcs | allowed.required)
    neighbours = [np.flatnonzero(may[:, x]) for x in range(len(may))]
    sizes = np.array(
        [_size(len(neighbours[a]), len(neighbours[b]), skeleton.largest) for a, b in between],
        dtype=np.int64,
    )
    pairs = np.array(list(between), dtype=np.int64).reshape(-1, 2)
    centres = [np.array(between[pair], dtype=np.int64) for pair in between]
    votes = tests.votes(Between(pairs, centres, neighbours, sizes), math.log(alpha))
    separating = np.repeat(votes.separating, [len(c) for c in centres])
    with np.errstate(invalid="ignore"):
        share = votes.hits / separating
    named = [(a, c, b) for (a, b), own in between.items() for c in own]
    return dict(zip(named, share.tolist(), strict=True))


def _size(first: int, second: int, largest: int) -> int:
    """How many to condition on: as many as before, but not more sets than can be asked."""
    k, sets = 0, 1
    while k < min(max(first, second), largest):
        sets += math.comb(first, k + 1) + math.comb(second, k + 1)
        if sets > _MOST_SETS:
            break
        k += 1
    return k


@dataclass(frozen=True, eq=False)
class Orientation:
    """Arcs and edges of a skeleton.

    Attributes:
        directed: (N, N), parent first.
        undirected: (N, N), symmetric.
        unsure: triples of which tests do not tell whether arcs meet in the middle.
        conflicts: pairs that tests direct both ways; they stay undirected.
    """

    directed: NDArray[np.bool_]
    undirected: NDArray[np.bool_]
    unsure: frozenset[Triple]
    conflicts: tuple[tuple[int, int], ...]


def orient(
    tests: CITests, skeleton: Skeleton, allowed: Allowed, alpha: float, rule: Rule
) -> Orientation:
    """Direct what colliders, Meek's rules and knowledge direct."""
    joined = skeleton.joined
    between = _triples(joined)
    may = allowed.arcs | allowed.required
    if rule == "standard":
        share = {
            (a, c, b): float(c in skeleton.separators[a, b])
            if (a, b) in skeleton.separators
            else math.nan
            for (a, b), own in between.items()
            for c in own
        }
    else:
        share = _shares(tests, skeleton, allowed, alpha, between)
    colliders, unsure = _judged(share, rule, may)
    known = (joined & may & ~may.T) | allowed.required
    asked = np.zeros_like(joined)
    for a, c, b in colliders:
        asked[a, c] = asked[b, c] = True
    conflicts = np.argwhere(np.triu(asked & asked.T)).tolist()
    asked &= ~asked.T & ~known.T
    directed = asked | known
    undirected = joined & ~(directed | directed.T)
    directed, undirected = oriented(
        directed, undirected, lambda a, b, c: (min(a, c), b, max(a, c)) in unsure, known
    )
    return Orientation(directed, undirected, frozenset(unsure), tuple((a, b) for a, b in conflicts))


def _judged(share: dict[Triple, float], rule: Rule, may: Flags) -> tuple[list[Triple], set[Triple]]:
    """Triples that are colliders, and those of which it is not known."""
    colliders, unsure = [], set()
    for triple, part in share.items():
        a, c, b = triple
        # Standard shares are 0 or 1; conservative ones must be.
        low = part < 0.5 if rule == "majority" else part == 0.0
        high = part > 0.5 if rule == "majority" else part == 1.0
        if low and may[a, c] and may[b, c]:
            colliders.append(triple)
        elif not high:
            unsure.add(triple)
    return colliders, unsure


@dataclass(frozen=True, repr=False)
class Pattern:
    """What independence tests tell of a network: the class of graphs that they leave.

    Attributes:
        cpdag: arcs that tests and constraints direct, and edges that they do not.
        separators: of pairs that are apart, the first set that was found to separate them. Pairs
            that constraints keep apart have none.
        p_values: of each pair, the largest p-value of its tests, (N, N) in the order of the nodes;
            NaN for pairs that were not tested.
        tests: how many tests that took. bnlearn counts those without a condition twice.
        test: which test, such as "combined"; "own" for a function.
        alpha: the level.
        unsure: triples (a, b, c) of which tests do not tell whether a -> b <- c.
        conflicts: pairs that tests direct both ways; they stay undirected.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g", "bmi"]].dropna()
        >>> pb.PC().pattern(pb.stats(trial, group="clinic"))
        Cpdag(3 nodes: gestation_days -- birthweight_g)
        3 tests (combined) at alpha = 0.01
    """

    cpdag: Cpdag
    separators: dict[Pair, tuple[str, ...]]
    p_values: NDArray[np.float64]
    tests: int
    test: str
    alpha: float
    unsure: tuple[tuple[str, str, str], ...]
    conflicts: tuple[Pair, ...]

    def table(self) -> pd.DataFrame:
        """A row for each pair that was tested, the most doubtful first.

        Columns: x, y, `joined`, `p_value` (the largest of its tests) and `given`, the set that
        separates them. A p-value near alpha is doubtful, on either side.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]].dropna()
            >>> found = pb.PC().pattern(pb.stats(trial, group="clinic"))
            >>> list(found.table().columns)
            ['x', 'y', 'joined', 'p_value', 'given']
        """
        import pandas as pd

        nodes = self.cpdag.nodes
        joined = {frozenset(pair) for pair in (*self.cpdag.directed, *self.cpdag.undirected)}
        rows = [
            (a, b, {a, b} in joined, self.p_values[i, k], self.separators.get((a, b), ()))
            for (i, a), (k, b) in combinations(enumerate(nodes), 2)
            if not math.isnan(self.p_values[i, k])
        ]
        table = pd.DataFrame(rows, columns=["x", "y", "joined", "p_value", "given"])
        with np.errstate(divide="ignore"):
            doubt = np.abs(np.log(table["p_value"].to_numpy(dtype=float)) - math.log(self.alpha))
        return table.iloc[np.argsort(doubt, kind="stable")].reset_index(drop=True)

    def __repr__(self) -> str:
        return (
            f"{self.cpdag!r}\n{counted(self.tests, 'test')} ({self.test}) at alpha = {self.alpha:g}"
            + (f"; {counted(len(self.unsure), 'triple')} unsure" if self.unsure else "")
            + (f"; {counted(len(self.conflicts), 'conflict')}" if self.conflicts else "")
        )


def as_pattern(
    names: Sequence[str], test: str, alpha: float, skeleton: Skeleton, found: Orientation
) -> Pattern:
    """With names in place of positions."""

    def pairs(matrix: Flags) -> list[Pair]:
        return [(names[a], names[b]) for a, b in np.argwhere(matrix).tolist()]

    return Pattern(
        Cpdag(names, pairs(found.directed), pairs(np.triu(found.undirected))),
        {
            (names[a], names[b]): tuple(names[s] for s in separator)
            for (a, b), separator in skeleton.separators.items()
        },
        np.exp(skeleton.log_p),
        skeleton.tests,
        test,
        alpha,
        tuple((names[a], names[b], names[c]) for a, b, c in sorted(found.unsure)),
        tuple((names[a], names[b]) for a, b in found.conflicts),
    )
