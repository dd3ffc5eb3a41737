"""Interventions: a node set to a value, and the total effect of one node on another."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError, OptionError
from poolbn.graph.dag import Dag
from poolbn.inference.assembled import assemble
from poolbn.nodes.given import given_fit
from poolbn.nodes.localfit import Counts, Given, LinearFit, LocalFit, Status, level_columns
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit
from poolbn.tables.labels import plain, written
from poolbn.wording import listed

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

_COLUMNS = ("cause", "effect", "total", "lower", "upper", "between_sd")
_DRAWS = 4000  # of coefficients, for intervals


def checked_values(
    dag: Dag, fits: Mapping[str, LocalFit], *given: Mapping[str, Any]
) -> dict[str, float]:
    """All the values that nodes are to be set to; of discrete ones the codes of their levels.

    Raises:
        GraphError: a name is no node.
        OptionError: there is no value, two for a node, or one that the node cannot have.
    """
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
    if isinstance(fit, RegressionFit) and not (number >= 0 and number.is_integer()):
        raise OptionError(f"{cannot}, it is a count; give a whole number from 0")
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


def causes_and_effects(
    dag: Dag, cause: str | None, effect: str | None
) -> list[tuple[str, list[str]]]:
    """Causes with their effects: nodes that a directed path joins, or those asked.

    Raises:
        GraphError: a name is no node, or cause and effect are the same.
    """
    if cause is not None and cause == effect:
        raise GraphError(f"{cause!r} is both cause and effect; give two nodes")
    causes = set(dag.nodes if effect is None else dag.ancestors(effect))
    if cause is not None:
        dag.parents(cause)  # raises for a name that is no node
        causes &= {cause}
    return [
        (start, list(dag.descendants(start)) if effect is None else [effect])
        for start in dag.nodes
        if start in causes
    ]


def total_effects_table(
    dag: Dag,
    fits: Mapping[str, LinearFit],
    cause: str | None,
    effect: str | None,
    interval: float,
    seed: int,
) -> pd.DataFrame:
    """A row for each cause and effect that a directed path joins, or for those asked.

    Intervals are quantiles of draws of the population's coefficients, around the total.

    Raises:
        GraphError: a name is no node, or cause and effect are the same.
    """
    import pandas as pd

    levels = level_columns(fits[dag.nodes[0]].levels, _COLUMNS)
    rows: list[dict[Hashable, Any]] = []
    asked = causes_and_effects(dag, cause, effect)
    needed = {node for start, ends in asked for node in (start, *ends)}
    needed |= {above for _, ends in asked for end in ends for above in dag.ancestors(end)}
    drawn = {
        node: fits[node].population_draws(_DRAWS, np.random.default_rng([seed, i]))
        for i, node in enumerate(dag.nodes)
        if node in needed and fits[node].fixed is not None
    }
    tails = [(1 - interval) / 2, (1 + interval) / 2]
    for start, ends in asked:
        totals = _totals(dag, fits, start)
        draws = _drawn_totals(totals.nodes, fits, drawn)
        for end in ends:
            i = totals.nodes.index(end)
            lower, upper = np.quantile(draws[i], tails)
            numbers = (start, end, totals.mean[i], lower, upper, totals.sd[i], *totals.own[i])
            rows.append(dict(zip([*_COLUMNS, *levels], numbers, strict=True)))
    return pd.DataFrame(rows, columns=pd.Index([*_COLUMNS, *levels], dtype=object))


@dataclass(frozen=True, eq=False)
class _Totals:
    """What a unit more of one cause does to the K nodes that are it or below it.

    Attributes:
        nodes: the cause, and the nodes below it in topological order.
        own: in each data set, (K, F).
        mean: in the population of data sets, (K,); NaN where a node on the way has no pooling.
        sd: the standard deviation in that population, (K,).
    """

    nodes: tuple[str, ...]
    own: NDArray[np.float64]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]


def _totals(dag: Dag, fits: Mapping[str, LinearFit], cause: str) -> _Totals:
    """Total effects t of one cause: sums over directed paths of products of coefficients.

    A node with coefficients b of its parents has t = b't_pa; so, one node after the other, comes
    out the column of the cause in (I - B)^-1. In the population b has mean beta and covariance D.
    It is independent of t_pa, because the random effects of different nodes are, and t_pa is made
    of those of nodes above. So, with m and K the mean and covariance of t_pa,
    E[t] = beta'm, Cov(t, s) = beta' Cov(t_pa, s) for each s above, and
    Var(t) = beta'K beta + tr(D K) + m'D m.
    """
    below = {cause, *dag.descendants(cause)}
    nodes = tuple(node for node in dag.topological_order() if node in below)
    position = {node: i for i, node in enumerate(nodes)}
    total = assemble(dag, fits).total
    own = total[:, [dag.nodes.index(node) for node in nodes], dag.nodes.index(cause)].T
    mean, cov = np.ones(len(nodes)), np.zeros((len(nodes), len(nodes)))
    for i, node in enumerate(nodes[1:], start=1):
        fit = fits[node]
        slopes = [k for k, parent in enumerate(fit.columns, start=1) if parent in below]
        pa = [position[fit.columns[k - 1]] for k in slopes]
        beta = np.full(len(pa), np.nan) if fit.fixed is None else fit.fixed[slopes]
        D = np.zeros((len(pa), len(pa)))
        if fit.random_cov is not None:
            D = fit.random_cov[np.ix_(slopes, slopes)]
        m, K = mean[pa], cov[np.ix_(pa, pa)]
        cov[i, :i] = cov[:i, i] = beta @ cov[pa, :i]
        mean[i] = beta @ m
        cov[i, i] = beta @ K @ beta + np.sum(D * K) + m @ D @ m
    return _Totals(nodes, own, mean, np.sqrt(np.maximum(np.diagonal(cov), 0.0)))


def _drawn_totals(
    nodes: Sequence[str], fits: Mapping[str, LinearFit], drawn: Mapping[str, Floats]
) -> Floats:
    """The mean totals of `_Totals` for draws of coefficients, (K, draws); NaN likewise."""
    position = {node: i for i, node in enumerate(nodes)}
    total = np.ones((len(nodes), _DRAWS))
    for i, node in enumerate(nodes[1:], start=1):
        slopes = [k for k, parent in enumerate(fits[node].parents, 1) if parent in position]
        parents = [position[fits[node].parents[k - 1]] for k in slopes]
        total[i] = math.nan
        if node in drawn:
            total[i] = np.einsum("dk,kd->d", drawn[node][:, slopes], total[parents])
    return total
