"""Chains for more nodes than sums can be taken over, and averages over their states.

Given a state, an order or a partition, the probabilities of sets of parents are exact; these are
averaged. See `walking` for how chains move, and `mixing` for how well they agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.posteriors.families import Families
from poolbn.posteriors.mixing import measures
from poolbn.posteriors.summing import Summed, parents_along
from poolbn.posteriors.walking import (
    OrderMCMC,
    PartitionMCMC,
    copied,
    random_states,
    walkers,
)
from poolbn.run.compiling import kernels
from poolbn.run.parallel import available_cores, map_threads

_FEWEST = 8  # states of each chain that there must be to average over them

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MCMC = OrderMCMC | PartitionMCMC


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """How well chains agree.

    Attributes:
        r_hat: the largest split R-hat of all arcs; above 1.05 they have not mixed.
        ess: the smallest effective sample size of all arcs.
        sweeps: of each chain.
        chains: how many.
        arc_r_hat: of each arc; 1 where its probability hardly changes, (N, N).
        arc_se: the Monte Carlo standard error of each arc's probability, (N, N).

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "gestation_days", "birthweight_g"]].dropna()
        >>> post = pb.arc_posterior(trial, group="clinic", method=pb.OrderMCMC(sweeps=200))
        >>> post.chains.chains, post.chains.sweeps, bool(post.chains.arc_se.max() < 0.05)
        (4, 200, True)
    """

    r_hat: float
    ess: float
    sweeps: int
    chains: int
    arc_r_hat: Floats
    arc_se: Floats

    def __repr__(self) -> str:
        return (
            f"{self.chains} chains of {self.sweeps:,} sweeps; largest R-hat {self.r_hat:.3f}, "
            f"smallest effective sample size {self.ess:,.0f}"
        )


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains over orders or partitions of some nodes, as far as they are.

    Attributes:
        families: the nodes, their sets of parents, and scores.
        options: how they run.
        states: those that are kept, (chains, kept, n).
        now: where each is, and those beside it, (chains, powers, n).
        generators: the random numbers of each chain, for more.
    """

    families: Families
    options: MCMC
    states: Integers
    now: Integers
    generators: tuple[np.random.Generator, ...]

    @property
    def sweeps(self) -> int:
        """Of each chain."""
        return int(self.states.shape[1]) * self.options.thin

    @property
    def counted(self) -> Integers:
        """The second half, (chains, ., n)."""
        return self.states[:, self.states.shape[1] // 2 :]

    @property
    def in_layers(self) -> bool:
        """Whether states are partitions."""
        return isinstance(self.options, PartitionMCMC)


def begun(families: Families, required: NDArray[np.bool_], options: MCMC) -> Chains:
    """Chains over nodes that can be on a cycle together, which have not moved yet.

    Args:
        families: of the nodes.
        required: arcs between all columns that must be there, (N, N).
        options: how they run.
    """
    seeds = np.random.SeedSequence(options.seed, spawn_key=(int(families.nodes[0]),))
    generators = tuple(map(np.random.default_rng, seeds.spawn(options.chains)))
    none = np.empty((options.chains, 0, len(families)), dtype=np.int64)
    own = required[np.ix_(families.nodes, families.nodes)]
    layers = isinstance(options, PartitionMCMC)
    now = np.array([random_states(families, own, rng, layers=layers) for rng in generators])
    return Chains(families, options, none, now, generators)


def walked(
    parts: Sequence[Summed | Chains],
    sweeps: int,
    N: int,
    tell: Callable[[int, int], None],
) -> tuple[list[Summed | Sampled], bool]:
    """Averages over chains when they have gone on; and whether the user stopped them before.

    Args:
        parts: sums, which stay as they are, and chains, as far as they are.
        sweeps: more of each chain.
        N: columns.
        tell: is told how many sweeps are done, and how many there will be.
    """
    found: list[Summed | Sampled] = []
    stopped = False
    for part in parts:
        if isinstance(part, Summed):
            found.append(part)
            continue
        chains = part
        if not stopped:
            chains, stopped = _longer(part, sweeps, tell)
        if chains.states.shape[1] < _FEWEST:
            raise KeyboardInterrupt
        found.append(averaged(chains, N))
    return found, stopped


def _longer(chains: Chains, sweeps: int, tell: Callable[[int, int], None]) -> tuple[Chains, bool]:
    """Chains with more sweeps; their random numbers go on."""
    moving = walkers(chains.families, chains.now, chains.generators, chains.options)
    kept: list[Integers] = []
    state = chains.now, chains.generators
    stopped = False
    try:
        for record in range(math.ceil(sweeps / chains.options.thin)):
            tell(record * chains.options.thin, sweeps)
            kept.append(
                np.array(map_threads(lambda chain: chain.walk(), moving, available_cores()))
            )
            now = np.array([chain.at for chain in moving])
            state = now, tuple(copied(chain.rng) for chain in moving)
    except KeyboardInterrupt:
        stopped = True
    if kept:
        whole = np.concatenate([chains.states, np.stack(kept, axis=1)], axis=1)
        chains = Chains(chains.families, chains.options, whole, *state)
    return chains, stopped


@dataclass(frozen=True, eq=False)
class Sampled:
    """Averages over the states of chains.

    Attributes:
        chains: the chains.
        probabilities: of each set of parents, (M,).
        r_hat: of each arc; 1 where its probability hardly changes, (N, n).
        ess: effective sample size of each arc, (N, n).
        se: Monte Carlo standard error of each arc's probability, (N, n).
    """

    chains: Chains
    probabilities: Floats
    r_hat: Floats
    ess: Floats
    se: Floats

    @property
    def families(self) -> Families:
        """The nodes, their sets of parents, and scores."""
        return self.chains.families

    def draw(self, draws: int, rng: np.random.Generator) -> Integers:
        """Graphs of states that are spread evenly over the chains, one chain after another.

        Which of the sets each node has, (draws, n).
        """
        counted = self.chains.counted
        at = np.linspace(0, counted.shape[1], draws // len(counted), endpoint=False)
        states = counted[:, at.astype(np.int64)].reshape(-1, len(self.families))
        return parents_along(self.families, states, rng, layers=self.chains.in_layers)


def averaged(chains: Chains, N: int) -> Sampled:
    """The probabilities of sets of parents, and how well chains agree on arcs; (N, n) each."""
    families, kept = chains.families, chains.counted
    n = len(families)
    states = np.ascontiguousarray(kept.reshape(-1, n))

    def average(c: int) -> tuple[Floats, list[tuple[float, float, float]]]:
        own = families.of(c)
        sums, arcs = np.zeros(own.stop - own.start), np.zeros((len(states), N))
        sets = (families.members[own], families.scores[own], families.parents[own])
        own_work = np.empty_like(sums)
        kernels("orders").average_states(*sets, c, states, chains.in_layers, own_work, sums, arcs)
        traces = arcs.reshape(*kept.shape[:2], N)
        return sums / len(states), [measures(traces[:, :, p]) for p in range(N)]

    found = map_threads(average, range(n), available_cores())
    r_hat, ess, se = np.array([measured for _, measured in found]).T
    return Sampled(chains, np.concatenate([sums for sums, _ in found]), r_hat, ess, se)


def diagnostics(parts: Sequence[Sampled], N: int) -> Diagnostics | None:
    """How well chains agree on arcs between N nodes; None without any."""
    if not parts:
        return None
    hat, se = np.ones((N, N)), np.zeros((N, N))
    for part in parts:
        hat[:, part.families.nodes] = part.r_hat
        se[:, part.families.nodes] = part.se
    ess = min(float(part.ess.min()) for part in parts)
    chains = parts[0].chains
    return Diagnostics(float(hat.max()), ess, chains.sweeps, chains.options.chains, hat, se)
