"""Scores of families, remembered; and the score of a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, Option, OptionError, check_option
from poolbn.graph.dag import Dag, as_dag
from poolbn.graph.pairs import Pair
from poolbn.moments.data import Data, check_data, only_sums
from poolbn.moments.standardised import Family, StandardisedStats, standardise
from poolbn.nodes.choosing import as_pooling
from poolbn.nodes.kinds import input_of
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import Choice, NodeModel, Toggled
from poolbn.run import parallel
from poolbn.scoring.bde import K2, BDeu
from poolbn.scoring.bge import BGe
from poolbn.scoring.criteria import InformationCriterion
from poolbn.scoring.gprior import GPrior
from poolbn.scoring.kinds import TableScores, expanded
from poolbn.scoring.observed import ObservedScores

_FEWEST, _CHUNK = 3, 256  # families for one thread at a time; with few, no thread waits for others
_WORTH_THREADS = 1e6  # multiplications, below which threads cost more than they bring
_WORTH_PARTS = 2**10  # changes of parents, likewise
_REMEMBERED = 2**22  # scores, which take a GiB; then they are forgotten

Kind = Literal["bic", "bic-h", "aic", "loglik", "bge", "bde", "k2", "gprior"]


class Scores(Protocol):
    """The scores of one table under one model of nodes."""

    def scores(self, families: Sequence[Family], *, final: bool = False) -> NDArray[np.float64]:
        """Of each family; likelihoods with the effort that a search needs, or a final fit."""

    def bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        """Upper bounds of the scores that cost less, NaN where there is none; None if nowhere."""

    def cost(self) -> float:
        """About the regressions that one score costs."""

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""


@runtime_checkable
class Sweeping(Protocol):
    """Scores that may have all changes of a child's parents at once."""

    def toggled(
        self, families: Sequence[Family], wanted: NDArray[np.bool_], *, uphill: bool
    ) -> Toggled | None:
        """Of each family with each column added, or removed; None where they come one by one.

        Args:
            families: the families.
            wanted: the columns, (M, N); others may be there.
            uphill: whether it is enough to know that a change would lower the score.
        """


class Score(Protocol):
    """What a network is to be best in."""

    @property
    def name(self) -> str:
        """As options have it."""

    def first(self, model: NodeModel) -> Score | None:
        """The score whose best graph a search starts from, or None for the empty graph."""

    def on(self, data: StandardisedStats, model: NodeModel) -> Scores:
        """The scores of one table under one model; raises where they do not go together."""

    def on_table(self, table: Data, pooling: Choice) -> Scores:
        """The same, with columns of all kinds."""


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

    def toggled(
        self, families: Sequence[Family], wanted: NDArray[np.bool_], *, uphill: bool
    ) -> Toggled | None:
        """See `Sweeping`."""
        if not isinstance(self.others, Sweeping):
            return None
        values, exact = np.full(wanted.shape, -math.inf), np.ones(wanted.shape, dtype=bool)
        for m, (child, parents) in enumerate(families):
            if len(parents) < 2:
                values[m, parents[0] if parents else child] = 0.0
        at = [m for m, (child, _) in enumerate(families) if child not in self.inputs]
        if at:
            part = self.others.toggled([families[m] for m in at], wanted[at], uphill=uphill)
            if part is None:
                return None
            values[at], exact[at] = part
        return Toggled(values, exact)

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


def _scores(data: Data, model: NodeModel, score: Score) -> Scores:
    sums = only_sums(data)
    scores = score.on_table(data, model) if sums is None else score.on(standardise(sums), model)
    if not data.inputs:
        return scores
    return _WithInputs(scores, data, frozenset(map(data.names.index, data.inputs)))


_BY_NAME: dict[str, Score] = {
    "bic": InformationCriterion("bic"),
    "bic-h": InformationCriterion("bic-h"),
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
        self.names = stats.names
        self.data = stats
        self.made = 0
        self.model = as_pooling(pooling).first(stats.levels)
        self._scores = _scores(stats, self.model, as_score(score))
        self._threads = parallel.available_cores() if threads is None else threads
        self._final = final
        self._memo: dict[Family, float] = {}
        self._sweeping = self._scores if isinstance(self._scores, Sweeping) else None

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

    def toggled(
        self, families: Sequence[Family], wanted: NDArray[np.bool_], *, uphill: bool
    ) -> Toggled | None:
        """See `Sweeping`; `made` counts all scores, as they are not remembered."""
        if self._sweeping is None:
            return None
        if self._threads == 1 or wanted.size < _WORTH_PARTS:
            found = self._sweeping.toggled(families, wanted, uphill=uphill)
        else:
            step = -(-len(families) // (4 * self._threads))
            at = [slice(i, i + step) for i in range(0, len(families), step)]
            sweep = partial(_toggled, self._sweeping, uphill)
            parts = [(families[some], wanted[some]) for some in at]
            found = _together(parallel.map_fits(sweep, parts, self._threads))
        self.made += 0 if found is None else int(np.count_nonzero(found.exact))
        return found

    def _bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        slow = isinstance(self._scores, TableScores | ObservedScores)
        few = len(families) < _CHUNK // 2  # threads would cost more than they bring
        if not slow and (few or self._scores.bounds(families[:1]) is None):
            return self._scores.bounds(families)
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
        step = min(_CHUNK, max(-(-len(families) // (4 * self._threads)), _FEWEST))
        parts = [families[i : i + step] for i in range(0, len(families), step)]
        values = parallel.map_fits(compute, parts, self._threads)
        return [value for part in values for value in _listed(part)]


def _toggled(
    scores: Sweeping, uphill: bool, part: tuple[Sequence[Family], NDArray[np.bool_]]
) -> Toggled | None:
    return scores.toggled(*part, uphill=uphill)


def _together(parts: Sequence[Toggled | None]) -> Toggled | None:
    """All of it, or None where a part is None."""
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts):
        return None
    return Toggled(*map(np.concatenate, zip(*whole, strict=True)))


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
        dag: a `pb.Dag`, arcs as pairs (parent, child), or a bnlearn model string.
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
    graph = as_dag(dag, stats.names)
    nodes = _families(stats, graph)
    model = chosen(stats, as_pooling(pooling), graph.to_adjacency().astype(bool))
    scores = LocalScores(stats, pooling=model, score=score, final=True)
    return math.fsum(scores(nodes).tolist())


def chosen(data: Data, pooling: Choice, arcs: NDArray[np.bool_]) -> NodeModel:
    """The model that the data ask for with this graph, (N, N) with parents first."""
    own = [family for family in families(data, arcs) if data.kinds[family[0]] == "continuous"]
    numbers = standardise(data.stats())
    return pooling.chosen(numbers, expanded(data, own))


def final_fits(
    stats: Data, dag: Dag, model: NodeModel, score: Score
) -> tuple[dict[str, LocalFit], float]:
    """The final fit of each node, and the score of the network."""
    scores, families = _scores(stats, model, score), _families(stats, dag)
    fits = _fits(scores, families)
    total = scores.total(fits)
    return {fit.child: fit.with_imputation_error(stats) for fit in fits}, total


def family_fits(
    stats: Data, families: Sequence[Family], model: NodeModel, score: Score
) -> list[LocalFit]:
    """The final fits of some nodes with some parents."""
    made = _fits(_scores(stats, model, score), families)
    return [fit.with_imputation_error(stats) for fit in made]


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
