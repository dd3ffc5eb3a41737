"""Kinds of arguments, checked in one way: the name of the argument, what it must be, what it is."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, SupportsFloat, TypeGuard

import numpy as np

from poolbn.errors import ArgumentError

_PLAIN = (type(None), bool, int, float)
_LARGE = 1e300  # what is computed with larger numbers overflows
_SHORT = 40  # characters of a text that a message repeats


@dataclass(frozen=True)
class Argument:
    """What an argument must be.

    Attributes:
        words: what it is called in a message.
        holds: whether a value is one.
    """

    words: str
    holds: Callable[[object], bool]

    def or_none(self) -> Argument:
        """The same, or None."""
        return Argument(f"{self.words}, or None", lambda value: value is None or self.holds(value))


def _is_label(value: object) -> bool:
    try:
        hash(value)
        return bool(value == value or value != value)  # noqa: PLR0124
    except TypeError:  # of what has no hash, and of pandas' NA
        return False


def among(value: object, names: Collection[str]) -> bool:
    """Whether it is one of these names; to compare it with them may raise, or give an array."""
    return isinstance(value, str) and value in names


def is_list(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether it can be gone through; an array of numpy without a dimension cannot."""
    return isinstance(value, Iterable) and getattr(value, "shape", None) != ()


def is_finite(value: object) -> bool:
    """Whether a value is a number that a float can hold.

    Examples:
        >>> is_finite(3), is_finite(10**400), is_finite(float("nan")), is_finite("3")
        (True, False, False, False)
    """
    try:
        return isinstance(value, SupportsFloat) and math.isfinite(value)
    except (OverflowError, TypeError, ValueError):  # too large; an array; a frame
        return False


def _is_number(value: object) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return is_finite(value) and abs(float(value)) < _LARGE


def _are_numbers(value: object) -> bool:
    try:
        found = np.asarray(value)
        found.astype(np.float64)
    except (OverflowError, TypeError, ValueError):
        return False
    if found.dtype.kind == "c":
        return False
    return found.dtype.kind in "biuf" or not found.size or None not in found.ravel().tolist()


TEXT = Argument("a text", lambda value: isinstance(value, str))
PATH = Argument(
    "a path: a text, or a pathlib.Path",
    lambda value: isinstance(value, str | os.PathLike) and isinstance(os.fspath(value), str),
)
FLAG = Argument("True or False", lambda value: isinstance(value, bool | np.bool_))
NUMBER = Argument("a finite number", _is_number)
NUMBERS = Argument("a number, or an array of numbers", _are_numbers)
LIST = Argument("a list", is_list)
# One name is a list of its letters; functions that take none say so themselves.
NAMES = Argument("a list of names", is_list)
FUNCTION = Argument("a function", callable)
DICT = Argument("a dict", lambda value: isinstance(value, Mapping))
LABEL = Argument("a name, such as a text or a number", _is_label)


def check_arguments(**given: tuple[object, Argument]) -> None:
    """Raise for the first argument that is not of its kind.

    Args:
        given: for the name of each argument its value and what it must be.

    Examples:
        >>> check_arguments(path=("net.json", PATH), plugin=("yes", FLAG))
        Traceback (most recent call last):
        ...
        poolbn.errors.ArgumentError: plugin must be True or False, got 'yes'
    """
    for name, (value, kind) in given.items():
        if not kind.holds(value):
            raise _wrong(name, kind, value)


def names_of(name: str, value: object) -> list[str]:
    """The names in a list.

    Examples:
        >>> names_of("parents", ("age", "bmi"))
        ['age', 'bmi']
    """
    if not is_list(value):
        raise _wrong(name, NAMES, value)
    found = list(value)
    for each in found:
        if not isinstance(each, str):
            raise ArgumentError(f"{name} must be a list of names, and has {_shown(each)} in it")
    return found


def _wrong(name: str, kind: Argument, value: object) -> ArgumentError:
    return ArgumentError(f"{name} must be {kind.words}, got {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, _PLAIN) or (isinstance(value, str | bytes) and len(value) <= _SHORT):
        return repr(value)
    if isinstance(value, list | tuple | dict) and not value:
        return repr(value)
    return f"an object of type {type(value).__name__}"
