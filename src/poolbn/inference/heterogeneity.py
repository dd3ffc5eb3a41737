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
from poolbn.nodes.poolings import Complete, Partial

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

# What stands in the column of parents where residual variances are tested.
RESIDUAL = "(residual variance)"

_WELCH = 15  # degrees of freedom that each data set needs for Welch's approximation
_DRAWS = 10_000  # of a simulated null distribution
_CELLS = 4_000_000  # random numbers of one kind, at most


class Equality(NamedTuple):
    """A test for equality in all data sets.

    Attributes:
        test: "F", "Welch", "simulated", "Bartlett" or "score"; "none" where the rows give none.
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
        alike = one_variance(fits[child])
        for k, parent in enumerate(parents, start=1):
            found[parent, child] = equal_effects(own, x.n, k, alike)
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


def one_variance(fit: GaussianFit) -> bool:
    """Whether the model of a node has one residual variance for all data sets."""
    pooling = fit.pooling
    return isinstance(pooling, Complete) or (
        isinstance(pooling, Partial) and pooling.residuals == "shared"
    )


def equal_effects(own: Own, n: Floats, k: int, one_variance: bool) -> Equality:
    """Whether coefficient k is the same in all data sets; all others may differ.

    With one residual variance it is the exact F test between the two regressions, with F - 1 and
    n - F q degrees of freedom where the rows of each data set give all coefficients. Otherwise the
    data sets' own estimates are weighted by their own variances: Welch's test, or its statistic
    against draws under the hypothesis where a data set leaves few degrees of freedom.
    """
    from scipy.special import fdtrc

    df = n - own.rank
    there = np.isfinite(own.cov[:, k])
    if not one_variance:
        there &= (df > 0) & (own.rss > 0)
    m = int(there.sum())
    if m < 2:
        return Equality()
    b, cov, nu = own.coef[there, k], own.cov[there, k], df[there]
    if one_variance:
        rest, rss = float(df.sum()), float(own.rss.sum())
        if rest < 1 or rss <= 0:
            return Equality()
        value = float(_spread(b, cov)) / (m - 1) / (rss / rest)
        return Equality("F", value, m - 1, rest, float(fdtrc(m - 1, rest, value)))
    variance = cov * own.rss[there] / nu
    spread = float(_spread(b, variance))
    if nu.min() < _WELCH:
        p = _simulated(spread, variance, nu)
        return Equality("simulated", spread / (m - 1), m - 1, math.nan, p)
    w = 1 / variance
    part = float(((1 - w / w.sum()) ** 2 / nu).sum())
    value = spread / (m - 1) / (1 + 2 * (m - 2) / (m**2 - 1) * part)
    df2 = (m**2 - 1) / (3 * part)
    return Equality("Welch", value, m - 1, df2, float(fdtrc(m - 1, df2, value)))


def _spread(b: Floats, variance: Floats) -> Floats:
    """Sum w (b - mean)^2 with w = 1 / variance, over the last axis."""
    w = 1 / variance
    mean = (w * b).sum(axis=-1, keepdims=True) / w.sum(axis=-1, keepdims=True)
    return np.asarray((w * (b - mean) ** 2).sum(axis=-1))


def _simulated(spread: float, variance: Floats, df: Floats) -> float:
    """The share of draws with a spread as large, equal effects with these variances given.

    Data sets are sorted first, so that their order does not matter.
    """
    order = np.lexsort((df, variance))
    variance, df = variance[order] / variance.max(), df[order]
    draws = draws_of(len(df))
    rng = np.random.default_rng(0)
    b = rng.standard_normal((draws, len(df))) * np.sqrt(variance)
    other = variance * rng.chisquare(df, size=(draws, len(df))) / df
    return float((1 + (_spread(b, other) >= spread).sum()) / (1 + draws))


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
