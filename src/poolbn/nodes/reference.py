"""The mixed-effects node in plain numpy: start reading here. The kernels are tested against it.

Data set j has the child y_j (n_j,) and Z_j = [1, parents] (n_j, q), of which only sums are needed:
A_j = Z_j'Z_j, c_j = Z_j'y_j, d_j = y_j'y_j. Its model is y_j = Z_j (beta + b_j) + e_j, with random
effects b_j ~ N(0, sigma_j^2 D) and residuals e_j ~ N(0, sigma_j^2 I) (eq. lmenode, by data set as
in eq. lmenode-split). Residual variances are shared: sigma_j = sigma (the paper's model); pooled:
sigma_j^2 ~ inverse gamma with shape a and scale a s; or separate: then the covariance of b_j is D.
Letters are those of the kernels' texts. Dense and slow; the kernels need no inverse.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Sums(NamedTuple):
    """Of the rows of F data sets: A (F, q, q), c (F, q), d (F,), n (F,)."""

    A: Array
    c: Array
    d: Array
    n: Array


class Terms(NamedTuple):
    """With V_j = D (I + A_j D)^-1, the covariance of b_j given y_j over sigma_j^2, at one beta."""

    V: Array  # (F, q, q)
    P: Array  # P_j = A_j - A_j V_j A_j = Z_j'W_j^-1 Z_j, W_j = I + Z_j D Z_j', (F, q, q)
    e: Array  # e_j = u_j - P_j beta, u_j = c_j - A_j V_j c_j, (F, q)
    logdet: Array  # log|W_j| = log|I + A_j D|, (F,)
    squares: Array  # q_j = (y_j - Z_j beta)'W_j^-1 (y_j - Z_j beta), (F,)
    beta: Array  # (q,)


def sums(Z: list[Array], y: list[Array]) -> Sums:
    """The sums of rows."""
    A = np.array([z.T @ z for z in Z])
    c = np.array([z.T @ v for z, v in zip(Z, y, strict=True)])
    return Sums(A, c, np.array([v @ v for v in y]), np.array([float(len(v)) for v in y]))


def divided(x: Sums, sigma2: Array) -> Sums:
    """Separate residuals: rows over sigma_j have variance 1, and the model is the shared one."""
    return Sums(x.A / sigma2[:, None, None], x.c / sigma2[:, None], x.d / sigma2, x.n)


def terms(x: Sums, D: Array, beta: Array | None = None) -> Terms:
    """At the given beta, or at the best one of shared and separate residuals."""
    I_DA = np.eye(len(D)) + D @ x.A
    V: Array = np.linalg.inv(I_DA) @ D
    P = x.A - x.A @ V @ x.A
    u = x.c - np.einsum("jab,jbc,jc->ja", x.A, V, x.c)
    if beta is None:
        beta = np.linalg.solve(P.sum(axis=0), u.sum(axis=0))  # generalised least squares
    squares = x.d - np.einsum("ja,jab,jb->j", x.c, V, x.c) - 2 * u @ beta + (P @ beta) @ beta
    return Terms(V, P, u - P @ beta, np.linalg.slogdet(I_DA)[1], squares, beta)


def deviance_shared(x: Sums, D: Array, *, reml: bool = False) -> tuple[float, Array]:
    """-2 log-likelihood of eq. lmenode at the best beta and sigma^2, and its gradient in D."""
    t = terms(x, D)
    S = t.P.sum(axis=0)
    df, rss = x.n.sum() - (len(D) if reml else 0), t.squares.sum()  # sigma^2 = rss / df
    f = t.logdet.sum() + df * (1 + math.log(2 * math.pi * rss / df))
    G = S - df / rss * t.e.T @ t.e
    if reml:
        f += np.linalg.slogdet(S)[1]
        G = G - (t.P @ np.linalg.solve(S, t.P)).sum(axis=0)
    return float(f), G


def deviance_pooled(x: Sums, D: Array, beta: Array, a: float, s: float) -> tuple[float, Array]:
    """-2 log-likelihood with sigma_j^2 integrated out: multivariate t; and its gradient in D."""
    t = terms(x, D, beta)
    v, g = a + x.n / 2, a * s + t.squares / 2  # of sigma_j^2 given y_j: shape and scale
    gammas = np.array([math.lgamma(k) - math.lgamma(a) for k in v])
    f = -2 * (gammas + a * math.log(a * s) - v * np.log(g)) + t.logdet + x.n * math.log(2 * math.pi)
    return float(f.sum()), t.P.sum(axis=0) - (t.e.T * (v / g)) @ t.e


def deviance_separate(x: Sums, D: Array, sigma2: Array) -> tuple[float, Array]:
    """-2 log-likelihood with a variance for each data set, and its gradient in D."""
    t = terms(divided(x, sigma2), D)
    f = t.logdet + x.n * np.log(2 * math.pi * sigma2) + t.squares
    return float(f.sum()), t.P.sum(axis=0) - t.e.T @ t.e


def blups(x: Sums, D: Array, beta: Array | None = None) -> Array:
    """Predicted random effects b_j = D e_j, (F, q); coefficients are beta + b_j."""
    return terms(x, D, beta).e @ D


def n_params(q: int, random: int, variances: int) -> int:
    """Fixed effects, (co)variances of the random effects, residual variances (eq. nparams)."""
    return q + random * (random + 1) // 2 + variances


def bic(loglik: float, params: int, n: float) -> float:
    """One node's term of eq. bic: the larger the better."""
    return loglik - math.log(n) / 2 * params


# What a prediction must say: mean, squared scale and degrees of freedom of the child at x (q,), a
# Student t. B is the covariance of beta (fixed_cov).


def known(z: Array, t: Terms, x: Sums, D: Array, B: Array, j: int, sigma2: float) -> Array:
    """In data set j, shared residuals: normal."""
    T = np.eye(len(D)) - t.V[j] @ x.A[j]  # coef_j = T_j beta + V_j c_j
    mean = z @ (t.beta + D @ t.e[j])
    return np.array([mean, sigma2 * (1 + z @ t.V[j] @ z) + z @ T @ B @ T.T @ z, math.inf])


def known_pooled(
    z: Array, t: Terms, x: Sums, D: Array, B: Array, j: int, a: float, s: float
) -> Array:
    """In data set j, pooled residuals: as shared ones with g / v for sigma^2, and 2v df."""
    v, g = a + x.n[j] / 2, a * s + t.squares[j] / 2
    mean, square, _ = known(z, t, x, D, B, j, g / v)
    return np.array([mean, square, 2 * v])


def new(z: Array, beta: Array, D: Array, B: Array, s: float, a: float = math.inf) -> Array:
    """In a new data set: s is sigma^2 of shared residuals, or pooled residuals have shape a."""
    return np.array([z @ beta, s * (1 + z @ D @ z) + z @ B @ z, 2 * a])


def alone(z: Array, x: Sums) -> Array:
    """One regression of all that is in the sums: complete pooling, or a data set on its own."""
    A, c, d, df = x.A.sum(axis=0), x.c.sum(axis=0), x.d.sum(), x.n.sum() - len(z)
    b = np.linalg.solve(A, c)
    sigma2 = (d - c @ b) / df  # unbiased
    return np.array([z @ b, sigma2 * (1 + z @ np.linalg.solve(A, z)), df])
