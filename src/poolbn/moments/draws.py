"""Missing cells: draws of the sufficient statistics that complete rows would have had.

From sums alone. Let X (n, o) be the observed cells of rows that lack the same m ones, centred, and
E (n, m) what is left of the missing ones, normal with covariance C. Of E statistics need X'E and
E'E: the first is S^1/2 G C^1/2 with S = X'X and G standard normal, and of the second what X does
not explain is Wishart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poolbn.constants import RANK_TOLERANCE
from poolbn.moments.em import Complete, Prior, Problem, inverse
from poolbn.moments.patterns import by_pattern
from poolbn.run.compiling import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_STEPS = 10  # of data augmentation, from parameters drawn around the maximum


def draw(
    of: Problem, prior: Prior, mean: Floats, cov: Floats, rows: float, rng: np.random.Generator
) -> Complete:
    """Statistics of completed rows of one data set.

    Args:
        of: the rows.
        prior: what they were lent.
        mean: the maximum, (N,).
        cov: likewise, (N, N).
        rows: about as many complete rows would tell as much.
        rng: draws.
    """
    mean, cov = parameters(of, prior, mean, cov, rows, rng)
    return _completed(of, mean, cov, rng)


def parameters(
    of: Problem, prior: Prior, mean: Floats, cov: Floats, rows: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Mean and covariance, given the observed cells; arguments are those of `draw`."""
    mean, cov = _parameters(Complete(rows, mean, rows * cov), prior, rng)
    for _ in range(_STEPS - 1):
        mean, cov = _parameters(_completed(of, mean, cov, rng), prior, rng)
    return mean, cov


def _parameters(own: Complete, prior: Prior, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Mean and covariance, given complete rows: normal and inverse Wishart."""
    n, k = own.n, prior.at_mean
    away = own.mean - prior.mean
    spread = own.scatter + prior.rows * prior.cov + n * k / (n + k) * np.outer(away, away)
    N = len(away)
    half = np.linalg.cholesky(spread)
    A = _bartlett(max(n + prior.rows - 1, N + 1.0), N, rng)
    root = np.linalg.solve(A, half.T).T  # Sigma = half (AA')^-1 half'
    middle = (n * own.mean + k * prior.mean) / (n + k)
    return middle + root @ rng.normal(size=N) / np.sqrt(n + k), root @ root.T


def _bartlett(df: float, size: int, rng: np.random.Generator) -> Floats:
    """Lower A with AA' Wishart; with df < size it has df columns, the triangle of a wide QR."""
    i = np.arange(min(int(df), size))
    A = np.tril(rng.normal(size=(size, len(i))), -1)
    A[i, i] = np.sqrt(rng.chisquare(df - i))
    return A


def _completed(of: Problem, mean: Floats, cov: Floats, rng: np.random.Generator) -> Complete:
    """Rows whose missing cells are drawn given these parameters, added up."""
    K, _ = inverse(cov)
    N = len(mean)
    parts = [of.complete] if of.complete.n else []
    if len(of.rows):
        rows = of.rows.copy()
        normals, work = rng.normal(size=rows.shape), (np.empty((N, N)), np.empty(N))
        kernels("expect").fill(
            mean, K, of.at, of.columns, of.counts, of.begin, rows, normals, *work
        )
        center = rows.mean(axis=0)
        parts.append(Complete(float(len(rows)), center, (rows - center).T @ (rows - center)))
    for p in np.flatnonzero(of.cells >= 0):
        order, m, c = of.columns[of.at[p] : of.at[p + 1]], int(of.counts[p]), int(of.cells[p])
        cell = Complete(of.n[c], of.mean[c], of.scatter[c])
        parts.append(drawn_cell(cell, order[:m], order[m:], mean, K, rng))
    return _sum(parts)


def fill_rows(rows: Floats, mean: Floats, cov: Floats, rng: np.random.Generator) -> Floats:
    """Rows (B, N) with draws in missing cells, given these parameters."""
    N = len(mean)
    order, at, columns, counts, _, begin = by_pattern(rows, np.zeros((0, N), dtype=bool))
    made = np.ascontiguousarray(rows[order])
    K, _ = inverse(cov)
    normals, work = rng.normal(size=made.shape), (np.empty((N, N)), np.empty(N))
    kernels("expect").fill(mean, K, at, columns, counts, begin, made, normals, *work)
    out = np.empty_like(made)
    out[order] = made
    return out


def drawn_cell(
    cell: Complete,
    lacks: NDArray[np.int64],
    has: NDArray[np.int64],
    mean: Floats,
    K: Floats,
    rng: np.random.Generator,
) -> Complete:
    """One cell, completed."""
    m, o, N = len(lacks), len(has), len(mean)
    half = np.linalg.inv(np.linalg.cholesky(K[np.ix_(lacks, lacks)]))  # C = half' half
    B = np.zeros((N, o))
    B[has] = np.eye(o)
    B[lacks] = -half.T @ half @ K[np.ix_(lacks, has)]
    S = cell.scatter[np.ix_(has, has)]
    value, vector = np.linalg.eigh(S)
    given = value > RANK_TOLERANCE * max(float(value[-1]), 1e-300)
    rank = min(int(given.sum()), int(cell.n) - 1)
    given &= np.arange(o) >= o - rank
    G = rng.normal(size=(rank, m))
    cross = (vector[:, given] * np.sqrt(value[given])) @ G @ half  # X'E
    left = int(cell.n) - 1 - rank
    A = _bartlett(left, m, rng)
    within = half.T @ (G.T @ G + A @ A.T) @ half  # E'E
    scatter = B @ S @ B.T
    both = B @ cross
    scatter[:, lacks] += both
    scatter[lacks] += both.T
    scatter[np.ix_(lacks, lacks)] += within
    middle = mean + B @ (cell.mean - mean)[has]
    middle[lacks] += rng.normal(size=m) @ half / np.sqrt(cell.n)
    return Complete(cell.n, middle, scatter)


def _sum(parts: list[Complete]) -> Complete:
    n = sum(part.n for part in parts)
    mean = sum(part.n * part.mean for part in parts) / n
    scatter = sum(
        part.scatter + part.n * np.outer(part.mean - mean, part.mean - mean) for part in parts
    )
    return Complete(n, np.asarray(mean), np.asarray(scatter))
