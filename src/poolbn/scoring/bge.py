"""BGe, the posterior score of Gaussian networks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolbn.arguments import DICT, NUMBER, check_arguments
from poolbn.arrays import Floats
from poolbn.errors import Option, OptionError
from poolbn.moments.cases import check_no_units
from poolbn.moments.data import Data, is_continuous
from poolbn.moments.standardised import Family, StandardisedStats, standardise
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import NodeModel, same_for_all


@dataclass(frozen=True)
class BGe:
    """The posterior score of Gaussian networks (complete pooling), with bnlearn's parameters.

    Attributes:
        iss_mu: imaginary sample size of the prior on the means.
        iss_w: that of the prior on the precision matrix; N + 2 by default.
        nu: prior means by column; the pooled means by default.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> round(pb.score(stats, [("age", "bmi")], pooling="complete", score=pb.BGe(iss_mu=2)), 2)
        -4909.24
    """

    iss_mu: float = 1.0
    iss_w: float | None = None
    nu: Mapping[str, float] | None = None
    name: ClassVar[str] = "bge"  # as options have it

    def __post_init__(self) -> None:
        check_arguments(
            iss_mu=(self.iss_mu, NUMBER),
            iss_w=(self.iss_w, NUMBER.or_none()),
            nu=(self.nu, DICT.or_none()),
        )
        for name, mean in (self.nu or {}).items():
            check_arguments(**{f"nu[{name!r}]": (mean, NUMBER)})

    def on(self, data: Data, model: NodeModel) -> BGeScores:
        """The scores of some data.

        Raises:
            OptionError: a column is not continuous, the pooling is not complete, or a parameter of
                the prior cannot be.
        """
        if not is_continuous(data):
            raise OptionError(
                Option("score", self.name), " is for continuous columns; use ",
                Option("score", "bic"), " or ", Option("score", "bic-h"),
            )  # fmt: skip
        if not model.complete:
            raise OptionError(
                f"BGe is a score for complete pooling, not for {model!r}; use ",
                Option("score", "bic"),
            )
        check_no_units(data, "BGe", "use ", Option("score", "bic"))
        numbers = standardise(data.stats())
        N = len(data.names)
        iss_w = N + 2 if self.iss_w is None else self.iss_w
        if not (self.iss_mu > 0 and iss_w > N + 1):
            raise OptionError(
                f"BGe needs iss_mu > 0 and iss_w > {N + 1} (the columns and one), not "
                f"{self.iss_mu} and {iss_w}"
            )
        off = np.zeros(N)
        if self.nu is not None:
            if absent := [name for name in data.names if name not in self.nu]:
                raise OptionError(f"BGe's nu lacks a prior mean for {absent[0]!r}")
            off = numbers.center - np.array([self.nu[name] for name in data.names])
        # Of all columns at once, in their own units; a family is cut out of it.
        t = self.iss_mu * (iss_w - N - 1) / (self.iss_mu + 1)
        R = numbers.total * np.outer(numbers.scale, numbers.scale)
        R[np.diag_indices(N)] += t
        R += numbers.rows * self.iss_mu / (numbers.rows + self.iss_mu) * np.outer(off, off)
        return BGeScores(numbers, model, self.iss_mu, iss_w - N, t, R)


@dataclass(frozen=True, eq=False)
class BGeScores:
    """Log marginal likelihoods of children given their parents.

    Geiger and Heckerman (2002) with the correction of Kuipers, Moffa and Heckerman (2014): the
    marginal likelihood of the family over that of the parents. Scores are cheap, so there are no
    bounds.
    """

    data: StandardisedStats
    model: NodeModel  # complete pooling, for final fits
    iss_mu: float
    extra: float  # iss_w - N
    t: float  # on the diagonal of the prior's scale matrix
    R: Floats  # the posterior scale matrix, (N, N)

    def scores(self, families: Sequence[Family]) -> Floats:
        """Of each family."""
        return np.array([self._score(family) for family in families])

    def _score(self, family: Family) -> float:
        child, parents = family
        ordered = sorted(parents, key=self.data.order)
        n, p = self.data.rows, len(parents)
        # The determinants of family over parents leave one pivot; those of T one power of t.
        at = np.array([*ordered, child])
        pivots = np.log(np.diagonal(np.linalg.cholesky(self.R[at[:, None], at])))
        before = self.extra + p
        return float(
            0.5 * math.log(self.iss_mu / (n + self.iss_mu))
            + math.lgamma((n + before + 1) / 2)
            - math.lgamma((before + 1) / 2)
            - 0.5 * n * math.log(math.pi)
            + 0.5 * (before + 1 + p) * math.log(self.t)
            - (n + before + 1) * pivots.sum()
            + (n + before) * pivots[:-1].sum()
        )

    def fit(self, family: Family) -> GaussianFit:
        """The final fit of a node."""
        return self.model.fit(self.data, family, same_for_all(0.0))

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network."""
        return sum(self._score(self.data.family(fit.child, fit.parents)) for fit in fits)
