"""A network fitted again to other data: the same graph, each node with its own pooling."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from poolbn.graph.dag import Dag
from poolbn.moments.data import Data, only_sums
from poolbn.moments.table import FilledTable, has_gaps
from poolbn.monte_carlo_em import MonteCarloEM
from poolbn.network.network import Network
from poolbn.nodes.auto import Auto, Candidate
from poolbn.nodes.given import INPUT
from poolbn.nodes.localfit import Given, LocalFit
from poolbn.nodes.model import NodeModel
from poolbn.nodes.poolings import Complete, Partial
from poolbn.scoring.local import as_score, family_fits


def positions(names: Sequence[Hashable], some: Sequence[Hashable]) -> list[int]:
    """Where some names are."""
    return [names.index(name) for name in some]


def completed(net: Network, data: Data) -> Data:
    """Rows with missing cells completed by the graph; anything else as it is."""
    if not has_gaps(data):
        return data

    def learned(filled: FilledTable, before: Network | None) -> Network:
        fits = {node: fitted(net, filled, node) for node in net.dag.nodes}
        return replace(net, fits=fits, score=math.fsum(fit.bic for fit in fits.values()))

    return MonteCarloEM.of(data).completed(learned)


def fitted(net: Network, data: Data, node: str, parents: Sequence[str] | None = None) -> LocalFit:
    """A node of a network, fitted to other data, with its own pooling."""
    old = net.fits[node]
    if isinstance(old.pooling, Given) and old.pooling != INPUT:
        return old
    own = net.dag.parents(node) if parents is None else parents
    family = (data.names.index(node), tuple(positions(data.names, own)))
    (fit,) = family_fits(data, [family], _model(old, len(data.levels)), as_score("bic"))
    return fit


def _model(fit: LocalFit, data_sets: int) -> NodeModel:
    """The pooling of a fit, as `auto` has it where that chose it."""
    how: Any = fit.pooling if hasattr(fit.pooling, "logliks") else Partial()
    if isinstance(how, Candidate):  # the form that it has is not chosen anew
        how = replace(how, continuous="conditional" if fit.switches else "additive")
    if isinstance(how, Partial) and data_sets == 1:
        return Complete(continuous=how.continuous)
    reml = isinstance(how, Partial) and how.method == "reml"
    chosen = fit.gaussian and fit.gaussian.unbiased and isinstance(how, Candidate)
    if chosen and not reml:
        return Auto(among=(how,)).first(fit.levels)
    model: NodeModel = how
    return model


def having(net: Network, levels: Sequence[Hashable]) -> Network:
    """The network with some of its data sets, fitted as it was."""
    at = positions(net.levels, levels)
    return replace(
        net,
        fits={node: fit.taken(at, tuple(levels)) for node, fit in net.fits.items()},
        n=net.n[at],
        missing=None
        if net.missing is None
        else net.missing[[j for j in at if j < len(net.missing)]],
        adapted=tuple(level for level in net.adapted if level in levels),
    )


class Refitted(NamedTuple):
    """A network of some data sets, and what it was fitted to."""

    net: Network
    data: Data
    gone: tuple[str, ...]  # columns in which these data sets do not differ


def fitted_to_some(net: Network, data: Data, kept: Sequence[Hashable]) -> Refitted | None:
    """The graph of a network, fitted to these data sets of its data alone.

    None where they differ in no column.
    """
    rest = data.data_sets(positions(data.levels, kept), kept)
    gone = [n for n, levels in zip(rest.names, rest.categories, strict=True) if len(levels) == 1]
    nodes = [node for node in net.dag.nodes if node not in gone]
    if not nodes:
        return None
    rest = rest.select(nodes) if gone or rest.names != tuple(nodes) else rest
    arcs = [arc for arc in net.dag.arcs if not set(arc) & set(gone)]
    some, columns = having(net, kept), positions(net.dag.nodes, nodes)
    old = replace(
        some,
        dag=Dag(nodes, arcs),
        fits={node: some.fits[node] for node in nodes},
        missing=None if some.missing is None else some.missing[:, columns],
        score=math.nan,
        stats=only_sums(rest),
    )
    made = completed(old, rest)
    fits = {node: fitted(old, made, node) for node in nodes}
    return Refitted(replace(old, fits=fits), rest, tuple(gone))
