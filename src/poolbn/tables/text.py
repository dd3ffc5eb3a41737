"""Files of text, read by DuckDB in a stream: CSV and TSV, with decimal commas too; JSON lines."""

from __future__ import annotations

import csv
import glob
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO, TextIOWrapper
from itertools import islice
from typing import IO, Any

from poolbn.errors import DROP, DataError, MessagePart
from poolbn.tables.copies import DAMAGED, LONGEST, as_utf8, damaged, opened, zipped
from poolbn.tables.sources import (
    Part,
    Piece,
    Wanted,
    arrow_piece,
    check_unique,
    first_line,
    in_words,
)
from poolbn.wording import counted

# Types of DuckDB that are numbers here, of those that it finds in text.
NUMERIC = ("BOOLEAN", "BIGINT", "HUGEINT", "UBIGINT", "DOUBLE")


@dataclass(frozen=True)
class Text:
    """A file of text."""

    path: str  # what is read: the file, or a copy in UTF-8
    shown: str  # what messages call it
    name: str  # the data set that it is when no column says so
    origin: str  # how a message says "in this file"
    separator: str = ","  # of CSV files; at first the one to take if two could be it
    decimal: str = "."  # what stands before the decimals of numbers
    header: tuple[str, ...] = ()  # the names of the columns of a CSV file

    def is_number(self, cell: str) -> bool:
        """Whether a cell reads as a number."""
        if self.decimal == ".":
            return looks_numeric(cell)
        return "." not in cell and looks_numeric(cell.replace(",", "."))


def text_part(
    text: Text,
    kinds: Mapping[str, str],
    as_sql: Callable[[Mapping[str, str]], str],
    wrong: Callable[[BaseException, tuple[str, ...]], DataError],
) -> Part:
    """The part that a file of text is.

    `kinds` are the types that DuckDB found, `as_sql` reads columns as others, and `wrong` tells of
    an error, where these columns were read.
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
                for batch in connection.sql(as_sql(read)).to_arrow_reader(wanted.rows):
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
    return Part(text.name, text.origin, types, pieces, text.path, truths=truths)


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


MISSING_TEXT = ("", "NA")
_SEPARATORS = ",;\t|"
_WIDEST = 20_000  # columns of a CSV file; DuckDB takes seconds for them
_SHOWN = 60  # characters of a cell, in a message
_SAMPLE = 1000  # rows in which decimal commas are told from those between thousands
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+")


def csv_part(text: Text) -> Part:
    """The part that a file with separators is."""
    import duckdb

    text = replace(text, path=as_utf8(text.path, text.shown))
    header, delimiter = _header(text)
    text = replace(text, header=tuple(header), separator=delimiter)
    check_unique(header, text.origin)
    if len(header) > _WIDEST:
        raise DataError(
            f"{text.shown!r} has {len(header)} columns, and CSV files are read up to {_WIDEST}; "
            "keep fewer, or turn it into Parquet"
        )

    # All is said but the types, so that nothing is guessed: lines that begin with "#" are rows.
    nulls = ", ".join(literal(cell) for cell in MISSING_TEXT)
    plainly = (
        f"read_csv({literal(glob.escape(text.path))}, delim={literal(delimiter)}, header=true, "
        f"quote='\"', escape='\"', comment='', skip=0, nullstr=[{nulls}], "
        f"compression={literal('gzip' if zipped(text.path) else 'none')}, hive_partitioning=false"
    )
    with_commas = f"{plainly}, decimal_separator=','"

    try:
        found, scan = [*described(f"{plainly})").values()], plainly
        if delimiter != "," and "VARCHAR" in found:
            others = [*described(f"{with_commas})").values()]
            if _decimal_commas(text, found, others):
                found, scan, text = others, with_commas, replace(text, decimal=",")
    except duckdb.Error as error:
        raise _csv_error(text, error) from error
    if len(found) != len(header):
        reason = f"rows have {len(found)} cells, the first line names {len(header)} columns"
        raise _csv_error(text, DataError(reason))
    # DuckDB renames some columns (to it "a" and "A" are the same), so they go by position.
    kinds = dict(zip(header, found, strict=True))

    def typed(read: Mapping[str, str]) -> str:
        spec = ", ".join(f"c{i}: '{read.get(c, 'VARCHAR')}'" for i, c in enumerate(header))
        return f"{scan}, auto_detect=false, columns={{{spec}}})"

    def as_sql(read: Mapping[str, str]) -> str:
        at = {c: i for i, c in enumerate(header)}
        return f"select {', '.join(f'c{at[c]}' for c in read)} from {typed(read)}"

    # Columns that hold nothing are texts to DuckDB: a site did not measure them. It reads no
    # further than the first value.
    texts = typed({})
    try:
        with connected() as connection:
            for k, name in enumerate(header):
                value = f"select 1 from {texts} where c{k} is not null limit 1"
                if kinds[name] == "VARCHAR" and not connection.sql(value).fetchall():
                    kinds[name] = "DOUBLE"  # as other files may have it
    except duckdb.Error as error:
        raise _csv_error(text, error) from error
    if len(header) == 1 and kinds[header[0]] not in NUMERIC:
        raise DataError(
            f"{text.shown!r} has one column, {_cut(header[0])}, and it is not numeric; columns are "
            "separated by a comma, a semicolon, a tab or |"
        )
    return text_part(text, kinds, as_sql, lambda error, cs: _csv_error(text, error, cs))


def _decimal_commas(text: Text, plainly: Sequence[str], with_commas: Sequence[str]) -> bool:
    """Whether numbers have decimal commas, by what columns hold if they have not and if they have.

    Commas with three digits after each may stand between thousands: these alone prove nothing.
    """
    if len(plainly) != len(with_commas):
        return False
    both = list(zip(plainly, with_commas, strict=True))
    if ("DOUBLE", "VARCHAR") in both:
        return False
    gained = [k for k, pair in enumerate(both) if pair == ("VARCHAR", "DOUBLE")]
    for row in islice(_rows(text), _SAMPLE) if gained else ():
        cells = (row[k] for k in gained if k < len(row) and "," in row[k])
        if not all(map(_THOUSANDS.fullmatch, cells)):
            return True
    return False


def _cut(text: str) -> str:
    """A text of unknown length, in a message."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def _open(path: str) -> IO[str]:
    return TextIOWrapper(opened(path), encoding="utf-8-sig", newline="")


def _header(text: Text) -> tuple[list[str], str]:
    """The names of the columns, and what separates them."""
    try:
        with _open(text.path) as lines:
            start = lines.read(LONGEST)
    except _UNREADABLE as error:
        raise _unreadable(text, error) from error
    if not start.strip():
        raise DataError(
            f"{text.shown!r} is empty; it needs a first line with the names of its columns"
        )
    if not start.splitlines()[0].strip():
        raise DataError(
            f"the first line of {text.shown!r} is blank; it should name the columns, so take it out"
        )
    tried = {d: two for d in _SEPARATORS if (two := _two_rows(start, d))}
    alone = all(len(two) < 2 for two in tried.values())
    if not tried or (alone and len(start) == LONGEST):
        raise DataError(
            f"the first line of {text.shown!r} is too long to name columns; is a quote missing, or "
            "is it no CSV file?"
        )
    if alone:
        raise DataError(f"{text.shown!r} has no rows below its first line")
    delimiter = _separator(text, tried)
    header = tried[delimiter][0]
    # Without names, pandas writes 0, 1, 2, ...
    if all(map(looks_numeric, header)) and header != [str(i) for i in range(len(header))]:
        raise DataError(
            f"the first line of {text.shown!r} holds numbers, {_cut(', '.join(header))}; it should "
            "name the columns, so put a line with names before it"
        )
    return header, delimiter


def _two_rows(start: str, delimiter: str) -> list[list[str]]:
    """The first line and the one after it, taken apart; nothing where the first cannot be."""
    found: list[list[str]] = []
    try:
        found.extend(islice(csv.reader(StringIO(start, newline=""), delimiter=delimiter), 2))
    except csv.Error:  # a long cell: such a row is DuckDB's to read
        found += [[]] * bool(found)
    return found


def _separator(text: Text, tried: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """What separates columns: the first line has it, the second as often, around most numbers."""
    several = {d: two for d, two in tried.items() if len(two[0]) > 1}
    fitting = {d: two for d, two in several.items() if len(two) == 2 and len(two[0]) == len(two[1])}
    merits = {
        # A comma that separates nothing is a decimal comma.
        d: (
            sum(looks_numeric(c if d == "," else c.replace(",", ".")) for c in two[-1])
            if fitting
            else 0,
            len(two[0]),
        )
        for d, two in (fitting or several).items()
    }
    best = [d for d, merit in merits.items() if merit == max(merits.values())]
    if text.separator in best and text.separator != ",":
        return text.separator
    if fitting and len(best) > 1:
        raise DataError(
            f"columns of {text.shown!r} may be separated by {' or '.join(map(repr, best))}; put "
            "names and cells that hold one of them in double quotes"
        )
    return best[0] if best else ","


def _rows(text: Text) -> Iterator[list[str]]:
    """The rows as text, one by one: slow, for error messages only."""
    number = 0

    def short(lines: IO[str]) -> Iterator[str]:
        for at, line in enumerate(iter(lambda: lines.readline(LONGEST), ""), start=1):
            if len(line) == LONGEST:
                raise DataError(f"line {at} of {text.shown!r} has more than {LONGEST:,} characters")
            yield line

    try:
        with _open(text.path) as lines:
            reader = csv.reader(short(lines), delimiter=text.separator, strict=True)
            next(reader)
            for row in reader:
                if row:
                    number += 1
                    yield row
    except csv.Error as error:
        raise DataError(
            f"row {number + 1} of {text.shown!r} cannot be read: {error}; a quote may be missing, "
            "or a cell be too long"
        ) from error
    except _UNREADABLE as error:
        raise _unreadable(text, error) from error


_UNREADABLE = (*DAMAGED, UnicodeDecodeError)


def _unreadable(text: Text, error: BaseException) -> DataError:
    """What is wrong with a file whose text cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return DataError(f"{text.shown!r} is not UTF-8 text; save it with that encoding")
    if isinstance(error, DAMAGED):
        return damaged(text.shown, error)
    return DataError(f"{text.shown!r} cannot be read as CSV: {first_line(error)}")


def _csv_error(text: Text, error: BaseException, columns: tuple[str, ...] = ()) -> DataError:
    """What is wrong with a file that could not be read: looks at it again, row by row."""
    try:
        reason = _bad_row(text, columns)
    except DataError as found:
        return found
    return DataError(*reason) if reason else _unreadable(text, error)


def _bad_row(text: Text, columns: tuple[str, ...]) -> Sequence[MessagePart]:
    """The first row with too many or too few cells, or text in a numeric column; or nothing."""
    for number, row in enumerate(_rows(text), start=1):
        if len(row) != len(text.header):
            return (
                f"row {number} of {text.shown!r} has {len(row)} cells but the first line names "
                f"{counted(len(text.header), 'column')}; correct that row",
            )
        for column in columns:
            cell = row[text.header.index(column)]
            if cell not in MISSING_TEXT and not text.is_number(cell):
                return (
                    f"column {column!r} is not numeric: row {number} of {text.shown!r} holds "
                    f"{_cut(cell)}; correct that cell, or leave it empty and use ",
                    DROP,
                )
    with _open(text.path) as lines:
        endings = {line[len(line.rstrip("\r\n")) :] for line in lines} - {""}
    if len(endings) > 1:
        return (
            f"lines of {text.shown!r} end in different ways, "
            f"{' and '.join(sorted(map(repr, endings)))}; save it with one of them",
        )
    return ()


_RENAMED = re.compile(r"(.*)_\d+", re.DOTALL)


def json_part(text: Text) -> Part:
    """The part that a file of JSON lines is; an object may lack columns that others have."""
    import duckdb

    text = replace(text, path=as_utf8(text.path, text.shown))
    scan = (
        f"read_json({literal(glob.escape(text.path))}, format='newline_delimited', "
        f"compression={literal('gzip' if zipped(text.path) else 'uncompressed')}, "
        "hive_partitioning=false"
    )
    try:  # all rows are looked at: any may have one column more
        kinds = described(f"{scan}, sample_size=-1)")
    except duckdb.Error as error:
        raise _json_error(text, error) from error
    # Lines that are no objects, or a column of that name.
    if list(kinds) == ["json"] and next(_objects(text), None) is None:
        raise _nothing(text)
    # To DuckDB "a" and "A" are the same: it calls the second one "A_1".
    lower = {name.lower() for name in kinds}
    if any((other := _RENAMED.fullmatch(name.lower())) and other[1] in lower for name in kinds):
        _check_capitals(text)

    def as_sql(read: Mapping[str, str]) -> str:
        spec = ", ".join(f"{literal(c)}: '{kind}'" for c, kind in read.items())
        return f"from {scan}, columns={{{spec}}})"

    return text_part(text, kinds, as_sql, lambda error, columns: _json_error(text, error))


def _check_capitals(text: Text) -> None:
    known: dict[str, str] = {}
    for row in _objects(text):
        for name in row:
            other = known.setdefault(name.lower(), name)
            if other != name:
                raise DataError(
                    f"columns {other!r} and {name!r}{text.origin} differ only in capitals; rename "
                    "one"
                )


def _objects(text: Text) -> Iterator[dict[str, Any]]:
    """The rows, one by one: slow, for error messages only."""
    try:
        with opened(text.path) as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(
                        f"line {number} of {text.shown!r} is not JSON: {first_line(error)}; each "
                        'line should be one object, such as {"age": 31, "arm": "control"}'
                    ) from error
                if not isinstance(row, dict):
                    raise DataError(
                        f"line {number} of {text.shown!r} is no JSON object; each line should be "
                        'one, such as {"age": 31, "arm": "control"}'
                    )
                yield row
    except DAMAGED as error:
        raise damaged(text.shown, error) from error


def _json_error(text: Text, error: BaseException) -> DataError:
    """What is wrong with a file that could not be read: looks at it again, line by line."""
    try:
        empty = not sum(1 for _ in _objects(text))
    except DataError as found:
        return found
    if empty:
        return _nothing(text)
    return DataError(f"{text.shown!r} cannot be read as JSON lines: {first_line(error)}")


def _nothing(text: Text) -> DataError:
    return DataError(f"{text.shown!r} has no rows; it needs one JSON object on each line")
