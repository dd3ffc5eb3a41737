"""`arc_posterior`: the probability of every arc and set of parents, and what follows from them."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import get_args

import numpy as np

from poolbn.arguments import FLAG, among, check_arguments, is_finite
from poolbn.arrays import Flags, Floats
from poolbn.assess.resample import ArcStrength, averaged_edges, directed_network, told
from poolbn.errors import (
    GraphError,
    Option,
    OptionError,
    PoolbnError,
    check_count,
    check_interval,
    check_option,
    check_whole,
    nearest,
)
from poolbn.graph.constraints import Allowed, Constraints
from poolbn.graph.dag import Dag
from poolbn.graph.equivalence import set_apart
from poolbn.later import pandas as pd
from poolbn.learning import as_plan
from poolbn.moments.checks import warn
from poolbn.moments.standardised import Family, check_digits, standardise
from poolbn.moments.table import gathered
from poolbn.moments.targets import Targets
from poolbn.network.network import Network
from poolbn.nodes.model import Choice
from poolbn.posteriors.averaging import (
    AveragedNetwork,
    Build,
    Fit,
    GraphSample,
    averaged_effects,
    total_effects,
)
from poolbn.posteriors.chains import (
    MCMC,
    METHODS,
    Chains,
    Diagnostics,
    Sampled,
    begun,
    diagnostics,
    walked,
)
from poolbn.posteriors.families import (
    MOST,
    Prior,
    Summed,
    all_families,
    components,
    possible,
    summed,
    usual_parents,
)
from poolbn.run.progress import Progress
from poolbn.scoring.local import Kind, LocalScores, Score, family_fits, name_of
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import Kinds
from poolbn.tables.missing import Missing
from poolbn.wording import counted

Part = Summed | Sampled

_LIKELY = 0.05  # the least probability of an arc that a printed posterior lists
_SAME = 9  # digits of probabilities and directions; what is less is rounding


@dataclass(frozen=True, eq=False)
class Known:
    """What a posterior is of, for fits and draws."""

    fit: Fit  # makes the final fits of families
    allowed: Allowed
    apart: Flags  # nodes of which one was set in a data set, and the other not, (N, N)
    build: Build  # makes a network of a graph and its fits


@dataclass(frozen=True, eq=False, repr=False)
class ArcPosterior:
    """The probability of every arc, given the data.

    Attributes:
        nodes: the N nodes.
        prior: "orders" or "dags", see `pb.arc_posterior`.
        max_parents: that a node may have.
        power: of exp(score) that weighs a family; 1 unless `tempered`.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> post = pb.arc_posterior(trial.dropna(), group="clinic")
        >>> post
        ArcPosterior: 3 nodes, exact, uniform prior over orders, up to 2 parents
          gestation_days -> birthweight_g  probability 1.00, direction 0.94
          gestation_days -> age  probability 0.94, direction 0.62
          birthweight_g -> age  probability 0.08, direction 0.51
        >>> post.median_graph().skeleton()
        (('age', 'gestation_days'), ('gestation_days', 'birthweight_g'))
    """

    nodes: tuple[str, ...]
    prior: Prior
    max_parents: int
    _parts: tuple[Part, ...]  # of nodes that can be on a cycle together
    _known: Known
    power: float = 1.0

    @cached_property
    def probabilities(self) -> Floats:
        """The probability of each arc, parent first, (N, N)."""
        N = len(self.nodes)
        arcs = np.zeros((N, N))
        for part in self._parts:
            arcs[:, part.families.nodes] = part.families.arcs(part.probabilities, N)
        return np.clip(arcs, 0.0, 1.0)

    @cached_property
    def chains(self) -> Diagnostics | None:
        """How well the chains agree; None where the probabilities are exact."""
        sampled = [part for part in self._parts if isinstance(part, Sampled)]
        return diagnostics(sampled, len(self.nodes))

    @cached_property
    def adjacency(self) -> Floats:
        """The probability of an arc between two nodes, either way, (N, N)."""
        return np.minimum(self.probabilities + self.probabilities.T, 1.0)

    @cached_property
    def direction(self) -> Floats:
        """The share of that which goes from the first node to the second, (N, N)."""
        either = self.adjacency
        none = np.zeros_like(either)
        return np.divide(self.probabilities, either, out=none, where=either > 0)

    def probability(self, parent: str, child: str) -> float:
        """The probability of an arc.

        Raises:
            GraphError: a name is no node, or both are the same.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> post = pb.arc_posterior(trial, group="clinic")
            >>> back = post.probability("birthweight_g", "gestation_days")
            >>> round(post.probability("gestation_days", "birthweight_g") + back, 6)
            1.0
        """
        p, c = self._at(parent), self._at(child)
        if p == c:
            raise GraphError(f"{parent!r} is given twice; an arc joins two nodes")
        return float(self.probabilities[p, c])

    def arcs(self) -> pd.DataFrame:
        """A row for each two nodes, those in most doubt first.

        `probability` is that of an arc either way, and doubt is greatest where it is 1/2;
        `direction` the share of it from `parent` to `child`, which is at least 1/2. Where the
        probabilities come from chains, `se` is the Monte Carlo standard error and `r_hat` says
        whether chains agree, of the direction that is worse.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
            >>> post.arcs().round(3)
                       parent           child  probability  direction
            0             age   birthweight_g        0.059        1.0
            1             age  gestation_days        0.958        1.0
            2  gestation_days   birthweight_g        1.000        1.0
        """
        a, b = np.triu_indices(len(self.nodes), 1)
        turned = self.probabilities[b, a] > self.probabilities[a, b]
        p, c = np.where(turned, b, a), np.where(turned, a, b)
        names = np.array(self.nodes, dtype=object)
        numbers = {"probability": self.adjacency[p, c], "direction": self.direction[p, c]}
        table = pd.DataFrame({"parent": names[p], "child": names[c], **numbers})
        if self.chains is not None:
            se, hat = self.chains.arc_se, self.chains.arc_r_hat
            table["se"] = np.maximum(se, se.T)[p, c]
            table["r_hat"] = np.maximum(hat, hat.T)[p, c]
        doubt = (table["probability"] - 0.5).abs()
        return table.loc[doubt.sort_values(kind="stable").index].reset_index(drop=True)

    def parent_sets(self, node: str, most: int = 10) -> pd.DataFrame:
        """The most probable sets of parents of a node: parents, probability.

        Args:
            node: the child.
            most: rows.

        Raises:
            GraphError: it is no node.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
            >>> post.parent_sets("birthweight_g", 2).round(3)
                             parents  probability
            0      (gestation_days,)        0.941
            1  (age, gestation_days)        0.059
        """
        check_count(1, most=most)
        at = self._at(node)
        part = next(part for part in self._parts if at in part.families.nodes)
        c = int(np.flatnonzero(part.families.nodes == at)[0])
        own = part.probabilities[part.families.of(c)]
        order = np.argsort(-own, kind="stable")[:most]
        rows = part.families.parents[part.families.of(c)][order]
        sets = [tuple(self.nodes[p] for p in row[row >= 0]) for row in rows]
        return pd.DataFrame({"parents": pd.Series(sets, dtype=object), "probability": own[order]})

    def median_graph(self, threshold: float = 0.5) -> Dag:
        """The graph of the arcs that are more probable than not.

        Two nodes are joined where an arc either way has a probability above the threshold, in its
        more probable direction. The most probable are added first, and those left out that make a
        cycle. What is as probable either way is directed so that no new v-structure arises, if that
        can be.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
            >>> post.median_graph()
            Dag('[age][gestation_days|age][birthweight_g|gestation_days]')
        """
        _check_probability(threshold=threshold)
        direction = self.direction.round(_SAME)
        edges = averaged_edges(self.adjacency, direction, threshold, weakest_first=False)
        return directed_network(self.nodes, *edges)

    def expected_false(self, threshold: float = 0.5, *, directed: bool = False) -> float:
        """How many of the arcs at or above a threshold are expected to be false.

        That is the sum of 1 less their probabilities, as right as these are.

        Args:
            threshold: the least probability of an arc.
            directed: whether an arc in the wrong direction is false; else pairs of nodes count,
                joined either way.

        Raises:
            OptionError: the threshold is no probability.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic")
            >>> round(post.expected_false(), 2), round(post.expected_false(directed=True), 2)
            (0.06, 0.48)
        """
        _check_probability(threshold=threshold)
        p = self._distinct(directed)
        return float((1 - p[p >= threshold]).sum())

    def threshold(self, rate: float = 0.05, *, directed: bool = False) -> float:
        """The least threshold above which an expected share of at most `rate` is false.

        The expected false discovery rate is that of `expected_false` among the arcs above it. Any
        number between the last probability above it and the next one would do; it is the middle.
        Where not even the most probable arc will do it is above all.

        Args:
            rate: the expected false discovery rate.
            directed: whether an arc in the wrong direction is false, as for `expected_false`.

        Raises:
            OptionError: the rate is no probability.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic")
            >>> round(post.threshold(0.1), 2), round(post.threshold(0.01), 2)
            (0.51, 0.97)
            >>> len(post.median_graph(post.threshold(0.01)).arcs)
            1
        """
        _check_probability(rate=rate)
        p = self._distinct(directed)
        values: list[float] = np.unique(p)[::-1].tolist()
        shares = [float((1 - p[p >= value]).mean()) for value in values]
        kept = sum(share <= rate for share in shares)  # they grow
        ends = [1.0, *values, 0.0]
        return (ends[kept] + ends[kept + 1]) / 2

    def _distinct(self, directed: bool) -> Floats:
        """Probabilities of arcs, or of pairs that are joined."""
        check_arguments(directed=(directed, FLAG))
        N = len(self.nodes)
        p = self.probabilities[~np.eye(N, dtype=bool)]
        return (p if directed else self.adjacency[np.triu_indices(N, 1)]).round(_SAME)

    def sample(self, draws: int = 1000, seed: int = 0) -> GraphSample:
        """Draw graphs: for the probabilities of paths, Markov blankets, or anything else.

        Args:
            draws: how many graphs. Of chains as many are drawn from each.
            seed: random seed.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> pb.arc_posterior(trial, group="clinic").sample(100).arcs.shape
            (100, 2, 2)
        """
        check_count(1, draws=draws)
        check_count(seed=seed)
        rng = np.random.default_rng(seed)
        chains = 1 if self.chains is None else self.chains.chains
        draws = math.ceil(draws / chains) * chains
        N = len(self.nodes)
        arcs = np.zeros((draws, N + 1, N), dtype=bool)
        for part in self._parts:
            parents = part.families.parents[part.draw(draws, rng)]  # (draws, n, .)
            nodes = part.families.nodes[None, :, None]
            arcs[np.arange(draws)[:, None, None], parents, nodes] = True
        fixed = self._known.allowed.required | ~self._known.allowed.arcs.T
        fixed |= self._known.apart
        return GraphSample(self.nodes, arcs[:, :N], chains, fixed)

    def effects(self, interval: float = 0.95) -> pd.DataFrame:
        """The effect of each arc, averaged over graphs: 0 where the arc is not there.

        A row for each arc with a probability of at least 0.01, the most probable first. `effect` is
        the mean, `if_present` that over the graphs with the arc; `lower` and `upper` are quantiles
        of the same distribution, with what is uncertain of the graph and of the coefficients. As in
        `net.effects()`, an arc has a row for each level of discrete columns but the first; ratios
        are averaged as logarithms.

        Args:
            interval: the probability of the intervals.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
            >>> shown = ["parent", "child", "probability", "effect", "lower", "upper"]
            >>> post.effects()[shown].round(1)
                       parent           child  probability  effect  lower  upper
            0  gestation_days   birthweight_g          1.0    24.2   21.2   27.3
            1             age  gestation_days          1.0    -0.3   -1.5    0.8
            2             age   birthweight_g          0.1     0.5    0.0    8.1
        """
        check_interval(interval)
        own = (self._parts, self.probabilities, self._known.fit)
        return averaged_effects(self.nodes, *own, interval)

    def total_effects(
        self, draws: int = 1000, *, interval: float = 0.95, seed: int = 0
    ) -> pd.DataFrame:
        """The effect of one node on another along all directed paths, averaged over graphs.

        For each drawn graph coefficients of the population are drawn; a total effect is 0 where no
        path leads from cause to effect. A row for each two nodes with a path in at least 1% of the
        graphs: cause, effect, the probability of a path, the mean `total`, `lower`, `upper`, and
        the Monte Carlo standard error of the mean.

        Args:
            draws: graphs to draw.
            interval: the probability of the intervals.
            seed: random seed.

        Raises:
            DataError: a column is not continuous.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
            >>> post.total_effects().head(1)[["cause", "effect", "total"]].round(0)
                        cause         effect  total
            0  gestation_days  birthweight_g   24.0
        """
        check_interval(interval)
        graphs = self.sample(draws, seed)
        rng = np.random.default_rng([seed, 1])
        return total_effects(graphs, self._known.fit, interval, rng)

    def averaged(self, draws: int = 200, seed: int = 0) -> AveragedNetwork:
        """Networks of drawn graphs, which predict together: the graph is not taken for certain.

        Args:
            draws: graphs to draw; a network is fitted for each different one.
            seed: random seed.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]].dropna()
            >>> averaged = pb.arc_posterior(trial, group="clinic").averaged(100)
            >>> averaged.predict({"clinic": "NY", "age": 20}, "birthweight_g").round(-2)
                 mean     sd   lower   upper
            0  3200.0  700.0  1800.0  4500.0
        """
        graphs = self.sample(draws, seed).graphs()
        dags: list[Dag] = graphs["dag"].tolist()
        families = sorted({_family(dag, node) for dag in dags for node in dag.nodes})
        fits = dict(zip(families, self._known.fit(families), strict=True))
        networks = tuple(
            self._known.build(dag, {node: fits[_family(dag, node)] for node in dag.nodes})
            for dag in dags
        )
        return AveragedNetwork(networks, graphs["probability"].to_numpy())

    def continued(self, sweeps: int) -> ArcPosterior:
        """The same with longer chains: they go on from where they are.

        Args:
            sweeps: more of each chain.

        Raises:
            OptionError: the probabilities are exact.
            PosteriorInterrupted: on Ctrl-C; it holds the posterior so far.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> post = pb.arc_posterior(trial, group="clinic", method=pb.OrderMCMC(sweeps=100))
            >>> post.continued(100).chains.sweeps
            200
        """
        check_count(1, sweeps=sweeps)
        if self.chains is None:
            raise OptionError("the probabilities are exact; there are no chains to continue")
        with Progress() as progress:
            going = [part.chains if isinstance(part, Sampled) else part for part in self._parts]
            made = walked(going, sweeps, len(self.nodes), progress)
        return self._with(*made, self.power)

    def tempered(self, power: float) -> ArcPosterior:
        """A posterior that is less sure: each family weighs exp(score) to a power below 1.

        BIC is not a marginal likelihood, and its probabilities are too near 0 and 1. On the paper's
        networks a power of 0.25 makes those near 0 as frequent as they say. Families are not scored
        again; chains begin anew.

        Args:
            power: above 0, up to 1.

        Raises:
            OptionError: the power is none.
            PosteriorInterrupted: on Ctrl-C while chains run; it holds the posterior so far.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
            >>> less_sure = post.tempered(0.25)
            >>> less_sure.probability("age", "gestation_days") > 0.2
            True
        """
        if not is_finite(power) or not 0 < power <= 1:
            raise OptionError(Option("power", power), " is not above 0 and up to 1; use 0.25")
        going: list[Summed | Chains] = []
        for part in self._parts:
            own = part.families.tempered(power)
            if isinstance(part, Sampled):
                going.append(begun(own, self._known.allowed.required, part.chains.options))
            else:
                going.append(summed(own, self.prior))
        sweeps = 0 if self.chains is None else self.chains.sweeps
        with Progress() as progress:
            made = walked(going, sweeps, len(self.nodes), progress)
        return self._with(*made, self.power * power)

    def _with(self, parts: Sequence[Part], stopped: bool, power: float) -> ArcPosterior:
        """The same of other sums or chains; raises where the user stopped them."""
        made = replace(self, _parts=tuple(parts), power=power)
        if stopped:
            raise PosteriorInterrupted(made)
        return made

    def _at(self, node: str) -> int:
        if not among(node, self.nodes):
            raise GraphError(f"{node!r} is not a node{nearest(node, self.nodes)}")
        return self.nodes.index(node)

    def _summary(self) -> str:
        how = "exact" if self.chains is None else str(self.chains)
        over = "orders" if self.prior == "orders" else "graphs"
        most = counted(self.max_parents, "parent")
        power = "" if self.power == 1 else f", exp(score) to the power {self.power:g}"
        return f"{len(self.nodes)} nodes, {how}, uniform prior over {over}, up to {most}{power}"

    def _likely(self) -> pd.DataFrame:
        """Pairs that may be joined, the most probable first."""
        table = self.arcs()
        table = table[table["probability"] >= _LIKELY]
        by = ["probability", "direction"]
        order = table[by].round(_SAME).sort_values(by, ascending=False, kind="stable").index
        return table.loc[order].reset_index(drop=True)

    def __repr__(self) -> str:
        found = self._likely().round({"direction": _SAME}).iloc[:, :4]
        pairs = [ArcStrength(*row) for row in found.itertuples(index=False, name=None)]
        none = f"  no arc has a probability of {_LIKELY} or more"
        lines = told(pairs, "probability", ".arcs()") or [none]
        return "\n".join([f"ArcPosterior: {self._summary()}", *lines])

    def _repr_html_(self) -> str:
        body = self._likely().to_html(index=False, float_format="{:.3g}".format)
        return f"<p><b>ArcPosterior</b>: {html.escape(self._summary())}</p>{body}"


def _check_probability(**given: float) -> None:
    ((name, value),) = given.items()
    if not is_finite(value) or not 0 <= value <= 1:
        raise OptionError(Option(name, value), " is not a probability between 0 and 1")


def _family(dag: Dag, node: str) -> Family:
    return dag.nodes.index(node), tuple(sorted(map(dag.nodes.index, dag.parents(node))))


class PosteriorInterrupted(PoolbnError, KeyboardInterrupt):
    """The chains were stopped by the user.

    Attributes:
        posterior: what the chains give so far.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> try:
        ...     post = pb.arc_posterior(trial, group="clinic")
        ... except pb.PosteriorInterrupted as stopped:
        ...     post = stopped.posterior
        >>> post.nodes
        ('gestation_days', 'birthweight_g')
    """

    def __init__(self, posterior: ArcPosterior) -> None:
        self.posterior = posterior
        done = 0 if posterior.chains is None else posterior.chains.sweeps
        super().__init__(
            f"the chains were interrupted after {done} sweeps; what they give so far is in the "
            "exception's attribute posterior"
        )


def arc_posterior(
    source: object,
    *,
    group: Group = None,
    pooling: str | Choice | None = None,
    score: Kind | Score | None = None,
    max_parents: int | None = None,
    constraints: Constraints | None = None,
    prior: Prior = "orders",
    method: MCMC | None = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
    missing: Missing = "error",
) -> ArcPosterior:
    """How sure is an arc: its probability over all networks, not only in the best one.

    All families, of a node and up to `max_parents` parents, are scored; exp(score) stands for their
    marginal likelihood. Probabilities are exact for up to 20 columns, with the prior "dags" for up
    to 17. Columns count for that if they can be on a cycle together: inputs, and columns that tiers
    keep apart, do not. Beyond that they come from chains, over orders or over layers of graphs.

    Args:
        source: anything that `pb.learn` takes.
        group: the column that says which data set a row came from.
        pooling: as for `pb.learn`. "auto" is the pooling of the network that `pb.learn` finds.
        score: as for `pb.learn`. "bge", "bde" and "k2" are marginal likelihoods, "bic" and "bic-h"
            stand for them.
        max_parents: of any node. By default as many as the constraints say, or as give up to
            50,000 families, and two at least.
        constraints: a `pb.Constraints(...)`.
        prior: "orders": all pairs of an order of the columns and a graph that goes along it are as
            probable a priori, so that a graph counts as often as there are orders that it goes
            along. "dags": all graphs are.
        method: None, or chains where sums could be taken too, or for longer ones:
            `pb.OrderMCMC(...)` with the prior "orders", `pb.PartitionMCMC(...)` with "dags".
        columns: the columns to keep; None for all but `group`.
        kinds: of some columns, see `pb.table`.
        inputs: columns that may be parents but never children, see `pb.stats`.
        interventions: columns that were set in some data sets, see `pb.stats`.
        missing: what to do with missing cells, "error", "drop" or "em", see `pb.stats`.

    Raises:
        PosteriorInterrupted: on Ctrl-C while chains run; it holds what they give so far.
        DataError: the source cannot be used, or a column has no likelihood.
        OptionError: an option has a value that it does not take.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
        >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
        >>> round(post.probability("gestation_days", "birthweight_g"), 4)
        1.0
        >>> round(post.probability("age", "gestation_days"), 2)
        0.96
    """
    check_option("prior", prior, get_args(Prior))
    check_whole(max_parents=max_parents)
    if not isinstance(method, METHODS[prior] | None):
        raise OptionError(
            Option("method", method), f" must be a pb.{METHODS[prior].__name__} with ",
            Option("prior", prior), ", or None for exact probabilities",
        )  # fmt: skip
    data = gathered(
        source, group=group, columns=columns, kinds=kinds, missing=missing, inputs=inputs,
        interventions=interventions,
    )  # fmt: skip
    plan = as_plan(pooling, score, None, constraints)
    allowed = plan.allowed(data)
    wished = plan.constraints.max_parents if max_parents is None else max_parents
    most = _most_parents(allowed, wished, data.names)
    wanted = [_way(len(nodes), prior, method) for nodes in components(possible(allowed))]
    check_digits(standardise(data.stats()))
    warn(data, plan.known)
    first = plan.pooling.first(data.levels)
    model = first if first == plan.pooling else plan.found(data)[1]
    with Progress() as progress:
        scores = LocalScores(data, pooling=model, score=plan.score)
        families = all_families(scores, allowed, most, progress)
        going = [
            summed(own, prior) if chains is None else begun(own, allowed.required, chains)
            for own, chains in zip(families, wanted, strict=True)
        ]
        sweeps = max((chains.sweeps for chains in wanted if chains is not None), default=0)
        made = walked(going, sweeps, len(data.names), progress)
    fit = partial(family_fits, data, model=model, score=plan.score)
    build = partial(  # its score does not matter
        Network, score=math.nan, group=data.group, n=data.n, score_kind=name_of(plan.score)
    )
    known = Known(fit, allowed, set_apart(data.names, data.interventions.values()), build)
    return ArcPosterior(data.names, prior, most, (), known)._with(*made, 1.0)


def _way(nodes: int, prior: Prior, method: MCMC | None) -> MCMC | None:
    """None for exact sums over nodes that can be on a cycle together; else the chains."""
    if nodes == 1 or (method is None and nodes <= MOST[prior]):
        return None
    return method or METHODS[prior]()


def _most_parents(allowed: Allowed, max_parents: int | None, names: Sequence[str]) -> int:
    """Parents that a node may have."""
    into = possible(allowed)
    usual = usual_parents(into) if max_parents is None else max_parents
    needed = allowed.required.sum(axis=0)
    most = min(usual, allowed.max_parents, len(names) - 1)
    if max_parents is None:
        return max(most, int(needed.max(initial=0)))
    if (needed > most).any():
        c = int((needed > most).argmax())
        raise GraphError(
            f"{counted(int(needed[c]), 'arc')} into {names[c]!r} must be there, and ",
            Option("max_parents", most),
            "; require fewer or allow more",
        )
    return most
