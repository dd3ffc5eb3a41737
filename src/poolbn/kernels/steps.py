"""What the minimiser's steps are made of, whatever the residual model; see `optimise`. Compiled."""

from __future__ import annotations

import math

import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, add, cholesky, dot, eigen, fill, jit, solve
from poolbn.kernels.work import Space, Work, once

_OFF = 1e-13  # squares off the diagonal that change eigenvalues by less than that


@jit
def copy(source: Floats, target: Floats) -> None:
    """Target becomes source."""
    for i in range(source.shape[0]):
        target[i] = source[i]


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
def scoring_step(w: Work, F: int) -> int:
    """w.L becomes a factor of the positive part of D - |F| S^-1 G S^-1; returns its columns.

    With the mean of P for each P_j it is a step of Fisher's scoring, and the best D where data sets
    have equal A_j.
    """
    random: int = w.L.shape[0]
    D, V, X = w.D, w.eigenvectors, w.trial
    if not cholesky(w.S, V, random, 0.0):
        return random
    for a in range(random):
        for b in range(random):
            w.unit[b] = w.G[a, b]
        solve(V, random, w.unit)
        for b in range(random):
            X[b, a] = w.unit[b]
    for a in range(random):
        for b in range(random):
            w.unit[b] = X[a, b]
        solve(V, random, w.unit)
        for b in range(random):
            v = 0.0
            for c in range(random):
                v += w.L[a, c] * w.L[b, c]
            D[a, b] = v - F * w.unit[b]
    eigen(D, V, random, _OFF)
    k = 0
    copy_columns(w.L, w.L, 0)
    for b in range(random):
        if D[b, b] > 0.0:
            root = math.sqrt(D[b, b])
            for a in range(random):
                w.L[a, k] = root * V[a, b]
            k += 1
    return k


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
def rescale(s: Space, w: Work, k: int) -> bool:
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
                square += w.L[s.perm[i], h] ** 2
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
