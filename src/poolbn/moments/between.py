"""How levels of data sets go together: correlations between their means of columns.

"A good site is good at everything": then means of columns are correlated over data sets, which a
random intercept in each node takes for independent. A mean of n_j rows has noise, and noise of two
columns is correlated as rows of a data set are. With S_j the covariances of rows in data set j,
means m_j have covariances B + S_j / n_j, and the correlation in B is asked for:

- tau_a^2 = B_aa solves sum_j w_ja (m_ja - mu_a)^2 = F - 1 with w_ja = 1 / (tau_a^2 + S_jaa / n_j)
  (Paule and Mandel), so that z_ja = sqrt(w_ja) (m_ja - mu_a) have a variance of 1;
- r = corr(z_a, z_b) has the expectation B_ab mean(g_j) + rho, with g_j = sqrt(w_ja w_jb) and
  rho = mean(g_j S_jab / n_j), which is what noise alone would give. That yields B_ab.
- Without B_ab, r - rho has a variance of (1 + rho^2) / (F - 1), as rho is divided by the same
  estimates as r. Where rho = 0 the t test of a correlation is exact for normal means. A correlation
  counts as much as the lesser of (r - rho) / sqrt(1 + rho^2) and r says: with few data sets the
  first alone is beyond what r can be. In simulations (5 to 50 data sets, unequal rows and
  variances, shares of rare levels, correlated rows) 5% and 1% hold within 1.5 times.

S_j are shrunken towards their common value, as those of few rows are uncertain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats
from poolbn.errors import Option
from poolbn.findings import Finding, FindingKind, about
from poolbn.moments.checks import completed_sums
from poolbn.moments.data import Data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import spans
from poolbn.moments.standardised import standardise
from poolbn.multiplicity import adjusted_p
from poolbn.wording import listed, noun_of

_FEWEST = 3  # data sets: means of two are on a line
SURE = 0.01  # adjusted p-values of correlations that are told of
_PRIOR = 4.0  # rows that the common covariance of rows counts for in each data set
_HALVINGS = 60  # of the range of a variance
_LEAST = 1e-30  # variance between data sets of a standardised column
_TOLD = 4  # correlations in a message


class MeansCorrelation(NamedTuple):
    """How means of two columns go together over data sets; of levels, their shares."""

    first: str  # a column, or a level of one as in sex=male
    second: str  # one of another column
    correlation: float  # without the noise of means
    data_sets: int  # that measured both
    p_value: float  # of a correlation of 0
    p_adjusted: float  # Benjamini and Hochberg's, over all pairs


def mean_correlations(data: Data) -> tuple[MeansCorrelation, ...]:
    """Of all pairs of columns whose means differ between data sets by more than noise.

    Args:
        data: statistics or rows; incomplete ones are completed by EM.

    Returns:
        The surest first; none with fewer than three data sets.
    """
    stats = completed_sums(data, data.names)
    if len(stats.levels) < _FEWEST or stats.n_rows <= len(stats.levels):
        return ()
    r, rho, B, sets = _moments(stats)
    column = np.repeat(np.arange(len(data.names)), [len(span) for span in spans(data.categories)])
    a, b = np.nonzero((column[:, None] < column) & np.isfinite(B) & (sets >= _FEWEST))
    r, rho, B, sets = (of[a, b] for of in (r, rho, B, sets))
    p = _p_values(r, rho, sets - 2)
    adjusted, of_p = adjusted_p(p.tolist()), np.lexsort((-np.abs(B), p))
    names = stats.names
    return tuple(
        MeansCorrelation(
            names[a[k]], names[b[k]], float(B[k]), int(sets[k]), float(p[k]), float(adjusted[k])
        )
        for k in of_p.tolist()
    )


def _moments(stats: GroupStats) -> tuple[Floats, Floats, Floats, Floats]:
    """r, rho, the correlations in B, and how many data sets have both columns; (N, N) each."""
    x = standardise(stats)
    measured = (~x.unmeasured).astype(np.float64)
    x = x if x.units is None else x.of_units
    rows = np.repeat(x.n[:, None], len(x.names), axis=1)
    if stats.filled is not None:
        rows = np.maximum(stats.filled.observed.astype(np.float64), 1.0)
    within = x.scatter.sum(axis=0) / (x.rows - len(x.n))
    df = x.n - 1 + _PRIOR
    noise = (x.squares + _PRIOR * within.diagonal()) / (df[:, None] * rows)
    tau2 = _variances(x.mean, noise, measured)
    with np.errstate(invalid="ignore", divide="ignore"):
        w = np.where(tau2 > 0, measured / (tau2 + noise), 0.0)
        mu = (w * x.mean).sum(axis=0) / w.sum(axis=0)
        root = np.sqrt(w)
        z = np.where(w > 0, root * (x.mean - mu), 0.0)
        sets, size = measured.T @ measured, (z**2).T @ measured
        r = z.T @ z / np.sqrt(size * size.T)
        rho = np.zeros_like(r)
        for own, k, m, g in zip(x.scatter, df, rows, root, strict=True):
            # Of rows that lack one of two columns, its mean follows from the other's.
            rho += np.outer(g, g) * (own + _PRIOR * within) / (k * np.maximum.outer(m, m))
        rho /= sets
        B = (r - rho) / (root.T @ root / sets) / np.sqrt(np.outer(tau2, tau2))
    return r, rho, np.clip(B, -1, 1), sets


def _variances(mean: Floats, noise: Floats, measured: Floats) -> Floats:
    """Between data sets, of each column, (N,); 0 where noise explains the means."""
    df = measured.sum(axis=0) - 1

    def exceeds(tau2: Floats) -> Flags:
        with np.errstate(invalid="ignore", divide="ignore"):
            w = measured / (tau2 + noise)
            mu = (w * mean).sum(axis=0) / w.sum(axis=0)
            return np.asarray((w * (mean - mu) ** 2).sum(axis=0) > df)

    low = np.where((noise > 0).all(axis=0), 0.0, _LEAST)
    high = np.full(mean.shape[1], float((mean**2).sum()))
    none = ~exceeds(low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        more = exceeds(middle)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.where(none, 0.0, (low + high) / 2)


def _p_values(r: Floats, rho: Floats, df: Floats) -> Floats:
    from scipy.special import stdtr

    q = np.minimum(np.abs(r - rho) / np.sqrt(1 + rho**2), np.abs(r))
    q = np.minimum(q, 1 - np.finfo(float).eps)
    return np.asarray(2 * stdtr(df, -q * np.sqrt(df / (1 - q**2))))


def sure(found: Iterable[MeansCorrelation]) -> list[MeansCorrelation]:
    """Those that are not 0."""
    return [pair for pair in found if pair.p_adjusted < SURE]


def pairs_in_words(found: list[MeansCorrelation]) -> str:
    """The correlations, the surest first."""
    told = [f"{pair.first!r} with {pair.second!r} ({pair.correlation:.2f})" for pair in found]
    return listed(told, _TOLD)


def correlated(found: Iterable[MeansCorrelation], group: str) -> Finding | None:
    """What is worth knowing of them before learning."""
    known = sure(found)
    if not known:
        return None
    columns = tuple(dict.fromkeys(name for pair in known for name in (pair.first, pair.second)))
    what = f"means of data sets are correlated: {pairs_in_words(known)}"
    remedy = (
        "the default score allows for that; ",
        Option("score", "bic"),
        " and ",
        Option("score", "bic-h"),
        " take what data sets add to each column for independent",
    )
    finding = Finding(FindingKind.CORRELATED_MEANS, columns, (), len(known), what, remedy)
    return about(finding, noun_of(group))
