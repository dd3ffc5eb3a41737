"""Networks whose nodes are of any kinds: `parts` says how each answer is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from poolbn.arrays import Integers
from poolbn.errors import DataError, Option
from poolbn.graph.dag import Dag
from poolbn.inference.assembled import assemble
from poolbn.inference.conditioning import patterns, uncertain_nodes
from poolbn.inference.engine import Answer, Asked, Effort, Engine, HeldOut, Judged, log_sum
from poolbn.inference.linear import Algebra, Linear
from poolbn.inference.locals import locals_of
from poolbn.inference.marginals import Marginal, Mixture, OnGrid, Points
from poolbn.inference.parts import (
    MOST,
    MOST_SPACED,
    Mixed,
    Part,
    Plan,
    Weighed,
    count_sizes,
    is_spaced,
    plan,
    sampled,
    weigh,
)
from poolbn.inference.posterior import Method, Posterior
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.predicting import COUNT, SPACED, Floats
from poolbn.run.parallel import available_cores, map_threads
from poolbn.wording import counted, listed

_CELLS = 2**17  # numbers in the largest array of a chunk
_NODES = 161  # of a quadrature, about
_DRAWS = 10_000  # for a posterior, where it takes draws
_ROWS = 128  # in which each cell is predicted from the others, at a time
_IMPOSSIBLE = -1e4  # log density of what cannot be, beside which all else is likely


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Rows that are done alike."""

    rows: Integers  # which, (r,)
    known: bool  # whether their data sets are
    plan: Plan
    sizes: Mapping[int, int]  # values that are enumerated of hidden counts


@dataclass(frozen=True, eq=False)
class _Planned(Answer):
    """What the parts of a plan say together."""

    log_z: Floats  # log densities of the evidence in data sets, (r, J)
    parts: Sequence[Weighed]  # of the network that have targets
    method: Method  # the least exact one that was used
    network: Mixed

    def _part(self, target: int) -> Weighed:
        return next(of for of in self.parts if target in of.part.hidden)

    def marginal(self, target: int) -> Marginal:
        """The distribution of a target in these rows."""
        return _marginal(self.network, self._part(target), target, self.weights)

    def by_set(self, target: int) -> tuple[Marginal, bool]:
        """Of one row, a target in each data set; whether it is normal or t there."""
        turned = self._part(target).turned()
        simple = target in turned.normals and turned.p[0].size == 1
        return _marginal(self.network, turned, target, np.ones((len(turned.p), 1))), simple


@dataclass(frozen=True, eq=False)
class General(Mixed):
    """Nodes of any kinds."""

    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of discrete nodes

    def answers(self, of: Asked, work: Callable[[_Planned], None]) -> None:
        """Do some work on what the cells of all rows say."""
        self.check(of.codes)
        pieces = list(self._chunks(of))
        map_threads(lambda chunk: work(self._answer(of, chunk)), pieces, available_cores())

    def log_densities(self, x: Floats, codes: Integers) -> Floats:
        """The log density of each row."""
        out = np.empty(len(x))

        def work(answer: _Planned) -> None:
            log = answer.log_z
            if log.shape[1] > 1:
                log = log + self.log_prior()
            out[answer.rows] = log_sum(log, axis=1)[:, 0]

        self.answers(Asked(x, codes, densities=True), work)
        return out

    def posterior(self, evidence: Floats, code: int, targets: Sequence[int]) -> Posterior:
        """The distribution of targets given one row."""
        found = list[_Planned]()
        row = Asked(evidence[None], np.array([code]), targets, Effort(particles=_DRAWS))
        self.answers(row, found.append)
        (answer,) = found
        F, T = len(self.levels), len(targets)
        at = slice(None) if code < 0 else slice(code, code + 1)
        weights = np.zeros(F)
        weights[at] = answer.weights[0]
        means, df = np.full((F, T), np.nan), np.full((F, T), np.nan)
        covs = np.full((F, T, T), np.nan)
        for k, t in enumerate(targets):
            if self.nodes[t].levels <= 0:
                own, simple = answer.by_set(t)
                means[at, k], sd = own.moments()
                covs[at, k, k] = sd**2
                if simple and isinstance(own, Mixture):
                    df[at, k] = own.df[:, 0]
        names = [self.names[t] for t in targets]
        return Posterior(
            targets=tuple(names),
            levels=self.levels,
            weights=weights,
            marginals=tuple(answer.marginal(t) for t in targets),
            categories={name: of for name in names if (of := self.categories[name])},
            means=means,
            covs=covs,
            df=df,
            method=answer.method,
            ess=float(answer.ess[0]),
        )

    # Rows that the network was not learned from

    def judged(self, rows: HeldOut, codes: Integers, n: Integers, *, guess: bool) -> Judged:
        """Densities of rows, and which data sets they come from."""
        log = self.row_logs(rows, n)
        most = (log + self.log_prior()).argmax(axis=1) if guess else None
        return Judged(log[np.arange(len(log)), codes], most)

    def row_logs(self, rows: HeldOut, n: Integers) -> Floats:
        """Log densities of rows in all data sets, (r, F), over what missing cells may have been.

        In a row with missing cells one whose level is not known is missing too, and counts as if
        half a row of the data set had it; arguments as for `node_logs`.
        """
        out = np.empty((len(rows.x), len(self.levels)))
        whole = rows.whole
        out[whole] = self.node_logs(rows.some(whole), n).sum(axis=0)
        incomplete = np.setdiff1d(np.arange(len(out)), whole)
        least = _least(n)
        possible = tuple(replace(node, of=node.of.possible(least)) for node in self.nodes)

        def work(answer: _Planned) -> None:
            out[incomplete[answer.rows]] = answer.log_z

        known = np.where(rows.strange, np.nan, rows.x)[incomplete]
        unknown = np.full(len(incomplete), -1)
        replace(self, nodes=possible).answers(Asked(known, unknown, densities=True), work)
        out[incomplete] += rows.strange[incomplete].sum(axis=1, keepdims=True) * least
        return np.where(np.isneginf(out), least, out)

    def node_logs(self, rows: HeldOut, n: Integers) -> Floats:
        """Log densities of all nodes given their parents, in all data sets, (N, r, F).

        What has no probability counts as if half a row of the data set had it, which has n, (F,).
        Inputs have 0.
        """
        r, F = len(rows.x), len(self.levels)
        out = np.zeros((len(self.nodes), r, F))
        for i in range(len(self.nodes)):
            if i not in self.inputs:
                found = self._log_density(i, rows.x, np.arange(F)[None])
                none = rows.strange[:, i, None] | np.isneginf(found)
                out[i] = np.where(none, _least(n), found)
        return out

    def squares(self, rows: HeldOut, codes: Integers, n: Integers) -> tuple[Floats, Floats]:
        """Squared errors of each node given all others."""
        logs = self.node_logs(rows, n)
        total, known, unknown = logs.sum(axis=0), np.zeros(len(logs)), np.zeros(len(logs))
        sets, prior = np.arange(len(self.levels))[None], self.log_prior()
        for t, node in enumerate(self.nodes):
            seen = [i for i in range(len(logs)) if i != t]
            (part,) = plan(self.nodes, self.order, self.inputs, seen, [t], drawn=False).parts
            closed = total - logs[list(part.factors)].sum(axis=0)
            for start in range(0, len(rows.x), _ROWS):
                at = slice(start, start + _ROWS)
                x = rows.x[at].copy()
                sizes = {}
                if node.levels == COUNT:
                    largest = count_sizes(self, part, x, sets)
                    sizes = {i: int(min(of.max(), MOST_SPACED)) for i, of in largest.items()}
                x[:, t] = np.nan
                rng = np.random.default_rng(0)  # nothing is drawn with one node hidden
                found = weigh(self, part, x, sets, [t], sizes=sizes, particles=1, rng=rng)
                log = prior + closed[at] + np.maximum(found.log_z, _IMPOSSIBLE)
                weight = np.exp(log - log.max(axis=1, keepdims=True))
                weight /= weight.sum(axis=1, keepdims=True)
                expected = _expected(found, t, node.levels)  # (r, F, K)
                actual = rows.x[at, t, None]
                if node.levels > 0:
                    actual = (actual == np.arange(node.levels)) & ~rows.strange[at, t, None]
                own = expected[np.arange(len(x)), codes[at]]
                all_sets = (weight[..., None] * expected).sum(axis=1)
                # A level that is not known is one more, and had no probability.
                more = float(rows.strange[at, t].sum())
                known[t] += float(((own - actual) ** 2).sum()) + more
                unknown[t] += float(((all_sets - actual) ** 2).sum()) + more
        return known, unknown

    # How answers are found

    def _sets(self, codes: Integers, known: bool) -> Integers:
        """The data sets that rows may come from: their own, (r, 1), or all, (1, F)."""
        return codes[:, None] if known else np.arange(len(self.levels))[None]

    def _chunks(self, of: Asked) -> Iterator[_Chunk]:
        x, codes = of.x, of.codes
        pattern = 2 * patterns(~np.isnan(x)) + (codes >= 0)
        order = np.argsort(pattern, kind="stable")
        edges = np.flatnonzero(np.diff(pattern[order])) + 1
        for rows in np.split(order, edges) if len(x) else ():
            known = bool(codes[rows[0]] >= 0)
            observed = np.flatnonzero(~np.isnan(x[rows[0]])).tolist()
            asked = [t for t in of.targets if t not in observed]
            drawn = of.effort.method == "lw"
            made = plan(self.nodes, self.order, self.inputs, observed, asked, drawn=drawn)
            if known and not of.densities:  # only what has to do with targets
                parts = tuple(part for part in made.parts if set(asked).intersection(part.hidden))
                made = Plan(parts, ())
            for own, sizes in self._by_size(x, codes, rows, known, made):
                yield from self._cut(of.effort, own, known, made, sizes)

    def _by_size(
        self, x: Floats, codes: Integers, rows: Integers, known: bool, made: Plan
    ) -> Iterator[tuple[Integers, dict[int, int]]]:
        """Rows whose hidden counts have about the same range, and how many values that has."""
        found: dict[int, Floats] = {}
        for part in made.parts:
            hidden = [i for i in part.cut if self.nodes[i].levels == COUNT]
            if hidden and part.method is not Method.SAMPLING:
                found |= count_sizes(self, part, x[rows], self._sets(codes[rows], known))
        if not found:
            yield rows, {}
            return
        exponent = np.array([np.ceil(np.log2(of)) for of in found.values()]).T.astype(np.int64)
        kinds, which = np.unique(exponent, axis=0, return_inverse=True)
        for k, own in enumerate(kinds.tolist()):
            at = rows[which.ravel() == k]
            yield at, {i: 2**e for i, e in zip(found, own, strict=True)}

    def _cut(
        self, effort: Effort, rows: Integers, known: bool, made: Plan, sizes: dict[int, int]
    ) -> Iterator[_Chunk]:
        """Chunks that fit into memory; parts with too many configurations are drawn."""
        parts, most = [], 1
        for one in made.parts:
            part = one
            few = MOST * (_NODES if one.method is Method.QUADRATURE else 1)
            if one.method is not Method.SAMPLING and self._size(one, sizes) > few:
                large = [i for i in one.cut if self.nodes[i].levels]
                part = sampled(self.nodes, one.hidden, one.factors, large)
            drawn = part.method is Method.SAMPLING
            if drawn and effort.method == "exact":
                raise self._not_exact(part)
            most = max(most, effort.particles if drawn else self._size(part, sizes))
            parts.append(part)
        plan_of = replace(made, parts=tuple(parts))
        step = max(1, _CELLS // (most * (1 if known else len(self.levels))))
        for start in range(0, len(rows), step):
            yield _Chunk(rows[start : start + step], known, plan_of, sizes)

    def _size(self, part: Part, sizes: Mapping[int, int]) -> int:
        """How many configurations a part has, nodes of a quadrature among them."""
        own = ((i, sizes.get(i, self.nodes[i].levels or _NODES)) for i in part.cut)
        return math.prod(SPACED if is_spaced(self, part, i, size) else size for i, size in own)

    def _not_exact(self, part: Part) -> DataError:
        names = listed([self.names[i] for i in part.why], 5)
        if any(self.nodes[i].levels for i in part.why):
            why = f"{names} are missing, and have too many configurations, or no largest value"
        else:
            why = f"{names} are missing, and parents of discrete columns or counts"
        return DataError(
            f"there is no exact answer: {why}; give their values, or use ", Option("method", "auto")
        )

    def _answer(self, of: Asked, chunk: _Chunk) -> _Planned:
        codes, effort, rows, own = of.codes, of.effort, chunk.rows, of.x[chunk.rows]
        sets = self._sets(codes[rows], chunk.known)
        log_z, found = np.zeros((len(rows), sets.shape[1])), []
        for number, part in enumerate(chunk.plan.parts):
            asked = [t for t in of.targets if t in part.hidden]
            one = weigh(
                self, part, own, sets, asked, sizes=chunk.sizes, particles=effort.particles,
                rng=np.random.default_rng([effort.seed, int(rows[0]), number]),
            )  # fmt: skip
            log_z += one.log_z
            if asked or part.method is Method.SAMPLING:
                found.append(one)
        for i in chunk.plan.closed:
            log_z += self._log_density(i, own, sets)
        log = log_z + (0.0 if chunk.known else self.log_prior())
        weights = np.full_like(log, math.nan)
        if not of.densities:
            weights = self.shares(log, of.x, rows, codes)
        ess = np.full(len(rows), math.inf)
        for one in found:
            if one.part.method is Method.SAMPLING:
                p = one.p.reshape(*one.p.shape[:2], -1)
                ess = np.minimum(ess, 1 / ((weights[..., None] * p) ** 2).sum(axis=(1, 2)))
        methods = [part.method for part in chunk.plan.parts]
        least = max(methods, key=list(Method).index, default=Method.EXACT)
        return _Planned(rows, weights, ess, log_z, found, least, self)

    def _log_density(self, i: int, x: Floats, sets: Integers) -> Floats:
        """Of a node given its parents in rows (r, N), in data sets (r or 1, J): (r, J)."""
        node, shape = self.nodes[i], (len(x), sets.shape[1])
        above = node.named(np.repeat(x[:, p], shape[1]) for p in node.parents)
        every = np.broadcast_to(sets, shape).ravel()
        return node.of.log_density(np.repeat(x[:, i], shape[1]), above, every).reshape(shape)

    def impossible(self, row: Floats, code: int, position: int) -> DataError:
        """The error for a row that no data set can have produced."""
        sets = self._sets(np.array([code]), known=code >= 0)
        wrong = [
            repr(name)
            for i, (name, node) in enumerate(zip(self.names, self.nodes, strict=True))
            if not np.isnan(row[[i, *node.parents]]).any()
            and np.isneginf(self._log_density(i, row[None], sets)).all()
        ]
        of = "some cells have probability 0"
        if wrong:
            of = f"the value of {wrong[0]} has probability 0"
        where = "any data set of the network" if code < 0 else f"data set {self.levels[code]!r}"
        return DataError(
            f"row {position + 1} cannot come from {where}: {of} given the others. Make such cells "
            "missing, or leave the row out"
        )


def _least(n: Integers) -> Floats:
    """The log probability of what has none, in each data set."""
    return np.asarray(np.log(0.5 / np.maximum(n, 1)))


def _expected(found: Weighed, t: int, levels: int) -> Floats:
    """Of a node: probabilities of levels, or the mean, in each data set, (r, F, K)."""
    if t in found.normals:
        return np.broadcast_to(found.normals[t].mean, found.p.shape)[..., None]
    if levels > 0:
        return found.p
    return np.asarray((found.p * found.values[t]).sum(axis=-1, keepdims=True))


def _marginal(mixed: Mixed, found: Weighed, target: int, weights: Floats) -> Marginal:
    """The distribution of a target over all data sets, which have weights with sum 1, (r, J).

    That of a discrete target is `Points` at codes 0, 1, ...
    """
    p = weights.reshape(*weights.shape, *[1] * (found.p.ndim - 2)) * found.p
    r = len(p)

    def by_row(*of: Floats) -> list[Floats]:
        return [np.broadcast_to(each, p.shape).reshape(r, -1) for each in of]

    if target in found.normals:
        normal = found.normals[target]
        return Mixture(*by_row(p, normal.mean, normal.sd**2, normal.df))
    values, levels = found.values[target], mixed.nodes[target].levels
    if found.part.method is Method.SAMPLING:
        points = Points(*by_row(values, p))
        return _tallied(points, levels) if levels > 0 else points
    if (grid := found.grid) is not None and grid.node == target:
        shape = (*p.shape[:-1], 1)
        centre, scale = (
            np.broadcast_to(of, shape).reshape(r, -1, 1) for of in (grid.centre, grid.scale)
        )
        return OnGrid(p.reshape(r, -1, p.shape[-1]), centre, scale, grid.u)
    if values.size > max(values.shape):  # counts of each row's own
        return Points(*by_row(values, p))
    axis = int(np.argmax(values.shape))
    others = tuple(k for k in range(1, p.ndim) if k != axis)
    return Points(values.reshape(1, -1), p.sum(axis=others))


def _tallied(points: Points, levels: int) -> Points:
    """Draws of levels, put together."""
    n = len(points.weights)
    at = np.arange(n)[:, None] * levels + points.values.astype(np.int64)
    sums = np.bincount(at.ravel(), points.weights.ravel(), minlength=n * levels)
    return Points(np.arange(float(levels))[None], sums.astype(np.float64).reshape(n, levels))


def general_network(
    dag: Dag,
    fits: Mapping[str, LocalFit],
    n: Integers,
    inputs: Collection[str],
    certain: Collection[Hashable],
) -> General:
    """A network as inference works on it, with estimates for certain in some data sets."""
    own = {name: fits[name] for name in dag.nodes}
    nodes = locals_of(own, certain=certain)
    levels = own[dag.nodes[0]].levels
    refused = {
        j: f"{fit.child!r} has no predictive distribution in data set {levels[j]!r}: its "
        f"{'rows' if fit.gaussian is None else counted(int(fit.gaussian.rows[j]), 'row')} do not "
        f"give {counted(of.coef.shape[1], 'coefficient')} and a variance"
        + f" for each configuration of {listed(node.of.switches)}"
        * bool(node.of.switches)
        for fit, node in zip(own.values(), nodes, strict=True)
        if (of := node.of.regressions) is not None
        for j in np.flatnonzero(np.isnan(of.scale2).reshape(len(levels), -1).any(axis=1)).tolist()
    }
    position = {name: i for i, name in enumerate(dag.nodes)}
    return General(
        names=dag.nodes,
        levels=levels,
        prior=n / n.sum(),
        inputs=tuple(position[name] for name in inputs),
        refused=refused,
        nodes=nodes,
        order=tuple(position[name] for name in dag.topological_order()),
        categories={name: fit.categories for name, fit in own.items()},
    )


def engine_of(
    dag: Dag,
    fits: Mapping[str, LocalFit],
    n: Integers,
    inputs: Sequence[str],
    adapted: Collection[Hashable],
    *,
    plugin: bool,
) -> Engine:
    """The engine of a network: the one of linear networks where all its nodes are linear.

    `n` are rows of the data sets, (F,). `plugin` takes estimates for certain, but for the
    coefficients of data sets that are adapted.
    """
    levels = fits[dag.nodes[0]].levels
    certain = [level for level in levels if plugin and level not in adapted]
    made = general_network(dag, fits, n, inputs, certain)
    linear = {node: own for node in dag.nodes if (own := fits[node].gaussian) is not None}
    each = [of for node in made.nodes if (of := node.of.linear) is not None]
    if not len(linear) == len(each) == len(dag.nodes):
        return made
    network = assemble(dag, linear)
    unsure = [
        of.cov.any(axis=(1, 2)) | np.isfinite(of.within_df) | np.isfinite(of.df) for of in each
    ]
    uncertain = uncertain_nodes(network, each, np.any(unsure, axis=0))
    sure = [level for level, yes in zip(levels, uncertain.sets, strict=True) if not yes]
    nodes = locals_of({node: fits[node] for node in dag.nodes}, certain=sure)
    shared = (made.names, levels, made.prior, made.inputs, made.refused, nodes, made.order)
    return Linear(*shared, Algebra(network, uncertain, made.inputs))
