"""Parameters that a node may have, drawn from what is known of them.

The same random numbers serve all draws, so that draws differ only by what is uncertain.

For multiple imputation only rows in which a node and all its parents are observed tell of its
parameters, so that draws are rather too wide than too narrow. With the information W_j of data set
j about its coefficients, and random effects with covariance R, those of the population are
uncertain with (sum P_j)^-1, P_j = (I + W_j R)^-1 W_j; given a change d of them those of data set j
change by (I + R W_j)^-1 d, and are uncertain with R (I + W_j R)^-1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.nodes.links import random_effects_cov

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MANY = 4  # data sets for each coefficient


# Parameters of imagined data sets


def around(coef: Floats, cov: Floats, df: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Coefficients of the data sets, (F, d), `draws` times: (draws * F, d); as they are for 0.

    Args:
        coef: (F, d).
        cov: (F, d, d).
        df: degrees of freedom, (F,).
        draws: how often.
        rng: where chance comes from.
    """
    if not draws:
        return coef
    z = rng.standard_normal((draws, *coef.shape))
    known = np.isfinite(df)
    chi2 = rng.chisquare(df[known], (draws, int(known.sum())))
    z[:, known] *= np.sqrt(df[known] / chi2)[..., None]
    return np.asarray((coef + np.einsum("jab,djb->dja", root(cov), z)).reshape(-1, coef.shape[1]))


def with_errors(cov: Floats, at: Floats, se: Floats) -> Floats:
    """Covariances of coefficients in data sets, (F, d, d), with other standard errors.

    Effects have the standard errors that `effects` tells of, which contain what is uncertain of
    variances between data sets, and so have levels where parents are at their means. Correlations
    of these are those of the fit.

    Args:
        cov: of C equations with q coefficients each, those of one after those of another; d = C q.
        at: where levels are known, (q - 1,); nothing for where parents are 0.
        se: standard errors, NaN for those of the fit, (F, d).
    """
    q = se.shape[-1]
    back = np.eye(q)  # from coefficients where the intercept is the level there
    back[0, 1 : len(at) + 1] = -at
    C, T = (np.kron(np.eye(len(cov[0]) // q), each) for each in (np.linalg.inv(back), back))
    cov = C @ cov @ C.T
    sd = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    correlation = cov * inverse[:, :, None] * inverse[:, None]
    np.einsum("jaa->ja", correlation)[:] = 1.0
    own = se.reshape(len(se), -1)
    wanted = np.where(np.isfinite(own), own, sd)
    return np.asarray(T @ (correlation * wanted[:, :, None] * wanted[:, None]) @ T.T)


class Population(NamedTuple):
    """Coefficients of the population of data sets, and how uncertain they are.

    Attributes:
        fixed: (d,).
        cov: (d, d).
        df: the least degrees of freedom of one.
        between: the covariance of those of data sets, (d, d).
    """

    fixed: Floats
    cov: Floats
    df: float
    between: Floats

    @staticmethod
    def of(
        fixed: Floats, cov: Floats | None, se: Floats, df: Floats, between: Floats
    ) -> Population:
        """With the standard errors of `effects`, which few data sets make wider than the fit does.

        Args:
            fixed: coefficients, (d,).
            cov: their covariance in the fit; None for 0.
            se: standard errors, NaN for those of the fit, (d,).
            df: degrees of freedom, (d,).
            between: the covariance of those of data sets, (d, d).
        """
        known = np.zeros_like(between) if cov is None else cov
        fitted = np.sqrt(np.diagonal(known))
        where = (fitted > 0) & np.isfinite(se)
        wider = np.divide(se, fitted, out=np.ones_like(fitted), where=where)
        least = float(np.min(df, where=np.isfinite(df) & (df > 0), initial=np.inf))
        return Population(fixed, known * np.outer(wider, wider), least, between)

    def draws(self, draws: int, rng: np.random.Generator) -> Floats:
        """Coefficients, (draws, d); without error for 0 draws: (1, d)."""
        if not draws:
            return self.fixed[None]
        errors = rng.standard_normal((draws, len(self.fixed))) @ root(self.cov).T
        if np.isfinite(self.df):
            errors *= np.sqrt(self.df / rng.chisquare(self.df, (draws, 1)))
        return np.asarray(self.fixed + errors)

    def new_data_sets(self, sets: int, draws: int, rng: np.random.Generator) -> Floats:
        """Coefficients of new data sets for each draw, (sets, d) or (draws * sets, d)."""
        fixed, R = self.draws(draws, rng), self.between
        b = _balanced(sets, len(R), rng) @ root(R).T
        return np.asarray((fixed[:, None] + b).reshape(-1, len(R)))


def _balanced(sets: int, d: int, rng: np.random.Generator) -> Floats:
    """Standard normal numbers in pairs of opposite sign, and if there are many with covariance I.

    What is linear in them has its mean without error, (sets, d); `sets` is even.
    """
    half = rng.standard_normal((sets // 2, d))
    if sets > _MANY * d:
        half = half @ np.linalg.inv(np.linalg.cholesky(half.T @ half / len(half))).T
    return np.concatenate([half, -half])


def root(cov: Floats) -> Floats:
    """A with AA' = cov, (..., d, d)."""
    value, vector = np.linalg.eigh(cov)
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0))[..., None, :])


# Parameters given the rows that are observed


class Observed(NamedTuple):
    """Rows in which a node and its parents are observed, sorted by data set.

    Attributes:
        values: cells of columns by name, (r,) each; codes of levels.
        x: those of the node, (r,).
        offsets: of the data sets, (F + 1,).
    """

    values: Mapping[str, Floats]
    x: Floats
    offsets: Integers

    @property
    def sets(self) -> Integers:
        """The data set of each row, (r,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Spread:
    """How uncertain coefficients are, (F, d); see above."""

    common: Floats  # a root of the covariance of the population's, (d, d)
    follow: Floats  # (F, d, d)
    own: Floats  # roots of the covariances of the data sets' own, (F, d, d)

    @staticmethod
    def of(W: Floats, R: Floats | None, prior: float) -> Spread:
        """From information (F, d, d) and covariances of random effects, (F, d, d) or None."""
        F, d, _ = W.shape
        eye = np.eye(d)
        if R is None:
            own = root(_symmetric(_inverse(W + prior * eye)))
            return Spread(np.zeros((d, d)), np.zeros((F, d, d)), own)
        P = np.linalg.solve(eye + W @ R, W)
        common = root(_symmetric(_inverse(P.sum(axis=0) + prior * eye)))
        follow = np.asarray(np.linalg.inv(eye + R @ W), dtype=np.float64)
        return Spread(common, follow, root(_symmetric(follow @ R)))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Changes of coefficients, (F, d)."""
        F, d, _ = self.own.shape
        shared = self.common @ rng.standard_normal(d)
        return (self.own @ rng.standard_normal((F, d, 1)))[..., 0] + self.follow @ shared


def _symmetric(A: Floats) -> Floats:
    return np.asarray((A + np.swapaxes(A, -1, -2)) / 2)


def _inverse(A: Floats) -> Floats:
    return np.asarray(np.linalg.pinv(_symmetric(A), hermitian=True))


def random_cov_in(
    fixed: Floats | None, random_cov: Floats | None, T: Floats, S: Floats, F: int
) -> Floats | None:
    """Covariances of random effects in the columns X T, (F, d, d); None without pooling."""
    if fixed is None:
        return None
    d = len(S) * T.shape[1]
    if random_cov is None:
        return np.zeros((F, d, d))
    back = np.linalg.pinv(T)
    return np.tile(random_effects_cov(back @ random_cov @ back.T, S), (F, 1, 1))


def dirichlet(alpha: Floats, rng: np.random.Generator) -> Floats:
    """Draws for each of alpha, (..., K); shares of alpha where all draws are 0."""
    drawn = rng.standard_gamma(alpha)
    drawn = np.where(drawn.sum(axis=-1, keepdims=True) > 0, drawn, alpha + 1e-300)
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))
