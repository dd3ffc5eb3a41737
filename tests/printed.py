"""Printed text compared as text, and the numbers in it as numbers.

The last digits of a fit differ between processors. pytest's NUMBER is not enough: it takes 0.5
for 0.4 and `2.` for `1.`, and gives up where an ellipsis leaves numbers out.
"""

from __future__ import annotations

import doctest
import re
from decimal import Decimal

# A number of its own: x1, 3f2a and 1.2.3 are words. Dots behind it stand for further digits.
NUMBER = re.compile(
    r"(?:(?<![\w.)\]])[+-])?(?<![\w.])(?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"(?!\w|\.\d)(?P<more>\.\.\.)?"
)
LOOSEST = Decimal("1e-3")  # relative

Token = str | Decimal | None  # a character, a number, or an ellipsis


def tokens(text: str, *, ellipsis: bool) -> list[Token]:
    """Characters and numbers of a text; space and the rules of tables may have any length."""
    found: list[Token] = []
    at = 0
    text = re.sub("─+", "─", " ".join(text.split()))
    while at < len(text):
        if number := NUMBER.match(text, at):
            found.append(Decimal(number.group().removesuffix("...")))
            at = number.end() if ellipsis or not number["more"] else number.end("number")
        elif ellipsis and text.startswith("...", at):
            found.append(None)
            at += 3
        else:
            found.append(text[at])
            at += 1
    return found


def alike(want: Token, got: Token) -> bool:
    """Characters and integers are equal; other numbers differ by a unit in the last place or less.

    And never by more than 1e-3 of the number: fewer than four digits are equal.
    """
    if not (isinstance(want, Decimal) and isinstance(got, Decimal)):
        return want == got
    place = int(want.as_tuple().exponent)
    if place >= 0:
        return want == got
    return abs(want - got) <= min(Decimal(1).scaleb(place), LOOSEST * abs(want))


def starts(want: list[Token], got: list[Token], at: int) -> bool:
    return len(got) - at >= len(want) and all(map(alike, want, got[at:]))


def same_output(want: str, got: str) -> bool:
    """Whether a program printed what is wanted; `...` stands for anything."""
    there = tokens(got, ellipsis=False)
    pieces: list[list[Token]] = [[]]
    for token in tokens(want, ellipsis=True):
        if token is None:
            pieces.append([])
        else:
            pieces[-1].append(token)
    first, *rest = pieces
    if not rest:
        return len(first) == len(there) and starts(first, there, 0)
    *middle, last = rest
    at, end = len(first), len(there) - len(last)
    if not starts(first, there, 0) or end < at or not starts(last, there, end):
        return False
    for piece in middle:  # the leftmost, as doctest does
        found = next((i for i in range(at, end + 1) if starts(piece, there[:end], i)), None)
        if found is None:
            return False
        at = found + len(piece)
    return True


class Checker(doctest.OutputChecker):
    """For pytest, which asks it about every example of docstrings and pages."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or same_output(want, got)
