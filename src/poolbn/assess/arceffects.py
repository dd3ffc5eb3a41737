"""One arc's effect in each data set: the network's estimate beside that of the data set alone."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, check_interval, nearest
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import standardise
from poolbn.network.effects import data_set_effects
from poolbn.network.network import Network
from poolbn.nodes import linear
from poolbn.nodes.choosing import check_stats
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import GaussianFit, Pooling
from poolbn.nodes.poolings import Complete, NoPooling

Floats = NDArray[np.float64]


class Common(StrEnum):
    """What the estimate below those of the data sets is of."""

    POPULATION = "population of data sets"
    MEAN = "mean of the data sets"
    ALL = "all data sets together"


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimates:
    """Estimates of an arc's effect or a node's residual SD in all data sets.

    Intervals are (lower, upper). Those of effects have all that is uncertain, the variance between
    data sets too, and so need not have the estimate in their middle (`nodes.intervals`).

    Attributes:
        parent: of the arc; None for the residual SD.
        child: of the arc, or the node.
        pooling: how the child's fit shares strength.
        levels: the F data sets.
        n: their rows, (F,).
        adapted: which of them were not learned from, (F,).
        effect: in each data set, as the network has it, (F,).
        interval: of these, (F, 2).
        alone: the estimate from the data set's own rows, NaN where there is none, (F,).
        alone_interval: of these, (F, 2).
        common: what `population` is of.
        population: in the population of data sets; without pooling the mean.
        population_interval: of that.
        new_interval: the range expected for a new data set; NaN unless pooling is partial.
    """

    parent: str | None
    child: str
    pooling: Pooling
    levels: tuple[Hashable, ...]
    n: NDArray[np.int64]
    adapted: NDArray[np.bool_]
    effect: Floats
    interval: Floats
    alone: Floats
    alone_interval: Floats
    common: Common
    population: float
    population_interval: tuple[float, float]
    new_interval: tuple[float, float]


def arc_effects(
    net: Network,
    parent: str,
    child: str,
    *,
    stats: GroupStats | None = None,
    interval: float = 0.95,
) -> Estimates:
    """Collect the estimates of one arc.

    Args:
        net: the network.
        parent: a node.
        child: a child of it.
        stats: the sufficient statistics; by default those that the network was learned from.
            Without any, as for a loaded network, there are no estimates of data sets alone.
        interval: the probability of the intervals.

    Raises:
        GraphError: there is no such arc.
        OptionError: `interval` is not between 0 and 1.
        DataError: `stats` are none, or lack a column.
    """
    check_interval(interval)
    check_arc(net, parent, child)
    fit = net.linear_fits[child]
    k = fit.position(parent)
    effect = fit.coef[:, k]
    population, se, df = fit.population(k)
    spread = math.nan if fit.random_sd is None else math.hypot(se, fit.random_sd[k])
    stats = net.stats if stats is None else stats
    if stats is not None:
        check_stats(stats)
        stats = stats.select([*fit.parents, child])
    alone, alone_interval = np.full(len(fit.levels), math.nan), np.full((len(effect), 2), math.nan)
    if stats is not None and fit.fixed is not None:
        value, reach = _slopes_alone(stats, k, interval)
        alone = by_level(fit, stats, value)
        alone_interval = by_level(fit, stats, value[:, None] + reach[:, None] * [-1, 1])
    return Estimates(
        parent=parent,
        child=child,
        pooling=fit.pooling,
        levels=fit.levels,
        n=net.n,
        adapted=np.array([level in net.adapted for level in fit.levels]),
        effect=effect,
        interval=t_interval(*data_set_effects(fit, k, stats), interval),
        alone=alone,
        alone_interval=alone_interval,
        common=_common(fit.pooling),
        population=population,
        population_interval=_pair(t_interval(population, se, df, interval)),
        new_interval=_pair(t_interval(population, spread, df, interval)),
    )


def _pair(ends: Floats) -> tuple[float, float]:
    lower, upper = ends.tolist()
    return lower, upper


def _common(pooling: Pooling) -> Common:
    if isinstance(pooling, Complete):
        return Common.ALL
    return Common.MEAN if isinstance(pooling, NoPooling) else Common.POPULATION


def by_level(fit: GaussianFit, stats: GroupStats, values: Floats) -> Floats:
    """Values of the data sets of statistics, (F', ...), as (F, ...) of a fit; NaN for others."""
    index = {level: j for j, level in enumerate(stats.levels)}
    known = [j for j, level in enumerate(fit.levels) if level in index]
    found = np.full((len(fit.levels), *values.shape[1:]), math.nan)
    found[known] = values[[index[fit.levels[j]] for j in known]]
    return found


def check_arc(net: Network, parent: str, child: str) -> None:
    """Raise for an arc that the network does not have."""
    dag = net.dag
    if parent in dag.parents(child):  # which raises for an unknown child
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


def alone(stats: GroupStats) -> linear.LinearFit:
    """Least squares of the last column on the others, in each data set."""
    last = len(stats.names) - 1
    return linear.fit(standardise(stats), last, tuple(range(last)), separate=True, unbiased=True)


def _slopes_alone(stats: GroupStats, k: int, interval: float) -> tuple[Floats, Floats]:
    """Least squares in each data set: a slope, and half of its interval, (F,) each.

    NaN where the rows do not give it. The interval is Student's, because data sets can be small.

    Args:
        stats: of the parents and, last, the child.
        k: which coefficient, the intercept being the first.
        interval: the probability of the interval.
    """
    from scipy.special import stdtrit

    f = alone(stats)
    ok = np.isfinite(f.loglik)
    t = stdtrit(np.where(ok, stats.n - len(stats.names), 1), (1 + interval) / 2)
    return (
        np.where(ok, f.coef[:, k], math.nan),
        np.where(ok, t * np.sqrt(f.coef_cov[:, k, k]), math.nan),
    )
