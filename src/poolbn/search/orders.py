"""Search over orders of the columns: the best parents of each node among those before it.

Best order score search (Andrews, Ramsey, Sanchez-Romero, Camchong and Kummerfeld, 2023). Each
column in turn moves to the place in the order where the score of the network is best, until no move
gains anything. The parents of a node are found by adding the best of the columns before it while
that gains, and then removing while that gains. What was found is remembered by node and parents, so
that later orders, and further starts, cost few fits.

The published search ends among graphs with the same independences, which presumes that they have
the same score. Scores of partial pooling tell x -> y from y -> x, so changes of single arcs come
last here: the result is never below that of hill climbing from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import check_count, check_whole
from poolbn.graph.constraints import Allowed
from poolbn.moments.standardised import Family
from poolbn.scoring.local import LocalScores
from poolbn.search.climbing import HillClimb
from poolbn.search.problem import Found, Move, Problem, Stopped, Watch, limited
from poolbn.search.state import TIE, topological

Floats = NDArray[np.float64]

_STARTS, _FEW_STARTS, _MOST_STARTS = 3000, 4, 30
_EXPENSIVE = 1e6  # regressions that a look at all pairs costs, from which tables come first
_AT_ONCE = 4  # changes of a node's parents that are scored together
_REGRESSIONS = 4e6  # that all starts may cost, if each looked at all pairs once


class _Total(NamedTuple):
    """The score of some nodes: those without a likelihood count first."""

    without: int
    score: float

    def __add__(self, other: _Total) -> _Total:  # type: ignore[override]
        return _Total(self.without + other.without, self.score + other.score)

    def beats(self, other: _Total) -> bool:
        if self.without != other.without:
            return self.without < other.without
        return self.score > other.score + TIE


def _total(score: float) -> _Total:
    return _Total(0, score) if math.isfinite(score) else _Total(1, 0.0)


class _Step:
    """A node with some parents, and what each change of these makes of its score.

    Attributes:
        score: as it is.
        values: with a column added or removed, or upper bounds of that, (N,).
        exact: which of them are scores, (N,).
        up: the columns that may improve the score when added, the most promising first.
        down: the same of those that may when removed.
    """

    __slots__ = ("down", "exact", "parents", "score", "up", "values")

    def __init__(self, parents: int, score: float, values: Floats, exact: NDArray[np.bool_]):
        self.parents, self.score, self.values, self.exact = parents, score, values, exact
        self.sort()

    def sort(self) -> None:
        """Find what is promising, after values have changed."""
        floor = self.score + TIE if math.isfinite(self.score) else -math.inf
        better = np.flatnonzero(self.values > floor)
        ranked: list[int] = better[np.argsort(-self.values[better], kind="stable")].tolist()
        self.up = [w for w in ranked if not self.parents >> w & 1]
        self.down = [w for w in ranked if self.parents >> w & 1]


@dataclass(eq=False)
class _Node:
    """What is known of one child: steps by parents, and the best parents in sets of columns.

    Attributes:
        must: required parents; sets of columns are bits of an integer.
        may: allowed ones, these among them.
        matter: columns that may improve the score of some step: others change nothing.
        best: parents and their score by the columns that matter and stand before the child.
    """

    must: int
    may: int
    steps: dict[int, _Step] = field(default_factory=dict)
    matter: int = 0
    best: dict[int, tuple[int, _Total]] = field(default_factory=dict)


class _Unknown(Exception):
    """A step that is to be made, or changes of one that are to be scored."""

    def __init__(self, parents: int, changes: Sequence[int] = ()) -> None:
        self.parents, self.changes = parents, changes
        super().__init__(parents, changes)


class _Parents:
    """The best parents of nodes among the columns before them, remembered."""

    def __init__(self, scores: LocalScores, allowed: Allowed) -> None:
        self.scores, self.most = scores, allowed.max_parents
        self.lost = 0.0  # how far the last bounds were above what they bound
        self.N = N = len(allowed.arcs)
        must = [_bits(np.flatnonzero(allowed.required[:, c]).tolist()) for c in range(N)]
        may = [_bits(np.flatnonzero(allowed.arcs[:, c]).tolist()) for c in range(N)]
        self.nodes = [_Node(must[c], may[c] | must[c]) for c in range(N)]
        self._make([(c, must[c]) for c in range(N)])

    def of(self, asked: Sequence[tuple[int, int]]) -> list[_Total]:
        """Scores of children with the best parents among some columns; see `parents`."""
        return [total for _, total in self._found(asked)]

    def parents(self, child: int, before: int) -> int:
        """The best parents of a child among some columns."""
        return self._found([(child, before)])[0][0]

    def _found(self, asked: Sequence[tuple[int, int]]) -> list[tuple[int, _Total]]:
        """All at once: steps that several need are made together, in threads."""
        left = list(dict.fromkeys(asked))
        while left:
            steps: dict[tuple[int, int], None] = {}
            changes: dict[tuple[int, int, int], None] = {}
            waiting = []
            for child, before in left:
                node = self.nodes[child]
                key = before & node.matter
                if key in node.best:
                    continue
                try:
                    node.best[key] = self._walk(node, before)
                except _Unknown as unknown:
                    waiting.append((child, before))
                    if not unknown.changes:
                        steps[child, unknown.parents] = None
                    for w in unknown.changes:
                        changes[child, unknown.parents, w] = None
            self._make(list(steps))
            self._fit(list(changes))
            left = waiting
        found = []
        for child, before in asked:
            node = self.nodes[child]
            key = before & node.matter
            if key not in node.best:  # what matters has changed meanwhile
                node.best[key] = self._walk(node, before)
            found.append(node.best[key])
        return found

    def _walk(self, node: _Node, before: int) -> tuple[int, _Total]:
        """Add the best while that gains, and then remove.

        Raises:
            _Unknown: a score is not known yet.
        """
        step = node.steps[node.must]
        while step.parents.bit_count() < self.most:
            w = self._first(step, step.up, before & node.may)
            if w is None:
                break
            step = self._step(node, step.parents | 1 << w)
        while (w := self._first(step, step.down, ~node.must)) is not None:
            step = self._step(node, step.parents & ~(1 << w))
        return step.parents, _total(step.score)

    def _first(self, step: _Step, ranked: Sequence[int], among: int) -> int | None:
        for k, w in enumerate(ranked):
            if among >> w & 1:
                if not step.exact[w]:
                    raise _Unknown(step.parents, self._promising(step, ranked[k:], among))
                return w
        return None

    def _promising(self, step: _Step, ranked: Sequence[int], among: int) -> list[int]:
        """Changes that the first cannot rule out if it keeps as much of its bound as the last."""
        floor = step.values[ranked[0]] - self.lost
        found = [*ranked[:1]]
        for w in ranked[1:]:
            if len(found) == _AT_ONCE or step.values[w] <= floor:
                break
            if among >> w & 1 and not step.exact[w]:
                found.append(w)
        return found

    @staticmethod
    def _step(node: _Node, parents: int) -> _Step:
        if parents not in node.steps:
            raise _Unknown(parents)
        return node.steps[parents]

    def _make(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Make steps."""
        if not wanted:
            return
        families = [_family(child, parents) for child, parents in wanted]
        able = np.zeros((len(wanted), self.N), dtype=bool)
        for row, (child, parents) in zip(able, wanted, strict=True):
            node = self.nodes[child]
            full = parents.bit_count() >= self.most
            row[_members((0 if full else node.may) | parents)] = True
            row[_members(node.must)] = False
        values, exact = self.scores.neighbours(families, able, improving_only=True)
        for m, (child, parents) in enumerate(wanted):
            own = np.where(able[m], values[m], -np.inf)
            self._keep(child, _Step(parents, float(values[m, child]), own, exact[m].copy()))

    def _fit(self, wanted: Sequence[tuple[int, int, int]]) -> None:
        """Score changes of which there are bounds."""
        if not wanted:
            return
        values = self.scores([_family(child, parents ^ 1 << w) for child, parents, w in wanted])
        lost, changed = [], {}
        for (child, parents, w), value in zip(wanted, values.tolist(), strict=True):
            step = changed[child, parents] = self.nodes[child].steps[parents]
            lost.append(float(step.values[w]) - value)
            step.values[w], step.exact[w] = value, True
        lost = [away for away in lost if math.isfinite(away)]
        if lost:
            self.lost = max(0.0, math.fsum(lost) / len(lost))
        for step in changed.values():
            step.sort()

    def _keep(self, child: int, step: _Step) -> None:
        node = self.nodes[child]
        node.steps[step.parents] = step
        matter = node.matter | _bits(step.up)
        if matter != node.matter:
            node.matter = matter
            node.best.clear()


def _bits(members: Iterable[int]) -> int:
    made = 0
    for k in members:
        made |= 1 << k
    return made


def _members(bits: int) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def _family(child: int, parents: int) -> Family:
    return child, tuple(_members(parents))


class _Order:
    """An order of the columns, and the network that it stands for."""

    def __init__(self, best: _Parents, order: Sequence[int], required: NDArray[np.bool_]) -> None:
        self.best, self.order, self.required = best, list(order), required
        self.total = self._sum()

    def _sum(self) -> _Total:
        before, asked = 0, []
        for v in self.order:
            asked.append((v, before))
            before |= 1 << v
        return _sum(self.best.of(asked))

    def arcs(self) -> NDArray[np.bool_]:
        """The network, (N, N)."""
        found = np.zeros((len(self.order),) * 2, dtype=bool)
        before = 0
        for v in self.order:
            found[_members(self.best.parents(v, before)), v] = True
            before |= 1 << v
        return found

    def improve(self, watch: Watch) -> None:
        """Move columns until no move gains anything."""
        moved = True
        while moved:
            moved = False
            for v in tuple(self.order):
                if self.move(v):
                    moved = True
                    watch(0, Found(self.arcs(), self.total.score))

    def move(self, v: int) -> bool:
        """Put a column where the score is best; whether that changed the order."""
        others = [w for w in self.order if w != v]
        at = self.order.index(v)
        bit, N = 1 << v, len(others)
        # What must stand before it, and what after.
        first = max((i + 1 for i, w in enumerate(others) if self.required[w, v]), default=0)
        last = min((i for i, w in enumerate(others) if self.required[v, w]), default=N)
        befores = [0]
        for w in others:
            befores.append(befores[-1] | 1 << w)
        asked = [(v, befores[k]) for k in range(first, last + 1)]
        asked += [(w, befores[i]) for i, w in enumerate(others) if first <= i < last]
        asked += [(w, befores[i] | bit) for i, w in enumerate(others) if first <= i < last]
        found = self.best.of(asked)
        size = last - first
        own, without, with_it = (
            found[: size + 1],
            found[size + 1 : 2 * size + 1],
            found[2 * size + 1 :],
        )
        # From the first place on: all others in between follow the column, then one by one lead it.
        total = _sum(with_it)
        totals = [total + own[0]]
        for k in range(size):
            total = _Total(
                total.without + without[k].without - with_it[k].without,
                total.score + without[k].score - with_it[k].score,
            )
            totals.append(total + own[k + 1])
        here = totals[at - first]
        best = at - first
        for k, value in enumerate(totals):
            if value.beats(totals[best]):
                best = k
        if not totals[best].beats(here):
            return False
        others.insert(first + best, v)
        self.order = others
        self.total = self._sum()
        return True


def _sum(totals: Iterable[_Total]) -> _Total:
    totals = list(totals)
    return _Total(sum(t.without for t in totals), math.fsum(t.score for t in totals))


@dataclass(frozen=True)
class OrderSearch:
    """Search over orders of the columns, from several starts; then changes of single arcs.

    Attributes:
        starts: orders to start from: the first follows the graph that the search is given, others
            are random. By default 30 with ten columns or fewer, 7 with 20, 4 with 30 or more, as
            what is remembered makes later ones cheap; fewer, down to 1, where scores are expensive.
            There, with tens of thousands of rows or many discrete columns, orders are compared with
            tables for discrete nodes with discrete parents, which cost little, and only what comes
            last looks at regressions too.
        max_parents: of any node; no limit by default.
        seed: random seed.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days"]].dropna()
        >>> pb.learn(trial, group="clinic", search=pb.OrderSearch(starts=2)).dag
        Dag('[bmi][gestation_days][age|bmi]')
    """

    starts: int | None = None
    max_parents: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(starts=self.starts, max_parents=self.max_parents)
        if self.starts is not None:
            check_count(1, starts=self.starts)
        check_count(seed=self.seed)

    def learn(self, problem: Problem) -> Found:
        """The best network of all starts."""
        allowed = limited(problem, self.max_parents)
        full, required = problem.scores, allowed.required
        # Where scores are expensive orders are compared by those that are not.
        scores = full.cheap if full.cost * len(required) ** 2 > _EXPENSIVE else full
        made = scores.made
        found, total = _scored(scores, problem.start | required)
        trace: list[Move] = []

        def watch(moves: int, now: Found) -> None:
            problem.watch(len(trace) + moves, now)

        try:
            best = _Parents(scores, allowed)
            for start in range(self.starts or _usual_starts(len(required), scores.cost)):
                rng = np.random.default_rng([self.seed, start])
                first = _shuffled(required, rng) if start else topological(found.arcs)
                order = _Order(best, first, required)
                order.improve(watch)
                if order.total.beats(total):
                    before = found.score
                    found, total = _scored(scores, order.arcs())
                    gain = found.score - before if math.isfinite(before) else 0.0
                    trace.append(Move("orders", (), gain, scores.made - made, 0))
                    made = scores.made
            if scores is not full:  # what was given may be better by them
                given, ours = _scored(full, problem.start | required), _scored(full, found.arcs)
                found, _ = given if given[1].beats(ours[1]) else ours
            if scores is not full and full.cost * len(required) ** 2 < _REGRESSIONS:
                order = _Order(_Parents(full, allowed), topological(found.arcs), required)
                order.improve(watch)
                found, _ = _scored(full, order.arcs())
            last = HillClimb().learn(Problem(full, allowed, found.arcs, watch))
        except Stopped as stopped:
            found = stopped.found
            raise Stopped(Found(found.arcs, found.score, (*trace, *found.trace))) from None
        except KeyboardInterrupt:
            raise Stopped(Found(found.arcs, found.score, tuple(trace))) from None
        return Found(last.arcs, last.score, (*trace, *last.trace))


def _usual_starts(columns: int, cost: float) -> int:
    most = min(max(_STARTS / columns**2, _FEW_STARTS), _MOST_STARTS)
    return int(max(min(most, _REGRESSIONS / max(cost * columns**2, 1.0)), 1))


def _scored(scores: LocalScores, arcs: NDArray[np.bool_]) -> tuple[Found, _Total]:
    families = [(c, tuple(np.flatnonzero(column).tolist())) for c, column in enumerate(arcs.T)]
    values = scores(families).tolist()
    return Found(arcs, math.fsum(values)), _sum(map(_total, values))


def _shuffled(required: NDArray[np.bool_], rng: np.random.Generator) -> list[int]:
    """A random order that required arcs keep to."""
    mixed = rng.permutation(len(required))
    order: list[int] = mixed[topological(required[np.ix_(mixed, mixed)])].tolist()
    return order
