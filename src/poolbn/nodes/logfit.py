"""What tables of probabilities and regressions share: effects on log odds or log means."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from poolbn.moments.data import Data
from poolbn.nodes.equality import Equality
from poolbn.nodes.imputed import rubin
from poolbn.nodes.localfit import Floats, Integers, LocalFit
from poolbn.nodes.logeffects import LogEffects
from poolbn.nodes.predicting import Values
from poolbn.nodes.terms import Term, held_tests, log_terms

_IMPUTATIONS = 20
_UNKNOWN = 5.0  # standard error of a logarithm that rows do not tell
_LOGISTIC = math.pi**2 / 3  # variance of the logistic distribution
_RARE = 1e-6  # probabilities below are taken for this


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LogFit(LocalFit):
    """A node whose parents have effects on log odds or log means.

    Attributes:
        saved_effects: how sure effects are, by the rows; None where that is not known.
        later: where cells are missing, what makes the effects.
    """

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

    def terms(self, parent: str) -> Iterator[Term]:
        """The effects of a parent: logarithms of odds ratios, or of ratios of means."""
        columns, outcomes = self.columns_of(parent), self.categories[1:]
        return log_terms(self.effects, columns, outcomes, pooled=self.has_population)

    @property
    def holds_tests(self) -> bool:
        """Whether `equality` needs no data."""
        return True

    def equality(self, data: Data | None = None) -> dict[str, Equality]:
        """Tests for equal effects, which the fit holds."""
        return held_tests(self.parents, self.effects)

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
        outcomes, width = max(len(self.categories) - 1, 1), len(self.columns)
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

    def explained(
        self, x: Floats, values: Values, sets: Integers
    ) -> dict[str, tuple[Floats, float]]:
        """Log odds of levels vary with the parents, and the logistic distribution around them."""
        p = np.maximum(self.mean(values, sets), _RARE)
        odds = np.log(p[:, 1:]) - np.log(p[:, :1])
        return {level: (odds[:, k], _LOGISTIC) for k, level in enumerate(self.categories[1:])}

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
    """Effects with those of one more data set."""
    level = np.full((1, found.level_se.shape[1]), np.nan)
    return found._replace(
        own=np.vstack([found.own, own]),
        own_se=np.vstack([found.own_se, se]),
        level_se=np.vstack([found.level_se, level]) if found.level_se.size else found.level_se,
    )
