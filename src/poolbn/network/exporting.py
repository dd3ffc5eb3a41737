"""Networks in other formats: graphs that carry the effects, and an R script for bnlearn."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from poolbn.arrays import Floats
from poolbn.errors import GraphError
from poolbn.graph.dag import Dag
from poolbn.graph.formats import dot_arc, dot_name, write_dot
from poolbn.network.tabulating import probability_table, regression_table
from poolbn.nodes.localfit import INTERCEPT, LocalFit, level_columns
from poolbn.nodes.terms import DIFFERENCE, opposite
from poolbn.tables.kinds import is_whole
from poolbn.wording import listed

Attributes = dict[str, str | float]

_SHARED = ("effect", "se", "between_sd", "opposite")
_SHAPES: dict[str, Attributes] = {  # others have the usual one
    "discrete": {"shape": "box"},
    "count": {"peripheries": 2},
}
_NAMED = 5  # nodes in an error
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_NOT_R = re.compile("[\0\ud800-\udfff]")
_R_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def node_attributes(dag: Dag, fits: Mapping[str, LocalFit]) -> list[Attributes]:
    """What is known of each node, in the order of the nodes; levels as a list of JSON."""
    found = []
    for node in dag.nodes:
        fit = fits[node]
        own: Attributes = {"kind": fit.kind}
        if fit.categories:
            own["levels"] = json.dumps(fit.categories, ensure_ascii=False)
        own |= {"model": fit.model, "pooling": str(fit.pooling), "status": str(fit.status)}
        found.append(own)
    return found


def arc_attributes(
    dag: Dag, fits: Mapping[str, LocalFit], names: Sequence[str]
) -> list[Attributes]:
    """The effect of each arc, in the order of the arcs; numbers that do not exist are left out.

    Only arcs that are one coefficient of a continuous node have an effect: those from continuous
    nodes and counts, and from discrete ones with two levels, of the second against the first. The
    coefficients in the F data sets have these names.
    """
    return [_effect(parent, fits[child], names) for parent, child in dag.arcs]


def _effect(parent: str, child: LocalFit, names: Sequence[str]) -> Attributes:
    terms = list(child.terms(parent))
    if len(terms) > 1 or terms[0].scale != DIFFERENCE:
        return {}
    effect, se, between, own = terms[0].effect, terms[0].se, terms[0].between_sd, terms[0].own
    values = (effect, se, between, opposite(effect, own), *own.tolist())
    pairs = zip([*_SHARED, *names], values, strict=True)
    return {name: float(value) for name, value in pairs if not math.isnan(value)}


def names_of_data_sets(
    dag: Dag, fits: Mapping[str, LocalFit], used: Iterable[str] = _SHARED
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


def to_networkx(dag: Dag, fits: Mapping[str, LocalFit]) -> Any:
    """A networkx.DiGraph."""
    graph = dag.to_networkx()
    for node, attributes in zip(dag.nodes, node_attributes(dag, fits), strict=True):
        graph.nodes[node].update(attributes)
    arcs = arc_attributes(dag, fits, names_of_data_sets(dag, fits))
    for arc, attributes in zip(dag.arcs, arcs, strict=True):
        graph.edges[arc].update(attributes)
    return graph


def to_igraph(dag: Dag, fits: Mapping[str, LocalFit]) -> Any:
    """An igraph.Graph; an attribute that an arc does not have is None."""
    graph = dag.to_igraph()
    arcs = arc_attributes(dag, fits, names_of_data_sets(dag, fits))
    for sequence, attributes in ((graph.vs, node_attributes(dag, fits)), (graph.es, arcs)):
        for name in _keys(attributes):
            sequence[name] = [own.get(name) for own in attributes]
    return graph


def to_dot(dag: Dag, fits: Mapping[str, LocalFit]) -> str:
    """A Graphviz digraph; the effect is also the label of an arc.

    Discrete nodes are boxes, and counts have two lines around them. Data sets are marked as such,
    because Graphviz would take a name such as "color" for a command.
    """
    lines = [
        dot_name(node) + _dot_attributes(attributes | _SHAPES.get(str(attributes["kind"]), {}))
        for node, attributes in zip(dag.nodes, node_attributes(dag, fits), strict=True)
    ]
    names = [f"{name} (data set)" for name in names_of_data_sets(dag, fits, ())]
    for arc, attributes in zip(dag.arcs, arc_attributes(dag, fits, names), strict=True):
        label: Attributes = {}
        if attributes:
            label = {"label": f"{attributes['effect']:.4g}"}
        lines.append(dot_arc(arc) + _dot_attributes(label | attributes))
    return write_dot(lines)


def _dot_attributes(attributes: Attributes) -> str:
    pairs = [f"{dot_name(name)}={dot_name(str(value))}" for name, value in attributes.items()]
    return f" [{', '.join(pairs)}]" if pairs else ""


def to_graphml(dag: Dag, fits: Mapping[str, LocalFit]) -> str:
    """GraphML, as networkx writes it; the identifier of a node is its name."""
    graph = to_networkx(dag, fits)
    levels = [own["levels"] for own in graph.nodes.values() if "levels" in own]
    for name in [*dag.nodes, *levels, *_keys(graph.edges.values())]:
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


def to_bnlearn(dag: Dag, fits: Mapping[str, LocalFit], group: str, prior: Floats) -> str:
    """An R script that makes `fitted`, a discrete or conditional Gaussian network of bnlearn.

    The data sets are a discrete parent of every node. bnlearn knows numbers by their position: the
    parents' in the order in which its graph has them, which the script looks up, and one regression
    for each configuration of the discrete parents.
    """
    _check_bnlearn(dag, fits)
    data_set = str(level_columns([group], dag.nodes)[0])
    arcs = [(data_set, node) for node in dag.nodes] + list(dag.arcs)
    states = {data_set: names_of_data_sets(dag, fits, ())}
    states |= {node: list(fits[node].categories) for node in dag.nodes}
    lines = [
        "library(bnlearn)",
        "",
        f"net <- empty.graph({_texts([data_set, *dag.nodes])})",
        f"arcs(net) <- matrix({_texts([name for arc in arcs for name in arc], width=2)},",
        '  ncol = 2, byrow = TRUE, dimnames = list(NULL, c("from", "to")))',
        "",
        "states <- list()",
        *(f"states[[{r_text(name)}]] <- {_texts(own)}" for name, own in states.items() if own),
        "",
        "dist <- list()",
        f"dist[[{r_text(data_set)}]] <- matrix({_numbers(prior)},",
        f"  nrow = 1, dimnames = list(NULL, states[[{r_text(data_set)}]]))",
        *_R_FUNCTIONS,
    ]
    for name in dag.nodes:
        fit, parents = fits[name], dag.parents(name)
        own = [parent for parent in parents if fits[parent].categories]
        others = [parent for parent in parents if parent not in own]
        slowest_last = _texts([*reversed(own), data_set])
        lines.append(f"dist[[{r_text(name)}]] <- {fit.kind}({r_text(name)}, {slowest_last},")
        if fit.gaussian is not None or fit.switches:
            terms = [INTERCEPT, *others]
            coef, variances = regression_table(fit, own, others, fits)
            lines += [
                f"  terms = {_texts(terms)},",
                f"  coef = {_numbers(coef, width=len(terms))},",
                f"  sd = {_numbers(np.sqrt(variances))})",
            ]
        else:
            table = probability_table(fit, own, fits)
            lines.append(f"  {_numbers(table, width=table.shape[-1])})")
    lines.append("fitted <- custom.fit(net, dist)")
    return "\n".join(lines) + "\n"


_R_FUNCTIONS = (
    "# Probabilities of states in each configuration of `of`, whose first changes fastest.",
    "discrete <- function(name, of, p) {",
    "  own <- states[c(name, of)]",
    "  aperm(array(p, lengths(own), own), match(c(name, parents(net, name)), names(own)))",
    "}",
    "# Regressions in each configuration of `of`; standard deviations in each data set, or in all.",
    "continuous <- function(name, of, terms, coef, sd) {",
    "  order <- match(intersect(parents(net, name), of), of)",
    f"  rows <- c({json.dumps(INTERCEPT)}, setdiff(parents(net, name), of))",
    "  n <- lengths(states[of])",
    "  coef <- aperm(array(coef, c(length(terms), n)), c(1, 1 + order))",
    "  coef <- matrix(coef, nrow = length(terms), dimnames = list(terms, NULL))",
    "  sd <- aperm(array(rep(sd, each = prod(n) / length(sd)), n), order)",
    "  list(coef = coef[rows, , drop = FALSE], sd = as.vector(sd))",
    "}",
)


def _check_bnlearn(dag: Dag, fits: Mapping[str, LocalFit]) -> None:
    """Raise for the nodes that bnlearn cannot hold."""
    reasons = []
    mixed = [
        f"{node} given {listed(others, _NAMED)}"
        for node in dag.nodes
        if fits[node].categories
        and (others := [p for p in dag.parents(node) if not fits[p].categories])
    ]
    if mixed:
        reasons.append(
            f"discrete nodes with parents that are not ({listed(mixed, _NAMED)}): learn with "
            "constraints=pb.Constraints(continuous_to_discrete=False)"
        )
    if counts := [node for node in dag.nodes if is_whole(fits[node].kind)]:
        reasons.append(
            f"counts ({listed(counts, _NAMED)}): learn with kinds={{{counts[0]!r}: 'continuous'}}"
        )
    if reasons:
        raise GraphError(f"bnlearn has no {'; nor '.join(reasons)}; or use to_json()")


def r_text(name: str) -> str:
    """A string of R; what does not print as itself is escaped."""
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
    return _vector([r_text(name) for name in names], width)


def _numbers(values: Floats, width: int = 4) -> str:
    """All numbers, with as many digits as it takes to read them back."""
    return _vector([repr(value) for value in values.ravel().tolist()], width)


def _vector(items: Sequence[str], width: int) -> str:
    """A vector of R; a long one has a line for every `width` items."""
    if len(items) <= width:
        return f"c({', '.join(items)})"
    parts = [", ".join(items[i : i + width]) for i in range(0, len(items), width)]
    return "c(\n    " + ",\n    ".join(parts) + ")"
