"""Missing cells: what all data sets have in common, and statistics of completed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.constants import CONSTANT_TOLERANCE
from poolbn.moments.draws import draw, drawn_cell
from poolbn.moments.em import (
    Complete,
    Estimate,
    Prior,
    Problem,
    expected,
    inverse,
    maximise,
    problem,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poolbn.moments.patterns import Gaps

    Floats = NDArray[np.float64]

_STEPS, _TOLERANCE = 30, 1e-4  # what data sets are lent need not be exact
_AT_MEAN = 0.1, 10.0  # bounds of the rows at the mean that they are lent


class Moments(NamedTuple):
    """Means (F, N) and scatter matrices (F, N, N) of completed rows, in the units of the data."""

    mean: Floats
    scatter: Floats


class _Part(NamedTuple):
    """A data set with gaps.

    Attributes:
        use: columns that it measured, and that vary, (N,).
        constant: the values of those that do not, NaN for others, (N,).
        rows: its rows, of columns that are used.
        maximum: what EM found of these.
    """

    use: NDArray[np.bool_]
    constant: Floats
    rows: Problem
    maximum: Estimate


@dataclass(frozen=True, eq=False)
class Completion:
    """Data sets with missing cells, and what EM found of them.

    Attributes:
        center: what columns are measured from, (N,).
        scale: their unit, (N,).
        prior: what data sets are lent.
        known: rows without gaps of each data set, in the units of the data.
        parts: data sets with gaps, None for the others.
    """

    center: Floats
    scale: Floats
    prior: Prior
    known: Sequence[Complete]
    parts: Sequence[_Part | None]

    @property
    def steps(self) -> int:
        """The most that EM made in a data set."""
        return max((part.maximum.steps for part in self.parts if part), default=0)

    def expected(self) -> Moments:
        """The expected statistics, given the observed cells; without gaps they are unchanged."""
        return self._moments(
            [None if part is None else self._expected(part) for part in self.parts]
        )

    def drawn(self, rng: np.random.Generator) -> Moments:
        """The statistics that completed rows may have had."""
        return self._moments(
            [None if part is None else self._drawn(part, rng) for part in self.parts]
        )

    def _moments(self, found: Sequence[Complete | None]) -> Moments:
        unit = np.outer(self.scale, self.scale)
        mean = [
            known.mean if own is None else self.center + self.scale * own.mean
            for known, own in zip(self.known, found, strict=True)
        ]
        scatter = [
            known.scatter if own is None else unit * own.scatter
            for known, own in zip(self.known, found, strict=True)
        ]
        return Moments(np.array(mean), np.array(scatter))

    def _expected(self, part: _Part) -> Complete:
        mean, cov = part.maximum.mean, part.maximum.cov
        sums = expected(part.rows, mean, *inverse(cov))
        n = part.rows.n_rows
        shift = sums.first / n
        own = Complete(n, mean + shift, sums.second - n * np.outer(shift, shift))
        use = part.use
        if use.all():
            return own
        # Columns that the data set never measured follow the others as in the prior.
        B = np.zeros((len(use), int(use.sum())))
        B[use] = np.eye(B.shape[1])
        B[~use] = _slopes(self.prior.cov, use)
        scatter = B @ own.scatter @ B.T
        left = self.prior.cov - B @ self.prior.cov[np.ix_(use, use)] @ B.T
        scatter[np.ix_(~use, ~use)] += n * left[np.ix_(~use, ~use)]
        mean = B @ (own.mean - self.prior.mean[use]) + self.prior.mean
        return _with_constants(Complete(n, mean, (scatter + scatter.T) / 2), part.constant)

    def _drawn(self, part: _Part, rng: np.random.Generator) -> Complete:
        use, prior = part.use, self.prior.select(part.use)
        about = part.rows.n_cells / len(prior.mean)
        own = draw(part.rows, prior, part.maximum.mean, part.maximum.cov, about, rng)
        if use.all():
            return own
        mean, scatter = np.zeros(len(use)), np.zeros((len(use), len(use)))
        mean[use], scatter[np.ix_(use, use)] = own.mean, own.scatter
        whole = Complete(own.n, mean, scatter)
        K, _ = inverse(self.prior.cov)
        lacks, has = np.flatnonzero(~use), np.flatnonzero(use)
        filled = drawn_cell(whole, lacks, has, self.prior.mean, K, rng)
        return _with_constants(filled, part.constant)


def _with_constants(own: Complete, constant: Floats) -> Complete:
    known = ~np.isnan(constant)
    scatter = np.where(known[:, None] | known, 0.0, own.scatter)
    return Complete(own.n, np.where(known, constant, own.mean), scatter)


def complete(gaps: Gaps, known: Sequence[Complete], rows: float) -> Completion:
    """EM in each data set that has gaps.

    Args:
        gaps: rows with missing cells.
        known: the others, for each data set.
        rows: how many each data set is lent.
    """
    seen = _observed(gaps, known)
    center, scale = seen.units()
    unit = np.outer(scale, scale)
    gaps = gaps._replace(
        mean=(gaps.mean - center) / scale,
        scatter=gaps.scatter / unit,
        rows=(gaps.rows - center) / scale,
    )
    whole = [Complete(c.n, (c.mean - center) / scale, c.scatter / unit) for c in known]
    measured = seen.n > 0
    # A column that does not vary in a data set has its constant where it is missing too.
    varies = seen.squares > CONSTANT_TOLERANCE * seen.n * scale**2
    constant = measured & ~varies & (seen.n > 1)
    problems = [problem(gaps, each, j) for j, each in enumerate(whole)]
    prior = _prior(problems, measured, rows)

    def part(j: int, of: Problem) -> _Part | None:
        if of.n_rows == of.complete.n:
            return None
        use = measured[j] & ~constant[j]
        if not use.all():
            at, own = np.flatnonzero(use), whole[j]
            some = Complete(own.n, own.mean[use], own.scatter[np.ix_(use, use)])
            of = problem(gaps.select(at), some, j)
        values = np.where(constant[j], (seen.mean[j] - center) / scale, np.nan)
        return _Part(use, values, of, maximise(of, prior.select(use)))

    return Completion(center, scale, prior, known, [part(j, of) for j, of in enumerate(problems)])


class _Observed(NamedTuple):
    """Of the observed cells of each data set and column: number, mean, centred squares, (F, N)."""

    n: Floats
    mean: Floats
    squares: Floats

    def units(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each column, (N,) each."""
        count = np.maximum(self.n.sum(axis=0), 1)
        center = (self.n * self.mean).sum(axis=0) / count
        squares = (self.squares + self.n * (self.mean - center) ** 2).sum(axis=0)
        scale = np.sqrt(squares / count)
        return center, np.where(scale > 0, scale, 1.0)


def _observed(gaps: Gaps, known: Sequence[Complete]) -> _Observed:
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
    return _Observed(n, mean, squares)


def _prior(problems: Sequence[Problem], measured: NDArray[np.bool_], rows: float) -> Prior:
    """What data sets have in common: EM with a mean for each, and one covariance.

    One row with uncorrelated columns more keeps the covariance away from singular ones.
    """
    n = np.array([of.n_rows for of in problems])
    F, N = measured.shape
    weight = n[:, None] * measured
    weight = weight / np.maximum(weight.sum(axis=0), 1)
    mean, common, cov = np.zeros((F, N)), np.zeros(N), np.eye(N)
    at_mean = 1.0
    for _ in range(_STEPS):
        K, log_det = inverse(cov)
        total = np.eye(N)
        for j, of in enumerate(problems):
            found = expected(of, mean[j], K, log_det)
            shift = (found.first + at_mean * (common - mean[j])) / (n[j] + at_mean)
            about = np.outer(found.first, shift)
            total += found.second - about - about.T + n[j] * np.outer(shift, shift)
            mean[j] += shift
            use = measured[j]
            if not use.all():
                mean[j, ~use] = common[~use] + _slopes(cov, use) @ (mean[j] - common)[use]
        old, cov = cov, total / (n.sum() + 1)
        common = (weight * mean).sum(axis=0)
        between = (weight * (mean - common) ** 2).sum(axis=0)
        ratio = float(np.median(between / np.diagonal(cov)))
        at_mean = float(np.clip(1 / max(ratio, 1e-9), *_AT_MEAN))
        if np.abs(cov - old).max() < _TOLERANCE:
            break
    return Prior(rows, at_mean, common, cov)


def _slopes(cov: Floats, use: NDArray[np.bool_]) -> Floats:
    """Of columns that are not used on those that are."""
    return np.asarray(np.linalg.solve(cov[np.ix_(use, use)], cov[np.ix_(use, ~use)]).T)
