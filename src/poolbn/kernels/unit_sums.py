"""Rows into sums of units inside data sets. Compiled; nothing here allocates.

Rows come in order of data set, as `moments` puts them: so units of a data set lie side by side, as
their sums do, whatever the order in which rows were read.
"""

from __future__ import annotations

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cube, entry, integers, matrix
from poolbn.kernels.moments import add_data_set, products, sum_of

_FIRST = 256  # rows of a data set whose mean is near enough to that of all


@entry(integers, integers, integers, integers, integers, integers, integers, integers)
def number(
    names: Integers,
    places: Integers,
    ends: Integers,
    unit: Integers,
    data_set: Integers,
    size: Integers,
    count: Integers,
    found: Integers,
) -> None:
    """The unit of each row: a name is a unit of the data set where it came first, else -1.

    Args:
        names: numbers that stand for names, as rows came, (B,).
        places: where each row goes in order of data set, (B,).
        ends: where the rows of each data set end there, (F,).
        unit: that of each name, or -1; gets new ones, (names,).
        data_set: of each unit, with room for new ones.
        size: rows of each, likewise.
        count: how many there are, (1,).
        found: gets the units of rows in order of data set, (B,).
    """
    for r in range(names.shape[0]):
        found[places[r]] = names[r]
    begin = 0
    for j in range(ends.shape[0]):
        for r in range(begin, ends[j]):
            name = found[r]
            i = unit[name]
            if i < 0:
                i = count[0]
                unit[name] = i
                data_set[i] = j
                count[0] += 1
            if data_set[i] == j:
                found[r] = i
                size[i] += 1
            else:
                found[r] = -1
        begin = ends[j]


@entry(
    matrix, integers, integers, integers, matrix, matrix,
    integers, matrix, cube, matrix, matrix,
)  # fmt: skip
def add(
    lines: Floats,
    ends: Integers,
    units: Integers,
    known: Integers,
    center: Floats,
    sums: Floats,
    n: Integers,
    mean: Floats,
    scatter: Floats,
    cubes: Floats,
    work: Floats,
) -> None:
    """Add rows to the sums of their units, and then to those of their data sets.

    Args:
        lines: columns, in order of data set, (N or more, B). Spoilt.
        ends: where the rows of each data set end, (F,).
        units: that of each row, (B,).
        known: whether data sets have centres, (F,); then they get them.
        center: what rows are taken about, (F, N): the means of the first rows. Of a constant column
            it is that.
        sums: of units, (N, U or more).
        n: as for `moments.add`, as all that follow.
        mean: likewise.
        scatter: likewise.
        cubes: likewise.
        work: likewise.
    """
    N = center.shape[1]
    begin = 0
    for j in range(ends.shape[0]):
        end = ends[j]
        if end > begin and not known[j]:
            known[j] = 1
            first = min(end - begin, _FIRST)
            for k in range(N):
                away = 0.0
                for r in range(begin, begin + first):
                    away += lines[k, r] - lines[k, begin]
                center[j, k] = lines[k, begin] + away / first
        # Two columns at a time: what a unit is, is looked up half as often.
        for k in range(0, N - 1, 2):
            x, y, s, t = lines[k], lines[k + 1], sums[k], sums[k + 1]
            u, v = center[j, k], center[j, k + 1]
            for r in range(begin, end):
                i = units[r]
                s[i] += x[r] - u
                t[i] += y[r] - v
        if N % 2:
            x, s, u = lines[N - 1], sums[N - 1], center[j, N - 1]
            for r in range(begin, end):
                s[units[r]] += x[r] - u
        add_data_set(lines, begin, end, j, n, mean, scatter, cubes, work)
        begin = end


@entry(integers, integers, integers, integers, matrix, matrix, matrix, matrix, cube)
def gather(
    order: Integers,
    ends: Integers,
    data_set: Integers,
    size: Integers,
    shift: Floats,
    lines: Floats,
    work: Floats,
    sums: Floats,
    squares: Floats,
) -> None:
    """Add up units of a kind: sums (C, N) and squares (C, N, N) get those of lines (N, U).

    Args:
        order: units, kind by kind, (U,).
        ends: where those of each kind end in it, (C,).
        data_set: of each kind, (C,).
        size: rows of each of its units, (C,).
        shift: what is taken from each row of a data set, (F, N).
        lines: sums of rows, (N, U or more).
        work: zeros, (N rounded up to a multiple of 4, any).
        sums: gets those of units.
        squares: gets those of products.
    """
    N, room = lines.shape[0], work.shape[1]
    begin = 0
    for c in range(ends.shape[0]):
        while begin < ends[c]:
            m = min(ends[c] - begin, room)
            for k in range(N):
                less = size[c] * shift[data_set[c], k]
                x = work[k, :m]
                for r in range(m):
                    x[r] = lines[k, order[begin + r]] - less
                sums[c, k] += sum_of(x)
            for a in range(0, N, 4):
                for b in range(0, min(a + 4, N), 2):
                    block = products(
                        work[a, :m], work[a + 1, :m], work[a + 2, :m], work[a + 3, :m],
                        work[b, :m], work[b + 1, :m],
                    )  # fmt: skip
                    for k in range(8):
                        p, q = a + k // 2, b + k % 2
                        if q <= p < N:
                            squares[c, p, q] += block[k]
            begin += m
        for p in range(N):
            for q in range(p):
                squares[c, q, p] = squares[c, p, q]
