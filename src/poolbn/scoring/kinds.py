"""Scores of tables with columns of all kinds: each node by the model of its kind, on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import DataError, GraphError, Option
from poolbn.graph.dag import Dag
from poolbn.moments.standardised import Family, standardise
from poolbn.moments.table import Table, indicators
from poolbn.nodes.model import Choice
from poolbn.nodes.tabular import counts_of, tabular_scores
from poolbn.scoring.criteria import InformationCriterion


def node_scores(
    table: Table, dag: Dag, pooling: Choice, score: InformationCriterion
) -> NDArray[np.float64]:
    """The score of each node.

    A continuous node may have parents of all kinds: a discrete one is a block of indicators. A
    discrete node has a table of probabilities, given discrete parents.

    Raises:
        DataError: there is a count, which has no score.
        GraphError: a discrete node has a parent that is not.
    """
    _check_kinds(table, dag)
    at = {name: k for k, name in enumerate(table.names)}
    families = [(at[node], tuple(at[p] for p in dag.parents(node))) for node in dag.nodes]
    continuous = [m for m, (child, _) in enumerate(families) if not table.categories[child]]
    discrete = [m for m, (child, _) in enumerate(families) if table.categories[child]]
    data = standardise(table.stats())
    own = _expanded(table, [families[m] for m in continuous])
    model = pooling.chosen(data, own)
    gaussian = score.on(data, model)
    values = np.zeros(len(families))
    if continuous:
        values[continuous] = gaussian.scores(own, final=True)
    if discrete:
        counts = [counts_of(table, dag.nodes[m], dag.parents(dag.nodes[m])) for m in discrete]
        values[discrete] = tabular_scores(counts, model, gaussian.penalty.each)
    return values


def _check_kinds(table: Table, dag: Dag) -> None:
    kind = dict(zip(table.names, table.kinds, strict=True))
    for name in table.names:
        if kind[name] == "count":
            raise DataError(
                f"column {name!r} is a count, and counts have no score; make it continuous with ",
                Option("kinds", {name: "continuous"}),
            )
    for parent, child in dag.arcs:
        if kind[child] == "discrete" != kind[parent]:
            raise GraphError(
                f"{child!r} is discrete and its parent {parent!r} is not; leave that arc out, or "
                "turn it round"
            )


def _expanded(table: Table, families: Sequence[Family]) -> list[Family]:
    """Families of the columns of numbers that a table is made of."""
    ends = np.cumsum([0, *(indicators(table, k) for k in range(len(table.names)))]).tolist()
    columns = [range(first, end) for first, end in pairwise(ends)]
    return [
        (columns[child][0], tuple(k for p in parents for k in columns[p]))
        for child, parents in families
    ]
