"""What is odd about discrete columns: they describe data sets, or follow from other columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from poolbn.errors import EM
from poolbn.findings import Finding, FindingKind, without
from poolbn.moments.cellstats import CellStats
from poolbn.moments.inspected import ROWS
from poolbn.moments.table import Table
from poolbn.wording import listed, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poolbn.moments.data import Data

_SAMPLE = 500  # rows that tell of most columns that they do not follow from each other
_TOLD = 8  # of those that do, in a message


class _Levels:
    """Discrete columns of rows, or of configurations that several rows have.

    Attributes:
        names: the M columns.
        sizes: the number of levels of each, (M,).
        codes: of each row or configuration, (M, R); -1 where a cell is missing.
        data_set: of each, (R,).
        n: its rows, (R,).
    """

    def __init__(self, stats: Data) -> None:
        at = [k for k, kind in enumerate(stats.kinds) if kind == "discrete"]
        self.names = [stats.names[k] for k in at]
        self.sizes = [len(stats.categories[k]) for k in at]
        if isinstance(stats, Table):
            rows = stats.values[at]
            self.codes = np.where(np.isnan(rows), -1, rows).astype(np.int64)
            self.data_set = np.repeat(np.arange(len(stats.levels)), stats.n)
            self.n = np.ones(len(self.data_set), dtype=np.int64)
        else:
            assert isinstance(stats, CellStats)
            self.codes = stats.cells.codes.T
            self.data_set, self.n = stats.cells.data_set, stats.cells.n

    def together(self, a: NDArray[np.int64], of: int, k: int) -> NDArray[np.int64]:
        """Rows by code of a column with `of` codes and level of column k, (of, levels)."""
        there = (a >= 0) & (self.codes[k] >= 0)
        both = a[there] * self.sizes[k] + self.codes[k][there]
        size = (of, self.sizes[k])
        return np.bincount(both, self.n[there], of * size[1]).reshape(size).astype(np.int64)


def of_sites(stats: Data) -> list[str]:
    """Discrete columns that have one level in each data set, and not the same in all.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "tobacco"]].dropna()
        >>> south = trial.assign(south=trial["clinic"].isin(["KY", "MS"]))
        >>> of_sites(pb.table(south, group="clinic"))
        ['south']
    """
    columns, F = _Levels(stats), len(stats.levels)
    found = []
    for k, name in enumerate(columns.names):
        counts = columns.together(columns.data_set, F, k)
        several = (counts > 0).sum(axis=1)
        varies = (counts > 0).any(axis=0).sum() > 1
        if several.max() == 1 and varies and counts.max() >= ROWS / 2:
            found.append(name)
    return found


def derived(stats: Data, sites: Sequence[str]) -> Finding | None:
    """Discrete columns whose level follows from another column: a coarser one, or a cut of it.

    Not `sites`, which describe data sets: they have few values, and follow from others by chance.
    """
    columns = _Levels(stats)
    found = (*_coarser(columns), *_cuts(stats, columns))
    pairs = [(name, of) for name, of in found if name not in sites]
    names = list(dict.fromkeys(name for name, _ in pairs))
    if not names:
        return None
    told = listed([f"{name!r} from {of!r}" for name, of in pairs], _TOLD)
    what = f"levels that follow from another column, as a cut of it does: {told}"
    remedy = ("use one of the two, for example ", *without(names, stats.names))
    return Finding(FindingKind.DERIVED, tuple(names), (), len(pairs), what, remedy)


def rare(table: Data) -> Finding | None:
    """Levels that one row has, of which nothing can be learned; rows tell of them."""
    if not isinstance(table, Table):
        return None
    found: dict[str, list[str]] = {}
    for name, own, codes in zip(table.names, table.categories, table.values, strict=True):
        if own:
            there = codes[~np.isnan(codes)].astype(np.int64)
            rows = np.bincount(there, minlength=len(own)).tolist()
            found[name] = [level for level, n in zip(own, rows, strict=True) if n == 1]
    told = [f"{shortened([repr(v) for v in few], 4)} of {name!r}" for name, few in found.items()
            if few]  # fmt: skip
    names = [name for name, few in found.items() if few]
    what = f"one row alone has the level{'s' * (sum(map(len, found.values())) > 1)} {listed(told)}"
    remedy = ("merge such levels with others, or make these cells missing and use ", EM)
    count = sum(map(len, found.values()))
    return Finding(FindingKind.RARE_LEVEL, tuple(names), (), count, what, remedy) if names else None


def _coarser(columns: _Levels) -> Iterator[tuple[str, str]]:
    """Pairs of columns, the first of which has one level at each level of the second."""
    follows: set[tuple[int, int]] = set()
    rows = int(columns.n.sum())
    for k in range(len(columns.names)):
        for by in range(len(columns.names)):
            if by == k or rows < ROWS * columns.sizes[by]:
                continue
            counts = columns.together(columns.codes[by], columns.sizes[by], k)
            seen = counts.sum(axis=0) >= ROWS / 2
            if seen.sum() > 1 and (counts > 0).sum(axis=1).max() == 1 and (by, k) not in follows:
                follows.add((k, by))
                yield columns.names[k], columns.names[by]


def _cuts(stats: Data, columns: _Levels) -> Iterator[tuple[str, str]]:
    """Discrete and continuous columns, whose values at different levels do not overlap."""
    if not isinstance(stats, Table):
        return
    numbers = [k for k, kind in enumerate(stats.kinds) if kind != "discrete"]
    few = slice(None, None, max(stats.n_rows // _SAMPLE, 1))
    for name, size, codes in zip(columns.names, columns.sizes, columns.codes, strict=True):
        for k in numbers:
            x = stats.values[k]
            if _apart(codes[few], x[few], size, 1) and _apart(codes, x, size, ROWS // 2):
                yield name, stats.names[k]


def _apart(codes: NDArray[np.int64], x: NDArray[np.float64], size: int, least: int) -> bool:
    """Whether no value at a level lies among those at another, with enough rows of two levels."""
    there = (codes >= 0) & ~np.isnan(x)
    codes, x = codes[there], x[there]
    rows = np.bincount(codes, minlength=size)
    if (rows >= least).sum() < 2:
        return False
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, codes, x)
    np.maximum.at(high, codes, x)
    order = np.argsort(low[rows > 0])
    return bool((high[rows > 0][order][:-1] < low[rows > 0][order][1:]).all())
