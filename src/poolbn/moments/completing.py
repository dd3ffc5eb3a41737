"""Missing cells: what all data sets have in common, and statistics of completed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolbn.constants import CONSTANT_TOLERANCE
from poolbn.moments.draws import draw, drawn_cell, fill_rows, parameters
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
        center: what the columns of each data set are measured from, (F, N).
        scale: their unit, about their SD in the data set, (F, N).
        priors: what each data set is lent, in these units.
        known: rows without gaps of each data set, in the units of the data.
        parts: data sets with gaps, None for the others.
    """

    center: Floats
    scale: Floats
    priors: Sequence[Prior]
    known: Sequence[Complete]
    parts: Sequence[_Part | None]

    @property
    def steps(self) -> int:
        """The most that EM made in a data set."""
        return max((part.maximum.steps for part in self.parts if part), default=0)

    def expected(self) -> Moments:
        """The expected statistics, given the observed cells; without gaps they are unchanged."""
        return self._moments(
            [part and self._expected(part, j) for j, part in enumerate(self.parts)]
        )

    def drawn(self, rng: np.random.Generator) -> Moments:
        """The statistics that completed rows may have had."""
        return self._moments(
            [part and self._drawn(part, j, rng) for j, part in enumerate(self.parts)]
        )

    def filled(self, j: int, rows: Floats, rng: np.random.Generator) -> Floats:
        """Rows (B, N) of data set j, NaN where a cell is missing, with draws in these."""
        part, center, scale = self.parts[j], self.center[j], self.scale[j]
        if part is None:
            return rows
        use, prior = part.use, self.priors[j].select(part.use)
        about = part.rows.n_cells / len(prior.mean)
        own = parameters(part.rows, prior, part.maximum.mean, part.maximum.cov, about, rng)
        known = np.isnan(part.constant) | ~np.isnan(rows)
        unit = np.where(known, (rows - center) / scale, part.constant)
        unit[:, use] = fill_rows(unit[:, use], *own, rng)
        if not use.all():
            unit = fill_rows(unit, self.priors[j].mean, self.priors[j].cov, rng)
        return np.where(np.isnan(rows), center + scale * unit, rows)

    def _moments(self, found: Sequence[Complete | None]) -> Moments:
        mean = np.array([known.mean for known in self.known])
        scatter = np.array([known.scatter for known in self.known])
        for j, own in enumerate(found):
            if own is not None:
                mean[j] = self.center[j] + self.scale[j] * own.mean
                scatter[j] = own.scatter * np.outer(self.scale[j], self.scale[j])
        return Moments(mean, scatter)

    def _expected(self, part: _Part, j: int) -> Complete:
        prior = self.priors[j]
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
        B[~use] = _slopes(prior.cov, use)
        scatter = B @ own.scatter @ B.T
        left = prior.cov - B @ prior.cov[np.ix_(use, use)] @ B.T
        scatter[np.ix_(~use, ~use)] += n * left[np.ix_(~use, ~use)]
        mean = B @ (own.mean - prior.mean[use]) + prior.mean
        return _with_constants(Complete(n, mean, (scatter + scatter.T) / 2), part.constant)

    def _drawn(self, part: _Part, j: int, rng: np.random.Generator) -> Complete:
        use, prior = part.use, self.priors[j].select(part.use)
        about = part.rows.n_cells / len(prior.mean)
        own = draw(part.rows, prior, part.maximum.mean, part.maximum.cov, about, rng)
        if use.all():
            return own
        mean, scatter = np.zeros(len(use)), np.zeros((len(use), len(use)))
        mean[use], scatter[np.ix_(use, use)] = own.mean, own.scatter
        whole = Complete(own.n, mean, scatter)
        K, _ = inverse(self.priors[j].cov)
        lacks, has = np.flatnonzero(~use), np.flatnonzero(use)
        filled = drawn_cell(whole, lacks, has, self.priors[j].mean, K, rng)
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
    seen = observed_moments(gaps, known)
    center, scale = seen.units()
    cell, row = gaps.data_set, gaps.rows_of
    gaps = gaps._replace(
        mean=(gaps.mean - center[cell]) / scale[cell],
        scatter=gaps.scatter / (scale[cell][:, :, None] * scale[cell][:, None, :]),
        rows=(gaps.rows - center[row]) / scale[row],
    )
    whole = [
        Complete(own.n, (own.mean - c) / s, own.scatter / np.outer(s, s))
        for own, c, s in zip(known, center, scale, strict=True)
    ]
    measured = seen.n > 0
    # A column that does not vary in a data set has its constant where it is missing too.
    constant = (seen.n > 1) & (seen.squares <= CONSTANT_TOLERANCE * seen.n * scale**2)
    problems = [problem(gaps, each, j) for j, each in enumerate(whole)]
    priors = _priors(problems, measured, center, scale, rows)

    def part(j: int, of: Problem) -> _Part | None:
        if of.n_rows == of.complete.n:
            return None
        use = measured[j] & ~constant[j]
        if not use.all():
            at, own = np.flatnonzero(use), whole[j]
            some = Complete(own.n, own.mean[use], own.scatter[np.ix_(use, use)])
            of = problem(gaps.select(at), some, j)
        values = np.where(constant[j], (seen.mean[j] - center[j]) / scale[j], np.nan)
        return _Part(use, values, of, maximise(of, priors[j].select(use)))

    return Completion(center, scale, priors, known, [part(j, of) for j, of in enumerate(problems)])


class Observed(NamedTuple):
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


def observed_moments(gaps: Gaps, known: Sequence[Complete]) -> Observed:
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
    return Observed(n, mean, squares)


def _priors(
    problems: Sequence[Problem],
    measured: NDArray[np.bool_],
    center: Floats,
    scale: Floats,
    rows: float,
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
    for _ in range(_STEPS):
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
        if np.abs(cov - old).max() < _TOLERANCE:
            break
    return [Prior(rows, at_mean, (common - c) / s, cov) for c, s in zip(center, scale, strict=True)]


def _slopes(cov: Floats, use: NDArray[np.bool_]) -> Floats:
    """Of columns that are not used on those that are."""
    return np.asarray(np.linalg.solve(cov[np.ix_(use, use)], cov[np.ix_(use, ~use)]).T)
