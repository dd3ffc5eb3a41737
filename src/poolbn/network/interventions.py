"""Networks made of others: with one more data set, or with nodes that are set to values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import numpy as np

from poolbn.arguments import LABEL
from poolbn.errors import DataError, Option, OptionError
from poolbn.graph.dag import Dag
from poolbn.moments.data import Data, is_data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.reading import stats_of_numbers
from poolbn.moments.table import Table, table_like
from poolbn.nodes.given import given_fit
from poolbn.nodes.localfit import Counts, Given, LocalFit, Status
from poolbn.nodes.tabular import TabularFit
from poolbn.tables.kinds import a_kind, is_whole, wrong_values
from poolbn.tables.labels import Spellings, plain, written
from poolbn.wording import listed


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
    fits: Mapping[str, LocalFit], source: object, name: Hashable, missing: Literal["error", "drop"]
) -> Data:
    """The rows of one data set called `name`; their statistics where all columns are continuous."""
    sums = all(fit.gaussian is not None for fit in fits.values())
    if is_data(source) and not sums:
        raise DataError(
            "a network with columns that are not continuous adapts to rows; give the table or file "
            "itself, net.adapt(rows, name)"
        )
    if not (is_data(source) or isinstance(source, Mapping | str | PathLike | list | tuple)):
        source = {name: source}
    found: GroupStats | Table
    if sums:
        found = stats_of_numbers(source, columns=list(fits), missing=missing)
    else:
        kinds = {node: fit.kind for node, fit in fits.items()}
        levels = {node: fit.categories for node, fit in fits.items()}
        unit = next((fit.unit for fit in fits.values() if fit.unit is not None), None)
        found = table_like(source, columns=kinds, categories=levels, missing=missing, unit=unit)
    if len(found.levels) > 1:
        more = ", ..." if len(found.levels) > 3 else ""
        raise DataError(
            f"there are {len(found.levels)} data sets, {', '.join(map(repr, found.levels[:3]))}"
            f"{more}; adapt to one at a time, or learn anew from all"
        )
    return replace(found, levels=(name,))


def checked_values(
    dag: Dag, fits: Mapping[str, LocalFit], *given: Mapping[str, Any]
) -> dict[str, float]:
    """All the values that nodes are to be set to; of discrete ones the codes of their levels."""
    values: dict[str, float] = {}
    for named in given:
        if not isinstance(named, Mapping):
            raise OptionError(f"{named!r} are no values of nodes; use do(age=30) or a dict")
        for node, value in named.items():
            dag.parents(node)  # raises for a name that is no node
            if node in values:
                raise OptionError(f"{node!r} is given two values; give one")
            values[node] = _value(fits[node], value)
    if not values:
        raise OptionError("no node is set to a value; name one, do(age=30)")
    return values


def _value(fit: LocalFit, value: object) -> float:
    """A value that a node can have, or an error."""
    cannot = f"{fit.child!r} cannot be set to {value!r}"
    if categories := fit.categories:
        name = plain(value)
        name = written(name) if isinstance(name, str | int | float) else ""
        if name not in categories:
            levels = listed([repr(level) for level in categories])
            raise OptionError(f"{cannot}; its levels are {levels}")
        return float(categories.index(name))
    number = _number(value)
    if not math.isfinite(number):
        raise OptionError(f"{cannot}; give a finite number")
    if is_whole(fit.kind) and not (number >= 0 and number.is_integer()):
        raise OptionError(f"{cannot}, it is a {fit.kind}; give a whole number from 0")
    wrong, why = wrong_values(fit.kind, np.array([number]))
    if wrong.any():
        raise OptionError(f"{cannot}: it is {a_kind(fit.kind)}, and the value is {why}")
    return number


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return math.nan


def intervene(
    dag: Dag, fits: Mapping[str, LocalFit], values: Mapping[str, float]
) -> tuple[Dag, dict[str, LocalFit]]:
    """The graph without the arcs into the nodes that are set, and these nodes set.

    A discrete node gets a table that is certain; all others, counts too, are numbers that do not
    vary.
    """
    cut = Dag(dag.nodes, [(parent, child) for parent, child in dag.arcs if child not in values])
    return cut, {
        node: _set(fit, values[node]) if node in values else fit for node, fit in fits.items()
    }


def _set(fit: LocalFit, value: float) -> LocalFit:
    """A node that is `value`, always and in all data sets."""
    F = len(fit.levels)
    if categories := fit.categories:
        certain = np.eye(len(categories))[[int(value)]]
        return TabularFit(
            child=fit.child,
            parents=(),
            levels=fit.levels,
            pooling=Given("intervention"),
            loglik=0.0,
            counts=Counts(0, 0, 0),
            n_rows=fit.n_rows,
            status=Status.GIVEN,
            detail=f"set to {categories[int(value)]!r} in all data sets",
            categories=categories,
            given=(),
            concentration=math.inf,
            population=certain,
            probabilities=np.tile(certain, (F, 1, 1)),
        )
    return given_fit(
        fit.child,
        (),
        fit.levels,
        Given("intervention"),
        f"set to {value!r} in all data sets",
        coef=np.full((F, 1), value),
        sigma2=np.zeros(F),
        fixed=np.array([value]),
        n_rows=fit.n_rows,
    )
