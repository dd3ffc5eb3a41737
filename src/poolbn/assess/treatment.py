"""`treatment_effects`: what a column that was drawn by lot does to others, in each data set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from poolbn.arguments import TEXT, check_arguments, names_of
from poolbn.errors import DataError, Option, OptionError, check_interval
from poolbn.graph.dag import Dag
from poolbn.moments.reading import check_reading
from poolbn.moments.table import Table, table
from poolbn.multiplicity import adjusted_p
from poolbn.network.effects import arc_terms, terms_by_arc
from poolbn.nodes.choosing import as_pooling, fit_node
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import Status
from poolbn.nodes.poolings import Complete
from poolbn.tables.data import prepare_kinds
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import ColumnKind

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from poolbn.nodes.model import Choice

    Floats = NDArray[np.float64]

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
        is a difference of means, an odds ratio or a rate ratio in the population of data sets, with
        its interval: what a data set like these can expect, and with few of them nobody knows well.
        `mean` is that of these data sets themselves, each weighted by its precision, with its
        interval, a p-value, and Benjamini and Hochberg's for all rows. Then the rows that have both
        columns, and the effect in each data set, as far as it is known, shrunk towards the others.

    Raises:
        DataError: a column is not there, or cannot be used.

    Examples:
        >>> import poolbn as pb
        >>> found = pb.treatment_effects(pb.datasets.opt(), treatment="treatment", group="clinic",
        ...                              outcomes=["bleeding_5", "preterm"])
        >>> found[["child", "scale", "effect", "lower", "upper", "mean", "p_value"]].round(2)
                child       scale  effect  lower  upper   mean  p_value
        0  bleeding_5  difference  -21.24 -40.64  -1.85 -24.53     0.00
        1     preterm  odds ratio    0.93   0.46   1.89   0.93     0.73
    """
    check_arguments(treatment=(treatment, TEXT))
    check_reading(group, outcomes, ())
    check_interval(interval)
    model = as_pooling(pooling)
    chosen = _outcomes(source, treatment, group, outcomes, kinds)
    tables = ((name, _rows(source, group, [treatment, name], kinds)) for name in chosen)
    return effects_in_tables(treatment, tables, model, interval)


def effects_in_tables(
    treatment: str, tables: Iterable[tuple[str, Table]], pooling: Choice, interval: float = 0.95
) -> pd.DataFrame:
    """The effects on outcomes, each with its rows; see `treatment_effects`."""
    import pandas as pd

    found = []
    for outcome, of in tables:
        fits = {
            treatment: fit_node(of, treatment, pooling=Complete(discrete="table")),
            outcome: fit_node(of, outcome, [treatment], pooling=pooling),
        }
        arc = Dag([treatment, outcome], [(treatment, outcome)])
        terms = terms_by_arc(arc, fits, interval).drop(columns=_LEFT_OUT)
        means = _means(of, treatment, outcome, terms["scale"], interval)
        found.append(_with(terms, "between_sd", {**means, "rows": of.n_rows}))
    made = pd.concat(found, ignore_index=True)
    return _with(made, "rows", {"p_adjusted": adjusted_p(made["p_value"].tolist())})


def _with(table: pd.DataFrame, before: str, more: Mapping[str, object]) -> pd.DataFrame:
    """The table with more columns, made at once: one by one pandas warns, from a hundred on."""
    import pandas as pd

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
    if isinstance(source, Table):
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
) -> Table:
    """The rows that have all of these columns."""
    if isinstance(source, Table):
        return source
    own = {name: kind for name, kind in (kinds or {}).items() if name in columns}
    return table(source, group=group, columns=columns, kinds=own, missing="drop")


def _means(
    of: Table, treatment: str, outcome: str, scale: pd.Series[str], interval: float
) -> dict[str, Floats]:
    """The mean of the data sets' own effects, by precision, its interval and p-value, (m,) each.

    Its degrees of freedom are those of Satterthwaite, as if weights were known.
    """
    from scipy.stats import t

    discrete = of.kind(treatment) == of.kind(outcome) == "discrete"
    own = Complete("unbiased", discrete="table" if discrete else "auto")
    b, v, df = np.array(
        [_own(_data_set(of, j), treatment, outcome, own) for j in range(len(of.levels))]
    ).transpose(1, 2, 0)  # (m, F) each
    known = np.isfinite(v) & (v > 0)
    w = np.divide(1.0, v, out=np.zeros_like(v), where=known)
    total = w.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, w * b, 0.0).sum(axis=1) / total
        se = 1 / np.sqrt(total)
        df = total**2 / np.where(known, w**2 / df, 0.0).sum(axis=1)
    ends = t_interval(mean, se, df, interval)
    ratio = (scale != "difference").to_numpy()
    with np.errstate(over="ignore"):  # an interval without an end
        told = [np.where(ratio, np.exp(x), x) for x in (mean, ends[:, 0], ends[:, 1])]
    p = 2 * t.sf(np.abs(mean / se), df)
    return dict(zip(("mean", "mean_lower", "mean_upper", "p_value"), (*told, p), strict=True))


def _data_set(of: Table, j: int) -> Table:
    """The rows of one data set."""
    rows = slice(of.offsets[j], of.offsets[j + 1])
    return replace(
        of,
        levels=of.levels[j : j + 1],
        offsets=of.offsets[j : j + 2] - of.offsets[j],
        values=np.ascontiguousarray(of.values[:, rows]),
        dropped=of.dropped[j : j + 1],
    )


def _own(one: Table, treatment: str, outcome: str, model: Complete) -> list[list[float]]:
    """Effects in one data set, their variances and degrees of freedom, (m,) each."""
    fits = {
        treatment: fit_node(one, treatment, pooling=Complete(discrete="table")),
        outcome: fit_node(one, outcome, [treatment], pooling=model),
    }
    good = fits[outcome].status.ok and fits[outcome].status is not Status.SEPARATED
    terms = list(arc_terms(fits, treatment, outcome))
    found = [(term.effect, term.se**2 if good else math.inf, term.df) for term in terms]
    return [list(each) for each in zip(*found, strict=True)]
