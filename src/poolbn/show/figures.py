"""The numbers of figures, made once: matplotlib and the report draw the same ones."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.arceffects import Estimates
from poolbn.assess.comparison import Comparison
from poolbn.assess.resample import ArcStrength, Bootstrap
from poolbn.errors import DataError
from poolbn.graph.pairs import Pair
from poolbn.moments.groupstats import GroupStats
from poolbn.network.network import Network
from poolbn.nodes.choosing import check_stats
from poolbn.show.texts import arrow
from poolbn.wording import clipped

Floats = NDArray[np.float64]

MOST = 40  # rows of a figure with a row for each arc, unless told otherwise
_FAR = 3.0  # times the middle half of the estimates, beyond which one is not shown
_BEYOND = 0.75  # of the range of the estimates, that long intervals may add on each side
_NEAR = 0.5  # of that range, where zero is shown although no interval reaches it


# Estimates in all data sets


def forest_order(found: Estimates) -> NDArray[np.intp]:
    """The data sets of a forest plot from top to bottom, by estimate, (F,)."""
    return np.lexsort((found.alone, found.effect))


def forest_limits(found: Estimates) -> tuple[float, float]:
    """Limits that show the estimates, unless far out, and intervals, unless very long."""
    core = np.array([*found.effect, *found.interval.ravel(), *found.population_interval])
    core = np.append(core[np.isfinite(core)], found.population)
    low, high = core.min(), core.max()
    alone = found.alone[np.isfinite(found.alone)]
    if len(alone):
        first, middle, third = np.quantile(alone, [0.25, 0.5, 0.75])
        reach = _FAR * max(third - first, high - low)
        near = alone[np.abs(alone - middle) <= reach]
        low, high = min(low, near.min(initial=low)), max(high, near.max(initial=high))
    span = (high - low) or abs(high) or 1.0
    rest = np.array([*alone, *found.alone_interval.ravel(), *found.new_interval])
    rest = np.clip(rest[np.isfinite(rest)], low - _BEYOND * span, high + _BEYOND * span)
    low, high = min(low, rest.min(initial=low)), max(high, rest.max(initial=high))
    if 0 < low < _NEAR * span:
        low = 0.0
    if -_NEAR * span < high < 0:
        high = 0.0
    return float(low - 0.04 * span), float(high + 0.04 * span)


class Test(NamedTuple):
    """A test for equality, as `Network.heterogeneity` has them: kind, statistic, p-values."""

    kind: str
    statistic: float
    p_value: float
    p_adjusted: float


def equality_tests(net: Network, stats: GroupStats | None) -> dict[Pair, Test]:
    """Tests for equal effects by arc, for equal residual variances by (`RESIDUAL`, node).

    There are none without sufficient statistics of two or more data sets.
    """
    if stats is not None:
        check_stats(stats)
    if stats is None or len(stats.levels) < 2:
        return {}
    table = net.heterogeneity(stats)[["parent", "child", "test", *Test._fields[1:]]]
    rows = table.itertuples(index=False, name=None)
    return {(parent, child): Test(*values) for parent, child, *values in rows}


# Strengths of arcs


def arc_strengths(net: Network, boot: Bootstrap) -> list[ArcStrength]:
    """The strength and direction of each arc in a bootstrap.

    Raises:
        DataError: the bootstrap was of other nodes.
    """
    index = {node: i for i, node in enumerate(boot.nodes)}
    for node in net.dag.nodes:
        if node not in index:
            raise DataError(
                f"the bootstrap does not know the node {node!r}; it was of "
                f"{', '.join(map(repr, boot.nodes[:12]))}"
            )
    strength, direction = boot.strength.tolist(), boot.direction.tolist()
    at = [(index[parent], index[child]) for parent, child in net.dag.arcs]
    found = zip(net.dag.arcs, at, strict=True)
    return [ArcStrength(*arc, strength[i][j], direction[i][j]) for arc, (i, j) in found]


def is_sure(boot: Bootstrap, strength: float) -> bool:
    """Whether a strength is above the threshold."""
    return strength > boot.threshold or strength == 1


def pair_name(pair: ArcStrength, length: int = sys.maxsize) -> str:
    """A pair of nodes in its more frequent direction, with names of at most this length."""
    ends = clipped(pair.parent, length), clipped(pair.child, length)
    return arrow(*ends, directed=pair.directed)


# Poolings compared


@dataclass(frozen=True, eq=False)
class Differences:
    """Log-likelihoods per row minus those of the best of P poolings; NaN where there is no fit.

    Attributes:
        each: in each fold, or data set that was left out, (P, K).
        mean: over all rows, (P,).
        reach: two standard errors of the mean, (P,).
    """

    each: Floats
    mean: Floats
    reach: Floats


def held_out_differences(found: Comparison) -> Differences:
    """Of rows that were held out, from the pooling that predicts these best."""
    return _differences(found.loglik, found.rows, found.poolings.index(found.best))


def left_out_differences(found: Comparison) -> Differences:
    """Of data sets that were left out as a whole, from the pooling that predicts these best."""
    total = found.left_out_loglik @ found.left_out_rows
    best = int(np.argmax(np.where(np.isfinite(total), total, -np.inf)))
    return _differences(found.left_out_loglik, found.left_out_rows, best)


def _differences(loglik: Floats, rows: NDArray[np.int64], best: int) -> Differences:
    K = len(rows)
    with np.errstate(invalid="ignore"):
        each = loglik - loglik[best]
    each = np.where(np.isfinite(each).all(axis=1, keepdims=True), each, np.nan)
    se = each.std(axis=1, ddof=1) / np.sqrt(K) if K > 1 else 0 * each[:, 0]
    return Differences(each, each @ rows / rows.sum(), 2 * se)
