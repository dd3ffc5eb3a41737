"""Is an effect, or a residual variance, the same in all data sets? Tests that hold their size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.graph.dag import Dag
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import standardise
from poolbn.multiplicity import adjusted_p
from poolbn.nodes.choosing import check_admits
from poolbn.nodes.given import Given
from poolbn.nodes.intervals import Own, family_sums, own_estimates
from poolbn.nodes.localfit import GaussianFit
from poolbn.nodes.poolings import Partial

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

# What stands in the column of parents where residual variances are tested.
RESIDUAL = "(residual variance)"

_WELCH = 15  # degrees of freedom that each data set needs for Welch's approximation
_DRAWS = 10_000  # of a simulated null distribution
_SEEN = 10  # draws that are larger, for a share of them
_CELLS = 1_000_000  # random numbers of one kind, at most


class Equality(NamedTuple):
    """A test for equality in all data sets.

    Attributes:
        test: "Welch", "simulated", "F", "Bartlett" or "score"; "none" where the rows give none.
        statistic: F, or the chi-square of Bartlett's test or a score test.
        df1: its degrees of freedom.
        df2: of the denominator; NaN where it has none.
        p_value: NaN without a test.
    """

    test: str = "none"
    statistic: float = math.nan
    df1: float = math.nan
    df2: float = math.nan
    p_value: float = math.nan


def heterogeneity_table(
    stats: GroupStats, dag: Dag, fits: Mapping[str, GaussianFit]
) -> pd.DataFrame:
    """A row for each arc, and one for each node: an `Equality`, and the adjusted p-value."""
    data = standardise(stats)
    check_admits(Partial(), data)
    found: dict[tuple[str, str], Equality] = {}
    # Inputs, and what is set by intervention, have no distribution.
    modelled = [node for node in dag.nodes if not is_given(fits[node])]
    for child in modelled:
        parents = dag.parents(child)
        q = len(parents) + 1
        x = family_sums(data, data.family(child, parents), np.ones(q, dtype=bool))
        own = own_estimates(x)
        found[RESIDUAL, child] = equal_variances(own.rss, x.n - own.rank)
        for k, parent in enumerate(parents, start=1):
            found[parent, child] = equal_effects(own, x.n, k)
    return tests_table(found, list(dag.arcs), [(RESIDUAL, node) for node in modelled])


def is_given(fit: GaussianFit) -> bool:
    """Whether a node is an input, or set by intervention."""
    return isinstance(fit.pooling, Given) and fit.pooling.source != "simulated"


def tests_table(
    found: Mapping[tuple[str, str], Equality],
    arcs: list[tuple[str, str]],
    nodes: list[tuple[str, str]],
) -> pd.DataFrame:
    """A row for each test, of arcs and of nodes, with p-values adjusted over each of these."""
    import pandas as pd

    adjusted = np.concatenate(
        [adjusted_p([found[name].p_value for name in names]) for names in (arcs, nodes)]
    )
    table = pd.DataFrame(
        [(*name, *found[name]) for name in [*arcs, *nodes]],
        columns=["parent", "child", *Equality._fields],
    )
    return table.assign(p_adjusted=adjusted)


def equal_effects(own: Own, n: Floats, k: int) -> Equality:
    """Whether coefficient k is the same in all data sets; all others may differ.

    The data sets' own estimates are weighted by their own variances: Welch's test, or its statistic
    against draws under the hypothesis where a data set leaves few degrees of freedom. That holds
    its size whatever the residual variances are. With one residual variance for all it would be the
    F test between the two regressions, which rejects equal effects in 35 to 47% of tables if small
    data sets have residual SDs up to four times those of large ones, and choosing between the two
    by a test of the variances hands a part of that on. So the F test is left for where no two data
    sets show a variance.
    """
    from scipy.special import fdtrc

    df, there = n - own.rank, np.isfinite(own.cov[:, k])
    free = there & (df > 0) & (own.rss > 0)
    m = int(free.sum())
    if m < 2:
        spread = float(_spread(own.coef[there, k], own.cov[there, k])) if there.any() else 0.0
        return one_variance(spread, int(there.sum()) - 1, own.rss, df)
    b, nu = own.coef[free, k], df[free]
    variance = own.cov[free, k] * own.rss[free] / nu
    spread = float(_spread(b, variance))
    if nu.min() < _WELCH:
        p = _simulated(spread, variance, nu)
        return Equality("simulated", spread / (m - 1), m - 1, math.nan, p)
    w = 1 / variance
    part = float(((1 - w / w.sum()) ** 2 / nu).sum())
    value = spread / (m - 1) / (1 + 2 * (m - 2) / (m**2 - 1) * part)
    df2 = (m**2 - 1) / (3 * part)
    return Equality("Welch", value, m - 1, df2, float(fdtrc(m - 1, df2, value)))


def one_variance(gained: float, free: int, rss: Floats, df: Floats) -> Equality:
    """The F test between two regressions, with residual squares and df of data sets, (F,) each."""
    from scipy.special import fdtrc

    rest, total = float(df.sum()), float(rss.sum())
    if free < 1 or rest < 1 or total <= 0:
        return Equality()
    value = gained / free / (total / rest)
    return Equality("F", value, free, rest, float(fdtrc(free, rest, value)))


def _spread(b: Floats, variance: Floats) -> Floats:
    """Sum w (b - mean)^2 with w = 1 / variance, over the last axis."""
    w = 1 / variance
    mean = (w * b).sum(axis=-1, keepdims=True) / w.sum(axis=-1, keepdims=True)
    return np.asarray((w * (b - mean) ** 2).sum(axis=-1))


def _simulated(spread: float, variance: Floats, df: Floats) -> float:
    """The probability of a spread as large, equal effects with these variances given.

    Data sets are sorted first, so that their order does not matter.
    """
    order = np.lexsort((df, variance))
    variance, df = variance[order] / variance.max(), df[order]
    draws = draws_of(len(df))
    rng = np.random.default_rng(0)
    b = rng.standard_normal((draws, len(df))) * np.sqrt(variance)
    other = variance * rng.chisquare(df, size=(draws, len(df))) / df
    return tail(_spread(b, other), spread, len(df) - 1, float(df.min()))


def tail(draws: Floats, value: float, free: int, least: float) -> float:
    """The probability of a statistic as large: the share of draws, or beyond them that of F's tail.

    A sum of squares over estimated variances has the tail of the one with the fewest degrees of
    freedom, `least`; that of F with these is put where ten draws are larger. Such p-values are
    rather too large: at 1e-5 by a factor of ten.
    """
    from scipy.special import fdtrc, fdtri

    more = int((draws >= value).sum())
    if more >= _SEEN:
        return (1 + more) / (1 + len(draws))
    edge = np.partition(draws, -_SEEN)[-_SEEN]
    at = fdtri(free, least, 1 - _SEEN / len(draws))
    return float(fdtrc(free, least, at * max(value / edge, 1.0)))


def draws_of(cells: int) -> int:
    """How many draws of so many numbers are made."""
    return max(min(_DRAWS, _CELLS // cells), 100)


def equal_variances(rss: Floats, df: Floats) -> Equality:
    """Bartlett's test of the residual variances around each data set's own coefficients."""
    from scipy.special import chdtrc

    there = df > 0
    m, nu, squares = int(there.sum()), df[there], rss[there]
    if m < 2 or not (squares > 0).all():
        return Equality()
    total = nu.sum()
    value = total * math.log(squares.sum() / total) - float(nu @ np.log(squares / nu))
    value = max(value, 0.0) / (1 + ((1 / nu).sum() - 1 / total) / (3 * (m - 1)))
    return Equality("Bartlett", float(value), m - 1, math.nan, float(chdtrc(m - 1, value)))
