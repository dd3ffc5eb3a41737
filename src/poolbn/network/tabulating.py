"""Nodes at every configuration of their discrete parents: what other programs keep of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from poolbn.arrays import Floats, Integers
from poolbn.graph.dag import Dag
from poolbn.nodes.localfit import LinearFit, LocalFit, level_columns


def probability_table(
    fit: LocalFit, parents: Sequence[str], fits: Mapping[str, LocalFit]
) -> Floats:
    """Probabilities of the levels of a discrete node whose parents are discrete, in this order.

    The data set first, then a dimension for each parent, and the node's own levels last.
    """
    columns, sizes = _grid(parents, fits)
    each = [fit.mean(columns, _all(j, sizes)) for j in range(len(fit.levels))]
    return np.reshape(each, (len(each), *sizes, len(fit.categories)))


def network_tables(
    dag: Dag, fits: Mapping[str, LocalFit], group: str, prior: Floats
) -> tuple[dict[str, Sequence[Hashable]], dict[str, tuple[tuple[str, ...], Floats]]]:
    """A network whose nodes are all discrete as tables; the data sets are a node too, the first.

    That node is called after the group column, and a parent of the nodes whose tables differ
    between data sets. The levels of each node; and its parents, with a table that has a dimension
    for each of them and the node's own levels last.
    """
    data_set = str(level_columns([group], dag.nodes)[0])
    levels: dict[str, Sequence[Hashable]] = {data_set: fits[dag.nodes[0]].levels}
    tables: dict[str, tuple[tuple[str, ...], Floats]] = {data_set: ((), prior)}
    for node in dag.nodes:
        fit = fits[node]
        levels[node] = fit.categories
        table = probability_table(fit, dag.parents(node), fits)
        same = bool((table == table[:1]).all())
        parents = dag.parents(node) if same else (data_set, *dag.parents(node))
        tables[node] = (parents, table[0] if same else table)
    return levels, tables


def regression_table(
    fit: LinearFit, parents: Sequence[str], others: Sequence[str], fits: Mapping[str, LocalFit]
) -> Floats:
    """The regressions of a continuous node, one for each configuration of its discrete parents.

    The data set first, then a dimension for each discrete parent, in this order, and last the
    intercept and the coefficients of the others.
    """
    columns, sizes = _grid(parents, fits)
    zero = {name: np.zeros(int(np.prod(sizes))) for name in others}
    slopes = fit.coef[:, [fit.position(name) for name in others]]  # (F, p)
    each = []
    for j, own in enumerate(slopes):
        intercept = fit.mean(columns | zero, _all(j, sizes))
        each.append(np.column_stack([intercept, np.tile(own, (len(intercept), 1))]))
    return np.reshape(each, (len(each), *sizes, 1 + len(others)))


def _grid(
    parents: Sequence[str], fits: Mapping[str, LocalFit]
) -> tuple[dict[str, Floats], tuple[int, ...]]:
    """Codes of all configurations, the last parent's changes fastest; and sizes."""
    sizes = tuple(len(fits[name].categories) for name in parents)
    codes = np.indices(sizes).reshape(len(sizes), int(np.prod(sizes))).astype(float)
    return dict(zip(parents, codes, strict=True)), sizes


def _all(j: int, sizes: tuple[int, ...]) -> Integers:
    """One data set for all configurations."""
    return np.full(int(np.prod(sizes)), j, dtype=np.int64)
