"""Tests for equal effects in networks with columns of all kinds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError
from poolbn.graph.dag import Dag
from poolbn.inference.heterogeneity import (
    RESIDUAL,
    Equality,
    draws_of,
    equal_effects,
    equal_variances,
    one_variance,
    tail,
    tests_table,
)
from poolbn.moments.data import Data
from poolbn.moments.indicators import labels_of
from poolbn.moments.standardised import standardise
from poolbn.nodes.given import Given
from poolbn.nodes.grouplevel import GroupLevel
from poolbn.nodes.intervals import Own, Sums, family_sums, own_estimates
from poolbn.nodes.localfit import GaussianFit, LocalFit
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

_RANK = 1e-9  # of the largest, below which a scatter is none


def mixed_heterogeneity_table(
    dag: Dag, fits: Mapping[str, LocalFit], data: Data | None
) -> pd.DataFrame:
    """As `heterogeneity_table`: a row for each arc, and one for each continuous node.

    Args:
        dag: the graph.
        fits: its nodes; those that are not continuous hold their tests.
        data: the rows, or statistics of them; None for what the fits hold.
    """
    found: dict[tuple[str, str], Equality] = {}
    for child in dag.nodes:
        fit, parents = fits[child], dag.parents(child)
        if isinstance(fit, GaussianFit):
            columns = [labels_of([parent], [fits[parent].categories]) for parent in parents]
            found |= _linear(fit, parents, columns, data)
        elif isinstance(fit, RegressionFit | TabularFit):
            held = dict(zip(parents, fit.effects.equal, strict=False))
            found |= {(parent, child): _score(held.get(parent)) for parent in parents}
    nodes = [name for name in found if name[0] == RESIDUAL]
    return tests_table(found, list(dag.arcs), nodes)


def _score(held: Floats | None) -> Equality:
    """The test of a fit that is not linear, from its statistic and degrees of freedom."""
    from scipy.special import chdtrc

    if held is None or not np.isfinite(held).all():
        return Equality()
    statistic, df = held.tolist()
    return Equality("score", statistic, df, math.nan, float(chdtrc(df, statistic)))


def _linear(
    fit: GaussianFit,
    parents: Sequence[str],
    columns: Sequence[Sequence[str]],
    data: Data | None,
) -> dict[tuple[str, str], Equality]:
    """The tests of a continuous node."""
    arcs = [(parent, fit.child) for parent in parents]
    if isinstance(fit.pooling, Given):
        return dict.fromkeys(arcs, Equality())
    x = linear_sums(fit, parents, data, "heterogeneity")
    if x is None:
        return dict.fromkeys([*arcs, (RESIDUAL, fit.child)], Equality())
    own = own_estimates(x)
    found = {(RESIDUAL, fit.child): equal_variances(own.rss, x.n - own.rank)}
    for arc, names in zip(arcs, columns, strict=True):
        at = [fit.position(name) for name in names]
        if len(at) == 1:
            found[arc] = equal_effects(own, x.n, at[0])
        else:
            found[arc] = equal_blocks(x, own, [k - 1 for k in at])
    return found


def linear_sums(
    fit: GaussianFit, parents: Sequence[str], data: Data | None, method: str
) -> Sums | None:
    """The statistics of a continuous node and its parents' columns; None for one of data sets.

    Args:
        fit: the node.
        parents: its parents.
        data: rows; None for what the fit holds.
        method: of the network, that needs them.

    Raises:
        DataError: there are none.
    """
    every = np.ones(len(fit.columns) + 1, dtype=bool)
    if data is not None:
        stats = standardise(data.stats([*parents, fit.child]))
        return family_sums(stats, stats.family(fit.child, fit.columns), every)
    if fit.sums is not None:
        return fit.sums._replace(varies=every)
    if isinstance(fit.pooling, GroupLevel):
        return None
    raise DataError(
        "a loaded network has no statistics of the rows; give them, as in "
        f"net.{method}(pb.table(data, group=...))"
    )


def equal_blocks(x: Sums, own: Own, columns: Sequence[int]) -> Equality:
    """Whether several coefficients are the same in all data sets; all others may differ.

    What the other parents leave of these columns has in each data set the scatter A_j, and c_j with
    the child. With weights w_j = 1 / sigma_j^2 the sum of squares that different coefficients gain
    is sum w_j c_j'A_j^-1 c_j - (sum w_j c_j)'(sum w_j A_j)^-1 (sum w_j c_j). It is compared with
    draws under the hypothesis; see `heterogeneity.equal_effects`.

    Args:
        x: the sufficient statistics of the family.
        own: least squares in each data set.
        columns: which of the parents' columns.
    """
    A, c = _left(x, columns)
    df = x.n - own.rank
    rss = own.rss / x.scale[-1] ** 2
    there = (df > 0) & (rss > 0)
    if there.sum() < 2:
        gained, free = _gain(A, c, np.ones(len(df)))
        return one_variance(float(gained), free, rss, df)
    A, c, df, rss = A[there], c[there], df[there], rss[there]
    gained, free = _gain(A, c, df / rss)
    if free < 1:
        return Equality()
    p = tail(_null(A, rss / df, df), float(gained), free, float(df.min()))
    return Equality("simulated", float(gained) / free, free, math.nan, p)


def _left(x: Sums, columns: Sequence[int]) -> tuple[Floats, Floats]:
    """Scatter of some columns, and with the child, that other parents leave; (F, w, w), (F, w)."""
    others = [k for k in range(x.mean.shape[1] - 1) if k not in columns]
    kept = [*columns, -1]
    S = x.scatter
    across = S[:, kept][:, :, others]
    explained = across @ _inverse(S[:, others][:, :, others]) @ np.swapaxes(across, 1, 2)
    left = S[:, kept][:, :, kept] - explained
    return left[:, :-1, :-1], left[:, :-1, -1]


def _inverse(A: Floats) -> Floats:
    """Of scatters of columns of variance one, where rows give it."""
    return np.asarray(np.linalg.pinv(A, rcond=_RANK, hermitian=True))


def _gain(A: Floats, c: Floats, weight: Floats) -> tuple[Floats, int]:
    """The squares that are gained, (...,), and degrees of freedom; weights (..., F)."""
    each = np.einsum("...ja,jab,...jb->...j", c, _inverse(A), c)
    together = np.einsum("...j,jab->...ab", weight, A)
    u = np.einsum("...j,...ja->...a", weight, c)
    common = np.einsum("...a,...ab,...b->...", u, _inverse(together), u)
    free = int(_rank(A).sum() - _rank(A.sum(axis=0)))
    return (weight * each).sum(axis=-1) - common, free


def _rank(A: Floats) -> NDArray[np.int64]:
    value = np.linalg.eigvalsh(A)
    return np.asarray((value > _RANK * np.maximum(value[..., -1:], _RANK)).sum(axis=-1))


def _null(A: Floats, variance: Floats, df: Floats) -> Floats:
    """Draws of the squares that are gained with equal coefficients."""
    draws, rng = draws_of(A[..., 0].size), np.random.default_rng(0)
    value, vector = np.linalg.eigh(A)
    half = vector * np.sqrt(np.maximum(value, 0.0) * variance[:, None])[:, None, :]
    c = np.einsum("jab,djb->dja", half, rng.standard_normal((draws, *A.shape[:2])))
    other = variance * rng.chisquare(df, size=(draws, len(df))) / df
    return _gain(A, c, 1 / other)[0]
