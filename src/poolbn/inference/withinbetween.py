"""The effect within data sets beside that between their means, and a test of their difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.constants import RANK_TOLERANCE
from poolbn.graph.dag import Dag
from poolbn.inference.drawing import categories_of
from poolbn.inference.mixedheterogeneity import linear_sums
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import labels_of
from poolbn.moments.kinds import MixedData
from poolbn.moments.standardised import standardise
from poolbn.multiplicity import adjusted_p
from poolbn.nodes.choosing import check_admits
from poolbn.nodes.given import Given
from poolbn.nodes.intervals import (
    Own,
    Sums,
    Weights,
    between_variances,
    family_sums,
    generalised_least_squares,
    hartung_knapp,
    own_estimates,
    t_interval,
    to_units,
)
from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.poolings import Partial

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

_COLUMNS = [
    "parent", "child", "within", "within_se", "within_lower", "within_upper", "between",
    "between_se", "between_lower", "between_upper", "difference", "se", "df", "p_value",
]  # fmt: skip
_HALVINGS = 40  # of the range of a variance


class _Slopes(NamedTuple):
    """Of the p parents of a node: estimates, standard errors, degrees of freedom, (p,) each."""

    value: Floats
    se: Floats
    df: Floats


def within_between_table(
    stats: GroupStats, dag: Dag, fits: Mapping[str, GaussianFit], interval: float
) -> pd.DataFrame:
    """A row for each arc."""
    data = standardise(stats)
    check_admits(Partial(), data)
    rows: _Rows = {}
    for child in dag.nodes:
        parents = dag.parents(child)
        every = np.ones(len(parents) + 1, dtype=bool)
        x = family_sums(data, data.family(child, parents), every) if parents else None
        rows |= _node(x, parents, fits[child], interval)
    return _table(_COLUMNS, [(*arc, *rows[arc]) for arc in dag.arcs])


def mixed_within_between_table(
    data: MixedData | None, dag: Dag, fits: Mapping[str, LocalFit], interval: float
) -> pd.DataFrame:
    """The same for each arc to a continuous node, a discrete parent having a row for each level.

    Args:
        data: the rows, or statistics of them; None for what the fits hold.
        dag: the graph.
        fits: its nodes.
        interval: the probability of the intervals.

    Raises:
        DataError: there are no statistics.
    """
    rows: _Rows = {}
    for child in dag.nodes:
        fit = fits[child]
        if isinstance(fit, GaussianFit) and fit.parents:
            given = isinstance(fit.pooling, Given)
            parents = dag.parents(child)
            x = None if given else linear_sums(fit, parents, data, "within_between")
            rows |= _node(x, fit.parents, fit, interval)
    found = []
    for parent, child in dag.arcs:
        levels = categories_of(fits[parent])
        labels = labels_of([parent], [levels])
        for level, label in zip(levels[1:] or ("",), labels, strict=True):
            if (label, child) in rows:
                found.append((parent, level, child, *rows[label, child]))
    return _table(["parent", "level", *_COLUMNS[1:]], found)


_Rows = dict[tuple[str, str], list[float]]  # numbers by column of a parent and child


def _table(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame(rows, columns=list(columns))
    return table.assign(p_adjusted=adjusted_p(table["p_value"].tolist()))


def _node(x: Sums | None, parents: Sequence[str], fit: GaussianFit, interval: float) -> _Rows:
    """The numbers of each column of a node's parents."""
    from scipy.special import stdtr

    unknown: _Rows = {(name, fit.child): [math.nan] * (len(_COLUMNS) - 2) for name in parents}
    if x is None:
        return unknown
    own = own_estimates(x)
    variance = _residual_variances(own, x.n)
    if not (variance > 0).all():
        return unknown
    varies = between_variances(own.coef, own.cov * variance[:, None])[1:]
    inside, means = _within(x, variance, fit), _between(x, variance, varies)
    ends = [t_interval(*slopes, interval) for slopes in (inside, means)]
    difference, squares = means.value - inside.value, [inside.se**2, means.se**2]
    # A slope that varies is in both: with weights c_j of the means sum c_j x_j = 1, and with
    # about 1 / F for each slope inside, the covariance is about its variance over F.
    fitted = fit.random_cov
    common = np.zeros(len(parents)) if fitted is None else np.diagonal(fitted)[1:] / len(x.n)
    common = np.minimum(common, np.minimum(*squares))
    se = np.sqrt(sum(squares) - 2 * common)
    with np.errstate(invalid="ignore", divide="ignore"):
        df = sum(squares) ** 2 / (squares[0] ** 2 / inside.df + squares[1] ** 2 / means.df)
        # An estimate of the one degree of freedom that the means of three data sets leave would
        # be too high: simulated tests at 5% have sizes of 6 to 8% with it, 4 to 6% so.
        df = np.where(means.df == 1, (df + 1) / 2, df)
        p = 2 * stdtr(df, -np.abs(difference) / se)
    columns = (
        inside.value, inside.se, *ends[0].T, means.value, means.se, *ends[1].T,
        difference, se, df, p,
    )  # fmt: skip
    numbers = zip(parents, *columns, strict=True)
    return {(name, fit.child): list(values) for name, *values in numbers}


def _residual_variances(own: Own, n: Floats) -> Floats:
    """Of each data set around its own coefficients; the common one where rows leave none, (F,)."""
    df = n - own.rank
    common = float(own.rss.sum()) / max(float(df.sum()), 1.0)
    enough = (df > 0) & (own.rss > 0)
    return np.where(enough, own.rss / np.maximum(df, 1.0), common)


def _within(x: Sums, variance: Floats, fit: GaussianFit) -> _Slopes:
    """Slopes from the scatter inside data sets: all means are put at 0.

    Errors are those of the spread between data sets, whatever the pooling.
    """
    p = len(x.center) - 1
    none = np.full(p, math.nan)
    scatter = x.scatter.sum(axis=0)[:-1, :-1]
    sd = np.sqrt(np.diagonal(scatter))
    if not (sd > 0).all():
        return _Slopes(none, none, none)
    if np.linalg.eigvalsh(scatter / np.outer(sd, sd))[0] <= RANK_TOLERANCE:
        return _Slopes(none, none, none)
    if np.ptp(fit.sigma2) == 0:  # one for all data sets
        variance = np.full(len(variance), np.average(variance, weights=x.n))
    D = np.zeros((p + 1, p + 1))
    if fit.random_cov is not None:
        D[1:, 1:] = fit.random_cov[1:, 1:]
    weights = Weights(1 / variance, D / variance[:, None, None], D)
    x = x._replace(mean=np.zeros_like(x.mean), center=np.zeros(p + 1))
    value = generalised_least_squares(x, weights)
    se, df, _ = hartung_knapp(x, value, weights)
    return _Slopes(value[1:], se[1:], df[1:])


def _between(x: Sums, variance: Floats, varies: Floats) -> _Slopes:
    """Slopes of the child's means on the parents' means, weighted by what the means are worth.

    A mean has the error of its rows and of the slopes of its data set, which have the variances
    `varies`. The variance of levels beyond these is Paule and Mandel's: weighted residual squares
    are their degrees of freedom.
    """
    F, q = x.mean.shape
    none = np.full(q - 1, math.nan)
    Z = np.concatenate([np.ones((F, 1)), x.mean[:, :-1]], axis=1)
    y, error = x.mean[:, -1], variance / x.n / x.scale[-1] ** 2
    error = error + x.mean[:, :-1] ** 2 @ (varies * (x.scale[:-1] / x.scale[-1]) ** 2)
    if q >= F or np.linalg.matrix_rank(Z) < q:
        return _Slopes(none, none, none)
    df = F - q
    low, high = 0.0, float(np.sum((y - y.mean()) ** 2)) / df
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        squares, _, _ = _weighted(Z, y, 1 / (error + middle))
        low, high = (middle, high) if squares > df else (low, middle)
    squares, beta, inverse = _weighted(Z, y, 1 / (error + high))
    T = to_units(x)
    se = np.sqrt(np.diagonal(T @ inverse @ T.T) * squares / df)
    return _Slopes((T @ beta)[1:], se[1:], np.full(q - 1, float(df)))


def _weighted(Z: Floats, y: Floats, w: Floats) -> tuple[float, Floats, Floats]:
    """Weighted least squares: residual squares, coefficients, inverse Gram matrix."""
    inverse = np.asarray(np.linalg.inv((Z.T * w) @ Z), dtype=np.float64)
    beta = inverse @ (Z.T @ (w * y))
    return float(w @ (y - Z @ beta) ** 2), beta, inverse
