"""`poolbn warmup`: for images and clusters."""

from __future__ import annotations

import time

from poolbn.cli.terminal import Terminal, command
from poolbn.run.compiling import compile_all


@command
def warmup(*, terminal: Terminal) -> None:
    """Compile all kernels now, so that nobody waits for them on first use.

    For images and clusters: once for each kind of processor, and again after an upgrade.
    """
    started = time.monotonic()
    folder = compile_all()
    seconds = round(time.monotonic() - started, 1)
    kept = f"kept in {folder}" if folder else "and can be kept nowhere"
    terminal.text(f"all kernels are compiled, in {seconds} seconds, {kept}")
    terminal.result({"seconds": seconds, "folder": folder})
