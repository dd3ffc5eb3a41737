"""Is an effect the same in all data sets? A likelihood-ratio test for each arc."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from poolbn.graph.dag import Dag
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import standardise
from poolbn.nodes import mixed
from poolbn.nodes.pooling import check_two
from poolbn.run import parallel

if TYPE_CHECKING:
    import pandas as pd


# What stands in the column of parents where residual variances are tested.
RESIDUAL = "(residual variance)"


def heterogeneity_table(stats: GroupStats, dag: Dag) -> pd.DataFrame:
    """A row for each arc, and one for each node: twice the log-likelihood ratio, and its p-value.

    An arc: the effect of one parent is the same in all data sets against a model in which it
    varies; all other coefficients vary in both. With q coefficients the larger model has a variance
    and q - 1 covariances more. The variance is 0, its least value, where the effect does not vary,
    so twice the ratio is distributed as a mixture in equal parts of chi-squares with q - 1 and q
    degrees of freedom (Stram and Lee, 1994). That is an approximation for many data sets, and
    cautious where other variances are 0 too. A node: its residual variance is the same in all data
    sets against pooled residual variances, whose spread is 0 in the same way: chi-squares with 0
    and 1 degrees of freedom. NaN where a model has no likelihood.
    """
    import pandas as pd
    from scipy.special import gammaincc

    check_two(stats)
    data = standardise(stats)

    def row(parent: str, child: str, ratio: float, df: int) -> tuple[str, str, float, float]:
        """With a p-value by chi-squares with df - 1 and df degrees of freedom."""
        ratio = max(ratio, 0.0)
        below = gammaincc((df - 1) / 2, ratio / 2) if df > 1 else float(ratio == 0)
        return parent, child, ratio, (below + gammaincc(df / 2, ratio / 2)) / 2

    def of_node(child: str) -> list[tuple[str, str, float, float]]:
        parents = dag.parents(child)
        place, places = data.index[child], [data.index[parent] for parent in parents]
        fit = mixed.fit(data, place, places, random="full")
        loglik = fit.loglik if isinstance(fit, mixed.MixedFit) else math.nan
        spread = mixed.fit(data, place, places, random="full", residuals="pooled")
        ratio = 2 * (spread.loglik - loglik) if isinstance(spread, mixed.MixedFit) else math.nan
        smaller = mixed.without_each(data, place, places) if parents else np.zeros(0)
        smaller[~np.isfinite(smaller)] = math.nan
        return [
            row(RESIDUAL, child, ratio, 1),
            *(
                row(parent, child, 2 * (loglik - value), len(parents) + 1)
                for parent, value in zip(parents, smaller.tolist(), strict=True)
            ),
        ]

    found = parallel.map_threads(of_node, dag.nodes, parallel.available_cores())
    by_name = {line[:2]: line for lines in found for line in lines}
    names = [*dag.arcs, *((RESIDUAL, node) for node in dag.nodes)]
    return pd.DataFrame(
        [by_name[name] for name in names], columns=["parent", "child", "ratio", "p_value"]
    )
