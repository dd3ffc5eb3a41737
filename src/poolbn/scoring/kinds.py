"""Scores of tables with columns of all kinds: each node by the model of its kind, on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from poolbn.graph.dag import Dag
from poolbn.moments.standardised import Family, standardise
from poolbn.moments.table import Table, indicators
from poolbn.nodes.model import Choice
from poolbn.nodes.regression import fit_regression
from poolbn.nodes.tabular import counts_of, tabular_scores
from poolbn.scoring.criteria import InformationCriterion


def node_scores(
    table: Table, dag: Dag, pooling: Choice, score: InformationCriterion
) -> NDArray[np.float64]:
    """The score of each node.

    A discrete parent is a block of indicators. A discrete node with discrete parents has a table of
    probabilities, with others a logistic regression; a count has a log-linear one.
    """
    at = {name: k for k, name in enumerate(table.names)}
    families = [(at[node], tuple(at[p] for p in dag.parents(node))) for node in dag.nodes]
    gaussian: list[int] = []
    tables: list[int] = []
    others: list[int] = []
    for m, family in enumerate(families):
        kinds = [table.kinds[k] for k in (family[0], *family[1])]
        tabular = all(kind == "discrete" for kind in kinds)
        (gaussian if kinds[0] == "continuous" else tables if tabular else others).append(m)
    data = standardise(table.stats())
    own = _expanded(table, [families[m] for m in gaussian])
    model = pooling.chosen(data, own)
    scores = score.on(data, model)
    each = scores.penalty.each
    values = np.zeros(len(families))
    if gaussian:
        values[gaussian] = scores.scores(own, final=True)
    if tables:
        counts = [counts_of(table, dag.nodes[m], dag.parents(dag.nodes[m])) for m in tables]
        values[tables] = tabular_scores(counts, model, each)
    for m in others:
        fit = fit_regression(table, dag.nodes[m], dag.parents(dag.nodes[m]), model, each)
        values[m] = fit.loglik - float(np.array(fit.counts) @ each)
    return values


def _expanded(table: Table, families: Sequence[Family]) -> list[Family]:
    """Families of the columns of numbers that a table is made of."""
    ends = np.cumsum([0, *(indicators(table, k) for k in range(len(table.names)))]).tolist()
    columns = [range(first, end) for first, end in pairwise(ends)]
    return [
        (columns[child][0], tuple(k for p in parents for k in columns[p]))
        for child, parents in families
    ]
