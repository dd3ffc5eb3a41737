"""The poolings a user picks from. Each turns (statistics, child, parents) into a `LocalFit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, OptionError, nearest
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import Family, Standard, standardise
from poolbn.nodes import linear, mixed, statuses
from poolbn.nodes.localfit import LocalFit, Status
from poolbn.nodes.mixed import Random, Residuals

Variance = Literal["ml", "unbiased"]
Method = Literal["ml", "reml"]


class Pooling(Protocol):
    """What the scores and the search need to know of a pooling."""

    def scores(
        self, data: Standard, families: Sequence[Family], price: float
    ) -> NDArray[np.float64]:
        """Log-likelihood minus a price for each parameter, with the effort that a score needs."""

    def bounds(
        self, data: Standard, families: Sequence[Family], price: float
    ) -> NDArray[np.float64] | None:
        """Upper bounds of `scores` that cost less, or None if there are none."""

    def fit(self, stats: GroupStats, child: str, parents: Sequence[str], price: float) -> LocalFit:
        """The final fit of one node; the price matters only to a pooling that chooses."""


@dataclass(frozen=True)
class Complete:
    """Complete pooling: one regression for all data sets (a Gaussian network, eq. gnode).

    Attributes:
        variance: "ml" divides the residual squares by n, "unbiased" by n - q, as bnlearn does.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> pb.fit_node(stats, "bmi", ["age"], pooling=pb.Complete()).coef.round(2)
        array([[23.33,  0.17],
               [23.33,  0.17],
               [23.33,  0.17],
               [23.33,  0.17]])
    """

    variance: Variance = "ml"

    def __post_init__(self) -> None:
        check_option("variance", self.variance, get_args(Variance))

    def n_params(self, parents: int, data_sets: int) -> int:
        """The coefficients and one variance.

        Examples:
            >>> Complete().n_params(parents=2, data_sets=4)
            4
        """
        return parents + 2

    def scores(
        self, data: Standard, families: Sequence[Family], price: float
    ) -> NDArray[np.float64]:
        """Log-likelihood minus penalty of each family."""
        loglik = linear.log_likelihoods(
            data, families, separate=False, unbiased=self.variance == "unbiased"
        )
        return _penalised(loglik, self.n_params, data, families, price)

    def bounds(self, data: Standard, families: Sequence[Family], price: float) -> None:
        """None: the scores themselves are cheap."""

    def fit(
        self, stats: GroupStats, child: str, parents: Sequence[str], price: float = 0.0
    ) -> LocalFit:
        """Least squares on all rows together."""
        data, place, pa = _places(stats, child, parents)
        f = linear.fit(data, place, pa, separate=False, unbiased=self.variance == "unbiased")
        F = len(stats.levels)
        return LocalFit(
            child=child,
            parents=tuple(parents),
            levels=stats.levels,
            pooling="complete pooling",
            coef=np.repeat(f.coef, F, axis=0),
            coef_cov=np.repeat(f.coef_cov, F, axis=0),
            sigma2=np.repeat(f.sigma2, F),
            fixed=f.coef[0],
            fixed_cov=f.coef_cov[0],
            random_cov=None,
            loglik=float(f.loglik[0]),
            n_params=self.n_params(len(parents), F),
            n_rows=stats.n_rows,
            status=statuses.linear_status(
                f, child, parents, ["all data sets together"], [stats.n_rows]
            ),
        )


@dataclass(frozen=True)
class Separate:
    """No pooling: a regression for each data set (a conditional Gaussian network, eq. cgnode).

    Attributes:
        variance: "ml" divides the residual squares by n_j, "unbiased" by n_j - q, as bnlearn does.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> pb.fit_node(stats, "bmi", ["age"], pooling=pb.Separate()).coef.round(2)
        array([[22.47,  0.19],
               [22.68,  0.15],
               [23.57,  0.1 ],
               [21.59,  0.36]])
    """

    variance: Variance = "ml"

    def __post_init__(self) -> None:
        check_option("variance", self.variance, get_args(Variance))

    def n_params(self, parents: int, data_sets: int) -> int:
        """The coefficients and a variance, for each data set.

        Examples:
            >>> Separate().n_params(parents=2, data_sets=4)
            16
        """
        return (parents + 2) * data_sets

    def scores(
        self, data: Standard, families: Sequence[Family], price: float
    ) -> NDArray[np.float64]:
        """Log-likelihood minus penalty of each family."""
        loglik = linear.log_likelihoods(
            data, families, separate=True, unbiased=self.variance == "unbiased"
        )
        return _penalised(loglik, self.n_params, data, families, price)

    def bounds(self, data: Standard, families: Sequence[Family], price: float) -> None:
        """None: the scores themselves are cheap."""

    def fit(
        self, stats: GroupStats, child: str, parents: Sequence[str], price: float = 0.0
    ) -> LocalFit:
        """Least squares in each data set."""
        data, place, pa = _places(stats, child, parents)
        f = linear.fit(data, place, pa, separate=True, unbiased=self.variance == "unbiased")
        names = [f"data set {level!r}" for level in stats.levels]
        return LocalFit(
            child=child,
            parents=tuple(parents),
            levels=stats.levels,
            pooling="no pooling",
            coef=f.coef,
            coef_cov=f.coef_cov,
            sigma2=f.sigma2,
            fixed=None,
            fixed_cov=None,
            random_cov=None,
            loglik=float(f.loglik.sum()),
            n_params=self.n_params(len(parents), len(stats.levels)),
            n_rows=stats.n_rows,
            status=statuses.linear_status(f, child, parents, names, stats.n.tolist()),
        )


@dataclass(frozen=True)
class Partial:
    """Partial pooling: a linear mixed-effects model (eq. lmenode).

    Attributes:
        random: which coefficients vary between data sets: "full" is all of them, with all their
            covariances, "intercept" is the intercept alone.
        residuals: "shared" is one residual variance for all data sets, as in the paper. "separate"
            is one for each, estimated alone; each data set then needs more rows than coefficients.
            "pooled" is one for each, drawn from a common inverse gamma distribution whose spread is
            estimated: one parameter more than "shared".
        method: "ml", or "reml" to estimate parameters and to reproduce published numbers:
            restricted likelihoods of different parent sets are not comparable.

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

    random: Random = "full"
    residuals: Residuals = "shared"
    method: Method = "ml"

    def __post_init__(self) -> None:
        check_option("random", self.random, get_args(Random))
        check_option("residuals", self.residuals, get_args(Residuals))
        check_option("method", self.method, get_args(Method))
        if self.residuals != "shared" and self.method == "reml":
            raise OptionError(
                f"method='reml' is for residuals='shared'; {self.residuals} ones need 'ml'"
            )

    def n_params(self, parents: int, data_sets: int) -> int:
        """Fixed effects, (co)variances of the random effects, and a variance (eq. nparams).

        Pooled residual variances have a spread too; separate ones are as many as data sets.

        Examples:
            >>> Partial().n_params(parents=2, data_sets=4)
            10
        """
        q = parents + 1
        random = q * (q + 1) // 2 if self.random == "full" else 1
        return q + random + mixed.RESIDUALS[self.residuals].n_params(data_sets)

    def scores(
        self, data: Standard, families: Sequence[Family], price: float
    ) -> NDArray[np.float64]:
        """Log-likelihood minus penalty of each family, from one start or two."""
        loglik = mixed.log_likelihoods(
            data,
            families,
            random=self.random,
            residuals=self.residuals,
            reml=self.method == "reml",
        )
        return _penalised(loglik, self.n_params, data, families, price)

    def bounds(
        self, data: Standard, families: Sequence[Family], price: float
    ) -> NDArray[np.float64]:
        """From least squares by data set, see `kernels.bounds`.

        A density with random effects, and sigma_j^2, integrated out is at most the largest one with
        them given: no pooling with a variance for each data set.
        """
        if self.residuals == "shared":
            loglik = mixed.upper_bounds(data, families, reml=self.method == "reml")
        else:
            loglik = linear.largest_separate(data, families)
        return _penalised(loglik, self.n_params, data, families, price)

    def fit(
        self, stats: GroupStats, child: str, parents: Sequence[str], price: float = 0.0
    ) -> LocalFit:
        """The mixed-effects model, from several starts."""
        check_two(stats)
        data, place, pa = _places(stats, child, parents)
        reml = self.method == "reml"
        f = mixed.fit(data, place, pa, random=self.random, residuals=self.residuals, reml=reml)
        if not isinstance(f, mixed.MixedFit):
            return self._without_likelihood(stats, child, parents, f)
        return LocalFit(
            child=child,
            parents=tuple(parents),
            levels=stats.levels,
            pooling=self._words(),
            coef=f.fixed + f.random,
            coef_cov=f.conditional_cov,
            sigma2=f.sigma2,
            fixed=f.fixed,
            fixed_cov=f.fixed_cov,
            random_cov=f.random_cov,
            loglik=f.loglik,
            n_params=self.n_params(len(parents), len(stats.levels)),
            n_rows=stats.n_rows,
            status=statuses.mixed_status(f, parents, self.random == "full"),
            residual_shape=f.shape,
            residual_scale=f.scale,
        )

    def _words(self) -> str:
        random = "" if self.random == "full" else " of the intercept"
        residuals = {"shared": "", "separate": ", separate residuals", "pooled": " and residuals"}
        reml = " (REML)" if self.method == "reml" else ""
        return f"partial pooling{random}{residuals[self.residuals]}{reml}"

    def _without_likelihood(
        self, stats: GroupStats, child: str, parents: Sequence[str], dependent: int | None
    ) -> LocalFit:
        """No random effects, and the coefficients of complete pooling."""
        f = Complete().fit(stats, child, parents)
        if not f.status.ok:
            status = f.status
        elif dependent is not None:
            status = statuses.dependent(parents[dependent], "all data sets together")
        elif self.residuals == "separate":
            data, place, pa = _places(stats, child, parents)
            alone = linear.fit(data, place, pa, separate=True, unbiased=False)
            status = statuses.exact_fit(alone, child, parents, stats.levels, stats.n.tolist())
        elif (stats.n <= len(parents) + 1).all():
            status = Status(
                "too few rows",
                f"no data set has more than the {len(parents) + 1} rows that its own coefficients "
                "take, so random effects and residuals cannot be told apart; use fewer parents, "
                "or Partial(random='intercept')",
            )
        else:
            status = Status(
                "no residual variance",
                f"inside each data set {child!r} is constant or an exact combination of its "
                "parents; the likelihood has no maximum",
            )
        q = len(parents) + 1
        return LocalFit(
            child=child,
            parents=f.parents,
            levels=f.levels,
            pooling=self._words(),
            coef=f.coef,
            coef_cov=np.zeros_like(f.coef_cov),
            sigma2=f.sigma2,
            fixed=f.fixed,
            fixed_cov=f.fixed_cov,
            random_cov=np.zeros((q, q)),
            loglik=-np.inf,
            n_params=self.n_params(len(parents), len(stats.levels)),
            n_rows=stats.n_rows,
            status=status,
        )


def _places(
    stats: GroupStats, child: str, parents: Sequence[str]
) -> tuple[Standard, int, list[int]]:
    data = standardise(stats)
    return data, data.index[child], [data.index[parent] for parent in parents]


def _penalised(
    loglik: NDArray[np.float64],
    n_params: Callable[[int, int], int],
    data: Standard,
    families: Sequence[Family],
    price: float,
) -> NDArray[np.float64]:
    """Log-likelihood minus a price for each parameter."""
    sizes = [len(parents) for _, parents in families]
    known = {size: n_params(size, len(data.n)) for size in set(sizes)}
    return loglik - price * np.array([known[size] for size in sizes])


def check_two(stats: GroupStats) -> None:
    """Complain about a single data set, which cannot be pooled with others."""
    if len(stats.levels) < 2:
        raise DataError(
            f"partial pooling needs at least two data sets; there is one, {stats.levels[0]!r} "
            f"with {stats.n_rows} rows; use pooling='complete', or add the others' statistics"
        )


def check_option(option: str, value: object, allowed: tuple[str, ...]) -> None:
    """Complain about a value that an option does not take."""
    if value not in allowed:
        raise OptionError(f"{option}={value!r} is not an option{nearest(value, allowed)}")
