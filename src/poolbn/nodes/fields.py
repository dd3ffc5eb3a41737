"""Values of JSON files, checked one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 2**53  # that a count can be
_LARGEST = 1e300  # of numbers that are computed with


def check_keys(what: str, found: Any, known: set[str]) -> None:
    """Raise for an object that lacks a key or has another."""
    if not isinstance(found, dict):
        raise ValueError(f"{what} is not an object")
    for words, names in (("lacks", known - set(found)), ("has unknown", set(found) - known)):
        if names:
            raise ValueError(f"{what} {words} {', '.join(map(repr, sorted(names)))}")


def as_list(name: str, value: Any) -> list[Any]:
    """A list, or an error."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


def as_text(name: str, value: Any) -> str:
    """A text, or an error."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


def are_counts(values: list[Any]) -> bool:
    """Whether all are whole numbers from 0."""
    return all(type(value) is int and 0 <= value <= _MOST for value in values)


def number(value: float) -> float | str:
    """JSON has no infinities."""
    return value if math.isfinite(value) else repr(value)


def as_float(name: str, value: object) -> float:
    """A number, or an error."""
    if type(value) in (int, float) or value in ("inf", "-inf", "nan"):
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"{name} is not a number")


def numbers(values: NDArray[np.float64]) -> list[Any]:
    """Nested lists of numbers as JSON has them."""
    if values.ndim == 1:
        return [number(value) for value in values.tolist()]
    return [numbers(row) for row in values]


def floats(name: str, values: Any) -> Any:
    """Nested lists of numbers, of which some may be texts."""
    if isinstance(values, list):
        return [floats(name, row) for row in values]
    return as_float(name, values)


def as_array(name: str, values: Any) -> NDArray[np.float64]:
    """Nested lists of finite numbers."""
    found = np.array(as_list(name, values))
    if found.dtype.kind not in "fi" or not np.isfinite(found).all():
        raise ValueError(f"{name} has something else than finite numbers")
    if (np.abs(found.astype(np.float64)) > _LARGEST).any():
        raise ValueError(f"{name} has a number beyond {_LARGEST:g}")
    return found.astype(np.float64)
