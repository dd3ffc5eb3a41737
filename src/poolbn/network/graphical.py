"""What the graph of a network says, in every data set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from poolbn.errors import GraphError, nearest
from poolbn.graph.dag import Cpdag, Dag
from poolbn.graph.pairs import Pair
from poolbn.nodes.localfit import LocalFit

Given = ParamSpec("Given")
Found = TypeVar("Found")


def _asked(
    method: Callable[Concatenate[Dag, Given], Found],
) -> Callable[Concatenate[Graphical, Given], Found]:
    """What the graph is asked, as a method of the network."""

    @wraps(method)
    def of_graph(self: Graphical, /, *given: Given.args, **named: Given.kwargs) -> Found:
        return method(self.dag, *given, **named)

    return of_graph


class Graphical:
    """The graph of a `Network`, and its nodes by name."""

    dag: Dag
    fits: Mapping[str, LocalFit]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return self.dag.nodes

    @property
    def arcs(self) -> tuple[Pair, ...]:
        """The arcs, as pairs (parent, child)."""
        return self.dag.arcs

    def __getitem__(self, node: str) -> LocalFit:
        if node not in self.dag.nodes:
            raise GraphError(f"no node is called {node!r}{nearest(node, self.dag.nodes)}")
        return self.fits[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self.dag.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.dag.nodes

    parents = _asked(Dag.parents)
    """The nodes with an arc into a node, see `Dag.parents`."""
    children = _asked(Dag.children)
    """The nodes that a node has an arc into, see `Dag.children`."""

    @property
    def interventions(self) -> dict[Hashable, tuple[str, ...]]:
        """The nodes that were set or changed, for data sets in which some were, see `pb.stats`.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> pb.learn(trial, group="clinic", interventions={"NY": ["bmi"]}).interventions
            {'NY': ('bmi',)}
        """
        levels = next(iter(self.fits.values())).levels
        found = {
            level: tuple(node for node, fit in self.fits.items() if level in fit.experiments)
            for level in levels
        }
        return {level: nodes for level, nodes in found.items() if nodes}

    def cpdag(self) -> Cpdag:
        """The equivalence class of the graph, with what is known of interventions.

        Examples:
            >>> import poolbn as pb
            >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
            >>> net = pb.fit("age -> bmi", trial, group="clinic", interventions={"NY": ["bmi"]})
            >>> net.cpdag(), net.dag.cpdag()
            (Cpdag(2 nodes: age -> bmi), Cpdag(2 nodes: age -- bmi))
        """
        return self.dag.cpdag(self.interventions.values())

    markov_blanket = _asked(Dag.markov_blanket)
    """Parents, children and their other parents, see `Dag.markov_blanket`."""
    d_separated = _asked(Dag.d_separated)
    """Whether nodes are independent given others, in each data set, see `Dag.d_separated`."""
    is_adjustment_set = _asked(Dag.is_adjustment_set)
    """Whether adjusting for nodes, and for the data set, leaves a causal effect alone, see
    `Dag.is_adjustment_set`."""
    adjustment_set = _asked(Dag.adjustment_set)
    """The nodes to adjust for, besides the data set, see `Dag.adjustment_set`."""
    adjustment_sets = _asked(Dag.adjustment_sets)
    """All sets of nodes to adjust for, besides the data set, see `Dag.adjustment_sets`."""
