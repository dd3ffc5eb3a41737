"""All changes of a node's parents by one column, as a search with partial pooling wants them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.standardised import Family, StandardisedStats, pack, units
from poolbn.nodes import lmm
from poolbn.nodes.model import NeighbourScores
from poolbn.run.compiling import kernels

# Columns that a search leaves out, see `kernels.screens`. These are no bounds. But of 76,524
# columns that raise the score, among 272,942 of families of simulated and real tables, 5 would be
# left out, and 80% of the others. 2 of 720 searches end in another graph: benchmarks/candidates.py.
_MORE = 1.5  # what a fit may gain, over what small steps do
_OWN = 0.5  # of the charge for a parent, what the data sets' own slopes may gain
_LOSS = 1e-6  # of score, at least, by such a column


def neighbours(
    data: StandardisedStats,
    families: Sequence[Family],
    candidates: NDArray[np.bool_],
    *,
    charges: Callable[[int, int], NDArray[np.float64]],
    improving_only: bool,
) -> NeighbourScores:
    """Scores of nodes, and upper bounds with each change of their parents by a column.

    All slopes vary that can, and there is one residual variance. The best change of each node is
    known exactly, if it raises the score.

    Args:
        data: the statistics.
        families: the nodes and their parents.
        candidates: columns to add or to remove, (M, N).
        charges: of so many parents and slopes that vary, see `kernels.candidates.look`, (3, 3).
        improving_only: whether columns that would lower the score, as far as can be told without a
            fit, are left out: of them it is only said that they do.
    """
    F, N = data.mean.shape
    model, slopes = lmm.RESIDUALS["shared"], lmm.Slopes.of(data, "full")
    packed, without = pack(data, families, slopes.key), slopes.without(families)
    sizes = packed.sizes.tolist()
    counts = zip(sizes, without.tolist(), strict=True)
    q = max(sizes) + 1
    work, kernel = kernels("work"), kernels("candidates")
    (buffer,) = work.rooms(F, q + 1, False, work.shapes)
    values, exact = np.empty((len(families), N)), np.empty((len(families), N), dtype=bool)
    kernel.look(
        data.n, data.mean, data.scatter, data.squares, *packed, without, slopes.ranks, slopes.flags,
        candidates, model.score_starts, model.near * (F - 1), lmm.TOLERANCE,
        np.array([charges(p, p - none) for p, none in counts]), units(data, packed, False),
        _MORE, _OWN, _LOSS if improving_only else 0.0, buffer,
        *np.empty((2, q + 1), dtype=np.int64), np.zeros(4), np.empty((q, q)), np.empty((q, q)),
        np.zeros(kernels("screens").room(F, q, N)), np.empty((2, N)), values, exact,
    )  # fmt: skip
    return NeighbourScores(values, exact)
