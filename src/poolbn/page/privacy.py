"""What the head of a report says of rows: whether it has them, and what it leaves out."""

from __future__ import annotations

from poolbn.assess.residuals import CELL, FEWEST
from poolbn.page.context import Context
from poolbn.show.texts import arrow
from poolbn.wording import counted, listed

_GROUPED = 8  # variables or arcs of which a report has less


def about_privacy(of: Context) -> str:
    """Whether a report has rows, for its head."""
    if of.open:
        return (
            "This report contains rows of the data. Give it only to those who may see them, or "
            "write it without rows=True or --include-rows."
        )
    return " ".join(
        [
            "This report contains no rows: estimates, counts and sums over rows only.",
            *_suppressed(of),
        ]
    )


def _suppressed(of: Context) -> list[str]:
    """What a report has not, and what it is made from."""
    may, sets, said = of.disclosed, of.sets, []
    if of.hidden:
        scarce = f", or fewer than {CELL} with one of two numbers" * may.scarce
        few = f"{counted(len(of.hidden), sets)} with fewer than {FEWEST} rows{scarce}"
        few = f"{few} ({listed(of.hidden)})"
        if may.shown.all():
            were = "was" if len(of.hidden) == 1 else "were"
            said.append(f"{few} {were} left out: all estimates are of the other {sets.many}.")
        else:
            said.append(f"As it cannot leave out {few}, it has estimates of the population alone.")
    if may.later:
        came = listed([str(level) for level in may.later])
        said.append(f"{sets.many.capitalize()} that came later were left out ({came}).")
    if may.columns:
        said.append(f"Variables that do not differ then were left out: {listed(may.columns)}.")
    if may.grouped:
        said.append(
            f"For {listed(may.grouped, _GROUPED)}, {sets.many} are put together and not shown "
            f"apart where fewer than {FEWEST} rows have the same levels, or fewer than {CELL} a "
            "level."
        )
    if may.arcs:
        arcs = listed([arrow(*arc) for arc in may.arcs], _GROUPED)
        are = "is" if len(may.arcs) == 1 else "are"
        said.append(
            f"{counted(len(may.arcs), 'arc')} of the network {are} not here, as too few rows of "
            f"all {sets.many} together have some of the levels: {arcs}."
        )
    return said
