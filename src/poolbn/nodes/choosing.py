"""Which pooling, by name or by object; and the fit of one node."""

from __future__ import annotations

import math
from collections.abc import Sequence

from poolbn.arguments import names_of
from poolbn.errors import DataError, Option, OptionError, check_kind, check_option
from poolbn.moments.groupstats import GroupStats, check_family
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.moments.table import Table
from poolbn.nodes.auto import Auto
from poolbn.nodes.imputed import honest
from poolbn.nodes.localfit import GaussianFit
from poolbn.nodes.model import Choice, same_for_all
from poolbn.nodes.poolings import Complete, NoPooling, Partial

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


def fit_node(
    stats: GroupStats | Table,
    child: str,
    parents: Sequence[str] = (),
    *,
    pooling: str | Choice = "partial",
) -> GaussianFit:
    """Fit one node given its parents.

    Args:
        stats: the sufficient statistics, from `pb.stats`; or rows, from `pb.table`, where a parent
            may be discrete: it has a coefficient for each level but the first.
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
    if isinstance(stats, Table):
        check_family(stats.names, child, parents)
        check_continuous(stats, child)
        stats = stats.stats([*parents, child])
        parents = stats.names[:-1]
    check_stats(stats)
    check_family(stats.names, child, parents)
    data, model = standardise(stats), as_pooling(pooling)
    check_admits(model, data)
    penalty = same_for_all(math.log(data.rows) / 2)
    family = data.family(child, parents)
    return honest(model.fit(data, family, penalty), stats, family, penalty)


def check_continuous(table: Table, child: str) -> None:
    """Raise for a child of another kind."""
    kind = table.kinds[table.names.index(child)]
    if kind != "continuous":
        raise DataError(f"column {child!r} is {kind}, and only continuous columns can be children")


def check_admits(model: Choice, data: StandardisedStats) -> None:
    """Raise for data that a model cannot be fitted to."""
    if why := model.admits(data):
        raise DataError(*why)


def check_stats(stats: object) -> None:
    """Raise for anything that is not `GroupStats`."""
    check_kind(stats, GroupStats, "sufficient statistics", "pb.stats(data, group=...)")
