"""The exceptions a user can meet. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from poolbn.wording import shortened, visible, without_secrets


@dataclass(frozen=True)
class Option:
    """An option that a message names, so that each user reads it as they would type it.

    Attributes:
        name: as Python has it.
        value: what it is set to; an ellipsis for the user's own.
        typed: the value on the command line, where that differs.

    Examples:
        >>> Option("max_parents", 3).python(), Option("max_parents", 3).shell()
        ('max_parents=3', '--max-parents 3')
    """

    name: str
    value: object = ...
    typed: str | None = None

    def python(self) -> str:
        """As a keyword."""
        value = self.value
        return f"{self.name}={'...' if value is ... else repr(value)}"

    def shell(self) -> str:
        """As an option of the command line."""
        name = f"--{self.name.replace('_', '-')}"
        if self.value is True:
            return name
        value = self.value
        if isinstance(value, dict):
            value = [f"{key}={_joined(of)}" for key, of in value.items()]
        values = value if isinstance(value, list) else [value]
        cells = ["..." if value is ... else str(value) for value in values]
        commas = (f'"{cell}"' if "," in cell else cell for cell in cells)
        return f"{name} {self.typed or shlex.quote(','.join(commas))}"


def _joined(value: object) -> object:
    """Levels from the lowest to the highest as --kinds has them, or what else a value is."""
    return "<".join(map(str, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class InPython:
    """A part of a message that the command line has in other words, or not at all."""

    text: str
    instead: str = ""

    def python(self) -> str:
        """For users of Python."""
        return self.text

    def shell(self) -> str:
        """For users of the command line."""
        return self.instead


_MOST = 2**53  # of what is counted
MessagePart = str | Option | InPython


def left_out(*names: str) -> InPython:
    """How to leave columns out, where others need not be named.

    Examples:
        >>> left_out("id").python(), left_out("id").shell()
        ('leave it out of columns', 'leave it out with --exclude id')
    """
    it = "it" if len(names) == 1 else "them"
    shell = Option("exclude", list(names)).shell()
    return InPython(f"leave {it} out of columns", f"leave {it} out with {shell}")


GROUP = Option("group", ..., "COLUMN")
NO_UNITS = "name the column of the data sets alone as the group to ignore units"
DROP, EM = Option("missing", "drop"), Option("missing", "em")


class PoolbnError(Exception):
    """Base of every error that poolbn raises on purpose.

    The message comes in parts, of which some may be an `Option`.

    Examples:
        >>> import poolbn as pb
        >>> try:
        ...     pb.load("not there.json")
        ... except pb.PoolbnError as error:
        ...     print(error)
        cannot read 'not there.json': No such file or directory
    """

    def __init__(self, *parts: MessagePart) -> None:
        super().__init__(*(without_secrets(p) if isinstance(p, str) else p for p in parts))

    def __str__(self) -> str:
        return visible("".join(p if isinstance(p, str) else p.python() for p in self.args))

    def for_shell(self) -> str:
        """The message with options as the command line has them.

        Examples:
            >>> OptionError(Option("max_parents", 3), " is too many").for_shell()
            '--max-parents 3 is too many'
        """
        return visible("".join(p if isinstance(p, str) else p.shell() for p in self.args))


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


class FileWarning(UserWarning):
    """A file is not as poolbn wrote it, and could be read all the same.

    Examples:
        >>> import poolbn as pb
        >>> issubclass(pb.FileWarning, UserWarning)
        True
    """


class GraphWarning(UserWarning):
    """A text or another program's graph says something that is not used, or leaves something open.

    Examples:
        >>> import warnings
        >>> import poolbn as pb
        >>> with warnings.catch_warnings(record=True) as told:
        ...     warnings.simplefilter("always", pb.GraphWarning)
        ...     dag = pb.Dag.from_string("bmi ~ a*age")
        >>> print(told[0].message)
        labels of coefficients are not used: a*age
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


class ArgumentError(DataError, OptionError, TypeError):
    """An argument is of a kind that the function does not take.

    Examples:
        >>> import poolbn as pb
        >>> pb.load(3)
        Traceback (most recent call last):
        ...
        poolbn.errors.ArgumentError: path must be a path: a text, or a pathlib.Path, got 3
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
    """Raise for options that are neither None nor whole numbers from 0."""
    check_count(0, **{name: value for name, value in options.items() if value is not None})


def check_count(least: int = 0, **options: object) -> None:
    """Raise for options that are not whole numbers from `least`; only seeds may be very large."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise OptionError(Option(name, value), f" is not a whole number from {least}")
        if int(value) > _MOST and name != "seed":
            raise OptionError(Option(name, value), f" is too large; use {_MOST} or less")


def check_interval(interval: Any) -> None:
    """Raise for an interval's probability that is not between 0 and 1."""
    number = isinstance(interval, Real)
    if not number or not 0 < interval < 1:
        raise OptionError(
            Option("interval", interval), " is not a probability between 0 and 1; 0.95 is usual"
        )


def check_option(name: str, value: object, allowed: Collection[str]) -> None:
    """Raise for a value that an option does not take."""
    if not isinstance(value, str) or value not in allowed:
        raise OptionError(Option(name, value), f" is not an option{nearest(value, allowed)}")


def check_kind(value: object, kind: type, what: str, source: str) -> None:
    """Raise for anything that is not of a kind, and say where such a thing comes from."""
    if not isinstance(value, kind):
        raise ArgumentError(f"expected {what}, got {type(value).__name__}; {source} gives one")
