"""One ordered map over threads. The kernels let go of the interpreter, so threads do the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_threads(function: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Apply a function to each item; results in the order of the items, whatever runs them.

    Args:
        function: what to do; it should spend its time in compiled code.
        items: pieces of work.
        threads: how many at once.

    Examples:
        >>> map_threads(abs, [-1, 2, -3], threads=2)
        [1, 2, 3]
    """
    threads = min(threads, len(items))
    if threads <= 1:
        return [function(item) for item in items]
    return list(_pool(os.getpid(), threads).map(function, items))


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that stay, as starting them takes longer than a small batch; not over a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"poolbn-{process}")


def available_cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
