"""Which pooling, by name or by object; and the fit of one node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import overload

from poolbn.arguments import names_of
from poolbn.errors import DataError, Option, OptionError, check_option
from poolbn.moments.cases import check_family
from poolbn.moments.data import Data, check_data, sums_with
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import labels_of
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.nodes import kinds
from poolbn.nodes.auto import Auto
from poolbn.nodes.gaussianfit import GaussianFit, of_nodes
from poolbn.nodes.localfit import LocalFit, grouped
from poolbn.nodes.model import Choice, same_for_all
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.tables.kinds import is_normal

_BY_NAME: dict[str, Choice] = {
    "complete": Complete(),
    "none": NoPooling(),
    "partial": Partial(),
    "auto": Auto(),
}


def as_pooling(value: str | Choice) -> Choice:
    """A pooling from its name, or itself."""
    if isinstance(value, str):
        check_option("pooling", value, _BY_NAME)
        return _BY_NAME[value]
    if isinstance(value, type) or not hasattr(value, "chosen"):
        raise OptionError(
            Option("pooling", value),
            " is not a pooling; use 'complete', 'none', 'partial', 'auto', or an object such as "
            "pb.Partial(random='intercept')",
        )
    return value


@overload
def fit_node(
    stats: GroupStats, child: str, parents: Sequence[str] = (), *, pooling: str | Choice = "partial"
) -> GaussianFit: ...


@overload
def fit_node(
    stats: Data, child: str, parents: Sequence[str] = (), *, pooling: str | Choice = "partial"
) -> LocalFit: ...


def fit_node(
    stats: Data,
    child: str,
    parents: Sequence[str] = (),
    *,
    pooling: str | Choice = "partial",
) -> LocalFit:
    """Fit one node given its parents.

    Args:
        stats: the sufficient statistics, from `pb.stats`; or rows, from `pb.table`, which counts,
            and discrete nodes with a continuous parent, need. A discrete parent has a coefficient
            for each level but the first. A discrete node with discrete parents has a table of
            probabilities, with others a logistic regression, and a count a log-linear one.
        child: the node.
        parents: its parents; none by default.
        pooling: "complete", "none", "partial", "auto" (the best of several by BIC), or an object
            such as `pb.Partial(method="reml")`.

    Examples:
        >>> import poolbn as pb
        >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
        ...                  missing="drop")
        >>> fit = pb.fit_node(stats, "bmi", ["age"], pooling="complete")
        >>> print(fit.status, fit.detail, sep=": ")
        converged: least squares, in closed form
    """
    parents = [parents] if isinstance(parents, str) else names_of("parents", parents)
    model = as_pooling(pooling)
    check_data(stats)
    return grouped(_fit(stats, child, parents, model), stats.group)


def _fit(stats: Data, child: str, parents: Sequence[str], model: Choice) -> LocalFit:
    check_family(stats.names, child, parents)
    if is_normal(stats.kind(child)):
        levels = [stats.categories[stats.names.index(name)] for name in parents]
        found = sums_with(stats, [*parents, child])
        fit = _fit_gaussian(found, child, labels_of(parents, levels), model)
        return of_nodes(fit, parents, levels)
    each = same_for_all(math.log(stats.n_rows) / 2).each
    return kinds.fit(stats, child, parents, kinds.poolings(model, stats), each)


def _fit_gaussian(
    stats: GroupStats, child: str, parents: Sequence[str], model: Choice
) -> GaussianFit:
    check_family(stats.names, child, parents)
    data = standardise(stats)
    check_admits(model, data)
    penalty = same_for_all(math.log(data.rows) / 2)
    family = data.family(child, parents)
    return model.fit(data, family, penalty).with_imputation_error(stats)


def check_admits(model: Choice, data: StandardisedStats) -> None:
    """Raise for data that a model cannot be fitted to."""
    if why := model.admits(data):
        raise DataError(*why)
