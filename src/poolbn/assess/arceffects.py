"""An arc's effects in each data set: the network's estimates beside those of the data set alone.

An arc between continuous columns has one effect, a discrete parent or child one for each level but
the first.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, check_interval, nearest
from poolbn.moments.data import Data, sums_with
from poolbn.moments.groupstats import GroupStats
from poolbn.network.network import Network, checked_data
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import LinearFit, LocalFit, Pooling
from poolbn.nodes.poolings import Complete, NoPooling
from poolbn.wording import Noun

Floats = NDArray[np.float64]


class Common(StrEnum):
    """What the estimate below those of the data sets is of."""

    POPULATION = "population of {}"
    MEAN = "mean of the {}"
    ALL = "all {} together"

    def words(self, sets: Noun) -> str:
        """It in words, with what data sets are called."""
        return self.value.format(sets.many)


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimates:
    """Estimates of an arc's effect or a node's residual SD in all data sets.

    Intervals are (lower, upper). Those of effects have all that is uncertain, the variance between
    data sets too (`nodes.shrinking`).
    """

    parent: str | None  # of the arc; None for the residual SD
    child: str  # of the arc, or the node
    pooling: Pooling  # how the child's fit shares strength
    levels: tuple[Hashable, ...]  # the F data sets
    n: NDArray[np.int64]  # their rows, (F,)
    adapted: NDArray[np.bool_]  # which of them were not learned from, (F,)
    effect: Floats  # in each data set, as the network has it, (F,)
    interval: Floats  # of these, (F, 2)
    alone: Floats  # the estimate from the data set's own rows, NaN where there is none, (F,)
    alone_interval: Floats  # of these, (F, 2)
    common: Common  # what `population` is of
    population: float  # in the population of data sets; without pooling the mean
    population_interval: tuple[float, float]  # of that
    new_interval: tuple[float, float]  # expected for a new data set; NaN unless pooling is partial
    between_sd: float = math.nan  # between data sets, under any pooling; NaN for an SD
    level: str = ""  # of a discrete parent; "" for others
    base: str = ""  # the first level of it, with which that is compared
    outcome: str = ""  # the level of a discrete child; "" for others
    outcomes: tuple[str, ...] = ()  # all levels of it; the outcome is compared with the first
    # "difference"; or "odds ratio" or "rate ratio", of which all numbers are logarithms.
    scale: str = "difference"

    @property
    def is_ratio(self) -> bool:
        """Whether numbers are logarithms of ratios."""
        return self.scale != "difference"

    def reported(self, value: Any) -> Any:
        """Numbers as a reader has them: ratios, not their logarithms."""
        return np.exp(value) if self.is_ratio else value


def arc_effects(
    net: Network,
    parent: str,
    child: str,
    *,
    stats: Data | None = None,
    interval: float = 0.95,
) -> tuple[Estimates, ...]:
    """Collect the estimates of one arc, one for each `Term` of it.

    Statistics, or rows, are by default those that the network was learned from. Without any, as for
    a loaded network, there are no estimates of data sets alone.
    """
    check_interval(interval)
    check_arc(net, parent, child)
    fit, base = net.fits[child], net.fits[parent].categories[:1]
    stats = checked_data(net, stats)
    terms = list(fit.terms(parent))
    single = _alone(fit, parent, stats, interval) or [_nothing(fit)] * len(terms)
    found = []
    for term, (alone, alone_interval) in zip(terms, single, strict=True):
        se, df = term.own_se, term.own_df
        if (linear := fit.gaussian) is not None:
            k = linear.position(term.column)
            se, df = linear.own_errors(k, family(net, linear, stats))
        found.append(
            Estimates(
                parent=parent,
                child=child,
                pooling=fit.pooling,
                levels=fit.levels,
                n=net.n,
                adapted=np.array([level in net.adapted for level in fit.levels]),
                effect=term.own,
                interval=t_interval(term.own, se, df, interval),
                alone=alone,
                alone_interval=alone_interval,
                common=_common(fit.pooling),
                population=term.effect,
                population_interval=_pair(t_interval(term.effect, term.se, term.df, interval)),
                new_interval=_pair(t_interval(term.effect, term.new_se, term.df, interval)),
                between_sd=term.varies,
                level=term.level,
                base=base[0] if base else "",
                outcome=term.outcome,
                outcomes=fit.categories,
                scale=term.scale,
            )
        )
    return tuple(found)


def family(net: Network, fit: LinearFit, stats: Data | None) -> GroupStats | None:
    """Statistics of the columns of a continuous node's parents and, last, of the node."""
    if stats is None:
        return None
    return sums_with(stats, [*net.dag.parents(fit.child), fit.child]).select(
        [*fit.columns, fit.child]
    )


_Alone = tuple[Floats, Floats]  # estimates of data sets alone, (F,), and intervals, (F, 2)


def _nothing(fit: LocalFit) -> _Alone:
    F = len(fit.levels)
    return np.full(F, math.nan), np.full((F, 2), math.nan)


def _alone(fit: LocalFit, parent: str, stats: Data | None, interval: float) -> list[_Alone]:
    """Estimates of data sets alone for each term of an arc; none without rows, or pooling."""
    known = fit.gaussian is not None or fit.status.ok
    if stats is None or isinstance(fit.pooling, NoPooling) or not known:
        return []
    return [
        (by_level(fit, stats, value), by_level(fit, stats, t_interval(value, se, df, interval)))
        for value, se, df in fit.alone(parent, stats)
    ]


def _pair(ends: Floats) -> tuple[float, float]:
    lower, upper = ends.tolist()
    return lower, upper


def _common(pooling: Pooling) -> Common:
    if isinstance(pooling, Complete):
        return Common.ALL
    return Common.MEAN if isinstance(pooling, NoPooling) else Common.POPULATION


def by_level(fit: LocalFit, stats: Data, values: Floats) -> Floats:
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
