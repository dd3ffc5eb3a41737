"""Names and counts as a sentence has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice


def counted(count: int, what: str) -> str:
    """A number and a noun.

    Examples:
        >>> counted(1, "arc"), counted(1200, "row")
        ('1 arc', '1,200 rows')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


def listed(words: Sequence[str], most: int = 8) -> str:
    """Words in a sentence; where there are many, the last ones are only counted.

    Examples:
        >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
        ('a, b and c', 'a, b and 2 more')
    """
    if len(words) > most:
        words = [*words[:most], f"{len(words) - most:,} more"]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def shortened(words: Collection[str], most: int = 12, what: str = "") -> str:
    """Words with commas; where there are many, the first ones and how many there are.

    Examples:
        >>> shortened(["a", "b"]), shortened(["a", "b", "c"], most=2, what="columns ")
        ('a, b', 'a, b, ... (3 columns in all)')
    """
    more = f", ... ({len(words)} {what}in all)" if len(words) > most else ""
    return ", ".join(islice(words, most)) + more
