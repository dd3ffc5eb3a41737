"""Chains over orders, for more nodes than sums can be taken over (Friedman and Koller 2003).

In each step a node is taken out of the order, and put back at a place drawn from all, with their
probabilities. Given an order the probabilities of sets of parents are exact, and are averaged. Each
chain has some beside it over powers of these probabilities, which get from one group of good orders
to another more easily, and changes orders with them (parallel tempering).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import check_count
from poolbn.posteriors.families import Families
from poolbn.posteriors.summing import Summed, parents_along
from poolbn.run.compiling import kernels
from poolbn.run.parallel import available_cores, map_threads

R_HAT = 1.05  # above which chains have not mixed
_KEPT = 5000  # orders of each chain that are kept, about
_FEWEST = 8  # and that there must be to average over them
_POWERS = (1.0, 0.7, 0.5, 0.35)  # of the probabilities of orders
_MATTERS = 0.01  # standard deviation over orders below which an arc's R-hat does not matter

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class OrderMCMC:
    """Chains over orders of the columns, from random orders.

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

    chains: int = 4
    sweeps: int = 5000
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(2, chains=self.chains)
        check_count(16, sweeps=self.sweeps)
        check_count(seed=self.seed)

    @property
    def thin(self) -> int:
        """Sweeps from one order that is kept to the next."""
        return math.ceil(self.sweeps / _KEPT)


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
    """Chains over orders of some nodes, as far as they are.

    Attributes:
        families: the nodes, their sets of parents, and scores.
        options: how they run.
        orders: those that are kept, (chains, kept, n).
        now: where each is, and those beside it, (chains, powers, n).
        generators: the random numbers of each chain, for more.
    """

    families: Families
    options: OrderMCMC
    orders: Integers
    now: Integers
    generators: tuple[np.random.Generator, ...]

    @property
    def sweeps(self) -> int:
        """Of each chain."""
        return int(self.orders.shape[1]) * self.options.thin

    @property
    def counted(self) -> Integers:
        """The second half, (chains, ., n)."""
        return self.orders[:, self.orders.shape[1] // 2 :]


def begun(families: Families, required: NDArray[np.bool_], options: OrderMCMC) -> Chains:
    """Chains over the orders of nodes that can be on a cycle together, which have not moved yet.

    Args:
        families: of the nodes.
        required: arcs between all columns that must be there, (N, N).
        options: how they run.
    """
    seeds = np.random.SeedSequence(options.seed, spawn_key=(int(families.nodes[0]),))
    generators = tuple(map(np.random.default_rng, seeds.spawn(options.chains)))
    none = np.empty((options.chains, 0, len(families)), dtype=np.int64)
    own = required[np.ix_(families.nodes, families.nodes)]
    now = [[_random_order(own, rng) for _ in _POWERS] for rng in generators]
    return Chains(families, options, none, np.array(now), generators)


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

    Raises:
        KeyboardInterrupt: the user stopped them before there is anything to average.
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
        if chains.orders.shape[1] < _FEWEST:
            raise KeyboardInterrupt
        found.append(averaged(chains, N))
    return found, stopped


def _longer(chains: Chains, sweeps: int, tell: Callable[[int, int], None]) -> tuple[Chains, bool]:
    """Chains with more sweeps; their random numbers go on."""
    walkers = [_Walker(chains, k) for k in range(len(chains.now))]
    kept: list[Integers] = []
    state = chains.now, chains.generators
    stopped = False
    try:
        for record in range(math.ceil(sweeps / chains.options.thin)):
            tell(record * chains.options.thin, sweeps)
            kept.append(np.array(map_threads(_Walker.walk, walkers, available_cores())))
            state = np.array([walker.orders for walker in walkers]), _copies(walkers)
    except KeyboardInterrupt:
        stopped = True
    if kept:
        whole = np.concatenate([chains.orders, np.stack(kept, axis=1)], axis=1)
        chains = Chains(chains.families, chains.options, whole, *state)
    return chains, stopped


class _Walker:
    """A chain in motion, with those beside it.

    Attributes:
        orders: of all, the chain's own first, (powers, n).
        rng: its random numbers.
    """

    def __init__(self, chains: Chains, number: int) -> None:
        families, n = chains.families, len(chains.families)
        self.rng = _copy(chains.generators[number])
        self.orders = chains.now[number].copy()
        self._sets = (families.start, families.members, families.scores)
        self._having = families.having
        self._thin = chains.options.thin
        self._at = np.empty(self.orders.shape, dtype=np.int64)
        self._sums = np.empty(self.orders.shape)
        self._work = (np.empty((2, n)), np.empty(n), np.empty(n), np.empty(n))

    def walk(self) -> Integers:
        """The order after some sweeps."""
        kernel, n = kernels("orders"), self.orders.shape[1]
        for k in range(len(_POWERS)):  # anew, as rounding errors add up
            kernel.order_sums(*self._sets, *self._state(k))
        for _ in range(self._thin):
            for k, power in enumerate(_POWERS):
                uniforms = self.rng.random((n, 2))
                sets = (*self._sets, *self._having)
                kernel.move_nodes(*sets, *self._state(k), power, uniforms, *self._work)
            self._exchange()
        return np.array(self.orders[0])

    def _state(self, k: int) -> tuple[Integers, Integers, Floats]:
        return self.orders[k], self._at[k], self._sums[k]

    def _exchange(self) -> None:
        """Neighbours change orders, with the probability that leaves all distributions."""
        for k in range(len(_POWERS) - 1):
            gain = self._sums[k + 1].sum() - self._sums[k].sum()
            if math.log(self.rng.random()) < (_POWERS[k] - _POWERS[k + 1]) * gain:
                for each in (self.orders, self._at, self._sums):
                    each[[k, k + 1]] = each[[k + 1, k]]


def _copy(generator: np.random.Generator) -> np.random.Generator:
    made = np.random.Generator(type(generator.bit_generator)())
    made.bit_generator.state = generator.bit_generator.state
    return made


def _copies(walkers: Sequence[_Walker]) -> tuple[np.random.Generator, ...]:
    return tuple(_copy(walker.rng) for walker in walkers)


def _random_order(required: NDArray[np.bool_], rng: np.random.Generator) -> Integers:
    """An order that goes along the required arcs, (n, n)."""
    left = list(range(len(required)))
    order: list[int] = []
    while left:
        free = [c for c in left if not required[left, c].any()]
        order.append(int(rng.choice(free)))
        left.remove(order[-1])
    return np.array(order, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Averages over the orders of chains.

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
        """Graphs along orders that are spread evenly over the chains, one chain after another.

        Which of the sets each node has, (draws, n).
        """
        counted = self.chains.counted
        at = np.linspace(0, counted.shape[1], draws // len(counted), endpoint=False)
        orders = counted[:, at.astype(np.int64)].reshape(-1, len(self.families))
        return parents_along(self.families, orders, rng)


def averaged(chains: Chains, N: int) -> Sampled:
    """The probabilities of sets of parents, and how well chains agree on arcs; (N, n) each."""
    families, kept = chains.families, chains.counted
    n = len(families)
    orders = np.ascontiguousarray(kept.reshape(-1, n))

    def average(c: int) -> tuple[Floats, list[tuple[float, float, float]]]:
        own = families.of(c)
        sums, arcs = np.zeros(own.stop - own.start), np.zeros((len(orders), N))
        work = (np.empty(n, dtype=np.int64), np.empty_like(sums))
        sets = (families.members[own], families.scores[own], families.parents[own])
        kernels("orders").average_orders(*sets, c, orders, *work, sums, arcs)
        traces = arcs.reshape(*kept.shape[:2], N)
        return sums / len(orders), [_measures(traces[:, :, p]) for p in range(N)]

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


def _measures(trace: Floats) -> tuple[float, float, float]:
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
