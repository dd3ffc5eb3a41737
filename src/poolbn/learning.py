"""`learn`: from data to a `Network`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Never, TypedDict

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import (
    GraphError,
    InPython,
    Option,
    OptionError,
    PoolbnError,
    check_option,
    nearest,
)
from poolbn.findings import FindingKind
from poolbn.graph.constraints import Allowed, Constraints, as_constraints
from poolbn.graph.dag import Dag, as_dag
from poolbn.graph.pairs import Pair
from poolbn.moments.checks import warn
from poolbn.moments.data import Data, only_sums
from poolbn.moments.halves import Halves, Split, as_split, halves, rows_to_split
from poolbn.moments.standardised import check_digits, standardise
from poolbn.moments.table import FilledTable, Table, gathered, has_gaps
from poolbn.moments.targets import Targets
from poolbn.network.network import Network
from poolbn.nodes.choosing import as_pooling
from poolbn.nodes.model import Choice, NodeModel
from poolbn.run.compiling import prefetch
from poolbn.run.progress import Progress
from poolbn.scoring.local import (
    Kind,
    LocalScores,
    Score,
    as_score,
    chosen,
    final_fits,
    first_of,
    name_of,
)
from poolbn.search.auto import AutoSearch
from poolbn.search.naming import SearchName, as_learner
from poolbn.search.ordering import canonical_order
from poolbn.search.problem import Found, Learner, Problem, Stopped, Watch, unwatched
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import Kinds, has_levels
from poolbn.tables.missing import Missing
from poolbn.wording import counted

if TYPE_CHECKING:
    from poolbn.monte_carlo_em import (
        MonteCarloEM,  # with much of inference: loaded where cells are missing
    )

# What bnlearn calls constraints, and what they are called here, for those who give them singly.
_CONSTRAINTS = {
    "whitelist": "required=[(parent, child), ...]",
    "required": "required=[(parent, child), ...]",
    "blacklist": "forbidden=[(parent, child), ...]",
    "forbidden": "forbidden=[(parent, child), ...]",
    "tiers": "tiers=[[...], [...]]",
    "maxp": "max_parents=...",
    "max_parents": "max_parents=...",
}


class Defaults(NamedTuple):
    """What `learn` does unless it is told otherwise."""

    pooling: str
    score: Kind
    search: SearchName


Preset = Literal["best", "paper"]
# "best" is what benchmarks/defaults.py shows to find the best graphs; see docs/choosing.md.
PRESETS: dict[Preset, Defaults] = {
    "best": Defaults("auto", "bic-w", "auto"),
    "paper": Defaults("partial", "bic", "hc"),
}


class SearchOptions(TypedDict, total=False):
    """Keywords of `learn` that others hand on to it; they mean what they mean there."""

    score: Kind | Score | None
    search: SearchName | Learner | None
    preset: Preset
    constraints: Constraints | Mapping[str, Any] | None


class LearnOptions(SearchOptions, total=False):
    """The same, with the pooling."""

    pooling: str | Choice | None


def check_keywords(given: Iterable[str], known: Iterable[str], of: str) -> None:
    """Raise for keywords that are not handed on; the message names those of the function `of`."""
    for name in given:
        if name in _CONSTRAINTS:
            raise OptionError(
                f"{name!r} is not an option of {of}; use "
                f"constraints=pb.Constraints({_CONSTRAINTS[name]})"
            )
        if name not in known:
            raise OptionError(f"{name!r} is not an option of {of}{nearest(name, known)}")


class _Given:
    """A learner that knows the graph: what is required is all that there is."""

    def __repr__(self) -> str:
        return ""  # nothing was searched for

    def learn(self, problem: Problem) -> Found:
        """The start."""
        return Found(problem.start, np.nan)


GIVEN: Learner = _Given()


@dataclass(frozen=True)
class Plan:
    """How to learn, checked: the keywords of `learn`, with what they stand for.

    Attributes:
        pooling: see `learn`.
        score: likewise.
        search: likewise.
        constraints: likewise.
        as_given: whether the search has the columns in their order in the data; else in one that
            does not depend on it, see `canonical_order`.
    """

    pooling: Choice
    score: Score
    search: Learner
    constraints: Constraints
    as_given: bool = False

    @property
    def known(self) -> tuple[FindingKind, ...]:
        """What its user need not be told."""
        return () if self.constraints.continuous_to_discrete else (FindingKind.NEEDS_ROWS,)

    def allowed(self, data: Data) -> Allowed:
        """The constraints, no arcs into inputs, and none that need rows where there are none."""
        allowed = self.constraints.on(data.names, data.kinds)
        if not data.has_rows:
            _forbid_what_needs_rows(allowed, data)
        inputs = [data.names.index(name) for name in data.inputs]
        if allowed.required[:, inputs].any():
            p, i = np.argwhere(allowed.required[:, inputs])[0]
            raise GraphError(
                f"the arc {data.names[p]} -> {data.inputs[i]} is required, and {data.inputs[i]!r} "
                "is an input; leave one of the two out"
            )
        allowed.arcs[:, inputs] = False
        return allowed

    def found(
        self, data: Data, start: Dag | None = None, watch: Watch = unwatched
    ) -> tuple[Found, NodeModel]:
        """The best graph that the search finds, and under which pooling.

        Args:
            data: the sufficient statistics, or rows with columns of all kinds.
            start: the graph to start from; by default that which the score says, or the empty one.
            watch: see `Problem`; its graphs have the columns in the order of the search.
        """
        names = data.names if self.as_given else canonical_order(data)
        if names == data.names:
            return self._found(data, start, watch)
        first = None if start is None else Dag(names, start.arcs)
        try:
            found, model = self._found(data.select(names), first, watch)
        except Stopped as stopped:
            raise Stopped(_in_order(stopped.found, names, data.names)) from None
        return _in_order(found, names, data.names), model

    def _found(self, data: Data, start: Dag | None, watch: Watch) -> tuple[Found, NodeModel]:
        """The same with the columns in the order that the search has them in."""
        allowed = self.allowed(data)
        given = None if start is None else _checked(start, allowed)
        if data.interventions and (simplest := self._as_simple(data, allowed, given, watch)):
            return simplest
        first = self.pooling.first(data.levels)
        found = self._search(data, allowed, first, given, watch)
        model = chosen(data, self.pooling, found.arcs)
        if model != first:
            found = self._search(data, allowed, model, given, watch)
        return found, model

    def _as_simple(
        self, data: Data, allowed: Allowed, given: NDArray[np.bool_] | None, watch: Watch
    ) -> tuple[Found, NodeModel] | None:
        """What is found under the simplest pooling, if that is enough for its own graph.

        Where it is known what was set, all other mechanisms may well be the same in all data sets.
        A richer pooling would take for differences between data sets what interventions bring
        downstream, and with them the directions that this tells.
        """
        simplest = self.pooling.chosen(data.levels, lambda model: np.zeros(1))
        if simplest == self.pooling.first(data.levels):
            return None
        found = self._search(data, allowed, simplest, given, watch)
        enough = chosen(data, self.pooling, found.arcs) == simplest
        return (found, simplest) if enough else None

    def _search(
        self,
        data: Data,
        allowed: Allowed,
        pooling: NodeModel,
        start: NDArray[np.bool_] | None,
        watch: Watch,
    ) -> Found:
        """Under one pooling."""
        scores = LocalScores(data, pooling=pooling, score=self.score)
        guide = None
        if start is None:
            start = allowed.required
            if data.unit is None and (first := first_of(self.score, pooling)) is not None:
                guide = LocalScores(data, pooling=pooling, score=first)
        return self.search.learn(Problem(scores, allowed, start, watch, guide))

    def network(self, data: Data, found: Found, model: NodeModel) -> Network:
        """Final fits of what was found."""
        names = data.names
        dag = Dag(names, [(names[p], names[c]) for p, c in np.argwhere(found.arcs)])
        fits, total = final_fits(data, dag, model, self.score)
        return Network(
            dag,
            fits,
            total,
            group=data.group,
            n=data.n,
            score_kind=name_of(self.score),
            search=repr(self.search),
            trace=found.trace,
            stats=only_sums(data),
            from_statistics=not data.has_rows and any(data.categories),
            missing=data.missing if data.missing.any() else None,
        )

    def given(self, dag: Dag) -> Plan:
        """The plan that fits this graph, and searches for none."""
        return replace(self, search=GIVEN, constraints=Constraints(required=dag.arcs))

    def arcs(self, data: Data) -> NDArray[np.bool_]:
        """The graph of a part of some data; missing cells are filled with less effort."""
        if has_gaps(data):
            return self.completed(data, quick=True)[1].arcs
        return self.found(data)[0].arcs

    def learned(self, data: Data, *, quick: bool = False) -> Network:
        """The network of some data; `quick` fills missing cells with less effort."""
        if not has_gaps(data):
            return self.network(data, *self.found(data))
        filled, found, model = self.completed(data, quick=quick)
        if quick or self.search is GIVEN:
            return self.network(filled, found, model)
        return self.last(data, found)

    def completed(
        self,
        data: Table | MonteCarloEM,
        start: Dag | None = None,
        watch: Watch = unwatched,
        *,
        quick: bool = False,
    ) -> tuple[FilledTable, Found, NodeModel]:
        """A table with missing cells, completed by its network; and what `found` finds in it.

        Args:
            data: the table, or its draws as they begin.
            start: as for `found`.
            watch: as for `found`.
            quick: whether one of many parts is completed, with less effort.

        Raises:
            SearchInterrupted: a search was stopped.
        """
        from poolbn.monte_carlo_em import MonteCarloEM

        plan = self
        if quick and isinstance(self.search, AutoSearch):
            plan = replace(self, search=replace(self.search, starts=1))
        em = data if isinstance(data, MonteCarloEM) else MonteCarloEM.of(data, quick=quick)
        last: list[tuple[Found, NodeModel]] = []

        def learned(filled: FilledTable, before: Network | None) -> Network:
            first = start if before is None else before.dag
            try:
                last[:] = [plan.found(filled, first, watch)]
            except Stopped as stopped:
                raise SearchInterrupted(self.stopped(filled, stopped)) from None
            return self.network(filled, *last[0])

        return em.completed(learned), *last[0]

    def last(self, data: Table | MonteCarloEM, found: Found) -> Network:
        """The network of what was found, fitted from the first draws on, as `fit` does."""
        from poolbn.monte_carlo_em import MonteCarloEM

        em = data if isinstance(data, MonteCarloEM) else MonteCarloEM(data)
        names = em.table.names
        dag = Dag(names, [(names[p], names[c]) for p, c in np.argwhere(found.arcs)])
        filled, _, model = self.given(dag).completed(em)
        return self.network(filled, found, model)

    def stopped(self, data: Data, where: Stopped) -> Network:
        """The best network until a search was stopped."""
        return self.network(data, where.found, self.pooling.first(data.levels))


def as_plan(
    pooling: str | Choice | None = None,
    score: Kind | Score | None = None,
    search: SearchName | Learner | None = None,
    constraints: Constraints | Mapping[str, Any] | None = None,
    preset: Preset = "best",
) -> Plan:
    """Check the keywords of `learn`; those that are None are the preset's.

    Raises:
        OptionError: one of them has a value that it does not take.
    """
    check_option("preset", preset, PRESETS)
    usual, allowed = PRESETS[preset], as_constraints(constraints)
    plan = Plan(
        as_pooling(usual.pooling if pooling is None else pooling),
        as_score(usual.score if score is None else score),
        as_learner(usual.search if search is None else search),
        allowed,
    )
    prefetch("moves", "shrinking", *plan.pooling.kernels)
    return plan


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
    group: Group = None,
    pooling: str | Choice | None = None,
    score: Kind | Score | None = None,
    search: SearchName | Learner | None = None,
    preset: Preset = "best",
    constraints: Constraints | Mapping[str, Any] | None = None,
    start: Network | Dag | str | Iterable[Pair] | None = None,
    honest: Literal["split"] | Split | None = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
    missing: Missing = "error",
    **others: Never,
) -> Network:
    """Learn the network with the best score that a search finds.

    Which graph that is does not depend on the order of columns: see `canonical_order`.

    Args:
        source: anything that `pb.stats` takes, statistics from it, or rows from `pb.table`. Columns
            may be of all kinds: text, categories, true and false are discrete. From statistics,
            discrete nodes have no continuous parents, since such arcs need rows.
        group: the column that says which data set a row came from, or a list, array or Series with
            the data set of each row.
        pooling: "auto" (the default), "complete", "none", "partial", or an object.
        score: "bic-w" (the default), "bic-h", "bic", "gprior", "aic", "loglik"; for complete
            pooling of continuous columns "bge" or `pb.BGe(...)`, and of discrete ones "bde",
            `pb.BDeu(...)` or "k2"; or an object of your own.
        search: "auto" (the default), "exact", "orders", "hc" for hill climbing, "tabu", "pc",
            "hybrid"; with options `pb.AutoSearch(...)`, `pb.Exact(...)`, `pb.OrderSearch(...)`,
            `pb.HillClimb(...)`, `pb.Tabu(...)`, `pb.PC(...)`, `pb.Hybrid(...)`.
        preset: what the three above are where they are not given: "best", the defaults, or "paper",
            partial pooling with BIC and hill climbing.
        constraints: a `pb.Constraints(...)`, or a dict such as {"tiers": [["age"], ["bmi"]]}.
        start: the graph to start from; by default the empty one, for "bic-h" the one that "gprior"
            finds.
        honest: "split" or a `pb.Split(...)` learns the graph from half of the rows of each data
            set, and estimates its effects from the others: of arcs that a search selects from the
            same rows, effects are too large and intervals too narrow where rows are few. Needs
            rows, not statistics.
        columns: the columns to keep; None for all but `group`.
        kinds: of some columns, such as {"visits": "count", "grade": "discrete"}, see `pb.table`.
        inputs: columns that may be parents but never children, see `pb.stats`.
        interventions: columns that were set in some data sets, see `pb.stats`.
        missing: what to do with missing cells, "error", "drop" or "em", see `pb.stats`. Those of
            discrete columns and counts are drawn by the network itself, until that settles.
        others: there are none; for bnlearn's `whitelist` and `blacklist` the error says what to
            write.

    Raises:
        OptionError: an option is not known, or has a value that it does not take.
        SearchInterrupted: on Ctrl-C; it holds the best network so far.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
        >>> net = pb.learn(trial.dropna(), group="clinic", constraints=in_time)
        >>> net.dag.arcs
        (('age', 'gestation_days'), ('gestation_days', 'birthweight_g'))
    """
    check_keywords(others, [name for name in learn.__annotations__ if name != "others"], "pb.learn")
    plan = as_plan(pooling, score, search, constraints, preset)
    split = as_split(honest)
    reader = gathered if split is None else rows_to_split
    data = reader(
        source, group=group, columns=columns, kinds=kinds, missing=missing, inputs=inputs,
        interventions=interventions,
    )  # fmt: skip
    first = start.dag if isinstance(start, Network) else start
    dag = None if first is None else as_dag(first, data.names)
    if split is None:
        em = checked(plan, data)
        warn(data, plan.known)
        return _searched(plan, data, dag, em)
    warn(data, plan.known)
    searched, rest, rows = halves(data, split.seed)

    def estimated(net: Network) -> Network:
        made = plan.given(net.dag).learned(rest)
        told = Halves(searched.n_rows, split.seed)
        return replace(made, search=net.search, trace=net.trace, split=told, fitted_to=rows)

    try:
        return estimated(_searched(plan, searched, dag, checked(plan, searched)))
    except SearchInterrupted as stopped:
        raise SearchInterrupted(estimated(stopped.network)) from None


def _searched(plan: Plan, data: Data, start: Dag | None, em: MonteCarloEM | None) -> Network:
    """The network of the best graph, with a line that says how far the search is."""
    with Progress() as progress:
        watch: Watch = lambda moves, now: progress(lambda: _words(moves, now))  # noqa: E731
        if em is not None:
            _, found, _ = plan.completed(em, start, watch)
            return plan.last(em, found)
        try:
            learned = plan.found(data, start, watch)
        except Stopped as stopped:
            raise SearchInterrupted(plan.stopped(data, stopped)) from None
    return plan.network(data, *learned)


def checked(plan: Plan, data: Data) -> MonteCarloEM | None:
    """Draws of missing cells, None where none are missing; raises before there is a warning."""
    plan.allowed(data)
    em: MonteCarloEM | None = None
    if has_gaps(data):
        from poolbn.monte_carlo_em import MonteCarloEM

        em = MonteCarloEM(data)
    whole = data if em is None else em.start()
    check_digits(standardise(whole.stats()))
    return em


def _in_order(found: Found, names: Sequence[str], wanted: Sequence[str]) -> Found:
    """What was found, with the columns in another order."""
    at = list(map(names.index, wanted))
    return replace(found, arcs=found.arcs[np.ix_(at, at)])


def _forbid_what_needs_rows(allowed: Allowed, data: Data) -> None:
    """Arcs from continuous columns to discrete ones."""
    discrete = np.array([has_levels(kind) for kind in data.kinds])
    need = ~discrete[:, None] & discrete[None, :]
    if (allowed.required & need).any():
        p, c = np.argwhere(allowed.required & need)[0]
        raise GraphError(
            f"the arc {data.names[p]} -> {data.names[c]} is required, and needs rows, which "
            "sufficient statistics do not hold; leave it out, or learn from rows",
            InPython(", pb.table(data, ...)"),
        )
    allowed.arcs[need] = False


def _words(moves: int, now: Found) -> str:
    arcs = counted(int(now.arcs.sum()), "arc")
    return f"learning: {counted(moves, 'move')}, {arcs}, score {now.score:.2f}"


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
        raise GraphError("the start does not go with the required arcs: ", *error.args) from None
    crowded = np.flatnonzero(arcs.sum(axis=0) > allowed.max_parents)
    if len(crowded):
        raise GraphError(
            f"in the start, with the required arcs, {names[crowded[0]]!r} has "
            f"{counted(int(arcs[:, crowded[0]].sum()), 'parent')}, and ",
            Option("max_parents", allowed.max_parents),
        )
    return arcs
