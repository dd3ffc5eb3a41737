"""What statistics are of, in a few lines: rows, data sets, columns."""

from __future__ import annotations

import html
from collections.abc import Hashable, Sequence

from poolbn.wording import Noun, counted, shortened, visible

# Data sets, and columns, that a summary lists.
SHOWN = 10


def in_text(
    names: Sequence[str],
    levels: Sequence[Hashable],
    n: Sequence[int],
    dropped: Sequence[int],
    sets: Noun,
) -> str:
    """Columns, and data sets with their rows, on lines.

    Examples:
        >>> sites = Noun("site", "sites")
        >>> print(in_text(["age", "bmi"], ["NY", "Minnesota"], [1116, 237], [0, 9], sites))
        GroupStats: 1,353 rows, 2 sites, 2 columns
        columns: age, bmi
          NY         1,116 rows
          Minnesota    237 rows, 9 dropped
    """
    lines = [
        f"GroupStats: {_counts(names, levels, n, sets)}",
        f"columns: {visible(shortened(names, SHOWN))}",
    ]
    return "\n".join([*lines, *data_set_lines(levels, n, dropped)])


def data_set_lines(
    levels: Sequence[Hashable], n: Sequence[int], dropped: Sequence[int]
) -> list[str]:
    """Data sets with their rows."""
    lines = []
    shown = zip(levels[:SHOWN], n, dropped, strict=False)
    cells = [(visible(str(level)), f"{rows:,}", left) for level, rows, left in shown]
    wide = max(len(level) for level, _, _ in cells)
    long = max(len(rows) for _, rows, _ in cells)
    for level, rows, left in cells:
        gone = f", {left:,} dropped" if left else ""
        lines.append(f"  {level:<{wide}}  {rows:>{long}} rows{gone}")
    if len(levels) > SHOWN:
        lines.append(f"  ... and {len(levels) - SHOWN:,} more")
    return lines


def in_html(
    names: Sequence[str],
    levels: Sequence[Hashable],
    n: Sequence[int],
    dropped: Sequence[int],
    sets: Noun,
) -> str:
    """The same as a table for notebooks."""
    rows = "".join(
        f"<tr><td>{html.escape(str(level))}</td><td>{count:,}</td><td>{left:,}</td></tr>"
        for level, count, left in zip(levels[:SHOWN], n, dropped, strict=False)
    )
    if len(levels) > SHOWN:
        rows += f'<tr><td colspan="3">and {len(levels) - SHOWN:,} more</td></tr>'
    return (
        f"<p><b>GroupStats</b>: {_counts(names, levels, n, sets)}<br>columns: "
        f"{html.escape(shortened(names, SHOWN))}</p><table><thead><tr><th>{sets.one}</th>"
        f"<th>rows</th><th>dropped</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _counts(names: Sequence[str], levels: Sequence[Hashable], n: Sequence[int], sets: Noun) -> str:
    parts = (counted(sum(n), "row"), counted(len(levels), sets), counted(len(names), "column"))
    return ", ".join(parts)
