"""Units inside data sets: statistics that are whitened for one intercept a unit. Compiled.

Rows of one unit share an intercept whose variance is t times the residual variance. For a unit of m
rows with sums s = Z'1, Z = [1, columns], the covariance of its rows over sigma^2 is I + t 11', with
the inverse I - t/(1 + m t) 11'. So the products of a data set are those of its rows, less
t/(1 + m t) times B_m = sum of ss' over its units of m rows, for each size m; and the logarithm of
the determinant is the sum of log(1 + m t) over units. All else is the model without units on these
products, with two cares: the rows in the likelihood stay n, while the intercept weighs
w = sum of m / (1 + m t). With sums about the data set's means, v = -sum of m t / (1 + m t) s, the
mean moves by v / w, and the scatter around it is that of the products less vv' / w.

Where levels of data sets are free (`inside`), their mean takes a row of each: the determinant of
what is left is that of the rows times w / n.

The best t is found on the scale x = log(1 + m t), m the size of a typical unit, which is smooth at
t = 0, by secants on the slope of the deviance. Where a family is fitted at t, all its parameters
are the best ones, so that to first order the deviance changes with t as if they stayed: its slope
needs no fit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cholesky,
    cube,
    entry,
    gram_rows,
    integers,
    jit,
    matrix,
    raise_squares,
    solve,
    vector,
)

H = 1e-5  # a step in x that a slope is taken over
_MOST_X = 16.0  # where units differ more, rows of one are the same
_STEPS = 40
_NOTHING = 1e-9  # of squares


class Units(NamedTuple):
    """Statistics of all columns, and room for those of a family: its parents, and the child last.

    There are C kinds of units: those of so many rows in a data set.
    """

    mean: Floats  # (F, N)
    scatter: Floats  # (F, N, N)
    data_set: Integers  # of units of a kind, (C,)
    size: Floats  # rows of each unit, (C,)
    units: Floats  # how many there are, (C,)
    sums: Floats  # of sums of units' rows, about the means of data sets, (C, N)
    squares: Floats  # of products of these, (C, N, N)
    weight: Floats  # gets what intercepts weigh, (F,)
    own_mean: Floats  # gets means of the family's columns, (F, q + 1 or more)
    own_scatter: Floats  # and their scatter, (F, q or more, q or more)
    inside: bool  # whether levels of data sets are free


# How entry points take it: numba takes ten microseconds to look at a tuple.
arguments: Any = (
    matrix, cube, integers, vector, vector, matrix, cube, vector, matrix, cube, numba.boolean,
)  # fmt: skip


@jit
def typical(u: Units) -> float:
    """The mean size of the unit of a row."""
    rows, squares = 0.0, 0.0
    for c in range(u.size.shape[0]):
        rows += u.units[c] * u.size[c]
        squares += u.units[c] * u.size[c] * u.size[c]
    return float(squares / rows)


@jit
def whiten_units(u: Units, t: float, child: int, parents: Integers, only: int) -> float:
    """Fill the family's statistics at t; returns the logarithm of the determinant.

    Of one data set only, or where that is less than 0 of all.
    """
    p = parents.shape[0]
    q = p + 1
    log_determinant = 0.0
    for j in range(u.weight.shape[0]):
        u.weight[j] = 0.0
        u.own_mean[j, q] = 0.0  # gets rows
        for a in range(q):
            ca = parents[a] if a < p else child
            u.own_mean[j, a] = 0.0
            for b in range(q):
                cb = parents[b] if b < p else child
                u.own_scatter[j, a, b] = u.scatter[j, ca, cb]
    for c in range(u.size.shape[0]):
        j, m, k = u.data_set[c], u.size[c], u.units[c]
        if only >= 0 and j != only:
            continue
        over = 1.0 + m * t
        part = t / over
        u.weight[j] += k * m / over
        log_determinant += k * math.log(over)
        u.own_mean[j, q] += k * m
        if part == 0.0:
            continue
        for a in range(q):
            ca = parents[a] if a < p else child
            u.own_mean[j, a] -= part * m * u.sums[c, ca]
            for b in range(a + 1):
                cb = parents[b] if b < p else child
                u.own_scatter[j, a, b] -= part * u.squares[c, ca, cb]
    for j in range(u.weight.shape[0]):
        if only >= 0 and j != only:
            continue
        w = u.weight[j]
        for a in range(q):
            for b in range(a + 1):
                v = u.own_scatter[j, a, b] - u.own_mean[j, a] * u.own_mean[j, b] / w
                u.own_scatter[j, a, b] = u.own_scatter[j, b, a] = v
        if u.inside:
            log_determinant += math.log(w / u.own_mean[j, q])
        for a in range(q):
            ca = parents[a] if a < p else child
            u.own_mean[j, a] = 0.0 if u.inside else u.mean[j, ca] + u.own_mean[j, a] / w
    return log_determinant


@jit
def first_t(
    u: Units, n: Floats, child: int, parents: Integers, S: Floats, C: Floats, b: Floats
) -> float:
    """An estimate of t from what squares of units' means have over those of rows; -1 where none is.

    Of the residuals of one regression inside data sets. S and C (q, q) and b (q,) are work space.
    """
    p, F = parents.shape[0], n.shape[0]
    for a in range(p):
        b[a] = 0.0
        for d in range(p):
            S[a, d] = 0.0
        for j in range(F):
            b[a] += u.scatter[j, parents[a], child]
            for d in range(p):
                S[a, d] += u.scatter[j, parents[a], parents[d]]
    known = p > 0 and cholesky(S, C, p, 0.0)
    if known:
        solve(C, p, b)
    else:
        for a in range(p):
            b[a] = 0.0
    whole, between, units, rows, uneven = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(F):
        whole += _square(u.scatter[j], child, parents, b)
    own = 0.0
    last = -1
    own_rows = 0.0
    for c in range(u.size.shape[0]):
        m, k = u.size[c], u.units[c]
        if u.data_set[c] != last:
            if last >= 0:
                uneven += own / own_rows
            own, own_rows, last = 0.0, 0.0, u.data_set[c]
        between += _square(u.squares[c], child, parents, b) / m
        units += k
        rows += k * m
        own += k * m * m
        own_rows += k * m
    uneven += own / own_rows
    between_df, within_df = units - F, rows - units - p
    if rows - units < 0.5:
        return -1.0  # each unit has one row
    if within_df < 0.5 or between_df < 0.5:
        return 0.1
    within = max(whole - between, 0.0) / within_df
    if within <= _NOTHING * whole / rows:
        most: float = math.expm1(_MOST_X) / typical(u)
        return most
    excess = between / between_df / within - 1.0
    found: float = max(excess * between_df / max(rows - uneven, 1.0), 0.0)
    return found


@jit
def _square(S: Floats, child: int, parents: Integers, b: Floats) -> float:
    """Of y - x'b, from products of columns."""
    v = S[child, child]
    for a in range(parents.shape[0]):
        v -= 2.0 * b[a] * S[parents[a], child]
        for d in range(parents.shape[0]):
            v += b[a] * b[d] * S[parents[a], parents[d]]
    return float(v)


@jit
def curvature(u: Units, t: float, only: int) -> float:
    """Of the deviance in x, as expected, where the residual variance moves with it."""
    typical_size = typical(u)
    squares, total, rows = 0.0, 0.0, 0.0
    for c in range(u.size.shape[0]):
        if only >= 0 and u.data_set[c] != only:
            continue
        m, k = u.size[c], u.units[c]
        slope = m * (1.0 + typical_size * t) / (typical_size * (1.0 + m * t))
        squares += k * slope * slope
        total += k * slope
        rows += k * m
    return max(squares - total * total / rows, 1e-3)


# The search for x: where it is, the slope there, and between which it changes its sign.
_X, _SLOPE, _LOW, _HIGH, _COUNT = range(5)


@jit
def begin(z: Floats, t: float, size: float) -> None:
    """Start at t, units having about so many rows."""
    z[_X] = min(math.log1p(size * max(t, 0.0)), _MOST_X)
    z[_LOW], z[_HIGH] = 0.0, _MOST_X
    z[_SLOPE] = np.inf
    z[_COUNT] = 0.0


@jit
def advance(z: Floats, x_old: float, slope: float, expected: float, tolerance: float) -> bool:
    """Whether z[0] is the best x; else it becomes the next one to try.

    `slope` is that at z[0], and z[1] that at x_old.
    """
    x, old = z[_X], z[_SLOPE]
    z[_COUNT] += 1.0
    if (x <= 0.0 and slope >= 0.0) or (x >= _MOST_X and slope <= 0.0) or z[_COUNT] > _STEPS:
        return True
    curve = expected
    if old < np.inf and x != x_old:
        secant = (slope - old) / (x - x_old)
        if 0.05 * expected < secant < 20.0 * expected:
            curve = secant
    if slope * slope < 2.0 * curve * tolerance:
        return True
    if slope > 0.0:
        z[_HIGH] = x
    else:
        z[_LOW] = x
    new = x - slope / curve
    if new <= z[_LOW]:
        new = 0.0 if z[_LOW] <= 0.0 else 0.5 * (z[_LOW] + x)
    if new >= z[_HIGH]:
        new = z[_HIGH] if z[_HIGH] >= _MOST_X else 0.5 * (z[_HIGH] + x)
    z[_SLOPE] = slope
    if abs(new - x) < 1e-12:
        return True
    z[_X] = new
    return False


@jit
def _pool(u: Units, n: Floats, q: int, S: Floats) -> float:
    """Sums of products about the common mean of all data sets; returns their rows."""
    rows, weight = 0.0, 0.0
    for j in range(n.shape[0]):
        rows += n[j]
        weight += u.weight[j]
    for a in range(q):
        mean = 0.0
        for j in range(n.shape[0]):
            mean += u.weight[j] / weight * u.own_mean[j, a]
        for j in range(n.shape[0]):
            u.own_mean[j, a] -= mean
    for a in range(q):
        for b in range(a + 1):
            v = 0.0
            for j in range(n.shape[0]):
                v += u.own_scatter[j, a, b]
                v += u.weight[j] * u.own_mean[j, a] * u.own_mean[j, b]
            S[a, b] = S[b, a] = v
    return rows


@jit
def _least_squares(
    u: Units, n: Floats, t: float, child: int, parents: Integers, index: Integers, only: int,
    least: float, S: Floats, U: Floats, v: Floats, one: Floats,
) -> tuple[float, float, bool]:  # fmt: skip
    """The deviance at t but for constants, residual squares, and whether there is one."""
    p = parents.shape[0]
    log_determinant = whiten_units(u, t, child, parents, only)
    if only < 0:
        rows = _pool(u, n, p + 1, S)
        rss, _, dependent = gram_rows(S, p, index[:p], rows - 1.0, U, v)
        square = S[p, p]
    else:
        rows = n[only]
        own = u.own_scatter[only]
        rss, _, dependent = gram_rows(own, p, index[:p], rows - 1.0, U, v)
        square = own[p, p]
        one[0] = rss
        raise_squares(one[:1], n[only : only + 1], p + 1, least)
        rss = one[0]
    good = dependent < 0 and rows > p + 1
    good = good and rss > max(RANK_TOLERANCE * square, CONSTANT_TOLERANCE * rows)
    if not good:
        return np.inf, rss, False
    return rows * math.log(rss / rows) + log_determinant, rss, True


@jit
def _repeats(u: Units, only: int) -> bool:
    """Whether a data set has a unit of several rows."""
    found = False
    for c in range(u.size.shape[0]):
        found = found or (u.data_set[c] == only and u.size[c] > 1.0)
    return found


@entry(
    *arguments, vector, integers, integers, integers, numba.boolean, vector, matrix, matrix, matrix,
    vector, vector, vector, integers, matrix, matrix, matrix,
)  # fmt: skip
def least_squares(
    mean: Floats,
    scatter: Floats,
    data_set: Integers,
    size: Floats,
    count: Floats,
    sums: Floats,
    squares: Floats,
    weight: Floats,
    own_mean: Floats,
    own_scatter: Floats,
    inside: bool,
    n: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    separate: bool,
    least: Floats,
    S: Floats,
    C: Floats,
    U: Floats,
    v: Floats,
    z: Floats,
    one: Floats,
    index: Integers,
    ratio: Floats,
    rss: Floats,
    log_determinant: Floats,
) -> None:
    """The best t of each family in all data sets together (J = 1), or in each on its own (J = F).

    Args:
        mean: see `Units`, as the next ten.
        scatter: likewise.
        data_set: likewise.
        size: likewise.
        count: likewise.
        sums: likewise.
        squares: likewise.
        weight: likewise.
        own_mean: likewise.
        own_scatter: likewise.
        inside: likewise.
        n: rows, (F,).
        children: of families, (M,).
        offsets: where the parents of each begin, (M + 1,).
        parents: of all families.
        separate: whether each data set is on its own.
        least: the least residual variances of columns, (N,).
        S: work space, (q, q), as the next two.
        C: likewise.
        U: likewise.
        v: likewise, (q,).
        z: likewise, (5,).
        one: likewise, (1,).
        index: 0, 1, ..., (q,).
        ratio: gets t, (M, J).
        rss: gets residual squares of whitened rows, inf where there is no likelihood, (M, J).
        log_determinant: gets that of the covariance of rows, (M, J).
    """
    u = Units(
        mean, scatter, data_set, size, count, sums, squares, weight, own_mean, own_scatter, inside
    )
    typical_size = typical(u)
    for m in range(children.shape[0]):
        pa, child = parents[offsets[m] : offsets[m + 1]], children[m]
        start = first_t(u, n, child, pa, S, C, v)
        for column in range(ratio.shape[1]):
            only = column if separate else -1
            begin(z, start, typical_size)
            x_old = z[_X]
            while True:
                x = z[_X]
                t = math.expm1(x) / typical_size
                f, _, good = _least_squares(
                    u, n, t, child, pa, index, only, least[child], S, U, v, one
                )
                if not good or start < 0.0 or (only >= 0 and not _repeats(u, only)):
                    t = 0.0 if good else t
                    break
                after = math.expm1(x + H) / typical_size
                g, _, _ = _least_squares(
                    u, n, after, child, pa, index, only, least[child], S, U, v, one
                )
                slope = (g - f) / H
                if advance(z, x_old, slope, curvature(u, t, only), 1e-9):
                    break
                x_old = x
            f, squares_left, good = _least_squares(
                u, n, t, child, pa, index, only, least[child], S, U, v, one
            )
            rows = 0.0
            for j in range(n.shape[0]):
                rows += n[j] if only < 0 or j == only else 0.0
            ratio[m, column] = t
            rss[m, column] = squares_left if good else np.inf
            log_determinant[m, column] = f - rows * math.log(squares_left / rows) if good else 0.0
