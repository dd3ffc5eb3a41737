"""What a network is asked, whatever its nodes are: `Engine`, and which one a network has."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.graph.dag import Dag
from poolbn.inference import general, heldout, linear
from poolbn.inference.assembled import assemble, joint_distribution
from poolbn.inference.general import Answer, answers, mixed_network, sample
from poolbn.inference.heldout import HeldOut
from poolbn.inference.linear import Model
from poolbn.inference.marginals import Mixture
from poolbn.inference.parts import Mixed
from poolbn.inference.plans import Effort
from poolbn.inference.posterior import Posterior
from poolbn.inference.uncertain import plugged_in, with_uncertainty
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.predicting import COUNT, Floats, Integers

_ROWS = 10_000  # that are drawn for a posterior, where it takes draws


class Predicted(NamedTuple):
    """The distribution of targets in n rows."""

    # For each target probabilities of its levels (n, K) if it is discrete, else mean, standard
    # deviation, and bounds of an interval with equal tails, (n, 4).
    columns: tuple[Floats, ...]
    ess: Floats  # effective sample sizes; inf where nothing was drawn, (n,)


class Drawn(NamedTuple):
    """K rows: data sets (K,), values (K, N), and weights with sum 1, (K,)."""

    sets: Integers
    values: Floats
    weights: Floats


class Judged(NamedTuple):
    """What a network says of rows that it was not learned from."""

    log_density: Floats  # in the data set of each, (r,)
    data_set: Integers | None  # the most probable one of each, (r,); None if that was not asked


class Engine(Protocol):
    """What finds answers.

    Rows `x` are (n, N), NaN where a cell is missing or not to be used, and `codes` their known data
    sets or -1, (n,); targets are positions of nodes. All raise `DataError` for a row that cannot
    come from any data set, and for a data set without a predictive distribution.
    """

    def predictions(
        self, x: Floats, codes: Integers, targets: Sequence[int], interval: float, effort: Effort
    ) -> Predicted:
        """The distributions of targets in each row."""

    def data_sets(self, x: Floats, effort: Effort) -> tuple[Floats, Floats]:
        """P(data set | row), (n, F), and effective sample sizes, (n,)."""

    def log_densities(self, x: Floats, codes: Integers) -> Floats:
        """The log density of each row, in its data set or where unknown over all, (n,)."""

    def filled(self, x: Floats, codes: Integers, wanted: NDArray[np.bool_]) -> Floats:
        """Rows with the missing cells of some nodes, (N,), filled by what is to be expected there.

        Of a discrete node that is the most probable level, of a count the median.
        """

    def posterior(self, evidence: Floats, code: int, targets: Sequence[int]) -> Posterior:
        """The distribution of targets given one row, (N,)."""

    def conditional_rows(self, evidence: Floats, code: int, effort: Effort) -> Drawn:
        """Rows drawn given one."""

    def sample(self, n: int, code: int, seed: int) -> tuple[Integers, Floats]:
        """Rows of the network: data sets (n,) and values (n, N)."""

    def judged(self, rows: HeldOut, codes: Integers, n: Integers, *, guess: bool) -> Judged:
        """Densities of rows in their data sets, and perhaps which of these they come from.

        What has no probability counts as if half a row of a data set, which has n, had it.
        """

    def squares(self, rows: HeldOut, codes: Integers, n: Integers) -> tuple[Floats, Floats]:
        """Squared errors of each node given all others, summed over rows, (N,) each.

        With data sets known, then unknown; rows have no missing cells, and estimates are certain.
        """


@dataclass(frozen=True, eq=False)
class Linear:
    """All nodes are linear: exact algebra."""

    model: Model  # the network

    def predictions(
        self, x: Floats, codes: Integers, targets: Sequence[int], interval: float, effort: Effort
    ) -> Predicted:
        """Normal and t distributions, or mixtures of them."""
        given, ess = (self.model, x, codes, np.array(targets), interval), np.full(len(x), math.inf)
        if effort.method == "lw":
            found, ess = linear.weighted_predictions(
                *given, particles=effort.particles, seed=effort.seed
            )
        else:
            found = linear.predictions(*given)
        return Predicted(tuple(np.moveaxis(found, 0, 2).swapaxes(0, 1)), ess)

    def data_sets(self, x: Floats, effort: Effort) -> tuple[Floats, Floats]:
        """P(data set | row), and effective sample sizes."""
        if effort.method != "lw":
            return linear.data_set_probabilities(self.model, x), np.full(len(x), math.inf)
        return linear.weighted_probabilities(
            self.model, x, particles=effort.particles, seed=effort.seed
        )

    def log_densities(self, x: Floats, codes: Integers) -> Floats:
        """The log density of each row."""
        return linear.log_densities(self.model, x, codes)

    def filled(self, x: Floats, codes: Integers, wanted: NDArray[np.bool_]) -> Floats:
        """Rows with missing cells filled."""
        expected = linear.expectations(self.model, x, codes)
        return np.where(np.isnan(x) & wanted, expected, x)

    def posterior(self, evidence: Floats, code: int, targets: Sequence[int]) -> Posterior:
        """The distribution of targets given one row."""
        found = linear.one_row(self.model, evidence, code, np.array(targets))
        sds = np.sqrt(np.diagonal(found.covs, axis1=1, axis2=2))
        each = zip(found.means.T, sds.T, found.df.T, strict=True)
        joint = self.model.joint
        return Posterior(
            targets=tuple(joint.names[t] for t in targets),
            levels=joint.levels,
            marginals=tuple(Mixture(found.weights[None], *(of[None] for of in o)) for o in each),
            categories={},
            **found._asdict(),
        )

    def conditional_rows(self, evidence: Floats, code: int, effort: Effort) -> Drawn:
        """Rows drawn given one."""
        drawn = linear.weighted_rows if effort.method == "lw" else linear.exact_rows
        return Drawn(*drawn(self.model, evidence, code, effort.particles, effort.seed))

    def sample(self, n: int, code: int, seed: int) -> tuple[Integers, Floats]:
        """Rows of the network."""
        return linear.sample_rows(self.model, n, code, seed)

    def judged(self, rows: HeldOut, codes: Integers, n: Integers, *, guess: bool) -> Judged:
        """Densities of rows, and which data sets they come from."""
        log = self.log_densities(rows.x, codes)
        return Judged(log, self.data_sets(rows.x, Effort())[0].argmax(axis=1) if guess else None)

    def squares(self, rows: HeldOut, codes: Integers, n: Integers) -> tuple[Floats, Floats]:
        """Squared errors of each node given all others."""
        model = self.model
        return heldout.linear_squares(model.network, model.joint.prior, rows, codes)


@dataclass(frozen=True, eq=False)
class General:
    """Nodes of any kinds."""

    mixed: Mixed  # the network
    categories: Mapping[str, Sequence[str]]  # the levels of its nodes; none for numbers

    def predictions(
        self, x: Floats, codes: Integers, targets: Sequence[int], interval: float, effort: Effort
    ) -> Predicted:
        """Probabilities of levels, or moments and intervals."""
        mixed, n, tail = self.mixed, len(x), (1 - interval) / 2
        widths = [max(mixed.nodes[t].levels, 0) or 4 for t in targets]
        out, ess = [np.empty((n, width)) for width in widths], np.empty(n)

        def work(answer: Answer) -> None:
            ess[answer.rows] = answer.ess
            for columns, t in zip(out, targets, strict=True):
                found = answer.marginal(mixed, t)
                if mixed.nodes[t].levels > 0:
                    columns[answer.rows] = found.weights
                else:
                    bounds = (found.quantile(p) for p in (tail, 1 - tail))
                    columns[answer.rows] = np.column_stack([*found.moments(), *bounds])

        answers(mixed, x, codes, targets, effort, work)
        return Predicted(tuple(out), ess)

    def data_sets(self, x: Floats, effort: Effort) -> tuple[Floats, Floats]:
        """P(data set | row), and effective sample sizes."""
        out, ess = np.ones((len(x), len(self.mixed.levels))), np.full(len(x), math.inf)

        def work(answer: Answer) -> None:
            out[answer.rows], ess[answer.rows] = answer.weights, answer.ess

        answers(self.mixed, x, np.full(len(x), -1), [], effort, work)
        return out, ess

    def log_densities(self, x: Floats, codes: Integers) -> Floats:
        """The log density of each row."""
        out = np.empty(len(x))
        with np.errstate(divide="ignore"):
            prior = np.log(self.mixed.prior)

        def work(answer: Answer) -> None:
            log = answer.log_z
            if log.shape[1] > 1:
                log = log + prior
            top = np.maximum(log.max(axis=1), -1e300)
            with np.errstate(divide="ignore"):
                out[answer.rows] = top + np.log(np.exp(log - top[:, None]).sum(axis=1))

        answers(self.mixed, x, codes, [], Effort(), work, densities=True)
        return out

    def filled(self, x: Floats, codes: Integers, wanted: NDArray[np.bool_]) -> Floats:
        """Rows with missing cells filled."""
        mixed, out = self.mixed, x.copy()
        targets = np.flatnonzero(wanted).tolist()

        def work(answer: Answer) -> None:
            for t in targets:
                if np.isnan(x[answer.rows[0], t]):
                    found, levels = answer.marginal(mixed, t), mixed.nodes[t].levels
                    if levels > 0:
                        filled = found.weights.argmax(axis=1).astype(np.float64)
                    else:
                        filled = found.quantile(0.5) if levels == COUNT else found.moments()[0]
                    out[answer.rows, t] = filled

        answers(mixed, x, codes, targets, Effort(), work)
        return out

    def posterior(self, evidence: Floats, code: int, targets: Sequence[int]) -> Posterior:
        """The distribution of targets given one row."""
        mixed, found = self.mixed, list[Answer]()
        effort = Effort(particles=_ROWS)
        answers(mixed, evidence[None], np.array([code]), targets, effort, found.append)
        (answer,) = found
        F, T = len(mixed.levels), len(targets)
        at = slice(None) if code < 0 else slice(code, code + 1)
        weights = np.zeros(F)
        weights[at] = answer.weights[0]
        means, df = np.full((F, T), np.nan), np.full((F, T), np.nan)
        covs = np.full((F, T, T), np.nan)
        for k, t in enumerate(targets):
            if mixed.nodes[t].levels <= 0:
                own, simple = answer.by_set(mixed, t)
                means[at, k], sd = own.moments()
                covs[at, k, k] = sd**2
                if simple and isinstance(own, Mixture):
                    df[at, k] = own.df[:, 0]
        names = [mixed.names[t] for t in targets]
        return Posterior(
            targets=tuple(names),
            levels=mixed.levels,
            weights=weights,
            marginals=tuple(answer.marginal(mixed, t) for t in targets),
            categories={name: of for name in names if (of := self.categories[name])},
            means=means,
            covs=covs,
            df=df,
            method=answer.method,
            ess=float(answer.ess[0]),
        )

    def conditional_rows(self, evidence: Floats, code: int, effort: Effort) -> Drawn:
        """Rows drawn given one, by likelihood weighting."""
        x, codes = np.tile(evidence, (effort.particles, 1)), np.full(effort.particles, code)
        sets, values, log = sample(self.mixed, x, codes, np.random.default_rng(effort.seed))
        if not np.isfinite(log.max()):
            raise general.impossible(self.mixed, evidence, code, 0)
        weights = np.exp(log - log.max())
        return Drawn(sets, values, weights / weights.sum())

    def sample(self, n: int, code: int, seed: int) -> tuple[Integers, Floats]:
        """Rows of the network."""
        nothing, rng = np.full((n, len(self.mixed.names)), np.nan), np.random.default_rng(seed)
        return sample(self.mixed, nothing, np.full(n, code), rng)[:2]

    def judged(self, rows: HeldOut, codes: Integers, n: Integers, *, guess: bool) -> Judged:
        """Densities of rows, and which data sets they come from."""
        log = heldout.row_logs(self.mixed, rows, n)
        with np.errstate(divide="ignore"):
            most = (log + np.log(self.mixed.prior)).argmax(axis=1) if guess else None
        return Judged(log[np.arange(len(log)), codes], most)

    def squares(self, rows: HeldOut, codes: Integers, n: Integers) -> tuple[Floats, Floats]:
        """Squared errors of each node given all others."""
        return heldout.squares(self.mixed, rows, heldout.node_logs(self.mixed, rows, n), codes)


def engine_of(
    dag: Dag,
    fits: Mapping[str, LocalFit],
    n: NDArray[np.int64],
    inputs: Sequence[str],
    adapted: Sequence[Hashable],
    *,
    plugin: bool,
) -> Engine:
    """The engine of a network: the one of linear networks where all its nodes are linear.

    `n` are rows of the data sets, (F,). `plugin` takes estimates for certain, but for the
    coefficients of data sets that are adapted.
    """
    own = {node: fits[node].gaussian for node in dag.nodes}
    linear_fits = {node: fit for node, fit in own.items() if fit is not None}
    if len(linear_fits) == len(own):
        network = assemble(dag, linear_fits)
        each = list(linear_fits.values())
        sure = plugged_in(network, each, adapted) if plugin else with_uncertainty(network, each)
        at = tuple(dag.nodes.index(node) for node in inputs)
        return Linear(Model(network, joint_distribution(network, n), sure, at))
    levels = fits[dag.nodes[0]].levels
    certain = [level for level in levels if plugin and level not in adapted]
    mixed = mixed_network(dag, fits, n, inputs, certain)
    return General(mixed, {node: fit.categories for node, fit in fits.items()})
