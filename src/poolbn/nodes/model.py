"""What scores and searches ask of a model of one node, whatever kind of node it is for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import MessagePart
from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes.localfit import Counts, GaussianFit, Pooling

# The penalty of one parameter of each kind of `Counts`, (3,).
Penalty = NDArray[np.float64]


def same_for_all(penalty: float) -> Penalty:
    """One penalty for parameters of all kinds."""
    return np.full(len(Counts._fields), penalty)


class Likelihoods(NamedTuple):
    """Log-likelihoods of M families, or bounds of them, and their numbers of parameters.

    Attributes:
        loglik: -inf where there is none, (M,).
        counts: parameters of each kind of `Counts`, (M, 3).
    """

    loglik: NDArray[np.float64]
    counts: NDArray[np.int64]

    def penalised(self, penalty: Penalty) -> NDArray[np.float64]:
        """Log-likelihood minus penalty, (M,)."""
        return np.asarray(self.loglik - (self.counts * penalty).sum(axis=1))


class Choice(Pooling, Protocol):
    """A model of one node given its parents, or several to choose from."""

    def admits(self, data: StandardisedStats) -> Iterable[MessagePart] | None:
        """None, or why the data cannot be used: a text, or the parts of a message."""

    def first(self, levels: Sequence[Hashable]) -> NodeModel:
        """The model of these data sets that a network is learned under, at first."""

    def chosen(self, data: StandardisedStats, families: Sequence[Family]) -> NodeModel:
        """The model that the data ask for, with these nodes and parents."""

    def fit(self, data: StandardisedStats, family: Family, penalty: Penalty) -> GaussianFit:
        """The final fit of one node; the penalty matters to a choice."""


class NodeModel(Choice, Protocol):
    """A model of one node given its parents."""

    @property
    def complete(self) -> bool:
        """Whether data sets have the same parameters."""

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
