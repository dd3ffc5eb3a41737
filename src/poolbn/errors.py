"""The exceptions a user can meet. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from operator import index
from typing import SupportsIndex

from poolbn.wording import shortened


class PoolbnError(Exception):
    """Base of every error that poolbn raises on purpose.

    Examples:
        >>> import poolbn as pb
        >>> try:
        ...     pb.load("not there.json")
        ... except pb.PoolbnError as error:
        ...     print(error)
        cannot read 'not there.json': No such file or directory
    """


class DataError(PoolbnError, ValueError):
    """A table, a file of rows, or the choice of its columns cannot be used as it is.

    Examples:
        >>> import poolbn as pb
        >>> pb.stats(pb.datasets.opt(), group="clinik")
        Traceback (most recent call last):
        ...
        poolbn.errors.DataError: no column 'clinik'; did you mean 'clinic'?
    """


class GraphError(PoolbnError, ValueError):
    """A graph is not what it was said to be: an unknown node, a loop, a cycle.

    Examples:
        >>> import poolbn as pb
        >>> pb.Dag(["age", "bmi"], [("age", "agee")])
        Traceback (most recent call last):
        ...
        poolbn.errors.GraphError: 'agee' in the arc age -> agee is not a node; did you mean 'age'?
    """


class FileError(PoolbnError, ValueError):
    """A file written by poolbn is damaged, foreign, or from another version.

    Examples:
        >>> import poolbn as pb
        >>> pb.load("not there.json")
        Traceback (most recent call last):
        ...
        poolbn.errors.FileError: cannot read 'not there.json': No such file or directory
    """


class OptionError(PoolbnError, ValueError):
    """An option has a value that it does not take.

    Examples:
        >>> import poolbn as pb
        >>> pb.HillClimb(restarts=-1)
        Traceback (most recent call last):
        ...
        poolbn.errors.OptionError: restarts=-1 is not a whole number from 0
    """


class ClusterError(PoolbnError, RuntimeError):
    """A Dask cluster cannot be reached, cannot run poolbn, or lost the work.

    Examples:
        >>> import poolbn as pb
        >>> issubclass(pb.ClusterError, RuntimeError)
        True
    """


class MissingPackageError(PoolbnError, ImportError):
    """An optional package is needed for this and is not installed.

    Examples:
        >>> import poolbn as pb
        >>> issubclass(pb.MissingPackageError, ImportError)
        True
    """


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
    return f"; known are: {shortened(names)}"


def check_whole(**options: object) -> None:
    """Raise unless each option is None or a whole number from 0."""
    check_count(0, **{name: value for name, value in options.items() if value is not None})


def check_count(least: int = 0, **options: object) -> None:
    """Raise unless each option is a whole number from `least`."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, SupportsIndex) or index(value) < least:
            raise OptionError(f"{name}={value!r} is not a whole number from {least}")


def check_interval(interval: object) -> None:
    """Raise unless an interval's probability is between 0 and 1."""
    if not (isinstance(interval, int | float) and 0 < interval < 1):
        raise OptionError(
            f"interval={interval!r} is not a probability between 0 and 1; 0.95 is usual"
        )


def check_kind(value: object, kind: type, what: str, source: str) -> None:
    """Raise unless a value is of a kind; `source` is the function that gives such a value."""
    if not isinstance(value, kind):
        raise DataError(f"expected {what}, got {type(value).__name__}; {source} gives one")
