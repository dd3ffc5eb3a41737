"""Kernels compiled side by side, by processes that fill numba's cache for this one and for others.

Each is a new interpreter that is told the names of modules, one by one. It takes nothing from this
process, and so runs under any start method, in notebooks, and on any system.
"""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from poolbn.run.caching import cost
from poolbn.run.parallel import available_cores


class _Group(NamedTuple):
    """Kernels that are used together, those first that take longest or are needed first."""

    words: str
    seconds: int  # that two cores take until those are there that most users wait for
    modules: tuple[str, ...]


_GROUPS = (
    _Group("sums, scores and searches", 18, (
        "moments", "moves", "shared", "deviance", "bounds", "estimates", "regress", "sweeps",
        "pooled",
    )),
    _Group("residual variances of data sets", 12, ("separate",)),
    _Group("tables of discrete columns", 5, ("polya",)),
    _Group("logistic and count regressions", 14, ("quasinewton", "glm", "integrals")),
    _Group("missing cells", 4, ("expect", "patterns")),
    _Group("independence tests", 11, ("separators", "independence")),
    _Group("probabilities of arcs", 5, ("subsets", "orders")),
)  # fmt: skip

_OTHERS = _Group("other work", 2, ())

_MOST = 4  # processes: each takes some 300 MB
_WATCH = 0.2  # seconds after which a wait looks for Ctrl-C
_START = "import sys; sys.path[:] = {!r}; from poolbn.run.warming import serve; serve()"


class _Task:
    """A module that is being compiled elsewhere."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.compiled = False
        self.over = threading.Event()

    def wait(self) -> bool:
        while not self.over.wait(_WATCH):
            pass
        return self.compiled


_lock = threading.Lock()
_tasks: dict[str, _Task] = {}
_waiting: deque[_Task] = deque()
_told: set[str] = set()


def have_compiled(name: str) -> bool:
    """Have a module compiled, and soon those that are used with it; False where this process must.

    The user is told.

    Args:
        name: of a module of `poolbn.kernels` that is not in numba's cache.
    """
    if _only is not None:
        return False
    group = next((group for group in _GROUPS if name in group.modules), _OTHERS)
    cores = min(available_cores(), _MOST) if sys.executable else 1
    if group.words not in _told:
        _told.add(group.words)
        seconds = group.seconds * (1 if cores > 1 else 2)
        print(
            f"poolbn: compiling kernels for {group.words}, once for this machine; about {seconds} "
            f"seconds ...{cost()}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    if name not in group.modules or cores == 1:
        return False
    _start(group.modules, cores)
    hurry(name)
    return _tasks[name].wait()


def hurry(name: str) -> None:
    """Have a module compiled before all others that still wait, if it is to be compiled at all."""
    with _lock, suppress(KeyError, ValueError):
        _waiting.remove(_tasks[name])
        _waiting.appendleft(_tasks[name])


def compile_all() -> str | None:
    """Have all kernels compiled that are not in numba's cache; the folder of that, if there is."""
    names = [name for group in _GROUPS for name in group.modules]
    _start(names, min(available_cores(), _MOST))
    for name in names:
        _tasks[name].wait()
    modules = [importlib.import_module(f"poolbn.kernels.{name}") for name in names]
    folder: str | None = modules[0].sort.stats.cache_path
    return folder


def _start(names: Iterable[str], processes: int) -> None:
    """Have modules compiled that nobody asked for yet."""
    with _lock:
        new = [_tasks.setdefault(name, _Task(name)) for name in names if name not in _tasks]
        _waiting.extend(new)
    for _ in range(min(processes, len(new))):
        threading.Thread(target=_employ, name="poolbn-compiling", daemon=True).start()


def _employ() -> None:
    """Give one process the modules that wait. When it fails, none is left waiting."""
    try:
        with subprocess.Popen(
            [sys.executable, "-c", _START.format(sys.path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as process:  # fmt: skip
            assert process.stdin is not None
            assert process.stdout is not None
            while (task := _next()) is not None:
                try:
                    process.stdin.write(f"{task.name}\n")
                    process.stdin.flush()
                    task.compiled = process.stdout.readline() == f"{task.name}\n"
                finally:
                    task.over.set()
    except OSError:
        pass
    finally:
        while (task := _next()) is not None:
            task.over.set()


def _next() -> _Task | None:
    with _lock:
        return _waiting.popleft() if _waiting else None


# In such a process

_only: set[str] | None = None  # modules to compile; those of all others are left
_left: dict[str, list[Callable[[], object]]] = {}


def left_to_others(module: str, work: Callable[[], object]) -> bool:
    """Whether this process leaves a function of this module to others.

    Args:
        module: of kernels.
        work: compiles the function. It is done should the module be asked for later.
    """
    if _only is None or module in _only:
        return False
    _left.setdefault(module, []).append(work)
    return True


def serve() -> None:
    """Compile the modules whose names come in, and say when each is in numba's cache."""
    global _only  # noqa: PLW0603
    _only = set()
    gc.disable()
    for line in sys.stdin:
        name = line.strip()
        _only.add(name)
        importlib.import_module(f"poolbn.kernels.{name}")
        for work in _left.pop(name, []):
            work()
        os.write(1, line.encode())
