"""The paper's generator: random graphs, networks with known parameters, and tables from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.arguments import FLAG, check_arguments
from poolbn.errors import (
    DataError,
    GraphError,
    Option,
    OptionError,
    check_kind,
    check_option,
    check_whole,
)
from poolbn.graph.dag import Dag
from poolbn.graph.pairs import grouped, reached
from poolbn.inference.weighting import draw
from poolbn.network.network import Network
from poolbn.nodes.given import Given, given_fit
from poolbn.nodes.localfit import GaussianFit

if TYPE_CHECKING:
    import pandas as pd

Wording = Literal["code", "paper"]

EXPLAINED = 0.85  # share of a node's variance that its parents explain, in each data set
GROUP = "F"

_ALONE = 12.0  # expected nodes without an arc above which a connected graph is not waited for
_DRAWS = 100_000
# Streams of random numbers, so that one seed for the graph, the network and the table does not
# give the three the same draws.
_DAG, _NETWORK, _TABLE = range(3)


def random_dag(N: int, mean_parents: float, *, seed: int = 0) -> Dag:
    """A random connected graph over X1, ..., XN.

    Every arc from an earlier to a later node is there with probability 2 mean_parents / N,
    independently; graphs that are not connected are drawn again. So nodes have about
    mean_parents (N - 1) / N parents on average, or more where the wish to be connected bites.

    Args:
        N: the number of nodes.
        mean_parents: the mean number of parents, at most N / 2.
        seed: the same seed gives the same graph.

    Raises:
        OptionError: there are no such graphs, or hardly any of them is connected.

    Examples:
        >>> len(random_dag(50, 2).nodes)
        50
        >>> random_dag(3, 1.5)
        Dag('[X1][X2|X1][X3|X1:X2]')
    """
    _check_count("N", N)
    if not isinstance(mean_parents, Real) or not 0 <= mean_parents <= N / 2:
        raise OptionError(
            Option("mean_parents", mean_parents),
            f" is not between 0 and N / 2 = {N / 2:g}, where all earlier nodes are parents",
        )
    nodes = [f"X{i + 1}" for i in range(N)]
    share = 2 * mean_parents / N
    rng = _generator(seed, _DAG)
    if N * (1 - share) ** (N - 1) < _ALONE:
        parents, children = np.triu_indices(N, 1)
        for _ in range(_DRAWS):
            there = np.flatnonzero(rng.random(len(parents)) < share)
            if len(there) < N - 1:
                continue
            pa, ch = parents[there], children[there]
            arcs = [(nodes[p], nodes[c]) for p, c in zip(pa.tolist(), ch.tolist(), strict=True)]
            around = grouped(nodes, [*arcs, *((c, p) for p, c in arcs)])
            if len(reached(nodes[:1], around)) == N:
                return Dag(nodes, arcs)
    raise OptionError(
        "with ",
        Option("N", N),
        " and ",
        Option("mean_parents", mean_parents),
        " hardly any graph is connected; "
        f"raise mean_parents towards log(N) / 2 = {math.log(N) / 2:.2g}",
    )


def random_network(
    dag: Dag,
    data_sets: int,
    *,
    seed: int = 0,
    heterogeneous: bool = True,
    equal_residuals: bool = False,
    wording: Wording = "code",
) -> Network:
    """A network with random parameters that differ between data sets, by the paper's generator.

    Its `fits` hold the truth: `coef` and `sigma2` of each data set without error, `fixed` and
    `random_cov` of the population that they are drawn from. Log-likelihoods and the score are nan.
    `n_params` are those of a conditional Gaussian network, which the paper's n/p counts. Data sets
    are called set1, set2, ... in the column F, and `n` is 1 for each of them: all are equally
    probable.

    Roots have a residual variance ~ chi^2_1, the same in every data set. The other residual
    variances are such that the parents explain 85% of the variance in each data set.

    Args:
        dag: the graph, such as `pb.random_dag` gives.
        data_sets: how many.
        seed: the same seed gives the same network.
        heterogeneous: False gives all data sets the parameters of the first.
        equal_residuals: True gives a node the same residual variance in all data sets: the parents
            then explain 85% of the variance inside data sets on average.
        wording: how coefficients are drawn, the intercept like the others. "code", as in the code
            that the authors published: for each coefficient a mean ~ N(2, 1) and a variance
            ~ chi^2_1, and in each data set N(mean, variance). "paper", as the text has it: in data
            set j N(2 + b_j, s_j^2), b_j ~ N(0, 1) for each coefficient and s_j^2 ~ chi^2_1 for all
            coefficients of a node.

    Examples:
        >>> import poolbn as pb
        >>> net = pb.random_network(pb.random_dag(10, 2, seed=1), data_sets=5, seed=1)
        >>> net.levels
        ('set1', 'set2', 'set3', 'set4', 'set5')
        >>> net.joint.cov.shape
        (5, 10, 10)
    """
    if not isinstance(dag, Dag):
        raise GraphError(
            f"expected a Dag, got {type(dag).__name__}; pb.random_dag gives one, or "
            "pb.Dag(nodes, arcs)"
        )
    if not dag.nodes:
        raise GraphError("the graph has no nodes")
    if GROUP in dag.nodes:
        raise GraphError(f"the node {GROUP!r} has the name of the data sets' column; rename it")
    _check_count("data_sets", data_sets)
    check_arguments(heterogeneous=(heterogeneous, FLAG), equal_residuals=(equal_residuals, FLAG))
    check_option("wording", wording, get_args(Wording))
    rng = _generator(seed, _NETWORK)
    position = {node: i for i, node in enumerate(dag.nodes)}
    # A node is its mean plus `loading` times independent standard normal residuals, (F, N, N).
    loading = np.zeros((data_sets, len(position), len(position)))
    fits = {}
    for node in dag.topological_order():
        parents, i = dag.parents(node), position[node]
        mean, variance, coef = _coefficients(rng, data_sets, len(parents) + 1, wording)
        if not heterogeneous:
            coef[:] = coef[0]
        inherited = np.zeros((data_sets, len(position)))
        for k, parent in enumerate(parents):
            inherited += coef[:, 1 + k, None] * loading[:, position[parent]]
        if parents:
            sigma2 = (1 - EXPLAINED) / EXPLAINED * (inherited**2).sum(axis=1)
            if equal_residuals:
                sigma2[:] = sigma2.mean()
        else:
            sigma2 = np.full(data_sets, rng.chisquare(1))
        loading[:, i] = inherited
        loading[:, i, i] = np.sqrt(sigma2)
        population = (mean, np.diag(variance)) if heterogeneous else (coef[0].copy(), None)
        fits[node] = _given(node, parents, coef, sigma2, population)
    return Network(
        dag,
        {node: fits[node] for node in dag.nodes},
        score=math.nan,
        group=GROUP,
        n=np.ones(data_sets, dtype=np.int64),
    )


def random_table(network: Network, rows: int | Iterable[int], *, seed: int = 0) -> pd.DataFrame:
    """Draw rows from each data set of a network, the group column first.

    `Network.sample` draws the data set of each row too.

    Args:
        network: from `pb.random_network`, or a learned one.
        rows: the rows of every data set, or a count for each, such as `pb.unbalanced_rows` gives.
        seed: the same seed gives the same table.

    Examples:
        >>> import poolbn as pb
        >>> net = pb.random_network(pb.random_dag(3, 1, seed=1), data_sets=2, seed=1)
        >>> pb.random_table(net, [20, 10])["F"].value_counts().to_dict()
        {'set1': 20, 'set2': 10}
    """
    import pandas as pd

    check_kind(network, Network, "a network", "pb.random_network")
    counts = _counts(network, rows)
    codes = np.repeat(np.arange(len(counts)), counts)
    nothing = np.full((len(codes), len(network.dag.nodes)), np.nan)
    drawn = draw(network._model(plugin=True), nothing, codes, 1, _generator(seed, _TABLE))
    table = pd.DataFrame(drawn.values[:, :, 0].T, columns=list(network.dag.nodes))
    table.insert(0, network.group, pd.Series(network.levels).to_numpy()[codes])
    return table


def unbalanced_rows(total: int, data_sets: int) -> list[int]:
    """Rows of the paper's unbalanced data sets: 30% each for two, and the others share 40%.

    Args:
        total: the rows of all data sets together.
        data_sets: how many, at least 3.

    Raises:
        OptionError: there are fewer than 3 data sets, or one of them would have no rows.

    Examples:
        >>> unbalanced_rows(100, 5)
        [30, 30, 14, 13, 13]
    """
    _check_count("total", total)
    _check_count("data_sets", data_sets)
    if data_sets < 3:
        raise OptionError(
            Option("data_sets", data_sets), " leaves no other data sets; take 3 or more"
        )
    large = round(0.3 * total)
    each, over = divmod(total - 2 * large, data_sets - 2)
    counts = [large, large, *(each + (k < over) for k in range(data_sets - 2))]
    if min(counts) < 1:
        raise OptionError(
            Option("total", total),
            f" rows leave one of the {data_sets} data sets without rows; take more",
        )
    return counts


def _generator(seed: int, stream: int) -> np.random.Generator:
    _check_count("seed", seed, least=0)
    return np.random.default_rng([int(seed), stream])


def _coefficients(
    rng: np.random.Generator, F: int, q: int, wording: Wording
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean (q,) and variance (q,) of the population, and coefficients (F, q) drawn from it."""
    if wording == "code":
        mean, variance = rng.normal(2, 1, q), rng.chisquare(1, q)
        return mean, variance, rng.normal(mean, np.sqrt(variance), (F, q))
    center = 2 + rng.normal(size=(F, q))
    spread = np.sqrt(rng.chisquare(1, (F, 1)))
    # A variance of 1 from b, and on average 1 from s^2.
    return np.full(q, 2.0), np.full(q, 2.0), rng.normal(center, spread)


def _given(
    node: str,
    parents: tuple[str, ...],
    coef: NDArray[np.float64],
    sigma2: NDArray[np.float64],
    population: tuple[NDArray[np.float64], NDArray[np.float64] | None],
) -> GaussianFit:
    """A node whose parameters are known."""
    F, q = coef.shape
    return given_fit(
        node,
        parents,
        tuple(f"set{j + 1}" for j in range(F)),
        Given("simulated"),
        "the parameters are those of a simulation, not estimates",
        coef=coef,
        sigma2=sigma2,
        fixed=population[0],
        random_cov=population[1],
        loglik=math.nan,
        own_params=F * (q + 1),
        n_rows=F,
    )


def _counts(network: Network, rows: int | Iterable[int]) -> list[int]:
    if isinstance(rows, Iterable):
        counts = list(rows)
        if len(counts) != len(network.levels):
            raise DataError(
                f"rows has {len(counts)} counts and the network {len(network.levels)} data sets; "
                "give one for each, or one number for all"
            )
    else:
        counts = [rows] * len(network.levels)
    for level, count in zip(network.levels, counts, strict=True):
        _check_count(f"rows of data set {level!r}", count)
    return [int(count) for count in counts]


def _check_count(name: str, value: object, least: int = 1) -> None:
    """Raise for anything but a whole number from `least`."""
    check_whole(**{name: value})
    if value is None or int(value) < least:  # type: ignore[call-overload]
        raise OptionError(Option(name, value), f" is not a whole number from {least}")
