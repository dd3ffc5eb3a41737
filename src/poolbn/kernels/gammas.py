"""What inverse gamma variances add to a deviance, smooth in tau = 1 / shape >= 0. Compiled.

Near 0 the formulas are differences of large numbers; there they are series.
"""

from __future__ import annotations

import math

from poolbn.kernels.linalg import jit

_NEAR_0, _SMALL = 2e-3, 1e-3  # of tau (n / 2 + 1), and of tau x / 2


@jit
def polygamma(x: float) -> tuple[float, float]:
    """The first two derivatives of lgamma, by recurrence and Stirling's series."""
    first, second = 0.0, 0.0
    while x < 12.0:
        first -= 1.0 / x
        second += 1.0 / (x * x)
        x += 1.0
    i = 1.0 / x
    i2 = i * i
    first += (
        math.log(x)
        - i / 2.0
        - i2
        * (1.0 / 12.0 - i2 * (1.0 / 120.0 - i2 * (1.0 / 252.0 - i2 * (1.0 / 240.0 - i2 / 132.0))))
    )
    second += (
        i
        + i2 / 2.0
        + i2
        * i
        * (1.0 / 6.0 - i2 * (1.0 / 30.0 - i2 * (1.0 / 42.0 - i2 * (1.0 / 30.0 - i2 * 5.0 / 66.0))))
    )
    return first, second


@jit
def _series(m: float) -> tuple[float, float, float, float, float]:
    """Of -2 [lgamma(a + m) - lgamma(a) - m log a] as a series in tau."""
    return (
        m * (m - 1.0) / 2.0,
        m * (m - 0.5) * (m - 1.0) / 6.0,
        m * m * (m - 1.0) ** 2 / 12.0,
        m * (m - 0.5) * (m - 1.0) * (m * m - m - 1.0 / 3.0) / 20.0,
        m * m * (m - 1.0) ** 2 * (2.0 * m * m - 2.0 * m - 1.0) / 60.0,
    )


@jit
def spread(tau: float, n: float) -> float:
    """A(tau, n)."""
    m = n / 2.0
    if tau * (m + 1.0) < _NEAR_0:
        b2, b3, b4, b5, b6 = _series(m)
        near: float = -2.0 * tau * (b2 - tau * (b3 - tau * (b4 - tau * (b5 - tau * b6))))
        return near
    a = 1.0 / tau
    return 2.0 * (m * math.log(a) - math.lgamma(a + m) + math.lgamma(a))


@jit
def spread_slopes(tau: float, n: float) -> tuple[float, float]:
    """Its first two derivatives in tau."""
    m = n / 2.0
    if tau * (m + 1.0) < _NEAR_0:
        b2, b3, b4, b5, b6 = _series(m)
        return (
            -2.0 * (b2 - tau * (2.0 * b3 - tau * (3.0 * b4 - tau * (4.0 * b5 - tau * 5.0 * b6)))),
            4.0 * (b3 - tau * (3.0 * b4 - tau * (6.0 * b5 - tau * 10.0 * b6))),
        )
    a = 1.0 / tau
    one, two = polygamma(a + m)
    zero_one, zero_two = polygamma(a)
    B = one - zero_one - m / a
    dB = two - zero_two + m / (a * a)
    return 2.0 * a * a * B, -2.0 * a * a * (2.0 * a * B + a * a * dB)


@jit
def tail(tau: float, n: float, x: float) -> float:
    """(2 / tau + n) log(1 + tau x / 2)."""
    z = tau * x / 2.0
    if z < _SMALL:
        ratio = 1.0 - z * (0.5 - z * (1.0 / 3.0 - z * (0.25 - z * (0.2 - z / 6.0))))
    else:
        ratio = math.log1p(z) / z
    return x * ratio + n * z * ratio


@jit
def tail_slopes(tau: float, n: float, x: float) -> tuple[float, float]:
    """Its first two derivatives in tau."""
    z = tau * x / 2.0
    if z < _SMALL:
        one = -0.5 + z * (2.0 / 3.0 - z * (0.75 - z * (0.8 - z * 5.0 / 6.0)))
        two = 2.0 / 3.0 - z * (1.5 - z * (2.4 - z * 10.0 / 3.0))
    else:
        log = math.log1p(z)
        one = (z / (1.0 + z) - log) / (z * z)
        two = (2.0 * log - z * (2.0 + 3.0 * z) / (1.0 + z) ** 2) / (z * z * z)
    half = x / 2.0
    c = 1.0 + z
    return (
        2.0 * half * half * one + n * half / c,
        2.0 * half**3 * two - n * half * half / (c * c),
    )
