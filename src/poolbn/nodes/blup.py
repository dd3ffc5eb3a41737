"""Best linear unbiased prediction in one data set: random effects, and how uncertain they are."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.groupstats import GroupStats

Floats = NDArray[np.float64]

_RANK = 1e-9  # of the largest, where an eigenvalue of random effects' covariances is 0


def random_effects(
    family: GroupStats, beta: Floats, D: Floats, sigma2: float, j: int = 0
) -> tuple[Floats, Floats, float]:
    """Random effects of one data set (BLUP), (q,), and their covariance given its rows, (q, q).

    The third is (y - Z beta)'(I + Z D Z' / sigma2)^-1 (y - Z beta), the generalised residual
    squares.

    b = D Z'(sigma2 I + Z D Z')^-1 (y - Z beta) is, with D = LL' and M = sigma2 I + L'Z'Z L, the
    same as L M^-1 L'Z'(y - Z beta), and its covariance given the rows is sigma2 L M^-1 L'. So D may
    be singular, and only Z'Z and Z'y are needed.

    Args:
        family: the sufficient statistics of the parents and, last, the child.
        beta: fixed effects, (q,).
        D: covariance of the random effects, (q, q).
        sigma2: residual variance, positive unless D is zero.
        j: which data set of the statistics.
    """
    n, mean, scatter = float(family.n[j]), family.mean[j], family.scatter[j]
    q = len(beta)
    back = np.eye(q)
    back[0, 1:] = -mean[:-1]
    C, A = centred_gram(family, j)
    residual = np.empty(q)  # Z'(y - Z beta)
    residual[0] = n * (mean[-1] - C[0] @ beta)
    residual[1:] = scatter[:-1, -1] - scatter[:-1, :-1] @ beta[1:]

    D = C @ D @ C.T
    scale = np.sqrt(np.maximum(np.diagonal(D), 0.0))
    scale[scale == 0] = 1.0  # no random effect, no column of L
    value, vector = np.linalg.eigh(D / np.outer(scale, scale))
    positive = value > q * np.finfo(np.float64).eps
    L = scale[:, None] * vector[:, positive] * np.sqrt(value[positive])  # (q, r)
    M = sigma2 * np.eye(L.shape[1]) + L.T @ A @ L
    half = np.linalg.solve(np.linalg.cholesky(M), L.T)  # L M^-1 L' = half'half
    explained = half @ residual
    b = back @ (half.T @ explained)
    weights = np.append(-beta[1:], 1.0)
    squares = weights @ scatter @ weights + residual[0] ** 2 / max(n, 1.0) - explained @ explained
    half = np.sqrt(sigma2) * half @ back.T
    return b, half.T @ half, max(float(squares), 0.0)


def centred_gram(family: GroupStats, j: int) -> tuple[Floats, Floats]:
    """C and A = Z'Z of one data set with its parents centred at their means there, (q, q) each.

    Coefficients b become C b, of which the first is the mean of the child. Z'Z falls apart into n
    and the scatter, and columns far from zero cost no digits.
    """
    q = len(family.names)
    C, A = np.eye(q), np.zeros((q, q))
    C[0, 1:] = family.mean[j, :-1]
    A[0, 0], A[1:, 1:] = family.n[j], family.scatter[j, :-1, :-1]
    return C, A


class _Estimated(Protocol):
    """A linear regression with random effects, see `localfit.GaussianFit`."""

    @property
    def levels(self) -> tuple[Hashable, ...]: ...
    @property
    def coef_cov(self) -> Floats: ...
    @property
    def sigma2(self) -> Floats: ...
    @property
    def fixed_cov(self) -> Floats | None: ...
    @property
    def random_cov(self) -> Floats | None: ...
    @property
    def residual_scale(self) -> float | None: ...


def total_cov(fit: _Estimated, j: int, family: GroupStats | None) -> Floats:
    """The covariance of a data set's coefficients with all that is uncertain, (q, q).

    With partial pooling coef_j = beta + b_j, and given beta the mean of b_j is K (y_j - Z_j beta),
    with covariance S = `coef_cov`. So the covariance of coef_j is S + G V G', with V that of beta
    and G = I - K Z_j. With A_j = Z_j'Z_j that is I - S A_j / sigma2. Where A_j is not known, as for
    adapted data sets, it is S D^-1, as long as D can be inverted; else the same on the range of D,
    and I elsewhere, which leaves out how the two are related.

    Args:
        fit: the node.
        j: which of its data sets.
        family: the sufficient statistics of the parents and, last, the child, where they are known.
    """
    S = fit.coef_cov[j]
    if fit.random_cov is None or fit.fixed_cov is None:
        return np.asarray(S)
    G = np.eye(len(S))
    known = family is not None and fit.levels[j] in family.levels and fit.sigma2[j] > 0
    if S.any() and known and family is not None:
        C, A = centred_gram(family, family.levels.index(fit.levels[j]))
        G = np.linalg.solve(C, (np.eye(len(S)) - C @ S @ C.T @ A / fit.sigma2[j]) @ C)
    elif S.any():
        D = fit.random_cov
        if fit.residual_scale is not None:  # in proportion to residual variances
            D = D * (fit.sigma2[j] / fit.residual_scale)
        sd, inverse = _scaled_inverse(D)
        G -= (D - S) / np.outer(sd, sd) @ inverse
        G *= np.outer(sd, 1 / sd)
    return np.asarray(S + G @ fit.fixed_cov @ G.T)


def effective_df(D: Floats, S: Floats) -> Floats:
    """What of a data set's rows its random effects take, tr(V_j Z_j'Z_j), (F,).

    With the covariance D of random effects and S_j given the rows it is tr(I - D^-1 S_j), and where
    D cannot be inverted the same on its range.

    Args:
        D: (q, q).
        S: (F, q, q), in the same units.
    """
    if not D.any():
        return np.zeros(len(S))
    sd, inverse = _scaled_inverse(D)
    units = np.outer(sd, sd)
    rank = np.trace(inverse @ (D / units))
    left = np.einsum("ab,jba->j", inverse, S / units)
    return np.asarray(np.clip(rank - left, 0.0, rank))


def _scaled_inverse(D: Floats) -> tuple[Floats, Floats]:
    """Standard deviations, 1 for none, and the generalised inverse of D in these units."""
    sd = np.sqrt(np.diagonal(D))
    sd = np.where(sd > 0, sd, 1.0)
    return sd, np.linalg.pinv(D / np.outer(sd, sd), rcond=_RANK, hermitian=True)
