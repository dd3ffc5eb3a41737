"""How probable rows are with the parents of a child against without: the g-prior."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.data import Data
from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes import grouplevel, linear
from poolbn.nodes.choosing import check_admits
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import Choice, NodeModel, Toggled, all_exact, same_for_all
from poolbn.scoring.kinds import not_for_tables
from poolbn.scoring.sparsity import sparsity


@dataclass(frozen=True)
class GPrior:
    """Log Bayes factors of families against no parents, with unit information priors.

    In each data set (with complete pooling in all rows together) slopes have Zellner's prior
    N(0, g sigma^2 (X'X)^-1) with g = n, the information of one row, and the intercept and log sigma
    flat ones (Liang and others, 2008):

        log BF = (n - 1 - r) / 2 log(1 + g) - (n - 1) / 2 log(1 + g (1 - R^2)),

    r the rank of the parents. A data set in which the child is constant, or that has no more rows
    than coefficients, says nothing. From it goes what `sparsity` takes.

    Nothing is pooled between data sets: with few of them there is little to learn a distribution
    between them from. Final fits are those of the pooling.
    """

    @property
    def name(self) -> str:
        """As options have it."""
        return "gprior"

    def first(self, model: NodeModel) -> None:
        """From the empty graph."""

    def on(self, data: StandardisedStats, model: NodeModel) -> GPriorScores:
        """The scores of one table.

        Raises:
            DataError: the model cannot be fitted to the data.
        """
        check_admits(model, data)
        return GPriorScores(data, model)

    def on_table(self, table: Data, pooling: Choice) -> GPriorScores:
        """Raises: it is for continuous columns."""
        raise not_for_tables(self.name)


@dataclass(frozen=True, eq=False)
class GPriorScores:
    """The scores of one table; `model` is for final fits."""

    data: StandardisedStats
    model: NodeModel

    def scores(self, families: Sequence[Family], *, final: bool = False) -> NDArray[np.float64]:
        """Of each family."""
        if not families:
            return np.zeros(0)
        separate = not self.model.complete
        found = linear.explained(self.data, families, separate=separate)
        g, m = found.n, found.n - 1
        each = (m - found.rank) * np.log1p(g) - m * np.log1p(g * (1 - found.share))
        factors = each.sum(axis=1) / 2
        level = separate & self.data.group_level[[child for child, _ in families]]
        if level.any():
            at = np.flatnonzero(level).tolist()
            factors[at] = self._of_values([families[i] for i in at])
        return np.asarray(factors - sparsity(len(self.data.names), [len(pa) for _, pa in families]))

    def _of_values(self, families: Sequence[Family]) -> NDArray[np.float64]:
        """Those of children that have one value in each data set, by BIC."""
        penalty = same_for_all(math.log(len(self.data.n)) / 2)
        alone = [(child, ()) for child, _ in families]
        with_parents, without = (
            grouplevel.likelihoods(self.data, some).penalised(penalty, some)
            for some in (families, alone)
        )
        return np.asarray(with_parents - without)

    def toggled(
        self, families: Sequence[Family], wanted: NDArray[np.bool_], *, uphill: bool
    ) -> Toggled | None:
        """See `scoring.local.Sweeping`."""
        separate = not self.model.complete
        if separate and self.data.group_level.any():
            return None
        return all_exact(
            linear.toggled(self.data, families, self._charges, separate=separate, what="bayes")
        )

    @cached_property
    def _charges(self) -> NDArray[np.float64]:
        N = len(self.data.names)
        return np.append(sparsity(N, range(N)), 0.0)

    def bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        """None: the scores themselves are cheap."""
        return None

    def cost(self) -> float:
        """One regression, or one for each data set."""
        return 1.0 if self.model.complete else float(len(self.data.n))

    def fit(self, family: Family) -> GaussianFit:
        """The final fit of a node."""
        return self.model.fit(self.data, family, same_for_all(math.log(self.data.rows) / 2))

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network."""
        families = [self.data.family(fit.child, fit.columns) for fit in fits]
        return math.fsum(self.scores(families))  # the same whatever the order of nodes
