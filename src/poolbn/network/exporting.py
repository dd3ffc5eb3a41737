"""Networks in other formats: graphs that carry the effects, and an R script for bnlearn."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import GraphError
from poolbn.graph.dag import Dag
from poolbn.graph.formats import dot_arc, dot_name, write_dot
from poolbn.network.effects import COLUMNS, effects_table
from poolbn.nodes.localfit import INTERCEPT, GaussianFit, level_columns

_SHARED = ("effect", "se", "between_sd", "opposite")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_NOT_R = re.compile("[\0\ud800-\udfff]")
_R_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

Attributes = dict[str, str | float]


def node_attributes(dag: Dag, fits: Mapping[str, GaussianFit]) -> list[Attributes]:
    """What is known of each node, in the order of the nodes."""
    return [
        {"pooling": str(fits[node].pooling), "status": str(fits[node].status)} for node in dag.nodes
    ]


def arc_attributes(
    dag: Dag, fits: Mapping[str, GaussianFit], names: Sequence[str]
) -> list[Attributes]:
    """The effect of each arc, in the order of the arcs; numbers that do not exist are left out.

    Args:
        dag: the graph.
        fits: its nodes.
        names: what to call the coefficients in the F data sets.
    """
    table = effects_table(dag, fits)
    columns = [*(COLUMNS.index(name) for name in _SHARED), *range(len(COLUMNS), table.shape[1])]
    return [
        {
            name: float(value)
            for name, value in zip([*_SHARED, *names], row, strict=True)
            if not math.isnan(value)
        }
        for row in table.iloc[:, columns].itertuples(index=False, name=None)
    ]


def names_of_data_sets(
    dag: Dag, fits: Mapping[str, GaussianFit], used: Iterable[str] = _SHARED
) -> list[str]:
    """Texts for the data sets, different from each other and from the names in use."""
    levels = fits[dag.nodes[0]].levels
    texts = [str(level) for level in levels]
    unlike = [
        repr(level) if texts.count(text) > 1 else text
        for level, text in zip(levels, texts, strict=True)
    ]
    return [str(name) for name in level_columns(unlike, used)]


# Graphs


def to_networkx(dag: Dag, fits: Mapping[str, GaussianFit]) -> Any:
    """A networkx.DiGraph."""
    graph = dag.to_networkx()
    for node, attributes in zip(dag.nodes, node_attributes(dag, fits), strict=True):
        graph.nodes[node].update(attributes)
    arcs = arc_attributes(dag, fits, names_of_data_sets(dag, fits))
    for arc, attributes in zip(dag.arcs, arcs, strict=True):
        graph.edges[arc].update(attributes)
    return graph


def to_igraph(dag: Dag, fits: Mapping[str, GaussianFit]) -> Any:
    """An igraph.Graph; an attribute that an arc does not have is None."""
    graph = dag.to_igraph()
    arcs = arc_attributes(dag, fits, names_of_data_sets(dag, fits))
    for sequence, attributes in ((graph.vs, node_attributes(dag, fits)), (graph.es, arcs)):
        for name in _keys(attributes):
            sequence[name] = [own.get(name) for own in attributes]
    return graph


def to_dot(dag: Dag, fits: Mapping[str, GaussianFit]) -> str:
    """A Graphviz digraph; the effect is also the label of an arc.

    Data sets are marked as such, because Graphviz would take a name such as "color" for a command.
    """
    lines = [
        dot_name(node) + _dot_attributes(attributes)
        for node, attributes in zip(dag.nodes, node_attributes(dag, fits), strict=True)
    ]
    names = [f"{name} (data set)" for name in names_of_data_sets(dag, fits, ())]
    for arc, attributes in zip(dag.arcs, arc_attributes(dag, fits, names), strict=True):
        label: Attributes = {"label": f"{attributes['effect']:.4g}"}
        lines.append(dot_arc(arc) + _dot_attributes(label | attributes))
    return write_dot(lines)


def _dot_attributes(attributes: Attributes) -> str:
    pairs = (f"{dot_name(name)}={dot_name(str(value))}" for name, value in attributes.items())
    return f" [{', '.join(pairs)}]"


def to_graphml(dag: Dag, fits: Mapping[str, GaussianFit]) -> str:
    """GraphML, as networkx writes it; the identifier of a node is its name.

    Raises:
        GraphError: a name has a character that XML cannot hold.
        MissingPackageError: networkx is not installed.
    """
    graph = to_networkx(dag, fits)
    for name in [*dag.nodes, *_keys(graph.edges.values())]:
        if strange := _NOT_XML.search(name):
            raise GraphError(
                f"{name!r} contains {strange[0]!r}, which XML cannot hold; rename it, or use "
                "to_dot() or to_networkx()"
            )
    from networkx import GraphMLWriter

    return f"{GraphMLWriter(graph=graph)}\n"


def _keys(attributes: Iterable[Attributes]) -> list[str]:
    """The names of all attributes, each once."""
    return list(dict.fromkeys(name for own in attributes for name in own))


# R


def to_bnlearn(
    dag: Dag, fits: Mapping[str, GaussianFit], group: str, prior: NDArray[np.float64]
) -> str:
    """An R script that makes `fitted`, a conditional Gaussian network of bnlearn.

    The data sets are a discrete parent of every node. bnlearn knows coefficients by their position:
    those of parents in the order in which its graph has them, which the script looks up, and one
    column for each level of the discrete parent.
    """
    data_set = str(level_columns([group], dag.nodes)[0])
    arcs = [(data_set, node) for node in dag.nodes] + list(dag.arcs)
    names = names_of_data_sets(dag, fits, ())
    lines = [
        "library(bnlearn)",
        "",
        f"net <- empty.graph({_texts([data_set, *dag.nodes])})",
        f"arcs(net) <- matrix({_texts([name for arc in arcs for name in arc], width=2)},",
        '  ncol = 2, byrow = TRUE, dimnames = list(NULL, c("from", "to")))',
        "",
        "dist <- list()",
        f"dist[[{_text(data_set)}]] <- matrix({_numbers(prior)},",
        f"  nrow = 1, dimnames = list(NULL, {_texts(names)}))",
        "# Coefficients of one data set after the other, and residual standard deviations.",
        "node <- function(name, terms, coef, sd) {",
        "  coef <- matrix(coef, nrow = length(terms), dimnames = list(terms, NULL))",
        f"  order <- c({_text(INTERCEPT)}, setdiff(parents(net, name), {_text(data_set)}))",
        "  list(coef = coef[order, , drop = FALSE], sd = sd)",
        "}",
    ]
    for name in dag.nodes:
        fit = fits[name]
        terms = [INTERCEPT, *fit.parents]
        lines += [
            f"dist[[{_text(name)}]] <- node({_text(name)}, {_texts(terms)},",
            f"  {_numbers(fit.coef, width=len(terms))},",
            f"  sd = {_numbers(np.sqrt(fit.sigma2))})",
        ]
    lines.append("fitted <- custom.fit(net, dist)")
    return "\n".join(lines) + "\n"


def _text(name: str) -> str:
    """A string of R; what does not print as itself is escaped.

    Raises:
        GraphError: it has a character that R cannot hold.
    """
    if strange := _NOT_R.search(name):
        raise GraphError(
            f"{name!r} contains {strange[0]!r}, which R cannot hold; rename it, or use to_json()"
        )
    return '"' + "".join(_R_ESCAPES.get(c) or _r_character(c) for c in name) + '"'


def _r_character(c: str) -> str:
    if c.isprintable():
        return c
    return f"\\{'u' if ord(c) < 0x10000 else 'U'}{{{ord(c):x}}}"


def _texts(names: Sequence[str], width: int = 4) -> str:
    return _vector([_text(name) for name in names], width)


def _numbers(values: NDArray[np.float64], width: int = 4) -> str:
    """All numbers, with as many digits as it takes to read them back."""
    return _vector([repr(value) for value in values.ravel().tolist()], width)


def _vector(items: Sequence[str], width: int) -> str:
    """A vector of R; a long one has a line for every `width` items."""
    if len(items) <= width:
        return f"c({', '.join(items)})"
    parts = [", ".join(items[i : i + width]) for i in range(0, len(items), width)]
    return "c(\n    " + ",\n    ".join(parts) + ")"
