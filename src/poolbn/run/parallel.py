"""Maps over threads, processes and clusters, with the same results whatever runs them."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache, partial
from typing import TypeVar

from poolbn.run import cluster

T = TypeVar("T")
R = TypeVar("R")

# In the environment of processes that share the machine with others of their kind.
_WORKER = "POOLBN_WORKER"
# Set while a worker does a piece of work. A worker can be a thread of the user's own process.
_at_work: ContextVar[bool] = ContextVar("poolbn_at_work", default=False)
# Seconds that processes must save to be worth starting, which itself takes two or three.
_WORTH_PROCESSES = 5.0
# Seconds after which a worker looks again whether it is still wanted.
_WATCH = 1.0
# Seconds of work here that are worth sending away: each piece takes milliseconds to send.
_WORTH_SENDING = 1.0


def map_threads(function: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Apply a function to each item; results in the order of the items, whatever runs them.

    The kernels let go of the interpreter, so threads do the work of cores.
    """
    threads = min(threads, len(items))
    if threads <= 1:
        return [function(item) for item in items]
    results: dict[int, R] = {}
    left = deque(range(len(items)))

    def work() -> None:
        """Take what is next until nothing is left."""
        while True:
            try:
                index = left.popleft()
            except IndexError:
                return
            try:
                results[index] = function(items[index])
            except BaseException:
                left.clear()
                raise

    # This thread works too: it need not be woken, and what is small is done before others are.
    others = [_pool(os.getpid(), threads).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        failed = [other.exception() for other in others if not other.cancel()]
    for error in filter(None, failed):
        raise error
    return [results[index] for index in range(len(items))]


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that stay, as starting them takes longer than a small batch; not over a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"poolbn-{process}")


def map_fits(function: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """As `map_threads`; but inside `pb.on_cluster` a batch that takes long goes to the cluster.

    The first item is done here, to see what items take. The function must change nothing, and it
    and the items must pickle.
    """
    there = cluster.current()
    if there is None or len(items) < 2:
        return map_threads(function, items, threads)
    began = time.thread_time()
    first = function(items[0])
    left = (time.thread_time() - began) * (len(items) - 1) / max(threads, 1)
    if left < _WORTH_SENDING:
        return [first, *map_threads(function, items[1:], threads)]
    found = dict(there.map(partial(_alone, function), items[1:]))
    return [first, *(found[index] for index in range(len(items) - 1))]


def map_processes(function: Callable[[T], R], items: Sequence[T], processes: int) -> Iterator[R]:
    """Apply a function to each item in processes of one thread each; results as they come.

    Both must pickle; large arrays travel through shared memory, each once. With one process the
    work is done here, with threads. Inside `pb.on_cluster` the cluster's workers do it, however
    many they are.
    """
    if (there := cluster.current()) is not None:
        yield from (result for _, result in there.map(partial(_alone, function), items))
        return
    if min(processes, len(items)) <= 1:
        yield from map(function, items)
        return
    from joblib import Parallel, delayed

    run = Parallel(
        n_jobs=processes,
        batch_size=1,
        return_as="generator_unordered",
        initializer=end_with,
        initargs=(os.getpid(),),
    )
    yield from run(delayed(_alone)(function, item) for item in items)


def end_with(parent: int) -> None:
    """In a worker: end soon after the process that started it, in whatever way that ended.

    The last to end is joblib's own helper, which then removes the memory that they shared.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    threading.Thread(target=watch, name="poolbn-watch", daemon=True).start()


def _alone(function: Callable[[T], R], item: T) -> R:
    token = _at_work.set(True)
    try:
        return function(item)
    finally:
        _at_work.reset(token)


def map_measured(
    function: Callable[[T], R], items: Sequence[T], cores: int
) -> Iterator[tuple[int, R]]:
    """Apply a function to each item, here or, if there is enough left to do, in processes.

    Inside `pb.on_cluster` the cluster does it all. Yields the index of an item and its result, in
    any order.

    What an item takes is measured on the way, in processor time: a machine that is slow because it
    is busy has no cores to spare. The first item is left out of that, because it may have to load
    or compile what the others then have.
    """
    if (there := cluster.current()) is not None:
        yield from there.map(partial(_alone, function), items)
        return
    numbered = list(enumerate(items))
    spent = 0.0
    for index, item in numbered:
        if index > 1:
            left = (len(items) - index) * spent / (index - 1)
            if left * (1 - 1 / cores) > _WORTH_PROCESSES:
                yield from map_processes(partial(_numbered, function), numbered[index:], cores)
                return
        began = time.process_time()
        result = function(item)
        if index:
            spent += time.process_time() - began
        yield index, result


def _numbered(function: Callable[[T], R], numbered: tuple[int, T]) -> tuple[int, R]:
    index, item = numbered
    return index, function(item)


def available_cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    if _at_work.get() or _WORKER in os.environ:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
