"""What scores and searches ask of a model of one node, whatever kind of node it is for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import MessagePart
from poolbn.moments.standardised import Family, StandardisedStats, parent_counts
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import Counts, Pooling

# How discrete parents of a continuous node count: their levels add something, or each configuration
# of them has a regression of its own, or whichever has the better score.
Continuous = Literal["additive", "conditional", "auto"]


class Penalty(NamedTuple):
    """What a score takes from log-likelihoods.

    Attributes:
        each: the penalty of one parameter of each kind of `Counts`, (5,).
        rows: with a correction for few rows, those that tell of parameters of each kind, (5,); else
            None. With m rows and q coefficients, a parameter raises a likelihood by m / (m - q - 2)
            where many rows make it 1 (AICc, Hurvich and Tsai, 1989): the difference is taken too.
            And fixed effects follow data sets with little noise, see `Likelihoods.uneven`.
        inside: whether levels of data sets are free, where pooling is partial, so that parents
            explain what happens inside data sets.
        of_part: the penalty of what a part of the rows informs; None for the same.
    """

    each: NDArray[np.float64]
    rows: NDArray[np.float64] | None = None
    inside: bool = False
    of_part: Callable[[StandardisedStats], Penalty] | None = None

    def within(self, part: StandardisedStats) -> Penalty:
        """Of parameters that a part of the rows informs."""
        return self if self.of_part is None else self.of_part(part)

    def scaled(self, times: float) -> Penalty:
        """Parameters cost so many times as much."""
        of_part = self.of_part
        part = None if of_part is None else lambda rows: of_part(rows).scaled(times)
        return self._replace(each=self.each * times, of_part=part)

    def charges(
        self, counts: NDArray[np.int64], coefficients: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """What is taken from families with so many parameters, (M, 5), and coefficients, (M,)."""
        if self.rows is None:
            return np.asarray((counts * self.each).sum(axis=1))
        few = self.rows / np.maximum(self.rows - coefficients[:, None] - 2.0, 1.0) - 1
        return np.asarray((counts * (self.each + few)).sum(axis=1))


@cache
def same_for_all(penalty: float) -> Penalty:
    """One penalty for parameters of all kinds."""
    each = np.full(len(Counts._fields), penalty)
    each.flags.writeable = False
    return Penalty(each)


class Likelihoods(NamedTuple):
    """Log-likelihoods of M families, or bounds of them, and their numbers of parameters.

    Attributes:
        loglik: -inf where there is none, (M,).
        counts: parameters of each kind of `Counts`, (M, 5).
        uneven: half the logarithm of the mean residual variance times the mean precision, (M,): 0
            where data sets have the same, or where the penalty does not ask.
    """

    loglik: NDArray[np.float64]
    counts: NDArray[np.int64]
    uneven: NDArray[np.float64]

    def penalised(self, penalty: Penalty, families: Sequence[Family]) -> NDArray[np.float64]:
        """Log-likelihood minus penalty, (M,)."""
        q = parent_counts(families) + 1
        score = self.loglik - penalty.charges(self.counts, q)
        return np.asarray(score if penalty.rows is None else score - q * self.uneven)


class NeighbourScores(NamedTuple):
    """Scores of M nodes with each change of their parents by a column, or upper bounds of them.

    Attributes:
        values: with a column added, or removed if it is a parent; as they are in the nodes' own
            columns; -inf where not wanted, (M, N).
        exact: whether they are scores, (M, N).
    """

    values: NDArray[np.float64]
    exact: NDArray[np.bool_]


def all_exact(values: NDArray[np.float64] | None) -> NeighbourScores | None:
    """Scores that are all known, if there are any."""
    return None if values is None else NeighbourScores(values, np.ones(values.shape, dtype=bool))


# The log-likelihood of each node but for half a unit for each parameter; -inf where it has none.
Worth = NDArray[np.float64]


class Choice(Pooling, Protocol):
    """A model of one node given its parents, or several to choose from."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The modules of `poolbn.kernels` that fit it."""

    def admits(self, data: StandardisedStats) -> Iterable[MessagePart] | None:
        """None, or why the data cannot be used: a text, or the parts of a message."""

    def first(self, levels: Sequence[Hashable]) -> NodeModel:
        """The model of these data sets that a network is learned under, at first."""

    def chosen(self, levels: Sequence[Hashable], worth: Callable[[NodeModel], Worth]) -> NodeModel:
        """The model that the data of these data sets ask for, by what models are worth."""

    def fit(self, data: StandardisedStats, family: Family, penalty: Penalty) -> GaussianFit:
        """The final fit of one node; the penalty matters to a choice."""


class NodeModel(Choice, Protocol):
    """A model of one node given its parents."""

    @property
    def complete(self) -> bool:
        """Whether data sets have the same parameters."""

    @property
    def partial(self) -> bool:
        """Whether parameters of data sets vary around common ones."""

    @property
    def how(self) -> NodeModel:
        """The pooling that a search has, where there are several."""

    @property
    def continuous(self) -> Continuous:
        """How discrete parents of continuous nodes count."""

    def view(self, data: StandardisedStats, child: int) -> StandardisedStats | None:
        """The data sets that count for a child; None where it has one value in each."""

    def logliks(
        self,
        data: StandardisedStats,
        families: Sequence[Family],
        penalty: Penalty,
        *,
        final: bool = False,
    ) -> Likelihoods:
        """Maximised log-likelihoods, with the effort that a search needs, or a final fit."""

    def bounds(
        self, data: StandardisedStats, families: Sequence[Family], penalty: Penalty
    ) -> Likelihoods | None:
        """Upper bounds that cost less, or None if there are none."""

    def cost(self, data_sets: int) -> float:
        """About the regressions that one score costs."""
