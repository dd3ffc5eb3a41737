"""Discrete nodes and counts with parents of all kinds: logistic and count regressions from rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from poolbn.errors import DataError, Option
from poolbn.moments.data import Data
from poolbn.moments.indicators import spans
from poolbn.nodes import glmm, marginal
from poolbn.nodes.auto import Candidate
from poolbn.nodes.design import (
    Basis,
    Design,
    describes_units,
    design_of,
    means_of,
    owners_of,
)
from poolbn.nodes.drawing import Observed, Population, Spread, around, random_cov_in, with_errors
from poolbn.nodes.links import Family, Response, count_residuals, random_effects_cov
from poolbn.nodes.localfit import (
    ALONE,
    INTERCEPT,
    Block,
    Status,
    level_columns,
    predictor,
)
from poolbn.nodes.logfit import (
    Estimates,
    LogEffects,
    LogFit,
    appended,
    known_effects,
    regression_effects,
)
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.predicting import (
    COUNT,
    RegressionPredictions,
    UnitEffects,
    Values,
    columns,
    design,
)
from poolbn.nodes.problems import Problems, problems_about
from poolbn.nodes.rowscores import Fitted, mode, scores
from poolbn.nodes.rsquared import Variances, of_rows
from poolbn.nodes.tabular import shares_of
from poolbn.nodes.unitmodes import Rows, known
from poolbn.tables.kinds import ColumnKind, has_levels, is_ordered
from poolbn.wording import DATA_SET, figure, noun_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

_PRIOR = 0.25  # information of the weak prior that holds coefficients that are drawn


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RegressionFit(LogFit):
    """A logistic regression of a discrete node, or a log-linear one of a count, in each data set.

    Coefficients are differences of log odds from the first level, or of logarithms of the mean. The
    intercept comes first, and a discrete parent has one for each level but its first.

    Attributes:
        coef: coefficients in each data set, for each level but the first or for the count,
            (F, K - 1, q).
        fixed: those of the population, (K - 1, q); None without pooling.
        coef_cov: covariance of the coefficients in each data set with all that is uncertain, those
            of one level after those of another, (F, (K - 1) q, (K - 1) q).
        fixed_cov: of those of the population, ((K - 1) q, (K - 1) q); None without pooling.
        random_cov: covariance of the random effects of one level, (q, q); for partial pooling.
        dispersion: of counts with more variance than a Poisson distribution has, mean + mean^2 /
            dispersion; inf for all others.
        unit_sd: with units inside data sets the standard deviation of intercepts between them in
            each data set, (F,). Means, densities and draws are of rows of units that are not known.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days"]]
        >>> made = trial.assign(preterm=trial["gestation_days"] < 259)
        >>> table = pb.table(made, group="clinic", columns=["age", "preterm"])
        >>> pb.fit_node(table, "preterm", ["age"], pooling="complete")
        preterm given age: complete pooling, 4 clinics, 823 rows
                     fixed      se     NY     MN     KY     MS
        (Intercept) -2.803  0.4848 -2.803 -2.803 -2.803 -2.803
        age         0.0362 0.01768 0.0362 0.0362 0.0362 0.0362
        log-likelihood -325.3294, 2 parameters, BIC -332.0423
        converged: the likelihood has its maximum here
    """

    _of_data_sets = ("coef", "coef_cov", "unit_sd")

    coef: Floats
    coef_cov: Floats
    fixed: Floats | None
    fixed_cov: Floats | None
    random_cov: Floats | None
    dispersion: float
    unit_sd: Floats | None = None

    @property
    def _known(self) -> LogEffects:
        return known_effects(self.estimates)

    @property
    def estimates(self) -> Estimates:
        """The coefficients and what is uncertain of them."""
        return Estimates(*(getattr(self, name) for name in Estimates._fields))

    @property
    def response(self) -> Response:
        """What kind of child it is."""
        if self.categories:
            return Response(levels=len(self.categories))
        return Response(Family.POISSON if self.dispersion == inf else Family.NEGATIVE_BINOMIAL)

    @property
    def kind(self) -> ColumnKind:
        """What the node's column holds."""
        return self.response.kind

    @property
    def model(self) -> str:
        """What kind of model it is, in words."""
        return self.response.model

    @property
    def fixed_se(self) -> Floats | None:
        """Standard errors of the coefficients of the population, (K - 1, q)."""
        if self.fixed_cov is None:
            return None
        return np.sqrt(np.diagonal(self.fixed_cov)).reshape(self.coef.shape[1:])

    def table(self) -> pd.DataFrame:
        """A row for each coefficient: of the population, its error, and in each data set.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]]
            >>> tens = trial.assign(age=trial["age"] // 10)
            >>> table = pb.table(tens, group="clinic", kinds={"age": "count"})
            >>> pb.fit_node(table, "age", pooling="complete").table()["fixed"].round(2).to_dict()
            {'(Intercept)': 0.77}
        """
        import pandas as pd

        columns: dict[object, Floats] = {}
        if self.fixed is not None and self.fixed_se is not None:
            columns |= {"fixed": self.fixed.ravel(), "se": self.fixed_se.ravel()}
        if self.random_cov is not None:
            sd = np.sqrt(np.diagonal(self.random_cov))
            columns["between_sd"] = np.tile(sd, self.coef.shape[1])
        names = level_columns(self.levels, list(columns))
        columns |= dict(zip(names, self.coef.reshape(len(self.levels), -1), strict=True))
        terms = [INTERCEPT, *self.columns]
        index: pd.Index = pd.Index(terms)
        if self.coef.shape[1] > 1:
            index = pd.MultiIndex.from_product([self.categories[1:], terms])
        return pd.DataFrame(columns, index=index)

    def _predictors(self, at: Sequence[Floats], sets: Integers) -> list[Floats]:
        """Log odds of all levels but the first, or the logarithm of a mean."""
        return [predictor(self.coef[:, c], at, sets) for c in range(self.coef.shape[1])]

    def _given(self, values: Values, sets: Integers) -> list[Floats]:
        return self._predictors(columns(self.parents, self.given, values), sets)

    def mean(self, values: Values, sets: Integers) -> Floats:
        """Probabilities of levels, or the mean of a count, given parents."""
        return self._averaged(self._given(values, sets), sets)

    def _averaged(self, predictors: list[Floats], sets: Integers) -> Floats:
        """Probabilities of levels, or the mean of a count, over units that are not known."""
        if self.unit_sd is None:
            return self.response.mean(predictors)
        variance = self.unit_sd[sets] ** 2
        if not self.categories:  # of a logarithm that is normal
            return self.response.mean([predictors[0] + variance / 2])
        *means, variance = np.broadcast_arrays(*predictors, variance)
        V = variance.reshape(-1, 1, 1) * self._correlation
        of = np.stack(means, axis=-1).reshape(-1, len(means))
        p = np.exp(self._certain.averaged(np.ascontiguousarray(of), V))
        return np.asarray(p.reshape(*variance.shape, -1))

    @property
    def _correlation(self) -> Floats:
        """Covariances of random effects of levels over their variance, (K - 1, K - 1)."""
        S = self.response.S
        return np.asarray(S / S[0, 0])

    @property
    def _certain(self) -> RegressionPredictions:
        """The distribution with estimates taken for certain."""
        F, C, q = self.coef.shape
        return self._predictive(np.zeros((F, C * q, C * q)))

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of each row, with estimates taken for certain."""
        if self.unit_sd is not None:
            return self._certain.log_density(x, values, sets)
        return self.response.log_density(x, self._given(values, sets), self.dispersion)

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        if self.unit_sd is not None:
            return self._certain.draw(values, sets, rng)
        return self.response.draw(self._given(values, sets), self.dispersion, rng)

    def quantile(self, u: Floats, mean: Floats, sets: Integers) -> Floats:
        """The values at probabilities u where this is the mean."""
        return self.response.quantile(u, mean, self._with_units)

    @property
    def _with_units(self) -> float:
        """The dispersion with which a count has the variance that units give it too."""
        if self.unit_sd is None or self.categories:
            return self.dispersion
        more = (1 + 1 / self.dispersion) * math.exp(self._usual_unit_sd**2) - 1
        return 1 / more if more > 0 else inf

    @property
    def _usual_unit_sd(self) -> float:
        """That of all data sets, or where these have their own a mean."""
        sd = self.unset.unit_sd
        return 0.0 if sd is None else float(np.sqrt(np.mean(sd**2)))

    def _unit_sds(self, data_sets: int) -> Floats | None:
        """As many of data sets that are like the population."""
        return None if self.unit_sd is None else np.full(data_sets, self._usual_unit_sd)

    def predictive(self, certain: NDArray[np.bool_]) -> RegressionPredictions:
        """Expected probabilities over a normal predictor; see `RegressionPredictions`."""
        return self._predictive(np.where(certain[:, None, None], 0.0, self.coef_cov))

    def _predictive(self, cov: Floats) -> RegressionPredictions:
        """With covariances of coefficients, to which those between units are added."""
        if self.unit_sd is not None:
            F, C, q = self.coef.shape
            between = (self.unit_sd**2)[:, None, None] * self._correlation
            cov.reshape(F, C, q, C, q)[:, :, 0, :, 0] += between
        return self._predictions(cov)

    def _predictions(self, cov: Floats) -> RegressionPredictions:
        """With these covariances of coefficients."""
        K = len(self.categories) or COUNT
        return RegressionPredictions(self.coef, cov, self.parents, self.given, K, self.dispersion)

    def unit_effects(self, rows: Observed, sets: Integers) -> UnitEffects | None:
        """Means and covariances of intercepts given rows, at the coefficients of data sets."""
        if self.unit_sd is None:
            return None
        X = design(self.parents, self.given, rows.values, len(rows.x))
        (_, C, q), U = self.coef.shape, len(sets)
        before = (self.unit_sd[sets] ** 2)[:, None, None] * self._correlation
        found = UnitEffects(np.zeros((U, C)), before.copy(), before, np.zeros((U, C, C * q)))
        seen = np.flatnonzero((np.diff(rows.offsets) > 0) & (self.unit_sd[sets] > 0))
        some = np.isin(rows.sets, seen)
        if not some.any():
            return found
        unit = np.searchsorted(seen, rows.sets[some])
        ends = np.searchsorted(unit, np.arange(len(seen) + 1))
        y = rows.x[some].astype(np.int64)
        own = self._laid_out(Design(X[some], y, np.ones(len(y)), ends, unit))
        of = Rows(own, self.response, self.dispersion, self.unit_sd[sets[seen]])
        modes, found.mean[seen], found.cov[seen] = known(of, self.coef[sets[seen]])
        follows = np.einsum("uab,ubck->uack", modes.Q, modes.summed(own.X))
        found.follows[seen] = follows.reshape(len(seen), C, C * q)
        return found

    def data_set_draws(self, draws: int, rng: np.random.Generator) -> Self:
        """The parameters of the F data sets, `draws` times; as they are for 0 draws."""
        (F, C, q), found = self.coef.shape, self.effects
        se = np.full((F, C, q), np.nan)
        if found.level_se.size:
            se[..., 0] = found.level_se
            se[..., 1:] = found.own_se.reshape(F, -1, q - 1)
        cov = with_errors(self.coef_cov, found.at, se)
        coef = around(self.coef.reshape(F, -1), cov, np.full(F, inf), draws, rng)
        sd = None if self.unit_sd is None else np.tile(self.unit_sd, len(coef) // F)
        return self._imagined(coef, sd)

    def new_data_sets(self, sets: int, draws: int, rng: np.random.Generator) -> Self:
        """Parameters of new data sets, for each draw of the population if there are draws."""
        coef = self._population.new_data_sets(sets, draws, rng)
        return self._imagined(coef, self._unit_sds(len(coef)))

    def _imagined(self, coef: Floats, sd: Floats | None) -> Self:
        shape = len(coef), *self.coef.shape[1:]
        return replace(self, levels=tuple(range(len(coef))), coef=coef.reshape(shape), unit_sd=sd)

    @property
    def _population(self) -> Population:
        shape, size = self.coef.shape[1:], self.coef[0].size
        between = np.zeros((size, size))
        if self.random_cov is not None:
            between = self._random(self.random_cov)
        se, df = np.full(shape, np.nan), np.full(shape, inf)
        found = self.effects
        se[:, 1:], df[:, 1:] = (each.reshape(shape[0], -1) for each in (found.se, found.df))
        return Population.of(
            self.population.ravel(), self.fixed_cov, se.ravel(), df.ravel(), between
        )

    def _random(self, random_cov: Floats) -> Floats:
        """The covariance of all coefficients between data sets, (C q, C q)."""
        return random_effects_cov(random_cov, self.response.S)

    def redrawing(self, rows: Observed) -> Callable[[np.random.Generator], RegressionPredictions]:
        """What draws the parameters that rows leave possible, as if they were certain."""
        if self.experiments:  # there they are not those of a regression
            return self._as_estimated()
        X = design(self.parents, self.given, rows.values, len(rows.x))
        made = self._laid_out(Design(X, rows.x.astype(np.int64), np.ones(len(X)), rows.offsets))
        T = Basis.of_rows(made.X, made.rows).T
        F, C, _ = self.coef.shape
        of = Rows(replace(made, X=made.X @ T), self.response, self._with_units)
        W = scores(of, self.coef @ np.linalg.pinv(T).T).information
        R = random_cov_in(self.fixed, self.random_cov, T, self.response.S, F)
        spread = Spread.of(W, R, _PRIOR)
        node = self.predictive(np.ones(F, dtype=bool))

        def drawn(rng: np.random.Generator) -> RegressionPredictions:
            change = spread.draw(rng).reshape(F, C, T.shape[1]) @ T.T
            return replace(node, coef=self.coef + change)

        return drawn

    def adapted(self, name: Hashable, new: Data | None, n: Integers) -> Self:
        """The fit with one more data set, of which there are rows or none.

        Its coefficients are those at the mode, given its rows and a normal distribution around the
        population's; without pooling those of its rows alone.

        Raises:
            DataError: without pooling, the rows do not give all coefficients.
        """
        if self.experiments:
            return self._beside_set(name, new, n)
        fit = self.with_all()
        coef, cov = self._new_coefficients(new)
        sd = self.unit_sd
        added = replace(
            fit,
            levels=(*self.levels, name),
            coef=np.concatenate([self.coef, coef[None]]),
            coef_cov=np.concatenate([self.coef_cov, cov[None]]),
            unit_sd=None if sd is None else np.append(sd, self._usual_unit_sd),
        )
        if fit.saved_effects is None:
            return added
        se = np.sqrt(np.diagonal(cov)).reshape(coef.shape)
        own = coef[:, 1:].ravel(), se[:, 1:].ravel()
        return replace(added, saved_effects=appended(fit.saved_effects, *own))

    def _new_coefficients(self, new: Data | None) -> tuple[Floats, Floats]:
        """Of a new data set, (C, q), and their covariance with all that is uncertain."""
        if self.fixed is None or self.fixed_cov is None:
            return self._input(new) if self.status is Status.GIVEN else self._alone(new)
        if self.random_cov is None:
            return self.fixed, self.fixed_cov
        R = self._random(self.random_cov)
        if new is None:  # with what maximum likelihood lacks, see `predictive`
            F = max(len(self.levels) - len(self.left_out), 2)
            return self.fixed, self._tails(F - 1) * (R + (1 + F / (F - 1)) * self.fixed_cov)
        rows = self._rows(new, self._unit_sds(1))
        return mode(rows, self.fixed, self.fixed_cov, R)

    def _tails(self, df: int) -> float:
        """What gives a normal distribution the middle 95% of Student's t, for its variance.

        The mean of a count would be that of its tails, and does not exist for Student's t.
        """
        if not self.categories:
            return 1.0
        from scipy.special import stdtrit

        return float(stdtrit(df, 0.975) / NormalDist().inv_cdf(0.975)) ** 2

    def _input(self, new: Data | None) -> tuple[Floats, Floats]:
        """Of a count that is an input: the mean of its rows, or that of other data sets."""
        none = np.zeros_like(self.coef_cov[0])
        if new is None:
            return self.coef.mean(axis=0), none
        (values,) = new.cases([self.child]).columns
        least = 0.5 / len(values)
        return np.full_like(self.coef[0], math.log(max(float(values.mean()), least))), none

    def _alone(self, new: Data | None) -> tuple[Floats, Floats]:
        """From its own rows."""
        count, n = self.coef[0].size, 0 if new is None else new.n_rows
        partial = Option("pooling", "partial")
        if new is None or n <= count:
            raise DataError(
                f"{ALONE}: {count} coefficient{'s' * (count > 1)} of {self.child!r} need at least "
                f"{count + 1} rows, and there are {n}; give more rows, or learn with ",
                partial,
            )
        own = fit_regression(new, self.child, self.parents, self.response, NoPooling(), type(self))
        if not own.status.ok or own.status is Status.SEPARATED:
            why = f"{own.status}: {own.detail}"
            raise DataError(f"{ALONE}, and {self.child!r} is {why}; or learn with ", partial)
        return own.coef[0], own.coef_cov[0]

    def with_effects(self, data: Data, *, tests: bool = True) -> Self:
        """The fit with how sure its effects are, which needs the rows."""
        if not self.parents or not self.status.ok:
            return self
        rows = self._rows(data, self.unit_sd)
        separated = self.status is Status.SEPARATED
        vary = None
        if isinstance(self.pooling, Partial):
            owners = owners_of(data, self.parents) + ("",) * rows.design.thresholds
            vary = Problems(rows.design, self.response, owners).varying(self.pooling)
            vary &= self.status is not Status.INTERCEPT_ONLY
        of = rows, self.estimates, spans(self.given), vary
        return replace(
            self, saved_effects=regression_effects(*of, separated=separated, tests=tests)
        )

    def _rows(self, data: Data, unit_sd: Floats | None) -> Rows:
        """The rows of the family, and how far intercepts of units inside data sets differ."""
        design = self._laid_out(design_of(data, self.child, self.parents))
        return Rows(design, self.response, self.dispersion, unit_sd)

    @classmethod
    def _beside(cls, design: Design, categories: tuple[str, ...]) -> dict[str, Any]:
        """What a fit holds beside the coefficients, from the rows."""
        return {}

    def _laid_out(self, design: Design) -> Design:
        """Rows as the likelihood has them."""
        return design

    def _in(self, data: Data) -> RegressionFit:
        how = self.pooling
        assert isinstance(how, Complete | NoPooling | Partial)
        made = fit_regression(data, self.child, self.parents, self.response, how, type(self))
        return made.with_effects(data, tests=False)

    @property
    def extra(self) -> tuple[str, float] | None:
        """The dispersion of a count that has one."""
        return ("dispersion", self.dispersion) if self.dispersion < inf else None

    @property
    def population(self) -> Floats:
        """Coefficients of the population; without one, the mean of data sets', (K - 1, q)."""
        return self.unset.coef.mean(axis=0) if self.fixed is None else self.fixed

    def in_population(self) -> Self:
        """The fit of one data set, which is like the population."""
        sd = self._unit_sds(1)
        return replace(self, levels=self.levels[:1], coef=self.population[None], unit_sd=sd)

    def _more(self) -> str:
        """The standard deviation between units, before what others have."""
        if self.unit_sd is None:
            return super()._more()
        least, most = float(self.unit_sd.min()), float(self.unit_sd.max())
        sd = figure(least) if least == most else f"{figure(least)} to {figure(most)}"
        units = noun_of(self.unit or "")
        what = "units" if units == DATA_SET else units.many
        return f"SD between {what} {sd}; {super()._more()}"

    def blocks(self) -> list[Block]:
        """Coefficients of log odds by level, or of the logarithm of the mean."""
        se, between = self.fixed_se, None
        if self.random_cov is not None:
            between = np.sqrt(np.diagonal(self.random_cov))
        return [
            Block(
                outcome,
                self.population[k],
                None if self.fixed is None else self.fixed[k],
                None if se is None else se[k],
                between,
                self.coef[:, k],
            )
            for k, outcome in enumerate(self.categories[1:] or ("",))
        ]

    def along(self, at: Sequence[Floats]) -> Floats:
        """Probabilities or means along values of `columns`, see `LocalFit.along`."""
        sd, sets = self.unit_sd, np.arange(len(self.coef) + 1)[:, None]
        if sd is not None:
            sd = np.append(self._usual_unit_sd, sd)
        coef = np.concatenate([self.population[None], self.coef])
        every = replace(self, coef=coef, unit_sd=sd)
        return every._averaged(every._predictors(at, sets), sets)

    def taken(self, at: Sequence[int], levels: tuple[Hashable, ...]) -> Self:
        """The fit of the data sets at these positions, which may repeat, under these names."""
        return replace(
            self, levels=levels, left_out=self._left_out(at, levels), coef=self.coef[at],
            coef_cov=self.coef_cov[at], saved_effects=self._taken(at), later=None,
            unit_sd=None if self.unit_sd is None else self.unit_sd[at],
            **self._intervened(at, levels),
        )  # fmt: skip

    def set_to(self, where: Data) -> Self:
        """Where the node was set: its mean there, or the shares of its levels."""
        own, none = shares_of if self.categories else means_of, np.zeros(len(where.n))
        coef, cov = (np.multiply.outer(none, of[0]) for of in (self.coef, self.coef_cov))
        self._set_intercepts(coef, np.maximum(own(where, self.child), 0.5 / where.n[:, None]))
        return replace(self._apart(where, coef, cov, none), was_set=where.levels)

    def changed_in(self, where: Data) -> Self:
        """Where the node was changed: a regression in each data set."""
        names = (where, self.child, self.parents)
        own = fit_regression(*names, self.response, NoPooling(), type(self))
        each = own.coef, own.coef_cov, own.unit_sd
        return replace(self._apart(where, *each), was_changed=where.levels)

    def _apart(self, where: Data, coef: Floats, cov: Floats, unit_sd: Floats | None) -> Self:
        """A fit like this one of data sets that it is not about."""
        return replace(
            self, levels=where.levels, was_set=(), was_changed=(), coef=coef, coef_cov=cov,
            saved_effects=None, later=None, unit_sd=None if self.unit_sd is None else unit_sd,
        )  # fmt: skip

    def _set_intercepts(self, coef: Floats, mean: Floats) -> None:
        """Coefficients (F, C, q) with these means (F, 1), or probabilities of levels (F, K)."""
        logs = np.log(mean)
        coef[:, :, 0] = logs[:, 1:] - logs[:, :1] if self.categories else logs

    def _logs_alone(self, data: Data) -> tuple[Floats, Floats]:
        own = fit_regression(data, self.child, self.parents, self.response, NoPooling(), type(self))
        found = known_effects(own.estimates)
        return found.own, found.own_se

    def residuals(self, x: Floats, fitted: Floats, sets: Integers) -> Floats:
        """Randomised quantile residuals of counts."""
        return count_residuals(x, fitted, self._with_units)

    def variances(self, data: Data) -> Variances | None:
        """What fixed and random effects explain on the scale where they add up."""
        if self.fixed is None or len(self.fixed) > 1 or not self.status.ok:
            return None
        q = len(self.columns) + 1
        cov = None if self.random_cov is None else self.random_cov[:q, :q]
        of = self.fixed[0, :q], cov, self.response, self.dispersion
        found = of_rows(data, self.child, self.parents, *of)
        if describes_units(data, self.child):
            return found._replace(units=found.left, left=0.0)
        return found._replace(units=self._usual_unit_sd**2)

    def explained(
        self, x: Floats, values: Values, sets: Integers
    ) -> dict[str, tuple[Floats, float]]:
        """Of a count the logarithm of the mean; see `assess.effectsizes`."""
        if self.categories:
            return super().explained(x, values, sets)
        (value,) = self._given(values, sets)
        more = 1 / float(np.exp(value).mean()) + 1 / self._with_units
        return {"": (value, math.log1p(more))}


def regression_score(
    problems: Problems,
    hows: Sequence[Candidate],
    each: Floats,
    *,
    final: bool,
    keep: Callable[[Fitted], None] = lambda fitted: None,
) -> tuple[float, float]:
    """The best log-likelihood minus penalty, with the effort of a search or a final fit.

    And that of likelihoods which are known roughly, and are not to be compared with others.

    Args:
        problems: the regressions.
        hows: the ways to share strength.
        each: the penalty of a parameter of each kind of `Counts`, (5,).
        final: whether to start from everywhere.
        keep: is given the fits of partial pooling.
    """
    if problems.plain.basis.dependent >= 0:
        return -inf, -inf
    best = [-inf, -inf]
    for how in hows:
        rough = False
        if isinstance(how, Partial):
            problem, found, _ = problems.partial(how, final=final)
            rough = marginal.is_rough(found)
            loglik = found.loglik + float(problem.constants.sum())
            charge = float(np.array(problems.counts(how)) @ each)
            keep(Fitted(problem.basis, found, problem.response, loglik - charge))
        else:
            plain = problems.plain
            whole = isinstance(how, Complete)
            loglik = plain.complete_loglik() if whole else plain.none_loglik()
        best[rough] = max(best[rough], loglik - float(np.array(problems.counts(how)) @ each))
    return best[0], best[1]


def regression_bound(problems: Problems, hows: Sequence[Candidate], each: Floats) -> float:
    """An upper bound of `regression_score` that costs less.

    What is integrated over random effects is at most its largest value, so partial pooling has at
    most the likelihood of no pooling; by the Laplace approximation too. With units inside data sets
    that says nothing, and there is none: NaN.
    """
    problem = problems.plain
    if problem.nested:
        return math.nan
    if problem.basis.dependent >= 0:
        return -inf
    most = problem.largest()
    best = -inf
    for how in hows:
        loglik = problem.complete_loglik() if isinstance(how, Complete) else most
        best = max(best, loglik - float(np.array(problems.counts(how)) @ each))
    return best


def fit_regression(
    table: Data,
    child: str,
    parents: Sequence[str],
    response: Response,
    how: Candidate,
    kind: type[RegressionFit] = RegressionFit,
) -> RegressionFit:
    """The final fit of a discrete node or a count."""
    design = design_of(table, child, parents)
    problems = problems_about(design, response, owners_of(table, parents))
    categories = table.categories[table.names.index(child)]
    problem, F = problems.plain, len(table.levels)
    given = tuple(table.categories[table.names.index(name)] for name in parents)
    fixed = fixed_cov = random_cov = None
    words = partial(_of_units, problem, table, (child, *parents))
    if isinstance(how, Complete | NoPooling):
        one = problem.complete() if isinstance(how, Complete) else problem.none()
        loglik, theta = float(one.loglik.sum()), float(one.theta.mean())
        coef, coef_cov, unit_sd = one.coef, one.cov, one.unit_sd
        ended = _status(
            one.dependent, bool(one.separated.any()), bool(one.converged.all()),
            units=words(over_units=one.over_units),
        )  # fmt: skip
        if isinstance(how, Complete):
            fixed, fixed_cov = coef[0], coef_cov[0]
            coef, coef_cov = np.tile(coef, (F, 1, 1)), np.tile(coef_cov, (F, 1, 1))
    else:
        problem, found, less = problems.partial(how, final=True)
        mixed = problem.mixed(found)
        loglik, theta = mixed.loglik, mixed.theta
        coef, coef_cov = mixed.coef, mixed.coef_cov
        fixed, fixed_cov, random_cov = mixed.fixed, mixed.fixed_cov, mixed.random_cov
        unit_sd = np.array([mixed.unit_sd])
        singular = mixed.rank < problem.r or (problem.nested and mixed.unit_sd == 0)
        ended = _status(
            mixed.dependent, mixed.separated, mixed.converged, singular, mixed.summed,
            marginal.is_rough(found), less, words(over_units=found.over_units),
        )  # fmt: skip
    status, detail = ended
    return kind(
        child=child,
        parents=tuple(parents),
        given=given,
        levels=table.levels,
        pooling=how,
        loglik=loglik if status.ok else -inf,
        counts=problems.counts(how),
        n_rows=table.n_rows,
        status=status,
        detail=detail,
        categories=categories,
        coef=coef,
        coef_cov=coef_cov,
        fixed=fixed,
        fixed_cov=fixed_cov,
        random_cov=random_cov,
        dispersion=theta if response.dispersed else inf,
        unit=table.unit,
        unit_sd=np.broadcast_to(unit_sd, F).copy() if problem.nested else None,
        **kind._beside(design, categories),
    )


def _of_units(problem: glmm.Problem, table: Data, names: Sequence[str], *, over_units: bool) -> str:
    """What a fit says of units inside data sets."""
    if table.unit is None:
        return ""
    child, *_ = names
    if describes_units(table, child):
        return "one row for each unit, as the column describes units"
    if not problem.nested:
        return "no unit has two rows, so that there is no variance between units"
    own = "with an intercept for each unit"
    if all(map(has_levels, map(table.kind, names))) and not is_ordered(table.kind(child)):
        own = f"a logistic regression {own}, which a table cannot have"
    how = "integrated numerically, as units have few rows"
    return f"{own}; {how if over_units else 'by the Laplace approximation'}"


def _status(
    dependent: int,
    separated: bool,
    converged: bool,
    singular: bool = False,
    summed: bool = False,
    rough: bool = False,
    less: bool = False,
    units: str = "",
) -> tuple[Status, str]:
    trouble = {
        Status.RANK_DEFICIENT: (dependent >= 0, "a parent is constant or a combination of others"),
        Status.SEPARATED: (separated, "coefficients are held by a weak prior"),
        Status.APPROXIMATE: (rough, "data sets have few rows for so many coefficients"),
        Status.NOT_CONVERGED: (not converged, "the search for the maximum was stopped"),
        Status.INTERCEPT_ONLY: (
            less,
            "with slopes that vary the likelihood has no maximum; in this fit only the intercept "
            "varies",
        ),
    }
    for status, (met, detail) in trouble.items():
        if met:
            return status, f"{detail}; {units}" if units else detail
    ended = Status.SINGULAR if singular else Status.CONVERGED
    if units:
        return ended, units
    if summed:
        return ended, "random effects are integrated numerically, as data sets have few rows"
    return (
        ended,
        "by the Laplace approximation" if singular else "the likelihood has its maximum here",
    )
