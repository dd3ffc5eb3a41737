"""A data set that was not learned from: its coefficients, from its own rows or from none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import stats_of_numbers
from poolbn.moments.standardised import standardise
from poolbn.nodes.adapting import Own, adapted, appended
from poolbn.nodes.localfit import GaussianFit
from poolbn.nodes.model import same_for_all
from poolbn.nodes.poolings import NoPooling
from poolbn.tables.labels import Spellings


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
    if name is None or not isinstance(name, Hashable):
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
    N = len(nodes)
    if source is None:
        none = np.zeros(1, dtype=np.int64)
        return GroupStats(tuple(nodes), (name,), none, np.zeros((1, N)), np.zeros((1, N, N)), none)
    if not isinstance(source, GroupStats | Mapping | str | PathLike | list | tuple):
        source = {name: source}
    found = stats_of_numbers(source, columns=nodes, missing=missing)
    if len(found.levels) > 1:
        more = ", ..." if len(found.levels) > 3 else ""
        raise DataError(
            f"there are {len(found.levels)} data sets, {', '.join(map(repr, found.levels[:3]))}"
            f"{more}; adapt to one at a time, or learn anew from all"
        )
    return replace(found, levels=(name,))


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
    family = new.family(fit.child, fit.parents)
    if fit.fixed is not None:
        own = adapted(fit, n.astype(np.float64), family)
    else:
        f = _alone(new, fit.child, fit.parents)
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
