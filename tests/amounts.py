"""A kind of node that poolbn does not have: amounts above 0, whose logarithms are normal.

A regression of the logarithm is poolbn's own, with any pooling; what is said of the amounts
themselves follows from it. `pb.register_kind(AMOUNT)` makes `kinds={"cost": "amount"}` work.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import SimpleNamespace

import numpy as np
import pandas as pd

import poolbn as pb
from poolbn.moments.data import Data, numbers
from poolbn.nodes.gaussianfit import GaussianFit, of_nodes
from poolbn.nodes.model import NodeModel, Penalty
from poolbn.nodes.predicting import Predictions


def logarithms(data: Data, child: str, parents: list[str]) -> pb.GroupStats:
    """Sufficient statistics of the parents' columns and the logarithm of the child."""
    labels, X = numbers(data, parents)
    cases = data.cases([child])
    frame = pd.DataFrame(X.T, columns=list(labels)).assign(**{child: np.log(cases.columns[0])})
    sets = np.array(data.levels, dtype=object)[cases.data_set]
    return pb.stats(frame, group=pd.Series(sets, name=data.group))


@dataclass(frozen=True, eq=False)
class AmountPredictions(Predictions):
    """Predictive distributions of amounts, from those of their logarithms."""

    of: Predictions
    n_categories = 0
    linear = None

    def log_density(self, x, values, sets):
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(x)
            return np.where(x > 0, self.of.log_density(log, values, sets) - log, -np.inf)

    def draw(self, values, sets, rng):
        return np.exp(self.of.draw(values, sets, rng))

    def taking(self, sets):
        return AmountPredictions(self.of.taking(sets))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AmountFit(pb.LocalFit):
    """An amount given its parents; `log` is the regression of its logarithm."""

    log: GaussianFit
    kind = "amount"
    model = "log-normal regression"

    @classmethod
    def of(cls, log: GaussianFit, **changes) -> AmountFit:
        """From the regression of the logarithm, which has all else."""
        own = {field.name: getattr(log, field.name) for field in fields(pb.LocalFit)}
        return cls(**own | {"log": log} | changes)

    def _like(self, log: GaussianFit) -> AmountFit:
        return self.of(log, loglik=self.loglik)

    def terms(self, parent):
        return (term._replace(scale="ratio") for term in self.log.terms(parent))

    @property
    def holds_tests(self):
        return self.log.holds_tests

    def equality(self, data=None):
        return self.log.equality()

    def mean(self, values, sets):
        return np.exp(self.log.mean(values, sets) + self.log.sigma2[sets] / 2)

    def log_density(self, x, values, sets):
        log = np.log(x)
        return self.log.log_density(log, values, sets) - log

    def draw(self, values, sets, rng):
        return np.exp(self.log.draw(values, sets, rng))

    def quantile(self, u, mean, sets):
        return np.exp(self.log.quantile(u, np.log(mean) - self.log.sigma2[sets] / 2, sets))

    def predictive(self, certain):
        return AmountPredictions(self.log.predictive(certain))

    def data_set_draws(self, draws, rng):
        return self._like(self.log.data_set_draws(draws, rng))

    def new_data_sets(self, sets, draws, rng):
        return self._like(self.log.new_data_sets(sets, draws, rng))

    def adapted(self, name, new, n):
        log = None if new is None else logarithms(new, self.child, self.parents)
        return self._like(self.log.adapted(name, log, n))

    def taken(self, at, levels):
        return self._like(self.log.taken(at, levels))

    def in_population(self):
        return self._like(self.log.in_population())

    def residuals(self, x, fitted, sets):
        middle = np.log(fitted) - self.log.sigma2[sets] / 2
        return self.log.residuals(np.log(x), middle, sets)

    def explained(self, x, values, sets):
        return self.log.explained(np.log(x), values, sets)

    def table(self):
        return self.log.table()


@dataclass(frozen=True, eq=False)
class AmountScores:
    """Scores and fits of amounts in some data under one pooling."""

    data: Data
    model: NodeModel
    penalty: Penalty

    def scores(self, families, *, final=False):
        fits = map(self.fit, families)
        return np.array([fit.loglik - np.array(fit.counts) @ self.penalty.each for fit in fits])

    def fit(self, family):
        names, categories = self.data.names, self.data.categories
        child, parents = names[family[0]], [names[p] for p in sorted(family[1])]
        stats = logarithms(self.data, child, parents)
        found = pb.fit_node(stats, child, stats.names[:-1], pooling=self.model)
        log = of_nodes(found, parents, [categories[names.index(name)] for name in parents])
        amounts = self.data.cases([child])
        return AmountFit.of(log, loglik=log.loglik - float(np.log(amounts.columns[0]).sum()))


FAMILY = SimpleNamespace(on=AmountScores)
AMOUNT = pb.Kind("amount", wrong=lambda x: (x <= 0, "not above 0"), family=FAMILY, fit=AmountFit)
