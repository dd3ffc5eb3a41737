"""DuckDB, which reads text in a stream and finds out what columns hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# Types of DuckDB that are numbers here, of those that it finds in text.
NUMERIC = ("BOOLEAN", "BIGINT", "HUGEINT", "UBIGINT", "DOUBLE")


@contextmanager
def connected() -> Iterator[Any]:
    """A connection that keeps standard output free, which may be JSON for a program."""
    import duckdb

    try:
        with interruptible(), _database(os.getpid()).cursor() as connection:
            connection.execute("set enable_progress_bar = false")
            yield connection
    except duckdb.FatalException:
        _database.cache_clear()
        raise


@contextmanager
def interruptible() -> Iterator[None]:
    """With Ctrl-C as Python has it: DuckDB has errors of its own for a query that it ended."""
    import duckdb

    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupted" not in str(error).lower():
            raise
        raise KeyboardInterrupt from error


@cache
def _database(process: int) -> Any:
    """The one of this process: opening it takes longer than reading a small file."""
    import duckdb

    return duckdb.connect()


def literal(text: str) -> str:
    """A text in a query."""
    return "'" + text.replace("'", "''") + "'"
