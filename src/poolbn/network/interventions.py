"""Interventions: nodes set to values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from poolbn.errors import OptionError
from poolbn.graph.dag import Dag
from poolbn.nodes.given import given_fit
from poolbn.nodes.localfit import Counts, Given, LocalFit, Status
from poolbn.nodes.tabular import TabularFit
from poolbn.tables.kinds import a_kind, is_whole, wrong_values
from poolbn.tables.labels import plain, written
from poolbn.wording import listed


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
