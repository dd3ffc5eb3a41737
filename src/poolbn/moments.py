"""Means and centred scatter matrices of batches of rows, and how they add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poolbn.data import Batch

# Rows put in order at a time: so few that a column of them stays in the cache, and no power of two,
# at which columns compete for the same places there; but at least so many of each data set.
_ROWS = 30_000
_ROWS_EACH = 64


@dataclass
class Sums:
    """Statistics in the making, with room for data sets to come.

    Attributes:
        n: rows, (F,).
        mean: means, (F, N).
        scatter: centred sums of squares and products, (F, N, N).
        dropped: rows left out, (F,).
    """

    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    dropped: NDArray[np.int64]

    @staticmethod
    def zeros(size: int, width: int) -> Sums:
        """Room for `size` data sets of `width` columns."""
        return Sums(
            np.zeros(size, dtype=np.int64),
            np.zeros((size, width)),
            np.zeros((size, width, width)),
            np.zeros(size, dtype=np.int64),
        )

    def grown(self, size: int) -> Sums:
        """Room for `size` data sets; doubles, so that growing one by one costs little."""
        have, width = self.mean.shape
        if size <= have:
            return self
        larger = Sums.zeros(max(size, 2 * have), width)
        larger.n[:have] = self.n
        larger.mean[:have] = self.mean
        larger.scatter[:have] = self.scatter
        larger.dropped[:have] = self.dropped
        return larger

    def add(
        self,
        at: NDArray[np.intp],
        n: NDArray[np.int64],
        mean: NDArray[np.float64],
        scatter: NDArray[np.float64],
    ) -> None:
        """The pairwise update of means and scatter (Chan, Golub and LeVeque 1983)."""
        old = self.n[at]
        known = (old > 0)[:, None]
        delta = np.where(known, mean - self.mean[at], 0.0)
        weight = n / (old + n)
        self.mean[at] = np.where(known, self.mean[at] + weight[:, None] * delta, mean)
        between = delta[:, :, None] * delta[:, None, :]
        self.scatter[at] += scatter + (old * weight)[:, None, None] * between
        self.n[at] = old + n

    def cut(self, size: int) -> Sums:
        """The first `size` data sets, without room for more."""
        part = slice(size)
        return Sums(
            self.n[part].copy(),
            self.mean[part].copy(),
            self.scatter[part].copy(),
            self.dropped[part].copy(),
        )


def portions(batch: Batch, sets: int) -> Iterator[Batch]:
    """A batch in portions of the size that `batch_moments` is fast with."""
    step = max(_ROWS, _ROWS_EACH * sets)
    dropped = batch.dropped[:0]
    for start in range(0, len(batch.codes), step):
        part = slice(start, start + step)
        yield replace(
            batch,
            codes=batch.codes[part],
            columns=[c[part] for c in batch.columns],
            dropped=dropped,
        )


def work_space(width: int) -> NDArray[np.float64]:
    """What `batch_moments` works in: some 30,000 rows with padding, fewer of a wide table."""
    slots = max(2 * _longest(width), min(33_000, 2**20 // (width + 1)))
    return np.empty((2, slots * (width + 1)))


def _longest(width: int) -> int:
    """Rows in the longest chunk; not fewer than columns, or its product is larger than itself."""
    return max(250, width)


def batch_moments(
    batch: Batch,
    seen: NDArray[np.int64],
    mean: NDArray[np.float64],
    room: NDArray[np.float64],
) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Codes (k,), rows (k,), means (k, N) and scatter (k, N, N) of the data sets in a batch.

    Each data set's rows are shifted by a centre c, multiplied, and corrected for the mean of the
    shifted rows: with D = X - c, m rows and s = D'1, the mean is c + s/m and the scatter
    D'D - ss'/m. The correction cancels m (mean - c)^2, so c must be near. If at least m rows were
    seen before, c is their mean: should it be far, then the rows before and now are far apart,
    which the final scatter contains as well, and no more than a bit is lost. Otherwise c is the
    mean of the rows themselves. A constant column has c equal to it, and a scatter of exactly 0.

    There is no loop over data sets: rows are laid out in chunks of equal length that belong to one
    data set each, the last of a data set padded with zeros, and many chunks are multiplied at once
    in `room`, which is work space.
    """
    width = len(batch.columns)
    count = np.bincount(batch.codes)
    at = np.flatnonzero(count)
    count = count[at]
    order = batch.codes.astype(np.min_scalar_type(at[-1])).argsort(kind="stable")  # by radix
    first_row = np.cumsum(count) - count
    centre = mean[at]
    for j in np.flatnonzero(seen[at] < count).tolist():
        mine = order[first_row[j] : first_row[j] + count[j]]
        rows = np.stack([column[mine] for column in batch.columns])
        centre[j] = rows[:, 0] + (rows - rows[:, :1]).mean(axis=1)

    # Chunks are short, to waste little on padding, and of a narrow table too small for BLAS to use
    # threads, which can take many times longer (a wide table still meets them).
    length = int(np.clip(len(order) // (4 * len(at)), max(32, width), _longest(width)))
    chunks = -(-count // length)
    first_chunk = np.cumsum(chunks) - chunks
    owner = np.repeat(np.arange(len(at)), chunks)
    slot = np.repeat(first_chunk * length - first_row, count) + np.arange(len(order))
    row = np.full(len(owner) * length, -1)
    row[slot] = order
    by_chunk = np.empty((len(owner), width + 1, width + 1))
    step = room.shape[1] // ((width + 1) * length)
    for start in range(0, len(owner), step):
        owners = owner[start : start + step]
        source = row[start * length : (start + step) * length]
        flat, twin = room[:, : (width + 1) * len(source)].reshape(2, width + 1, len(source))
        flat[width] = 1  # gives s
        for column, line in zip(batch.columns, flat, strict=False):
            column.take(source, out=line, mode="clip")
        lines = flat.reshape(width + 1, len(owners), length)
        lines[:width] -= centre.T[:, owners, None]
        flat[:, source < 0] = 0
        # With a twin numpy does not take BLAS's symmetric product, slower with so few columns.
        twin[:] = flat
        right = twin.reshape(lines.shape).transpose(1, 2, 0)
        np.matmul(lines.transpose(1, 0, 2), right, out=by_chunk[start : start + step])
    product = np.stack([by_chunk[a : a + k].sum(axis=0) for a, k in _pairs(first_chunk, chunks)])
    product = (product + product.transpose(0, 2, 1)) / 2
    total = product[:, width, :width]
    scatter = product[:, :width, :width]
    scatter -= total[:, :, None] * total[:, None, :] / count[:, None, None]
    return at, count, centre + total / count[:, None], scatter


def _pairs(a: NDArray[np.intp], b: NDArray[np.intp]) -> Iterable[tuple[int, int]]:
    return zip(a.tolist(), b.tolist(), strict=True)
