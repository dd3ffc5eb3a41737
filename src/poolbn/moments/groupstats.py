"""`GroupStats`: all that the models need to know of the rows, for each data set."""

from __future__ import annotations

import html
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from poolbn.arguments import names_of
from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import DataError, Option, left_out
from poolbn.moments.cases import OnlySums, check_family, counts_in_words
from poolbn.moments.facts import NOTHING, UNKNOWN, ColumnFacts, Distinct, joined
from poolbn.moments.patterns import Gaps
from poolbn.moments.statsfile import Saved
from poolbn.moments.sums import Sums
from poolbn.moments.targets import Interventions, added, among_columns, among_data_sets
from poolbn.moments.units import UnitSums, together
from poolbn.tables.grouping import DATA_SET
from poolbn.tables.labels import Spellings
from poolbn.wording import counted, listed, noun_of, shortened, visible

_NAMED = 8  # columns in a message


class Rare(NamedTuple):
    """Columns, a value of each, and how many rows of which data set have these together."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    data_set: Hashable
    rows: int


def rare_values(stats: GroupStats, least: int, *, pairs: bool = True) -> Iterator[Rare]:
    """Values, and pairs of values of two columns, that fewer rows of a data set have than `least`.

    Columns whose values are not known, as in a file, are skipped.
    """
    known = [
        (k, sorted(facts.values))
        for k, facts in enumerate(stats.facts)
        if facts.told is Distinct.NONE and facts.values is not None and len(facts.values) == 2
    ]
    n = stats.n.astype(np.float64)
    high = {k: n * (stats.mean[:, k] - values[0]) / (values[1] - values[0]) for k, values in known}
    for k, values in known:
        yield from _few(stats, [k], [values], np.array([n - high[k], high[k]]), least)
    for i, (a, first) in enumerate(known if pairs else []):
        for b, second in known[:i]:
            p, q = high[a], high[b]
            unit = (first[1] - first[0]) * (second[1] - second[0])
            both = stats.scatter[:, a, b] / unit + p * q / np.maximum(n, 1)
            cells = np.array([n - p - q + both, q - both, p - both, both])
            yield from _few(stats, [a, b], [first, second], cells, least)


def _few(
    stats: GroupStats,
    at: Sequence[int],
    values: Sequence[Sequence[float]],
    cells: Floats,
    least: int,
) -> Iterator[Rare]:
    """Of the cells of some columns, (cells, F), those that fewer rows have, but none."""
    rows = np.rint(np.nan_to_num(cells)).astype(np.int64)
    for cell, j in np.argwhere((rows > 0) & (rows < least)).tolist():
        codes = np.unravel_index(cell, [2] * len(at))
        yield Rare(
            tuple(stats.names[k] for k in at),
            tuple(own[int(code)] for own, code in zip(values, codes, strict=True)),
            stats.levels[j],
            int(rows[cell, j]),
        )


def check_values(stats: GroupStats, least: int) -> None:
    """Raise for values that few rows have."""
    found = list(rare_values(stats, least))
    if not found:
        return
    first, columns = found[0], list[str]()
    for rare in found:  # those of one column first
        if not set(rare.names) & set(columns):
            columns.append(rare.names[0])
    pairs = zip(first.names, first.values, strict=True)
    what = " and ".join(f"{name!r} = {value:g}" for name, value in pairs)
    rows = f"{counted(first.rows, 'row')} of data set {first.data_set!r}"
    also = f", and so other columns: {listed([repr(name) for name in columns[1:]], _NAMED)}"
    raise DataError(
        f"{rows} {'has' if first.rows == 1 else 'have'} {what}{also * (len(columns) > 1)}; sums of "
        f"products with a column of two values reveal what fewer than {least} rows have: of one "
        "row, the row; ",
        left_out(*columns),
        ", or write them all the same with ",
        Option("allow_small", True),
    )


# Data sets, and columns, that a summary lists.
SHOWN = 10


def data_set_lines(stats: GroupStats) -> list[str]:
    """Data sets with their rows."""
    cells = [(visible(level), rows, left) for level, rows, left in _shown(stats)]
    wide, long = (max(len(cell[k]) for cell in cells) for k in (0, 1))
    lines = [
        f"  {level:<{wide}}  {rows:>{long}} rows" + f", {left} dropped" * (left != "0")
        for level, rows, left in cells
    ]
    more = len(stats.levels) - SHOWN
    return [*lines, f"  ... and {more:,} more"] if more > 0 else lines


def units_line(units: UnitSums | None) -> list[str]:
    """How many units there are, where there are any."""
    if units is None:
        return []
    sizes = f"{units.size.min():.3g} to {units.size.max():.3g} rows each"
    return [f"units: {units.n_units:,} ({visible(units.name)}), {sizes}"]


def _shown(stats: GroupStats) -> Iterator[tuple[str, str, str]]:
    """Data sets, their rows and those that were dropped."""
    shown = zip(stats.levels[:SHOWN], stats.n.tolist(), stats.dropped.tolist(), strict=False)
    return ((str(level), f"{rows:,}", f"{left:,}") for level, rows, left in shown)


_ROUNDED = 1e-6  # of a number of units
_VARIES = 0.25  # of squares of a column of 0 and 1 inside units: more than rounding makes
# Rows that a data set must have to be written to a file that is handed on.
SMALLEST = 10
_OF_DATA_SETS = ("n", "mean", "scatter", "dropped", "cubes")  # arrays (F, ...)
_LARGEST = 1e75  # whose fourth power there is, and is less than the largest number


@dataclass(frozen=True, eq=False)
class Filled:
    """How missing cells were filled in: by EM in each data set, or by a network that drew them."""

    patterns: Any  # sums by what is missing, a `PatternStats`
    observed: Integers  # cells of each data set and column that are there, (F, N)
    # statistics that the rows may have had if no cell were missing; of the filled ones, and the
    # seed
    draw: Callable[[GroupStats, Sequence[int]], GroupStats]
    by_network: bool = False  # whether a network drew the cells
    # then what rows of a configuration of drawn levels count, (F,); None for as many as there are
    counted: Floats | None = None

    def rows(self, n: Integers) -> Floats:
        """What n rows of each data set count for, (F,): as many as would have the observed cells.

        But scores of what a network drew know what is missing.
        """
        if self.by_network:
            return n.astype(np.float64) if self.counted is None else self.counted
        return np.asarray(self.observed.sum(axis=1) / self.observed.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class GroupStats(OnlySums):
    """Row count, mean vector and centred scatter matrix of each data set.

    Statistics add up: `a + b` are the statistics of the rows of both. Arrays are read-only.

    Attributes:
        names: the N columns.
        levels: the F data sets, in order of first appearance.
        n: rows of each data set, (F,).
        mean: mean of each column in each data set, (F, N).
        scatter: centred sums of squares and products in each data set, (F, N, N).
        dropped: rows of each data set left out because a cell is missing, (F,).
        group: the column that says which data set a row came from.
        facts: what the values of each of the N columns look like, such as their resolution. Files
            keep a part of it, and statistics made by hand have none.
        inputs: columns that are parents only, and have no distribution.
        cubes: sums of cubes of differences from the mean, for skewness, (F, N); NaN where they are
            not known, as in statistics from files.
        filled: where cells were missing, what was observed; else None. Then means and scatter are
            expected ones, and do not add up: `patterns` do.
        units: sums of units inside data sets; None where there are none. They add up as long as no
            unit has rows in two parts.
        interventions: the columns that were set, for data sets in which some were.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> north = pb.stats(trial[trial["clinic"].isin(["NY", "MN"])], group="clinic")
        >>> south = pb.stats(trial[trial["clinic"].isin(["KY", "MS"])], group="clinic")
        >>> north + south
        GroupStats: 750 rows, 4 clinics, 2 columns
        columns: age, bmi
          NY  116 rows
          MN  237 rows
          KY  205 rows
          MS  192 rows
    """

    names: tuple[str, ...]
    levels: tuple[Hashable, ...]
    n: Integers
    mean: Floats
    scatter: Floats
    dropped: Integers
    group: str = DATA_SET
    facts: tuple[ColumnFacts, ...] = ()
    inputs: tuple[str, ...] = ()
    cubes: Floats = field(default_factory=lambda: np.zeros(0))
    filled: Filled | None = None
    units: UnitSums | None = None
    interventions: Interventions = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.facts:
            object.__setattr__(self, "facts", (UNKNOWN,) * len(self.names))
        if not self.cubes.size:
            object.__setattr__(self, "cubes", np.full(self.mean.shape, np.nan))
        for array in (self.n, self.mean, self.scatter, self.dropped, self.cubes):
            array.flags.writeable = False

    @property
    def missing(self) -> Integers:
        """Missing cells of each data set and column that are filled in, (F, N)."""
        if self.filled is None:
            return np.zeros(self.mean.shape, dtype=np.int64)
        return np.asarray(self.n[:, None] - self.filled.observed)

    @property
    def imputed(self) -> bool:
        """Whether missing cells are filled in."""
        return self.filled is not None

    @property
    def unit(self) -> str | None:
        """The column that says which unit of its data set a row is of; None without units."""
        return None if self.units is None else self.units.name

    @property
    def without_units(self) -> GroupStats:
        """The same rows, those of a unit taken for independent."""
        return replace(self, units=None)

    def drawn(self, k: int) -> GroupStats:
        """The k-th statistics that the rows may have had if no cell were missing."""
        return self if self.filled is None else self.filled.draw(self, [k])

    def stats(self, columns: Iterable[str] | None = None) -> GroupStats:
        """The statistics themselves, or those of some columns.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.stats(trial, group="clinic").stats(["bmi"]).names
            ('bmi',)
        """
        return self if columns is None else self.select(columns)

    def data_sets(self, at: Sequence[int] | Integers, levels: Iterable[Hashable]) -> GroupStats:
        """The data sets at these positions, which may repeat, under other names."""
        new = tuple(levels)
        targets = among_data_sets(self.interventions, self.levels, at, new)
        if self.patterns is not None:
            return self._completed(self.patterns.data_sets(at, new))._with(interventions=targets)
        arrays = {name: getattr(self, name)[at] for name in _OF_DATA_SETS}
        units = None if self.units is None else self.units.taken(at)
        return replace(self, levels=new, units=units, **arrays)._with(interventions=targets)

    def joined(self, alone: Sequence[int], name: Hashable) -> GroupStats:
        """These data sets apart, and all others as one, the last."""
        if self.patterns is not None:  # which add up
            made = self._completed(self.patterns.joined(alone, name))
            return made._with(interventions=self._targets_joined(alone, name))
        return super().joined(alone, name)

    def _completed(self, patterns: Any) -> GroupStats:
        """The same columns, completed anew."""
        whole: GroupStats = patterns.completed()
        return whole.select(self.names).with_inputs(self.inputs)

    @property
    def patterns(self) -> Any:
        """Where cells were missing, sums by what was, a `pb.PatternStats`; else None."""
        return None if self.filled is None else self.filled.patterns

    def __add__(self, other: GroupStats) -> GroupStats:
        """Statistics of the rows of both: data sets of the same name become one.

        Raises:
            DataError: the columns differ, or names of data sets only by type or spelling.
        """
        if not isinstance(other, GroupStats):
            return NotImplemented
        if self.filled or other.filled:
            raise DataError(
                "statistics with missing cells filled in do not add up; add their patterns, "
                "(a.patterns + b.patterns).completed()"
            )
        check_same(self, other)
        return total((self, other))

    def _chosen(self, names: tuple[str, ...], at: list[int]) -> GroupStats:
        columns = np.array(at)
        return GroupStats(
            names,
            self.levels,
            self.n,
            self.mean[:, columns],
            self.scatter[:, columns[:, None], columns],
            self.dropped,
            self.group,
            tuple(self.facts[i] for i in at),
            tuple(name for name in names if name in self.inputs),
            self.cubes[:, columns],
            self.filled and replace(self.filled, observed=self.filled.observed[:, columns]),
            None if self.units is None else self.units.chosen(columns),
            among_columns(self.interventions, names),
        )

    def family(self, child: str, parents: Sequence[str]) -> GroupStats:
        """The statistics of one regression: the parents, and the child last.

        Raises:
            DataError: a name is unknown or occurs twice.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.stats(trial, group="clinic").family("bmi", ["age"]).scatter.shape
            (4, 2, 2)
        """
        check_family(self.names, child, names_of("parents", parents))
        return self.select((*parents, child))

    def _to_save(self, *, allow_small: bool) -> Saved:
        if self.filled:
            raise DataError(
                "statistics with missing cells filled in are not saved; save what was observed, "
                "stats.patterns.save(path)"
            )
        if not allow_small:
            check_size(self.levels, self.n)
            check_values(self, SMALLEST)
        if self.units is None or allow_small:
            return saved_of(self)
        return saved_of(replace(self, units=_shareable(self, self.units)))

    @classmethod
    def _of_saved(cls, saved: Saved) -> GroupStats:
        return GroupStats(*saved[:9], units=saved.units, interventions=saved.interventions or {})

    def __repr__(self) -> str:
        columns = f"columns: {visible(shortened(self.names, SHOWN))}"
        head = [f"GroupStats: {counts_in_words(self)}", columns, *units_line(self.units)]
        return "\n".join([*head, *data_set_lines(self)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(level)}</td><td>{n}</td><td>{left}</td></tr>"
            for level, n, left in _shown(self)
        )
        if len(self.levels) > SHOWN:
            rows += f'<tr><td colspan="3">and {len(self.levels) - SHOWN:,} more</td></tr>'
        return (
            f"<p><b>GroupStats</b>: {counts_in_words(self)}<br>columns: "
            f"{html.escape(shortened(self.names, SHOWN))}</p><table><thead><tr>"
            f"<th>{noun_of(self.group).one}</th><th>rows</th><th>dropped</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def check_same(left: Any, right: Any) -> None:
    """Raise for statistics that cannot be added since their columns or inputs differ."""
    lacking = [c for c in right.names if c not in left.names]
    extra = [c for c in left.names if c not in right.names]
    if lacking or extra:
        sides = (("the left lacks", lacking), ("the right lacks", extra))
        told = "; ".join(f"{side} {', '.join(map(repr, cs))}" for side, cs in sides if cs)
        raise DataError(
            f"cannot add statistics of different columns: {told}; select() common columns first"
        )
    if set(left.inputs) != set(right.inputs):
        both = " and ".join(listed(s.inputs) or "none" for s in (left, right))
        raise DataError(
            f"cannot add statistics of different inputs, {both}; give both the same "
            "with_inputs() first"
        )


def total(parts: Iterable[GroupStats]) -> GroupStats:
    """Statistics of the rows of all parts, which have the same columns; one part at a time.

    Data sets of the same name become one. There is at least one part.
    """
    coming = iter(parts)
    first = next(coming)
    sums = Sums.zeros(0, len(first.names))
    facts = (NOTHING,) * len(first.names)
    index: dict[Hashable, int] = {}
    spellings = Spellings()
    units: list[tuple[UnitSums, Integers, Floats]] = []
    targets: list[tuple[Sequence[Hashable], Interventions]] = []
    for part in chain((first,), coming):
        targets.append((part.levels, part.interventions))
        spellings.add(part.levels)
        if (part.units is None) != (first.units is None):
            raise DataError(
                "some of the statistics have units inside data sets and others do not; make all of "
                "them with the same group"
            )
        same = part if part.names == first.names else part.select(first.names)
        at = np.array([index.setdefault(v, len(index)) for v in same.levels], dtype=np.intp)
        sums = sums.grown(len(index))
        sums.dropped[at] += same.dropped
        facts = joined(facts, same.facts)
        some = slice(None) if same.n.all() else same.n > 0  # a file may have dropped rows only
        moments = (same.mean[some], same.scatter[some], same.cubes[some])
        sums.add(at[some], same.n[some], *moments)
        if same.units is not None:
            units.append((same.units, at, same.mean))
    whole = of_sums(first.names, tuple(index), sums.cut(len(index)), first.group, facts)
    whole = replace(whole, inputs=first.inputs, units=_units_of(units, whole.mean))
    return whole._with(interventions=added(targets))


def _units_of(parts: Sequence[tuple[UnitSums, Integers, Floats]], mean: Floats) -> UnitSums | None:
    """Units of all parts; with each the data sets that its own are, and their means in it."""
    if not parts:
        return None
    found = [part.moved(mean[at] - own) for part, at, own in parts]
    places = [at for _, at, _ in parts]
    return together(parts[0][0].name, found, places, mean.shape[1])


def of_sums(
    names: tuple[str, ...],
    levels: tuple[Hashable, ...],
    sums: Sums,
    group: str,
    facts: tuple[ColumnFacts, ...],
) -> GroupStats:
    """The statistics, finished."""
    wrong = ~np.isfinite(sums.scatter)
    if wrong.any():
        own = np.einsum("jaa->ja", wrong).any(axis=0)  # products with others are wrong beside it
        too_large = own if own.any() else wrong.any(axis=(0, 1))
        raise DataError(
            f"squares of column {names[int(too_large.argmax())]!r} are too large for floating "
            "point; give it a larger unit"
        )
    arrays = (sums.n, sums.mean, sums.scatter, sums.dropped)
    return GroupStats(names, levels, *arrays, group, facts, cubes=sums.cubes)


def saved_of(stats: GroupStats, gaps: Gaps | None = None) -> Saved:
    """What a file keeps."""
    own: Any = {name: getattr(stats, name) for name in Saved._fields[:9]}
    return Saved(**own, gaps=gaps, units=stats.units, interventions=stats.interventions)


def _shareable(stats: GroupStats, units: UnitSums) -> UnitSums:
    """Units that are told of in groups of the fewest that may be; raises where there are fewer."""
    few = units.in_data_sets(len(stats.levels)) < SMALLEST
    if few.any():
        level = stats.levels[int(few.argmax())]
        raise DataError(
            f"data set {level!r} has fewer than {SMALLEST} units ({units.name!r}), and sums of "
            "few units reveal them; leave it out, merge data sets, or write them anyway with ",
            Option("allow_small", True),
        )
    binary = [k for k, facts in enumerate(stats.facts) if facts.values and len(facts.values) == 2]
    low, high = (
        np.array([of(stats.facts[k].values or [0.0, 1.0]) for k in binary]) for of in (min, max)
    )

    _check_varying(stats, units, binary, high - low)

    def having(some: UnitSums) -> Floats:
        """At most how many units have a value of a column with two, inf for none: (C, columns).

        Of units with s_i rows that have it, (sum s_i)^2 / sum s_i^2 is no more than how many have.
        """
        found = []
        m, k = some.size[:, None], some.count[:, None]
        square = np.einsum("caa->ca", some.squares)[:, binary]
        for end, sign in ((low, 1.0), (high, -1.0)):
            off = sign * (stats.mean[some.data_set][:, binary] - end)
            unit = high - low
            rows = (sign * some.sums[:, binary] + k * m * off) / unit
            squares = (
                square + 2 * m * off * sign * some.sums[:, binary] + k * (m * off) ** 2
            ) / unit**2
            found.append(np.where(rows < 0.5, np.inf, rows**2 / np.maximum(squares, 0.25)))
        return np.hstack(found)

    def good(some: UnitSums) -> Flags:
        enough = (having(some) > SMALLEST - _ROUNDED).all(axis=1)
        return np.asarray((some.count >= SMALLEST) & enough)

    found = units.merged(good)
    if not good(found).all():
        c = int((~good(found)).argmax())
        name = stats.names[binary[int(having(found)[c].argmin()) % len(binary)]]
        raise DataError(
            f"too few units ({units.name!r}) of data set {stats.levels[found.data_set[c]]!r} have "
            f"one of the two values of {name!r}, and sums of few units reveal them; ",
            left_out(name), ", or write them anyway with ", Option("allow_small", True),
        )  # fmt: skip
    return found


def _check_varying(stats: GroupStats, units: UnitSums, binary: Sequence[int], unit: Floats) -> None:
    """Raise where a column with two values may vary inside few units only.

    What is left inside units of its products with another column is then of their rows alone. In a
    unit of m rows squares of 0 and 1 about the mean are m / 4 or less, so that the largest units,
    with half of their rows at each value, are the fewest that can have given what is there.
    """
    if not binary or not (units.size > 1).any():
        return
    own = np.einsum("caa->ca", units.squares)[:, binary] / units.size[:, None]
    inside = np.einsum("jaa->ja", stats.scatter)[:, binary].copy()
    np.subtract.at(inside, units.data_set, own)
    inside /= unit**2
    fewest = np.empty_like(inside)
    for j, squares in enumerate(inside):
        at = np.flatnonzero((units.data_set == j) & (units.size > 1))
        at = at[np.argsort(-units.size[at], kind="stable")]
        count = units.count[at].astype(np.float64)
        most = np.cumsum([0.0, *(count * units.size[at] / 4)])
        fewest[j] = np.interp(squares, most, np.cumsum([0.0, *count]))
    few = (inside > _VARIES) & (fewest < SMALLEST - _ROUNDED)
    if few.any():
        j, k = np.argwhere(few)[0]
        name = stats.names[binary[k]]
        raise DataError(
            f"{name!r} may vary inside fewer than {SMALLEST} units ({units.name!r}) of data set "
            f"{stats.levels[j]!r}, and sums of products reveal these; correct it if it describes "
            "units, ", left_out(name), ", or write them anyway with ", Option("allow_small", True),
        )  # fmt: skip


def check_magnitude(names: Sequence[str], size: Floats) -> None:
    """Raise for a column whose values, of about this size (N,), have no fourth power in floats."""
    wrong = (size > _LARGEST) | ((size > 0) & (size < 1 / _LARGEST))
    if wrong.any():
        k = int(wrong.argmax())
        size_words, unit = ("large", "larger") if size[k] > 1 else ("small", "smaller")
        raise DataError(
            f"values of column {names[k]!r} are about {size[k]:.2g}, too {size_words} to calculate "
            f"with; give it a {unit} unit"
        )


def check_size(levels: Sequence[Hashable], rows: Integers) -> None:
    """Raise for data sets of few rows."""
    few = [
        f"{level!r} has {n}" for level, n in zip(levels, rows.tolist(), strict=True) if n < SMALLEST
    ]
    if few:
        more = f", and so {len(few)} data sets in all" if len(few) > SHOWN else ""
        raise DataError(
            f"data sets have fewer than {SMALLEST} rows: {', '.join(few[:SHOWN])}{more}; "
            "sufficient statistics of few rows reveal them: with one row the mean is that row; "
            "merge data sets, leave small ones out, or write them all the same with ",
            Option("allow_small", True),
        )
