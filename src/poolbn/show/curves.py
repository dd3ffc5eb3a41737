"""Probabilities and expected counts along a parent, as curves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolbn.assess.spreads import Spreads
from poolbn.network.network import Network
from poolbn.nodes.regression import RegressionFit

Floats = NDArray[np.float64]

_POINTS = 25
_REACH = 2.0  # standard deviations to each side of the mean


@dataclass(frozen=True, eq=False)
class Curve:
    """The probability of a level, or the expected count, along one parent; others at their means.

    Attributes:
        child: the node.
        outcome: its level; "" for a count.
        parent: one that is not discrete.
        x: values of the parent, within two standard deviations of its mean, (m,).
        population: probabilities or means in the population, (m,).
        own: in each data set, (F, m).
    """

    child: str
    outcome: str
    parent: str
    x: Floats
    population: Floats
    own: Floats


def curves(net: Network, fit: RegressionFit, found: Spreads) -> list[Curve]:
    """The curves of a node: for each parent that is not discrete, for each level to show."""
    middle = fit.coef.mean(axis=0) if fit.fixed is None else fit.fixed
    shown = range(len(fit.categories) == 2, max(1, len(fit.categories)))
    made = []
    for parent in net.dag.parents(fit.child):
        if net.fits[parent].categories:
            continue
        reach = _REACH * found.columns[parent]
        x = np.linspace(found.means[parent] - reach, found.means[parent] + reach, _POINTS)
        if net.fits[parent].kind == "count":
            x = x[x >= 0]
        whole, *own = (_values(fit, coef, parent, x, found) for coef in (middle, *fit.coef))
        for k in shown:
            each = np.stack([values[k] for values in own])
            outcome = fit.categories[k] if fit.categories else ""
            made.append(Curve(fit.child, outcome, parent, x, whole[k], each))
    return made


def _values(fit: RegressionFit, coef: Floats, parent: str, x: Floats, found: Spreads) -> Floats:
    """Probabilities of all levels, or means, along a parent, (K or 1, m)."""
    one = replace(fit, levels=fit.levels[:1], coef=coef[None])
    sets = np.zeros(len(x), dtype=np.int64)
    at = [x if name == parent else np.full(len(x), found.means[name]) for name in fit.columns]
    return np.atleast_2d(one.mean_at(at, sets).T)
