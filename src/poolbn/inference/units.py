"""What a network says of units inside data sets of which there are earlier rows.

Each such unit is a data set of its own, after the others: nodes have its intercepts there, as far
as its rows tell of them. With coefficients given, the intercepts of different nodes are
independent, before and after rows are seen, so each node looks at its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.inference.general import General
from poolbn.inference.locals import Local
from poolbn.nodes.drawing import Observed
from poolbn.nodes.localfit import LocalFit


class KnownUnits(NamedTuple):
    """Earlier rows of U units inside data sets."""

    x: Floats  # NaN where a cell is missing, (m, N)
    unit: Integers  # of each row, which never falls, from 0 to U - 1, (m,)
    sets: Integers  # the data set of each unit, (U,)
    names: tuple[Hashable, ...]  # what the units are called, U of them


def knowing(engine: General, fits: Mapping[str, LocalFit], units: KnownUnits) -> General:
    """The network with units as more data sets, which no row comes from unless it says so."""
    F = len(engine.levels)
    places = np.concatenate([np.arange(F), units.sets])

    def told(i: int, node: Local) -> Local:
        """A node, with what the rows that have it and its parents say."""
        seen = ~np.isnan(units.x[:, [i, *node.parents]]).any(axis=1)
        x = units.x[seen]
        offsets = np.searchsorted(units.unit[seen], np.arange(len(units.sets) + 1))
        rows = Observed(node.named(x[:, p] for p in node.parents), x[:, i], offsets)
        found = fits[engine.names[i]].unit_effects(rows, units.sets)
        return replace(node, of=node.of.of_units(places, found and found.after(F)))

    return replace(
        engine,
        levels=engine.levels + units.names,
        prior=np.append(engine.prior, np.zeros(len(units.sets))),
        refused={
            k: engine.refused[j] for k, j in enumerate(places.tolist()) if j in engine.refused
        },
        nodes=tuple(told(i, node) for i, node in enumerate(engine.nodes)),
    )
