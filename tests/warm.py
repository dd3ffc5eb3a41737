"""Compiles the kernels into numba's cache, which every worker of pytest would do for itself.

What most kernels share comes first, the others after it side by side.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil

from poolbn import kernels


def main() -> None:
    importlib.import_module("poolbn.kernels.optimise")  # numba compiles on import
    names = [f"poolbn.kernels.{module.name}" for module in pkgutil.iter_modules(kernels.__path__)]
    with multiprocessing.get_context("fork").Pool() as pool:
        pool.map(compile_module, names, chunksize=1)


def compile_module(name: str) -> None:
    importlib.import_module(name)


if __name__ == "__main__":
    main()
