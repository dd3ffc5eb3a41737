"""Compiles the kernels into numba's cache, which every worker of pytest would do for itself.

Numba and what the kernels share are loaded first; the kernels compile side by side.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil

from poolbn import kernels


def main() -> None:
    importlib.import_module("poolbn.kernels.optimise")  # has no entry point of its own
    names = [f"poolbn.kernels.{module.name}" for module in pkgutil.iter_modules(kernels.__path__)]
    with multiprocessing.get_context("fork").Pool() as pool:
        pool.map(compile_module, names, chunksize=1)


def compile_module(name: str) -> None:
    importlib.import_module(name)


if __name__ == "__main__":
    main()
