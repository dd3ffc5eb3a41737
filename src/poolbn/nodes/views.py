"""Which data sets a node's likelihood is about: what a column does inside data sets decides it.

A child that is constant in a data set would let a residual variance of that data set's own go to 0,
and the likelihood rise without bound. Any floor in its place would decide a search. So where data
sets have residual variances of their own, such a data set is left out of the likelihood of that
child, for every parent set alike. So it is with a shared variance where data sets with most of the
rows have a constant child: their residuals of 0 would make the variance small, and any parents good
that fit the few rows that vary. A child that is constant in each data set has one value in each,
see `grouplevel`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes import grouplevel
from poolbn.nodes.adapting import Adapted, adapted, appended, in_order
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import Counts, Status
from poolbn.nodes.model import Likelihoods, NeighbourScores
from poolbn.wording import listed

Flags = NDArray[np.bool_]


def nothing(families: int) -> Likelihoods:
    """Of families without a likelihood: -inf, and no parameters."""
    counts = np.zeros((families, len(Counts._fields)), np.int64)
    return Likelihoods(np.full(families, -np.inf), counts, np.zeros(families))


def likelihoods(
    data: StandardisedStats,
    families: Sequence[Family],
    compute: Callable[[StandardisedStats, Sequence[Family]], Likelihoods],
    *,
    leave_out: bool,
    values: bool = True,
) -> Likelihoods:
    """What `compute` says of each family, from the data sets that its likelihood is about.

    Args:
        data: the statistics.
        families: the families.
        compute: of a view, and some families.
        leave_out: whether data sets in which a child is constant are always left out.
        values: whether data sets count: a child that has one value in each is a regression of
            these, and where it has in most, the others tell of it.
    """
    if not data.some_constant:
        return compute(data, families)
    found = nothing(len(families))
    views: dict[StandardisedStats | None, list[int]] = {}
    for m, (child, _) in enumerate(families):
        views.setdefault(data_sets_for(data, child, leave_out=leave_out, values=values), []).append(
            m
        )
    for view, at in views.items():
        some = [families[m] for m in at]
        part = grouplevel.likelihoods(data, some) if view is None else compute(view, some)
        for whole, some_of_it in zip(found, part, strict=True):
            whole[at] = some_of_it
    return found


def by_level(
    data: StandardisedStats,
    families: Sequence[Family],
    compute: Callable[[StandardisedStats, Sequence[Family]], Likelihoods],
) -> Likelihoods:
    """What `compute` says of each family, where some columns describe units.

    As children these have one value a unit, and no parents that vary inside units.
    """
    found, level = nothing(len(families)), data.unit_level
    above = level | data.group_level
    of_units = [m for m, (child, _) in enumerate(families) if level[child]]
    views = ((data.without_unit_level, [m for m in range(len(families)) if m not in of_units]), (
        data.of_units, [m for m in of_units if all(above[p] for p in families[m][1])]
    ))  # fmt: skip
    for view, at in views:
        part = compute(view, [families[m] for m in at]) if at else nothing(0)
        for whole, some_of_it in zip(found, part, strict=True):
            whole[at] = some_of_it
    return found


def fit_of_units(
    data: StandardisedStats,
    family: Family,
    compute: Callable[[StandardisedStats, Family], GaussianFit],
) -> GaussianFit:
    """The final fit of a child that describes units."""
    assert data.units is not None
    view, (child, parents) = data.of_units, family
    made = replace(
        compute(view, family), unit=data.units.name, unit_share=np.ones(len(view.levels))
    )
    above = data.unit_level | data.group_level
    rows = [data.names[p] for p in parents if not above[p]]
    if not rows:
        return made
    return replace(
        made,
        loglik=-np.inf,
        status=Status.NO_RESIDUAL_VARIANCE,
        detail=f"{data.names[child]!r} is constant in each unit, and its parent {rows[0]!r} is "
        "not; leave that arc out",
    )


def neighbours(
    data: StandardisedStats,
    families: Sequence[Family],
    candidates: Flags,
    compute: Callable[
        [StandardisedStats, Sequence[Family], Flags], tuple[NDArray[np.float64], Flags]
    ],
) -> NeighbourScores | None:
    """What `compute` says of all changes of parents, likewise; None where it cannot."""
    if not data.some_constant:
        return NeighbourScores(*compute(data, families, candidates))
    found = NeighbourScores(np.empty(candidates.shape), np.empty(candidates.shape, dtype=bool))
    for m, family in enumerate(families):
        view = data_sets_for(data, family[0], leave_out=False)
        if view is None:
            return None
        (found.values[m],), (found.exact[m],) = compute(view, [family], candidates[m : m + 1])
    return found


def fit(
    data: StandardisedStats,
    family: Family,
    compute: Callable[[StandardisedStats, Family], GaussianFit],
    *,
    leave_out: bool,
    values: bool = True,
) -> GaussianFit:
    """The final fit in the same way, for all data sets."""
    if not data.some_constant:
        return compute(data, family)
    view = data_sets_for(data, family[0], leave_out=leave_out, values=values)
    if view is None:
        return grouplevel.fit(data, family)
    found = compute(view, family)
    return found if view is data else _with_left_out(found, data, family, view)


def data_sets_for(
    data: StandardisedStats, child: int, *, leave_out: bool, values: bool = True
) -> StandardisedStats | None:
    """The data sets that count for a child, or None where it has one value in each; see above."""
    if values and data.group_level[child]:
        return None
    leave_out = leave_out or bool(values and data.mostly_constant[child])
    return data.where_varying(child) if leave_out else data.where_measured(child)


def _with_left_out(
    fit: GaussianFit, data: StandardisedStats, family: Family, view: StandardisedStats
) -> GaussianFit:
    """The fit with the data sets that were left out.

    They are data sets that it was not learned from: their coefficients follow from their rows and
    what the others have in common. Without pooling nothing is: such a data set has its constant,
    and the variance that it would have with one row more, whose square is the residual variance of
    the others; or, where a column was not measured, the mean of the others' coefficients.
    """
    at = np.array([j for j, level in enumerate(data.levels) if level not in view.levels])
    unmeasured = data.unmeasured[at, family[0]]
    left_out = tuple(data.levels[j] for j in at)
    found = fit
    for j, level in zip(at.tolist(), left_out, strict=True):
        rows = data.in_units(j, family)
        if data.unmeasured[j, family[0]]:  # then there are none of the child
            rows = replace(rows, n=np.zeros(1, dtype=np.int64))
        variance = float(np.average(fit.sigma2, weights=view.n))
        if fit.fixed is None and not rows.n[0]:
            spread = np.atleast_2d(np.cov(fit.coef.T, ddof=0))  # a scalar without parents
            own = Adapted(fit.coef.mean(axis=0), spread, variance)
        elif fit.fixed is None:
            own = _constant(float(rows.mean[0, -1]), variance, float(data.n[j]), len(family[1]) + 1)
        else:
            own = adapted(fit, view.n, rows)
        found = appended(found, level, own, rows)
    why = " and ".join(
        f"{what} {listed([repr(data.levels[j]) for j in these])}"
        for what, these in (
            ("is constant in", at[~unmeasured]), ("was not measured in", at[unmeasured])
        )
        if len(these)
    )  # fmt: skip
    return replace(
        in_order(found, data.levels),
        n_rows=int(data.rows),
        left_out=left_out,
        detail=f"{fit.detail}; {fit.child!r} {why}, left out of its likelihood",
    )


def _constant(value: float, variance: float, n: float, q: int) -> Adapted:
    coef, cov = np.zeros(q), np.zeros((q, q))
    coef[0], cov[0, 0] = value, variance / n**2
    return Adapted(coef, cov, variance / n, squares=variance, df=n)
