"""Completed tables of continuous columns, drawn by EM in each data set."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from poolbn.moments.patternstats import Completed
from poolbn.moments.reading import in_memory, patterns_of
from poolbn.tables.data import Rows

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def numbers_imputed(rows: Rows, imputations: int, seed: int) -> Iterator[pd.DataFrame]:
    """Completed tables; see `poolbn.imputing.impute`."""
    import pandas as pd

    codes, values, _ = in_memory(rows)
    known = patterns_of(rows.names, tuple(rows.levels), codes, values, rows.group)
    completion = known.completed().filled
    assert isinstance(completion, Completed)
    labels = labels_of_rows(rows.levels, codes)
    for k in range(imputations):
        rng = np.random.default_rng([seed, k])
        table = pd.DataFrame(completion.fill(codes, values, rng), columns=list(rows.names))
        table.insert(0, rows.group, labels)
        yield table


def labels_of_rows(levels: Iterable[Hashable], codes: NDArray[np.int64]) -> pd.Series:
    """The data sets of rows, (n,)."""
    import pandas as pd

    every = list(levels)
    labels = np.empty(len(every), dtype=object)
    for j, level in enumerate(every):  # one by one: a level may be a tuple
        labels[j] = level
    return pd.Series(labels[codes], dtype=object).astype("category")
