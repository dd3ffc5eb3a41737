"""Maps over threads and over processes, with the same results whatever runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

# Set in worker processes, which share the machine with each other.
_WORKER = "POOLBN_WORKER"


def map_threads(function: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Apply a function to each item; results in the order of the items, whatever runs them.

    The kernels let go of the interpreter, so threads do the work of cores.

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


def map_processes(function: Callable[[T], R], items: Sequence[T], processes: int) -> Iterator[R]:
    """Apply a function to each item in processes of one thread each; results as they come.

    Args:
        function: what to do; it and the items must pickle.
        items: large pieces of work.
        processes: how many at once; with one, the work is done here, with threads.

    Examples:
        >>> sorted(map_processes(abs, [-1, 2, -3], processes=1))
        [1, 2, 3]
    """
    if min(processes, len(items)) <= 1:
        yield from map(function, items)
        return
    from joblib import Parallel, delayed

    run = Parallel(n_jobs=processes, batch_size=1, return_as="generator_unordered")
    yield from run(delayed(_alone)(function, item) for item in items)


def _alone(function: Callable[[T], R], item: T) -> R:
    os.environ[_WORKER] = "1"
    return function(item)


def available_cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    if _WORKER in os.environ:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
