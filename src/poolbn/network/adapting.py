"""A data set that was not learned from: its coefficients, from its own rows or from none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.moments.groupstats import GroupStats, stats
from poolbn.moments.standardised import standardise
from poolbn.nodes.blup import effective_df, random_effects, total_cov
from poolbn.nodes.intervals import Intervals
from poolbn.nodes.localfit import GaussianFit
from poolbn.nodes.mixed import expected_variance
from poolbn.nodes.poolings import NoPooling


def new_data_set(
    source: object,
    name: Hashable,
    *,
    levels: Sequence[Hashable],
    nodes: Sequence[str],
    missing: Literal["error", "drop"],
) -> GroupStats:
    """The statistics of the nodes in one data set called `name`; of no rows if `source` is None.

    Raises:
        DataError: the name is no name or one of `levels`, there is more than one data set, or the
            rows cannot be used.
    """
    if name is None or not isinstance(name, Hashable):
        raise DataError(
            Option("name", name),
            " does not name a data set; use a text or a number, ",
            Option("name", "new clinic"),
        )
    if name in levels:
        raise DataError(
            f"data set {name!r} is already in the network; give the new rows another name, or "
            "learn anew from all rows"
        )
    N = len(nodes)
    if source is None:
        none = np.zeros(1, dtype=np.int64)
        return GroupStats(tuple(nodes), (name,), none, np.zeros((1, N)), np.zeros((1, N, N)), none)
    if not isinstance(source, GroupStats | Mapping | str | PathLike | list | tuple):
        source = {name: source}
    found = stats(source, columns=nodes, missing=missing)
    if len(found.levels) > 1:
        more = ", ..." if len(found.levels) > 3 else ""
        raise DataError(
            f"there are {len(found.levels)} data sets, {', '.join(map(repr, found.levels[:3]))}"
            f"{more}; adapt to one at a time, or learn anew from all"
        )
    return replace(found, levels=(name,))


def adapted(fit: GaussianFit, n: NDArray[np.int64], new: GroupStats) -> GaussianFit:
    """The fit with one more data set, and everything else as it was.

    Partial pooling predicts the random effects of the new data set, given the fixed effects and
    the covariances that were learned. Complete pooling says that it is like all others: it has
    their coefficients, and `coef_cov` is zero because the uncertainty of what all share is left out
    of predictions for the others too. Without pooling there is nothing to go by but its own rows.

    Pooled residual variances give the one to be expected after the new rows were seen. Others that
    differ between data sets give their mean weighted by rows: what a variance shared by all would
    be estimated as, given the coefficients.

    Args:
        fit: a node.
        n: rows of each data set that it has, (F,).
        new: the statistics of the new data set.

    Raises:
        DataError: without pooling, the rows do not give all coefficients and a variance.
    """
    # As a difference, so that equal variances stay equal to the last bit.
    sigma2 = fit.sigma2[0] + np.average(fit.sigma2 - fit.sigma2[0], weights=n)
    q = len(fit.parents) + 1
    squares = df = effective = 0.0  # it got its variance from the others
    if fit.fixed is None:
        own = _alone(new, fit.child, fit.parents)
        coef, cov, sigma2 = own.coef[0], own.coef_cov[0], own.sigma2[0]
        squares, df = own.squares[0], own.df[0]
    elif fit.random_cov is None:
        coef, cov = fit.fixed, np.zeros((q, q))
    else:
        family = new.family(fit.child, fit.parents)
        scale, shape = fit.residual_scale, fit.residual_shape
        unit = float(sigma2) if scale is None else scale  # that `random_cov` is for
        b, cov, generalised = random_effects(family, fit.fixed, fit.random_cov, unit)
        effective = effective_df(fit.random_cov, cov[None])[0]
        if (
            shape is not None
        ):  # random effects in proportion to the residual variance, which the rows tell about
            rows = family.n.astype(np.float64)
            found = np.array([generalised])
            sigma2 = expected_variance(shape, unit, rows, found)[0]
            cov *= sigma2 / unit
            squares = generalised
        coef = fit.fixed + b
    known = replace(
        fit,
        levels=(*fit.levels, *new.levels),
        coef=np.vstack([fit.coef, coef]),
        coef_cov=np.concatenate([fit.coef_cov, cov[None]]),
        sigma2=np.append(fit.sigma2, sigma2),
        squares=np.append(fit.squares, squares),
        df=np.append(fit.df, df),
        effective_df=np.append(fit.effective_df, effective),
        sums=None,
    )
    return replace(known, saved_intervals=_with_new(fit.intervals, known, new))


def _with_new(found: Intervals | None, fit: GaussianFit, new: GroupStats) -> Intervals | None:
    """The intervals with those of the new data set, the last of the fit."""
    if found is None:
        return None
    q = len(fit.parents) + 1
    se, df = found.population_se, found.population_df
    if fit.fixed is None:
        se, df = fit.coef_sd[-1], np.full(q, float(new.n[0] - q))
    elif fit.random_cov is not None and fit.fixed_cov is not None:
        fitted = np.sqrt(np.diagonal(fit.fixed_cov))
        wider = np.divide(se, fitted, out=np.ones(q), where=fitted > 0)
        known = replace(fit, fixed_cov=fit.fixed_cov * np.outer(wider, wider))
        cov = total_cov(known, -1, new.family(fit.child, fit.parents))
        se = np.sqrt(np.diagonal(cov))
    own = fit.coef[-1], se, df
    center, se, df = (np.vstack([of, row[1:]]) for of, row in zip(found[2:], own, strict=True))
    return found._replace(center=center, se=se, df=df)


def _alone(new: GroupStats, child: str, parents: Sequence[str]) -> GaussianFit:
    """Least squares on the rows of the new data set alone."""
    rows, q = new.n_rows, len(parents) + 1
    alone = "without pooling there is no population to predict from"
    if rows <= q:
        raise DataError(
            f"{alone}: {q} coefficient{'s' * (q > 1)} and a variance of {child!r} need at least "
            f"{q + 1} rows of data set {new.levels[0]!r}, and there are {rows}; give more rows, or "
            "learn with ",
            Option("pooling", "partial"),
        )
    data = standardise(new)
    fit = NoPooling().fit(data, data.family(child, parents), np.zeros(3))
    if not fit.status.ok:
        raise DataError(f"{alone}, and {fit.detail}; or learn with ", Option("pooling", "partial"))
    return fit
