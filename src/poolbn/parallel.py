"""One ordered map over threads. The kernels let go of the interpreter, so threads do the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_threads(
    function: Callable[[T], R], items: Sequence[T], threads: int | None = None
) -> list[R]:
    """Apply a function to each item; results in the order of the items, whatever runs them.

    Args:
        function: what to do; it should spend its time in compiled code.
        items: pieces of work.
        threads: how many at once; all cores that this process may use by default.

    Examples:
        >>> map_threads(abs, [-1, 2, -3], threads=2)
        [1, 2, 3]
    """
    threads = min(available_cores() if threads is None else threads, len(items))
    if threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def available_cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
