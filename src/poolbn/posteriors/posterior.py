"""`ArcPosterior`: the probability of every arc and set of parents, and what follows from them."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import among, is_finite
from poolbn.assess.strengths import averaged_edges, directed_network
from poolbn.errors import (
    GraphError,
    Option,
    OptionError,
    PoolbnError,
    check_count,
    check_interval,
    nearest,
)
from poolbn.graph.constraints import Allowed
from poolbn.graph.dag import Dag
from poolbn.moments.standardised import Family
from poolbn.posteriors.averaging import Fit, averaged_fits, total_effects
from poolbn.posteriors.chains import Chains, Diagnostics, Sampled, begun, diagnostics, walked
from poolbn.posteriors.predicting import AveragedNetwork, Build
from poolbn.posteriors.sample import GraphSample
from poolbn.posteriors.summing import Prior, Summed, summed
from poolbn.run.progress import Progress
from poolbn.wording import counted, visible

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Part = Summed | Sampled

_SHOWN = 12  # pairs that a printed posterior lists
_LIKELY = 0.05  # and the least probability of an arc between them
_SAME = 9  # digits of probabilities and directions; what is less is rounding


@dataclass(frozen=True, eq=False)
class Known:
    """What a posterior is of, for fits and draws.

    Attributes:
        fit: makes the final fits of families.
        allowed: the constraints.
        build: makes a network of a graph and its fits.
    """

    fit: Fit
    allowed: Allowed
    build: Build


@dataclass(frozen=True, eq=False, repr=False)
class ArcPosterior:
    """The probability of every arc, given the data.

    Attributes:
        nodes: the N nodes.
        probabilities: of each arc, parent first, (N, N).
        prior: "orders" or "dags", see `pb.arc_posterior`.
        max_parents: that a node may have.
        chains: how well the chains agree; None where the probabilities are exact.
        power: of exp(score) that weighs a family; 1 unless `tempered`.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> post = pb.arc_posterior(trial.dropna(), group="clinic")
        >>> post
        ArcPosterior: 3 nodes, exact, uniform prior over orders, up to 2 parents
          birthweight_g -> gestation_days  probability 1.00, direction 1.00
          gestation_days -> age  probability 0.35, direction 1.00
        >>> post.median_graph().skeleton()
        (('gestation_days', 'birthweight_g'),)
    """

    nodes: tuple[str, ...]
    probabilities: Floats
    prior: Prior
    max_parents: int
    chains: Diagnostics | None
    _parts: tuple[Part, ...] = field(repr=False)
    _known: Known = field(repr=False)
    power: float = 1.0

    @cached_property
    def adjacency(self) -> Floats:
        """The probability of an arc between two nodes, either way, (N, N)."""
        return self.probabilities + self.probabilities.T

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
            0             age  gestation_days        0.038        1.0
            1             age   birthweight_g        0.000        1.0
            2  gestation_days   birthweight_g        1.000        1.0
        """
        import pandas as pd

        a, b = np.triu_indices(len(self.nodes), 1)
        turned = self.probabilities[b, a] > self.probabilities[a, b]
        p, c = np.where(turned, b, a), np.where(turned, a, b)
        either = np.minimum(self.adjacency[p, c], 1.0)
        names = np.array(self.nodes, dtype=object)
        share = np.divide(self.probabilities[p, c], either, out=np.zeros(len(p)), where=either > 0)
        table = pd.DataFrame(
            {"parent": names[p], "child": names[c], "probability": either, "direction": share}
        )
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
            0      (gestation_days,)          1.0
            1  (age, gestation_days)          0.0
        """
        import pandas as pd

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
            Dag('[age][gestation_days][birthweight_g|gestation_days]')
        """
        if not is_finite(threshold) or not 0 <= threshold <= 1:
            raise OptionError(
                Option("threshold", threshold), " is not a probability between 0 and 1"
            )
        either = self.adjacency
        direction = np.divide(
            self.probabilities, either, out=np.zeros_like(either), where=either > 0
        )
        edges = averaged_edges(either, direction.round(_SAME), threshold, weakest_first=False)
        return directed_network(self.nodes, *edges)

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
            0  gestation_days   birthweight_g          1.0    24.2   21.2   27.2
            1             age  gestation_days          0.0    -0.0   -0.1    0.0
        """
        check_interval(interval)
        own = [(part.families, part.probabilities) for part in self._parts]
        made = averaged_fits(self.nodes, own, self.probabilities, self._known.fit)
        return made.table(interval)

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
            0  3200.0  700.0  1900.0  4500.0
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
            tell = partial(tell_sweeps, progress)
            parts, stopped = walked(going, sweeps, len(self.nodes), tell)
        return self._with(parts, self.power, stopped)

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
            tell = partial(tell_sweeps, progress)
            parts, stopped = walked(going, sweeps, len(self.nodes), tell)
        return self._with(parts, self.power * power, stopped)

    def _with(self, parts: Sequence[Part], power: float, stopped: bool) -> ArcPosterior:
        """The same of other sums or chains; raises where the user stopped them."""
        made = assembled(self.nodes, parts, self.prior, self.max_parents, self._known)
        made = replace(made, power=power)
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
        lines = [f"ArcPosterior: {self._summary()}"]
        found = self._likely()
        for row in found.head(_SHOWN).to_dict("records"):
            share = round(row["direction"], _SAME)
            sign = "--" if share == 0.5 else "->"
            arc = visible(f"{row['parent']} {sign} {row['child']}")
            direction = "" if share == 0.5 else f", direction {share:.2f}"
            lines.append(f"  {arc}  probability {row['probability']:.2f}{direction}")
        if not len(found):
            lines.append(f"  no arc has a probability of {_LIKELY} or more")
        if len(found) > _SHOWN:
            lines.append(f"  ... {len(found) - _SHOWN} more in .arcs()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        body = self._likely().to_html(index=False, float_format="{:.3g}".format)
        return f"<p><b>ArcPosterior</b>: {html.escape(self._summary())}</p>{body}"


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


def assembled(
    nodes: tuple[str, ...], parts: Sequence[Part], prior: Prior, max_parents: int, known: Known
) -> ArcPosterior:
    """The posterior of all nodes, of those that can be on a cycle together each."""
    N = len(nodes)
    arcs = np.zeros((N, N))
    for part in parts:
        arcs[:, part.families.nodes] = part.families.arcs(part.probabilities, N)
    chains = diagnostics([part for part in parts if isinstance(part, Sampled)], N)
    arcs = np.clip(arcs, 0.0, 1.0)
    return ArcPosterior(nodes, arcs, prior, max_parents, chains, tuple(parts), known)


def tell_sweeps(progress: Progress, done: int, of: int) -> None:
    """Say how far chains are."""
    progress(lambda: f"chains: {done:,} of {of:,} sweeps")
