"""Scores of families, remembered; and the score of a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, Option, OptionError, check_option
from poolbn.graph.dag import Dag, as_dag
from poolbn.graph.pairs import Pair
from poolbn.moments.data import Data, check_data, sums_with
from poolbn.moments.standardised import Family, changed_by
from poolbn.nodes.auto import with_tables
from poolbn.nodes.choosing import as_pooling
from poolbn.nodes.kinds import chooses_tables, in_all_data_sets, input_of
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import Choice, NeighbourScores, NodeModel, same_for_all
from poolbn.nodes.poolings import Complete
from poolbn.run import parallel
from poolbn.scoring.bde import K2, BDeu
from poolbn.scoring.bge import BGe
from poolbn.scoring.criteria import InformationCriterion
from poolbn.scoring.families import NodeScores, family_of
from poolbn.scoring.gprior import GPrior
from poolbn.scoring.observed import ObservedScores
from poolbn.tables.kinds import has_levels, is_normal

_FEWEST, _CHUNK = 3, 256  # families for one thread at a time; with few, no thread waits for others
_WORTH_THREADS = 1e6  # multiplications, below which threads cost more than they bring
_LOSS = 1e-6  # of score, by a column of which only that is known
_EXPENSIVE = 1e4  # regressions that one score costs, from which each is worth a thread
_SLOW = 1e3  # regressions that one score costs, from which bounds are worth threads
_WORTH_PARTS = 2**10  # changes of parents, likewise
_REMEMBERED = 2**22  # scores, which take a GiB; then they are forgotten

Kind = Literal["bic", "bic-h", "bic-w", "aic", "loglik", "bge", "bde", "k2", "gprior"]


class Scores(Protocol):
    """The scores of one table under one model of nodes; families are positions in its columns.

    Of these methods an object of a user's needs `scores` alone, see `Whole`.
    """

    def scores(self, families: Sequence[Family], *, final: bool = False) -> NDArray[np.float64]:
        """Of each family; likelihoods with the effort that a search needs, or a final fit."""

    def bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        """Upper bounds of the scores that cost less, NaN where there is none; None if nowhere."""

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """Of each family with each column added, or removed; NaN or None where not at once.

        Of a column that would lower the score it is enough to say -inf, and that it is not exact.

        Args:
            families: the families.
            candidates: the columns, (M, N); others may be there.
            improving_only: whether it is enough to know that a change would lower the score.
        """

    def cost(self) -> float:
        """About the regressions that one score costs."""

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""


@runtime_checkable
class AtOnce(Protocol):
    """Scores of all changes of parents at once."""

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """See `Scores`."""


class OwnScores(Protocol):
    """The least that scores have."""

    def scores(self, families: Sequence[Family]) -> NDArray[np.float64]:
        """Of each family, in any order of its parents."""


class Score(Protocol):
    """What a network is to be best in.

    It may have a `name`, by default that of its class, and `first(model)`, the score whose best
    graph a search starts from; by default that is the empty graph.
    """

    def on(self, data: Data, model: NodeModel) -> OwnScores:
        """The scores of some data under one model; raises where they do not go together."""


def name_of(score: Score) -> str:
    """What a score is called."""
    return str(getattr(score, "name", type(score).__name__))


def first_of(score: Score, model: NodeModel) -> Score | None:
    """The score whose best graph a search starts from, or None for the empty graph."""
    found: Score | None = score.first(model) if hasattr(score, "first") else None
    return found


@dataclass(frozen=True, eq=False)
class Whole:
    """Scores, with what they do not say for themselves.

    By default there are no bounds, and all changes come one by one; final fits are those of the
    model, chosen by BIC; and the score of a network is the sum of its nodes'.

    Attributes:
        own: the scores, with `scores` at least.
        data: the table.
        model: of nodes.
    """

    own: OwnScores
    data: Data
    model: NodeModel

    def scores(self, families: Sequence[Family], *, final: bool = False) -> NDArray[np.float64]:
        """Of each family."""
        return np.asarray(self.own.scores(families), dtype=np.float64)

    def bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        """Upper bounds, if there are any."""
        found: NDArray[np.float64] | None = self._asked("bounds", families)
        return found

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """All changes of parents at once, where that can be."""
        return (
            self.own.neighbours(families, candidates, improving_only=improving_only)
            if isinstance(self.own, AtOnce)
            else None
        )

    def cost(self) -> float:
        """About the regressions that one score costs; by default threads do not help."""
        return float(self._asked("cost") or 0.0)

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        found: LocalFit | None = self._asked("fit", family)
        return self._fits.fit(family) if found is None else found

    @cached_property
    def _fits(self) -> NodeScores | ObservedScores:
        return InformationCriterion("bic").on(self.data, self.model)

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""
        if hasattr(self.own, "total"):
            return float(self.own.total(fits))
        return math.fsum(self.scores([family_of(self.data, fit) for fit in fits], final=True))

    def _asked(self, name: str, *args: object) -> Any:
        return getattr(self.own, name)(*args) if hasattr(self.own, name) else None


@dataclass(frozen=True, eq=False)
class _WithInputs:
    """Scores that leave inputs out, which have no parents and no distribution.

    Attributes:
        others: of all other nodes.
        data: the table.
        inputs: their positions.
    """

    others: Scores
    data: Data
    inputs: frozenset[int]

    def _rest(
        self,
        families: Sequence[Family],
        compute: Callable[[Sequence[Family]], NDArray[np.float64] | None],
    ) -> NDArray[np.float64] | None:
        at = [m for m, (child, _) in enumerate(families) if child not in self.inputs]
        part = compute([families[m] for m in at]) if at else np.zeros(0)
        if part is None:
            return None
        values = np.array([-math.inf if parents else 0.0 for _, parents in families])
        values[at] = part
        return values

    def scores(self, families: Sequence[Family], *, final: bool = False) -> NDArray[np.float64]:
        """Of each family; 0 for an input, -inf with a parent."""
        found = self._rest(families, partial(self.others.scores, final=final))
        assert found is not None
        return found

    def bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        """Upper bounds of the scores that cost less, or None if there are none."""
        return self._rest(families, self.others.bounds)

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """See `Scores`."""
        shape = candidates.shape
        found = NeighbourScores(np.full(shape, -math.inf), np.ones(shape, dtype=bool))
        for m, (child, parents) in enumerate(families):
            if len(parents) < 2:
                found.values[m, parents[0] if parents else child] = 0.0
        at = [m for m, (child, _) in enumerate(families) if child not in self.inputs]
        if at:
            part = self.others.neighbours(
                [families[m] for m in at], candidates[at], improving_only=improving_only
            )
            if part is None:
                return None
            found.values[at], found.exact[at] = part
        return found

    def cost(self) -> float:
        """That of other nodes."""
        return self.others.cost()

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        child, _ = family
        if child not in self.inputs:
            return self.others.fit(family)
        return input_of(self.data, self.data.names[child])

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""
        names = {self.data.names[i] for i in self.inputs}
        return self.others.total(fit for fit in fits if fit.child not in names)


@dataclass(frozen=True, eq=False)
class _WithInterventions:
    """Scores where each node has the data sets in which it was not set.

    These are the same for all its parents, so that scores are comparable, and still add up.

    Where its mechanism was changed a node has parameters of its own, which count beside these.

    Attributes:
        data: the table.
        each: the scores of each node, which some share, (N,).
        own: for nodes that were changed those of each data set.
    """

    data: Data
    each: Sequence[Scores]
    own: Mapping[int, Sequence[Scores]]

    def _beside(self, families: Sequence[Family]) -> NDArray[np.float64]:
        """What the data sets in which nodes were changed add."""
        values = np.zeros(len(families))
        for child, several in self.own.items():
            at = [m for m, family in enumerate(families) if family[0] == child]
            for of in several if at else ():
                values[at] += of.scores([families[m] for m in at], final=True)
        return values

    @cached_property
    def _several(self) -> list[Scores]:
        return list({id(scores): scores for scores in self.each}.values())

    def _parts(self, families: Sequence[Family]) -> list[tuple[Scores, list[int]]]:
        """Which of the families have which scores."""
        at: dict[int, list[int]] = {}
        for m, (child, _) in enumerate(families):
            at.setdefault(id(self.each[child]), []).append(m)
        return [(self.each[families[own[0]][0]], own) for own in at.values()]

    def scores(self, families: Sequence[Family], *, final: bool = False) -> NDArray[np.float64]:
        """Of each family."""
        values = np.empty(len(families))
        for of, at in self._parts(families):
            values[at] = of.scores([families[m] for m in at], final=final)
        return values + self._beside(families) if self.own else values

    def bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        """Upper bounds of the scores that cost less, NaN where there are none."""
        values = np.full(len(families), np.nan)
        for of, at in self._parts(families):
            found = of.bounds([families[m] for m in at])
            if found is not None:
                values[at] = found
        if np.isnan(values).all():
            return None
        return values + self._beside(families) if self.own else values

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """See `Scores`."""
        shape = candidates.shape
        found = NeighbourScores(np.full(shape, np.nan), np.zeros(shape, dtype=bool))
        for of, at in self._parts(families):
            able = [m for m in at if families[m][0] not in self.own]  # others come one by one
            some = [families[m] for m in able]
            if not some:
                continue
            part = of.neighbours(some, candidates[able], improving_only=improving_only)
            if part is not None:
                found.values[able], found.exact[able] = part
        return found

    def cost(self) -> float:
        """About the regressions that one score costs."""
        return max(of.cost() for of in self._several)

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node, in the data sets in which it was not set."""
        return self.each[family[0]].fit(family)

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""
        some = list(fits)
        families = [family_of(self.data, fit) for fit in some]
        parts = [of.total([some[m] for m in at]) for of, at in self._parts(families)]
        return math.fsum([*parts, *self._beside(families).tolist()])


def _where_not_set(
    data: Data, model: NodeModel, make: Callable[[Data, NodeModel], Scores]
) -> Scores:
    """Scores of nodes that are made of the data sets in which each was not set."""
    if not data.interventions:
        return make(data, model)
    free = [i for i, name in enumerate(data.names) if name not in data.inputs]
    views = {i: data.where_not_set(i) if i in free else data for i in range(len(data.names))}
    several = {id(views[i]): views[i] for i in free}
    made = {key: make(view, model) for key, view in several.items()}
    first = made[id(views[free[0]])]  # for inputs, which nobody asks
    changed = {i: _changed(data, i) for i in free}
    own = {i: [make(of, Complete()) for of in views] for i, views in changed.items() if views}
    return _WithInterventions(data, [made.get(id(view), first) for view in views.values()], own)


def _changed(data: Data, child: int) -> list[Data]:
    """The data sets in which a column was changed, one by one, as far as it varies there."""
    name, each = data.names[child], [data.only([v]) for v in data.levels_set(child, "soft")]
    if not is_normal(data.kind(name)):
        return each
    return [of for of in each if sums_with(of, [name]).select([name]).scatter.any()]


def _scores(data: Data, model: NodeModel, score: Score) -> Scores:
    def make(view: Data, how: NodeModel) -> Scores:
        made = score.on(view, how)
        own = all(hasattr(made, name) for name in ("bounds", "neighbours", "cost", "fit", "total"))
        return cast(Scores, made) if own else Whole(made, view, how)

    scores = _where_not_set(data, model, make)
    if not data.inputs:
        return scores
    return _WithInputs(scores, data, frozenset(map(data.names.index, data.inputs)))


_BY_NAME: dict[str, Score] = {
    "bic": InformationCriterion("bic"),
    "bic-h": InformationCriterion("bic-h"),
    "bic-w": InformationCriterion("bic-w"),
    "aic": InformationCriterion("aic"),
    "loglik": InformationCriterion("loglik"),
    "bge": BGe(),
    "bde": BDeu(),
    "k2": K2(),
    "gprior": GPrior(),
}


def as_score(value: str | Score) -> Score:
    """A score from its name, or itself."""
    if isinstance(value, str):
        check_option("score", value, _BY_NAME)
        return _BY_NAME[value]
    if isinstance(value, type) or not hasattr(value, "on"):
        raise OptionError(
            Option("score", value), f" is not a score; use {', '.join(map(repr, _BY_NAME))}"
        )
    return value


class LocalScores:
    """Scores of families of one table, remembered.

    This is what a search asks, many families at a time. Mixed-effects models are fitted with the
    effort that a search needs, or, for `pb.score`, a final fit.

    Attributes:
        names: the columns; families are positions in them.
        data: the table, for learners that ask it more than scores.
        model: of nodes.
        made: scores computed so far.
    """

    def __init__(
        self,
        stats: Data,
        *,
        pooling: str | Choice = "partial",
        score: str | Score = "bic",
        threads: int | None = None,
        final: bool = False,
    ) -> None:
        check_data(stats)
        stats = stats.settled()
        self.names = stats.names
        self.data = stats
        self.made = 0
        self.model = as_pooling(pooling).first(stats.levels)
        self._scores = _scores(stats, self.model, as_score(score))
        self._threads = parallel.available_cores() if threads is None else threads
        self._final = final
        self._how = score
        self._memo: dict[Family, float] = {}

    def __call__(self, families: Sequence[Family]) -> NDArray[np.float64]:
        """The score of each family. The same bits for any number of threads."""
        if len(self._memo) > _REMEMBERED:
            self._memo.clear()
        new = [family for family in dict.fromkeys(families) if family not in self._memo]
        if new:
            self.made += len(new)
            self._memo |= zip(new, self._compute(new), strict=True)
        return np.array([self._memo[family] for family in families])

    def upper_bounds(
        self, families: Sequence[Family]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The score of each family where it is known or cheap, else an upper bound; and which."""
        memo = list(map(self._memo.get, families))
        new = [family for family, value in zip(families, memo, strict=True) if value is None]
        bounds = self._bounds(new) if new else None
        if bounds is None:
            return self(families), np.ones(len(families), dtype=bool)
        values = np.array(memo, dtype=np.float64)  # NaN for None
        known = ~np.isnan(values)
        values[~known] = bounds
        without = np.flatnonzero(np.isnan(values))
        if len(without):
            values[without] = self([families[m] for m in without.tolist()])
            known[without] = True
        return values, known

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores:
        """See `Scores`; what is NaN there comes one by one and is remembered, or has a bound.

        `made` counts all scores.
        """
        found = self._at_once(families, candidates, improving_only)
        if found is None:
            shape = candidates.shape
            found = NeighbourScores(np.full(shape, np.nan), np.zeros(shape, dtype=bool))
        unknown = np.isnan(found.values)
        if not unknown.any():
            self.made += int(np.count_nonzero(found.exact))
            return found
        children = [child for child, _ in families]
        own = unknown[range(len(families)), children]
        self.made += int(np.count_nonzero(found.exact[~own]))
        found.values[unknown], found.exact[unknown] = -np.inf, True
        rest = np.flatnonzero(own).tolist()
        found.values[rest, [children[m] for m in rest]] = self([families[m] for m in rest])
        lower = ~found.exact & np.isneginf(found.values)
        m, p = np.nonzero(lower)
        found.values[m, p] = found.values[m, np.array(children)[m]] - _LOSS
        unknown[range(len(families)), children] = False
        m, p = np.nonzero(unknown & candidates)
        if len(m):
            changed = [
                changed_by(families[k], v) for k, v in zip(m.tolist(), p.tolist(), strict=True)
            ]
            found.values[m, p], found.exact[m, p] = self.upper_bounds(changed)
        return found

    @property
    def cost(self) -> float:
        """About the regressions that one score costs."""
        return self._scores.cost()

    @cached_property
    def cheap(self) -> LocalScores:
        """The same where discrete nodes with discrete parents have tables, which cost little.

        Rows of units are taken for independent, as tables have no place for units.
        """
        some = sum(map(has_levels, self.data.kinds)) > 1
        if not (some and chooses_tables(self.model, self.data)):
            return self
        model, data = with_tables(self.model), self.data.without_units
        return LocalScores(data, pooling=model, score=self._how, threads=self._threads)

    def _at_once(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], improving_only: bool
    ) -> NeighbourScores | None:
        look = partial(_neighbours, self._scores, improving_only)
        slow = self._scores.cost() >= _SLOW and _worth_threads(self._scores, families)
        if self._threads == 1 or (candidates.size < _WORTH_PARTS and not slow):
            found = look((families, candidates))
        else:
            step = -(-len(families) // (4 * self._threads))
            at = [slice(i, i + step) for i in range(0, len(families), step)]
            parts = [(families[some], candidates[some]) for some in at]
            found = _together(parallel.map_fits(look, parts, self._threads))
        return found

    def _bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        few = len(families) < _CHUNK // 2  # threads would cost more than they bring
        if self._scores.cost() < _SLOW and (few or self._scores.bounds(families[:1]) is None):
            return self._scores.bounds(families)
        if self._scores.bounds(families[:1]) is None:
            return None
        return np.array(self._threaded(self._scores.bounds, families))

    def _compute(self, families: Sequence[Family]) -> list[float]:
        return self._threaded(partial(self._scores.scores, final=self._final), families)

    def _threaded(
        self,
        compute: Callable[[Sequence[Family]], NDArray[np.float64] | None],
        families: Sequence[Family],
    ) -> list[float]:
        if self._threads == 1 or not _worth_threads(self._scores, families):
            return _listed(compute(families))
        fewest = _FEWEST if self.cost < _EXPENSIVE else 1
        step = min(_CHUNK, max(-(-len(families) // (4 * self._threads)), fewest))
        parts = [families[i : i + step] for i in range(0, len(families), step)]
        values = parallel.map_fits(compute, parts, self._threads)
        return [value for part in values for value in _listed(part)]


def _neighbours(
    scores: Scores, improving_only: bool, part: tuple[Sequence[Family], NDArray[np.bool_]]
) -> NeighbourScores | None:
    return scores.neighbours(*part, improving_only=improving_only)


def _together(parts: Sequence[NeighbourScores | None]) -> NeighbourScores | None:
    """All of it, or None where a part is None."""
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts):
        return None
    return NeighbourScores(*map(np.concatenate, zip(*whole, strict=True)))


def _listed(values: NDArray[np.float64] | None) -> list[float]:
    assert values is not None
    found: list[float] = values.tolist()
    return found


def score(
    stats: Data,
    dag: Dag | str | Iterable[Pair],
    *,
    pooling: str | Choice = "partial",
    score: Kind | Score = "bic",
) -> float:
    """Score a network: the sum of its nodes' scores. Higher is better.

    With "auto" it is that of the pooling that it chooses for this network.

    Args:
        stats: the sufficient statistics, from `pb.stats`, or rows with columns of all kinds, from
            `pb.table`. From statistics, discrete nodes may have discrete parents only.
        dag: a `pb.Dag`, arcs as pairs (parent, child), a dict with the parents of each node, or a
            text as for `pb.Dag.from_string`.
        pooling: "complete", "none", "partial", or an object.
        score: "bic", "bic-h", "gprior", "aic", "loglik", or for complete pooling "bge" or
            `pb.BGe(...)`; of discrete columns "bde", `pb.BDeu(...)` or "k2".

    Examples:
        >>> import poolbn as pb
        >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
        ...                  missing="drop")
        >>> pb.score(stats, [("age", "bmi")]) > pb.score(stats, [])
        True
    """
    check_data(stats)
    stats = stats.settled()
    graph = as_dag(dag, stats.names)
    nodes = _families(stats, graph)
    model = chosen(stats, as_pooling(pooling), graph.to_adjacency().astype(bool))
    scores = LocalScores(stats, pooling=model, score=score, final=True)
    return math.fsum(scores(nodes).tolist())


def chosen(data: Data, pooling: Choice, arcs: NDArray[np.bool_]) -> NodeModel:
    """The model that the data ask for with this graph, (N, N) with parents first."""
    nodes, half = families(data, arcs), same_for_all(0.5)
    if not nodes:
        return pooling.first(data.levels)

    def worth(model: NodeModel) -> NDArray[np.float64]:
        scores = _where_not_set(data, model, lambda view, how: NodeScores(view, how, half))
        return scores.scores(nodes)

    return pooling.chosen(data.levels, worth)


def final_fits(
    stats: Data, dag: Dag, model: NodeModel, score: Score
) -> tuple[dict[str, LocalFit], float]:
    """The final fit of each node, and the score of the network."""
    scores, families = _scores(stats, model, score), _families(stats, dag)
    fits = _fits(scores, families)
    total = scores.total(fits)
    return {fit.child: _finished(fit, stats) for fit in fits}, total


def family_fits(
    stats: Data, families: Sequence[Family], model: NodeModel, score: Score
) -> list[LocalFit]:
    """The final fits of some nodes with some parents."""
    made = _fits(_scores(stats, model, score), families)
    return [_finished(fit, stats) for fit in made]


def _finished(fit: LocalFit, data: Data) -> LocalFit:
    """With what missing cells leave open, and the data sets in which the node was set."""
    free = data.where_not_set(data.names.index(fit.child))
    return in_all_data_sets(fit.with_imputation_error(free), data)


def _fits(scores: Scores, families: Sequence[Family]) -> list[LocalFit]:
    threads = parallel.available_cores() if _worth_threads(scores, families) else 1
    return parallel.map_fits(scores.fit, families, threads)


def families(stats: Data, arcs: NDArray[np.bool_]) -> list[Family]:
    """The nodes and their parents in a graph, (N, N) with parents first; without inputs."""
    return [
        (child, tuple(np.flatnonzero(arcs[:, child]).tolist()))
        for child, name in enumerate(stats.names)
        if name not in stats.inputs
    ]


def _families(stats: Data, dag: Dag) -> list[Family]:
    """The nodes and their parents; an input has none."""
    for name in stats.inputs:
        if parents := dag.parents(name):
            raise GraphError(
                f"the input {name!r} has the parent {parents[0]!r}; leave that arc out"
            )
    at = {name: k for k, name in enumerate(stats.names)}
    return [(at[node], tuple(at[parent] for parent in dag.parents(node))) for node in dag.nodes]


def _worth_threads(scores: Scores, families: Sequence[Family]) -> bool:
    """Whether threads bring more than they cost."""
    largest = max(len(families[0][1]), len(families[-1][1])) if families else 0
    return scores.cost() * len(families) * (largest + 1) ** 3 >= _WORTH_THREADS
