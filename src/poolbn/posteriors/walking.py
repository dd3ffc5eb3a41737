"""Walks over orders of nodes (Friedman and Koller 2003), or partitions (Kuipers and Moffa 2017).

Over orders a node is taken out in each step, and put back at a place drawn from all, with their
probabilities. A graph counts there as often as there are orders that it goes along. Over partitions
it counts once: they are the layers of graphs. A node is put back into any layer, or a new one; and
in some steps a graph is drawn, and changed.

A state is the position of each node, in an order or among layers. Each walk has some beside it over
powers of the probabilities of states, which get from one group of good ones to another more easily,
and changes states with them (parallel tempering).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import check_count
from poolbn.posteriors.families import Families
from poolbn.posteriors.summing import Prior, parents_along
from poolbn.run.compiling import kernels

_KEPT = 5000  # states of each chain that are kept, about
_POWERS = (1.0, 0.7, 0.5, 0.35)  # of the probabilities of states
_GRAPHS = 8  # changes of a graph in each sweep over partitions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class _MCMC:
    """Chains from random states.

    Attributes:
        chains: how many; two or more, so that they can be compared.
        sweeps: of each chain; in a sweep as many nodes move as there are. The first half is left
            out.
        seed: random seed.
    """

    chains: int = 4
    sweeps: int = 5000
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(2, chains=self.chains)
        check_count(16, sweeps=self.sweeps)
        check_count(seed=self.seed)

    @property
    def thin(self) -> int:
        """Sweeps from one state that is kept to the next."""
        return math.ceil(self.sweeps / _KEPT)


@dataclass(frozen=True)
class OrderMCMC(_MCMC):
    """Chains over orders of the columns, from random orders: for the prior "orders".

    Attributes:
        chains: how many; two or more, so that they can be compared.
        sweeps: of each chain; in a sweep as many nodes move as there are. The first half is left
            out.
        seed: random seed.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> post = pb.arc_posterior(trial, group="clinic", method=pb.OrderMCMC(sweeps=200))
        >>> post.chains.r_hat < 1.05
        True
    """


@dataclass(frozen=True)
class PartitionMCMC(_MCMC):
    """Chains over partitions of the columns into layers of a graph: for the prior "dags".

    Attributes:
        chains: how many; two or more, so that they can be compared.
        sweeps: of each chain; in a sweep as many nodes move as there are. The first half is left
            out.
        seed: random seed.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> chains = pb.PartitionMCMC(sweeps=200)
        >>> post = pb.arc_posterior(trial, group="clinic", prior="dags", method=chains)
        >>> post.chains.r_hat < 1.05
        True
    """


METHODS: dict[Prior, type[OrderMCMC | PartitionMCMC]] = {
    "orders": OrderMCMC,
    "dags": PartitionMCMC,
}


class Walker(ABC):
    """A chain in motion, with those beside it.

    Attributes:
        at: the positions of nodes in all, the chain's own first, (powers, n).
        rng: its random numbers.
    """

    def __init__(
        self, families: Families, now: Integers, generator: np.random.Generator, thin: int
    ) -> None:
        self.rng = copied(generator)
        self.at = now.copy()
        self._sums = np.empty(now.shape)
        self._sets = (families.start, families.members, families.scores)
        self._having = families.having
        self._thin = thin

    def walk(self) -> Integers:
        """The state after some sweeps."""
        for k in range(len(_POWERS)):  # anew, as rounding errors add up
            self._begin(k)
        for _ in range(self._thin):
            for k, power in enumerate(_POWERS):
                self._sweep(k, power)
            for k in range(len(_POWERS) - 1):
                self._exchange(k)
        return np.array(self.at[0])

    @abstractmethod
    def _begin(self, k: int) -> None:
        """Compute the log sums of nodes in a state."""

    @abstractmethod
    def _sweep(self, k: int, power: float) -> None:
        """As many steps as there are nodes."""

    def _exchange(self, k: int) -> None:
        """Neighbours change states, with the probability that leaves all distributions."""
        gain = self._sums[k + 1].sum() - self._sums[k].sum()
        if math.log(self.rng.random()) < (_POWERS[k] - _POWERS[k + 1]) * gain:
            for each in (self.at, self._sums):
                each[[k, k + 1]] = each[[k + 1, k]]


class _OrderWalker(Walker):
    def __init__(
        self, families: Families, now: Integers, generator: np.random.Generator, thin: int
    ) -> None:
        super().__init__(families, now, generator, thin)
        n = len(families)
        self._order = np.empty(n, dtype=np.int64)
        self._work = (np.empty((2, n)), np.empty(n), np.empty(n), np.empty(n))

    def _begin(self, k: int) -> None:
        kernels("orders").order_sums(*self._sets, self.at[k], self._sums[k])

    def _sweep(self, k: int, power: float) -> None:
        at, n = self.at[k], self.at.shape[1]
        self._order[at] = np.arange(n)
        state = (*self._sets, *self._having, self._order, at, self._sums[k])
        kernels("orders").move_nodes(*state, power, self.rng.random((n, 2)), *self._work)


class _PartitionWalker(Walker):
    def __init__(
        self, families: Families, now: Integers, generator: np.random.Generator, thin: int
    ) -> None:
        super().__init__(families, now, generator, thin)
        n = len(families)
        self._along = np.empty((3, n)), np.empty((4, n + 2))
        self._odds = np.empty(n), np.empty(n), np.empty(2 * n)
        self._graph = (*np.empty((4, n), dtype=np.int64), np.empty(n))

    def _begin(self, k: int) -> None:
        kernels("partitions").partition_sums(*self._sets, self.at[k], self._sums[k])

    def _sweep(self, k: int, power: float) -> None:
        n = self.at.shape[1]
        state = self.at[k], self._sums[k], power
        sets, work = (*self._sets, *self._having), (*self._along, *self._odds)
        kernels("partitions").move_between_layers(*sets, *state, self.rng.random((n, 2)), *work)
        uniforms = self.rng.random((_GRAPHS, 4)), self.rng.random(n)
        kernels("graphs").move_in_graphs(*self._sets, *state, *uniforms, *self._graph)


def walkers(
    families: Families,
    now: Integers,
    generators: tuple[np.random.Generator, ...],
    options: OrderMCMC | PartitionMCMC,
) -> list[Walker]:
    """The chains, from where they are, (chains, powers, n)."""
    kind = _OrderWalker if isinstance(options, OrderMCMC) else _PartitionWalker
    each = zip(now, generators, strict=True)
    return [kind(families, own, generator, options.thin) for own, generator in each]


def random_states(
    families: Families, required: NDArray[np.bool_], rng: np.random.Generator, *, layers: bool
) -> Integers:
    """Where a chain and those beside it begin: random orders, or layers of graphs along them.

    Args:
        families: of the nodes.
        required: arcs between them that must be there, (n, n).
        rng: random numbers.
        layers: whether states are partitions.
    """
    at = np.array([_random_positions(required, rng) for _ in _POWERS])
    if not layers:
        return at
    for own, sets in zip(at, parents_along(families, at, rng), strict=True):
        for c in own.argsort().tolist():  # parents first
            members = families.members[sets[c]]
            own[c] = max((own[p] + 1 for p in members[members >= 0].tolist()), default=0)
    return at


def _random_positions(required: NDArray[np.bool_], rng: np.random.Generator) -> Integers:
    """Of nodes in an order that goes along the required arcs, (n, n)."""
    left = list(range(len(required)))
    at = np.empty(len(required), dtype=np.int64)
    for place in range(len(required)):
        free = [c for c in left if not required[left, c].any()]
        chosen = int(rng.choice(free))
        at[chosen] = place
        left.remove(chosen)
    return at


def copied(generator: np.random.Generator) -> np.random.Generator:
    """One that gives the same numbers from here on."""
    made = np.random.Generator(type(generator.bit_generator)())
    made.bit_generator.state = generator.bit_generator.state
    return made
