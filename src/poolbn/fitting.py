"""`fit`: the network of a graph that the user brings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace

from poolbn.arguments import is_list
from poolbn.errors import DataError, GraphError, Option, left_out, nearest
from poolbn.findings import FindingKind
from poolbn.graph.constraints import Constraints
from poolbn.graph.dag import as_dag, drawing_of
from poolbn.graph.grammars import EXAMPLES, Drawing, read_text
from poolbn.graph.pairs import check_names
from poolbn.learning import GIVEN, Plan, checked
from poolbn.moments.cases import list_of_names
from poolbn.moments.checks import warn
from poolbn.moments.data import is_data
from poolbn.moments.table import gathered
from poolbn.moments.targets import Targets
from poolbn.network.network import Network, load
from poolbn.nodes.choosing import as_pooling
from poolbn.nodes.model import Choice
from poolbn.run.compiling import prefetch
from poolbn.scoring.local import Kind, Score, as_score
from poolbn.tables.columns import own_columns
from poolbn.tables.data import as_parts
from poolbn.tables.grouping import Group, columns_in, nested
from poolbn.tables.kinds import Kinds
from poolbn.tables.missing import Missing
from poolbn.writing import open_regular

# A text that ends like this, and has nothing that a graph's text has, is the path of a file.
_FILE = re.compile(r"[^\n\[\]{}~]+\.(json|bif|net|dot|gv|dag|dagitty|lav|lavaan|txt)", re.I)


def brought(graph: object) -> Drawing:
    """What a graph says, whatever it is: see `fit`.

    Examples:
        >>> brought("dag { age -> bmi }").nodes, brought([("age", "bmi")]).arcs
        (('age', 'bmi'), (('age', 'bmi'),))
    """
    path = os.fspath(graph) if isinstance(graph, os.PathLike) else graph
    if isinstance(path, str) and (isinstance(graph, os.PathLike) or _FILE.fullmatch(path)):
        return _read(path)
    found = drawing_of(graph)
    if found is not None:
        return found
    if not is_list(graph):
        raise GraphError(
            "a graph is a pb.Dag, arcs as pairs of names, a dict of parents, a network, a file, or "
            f"a text such as {EXAMPLES}; got {type(graph).__name__}"
        )
    arcs = list(graph)
    for arc in arcs:
        if not isinstance(arc, tuple | list) or len(arc) != 2:
            raise GraphError(
                f"an arc is a pair of names such as ('age', 'bmi'), got {arc!r}; for nodes without "
                "arcs give pb.Dag(['age', 'bmi'])"
            )
        check_names(arc)
    nodes: dict[str, None] = dict.fromkeys(name for arc in arcs for name in arc)
    return Drawing(tuple(nodes), tuple(map(tuple, arcs)), complete=False)


def _read(path: str) -> Drawing:
    """The graph of a file."""
    if path.lower().endswith(".json"):
        dag = load(path).dag
        return Drawing(dag.nodes, dag.arcs)
    with open_regular(path) as file:
        content = file.read()
    try:
        return read_text(content.decode())
    except UnicodeDecodeError as error:
        raise GraphError(f"{path!r} is not text in UTF-8: {error}") from error
    except GraphError as error:
        raise GraphError(f"{path!r}: ", *error.args) from None


def without_group(drawing: Drawing, source: object, group: Group) -> Drawing:
    """The graph without the node that says the data sets, which may be a cause of all others."""
    name = source.group if is_data(source) else group
    if isinstance(name, list | tuple):
        name = nested(source, as_parts(source), name)[0]
    if not isinstance(name, str) or name not in drawing.nodes:
        return drawing
    if any(child == name for _, child in drawing.arcs):
        raise GraphError(
            f"the graph has an arc into {name!r}, which says the data sets; leave the node and its "
            "arcs out of the graph: the pooling says what differs between data sets"
        )
    note = f"{name!r} says the data sets, and is left out of the graph: the pooling says what "
    return replace(
        drawing,
        nodes=tuple(node for node in drawing.nodes if node != name),
        arcs=tuple(arc for arc in drawing.arcs if arc[0] != name),
        notes=(*drawing.notes, f"{note}differs between data sets"),
    )


def columns_for(
    drawing: Drawing,
    source: object,
    group: Group = None,
    columns: Iterable[str] | None = None,
) -> list[str]:
    """The columns to read for a graph, in the order of the table; the errors say the remedy.

    Args:
        drawing: the graph.
        source: the table.
        group: its group column, or labels.
        columns: those that are chosen; None for the graph's.
    """
    if is_data(source):
        known = list(source.names)
    else:
        parts = as_parts(source)
        groups = columns_in(source, parts, group)
        known = [column for part in parts for column in own_columns(part, *groups)]
        known = list(dict.fromkeys(known))
    for node in drawing.nodes:
        if node in known:
            continue
        if node in drawing.unobserved:
            raise GraphError(
                f"the graph marks {node!r} as unobserved, and the table has no such column; a "
                "network has observed columns only: leave it out of the graph, and know that "
                "effects between nodes that it is a cause of are confounded"
            )
        raise GraphError(
            f"the graph has the node {node!r}, and the table has no such column; rename one of the "
            f"two, or leave the node out of the graph{nearest(node, known)}"
        )
    if columns is None and not drawing.nodes:
        raise GraphError(f"the graph has no nodes; write it as {EXAMPLES}, or name columns")
    if columns is None:
        return [column for column in known if column in drawing.nodes]
    chosen = list(list_of_names("columns", columns))
    if lacking := [node for node in drawing.nodes if node not in chosen]:
        raise DataError(
            f"the graph has the node {lacking[0]!r}, which is not in ",
            Option("columns"),
            "; add it, or leave the option out to use the graph's nodes",
        )
    more = [column for column in chosen if column not in drawing.nodes]
    if more and drawing.complete:
        raise DataError(
            f"the graph has no node {more[0]!r}; name it in the graph as a node without arcs, or ",
            left_out(more[0]),
        )
    return chosen


def fit(
    graph: object,
    data: object,
    *,
    group: Group = None,
    pooling: str | Choice = "partial",
    score: Kind | Score = "bic",
    columns: Iterable[str] | None = None,
    kinds: Kinds | None = None,
    inputs: Iterable[str] = (),
    interventions: Targets | None = None,
    missing: Missing = "error",
) -> Network:
    """Fit the network of a graph that you bring; nothing is searched for.

    The network is like one that `pb.learn` finds: it has effects, predictions, a report, a file.
    `net.test_graph()` tests the graph.

    Columns of the table that the graph does not have are left out, as in lavaan and piecewiseSEM;
    bnlearn's `bn.fit` refuses them. Rows with missing values there count. A node that the table
    does not have is an error.

    Args:
        graph: a `pb.Dag`; arcs as pairs (parent, child); a dict with the parents of each node; a
            text as for `pb.Dag.from_string`, such as "[age][bmi|age]", "dag { age -> bmi }" or
            "bmi ~ age"; a graph of networkx or igraph, or a network of pgmpy; a `pb.Cpdag`, of
            which one of its graphs is taken; another network; or the path of a file with a text,
            of a BIF or Hugin .net file, or of a saved network.
        data: anything that `pb.learn` takes.
        group: the column that says which data set a row came from, as for `pb.learn`.
        pooling: "complete", "none", "partial", "auto", or an object.
        score: what `net.score` is, as for `pb.learn`.
        columns: the columns to use; None for the graph's nodes. Where the graph is given as arcs,
            a dict or formulas, columns that it does not name are nodes without arcs.
        kinds: of some columns, such as {"visits": "count", "grade": "discrete"}, see `pb.table`.
        inputs: nodes without parents that get no distribution, such as an arm.
        interventions: nodes that were set in some data sets, see `pb.stats`.
        missing: what to do with missing cells, "error", "drop" or "em", see `pb.stats`.

    Raises:
        GraphError: the graph cannot be read, has a cycle, or a node that the table does not have.
        DataError: the table, or the choice of its columns, cannot be used.

    Warns:
        GraphWarning: the graph says something that is not used, or leaves directions open.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "gestation_days", "birthweight_g"]].dropna()
        >>> net = pb.fit("dag { age -> birthweight_g <- gestation_days }", trial, group="clinic")
        >>> net.dag
        Dag('[age][gestation_days][birthweight_g|age:gestation_days]')
        >>> net.effects()[["parent", "effect", "lower", "upper"]].round(1)
                   parent  effect  lower  upper
        0             age     7.9    1.2   14.6
        1  gestation_days    24.3   21.1   27.6
    """
    drawing = without_group(brought(graph), data, group)
    plan = Plan(as_pooling(pooling), as_score(score), GIVEN, Constraints())
    prefetch("shrinking", *plan.pooling.kernels)
    chosen = columns_for(drawing, data, group, columns)
    read = gathered(
        data, group=group, columns=chosen, kinds=kinds, missing=missing, inputs=inputs,
        interventions=interventions,
    )  # fmt: skip
    dag = as_dag(drawing, read.names)
    plan = plan.given(dag)
    em = checked(plan, read)
    warn(read, [FindingKind.NEEDS_ROWS])
    net = plan.learned(read) if em is None else plan.network(*plan.completed(em))
    return replace(net, fitted_to=None if net.stats is not None else read)
