"""What one more parent could bring to a mixed-effects model, for all columns at once. Compiled.

The family as it is is fitted; D = LL' is its covariance of random effects. For a column x:

  - With D as it is and a fixed slope of x, the deviance falls by n log(rss / (rss - u^2 / v)):
    u = sum x'V_j^-1 (y_j - Z_j beta), and v is what S, with x in it, leaves of x.
  - Then D may change, in the directions that L has and in that of x, U = [L, x]. Were the P_j
    equal, f would fall by |F| (tr M - log|M| - k - 1), M = (U'SU)^-1 (n / rss) sum U'e_j e_j'U:
    what a step of scoring gains, see `steps.scoring_step`.
  - The data sets' own least squares have residual squares rho, and smaller ones with x:
    n log(rho / (rho - sum (x'y)^2 / x'x)), x and y without what the parents explain. About |F| of
    it is chance. Slopes that differ so much that no small step tells of them are seen here.
  - A slope g of x, other than the best one with D as it is, may explain what differs between data
    sets, as one that all rows of a data set have in common does, and let D shrink: f would fall by
    -|F| log|(n / rss) sum L'(e_j - g d_j)(e_j - g d_j)'L|, d_j what a unit of g takes from e_j. The
    g that gains most is found by some steps of regression.

The first two are what the deviance falls by for small effects; where effects are large, the third
or the last is. They take q^2 multiplications for each data set and column, a fit takes some q^4.

Nothing here allocates. Columns are worked on in blocks: each row of the work space M has one number
for each column of a block, and the innermost loops run over these.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.kernels.deviance import profile
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    callable_from_python,
    cube,
    integers,
    jit,
    matrix,
    unit,
)
from poolbn.kernels.work import Space, carve, space

_BLOCK = 64  # columns: what they need fits into the cache
_STEPS = 5  # of regression
_SUMS = 9
_FALL, _U, _V, _GAMMA, _RSS, _SLOPE, _TRACE, _LOG, _SHRINK = range(_SUMS)  # the first rows of M


def room(F: int, q: int, N: int) -> tuple[int, int]:
    """The shape of the work space M, for families of q coefficients and N columns."""
    return _matrices(F, q, q)[-1] + q * q, min(N, _BLOCK)


@callable_from_python
def _places(F: int, q: int) -> tuple[int, int, int, int, int, int]:
    """The first rows in M of what is there for each column x.

    W^-1/2 g, g the pseudo rows of x; the sum of Z'V^-1 x; in each data set Z'V^-1 x, x'V^-1 x and
    x'V^-1 (y - Z beta); then U'e of one of them, and more.
    """
    g = _SUMS
    z = g + q
    cross = z + q
    xx = cross + F * q
    xe = xx + F
    return g, z, cross, xx, xe, xe + F


@callable_from_python
def _matrices(F: int, q: int, k: int) -> tuple[int, int, int]:
    """Those of three matrices for each x: sums of U'e e'U, L'(e d' + d e')L and L'd d'L."""
    E = _places(F, q)[-1] + 4 * (q + 1)
    return E, E + (k + 1) ** 2, E + (k + 1) ** 2 + k * k


# Compiled apart, and so not again wherever they are called.


@unit(numba.void, matrix, numba.int64, matrix, numba.int64, numba.int64)
def _take(M: Floats, out: int, X: Floats, row: int, first: int) -> None:
    """M[out] = X[row], from a column on."""
    for t in range(min(M.shape[1], X.shape[1] - first)):
        M[out, t] = X[row, first + t]


@unit(numba.void, matrix, numba.int64, numba.int64, numba.float64)
def _fill(M: Floats, first: int, last: int, value: float) -> None:
    """M[first : last] = value."""
    for row in range(first, last):
        for t in range(M.shape[1]):
            M[row, t] = value


@unit(numba.void, matrix, numba.int64, numba.float64, numba.int64)
def _put(M: Floats, out: int, factor: float, x: int) -> None:
    """M[out] = factor M[x]."""
    for t in range(M.shape[1]):
        M[out, t] = factor * M[x, t]


@unit(numba.void, matrix, numba.int64, numba.float64, numba.int64)
def _add(M: Floats, out: int, factor: float, x: int) -> None:
    """M[out] += factor M[x]."""
    for t in range(M.shape[1]):
        M[out, t] += factor * M[x, t]


@unit(numba.void, matrix, numba.int64, numba.float64, numba.int64, numba.int64)
def _add_product(M: Floats, out: int, factor: float, x: int, y: int) -> None:
    """M[out] += factor M[x] M[y]."""
    for t in range(M.shape[1]):
        M[out, t] += factor * (M[x, t] * M[y, t])


# Each of the following has its own place in the time to compile: inlined, they take twice as long.


@jit
def _normal(S: Floats, best: Floats, q: int, k: int, L: Floats) -> bool:
    """L (q, k) spans what the columns of `best` do, with L'SL = I; False where rounding forbids."""
    for b in range(k):
        for i in range(q):
            L[i, b] = best[i, b]
        for a in range(b + 1):
            v = 0.0
            for i in range(q):
                for h in range(q):
                    v += L[i, a] * S[max(i, h), min(i, h)] * L[h, b]
            if a == b and not v > 0.0:
                return False
            for i in range(q):
                L[i, b] = L[i, b] - v * L[i, a] if a < b else L[i, b] / math.sqrt(v)
    return True


@jit
def _left_over(M: Floats, xx: int, xy: int, squares: int, floor: float) -> None:
    """Squares that are only rounding become 0; the others' part of the child's is added up."""
    for t in range(M.shape[1]):
        v = M[xx, t]
        if v > max(RANK_TOLERANCE * M[squares, t], floor):
            M[_FALL, t] += M[xy, t] * M[xy, t] / v
        else:
            M[xx, t] = M[xy, t] = 0.0


@jit
def _in_data_set(
    s: Space,
    j: int,
    first: int,
    mean: Floats,
    S: Floats,
    squares: Floats,
    child: int,
    parents: Integers,
    B: Floats,
    combined: Floats,
    r: Floats,
    W: Floats,
    Rt: Floats,
    rt: Floats,
    R: Floats,
    M: Floats,
) -> None:
    """x'V^-1 x, x'V^-1 (y - Z beta) and x'V^-1 Z in data set j; what they sum to is added up."""
    F, q = s.F, s.q
    g, z, cross, xx, xe, own = _places(F, q)
    for i in range(q):  # pseudo rows of the parents as they are, not combined
        for b in range(i, q):
            v = 0.0
            for h in range(i, b + 1):
                v += combined[i, h, j] * B[h, b]
            R[i, b] = v
    _take(M, own, squares, j, first)
    _put(M, xx + j, 1.0, own)
    _take(M, xe + j, S, child, first)
    _take(M, g, mean, j, first)
    _put(M, g, math.sqrt(s.n[j]), g)
    for i in range(1, q):
        _fill(M, g + i, g + i + 1, 0.0)
        if R[i, i] > 0.0:
            _take(M, g + i, S, parents[i - 1], first)
            for h in range(1, i):
                _add(M, g + i, -R[h, i], g + h)
            _put(M, g + i, 1.0 / R[i, i], g + i)
            _add_product(M, xx + j, -1.0, g + i, g + i)
            _add(M, xe + j, -r[0, i, j], g + i)
    _left_over(M, xx + j, xe + j, own, CONSTANT_TOLERANCE * s.n[j])
    for i in range(q):  # W^-1/2 g
        for h in range(i):
            _add(M, g + i, -W[i, h, j], g + h)
        _put(M, g + i, W[i, i, j], g + i)
        _add_product(M, xx + j, 1.0, g + i, g + i)
        _add(M, xe + j, rt[0, i, j], g + i)
    for a in range(q):
        row = cross + j * q + a
        _fill(M, row, row + 1, 0.0)
        for i in range(q):
            _add(M, row, Rt[a, i, j], g + i)
        _add(M, z + a, 1.0, row)
    _add(M, _V, 1.0, xx + j)
    _add(M, _U, 1.0, xe + j)


@jit
def _solve(M: Floats, z: int, q: int, C: Floats, rss: float) -> None:
    """Multiply z by the inverse of S = CC', and find the fixed slope of x, with what rss it leaves.

    NaN where a column is a combination of the parents.
    """
    for i in range(q):
        for h in range(i):
            _add(M, z + i, -C[i, h], z + h)
        _put(M, z + i, 1.0 / C[i, i], z + i)
    for t in range(M.shape[1]):
        v = M[_V, t]
        for i in range(q):
            v -= M[z + i, t] * M[z + i, t]
        M[_GAMMA, t] = M[_U, t] / v if v > RANK_TOLERANCE * M[_V, t] else np.nan
        M[_RSS, t] = rss - M[_U, t] * M[_GAMMA, t]
    for i in range(q - 1, -1, -1):
        for h in range(i + 1, q):
            _add(M, z + i, -C[h, i], z + h)
        _put(M, z + i, 1.0 / C[i, i], z + i)


@jit
def _differences(s: Space, j: int, k: int, L: Floats, P: Floats, e: Floats, M: Floats) -> None:
    """Add U'e_j e_j'U to E, with the fixed slope of x in e_j.

    And, without it, L'(e_j d_j' + d_j e_j')L and L'd_j d_j'L to what follows.
    """
    F, q = s.F, s.q
    g, z, cross, xx, xe, own = _places(F, q)
    cross += j * q
    size = k + 1
    without = own + size  # L'e_j as it was, and L'd_j
    taken = without + k
    E, both, squares = _matrices(F, q, k)
    for b in range(k):
        base = 0.0
        _fill(M, taken + b, taken + b + 1, 0.0)
        for a in range(q):
            base += L[a, b] * e[0, a, j]
            v = 0.0
            for i in range(q):
                v += L[i, b] * P[i, a, j]
            _add(M, taken + b, L[a, b], cross + a)
            _add(M, taken + b, -v, z + a)
        _fill(M, without + b, without + b + 1, base)
        _put(M, own + b, 1.0, without + b)
        _add_product(M, own + b, -1.0, _GAMMA, taken + b)
        for d in range(b + 1):
            _add_product(M, both + b * k + d, 1.0, without + b, taken + d)
            _add_product(M, both + b * k + d, 1.0, without + d, taken + b)
            _add_product(M, squares + b * k + d, 1.0, taken + b, taken + d)
    _put(M, g, 1.0, xx + j)
    for a in range(q):
        _add_product(M, g, -1.0, cross + a, z + a)
    _put(M, own + k, 1.0, xe + j)
    _add_product(M, own + k, -1.0, _GAMMA, g)
    for b in range(size):
        for d in range(b + 1):
            _add_product(M, E + b * size + d, 1.0, own + b, own + d)


@jit
def _logdet(M: Floats, t: int, E: int, size: int) -> float:
    """Of a matrix in rows from E on, which becomes its Cholesky factor; NaN if not positive."""
    log = 0.0
    for i in range(size):
        for h in range(i + 1):
            v = M[E + i * size + h, t]
            for d in range(h):
                v -= M[E + i * size + d, t] * M[E + h * size + d, t]
            if h < i:
                M[E + i * size + h, t] = v / M[E + h * size + h, t]
            else:
                M[E + i * size + i, t] = math.sqrt(v) if v > 0.0 else np.nan
                log += math.log(v) if v > 0.0 else np.nan
    return log


@jit
def _trace_and_log(M: Floats, E: int, last: int, k: int) -> None:
    """Those of (U'SU)^-1 E, but for |U'SU|.

    E, in rows from E on, is symmetric. U'SU is I but for its last row, which starts as `last` says,
    and M[_SLOPE] is what that leaves of its last entry.
    """
    size = k + 1
    for t in range(M.shape[1]):
        trace = 0.0
        v = M[E + k * size + k, t]
        for b in range(k):
            x = M[last + b, t]
            trace += M[E + b * size + b, t]
            v += x * (x * M[E + b * size + b, t] - 2.0 * M[E + k * size + b, t])
            for d in range(b):
                v += 2.0 * x * M[last + d, t] * M[E + b * size + d, t]
        M[_TRACE, t] = trace + v / M[_SLOPE, t]
        M[_LOG, t] = _logdet(M, t, E, size)


@jit
def _regression(M: Floats, t: int, E: int, size: int, both: int, squares: int) -> float:
    """The least of tr(M^-1 (g^2 squares - g both)), of symmetric matrices, is at this g.

    The Cholesky factor of M is in the rows from E on, and becomes its inverse.
    """
    along, length = 0.0, 0.0
    for i in range(size):
        pivot = 1.0 / M[E + i * size + i, t]
        for h in range(i):
            v = 0.0
            for d in range(h, i):
                v -= M[E + i * size + d, t] * M[E + d * size + h, t]
            M[E + i * size + h, t] = pivot * v
        M[E + i * size + i, t] = pivot
        for b in range(i + 1):
            for d in range(b + 1):
                v = (1.0 if b == d else 2.0) * M[E + i * size + b, t] * M[E + i * size + d, t]
                along += v * M[both + b * size + d, t]
                length += 2.0 * v * M[squares + b * size + d, t]
    return along / length if length > 0.0 else 0.0


@jit
def _shrink(M: Floats, F: int, q: int, k: int, ratio: float) -> None:
    """How far log|(n / rss) sum L'(e - g d)(e - g d)'L| falls by a slope g."""
    E, both, squares = _matrices(F, q, k)
    for t in range(M.shape[1]):
        most, g = 0.0, 0.0
        for step in range(_STEPS if k > 0 else 0):
            for b in range(k):
                for d in range(b + 1):
                    v = g * (g * M[squares + b * k + d, t] - M[both + b * k + d, t])
                    M[E + b * k + d, t] = (1.0 if b == d else 0.0) + ratio * v
            fall = -_logdet(M, t, E, k)
            most = fall if not fall <= most else most  # NaN stays
            if step < _STEPS - 1:
                g = _regression(M, t, E, k, both, squares)
        M[_SHRINK, t] = most


@unit(
    numba.void, space, matrix, cube, matrix, numba.int64, integers, numba.int64, matrix, matrix,
    matrix, matrix,
)  # fmt: skip
def screen(
    s: Space,
    mean: Floats,
    scatter: Floats,
    squares: Floats,
    child: int,
    parents: Integers,
    k: int,
    R: Floats,
    L: Floats,
    M: Floats,
    values: Floats,
) -> None:
    """What each column could bring as one more parent, by the formulas above.

    Args:
        s: the work space of the fit, whose random effects are all coefficients'.
        mean: (F, N).
        scatter: (F, N, N).
        squares: its diagonals, (F, N).
        child: the child.
        parents: (q - 1,), as in the fit.
        k: the rank of D.
        R: work space, (q, q) or more.
        L: likewise, (q, q) or more.
        M: likewise, see `room`.
        values: gets the fall of the deviance by the first two, or the last if that is more; and by
            the third, (2, N). NaN where there is no telling.
    """
    N = mean.shape[1]
    F, q = s.F, s.q
    w = carve(s)
    B, combined, r, W, Rt, rt, C, P, e = w.B, w.R, w.r, w.W, w.Rt, w.rt, w.C, w.P, w.e
    _, z, _, _, _, own = _places(F, q)
    last = own + 3 * (q + 1)
    E, _, end = _matrices(F, q, k)
    end += k * k
    size = k + 1
    rho, n = 0.0, 0.0
    for j in range(F):
        rho += w.rho[0, 0, j]
        n += s.n[j]
    logs, rss = profile(s, rho, w.best, k)
    if not logs < np.inf or size > F - 1 or not _normal(w.S, w.best, q, k, L):
        for x in range(N):
            values[0, x] = values[1, x] = np.nan
        return
    for first in range(0, N, M.shape[1]):
        _fill(M, _FALL, _V + 1, 0.0)
        _fill(M, z, z + q, 0.0)
        for j in range(F):
            _in_data_set(
                s, j, first, mean, scatter[j], squares, child, parents, B, combined, r, W, Rt, rt,
                R, M,
            )  # fmt: skip
        _put(M, _SLOPE, 1.0, _V)
        for b in range(k):
            _fill(M, last + b, last + b + 1, 0.0)
            for a in range(q):
                _add(M, last + b, L[a, b], z + a)
            _add_product(M, _SLOPE, -1.0, last + b, last + b)
        _solve(M, z, q, C, rss)
        _fill(M, E, end, 0.0)
        for j in range(F):
            _differences(s, j, k, L, P, e, M)
        _trace_and_log(M, E, last, k)
        _shrink(M, F, q, k, n / rss)
        for t in range(min(M.shape[1], N - first)):
            slope, left, unexplained = M[_SLOPE, t], M[_RSS, t], rho - M[_FALL, t]
            v = np.nan
            if slope > 0.0 and left > 0.0:
                ratio = n / left
                v = ratio * M[_TRACE, t] - M[_LOG, t] - size * (1.0 + math.log(ratio))
                v = F * (v + math.log(slope)) + n * math.log(rss / left)
            shrink = F * M[_SHRINK, t]
            values[0, first + t] = shrink if shrink > v else v
            values[1, first + t] = n * math.log(rho / unexplained) if unexplained > 0.0 else np.inf
