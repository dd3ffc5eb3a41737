"""How sure effects are where cells are missing: fits of drawn statistics, by Rubin's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import Family, imputed
from poolbn.nodes.intervals import Intervals
from poolbn.nodes.localfit import Floats, LinearFit

_LEAST = 1e-9  # share of a variance that is due to missing cells


def intervals_with_error(fit: LinearFit, stats: GroupStats, family: Family) -> Intervals:
    """Intervals that contain what missing cells leave open.

    Effects of data sets are fitted in each completed table, under the pooling of the fit.

    Those of the population are uncertain for the spread of data sets' own estimates, which contains
    what is missing; under complete pooling they are like the others. Where a network drew the
    cells, what data sets share is uncertain too, and counts.
    """
    model: Any = fit.pooling
    known = fit.intervals
    assert known is not None
    each = [model.fit(data, family, None) for data in imputed(stats)]
    found = [(other, other.intervals) for other in each if other.intervals is not None]
    if len(found) < 2:
        return known
    others, own = zip(*found, strict=True)

    def centred(coef: Floats) -> Floats:
        return np.column_stack([coef[:, 0] + coef[:, 1:] @ known.at, coef[:, 1:]])

    values = [centred(other.coef) for other in others]
    mean, se, df = rubin(values, [i.se for i in own], [i.df for i in own])
    # The interval is around the estimate of the fit.
    made = known._replace(se=np.hypot(se, mean - centred(fit.coef)), df=df)
    drawn_by_network = stats.filled is not None and stats.filled.by_network
    if fit.fixed is not None and (fit.random_cov is None or drawn_by_network):
        fixed = [other.fixed for other, _ in found if other.fixed is not None]
        of_fits = own if fit.random_cov is None else (known,)
        _, se, df = rubin(
            fixed, [i.population_se for i in of_fits], [i.population_df for i in of_fits]
        )
        if fit.random_cov is not None:  # those of a spread between data sets are few, and stay
            df = known.population_df
        made = made._replace(population_se=se, population_df=df)
    return made


def rubin(
    estimates: Sequence[Floats], errors: Sequence[Floats], dfs: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """Estimate, standard error and degrees of freedom (Rubin, 1987; Barnard and Rubin, 1999)."""
    m = len(estimates)
    between = (1 + 1 / m) * np.var(estimates, axis=0, ddof=1)
    total = np.mean(np.square(errors), axis=0) + between
    share = np.maximum(between / np.where(total > 0, total, 1.0), _LEAST)
    df = np.mean(dfs, axis=0)
    with np.errstate(invalid="ignore"):
        left = np.where(np.isinf(df), np.inf, (df + 1) / (df + 3) * df * (1 - share))
    return np.mean(estimates, axis=0), np.sqrt(total), 1 / (share**2 / (m - 1) + 1 / left)
