"""Continuous nodes with a regression for each configuration of discrete parents (eq. cgnode).

An additive regression lets levels shift the mean of a node. Here each configuration of the discrete
parents has a regression of its own on the other parents, with a residual variance of its own, and
each is pooled between data sets as the pooling says. So all is that of `gaussianfit`, on the
sufficient statistics of the rows of each configuration: log-likelihoods and parameters add up.

A configuration that no row has counts for nothing, and answers as the additive regression does. One
with fewer rows than the pooling needs leaves the node without a likelihood. Data sets in which the
child is constant are left out where the pooling leaves them out of the additive regression, so that
the likelihoods of both forms are about the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import DataError, Option
from poolbn.moments.cases import check_no_units
from poolbn.moments.data import Data
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.indicators import spans
from poolbn.moments.standardised import Family, StandardisedStats, expanded, standardise
from poolbn.nodes import linear
from poolbn.nodes.auto import alternatives
from poolbn.nodes.drawing import Observed
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import Counts, LocalFit, Pooling, Status, predictor
from poolbn.nodes.model import Likelihoods, NodeModel, Penalty
from poolbn.nodes.predicting import (
    ConditionalPredictions,
    GaussianPredictions,
    Predictive,
    Values,
    columns,
    configurations,
)
from poolbn.nodes.predictive import uncertainty
from poolbn.nodes.rsquared import Variances
from poolbn.nodes.terms import DIFFERENCE, RESIDUAL, WHERE, Equality, Term, beyond_errors
from poolbn.tables.kinds import ColumnKind
from poolbn.wording import counted, figure, listed

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 4  # of a configuration for each coefficient, below which "auto" does not consider it
_TWO = 2.0  # rows, from which a data set has deviations from its mean
# How much more configurations may gain than least squares says, see `may_win`. That is no bound: of
# 14,350 families of searches over the trial, 3,245 of them better by configuration, 25 of these are
# left out, one of which gains 19.5. The graphs that are found are the same as with 2 and 4.
_TIMES, _MORE = 1.5, 2.0
_LARGEST = 2**24  # numbers in the statistics of all configurations
_KEPT = 2**25  # in those that are remembered
_REMEMBERED = 2**20  # families of which it is known whether they may win
_NAMED = 4  # configurations in a text


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ConditionalFit(LocalFit):
    """A linear regression for each configuration of discrete parents, in each data set.

    Attributes:
        parts: the regressions on the other parents, (C,): the last discrete parent's level changes
            fastest.
        at: means of the other parents, where levels of discrete ones are compared.
        unseen: whether no row has a configuration; then the additive regression answers, (C,).

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "tobacco", "age", "bmi"]].dropna()
        >>> table = pb.table(trial, group="clinic")
        >>> how = pb.Complete(continuous="conditional")
        >>> fit = pb.fit_node(table, "bmi", ["tobacco", "age"], pooling=how)
        >>> fit.n_params, [part.fixed.round(2).tolist() for part in fit.parts]
        (6, [[22.98, 0.18], [26.64, 0.04]])
    """

    parts: tuple[GaussianFit, ...]
    at: Floats
    unseen: tuple[bool, ...]

    @property
    def switches(self) -> tuple[str, ...]:
        """The discrete parents."""
        return tuple(name for name, own in zip(self.parents, self.given, strict=True) if own)

    @property
    def others(self) -> tuple[str, ...]:
        """The parents that are numbers."""
        return tuple(name for name, own in zip(self.parents, self.given, strict=True) if not own)

    @property
    def _levels(self) -> tuple[tuple[str, ...], ...]:
        """Those of the discrete parents."""
        return tuple(own for own in self.given if own)

    @cached_property
    def configurations(self) -> list[dict[str, str]]:
        """The levels of each part."""
        return [dict(zip(self.switches, own, strict=True)) for own in product(*self._levels)]

    @property
    def kind(self) -> ColumnKind:
        """What the node's column holds."""
        return "continuous"

    @property
    def model(self) -> str:
        """What kind of model it is, in words."""
        return f"linear regression for each configuration of {listed(self.switches)}"

    @cached_property
    def _coef(self) -> Floats:
        """In each data set and configuration, (F * C, q)."""
        return _interleaved([part.coef for part in self.parts])

    @cached_property
    def _sigma2(self) -> Floats:
        """Residual variances likewise, (F * C,)."""
        return _interleaved([part.sigma2 for part in self.parts])

    def strata(self, values: Values, sets: Integers) -> Integers:
        """Data sets, and in each its configurations."""
        return sets * len(self.parts) + configurations(self.switches, self._levels, values)

    def mean(self, values: Values, sets: Integers) -> Floats:
        """The expectation given parents."""
        own = columns(self.others, ((),) * len(self.others), values)
        return predictor(self._coef, own, self.strata(values, sets))

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of each row, with estimates taken for certain."""
        s2 = self._sigma2[self.strata(values, sets)]
        return -(np.log(2 * math.pi * s2) + (x - self.mean(values, sets)) ** 2 / s2) / 2

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A value for each row."""
        mean, s2 = self.mean(values, sets), self._sigma2[self.strata(values, sets)]
        return np.asarray(mean + np.sqrt(s2) * rng.standard_normal(mean.shape))

    def quantile(self, u: Floats, mean: Floats, sets: Integers) -> Floats:
        """The values at probabilities u where this is the mean, in strata."""
        from scipy.special import ndtri

        return np.asarray(mean + np.sqrt(self._sigma2)[sets] * ndtri(u))

    def residuals(self, x: Floats, fitted: Floats, sets: Integers) -> Floats:
        """Differences in standard deviations, in strata."""
        return np.asarray((x - fitted) / np.sqrt(self._sigma2[sets]))

    def predictive(self, certain: Flags) -> ConditionalPredictions:
        """Student's t in each configuration, as of its regression."""
        return self._predictions([part.predictive(certain) for part in self.parts])

    def _predictions(self, parts: Sequence[GaussianPredictions]) -> ConditionalPredictions:
        each = [part.linear for part in parts]
        names = "coef", "cov", "between", "scale2", "df", "within_df"
        arrays = {name: _interleaved([getattr(of, name) for of in each]) for name in names}
        linear = Predictive(**arrays, between_df=min(of.between_df for of in each))
        made = GaussianPredictions(linear, self.others, ((),) * len(self.others))
        return ConditionalPredictions(made, self.switches, self._levels)

    def _with(self, parts: Sequence[GaussianFit]) -> Self:
        """The fit of other data sets."""
        return replace(self, levels=parts[0].levels, parts=tuple(parts))

    def data_set_draws(self, draws: int, rng: np.random.Generator) -> Self:
        """The parameters of the F data sets, `draws` times; as they are for 0 draws."""
        return self._with([part.data_set_draws(draws, rng) for part in self.parts])

    def new_data_sets(self, sets: int, draws: int, rng: np.random.Generator) -> Self:
        """Parameters of new data sets, for each draw of the population if there are draws."""
        return self._with([part.new_data_sets(sets, draws, rng) for part in self.parts])

    def in_population(self) -> Self:
        """The fit of one data set, which is like the population."""
        return self._with([part.in_population() for part in self.parts])

    def taken(self, at: Sequence[int], levels: tuple[Hashable, ...]) -> Self:
        """The fit of the data sets at these positions, which may repeat, under these names."""
        parts = tuple(part.taken(at, levels) for part in self.parts)
        return replace(self, levels=levels, parts=parts, left_out=self._left_out(at, levels))

    def redrawing(self, rows: Observed) -> Callable[[np.random.Generator], ConditionalPredictions]:
        """What draws the parameters that rows leave possible, as if they were certain."""
        own = configurations(self.switches, self._levels, rows.values)
        each = []
        for c, part in enumerate(self.parts):
            here = own == c
            values = {name: x[here] for name, x in rows.values.items()}
            offsets = np.concatenate([[0], np.cumsum(here)])[rows.offsets]
            each.append(part.redrawing(Observed(values, rows.x[here], offsets)))

        def drawn(rng: np.random.Generator) -> ConditionalPredictions:
            return self._predictions([of(rng) for of in each])

        return drawn

    def adapted(self, name: Hashable, new: Data | None, n: Integers) -> Self:
        """The fit with one more data set that it was not learned from; see `nodes.adapting`."""
        found = self._rows_of(new)
        parts = [
            part.adapted(name, stats, part.rows.astype(np.int64))
            for part, stats in zip(self.parts, found, strict=True)
        ]
        return self._with(parts)

    def _rows_of(self, data: Data | None) -> Sequence[GroupStats | None]:
        """Statistics of the rows of each configuration; None where there are none."""
        if data is None:
            return [None] * len(self.parts)
        return data.by_configuration(self.switches, [*self.others, self.child])

    def terms(self, parent: str) -> Iterator[Term]:
        """The effects of a parent: in each configuration of the others that are discrete.

        Levels are compared where parents that are numbers have their means.
        """
        if parent in self.others:
            for levels, part in zip(self.configurations, self.parts, strict=True):
                where = f"{WHERE}{words_of(levels)}"
                yield from (term._replace(level=where) for term in part.terms(parent))
            return
        z = np.concatenate([[1.0], self.at])
        every = [_Level.of(part, z) for part in self.parts]
        own = self.given[self.parents.index(parent)]
        for c, levels in enumerate(self.configurations):
            if levels[parent] == own[0]:
                continue
            base = self.configurations.index(levels | {parent: own[0]})
            others = words_of({k: v for k, v in levels.items() if k != parent})
            level = f"{levels[parent]} {WHERE}{others}" if others else levels[parent]
            column = f"{parent}={levels[parent]}"
            yield every[c].less(every[base], column, level, pooled=self.parts[c].fixed is not None)

    @property
    def holds_tests(self) -> bool:
        """Whether `equality` needs no data."""
        return True

    def equality(self, data: Data | None = None) -> dict[str, Equality]:
        """No tests: an effect has one in each configuration."""
        return dict.fromkeys([*self.parents, RESIDUAL], Equality())

    def variances(self, data: Data) -> Variances | None:
        """What fixed and random effects explain; differences between configurations are fixed."""
        rows = self._rows_of(data)
        seen = [(part, own) for part, own in zip(self.parts, rows, strict=True) if own is not None]
        found = [part.variances(own) for part, own in seen]
        each = [of for of in found if of is not None]
        if not self.status.ok or len(each) < len(found):
            return None
        n = np.array([own.n_rows for _, own in seen], dtype=np.float64)
        level = np.array([own.n @ own.mean[:, -1] / own.n.sum() for _, own in seen])
        between = float(n @ (level - n @ level / n.sum()) ** 2)
        of = np.array([(one.fixed, one.random, one.left) for one in each])
        fixed = float((n - 1) @ of[:, 0] + between) / (n.sum() - 1)
        return Variances(fixed, *(n @ of[:, 1:] / n.sum()).tolist())

    def along(self, at: Sequence[Floats]) -> Floats | None:
        """The mean, in the population and then in each data set, at values of `columns`."""
        at = [np.asarray(x) for x in at]
        each = dict(zip(self.parents, spans(self.given), strict=True))
        others = [at[each[name][0]] for name in self.others]
        sets = np.arange(len(self.levels))[:, None]
        total: Floats = np.zeros((len(self.levels) + 1, 1))
        for levels, part in zip(self.configurations, self.parts, strict=True):
            weight = np.ones(1)  # of a configuration, where indicators are shares
            for name, own in zip(self.parents, self.given, strict=True):
                if own:
                    shares = [at[k] for k in each[name]]
                    shares.insert(0, 1.0 - sum(shares, np.zeros(1)))
                    weight = weight * shares[own.index(levels[name])]
            population = predictor(part.in_population().coef, others, sets[:1])
            own_mean = predictor(part.coef, others, sets)
            total = total + weight * np.concatenate([population, own_mean])
        return total

    def with_imputation_error(self, data: Data) -> Self:
        """The fit with intervals that contain what missing cells leave open, made when asked."""
        if not data.imputed or data.provisional:
            return self
        pairs = zip(self.parts, self._rows_of(data), self.unseen, strict=True)
        parts = [
            part if own is None or none else part.with_imputation_error(own)
            for part, own, none in pairs
        ]
        return replace(self, parts=tuple(parts))

    def table(self) -> pd.DataFrame:
        """A row for each configuration and coefficient, as those of its regression.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "tobacco", "bmi"]].dropna()
            >>> how = pb.Complete(continuous="conditional")
            >>> fit = pb.fit_node(pb.table(trial, group="clinic"), "bmi", ["tobacco"], pooling=how)
            >>> fit.table()[["fixed", "se"]].round(2)
                                     fixed    se
            tobacco=no (Intercept)   27.72  0.28
            tobacco=yes (Intercept)  27.61  0.77
        """
        import pandas as pd

        parts = [part.table() for part in self.parts]
        for levels, rows in zip(self.configurations, parts, strict=True):
            rows.index = pd.Index([f"{words_of(levels)} {name}" for name in rows.index])
        return pd.concat(parts)

    def _more(self) -> str:
        sd = np.sqrt(self._sigma2)
        spread = figure(sd.min()) + (f" to {figure(sd.max())}" if sd.max() > sd.min() else "")
        return f"residual SD {spread}; "


def _interleaved(parts: Sequence[Floats]) -> Floats:
    """Arrays of C configurations, (F, ...) each, data set by data set: (F * C, ...)."""
    every = np.stack(parts, axis=1)
    return np.ascontiguousarray(every.reshape(-1, *every.shape[2:]), dtype=np.float64)


def words_of(levels: Mapping[str, str]) -> str:
    """A configuration in words.

    Examples:
        >>> words_of({"sex": "male", "arm": "control"})
        'sex=male, arm=control'
    """
    return ", ".join(f"{name}={level}" for name, level in levels.items())


class _Level(NamedTuple):
    """The mean of a part where its parents are z: an estimate, and its variances."""

    effect: float
    variance: float
    df: float
    between: float  # of data sets; NaN where it is not estimated
    own: Floats  # in each data set, (F,)
    own_variance: Floats
    own_df: Floats

    @staticmethod
    def of(part: GaussianFit, z: Floats) -> _Level:
        """That of a part."""
        cov = part.fixed_cov
        if cov is None:
            cov = part.coef_cov.sum(axis=0) / len(part.coef_cov) ** 2
        fitted = np.sqrt(np.diagonal(cov))
        wider = np.divide(part.population_se, fitted, out=np.ones_like(fitted), where=fitted > 0)
        coef = part.coef.mean(axis=0) if part.fixed is None else part.fixed
        total, _ = uncertainty(part)
        between = math.nan if part.random_cov is None else float(z @ part.random_cov @ z)
        own_df = np.array([part.own_errors(k)[1] for k in range(len(z))])
        return _Level(
            float(coef @ z),
            float(z @ (cov * np.outer(wider, wider)) @ z),
            float(np.nanmin(part.population_df, initial=math.inf)),
            between,
            part.coef @ z,
            np.asarray(np.einsum("a,jab,b->j", z, total, z)),
            np.asarray(np.nanmin(own_df, axis=0, initial=math.inf)),
        )

    def less(self, base: _Level, column: str, level: str, *, pooled: bool) -> Term:
        """The difference from another part's."""
        se = math.sqrt(max(self.variance + base.variance, 0.0))
        own_se = np.sqrt(np.maximum(self.own_variance + base.own_variance, 0.0))
        own, between = self.own - base.own, math.sqrt(max(self.between + base.between, 0.0))
        if math.isnan(self.between + base.between):
            between = math.nan
        varies = 0.0 if math.isnan(between) else between
        return Term(
            column, level, "", DIFFERENCE, self.effect - base.effect, se,
            float(_welch(self.variance, self.df, base.variance, base.df)), between,
            varies if pooled else beyond_errors(own, own_se), math.hypot(se, between), own, own_se,
            _welch(self.own_variance, self.own_df, base.own_variance, base.own_df),
        )  # fmt: skip


def _welch(one: Any, df: Any, two: Any, other: Any) -> Floats:
    """Degrees of freedom of a difference (Welch and Satterthwaite)."""
    whole = np.asarray((one + two) ** 2, dtype=np.float64)
    parts = np.asarray(one**2 / df + two**2 / other, dtype=np.float64)
    return np.asarray(np.divide(whole, parts, out=np.full(whole.shape, math.inf), where=parts > 0))


# Scores and fits


def _one(data: StandardisedStats, complete: bool) -> StandardisedStats:
    """All rows as those of one data set, or their deviations from the means of data sets."""
    return data.as_one if complete or not (data.n >= _TWO).any() else data.deviations.as_one


class _Sides(NamedTuple):
    """The parents of a family: discrete ones and numbers."""

    discrete: tuple[int, ...]
    others: tuple[int, ...]


class _Part(NamedTuple):
    """The rows of a configuration."""

    data: StandardisedStats  # with all data sets
    there: StandardisedStats  # with those that have such rows
    penalty: Penalty  # of parameters that these rows inform
    suspect: Flags  # columns of numbers that may leave data sets out, (N,)


@dataclass(frozen=True, eq=False)
class ByConfiguration:
    """Scores and fits of continuous nodes by configuration; families are positions in the data.

    Attributes:
        data: the rows.
        model: the pooling.
        penalty: of parameters.
    """

    data: Data
    model: NodeModel
    penalty: Penalty

    @staticmethod
    def of(data: Data, model: NodeModel, penalty: Penalty) -> ByConfiguration | None:
        """None where levels of discrete parents only add, or data tell nothing else.

        Raises:
            DataError: the pooling asks for them, and there are units inside data sets.
        """
        if model.continuous == "additive" or not any(data.categories):
            return None
        if model.continuous == "auto" and (data.unit is not None or not data.has_rows):
            return None
        check_no_units(data, "a regression for each configuration")
        return ByConfiguration(data, model, penalty)

    @property
    def always(self) -> bool:
        """Whether nodes with discrete parents have no other form."""
        return self.model.continuous == "conditional"

    @cached_property
    def _whole(self) -> StandardisedStats:
        return standardise(self.data.stats())

    @cached_property
    def _spans(self) -> list[range]:
        """Which columns of numbers each column is."""
        return spans(self.data.categories)

    @cached_property
    def _at(self) -> dict[int, int]:
        """Where columns that are no levels are among these."""
        own = [k for k, levels in enumerate(self.data.categories) if not levels]
        return {k: place for place, k in enumerate(own)}

    @cached_property
    def _constant(self) -> Flags:
        """Where a column of numbers is constant in a data set, (F, N)."""
        return self._whole.constant[:, [self._spans[k][0] for k in self._at]]

    def _sides(self, family: Family) -> _Sides:
        discrete = tuple(p for p in family[1] if p not in self._at)
        return _Sides(discrete, tuple(p for p in family[1] if p in self._at))

    def applies(self, families: Sequence[Family]) -> Flags:
        """Which families have discrete parents, (M,)."""
        own = self._at
        return np.array([any(p not in own for p in pa) for _, pa in families], dtype=bool)

    def _size(self, discrete: tuple[int, ...]) -> int:
        """Configurations."""
        return math.prod(len(self.data.categories[k]) for k in discrete)

    def _numbers(self, discrete: tuple[int, ...]) -> int:
        """How many the statistics of all configurations have."""
        return self._size(discrete) * len(self.data.levels) * len(self._at) ** 2

    def parts(self, discrete: tuple[int, ...]) -> list[_Part | None]:
        """The rows of each configuration, None where there are none; remembered."""
        if discrete not in self._made:
            if sum(map(self._numbers, self._made)) > _KEPT:
                self._made.clear()
            names = [self.data.names[k] for k in discrete]
            found = self.data.by_configuration(names, [self.data.names[k] for k in self._at])
            self._made[discrete] = [None if of is None else self._part(of) for of in found]
        return self._made[discrete]

    @cached_property
    def _made(self) -> dict[tuple[int, ...], list[_Part | None]]:
        return {}

    def _part(self, stats: GroupStats) -> _Part:
        """Data sets count for a child that is constant in a part of their rows alone."""
        data = replace(standardise(stats), varying=~self._constant)
        there = data.where_measured(0)
        suspect = self._constant.any(axis=0) | data.group_level
        return _Part(data, there, self.penalty.within(there), suspect)

    def _in_part(self, family: Family) -> Family:
        child, parents = family
        return self._at[child], tuple(self._at[p] for p in parents if p in self._at)

    def _left_out(self, part: _Part, child: int) -> str | None:
        """Why likelihoods would be about other rows than the additive one's; None if they are not.

        `child` is a position in the data.
        """
        name, own, data = self.data.names[child], self._at[child], part.data
        if not part.suspect[own]:
            return None
        whole = self.model.view(self._whole, self._spans[child][0])
        kept = self.model.view(data, own)
        if whole is None or kept is None:
            return f"{name!r} has one value in each data set"
        there = {data.levels[j] for j in np.flatnonzero(~data.unmeasured[:, own]).tolist()}
        differ = (there - set(whole.levels)) ^ (there - set(kept.levels))
        if not differ:
            return None
        level = next(level for level in data.levels if level in differ)
        return f"{name!r} is constant in data set {level!r}"

    def _together(self, families: Sequence[Family]) -> dict[tuple[int, ...], list[int]]:
        """Families with the same discrete parents, of which there may be regressions."""
        found: dict[tuple[int, ...], list[int]] = {}
        for m, family in enumerate(families):
            found.setdefault(self._sides(family).discrete, []).append(m)
        return {own: at for own, at in found.items() if self._numbers(own) <= _LARGEST}

    def _total(
        self,
        families: Sequence[Family],
        compute: Callable[[_Part, Sequence[Family]], Likelihoods],
    ) -> Floats:
        """Sums over configurations of log-likelihoods minus penalties, (M,)."""
        values = np.full(len(families), -np.inf)
        for discrete, at in self._together(families).items():
            each = {m: list[float]() for m in at}
            seen = [part for part in self.parts(discrete) if part is not None]
            least = min(part.there.rows for part in seen)
            left = at
            if not self.always:
                q = {m: len(families[m][1]) - len(discrete) + 1 for m in at}
                left = [m for m in at if least >= _ROWS * q[m]]
            for part in seen:
                left = [m for m in left if self._left_out(part, families[m][0]) is None]
                if not left:
                    break
                some = [self._in_part(families[m]) for m in left]
                found = compute(part, some).penalised(part.penalty, some).tolist()
                for m, value in zip(left, found, strict=True):
                    each[m].append(value)
                left = [m for m, value in zip(left, found, strict=True) if value > -np.inf]
            for m in left:
                values[m] = math.fsum(each[m])
        return values

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Of each family, which has discrete parents."""
        hows = alternatives(self.model) if final else [self.model]
        every = [self._scores(families, how, final) for how in hows]
        return np.asarray(np.max(every, axis=0), dtype=np.float64)

    def _scores(self, families: Sequence[Family], how: NodeModel, final: bool) -> Floats:
        return self._total(
            families,
            lambda part, some: how.logliks(part.there, some, part.penalty, final=final),
        )

    def may_win(self, families: Sequence[Family]) -> Flags:
        """Which families may have a better score by configuration than the additive one, (M,).

        By what least squares of deviations from the means of data sets gain, or of all rows where
        pooling is complete, and by the parameters that it takes.
        """
        new = [family for family in dict.fromkeys(families) if family not in self._possible]
        if len(self._possible) > _REMEMBERED:
            self._possible.clear()
            new = list(dict.fromkeys(families))
        if new:
            self._possible.update(zip(new, self._may_win(new).tolist(), strict=True))
        return np.array([self._possible[family] for family in families], dtype=bool)

    @cached_property
    def _possible(self) -> dict[Family, bool]:
        return {}

    def _may_win(self, families: Sequence[Family]) -> Flags:
        how: Any = self.model.how
        if self.always or not (how.complete or how.partial):
            return self.applies(families)
        found = np.zeros(len(families), dtype=bool)
        whole = _one(self._whole, how.complete)
        for discrete, at in self._together(families).items():
            if not discrete:
                continue
            seen = [part for part in self.parts(discrete) if part is not None]
            least = min(part.there.rows for part in seen)
            q = [len(families[m][1]) - len(discrete) + 1 for m in at]
            some = [m for m, size in zip(at, q, strict=True) if least >= _ROWS * size]
            if not some:
                continue
            wide = expanded(self.data, [families[m] for m in some])
            own = [self._in_part(families[m]) for m in some]
            gain = np.zeros(len(some))
            additive = linear.log_likelihoods(whole, wide, separate=False, unbiased=False)
            charge = -self._charges(how, self.penalty, len(self.data.levels), wide)
            for part in seen:
                one = _one(part.there, how.complete)
                made = linear.log_likelihoods(one, own, separate=False, unbiased=False)
                gain += made - additive * (one.rows / whole.rows)
                charge += self._charges(how, part.penalty, len(part.there.n), own)
            with np.errstate(invalid="ignore"):
                found[some] = ~(_TIMES * gain + _MORE <= charge)
        return found

    def _charges(
        self, how: Any, penalty: Penalty, data_sets: int, families: Sequence[Family]
    ) -> Floats:
        """What parameters cost where all slopes vary that the pooling lets vary, (M,)."""
        sizes = [len(parents) for _, parents in families]
        each = {p: how.counts(p, data_sets) for p in set(sizes)}
        counts = np.array([each[p] for p in sizes], dtype=np.int64)
        return penalty.charges(counts, np.array(sizes) + 1)

    def best(self, families: Sequence[Family], values: Floats, *, final: bool = False) -> Floats:
        """The better form of each family, by the scores of the additive one, (M,)."""
        at = np.flatnonzero(self.applies(families) if final else self.may_win(families))
        values = values.copy()
        if self.always:
            values[at] = -np.inf
        if len(at):
            found = self.scores([families[m] for m in at.tolist()], final=final)
            values[at] = np.maximum(values[at], found)
        return values

    def fit(self, family: Family, additive: GaussianFit) -> LocalFit:
        """The final fit of a node by its better form.

        Raises:
            DataError: there are too many configurations for regressions that have to be.
        """
        if not self.applies([family])[0] or not (self.always or self._is_better(family)):
            return additive
        side = self._sides(family)
        if self._numbers(side.discrete) > _LARGEST:
            names = listed([repr(self.data.names[k]) for k in side.discrete])
            raise DataError(
                f"{names} make {self._size(side.discrete):,} configurations in each of "
                f"{counted(len(self.data.levels), 'data set')}, too many for a regression in each; "
                "use fewer discrete parents, coarser levels, or ",
                Option("continuous", "additive"),
            )
        how = max(alternatives(self.model), key=lambda how: self._scores([family], how, True)[0])
        own = self._in_part(family)
        fits: list[GaussianFit | None] = []
        troubles: list[str | None] = []
        for part in self.parts(side.discrete):
            fits.append(None if part is None else how.fit(part.data, own, part.penalty))
            troubles.append(None if part is None else self._left_out(part, family[0]))
        return self._joined(family, fits, troubles, additive, how)

    def _is_better(self, family: Family) -> bool:
        wide = expanded(self.data, [family])
        own = self.model.logliks(self._whole, wide, self.penalty, final=True)
        return bool(self.scores([family], final=True)[0] > own.penalised(self.penalty, wide)[0])

    def _joined(
        self,
        family: Family,
        fits: Sequence[GaussianFit | None],
        troubles: Sequence[str | None],
        additive: GaussianFit,
        how: NodeModel,
    ) -> ConditionalFit:
        """The fits of all configurations, of which some have no rows, as one."""
        names, levels = self.data.names, self.data.categories
        child, parents = family
        side = self._sides(family)
        others = tuple(names[p] for p in side.others)
        wide = expanded(self.data, [(child, side.others)])[0][1]
        seen = [fit for fit in fits if fit is not None]
        out = [level for level in additive.levels if all(level in fit.left_out for fit in seen)]
        blank = ConditionalFit(
            child=additive.child,
            parents=tuple(names[p] for p in parents),
            given=tuple(levels[p] for p in parents),
            levels=additive.levels,
            pooling=_conditional(how),
            loglik=math.fsum(fit.loglik for fit in seen),
            counts=Counts(*np.sum([fit.counts for fit in seen], axis=0).tolist()),
            n_rows=additive.n_rows,
            status=Status.CONVERGED,
            detail="",
            left_out=tuple(out),
            parts=(),
            at=self._whole.center[list(wide)],
            unseen=tuple(fit is None for fit in fits),
        )
        parts = tuple(
            _folded(additive, others, blank.parents, blank.given, codes) if fit is None else fit
            for fit, codes in zip(fits, blank.configurations, strict=True)
        )
        status, detail = _ending(blank, fits, troubles)
        loglik = blank.loglik if status.ok else -math.inf
        return replace(blank, parts=parts, status=status, detail=detail, loglik=loglik)


def _conditional(how: NodeModel) -> Pooling:
    """The pooling of a node whose regressions are all of this one."""
    own: Any = how.how
    made: Pooling = replace(own, continuous="conditional")
    return made


def _folded(
    fit: GaussianFit,
    others: tuple[str, ...],
    parents: Sequence[str],
    given: Sequence[tuple[str, ...]],
    levels: Mapping[str, str],
) -> GaussianFit:
    """An additive regression where discrete parents have these levels."""
    T = np.zeros((len(others) + 1, len(fit.columns) + 1))
    T[0, 0] = 1.0
    for name, own, span in zip(parents, given, spans(given), strict=True):
        if not own:
            T[1 + others.index(name), 1 + span[0]] = 1.0
        elif levels[name] != own[0]:
            T[0, span[own.index(levels[name]) - 1] + 1] = 1.0
    total, between = uncertainty(fit)
    fixed, fixed_cov, random_cov = fit.fixed, fit.fixed_cov, fit.random_cov
    return replace(
        fit,
        parents=others,
        given=((),) * len(others),
        coef=fit.coef @ T.T,
        coef_cov=T @ fit.coef_cov @ T.T,
        fixed=None if fixed is None else T @ fixed,
        fixed_cov=None if fixed_cov is None else T @ fixed_cov @ T.T,
        random_cov=None if random_cov is None else T @ random_cov @ T.T,
        total_cov=T @ total @ T.T,
        between_cov=T @ between @ T.T,
        sums=None,
        saved_intervals=None,
        later=None,
    )


def _ending(
    fit: ConditionalFit, fits: Sequence[GaussianFit | None], troubles: Sequence[str | None]
) -> tuple[Status, str]:
    """How the fits of all configurations ended: the first one in trouble decides."""
    words = [words_of(levels) for levels in fit.configurations]
    text = f"a regression for each of {counted(len(words), 'configuration')}"
    none = [f"({own})" for own, part in zip(words, fits, strict=True) if part is None]
    if none:
        text += f"; no row has {listed(none, _NAMED)}, where the additive regression answers"
    told = [(own, part) for own, part in zip(words, fits, strict=True) if part is not None]
    for own, part in told:
        if not part.status.ok:
            rows = counted(part.n_rows, "row")
            return part.status, f"where {own}, which {rows} have: {part.detail}"
    for own, why in zip(words, troubles, strict=True):
        if why is not None:
            return Status.NO_RESIDUAL_VARIANCE, f"where {own}, {why}, and not in all its rows"
    for status in (Status.NOT_CONVERGED, Status.SINGULAR):
        some = [f"({own})" for own, part in told if part.status is status]
        if some:
            return status, f"{text}; {status} where {listed(some, _NAMED)}"
    return Status.CONVERGED, text
