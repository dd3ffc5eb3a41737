"""Names of data sets, and levels: when two of them may be meant for the same."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Hashable, Iterable
from decimal import Decimal
from typing import Any

from poolbn.errors import DataError

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,6})?", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})([T ]00:00(:00(\.0+)?)?)?", re.ASCII)

_BOOL = {"true": "1", "false": "0"}  # to Python, too, True is 1


class Spellings:
    """Names of data sets from several sources, in which the same name must be spelled the same.

    Those of one source may be as they like: in a single file 7 and 007 are two data sets. Where
    they are levels of a `column` instead, "Yes" and "yes" are spelled differently too.
    """

    def __init__(self, column: str = "") -> None:
        self._column = column
        self._known: dict[Hashable, dict[Hashable, tuple[Any, str]]] = {}

    def add(self, labels: Iterable[Any], origin: str = "") -> None:
        """Add the names in one source; `origin` is how a message says "in this source"."""
        own = {_exact(label): label for label in labels if is_name(label)}
        for key, label in own.items():
            alike = self._known.setdefault(self._spelling(label), {})
            for other, (known, where) in alike.items():
                if key not in alike and other not in own:
                    raise DataError(differ(known, where, label, origin, self._column))
        for key, label in own.items():
            self._known[self._spelling(label)].setdefault(key, (label, origin))

    def _spelling(self, label: Any) -> Hashable:
        return spelling(label.casefold() if self._column and isinstance(label, str) else label)


def differ(known: Any, where: str, label: Any, origin: str, column: str = "") -> str:
    """What to say of two names that are spelled differently; of levels with their column."""
    kinds = [type(each).__name__ for each in (known, label)]
    types = f" ({kinds[0]} and {kinds[1]})" if kinds[0] != kinds[1] else ""
    return (
        f"{f'levels of column {column!r}' if column else 'data sets'} {known!r}{where} and "
        f"{label!r}{origin} differ only by type or spelling{types}; "
        "if they are the same, write both alike, for example as text; if not, rename one"
    )


def written(label: Any) -> str:
    """A name as files of text have it: whole floats without a point, days without a time."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    if isinstance(label, datetime.datetime) and label.tzinfo is None:
        return str(label.date() if label.time() == datetime.time() else label)
    return str(label)


def spelling(label: Any) -> Hashable:
    """Equal for names that differ only by type or spelling: 1, "1.0" and "01", but not a and A."""
    itself: Hashable = plain(label)
    if not isinstance(itself, str | int | float | Decimal | datetime.date):
        return itself
    text = unicodedata.normalize("NFC", str(itself)).strip()
    text = _BOOL.get(text.lower(), text)
    if _NUMBER.fullmatch(text):
        sign, digits, exponent = Decimal(text).as_tuple()
        shown = "".join(map(str, digits))
        cut = shown.rstrip("0")
        places = int(exponent) + len(shown) - len(cut)
        return (sign, cut.lstrip("0"), places) if cut else (0, "", 0)
    if day := _DATE.fullmatch(text):
        return tuple(int(part) for part in day.groups()[:3])
    return text


def plain(label: Any) -> Any:
    """A name without numpy."""
    return label.item() if hasattr(label, "item") else label


def is_name(label: Any) -> bool:
    """Whether it names a data set: neither None nor NaN."""
    try:
        return label is not None and bool(label == label)  # noqa: PLR0124
    except TypeError:  # of pandas' NA
        return False


def _exact(label: Any) -> Hashable:
    """Equal for names that are the same in type and value: 1, 1.0 and True are three."""
    return type(plain(label)), plain(label)
