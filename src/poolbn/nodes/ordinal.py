"""Ordered levels: the cumulative logit mixed model, as clmm of R's package ordinal has it.

In data set j, with the thresholds c_1 < ... < c_K-1 that all data sets share,

    P(y <= k) = logistic(c_k - x'(beta + b_j)),  b_j ~ N(0, Sigma),

and the intercept, whose mean is in the thresholds, varies too. As the probability to exceed a
threshold is a logit, a fit is that of a logistic regression of rows about thresholds, see
`design.about_thresholds`: beside the coefficients of a binary node it has one for each threshold
but the first, the log odds to exceed it minus those to exceed the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from poolbn.errors import DataError, Option
from poolbn.moments.data import Data
from poolbn.moments.indicators import spans
from poolbn.nodes.design import Design, about_thresholds, design_of, levels_in
from poolbn.nodes.equality import score_test
from poolbn.nodes.links import (
    LOGISTIC,
    Family,
    Response,
    drawn_levels,
    level_quantiles,
    level_residuals,
)
from poolbn.nodes.localfit import Block, level_columns
from poolbn.nodes.logfit import as_tests
from poolbn.nodes.poolings import NoPooling
from poolbn.nodes.predicting import RegressionPredictions, Values, design, predictors
from poolbn.nodes.regression import RegressionFit, fit_regression
from poolbn.nodes.rowscores import common_columns, equal_effects
from poolbn.nodes.tabular import shares_of
from poolbn.nodes.terms import Equality
from poolbn.nodes.unitmodes import Rows
from poolbn.tables.kinds import ColumnKind

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

_LEAST = 1e-300  # probabilities that are differences are at least this


def log_odds(first: Floats, more: Floats) -> Floats:
    """Of exceeding each threshold, (..., K - 1), from those of the first and what others add.

    Draws may have thresholds that change places: those are then one.
    """
    every = np.concatenate([np.zeros((*more.shape[:-1], 1)), more], axis=-1)
    return np.asarray(first[..., None] + np.minimum.accumulate(every, axis=-1))


def log_probabilities(odds: Floats) -> Floats:
    """Of K levels, (..., K), by the log odds of exceeding thresholds, (..., K - 1)."""
    end = np.full((*odds.shape[:-1], 1), np.inf)
    above = np.concatenate([end, odds], axis=-1)  # of the threshold below a level
    below = np.concatenate([odds, -end], axis=-1)
    distance = np.full_like(above, np.inf)
    distance[..., 1:-1] = odds[..., :-1] - odds[..., 1:]
    with np.errstate(divide="ignore"):
        between = np.log(-np.expm1(-distance))
    return np.asarray(between - np.logaddexp(0, -above) - np.logaddexp(0, below))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OrdinalFit(RegressionFit):
    """A cumulative logistic regression of ordered levels: proportional odds in each data set.

    Effects are odds ratios of a higher level, the same for all levels. The coefficients are those
    of `RegressionFit` for the log odds of exceeding the lowest level, (F, 1, q), and after them
    what each further level adds to these.

    Attributes:
        seen: the levels that rows have; others have the probability 0.

    Examples:
        >>> import pandas as pd
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> cut = pd.cut(trial["bmi"], [0, 25, 30, 99], right=False)
        >>> cut = cut.cat.rename_categories(["low", "middle", "high"])
        >>> table = pb.table(trial.assign(bmi=cut), group="clinic", kinds={"bmi": "ordinal"})
        >>> pb.fit_node(table, "bmi", ["age"], pooling="complete")
        bmi given age: complete pooling, 4 clinics, 750 rows
                      fixed      se      NY      MN      KY      MS
        age         0.04799 0.01219 0.04799 0.04799 0.04799 0.04799
        low|middle   0.7261  0.3241  0.7261  0.7261  0.7261  0.7261
        middle|high    2.07  0.3324    2.07    2.07    2.07    2.07
        log-likelihood -813.4040, 3 parameters, BIC -823.3341
        converged: the likelihood has its maximum here
    """

    seen: tuple[str, ...]

    @classmethod
    def _beside(cls, design: Design, categories: tuple[str, ...]) -> dict[str, Any]:
        """The levels that rows have."""
        return {"seen": tuple(categories[k] for k in levels_in(design, len(categories)))}

    @property
    def _codes(self) -> Integers:
        """Those of the levels that rows have."""
        return np.array([self.categories.index(level) for level in self.seen])

    @property
    def _width(self) -> int:
        """Coefficients that are not of thresholds."""
        return len(self.columns) + 1

    @property
    def response(self) -> Response:
        """What kind of child it is."""
        return Response(Family.ORDINAL, levels=len(self.categories))

    @property
    def kind(self) -> ColumnKind:
        """What the node's column holds."""
        return "ordinal"

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Effects are the same on all levels."""
        return ()

    def _laid_out(self, design: Design) -> Design:
        """Rows about thresholds."""
        return about_thresholds(design, self._codes)

    @property
    def thresholds(self) -> Floats:
        """Those of the population, (K - 1,), where parents are 0; clmm's.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]]
            >>> tens = trial.assign(age=trial["age"].clip(20, 39) // 10)
            >>> table = pb.table(tens, group="clinic", kinds={"age": "ordinal"})
            >>> pb.fit_node(table, "age", pooling="complete").thresholds.round(2)
            array([1.07])
        """
        (own,) = self.population
        return -log_odds(own[0], own[self._width :])

    def _input(self, new: Data | None) -> tuple[Floats, Floats]:
        """Of an input: as its rows have it, or without any the mean of other data sets."""
        if new is None:
            return self.coef.mean(axis=0), np.zeros_like(self.coef_cov[0])
        own = fit_regression(new, self.child, (), self.response, NoPooling())
        return own.coef[0], np.zeros_like(self.coef_cov[0])

    def changed_in(self, where: Data) -> Self:
        """Where the node was changed: a regression in each data set, of the same levels."""
        seen = shares_of(where, self.child) > 0
        for level, there in zip(where.levels, seen, strict=True):
            if not there[self._codes].all():
                raise DataError(
                    f"{self.child!r} was changed in data set {level!r}, and does not have there "
                    "all levels that it has elsewhere; put levels together, or say that it was "
                    "set: ", Option("interventions", {level: [self.child]}),
                )  # fmt: skip
        return super().changed_in(where)

    def _set_intercepts(self, coef: Floats, mean: Floats) -> None:
        """Log odds of exceeding the lowest level that rows have, and what others add."""
        p = mean[:, self._codes]
        above = np.cumsum(p[:, ::-1], axis=1)[:, ::-1][:, 1:]
        odds = np.log(above) - np.log(p.sum(axis=1, keepdims=True) - above)
        coef[:, 0, 0], coef[:, 0, self._width :] = odds[:, 0], odds[:, 1:] - odds[:, :1]

    def table(self) -> pd.DataFrame:
        """A row for each effect, then one for each threshold between two levels.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]]
            >>> tens = trial.assign(age=trial["age"].clip(20, 39) // 10)
            >>> table = pb.table(tens, group="clinic", kinds={"age": "ordinal"})
            >>> pb.fit_node(table, "age", pooling="complete").table()["fixed"].round(2).to_dict()
            {'2|3': 1.07}
        """
        import pandas as pd

        q, F, size = self._width, len(self.levels), self.coef.shape[2]
        to = np.zeros((size, size))  # effects, then thresholds: minus the log odds to exceed them
        to[: q - 1, 1:q] = np.eye(q - 1)
        to[q - 1 :, 0] = -1.0
        to[q:, q:] = -np.eye(size - q)
        columns: dict[Any, Floats] = {}
        if self.fixed is not None and self.fixed_cov is not None:
            se = np.sqrt(np.diagonal(to @ self.fixed_cov @ to.T))
            columns |= {"fixed": to @ self.fixed[0], "se": se}
        if self.random_cov is not None:
            columns["between_sd"] = np.sqrt(np.diagonal(to @ self.random_cov @ to.T))
        names = level_columns(self.levels, list(columns))
        columns |= dict(zip(names, self.coef.reshape(F, -1) @ to.T, strict=True))
        between = [f"{low}|{high}" for low, high in zip(self.seen, self.seen[1:], strict=False)]
        return pd.DataFrame(columns, index=pd.Index([*self.columns, *between]))

    def _log_odds(self, predictors: list[Floats], sets: Integers) -> Floats:
        return log_odds(predictors[0], self.coef[sets, 0, self._width :])

    def _of_all(self, values: Floats, rest: float) -> Floats:
        """Numbers of levels that rows have, (..., K'), and `rest` for others, (..., K)."""
        if len(self.seen) == len(self.categories):
            return values
        made = np.full((*values.shape[:-1], len(self.categories)), rest)
        made[..., self._codes] = values
        return made

    def _averaged(self, predictors: list[Floats], sets: Integers) -> Floats:
        """Probabilities of levels, over units that are not known."""
        odds = self._log_odds(predictors, sets)
        if self.unit_sd is not None:
            return super()._averaged(list(np.moveaxis(odds, -1, 0)), sets)
        return self._of_all(np.exp(log_probabilities(odds)), 0.0)

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of each row, with estimates taken for certain."""
        if self.unit_sd is not None:
            return super().log_density(x, values, sets)
        logs = log_probabilities(self._log_odds(self._given(values, sets), sets))
        logs = self._of_all(logs, -np.inf)
        return np.asarray(logs[np.arange(len(x)), x.astype(np.int64)])

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        return drawn_levels(self.mean(values, sets), rng)

    def quantile(self, u: Floats, mean: Floats, sets: Integers) -> Floats:
        """The codes at probabilities u where levels have these probabilities."""
        return level_quantiles(u, mean)

    def _predictions(self, cov: Floats) -> RegressionPredictions:
        return OrdinalPredictions(
            self.coef, cov, self.parents, self.given, len(self.categories), np.inf, self._codes
        )

    def with_effects(self, data: Data, *, tests: bool = True) -> Self:
        """The fit with how sure its effects are, which needs the rows."""
        made = super().with_effects(data, tests=False)
        if made.saved_effects is None or not tests:
            return made
        # That effects are the same in all data sets is tested with the thresholds as they are.
        rows = self._rows(data, None).design
        kept, sets = rows.y < 2, np.repeat(np.arange(len(self.levels)), np.diff(rows.offsets))
        design = Design(
            rows.X[kept, : self._width], rows.y[kept], rows.weight[kept],
            np.searchsorted(sets[kept], np.arange(len(self.levels) + 1)),
            None if rows.units is None else rows.units[kept],
        )  # fmt: skip
        more = np.einsum("ma,ma->m", rows.X[:, self._width :], self.coef[sets, 0, self._width :])
        about = Rows(design, Response(levels=2), unit_sd=self.unit_sd, offset=more[kept])
        equal = [equal_effects(about, [k + 1 for k in span]) for span in spans(self.given)]
        effects = made.saved_effects._replace(equal=as_tests(equal))
        return replace(made, saved_effects=effects)

    def proportionality(self, data: Data) -> dict[str, Equality]:
        """Score tests that the odds ratios of each parent are the same at all thresholds.

        Against ratios that differ between thresholds, in all data sets alike. Data sets have
        intercepts and slopes of their own, and share the distances of thresholds.
        """
        more = len(self.seen) - 2
        if not more or not self.status.ok or self.is_given:
            return {}
        rows = design_of(data, self.child, self.parents)
        X = rows.X[:, 1:]
        mean = np.average(X, axis=0, weights=rows.weight)
        sd = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=rows.weight))
        sd = np.where(sd > 0, sd, 1.0)
        made, indicators, own = _with_distances(replace(rows, X=(X - mean) / sd), self._codes)
        coef = self.coef.copy()
        q = self._width
        coef[:, :, 0] += coef[:, :, 1:q] @ mean
        coef[:, :, 1:q] *= sd
        common = np.arange(coef.shape[2]) >= q
        found = {}
        for parent, span in zip(self.parents, spans(self.given), strict=True):
            columns = (indicators[:, :, None] * own[:, None, span]).reshape(len(own), -1)
            of = Rows(made, self.response, unit_sd=self.unit_sd)
            found[parent] = common_columns(of, coef, common, columns)
        return {parent: score_test(np.array(test)) for parent, test in found.items()}

    def blocks(self) -> list[Block]:
        """Coefficients of the log odds of higher levels."""
        q, between = self._width, None
        if self.random_cov is not None:
            between = np.sqrt(np.diagonal(self.random_cov))[:q]
        fixed = None if self.fixed is None else self.fixed[0, :q]
        se = None if self.fixed_se is None else self.fixed_se[0, :q]
        return [Block("", self.population[0, :q], fixed, se, between, self.coef[:, 0, :q])]

    def residuals(self, x: Floats, fitted: Floats, sets: Integers) -> Floats:
        """Randomised quantile residuals of levels, whose probabilities are fitted."""
        return level_residuals(x.astype(np.int64), fitted)

    def explained(
        self, x: Floats, values: Values, sets: Integers
    ) -> dict[str, tuple[Floats, float]]:
        """Log odds of a higher level vary with the parents, and a logistic variable around them."""
        return {"": (self._given(values, sets)[0], LOGISTIC)}


def _with_distances(rows: Design, levels: Integers) -> tuple[Design, Floats, Floats]:
    """Rows about thresholds, those about distances one by one; indicators of thresholds, and x.

    Args:
        rows: with columns x, (m, p).
        levels: the codes of levels.
    """
    K, y = len(levels), np.searchsorted(levels, rows.y)
    steps = np.eye(K - 1)[:, 1:]
    below, above = np.flatnonzero(y > 0), np.flatnonzero(y < K - 1)
    inner = np.flatnonzero((y > 0) & (y < K - 1))
    at = np.concatenate([below, above, inner])
    outcome = np.repeat([1, 0, 2], [len(below), len(above), len(inner)])
    distances = steps[y[inner] - 1] - steps[y[inner]]
    indicators = np.vstack([steps[y[below] - 1], steps[y[above]], distances])
    order = np.argsort(at, kind="stable")
    at, outcome, indicators = at[order], outcome[order], indicators[order]
    x = np.column_stack([np.ones(len(at)), rows.X[at]]) * (outcome < 2)[:, None]
    offsets = np.searchsorted(at, rows.offsets).astype(np.int64)
    units = None if rows.units is None else rows.units[at]
    made = Design(np.hstack([x, indicators]), outcome, rows.weight[at], offsets, units, K - 2)
    return made, indicators, rows.X[at]


@dataclass(frozen=True, eq=False)
class OrdinalPredictions(RegressionPredictions):
    """Ordered levels; coefficients are those of `OrdinalFit`, (F, 1, q).

    Attributes:
        codes: of the levels that coefficients are of, (K',).
    """

    codes: Integers

    def log_levels(self, values: Values, sets: Integers) -> Floats:
        """Of all levels."""
        X = design(self.parents, self.given, values, len(sets))
        steps = np.eye(self.coef.shape[2] - X.shape[1] + 1)[:, 1:]
        of = [
            predictors(np.hstack([X, np.tile(step, (len(X), 1))]), sets, self.coef, self.cov)
            for step in steps
        ]
        return self.averaged(*(np.concatenate(each, axis=1) for each in zip(*of, strict=True)))

    def averaged(self, mean: Floats, V: Floats) -> Floats:
        """Of all levels, by means of log odds to exceed thresholds, (n, K' - 1), and variances.

        Differences of expected probabilities to exceed thresholds; variances are of one or all.
        """
        n, more = mean.shape
        V = np.broadcast_to(V[:, :, 0], mean.shape)
        over, under = np.zeros((n, more + 2)), np.zeros((n, more + 2))
        over[:, 0], under[:, -1] = 1.0, 1.0
        for k in range(more):
            own = np.ascontiguousarray(mean[:, k]), np.ascontiguousarray(V[:, k])
            for into, y in ((over, 1.0), (under, 0.0)):
                into[:, k + 1] = np.exp(self._log(np.full(n, y), *own))
        # The smaller probabilities have the digits of their differences.
        p = np.where(over[:, :-1] < 0.5, -np.diff(over, axis=1), np.diff(under, axis=1))
        logs = np.full((n, self.n_categories), -np.inf)
        logs[:, self.codes] = np.log(np.maximum(p, _LEAST))
        return logs

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of values given parents."""
        return np.asarray(self.log_levels(values, sets)[np.arange(len(x)), x.astype(np.int64)])

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        return drawn_levels(np.exp(self.log_levels(values, sets)), rng)

    def script(self, to: Floats) -> dict[str, Any]:
        """See `Predictions`."""
        q, size = len(to), self.coef.shape[2]
        wide = np.eye(size)
        wide[:q, :q] = to
        return {
            "kind": "ordinal",
            "coef": self.coef[:, 0] @ wide.T,
            "cov": wide @ self.cov @ wide.T,
            "codes": self.codes.tolist(),
        }
