"""Expected sums of rows with missing cells, given means and covariances. Compiled.

Let rows be normal with mean mu and precision K, and M the cells that a row lacks, O those that it
has. Then x_M given x_O is normal with mean mu_M - K_MM^-1 K_MO (x_O - mu_O) and covariance
K_MM^-1: matrices of the size of what is missing, which is little. Rows that lack the same cells
share them.
"""

from __future__ import annotations

import math

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    cholesky,
    cube,
    entry,
    integers,
    jit,
    matrix,
    solve,
    vector,
)


@jit
def _add_mean(
    mu: Floats,
    x: Floats,
    order: Integers,
    m: int,
    B: Floats,
    line: Floats,
    n: float,
    first: Floats,
    second: Floats,
) -> None:
    """Add n rows that are all x, whose missing cells are filled in."""
    N = mu.shape[0]
    for b in range(m, N):
        line[order[b]] = x[order[b]] - mu[order[b]]
    for a in range(m):
        v = 0.0
        for b in range(m, N):
            v += B[b - m, a] * line[order[b]]
        line[order[a]] = v
    for i in range(N):
        first[i] += n * line[i]
        for k in range(i + 1):
            second[i, k] += n * line[i] * line[k]


@entry(
    vector, matrix, integers, integers, integers, integers, vector, matrix, cube, integers, matrix,
    vector, matrix, vector, cube, vector,
)  # fmt: skip
def expect(
    mu: Floats,
    K: Floats,
    at: Integers,
    columns: Integers,
    counts: Integers,
    cells: Integers,
    n: Floats,
    mean: Floats,
    scatter: Floats,
    begin: Integers,
    rows: Floats,
    first: Floats,
    second: Floats,
    terms: Floats,
    work: Floats,
    line: Floats,
) -> None:
    """Add what is expected of x - mu and its products to `first` (N,) and `second` (N, N).

    Args:
        mu: (N,).
        K: (N, N).
        at: where the columns of pattern p begin, (P + 1,): all N of each, first those missing.
        columns: see `at`.
        counts: how many are missing, (P,).
        cells: which cell has sums of rows with the pattern, or -1, (P,).
        n: rows of each cell, (C,).
        mean: their means, (C, N); anything where cells are missing.
        scatter: their centred sums of products, (C, N, N), likewise.
        begin: where the single rows with the pattern begin, (P + 1,).
        rows: these, (R, N).
        first: see above.
        second: see above; the lower triangle.
        terms: rows times log|K_MM|, and rows times missing cells, are added to them, (2,).
        work: (3, N, N).
        line: (N,).
    """
    N = mu.shape[0]
    A, B, S = work[0], work[1], work[2]
    for p in range(counts.shape[0]):
        m = counts[p]
        o = N - m
        order = columns[at[p] : at[p + 1]]
        for a in range(m):
            for b in range(a + 1):
                A[a, b] = K[order[a], order[b]]
        cholesky(A, A, m, 0.0)
        log_det = 0.0
        for a in range(m):
            log_det += 2.0 * math.log(A[a, a])
        # B (o, m): what the missing cells follow with.
        for b in range(o):
            for a in range(m):
                line[a] = -K[order[a], order[m + b]]
            solve(A, m, line)
            for a in range(m):
                B[b, a] = line[a]
        total = 0.0
        if cells[p] >= 0:
            c = cells[p]
            total += n[c]
            _add_mean(mu, mean[c], order, m, B, line, n[c], first, second)
            for a in range(m):  # S (o, m): products of observed and missing cells
                for b in range(o):
                    v = 0.0
                    for h in range(o):
                        v += scatter[c, order[m + b], order[m + h]] * B[h, a]
                    S[b, a] = v
            for b in range(o):
                i = order[m + b]
                for h in range(b + 1):
                    k = order[m + h]
                    second[max(i, k), min(i, k)] += scatter[c, i, k]
                for a in range(m):
                    k = order[a]
                    second[max(i, k), min(i, k)] += S[b, a]
            for a in range(m):
                for b in range(a + 1):
                    v = 0.0
                    for h in range(o):
                        v += B[h, b] * S[h, a]
                    i, k = order[a], order[b]
                    second[max(i, k), min(i, k)] += v
        for r in range(begin[p], begin[p + 1]):
            total += 1.0
            _add_mean(mu, rows[r], order, m, B, line, 1.0, first, second)
        for a in range(m):  # the covariance that is left
            for b in range(m):
                line[b] = 1.0 if a == b else 0.0
            solve(A, m, line)
            for b in range(a + 1):
                i, k = order[a], order[b]
                second[max(i, k), min(i, k)] += total * line[b]
        terms[0] += total * log_det
        terms[1] += total * m


@entry(
    vector, matrix, integers, integers, integers, integers, matrix, matrix, matrix, vector,
)  # fmt: skip
def fill(
    mu: Floats,
    K: Floats,
    at: Integers,
    columns: Integers,
    counts: Integers,
    begin: Integers,
    rows: Floats,
    normals: Floats,
    A: Floats,
    line: Floats,
) -> None:
    """Put draws into the missing cells of rows.

    Arguments as in `expect`; `normals` (R, N) are standard normal, of which each row takes as many
    as it lacks cells, and A is (N, N).
    """
    N = mu.shape[0]
    for p in range(counts.shape[0]):
        m = counts[p]
        order = columns[at[p] : at[p + 1]]
        if begin[p] == begin[p + 1]:
            continue
        for a in range(m):
            for b in range(a + 1):
                A[a, b] = K[order[a], order[b]]
        cholesky(A, A, m, 0.0)
        for r in range(begin[p], begin[p + 1]):
            # With K_MM = CC' the mean is -C'^-1 C^-1 K_MO (x_O - mu_O), and the rest C'^-1 z.
            for a in range(m):
                v = 0.0
                for b in range(m, N):
                    v -= K[order[a], order[b]] * (rows[r, order[b]] - mu[order[b]])
                for h in range(a):
                    v -= A[a, h] * line[h]
                line[a] = v / A[a, a]
            for a in range(m):
                line[a] += normals[r, a]
            for a in range(m - 1, -1, -1):
                v = line[a]
                for h in range(a + 1, m):
                    v -= A[h, a] * line[h]
                line[a] = v / A[a, a]
            for a in range(m):
                rows[r, order[a]] = mu[order[a]] + line[a]
