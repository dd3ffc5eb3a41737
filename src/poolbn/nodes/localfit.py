"""`LocalFit`: one fitted node. All poolings end in this form (eq. lmenode-split)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT = "(Intercept)"


def level_columns(levels: Iterable[Hashable], own: Iterable[Hashable]) -> list[Hashable]:
    """Columns for the data sets in a table that has columns of its own.

    Examples:
        >>> level_columns(["KY", "se"], ["fixed", "se"])
        ['KY', 'se (data set)']
    """
    taken = set(own)
    return [f"{level} (data set)" if level in taken else level for level in levels]


@dataclass(frozen=True)
class Status:
    """What happened in a fit.

    Attributes:
        name: "converged", "boundary", "rank deficient", "too few rows", "no residual variance" or
            "not settled"; "given" for parameters that are not estimates.
        detail: which columns, which data sets, and what to make of it.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
        >>> fit.status.name, fit.status.ok
        ('boundary', True)
    """

    name: str
    detail: str

    @property
    def ok(self) -> bool:
        """Whether the fit has a likelihood: if not, it scores -inf."""
        return self.name in {"converged", "boundary", "not settled", "given"}

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}"


@dataclass(frozen=True, eq=False)
class LocalFit:
    """The distribution of a child given its parents in each data set. Intercept first.

    Where `status.ok` is false there is no likelihood: `loglik` is -inf, and the coefficients are
    those of least squares with the columns that cannot be told apart left at 0.

    Attributes:
        child: the node.
        parents: its p parents; q = p + 1.
        levels: the F data sets.
        pooling: how strength was shared, in words.
        coef: coefficients in each data set, (F, q).
        coef_cov: their covariance in each data set, (F, q, q): of least squares, or for partial
            pooling that of the random effects given the data and the other parameters.
        sigma2: residual variance in each data set, (F,).
        fixed: population coefficients, (q,); None without pooling.
        fixed_cov: their covariance, (q, q); None without pooling.
        random_cov: covariance of the random effects, (q, q); only for partial pooling.
        loglik: maximised log-likelihood.
        n_params: free parameters (eq. nparams for partial pooling).
        n_rows: rows in all data sets together.
        status: what happened.
        residual_shape: where residual variances are pooled, the shape of their inverse gamma
            distribution between data sets: large where they are alike, inf where equal.
        residual_scale: 1 / E(1 / sigma^2) of that distribution; `random_cov` is for this variance,
            and in proportion for others.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> fit = pb.fit_node(pb.stats(trial, group="clinic"), "bmi", ["age"])
        >>> fit.fixed.round(2), fit.random_sd.round(2), fit.coef[:, 1].round(2)
        (array([22.66,  0.2 ]), array([0.57, 0.09]), array([0.18, 0.14, 0.12, 0.34]))
    """

    child: str
    parents: tuple[str, ...]
    levels: tuple[Hashable, ...]
    pooling: str
    coef: NDArray[np.float64]
    coef_cov: NDArray[np.float64]
    sigma2: NDArray[np.float64]
    fixed: NDArray[np.float64] | None
    fixed_cov: NDArray[np.float64] | None
    random_cov: NDArray[np.float64] | None
    loglik: float
    n_params: int
    n_rows: int
    status: Status
    residual_shape: float | None = None
    residual_scale: float | None = None

    @property
    def aic(self) -> float:
        """Log-likelihood minus the number of parameters: higher is better."""
        return self.loglik - self.n_params

    @property
    def bic(self) -> float:
        """Log-likelihood minus log(n) / 2 for each parameter (eq. bic): higher is better."""
        return self.loglik - math.log(self.n_rows) / 2 * self.n_params

    @property
    def coef_sd(self) -> NDArray[np.float64]:
        """Standard errors of the coefficients in each data set, (F, q)."""
        return np.sqrt(np.diagonal(self.coef_cov, axis1=1, axis2=2))

    @property
    def fixed_se(self) -> NDArray[np.float64] | None:
        """Standard errors of the fixed effects, (q,)."""
        return None if self.fixed_cov is None else np.sqrt(np.diagonal(self.fixed_cov))

    @property
    def random(self) -> NDArray[np.float64] | None:
        """Predicted random effects (BLUPs), (F, q): what `coef` adds to `fixed`."""
        if self.random_cov is None or self.fixed is None:
            return None
        return self.coef - self.fixed

    @property
    def random_sd(self) -> NDArray[np.float64] | None:
        """Standard deviation of each random effect between data sets, (q,)."""
        return None if self.random_cov is None else np.sqrt(np.diagonal(self.random_cov))

    @property
    def random_corr(self) -> NDArray[np.float64] | None:
        """Correlations of the random effects, (q, q); 0 where a variance is 0."""
        if self.random_cov is None:
            return None
        sd = np.sqrt(np.diagonal(self.random_cov))
        inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
        corr: NDArray[np.float64] = np.clip(self.random_cov * np.outer(inverse, inverse), -1, 1)
        np.fill_diagonal(corr, 1.0)
        return corr

    def table(self) -> pd.DataFrame:
        """A row for each coefficient: fixed effect, standard error, SD between data sets, and all.

        Examples:
            >>> import poolbn as pb
            >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
            ...                  missing="drop")
            >>> pb.fit_node(stats, "bmi", ["age"]).table().round(2)
                         fixed    se  between_sd     NY     MN     KY     MS
            (Intercept)  22.66  1.25        0.57  22.75  22.99  23.16  21.75
            age           0.20  0.06        0.09   0.18   0.14   0.12   0.34
        """
        import pandas as pd

        columns: dict[Hashable, NDArray[np.float64]] = {}
        if self.fixed is not None and self.fixed_se is not None:
            columns |= {"fixed": self.fixed, "se": self.fixed_se}
        if self.random_sd is not None:
            columns["between_sd"] = self.random_sd
        columns |= dict(zip(level_columns(self.levels, columns), self.coef, strict=True))
        return pd.DataFrame(columns, index=pd.Index([INTERCEPT, *self.parents]))

    def __str__(self) -> str:
        given = f" given {', '.join(self.parents)}" if self.parents else ""
        table = self.table()
        if len(self.levels) > 8:
            table = table.iloc[:, : table.shape[1] - len(self.levels) + 6]
            more = f"\n({len(self.levels) - 6} more data sets in .table())"
        else:
            more = ""
        sd = np.sqrt(self.sigma2)
        spread = f"{sd.min():.4g}"
        if sd.max() > sd.min():
            spread += f" to {sd.max():.4g}"
        return (
            f"{self.child}{given}: {self.pooling}, {len(self.levels)} data sets, "
            f"{self.n_rows} rows\n"
            f"{table.to_string(float_format=lambda v: f'{v:.4g}')}{more}\n"
            f"residual SD {spread}; log-likelihood {self.loglik:.4f}, {self.n_params} parameters, "
            f"BIC {self.bic:.4f}\n{self.status}"
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        import html

        title, *_ = str(self).split("\n")
        *_, numbers, status = str(self).split("\n")
        return (
            f"<p><b>{html.escape(title)}</b></p>{self.table().to_html(float_format='{:.4g}'.format)}"
            f"<p>{html.escape(numbers)}<br>{html.escape(status)}</p>"
        )
