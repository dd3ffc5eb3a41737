"""The compiled kernels, loaded on first use."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from types import ModuleType

from poolbn.run.warming import prioritise

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
