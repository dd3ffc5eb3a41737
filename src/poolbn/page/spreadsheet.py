"""What tables of a report are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

from poolbn.show.texts import number, p_value

MOST = 400  # rows of a table that grows with the square of the nodes


class Cell(NamedTuple):
    """What a cell shows, what it is sorted by (None for last), and the arc or node it leads to."""

    text: str
    value: float | str | None
    arc: int | None = None
    node: int | None = None


@dataclass(frozen=True)
class ReportTable:
    """A table: its id, its title, names of columns with explanations, rows, and a note."""

    key: str
    title: str
    columns: Mapping[str, str]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        columns = zip(*self.rows, strict=True)
        return tuple(not any(isinstance(cell.value, str) for cell in cells) for cells in columns)


def made(
    key: str,
    title: str,
    help: Mapping[str, str],
    rows: Sequence[Sequence[Cell | None]],
    *notes: str,
) -> ReportTable:
    """A table without the columns that have no cells."""
    there = [not rows or rows[0][k] is not None for k in range(len(help))]
    columns = dict(compress(help.items(), there))
    cells = tuple(tuple(cell for cell in row if cell is not None) for row in rows)
    return ReportTable(key, title, columns, cells, " ".join(filter(None, notes)))


def value_cell(value: float | None, text: str | None = None) -> Cell:
    """A number, which may have a text of its own."""
    sortable = value is not None and math.isfinite(value)
    return Cell(number(value) if text is None else text, value if sortable else None)


def p_cell(p: float | None) -> Cell:
    """A p-value."""
    return value_cell(p, p_value(p))


def text_cell(text: str, arc: int | None = None, node: int | None = None) -> Cell:
    """A text, which may lead to an arc or a node."""
    return Cell(text, text.lower(), arc, node)
