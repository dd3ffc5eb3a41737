"""An order of columns that follows from what is in them, not from where they stand in a table.

Of moves that score the same a search makes the first: where scores do not tell x -> y from y -> x,
the order of columns would decide the graph. So `pb.learn` searches in this order. Neither units nor
the order of rows, columns and data sets change it, and names only where nothing else tells two
columns apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.data import Data
from poolbn.moments.indicators import spans
from poolbn.moments.standardised import standardise

Floats = NDArray[np.float64]

_DIGITS = 9  # what rounding may change is not compared
_FLAT = 1e-9  # variances below this share of the largest are 0


def canonical_order(data: Data) -> tuple[str, ...]:
    """The names of the columns in an order that follows from their values.

    First those that depend most on all others: in simulated tables hill climbing then ends no lower
    than with an order of chance. Then those that differ most between data sets.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days"]].dropna()
        >>> reversed_ = trial[[*trial.columns[::-1]]]
        >>> there, here = (pb.stats(rows, group="clinic") for rows in (trial, reversed_))
        >>> canonical_order(there) == canonical_order(here)
        True
    """
    numbers = standardise(data.stats())
    # A discrete column is a block of indicators; whitened, it does not matter which level has none.
    blocks = [slice(span.start, span.stop) for span in spans(data.categories)]
    within = numbers.scatter.sum(axis=0)
    inside = _whitened(within, numbers.total, blocks)
    keys = [
        _dependence(numbers.total, blocks),
        [-float(inside[block, block].trace() / max(len(inside[block]), 1)) for block in blocks],
        _dependence(within, blocks),
    ]
    # What has the same keys may still have other values: two columns of one data set, say.
    log_scale = np.log(numbers.scale)
    keys.append([float(log_scale[block].sum()) for block in blocks])
    ranked = sorted(zip((-np.round(keys, _DIGITS)).T.tolist(), data.names, strict=True))
    return tuple(name for _, name in ranked)


def _single(blocks: Sequence[slice]) -> bool:
    """Whether each is one column of numbers."""
    return all(block.stop == block.start + 1 for block in blocks)


def _whitened(matrix: Floats, by: Floats, blocks: Sequence[slice]) -> Floats:
    """A matrix (W, W) in units in which each block of the other is the identity."""
    if _single(blocks):
        own = np.diagonal(by)
        scale = np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1.0)), 0.0)
        return matrix * scale[:, None] * scale
    made = matrix.copy()
    for block in blocks:
        if block.start == block.stop:  # of one level
            continue
        values, vectors = np.linalg.eigh(by[block, block])
        there = values > _FLAT * max(float(values[-1]), 0.0)
        root = np.where(there, vectors, 0.0) / np.sqrt(np.where(there, values, 1.0))
        made[block] = root.T @ made[block]
        made[:, block] = made[:, block] @ root
    return made


def _dependence(matrix: Floats, blocks: Sequence[slice]) -> list[float]:
    """Of each block, the sum of its squared canonical correlations with each other one."""
    squares = _whitened(matrix, matrix, blocks) ** 2
    between = squares
    if not _single(blocks):
        rows = np.array([squares[block].sum(axis=0) for block in blocks])
        between = np.array([rows[:, block].sum(axis=1) for block in blocks])
    np.fill_diagonal(between, 0.0)
    found: list[float] = between.sum(axis=1).tolist()
    return found
