"""Complete pooling and no pooling: least squares on scatter matrices (eqs. gnode and cgnode)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.moments.standardised import Family, StandardisedStats, pack, to_units, unit_arrays
from poolbn.moments.standardised import order as in_order
from poolbn.run.compiling import kernels

# What sweeps compute: likelihoods with variances by maximum likelihood or unbiased; Bayes factors,
# see `scoring.gprior`. In the order of `kernels.sweeps`.
Value = Literal["ml", "unbiased", "bayes"]
_VALUES = get_args(Value)


@dataclass(frozen=True)
class LeastSquaresFit:
    """One regression in each of J tables (all rows: J = 1; each data set: J = F).

    Attributes:
        coef: (J, q), in the units of the data; 0 for a parent that is a combination of others.
        coef_cov: (J, q, q), with the unbiased residual variance.
        sigma2: residual variance, (J,).
        rss: residual squares, (J,).
        n: rows, (J,).
        loglik: (J,); -inf where the table has none.
        few: tables with too few rows to leave a residual, (J,).
        dependent: in each table, the first parent that is a combination of others, or -1, (J,).
        determined: tables whose child has no residual variance, (J,).
        raised: data sets whose residual squares were raised, see `kernels.linalg`, (J,).
        ratio: of the variance between units inside data sets to sigma2, (J,); None without units.
        data: then the statistics that it is of, whitened.
    """

    coef: NDArray[np.float64]
    coef_cov: NDArray[np.float64]
    sigma2: NDArray[np.float64]
    rss: NDArray[np.float64]
    n: NDArray[np.float64]
    loglik: NDArray[np.float64]
    few: NDArray[np.bool_]
    dependent: NDArray[np.int64]
    determined: NDArray[np.bool_]
    raised: NDArray[np.bool_]
    ratio: NDArray[np.float64] | None = None
    data: StandardisedStats | None = None


class _Whitening(NamedTuple):
    """Of M families in J tables, (M, J) each; see `kernels.units.least_squares`."""

    ratio: NDArray[np.float64]
    rss: NDArray[np.float64]
    log_determinant: NDArray[np.float64]


def _whitening(data: StandardisedStats, families: Sequence[Family], separate: bool) -> _Whitening:
    """The best variances between units inside data sets, as ratios to those of residuals."""
    packed = pack(data, families)
    M, F, q = len(families), len(data.n), int(packed.sizes.max(initial=0)) + 1
    square = np.empty((3, q, q))
    found = _Whitening(*(np.empty((M, F if separate else 1)) for _ in range(3)))
    kernels("units").least_squares(
        *unit_arrays(data, q), data.n, *packed, separate, data.least, *square, np.empty(q),
        np.empty(5), np.empty(1), np.arange(q), *found,
    )  # fmt: skip
    return found


def log_likelihoods(
    data: StandardisedStats, families: Sequence[Family], *, separate: bool, unbiased: bool
) -> NDArray[np.float64]:
    """Log-likelihood of each family; -inf where a table has too few rows or no residual."""
    if data.units is not None:
        found = _whitening(data, families, separate)
        n = _tables(data, separate)[1]
        q = np.array([len(parents) + 1 for _, parents in families])[:, None]
        at = [child for child, _ in families]
        rss = np.where(np.isfinite(found.rss), found.rss, 1.0)
        density = _density(data, rss, n, q, at, unbiased) - found.log_determinant / 2
        return np.asarray(np.where(np.isfinite(found.rss), density, -np.inf).sum(axis=1))
    rss, _, dependent, _, _ = _regress(data, families, separate)
    q = np.array([len(parents) + 1 for _, parents in families])[:, None]
    children = [child for child, _ in families]
    scatter, n = _tables(data, separate)
    square = scatter[:, children, children].T
    ok = (dependent < 0) & (n > q) & ~_determined(rss, square, n)
    density = _density(data, rss, n, q, children, unbiased)
    return np.asarray(np.where(ok, density, -np.inf).sum(axis=1))


def neighbours(
    data: StandardisedStats,
    families: Sequence[Family],
    charges: NDArray[np.float64],
    *,
    separate: bool,
    what: Value,
) -> NDArray[np.float64]:
    """Scores of families with each column added, or removed where it is a parent, (M, N).

    At the child itself, as they are. Each has some value, less what so many parents are charged,
    (N + 1,).
    """
    packed = pack(data, families)
    scatter, n = _tables(data, separate)
    squares = data.squares if separate else data.total.diagonal()[None].copy()
    J, N = squares.shape
    p = int(packed.sizes.max()) + 1
    ranks = np.fromiter(map(data.order, range(N)), np.int64, N)
    values = np.empty((len(families), N))
    kernels("sweeps").sweep(
        scatter, n, squares, data.log_scale, data.least, charges, _VALUES.index(what), ranks,
        *packed,
        np.empty((p, p)), np.empty(p), np.empty((p, N)), np.empty((2, N)), np.empty((N, J)),
        np.empty((N, J), dtype=np.int64), np.empty(p, dtype=np.int64), values,
    )  # fmt: skip
    return values


def squares_left(data: StandardisedStats, families: Sequence[Family]) -> NDArray[np.float64]:
    """What parents leave of the squares of children in each data set by itself, (M, F)."""
    rss, *_ = _regress(data, families, separate=True)
    return np.asarray(rss)


def largest_separate(data: StandardisedStats, families: Sequence[Family]) -> NDArray[np.float64]:
    """Log-likelihood of each family with coefficients and a variance for each data set.

    With the residual that pooled variances lend to data sets that have none, see `kernels.pooled`;
    infinite where no data set has more rows than coefficients.
    """
    rss, *_ = _regress(data, families, separate=True)
    n = data.n
    children = [child for child, _ in families]
    df = n - np.array([len(parents) + 1 for _, parents in families])[:, None]
    pooled = (rss * (df > 0)).sum(axis=1) / np.maximum(df, 0).sum(axis=1).clip(1)
    rss = np.where(df > 0, rss, np.maximum(rss, pooled[:, None]))
    with np.errstate(divide="ignore"):
        density = -n / 2 * (1 + np.log(2 * np.pi * rss / n))
    return np.asarray(density.sum(axis=1) - data.rows * data.log_scale[children])


def fit(
    data: StandardisedStats,
    child: int,
    parents: tuple[int, ...],
    *,
    separate: bool,
    unbiased: bool,
) -> LeastSquaresFit:
    """The regression of one child in each table, in the units of the data."""
    if data.units is not None:
        ratio = _whitening(data, [(child, parents)], separate).ratio[0]
        best = data.whitened(np.broadcast_to(ratio, len(data.n)).copy())
        made = fit(best, child, parents, separate=separate, unbiased=unbiased)
        extra = best.log_determinant
        assert extra is not None
        extra = extra if separate else extra.sum(keepdims=True)
        return replace(made, loglik=made.loglik - extra / 2, ratio=ratio, data=best)
    (rss,), _, (dependent,), U, u = _regress(data, [(child, parents)], separate)
    scatter, n = _tables(data, separate)
    J, q = len(n), len(parents) + 1
    order = np.array(in_order(parents, data.order), dtype=np.intp)
    pa = np.asarray(parents, dtype=np.int64)[order]
    few = n <= q
    determined = _determined(rss, scatter[:, child, child], n)
    ok = ~few & (dependent < 0) & ~determined
    density = _density(data, rss[None], n, np.array([[q]]), [child], unbiased)[0]
    variance = rss / np.maximum(n - q, 1)
    rows = np.where(n > 0, n, 1)  # a data set that measured none of the columns has none

    # Coefficients on columns that are standardised and then centred in each table, and the inverse
    # Gram matrix; a dependent parent has a row of zeros in U and takes no part.
    coef, inverse = np.zeros((J, q)), np.zeros((J, q, q))
    weight = data.weights if separate else data.weights.sum(keepdims=True)
    inverse[:, 0, 0] = 1.0 / np.where(weight > 0, weight, 1)
    if q > 1:
        fixed = U.diagonal(axis1=1, axis2=2) == 0
        if fixed.any():
            U = U + fixed[:, None] * np.eye(q - 1)
        Ui = np.linalg.inv(U)
        if fixed.any():
            Ui *= ~(fixed[:, :, None] | fixed[:, None])
        coef[:, 1:] = (Ui @ u[:, :, None])[:, :, 0]
        inverse[:, 1:, 1:] = Ui @ Ui.transpose(0, 2, 1)
    if separate:
        shift = np.zeros((J, q, q))
        shift[:, range(q), range(q)] = 1.0
        shift[:, 0, 1:] = -data.mean[:, pa]
        coef[:, 0] = data.mean[:, child]
        coef = (shift @ coef[:, :, None])[:, :, 0]
        inverse = shift @ inverse @ shift.transpose(0, 2, 1)
    T = (data.scale[child] * to_units(data, pa.tolist()))[
        np.concatenate([[0], 1 + np.argsort(order)])
    ]
    coef = coef @ T.T
    coef[:, 0] += data.center[child]
    return LeastSquaresFit(
        coef=coef,
        coef_cov=variance[:, None, None] * (T @ inverse @ T.T),
        sigma2=np.where(unbiased, variance, rss / rows) * data.scale[child] ** 2,
        rss=rss * data.scale[child] ** 2,
        n=n,
        loglik=np.where(ok, density, -np.inf),
        few=few,
        dependent=np.where(dependent < 0, -1, order[dependent] if q > 1 else -1),
        determined=determined,
        raised=_raised(rss, scatter[:, child, child], u) & ~few,
    )


class Explained(NamedTuple):
    """How much parents explain of their children.

    Attributes:
        n: rows of the J tables, (J,).
        rank: of the parents of M families, (M, J).
        share: of the children's squares, R^2, (M, J); 0 where a child is constant.
    """

    n: NDArray[np.float64]
    rank: NDArray[np.int64]
    share: NDArray[np.float64]


def explained(data: StandardisedStats, families: Sequence[Family], *, separate: bool) -> Explained:
    """What regressions explain, in all rows together or in each data set."""
    found = _regress(data, families, separate)
    scatter, n = _tables(data, separate)
    children = [child for child, _ in families]
    square = scatter[:, children, children].T
    varies = square > CONSTANT_TOLERANCE * n
    left = np.divide(found.rss, square, out=np.ones_like(square), where=varies)
    return Explained(n, np.where(varies, found.rank, 0), 1 - np.minimum(left, 1.0))


def ranks(
    data: StandardisedStats, families: Sequence[Family], *, separate: bool
) -> NDArray[np.int64]:
    """Of the parents, in all rows together or in each data set, (M, J)."""
    return _regress(data, families, separate).rank


def raised(data: StandardisedStats, child: int, parents: tuple[int, ...]) -> tuple[Hashable, ...]:
    """Data sets whose residual squares were raised, see `kernels.linalg.raise_squares`."""
    (rss,), _, _, _, u = _regress(data, [(child, parents)], separate=True)
    at = _raised(rss, data.scatter[:, child, child], u) & (data.n > len(parents) + 1)
    return tuple(data.levels[j] for j in np.flatnonzero(at))


def _raised(
    rss: NDArray[np.float64], square: NDArray[np.float64], u: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Where residual squares are not those of the Cholesky rows."""
    return np.asarray(rss > 2 * (square - (u**2).sum(axis=1)))


def _tables(
    data: StandardisedStats, separate: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scatter matrices (J, N, N) and rows (J,) of the tables that are regressed on their own."""
    if separate:
        return data.scatter, data.n
    return data.total[None], data.n.sum(keepdims=True)


class _Regressions(NamedTuple):
    """Those of M families in J tables; see `kernels.regress`."""

    rss: NDArray[np.float64]
    rank: NDArray[np.int64]
    dependent: NDArray[np.int64]
    U: NDArray[np.float64]
    u: NDArray[np.float64]


def _regress(data: StandardisedStats, families: Sequence[Family], separate: bool) -> _Regressions:
    scatter, n = _tables(data, separate)
    packed = pack(data, families)
    p = int(packed.sizes.max())
    U, u = np.zeros((len(n), p, p)), np.zeros((len(n), p))
    rss = np.empty((len(families), len(n)))
    rank, dependent = (np.empty((len(families), len(n)), dtype=np.int64) for _ in range(2))
    kernels("regress").least_squares(scatter, n, *packed, data.least, U, u, rss, rank, dependent)
    return _Regressions(rss, rank, dependent, U, u)


def _determined(
    rss: NDArray[np.float64], square: NDArray[np.float64], n: NDArray[np.float64]
) -> NDArray[np.bool_]:
    return rss <= np.maximum(RANK_TOLERANCE * square, CONSTANT_TOLERANCE * n)


def _density(
    data: StandardisedStats,
    rss: NDArray[np.float64],
    n: NDArray[np.float64],
    q: NDArray[np.int64],
    children: Sequence[int],
    unbiased: bool,
) -> NDArray[np.float64]:
    """Gaussian log density at the fitted coefficients, (M, J); anything where there is none."""
    df = np.maximum(n - q, 1.0) if unbiased else n
    variance = np.where(rss > 0, rss, 1.0) / df
    units = data.log_scale[list(children)][:, None]
    return -0.5 * (n * np.log(2 * np.pi * variance) + df) - n * units
