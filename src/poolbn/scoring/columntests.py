"""One independence test of two columns of any kind, by its name and the pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np

from poolbn.arrays import Flags, Floats
from poolbn.constants import RANK_TOLERANCE
from poolbn.errors import Option, OptionError
from poolbn.moments.data import Data
from poolbn.moments.indicators import spans
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.nodes.links import Family, Response
from poolbn.nodes.model import NodeModel
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.regression import Problems, design_of, owners_of, regression_score
from poolbn.run.compiling import kernels
from poolbn.scoring.rotating import lr_test, partial_scatter
from poolbn.scoring.scorevectors import ScoreVectors
from poolbn.scoring.separating import COMPLETE, GAUSSIAN, GaussianTests
from poolbn.tables.kinds import has_levels, is_normal


class Outcome(NamedTuple):
    """What a test found; see `IndependenceTest`. The log p-value is NaN if nothing can be tested.

    `used` are the data sets that count, (F,).
    """

    test: str
    statistic: float
    df: float
    df2: float
    log_p: float
    correlation: float
    used: Flags


@dataclass(frozen=True, eq=False)
class ColumnTests:
    """Tests of the columns of one table.

    Attributes:
        data: columns of all kinds.
        model: of nodes: its pooling says how data sets are tested together.
        test: one of `GAUSSIAN`, or "lr".
    """

    data: Data
    model: NodeModel
    test: str

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
            self._refuse(x, y)
        if not self._spans[x] or not self._spans[y]:  # a level that all rows have
            return self._nothing()
        if self.test == "combined":
            return self._combined(x, y, S)
        if not self._continuous(y):
            x, y = y, x
        if not self._continuous(y):
            return self._ratio(x, y, S)
        at, block = self._spans[y][0], list(self._spans[x])
        if self.model.complete or isinstance(self.model, NoPooling):
            return self._f(at, block, own)
        found = lr_test(self._numbers, self._mixed, at, block, own)
        return Outcome(
            "lr", found.statistic, found.parameters, math.nan, found.log_p, math.nan, found.used
        )

    @property
    def _mixed(self) -> Partial:
        """The mixed-effects model of a ratio: random effects are full, residuals as asked."""
        asked = self.model
        return Partial(residuals=asked.residuals) if isinstance(asked, Partial) else Partial()

    def _nothing(self) -> Outcome:
        none = np.zeros(len(self.data.levels), dtype=bool)
        nan = math.nan
        return Outcome(self.test, nan, nan, nan, nan, nan, none)

    def _refuse(self, x: int, y: int) -> NoReturn:
        other = self.data.names[y if self._continuous(x) else x]
        raise OptionError(
            Option("test", self.test),
            f" is for continuous columns, and {other!r} is not; use ",
            Option("test", "auto"),
        )

    def _correlation(self, x: int, y: int, S: list[int]) -> Outcome:
        """Of partial correlations. S is in order, so that its order does not matter by a bit."""
        kernel, tests = kernels("independence"), self._gaussian
        results, used = tests.batch([(x, y)], [sorted(S)])
        row = results[0]
        counts = used[0]
        if tests.test in COMPLETE:
            counts = np.full(len(self.data.levels), used[0, 0])
        return Outcome(
            tests.test,
            float(row[kernel.STATISTIC]),
            float(row[kernel.DF1]),
            float(row[kernel.DF2]),
            float(row[kernel.LOG_P]),
            float(row[kernel.CORRELATION]),
            counts,
        )

    def _combined(self, x: int, y: int, S: Sequence[int]) -> Outcome:
        names = self.data.names
        found = self._scores.test(names[x], names[y], [names[s] for s in S])
        return Outcome(
            "combined", found.statistic, found.data_sets, found.scores, found.log_p, math.nan,
            found.used,
        )  # fmt: skip

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
        log_p = _log(float(fdtrc(df1, df2, statistic)))
        return Outcome("lr", statistic, df1, df2, log_p, math.nan, counts)

    def _ratio(self, x: int, y: int, S: Sequence[int]) -> Outcome:
        """The likelihood ratio of two columns that are discrete or counts, against a chi-square."""
        from scipy.special import chdtrc

        if not self.model.complete and not isinstance(self.model, NoPooling):
            names = self.data.names
            raise OptionError(
                Option("test", "lr"),
                f" of {names[x]!r} and {names[y]!r} has no null distribution that is known with "
                "partial pooling, as neither is continuous; use ",
                Option("test", "combined"),
            )
        discrete = all(has_levels(self.data.kinds[k]) for k in (x, y, *S))
        statistic, df = self._counted(x, y, S) if discrete else self._regressed(x, y, S)
        if df == 0 or not math.isfinite(statistic):
            return self._nothing()
        log_p = _log(float(chdtrc(df, max(statistic, 0.0))))
        every = np.ones(len(self.data.levels), dtype=bool)
        return Outcome("lr", statistic, df, math.nan, log_p, math.nan, every)

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
            K = len(table.categories[child])
            response = Response(levels=K) if K else Response(Family.NEGATIVE_BINOMIAL)
            name, none = table.names[child], np.zeros(3)
            less, more = (
                regression_score(
                    Problems(design_of(table, name, own), response, owners_of(table, own)),
                    [how], none, final=False,
                )[0]
                for own in (given, sorted([*given, table.names[other]]))
            )  # fmt: skip
            ratios.append(2 * (more - less))
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
