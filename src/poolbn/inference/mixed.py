"""Answers of networks with columns of all kinds, for many rows: `plans` says how each is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.graph.dag import Dag
from poolbn.inference.conditioning import patterns
from poolbn.inference.locals import locals_of
from poolbn.inference.marginals import Marginal, marginal
from poolbn.inference.parts import Mixed, Weighed, count_sizes, is_spaced, weigh
from poolbn.inference.plans import MOST, Method, Part, Plan, plan, sampled
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.predicting import COUNT, SPACED, Floats, Integers
from poolbn.run.parallel import available_cores, map_threads
from poolbn.wording import counted, listed

_CELLS = 2**17  # numbers in the largest array of a chunk
_NODES = 161  # of a quadrature, about


@dataclass(frozen=True)
class Effort:
    """How to find answers.

    Attributes:
        method: "auto", "exact" to refuse what is not, or "lw" for likelihood weighting.
        particles: draws for each row and data set, where rows are drawn.
        seed: of the draws.
    """

    method: str = "auto"
    particles: int = 1000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Answer:
    """What the cells of some rows say.

    Attributes:
        rows: which, (r,).
        log_z: log densities of the evidence in data sets, (r, J).
        weights: P(data set | evidence), (r, J).
        parts: of the network that have targets.
        ess: effective sample size; inf where nothing was drawn, (r,).
        method: the least exact one that was used.
    """

    rows: Integers
    log_z: Floats
    weights: Floats
    parts: tuple[Weighed, ...]
    ess: Floats
    method: Method

    def marginal(self, mixed: Mixed, target: int) -> Marginal:
        """The distribution of a target in these rows."""
        found = next(of for of in self.parts if target in of.part.hidden)
        return marginal(mixed, found, target, self.weights)


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Rows that are done alike; see `answers`."""

    rows: Integers
    known: bool
    plan: Plan
    sizes: Mapping[int, int]


def answers(
    mixed: Mixed,
    x: Floats,
    codes: Integers,
    targets: Sequence[int],
    effort: Effort,
    work: Callable[[Answer], None],
    *,
    densities: bool = False,
) -> None:
    """Do some work on what the cells of all rows say, some rows at a time, in threads.

    Args:
        mixed: the network.
        x: the rows, NaN where a cell is missing or not to be used, (n, N).
        codes: the known data set of each row, or -1, (n,).
        targets: positions of nodes whose distributions are asked for.
        effort: how.
        work: what to do.
        densities: whether log densities of rows are asked for.

    Raises:
        DataError: a data set has no predictive distribution; or a row is impossible, unless
            densities are asked for; or the method is "exact", and there is no such answer.
    """
    _check(mixed, codes)
    pieces = list(_chunks(mixed, x, codes, targets, effort, densities=densities))

    def one(chunk: _Chunk) -> None:
        work(_answer(mixed, x, codes, targets, effort, chunk, densities))

    map_threads(one, pieces, available_cores())


def _check(mixed: Mixed, codes: Integers) -> None:
    asked = set(mixed.refused) if (codes < 0).any() else mixed.refused.keys() & set(codes.tolist())
    for j in sorted(asked):
        raise DataError(
            f"{mixed.refused[j]}; learn with ",
            Option("pooling", "partial"),
            " or fewer parents, or ask with ",
            Option("plugin", True),
        )


def _chunks(
    mixed: Mixed,
    x: Floats,
    codes: Integers,
    targets: Sequence[int],
    effort: Effort,
    *,
    densities: bool,
) -> Iterator[_Chunk]:
    if not len(x):
        return
    pattern = 2 * patterns(~np.isnan(x)) + (codes >= 0)
    order = np.argsort(pattern, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(pattern[order])) + 1):
        known = bool(codes[rows[0]] >= 0)
        observed = np.flatnonzero(~np.isnan(x[rows[0]])).tolist()
        asked = [t for t in targets if t not in observed]
        drawn = effort.method == "lw"
        made = plan(mixed.nodes, mixed.order, mixed.inputs, observed, asked, drawn=drawn)
        if known and not densities:  # only what has to do with targets
            parts = tuple(part for part in made.parts if set(asked).intersection(part.hidden))
            made = Plan(parts, ())
        for own, sizes in _by_size(mixed, x, codes, rows, known, made):
            yield from _cut(mixed, effort, own, known, made, sizes)


def _by_size(
    mixed: Mixed, x: Floats, codes: Integers, rows: Integers, known: bool, made: Plan
) -> Iterator[tuple[Integers, dict[int, int]]]:
    """Rows whose hidden counts have about the same range, and how many values that has."""
    found: dict[int, Floats] = {}
    for part in made.parts:
        hidden = [i for i in part.cut if mixed.nodes[i].levels == COUNT]
        if hidden and part.method is not Method.SAMPLING:
            sets = codes[rows, None] if known else np.arange(len(mixed.levels))[None]
            found |= count_sizes(mixed, part, x[rows], sets)
    if not found:
        yield rows, {}
        return
    exponent = np.array([np.ceil(np.log2(of)) for of in found.values()]).T.astype(np.int64)
    kinds, which = np.unique(exponent, axis=0, return_inverse=True)
    for k, own in enumerate(kinds.tolist()):
        at = rows[which.ravel() == k]
        yield at, {i: 2**e for i, e in zip(found, own, strict=True)}


def _cut(
    mixed: Mixed, effort: Effort, rows: Integers, known: bool, made: Plan, sizes: dict[int, int]
) -> Iterator[_Chunk]:
    """Chunks that fit into memory; parts with too many configurations are drawn."""
    parts, most = [], 1
    for one in made.parts:
        part = one
        few = MOST * (_NODES if one.method is Method.QUADRATURE else 1)
        if one.method is not Method.SAMPLING and _size(mixed, one, sizes) > few:
            large = [i for i in one.cut if mixed.nodes[i].levels]
            part = sampled(mixed.nodes, one.hidden, one.factors, large)
        if part.method is Method.SAMPLING and effort.method == "exact":
            raise _not_exact(mixed, part)
        drawn = part.method is Method.SAMPLING
        most = max(most, effort.particles if drawn else _size(mixed, part, sizes))
        parts.append(part)
    plan_of = replace(made, parts=tuple(parts))
    step = max(1, _CELLS // (most * (1 if known else len(mixed.levels))))
    for start in range(0, len(rows), step):
        yield _Chunk(rows[start : start + step], known, plan_of, sizes)


def _size(mixed: Mixed, part: Part, sizes: Mapping[int, int]) -> int:
    """How many configurations a part has, nodes of a quadrature among them."""
    own = ((i, sizes.get(i, mixed.nodes[i].levels or _NODES)) for i in part.cut)
    return math.prod(SPACED if is_spaced(mixed, part, i, size) else size for i, size in own)


def _not_exact(mixed: Mixed, part: Part) -> DataError:
    names = listed([mixed.names[i] for i in part.why], 5)
    if any(mixed.nodes[i].levels for i in part.why):
        why = f"{names} are missing, and have too many configurations, or no largest value"
    else:
        why = f"{names} are missing, and parents of discrete columns or counts"
    return DataError(
        f"there is no exact answer: {why}; give their values, or use ", Option("method", "auto")
    )


def _answer(
    mixed: Mixed,
    x: Floats,
    codes: Integers,
    targets: Sequence[int],
    effort: Effort,
    chunk: _Chunk,
    densities: bool,
) -> Answer:
    rows, own = chunk.rows, x[chunk.rows]
    sets = codes[rows, None] if chunk.known else np.arange(len(mixed.levels))[None]
    J = sets.shape[1]
    log_z, found = np.zeros((len(rows), J)), []
    for number, part in enumerate(chunk.plan.parts):
        asked = [t for t in targets if t in part.hidden]
        one = weigh(
            mixed, part, own, sets, asked, sizes=chunk.sizes, particles=effort.particles,
            rng=np.random.default_rng([effort.seed, int(rows[0]), number]),
        )  # fmt: skip
        log_z += one.log_z
        if asked or part.method is Method.SAMPLING:
            found.append(one)
    for i in chunk.plan.closed:
        node = mixed.nodes[i]
        values = {p: np.repeat(own[:, p], J) for p in node.parents}
        every = np.broadcast_to(sets, log_z.shape).ravel()
        log_z += node.log_density(np.repeat(own[:, i], J), values, every).reshape(log_z.shape)
    log = log_z + (0.0 if chunk.known else _log(mixed.prior))
    top = log.max(axis=1, keepdims=True)
    if not densities and not np.isfinite(top).all():
        row = int(rows[~np.isfinite(top[:, 0])].min())
        raise _impossible(mixed, x[row], int(codes[row]), row)
    with np.errstate(invalid="ignore"):
        weights = np.exp(log - top)
        weights /= weights.sum(axis=1, keepdims=True)
    return Answer(rows, log_z, weights, tuple(found), *_error(weights, found, chunk.plan.parts))


def _log(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(p)


def _error(
    weights: Floats, found: Sequence[Weighed], parts: Sequence[Part]
) -> tuple[Floats, Method]:
    """Effective sample sizes of rows (r,), and the least exact method."""
    ess = np.full(len(weights), math.inf)
    for of in found:
        if of.part.method is Method.SAMPLING:
            p = of.p.reshape(*of.p.shape[:2], -1)
            ess = np.minimum(ess, 1 / ((weights[..., None] * p) ** 2).sum(axis=(1, 2)))
    order = list(Method)
    return ess, max((part.method for part in parts), key=order.index, default=Method.EXACT)


def _impossible(mixed: Mixed, row: Floats, code: int, position: int) -> DataError:
    """The error for a row that no data set can have produced."""
    values = {i: row[[i]] for i in range(len(row))}
    sets = np.arange(len(mixed.levels)) if code < 0 else np.array([code])
    wrong = []
    for i, node in enumerate(mixed.nodes):
        if not np.isnan(row[[i, *node.parents]]).any():
            each = {p: np.repeat(values[p], len(sets)) for p in node.parents}
            if np.isneginf(node.log_density(np.repeat(row[[i]], len(sets)), each, sets)).all():
                wrong.append(repr(mixed.names[i]))
    of = f"the value of {wrong[0]} has probability 0" if wrong else "some cells have probability 0"
    where = "any data set of the network" if code < 0 else f"data set {mixed.levels[code]!r}"
    return DataError(
        f"row {position + 1} cannot come from {where}: {of} given the others. Make such cells "
        "missing, or leave the row out"
    )


# What is asked


@dataclass(frozen=True, eq=False)
class Predicted:
    """The distribution of targets in n rows.

    Attributes:
        columns: for each target probabilities of its levels (n, K) if it is discrete, else mean,
            standard deviation, and bounds of an interval, (n, 4).
        ess: effective sample sizes; inf where nothing was drawn, (n,).
    """

    columns: tuple[Floats, ...]
    ess: Floats


def predictions(
    mixed: Mixed,
    x: Floats,
    codes: Integers,
    targets: Sequence[int],
    interval: float,
    effort: Effort,
) -> Predicted:
    """Distributions of targets; arguments as for `answers`, and the probability of intervals."""
    n, tail = len(x), (1 - interval) / 2
    widths = [max(mixed.nodes[t].levels, 0) or 4 for t in targets]
    out, ess = [np.empty((n, width)) for width in widths], np.empty(n)

    def work(answer: Answer) -> None:
        ess[answer.rows] = answer.ess
        for columns, t in zip(out, targets, strict=True):
            found = answer.marginal(mixed, t)
            if mixed.nodes[t].levels > 0:
                columns[answer.rows] = found.weights  # type: ignore[attr-defined]
            else:
                bounds = (found.quantile(p) for p in (tail, 1 - tail))
                columns[answer.rows] = np.column_stack([*found.moments(), *bounds])

    answers(mixed, x, codes, targets, effort, work)
    return Predicted(tuple(out), ess)


def log_densities(mixed: Mixed, x: Floats, codes: Integers, effort: Effort) -> Floats:
    """The log density of each row, in its data set or where that is not known over all, (n,)."""
    out = np.empty(len(x))

    def work(answer: Answer) -> None:
        log = answer.log_z
        if log.shape[1] > 1:
            log = log + _log(mixed.prior)
        top = np.maximum(log.max(axis=1), -1e300)
        out[answer.rows] = top + _log(np.exp(log - top[:, None]).sum(axis=1))

    answers(mixed, x, codes, [], effort, work, densities=True)
    return out


def data_set_probabilities(mixed: Mixed, x: Floats, effort: Effort) -> tuple[Floats, Floats]:
    """P(data set | row), (n, F), and effective sample sizes, (n,)."""
    out, ess = np.ones((len(x), len(mixed.levels))), np.full(len(x), math.inf)

    def work(answer: Answer) -> None:
        out[answer.rows], ess[answer.rows] = answer.weights, answer.ess

    answers(mixed, x, np.full(len(x), -1), [], effort, work)
    return out, ess


def most_likely(
    mixed: Mixed, x: Floats, codes: Integers, wanted: NDArray[np.bool_], effort: Effort
) -> Floats:
    """Rows with missing cells filled: the most probable level, a count's median, else the mean.

    Args:
        mixed: the network.
        x: the rows, (n, N).
        codes: their data sets, or -1, (n,).
        wanted: the nodes to fill, (N,).
        effort: how.
    """
    out = x.copy()
    targets = np.flatnonzero(wanted).tolist()

    def work(answer: Answer) -> None:
        for t in targets:
            if np.isnan(x[answer.rows[0], t]):
                found: Any = answer.marginal(mixed, t)
                levels = mixed.nodes[t].levels
                if levels > 0:
                    filled = found.weights.argmax(axis=1)
                else:
                    filled = found.quantile(0.5) if levels == COUNT else found.moments()[0]
                out[answer.rows, t] = filled

    answers(mixed, x, codes, targets, effort, work)
    return out


def sample(
    mixed: Mixed, x: Floats, codes: Integers, rng: np.random.Generator
) -> tuple[Integers, Floats, Floats]:
    """Draw what is missing in rows, parents first, and data sets that are not known by P(F).

    Returns:
        Data sets (n,), values (n, N), and the log densities of the cells that were there given what
        is above them, (n,).
    """
    _check(mixed, codes)
    sets = codes.copy()
    unknown = codes < 0
    sets[unknown] = rng.choice(len(mixed.levels), size=int(unknown.sum()), p=mixed.prior)
    values, log_weights = x.copy(), np.zeros(len(x))
    for i in mixed.order:
        node = mixed.nodes[i]
        above = {p: values[:, p] for p in node.parents}
        missing = np.isnan(x[:, i])
        if missing.all():
            values[:, i] = node.draw(above, sets, rng)
        elif not missing.any():
            if i not in mixed.inputs:
                log_weights += node.log_density(values[:, i], above, sets)
        else:
            raise AssertionError("all rows have the same evidence")
    return sets, values, log_weights


def conditional_rows(
    mixed: Mixed, evidence: Floats, code: int, effort: Effort
) -> tuple[Integers, Floats, Floats]:
    """Rows given evidence by likelihood weighting: data sets (K,), values (K, N), weights (K,).

    Raises:
        DataError: all of them have weight 0.
    """
    x, codes = np.tile(evidence, (effort.particles, 1)), np.full(effort.particles, code)
    sets, values, log = sample(mixed, x, codes, np.random.default_rng(effort.seed))
    if not np.isfinite(log.max()):
        raise _impossible(mixed, evidence, code, 0)
    weights = np.exp(log - log.max())
    return sets, values, weights / weights.sum()


def mixed_network(
    dag: Dag,
    fits: Mapping[str, LocalFit],
    n: NDArray[np.int64],
    inputs: Collection[str],
    certain: Collection[Hashable],
) -> Mixed:
    """A network as inference works on it.

    Args:
        dag: the graph.
        fits: its nodes.
        n: rows of each data set, (F,).
        inputs: nodes without a distribution.
        certain: the data sets in which estimates are taken for certain.
    """
    own = {name: fits[name] for name in dag.nodes}
    nodes = locals_of(own, certain=certain)
    levels = own[dag.nodes[0]].levels
    refused = {
        j: f"{fit.child!r} has no predictive distribution in data set {levels[j]!r}: its "
        f"{counted(int(linear.rows[j]), 'row')} do not give "
        f"{counted(len(fit.columns) + 1, 'coefficient')} and a variance"
        for fit, node in zip(own.values(), nodes, strict=True)
        if (linear := fit.gaussian) is not None and (of := node.of.linear) is not None
        for j in np.flatnonzero(np.isnan(of.scale2)).tolist()
    }
    position = {name: i for i, name in enumerate(dag.nodes)}
    return Mixed(
        names=dag.nodes,
        levels=levels,
        prior=n / n.sum(),
        nodes=nodes,
        order=tuple(position[name] for name in dag.topological_order()),
        inputs=frozenset(position[name] for name in inputs),
        refused=refused,
    )
