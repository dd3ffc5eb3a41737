"""The compiled kernels, loaded on first use: numba takes its time, and a user should be told."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import NamedTuple

NOTICE = "poolbn: compiling its kernels; this happens once and takes about 15 seconds ..."


class Kernels(NamedTuple):
    """The modules with compiled entry points."""

    optimise: ModuleType
    regress: ModuleType


_lock = threading.Lock()
_loaded: list[Kernels] = []


def kernels() -> Kernels:
    """Import the kernels; say so on standard error when they are not in numba's cache yet."""
    with _lock:
        if not _loaded:
            _loaded.append(_load())
        return _loaded[0]


def _load() -> Kernels:
    from numba.core import event

    class Tell(event.Listener):
        """Told by numba that it compiles, tells the user, once."""

        told = False

        def on_start(self, event: object) -> None:
            if not self.told:
                self.told = True
                print(NOTICE, file=sys.stderr, flush=True)

        def on_end(self, event: object) -> None:
            """Nothing to say."""

    with event.install_listener("numba:compile", Tell()):
        from poolbn import _optimise, _regress
    return Kernels(_optimise, _regress)
