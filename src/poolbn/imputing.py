"""`impute`: completed tables, for any other tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from poolbn.errors import check_count
from poolbn.learning import as_plan
from poolbn.moments.reading import check_reading, in_memory, patterns_of
from poolbn.moments.table import as_column, as_frame, has_gaps, in_order
from poolbn.monte_carlo_em import MonteCarloEM
from poolbn.tables.data import Rows, prepare_kinds
from poolbn.tables.grouping import Group, check_no_units
from poolbn.tables.kinds import Kinds, is_normal

if TYPE_CHECKING:
    import pandas as pd


def impute(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    imputations: int = 20,
    seed: int = 0,
) -> list[pd.DataFrame]:
    """Draw completed tables: multiple imputation.

    Missing cells are drawn given the others of their row, with parameters of the data set that are
    drawn too: means and covariances where all columns are continuous, else those of the network
    that `pb.learn(..., missing="em")` finds. What is computed from each table can be put together
    by Rubin's rules, as networks do by themselves for their effects.

    Args:
        source: as for `pb.stats`; its rows are held in memory.
        group: likewise.
        columns: likewise.
        kinds: of some columns, see `pb.table`.
        imputations: how many tables.
        seed: the same seed gives the same tables.

    Returns:
        Tables with the group column and the chosen columns. Rows that do not say their data set, or
        have no value at all, are left out. Discrete columns are categories.

    Raises:
        DataError: the source, a column or a cell cannot be used.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "tobacco"]]
        >>> tables = pb.impute(trial, group="clinic", imputations=3)
        >>> int(trial["tobacco"].isna().sum()), [int(t["tobacco"].isna().sum()) for t in tables]
        (26, [0, 0, 0])
    """
    check_reading(group, columns, ())
    check_count(1, imputations=imputations)
    check_count(seed=seed)
    reading, found = prepare_kinds(source, group=group, columns=columns, missing="em", kinds=kinds)
    check_no_units(reading.unit, "pb.impute")
    if all(is_normal(kind) for kind in found):
        return list(_numbers_imputed(reading.rows(), imputations, seed))
    table, order = in_order(reading, found, kinds or {})
    back = np.argsort(order)
    if not has_gaps(table):
        return [as_frame(table, back) for _ in range(imputations)]
    filled, *_ = as_plan().completed(MonteCarloEM(table, seed))
    return [as_frame(filled.drawn(k), back) for k in range(imputations)]


def _numbers_imputed(rows: Rows, imputations: int, seed: int) -> Iterator[pd.DataFrame]:
    """Completed tables."""
    import pandas as pd

    codes, values, *_ = in_memory(rows)
    known = patterns_of(rows.names, tuple(rows.levels), codes, values, rows.group)
    labels = as_column(rows.levels, codes)
    for k in range(imputations):
        rng = np.random.default_rng([seed, k])
        table = pd.DataFrame(known.completion.fill(codes, values, rng), columns=list(rows.names))
        table.insert(0, rows.group, labels)
        yield table
