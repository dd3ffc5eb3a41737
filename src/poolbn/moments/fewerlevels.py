"""Levels put together and columns left out, until no configuration has few rows.

A column has its forms: all its levels, the rarest two as one, and so on down to two, and none. Each
step goes to another form, the one that loses least information for each row that is in a small cell
no more. So rare levels go first, and a column whose rare level stands alone goes before others lose
theirs. In the end what is not needed to be gone comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.moments.cellsfile import OTHER
from poolbn.moments.discrete import Cells

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Fewer:
    """A discrete column with fewer levels.

    Attributes:
        levels: those that are left; what stands for several is last, and is called "other".
        code: the code in these of each level that there was, (K,).
    """

    levels: tuple[str, ...]
    code: NDArray[np.int64]

    def merge(self, gone: Sequence[int]) -> Fewer:
        """With these levels put together, which then are the last."""
        kept = [level for k, level in enumerate(self.levels) if k not in gone]
        return Fewer((*kept, OTHER), _last(len(self.levels), gone)[self.code])


def _last(K: int, gone: Sequence[int]) -> NDArray[np.int64]:
    """The new code of each level, where some become one, the last, (K,)."""
    kept = [k for k in range(K) if k not in gone]
    code = np.full(K, len(kept), dtype=np.int64)
    code[kept] = np.arange(len(kept))
    return code


def _rarest(levels: Sequence[str], rows: NDArray[np.float64]) -> list[int]:
    """The two rarest levels; where one stands for others already, the rarest and this."""
    order: list[int] = np.argsort(rows, kind="stable").tolist()
    if OTHER in levels:
        other = levels.index(OTHER)
        return [next(k for k in order if k != other), other]
    return order[:2]


class _Form(NamedTuple):
    """What may become of a column: fewer levels or, None, nothing; what it says, in nats."""

    column: Fewer | None
    information: float


def _forms(levels: tuple[str, ...], rows: NDArray[np.float64]) -> list[_Form]:
    """From all levels to none; a column with one level says nothing, and stays."""
    column = Fewer(levels, np.arange(len(levels)))
    found = [_Form(column, _information(rows))]
    while len(column.levels) > 2:
        column = column.merge(_rarest(column.levels, _added(rows, column)))
        found.append(_Form(column, _information(_added(rows, column))))
    return [*found, _Form(None, 0.0)] if len(levels) > 1 else found


def _added(rows: NDArray[np.float64], column: Fewer) -> NDArray[np.float64]:
    """Rows with each level that is left."""
    return np.bincount(column.code, rows).astype(np.float64)


def _information(rows: NDArray[np.float64]) -> float:
    """What it says which of some levels each row has."""
    n = rows.sum()
    return float(n * np.log(n) - (rows * np.log(rows)).sum())


def fewer_levels(
    cells: Cells, categories: Sequence[tuple[str, ...]], least: int
) -> list[Fewer | None]:
    """For each discrete column what is left of it, None for nothing.

    Args:
        cells: of all discrete columns; each data set has so many rows.
        categories: their levels, all of which occur.
        least: the rows that a cell must have.
    """
    forms = [
        _forms(levels, np.bincount(codes, cells.n).astype(np.float64))
        for levels, codes in zip(categories, cells.codes.T, strict=True)
    ]

    def small(at: Sequence[int]) -> int:
        """Rows in small cells."""
        some = [(m, forms[m][i].column) for m, i in enumerate(at)]
        there = [(m, column) for m, column in some if column is not None]
        codes = [column.code[cells.codes[:, m]] for m, column in there]
        made = np.array(codes, dtype=np.int64).reshape(len(there), len(cells.n)).T
        n = cells._replace(codes=made).merged([len(column.levels) for _, column in there]).n
        return int(n[n < least].sum())

    def price(step: list[int]) -> tuple[float, float]:
        """Information for each row that is saved."""
        lost = sum(
            own[i].information - own[k].information
            for own, i, k in zip(forms, at, step, strict=True)
        )
        saved = now - small(step)
        return (lost / saved if saved else inf), lost

    at = [0] * len(forms)
    while now := small(at):
        further = [(m, i) for m, own in enumerate(forms) for i in range(at[m] + 1, len(own))]
        at = min(([*at[:m], i, *at[m + 1 :]] for m, i in further), key=price)
    for m in sorted(range(len(forms)), key=lambda m: -forms[m][0].information):
        finer = ([*at[:m], i, *at[m + 1 :]] for i in range(at[m]))
        at = next((back for back in finer if not small(back)), at)
    return [own[i].column for own, i in zip(forms, at, strict=True)]
