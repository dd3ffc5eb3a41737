"""Graphs drawn from a posterior, and what they have in common: paths, blankets, classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poolbn.arguments import FUNCTION, check_arguments
from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import ArgumentError
from poolbn.graph.dag import Dag
from poolbn.graph.equivalence import completed, reached
from poolbn.inference.events import Probability
from poolbn.later import pandas as pd
from poolbn.posteriors.chains import monte_carlo


@dataclass(frozen=True, eq=False, repr=False)
class GraphSample:
    """Graphs drawn at random from their posterior distribution.

    Attributes:
        nodes: the N nodes.
        arcs: the graphs, parent first, (draws, N, N).
        chains: as many chains as the draws come from, one after another; 1 where they are
            independent.
        fixed: arcs that constraints allow no other way, (N, N).

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> post = pb.arc_posterior(trial.dropna(), group="clinic")
        >>> graphs = post.sample(1000)
        >>> graphs
        GraphSample: 1,000 graphs of 3 nodes, independent
        >>> graphs.average(lambda dag: "age" in dag.ancestors("birthweight_g")).value < 0.2
        True
    """

    nodes: tuple[str, ...]
    arcs: Flags
    chains: int = 1
    fixed: Flags | None = None

    def __len__(self) -> int:
        return len(self.arcs)

    @cached_property
    def _distinct(self) -> tuple[Flags, Integers]:
        """The different graphs, and which of them each draw is."""
        draws, N, _ = self.arcs.shape
        packed = np.packbits(self.arcs.reshape(draws, N * N), axis=1)
        _, first, of = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        return self.arcs[first], of.ravel()

    def graphs(self) -> pd.DataFrame:
        """The different graphs, the most frequent first: dag, probability.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> post = pb.arc_posterior(trial, group="clinic", pooling="complete", score="bge")
            >>> sorted(dag.to_modelstring() for dag in post.sample(400).graphs()["dag"])[0]
            '[birthweight_g][gestation_days|birthweight_g]'
        """
        each, of = self._distinct
        shares = np.bincount(of, minlength=len(each)) / len(self)
        order = np.argsort(-shares, kind="stable")
        dags = np.empty(len(each), dtype=object)
        dags[:] = [self._dag(arcs) for arcs in each]
        return pd.DataFrame({"dag": dags[order], "probability": shares[order]})

    def average(self, function: Callable[[Dag], float]) -> Probability:
        """The mean of a function of graphs, with its Monte Carlo standard error.

        Args:
            function: of a `pb.Dag`. If it says whether a graph has something, True or False, the
                mean is the probability of that.

        Raises:
            ArgumentError: it gives something that is not a number.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> graphs = pb.arc_posterior(trial.dropna(), group="clinic").sample(1000)
            >>> found = graphs.average(lambda dag: len(dag.arcs))
            >>> 1 < found.value < 2 and found.se < 0.05
            True
        """
        check_arguments(function=(function, FUNCTION))
        each, of = self._distinct
        values = np.empty(len(each))
        for k, arcs in enumerate(each):
            value = function(self._dag(arcs))
            if not isinstance(value, bool | int | float | np.number | np.bool_):
                raise ArgumentError(
                    f"the function of a graph must give a number, or True or False, and gave an "
                    f"object of type {type(value).__name__}"
                )
            values[k] = value
        return Probability(*(float(x) for x in self._mean(values[of])))

    def paths(self) -> pd.DataFrame:
        """The probability that a directed path leads from one node to another.

        A row for each two nodes: from, to, probability, se; the most probable first.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
            >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
            >>> post.sample(1000).paths().head(1).round(3)
                         from             to  probability   se
            0  gestation_days  birthweight_g          1.0  0.0
        """
        return self._pairs(reached(self.arcs))

    def markov_blankets(self) -> pd.DataFrame:
        """The probability that one node is in the Markov blanket of another, which goes both ways.

        A row for each two nodes: from, to, probability, se; the most probable first.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
            >>> graphs = pb.arc_posterior(trial.dropna(), group="clinic").sample(1000)
            >>> graphs.markov_blankets().loc[0, ["from", "to"]].tolist()
            ['gestation_days', 'birthweight_g']
        """
        whole = self.arcs.astype(np.float32)
        spouses = whole @ whole.transpose(0, 2, 1) > 0
        joined = self.arcs | self.arcs.transpose(0, 2, 1) | spouses
        return self._pairs(joined, both=False)

    def edges(self) -> pd.DataFrame:
        """What equivalence classes have between two nodes: an arc, one the other way, or an edge.

        What constraints allow only one way is an arc. Scores of complete pooling tell no direction
        of an undirected edge; those of partial pooling often prefer one.

        A row for each two nodes: from, to, the probabilities `arc`, `reverse`, `undirected` and
        `none`, and `se`, the largest of their standard errors; most probably joined ones first.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
            >>> pb.arc_posterior(trial, group="clinic").sample(100).edges()
                         from             to  arc  reverse  undirected  none   se
            0  gestation_days  birthweight_g  0.0      0.0         1.0   0.0  0.0
        """
        each, of = self._distinct
        found = [completed(arcs, self.fixed) for arcs in each]
        directed = np.array([arcs for arcs, _ in found])[of]
        undirected = np.array([edges for _, edges in found])[of]
        a, b = np.triu_indices(len(self.nodes), 1)
        kinds = [directed[:, a, b], directed[:, b, a], undirected[:, a, b]]
        kinds.append(~(kinds[0] | kinds[1] | kinds[2]))
        means, errors = zip(*(self._mean(kind.astype(float)) for kind in kinds), strict=True)
        names = np.array(self.nodes, dtype=object)
        labels = ("arc", "reverse", "undirected", "none")
        columns = {"from": names[a], "to": names[b], **dict(zip(labels, means, strict=True))}
        table = pd.DataFrame(columns).assign(se=np.max(errors, axis=0))
        return table.sort_values("none", kind="stable", ignore_index=True)

    def _mean(self, values: Floats) -> tuple[Floats, Floats]:
        return monte_carlo(values, self.chains)

    def _pairs(self, joined: Flags, *, both: bool = True) -> pd.DataFrame:
        """The probability of what two nodes have, (draws, N, N)."""
        N = len(self.nodes)
        a, b = np.nonzero(~np.eye(N, dtype=bool)) if both else np.triu_indices(N, 1)
        mean, se = self._mean(joined[:, a, b].astype(float))
        names = np.array(self.nodes, dtype=object)
        table = pd.DataFrame({"from": names[a], "to": names[b], "probability": mean, "se": se})
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    def _dag(self, arcs: Flags) -> Dag:
        return Dag(self.nodes, [(self.nodes[p], self.nodes[c]) for p, c in np.argwhere(arcs)])

    def __repr__(self) -> str:
        how = "independent" if self.chains == 1 else f"from {self.chains} chains"
        return f"GraphSample: {len(self):,} graphs of {len(self.nodes)} nodes, {how}"
