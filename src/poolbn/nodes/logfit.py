"""What tables of probabilities and regressions from rows share: effects on log odds or log means.

Effects, and how sure they are with few data sets, are found when a node is fitted and are held in
the fit, so that a saved network can tell them: effects and their errors, never counts of rows.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from poolbn.moments.data import Data
from poolbn.nodes.design import Basis, Design
from poolbn.nodes.equality import score_test
from poolbn.nodes.intervals import between_variances, from_spread, rubin, shrunk
from poolbn.nodes.links import LOGISTIC, Response, random_effects_cov
from poolbn.nodes.localfit import Floats, Integers, LocalFit
from poolbn.nodes.predicting import Values
from poolbn.nodes.rowscores import Equal, equal_effects, scores
from poolbn.nodes.shrinking import Told, error_sds, own_estimates
from poolbn.nodes.terms import Equality, Term, beyond_errors
from poolbn.nodes.unitmodes import Rows

_IMPUTATIONS = 20
_UNKNOWN = 5.0  # standard error of a logarithm that rows do not tell
_RARE = 1e-6  # probabilities below are taken for this
# Rows, or units, of a data set for each coefficient, below which their spread says too little.
_FEW_ROWS = 3
_USUAL = 0.975  # the quantile at which intervals are compared
_ALIKE = 1e-9  # log odds ratios of the same counts
_MOST = 150  # coefficients of the regression that a test of a table takes

_NO_LEVELS: tuple[Floats, Floats] = (np.empty(0), np.empty((0, 0)))


class LogEffects(NamedTuple):
    """Effects of q - 1 columns on C levels or a count: m = C (q - 1), those of one level together.

    Attributes:
        effect: in the population of data sets, (m,).
        se: (m,).
        df: degrees of freedom of Student's t, (m,).
        between_sd: standard deviation between data sets; NaN unless pooling is partial, (m,).
        new_se: of a new data set's effects around the population's, with the same degrees of
            freedom; NaN unless pooling is partial, (m,).
        own: effects in the data sets, as the model has them, (F, m).
        own_se: of these, which allows for what is not known of the variance between data sets,
            (F, m).
        at: values of the q - 1 columns; empty for tables, and where rows are not known.
        level_se: standard errors of each data set's levels where columns are at these values,
            (F, C); empty likewise, and NaN where that is what the fit says.
        equal: for each parent a test that its effects are the same everywhere: statistic and
            degrees of freedom of its chi-square, (p, 2).
    """

    effect: Floats
    se: Floats
    df: Floats
    between_sd: Floats
    new_se: Floats
    own: Floats
    own_se: Floats
    at: Floats
    level_se: Floats
    equal: Floats


class Estimates(NamedTuple):
    """Coefficients of a regression, as in `regression.RegressionFit`."""

    coef: Floats
    coef_cov: Floats
    fixed: Floats | None
    fixed_cov: Floats | None
    random_cov: Floats | None


def known_effects(found: Estimates) -> LogEffects:
    """Where rows are not known: coefficients and their errors as they are."""
    F, C, q = found.coef.shape
    own_se = np.sqrt(np.diagonal(found.coef_cov, axis1=1, axis2=2)).reshape(F, C, q)
    between = np.full((C, q), math.nan)
    if found.random_cov is not None:
        between[:] = np.sqrt(np.diagonal(found.random_cov))
    if found.fixed is None or found.fixed_cov is None:
        effect, df = found.coef.mean(axis=0), np.full((C, q), F - 1.0 if F > 1 else math.inf)
        se = found.coef.std(axis=0, ddof=1) / math.sqrt(F) if F > 1 else own_se[0]
    else:
        effect, df = found.fixed, np.full((C, q), math.inf)
        se = np.sqrt(np.diagonal(found.fixed_cov)).reshape(C, q)
    own, own_se = _slopes(found.coef), _slopes(own_se)
    of_all = (_slopes(effect), _slopes(se), _slopes(df), _slopes(between))
    new = np.hypot(of_all[1], of_all[3])
    return LogEffects(*of_all, new, own, own_se, *_NO_LEVELS, np.empty((0, 2)))


def _slopes(values: Floats) -> Floats:
    """Without intercepts, (..., m)."""
    return values[..., 1:].reshape(*values.shape[:-2], -1)


def regression_effects(
    rows: Rows,
    found: Estimates,
    spans: Sequence[range],
    vary: NDArray[np.bool_] | None,
    *,
    separated: bool,
    tests: bool = True,
) -> LogEffects:
    """The effects of a regression.

    Args:
        rows: of the family.
        found: the coefficients.
        spans: which columns after the intercept each parent is.
        vary: with partial pooling, whether effects of these columns vary between data sets.
        separated: whether a weak prior holds the coefficients.
        tests: whether to test if effects are equal, which takes most of the time.
    """
    known = known_effects(found)
    if tests:
        equal = [equal_effects(rows, [k + 1 for k in span]) for span in spans]
        known = known._replace(equal=as_tests(equal))
    if found.random_cov is None or found.fixed is None or vary is None:
        return known
    if separated:  # there are no estimates whose spread could be looked at
        return known._replace(df=np.full_like(known.df, max(len(found.coef) - 1.0, 1.0)))
    *of_all, sd, at = _population(rows, found, vary)
    se, df, new, own_se = map(_slopes, (*of_all, sd))
    F, _, q = found.coef.shape
    units = rows.design.units
    independent = rows.design.rows.sum() if units is None else len(np.unique(units))
    if independent < _FEW_ROWS * F * q:
        se = _as_wide_as_wald(se, known.se, df)
    own_se = np.where(np.isfinite(own_se), own_se, known.own_se)
    if not vary.all():  # effects that are the same everywhere are known as those of one regression
        same = np.tile(~vary, found.fixed.shape[0])
        se, df = np.where(same, known.se, se), np.where(same, known.df, df)
        new, own_se = np.where(same, known.se, new), np.where(same, known.se, own_se)
    return known._replace(se=se, df=df, new_se=new, own_se=own_se, at=at, level_se=sd[:, :, 0])


def as_tests(equal: Sequence[Equal]) -> Floats:
    """Statistics and degrees of freedom, (p, 2)."""
    return np.array(equal, dtype=np.float64).reshape(len(equal), 2)


def _population(
    rows: Rows, known: Estimates, vary: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Standard errors and degrees of freedom of the population's coefficients, (C, q) each.

    Then standard errors of a new data set's, (C, q), and of those of data sets, see `shrinking`,
    (F, C, q), with levels where columns are at their means, (q - 1,).

    The rule of Hartung and Knapp, see `intervals.hartung_knapp`, on the quadratic approximation of
    each data set's likelihood at its mode t_j: with the gradient g_j and the information W_j there
    its own estimate is b_j = t_j + W_j^-1 g_j. At a mode g_j = R^-1 (t_j - beta), so that the score
    P_j (b_j - beta), P_j = (W_j^-1 + R)^-1, is g_j itself: no inverse is needed.
    """
    assert known.random_cov is not None
    assert known.fixed_cov is not None
    F, C, q = known.coef.shape
    basis = Basis.of_rows(rows.design.X, rows.design.rows, vary)
    T = basis.T
    back = np.linalg.inv(T)
    varies = np.tile(np.arange(q) < basis.varying, C)
    at = known.coef @ back.T
    found = scores(rows.turned(rows.design.X @ T), at)
    W, e = found.information, found.gradient
    S = rows.response.S
    R = random_effects_cov(back @ known.random_cov @ back.T, S)
    M = np.linalg.inv(np.eye(C * q) + W @ R)
    P = M @ W
    e = e - P @ np.linalg.solve(P.sum(axis=0), e.sum(axis=0))  # the modes' sum is not quite 0
    turn = np.asarray(np.kron(np.eye(C), T), dtype=np.float64)
    own, variance = own_estimates(at.reshape(F, C * q), found.gradient, W, np.eye(C * q))
    few = np.isfinite(variance).sum(axis=0) < 3
    between = np.where(few, np.diagonal(R), between_variances(own, variance)) * varies
    Q = M @ W @ np.swapaxes(M, 1, 2) + P * between @ P
    se, df, _ = from_spread(P, Q, e, turn)
    # As for linear regressions, see `intervals`.
    spread = random_effects_cov(known.random_cov, S)
    spread = spread + F / max(F - 1, 1) * known.fixed_cov
    own, variance = own_estimates(at.reshape(F, C * q), found.gradient, W, turn)
    few = np.isfinite(variance).sum(axis=0) < 3
    new = np.diagonal(spread)
    new = np.where(few, new, np.maximum(new, between_variances(own, variance)))
    sd, mean = _error_sds(rows, known.coef, spread, (W, found.gradient), np.asarray(back))
    shape = (C, q)
    return se.reshape(shape), df.reshape(shape), np.sqrt(new + se**2).reshape(shape), sd, mean


def _error_sds(
    rows: Rows, coef: Floats, spread: Floats, known: tuple[Floats, Floats], back: Floats
) -> tuple[Floats, Floats]:
    """Of levels where columns are at their means, and of effects, (F, C, q); the means, (q - 1,).

    Args:
        rows: of the family.
        coef: the coefficients.
        spread: covariance of random effects, (C q, C q).
        known: information and gradient at the coefficients, of coefficients in a basis.
        back: from coefficients to those in that basis, (q, q).
    """
    (F, C, q), X, n = coef.shape, rows.design.X, rows.design.rows
    # At the means over rows as they count: there levels and effects tell little of each other.
    told = np.einsum("jcacb->ab", known[0].reshape(F, C, q, C, q))
    own = back.T @ told @ back
    mean = own[0, 1:] / own[0, 0]
    sd = np.sqrt(np.average((X[:, 1:] - mean) ** 2, axis=0, weights=n))
    S = np.diag(np.append(1.0, 1 / sd))  # from coefficients of standardised columns
    S[0, 1:] = -mean / sd
    G, inverse = (np.kron(np.eye(C), each) for each in (back @ S, np.linalg.inv(S)))
    at = coef.reshape(F, C * q) @ inverse.T
    W = G.T @ known[0] @ G
    score = known[1] @ G + np.einsum("jab,jb->ja", W, at)
    found = error_sds(
        Told(W, score, np.ones(F), np.ones(F)), inverse @ spread @ inverse.T, at, np.arange(C * q)
    )
    return np.asarray(found * np.tile(np.diagonal(S), C)).reshape(F, C, q), mean


class Sharing(Enum):
    """How data sets share a table."""

    COMPLETE = "complete"
    NONE = "none"
    PARTIAL = "partial"


def table_effects(
    counts: Integers,
    probabilities: Floats,
    sizes: Sequence[int],
    sharing: Sharing,
    *,
    tests: bool = True,
) -> LogEffects:
    """The effects of a table of probabilities.

    In each data set the log odds ratio of a level against the first, other parents held fixed, is
    that of Mantel and Haenszel over their configurations, with the error of Robins, Breslow and
    Greenland. In one two-by-two table that is Woolf's.

    Args:
        counts: rows by data set, configuration of the parents and level of the child, (F, C, K).
        probabilities: what the fit makes of them, likewise.
        sizes: levels of each parent.
        sharing: how data sets share the table.
        tests: whether to test if effects are equal, which takes most of the time.
    """
    F, _, K = counts.shape
    equal = as_tests([_equal_tables(counts, sizes, i) for i in range(len(sizes) if tests else 0)])
    none = np.full((K - 1) * sum(size - 1 for size in sizes), math.nan)
    if sharing is Sharing.COMPLETE:
        (effect,), (variance,) = log_odds_ratios(counts.sum(axis=0, keepdims=True), sizes)
        se, df = np.sqrt(variance), np.full_like(effect, math.inf)
        every = np.tile(effect, (F, 1))
        return LogEffects(
            effect, se, df, none, none, every, np.tile(se, (F, 1)), *_NO_LEVELS, equal
        )
    own, variance = log_odds_ratios(counts, sizes)
    seen = np.isfinite(variance)
    m = seen.sum(axis=0)
    enough = m > 1
    t2 = between_variances(own, variance, less=1) if sharing is Sharing.PARTIAL else 0.0
    w = np.where(seen, 1 / (variance + t2), 0.0) if sharing is Sharing.PARTIAL else seen * 1.0
    total = np.where(m > 0, w.sum(axis=0), math.nan)
    effect = (w * own).sum(axis=0) / total
    squares = (w * (own - effect) ** 2).sum(axis=0) / total / np.maximum(m - 1, 1)
    se, df = np.where(enough, np.sqrt(squares), math.nan), np.where(enough, m - 1.0, math.nan)
    known = np.where(seen, variance + t2, 0.0)
    wald = np.sqrt((w**2 * known).sum(axis=0)) / total
    se = np.where(2 * _distinct(own, seen) <= m + 1, _as_wide_as_wald(se, wald, df), se)
    if sharing is Sharing.NONE:
        return LogEffects(effect, se, df, none, none, own, np.sqrt(variance), *_NO_LEVELS, equal)
    between = np.where(enough, np.sqrt(t2), math.nan)
    new = np.sqrt(np.where(m > 2, np.maximum(t2, between_variances(own, variance)), t2) + se**2)
    # Configurations of other parents count by their rows, as in the data set's own estimate.
    expected = probabilities * counts.sum(axis=2, keepdims=True)
    fitted, error = log_odds_ratios(expected, sizes)
    fitted = np.where(np.isfinite(error), fitted, effect)
    center, sd = shrunk(own, variance)
    sd = np.where(np.isfinite(sd), np.hypot(sd, center - fitted), np.sqrt(variance))
    return LogEffects(effect, se, df, between, new, fitted, sd, *_NO_LEVELS, equal)


def _as_wide_as_wald(se: Floats, wald: Floats, df: Floats) -> Floats:
    """Standard errors whose intervals of t are no shorter than those of Wald from `wald`.

    Where data sets have very few rows their estimates have few values, and agree by chance: of
    three tables of 4 rows all have the same odds ratio in one of ten, and show no spread.
    """
    from scipy.special import ndtri, stdtrit

    known = np.isfinite(se) & np.isfinite(wald) & np.isfinite(df)
    ratio = ndtri(_USUAL) / stdtrit(np.where(known, df, 1.0), _USUAL)
    return np.where(known, np.maximum(se, np.where(known, wald, 0.0) * ratio), se)


def _distinct(values: Floats, seen: NDArray[np.bool_]) -> Integers:
    """How many different values each column has, up to rounding, where they are seen, (m,)."""
    ordered = np.sort(np.where(seen, values, math.inf), axis=0)
    with np.errstate(invalid="ignore"):
        new = np.diff(ordered, axis=0) > _ALIKE
    return np.asarray(seen.any(axis=0) + (new & np.isfinite(ordered[1:])).sum(axis=0))


def known_table_effects(
    population: Floats, probabilities: Floats, sizes: Sequence[int]
) -> LogEffects:
    """Where counts are not known: what probabilities say, all configurations weighing the same."""
    (effect,), _ = log_odds_ratios(population[None], sizes)
    own, _ = log_odds_ratios(probabilities, sizes)
    unknown = np.full_like(effect, math.nan)
    every = np.full_like(own, math.nan)
    none = np.empty((0, 2))
    return LogEffects(effect, *(unknown,) * 4, own, every, *_NO_LEVELS, none)


def log_odds_ratios(counts: Integers | Floats, sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """The log odds ratios of each data set, and their variances; inf where rows give none.

    Returns:
        (F, m) each; levels of the child change slowest, then parents.

    Examples:
        >>> value, variance = log_odds_ratios(np.array([[[10, 20], [5, 40]]]), [2])
        >>> value.round(4).tolist(), variance.round(4).tolist()
        ([[1.3863]], [[0.375]])
    """
    F, _, K = counts.shape
    cells = counts.reshape(F, *sizes, K).astype(np.float64)
    found = []
    for k in range(1, K):
        for i, size in enumerate(sizes):
            of = np.moveaxis(cells, 1 + i, 1).reshape(F, size, -1, K)
            found += [
                _mantel_haenszel(of[:, level][..., [k, 0]], of[:, 0][..., [k, 0]])
                for level in range(1, size)
            ]
    values = np.array(found, dtype=np.float64).reshape(len(found), 2, F)
    return values[:, 0].T, values[:, 1].T


def _mantel_haenszel(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Over strata: a, b of one level and c, d of another, (F, O, 2) each; (F,) each."""
    cells = np.concatenate([one, other], axis=2)
    margins = cells @ np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    told = (margins > 0).all(axis=2)
    products = (cells[:, :, 0] * cells[:, :, 3], cells[:, :, 1] * cells[:, :, 2])
    zero = ~np.logical_and(*((each * told).any(axis=1) for each in products))
    a, b, c, d = np.moveaxis(cells + 0.5 * zero[:, None, None], 2, 0)
    n = np.where(told, a + b + c + d, math.inf)
    R, S, P, Q = a * d / n, b * c / n, (a + d) / n, (b + c) / n
    r, s = R.sum(axis=1), S.sum(axis=1)
    some = told.any(axis=1)
    r, s = np.where(some, r, 1.0), np.where(some, s, 1.0)
    parts = (P * R / r[:, None] ** 2, (P * S + Q * R) / (r * s)[:, None], Q * S / s[:, None] ** 2)
    variance = sum(parts).sum(axis=1) / 2
    return np.where(some, np.log(r / s), 0.0), np.where(some, variance, math.inf)


def _equal_tables(counts: Integers, sizes: Sequence[int], i: int) -> Equal:
    """Whether the effects of parent i are the same in all data sets, whatever other parents are.

    Its log odds ratios may differ between configurations of the others, which have probabilities of
    their own in each data set.
    """
    F, cells, K = counts.shape
    if cells * (K - 1) > _MOST:
        return Equal()
    of = np.moveaxis(counts.reshape(F, *sizes, K), 1 + i, 1).reshape(F, sizes[i], -1, K)
    levels, others = of.shape[1:3]
    free = np.kron(np.ones((levels, 1)), np.eye(others))
    free[:, 0] = 1.0  # the intercept
    own = np.concatenate([np.zeros((1, levels - 1)), np.eye(levels - 1)])
    X = np.hstack([free, np.kron(own, np.eye(others))])
    j, configuration, y = np.nonzero(of.reshape(F, cells, K))
    weight = of.reshape(F, cells, K)[j, configuration, y].astype(np.float64)
    offsets = np.searchsorted(j, np.arange(F + 1))
    design = Design(X[configuration], y, weight, offsets)
    return equal_effects(Rows(design, Response(levels=K)), range(others, X.shape[1]))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LogFit(LocalFit):
    """A node whose parents have effects on log odds or log means.

    Attributes:
        saved_effects: how sure effects are, by the rows; None where that is not known.
        later: where cells are missing, what makes the effects.
    """

    _of_data_sets: ClassVar[tuple[str, ...]]  # what it has of each data set

    saved_effects: LogEffects | None = None
    later: Callable[[], LogEffects] | None = None

    @cached_property
    def effects(self) -> LogEffects:
        """Effects of parents on log odds or log means, and how sure they are."""
        if self.later is not None:
            return self.later()
        return self._known if self.saved_effects is None else self.saved_effects

    @property
    @abstractmethod
    def _known(self) -> LogEffects:
        """Effects by the parameters alone."""

    @abstractmethod
    def with_effects(self, data: Data, *, tests: bool = True) -> Self:
        """The fit with its effects and how sure they are, which needs rows or counts of them."""

    @abstractmethod
    def _in(self, data: Data) -> Self:
        """The fit of a completed table with effects and without their tests."""

    @property
    def complete(self) -> bool:
        """Whether data sets have the same parameters."""
        return bool(getattr(self.pooling, "complete", False))

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What effects are on: the levels but the first; nothing where there is one of each."""
        return self.categories[1:]

    @property
    def scale(self) -> str:
        """What effects are when they are not logarithms."""
        return "odds ratio" if self.categories else "rate ratio"

    def terms(self, parent: str) -> Iterator[Term]:
        """The effects of a parent: logarithms of odds ratios, or of ratios of means."""
        if self.experiments:
            yield from self._in_all(self.unset.terms(parent))
            return
        found, width = self.effects, len(self.columns)
        for at, column, level in self.columns_of(parent):
            for c, outcome in enumerate(self.outcomes or ("",)):
                k = c * width + at
                own, own_se = found.own[:, k], found.own_se[:, k]
                effect, se, df, between, new_se = (
                    float(each[k])
                    for each in (found.effect, found.se, found.df, found.between_sd, found.new_se)
                )
                varies = 0.0 if math.isnan(between) else between
                if not self.has_population:
                    varies = beyond_errors(own, own_se)
                yield Term(
                    column, level, outcome, self.scale, effect, se, df, between, varies, new_se,
                    own, own_se, np.full_like(own, np.inf),
                )  # fmt: skip

    @property
    def holds_tests(self) -> bool:
        """Whether `equality` needs no data."""
        return True

    def equality(self, data: Data | None = None) -> dict[str, Equality]:
        """Tests for equal effects, which the fit holds."""
        held = dict(zip(self.parents, map(score_test, self.effects.equal), strict=False))
        return {parent: held.get(parent, Equality()) for parent in self.parents}

    @property
    def measure(self) -> str:
        """Whose standard deviations effects are in."""
        return "log odds" if self.categories else "the logarithm"

    @abstractmethod
    def _logs_alone(self, data: Data) -> tuple[Floats, Floats]:
        """Log ratios of each data set's rows alone with their errors, (F', m) each."""

    def alone(self, parent: str, data: Data) -> list[tuple[Floats, Floats, Floats]]:
        """Log ratios of each data set's rows alone."""
        value, se = self._logs_alone(data)
        value = np.where(np.isfinite(value) & (se < _UNKNOWN), value, np.nan)
        se, df = np.where(np.isnan(value), np.nan, se), np.full(len(value), np.inf)
        outcomes, width = max(len(self.outcomes), 1), len(self.columns)
        return [
            (value[:, k], se[:, k], df)
            for at, *_ in self.columns_of(parent)
            for k in (c * width + at for c in range(outcomes))
        ]

    def _taken(self, at: Sequence[int]) -> LogEffects | None:
        """Effects of the data sets at these positions."""
        told = self.effects if self.parents and self.status.ok else self.saved_effects
        if told is None:
            return None
        level_se = told.level_se[at] if told.level_se.size else told.level_se
        return told._replace(own=told.own[at], own_se=told.own_se[at], level_se=level_se)

    def followed_by(self, there: Self) -> Self:
        """The fit with these experiments at the end."""
        told = self.effects if self.parents and self.status.ok else self.saved_effects
        if told is not None:
            none = np.full((len(there.levels), told.own.shape[1]), math.nan)
            told = appended(told, none, none)
        found: dict[str, Any] = {
            name: np.concatenate([own, getattr(there, name)])
            for name in self._of_data_sets
            if (own := getattr(self, name)) is not None
        }
        return replace(
            self, levels=(*self.levels, *there.levels), saved_effects=told, later=None, **found,
            **self._with_experiments(there),
        )  # fmt: skip

    def explained(
        self, x: Floats, values: Values, sets: Integers
    ) -> dict[str, tuple[Floats, float]]:
        """Log odds of levels vary with the parents, and the logistic distribution around them."""
        p = np.maximum(self.mean(values, sets), _RARE)
        odds = np.log(p[:, 1:]) - np.log(p[:, :1])
        return {level: (odds[:, k], LOGISTIC) for k, level in enumerate(self.categories[1:])}

    def with_all(self) -> Self:
        """The fit with effects that are made."""
        if self.later is None:
            return self
        return replace(self, saved_effects=self.effects, later=None)

    def with_imputation_error(self, data: Data) -> Self:
        """The fit with effects that contain what missing cells leave open, made when asked for."""
        if not data.imputed:
            return self
        out = (data.missing == data.n[:, None])[:, data.names.index(self.child)]
        left_out = tuple(level for level, lacks in zip(data.levels, out, strict=True) if lacks)
        made = replace(self, left_out=left_out)
        at = [data.names.index(name) for name in (self.child, *self.parents)]
        if not self.parents or not self.status.ok or not data.missing[:, at].any():
            return made
        return replace(made, later=partial(self._with_error, data))

    def _with_error(self, data: Data) -> LogEffects:
        """Intervals of effects in data sets are those of completed tables, by the model of the fit.

        Those of the population are uncertain for the spread of data sets' own estimates, and for
        what completed tables leave open. Tests of equal effects count the rows that tell of the
        family.
        """
        child, *parents = (data.names.index(name) for name in (self.child, *self.parents))
        known = self.effects
        known = known._replace(equal=known.equal * [data.share(child, parents), 1.0])
        if data.provisional:
            return known
        each = [self._in(data.drawn(k)) for k in range(_IMPUTATIONS)]
        effects = [one.saved_effects for one in each if one.status.ok]
        found = [of for of in effects if of is not None]
        if len(found) < 2:
            return known
        many = np.full_like(known.own_se, np.inf)
        own, se, _ = rubin([of.own for of in found], [of.own_se for of in found], [many])
        off = np.hypot(se, own - known.own)  # around the estimates of the fit
        made = known._replace(own_se=np.where(np.isfinite(off), off, known.own_se))
        within = [of.se for of in found] if self.complete else [known.se]
        _, se, df = rubin([of.effect for of in found], within, [known.df])
        # Degrees of freedom of a spread between data sets are few, and stay.
        return made._replace(se=se, df=df if self.complete else known.df)


def appended(found: LogEffects, own: Floats, se: Floats) -> LogEffects:
    """Effects with those of more data sets, (m,) or (F', m)."""
    level = np.full((len(np.atleast_2d(own)), found.level_se.shape[1]), np.nan)
    return found._replace(
        own=np.vstack([found.own, own]),
        own_se=np.vstack([found.own_se, se]),
        level_se=np.vstack([found.level_se, level]) if found.level_se.size else found.level_se,
    )
