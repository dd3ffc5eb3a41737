"""The compiled kernels, loaded on first use: from where they are kept, or compiled side by side.

Processes that compile fill numba's cache for this one and for others. Each is a new interpreter
that is told the names of modules, one by one. It takes nothing from this process, and so runs under
any start method, in notebooks, and on any system.
"""

from __future__ import annotations

import gc
import importlib
import math
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple

from poolbn.run.parallel import available_cores
from poolbn.wording import listed

_lock = threading.Lock()
_loaded: dict[str, ModuleType] = {}


def kernels(name: str) -> ModuleType:
    """A module of kernels; a note on standard error when it is not in numba's cache yet."""
    if name not in _loaded:
        with _lock:
            full = f"poolbn.kernels.{name}"
            prioritise(name)  # before those that it imports
            _loaded[name] = sys.modules.get(full) or load(full)
    return _loaded[name]


def load(name: str) -> ModuleType:
    """Import a module, which may have to compile."""
    # A compiler makes millions of small objects that stay: looking for garbage among them, and
    # among all that the program holds, takes some percent of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if collecting:
            gc.enable()


# Where they are kept. numba keeps them beside the source, or in the user's home. A service user, a
# container with any user id or a read-only image have neither. Then a folder of temporary files has
# them that nobody else may write, since what is in it is run.

_told: list[str] = []  # what a user should know when kernels compile
_SET = "NUMBA_CACHE_DIR names a folder to keep them in"


def cost() -> str:
    """A sentence for the user on where compiled kernels are kept, if it is not as usual."""
    return "".join(f"\npoolbn: {words}" for words in _told)


def _config() -> Any:
    """Numba's own, which is typed no more than the rest of it."""
    from numba.core import config

    return config


@contextmanager
def kept_in(folder: str) -> Iterator[None]:
    """With a folder for what numba compiles here; "" leaves it to numba."""
    config = _config()
    before = config.CACHE_DIR
    config.CACHE_DIR = folder or before
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def place(source: str) -> str | None:
    """The folder for kernels of a folder of source; "" where numba finds one, None for none."""
    from numba.misc import appdirs

    known: Any = appdirs
    beside = os.path.join(source, "__pycache__")
    home = known.AppDirs(appname="numba", appauthor=False).user_cache_dir
    named = _config().CACHE_DIR
    usual = [os.path.abspath(named)] if named else []
    # A user without a home has "~", which would be a folder here.
    usual += [beside, *([home] if os.path.isabs(home) else [])]
    if any(map(_can_write, usual)):
        return ""
    private = _private()
    if private is None:
        _told.append(
            f"neither {beside!r} nor a temporary folder can be written, so they compile again at "
            f"each start; {_SET}"
        )
    else:
        _told.append(
            f"{beside!r} cannot be written, so they are kept in {private!r}, and compile again "
            f"when that is gone; {_SET}"
        )
    return private


def _can_write(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private() -> str | None:
    """A folder of temporary files that is this user's, and that nobody else can write or swap."""
    if os.name != "posix":
        return None
    try:
        base = tempfile.gettempdir()
        folder = os.path.join(base, f"poolbn-kernels-{os.geteuid()}")
        above = os.stat(base)
        if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
            return None
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        there = os.lstat(folder)
    except OSError:
        return None
    own = stat.S_ISDIR(there.st_mode) and there.st_uid == os.geteuid()
    return folder if own and not there.st_mode & 0o077 and _can_write(folder) else None


# Compiled side by side


class _Group(NamedTuple):
    """Kernels that are used together, and the processor seconds that each takes to compile."""

    words: str
    modules: dict[str, float]


_DEVIANCE = {"deviance": 4.4, "estimates": 1.4}
_CHANGES = {"screens": 2.6, "bounds": 1.8, "candidates": 1.0}
_GROUPS = (
    _Group("sums", {"moments": 1.4, "patterns": 0.5}),
    _Group("sums of units", {"unit_sums": 1.0}),
    _Group("searches", {"moves": 1.7}),
    _Group("mixed-effects models", {"shared": 5.6, **_DEVIANCE, **_CHANGES}),
    _Group("pooled variances", {"pooled": 11.4, "slopes": 1.5, **_DEVIANCE}),
    _Group("separate variances", {"separate": 8.3, **_DEVIANCE}),
    _Group("least squares", {"regress": 0.6}),
    _Group("hill climbing by least squares", {"sweeps": 1.4}),
    _Group("units inside data sets", {"units": 2.0}),
    _Group("tables of discrete columns", {"polya": 3.7}),
    _Group("logistic and count regressions", {"quasinewton": 17.0, "glm": 4.4, "quadrature": 2.8}),
    _Group("scores within data sets", {"within": 8.0}),
    _Group("probabilities of discrete columns", {"integrals": 3.1}),
    _Group("intervals", {"shrinking": 1.2}),
    _Group("missing cells", {"expect": 2.0}),
    _Group("independence tests", {"separators": 5.0, "independence": 3.6}),
    _Group("probabilities of arcs", {"subsets": 2.2, "orders": 1.8}),
    _Group("chains over graphs", {"partitions": 1.3, "graphs": 1.3}),
)
_OTHERS = _Group("other work", {})
_SECONDS = {name: took for group in _GROUPS for name, took in group.modules.items()}

_BEGINNING = 2  # seconds until a process compiles
_MOST = 4  # processes: each takes some 300 MB
_LINGER = 2.0  # seconds that a process waits for more to do: a new one takes one to start
_WATCH = 0.2  # seconds after which a wait looks for Ctrl-C
_START = "import sys; sys.path[:] = {!r}; from poolbn.run.compiling import serve; serve()"


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


_changed = threading.Condition()
_tasks: dict[str, _Task] = {}
_waiting: deque[_Task] = deque()
_processes = 0  # that take what waits
_prefetched: dict[str, None] = {}


def prefetch(*names: str) -> None:
    """Say that modules of kernels will be used soon: when one has to be compiled, they are, too."""
    _prefetched.update(dict.fromkeys(names))


def have_compiled(name: str, kept: Callable[[str], bool]) -> bool:
    """Have a module compiled, and soon those that are used with it; False where this process must.

    The user is told. Modules that are `kept` are in numba's cache.
    """
    if _only is not None:
        return False
    helped = sys.executable and name in _SECONDS
    cores = min(available_cores(), _MOST) if helped else 1
    soon = dict.fromkeys([name, *_partners([name]), *_partners(_prefetched)])
    new = [each for each in soon if each not in _tasks and (each == name or not kept(each))]
    if new:
        _announce(new, cores)
        _start(new, cores, [*_partners([name]), name])
    prioritise(name)
    return _tasks[name].wait()


def _partners(names: Iterable[str]) -> list[str]:
    """What is used with modules."""
    return [module for name in names for module in _group(name).modules]


def _group(name: str) -> _Group:
    return next((group for group in _GROUPS if name in group.modules), _OTHERS)


def _announce(names: list[str], cores: int) -> None:
    """Tell the user what is compiled, and how long that will take."""
    words = list(dict.fromkeys(_group(name).words for name in names))
    costs = [_SECONDS.get(name, 0.0) for name in names]
    seconds = _BEGINNING + max(sum(costs) / cores, *costs)
    print(
        f"poolbn: compiling kernels for {listed(words)}, once for this machine; about "
        f"{math.ceil(seconds)} seconds ...{cost()}",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def prioritise(name: str) -> None:
    """Have a module compiled before all others that still wait, if it is to be compiled at all."""
    with _changed, suppress(KeyError, ValueError):
        _waiting.remove(_tasks[name])
        _waiting.appendleft(_tasks[name])


def compile_all() -> str | None:
    """Have all kernels compiled that are not in numba's cache; the folder of that, if there is."""
    _start(_SECONDS, min(available_cores(), _MOST))
    for name in _SECONDS:
        _tasks[name].wait()
    modules = {name: importlib.import_module(f"poolbn.kernels.{name}") for name in _SECONDS}
    folder: str | None = modules["moments"].sort.stats.cache_path
    return folder


def _start(names: Iterable[str], cores: int, first: Sequence[str] = ()) -> None:
    """Have modules compiled that nobody asked for yet: the last of `first` first, then the longest.

    One core is left to this process.
    """
    global _processes  # noqa: PLW0603
    with _changed:
        new = [_tasks.setdefault(name, _Task(name)) for name in names if name not in _tasks]
        if cores == 1:
            for task in new:
                task.over.set()
            return
        rank = {name: place for place, name in enumerate(first, 1)}
        waiting = sorted(
            [*_waiting, *new], key=lambda task: (rank.get(task.name, 0), _SECONDS[task.name])
        )
        _waiting.clear()
        _waiting.extend(reversed(waiting))
        _changed.notify_all()
        more = max(min(cores, len(_waiting)) - _processes, 0)
        _processes += more
    for _ in range(more):
        threading.Thread(target=_start_worker, name="poolbn-compiling", daemon=True).start()


def _start_worker() -> None:
    """Give one process the modules that wait. When all have failed, none is left waiting."""
    global _processes  # noqa: PLW0603
    command = [sys.executable, "-c", _START.format(sys.path)]
    with suppress(OSError), _process(command) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while (task := _next()) is not None:
            try:
                process.stdin.write(f"{task.name}\n")
                process.stdin.flush()
                task.compiled = process.stdout.readline() == f"{task.name}\n"
            finally:
                task.over.set()
            if not task.compiled:
                break
        else:
            return
    with _changed:
        _processes -= 1
        while _waiting and not _processes:
            _waiting.popleft().over.set()


_process = partial(
    subprocess.Popen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    text=True,
)  # fmt: skip


def _next() -> _Task | None:
    """What to compile next; None, and a process less, where there is nothing soon."""
    global _processes  # noqa: PLW0603
    with _changed:
        if _changed.wait_for(lambda: _waiting, _LINGER):
            return _waiting.popleft()
        _processes -= 1
        return None


# In such a process

_only: set[str] | None = None  # modules to compile; those of all others are left
_left: dict[str, list[Callable[[], object]]] = {}


def left_to_others(module: str, work: Callable[[], object]) -> bool:
    """Whether this process leaves a function of this module to others.

    `work` compiles it, should the module be asked for later.
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
