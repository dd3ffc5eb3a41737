"""`learn`: from data to a `Network`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, GraphError, OptionError, PoolbnError, nearest
from poolbn.graph.constraints import Allowed, Constraints
from poolbn.graph.dag import Dag, as_dag
from poolbn.graph.pairs import Pair
from poolbn.moments.groupstats import GroupStats, stats
from poolbn.network.network import Network
from poolbn.nodes.choosing import as_pooling
from poolbn.nodes.pooling import Pooling
from poolbn.run.progress import Progress
from poolbn.scoring.scores import BGe, Kind, LocalScores, final_fits
from poolbn.search.climbing import Climb, Found, HillClimb, Strategy


class SearchOptions(TypedDict, total=False):
    """Keywords of `learn` that others hand on to it; they mean what they mean there."""

    score: Kind | BGe
    search: Strategy | None
    constraints: Constraints | None


class LearnOptions(SearchOptions, total=False):
    """The same, with the pooling."""

    pooling: str | Pooling


def check_keywords(given: Iterable[str], known: Iterable[str], of: str) -> None:
    """Complain about keywords that are not handed on.

    Raises:
        OptionError: there is one; it names those of the function `of`.
    """
    for name in given:
        if name not in known:
            raise OptionError(f"{name}= is not an option of {of}{nearest(name, known)}")


def check_no_group(group: str | None) -> None:
    """Complain about a group column where there are statistics.

    Raises:
        DataError: there is one.
    """
    if group is not None:
        raise DataError("statistics know their data sets; leave group= out")


@dataclass(frozen=True)
class Plan:
    """How to learn, checked: the keywords of `learn`, with what they stand for."""

    pooling: Pooling
    score: Kind | BGe
    search: Strategy
    constraints: Constraints

    def run(self, data: GroupStats) -> Found:
        """Search from the empty graph, or that of the required arcs, to the end."""
        allowed = self.constraints.on(data.names)
        scores = LocalScores(data, pooling=self.pooling, score=self.score)
        climb = Climb(scores, allowed, allowed.required)
        self.search.run(climb)
        return climb.found()

    def network(self, data: GroupStats, found: Found) -> Network:
        """Final fits of what was found."""
        names = data.names
        dag = Dag(names, [(names[p], names[c]) for p, c in np.argwhere(found.arcs)])
        fits, total = final_fits(data, dag, self.pooling, self.score)
        return Network(dag, fits, total, group=data.group, n=data.n, trace=found.trace, stats=data)


def as_plan(
    pooling: str | Pooling = "partial",
    score: Kind | BGe = "bic",
    search: Strategy | None = None,
    constraints: Constraints | None = None,
) -> Plan:
    """Check the keywords of `learn`.

    Raises:
        OptionError: one of them has a value that it does not take.
    """
    strategy: object = search or HillClimb()
    if isinstance(strategy, type) or not hasattr(strategy, "run"):
        raise OptionError(
            f"search={search!r} is not a search; use pb.HillClimb(), pb.Tabu() or pb.Exact()"
        )
    if not isinstance(constraints, Constraints | None):
        raise OptionError(
            f"constraints={constraints!r} are none; use pb.Constraints(required=..., ...)"
        )
    return Plan(as_pooling(pooling), score, search or HillClimb(), constraints or Constraints())


class SearchInterrupted(PoolbnError, KeyboardInterrupt):
    """The search was stopped by the user.

    Attributes:
        network: the best network found until then.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> try:
        ...     net = pb.learn(trial, group="clinic")
        ... except pb.SearchInterrupted as stopped:
        ...     net = stopped.network
        >>> net.dag.nodes
        ('age', 'bmi')
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        super().__init__(
            f"the search was interrupted after {len(network.trace)} moves; the best network so "
            "far is in the exception's attribute network"
        )


def learn(
    source: object,
    *,
    group: str | None = None,
    pooling: str | Pooling = "partial",
    score: Kind | BGe = "bic",
    search: Strategy | None = None,
    constraints: Constraints | None = None,
    start: Network | Dag | str | Iterable[Pair] = (),
) -> Network:
    """Learn the network with the best score that a search finds.

    Args:
        source: statistics from `pb.stats`, which can choose columns and drop incomplete rows, or
            anything that it takes.
        group: the column that says which data set a row came from.
        pooling: "complete", "none", "partial", "auto", or an object.
        score: "bic", "aic", "loglik", or for complete pooling "bge" or `pb.BGe(...)`.
        search: `pb.HillClimb()` by default, `pb.Tabu()`, or `pb.Exact()`.
        constraints: a `pb.Constraints(...)`.
        start: the graph to start from; empty by default.

    Raises:
        SearchInterrupted: on Ctrl-C; it holds the best network so far.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
        >>> net = pb.learn(trial.dropna(), group="clinic", constraints=in_time)
        >>> net.dag.arcs
        (('gestation_days', 'birthweight_g'),)
    """
    if isinstance(source, GroupStats):
        check_no_group(group)
        data = source
    else:
        data = stats(source, group=group)
    plan = as_plan(pooling, score, search, constraints)
    scores = LocalScores(data, pooling=plan.pooling, score=score)
    allowed = plan.constraints.on(data.names)
    first = as_dag(start.dag if isinstance(start, Network) else start, data.names)
    arcs = _checked(first, allowed)
    climb: Climb | None = None
    with Progress() as progress:
        try:
            climb = Climb(scores, allowed, arcs, watch=lambda now: progress(lambda: _words(now)))
            plan.search.run(climb)
        except KeyboardInterrupt:
            if climb is None:
                raise
            raise SearchInterrupted(plan.network(data, climb.found())) from None
    return plan.network(data, climb.found())


def _words(climb: Climb) -> str:
    return (
        f"learning: {len(climb.trace)} moves, {int(climb.arcs.sum())} arcs, score {climb.score:.2f}"
    )


def _checked(start: Dag, allowed: Allowed) -> NDArray[np.bool_]:
    """The arcs of the start and the required ones, if that is a graph that may be."""
    names = start.nodes
    own = start.to_adjacency().astype(bool)
    if (own & ~allowed.arcs).any():
        p, c = np.argwhere(own & ~allowed.arcs)[0]
        raise GraphError(f"the start has the arc {names[p]} -> {names[c]}, which is forbidden")
    arcs = own | allowed.required
    try:
        Dag(names, [(names[p], names[c]) for p, c in np.argwhere(arcs)])
    except GraphError as error:
        raise GraphError(f"the start does not go with the required arcs: {error}") from None
    crowded = np.flatnonzero(arcs.sum(axis=0) > allowed.max_parents)
    if len(crowded):
        raise GraphError(
            f"in the start, with the required arcs, {names[crowded[0]]!r} has "
            f"{int(arcs[:, crowded[0]].sum())} parents, and max_parents={allowed.max_parents}"
        )
    return arcs
