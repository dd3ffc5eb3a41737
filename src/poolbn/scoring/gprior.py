"""How probable rows are with the parents of a child against without: the g-prior."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import Option
from poolbn.moments.cases import check_no_units
from poolbn.moments.data import Data
from poolbn.moments.standardised import Family, StandardisedStats, expanded, standardise
from poolbn.nodes import grouplevel, kinds, linear
from poolbn.nodes.choosing import check_admits
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import NeighbourScores, NodeModel, all_exact, same_for_all
from poolbn.scoring.families import NodeScores, RowNodes, family_of
from poolbn.scoring.sparsity import sparsity
from poolbn.tables.kinds import is_normal

Floats = NDArray[np.float64]

_TOLD = 0.25  # of a row that a row of a discrete column or a count tells, see `GPrior`


@dataclass(frozen=True)
class GPrior:
    """Log Bayes factors of families against no parents, with unit information priors.

    In each data set (with complete pooling in all rows together) slopes have Zellner's prior
    N(0, g sigma^2 (X'X)^-1) with g = n, the information of one row, and the intercept and log sigma
    flat ones (Liang and others, 2008):

        log BF = (n - 1 - r) / 2 log(1 + g) - (n - 1) / 2 log(1 + g (1 - R^2)),

    r the rank of the parents. A data set in which the child is constant, or that has no more rows
    than coefficients, says nothing. From it goes what `sparsity` takes.

    Discrete children and counts have the Bayes factor of a likelihood ratio test: a regression, or
    a table, gains z / 2 on d degrees of freedom (Held, Sabanes Bove and Gravestock, 2015):

        log BF = g / (1 + g) z / 2 - d / 2 log(1 + g).

    Here g = n / 4, as a row of a binary column tells a quarter of what a normal one with variance
    one does, at most. With g = n it would be BIC in each data set, which is far too careful: in
    7,200 simulated pairs of columns in 2 to 15 data sets, of which half are related, it has the
    wrong sign in 36%, with g = n / 4 in 25%. Jeffreys' prior on probabilities has it in 23%.

    Nodes of a registered kind have BIC's difference from no parents. Nothing is pooled between data
    sets: with few of them there is little to learn a distribution between them from. Final fits are
    those of the pooling.
    """

    @property
    def name(self) -> str:
        """As options have it."""
        return "gprior"

    def first(self, model: NodeModel) -> None:
        """From the empty graph."""

    def on(self, data: Data, model: NodeModel) -> GPriorScores:
        """The scores of some data.

        Raises:
            DataError: the model cannot be fitted to the data.
        """
        check_no_units(data, "gprior", "use ", Option("score", "bic-h"))
        numbers = standardise(data.stats())
        check_admits(model, numbers)
        fits = NodeScores(data, model, same_for_all(math.log(numbers.rows) / 2))
        return GPriorScores(data, numbers, fits)


@dataclass(frozen=True, eq=False)
class GPriorScores:
    """The scores of some data.

    Attributes:
        data: families are positions in its columns.
        numbers: the same as columns of numbers.
        fits: what final fits are from.
    """

    data: Data
    numbers: StandardisedStats
    fits: NodeScores

    @property
    def _separate(self) -> bool:
        return not self.fits.model.complete

    @cached_property
    def _plain(self) -> bool:
        """Whether all nodes are continuous, and each is one column of numbers."""
        return all(map(is_normal, self.data.kinds))

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Of each family."""
        if not families:
            return np.zeros(0)
        own = np.array([is_normal(self.data.kinds[child]) for child, _ in families])
        values = np.zeros(len(families))
        rows = np.array([isinstance(self.fits.of(child), RowNodes) for child, _ in families])
        of_all = (own, self._of_numbers), (rows, self._of_rows), (~own & ~rows, self._by_bic)
        for at, compute in of_all:
            some = [families[m] for m in np.flatnonzero(at).tolist()]
            if some:
                values[at] = compute(some)
        weight = np.ones(len(families))
        if self.data.imputed and self.data.has_rows:  # drawn cells bring no information
            weight = np.array([self.data.share(*family) for family in families])
        sizes = [len(parents) for _, parents in families]
        return np.asarray(weight * values - sparsity(len(self.data.names), sizes))

    def _of_numbers(self, families: Sequence[Family]) -> Floats:
        """Of continuous children."""
        separate = self._separate
        columns = families if self._plain else expanded(self.data, families)
        found = linear.explained(self.numbers, columns, separate=separate)
        g, m = found.n, found.n - 1
        each = (m - found.rank) * np.log1p(g) - m * np.log1p(g * (1 - found.share))
        factors = each.sum(axis=1) / 2
        level = separate & self.numbers.group_level[[child for child, _ in columns]]
        if level.any():
            at = np.flatnonzero(level).tolist()
            factors[at] = self._of_values([columns[i] for i in at])
        return np.asarray(factors)

    def _of_values(self, families: Sequence[Family]) -> Floats:
        """Those of children that have one value in each data set, by BIC."""
        penalty = same_for_all(math.log(len(self.numbers.n)) / 2)
        alone = [(child, ()) for child, _ in families]
        with_parents, without = (
            grouplevel.likelihoods(self.numbers, some).penalised(penalty, some)
            for some in (families, alone)
        )
        return np.asarray(with_parents - without)

    def _of_rows(self, families: Sequence[Family]) -> Floats:
        """Of discrete children and counts."""
        names = self.data.names
        hows = kinds.poolings(self.fits.model, self.data)
        form = hows[0].discrete
        columns = expanded(self.data, families)
        ranks = linear.ranks(self.numbers, columns, separate=self._separate)
        found = [
            kinds.gains(self.data, names[child], sorted(names[p] for p in parents), form, rank)
            for (child, parents), rank in zip(families, ranks, strict=True)
        ]
        g = _TOLD * (self.data.n if self._separate else np.array([self.data.n_rows]))
        shrunk, log = g / (1 + g), np.log1p(g) / 2
        return np.array([max(float((shrunk * z - log * d).sum()) for z, d in of) for of in found])

    def _by_bic(self, families: Sequence[Family]) -> Floats:
        """Of nodes of a registered kind, of which no Bayes factor is known."""
        alone = [(child, ()) for child, _ in families]
        return self.fits.scores(families) - self.fits.scores(alone)

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """See `scoring.local.Scores`."""
        if not self._plain or (self._separate and self.numbers.group_level.any()):
            return None
        return all_exact(
            linear.neighbours(
                self.numbers, families, self._charges, separate=self._separate, what="bayes"
            )
        )

    @cached_property
    def _charges(self) -> Floats:
        N = len(self.data.names)
        return np.append(sparsity(N, range(N)), 0.0)

    def bounds(self, families: Sequence[Family]) -> Floats | None:
        """None: the scores themselves are cheap."""
        return None

    def cost(self) -> float:
        """One regression, or one for each data set; those of rows cost most."""
        each = float(len(self.data.n)) if self._separate else 1.0
        return each if self._plain else each + self.data.n_rows

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        return self.fits.fit(family)

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network."""
        families = [family_of(self.data, fit) for fit in fits]
        return math.fsum(self.scores(families))  # the same whatever the order of nodes
