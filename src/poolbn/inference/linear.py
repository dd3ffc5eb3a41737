"""Networks whose nodes are all linear: what the cells of a row say of its others and its data set.

With all parameters given the nodes have a multivariate normal distribution in each data set, and
all answers are normal distributions; with parameters that are uncertain see `uncertain`. With the
data set unknown answers are mixtures over the data sets, weighted by P(F) times the density of the
evidence.

Rows are (n, N), NaN where a cell is missing or not to be used; codes are their known data sets or
-1, (n,), and targets positions of T nodes. All raise `DataError` for a row that cannot come from
any data set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.inference.assembled import Joint, LinearNetwork
from poolbn.inference.conditioning import Chunk, Floats, Given, chunks, condition
from poolbn.inference.mixtures import moments, own_quantiles, quantiles
from poolbn.inference.uncertain import Uncertain, condition_uncertain
from poolbn.nodes.links import density
from poolbn.nodes.predicting import degrees
from poolbn.run.parallel import available_cores, map_threads


@dataclass(frozen=True, eq=False)
class Model:
    """All that inference needs of a network."""

    network: LinearNetwork  # the nodes
    joint: Joint  # their distribution in each data set, all parameters given
    uncertain: Uncertain  # what is uncertain of the nodes
    inputs: tuple[int, ...] = ()  # positions of nodes whose density does not count

    def check(self, codes: NDArray[np.int64]) -> None:
        """Raise where a data set has no distribution; codes as below."""
        refused = self.uncertain.refused
        asked = refused if (codes < 0).any() else refused.keys() & set(codes.tolist())
        for j in sorted(asked):
            raise DataError(
                f"{refused[j]}; learn with ",
                Option("pooling", "partial"),
                " or fewer parents, or ask with ",
                Option("plugin", True),
            )


def log_densities(model: Model, values: Floats, codes: NDArray[np.int64]) -> Floats:
    """The log density of each row, in its data set or where that is not known over all, (n,)."""
    out = np.empty(len(values))

    def work(chunk: Chunk) -> None:
        loglik = given_evidence(model, values, chunk, np.arange(0)).loglik
        if chunk.sets.shape[1] > 1:
            loglik = loglik + _log_prior(model)[:, None]
            top = loglik.max(axis=1, keepdims=True)
            top = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                loglik = top + np.log(np.exp(loglik - top).sum(axis=1, keepdims=True))
        out[chunk.rows] = loglik[:, 0]

    _for_all(model, values, codes, work)
    return out


def data_set_probabilities(model: Model, values: Floats) -> Floats:
    """P(data set | row), (n, F)."""
    out = np.ones((len(values), len(model.joint.levels)))

    def work(chunk: Chunk) -> None:
        given = given_evidence(model, values, chunk, np.arange(0))
        out[chunk.rows] = np.moveaxis(_weights(model, values, chunk, given), 1, 2)

    _for_all(model, values, np.full(len(values), -1), work)
    return out


def predictions(
    model: Model,
    values: Floats,
    codes: NDArray[np.int64],
    targets: NDArray[np.int64],
    interval: float,
) -> Floats:
    """Mean, standard deviation, and bounds of an interval with equal tails, (4, n, T).

    What a row says of the targets itself is evidence.
    """
    out = np.empty((4, len(values), len(targets)))
    tail = (1 - interval) / 2

    def work(chunk: Chunk) -> None:
        known = chunk.sets.shape[1] == 1
        given = given_evidence(model, values, chunk, targets, densities=not known)
        variance = np.maximum(np.diagonal(given.cov, axis1=-2, axis2=-1), 0.0)
        variance = np.broadcast_to(variance, given.mean.shape)  # (P, C, r, T)
        if known:
            mean, sd = given.mean[:, 0], np.sqrt(variance[:, 0])
            reach = own_quantiles(1 - tail, given.df[:, 0]) * sd
            for k, of in enumerate((mean, sd, mean - reach, mean + reach)):
                out[k, chunk.rows] = of
            return
        w = _flat(_weights(model, values, chunk, given))
        for t in range(len(targets)):
            m, v, df = (_flat(of[..., t]) for of in (given.mean, variance, given.df))
            bounds = (quantiles(p, w, m, np.sqrt(v), df) for p in (tail, 1 - tail))
            for k, of in enumerate((*moments(w, m, v), *bounds)):
                out[k, chunk.rows, t] = of.reshape(chunk.rows.shape)

    _for_all(model, values, codes, work)
    return out


def expectations(model: Model, values: Floats, codes: NDArray[np.int64]) -> Floats:
    """All nodes given what is there of the row, (n, N)."""
    out = np.empty_like(values)

    def work(chunk: Chunk) -> None:
        known = chunk.sets.shape[1] == 1
        given = given_evidence(
            model, values, chunk, np.arange(values.shape[1]), densities=not known
        )
        if known:
            out[chunk.rows] = given.mean[:, 0]
        else:
            w = _weights(model, values, chunk, given)
            out[chunk.rows] = np.einsum("pcr,pcrt->prt", w, given.mean)

    _for_all(model, values, codes, work)
    return out


class OneRow(NamedTuple):
    """What evidence says of T nodes in each of the data sets."""

    weights: Floats  # P(data set | evidence), (F,)
    means: Floats  # (F, T)
    covs: Floats  # (F, T, T)
    df: Floats  # degrees of freedom, (F, T)


def one_row(model: Model, evidence: Floats, code: int, targets: NDArray[np.int64]) -> OneRow:
    """The distribution of some nodes given one row, (N,)."""
    every = np.arange(len(model.joint.levels))
    model.check(np.array([code]))
    chunk = Chunk(np.zeros((1, 1), dtype=np.int64), ~np.isnan(evidence)[None], every[None])
    given = given_evidence(model, evidence[None], chunk, targets)
    weights = (every == code).astype(np.float64)
    if code < 0:
        weights = _weights(model, evidence[None], chunk, given)[0, :, 0]
    covs = given.cov[0, :, 0]
    k = np.arange(len(targets))
    covs[:, k, k] = np.maximum(covs[:, k, k], 0.0)
    return OneRow(weights, given.mean[0, :, 0], covs, given.df[0, :, 0])


def _for_all(
    model: Model, values: Floats, codes: NDArray[np.int64], work: Callable[[Chunk], None]
) -> None:
    """Do the work on all rows; each chunk has rows of its own, so threads do not meet."""
    if len(codes):
        model.check(codes)
    pieces = list(chunks(~np.isnan(values), codes, len(model.joint.levels)))
    map_threads(work, pieces, available_cores())


def given_evidence(
    model: Model,
    values: Floats,
    chunk: Chunk,
    targets: NDArray[np.int64],
    densities: bool = True,
) -> Given:
    """What evidence says, without the densities of inputs, which are roots."""
    given = _joint(model, values, chunk, targets, densities)
    for i in model.inputs:
        mean, variance = (
            of[chunk.sets, i][:, :, None] for of in (model.network.intercept, model.network.sigma2)
        )
        x = values[chunk.rows, i][:, None]  # (P, 1, r)
        density = -0.5 * (np.log(2 * np.pi * variance) + (x - mean) ** 2 / variance)
        seen = chunk.observed[:, i, None, None]
        given = replace(given, loglik=given.loglik - np.where(seen, density, 0.0))
    return given


def _joint(
    model: Model, values: Floats, chunk: Chunk, targets: NDArray[np.int64], densities: bool
) -> Given:
    """Log densities (P, C, r), means (P, C, r, T), covariances (P, C, 1 or r, T, T), and df."""
    kinds = model.uncertain.kinds[chunk.sets]  # (P, C)
    found = np.unique(kinds).tolist()
    if len(found) == 1:
        return _of_kind(model, values[chunk.rows], chunk.observed, chunk.sets, targets, densities)
    shape, T = (*kinds.shape, chunk.rows.shape[1]), len(targets)
    out = Given(*(np.empty(shape + more) for more in ((), (T,), (T, T), (T,))))
    for kind in found:
        # A chunk has either one data set for each pattern or the same for all of them.
        p, c = (np.flatnonzero((kinds == kind).any(axis=axis)) for axis in (1, 0))
        at = np.ix_(p, c)
        x, observed = values[chunk.rows[p]], chunk.observed[p]
        own = _of_kind(model, x, observed, chunk.sets[at], targets, densities)
        for name in ("loglik", "mean", "cov", "df"):
            getattr(out, name)[at] = getattr(own, name)
    return out


def _of_kind(
    model: Model,
    x: Floats,
    observed: NDArray[np.bool_],
    sets: NDArray[np.int64],
    targets: NDArray[np.int64],
    densities: bool,
) -> Given:
    """The same in data sets of one kind; x is (P, r, N)."""
    if model.uncertain.sets[sets[0, 0]]:
        return condition_uncertain(model.uncertain, x, observed, sets, targets, densities)
    mean, cov = model.joint.mean[sets], model.joint.cov[sets]
    given = condition(mean, cov, x[:, None], observed[:, None], targets)
    return replace(given, cov=given.cov[:, :, None])


def _flat(of: Floats) -> Floats:
    """(P, C, r) -> (P r, C)."""
    return np.moveaxis(of, 1, 2).reshape(-1, of.shape[1])


def _log_prior(model: Model) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(model.joint.prior)


def _weights(model: Model, values: Floats, chunk: Chunk, given: Given) -> Floats:
    """P(data set | evidence), (P, F, r)."""
    log = given.loglik + _log_prior(model)[:, None]
    top = log.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        row = int(chunk.rows[~np.isfinite(top[:, 0])].min())
        raise impossible(model.joint, values[row], row)
    weights: Floats = np.exp(log - top)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def impossible(joint: Joint, row: Floats, position: int) -> DataError:
    """The error for a row, (N,), that no data set can have produced."""
    variance = np.diagonal(joint.cov, axis1=1, axis2=2)
    fixed = [
        f"{name!r} is {x:.6g} there and {mean[0]:.6g} in the network"
        for name, x, mean, spread in zip(joint.names, row, joint.mean.T, variance.T, strict=True)
        if not spread.any() and not np.isnan(x) and not np.isclose(mean, x).any()
    ]
    why = "; ".join(fixed[:3]) or "in each of them some cells are certain given the others"
    return DataError(
        f"row {position + 1} cannot come from any data set of the network: {why}. Make such cells "
        "missing, or leave the row out"
    )


# Particles: likelihood weighting, the paper's approximate inference. A particle is a row drawn
# parents first, its data set from P(F) where that is not known. Evidence is not drawn: a particle
# is weighted by the density of the evidence given what was drawn above it. With parameters that are
# uncertain each particle has parameters of its own. They are used once, so they need not be drawn:
# the node is drawn from its predictive distribution, Student's t.

_PARTICLES = 2**17  # that are worked on together


@dataclass(frozen=True, eq=False)
class Particles:
    """K particles for each of n rows."""

    sets: NDArray[np.int64]  # the data sets, (n, K)
    values: Floats  # the nodes, (N, n, K)
    log_weights: Floats  # (n, K)


def draw(
    model: Model,
    values: Floats,
    codes: NDArray[np.int64],
    particles: int,
    rng: np.random.Generator,
) -> Particles:
    """Draw K particles for each row."""
    n, N = values.shape
    F = len(model.joint.levels)
    if n:
        model.check(codes)
    sets = np.repeat(codes[:, None], particles, axis=1)
    sets[codes < 0] = rng.choice(F, size=(int((codes < 0).sum()), particles), p=model.joint.prior)
    drawn, log_weights = np.empty((N, n, particles)), np.zeros((n, particles))
    for i in model.network.order:
        mean, scale, df = _distribution(model, i, sets, drawn)
        x = values[:, i, None]
        seen, hidden = ~np.isnan(x[:, 0]), np.isnan(x[:, 0])
        drawn[i] = x
        noise = rng.standard_normal((int(hidden.sum()), particles))
        if df is not None and hidden.any():
            finite = np.isfinite(df[hidden])
            own = df[hidden][finite]
            noise[finite] /= np.sqrt(rng.chisquare(own) / own)
        drawn[i, hidden] = mean[hidden] + scale[hidden] * noise
        if i in model.inputs:  # which say nothing themselves
            continue
        own_df = None if df is None else df[seen]
        log_weights[seen] += density(x[seen], mean[seen], scale[seen], own_df)
    return Particles(sets, drawn, log_weights)


def _distribution(
    model: Model, i: int, sets: NDArray[np.int64], drawn: Floats
) -> tuple[Floats, Floats, Floats | None]:
    """Mean, scale and degrees of freedom of a node for each particle, (n, K) each.

    None for degrees of freedom that are all inf.
    """
    network, of = model.network, model.uncertain.nodes[i]
    parents = network.parents[i]
    mean: Floats = network.intercept[sets, i]
    for parent in parents:
        mean = mean + network.slopes[sets, i, parent] * drawn[parent]
    variance: Floats = network.sigma2[sets, i]
    uncertain = model.uncertain.sets[sets]
    if not uncertain.any():
        return mean, np.sqrt(variance), None
    at = sets[uncertain]
    z = np.stack([np.ones(len(at)), *(drawn[p][uncertain] for p in parents)])
    added, between = (
        np.maximum(np.einsum("am,mab,bm->m", z, C[at], z, optimize=True), 0.0)
        for C in (of.cov, of.between)
    )
    scale2 = of.scale2[at] + added
    variance[uncertain] = scale2
    df = np.full(sets.shape, math.inf)
    df[uncertain] = degrees(scale2, between, of.df[at], of.within_df[at], of.between_df)
    return mean, np.sqrt(variance), None if np.isinf(df).all() else df


def weighted_predictions(
    model: Model,
    values: Floats,
    codes: NDArray[np.int64],
    targets: NDArray[np.int64],
    interval: float,
    *,
    particles: int,
    seed: int,
) -> tuple[Floats, Floats]:
    """Mean, standard deviation, and bounds of an interval, (4, n, T); effective sample sizes, (n,).

    The same seed gives the same numbers, whatever the number of threads.
    """
    out, ess = np.empty((4, len(values), len(targets))), np.empty(len(values))
    tails = [(1 - interval) / 2, (1 + interval) / 2]

    def work(rows: slice, cloud: Particles, weights: Floats) -> None:
        ess[rows] = 1 / (weights**2).sum(axis=1)
        for t, target in enumerate(targets):
            x = cloud.values[target]
            mean = (weights * x).sum(axis=1)
            sd = np.sqrt((weights * (x - mean[:, None]) ** 2).sum(axis=1))
            order = np.argsort(x, axis=1)
            below = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
            at = [np.minimum((below < p).sum(axis=1), particles - 1) for p in tails]
            bounds = (x[np.arange(len(x)), order[np.arange(len(x)), position]] for position in at)
            for k, of in enumerate((mean, sd, *bounds)):
                out[k, rows, t] = of

    _for_all_drawn(model, values, codes, particles, seed, work)
    return out, ess


def weighted_probabilities(
    model: Model, values: Floats, *, particles: int, seed: int
) -> tuple[Floats, Floats]:
    """P(data set | row), (n, F), and effective sample sizes; see `weighted_predictions`."""
    F = len(model.joint.levels)
    out, ess = np.empty((len(values), F)), np.empty(len(values))

    def work(rows: slice, cloud: Particles, weights: Floats) -> None:
        ess[rows] = 1 / (weights**2).sum(axis=1)
        n = len(weights)
        position = np.arange(n)[:, None] * F + cloud.sets
        out[rows] = np.bincount(position.ravel(), weights.ravel(), minlength=n * F).reshape(n, F)

    _for_all_drawn(model, values, np.full(len(values), -1), particles, seed, work)
    return out, ess


def _for_all_drawn(
    model: Model,
    values: Floats,
    codes: NDArray[np.int64],
    particles: int,
    seed: int,
    work: Callable[[slice, Particles, Floats], None],
) -> None:
    """Do the work on all rows, a slice of them at a time, each with a stream of chance of its own.

    The work gets the rows, their particles, and the particles' weights with sum 1, (n, K).
    """
    step = max(1, _PARTICLES // particles)

    def one(start: int) -> None:
        rows = slice(start, start + step)
        rng = np.random.default_rng([seed, start])
        cloud = draw(model, values[rows], codes[rows], particles, rng)
        work(rows, cloud, _shares(model, cloud, values[rows], start))

    map_threads(one, range(0, len(values), step), available_cores())


def _shares(model: Model, cloud: Particles, values: Floats, start: int) -> Floats:
    """With sum 1 in each row, (n, K)."""
    top = cloud.log_weights.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        row = int(np.argmin(np.isfinite(top)))
        raise impossible(model.joint, values[row], start + row)
    weights: Floats = np.exp(cloud.log_weights - top)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def weighted_rows(
    model: Model, evidence: Floats, code: int, particles: int, seed: int
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Rows given evidence by likelihood weighting: data sets (K,), values (K, N), weights (K,)."""
    rng = np.random.default_rng(seed)
    cloud = draw(model, evidence[None], np.array([code]), particles, rng)
    weights = _shares(model, cloud, evidence[None], 0)
    return cloud.sets[0], cloud.values[:, 0].T, weights[0]


def exact_rows(
    model: Model, evidence: Floats, code: int, particles: int, seed: int
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Rows drawn from the distribution given evidence; as `weighted_rows`.

    With uncertain parameters, and evidence below what is missing, it is normal in each data set.
    """
    rng = np.random.default_rng(seed)
    N = len(evidence)
    given = one_row(model, evidence, code, np.arange(N))
    sets = rng.choice(len(given.weights), size=particles, p=given.weights)
    if model.uncertain.sets.any() and _is_closed(model, ~np.isnan(evidence)):
        cloud = draw(model, np.tile(evidence, (particles, 1)), sets, 1, rng)
        return sets, cloud.values[:, :, 0].T, np.full(particles, 1 / particles)
    values = np.empty((particles, N))
    for j in np.unique(sets):
        rows = sets == j
        noise = rng.standard_normal((int(rows.sum()), N))
        values[rows] = given.means[j] + noise @ _root(given.covs[j])
    seen = ~np.isnan(evidence)
    values[:, seen] = evidence[seen]
    return sets, values, np.full(particles, 1 / particles)


def _is_closed(model: Model, seen: NDArray[np.bool_]) -> bool:
    """Whether the parents of all evidence are evidence: then what is drawn below is exact."""
    parents = model.network.parents
    return all(seen[list(parents[i])].all() for i in np.flatnonzero(seen))


def _root(cov: Floats) -> Floats:
    """R with R'R = cov, which may be singular; on correlations, so that units do not matter."""
    sd = np.sqrt(np.diagonal(cov))
    scale = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(cov / np.outer(scale, scale))
    root: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))).T * scale
    return root


def sample_rows(model: Model, n: int, code: int, seed: int) -> tuple[NDArray[np.int64], Floats]:
    """Rows of the network: data sets (n,), by P(F) where the code is -1, and values (n, N)."""
    nothing = np.full((n, len(model.network.names)), np.nan)
    drawn = draw(model, nothing, np.full(n, code), 1, np.random.default_rng(seed))
    return drawn.sets[:, 0], drawn.values[:, :, 0].T
