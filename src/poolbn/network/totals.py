"""Total effects: what setting one node to another value does to those below it.

E[effect | do(cause = b)] is compared with E[effect | do(cause = a)]: in each data set, and in the
population of data sets. Where all nodes on the way are linear that is algebra, see `_linear`; else
rows are drawn (standardisation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.errors import GraphError
from poolbn.graph.dag import Dag
from poolbn.inference.drawing import expectations, uniforms
from poolbn.later import pandas as pd
from poolbn.nodes.localfit import LinearFit, LocalFit, level_columns
from poolbn.tables.kinds import is_ordered

TotalsBy = Literal["effect", "data set", "estimand"]

# What a total is of.
TERM = ("cause", "from", "to", "effect", "outcome", "scale")
COLUMNS = (*TERM, "total", "lower", "upper", "between_sd", "simulation_se")
_LONG = (*TERM, "data_set", "total", "lower", "upper", "simulation_se")
_ESTIMAND = (*TERM, "estimand", *_LONG[len(TERM) :])
KNOWN, AVERAGE, NEW = "known data set", "average of these data sets", "new data set"

_DRAWS = 500  # of parameters, for intervals
_LINEAR_DRAWS = 4000  # where that takes no rows
_SETS, _ROWS = 200, 1000  # new data sets, and rows of each
_FEW_SETS, _FEW_ROWS = 16, 40  # the same for each draw of parameters
_CELLS = 400_000  # rows of all data sets together


class Change(NamedTuple):
    """An intervention beside another: what they are called, and values or codes of levels."""

    before: str | float
    after: str | float
    low: float
    high: float


# Effect, outcome and scale, and what `COLUMNS` or `_LONG` have beside them: one row, or several.
Told = tuple[tuple[str, str, str], Iterable[tuple[Any, ...]]]


class Scale(NamedTuple):
    """What a number compares: two means or two logarithms of means.

    Or odds to exceed thresholds, at all together: the common odds ratio of Liu and Agresti (1996),
    sum P(1 - Q) / sum Q(1 - P) of the probabilities Q before and P after.
    """

    name: str
    ratio: bool
    common: bool = False

    def value(self, low: Floats, high: Floats) -> Floats:
        """A difference, or the logarithm of a ratio; from T means each, (..., T)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.common:
                rise, fall = _odds(low, high)
                return np.asarray(np.log(rise) - np.log(fall))[..., 0]
            value = np.log(high) - np.log(low) if self.ratio else high - low
            return np.asarray(value)[..., 0]

    def slopes(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Those of `value` in the two, (..., T) each."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.common:
                rise, fall = _odds(low, high)
                return -high / rise - (1 - high) / fall, (1 - low) / rise + low / fall
            return (-1 / low, 1 / high) if self.ratio else (-np.ones_like(low), np.ones_like(high))

    def reported(self, value: Any) -> Any:
        """Ratios are no logarithms for a reader."""
        return np.exp(value) if self.ratio else value


def _odds(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The two sums of a common odds ratio, (..., 1)."""
    rise, fall = high * (1 - low), low * (1 - high)
    return rise.sum(axis=-1, keepdims=True), fall.sum(axis=-1, keepdims=True)


_DIFFERENCE, _COMMON = Scale("mean difference", False), Scale("odds ratio", True, True)


@dataclass(frozen=True)
class Question:
    """A network, and what is to be known of total effects in it."""

    dag: Dag  # the graph
    fits: Mapping[str, LocalFit]  # its nodes
    n: Integers  # rows of each data set, (F,)
    interval: float  # the probability of the intervals
    seed: int  # of all draws
    # Coefficients of the population of linear nodes, as far as they were needed.
    drawn: dict[str, Floats] = field(default_factory=dict)

    @property
    def tails(self) -> list[float]:
        """The probabilities of the ends of intervals."""
        return [(1 - self.interval) / 2, (1 + self.interval) / 2]

    @property
    def levels(self) -> tuple[Any, ...]:
        """The data sets."""
        return self.fits[self.dag.nodes[0]].levels

    @property
    def shares(self) -> Floats:
        """Of the data sets in all rows, (F,)."""
        n = self.n if self.n.any() else np.ones(len(self.n))
        return np.asarray(n / n.sum())

    @property
    def rows(self) -> int:
        """How many are drawn of each data set."""
        return max(min(_CELLS // len(self.levels), 4000), 200)

    def rng(self, purpose: int, node: str = "") -> np.random.Generator:
        """For one purpose and node; the same one always draws the same."""
        at = self.dag.nodes.index(node) + 1 if node else 0
        return np.random.default_rng([self.seed, purpose, at])

    def data_sets(self, order: Sequence[str], draws: int) -> dict[str, LocalFit]:
        """Nodes with the parameters of data sets."""
        return {node: self.fits[node].data_set_draws(draws, self.rng(1, node)) for node in order}

    def new_sets(self, order: Sequence[str], sets: int, draws: int) -> dict[str, LocalFit]:
        """Nodes with those of new data sets."""
        return {
            node: self.fits[node].new_data_sets(sets, draws, self.rng(2, node)) for node in order
        }

    def population(self, node: str, fit: LinearFit) -> Floats:
        """Draws of a linear node's coefficients in the population, (draws, q)."""
        if node not in self.drawn:
            rng = np.random.default_rng([self.seed, self.dag.nodes.index(node)])
            nothing = np.full((_LINEAR_DRAWS, len(fit.columns) + 1), math.nan)
            known = fit.fixed is not None
            self.drawn[node] = fit.population_draws(_LINEAR_DRAWS, rng) if known else nothing
        return self.drawn[node]


def causes_and_effects(
    dag: Dag, cause: str | None, effect: str | None
) -> list[tuple[str, list[str]]]:
    """Causes with their effects: nodes that a directed path joins, or those asked."""
    if cause is not None and cause == effect:
        raise GraphError(f"{cause!r} is both cause and effect; give two nodes")
    causes = set(dag.nodes if effect is None else dag.ancestors(effect))
    if cause is not None:
        dag.parents(cause)  # raises for a name that is no node
        causes &= {cause}
    return [
        (start, list(dag.descendants(start)) if effect is None else [effect])
        for start in dag.nodes
        if start in causes
    ]


def totals_table(
    asked: Question, pairs: Sequence[tuple[str, Sequence[str]]], by: TotalsBy
) -> pd.DataFrame:
    """A row for each change of a cause and each number that compares an effect.

    Rows are of the population, with those of data sets beside it, by data set, or by estimand.
    """
    population, apart = (_exact_population, _of_population), (_exact_data_sets, _of_data_sets)
    if by == "effect":
        found = _told(asked, pairs, *population)
        names = [*COLUMNS, *level_columns(asked.levels, COLUMNS)]
        rows = [(*term, *each) for term, numbers in found for each in numbers]
    elif by == "data set":
        names = list(_LONG)
        found = _told(asked, pairs, *apart)
        rows = [(*term, *each) for term, (*own, _) in found for each in own]
    else:
        names, rows = list(_ESTIMAND), []
        both = zip(_told(asked, pairs, *apart), _told(asked, pairs, *population), strict=True)
        for (term, (*own, average)), (_, (whole,)) in both:
            total, lower, upper, _, error = whole[:5]
            rows += [(*term, KNOWN, *each) for each in own]
            rows.append((*term, AVERAGE, *average))
            rows.append((*term, NEW, None, total, lower, upper, error))
    return pd.DataFrame(rows, columns=pd.Index(names, dtype=object))


_Maker = Callable[..., Iterator[Told]]  # of rows of one cause


def _told(
    asked: Question, pairs: Sequence[tuple[str, Sequence[str]]], exact: _Maker, drawn: _Maker
) -> list[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    """What each total is of, and its rows."""
    rows = []
    for cause, effects in pairs:
        for change in changes(asked, cause) if effects else ():
            linear = _ways(asked, cause, change, effects)
            others = [node for node in effects if node not in linear]
            found = list(exact(asked, cause, linear)) if linear else []
            found += drawn(asked, cause, change, others) if others else ()
            told = [own for node in effects for own in found if own[0][0] == node]
            rows += [
                ((cause, change.before, change.after, *term), list(numbers))
                for term, numbers in told
            ]
    return rows


def changes(asked: Question, cause: str) -> Iterator[Change]:
    """A discrete cause from its first level to each other one, others from their mean by one."""
    fit = asked.fits[cause]
    if categories := fit.categories:
        for code, level in enumerate(categories[1:], start=1):
            yield Change(categories[0], level, 0.0, float(code))
        return
    order = _needed(asked.dag, [cause])
    if all(asked.fits[node].gaussian for node in order):
        means: dict[str, Floats] = {}
        for node in order:
            means[node] = asked.fits[node].mean(means, np.arange(len(asked.levels)))
        mean = means[cause]
    else:
        noise = uniforms(order, asked.rows, asked.rng(0))
        mean = expectations(asked.data_sets(order, 0), order, noise, {})[cause].mean(axis=1)
    low = float(asked.shares @ mean)
    low = low if fit.gaussian else float(round(low))
    yield Change(low, low + 1, low, low + 1)


# Algebra


class _Way(NamedTuple):
    """A linear node that a cause reaches through linear nodes alone."""

    fit: LinearFit  # the node
    slopes: list[int]  # which coefficients are those of the nodes above it that the cause changes
    above: list[str]  # these nodes


def _ways(asked: Question, cause: str, change: Change, effects: Sequence[str]) -> dict[str, _Way]:
    """The nodes that a cause reaches through linear nodes alone, parents first."""
    below, found = {cause, *asked.dag.descendants(cause)}, dict[str, _Way]()
    for node in _needed(asked.dag, effects):
        fit = asked.fits[node].gaussian
        if fit is None or node == cause or node not in below:
            continue
        above = [parent for parent in fit.parents if parent in below]
        if all(parent == cause or parent in found for parent in above):
            columns = [(p, *column) for p in above for column in fit.columns_of(p)]
            slopes = [
                k + 1 for p, k, _, level in columns if p != cause or level in ("", change.after)
            ]
            found[node] = _Way(fit, slopes, above)
    return found


def _through(ways: Mapping[str, _Way], cause: str, coef: Mapping[str, Floats]) -> dict[str, Floats]:
    """Sums over directed paths of products of coefficients (B, q), (B,) of each node."""
    found = {cause: np.ones(len(next(iter(coef.values()))))}
    for node, way in ways.items():
        above = np.array([found[parent] for parent in way.above])
        found[node] = np.einsum("bk,kb->b", coef[node][:, way.slopes], above)
    return found


def _in_population(ways: Mapping[str, _Way], cause: str) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of total effects in the population of data sets.

    A node with coefficients b of its parents has t = b't_pa, one node after the other. In the
    population b has mean beta and covariance D. It is independent of t_pa, because the random
    effects of different nodes are, and t_pa is made of those of nodes above. So, with m and K the
    mean and covariance of t_pa, E[t] = beta'm, Cov(t, s) = beta' Cov(t_pa, s) for each s above, and
    Var(t) = beta'K beta + tr(D K) + m'D m. NaN where a node on the way has no pooling.
    """
    position = {node: i for i, node in enumerate([cause, *ways])}
    mean, cov = np.ones(len(position)), np.zeros((len(position), len(position)))
    for i, way in enumerate(ways.values(), start=1):
        fit, pa = way.fit, [position[parent] for parent in way.above]
        beta = np.full(len(pa), np.nan) if fit.fixed is None else fit.fixed[way.slopes]
        D = np.zeros((len(pa), len(pa)))
        if fit.random_cov is not None:
            D = fit.random_cov[np.ix_(way.slopes, way.slopes)]
        m, K = mean[pa], cov[np.ix_(pa, pa)]
        cov[i, :i] = cov[:i, i] = beta @ cov[pa, :i]
        mean[i] = beta @ m
        cov[i, i] = beta @ K @ beta + np.sum(D * K) + m @ D @ m
    sd = np.sqrt(np.maximum(np.diagonal(cov), 0.0))
    return {node: (float(mean[i]), float(sd[i])) for node, i in position.items()}


def _exact_population(asked: Question, cause: str, ways: Mapping[str, _Way]) -> Iterator[Told]:
    """Rows with the data sets last; intervals are quantiles of drawn coefficients."""
    own = _through(ways, cause, {node: way.fit.coef for node, way in ways.items()})
    drawn = _through(ways, cause, {node: asked.population(node, w.fit) for node, w in ways.items()})
    for node, (mean, sd) in _in_population(ways, cause).items():
        if node != cause:
            ends = np.quantile(drawn[node], asked.tails).tolist()
            yield (node, "", _DIFFERENCE.name), [(mean, *ends, sd, 0.0, *own[node])]


def _exact_data_sets(asked: Question, cause: str, ways: Mapping[str, _Way]) -> Iterator[Told]:
    """A row for each data set, and last one for their average."""
    own = _through(ways, cause, {node: way.fit.coef for node, way in ways.items()})
    fits = asked.data_sets(list(ways), _DRAWS)
    coef = {node: fit.coef for node, of in fits.items() if (fit := of.gaussian) is not None}
    drawn = _through(ways, cause, coef)
    for node in ways:
        ends = np.quantile(drawn[node].reshape(_DRAWS, -1), asked.tails, axis=0)
        exact = np.zeros(len(asked.levels))
        each = zip(asked.levels, own[node], *ends, exact, strict=True)
        average = (None, float(asked.shares @ own[node]), math.nan, math.nan, 0.0)
        yield (node, "", _DIFFERENCE.name), [*each, average]


# Simulation


def _needed(dag: Dag, effects: Sequence[str]) -> list[str]:
    """The nodes that some depend on, and they themselves, parents first."""
    needed = set(effects).union(*(dag.ancestors(node) for node in effects))
    return [node for node in dag.topological_order() if node in needed]


class _Means(NamedTuple):
    """Expectations of an outcome under the two interventions, (B, n, T) each.

    T is 1, but for the probabilities to exceed the T thresholds of ordered levels.
    """

    low: Floats
    high: Floats

    @property
    def of_sets(self) -> tuple[Floats, Floats]:
        """(B, T) each."""
        return self.low.mean(axis=1), self.high.mean(axis=1)

    def averaged(self, draws: int) -> tuple[Floats, Floats]:
        """Over the new data sets of each draw, (draws, T) each."""
        low, high = (each.reshape(draws, -1, each.shape[1]).mean(axis=1) for each in self.of_sets)
        return low, high


def _means(
    fits: Mapping[str, LocalFit],
    order: Sequence[str],
    noise: Mapping[str, Floats],
    cause: str,
    change: Change,
    effects: Sequence[str],
) -> dict[tuple[str, str], _Means]:
    """Of each effect and outcome."""
    low, high = (
        expectations(fits, order, noise, {cause: value}) for value in (change.low, change.high)
    )
    found = {}
    for effect in effects:
        a, b = np.broadcast_arrays(low[effect], high[effect])
        names = fits[effect].categories[1:]
        if not names:
            found[effect, ""] = _Means(a[:, :, None], b[:, :, None])
            continue
        if is_ordered(fits[effect].kind):  # of each level or a higher one
            a, b = (np.cumsum(each[:, :, ::-1], axis=2)[:, :, ::-1] for each in (a, b))
            found[effect, ""] = _Means(a[:, :, 1:], b[:, :, 1:])
            names = (*(f"{level} or higher" for level in names[:-1]), names[-1])
        for k, name in enumerate(names, start=1):
            found[effect, name] = _Means(a[:, :, k : k + 1], b[:, :, k : k + 1])
    return found


def _scales(fit: LocalFit, outcome: str) -> tuple[Scale, ...]:
    """The numbers that compare the means of a node."""
    if fit.gaussian:
        return (_DIFFERENCE,)
    if fit.categories and not outcome:
        return (_COMMON,)
    of = "risk" if fit.categories else "rate"
    return Scale(f"{of} difference", False), Scale(f"{of} ratio", True)


def _of_population(
    asked: Question, cause: str, change: Change, effects: Sequence[str]
) -> Iterator[Told]:
    """Rows with the data sets last."""
    order = _needed(asked.dag, effects)
    own_noise = uniforms(order, asked.rows, asked.rng(3))
    asking = (cause, change, effects)
    own = _means(asked.data_sets(order, 0), order, own_noise, *asking)
    unknown = {node for node in order if node != cause and not asked.fits[node].has_population}
    # The distributions of a node and of those above it matter, without that of what is set.
    told = [n for n in effects if not unknown.intersection((n, *asked.dag.ancestors(n)))]
    order = _needed(asked.dag, told) if told else []
    noise, few = (uniforms(order, n, asked.rng(4)) for n in (_ROWS, _FEW_ROWS))
    asking = (cause, change, told)
    many = _means(asked.new_sets(order, _SETS, 0), order, noise, *asking)
    middle = _means(asked.new_sets(order, _FEW_SETS, 0), order, few, *asking)
    drawn = _means(asked.new_sets(order, _FEW_SETS, _DRAWS), order, few, *asking)
    for (effect, outcome), means in own.items():
        for scale in _scales(asked.fits[effect], outcome):
            each = scale.value(*means.of_sets)
            numbers: tuple[float, ...] = (math.nan,) * 4 + (float(_error(means, scale).max()),)
            if effect in told:
                key = (effect, outcome)
                numbers = _population_numbers(
                    scale, many[key], middle[key], drawn[key], asked.tails
                )
            yield (effect, outcome, scale.name), [(*numbers, *scale.reported(each))]


def _population_numbers(
    scale: Scale, many: _Means, middle: _Means, drawn: _Means, tails: list[float]
) -> tuple[float, ...]:
    """Total, lower, upper, between_sd and simulation_se."""
    total = float(scale.value(*many.averaged(1))[0])
    away = scale.value(*drawn.averaged(_DRAWS)) - scale.value(*middle.averaged(1))
    ends = total + np.quantile(away, tails)
    each = scale.value(*many.of_sets)
    averaged = _Means(*(of.mean(axis=0, keepdims=True) for of in many))
    pairs = each.reshape(2, -1).mean(axis=0)  # of opposite random effects
    error = math.hypot(float(_error(averaged, scale)[0]), float(pairs.std()) / len(pairs) ** 0.5)
    between = float(each.std())
    return *scale.reported(np.array([total, *ends])).tolist(), between, error


def _error(means: _Means, scale: Scale) -> Floats:
    """What the draws of rows make a value uncertain by, (B,); for ratios of the logarithm."""
    slopes = scale.slopes(*means.of_sets)
    parts = (of * slope[:, None] for of, slope in zip(means, slopes, strict=True))
    spread = sum(parts, np.zeros(())).sum(axis=2)
    return np.asarray(spread.std(axis=1, ddof=1) / math.sqrt(spread.shape[1]))


def _of_data_sets(
    asked: Question, cause: str, change: Change, effects: Sequence[str]
) -> Iterator[Told]:
    """A row for each data set, and last one for their average."""
    order = _needed(asked.dag, effects)
    fewer = max(min(_CELLS // (len(asked.levels) * _DRAWS), 200), 20)
    noise, few = (uniforms(order, n, asked.rng(3)) for n in (asked.rows, fewer))
    asking = (cause, change, effects)
    own = _means(asked.data_sets(order, 0), order, noise, *asking)
    middle = _means(asked.data_sets(order, 0), order, few, *asking)
    drawn = _means(asked.data_sets(order, _DRAWS), order, few, *asking)
    for (effect, outcome), means in own.items():
        for scale in _scales(asked.fits[effect], outcome):
            key = (effect, outcome)
            total = scale.value(*means.of_sets)
            spread = scale.value(*drawn[key].of_sets).reshape(_DRAWS, -1)
            away = spread - scale.value(*middle[key].of_sets)
            ends = scale.reported(total + np.quantile(away, asked.tails, axis=0))
            every = (asked.levels, scale.reported(total), *ends, _error(means, scale))
            mixed = _Means(*(np.einsum("b,bnt->nt", asked.shares, of)[None] for of in means))
            value = float(scale.reported(scale.value(*mixed.of_sets))[0])
            average = (None, value, math.nan, math.nan, float(_error(mixed, scale)[0]))
            yield (effect, outcome, scale.name), [*zip(*every, strict=True), average]
