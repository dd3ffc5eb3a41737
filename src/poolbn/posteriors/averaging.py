"""Graphs drawn from a posterior; effects and predictions averaged over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from poolbn.arguments import FLAG, FUNCTION, TEXT, check_arguments
from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import ArgumentError, DataError, GraphError, InPython, check_interval, nearest
from poolbn.graph.dag import Dag
from poolbn.graph.equivalence import completed, reached
from poolbn.inference.events import Probability
from poolbn.inference.marginals import Mixture, moments, spread
from poolbn.later import pandas as pd
from poolbn.moments.standardised import Family
from poolbn.network.effects import TERM
from poolbn.network.network import Network
from poolbn.network.questions import ESS, NUMBERS
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.terms import Term
from poolbn.posteriors.chains import Sampled, monte_carlo
from poolbn.posteriors.families import Summed
from poolbn.wording import counted


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
        False
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
            False
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


Fit = Callable[[Sequence[Family]], list[LocalFit]]
Build = Callable[[Dag, Mapping[str, LocalFit]], Network]

_LEFT = 0.005  # probability of sets of parents that are so improbable that none is fitted
_SMALL = 0.01  # probability of an arc that is not worth a row
_MOST = 1 - 1e-15  # of a probability

_COLUMNS = (*TERM, "probability", "effect", "if_present", "lower", "upper")


class _Mixture(NamedTuple):
    """Student's t distributions, and with the rest of the probability 0; (K,) each."""

    weight: Floats  # probabilities
    center: Floats
    se: Floats
    df: Floats

    @property
    def mean(self) -> float:
        """Of all."""
        return float(self.weight @ self.center)

    def quantile(self, p: float) -> float:
        """The least number that is exceeded with probability 1 - p; NaN where an error is."""
        used = self.weight > 0
        weight, center, se, df = (each[None, used] for each in self)
        if not (np.isfinite(se).all() and np.isfinite(center).all()):
            return float("nan")
        total = float(weight.sum())
        rest = max(0.0, 1.0 - total)
        known = Mixture(weight / total, center, (se * spread(df)) ** 2, df)
        below = total * float(known.cdf(np.zeros(1))[0])
        if below < p <= below + rest:  # 0 is a point with a probability of its own
            return 0.0
        return float(known.quantile(min(p if p <= below else p - rest, _MOST * total) / total)[0])


def averaged_effects(
    names: tuple[str, ...],
    parts: Sequence[Summed | Sampled],
    arcs: Floats,
    fit: Fit,
    interval: float,
) -> pd.DataFrame:
    """A row for each `Term` of arcs that are not improbable; `arcs` are probabilities, (N, N)."""
    fits = _probable_fits(parts, fit)
    order = np.argsort(-arcs, axis=None, kind="stable")
    rows: list[tuple[Any, ...]] = []
    for p, c in zip(*np.unravel_index(order, arcs.shape), strict=True):
        if arcs[p, c] < _SMALL:
            break
        parent, child = names[p], names[c]
        for term, each in _terms(parent, fits[c]):
            tails = ((1 - interval) / 2, (1 + interval) / 2)
            weight = float(each.weight.sum())
            present = each.mean / weight if weight > 0 else float("nan")
            numbers = (each.mean, present, *map(each.quantile, tails))
            told = (parent, term.level, child, term.outcome, term.scale)
            rows.append((*told, float(arcs[p, c]), *term.reported(np.array(numbers)).tolist()))
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _probable_fits(
    parts: Sequence[Summed | Sampled], fit: Fit
) -> dict[int, list[tuple[LocalFit, float]]]:
    """For each node fits with sets of parents that have nearly all of the probability; and that."""
    wanted: list[tuple[Family, float]] = []
    for part in parts:
        families = part.families
        for c, node in enumerate(families.nodes.tolist()):
            own = part.probabilities[families.of(c)]
            order = np.argsort(-own, kind="stable")
            kept = order[: int(np.searchsorted(np.cumsum(own[order]), 1 - _LEFT)) + 1]
            for k in kept.tolist():
                row = families.parents[families.start[c] + k]
                share = float(own[k] / own[kept].sum())
                wanted.append(((node, tuple(row[row >= 0].tolist())), share))
    found: dict[int, list[tuple[LocalFit, float]]] = {}
    fits = fit([family for family, _ in wanted])
    for ((node, _), share), made in zip(wanted, fits, strict=True):
        found.setdefault(node, []).append((made, share))
    return found


def _terms(parent: str, fits: Sequence[tuple[LocalFit, float]]) -> list[tuple[Term, _Mixture]]:
    """The effects of an arc: what one is of, and their distribution."""
    found: dict[tuple[str, str], list[tuple[float, Term]]] = {}
    for fit, probability in fits:
        if parent in fit.parents:
            for term in fit.terms(parent):
                found.setdefault((term.level, term.outcome), []).append((probability, term))
    made = []
    for terms in found.values():
        columns = zip(*((w, term.effect, term.se, term.df) for w, term in terms), strict=True)
        made.append((terms[0][1], _Mixture(*(np.array(own, dtype=float) for own in columns))))
    return made


def total_effects(
    graphs: GraphSample, fit: Fit, interval: float, rng: np.random.Generator
) -> pd.DataFrame:
    """The effect along all directed paths, averaged over graphs and coefficients."""
    names = graphs.nodes
    coefficients = _coefficients(graphs, fit, rng)
    total = np.linalg.inv(np.eye(len(names)) - coefficients).astype(float)  # (draws, N, N)
    rows: list[tuple[Any, ...]] = []
    for cause, effect, probability, _ in graphs.paths().itertuples(index=False, name=None):
        if probability < _SMALL:
            break
        own = total[:, names.index(cause), names.index(effect)]
        mean, error = monte_carlo(own, graphs.chains)
        ends = np.quantile(own, [(1 - interval) / 2, (1 + interval) / 2])
        rows.append((cause, effect, probability, float(mean), *ends.tolist(), float(error)))
    columns = ["cause", "effect", "probability", "total", "lower", "upper", "simulation_se"]
    return pd.DataFrame(rows, columns=columns)


def _coefficients(graphs: GraphSample, fit: Fit, rng: np.random.Generator) -> Floats:
    """Those of the population, drawn for each graph, 0 where there is no arc; (draws, N, N)."""
    found = np.zeros(graphs.arcs.shape)
    wanted: dict[Family, list[int]] = {}
    for d, arcs in enumerate(graphs.arcs):
        for c in range(len(graphs.nodes)):
            parents = tuple(np.flatnonzero(arcs[:, c]).tolist())
            if parents:
                wanted.setdefault((c, parents), []).append(d)
    for (c, parents), at, made in zip(wanted, wanted.values(), fit(list(wanted)), strict=True):
        linear, names = made.gaussian, tuple(graphs.nodes[p] for p in parents)
        if linear is None or linear.columns != names:
            raise DataError(
                f"total effects are averaged where all columns are continuous, and "
                f"{graphs.nodes[c]!r} or a parent of it is not; use the paths of the graphs",
                InPython(", post.sample().paths()"),
            )
        drawn = linear.population_draws(len(at), rng)
        found[np.ix_(at, parents, [c])] = drawn[:, 1:, None]
    return found


@dataclass(frozen=True, eq=False, repr=False)
class AveragedNetwork:
    """Networks of graphs that were drawn from their posterior; they answer together.

    Attributes:
        networks: one for each different graph, the most frequent first.
        weights: how often each was drawn, as shares, (K,).

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]].dropna()
        >>> post = pb.arc_posterior(trial, group="clinic")
        >>> averaged = post.averaged(200)
        >>> averaged
        AveragedNetwork: 9 networks of 3 nodes
        >>> averaged.predict(trial.head(2), "birthweight_g").round(-1)
             mean     sd   lower   upper
        0  3060.0  460.0  2150.0  3960.0
        1  2770.0  460.0  1860.0  3680.0
    """

    networks: tuple[Network, ...]
    weights: Floats

    def predict(self, data: object, target: str, *, interval: float = 0.95) -> pd.DataFrame:
        """What is to be expected of a node in each row, given the row's other cells.

        Each network counts by its weight and by how likely it makes the row's other cells. In the
        interval each of them has a normal distribution with its own interval.

        Args:
            data: a pandas table, or one row as a dict or Series.
            target: a node.
            interval: the probability of the interval.

        Returns:
            Columns mean, sd, lower and upper, or for a discrete node the probabilities of its
            levels and the most probable one, as of `Network.predict`.

        Raises:
            GraphError: the target is no node.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> averaged = pb.arc_posterior(trial, group="clinic").averaged(100)
            >>> averaged.predict({"clinic": "NY", "age": 20}, "bmi").columns.tolist()
            ['mean', 'sd', 'lower', 'upper']
        """
        check_interval(interval)
        check_arguments(target=(target, TEXT))
        nodes = self.networks[0].dag.nodes
        if target not in nodes:
            raise GraphError(f"{target!r} is not a node{nearest(target, nodes)}")
        frame = _frame(data)
        tables = [
            net.predict(frame, target, interval=interval).drop(columns=ESS, errors="ignore")
            for net in self.networks
        ]
        without = frame.drop(columns=target, errors="ignore")
        share = self._shares(without)
        if self.networks[0].fits[target].categories:
            return _mean_probabilities(tables, share)
        own = np.array([table.to_numpy(dtype=float) for table in tables])  # (K, rows, 4)
        return _mixtures(tables[0], own, share, interval)

    @overload
    def loglik(self, data: object, *, rows: Literal[False] = False) -> float: ...

    @overload
    def loglik(self, data: object, *, rows: Literal[True]) -> pd.Series[float]: ...

    def loglik(self, data: object, *, rows: bool = False) -> float | pd.Series[float]:
        """The log-likelihood of rows, whose density is the mean of that of the networks.

        Args:
            data: a pandas table, or one row as a dict or Series.
            rows: whether to return the log density of each row.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> post = pb.arc_posterior(trial, group="clinic")
            >>> single = pb.learn(trial, group="clinic").loglik(trial)
            >>> abs(post.averaged(100).loglik(trial) / single - 1) < 0.01
            True
        """
        check_arguments(rows=(rows, FLAG))
        frame = _frame(data)
        each = self._densities(frame)
        top = each.max(axis=0)
        found = top + np.log(np.exp(each - top).sum(axis=0))
        return pd.Series(found, index=frame.index, name="loglik") if rows else float(found.sum())

    def _densities(self, frame: pd.DataFrame) -> Floats:
        """Log densities of rows times weights, (K, rows)."""
        weight = np.log(self.weights)[:, None].astype(np.float64)
        if not set(self.networks[0].dag.nodes).intersection(frame.columns):
            return weight + np.zeros((1, len(frame)))
        each = [net.loglik(frame, rows=True).to_numpy() for net in self.networks]
        return np.asarray(np.array(each) + weight, dtype=np.float64)

    def _shares(self, frame: pd.DataFrame) -> Floats:
        """The weight of each network in each row, (K, rows)."""
        each = self._densities(frame)
        share = np.exp(each - each.max(axis=0))
        return np.asarray(share / share.sum(axis=0))

    def __repr__(self) -> str:
        nodes = counted(len(self.networks[0].dag.nodes), "node")
        return f"AveragedNetwork: {counted(len(self.networks), 'network')} of {nodes}"


def _frame(data: object) -> pd.DataFrame:
    if isinstance(data, Mapping):
        return pd.DataFrame([dict(data)])
    if isinstance(data, pd.Series):
        return data.to_frame().T.infer_objects()
    if not isinstance(data, pd.DataFrame):
        raise DataError(
            f"expected a pandas table, or one row as a dict or Series, got {type(data).__name__}"
        )
    return data


def _mean_probabilities(tables: list[pd.DataFrame], share: Floats) -> pd.DataFrame:
    """Of levels; the last column is the most probable one."""
    levels: list[Any] = [c for c in tables[0].columns if tables[0][c].dtype.kind == "f"]
    made = tables[0].copy()
    own = np.array([table[levels].to_numpy(dtype=float) for table in tables])
    found = np.einsum("kr,krl->rl", share, own)
    made[levels] = found
    for column in made.columns.difference(levels):
        made[column] = np.array(levels, dtype=object)[found.argmax(axis=1)]
    return made


def _mixtures(like: pd.DataFrame, own: Floats, share: Floats, interval: float) -> pd.DataFrame:
    """Mean, SD and interval of mixtures of the networks' predictions, (K, rows, 4)."""
    weights = share.T
    mean, sd, low, high = own.transpose(2, 1, 0)
    reach = (high - low) / 2 / NormalDist().inv_cdf((1 + interval) / 2)
    normal = Mixture(weights, (low + high) / 2, reach**2, np.full(mean.shape, np.inf))
    made, ends = like.copy(), normal.interval((1 - interval) / 2)
    made[list(NUMBERS)] = np.column_stack([*moments(weights, mean, sd**2), *ends])
    return made
