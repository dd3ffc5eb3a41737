"""Exact inference: what the cells of a row say about its other cells and about its data set.

With all parameters given the nodes have a multivariate normal distribution in each data set, and
all answers are normal distributions; with parameters that are uncertain see `uncertain`. With the
data set unknown answers are mixtures over the data sets, weighted by P(F) times the density of the
evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, Option
from poolbn.inference.assembled import Joint, LinearNetwork
from poolbn.inference.conditioning import Chunk, Floats, Given, chunks, condition
from poolbn.inference.mixtures import Posterior, moments, own_quantiles, quantiles
from poolbn.inference.uncertain import Uncertain, condition_uncertain
from poolbn.run.parallel import available_cores, map_threads


@dataclass(frozen=True, eq=False)
class Model:
    """All that inference needs of a network.

    Attributes:
        network: the nodes.
        joint: their distribution in each data set, all parameters given.
        uncertain: what is uncertain of the nodes.
        inputs: positions of nodes without a distribution: no density of theirs counts.
    """

    network: LinearNetwork
    joint: Joint
    uncertain: Uncertain
    inputs: tuple[int, ...] = ()

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
    """The log density of each row, in its data set or where that is not known over all, (n,).

    Args:
        model: the network.
        values: the rows, NaN where a cell is missing, (n, N).
        codes: the known data set of each row, or -1, (n,).
    """
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
    """P(data set | row), (n, F).

    Args:
        model: the network.
        values: the rows, NaN where a cell is missing, (n, N).

    Raises:
        DataError: a row cannot come from any data set.
    """
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

    Args:
        model: the network.
        values: the rows, NaN where a cell is missing or not to be used, (n, N).
        codes: the known data set of each row, or -1, (n,).
        targets: positions of the T nodes to predict; what a row says of them itself is evidence.
        interval: the probability of the interval.

    Raises:
        DataError: a row cannot come from any data set.
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
    """All nodes given what is there of the row, (n, N).

    Args:
        model: the network.
        values: the rows, NaN where a cell is missing, (n, N).
        codes: the known data set of each row, or -1, (n,).

    Raises:
        DataError: a row cannot come from any data set.
    """
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


def posterior(model: Model, evidence: Floats, code: int, targets: NDArray[np.int64]) -> Posterior:
    """The distribution of some nodes given one row.

    Args:
        model: the network.
        evidence: the row, NaN where there is no evidence, (N,).
        code: the known data set, or -1.
        targets: positions of the T nodes.

    Raises:
        DataError: the evidence cannot come from any data set.
    """
    joint = model.joint
    every = np.arange(len(joint.levels))
    model.check(np.array([code]))
    chunk = Chunk(np.zeros((1, 1), dtype=np.int64), ~np.isnan(evidence)[None], every[None])
    given = given_evidence(model, evidence[None], chunk, targets)
    weights = (every == code).astype(np.float64)
    if code < 0:
        weights = _weights(model, evidence[None], chunk, given)[0, :, 0]
    covs = given.cov[0, :, 0]
    k = np.arange(len(targets))
    covs[:, k, k] = np.maximum(covs[:, k, k], 0.0)
    names = tuple(joint.names[t] for t in targets)
    return Posterior(names, joint.levels, weights, given.mean[0, :, 0], covs, given.df[0, :, 0])


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
    """The error for a row that no data set can have produced.

    Args:
        joint: the distribution.
        row: its cells, (N,).
        position: where it is, from 0.
    """
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
