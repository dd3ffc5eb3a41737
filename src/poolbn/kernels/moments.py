"""Rows into means and centred scatter matrices. Compiled; nothing here allocates.

Rows come as columns of any memory layout. They are put in order of data set, column by column, so
that the cells of one column and data set lie side by side and all sums run along memory.
"""

from __future__ import annotations

import numba

from poolbn.kernels.lanes import (
    LANES,
    Floats,
    load,
    load_four,
    plus,
    product,
    spread,
    spread_four,
    total,
)
from poolbn.kernels.linalg import (
    Integers,
    callable_from_python,
    cube,
    entry,
    integers,
    jit,
    matrix,
    vector,
)

_column = numba.types.Array(numba.float64, 1, "A", readonly=True, aligned=False)


@jit
def shift(x: Floats, c: float) -> None:
    """Subtract c."""
    for r in range(x.shape[0]):
        x[r] -= c


@callable_from_python
def sum_of(x: Floats) -> float:
    """The sum of a line."""
    v = w = spread(0.0)
    whole = x.shape[0] // (2 * LANES) * (2 * LANES)
    for r in range(0, whole, 2 * LANES):
        v, w = plus(v, load(x, r)), plus(w, load(x, r + LANES))
    s = total(plus(v, w))
    for r in range(whole, x.shape[0]):
        s += x[r]
    return s


@callable_from_python
def _sum_and_cubes(x: Floats) -> tuple[float, float]:
    """The sum, bit by bit as above, and that of the cubes."""
    v = w = a = b = spread(0.0)
    whole = x.shape[0] // (2 * LANES) * (2 * LANES)
    for r in range(0, whole, 2 * LANES):
        X, Y = load(x, r), load(x, r + LANES)
        v, w = plus(v, X), plus(w, Y)
        a, b = plus(a, product(product(X, X), X)), plus(b, product(product(Y, Y), Y))
    s, c = total(plus(v, w)), total(plus(a, b))
    for r in range(whole, x.shape[0]):
        s += x[r]
        c += x[r] * x[r] * x[r]
    return s, c


@callable_from_python
def products(
    a: Floats, b: Floats, c: Floats, d: Floats, x: Floats, y: Floats
) -> tuple[float, float, float, float, float, float, float, float]:
    """The products of four columns with two: eight sums fit in registers and load little."""
    ax = ay = bx = by = cx = cy = dx = dy = spread_four(0.0)
    whole = x.shape[0] // 4 * 4
    for r in range(0, whole, 4):
        X, Y = load_four(x, r), load_four(y, r)
        A, B, C, D = load_four(a, r), load_four(b, r), load_four(c, r), load_four(d, r)
        ax, ay = plus(ax, product(A, X)), plus(ay, product(A, Y))
        bx, by = plus(bx, product(B, X)), plus(by, product(B, Y))
        cx, cy = plus(cx, product(C, X)), plus(cy, product(C, Y))
        dx, dy = plus(dx, product(D, X)), plus(dy, product(D, Y))
    sax, say, sbx, sby = total(ax), total(ay), total(bx), total(by)
    scx, scy, sdx, sdy = total(cx), total(cy), total(dx), total(dy)
    for r in range(whole, x.shape[0]):
        sax, say = sax + a[r] * x[r], say + a[r] * y[r]
        sbx, sby = sbx + b[r] * x[r], sby + b[r] * y[r]
        scx, scy = scx + c[r] * x[r], scy + c[r] * y[r]
        sdx, sdy = sdx + d[r] * x[r], sdy + d[r] * y[r]
    return sax, say, sbx, sby, scx, scy, sdx, sdy


@entry(integers, integers, integers)
def sort(codes: Integers, places: Integers, ends: Integers) -> None:
    """Counting sort: the place (B,) of each row, and where each data set's rows end (F,)."""
    ends[:] = 0
    for code in codes:
        ends[code] += 1
    begin = 0
    for j in range(ends.shape[0]):
        begin, ends[j] = begin + ends[j], begin
    for r in range(codes.shape[0]):
        places[r] = ends[codes[r]]
        ends[codes[r]] += 1


@entry(_column, integers, vector)
def put(column: Floats, places: Integers, line: Floats) -> None:
    """Put the cells of a column in their places."""
    for r in range(column.shape[0]):
        line[places[r]] = column[r]


@callable_from_python
def add_data_set(
    lines: Floats,
    begin: int,
    end: int,
    j: int,
    n: Integers,
    mean: Floats,
    scatter: Floats,
    cubes: Floats,
    work: Floats,
) -> None:
    """Add the rows of one data set, from one place in sorted columns to another, see `add`."""
    N = mean.shape[1]
    delta, s = work
    m = end - begin
    if m == 0:
        return
    u, S = mean[j], scatter[j]
    for i in range(N):
        x = lines[i, begin:end]
        delta[i] = 0.0
        if m > n[j]:
            # The first cell plus the mean difference from it.
            c = x[0]
            shift(x, c)
            correction = sum_of(x) / m
            shift(x, correction)
            c += correction
            if n[j] > 0:
                delta[i] = u[i] - c
            u[i] = c
        else:
            shift(x, u[i])
        sums, third = _sum_and_cubes(x)
        d = delta[i]
        s[i] = n[j] * d + sums
        cubes[j, i] += 3.0 * d * S[i, i] + n[j] * (d * d * d) + third
    rows = n[j] + m
    for a in range(0, N, 4):
        for b in range(0, min(a + 4, N), 2):
            block = products(
                lines[a, begin:end], lines[a + 1, begin:end], lines[a + 2, begin:end],
                lines[a + 3, begin:end], lines[b, begin:end], lines[b + 1, begin:end],
            )  # fmt: skip
            for k in range(8):
                p, q = a + k // 2, b + k % 2
                if q <= p < N:
                    P = S[p, q] + n[j] * (delta[p] * delta[q]) + block[k]
                    S[p, q] = S[q, p] = P - s[p] * s[q] / rows
    for i in range(N):
        h = s[i] / rows
        cubes[j, i] += 2.0 * rows * (h * h * h) - 3.0 * h * (S[i, i] + s[i] * h)
        u[i] += h
    n[j] = rows


@entry(matrix, integers, integers, matrix, cube, matrix, matrix)
def add(
    lines: Floats,
    ends: Integers,
    n: Integers,
    mean: Floats,
    scatter: Floats,
    cubes: Floats,
    work: Floats,
) -> None:
    """Add sorted rows to n (F,), mean (F, N), scatter (F, N, N) and cubes (F, N).

    For each data set let there be n rows before, with mean u and scatter S, and m new ones, X.
    About any centre c the sums of both are s = n (u - c) + D'1 and P = S + n (u - c)(u - c)' + D'D
    with D = X - c, so the mean of both is c + s / (n + m) and their scatter P - ss' / (n + m).

    The subtraction cancels, so c must be near. With m <= n it is u, otherwise the mean of X.
    Then of all that is subtracted P has at least twice as much, however far u and X are apart, and
    no more than a bit is lost. If a column is constant, c is equal to it and its scatter exactly 0.

    Cubes about c, with T those about u so far: C = T + 3 S (u - c) + n (u - c)^3 + sum of D^3.
    About the mean c + h they are C - 3 h P + 2 (n + m) h^3.

    Where a column is NaN in all rows of a data set, so is what comes of it, and nothing else.

    Args:
        lines: the sorted columns; N rounded up to a multiple of 4, of which only N matter. Spoilt.
        ends: where the rows of each data set end in them, (F,).
        n: rows so far.
        mean: means so far.
        scatter: scatter so far.
        cubes: sums of cubes of differences from the mean so far.
        work: (2, N).
    """
    begin = 0
    for j in range(ends.shape[0]):
        add_data_set(lines, begin, ends[j], j, n, mean, scatter, cubes, work)
        begin = ends[j]
