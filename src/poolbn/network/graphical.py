"""What the graph of a network says, in every data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from poolbn.errors import GraphError, nearest
from poolbn.graph.dag import Cpdag, Dag
from poolbn.graph.pairs import Pair
from poolbn.nodes.localfit import LocalFit


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

    def parents(self, node: str) -> tuple[str, ...]:
        """The nodes with an arc into `node`.

        Examples:
            >>> import poolbn as pb
            >>> net = pb.random_network(pb.Dag("[A][B][C|A:B]"), data_sets=2)
            >>> net.parents("C"), net["C"].parents
            (('A', 'B'), ('A', 'B'))
        """
        return self.dag.parents(node)

    def children(self, node: str) -> tuple[str, ...]:
        """The nodes that `node` has an arc into.

        Examples:
            >>> import poolbn as pb
            >>> net = pb.random_network(pb.Dag("[A][B|A][C|A]"), data_sets=2)
            >>> net.children("A")
            ('B', 'C')
        """
        return self.dag.children(node)

    def cpdag(self) -> Cpdag:
        """The equivalence class of the graph: which arcs have a direction, and which may turn.

        Examples:
            >>> import poolbn as pb
            >>> pb.random_network(pb.Dag("[A][B|A]"), data_sets=2).cpdag()
            Cpdag(2 nodes: A -- B)
        """
        return self.dag.cpdag()

    def markov_blanket(self, node: str) -> tuple[str, ...]:
        """Parents, children and their other parents: given these, no other node matters to `node`.

        Examples:
            >>> import poolbn as pb
            >>> net = pb.random_network(pb.Dag.from_modelstring("[A][B][C|A:B][D|C]"), data_sets=2)
            >>> net.markov_blanket("A")
            ('B', 'C')
        """
        return self.dag.markov_blanket(node)

    def d_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Whether the graph makes `x` and `y` independent given `given`, in each data set.

        Args:
            x: a name or several.
            y: a name or several, none of them in `x`.
            given: a name or several, none of them in `x` or `y`.

        Examples:
            >>> import poolbn as pb
            >>> net = pb.random_network(pb.Dag.from_modelstring("[A][B][C|A:B][D|C]"), data_sets=2)
            >>> net.d_separated("A", "D", given="C"), net.d_separated("A", "B", given="D")
            (True, False)
        """
        return self.dag.d_separated(x, y, given)

    def is_adjustment_set(self, cause: str, effect: str, given: str | Iterable[str] = ()) -> bool:
        """Whether adjusting for `given` leaves the effect of `cause` on `effect`, and only that.

        The data set is adjusted for anyway. `Dag.is_adjustment_set` has the rule.

        Args:
            cause: a name.
            effect: another one.
            given: a name or several, none of them the cause or the effect.

        Examples:
            >>> import poolbn as pb
            >>> net = pb.random_network(pb.Dag.from_modelstring("[A][B|A][C|A:B]"), data_sets=2)
            >>> net.is_adjustment_set("B", "C"), net.is_adjustment_set("B", "C", given="A")
            (False, True)
        """
        return self.dag.is_adjustment_set(cause, effect, given)

    def adjustment_set(
        self, cause: str, effect: str, among: Iterable[str] | None = None
    ) -> tuple[str, ...] | None:
        """The nodes to adjust for, besides the data set: those parents of the cause that matter.

        Args:
            cause: a name.
            effect: another one.
            among: the nodes that may be used; all by default.

        Returns:
            The names, or None where no set will do: the effect is a parent of the cause (then the
            cause has no effect on it), or `among` lacks the nodes that it takes.

        Examples:
            >>> import poolbn as pb
            >>> net = pb.random_network(pb.Dag.from_modelstring("[A][B|A][C|A:B]"), data_sets=2)
            >>> net.adjustment_set("B", "C"), net.adjustment_set("A", "C")
            (('A',), ())
        """
        return self.dag.adjustment_set(cause, effect, among)

    def adjustment_sets(
        self, cause: str, effect: str, among: Iterable[str] | None = None
    ) -> tuple[tuple[str, ...], ...]:
        """All sets of nodes to adjust for that cannot be smaller, those with the fewest first.

        Args:
            cause: a name.
            effect: another one.
            among: the nodes that may be used; all by default.

        Returns:
            No sets where none will do, see `adjustment_set`; one without nodes where there is
            nothing to adjust for.

        Raises:
            GraphError: a name is no node, or there are more than 10000 sets.

        Examples:
            >>> import poolbn as pb
            >>> net = pb.random_network(
            ...     pb.Dag.from_modelstring("[A][B|A][C|A][D|B:C]"), data_sets=2)
            >>> net.adjustment_sets("B", "D")
            (('A',), ('C',))
        """
        return self.dag.adjustment_sets(cause, effect, among)
