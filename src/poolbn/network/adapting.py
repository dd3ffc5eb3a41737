"""A data set that was not learned from: its coefficients, from its own rows or from none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import LABEL
from poolbn.errors import DataError, Option
from poolbn.moments.data import is_data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import stats_of_numbers
from poolbn.moments.standardised import standardise
from poolbn.moments.table import Table, table_like
from poolbn.nodes.adapting import Own, adapted, appended
from poolbn.nodes.adaptingkinds import with_regression, with_table
from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.model import same_for_all
from poolbn.nodes.poolings import NoPooling
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit
from poolbn.tables.labels import Spellings


def check_name(name: Hashable, levels: Sequence[Hashable]) -> None:
    """Raise for what cannot name a data set beside these."""
    if name is None or not LABEL.holds(name):
        raise DataError(
            Option("name", name),
            " does not name a data set; use a text or a number, ",
            Option("name", "new clinic"),
        )
    if name in levels:
        raise DataError(
            f"data set {name!r} is already in the network; give the new rows another name, or "
            "learn anew from all rows"
        )
    known = Spellings()
    known.add(levels, " of the network")
    known.add([name])


def new_data_set(
    source: object,
    name: Hashable,
    *,
    levels: Sequence[Hashable],
    nodes: Sequence[str],
    missing: Literal["error", "drop"],
) -> GroupStats:
    """The statistics of the nodes in one data set called `name`; of no rows if `source` is None.

    Raises:
        DataError: the name is no name or one of `levels`, there is more than one data set, or the
            rows cannot be used.
    """
    check_name(name, levels)
    if source is None:
        return _no_rows(name, nodes)
    if not (is_data(source) or isinstance(source, Mapping | str | PathLike | list | tuple)):
        source = {name: source}
    found = stats_of_numbers(source, columns=nodes, missing=missing)
    _check_one(found.levels)
    return replace(found, levels=(name,))


def _no_rows(name: Hashable, names: Sequence[str]) -> GroupStats:
    N, none = len(names), np.zeros(1, dtype=np.int64)
    return GroupStats(tuple(names), (name,), none, np.zeros((1, N)), np.zeros((1, N, N)), none)


def _check_one(levels: Sequence[Hashable]) -> None:
    if len(levels) > 1:
        more = ", ..." if len(levels) > 3 else ""
        raise DataError(
            f"there are {len(levels)} data sets, {', '.join(map(repr, levels[:3]))}"
            f"{more}; adapt to one at a time, or learn anew from all"
        )


def adapted_fits(
    fits: Mapping[str, LocalFit],
    n: NDArray[np.int64],
    source: object,
    name: Hashable,
    missing: Literal["error", "drop"],
) -> tuple[dict[str, LocalFit], int]:
    """The nodes of all kinds with one more data set, and how many rows it has.

    Args:
        fits: the nodes.
        n: rows of each data set that they have, (F,).
        source: the rows, or None.
        name: what to call the new data set.
        missing: what to do with missing cells.

    Raises:
        DataError: as for `new_data_set`; or a row has a level that the network does not know.
    """
    check_name(name, next(iter(fits.values())).levels)
    new = None if source is None else _new_rows(fits, source, name, missing)
    rows = 0 if new is None else new.n_rows
    return {node: _with_rows(fit, n, new, name) for node, fit in fits.items()}, rows


def _new_rows(
    fits: Mapping[str, LocalFit], source: object, name: Hashable, missing: Literal["error", "drop"]
) -> Table:
    if is_data(source):
        raise DataError(
            "a network with columns that are not continuous adapts to rows; give the table or file "
            "itself, net.adapt(rows, name)"
        )
    if not isinstance(source, Mapping | str | PathLike | list | tuple):
        source = {name: source}
    kinds = {node: fit.kind for node, fit in fits.items()}
    levels = {node: fit.categories for node, fit in fits.items()}
    found = table_like(source, columns=kinds, categories=levels, missing=missing)
    _check_one(found.levels)
    return replace(found, levels=(name,))


def _with_rows(fit: LocalFit, n: NDArray[np.int64], new: Table | None, name: Hashable) -> LocalFit:
    if isinstance(fit, RegressionFit):
        return with_regression(fit, name, new)
    if isinstance(fit, TabularFit):
        return with_table(fit, name, new)
    assert isinstance(fit, GaussianFit)
    names = (*fit.columns, fit.child)
    return with_data_set(fit, n, _no_rows(name, names) if new is None else new.stats())


def with_data_set(fit: GaussianFit, n: NDArray[np.int64], new: GroupStats) -> GaussianFit:
    """The fit with one more data set, see `nodes.adapting`.

    Without pooling there is nothing to go by but its own rows.

    Args:
        fit: a node.
        n: rows of each data set that it has, (F,).
        new: the statistics of the new data set.

    Raises:
        DataError: without pooling, the rows do not give all coefficients and a variance.
    """
    family = new.family(fit.child, fit.columns)
    if fit.fixed is not None:
        own = adapted(fit, n.astype(np.float64), family)
    else:
        f = _alone(new, fit.child, fit.columns)
        own = Own(f.coef[0], f.coef_cov[0], float(f.sigma2[0]), float(f.squares[0]), float(f.df[0]))
    return appended(fit, new.levels[0], own, family)


def _alone(new: GroupStats, child: str, parents: Sequence[str]) -> GaussianFit:
    """Least squares on the rows of the new data set alone."""
    rows, q = new.n_rows, len(parents) + 1
    alone = "without pooling there is no population to predict from"
    if rows <= q:
        raise DataError(
            f"{alone}: {q} coefficient{'s' * (q > 1)} and a variance of {child!r} need at least "
            f"{q + 1} rows of data set {new.levels[0]!r}, and there are {rows}; give more rows, or "
            "learn with ",
            Option("pooling", "partial"),
        )
    data = standardise(new)
    fit = NoPooling().fit(data, data.family(child, parents), same_for_all(0.0))
    if not fit.status.ok:
        raise DataError(f"{alone}, and {fit.detail}; or learn with ", Option("pooling", "partial"))
    return fit
