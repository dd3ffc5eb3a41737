"""Patterns of few rows made coarser, so that no row follows from what is handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.moments.patterns import Gaps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Cell(NamedTuple):
    """Rows of one data set that lack the same columns."""

    missing: NDArray[np.bool_]
    n: int
    mean: Floats
    scatter: Floats


def cells_of(gaps: Gaps, j: int) -> list[Cell]:
    """Those of a data set; single rows are put together by what they lack."""
    at = np.flatnonzero(gaps.data_set == j)
    found = [Cell(gaps.missing[k], int(gaps.n[k]), gaps.mean[k], gaps.scatter[k]) for k in at]
    rows = gaps.rows[gaps.rows_of == j]
    lacks, which = np.unique(np.isnan(rows), axis=0, return_inverse=True)
    for k, missing in enumerate(lacks):
        own = np.where(missing, 0.0, rows[which.ravel() == k])
        mean = own.mean(axis=0)
        found.append(Cell(missing, len(own), mean, (own - mean).T @ (own - mean)))
    return together(found)


def together(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that lack the same become one."""
    found: dict[bytes, Cell] = {}
    for cell in cells:
        key = cell.missing.tobytes()
        found[key] = merged(found[key], cell) if key in found else cell
    return [found[key] for key in sorted(found)]


def merged(a: Cell, b: Cell) -> Cell:
    """Both as one, without the columns that either lacks."""
    missing = a.missing | b.missing
    n = a.n + b.n
    away = a.mean - b.mean
    scatter = a.scatter + b.scatter + a.n * b.n / n * np.outer(away, away)
    keep = np.outer(~missing, ~missing)
    mean = np.where(missing, 0.0, (a.n * a.mean + b.n * b.mean) / n)
    return Cell(missing, n, mean, np.where(keep, scatter, 0.0))


def coarser(cells: Sequence[Cell], least: int) -> list[Cell]:
    """Cells of so many rows at least.

    The smallest is put together with the one that it loses the fewest observed cells with, again
    and again. What is left alone, or would lack all, is left out.
    """
    found = together(cells)
    while found:
        k = min(range(len(found)), key=lambda i: found[i].n)
        small = found[k]
        if small.n >= least:
            break
        others = [cell for i, cell in enumerate(found) if i != k]
        found = others
        if not others:
            break
        masks, n = np.array([cell.missing for cell in others]), np.array([c.n for c in others])
        union = masks | small.missing
        lost = small.n * (union & ~small.missing).sum(axis=1) + n * (union & ~masks).sum(axis=1)
        best = int(np.where(union.all(axis=1), np.iinfo(np.int64).max, lost).argmin())
        if lost[best] < small.n * (~small.missing).sum() and not union[best].all():
            found = together([merged(others[best], small), *others[:best], *others[best + 1 :]])
    return found
