"""Is an effect the same in all data sets? A likelihood-ratio test for each arc."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from poolbn import mixed, parallel
from poolbn.graph import Dag
from poolbn.pooling import check_two
from poolbn.standard import standardise
from poolbn.suffstats import GroupStats

if TYPE_CHECKING:
    import pandas as pd


def heterogeneity_table(stats: GroupStats, dag: Dag) -> pd.DataFrame:
    """A row for each arc: parent, child, twice the log-likelihood ratio, and its p-value.

    The effect of one parent is the same in all data sets against a model in which it varies; all
    other coefficients vary in both. With q coefficients the larger model has a variance and q - 1
    covariances more. The variance is 0, its least value, where the effect does not vary, so twice
    the ratio is distributed as a mixture in equal parts of chi-squares with q - 1 and q degrees of
    freedom (Stram and Lee, 1994). That is an approximation for many data sets, and cautious where
    other variances are 0 too. NaN where a model has no likelihood.
    """
    import pandas as pd
    from scipy.special import gammaincc

    check_two(stats)
    data = standardise(stats)

    def ratios(child: str) -> list[tuple[str, str, float, float]]:
        parents = dag.parents(child)
        if not parents:
            return []
        places = [data.index[parent] for parent in parents]
        larger = mixed.fit(data, data.index[child], places, full=True, reml=False)
        q = len(parents) + 1
        rows = []
        smaller = mixed.without_each(data, data.index[child], places)
        for parent, loglik in zip(parents, smaller.tolist(), strict=True):
            ratio = p = math.nan
            if isinstance(larger, mixed.MixedFit) and math.isfinite(loglik):
                ratio = max(0.0, 2 * (larger.loglik - loglik))
                p = sum(gammaincc(df / 2, ratio / 2) for df in (q - 1, q)) / 2
            rows.append((parent, child, ratio, p))
        return rows

    found = parallel.map_threads(ratios, dag.nodes, parallel.available_cores())
    by_arc = {row[:2]: row for rows in found for row in rows}
    return pd.DataFrame(
        [by_arc[arc] for arc in dag.arcs], columns=["parent", "child", "ratio", "p_value"]
    )
