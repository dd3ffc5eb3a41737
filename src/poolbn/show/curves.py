"""Probabilities and expected counts along a parent, as curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.effectsizes import Spreads
from poolbn.network.network import Network
from poolbn.nodes.localfit import LocalFit
from poolbn.tables.kinds import is_whole

Floats = NDArray[np.float64]

_POINTS = 25
_REACH = 2.0  # standard deviations to each side of the mean


@dataclass(frozen=True, eq=False)
class Curve:
    """The probability of a level, or a mean count, along one parent; others at their means."""

    child: str  # the node
    outcome: str  # its level; "" for a count
    parent: str  # one that is not discrete
    x: Floats  # values of the parent, within two standard deviations of its mean, (m,)
    population: Floats  # probabilities or means in the population, (m,)
    own: Floats  # in each data set, (F, m)


def curves(net: Network, fit: LocalFit, found: Spreads) -> list[Curve]:
    """The curves of a node: for each parent that is not discrete, for each level to show."""
    shown = range(len(fit.categories) == 2, max(1, len(fit.categories)))
    made = []
    for parent in net.dag.parents(fit.child):
        if net.fits[parent].categories:
            continue
        reach = _REACH * found.columns[parent]
        x = np.linspace(found.means[parent] - reach, found.means[parent] + reach, _POINTS)
        if is_whole(net.fits[parent].kind):
            x = x[x >= 0]
        others = [np.full(len(x), found.means[name]) for name in fit.columns]
        at = [x if name == parent else own for name, own in zip(fit.columns, others, strict=True)]
        along = fit.along(at)
        if along is None:
            continue
        for k in shown:
            whole, *own = along[..., k] if fit.categories else along
            outcome = fit.categories[k] if fit.categories else ""
            made.append(Curve(fit.child, outcome, parent, x, whole, np.stack(own)))
    return made
