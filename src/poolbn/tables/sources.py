"""Rows come in parts, a frame or a file each, which hand them over in pieces.

A data frame of any kind is a `Part`; so is one with columns that names of folders tell, with other
names of data sets, or whose rows are kept in memory.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.errors import ClusterError, DataError, left_out


class Coded(NamedTuple):
    """What the numbers 0, 1, ... in a coded column stand for, and whether their order means it.

    Where they are `distinct` none is missing, and none is there twice. Where it is known to be from
    low to high they are `ordered` too.
    """

    labels: list[Any]
    in_order: bool = False
    distinct: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of a part."""

    columns: list[Floats]  # the chosen columns, each (B,), NaN where a cell is missing
    # for each row the index of its data set in `labels`, -1 where missing, (B,)
    keys: Integers
    labels: list[Any]  # names of data sets, perhaps more than occur in `keys`
    # of columns that are read as they are and coded, what the codes mean
    coded: dict[str, Coded] = field(default_factory=dict)


class Wanted(NamedTuple):
    """What is read of a part: so many rows at a time; those columns that are `coded` as codes.

    Of these some have `many` names: they are coded once where all rows are in memory.
    """

    columns: tuple[str, ...]
    group: str | None
    rows: int
    coded: Set[str] = frozenset()
    many: Set[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """All columns, that of the data sets last."""
        return [*self.columns] if self.group is None else [*self.columns, self.group]


@dataclass(frozen=True)
class Part:
    """One frame or one file."""

    name: Hashable | None  # the data set that it is when no column says so; None for a lone frame
    origin: str  # how a message says "in this part", such as " of siteA.csv".
    types: dict[str, str]  # for each column "" if it is numeric, else its type in words
    pieces: Callable[[Wanted], Iterator[Piece]]  # hands over the rows, in order
    # of the file, which can be read ahead in another thread; None for a frame
    path: str | None = None
    # what the names of its folders say, which are columns of it
    keys: tuple[tuple[str, Any], ...] = ()
    truths: frozenset[str] = frozenset()  # columns that hold true and false
    stop: Callable[[], None] = lambda: None  # ends a query that another thread waits for
    once: bool = False  # whether its rows are read only once

    def cells(self, column: str) -> Iterator[Any]:
        """What a column holds, None where missing, for a message; nothing if that is not known."""
        if not self.once and column not in dict(self.keys):
            for piece in self.pieces(Wanted((), column, 10_000)):
                yield from (piece.labels[k] if k >= 0 else None for k in piece.keys.tolist())


def frame(source: Any, name: Hashable | None) -> Part:
    """The part that a data frame is: pandas, polars, Arrow, or what else narwhals takes."""
    import pandas as pd
    import pyarrow as pa

    origin = "" if name is None else f" of data set {name!r}"
    if isinstance(source, pd.DataFrame):
        return pandas_part(source, name, origin)
    if is_dask(source):
        return _dask(source, name, origin)
    if isinstance(source, pa.RecordBatchReader):
        return arrow_part(source.schema, lambda keep, rows: source, name, origin, once=True)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    import narwhals as nw

    try:
        native: Any = nw.from_native(source)
    except TypeError:
        raise DataError(
            f"cannot read rows from a {type(source).__name__}{origin}; give a data frame (pandas, "
            "polars, Arrow), a dict {name of data set: frame}, or paths of files, such as CSV or "
            "Parquet"
        ) from None

    def collected(part: Any) -> Any:
        eager = part.collect("pyarrow") if isinstance(part, nw.LazyFrame) else part
        return eager.to_arrow()

    try:
        schema = collected(native.head(0)).schema
    except Exception as error:  # each frame library has its own
        raise DataError(f"cannot turn the frame{origin} into Arrow: {first_line(error)}") from error

    def batches(keep: list[str], rows: int) -> Iterable[Any]:
        return cast("Iterable[Any]", collected(native.select(keep)).to_batches(rows))

    return arrow_part(schema, batches, name, origin)


def is_dask(source: object) -> bool:
    """Whether it is a frame of Dask, which then is imported."""
    module = sys.modules.get("dask.dataframe")
    return module is not None and isinstance(source, module.DataFrame)


def _dask(table: Any, name: Hashable | None, origin: str) -> Part:
    """A frame of Dask, of which one partition after the other is fetched."""

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        chosen = table[wanted.names]
        for k in range(table.npartitions):
            fetched = computed(chosen.partitions[k])
            part = pandas_part(fetched, name, partition_origin(k) + origin)
            for column in wanted.columns:
                if part.types[column] and column not in wanted.coded:
                    raise DataError(
                        f"column {column!r}{part.origin} is not numeric: it holds "
                        f"{part.types[column]}; ",
                        left_out(column),
                    )
            yield from part.pieces(wanted)

    meta = pandas_part(table._meta, name, origin)
    return Part(name, origin, meta.types, pieces, truths=meta.truths, once=True)


def computed(lazy: Any) -> Any:
    """What Dask computes."""
    distributed = sys.modules.get("distributed")
    lost = (distributed.KilledWorker, distributed.comm.CommClosedError) if distributed else ()
    try:
        return lazy.compute()
    except (CancelledError, *lost) as error:
        raise ClusterError(
            "the cluster was closed or lost its workers while it read the rows "
            f"({type(error).__name__}); start it, and the work, again"
        ) from error


def partition_origin(k: int) -> str:
    """How a message says "in this partition", as Dask writes it."""
    return f" of partitions[{k}]"


def pandas_part(table: Any, name: Hashable | None, origin: str) -> Part:
    """The part that a frame of pandas is; arguments are as for `Part`."""
    import pandas as pd
    from pandas.api import types as pt

    odd = [c for c in table.columns if not isinstance(c, str)]
    if odd:
        raise DataError(
            f"{len(odd)} columns{origin} have names that are not text, the first is {odd[0]!r}; "
            "rename them, for example with frame.columns = frame.columns.map(str)"
        )
    check_unique(list(table.columns), origin)

    def holds(name: str, dtype: Any) -> tuple[str, bool]:
        """A column's type, as in `Part`, and whether it holds true and false."""
        if pt.is_object_dtype(dtype):
            inferred = pt.infer_dtype(table[name], skipna=True)
            numeric = ("boolean", "integer", "floating", "decimal", "mixed-integer-float", "empty")
            return "" if inferred in numeric else in_words(inferred), inferred == "boolean"
        truths = pt.is_bool_dtype(dtype)
        number = (truths or pt.is_numeric_dtype(dtype)) and not pt.is_complex_dtype(dtype)
        words = "" if number else in_words(str(dtype))
        return words, truths and not hasattr(dtype, "categories")

    def factorized(column: Any) -> tuple[Integers, list[Any]]:
        try:
            keys, found = pd.factorize(column)
        except TypeError as error:
            raise unhashable(column.name, origin) from error
        return keys, found.tolist()

    def codes(column: Any) -> tuple[Floats, Coded]:
        if isinstance(column.dtype, pd.CategoricalDtype):
            own = column.cat
            keys, meaning = (
                own.codes.to_numpy(),
                Coded(own.categories.tolist(), in_order=True, distinct=True, ordered=own.ordered),
            )
        else:
            keys, labels = factorized(column)
            meaning = Coded(labels, distinct=True)
        return np.where(keys < 0, np.nan, keys), meaning

    def floats(column: Any) -> Floats:
        try:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        except OverflowError as error:
            raise DataError(
                f"column {column.name!r}{origin} has a whole number that is too large for a float; "
                "correct it, or ",
                left_out(column.name),
            ) from error

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        chosen = [table[c] for c in wanted.columns]
        groups = None if wanted.group is None else table[wanted.group]
        once = {c.name: codes(c) for c in chosen if c.name in wanted.many}
        for start in range(0, len(table), wanted.rows):
            at = slice(start, start + wanted.rows)
            some = chosen if wanted.rows >= len(table) else [c.iloc[at] for c in chosen]
            made = {c: (own[at], meaning) for c, (own, meaning) in once.items()} | {
                c.name: codes(c) for c in some if c.name in wanted.coded - wanted.many
            }
            cut = [made[c.name][0] if c.name in made else floats(c) for c in some]
            meanings = {c: meaning for c, (_, meaning) in made.items()}
            if groups is None:
                keys, labels = np.zeros(len(table.index[at]), dtype=np.int64), [name]
            else:
                keys, labels = factorized(groups.iloc[at])
            yield Piece(cut, keys, labels, meanings)

    # Most columns of a wide table are of one type, and are asked once for all.
    plain = {dtype for dtype in table.dtypes if not pt.is_object_dtype(dtype)}
    known = {dtype: holds("", dtype) for dtype in plain}
    each = {c: known.get(dtype) or holds(c, dtype) for c, dtype in table.dtypes.items()}
    types = {c: words for c, (words, _) in each.items()}
    truths = frozenset(c for c, (_, truth) in each.items() if truth)
    return Part(name, origin, types, pieces, truths=truths)


def arrow_part(
    schema: Any,
    batches: Callable[[list[str], int], Iterable[Any]],
    name: Hashable | None,
    origin: str,
    *,
    path: str | None = None,
    once: bool = False,
) -> Part:
    """The part of the record batches that (columns, rows per batch) make, perhaps only `once`."""
    import pyarrow.types as pt

    check_unique(schema.names, origin)

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        for batch in batches(wanted.names, wanted.rows):
            for start in range(0, batch.num_rows, wanted.rows):
                yield arrow_piece(batch.slice(start, wanted.rows), wanted, name, origin)

    numeric = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_boolean, pt.is_null)
    types = {
        field.name: "" if any(is_it(field.type) for is_it in numeric) else in_words(str(field.type))
        for field in schema
        if not field.name.startswith("__index_level_")  # row labels, which pandas writes along
    }
    truths = frozenset(field.name for field in schema if pt.is_boolean(field.type))
    return Part(name, origin, types, pieces, path, truths=truths, once=once)


def arrow_piece(batch: Any, wanted: Wanted, name: Hashable | None, origin: str) -> Piece:
    """The piece in a record batch; without a copy where a column is float64 without nulls."""
    import pyarrow as pa
    import pyarrow.types as pt

    double = pa.float64()

    def floats(column: Any) -> Floats:
        if column.type != double:
            column = column.cast(double, safe=False)
        if column.null_count:
            column = column.fill_null(math.nan)  # a third faster than `to_numpy`
        if not len(column):
            return np.zeros(0)
        return np.frombuffer(column.buffers()[1], np.float64, len(column), 8 * column.offset)

    def codes(column: str) -> tuple[Any, Coded]:
        cells = batch.column(column)
        if pt.is_nested(cells.type):
            raise unhashable(column, origin)
        in_order = pt.is_dictionary(cells.type) and cells.type.ordered
        if not pt.is_dictionary(cells.type):
            cells = cells.dictionary_encode()
        return cells.indices, Coded(cells.dictionary.to_pylist(), in_order, ordered=in_order)

    made = {c: codes(c) for c in wanted.columns if c in wanted.coded}
    cut = [floats(made[c][0] if c in made else batch.column(c)) for c in wanted.columns]
    meanings = {c: meaning for c, (_, meaning) in made.items()}
    if wanted.group is None:
        return Piece(cut, np.zeros(batch.num_rows, dtype=np.int64), [name], meanings)
    indices, (labels, *_) = codes(wanted.group)
    keys = indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return Piece(cut, keys, labels, meanings)


def with_names(part: Part, name: Callable[[Any], Any]) -> Part:
    """The part with other names of data sets; `name` makes one of what is in the cells."""

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        for piece in part.pieces(wanted):
            yield replace(piece, labels=[name(label) for label in piece.labels])

    return replace(part, pieces=pieces)


def constant(part: Part, values: Mapping[str, Any], kinds: Mapping[str, str]) -> Part:
    """The part with columns that are the same in all its rows, None where missing.

    `kinds` has their types, as `Part.types`.
    """

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        said = [c for c in wanted.columns if c in values]
        own = tuple(c for c in wanted.columns if c not in values)
        by = None if wanted.group in values else wanted.group
        if not own and by is None:
            raise DataError(
                f"columns {', '.join(map(repr, said))}{part.origin} are what names of folders "
                "say, and the same in all rows; choose columns of the files too"
            )
        coded = {c: Coded([values[c]]) for c in said if c in wanted.coded}
        cells = {c: values[c] if c not in coded else 0 for c in said}
        for piece in part.pieces(wanted._replace(columns=own, group=by)):
            size = len(piece.keys)
            full = dict(zip(own, piece.columns, strict=True)) | {
                c: np.full(size, np.nan if v is None else float(v)) for c, v in cells.items()
            }
            columns = [full[c] for c in wanted.columns]
            made = replace(piece, columns=columns, coded=piece.coded | coded)
            if by != wanted.group:
                label = values[str(wanted.group)]
                same = np.full(size, -1 if label is None else 0, dtype=np.int64)
                made = replace(made, keys=same, labels=[label])
            yield made

    types = {name: kind for name, kind in part.types.items() if name not in values}
    types |= kinds
    return replace(part, types=types, pieces=pieces, keys=(*part.keys, *values.items()))


MOST_BYTES = 1 << 28  # of rows that are kept


def remembered(part: Part, most: int) -> Part:
    """The part of a file; rows that were read once, to their end, are not read again.

    A file that has more than so many bytes is read each time.
    """
    known: list[tuple[Wanted, list[Piece]]] = []

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        for by, rows in known:
            kept = (c in by.columns and (c in by.coded) == (c in wanted.coded) for c in wanted[0])
            if wanted.group == by.group and all(kept):
                at = [by.columns.index(c) for c in wanted.columns]
                for piece in rows:
                    coded = {c: own for c, own in piece.coded.items() if c in wanted.columns}
                    yield replace(piece, columns=[piece.columns[k] for k in at], coded=coded)
                return
        rows, size = [], 0
        for piece in part.pieces(wanted):
            size += piece.keys.nbytes + sum(column.nbytes for column in piece.columns)
            rows = [*rows, piece] if size <= most else []
            yield piece
        if wanted.columns and size <= most:
            known[:] = [(wanted, rows)]

    return replace(part, pieces=pieces)


def unhashable(group: str, origin: str) -> DataError:
    """The error for cells that cannot name a data set or a level."""
    return DataError(
        f"cells of column {group!r}{origin} cannot name data sets or levels because they are lists "
        "or the like; turn them into text or numbers"
    )


def check_unique(names: list[str], origin: str) -> None:
    """Raise when two columns have the same name."""
    twice = sorted((c, count) for c, count in Counter(names).items() if count > 1)
    if twice:
        name, count = twice[0]
        raise DataError(f"column {name!r}{origin} occurs {count} times; rename or drop all but one")


def in_words(dtype: str) -> str:
    """A type as a message names it."""
    texts = ("str", "string", "large_string", "string_view", "varchar")
    return "text" if dtype in texts or dtype.startswith("string[") else dtype


def first_line(error: BaseException) -> str:
    """The first line of another library's message."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
