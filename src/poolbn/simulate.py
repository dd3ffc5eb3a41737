"""The paper's generator: random graphs, networks with known parameters, and tables from them.

Networks with discrete nodes are not in the paper: `_mixed_fits` goes on from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from poolbn.arguments import FLAG, check_arguments, is_list
from poolbn.arrays import Flags, Floats
from poolbn.errors import (
    DataError,
    GraphError,
    Option,
    OptionError,
    check_count,
    check_kind,
    check_option,
)
from poolbn.graph.dag import Dag
from poolbn.graph.pairs import grouped, reached
from poolbn.inference.drawing import draw_columns
from poolbn.moments.indicators import labels_of
from poolbn.network.network import Network
from poolbn.nodes.gaussianfit import GaussianFit, of_nodes
from poolbn.nodes.given import given_fit
from poolbn.nodes.localfit import Counts, Given, LocalFit, Status
from poolbn.nodes.ordinal import OrdinalFit
from poolbn.nodes.regression import RegressionFit

if TYPE_CHECKING:
    import pandas as pd

Wording = Literal["code", "paper"]

EXPLAINED = 0.85  # share of a node's variance that its parents explain, in each data set
GROUP = "F"
LEVELS = "abc"
ORDERED = "12345"

_ALONE = 12.0  # expected nodes without an arc above which a connected graph is not waited for
_DRAWS = 100_000
_SAMPLE = 5_000  # rows of each data set that tell how much the parents of a mixed network vary
_SIMULATED = Given("simulated")
_DETAIL = "the parameters are those of a simulation, not estimates"
# Streams of random numbers, so that one seed for the graph, the network and the table does not
# give the three the same draws.
_DAG, _NETWORK, _TABLE, _KINDS, _ROWS = range(5)


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
    check_count(1, N=N)
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
            if len(reached(nodes[:1], grouped(nodes, [*arcs, *((c, p) for p, c in arcs)]))) == N:
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
    discrete: float = 0.0,
    ordinal: float = 0.0,
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

    Discrete nodes have two or three levels, a, b and c, and a logistic regression on their parents,
    which are centred, and if they are continuous divided by their SD, over all data sets. In the
    log odds of a level against the first, each effect has a mean ~ N(2, 1), of either sign, the
    intercept one ~ N(0, 0.5^2), and all have a variance ~ chi^2_1 between data sets. What is said
    of variances above is then so in a sample of 5,000 rows of each data set. A discrete parent of
    a continuous node has a coefficient for each level but the first.

    Ordinal nodes have three to five levels, 1, 2, ..., and a cumulative logistic regression, whose
    effects on the log odds of a higher level are drawn as those on log odds of a discrete node are.
    Thresholds are 0.3 to 0.9 standard deviations of what they divide apart.

    Args:
        dag: the graph, such as `pb.random_dag` gives.
        data_sets: how many.
        discrete: the share of nodes that are discrete, from 0 to 1; which is random.
        ordinal: the share of nodes that are ordinal; with `discrete` at most 1.
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
        >>> dag = pb.Dag(["x", "y"], [("x", "y")])
        >>> mixed = pb.random_network(dag, data_sets=2, discrete=0.5, seed=1)
        >>> type(mixed.fits["x"]).__name__, mixed.fits["x"].categories, mixed.fits["y"].parents
        ('RegressionFit', ('a', 'b'), ('x',))
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
    check_count(1, data_sets=data_sets)
    check_arguments(heterogeneous=(heterogeneous, FLAG), equal_residuals=(equal_residuals, FLAG))
    check_option("wording", wording, get_args(Wording))
    if not isinstance(discrete, Real) or not 0 <= discrete <= 1:
        raise OptionError(Option("discrete", discrete), " is not a share of nodes, from 0 to 1")
    if not isinstance(ordinal, Real) or not 0 <= ordinal <= 1 - float(discrete):
        most = f"a share of nodes, from 0 to {1 - float(discrete):g}"
        raise OptionError(Option("ordinal", ordinal), f" is not {most}")
    drawing = _Drawing(
        data_sets, heterogeneous, equal_residuals, wording, _generator(seed, _NETWORK)
    )
    shares = float(discrete), float(ordinal)
    if categories := _categories(dag, shares, _generator(seed, _KINDS)):
        fits = _mixed_fits(dag, categories, drawing, _generator(seed, _ROWS))
    else:
        fits = _linear_fits(dag, drawing)
    return Network(
        dag,
        {node: fits[node] for node in dag.nodes},
        score=math.nan,
        group=GROUP,
        n=np.ones(data_sets, dtype=np.int64),
    )


@dataclass(frozen=True)
class _Drawing:
    """How parameters are drawn; see `random_network`."""

    data_sets: int
    heterogeneous: bool
    equal_residuals: bool
    wording: Wording
    rng: np.random.Generator

    def gaussian(
        self, node: str, columns: tuple[str, ...], explained: Callable[[Floats], Floats]
    ) -> GaussianFit:
        """A continuous node; `explained` is the variance that coefficients (F, q) give it, (F,)."""
        F, rng = self.data_sets, self.rng
        mean, variance, coef = _coefficients(rng, F, len(columns) + 1, self.wording)
        if not self.heterogeneous:
            coef[:] = coef[0]
        if columns:
            sigma2 = (1 - EXPLAINED) / EXPLAINED * explained(coef)
            if self.equal_residuals:
                sigma2[:] = sigma2.mean()
        else:
            sigma2 = np.full(F, rng.chisquare(1))
        return given_fit(
            node,
            columns,
            _set_names(F),
            _SIMULATED,
            _DETAIL,
            coef=coef,
            sigma2=sigma2,
            fixed=mean if self.heterogeneous else coef[0].copy(),
            random_cov=np.diag(variance) if self.heterogeneous else None,
            loglik=math.nan,
            own_params=F * (len(columns) + 2),
            n_rows=F,
        )

    def discrete(
        self,
        node: str,
        categories: tuple[str, ...],
        parents: tuple[str, ...],
        given: tuple[tuple[str, ...], ...],
        T: Floats,
    ) -> RegressionFit:
        """A discrete node with K levels, whose parents have the levels `given`.

        Coefficients of centred and scaled columns times T are those of columns, (q, q).
        """
        F, K, q, rng = self.data_sets, len(categories), len(T), self.rng
        mean = rng.choice([-1.0, 1.0], (K - 1, q)) * rng.normal(2, 1, (K - 1, q))
        mean[:, 0] = rng.normal(0, 0.5, K - 1)
        variance = rng.chisquare(1, q)
        # A coefficient is a difference of utilities, so that no level is special.
        utility = rng.normal(0, np.sqrt(variance / 2), (F, K, q))
        coef = (mean + utility[:, 1:] - utility[:, :1]) @ T
        if not self.heterogeneous:
            coef[:] = coef[0]
        return RegressionFit(
            child=node,
            parents=parents,
            given=given,
            levels=_set_names(F),
            pooling=_SIMULATED,
            loglik=math.nan,
            counts=Counts(0, 0, coef.size),
            n_rows=F,
            status=Status.GIVEN,
            detail=_DETAIL,
            categories=categories,
            coef=coef,
            coef_cov=np.zeros((F, (K - 1) * q, (K - 1) * q)),
            fixed=mean @ T if self.heterogeneous else coef[0].copy(),
            fixed_cov=np.zeros(((K - 1) * q, (K - 1) * q)),
            random_cov=T.T * variance @ T if self.heterogeneous else None,
            dispersion=math.inf,
        )

    def ordinal(
        self,
        node: str,
        categories: tuple[str, ...],
        parents: tuple[str, ...],
        given: tuple[tuple[str, ...], ...],
        T: Floats,
    ) -> OrdinalFit:
        """An ordinal node with K levels; see `discrete`."""
        F, K, q, rng = self.data_sets, len(categories), len(T), self.rng
        mean = rng.choice([-1.0, 1.0], q) * rng.normal(2, 1, q)
        variance = rng.chisquare(1, q)
        spread = math.sqrt(math.pi**2 / 3 + (mean[1:] ** 2 + variance[1:]).sum())
        above = -np.cumsum(spread * rng.uniform(0.3, 0.9, K - 2))
        mean[0] = rng.normal(0, 0.5) - above[-1] / 2  # levels in the middle are the usual ones
        size = q + K - 2
        back = np.eye(size)
        back[:q, :q] = T
        fixed = np.append(mean, above) @ back
        own = np.zeros((F, size))
        own[:, :q] = rng.normal(0, np.sqrt(variance), (F, q)) @ T
        coef = (fixed + own)[:, None]
        random_cov = np.zeros((size, size))
        random_cov[:q, :q] = T.T * variance @ T
        if not self.heterogeneous:
            coef[:] = coef[0]
        return OrdinalFit(
            child=node,
            parents=parents,
            given=given,
            levels=_set_names(F),
            pooling=_SIMULATED,
            loglik=math.nan,
            counts=Counts(0, 0, F * q + K - 2),
            n_rows=F,
            status=Status.GIVEN,
            detail=_DETAIL,
            categories=categories,
            coef=coef,
            coef_cov=np.zeros((F, size, size)),
            fixed=fixed[None] if self.heterogeneous else coef[0].copy(),
            fixed_cov=np.zeros((size, size)),
            random_cov=random_cov if self.heterogeneous else None,
            dispersion=math.inf,
            seen=categories,
        )


def _linear_fits(dag: Dag, drawing: _Drawing) -> dict[str, LocalFit]:
    """All nodes are continuous, and variances have a closed form."""
    position = {node: i for i, node in enumerate(dag.nodes)}
    F, N = drawing.data_sets, len(position)
    # A node is its mean plus `loading` times independent standard normal residuals, (F, N, N).
    loading = np.zeros((F, N, N))
    fits: dict[str, LocalFit] = {}
    for node in dag.topological_order():
        parents, i = dag.parents(node), position[node]

        def inherited(coef: Floats, parents: tuple[str, ...] = parents) -> Floats:
            total = np.zeros((F, N))
            for k, parent in enumerate(parents):
                total += coef[:, 1 + k, None] * loading[:, position[parent]]
            return total

        fit = drawing.gaussian(node, parents, lambda coef: (inherited(coef) ** 2).sum(axis=1))
        loading[:, i] = inherited(fit.coef)
        loading[:, i, i] = np.sqrt(fit.sigma2)
        fits[node] = fit
    return fits


def _mixed_fits(
    dag: Dag, categories: Mapping[str, tuple[str, ...]], drawing: _Drawing, rng: np.random.Generator
) -> dict[str, LocalFit]:
    """Some nodes are discrete; what varies how much is seen in rows, which `rng` draws."""
    F = drawing.data_sets
    sets = np.repeat(np.arange(F), _SAMPLE)
    rows: dict[str, Floats] = {}
    fits: dict[str, LocalFit] = {}
    for node in dag.topological_order():
        parents = dag.parents(node)
        given = tuple(categories.get(parent, ()) for parent in parents)
        names = labels_of(parents, given)
        X = np.array([rows[name] for name in names]).reshape(len(names), F, _SAMPLE)
        if node in categories:
            continuous = np.array([name in fits for name in names], dtype=bool)
            T = _centred(X.reshape(len(names), len(sets)), continuous)
            draw = drawing.ordinal if categories[node][0] in ORDERED else drawing.discrete
            fits[node] = draw(node, categories[node], parents, given, T)
        else:
            made = drawing.gaussian(node, names, partial(_explained, X))
            fits[node] = of_nodes(made, parents, given)
        rows |= fits[node].as_columns(fits[node].draw(rows, sets, rng))
    return fits


def _categories(
    dag: Dag, shares: tuple[float, float], rng: np.random.Generator
) -> dict[str, tuple[str, ...]]:
    """The levels of each discrete node, and of each ordinal one."""
    order = rng.permutation(len(dag.nodes))
    discrete, ordinal = (round(share * len(dag.nodes)) for share in shares)
    chosen, ordered = order[:discrete], order[discrete : discrete + ordinal]
    found = {dag.nodes[i]: tuple(LEVELS[: rng.integers(2, 4)]) for i in sorted(chosen)}
    return found | {dag.nodes[i]: tuple(ORDERED[: rng.integers(3, 6)]) for i in sorted(ordered)}


def _centred(X: Floats, scaled: Flags) -> Floats:
    """Coefficients of centred columns, some divided by their SD, times this are those of X (M, n).

    The intercept comes first, (M + 1, M + 1).
    """
    scale = np.ones(len(X))
    scale[scaled] = X[scaled].std(axis=1)
    T = np.diag([1.0, *(1 / scale)])
    T[1:, 0] = -X.mean(axis=1) / scale
    return T


def _explained(X: Floats, coef: Floats) -> Floats:
    """The variance of columns (M, F, n) times coefficients (F, 1 + M), (F,).

    Where a discrete parent hardly varies it is not quite 0.
    """
    variance: Floats = np.einsum("fm,mfn->fn", coef[:, 1:], X).var(axis=1)
    return np.asarray(np.maximum(variance, variance.mean() / 100))


def random_table(network: Network, rows: int | Iterable[int], *, seed: int = 0) -> pd.DataFrame:
    """Draw rows from each data set of a network, the group column first.

    `Network.sample` draws the data set of each row too. Discrete columns are text.

    Args:
        network: from `pb.random_network`, or a learned one.
        rows: the rows of every data set, or a count for each, such as `pb.unbalanced_rows` gives.
        seed: the same seed gives the same table.

    Examples:
        >>> import poolbn as pb
        >>> net = pb.random_network(pb.random_dag(3, 1, seed=1), data_sets=2, seed=1)
        >>> pb.random_table(net, [20, 10])["F"].value_counts().to_dict()
        {'set1': 20, 'set2': 10}
        >>> mixed = pb.random_network(pb.Dag(["x"]), data_sets=2, discrete=1, seed=1)
        >>> sorted(pb.random_table(mixed, 20)["x"].unique())
        ['a', 'b']
    """
    import pandas as pd

    check_kind(network, Network, "a network", "pb.random_network")
    counts = _counts(network, rows)
    codes = np.repeat(np.arange(len(counts)), counts)
    rng = _generator(seed, _TABLE)
    columns = draw_columns(network.fits, network.dag.topological_order(), codes, rng)
    table = {network.group: pd.Series(network.levels).to_numpy()[codes]}
    for node in network.dag.nodes:
        categories, values = network.fits[node].categories, columns[node]
        levels = np.array(categories, dtype=object)
        table[node] = levels[values.astype(np.int64)] if categories else values
    return pd.DataFrame(table)


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
    check_count(1, total=total)
    check_count(1, data_sets=data_sets)
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
    check_count(seed=seed)
    return np.random.default_rng([int(seed), stream])


def _coefficients(
    rng: np.random.Generator, F: int, q: int, wording: Wording
) -> tuple[Floats, Floats, Floats]:
    """Mean (q,) and variance (q,) of the population, and coefficients (F, q) drawn from it."""
    if wording == "code":
        mean, variance = rng.normal(2, 1, q), rng.chisquare(1, q)
        return mean, variance, rng.normal(mean, np.sqrt(variance), (F, q))
    center = 2 + rng.normal(size=(F, q))
    spread = np.sqrt(rng.chisquare(1, (F, 1)))
    # A variance of 1 from b, and on average 1 from s^2.
    return np.full(q, 2.0), np.full(q, 2.0), rng.normal(center, spread)


def _set_names(F: int) -> tuple[str, ...]:
    return tuple(f"set{j + 1}" for j in range(F))


def _counts(network: Network, rows: int | Iterable[int]) -> list[int]:
    if is_list(rows):
        counts = list(rows)
        if len(counts) != len(network.levels):
            raise DataError(
                f"rows has {len(counts)} counts and the network {len(network.levels)} data sets; "
                "give one for each, or one number for all"
            )
    else:
        counts = [rows] * len(network.levels)
    for level, count in zip(network.levels, counts, strict=True):
        check_count(1, **{f"rows of data set {level!r}": count})
    return [int(count) for count in counts]
