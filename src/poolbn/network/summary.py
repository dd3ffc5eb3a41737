"""The summary of a network: its arcs with their effects, in the digits that are sure."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poolbn.wording import Noun, sure, visible

if TYPE_CHECKING:
    import pandas as pd

_RATIO = "ratio"  # in the names of scales whose errors are those of logarithms


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """What a network says, for people; `print` and notebooks show it.

    Attributes:
        heading: lines above the table.
        table: a row for each arc, or level of it, in words and rounded numbers.
        notes: what to know before one believes it.
    """

    heading: tuple[str, ...]
    table: pd.DataFrame
    notes: tuple[str, ...]

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
    heading: Sequence[str],
    effects: pd.DataFrame,
    notes: Iterable[str],
    interval: float,
    sets: Noun,
) -> Summary:
    """Put effects into words.

    Args:
        heading: lines above the table.
        effects: from `Network.effects`, by arc.
        notes: what to know before one believes it.
        interval: the probability of the intervals.
        sets: what data sets are called.
    """
    import pandas as pd

    rows = [_row(row, interval, sets) for row in effects.to_dict("records")]
    table = pd.DataFrame(rows)
    if rows and all(row["scale"] in ("", "difference") for row in rows):
        table = table.drop(columns="scale")
    return Summary(tuple(heading), table, tuple(notes))


def _row(row: dict[Any, Any], interval: float, sets: Noun) -> dict[str, str]:
    scale = str(row.get("scale", ""))
    error = float(row["se"])
    if scale.endswith(_RATIO):  # the error is that of a logarithm
        error = abs(row["effect"]) * error
    known = math.isfinite(row["lower"]) and math.isfinite(row["upper"])
    ends = f"{sure(row['lower'], error)} to {sure(row['upper'], error)}" if known else "-"
    return {
        "arc": f"{_with(row['parent'], row.get('level'))} -> "
        f"{_with(row['child'], row.get('outcome'))}",
        "effect": sure(row["effect"], error),
        f"{100 * interval:.4g}% interval": ends,
        "scale": scale,
        f"SD between {sets.many}": between(row["between_sd"]),
    }


def between(sd: float) -> str:
    """A standard deviation, whose third digit nobody knows; "-" where there is none."""
    return "-" if math.isnan(sd) else sure(sd, sd)


def _with(name: str, level: object) -> str:
    return f"{name} = {level}" if isinstance(level, str) and level else name
