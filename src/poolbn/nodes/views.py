"""Which data sets a node's likelihood is about: what a column does inside data sets decides it.

A child that is constant in a data set would let a residual variance of that data set's own go to 0,
and the likelihood rise without bound. Any floor in its place would decide a search. So where data
sets have residual variances of their own, such a data set is left out of the likelihood of that
child, for every parent set alike. A child that is constant in each data set has one value in each,
see `grouplevel`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes import grouplevel
from poolbn.nodes.localfit import GaussianFit, Pooling
from poolbn.nodes.mixed import expected_variance
from poolbn.nodes.model import Likelihoods
from poolbn.wording import listed

Floats = NDArray[np.float64]


def nothing(families: int) -> tuple[Floats, NDArray[np.int64]]:
    """Of families without a likelihood: -inf, and no parameters."""
    return np.full(families, -np.inf), np.zeros((families, 3), dtype=np.int64)


def likelihoods(
    data: StandardisedStats,
    families: Sequence[Family],
    compute: Callable[[StandardisedStats, Sequence[Family]], Likelihoods],
    *,
    leave_out: bool,
) -> Likelihoods:
    """What `compute` says of each family, from the data sets that its likelihood is about."""
    if not data.some_constant:
        return compute(data, families)
    found = Likelihoods(*nothing(len(families)))
    views: dict[StandardisedStats | None, list[int]] = {}
    for m, (child, _) in enumerate(families):
        views.setdefault(_view(data, child, leave_out), []).append(m)
    for view, at in views.items():
        some = [families[m] for m in at]
        part = grouplevel.likelihoods(data, some) if view is None else compute(view, some)
        found.loglik[at], found.counts[at] = part.loglik, part.counts
    return found


def fit(
    data: StandardisedStats,
    family: Family,
    compute: Callable[[StandardisedStats, Family], GaussianFit],
    pooling: Pooling,
    *,
    leave_out: bool,
) -> GaussianFit:
    """The final fit in the same way, for all data sets."""
    if not data.some_constant:
        return compute(data, family)
    view = _view(data, family[0], leave_out)
    if view is None:
        return grouplevel.fit(data, family, pooling)
    found = compute(view, family)
    return found if view is data else _with_left_out(found, data, family[0], view)


def _view(data: StandardisedStats, child: int, leave_out: bool) -> StandardisedStats | None:
    """The data sets that count, or None where each of them has one value."""
    if data.group_level[child]:
        return None
    return data.where_varying(child) if leave_out else data


def _with_left_out(
    fit: GaussianFit, data: StandardisedStats, child: int, view: StandardisedStats
) -> GaussianFit:
    """The fit with the data sets that were left out, as if they had no rows.

    They have the coefficients of the population, with its spread, and a residual variance that is
    to be expected there. Without pooling there is no population: such a data set has its constant,
    and the variance that it would have with one row more, whose square is the others' residual
    variance.
    """
    F, q = len(data.levels), len(fit.parents) + 1
    out = data.constant[:, child]
    at, rest = np.flatnonzero(out), np.flatnonzero(~out)
    coef, cov = np.zeros((F, q)), np.zeros((F, q, q))
    sigma2, squares, df, effective = np.zeros((4, F))
    coef[rest], cov[rest], sigma2[rest] = fit.coef, fit.coef_cov, fit.sigma2
    squares[rest], df[rest], effective[rest] = fit.squares, fit.df, fit.effective_df
    typical = float(np.average(fit.sigma2, weights=view.n))
    if fit.fixed is None:
        coef[at, 0] = data.center[child] + data.scale[child] * data.mean[at, child]
        sigma2[at] = typical / data.n[at]
        cov[at, 0, 0] = sigma2[at] / data.n[at]
        squares[at], df[at] = typical, data.n[at]
    else:
        coef[at], cov[at] = fit.fixed, fit.coef_cov[0]
        if fit.residual_shape is not None and fit.residual_scale is not None:
            none = np.zeros(1)
            typical = float(
                expected_variance(fit.residual_shape, fit.residual_scale, none, none)[0]
            )
        sigma2[at] = typical
        if fit.random_cov is not None:
            unit = 1.0 if fit.residual_scale is None else typical / fit.residual_scale
            cov[at] = unit * fit.random_cov
    left_out = tuple(data.levels[j] for j in at)
    return replace(
        fit,
        levels=data.levels,
        coef=coef,
        coef_cov=cov,
        sigma2=sigma2,
        squares=squares,
        df=df,
        effective_df=effective,
        n_rows=int(data.rows),
        left_out=left_out,
        detail=f"{fit.detail}; {fit.child!r} is constant in {listed(list(map(repr, left_out)))}, "
        "left out of its likelihood",
    )
