"""Data sets, and units inside them: what `group` names.

It is a column, or two columns, data sets and the units inside them, or a label for each row, which
the user has beside the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from poolbn.arguments import Argument
from poolbn.arrays import Integers
from poolbn.errors import NO_UNITS, DataError, InPython, MessagePart, nearest
from poolbn.findings import FindingKind, tell
from poolbn.tables.sources import Part, Piece, Wanted, in_words, is_dask, unhashable
from poolbn.wording import counted

Group = str | Iterable[Hashable] | None

# What the group column is called where no column has that name.
DATA_SET = "data_set"


def _are_labels(value: object) -> bool:
    lists = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return lists and not isinstance(value, bytes | dict) and not hasattr(value, "columns")


GROUP_KIND = Argument(
    "the name of a column, a list of two columns (units inside data sets), or a list or Series "
    "with the data set of each row",
    lambda value: isinstance(value, str) or _are_labels(value),
)


def nested(source: object, parts: list[Part], group: Any) -> tuple[Any, str | None]:
    """What says the data sets, and the column that says the units inside them, if there is one.

    A list or tuple of two texts, of which one at least is a column, names both, the outer first;
    None as the outer one stands for the frames or files themselves.
    """
    if not isinstance(group, list | tuple) or len(group) != 2:
        return group, None
    outer, unit = group
    known = {column for part in parts for column in part.types}
    if not isinstance(unit, str) or not (outer is None or isinstance(outer, str)):
        return group, None
    if outer not in known and unit not in known:
        return group, None
    if len(parts) == 1 and hasattr(source, "__len__") and len(source) == 2:
        raise DataError(
            f"group={list(group)!r} could be columns, with units inside data sets, or the labels "
            "of the two rows; for labels give a Series, and units need more rows than two"
        )
    if outer == unit:
        raise DataError(
            f"group names column {unit!r} twice; give the column of the data sets and then that "
            "of the units inside them"
        )
    for part in parts:
        if unit not in part.types:
            raise DataError(f"no column {unit!r}{part.origin}{nearest(unit, part.types)}")
    return outer, unit


def check_no_units(unit: str | None, what: str, *remedy: MessagePart) -> None:
    """Raise where units inside data sets are given to what does not use them."""
    if unit is not None:
        raise DataError(
            f"{what} takes rows for independent, and {unit!r} says units inside data sets; ",
            *(remedy or (NO_UNITS,)),
        )


def tell_shared(unit: str, shared: int) -> None:
    """Warn of names of units that occur in several data sets."""
    if shared:
        names = f"{counted(shared, 'name')} of {unit!r} {'occurs' if shared == 1 else 'occur'}"
        what = f"{names} in more than one data set, and each is taken for a unit of its own there"
        remedy = "if a unit moved between data sets, keep its rows of one of them"
        tell(FindingKind.SHARED_UNITS, what, remedy, (unit,), shared)


def columns_in(source: object, parts: list[Part], group: Any) -> tuple[str, ...]:
    """The columns that `group` names, which are not columns of the network."""
    return tuple(name for name in nested(source, parts, group) if isinstance(name, str))


def grouped_by(source: object, parts: list[Part], group: Any) -> tuple[list[Part], str]:
    """The parts with labels, in the order of the rows, as their group column; and its name.

    A Series gives the column its name, and hides a column of that name. A table of pandas, of which
    the parts were made, and the labels must have the same index.
    """
    import pandas as pd

    name = getattr(group, "name", None)
    if not isinstance(name, str) or not name:
        name = DATA_SET
        while any(name in part.types for part in parts):
            name += "_"
    if len(parts) > 1 or is_dask(source):
        what = "a frame of Dask" if is_dask(source) else f"{len(parts)} frames or files"
        raise DataError(f"labels of rows go with one table, and this is {what}; name a column")
    own = source.index if isinstance(source, pd.DataFrame) else None
    index = group.index if isinstance(group, pd.Series) else None
    if own is not None and index is not None and len(own) == len(index) and not own.equals(index):
        raise DataError(
            "the table and the Series that says the data sets have different row labels (index); ",
            InPython("give group=labels.to_numpy() if they are in the same order"),
        )
    return [_labelled(parts[0], name, *_coded(group, parts[0].origin))], name


def _coded(group: Any, origin: str) -> tuple[Integers, list[Any]]:
    """The index of each row's label, -1 where that is missing, (n,); and the labels."""
    import pandas as pd

    try:
        labels = group if isinstance(group, pd.Series) else pd.Series(list(group), dtype=object)
        codes, found = pd.factorize(labels)
    except (TypeError, ValueError) as error:
        raise unhashable("group", origin) from error
    return codes.astype(np.int64), found.tolist()


def _labelled(part: Part, name: str, codes: Integers, labels: list[Any]) -> Part:
    def pieces(wanted: Wanted) -> Iterator[Piece]:
        if wanted.group != name:
            yield from part.pieces(wanted)
            return
        start = 0
        for piece in part.pieces(wanted._replace(group=None)):
            end = start + len(piece.keys)
            if end > len(codes):
                raise _differ(len(codes), f"more rows{part.origin}, {end} or more")
            yield replace(piece, keys=codes[start:end], labels=labels)
            start = end
        if start < len(codes):
            raise _differ(len(codes), f"{start} rows{part.origin}")

    numeric = all(isinstance(label, int | float) for label in labels)
    types = part.types | {name: "" if numeric else in_words("str")}
    truths = part.truths - {name}
    return replace(part, types=types, pieces=pieces, truths=truths)


def _differ(labels: int, rows: str) -> DataError:
    return DataError(
        f"group has {labels} labels, and the table {rows}; give one for each row",
        InPython(", or the name of a column"),
    )
