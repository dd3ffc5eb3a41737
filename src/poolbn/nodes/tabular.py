"""Discrete nodes with discrete parents: a table of probabilities in each data set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isinf, prod
from typing import TYPE_CHECKING, Self

import numpy as np

from poolbn.errors import DataError, Option
from poolbn.moments.data import Data
from poolbn.moments.indicators import tabulate
from poolbn.nodes import polya
from poolbn.nodes.auto import Candidate
from poolbn.nodes.drawing import Observed, dirichlet
from poolbn.nodes.links import drawn_levels, level_quantiles, log_level
from poolbn.nodes.localfit import ALONE, Counts, Status, level_columns
from poolbn.nodes.logfit import (
    LogEffects,
    LogFit,
    Sharing,
    appended,
    known_table_effects,
    log_odds_ratios,
    table_effects,
)
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.predicting import TablePredictions, Values, configurations
from poolbn.tables.kinds import ColumnKind
from poolbn.wording import figure

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

_LARGEST = 10**7  # probabilities of one node
_SHOWN = 12  # rows of a table that is printed


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TabularFit(LogFit):
    """Probabilities of the levels of a node, for each configuration of its parents.

    Attributes:
        concentration: how alike data sets are: the rows that the population counts for in each;
            inf where they are the same, 0 without pooling.
        population: probabilities in the population of data sets, (C, K): of each of C
            configurations of the parents, of which the last one's level changes fastest.
        probabilities: in each data set, (F, C, K). A configuration that a data set has not seen has
            those of the population; one that none has seen those of the node without parents.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> made = trial.assign(old=trial["age"] > 25, heavy=trial["bmi"] > 30)[
        ...     ["clinic", "old", "heavy"]]
        >>> pb.fit_node(pb.table(made, group="clinic"), "heavy", ["old"])
        heavy given old: partial pooling, 4 clinics, 750 rows
               False   True
        old
        False 0.7623 0.2377
        True  0.7068 0.2932
        concentration 19.67; log-likelihood -417.6740, 3 parameters, BIC -427.6041
        converged: Dirichlet distributions around the population
    """

    _of_data_sets = ("probabilities",)

    concentration: float
    population: Floats
    probabilities: Floats

    @property
    def _known(self) -> LogEffects:
        return known_table_effects(self.population, self.probabilities, self._sizes)

    @property
    def _sizes(self) -> list[int]:
        """Levels of the parents."""
        return [len(levels) for levels in self.given]

    @property
    def kind(self) -> ColumnKind:
        """What the node's column holds."""
        return "discrete"

    @property
    def model(self) -> str:
        """What kind of model it is, in words."""
        return "table of probabilities"

    def table(self) -> pd.DataFrame:
        """A row for each configuration: probabilities in the population, and in each data set.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age"]]
            >>> made = trial.assign(age=trial["age"] > 25)
            >>> table = pb.table(made, group="clinic")
            >>> fit = pb.fit_node(table, "age", pooling=pb.Partial(discrete="table"))
            >>> fit.table()["NY"].round(2).to_numpy().tolist()
            [[0.48, 0.52]]
        """
        import pandas as pd

        names = ["population", *level_columns(self.levels, ["population"])]
        every = [self.population, *self.probabilities]
        columns = pd.MultiIndex.from_product([names, self.categories])
        if self.parents:
            index: pd.Index = pd.MultiIndex.from_product(self.given, names=self.parents)
        else:
            index = pd.Index([""])
        return pd.DataFrame(np.concatenate(every, axis=1), index=index, columns=columns)

    def mean(self, values: Values, sets: Integers) -> Floats:
        """Probabilities of levels given parents."""
        at = configurations(self.parents, self.given, values)
        return np.asarray(self.probabilities[sets, at])

    def log_density(self, x: Floats, values: Values, sets: Integers) -> Floats:
        """Of each row."""
        return log_level(self.mean(values, sets), x)

    def draw(self, values: Values, sets: Integers, rng: np.random.Generator) -> Floats:
        """A level for each row."""
        return drawn_levels(self.mean(values, sets), rng)

    def quantile(self, u: Floats, mean: Floats, sets: Integers) -> Floats:
        """The levels at probabilities u where these are the probabilities."""
        return level_quantiles(u, mean)

    def predictive(self, certain: NDArray[np.bool_]) -> TablePredictions:
        """The probabilities, which are expected ones."""
        return TablePredictions(self.probabilities, self.parents, self.given)

    def data_set_draws(self, draws: int, rng: np.random.Generator) -> Self:
        """The parameters of the F data sets, `draws` times; as they are for 0 draws."""
        return self._moved(self.probabilities, _errors(self.effects.own_se, draws, rng))

    def new_data_sets(self, sets: int, draws: int, rng: np.random.Generator) -> Self:
        """Parameters of new data sets, for each draw of the population if there are draws."""
        table = np.broadcast_to(self.population, (sets, *self.population.shape))
        s = self.concentration
        if 0 < s < inf:
            parts = rng.standard_gamma(np.broadcast_to(s * table, table.shape))
            total = parts.sum(axis=2, keepdims=True)
            table = np.where(total > 0, parts / np.where(total > 0, total, 1.0), table)
        return self._moved(table, _errors(self.effects.se[None], draws, rng))

    def _moved(self, tables: Floats, error: Floats) -> Self:
        """Tables (F, C, K) with log odds ratios changed, for each draw: (draws * F, C, K)."""
        sizes, (C, K) = self._sizes, self.population.shape
        draws, F = len(error), len(tables)
        change = np.zeros((draws, error.shape[1], C, K))
        each = error.reshape(*error.shape[:2], K - 1, -1)
        levels = np.stack(np.unravel_index(np.arange(C), sizes)) if sizes else np.zeros((0, C), int)
        start = 0
        for size, level in zip(sizes, levels, strict=True):
            own = np.zeros((*each.shape[:3], size))
            own[..., 1:] = each[..., start : start + size - 1]
            change[..., 1:] += np.moveaxis(own[..., level], 2, 3)
            start += size - 1
        p = tables * np.exp(change - change.max(axis=3, keepdims=True))
        p = (p / p.sum(axis=3, keepdims=True)).reshape(draws * F, C, K)
        return replace(self, levels=tuple(range(len(p))), probabilities=p)

    def redrawing(self, rows: Observed) -> Callable[[np.random.Generator], TablePredictions]:
        """What draws tables around a common one, which counts tell of where they are alike."""
        if self.experiments:
            return self._as_estimated()
        names = [rows.values[name].astype(np.int64) for name in self.parents]
        codes, F = [*names, rows.x.astype(np.int64)], len(rows.offsets) - 1
        sizes = (*self._sizes, len(self.categories))
        counts = tabulate(codes, sizes, rows.sets, F).astype(np.float64)
        s, n = self.concentration, counts.sum(axis=2, keepdims=True)

        def drawn(rng: np.random.Generator) -> TablePredictions:
            if s == 0:
                return made(dirichlet(counts + self.population, rng))
            told = (n if isinf(s) else n * s / (n + s)).sum(axis=0)
            base = np.where(told > 0, dirichlet(told * self.population, rng), self.population)
            if isinf(s):
                return made(np.tile(base, (F, 1, 1)))
            return made(dirichlet(counts + s * base, rng))

        def made(tables: Floats) -> TablePredictions:
            return TablePredictions(tables, self.parents, self.given)

        return drawn

    def adapted(self, name: Hashable, new: Data | None, n: Integers) -> Self:
        """The fit with one more data set, of which there are rows or none.

        Its probabilities are the means given its counts: with those of the population counting for
        `concentration` rows.
        """
        if new is None and isinstance(self.pooling, NoPooling):
            raise DataError(
                f"{ALONE}: the probabilities of {self.child!r} need rows; give some, or learn "
                "with ",
                Option("pooling", "partial"),
            )
        if self.experiments:
            return self._beside_set(name, new, n)
        fit = self.with_all()
        own = self.population
        counts = np.zeros((1, *own.shape))
        if new is not None:
            counts = counts_of(new, self.child, self.parents).astype(np.float64)
        s, rows = self.concentration, counts[0].sum(axis=1, keepdims=True)
        if isfinite(s):
            seen = np.maximum(rows + s, np.finfo(float).tiny)
            own = np.where(rows > 0, (counts[0] + s * own) / seen, own)
        added = replace(
            fit,
            levels=(*self.levels, name),
            probabilities=np.concatenate([self.probabilities, own[None]]),
        )
        if fit.saved_effects is None:
            return added
        (value,), (variance,) = log_odds_ratios(counts, self._sizes)
        return replace(added, saved_effects=self._shrunk(fit.saved_effects, value, variance))

    def _shrunk(self, found: LogEffects, value: Floats, variance: Floats) -> LogEffects:
        """With log odds ratios of a new data set, which are shrunk as far as pooling is partial."""
        if isinf(self.concentration) and np.isnan(found.between_sd).all():  # complete pooling
            return appended(found, found.effect, found.se)
        if isinstance(self.pooling, NoPooling):
            return appended(found, value, np.sqrt(variance))
        t2 = np.nan_to_num(found.between_sd) ** 2
        kept = np.where(np.isfinite(variance), t2 / (t2 + variance), 0.0)  # of its own estimate
        own = found.effect + kept * (value - found.effect)
        se = np.sqrt((1 - kept) * t2 + (1 - kept) ** 2 * found.se**2)
        return appended(found, own, se)

    def with_effects(self, data: Data, *, tests: bool = True) -> Self:
        """The fit with its log odds ratios and how sure they are, which needs counts of rows."""
        if not self.parents:
            return self
        counts = counts_of(data, self.child, self.parents)
        if counts.ndim > 3:
            counts = counts.mean(axis=0)
        sharing = _SHARING[type(self.pooling)]
        found = table_effects(counts, self.probabilities, self._sizes, sharing, tests=tests)
        return replace(self, saved_effects=found)

    def _in(self, data: Data) -> Self:
        return self.with_effects(data, tests=False)

    def in_population(self) -> Self:
        """The fit of one data set, which is like the population."""
        return replace(self, levels=self.levels[:1], probabilities=self.population[None])

    def taken(self, at: Sequence[int], levels: tuple[Hashable, ...]) -> Self:
        """The fit of the data sets at these positions, which may repeat, under these names."""
        own, p = self._left_out(at, levels), self.probabilities[at]
        return replace(
            self, levels=levels, left_out=own, probabilities=p, saved_effects=self._taken(at),
            later=None, **self._intervened(at, levels),
        )  # fmt: skip

    def set_to(self, where: Data) -> Self:
        """Where the node was set: the shares of its levels there."""
        shape = len(where.n), *self.population.shape
        shares = np.broadcast_to(shares_of(where, self.child)[:, None], shape)
        return replace(
            self, levels=where.levels, was_set=where.levels, was_changed=(), probabilities=shares,
            saved_effects=None, later=None,
        )  # fmt: skip

    def changed_in(self, where: Data) -> Self:
        """Where the node was changed: a table in each data set."""
        own = fit_tabular(where, self.child, self.parents, NoPooling())
        return replace(
            self, levels=where.levels, was_set=(), was_changed=where.levels,
            probabilities=own.probabilities, saved_effects=None, later=None,
        )  # fmt: skip

    def _logs_alone(self, data: Data) -> tuple[Floats, Floats]:
        value, variance = log_odds_ratios(counts_of(data, self.child, self.parents), self._sizes)
        return value, np.sqrt(variance)

    @property
    def parameters(self) -> str:
        """What differs between data sets, in words."""
        return "probabilities"

    def _printed(self) -> str:
        table = self.table()["population"]
        more = f"\n({len(table) - _SHOWN} more in .table())" * (len(table) > _SHOWN)
        return f"{table.head(_SHOWN).to_string(float_format=figure)}{more}"

    @property
    def extra(self) -> tuple[str, float] | None:
        """The concentration, where data sets neither are the same nor have nothing in common."""
        inside = 0 < self.concentration < inf
        return ("concentration", self.concentration) if inside else None


def sizes_of(table: Data, child: str, parents: Sequence[str]) -> tuple[int, ...]:
    """Levels of the parents and then of the child."""
    return tuple(len(table.categories[table.names.index(name)]) for name in (*parents, child))


def is_small(table: Data, child: str, parents: Sequence[str]) -> bool:
    """Whether a table of probabilities can be held in memory."""
    return len(table.levels) * prod(sizes_of(table, child, parents)) <= _LARGEST


def counts_of(table: Data, child: str, parents: Sequence[str]) -> NDArray[np.int64]:
    """Rows by data set, configuration of the parents and level of the child, (F, C, K).

    Where missing cells are drawn M times, those of each draw, (M, F, C, K).
    """
    rows = table.cases((*parents, child))
    own = [column.astype(np.int64) for column in rows.columns]
    sizes, F = sizes_of(table, child, parents), len(table.levels)
    if rows.draw is None:
        n = None if rows.n is None else rows.n.astype(np.int64)
        return tabulate(own, sizes, rows.data_set, F, n)
    assert rows.n is not None
    M, data_set, counted = max(int(rows.draw.max()) + 1, 1), rows.data_set, rows.n > 0
    each = [counted & (rows.draw < 0), counted & (rows.draw >= 0)]
    sets = data_set[each[0]], rows.draw[each[1]] * F + data_set[each[1]]
    whole, drawn = (
        tabulate([codes[some] for codes in own], sizes, of, times * F)
        for some, of, times in zip(each, sets, (1, M), strict=True)
    )
    return np.asarray(whole + drawn.reshape(M, *whole.shape))


def shares_of(table: Data, name: str) -> Floats:
    """Those of the levels of a column in each data set, (F, K)."""
    counts = counts_of(table, name, ())
    rows = (counts.mean(axis=0) if counts.ndim > 3 else counts)[:, 0]
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _for_fit(counts: NDArray[np.int64], how: Candidate) -> tuple[NDArray[np.int64], int]:
    """Counts whose likelihood, divided by a number of draws, is the expected one; that number.

    With partial pooling each draw of a data set is a data set. Other likelihoods are in proportion
    to counts, and those of draws add up.
    """
    if counts.ndim == 3:
        return counts, 1
    if isinstance(how, Partial):
        return counts.reshape(-1, *counts.shape[2:]), len(counts)
    return counts.sum(axis=0), len(counts)


def tabular_scores(counts: Sequence[NDArray[np.int64]], how: Candidate, each: Floats) -> Floats:
    """Log-likelihoods of families minus penalties.

    Args:
        counts: of each family, see `counts_of`.
        how: how data sets share strength.
        each: the penalty of a parameter of each kind of `Counts`, (5,).
    """
    params = np.array([_params(own, how) for own in counts])
    made, draws = zip(*(_for_fit(own, how) for own in counts), strict=True)
    return np.asarray(_LOGLIKS[type(how)](made) / draws - params @ each)


def saturated_loglik(counts: NDArray[np.int64], how: Candidate) -> float:
    """An upper bound of log-likelihoods of any model of a node with discrete parents."""
    made, draws = _for_fit(counts, how)
    logliks = polya.complete_logliks if isinstance(how, Complete) else polya.none_logliks
    return float(logliks([made])[0]) / draws


_LOGLIKS = {
    Complete: polya.complete_logliks,
    NoPooling: polya.none_logliks,
    Partial: polya.partial_logliks,
}
_FITS = {Complete: polya.complete, NoPooling: polya.none, Partial: polya.partial}
_DETAILS = {
    Complete: "shares of rows, in closed form",
    NoPooling: "shares of rows in each data set, in closed form",
    Partial: "Dirichlet distributions around the population",
}

_SHARING: dict[type, Sharing] = {
    Complete: Sharing.COMPLETE,
    NoPooling: Sharing.NONE,
    Partial: Sharing.PARTIAL,
}


def _params(counts: NDArray[np.int64], how: Candidate) -> Counts:
    F, C, K = counts.shape[-3:]
    table = C * (K - 1)
    if isinstance(how, NoPooling):
        return Counts(0, 0, F * table)
    return Counts(table, int(isinstance(how, Partial)), 0)


def fit_tabular(table: Data, child: str, parents: Sequence[str], how: Candidate) -> TabularFit:
    """The final fit of a discrete node whose parents are discrete."""
    counts = counts_of(table, child, parents)
    made, draws = _for_fit(counts, how)
    found = _FITS[type(how)](made)
    tables = found.tables.reshape(-1, len(table.levels), *found.base.shape).mean(axis=0)
    status, detail = Status.CONVERGED, _DETAILS[type(how)]
    if isinstance(how, Partial) and found.limit is polya.Limit.COMPLETE:
        status, detail = Status.SINGULAR, "data sets do not differ"
    of = {name: table.categories[table.names.index(name)] for name in (child, *parents)}
    return TabularFit(
        child=child,
        parents=tuple(parents),
        levels=table.levels,
        pooling=how,
        loglik=found.loglik / draws,
        counts=_params(counts, how),
        n_rows=table.n_rows,
        status=status,
        detail=detail,
        categories=of[child],
        given=tuple(of[name] for name in parents),
        concentration=found.s,
        population=found.base,
        probabilities=tables,
    )


def _errors(se: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Errors of log odds ratios, (draws, F or 1, m); zero without draws."""
    if not draws:
        return np.zeros((1, *se.shape))
    known = np.where(np.isfinite(se), se, 0.0)
    return np.asarray(known * rng.standard_normal((draws, *se.shape)))
