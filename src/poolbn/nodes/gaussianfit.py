"""Linear regressions with normal residuals: all that is asked of such a node."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.moments.data import Data, sums_with
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import labels_of, spans
from poolbn.moments.standardised import standardise
from poolbn.nodes import adapting, linear
from poolbn.nodes.design import Basis
from poolbn.nodes.drawing import Observed, Population, Spread, around, random_cov_in, with_errors
from poolbn.nodes.equality import equal_blocks, equal_effects, equal_variances
from poolbn.nodes.intervals import (
    family_sums,
    intervals_of,
    intervals_with_error,
    own_estimates,
)
from poolbn.nodes.localfit import (
    ALONE,
    INTERCEPT,
    Floats,
    GroupLevel,
    Integers,
    LinearFit,
    level_columns,
    predictor,
    renamed,
)
from poolbn.nodes.predicting import (
    GaussianPredictions,
    Predictive,
    UnitEffects,
    Values,
    columns,
    design,
)
from poolbn.nodes.predictive import predictive, uncertainty
from poolbn.nodes.rsquared import Variances, of_sums
from poolbn.nodes.terms import (
    DIFFERENCE,
    RESIDUAL,
    Equality,
    Intervals,
    Sums,
    Term,
    beyond_errors,
)
from poolbn.nodes.withinbetween import NUMBERS, within_between, within_between_units
from poolbn.wording import figure

if TYPE_CHECKING:
    import pandas as pd

_FEWEST = 3.0  # degrees of freedom of a variance that is drawn


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GaussianFit(LinearFit):
    """A linear regression with normal residuals in each data set. The intercept comes first.

    Where `status.ok` is false there is no likelihood: `loglik` is -inf, and the coefficients are
    those of least squares with the columns that cannot be distinguished left at 0.

    Attributes:
        coef: coefficients in each data set, (F, q).
        coef_cov: their covariance in each data set, (F, q, q): of least squares, or for partial
            pooling that of the random effects given the data and the other parameters.
        sigma2: residual variance in each data set, (F,).
        fixed: population coefficients, (q,); None without pooling.
        fixed_cov: their covariance, (q, q); None without pooling.
        random_cov: covariance of the random effects, (q, q); only for partial pooling.
        residual_shape: where residual variances are pooled, the shape of their inverse gamma
            distribution between data sets: large where they are alike, inf where equal.
        residual_scale: 1 / E(1 / sigma^2) of that distribution; `random_cov` is for this variance,
            and in proportion for others.
        squares: residual squares of each data set, (F,); where residual variances are pooled the
            generalised ones, (y - Z beta)'(I + Z D Z')^-1 (y - Z beta).
        df: the degrees of freedom that they leave for the variance, (F,); as the squares they add
            up where the data sets share it.
        effective_df: of each data set's random effects, (F,); 0 where there are none.
        rows: the rows that each data set gave to this node, (F,); 0 where it was left out.
        total_cov: covariance of the coefficients in each data set with all that is uncertain, also
            the fixed effects and the spread between data sets, (F, q, q); see `nodes.predictive`.
        between_cov: the part of it that differences between data sets tell of, (F, q, q).
            Both None where `predictive.uncertainty` makes them from `sums` when they are needed.
        unbiased: whether `sigma2` is squares over degrees of freedom and not over rows.
        sums: sufficient statistics of the family; None where they are not known, as in a file.
        saved_intervals: intervals as a file has them, or with those of adapted data sets.
        later: where cells are missing, what makes the intervals.
        unit_share: with units inside data sets the share of `sigma2` that is between units (the
            intraclass correlation of residuals), (F,); 1 for a column that describes units.
            `sigma2` is that of a row of a unit that is not known; `squares` and `df` are of
            residuals inside units.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
        >>> fit.fixed.round(2), fit.random_sd.round(2), fit.coef[:, 1].round(2)
        (array([22.66,  0.2 ]), array([0.57, 0.09]), array([0.18, 0.14, 0.12, 0.34]))
    """

    @property
    def gaussian(self) -> GaussianFit:
        """The fit itself."""
        return self

    @cached_property
    def intervals(self) -> Intervals | None:
        """Standard errors and degrees of freedom of effects; None where they are not known."""
        if self.later is not None:
            return self.later()
        if self.saved_intervals is not None or self.sums is None or not self.status.ok:
            return self.saved_intervals
        return intervals_of(self.within, self.sums)

    def mean(self, values: Values, sets: Integers) -> Floats:
        """The expectation given parents."""
        return predictor(self.coef, columns(self.parents, self.given, values), sets)

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of each row, with estimates taken for certain."""
        s2 = self.sigma2[sets]
        return -(np.log(2 * math.pi * s2) + (x - self.mean(values, sets)) ** 2 / s2) / 2

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        mean = self.mean(values, sets)
        return np.asarray(mean + np.sqrt(self.sigma2)[sets] * rng.standard_normal(mean.shape))

    def quantile(self, u: Floats, mean: Floats, sets: Integers) -> Floats:
        """The values at probabilities u where this is the mean."""
        from scipy.special import ndtri

        return np.asarray(mean + np.sqrt(self.sigma2)[sets] * ndtri(u))

    def predictive(self, certain: NDArray[np.bool_]) -> GaussianPredictions:
        """Student's t; where estimates are for certain in some data sets, normal in all.

        In the others coefficients alone are uncertain then.
        """
        if certain.any():
            known, none = np.full(len(certain), math.inf), np.zeros_like(self.coef_cov)
            cov = np.where(certain[:, None, None], 0.0, self.coef_cov)
            of = Predictive(self.coef, cov, none, self.sigma2, known, known, math.inf)
        else:
            of = predictive(self)
        return GaussianPredictions(of, self.parents, self.given)

    def unit_effects(self, rows: Observed, sets: Integers) -> UnitEffects | None:
        """Best linear prediction: what residuals of m rows sum up to, times t / (1 + m t)."""
        if self.unit_share is None or (self.unit_share == 1).all():
            return None
        share, m = self.unit_share[sets], np.diff(rows.offsets)
        t = share / (1 - share)
        per_row = t / (1 + m * t)
        X = design(self.parents, self.given, rows.values, len(rows.x))
        e = rows.x - np.einsum("ra,ra->r", X, self.coef[sets[rows.sets]])
        sums = np.zeros((len(m), X.shape[1] + 1))
        np.add.at(sums, rows.sets, np.column_stack([X, e]))
        sums *= per_row[:, None]
        return UnitEffects(
            mean=sums[:, -1:],
            cov=((1 - share) * per_row)[:, None, None],
            before=share[:, None, None],
            follows=sums[:, None, :-1],
        )

    def data_set_draws(self, draws: int, rng: np.random.Generator) -> Self:
        """The parameters of the F data sets, `draws` times; as they are for 0 draws."""
        F, q = self.coef.shape
        df, at, se = np.full(F, np.inf), np.empty(0), np.full((F, q), np.nan)
        if self.intervals is not None and len(self.intervals.at) == q - 1:
            at, se = self.intervals.at, self.intervals.se
            known = self.intervals.df
            least = np.where(np.isnan(known), np.inf, known).min(axis=1)
            df = np.where(least > 0, least, np.inf)
        coef = around(self.coef, with_errors(uncertainty(self)[0], at, se), df, draws, rng)
        return self._imagined(coef, np.tile(self.sigma2, max(draws, 1)))

    def new_data_sets(self, sets: int, draws: int, rng: np.random.Generator) -> Self:
        """Parameters of new data sets, for each draw of the population if there are draws."""
        own = self.unset
        coef = own._population.new_data_sets(sets, draws, rng)
        return own._imagined(coef, np.full(len(coef), own.sigma2.mean()))

    def _imagined(self, coef: Floats, sigma2: Floats) -> Self:
        return replace(self, levels=tuple(range(len(coef))), coef=coef, sigma2=sigma2)

    @property
    def _population(self) -> Population:
        fixed = self.coef.mean(axis=0) if self.fixed is None else self.fixed
        between = np.zeros((len(fixed),) * 2) if self.random_cov is None else self.random_cov
        errors = self.population_se, self.population_df
        return Population.of(fixed, self.fixed_cov, *errors, between)

    def population_draws(self, draws: int, rng: np.random.Generator) -> Floats:
        """Coefficients of the population, (draws, q); without pooling the mean of data sets'."""
        if self.fixed is not None:
            return self._population.draws(draws, rng)
        own = self.unset.data_set_draws(draws, rng).coef
        return np.asarray(own.reshape(draws, -1, own.shape[1]).mean(axis=1))

    def redrawing(self, rows: Observed) -> Callable[[np.random.Generator], GaussianPredictions]:
        """What draws the parameters that rows leave possible, as if they were certain."""
        if self.experiments:  # there they are not those of a regression
            return self._as_estimated()
        X = design(self.parents, self.given, rows.values, len(rows.x))
        T = Basis.of_rows(X, np.ones(len(X))).T
        Z, sigma2 = X @ T, np.maximum(self.sigma2, 1e-300)
        ends = rows.offsets.tolist()
        W = np.array([Z[a:b].T @ Z[a:b] for a, b in pairwise(ends)]) / sigma2[:, None, None]
        R = random_cov_in(self.fixed, self.random_cov, T, np.eye(1), len(W))
        if R is not None and self.residual_scale is not None:
            R = R * (sigma2 / self.residual_scale)[:, None, None]
        spread = Spread.of(W, R, 0.0)
        n, q = np.diff(rows.offsets).astype(np.float64), X.shape[1]
        shared = bool(np.ptp(self.sigma2) == 0)
        shape = self.residual_shape if self.residual_shape is not None else 0.0
        df = n.sum() - q if shared else n + (2 * shape if math.isfinite(shape) else n.sum())
        df = np.maximum(df, _FEWEST)
        node = self.predictive(np.ones(len(W), dtype=bool))

        def drawn(rng: np.random.Generator) -> GaussianPredictions:
            coef = self.coef + spread.draw(rng) @ T.T
            scale2 = self.sigma2 * df / rng.chisquare(df)
            return replace(node, linear=replace(node.linear, coef=coef, scale2=scale2))

        return drawn

    def adapted(self, name: Hashable, new: Data | None, n: Integers) -> Self:
        """The fit with one more data set that it was not learned from; see `nodes.adapting`.

        Without pooling there is nothing to go by but its own rows.

        Raises:
            DataError: without pooling, the rows do not give all coefficients and a variance.
        """
        if self.experiments:
            return self._beside_set(name, new, n)
        stats = _no_rows(name, (*self.columns, self.child)) if new is None else new.stats()
        family = stats.family(self.child, self.columns)
        if self.fixed is not None:
            own = adapting.adapted(self, n.astype(np.float64), family)
        else:
            own = self._alone(stats)
        return adapting.appended(self, name, own, family)

    def _alone(self, new: GroupStats) -> adapting.Adapted:
        """Least squares on the rows of the new data set alone."""
        rows, q = new.n_rows, len(self.columns) + 1
        partial_pooling = Option("pooling", "partial")
        if rows <= q:
            raise DataError(
                f"{ALONE}: {q} coefficient{'s' * (q > 1)} and a variance of {self.child!r} need "
                f"at least {q + 1} rows of data set {new.levels[0]!r}, and there are {rows}; give "
                "more rows, or learn with ",
                partial_pooling,
            )
        data = standardise(new)
        model: Any = self.pooling
        f = model.fit(data, data.family(self.child, self.columns), None)
        if not f.status.ok:
            raise DataError(f"{ALONE}, and {f.detail}; or learn with ", partial_pooling)
        first = (f.coef[0], f.coef_cov[0], f.sigma2[0], f.squares[0], f.df[0])
        return adapting.Adapted(*first[:2], *map(float, first[2:]))

    def taken(self, at: Sequence[int], levels: tuple[Hashable, ...]) -> Self:
        """The fit of the data sets at these positions, which may repeat, under these names."""
        total, between = uncertainty(self)
        own = self.intervals
        if own is not None:
            own = own._replace(se=own.se[at], df=own.df[at])
        names = ["coef", "coef_cov", "sigma2", "squares", "df", "effective_df", "rows"]
        names += [] if self.unit_share is None else ["unit_share"]
        found = {name: getattr(self, name)[at] for name in names}
        return replace(
            self, levels=levels, left_out=self._left_out(at, levels), total_cov=total[at],
            between_cov=between[at], saved_intervals=own, sums=None, later=None, **found,
            **self._intervened(at, levels),
        )  # fmt: skip

    def set_to(self, where: Data) -> Self:
        """Where the node was set: its mean and variance there."""
        mean, variance = of_values(sums_with(where, [self.child]), self.child)
        F, q = len(mean), self.coef.shape[1]
        coef, cov = np.zeros((F, q)), np.zeros((F, q, q))
        coef[:, 0], cov[:, 0, 0] = mean, variance / where.n
        return replace(self._apart(where.levels, coef, cov, variance), was_set=where.levels)

    def changed_in(self, where: Data) -> Self:
        """Where the node was changed: least squares there."""
        names = [*self.columns, self.child]
        f = least_squares(sums_with(where, [*self.parents, self.child]).select(names))
        least = 1e-6 * f.sigma2.max()
        made = self._apart(where.levels, f.coef, f.coef_cov, np.maximum(f.sigma2, least))
        return replace(made, was_changed=where.levels)

    def _apart(
        self, levels: tuple[Hashable, ...], coef: Floats, cov: Floats, variance: Floats
    ) -> Self:
        """A fit like this one of data sets that it is not about."""
        F, q = coef.shape
        none, known, share = np.zeros(F), self.intervals, self.unit_share
        if known is not None:
            known = known._replace(se=np.full((F, q), math.nan), df=np.full((F, q), math.nan))
        if share is not None:  # rows are independent, unless the column describes units
            share = np.full(F, float((share == 1).all()))
        return replace(
            self, levels=levels, was_set=(), was_changed=(), coef=coef, coef_cov=cov,
            sigma2=variance, squares=none, df=none, effective_df=none, rows=none,
            total_cov=cov, between_cov=np.zeros_like(cov), saved_intervals=known, sums=None,
            later=None, unit_share=share,
        )  # fmt: skip

    def followed_by(self, there: Self) -> Self:
        """The fit with these experiments at the end."""
        free, out = (fit.taken(range(len(fit.levels)), fit.levels) for fit in (self, there))
        names = ["coef", "coef_cov", "sigma2", "squares", "df", "effective_df", "rows"]
        names += ["total_cov", "between_cov"] + ["unit_share"] * (self.unit_share is not None)
        found: dict[str, Any] = {
            name: np.concatenate([getattr(free, name), getattr(out, name)]) for name in names
        }
        known = free.saved_intervals
        if known is not None and out.saved_intervals is not None:
            se, df = (
                np.vstack([getattr(known, name), getattr(out.saved_intervals, name)])
                for name in ("se", "df")
            )
            known = known._replace(se=se, df=df)
        levels = (*free.levels, *out.levels)
        told = free._with_experiments(out)
        return replace(free, levels=levels, saved_intervals=known, **found, **told)

    def alone(self, parent: str, data: Data) -> list[tuple[Floats, Floats, Floats]]:
        """Least squares in each data set; Student's t, because data sets can be small."""
        stats = sums_with(data, [*self.parents, self.child]).select([*self.columns, self.child])
        f = least_squares(stats)
        ok, df = np.isfinite(f.loglik), stats.n - len(stats.names)
        return [
            (
                np.where(ok, f.coef[:, k], math.nan),
                np.where(ok, np.sqrt(f.coef_cov[:, k, k]), math.nan),
                np.where(ok, df, 1.0),
            )
            for k in (at + 1 for at, *_ in self.columns_of(parent))
        ]

    def terms(self, parent: str) -> Iterator[Term]:
        """The effects of a parent: differences."""
        if self.experiments:
            yield from self._in_all(self.unset.terms(parent))
            return
        for at, column, level in self.columns_of(parent):
            k = at + 1
            effect, se, df = self.population(k)
            between = math.nan if self.random_sd is None else float(self.random_sd[k])
            varies = 0.0 if math.isnan(between) else between
            if self.random_sd is None and self.fixed is None:
                varies = beyond_errors(self.coef[:, k], self.coef_sd[:, k])
            new = math.hypot(se, between)
            if self.intervals is not None and self.intervals.new_se.size:
                new = float(self.intervals.new_se[k])
            own_se, own_df = self.own_errors(k)
            yield Term(
                column, level, "", DIFFERENCE, effect, se, df, between, varies, new,
                self.coef[:, k], own_se, own_df,
            )  # fmt: skip

    @property
    def holds_tests(self) -> bool:
        """Whether `equality` needs no data."""
        level = isinstance(self.pooling, GroupLevel)
        return self.is_given or level or self.sums is not None

    def equality(self, data: Data | None = None) -> dict[str, Equality]:
        """Tests for equal effects, and for equal residual variances."""
        if self.is_given:
            return dict.fromkeys(self.parents, Equality())
        x = self._sums_of(data, "heterogeneity")
        if x is None:
            return dict.fromkeys([*self.parents, RESIDUAL], Equality())
        own = own_estimates(x)
        found = {RESIDUAL: equal_variances(own.rss, x.n - own.rank)}
        for parent, span in zip(self.parents, spans(self.given), strict=True):
            one = len(span) == 1
            found[parent] = (
                equal_effects(own, x.n, span[0] + 1) if one else equal_blocks(x, own, span)
            )
        return found

    def variances(self, data: Data) -> Variances | None:
        """What fixed and random effects explain of the node's variance."""
        if self.is_given or isinstance(self.pooling, GroupLevel) or not self.status.ok:
            return None
        stats = sums_with(data, [*self.parents, self.child]).select([*self.columns, self.child])
        found = of_sums(stats, self.coef, self.fixed, self.random_cov, self.sigma2)
        if self.unit_share is None:
            return found
        between = float(stats.n @ (self.sigma2 * self.unit_share) / stats.n.sum())
        return found._replace(units=between, left=found.left - between)

    def within_between(
        self, data: Data | None = None, interval: float = 0.95, *, units: bool = False
    ) -> Floats | None:
        """Effects of the columns within data sets and between their means."""
        x = None if self.is_given or not self.parents else self._sums_of(data, "within_between")
        if x is None or (units and x.inside is None):
            return np.full((len(self.columns), len(NUMBERS)), math.nan)
        one = self.fixed is not None and self.random_cov is None
        one = one or getattr(self.pooling, "random", "") == "intercept"
        compare = within_between_units if units else within_between
        return compare(x, self.within, interval, one_slope=one)

    def _sums_of(self, data: Data | None, method: str) -> Sums | None:
        """Sufficient statistics of the family; None for a node of one value in each data set."""
        every = np.ones(len(self.columns) + 1, dtype=bool)
        if data is not None:
            found = standardise(sums_with(data, [*self.parents, self.child]))
            share = self.unit_share
            if found.units is not None and share is not None:
                level = (share == 1).all()
                found = found.of_units if level else found.whitened(share / (1 - share))
            return family_sums(found, found.family(self.child, self.columns), every)
        if self.sums is not None:
            return self.sums._replace(varies=every)
        if isinstance(self.pooling, GroupLevel):
            return None
        why = f"{self.child!r} has no sufficient statistics, as in a loaded network"
        if not self.status.ok:
            why = f"{self.child!r} has no likelihood ({self.status}), and its fit no statistics"
        raise DataError(
            f"{why}; give them, as in net.{method}(pb.stats(data, group=...)), or rows, "
            f"net.{method}(pb.table(data, group=...))"
        )

    def own_errors(self, k: int, family: GroupStats | None = None) -> tuple[Floats, Floats]:
        """Standard errors and degrees of freedom of a coefficient in each data set."""
        if self.intervals is not None:
            return self.intervals.se[:, k], self.intervals.df[:, k]
        F = len(self.levels)
        variances = [adapting.total_cov(self, j, family)[k, k] for j in range(F)]
        return np.sqrt(variances), np.full(F, np.inf)

    def table(self) -> pd.DataFrame:
        """A row for each coefficient: fixed effect, standard error, SD between data sets, and all.

        Examples:
            >>> import poolbn as pb
            >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
            ...                  missing="drop")
            >>> pb.fit_node(stats, "bmi", ["age"]).table().round(2)
                         fixed    se  between_sd     NY     MN     KY     MS
            (Intercept)  22.66  0.34        0.57  22.75  22.99  23.16  21.75
            age           0.20  0.06        0.09   0.18   0.14   0.12   0.34
        """
        import pandas as pd

        columns: dict[Hashable, Floats] = {}
        if self.fixed is not None:
            columns |= {"fixed": self.fixed, "se": self.population_se}
        if self.random_sd is not None:
            columns["between_sd"] = self.random_sd
        columns |= dict(zip(level_columns(self.levels, columns), self.coef, strict=True))
        return pd.DataFrame(columns, index=pd.Index([INTERCEPT, *self.columns]))

    def _more(self) -> str:
        sd = np.sqrt(self.sigma2)
        spread = figure(sd.min()) + (f" to {figure(sd.max())}" if sd.max() > sd.min() else "")
        return f"residual SD {spread}; "

    def in_population(self) -> Self:
        """The fit of one data set, which is like the population."""
        own = self.unset
        fixed = own.coef.mean(axis=0) if own.fixed is None else own.fixed
        variance = np.array([own.sigma2.mean()])
        return replace(own, levels=own.levels[:1], coef=fixed[None], sigma2=variance)

    def residuals(self, x: Floats, fitted: Floats, sets: Integers) -> Floats:
        """Differences in standard deviations."""
        return np.asarray((x - fitted) / np.sqrt(self.sigma2[sets]))

    def with_imputation_error(self, data: Data) -> Self:
        """The fit with intervals that contain what missing cells leave open, made when asked."""
        able = self.status.ok and self.parents and hasattr(self.pooling, "fit")
        if not data.imputed or data.provisional or not able:
            return self
        stats = data.stats()
        at = stats.names.index
        family = at(self.child), tuple(map(at, self.columns))
        return replace(self, later=partial(intervals_with_error, self, stats, family))


def of_values(stats: GroupStats, name: str) -> tuple[Floats, Floats]:
    """Mean and variance of a column in each data set, (F,) each.

    The variance is not quite 0 where it is constant: other values are not impossible.
    """
    i = stats.names.index(name)
    least = 1e-6 * standardise(stats).scale[i] ** 2
    return stats.mean[:, i], np.maximum(stats.scatter[:, i, i] / stats.n, least)


def least_squares(stats: GroupStats) -> linear.LeastSquaresFit:
    """Of the last column on the others, in each data set alone."""
    last = len(stats.names) - 1
    return linear.fit(standardise(stats), last, tuple(range(last)), separate=True, unbiased=True)


def _no_rows(name: Hashable, names: Sequence[str]) -> GroupStats:
    N, none = len(names), np.zeros(1, dtype=np.int64)
    return GroupStats(tuple(names), (name,), none, np.zeros((1, N)), np.zeros((1, N, N)), none)


def of_nodes(
    fit: GaussianFit, parents: Sequence[str], given: Sequence[tuple[str, ...]]
) -> GaussianFit:
    """A fit of columns of numbers with the nodes that these are, and the levels of each."""
    if fit.columns != labels_of(parents, given):
        raise ValueError(f"the parents of {fit.child!r} are not {parents!r}")
    return renamed(fit, parents=tuple(parents), given=tuple(given))
