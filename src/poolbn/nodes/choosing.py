"""Which pooling: by name, by object, or the best one for each node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, OptionError
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import Family, Standard
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.pooling import Complete, Partial, Pooling, Separate, check_option

# Rows that each data set must have for each coefficient before going without pooling is considered.
# With fewer the likelihood of no pooling rises by fitting noise, by far more than BIC takes off: in
# the paper's simulations with n_j = 10 it would be taken where it predicts worst.
_ROOM = 4
_UNBIASED: dict[Pooling, Pooling] = {
    Complete(): Complete(variance="unbiased"),
    Separate(): Separate(variance="unbiased"),
}


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
        >>> {node: fit.pooling for node, fit in net.fits.items()}
        {'gestation_days': 'partial pooling and residuals', 'birthweight_g': 'complete pooling'}
    """

    among: tuple[Pooling, ...] = (
        Complete(),
        Partial(random="intercept"),
        Partial(),
        Partial(residuals="pooled"),
        Separate(),
    )

    def scores(
        self, data: Standard, families: Sequence[Family], price: float
    ) -> NDArray[np.float64]:
        """The best score of each family: what is dear only where its bound says it can be best."""
        best = np.full(len(families), -np.inf)
        bounds = [how.bounds(data, families, price) for how in self.among]
        for cheap in (True, False):
            for how, bound in zip(self.among, bounds, strict=True):
                if cheap == (bound is None):
                    able = _has_room(how, data.n, families)
                    at = np.flatnonzero(able if bound is None else able & (bound > best))
                    if len(at):
                        found = how.scores(data, [families[i] for i in at.tolist()], price)
                        best[at] = np.maximum(best[at], found)
        return best

    def bounds(
        self, data: Standard, families: Sequence[Family], price: float
    ) -> NDArray[np.float64]:
        """The best bound of each family."""
        values = []
        for how in self.among:
            bound = how.bounds(data, families, price)
            value = how.scores(data, families, price) if bound is None else bound
            values.append(np.where(_has_room(how, data.n, families), value, -np.inf))
        return np.asarray(np.max(values, axis=0))

    def fit(self, stats: GroupStats, child: str, parents: Sequence[str], price: float) -> LocalFit:
        """The best final fit."""
        family = [(0, range(len(parents)))]
        able = [how for how in self.among if _has_room(how, stats.n, family)[0]] or self.among
        fits = [how.fit(stats, child, parents, price) for how in able]
        scores = [fit.loglik - price * fit.n_params for fit in fits]
        best = scores.index(max(scores))
        if able[best] not in _UNBIASED:
            return fits[best]
        unbiased = _UNBIASED[able[best]].fit(stats, child, parents, price)
        return replace(fits[best], sigma2=unbiased.sigma2)


def _has_room(how: Pooling, n: NDArray[Any], families: Sequence[Family]) -> NDArray[np.bool_]:
    """Whether the data sets, of n rows, have enough of them for this pooling of each family."""
    if not isinstance(how, Separate):
        return np.ones(len(families), dtype=bool)
    return np.array([n.min() >= _ROOM * (len(parents) + 1) for _, parents in families])


def as_pooling(value: str | Pooling) -> Pooling:
    """A pooling from its name, or itself.

    Examples:
        >>> as_pooling("partial")
        Partial(random='full', residuals='shared', method='ml')
    """
    if isinstance(value, str):
        check_option("pooling", value, tuple(_BY_NAME))
        return _BY_NAME[value]
    if isinstance(value, type) or not hasattr(value, "scores"):
        raise OptionError(
            f"pooling={value!r} is not a pooling; use 'complete', 'none', 'partial', 'auto', or an "
            "object such as pb.Partial(random='intercept')"
        )
    return value


def fit_node(
    stats: GroupStats,
    child: str,
    parents: Sequence[str] = (),
    *,
    pooling: str | Pooling = "partial",
) -> LocalFit:
    """Fit one node given its parents.

    Args:
        stats: the statistics, from `pb.stats`.
        child: the node.
        parents: its parents; none by default.
        pooling: "complete", "none", "partial", "auto" (the best of several by BIC), or an object
            such as `pb.Partial(method="reml")`.

    Examples:
        >>> import poolbn as pb
        >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
        ...                  missing="drop")
        >>> fit = pb.fit_node(stats, "bmi", ["age"], pooling="complete")
        >>> print(fit.status)
        converged: least squares, in closed form
    """
    check_stats(stats)
    parents = [parents] if isinstance(parents, str) else list(parents)
    stats.family(child, parents)
    price = math.log(stats.n_rows) / 2
    return as_pooling(pooling).fit(stats, child, parents, price)


def check_stats(stats: object) -> None:
    """Complain about anything that is not `GroupStats`."""
    if not isinstance(stats, GroupStats):
        raise DataError(
            f"expected statistics, got {type(stats).__name__}; make them with "
            "pb.stats(data, group=...)"
        )


_BY_NAME: dict[str, Pooling] = {
    "complete": Complete(),
    "none": Separate(),
    "partial": Partial(),
    "auto": Auto(),
}
