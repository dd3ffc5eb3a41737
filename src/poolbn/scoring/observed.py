"""Scores of tables with drawn cells: a family counts as many rows as tell of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from poolbn.arrays import Flags, Floats
from poolbn.moments.data import Data
from poolbn.moments.standardised import Family
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import NeighbourScores
from poolbn.scoring.families import NodeScores, family_of
from poolbn.scoring.sparsity import sparsity


@dataclass(frozen=True, eq=False)
class ObservedScores:
    """Scores in which drawn cells bring no information of their own.

    Completed rows overstate what is known of a family: their log-likelihood l gains over that of
    the child alone, l_0, as if all cells were there. Of the gain a share w is taken, see
    `Data.share`: l_0 + w (l - l_0) minus the penalty.

    Attributes:
        data: rows whose missing cells are drawn.
        inner: makes the scores with a penalty that is divided by w; 0 for none.
        sparse: whether that of `sparsity` is taken too, for the number of parents.
    """

    data: Data
    inner: Callable[[float], NodeScores]
    sparse: bool = False

    @cached_property
    def _by_share(self) -> dict[float, NodeScores]:
        return {}

    def _of(self, share: float) -> NodeScores:
        if share not in self._by_share:
            self._by_share[share] = self.inner(share)
        return self._by_share[share]

    @cached_property
    def _alone(self) -> Floats:
        """Log-likelihoods of nodes without parents, (N,)."""
        return self._of(0.0).scores([(child, ()) for child in range(len(self.data.names))])

    def _shares(self, families: Sequence[Family]) -> Floats:
        """Not below one row, for which there is no penalty that is finite otherwise."""
        least = 1 / self.data.n_rows
        return np.array([max(self.data.share(*family), least) for family in families])

    def _weighed(
        self,
        families: Sequence[Family],
        compute: Callable[[NodeScores, Sequence[Family]], Floats | None],
    ) -> Floats:
        share = self._shares(families)
        values = np.empty(len(families))
        for w in np.unique(share).tolist():
            at = np.flatnonzero(share == w)
            made = compute(self._of(w), [families[m] for m in at.tolist()])
            found = np.full(len(at), np.nan) if made is None else made
            alone = self._alone[[families[m][0] for m in at.tolist()]]
            values[at] = found if w == 1.0 else (1 - w) * alone + w * found
        if self.sparse:
            values -= sparsity(len(self.data.names), [len(parents) for _, parents in families])
        return values

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Of each family."""
        return self._weighed(families, partial(NodeScores.scores, final=final))

    def bounds(self, families: Sequence[Family]) -> Floats:
        """Upper bounds of the scores that cost less; NaN where there are none."""
        return self._weighed(families, NodeScores.bounds)

    def neighbours(
        self, families: Sequence[Family], candidates: Flags, *, improving_only: bool
    ) -> NeighbourScores | None:
        """Of columns to add what they hardly bring more than, if no cell were drawn."""
        if not improving_only:
            return None
        found = self._of(1.0).neighbours(families, candidates, improving_only=True)
        if found is None:
            return None
        own, N = self.scores(families), len(self.data.names)
        values, exact = np.full(found.values.shape, np.nan), np.zeros_like(found.exact)
        for m, (child, parents) in enumerate(families):
            more = candidates[m].copy()
            more[[child, *parents]] = False
            here, one_more = (
                sparsity(N, [len(parents), len(parents) + 1]) if self.sparse else (0, 0)
            )
            away = found.values[m] - found.values[m, child] + here - one_more
            values[m, more] = own[m] + away[more]
            values[m, child], exact[m, child] = own[m], True
        return NeighbourScores(values, exact)

    def cost(self) -> float:
        """About the regressions that one score costs."""
        return self._of(1.0).cost()

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        return self._of(float(self._shares([family])[0])).fit(family)

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""
        if self.sparse:
            return math.fsum(self.scores([family_of(self.data, fit) for fit in fits], final=True))
        each = self._of(1.0).penalty.each
        found = []
        for fit in fits:
            family = child, _ = family_of(self.data, fit)
            (w,) = self._shares([family])
            alone = (1 - w) * self._alone[child] if w < 1 else 0.0
            found.append(alone + w * fit.loglik - float(np.array(fit.counts) @ each))
        return math.fsum(found)
