"""Log-likelihoods of continuous nodes minus penalties."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poolbn.arrays import Flags, Floats
from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import Likelihoods, NeighbourScores, NodeModel, Penalty, all_exact
from poolbn.nodes.poolings import LeastSquares, Partial
from poolbn.scoring.sparsity import sparsity


def total_of(fits: Iterable[LocalFit], each: Floats) -> float:
    """The sum of log-likelihoods minus penalties: the same bits, whatever the order of nodes."""
    penalties = each.tolist()
    return math.fsum(
        fit.loglik - sum(k * of for k, of in zip(fit.counts, penalties, strict=True))
        for fit in fits
    )


@dataclass(frozen=True, eq=False)
class PenalisedLikelihood:
    """The scores of one table under one model; see `sparsity` for sparse ones."""

    data: StandardisedStats
    model: NodeModel
    penalty: Penalty
    sparse: bool = False

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Of each family."""
        found = self.model.logliks(self.data, families, self.penalty, final=final)
        return self._penalised(found, families)

    def with_random_levels(
        self, families: Sequence[Family], scores: Floats, *, final: bool
    ) -> Floats:
        """The scores of families, in which levels of data sets are random if they are partial."""
        return scores

    def neighbours(
        self, families: Sequence[Family], candidates: Flags, *, improving_only: bool
    ) -> NeighbourScores | None:
        """See `scoring.local.Sweeping`."""
        if self.data.units is not None:
            return self._screened(families, candidates) if improving_only else None
        if isinstance(self.model, Partial):
            return self.model.neighbours(
                self.data, families, self._around, candidates, improving_only=improving_only
            )
        if not isinstance(self.model, LeastSquares):
            return None
        return all_exact(self.model.neighbours(self.data, families, self._charges))

    def _screened(self, families: Sequence[Family], candidates: Flags) -> NeighbourScores | None:
        """With units inside data sets, whose variance stays as the families' own fits have it.

        Only which parents more would lower the score by far; others are NaN.
        """
        model, data = self.model, self.data
        if not isinstance(model, Partial) or data.some_constant or not model.sweeps:
            return None
        shape = candidates.shape
        found = NeighbourScores(np.full(shape, np.nan), np.zeros(shape, dtype=bool))
        ratios, own = model.unit_ratios(data, families), self.scores(families)
        for m, (child, parents) in enumerate(families):
            if data.unit_level[child] or not np.isfinite(own[m]):
                continue
            view = data.whitened(np.full(len(data.n), ratios[m])).with_even_weights
            more = candidates[m : m + 1].copy()
            more[0, list(parents)] = False
            made = model.neighbours(
                view, families[m : m + 1], self._around, more, improving_only=True
            )
            if made is None:
                return None
            value = made.values[0]
            lower = more[0] & ~made.exact[0] & (value < value[child])
            lower[child] = False
            found.values[m, lower] = own[m] - (value[child] - value[lower])
            found.values[m, child], found.exact[m, child] = own[m], True
        return found

    def _around(self, parents: int, slopes: int) -> Floats:
        """Charges with one parent less, as many and one more, and slopes likewise, (3, 3)."""
        if (parents, slopes) not in self._windows:
            assert isinstance(self.model, Partial)
            F, N = self.data.mean.shape
            sizes = [(parents + i, slopes + k) for i in (-1, 0, 1) for k in (-1, 0, 1)]
            p = np.array([most for most, _ in sizes])
            counts = np.array([self.model.counts_with(*of, F, self.data.inside) for of in sizes])
            charges = self.penalty.charges(counts, p + 1)
            charges += sparsity(N, np.clip(p, 0, N - 1)) if self.sparse else 0.0
            self._windows[parents, slopes] = charges.reshape(3, 3)
        return self._windows[parents, slopes]

    def charges_of_one_more(self, families: Sequence[Family]) -> Floats:
        """What one more parent, whose slope varies, is charged in each family, (M,)."""
        sizes = [len(parents) for _, parents in families]
        around = {p: self._around(p, p) for p in set(sizes)}
        return np.array([around[p][2, 2] - around[p][1, 1] for p in sizes])

    def most_with(self, family: Family, block: Sequence[int], own: float) -> float:
        """What a family with many columns more hardly has a higher score than; NaN: not known."""
        return math.nan

    def charge_of(self, family: Family, more: int) -> float:
        """What so many parents more, whose slopes vary, are charged."""
        assert isinstance(self.model, Partial)
        p = np.array([len(family[1]), len(family[1]) + more])
        F, inside = len(self.data.n), self.data.inside
        counts = np.array([self.model.counts_with(k, k, F, inside) for k in p.tolist()])
        before, after = self.penalty.charges(counts, p + 1).tolist()
        return float(after - before)

    @cached_property
    def _windows(self) -> dict[tuple[int, int], Floats]:
        return {}

    @cached_property
    def _charges(self) -> Floats:
        """Of least squares with so many parents, (N + 1,)."""
        assert isinstance(self.model, LeastSquares)
        F, N = self.data.mean.shape
        counts = np.array([self.model.counts(p, F) for p in range(N + 1)])
        charges = self.penalty.charges(counts, np.arange(N + 1) + 1)
        charges[:N] += sparsity(N, range(N)) if self.sparse else 0.0
        return charges

    def bounds(self, families: Sequence[Family]) -> Floats | None:
        """Upper bounds of the scores that cost less, or None if there are none."""
        found = self.model.bounds(self.data, families, self.penalty)
        return None if found is None else self._penalised(found, families)

    def _penalised(self, found: Likelihoods, families: Sequence[Family]) -> Floats:
        score = found.penalised(self.penalty, families)
        if not self.sparse:
            return score
        return score - sparsity(len(self.data.names), [len(parents) for _, parents in families])

    def cost(self) -> float:
        """About the regressions that one score costs."""
        return self.model.cost(len(self.data.n))

    def fit(self, family: Family) -> GaussianFit:
        """The final fit of a node."""
        return self.model.fit(self.data, family, self.penalty)

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""
        if self.sparse:
            families = [self.data.family(fit.child, fit.columns) for fit in fits]
            return math.fsum(self.scores(families, final=True))
        return total_of(fits, self.penalty.each)
