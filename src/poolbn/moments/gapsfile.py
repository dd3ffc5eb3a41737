"""The section of a file of statistics that has rows with missing cells: cells, no single rows.

The cells come in the order of their data sets, and of what they lack. Each has a row of numbers:
its data set, a bit for each column that it lacks, its rows, means and sums of products. Where a
column is missing these are zero.
"""

from __future__ import annotations

import numpy as np

from poolbn.moments.patterns import Gaps
from poolbn.moments.plausible import wrong


def to_bytes(gaps: Gaps) -> bytes:
    """The section; there are no single rows."""
    assert not len(gaps.rows)
    bits = np.packbits(gaps.missing, axis=1)
    order = np.lexsort((*bits.T[::-1], gaps.data_set))
    return b"".join(
        gaps.data_set[k].astype("<i8").tobytes()
        + bits[k].tobytes()
        + gaps.n[k].astype("<i8").tobytes()
        + gaps.mean[k].astype("<f8").tobytes()
        + gaps.scatter[k].astype("<f8").tobytes()
        for k in order
    )


def from_bytes(section: bytes, data_sets: int, width: int) -> Gaps:
    """What `to_bytes` wrote.

    Raises:
        ValueError: it did not write this, or no rows have such statistics.
    """
    whole = -(-width // 8)
    kind = np.dtype(
        [("set", "<i8"), ("bits", "u1", (whole,)), ("n", "<i8"), ("mean", "<f8", (width,)),
         ("scatter", "<f8", (width, width))]
    )  # fmt: skip
    if not section or len(section) % kind.itemsize:
        raise ValueError(f"its gaps have {len(section)} bytes, not some times {kind.itemsize}")
    table = np.frombuffer(section, dtype=kind)
    missing = np.unpackbits(table["bits"], axis=1, count=width).astype(bool)
    found = Gaps(
        table["set"].astype(np.int64),
        missing,
        table["n"].astype(np.int64),
        table["mean"].astype(np.float64),
        table["scatter"].astype(np.float64),
        np.zeros(0, dtype=np.int64),
        np.zeros((0, width)),
    )
    if ((found.data_set < 0) | (found.data_set >= data_sets)).any():
        raise ValueError("its gaps are of data sets that it does not have")
    if missing.all(axis=1).any() or not missing.any(axis=1).all():
        raise ValueError("its gaps have rows that lack nothing, or all")
    keys = [(int(j), bits.tobytes()) for j, bits in zip(found.data_set, table["bits"], strict=True)]
    if len(set(keys)) < len(keys):
        raise ValueError("its gaps have a pattern twice")
    for lacks, n, mean, scatter in zip(missing, found.n, found.mean, found.scatter, strict=True):
        why = wrong(int(n), mean[~lacks], scatter[np.ix_(~lacks, ~lacks)], 0, 1)
        if mean[lacks].any() or scatter[lacks].any() or scatter[:, lacks].any():
            why = "has numbers where cells are missing"
        if why:
            raise ValueError(f"a pattern of its gaps {why}")
    return found
