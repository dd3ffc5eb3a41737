"""Networks whose nodes are all linear: what the cells of a row say of its others and its data set.

With all parameters given the nodes have a multivariate normal distribution in each data set, and
all answers are normal distributions; with uncertain parameters see `conditioning`. With the data
set unknown answers are mixtures over the data sets, weighted by P(F) times the density of the
evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from poolbn.arrays import Flags
from poolbn.errors import DataError
from poolbn.inference.assembled import LinearNetwork
from poolbn.inference.conditioning import (
    Chunk,
    Conditioned,
    Uncertain,
    chunks,
    condition,
    condition_uncertain,
)
from poolbn.inference.engine import Answer, Asked, Drawn, Effort, Engine, HeldOut, Judged, log_sum
from poolbn.inference.marginals import Marginal, Mixture, Points, own_quantiles
from poolbn.inference.posterior import Posterior
from poolbn.nodes.predicting import Floats, Integers
from poolbn.run.parallel import available_cores, map_threads

_PARTICLES = 2**17  # that are worked on together
_PREDICTIONS = 2**21  # of cells from the others of their rows, in an array for all data sets


class _Centred(Mixture):
    """Normal and t distributions; the intervals of one alone have its mean in the middle."""

    def interval(self, tail: float) -> tuple[Floats, Floats]:
        """What has a probability of `tail` below it, and above it."""
        if self.weights.shape[1] > 1:
            return super().interval(tail)
        reach = own_quantiles(1 - tail, self.df[:, 0]) * self.sds[:, 0]
        return self.means[:, 0] - reach, self.means[:, 0] + reach


@dataclass(frozen=True, eq=False)
class _Exact(Answer):
    """By algebra."""

    targets: Sequence[int]
    given: Conditioned  # (P, C, r, ...), the rows being P r

    def marginal(self, target: int) -> Marginal:
        """Normal or t, or a mixture of these."""
        t = self.targets.index(target)
        variance = np.maximum(self.given.cov[..., t, t], 0.0)
        shape = self.given.mean.shape[:-1]
        parts = (self.given.mean[..., t], np.broadcast_to(variance, shape), self.given.df[..., t])
        return _Centred(self.weights, *map(_flat, parts))


@dataclass(frozen=True, eq=False)
class _Weighted(Answer):
    """By likelihood weighting."""

    values: Floats  # of K particles for each row, (r, K, N)
    shares: Floats  # their weights with sum 1, (r, K)

    def marginal(self, target: int) -> Marginal:
        """Draws with weights."""
        return Points(self.values[..., target], self.shares)


@dataclass(frozen=True, eq=False)
class Algebra:
    """What is known of the nodes of a linear network, and which of them have no density."""

    network: LinearNetwork
    uncertain: Uncertain  # what is uncertain of the nodes
    inputs: Collection[int]

    def given(
        self, x: Floats, chunk: Chunk, targets: Sequence[int], *, densities: bool = True
    ) -> Conditioned:
        """What evidence says, without the densities of inputs, which are roots.

        Without `densities` these say only what is impossible.
        """
        given = self._given(x, chunk, np.array(targets, dtype=np.int64), densities)
        for i in self.inputs:
            mean, variance = (
                of[chunk.sets, i][:, :, None]
                for of in (self.network.intercept, self.network.sigma2)
            )
            own = x[chunk.rows, i][:, None]  # (P, 1, r)
            density = -0.5 * (np.log(2 * np.pi * variance) + (own - mean) ** 2 / variance)
            seen = chunk.observed[:, i, None, None]
            given = replace(given, loglik=given.loglik - np.where(seen, density, 0.0))
        return given

    def _given(self, x: Floats, chunk: Chunk, targets: Integers, densities: bool) -> Conditioned:
        """Log densities (P, C, r), means (P, C, r, T), covariances (P, C, 1 or r, T, T), and df."""
        kinds = self.uncertain.kinds[chunk.sets]  # (P, C)
        found = np.unique(kinds).tolist()
        asked = (targets, densities)
        if len(found) == 1:
            return self._of_kind(x[chunk.rows], chunk.observed, chunk.sets, *asked)
        shape, T = (*kinds.shape, chunk.rows.shape[1]), len(targets)
        out = Conditioned(*(np.empty(shape + more) for more in ((), (T,), (T, T), (T,))))
        for kind in found:
            # A chunk has either one data set for each pattern or the same for all of them.
            p, c = (np.flatnonzero((kinds == kind).any(axis=axis)) for axis in (1, 0))
            at = np.ix_(p, c)
            own = self._of_kind(x[chunk.rows[p]], chunk.observed[p], chunk.sets[at], *asked)
            for name in ("loglik", "mean", "cov", "df"):
                getattr(out, name)[at] = getattr(own, name)
        return out

    def _of_kind(
        self, x: Floats, observed: Flags, sets: Integers, targets: Integers, densities: bool
    ) -> Conditioned:
        """The same in data sets of one kind; x is (P, r, N)."""
        if self.uncertain.sets[sets[0, 0]]:
            return condition_uncertain(self.uncertain, x, observed, sets, targets, densities)
        mean, cov = self.network.mean[sets], self.network.cov[sets]
        given = condition(mean, cov, x[:, None], observed[:, None], targets)
        return replace(given, cov=given.cov[:, :, None])


@dataclass(frozen=True, eq=False)
class Linear(Engine):
    """All nodes are linear: exact algebra, or particles."""

    algebra: Algebra

    def answers(self, of: Asked, work: Callable[[Answer], None]) -> None:
        """Each chunk has rows of its own, so threads do not meet."""
        if of.effort.method == "lw":
            self._weighted(of.x, of.codes, of.effort, work)
            return
        x, targets = of.x, of.targets

        def one(chunk: Chunk) -> None:
            known = chunk.sets.shape[1] == 1
            given = self.algebra.given(x, chunk, targets, densities=not known)
            rows, n = chunk.rows.ravel(), chunk.rows.size
            weights = np.ones((n, 1)) if known else _flat(self._weights(x, chunk, given))
            work(_Exact(rows, weights, np.full(n, math.inf), targets, given))

        self._for_all(x, of.codes, one)

    def log_densities(self, x: Floats, codes: Integers) -> Floats:
        """The log density of each row."""
        out = np.empty(len(x))

        def work(chunk: Chunk) -> None:
            loglik = self.algebra.given(x, chunk, []).loglik
            if chunk.sets.shape[1] > 1:
                loglik = log_sum(loglik + self.log_prior()[:, None], axis=1)
            out[chunk.rows] = loglik[:, 0]

        self._for_all(x, codes, work)
        return out

    def posterior(self, evidence: Floats, code: int, targets: Sequence[int]) -> Posterior:
        """The distribution of targets given one row."""
        every = np.arange(len(self.levels))
        self.check(np.array([code]))
        chunk = Chunk(np.zeros((1, 1), dtype=np.int64), ~np.isnan(evidence)[None], every[None])
        given = self.algebra.given(evidence[None], chunk, targets)
        weights = (every == code).astype(np.float64)
        if code < 0:
            weights = self._weights(evidence[None], chunk, given)[0, :, 0]
        means, covs, df = given.mean[0, :, 0], given.cov[0, :, 0], given.df[0, :, 0]
        k = np.arange(len(targets))
        covs[:, k, k] = np.maximum(covs[:, k, k], 0.0)
        each = zip(means.T, covs[:, k, k].T, df.T, strict=True)
        return Posterior(
            targets=tuple(self.names[t] for t in targets),
            levels=self.levels,
            weights=weights,
            marginals=tuple(Mixture(weights[None], *(of[None] for of in own)) for own in each),
            categories={},
            means=means,
            covs=covs,
            df=df,
        )

    def conditional_rows(self, evidence: Floats, code: int, effort: Effort) -> Drawn:
        """Rows drawn given one; without particles it is normal in each data set.

        With uncertain parameters, evidence whose parents are evidence leaves what is drawn below it
        exact.
        """
        if effort.method == "lw":
            return super().conditional_rows(evidence, code, effort)
        K, N = effort.particles, len(evidence)
        rng, equal = np.random.default_rng(effort.seed), np.full(K, 1 / K)
        given = self.posterior(evidence, code, range(N))
        sets = rng.choice(len(given.weights), size=K, p=given.weights)
        seen = ~np.isnan(evidence)
        closed = all(seen[[*self.nodes[i].parents]].all() for i in np.flatnonzero(seen).tolist())
        if closed and self.algebra.uncertain.sets.any():
            return Drawn(sets, self.drawn(np.tile(evidence, (K, 1)), sets, rng)[1], equal)
        values = np.empty((K, N))
        for j in np.unique(sets):
            rows = sets == j
            noise = rng.standard_normal((int(rows.sum()), N))
            values[rows] = given.means[j] + noise @ _root(given.covs[j])
        values[:, seen] = evidence[seen]
        return Drawn(sets, values, equal)

    def judged(self, rows: HeldOut, codes: Integers, n: Integers, *, guess: bool) -> Judged:
        """Densities of rows, and which data sets they come from."""
        log = self.log_densities(rows.x, codes)
        return Judged(log, self.data_sets(rows.x, Effort())[0].argmax(axis=1) if guess else None)

    def squares(self, rows: HeldOut, codes: Integers, n: Integers) -> tuple[Floats, Floats]:
        """Squared errors of each node given all others."""
        N = len(self.names)
        known, unknown = np.zeros(N), np.zeros(N)
        step = max(1, _PREDICTIONS // (N * len(self.prior)))
        for start in range(0, len(rows.x), step):
            x = rows.x[start : start + step]
            found = leave_out(self.algebra.network, self.prior, x, codes[start : start + step])
            known += ((found.known - x) ** 2).sum(axis=0)
            unknown += ((found.unknown - x) ** 2).sum(axis=0)
        return known, unknown

    # Algebra

    def _for_all(self, x: Floats, codes: Integers, work: Callable[[Chunk], None]) -> None:
        if len(codes):
            self.check(codes)
        map_threads(work, list(chunks(~np.isnan(x), codes, len(self.levels))), available_cores())

    def _weights(self, x: Floats, chunk: Chunk, given: Conditioned) -> Floats:
        """P(data set | evidence), (P, F, r)."""
        return self.shares(given.loglik + self.log_prior()[:, None], x, chunk.rows)

    def impossible(self, row: Floats, code: int, position: int) -> DataError:
        """The error for a row that no data set can have produced."""
        network = self.algebra.network
        mean, variance = network.mean, np.diagonal(network.cov, axis1=1, axis2=2)
        fixed = [
            f"{name!r} is {x:.6g} there and {own[0]:.6g} in the network"
            for name, x, own, spread in zip(self.names, row, mean.T, variance.T, strict=True)
            if not spread.any() and not np.isnan(x) and not np.isclose(own, x).any()
        ]
        why = "; ".join(fixed[:3]) or "in each of them some cells are certain given the others"
        return DataError(
            f"row {position + 1} cannot come from any data set of the network: {why}. Make such "
            "cells missing, or leave the row out"
        )

    def _weighted(
        self, x: Floats, codes: Integers, effort: Effort, work: Callable[[Answer], None]
    ) -> None:
        """Answers by likelihood weighting, the paper's approximate inference.

        A particle is a row drawn parents first, weighted by the density of the evidence given what
        was drawn above it. Each slice of rows has random numbers of its own, so the same seed gives
        the same numbers, whatever the number of threads.
        """
        K, F = effort.particles, len(self.levels)
        step = max(1, _PARTICLES // K)

        def one(start: int) -> None:
            rows = np.arange(start, min(start + step, len(x)))
            rng = np.random.default_rng([effort.seed, start])
            each = np.repeat(rows, K)
            sets, values, log = self.drawn(x[each], codes[each], rng)
            shares = self.shares(log.reshape(-1, K), x, rows)
            at = (each - start) * F + sets
            weights = np.bincount(at, shares.ravel(), minlength=len(rows) * F)
            of_sets = weights.astype(np.float64).reshape(-1, F)
            ess = 1 / (shares**2).sum(axis=1)
            work(_Weighted(rows, of_sets, ess, values.reshape(len(rows), K, -1), shares))

        map_threads(one, range(0, len(x), step), available_cores())


@dataclass(frozen=True, eq=False)
class LeaveOut:
    """Of linear networks, posterior means of every cell given the rest of its row."""

    known: Floats  # with the row's data set known, (n, N)
    unknown: Floats  # with it unknown, (n, N)
    data_set: Integers  # the position of the most probable one given all cells, (n,)


def leave_out(linear: LinearNetwork, prior: Floats, values: Floats, codes: Integers) -> LeaveOut:
    """Predict each cell from the rest of its row, in closed form, estimates taken for certain.

    With residuals e = (I - B) x - intercepts of variances s, the precision matrix of a data set is
    Lambda = (I - B)' diag(1 / s) (I - B), and x_i less its prediction is g_i / Lambda_ii, g = (I -
    B)' (e / s). Nothing is inverted. P(F | the rest) comes from the density of the whole row over
    that of x_i given the rest.

    Rows have no missing values, (n, N); residual variances are positive, and no data set is
    adapted.
    """
    B, s = np.eye(values.shape[1]) - linear.slopes, linear.sigma2[:, None]  # I - B
    e = values @ np.swapaxes(B, 1, 2) - linear.intercept[:, None]  # (F, n, N)
    precision = (B**2 / linear.sigma2[:, :, None]).sum(axis=1)[:, None]  # diagonals of Lambda
    miss = (e / s) @ B / precision  # cell less prediction
    with np.errstate(divide="ignore"):
        loglik = np.log(prior)[:, None] - 0.5 * ((e**2 / s) + np.log(s)).sum(axis=2)
    log_weight = loglik[..., None] - 0.5 * (np.log(precision) - precision * miss**2)
    known = values - miss[codes, np.arange(len(codes))]
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    unknown = values - (weight * miss).sum(axis=0)
    return LeaveOut(known, unknown, loglik.argmax(axis=0))


def _flat(of: Floats) -> Floats:
    """(P, C, r) -> (P r, C)."""
    return np.moveaxis(of, 1, 2).reshape(-1, of.shape[1])


def _root(cov: Floats) -> Floats:
    """R with R'R = cov, which may be singular; on correlations, so that units do not matter."""
    sd = np.sqrt(np.diagonal(cov))
    scale = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(cov / np.outer(scale, scale))
    root: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))).T * scale
    return root
