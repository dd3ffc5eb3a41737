"""Probabilities of levels and counts whose linear predictor is uncertain: normal. Compiled.

A regression says that the predictor of a row is normal around x'b with variance x'Vx. What is
asked for is the expected probability. Rows are independent, and all is done row by row.

Two levels: Gauss-Hermite rules, as many nodes as the variance needs for 1e-10. Counts, and larger
variances: the integrand is log-concave in the standardised predictor z. The trapezoidal rule around
its maximum, in steps that are short for its width and for the distance of its poles, converges
exponentially, and stops where nothing is added. Three levels and more: products of Gauss-Hermite
rules in the coordinates of a Cholesky factor; the trapezoidal rule where three levels need more.
"""

from __future__ import annotations

import math

import numba

from poolbn.kernels.lanes import Floats
from poolbn.kernels.linalg import Integers, cube, entry, integers, jit, matrix, vector

BERNOULLI, POISSON, NEGATIVE_BINOMIAL = range(3)
_STEPS = 100_000  # of the trapezoidal rule, in one direction
_WIDTH, _POLE = 0.55, 0.35  # steps, in widths of the integrand and in parts of 1 / SD
_ROUNDS = 60  # of Newton's method; a few do
_FURTHEST = 2.0  # that one of them moves the predictor
_PLANE = 0.9  # steps of the trapezoidal rule with three levels, in parts of 1 / SD
_RADIUS = 7.2  # how far they go
_MOST_STEPS = 64  # in one direction
_FAR = 300.0  # a predictor where probabilities are 0 or 1


@jit
def _log_likelihood(family: int, y: float, eta: float, theta: float) -> tuple[float, float, float]:
    """But for what does not depend on eta; its derivative, and minus the second one."""
    if family == POISSON:
        mean = math.exp(min(eta, 700.0))
        return y * eta - mean, y - mean, mean
    size = 1.0 if family == BERNOULLI else y + theta
    shift = 0.0 if family == BERNOULLI else math.log(theta)
    t = eta - shift
    e = math.exp(-abs(t))
    softplus = max(t, 0.0) + math.log1p(e)
    p = 1.0 / (1.0 + e) if t >= 0 else e / (1.0 + e)
    return y * eta - size * (softplus + shift), y - size * p, size * p * (1.0 - p)


@jit
def _constant(family: int, y: float, theta: float) -> float:
    """What a log-likelihood has beside that."""
    if family == BERNOULLI:
        return 0.0
    if family == POISSON:
        return -math.lgamma(y + 1.0)
    return (
        math.lgamma(y + theta) - math.lgamma(theta) - math.lgamma(y + 1.0) + theta * math.log(theta)
    )


@jit
def _around_the_maximum(family: int, y: float, mean: float, sd: float, theta: float) -> float:
    """The logarithm of the integral over z, by the trapezoidal rule."""
    z = 0.0
    if family != BERNOULLI:  # as if the count had a normal likelihood around its logarithm
        z = sd * (math.log(y + 0.5) - mean) / (sd * sd + 1.0 / (y + 0.5))
    slope, bend = 0.0, 0.0
    for _ in range(_ROUNDS):
        _, slope, bend = _log_likelihood(family, y, mean + sd * z, theta)
        step = (sd * slope - z) / (1.0 + sd * sd * bend)
        most = _FURTHEST / sd
        step = min(max(step, -most), most)
        z += step
        if abs(step) < 1e-6:
            break
    _, slope, bend = _log_likelihood(family, y, mean + sd * z, theta)
    h = min(_WIDTH / math.sqrt(1.0 + sd * sd * bend), _POLE / sd)
    top: float = _log_likelihood(family, y, mean + sd * z, theta)[0] - 0.5 * z * z
    total = 1.0
    for direction in (-1.0, 1.0):
        for k in range(1, _STEPS):
            at = z + direction * k * h
            value = _log_likelihood(family, y, mean + sd * at, theta)[0] - 0.5 * at * at
            term = math.exp(value - top)
            total += term
            if term < 1e-17 * total:
                break
    return top + math.log(total * h / math.sqrt(2.0 * math.pi))


@entry(numba.int64, vector, vector, vector, numba.float64, matrix, matrix, integers, vector, vector)
def log_integrals(
    family: int,
    y: Floats,
    mean: Floats,
    variance: Floats,
    theta: float,
    nodes: Floats,
    weights: Floats,
    sizes: Integers,
    limits: Floats,
    out: Floats,
) -> None:
    """Log probabilities of counts, or of the second of two levels where y is 1, else the first.

    Args:
        family: which of the three.
        y: (n,).
        mean: of the predictor, (n,).
        variance: of the predictor, (n,).
        theta: the dispersion of negative binomial counts.
        nodes: of R rules, (R, 64).
        weights: of the nodes, (R, 64).
        sizes: nodes of each rule, (R,).
        limits: the largest SD that each serves, (R,).
        out: (n,).
    """
    for i in range(len(y)):
        own = _constant(family, y[i], theta)
        if variance[i] <= 0.0:
            out[i] = own + _log_likelihood(family, y[i], mean[i], theta)[0]
            continue
        sd = math.sqrt(variance[i])
        if family != BERNOULLI or sd > limits[-1]:
            out[i] = own + _around_the_maximum(family, y[i], mean[i], sd, theta)
            continue
        rule = 0
        while limits[rule] < sd:
            rule += 1
        sign = 1.0 if y[i] > 0.5 else -1.0
        total = 0.0
        for k in range(sizes[rule]):
            t = sign * (mean[i] + sd * nodes[rule, k])
            e = math.exp(-abs(t))
            total += weights[rule, k] * (1.0 if t >= 0 else e) / (1.0 + e)
        out[i] = math.log(total) if total > 0.0 else sign * mean[i]


@jit
def _softmax(eta: Floats, p: Floats, weight: float) -> None:
    """Add the probabilities of predictors, the first level's is 0, times a weight; eta changes."""
    C = len(eta)
    top = 0.0
    for a in range(C):
        top = max(top, eta[a])
    first = math.exp(-top)
    total = first
    for a in range(C):
        eta[a] = math.exp(eta[a] - top)
        total += eta[a]
    weight /= total
    p[0] += weight * first
    for a in range(C):
        p[a + 1] += weight * eta[a]


@jit
def _plane(mean: Floats, L: Floats, z: Floats, w: Floats, n: int, B: Floats, p: Floats) -> None:
    """Add the expected probabilities of three levels, by n nodes and weights in each dimension.

    The exponential of the second predictor is a product, so that none is left in the inner loop.
    """
    for b in range(n):
        B[b] = math.exp(min(max(L[1, 1] * z[b], -_FAR), _FAR))
    for a in range(n):
        first = math.exp(min(max(mean[0] + L[0, 0] * z[a], -_FAR), _FAR))
        second = math.exp(min(max(mean[1] + L[1, 0] * z[a], -_FAR), _FAR))
        base = 1.0 + first
        s0, s1, t0, t1 = 0.0, 0.0, 0.0, 0.0
        for b in range(0, n - 1, 2):
            u = w[b] / (base + second * B[b])
            v = w[b + 1] / (base + second * B[b + 1])
            s0 += u
            s1 += v
            t0 += u * B[b]
            t1 += v * B[b + 1]
        if n % 2 == 1:
            u = w[n - 1] / (base + second * B[n - 1])
            s0 += u
            t0 += u * B[n - 1]
        p[0] += w[a] * (s0 + s1)
        p[1] += w[a] * first * (s0 + s1)
        p[2] += w[a] * second * (t0 + t1)


@jit
def _three_levels(
    mean: Floats, L: Floats, sd: float, z: Floats, w: Floats, n: int, work: Floats, p: Floats
) -> None:
    """The same by a Gauss-Hermite rule, or by the trapezoidal rule where n is 0."""
    if n > 0:
        _plane(mean, L, z, w, n, work[2], p)
        return
    m = min(math.ceil(_RADIUS * sd / _PLANE), _MOST_STEPS)
    h = _RADIUS / m
    for k in range(2 * m + 1):
        work[0, k] = (k - m) * h
        work[1, k] = h * math.exp(-0.5 * work[0, k] * work[0, k]) / math.sqrt(2.0 * math.pi)
    _plane(mean, L, work[0], work[1], 2 * m + 1, work[2], p)


@entry(matrix, cube, matrix, matrix, integers, vector, numba.int64, matrix, integers, matrix)
def softmax_integrals(
    mean: Floats,
    V: Floats,
    nodes: Floats,
    weights: Floats,
    sizes: Integers,
    limits: Floats,
    most: int,
    work: Floats,
    index: Integers,
    out: Floats,
) -> None:
    """Log probabilities of K = C + 1 levels.

    Args:
        mean: of the predictors of all levels but the first, (n, C).
        V: their covariances, (n, C, C); Cholesky factors take their place.
        nodes: as above; so are the next three.
        weights: likewise.
        sizes: likewise.
        limits: likewise.
        most: the largest rule that has not too many products; -1 for 2 C points in all.
        work: (3, the larger of C and 129).
        index: (C,).
        out: (n, K).
    """
    n, C = mean.shape
    eta = work[0, :C]
    for i in range(n):
        largest = 0.0
        for a in range(C):
            for b in range(a + 1):
                own = V[i, a, a] + (V[i, b, b] - 2.0 * V[i, a, b] if b < a else 0.0)
                largest = max(largest, own)
        p = out[i]
        for k in range(C + 1):
            p[k] = 0.0
        if largest <= 0.0:
            for a in range(C):
                eta[a] = mean[i, a]
            _softmax(eta, p, 1.0)
        else:
            L = V[i]
            for a in range(C):
                for b in range(a + 1):
                    s = L[a, b]
                    for k in range(b):
                        s -= L[a, k] * L[b, k]
                    if b < a:
                        L[a, b] = s / L[b, b] if L[b, b] > 0.0 else 0.0
                    else:
                        L[a, a] = math.sqrt(s) if s > 1e-14 * largest else 0.0
            if most < 0:
                for k in range(2 * C):
                    reach = math.sqrt(C) if k < C else -math.sqrt(C)
                    for a in range(C):
                        eta[a] = mean[i, a] + (reach * L[a, k % C] if a >= k % C else 0.0)
                    _softmax(eta, p, 0.5 / C)
            else:
                # Poles are nearer than with two levels, by two thirds.
                sd = 1.5 * math.sqrt(largest)
                rule = 0
                while rule < most and limits[rule] < sd:
                    rule += 1
                for a in range(C):
                    index[a] = 0
                if C == 2:
                    size = sizes[rule] if limits[rule] >= sd else 0
                    _three_levels(mean[i], L, sd, nodes[rule], weights[rule], size, work, p)
                while C > 2:
                    weight = 1.0
                    for a in range(C):
                        weight *= weights[rule, index[a]]
                        eta[a] = mean[i, a]
                        for k in range(a + 1):
                            eta[a] += L[a, k] * nodes[rule, index[k]]
                    _softmax(eta, p, weight)
                    a = 0
                    while a < C:
                        index[a] += 1
                        if index[a] < sizes[rule]:
                            break
                        index[a] = 0
                        a += 1
                    if a == C:
                        break
        for k in range(C + 1):
            p[k] = math.log(p[k]) if p[k] > 0.0 else -math.inf


@entry(matrix, integers, cube, cube, matrix, cube)
def predictors(
    X: Floats, sets: Integers, coef: Floats, cov: Floats, mean: Floats, V: Floats
) -> None:
    """Linear predictors of rows in their data sets, and their covariances.

    Args:
        X: (n, q).
        sets: data sets, (n,).
        coef: (F, C, q).
        cov: of the coefficients, those of one predictor after those of another, (F, C q, C q).
        mean: (n, C).
        V: (n, C, C).
    """
    n, q = X.shape
    C = coef.shape[1]
    for i in range(n):
        j = sets[i]
        for a in range(C):
            total = 0.0
            for k in range(q):
                total += coef[j, a, k] * X[i, k]
            mean[i, a] = total
            for b in range(a + 1):
                form = 0.0
                for k in range(q):
                    inner = 0.0
                    for m in range(q):
                        inner += cov[j, a * q + k, b * q + m] * X[i, m]
                    form += inner * X[i, k]
                V[i, a, b] = form
                V[i, b, a] = form
