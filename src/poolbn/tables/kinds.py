"""What columns hold: numbers, levels or counts; and the levels of those that hold levels."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import DataError, Option, OptionError, check_kind, left_out, nearest
from poolbn.tables.labels import is_name, plain, written
from poolbn.tables.sources import Coded, Part
from poolbn.tables.text import looks_numeric
from poolbn.wording import counted, shortened

ColumnKind = str  # the name of a `Kind`
# Of some columns, as users say them: a kind, or the levels of one from the lowest to the highest.
Kinds = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Kind:
    """What a column holds.

    A kind of your own has a `family` and a `fit`; see `register_kind`.

    Attributes:
        name: as `kinds=` has it.
        has_levels: whether cells are levels; as a parent each but the first has an indicator.
        ordered: whether these have an order, which somebody or the source tells.
        whole: whether cells are whole numbers from 0.
        normal: whether a node of it is a linear regression with normal residuals, of which sums of
            squares and products tell all.
        wrong: which cells cannot be, (n,), and why in words; None where all numbers can.
        family: what makes scores and fits of nodes of this kind.
        fit: the class of its fits, a `pb.LocalFit`, which reads them from a file.

    Examples:
        >>> kind_named("count").whole, kind_named("discrete").has_levels
        (True, True)
    """

    name: str
    has_levels: bool = False
    ordered: bool = False
    whole: bool = False
    normal: bool = False
    wrong: Callable[[Floats], tuple[Flags, str]] | None = None
    family: Any = None
    fit: Any = None


_KINDS: dict[str, Kind] = {}


def register_kind(kind: Kind) -> None:
    """Let `kinds=` name one more kind of column, with its kind of node.

    Raises:
        OptionError: there is another kind of this name.

    Examples:
        >>> register_kind(kind_named("count"))  # as it is
        >>> "count" in known_kinds()
        True
    """
    check_kind(kind, Kind, "kind of column", "pb.Kind('cost', family=..., fit=...)")
    if _KINDS.setdefault(kind.name, kind) != kind:
        raise OptionError(f"there is another kind of column called {kind.name!r}")


def kind_named(name: str) -> Kind:
    """The kind that is called so."""
    return _KINDS[name]


def known_kinds() -> tuple[str, ...]:
    """What kinds are called."""
    return tuple(_KINDS)


def has_levels(kind: str) -> bool:
    """Whether the cells of a column of this kind are levels."""
    return kind in _KINDS and _KINDS[kind].has_levels


def is_ordered(kind: str) -> bool:
    """Whether they are levels with an order."""
    return kind in _KINDS and _KINDS[kind].ordered


def is_whole(kind: str) -> bool:
    """Whether they are whole numbers from 0."""
    return kind in _KINDS and _KINDS[kind].whole


def is_normal(kind: str) -> bool:
    """Whether a node of this kind is a linear regression with normal residuals."""
    return kind in _KINDS and _KINDS[kind].normal


MOST_LEVELS = 50  # of a column
MOST_COUNT = 1e12  # so that sums of counts do not overflow
_FEW = 5  # levels, most of which may occur once
_MANY, _RARE = 10, 0.05  # levels, or a share of texts among numbers, that numbers with texts have
# What stands for a missing number, or for one beyond a limit.
_NO_LEVEL = re.compile(r"n\.?/?a\.?n?|null|none|missing|unknown|[-.?]+|[<>≤≥].*", re.IGNORECASE)
# Numbers that are written with more than digits, and dates: what they have, and what to do.
_NUMBER = r"[-+]?\d+([.,]\d+)*"
_WITH_UNIT = re.compile(rf"[$€£¥]\s*{_NUMBER}|{_NUMBER}\s*([$€£¥]|[A-Za-zµ°][A-Za-z²³/°]{{0,7}})")
_DRESSED = (
    (re.compile(rf"{_NUMBER}\s*%"), "numbers with a percent sign", "write them without it"),
    (
        re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?|[-+]?\d+"),
        "numbers with commas, which seem to stand between thousands",
        "write them without commas, or if these are decimal, with a point",
    ),
    (_WITH_UNIT, "numbers with a unit", "write them without it"),
    (
        re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ].*)?"),
        "dates",
        "turn them into numbers, such as days since the first",
    ),
)
_DATES = ("date", "time", "interval")  # what names of types have
_TEXTS = ("text", "category", "mixed", "mixed-integer")


def column_kinds(
    parts: Sequence[Part], names: Sequence[str], given: Kinds | None
) -> tuple[ColumnKind, ...]:
    """The kind of each column: as given, else discrete for text, categories, true and false."""
    chosen = checked_kinds(names, given)
    return tuple(_kind(parts, name, chosen.get(name)) for name in names)


def checked_kinds(names: Sequence[str], given: Kinds | None) -> Mapping[str, ColumnKind]:
    """The kinds that are given, of columns that are there; of those whose levels are, "ordinal"."""
    chosen: Mapping[str, Any] = {} if given is None else given
    if not isinstance(chosen, Mapping):
        raise OptionError(
            Option("kinds", given), " is not a dict; use one such as {'grade': 'discrete'}"
        )
    for name, kind in chosen.items():
        if name not in names:
            raise DataError("no column ", repr(name), " for ", Option("kinds", dict(chosen)),
                            nearest(name, names))  # fmt: skip
        if isinstance(kind, list | tuple):
            _check_order(name, kind)
        elif kind not in known_kinds():
            known = ", ".join(map(repr, known_kinds()))
            raise OptionError(f"the kind of column {name!r} is {kind!r}; use one of {known}")
    listed = orders_in(chosen)
    return {name: "ordinal" if name in listed else kind for name, kind in chosen.items()}


def orders_in(given: Kinds | None) -> dict[str, tuple[str, ...]]:
    """The levels of columns for which they are given, from the lowest to the highest.

    Examples:
        >>> orders_in({"grade": ["low", "high"], "visits": "count"})
        {'grade': ('low', 'high')}
    """
    chosen = {} if given is None else given
    return {
        name: tuple(written(plain(level)) for level in levels)
        for name, levels in chosen.items()
        if isinstance(levels, list | tuple)
    }


def _check_order(name: str, levels: Sequence[Any]) -> None:
    """Raise for what are not levels, from the lowest to the highest."""
    such = f"the levels of column {name!r}"
    if not all(is_name(level) for level in levels):
        raise OptionError(
            f"{such} are {list(levels)!r}; list names, from the lowest to the highest"
        )
    known = [written(plain(level)) for level in levels]
    twice = [level for level in known if known.count(level) > 1]
    if twice:
        raise OptionError(f"{such} have {twice[0]!r} twice; list each once")
    if len(known) < 2:
        raise OptionError(f"{such} are {known!r}; list two or more, from the lowest to the highest")


def _kind(parts: Sequence[Part], name: str, given: ColumnKind | None) -> ColumnKind:
    if given is not None and has_levels(given):
        return given
    text = [part for part in parts if part.types[name]]
    as_levels = ", or use ", Option("kinds", {name: "discrete"})
    for part in text:
        holds = part.types[name]
        what = f"column {name!r}{part.origin} holds {holds}"
        if given is not None:
            raise DataError(f"{what}, and its kind is {given!r}; make it numeric", *as_levels)
        if not holds_levels(holds):
            day = "turn it into a number, such as days since the first, " * is_date(holds)
            neither = f"{what}, which is neither a number nor a level; {day}"
            raise DataError(neither, left_out(name), *as_levels)
    if given is not None:
        return given
    return "discrete" if text or any(name in part.truths for part in parts) else "continuous"


def holds_levels(holds: str) -> bool:
    """Whether a type that is no number, in words, is one of levels."""
    return holds in _TEXTS or holds.startswith("dictionary")


def is_date(holds: str) -> bool:
    """Whether a type in words is one of dates or times."""
    return any(word in holds for word in _DATES)


def recoded(column: Floats, labels: Sequence[Any], code: Callable[[Any, int], float]) -> Floats:
    """Cells (B,) whose codes are indices of `labels`, with other codes; NaN where missing.

    `code` has the other code of a label that so many cells have.
    """
    known = ~np.isnan(column)
    own = column[known].astype(np.intp)
    count = np.bincount(own, minlength=len(labels))
    codes = np.full(len(count), np.nan)
    for k in np.flatnonzero(count).tolist():
        codes[k] = code(plain(labels[k]), int(count[k]))
    made = np.full(len(column), np.nan)
    made[known] = codes[own]
    return made


@dataclass
class Levels:
    """The levels of one column, as they come."""

    # the code of each, by its text, in order of first appearance
    index: dict[str, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)  # levels in an order that means it
    own: dict[str, None] = field(default_factory=dict)  # those of the source that is being read
    ranked: set[str] = field(default_factory=set)  # those whose order is from low to high

    @classmethod
    def listed(cls, order: Sequence[str]) -> Levels:
        """None so far, whose order is known."""
        return cls(told=list(order), ranked=set(order))

    def codes(self, column: Floats, coded: Coded) -> Floats:
        """The codes here of cells that are coded otherwise, NaN where missing, (B,)."""

        def code(label: Any, cells: int) -> float:
            if not is_name(label):
                return np.nan
            text = written(label)
            self.own[text] = None
            return self.index.setdefault(text, len(self.index))

        if coded.in_order:
            texts = [written(plain(label)) for label in coded.labels]
            self.told += [text for text in texts if text not in self.told]
            self.ranked |= set(texts) if coded.ordered else set()
        return recoded(column, coded.labels, code)

    @property
    def names(self) -> tuple[str, ...]:
        """In the order that they were told in, else sorted, as numbers if they are."""
        told = {text: rank for rank, text in enumerate(self.told)}
        numbers = all(map(looks_numeric, self.index))

        def rank(text: str) -> tuple[float, float, str]:
            return told.get(text, len(told)), float(text) if numbers else 0.0, text

        return tuple(sorted(self.index, key=rank))

    def in_order(self, codes: Floats) -> Integers:
        """Codes as the names are in order, (B,)."""
        place = {text: k for k, text in enumerate(self.names)}
        order = np.array([place[text] for text in self.index], dtype=np.int64)
        return np.asarray(order[codes.astype(np.intp)])


def check_order(name: str, levels: Levels, order: Sequence[str] | None) -> None:
    """Raise for levels whose order nobody knows, or of which some are not in the `order` given."""
    unknown = [text for text in levels.names if text not in levels.ranked]
    if not unknown or (order is None and all(map(looks_numeric, levels.index))):
        return
    if order is not None:
        raise DataError(
            f"column {name!r} has {shortened([repr(text) for text in unknown], 4)}, which "
            f"{'is' if len(unknown) == 1 else 'are'} not among its levels in kinds; list all, from "
            "the lowest to the highest, or make such cells missing"
        )
    raise DataError(
        f"column {name!r} is ordinal, and nothing says the order of its levels, such as "
        f"{unknown[0]!r}; list them from the lowest to the highest with ",
        Option("kinds", {name: list(levels.names)}),
        ", or use ",
        Option("kinds", {name: "discrete"}),
    )


def joined_levels(left: Sequence[str], right: Sequence[str]) -> tuple[str, ...]:
    """The levels of both: sorted if each are, else as they follow each other in both."""
    every = Levels({text: k for k, text in enumerate(dict.fromkeys([*left, *right]))})
    if all(Levels(dict.fromkeys(own, 0)).names == tuple(own) for own in (left, right)):
        return every.names
    found = list(left)
    for k, text in enumerate(right):
        if text not in found:
            following = (found.index(later) for later in right if later in found)
            at = found.index(right[k - 1]) + 1 if k else next(following, len(found))
            found.insert(at, text)
    return tuple(found)


def check_varied(name: str, levels: Sequence[str]) -> None:
    """Raise for a column with one level."""
    if len(levels) < 2:
        raise DataError(
            f"column {name!r} has one level, {levels[0]!r}, in all rows; ", left_out(name)
        )


def check_levels(
    name: str, levels: Sequence[str], counts: Integers, *, guessed: bool, origin: str = ""
) -> None:
    """Raise for a column with what are no levels, of which so many cells have each, (K,).

    It is `guessed` to be discrete where nobody said so.
    """
    K, n, what = len(levels), int(counts.sum()), f"column {name!r}{origin}"
    as_levels = "; if they are levels, use ", Option("kinds", {name: "discrete"})
    odd = [k for k, level in enumerate(levels) if not looks_numeric(level)]
    cells = int(counts[odd].sum())
    # A few numbers and a text such as "3+" that many rows have are levels.
    strange = K > _MANY or cells <= max(_RARE * n, 1)
    strange |= any(_NO_LEVEL.fullmatch(levels[k]) for k in odd)
    if guessed and strange and 0 < 2 * cells < n:
        texts = shortened([repr(levels[k]) for k in odd], 4)
        raise DataError(
            f"{what} is mostly numbers, but {counted(cells, 'cell')} "
            f"{'holds' if cells == 1 else 'hold'} {texts}; make such cells missing, or the limit "
            "that they stand for, and the column numeric",
            *as_levels,
        )
    dressed = _dressed(levels) if guessed and K > _FEW else None
    if dressed is not None:
        such = f"{what} holds {dressed[0]}, such as {levels[0]!r}; {dressed[1]}, or "
        raise DataError(such, left_out(name), *as_levels)
    if guessed and odd and all(looks_numeric(level.replace(",", ".")) for level in levels):
        such = f"{what} holds numbers with a decimal comma, such as {levels[odd[0]]!r}"
        raise DataError(f"{such}; write them with a point", *as_levels)
    once = int((counts == 1).sum())
    if K > MOST_LEVELS or (K > _FEW and 2 * once > K):
        few = f", {once} of them in one row" if once else ""
        raise DataError(
            f"{what} has {K} levels in {n} rows{few}: "
            f"{shortened([repr(level) for level in levels], 4)}; if they are data sets, name it "
            "with ",
            Option("group", name),
            "; else make them fewer, or ",
            left_out(name),
        )


def _dressed(levels: Sequence[str]) -> tuple[str, str] | None:
    """What numbers are written with, if all levels are such, and what to do."""
    texts = [level.strip() for level in levels]
    if all(map(looks_numeric, texts)):
        return None
    for pattern, what, remedy in _DRESSED:
        if all(map(pattern.fullmatch, texts)):
            # Classes such as 5a and 5b are no numbers with units, nor are 1st and 2nd.
            units = {re.sub(_NUMBER, "", text).strip() for text in texts}
            return (what, remedy) if pattern is not _WITH_UNIT or len(units) == 1 else None
    return None


def a_kind(kind: str) -> str:
    """What a column is, in a sentence, such as "a count"."""
    if is_ordered(kind):
        return kind
    return f"a {kind}" if is_whole(kind) else f"of the kind {kind!r}"


def wrong_values(kind: str, values: Floats) -> tuple[Flags, str]:
    """Which values a kind cannot have, and why."""
    judge = _KINDS[kind].wrong
    return (np.zeros(len(values), dtype=bool), "") if judge is None else judge(values)


def no_counts(values: Floats) -> tuple[Flags, str]:
    """Which values count nothing, but for missing ones, and why."""
    wrong = (values < 0) | (values != np.floor(values)) & ~np.isnan(values)
    if wrong.any():
        return wrong, "negative or not whole"
    return values > MOST_COUNT, f"above {MOST_COUNT:g}"


def check_values(
    name: str, kind: str, values: Floats, codes: Integers, levels: Sequence[Hashable]
) -> None:
    """Raise for values that a kind cannot have; `codes` are the data sets of the rows."""
    wrong, why = wrong_values(kind, values)
    if wrong.any():
        first = int(wrong.argmax())
        raise DataError(
            f"column {name!r} is {a_kind(kind)}, and {int(wrong.sum())} of its {len(values)} "
            f"values are {why}, the first is {values[first]:g} in data set "
            f"{levels[codes[first]]!r}; correct them, or use ",
            Option("kinds", {name: "continuous"}),
        )


register_kind(Kind("continuous", normal=True))
register_kind(Kind("discrete", has_levels=True))
register_kind(Kind("count", whole=True, wrong=no_counts))
register_kind(Kind("ordinal", has_levels=True, ordered=True))
