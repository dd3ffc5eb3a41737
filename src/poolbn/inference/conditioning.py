"""Normal distributions given what was observed: many rows, patterns of evidence, data sets at once.

One normal distribution is conditioned for every (pattern of evidence, data set) and then applied to
all rows with that pattern. Patterns with about as many rows are worked on together, so that no
Python loop runs over rows or patterns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.constants import CERTAIN, RANK_TOLERANCE

_MOST_ROWS = 1024  # rows of one pattern that are worked on together
_NUMBERS = 2**19  # in the largest array of a chunk: what a core's cache holds is fast


@dataclass(frozen=True, eq=False)
class Conditioned:
    """What evidence says about T targets."""

    loglik: Floats  # log density of the evidence, (..., r)
    mean: Floats  # of the targets given the evidence, (..., r, T)
    cov: Floats  # of the targets given the evidence: the same for all values of it, (..., T, T)
    df: Floats  # degrees of freedom of each target; inf for a normal distribution, (..., r, T)


def condition(
    mean: Floats, cov: Floats, values: Floats, observed: Flags, targets: Integers
) -> Conditioned:
    """Condition normal distributions on evidence, each for r rows.

    With z = L^-1 (x_e - mu_e), LL' = Sigma_ee, the density of the evidence is that of z, and the
    targets have mean mu_t + V'z and covariance Sigma_tt - V'V, V = L^-1 Sigma_et. All is done on
    correlations, so units do not matter. A node that is not observed is one that is independent of
    all others and is at its mean: so all patterns of evidence have matrices of the same size.

    Evidence that is certain, by itself (after an intervention) or given the evidence before it,
    says nothing more: it is left out of the density if it agrees, else the density is 0. Either way
    targets are conditioned on the rest.

    Means and `observed` are (..., N), covariances (..., N, N), rows (..., r, N), in which anything
    may stand for what is not observed; targets are positions, (T,), and may be observed.
    """
    sd = np.sqrt(np.maximum(np.diagonal(cov, axis1=-2, axis2=-1), 0.0))
    size = np.abs(mean)
    scale = np.where(sd > 0, sd, np.where(size > 0, size, 1.0))
    corr = cov / (scale[..., :, None] * scale[..., None, :])
    among = corr * (observed[..., :, None] & observed[..., None, :])
    k = np.arange(mean.shape[-1])
    among[..., k, k] = np.where(observed, among[..., k, k], 1.0)
    whiten, root, used = _whitening(among, observed)

    known = observed[..., None, :]
    residual = (values - mean[..., None, :]) / scale[..., None, :]
    z = np.where(known, residual, 0.0) @ np.swapaxes(whiten, -1, -2)
    certain = observed & ~used
    impossible = np.zeros(z.shape[:-1], dtype=bool)
    if certain.any():
        np.any(certain[..., None, :] & (np.abs(z) > CERTAIN), axis=-1, out=impossible)
        z = np.where(used[..., None, :], z, 0.0)
    size_of = np.log(root * scale * math.sqrt(2 * math.pi), where=used, out=np.zeros_like(root))
    density = -0.5 * np.einsum("...k,...k->...", z, z) - size_of.sum(axis=-1)[..., None]

    V = whiten @ (corr[..., targets] * observed[..., :, None]) * used[..., :, None]
    within = corr[..., targets[:, None], targets] - np.swapaxes(V, -1, -2) @ V
    unit = scale[..., targets]
    return Conditioned(
        loglik=np.where(impossible, -np.inf, density),
        mean=mean[..., None, targets] + unit[..., None, :] * (z @ V),
        cov=within * unit[..., :, None] * unit[..., None, :],
        df=np.broadcast_to(math.inf, (*density.shape, len(targets))),
    )


def _whitening(S: Floats, observed: Flags) -> tuple[Floats, Floats, Flags]:
    """L^-1, the diagonal of L (..., N), and which evidence says something new (..., N).

    L is the Cholesky factor of S, (..., N, N). Where evidence is a combination of that before it,
    the column of L is empty, and the row of L^-1 gives how far it is from that combination.
    """
    L, inverse = np.zeros_like(S), np.zeros_like(S)
    roots, used = np.empty(S.shape[:-1]), np.empty(S.shape[:-1], dtype=bool)
    for k in range(S.shape[-1]):
        column = S[..., k:, k] - (L[..., k:, :k] @ L[..., k, :k, None])[..., 0]
        used[..., k] = new = column[..., 0] > RANK_TOLERANCE
        roots[..., k] = root = np.sqrt(np.where(new, column[..., 0], 1.0))
        L[..., k:, k] = np.where(new[..., None], column / root[..., None], 0.0)
        before = L[..., k, None, :k] @ inverse[..., :k, :k]
        inverse[..., k, :k] = -before[..., 0, :] / root[..., None]
        inverse[..., k, k] = 1.0 / root
    return inverse, roots, used & observed


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of P patterns of evidence, r of each."""

    rows: Integers  # positions; a pattern with fewer repeats its last one, (P, r)
    observed: Flags  # which nodes are evidence, (P, N)
    sets: Integers  # the data sets that a row may come from: the known one, or all, (P, C)


def chunks(observed: Flags, codes: Integers, data_sets: int) -> Iterator[Chunk]:
    """All rows, once, put together by pattern of evidence (n, N) and known data set or -1 (n,)."""
    pattern = patterns(observed) * (data_sets + 1) + codes + 1
    order = np.argsort(pattern, kind="stable")
    ordered = pattern[order]
    edge = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(edge, append=len(order))
    # A pattern with many rows becomes several blocks.
    pieces = -(-counts // _MOST_ROWS)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = np.repeat(edge, pieces) + _MOST_ROWS * (np.arange(len(first)) - first)
    count = np.minimum(np.repeat(edge + counts, pieces) - start, _MOST_ROWS)
    known = codes[order[start]] >= 0
    size = 1 << np.ceil(np.log2(count)).astype(np.int64)  # at most half of the rows are repeats
    for is_known in (True, False):
        for r in np.unique(size[known == is_known]).tolist():
            blocks = np.flatnonzero((known == is_known) & (size == r))
            C, N = 1 if is_known else data_sets, observed.shape[1]
            most = max(1, _NUMBERS // (C * N * max(r, N)))
            for at in range(0, len(blocks), most):
                block = blocks[at : at + most]
                within = np.minimum(np.arange(r), count[block, None] - 1)
                rows = order[start[block, None] + within]
                lead = rows[:, 0]
                every = np.broadcast_to(np.arange(data_sets), (len(block), data_sets))
                yield Chunk(rows, observed[lead], codes[lead, None] if is_known else every)


def patterns(observed: Flags) -> Integers:
    """Equal numbers for equal rows, (n,); some 30 columns at a time fit into a number."""
    n, N = observed.shape
    pattern = np.zeros(n, dtype=np.int64)
    for at in range(0, N, 30):
        for column in observed.T[at : at + 30]:
            pattern = 2 * pattern + column
        pattern = np.unique(pattern, return_inverse=True)[1]
    return pattern
