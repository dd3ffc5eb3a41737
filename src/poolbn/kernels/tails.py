"""Logarithms of tail probabilities: they say which of two small p-values is smaller. Compiled."""

from __future__ import annotations

import math

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import jit

_TINY = 1e-300
_ENDS = 1e-15  # of a continued fraction


@jit
def log_two_sided(z: float) -> float:
    """Of a standard normal variable: the log of the probability of |Z| > z."""
    x = z / math.sqrt(2.0)
    if x < 20.0:
        return math.log(math.erfc(x))
    # The asymptotic series; the next term is below 1e-12.
    i = 0.5 / (x * x)
    series = 1.0 - i * (1.0 - 3.0 * i * (1.0 - 5.0 * i * (1.0 - 7.0 * i)))
    return -x * x - math.log(x * math.sqrt(math.pi)) + math.log(series)


@jit
def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    f = d
    for m in range(1, 10_000):
        for odd in range(2):
            if odd == 0:
                t = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
            else:
                t = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
            d = 1.0 + t * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + t / c
            c = c if abs(c) > _TINY else _TINY
            f *= c * d
        if abs(c * d - 1.0) < _ENDS:
            break
    return f


@jit
def log_beta_tail(x: float, y: float, a: float, b: float) -> float:
    """Log of the regularised incomplete beta function I_x(a, b), with y = 1 - x to all digits."""
    if x <= 0.0:
        return -math.inf
    if y <= 0.0:
        return 0.0
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y)
    if x * (a + b + 2.0) < a + 1.0:
        return front - math.log(a) + math.log(_fraction(x, a, b))
    other = math.exp(front) / b * _fraction(y, b, a)
    return math.log1p(-other) if other < 1.0 else -math.inf


@jit
def _weights(at: float, w: Floats) -> None:
    """Cubic Lagrange weights of points -1, 0, 1, 2 at a position between 0 and 1."""
    w[0] = -at * (at - 1.0) * (at - 2.0) / 6.0
    w[1] = (at + 1.0) * (at - 1.0) * (at - 2.0) / 2.0
    w[2] = -(at + 1.0) * at * (at - 2.0) / 2.0
    w[3] = (at + 1.0) * at * (at - 1.0) / 6.0


@jit
def log_combined(statistic: float, data_sets: float, table: Floats, w: Floats) -> float:
    """The log of the p-value of the combined test, by interpolation in a table.

    Rows of the table, (A, B), are equally spaced in 1 / sqrt(data sets) from 0 to 1, columns in the
    root of the statistic from 0 to `REACH`; it holds log p + statistic / 2. w is work space, (8,).
    """
    u = math.sqrt(statistic) if statistic > 0.0 else 0.0
    A, B = table.shape[0] - 1, table.shape[1] - 1
    x, y = A / math.sqrt(data_sets), u * B / REACH
    if y > B:
        return -statistic / 2.0
    i = min(max(int(x), 1), A - 2)
    k = min(max(int(y), 1), B - 2)
    _weights(x - i, w[:4])
    _weights(y - k, w[4:])
    value = 0.0
    for m in range(4):
        for h in range(4):
            value += w[m] * w[4 + h] * table[i - 1 + m, k - 1 + h]
    return min(value - statistic / 2.0, 0.0)


REACH = 40.0  # of roots of statistics: p-values beyond are 0 in double precision
