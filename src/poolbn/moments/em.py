"""Missing cells of continuous columns: EM in each data set, and draws of completed rows.

Rows of a data set are normal with its own mean mu and covariance Sigma, and cells are missing at
random. What is maximised is the likelihood of the observed cells with a normal-inverse-Wishart
penalty: as if there were a few rows more that have the covariance of all data sets, and some at
their mean,

    l(mu, Sigma) - v/2 [log|Sigma| + tr(Sigma^-1 S)] - k/2 (mu - m)' Sigma^-1 (mu - m).

S is the covariance inside data sets, with columns in units of their SD in each, and k the variance
inside over that between their means: data sets with similar means tell of each other's. A column
that a data set never measured follows the others as it does in S.

Draws are of sums alone. Let X (n, o) be the observed cells of rows that lack the same m ones,
centred, and E (n, m) what is left of the missing ones, normal with covariance C. Of E statistics
need X'E and E'E: the first is S^1/2 G C^1/2 with S = X'X and G standard normal, and of the second
what X does not explain is Wishart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.constants import CONSTANT_TOLERANCE, RANK_TOLERANCE
from poolbn.moments.patterns import ByPattern, Gaps, by_pattern
from poolbn.run.compiling import kernels

_STEPS = 2000
_TOLERANCE, _SMALL = 1e-11, 1e-8  # of the objective for each row and steps; of steps ahead


class CompleteRows(NamedTuple):
    """Rows without gaps of one data set: their number, mean (N,) and scatter (N, N)."""

    n: float
    mean: Floats
    scatter: Floats


class IncompleteRows(NamedTuple):
    """The rows of one data set; see `kernels.expect` for those with gaps."""

    complete: CompleteRows  # rows without gaps
    by: ByPattern  # the single ones of the others
    n: Floats  # of cells of the others
    mean: Floats
    scatter: Floats
    rows: Floats  # single ones, by pattern

    @property
    def n_rows(self) -> float:
        """Rows with and without gaps."""
        return float(self.complete.n + self.n.sum() + len(self.rows))

    @property
    def n_cells(self) -> float:
        """Cells that are there."""
        N, counts, cells = len(self.complete.mean), self.by.counts, self.by.cells
        in_cells = (N - counts[cells >= 0]) @ self.n[cells[cells >= 0]]
        in_rows = (N - counts) @ np.diff(self.by.begin)
        return float(N * self.complete.n + in_cells + in_rows)


def incomplete_rows(gaps: Gaps, complete: CompleteRows, j: int) -> IncompleteRows:
    """The rows of data set j."""
    cells, rows = np.flatnonzero(gaps.data_set == j), gaps.rows[gaps.rows_of == j]
    by = by_pattern(rows, gaps.missing[cells])
    mean, scatter = (np.ascontiguousarray(part[cells]) for part in (gaps.mean, gaps.scatter))
    n, ordered = gaps.n[cells].astype(np.float64), np.ascontiguousarray(rows[by.order])
    return IncompleteRows(complete, by, n, mean, scatter, ordered)


@dataclass(frozen=True)
class Prior:
    """The rows that a data set is lent: `rows` with this covariance, and `at_mean` at this mean."""

    rows: float
    at_mean: float
    mean: Floats
    cov: Floats

    def select(self, use: Flags) -> Prior:
        """Of some columns."""
        return Prior(self.rows, self.at_mean, self.mean[use], self.cov[np.ix_(use, use)])

    def penalty(self, mean: Floats, K: Floats, log_det: float) -> float:
        """What the objective has beside the likelihood."""
        away = mean - self.mean
        spread = self.rows * (log_det + (K * self.cov).sum())
        return float(-(spread + self.at_mean * (away @ K @ away)) / 2)


class Expected(NamedTuple):
    """Expected sums of x - mean and its products, and the log-likelihood of the observed cells."""

    first: Floats
    second: Floats
    loglik: float


def inverse(cov: Floats) -> tuple[Floats, float]:
    """The inverse and the log determinant."""
    L = np.linalg.cholesky(cov)
    half = np.linalg.inv(L)
    return half.T @ half, 2 * float(np.log(np.diagonal(L)).sum())


def expected(of: IncompleteRows, mean: Floats, K: Floats, log_det: float) -> Expected:
    """What is expected at these parameters."""
    N = len(mean)
    away = of.complete.mean - mean
    first = of.complete.n * away
    second = of.complete.scatter + of.complete.n * np.outer(away, away)
    terms = np.zeros(2)
    _, at, columns, counts, cells, begin = of.by
    sums = at, columns, counts, cells, of.n, of.mean, of.scatter, begin, of.rows
    kernels("expect").expect(mean, K, *sums, first, second, terms, np.empty((3, N, N)), np.empty(N))
    second = np.tril(second) + np.tril(second, -1).T
    squares = (K * second).sum() - terms[1]
    log_2pi = of.n_cells * math.log(2 * math.pi)
    loglik = -(log_2pi + of.n_rows * log_det + terms[0] + squares) / 2
    return Expected(first, second, float(loglik))


class Estimate(NamedTuple):
    """Of one data set: mean, covariance, the objective, and steps to get there."""

    mean: Floats
    cov: Floats
    objective: float
    steps: int


def _step(
    of: IncompleteRows, prior: Prior, mean: Floats, cov: Floats
) -> tuple[Floats, Floats, float]:
    """One step of EM, and the objective before it."""
    K, log_det = inverse(cov)
    found = expected(of, mean, K, log_det)
    objective = found.loglik + prior.penalty(mean, K, log_det)
    n = of.n_rows
    shift = (found.first + prior.at_mean * (prior.mean - mean)) / (n + prior.at_mean)
    new = mean + shift
    about = np.outer(found.first, shift)
    second = found.second - about - about.T + n * np.outer(shift, shift)
    away = new - prior.mean
    lent = prior.rows * prior.cov + prior.at_mean * np.outer(away, away)
    return new, (second + lent) / (n + prior.rows), objective


def _packed(mean: Floats, cov: Floats) -> Floats:
    """Parameters without bounds: the mean, and the Cholesky factor with logs on its diagonal."""
    L = np.linalg.cholesky(cov)
    i = np.arange(len(L))
    L[i, i] = np.log(L[i, i])
    return np.concatenate([mean, L[np.tril_indices(len(L))]])


def _unpacked(v: Floats, N: int) -> tuple[Floats, Floats]:
    L = np.zeros((N, N))
    L[np.tril_indices(N)] = v[N:]
    i = np.arange(N)
    L[i, i] = np.exp(L[i, i])
    return v[:N], L @ L.T


def maximise(of: IncompleteRows, prior: Prior) -> Estimate:
    """EM, with every third step far ahead where two others point (SQUAREM, Varadhan and Roland)."""
    mean, cov = prior.mean.copy(), prior.cov.copy()
    N = len(mean)
    if N == 0:
        return Estimate(mean, cov, 0.0, 0)
    for steps in range(0, _STEPS, 3):
        one_mean, one_cov, before = _step(of, prior, mean, cov)
        two_mean, two_cov, after = _step(of, prior, one_mean, one_cov)
        start, one, two = (
            _packed(*pair) for pair in ((mean, cov), (one_mean, one_cov), (two_mean, two_cov))
        )
        r, v = one - start, two - 2 * one + start
        mean, cov = two_mean, two_cov
        if np.abs(two - one).max() < _TOLERANCE or np.abs(r).max() < _TOLERANCE:
            return Estimate(mean, cov, after, steps)
        length = -max(1.0, math.sqrt((r @ r) / max(float(v @ v), 1e-300)))
        far_mean, far_cov = _unpacked(start - 2 * length * r + length**2 * v, N)
        try:
            new_mean, new_cov, ahead = _step(of, prior, far_mean, far_cov)
        except np.linalg.LinAlgError:
            continue
        if ahead >= after:
            mean, cov = new_mean, new_cov
            if ahead - before < _TOLERANCE * of.n_rows and np.abs(r).max() < _SMALL:
                return Estimate(mean, cov, ahead, steps)
    return Estimate(mean, cov, after, _STEPS)


_AUGMENTATIONS = 10  # of data augmentation, from parameters drawn around the maximum


def _around(
    of: IncompleteRows, prior: Prior, maximum: Estimate, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Mean and covariance, given the observed cells of a data set and what it is lent."""
    if not len(prior.mean):
        return maximum.mean, maximum.cov
    rows = of.n_cells / len(prior.mean)  # complete ones would tell about as much as are there
    mean, cov = _parameters(CompleteRows(rows, maximum.mean, rows * maximum.cov), prior, rng)
    for _ in range(_AUGMENTATIONS - 1):
        mean, cov = _parameters(_completed(of, mean, cov, rng), prior, rng)
    return mean, cov


def _parameters(own: CompleteRows, prior: Prior, rng: np.random.Generator) -> tuple[Floats, Floats]:
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


def _completed(
    of: IncompleteRows, mean: Floats, cov: Floats, rng: np.random.Generator
) -> CompleteRows:
    """Rows whose missing cells are drawn given these parameters, added up."""
    K, _ = inverse(cov)
    parts = [of.complete] if of.complete.n else []
    if len(of.rows):
        rows = _filled(of.rows, of.by, mean, K, rng)
        center = rows.mean(axis=0)
        parts.append(CompleteRows(float(len(rows)), center, (rows - center).T @ (rows - center)))
    for p in np.flatnonzero(of.by.cells >= 0):
        order = of.by.columns[of.by.at[p] : of.by.at[p + 1]]
        m, c = int(of.by.counts[p]), int(of.by.cells[p])
        cell = CompleteRows(of.n[c], of.mean[c], of.scatter[c])
        parts.append(drawn_cell(cell, order[:m], order[m:], mean, K, rng))
    return _sum(parts)


def fill_rows(rows: Floats, mean: Floats, cov: Floats, rng: np.random.Generator) -> Floats:
    """Rows (B, N) with draws in missing cells, given these parameters."""
    by = by_pattern(rows, np.zeros((0, len(mean)), dtype=bool))
    out = np.empty_like(rows)
    out[by.order] = _filled(rows[by.order], by, mean, inverse(cov)[0], rng)
    return out


def _filled(
    rows: Floats, by: ByPattern, mean: Floats, K: Floats, rng: np.random.Generator
) -> Floats:
    """Rows that are in order of what they lack, with draws in missing cells."""
    made, N = np.array(rows, order="C"), len(mean)
    work = rng.normal(size=made.shape), np.empty((N, N)), np.empty(N)
    kernels("expect").fill(mean, K, by.at, by.columns, by.counts, by.begin, made, *work)
    return made


def drawn_cell(
    cell: CompleteRows,
    lacks: Integers,
    has: Integers,
    mean: Floats,
    K: Floats,
    rng: np.random.Generator,
) -> CompleteRows:
    """One cell, completed."""
    m, o, N = len(lacks), len(has), len(mean)
    half = np.linalg.inv(np.linalg.cholesky(K[np.ix_(lacks, lacks)]))  # C = half' half
    B = np.zeros((N, o))
    B[has] = np.eye(o)
    B[lacks] = -half.T @ half @ K[np.ix_(lacks, has)]
    S = cell.scatter[np.ix_(has, has)]
    value, vector = np.linalg.eigh(S)
    given = value > RANK_TOLERANCE * value.max(initial=1e-300)
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
    return CompleteRows(cell.n, middle, scatter)


def _sum(parts: list[CompleteRows]) -> CompleteRows:
    n = sum(part.n for part in parts)
    mean = sum(part.n * part.mean for part in parts) / n
    scatter = sum(
        part.scatter + part.n * np.outer(part.mean - mean, part.mean - mean) for part in parts
    )
    return CompleteRows(n, np.asarray(mean), np.asarray(scatter))


_ROUNDS, _CLOSE = 30, 1e-4  # what data sets are lent need not be exact
_AT_MEAN = 0.1, 10.0  # bounds of the rows at the mean that they are lent


class _DataSet(NamedTuple):
    """A data set with gaps."""

    use: Flags  # columns that it measured, and that vary, (N,)
    constant: Floats  # the values of those that do not, NaN for others, (N,)
    rows: IncompleteRows  # its rows, of columns that are used
    maximum: Estimate  # what EM found of these


@dataclass(frozen=True, eq=False)
class Completion:
    """Data sets with missing cells, and what EM found of them."""

    center: Floats  # what the columns of each data set are measured from, (F, N)
    scale: Floats  # their unit, about their SD in the data set, (F, N)
    priors: Sequence[Prior]  # what each data set is lent, in these units
    known: Sequence[CompleteRows]  # rows without gaps of each data set, in the units of the data
    parts: Sequence[_DataSet | None]  # data sets with gaps, None for the others

    def expected(self) -> tuple[Floats, Floats]:
        """Expected means (F, N) and scatter (F, N, N), given the observed cells."""
        return self._moments(self._expected)

    def drawn(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Those that completed rows may have had."""
        return self._moments(partial(self._drawn, rng=rng))

    def fill(self, codes: Integers, rows: Floats, rng: np.random.Generator) -> Floats:
        """Rows (B, N) of these data sets, with draws in missing cells."""
        made = rows.copy()
        for j in range(len(self.known)):
            at = codes == j
            made[at] = self.filled(j, rows[at], rng)
        return made

    def filled(self, j: int, rows: Floats, rng: np.random.Generator) -> Floats:
        """Rows (B, N) of data set j, NaN where a cell is missing, with draws in these."""
        part, center, scale = self.parts[j], self.center[j], self.scale[j]
        if part is None:
            return rows
        use = part.use
        own = _around(part.rows, self.priors[j].select(use), part.maximum, rng)
        known = np.isnan(part.constant) | ~np.isnan(rows)
        unit = np.where(known, (rows - center) / scale, part.constant)
        unit[:, use] = fill_rows(unit[:, use], *own, rng)
        if not use.all():
            unit = fill_rows(unit, self.priors[j].mean, self.priors[j].cov, rng)
        return np.where(np.isnan(rows), center + scale * unit, rows)

    def _moments(self, completed: Callable[[_DataSet, int], CompleteRows]) -> tuple[Floats, Floats]:
        """In the units of the data; those of data sets without gaps are unchanged."""
        mean = np.array([known.mean for known in self.known])
        scatter = np.array([known.scatter for known in self.known])
        for j, part in enumerate(self.parts):
            if part is not None:
                own, scale = completed(part, j), self.scale[j]
                mean[j] = self.center[j] + scale * own.mean
                scatter[j] = own.scatter * np.outer(scale, scale)
        return mean, scatter

    def _expected(self, part: _DataSet, j: int) -> CompleteRows:
        prior = self.priors[j]
        mean, cov = part.maximum.mean, part.maximum.cov
        sums = expected(part.rows, mean, *inverse(cov))
        n = part.rows.n_rows
        shift = sums.first / n
        own = CompleteRows(n, mean + shift, sums.second - n * np.outer(shift, shift))
        use = part.use
        if use.all():
            return own
        # Columns that the data set never measured follow the others as in the prior.
        B = np.zeros((len(use), int(use.sum())))
        B[use] = np.eye(B.shape[1])
        B[~use] = _slopes(prior.cov, use)
        scatter = B @ own.scatter @ B.T
        left = prior.cov - B @ prior.cov[np.ix_(use, use)] @ B.T
        scatter[np.ix_(~use, ~use)] += n * left[np.ix_(~use, ~use)]
        mean = B @ (own.mean - prior.mean[use]) + prior.mean
        return _with_constants(CompleteRows(n, mean, (scatter + scatter.T) / 2), part.constant)

    def _drawn(self, part: _DataSet, j: int, rng: np.random.Generator) -> CompleteRows:
        use = part.use
        parameters = _around(part.rows, self.priors[j].select(use), part.maximum, rng)
        own = _completed(part.rows, *parameters, rng)
        if use.all():
            return own
        mean, scatter = np.zeros(len(use)), np.zeros((len(use), len(use)))
        mean[use], scatter[np.ix_(use, use)] = own.mean, own.scatter
        whole = CompleteRows(own.n, mean, scatter)
        K, _ = inverse(self.priors[j].cov)
        lacks, has = np.flatnonzero(~use), np.flatnonzero(use)
        filled = drawn_cell(whole, lacks, has, self.priors[j].mean, K, rng)
        return _with_constants(filled, part.constant)


def _with_constants(own: CompleteRows, constant: Floats) -> CompleteRows:
    known = ~np.isnan(constant)
    scatter = np.where(known[:, None] | known, 0.0, own.scatter)
    return CompleteRows(own.n, np.where(known, constant, own.mean), scatter)


def complete(gaps: Gaps, known: Sequence[CompleteRows], rows: float) -> Completion:
    """EM in each data set that has gaps, beside rows that are known; so many `rows` are lent."""
    seen = observed_moments(gaps, known)
    center, scale = seen.units()
    cell, row = gaps.data_set, gaps.rows_of
    gaps = gaps._replace(
        mean=(gaps.mean - center[cell]) / scale[cell],
        scatter=gaps.scatter / (scale[cell][:, :, None] * scale[cell][:, None, :]),
        rows=(gaps.rows - center[row]) / scale[row],
    )
    whole = [
        CompleteRows(own.n, (own.mean - c) / s, own.scatter / np.outer(s, s))
        for own, c, s in zip(known, center, scale, strict=True)
    ]
    measured = seen.n > 0
    # A column that does not vary in a data set has its constant where it is missing too.
    constant = (seen.n > 1) & (seen.squares <= CONSTANT_TOLERANCE * seen.n * scale**2)
    problems = [incomplete_rows(gaps, each, j) for j, each in enumerate(whole)]
    priors = _priors(problems, measured, center, scale, rows)

    def part(j: int, of: IncompleteRows) -> _DataSet | None:
        if of.n_rows == of.complete.n:
            return None
        use = measured[j] & ~constant[j]
        if not use.all():
            at, own = np.flatnonzero(use), whole[j]
            some = CompleteRows(own.n, own.mean[use], own.scatter[np.ix_(use, use)])
            of = incomplete_rows(gaps.select(at), some, j)
        values = np.where(constant[j], (seen.mean[j] - center[j]) / scale[j], np.nan)
        return _DataSet(use, values, of, maximise(of, priors[j].select(use)))

    return Completion(center, scale, priors, known, [part(j, of) for j, of in enumerate(problems)])


class ObservedMoments(NamedTuple):
    """Of the observed cells of each data set and column: number, mean, centred squares, (F, N)."""

    n: Floats
    mean: Floats
    squares: Floats

    def units(self) -> tuple[Floats, Floats]:
        """Mean and about the standard deviation in each data set, (F, N) each.

        As if one row more had the variance inside all data sets; a column that a data set lacks has
        the mean and the variance of the others.
        """
        count = np.maximum(self.n.sum(axis=0), 1)
        common = (self.n * self.mean).sum(axis=0) / count
        inside = self.squares.sum(axis=0) / count
        inside[inside == 0] = 1.0
        center = np.where(self.n > 0, self.mean, common)
        return center, np.sqrt((self.squares + inside) / (self.n + 1))


def observed_moments(gaps: Gaps, known: Sequence[CompleteRows]) -> ObservedMoments:
    """Of rows with missing cells, and of the others in each data set."""
    shape = len(known), gaps.rows.shape[1]
    there = gaps.n[:, None] * ~gaps.missing
    present = ~np.isnan(gaps.rows)
    n = np.zeros(shape) + np.array([c.n for c in known])[:, None]
    sums = n * np.array([c.mean for c in known])
    np.add.at(n, gaps.data_set, there)
    np.add.at(n, gaps.rows_of, present)
    np.add.at(sums, gaps.data_set, there * gaps.mean)
    np.add.at(sums, gaps.rows_of, np.where(present, gaps.rows, 0.0))
    mean = sums / np.maximum(n, 1)
    squares = np.array(
        [np.diagonal(c.scatter) + c.n * (c.mean - m) ** 2 for c, m in zip(known, mean, strict=True)]
    )
    own = np.einsum("jaa->ja", gaps.scatter) + there * (gaps.mean - mean[gaps.data_set]) ** 2
    np.add.at(squares, gaps.data_set, own)
    away = np.where(present, gaps.rows - mean[gaps.rows_of], 0.0)
    np.add.at(squares, gaps.rows_of, away**2)
    return ObservedMoments(n, mean, squares)


def _priors(
    problems: Sequence[IncompleteRows], measured: Flags, center: Floats, scale: Floats, rows: float
) -> list[Prior]:
    """What data sets have in common: EM with a mean for each, and one covariance in their units.

    One row with uncorrelated columns more keeps the covariance away from singular ones.
    """
    n = np.array([of.n_rows for of in problems])
    F, N = measured.shape
    weight = n[:, None] * measured
    weight = weight / np.maximum(weight.sum(axis=0), 1)
    common = (weight * center).sum(axis=0)
    mean, cov, at_mean = np.zeros((F, N)), np.eye(N), 1.0
    for _ in range(_ROUNDS):
        K, log_det = inverse(cov)
        total = np.eye(N)
        away = (common - center) / scale
        for j, of in enumerate(problems):
            found = expected(of, mean[j], K, log_det)
            shift = (found.first + at_mean * (away[j] - mean[j])) / (n[j] + at_mean)
            about = np.outer(found.first, shift)
            total += found.second - about - about.T + n[j] * np.outer(shift, shift)
            mean[j] += shift
            use = measured[j]
            if not use.all():
                mean[j, ~use] = away[j, ~use] + _slopes(cov, use) @ (mean[j] - away[j])[use]
        old, cov = cov, total / (n.sum() + 1)
        common = (weight * (center + scale * mean)).sum(axis=0)
        between = (weight * (mean - away) ** 2).sum(axis=0)
        ratio = float(np.median(between / np.diagonal(cov)))
        at_mean = float(np.clip(1 / max(ratio, 1e-9), *_AT_MEAN))
        if np.abs(cov - old).max() < _CLOSE:
            break
    return [Prior(rows, at_mean, (common - c) / s, cov) for c, s in zip(center, scale, strict=True)]


def _slopes(cov: Floats, use: Flags) -> Floats:
    """Of columns that are not used on those that are."""
    return np.asarray(np.linalg.solve(cov[np.ix_(use, use)], cov[np.ix_(use, ~use)]).T)
