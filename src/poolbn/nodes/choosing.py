"""Which pooling, by name or by object; and the fit of one node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

from poolbn.arguments import names_of
from poolbn.errors import DataError, Option, OptionError, check_option
from poolbn.graph.grammars import read_formulas
from poolbn.moments.cases import check_family
from poolbn.moments.data import Data, check_data, sums_with
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import labels_of
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.nodes import kinds
from poolbn.nodes.auto import Auto
from poolbn.nodes.conditional import ByConfiguration
from poolbn.nodes.gaussianfit import GaussianFit, of_nodes
from poolbn.nodes.kinds import in_all_data_sets
from poolbn.nodes.lmm import Random
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

    A formula says all of it, as in lme4: "bmi ~ age + (1 + age | clinic)" is partial pooling,
    "(1 | clinic)" has the same slopes in all data sets, and random effects of some of the parents
    are those of `pb.Partial(random=[...])`. Without random effects `pooling` says how. Units inside
    data sets have "(1 | patient)", with or without that in the formula.

    Args:
        stats: the sufficient statistics, from `pb.stats`; or rows, from `pb.table`, which counts,
            and discrete nodes with a continuous parent, need. A discrete parent has a coefficient
            for each level but the first. A discrete node with discrete parents has a table of
            probabilities, with others a logistic regression, and a count a log-linear one.
        child: the node, or a formula.
        parents: its parents; none by default, and with a formula.
        pooling: "complete", "none", "partial", "auto" (the best of several by BIC), or an object
            such as `pb.Partial(method="reml")`.

    Examples:
        >>> import poolbn as pb
        >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
        ...                  missing="drop")
        >>> fit = pb.fit_node(stats, "bmi", ["age"], pooling="complete")
        >>> print(fit.status, fit.detail, sep=": ")
        converged: least squares, in closed form
        >>> pb.fit_node(stats, "bmi ~ age + (1 | clinic)").pooling
        Partial(random='intercept', residuals='shared', method='ml')
    """
    check_data(stats)
    stats = stats.settled()
    if "~" in str(child) and child not in stats.names:
        child, parents, pooling = _of_formula(stats, child, parents, pooling)
    parents = [parents] if isinstance(parents, str) else names_of("parents", parents)
    model = as_pooling(pooling)
    check_family(stats.names, child, parents)
    free = stats.where_not_set(stats.names.index(child))
    return grouped(in_all_data_sets(_fit(free, child, parents, model), stats), stats.group)


def _of_formula(
    stats: Data, text: str, parents: Sequence[str], pooling: str | Choice
) -> tuple[str, Sequence[str], str | Choice]:
    """The node, its parents and pooling that a formula says."""
    formulas = read_formulas(text)
    if parents or len(formulas) != 1 or len(formulas[0].children) != 1:
        raise OptionError(f"{text!r} should be one formula with one child, without other parents")
    (child,), found, random, notes = formulas[0]
    if notes:
        raise OptionError(f"{text!r} has a modifier, which is not used: {notes[0]}; leave it out")
    random = tuple(term for term in random if term[1] != stats.unit or set(term[0]) - {"1"})
    if not random:
        return child, found, pooling
    if len(random) > 1 or random[0][1] != stats.group:
        raise OptionError(
            f"{text!r} has random effects of {random[-1][1]!r}, and the data sets are those of "
            f"{stats.group!r}; write one term (1 + ... | {stats.group})"
        )
    columns = [name for name in random[0][0] if name != "1"]
    if others := [name for name in columns if name not in found]:
        raise OptionError(
            f"{text!r} has a random slope of {others[0]!r}, which is no parent; add it to both"
        )
    every = set(columns) == set(found)
    how: Random = "full" if every and found else tuple(columns) or "intercept"
    if pooling == "partial":
        return child, found, Partial(random=how)
    if isinstance(pooling, Partial) and pooling.random == "full":
        return child, found, replace(pooling, random=how)
    raise OptionError(
        f"{text!r} has random effects, which are partial pooling; leave ",
        Option("pooling", pooling if isinstance(pooling, str) else ...),
        " out",
    )


def _fit(stats: Data, child: str, parents: Sequence[str], model: Choice) -> LocalFit:
    if is_normal(stats.kind(child)):
        levels = [stats.categories[stats.names.index(name)] for name in parents]
        found = sums_with(stats, [*parents, child])
        fit = of_nodes(
            _fit_gaussian(found, child, labels_of(parents, levels), model), parents, levels
        )
        return _by_configuration(stats, fit, model)
    each = same_for_all(math.log(stats.n_rows) / 2).each
    return kinds.fit(stats, child, parents, kinds.poolings(model, stats), each)


def _by_configuration(stats: Data, fit: GaussianFit, model: Choice) -> LocalFit:
    """A fit, or a regression for each configuration of its discrete parents."""
    names = (*fit.parents, fit.child)
    if not any(fit.given):
        return fit
    some = stats.select(names)
    penalty = same_for_all(math.log(some.n_rows) / 2)
    forms = ByConfiguration.of(some, model.first(some.levels), penalty)
    if forms is None:
        return fit
    return forms.fit((len(fit.parents), tuple(range(len(fit.parents)))), fit).with_imputation_error(
        some
    )


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
