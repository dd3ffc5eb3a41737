"""What every single change of a child's parents does to its likelihood. Compiled.

From the Cholesky rows of the parents that are there, the residual squares with one more column
follow for all columns at once: with U'U = S[pa, pa] and U'z_v = S[pa, v],

    rss(pa + v) = rss(pa) - (S[v, c] - z_v'u)^2 / (S[v, v] - z_v'z_v),

q^2 multiplications for each column where a regression takes q^3. Where such a difference is small,
rounding would make the score of a family depend on the way to it, and a search could go in circles:
there a regression is made, as for parents that are removed. Nothing here allocates.
"""

from __future__ import annotations

import math

import numba

from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cube,
    entry,
    gram_rows,
    integers,
    jit,
    matrix,
    raise_squares,
    vector,
)

# Squares over what is left of them, times rows, from which rounding may be seen in a score: an
# error of 1e-15 in the squares is then 1e-8 in a log-likelihood.
_SEEN = 1e7

# What is computed: likelihoods with variances by maximum likelihood or unbiased; Bayes factors.
ML, UNBIASED, BAYES = 0, 1, 2


@jit
def _value(
    rss: Floats, rank: Integers, n: Floats, squares: Floats, c: int, q: int, unit: float, what: int
) -> float:
    """Of one family, from its regressions in J tables."""
    total = 0.0
    for j in range(n.shape[0]):
        square = squares[j, c]
        if what == BAYES:  # see `scoring.gprior`
            if square > CONSTANT_TOLERANCE * n[j]:
                left = min(rss[j] / square, 1.0)
                m = n[j] - 1.0
                total += 0.5 * (m - rank[j]) * math.log1p(n[j])
                total -= 0.5 * m * math.log1p(n[j] * left)
        else:
            least = max(RANK_TOLERANCE * square, CONSTANT_TOLERANCE * n[j])
            if rank[j] < q - 1 or n[j] <= q or not rss[j] > least:
                return -math.inf
            df = n[j] - q if what == UNBIASED else n[j]
            log_variance = math.log(2.0 * math.pi * (rss[j] / df))
            total += -0.5 * (n[j] * log_variance + df) - n[j] * unit
    return total


@entry(
    cube, vector, matrix, vector, vector, vector, numba.int64, integers, integers, integers,
    integers, matrix, vector, matrix, matrix, matrix, numba.int64[:, ::1], integers, matrix,
)  # fmt: skip
def sweep(
    scatter: Floats,
    n: Floats,
    squares: Floats,
    units: Floats,
    least: Floats,
    charges: Floats,
    what: int,
    order: Integers,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    U: Floats,
    u: Floats,
    Z: Floats,
    left: Floats,
    rss: Floats,
    rank: Integers,
    others: Integers,
    values: Floats,
) -> None:
    """Change the parents of children[m], parents[offsets[m] : offsets[m + 1]], by each column.

    Args:
        scatter: of the tables, (J, N, N).
        n: their rows, (J,).
        squares: the diagonals of `scatter`, (J, N).
        units: what a row of a child adds to a likelihood, (N,).
        least: see `raise_squares`, (N,).
        charges: taken from the values of children with so many parents, (N + 1,).
        what: see above.
        order: parents are regressed on in ascending order of these, (N,).
        children: (M,).
        offsets: (M + 1,).
        parents: in that order.
        U: work space, (p, p), p above the most parents of a child.
        u: likewise, (p,).
        Z: likewise, (p, N).
        left: likewise, (2, N).
        rss: likewise, (N, J).
        rank: likewise, (N, J).
        others: likewise, (p,).
        values: gets the values of child m with each column added, or removed if it is a parent; and
            at the child itself as it is, (M, N).
    """
    J, N = squares.shape
    for m in range(children.shape[0]):
        c = children[m]
        pa = parents[offsets[m] : offsets[m + 1]]
        p = pa.shape[0]
        for j in range(J):
            S = scatter[j]
            limit = n[j] - 1.0
            own, known, _ = gram_rows(S, c, pa, limit, U, u)
            for v in range(N):
                left[0, v] = squares[j, v]
                left[1, v] = S[c, v]
            tight = 1.0  # the least that other parents leave of one
            for k in range(p):
                scale = 1.0 / U[k, k] if U[k, k] > 0.0 else 0.0
                if scale > 0.0:
                    tight = min(tight, U[k, k] * U[k, k] / squares[j, pa[k]])
                row = S[pa[k]]
                for v in range(N):
                    Z[k, v] = row[v]
                for i in range(k):
                    factor = U[i, k]
                    for v in range(N):
                        Z[k, v] -= factor * Z[i, v]
                for v in range(N):
                    Z[k, v] *= scale
                    left[0, v] -= Z[k, v] * Z[k, v]
                    left[1, v] -= Z[k, v] * u[k]
            floor = CONSTANT_TOLERANCE * n[j]
            for v in range(N):
                rss[v, j], rank[v, j] = own, known
                if left[0, v] > max(RANK_TOLERANCE * squares[j, v], floor) and known < limit:
                    rest = max(own - left[1, v] * left[1, v] / left[0, v], 0.0)
                    seen = min(tight, left[0, v] / squares[j, v]) * _SEEN < n[j]
                    seen = seen or rest * _SEEN < squares[j, c] * n[j]
                    rss[v, j] = rest if known + 1 < limit else 0.0
                    rank[v, j] = known + 1
                    if seen and v != c:
                        k = 0
                        while k < p and order[pa[k]] < order[v]:
                            others[k] = pa[k]
                            k += 1
                        if k == p or pa[k] != v:
                            others[k] = v
                            for i in range(k, p):
                                others[i + 1] = pa[i]
                            all_of_them = others[: p + 1]
                            rss[v, j], rank[v, j], _ = gram_rows(S, c, all_of_them, limit, U, u)
            rss[c, j], rank[c, j] = own, known
            for k in range(p):
                for i in range(p - 1):
                    others[i] = pa[i] if i < k else pa[i + 1]
                v = pa[k]
                rss[v, j], rank[v, j], _ = gram_rows(S, c, others[: p - 1], limit, U, u)
        for v in range(N):
            values[m, v] = p + 1
        for k in range(p):
            values[m, pa[k]] = p - 1
        values[m, c] = p
        for v in range(N):
            size = int(values[m, v])
            if J > 1:
                raise_squares(rss[v], n, size + 1, least[c])
            value = _value(rss[v], rank[v], n, squares, c, size + 1, units[c], what)
            values[m, v] = value - charges[size]
