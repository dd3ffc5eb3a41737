"""What is odd about a table, as values; and the warnings that tell of it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from poolbn.errors import InPython, MessagePart, Option
from poolbn.wording import Noun, visible, without_secrets

_SHORT = 12  # columns that a line lists


class FindingKind(Enum):
    """What a finding is about.

    Examples:
        >>> import poolbn as pb
        >>> pb.FindingKind("copies")
        <FindingKind.COPIES: 'copies'>
    """

    ROW_NAMES = "row names"
    ID = "id"
    REPEATED_ID = "several rows for one id"
    SHARED_UNITS = "units in several data sets"
    MISSING_CODE = "code for missing values"
    CONSTANT = "constant column"
    CONSTANT_SOMEWHERE = "constant in some data sets"
    MOSTLY_CONSTANT = "constant in most rows"
    SITE_LEVEL = "describes data sets"
    BINARY = "0 and 1"
    CODES = "few whole numbers"
    ORDERED = "levels with an order"
    DERIVED = "follows from another"
    RARE_LEVEL = "levels of one row"
    COPIES = "copies"
    COLLINEAR = "combination of others"
    SKEWED = "skewed"
    UNEVEN_LOSS = "uneven loss of rows"
    MISSINGNESS = "missing values depend on others"
    LINKS = "links not followed"
    ENCODING = "text that is not UTF-8"
    NEEDS_ROWS = "arcs that need rows"
    CORRELATED_MEANS = "correlated means of data sets"
    CAUSES = "causes by nature or design"
    ORDER_IN_TIME = "measured one after the other"


@dataclass(frozen=True)
class Finding:
    """Something that a user should know before they learn from a table.

    Attributes:
        kind: what it is about.
        columns: the columns.
        levels: the data sets, where it is about some of them.
        count: how many cells, rows or data sets have it; 0 where that says nothing.
        what: what was found, as parts of a message.
        remedy: what to do, likewise.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> (found,) = pb.check(pb.stats(trial.assign(visit=1), group="clinic"))
        >>> found.kind, found.columns
        (<FindingKind.CONSTANT: 'constant column'>, ('visit',))
        >>> print(found)
        column 'visit' has the same value in all rows; leave it out with columns=['age', 'bmi']
    """

    kind: FindingKind
    columns: tuple[str, ...]
    levels: tuple[Hashable, ...]
    count: int
    what: str
    remedy: tuple[MessagePart, ...]

    def __str__(self) -> str:
        return self._said([p if isinstance(p, str) else p.python() for p in self.remedy])

    def for_shell(self) -> str:
        """The same with options as the command line has them.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> (found,) = pb.check(pb.stats(trial.assign(visit=1), group="clinic"))
            >>> print(found.for_shell())
            column 'visit' has the same value in all rows; leave it out with --exclude visit
        """
        return self._said([p if isinstance(p, str) else p.shell() for p in self.remedy])

    def _said(self, remedy: Iterable[str]) -> str:
        return visible(without_secrets(f"{self.what}; {''.join(remedy)}"))


def about(found: Finding, sets: Noun) -> Finding:
    """A finding with another word for data sets."""
    said = (sets.said(part) if isinstance(part, str) else part for part in found.remedy)
    return replace(found, what=sets.said(found.what), remedy=tuple(said))


class DataWarning(UserWarning):
    """Something is odd about a table that a network is learned from.

    Attributes:
        finding: what it is, as a value.

    Examples:
        >>> import warnings
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> with warnings.catch_warnings(record=True) as told:
        ...     warnings.simplefilter("always", pb.DataWarning)
        ...     net = pb.learn(trial.assign(copy=trial["age"]), group="clinic")
        >>> [warning.message.finding.kind.value for warning in told]
        ['copies']
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def tell(
    kind: FindingKind, what: str, remedy: str, columns: tuple[str, ...] = (), count: int = 0
) -> None:
    """Warn of something that is odd about a table or a file."""
    finding = Finding(kind, columns, (), count, what, (remedy,))
    warnings.warn(DataWarning(finding), stacklevel=3)


def without(columns: Iterable[str], names: Sequence[str]) -> tuple[MessagePart, ...]:
    """How to leave columns out: in Python the others are named, unless they are many."""
    gone = list(columns)
    rest = [name for name in names if name not in gone]
    it = "it" if len(gone) == 1 else "them"
    if not rest:
        return (f"no other column is left, so choose others than {', '.join(map(repr, gone))}",)
    shell = Option("exclude", gone).shell()
    if len(rest) <= _SHORT:
        return (f"leave {it} out with ", InPython(Option("columns", rest).python(), shell))
    select = f"stats.select([name for name in stats.names if name not in {gone!r}])"
    return (f"leave {it} out with ", InPython(select, shell))


def as_inputs(
    columns: Sequence[str], names: Sequence[str], inputs: Sequence[str]
) -> tuple[MessagePart, ...]:
    """How to keep columns from being children of others, beside those that are inputs already."""
    every = [name for name in names if name in columns or name in inputs]
    if len(every) == len(names):
        return without(columns, names)
    it = "it" if len(columns) == 1 else "them"
    return (f"if nothing else here can be a cause of {it}, say so with ", Option("inputs", every))
