"""Scores of continuous nodes by what happens inside data sets, whatever the levels of these are.

A site that is high in one column may be high in all. A random intercept in each node knows nothing
of that: it takes levels for independent, and the arcs that make them look so win, the more surely
the more rows there are. With free levels a node is scored by deviations from the means of data
sets, and only how it depends on its parents is pooled. That costs one row of each data set.

Columns that describe data sets have no deviations. As parents they bring what they bring where
levels are random, as children they are regressions of levels. All is on the scale of plain scores:
nodes without parents have theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poolbn.arrays import Flags, Floats
from poolbn.moments.standardised import Family, StandardisedStats, pack
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.linear import squares_left
from poolbn.nodes.model import NeighbourScores
from poolbn.nodes.poolings import Partial
from poolbn.run.compiling import kernels
from poolbn.scoring.likelihoods import PenalisedLikelihood

_EACH_ROW = math.log(10.0)
# By how much a column may bring more than its estimate, see `kernels.slopes`: small and large ones.
_SMALL, _LARGE = (4.0, 8.0), (2.0, 40.0)


@dataclass(frozen=True, eq=False)
class InsideLikelihood:
    """The scores of one table under partial pooling.

    Attributes:
        plain: with random levels; final fits are from there.
        inside: of deviations.
    """

    plain: PenalisedLikelihood
    inside: PenalisedLikelihood

    @cached_property
    def _at_level(self) -> Flags:
        """Columns that describe data sets, (N,)."""
        return self.plain.data.group_level

    @cached_property
    def _alone(self) -> Floats:
        """Scores of nodes without parents by deviations, (N,); -inf where these tell nothing."""
        varying = np.flatnonzero(~self._at_level).tolist()
        made = np.full(len(self._at_level), -np.inf)
        if varying:
            made[varying] = self.inside.scores([(child, ()) for child in varying])
        return made

    @cached_property
    def _plainly(self) -> Flags:
        """Children that are scored with random levels, (N,): as one that one data set has alone."""
        return np.asarray(~np.isfinite(self._alone))

    @cached_property
    def _offset(self) -> Floats:
        """What brings nodes without parents to their plain scores, (N,)."""
        own = np.flatnonzero(~self._plainly).tolist()
        made = np.zeros(len(self._at_level))
        if own:
            plain = self.plain.scores([(child, ()) for child in own])
            made[own] = np.where(np.isfinite(plain), plain - self._alone[own], 0.0)
        return made

    def _each(
        self,
        families: Sequence[Family],
        compute: Callable[[PenalisedLikelihood, Sequence[Family]], Floats | None],
    ) -> Floats | None:
        """What deviations say, and what columns that describe data sets bring beside them."""
        level, plainly = self._at_level, self._plainly
        if not plainly.any():
            found = compute(self.inside, families)
            return None if found is None else found + self._offset[[c for c, _ in families]]
        varying = [(c, tuple(p for p in pa if not level[p])) for c, pa in families]
        own = np.array([not plainly[c] for c, _ in families])
        beside = own & np.array([a != b for a, b in zip(varying, families, strict=True)])
        found = np.zeros(len(families))
        for at, of, some in ((own, self.inside, varying), (~own, self.plain, families)):
            here = np.flatnonzero(at).tolist()
            part = compute(of, [some[m] for m in here]) if here else np.zeros(0)
            if part is None:
                return None
            found[at] = part
        found[own] += self._offset[[c for c, _ in families]][own]
        if beside.any():
            here = np.flatnonzero(beside).tolist()
            whole = self.plain.scores([families[m] for m in here])
            without = self.plain.scores([varying[m] for m in here])
            found[beside] += whole - np.where(np.isfinite(without), without, np.inf)
        return found

    def scores(self, families: Sequence[Family], *, final: bool = False) -> Floats:
        """Of each family."""
        found = self._each(families, lambda of, some: of.scores(some, final=final))
        assert found is not None
        return found

    def with_random_levels(
        self, families: Sequence[Family], scores: Floats, *, final: bool
    ) -> Floats:
        """What families score where levels of data sets are random."""
        return self.plain.scores(families, final=final)

    def bounds(self, families: Sequence[Family]) -> Floats | None:
        """Upper bounds of the scores that cost less, or None if there are none."""
        return self._each(families, PenalisedLikelihood.bounds)

    def neighbours(
        self, families: Sequence[Family], candidates: Flags, *, improving_only: bool
    ) -> NeighbourScores | None:
        """Of columns to add what they hardly bring more than; others are NaN, see `Scores`."""
        if not improving_only:
            return None
        data, shape = self.inside.data, candidates.shape
        found = NeighbourScores(np.full(shape, np.nan), np.zeros(shape, dtype=bool))
        own = self.scores(families)
        wanted = candidates & ~self._at_level
        for m, (child, parents) in enumerate(families):
            found.values[m, child], found.exact[m, child] = own[m], True
            wanted[m, [child, *parents]] = False
            if self._plainly[child]:
                wanted[m] = False
        charges = self.inside.charges_of_one_more(families)
        if data.units is None:
            gains = promised(data, families, wanted)
        else:
            gains = self._promised(families, wanted)
        with np.errstate(invalid="ignore"):
            most = own[:, None] + most_of(gains) - charges[:, None]
        known = wanted & np.isfinite(own)[:, None]
        found.values[known] = most[known]
        return found

    def most_with(self, family: Family, block: Sequence[int], own: float) -> float:
        """What a family with many columns more hardly has a higher score than; `own` is its score.

        Rows gain at most `_EACH_ROW` each, and what slopes of their data set's own would bring.
        """
        child, parents = family
        data, level = self.inside.data, self._at_level
        kept = tuple(p for p in parents if not level[p])
        wider = tuple(sorted({*kept, *(p for p in block if not level[p])}))
        before, after = squares_left(data, [(child, kept), (child, wider)])
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.where(before > 0, np.log(before / after) / 2, 0.0)
        gain = float(data.n @ np.clip(gains, 0.0, _EACH_ROW))
        gain += _EACH_ROW * len(data.n) * bool(level[list(block)].any())
        return own + gain - self.inside.charge_of(family, len(wider) - len(kept))

    def _promised(self, families: Sequence[Family], wanted: Flags) -> Floats:
        """With units inside data sets, whose variance stays as the families' own fits have it."""
        model = self.inside.model
        assert isinstance(model, Partial)
        return promised_with_units(self.inside.data, model, families, wanted)

    def cost(self) -> float:
        """About the regressions that one score costs."""
        return self.inside.cost()

    def fit(self, family: Family) -> GaussianFit:
        """The final fit of a node."""
        return self.plain.fit(family)


def most_of(gains: Floats) -> Floats:
    """What columns hardly bring more than, by estimates of their gains."""
    return np.minimum(*(times * gains + more for times, more in (_SMALL, _LARGE)))


def promised(data: StandardisedStats, families: Sequence[Family], wanted: Flags) -> Floats:
    """About what log-likelihoods gain with one parent more, (M, N), where it is wanted."""
    packed = pack(data, families)
    F, N = data.mean.shape
    p = max(int(packed.sizes.max(initial=0)), 1)
    gains = np.zeros(wanted.shape)
    kernels("slopes").promise(
        data.n, data.scatter, *packed, wanted, np.empty((p, p)), np.empty((p, N)),
        np.empty((F, N)), np.empty((F, N)), np.empty((6, F)), gains,
    )  # fmt: skip
    return gains


def promised_with_units(
    data: StandardisedStats, model: Partial, families: Sequence[Family], wanted: Flags
) -> Floats:
    """The same with units inside data sets, whose variance stays as the families' own fits have it.

    Where a child describes units rows are as they are.
    """
    gains = np.zeros(wanted.shape)
    for m, family in enumerate(families):
        view = data
        if not data.unit_level[family[0]]:
            ratio = model.unit_ratios(data, [family])
            view = data.whitened(np.full(len(data.n), ratio[0]))
        gains[m] = promised(view, [family], wanted[m : m + 1])[0]
    return gains
