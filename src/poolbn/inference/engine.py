"""What a network is asked, whatever its nodes are: `Engine`.

Rows `x` are (n, N), NaN where a cell is missing or not to be used, and `codes` their known data
sets or -1, (n,); targets are positions of nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Positions
from poolbn.errors import DataError, Option
from poolbn.inference.locals import Local
from poolbn.inference.marginals import Marginal
from poolbn.inference.posterior import Posterior
from poolbn.moments.data import Data
from poolbn.nodes.predicting import COUNT, Floats, Integers


@dataclass(frozen=True)
class Effort:
    """How to find answers."""

    method: str = "auto"  # "auto", "exact" to refuse what is not, or "lw" for likelihood weighting
    particles: int = 1000  # draws for each row and data set, where rows are drawn
    seed: int = 0  # of the draws


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows, and what of them is asked."""

    x: Floats
    codes: Integers
    targets: Sequence[int] = ()
    effort: Effort = Effort()
    densities: bool = False  # whether log densities are: then an impossible row is no error


@dataclass(frozen=True, eq=False)
class Answer(ABC):
    """What the cells of some rows say."""

    rows: Integers  # which, (r,)
    weights: Floats  # P(data set | row), of all data sets or the known one, (r, F) or (r, 1)
    ess: Floats  # effective sample sizes; inf where nothing was drawn, (r,)

    @abstractmethod
    def marginal(self, target: int) -> Marginal:
        """The distribution of a target in these rows."""


class Predicted(NamedTuple):
    """The distribution of targets in n rows."""

    # For each target probabilities of its levels (n, K) if it is discrete, else mean, standard
    # deviation, and bounds of an interval with equal tails, (n, 4).
    columns: tuple[Floats, ...]
    ess: Floats  # effective sample sizes, (n,)


class Drawn(NamedTuple):
    """K rows: data sets (K,), values (K, N), and weights with sum 1, (K,)."""

    sets: Integers
    values: Floats
    weights: Floats


class Judged(NamedTuple):
    """What a network says of rows that it was not learned from."""

    log_density: Floats  # in the data set of each, (r,)
    data_set: Integers | None  # the most probable one of each, (r,); None if that was not asked


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows as the network of other rows knows them."""

    # The cells, (n, N); NaN where missing. Where a level is not known there is the most common one.
    x: Floats
    strange: Flags  # the cells whose level is not known, (n, N)

    @property
    def whole(self) -> Positions:
        """The rows without missing cells."""
        return np.flatnonzero(~np.isnan(self.x).any(axis=1))

    def some(self, rows: Positions) -> HeldOut:
        """Some of the rows."""
        return HeldOut(self.x[rows], self.strange[rows])


def held_out(train: Data, categories: tuple[tuple[str, ...], ...], values: Floats) -> HeldOut:
    """Rows, (n, N), coded by these levels, in the codes of a table that may lack some of them."""
    x, strange = values.copy(), np.zeros(values.shape, dtype=bool)
    for i, (own, every) in enumerate(zip(train.categories, categories, strict=True)):
        if own != every:
            code = {level: k for k, level in enumerate(own)}
            known = np.array([code.get(level, -1) for level in every])
            there = ~np.isnan(values[:, i])
            x[there, i] = known[values[there, i].astype(np.int64)]
            strange[:, i] = x[:, i] < 0
            (codes,) = train.cases([train.names[i]], incomplete=True).columns
            x[strange[:, i], i] = np.bincount(codes[~np.isnan(codes)].astype(np.int64)).argmax()
    return HeldOut(x, strange)


@dataclass(frozen=True, eq=False)
class Engine(ABC):
    """A network as inference works on it.

    All answers raise `DataError` for a row that cannot come from any data set, and for a data set
    without a predictive distribution.
    """

    names: tuple[str, ...]  # the N nodes
    levels: tuple[Hashable, ...]  # the F data sets
    prior: Floats  # P(F), (F,)
    inputs: Collection[int]  # nodes without a distribution, whose density does not count
    refused: Mapping[int, str]  # the data sets that have no predictive distribution, and why
    nodes: tuple[Local, ...]  # given their parents
    order: tuple[int, ...]  # their positions, parents first

    def check(self, codes: Integers) -> None:
        """Raise where a data set that is asked for has no distribution."""
        asked = set(self.refused)
        if (codes >= 0).all():
            asked &= set(codes.tolist())
        for j in sorted(asked):
            raise DataError(
                f"{self.refused[j]}; learn with ",
                Option("pooling", "partial"),
                " or fewer parents, or ask with ",
                Option("plugin", True),
            )

    def log_prior(self) -> Floats:
        """Of data sets, -inf for those without rows, (F,)."""
        with np.errstate(divide="ignore"):
            return np.log(self.prior)

    @abstractmethod
    def answers(self, of: Asked, work: Callable[[Answer], None]) -> None:
        """Do some work on what the cells of all rows say, some rows at a time, in threads."""

    def categories_of(self, target: int) -> int:
        """How many levels a node has; not above 0 for a number."""
        return self.nodes[target].levels

    def predictions(
        self, x: Floats, codes: Integers, targets: Sequence[int], interval: float, effort: Effort
    ) -> Predicted:
        """Probabilities of levels, or moments and intervals; cells of targets are evidence."""
        tail = (1 - interval) / 2
        levels = [self.categories_of(t) for t in targets]
        out = tuple(np.empty((len(x), K if K > 0 else 4)) for K in levels)
        ess = np.empty(len(x))

        def work(answer: Answer) -> None:
            ess[answer.rows] = answer.ess
            for columns, t, K in zip(out, targets, levels, strict=True):
                found = answer.marginal(t)
                numbers = (*found.moments(), *found.interval(tail)) if K <= 0 else ()
                columns[answer.rows] = np.column_stack(numbers) if numbers else found.weights

        self.answers(Asked(x, codes, targets, effort), work)
        return Predicted(out, ess)

    def data_sets(self, x: Floats, effort: Effort) -> tuple[Floats, Floats]:
        """P(data set | row), (n, F), and effective sample sizes, (n,)."""
        out, ess = np.empty((len(x), len(self.levels))), np.empty(len(x))

        def work(answer: Answer) -> None:
            out[answer.rows], ess[answer.rows] = answer.weights, answer.ess

        self.answers(Asked(x, np.full(len(x), -1), effort=effort), work)
        return out, ess

    @abstractmethod
    def log_densities(self, x: Floats, codes: Integers) -> Floats:
        """The log density of each row, in its data set or where unknown over all, (n,)."""

    def filled(self, x: Floats, codes: Integers, targets: Sequence[int]) -> Floats:
        """Rows with the missing cells of targets filled by what is to be expected there.

        Of a discrete node that is the most probable level, of a count the median.
        """
        out = x.copy()

        def work(answer: Answer) -> None:
            for t in targets:
                missing = np.isnan(x[answer.rows, t])
                if not missing.any():
                    continue
                found, levels = answer.marginal(t), self.categories_of(t)
                if levels > 0:
                    expected = found.weights.argmax(axis=1).astype(np.float64)
                else:
                    expected = found.quantile(0.5) if levels == COUNT else found.moments()[0]
                out[answer.rows[missing], t] = expected[missing]

        self.answers(Asked(x, codes, targets), work)
        return out

    @abstractmethod
    def posterior(self, evidence: Floats, code: int, targets: Sequence[int]) -> Posterior:
        """The distribution of targets given one row, (N,)."""

    def conditional_rows(self, evidence: Floats, code: int, effort: Effort) -> Drawn:
        """Rows drawn given one, by likelihood weighting."""
        K = effort.particles
        x, rng = np.tile(evidence, (K, 1)), np.random.default_rng(effort.seed)
        sets, values, log = self.drawn(x, np.full(K, code), rng)
        if not np.isfinite(log.max()):
            raise self.impossible(evidence, code, 0)
        weights = np.exp(log - log.max())
        return Drawn(sets, values, weights / weights.sum())

    def sample(self, n: int, code: int, seed: int) -> tuple[Integers, Floats]:
        """Rows of the network: data sets (n,), by P(F) where the code is -1, and values (n, N)."""
        nothing = np.full((n, len(self.names)), np.nan)
        return self.drawn(nothing, np.full(n, code), np.random.default_rng(seed))[:2]

    def drawn(
        self, x: Floats, codes: Integers, rng: np.random.Generator
    ) -> tuple[Integers, Floats, Floats]:
        """Rows in which missing cells are drawn, parents first; unknown data sets by P(F).

        Each row has parameters of its own. They are used once, so nodes are drawn from their
        predictive distributions. Data sets (n,), values (n, N), and log densities of the other
        cells given what is above them, (n,).
        """
        if len(codes):
            self.check(codes)
        sets, values, log_weights = codes.copy(), x.T.copy(), np.zeros(len(x))
        unknown = codes < 0
        sets[unknown] = rng.choice(len(self.levels), size=int(unknown.sum()), p=self.prior)
        for i in self.order:
            node, missing = self.nodes[i], np.isnan(x[:, i])
            if missing.any():
                above = node.named(values[p, missing] for p in node.parents)
                values[i, missing] = node.of.draw(above, sets[missing], rng)
            if i not in self.inputs and not missing.all():  # inputs say nothing themselves
                above = node.named(values[p, ~missing] for p in node.parents)
                own = node.of.log_density(values[i, ~missing], above, sets[~missing])
                log_weights[~missing] += own
        return sets, values.T, log_weights

    def shares(
        self, log: Floats, x: Floats, rows: Integers, codes: Integers | None = None
    ) -> Floats:
        """Weights with sum 1 along the second axis for rows of x, from their logarithms."""
        top = log.max(axis=1, keepdims=True)
        if not np.isfinite(top).all():
            row = int(rows[~np.isfinite(top[:, 0])].min())
            raise self.impossible(x[row], -1 if codes is None else int(codes[row]), row)
        weights: Floats = np.exp(log - top)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    @abstractmethod
    def impossible(self, row: Floats, code: int, position: int) -> DataError:
        """The error for a row, (N,), that no data set can have produced."""

    @abstractmethod
    def judged(self, rows: HeldOut, codes: Integers, n: Integers, *, guess: bool) -> Judged:
        """Densities of rows in their data sets, and perhaps which of these they come from.

        What has no probability counts as if half a row of a data set, which has n, had it.
        """

    @abstractmethod
    def squares(self, rows: HeldOut, codes: Integers, n: Integers) -> tuple[Floats, Floats]:
        """Squared errors of each node predicted from all others, summed over rows, (N,) each.

        Of a discrete node they are those of the indicators of all its levels. First with data sets
        known, then unknown; rows have no missing cells, and estimates are certain.
        """


def log_sum(log: Floats, axis: int) -> Floats:
    """The logarithm of the sum of what these are logarithms of; the axis stays, with length 1."""
    top = log.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(log - top).sum(axis=axis, keepdims=True)))
