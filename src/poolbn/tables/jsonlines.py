"""JSON lines, one object for each row, in a stream."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from poolbn.errors import DataError
from poolbn.tables.copies import DAMAGED, LONGEST, as_utf8, damaged, opened, zipped
from poolbn.tables.engine import Text, described, literal, text_part
from poolbn.tables.sources import Part, first_line

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

    def query(read: Mapping[str, str]) -> str:
        spec = ", ".join(f"{literal(c)}: '{kind}'" for c, kind in read.items())
        return f"from {scan}, columns={{{spec}}})"

    return text_part(
        text,
        kinds,
        query,
        cells=lambda column: (row.get(column) for row in _objects(text)),
        wrong=lambda error, columns: _json_error(text, error),
    )


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
