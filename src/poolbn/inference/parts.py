"""What evidence leaves to do: which nodes matter, in which parts, and what hidden ones may be.

A node that is not observed matters if it is a target, or above a target or something observed. What
a node says given its parents is a factor. Factors without such hidden nodes are numbers; the others
fall into parts that have no hidden node in common, and are independent given the data set.

In a part, hidden discrete nodes and counts are enumerated, and all else is linear if no continuous
hidden node is a parent of a discrete node or count. One such node is integrated over by
quadrature. With more of them, or too many configurations, rows are drawn.

Arrays of weights are (r, J, a, b, ...): r rows, J data sets that they may come from, and an axis
for each node of the part's cut, along which are its levels, the nodes of a quadrature, or draws. A
node's values have length 1 along the axes that they do not depend on; so a factor is computed once
for what it depends on, and not for each configuration.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from poolbn.arrays import Flags
from poolbn.inference.assembled import LinearNetwork
from poolbn.inference.conditioning import chunks, uncertain_nodes
from poolbn.inference.engine import Engine
from poolbn.inference.linear import Algebra
from poolbn.inference.locals import Local, Term
from poolbn.inference.marginals import stretched
from poolbn.inference.posterior import Method
from poolbn.nodes.predicting import COUNT, SPACED, Floats, Integers, Predictive

MOST = 100_000  # configurations of a part


@dataclass(frozen=True)
class Part:
    """Hidden nodes that depend on each other given the evidence."""

    hidden: tuple[int, ...]  # their positions, parents first
    factors: tuple[int, ...]  # the nodes that say something of them
    method: Method  # how it is done
    # Hidden nodes that are enumerated, integrated over or drawn, parents first; the others are
    # continuous, and linear given these.
    cut: tuple[int, ...]
    why: tuple[int, ...] = ()  # the nodes that are in the way of exact inference


@dataclass(frozen=True)
class Plan:
    """All parts of a pattern of evidence, and the nodes that are numbers given it."""

    parts: tuple[Part, ...]
    closed: tuple[int, ...]


def plan(
    nodes: Sequence[Local],
    order: Sequence[int],
    inputs: Collection[int],
    observed: Collection[int],
    targets: Sequence[int],
    *,
    drawn: bool,
) -> Plan:
    """What is to be done for one pattern of evidence, of which targets are no part.

    Inputs have no density where they are observed; `drawn` draws all hidden nodes.
    """
    relevant = {*observed, *targets}
    for i in reversed(order):
        if i in relevant:
            relevant.update(nodes[i].parents)
    hidden = relevant - set(observed)
    label = {i: i for i in hidden}

    def root(i: int) -> int:
        while label[i] != i:
            i = label[i]
        return i

    members: dict[int, list[int]] = {}
    closed = []
    for i in order:
        if i not in relevant or (i in inputs and i not in hidden):
            continue
        own = [m for m in (i, *nodes[i].parents) if m in hidden]
        if own:
            members[i] = own
            for m in own[1:]:
                label[root(m)] = root(own[0])
        else:
            closed.append(i)
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for i in order:
        if i in hidden:
            parts.setdefault(root(i), ([], []))[0].append(i)
    for i, own in members.items():
        parts[root(own[0])][1].append(i)
    made = (_part(nodes, own, factors, drawn=drawn) for own, factors in parts.values())
    return Plan(tuple(made), tuple(closed))


def _part(nodes: Sequence[Local], hidden: list[int], factors: list[int], *, drawn: bool) -> Part:
    finite = [i for i in hidden if nodes[i].levels]
    above = {
        parent
        for i in factors
        if not nodes[i].is_gaussian
        for parent in nodes[i].parents
        if parent in hidden and not nodes[parent].levels
    }
    size = math.prod(nodes[i].levels for i in finite if nodes[i].levels != COUNT)
    # Counts are enumerated where what is observed tells their range.
    endless = {
        i
        for i in finite
        if nodes[i].levels == COUNT
        and any(p in hidden and nodes[p].levels <= 0 for p in nodes[i].parents)
    }
    endless |= {i for i in hidden if not (nodes[i].levels or nodes[i].is_gaussian)}
    if size <= MOST and len(above) <= 1 and not endless and not drawn:
        cut = [i for i in hidden if i in above or nodes[i].levels]
        method = Method.QUADRATURE if above else Method.EXACT
        return Part(tuple(hidden), tuple(factors), method, tuple(cut), tuple(sorted(above)))
    why = endless or (above if len(above) > 1 else finite)
    return sampled(nodes, tuple(hidden), tuple(factors), why)


def sampled(
    nodes: Sequence[Local], hidden: tuple[int, ...], factors: tuple[int, ...], why: Collection[int]
) -> Part:
    """A part in which nodes are drawn: all but those that are linear and not above drawn ones."""
    others = [i for i in factors if not nodes[i].is_gaussian]
    above = {parent for i in others for parent in nodes[i].parents}
    needed = {i for i in hidden if not nodes[i].is_gaussian or i in above}
    for i in reversed(hidden):
        if i in needed:
            needed.update(parent for parent in nodes[i].parents if parent in hidden)
    cut = tuple(i for i in hidden if i in needed)
    return Part(hidden, factors, Method.SAMPLING, cut, tuple(sorted(why)))


# Nodes of a quadrature in its variable u, to find out where the weights are, and then.
_FIRST_U, _LAST_U = np.linspace(-3.1, 3.1, 41), np.linspace(-3.1, 3.1, 161)
_ROUNDS = 20  # of finding out
_SETTLED = 0.1  # of the width, by which the centre and the width still change at the end
_NEGLIGIBLE = 45.0  # by which a log weight is below another one that counts
MOST_SPACED = 2**40  # largest value of a count for which logs of probabilities have digits
_VAGUE = 1e30  # variance of a column that is given, so that its density is a constant


class LinearPart(NamedTuple):
    """Some continuous nodes as a linear network."""

    algebra: Algebra
    columns: list[Term]  # its nodes
    switches: tuple[int, ...]  # the nodes whose levels, beside a data set, are one of its data sets
    data_sets: int  # of the network


@dataclass(frozen=True, eq=False)
class Mixed(Engine):
    """A network with columns of all kinds."""

    # Networks of continuous nodes, see `linear_part`, as far as they were needed.
    linear: dict[tuple[int, ...], LinearPart] = field(default_factory=dict)

    def linear_part(self, chosen: tuple[int, ...]) -> LinearPart:
        """Some continuous nodes as a linear network.

        Those of their parents that are not among them, and indicators, are inputs. Where nodes have
        regressions for configurations of discrete parents, these are data sets of the network.
        """
        if chosen not in self.linear:
            self.linear[chosen] = self._linear_part(chosen)
        return self.linear[chosen]

    def _linear_part(self, chosen: tuple[int, ...]) -> LinearPart:
        own: list[Term] = [(i, -1) for i in chosen]
        needed = {term for i in chosen for term in self.nodes[i].terms}
        columns = sorted(needed.difference(own)) + own
        position = {term: k for k, term in enumerate(columns)}
        first = len(columns) - len(own)
        switches = tuple(dict.fromkeys(s for i in chosen for s in self.nodes[i].switches))
        sizes = [self.nodes[s].levels for s in switches]
        codes = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
        sets = np.repeat(np.arange(len(self.levels)), codes.shape[1])
        F, levels = len(sets), dict(zip(switches, np.tile(codes, len(self.levels)), strict=True))
        known = np.full(F, math.inf)
        none = np.zeros((F, 1, 1))
        given = Predictive(np.zeros((F, 1)), none, none, np.full(F, _VAGUE), known, known, math.inf)
        each = []
        for node in (self.nodes[i] for i in chosen):
            assert node.of.regressions is not None
            pairs = zip(node.of.switches, node.switches, strict=True)
            at = node.of.strata({name: levels[s].astype(float) for name, s in pairs}, sets)
            each.append(node.of.regressions.taken(at) if switches else node.of.regressions)
        nodes = [given] * first + each
        parents: list[tuple[int, ...]] = [()] * first
        parents += [tuple(position[term] for term in self.nodes[i].terms) for i in chosen]
        slopes = np.zeros((F, len(columns), len(columns)))
        for k, (of, pa) in enumerate(zip(nodes, parents, strict=True)):
            slopes[:, k, list(pa)] = of.coef[:, 1:]
        rank = {i: k for k, i in enumerate(self.order)}
        order = sorted(range(len(columns)), key=lambda k: (k >= first, rank[columns[k][0]]))
        network = LinearNetwork(
            names=tuple(map(str, columns)),
            levels=tuple(range(F)),
            order=tuple(order),
            parents=tuple(parents),
            intercept=np.stack([of.coef[:, 0] for of in nodes], axis=1),
            slopes=slopes,
            sigma2=np.stack([of.scale2 for of in nodes], axis=1),
        )
        uncertain = uncertain_nodes(network, nodes, np.ones(F, dtype=bool))
        return LinearPart(Algebra(network, uncertain, range(first)), columns, switches, F)


@dataclass(frozen=True, eq=False)
class Normal:
    """What is left of a continuous node: normal or t, arrays as above."""

    mean: Floats
    sd: Floats
    df: Floats


@dataclass(frozen=True, eq=False)
class Grid:
    """The quadrature over a continuous node: at centre + scale g(u), see `stretched`."""

    node: int
    centre: Floats
    scale: Floats
    u: Floats

    @property
    def values(self) -> Floats:
        """Where its nodes are."""
        return np.asarray(self.centre + self.scale * stretched(self.u)[0])

    @property
    def steps(self) -> Floats:
        """How far they are apart."""
        return np.asarray(self.scale * stretched(self.u)[1] * (self.u[1] - self.u[0]))

    @property
    def log_steps(self) -> Floats:
        """What is added to log densities; a node that is certain is there as often as u has it."""
        steps = self.steps
        return np.where(steps > 0, np.log(np.where(steps > 0, steps, 1.0)), -math.log(len(self.u)))


@dataclass(frozen=True, eq=False)
class Weighed:
    """A part given evidence."""

    part: Part  # which
    log_z: Floats  # the log density of the evidence in the part, (r, J)
    p: Floats  # weights with sum 1 for each row and data set, (r, J, ...)
    values: Mapping[int, Floats]  # of the nodes of the cut
    normals: Mapping[int, Normal]  # of the other targets
    grid: Grid | None = None  # of a quadrature

    def turned(self) -> Weighed:
        """Of one row: its data sets as rows, each from one data set."""

        def turn(of: Floats) -> Floats:
            return np.swapaxes(of, 0, 1)

        normals = {
            i: Normal(turn(of.mean), turn(of.sd), turn(of.df)) for i, of in self.normals.items()
        }
        values = {i: turn(of) for i, of in self.values.items()}
        grid = self.grid
        if grid is not None:
            grid = replace(grid, centre=turn(grid.centre), scale=turn(grid.scale))
        return Weighed(self.part, turn(self.log_z), turn(self.p), values, normals, grid)


def is_spaced(mixed: Mixed, part: Part, i: int, size: int) -> bool:
    """Whether not all values of a count are enumerated: it is large, and hidden alone."""
    alone = part.method is Method.EXACT and part.cut == (i,)
    return alone and mixed.nodes[i].levels == COUNT and 2 * SPACED < size <= MOST_SPACED


class _Worker:
    """One part, for some rows."""

    def __init__(
        self, mixed: Mixed, part: Part, x: Floats, sets: Integers, sizes: Mapping[int, int]
    ) -> None:
        self.mixed, self.part = mixed, part
        own = [i for i in part.cut if not (part.method is Method.QUADRATURE and i in part.why)]
        self.axes = 1 if part.method is Method.SAMPLING else len(part.cut)
        shape = (len(x), 1, *[1] * self.axes)
        needed = {m for i in part.factors for m in (i, *mixed.nodes[i].parents)}
        self.values = {i: x[:, i].reshape(shape) for i in needed.difference(part.hidden)}
        self.sets = sets.reshape(*sets.shape, *[1] * self.axes)
        self.shape = (*np.broadcast_shapes(shape[:2], sets.shape), *[1] * self.axes)
        self.axis: dict[int, int] = {}
        self.widths = np.zeros(self.shape)  # logs of how many values of a count each stands for
        if part.method is not Method.SAMPLING:
            for k, i in enumerate(own, start=2):
                size, node = sizes.get(i, mixed.nodes[i].levels), mixed.nodes[i]
                self.axis[i] = k
                if is_spaced(mixed, part, i, size):
                    every, *above = np.broadcast_arrays(
                        self.sets, *(self.values[p] for p in node.parents)
                    )
                    found = node.of.spaced(node.named(above), _codes(every))
                    self.values[i], self.widths = (of.reshape(*every.shape[:2], -1) for of in found)
                    continue
                levels = np.arange(float(size))
                self.values[i] = levels.reshape([-1 if a == k else 1 for a in range(len(shape))])
        drawn = part.cut if part.method is Method.SAMPLING else ()
        self.others = [i for i in part.factors if not mixed.nodes[i].is_gaussian and i not in drawn]
        self.continuous = tuple(
            i for i in part.factors if mixed.nodes[i].is_gaussian and i not in drawn
        )
        self.left = [i for i in part.hidden if i not in part.cut]
        self.grid: Grid | None = None

    def place(self, grid: Grid) -> None:
        """Give a node the values of a quadrature."""
        self.grid, self.values[grid.node] = grid, grid.values

    def total(self, wanted: Sequence[int]) -> tuple[Floats, dict[int, Normal]]:
        """Log weights, and what is wanted of nodes that are linear."""
        grid = self.grid
        total = np.zeros(self.shape) + self.widths if grid is None else grid.log_steps
        many = {i for i in self.axis if self.mixed.nodes[i].levels < 0}  # counts
        many |= set() if grid is None else {grid.node}
        below = [i for i in self.others if many.intersection(self.mixed.nodes[i].parents)]
        normals: dict[int, Normal] = {}
        if self.left:
            more, normals = self.linear(self.continuous, self.left, wanted)
            total = total + more
        for i in (*self.others, *(() if self.left else self.continuous)):
            if i not in below:
                total = total + self.factor(i)
        return (self.with_below(total, below) if below else total), normals

    def with_below(self, total: Floats, below: Sequence[int]) -> Floats:
        """Log weights with factors of which there are many, and most cannot matter.

        Probabilities are at most 1: what is far below the largest log weight, with all
        probabilities, stays there.
        """
        cut = (self.values[i] for i in self.part.cut)
        total = np.broadcast_to(total, np.broadcast_shapes(total.shape, *(x.shape for x in cut)))
        flat = total.reshape(*total.shape[:2], -1)
        top = np.zeros(flat.shape, dtype=bool)
        np.put_along_axis(top, flat.argmax(axis=2)[..., None], True, axis=2)
        one = top.reshape(total.shape)
        least = (total[one] + sum(self.factor(i, one)[one] for i in below)).reshape(flat.shape[:2])
        least = np.where(np.isfinite(least), least - _NEGLIGIBLE, -np.inf)
        matter = total > least.reshape(*least.shape, *[1] * (total.ndim - 2))
        for i in below:
            total = np.where(matter, total, -np.inf) + self.factor(i, matter)
        return total

    def factor(self, i: int, matter: Flags | None = None) -> Floats:
        """The log density of a node given its parents; 0 for what does not matter."""
        node, axis = self.mixed.nodes[i], self.axis.get(i)
        parents = [self.values[parent] for parent in node.parents]
        if matter is not None:
            x, sets, *above = (
                np.broadcast_to(of, matter.shape)[matter]
                for of in (self.values[i], self.sets, *parents)
            )
            out = np.zeros(matter.shape)
            out[matter] = node.of.log_density(x, node.named(above), sets)
            return out
        apart = axis is not None and all(of.shape[axis] == 1 for of in parents)
        if axis is None or node.levels <= 0 or not apart:
            x, sets, *above = np.broadcast_arrays(self.values[i], self.sets, *parents)
            found = node.of.log_density(x.ravel(), node.named(above), _codes(sets))
            return found.reshape(x.shape)
        sets, *above = np.broadcast_arrays(self.sets, *parents)
        logs = node.of.log_levels(node.named(above), _codes(sets))
        return np.moveaxis(logs.reshape(*sets.shape, node.levels), -1, axis).squeeze(axis + 1)

    def linear(
        self, chosen: tuple[int, ...], hidden: Sequence[int], wanted: Sequence[int]
    ) -> tuple[Floats, dict[int, Normal]]:
        """Log densities of continuous nodes without the hidden ones, and what these are."""
        model, columns, switches, data_sets = self.mixed.linear_part(chosen)
        seen = np.array([i not in hidden for i, _ in columns])
        arrays = [self.values[i] for i, _ in np.array(columns)[seen].tolist()]
        strata = self.sets
        for i in switches:
            strata = strata * self.mixed.nodes[i].levels + self.values[i].astype(np.int64)
        shape = np.broadcast_shapes(strata.shape, *(of.shape for of in arrays))
        sets = _codes(np.broadcast_to(strata, shape))
        x = np.full((len(sets), len(columns)), np.nan)
        for k, (i, level) in enumerate(columns):
            if seen[k]:
                own = np.broadcast_to(self.values[i], shape).ravel()
                x[:, k] = own if level < 0 else own == level
        at = [columns.index((i, -1)) for i in wanted]
        loglik = np.empty(len(x))
        mean, sd, df = (np.empty((len(x), len(at))) for _ in range(3))
        observed = np.broadcast_to(seen, (len(sets), len(columns)))
        for chunk in chunks(observed, sets, data_sets):
            given, rows = model.given(x, chunk, at), chunk.rows
            loglik[rows], mean[rows], df[rows] = (
                of[:, 0] for of in (given.loglik, given.mean, given.df)
            )
            variance = np.diagonal(given.cov[:, 0], axis1=-2, axis2=-1)
            sd[rows] = np.sqrt(np.maximum(variance, 0.0))
        found = {
            i: Normal(*(of[:, t].reshape(shape) for of in (mean, sd, df)))
            for t, i in enumerate(wanted)
        }
        return loglik.reshape(shape), found


def _codes(sets: Integers) -> Integers:
    return np.ascontiguousarray(sets).ravel()


def weigh(
    mixed: Mixed,
    part: Part,
    x: Floats,
    sets: Integers,
    targets: Sequence[int],
    *,
    sizes: Mapping[int, int],
    particles: int,
    rng: np.random.Generator,
) -> Weighed:
    """Weigh what the hidden nodes of a part may be.

    Rows are (r, N), their data sets (r, 1), or all of them, (1, F). `sizes` are how many values of
    each hidden count are enumerated, `particles` draws for each row and data set.
    """
    worker = _Worker(mixed, part, x, sets, sizes)
    wanted = [i for i in targets if i in worker.left]
    if part.method is Method.SAMPLING:
        shape = (*worker.shape[:2], particles)
        every = _codes(np.broadcast_to(worker.sets, shape))
        for i in part.cut:
            node = mixed.nodes[i]
            above = [np.broadcast_to(worker.values[p], shape) for p in node.parents]
            drawn = node.of.draw(node.named(above), every, rng)
            worker.values[i] = drawn.reshape(shape)
        worker.shape = shape
    elif part.method is Method.QUADRATURE:
        _place(worker, part.why[0])
    total, normals = worker.total(wanted)
    log_z, p = _normalised(total)
    if part.method is Method.SAMPLING:
        log_z = log_z - math.log(particles)
    return Weighed(part, log_z, p, worker.values, normals, worker.grid)


def _normalised(total: Floats) -> tuple[Floats, Floats]:
    """Log sums (r, J), and weights with sum 1; all alike where all are impossible."""
    flat = total.reshape(*total.shape[:2], -1)
    top = flat.max(axis=2, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    p = np.exp(flat - top)
    sums = p.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        log_z = (top + np.log(sums))[..., 0]
    p = np.where(sums > 0, p / np.where(sums > 0, sums, 1.0), 1 / flat.shape[2])
    return log_z, p.reshape(total.shape)


def _place(worker: _Worker, c: int) -> None:
    """Find nodes for a quadrature over c, from what continuous nodes say to where weights are."""
    hidden = [i for i in worker.part.hidden if worker.mixed.nodes[i].is_gaussian]
    found = worker.linear(worker.continuous, hidden, [c])[1][c]
    full = np.broadcast_shapes(worker.shape, *(of.shape for of in worker.values.values()))
    grid = Grid(
        node=c,
        centre=np.broadcast_to(found.mean, full),
        scale=np.broadcast_to(found.sd, full),
        u=_FIRST_U,
    )
    for _ in range(_ROUNDS):
        worker.place(grid)
        total = worker.total([])[0]
        p = _normalised(total.reshape(1, -1, total.shape[-1]))[1].reshape(total.shape)
        x, scale = grid.values, grid.scale
        mean = (p * x).sum(axis=-1, keepdims=True)
        sd = np.sqrt((p * (x - mean) ** 2).sum(axis=-1, keepdims=True))
        # Where one node has it all, the width is that between nodes, or less.
        sd = np.maximum(sd, 0.3 * (p * grid.steps).sum(axis=-1, keepdims=True)) * (scale > 0)
        matter = np.isfinite(total).any(axis=-1, keepdims=True)  # others stay where they are
        mean, sd = np.where(matter, mean, grid.centre), np.where(matter, sd, scale)
        moved = np.maximum(np.abs(mean - grid.centre), np.abs(sd - scale))
        grid = replace(grid, centre=mean, scale=sd)
        if (moved <= _SETTLED * scale).all():
            break
    worker.place(replace(grid, u=_LAST_U))


def count_sizes(mixed: Mixed, part: Part, x: Floats, sets: Integers) -> dict[int, Floats]:
    """For each hidden count of a part how many values are to be enumerated in each row, (r,)."""
    worker = _Worker(mixed, part, x, sets, dict.fromkeys(part.cut, 1))
    out = {}
    for i in part.cut:
        node = mixed.nodes[i]
        if node.levels == COUNT:
            sets_of, *above = np.broadcast_arrays(
                worker.sets, *(worker.values[p] for p in node.parents)
            )
            found = node.of.largest(node.named(above), _codes(sets_of))
            most = found.reshape(sets_of.shape)
            out[i] = np.broadcast_to(most.max(axis=tuple(range(1, most.ndim))), len(x))
    return out
