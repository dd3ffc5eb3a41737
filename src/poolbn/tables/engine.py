"""DuckDB, which reads files of text in a stream and finds out what columns hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from poolbn.errors import DataError
from poolbn.tables.sources import Part, Piece, Wanted, arrow_piece, in_words

# Types of DuckDB that are numbers here, of those that it finds in text.
NUMERIC = ("BOOLEAN", "BIGINT", "HUGEINT", "UBIGINT", "DOUBLE")


@dataclass(frozen=True)
class Text:
    """A file of text.

    Attributes:
        path: what is read: the file, or a copy in UTF-8.
        shown: what messages call it.
        name: the data set that it is when no column says so.
        origin: how a message says "in this file".
        separator: the one to take if two could be it.
        decimal: what stands before the decimals of numbers.
    """

    path: str
    shown: str
    name: str
    origin: str
    separator: str = ","
    decimal: str = "."

    def number(self, cell: str) -> str:
        """A cell as Python reads it, if it is a number."""
        if self.decimal == "." or not self.is_number(cell):
            return cell
        return cell.replace(",", ".")

    def is_number(self, cell: str) -> bool:
        """Whether a cell reads as a number."""
        if self.decimal == ".":
            return looks_numeric(cell)
        return "." not in cell and looks_numeric(cell.replace(",", "."))


def text_part(
    text: Text,
    kinds: Mapping[str, str],
    query: Callable[[Mapping[str, str]], str],
    cells: Callable[[str], Iterable[Any]],
    wrong: Callable[[BaseException, tuple[str, ...]], DataError],
) -> Part:
    """The part that a file of text is.

    `kinds` are the types that DuckDB found, `query` reads columns as others, `cells` are as `Part`
    has them, and `wrong` tells of an error, where these columns were read.
    """
    import duckdb
    import pyarrow as pa

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        # DuckDB takes types from a sample: whole numbers there may be followed by a 3.5. Names of
        # data sets are texts, as they are written: 1, 1.0 and 01 are three.
        read = {
            c: "VARCHAR" if c == wanted.group or c in wanted.coded
            else "BOOLEAN" if kinds[c] == "BOOLEAN" else "DOUBLE"
            for c in wanted.names
        }  # fmt: skip
        try:
            with connected() as connection:
                for batch in connection.sql(query(read)).to_arrow_reader(wanted.rows):
                    named = batch.rename_columns(wanted.names)
                    yield arrow_piece(named, wanted, text.name, text.origin)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise wrong(error, wanted.columns) from error

    # JSON is what DuckDB calls a column of numbers and texts, or of nothing, in JSON lines.
    types = {
        name: "" if k in NUMERIC else "text" if k == "JSON" else in_words(k.lower())
        for name, k in kinds.items()
    }
    truths = frozenset(name for name, k in kinds.items() if k == "BOOLEAN")
    return Part(text.name, text.origin, types, pieces, cells, text.path, truths=truths)


def described(scan: str) -> dict[str, str]:
    """The type of each column that a scan finds."""
    with connected() as connection:
        return {row[0]: row[1] for row in connection.sql(f"describe from {scan}").fetchall()}


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


def looks_numeric(cell: object) -> bool:
    """Whether a cell of text reads as a number."""
    try:
        float(str(cell))
    except ValueError:
        return False
    return True
