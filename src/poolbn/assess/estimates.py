"""An arc's effects or a node's residual SD in each data set: as the network has them, and alone.

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

from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import DataError, GraphError, check_interval, nearest
from poolbn.later import special
from poolbn.moments.data import Data, sums_with
from poolbn.moments.groupstats import GroupStats
from poolbn.network.network import Network, checked_data
from poolbn.nodes.gaussianfit import least_squares
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import LinearFit, LocalFit, Pooling, Status
from poolbn.nodes.poolings import Complete, NoPooling
from poolbn.wording import Noun


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
    n: Integers  # their rows, (F,)
    adapted: Flags  # which of them were not learned from, (F,)
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
    outcome: str = ""  # the level of a discrete child; "" for others, ordinal ones among them
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
    net: Network, parent: str, child: str, *, stats: Data | None = None, interval: float = 0.95
) -> tuple[Estimates, ...]:
    """Collect the estimates of one arc, one for each `Term` of it.

    Statistics, or rows, are by default those that the network was learned from. Without any, as for
    a loaded network, there are no estimates of data sets alone.
    """
    check_interval(interval)
    _check_arc(net, parent, child)
    fit, base = net.fits[child], net.fits[parent].categories[:1]
    stats = checked_data(net, stats)
    terms = list(fit.terms(parent))
    single = _alone(fit, parent, stats, interval) or [_nothing(len(fit.levels))] * len(terms)
    found = []
    for term, (alone, alone_interval) in zip(terms, single, strict=True):
        se, df = term.own_se, term.own_df
        if (linear := fit.gaussian) is not None:
            k = linear.position(term.column)
            se, df = linear.own_errors(k, _family(net, linear, stats))
            se = np.where(np.isnan(term.own), np.nan, se)  # where the child was set
        found.append(
            Estimates(
                parent=parent,
                child=child,
                pooling=fit.pooling,
                levels=fit.levels,
                n=net.n,
                adapted=_adapted(net, fit),
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
                outcomes=fit.categories if term.outcome else (),
                scale=term.scale,
            )
        )
    return tuple(found)


def _family(net: Network, fit: LinearFit, stats: Data | None) -> GroupStats | None:
    """Statistics of the columns of a continuous node's parents and, last, of the node."""
    if stats is None:
        return None
    parents = net.dag.parents(fit.child)
    return sums_with(stats, [*parents, fit.child]).select([*fit.columns, fit.child])


def _adapted(net: Network, fit: LocalFit) -> Flags:
    return np.array([level in net.adapted for level in fit.levels])


_Alone = tuple[Floats, Floats]  # estimates of data sets alone, (F,), and intervals, (F, 2)


def _nothing(F: int) -> _Alone:
    return np.full(F, math.nan), np.full((F, 2), math.nan)


def _alone(fit: LocalFit, parent: str, stats: Data | None, interval: float) -> list[_Alone]:
    """Estimates of data sets alone for each term of an arc; none without rows, or pooling."""
    able = fit.gaussian is not None or fit.status.ok
    if stats is None or isinstance(fit.pooling, NoPooling) or not able:
        return []
    known = fit.about(stats)
    return [
        (_by_level(fit, known, value), _by_level(fit, known, t_interval(value, se, df, interval)))
        for value, se, df in fit.alone(parent, known)
    ]


def _pair(ends: Floats) -> tuple[float, float]:
    lower, upper = ends.tolist()
    return lower, upper


def _common(pooling: Pooling) -> Common:
    if isinstance(pooling, Complete):
        return Common.ALL
    return Common.MEAN if isinstance(pooling, NoPooling) else Common.POPULATION


def _by_level(fit: LocalFit, stats: Data, values: Floats) -> Floats:
    """Values of the data sets of statistics, (F', ...), as (F, ...) of a fit; NaN for others."""
    index = {level: j for j, level in enumerate(stats.levels)}
    known = [j for j, level in enumerate(fit.levels) if level in index]
    found = np.full((len(fit.levels), *values.shape[1:]), math.nan)
    found[known] = values[[index[fit.levels[j]] for j in known]]
    return found


def _check_arc(net: Network, parent: str, child: str) -> None:
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


def residual_sds(
    net: Network, node: str, *, stats: Data | None = None, interval: float = 0.95
) -> Estimates:
    """Collect the residual SDs of one node.

    `population` is the median of the distribution of pooled variances, the one SD where there is
    one, else the root of the mean variance. Only pooled variances have a `new_interval`. Where
    there is one SD, its interval is `population_interval`, and data sets have none.

    Pooled variances are inverse gamma once the rows are seen (`mixed.expected_variance`) and their
    spread and common value are known; both are uncertain too, so intervals are from a mixture of
    such distributions (`_components`). Others have those of chi-square, with the degrees of freedom
    that the coefficients leave; with random effects that is an approximation. A data set that was
    adapted to has an interval only if variances are pooled, or nothing is. A fit without a
    likelihood, or given, has none. Of `stats` see `arc_effects`.
    """
    check_interval(interval)
    net.dag.parents(node)  # which raises for an unknown node
    fit = net.fits[node].gaussian
    if fit is None:
        raise DataError(
            f"{node!r} does not have one residual SD in each data set: it has a "
            f"{net.fits[node].model}; see net.fits[{node!r}]"
        )
    adapted = _adapted(net, fit)
    known = fit.status.ok and fit.status is not Status.GIVEN
    variance, (single, ends) = fit.sigma2, _nothing(len(fit.levels))
    single_ends, common_ends, new_ends = ends, ends[0], ends[0]
    common = float(np.mean(variance[~adapted]))
    one = fit.fixed is not None and float(np.ptp(variance[~adapted])) == 0
    own_stats = _family(net, fit, checked_data(net, stats))
    if known and fit.residual_scale is not None:
        shape, scale = float(fit.residual_shape or math.inf), fit.residual_scale
        common = float(_medians(np.array(shape), np.array(scale)))
        one = False
        weight, a, s = _components(net.n[~adapted], fit.squares[~adapted], scale)
        v, g = a + net.n[:, None] / 2, a * s + fit.squares[:, None] / 2
        ends = _mixture_ends(weight, v, g, interval)
        new_ends = _mixture_ends(weight, a[None], (a * s)[None], interval)[0]
        common_ends = _quantiles(_medians(a, s), weight, interval)
    elif known and not one:
        ends = _ends(*_chi_square(fit, net.n, adapted), interval)
    if known and one:
        v, g = _chi_square(fit, net.n, adapted)
        common_ends = _ends(v.sum(keepdims=True), g.sum(keepdims=True), interval)[0]
    if own_stats is not None and fit.fixed is not None:
        own = _variances_alone(own_stats, interval)
        single, single_ends = (_by_level(fit, own_stats, values) for values in own)
    shared = Common.ALL if np.isfinite(common_ends).all() else Common.MEAN
    if np.isfinite(new_ends).all():
        shared = Common.POPULATION
    return Estimates(
        parent=None,
        child=node,
        pooling=fit.pooling,
        levels=fit.levels,
        n=net.n,
        adapted=adapted,
        effect=np.sqrt(variance),
        interval=np.sqrt(ends),
        alone=np.sqrt(single),
        alone_interval=np.sqrt(single_ends),
        common=shared,
        population=math.sqrt(common),
        population_interval=_pair(np.sqrt(common_ends)),
        new_interval=_pair(np.sqrt(new_ends)),
    )


def _ends(v: Floats, g: Floats, interval: float) -> Floats:
    """The middle of inverse gamma distributions with shapes v and scales g, (k, 2).

    The variance behind a sum of squares RSS with d degrees of freedom has the interval of v = d / 2
    and g = RSS / 2. NaN where v is not positive.
    """
    shape = np.where(v > 0, v, math.nan)
    tails = [(1 + interval) / 2, (1 - interval) / 2]
    return np.stack([g / special.gammaincinv(shape, tail) for tail in tails], axis=1)


def _components(n: Integers, squares: Floats, scale: float) -> tuple[Floats, ...]:
    """Weights, shapes a and common values s of what pooled variances may be drawn from, (K,) each.

    The likelihood of a and s given rows and residual squares q_j, (F,) each, with all values of log
    s alike before, and all of 1 / sqrt(a), which is about the SD of log variances: for that one
    Gelman (2006) advises a uniform prior. Other parameters are taken as known; `scale` is the
    estimate of s.
    """
    spread = np.linspace(0.05, 2.0, 24)[:, None]
    a = spread**-2
    # The SD of the mean of log variances, in whose units s is varied.
    step = np.sqrt(2 / n.sum() + spread**2 / len(n))
    log_s = math.log(scale) + step * np.linspace(-4, 4, 17)
    b = a * np.exp(log_s)
    v = a[..., None] + n / 2
    density = (
        (special.gammaln(v) - special.gammaln(a)[..., None] + (a * np.log(b))[..., None]).sum(
            axis=-1
        )
        - (v * np.log(b[..., None] + squares / 2)).sum(axis=-1)
        + np.log(step)
    )
    weight = np.exp(density - density.max())
    keep = weight > 1e-3
    total = weight[keep].sum()
    return weight[keep] / total, np.broadcast_to(a, b.shape)[keep], np.exp(log_s)[keep]


def _mixture_ends(weight: Floats, v: Floats, g: Floats, interval: float) -> Floats:
    """The middle of mixtures, weights (K,), of inverse gammas, shapes and scales (k, K); (k, 2)."""
    ends = []
    for below in ((1 - interval) / 2, (1 + interval) / 2):
        each = np.log(g / special.gammaincinv(v, 1 - below))
        low, high = each.min(axis=1), each.max(axis=1)
        for _ in range(25):  # halved, to 6 digits and more
            middle = (low + high) / 2
            less = special.gammaincc(v, g / np.exp(middle)[:, None]) @ weight < below
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        ends.append(np.exp((low + high) / 2))
    return np.stack(ends, axis=1)


def _medians(a: Floats, s: Floats) -> Floats:
    """Of inverse gamma distributions with shapes a, which may be inf, and scales a s."""
    finite = np.where(np.isinf(a), 1.0, a)
    return np.asarray(np.where(np.isinf(a), s, finite * s / special.gammaincinv(finite, 0.5)))


def _quantiles(values: Floats, weight: Floats, interval: float) -> Floats:
    """The middle of values with weights, (2,)."""
    order = np.argsort(values)
    upto = np.cumsum(weight[order]) - weight[order] / 2
    return np.interp([(1 - interval) / 2, (1 + interval) / 2], upto, values[order])


def _chi_square(fit: LinearFit, n: Integers, adapted: Flags) -> tuple[Floats, Floats]:
    """Half of the degrees of freedom and of the residual squares, (F,) each; they add up.

    Adapted data sets, which got their variance from the others, count nothing.
    """
    keep = ~adapted | (fit.fixed is None)
    squares = fit.squares
    if fit.residual_scale is not None:  # `squares` are the generalised ones
        squares = fit.sigma2 * (n - fit.effective_df)
    return np.where(keep, fit.df / 2, 0.0), np.where(keep, squares / 2, 0.0)


def _variances_alone(stats: GroupStats, interval: float) -> tuple[Floats, Floats]:
    """Unbiased variance of least squares in each data set, (F,), and its interval, (F, 2).

    NaN where the rows do not give it. Statistics are of the parents and, last, the child.
    """
    f = least_squares(stats)
    df = np.where(np.isfinite(f.loglik), stats.n - len(stats.names), math.nan)
    return f.sigma2 + 0 * df, _ends(df / 2, f.sigma2 * df / 2, interval)
