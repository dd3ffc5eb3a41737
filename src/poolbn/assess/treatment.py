"""`treatment_effects`: what a column that was drawn by lot does to others, in each data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from poolbn.arguments import TEXT, check_arguments, names_of
from poolbn.arrays import Flags, Floats
from poolbn.assess.stratified import Rows, mean_effect
from poolbn.errors import DataError, Option, OptionError, check_interval
from poolbn.graph.dag import Dag
from poolbn.later import pandas as pd
from poolbn.moments.data import Data, is_data
from poolbn.moments.reading import check_reading
from poolbn.moments.table import table
from poolbn.multiplicity import adjusted_p
from poolbn.network.effects import effects_table
from poolbn.nodes.choosing import as_pooling, fit_node
from poolbn.nodes.model import Choice
from poolbn.nodes.poolings import Complete
from poolbn.tables.data import prepare_kinds
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import ColumnKind, has_levels

# What `Network.effects` has, and is the same here in all rows or says how the model was made.
_LEFT_OUT = ["parent", "pooling", "opposite"]


def treatment_effects(
    source: object,
    *,
    treatment: str,
    group: Group = None,
    outcomes: Iterable[str] | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    pooling: str | Choice = "partial",
    interval: float = 0.95,
) -> pd.DataFrame:
    """Effects of a treatment that was drawn by lot, in the population and in each data set.

    Nothing else decides who gets the treatment, so each outcome is regressed on it alone, in all
    rows that have both. No graph is learned or assumed. For a treatment that was not drawn by lot
    use `Network.total_effects`, or `Network.adjustment_set`.

    Args:
        source: what `pb.table` takes, or a table from it.
        treatment: the column; discrete, with its first level as the control, or a number.
        group: the column that says which data set a row came from.
        outcomes: the columns to look at; None for all others.
        kinds: of some columns, such as {"visits": "count"}, see `pb.table`.
        pooling: as for `pb.fit_node`.
        interval: the probability of the intervals.

    Returns:
        A row for each outcome, and for each level of a treatment or outcome but the first. `effect`
        is a difference of means, an odds ratio or a rate ratio: its mean in the population of data
        sets that these are a sample of, with the interval of that mean. Another data set can be
        further away, by `between_sd` (of logarithms for ratios). `mean` is that of these data sets
        alone, as by a regression with a level for each data set, with its interval, the p-value of
        no mean effect in them, and Benjamini and Hochberg's for all rows. That p-value says nothing
        of other data sets: where effects vary around 0 it is small more often than in 5% of tables.
        Then the rows that have both columns, and the effect in each data set, as far as it is
        known, shrunk towards the others.

    Raises:
        DataError: a column is not there, or cannot be used.

    Examples:
        >>> import poolbn as pb
        >>> found = pb.treatment_effects(pb.datasets.opt(), treatment="treatment", group="clinic",
        ...                              outcomes=["bleeding_5", "preterm"])
        >>> found[["child", "scale", "effect", "lower", "upper", "mean", "p_value"]].round(2)
                child       scale  effect  lower  upper   mean  p_value
        0  bleeding_5  difference  -21.24 -40.64  -1.85 -23.35     0.00
        1     preterm  odds ratio    0.93   0.46   1.89   0.93     0.74
    """
    check_arguments(treatment=(treatment, TEXT))
    check_reading(group, outcomes, ())
    check_interval(interval)
    model = as_pooling(pooling)
    chosen = _outcomes(source, treatment, group, outcomes, kinds)
    tables = ((name, _rows(source, group, [treatment, name], kinds)) for name in chosen)
    return effects_in_tables(treatment, tables, model, interval)


def effects_in_tables(
    treatment: str, tables: Iterable[tuple[str, Data]], pooling: Choice, interval: float = 0.95
) -> pd.DataFrame:
    """The effects on outcomes, each with its rows; see `treatment_effects`."""
    found = []
    for outcome, of in tables:
        fits = {
            treatment: fit_node(of, treatment, pooling=Complete(discrete="table")),
            outcome: fit_node(of, outcome, [treatment], pooling=pooling),
        }
        arc = Dag([treatment, outcome], [(treatment, outcome)])
        terms = effects_table(arc, fits, interval).drop(columns=_LEFT_OUT)
        ratio = (terms["scale"] != "difference").to_numpy()
        means = _means(of, treatment, outcome, ratio, interval)
        found.append(_with(terms, "between_sd", {**means, "rows": of.n_rows}))
    made = pd.concat(found, ignore_index=True)
    return _with(made, "rows", {"p_adjusted": adjusted_p(made["p_value"].tolist())})


def _with(table: pd.DataFrame, before: str, more: Mapping[str, object]) -> pd.DataFrame:
    """The table with more columns, made at once: one by one pandas warns, from a hundred on."""
    at = list(table.columns).index(before)
    columns = pd.DataFrame(more, index=table.index)
    return pd.concat([table.iloc[:, :at], columns, table.iloc[:, at:]], axis=1)


def _outcomes(
    source: object,
    treatment: str,
    group: Group,
    outcomes: Iterable[str] | None,
    kinds: Mapping[str, ColumnKind] | None,
) -> list[str]:
    """The outcomes, checked."""
    if is_data(source) and source.has_rows:
        known: Iterable[str] = source.names
    else:
        reading, _ = prepare_kinds(source, group=group, columns=None, missing="drop", kinds=kinds)
        known = reading.names
    if treatment not in known:
        raise DataError(
            f"there is no column {treatment!r}; the columns are {', '.join(map(repr, known))}"
        )
    if outcomes is None:
        return [name for name in known if name != treatment]
    chosen = names_of("outcomes", outcomes)
    if not chosen:
        raise OptionError(Option("outcomes", chosen), " is empty; name a column, or leave it out")
    if treatment in chosen:
        raise OptionError(f"{treatment!r} is the treatment, and cannot be an outcome too")
    return chosen


def _rows(
    source: object, group: Group, columns: list[str], kinds: Mapping[str, ColumnKind] | None
) -> Data:
    """The rows that have all of these columns."""
    if is_data(source) and source.has_rows:
        return source
    own = {name: kind for name, kind in (kinds or {}).items() if name in columns}
    return table(source, group=group, columns=columns, kinds=own, missing="drop")


def _means(
    of: Data, treatment: str, outcome: str, ratio: Flags, interval: float
) -> dict[str, Floats]:
    """The mean of these data sets, its interval and p-value, (m,) each; see `stratified`."""
    x, y = of.cases([treatment, outcome]).columns
    data_set, F = np.repeat(np.arange(len(of.levels)), of.n), len(of.levels)
    kind, found = of.kind(outcome), []
    for cause, treated in _contrasts(of, treatment, x):
        for effect, happened in _contrasts(of, outcome, y):
            used = treated & happened
            rows = Rows(cause[used], effect[used], data_set[used], F)
            found.append(mean_effect(rows, kind, interval))
    value, lower, upper, p = np.array(found, dtype=np.float64).T
    with np.errstate(over="ignore"):  # an interval without an end
        told = [np.where(ratio, np.exp(each), each) for each in (value, lower, upper)]
    return dict(zip(("mean", "mean_lower", "mean_upper", "p_value"), (*told, p), strict=True))


def _contrasts(of: Data, name: str, values: Floats) -> Iterator[tuple[Floats, Flags]]:
    """A column and the rows to use: of a discrete one each level, as 1, and the first, as 0."""
    if not has_levels(of.kind(name)):
        yield values, np.ones(len(values), dtype=bool)
        return
    for level in range(1, len(of.categories[of.names.index(name)])):
        yield (values == level).astype(np.float64), (values == 0) | (values == level)
