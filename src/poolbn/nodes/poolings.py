"""The poolings a user picks from: models of a node whose distribution is normal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import names_of
from poolbn.errors import MessagePart, Option, OptionError, check_option, nearest
from poolbn.moments.standardised import Family, StandardisedStats, parent_counts
from poolbn.nodes import linear, lmm, views
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.grouplevel import Ending
from poolbn.nodes.intervals import family_sums
from poolbn.nodes.lmm import Random, Residuals
from poolbn.nodes.localfit import INTERCEPT, Counts, Status
from poolbn.nodes.model import Continuous, Likelihoods, NeighbourScores, NodeModel, Penalty, Worth
from poolbn.wording import counted, listed

Discrete = Literal["auto", "table", "logit"]
Variance = Literal["ml", "unbiased"]
Method = Literal["ml", "reml"]

_STEPS = 50.0  # regressions that a mixed-effects fit costs, for each data set


@dataclass(frozen=True, repr=False)
class Gaussian:
    """What the poolings of a node share, whose distribution is normal.

    Attributes:
        discrete: how discrete nodes with discrete parents are modelled.
        continuous: how continuous nodes with discrete parents are.
    """

    discrete: Discrete = field(default="auto", kw_only=True)
    continuous: Continuous = field(default="additive", kw_only=True)
    complete: ClassVar[bool] = False  # whether data sets have the same parameters
    partial: ClassVar[bool] = False  # whether parameters vary around common ones

    def __post_init__(self) -> None:
        check_option("discrete", self.discrete, get_args(Discrete))
        check_option("continuous", self.continuous, get_args(Continuous))

    def __repr__(self) -> str:
        usual = {of.name: of.default for of in fields(self) if of.kw_only}
        own = {of.name: getattr(self, of.name) for of in fields(self) if of.name not in usual}
        own |= {name: told for name in usual if (told := getattr(self, name)) != usual[name]}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in own.items())})"

    @property
    def how(self) -> Self:
        """The pooling itself."""
        return self

    @property
    @abstractmethod
    def kernels(self) -> tuple[str, ...]:
        """The modules of `poolbn.kernels` that fit it."""

    @property
    @abstractmethod
    def own_variances(self) -> bool:
        """Whether each data set has a residual variance of its own."""

    def first(self, levels: Sequence[Hashable]) -> Self:
        """The pooling itself."""
        return self

    def chosen(self, levels: Sequence[Hashable], worth: Callable[[NodeModel], Worth]) -> Self:
        """The pooling itself."""
        return self

    def view(self, data: StandardisedStats, child: int) -> StandardisedStats | None:
        """The data sets that count for a child; None where it has one value in each."""
        leave_out, values = self.own_variances, not self.complete
        return views.data_sets_for(data, child, leave_out=leave_out, values=values)

    @abstractmethod
    def counts(self, parents: int, data_sets: int) -> Counts:
        """Parameters by what informs them, where a fit is not singular."""

    def n_params(self, parents: int, data_sets: int) -> int:
        """The number of parameters (eq. nparams for partial pooling).

        Examples:
            >>> import poolbn as pb
            >>> pb.Complete().n_params(parents=2, data_sets=4)
            4
            >>> pb.NoPooling().n_params(parents=2, data_sets=4)
            16
            >>> pb.Partial().n_params(parents=2, data_sets=4)
            10
        """
        return sum(self.counts(parents, data_sets))

    def logliks(
        self,
        data: StandardisedStats,
        families: Sequence[Family],
        penalty: Penalty,
        *,
        final: bool = False,
    ) -> Likelihoods:
        """Maximised log-likelihoods, with the effort that a search needs, or a final fit."""
        compute = partial(self._logliks, penalty=penalty, final=final)
        if data.unit_level.any():
            again = partial(self.logliks, penalty=penalty, final=final)
            return views.by_level(data, families, again)
        return views.likelihoods(
            data, families, compute, leave_out=self.own_variances, values=not self.complete
        )

    def fit(self, data: StandardisedStats, family: Family, penalty: Penalty) -> GaussianFit:
        """The final fit of one node."""
        if data.unit_level[family[0]]:
            return views.fit_of_units(data, family, partial(self.fit, penalty=penalty))
        return views.fit(
            data, family, self._fit, leave_out=self.own_variances, values=not self.complete
        )

    @abstractmethod
    def _logliks(
        self, data: StandardisedStats, families: Sequence[Family], *, penalty: Penalty, final: bool
    ) -> Likelihoods:
        """Those of children that vary inside data sets."""

    @abstractmethod
    def _fit(self, data: StandardisedStats, family: Family) -> GaussianFit:
        """That of such a child."""


@dataclass(frozen=True, repr=False)
class LeastSquares(Gaussian):
    """Regressions in closed form: one for all rows, or one for each data set."""

    variance: Variance = "ml"
    separate: ClassVar[bool]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option("variance", self.variance, get_args(Variance))

    @property
    def _unbiased(self) -> bool:
        return self.variance == "unbiased"

    @property
    def kernels(self) -> tuple[str, ...]:
        """That of least squares."""
        return ("regress",)

    @property
    def own_variances(self) -> bool:
        """Where each data set is on its own."""
        return self.separate

    def admits(self, data: StandardisedStats) -> str | None:
        """Any data."""
        return None

    def _logliks(
        self, data: StandardisedStats, families: Sequence[Family], *, penalty: Penalty, final: bool
    ) -> Likelihoods:
        loglik = linear.log_likelihoods(
            data, families, separate=self.separate, unbiased=self._unbiased
        )
        sizes = [len(parents) for _, parents in families]
        known = np.array([self._counts(p, data) for p in range(max(sizes, default=0) + 1)]).reshape(
            -1, len(Counts._fields)
        )
        return Likelihoods(loglik, known[sizes], np.zeros(len(sizes)))

    def _counts(self, parents: int, data: StandardisedStats) -> Counts:
        """With the variances between units."""
        own = self.counts(parents, len(data.n))
        if data.units is None:
            return own
        if self.separate:
            several = data.units.data_set[data.units.size > 1]
            return own._replace(own_units=len(np.unique(several)))
        return own._replace(units=1)

    def neighbours(
        self,
        data: StandardisedStats,
        families: Sequence[Family],
        charges: NDArray[np.float64],
    ) -> NDArray[np.float64] | None:
        """Log-likelihoods with each column added or removed, see `linear.neighbours`.

        None where a likelihood is not about all data sets, see `views`.
        """
        if data.some_constant if self.separate else data.some_unmeasured:
            return None
        if data.units is not None:
            return None
        return linear.neighbours(
            data, families, charges, separate=self.separate, what=self.variance
        )

    def bounds(
        self, data: StandardisedStats, families: Sequence[Family], penalty: Penalty
    ) -> Likelihoods | None:
        """None: the likelihoods themselves are cheap."""
        return None

    def cost(self, data_sets: int) -> float:
        """One regression, or one for each data set."""
        return data_sets if self.separate else 1.0

    def _fit(self, data: StandardisedStats, family: Family) -> GaussianFit:
        f = linear.fit(data, *family, separate=self.separate, unbiased=self._unbiased)
        child, parents = _names(data, family)
        F, q = len(data.levels), len(parents) + 1
        ending, units = _of_linear(f, child, parents, self._tables(data)), data.units
        if self.separate and ending[0].ok:
            ending = _with_raised(ending, child, [data.levels[j] for j in np.flatnonzero(f.raised)])
        status, detail = ending
        counts = self._counts(len(parents), data)
        data = data if f.data is None else f.data  # whitened
        if status.ok and f.data is not None and not self.separate:
            detail += _of_levels(data, family, f)
        share_of_units = None if f.ratio is None else f.ratio / (1 + f.ratio)
        if not self.separate:  # each data set has its share of the one regression
            share = data.n / data.rows
            each = [np.repeat(of, F, axis=0) for of in (f.coef, f.coef_cov, f.sigma2)]
            squares, df = share * f.rss, data.n - q / F
        else:
            each = [f.coef, f.coef_cov, f.sigma2]
            squares, df = f.rss, data.n - q
        if share_of_units is not None:
            share_of_units = np.broadcast_to(share_of_units, F).copy()
            each[2] = each[2] / (1 - share_of_units)
        return GaussianFit(
            child=child,
            parents=parents,
            given=((),) * len(parents),
            levels=data.levels,
            pooling=self,
            coef=each[0],
            coef_cov=each[1],
            sigma2=each[2],
            squares=squares,
            df=df,
            effective_df=np.zeros(F),
            rows=data.n,
            total_cov=each[1],
            between_cov=np.zeros((F, q, q)),
            unbiased=self._unbiased,
            fixed=None if self.separate else f.coef[0],
            fixed_cov=None if self.separate else f.coef_cov[0],
            loglik=float(f.loglik.sum()),
            counts=counts,
            unit=None if units is None else units.name,
            unit_share=share_of_units,
            n_rows=int(data.rows),
            status=status,
            detail=detail,
            sums=family_sums(data, family, np.zeros(q, dtype=bool)),
        )

    @abstractmethod
    def _tables(self, data: StandardisedStats) -> list[str]:
        """What the tables of the regressions are called."""


_DIFFER = 0.01  # probability of levels of data sets that are as far apart, if all are one


def _of_levels(data: StandardisedStats, family: Family, f: linear.LeastSquaresFit) -> str:
    """What there is to say of complete pooling where levels of data sets differ.

    With units inside data sets it takes units of a data set to be as different as others. The means
    of residuals, weighted by what they are worth, then have squares with a sum that is next to
    chi-squared.
    """
    from scipy.special import chdtrc

    child, parents = family[0], list(family[1])
    slopes = f.coef[0, 1:] * data.scale[parents] / data.scale[child]
    left = (data.mean[:, child] - data.mean[:, parents] @ slopes) * data.scale[child]
    p = float(chdtrc(len(left) - 1, data.weights @ left**2 / float(f.sigma2[0])))
    if len(left) < 2 or not p < _DIFFER:
        return ""
    return (
        f"; levels differ between data sets (p = {p:.1g}), which complete pooling denies: the "
        "intervals of columns that differ between data sets too are too short"
    )


@dataclass(frozen=True, repr=False)
class Complete(LeastSquares):
    """Complete pooling: one regression for all data sets (a Gaussian network, eq. gnode).

    Attributes:
        variance: "ml" divides the residual squares by n, "unbiased" by n - q, as bnlearn does.
        discrete: how a discrete node with discrete parents is modelled: by a "table" of
            probabilities, by an additive "logit", or, "auto", by the one with the better score.
        continuous: how a continuous node with discrete parents is modelled: by one "additive"
            regression, to which each level adds something; by a "conditional" one, a regression
            with a variance for each configuration of the levels (eq. cgnode), which needs rows; or,
            "auto", by the one with the better score.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> pb.fit_node(stats, "bmi", ["age"], pooling=pb.Complete()).coef[0].round(2)
        array([23.33,  0.17])
    """

    separate = False
    complete = True

    def counts(self, parents: int, data_sets: int) -> Counts:
        """The coefficients and one variance."""
        return Counts(parents + 2, 0, 0)

    def _tables(self, data: StandardisedStats) -> list[str]:
        return ["all data sets together"]

    def __str__(self) -> str:
        return "complete pooling"


@dataclass(frozen=True, repr=False)
class NoPooling(LeastSquares):
    """No pooling: a regression for each data set (a conditional Gaussian network, eq. cgnode).

    Attributes:
        variance: "ml" divides the residual squares by n_j, "unbiased" by n_j - q, as bnlearn does.
        discrete: how a discrete node with discrete parents is modelled: by a "table" of
            probabilities, by an additive "logit", or, "auto", by the one with the better score.
        continuous: how a continuous node with discrete parents is modelled: by one "additive"
            regression, to which each level adds something; by a "conditional" one, a regression
            with a variance for each configuration of the levels (eq. cgnode), which needs rows; or,
            "auto", by the one with the better score.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> pb.fit_node(stats, "bmi", ["age"], pooling=pb.NoPooling()).coef.round(2)
        array([[22.47,  0.19],
               [22.68,  0.15],
               [23.57,  0.1 ],
               [21.59,  0.36]])
    """

    separate = True

    def counts(self, parents: int, data_sets: int) -> Counts:
        """The coefficients and a variance, for each data set."""
        return Counts(0, 0, (parents + 2) * data_sets)

    def _tables(self, data: StandardisedStats) -> list[str]:
        return [f"data set {level!r}" for level in data.levels]

    def __str__(self) -> str:
        return "no pooling"


@dataclass(frozen=True, repr=False)
class Partial(Gaussian):
    """Partial pooling: a linear mixed-effects model (eq. lmenode).

    Attributes:
        random: which coefficients vary between data sets: "full" is all of them, with all their
            covariances, "intercept" is the intercept alone, and a list of columns is the intercept
            and the slopes of these parents. With "full" the slope of a column that is constant in
            each data set does not vary; listed, it does, as in lme4. A discrete node whose
            coefficients do not all vary has a logistic regression, not a table.
        residuals: "shared" is one residual variance for all data sets, as in the paper. "separate"
            is one for each, estimated alone; each data set then needs more rows than coefficients.
            "pooled" is one for each, from a common inverse gamma distribution whose spread is
            estimated: one parameter more than "shared".
        method: "ml", or "reml" to estimate parameters and to reproduce published numbers:
            restricted likelihoods of different parent sets are not comparable.
        discrete: how a discrete node with discrete parents is modelled: by a "table" of
            probabilities, by an additive "logit", or, "auto", by the one with the better score.
        continuous: how a continuous node with discrete parents is modelled: by one "additive"
            regression, to which each level adds something; by a "conditional" one, a regression
            with a variance for each configuration of the levels (eq. cgnode), which needs rows; or,
            "auto", by the one with the better score.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> pb.fit_node(stats, "bmi", ["age"], pooling=pb.Partial(residuals="pooled")).coef.round(2)
        array([[22.73,  0.18],
               [22.95,  0.15],
               [23.12,  0.12],
               [21.79,  0.34]])
    """

    partial: ClassVar[bool] = True
    random: Random = "full"
    residuals: Residuals = "shared"
    method: Method = "ml"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.random, str):
            check_option("random", self.random, ("full", "intercept"))
        else:
            object.__setattr__(self, "random", tuple(names_of("random", self.random)))
            if self.discrete == "table":
                raise _no_slopes(list(self.random))
        if self.random == "intercept" and self.discrete == "table":
            raise _no_slopes(self.random)
        check_option("residuals", self.residuals, get_args(Residuals))
        check_option("method", self.method, get_args(Method))
        if self.residuals != "shared" and self.method == "reml":
            raise OptionError(
                Option("method", self.method),
                " is for ",
                Option("residuals", "shared"),
                f"; {self.residuals} ones need 'ml'",
            )

    @property
    def kernels(self) -> tuple[str, ...]:
        """That of the residuals."""
        return (lmm.RESIDUALS[self.residuals].kernel,)

    @property
    def own_variances(self) -> bool:
        """Pooled and separate ones."""
        return self.residuals != "shared"

    def counts(self, parents: int, data_sets: int) -> Counts:
        """Fixed effects, (co)variances of the random effects, and variances (eq. nparams).

        Columns that `random` lists are taken to be among the parents.
        """
        slopes = parents if self.random == "full" else 0
        if not isinstance(self.random, str):
            slopes = min(parents, len(self.random))
        return self.counts_with(parents, slopes, data_sets)

    def counts_with(
        self, parents: int, slopes: int, data_sets: int, inside: bool = False
    ) -> Counts:
        """The same, with so many slopes that vary; `inside` data sets no level counts."""
        rows, groups, own = lmm.RESIDUALS[self.residuals].counts
        level = 0 if inside else 1
        return Counts(
            rows=parents + level + rows,
            groups=(slopes + level) * (slopes + level + 1) // 2 + groups,
            own=own * data_sets,
        )

    def _with_counts(
        self, found: lmm.Maxima, data: StandardisedStats, families: Sequence[Family]
    ) -> Likelihoods:
        sizes = parent_counts(families)
        slopes = sizes - lmm.Slopes.of(data, self.random).without(families)
        known = _all_counts(self, int(sizes.max(initial=0)), len(data.n), data.inside)
        counts = known[sizes, slopes]
        counts[:, Counts._fields.index("units")] = data.units is not None
        return Likelihoods(found.loglik, counts, found.uneven)

    def admits(self, data: StandardisedStats) -> Iterable[MessagePart] | None:
        """Two data sets or more, with the columns whose slopes vary."""
        if why := self.unknown_slopes(data.names):
            return why
        if len(data.levels) > 1:
            return None
        return (
            f"partial pooling needs at least two data sets; there is one, {data.levels[0]!r} "
            f"with {data.rows:.0f} rows; use ",
            Option("pooling", "complete"),
            ", or add the sufficient statistics of others",
        )

    def unknown_slopes(self, names: Sequence[str]) -> tuple[MessagePart, ...] | None:
        """What is wrong with the columns whose slopes vary; a discrete one is several of these."""
        for name in () if isinstance(self.random, str) else self.random:
            if name not in names and not any(own.startswith(f"{name}=") for own in names):
                return (
                    Option("random", list(self.random)),
                    f" names {name!r}, which is no column{nearest(name, names)}",
                )
        return None

    def _logliks(
        self, data: StandardisedStats, families: Sequence[Family], *, penalty: Penalty, final: bool
    ) -> Likelihoods:
        if len(data.levels) < 2 and self.own_variances:
            return views.nothing(len(families))
        uneven = penalty.rows is not None
        found = lmm.log_likelihoods(data, families, **self._kind(), final=final, uneven=uneven)
        return self._with_counts(found, data, families)

    def bounds(
        self, data: StandardisedStats, families: Sequence[Family], penalty: Penalty
    ) -> Likelihoods | None:
        """From least squares by data set, see `kernels.bounds`.

        A density with random effects, and sigma_j^2, integrated out is at most the largest one with
        them given: no pooling with a variance for each data set.
        """
        if data.units is not None:
            return None
        return views.likelihoods(data, families, self._bounds, leave_out=self.own_variances)

    def _bounds(self, data: StandardisedStats, families: Sequence[Family]) -> Likelihoods:
        if self.residuals == "shared":
            loglik = lmm.upper_bounds(data, families, reml=self.method == "reml")
        else:
            loglik = linear.largest_separate(data, families)
        found = lmm.Maxima(loglik, np.zeros(len(families)))
        return self._with_counts(found, data, families)

    def neighbours(
        self,
        data: StandardisedStats,
        families: Sequence[Family],
        charges: Callable[[int, int], NDArray[np.float64]],
        candidates: NDArray[np.bool_],
        *,
        improving_only: bool,
    ) -> NeighbourScores | None:
        """Scores, and bounds with all changes of parents at once, see `lmm.neighbours`.

        None where they come one by one.
        """
        if not self.sweeps:
            return None
        look = partial(lmm.neighbours, charges=charges, improving_only=improving_only)
        return views.neighbours(data, families, candidates, look)

    @property
    def sweeps(self) -> bool:
        """Whether all changes of parents can be looked at at once."""
        return self.random == "full" and self.residuals == "shared" and self.method == "ml"

    def unit_ratios(
        self, data: StandardisedStats, families: Sequence[Family]
    ) -> NDArray[np.float64]:
        """Variances between units inside data sets over those of residuals, (M,)."""
        return lmm.unit_ratios(data, families, **self._kind())

    def cost(self, data_sets: int) -> float:
        """Some dozens of regressions in each data set."""
        return _STEPS * data_sets

    def _fit(self, data: StandardisedStats, family: Family) -> GaussianFit:
        some = len(data.levels) > 1 or not self.own_variances
        f = lmm.fit(data, *family, **self._kind()) if some else None
        if not isinstance(f, lmm.MixedFit):
            return self._without_likelihood(data, family, f)
        child, parents = _names(data, family)
        F, q = len(data.levels), len(parents) + 1
        of = lmm.Slopes.of(data, self.random)
        slopes = [data.names[parent] for parent in family[1] if of.vary[parent]]
        between = np.array([True, *(of.between[parent] for parent in family[1])])
        ending = _of_mixed(f, (INTERCEPT, *parents), (INTERCEPT, *slopes))
        if f.raised:
            ending = _with_raised(ending, child, linear.raised(data, *family))
        status, detail = ending
        units, data = data.units, f.data  # whitened
        sigma2, share = f.sigma2, None
        if units is not None and data.ratio is not None:
            sigma2, share = f.sigma2 * (1 + data.ratio), data.ratio / (1 + data.ratio)
        # Random effects take t_j of a data set's rows, and at the maximum of a likelihood the
        # squares of what is left are (n_j - t_j) sigma_j^2. Fixed effects take what is missing to q
        # in all data sets together.
        counts = self.counts_with(len(parents), len(slopes), F)
        left = data.n - f.effective_df
        df = left - (q - f.effective_df) / F
        reml = self.method == "reml"
        squares = f.squares if f.shape is not None else f.sigma2 * (df if reml else left)
        return GaussianFit(
            child=child,
            parents=parents,
            given=((),) * len(parents),
            levels=data.levels,
            pooling=self,
            coef=f.fixed + f.random,
            coef_cov=f.conditional_cov,
            sigma2=sigma2,
            squares=squares,
            df=df,
            effective_df=f.effective_df,
            rows=data.n,
            total_cov=None,
            between_cov=None,
            unbiased=reml,
            fixed=f.fixed,
            fixed_cov=f.fixed_cov,
            random_cov=f.random_cov,
            residual_shape=f.shape,
            residual_scale=f.scale,
            loglik=f.loglik,
            counts=counts._replace(units=int(units is not None)),
            unit=None if units is None else units.name,
            unit_share=share,
            n_rows=int(data.rows),
            status=status,
            detail=detail,
            sums=family_sums(data, family, between),
        )

    def _kind(self) -> lmm.Kind:
        return {
            "random": self.random,
            "residuals": self.residuals,
            "reml": self.method == "reml",
        }

    def __str__(self) -> str:
        random = "" if self.random == "full" else " of the intercept"
        if not isinstance(self.random, str):
            random = f" of {listed(['the intercept', *self.random])}"
        reml = " (REML)" if self.method == "reml" else ""
        return f"partial pooling{random}{lmm.RESIDUALS[self.residuals].words}{reml}"

    def _without_likelihood(
        self, data: StandardisedStats, family: Family, dependent: int | None
    ) -> GaussianFit:
        """No random effects, and the coefficients of complete pooling."""
        f = Complete()._fit(data, family)
        status, detail = self._trouble(data, family, f, dependent)
        q = len(f.parents) + 1
        return replace(
            f,
            pooling=self,
            coef_cov=np.zeros_like(f.coef_cov),
            random_cov=np.zeros((q, q)),
            loglik=-np.inf,
            counts=self.counts(len(f.parents), len(f.levels)),
            status=status,
            detail=detail,
        )

    def _trouble(
        self, data: StandardisedStats, family: Family, f: GaussianFit, dependent: int | None
    ) -> Ending:
        """Why there is no likelihood with a maximum; `f` is the fit of complete pooling."""
        q = len(f.parents) + 1
        if len(data.levels) < 2 and self.own_variances:
            return (
                Status.NO_RESIDUAL_VARIANCE,
                f"{f.child!r} varies in data set {data.levels[0]!r} only; use "
                "Partial(residuals='shared')",
            )
        if not f.status.ok:
            return f.status, f.detail
        if dependent is not None:
            return _dependent(f.parents[dependent], "all data sets together")
        if self.residuals == "separate":
            alone = linear.fit(data, *family, separate=True, unbiased=False)
            tables = [f"data set {level!r}" for level in data.levels]
            return _of_exact_fit(alone, f.child, f.parents, tables)
        if (data.n <= q).all():
            return (
                Status.TOO_FEW_ROWS,
                f"no data set has more than the {q} rows that its own coefficients take, so random "
                "effects and residuals cannot be distinguished; use fewer parents, or "
                "Partial(random='intercept')",
            )
        return (
            Status.NO_RESIDUAL_VARIANCE,
            f"inside each data set {f.child!r} is constant or an exact combination of its parents; "
            "the likelihood has no maximum",
        )


def _no_slopes(random: str | list[str]) -> OptionError:
    return OptionError(
        Option("discrete", "table"),
        " has probabilities and no slopes, so that ",
        Option("random", random),
        " says nothing of it; use ",
        Option("discrete", "logit"),
    )


@cache
def _all_counts(model: Partial, most: int, data_sets: int, inside: bool) -> NDArray[np.int64]:
    """Parameters with up to so many parents, by parents and slopes."""
    sizes = range(most + 1)
    return np.array([[model.counts_with(p, s, data_sets, inside) for s in sizes] for p in sizes])


def _names(data: StandardisedStats, family: Family) -> tuple[str, tuple[str, ...]]:
    child, parents = family
    return data.names[child], tuple(map(data.names.__getitem__, parents))


# How fits ended: the status, and which columns and data sets it is about


def _dependent(parent: str, where: str) -> Ending:
    """A parent that the others determine."""
    return (
        Status.RANK_DEFICIENT,
        f"in {where}, {parent!r} is constant or an exact combination of other parents; "
        "leave it out",
    )


def _of_linear(
    f: linear.LeastSquaresFit, child: str, parents: Sequence[str], tables: Sequence[str]
) -> Ending:
    """Of regressions in one or more tables: the first one in trouble decides."""
    q = len(parents) + 1
    for j, where in enumerate(tables):
        if f.few[j]:
            return (
                Status.TOO_FEW_ROWS,
                f"{where} has {_rows(f, j)}, and {counted(q, 'coefficient')} and a variance need "
                f"at least {q + 1}; pool, or use fewer parents",
            )
        if f.dependent[j] >= 0:
            return _dependent(parents[f.dependent[j]], where)
        if f.determined[j]:
            return (
                Status.NO_RESIDUAL_VARIANCE,
                f"in {where}, {child!r} is constant or an exact combination of its parents",
            )
    return Status.CONVERGED, "least squares, in closed form"


def _of_exact_fit(
    f: linear.LeastSquaresFit, child: str, parents: Sequence[str], tables: Sequence[str]
) -> Ending:
    """Of a mixed-effects model with separate residuals: the first data set that leaves none."""
    j = int(np.argmax(f.determined))
    q = len(parents) + 1
    remedy = "the likelihood has no maximum; use Partial(residuals='pooled'), or 'shared'"
    if f.few[j]:
        return (
            Status.TOO_FEW_ROWS,
            f"{tables[j]} has {_rows(f, j)}, which {q} coefficient{'s' * (q != 1)} can fit exactly "
            f"with a residual variance of its own near zero, so {remedy}",
        )
    return (
        Status.NO_RESIDUAL_VARIANCE,
        f"in {tables[j]}, {child!r} is constant or an exact combination of its parents, so "
        f"{remedy}",
    )


def _with_raised(ending: Ending, child: str, levels: Sequence[Hashable]) -> Ending:
    """With the data sets in which a residual variance had to be held above zero."""
    if not levels:
        return ending
    return ending[0], (
        f"{ending[1]}; in {listed(list(map(repr, levels)))} the parents of {child!r} leave next to "
        "no residual, and its variance is held above zero"
    )


def _rows(f: linear.LeastSquaresFit, j: int) -> str:
    n = int(f.n[j])
    return f"{n} row{'s' * (n != 1)}"


def _of_mixed(f: lmm.MixedFit, coefficients: Sequence[str], random: Sequence[str]) -> Ending:
    """Of a mixed-effects model: which variances of the random coefficients are zero."""
    if not f.converged:
        return (
            Status.NOT_CONVERGED,
            "the search for the maximum was stopped; the likelihood may rise without bound, or "
            "the data sets have too few rows to distinguish random effects from residuals; do not "
            "use this fit",
        )
    if f.rank == len(random):
        return Status.CONVERGED, "all variances of the random effects are positive"
    if f.rank == 0:
        same = (f.sigma2 == f.sigma2[0]).all()
        what = "the same as complete pooling" if same else "coefficients do not differ"
        return Status.SINGULAR, f"all variances of the random effects are zero: {what}"
    between, errors = f.random_cov.diagonal().tolist(), f.fixed_cov.diagonal().tolist()
    zero = [
        name
        for name, spread, error in zip(coefficients, between, errors, strict=True)
        if name in random and spread <= 1e-9 * error
    ]
    parts = []
    if zero:
        parts.append(f"no variation between data sets in {', '.join(zero)}")
    if f.rank < len(random) - len(zero):
        parts.append("random effects have correlations of 1 or -1")
    return Status.SINGULAR, "; ".join(parts)
