"""How fits ended, in words: the status, and which columns and data sets it is about."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from poolbn.nodes import linear, lmm
from poolbn.nodes.localfit import Status
from poolbn.wording import counted, listed

Ending = tuple[Status, str]


def dependent(parent: str, where: str) -> Ending:
    """A parent that the others determine."""
    return (
        Status.RANK_DEFICIENT,
        f"in {where}, {parent!r} is constant or an exact combination of other parents; "
        "leave it out",
    )


def of_linear(
    f: linear.LeastSquaresFit, child: str, parents: Sequence[str], tables: Sequence[str]
) -> Ending:
    """Of regressions in one or more tables: the first one in trouble decides."""
    q = len(parents) + 1
    for j, where in enumerate(tables):
        if f.few[j]:
            return (
                Status.TOO_FEW_ROWS,
                f"{where} has {_rows(f, j)}, and {counted(q, 'coefficient')} and a variance need "
                f"at least {q + 1}; pool, or use fewer parents",
            )
        if f.dependent[j] >= 0:
            return dependent(parents[f.dependent[j]], where)
        if f.determined[j]:
            return (
                Status.NO_RESIDUAL_VARIANCE,
                f"in {where}, {child!r} is constant or an exact combination of its parents",
            )
    return Status.CONVERGED, "least squares, in closed form"


def of_exact_fit(
    f: linear.LeastSquaresFit, child: str, parents: Sequence[str], tables: Sequence[str]
) -> Ending:
    """Of a mixed-effects model with separate residuals: the first data set that leaves none."""
    j = int(np.argmax(f.determined))
    q = len(parents) + 1
    remedy = "the likelihood has no maximum; use Partial(residuals='pooled'), or 'shared'"
    if f.few[j]:
        return (
            Status.TOO_FEW_ROWS,
            f"{tables[j]} has {_rows(f, j)}, which {q} coefficient{'s' * (q != 1)} can fit exactly "
            f"with a residual variance of its own near zero, so {remedy}",
        )
    return (
        Status.NO_RESIDUAL_VARIANCE,
        f"in {tables[j]}, {child!r} is constant or an exact combination of its parents, so "
        f"{remedy}",
    )


def raised(ending: Ending, child: str, levels: Sequence[Hashable]) -> Ending:
    """With the data sets in which a residual variance had to be held above zero."""
    if not levels:
        return ending
    return ending[0], (
        f"{ending[1]}; in {listed(list(map(repr, levels)))} the parents of {child!r} leave next to "
        "no residual, and its variance is held above zero"
    )


def _rows(f: linear.LeastSquaresFit, j: int) -> str:
    n = int(f.n[j])
    return f"{n} row{'s' * (n != 1)}"


def of_mixed(f: lmm.MixedFit, coefficients: Sequence[str], random: Sequence[str]) -> Ending:
    """Of a mixed-effects model: which variances of the random coefficients are zero."""
    if not f.converged:
        return (
            Status.NOT_CONVERGED,
            "the search for the maximum was stopped; the likelihood may rise without bound, or "
            "the data sets have too few rows to distinguish random effects from residuals; do not "
            "use this fit",
        )
    if f.rank == len(random):
        return Status.CONVERGED, "all variances of the random effects are positive"
    if f.rank == 0:
        same = (f.sigma2 == f.sigma2[0]).all()
        what = "the same as complete pooling" if same else "coefficients do not differ"
        return Status.SINGULAR, f"all variances of the random effects are zero: {what}"
    between, errors = f.random_cov.diagonal().tolist(), f.fixed_cov.diagonal().tolist()
    zero = [
        name
        for name, spread, error in zip(coefficients, between, errors, strict=True)
        if name in random and spread <= 1e-9 * error
    ]
    parts = []
    if zero:
        parts.append(f"no variation between data sets in {', '.join(zero)}")
    if f.rank < len(random) - len(zero):
        parts.append("random effects have correlations of 1 or -1")
    return Status.SINGULAR, "; ".join(parts)
