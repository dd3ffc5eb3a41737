"""Compiles all kernels, which every worker of pytest would do for itself."""

from __future__ import annotations

from poolbn.run.compiling import compile_all

if __name__ == "__main__":
    compile_all()
