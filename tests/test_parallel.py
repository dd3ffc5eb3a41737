"""Maps over threads: order, errors, and maps inside maps."""

from __future__ import annotations

import threading

import pytest

from poolbn.run.parallel import map_threads


def test_results_are_in_order_whoever_makes_them() -> None:
    """Two threads are there at once: each waits for the other."""
    meeting = threading.Barrier(2)
    threads = set()

    def work(item: int) -> int:
        if item < 2:
            meeting.wait(timeout=30)
        threads.add(threading.get_ident())
        return item * item

    assert map_threads(work, range(100), threads=2) == [i * i for i in range(100)]
    assert len(threads) == 2


@pytest.mark.parametrize("error", [ValueError, IndexError, KeyboardInterrupt])
@pytest.mark.parametrize("own", [True, False])
def test_an_error_ends_the_map(error: type[BaseException], own: bool) -> None:
    """In this thread or in another one: no item is begun after it, and the error is told."""
    here, failing = threading.get_ident(), threading.Event()
    begun = []

    def work(item: int) -> None:
        begun.append(item)
        if (threading.get_ident() == here) == own:
            failing.set()
            raise error("this one")
        failing.wait(timeout=30)

    with pytest.raises(error, match="this one"):
        map_threads(work, range(1000), threads=2)
    assert len(begun) < 1000


def test_a_map_inside_a_map_ends() -> None:
    def outer(item: int) -> int:
        return sum(map_threads(lambda inner: item * inner, range(10), threads=3))

    assert map_threads(outer, range(50), threads=3) == [45 * item for item in range(50)]
