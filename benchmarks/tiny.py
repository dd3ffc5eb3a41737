"""What benchmarks share: `--smoke` makes each of them tiny, so that it shows in seconds if it runs.

`make bench-smoke` runs all of them in this way.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from typing import Any

SMOKE = "--smoke" in sys.argv


def tiny(usual: Any, small: Any) -> Any:
    """A setting of a benchmark, or the smaller one."""
    return small if SMOKE else usual


def parsed(parser: argparse.ArgumentParser, **small: Any) -> argparse.Namespace:
    """The options, with small values in place of defaults where `--smoke` is given."""
    parser.add_argument("--smoke", action="store_true", help="something tiny, in seconds")
    if SMOKE:
        parser.set_defaults(**small)
    return parser.parse_args()


def in_processes(
    function: Callable[[Any], Any], items: Iterable[Any], workers: int, **options: Any
) -> Iterator[Any]:
    """Results in order, from so many processes; from this one where all is tiny."""
    if SMOKE:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(function, items, **options)


def child(file: str, *arguments: str) -> str:
    """What a script prints in a process of its own; in this one where all is tiny."""
    if not SMOKE:
        command = [sys.executable, file, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    usual, sys.argv = sys.argv, [file, "--smoke", *arguments]
    try:
        with redirect_stdout(io.StringIO()) as out:
            sys.modules["__main__"].main()  # type: ignore[attr-defined]
    finally:
        sys.argv = usual
    return out.getvalue()


def lacks(*packages: str) -> str:
    """Why R cannot be the peer: it is not there, or one of its packages; nothing where it can."""
    if shutil.which("Rscript") is None:
        return "there is no R"
    for name in packages:
        code = f"q(status = as.integer(!nzchar(system.file(package = '{name}'))))"
        if subprocess.run(["Rscript", "-e", code], check=False, capture_output=True).returncode:
            return f"R has no {name}"
    return ""
