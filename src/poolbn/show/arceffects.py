"""One arc's effect in each data set: the network's estimate beside that of the data set alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, check_interval, nearest
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import standardise
from poolbn.network.effects import population_effect
from poolbn.network.network import Network
from poolbn.nodes import linear
from poolbn.nodes.choosing import check_stats
from poolbn.nodes.localfit import LocalFit

Floats = NDArray[np.float64]

# Of the limits of drawings
_FAR = 3.0  # times the middle half of the estimates, beyond which one is not shown
_BEYOND = 0.75  # of the range of the estimates, that long intervals may add on each side
_NEAR = 0.5  # of that range, where zero is shown although no interval reaches it


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimates(ABC):
    """Estimates of one thing in all data sets. Intervals are (lower, upper).

    Attributes:
        pooling: how the child's fit shares strength.
        levels: the F data sets.
        n: their rows, (F,).
        adapted: which of them were not learned from, (F,).
        effect: in each data set, as the network has it, (F,).
        interval: of these, (F, 2).
        alone: the estimate from the data set's own rows, NaN where there is none, (F,).
        alone_interval: of these, (F, 2).
        population: in the population of data sets; without pooling the mean.
        population_interval: of that.
        new_interval: where another data set is to be expected; NaN unless pooling is partial.
    """

    pooling: str
    levels: tuple[Hashable, ...]
    n: NDArray[np.int64]
    adapted: NDArray[np.bool_]
    effect: Floats
    interval: Floats
    alone: Floats
    alone_interval: Floats
    population: float
    population_interval: tuple[float, float]
    new_interval: tuple[float, float]

    @abstractmethod
    def axis(self, shown: Callable[[str], str] = str) -> str:
        """What the estimates are, with names as they are to be shown."""

    @property
    @abstractmethod
    def common(self) -> str:
        """What the population's estimate is the estimate in."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ArcEffects(Estimates):
    """The effect of a parent on its child, with the attributes of `Estimates`.

    With partial pooling both the random effects and the population's are uncertain, which is in the
    intervals; variances are taken as known.

    Attributes:
        parent: the parent.
        child: the child.
    """

    parent: str
    child: str

    def axis(self, shown: Callable[[str], str] = str) -> str:
        """What the estimates are, with names as they are to be shown."""
        return f"change of {shown(self.child)} per unit of {shown(self.parent)}"

    @property
    def common(self) -> str:
        """What the population's effect is the effect in."""
        if self.pooling == "complete pooling":
            return "all data sets together"
        mean = self.pooling == "no pooling"
        return "mean of the data sets" if mean else "population of data sets"


def arc_effects(
    net: Network,
    parent: str,
    child: str,
    *,
    stats: GroupStats | None = None,
    interval: float = 0.95,
) -> ArcEffects:
    """Collect the estimates of one arc.

    Args:
        net: the network.
        parent: a node.
        child: a child of it.
        stats: the statistics; by default those that the network was learned from. Without any, as
            for a loaded network, there are no estimates of data sets alone.
        interval: the probability of the intervals.

    Raises:
        GraphError: there is no such arc.
        OptionError: `interval` is not between 0 and 1.
        DataError: `stats` are none, or lack a column.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> net = pb.learn(trial, group="clinic",
        ...                constraints=pb.Constraints(required=[("age", "bmi")]))
        >>> found = arc_effects(net, "age", "bmi")
        >>> found.levels, found.effect.round(2), found.alone.round(2)
        (('NY', 'MN', 'KY', 'MS'), array([0.18, 0.14, 0.12, 0.34]), array([0.19, 0.15, 0.1 , 0.36]))
    """
    check_interval(interval)
    check_arc(net, parent, child)
    fit = net.fits[child]
    k = 1 + fit.parents.index(parent)
    z = NormalDist().inv_cdf((1 + interval) / 2)
    effect = fit.coef[:, k]
    population, se = population_effect(fit, k)
    half = math.nan
    if fit.random_sd is not None:
        half = z * math.hypot(se, fit.random_sd[k])
    stats = net.stats if stats is None else stats
    if stats is not None:
        check_stats(stats)
        stats = stats.select([*fit.parents, child])
    sd = np.array([_sd(fit, k, j, stats) for j in range(len(effect))])
    alone, alone_interval = np.full(len(fit.levels), math.nan), np.full((len(effect), 2), math.nan)
    if stats is not None and fit.fixed is not None:
        value, reach = _alone(stats, k, interval)
        alone = by_level(fit, stats, value)
        alone_interval = by_level(fit, stats, value[:, None] + reach[:, None] * [-1, 1])
    return ArcEffects(
        parent=parent,
        child=child,
        pooling=fit.pooling,
        levels=fit.levels,
        n=net.n,
        adapted=np.array([level in net.adapted for level in fit.levels]),
        effect=effect,
        interval=effect[:, None] + z * sd[:, None] * [-1, 1],
        alone=alone,
        alone_interval=alone_interval,
        population=population,
        population_interval=(population - z * se, population + z * se),
        new_interval=(population - half, population + half),
    )


def by_level(fit: LocalFit, stats: GroupStats, values: Floats) -> Floats:
    """Values of the data sets of statistics, (F', ...), as (F, ...) of a fit; NaN for others."""
    place = {level: j for j, level in enumerate(stats.levels)}
    known = [j for j, level in enumerate(fit.levels) if level in place]
    found = np.full((len(fit.levels), *values.shape[1:]), math.nan)
    found[known] = values[[place[fit.levels[j]] for j in known]]
    return found


def forest_limits(found: Estimates) -> tuple[float, float]:
    """Limits that show the estimates, unless far out, and intervals, unless very long."""
    core = np.array([*found.effect, *found.interval.ravel(), *found.population_interval])
    core = np.append(core[np.isfinite(core)], found.population)
    low, high = core.min(), core.max()
    alone = found.alone[np.isfinite(found.alone)]
    if len(alone):
        first, middle, third = np.quantile(alone, [0.25, 0.5, 0.75])
        reach = _FAR * max(third - first, high - low)
        near = alone[np.abs(alone - middle) <= reach]
        low, high = min(low, near.min(initial=low)), max(high, near.max(initial=high))
    span = (high - low) or abs(high) or 1.0
    rest = np.array([*alone, *found.alone_interval.ravel(), *found.new_interval])
    rest = np.clip(rest[np.isfinite(rest)], low - _BEYOND * span, high + _BEYOND * span)
    low, high = min(low, rest.min(initial=low)), max(high, rest.max(initial=high))
    if 0 < low < _NEAR * span:
        low = 0.0
    if -_NEAR * span < high < 0:
        high = 0.0
    return float(low - 0.04 * span), float(high + 0.04 * span)


def check_arc(net: Network, parent: str, child: str) -> None:
    """Complain about an arc that the network does not have."""
    dag = net.dag
    if parent in dag.parents(child):  # which complains about an unknown child
        return
    if parent in dag.children(child):
        raise GraphError(
            f"there is no arc {parent} -> {child}, but one the other way: give parent={child!r}, "
            f"child={parent!r}"
        )
    dag.children(parent)
    into = dag.parents(child)
    hint = nearest(parent, into) if into else "; no arc goes there at all"
    raise GraphError(f"there is no arc {parent} -> {child}{hint}")


def _sd(fit: LocalFit, k: int, j: int, stats: GroupStats | None) -> float:
    """The standard error of a slope in one data set.

    With partial pooling coef_j = beta + b_j, and given beta the mean of b_j is K (y_j - Z_j beta),
    with covariance S = `coef_cov`. So the covariance of coef_j is S + G V G', with V that of beta
    and G = I - K Z_j. With A_j = Z_j'Z_j that is I - S A_j / sigma2. Where A_j is not known, as for
    adapted data sets, it is S D^-1, as long as D can be inverted; else the same on the range of D,
    and I elsewhere, which leaves out how the two are related.
    """
    cov = fit.coef_cov[j]
    if fit.random_cov is None or fit.fixed_cov is None:
        return float(np.sqrt(cov[k, k]))
    q = len(cov)
    C = np.eye(q)
    if not cov.any():
        G = np.eye(q)
    elif stats is not None and fit.levels[j] in stats.levels:
        at = stats.levels.index(fit.levels[j])
        # Parents are centred at their means, which slopes do not notice and columns far from zero
        # need.
        C[0, 1:] = stats.mean[at, :-1]
        A = np.zeros((q, q))
        A[0, 0], A[1:, 1:] = stats.n[at], stats.scatter[at, :-1, :-1]
        G = np.eye(q) - C @ cov @ C.T @ A / fit.sigma2[j]
    else:
        D = fit.random_cov
        if fit.residual_scale is not None:  # in proportion to residual variances
            D = D * (fit.sigma2[j] / fit.residual_scale)
        scale = np.sqrt(np.diagonal(D))
        scale = np.where(scale > 0, scale, 1.0)
        units = np.outer(scale, scale)
        inverse = np.linalg.pinv(D / units, rcond=1e-9, hermitian=True)
        G = np.eye(q) - (D - cov) / units @ inverse
        G *= np.outer(scale, 1 / scale)
    return float(np.sqrt((G @ C @ fit.fixed_cov @ C.T @ G.T)[k, k] + cov[k, k]))


def _alone(stats: GroupStats, k: int, interval: float) -> tuple[Floats, Floats]:
    """Least squares in each data set: a slope, and half of its interval, (F,) each.

    NaN where the rows do not give it. The interval is Student's, because data sets can be small.

    Args:
        stats: of the parents and, last, the child.
        k: which coefficient, the intercept being the first.
        interval: the probability of the interval.
    """
    from scipy.special import stdtrit

    *parents, child = stats.names
    data = standardise(stats)
    places = [data.index[parent] for parent in parents]
    f = linear.fit(data, data.index[child], places, separate=True, unbiased=True)
    ok = np.isfinite(f.loglik)
    t = stdtrit(np.where(ok, stats.n - len(stats.names), 1), (1 + interval) / 2)
    return (
        np.where(ok, f.coef[:, k], math.nan),
        np.where(ok, t * np.sqrt(f.coef_cov[:, k, k]), math.nan),
    )
