"""Files whose rows are wanted more than once, and are kept where they fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from poolbn.tables.sources import Part, Piece, Wanted

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
