"""Sampling: rows from a network, and likelihood weighting, the paper's approximate inference.

A particle is a row drawn parents first, its data set from P(F) where that is not known. Evidence is
not drawn: a particle is weighted by the density of the evidence given what was drawn above it.

With parameters that are uncertain each particle has parameters of its own. They are used once, so
they need not be drawn: the node is drawn from its predictive distribution, Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolbn.inference.conditioning import Floats
from poolbn.inference.infer import Model, impossible, posterior
from poolbn.nodes.links import density
from poolbn.nodes.predicting import degrees
from poolbn.run.parallel import available_cores, map_threads

_PARTICLES = 2**17  # that are worked on together


@dataclass(frozen=True, eq=False)
class Particles:
    """K particles for each of n rows.

    Attributes:
        sets: the data sets, (n, K).
        values: the nodes, (N, n, K).
        log_weights: (n, K).
    """

    sets: NDArray[np.int64]
    values: Floats
    log_weights: Floats


def draw(
    model: Model,
    values: Floats,
    codes: NDArray[np.int64],
    particles: int,
    rng: np.random.Generator,
) -> Particles:
    """Draw particles.

    Args:
        model: the network.
        values: the rows, NaN where there is no evidence, (n, N).
        codes: the known data set of each row, or -1, (n,).
        particles: K, for each row.
        rng: where chance comes from.
    """
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
) -> Floats:
    """Mean, standard deviation, and bounds of an interval with equal tails, (4, n, T).

    Args:
        model: the network.
        values: the rows, NaN where there is no evidence, (n, N).
        codes: the known data set of each row, or -1, (n,).
        targets: positions of the T nodes to predict.
        interval: the probability of the interval.
        particles: for each row.
        seed: of chance; the same one gives the same numbers, whatever the number of threads.

    Raises:
        DataError: all particles of a row have weight 0.
    """
    out = np.empty((4, len(values), len(targets)))
    tails = [(1 - interval) / 2, (1 + interval) / 2]

    def work(rows: slice, cloud: Particles, weights: Floats) -> None:
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

    _for_all(model, values, codes, particles, seed, work)
    return out


def weighted_probabilities(model: Model, values: Floats, *, particles: int, seed: int) -> Floats:
    """P(data set | row) from particles, (n, F); arguments as for `weighted_predictions`."""
    F = len(model.joint.levels)
    out = np.empty((len(values), F))

    def work(rows: slice, cloud: Particles, weights: Floats) -> None:
        n = len(weights)
        position = np.arange(n)[:, None] * F + cloud.sets
        out[rows] = np.bincount(position.ravel(), weights.ravel(), minlength=n * F).reshape(n, F)

    _for_all(model, values, np.full(len(values), -1), particles, seed, work)
    return out


def _for_all(
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
        work(rows, cloud, _weights(model, cloud, values[rows], start))

    map_threads(one, range(0, len(values), step), available_cores())


def _weights(model: Model, cloud: Particles, values: Floats, start: int) -> Floats:
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
    """Rows given evidence by likelihood weighting: data sets (K,), values (K, N), weights (K,).

    Args:
        model: the network.
        evidence: NaN where there is none, (N,).
        code: the known data set, or -1.
        particles: K.
        seed: of chance.

    Raises:
        DataError: all particles have weight 0.
    """
    rng = np.random.default_rng(seed)
    cloud = draw(model, evidence[None], np.array([code]), particles, rng)
    weights = _weights(model, cloud, evidence[None], 0)
    return cloud.sets[0], cloud.values[:, 0].T, weights[0]


def exact_rows(
    model: Model, evidence: Floats, code: int, particles: int, seed: int
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Rows drawn from the distribution given evidence; as `weighted_rows`.

    With uncertain parameters, and evidence below what is missing, it is normal in each data set.
    """
    rng = np.random.default_rng(seed)
    N = len(evidence)
    given = posterior(model, evidence, code, np.arange(N))
    sets = rng.choice(len(given.levels), size=particles, p=given.weights)
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
    """Rows of the network: data sets (n,) and values (n, N).

    Args:
        model: the network.
        n: how many.
        code: the data set of all of them, or -1 for data sets by P(F).
        seed: of chance.
    """
    nothing = np.full((n, len(model.network.names)), np.nan)
    drawn = draw(model, nothing, np.full(n, code), 1, np.random.default_rng(seed))
    return drawn.sets[:, 0], drawn.values[:, :, 0].T
