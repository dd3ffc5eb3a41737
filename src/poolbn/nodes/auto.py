"""The pooling that the data ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import LIST, Argument, check_arguments
from poolbn.errors import MessagePart, Option, OptionError
from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes import views
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.model import Choice, Continuous, Likelihoods, NodeModel, Penalty, Worth
from poolbn.nodes.poolings import Complete, NoPooling, Partial

# Rows that each data set must have for each coefficient before no pooling is considered. With fewer
# the likelihood of no pooling rises by fitting noise, by far more than BIC takes off: in the
# paper's simulations with n_j = 10 it would be taken where it predicts worst.
_ROWS = 4

Candidate = Complete | NoPooling | Partial
_CANDIDATE = Argument(
    "a pb.Complete, pb.NoPooling or pb.Partial", lambda value: isinstance(value, Candidate)
)


@dataclass(frozen=True)
class Auto:
    """The simplest pooling that the data allow.

    A network is learned under the last candidate. If, with that graph, an earlier one is as good
    but for what chance gives to more parameters, half a unit of log-likelihood each, a network is
    learned under it. In the end a node has a later candidate than the network where its own score
    is better with it. A search that chose anew for each family would follow the noise of these
    choices.

    No pooling is considered only where each data set has at least four rows for each coefficient.
    The residual variances of complete and no pooling are those without bias, which predict better;
    the scores, which are compared with others, are of maximum likelihood.

    Attributes:
        among: the candidates, from simple to rich; of equally good ones the first is taken.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> net = pb.learn(trial, group="clinic", pooling=pb.Auto())
        >>> {str(fit.pooling) for fit in net.fits.values()}
        {'partial pooling and residuals'}
    """

    among: tuple[Candidate, ...] = (Complete(), Partial(residuals="pooled"))

    def __post_init__(self) -> None:
        check_arguments(among=(self.among, LIST))
        object.__setattr__(self, "among", tuple(self.among))
        for how in self.among:
            check_arguments(**{"each of among": (how, _CANDIDATE)})
        if not self.among:
            raise OptionError(Option("among", []), " has no pooling to choose from")

    @property
    def kernels(self) -> tuple[str, ...]:
        """Those of all candidates."""
        return tuple(name for how in self.among for name in how.kernels)

    def admits(self, data: StandardisedStats) -> Iterable[MessagePart] | None:
        """What all candidates admit."""
        return next(filter(None, (how.admits(data) for how in self.among)), None)

    def first(self, levels: Sequence[Hashable]) -> OneOf:
        """The last candidate."""
        return self.candidates(levels)[-1]

    def chosen(self, levels: Sequence[Hashable], worth: Callable[[NodeModel], Worth]) -> OneOf:
        """The first candidate that is as good as the last, but for chance.

        By the nodes that have a likelihood under both.
        """
        *earlier, last = self.candidates(levels)
        if not earlier:
            return last
        most = worth(last)

        def is_enough(one: OneOf) -> bool:
            own = worth(one)
            both = np.isfinite(own) & np.isfinite(most)
            return math.fsum(own[both].tolist()) >= math.fsum(most[both].tolist())

        return next(filter(is_enough, earlier), last)

    def fit(self, data: StandardisedStats, family: Family, penalty: Penalty) -> GaussianFit:
        """The best final fit of one node."""
        return self.candidates(data.levels)[0].fit(data, family, penalty)

    def candidates(self, levels: Sequence[Hashable]) -> Sequence[OneOf]:
        """Those of these data sets, each with later ones."""
        among = tuple(_able(self.among, levels))
        return [OneOf(place, among) for place in range(len(among))]

    def __str__(self) -> str:
        return "the simplest pooling that will do"


@dataclass(frozen=True)
class OneOf:
    """A candidate, so that its scores can be compared with others'.

    All of them leave out the data sets in which a child is constant.

    Attributes:
        place: which of them it is; a final fit may have a later one in its place.
        among: all candidates.
    """

    place: int
    among: tuple[Candidate, ...]

    @property
    def how(self) -> Candidate:
        """The candidate."""
        return self.among[self.place]

    @property
    def complete(self) -> bool:
        """That of the candidate."""
        return self.how.complete

    @property
    def partial(self) -> bool:
        """That of the candidate."""
        return self.how.partial

    @property
    def continuous(self) -> Continuous:
        """That of the candidate."""
        return self.how.continuous

    @property
    def kernels(self) -> tuple[str, ...]:
        """Those of the candidate."""
        return self.how.kernels

    def view(self, data: StandardisedStats, child: int) -> StandardisedStats | None:
        """The data sets that count for a child under all candidates."""
        return views.data_sets_for(data, child, leave_out=True)

    def admits(self, data: StandardisedStats) -> Iterable[MessagePart] | None:
        """What the candidate admits."""
        return self.how.admits(data)

    def first(self, levels: Sequence[Hashable]) -> OneOf:
        """Itself."""
        return self

    def chosen(self, levels: Sequence[Hashable], worth: Callable[[NodeModel], Worth]) -> OneOf:
        """Itself."""
        return self

    def logliks(
        self,
        data: StandardisedStats,
        families: Sequence[Family],
        penalty: Penalty,
        *,
        final: bool = False,
    ) -> Likelihoods:
        """Those of the candidate, or of the best one in the end."""

        def of(view: StandardisedStats, some: Sequence[Family]) -> Likelihoods:
            best = views.nothing(len(some))
            for how in self._able(view) if final else self._able(view)[:1]:
                found = how.logliks(view, some, penalty, final=final)
                found.loglik[~_has_rows(how, view, some)] = -np.inf
                better = found.penalised(penalty, some) > best.penalised(penalty, some)
                for of_best, of_found in zip(best, found, strict=True):
                    of_best[better] = of_found[better]
            return best

        return views.likelihoods(data, families, of, leave_out=True)

    def bounds(
        self, data: StandardisedStats, families: Sequence[Family], penalty: Penalty
    ) -> Likelihoods | None:
        """Those of the candidate."""
        if not isinstance(self.how, Partial) or data.units is not None:
            return None

        def of(view: StandardisedStats, some: Sequence[Family]) -> Likelihoods:
            how = self._able(view)[0]
            return how.bounds(view, some, penalty) or how.logliks(view, some, penalty)

        return views.likelihoods(data, families, of, leave_out=True)

    def cost(self, data_sets: int) -> float:
        """That of the candidate."""
        return self.how.cost(data_sets)

    def fit(self, data: StandardisedStats, family: Family, penalty: Penalty) -> GaussianFit:
        """The best final fit, with variances that have no bias."""

        def of(view: StandardisedStats, family: Family) -> GaussianFit:
            def score(how: Candidate) -> float:
                found = how.logliks(view, [family], penalty, final=True)
                return float(found.penalised(penalty, [family])[0])

            able = [how for how in self._able(view) if _has_rows(how, view, [family])[0]]
            fit = max(able or self._able(view), key=score).fit(view, family, penalty)
            if fit.random_cov is not None:
                return fit
            squares, df = fit.squares, fit.df
            if fit.fixed is not None:
                squares, df = np.full_like(squares, squares.sum()), np.full_like(df, df.sum())
            share = 0.0 if fit.unit_share is None or fit.unit_share.all() else fit.unit_share
            return replace(fit, sigma2=squares / np.maximum(df, 1.0) / (1 - share), unbiased=True)

        return views.fit(data, family, of, leave_out=True)

    def _able(self, data: StandardisedStats) -> Sequence[Candidate]:
        return _able(self.among[self.place :], data.levels)

    def __str__(self) -> str:
        return str(self.how)

    def __repr__(self) -> str:
        return repr(self.how)


def alternatives(model: NodeModel) -> list[NodeModel]:
    """The poolings that a final fit may have, each alone."""
    if isinstance(model, OneOf):
        return [OneOf(0, (how,)) for how in model.among[model.place :]]
    return [model]


def candidates(pooling: Choice, levels: Sequence[Hashable]) -> Sequence[Candidate]:
    """The poolings that a node which is not continuous may have in the end, the first one first.

    Raises:
        OptionError: it is none of poolbn's own.
    """
    if isinstance(pooling, Auto):
        return _able(pooling.among, levels)
    if isinstance(pooling, OneOf):
        return pooling.among[pooling.place :]
    check_arguments(pooling=(pooling, _CANDIDATE))
    assert isinstance(pooling, Candidate)
    return (pooling,)


def with_tables(model: NodeModel) -> NodeModel:
    """The same with tables for discrete nodes with discrete parents."""
    if isinstance(model, OneOf):
        made = (replace(how, discrete="table") for how in model.among)
        return replace(model, among=tuple(made))
    assert isinstance(model, Candidate)
    return replace(model, discrete="table")


def _able(among: Sequence[Candidate], levels: Sequence[Hashable]) -> Sequence[Candidate]:
    """The candidates for these data sets: of one alone there is nothing to pool."""
    if len(levels) > 1:
        return among
    return [how for how in among if not isinstance(how, Partial)] or [Complete()]


def _has_rows(
    how: Candidate, data: StandardisedStats, families: Sequence[Family]
) -> NDArray[np.bool_]:
    """Whether the data sets have enough rows for this pooling of each family."""
    if not isinstance(how, NoPooling):
        return np.ones(len(families), dtype=bool)
    return np.array([data.fewest >= _ROWS * (len(parents) + 1) for _, parents in families])
