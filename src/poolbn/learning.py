"""`learn`: from data to a `Network`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poolbn.choosing import as_pooling
from poolbn.constraints import Allowed, Constraints
from poolbn.errors import DataError, GraphError, OptionError, PoolbnError
from poolbn.graph import Dag, as_dag
from poolbn.network import Network
from poolbn.pairs import Pair
from poolbn.pooling import Pooling
from poolbn.scores import BGe, Kind, LocalScores, final_fits
from poolbn.search import Climb, Found, HillClimb, Strategy
from poolbn.suffstats import GroupStats, stats

if TYPE_CHECKING:
    from rich.status import Status

_PATIENCE = 1.0  # seconds before progress is shown


class SearchInterrupted(PoolbnError, KeyboardInterrupt):
    """The search was stopped by the user.

    Attributes:
        network: the best network found until then.
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
        if group is not None:
            raise DataError("statistics know their data sets; leave group= out")
        data = source
    else:
        data = stats(source, group=group)
    strategy: object = search or HillClimb()
    if isinstance(strategy, type) or not hasattr(strategy, "run"):
        raise OptionError(
            f"search={search!r} is not a search; use pb.HillClimb(), pb.Tabu() or pb.Exact()"
        )
    if not isinstance(constraints, Constraints | None):
        raise OptionError(
            f"constraints={constraints!r} are none; use pb.Constraints(required=..., ...)"
        )
    how = as_pooling(pooling)
    scores = LocalScores(data, pooling=how, score=score)
    allowed = (constraints or Constraints()).on(data.names)
    first = as_dag(start.dag if isinstance(start, Network) else start, data.names)
    arcs = _checked(first, allowed)
    progress = _Progress()
    climb: Climb | None = None
    try:
        climb = Climb(scores, allowed, arcs, watch=progress)
        (search or HillClimb()).run(climb)
    except KeyboardInterrupt:
        if climb is None:
            raise
        raise SearchInterrupted(_network(data, how, score, climb.found())) from None
    finally:
        progress.close()
    return _network(data, how, score, climb.found())


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


def _network(data: GroupStats, how: Pooling, score: Kind | BGe, found: Found) -> Network:
    """Final fits of what was found."""
    names = data.names
    dag = Dag(names, [(names[p], names[c]) for p, c in np.argwhere(found.arcs)])
    fits, total = final_fits(data, dag, how, score)
    return Network(dag, fits, total, group=data.group, n=data.n, trace=found.trace, stats=data)


class _Progress:
    """A line on a terminal, once the work takes longer than a second."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._line: Status | None = None

    def __call__(self, climb: Climb) -> None:
        if time.monotonic() - self._started < _PATIENCE or not sys.stderr.isatty():
            return
        if self._line is None:
            from rich.console import Console

            self._line = Console(stderr=True).status("")
            self._line.start()
        self._line.update(
            f"learning: {len(climb.trace)} moves, {int(climb.arcs.sum())} arcs, "
            f"score {climb.score:.2f} (Ctrl-C stops)"
        )

    def close(self) -> None:
        if self._line is not None:
            self._line.stop()
