"""The compiled kernels, loaded on first use: compiling takes time, so the user is told."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from types import ModuleType

from poolbn.run.caching import cost

NOTICE = (
    "poolbn: compiling its kernels, once for this machine; some 20 seconds, and as long again for "
    "pooled residual variances, and for logistic and count regressions ..."
)
_lock = threading.Lock()
_told = threading.Event()
_loaded: dict[str, ModuleType] = {}


def kernels(name: str) -> ModuleType:
    """A module of kernels; a note on standard error when it is not in numba's cache yet."""
    if name not in _loaded:
        with _lock:
            full = f"poolbn.kernels.{name}"
            _loaded[name] = sys.modules.get(full) or _load(full)
    return _loaded[name]


def _load(name: str) -> ModuleType:
    from numba.core import event

    class Tell(event.Listener):
        """Told by numba that it compiles, tells the user, once."""

        def on_start(self, event: object) -> None:
            if not _told.is_set():
                _told.set()
                print(NOTICE + cost(), file=sys.stderr, flush=True)

        def on_end(self, event: object) -> None:
            """Nothing to say."""

    # A compiler makes millions of small objects that stay: looking for garbage among them, and
    # among all that the program holds, takes some percent of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with event.install_listener("numba:compile", Tell()):
            return importlib.import_module(name)
    finally:
        if collecting:
            gc.enable()
