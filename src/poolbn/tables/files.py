"""CSV and Parquet files: each is a `Part` that streams, so memory does not grow with its rows."""

from __future__ import annotations

import csv
import glob
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from poolbn.errors import DROP, DataError, MessagePart
from poolbn.tables.paths import KINDS, SUFFIXES, at_arrow, folders
from poolbn.tables.sources import (
    Part,
    Piece,
    arrow_part,
    arrow_piece,
    check_unique,
    first_line,
    in_words,
)

MISSING_TEXT = ("", "NA")


def stem(path: str) -> str:
    """The name of a file without its folder and ending."""
    name = folders(path)[-1]
    ending = max((s for s in SUFFIXES if name.lower().endswith(s)), key=len, default="")
    return name[: len(name) - len(ending)]


def file(path: str) -> Part:
    """The part that a file is, by the ending of its name.

    Raises:
        DataError: it is of no known kind, or of one that is not read from there.
    """
    lower = folders(path)[-1].lower()
    if lower.endswith(KINDS["Parquet"]):
        return _parquet(path)
    if lower.endswith(KINDS["CSV"]):
        return _csv(_local(path))
    raise DataError(
        f"cannot tell what kind of file {path!r} is; its name should end in {', '.join(SUFFIXES)}"
    )


def _local(path: str) -> str:
    from pyarrow.fs import LocalFileSystem

    system, inner = at_arrow(path)
    if not isinstance(system, LocalFileSystem):
        raise DataError(
            f"{path!r} cannot be read: from there only Parquet is; turn it into Parquet, or copy "
            "it here"
        )
    return inner


def _origin(path: str) -> str:
    """How a message says "in this file": where folders say what it holds, with them."""
    *above, name = folders(path)
    return f" of {'/'.join([*(folder for folder in above if '=' in folder), name])}"


def _parquet(path: str) -> Part:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import pyarrow.types as pt

    system, inner = at_arrow(path)

    @contextmanager
    def opened(**options: Any) -> Iterator[Any]:
        try:
            with system.open_input_file(inner) as source, pq.ParquetFile(source, **options) as it:
                yield it
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{path!r} cannot be read as a Parquet file: it is damaged, cut short, or of "
                f"another kind ({first_line(error)}); write it anew"
            ) from error

    with opened() as parquet:
        schema = parquet.schema_arrow

    def batches(keep: list[str], rows: int) -> Iterator[Any]:
        # Text comes as dictionaries, so that a data set's name is decoded once and not in every
        # row. No pre_buffer, which holds the whole file, but small buffers, for less
        # memory. No threads: the other core is busy with the batch before.
        text = [c for c in keep if pt.is_string(schema.field(c).type)]
        with opened(read_dictionary=text, pre_buffer=False, buffer_size=2**20) as parquet:
            yield from parquet.iter_batches(batch_size=rows, columns=keep, use_threads=False)

    return arrow_part(schema, batches, stem(path), _origin(path), path=path)


def _csv(path: str) -> Part:
    import duckdb
    import pyarrow as pa

    origin = _origin(path)
    header, delimiter = _header(path)
    check_unique(header, origin)

    nulls = ", ".join(_literal(text) for text in MISSING_TEXT)
    scan = (
        f"read_csv({_literal(glob.escape(path))}, delim={_literal(delimiter)}, header=true, "
        f"quote='\"', escape='\"', nullstr=[{nulls}], hive_partitioning=false"
    )
    try:
        with _duckdb() as connection:
            described = connection.sql(f"describe from {scan})").fetchall()
    except duckdb.Error as error:
        raise _csv_error(path, (), error) from error
    if len(described) != len(header):
        reason = f"rows have {len(described)} cells, the first line names {len(header)} columns"
        raise _csv_error(path, (), DataError(reason))
    # DuckDB renames some columns (to it "a" and "A" are the same), so they go by position.
    inner = {name: row[0] for name, row in zip(header, described, strict=True)}
    kinds = {name: row[1] for name, row in zip(header, described, strict=True)}
    numeric = ("BOOLEAN", "BIGINT", "HUGEINT", "DOUBLE")
    types = {name: "" if k in numeric else in_words(k.lower()) for name, k in kinds.items()}

    def pieces(columns: tuple[str, ...], group: str | None, rows: int) -> Iterator[Piece]:
        keep = [*columns] if group is None else [*columns, group]
        # DuckDB takes types from a sample: whole numbers there may be followed by a 3.5.
        doubles = [inner[c] for c in columns if kinds[c] != "BOOLEAN"]
        forced = ", ".join(f"{_literal(c)}: 'DOUBLE'" for c in doubles)
        typed = f"{scan}, types={{{forced}}})" if doubles else f"{scan})"
        chosen = ", ".join('"' + inner[c].replace('"', '""') + '"' for c in keep)
        try:
            with _duckdb() as connection:
                for batch in connection.sql(f"select {chosen} from {typed}").to_arrow_reader(rows):
                    named = batch.rename_columns(keep)
                    yield arrow_piece(named, columns, group, stem(path), origin)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise _csv_error(path, columns, error) from error

    def cells(column: str) -> Iterator[str | None]:
        at = header.index(column)
        for row in _rows(path):
            yield None if row[at] in MISSING_TEXT else row[at]

    return Part(stem(path), origin, types, pieces, cells, path)


@contextmanager
def _duckdb() -> Iterator[Any]:
    """A connection that keeps standard output free, which may be JSON for a program."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set enable_progress_bar = false")
        yield connection


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _open(path: str) -> IO[str]:
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _header(path: str) -> tuple[list[str], str]:
    try:
        with _open(path) as lines:
            first, second = lines.readline(), lines.readline()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise _csv_error(path, (), error) from error
    if not first.strip():
        raise DataError(f"{path!r} is empty; it needs a first line with the names of its columns")
    if not second.strip():
        raise DataError(f"{path!r} has no rows below its first line")
    delimiter = max(",;\t|", key=first.count)
    return next(csv.reader([first], delimiter=delimiter)), delimiter


def _rows(path: str) -> Iterator[list[str]]:
    """The rows as text, one by one: slow, for error messages only."""
    _, delimiter = _header(path)
    with _open(path) as lines:
        reader = csv.reader(lines, delimiter=delimiter)
        next(reader)
        yield from (row for row in reader if row)


_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError)


def _csv_error(path: str, columns: tuple[str, ...], error: BaseException) -> DataError:
    """What is wrong with a file that could not be read: looks at it again, row by row."""
    if not isinstance(error, _DAMAGED):
        try:
            if reason := _bad_row(path, columns):
                return DataError(*reason)
        except _DAMAGED as again:
            error = again
    if isinstance(error, EOFError | zlib.error):
        return DataError(f"the compressed file {path!r} is damaged or cut short; get it anew")
    if isinstance(error, gzip.BadGzipFile):
        return DataError(f"{path!r} is not a gzip file although its name ends in .gz")
    if isinstance(error, UnicodeDecodeError):
        return DataError(f"{path!r} is not UTF-8 text; save it with that encoding")
    return DataError(f"{path!r} cannot be read as CSV: {first_line(error)}")


def _bad_row(path: str, columns: tuple[str, ...]) -> Sequence[MessagePart]:
    """The first row with too many or too few cells, or text in a numeric column; or nothing."""
    header, _ = _header(path)
    for number, row in enumerate(_rows(path), start=1):
        if len(row) != len(header):
            return (
                f"row {number} of {path!r} has {len(row)} cells but the first line names "
                f"{len(header)} columns; correct that row",
            )
        for column in columns:
            cell = row[header.index(column)]
            if cell not in MISSING_TEXT and not looks_numeric(cell):
                return (
                    f"column {column!r} is not numeric: row {number} of {path!r} holds {cell!r}; "
                    "correct that cell, or leave it empty and use ",
                    DROP,
                )
    return ()


def looks_numeric(cell: object) -> bool:
    """Whether a cell of text reads as a number."""
    try:
        float(str(cell))
    except ValueError:
        return False
    return True
