"""The effects of a network, and whether they are equal, within and between data sets, in words too.

An arc has one effect, or one for each level of a discrete parent, and of a discrete child, but the
first. A summary has them in the digits that are sure.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from poolbn.errors import DataError, check_interval, check_option
from poolbn.graph.dag import Dag
from poolbn.later import pandas as pd
from poolbn.moments.data import Data
from poolbn.multiplicity import adjusted_p
from poolbn.nodes.intervals import t_interval
from poolbn.nodes.localfit import LocalFit, level_columns
from poolbn.nodes.terms import RESIDUAL, WHERE, Equality, opposite
from poolbn.nodes.withinbetween import NUMBERS
from poolbn.wording import Noun, sure, visible

By = Literal["arc", "data set"]

TERM = ("parent", "level", "child", "outcome", "scale")
_NUMBERS = ("effect", "se", "df", "lower", "upper")
# Columns of the table, before those of the data sets.
COLUMNS = (*TERM, "pooling", *_NUMBERS, "between_sd", "opposite")
_LONG = (*TERM, "data_set", *_NUMBERS)


SHARES = ("parents", "data_sets", "units", "residual")  # of a node's variance, by level


def variances_table(fits: Mapping[str, LocalFit], data: Data) -> pd.DataFrame:
    """A row for each node: its variance, the share of each level, and correlations inside them."""
    rows: list[tuple[Any, ...]] = []
    for node, fit in fits.items():
        of = None if fit.is_given else fit.unset.variances(fit.about(data))
        if of is None:
            rows.append((node, *(math.nan,) * 7, ""))
            continue
        fixed = 0.0 if math.isnan(of.fixed) else of.fixed
        around = of.random + of.units + of.left
        parts = np.array([of.fixed, of.random, of.units, of.left])
        alike = np.array([of.random, of.random + of.units]) / around
        rows.append((node, fixed + around, *parts / (fixed + around), *alike, of.scale))
    names = ["node", "variance", *SHARES, "icc_data_set", "icc_unit", "scale"]
    return pd.DataFrame(rows, columns=names)


def effects_table(
    dag: Dag, fits: Mapping[str, LocalFit], interval: float = 0.95, by: By = "arc"
) -> pd.DataFrame:
    """A row for each effect: `COLUMNS`, then the effect in each data set; or `_LONG`."""
    check_interval(interval)
    check_option("by", by, get_args(By))
    levels = fits[dag.nodes[0]].levels
    rows: list[tuple[Any, ...]] = []
    for parent, child in dag.arcs:
        for term in fits[child].terms(parent):
            told = (parent, term.level, child, term.outcome, term.scale)
            own, out = term.reported(term.own), fits[child].experiments
            free = [j for j, level in enumerate(levels) if level not in out]
            if by == "arc":
                ends = term.reported(t_interval(term.effect, term.se, term.df, interval))
                numbers = (term.reported(term.effect), term.se, term.df, *ends.tolist())
                varies = (term.between_sd, opposite(term.effect, term.own[free]))
                rows.append((*told, str(fits[child].pooling), *numbers, *varies, *own))
            else:
                ends = term.reported(t_interval(term.own, term.own_se, term.own_df, interval))
                each = (levels, own, term.own_se, term.own_df, *ends.T)
                every = [(*told, *values) for values in zip(*each, strict=True)]
                rows += [every[j] for j in free]
    names = [*COLUMNS, *level_columns(levels, COLUMNS)] if by == "arc" else list(_LONG)
    return pd.DataFrame(rows, columns=pd.Index(names, dtype=object))


def heterogeneity_table(dag: Dag, fits: Mapping[str, LocalFit], data: Data | None) -> pd.DataFrame:
    """A row for each arc, and then one for each node with residuals: an `Equality`.

    P-values are adjusted over all arcs, and over all nodes.
    """
    _check_several(dag, fits, data)
    found = {
        (of, child): test
        for child in dag.nodes
        for of, test in fits[child].unset.equality(_about(fits[child], data)).items()
    }
    arcs, nodes = list(dag.arcs), [name for name in found if name[0] == RESIDUAL]
    adjusted = [adjusted_p([found[name].p_value for name in names]) for names in (arcs, nodes)]
    rows = [(*name, *found[name]) for name in [*arcs, *nodes]]
    table = pd.DataFrame(rows, columns=["parent", "child", *Equality._fields])
    return table.assign(p_adjusted=np.concatenate(adjusted))


def within_between_table(
    dag: Dag, fits: Mapping[str, LocalFit], data: Data | None, interval: float
) -> pd.DataFrame:
    """A row for each column of a parent of a continuous node."""
    _check_several(dag, fits, data)
    rows: list[tuple[Any, ...]] = []
    group = fits[dag.nodes[0]].group
    unit = next((fit.unit for fit in fits.values() if fit.unit is not None), None)
    for groups in (group,) if unit is None else (unit, group):
        inner = groups == unit
        each = {
            node: fit.unset.within_between(_about(fit, data), interval, units=inner)
            for node, fit in fits.items()
        }
        for parent, child in dag.arcs:
            if (numbers := each[child]) is not None:
                columns = fits[child].columns_of(parent)
                rows += [(parent, level, child, groups, *numbers[k]) for k, _, level in columns]
    table = pd.DataFrame(rows, columns=["parent", "level", "child", "groups", *NUMBERS])
    return table.assign(p_adjusted=adjusted_p(table["p_value"].tolist()))


def _about(fit: LocalFit, data: Data | None) -> Data | None:
    return None if data is None else fit.about(data)


def _check_several(dag: Dag, fits: Mapping[str, LocalFit], data: Data | None) -> None:
    levels = (fits[dag.nodes[0]] if data is None else data).levels
    if len(levels) < 2:
        raise DataError(f"there is one data set, {levels[0]!r}; differences need two or more")


RATIO = "ratio"  # in the names of scales whose errors are those of logarithms


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """What a network says, for people; `print` and notebooks show it."""

    heading: tuple[str, ...]  # lines above the table
    table: pd.DataFrame  # a row for each arc, or level of it, in words and rounded numbers
    notes: tuple[str, ...]  # what to know before one believes it

    def __repr__(self) -> str:
        notes = (f"  {note}" for note in self.notes)
        body = self.table.map(visible).to_string(index=False) if len(self.table) else "  no arcs"
        return "\n".join([*map(visible, self.heading), body, *map(visible, notes)])

    def _repr_html_(self) -> str:
        return self.as_html()

    def as_html(self, most: int | None = None) -> str:
        """The same for a notebook; `most` rows of the table."""
        title, *others = (html.escape(visible(line)) for line in (*self.heading, *self.notes))
        shown = self.table.iloc[:most].map(visible)
        body = shown.to_html(index=False, border=0) if len(shown) else "<p>no arcs</p>"
        left = len(self.table) - len(shown)
        more = f"<p>{left} more in <code>.effects()</code></p>" if left else ""
        return f"<p><b>{title}</b>{''.join(f'<br>{line}' for line in others)}</p>{body}{more}"


def summarised(
    heading: Sequence[str], effects: pd.DataFrame, notes: Iterable[str], interval: float, sets: Noun
) -> Summary:
    """Put effects by arc, from `Network.effects`, into words."""
    rows = [_row(row, interval, sets) for row in effects.to_dict("records")]
    columns = ["arc", "effect", _interval(interval), "scale", f"SD between {sets.many}"]
    return Summary(tuple(heading), pd.DataFrame(rows, columns=columns), tuple(notes))


def _interval(interval: float) -> str:
    return f"{100 * interval:.4g}% interval"


def _row(row: dict[Any, Any], interval: float, sets: Noun) -> dict[str, str]:
    error = float(row["se"])
    if row["scale"].endswith(RATIO):  # the error is that of a logarithm
        error = abs(row["effect"]) * error
    known = math.isfinite(row["lower"]) and math.isfinite(row["upper"])
    ends = f"{sure(row['lower'], error)} to {sure(row['upper'], error)}" if known else "-"
    return {
        "arc": arc_of(row),
        "effect": sure(row["effect"], error),
        _interval(interval): ends,
        "scale": row["scale"],
        f"SD between {sets.many}": _between(row["between_sd"]),
    }


def told(row: Mapping[Any, Any], sets: Noun) -> str:
    """A line of a printed network: a row of `Network.effects`."""
    effect, se, sd, ratio = row["effect"], row["se"], row["between_sd"], ""
    error, log = se, ""
    if row["scale"].endswith(RATIO):
        ratio, error, log = f"{row['scale']} ", abs(effect) * se, "of log "
    off = f" (SE {log}{sure(se, se)})" if math.isfinite(se) else ""
    varies = "" if math.isnan(sd) else f", SD {log}between {sets.many} {_between(sd)}"
    return f"{arc_of(row)}  {ratio}{sure(effect, error)}{off}{varies}"


def arc_of(row: Mapping[Any, Any]) -> str:
    """What an effect is of, with levels: "sex = male -> ill = yes"."""
    return f"{_with(row['parent'], row['level'])} -> {_with(row['child'], row['outcome'])}"


def _between(sd: float) -> str:
    """A standard deviation, whose third digit nobody knows; "-" where there is none."""
    return "-" if math.isnan(sd) else sure(sd, sd)


def _with(name: str, level: str) -> str:
    between = " " if level.startswith(WHERE) else " = "
    return f"{name}{between}{level}" if level else name
