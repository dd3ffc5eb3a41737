"""Which sets of columns separate x and y? Searches over subsets of their neighbours. Compiled.

Neighbours of node x are nbrs[ptr[x] : ptr[x + 1]], in order. Subsets come in lexicographic order,
and only what changes from one to the next is computed again, see `independence.py`, whose `Asked`
says what the first arguments are. Two nodes are separated where the log of the p-value is above
`log_alpha`. `room` is work space, (6, N + 1).
"""

from __future__ import annotations

import math

import numba

from poolbn.kernels.independence import BLOCKS, Asked, begin, condition, evaluate
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cube, entry, integers, jit, matrix, vector

_FIRST, _SECOND, _MARK, _AT, _S, _HITS = range(6)  # rows of the room
_table = numba.int64[:, ::1]


@jit
def _following(at: Integers, k: int, count: int) -> int:
    """Make the next subset of k of so many; the first position that changed, -1 after the last."""
    i = k - 1
    while i >= 0 and at[i] == count - k + i:
        i -= 1
    if i < 0:
        return -1
    at[i] += 1
    for m in range(i + 1, k):
        at[m] = at[m - 1] + 1
    return i


@jit
def _neighbours(ptr: Integers, nbrs: Integers, x: int, y: int, out: Integers) -> int:
    """Write those of x but y; how many they are."""
    count = 0
    for i in range(ptr[x], ptr[x + 1]):
        if nbrs[i] != y:
            out[count] = nbrs[i]
            count += 1
    return count


@jit
def _side(
    a: Asked,
    log_alpha: float,
    x: int,
    y: int,
    k: int,
    count: int,
    side: int,
    known: bool,
    every: bool,
    room: Integers,
) -> tuple[float, int, bool]:
    """Test x and y given subsets of k of the `count` neighbours on one side.

    It ends with the first that separates them, which is then in the room; where `every` is true it
    goes on, and counts the separating subsets with each node. Where `known` is true, subsets of
    which all nodes are marked were tested before.

    The largest log p-value; the number of tests, or where `every` is true of separating subsets;
    and whether one was found.
    """
    at, S, mark, hits, own = room[_AT], room[_S], room[_MARK], room[_HITS], room[side]
    largest, made, valid, changed = -math.inf, 0, 0, 0
    begin(a, x, y)
    for i in range(k):
        at[i] = i
    while changed >= 0:
        for i in range(changed, k):
            S[i] = own[at[i]]
        valid = min(valid, changed)
        old = known
        for i in range(k):
            old = old and mark[S[i]] == 1
        if old:
            made += 0 if every else 1
        else:
            for i in range(valid, k):
                condition(a, x, y, S, i)
            valid = k
            log_p = evaluate(a, x, y, k)
            if not math.isnan(log_p):
                largest = max(largest, log_p)
                separated = log_p > log_alpha
                made += 1 if separated or not every else 0
                if separated and not every:
                    return largest, made, True
                if separated:
                    for i in range(k):
                        hits[S[i]] += 1
        changed = _following(at, k, count)
    return largest, made, False


@entry(
    cube, vector, matrix, matrix, numba.int64, numba.float64, numba.int64, integers, integers,
    integers, integers, _table, cube, vector, _table, vector, integers, integers,
)  # fmt: skip
def level(
    R: Floats,
    n: Floats,
    squares: Floats,
    table: Floats,
    test: int,
    log_alpha: float,
    k: int,
    xs: Integers,
    ys: Integers,
    ptr: Integers,
    nbrs: Integers,
    room: Integers,
    W: Floats,
    one: Floats,
    separators: Integers,
    largest: Floats,
    tests: Integers,
    found: Integers,
) -> None:
    """Test M pairs given sets of k neighbours of x, then of y, as bnlearn's pc.stable does.

    Fills separators (M, k) and found (M,) where a set separates; largest (M,) with the largest log
    p-value; and adds to tests (M,). Of sets that are on both sides only the count goes up.
    """
    a = Asked(R, n, squares, table, test, W.shape[0] - BLOCKS, W, one)
    for m in range(xs.shape[0]):
        x, y = xs[m], ys[m]
        first = _neighbours(ptr, nbrs, x, y, room[_FIRST])
        second = _neighbours(ptr, nbrs, y, x, room[_SECOND])
        log_p, made, separated = -math.inf, 0, False
        if first >= k:
            log_p, made, separated = _side(a, log_alpha, x, y, k, first, _FIRST, False, False, room)
        tests[m] += made
        largest[m] = log_p
        if not separated and k > 0:
            for i in range(first):
                room[_MARK, room[_FIRST, i]] = 1
            new, kept = 0, 0
            for i in range(second):
                new += 1 - room[_MARK, room[_SECOND, i]]
                if k > 1 or room[_MARK, room[_SECOND, i]] == 0:
                    room[_SECOND, kept] = room[_SECOND, i]
                    kept += 1
            if kept >= k and (new > 0 or kept != first):
                log_p, made, separated = _side(
                    a, log_alpha, x, y, k, kept, _SECOND, first >= k, False, room
                )
                tests[m] += made
                largest[m] = max(largest[m], log_p)
            for i in range(first):
                room[_MARK, room[_FIRST, i]] = 0
        found[m] = separated
        if separated:
            for i in range(k):
                separators[m, i] = room[_S, i]


@entry(
    cube, vector, matrix, matrix, numba.int64, numba.float64, integers, integers, integers,
    integers, integers, integers, integers, _table, cube, vector, integers, integers,
)  # fmt: skip
def votes(
    R: Floats,
    n: Floats,
    squares: Floats,
    table: Floats,
    test: int,
    log_alpha: float,
    sizes: Integers,
    xs: Integers,
    ys: Integers,
    ptr: Integers,
    nbrs: Integers,
    offsets: Integers,
    centres: Integers,
    room: Integers,
    W: Floats,
    one: Floats,
    separating: Integers,
    hits: Integers,
) -> None:
    """How many sets of up to sizes[m] neighbours of x or of y separate them, and have a centre.

    Centres of pair m are centres[offsets[m] : offsets[m + 1]]; fills separating (M,) and hits.
    """
    a = Asked(R, n, squares, table, test, W.shape[0] - BLOCKS, W, one)
    for m in range(xs.shape[0]):
        x, y = xs[m], ys[m]
        first = _neighbours(ptr, nbrs, x, y, room[_FIRST])
        second = _neighbours(ptr, nbrs, y, x, room[_SECOND])
        for i in range(room.shape[1]):
            room[_HITS, i] = 0
        for i in range(first):
            room[_MARK, room[_FIRST, i]] = 1
        total = 0
        for k in range(sizes[m] + 1):
            for side in range(2):
                count = first if side == 0 else second
                if count >= k and (side == 0 or k > 0):
                    _, made, _ = _side(a, log_alpha, x, y, k, count, side, side == 1, True, room)
                    total += made
        for i in range(first):
            room[_MARK, room[_FIRST, i]] = 0
        separating[m] = total
        for i in range(offsets[m], offsets[m + 1]):
            hits[i] = room[_HITS, centres[i]]


@jit
def _through(
    a: Asked, log_alpha: float, x: int, y: int, count: int, last: bool, room: Integers
) -> tuple[float, int]:
    """The largest log p-value given subsets of candidates, but y; and the tests that it took.

    Candidates are the first `count` in the first row of the room; where `last` is true, only
    subsets with the last of them count. It ends with the first p-value above alpha.
    """
    at, S, own = room[_AT], room[_S], room[_SECOND]
    others, shift = 0, 1 if last else 0
    for i in range(count - shift):
        if room[_FIRST, i] != y:
            own[others] = room[_FIRST, i]
            others += 1
    if last:
        S[0] = room[_FIRST, count - 1]
    largest, made = -math.inf, 0
    begin(a, x, y)
    if last:
        condition(a, x, y, S, 0)
    for k in range(min(others, a.most - shift) + 1):
        for i in range(k):
            at[i] = i
        changed = 0
        while changed >= 0:
            for i in range(changed, k):
                S[shift + i] = own[at[i]]
                condition(a, x, y, S, shift + i)
            log_p = evaluate(a, x, y, shift + k)
            made += 1
            if log_p > largest:
                largest = log_p
                if largest > log_alpha:
                    return largest, made
            changed = _following(at, k, others)
    return largest, made


@entry(
    cube, vector, matrix, matrix, numba.int64, numba.float64, integers, numba.uint8[:, ::1],
    numba.uint8[:, ::1], _table, cube, vector, matrix, numba.uint8[:, ::1], integers,
)  # fmt: skip
def maxmin(
    R: Floats,
    n: Floats,
    squares: Floats,
    table: Floats,
    test: int,
    log_alpha: float,
    targets: Integers,
    open_: Integers,
    sure: Integers,
    room: Integers,
    W: Floats,
    one: Floats,
    worst: Floats,
    joined: Integers,
    tests: Integers,
) -> None:
    """Max-min parents and children of each of M targets (Tsamardinos, Brown and Aliferis, 2006).

    The node whose largest p-value is least joins the candidates, until all others are separated
    from the target by some of them. Then each candidate, the last first, must hold against subsets
    of the others. `open_` nodes (N, N) may be joined to the target, `sure` ones (N, N) are.

    Fills worst (M, N), the largest log p-value of each node, NaN for those that are not open;
    joined (M, N); and adds to tests (M,).
    """
    a, N = Asked(R, n, squares, table, test, W.shape[0] - BLOCKS, W, one), R.shape[0]
    own = room[_FIRST]
    for m in range(targets.shape[0]):
        x, count = targets[m], 0
        for y in range(N):
            worst[m, y], joined[m, y] = math.nan, 0
            if y != x and open_[x, y]:
                begin(a, x, y)
                worst[m, y] = evaluate(a, x, y, 0)
                tests[m] += 1
        for _ in range(N):
            new = -1
            for y in range(N):
                if joined[m, y] or math.isnan(worst[m, y]):
                    continue
                if sure[x, y]:
                    new = y
                    break
                if worst[m, y] <= log_alpha and (new < 0 or worst[m, y] < worst[m, new]):
                    new = y
            if new < 0:
                break
            joined[m, new] = 1
            own[count] = new
            count += 1
            for y in range(N):
                if joined[m, y] == 0 and (worst[m, y] <= log_alpha):
                    log_p, made = _through(a, log_alpha, x, y, count, True, room)
                    worst[m, y] = max(worst[m, y], log_p)
                    tests[m] += made
        for i in range(count - 1, -1, -1):
            y = own[i]
            if sure[x, y]:
                continue
            log_p, made = _through(a, log_alpha, x, y, count, False, room)
            tests[m] += made
            worst[m, y] = max(worst[m, y], log_p)
            if log_p > log_alpha:
                joined[m, y] = 0
                for h in range(i, count - 1):
                    own[h] = own[h + 1]
                count -= 1
