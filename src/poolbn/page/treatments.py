"""What inputs do to the other variables: a table, and a card of the summary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from poolbn.page.context import Context
from poolbn.page.spreadsheet import ReportTable, made, p_cell, text_cell, value_cell
from poolbn.page.words import Card
from poolbn.show.texts import number

_COLUMNS = 12  # data sets that have a column each
_NAMED = 4  # variables in a sentence
_CLEAR = 0.05  # adjusted p-value


def treatment_tables(of: Context) -> list[ReportTable]:
    """A table for each input: a row for each effect of it, in the rows that have both columns."""
    return [_table(of, cause, number) for number, cause in enumerate(of.treated)]


def _table(of: Context, cause: str, index: int) -> ReportTable:
    each, levels = len(of.names) <= _COLUMNS, of.net.fits[cause].categories
    help = {
        "variable": "choose it to see its distribution",
        "for": f"level of {cause}",
        "scale": "of the effect",
        "effect": f"mean of these {of.sets.many}",
        "95% interval": "of the mean",
        "p": (
            f"test of no mean effect in these {of.sets.many}, adjusted for the rows of this table "
            "(Benjamini and Hochberg)"
        ),
        f"all {of.sets.many}": f"95% interval of the mean in the population of {of.sets.many}",
        "rows": "that have both variables",
        **(
            dict.fromkeys(of.names, "")
            if each
            else {"least": f"of the {of.sets.many}", "largest": ""}
        ),
    }
    nodes = {name: i for i, name in enumerate(of.net.dag.nodes)}
    rows = []
    for row in of.treated[cause].sort_values("p_value", kind="stable").to_dict("records"):
        own = _shown(of, cause, row)
        ends = [np.nanmin(own), np.nanmax(own)] if np.isfinite(own).any() else [math.nan] * 2
        rows.append(
            (
                text_cell(row["child"], node=nodes[row["child"]]),
                text_cell(row["level"]) if len(levels) > 2 else None,
                text_cell(_scale(row)),
                value_cell(row["mean"], _short(row["mean"])),
                value_cell(row["mean_lower"], _interval(row, "mean_")),
                p_cell(row["p_adjusted"]),
                value_cell(row["lower"], _interval(row)),
                value_cell(row["rows"], f"{row['rows']:,}"),
                *(value_cell(float(of), _short(float(of))) for of in (own if each else ends)),
            )
        )
    change = f"of {levels[1]} instead of {levels[0]} " if len(levels) == 2 else ""
    note = (
        f"Each variable given {cause} alone, in all rows that have both. If {cause} was drawn by "
        f"lot, these are its effects, {change}in each {of.sets.one} and in all of them; if not, "
        f"they are associations. Those of single {of.sets.many} are shrunk towards the others. "
        f"The effect, its interval and p are about these {of.sets.many} only: where effects vary "
        "around 0, p is small more often than in 5% of tables."
    )
    return made(f"treated-{index}", f"What {cause} changes", help, rows, note)


def _scale(row: dict[Any, Any]) -> str:
    return f"{row['scale']}{' of ' * bool(row['outcome'])}{row['outcome']}"


def _shown(of: Context, cause: str, row: dict[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The effects of data sets; NaN where there is none, or it may not be shown, (F,)."""
    own = np.array([row.get(level, math.nan) for level in of.net.levels], dtype=np.float64)
    shown = of.disclosed.of((cause, row["child"]))
    return np.where(shown, own, math.nan)


def _interval(row: dict[Any, Any], of: str = "") -> str:
    return f"{_short(row[f'{of}lower'])} to {_short(row[f'{of}upper'])}"


def _short(value: float) -> str:
    """Three digits: the fourth is not sure."""
    return number(float(f"{value:.3g}"))


def treatment_cards(of: Context) -> list[Card]:
    """For each input, what it clearly changes, and what not."""
    return [_card(of, cause) for cause in of.treated]


def changed(of: Context, cause: str) -> tuple[list[str], list[str]]:
    """Variables that clearly go with an input, and the others; the last columns first."""
    rows = of.treated[cause].to_dict("records")
    clear = {str(row["child"]) for row in rows if row["p_adjusted"] < _CLEAR}
    names = list(dict.fromkeys(str(row["child"]) for row in reversed(rows)))
    return [n for n in names if n in clear], [n for n in names if n not in clear]


def _card(of: Context, cause: str) -> Card:
    clear: list[str] = []
    others: list[str] = []
    for row in of.treated[cause].to_dict("records"):
        scale = "" if row["scale"] == "difference" else f" {_scale(row)}"
        told = f"{row['child']}{scale} {_short(row['mean'])} ({_interval(row, 'mean_')})"
        (clear if row["p_adjusted"] < _CLEAR else others).append(told)
    sentences = []
    if clear:
        sentences.append(f"Clear: {_last(clear)}.")
    if others:
        sentences.append(f"Not clear: {_last(others)}.")
    return Card(f"What {cause} changes", sentences, bullets=True)


def _last(told: list[str]) -> str:
    """The last ones: the last columns of a table are its outcomes, as a rule."""
    more = f", and {len(told) - _NAMED} more" * (len(told) > _NAMED)
    return f"{', '.join(told[-_NAMED:])}{more}"
