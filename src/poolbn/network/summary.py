"""The summary of a network: its arcs with their effects, in the digits that are sure."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poolbn.later import pandas as pd
from poolbn.wording import Noun, sure, visible

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
    return f"{name} = {level}" if level else name
