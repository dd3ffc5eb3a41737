"""The numbers and names of figures, made once: matplotlib and the report draw the same ones."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.comparison import Comparison
from poolbn.assess.estimates import Estimates
from poolbn.assess.proportional import ProportionalOdds
from poolbn.assess.resample import ArcStrength, Bootstrap
from poolbn.errors import DataError
from poolbn.graph.pairs import Pair
from poolbn.moments.data import Data
from poolbn.network.network import Network, checked_data
from poolbn.posteriors.posterior import ArcPosterior
from poolbn.wording import clipped, sensible


def number(value: float | None) -> str:
    """Four digits, and never fewer than those before the point."""
    if value is None or not sensible(value):
        return "–"
    large = 1000 <= abs(value) < 1e7
    return (f"{value:,.0f}" if large else f"{value:.4g}").replace("-", "−")


def p_value(p: float | None) -> str:
    """A p-value to three decimals."""
    if p is None or math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def percent(share: float) -> str:
    """A share, without 0% and 100% where it is neither."""
    if 0 < share < 0.005:
        return "< 1%"
    return "> 99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def arrow(parent: str, child: str, *, directed: bool = True) -> str:
    """An arc, or a pair of nodes."""
    return f"{parent} {'→' if directed else '–'} {child}"


def what(found: Estimates, length: int = 40) -> str:
    """What estimates are of, with names of at most this length."""
    child = clipped(found.child, length)
    if found.parent is None:
        return f"residual SD of {child}"
    parent = clipped(found.parent, length)
    change = f"for {parent} {instead(found)}" if found.base else f"per unit of {parent}"
    change += f" {found.level}" * bool(found.level and not found.base)
    return f"{_scale(found, child)} {change}"


def what_all(found: Estimates, length: int = 40) -> str:
    """What the estimates of an arc with several effects are of, whatever the level."""
    child, parent = clipped(found.child, length), clipped(str(found.parent), length)
    per = "of" if found.base else "per unit of"
    return f"{_scale(replace(found, outcome=''), child)} {per} {parent}"


def _scale(found: Estimates, child: str) -> str:
    """The scale of an effect, and on what."""
    if not found.is_ratio:
        return f"change of {child}"
    return f"{found.scale} of {child}{f' = {found.outcome}' * bool(found.outcome)}"


def instead(found: Estimates) -> str:
    """The level of a discrete parent, and the one that it is compared with."""
    return f"{found.level} instead of {found.base}" if found.base else found.level


def term_name(found: Estimates) -> str:
    """Which of the effects of an arc estimates are: levels of the parent and of the child."""
    said = [instead(found)]
    if len(found.outcomes) > 2:
        said.append(f"{found.child} {found.outcome} instead of {found.outcomes[0]}")
    return ", ".join(filter(None, said))


def wrapped(name: str, width: int) -> list[str]:
    """A name in lines of about equal length, broken after spaces and signs, or else anywhere."""
    width = max(width, -(-len(name) // 4))
    pieces = [
        piece[i : i + width]
        for piece in re.findall(r"[^\s_.:/-]*[\s_.:/-]*", name)
        for i in range(0, len(piece.rstrip()), width)
    ]
    lines = _filled(pieces, width)
    for narrower in range(width - 1, 0, -1):
        even = _filled(pieces, narrower)
        if len(even) > len(lines):
            break
        lines = even
    return lines


def _filled(pieces: Iterable[str], width: int) -> list[str]:
    """Lines of at most this width, or of one piece."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]


Floats = NDArray[np.float64]

MOST = 40  # rows of a figure with a row for each arc, unless told otherwise
_FAR = 3.0  # times the middle half of the estimates, beyond which one is not shown
_BEYOND = 0.75  # of the range of the estimates, that long intervals may add on each side
_SAME = 1e-9  # of their size, that equal estimates may differ by
_RATIO = 1.5  # in logarithms, that limits of ratios are apart from their middle, or more
_LARGEST = 690.0  # logarithm of the largest ratio at an axis
_SMALL = 0.005  # probability of an arc that is not shown
_NEAR = 0.5  # of that range, where zero is shown although no interval reaches it


# Estimates in all data sets


def forest_order(found: Estimates) -> NDArray[np.intp]:
    """The data sets of a forest plot from top to bottom, by estimate, (F,)."""
    return np.lexsort((found.alone, found.effect))


def forest_limits(*terms: Estimates) -> tuple[float, float]:
    """Limits that show the estimates, unless far out, and intervals, unless very long.

    Of several effects, common ones.
    """
    ends = [_limits(found) for found in terms]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _limits(found: Estimates) -> tuple[float, float]:
    core = np.array([found.population, *found.effect])
    core = np.append(core, [*found.interval.ravel(), *found.population_interval])
    core = core[np.isfinite(core)]
    if not len(core):
        return -1.0, 1.0
    if found.is_ratio:  # some are known so badly that others would not be seen
        middle, reach = np.median(core), max(_RATIO, float(np.ptp(np.quantile(core, [0.1, 0.9]))))
        core = np.clip(core, middle - reach, middle + reach)
    low, high = core.min(), core.max()
    alone = found.alone[np.isfinite(found.alone)]
    if len(alone):
        first, middle, third = np.quantile(alone, [0.25, 0.5, 0.75])
        reach = _FAR * max(third - first, high - low)
        near = alone[np.abs(alone - middle) <= reach]
        low, high = min(low, near.min(initial=low)), max(high, near.max(initial=high))
    span = high - low
    if span <= _SAME * abs(high):  # estimates that are the same but for rounding
        span = abs(high) or 1.0
    rest = np.array([*alone, *found.alone_interval.ravel(), *found.new_interval])
    rest = np.clip(rest[np.isfinite(rest)], low - _BEYOND * span, high + _BEYOND * span)
    low, high = min(low, rest.min(initial=low)), max(high, rest.max(initial=high))
    if 0 < low < _NEAR * span:
        low = 0.0
    if -_NEAR * span < high < 0:
        high = 0.0
    return float(low - 0.04 * span), float(high + 0.04 * span)


def ratio_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round ratios between two, given by their logarithms, for an axis of logarithms."""
    low, high = (min(max(end, -_LARGEST), _LARGEST) for end in (low, high))
    first, last = math.floor(low / math.log(10)), math.ceil(high / math.log(10))
    for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        found = [ratio for ratio in found if low <= math.log(ratio) <= high]
        if len(found) <= most:
            break
    if len(found) > most:  # powers of ten, every other or fewer
        found = found[:: -(-len(found) // most)]
    if len(found) < 3:  # a short axis, on which logarithms are about straight
        ends = math.exp(low), math.exp(high)
        rough = (ends[1] - ends[0]) / 4
        if rough <= _SAME * ends[1]:  # nothing to tell apart, as in units that are far too small
            return [ends[0]]
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(k * power for k in (1, 2, 2.5, 5, 10) if k * power >= 0.999 * rough)
        count = range(math.ceil(ends[0] / step), math.floor(ends[1] / step) + 1)
        found = [round(k * step, 12) for k in count if k > 0]
    return found


class Test(NamedTuple):
    """A test for equality, as `Network.heterogeneity` has them: kind, statistic, p-values."""

    kind: str
    statistic: float
    p_value: float
    p_adjusted: float


def equality_tests(net: Network, stats: Data | None) -> dict[Pair, Test]:
    """Tests for equal effects by arc, for equal residual variances by (`RESIDUAL`, node).

    There are none without sufficient statistics of two or more data sets, which fits hold unless
    they are loaded.
    """
    known = checked_data(net, stats)
    if len((known or net).levels) < 2:
        return {}
    if known is None and not all(fit.holds_tests for fit in net.fits.values()):
        return {}
    table = net.heterogeneity(stats)[["parent", "child", "test", *Test._fields[1:]]]
    rows = table.itertuples(index=False, name=None)
    return {(parent, child): Test(*values) for parent, child, *values in rows}


# Odds ratios at thresholds


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Logarithms of the odds ratios of one effect at T thresholds, and of the common one.

    Those of a parent that is a number are for one standard deviation of it.
    """

    name: str  # what the effect is of
    p_value: float  # of the test that they are the same
    thresholds: list[str]  # names of thresholds, (T,)
    ratio: Floats  # estimates, the common one last, (T + 1,)
    interval: Floats  # their intervals, (T + 1, 2)


def odds_at_thresholds(found: ProportionalOdds) -> list[Thresholds]:
    """Of each effect on an ordinal node."""
    tests = found.tests[["parent", "child", "p_value"]].itertuples(index=False, name=None)
    p = {(parent, child): float(value) for parent, child, value in tests}
    made = []
    for _, of in found.ratios.groupby(["parent", "level", "child"], sort=False):
        rows = of.iloc[[*range(1, len(of)), 0]]
        parent, level, child = map(str, rows[["parent", "level", "child"]].iloc[0])
        sd = 1.0 if level else float(rows["sd"].iloc[0])
        name = arrow(f"{parent} = {level}" if level else f"{parent} (per SD)", child)
        logs = sd * np.log(rows[["effect", "lower", "upper"]].to_numpy(dtype=np.float64))
        thresholds = rows["threshold"].tolist()[:-1]
        made.append(Thresholds(name, p[parent, child], thresholds, logs[:, 0], logs[:, 1:]))
    return made


def odds_limits(found: Iterable[Thresholds]) -> tuple[float, float]:
    """Limits of logarithms that show no effect, the estimates, and intervals unless very long."""
    core = np.concatenate([[0.0], *(of.ratio for of in found)])
    core = core[np.isfinite(core)]
    span = max(float(np.ptp(core)), _RATIO)
    ends = np.concatenate([[0.0], *(of.interval.ravel() for of in found)])
    ends = np.clip(ends[np.isfinite(ends)], core.min() - span, core.max() + span)
    low, high = min(core.min(), ends.min()), max(core.max(), ends.max())
    return float(low - 0.04 * (high - low)), float(high + 0.04 * (high - low))


# Strengths of arcs


def arc_strengths(net: Network, found: Bootstrap | ArcPosterior) -> list[ArcStrength]:
    """The strength and direction of each arc in a bootstrap, or its probability."""
    index = {node: i for i, node in enumerate(found.nodes)}
    for node in net.dag.nodes:
        if node not in index:
            what = "bootstrap" if isinstance(found, Bootstrap) else "posterior"
            raise DataError(
                f"the {what} does not know the node {node!r}; it was of "
                f"{', '.join(map(repr, found.nodes[:12]))}"
            )
    either = found.strength if isinstance(found, Bootstrap) else found.adjacency
    strength, direction = either.tolist(), found.direction.tolist()
    at = [(index[parent], index[child]) for parent, child in net.dag.arcs]
    own = zip(net.dag.arcs, at, strict=True)
    return [ArcStrength(*arc, strength[i][j], direction[i][j]) for arc, (i, j) in own]


def is_sure(boot: Bootstrap, strength: float) -> bool:
    """Whether a strength is above the threshold."""
    return strength > boot.threshold or strength == 1


@dataclass(frozen=True)
class Bars:
    """How sure pairs of nodes are: the surest first, what the axis shows, and a threshold."""

    pairs: list[ArcStrength]
    axis: str
    threshold: float


def bars(found: Bootstrap | ArcPosterior) -> Bars:
    """Of pairs with an arc in a bootstrap, or with a probability that is not 0 to two digits."""
    if isinstance(found, Bootstrap):
        axis = f"share of {found.replicates} networks from resampled {found.unit}s"
        return Bars(found.pairs(), axis, found.threshold)
    rows = map(ArcStrength._make, found.arcs().iloc[:, :4].itertuples(index=False, name=None))
    pairs = [pair for pair in rows if pair.strength >= _SMALL]
    pairs.sort(key=lambda pair: -pair.strength)
    return Bars(pairs, "probability of an arc", 0.5)


def pair_name(pair: ArcStrength, length: int = sys.maxsize) -> str:
    """A pair of nodes in its more frequent direction, with names of at most this length."""
    ends = clipped(pair.parent, length), clipped(pair.child, length)
    return arrow(*ends, directed=pair.directed)


# Poolings compared


@dataclass(frozen=True, eq=False)
class Differences:
    """Log-likelihoods per row minus those of the best of P poolings; NaN where there is no fit."""

    each: Floats  # in each fold, or data set that was left out, (P, K)
    mean: Floats  # over all rows, (P,)
    reach: Floats  # two standard errors of the mean, (P,)


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
