"""Answers of networks whose nodes are of any kinds: `plans` says how each is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.graph.dag import Dag
from poolbn.inference.conditioning import patterns
from poolbn.inference.locals import locals_of
from poolbn.inference.marginals import Marginal, marginal
from poolbn.inference.parts import Mixed, Weighed, count_sizes, is_spaced, weigh
from poolbn.inference.plans import MOST, Effort, Method, Part, Plan, plan, sampled
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.predicting import COUNT, SPACED, Floats, Integers
from poolbn.run.parallel import available_cores, map_threads
from poolbn.wording import counted, listed

_CELLS = 2**17  # numbers in the largest array of a chunk
_NODES = 161  # of a quadrature, about


@dataclass(frozen=True, eq=False)
class Answer:
    """What the cells of some rows say."""

    rows: Integers  # which, (r,)
    log_z: Floats  # log densities of the evidence in data sets, (r, J)
    weights: Floats  # P(data set | evidence), (r, J)
    parts: tuple[Weighed, ...]  # of the network that have targets
    ess: Floats  # effective sample size; inf where nothing was drawn, (r,)
    method: Method  # the least exact one that was used

    def marginal(self, mixed: Mixed, target: int) -> Marginal:
        """The distribution of a target in these rows."""
        found = next(of for of in self.parts if target in of.part.hidden)
        return marginal(mixed, found, target, self.weights)

    def by_set(self, mixed: Mixed, target: int) -> tuple[Marginal, bool]:
        """Of one row, a target in each data set; whether it is normal or t there."""
        found = next(of for of in self.parts if target in of.part.hidden)
        turned = found.turned()
        simple = target in turned.normals and turned.p[0].size == 1
        return marginal(mixed, turned, target, np.ones((len(turned.p), 1))), simple


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

    Rows are (n, N), NaN where a cell is missing or not to be used, with the known data set of each
    or -1, (n,); targets are positions of nodes. `densities` says whether log densities of rows are
    asked for: then an impossible row is no error.
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
        raise impossible(mixed, x[row], int(codes[row]), row)
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


def impossible(mixed: Mixed, row: Floats, code: int, position: int) -> DataError:
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


def sample(
    mixed: Mixed, x: Floats, codes: Integers, rng: np.random.Generator
) -> tuple[Integers, Floats, Floats]:
    """Draw what is missing in rows, parents first, and data sets that are not known by P(F).

    Data sets (n,), values (n, N), and the log densities of the cells that were there given what is
    above them, (n,).
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


def mixed_network(
    dag: Dag,
    fits: Mapping[str, LocalFit],
    n: NDArray[np.int64],
    inputs: Collection[str],
    certain: Collection[Hashable],
) -> Mixed:
    """A network as inference works on it, with estimates for certain in some data sets."""
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
