"""`arc_posterior`: from data to the probability of every arc."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import get_args

from poolbn.errors import GraphError, Option, OptionError, check_option, check_whole
from poolbn.graph.constraints import Allowed, Constraints
from poolbn.graph.dag import Dag
from poolbn.learning import as_plan
from poolbn.moments.checks import warn
from poolbn.moments.data import Data
from poolbn.moments.standardised import check_digits, standardise
from poolbn.moments.table import gathered
from poolbn.network.network import Network
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.model import Choice
from poolbn.posteriors.chains import MCMC, begun, walked
from poolbn.posteriors.families import all_families, components, possible, usual_parents
from poolbn.posteriors.posterior import (
    ArcPosterior,
    Known,
    PosteriorInterrupted,
    assembled,
    tell_sweeps,
)
from poolbn.posteriors.summing import MOST, Prior, summed
from poolbn.posteriors.walking import METHODS
from poolbn.run.progress import Progress
from poolbn.scoring.local import Kind, LocalScores, Score, family_fits, name_of
from poolbn.tables.kinds import ColumnKind
from poolbn.tables.missing import Missing
from poolbn.wording import counted


def arc_posterior(
    source: object,
    *,
    group: str | None = None,
    pooling: str | Choice = "partial",
    score: Kind | Score = "bic",
    max_parents: int | None = None,
    constraints: Constraints | None = None,
    prior: Prior = "orders",
    method: MCMC | None = None,
    columns: Iterable[str] | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    inputs: Iterable[str] = (),
    missing: Missing = "error",
) -> ArcPosterior:
    """How sure is an arc: its probability over all networks, not only in the best one.

    All families, of a node and up to `max_parents` parents, are scored; exp(score) stands for their
    marginal likelihood. Probabilities are exact for up to 20 columns, with the prior "dags" for up
    to 17. Columns count for that if they can be on a cycle together: inputs, and columns that tiers
    keep apart, do not. Beyond that they come from chains, over orders or over layers of graphs.

    Args:
        source: anything that `pb.learn` takes.
        group: the column that says which data set a row came from.
        pooling: "complete", "none", "partial", "auto", or an object. "auto" is the pooling of the
            network that `pb.learn` finds.
        score: as for `pb.learn`. "bge", "bde" and "k2" are marginal likelihoods, "bic" and "bic-h"
            stand for them.
        max_parents: of any node. By default as many as the constraints say, or as give up to
            50,000 families, and two at least.
        constraints: a `pb.Constraints(...)`.
        prior: "orders": all pairs of an order of the columns and a graph that goes along it are as
            probable a priori, so that a graph counts as often as there are orders that it goes
            along. "dags": all graphs are.
        method: None, or chains where sums could be taken too, or for longer ones:
            `pb.OrderMCMC(...)` with the prior "orders", `pb.PartitionMCMC(...)` with "dags".
        columns: the columns to keep; None for all but `group`.
        kinds: of some columns, see `pb.table`.
        inputs: columns that may be parents but never children, see `pb.stats`.
        missing: what to do with missing cells, "error", "drop" or "em", see `pb.stats`.

    Raises:
        PosteriorInterrupted: on Ctrl-C while chains run; it holds what they give so far.
        DataError: the source cannot be used, or a column has no likelihood.
        OptionError: an option has a value that it does not take.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]]
        >>> in_time = pb.Constraints(tiers=[["age"], ["gestation_days"], ["birthweight_g"]])
        >>> post = pb.arc_posterior(trial.dropna(), group="clinic", constraints=in_time)
        >>> round(post.probability("gestation_days", "birthweight_g"), 4)
        1.0
        >>> round(post.probability("age", "gestation_days"), 2)
        0.04
    """
    check_option("prior", prior, get_args(Prior))
    check_whole(max_parents=max_parents)
    if not isinstance(method, METHODS[prior] | None):
        raise OptionError(
            Option("method", method), f" must be a pb.{METHODS[prior].__name__} with ",
            Option("prior", prior), ", or None for exact probabilities",
        )  # fmt: skip
    data = gathered(
        source, group=group, columns=columns, kinds=kinds, missing=missing, inputs=inputs
    )
    plan = as_plan(pooling, score, None, constraints)
    allowed = plan.allowed(data)
    wished = plan.constraints.max_parents if max_parents is None else max_parents
    most = _most_parents(allowed, wished, data.names)
    wanted = [_way(len(nodes), prior, method) for nodes in components(possible(allowed))]
    check_digits(standardise(data.stats()))
    warn(data, plan.known)
    first = plan.pooling.first(data.levels)
    model = first if first == plan.pooling else plan.found(data)[1]
    with Progress() as progress:
        scores = LocalScores(data, pooling=model, score=plan.score)
        families = all_families(scores, allowed, most, partial(_tell_scores, progress))
        going = [
            summed(own, prior) if chains is None else begun(own, allowed.required, chains)
            for own, chains in zip(families, wanted, strict=True)
        ]
        sweeps = max((chains.sweeps for chains in wanted if chains is not None), default=0)
        tell = partial(tell_sweeps, progress)
        parts, stopped = walked(going, sweeps, len(data.names), tell)
    fit = partial(family_fits, data, model=model, score=plan.score)
    build = partial(_network, data, name_of(plan.score))
    found = assembled(data.names, parts, prior, most, Known(fit, allowed, build))
    if stopped:
        raise PosteriorInterrupted(found)
    return found


def _network(data: Data, score: str, dag: Dag, fits: Mapping[str, LocalFit]) -> Network:
    """A network of one of many graphs; its score does not matter."""
    return Network(dag, dict(fits), math.nan, group=data.group, n=data.n, score_kind=score)


def _way(nodes: int, prior: Prior, method: MCMC | None) -> MCMC | None:
    """None for exact sums over nodes that can be on a cycle together; else the chains."""
    if nodes == 1 or (method is None and nodes <= MOST[prior]):
        return None
    return method or METHODS[prior]()


def _most_parents(allowed: Allowed, max_parents: int | None, names: Sequence[str]) -> int:
    """Parents that a node may have."""
    into = possible(allowed)
    usual = usual_parents(into) if max_parents is None else max_parents
    needed = allowed.required.sum(axis=0)
    most = min(usual, allowed.max_parents, len(names) - 1)
    if max_parents is None:
        return max(most, int(needed.max(initial=0)))
    if (needed > most).any():
        c = int((needed > most).argmax())
        raise GraphError(
            f"{counted(int(needed[c]), 'arc')} into {names[c]!r} must be there, and ",
            Option("max_parents", most),
            "; require fewer or allow more",
        )
    return most


def _tell_scores(progress: Progress, done: int, of: int) -> None:
    progress(lambda: f"scoring: {done:,} of {of:,} families")
