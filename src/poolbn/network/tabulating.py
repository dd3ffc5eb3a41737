"""Nodes at every configuration of their discrete parents, and BIF, a text format of such tables."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product

import numpy as np

from poolbn.arrays import Floats
from poolbn.errors import GraphError
from poolbn.graph.dag import Dag
from poolbn.nodes.localfit import LocalFit, level_columns
from poolbn.tables.kinds import has_levels
from poolbn.wording import listed


def probability_table(
    fit: LocalFit, parents: Sequence[str], fits: Mapping[str, LocalFit]
) -> Floats:
    """Probabilities of the levels of a discrete node whose parents are discrete, in this order.

    The data set first, then a dimension for each parent, and the node's own levels last.
    """
    columns, sizes = _grid(parents, fits)
    F, K = len(fit.levels), len(fit.categories)
    found = fit.mean(columns, np.arange(F)[:, None])
    return np.broadcast_to(found, (F, math.prod(sizes), K)).reshape(F, *sizes, K)


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
    fit: LocalFit, parents: Sequence[str], others: Sequence[str], fits: Mapping[str, LocalFit]
) -> tuple[Floats, Floats]:
    """The regressions of a continuous node, one for each configuration of its discrete parents.

    The data set first, then a dimension for each discrete parent, in this order, and last the
    intercept and the coefficients of the others. Residual variances go with the first of these
    dimensions: with data sets, or with all where configurations have their own.
    """
    columns, sizes = _grid(parents, fits)
    F, C = len(fit.levels), math.prod(sizes)
    zero = {name: np.zeros(C) for name in others}
    table, sets = np.empty((F, C, 1 + len(others))), np.arange(F)[:, None]
    table[..., 0] = fit.mean(columns | zero, sets)
    node = fit.predictive(np.ones(F, dtype=bool))
    assert node.regressions is not None
    names = [name for name in fit.columns if name in others] if fit.switches else fit.columns
    strata = np.broadcast_to(node.strata(columns, sets), (F, C if fit.switches else 1))
    table[..., 1:] = node.regressions.coef[strata][..., [1 + names.index(name) for name in others]]
    return table.reshape(F, *sizes, 1 + len(others)), node.regressions.scale2[strata]


def _grid(
    parents: Sequence[str], fits: Mapping[str, LocalFit]
) -> tuple[dict[str, Floats], tuple[int, ...]]:
    """Codes of all configurations, the last parent's changes fastest; and sizes."""
    sizes = tuple(len(fits[name].categories) for name in parents)
    codes = np.indices(sizes).reshape(len(sizes), math.prod(sizes)).astype(float)
    return dict(zip(parents, codes, strict=True)), sizes


_NAMED = 5  # nodes in an error
# Readers split at spaces and punctuation, and know no quotes.
_NOT_WORD = re.compile("[^A-Za-z0-9_]")


def to_bif(dag: Dag, fits: Mapping[str, LocalFit], group: str, prior: Floats) -> str:
    """A network whose nodes are all discrete; the data sets are a node too.

    That node is a parent of the nodes whose tables differ between data sets.
    """
    if others := [node for node in dag.nodes if not has_levels(fits[node].kind)]:
        are = "is" if len(others) == 1 else "are"
        raise GraphError(
            f"BIF is for networks whose columns are all discrete, and {listed(others, _NAMED)} "
            f"{are} not; use to_bnlearn() or to_json()"
        )
    levels, tables = network_tables(dag, fits, group, prior)
    names = _words("the names of nodes", levels)
    words = {name: _words(f"the levels of {name}", own) for name, own in levels.items()}
    renamed = {**names, **{level: w for own in words.values() for level, w in own.items()}}
    lines = [
        *(f"// {str(old)!r} is {new}" for old, new in renamed.items() if str(old) != new),
        "network unknown {",
        "}",
    ]
    for name, own in words.items():
        lines += [
            f"variable {names[name]} {{",
            f"  type discrete [ {len(own)} ] {{ {', '.join(own.values())} }};",
            "}",
        ]
    for name, (parents, table) in tables.items():
        given = [list(words[parent].values()) for parent in parents]
        lines += _probability(names[name], [names[parent] for parent in parents], given, table)
    return "\n".join(lines) + "\n"


def _probability(
    name: str, parents: Sequence[str], given: Sequence[Sequence[str]], table: Floats
) -> list[str]:
    """The block of one node: its table has a dimension for each parent, and its levels last."""
    if not parents:
        return [f"probability ( {name} ) {{", f"  table {_numbers(table)};", "}"]
    rows = table.reshape(-1, table.shape[-1])
    return [
        f"probability ( {name} | {', '.join(parents)} ) {{",
        *(f"  ({', '.join(c)}) {_numbers(p)};" for c, p in zip(product(*given), rows, strict=True)),
        "}",
    ]


def _numbers(values: Floats) -> str:
    return ", ".join(repr(value) for value in values.tolist())


def _words(what: str, names: Iterable[Hashable]) -> dict[Hashable, str]:
    """For each name the word for it: what is no letter or digit becomes "_"."""
    words: dict[Hashable, str] = {}
    taken: dict[str, Hashable] = {}
    for name in names:
        word = _NOT_WORD.sub("_", str(name)) or "_"
        if word in taken:
            raise GraphError(
                f"{what} {taken[word]!r} and {name!r} are both {word!r} in BIF, which has letters, "
                'digits and "_" only; rename one'
            )
        words[name], taken[word] = word, name
    return words
