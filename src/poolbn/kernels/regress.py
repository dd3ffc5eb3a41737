"""Least squares of many families on scatter matrices. Compiled; nothing here allocates."""

from __future__ import annotations

import numba

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cube,
    entry,
    gram_rows,
    integers,
    matrix,
    raise_squares,
    vector,
)

table = numba.int64[:, ::1]


@entry(cube, vector, integers, integers, integers, vector, cube, matrix, matrix, table, table)
def least_squares(
    scatter: Floats,
    n: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    least: Floats,
    U: Floats,
    u: Floats,
    rss: Floats,
    rank: Integers,
    dependent: Integers,
) -> None:
    """Regress children[m] on parents[offsets[m] : offsets[m + 1]] in each of the J tables.

    Fills rss, the rank of the parents, and dependent: the first parent that is a combination of the
    ones before it, or -1; (M, J) each. U (J, p, p), u (J, p) end as the Cholesky rows of the last
    family. Where tables are several, `least` are the least residual variances of children (N,), see
    `raise_squares`.
    """
    for m in range(children.shape[0]):
        pa = parents[offsets[m] : offsets[m + 1]]
        for j in range(n.shape[0]):
            rss[m, j], rank[m, j], dependent[m, j] = gram_rows(
                scatter[j], children[m], pa, n[j] - 1.0, U[j], u[j]
            )
        if n.shape[0] > 1:
            raise_squares(rss[m], n, pa.shape[0] + 1, least[children[m]])
