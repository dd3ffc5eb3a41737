"""Events: conditions on the columns of a table, and their probabilities from weighted rows.

A condition as text is in a small grammar, and nothing in a text is run:

    condition  = both { ("or" | "|") both }
    both       = negated { ("and" | "&") negated }
    negated    = "not" negated | compared
    compared   = sum { ("<" | "<=" | "==" | "!=" | ">=" | ">") sum }
    sum        = product { ("+" | "-") product }
    product    = signed { ("*" | "/") signed }
    signed     = ("+" | "-" | "~") signed | value
    value      = number | 'text' | "text" | name | `name` | "(" condition ")"

It means what it means in pandas: `1 < x < 2` is `1 < x and x < 2`, and `&` binds like `and`.
Ordered levels are compared by their order: `grade >= 'middle'`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.arrays import Flags, Floats
from poolbn.errors import Option, OptionError, nearest
from poolbn.later import pandas as pd
from poolbn.wording import clipped

_LONGEST = 20_000  # characters of a text
_DEEPEST = 50  # brackets and signs inside each other
_SHOWN = 200  # characters of a text in a message
_EXACT = 18  # digits of whole numbers that stay whole
_LIKE = "write it like 'bmi > 25 and age < 30'"

_TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w))
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|==|!=|[-+*/<>&|~()])
    |(?P<end>\Z)""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_INSTEAD = {"=": "==", "!": "not", "^": "and, or, not", "@": "the number itself", ".": "backticks"}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">=": operator.ge,
    ">": operator.gt,
}  # fmt: skip
_COUNT: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
_JOIN: dict[str, Callable[..., Any]] = {
    "or": operator.or_, "|": operator.or_, "and": operator.and_, "&": operator.and_,
    "not": operator.invert, "~": operator.invert,
}  # fmt: skip
# Signs between two parts, by how strongly they bind; "not" binds as those of comparisons do.
_LEVELS = (("or", "|"), ("and", "&"), tuple(_COMPARE), ("+", "-"), ("*", "/"))
_NOT = 2


class Kind(Enum):
    """What a part of a condition is."""

    NUMBERS = "numbers"
    LABELS = "names of data sets"
    TEXT = "text"
    TRUTHS = "a condition"


@dataclass(frozen=True)
class Part:
    """A part of a condition: for each row, (K,), or one value for all."""

    kind: Kind
    value: Any


@dataclass(frozen=True)
class Token:
    """A piece of a text: the group of `_TOKEN` that it is, and where it begins."""

    kind: str
    text: str
    start: int

    def is_one(self, *texts: str) -> bool:
        """Whether it is one of these words or signs."""
        return self.kind in ("sign", "word") and self.text in texts


def read_condition(text: str, rows: pd.DataFrame) -> NDArray[Any]:
    """What a text says of each row: True or False if it is a condition, else numbers or names."""
    if len(text) > _LONGEST:
        raise OptionError(
            f"event {clipped(text, _SHOWN)!r} has {len(text):,} characters, and up to "
            f"{_LONGEST:,} are read; use a function of the table"
        )
    with np.errstate(all="ignore"):
        return _Reader(text, rows).answer()


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        found = _TOKEN.match(text, at)
        if found is None:
            instead = _INSTEAD.get(text[at])
            advice = f"use {instead}" if instead else _LIKE
            raise OptionError(
                f"event {clipped(text, _SHOWN)!r} has {text[at]!r} at character {at + 1}; {advice}"
            )
        yield Token(str(found.lastgroup), found[0], at)
        if found.lastgroup == "end":
            return
        at = found.end()


class _Reader:
    """Reads a text from left to right; a method for each line of the grammar."""

    def __init__(self, text: str, rows: pd.DataFrame) -> None:
        self.text, self.rows = text, rows
        self.tokens = list(_tokens(text))
        self.at = self.depth = 0

    def answer(self) -> NDArray[Any]:
        part = self.expression()
        if self.next.kind != "end":
            raise self.unexpected("the end, or a sign such as < or 'and'")
        return np.asarray(part.value)

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    # The grammar

    def expression(self, level: int = 0) -> Part:
        """What signs that bind as strongly as those of a level, or more so, join."""
        if level == len(_LEVELS):
            return self.prefixed()
        if level == _NOT and self.next.is_one("not"):
            return self.applied(self.take(), self.deeper(lambda: self.expression(_NOT)))
        found = left = self.expression(level + 1)
        compared: Part | None = None
        while self.next.is_one(*_LEVELS[level]):
            sign, right = self.take(), self.expression(level + 1)
            if sign.text in _COMPARE:  # a < b < c is a < b and b < c
                one = self.comparison(sign, left, right)
                found = one if compared is None else Part(one.kind, compared.value & one.value)
                left, compared = right, found
            else:
                found = self.applied(sign, found, right)
        return found

    def prefixed(self) -> Part:
        if not self.next.is_one("~", "+", "-"):
            return self.value()
        sign = self.take()
        zero = () if sign.text == "~" else (Part(Kind.NUMBERS, 0.0),)
        return self.applied(sign, *zero, self.deeper(self.prefixed))

    def value(self) -> Part:
        token = self.next
        if token.is_one("("):
            self.take()
            found = self.deeper(self.expression)
            if not self.next.is_one(")"):
                raise self.unexpected(f"a ) for the ( at character {token.start + 1}")
            self.take()
            return found
        if token.kind not in ("number", "text", "quoted", "word") or token.is_one(
            "and", "or", "not"
        ):
            raise self.unexpected("a column, a number or a name in quotes")
        self.take()
        if token.kind == "number":
            whole = token.text.isdecimal() and len(token.text) <= _EXACT
            return Part(Kind.NUMBERS, int(token.text) if whole else np.float64(token.text))
        if token.kind == "text":
            return Part(Kind.TEXT, re.sub(r"\\(['\"\\])", r"\1", token.text[1:-1]))
        return self.column(token)

    # What the parts are

    def deeper(self, rule: Callable[[], Part]) -> Part:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.wrong(self.next, f"more than {_DEEPEST} brackets and signs in each other")
        found = rule()
        self.depth -= 1
        return found

    def column(self, token: Token) -> Part:
        quoted = token.kind == "quoted"
        name = token.text[1:-1].replace("``", "`") if quoted else token.text
        if name not in self.rows.columns:
            known = nearest(clipped(name), self.rows)
            raise OptionError(
                f"event {clipped(self.text, _SHOWN)!r} names {clipped(name)!r} at character "
                f"{token.start + 1}, which is not a column{known}; put names that are not Python's "
                "in backticks, and names of data sets in quotes"
            )
        values = self.rows[name]
        kinds = {"b": Kind.TRUTHS, "i": Kind.NUMBERS, "u": Kind.NUMBERS, "f": Kind.NUMBERS}
        kind = kinds.get(getattr(values.dtype, "kind", "O"), Kind.LABELS)
        return Part(kind, values if kind is Kind.LABELS else values.to_numpy())

    def applied(self, sign: Token, *parts: Part) -> Part:
        """What a sign other than that of a comparison makes of conditions, or of numbers."""
        kind, words = (
            (Kind.NUMBERS, "numbers") if sign.text in _COUNT else (Kind.TRUTHS, "conditions")
        )
        for part in parts:
            if part.kind is not kind:
                raise self.wrong(
                    sign, f"{sign.text!r} of {part.kind.value}, where it takes {words}"
                )
        dtype = np.float64 if kind is Kind.NUMBERS else None
        values = (np.asarray(part.value, dtype=dtype) for part in parts)
        return Part(kind, (_COUNT | _JOIN)[sign.text](*values))

    def comparison(self, sign: Token, left: Part, right: Part) -> Part:
        kinds = {left.kind, right.kind}
        if kinds == {Kind.NUMBERS}:
            return Part(Kind.TRUTHS, np.asarray(_COMPARE[sign.text](left.value, right.value)))
        labels, other = (left, right) if left.kind is Kind.LABELS else (right, left)
        one = labels.kind is Kind.LABELS and kinds & {Kind.TEXT, Kind.NUMBERS}
        if not one or np.ndim(other.value):
            raise self.wrong(
                sign, f"{sign.text!r} between {left.kind.value} and {right.kind.value}"
            )
        if sign.text in ("==", "!="):
            return Part(Kind.TRUTHS, _called(labels.value, other.value) == (sign.text == "=="))
        if not getattr(labels.value.dtype, "ordered", False):
            raise self.wrong(sign, f"{sign.text!r} with {labels.kind.value}, which take == and !=")
        order = [str(level) for level in labels.value.cat.categories]
        name = str(other.value)
        if name not in order:
            column = f"{clipped(name)!r}, which is not a level of {labels.value.name!r}"
            raise self.wrong(sign, f"{column} ({', '.join(map(repr, order))})")
        ends = labels.value.cat.codes.to_numpy(), order.index(name)
        ends = ends if labels is left else ends[::-1]
        return Part(Kind.TRUTHS, np.asarray(_COMPARE[sign.text](*ends)))

    # Errors

    def unexpected(self, instead: str) -> OptionError:
        token = self.next
        there = "the end" if token.kind == "end" else repr(token.text)
        return self.wrong(token, f"{there} where {instead} should be")

    def wrong(self, token: Token, what: str) -> OptionError:
        where = "" if token.kind == "end" else f" (at character {token.start + 1})"
        return OptionError(f"event {clipped(self.text, _SHOWN)!r} has {what}{where}; {_LIKE}")


def _called(labels: pd.Series[Any], name: str | float) -> Flags:
    """Which rows are of the data set with a name: a text stands for what prints like it, (K,)."""
    codes, levels = labels.factorize(use_na_sentinel=False)
    if isinstance(name, str):
        hits = [name in (str(level), str(level).removesuffix(" 00:00:00")) for level in levels]
    else:
        hits = [isinstance(level, int | float) and level == name for level in levels]
    return np.asarray(np.array(hits, dtype=bool)[codes])


Event = str | Callable[["pd.DataFrame"], Any]


@dataclass(frozen=True)
class Probability:
    """A probability found by sampling; `float()` gives its value.

    Attributes:
        value: the estimate.
        se: its standard error, from the number of draws.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> arc = {"required": [("age", "bmi")]}
        >>> net = pb.learn(trial, group="clinic", constraints=arc)
        >>> found = net.query("bmi > 30", {"age": 20})
        >>> round(float(found), 2), round(found.se, 3)
        (0.3, 0.005)
    """

    value: float
    se: float

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"{self.value:.4g} (standard error {self.se:.2g})"


def probability(happened: Flags, weights: Floats) -> Probability:
    """The weighted share of rows in which an event happened; weights have the sum 1, (K,)."""
    value = min(1.0, float(weights[happened].sum()))
    return Probability(value, math.sqrt(float((weights**2 * (happened - value) ** 2).sum())))


def happens(event: Event, rows: pd.DataFrame) -> Flags:
    """In which rows an event happens, a condition in the grammar above or a function."""
    if callable(event):
        answer = event(rows)
    elif isinstance(event, str):
        answer = read_condition(event, rows)
    else:
        raise OptionError(
            Option("event", event), " is neither a text like 'bmi > 25' nor a function of a table"
        )
    happened = np.asarray(answer)
    if happened.shape != (len(rows),) or happened.dtype != bool:
        raise OptionError(
            f"event {event!r} gives {happened.dtype} of shape {happened.shape}, not True or False "
            "for each row; compare with something, like 'bmi > 25'"
        )
    return happened
