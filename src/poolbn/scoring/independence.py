"""`ci_test`: are two columns independent given others?"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NoReturn

from poolbn.arguments import NUMBER, TEXT, check_arguments, names_of
from poolbn.errors import DROP, DataError, Option, OptionError, check_option
from poolbn.moments.cases import positions
from poolbn.moments.data import Data, check_data, is_continuous
from poolbn.moments.standardised import standardise
from poolbn.nodes.choosing import as_pooling
from poolbn.nodes.model import Choice, NodeModel
from poolbn.nodes.poolings import NoPooling
from poolbn.scoring.columntests import ColumnTests
from poolbn.scoring.separating import GAUSSIAN, AskedTests, CITests, GaussianTests
from poolbn.tables.grouping import DATA_SET
from poolbn.wording import counted, listed, noun_of

Test = Literal["auto", "t", "z", "mi-g", "f", "combined", "lr"]
# A user's own: the names of two columns and of those to condition on -> the p-value.
OwnTest = Callable[[str, str, tuple[str, ...]], float]
TESTS = ("auto", *GAUSSIAN, "lr")
_WORDS = {
    "t": "exact t test",
    "z": "Fisher's z test",
    "mi-g": "mutual information test",
    "f": "stratified F test",
    "combined": "combined test",
    "lr": "likelihood ratio test",
}


@dataclass(frozen=True, repr=False)
class IndependenceTest:
    """A test of whether two columns are independent given others.

    Attributes:
        test: "t", "z", "mi-g", "f", "combined" or "lr".
        x: a column.
        y: another.
        given: the columns that are conditioned on.
        statistic: t, z, F, or the LR statistic of the others; of "lr" F where its distribution is
            that, see `pb.ci_test`.
        df: its degrees of freedom; for "combined" the number of data sets, or how many of one size
            would tell as much; for "lr" with partial pooling the parameters that x adds.
        df2: of the denominator of F; for "combined" of columns that are not both continuous the
            scores of each data set; NaN for others.
        p_value: the probability of a statistic as large or larger under independence.
        correlation: the partial correlation; the mean of those of data sets where each has its own;
            NaN where a column is not continuous, and for "lr".
        n: rows that count.
        data_sets: those that count.
        left_out: those that do not: they have too few rows, a column is constant in them, a
            combination of others, or was not measured.
        group: the column that says which data set a row came from.

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
    group: str = DATA_SET

    def __repr__(self) -> str:
        given = f" given {listed(self.given)}" if self.given else ""
        noun = noun_of(self.group)
        if self.test == "combined":
            freedom = f"{self.df:.4g} {noun.one if self.df == 1 else noun.many}"
            if not math.isnan(self.df2):
                freedom += f", {counted(int(self.df2), 'score')} of each"
        elif math.isnan(self.df2):
            freedom = f"df = {self.df:.6g}"
        else:
            freedom = f"df = {self.df:.6g} and {self.df2:.6g}"
        rows = f"{counted(self.n, 'row')} in {counted(len(self.data_sets), noun)}"
        if not math.isnan(self.correlation):
            rows = f"partial correlation {self.correlation:.3f}; {rows}"
        lines = [
            f"{_WORDS[self.test]} of {self.x} and {self.y}{given}",
            f"  statistic = {self.statistic:.4g}, {freedom}, p-value = {self.p_value:.4g}",
            f"  {rows}",
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


def chosen_test(data: Data, model: NodeModel, test: str) -> str:
    """The test of a name, where "auto" is the one for a pooling."""
    check_option("test", test, TESTS)
    if test != "auto":
        return test
    mixed = not is_continuous(data)
    if model.complete:
        return "lr" if mixed else "t"
    if isinstance(model, NoPooling):
        return "lr" if mixed else "f"
    return "combined"


def check_test(test: object) -> None:
    """Raise for what is neither the name of a test nor a function."""
    if not callable(test) or isinstance(test, type):
        check_option("test", test, TESTS)


def make_tests(data: Data, model: NodeModel, test: Test | OwnTest) -> CITests:
    """The tests that a learner asks."""
    if not isinstance(test, str):
        return AskedTests("own", partial(_own, test, data.names))
    name = chosen_test(data, model, test)
    _check_complete(data)
    if is_continuous(data) and name != "lr":
        return GaussianTests.on(standardise(data.stats()), name)
    return AskedTests(name, ColumnTests(data, model, name).log_p)


def _check_complete(data: Data) -> None:
    if data.has_rows and data.imputed:
        raise DataError("independence tests need rows without missing cells; use ", DROP)


def ci_test(
    data: Data,
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

    "lr" is the likelihood ratio of nested models of nodes. With complete and no pooling it is an F
    test if one of the two columns is continuous, else a chi-squared test: the G test of discrete
    columns, or the mean of the ratios of both regressions. With partial pooling one of the two must
    be continuous, and the null distribution is by random rotations of its residuals.

    Args:
        data: sufficient statistics, from `pb.stats`, or rows with columns of all kinds, from
            `pb.table`.
        x: a column.
        y: another. The test is the same if both are exchanged.
        given: columns to condition on; none by default.
        pooling: "complete", "none", "partial", or an object; it says which test "auto" is.
        test: "t" (exact), "z" (Fisher's) or "mi-g" for complete pooling, "f" for none, "combined"
            for partial pooling, "lr" for all; "auto" follows the pooling, and is "lr" for columns
            that are not continuous with complete and no pooling.

    Raises:
        DataError: a column is unknown or occurs twice, or no data set has rows enough.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi", "birthweight_g"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> pb.ci_test(stats, "bmi", "birthweight_g", ["age"])
        combined test of bmi and birthweight_g given age
          statistic = 1.203, 3.741 clinics, p-value = 0.3236
          partial correlation 0.041; 737 rows in 4 clinics
    """
    check_data(data)
    check_arguments(x=(x, TEXT), y=(y, TEXT))
    S = tuple([given] if isinstance(given, str) else names_of("given", given))
    _check_columns(data.names, x, y, S)
    if data.has_rows:
        data = data.select([x, y, *S])
        data = data.stats() if is_continuous(data) else data
    _check_complete(data)
    model = as_pooling(pooling).first(data.levels)
    at = {column: k for k, column in enumerate(data.names)}
    tests = ColumnTests(data, model, chosen_test(data, model, test))
    found = tests.outcome(at[x], at[y], [at[s] for s in S])
    if math.isnan(found.log_p):
        _raise_nothing(data, x, y, S)
    return IndependenceTest(
        found.test,
        x,
        y,
        S,
        found.statistic,
        found.df,
        found.df2,
        math.exp(found.log_p),
        found.correlation,
        int(data.n[found.used].sum()),
        tuple(level for level, used in zip(data.levels, found.used, strict=True) if used),
        tuple(level for level, used in zip(data.levels, found.used, strict=True) if not used),
        data.group,
    )


def _check_columns(names: tuple[str, ...], x: str, y: str, given: tuple[str, ...]) -> None:
    if x == y:
        raise DataError(f"{x!r} is tested against itself; give two columns")
    for name in (x, y):
        if name in given:
            raise DataError(
                f"{name!r} is tested and conditioned on; take it out of ", Option("given")
            )
    positions(names, (x, y, *given))


def _raise_nothing(data: Data, x: str, y: str, given: tuple[str, ...]) -> NoReturn:
    raise DataError(
        f"there is nothing to test {x!r} and {y!r} with: in each data set a column is constant or "
        f"a combination of others, or there are fewer than {len(given) + 4} rows (the largest has "
        f"{int(data.n.max())}); condition on fewer columns"
    )
