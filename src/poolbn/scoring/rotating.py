"""The likelihood ratio of nested mixed-effects models, with its null distribution by rotation.

The statistic compares the model of y given x and S with that of y given S. Its null distribution is
neither a chi-square nor a mixture of two, and depends on all parameters. But if y is independent of
x given S, whatever its regression on S and its residual variance are in a data set, then given
these the residual of y has no direction that is preferred: it is uniform on a sphere (Langsrud,
2005). So residuals are rotated at random in each data set, in terms of sufficient statistics, and
the test is exact for any statistic: its size does not depend on how well the model fits.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats, Positions
from poolbn.constants import RANK_TOLERANCE
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import StandardisedStats
from poolbn.nodes.poolings import Partial
from poolbn.scoring.local import LocalScores

_FIRST, _ALL = 99, 999  # rotations: at first, and where these leave it open
_ENOUGH = 20  # of the first that reach the statistic: no p-value that small
_SURE = 1e-4  # a p-value from which the first are enough
_TAIL = 0.1  # the share of rotations whose excess says how fast the tail falls


class Outcome(NamedTuple):
    """What a test found; numbers are those of `IndependenceTest`, NaN if nothing can be tested."""

    test: str
    used: Flags  # the data sets that count, (F,)
    statistic: float = math.nan
    df: float = math.nan
    df2: float = math.nan
    log_p: float = math.nan
    correlation: float = math.nan


class _Rotatable(NamedTuple):
    """Of one data set: cross products of x and y as S explains them, and what may be rotated."""

    explained: Floats  # (p,)
    root: Floats  # of what S leaves of the squares of x, in units of the residual of y, (p, r)
    space: float  # dimensions of the residual of y


def lr_test(
    data: StandardisedStats, model: Partial, y: int, x: Sequence[int], S: Sequence[int]
) -> Outcome:
    """Of a continuous column y and the columns of numbers of another, x, given those of others, S.

    The statistic is twice the difference of log-likelihoods with y as the response; where x is one
    column that is continuous, the mean of both ways. Data sets count in which x and y can vary
    together.
    """
    measured = ~data.unmeasured[:, [y, *x, *S]].any(axis=1)
    at = np.flatnonzero(measured)
    parts = [_parts(data, int(j), y, list(x), S) for j in at]
    used = np.zeros(len(data.n), dtype=bool)
    used[at] = [part.root.size > 0 for part in parts]
    if not used.any():
        return Outcome("lr", used)
    # Rotations go to data sets by what these are, not by where they stand in the table.
    order = sorted(range(len(at)), key=lambda i: (parts[i].space, *np.abs(parts[i].root).flat))
    rng = np.random.default_rng(_seed(parts))
    first = _logliks(data, model, y, x, S, at, _rotated(parts, order, rng, _FIRST))
    observed, drawn = first.statistic, first.rotated
    if not np.isfinite([observed, *drawn]).all():
        return Outcome("lr", used)
    reached = int((drawn >= observed).sum())
    log_p = _tail(observed, drawn) if reached == 0 else math.log((reached + 1) / (_FIRST + 1))
    if reached < _ENOUGH and log_p > math.log(_SURE):
        for _ in range((_ALL - _FIRST) // 100):
            more = _rotated(parts, order, rng, 100)
            drawn = np.append(drawn, _logliks(data, model, y, x, S, at, more).rotated)
        reached = int((drawn >= observed).sum())
        log_p = _tail(observed, drawn)
        log_p = log_p if reached == 0 else math.log((reached + 1) / (len(drawn) + 1))
    return Outcome("lr", used, max(observed, 0.0), first.parameters, log_p=log_p)


def _seed(parts: Sequence[_Rotatable]) -> int:
    """From the data, so that tests of other data have other rotations; without their order.

    With the same rotations for all, the errors of 999 draws would be those of every test.
    """
    size = math.fsum(float(np.abs(part.root).sum()) * part.space for part in parts)
    return zlib.crc32(f"{size:.7g}".encode())


def _parts(data: StandardisedStats, j: int, y: int, x: list[int], S: Sequence[int]) -> _Rotatable:
    scatter, (left, rank) = data.scatter[j], partial_scatter(data.scatter[j], (*x, y), S)
    own, vectors = np.linalg.eigh(left[:-1, :-1])
    squares, space = left[-1, -1], data.n[j] - 1 - rank
    free = own > RANK_TOLERANCE * max(scatter[x, x].max(), 1e-300)
    if squares <= RANK_TOLERANCE * scatter[y, y] or space < 2:
        free[:] = False
    explained = scatter[x, y] - left[:-1, -1]
    return _Rotatable(explained, vectors[:, free] * np.sqrt(own[free] * max(squares, 0.0)), space)


def partial_scatter(
    scatter: Floats, columns: Sequence[int], S: Sequence[int]
) -> tuple[Floats, int]:
    """What S leaves of the squares and products of some columns; and the rank of S."""
    given, own = list(S), list(columns)
    inner = scatter[np.ix_(given, given)]
    scale = np.sqrt(np.maximum(inner.diagonal(), 1e-300))
    values, vectors = np.linalg.eigh(inner / np.outer(scale, scale))
    fine = values > RANK_TOLERANCE
    half = scatter[np.ix_(own, given)] @ (vectors[:, fine] / np.sqrt(values[fine]) / scale[:, None])
    return scatter[np.ix_(own, own)] - half @ half.T, int(fine.sum())


def _rotated(
    parts: Sequence[_Rotatable], order: Sequence[int], rng: np.random.Generator, draws: int
) -> Floats:
    """Cross products of x with y after so many rotations, (F, draws, p)."""
    found = np.empty((len(parts), draws, len(parts[0].explained)))
    for i in order:
        explained, root, space = parts[i]
        r = root.shape[1]
        z = rng.normal(size=(draws, r))
        rest = rng.chisquare(space - r, draws) if 0 < r < space else np.zeros(draws)
        length = np.sqrt((z**2).sum(axis=1) + rest)
        found[i] = explained + (z / length[:, None]) @ root.T if r else explained
    return found


class _Compared(NamedTuple):
    statistic: float
    rotated: Floats
    parameters: int


def _logliks(
    data: StandardisedStats,
    model: Partial,
    y: int,
    x: Sequence[int],
    S: Sequence[int],
    at: Positions,
    rotated: Floats,
) -> _Compared:
    """The statistic of the data, and of M columns beside y that differ from it in x alone."""
    p, k, M = len(x), len(S), rotated.shape[1]
    columns = np.array([*S, *x, *[y] * (M + 1)], dtype=np.intp)
    scatter = data.scatter[np.ix_(at, columns, columns)]
    scatter[:, k : k + p, k + p + 1 :] = rotated.transpose(0, 2, 1)
    scatter[:, k + p + 1 :, k : k + p] = rotated
    names = tuple(f"{i:04d}" for i in range(len(columns)))
    rows = np.rint(data.n[at]).astype(np.int64)
    mean, none = data.mean[np.ix_(at, columns)], np.zeros(len(at), dtype=np.int64)
    made = GroupStats(names, tuple(data.levels[j] for j in at), rows, mean, scatter, none)
    scores = LocalScores(made, pooling=model, score="loglik")
    given, block = tuple(range(k)), tuple(range(k, k + p))
    ys = range(k + p, len(columns))
    less, more = [(ys[0], given)], [(v, (*given, *block)) for v in ys]
    if p == 1:
        less += [(block[0], given)]
        more += [(block[0], (*given, v)) for v in ys]
    values = scores(more).reshape(-1, M + 1) - scores(less)[:, None]
    statistics = 2 * values.mean(axis=0)
    larger, smaller = (sum(model.counts(size, len(at))) for size in (k + p, k))
    return _Compared(float(statistics[0]), statistics[1:], larger - smaller)


def _tail(statistic: float, drawn: Floats) -> float:
    """The log p-value of a statistic above all that were drawn: tails fall exponentially."""
    ordered = np.sort(drawn)
    most = max(int(_TAIL * len(drawn)), 5)
    excess = float((ordered[-most:] - ordered[-most - 1]).mean())
    return -math.log(len(drawn) + 1) - (statistic - float(ordered[-1])) / max(excess, 1e-12)
