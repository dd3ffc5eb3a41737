"""The exceptions a user can meet. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from operator import index
from typing import SupportsIndex


class PoolbnError(Exception):
    """Base of every error that poolbn raises on purpose."""


class DataError(PoolbnError, ValueError):
    """A table, a file of rows, or the choice of its columns cannot be used as it is."""


class GraphError(PoolbnError, ValueError):
    """A graph is not what it was said to be: an unknown node, a loop, a cycle."""


class FileError(PoolbnError, ValueError):
    """A file written by poolbn is damaged, foreign, or from another version."""


class OptionError(PoolbnError, ValueError):
    """An option has a value that it does not take."""


class MissingPackageError(PoolbnError, ImportError):
    """An optional package is needed for this and is not installed."""


def nearest(name: object, known: Iterable[object]) -> str:
    """A hint like `; did you mean 'age'?`, or the known names when nothing is near.

    Examples:
        >>> nearest("agee", ["age", "bmi"])
        "; did you mean 'age'?"
        >>> nearest("weight", ["age", "bmi"])
        '; known are: age, bmi'
    """
    names = [str(k) for k in known]
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    shown = ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")
    return f"; known are: {shown}"


def check_whole(**options: object) -> None:
    """Complain about options that are neither None nor whole numbers from 0.

    Examples:
        >>> check_whole(restarts=3, max_iter=None)
    """
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, SupportsIndex) or index(value) < 0:
            raise OptionError(f"{name}={value!r} is not a whole number from 0")


def check_interval(interval: object) -> None:
    """Complain about an interval's probability that is not between 0 and 1.

    Examples:
        >>> check_interval(0.95)
    """
    if not (isinstance(interval, int | float) and 0 < interval < 1):
        raise OptionError(
            f"interval={interval!r} is not a probability between 0 and 1; 0.95 is usual"
        )
