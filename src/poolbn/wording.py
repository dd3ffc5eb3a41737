"""Names, counts and numbers as sentences and tables for people have them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

# No result is as large in a unit that makes sense: such numbers come from a fit that went wrong.
BEYOND = 1e12


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


def clipped(text: str, length: int = 40) -> str:
    """A text of at most this length, its middle left out where it is longer.

    Examples:
        >>> clipped("gestation_days", 9)
        'gest…days'
    """
    if len(text) <= length:
        return text
    half = (length - 1) // 2
    return f"{text[: length - 1 - half]}…{text[-half:]}"


def sensible(value: float) -> bool:
    """Whether a number is a result: finite, and not beyond sense.

    Examples:
        >>> sensible(-1e6), sensible(float("nan")), sensible(-8.6e25)
        (True, False, False)
    """
    return abs(value) < BEYOND


def figure(value: float, form: str = ".4g") -> str:
    """A number in a table for people, "-" where it is no result.

    Examples:
        >>> figure(0.123456), figure(float("-inf")), figure(1.00099921476597e14)
        ('0.1235', '-', '-')
    """
    return f"{value:{form}}" if sensible(value) else "-"
