"""A line on a terminal for work that takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

_PATIENCE = 1.0  # seconds before anything is shown


class Progress:
    """A line on a terminal, once the work takes longer than a second; gone when it is done."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._line: Status | None = None

    def __call__(self, words: Callable[[], str]) -> None:
        """Say how far it is; the words are made only if they are shown."""
        if time.monotonic() - self._started < _PATIENCE or not sys.stderr.isatty():
            return
        if self._line is None:
            from rich.console import Console

            self._line = Console(stderr=True).status("")
            self._line.start()
        self._line.update(f"{words()} (Ctrl-C stops)")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._line is not None:
            self._line.stop()
