"""Discrete nodes with discrete parents: a table of probabilities in each data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from poolbn.moments.data import Data
from poolbn.moments.indicators import tabulate
from poolbn.nodes import polya
from poolbn.nodes.auto import Candidate
from poolbn.nodes.equality import Equality
from poolbn.nodes.localfit import Counts, LocalFit, Status, level_columns
from poolbn.nodes.logeffects import LogEffects, Sharing, known_table_effects, table_effects
from poolbn.nodes.poolings import Complete, NoPooling, Partial
from poolbn.nodes.terms import Term, held_tests, log_terms
from poolbn.tables.kinds import ColumnKind
from poolbn.wording import figure

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LARGEST = 10**7  # probabilities of one node
_SHOWN = 12  # rows of a table that is printed


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TabularFit(LocalFit):
    """Probabilities of the levels of a node, for each configuration of its parents.

    Attributes:
        concentration: how alike data sets are: the rows that the population counts for in each;
            inf where they are the same, 0 without pooling.
        population: probabilities in the population of data sets, (C, K): of each of C
            configurations of the parents, of which the last one's level changes fastest.
        probabilities: in each data set, (F, C, K). A configuration that a data set has not seen has
            those of the population; one that none has seen those of the node without parents.
        saved_effects: log odds ratios and how sure they are, by the rows; None where that is not
            known.
        later: where cells are missing, what makes the effects.

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

    concentration: float
    population: Floats
    probabilities: Floats
    saved_effects: LogEffects | None = None
    later: Callable[[], LogEffects] | None = None

    @cached_property
    def effects(self) -> LogEffects:
        """Log odds ratios of the parents' levels, and how sure they are."""
        if self.later is not None:
            return self.later()
        if self.saved_effects is not None:
            return self.saved_effects
        sizes = [len(levels) for levels in self.given]
        return known_table_effects(self.population, self.probabilities, sizes)

    @property
    def kind(self) -> ColumnKind:
        """What the node's column holds."""
        return "discrete"

    def terms(self, parent: str) -> Iterator[Term]:
        """The effects of a parent: logarithms of odds ratios."""
        pooled = not isinstance(self.pooling, NoPooling)
        return log_terms(self.effects, self.columns_of(parent), self.categories[1:], pooled=pooled)

    @property
    def holds_tests(self) -> bool:
        """Whether `equality` needs no data."""
        return True

    def equality(self, data: Data | None = None) -> dict[str, Equality]:
        """Tests for equal effects, which the fit holds."""
        return held_tests(self.parents, self.effects)

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

    def _printed(self) -> str:
        table = self.table()["population"]
        more = f"\n({len(table) - _SHOWN} more in .table())" * (len(table) > _SHOWN)
        return f"{table.head(_SHOWN).to_string(float_format=figure)}{more}"

    def _more(self) -> str:
        inside = 0 < self.concentration < inf
        return f"concentration {figure(self.concentration)}; " if inside else ""


def sizes_of(table: Data, child: str, parents: Sequence[str]) -> tuple[int, ...]:
    """Levels of the parents and then of the child."""
    return tuple(len(table.categories[table.names.index(name)]) for name in (*parents, child))


def is_small(table: Data, child: str, parents: Sequence[str]) -> bool:
    """Whether a table of probabilities can be held in memory."""
    sizes = sizes_of(table, child, parents)
    return bool(len(table.levels) * np.prod(sizes, dtype=float) <= _LARGEST)


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
        each: the penalty of a parameter of each kind of `Counts`, (3,).
    """
    params = np.array([_params(own, how) for own in counts])
    made, draws = zip(*(_for_fit(own, how) for own in counts), strict=True)
    return np.asarray(_LOGLIKS[type(how)](made) / draws - params @ each)


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


def with_effects(fit: TabularFit, table: Data, *, tests: bool = True) -> TabularFit:
    """The fit with its log odds ratios and how sure they are, which needs counts of rows."""
    if not fit.parents:
        return fit
    counts = counts_of(table, fit.child, fit.parents)
    if counts.ndim > 3:
        counts = counts.mean(axis=0)
    sizes = [len(levels) for levels in fit.given]
    sharing = _SHARING[type(fit.pooling)]
    found = table_effects(counts, fit.probabilities, sizes, sharing, tests=tests)
    return replace(fit, saved_effects=found)
