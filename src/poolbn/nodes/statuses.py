"""What happened in a fit, in words."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from poolbn.nodes import linear, mixed
from poolbn.nodes.localfit import INTERCEPT, Status

_CLOSED_FORM = Status("converged", "least squares, in closed form")


def dependent(parent: str, where: str) -> Status:
    """A parent that the others determine."""
    return Status(
        "rank deficient",
        f"in {where}, {parent!r} is constant or an exact combination of other parents; "
        "leave it out",
    )


def linear_status(
    f: linear.LinearFit,
    child: str,
    parents: Sequence[str],
    tables: Sequence[str],
    rows: Sequence[int],
) -> Status:
    """Of regressions in one or more tables: the first one in trouble decides."""
    q = len(parents) + 1
    for j, where in enumerate(tables):
        if f.few[j]:
            return Status(
                "too few rows",
                f"{where} has {rows[j]} row{'s' * (rows[j] != 1)}, and {q} coefficients and a "
                f"variance need at least {q + 1}; pool, or use fewer parents",
            )
        if f.dependent[j] >= 0:
            return dependent(parents[f.dependent[j]], where)
        if f.determined[j]:
            return Status(
                "no residual variance",
                f"in {where}, {child!r} is constant or an exact combination of its parents",
            )
    return _CLOSED_FORM


def exact_fit(
    f: linear.LinearFit,
    child: str,
    parents: Sequence[str],
    levels: Sequence[Hashable],
    rows: Sequence[int],
) -> Status:
    """Of a mixed-effects model with separate residuals: the first data set that leaves none."""
    j = int(np.argmax(f.determined))
    q = len(parents) + 1
    remedy = "the likelihood has no maximum; use Partial(residuals='pooled'), or 'shared'"
    if f.few[j]:
        return Status(
            "too few rows",
            f"data set {levels[j]!r} has {rows[j]} row{'s' * (rows[j] != 1)}, which {q} "
            f"coefficient{'s' * (q != 1)} can fit exactly with a residual variance of its own near "
            f"zero, so {remedy}",
        )
    return Status(
        "no residual variance",
        f"in data set {levels[j]!r}, {child!r} is constant or an exact combination of its "
        f"parents, so {remedy}",
    )


def mixed_status(f: mixed.MixedFit, parents: Sequence[str], full: bool) -> Status:
    """Of a mixed-effects model: which variances are zero."""
    names = [INTERCEPT, *parents] if full else [INTERCEPT]
    if not f.converged:
        return Status(
            "not settled",
            "the search for the maximum was stopped; the likelihood may rise without bound, or "
            "the data sets have too few rows to tell random effects from residuals",
        )
    if f.rank == len(names):
        return Status("converged", "all variances of the random effects are positive")
    if f.rank == 0:
        same = (f.sigma2 == f.sigma2[0]).all()
        what = "the same as complete pooling" if same else "coefficients do not differ"
        return Status("boundary", f"all variances of the random effects are zero: {what}")
    zero = [
        name
        for name, variance, total in zip(
            names, np.diagonal(f.random_cov), np.diagonal(f.fixed_cov), strict=False
        )
        if variance <= 1e-9 * total
    ]
    which = f"no variation between data sets in {', '.join(zero)}" if zero else ""
    rest = f"the {len(names)} random effects vary in {f.rank} direction{'s' * (f.rank > 1)} only"
    return Status("boundary", "; ".join(part for part in (which, rest) if part))
