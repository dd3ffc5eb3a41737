"""`ci_test`: are two columns independent given others?"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from typing import Literal

import numpy as np

from poolbn.arguments import NUMBER, TEXT, check_arguments, names_of
from poolbn.arrays import Floats
from poolbn.constants import RANK_TOLERANCE
from poolbn.errors import DROP, DataError, Option, OptionError, check_option
from poolbn.moments.cases import check_no_units, positions
from poolbn.moments.data import Data, check_data, is_continuous
from poolbn.moments.indicators import spans
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.nodes.choosing import as_pooling
from poolbn.nodes.design import design_of, owners_of, varying_parent
from poolbn.nodes.links import Family, Response
from poolbn.nodes.model import Choice, NodeModel, same_for_all
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.problems import Problems
from poolbn.nodes.regression import regression_score
from poolbn.scoring.combined import ScoreVectors
from poolbn.scoring.rotating import Outcome, lr_test, partial_scatter
from poolbn.scoring.separating import COMPLETE, GAUSSIAN, AskedTests, CITests, GaussianTests
from poolbn.tables.grouping import DATA_SET
from poolbn.tables.kinds import has_levels, is_normal
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


@dataclass(frozen=True, eq=False)
class ColumnTests:
    """Tests of the columns of one table."""

    data: Data  # columns of all kinds
    model: NodeModel  # of nodes: its pooling says how data sets are tested together
    test: str  # one of `GAUSSIAN`, or "lr"

    @cached_property
    def _numbers(self) -> StandardisedStats:
        return standardise(self.data.stats())

    @cached_property
    def _spans(self) -> list[range]:
        """The columns of numbers that each column is."""
        return spans(self.data.categories)

    @cached_property
    def _gaussian(self) -> GaussianTests:
        return GaussianTests.on(self._numbers, self._named)

    @cached_property
    def _scores(self) -> ScoreVectors:
        return ScoreVectors(self.data)

    @property
    def _named(self) -> str:
        """The test of two continuous columns: ratios are functions of exact tests there."""
        if self.test == "lr" and self.model.complete:
            return "t"
        return "f" if self.test == "lr" and isinstance(self.model, NoPooling) else self.test

    def _continuous(self, k: int) -> bool:
        return is_normal(self.data.kinds[k])

    def log_p(self, x: int, y: int, S: Sequence[int]) -> float:
        """The log p-value alone."""
        return self.outcome(x, y, S).log_p

    def outcome(self, x: int, y: int, S: Sequence[int]) -> Outcome:
        """The test of columns x and y given others, as positions in the table."""
        own = [k for s in S for k in self._spans[s]]
        both = self._continuous(x) and self._continuous(y)
        if both and self._named in GAUSSIAN:
            return self._correlation(self._spans[x][0], self._spans[y][0], own)
        if not both and self.test not in ("combined", "lr"):
            other = self.data.names[y if self._continuous(x) else x]
            raise OptionError(
                Option("test", self.test),
                f" is for continuous columns, and {other!r} is not; use ",
                Option("test", "auto"),
            )
        if not self._spans[x] or not self._spans[y]:  # a level that all rows have
            return self._nothing()
        if self.test == "combined":
            names = self.data.names
            return self._scores.test(names[x], names[y], [names[s] for s in S])
        if not self._continuous(y):
            x, y = y, x
        if not self._continuous(y):
            return self._ratio(x, y, S)
        at, block = self._spans[y][0], list(self._spans[x])
        if self.model.complete or isinstance(self.model, NoPooling):
            return self._f(at, block, own)
        # Random effects are full, residuals as asked.
        model = self.model
        mixed = Partial(residuals=model.residuals) if isinstance(model, Partial) else Partial()
        return lr_test(self._numbers, mixed, at, block, own)

    def _nothing(self) -> Outcome:
        return Outcome(self.test, np.zeros(len(self.data.levels), dtype=bool))

    def _correlation(self, x: int, y: int, S: list[int]) -> Outcome:
        """Of partial correlations. S is in order, so that its order does not matter by a bit."""
        tests = self._gaussian
        row, used = tests.one(x, y, sorted(S))
        if tests.test in COMPLETE:
            used = np.full(len(self.data.levels), used[0])
        return Outcome(tests.test, used, *row.tolist())

    def _f(self, y: int, x: list[int], S: list[int]) -> Outcome:
        """The F test of a continuous column and a block of others, in all rows or each data set."""
        from scipy.special import fdtrc

        data = self._numbers
        scatter, n, lacking = data.scatter, data.n, data.unmeasured[:, [y, *x, *S]].any(axis=1)
        if self.model.complete:
            scatter, n, lacking = data.total[None], np.array([data.rows]), np.zeros(1, dtype=bool)
        explained = total = df1 = df2 = 0.0
        used = np.zeros(len(n), dtype=bool)
        for j in np.flatnonzero(~lacking):
            left, rank = partial_scatter(scatter[j], [*x, y], S)
            after, own = partial_scatter(left, [len(x)], range(len(x)))
            free = n[j] - 1 - rank - own
            if own and free >= 1 and left[-1, -1] > RANK_TOLERANCE * scatter[j, y, y]:
                used[j] = True
                explained += left[-1, -1] - after[0, 0]
                total += after[0, 0]
                df1, df2 = df1 + own, df2 + free
        if not used.any():
            return self._nothing()
        statistic = math.inf if total <= 0 else explained / df1 / (total / df2)
        counts = np.full(len(self.data.levels), used[0]) if self.model.complete else used
        return Outcome("lr", counts, statistic, df1, df2, _log(fdtrc(df1, df2, statistic)))

    def _ratio(self, x: int, y: int, S: Sequence[int]) -> Outcome:
        """The likelihood ratio of two columns that are discrete or counts, against a chi-square."""
        from scipy.special import chdtrc

        if not self.model.complete and not isinstance(self.model, NoPooling):
            names = self.data.names
            raise OptionError(
                Option("test", "lr"),
                f" of {names[x]!r} and {names[y]!r} has no null distribution that is known with "
                "partial pooling, as neither is continuous; use ",
                Option("test", "combined")
                if self.data.unit is None
                else Option("pooling", "complete"),
            )
        discrete = self.data.unit is None and all(
            has_levels(self.data.kinds[k]) for k in (x, y, *S)
        )
        statistic, df = self._counted(x, y, S) if discrete else self._regressed(x, y, S)
        if df == 0 or not math.isfinite(statistic):
            return self._nothing()
        every = np.ones(len(self.data.levels), dtype=bool)
        return Outcome("lr", every, statistic, df, log_p=_log(chdtrc(df, max(statistic, 0.0))))

    def _counted(self, x: int, y: int, S: Sequence[int]) -> tuple[float, float]:
        """The G test. Only levels that occur with a configuration of S count."""
        rows = self.data.cases([self.data.names[k] for k in (x, y, *S)])
        codes = [column.astype(np.int64) for column in rows.columns]
        strata = [*codes[2:]] if self.model.complete else [rows.data_set, *codes[2:]]
        at = np.zeros(len(codes[0]), dtype=np.int64)
        if strata:
            at = np.unique(np.vstack(strata), axis=1, return_inverse=True)[1].ravel()
        sizes = [int(at.max(initial=0)) + 1, *(len(self._spans[k]) + 1 for k in (x, y))]
        cell = np.ravel_multi_index((at, codes[0], codes[1]), sizes)
        n = np.bincount(cell, rows.n, minlength=math.prod(sizes)).reshape(sizes)
        of_x, of_y, of_all = n.sum(2, keepdims=True), n.sum(1, keepdims=True), n.sum((1, 2))
        expected = of_x * of_y / np.maximum(of_all, 1)[:, None, None]
        there = n > 0
        statistic = 2 * float((n[there] * np.log(n[there] / expected[there])).sum())
        free = ((of_x > 0).sum((1, 2)) - 1) * ((of_y > 0).sum((1, 2)) - 1)
        return statistic, float(np.maximum(free, 0).sum())

    def _regressed(self, x: int, y: int, S: Sequence[int]) -> tuple[float, float]:
        """Of logistic and count regressions, the mean of both ways."""
        table = self.data
        how = Complete() if self.model.complete else NoPooling()
        given = sorted(table.names[s] for s in S)
        ratios = []
        for child, other in ((x, y), (y, x)):
            columns = [table.names[k] for k in (other, *S)]
            if varying_parent(table, table.names[child], columns) is not None:
                continue  # one value a unit says nothing of what varies inside units
            K = len(table.categories[child])
            response = Response(levels=K) if K else Response(Family.NEGATIVE_BINOMIAL)
            name, none = table.names[child], same_for_all(0.0).each
            less, more = (
                regression_score(
                    Problems(design_of(table, name, own), response, owners_of(table, own)),
                    [how], none, final=False,
                )[0]
                for own in (given, sorted([*given, table.names[other]]))
            )  # fmt: skip
            ratios.append(2 * (more - less))
        if not ratios:
            return 0.0, 0.0
        own = [k for s in S for k in self._spans[s]]
        data = self._numbers
        scatter = data.total[None] if self.model.complete else data.scatter
        df = sum(math.prod(_rank(each, self._spans[k], own) for k in (x, y)) for each in scatter)
        return float(np.mean(ratios)), df


def _rank(scatter: Floats, columns: range, S: list[int]) -> int:
    """Of what S leaves of some columns."""
    left, _ = partial_scatter(scatter, columns, S)
    own = max(float(scatter[columns, columns].max()), 1e-300)
    return int((np.linalg.eigvalsh(left) > RANK_TOLERANCE * own).sum())


def _log(p: float) -> float:
    return math.log(p) if p > 0 else -math.inf


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
    if data.unit is not None and test == "auto":
        name = "lr"  # of models that have units
    _check_complete(data)
    _check_no_experiments(data)
    if name != "lr":
        check_no_units(data, f"the test {name!r}", "use ", Option("test", "lr"))
    if is_continuous(data) and name != "lr":
        return GaussianTests.on(standardise(data.stats()), name)
    return AskedTests(name, ColumnTests(data, model, name).log_p)


def _check_no_experiments(data: Data) -> None:
    if data.interventions:
        raise DataError(
            "independence tests do not know what was set in which data set, and would take it for "
            "an effect; use ", Option("search", "auto"), " in place of pc or hybrid",
        )  # fmt: skip


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
        raise DataError(
            f"there is nothing to test {x!r} and {y!r} with: in each data set a column is constant "
            f"or a combination of others, or there are fewer than {len(S) + 4} rows (the largest "
            f"has {int(data.n.max())}); condition on fewer columns"
        )
    return IndependenceTest(
        test=found.test,
        x=x,
        y=y,
        given=S,
        statistic=found.statistic,
        df=found.df,
        df2=found.df2,
        p_value=math.exp(found.log_p),
        correlation=found.correlation,
        n=int(data.n[found.used].sum()),
        data_sets=tuple(compress(data.levels, found.used)),
        left_out=tuple(compress(data.levels, ~found.used)),
        group=data.group,
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
