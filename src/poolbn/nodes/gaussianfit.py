"""Linear regressions with normal residuals: all that is asked of such a node."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.moments.data import Data, sums_with
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import labels_of
from poolbn.moments.standardised import standardise
from poolbn.nodes import adapting, linear
from poolbn.nodes.design import Basis
from poolbn.nodes.drawing import Observed, Population, Spread, around, random_cov_in, with_errors
from poolbn.nodes.imputed import intervals_with_error
from poolbn.nodes.localfit import ALONE, Floats, Integers, LinearFit, predictor, renamed
from poolbn.nodes.predicting import GaussianPredictions, Predictive, Values, columns, design
from poolbn.nodes.predictive import predictive, uncertainty

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
        coef = self._population.new_data_sets(sets, draws, rng)
        return self._imagined(coef, np.full(len(coef), self.sigma2.mean()))

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
        own = self.data_set_draws(draws, rng).coef
        return np.asarray(own.reshape(draws, -1, own.shape[1]).mean(axis=1))

    def redrawing(self, rows: Observed) -> Callable[[np.random.Generator], GaussianPredictions]:
        """What draws the parameters that rows leave possible, as if they were certain."""
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
        stats = _no_rows(name, (*self.columns, self.child)) if new is None else new.stats()
        family = stats.family(self.child, self.columns)
        if self.fixed is not None:
            own = adapting.adapted(self, n.astype(np.float64), family)
        else:
            own = self._alone(stats)
        return adapting.appended(self, name, own, family)

    def _alone(self, new: GroupStats) -> adapting.Own:
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
        return adapting.Own(*first[:2], *map(float, first[2:]))

    def taken(self, at: Sequence[int], levels: tuple[Hashable, ...]) -> Self:
        """The fit of the data sets at these positions, which may repeat, under these names."""
        total, between = uncertainty(self)
        own = self.intervals
        if own is not None:
            own = own._replace(se=own.se[at], df=own.df[at])
        names = "coef", "coef_cov", "sigma2", "squares", "df", "effective_df", "rows"
        found = {name: getattr(self, name)[at] for name in names}
        return replace(
            self, levels=levels, left_out=self._left_out(at, levels), total_cov=total[at],
            between_cov=between[at], saved_intervals=own, sums=None, later=None, **found,
        )  # fmt: skip

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

    def in_population(self) -> Self:
        """The fit of one data set, which is like the population."""
        fixed = self.coef.mean(axis=0) if self.fixed is None else self.fixed
        variance = np.array([self.sigma2.mean()])
        return replace(self, levels=self.levels[:1], coef=fixed[None], sigma2=variance)

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
