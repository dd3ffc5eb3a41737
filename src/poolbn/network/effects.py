"""The effects of a network, whether they are equal, and within and between data sets: tables.

An arc has one effect, or one for each level of a discrete parent, and of a discrete child, but the
first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from poolbn.errors import DataError, check_interval, check_option
from poolbn.graph.dag import Dag
from poolbn.later import pandas as pd
from poolbn.moments.data import Data
from poolbn.multiplicity import adjusted_p
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import LocalFit, level_columns
from poolbn.nodes.terms import RESIDUAL, Equality, opposite
from poolbn.nodes.withinbetween import NUMBERS

By = Literal["arc", "data set"]

TERM = ("parent", "level", "child", "outcome", "scale")
_NUMBERS = ("effect", "se", "df", "lower", "upper")
# Columns of the table, before those of the data sets.
COLUMNS = (*TERM, "pooling", *_NUMBERS, "between_sd", "opposite")
_LONG = (*TERM, "data_set", *_NUMBERS)


def effects_table(
    dag: Dag, fits: Mapping[str, LocalFit], interval: float = 0.95, by: By = "arc"
) -> pd.DataFrame:
    """A row for each effect: `COLUMNS`, then the effect in each data set; or `_LONG`."""
    check_interval(interval)
    check_option("by", by, get_args(By))
    levels = fits[dag.nodes[0]].levels
    rows: list[tuple[Any, ...]] = []
    for parent, child in dag.arcs:
        for term in fits[child].terms(parent):
            told = (parent, term.level, child, term.outcome, term.scale)
            own = term.reported(term.own)
            if by == "arc":
                ends = term.reported(t_interval(term.effect, term.se, term.df, interval))
                numbers = (term.reported(term.effect), term.se, term.df, *ends.tolist())
                varies = (term.between_sd, opposite(term.effect, term.own))
                rows.append((*told, str(fits[child].pooling), *numbers, *varies, *own))
            else:
                ends = term.reported(t_interval(term.own, term.own_se, term.own_df, interval))
                each = (levels, own, term.own_se, term.own_df, *ends.T)
                rows += [(*told, *values) for values in zip(*each, strict=True)]
    names = [*COLUMNS, *level_columns(levels, COLUMNS)] if by == "arc" else list(_LONG)
    return pd.DataFrame(rows, columns=pd.Index(names, dtype=object))


def heterogeneity_table(dag: Dag, fits: Mapping[str, LocalFit], data: Data | None) -> pd.DataFrame:
    """A row for each arc, and then one for each node with residuals: an `Equality`.

    P-values are adjusted over all arcs, and over all nodes.
    """
    _check_several(dag, fits, data)
    found = {
        (of, child): test for child in dag.nodes for of, test in fits[child].equality(data).items()
    }
    arcs, nodes = list(dag.arcs), [name for name in found if name[0] == RESIDUAL]
    adjusted = [adjusted_p([found[name].p_value for name in names]) for names in (arcs, nodes)]
    rows = [(*name, *found[name]) for name in [*arcs, *nodes]]
    table = pd.DataFrame(rows, columns=["parent", "child", *Equality._fields])
    return table.assign(p_adjusted=np.concatenate(adjusted))


def within_between_table(
    dag: Dag, fits: Mapping[str, LocalFit], data: Data | None, interval: float
) -> pd.DataFrame:
    """A row for each column of a parent of a continuous node."""
    _check_several(dag, fits, data)
    rows: list[tuple[Any, ...]] = []
    each = {node: fits[node].within_between(data, interval) for node in dag.nodes}
    for parent, child in dag.arcs:
        if (numbers := each[child]) is not None:
            columns = fits[child].columns_of(parent)
            rows += [(parent, level, child, *numbers[k]) for k, _, level in columns]
    table = pd.DataFrame(rows, columns=["parent", "level", "child", *NUMBERS])
    return table.assign(p_adjusted=adjusted_p(table["p_value"].tolist()))


def _check_several(dag: Dag, fits: Mapping[str, LocalFit], data: Data | None) -> None:
    levels = (fits[dag.nodes[0]] if data is None else data).levels
    if len(levels) < 2:
        raise DataError(f"there is one data set, {levels[0]!r}; differences need two or more")
