"""The effects of a network: a row for each arc, or for each arc and data set."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import check_interval, check_option
from poolbn.graph.dag import Dag
from poolbn.moments.groupstats import GroupStats
from poolbn.nodes.blup import total_cov
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import GaussianFit, level_columns

if TYPE_CHECKING:
    import pandas as pd

By = Literal["arc", "data set"]

# Columns of the table, before those of the data sets.
COLUMNS = (
    "parent", "child", "pooling", "effect", "se", "df", "lower", "upper", "between_sd", "opposite",
)  # fmt: skip
_LONG = ("parent", "child", "data_set", "effect", "se", "df", "lower", "upper")


def effects_table(
    dag: Dag, fits: Mapping[str, GaussianFit], interval: float = 0.95, by: By = "arc"
) -> pd.DataFrame:
    """A row for each arc: `COLUMNS`, then the coefficient in each data set; or `_LONG`.

    Raises:
        OptionError: `interval` is not between 0 and 1, or `by` is not an option.
    """
    check_interval(interval)
    check_option("by", by, get_args(By))
    return _by_arc(dag, fits, interval) if by == "arc" else _by_data_set(dag, fits, interval)


def _by_arc(dag: Dag, fits: Mapping[str, GaussianFit], interval: float) -> pd.DataFrame:
    import pandas as pd

    levels = level_columns(fits[dag.nodes[0]].levels, COLUMNS)
    rows: list[dict[Hashable, Any]] = []
    for parent, child in dag.arcs:
        fit = fits[child]
        k = fit.position(parent)
        effect, se, df = fit.population(k)
        lower, upper = t_interval(effect, se, df, interval).tolist()
        values = (
            parent, child, str(fit.pooling), effect, se, df, lower, upper,
            math.nan if fit.random_sd is None else fit.random_sd[k],
            float(np.mean(np.sign(fit.coef[:, k]) * np.sign(effect) < 0)),
        )  # fmt: skip
        rows.append(
            dict(zip(COLUMNS, values, strict=True)) | dict(zip(levels, fit.coef[:, k], strict=True))
        )
    return pd.DataFrame(rows, columns=pd.Index([*COLUMNS, *levels], dtype=object))


def _by_data_set(dag: Dag, fits: Mapping[str, GaussianFit], interval: float) -> pd.DataFrame:
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for parent, child in dag.arcs:
        fit = fits[child]
        k = fit.position(parent)
        center, se, df = data_set_effects(fit, k)
        ends = t_interval(center, se, df, interval)
        columns = (fit.levels, fit.coef[:, k], se, df, ends[:, 0], ends[:, 1])
        rows += [(parent, child, *values) for values in zip(*columns, strict=True)]
    return pd.DataFrame(rows, columns=list(_LONG))


def data_set_effects(
    fit: GaussianFit, k: int, stats: GroupStats | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The middle, standard error and degrees of freedom of an effect in each data set, (F,) each.

    Where a fit does not know them, as one from an older file, variances are taken as known.

    Args:
        fit: the node.
        k: which coefficient, the intercept being the first.
        stats: the sufficient statistics of the parents and, last, the child, where they are known.
    """
    if fit.intervals is not None:
        found = fit.intervals
        return found.center[:, k - 1], found.se[:, k - 1], found.df[:, k - 1]
    F = len(fit.levels)
    variances = [total_cov(fit, j, stats)[k, k] for j in range(F)]
    return fit.coef[:, k], np.sqrt(variances), np.full(F, np.inf)
