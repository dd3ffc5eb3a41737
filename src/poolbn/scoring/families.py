"""Scores of nodes by what kind they are, on one scale: one object for all data.

What nodes of one kind are scored and fitted by is a `KindFamily`. Kinds have one each, see
`pb.register_kind`; a discrete parent is a block of columns, which comes and goes whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from poolbn.arrays import Flags
from poolbn.moments.data import Data
from poolbn.moments.indicators import spans
from poolbn.moments.standardised import Family, changed_by, expanded, standardise
from poolbn.nodes import kinds, within
from poolbn.nodes.auto import Candidate
from poolbn.nodes.conditional import ByConfiguration
from poolbn.nodes.gaussianfit import of_nodes
from poolbn.nodes.kinds import Names
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import NeighbourScores, NodeModel, Penalty
from poolbn.nodes.poolings import Complete, Partial
from poolbn.nodes.rowscores import Fitted
from poolbn.run.compiling import prefetch
from poolbn.scoring.inside import InsideLikelihood, most_of, promised, promised_with_units
from poolbn.scoring.likelihoods import PenalisedLikelihood, total_of
from poolbn.scoring.sparsity import sparsity
from poolbn.tables.kinds import has_levels, is_ordered, kind_named

Floats = NDArray[np.float64]

_WIDE = 8  # levels of a parent, above which fits are screened
_KEPT = 1024  # fits of a search, without their rows
_WITH_UNITS = 10  # times what a score without units costs


class KindScores(Protocol):
    """Scores and fits of nodes of one kind; families are positions in the columns of the data.

    They may have `bounds`, `neighbours` and `cost` too, as `scoring.local.Scores` has them.
    """

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Log-likelihoods minus penalties, with the effort of a search, or of a final fit."""

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""


class KindFamily(Protocol):
    """How nodes of one kind are scored and fitted."""

    def on(self, data: Data, model: NodeModel, penalty: Penalty) -> KindScores:
        """Their scores for some data under one pooling."""


@dataclass(frozen=True, eq=False)
class GaussianNodes:
    """Continuous nodes.

    Attributes:
        data: sums, or rows.
        columns: their scores where levels of discrete parents add something.
        forms: those of a regression for each configuration of discrete parents, where nodes may
            have them.
    """

    data: Data
    columns: PenalisedLikelihood | InsideLikelihood
    forms: ByConfiguration | None = None

    @cached_property
    def _plain(self) -> bool:
        """Whether each column of the data is one column of numbers."""
        return not any(self.data.categories)

    def _expanded(self, families: Sequence[Family]) -> Sequence[Family]:
        return families if self._plain else expanded(self.data, families)

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Of each family."""
        wide = self._expanded(families)
        values = self.columns.scores(wide, final=final)
        at = self._with_forms(families)
        if self.forms is None or not len(at):
            return values
        # Where levels of data sets are free, configurations bring what they bring where these are
        # random, as columns do that describe data sets.
        some = [families[m] for m in at]
        plain = self.columns.with_random_levels([wide[m] for m in at], values[at], final=final)
        best = self.forms.best(some, plain, final=final)
        with np.errstate(invalid="ignore"):
            moved = values[at] + (best - plain)
        values[at] = np.where(np.isnan(moved), best, moved)
        return values

    def _with_forms(self, families: Sequence[Family]) -> list[int]:
        """Those of the families that may be better by configuration of discrete parents."""
        if self.forms is None:
            return []
        found: list[int] = np.flatnonzero(self.forms.may_win(families)).tolist()
        return found

    def bounds(self, families: Sequence[Family]) -> Floats | None:
        """Upper bounds, NaN where there are none that cost less; None if nowhere."""
        found = self.columns.bounds(self._expanded(families))
        if found is not None:
            found[self._with_forms(families)] = np.nan
        return found

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """All changes of parents at once, but NaN for those that are several columns.

        And for those that may be better by configuration.
        """
        found = self._neighbours(families, candidates, improving_only=improving_only)
        if found is None or self.forms is None:
            return found
        at = [(m, p) for m, p in np.argwhere(candidates & ~np.isnan(found.values)).tolist()]
        changed = [changed_by(families[m], p) for m, p in at]
        for k in self._with_forms(changed):
            found.values[at[k]], found.exact[at[k]] = np.nan, False
        own = [child for child, _ in families]
        for m in self._with_forms(families):
            found.values[m, own[m]], found.exact[m, own[m]] = np.nan, False
        return found

    def _neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """Where levels add something."""
        look = partial(self.columns.neighbours, improving_only=improving_only)
        if self._plain:
            return look(families, candidates)
        columns = spans(self.data.categories)
        at = np.array([span[0] if len(span) == 1 else -1 for span in columns])
        one = at >= 0
        several = np.zeros((len(families), columns[-1].stop), dtype=bool)
        several[:, at[one]] = candidates[:, one]
        made = look(expanded(self.data, families), several)
        if made is None:
            return None
        found = NeighbourScores(np.full(candidates.shape, np.nan), np.zeros_like(candidates))
        found.values[:, one], found.exact[:, one] = made.values[:, at[one]], made.exact[:, at[one]]
        if improving_only:
            self._screen_wide(found, families, candidates, columns)
        return found

    def _screen_wide(
        self,
        found: NeighbourScores,
        families: Sequence[Family],
        candidates: NDArray[np.bool_],
        columns: Sequence[range],
    ) -> None:
        """Parents of many levels, whose fits take seconds: what scores with them hardly exceed."""
        wide = [p for p, span in enumerate(self.data.categories) if len(span) > _WIDE]
        own = found.values[range(len(families)), [child for child, _ in families]]
        for m, (child, parents) in enumerate(families):
            for p in (p for p in wide if candidates[m, p] and p not in (child, *parents)):
                if np.isfinite(own[m]):
                    (family,) = expanded(self.data, [(child, parents)])
                    block = list(columns[p])
                    found.values[m, p] = self.columns.most_with(family, block, float(own[m]))

    def cost(self) -> float:
        """About the regressions that one score costs."""
        return self.columns.cost()

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        if self._plain:
            return self.columns.fit(family)
        _, parents = family
        names, categories = self.data.names, self.data.categories
        made = self.columns.fit(*expanded(self.data, [family]))
        fit = of_nodes(made, [names[p] for p in parents], [categories[p] for p in parents])
        return fit if self.forms is None else self.forms.fit(family, fit)


@dataclass(frozen=True, eq=False)
class RowNodes:
    """Discrete nodes and counts.

    Attributes:
        data: the rows, or counts of them.
        hows: the poolings that a final fit may have; a search has the first one.
        each: the penalty of a parameter of each kind of `Counts`, (5,).
        inside: whether levels of data sets are free, see `inside`.
    """

    data: Data
    hows: tuple[Candidate, ...]
    each: Floats
    inside: bool = False

    def _named(self, family: Family) -> Names:
        """Parents in the order of their names: the order of columns does not matter to a bit."""
        child, parents = family
        names = self.data.names
        return names[child], sorted(names[p] for p in parents)

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Of each family."""
        if not self.inside:
            return self._plain(families, final=final)
        level = self._level
        alone = {child: (child, ()) for child, _ in families}
        own = [(c, tuple(p for p in pa if not level[p])) for c, pa in families]
        beside = [m for m, (c, pa) in enumerate(families) if level[c] or own[m][1] != pa]
        plain = [*alone.values(), *(families[m] for m in beside), *(own[m] for m in beside)]
        known = dict(zip(plain, self._plain(plain, final=final).tolist(), strict=True))
        values = np.empty(len(families))
        for m, family in enumerate(families):
            child, _ = family
            if level[child]:
                values[m] = known[family]
                continue
            values[m] = known[alone[child]] + self._gain(own[m])
            if family != own[m]:  # what columns that describe data sets bring
                values[m] += known[family] - known[own[m]] if known[family] > -np.inf else -np.inf
        return values

    def _plain(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """With random levels of data sets."""
        hows = self.hows if final else self.hows[:1]
        named, keep = list(map(self._named, families)), self._keep
        return kinds.scores(self.data, named, hows, self.each, final=final, keep=keep)

    def _gain(self, family: Family) -> float:
        """Of parents over none, where levels are free."""
        if len(self.data.categories[family[0]]) == 1 or not family[1]:
            return 0.0
        if family not in self._gains:
            child, parents = self._named(family)
            self._gains[family] = self._gain_of(child, parents)
        return self._gains[family]

    def _gain_of(self, child: str, parents: Sequence[str]) -> float:
        if self.data.unit is not None:
            found, alone = (self._of_deviations((child, own)) for own in (parents, []))
            return found - alone
        kind = self.data.kind(child)
        if is_ordered(kind):
            return within.ordered_gain(self.data, child, parents, self.each)
        form, known = self.hows[0].discrete, None
        if not has_levels(kind):
            form, known = "auto", self._count_alone(child)
        return within.gains(self.data, child, parents, self.each, form, known)

    def _of_deviations(self, family: Names) -> float:
        how, (child, parents) = self.hows[0], family
        assert isinstance(how, Partial)
        if parents or child not in self._without:
            found = kinds.score_of_deviations(self.data, family, how, self.each)
            if parents:
                return found
            self._without[child] = found
        return self._without[child]

    @cached_property
    def _without(self) -> dict[str, float]:
        """Scores without parents, with units inside data sets."""
        return {}

    @cached_property
    def _gains(self) -> dict[Family, float]:
        return {}

    def _count_alone(self, child: str) -> within.Alone:
        if child not in self._alone:
            self._alone[child] = within.alone(self.data, child)
        return self._alone[child]

    @cached_property
    def _level(self) -> list[bool]:
        """Whether columns describe data sets, and vary inside none."""
        found = standardise(self.data.stats()).group_level
        return [len(span) > 0 and bool(found[span].all()) for span in spans(self.data.categories)]

    @cached_property
    def _alone(self) -> dict[str, within.Alone]:
        return {}

    @cached_property
    def _fitted(self) -> dict[tuple[str, ...], Fitted]:
        return {}

    def _keep(self, family: Names, fitted: Fitted) -> None:
        """Of a count the best one."""
        if len(self._fitted) > _KEPT:
            self._fitted.clear()
        key = (family[0], *family[1])
        if key not in self._fitted or self._fitted[key].score < fitted.score:
            self._fitted[key] = fitted

    def bounds(self, families: Sequence[Family]) -> Floats:
        """Upper bounds; NaN where there are none."""
        if self.inside:
            return np.full(len(families), np.nan)
        return kinds.bounds(self.data, list(map(self._named, families)), self.hows[:1], self.each)

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """Only which parents more would lower the score, as score tests say; others are NaN.

        Inside data sets, and with complete pooling, what they hardly bring more than.
        """
        how = self.hows[0]
        if not improving_only:
            return None
        if self.inside or (isinstance(how, Complete) and self.data.unit is None):
            return self._promised(families, candidates)
        if not isinstance(how, Partial):
            return None
        shape = candidates.shape
        found = NeighbourScores(np.full(shape, np.nan), np.zeros(shape, dtype=bool))
        for m, family in enumerate(families):
            child, parents = self._named(family)
            others = set(np.flatnonzero(candidates[m]).tolist()) - {family[0], *family[1]}
            more = sorted(others)
            names = [self.data.names[p] for p in more]
            at = self._fitted.get((child, *parents))
            out = kinds.hopeless(self.data, (child, parents), names, how, self.each, at)
            for p in (p for p, lower in zip(more, out, strict=True) if lower):
                found.values[m, p] = -math.inf
        return found

    def _promised(self, families: Sequence[Family], candidates: Flags) -> NeighbourScores:
        """By what columns of numbers gain, if levels of the child are taken for such columns too.

        Where all are discrete, a table with two parents may gain what columns one by one do not:
        those are left NaN.
        """
        columns = spans(self.data.categories)
        numbers = standardise(self.data.stats())
        numbers = numbers.deviations if self.inside else numbers.as_one
        level = np.array(self._level) & self.inside
        several = [
            (k, tuple(c for p in parents for c in columns[p] if not level[p]))
            for child, parents in families
            for k in columns[child]
        ]
        wanted = np.zeros((len(several), columns[-1].stop), dtype=bool)
        at = np.cumsum([0, *(len(columns[child]) for child, _ in families)])
        more = candidates & ~level
        for m, (child, parents) in enumerate(families):
            more[m, [child, *parents]] = False
            for p in np.flatnonzero(more[m]).tolist():
                wanted[at[m] : at[m + 1], columns[p]] = True
        how = self.hows[0]
        if numbers.units is not None and isinstance(how, Partial):
            each = promised_with_units(numbers, how, several, wanted)
        else:
            each = promised(numbers, several, wanted)
        own = self.scores(families)
        found = NeighbourScores(np.full(more.shape, np.nan), np.zeros(more.shape, dtype=bool))
        for m, (child, parents) in enumerate(families):
            found.values[m, child], found.exact[m, child] = own[m], True
            if level[child] or not np.isfinite(own[m]):
                continue
            gains = each[at[m] : at[m + 1]].sum(axis=0)
            whole = most_of(np.array([gains[own_columns].sum() for own_columns in columns]))
            for p in np.flatnonzero(more[m]).tolist():
                each_level = 1 if is_ordered(self.data.kinds[child]) else len(columns[child])
                charge = self.each[0] * each_level * len(columns[p])
                most = own[m] + whole[p] - charge
                more_than_sum = bool(parents) and most <= own[m]
                if not (more_than_sum and self._table_is_better(child, (*parents, p), own[m])):
                    found.values[m, p] = most
        return found

    def _table_is_better(self, child: int, parents: tuple[int, ...], score: float) -> bool:
        """Whether a table of probabilities would have a higher score."""
        name, names = self._named((child, parents))
        if not all(has_levels(self.data.kind(each)) for each in (name, *names)):
            return False
        if is_ordered(self.data.kind(name)):
            return False
        if not self.inside:
            return kinds.table_score(self.data, (name, names), self.hows[0], self.each) > score
        if any(self._level[p] for p in parents) or self.hows[0].discrete == "logit":
            return False
        if self.data.unit is not None:  # a table has no place for units
            return False
        gain = within.table_gain(self.data, name, names, self.each)
        return gain + float(self._plain([(child, ())])[0]) > score

    def cost(self) -> float:
        """Regressions of rows cost most, and those with units more than tables."""
        return float(self.data.n_rows) * (1 if self.data.unit is None else _WITH_UNITS)

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        child, parents = family
        names = self.data.names
        return kinds.fit(self.data, names[child], [names[p] for p in parents], self.hows, self.each)


class _Gaussian:
    """The family of continuous nodes."""

    def on(self, data: Data, model: NodeModel, penalty: Penalty) -> GaussianNodes:
        numbers = standardise(data.stats())
        plain = PenalisedLikelihood(numbers, model, penalty)
        forms = ByConfiguration.of(data, model, penalty)
        if not (penalty.inside and model.partial and numbers.tells_inside):
            return GaussianNodes(data, plain, forms)
        inside = replace(plain, data=numbers.deviations, model=model.how)
        return GaussianNodes(data, InsideLikelihood(plain, inside), forms)


class _Rows:
    """The family of discrete nodes, ordinal ones and counts."""

    def on(self, data: Data, model: NodeModel, penalty: Penalty) -> RowNodes:
        hows = kinds.poolings(model, data)
        prefetch("polya", *["quasinewton"] * any(isinstance(how, Partial) for how in hows))
        first = hows[0]
        inside = penalty.inside and isinstance(first, Partial) and first.random == "full"
        if inside:
            prefetch("within")
        tells = inside and standardise(data.stats()).tells_inside
        return RowNodes(data, hows, penalty.each, tells)


_FAMILIES: dict[str, KindFamily] = {
    "continuous": _Gaussian(),
    "discrete": _Rows(),
    "count": _Rows(),
    "ordinal": _Rows(),
}


def _family(kind: str) -> KindFamily:
    """How nodes of a kind are scored and fitted; a registered kind says it itself."""
    own: KindFamily | None = kind_named(kind).family
    return _FAMILIES[kind] if own is None else own


@dataclass(frozen=True, eq=False)
class NodeScores:
    """The scores of some data under one pooling, each node by the family of its kind.

    Attributes:
        data: families are positions in its columns.
        model: the pooling.
        penalty: of parameters.
        sparse: whether that of `sparsity` is taken too, for the number of parents.
    """

    data: Data
    model: NodeModel
    penalty: Penalty
    sparse: bool = False

    @cached_property
    def _by_kind(self) -> dict[str, KindScores]:
        some = dict.fromkeys(self.data.kinds)
        return {kind: _family(kind).on(self.data, self.model, self.penalty) for kind in some}

    def of(self, child: int) -> KindScores:
        """Those of a node's kind."""
        return self._by_kind[self.data.kinds[child]]

    def _each(
        self,
        families: Sequence[Family],
        compute: Callable[[KindScores, Sequence[Family]], Floats | None],
    ) -> Floats:
        """What kinds say of their families, less what is charged for parents; NaN for nothing."""
        values = np.full(len(families), np.nan)
        at: dict[str, list[int]] = {}
        for m, (child, _) in enumerate(families):
            at.setdefault(self.data.kinds[child], []).append(m)
        for kind, own in at.items():
            some = families if len(at) == 1 else [families[m] for m in own]
            found = compute(self._by_kind[kind], some)
            values[own] = np.nan if found is None else found
        if self.sparse:
            values -= sparsity(len(self.data.names), [len(parents) for _, parents in families])
        return values

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Of each family."""
        return self._each(families, lambda of, some: of.scores(some, final=final))

    def bounds(self, families: Sequence[Family]) -> Floats | None:
        """Upper bounds of the scores that cost less, NaN where there are none."""

        def bounded(of: KindScores, some: Sequence[Family]) -> Floats | None:
            found: Floats | None = of.bounds(some) if hasattr(of, "bounds") else None
            return found

        values = self._each(families, bounded)
        alone = len(self._by_kind) == 1
        return None if alone and np.isnan(values).all() else values

    def neighbours(
        self, families: Sequence[Family], candidates: NDArray[np.bool_], *, improving_only: bool
    ) -> NeighbourScores | None:
        """All changes of parents at once; NaN for nodes whose kind has none."""
        found: NeighbourScores | None = None
        for kind, of in self._by_kind.items():
            if not hasattr(of, "neighbours"):
                continue
            if len(self._by_kind) == 1:  # without copies
                found = of.neighbours(families, candidates, improving_only=improving_only)
                continue
            at = [m for m, (c, _) in enumerate(families) if self.data.kinds[c] == kind]
            if not at:
                continue
            some = [families[m] for m in at]
            part = (
                of.neighbours(some, candidates[at], improving_only=improving_only) if at else None
            )
            if part is None:
                continue
            if found is None:
                shape = candidates.shape
                found = NeighbourScores(np.full(shape, np.nan), np.zeros(shape, dtype=bool))
            found.values[at], found.exact[at] = part
        if found is None:
            return None
        if self.sparse:
            N = len(self.data.names)
            charges = np.append(sparsity(N, range(N)), 0.0)
            for m, (child, parents) in enumerate(families):
                p = np.full(N, len(parents) + 1)
                p[list(parents)], p[child] = len(parents) - 1, len(parents)
                found.values[m] -= charges[p]
        return found

    def cost(self) -> float:
        """About the regressions that one score costs."""
        return float(sum(of.cost() for of in self._by_kind.values() if hasattr(of, "cost")))

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        return self.of(family[0]).fit(family)

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network, from its final fits."""
        if not self.sparse:
            return total_of(fits, self.penalty.each)
        return math.fsum(self.scores([family_of(self.data, fit) for fit in fits], final=True))


def family_of(data: Data, fit: LocalFit) -> Family:
    """The columns that a fit is of; parents in the order of columns."""
    at = data.names.index
    return at(fit.child), tuple(sorted(map(at, fit.parents)))
