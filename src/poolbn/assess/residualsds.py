"""One node's residual SD in each data set: the network's estimate beside that of the data set."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.arceffects import (
    Common,
    Estimates,
    Floats,
    by_level,
    family,
)
from poolbn.errors import DataError, check_interval
from poolbn.moments.data import Data
from poolbn.moments.groupstats import GroupStats
from poolbn.network.network import Network, checked_data
from poolbn.nodes.gaussianfit import least_squares
from poolbn.nodes.localfit import LinearFit, Status


def residual_sds(
    net: Network,
    node: str,
    *,
    stats: Data | None = None,
    interval: float = 0.95,
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
            f"{node!r} is not continuous and has no residual SD: it has a {net.fits[node].model}; "
            f"see net.fits[{node!r}]"
        )
    F = len(fit.levels)
    adapted = np.array([level in net.adapted for level in fit.levels])
    known = fit.status.ok and fit.status is not Status.GIVEN
    variance, ends = fit.sigma2, np.full((F, 2), math.nan)
    common, common_ends, new_ends = float(np.mean(variance[~adapted])), ends[0], ends[0]
    one = fit.fixed is not None and float(np.ptp(variance[~adapted])) == 0
    own_stats = family(net, fit, checked_data(net, stats))
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
    single, single_ends = np.full(F, math.nan), np.full((F, 2), math.nan)
    if own_stats is not None and fit.fixed is not None:
        own = _variances_alone(own_stats, interval)
        single, single_ends = (by_level(fit, own_stats, values) for values in own)
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
        population_interval=_pair(common_ends),
        new_interval=_pair(new_ends),
    )


def _pair(ends: Floats) -> tuple[float, float]:
    low, high = np.sqrt(ends).tolist()
    return low, high


def _ends(v: Floats, g: Floats, interval: float) -> Floats:
    """The middle of inverse gamma distributions with shapes v and scales g, (k, 2).

    The variance behind a sum of squares RSS with d degrees of freedom has the interval of v = d / 2
    and g = RSS / 2. NaN where v is not positive.
    """
    from scipy.special import gammaincinv

    shape = np.where(v > 0, v, math.nan)
    tails = [(1 + interval) / 2, (1 - interval) / 2]
    return np.stack([g / gammaincinv(shape, tail) for tail in tails], axis=1)


def _components(n: NDArray[np.int64], squares: Floats, scale: float) -> tuple[Floats, ...]:
    """Weights, shapes a and common values s of what pooled variances may be drawn from, (K,) each.

    The likelihood of a and s given rows and residual squares q_j, (F,) each, with all values of log
    s alike before, and all of 1 / sqrt(a), which is about the SD of log variances: for that one
    Gelman (2006) advises a uniform prior. Other parameters are taken as known; `scale` is the
    estimate of s.
    """
    from scipy.special import gammaln

    spread = np.linspace(0.05, 2.0, 24)[:, None]
    a = spread**-2
    # The SD of the mean of log variances, in whose units s is varied.
    step = np.sqrt(2 / n.sum() + spread**2 / len(n))
    log_s = math.log(scale) + step * np.linspace(-4, 4, 17)
    b = a * np.exp(log_s)
    v = a[..., None] + n / 2
    density = (
        (gammaln(v) - gammaln(a)[..., None] + (a * np.log(b))[..., None]).sum(axis=-1)
        - (v * np.log(b[..., None] + squares / 2)).sum(axis=-1)
        + np.log(step)
    )
    weight = np.exp(density - density.max())
    keep = weight > 1e-3
    total = weight[keep].sum()
    return weight[keep] / total, np.broadcast_to(a, b.shape)[keep], np.exp(log_s)[keep]


def _mixture_ends(weight: Floats, v: Floats, g: Floats, interval: float) -> Floats:
    """The middle of mixtures, weights (K,), of inverse gammas, shapes and scales (k, K); (k, 2)."""
    from scipy.special import gammaincc, gammaincinv

    ends = []
    for below in ((1 - interval) / 2, (1 + interval) / 2):
        each = np.log(g / gammaincinv(v, 1 - below))
        low, high = each.min(axis=1), each.max(axis=1)
        for _ in range(25):  # halved, to 6 digits and more
            middle = (low + high) / 2
            less = gammaincc(v, g / np.exp(middle)[:, None]) @ weight < below
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        ends.append(np.exp((low + high) / 2))
    return np.stack(ends, axis=1)


def _medians(a: Floats, s: Floats) -> Floats:
    """Of inverse gamma distributions with shapes a, which may be inf, and scales a s."""
    from scipy.special import gammaincinv

    finite = np.where(np.isinf(a), 1.0, a)
    return np.asarray(np.where(np.isinf(a), s, finite * s / gammaincinv(finite, 0.5)))


def _quantiles(values: Floats, weight: Floats, interval: float) -> Floats:
    """The middle of values with weights, (2,)."""
    order = np.argsort(values)
    upto = np.cumsum(weight[order]) - weight[order] / 2
    return np.interp([(1 - interval) / 2, (1 + interval) / 2], upto, values[order])


def _chi_square(
    fit: LinearFit, n: NDArray[np.int64], adapted: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
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
