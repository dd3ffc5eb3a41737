"""Scores of nodes and networks on one scale: log-likelihood minus penalty, higher is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import OptionError, nearest
from poolbn.graph.dag import Dag, as_dag
from poolbn.graph.pairs import Pair
from poolbn.moments.groupstats import GroupStats
from poolbn.moments.standardised import standardise
from poolbn.nodes.choosing import as_pooling, check_stats
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.pooling import Complete, Pooling, Separate, check_two
from poolbn.run import parallel

Kind = Literal["bic", "aic", "loglik", "bge"]
_FEWEST, _CHUNK = 3, 64  # families for one thread at a time; with few, no thread waits for others
_STEPS = 50  # what a mixed-effects fit costs more than a regression
_WORTH_THREADS = 1e5  # multiplications, below which threads cost more than they bring

# A child and its sorted parents.
Family = tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class BGe:
    """The posterior score of Gaussian networks (complete pooling), with bnlearn's parameters.

    Attributes:
        iss_mu: imaginary sample size of the prior on the means.
        iss_w: that of the prior on the precision matrix; N + 2 by default.
        nu: prior means by column; the pooled means by default.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> stats = pb.stats(trial, group="clinic")
        >>> round(pb.score(stats, [("age", "bmi")], pooling="complete", score=pb.BGe(iss_mu=2)), 2)
        -4909.24
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

    This is what a search asks, many families at a time: pairs of a child and its sorted parents, as
    places in `stats.names`. Mixed-effects models are fitted with the effort that a score needs;
    `pb.score` uses final fits.

    Attributes:
        stats: the statistics.
        made: scores computed so far.

    Examples:
        >>> import poolbn as pb
        >>> stats = pb.stats(pb.datasets.opt()[["clinic", "age", "bmi"]], group="clinic",
        ...                  missing="drop")
        >>> scores = LocalScores(stats, pooling="complete")
        >>> a, b = scores([(1, (0,)), (1, ())])
        >>> bool(a > b)
        True
    """

    def __init__(
        self,
        stats: GroupStats,
        *,
        pooling: str | Pooling = "partial",
        score: Kind | BGe = "bic",
        threads: int | None = None,
    ) -> None:
        check_stats(stats)
        self.stats = stats
        self.made = 0
        self._pooling = as_pooling(pooling)
        self._score = _as_score(score, self._pooling)
        if not isinstance(self._pooling, Complete | Separate):
            check_two(stats)
        self._threads = parallel.available_cores() if threads is None else threads
        self._data = standardise(stats)
        self._place = [self._data.index[name] for name in stats.names]
        self._memo: dict[Family, float] = {}

    def __call__(self, families: Sequence[Family]) -> NDArray[np.float64]:
        """The score of each family. The same bits for any number of threads."""
        new = [family for family in dict.fromkeys(families) if family not in self._memo]
        if new:
            self.made += len(new)
            self._memo |= zip(new, self._compute(new), strict=True)
        return np.array([self._memo[family] for family in families])

    def at_most(self, families: Sequence[Family]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The score of each family where it is known or cheap, else an upper bound; and which."""
        memo = [self._memo.get(family, math.nan) for family in families]
        new = [family for family, value in zip(families, memo, strict=True) if math.isnan(value)]
        bounds = None
        if new and not isinstance(self._score, BGe):
            price = _price(self._score, self.stats.n_rows)
            bounds = self._pooling.bounds(self._data, self._places(new), price)
        if bounds is None:
            return self(families), np.ones(len(families), dtype=bool)
        values = np.array(memo)
        known = ~np.isnan(values)
        values[~known] = bounds
        return values, known

    def _places(self, families: Sequence[Family]) -> list[tuple[int, list[int]]]:
        place = self._place
        return [(place[child], [place[p] for p in parents]) for child, parents in families]

    def _work(self, families: Sequence[tuple[int, list[int]]]) -> float:
        """About the multiplications that the scores take."""
        once = sum((len(parents) + 1) ** 3 for _, parents in families)
        if isinstance(self._pooling, Complete):
            return once
        steps = 1 if isinstance(self._pooling, Separate) else _STEPS
        return len(self.stats.levels) * steps * once

    def _compute(self, families: Sequence[Family]) -> list[float]:
        if isinstance(self._score, BGe):
            names = self.stats.names
            return [
                self._score(self.stats, names[child], [names[p] for p in parents])
                for child, parents in families
            ]
        price = _price(self._score, self.stats.n_rows)
        places = self._places(families)
        if self._threads == 1 or self._work(places) < _WORTH_THREADS:
            return [float(v) for v in self._pooling.scores(self._data, places, price)]
        step = min(_CHUNK, max(-(-len(places) // (4 * self._threads)), _FEWEST))
        parts = [places[i : i + step] for i in range(0, len(places), step)]
        pooling, data = self._pooling, self._data  # and not what is remembered
        values = parallel.map_fits(
            lambda part: pooling.scores(data, part, price), parts, self._threads
        )
        return [float(value) for part in values for value in part]


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
    _, total = final_fits(stats, as_dag(dag, stats.names), as_pooling(pooling), score)
    return total


def final_fits(
    stats: GroupStats, dag: Dag, pooling: Pooling, score: Kind | BGe
) -> tuple[dict[str, LocalFit], float]:
    """The final fit of each node, and the score of the network."""
    kind = _as_score(score, pooling)
    price = 0.0 if isinstance(kind, BGe) else _price(kind, stats.n_rows)
    standardise(stats)  # once, not in each thread
    fits = dict(
        zip(
            dag.nodes,
            parallel.map_fits(
                lambda node: pooling.fit(stats, node, dag.parents(node), price),
                dag.nodes,
                parallel.available_cores(),
            ),
            strict=True,
        )
    )
    if isinstance(kind, BGe):
        return fits, sum(kind(stats, node, dag.parents(node)) for node in dag.nodes)
    return fits, sum(fit.loglik - price * fit.n_params for fit in fits.values())


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
