"""Parts that are made of others: rows kept, columns that folders tell, labels for rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import numpy as np

from poolbn.errors import DataError
from poolbn.tables.paths import folders
from poolbn.tables.sources import Coded, Part, Piece, Wanted
from poolbn.tables.text import looks_numeric

_NONE = ("", "__HIVE_DEFAULT_PARTITION__")


def keys(path: str) -> dict[str, str | None]:
    """What the folders in a path say, such as {"site": "NY"}; None where the text is missing.

    pyarrow.dataset reads the same from paths, but only for names that are known before.
    """
    parted = [folder.partition("=") for folder in folders(path)[:-1]]
    return {
        unquote(name): None if text in _NONE else unquote(text)
        for name, equals, text in parted
        if name and equals
    }


def with_keys(parts: Sequence[Part], paths: Sequence[str]) -> list[Part]:
    """The parts with what their folders say as columns; columns of the files go first.

    A data set is called what its folder says, as text.
    """
    said = [keys(path) for path in paths]
    names = {name for each in said for name in each}
    texts = {name: {text for each in said if (text := each.get(name))} for name in names}
    numeric = {name for name in names if all(map(looks_numeric, texts[name]))}
    made = []
    for part, each in zip(parts, said, strict=True):
        values = {name: text for name, text in each.items() if name not in part.types}
        kinds = {name: "" if name in numeric else "text" for name in values}
        made.append(constant(part, values, kinds) if values else part)
    return made


def constant(part: Part, values: Mapping[str, Any], kinds: Mapping[str, str]) -> Part:
    """The part with columns that are the same in all its rows, None where missing.

    `kinds` has their types, as `Part.types`.
    """

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        columns, group = wanted.columns, wanted.group
        said = {c: Coded([values[c]]) for c in columns if c in values and c in wanted.coded}
        own = tuple(c for c in columns if c not in values)
        if not own and (group is None or group in values):
            raise DataError(
                f"columns {', '.join(map(repr, columns))}{part.origin} are what names of folders "
                "say, and the same in all rows; choose columns of the files too"
            )
        by = None if group in values else group
        for piece in part.pieces(wanted._replace(columns=own, group=by)):
            size = len(piece.keys)
            given = iter(piece.columns)
            cells_of = {c: 0 if c in said else values[c] for c in columns if c in values}
            full = {
                c: np.full(size, np.nan if v is None else float(v)) for c, v in cells_of.items()
            }
            cut = [full[c] if c in values else next(given) for c in columns]
            meanings = piece.coded | said
            if group is not None and group in values:
                label = values[group]
                same = np.full(size, -1 if label is None else 0, dtype=np.int64)
                yield Piece(cut, same, [label], meanings)
            else:
                yield Piece(cut, piece.keys, piece.labels, meanings)

    def cells(column: str) -> Iterable[Any]:
        return () if column in values else part.cells(column)

    types = {name: kind for name, kind in part.types.items() if name not in values}
    return replace(
        part,
        types=types | dict(kinds),
        pieces=pieces,
        cells=cells,
        keys=(*part.keys, *values.items()),
    )


MOST_BYTES = 1 << 28  # of rows that are kept


@dataclass
class _Kept:
    """What was read of a part, and how."""

    by: Wanted
    pieces: list[Piece] = field(default_factory=list)

    def answers(self, wanted: Wanted) -> bool:
        """Whether another reading would give no more."""
        own, coded = self.by.columns, self.by.coded
        same = (c in own and (c in wanted.coded) == (c in coded) for c in wanted.columns)
        return wanted.group == self.by.group and all(same)

    def of(self, columns: tuple[str, ...]) -> Iterator[Piece]:
        """Some of the columns."""
        at = [self.by.columns.index(c) for c in columns]
        for piece in self.pieces:
            coded = {c: own for c, own in piece.coded.items() if c in columns}
            yield replace(piece, columns=[piece.columns[k] for k in at], coded=coded)


def remembered(part: Part, most: int) -> Part:
    """The part of a file; rows that were read once, to their end, are not read again.

    A file that has more than so many bytes is read each time.
    """
    known: list[_Kept] = []

    def pieces(wanted: Wanted) -> Iterator[Piece]:
        for kept in known:
            if kept.answers(wanted):
                yield from kept.of(wanted.columns)
                return
        kept, size = _Kept(wanted), 0
        for piece in part.pieces(wanted):
            size += piece.keys.nbytes + sum(column.nbytes for column in piece.columns)
            kept.pieces[len(kept.pieces) :] = [piece] if size <= most else []
            yield piece
        if size <= most:
            known[:] = [kept]

    return replace(part, pieces=pieces)
