"""What a user should know before they learn: found in the sufficient statistics and the facts."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from weakref import WeakSet

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import EM, InPython, MessagePart, Option
from poolbn.findings import DataWarning, Finding, FindingKind, about, as_inputs, without
from poolbn.moments.data import Data, check_data, only_sums
from poolbn.moments.facts import MOST_ROWS, Distinct, Edge
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.patternstats import PatternStats
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.moments.table import gaps_of, has_gaps
from poolbn.tables.grouping import DATA_SET
from poolbn.tables.kinds import has_levels, is_normal
from poolbn.wording import counted, listed, noun_of, shortened

ROWS = 10  # that a table, or a data set, must have for its values to say something
_CHANCE = 5.0  # equal cells that numbers with gaps between them would have by chance
_FAR = 2.0  # from the other values, in their standard deviations: a code
# What ids are called: patient, pat_id, pupilNR, caseNo, record number; but not acid, lipid, piano.
IDS = re.compile(
    r"(?i:(.*[\W_])?(id|pid|nr|number)|.*[\W_](no|num)"
    r"|(.*[\W_])?(subject|patient|person|participant|pupil|student|record)(nr|no|num|number)?"
    r"|(.*[\W_])?(household|teacher|classroom|mother|mom|kid|animal|rat|mouse|litter|herd|cow|tree|plot))"
    r"|.*[a-z](I[dD]|N[rRoO])"
)


@dataclass(frozen=True, eq=False)
class Inspected:
    """The continuous columns of a table as the checks see them."""

    stats: GroupStats  # their statistics
    data: StandardisedStats  # the same, standardised
    every: tuple[str, ...]  # all columns
    inputs: tuple[str, ...]  # those of them that are inputs

    @property
    def names(self) -> tuple[str, ...]:
        """The continuous columns."""
        return self.stats.names

    @cached_property
    def rows(self) -> int:
        """In all data sets together."""
        return self.stats.n_rows

    @cached_property
    def whole(self) -> list[bool]:
        """Which columns hold whole numbers, as far as that is known."""
        return [facts.digits == 0 for facts in self.stats.facts]

    @cached_property
    def constant(self) -> list[bool]:
        """Which columns have one value."""
        return [not square > 0 for square in self.data.total.diagonal()]

    @cached_property
    def still(self) -> Flags:
        """Where a column does not vary inside a data set that has rows enough, (F, N)."""
        return np.asarray(self.data.constant & (self.data.n >= ROWS / 2)[:, None])

    @cached_property
    def of_sites(self) -> list[bool]:
        """Which columns vary between data sets only."""
        site = self.data.group_level & self.still.any(axis=0)
        return [bool(yes) for yes in site]

    @cached_property
    def numbering(self) -> Flags:
        """Which columns are the whole numbers from one to another, each once."""
        own = _in_a_row(self.rows, self.rows * self.data.scale**2)
        return np.asarray(own & self.whole & (self.rows >= ROWS))

    @cached_property
    def ids(self) -> Flags:
        """Which columns are another whole number in each row, and that not by chance."""
        extents = [facts.extent for facts in self.stats.facts]
        different = [extent is not None and extent.numbers is not None for extent in extents]
        called = [IDS.fullmatch(name) is not None for name in self.names]
        likely = self.rows**2 / (7 * np.maximum(self.data.scale, 1e-300)) > _CHANCE
        likely = (likely | called) & self.whole & different & (self.rows >= ROWS)
        return np.asarray(likely | self.numbering)

    @cached_property
    def codes(self) -> list[tuple[float, int]]:
        """For each column a value that may stand for a missing one, and its count; or (0, 0)."""
        found = []
        for k, facts in enumerate(self.stats.facts):
            ends = () if facts.extent is None else (facts.extent.low, facts.extent.high)
            codes = [
                (sign * end.value, end.cells)
                for sign, end in zip((1.0, -1.0), ends, strict=False)
                if end.cells and self._far(k, sign, end)
            ]
            found.append(codes[0] if codes else (0.0, 0))
        return found

    def _far(self, k: int, sign: float, end: Edge) -> bool:
        """Whether an end is further from the other values than these are from each other."""
        n, m = self.rows, end.cells
        if not isfinite(end.following):
            return False
        mean, variance = sign * float(self.data.center[k]), float(self.data.scale[k]) ** 2
        others = (n * mean - m * end.value) / (n - m)
        squares = n * (variance + mean**2) - m * end.value**2 - (n - m) * others**2
        sd = sqrt(max(squares, 0.0) / (n - m))
        return end.following - end.value > _FAR * sd

    def named(self, which: Iterable[bool]) -> list[str]:
        """The names of these columns."""
        return [name for name, yes in zip(self.names, which, strict=True) if yes]

    def learned(self, names: Iterable[str]) -> list[str]:
        """Without inputs, of which nothing is learned."""
        return [name for name in names if name not in self.inputs]


_SAMPLE = 500  # rows that tell of most columns that they do not follow from each other
_PAIRS = 8  # of those that do, in a message


class _Levels:
    """Discrete columns of rows, or of configurations that several rows have."""

    def __init__(self, stats: Data) -> None:
        at = [k for k, levels in enumerate(stats.categories) if levels]
        self.names = [stats.names[k] for k in at]
        self.sizes = [len(stats.categories[k]) for k in at]
        rows = stats.cases(self.names, incomplete=True)
        codes = np.array(rows.columns).reshape(len(at), len(rows.data_set))
        self.codes = np.where(np.isnan(codes), -1, codes).astype(np.int64)  # (M, R)
        self.data_set = rows.data_set
        n = np.ones(len(rows.data_set)) if rows.n is None else rows.n
        self.n = n.astype(np.int64)  # rows of each, (R,)

    def together(self, a: Integers, of: int, k: int) -> Integers:
        """Rows by code of a column with `of` codes and level of column k, (of, levels)."""
        there = (a >= 0) & (self.codes[k] >= 0)
        both = a[there] * self.sizes[k] + self.codes[k][there]
        size = (of, self.sizes[k])
        return np.bincount(both, self.n[there], of * size[1]).reshape(size).astype(np.int64)


def of_sites(stats: Data) -> list[str]:
    """Discrete columns that have one level in each data set, and not the same in all."""
    columns, F = _Levels(stats), len(stats.levels)
    found = []
    for k, name in enumerate(columns.names):
        counts = columns.together(columns.data_set, F, k)
        several = (counts > 0).sum(axis=1)
        varies = (counts > 0).any(axis=0).sum() > 1
        if several.max() == 1 and varies and counts.max() >= ROWS / 2:
            found.append(name)
    return found


def derived(stats: Data, sites: Sequence[str]) -> Finding | None:
    """Discrete columns whose level follows from another column: a coarser one, or a cut of it.

    Not `sites`, which describe data sets: they have few values, and follow from others by chance.
    """
    columns = _Levels(stats)
    found = (*_coarser(columns), *_cuts(stats, columns))
    pairs = [(name, of) for name, of in found if name not in sites]
    names = list(dict.fromkeys(name for name, _ in pairs))
    told = listed([f"{name!r} from {of!r}" for name, of in pairs], _PAIRS)
    what = f"levels that follow from another column, as a cut of it does: {told}"
    remedy = ("use one of the two, for example ", *without(names, stats.names))
    return _finding(FindingKind.DERIVED, names, what, remedy, count=len(pairs))


def rare(table: Data) -> Finding | None:
    """Levels that one row has, of which nothing can be learned; rows tell of them."""
    if not table.has_rows:
        return None
    cells = table.cases(table.names, incomplete=True).columns
    found: dict[str, list[str]] = {}
    for name, own, codes in zip(table.names, table.categories, cells, strict=True):
        levels, rows = np.unique(codes[~np.isnan(codes)].astype(np.int64), return_counts=True)
        if own and (rows == 1).any():
            found[name] = [repr(own[code]) for code in levels[rows == 1]]
    count = sum(map(len, found.values()))
    told = listed([f"{shortened(few, 4)} of {name!r}" for name, few in found.items()])
    what = f"one row alone has the level{'s' * (count > 1)} {told}"
    remedy = ("merge such levels with others, or make these cells missing and use ", EM)
    return _finding(FindingKind.RARE_LEVEL, list(found), what, remedy, count=count)


def _coarser(columns: _Levels) -> Iterator[tuple[str, str]]:
    """Pairs of columns, the first of which has one level at each level of the second."""
    follows: set[tuple[int, int]] = set()
    rows = int(columns.n.sum())
    for k in range(len(columns.names)):
        for by in range(len(columns.names)):
            if by == k or rows < ROWS * columns.sizes[by]:
                continue
            counts = columns.together(columns.codes[by], columns.sizes[by], k)
            seen = counts.sum(axis=0) >= ROWS / 2
            if seen.sum() > 1 and (counts > 0).sum(axis=1).max() == 1 and (by, k) not in follows:
                follows.add((k, by))
                yield columns.names[k], columns.names[by]


def _cuts(stats: Data, columns: _Levels) -> Iterator[tuple[str, str]]:
    """Discrete and continuous columns, whose values at different levels do not overlap."""
    if not stats.has_rows:
        return
    values = stats.cases(stats.names, incomplete=True).columns
    numbers = [k for k, kind in enumerate(stats.kinds) if not has_levels(kind)]
    few = slice(None, None, max(stats.n_rows // _SAMPLE, 1))
    for name, size, codes in zip(columns.names, columns.sizes, columns.codes, strict=True):
        for k in numbers:
            x = values[k]
            if _apart(codes[few], x[few], size, 1) and _apart(codes, x, size, ROWS // 2):
                yield name, stats.names[k]


def _apart(codes: Integers, x: Floats, size: int, least: int) -> bool:
    """Whether no value at a level lies among those at another, with enough rows of two levels."""
    there = (codes >= 0) & ~np.isnan(x)
    codes, x = codes[there], x[there]
    rows = np.bincount(codes, minlength=size)
    if (rows >= least).sum() < 2:
        return False
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, codes, x)
    np.maximum.at(high, codes, x)
    order = np.argsort(low[rows > 0])
    return bool((high[rows > 0][order][:-1] < low[rows > 0][order][1:]).all())


_REPEATS = 10  # rows for each of few values
_SAME = 2e-6  # of a column's variance, which other columns do not explain: they do
_LEAST = 1e-3  # standardised coefficients of the columns that do
_SKEW = 4.0  # skewness; an exponential distribution has 2
_LOST = 0.2  # difference between shares of rows that are lost
_ERRORS = 3.0  # and in standard errors
_STILL = 0.05  # of data sets or of rows; of many small data sets a few are constant by chance
_SURE = 0.01  # adjusted p-value of what missing values depend on
_SHARES, _DIFFERENCE = 0.1, 0.2  # of missing values between data sets; of rows, in SDs
_TOLD = 4  # of these in a message
_ROW_NAMES = re.compile(r"|unnamed: ?\d+|row\.?_?names?|index|x|v1|\.\.\.1|column0*", re.IGNORECASE)


def check(stats: Data) -> list[Finding]:
    """What is odd about a table: ids, codes, constant columns, copies, lost rows, and the like.

    `pb.learn`, `pb.compare` and `pb.bootstrap` warn of the same. Statistics that were made by hand
    or loaded from a file know less of their rows, and less is found.

    Args:
        stats: from `pb.stats`, or rows from `pb.table`, of which continuous columns are looked at.

    Returns:
        At most one finding of each kind, each with a remedy.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> pb.check(pb.stats(trial, group="clinic"))
        []
        >>> for found in pb.check(pb.stats(trial.assign(id=range(750)), group="clinic")):
        ...     print(found)
        column 'id' is another whole number in every row, as ids are; leave it out with
        columns=['age', 'bmi']
    """
    check_data(stats)
    return [about(found, noun_of(stats.group)) for found in _every(stats)]


def _every(stats: Data) -> list[Finding]:
    if (sums := only_sums(stats)) is not None:
        return _found(sums, sums)
    numbers = [name for name in stats.names if is_normal(stats.kind(name))]
    sites = of_sites(stats)
    if numbers:
        found = _found(stats, completed_sums(stats, numbers), sites)
    else:
        found = _known(_describing(stats, sites))
    return [*found, *_known(derived(stats, sites), rare(stats), _needs_rows(stats, numbers))]


def completed_sums(stats: Data, names: Sequence[str]) -> GroupStats:
    """The statistics of some columns, completed by EM where cells are missing."""
    if not has_gaps(stats):
        return stats.stats(names)
    patterns = gaps_of(stats.select(names))
    return patterns.completed() if patterns.has_gaps else patterns.known


def _needs_rows(stats: Data, numbers: Sequence[str]) -> Finding | None:
    """Arcs that cannot be found without rows."""
    if stats.has_rows or not numbers:
        return None
    children = [n for n in stats.names if n not in numbers and n not in stats.inputs]
    one = len(children) == 1
    what = (
        f"discrete {_columns(children)} {'has' if one else 'have'} no continuous parents, since "
        "such arcs need rows, which sufficient statistics do not hold"
    )
    remedy: tuple[MessagePart, ...] = (
        "learn from rows",
        InPython(
            ", pb.table(data, ...), or say that no such arc is meant, "
            "pb.Constraints(continuous_to_discrete=False)"
        ),
    )
    return _finding(FindingKind.NEEDS_ROWS, children, what, remedy)


def _found(every: Data, numbers: GroupStats, sites: Sequence[str] = ()) -> list[Finding]:
    """What is odd about continuous columns; `every` has the others too.

    `sites` are those of the others that describe data sets.
    """
    data = standardise(numbers)
    table = Inspected(numbers, data, every.names, every.inputs)
    found = [look(table) for look in _LOOKS]
    of_sites = {*table.named(table.of_sites), *sites}
    return _known(*found, _describing(every, [name for name in every.names if name in of_sites]))


def _known(*found: Finding | None) -> list[Finding]:
    return [finding for finding in found if finding is not None]


def alike(stats: GroupStats) -> list[Finding]:
    """Copies and combinations of columns, between which a network has no arcs, or only those."""
    table = Inspected(stats, standardise(stats), stats.names, stats.inputs)
    return [found for look in (_copies, _collinear) if (found := look(table)) is not None]


_told: WeakSet[Data] = WeakSet()


def warn(stats: Data, known: Collection[FindingKind] = ()) -> None:
    """Warn the caller's caller of what is odd about a table, once for the same statistics.

    `known` is what the user knows already.
    """
    if stats in _told:
        return
    _told.add(stats)
    for finding in check(stats):
        if finding.kind not in known:
            warnings.warn(DataWarning(finding), stacklevel=3)


def _columns(names: Sequence[str]) -> str:
    """Columns at the beginning of a sentence."""
    return f"column{'s' * (len(names) != 1)} {listed([repr(name) for name in names])}"


def _finding(
    kind: FindingKind,
    names: Sequence[str],
    what: str,
    remedy: tuple[MessagePart, ...],
    levels: Sequence[Hashable] = (),
    count: int = 0,
) -> Finding | None:
    return Finding(kind, tuple(names), tuple(levels), count, what, remedy) if names else None


def _row_names(table: Inspected) -> Finding | None:
    names = table.names[:1]
    stats = table.stats
    each = _in_a_row(stats.n, stats.scatter[:, 0, 0]).all() and stats.n.max() >= ROWS
    counts = table.numbering[0] or (table.whole[0] and each)
    if not (counts and _ROW_NAMES.fullmatch(names[0])):
        return None
    what = f"{_columns(names)} numbers the rows, as row names do"
    return _finding(FindingKind.ROW_NAMES, names, what, without(names, table.every))


def _in_a_row(n: Integers | int, squares: Floats) -> Flags:
    """Whether n whole numbers with such sums of squares are those from one to another."""
    rows = np.asarray(n, dtype=np.float64)
    spread = rows * (rows**2 - 1) / 12
    return np.asarray(np.abs(squares - spread) <= 1e-9 * spread)


def _ids(table: Inspected) -> Finding | None:
    known = _row_names(table)
    names = [n for n in table.named(table.ids) if known is None or n not in known.columns]
    is_are = "is another whole number" if len(names) == 1 else "are other whole numbers"
    what = f"{_columns(names)} {is_are} in every row, as ids are"
    return _finding(FindingKind.ID, names, what, without(names, table.every))


def _repeated(table: Inspected) -> Finding | None:
    def has(k: int) -> bool:
        facts = table.stats.facts[k]
        if facts.distinct is not Distinct.MANY or facts.extent is None:
            return False
        few = -facts.extent.high.value - facts.extent.low.value + 1 < table.rows
        whole = table.whole[k] and not table.ids[k] and IDS.fullmatch(table.names[k]) is not None
        return whole and (few or table.rows <= MOST_ROWS)

    names = [name for k, name in enumerate(table.names) if has(k)]
    what = f"{_columns(names)} may be ids with several rows each, and such rows are not independent"
    if not names:
        return None
    outer = None if table.stats.group == DATA_SET else table.stats.group
    typed = shlex.quote(f"{outer or ''}/{names[0]}")
    units = Option("group", [outer, names[0]], typed)
    remedy = ("if they are units inside data sets, say so with ", units, ", else ")
    return _finding(FindingKind.REPEATED_ID, names, what, (*remedy, *without(names, table.every)))


def _missing_codes(table: Inspected) -> Finding | None:
    found = {name: c for name, c in zip(table.names, table.codes, strict=True) if c[1]}
    cells = [f"{name!r} has {counted(m, 'cell')} of {code:g}" for name, (code, m) in found.items()]
    values = ", ".join(f"{n!r}: {{{code:g}: float('nan')}}" for n, (code, _) in found.items())
    remedy: tuple[MessagePart, ...] = (
        "if so, make them missing",
        InPython(f", frame = frame.replace({{{values}}})", " in the file"),
        ", and use ",
        EM,
    )
    what = f"{listed(cells)}, far from all others, as codes for missing values are"
    count = sum(m for _, m in found.values())
    return _finding(FindingKind.MISSING_CODE, list(found), what, remedy, count=count)


def _constants(table: Inspected) -> Finding | None:
    names = table.named(table.constant)
    what = f"{_columns(names)} {'has' if len(names) == 1 else 'have'} the same value in all rows"
    return _finding(FindingKind.CONSTANT, names, what, without(names, table.every))


def _where_still(table: Inspected, mostly: bool) -> dict[str, list[Hashable]]:
    """Columns that do not vary in some data sets, or in those with most rows; and these."""
    levels, n = table.stats.levels, table.data.n
    share = np.maximum(table.still.mean(axis=0), n @ table.still / n.sum())
    return {
        name: [levels[j] for j in np.flatnonzero(table.still[:, k])]
        for k, name in enumerate(table.names)
        if share[k] >= _STILL
        and not table.constant[k]
        and not table.of_sites[k]
        and table.data.mostly_constant[k] == mostly
        and name not in table.inputs
    }


def _told_still(where: dict[str, list[Hashable]]) -> str:
    named = {
        name: listed([repr(v) for v in at]) if len(at) <= _TOLD else f"{len(at)} data sets"
        for name, at in where.items()
    }
    return shortened([f"{name!r} in {at}" for name, at in named.items()], 8)


def _still(table: Inspected) -> Finding | None:
    where = _where_still(table, mostly=False)
    if not where:
        return None
    levels = tuple(v for v in table.stats.levels if any(v in at for at in where.values()))
    what = f"constant in some data sets, which say nothing of it: {_told_still(where)}"
    name, at = next(iter(where.items()))
    cells = f"frame.loc[frame[{table.stats.group!r}] == {at[0]!r}, {name!r}] = float('nan')"
    remedy: tuple[MessagePart, ...] = (
        "if that stands for what was not measured, make it missing",
        InPython(f", {cells}", " in the file"),
        ", and use ",
        EM,
    )
    return _finding(FindingKind.CONSTANT_SOMEWHERE, list(where), what, remedy, levels, len(levels))


def _mostly_still(table: Inspected) -> Finding | None:
    where = _where_still(table, mostly=True)
    what = (
        f"constant in data sets with most of the rows, and learned from the others alone: "
        f"{_told_still(where)}"
    )
    remedy = as_inputs(list(where), table.every, table.inputs)
    return _finding(FindingKind.MOSTLY_CONSTANT, list(where), what, remedy)


def _describing(stats: Data, sites: Sequence[str]) -> Finding | None:
    """Columns that vary between data sets only."""
    names, F = [name for name in sites if name not in stats.inputs], len(stats.levels)
    it = "describes data sets and has" if len(names) == 1 else "describe data sets and have"
    what = f"{_columns(names)} {it} {F} values, not {stats.n_rows:,}"
    remedy = as_inputs(names, stats.names, stats.inputs)
    return _finding(FindingKind.SITE_LEVEL, names, what, remedy, count=F)


def _is_binary(table: Inspected, k: int) -> bool:
    """By its values, or as of whole numbers only 0 and 1 are their own squares, by its sums."""
    plain = not (table.constant[k] or table.of_sites[k]) and table.rows >= 2 * _REPEATS
    if not (table.whole[k] and plain):
        return False
    facts = table.stats.facts[k]
    if facts.told is Distinct.NONE and facts.values is not None:  # sums have what is missing too
        return facts.values == {0.0, 1.0}
    center, scale = float(table.data.center[k]), float(table.data.scale[k])
    return abs(scale**2 + center**2 - center) <= 1e-9


def _as_discrete(names: Sequence[str]) -> tuple[MessagePart, ...]:
    """How to say that columns hold levels."""
    return "if these are levels, use ", Option("kinds", dict.fromkeys(names, "discrete"))


def _binary(table: Inspected) -> Finding | None:
    names = table.learned(name for k, name in enumerate(table.names) if _is_binary(table, k))
    has, is_are = ("has", "is") if len(names) == 1 else ("have", "are")
    what = f"{_columns(names)} {has} only the values 0 and 1, and {is_are} modelled as continuous"
    return _finding(FindingKind.BINARY, names, what, _as_discrete(names))


def _few(table: Inspected) -> Finding | None:
    def has(k: int) -> bool:
        facts = table.stats.facts[k]
        few = table.whole[k] and facts.distinct in (Distinct.TWO, Distinct.FEW)
        known = facts.told is Distinct.NONE and facts.values is not None
        values = len(facts.values or ()) if known else _REPEATS
        usual = not (table.constant[k] or table.of_sites[k] or table.codes[k][1])
        return few and usual and table.rows >= _REPEATS * values and not _is_binary(table, k)

    names = table.learned(name for k, name in enumerate(table.names) if has(k))
    what = f"{_columns(names)} {'has' if len(names) == 1 else 'have'} few different whole numbers"
    counts = Option("kinds", dict.fromkeys(names, "count"))
    remedy = (*_as_discrete(names), "; if they count something, ", counts)
    return _finding(FindingKind.CODES, names, what, remedy)


def _copies(table: Inspected) -> Finding | None:
    pairs = _pairs(table)
    told = [f"{table.names[a]!r} and {table.names[b]!r}" for a, b in pairs]
    gone = list(dict.fromkeys(table.names[b] for _, b in pairs))
    names = list(dict.fromkeys(table.names[k] for pair in pairs for k in pair))
    what = f"{'; '.join(told[:8])} are the same but for unit and origin"
    return _finding(FindingKind.COPIES, names, what, without(gone, table.every))


def _pairs(table: Inspected) -> list[tuple[int, int]]:
    """Columns that are copies, in all rows together and within data sets; the earlier first."""
    if table.rows < ROWS:
        return []
    # Two values of a column that describes two data sets are those of any other.
    sites = np.logical_and.outer(table.of_sites, table.of_sites) & (len(table.stats.levels) > 2)
    within = table.data.scatter.sum(axis=0)
    alike = _same(table.data.total) & (_same(within) | sites)
    return [(int(a), int(b)) for a, b in np.argwhere(np.triu(alike, 1))]


def _same(S: Floats) -> Flags:
    """Which columns have a correlation of 1 or -1, (N, N)."""
    size = np.sqrt(np.maximum(S.diagonal(), 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.abs(S / np.outer(size, size)) > 1 - _SAME / 2)


def _collinear(table: Inspected) -> Finding | None:
    """Columns that earlier ones explain, in all rows together and within data sets."""
    gone = {b for _, b in _pairs(table)}
    odd = [table.constant[k] or table.of_sites[k] for k in range(len(table.names))]
    at = [k for k in range(len(table.names)) if k not in gone and not odd[k]]
    if table.rows <= len(at) + len(table.stats.levels) + ROWS:
        return None
    whole, within = (S[np.ix_(at, at)] for S in (table.data.total, table.data.scatter.sum(axis=0)))
    explained = (_left(whole) <= _SAME) & (_left(within) <= _SAME)
    found: dict[str, list[str]] = {}
    for k in np.flatnonzero(explained):
        by = np.flatnonzero(~explained[:k])
        b = np.linalg.solve(whole[np.ix_(by, by)], whole[by, k])
        used = by[np.abs(b) > _LEAST]
        found[table.names[at[k]]] = [table.names[at[i]] for i in used]
    told = [f"{name!r} of {listed([repr(n) for n in of])}" for name, of in found.items()]
    what = f"exact combinations of other columns: {'; '.join(told[:8])}"
    return _finding(FindingKind.COLLINEAR, list(found), what, without(found, table.every))


def _left(S: Floats) -> Floats:
    """The share of each column's variance that the earlier ones do not explain, (N,)."""
    size = np.sqrt(np.maximum(S.diagonal(), 1e-300))
    root = np.linalg.cholesky(S / np.outer(size, size) + _SAME / 1000 * np.eye(len(S)))
    return np.asarray(root.diagonal() ** 2)


def _skewed(table: Inspected) -> Finding | None:
    """Skewness within data sets, of columns of which nothing else is said that explains it."""
    skewness, rows = _skewness(table.stats), table.rows

    def has(k: int) -> bool:
        other = table.codes[k][1] or table.constant[k] or table.of_sites[k] or table.ids[k]
        few = table.stats.facts[k].distinct is not Distinct.MANY
        return abs(skewness[k]) > _SKEW and not other and not few and rows >= 2 * ROWS

    at = [k for k in range(len(table.names)) if has(k)]
    names = [table.names[k] for k in at]
    told = [f"{table.names[k]!r} ({skewness[k]:.1f})" for k in at]
    cells = [_unskewed(table, k, skewness[k] > 0) for k in at]
    what = f"strongly skewed, so that few rows decide: {listed(told)}"
    remedy: tuple[MessagePart, ...] = (
        "take logarithms or the like",
        InPython(f", {'; '.join(cells)}", " in the file"),
    )
    return _finding(FindingKind.SKEWED, names, what, remedy)


def _skewness(stats: GroupStats) -> Floats:
    """The mean over rows of the skewness in their data sets, whatever the scale there, (N,)."""
    n, squares = stats.n[:, None], np.einsum("jaa->ja", stats.scatter)
    varies = (squares > 0) & (n >= ROWS)
    each = stats.cubes * np.sqrt(n) / np.where(varies, squares, 1.0) ** 1.5
    weight = np.where(varies, n, 0)
    return np.asarray((weight * each).sum(axis=0) / np.maximum(weight.sum(axis=0), 1))


def _unskewed(table: Inspected, k: int, right: bool) -> str:
    """A transformation of a column, as pandas has it."""
    x, extent = f"frame[{table.names[k]!r}]", table.stats.facts[k].extent
    if not right:
        return f"{x} = -numpy.log({x}.max() + 1 - {x})"
    positive = extent is not None and extent.low.value > 0
    return f"{x} = numpy.{'log' if positive else 'arcsinh'}({x})"


def _uneven(table: Inspected) -> Finding | None:
    lost, n = table.stats.dropped.astype(float), table.data.n
    share = lost / np.maximum(lost + n, 1)
    low, high = int(share.argmin()), int(share.argmax())
    gap = float(share[high] - share[low])
    error = sqrt(sum(share[j] * (1 - share[j]) / max(lost[j] + n[j], 1) for j in (low, high)))
    if gap <= max(_LOST, _ERRORS * error) or table.stats.filled is not None:
        return None
    levels = (table.stats.levels[high], table.stats.levels[low])
    what = (
        f"data set {levels[0]!r} lost {share[high]:.0%} of its rows to missing values and "
        f"{levels[1]!r} {share[low]:.0%}, so those left may not be like the others"
    )
    remedy: tuple[MessagePart, ...] = ("keep them for the values that they have, with ", EM)
    return Finding(FindingKind.UNEVEN_LOSS, (), levels, int(lost.sum()), what, remedy)


def _missingness(table: Inspected) -> Finding | None:
    """What missing values depend on, where that is more than chance and not negligible."""
    patterns = table.stats.patterns
    if patterns is None:
        return None
    tests = patterns.missingness()
    there = tests["variable"].isin(table.names)
    on_sets = tests["depends_on"] == table.stats.group
    there &= on_sets | tests["depends_on"].isin(table.names)
    worth = tests["difference"].abs() > np.where(on_sets, _SHARES, _DIFFERENCE)
    found = tests[there & worth & (tests["p_adjusted"] < _SURE)].sort_values("p_adjusted")
    if found.empty:
        return None
    same = [found["depends_on"], found["difference"].round(9)]  # columns missing in the same rows
    alike = found.groupby(same, sort=False)["variable"].agg(list)
    told = [_dependence(patterns, names, *on) for on, names in alike.head(_TOLD).items()]
    more = f"; and {len(alike) - _TOLD} more" * (len(alike) > _TOLD)
    what = f"values are not missing by chance alone: {'; '.join(told)}{more}"
    remedy: tuple[MessagePart, ...] = (
        "learning allows for that if what they depend on is among the columns: keep such columns",
        InPython("; stats.patterns.missingness() has all tests", ""),
    )
    names = tuple(dict.fromkeys(found["variable"]))
    return Finding(FindingKind.MISSINGNESS, names, (), len(found), what, remedy)


def _dependence(patterns: PatternStats, names: list[str], on: str, difference: float) -> str:
    they = listed([repr(name) for name in names])
    if on != patterns.known.group:
        higher = "higher" if difference > 0 else "lower"
        return f"rows without {they} have {higher} {on!r} (by {abs(difference):.1f} SDs)"
    there = patterns.observed[:, patterns.names.index(names[0])]
    share = 1 - there / patterns.n
    measured = np.flatnonzero(there)
    most, least = (int(measured[at(share[measured])]) for at in (np.argmax, np.argmin))
    ends = [f"{share[j]:.0%} of {patterns.levels[j]!r}" for j in (most, least)]
    where = " and ".join(ends)
    return f"{they} {'is' if len(names) == 1 else 'are'} missing in {where}"


_LOOKS = (
    _row_names, _ids, _repeated, _missing_codes, _constants, _still, _mostly_still, _binary, _few,
    _copies, _collinear, _skewed, _uneven, _missingness,
)  # fmt: skip
