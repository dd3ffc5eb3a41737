"""The effects of a network: a row for each arc."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.errors import check_interval
from poolbn.graph.dag import Dag
from poolbn.nodes.localfit import GaussianFit, level_columns

if TYPE_CHECKING:
    import pandas as pd

# Columns of the table, before those of the data sets.
COLUMNS = (
    "parent", "child", "pooling", "effect", "se", "lower", "upper", "between_sd", "opposite",
)  # fmt: skip


def effects_table(
    dag: Dag, fits: Mapping[str, GaussianFit], interval: float = 0.95
) -> pd.DataFrame:
    """A row for each arc: `COLUMNS`, then the coefficient in each data set.

    Raises:
        OptionError: `interval` is not between 0 and 1.
    """
    import pandas as pd

    check_interval(interval)
    z = NormalDist().inv_cdf((1 + interval) / 2)
    levels = level_columns(fits[dag.nodes[0]].levels, COLUMNS)
    rows: list[dict[Hashable, Any]] = []
    for parent, child in dag.arcs:
        fit = fits[child]
        k = fit.position(parent)
        effect, se = fit.population(k)
        rows.append(
            {
                "parent": parent,
                "child": child,
                "pooling": str(fit.pooling),
                "effect": effect,
                "se": se,
                "lower": effect - z * se,
                "upper": effect + z * se,
                "between_sd": math.nan if fit.random_sd is None else fit.random_sd[k],
                "opposite": float(np.mean(np.sign(fit.coef[:, k]) * np.sign(effect) < 0)),
            }
            | dict(zip(levels, fit.coef[:, k], strict=True))
        )
    return pd.DataFrame(rows, columns=pd.Index([*COLUMNS, *levels], dtype=object))
