"""Cells of tables that networks answer with: levels as categories, counts as whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.arrays import Floats, Positions
from poolbn.later import pandas as pd
from poolbn.nodes.localfit import LocalFit
from poolbn.tables.cells import NodeKinds
from poolbn.tables.kinds import is_normal
from poolbn.tables.labels import plain, written

MOST_PROBABLE = "most_probable"
NUMBERS = ("mean", "sd", "lower", "upper")
ESS = "ess"


def kinds_of(fits: Mapping[str, LocalFit]) -> NodeKinds:
    """The levels of discrete nodes, and the counts."""
    return NodeKinds(
        categories={name: fit.categories for name, fit in fits.items() if fit.categories},
        kinds={
            name: fit.kind
            for name, fit in fits.items()
            if not (fit.categories or is_normal(fit.kind))
        },
    )


def with_cells(
    column: pd.Series[Any], rows: Positions, values: Floats, levels: Sequence[str]
) -> pd.Series[Any]:
    """A column with numbers or codes of levels in some rows, as the column has them."""
    before, new = column, values
    column = column.copy()
    if levels:
        new = _like(column, levels)[values.astype(np.int64)]
        if column.isna().all() or hasattr(column.dtype, "categories"):
            column = column.astype(object)
    column.iloc[rows] = new
    return column.astype(before.dtype) if _fits(column, before) else column


def _fits(column: pd.Series[Any], before: pd.Series[Any]) -> bool:
    """Whether a filled column can have the categories that it had before."""
    known = getattr(before.dtype, "categories", None)
    return known is not None and bool(column.isin(known).all())


def _like(column: pd.Series[Any], levels: Sequence[str]) -> NDArray[Any]:
    """The levels as a column has them: true and false, or numbers, where it holds these."""
    own = {written(plain(cell)): plain(cell) for cell in column.dropna().unique()}
    made = np.empty(len(levels), dtype=object)
    made[:] = [own.get(level, level) for level in levels]
    return made


def frame(fits: Mapping[str, LocalFit], values: Floats) -> pd.DataFrame:
    """Rows (n, N), with levels as categories and counts as whole numbers."""
    kinds = kinds_of(fits)
    columns: dict[str, Any] = {}
    for name, own in zip(fits, values.T, strict=True):
        if name in kinds.categories:
            codes = np.where(np.isnan(own), -1, own).astype(np.int64)
            columns[name] = pd.Categorical.from_codes(codes, pd.Index(kinds.categories[name]))
        else:
            whole = name in kinds.counts and not np.isnan(own).any()
            columns[name] = own.astype(np.int64) if whole else own
    return pd.DataFrame(columns)
