"""`impute`: completed tables, for any other tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from poolbn.errors import check_count
from poolbn.moments.reading import check_reading, in_memory, patterns_of
from poolbn.tables import data
from poolbn.tables.grouping import Group

if TYPE_CHECKING:
    import pandas as pd


def impute(
    source: object,
    *,
    group: Group = None,
    columns: Iterable[str] | None = None,
    imputations: int = 20,
    seed: int = 0,
) -> list[pd.DataFrame]:
    """Draw completed tables: multiple imputation.

    Missing cells are drawn given the others of their row, with means and covariances of the data
    set that are drawn too. What is computed from each table can be put together by Rubin's rules,
    as `pb.fit_node` does by itself with `missing="em"`.

    Args:
        source: as for `pb.stats`; its rows are held in memory.
        group: likewise.
        columns: likewise.
        imputations: how many tables.
        seed: the same seed gives the same tables.

    Returns:
        Tables with the group column and the chosen columns. Rows that do not say their data set, or
        have no value at all, are left out.

    Raises:
        DataError: the source, a column or a cell cannot be used.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]]
        >>> tables = pb.impute(trial, group="clinic", imputations=3)
        >>> int(trial["bmi"].isna().sum()), [int(table["bmi"].isna().sum()) for table in tables]
        (73, [0, 0, 0])
    """
    import pandas as pd

    check_reading(group, columns, ())
    check_count(1, imputations=imputations)
    check_count(seed=seed)
    rows = data.prepare(source, group=group, columns=columns, missing="em").rows()
    codes, values, _ = in_memory(rows)
    known = patterns_of(rows.names, tuple(rows.levels), codes, values, rows.group)
    completion = known.completed().filled
    assert completion is not None
    labels = np.empty(len(rows.levels), dtype=object)
    for j, level in enumerate(rows.levels):  # one by one: a level may be a tuple
        labels[j] = level
    made = []
    for k in range(imputations):
        rng = np.random.default_rng([seed, k])
        table = pd.DataFrame(completion.fill(codes, values, rng), columns=list(rows.names))
        table.insert(0, rows.group, pd.Series(labels[codes], dtype=object).astype("category"))
        made.append(table)
    return made
