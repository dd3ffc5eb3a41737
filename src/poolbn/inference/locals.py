"""Nodes given their parents, as engines have them: by positions in the network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from poolbn.moments.table import Table
from poolbn.nodes.drawing import Observed
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.predicting import Floats, Predictions

Term = tuple[int, int]  # a column of numbers: a node, and the level that it indicates or -1


@dataclass(frozen=True, eq=False)
class Local:
    """A node given its parents."""

    of: Predictions  # its distribution
    names: tuple[str, ...]  # of its parents
    parents: tuple[int, ...]  # their positions
    given: tuple[tuple[str, ...], ...]  # the levels of each

    @property
    def levels(self) -> int:
        """How many it has; 0 for a continuous node, `COUNT` for a count."""
        return self.of.n_categories

    @property
    def is_gaussian(self) -> bool:
        """Whether it is normal or t around what is linear in its parents.

        Or in those that are numbers, where each configuration of the others has a regression.
        """
        return self.of.regressions is not None

    @cached_property
    def switches(self) -> tuple[int, ...]:
        """Positions of the discrete parents of which each configuration has a regression."""
        return tuple(self.parents[self.names.index(name)] for name in self.of.switches)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """What its coefficients after the intercept are of."""
        return tuple(
            (parent, code)
            for parent, levels in zip(self.parents, self.given, strict=True)
            if parent not in self.switches
            for code in (range(1, len(levels)) if levels else (-1,))
        )

    def named(self, above: Iterable[Floats]) -> dict[str, Floats]:
        """What its parents are, in their order, as `of` takes it."""
        return {name: x.ravel() for name, x in zip(self.names, above, strict=True)}


def locals_of(fits: Mapping[str, LocalFit], *, certain: Collection[Hashable]) -> tuple[Local, ...]:
    """The nodes of a network, with estimates for certain in some data sets."""
    at = {name: i for i, name in enumerate(fits)}
    sure = np.array([level in certain for level in next(iter(fits.values())).levels])
    return tuple(
        Local(fit.predictive(sure), fit.parents, tuple(map(at.__getitem__, fit.parents)), fit.given)
        for fit in fits.values()
    )


Redraw = Callable[[np.random.Generator], Local]


def redrawings(
    fits: Mapping[str, LocalFit], nodes: Collection[Local], table: Table
) -> list[Redraw]:
    """What draws each node anew, with its parameters for certain, from rows with missing cells.

    Fits are in the order of the table's columns; `nodes` are the same, with estimates for certain.
    """
    made: list[Redraw] = []
    for (v, fit), node in zip(enumerate(fits.values()), nodes, strict=True):
        there = ~np.isnan(table.values[[v, *node.parents]]).any(axis=0)
        offsets = np.concatenate([[0], np.cumsum(there)])[table.offsets]
        values = dict(zip(table.names, table.values[:, there], strict=True))
        drawn = fit.redrawing(Observed(values, values[fit.child], offsets))
        made.append(partial(_redrawn, node, drawn))
    return made


def _redrawn(
    node: Local, drawn: Callable[[np.random.Generator], Predictions], rng: np.random.Generator
) -> Local:
    return replace(node, of=drawn(rng))
