"""Tables in files of DuckDB and SQLite, which are opened for reading only, in a stream."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from poolbn.errors import DataError, nearest
from poolbn.tables.copies import with_log
from poolbn.tables.sources import Part, arrow_part, first_line
from poolbn.tables.text import interruptible, literal
from poolbn.wording import listed

_SQLITE, _DUCKDB = b"SQLite format 3\x00", b"DUCK"  # DuckDB has 8 bytes before it
_STEPS = 100_000  # of SQLite's machine, some ms, after which Python may interrupt it


def database_part(path: str, shown: str, table: str | None, name: Hashable, origin: str) -> Part:
    """The part that a table is; `shown` is what messages call the file."""
    with open(path, "rb") as file:
        start = file.read(16)
    if start == _SQLITE:
        return _sqlite(path, shown, table, name, origin)
    if start[8:12] == _DUCKDB:
        return _duckdb(path, shown, table, name, origin)
    raise DataError(
        f"{shown!r} is not a database of DuckDB or SQLite: it is damaged, empty, or of another "
        "kind; get it anew"
    )


def chosen_table(shown: str, table: str | None, known: Sequence[str], what: str = "table") -> str:
    """The table that is named, or the only one; `what` they are called."""
    if not known:
        raise DataError(f"{shown!r} has no {what}; name another file")
    if table is None and len(known) == 1:
        return known[0]
    if table is None:
        names = listed([repr(name) for name in known])
        raise DataError(
            f"{shown!r} has {len(known)} {what}s, {names}; name one, as in '{shown}::{known[0]}'"
        )
    if table not in known:
        raise DataError(f"no {what} {table!r} in {shown!r}{nearest(table, known)}")
    return table


def quoted(name: str) -> str:
    """A name in a query."""
    return '"' + name.replace('"', '""') + '"'


def _duckdb(path: str, shown: str, table: str | None, name: Hashable, origin: str) -> Part:
    import duckdb

    running: set[Any] = set()

    @contextmanager
    def connected() -> Iterator[Any]:
        try:
            # A view may name other files and URLs: these are not read.
            options: dict[str, Any] = {"enable_external_access": False}
            with (
                interruptible(),
                duckdb.connect(os.path.abspath(path), read_only=True, config=options) as opened,
            ):
                yield from _among(running, opened)
        except duckdb.Error as error:
            raise DataError(
                f"{shown!r} cannot be read as a DuckDB database: {first_line(error)}; if another "
                "program has it open, close it there"
            ) from error

    with connected() as connection:
        query = "select table_name from information_schema.tables where table_schema = 'main'"
        known = sorted(row[0] for row in connection.sql(query).fetchall())
        own = quoted(chosen_table(shown, table, known))
        schema = connection.sql(f"from {own} limit 0").to_arrow_table().schema

    def batches(keep: list[str], rows: int) -> Iterator[Any]:
        with connected() as connection:
            chosen = ", ".join(map(quoted, keep))
            yield from connection.sql(f"select {chosen} from {own}").to_arrow_reader(rows)

    part = arrow_part(schema, batches, name, origin, path=path)
    return replace(part, stop=partial(_interrupt, running))


def _among(running: set[Any], connection: Any) -> Iterator[Any]:
    """A connection, which is among those that are running as long as it is used."""
    running.add(connection)
    try:
        yield connection
    finally:
        running.discard(connection)


def _interrupt(running: set[Any]) -> None:
    """End the queries of connections: a view may go on for ever."""
    for connection in list(running):
        connection.interrupt()


def _sqlite(path: str, shown: str, table: str | None, name: Hashable, origin: str) -> Part:
    import sqlite3

    import pyarrow as pa

    where = _without_traces(path, shown)
    running: set[Any] = set()

    @contextmanager
    def connected() -> Iterator[sqlite3.Connection]:
        try:
            # Rows may be asked for, and the connection be closed, in different threads.
            with closing(sqlite3.connect(where, uri=True, check_same_thread=False)) as opened:
                opened.text_factory = lambda data: data.decode(errors="replace")
                # In the main thread Python looks for Ctrl-C here, and ends the query.
                opened.set_progress_handler(lambda: 0, _STEPS)
                yield from _among(running, opened)
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from error
            raise DataError(
                f"{shown!r} cannot be read as an SQLite database: {first_line(error)}; it may be "
                "damaged, or in use by another program"
            ) from error

    with connected() as connection:
        query = (
            "select cast(name as blob) from sqlite_master where type in ('table', 'view') "
            "and name not like 'sqlite_%' order by name"
        )
        known = [_utf8(row[0], "table", shown) for row in connection.execute(query)]
        chosen = chosen_table(shown, table, known)
        own = quoted(chosen)
        query = f"select cast(name as blob) from pragma_table_info({literal(chosen)})"
        columns = [_utf8(row[0], "column", shown) for row in connection.execute(query)]
        # A column of SQLite holds whatever was put there: the cells say what it is.
        kinds = ", ".join(
            f"max(typeof({quoted(c)}) = 'text'), max(typeof({quoted(c)}) = 'blob')" for c in columns
        )
        (found,) = connection.execute(f"select {kinds} from {own}")
    text, blob = found[::2], found[1::2]
    types = [
        pa.binary() if bytes_ else pa.string() if words else pa.float64()
        for words, bytes_ in zip(text, blob, strict=True)
    ]
    schema = pa.schema(list(zip(columns, types, strict=True)))

    def batches(keep: list[str], rows: int) -> Iterator[Any]:
        fields = [schema.field(c) for c in keep]
        with connected() as connection:
            chosen = connection.execute(f"select {', '.join(map(quoted, keep))} from {own}")
            while fetched := chosen.fetchmany(rows):
                cells = zip(fields, zip(*fetched, strict=True), strict=True)
                made = [pa.array(map(_AS[f.type], column), f.type) for f, column in cells]
                yield pa.record_batch(made, names=keep)

    def number(cell: Any) -> float | None:
        return None if cell is None else float(cell)  # beyond 2^53 the nearest, as in other files

    def words(cell: Any) -> str | None:
        return None if cell is None else str(cell)

    def octets(cell: Any) -> bytes | None:
        return None if cell is None else cell if isinstance(cell, bytes) else str(cell).encode()

    _AS = {pa.float64(): number, pa.string(): words, pa.binary(): octets}
    part = arrow_part(schema, batches, name, origin, path=path)
    return replace(part, stop=partial(_interrupt, running))


def _utf8(name: bytes, what: str, shown: str) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"the name of {what} {name.decode(errors='replace')!r} in {shown!r} is not UTF-8; "
            "rename it"
        ) from error


def _without_traces(path: str, shown: str) -> str:
    """The URI by which SQLite opens a file so that it makes no others beside it.

    In the mode of a write-ahead log it makes two even for reading, if they are not there. Without
    a log nobody has the database open. With a log that nobody has open, a copy is read.
    """
    log, index = (os.path.exists(f"{path}{ending}") for ending in ("-wal", "-shm"))
    with open(path, "rb") as file:
        logged = 2 in file.read(20)[18:]  # versions of the format for writing and reading
    how = "mode=ro"
    if logged and not log:
        how = "immutable=1"
    elif logged and not index:
        path = with_log(path, shown)
    return f"file:{quote(os.path.abspath(path))}?{how}"
