"""Probabilities of levels and counts whose linear predictor is uncertain: normal. Compiled.

A regression says that the predictor of a row is normal around x'b with variance x'Vx. What is
asked for is the expected probability. Rows are independent, and all is done row by row.

Two levels: Gauss-Hermite rules, as many nodes as the variance needs for 1e-10. Counts, and larger
variances: the integrand is log-concave in the standardised predictor z. The trapezoidal rule around
its maximum, in steps that are short for its width and for the distance of its poles, converges
exponentially, and stops where nothing is added. Three levels: products of such rules, each as long
as its dimension needs. More levels: products of Gauss-Hermite rules in the coordinates of a
Cholesky factor.
"""

from __future__ import annotations

import math

import numba

from poolbn.kernels.elementary import exponential
from poolbn.kernels.lanes import (
    LANES,
    Floats,
    choose,
    fma,
    load,
    minus,
    padded,
    plus,
    product,
    quotient,
    spread,
    store,
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

BERNOULLI, POISSON, NEGATIVE_BINOMIAL = range(3)
_STEPS = 100_000  # of the trapezoidal rule, in one direction
_WIDTH, _POLE = 0.55, 0.35  # steps, in widths of the integrand and in parts of 1 / SD
_ROUNDS = 60  # of Newton's method; a few do
_FURTHEST = 2.0  # that one of them moves the predictor
_DIGITS = 26.0  # minus the logarithm of the error of the trapezoidal rule with three levels
_SURER = 1.25  # by which SDs with three levels count for more, in the choice of a rule
_RADIUS = 7.2  # how far they go
_MOST_STEPS = 128  # in one direction
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
        sums = spread(0.0)
        for k in range(0, sizes[rule], LANES):
            t = fma(spread(-sign * sd), load(nodes[rule], k), spread(-sign * mean[i]))
            below = plus(spread(1.0), exponential(t))
            sums = plus(sums, quotient(load(weights[rule], k), below))
        p = total(sums)
        out[i] = math.log(p) if p > 0.0 else sign * mean[i]


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


@callable_from_python
def _bounded(x: Floats) -> Floats:
    """Eight predictors, none of them further from 0 than makes a difference."""
    high, low = spread(_FAR), spread(-_FAR)
    x = choose(minus(x, high), high, x)
    return choose(minus(low, x), low, x)


@jit
def _rule(
    sd: float,
    nodes: Floats,
    weights: Floats,
    sizes: Integers,
    limits: Floats,
    most: int,
    z: Floats,
    w: Floats,
) -> int:
    """Put the nodes and weights of one dimension into z and w, zeros after them; how many."""
    rule = 0
    while rule < most and limits[rule] < _SURER * sd:
        rule += 1
    if limits[rule] >= _SURER * sd:
        n = int(sizes[rule])
        for k in range(0, n, LANES):
            store(z, k, load(nodes[rule], k))
            store(w, k, load(weights[rule], k))
        return n
    # Poles are d from the real line, where the normal density is exp(d^2 / 2) times as high: steps
    # of h have an error of exp(d^2 / 2 - 2 pi d / h).
    d = math.pi / sd
    m = min(math.ceil(_RADIUS * (_DIGITS + 0.5 * d * d) / (2.0 * math.pi * d)), _MOST_STEPS)
    h = _RADIUS / m
    n = 2 * m + 1
    for k in range(padded(n)):
        z[k] = (k - m) * h
    half, unit = spread(-0.5), spread(h / math.sqrt(2.0 * math.pi))
    for k in range(0, n, LANES):
        at = load(z, k)
        store(w, k, product(unit, exponential(product(half, product(at, at)))))
    for k in range(n, padded(n)):
        w[k] = 0.0
    return n


@jit
def _three_levels(
    mean: Floats,
    V: Floats,
    nodes: Floats,
    weights: Floats,
    sizes: Integers,
    limits: Floats,
    most: int,
    work: Floats,
    p: Floats,
) -> None:
    """Expected probabilities of three levels.

    Let r and s be the levels whose utilities differ with the largest variance, t the third. In
    terms of s - r and t - r, the first dimension moves t by less than s, and the second moves t
    alone. So along each the integrand's poles are pi / L_00 and pi / L_11 from the real line, and
    L_11 is as small as can be: few nodes.
    """
    v01, v02 = V[0, 0], V[1, 1]
    v12 = v01 + v02 - 2.0 * V[0, 1]
    r, s, t = 0, 1, 2
    if v02 >= v01 and v02 >= v12:
        r, s, t = 0, 2, 1
    elif v12 >= v01:
        r, s, t = 1, 2, 0
    largest = max(v01, v02, v12)
    third, other = v02, v12  # variances of t - r and of t - s
    if t == 1:
        third = v01
    if t == 0:
        third, other = v01, v02
    up = mean[s - 1] - (mean[r - 1] if r > 0 else 0.0)
    aside = (mean[t - 1] if t > 0 else 0.0) - (mean[r - 1] if r > 0 else 0.0)
    L00 = math.sqrt(largest)
    L10 = 0.5 * (largest + third - other) / L00
    left = third - L10 * L10
    L11 = math.sqrt(left) if left > 1e-14 * largest else 0.0
    za, wa, zb, wb, B = work[0], work[1], work[2], work[3], work[4]
    n = _rule(L00, nodes, weights, sizes, limits, most, za, wa)
    q = _rule(L11, nodes, weights, sizes, limits, most, zb, wb)
    # The exponential of t's utility is a product, so that none is left in the inner loop. Eight
    # nodes of the first dimension at a time.
    for b in range(0, q, LANES):
        store(B, b, exponential(_bounded(product(spread(L11), load(zb, b)))))
    one, pr, ps, pt = spread(1.0), spread(0.0), spread(0.0), spread(0.0)
    for a in range(0, n, LANES):
        at, weight = load(za, a), load(wa, a)
        first = exponential(_bounded(fma(spread(L00), at, spread(up))))
        second = exponential(_bounded(fma(spread(L10), at, spread(aside))))
        base = plus(one, first)
        x, y = spread(0.0), spread(0.0)
        for b in range(q):
            own = spread(B[b])
            u = quotient(spread(wb[b]), fma(second, own, base))
            x = plus(x, u)
            y = fma(u, own, y)
        x = product(weight, x)
        pr = plus(pr, x)
        ps = fma(first, x, ps)
        pt = fma(second, product(weight, y), pt)
    p[r], p[s], p[t] = total(pr), total(ps), total(pt)


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
        work: (5, the larger of C and 264).
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
        elif C == 2:
            _three_levels(mean[i], V[i], nodes, weights, sizes, limits, most, work, p)
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
                while True:
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
