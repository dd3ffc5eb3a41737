"""The range that a forest plot shows."""

from __future__ import annotations

import numpy as np

from poolbn.assess.arceffects import Estimates

_FAR = 3.0  # times the middle half of the estimates, beyond which one is not shown
_BEYOND = 0.75  # of the range of the estimates, that long intervals may add on each side
_NEAR = 0.5  # of that range, where zero is shown although no interval reaches it


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
