"""Likelihoods of rows in a linear predictor. Compiled.

Families: logit with C + 1 levels, level 0 the baseline, eta_k = x'b_k for the levels 1 to C;
Poisson and negative binomial counts (NB2: variance mu + mu^2 / theta), log links, C = 1; and what
cumulative logits of ordered levels are made of, C = 1: rows that say whether a threshold is
exceeded, 0 or 1, as of a logit, and rows of 2, on the distance x of the thresholds around a level,
with the log-likelihood log(1 - e^-x), see `design.about_thresholds`. All are concave in the
coefficients t = (b_1, ..., b_C), (d,) with d = C q. Nothing here allocates.

Arrays are few, since numba takes long to compile calls that hand on many:
  table (q + 2 + 3 C, m)  x, what was seen (a level or a count), how often, probabilities or means,
                          and room; rows are sorted by data set, each from a multiple of eight, and
                          where there are none all is 0. Where `more` is not 0 there follow from it
                          what is added to the predictors (C) and to their covariances (C, C);
  state (d + 2, d)        of one data set: the information W (d, d), then t, then the score g.
Sums run over eight rows at a time (`lanes`), block by block, so that what was stored is still near.
"""

from __future__ import annotations

import math

import numpy as np

from poolbn.kernels.elementary import exponential, logarithm, logarithm_above_one
from poolbn.kernels.gammas import polygamma
from poolbn.kernels.lanes import (
    LANES,
    Floats,
    choose,
    load,
    minus,
    plus,
    product,
    quotient,
    spread,
    store,
    total,
)
from poolbn.kernels.linalg import callable_from_python, jit
from poolbn.kernels.work import inline

LOGIT, POISSON, NEGATIVE_BINOMIAL, ORDINAL = range(4)
BLOCK = 512  # rows
_LARGEST = 700.0  # exp of more is infinite


@callable_from_python
def weighted(table: Floats, v: int, first: int, last: int, x: int) -> float:
    """The sum of v x over rows, both positions in the table."""
    m = table.shape[1]
    s = spread(0.0)
    for i in range(first, last, LANES):
        s = plus(s, product(load(table, v * m + i), load(table, x * m + i)))
    return total(s)


@jit
def add_squares(
    table: Floats, q: int, v: int, first: int, last: int, out: Floats, top: int, left: int
) -> None:
    """Add the sums of v x x' to a square of out, below the diagonal; two columns at a time."""
    m = table.shape[1]
    for a in range(q):
        for b in range(0, a + 1, 2):
            other = min(b + 1, a)
            s = r = spread(0.0)
            for i in range(first, last, LANES):
                u = product(load(table, v * m + i), load(table, a * m + i))
                s = plus(s, product(u, load(table, b * m + i)))
                r = plus(r, product(u, load(table, other * m + i)))
            out[top + a, left + b] += total(s)
            if other > b:
                out[top + a, left + other] += total(r)


@inline
def _single(
    family: int,
    table: Floats,
    q: int,
    first: int,
    last: int,
    theta: float,
    state: Floats,
    more: int,
) -> float:
    """`rows` with one linear predictor."""
    m, t, g = table.shape[1], state[q], state[q + 1]
    zero, one = spread(0.0), spread(1.0)
    value, odds = zero, family in (LOGIT, ORDINAL)
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        for i in range(begin, end, LANES):
            y, w = load(table, q * m + i), load(table, (q + 1) * m + i)
            eta = load(table, more * m + i) if more > 0 else zero
            for a in range(q):
                eta = plus(eta, product(spread(t[a]), load(table, a * m + i)))
            far = minus(eta, spread(_LARGEST))
            e = exponential(choose(eta if odds else far, minus(zero, eta), eta))
            x = e if odds else quotient(e, spread(theta))
            log = logarithm_above_one(x)
            r = quotient(one, plus(one, x))
            if odds:
                mu, top = choose(eta, r, product(e, r)), choose(eta, eta, zero)
                seen = minus(minus(product(y, eta), top), log)
                slope, curvature = minus(y, mu), product(e, product(r, r))
                if family == ORDINAL:  # distances depend on no random effect
                    distance, left = minus(y, spread(1.5)), minus(one, e)
                    above = choose(eta, logarithm(left), spread(-np.inf))
                    steep = quotient(e, left)
                    seen = choose(distance, above, seen)
                    slope = choose(distance, steep, slope)
                    curvature = choose(distance, quotient(steep, left), curvature)
            elif family == POISSON:
                mu, slope, curvature = e, minus(y, e), e
                seen = choose(far, spread(-np.inf), minus(product(y, eta), mu))
            else:
                mu, slope = e, product(r, minus(y, e))
                seen = minus(product(y, eta), product(plus(y, spread(theta)), log))
                seen = choose(far, spread(-np.inf), seen)
                above = plus(quotient(y, spread(theta)), one)
                curvature = product(product(above, mu), product(r, r))
            value = plus(value, product(w, seen))
            store(table, (q + 2) * m + i, mu)
            store(table, (q + 3) * m + i, product(w, slope))
            store(table, (q + 4) * m + i, product(w, curvature))
        for a in range(q):
            g[a] += weighted(table, q + 3, begin, end, a)
        add_squares(table, q, q + 4, begin, end, state, 0, 0)
    return total(value)


@inline
def _several(
    table: Floats, q: int, C: int, first: int, last: int, state: Floats, more: int
) -> float:
    """`rows` of a logit with more than two levels."""
    m, d, p = table.shape[1], C * q, q + 2
    t, g = state[d], state[d + 1]
    zero, one = spread(0.0), spread(1.0)
    value = zero
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        for i in range(begin, end, LANES):
            y, w = load(table, q * m + i), load(table, (q + 1) * m + i)
            top, seen = zero, zero
            for k in range(C):
                eta = load(table, (more + k) * m + i) if more > 0 else zero
                for a in range(q):
                    eta = plus(eta, product(spread(t[k * q + a]), load(table, a * m + i)))
                store(table, (p + k) * m + i, eta)
                top = choose(minus(eta, top), eta, top)
                seen = choose(minus(y, spread(k + 0.5)), eta, seen)
            sums = zero
            for k in range(C + 1):  # the last is the baseline
                eta = load(table, (p + k) * m + i) if k < C else zero
                e = exponential(minus(eta, top))
                store(table, (p + k) * m + i, e)
                sums = plus(sums, e)
            value = plus(value, product(w, minus(minus(seen, top), logarithm(sums))))
            for k in range(C):
                mu = quotient(load(table, (p + k) * m + i), sums)
                below, above = minus(y, spread(k + 0.5)), minus(y, spread(k + 1.5))
                own = choose(below, choose(above, zero, one), zero)
                store(table, (p + k) * m + i, mu)
                store(table, (p + C + k) * m + i, product(w, minus(own, mu)))
        for k in range(C):
            for a in range(q):
                g[k * q + a] += weighted(table, p + C + k, begin, end, a)
            for h in range(k + 1):
                for i in range(begin, end, LANES):
                    mu, w = load(table, (p + k) * m + i), load(table, (q + 1) * m + i)
                    v = minus(one if h == k else zero, load(table, (p + h) * m + i))
                    store(table, (p + 2 * C) * m + i, product(product(w, mu), v))
                add_squares(table, q, p + 2 * C, begin, end, state, k * q, h * q)
    return total(value)


@jit
def rows(
    family: int, table: Floats, q: int, C: int, first: int, last: int, theta: float, state: Floats,
    more: int,
) -> float:  # fmt: skip
    """The log-likelihood of rows at t, without what does not depend on t; fills W and g."""
    d = C * q
    for a in range(d):
        state[d + 1, a] = 0.0
        for b in range(d):
            state[a, b] = 0.0
    value: float
    if C == 1:
        value = _single(family, table, q, first, last, theta, state, more)
    else:
        value = _several(table, q, C, first, last, state, more)
    for k in range(C):
        for h in range(k + 1):  # squares are symmetric
            for a in range(q):
                for b in range(a + 1):
                    v = state[k * q + a, h * q + b]
                    state[k * q + b, h * q + a] = state[h * q + a, k * q + b] = v
                    state[h * q + b, k * q + a] = v
    return value


@jit
def third(
    family: int, table: Floats, q: int, C: int, first: int, last: int, theta: float, V: Floats,
    s: Floats, z: Floats, more: int,
) -> float:  # fmt: skip
    """Fills s (d,) with the derivatives of tr(VW) in t, at what `rows` saw last.

    For negative binomial rows also z (d,) with those of the score in theta; returns that of tr(VW)
    in theta, at fixed V.
    """
    m, p = table.shape[1], q + 2
    zero = spread(0.0)
    for a in range(C * q):
        s[a] = 0.0
        z[a] = 0.0
    direct = zero
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        for i in range(begin, end, LANES):
            # With v_kh = x'V_kh x, and what is added to it, v_kh = v_hk.
            plain, double = zero, zero
            for k in range(C):
                own = load(table, (p + k) * m + i)
                vp = zero
                for h in range(C):
                    v = load(table, (more + C + k * C + h) * m + i) if more > 0 else zero
                    for a in range(q):
                        u = product(spread(V[k * q + a, h * q + a]), load(table, a * m + i))
                        for b in range(a):
                            both_ways = V[k * q + a, h * q + b] + V[k * q + b, h * q + a]
                            u = plus(u, product(spread(both_ways), load(table, b * m + i)))
                        v = plus(v, product(u, load(table, a * m + i)))
                    vp = plus(vp, product(v, load(table, (p + h) * m + i)))
                    if h == k:
                        plain = plus(plain, product(own, v))
                        store(table, (p + C + k) * m + i, v)
                double = plus(double, product(own, vp))
                store(table, (p + 2 * C + k) * m + i, vp)
            w = load(table, (q + 1) * m + i)
            if family in (LOGIT, ORDINAL):
                for k in range(C):
                    own = load(table, (p + k) * m + i)
                    v = minus(load(table, (p + C + k) * m + i), plain)
                    v = plus(
                        v, product(spread(2.0), minus(double, load(table, (p + 2 * C + k) * m + i)))
                    )
                    store(table, (p + C + k) * m + i, product(product(w, own), v))
                continue
            mu, y = load(table, p * m + i), load(table, q * m + i)
            v = product(product(w, load(table, (p + 1) * m + i)), mu)
            slope = v
            if family == NEGATIVE_BINOMIAL:
                by = spread(theta)
                r = quotient(spread(1.0), plus(by, mu))
                cube, away = product(r, product(r, r)), minus(by, mu)
                slope = product(product(v, product(plus(y, by), by)), product(away, cube))
                term = minus(product(product(spread(2.0), by), mu), product(y, away))
                direct = plus(direct, product(product(v, term), cube))
                step = product(product(w, minus(y, mu)), product(mu, product(r, r)))
                store(table, (p + 2) * m + i, step)
            store(table, (p + 1) * m + i, slope)
        for k in range(C):
            for a in range(q):
                s[k * q + a] += weighted(table, p + C + k, begin, end, a)
        for a in range(q if family == NEGATIVE_BINOMIAL else 0):
            z[a] += weighted(table, p + 2, begin, end, a)
    return total(direct)


@jit
def excess(table: Floats, q: int, first: int, last: int, theta: float) -> float:
    """The slope in theta of -sum (y + theta) log(1 + mu / theta), at the means of some rows."""
    slope = 0.0
    for i in range(first, last):
        y, w, x = table[q, i], table[q + 1, i], table[q + 2, i] / theta
        slope += w * ((y / theta + 1.0) * x / (1.0 + x) - math.log1p(x))
    return slope


@jit
def dispersion(
    table: Floats, q: int, first: int, last: int, theta: float
) -> tuple[float, float, float]:
    """What theta alone adds to a negative binomial log-likelihood, and derivatives in theta.

    First sum lgamma(y + theta) - lgamma(theta) - y log(theta), as a sum of logs where y is small,
    and its derivative; then `excess`.
    """
    value, slope = 0.0, 0.0
    at, _ = polygamma(theta)
    for i in range(first, last):
        y, w = table[q, i], table[q + 1, i]
        if y < 40.0:
            for h in range(1, int(y)):
                value += w * math.log1p(h / theta)
                slope -= w * h / (theta * (theta + h))
        else:
            above, _ = polygamma(y + theta)
            value += w * (math.lgamma(y + theta) - math.lgamma(theta) - y * math.log(theta))
            slope += w * (above - at - y / theta)
    return value, slope, excess(table, q, first, last, theta)
