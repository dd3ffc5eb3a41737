"""Scores of tables with columns of all kinds: each node by a model of its kind, on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import Option, OptionError
from poolbn.moments.data import Data
from poolbn.moments.indicators import spans
from poolbn.moments.standardised import Family
from poolbn.nodes import kinds
from poolbn.nodes.auto import Candidate
from poolbn.nodes.gaussianfit import of_nodes
from poolbn.nodes.kinds import Names
from poolbn.nodes.localfit import LocalFit
from poolbn.scoring.likelihoods import PenalisedLikelihood, total_of


def not_for_tables(score: str) -> OptionError:
    """A score that columns of some kinds do not have."""
    return OptionError(
        Option("score", score), " is for continuous columns; use 'bic', 'aic' or 'loglik'"
    )


def expanded(table: Data, families: Iterable[Family]) -> list[Family]:
    """Families of continuous nodes in the columns of numbers that a table is made of."""
    columns = spans(table.categories)
    return [
        (columns[child][0], tuple(k for p in parents for k in columns[p]))
        for child, parents in families
    ]


@dataclass(frozen=True, eq=False)
class TableScores:
    """The scores of one table under one pooling.

    A discrete parent is a block of indicators: it comes and goes whole.

    Attributes:
        table: the rows; families are positions in its columns.
        gaussian: scores of its columns of numbers.
        hows: the poolings that nodes which are not continuous may have.
    """

    table: Data
    gaussian: PenalisedLikelihood
    hows: tuple[Candidate, ...]

    def _named(self, family: Family) -> Names:
        """Parents in the order of their names: the order of columns does not matter to a bit."""
        child, parents = family
        names = self.table.names
        return names[child], sorted(names[p] for p in parents)

    def _split(self, families: Sequence[Family]) -> tuple[list[int], list[int]]:
        """Which families are of continuous nodes, and which are not."""
        own = [self.table.kinds[child] == "continuous" for child, _ in families]
        return np.flatnonzero(own).tolist(), np.flatnonzero(~np.array(own)).tolist()

    def scores(self, families: Sequence[Family], *, final: bool = False) -> NDArray[np.float64]:
        """Of each family."""
        values = np.empty(len(families))
        gaussian, others = self._split(families)
        if gaussian:
            own = expanded(self.table, [families[m] for m in gaussian])
            values[gaussian] = self.gaussian.scores(own, final=final)
        if others:
            named, each = [self._named(families[m]) for m in others], self.gaussian.penalty.each
            values[others] = kinds.scores(self.table, named, self.hows, each, final=final)
        return values

    def bounds(self, families: Sequence[Family]) -> NDArray[np.float64]:
        """Upper bounds of the scores that cost less; NaN where there are none."""
        values = np.full(len(families), np.nan)
        gaussian, others = self._split(families)
        if gaussian:
            found = self.gaussian.bounds(expanded(self.table, [families[m] for m in gaussian]))
            values[gaussian] = np.nan if found is None else found
        if others:
            named, each = [self._named(families[m]) for m in others], self.gaussian.penalty.each
            values[others] = kinds.bounds(self.table, named, self.hows, each)
        return values

    def cost(self) -> float:
        """About the regressions that one score costs; those of rows cost most."""
        return self.gaussian.cost() + self.table.n_rows

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        child, parents = family
        names, each = self.table.names, self.gaussian.penalty.each
        if self.table.kinds[child] == "continuous":
            given = [self.table.categories[p] for p in parents]
            made = self.gaussian.fit(*expanded(self.table, [family]))
            return of_nodes(made, [names[p] for p in parents], given)
        return kinds.fit(self.table, names[child], [names[p] for p in parents], self.hows, each)

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""
        return total_of(fits, self.gaussian.penalty.each)
