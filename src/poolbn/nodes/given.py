"""Nodes whose parameters have no error: set by an intervention or a simulation, or inputs."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import standardise
from poolbn.nodes.gaussianfit import GaussianFit, of_values
from poolbn.nodes.localfit import Counts, Floats, Given, Pooling, Status


def given_fit(
    child: str,
    parents: tuple[str, ...],
    levels: tuple[Hashable, ...],
    given: Pooling,
    detail: str,
    *,
    coef: Floats,
    sigma2: Floats,
    fixed: Floats,
    random_cov: Floats | None = None,
    loglik: float = 0.0,
    own_params: int = 0,
    n_rows: int,
) -> GaussianFit:
    """A node with these coefficients (F, q) and variances (F,), without error.

    `own_params` are those of single data sets, in all of them.
    """
    F, q = coef.shape
    return GaussianFit(
        child=child,
        parents=parents,
        given=((),) * len(parents),
        levels=levels,
        pooling=given,
        coef=coef,
        coef_cov=np.zeros((F, q, q)),
        sigma2=sigma2,
        squares=np.zeros(F),
        df=np.zeros(F),
        effective_df=np.zeros(F),
        rows=np.zeros(F),
        total_cov=np.zeros((F, q, q)),
        between_cov=np.zeros((F, q, q)),
        unbiased=False,
        fixed=fixed,
        fixed_cov=np.zeros((q, q)),
        random_cov=random_cov,
        loglik=loglik,
        counts=Counts(0, 0, own_params),
        n_rows=n_rows,
        status=Status.GIVEN,
        detail=detail,
    )


INPUT = Given("input")
INPUT_DETAIL = (
    "an input has no distribution; where a row lacks it, that of its data set's rows counts"
)


def input_fit(stats: GroupStats, name: str) -> GaussianFit:
    """An input: what each data set has of it, for rows that lack it; it has no likelihood."""
    i = stats.names.index(name)
    mean, variance = of_values(stats, name)
    return given_fit(
        name,
        (),
        stats.levels,
        INPUT,
        INPUT_DETAIL,
        coef=mean[:, None],
        sigma2=variance,
        fixed=standardise(stats).center[[i]],
        n_rows=stats.n_rows,
    )
