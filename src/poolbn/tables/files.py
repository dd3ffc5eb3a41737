"""A file of any kind is a `Part`; which reader makes it, the ending of its name says."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from poolbn.errors import DataError
from poolbn.tables.copies import standard_input
from poolbn.tables.databases import database_part
from poolbn.tables.foreign import foreign_part
from poolbn.tables.labels import written
from poolbn.tables.paths import STDIN, SUFFIXES, at_arrow, folders, kind_of, parted_table, suffix
from poolbn.tables.sources import Part, arrow_part, constant, first_line, with_names
from poolbn.tables.text import Text, csv_part, json_part, looks_numeric

_NONE = ("", "__HIVE_DEFAULT_PARTITION__")  # what folders say of missing values
# What to do with files that are not read, by the ending of their names.
_REMEDIES = {
    ".xls": "save it as .xlsx or CSV",
    ".ods": "save it as CSV",
    ".txt": "if it holds text with separators, rename it to end in .csv",
    ".dat": "if it holds text with separators, rename it to end in .csv",
    ".json": "if it holds rows, write each as one object on a line, and end its name in .jsonl",
    ".zip": "unpack it",
    ".por": "save it as .sav",
    ".mdb": "save its table as CSV",
    ".accdb": "save its table as CSV",
}


def stem(path: str) -> str:
    """What a file is called as a data set: its name without folder and ending, or its table's."""
    if path == STDIN:
        return "standard input"
    _, table = parted_table(path)
    if table is not None:
        return table
    name = folders(path)[-1]
    return name[: len(name) - len(suffix(name))]


def parts_of(found: Sequence[str]) -> list[Part]:
    """The parts that files are, with what their folders say as columns of text or numbers.

    Columns of the files go first. A data set is called what its folder says, as text.
    """
    said = [_keys(path) for path in found]
    names = {name for each in said for name in each}
    texts = {name: {text for each in said if (text := each.get(name))} for name in names}
    kinds = {name: "" if all(map(looks_numeric, texts[name])) else "text" for name in names}
    made = []
    for path, each in zip(found, said, strict=True):
        part = file(path)
        values = {name: text for name, text in each.items() if name not in part.types}
        own = {name: kinds[name] for name in values}
        made.append(constant(part, values, own) if values else part)
    return made


def _keys(path: str) -> dict[str, str | None]:
    """What the folders in a path say, such as {"site": "NY"}; None where the text is missing.

    pyarrow.dataset reads the same from paths, but only for names that are known before.
    """
    parted = [folder.partition("=") for folder in folders(path)[:-1]]
    return {
        unquote(name): None if text in _NONE else unquote(text)
        for name, equals, text in parted
        if name and equals
    }


def file(path: str) -> Part:
    """The part that a file is, by the ending of its name; - is standard input."""
    real = standard_input() if path == STDIN else path
    kind, name, origin = kind_of(real), stem(path), _origin(path)
    if kind is None:
        ending = next((e for e in _REMEDIES if folders(path)[-1].lower().endswith(e)), None)
        remedy = _REMEDIES[ending] if ending else f"its name should end in {', '.join(SUFFIXES)}"
        why = "is not a kind of file that is read" if ending else "is of no known kind"
        raise DataError(f"{path!r} {why}; {remedy}")
    if kind in ("Parquet", "Arrow"):
        reader = _parquet if kind == "Parquet" else _arrow
        return replace(reader(real, stem(path), origin), path=path)
    inner, shown = _local(real), "standard input" if path == STDIN else path
    if kind in ("CSV", "JSON lines"):
        tabs = inner.lower().endswith((".tsv", ".tsv.gz"))
        text = Text(inner, shown, name, origin, "\t" if tabs else ",")
        return replace(csv_part(text) if kind == "CSV" else json_part(text), path=path)
    shown, table = parted_table(path)
    if kind in ("DuckDB", "SQLite"):
        part = _named(database_part(inner, shown, table, name, origin))
    else:
        part = foreign_part(inner, shown, kind, table, name, origin)
    return replace(part, path=path)


def _local(path: str) -> str:
    from pyarrow.fs import LocalFileSystem

    system, inner = at_arrow(path)
    if not isinstance(system, LocalFileSystem):
        raise DataError(
            f"{path!r} cannot be read: from there only Parquet and Arrow are; turn it into "
            "Parquet, or copy it here"
        )
    return inner


def _origin(path: str) -> str:
    """How a message says "in this file": where folders say what it holds, with them."""
    if path == STDIN:
        return " of standard input"
    *above, name = folders(path)
    shown = "/".join([*(folder for folder in above if "=" in folder), name])
    _, table = parted_table(path)
    shown = shown if table is None else f"{shown}::{table}"
    return f" of {shown if shown.isprintable() else repr(shown)}"


@contextmanager
def _opened(path: str, what: str) -> Iterator[Any]:
    """A file for Arrow; what goes wrong with it is an error that tells of it as `what`."""
    import pyarrow as pa

    system, inner = at_arrow(path)
    try:
        with system.open_input_file(inner) as source:
            yield source
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path!r} cannot be read as {what} file: it is damaged, cut short, or of another kind "
            f"({first_line(error)}); write it anew"
        ) from error


def _parquet(path: str, name: Hashable, origin: str) -> Part:
    import pyarrow.parquet as pq
    import pyarrow.types as pt

    @contextmanager
    def opened(**options: Any) -> Iterator[Any]:
        with _opened(path, "a Parquet") as source, pq.ParquetFile(source, **options) as parquet:
            yield parquet

    with opened() as parquet:
        schema = parquet.schema_arrow
        list(schema.names)  # UnicodeDecodeError, if one is no UTF-8

    def batches(keep: list[str], rows: int) -> Iterator[Any]:
        # Text comes as dictionaries, so that a data set's name is decoded once and not in every
        # row. No pre_buffer, which holds the whole file, but small buffers, for less
        # memory. No threads: the other core is busy with the batch before.
        text = [c for c in keep if pt.is_string(schema.field(c).type)]
        with opened(read_dictionary=text, pre_buffer=False, buffer_size=2**20) as parquet:
            for batch in parquet.iter_batches(batch_size=rows, columns=keep, use_threads=False):
                for column in batch.columns:
                    if pt.is_dictionary(column.type):  # a damaged file has codes beyond it
                        column.validate(full=True)
                yield batch

    return _named(arrow_part(schema, batches, name, origin, path=path))


def _arrow(path: str, name: Hashable, origin: str) -> Part:
    """A file of Arrow's own format (Feather, version 2, is the same), or a stream of it."""
    import pyarrow as pa

    @contextmanager
    def opened(keep: list[int] | None = None) -> Iterator[Any]:
        with _opened(path, "an Arrow") as source:
            start = source.read(6)
            source.seek(0)
            options = pa.ipc.IpcReadOptions(included_fields=keep, use_threads=False)
            if start[:4] == b"FEA1":
                raise OSError("it is Feather of version 1")
            read = pa.ipc.open_file if start == b"ARROW1" else pa.ipc.open_stream
            yield read(source, options=options)

    with opened() as reader:
        schema = reader.schema
        list(schema.names)  # UnicodeDecodeError, if one is no UTF-8

    def batches(keep: list[str], rows: int) -> Iterator[Any]:
        with opened([schema.names.index(c) for c in keep]) as reader:
            count = getattr(reader, "num_record_batches", None)
            for batch in reader if count is None else map(reader.get_batch, range(count)):
                batch.validate(full=True)
                yield batch.select(keep)

    return _named(arrow_part(schema, batches, name, origin, path=path))


def _named(part: Part) -> Part:
    """With names of data sets as they can be saved: days, decimals and the like as text."""

    def name(label: Any) -> Any:
        if label is None or isinstance(label, str | int | float):
            return label
        return label.decode(errors="replace") if isinstance(label, bytes) else written(label)

    return with_names(part, name)
