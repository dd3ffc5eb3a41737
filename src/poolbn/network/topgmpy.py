"""Networks as objects of pgmpy, which is imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from poolbn.arrays import Floats
from poolbn.errors import DataError, GraphError, MissingPackageError
from poolbn.graph.dag import Dag
from poolbn.network.exporting import names_of_data_sets
from poolbn.network.tabulating import network_tables
from poolbn.nodes.localfit import LocalFit
from poolbn.tables.cells import find_level
from poolbn.tables.kinds import has_levels, is_normal
from poolbn.wording import listed


def to_pgmpy(
    dag: Dag, fits: Mapping[str, LocalFit], group: str, prior: Floats, data_set: Hashable
) -> Any:
    """A discrete network of pgmpy, or a linear Gaussian one, with coefficients of one data set."""
    kinds = {node: fits[node].kind for node in dag.nodes}
    if all(map(has_levels, kinds.values())):
        if data_set is not None:
            raise DataError(
                "the data sets are a node of a discrete network; leave data_set out, and give "
                f"pgmpy the evidence {{{group!r}: {data_set!r}}}"
            )
        return _discrete(dag, fits, group, prior)
    others = [node for node, kind in kinds.items() if not is_normal(kind)]
    if others:
        are = "is" if len(others) == 1 else "are"
        raise GraphError(
            "pgmpy has networks whose columns are all discrete or all continuous, and of these "
            f"{listed(others, 5)} {are} not continuous; use to_bnlearn() or to_json()"
        )
    return _gaussian(dag, fits, data_set)


def _discrete(dag: Dag, fits: Mapping[str, LocalFit], group: str, prior: Floats) -> Any:
    model = _part("models", "DiscreteBayesianNetwork")
    factor = _part("factors.discrete", "TabularCPD")
    levels, tables = network_tables(dag, fits, group, prior)
    states = {node: [str(level) for level in own] for node, own in levels.items()}
    states[next(iter(states))] = names_of_data_sets(dag, fits, ())
    made = model([(parent, node) for node, (parents, _) in tables.items() for parent in parents])
    made.add_nodes_from(list(tables))
    for node, (parents, table) in tables.items():
        size = [len(states[parent]) for parent in parents]
        named = {name: states[name] for name in (node, *parents)}
        # A row for each level, a column for each configuration, the last parent changes fastest.
        values = table.reshape(-1, table.shape[-1]).T
        given = {"evidence": list(parents), "evidence_card": size} if parents else {}
        made.add_cpds(factor(node, len(states[node]), values.tolist(), **given, state_names=named))
    return made


def _gaussian(dag: Dag, fits: Mapping[str, LocalFit], data_set: Hashable) -> Any:
    levels = next(iter(fits.values())).levels
    j = 0
    own = {node: linear for node, fit in fits.items() if (linear := fit.gaussian) is not None}
    if data_set is not None:
        j = find_level(data_set, levels)
    elif any(np.ptp(f.coef, axis=0).any() or np.ptp(f.sigma2) for f in own.values()):
        raise DataError(
            "data sets have coefficients of their own, and a linear Gaussian network of pgmpy has "
            f"those of one: name it, as in net.to_pgmpy({levels[0]!r})"
        )
    model = _part("models", "LinearGaussianBayesianNetwork")
    factor = _part("factors.continuous", "LinearGaussianCPD")
    made = model(list(dag.arcs))
    made.add_nodes_from(list(dag.nodes))
    for node, fit in own.items():
        parents = list(dag.parents(node))
        beta = [fit.coef[j, 0], *(fit.coef[j, fit.position(parent)] for parent in parents)]
        sd = float(np.sqrt(fit.sigma2[j]))
        made.add_cpds(factor(node, [float(b) for b in beta], sd, evidence=parents))
    return made


def _part(module: str, name: str) -> Any:
    """Something of pgmpy."""
    try:
        return getattr(importlib.import_module(f"pgmpy.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise MissingPackageError(
            f"pgmpy 1.0 or later is needed for this, and {name} is not there: "
            "pip install 'pgmpy>=1.0'"
        ) from error
