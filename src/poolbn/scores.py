"""Scores of nodes and networks on one scale: log-likelihood minus penalty, higher is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn import parallel
from poolbn.errors import OptionError, nearest
from poolbn.graph import Dag, as_dag
from poolbn.pairs import Pair
from poolbn.pooling import Complete, Pooling, as_pooling, check_stats, fit_node
from poolbn.standard import standardise
from poolbn.suffstats import GroupStats

Kind = Literal["bic", "aic", "loglik", "bge"]
_CHUNK = 64  # families for one thread at a time


@dataclass(frozen=True)
class BGe:
    """The posterior score of Gaussian networks (complete pooling), with bnlearn's parameters.

    Attributes:
        iss_mu: imaginary sample size of the prior on the means.
        iss_w: that of the prior on the precision matrix; N + 2 by default.
        nu: prior means by column; the pooled means by default.
    """

    iss_mu: float = 1.0
    iss_w: float | None = None
    nu: Mapping[str, float] | None = None

    def __call__(self, stats: GroupStats, child: str, parents: Sequence[str]) -> float:
        """Log marginal likelihood of the child given its parents.

        Geiger and Heckerman (2002) with the correction of Kuipers, Moffa and Heckerman (2014): the
        marginal likelihood of the family over that of the parents.
        """
        N = len(stats.names)
        iss_w = N + 2 if self.iss_w is None else self.iss_w
        if not (self.iss_mu > 0 and iss_w > N + 1):
            raise OptionError(
                f"BGe needs iss_mu > 0 and iss_w > {N + 1} (the columns and one), not "
                f"{self.iss_mu} and {iss_w}"
            )
        family = stats.family(child, parents)
        n = float(family.n.sum())
        mean = family.n @ family.mean / n
        between = family.mean - mean
        R = family.scatter.sum(axis=0) + (between * family.n[:, None]).T @ between
        t = self.iss_mu * (iss_w - N - 1) / (self.iss_mu + 1)
        R[np.diag_indices_from(R)] += t
        if self.nu is not None:
            if absent := [name for name in (*parents, child) if name not in self.nu]:
                raise OptionError(f"BGe's nu lacks a prior mean for {absent[0]!r}")
            off = mean - np.array([self.nu[name] for name in (*parents, child)])
            R += n * self.iss_mu / (n + self.iss_mu) * np.outer(off, off)
        # The determinants of family over parents leave one pivot; those of T one power of t.
        p = len(parents)
        pivots = np.log(np.diagonal(np.linalg.cholesky(R)))
        before = iss_w - N + p
        return float(
            0.5 * math.log(self.iss_mu / (n + self.iss_mu))
            + math.lgamma((n + before + 1) / 2)
            - math.lgamma((before + 1) / 2)
            - 0.5 * n * math.log(math.pi)
            + 0.5 * (before + 1 + p) * math.log(t)
            - (n + before + 1) * pivots.sum()
            + (n + before) * pivots[:-1].sum()
        )


class LocalScores:
    """Local scores of one table under one pooling, remembered by child and set of parents.

    This is what a search asks, many families at a time; mixed-effects models are fitted with the
    effort that a score needs. `pb.score` uses final fits.

    Examples:
        >>> import poolbn as pb
        >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
        ...                  missing="drop")
        >>> scores = LocalScores(stats, pooling="complete")
        >>> a, b = scores([("bmi", ["age"]), ("bmi", [])])
        >>> bool(a > b)
        True
    """

    def __init__(
        self, stats: GroupStats, *, pooling: str | Pooling = "partial", score: Kind | BGe = "bic"
    ) -> None:
        check_stats(stats)
        self._stats = stats
        self._names = set(stats.names)
        self._pooling = as_pooling(pooling)
        self._score = _as_score(score, self._pooling)
        self._memo: dict[tuple[str, tuple[str, ...]], float] = {}

    def __call__(
        self, families: Iterable[tuple[str, Sequence[str]]], threads: int | None = None
    ) -> NDArray[np.float64]:
        """The score of each (child, parents). The same bits for any number of threads."""
        keys = [(child, tuple(sorted(parents))) for child, parents in families]
        new = [key for key in dict.fromkeys(keys) if key not in self._memo]
        for child, parents in new:
            family = {child, *parents}
            if len(family) <= len(parents) or not family <= self._names:
                self._stats.family(child, parents)  # says what is wrong
        self._memo |= zip(new, self._compute(new, threads), strict=True)
        return np.array([self._memo[key] for key in keys])

    def _compute(
        self, families: Sequence[tuple[str, tuple[str, ...]]], threads: int | None
    ) -> list[float]:
        if isinstance(self._score, BGe):
            return [self._score(self._stats, *family) for family in families]
        data = standardise(self._stats)
        F = len(self._stats.levels)
        places = [(data.index[c], [data.index[p] for p in pa]) for c, pa in families]
        parts = [places[i : i + _CHUNK] for i in range(0, len(places), _CHUNK)]
        logliks = parallel.map_threads(
            lambda part: self._pooling.log_likelihoods(data, part), parts, threads
        )
        price = _price(self._score, self._stats.n_rows)
        return [
            float(loglik) - price * self._pooling.n_params(len(parents), F)
            for loglik, (_, parents) in zip(
                np.concatenate([np.empty(0), *logliks]), families, strict=True
            )
        ]


def score(
    stats: GroupStats,
    dag: Dag | str | Iterable[Pair],
    *,
    pooling: str | Pooling = "partial",
    score: Kind | BGe = "bic",
) -> float:
    """Score a network: the sum of its nodes' scores. Higher is better.

    Args:
        stats: the statistics, from `pb.stats`.
        dag: a `pb.Dag`, arcs as pairs (parent, child), or a bnlearn model string.
        pooling: "complete", "none", "partial", or an object.
        score: "bic", "aic", "loglik", or for complete pooling "bge" or `pb.BGe(...)`.

    Examples:
        >>> import poolbn as pb
        >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
        ...                  missing="drop")
        >>> pb.score(stats, [("age", "bmi")]) > pb.score(stats, [])
        True
    """
    check_stats(stats)
    graph = as_dag(dag, stats.names)
    how = as_pooling(pooling)
    kind = _as_score(score, how)
    if isinstance(kind, BGe):
        return sum(kind(stats, node, graph.parents(node)) for node in graph.nodes)
    price = _price(kind, stats.n_rows)
    fits = [fit_node(stats, node, graph.parents(node), pooling=how) for node in graph.nodes]
    return sum(fit.loglik - price * fit.n_params for fit in fits)


def _as_score(value: object, pooling: Pooling) -> Kind | BGe:
    if value == "bge":
        value = BGe()
    if isinstance(value, BGe):
        if not isinstance(pooling, Complete):
            raise OptionError(
                f"BGe is a score for complete pooling, not for {pooling!r}; use score='bic'"
            )
        return value
    for kind in get_args(Kind):
        if value == kind:
            return cast("Kind", kind)
    raise OptionError(f"score={value!r} is not a score{nearest(value, get_args(Kind))}")


def _price(kind: Kind, n: int) -> float:
    """What a parameter costs."""
    return {"loglik": 0.0, "aic": 1.0, "bic": math.log(n) / 2}[kind]
