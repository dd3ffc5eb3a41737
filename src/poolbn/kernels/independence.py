"""Are x and y independent given S? Partial correlations of data sets, and their tests. Compiled.

Correlations R are (N, N, F): numbers of data sets stand side by side. A column that is constant in
a data set has 0 on the diagonal there, and is then nothing to condition on. The rows of a Cholesky
factor of R[S, S], and what is left of x and y, are kept for each number of conditioning columns:
when S changes in its last column, only that is computed again.

The space W of `Asked` for up to `most` conditioning columns is (most + BLOCKS, max(most + 1, ROWS),
F): the factor, then a block for each of the names below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from poolbn.constants import RANK_TOLERANCE
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cube, entry, integers, jit, matrix, vector
from poolbn.kernels.tails import log_beta_tail, log_combined, log_two_sided

T, Z, MI, F_TEST, COMBINED = range(5)
TESTS = ("t", "z", "mi-g", "f", "combined")
# What a test gives: its statistic, degrees of freedom, the log of the p-value, the correlation.
STATISTIC, DF1, DF2, LOG_P, CORRELATION = range(5)
RESULTS = 5
SPACE = RESULTS + 8  # with work space for interpolation
# Blocks of a space: inverse roots of the pivots, x and y in terms of S; squares of x and of y and
# their product, as far as S leaves them; ranks of S; and what a test makes of them.
INVERSE, OF_X, OF_Y, LEFT_X, LEFT_Y, CROSS, RANK, OWN = range(8)
BLOCKS = 8
# Rows of the last: correlations, their degrees of freedom (0 for data sets that do not count),
# normal scores, estimates.
R_OWN, DF_OWN, SCORE, ESTIMATE = range(4)
ROWS = 4
# The least degrees of freedom of a data set that counts, for each test.
_LEAST = (1.0, 2.0, 1.0, 1.0, 2.0)
_GRID = 8  # variances between data sets, from small to the largest possible
_SECANTS = 30

Bytes = NDArray[np.uint8]


class Asked(NamedTuple):
    """What is tested and how, with work space."""

    R: Floats  # correlations, (N, N, F)
    n: Floats  # rows, (F,)
    squares: Floats  # sums of squares within data sets, (N, F)
    table: Floats  # of the combined test's distribution
    test: int  # as `TESTS` numbers them
    most: int  # columns to condition on, at most
    W: Floats
    one: Floats  # what the last test found, (SPACE,)


@jit
def begin(a: Asked, x: int, y: int) -> None:
    """Nothing is conditioned on."""
    R, W, most = a.R, a.W, a.most
    for j in range(R.shape[2]):
        W[most + LEFT_X, 0, j] = R[x, x, j]
        W[most + LEFT_Y, 0, j] = R[y, y, j]
        W[most + CROSS, 0, j] = R[x, y, j]
        W[most + RANK, 0, j] = 0.0


@jit
def condition(a: Asked, x: int, y: int, S: Integers, i: int) -> None:
    """Take S[i] out too, after S[:i]."""
    R, W, most = a.R, a.W, a.most
    s, J = S[i], R.shape[2]
    for b in range(i):
        for j in range(J):
            W[i, b, j] = R[s, S[b], j]
        for m in range(b):
            for j in range(J):
                W[i, b, j] -= W[i, m, j] * W[b, m, j]
        for j in range(J):
            W[i, b, j] *= W[most + INVERSE, b, j]
    for j in range(J):
        W[most + OWN, 0, j] = R[s, s, j]
        W[most + OF_X, i, j] = R[x, s, j]
        W[most + OF_Y, i, j] = R[y, s, j]
    for m in range(i):
        for j in range(J):
            c = W[i, m, j]
            W[most + OWN, 0, j] -= c * c
            W[most + OF_X, i, j] -= c * W[most + OF_X, m, j]
            W[most + OF_Y, i, j] -= c * W[most + OF_Y, m, j]
    for j in range(J):
        pivot = W[most + OWN, 0, j]
        new = pivot > RANK_TOLERANCE  # else a combination of the others
        inverse = 1.0 / math.sqrt(pivot) if new else 0.0
        u, v = W[most + OF_X, i, j] * inverse, W[most + OF_Y, i, j] * inverse
        W[most + INVERSE, i, j] = inverse
        W[most + OF_X, i, j], W[most + OF_Y, i, j] = u, v
        W[most + LEFT_X, i + 1, j] = W[most + LEFT_X, i, j] - u * u
        W[most + LEFT_Y, i + 1, j] = W[most + LEFT_Y, i, j] - v * v
        W[most + CROSS, i + 1, j] = W[most + CROSS, i, j] - u * v
        W[most + RANK, i + 1, j] = W[most + RANK, i, j] + (1.0 if new else 0.0)


@jit
def evaluate(a: Asked, x: int, y: int, k: int) -> float:
    """Fill `one` with the test given the k columns that were taken out; its log p-value too.

    NaN where no data set has rows enough.
    """
    n, squares, test, most, W, out = a.n, a.squares, a.test, a.most, a.W, a.one
    least = _LEAST[test]
    own = W[most + OWN]
    used, freedom, correlation = 0.0, 0.0, 0.0
    for j in range(n.shape[0]):
        left_x, left_y = W[most + LEFT_X, k, j], W[most + LEFT_Y, k, j]
        df = n[j] - W[most + RANK, k, j] - 2.0
        fine = df >= least and left_x > RANK_TOLERANCE and left_y > RANK_TOLERANCE
        r = W[most + CROSS, k, j] / math.sqrt(left_x * left_y) if fine else 0.0
        r = min(max(r, -1.0), 1.0)
        df = df if fine else 0.0
        own[R_OWN, j], own[DF_OWN, j] = r, df
        used += 1.0 if fine else 0.0
        freedom += df
        correlation += df * r
    for i in range(out.shape[0]):
        out[i] = math.nan
    if used == 0.0:
        return math.nan
    out[CORRELATION] = correlation / freedom
    if test == COMBINED:
        _combine(own, used, freedom, a.table, out)
    elif test == F_TEST:
        ratio = _unexplained(own, W[most + LEFT_X, k], W[most + LEFT_Y, k], squares[x], squares[y])
        out[DF1], out[DF2] = used, freedom
        out[STATISTIC] = (1.0 - ratio) / ratio * freedom / used if ratio > 0.0 else math.inf
        out[LOG_P] = log_beta_tail(ratio, 1.0 - ratio, freedom / 2.0, used / 2.0)
    else:
        _correlate(test, n[0], own[R_OWN, 0], freedom, out)
    log_p: float = out[LOG_P]
    return log_p


@jit
def _correlate(test: int, n: float, r: float, df: float, out: Floats) -> None:
    """The tests of one partial correlation: exact, Fisher's z, mutual information."""
    rest = (1.0 - r) * (1.0 + r)
    if test == T:
        out[DF1] = df
        out[STATISTIC] = r * math.sqrt(df / rest) if rest > 0.0 else r * math.inf
        out[LOG_P] = log_beta_tail(rest, r * r, df / 2.0, 0.5)
    elif test == Z:
        out[DF1] = df - 1.0
        out[STATISTIC] = math.atanh(r) * math.sqrt(df - 1.0)
        out[LOG_P] = log_two_sided(abs(out[STATISTIC]))
    else:
        out[DF1] = 1.0
        out[STATISTIC] = -n * math.log(rest)
        out[LOG_P] = log_two_sided(math.sqrt(max(out[STATISTIC], 0.0)))


@jit
def _unexplained(
    own: Floats, left_x: Floats, left_y: Floats, squares_x: Floats, squares_y: Floats
) -> float:
    """The share of squares that slopes of each data set leave.

    The F tests of y on x and of x on y weigh data sets by the residual squares of y, or of x. With
    the mean of their logarithms the order of the two does not matter.
    """
    before, after = 0.0, 0.0
    for j in range(left_x.shape[0]):
        if own[DF_OWN, j] > 0.0:
            r = own[R_OWN, j]
            weight = math.sqrt(left_x[j] * squares_x[j] * left_y[j] * squares_y[j])
            before += weight
            after += weight * (1.0 - r) * (1.0 + r)
    return after / before


@jit
def _combine(own: Floats, used: float, freedom: float, table: Floats, out: Floats) -> None:
    """The combined test: normal scores z of the data sets' correlations, and how they vary.

    With d degrees of freedom, z = sign(r) (8 d + 1) / (8 d + 3) sqrt(-d log(1 - r^2)) is standard
    normal to three digits (Wallace, 1959), also far out, where Fisher's transformation is not: its
    test has a size of 1.4% at the 1% level for d = 4. The effect z / sqrt(d) has mean mu, variance
    tau between data sets and 1 / d within; the statistic is the likelihood ratio against mu = 0,
    tau = 0.
    """
    J = own.shape[1]
    squares, fourth, first, alike = 0.0, 0.0, 0.0, True
    for j in range(J):
        d, r = own[DF_OWN, j], own[R_OWN, j]
        if d == 0.0:
            continue
        rest = max((1.0 - r) * (1.0 + r), 1e-300)
        # A small correlation loses digits in the difference from 1.
        log_rest = math.log(rest) if abs(r) > 0.1 else math.log1p(-r * r)
        z = math.copysign((8.0 * d + 1.0) / (8.0 * d + 3.0) * math.sqrt(-d * log_rest), r)
        own[SCORE, j], own[ESTIMATE, j] = z, z / math.sqrt(d)
        squares += z * z
        fourth += d * d
        first = d if first == 0.0 else first
        alike = alike and d == first
    if alike:  # then it has a closed form
        mean = 0.0
        for j in range(J):
            mean += own[SCORE, j] / used if own[DF_OWN, j] > 0.0 else 0.0
        around = max(squares - used * mean * mean, 0.0)
        value = used * mean * mean
        if around > used:
            value += around - used - used * math.log(around / used)
    else:
        value = squares - _least_deviance(own)
    # As many data sets of one size would tell as much of tau.
    out[DF1] = freedom * freedom / fourth
    out[STATISTIC] = max(value, 0.0)
    out[LOG_P] = log_combined(out[STATISTIC], out[DF1], table, out[RESULTS:])


@jit
def _deviance(own: Floats, tau: float) -> tuple[float, float]:
    """Minus twice the log-likelihood at the best mu, and its slope in tau."""
    J = own.shape[1]
    weight, mean = 0.0, 0.0
    for j in range(J):
        d = own[DF_OWN, j]
        w = d / (1.0 + d * tau)
        weight += w
        mean += w * own[ESTIMATE, j] if d > 0.0 else 0.0
    mean /= weight
    value, slope, product = 0.0, 0.0, 1.0
    for j in range(J):
        d = own[DF_OWN, j]
        if d > 0.0:
            w = d / (1.0 + d * tau)
            away = w * (own[ESTIMATE, j] - mean) ** 2
            value += away
            slope += w * (1.0 - away)
            product *= 1.0 + d * tau
            if product > 1e200:
                value += math.log(product)
                product = 1.0
    return value + math.log(product), slope


@jit
def _least_deviance(own: Floats) -> float:
    """The least deviance over tau >= 0.

    It may have several minima: where its slope turns from down to up on a grid, it is followed.
    """
    low, high, largest = math.inf, -math.inf, 0.0
    for j in range(own.shape[1]):
        if own[DF_OWN, j] > 0.0:
            low, high = min(low, own[ESTIMATE, j]), max(high, own[ESTIMATE, j])
            largest = max(largest, own[DF_OWN, j])
    least: float
    least, slope = _deviance(own, 0.0)
    top = (high - low) ** 2  # from there on the slope is positive
    tau = min(0.02 / largest, top)
    ratio = (top / tau) ** (1.0 / (_GRID - 1)) if tau > 0.0 else 1.0
    before = 0.0
    for _ in range(_GRID):
        _, new = _deviance(own, tau)
        if slope < 0.0 <= new:
            least = min(least, _lowest(own, before, slope, tau, new))
        before, slope = tau, new
        tau *= ratio
    return least


@jit
def _lowest(own: Floats, a: float, slope_a: float, b: float, slope_b: float) -> float:
    """The deviance where its slope, which is negative at a and positive at b, is 0 (Illinois)."""
    least = math.inf
    for _ in range(_SECANTS):
        tau = (a * slope_b - b * slope_a) / (slope_b - slope_a)
        value, slope = _deviance(own, tau)
        # The deviance is flat there: half the digits of tau are all of its own.
        done = abs(value - least) <= 1e-13 * (1.0 + abs(value))
        least = min(least, value)
        if done:
            break
        if slope < 0.0:
            a, slope_a, slope_b = tau, slope, slope_b / 2.0
        else:
            b, slope_b, slope_a = tau, slope, slope_a / 2.0
    return least


@entry(
    cube, vector, matrix, matrix, numba.int64, integers, integers, integers, integers, numba.int64,
    cube, vector, matrix, numba.uint8[:, ::1],
)  # fmt: skip
def batch(
    R: Floats,
    n: Floats,
    squares: Floats,
    table: Floats,
    test: int,
    xs: Integers,
    ys: Integers,
    offsets: Integers,
    given: Integers,
    most: int,
    W: Floats,
    one: Floats,
    out: Floats,
    used: Bytes,
) -> None:
    """The tests of M pairs, x and y given given[offsets[m] : offsets[m + 1]].

    Fills out, (M, RESULTS), and which data sets count, (M, F).
    """
    a = Asked(R, n, squares, table, test, most, W, one)
    for m in range(xs.shape[0]):
        S = given[offsets[m] : offsets[m + 1]]
        begin(a, xs[m], ys[m])
        for i in range(S.shape[0]):
            condition(a, xs[m], ys[m], S, i)
        evaluate(a, xs[m], ys[m], S.shape[0])
        for i in range(RESULTS):
            out[m, i] = one[i]
        for j in range(n.shape[0]):
            used[m, j] = W[most + OWN, DF_OWN, j] > 0.0
