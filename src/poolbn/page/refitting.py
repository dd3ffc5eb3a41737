"""Nodes of a network fitted again: to other data sets, or to some of them as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poolbn.arrays import Flags
from poolbn.assess.residuals import CELL
from poolbn.moments.data import Data
from poolbn.moments.table import FilledTable, has_gaps
from poolbn.monte_carlo_em import MonteCarloEM
from poolbn.network.network import Network
from poolbn.nodes.auto import Auto, Candidate
from poolbn.nodes.given import INPUT
from poolbn.nodes.localfit import Given, LocalFit
from poolbn.nodes.model import NodeModel
from poolbn.nodes.poolings import Complete, Partial
from poolbn.nodes.tabular import counts_of, fit_tabular
from poolbn.page.fewrows import Grouping, positions
from poolbn.scoring.local import as_score, family_fits

_OTHERS = "(put together)"  # a data set that is several


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
    if isinstance(how, Partial) and data_sets == 1:
        return Complete()
    reml = isinstance(how, Partial) and how.method == "reml"
    chosen = fit.gaussian and fit.gaussian.unbiased and isinstance(how, Candidate)
    if chosen and not reml:
        return Auto(among=(how,)).first(fit.levels)
    model: NodeModel = how
    return model


def in_groups(net: Network, data: Data, grouping: Grouping) -> LocalFit:
    """A node fitted to data sets of which some are one, for all of them."""
    node, parents, together = grouping.child, grouping.parents, grouping.together
    if grouping.rare:
        return _rare(net, data, node)
    made, at = _joined(data, together)
    fit = fitted(net, made, node, parents)
    return (
        fit
        if isinstance(fit.pooling, Given) and fit.pooling != INPUT
        else fit.taken(at, net.levels)
    )


def _joined(data: Data, together: Flags) -> tuple[Data, list[int]]:
    """With these data sets as one, the last; and where in that the rows of each data set are."""
    alone = np.flatnonzero(~together).tolist()
    at = [alone.index(j) if j in alone else len(alone) for j in range(len(together))]
    if not together.any():
        return data, at
    return data.joined(alone, _OTHERS), at


def _rare(net: Network, data: Data, node: str) -> LocalFit:
    """A table of a node without parents, with `CELL` rows for each level that fewer have."""
    how = Complete()
    fit = fit_tabular(data, node, (), how)
    counts = counts_of(data, node, ())
    rows = (counts.mean(axis=0) if counts.ndim > 3 else counts).sum(axis=(0, 1))
    seen = np.where((rows > 0) & (rows < CELL), CELL, rows)
    seen[seen.argmax()] -= seen.sum() - rows.sum()
    p = seen / seen.sum()
    loglik = float((seen[seen > 0] * np.log(p[seen > 0])).sum())
    detail = f"levels that fewer than {CELL} rows have count as if {CELL} had them"
    return replace(
        fit,
        pooling=INPUT if net.fits[node].pooling == INPUT else how,
        detail=detail,
        loglik=loglik,
        population=p[None],
        probabilities=np.tile(p, (len(net.levels), 1, 1)),
    )
