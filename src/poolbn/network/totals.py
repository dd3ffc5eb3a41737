"""Total effects in networks with columns of all kinds, by standardisation.

E[effect | do(cause = b)] is compared with E[effect | do(cause = a)]: in each data set, and in the
population of data sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.graph.dag import Dag
from poolbn.inference.drawing import expectations, uniforms
from poolbn.nodes.localfit import LocalFit, level_columns

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
TotalsBy = Literal["effect", "data set"]

_TERM = ("cause", "from", "to", "effect", "outcome", "scale")
COLUMNS = (*_TERM, "total", "lower", "upper", "between_sd", "simulation_se")
_LONG = (*_TERM, "data_set", "total", "lower", "upper", "simulation_se")

_DRAWS = 500  # of parameters, for intervals
_SETS, _ROWS = 200, 1000  # new data sets, and rows of each
_FEW_SETS, _FEW_ROWS = 16, 40  # the same for each draw of parameters
_CELLS = 400_000  # rows of all data sets together


class Change(NamedTuple):
    """An intervention beside another: what they are called, and values or codes of levels."""

    before: str | float
    after: str | float
    low: float
    high: float


class Scale(NamedTuple):
    """What a number compares: two means or two logarithms of means."""

    name: str
    ratio: bool

    def value(self, low: Floats, high: Floats) -> Floats:
        """A difference, or the logarithm of a ratio."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(high) - np.log(low) if self.ratio else high - low)

    def reported(self, value: Any) -> Any:
        """Ratios are no logarithms for a reader."""
        return np.exp(value) if self.ratio else value


@dataclass(frozen=True)
class Question:
    """A network, and what is to be known of total effects in it.

    Attributes:
        dag: the graph.
        fits: its nodes.
        n: rows of each data set, (F,).
        interval: the probability of the intervals.
        seed: of all draws.
    """

    dag: Dag
    fits: Mapping[str, LocalFit]
    n: NDArray[np.int64]
    interval: float
    seed: int

    @property
    def levels(self) -> tuple[Any, ...]:
        """The data sets."""
        return self.fits[self.dag.nodes[0]].levels

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


def totals_table(
    asked: Question, pairs: Sequence[tuple[str, Sequence[str]]], by: TotalsBy
) -> pd.DataFrame:
    """A row for each change of a cause and each number that compares an effect.

    Args:
        asked: the network.
        pairs: causes, each with its effects.
        by: whether rows are of the population, with those of data sets beside it, or of data sets.
    """
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for cause, effects in pairs:
        for change in changes(asked, cause) if effects else ():
            rows += (_of_population if by == "effect" else _of_data_sets)(
                asked, cause, change, effects
            )
    names = [*COLUMNS, *level_columns(asked.levels, COLUMNS)] if by == "effect" else list(_LONG)
    return pd.DataFrame(rows, columns=pd.Index(names, dtype=object))


def changes(asked: Question, cause: str) -> Iterator[Change]:
    """A discrete cause from its first level to each other one, others from their mean by one."""
    fit = asked.fits[cause]
    if categories := fit.categories:
        for code, level in enumerate(categories[1:], start=1):
            yield Change(categories[0], level, 0.0, float(code))
        return
    order = _needed(asked.dag, [cause])
    n = max(min(_CELLS // len(asked.levels), 4000), 200)
    noise = uniforms(order, n, asked.rng(0))
    mean = expectations(asked.data_sets(order, 0), order, noise, {})[cause].mean(axis=1)
    low = float(np.average(mean, weights=asked.n if asked.n.any() else None))
    low = low if fit.gaussian is not None else float(round(low))
    yield Change(low, low + 1, low, low + 1)


def _needed(dag: Dag, effects: Sequence[str]) -> list[str]:
    """The nodes that some depend on, and they themselves, parents first."""
    needed = set(effects).union(*(dag.ancestors(node) for node in effects))
    return [node for node in dag.topological_order() if node in needed]


class _Means(NamedTuple):
    """Expectations of an outcome under the two interventions, (B, n) each."""

    low: Floats
    high: Floats

    @property
    def of_sets(self) -> tuple[Floats, Floats]:
        """(B,) each."""
        return self.low.mean(axis=1), self.high.mean(axis=1)

    def averaged(self, draws: int) -> tuple[Floats, Floats]:
        """Over the new data sets of each draw, (draws,) each."""
        low, high = (each.reshape(draws, -1).mean(axis=1) for each in self.of_sets)
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
        levels = fits[effect].categories
        for k, level in enumerate(levels[1:] or ("",), start=1):
            own = _Means(a[:, :, k], b[:, :, k]) if levels else _Means(a, b)
            found[effect, level] = own
    return found


def scales(fit: LocalFit) -> tuple[Scale, ...]:
    """The numbers that compare the means of a node."""
    if fit.gaussian is not None:
        return (Scale("mean difference", False),)
    of = "risk" if fit.categories else "rate"
    return Scale(f"{of} difference", False), Scale(f"{of} ratio", True)


def _of_population(
    asked: Question, cause: str, change: Change, effects: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Rows of `COLUMNS`, and then the data sets."""
    order = _needed(asked.dag, effects)
    F = len(asked.levels)
    own_noise = uniforms(order, max(min(_CELLS // F, 4000), 200), asked.rng(3))
    asking = (cause, change, effects)
    own = _means(asked.data_sets(order, 0), order, own_noise, *asking)
    unknown = {node for node in order if node != cause and not asked.fits[node].has_population}
    told = [node for node in effects if not unknown.intersection(_way(asked.dag, node, cause))]
    order = _needed(asked.dag, told) if told else []
    noise, few = (uniforms(order, n, asked.rng(4)) for n in (_ROWS, _FEW_ROWS))
    asking = (cause, change, told)
    many = _means(asked.new_sets(order, _SETS, 0), order, noise, *asking)
    middle = _means(asked.new_sets(order, _FEW_SETS, 0), order, few, *asking)
    drawn = _means(asked.new_sets(order, _FEW_SETS, _DRAWS), order, few, *asking)
    for (effect, outcome), means in own.items():
        for scale in scales(asked.fits[effect]):
            each = scale.value(*means.of_sets)
            numbers: tuple[float, ...] = (math.nan,) * 4 + (float(_error(means, scale).max()),)
            if effect in told:
                key = (effect, outcome)
                numbers = _population_numbers(
                    scale, many[key], middle[key], drawn[key], asked.interval
                )
            term = (cause, change.before, change.after, effect, outcome, scale.name)
            yield (*term, *numbers, *scale.reported(each))


def _way(dag: Dag, node: str, cause: str) -> set[str]:
    """The nodes whose distributions matter to a node when the cause is set."""
    return {node, *dag.ancestors(node)} - {cause}


def _population_numbers(
    scale: Scale, many: _Means, middle: _Means, drawn: _Means, interval: float
) -> tuple[float, ...]:
    """Total, lower, upper, between_sd and simulation_se."""
    total = float(scale.value(*many.averaged(1))[0])
    away = scale.value(*drawn.averaged(_DRAWS)) - scale.value(*middle.averaged(1))
    ends = total + np.quantile(away, [(1 - interval) / 2, (1 + interval) / 2])
    each = scale.value(*many.of_sets)
    averaged = _Means(*(of.mean(axis=0, keepdims=True) for of in many))
    pairs = each.reshape(2, -1).mean(axis=0)  # of opposite random effects
    error = math.hypot(float(_error(averaged, scale)[0]), float(pairs.std()) / len(pairs) ** 0.5)
    between = float(each.std())
    return *scale.reported(np.array([total, *ends])).tolist(), between, error


def _error(means: _Means, scale: Scale) -> Floats:
    """What the draws of rows make a value uncertain by, (B,); for ratios of the logarithm."""
    low, high = means
    if scale.ratio:
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (each / each.mean(axis=1, keepdims=True) for each in (low, high))
    spread = np.broadcast_to(high - low, np.broadcast_shapes(high.shape, low.shape))
    return np.asarray(spread.std(axis=1, ddof=1) / math.sqrt(spread.shape[1]))


def _of_data_sets(
    asked: Question, cause: str, change: Change, effects: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Rows of `_LONG`."""
    order = _needed(asked.dag, effects)
    F = len(asked.levels)
    sizes = (max(min(_CELLS // F, 4000), 200), max(min(_CELLS // (F * _DRAWS), 200), 20))
    noise, few = (uniforms(order, n, asked.rng(3)) for n in sizes)
    asking = (cause, change, effects)
    own = _means(asked.data_sets(order, 0), order, noise, *asking)
    middle = _means(asked.data_sets(order, 0), order, few, *asking)
    drawn = _means(asked.data_sets(order, _DRAWS), order, few, *asking)
    tails = [(1 - asked.interval) / 2, (1 + asked.interval) / 2]
    for (effect, outcome), means in own.items():
        for scale in scales(asked.fits[effect]):
            key = (effect, outcome)
            total = scale.value(*means.of_sets)
            spread = scale.value(*drawn[key].of_sets).reshape(_DRAWS, -1)
            away = spread - scale.value(*middle[key].of_sets)
            ends = scale.reported(total + np.quantile(away, tails, axis=0))
            term = (cause, change.before, change.after, effect, outcome, scale.name)
            every = (asked.levels, scale.reported(total), *ends, _error(means, scale))
            for values in zip(*every, strict=True):
                yield (*term, *values)
