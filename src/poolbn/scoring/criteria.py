"""Information criteria: log-likelihood minus a penalty for each parameter, higher is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from poolbn.errors import check_option
from poolbn.moments.data import Data
from poolbn.moments.standardised import StandardisedStats, standardise
from poolbn.moments.units import UnitSums
from poolbn.nodes.choosing import check_admits
from poolbn.nodes.model import NodeModel, Penalty, same_for_all
from poolbn.scoring.families import NodeScores
from poolbn.scoring.gprior import GPrior
from poolbn.scoring.observed import ObservedScores

Criterion = Literal["bic", "bic-h", "bic-w", "aic", "loglik"]


@dataclass(frozen=True)
class InformationCriterion:
    """A score that any model of nodes has.

    BIC charges log(n) / 2 for a parameter, n the rows of all data sets (eq. bic). "bic-h" charges
    half the logarithm of what tells of it: n for fixed effects and a common variance, n_j for
    parameters of data set j. (Co)variances between data sets are half-way between log(|F|) / 2,
    right where data sets differ much, and log(n) / 2. A variance between units inside data sets is
    charged for as many as have two rows or more. From it goes what `sparsity` takes. Least squares
    have a correction for few rows too, see `Penalty`.

    "bic-w" is "bic-h" of what happens within data sets: where pooling is partial, their levels are
    free, see `inside`. With complete and no pooling it is "bic-h".

    Attributes:
        name: "bic", "bic-h", "bic-w", "aic" or "loglik".
    """

    name: Criterion = "bic"

    def __post_init__(self) -> None:
        check_option("score", self.name, get_args(Criterion))

    def first(self, model: NodeModel) -> GPrior | None:
        """Bayes factors in each data set find the way for "bic-h", where data sets may differ."""
        return GPrior() if self._sparse and not model.complete else None

    @property
    def _sparse(self) -> bool:
        return self.name in ("bic-h", "bic-w")

    def on(self, data: Data, model: NodeModel) -> NodeScores | ObservedScores:
        """The scores of some data under one model.

        Raises:
            DataError: the model cannot be fitted to the data.
            OptionError: the pooling is for continuous columns only.
        """
        numbers = standardise(data.stats())
        check_admits(model, numbers)
        penalty, sparse = self.penalty_per_parameter(numbers), self._sparse
        if not (data.has_rows and data.imputed):
            return NodeScores(data, model, penalty, sparse)

        def inner(share: float) -> NodeScores:
            return NodeScores(data, model, penalty.scaled(1 / share if share > 0 else 0.0))

        return ObservedScores(data, inner, sparse)

    def penalty_per_parameter(self, data: StandardisedStats) -> Penalty:
        """That of a parameter of each kind of `Counts`."""
        if self._sparse:
            rows, groups, own = math.log(data.rows), math.log(len(data.n)), np.log(data.n).mean()
            units, own_units = _of_units(data.units)
            several, one = data.rows, data.rows / len(data.n)
            tell = np.array([several, several, one, several, one])
            each = np.array([rows, (rows + groups) / 2, own, units, own_units]) / 2
            return Penalty(each, tell, self.name == "bic-w", self.penalty_per_parameter)
        return same_for_all({"loglik": 0.0, "aic": 1.0, "bic": math.log(data.rows) / 2}[self.name])


def _of_units(units: UnitSums | None) -> tuple[float, float]:
    """Logarithms of how many have two rows or more, of all, and of a data set in the mean."""
    if units is None or not (more := units.size > 1).any():
        return 0.0, 0.0
    each = np.bincount(units.data_set[more], units.count[more])
    return math.log(each.sum()), float(np.log(each[each > 0]).mean())
