"""`ci_test`: are two columns independent given others?"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NoReturn

import numpy as np

from poolbn.arguments import NUMBER, TEXT, check_arguments, names_of
from poolbn.errors import DataError, InPython, Option, OptionError, check_option
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.kinds import MixedData
from poolbn.moments.standardised import standardise
from poolbn.nodes.choosing import as_pooling, check_data
from poolbn.nodes.model import Choice, NodeModel
from poolbn.nodes.poolings import NoPooling
from poolbn.run.compiling import kernels
from poolbn.scoring.separating import COMPLETE, GAUSSIAN, AskedTests, CITests, GaussianTests
from poolbn.wording import counted, listed

Test = Literal["auto", "t", "z", "mi-g", "f", "combined"]
# A user's own: the names of two columns and of those to condition on -> the p-value.
OwnTest = Callable[[str, str, tuple[str, ...]], float]
TESTS = ("auto", *GAUSSIAN)
_WORDS = {
    "t": "exact t test",
    "z": "Fisher's z test",
    "mi-g": "mutual information test",
    "f": "stratified F test",
    "combined": "combined test",
}


@dataclass(frozen=True, repr=False)
class IndependenceTest:
    """A test of whether two columns are independent given others.

    Attributes:
        test: "t", "z", "mi-g", "f" or "combined".
        x: a column.
        y: another.
        given: the columns that are conditioned on.
        statistic: t, z, the LR statistic of "mi-g", F, or the LR statistic of "combined".
        df: its degrees of freedom; for "combined" the number of data sets, or how many of one size
            would tell as much.
        df2: of the denominator of F; NaN for others.
        p_value: the probability of a statistic as large or larger under independence.
        correlation: the partial correlation; the mean of those of data sets where each has its own.
        n: rows that count.
        data_sets: those that count.
        left_out: those that do not: they have too few rows, a column is constant in them, a
            combination of others, or was not measured.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> found = pb.ci_test(pb.stats(trial, group="clinic"), "age", "bmi", pooling="complete")
        >>> found.test, found.df, round(found.p_value, 6)
        ('t', 748.0, 0.000359)
    """

    test: str
    x: str
    y: str
    given: tuple[str, ...]
    statistic: float
    df: float
    df2: float
    p_value: float
    correlation: float
    n: int
    data_sets: tuple[Hashable, ...]
    left_out: tuple[Hashable, ...]

    def __repr__(self) -> str:
        given = f" given {listed(self.given)}" if self.given else ""
        if self.test == "combined":
            freedom = f"{self.df:.4g} data set{'s' * (self.df != 1)}"
        elif math.isnan(self.df2):
            freedom = f"df = {self.df:.6g}"
        else:
            freedom = f"df = {self.df:.6g} and {self.df2:.6g}"
        lines = [
            f"{_WORDS[self.test]} of {self.x} and {self.y}{given}",
            f"  statistic = {self.statistic:.4g}, {freedom}, p-value = {self.p_value:.4g}",
            f"  partial correlation {self.correlation:.3f}; {counted(self.n, 'row')} in "
            f"{counted(len(self.data_sets), 'data set')}",
        ]
        if self.left_out:
            lines.append(f"  left out: {listed(list(map(str, self.left_out)))}")
        return "\n".join(lines)


def _own(test: OwnTest, names: tuple[str, ...], x: int, y: int, given: tuple[int, ...]) -> float:
    """The log p-value of a user's test."""
    columns = names[x], names[y], tuple(names[s] for s in given)
    p = test(*columns)
    if not NUMBER.holds(p) or not 0 <= p <= 1:
        raise OptionError(
            f"the test of {columns[0]!r} and {columns[1]!r} given {list(columns[2])} is {p!r}, "
            "and should be a p-value from 0 to 1"
        )
    return math.log(p) if p > 0 else -math.inf


def check_level(alpha: float) -> None:
    """Raise for what is not the level of a test."""
    check_arguments(alpha=(alpha, NUMBER))
    if not 0 < alpha < 1:
        raise OptionError(Option("alpha", alpha), " is not between 0 and 1; use 0.01 or 0.05")


def chosen_test(model: NodeModel, test: str) -> str:
    """The test of a name, where "auto" is the one for a pooling."""
    check_option("test", test, TESTS)
    if test != "auto":
        return test
    if model.complete:
        return "t"
    return "f" if isinstance(model, NoPooling) else "combined"


def check_test(test: object) -> None:
    """Raise for what is neither the name of a test nor a function."""
    if not callable(test) or isinstance(test, type):
        check_option("test", test, TESTS)


def make_tests(data: GroupStats | MixedData, model: NodeModel, test: Test | OwnTest) -> CITests:
    """The tests that a learner asks.

    Raises:
        DataError: there are columns that are not continuous, and the test is not the user's own.
    """
    if not isinstance(test, str):
        return AskedTests("own", partial(_own, test, data.names))
    if not isinstance(data, GroupStats):
        _refuse(data)
    return GaussianTests.on(standardise(data), chosen_test(model, test))


def _refuse(data: MixedData) -> NoReturn:
    other = [
        name for name, kind in zip(data.names, data.kinds, strict=True) if kind != "continuous"
    ]
    raise DataError(
        f"independence tests are for continuous columns, and {listed(other)} "
        f"{'is' if len(other) == 1 else 'are'} not; leave {'it' if len(other) == 1 else 'them'} "
        "out, or learn by scores",
        InPython(", pb.learn(data, search=pb.HillClimb())", ", --search hc"),
    )


def ci_test(
    data: GroupStats | MixedData,
    x: str,
    y: str,
    given: Iterable[str] = (),
    *,
    pooling: str | Choice = "partial",
    test: Test = "auto",
) -> IndependenceTest:
    """Test whether two columns are independent given others.

    With complete pooling all rows are one table. Without pooling, the F test compares regressions
    with slopes of each data set with such without. With partial pooling, correlations of the data
    sets are combined: they may have a common mean, and vary around it.

    Args:
        data: sufficient statistics, from `pb.stats`.
        x: a column.
        y: another. The test is the same if both are exchanged.
        given: columns to condition on; none by default.
        pooling: "complete", "none", "partial", or an object; it says which test "auto" is.
        test: "t" (exact), "z" (Fisher's) or "mi-g" for complete pooling, "f" for none, "combined"
            for partial pooling; "auto" follows the pooling.

    Raises:
        DataError: a column is unknown or occurs twice, or no data set has rows enough.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> pb.ci_test(stats, "bmi", "birthweight_g", ["age"])
        combined test of bmi and birthweight_g given age
          statistic = 1.203, 3.741 data sets, p-value = 0.3236
          partial correlation 0.041; 737 rows in 4 data sets
    """
    check_data(data)
    check_arguments(x=(x, TEXT), y=(y, TEXT))
    S = tuple([given] if isinstance(given, str) else names_of("given", given))
    _check_columns(data.names, x, y, S)
    if not isinstance(data, GroupStats):
        data = data.stats([x, y, *S]) if _continuous(data, (x, y, *S)) else data
    if not isinstance(data, GroupStats):
        _refuse(data)
    model = as_pooling(pooling).first(data.levels)
    name = chosen_test(model, test)
    at = {column: k for k, column in enumerate(data.names)}
    tests = GaussianTests.on(standardise(data), name)
    # The order of S is that of the table, so that it does not matter, not by a bit.
    results, used = tests.batch([(at[x], at[y])], [sorted(at[s] for s in S)])
    kernel = kernels("independence")
    row = results[0]
    counts = used[0] if name not in COMPLETE else np.full(len(data.levels), used[0, 0])
    if not counts.any():
        _raise_nothing(data, x, y, S)
    return IndependenceTest(
        name,
        x,
        y,
        S,
        float(row[kernel.STATISTIC]),
        float(row[kernel.DF1]),
        float(row[kernel.DF2]),
        math.exp(row[kernel.LOG_P]),
        float(row[kernel.CORRELATION]),
        int(data.n[counts].sum()),
        tuple(level for level, used in zip(data.levels, counts, strict=True) if used),
        tuple(level for level, used in zip(data.levels, counts, strict=True) if not used),
    )


def _continuous(data: MixedData, columns: Iterable[str]) -> bool:
    return all(data.kind(column) == "continuous" for column in columns)


def _check_columns(names: tuple[str, ...], x: str, y: str, given: tuple[str, ...]) -> None:
    from poolbn.moments.groupstats import positions

    if x == y:
        raise DataError(f"{x!r} is tested against itself; give two columns")
    for name in (x, y):
        if name in given:
            raise DataError(
                f"{name!r} is tested and conditioned on; take it out of ", Option("given")
            )
    positions(names, (x, y, *given))


def _raise_nothing(data: GroupStats, x: str, y: str, given: tuple[str, ...]) -> NoReturn:
    raise DataError(
        f"there is nothing to test {x!r} and {y!r} with: in each data set a column is constant or "
        f"a combination of others, or there are fewer than {len(given) + 4} rows (the largest has "
        f"{int(data.n.max())}); condition on fewer columns"
    )
