"""Exponentials and logarithms of eight numbers at a time. Compiled.

They multiply and add apart, so every CPU gives the same bits; relative errors are below 7e-16. The
C library's take one number at a time.
"""

from __future__ import annotations

import math

from poolbn.kernels.lanes import (
    Floats,
    choose,
    exponent,
    fraction,
    minus,
    plus,
    product,
    quotient,
    raise_by,
    spread,
)
from poolbn.kernels.linalg import callable_from_python

_ROUNDING = 1.5 * 2.0**52  # a number plus this is whole, with its last bits
_LARGEST, _LEAST = 709.0, -708.0  # where exponentials are neither infinite nor tiny
# The logarithm of 2: so many bits that a whole number times it is exact, and the rest.
_LN2, _LN2_REST = 0.693147180369123816490, 1.90821492927058770002e-10
# Coefficients, those of the highest powers first: of exp(r) in r, of log((1 + s) / (1 - s)) / s in
# s^2. Even and odd powers are summed apart, as each step waits for the one before it.
_POWERS, _TERMS = 14, 12
_EXP = tuple(1.0 / math.factorial(k) for k in range(_POWERS - 1, -1, -1))
_LOG = tuple(2.0 / (2 * k + 1) for k in range(_TERMS - 1, -1, -1))


@callable_from_python
def exponential(x: Floats) -> Floats:
    """Each exp(x); infinite above 709, and exp(-708) where x is less."""
    bounded = choose(minus(spread(_LEAST), x), spread(_LEAST), x)
    n = plus(product(bounded, spread(1.0 / math.log(2.0))), spread(_ROUNDING))
    k = minus(n, spread(_ROUNDING))
    r = minus(minus(bounded, product(k, spread(_LN2))), product(k, spread(_LN2_REST)))
    odd, even, square = spread(_EXP[0]), spread(_EXP[1]), product(r, r)
    for a in range(2, _POWERS, 2):
        odd = plus(product(odd, square), spread(_EXP[a]))
        even = plus(product(even, square), spread(_EXP[a + 1]))
    v = plus(even, product(odd, r))
    return choose(minus(x, spread(_LARGEST)), spread(math.inf), raise_by(v, n))


@callable_from_python
def logarithm(x: Floats) -> Floats:
    """Each log(x), of positive numbers that are neither tiny nor infinite."""
    one, m = spread(1.0), fraction(x)
    k = minus(exponent(x), spread(2.0**52 + 1023.0))
    above = minus(m, spread(math.sqrt(2.0)))  # then as far below 1 as others are above it
    m, k = choose(above, product(m, spread(0.5)), m), choose(above, plus(k, one), k)
    s = quotient(minus(m, one), plus(m, one))
    square = product(s, s)
    odd, even, fourth = spread(_LOG[0]), spread(_LOG[1]), product(square, square)
    for a in range(2, _TERMS, 2):
        odd = plus(product(odd, fourth), spread(_LOG[a]))
        even = plus(product(even, fourth), spread(_LOG[a + 1]))
    v = plus(even, product(odd, square))
    rest = plus(product(s, v), product(k, spread(_LN2_REST)))
    return plus(product(k, spread(_LN2)), rest)


@callable_from_python
def logarithm_above_one(x: Floats) -> Floats:
    """Each log(1 + x), of numbers that are not negative; for small ones as exact as they are."""
    one = spread(1.0)
    u = plus(one, x)
    return plus(logarithm(u), quotient(minus(x, minus(u, one)), u))
