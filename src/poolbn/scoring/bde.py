"""BDeu and K2, posterior scores of discrete networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from poolbn.arguments import NUMBER, check_arguments
from poolbn.arrays import Floats, Integers
from poolbn.errors import DataError, Option, OptionError
from poolbn.moments.cases import check_no_units
from poolbn.moments.data import Data
from poolbn.moments.standardised import Family
from poolbn.nodes import polya
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import NodeModel
from poolbn.nodes.poolings import Complete
from poolbn.nodes.tabular import counts_of, fit_tabular
from poolbn.tables.kinds import has_levels
from poolbn.wording import listed

Marginal = Callable[[Sequence[Integers]], Floats]


@dataclass(frozen=True)
class _Dirichlet:
    """What scores with Dirichlet priors share."""

    name: ClassVar[str]  # as options have it

    def _marginal(self, counts: Sequence[Integers]) -> Floats:
        """Log marginal likelihoods of tables."""
        raise NotImplementedError

    def on(self, data: Data, model: NodeModel) -> DirichletScores:
        """The scores of one table."""
        if not model.complete:
            raise OptionError(
                Option("score", self.name), " is for complete pooling; use ",
                Option("pooling", "complete"), " or ", Option("score", "bic"),
            )  # fmt: skip
        if data.imputed:
            raise OptionError(
                Option("score", self.name), " is for tables without missing cells; use ",
                Option("missing", "drop"), " or ", Option("score", "bic"),
            )  # fmt: skip
        others = sorted(name for name in data.names if not has_levels(data.kind(name)))
        if others:
            raise DataError(
                Option("score", self.name), f" is for discrete columns, and {listed(others, 5)} ",
                "is not" if len(others) == 1 else "are not", "; use ", Option("score", "bic"),
            )  # fmt: skip
        check_no_units(data, self.name, "use ", Option("score", "bic"))
        return DirichletScores(data, self._marginal)


@dataclass(frozen=True)
class BDeu(_Dirichlet):
    """The posterior score of discrete networks (complete pooling), uniform over configurations.

    Attributes:
        iss: the imaginary rows of the prior on each table.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> made = trial.assign(old=trial["age"] > 25, heavy=trial["bmi"] > 30)[
        ...     ["clinic", "old", "heavy"]]
        >>> table = pb.table(made, group="clinic")
        >>> round(pb.score(table, [("old", "heavy")], pooling="complete", score=pb.BDeu(iss=10)), 2)
        -955.09
    """

    iss: float = 1.0
    name = "bde"

    def __post_init__(self) -> None:
        check_arguments(iss=(self.iss, NUMBER))
        if not 0 < self.iss < math.inf:
            raise OptionError(Option("iss", self.iss), " is not a positive number of rows")

    def _marginal(self, counts: Sequence[Integers]) -> Floats:
        return polya.bdeu(counts, self.iss)


@dataclass(frozen=True)
class K2(_Dirichlet):
    """The posterior score of discrete networks (complete pooling), one row a cell for its prior."""

    name = "k2"

    def _marginal(self, counts: Sequence[Integers]) -> Floats:
        return polya.k2(counts)


@dataclass(frozen=True, eq=False)
class DirichletScores:
    """Log marginal likelihoods of discrete children given discrete parents."""

    table: Data
    marginal: Marginal

    def scores(self, families: Sequence[Family]) -> Floats:
        """Of each family."""
        names = self.table.names
        return self.marginal(
            [
                counts_of(self.table, names[child], [names[p] for p in parents])
                for child, parents in families
            ]
        )

    def cost(self) -> float:
        """Counting rows."""
        return float(self.table.n_rows)

    def fit(self, family: Family) -> LocalFit:
        """The final fit of a node."""
        child, parents = family
        names = self.table.names
        return fit_tabular(self.table, names[child], [names[p] for p in parents], Complete())

    def total(self, fits: Iterable[LocalFit]) -> float:
        """The score of a network."""
        at = self.table.names.index
        return math.fsum(
            self.scores([(at(fit.child), tuple(map(at, fit.parents))) for fit in fits])
        )
