"""What the columns of a table look like to someone who inspects them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from poolbn.moments.facts import Edge
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import StandardisedStats

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 10  # that a table, or a data set, must have for its values to say something
_CHANCE = 5.0  # equal cells that numbers with gaps between them would have by chance
_FAR = 2.0  # from the other values, in their standard deviations: a code
# What ids are called: patient, pat_id, pupilNR, caseNo, record number; but not acid, lipid, piano.
IDS = re.compile(
    r"(?i:(.*[\W_])?(id|pid|nr|number)|.*[\W_](no|num)"
    r"|(.*[\W_])?(subject|patient|person|participant|pupil|student|record)(nr|no|num|number)?)"
    r"|.*[a-z](I[dD]|N[rRoO])"
)


@dataclass(frozen=True, eq=False)
class Inspected:
    """The continuous columns of a table as the checks see them.

    Attributes:
        stats: their statistics.
        data: the same, standardised.
        every: all columns.
        inputs: those of them that are inputs.
    """

    stats: GroupStats
    data: StandardisedStats
    every: tuple[str, ...]
    inputs: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The continuous columns."""
        return self.stats.names

    @cached_property
    def rows(self) -> int:
        """In all data sets together."""
        return self.stats.n_rows

    @cached_property
    def whole(self) -> list[bool]:
        """Which columns hold whole numbers, as far as that is known."""
        return [facts.digits == 0 for facts in self.stats.facts]

    @cached_property
    def constant(self) -> list[bool]:
        """Which columns have one value."""
        return [not square > 0 for square in self.data.total.diagonal()]

    @cached_property
    def still(self) -> NDArray[np.bool_]:
        """Where a column does not vary inside a data set that has rows enough, (F, N)."""
        return np.asarray(self.data.constant & (self.data.n >= ROWS / 2)[:, None])

    @cached_property
    def of_sites(self) -> list[bool]:
        """Which columns vary between data sets only."""
        site = self.data.group_level & self.still.any(axis=0)
        return [bool(yes) for yes in site]

    @cached_property
    def numbering(self) -> list[bool]:
        """Which columns are the whole numbers from one to another, each once."""
        n = self.rows
        spread = (n * n - 1) / 12
        close = (np.abs(self.data.scale**2 - spread) <= 1e-9 * spread).tolist()
        return [w and c and n >= ROWS for w, c in zip(self.whole, close, strict=True)]

    @cached_property
    def ids(self) -> list[bool]:
        """Which columns are another whole number in each row, and that not by chance."""
        found = []
        for k, facts in enumerate(self.stats.facts):
            different = facts.extent is not None and facts.extent.numbers is not None
            equal = self.rows**2 / (7 * max(float(self.data.scale[k]), 1e-300))
            likely = equal > _CHANCE or bool(IDS.fullmatch(self.names[k]))
            found.append(
                self.numbering[k] or (self.whole[k] and different and likely and self.rows >= ROWS)
            )
        return found

    @cached_property
    def codes(self) -> list[tuple[float, int]]:
        """For each column a value that may stand for a missing one, and its count; or (0, 0)."""
        found = []
        for k, facts in enumerate(self.stats.facts):
            ends = () if facts.extent is None else (facts.extent.low, facts.extent.high)
            codes = [
                (sign * end.value, end.cells)
                for sign, end in zip((1.0, -1.0), ends, strict=False)
                if end.cells and self._far(k, sign, end)
            ]
            found.append(codes[0] if codes else (0.0, 0))
        return found

    def _far(self, k: int, sign: float, end: Edge) -> bool:
        """Whether an end is further from the other values than these are from each other."""
        n, m = self.rows, end.cells
        if not isfinite(end.following):
            return False
        mean, variance = sign * float(self.data.center[k]), float(self.data.scale[k]) ** 2
        others = (n * mean - m * end.value) / (n - m)
        squares = n * (variance + mean**2) - m * end.value**2 - (n - m) * others**2
        sd = sqrt(max(squares, 0.0) / (n - m))
        return end.following - end.value > _FAR * sd

    def named(self, which: Sequence[bool]) -> list[str]:
        """The names of these columns."""
        return [name for name, yes in zip(self.names, which, strict=True) if yes]

    def learned(self, names: Iterable[str]) -> list[str]:
        """Without inputs, of which nothing is learned."""
        return [name for name in names if name not in self.inputs]
