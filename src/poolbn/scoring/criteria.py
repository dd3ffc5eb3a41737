"""Information criteria: log-likelihood minus a penalty for each parameter, higher is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import check_option
from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes.choosing import check_admits
from poolbn.nodes.localfit import GaussianFit
from poolbn.nodes.model import Likelihoods, NodeModel, Penalty, same_for_all
from poolbn.scoring.gprior import GPrior
from poolbn.scoring.sparsity import sparsity

Criterion = Literal["bic", "bic-h", "aic", "loglik"]


@dataclass(frozen=True)
class InformationCriterion:
    """A score that any model of nodes has.

    BIC charges log(n) / 2 for a parameter, n the rows of all data sets (eq. bic). "bic-h" charges
    half the logarithm of what tells of it: n for fixed effects and a common variance, n_j for
    parameters of data set j. (Co)variances between data sets are half-way between log(|F|) / 2,
    right where data sets differ much, and log(n) / 2. From it goes what `sparsity` takes.

    Attributes:
        name: "bic", "bic-h", "aic" or "loglik".
    """

    name: Criterion = "bic"

    def __post_init__(self) -> None:
        check_option("score", self.name, get_args(Criterion))

    def first(self, model: NodeModel) -> GPrior | None:
        """Bayes factors in each data set find the way for "bic-h", where data sets may differ."""
        return GPrior() if self.name == "bic-h" and not model.complete else None

    def on(self, data: StandardisedStats, model: NodeModel) -> PenalisedLikelihood:
        """The scores of one table under one model.

        Raises:
            DataError: the model cannot be fitted to the data.
        """
        check_admits(model, data)
        sparse = self.name == "bic-h"
        return PenalisedLikelihood(data, model, self.penalty_per_parameter(data), sparse)

    def penalty_per_parameter(self, data: StandardisedStats) -> Penalty:
        """That of a parameter of each kind of `Counts`."""
        if self.name == "bic-h":
            rows, groups, own = math.log(data.rows), math.log(len(data.n)), np.log(data.n).mean()
            tell = np.array([data.rows, data.rows, data.rows / len(data.n)])
            return Penalty(np.array([rows, (rows + groups) / 2, own]) / 2, tell)
        return same_for_all({"loglik": 0.0, "aic": 1.0, "bic": math.log(data.rows) / 2}[self.name])


@dataclass(frozen=True, eq=False)
class PenalisedLikelihood:
    """The scores of one table under one model; see `sparsity` for sparse ones."""

    data: StandardisedStats
    model: NodeModel
    penalty: Penalty
    sparse: bool = False

    def scores(self, families: Sequence[Family], *, final: bool = False) -> NDArray[np.float64]:
        """Of each family."""
        found = self.model.logliks(self.data, families, self.penalty, final=final)
        return self._penalised(found, families)

    def bounds(self, families: Sequence[Family]) -> NDArray[np.float64] | None:
        """Upper bounds of the scores that cost less, or None if there are none."""
        found = self.model.bounds(self.data, families, self.penalty)
        return None if found is None else self._penalised(found, families)

    def _penalised(self, found: Likelihoods, families: Sequence[Family]) -> NDArray[np.float64]:
        score = found.penalised(self.penalty, families)
        if not self.sparse:
            return score
        return score - sparsity(len(self.data.names), [len(parents) for _, parents in families])

    def cost(self) -> float:
        """About the regressions that one score costs."""
        return self.model.cost(len(self.data.n))

    def fit(self, family: Family) -> GaussianFit:
        """The final fit of a node."""
        return self.model.fit(self.data, family, self.penalty)

    def total(self, fits: Iterable[GaussianFit]) -> float:
        """The score of a network, from its final fits."""
        if self.sparse:
            families = [self.data.family(fit.child, fit.parents) for fit in fits]
            return math.fsum(self.scores(families, final=True))
        each = self.penalty.each.tolist()
        return math.fsum(  # the same to the last bit, whatever the order of nodes
            fit.loglik - sum(k * of for k, of in zip(fit.counts, each, strict=True)) for fit in fits
        )
