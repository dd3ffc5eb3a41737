"""What the minimiser's steps are made of, whatever the residual model; see `optimise`. Compiled.

They take the arrays of `Work` that they need: inlined with all of it, they compile and run slower.
"""

from __future__ import annotations

import math

import numpy as np

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, add, cholesky, dot, eigen, fill, jit, solve

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
def regauge(L: Floats, random: int, k: int, most: int, perm: Integers, D: Floats) -> int:
    """L becomes the pivoted Cholesky factor of LL', of at most so many columns; returns its rank.

    Rows from the random-th are 0. D (r, r) is work space.
    """
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


@jit
def em_step(L: Floats, G: Floats, D: Floats, eigenvectors: Floats, trial: Floats, F: int) -> float:
    """L becomes a factor of D - DGD / |F|, G the gradient; returns the largest diagonal of D.

    0 where that is not positive definite, and L stays.
    """
    random: int = L.shape[0]
    for a in range(random):  # X = L'G L, and the step is L (I - X / |F|) L'
        for b in range(random):
            v = 0.0
            for c in range(random):
                v += G[a, c] * L[c, b]
            trial[a, b] = v
    for a in range(random):
        for b in range(random):
            v = 0.0
            for c in range(random):
                v += L[c, a] * trial[c, b]
            D[a, b] = (1.0 if a == b else 0.0) - v / F
    if not cholesky(D, eigenvectors, random, 0.0):
        return 0.0
    largest = 0.0
    for a in range(random):
        square = 0.0
        for b in range(random):
            v = 0.0
            for c in range(b, random):
                v += L[a, c] * eigenvectors[c, b]
            trial[a, b] = v
            square += v * v
        largest = max(largest, square)
    copy_columns(trial, L, random)
    return largest


@jit
def scoring_step(
    L: Floats,
    G: Floats,
    S: Floats,
    D: Floats,
    eigenvectors: Floats,
    trial: Floats,
    unit: Floats,
    F: int,
) -> int:
    """L becomes a factor of the positive part of D - |F| S^-1 G S^-1; returns its columns.

    With the mean of P for each P_j it is a step of Fisher's scoring, and the best D where data sets
    have equal A_j.
    """
    random: int = L.shape[0]
    V, X = eigenvectors, trial
    if not cholesky(S, V, random, 0.0):
        return random
    for a in range(random):
        for b in range(random):
            unit[b] = G[a, b]
        solve(V, random, unit)
        for b in range(random):
            X[b, a] = unit[b]
    for a in range(random):
        for b in range(random):
            unit[b] = X[a, b]
        solve(V, random, unit)
        for b in range(random):
            v = 0.0
            for c in range(random):
                v += L[a, c] * L[b, c]
            D[a, b] = v - F * unit[b]
    eigen(D, V, random, _OFF)
    k = 0
    copy_columns(L, L, 0)
    for b in range(random):
        if D[b, b] > 0.0:
            root = math.sqrt(D[b, b])
            for a in range(random):
                L[a, k] = root * V[a, b]
            k += 1
    return k


@jit
def way_out(
    G: Floats,
    P: Floats,
    D: Floats,
    eigenvectors: Floats,
    unit: Floats,
    u: Floats,
    tolerance: float,
) -> float:
    """Leave a point that is stationary but not optimal: unit gets a column x with x'Gx < 0.

    Returns:
        How far. Along D + t xx' the deviance is f + t x'Gx + t^2/2 sum (x'Px)^2, nearly, and this
        is the t where it is least; 0 where that gains no more than the tolerance.
    """
    random: int = G.shape[0]
    copy_columns(G, D, random)
    eigen(D, eigenvectors, random, 1e-26)
    low = 0
    for a in range(random):
        if D[a, a] < D[low, low]:
            low = a
    slope: float = D[low, low]
    fill(u, 0, 0, 0.0)  # x'Px for each data set
    for a in range(random):
        unit[a] = eigenvectors[a, low]
        for c in range(random):
            add(u, 0, 0, eigenvectors[a, low] * eigenvectors[c, low], P, a, c)
    curvature: float = dot(u, 0, 0, u, 0, 0)
    if slope < 0.0 and slope * slope > 2.0 * tolerance * curvature:
        return -slope / curvature
    return 0.0


@jit
def widen(L: Floats, k: int, t: float, x: Floats, trial: Floats) -> None:
    """Trial becomes the k columns of L and t^1/2 x."""
    copy_columns(L, trial, k)
    for a in range(L.shape[0]):
        trial[a, k] = math.sqrt(t) * x[a]


@jit
def rescale(L: Floats, H: Floats, g: Floats, unit: Floats, perm: Integers, k: int) -> bool:
    """Measure steps in row a of L by (1 + D_aa)^1/2: rows can differ a thousandfold.

    The largest curvature becomes 1. False where the derivatives are not finite, or all zero.
    """
    random = L.shape[0]
    size = 0
    largest = 0.0
    for b in range(k):
        for i in range(b, random):
            square = 1.0
            for h in range(k):
                square += L[perm[i], h] ** 2
            unit[size] = math.sqrt(square)
            largest = max(largest, square * abs(H[size, size]))
            size += 1
    if size > 0 and not (0.0 < largest < np.inf):
        return False
    for x in range(size):
        unit[x] /= math.sqrt(largest)
        g[x] *= unit[x]
        for y in range(x + 1):
            H[x, y] *= unit[x] * unit[y]
    return True
