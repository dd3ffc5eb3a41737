"""Chains for more nodes than sums can be taken over, and averages over their states.

They walk over orders of nodes (Friedman and Koller 2003), or partitions (Kuipers and Moffa 2017).
Given a state, an order or a partition, the probabilities of sets of parents are exact; these are
averaged.

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
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np

from poolbn.arrays import Flags, Floats, Integers
from poolbn.errors import check_count
from poolbn.posteriors.families import Families, Prior, Summed, parents_along
from poolbn.run.compiling import kernels
from poolbn.run.parallel import available_cores, map_threads
from poolbn.run.progress import Progress

_KEPT = 5000  # states of each chain that are kept, about
_POWERS = (1.0, 0.7, 0.5, 0.35)  # of the probabilities of states
_GRAPHS = 8  # changes of a graph in each sweep over partitions
_FEWEST = 8  # states of each chain that there must be to average over them
R_HAT = 1.05  # above which chains have not mixed
_MATTERS = 0.01  # standard deviation over states below which an arc's R-hat does not matter


@dataclass(frozen=True)
class _MCMC:
    """Chains from random states."""

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


MCMC = OrderMCMC | PartitionMCMC
METHODS: dict[Prior, type[MCMC]] = {"orders": OrderMCMC, "dags": PartitionMCMC}


class _Walker(ABC):
    """A chain in motion, with those beside it."""

    def __init__(
        self, families: Families, now: Integers, generator: np.random.Generator, thin: int
    ) -> None:
        self.rng = deepcopy(generator)
        self.at = now.copy()  # the positions of nodes in all, the chain's own first, (powers, n)
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


class _OrderWalker(_Walker):
    def _begin(self, k: int) -> None:
        kernels("orders").order_sums(*self._sets, self.at[k], self._sums[k])

    def _sweep(self, k: int, power: float) -> None:
        at, n = self.at[k], self.at.shape[1]
        state = (*self._sets, *self._having, at.argsort(), at, self._sums[k])
        work = np.empty((2, n)), *np.empty((3, n))
        kernels("orders").move_nodes(*state, power, self.rng.random((n, 2)), *work)


class _PartitionWalker(_Walker):
    def _begin(self, k: int) -> None:
        kernels("partitions").partition_sums(*self._sets, self.at[k], self._sums[k])

    def _sweep(self, k: int, power: float) -> None:
        n = self.at.shape[1]
        state = self.at[k], self._sums[k], power
        work = np.empty((3, n)), np.empty((4, n + 2)), *np.empty((2, n)), np.empty(2 * n)
        kernels("partitions").move_between_layers(
            *self._sets, *self._having, *state, self.rng.random((n, 2)), *work
        )
        uniforms = self.rng.random((_GRAPHS, 4)), self.rng.random(n)
        places = np.empty((4, n), dtype=np.int64)
        kernels("graphs").move_in_graphs(*self._sets, *state, *uniforms, *places, np.empty(n))


def random_states(
    families: Families, required: Flags, rng: np.random.Generator, *, layers: bool
) -> Integers:
    """Where a chain and those beside it begin: random orders, or layers of graphs along them.

    `required` are arcs between the nodes that must be there, (n, n).
    """
    at = np.array([_random_positions(required, rng) for _ in _POWERS])
    if not layers:
        return at
    for own, sets in zip(at, parents_along(families, at, rng), strict=True):
        for c in own.argsort().tolist():  # parents first
            members = families.members[sets[c]]
            own[c] = max((own[p] + 1 for p in members[members >= 0].tolist()), default=0)
    return at


def _random_positions(required: Flags, rng: np.random.Generator) -> Integers:
    """Of nodes in an order that goes along the required arcs, (n, n)."""
    left = list(range(len(required)))
    at = np.empty(len(required), dtype=np.int64)
    for place in range(len(required)):
        free = [c for c in left if not required[left, c].any()]
        chosen = int(rng.choice(free))
        at[chosen] = place
        left.remove(chosen)
    return at


def measures(trace: Floats) -> tuple[float, float, float]:
    """R-hat, effective sample size and standard error of one number, (chains, kept)."""
    spread = float(trace.std())
    if spread < _MATTERS:
        return 1.0, float(trace.size), spread / math.sqrt(trace.shape[0])
    ess = effective_size(trace)
    return split_r_hat(trace), ess, spread / math.sqrt(ess)


def split_r_hat(trace: Floats) -> float:
    """Gelman and Rubin's R-hat of chains of which each is cut in two; (chains, kept).

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> round(split_r_hat(rng.normal(size=(4, 500))), 2)
        1.0
        >>> bool(split_r_hat(rng.normal(size=(4, 500)) + np.arange(4)[:, None]) > 1.3)
        True
    """
    half = trace.shape[1] // 2
    parts = np.concatenate([trace[:, :half], trace[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean()
    between = half * parts.mean(axis=1).var(ddof=1)
    if within == 0.0:
        return math.inf if between > 0 else 1.0
    return math.sqrt((half - 1) / half + between / within / half)


def effective_size(trace: Floats) -> float:
    """How many independent draws chains are worth, (chains, kept); Geyer's initial sequence.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> bool(1800 < effective_size(rng.normal(size=(4, 500))) < 2200)
        True
    """
    m, n = trace.shape
    centred = trace - trace.mean(axis=1, keepdims=True)
    size = 2 ** math.ceil(math.log2(2 * n))
    power = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(power, size, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + trace.mean(axis=1).var(ddof=1) if m > 1 else covariance[0]
    if total <= 0.0:
        return float(m * n)
    rho = 1.0 - (within - covariance * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if len(ends) else pairs)
    time = max(2.0 * float(pairs.sum()) - 1.0, 1.0 / math.log10(max(m * n, 10)))
    return float(m * n / time)


def monte_carlo(values: Floats, chains: int) -> tuple[Floats, Floats]:
    """The mean of numbers of each draw, (draws, ...), and its Monte Carlo standard error.

    Args:
        values: of draws, those of one chain after those of another.
        chains: how many; 1 for draws that are independent.

    Examples:
        >>> mean, se = monte_carlo(np.random.default_rng(0).normal(size=(400, 2)), 1)
        >>> se.round(2)
        array([0.05, 0.05])
    """
    mean, spread = values.mean(axis=0), values.std(axis=0)
    if chains == 1:
        return mean, spread / math.sqrt(len(values))
    flat = values.reshape(chains, -1, math.prod(values.shape[1:]))
    sizes = [effective_size(flat[:, :, k]) for k in range(flat.shape[2])]
    return mean, spread / np.sqrt(sizes).reshape(np.shape(mean))


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
    """Chains over orders or partitions of some nodes, as far as they are."""

    families: Families
    options: MCMC
    states: Integers  # those that are kept, (chains, kept, n)
    now: Integers  # where each is, and those beside it, (chains, powers, n)
    generators: tuple[np.random.Generator, ...]  # the random numbers of each chain, for more

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


def begun(families: Families, required: Flags, options: MCMC) -> Chains:
    """Chains over nodes that can be on a cycle together, which have not moved yet.

    `required` are arcs between all columns that must be there, (N, N).
    """
    seeds = np.random.SeedSequence(options.seed, spawn_key=(int(families.nodes[0]),))
    generators = tuple(map(np.random.default_rng, seeds.spawn(options.chains)))
    none = np.empty((options.chains, 0, len(families)), dtype=np.int64)
    own = required[np.ix_(families.nodes, families.nodes)]
    layers = isinstance(options, PartitionMCMC)
    now = np.array([random_states(families, own, rng, layers=layers) for rng in generators])
    return Chains(families, options, none, now, generators)


def walked(
    parts: Sequence[Summed | Chains], sweeps: int, N: int, progress: Progress
) -> tuple[list[Summed | Sampled], bool]:
    """Averages over chains after more sweeps of each; and whether the user stopped them before.

    Sums stay as they are. There are N columns.
    """
    found: list[Summed | Sampled] = []
    stopped = False
    for part in parts:
        if isinstance(part, Summed):
            found.append(part)
            continue
        chains = part
        if not stopped:
            chains, stopped = _longer(part, sweeps, progress)
        if chains.states.shape[1] < _FEWEST:
            raise KeyboardInterrupt
        found.append(averaged(chains, N))
    return found, stopped


def _longer(chains: Chains, sweeps: int, progress: Progress) -> tuple[Chains, bool]:
    """Chains with more sweeps; their random numbers go on."""
    walker, thin = _PartitionWalker if chains.in_layers else _OrderWalker, chains.options.thin
    each = zip(chains.now, chains.generators, strict=True)
    moving = [walker(chains.families, at, generator, thin) for at, generator in each]
    kept: list[Integers] = []
    state = chains.now, chains.generators
    stopped = False
    try:
        for done in range(0, sweeps, thin):
            progress(partial("chains: {:,} of {:,} sweeps".format, done, sweeps))
            kept.append(np.array(map_threads(walker.walk, moving, available_cores())))
            state = (
                np.array([chain.at for chain in moving]),
                tuple(deepcopy(chain.rng) for chain in moving),
            )
    except KeyboardInterrupt:
        stopped = True
    if kept:
        whole = np.concatenate([chains.states, np.stack(kept, axis=1)], axis=1)
        chains = Chains(chains.families, chains.options, whole, *state)
    return chains, stopped


@dataclass(frozen=True, eq=False)
class Sampled:
    """Averages over the states of chains."""

    chains: Chains
    probabilities: Floats  # of each set of parents, (M,)
    r_hat: Floats  # of each arc; 1 where its probability hardly changes, (N, n)
    ess: Floats  # effective sample size of each arc, (N, n)
    se: Floats  # Monte Carlo standard error of each arc's probability, (N, n)

    @property
    def families(self) -> Families:
        """Those of the chains."""
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
