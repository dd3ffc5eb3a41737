"""Data frames of all kinds: each is a `Part` that hands over its rows in pieces, once."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Set
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from poolbn.errors import ClusterError, DataError, left_out

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


class Coded(NamedTuple):
    """What the numbers 0, 1, ... in a coded column stand for, and whether their order means it."""

    labels: list[Any]
    in_order: bool = False


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of a part."""

    columns: list[NDArray[np.float64]]  # the chosen columns, each (B,), NaN where a cell is missing
    # for each row the index of its data set in `labels`, -1 where missing, (B,)
    keys: NDArray[np.int64]
    labels: list[Any]  # names of data sets, perhaps more than occur in `keys`
    # of columns that are read as they are and coded, what the codes mean
    coded: dict[str, Coded] = field(default_factory=dict)


class Wanted(NamedTuple):
    """What is read of a part: so many rows at a time; those columns that are `coded` as codes."""

    columns: tuple[str, ...]
    group: str | None
    rows: int
    coded: Set[str] = frozenset()

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
    # hands over the rows, in order. May work only once.
    pieces: Callable[[Wanted], Iterator[Piece]]
    # column -> its cells, for an error message; nothing when that needs a second pass
    cells: Callable[[str], Iterable[Any]]
    # of the file, which can be read ahead in another thread; None for a frame
    path: str | None = None
    # what the names of its folders say, which are columns of it
    keys: tuple[tuple[str, Any], ...] = ()
    truths: frozenset[str] = frozenset()  # columns that hold true and false
    stop: Callable[[], None] = lambda: None  # ends a query that another thread waits for


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
    return Part(name, origin, meta.types, pieces, lambda column: (), truths=meta.truths)


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

    odd = [c for c in table.columns if not isinstance(c, str)]
    if odd:
        raise DataError(
            f"{len(odd)} columns{origin} have names that are not text, the first is {odd[0]!r}; "
            "rename them, for example with frame.columns = frame.columns.map(str)"
        )
    check_unique(list(table.columns), origin)

    def kind(name: str, dtype: Any) -> str:
        if pd.api.types.is_object_dtype(dtype):
            inferred = pd.api.types.infer_dtype(table[name], skipna=True)
            numeric = ("boolean", "integer", "floating", "decimal", "mixed-integer-float", "empty")
            return "" if inferred in numeric else in_words(inferred)
        numeric_dtype = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
        if numeric_dtype and not pd.api.types.is_complex_dtype(dtype):
            return ""
        return in_words(str(dtype))

    def is_truth(name: str, dtype: Any) -> bool:
        if pd.api.types.is_object_dtype(dtype):
            return bool(pd.api.types.infer_dtype(table[name], skipna=True) == "boolean")
        return bool(pd.api.types.is_bool_dtype(dtype)) and not hasattr(dtype, "categories")

    def factorized(column: str) -> tuple[NDArray[np.int64], list[Any]]:
        try:
            keys, found = pd.factorize(table[column])
        except TypeError as error:
            raise unhashable(column, origin) from error
        return keys, found.tolist()

    def codes(column: str) -> tuple[pd.Series[float], Coded]:
        if isinstance(table[column].dtype, pd.CategoricalDtype):
            own = table[column].cat
            keys, meaning = own.codes.to_numpy(), Coded(own.categories.tolist(), in_order=True)
        else:
            keys, labels = factorized(column)
            meaning = Coded(labels)
        return pd.Series(np.where(keys < 0, np.nan, keys)), meaning

    def floats(column: Any) -> NDArray[np.float64]:
        try:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        except OverflowError as error:
            raise DataError(
                f"column {column.name!r}{origin} has a whole number that is too large for a float; "
                "correct it, or ",
                left_out(column.name),
            ) from error

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        keys, labels = np.zeros(len(table), dtype=np.int64), [name]
        if wanted.group is not None:
            keys, labels = factorized(wanted.group)
        made = {c: codes(c) for c in wanted.columns if c in wanted.coded}
        meanings = {c: meaning for c, (_, meaning) in made.items()}
        chosen: list[Any] = [made[c][0] if c in made else table[c] for c in wanted.columns]
        for start in range(0, len(table), wanted.rows):
            part = slice(start, start + wanted.rows)
            some = chosen if wanted.rows >= len(table) else [c.iloc[part] for c in chosen]
            yield Piece([floats(c) for c in some], keys[part], labels, meanings)

    names, dtypes = list(table.columns), list(table.dtypes)
    # Most columns of a wide table are of one type, and are asked once for all.
    plain = {dtype for dtype in dtypes if not pd.api.types.is_object_dtype(dtype)}
    known = {dtype: (kind("", dtype), is_truth("", dtype)) for dtype in plain}
    each = {
        c: known[dtype] if dtype in known else (kind(c, dtype), is_truth(c, dtype))
        for c, dtype in zip(names, dtypes, strict=True)
    }
    types = {c: words for c, (words, _) in each.items()}
    truths = frozenset(c for c, (_, truth) in each.items() if truth)
    return Part(name, origin, types, pieces, lambda column: table[column], truths=truths)


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
    check_unique(schema.names, origin)

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        for batch in batches(wanted.names, wanted.rows):
            for start in range(0, batch.num_rows, wanted.rows):
                yield arrow_piece(batch.slice(start, wanted.rows), wanted, name, origin)

    def cells(column: str) -> Iterable[Any]:
        for batch in () if once else batches([column], 65536):
            yield from batch.column(0).to_pylist()

    import pyarrow.types as pt

    truths = frozenset(field.name for field in schema if pt.is_boolean(field.type))
    return Part(name, origin, arrow_types(schema), pieces, cells, path, truths=truths)


def arrow_types(schema: Any) -> dict[str, str]:
    """For each column "" if it is numeric, else its type in words.

    The row labels that pandas writes along are no column.
    """
    import pyarrow.types as pt

    numeric = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_boolean, pt.is_null)
    return {
        field.name: "" if any(is_it(field.type) for is_it in numeric) else in_words(str(field.type))
        for field in schema
        if not field.name.startswith("__index_level_")
    }


def arrow_piece(batch: Any, wanted: Wanted, name: Hashable | None, origin: str) -> Piece:
    """The piece in a record batch; without a copy where a column is float64 without nulls."""
    import pyarrow as pa
    import pyarrow.types as pt

    double = pa.float64()

    def floats(column: Any) -> NDArray[np.float64]:
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
        return cells.indices, Coded(cells.dictionary.to_pylist(), in_order)

    made = {c: codes(c) for c in wanted.columns if c in wanted.coded}
    cut = [floats(made[c][0] if c in made else batch.column(c)) for c in wanted.columns]
    meanings = {c: meaning for c, (_, meaning) in made.items()}
    if wanted.group is None:
        return Piece(cut, np.zeros(batch.num_rows, dtype=np.int64), [name], meanings)
    indices, (labels, _) = codes(wanted.group)
    keys = indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return Piece(cut, keys, labels, meanings)


def with_names(part: Part, name: Callable[[Any], Any]) -> Part:
    """The part with other names of data sets; `name` makes one of what is in the cells."""

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        for piece in part.pieces(wanted):
            yield replace(piece, labels=[name(label) for label in piece.labels])

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
