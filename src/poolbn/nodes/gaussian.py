"""What the poolings of a node share, whose distribution is normal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Literal, Self, get_args

from poolbn.errors import check_option
from poolbn.moments.standardised import Family, StandardisedStats
from poolbn.nodes import views
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import Counts
from poolbn.nodes.model import Likelihoods, NodeModel, Penalty, Worth

Discrete = Literal["auto", "table", "logit"]


@dataclass(frozen=True, repr=False)
class Gaussian:
    """What the poolings share.

    Attributes:
        discrete: how discrete nodes with discrete parents are modelled.
    """

    discrete: Discrete = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        check_option("discrete", self.discrete, get_args(Discrete))

    def __repr__(self) -> str:
        own = {of.name: getattr(self, of.name) for of in fields(self)}
        discrete = own.pop("discrete")
        own |= {} if discrete == "auto" else {"discrete": discrete}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in own.items())})"

    @property
    @abstractmethod
    def kernels(self) -> tuple[str, ...]:
        """The modules of `poolbn.kernels` that fit it."""

    @property
    @abstractmethod
    def own_variances(self) -> bool:
        """Whether each data set has a residual variance of its own."""

    @property
    def complete(self) -> bool:
        """Whether data sets have the same parameters."""
        return False

    def first(self, levels: Sequence[Hashable]) -> Self:
        """The pooling itself."""
        return self

    def chosen(self, levels: Sequence[Hashable], worth: Callable[[NodeModel], Worth]) -> Self:
        """The pooling itself."""
        return self

    @abstractmethod
    def counts(self, parents: int, data_sets: int) -> Counts:
        """Parameters by what informs them, where a fit is not singular."""

    def n_params(self, parents: int, data_sets: int) -> int:
        """The number of parameters (eq. nparams for partial pooling).

        Examples:
            >>> import poolbn as pb
            >>> pb.Complete().n_params(parents=2, data_sets=4)
            4
            >>> pb.NoPooling().n_params(parents=2, data_sets=4)
            16
            >>> pb.Partial().n_params(parents=2, data_sets=4)
            10
        """
        return sum(self.counts(parents, data_sets))

    def logliks(
        self,
        data: StandardisedStats,
        families: Sequence[Family],
        penalty: Penalty,
        *,
        final: bool = False,
    ) -> Likelihoods:
        """Maximised log-likelihoods, with the effort that a search needs, or a final fit."""
        compute = partial(self._logliks, penalty=penalty, final=final)
        return views.likelihoods(data, families, compute, leave_out=self.own_variances)

    def fit(self, data: StandardisedStats, family: Family, penalty: Penalty) -> GaussianFit:
        """The final fit of one node."""
        return views.fit(data, family, self._fit, leave_out=self.own_variances)

    @abstractmethod
    def _logliks(
        self, data: StandardisedStats, families: Sequence[Family], *, penalty: Penalty, final: bool
    ) -> Likelihoods:
        """Those of children that vary inside data sets."""

    @abstractmethod
    def _fit(self, data: StandardisedStats, family: Family) -> GaussianFit:
        """That of such a child."""
