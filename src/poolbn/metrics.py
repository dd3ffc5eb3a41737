"""How far a network is from the true one, and predictions from what came: pure functions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from poolbn.arguments import DICT, LABEL, LIST, NUMBER, Argument, check_arguments
from poolbn.arrays import Floats, Positions
from poolbn.errors import (
    DataError,
    GraphError,
    OptionError,
    check_count,
    check_kind,
    check_option,
    nearest,
)
from poolbn.graph.dag import Cpdag, Dag
from poolbn.inference.assembled import divergences
from poolbn.inference.drawing import log_ratios
from poolbn.network.network import Network
from poolbn.network.questions import EXPECTED_LEVEL, MOST_PROBABLE
from poolbn.nodes.localfit import LocalFit
from poolbn.wording import counted

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "F1",
    "ArcCounts",
    "KlEstimate",
    "auc",
    "brier",
    "calibration",
    "compare_arcs",
    "coverage",
    "f1",
    "kl",
    "kl_estimate",
    "log_loss",
    "median_rmad",
    "rmad",
    "shd",
]

Weights = Literal["prior", "sum"]
_ENDS = Argument(
    "a pair of lower and upper ends",
    lambda value: isinstance(value, tuple | list) and len(value) == 2,
)
_FRAME = Argument(
    "a pandas DataFrame with a column for each level",
    lambda value: hasattr(value, "columns") and hasattr(value, "drop"),
)
_ROUNDING = 1e-6  # of a sum of probabilities


def __dir__() -> list[str]:
    return __all__


# Graphs


def shd(a: Network | Dag | Cpdag, b: Network | Dag | Cpdag) -> int:
    """Structural Hamming distance between equivalence classes.

    As bnlearn counts it: one for each two nodes between which the CPDAGs differ, whether one of
    them has no edge there, or the edges are directed differently, or only one of them is directed.

    Args:
        a: a graph, or a network.
        b: another one with the same nodes.

    Raises:
        GraphError: the graphs have different nodes.

    Examples:
        >>> chain = Dag.from_modelstring("[A][B|A][C|B]")
        >>> shd(chain, Dag.from_modelstring("[C][B|C][A|B]"))
        0
        >>> shd(chain, Dag.from_modelstring("[A][C][B|A:C]"))
        2
    """
    graphs = _same_nodes(a, b)
    one, two = (_edges(g if isinstance(g, Cpdag) else g.cpdag()) for g in graphs)
    return sum(one.get(pair) != two.get(pair) for pair in one.keys() | two.keys())


def _edges(graph: Cpdag) -> dict[frozenset[str], str]:
    """For each two nodes with an edge the one that it points to, "" if to neither."""
    edges = {frozenset(pair): "" for pair in graph.undirected}
    return edges | {frozenset(arc): arc[1] for arc in graph.directed}


@dataclass(frozen=True)
class ArcCounts:
    """Arcs of a learned graph against those of the true one.

    Attributes:
        correct: arcs in both (true positives).
        reversed: true arcs that are there the other way round.
        missing: true arcs that are not there in either direction (false negatives).
        extra: arcs between nodes without a true one (false positives).

    Examples:
        >>> import poolbn as pb
        >>> true, learned = pb.Dag(["a", "b"], [("a", "b")]), pb.Dag(["a", "b"], [("b", "a")])
        >>> counts = pb.metrics.compare_arcs(true, learned)
        >>> counts.reversed, counts.distance
        (1, 1)
    """

    correct: int
    reversed: int
    missing: int
    extra: int

    @property
    def distance(self) -> int:
        """Structural Hamming distance between the graphs themselves, not their classes."""
        return self.reversed + self.missing + self.extra


def compare_arcs(true: Network | Dag, learned: Network | Dag) -> ArcCounts:
    """Count the arcs that are right, the wrong way round, missing and too many.

    Args:
        true: a graph, or a network.
        learned: another one with the same nodes.

    Raises:
        GraphError: the graphs have different nodes.

    Examples:
        >>> true = Dag.from_modelstring("[A][B|A][C|B][D|C]")
        >>> compare_arcs(true, Dag.from_modelstring("[B][A|B][C|B][D|A]"))
        ArcCounts(correct=1, reversed=1, missing=1, extra=1)
    """
    one, two = _same_nodes(true, learned)
    for graph in (one, two):
        check_kind(graph, Dag, "a Dag or a network", "pb.learn, or Cpdag.extension() of a class,")
    assert isinstance(one, Dag)
    assert isinstance(two, Dag)
    arcs, found = set(one.arcs), set(two.arcs)
    turned = {(child, parent) for parent, child in found}
    return ArcCounts(
        correct=len(arcs & found),
        reversed=len(arcs & turned),
        missing=len(arcs - found - turned),
        extra=len(found) - len(arcs & found) - len(arcs & turned),
    )


def _same_nodes(*given: object) -> list[Dag | Cpdag]:
    """The graphs, of networks too, which must have the same nodes."""
    graphs = []
    for graph in given:
        found = graph.dag if isinstance(graph, Network) else graph
        if not isinstance(found, Dag | Cpdag):
            raise GraphError(
                f"expected a Dag or a network, got {type(found).__name__}; a graph is made by "
                "pb.Dag('[A][B|A]')"
            )
        graphs.append(found)
    for one, two in permutations(graphs, 2):
        for node in one.nodes:
            if node not in two.nodes:
                raise GraphError(f"only one of the graphs has the node {node!r}")
    return graphs


# Distributions


def kl(true: Network, other: Network, *, weights: Weights = "prior") -> float:
    """Kullback-Leibler divergence of a network from the true one.

    In closed form between the multivariate normal distributions of each data set. P(F) itself is
    not compared. It is inf where `other` rules out what `true` allows or the other way round: where
    one of them has a residual variance of 0 and the other has not.

    Args:
        true: the network that expectations are taken under.
        other: a network with the same nodes and data sets, in any order.
        weights: "prior" weighs the data sets by P(F) of `true`; "sum" adds them up, as in the
            paper.

    Raises:
        GraphError: the networks have different nodes.
        DataError: the networks have different data sets.

    Examples:
        >>> import poolbn as pb
        >>> true = pb.random_network(pb.random_dag(5, 2), data_sets=3)
        >>> net = pb.learn(pb.random_table(true, 500), group="F", pooling="none")
        >>> 0 < pb.metrics.kl(true, net) < 0.1
        True
    """
    _check_networks(true, other, weights)
    for network in (true, other):
        for node, fit in network.fits.items():
            if fit.gaussian is None:
                raise DataError(
                    f"kl is for networks whose columns are all continuous, and {node!r} is not; "
                    "use metrics.kl_estimate"
                )
    each = divergences(true.linear, other.linear)
    weight = _weights(true, weights)
    return float(weight[weight > 0] @ each[weight > 0])


@dataclass(frozen=True)
class KlEstimate:
    """A Kullback-Leibler divergence that was estimated by simulation.

    Attributes:
        value: the estimate; it can be below 0 by chance.
        se: its standard error.

    Examples:
        >>> import poolbn as pb
        >>> true = pb.random_network(pb.Dag(["x", "y"]), 2, discrete=0.5, seed=1)
        >>> net = pb.learn(pb.random_table(true, 100), group="F", pooling="complete")
        >>> found = pb.metrics.kl_estimate(true, net)
        >>> found.value > 4 * found.se > 0
        True
    """

    value: float
    se: float


def kl_estimate(
    true: Network, other: Network, *, weights: Weights = "prior", rows: int = 10_000, seed: int = 0
) -> KlEstimate:
    """Kullback-Leibler divergence of a network from the true one, with columns of all kinds.

    The mean log ratio of the densities of rows that are drawn from `true`. It is inf where `other`
    rules out one of them. For continuous columns alone, `kl` is exact.

    Args:
        true: the network that rows are drawn from.
        other: a network with the same nodes, levels and data sets, in any order.
        weights: "prior" weighs the data sets by P(F) of `true`; "sum" adds them up, as in the
            paper.
        rows: rows that are drawn in each data set, 2 or more.
        seed: random seed.

    Raises:
        GraphError: the networks have different nodes.
        DataError: the networks have different data sets, kinds of columns or levels, or a column
            has a residual variance of 0, and so no density.

    Examples:
        >>> import poolbn as pb
        >>> true = pb.random_network(pb.random_dag(4, 1, seed=1), 2, discrete=0.5, seed=1)
        >>> net = pb.learn(pb.random_table(true, 500), group="F", start=true.dag.arcs)
        >>> found = pb.metrics.kl_estimate(true, net)
        >>> 0 < found.value < 0.1
        True
    """
    _check_networks(true, other, weights)
    check_count(2, rows=rows)
    check_count(seed=seed)
    for node in true.dag.nodes:
        _check_alike(node, true.fits[node], other.fits[node])
    order, rng = true.dag.topological_order(), np.random.default_rng(seed)
    ratios = log_ratios(true.fits, other.fits, order, rows, rng)
    weight = _weights(true, weights)
    ratios, weight = ratios[weight > 0], weight[weight > 0]
    if np.isinf(ratios).any():
        return KlEstimate(np.inf, np.nan)
    se = np.sqrt(weight**2 @ ratios.var(axis=1, ddof=1) / rows)
    return KlEstimate(float(weight @ ratios.mean(axis=1)), float(se))


def _check_networks(true: Network, other: Network, weights: Weights) -> None:
    """Raise for networks that cannot be compared."""
    check_option("weights", weights, get_args(Weights))
    for network in (true, other):
        check_kind(network, Network, "a network", "pb.learn")
    _same_nodes(true, other)
    for one, two in ((true, other), (other, true)):
        for level in one.levels:
            if level not in two.levels:
                raise DataError(f"only one of the networks has the data set {level!r}")


def _check_alike(node: str, one: LocalFit, two: LocalFit) -> None:
    """Raise for a node that does not hold the same in two networks, or has no density."""
    if one.kind != two.kind:
        raise DataError(
            f"{node!r} is {one.kind} in one network and {two.kind} in the other; learn "
            "both with the same kinds="
        )
    if differing := set(one.categories) ^ set(two.categories):
        raise DataError(f"only one of the networks has the level {min(differing)!r} of {node!r}")
    for fit in (one, two):
        if (linear := fit.gaussian) is not None and not linear.sigma2.all():
            level = fit.levels[int(np.argmin(linear.sigma2))]
            raise DataError(
                f"{node!r} has a residual variance of 0 in the data set {level!r}, and so no "
                "density; metrics.kl can do that where all columns are continuous"
            )


def _weights(true: Network, weights: Weights) -> Floats:
    """Of the data sets, (F,)."""
    return np.ones(len(true.n)) if weights == "sum" else true.n / true.n_rows


# Predictions


def rmad(actual: ArrayLike, predicted: ArrayLike) -> float:
    """Relative mean absolute deviation: the mean of |x - prediction| / |x|, and then over columns.

    This is the paper's formula. A few values near 0 decide it, and a value of 0 makes it inf unless
    it is predicted exactly; `median_rmad` does not have that weakness.

    Args:
        actual: values, (n,) or (n, N).
        predicted: the same shape.

    Raises:
        DataError: shapes or columns differ, or a value is missing.

    Examples:
        >>> rmad([[1.0, 10.0], [2.0, 20.0]], [[1.5, 10.0], [1.5, 10.0]])
        0.3125
    """
    return float(_relative(actual, predicted).mean(axis=0).mean())


def median_rmad(actual: ArrayLike, predicted: ArrayLike) -> float:
    """As `rmad`, with the median over rows in place of the mean.

    Examples:
        >>> median_rmad([1.0, 2.0, 1e-9], [1.25, 1.5, 1.0])
        0.25
    """
    return float(np.median(_relative(actual, predicted), axis=0).mean())


def _relative(actual: ArrayLike, predicted: ArrayLike) -> Floats:
    x, y = _numbers(actual=actual, predicted=predicted)
    error = np.abs(x - y)
    with np.errstate(divide="ignore"):
        return np.divide(error, np.abs(x), out=np.zeros_like(error), where=error > 0)


@dataclass(frozen=True)
class F1:
    """How well rows were assigned to their data sets, or to the levels of a discrete column.

    Attributes:
        by_data_set: the harmonic mean of precision and recall of each data set against the rest,
            0 where no row is right. Data sets without rows and never predicted are left out.
        never_predicted: data sets with rows, none of which was predicted, so that there is no
            precision.

    Examples:
        >>> import poolbn as pb
        >>> found = pb.metrics.f1(["KY", "KY", "NY"], ["KY", "KY", "KY"], ["KY", "NY"])
        >>> found.by_data_set, found.mean, found.never_predicted
        ({'KY': 0.8, 'NY': 0.0}, 0.4, ('NY',))
    """

    by_data_set: dict[Hashable, float]
    never_predicted: tuple[Hashable, ...]

    @property
    def mean(self) -> float:
        """The mean over data sets, with 0 for those never predicted."""
        return float(np.mean(list(self.by_data_set.values())))

    @property
    def mean_of_predicted(self) -> float:
        """The mean over the data sets that were predicted at all, as in the paper."""
        return float(
            np.mean([f for k, f in self.by_data_set.items() if k not in self.never_predicted])
        )


def f1(actual: Iterable[Hashable], predicted: Iterable[Hashable], levels: Iterable[Hashable]) -> F1:
    """F1 scores of predicted data sets, or levels of a column, each of them against the rest.

    Args:
        actual: the data set, or level, of each row, (n,).
        predicted: the predicted one, (n,).
        levels: the data sets, or levels, there are.

    Raises:
        DataError: the lengths differ, there are no rows, or a name is not among `levels`.

    Examples:
        >>> f1(list("aaabbc"), list("aabbba"), levels="abc")
        F1(by_data_set={'a': 0.66..., 'b': 0.8, 'c': 0.0}, never_predicted=('c',))
    """
    position = {level: j for j, level in enumerate(_labels("levels", levels))}
    codes = []
    for name, given in (("actual", actual), ("predicted", predicted)):
        values = _labels(name, given)
        for row, value in enumerate(values):
            if value not in position:
                raise DataError(
                    f"row {row + 1} of {name} has the data set {value!r}{nearest(value, position)}"
                )
        codes.append(np.array([position[value] for value in values], dtype=np.intp))
    if len(codes[0]) != len(codes[1]) or not len(codes[0]):
        raise DataError(
            f"actual has {counted(len(codes[0]), 'row')} and predicted {len(codes[1])}; "
            "give the same rows to both, at least one"
        )
    rows, guesses = (np.bincount(c, minlength=len(position)) for c in codes)
    right = np.bincount(codes[0][codes[0] == codes[1]], minlength=len(position))
    # 2 / (1 / precision + 1 / recall), with precision right / guesses and recall right / rows
    either = rows + guesses
    score = {level: float(2 * right[j] / either[j]) for level, j in position.items() if either[j]}
    return F1(score, tuple(level for level in score if not guesses[position[level]]))


def _labels(name: str, values: Iterable[Hashable]) -> list[Hashable]:
    """The names of data sets in a list."""
    check_arguments(**{name: (values, LIST)})
    found = list(values)
    for each in found:
        check_arguments(**{f"each of {name}": (each, LABEL)})
    return found


def log_loss(actual: Iterable[Hashable], probabilities: pd.DataFrame) -> float:
    """The mean of -log P(what came), in nats; inf where something came that had no probability.

    Args:
        actual: the level, or data set, of each row, (n,).
        probabilities: a column for each level, as `net.predict` and `net.classify` give them; a
            columns expected_level and most_probable are not looked at.

    Raises:
        DataError: the lengths differ, a value has no column, or a row has no probabilities.

    Examples:
        >>> import pandas as pd
        >>> found = pd.DataFrame({"no": [0.75, 0.5], "yes": [0.25, 0.5]})
        >>> round(log_loss(["no", "yes"], found), 4)
        0.4904
    """
    codes, p = _probabilities(actual, probabilities)
    with np.errstate(divide="ignore"):
        return float(-np.log(p[np.arange(len(p)), codes]).mean())


def brier(actual: Iterable[Hashable], probabilities: pd.DataFrame) -> float:
    """The Brier score: half the squared differences of probabilities from 0 and 1, from 0 to 1.

    For two levels it is the mean of (P(yes) - [yes])^2. For more, some do not halve it.

    Args:
        actual: the level, or data set, of each row, (n,).
        probabilities: a column for each level, see `log_loss`.

    Raises:
        DataError: the lengths differ, a value has no column, or a row has no probabilities.

    Examples:
        >>> import pandas as pd
        >>> found = pd.DataFrame({"no": [0.75, 0.5], "yes": [0.25, 0.5]})
        >>> brier(["no", "yes"], found)
        0.15625
    """
    codes, p = _probabilities(actual, probabilities)
    came = np.eye(p.shape[1])[codes]
    return float(((p - came) ** 2).sum(axis=1).mean() / 2)


def auc(actual: Iterable[Hashable], probabilities: pd.DataFrame) -> float:
    """The area under the ROC curve: how often the row of a level has more probability of it.

    Of two rows with different levels, the probability that the right one of them has the higher
    probability of a level; equal ones count half. With more than two levels it is the mean over all
    pairs of levels (Hand and Till 2001), of those that rows have.

    Args:
        actual: the level, or data set, of each row, (n,).
        probabilities: a column for each level, see `log_loss`.

    Raises:
        DataError: the lengths differ, a value has no column, a row has no probabilities, or all
            rows have one level.

    Examples:
        >>> import pandas as pd
        >>> found = pd.DataFrame({"no": [0.9, 0.6, 0.7, 0.2], "yes": [0.1, 0.4, 0.3, 0.8]})
        >>> auc(["no", "no", "yes", "yes"], found)
        0.75
    """
    codes, p = _probabilities(actual, probabilities)
    there = np.unique(codes)
    if len(there) < 2:
        raise DataError(
            "all rows of actual have the same level, so no two rows can be compared; give rows "
            "with others"
        )
    pairs = permutations(there, 2)
    return float(np.mean([_area(p[codes == k, k], p[codes == other, k]) for k, other in pairs]))


def _area(higher: Floats, lower: Floats) -> float:
    """The share of pairs in which the first is higher, half of those that are equal."""
    ordered = np.sort(lower)
    ends = [np.searchsorted(ordered, higher, side) for side in ("left", "right")]
    return float(np.mean(ends) / len(lower))


def _probabilities(
    actual: Iterable[Hashable], probabilities: pd.DataFrame
) -> tuple[Positions, Floats]:
    """The column of what came in each row, (n,), and probabilities, (n, K)."""
    check_arguments(actual=(actual, LIST), probabilities=(probabilities, _FRAME))
    table = probabilities.drop(columns=[EXPECTED_LEVEL, MOST_PROBABLE], errors="ignore")
    (p,) = _numbers(probabilities=table)
    values = _labels("actual", actual)
    index: dict[Hashable, int] = {name: k for k, name in enumerate(table.columns)}
    if len(values) != len(p):
        raise DataError(
            f"actual has {counted(len(values), 'row')} and probabilities {len(p)}; give the "
            "same rows to both"
        )
    strange = np.flatnonzero((p < 0).any(axis=1) | (np.abs(p.sum(axis=1) - 1) > _ROUNDING))
    if len(strange):
        raise DataError(
            f"row {strange[0] + 1} of probabilities does not add up to 1; select the columns of "
            "the levels, all of them"
        )
    codes = []
    for row, value in enumerate(values):
        # Levels are texts, and a column of true and false or whole numbers is not.
        code = index.get(value, index.get(str(value)))
        if code is None:
            raise DataError(
                f"row {row + 1} of actual has {value!r}, which probabilities has no column for"
                f"{nearest(value, index)}"
            )
        codes.append(code)
    return np.array(codes, dtype=np.intp), p


def coverage(actual: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """The share of values inside their intervals.

    Args:
        actual: values, (n,) or (n, N).
        lower: the lower ends, the same shape.
        upper: the upper ends, the same shape.

    Examples:
        >>> coverage([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0], [1, 2, 2, 9])
        0.75
    """
    x, low, high = _numbers(actual=actual, lower=lower, upper=upper)
    return float(((low <= x) & (x <= high)).mean())


def calibration(
    actual: ArrayLike, intervals: Mapping[float, tuple[ArrayLike, ArrayLike]]
) -> pd.DataFrame:
    """Nominal against actual coverage.

    Args:
        actual: values, (n,) or (n, N).
        intervals: for each nominal coverage the lower and upper ends, as `coverage` takes them.

    Returns:
        A row for each nominal coverage, in order: `nominal`, `coverage`, and its standard error
        `se` if the values are independent.

    Examples:
        >>> calibration([0.1, -0.4, 2.0, 0.3], {0.5: ([-0.2] * 4, [0.2] * 4),
        ...                                     0.9: ([-1] * 4, [1] * 4)}).round(3)
           nominal  coverage     se
        0      0.5      0.25  0.217
        1      0.9      0.75  0.217
    """
    import pandas as pd

    check_arguments(intervals=(intervals, DICT))
    for nominal, ends in intervals.items():
        check_arguments(**{"a nominal coverage": (nominal, NUMBER)})
        check_arguments(**{f"the interval of {nominal}": (ends, _ENDS)})
    rows = []
    for nominal in sorted(intervals):
        if not 0 < nominal < 1:
            raise OptionError(f"a nominal coverage is between 0 and 1, got {nominal!r}")
        share = coverage(actual, *intervals[nominal])
        rows.append((nominal, share, np.sqrt(share * (1 - share) / np.size(actual))))
    return pd.DataFrame(rows, columns=["nominal", "coverage", "se"])


def _numbers(**tables: ArrayLike) -> list[Floats]:
    """Arrays of numbers of the same shape, with the same columns where columns have names."""
    arrays = {}
    for name, table in tables.items():
        try:
            arrays[name] = np.asarray(table, dtype=np.float64)
        except (OverflowError, TypeError, ValueError):
            raise DataError(f"{name} is not a table of numbers") from None
    (first, one), *_ = arrays.items()
    for name, array in arrays.items():
        if array.shape != one.shape or not array.size:
            raise DataError(
                f"{first} has the shape {one.shape} and {name} {array.shape}; give the same rows "
                "and columns to both, at least one"
            )
        if np.isnan(array).any():
            row = np.argwhere(np.isnan(np.atleast_1d(array)))[0, 0] + 1
            raise DataError(f"{name} has no value in row {row}; leave such rows out")
        columns = [list(getattr(tables[name], "columns", ())) for name in (first, name)]
        if all(columns) and columns[0] != columns[1]:
            raise DataError(
                f"{first} has the columns {columns[0]} and {name} {columns[1]}; select the same, "
                "in the same order"
            )
    return list(arrays.values())
