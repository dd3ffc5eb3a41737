"""CSV and Parquet files: each is a `Part` that streams, so memory does not grow with its rows."""

from __future__ import annotations

import csv
import glob
import gzip
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from io import StringIO
from itertools import islice
from typing import IO, Any

from poolbn.errors import DROP, DataError, MessagePart
from poolbn.tables.labels import written
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
from poolbn.wording import counted

MISSING_TEXT = ("", "NA")
_SEPARATORS = ",;\t|"
_LONGEST = 2_000_000  # characters of a line, as DuckDB has it
_WIDEST = 20_000  # columns of a CSV file; DuckDB takes seconds for them
_SHOWN = 60  # characters of a cell, in a message


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
    shown = "/".join([*(folder for folder in above if "=" in folder), name])
    return f" of {shown if shown.isprintable() else repr(shown)}"


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

    part = arrow_part(schema, batches, stem(path), _origin(path), path=path)

    def pieces(
        columns: tuple[str, ...], group: str | None, rows: int, coded: Set[str] = frozenset(), /
    ) -> Iterator[Piece]:
        for piece in part.pieces(columns, group, rows, coded):
            yield replace(piece, labels=[_name(label) for label in piece.labels])

    return replace(part, pieces=pieces)


def _name(label: Any) -> Any:
    """The name of a data set as it can be saved: days, decimals and the like as text."""
    if label is None or isinstance(label, str | int | float):
        return label
    return label.decode(errors="replace") if isinstance(label, bytes) else written(label)


def _csv(path: str) -> Part:
    import duckdb
    import pyarrow as pa

    origin = _origin(path)
    header, delimiter = _header(path)
    check_unique(header, origin)
    if len(header) > _WIDEST:
        raise DataError(
            f"{path!r} has {len(header)} columns, and CSV files are read up to {_WIDEST}; keep "
            "fewer, or turn it into Parquet"
        )

    # All is said but the types, so that nothing is guessed: lines that begin with "#" are rows.
    nulls = ", ".join(_literal(text) for text in MISSING_TEXT)
    scan = (
        f"read_csv({_literal(glob.escape(path))}, delim={_literal(delimiter)}, header=true, "
        f"quote='\"', escape='\"', comment='', skip=0, nullstr=[{nulls}], "
        f"compression={_literal('gzip' if _zipped(path) else 'none')}, hive_partitioning=false"
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
    kinds = {name: row[1] for name, row in zip(header, described, strict=True)}
    numeric = ("BOOLEAN", "BIGINT", "HUGEINT", "DOUBLE")
    types = {name: "" if k in numeric else in_words(k.lower()) for name, k in kinds.items()}
    if len(header) == 1 and types[header[0]]:
        raise DataError(
            f"{path!r} has one column, {_cut(header[0])}, and it is not numeric; columns are "
            "separated by a comma, a semicolon, a tab or |"
        )

    def pieces(
        columns: tuple[str, ...], group: str | None, rows: int, coded: Set[str] = frozenset(), /
    ) -> Iterator[Piece]:
        keep = [*columns] if group is None else [*columns, group]
        # DuckDB takes types from a sample: whole numbers there may be followed by a 3.5. Names of
        # data sets are texts, as they are written: 1, 1.0 and 01 are three.
        plain = [c for c in columns if c not in coded]
        read = {c: "BOOLEAN" if kinds[c] == "BOOLEAN" else "DOUBLE" for c in plain}
        spec = ", ".join(f"c{i}: '{read.get(c, 'VARCHAR')}'" for i, c in enumerate(header))
        at = {c: i for i, c in enumerate(header)}
        chosen = ", ".join(f"c{at[c]}" for c in keep)
        typed = f"{scan}, auto_detect=false, columns={{{spec}}})"
        try:
            with _duckdb() as connection:
                for batch in connection.sql(f"select {chosen} from {typed}").to_arrow_reader(rows):
                    named = batch.rename_columns(keep)
                    yield arrow_piece(named, columns, group, stem(path), origin, coded)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise _csv_error(path, columns, error) from error

    def cells(column: str) -> Iterator[str | None]:
        at = header.index(column)
        for row in _rows(path):
            if at < len(row):
                yield None if row[at] in MISSING_TEXT else row[at]

    truths = frozenset(name for name, k in kinds.items() if k == "BOOLEAN")
    return Part(stem(path), origin, types, pieces, cells, path, truths=truths)


@contextmanager
def _duckdb() -> Iterator[Any]:
    """A connection that keeps standard output free, which may be JSON for a program."""
    import duckdb

    try:
        with _database(os.getpid()).cursor() as connection:
            connection.execute("set enable_progress_bar = false")
            yield connection
    except duckdb.FatalException:
        _database.cache_clear()
        raise


@cache
def _database(process: int) -> Any:
    """The one of this process: opening it takes longer than reading a small file."""
    import duckdb

    return duckdb.connect()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _cut(text: str) -> str:
    """A text of unknown length, in a message."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def _zipped(path: str) -> bool:
    return path.lower().endswith(".gz")


def _open(path: str) -> IO[str]:
    if _zipped(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _header(path: str) -> tuple[list[str], str]:
    """The names of the columns, and what separates them.

    Raises:
        DataError: the first line does not name columns, or nothing follows it.
    """
    try:
        with _open(path) as lines:
            start = lines.read(_LONGEST)
    except _DAMAGED as error:
        raise _unreadable(path, error) from error
    if not start.strip():
        raise DataError(f"{path!r} is empty; it needs a first line with the names of its columns")
    if not start.splitlines()[0].strip():
        raise DataError(
            f"the first line of {path!r} is blank; it should name the columns, so take it out"
        )
    tried = {d: two for d in _SEPARATORS if (two := _two_rows(start, d))}
    alone = all(len(two) < 2 for two in tried.values())
    if not tried or (alone and len(start) == _LONGEST):
        raise DataError(
            f"the first line of {path!r} is too long to name columns; is a quote missing, or is "
            "it no CSV file?"
        )
    if alone:
        raise DataError(f"{path!r} has no rows below its first line")
    delimiter = _separator(path, tried)
    header = tried[delimiter][0]
    # Without names, pandas writes 0, 1, 2, ...
    if all(map(looks_numeric, header)) and header != [str(i) for i in range(len(header))]:
        raise DataError(
            f"the first line of {path!r} holds numbers, {_cut(', '.join(header))}; it should name "
            "the columns, so put a line with names before it"
        )
    return header, delimiter


def _two_rows(start: str, delimiter: str) -> list[list[str]]:
    """The first line and the one after it, taken apart; nothing where the first cannot be."""
    found: list[list[str]] = []
    try:
        found.extend(islice(csv.reader(StringIO(start, newline=""), delimiter=delimiter), 2))
    except csv.Error:  # a long cell: such a row is DuckDB's to read
        return [*found, []] if found else []
    return found


def _separator(path: str, tried: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """What separates columns: the first line has it, the second as often, around most numbers."""
    several = {d: two for d, two in tried.items() if len(two[0]) > 1}
    fitting = {d: two for d, two in several.items() if len(two) == 2 and len(two[0]) == len(two[1])}
    merits = {
        d: (sum(_decimal(cell, d) for cell in two[-1]) if fitting else 0, len(two[0]))
        for d, two in (fitting or several).items()
    }
    best = [d for d, merit in merits.items() if merit == max(merits.values())]
    if fitting and len(best) > 1:
        raise DataError(
            f"columns of {path!r} may be separated by {' or '.join(map(repr, best))}; put names "
            "and cells that hold one of them in double quotes"
        )
    return best[0] if best else ","


def _decimal(cell: str, delimiter: str) -> bool:
    """Whether it is a number, with a decimal comma where that separates nothing."""
    return looks_numeric(cell if delimiter == "," else cell.replace(",", "."))


def _rows(path: str) -> Iterator[list[str]]:
    """The rows as text, one by one: slow, for error messages only.

    Raises:
        DataError: a row cannot be taken apart.
    """
    _, delimiter = _header(path)
    number = 0
    try:
        with _open(path) as lines:
            short = _short(path, lines)
            reader = csv.reader(short, delimiter=delimiter, strict=True)
            next(reader)
            for row in reader:
                if row:
                    number += 1
                    yield row
    except csv.Error as error:
        raise DataError(
            f"row {number + 1} of {path!r} cannot be read: {error}; a quote may be missing, or a "
            "cell be too long"
        ) from error
    except _DAMAGED as error:
        raise _unreadable(path, error) from error


def _short(path: str, lines: IO[str]) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: lines.readline(_LONGEST), ""), start=1):
        if len(line) == _LONGEST:
            raise DataError(f"line {number} of {path!r} has more than {_LONGEST:,} characters")
        yield line


_DAMAGED = (OSError, EOFError, zlib.error, UnicodeDecodeError)


def _unreadable(path: str, error: BaseException) -> DataError:
    """What is wrong with a file whose text cannot be read."""
    if isinstance(error, EOFError | zlib.error):
        return DataError(f"the compressed file {path!r} is damaged or cut short; get it anew")
    if isinstance(error, gzip.BadGzipFile):
        return DataError(f"{path!r} is not a gzip file although its name ends in .gz")
    if isinstance(error, UnicodeDecodeError):
        return DataError(f"{path!r} is not UTF-8 text; save it with that encoding")
    if isinstance(error, OSError) and error.strerror:
        return DataError(f"cannot read {path!r}: {error.strerror}")
    return DataError(f"{path!r} cannot be read as CSV: {first_line(error)}")


def _csv_error(path: str, columns: tuple[str, ...], error: BaseException) -> DataError:
    """What is wrong with a file that could not be read: looks at it again, row by row."""
    try:
        reason = _bad_row(path, columns)
    except DataError as found:
        return found
    return DataError(*reason) if reason else _unreadable(path, error)


def _bad_row(path: str, columns: tuple[str, ...]) -> Sequence[MessagePart]:
    """The first row with too many or too few cells, or text in a numeric column; or nothing."""
    header, _ = _header(path)
    for number, row in enumerate(_rows(path), start=1):
        if len(row) != len(header):
            return (
                f"row {number} of {path!r} has {len(row)} cells but the first line names "
                f"{counted(len(header), 'column')}; correct that row",
            )
        for column in columns:
            cell = row[header.index(column)]
            if cell not in MISSING_TEXT and not looks_numeric(cell):
                return (
                    f"column {column!r} is not numeric: row {number} of {path!r} holds "
                    f"{_cut(cell)}; correct that cell, or leave it empty and use ",
                    DROP,
                )
    with _open(path) as lines:
        endings = {line[len(line.rstrip("\r\n")) :] for line in lines} - {""}
    if len(endings) > 1:
        return (
            f"lines of {path!r} end in different ways, {' and '.join(sorted(map(repr, endings)))}; "
            "save it with one of them",
        )
    return ()


def looks_numeric(cell: object) -> bool:
    """Whether a cell of text reads as a number."""
    try:
        float(str(cell))
    except ValueError:
        return False
    return True
