"""The search for D, the covariance of the random effects; and the fit of many families.

Compiled; nothing here allocates: the caller brings the work space.

L = 0 and every L of low rank are stationary points of the deviance in a square L, so steps there
stall or crawl, and half of the optima have low rank. So L has k columns, k the rank, in the gauge
of a pivoted Cholesky decomposition (column b has entries in the rows perm[b:]), and:
  - inside the manifold of rank k, Newton steps with the exact Hessian, damped as by Levenberg;
  - a column that shrinks is dropped when f does not rise by that;
  - when the steps end, D is optimal to first order if G is positive semidefinite (GL = 0 holds by
    then). Else a column along the eigenvector of G's most negative eigenvalue is added, if what
    that can gain matters, and the steps go on. f only ever falls, so this ends.
Exact second derivatives cost what expected ones cost, and turn the some hundred steps that scoring
needs at the boundary into a dozen.

A start is one EM step, D - DGD / |F|, from D = start I: it costs one evaluation and lands near the
moments of the data sets' own coefficients. Genuine second maxima exist (2% of the families of real
and simulated tables, up to several units of log-likelihood); other starts find them.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from poolbn.constants import CONVERGED, DETERMINED, RANK_TOLERANCE, UNSETTLED
from poolbn.kernels.bounds import least_deviance
from poolbn.kernels.deviance import compress, evaluate, gradient, hessian
from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import (
    Integers,
    add,
    cholesky,
    cube,
    dot,
    eigen,
    entry,
    fill,
    integers,
    jit,
    matrix,
    solve,
    vector,
)
from poolbn.kernels.work import Space, Work, carve, once

MAX_STEPS = 200
_INFINITE = 1e8
FAR = 100.0  # times the start: a D that the first EM step only roughly knows
SMALL = 2.0  # a column this small is tried without, in units of the sampling variance
HOPELESS = 1e12  # a damping that leaves no step
ROUNDING = 1e-10  # what a deviance may rise by without being worse


@jit
def copy_columns(source: Floats, target: Floats, columns: int) -> None:
    """The first columns of a square matrix; the others become 0."""
    size = source.shape[0]
    for a in range(size):
        for b in range(size):
            target[a, b] = source[a, b] if b < columns else 0.0


@jit
def regauge(L: Floats, k: int, most: int, perm: Integers, D: Floats) -> int:
    """L becomes the pivoted Cholesky factor of LL', of at most so many columns; returns its rank.

    D (r, r) is work space.
    """
    random = L.shape[0]
    largest = 0.0
    for a in range(random):
        perm[a] = a
        for c in range(random):
            v = 0.0
            for b in range(k):
                v += L[a, b] * L[c, b]
            D[a, c] = v
        largest = max(largest, D[a, a])
    copy_columns(L, L, 0)
    most = min(k, most)
    for b in range(most):
        best = b
        for i in range(b, random):
            if D[perm[i], perm[i]] > D[perm[best], perm[best]]:
                best = i
        perm[b], perm[best] = perm[best], perm[b]
        pivot = D[perm[b], perm[b]]
        if not pivot > 1e-15 * largest or pivot < 1e-14:
            return b
        root = math.sqrt(pivot)
        for i in range(b, random):
            L[perm[i], b] = D[perm[i], perm[b]] / root
        for i in range(b, random):
            for h in range(b, random):
                D[perm[i], perm[h]] -= L[perm[i], b] * L[perm[h], b]
    return most


@once
def em_step(w: Work, F: int) -> float:
    """w.L becomes a factor of D - DGD / |F|, w.G the gradient; returns the largest diagonal of D.

    0 where that is not positive definite, and w.L stays.
    """
    random: int = w.L.shape[0]
    for a in range(random):  # X = L'G L, and the step is L (I - X / |F|) L'
        for b in range(random):
            v = 0.0
            for c in range(random):
                v += w.G[a, c] * w.L[c, b]
            w.trial[a, b] = v
    for a in range(random):
        for b in range(random):
            v = 0.0
            for c in range(random):
                v += w.L[c, a] * w.trial[c, b]
            w.D[a, b] = (1.0 if a == b else 0.0) - v / F
    if not cholesky(w.D, w.eigenvectors, random, 0.0):
        return 0.0
    largest = 0.0
    for a in range(random):
        square = 0.0
        for b in range(random):
            v = 0.0
            for c in range(b, random):
                v += w.L[a, c] * w.eigenvectors[c, b]
            w.trial[a, b] = v
            square += v * v
        largest = max(largest, square)
    copy_columns(w.trial, w.L, random)
    return largest


@once
def _start(s: Space, w: Work, rho: float, df: float, start: float) -> int:
    """w.L becomes a factor of one or two EM steps from D = start I; returns its columns.

    Where the first finds D far larger than the start, it saw random effects that were shrunk by
    data sets of unequal shape, and a second one sets their direction right, which Newton steps
    would do slowly.
    """
    random: int = w.L.shape[0]
    copy_columns(w.L, w.L, 0)
    if start == 0.0:
        return 0
    for a in range(random):
        w.L[a, a] = math.sqrt(start)
    for _ in range(2):
        _, rss = evaluate(s, rho, df, w.L, random)
        gradient(s, rss, df)
        if em_step(w, s.F) < FAR * start:
            break
    return random


@once
def way_out(w: Work, tolerance: float) -> float:
    """Leave a point that is stationary but not optimal: w.unit gets a column x with x'Gx < 0.

    Returns:
        How far. Along D + t xx' the deviance is f + t x'Gx + t^2/2 sum (x'Px)^2, nearly, and this
        is the t where it is least; 0 where that gains no more than the tolerance.
    """
    random: int = w.L.shape[0]
    copy_columns(w.G, w.D, random)
    eigen(w.D, w.eigenvectors, random, 1e-26)
    low = 0
    for a in range(random):
        if w.D[a, a] < w.D[low, low]:
            low = a
    slope: float = w.D[low, low]
    fill(w.u, 0, 0, 0.0)  # x'Px for each data set
    for a in range(random):
        w.unit[a] = w.eigenvectors[a, low]
        for c in range(random):
            add(w.u, 0, 0, w.eigenvectors[a, low] * w.eigenvectors[c, low], w.P, a, c)
    curvature: float = dot(w.u, 0, 0, w.u, 0, 0)
    if slope < 0.0 and slope * slope > 2.0 * tolerance * curvature:
        return -slope / curvature
    return 0.0


@jit
def widen(L: Floats, k: int, t: float, x: Floats, trial: Floats) -> None:
    """Trial becomes the k columns of L and t^1/2 x."""
    copy_columns(L, trial, k)
    for a in range(L.shape[0]):
        trial[a, k] = math.sqrt(t) * x[a]


@once
def _add_column(
    s: Space, w: Work, rho: float, df: float, k: int, f: float, tolerance: float
) -> tuple[float, float]:
    """The new f and rss with a column more in w.trial; f is inf where none gains."""
    t = way_out(w, tolerance)
    if t > 0.0:
        for _ in range(20):
            widen(w.L, k, t, w.unit, w.trial)
            fnew, rnew = evaluate(s, rho, df, w.trial, k + 1)
            if fnew < f:
                return fnew, rnew
            t *= 0.25
    return np.inf, 0.0


@once
def rescale(w: Work, k: int) -> bool:
    """Measure steps in row a of L by (1 + D_aa)^1/2: rows can differ a thousandfold.

    The largest curvature becomes 1. False where the derivatives are not finite, or all zero.
    """
    random = w.L.shape[0]
    size = 0
    largest = 0.0
    for b in range(k):
        for i in range(b, random):
            square = 1.0
            for h in range(k):
                square += w.L[w.perm[i], h] ** 2
            w.unit[size] = math.sqrt(square)
            largest = max(largest, square * abs(w.H[size, size]))
            size += 1
    if size > 0 and not (0.0 < largest < np.inf):
        return False
    for x in range(size):
        w.unit[x] /= math.sqrt(largest)
        w.g[x] *= w.unit[x]
        for y in range(x + 1):
            w.H[x, y] *= w.unit[x] * w.unit[y]
    return True


@once
def minimise(
    s: Space, w: Work, rho: float, df: float, k: int, tolerance: float, polish: bool
) -> tuple[float, int, bool]:
    """Minimise f from the k columns of w.L, which become the minimum's.

    Returns:
        f, rank, and whether it settled. w.P, w.e, w.beta are those of some trial point.
    """
    random: int = w.L.shape[0]
    # GL = 0 says S L = (n / rss) (sum e e') L, and sum e = 0: the rank is at most |F| - 1.
    k = regauge(w.L, k, s.F - 1, w.perm, w.D)
    f, rss = evaluate(s, rho, df, w.L, k)
    damping = 0.0
    smallest = np.inf
    tolerance = max(tolerance, 1e-15 * (abs(f) + df))  # what rounding leaves of f
    for _ in range(MAX_STEPS):
        gradient(s, rss, df)
        size = hessian(s, k, rss, df)
        if not rescale(w, k):
            return f, k, False

        if k > 0:  # a column that shrinks: is f lower without it?
            norm = 0.0
            for a in range(random):
                norm += w.L[a, k - 1] * w.L[a, k - 1]
            if norm < min(SMALL, 0.1 * smallest):
                smallest = norm
                fnew, rnew = evaluate(s, rho, df, w.L, k - 1)
                if fnew <= f:
                    f, rss = fnew, rnew
                    k = regauge(w.L, k - 1, k - 1, w.perm, w.D)
                    smallest = np.inf
                    continue

        moved = False
        stale = smallest < np.inf  # P and e may be another point's
        while size > 0:
            while not cholesky(w.H, w.HC, size, damping) and damping < HOPELESS:
                damping = max(4.0 * damping, 1e-3)
            for x in range(size):
                w.step[x] = -w.g[x]
            solve(w.HC, size, w.step)
            gain = 0.0
            for x in range(size):
                gain += 0.5 * w.step[x] * (damping * w.step[x] - w.g[x])
            if gain < tolerance and not polish:
                break
            copy_columns(w.L, w.trial, k)
            x = 0
            for b in range(k):
                for i in range(b, random):
                    w.trial[w.perm[i], b] += w.unit[x] * w.step[x]
                    x += 1
            fnew, rnew = evaluate(s, rho, df, w.trial, k)
            if gain < tolerance:  # polish: the step is below what f can tell
                if fnew < f + ROUNDING:
                    copy_columns(w.trial, w.L, random)
                    f, rss = min(f, fnew), rnew
                stale = True
                break
            ratio = (f - fnew) / gain
            if ratio > 1e-3:
                copy_columns(w.trial, w.L, random)
                f, rss = fnew, rnew
                if ratio > 0.75:
                    damping = damping / 5.0 if damping > 1e-6 else 0.0
                elif ratio < 0.25:
                    damping = max(2.0 * damping, 1e-3)
                moved = True
                break
            stale = True
            damping = max(4.0 * damping, 1e-2)
            if damping > HOPELESS:
                break
        if moved:
            k = regauge(w.L, k, k, w.perm, w.D)
            continue
        if k == random:
            return f, k, True
        if stale:
            _, rss = evaluate(s, rho, df, w.L, k)
            gradient(s, rss, df)
        fnew, rnew = _add_column(s, w, rho, df, k, f, tolerance)
        if fnew == np.inf:
            return f, k, True
        f, rss = fnew, rnew
        copy_columns(w.trial, w.L, random)
        k = regauge(w.L, k + 1, k + 1, w.perm, w.D)
        damping = 0.0
        smallest = np.inf
    return f, k, False


@entry(
    vector, matrix, cube, integers, integers, integers, numba.int64, numba.boolean, vector,
    numba.float64, numba.float64, numba.boolean, vector, integers, vector, vector, integers,
    integers,
)  # fmt: skip
def fit_families(
    n: Floats,
    mean: Floats,
    scatter: Floats,
    children: Integers,
    offsets: Integers,
    parents: Integers,
    without: int,
    reml: bool,
    starts: Floats,
    near: float,
    tolerance: float,
    polish: bool,
    buffer: Floats,
    perm: Integers,
    deviance: Floats,
    rss: Floats,
    rank: Integers,
    code: Integers,
) -> None:
    """Fit each family, children[m] given parents[offsets[m] : offsets[m + 1]].

    The last parents, `without` of them, have no random effects; the intercept always has. Where f
    is within `near` of its lower bound, for each rank of D and two more, no further start is tried.
    Without starts the deviance is that lower bound.

    Fills deviance, rank and code (DEPENDENT + a where column a is), and, when polishing, rss; the
    buffer then holds what the last family's `LocalFit` needs.
    """
    F = n.shape[0]
    total = n.sum()
    for family in range(children.shape[0]):
        pa = parents[offsets[family] : offsets[family + 1]]
        q = pa.shape[0] + 1
        random = max(q - without, 1)
        s = Space(buffer, perm, F, q, random, reml)
        w = carve(s)
        deviance[family] = np.inf
        rank[family] = 0
        rho, code[family] = compress(s, n, mean, scatter, children[family], pa)
        if code[family] != CONVERGED:
            continue
        df = total - (q if reml else 0)
        lowest = least_deviance(s, rho, df)
        deviance[family] = lowest
        # With D infinite each data set has coefficients of its own. If they leave no residual, the
        # likelihood rises without bound on the way there, or on the way to some other infinite D.
        least = rho
        if random < q:
            copy_columns(w.L, w.L, 0)
            for a in range(random):
                w.L[a, a] = _INFINITE
            _, least = evaluate(s, rho, df, w.L, random)
        if starts.shape[0] > 0 and not least > RANK_TOLERANCE * total:
            code[family] = DETERMINED
            deviance[family] = np.inf
            continue
        for i in range(starts.shape[0]):
            if i > 0 and deviance[family] < lowest + near * (rank[family] + 2):
                break
            k = _start(s, w, rho, df, starts[i])
            f, k, settled = minimise(s, w, rho, df, k, tolerance, polish)
            if i == 0 or f < deviance[family] - ROUNDING:
                deviance[family] = f
                rank[family] = k
                code[family] = CONVERGED if settled else UNSETTLED
                copy_columns(w.L, w.best, k)
        if polish:
            _, rss[family] = evaluate(s, rho, df, w.best, rank[family])
        deviance[family] += df * (1.0 + math.log(2.0 * math.pi))
        if reml:  # log|S| belongs to the combined columns
            for a in range(q):
                deviance[family] += 2.0 * math.log(w.B[a, a])
