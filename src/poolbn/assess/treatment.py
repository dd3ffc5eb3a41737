"""`treatment_effects`: what a column that was drawn by lot does to others, in each data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from poolbn.arguments import TEXT, check_arguments, names_of
from poolbn.errors import DataError, Option, OptionError, check_interval
from poolbn.graph.dag import Dag
from poolbn.moments.reading import check_reading
from poolbn.moments.table import Table, table
from poolbn.multiplicity import adjusted_p
from poolbn.network.effects import terms_by_arc
from poolbn.nodes.choosing import as_pooling, fit_node
from poolbn.nodes.poolings import Complete
from poolbn.tables.data import prepare_kinds
from poolbn.tables.grouping import Group
from poolbn.tables.kinds import ColumnKind

if TYPE_CHECKING:
    import pandas as pd

    from poolbn.nodes.model import Choice

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
        A row for each outcome, and for each level of a treatment or outcome but the first: the
        effect in the population, a difference of means, an odds ratio or a rate ratio; its
        interval; a p-value, and Benjamini and Hochberg's for all rows; the rows that it is from;
        and the effect in each data set.

    Raises:
        DataError: a column is not there, or cannot be used.

    Examples:
        >>> import poolbn as pb
        >>> found = pb.treatment_effects(pb.datasets.opt(), treatment="treatment", group="clinic",
        ...                              outcomes=["bleeding_5", "preterm"])
        >>> found[["child", "scale", "effect", "lower", "upper", "rows"]].round(2)
                child       scale  effect  lower  upper  rows
        0  bleeding_5  difference  -21.24 -40.64  -1.85   659
        1     preterm  odds ratio    0.93   0.46   1.89   814
    """
    import pandas as pd

    check_arguments(treatment=(treatment, TEXT))
    check_reading(group, outcomes, ())
    check_interval(interval)
    model = as_pooling(pooling)
    chosen = _outcomes(source, treatment, group, outcomes, kinds)
    found = []
    for outcome in chosen:
        columns = [treatment, outcome]
        of = _rows(source, group, columns, kinds)
        fits = {
            treatment: fit_node(of, treatment, pooling=Complete(discrete="table")),
            outcome: fit_node(of, outcome, [treatment], pooling=model),
        }
        terms = terms_by_arc(Dag(columns, [(treatment, outcome)]), fits, interval)
        first = list(terms.columns).index("between_sd")
        terms.insert(first, "rows", of.n_rows)
        found.append(terms)
    made = pd.concat(found, ignore_index=True).drop(columns=_LEFT_OUT)
    p = _p_values(made)
    made.insert(list(made.columns).index("rows"), "p_value", p)
    made.insert(list(made.columns).index("rows"), "p_adjusted", adjusted_p(p))
    return made


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


def _p_values(effects: pd.DataFrame) -> list[float]:
    """Of tests that an effect in the population is 0, or a ratio 1."""
    from scipy.stats import t

    effect = effects["effect"].to_numpy()
    with np.errstate(divide="ignore"):
        effect = np.where(effects["scale"] == "difference", effect, np.log(np.abs(effect)))
    found: list[float] = (2 * t.sf(np.abs(effect / effects["se"]), effects["df"])).tolist()
    return found
