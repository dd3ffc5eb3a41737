"""The pooling that a node's data ask for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import MessagePart
from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes import views
from poolbn.nodes.localfit import GaussianFit
from poolbn.nodes.model import Likelihoods, Penalty
from poolbn.nodes.poolings import Complete, NoPooling, Partial

# Rows that each data set must have for each coefficient before no pooling is considered. With fewer
# the likelihood of no pooling rises by fitting noise, by far more than BIC takes off: in the
# paper's simulations with n_j = 10 it would be taken where it predicts worst.
_ROWS = 4

Candidate = Complete | NoPooling | Partial


@dataclass(frozen=True)
class Auto:
    """For each node and its parents, the pooling with the best score.

    No pooling is considered only where each data set has at least four rows for each coefficient.
    The residual variances of complete and no pooling are those without bias, which predict better;
    the scores, which are compared with others, are of maximum likelihood.

    Attributes:
        among: the candidates; of equally good ones the first is taken.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> net = pb.learn(trial, group="clinic", pooling=pb.Auto())
        >>> {node: str(fit.pooling) for node, fit in net.fits.items()}
        {'gestation_days': 'partial pooling and residuals', 'birthweight_g': 'complete pooling'}
    """

    among: tuple[Candidate, ...] = (
        Complete(),
        Partial(random="intercept"),
        Partial(),
        Partial(residuals="pooled"),
        NoPooling(),
    )

    def admits(self, data: StandardisedStats) -> Iterable[MessagePart] | None:
        """What all candidates admit."""
        return next(filter(None, (how.admits(data) for how in self.among)), None)

    def searched(self, levels: Sequence[Hashable]) -> Sequence[Candidate]:
        """Complete pooling and the richest partial one, or all where there are not both.

        A search that chose anew for each family would follow the noise of these choices.
        """
        among = self._among(levels)
        complete = [how for how in among if isinstance(how, Complete)]
        partial = [how for how in among if isinstance(how, Partial)]
        return [*complete[-1:], *partial[-1:]] if complete and partial else among

    def logliks(
        self,
        data: StandardisedStats,
        families: Sequence[Family],
        penalty: Penalty,
        *,
        final: bool = False,
    ) -> Likelihoods:
        """Those of the best candidate; expensive ones only where their bounds can be best."""

        def of(view: StandardisedStats, some: Sequence[Family]) -> Likelihoods:
            best = _Best(len(some))
            among = self._among(view.levels)
            bounds = [how.bounds(view, some, penalty) for how in among]
            for cheap in (True, False):
                for how, bound in zip(among, bounds, strict=True):
                    if cheap == (bound is None):
                        able = _has_rows(how, view, some)
                        if bound is not None:
                            able &= bound.penalised(penalty) > best.score
                        at = np.flatnonzero(able)
                        if len(at):
                            kept = [some[i] for i in at.tolist()]
                            best.keep(at, how.logliks(view, kept, penalty, final=final), penalty)
            return best.likelihoods

        return views.likelihoods(data, families, of, leave_out=True)

    def bounds(
        self, data: StandardisedStats, families: Sequence[Family], penalty: Penalty
    ) -> Likelihoods | None:
        """Those of the candidate with the best bound."""

        def of(view: StandardisedStats, some: Sequence[Family]) -> Likelihoods:
            best = _Best(len(some))
            for how in self._among(view.levels):
                bound = how.bounds(view, some, penalty)
                found = how.logliks(view, some, penalty) if bound is None else bound
                at = np.flatnonzero(_has_rows(how, view, some))
                best.keep(at, Likelihoods(found.loglik[at], found.counts[at]), penalty)
            return best.likelihoods

        return views.likelihoods(data, families, of, leave_out=True)

    def cost(self, data_sets: int) -> float:
        """That of the most expensive candidate."""
        return max(how.cost(data_sets) for how in self.among)

    def fit(self, data: StandardisedStats, family: Family, penalty: Penalty) -> GaussianFit:
        """The best final fit."""

        def of(view: StandardisedStats, family: Family) -> GaussianFit:
            return self._best_fit(view, family, penalty)

        return views.fit(data, family, of, leave_out=True)

    def _among(self, levels: Sequence[Hashable]) -> Sequence[Candidate]:
        """The candidates for these data sets: of one alone there is nothing to pool."""
        if len(levels) > 1:
            return self.among
        return [how for how in self.among if not isinstance(how, Partial)] or [Complete()]

    def _best_fit(self, data: StandardisedStats, family: Family, penalty: Penalty) -> GaussianFit:
        among = self._among(data.levels)
        able = [how for how in among if _has_rows(how, data, [family])[0]] or among
        best = _Best(1)
        chosen: GaussianFit | None = None
        for how in able:
            found = how.fit(data, family, penalty)
            own = Likelihoods(np.array([found.loglik]), np.array([found.counts]))
            if best.keep(np.arange(1), own, penalty):
                chosen = found
            chosen = chosen or found
        assert chosen is not None
        if chosen.random_cov is not None:
            return chosen
        squares, df = chosen.squares, chosen.df
        if chosen.fixed is not None:
            squares, df = np.full_like(squares, squares.sum()), np.full_like(df, df.sum())
        return replace(chosen, sigma2=squares / np.maximum(df, 1.0), unbiased=True)

    def __str__(self) -> str:
        return "the best pooling for each node"


class _Best:
    """The best candidate of each family so far."""

    def __init__(self, families: int) -> None:
        self.score = np.full(families, -np.inf)
        self.likelihoods = views.nothing(families)

    def keep(self, at: NDArray[np.intp], found: Likelihoods, penalty: Penalty) -> bool:
        """Keep what is better, of the families at these positions; whether any was."""
        score = found.penalised(penalty)
        better = score > self.score[at]
        to = at[better]
        self.score[to] = score[better]
        self.likelihoods.loglik[to] = found.loglik[better]
        self.likelihoods.counts[to] = found.counts[better]
        return bool(better.any())


def _has_rows(
    how: Candidate, data: StandardisedStats, families: Sequence[Family]
) -> NDArray[np.bool_]:
    """Whether the data sets have enough rows for this pooling of each family."""
    if not isinstance(how, NoPooling):
        return np.ones(len(families), dtype=bool)
    return np.array([data.n.min() >= _ROWS * (len(parents) + 1) for _, parents in families])
