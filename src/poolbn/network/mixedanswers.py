"""The tables that networks with columns of all kinds answer with."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.nodes.localfit import LocalFit, level_columns
from poolbn.tables.cells import Cells, NodeKinds

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from poolbn.inference.mixed import Effort
    from poolbn.inference.parts import Mixed

    Floats = NDArray[np.float64]

MOST_PROBABLE = "most_probable"
NUMBERS = ("mean", "sd", "lower", "upper")
ESS = "ess"


def kinds_of(fits: Mapping[str, LocalFit]) -> NodeKinds:
    """The levels of discrete nodes, and the counts."""
    return NodeKinds(
        categories={name: fit.categories for name, fit in fits.items() if fit.categories},
        counts=frozenset(name for name, fit in fits.items() if fit.kind == "count"),
    )


def predicted(
    mixed: Mixed,
    kinds: NodeKinds,
    cells: Cells,
    target: str | Sequence[str],
    interval: float,
    effort: Effort,
) -> pd.DataFrame:
    """Probabilities of levels, or means and intervals; see `Network.predict`."""
    import pandas as pd

    from poolbn.inference import mixed as inference

    names = [target] if isinstance(target, str) else list(target)
    at = [mixed.names.index(name) for name in names]
    evidence = cells.values.copy()
    evidence[:, at] = np.nan
    found = inference.predictions(mixed, evidence, cells.codes, at, interval, effort)
    tables = {}
    for name, own in zip(names, found.columns, strict=True):
        levels = kinds.categories.get(name)
        columns = NUMBERS if levels is None else _columns(levels)
        tables[name] = pd.DataFrame(own, index=cells.index, columns=pd.Index(columns))
        if levels is not None:
            tables[name][MOST_PROBABLE] = np.array(levels, dtype=object)[own.argmax(axis=1)]
    table = tables[names[0]] if isinstance(target, str) else pd.concat(tables, axis=1)
    return _with_ess(table, found.ess)


def _columns(levels: Sequence[str]) -> list[str]:
    """Columns for levels, beside those that every table has."""
    return [f"{level} (level)" if level in (MOST_PROBABLE, ESS) else level for level in levels]


def _with_ess(table: pd.DataFrame, ess: Floats) -> pd.DataFrame:
    """With a column of effective sample sizes where some rows have one."""
    if np.isfinite(ess).any():
        table[ESS if table.columns.nlevels == 1 else (ESS, "")] = ess
    return table


def classified(mixed: Mixed, cells: Cells, labels: NDArray[Any], effort: Effort) -> pd.DataFrame:
    """Probabilities of data sets; see `Network.classify`."""
    import pandas as pd

    from poolbn.inference import mixed as inference

    found, ess = inference.data_set_probabilities(mixed, cells.values, effort)
    columns: list[Hashable] = level_columns(mixed.levels, [MOST_PROBABLE, ESS])
    table = pd.DataFrame(found, index=cells.index, columns=pd.Index(columns, dtype=object))
    table[MOST_PROBABLE] = labels[found.argmax(axis=1)]
    return _with_ess(table, ess)


def imputed(
    mixed: Mixed, kinds: NodeKinds, cells: Cells, table: pd.DataFrame, effort: Effort
) -> pd.DataFrame:
    """The table with missing cells filled; see `Network.impute`."""
    from poolbn.inference import mixed as inference

    missing = np.isnan(cells.values)
    wanted = np.isin(mixed.names, cells.columns) & missing.any(axis=0)
    rows = np.flatnonzero(missing[:, wanted].any(axis=1))
    filled = inference.most_likely(mixed, cells.values[rows], cells.codes[rows], wanted, effort)
    for i in np.flatnonzero(wanted).tolist():
        name = mixed.names[i]
        here = missing[rows, i]
        column: Any = table[name].copy()
        levels = kinds.categories.get(name)
        new: Any = filled[here, i]
        if levels is not None:
            new = _like(column, levels)[new.astype(np.int64)]
            if column.isna().all() or hasattr(column.dtype, "categories"):
                column = column.astype(object)
        column.iloc[rows[here]] = new
        table[name] = column.astype(table[name].dtype) if _fits(column, table[name]) else column
    return table


def _fits(column: pd.Series[Any], before: pd.Series[Any]) -> bool:
    """Whether a filled column can have the categories that it had before."""
    known = getattr(before.dtype, "categories", None)
    return known is not None and bool(column.isin(known).all())


def _like(column: pd.Series[Any], levels: Sequence[str]) -> NDArray[Any]:
    """The levels as a column has them: true and false, or numbers, where it holds these."""
    from poolbn.tables.labels import plain, written

    own = {written(plain(cell)): plain(cell) for cell in column.dropna().unique()}
    made = np.empty(len(levels), dtype=object)
    made[:] = [own.get(level, level) for level in levels]
    return made


def frame(fits: Mapping[str, LocalFit], values: Floats) -> pd.DataFrame:
    """Rows (n, N), with levels as categories and counts as whole numbers."""
    import pandas as pd

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
