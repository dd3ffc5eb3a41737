"""Rows with missing values: any table or file -> cells of the nodes, and data sets of the rows."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from poolbn.arguments import is_finite
from poolbn.arrays import Floats, Integers
from poolbn.errors import DataError, InPython, Option, nearest
from poolbn.tables.columns import check_types
from poolbn.tables.data import as_parts, encode
from poolbn.tables.grouping import DATA_SET
from poolbn.tables.kinds import a_kind, is_whole, recoded, wrong_values
from poolbn.tables.labels import differ, is_name, plain, spelling, written
from poolbn.tables.missing import check_finite
from poolbn.tables.sources import Part, Wanted
from poolbn.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd


_ROWS = 2**18  # rows that are read at a time


@dataclass(frozen=True, eq=False)
class Cells:
    """The rows of a table, as a network with N nodes sees them."""

    names: tuple[str, ...]  # the nodes
    # their cells, NaN where a cell is missing or there is no such column; codes of levels for
    # discrete nodes, (n, N)
    values: Floats
    # the index of each row's data set among the network's, -1 if it is not known, (n,)
    codes: Integers
    # the columns of the table that the network knows, its group column among them
    columns: tuple[str, ...]
    index: pd.Index  # the row labels of a pandas table; 0, 1, ... for all others.

    def of(self, names: Sequence[str]) -> Floats:
        """The cells of some nodes, in this order, (n, len(names))."""
        return self.values[:, [self.names.index(name) for name in names]]


@dataclass(frozen=True)
class NodeKinds:
    """What nodes hold."""

    # the levels of the discrete ones
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # what nodes hold that are neither discrete nor continuous
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> frozenset[str]:
        """Those that are counts."""
        return frozenset(name for name, kind in self.kinds.items() if is_whole(kind))


_CONTINUOUS = NodeKinds()


def read_cells(
    source: object,
    names: tuple[str, ...],
    group: str | None,
    levels: tuple[Hashable, ...],
    kinds: NodeKinds = _CONTINUOUS,
) -> Cells:
    """Read the columns that a network knows; others do not matter.

    `source` may be one row. Frames of a dict that have no group column are the data sets that they
    are called; those of a list are 1, 2, ... for a network that was learned from a list. Without a
    `group`, or a column of that name, data sets are unknown.
    """
    import pandas as pd

    source = one_row(source)
    parts = as_parts(source)
    for part in parts:
        _check_nodes(part, names, group, kinds)
    named = isinstance(source, Mapping) or (isinstance(source, list) and group == DATA_SET)
    keyed = group is not None and named
    alike, strangers = _Alike(levels), Counter[Hashable]()
    found = {name: _Found(name, known) for name, known in kinds.categories.items()}
    at = {name: i for i, name in enumerate(names)}
    matrices, sets = [np.empty((0, len(names)))], [np.empty(0, dtype=np.int64)]
    for part in parts:
        own = tuple(name for name in names if name in part.types)
        by = None if group not in part.types else group
        start = 1
        for piece in part.pieces(Wanted(own, by, _ROWS, found.keys() & set(own))):
            cells = np.full((len(piece.keys), len(names)), np.nan)
            columns = dict(zip(own, piece.columns, strict=True))
            for name, coded in piece.coded.items():
                columns[name] = recoded(columns[name], coded.labels, found[name].code)
            for name, column in columns.items():
                cells[:, at[name]] = column
            code = np.full(len(cells), -1)
            if by is not None or keyed:
                index = {level: j for j, level in enumerate(levels)}
                labels = [alike(label) for label in piece.labels]
                code = encode(replace(piece, labels=labels), index, group, part.origin)
                for label, j in list(index.items())[len(levels) :]:
                    strangers[label] += int((code == j).sum())
            check_finite(cells, _where(names, part.origin, start), "make it missing")
            matrices.append(cells)
            sets.append(code)
            start += len(cells)
    if strangers:
        raise _unknown(strangers, group, levels)
    for discrete in found.values():
        discrete.check()
    values, codes = np.concatenate(matrices), np.concatenate(sets)
    for name, kind in kinds.kinds.items():
        _check_values(name, kind, values[:, names.index(name)])
    labelled = source.index if isinstance(source, pd.DataFrame) else pd.RangeIndex(len(codes))
    known = {name for part in parts for name in part.types}
    told = tuple(name for name in (group, *names) if name in known)
    return Cells(names, values, codes, told, labelled)


def unit_names(source: object, unit: str, what: str) -> list[str | None]:
    """The unit of each row, None where it is missing; 1, 1.0 and "1" are the same."""
    found: list[str | None] = []
    for part in as_parts(one_row(source)):
        if unit not in part.types:
            raise DataError(
                f"the {what} has no column {unit!r}{part.origin}, which says the units"
                f"{nearest(unit, part.types)}"
            )
        if part.once:
            raise DataError(f"the {what} can be read once only{part.origin}; give it as a table")
        for piece in part.pieces(Wanted((), unit, _ROWS)):
            names = [written(plain(label)) for label in piece.labels]
            found += [names[k] if k >= 0 else None for k in piece.keys.tolist()]
    return found


def _check_nodes(part: Part, names: tuple[str, ...], group: str | None, kinds: NodeKinds) -> None:
    own = [name for name in names if name in part.types]
    if not own and list(part.types) != [group]:  # rows of which the data set alone is known
        raise DataError(
            f"no column{part.origin} is a node of the network; it has "
            f"{_shown(part.types) or 'no columns'}, the nodes are {_shown(names)}"
        )
    numbers = [name for name in own if name not in kinds.categories]
    check_types(part, numbers, group, "make it numeric, or leave it out of the table")


def one_row(source: object) -> object:
    """A table of one row, if the source is a row: a dict of cells, or a Series of pandas."""
    import pandas as pd

    if isinstance(source, pd.Series):
        cells, index = source.to_dict(), [source.name]
    elif isinstance(source, Mapping) and all(map(pd.api.types.is_scalar, source.values())):
        cells, index = dict(source), [0]
    else:
        return source
    if not cells:
        raise DataError("the row is empty; give values by name of column, {'age': 30}")
    odd = [name for name in cells if not isinstance(name, str)]
    if odd:
        raise DataError(
            f"a row has cells by name of column, and this one has {odd[0]!r}; for a column of many "
            "rows give a table, frame[['name']]"
        )
    return pd.DataFrame([cells], index=index)


def read_evidence(
    evidence: Mapping[str, Any],
    names: tuple[str, ...],
    group: str,
    levels: tuple[Hashable, ...],
    kinds: NodeKinds = _CONTINUOUS,
) -> tuple[Floats, int]:
    """One row: its cells, NaN where there is no evidence (N,), and its data set's index or -1.

    `evidence` has values by name of node, and by that of the group column a data set.
    """
    if not isinstance(evidence, Mapping):
        raise DataError(Option("evidence", evidence), f" is not a dict like {{{names[0]!r}: 1.5}}")
    row, code = np.full(len(names), np.nan), -1
    for name, value in evidence.items():
        if name == group:
            code = find_level(value, levels)
            continue
        if name not in names:
            raise DataError(f"evidence on {name!r}, no node{nearest(name, (*names, group))}")
        if name in kinds.categories:
            column = _Found(name, kinds.categories[name])
            row[names.index(name)] = level = column.code(plain(value))
            if math.isnan(level):
                raise DataError(
                    f"evidence on {name!r} is {value!r}, which is none of its levels: "
                    f"{_shown(kinds.categories[name])}; leave it out if it is not known"
                )
            continue
        if not is_finite(value):
            raise DataError(
                f"evidence on {name!r} is {value!r}, not a finite number; leave it out if it is "
                "not known"
            )
        row[names.index(name)] = float(value)
        kind = kinds.kinds.get(name)
        if kind is not None and wrong_values(kind, row[[names.index(name)]])[0].any():
            such = ": 0, 1, 2, ..." * is_whole(kind)
            raise DataError(f"evidence on {name!r} is {value!r}, and it is {a_kind(kind)}{such}")
    return row, code


def find_level(label: Any, levels: tuple[Hashable, ...]) -> int:
    """The index of a data set."""
    try:
        return levels.index(_Alike(levels)(label))
    except (TypeError, ValueError):  # TypeError: of what cannot be compared
        raise DataError(f"the network has no data set {label!r}{nearest(label, levels)}") from None


class _Found:
    """The codes of a discrete column's cells, by the levels of a network."""

    def __init__(self, name: str, levels: Sequence[str]) -> None:
        self._name, self._levels = name, levels
        self._by_text = {level: float(k) for k, level in enumerate(levels)}
        self._by_spelling = {spelling(level): float(k) for k, level in enumerate(levels)}
        self.strangers = Counter[str]()  # cells of each level that the network does not know

    def code(self, label: Any, cells: int = 1) -> float:
        """Of one level that so many cells have; NaN where it is missing, or not known."""
        if not is_name(label) or not isinstance(label, Hashable):
            return math.nan
        text = written(label)
        found = self._by_text.get(text)
        if found is None and len(self._by_spelling) == len(self._levels):
            found = self._by_spelling.get(spelling(label))  # 1.0 for "1", True for 1
        if found is None:
            self.strangers[text] += cells
        return math.nan if found is None else found

    def check(self) -> None:
        """Raise where a level is not known."""
        if not self.strangers:
            return
        first, rows = next(iter(self.strangers.items()))
        others = f" ({len(self.strangers)} such levels in all)" if len(self.strangers) > 1 else ""
        raise DataError(
            f"column {self._name!r} has the level {first!r} in {counted(rows, 'row')}, which the "
            f"network does not know{others}; it knows {_shown(self._levels)}. Make those cells "
            "missing, or learn with such rows"
        )


def _check_values(name: str, kind: str, values: Floats) -> None:
    wrong, why = wrong_values(kind, values)
    if wrong.any():
        raise DataError(
            f"column {name!r} is {a_kind(kind)}, and {int(wrong.sum())} of its cells are {why}, "
            f"the first is {values[wrong.argmax()]:g} in row {wrong.argmax() + 1}; correct them, "
            "or make them missing"
        )


class _Alike:
    """Finds the data set that a label means: 1, 1.0 and "1" are the same to a CSV file.

    Another spelling of a data set, such as "01", is an error.
    """

    def __init__(self, levels: tuple[Hashable, ...]) -> None:
        self._levels = {level: level for level in levels}
        self._by_text = {written(level): level for level in levels}
        self._by_spelling = {spelling(level): level for level in levels}

    def __call__(self, label: Any) -> Any:
        label = plain(label)
        if not is_name(label) or not isinstance(label, str | int | float | datetime.date):
            return label
        known = self._levels.get(label)
        if known is None and (text := written(label)) in self._by_text:
            return self._by_text[text]
        if known is None:
            known = self._by_spelling.get(spelling(label), label)
        elif isinstance(known, bool) == isinstance(label, bool):
            return known
        if known is not label:
            raise DataError(differ(known, " of the network", label, ""))
        return label


def _where(names: tuple[str, ...], origin: str, start: int) -> Callable[[int, int], str]:
    return lambda row, column: f"row {start + row}{origin} in column {names[column]!r}"


def _unknown(
    strangers: Mapping[Hashable, int], group: str | None, levels: tuple[Hashable, ...]
) -> DataError:
    first, rows = next(iter(strangers.items()))
    others = f" ({len(strangers)} such data sets in all)" if len(strangers) > 1 else ""
    return DataError(
        f"the network does not know data set {first!r}, in {counted(rows, 'row')} of column "
        f"{group!r}{others}; it knows {_shown(levels)}. Leave out the column, or make those "
        "cells missing: then the data set is unknown",
        InPython(f"; or add it with net.adapt(rows, name={first!r})"),
    )


def _shown(names: Iterable[Hashable]) -> str:
    return shortened([repr(name) for name in names])
